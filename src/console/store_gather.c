/* store_gather.c - combines the readings of a day into its rows (B2, CST5).
 *
 * The server sorts by clicks and returns rows with equal clicks in any order, a different one with
 * each request.  So a row at the end of one page may also be at the start of the next, and then
 * another row was on neither.  That can be counted: a reading from the first row to the last
 * returns as many rows as the day has, each key that came twice stands for one that never came, and
 * as many keys as rows prove that none is missing. */
#include "console/store_inside.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

/* Keys seen so far: open addressing. */
struct seen {
    uint32_t *cells; /* index + 1 of a fact */
    size_t capacity;
};

static bool seen_before(struct seen *seen, const struct tide_console_fact *facts,
                        const struct tide_console_fact *fact, size_t index)
{
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

struct gather {
    tide_console_store *store;
    uint64_t series;
    const struct tide_console_part *part;
    const tide_buf *page; /* the facts that end this reading */
    struct tide_console_gathered *to;
    struct seen seen;
    uint64_t rows_all; /* of all readings, repeated ones too */
    uint32_t whole;    /* the last reading that began with the first row */
    uint32_t readings; /* number of readings the rows are from */
};

static size_t facts_in(const tide_buf *facts)
{
    return facts->bytes / sizeof(struct tide_console_fact);
}

static void bind_part(const struct gather *gather, sqlite3_stmt *list)
{
    tide_bind_u64(list, 1, gather->series);
    tide_bind_text(list, 2, tide_text_of(gather->part->date));
    tide_bind_u64(list, 3, gather->part->asked);
}

/* Counts the rows of the day in the staged pages, and checks that this reading has no gap. */
static tide_status count(struct gather *gather, tide_error *err)
{
    const struct tide_console_part *part = gather->part;
    sqlite3_stmt *list = tide_db_stmt(&gather->store->db, TIDE_CONSOLE_STAGED_ROWS);
    uint64_t next = part->from;
    uint64_t counted = 0;
    bool row = false;
    bind_part(gather, list);
    tide_status rc = tide_db_step(&gather->store->db, list, &row, err);
    while (rc == TIDE_OK && row) {
        const uint32_t reading = tide_column_u32(list, 0);
        const uint64_t start = tide_column_u64(list, 1);
        const uint64_t rows = tide_column_u64(list, 2);
        gather->rows_all += rows;
        if (reading < part->reading && start == 0) {
            gather->whole = reading;
            counted = 0;
        }
        if (reading < part->reading && reading == gather->whole)
            counted += rows;
        /* Later ones are left from an earlier attempt at this page. */
        if (reading == part->reading && start == next && start < part->start_row)
            next += rows;
        rc = tide_db_step(&gather->store->db, list, &row, err);
    }
    tide_db_end(list);
    if (part->from == 0) {
        gather->whole = part->reading;
        counted = part->start_row + facts_in(gather->page);
    }
    gather->rows_all += facts_in(gather->page);
    gather->to->gap = next != part->start_row;
    gather->to->counted = counted;
    return rc;
}

static tide_status take(struct gather *gather, const void *data, size_t bytes)
{
    const struct tide_console_fact *facts = data;
    for (size_t i = 0; i < bytes / sizeof *facts; i++) {
        struct tide_console_fact fact;
        memcpy(&fact, &facts[i], sizeof fact); /* a blob need not be aligned */
        const size_t index = facts_in(&gather->to->facts);
        const struct tide_console_fact *kept = (const void *)gather->to->facts.data;
        if (!seen_before(&gather->seen, kept, &fact, index))
            TIDE_TRY(tide_buf_add(&gather->to->facts, &fact, sizeof fact));
    }
    return TIDE_OK;
}

/* Every key once, from this reading on; the first occurrence counts. */
static tide_status load(struct gather *gather, uint32_t reading_first, tide_error *err)
{
    const struct tide_console_part *part = gather->part;
    sqlite3_stmt *list = tide_db_stmt(&gather->store->db, TIDE_CONSOLE_STAGED);
    bool row = false;
    uint32_t before = UINT32_MAX;
    memset(gather->seen.cells, 0, gather->seen.capacity * sizeof *gather->seen.cells);
    tide_buf_clear(&gather->to->facts);
    gather->readings = 1;
    bind_part(gather, list);
    tide_bind_u64(list, 4, reading_first);
    tide_status rc = tide_db_step(&gather->store->db, list, &row, err);
    while (rc == TIDE_OK && row) {
        const uint32_t reading = tide_column_u32(list, 0);
        gather->readings += reading != before && reading != part->reading ? 1 : 0;
        before = reading;
        if (reading < part->reading || tide_column_u64(list, 1) < part->start_row)
            rc = take(gather, sqlite3_column_blob(list, 2), (size_t)sqlite3_column_bytes(list, 2));
        if (rc == TIDE_OK)
            rc = tide_db_step(&gather->store->db, list, &row, err);
    }
    tide_db_end(list);
    return rc == TIDE_OK ? take(gather, gather->page->data, gather->page->bytes) : rc;
}

/* ---- by clicks ---- */

struct placed {
    double clicks;
    size_t index;
};

static int by_clicks(const void *a, const void *b)
{
    const struct placed *left = a;
    const struct placed *right = b;
    if (left->clicks != right->clicks)
        return left->clicks < right->clicks ? 1 : -1;
    return left->index < right->index ? -1 : left->index > right->index;
}

/* Sorts rows of several readings into the order of a single one. */
static tide_status put_in_order(struct gather *gather)
{
    tide_mem *mem = gather->store->mem;
    tide_buf *facts = &gather->to->facts;
    const size_t many = facts_in(facts);
    struct placed *places = tide_mem_new(mem, (many + 1) * sizeof *places);
    struct tide_console_fact *sorted = tide_mem_new(mem, (many + 1) * sizeof *sorted);
    struct tide_console_fact *old = (void *)facts->data;
    if (places != NULL && sorted != NULL && many > 0) {
        for (size_t i = 0; i < many; i++)
            places[i] = (struct placed){old[i].clicks, i};
        qsort(places, many, sizeof *places, by_clicks);
        for (size_t i = 0; i < many; i++)
            sorted[i] = old[places[i].index];
        memcpy(old, sorted, many * sizeof *sorted);
    }
    const bool done = places != NULL && sorted != NULL;
    tide_mem_free(mem, places, (many + 1) * sizeof *places);
    tide_mem_free(mem, sorted, (many + 1) * sizeof *sorted);
    return done ? TIDE_OK : TIDE_NO_MEMORY;
}

/* ---- the result ---- */

static tide_status judge(struct gather *gather, tide_error *err)
{
    struct tide_console_gathered *to = gather->to;
    const bool cut = to->counted >= TIDE_SC_DAY_ROWS_MAX;
    tide_status rc = load(gather, 0, err);
    /* More keys than rows: the day has changed since it was first read. */
    if (rc == TIDE_OK && facts_in(&to->facts) > to->counted && !cut && gather->whole > 0) {
        to->reading_first = gather->whole;
        rc = load(gather, gather->whole, err);
    }
    const uint64_t keys = facts_in(&to->facts);
    to->proven = cut ? keys >= to->counted : keys == to->counted;
    to->missing = keys < to->counted ? to->counted - keys : 0;
    if (rc == TIDE_OK && gather->readings > 1)
        rc = put_in_order(gather);
    /* If the server truncates a day, it is chance which of the last rows were returned. */
    if (rc == TIDE_OK && cut && keys > TIDE_SC_DAY_ROWS_MAX)
        to->facts.bytes = TIDE_SC_DAY_ROWS_MAX * sizeof(struct tide_console_fact);
    return rc;
}

void tide_console_gathered_init(struct tide_console_gathered *gathered, tide_mem *mem)
{
    *gathered = (struct tide_console_gathered){.gap = false};
    tide_buf_init(&gathered->facts, mem,
                  (size_t)TIDE_CONSOLE_READINGS_MAX * TIDE_SC_DAY_ROWS_MAX *
                      sizeof(struct tide_console_fact));
}

void tide_console_gathered_done(struct tide_console_gathered *gathered)
{
    tide_buf_done(&gathered->facts);
}

tide_status tide_console_gather(tide_console_store *store, uint64_t series,
                                const struct tide_console_part *part, const tide_buf *page,
                                struct tide_console_gathered *gathered, tide_error *err)
{
    struct gather gather = {
        .store = store, .series = series, .part = part, .page = page, .to = gathered};
    tide_status rc = count(&gather, err);
    if (rc != TIDE_OK || gathered->gap)
        return rc;
    gather.seen.capacity = 64;
    while (gather.seen.capacity < gather.rows_all * 2)
        gather.seen.capacity *= 2;
    const size_t bytes = gather.seen.capacity * sizeof *gather.seen.cells;
    gather.seen.cells = tide_mem_new(store->mem, bytes);
    rc = gather.seen.cells == NULL ? TIDE_NO_MEMORY : judge(&gather, err);
    tide_mem_free(store->mem, gather.seen.cells, bytes);
    return rc == TIDE_NO_MEMORY || rc == TIDE_FULL
               ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for the rows of a day")
               : rc;
}
