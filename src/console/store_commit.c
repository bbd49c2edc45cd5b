/* store_commit.c - commits the pages of a day in one transaction (B2, CST1). */
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
    sqlite3_stmt *find = tide_db_ask(&store->db, (size_t)TIDE_CONSOLE_NAME_FIND + kind, text);
    TIDE_TRY(tide_db_step(&store->db, find, &row, err));
    *number_out = row ? tide_column_u32(find, 0) : 0;
    tide_db_end(find);
    tide_status rc = TIDE_OK;
    if (!row) {
        rc = tide_db_do(&store->db, err, (size_t)TIDE_CONSOLE_NAME_ADD + kind, text);
        *number_out = (uint32_t)sqlite3_last_insert_rowid(store->db.handle);
    }
    if (rc == TIDE_OK)
        tide_names_put(&store->names[kind], text, *number_out);
    return rc;
}

/* Adds the rows of a page, with numbers for their texts, to `facts`. */
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

/* Numbers given to texts in a transaction that is rolled back are void. */
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

static tide_status stage(tide_console_store *store, uint64_t series,
                         const struct tide_console_part *part, const tide_buf *facts,
                         tide_error *err)
{
    return tide_db_do(&store->db, err, TIDE_CONSOLE_STAGE, series, part->date, part->asked,
                      part->reading, part->start_row,
                      facts->bytes / sizeof(struct tide_console_fact),
                      tide_value_bytes(facts->data, facts->bytes));
}

tide_status tide_console_store_stage(tide_console_store *store, const struct tide_console_set *set,
                                     const struct tide_console_part *part,
                                     const tide_console_page *page, tide_error *err)
{
    uint64_t series = 0;
    tide_auto_buf facts =
        tide_buf_in(store->mem, TIDE_SC_ROWS_MAX * sizeof(struct tide_console_fact));
    tide_lock_take(store->world, store->lock);
    tide_status rc = tide_db_exec(&store->db, "BEGIN IMMEDIATE", err);
    if (rc == TIDE_OK) {
        rc = tide_console_series(store, set, true, &series, err);
        if (rc == TIDE_OK)
            rc = facts_of(store, set, page, &facts, err);
        if (rc == TIDE_OK)
            rc = stage(store, series, part, &facts, err);
        rc = end(store, rc, err);
    }
    tide_lock_drop(store->world, store->lock);
    return rc;
}

static tide_status unstage(tide_console_store *store, uint64_t series, const char *date,
                           tide_error *err)
{
    return tide_db_do(&store->db, err, TIDE_CONSOLE_UNSTAGE, series, date);
}

static tide_status unstage_readings(tide_console_store *store, uint64_t series,
                                    const struct tide_console_part *part, uint32_t reading_first,
                                    tide_error *err)
{
    return tide_db_do(&store->db, err, TIDE_CONSOLE_UNSTAGE_READINGS, series, part->date,
                      part->asked, reading_first);
}

/* ---- a day ---- */

struct day {
    tide_console_store *store;
    uint64_t series;
    const struct tide_console_part *part;
    const struct tide_console_day *day;
    struct tide_console_gathered all;
    uint64_t id;
    uint64_t rows;
    double clicks, impressions;
};

static const struct tide_console_fact *facts_in(const struct day *day)
{
    return (const struct tide_console_fact *)(const void *)day->all.facts.data;
}

static tide_status add_up(struct day *day, tide_error *err)
{
    const struct tide_console_fact *facts = facts_in(day);
    day->rows = day->all.facts.bytes / sizeof *facts;
    for (size_t i = 0; i < day->rows; i++) {
        day->clicks += facts[i].clicks;
        day->impressions += facts[i].impressions;
    }
    return day->rows < TIDE_CONSOLE_DAY_FACTS
               ? TIDE_OK
               : tide_error_set(err, TIDE_SERVER, "%s has more rows than a day can have",
                                day->part->date);
}

static tide_status day_row(struct day *day, tide_error *err)
{
    sqlite3_stmt *put = tide_db_stmt(&day->store->db, TIDE_CONSOLE_DAY_PUT);
    const struct tide_console_day *known = day->day;
    bool row = false;
    tide_bind_u64(put, 1, day->series);
    tide_bind_text(put, 2, tide_text_of(day->part->date));
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
    tide_bind_u64(put, 11, day->part->asked);
    tide_bind_u64(put, 12, day->all.missing);
    tide_status rc = tide_db_run(&day->store->db, put, err);
    sqlite3_stmt *find =
        tide_db_ask(&day->store->db, TIDE_CONSOLE_DAY_FIND, day->series, day->part->date);
    if (rc == TIDE_OK)
        rc = tide_db_step(&day->store->db, find, &row, err);
    day->id = rc == TIDE_OK && row ? tide_column_u64(find, 0) : 0;
    tide_db_end(find);
    return rc;
}

static tide_status day_facts(struct day *day, tide_error *err)
{
    const struct tide_console_fact *facts = facts_in(day);
    tide_db *db = &day->store->db;
    const uint64_t first = day->id * TIDE_CONSOLE_DAY_FACTS;
    tide_status rc =
        tide_db_do(db, err, TIDE_CONSOLE_FACTS_REMOVE, first, first + TIDE_CONSOLE_DAY_FACTS);
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
    const struct tide_console_fact *facts = facts_in(day);
    tide_console_sums sums = {.mem = day->store->mem};
    tide_status rc = TIDE_OK;
    tide_auto_buf body =
        tide_buf_in(day->store->mem, TIDE_CONSOLE_DAY_FACTS * TIDE_CONSOLE_SUM_BYTES);
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
        rc = tide_db_do(&day->store->db, err, TIDE_CONSOLE_SUM_PUT, day->id,
                        tide_text_of(tide_console_named(k)),
                        tide_value_bytes(body.data, body.bytes));
    }
    tide_console_sums_done(&sums);
    return rc;
}

/* The stored state of this day. */
struct before {
    bool same; /* committed for this same plan: its job runs again */
    bool final;
    bool counted;
    uint64_t rows, missing;
};

static tide_status look_before(struct day *day, struct before *before_out, tide_error *err)
{
    bool row = false;
    sqlite3_stmt *find =
        tide_db_ask(&day->store->db, TIDE_CONSOLE_DAY_FIND, day->series, day->part->date);
    const tide_status rc = tide_db_step(&day->store->db, find, &row, err);
    *before_out = (struct before){.same = false};
    if (rc == TIDE_OK && row)
        *before_out = (struct before){.same = tide_column_u64(find, 1) == day->part->asked,
                                      .rows = tide_column_u64(find, 2),
                                      .final = sqlite3_column_int(find, 3) != 0,
                                      .counted = sqlite3_column_type(find, 4) != SQLITE_NULL,
                                      .missing = tide_column_u64(find, 4)};
    tide_db_end(find);
    return rc;
}

/* CST6 */
static bool is_better(const struct before *before, const struct day *day)
{
    if (!before->final)
        return false;
    return !day->day->final || (before->rows > 0 && day->rows == 0) ||
           (before->counted && before->missing < day->all.missing);
}

/* Not proven complete: keeps the rows for the next reading. */
static tide_status read_again(struct day *day, const tide_buf *facts, tide_error *err)
{
    tide_console_store *store = day->store;
    if (day->all.gap)
        return unstage_readings(store, day->series, day->part, day->part->reading + 1, err);
    TIDE_TRY(stage(store, day->series, day->part, facts, err));
    return unstage_readings(store, day->series, day->part, day->all.reading_first, err);
}

static tide_status write_day(struct day *day, const struct tide_console_set *set,
                             const struct before *before, tide_error *err)
{
    tide_status rc = add_up(day, err);
    if (rc == TIDE_OK && is_better(before, day)) {
        day->rows = before->rows;
        day->all.missing = before->missing;
    } else if (rc == TIDE_OK) {
        rc = day_row(day, err);
        if (rc == TIDE_OK)
            rc = day_facts(day, err);
        if (rc == TIDE_OK)
            rc = day_sums(day, set, err);
    }
    return rc == TIDE_OK ? unstage(day->store, day->series, day->part->date, err) : rc;
}

/* Takes the page that ends a reading, with the staged pages. */
static tide_status end_reading(struct day *day, const struct tide_console_set *set,
                               const struct before *before, const tide_console_page *page,
                               bool *again_out, tide_error *err)
{
    tide_auto_buf facts =
        tide_buf_in(day->store->mem, TIDE_SC_ROWS_MAX * sizeof(struct tide_console_fact));
    tide_status rc = facts_of(day->store, set, page, &facts, err);
    if (rc == TIDE_OK)
        rc = tide_console_gather(day->store, day->series, day->part, &facts, &day->all, err);
    if (rc == TIDE_OK && day->all.gap && day->part->last)
        rc = tide_error_set(err, TIDE_CORRUPT, "%s: not all rows before %u were staged",
                            day->part->date, day->part->start_row);
    *again_out = (day->all.gap || !day->all.proven) && !day->part->last;
    if (rc == TIDE_OK)
        rc = *again_out ? read_again(day, &facts, err) : write_day(day, set, before, err);
    return rc;
}

static tide_status commit_day(struct day *day, const struct tide_console_set *set,
                              const tide_console_page *page, bool *again_out, tide_error *err)
{
    struct before before = {.same = false};
    tide_status rc = tide_console_series(day->store, set, true, &day->series, err);
    if (rc == TIDE_OK)
        rc = look_before(day, &before, err);
    if (rc == TIDE_OK && !before.same)
        return end_reading(day, set, &before, page, again_out, err);
    day->rows = before.rows;
    day->all.missing = before.missing;
    return rc;
}

tide_status tide_console_store_commit(tide_console_store *store, const struct tide_console_set *set,
                                      const struct tide_console_part *part,
                                      const struct tide_console_day *day,
                                      const tide_console_page *page,
                                      struct tide_console_committed *committed_out, tide_error *err)
{
    TIDE_ASSERT(part->asked != 0 && part->from <= part->start_row);
    TIDE_ASSERT(!part->last || part->from == 0);
    struct day whole = {.store = store, .part = part, .day = day};
    bool again = false;
    tide_console_gathered_init(&whole.all, store->mem);
    tide_lock_take(store->world, store->lock);
    tide_status rc = tide_db_exec(&store->db, "BEGIN IMMEDIATE", err);
    if (rc == TIDE_OK)
        rc = end(store, commit_day(&whole, set, page, &again, err), err);
    tide_lock_drop(store->world, store->lock);
    if (rc == TIDE_OK)
        *committed_out = (struct tide_console_committed){.again = again,
                                                         .gap = whole.all.gap,
                                                         .rows = again ? 0 : whole.rows,
                                                         .counted = whole.all.counted,
                                                         .missing = whole.all.missing};
    tide_console_gathered_done(&whole.all);
    return rc;
}
