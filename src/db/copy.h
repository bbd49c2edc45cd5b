/* copy.h - a consistent copy of an SQLite file, also while others write to it. */
#ifndef TIDE_DB_COPY_H
#define TIDE_DB_COPY_H

#include "db/db.h"
#include "world/world.h"

/* Copies `from` as one snapshot into the new file `to`; one that is there is removed first.  The
 * copy has no log beside it: it is one file, which a medium that cannot be written to can hold.  The
 * first writer turns the log on again.  On failure nothing is left at `to`. */
tide_status tide_db_copy(tide_world *world, const char *from, const char *to, tide_mem *mem,
                         tide_error *err);

/* Whether SQLite finds its pages and indexes in order.  TIDE_CORRUPT names the file. */
tide_status tide_db_whole(tide_world *world, const char *path, tide_mem *mem, tide_error *err);

#endif
