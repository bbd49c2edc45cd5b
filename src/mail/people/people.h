/* people.h - whom a user writes to and hears from: completes recipients as they are typed (K14).
 *
 * A file beside the archive that can be made again from it, so it belongs in a cache.  Each message
 * adds to the score of the people it names: much for those the user wrote to, little for a sender,
 * less for others who got it too; the weight of a message halves in TIDE_PEOPLE_HALF_DAYS.  Scores
 * are kept as logarithms of sums of 2^(date / half life): such a sum grows by the same factor for
 * everybody as time passes, so that frequency and recency give one order that holds for ever, and
 * nothing is ever aged.
 *
 * Drafts and junk name nobody, addresses that no person reads (noreply) are left out.
 *
 * A handle belongs to one thread at a time; several handles of one file may read while one writes.
 *
 * Invariants:
 *   PPL1  every message that is ready in the archive is counted at most once, and exactly once when
 *         tide_people_update() of all says that nothing is left; a crash leaves what was committed,
 *         shard by shard.
 *   PPL2  tide_people_find() reads at most TIDE_PEOPLE_RANGE_MAX rows of the words and
 *         TIDE_PEOPLE_WALK_MAX of the people, however many there are.
 *   PPL3  an address is one that can be written to (mail/compose/mailbox.h MLB1), in lower case.
 */
#ifndef TIDE_MAIL_PEOPLE_PEOPLE_H
#define TIDE_MAIL_PEOPLE_PEOPLE_H

#include "mail/archive/archive.h"
#include "mail/compose/mailbox.h"

enum {
    TIDE_PEOPLE_HALF_DAYS = 180,
    TIDE_PEOPLE_FOUND_MAX = 20,
    TIDE_PEOPLE_RANGE_MAX = 1500,
    TIDE_PEOPLE_WALK_MAX = 10000, /* the best ones */
    TIDE_PEOPLE_NAME_BYTES_MAX = 120,
};

typedef struct tide_people tide_people;

/* Opens or makes the file; one that cannot be read is made anew.  `read_only`: TIDE_NOT_FOUND when
 * there is none. */
struct tide_people_options {
    const char *path;
    tide_world *world;
    bool read_only;
};
tide_status tide_people_open(const struct tide_people_options *options, tide_mem *mem,
                             tide_people **people_out, tide_error *err);
void tide_people_close(tide_people *people); /* NULL is fine */

/* Takes in what is new in one shard.  *left_out: another call would find more.  A shard into which
 * older messages came is read anew once they are a quarter of it, or with `all` at once. */
tide_status tide_people_update(tide_people *people, tide_archive *archive, bool all, bool *left_out,
                               tide_error *err);

/* Messages that the archive does not have, instead of those of the call before; nothing is done if that
 * one had the same `version`.  `read` calls `take` for each, with `taking`, until it returns false. */
typedef bool tide_people_take(const struct tide_parties *head, void *taking);
tide_status tide_people_others(tide_people *people, const char *version,
                               tide_status (*read)(tide_people_take *take, void *taking, void *arg,
                                                   tide_error *err),
                               void *arg, tide_error *err);

/* Removes the file; it is not open. */
tide_status tide_people_remove(tide_world *world, const char *path, tide_error *err);

struct tide_person {
    char address[TIDE_MAILBOX_BYTES_MAX + 1];
    char name[TIDE_PEOPLE_NAME_BYTES_MAX + 1]; /* as they write it; "" */
};
/* The best people of whom each typed word begins a word of the name or address; nothing typed: the
 * best of all.  None is in `without` (addresses of the user, recipients that are there already).
 * At most `count_max`, and TIDE_PEOPLE_FOUND_MAX. */
tide_status tide_people_find(tide_people *people, tide_text typed, const tide_text *without,
                             size_t without_count, size_t count_max, struct tide_person *found_out,
                             size_t *count_out, tide_error *err);

#endif
