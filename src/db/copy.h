/* copy.h - a consistent copy of an SQLite file, also while other processes write to it. */
#ifndef TIDE_DB_COPY_H
#define TIDE_DB_COPY_H

#include "db/db.h"
#include "world/world.h"

/* Copies `from` as one snapshot into the new file `to`; an existing file is removed first.  The
 * copy has no write-ahead log: it is one file, which can be read from a read-only medium.  The
 * first writer turns the log on again.  On failure nothing is left at `to`. */
tide_status tide_db_copy(tide_world *world, const char *from, const char *to, tide_mem *mem,
                         tide_error *err);

/* Whether SQLite finds its pages and indexes in order.  TIDE_CORRUPT names the file. */
tide_status tide_db_whole(tide_world *world, const char *path, tide_mem *mem, tide_error *err);

#endif
