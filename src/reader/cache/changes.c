#include "reader/cache/inside.h"

/* The log has each message once, at its last change. */
tide_status tide_cache_changed(tide_cache *cache, int64_t row, tide_error *err)
{
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "DELETE FROM change WHERE message = ?1", row));
    return tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                        "INSERT INTO change (message) VALUES (?1)", row);
}

/* sqlite_sequence keeps the last version also when its row is deleted. */
tide_status tide_cache_version(tide_cache *cache, uint64_t *version_out, tide_error *err)
{
    const tide_status rc =
        tide_rows_number(cache->rows, TIDE_CACHE_WHAT, version_out, err,
                         "SELECT seq FROM sqlite_sequence WHERE name = 'change'");
    if (rc == TIDE_NOT_FOUND)
        *version_out = 0;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_cache_changes(tide_cache *cache, uint64_t since,
                               void (*visit)(tide_text id, void *arg), void *arg, bool *whole_out,
                               tide_error *err)
{
    uint64_t newest = 0;
    uint64_t count = 0;
    TIDE_TRY(tide_cache_version(cache, &newest, err));
    TIDE_TRY(tide_rows_number(cache->rows, TIDE_CACHE_WHAT, &count, err,
                              "SELECT count(*) FROM change WHERE version > ?1", since));
    *whole_out = since <= newest && count <= TIDE_CACHE_CHANGES_MAX;
    if (!*whole_out)
        return TIDE_OK; /* of another file, or so many that a list is read anew */
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                   "SELECT m.gmail_id FROM change c JOIN message m"
                                   " ON m.id = c.message WHERE c.version > ?1 ORDER BY c.version",
                                   since);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

/* ---- searches ---- */

tide_status tide_cache_found_add(tide_cache *cache, tide_text query, uint64_t place, tide_text id,
                                 uint64_t now_ms, tide_error *err)
{
    static const uint64_t day_ms = 24 * 3600 * (uint64_t)1000;
    if (place == 0)
        TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                              "DELETE FROM found WHERE query = ?1 OR at_ms < ?2", query,
                              now_ms > day_ms ? now_ms - day_ms : 0));
    return tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                        "INSERT INTO found (query, place, gmail_id, at_ms) VALUES (?1, ?2, ?3, ?4)"
                        " ON CONFLICT (query, place) DO UPDATE SET gmail_id = ?3, at_ms = ?4",
                        query, place, id, now_ms);
}

tide_status tide_cache_found(tide_cache *cache, tide_text query,
                             void (*visit)(tide_text id, void *arg), void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc =
        tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                      "SELECT gmail_id FROM found WHERE query = ?1 ORDER BY place", query);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

tide_status tide_cache_told(tide_cache *cache, tide_text id, tide_error *err)
{
    int64_t row = 0;
    const tide_status rc = tide_cache_row_of(cache, id, &row, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    return tide_cache_changed(cache, row, err);
}
