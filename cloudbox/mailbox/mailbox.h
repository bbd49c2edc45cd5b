/* mailbox.h - the messages, labels, threads, drafts and history of one account.
 *
 * A store, nothing else: it knows no HTTP, no JSON and no quota.  Messages sit
 * in slots in the order they were added and never move; a generated message
 * costs only its slot, its bytes are made when they are asked for (cloudbox/generate/generate.h).
 * A page of any listing costs O(page), not O(mailbox): order, labels and
 * Message-IDs are indexed.
 *
 * Invariants (box_mailbox_check() tests them):
 *   BMBX1  ids and history ids strictly increase with time of creation, with gaps.
 *   BMBX2  the bytes of a message never change under one id.
 *   BMBX3  listing order is by internal date, newest first, then by id, newest first; every index
 *          holds the same messages as the slots say.
 *   BMBX4  every change of a message appends history and gives the message that history id; history
 *          ascends strictly.
 *   BMBX5  a label's counts are what counting would give.
 *   BMBX6  every change is reported through box_mailbox_changed, and replaying the reports on a
 *          fresh mailbox of the same options gives the same mailbox.
 */
#ifndef BOX_MAILBOX_H
#define BOX_MAILBOX_H

#include "base/buf.h"
#include "base/status.h"
#include "base/text.h"
#include "cloudbox/generate/labels.h"

#include <jansson.h>

typedef struct box_mailbox box_mailbox;

enum {
    BOX_SLOT_NONE = 0xffffffffu,
    BOX_LABELS_MAX = 10000,       /* of one mailbox, as Gmail */
    BOX_MESSAGE_LABELS_MAX = 500, /* on one message */
    BOX_ID_TEXT_BYTES = 24,
    BOX_LABEL_NAME_BYTES_MAX = 225,
};

struct box_label {
    uint32_t number;
    bool system;
    bool gone;
    char id[BOX_ID_TEXT_BYTES]; /* "INBOX", "Label_7" */
    char name[BOX_LABEL_NAME_BYTES_MAX + 1];
    char list_visibility[24];   /* "labelShow", ...; "" when never set */
    char message_visibility[8]; /* "show", "hide"; "" */
    char text_color[8];         /* "#rrggbb"; "" */
    char background_color[8];
    uint32_t messages; /* counts (BMBX5); spam and trash counted as any other */
    uint32_t messages_unread;
};

struct box_message {
    uint64_t id;        /* printed as 16 hex digits */
    uint64_t thread_id; /* the id of the thread's first message */
    uint64_t date_ms;   /* internalDate */
    uint64_t history_id;
    uint32_t bytes;
    uint32_t label_set;      /* box_mailbox_labels() */
    uint32_t content;        /* private: generated or stored */
    uint32_t next_in_thread; /* slot, in order of addition */
    bool gone;               /* deleted for good; the slot stays as a tombstone */
};

/* ---- life ---- */

struct box_mailbox_spec {
    uint64_t seed;
    uint32_t generated;  /* messages from the generator, slots 0..generated-1; with any of
                            them come the generator's user labels, Label_1 and on */
    uint32_t size_bytes; /* see struct box_mailbox_options */
    uint64_t now_ms;
    uint64_t history_keep_ms; /* generated mail younger than this has history records */
    const char *email;
    /* Called with every change (BMBX6): {"op":...}; the value is taken.  May be NULL. */
    void (*changed)(void *arg, json_t *change);
    void *changed_arg;
};
box_mailbox *box_mailbox_new(const struct box_mailbox_spec *spec);
void box_mailbox_free(box_mailbox *mailbox); /* NULL is fine */
/* Applies a change that `changed` was given; reports nothing.  The clock becomes the
 * change's.  TIDE_CORRUPT or TIDE_INVALID: it was not made from this state; nothing
 * is changed. */
tide_status box_mailbox_replay(box_mailbox *mailbox, const json_t *change, tide_error *err);

/* ---- looking ---- */

const char *box_mailbox_email(const box_mailbox *mailbox); /* whose it is; "" */
uint32_t box_mailbox_slots(const box_mailbox *mailbox);    /* also tombstones */
uint32_t box_mailbox_messages(const box_mailbox *mailbox);
uint32_t box_mailbox_threads(const box_mailbox *mailbox);
uint64_t box_mailbox_history_id(const box_mailbox *mailbox); /* the latest */
const struct box_message *box_mailbox_at(const box_mailbox *mailbox, uint32_t slot);
/* By the text of an id, 16 hex digits in lower case; gone ones are not found. */
uint32_t box_mailbox_find(const box_mailbox *mailbox, tide_text id);
/* The first message left of a thread, or BOX_SLOT_NONE; follow next_in_thread and
 * skip the gone. */
uint32_t box_mailbox_thread(const box_mailbox *mailbox, tide_text thread_id);
void box_id_text(uint64_t id, char text_out[BOX_ID_TEXT_BYTES]);
/* false: not what box_id_text() writes. */
bool box_id_parse(tide_text text, uint64_t *id_out);

/* Its bytes, exactly; borrowed until `scratch` changes or the message goes.
 * Generated ones are made in `scratch`, stored ones are not copied. */
tide_text box_mailbox_raw(box_mailbox *mailbox, uint32_t slot, tide_buf *scratch);
/* Up to 200 characters of its text, as Gmail's snippet (HTML-escaped). */
void box_mailbox_snippet(box_mailbox *mailbox, uint32_t slot, tide_buf *out);
/* Sorted label numbers; borrowed until the next change. */
const uint16_t *box_mailbox_labels(const box_mailbox *mailbox, uint32_t label_set,
                                   size_t *count_out);
bool box_mailbox_has_label(const box_mailbox *mailbox, uint32_t slot, uint32_t label);

/* ---- listing (BMBX3) ---- */

/* Where a walk stands: behind this message.  {0, 0} is the end, the start is
 * BOX_WALK_START. */
struct box_walk_at {
    uint64_t date_ms;
    uint64_t id;
};
#define BOX_WALK_START ((struct box_walk_at){UINT64_MAX, UINT64_MAX})

struct box_walk {
    uint64_t date_low_ms;   /* inclusive */
    uint64_t date_high_ms;  /* exclusive; UINT64_MAX: no bound */
    const uint16_t *labels; /* all of them; the rarest one is walked */
    size_t labels_count;
    tide_text message_id; /* RFC 822 Message-ID without <>; data == NULL: any */
};
/* Calls `visit` newest first from behind `at`; false from it stops the walk
 * there.  Gone messages are skipped.  `visit` must not change the mailbox. */
void box_mailbox_walk(box_mailbox *mailbox, const struct box_walk *walk, struct box_walk_at at,
                      bool (*visit)(void *arg, uint32_t slot), void *arg);
/* How many messages a walk would visit at most: an estimate from the indexes. */
uint32_t box_mailbox_walk_estimate(box_mailbox *mailbox, const struct box_walk *walk);

/* ---- changing ---- */

struct box_insert {
    tide_text raw;
    uint64_t date_ms;
    tide_text thread_id; /* to join, when it exists; else one is found by References + Subject */
    const uint16_t *labels;
    size_t labels_count;
};
/* Adds a message and its history.  The bytes are copied. */
uint32_t box_mailbox_insert(box_mailbox *mailbox, const struct box_insert *insert);
/* Adds and takes labels; no history when nothing changes.  What is in both is
 * taken.  Beyond BOX_MESSAGE_LABELS_MAX nothing is added. */
void box_mailbox_relabel(box_mailbox *mailbox, uint32_t slot, const uint16_t *add, size_t add_count,
                         const uint16_t *take, size_t take_count);
/* For good; a draft goes with its message. */
void box_mailbox_remove(box_mailbox *mailbox, uint32_t slot);

/* ---- labels ---- */

uint32_t box_mailbox_labels_count(const box_mailbox *mailbox); /* numbers in use, also gone ones */
const struct box_label *box_mailbox_label(const box_mailbox *mailbox, uint32_t number);
bool box_mailbox_label_by_id(const box_mailbox *mailbox, tide_text id, uint32_t *number_out);
/* By name as queries write it: case aside, ' ' and '/' equal to '-'. */
bool box_mailbox_label_by_name(const box_mailbox *mailbox, tide_text name, uint32_t *number_out);
/* Threads with at least one message that carries it, and those of them where such a
 * message is unread.  Counted at once and then known until one of them changes. */
void box_mailbox_label_threads(box_mailbox *mailbox, uint32_t number, uint32_t *threads_out,
                               uint32_t *unread_out);
/* TIDE_EXISTS: the name is taken (case aside); TIDE_FULL; TIDE_INVALID: empty or
 * too long.  Only the texts of `wanted` are read. */
tide_status box_mailbox_label_create(box_mailbox *mailbox, const struct box_label *wanted,
                                     uint32_t *number_out);
/* Takes over all texts.  TIDE_NOT_FOUND: it is gone; TIDE_INVALID also for another
 * name on a system label. */
tide_status box_mailbox_label_update(box_mailbox *mailbox, uint32_t number,
                                     const struct box_label *wanted);
/* Takes it off every message, each with its record, oldest first; user labels only. */
void box_mailbox_label_remove(box_mailbox *mailbox, uint32_t number);

/* ---- drafts: an id of their own around a message that is replaced ---- */

struct box_draft {
    uint64_t id; /* printed as "r" and the number */
    uint32_t slot;
    bool gone;
};
uint32_t box_mailbox_drafts(const box_mailbox *mailbox); /* also gone ones */
const struct box_draft *box_mailbox_draft_at(const box_mailbox *mailbox, uint32_t index);
uint32_t box_mailbox_draft_find(const box_mailbox *mailbox, tide_text id); /* or BOX_SLOT_NONE */
/* The message gets DRAFT. */
uint32_t box_mailbox_draft_create(box_mailbox *mailbox, const struct box_insert *insert);
/* The draft's id stays, its message is another one with a new id, in the same
 * thread unless another one is named. */
void box_mailbox_draft_update(box_mailbox *mailbox, uint32_t draft,
                              const struct box_insert *insert);
void box_mailbox_draft_remove(box_mailbox *mailbox, uint32_t draft); /* with its message */
/* The draft is gone; its content is inserted as a sent message of the same thread,
 * with its labels but SENT instead of DRAFT. */
uint32_t box_mailbox_draft_send(box_mailbox *mailbox, uint32_t draft, uint64_t date_ms);

/* ---- history (BMBX4) ---- */

typedef enum box_change {
    BOX_CHANGE_ADDED = 1,
    BOX_CHANGE_DELETED = 2,
    BOX_CHANGE_LABELED = 4,
    BOX_CHANGE_UNLABELED = 8,
} box_change;

struct box_record {
    uint64_t history_id;
    uint64_t at_ms;
    uint32_t slot;
    uint32_t label_set; /* after the change */
    uint32_t changed;   /* label set that was added or taken */
    box_change change;
};
/* The first index with a history id above `after`; O(log n). */
uint32_t box_mailbox_history_after(const box_mailbox *mailbox, uint64_t after);
uint32_t box_mailbox_history_count(const box_mailbox *mailbox);
const struct box_record *box_mailbox_history_at(const box_mailbox *mailbox, uint32_t index);
/* Start ids below this one are expired (404): the highest id without a record. */
uint64_t box_mailbox_history_oldest(const box_mailbox *mailbox);
/* Forgets records older than history_keep_ms; called with the cloud's clock. */
void box_mailbox_history_expire(box_mailbox *mailbox, uint64_t now_ms);
/* All records, and every history id given out so far: the latest one moves on. */
void box_mailbox_history_expire_all(box_mailbox *mailbox);
/* The time that later changes are recorded at. */
void box_mailbox_clock(box_mailbox *mailbox, uint64_t now_ms);

/* The first broken invariant in words, or NULL. */
const char *box_mailbox_check(box_mailbox *mailbox);

#endif
