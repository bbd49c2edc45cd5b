#include "reader/cache/inside.h"

tide_status tide_cache_refused_add(tide_cache *cache, tide_text id, tide_text why, uint64_t now_ms,
                                   tide_error *err)
{
    int64_t row = 0;
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "INSERT INTO refused (gmail_id, why, at_ms) VALUES (?1, ?2, ?3)"
                          " ON CONFLICT (gmail_id) DO UPDATE SET why = ?2, at_ms = ?3",
                          id, why, now_ms));
    const tide_status rc = tide_cache_row_of(cache, id, &row, err);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK; /* no list shows it */
    return rc == TIDE_OK ? tide_cache_changed(cache, row, err) : rc;
}

tide_status tide_cache_refused_why(tide_cache *cache, tide_text id, char *why_out, size_t why_bytes,
                                   tide_error *err)
{
    return tide_rows_copy(cache->rows, TIDE_CACHE_WHAT, why_out, why_bytes, err,
                          "SELECT why FROM refused WHERE gmail_id = ?1", id);
}

tide_status tide_cache_refused_drop(tide_cache *cache, tide_text id, tide_error *err)
{
    return tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                        "DELETE FROM refused WHERE gmail_id = ?1", id);
}

tide_status tide_cache_refused(tide_cache *cache, uint64_t before_ms, uint64_t now_ms,
                               uint32_t limit, void (*visit)(tide_text id, void *arg), void *arg,
                               tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                   "SELECT gmail_id FROM refused WHERE at_ms < ?1 OR at_ms > ?2"
                                   " ORDER BY at_ms, gmail_id LIMIT ?3",
                                   before_ms, now_ms, limit);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

tide_status tide_cache_refused_count(tide_cache *cache, uint64_t *count_out, tide_error *err)
{
    return tide_rows_number(cache->rows, TIDE_CACHE_WHAT, count_out, err,
                            "SELECT count(*) FROM refused");
}
