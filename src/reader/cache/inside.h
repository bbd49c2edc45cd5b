/* inside.h - shared by the files of cache.h. */
#ifndef TIDE_READER_CACHE_INSIDE_H
#define TIDE_READER_CACHE_INSIDE_H

#include "db/db.h"
#include "db/migrate.h"
#include "db/rows.h"
#include "mail/archive/content.h"
#include "reader/cache/cache.h"

#define TIDE_CACHE_WHAT "the reader's cache"

struct tide_cache {
    tide_mem *mem;
    tide_world *world;
    tide_db db;
    struct tide_rows_kept kept;
    tide_rows rows;
    tide_packer *packer; /* NULL: not needed yet */
    bool read_only, in_tx;
    char path[TIDE_CACHE_PATH_BYTES];
};

extern const struct tide_schema tide_cache_schema;

/* The row of a label; made when it is new.  0 and TIDE_NOT_FOUND to read: it is unknown. */
tide_status tide_cache_label_row(tide_cache *cache, tide_text label, bool make, int64_t *row_out,
                                 tide_error *err);
/* CCH5. */
tide_status tide_cache_changed(tide_cache *cache, int64_t row, tide_error *err);
/* The row of a message; TIDE_NOT_FOUND, and `err` is as it was. */
tide_status tide_cache_row_of(tide_cache *cache, tide_text id, int64_t *row_out, tide_error *err);

/* ---- words.c: the row in `words` of a message (CCH7) ---- */

/* From its headers, if they are known and its body is not here. */
tide_status tide_cache_words_headers(tide_cache *cache, int64_t row, tide_error *err);
/* From its bytes. */
tide_status tide_cache_words_body(tide_cache *cache, int64_t row, tide_text raw, tide_error *err);
tide_status tide_cache_words_drop(tide_cache *cache, int64_t row, tide_error *err);

#endif
