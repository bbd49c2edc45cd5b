#include "reader/cache/inside.h"

#include <stdio.h>

enum { PACK_LEVEL = 3, FREE_PAGES = 4000, ON_SCREEN_MS = 60000 };

static tide_status packer_of(tide_cache *cache, tide_error *err)
{
    return cache->packer != NULL ? TIDE_OK
                                 : tide_packer_new(cache->mem, PACK_LEVEL, &cache->packer, err);
}

tide_status tide_cache_body_put(tide_cache *cache, tide_text id, tide_text raw, uint64_t now_ms,
                                tide_error *err)
{
    struct tide_packed packed;
    int64_t row = 0;
    TIDE_TRY(packer_of(cache, err));
    TIDE_TRY(tide_cache_row_of(cache, id, &row, err));
    TIDE_TRY(tide_content_pack(cache->packer, raw, &packed, err));
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "INSERT INTO body (message, bytes, used_ms) VALUES (?1, ?2, ?3)"
                          " ON CONFLICT (message) DO UPDATE SET bytes = ?2, used_ms = ?3",
                          row, raw.bytes, now_ms));
    TIDE_TRY(tide_rows_do(
        cache->rows, TIDE_CACHE_WHAT, err,
        "INSERT INTO body_raw (message, codec, raw) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (message) DO UPDATE SET codec = ?2, raw = ?3",
        row, (int)packed.codec,
        tide_value_bytes(packed.body.bytes == 0 ? "" : packed.body.data, packed.body.bytes)));
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "UPDATE message SET evicted = 0 WHERE id = ?1", row));
    TIDE_TRY(tide_cache_words_body(cache, row, raw, err));
    return tide_cache_changed(cache, row, err);
}

tide_status tide_cache_body_get(tide_cache *cache, tide_text id, tide_buf *out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(packer_of(cache, err));
    const tide_status rc = tide_rows_first(
        cache->rows, TIDE_CACHE_WHAT, &stmt, err,
        "SELECT r.codec, b.bytes, r.raw FROM message m JOIN body b ON b.message = m.id"
        " JOIN body_raw r ON r.message = m.id WHERE m.gmail_id = ?1",
        id);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "the body of message %.*s is not cached", (int)id.bytes,
                              id.data);
    return rc == TIDE_OK ? tide_content_unpack(cache->packer, tide_rows_get_i64(&stmt, 0),
                                               tide_rows_get_text(&stmt, 2),
                                               tide_rows_get_u64(&stmt, 1), out, err)
                         : rc;
}

tide_status tide_cache_opened(tide_cache *cache, tide_text id, uint64_t now_ms, tide_error *err)
{
    int64_t row = 0;
    const tide_status rc = tide_cache_row_of(cache, id, &row, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "UPDATE message SET evicted = 0 WHERE id = ?1", row));
    return tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                        "UPDATE body SET used_ms = ?2 WHERE message = ?1", row, now_ms);
}

/* ---- eviction ---- */

tide_status tide_cache_size(tide_cache *cache, uint64_t *bytes_out, tide_error *err)
{
    int64_t page = 0;
    int64_t pages = 0;
    int64_t unused = 0;
    TIDE_TRY(tide_db_number(&cache->db, "PRAGMA page_size", &page, err));
    TIDE_TRY(tide_db_number(&cache->db, "PRAGMA page_count", &pages, err));
    TIDE_TRY(tide_db_number(&cache->db, "PRAGMA freelist_count", &unused, err));
    *bytes_out = (uint64_t)(pages - unused) * (uint64_t)page;
    return TIDE_OK;
}

/* The next body by its age that may go; *later_ms: it may only then.  TIDE_NOT_FOUND. */
static tide_status victim_find(tide_cache *cache, const struct tide_cache_evict *evict,
                               uint64_t now_ms, int64_t *row_out, uint64_t *later_ms,
                               tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                   "SELECT b.message, m.gmail_id, b.used_ms FROM body b"
                                   " JOIN message m ON m.id = b.message WHERE m.pinned = 0"
                                   " ORDER BY b.used_ms");
    while (tide_rows_next(&stmt, &rc, err)) {
        if (evict->spare != NULL && evict->spare(tide_rows_get_text(&stmt, 1), evict->arg))
            continue;
        const uint64_t used_ms = tide_rows_get_u64(&stmt, 2);
        /* What was opened later than now was opened before the clock was set back. */
        if (used_ms <= now_ms && used_ms + ON_SCREEN_MS > now_ms) {
            *later_ms = *later_ms == 0 ? used_ms + ON_SCREEN_MS : *later_ms;
            continue;
        }
        *row_out = tide_rows_get_i64(&stmt, 0);
        *later_ms = 0;
        return TIDE_OK;
    }
    return rc == TIDE_OK ? TIDE_NOT_FOUND : rc;
}

static tide_status body_drop(tide_cache *cache, int64_t row, tide_error *err)
{
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "DELETE FROM body_raw WHERE message = ?1", row));
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err, "DELETE FROM body WHERE message = ?1",
                          row));
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "UPDATE message SET evicted = 1 WHERE id = ?1", row));
    TIDE_TRY(tide_cache_words_headers(cache, row, err));
    return tide_cache_changed(cache, row, err);
}

static tide_status evict_some(tide_cache *cache, const struct tide_cache_evict *evict,
                              uint64_t now_ms, struct tide_cache_evicted *out, tide_error *err)
{
    for (uint32_t i = 0; i < evict->count_max; i++) {
        uint64_t bytes = 0;
        int64_t row = 0;
        TIDE_TRY(tide_cache_size(cache, &bytes, err));
        if (bytes <= evict->limit)
            return TIDE_OK;
        const tide_status rc = victim_find(cache, evict, now_ms, &row, &out->later_ms, err);
        if (rc != TIDE_OK)
            return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
        TIDE_TRY(body_drop(cache, row, err));
        out->done++;
    }
    out->more = true;
    return TIDE_OK;
}

tide_status tide_cache_evict(tide_cache *cache, const struct tide_cache_evict *evict,
                             uint64_t now_ms, struct tide_cache_evicted *out, tide_error *err)
{
    char shrink[64];
    struct tide_cache_evicted told = {.more = false};
    TIDE_TRY(tide_cache_begin(cache, err));
    tide_status rc = evict_some(cache, evict, now_ms, &told, err);
    (void)snprintf(shrink, sizeof shrink, "PRAGMA incremental_vacuum(%d)", FREE_PAGES);
    if (rc == TIDE_OK && told.done > 0)
        rc = tide_db_exec(&cache->db, shrink, err);
    rc = tide_cache_end(cache, rc, err);
    if (rc == TIDE_OK)
        *out = told;
    return rc;
}
