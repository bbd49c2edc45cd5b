/* shelf.h - archives that a resident process keeps open for reading, between the requests it answers.
 *
 * To open a shard costs more than most reads of it: its schema is read and its statements are
 * prepared.  An archive from the shelf is used by any number of threads at once (inside.h RDR1).
 *
 * Invariants:
 *   SLF1  archives that nobody uses have at most TIDE_SHELF_SHARDS_MAX shards open.  Which one is
 *         closed for that is drawn: who looks at all accounts in turn would find none of them open
 *         if it were the least recently used one.
 *   SLF2  what is taken reads what is on the disk now: new, replaced and removed shards (ARC7).
 *   SLF3  an archive with a shard that could not be read is not kept: the next one tries again.
 *   SLF4  every `rest_ms` archives that were not taken since the time before are closed, and the others
 *         let go of files that were replaced, moved or removed.  So a file that a user deleted keeps its
 *         space, and its file system its mount, for twice that time at most.
 *   SLF5  one thread does that, and wakes up only while there is an archive.
 */
#ifndef TIDE_MAIL_SHELF_H
#define TIDE_MAIL_SHELF_H

#include "mail/archive/archive.h"

typedef struct tide_shelf tide_shelf;

enum {
    TIDE_SHELF_SHARDS_MAX = 128, /* each has two or three files open, and about 0.2 MB */
    TIDE_SHELF_REST_MS = 60000,
};

tide_status tide_shelf_new(tide_world *world, tide_mem *mem, uint64_t rest_ms,
                           tide_shelf **shelf_out, tide_error *err);
void tide_shelf_free(tide_shelf *shelf); /* all were given back; NULL is fine */

/* `options` are those of a reader: read_only is set.  `shelf` NULL: opens it for this call alone. */
tide_status tide_shelf_take(tide_shelf *shelf, const struct tide_archive_options *options,
                            tide_mem *mem, tide_archive **archive_out, tide_error *err);
/* NULL is fine for both. */
void tide_shelf_give(tide_shelf *shelf, tide_archive *archive);
void tide_shelf_rest(tide_shelf *shelf); /* SLF4, at once */

#endif
