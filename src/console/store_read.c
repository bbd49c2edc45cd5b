#include "console/store_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char first_date[] = "0000-00-00";
static const char last_date[] = "9999-99-99";

static double column_double(sqlite3_stmt *row, int at)
{
    return sqlite3_column_type(row, at) == SQLITE_NULL ? NAN : sqlite3_column_double(row, at);
}

static void day_of(sqlite3_stmt *row, struct tide_console_day_row *day)
{
    *day = (struct tide_console_day_row){.final = sqlite3_column_int(row, 1) != 0,
                                         .rows = tide_column_u64(row, 2),
                                         .clicks = column_double(row, 3),
                                         .impressions = column_double(row, 4),
                                         .position = column_double(row, 5),
                                         .row_clicks = column_double(row, 6),
                                         .row_impressions = column_double(row, 7),
                                         .fetched_ms = tide_column_u64(row, 8),
                                         .missing = tide_column_u64(row, 9),
                                         .counted = sqlite3_column_type(row, 9) != SQLITE_NULL};
    (void)snprintf(day->date, sizeof day->date, "%.10s", (const char *)sqlite3_column_text(row, 0));
}

tide_status tide_console_store_days(
    tide_console_store *store, const struct tide_console_set *set, const char *from, const char *to,
    bool (*visit)(const struct tide_console_day_row *day, void *arg), void *arg, tide_error *err)
{
    uint64_t series = 0;
    bool row = false;
    tide_lock_take(store->world, store->lock);
    tide_status rc = tide_console_series(store, set, false, &series, err);
    sqlite3_stmt *list = tide_db_ask(&store->db, TIDE_CONSOLE_DAYS, series,
                                     from == NULL ? first_date : from, to == NULL ? last_date : to);
    if (rc == TIDE_OK)
        rc = tide_db_step(&store->db, list, &row, err);
    while (rc == TIDE_OK && row) {
        struct tide_console_day_row day;
        day_of(list, &day);
        if (!visit(&day, arg))
            break;
        rc = tide_db_step(&store->db, list, &row, err);
    }
    tide_db_end(list);
    tide_lock_drop(store->world, store->lock);
    return rc;
}

struct counted_set {
    struct tide_console_set set;
    uint64_t days, rows;
};

static tide_status set_of(sqlite3_stmt *row, struct counted_set *out, tide_error *err)
{
    uint32_t types = 0;
    *out = (struct counted_set){.days = tide_column_u64(row, 2), .rows = tide_column_u64(row, 3)};
    TIDE_TRY(
        tide_sc_types_parse(tide_text_of((const char *)sqlite3_column_text(row, 0)), &types, err));
    TIDE_TRY(tide_sc_dimensions_parse(tide_text_of((const char *)sqlite3_column_text(row, 1)),
                                      &out->set.dimensions, err));
    while (types >> 1 >> out->set.type != 0)
        out->set.type++;
    return TIDE_OK;
}

tide_status tide_console_store_sets(tide_console_store *store,
                                    void (*visit)(const struct tide_console_set *set, uint64_t days,
                                                  uint64_t rows, void *arg),
                                    void *arg, tide_error *err)
{
    struct counted_set sets[TIDE_CONSOLE_SETS_MAX];
    size_t count = 0;
    bool row = false;
    tide_lock_take(store->world, store->lock);
    sqlite3_stmt *list = tide_db_stmt(&store->db, TIDE_CONSOLE_SERIES_LIST);
    tide_status rc = tide_db_step(&store->db, list, &row, err);
    while (rc == TIDE_OK && row && count < TIDE_CONSOLE_SETS_MAX) {
        rc = set_of(list, &sets[count++], err);
        if (rc == TIDE_OK)
            rc = tide_db_step(&store->db, list, &row, err);
    }
    tide_db_end(list);
    tide_lock_drop(store->world, store->lock);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        visit(&sets[i].set, sets[i].days, sets[i].rows, arg);
    return rc;
}

/* ---- the top keys of a range ---- */

static int by_clicks(const void *a, const void *b)
{
    const struct tide_console_sum *left = a;
    const struct tide_console_sum *right = b;
    if (left->clicks != right->clicks)
        return left->clicks < right->clicks ? 1 : -1;
    if (left->impressions != right->impressions)
        return left->impressions < right->impressions ? 1 : -1;
    return left->key < right->key ? -1 : left->key > right->key;
}

/* Adds up all keys of the range. */
static tide_status sum_up(tide_console_store *store, uint64_t series, tide_sc_dimension by,
                          const char *from, const char *to, tide_console_sums *sums,
                          tide_error *err)
{
    bool row = false;
    sqlite3_stmt *list =
        tide_db_ask(&store->db, TIDE_CONSOLE_SUMS, series, from == NULL ? first_date : from,
                    to == NULL ? last_date : to, tide_text_of(tide_sc_dimension_name(by)));
    tide_status rc = tide_db_step(&store->db, list, &row, err);
    while (rc == TIDE_OK && row) {
        const tide_text body = {sqlite3_column_blob(list, 0),
                                (size_t)sqlite3_column_bytes(list, 0)};
        rc = tide_console_sums_unpack(sums, body);
        if (rc != TIDE_OK)
            (void)tide_error_set(err, rc, "the sums of a day cannot be read");
        else
            rc = tide_db_step(&store->db, list, &row, err);
    }
    tide_db_end(list);
    return rc;
}

static tide_status give(tide_console_store *store, unsigned kind,
                        const struct tide_console_sum *sum,
                        bool (*visit)(const struct tide_console_top *top, void *arg), void *arg,
                        bool *more_out, tide_error *err)
{
    bool row = false;
    tide_auto_stmt *name = tide_db_ask(&store->db, (size_t)TIDE_CONSOLE_NAME_OF + kind, sum->key);
    TIDE_TRY(tide_db_step(&store->db, name, &row, err));
    const struct tide_console_top top = {
        .key = row ? (tide_text){(const char *)sqlite3_column_text(name, 0),
                                 (size_t)sqlite3_column_bytes(name, 0)}
                   : TIDE_TEXT("?"),
        .clicks = sum->clicks,
        .impressions = sum->impressions,
        .ctr = sum->impressions > 0 ? sum->clicks / sum->impressions : 0,
        .position =
            sum->impressions > 0 && sum->weight > 0 ? sum->weight / sum->impressions : (double)NAN,
    };
    *more_out = visit(&top, arg);
    return TIDE_OK;
}

tide_status tide_console_store_top(tide_console_store *store, const struct tide_console_set *set,
                                   tide_sc_dimension by, const char *from, const char *to,
                                   uint32_t limit,
                                   bool (*visit)(const struct tide_console_top *top, void *arg),
                                   void *arg, tide_error *err)
{
    tide_console_sums sums = {.mem = store->mem};
    uint64_t series = 0;
    if (by == TIDE_SC_DATE || (set->dimensions >> by & 1u) == 0)
        return tide_error_set(err, TIDE_INVALID, "these rows do not have the dimension %s",
                              tide_sc_dimension_name(by));
    tide_lock_take(store->world, store->lock);
    tide_status rc = tide_console_series(store, set, false, &series, err);
    if (rc == TIDE_OK)
        rc = sum_up(store, series, by, from, to, &sums, err);
    size_t count = 0;
    for (size_t i = 0; rc == TIDE_OK && i < sums.capacity; i++)
        if (sums.cells[i].key != 0)
            sums.cells[count++] = sums.cells[i];
    if (rc == TIDE_OK && count > 0)
        qsort(sums.cells, count, sizeof *sums.cells, by_clicks);
    bool more = true;
    for (size_t i = 0; rc == TIDE_OK && more && i < count && i < limit; i++)
        rc = give(store, by - TIDE_SC_QUERY, &sums.cells[i], visit, arg, &more, err);
    tide_lock_drop(store->world, store->lock);
    tide_console_sums_done(&sums);
    return rc;
}

tide_status tide_console_store_check(tide_console_store *store, tide_buf *problems, tide_error *err)
{
    static const struct {
        const char *sql;
        const char *says;
    } rules[] = {
        {"SELECT count(*) FROM day WHERE rows <> (SELECT count(*) FROM fact"
         " WHERE fact.id >= day.id * 65536 AND fact.id < (day.id + 1) * 65536)",
         "days with missing rows"},
        {"SELECT count(*) FROM fact WHERE id / 65536 NOT IN (SELECT id FROM day)",
         "rows without a day"},
        {"SELECT count(*) FROM fact LEFT JOIN query ON query.id = fact.query"
         " WHERE fact.query IS NOT NULL AND query.id IS NULL",
         "rows whose query has no text"},
        {"SELECT count(*) FROM fact LEFT JOIN page ON page.id = fact.page"
         " WHERE fact.page IS NOT NULL AND page.id IS NULL",
         "rows whose page has no text"},
    };
    tide_lock_take(store->world, store->lock);
    tide_status rc = tide_db_quick_check(&store->db, problems, err);
    for (size_t i = 0; rc == TIDE_OK && i < sizeof rules / sizeof rules[0]; i++) {
        int64_t count = 0;
        rc = tide_db_number(&store->db, rules[i].sql, &count, err);
        if (rc == TIDE_OK && count > 0)
            rc = tide_buf_print(problems, "%lld %s\n", (long long)count, rules[i].says);
    }
    tide_lock_drop(store->world, store->lock);
    return rc;
}

tide_status tide_console_store_rows(tide_world *world, const char *path, bool check, tide_mem *mem,
                                    uint64_t *rows_out, tide_error *err)
{
    const char *sql = check ? "SELECT coalesce(sum(rows), 0), (SELECT count(*) FROM fact) FROM day"
                            : "SELECT coalesce(sum(rows), 0), coalesce(sum(rows), 0) FROM day";
    const struct tide_db_options options = {
        .path = path, .vfs = tide_world_vfs(world), .read_only = true, .must_exist = true};
    tide_db db = {0};
    sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_db_open(&options, mem, &db, err));
    int code = sqlite3_prepare_v2(db.handle, sql, -1, &stmt, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(stmt);
    tide_status rc = TIDE_OK;
    if (code != SQLITE_ROW) {
        rc = tide_db_failed(&db, code, "count rows", err);
    } else {
        *rows_out = tide_column_u64(stmt, 0);
        if (tide_column_u64(stmt, 1) != *rows_out)
            rc = tide_error_set(err, TIDE_CORRUPT, "%.250s lacks rows of some days", path);
    }
    (void)sqlite3_finalize(stmt);
    tide_db_close(&db);
    return rc;
}
