#include "reader/cache/inside.h"

tide_status tide_cache_label_row(tide_cache *cache, tide_text label, bool make, int64_t *row_out,
                                 tide_error *err)
{
    static const char find[] = "SELECT id FROM label WHERE label = ?1";
    uint64_t row = 0;
    tide_status rc = tide_rows_number(cache->rows, TIDE_CACHE_WHAT, &row, err, find, label);
    if (rc == TIDE_NOT_FOUND && make) {
        TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                              "INSERT INTO label (label, name, type) VALUES (?1, '', 'user')",
                              label));
        rc = tide_rows_number(cache->rows, TIDE_CACHE_WHAT, &row, err, find, label);
    }
    if (rc == TIDE_OK)
        *row_out = (int64_t)row;
    return rc;
}

tide_status tide_cache_labels_put(tide_cache *cache, const struct tide_cache_label *labels,
                                  size_t count, tide_error *err)
{
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "UPDATE label SET name = '' WHERE label <> 'ALL'"));
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                              "INSERT INTO label (label, name, type) VALUES (?1, ?2, ?3)"
                              " ON CONFLICT (label) DO UPDATE SET name = ?2, type = ?3",
                              labels[i].id, labels[i].name, labels[i].type));
    return TIDE_OK;
}

tide_status tide_cache_labels_each(tide_cache *cache,
                                   void (*visit)(const struct tide_cache_label *label, void *arg),
                                   void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                   "SELECT label, name, type FROM label WHERE name <> ''"
                                   " ORDER BY type, name");
    while (tide_rows_next(&stmt, &rc, err)) {
        const struct tide_cache_label label = {.id = tide_rows_get_text(&stmt, 0),
                                               .name = tide_rows_get_text(&stmt, 1),
                                               .type = tide_rows_get_text(&stmt, 2)};
        visit(&label, arg);
    }
    return rc;
}

tide_status tide_cache_folder_get(tide_cache *cache, tide_text label,
                                  struct tide_cache_folder *folder_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_first(
        cache->rows, TIDE_CACHE_WHAT, &stmt, err,
        "SELECT f.floor_ms, f.token, f.over, f.refreshed_ms, f.shown_ms FROM folder f"
        " JOIN label l ON l.id = f.label WHERE l.label = ?1",
        label);
    *folder_out = (struct tide_cache_folder){.floor_ms = INT64_MAX, .shown_ms = INT64_MAX};
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    folder_out->floor_ms = tide_rows_get_i64(&stmt, 0);
    tide_rows_get_copy(&stmt, 1, folder_out->token, sizeof folder_out->token);
    folder_out->over = tide_rows_get_u64(&stmt, 2) != 0;
    folder_out->refreshed_ms = tide_rows_get_u64(&stmt, 3);
    folder_out->shown_ms = tide_rows_get_i64(&stmt, 4);
    folder_out->known = folder_out->floor_ms != INT64_MAX || folder_out->over;
    return TIDE_OK;
}

tide_status tide_cache_folder_put(tide_cache *cache, tide_text label,
                                  const struct tide_cache_folder *folder, tide_error *err)
{
    int64_t row = 0;
    TIDE_TRY(tide_cache_label_row(cache, label, true, &row, err));
    return tide_rows_do(
        cache->rows, TIDE_CACHE_WHAT, err,
        "INSERT INTO folder (label, floor_ms, token, over, refreshed_ms, shown_ms)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?2) ON CONFLICT (label) DO UPDATE SET floor_ms = ?2,"
        " token = ?3, over = ?4, refreshed_ms = ?5, shown_ms = min(shown_ms, ?2)",
        row, folder->floor_ms, folder->token, folder->over ? 1 : 0, folder->refreshed_ms);
}

tide_status tide_cache_folders_reset(tide_cache *cache, tide_error *err)
{
    uint64_t epoch = 0;
    TIDE_TRY(tide_cache_get_u64(cache, "epoch", &epoch, err));
    TIDE_TRY(tide_cache_set_u64(cache, "epoch", epoch + 1, err));
    return tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                        "UPDATE folder SET floor_ms = ?1, token = '', over = 0", INT64_MAX);
}
