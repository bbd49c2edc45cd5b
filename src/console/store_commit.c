/* store_commit.c - pages become a day, in one transaction (B2, V1). */
#include "console/store_inside.h"

#include "base/check.h"

#include <math.h>
#include <string.h>

/* ---- numbers for texts ---- */

static tide_status name_number(tide_console_store *store, unsigned kind, tide_text text,
                               uint32_t *number_out, tide_error *err)
{
    bool row = false;
    *number_out = tide_names_get(&store->names[kind], text);
    if (*number_out != 0)
        return TIDE_OK;
    sqlite3_stmt *find = tide_db_stmt(&store->db, (size_t)TIDE_CONSOLE_NAME_FIND + kind);
    tide_bind_text(find, 1, text);
    tide_status rc = tide_db_step(&store->db, find, &row, err);
    if (rc != TIDE_OK)
        return rc;
    *number_out = row ? tide_column_u32(find, 0) : 0;
    tide_db_end(find);
    if (!row) {
        sqlite3_stmt *add = tide_db_stmt(&store->db, (size_t)TIDE_CONSOLE_NAME_ADD + kind);
        tide_bind_text(add, 1, text);
        rc = tide_db_run(&store->db, add, err);
        *number_out = (uint32_t)sqlite3_last_insert_rowid(store->db.handle);
    }
    if (rc == TIDE_OK)
        tide_names_put(&store->names[kind], text, *number_out);
    return rc;
}

/* The rows of a page with numbers for their texts, added to `facts`. */
static tide_status facts_of(tide_console_store *store, const struct tide_console_set *set,
                            const tide_console_page *page, tide_buf *facts, tide_error *err)
{
    tide_status rc = tide_buf_room(facts, page->count * sizeof(struct tide_console_fact));
    for (size_t i = 0; rc == TIDE_OK && i < page->count; i++) {
        const struct tide_console_line *line = &page->lines[i];
        struct tide_console_fact fact = {
            .clicks = line->clicks, .impressions = line->impressions, .position = line->position};
        for (unsigned k = 0; rc == TIDE_OK && k < TIDE_CONSOLE_NAMED; k++)
            if ((set->dimensions >> (k + TIDE_SC_QUERY) & 1u) != 0)
                rc = name_number(store, k,
                                 (tide_text){page->texts.data + line->at[k], line->bytes[k]},
                                 &fact.keys[k], err);
        if (rc == TIDE_OK)
            rc = tide_buf_add(facts, &fact, sizeof fact);
    }
    return rc == TIDE_FULL || rc == TIDE_NO_MEMORY
               ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for the rows of a day")
               : rc;
}

/* ---- a transaction ---- */

/* What was numbered in a transaction that is undone has no number. */
static tide_status end(tide_console_store *store, tide_status rc, tide_error *err)
{
    if (rc == TIDE_OK)
        rc = tide_db_exec(&store->db, "COMMIT", err);
    if (rc != TIDE_OK) {
        (void)tide_db_exec(&store->db, "ROLLBACK", NULL);
        for (int i = 0; i < TIDE_CONSOLE_NAMED; i++)
            tide_names_clear(&store->names[i]);
    }
    return rc;
}

tide_status tide_console_store_stage(tide_console_store *store, const struct tide_console_set *set,
                                     const char *date, uint32_t start_row,
                                     const tide_console_page *page, tide_error *err)
{
    tide_buf facts;
    uint64_t series = 0;
    tide_buf_init(&facts, store->mem, TIDE_SC_ROWS_MAX * sizeof(struct tide_console_fact));
    tide_lock_take(store->world, store->lock);
    tide_status rc = tide_db_exec(&store->db, "BEGIN IMMEDIATE", err);
    if (rc == TIDE_OK) {
        rc = tide_console_series(store, set, true, &series, err);
        if (rc == TIDE_OK)
            rc = facts_of(store, set, page, &facts, err);
        if (rc == TIDE_OK) {
            sqlite3_stmt *stage = tide_db_stmt(&store->db, TIDE_CONSOLE_STAGE);
            tide_bind_u64(stage, 1, series);
            tide_bind_text(stage, 2, tide_text_of(date));
            tide_bind_u64(stage, 3, start_row);
            tide_bind_u64(stage, 4, page->count);
            (void)sqlite3_bind_blob64(stage, 5, facts.bytes == 0 ? "" : facts.data, facts.bytes,
                                      SQLITE_STATIC);
            rc = tide_db_run(&store->db, stage, err);
        }
        rc = end(store, rc, err);
    }
    tide_lock_drop(store->world, store->lock);
    tide_buf_done(&facts);
    return rc;
}

/* ---- a day ---- */

struct day {
    tide_console_store *store;
    uint64_t series;
    const struct tide_console_day *day;
    tide_buf facts; /* of all pages, in order */
    uint64_t id;
    uint64_t rows;
    double clicks, impressions;
};

static tide_status staged_pages(struct day *day, uint32_t start_row, tide_error *err)
{
    sqlite3_stmt *list = tide_db_stmt(&day->store->db, TIDE_CONSOLE_STAGED);
    uint64_t next = 0;
    bool row = false;
    tide_bind_u64(list, 1, day->series);
    tide_bind_text(list, 2, tide_text_of(day->day->date));
    tide_status rc = tide_db_step(&day->store->db, list, &row, err);
    while (rc == TIDE_OK && row && tide_column_u64(list, 0) < start_row) {
        const uint64_t rows = tide_column_u64(list, 1);
        const size_t bytes = (size_t)sqlite3_column_bytes(list, 2);
        if (tide_column_u64(list, 0) != next || bytes != rows * sizeof(struct tide_console_fact))
            break;
        next += rows;
        rc = tide_buf_add(&day->facts, sqlite3_column_blob(list, 2), bytes);
        if (rc == TIDE_OK)
            rc = tide_db_step(&day->store->db, list, &row, err);
    }
    tide_db_end(list);
    if (rc == TIDE_OK && next != start_row)
        return tide_error_set(err, TIDE_CORRUPT, "%s: rows %llu to %u were never staged",
                              day->day->date, (unsigned long long)next, start_row);
    return rc;
}

static tide_status day_row(struct day *day, tide_error *err)
{
    sqlite3_stmt *put = tide_db_stmt(&day->store->db, TIDE_CONSOLE_DAY_PUT);
    const struct tide_console_day *known = day->day;
    bool row = false;
    tide_bind_u64(put, 1, day->series);
    tide_bind_text(put, 2, tide_text_of(known->date));
    tide_bind_u64(put, 3, known->final ? 1 : 0);
    tide_bind_u64(put, 4, day->rows);
    (void)sqlite3_bind_null(put, 5);
    (void)sqlite3_bind_null(put, 6);
    (void)sqlite3_bind_null(put, 7);
    if (known->totals) {
        (void)sqlite3_bind_double(put, 5, known->clicks);
        (void)sqlite3_bind_double(put, 6, known->impressions);
        if (!isnan(known->position))
            (void)sqlite3_bind_double(put, 7, known->position);
    }
    (void)sqlite3_bind_double(put, 8, day->clicks);
    (void)sqlite3_bind_double(put, 9, day->impressions);
    tide_bind_u64(put, 10, known->fetched_ms);
    tide_status rc = tide_db_run(&day->store->db, put, err);
    sqlite3_stmt *find = tide_db_stmt(&day->store->db, TIDE_CONSOLE_DAY_FIND);
    tide_bind_u64(find, 1, day->series);
    tide_bind_text(find, 2, tide_text_of(known->date));
    if (rc == TIDE_OK)
        rc = tide_db_step(&day->store->db, find, &row, err);
    day->id = rc == TIDE_OK && row ? tide_column_u64(find, 0) : 0;
    tide_db_end(find);
    return rc;
}

/* Keys that a day has had: the borders of pages move while it is read, and a row may come
 * twice. */
struct seen {
    uint32_t *cells; /* index + 1 of a fact; open addressing */
    size_t capacity;
};

static bool seen_before(struct seen *seen, const struct tide_console_fact *facts, size_t index)
{
    const struct tide_console_fact *fact = &facts[index];
    uint64_t hash = 0;
    for (unsigned k = 0; k < TIDE_CONSOLE_NAMED; k++)
        hash = (hash ^ fact->keys[k]) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 20) & (seen->capacity - 1);
    for (; seen->cells[at] != 0; at = (at + 1) & (seen->capacity - 1))
        if (memcmp(facts[seen->cells[at] - 1].keys, fact->keys, sizeof fact->keys) == 0)
            return true;
    seen->cells[at] = (uint32_t)index + 1;
    return false;
}

/* Leaves each key once, in place. */
static tide_status once_each(struct day *day, tide_error *err)
{
    struct tide_console_fact *facts = (struct tide_console_fact *)(void *)day->facts.data;
    const size_t count = day->facts.bytes / sizeof *facts;
    struct seen seen = {.capacity = 64};
    while (seen.capacity < count * 2)
        seen.capacity *= 2;
    seen.cells = tide_mem_new(day->store->mem, seen.capacity * sizeof *seen.cells);
    if (seen.cells == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the rows of a day");
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        facts[kept] = facts[i];
        if (seen_before(&seen, facts, kept))
            continue;
        day->clicks += facts[kept].clicks;
        day->impressions += facts[kept].impressions;
        kept++;
    }
    day->rows = kept;
    tide_mem_free(day->store->mem, seen.cells, seen.capacity * sizeof *seen.cells);
    return kept < TIDE_CONSOLE_DAY_FACTS
               ? TIDE_OK
               : tide_error_set(err, TIDE_SERVER, "%s has more rows than a day can have",
                                day->day->date);
}

static tide_status day_facts(struct day *day, tide_error *err)
{
    const struct tide_console_fact *facts =
        (const struct tide_console_fact *)(const void *)day->facts.data;
    tide_db *db = &day->store->db;
    const uint64_t first = day->id * TIDE_CONSOLE_DAY_FACTS;
    sqlite3_stmt *remove = tide_db_stmt(db, TIDE_CONSOLE_FACTS_REMOVE);
    tide_bind_u64(remove, 1, first);
    tide_bind_u64(remove, 2, first + TIDE_CONSOLE_DAY_FACTS);
    tide_status rc = tide_db_run(db, remove, err);
    sqlite3_stmt *add = tide_db_stmt(db, TIDE_CONSOLE_FACT_ADD);
    for (size_t i = 0; rc == TIDE_OK && i < day->rows; i++) {
        tide_bind_u64(add, 1, first + i);
        for (unsigned k = 0; k < TIDE_CONSOLE_NAMED; k++)
            tide_bind_u64_or_null(add, (int)k + 2, facts[i].keys[k]);
        (void)sqlite3_bind_double(add, 7, facts[i].clicks);
        (void)sqlite3_bind_double(add, 8, facts[i].impressions);
        if (isnan(facts[i].position))
            (void)sqlite3_bind_null(add, 9);
        else
            (void)sqlite3_bind_double(add, 9, facts[i].position);
        rc = tide_db_run(db, add, err);
    }
    return rc;
}

static tide_status day_sums(struct day *day, const struct tide_console_set *set, tide_error *err)
{
    const struct tide_console_fact *facts =
        (const struct tide_console_fact *)(const void *)day->facts.data;
    tide_console_sums sums = {.mem = day->store->mem};
    tide_buf body;
    tide_status rc = TIDE_OK;
    tide_buf_init(&body, day->store->mem, TIDE_CONSOLE_DAY_FACTS * TIDE_CONSOLE_SUM_BYTES);
    for (unsigned k = 0; rc == TIDE_OK && k < TIDE_CONSOLE_NAMED; k++) {
        if ((set->dimensions >> (k + TIDE_SC_QUERY) & 1u) == 0)
            continue;
        tide_console_sums_clear(&sums);
        tide_buf_clear(&body);
        for (size_t i = 0; rc == TIDE_OK && i < day->rows; i++) {
            const double position = isnan(facts[i].position) ? 0 : facts[i].position;
            const struct tide_console_sum sum = {.key = facts[i].keys[k],
                                                 .clicks = facts[i].clicks,
                                                 .impressions = facts[i].impressions,
                                                 .weight = position * facts[i].impressions};
            rc = tide_console_sums_add(&sums, &sum);
        }
        if (rc == TIDE_OK)
            rc = tide_console_sums_pack(&sums, &body);
        if (rc != TIDE_OK) {
            (void)tide_error_set(err, rc, "no memory for the sums of a day");
            break;
        }
        sqlite3_stmt *put = tide_db_stmt(&day->store->db, TIDE_CONSOLE_SUM_PUT);
        tide_bind_u64(put, 1, day->id);
        tide_bind_text(put, 2, tide_text_of(tide_console_named(k)));
        (void)sqlite3_bind_blob64(put, 3, body.bytes == 0 ? "" : body.data, body.bytes,
                                  SQLITE_STATIC);
        rc = tide_db_run(&day->store->db, put, err);
    }
    tide_console_sums_done(&sums);
    tide_buf_done(&body);
    return rc;
}

static tide_status unstage(tide_console_store *store, uint64_t series, const char *date,
                           tide_error *err)
{
    sqlite3_stmt *stmt = tide_db_stmt(&store->db, TIDE_CONSOLE_UNSTAGE);
    tide_bind_u64(stmt, 1, series);
    tide_bind_text(stmt, 2, tide_text_of(date));
    return tide_db_run(&store->db, stmt, err);
}

static tide_status commit_day(struct day *day, const struct tide_console_set *set,
                              uint32_t start_row, const tide_console_page *page, tide_error *err)
{
    tide_status rc = tide_console_series(day->store, set, true, &day->series, err);
    if (rc == TIDE_OK)
        rc = staged_pages(day, start_row, err);
    if (rc == TIDE_OK)
        rc = facts_of(day->store, set, page, &day->facts, err);
    if (rc == TIDE_OK)
        rc = once_each(day, err);
    if (rc == TIDE_OK)
        rc = day_row(day, err);
    if (rc == TIDE_OK)
        rc = day_facts(day, err);
    if (rc == TIDE_OK)
        rc = day_sums(day, set, err);
    return rc == TIDE_OK ? unstage(day->store, day->series, day->day->date, err) : rc;
}

tide_status tide_console_store_commit(tide_console_store *store, const struct tide_console_set *set,
                                      const struct tide_console_day *day, uint32_t start_row,
                                      const tide_console_page *page, uint64_t *rows_out,
                                      tide_error *err)
{
    struct day whole = {.store = store, .day = day};
    tide_buf_init(&whole.facts, store->mem,
                  (size_t)TIDE_CONSOLE_DAY_FACTS * sizeof(struct tide_console_fact));
    tide_lock_take(store->world, store->lock);
    tide_status rc = tide_db_exec(&store->db, "BEGIN IMMEDIATE", err);
    if (rc == TIDE_OK)
        rc = end(store, commit_day(&whole, set, start_row, page, err), err);
    tide_lock_drop(store->world, store->lock);
    tide_buf_done(&whole.facts);
    if (rc == TIDE_OK)
        *rows_out = whole.rows;
    return rc;
}

tide_status tide_console_store_forget(tide_console_store *store, const struct tide_console_set *set,
                                      const char *date, tide_error *err)
{
    uint64_t series = 0;
    tide_lock_take(store->world, store->lock);
    tide_status rc = tide_console_series(store, set, false, &series, err);
    if (rc == TIDE_OK && series != 0)
        rc = unstage(store, series, date, err);
    tide_lock_drop(store->world, store->lock);
    return rc;
}
