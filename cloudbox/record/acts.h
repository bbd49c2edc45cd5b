/* acts.h - what clients did to a mailbox, by thread: whose mail was changed.
 *
 * Only what came through the API counts: mail that arrives and what /_cloud does is nobody's act.  An
 * act that changed nothing (a label that was there) counts too: it was tried.
 *
 * Invariants:
 *   BACT1  every change that a client makes to a message is counted for the thread it was in.
 *   BACT2  memory is bounded: acts on further threads count as acts on "others".
 */
#ifndef BOX_ACTS_H
#define BOX_ACTS_H

#include "base/map.h"

#include <jansson.h>

typedef enum box_act {
    BOX_ACT_LABELS,  /* put on or taken off, also INBOX and UNREAD */
    BOX_ACT_TRASHED, /* or taken out of the trash */
    BOX_ACT_DELETED,
    BOX_ACT_DRAFTED, /* a draft was made or changed */
    BOX_ACT_SENT,
    BOX_ACT_INSERTED,
    BOX_ACTS,
} box_act;

enum { BOX_ACTS_THREADS_MAX = 100000 };

struct box_acts {
    tide_map index; /* thread -> its place in the list */
    struct box_acts_thread {
        uint64_t thread_id; /* 0: others */
        uint32_t counts[BOX_ACTS];
    } * list;
    size_t count, capacity;
};

void box_acts_init(struct box_acts *acts);
void box_acts_done(struct box_acts *acts);
void box_acts_add(struct box_acts *acts, uint64_t thread_id, box_act act);
enum { BOX_ACTS_NAME_BYTES = 24 };
/* {"THREAD": {"labels": n, ...}}, without zeros; the caller's.  `name` writes the id of a thread. */
json_t *box_acts_json(const struct box_acts *acts,
                      void (*name)(uint64_t thread_id, char name_out[BOX_ACTS_NAME_BYTES]));

#endif
