/* Running a search analytics query: which rows, in which order, and how they
 * are written.
 *
 * Two ways.  A grouping that keeps every row of a day apart (query, country and
 * device, per day) needs no sums: a day already is in order of clicks, so
 * a page is computed from its ranks, and several days are merged.  Everything
 * else is summed up in a table, a day or an hour at a time when the grouping
 * tells them apart, so that memory follows one slice and not the range. */
#include "cloudbox/console/query.h"

#include "base/check.h"

#include <stdlib.h>

/* A group: its key and its sums. */
struct cell {
    uint64_t key;
    uint64_t clicks;
    uint64_t impressions; /* 0: an empty place in a table */
    uint64_t positions;
};

struct cells {
    struct cell *items;
    size_t count;
    size_t capacity;
};

struct run {
    const struct box_property *property;
    const struct box_analytics *query;
    tide_arena *scratch;
    uint64_t now_ms;
    int32_t first_day; /* of what there is data for */
    int32_t last_day;
    uint8_t *memo[BOX_DIMENSIONS]; /* per value: 0 not asked yet, 1 passes, 2 does not */
};

/* ---- keys ---- */

enum {
    APPEARANCE_BITS = 4,
    DEVICE_BITS = 2,
    COUNTRY_BITS = 6,
    PAGE_BITS = 15,
    QUERY_BITS = 17,
    HOUR_BITS = 5,
    DEVICE_AT = APPEARANCE_BITS,
    COUNTRY_AT = DEVICE_AT + DEVICE_BITS,
    PAGE_AT = COUNTRY_AT + COUNTRY_BITS,
    QUERY_AT = PAGE_AT + PAGE_BITS,
    HOUR_AT = QUERY_AT + QUERY_BITS,
    DAY_AT = HOUR_AT + HOUR_BITS,
};

/* What a key keeps of a row, by the dimensions that are grouped. */
static uint64_t key_mask(uint32_t grouped)
{
    static const uint64_t masks[BOX_DIMENSIONS] = {
        [BOX_BY_DATE] = 0x3ffull << DAY_AT,
        [BOX_BY_HOUR] = 0x3ffull << DAY_AT | 0x1full << HOUR_AT,
        [BOX_BY_QUERY] = 0x1ffffull << QUERY_AT,
        [BOX_BY_PAGE] = 0x7fffull << PAGE_AT,
        [BOX_BY_COUNTRY] = 0x3full << COUNTRY_AT,
        [BOX_BY_DEVICE] = 3ull << DEVICE_AT,
        [BOX_BY_APPEARANCE] = 15,
    };
    uint64_t mask = 0;
    for (uint32_t i = 0; i < BOX_DIMENSIONS; i++)
        if ((grouped >> i & 1u) != 0)
            mask |= masks[i];
    return mask;
}

static inline uint64_t key_of(uint32_t day, uint32_t hour, const struct box_row *row)
{
    return (uint64_t)day << DAY_AT | (uint64_t)hour << HOUR_AT | (uint64_t)row->query << QUERY_AT |
           (uint64_t)row->page << PAGE_AT | (uint64_t)row->country << COUNTRY_AT |
           (uint64_t)row->device << DEVICE_AT | row->appearance;
}

/* By clicks descending; ties have a fixed order here and are shuffled later. */
static bool before(const struct cell *a, const struct cell *b)
{
    return a->clicks != b->clicks ? a->clicks > b->clicks : a->key < b->key;
}

static int compare(const void *a, const void *b)
{
    return before(a, b) ? -1 : before(b, a) ? 1 : 0;
}

static void cells_need(struct cells *cells, size_t count)
{
    TIDE_ASSERT(TIDE_GROW(cells->items, cells->capacity, count, SIZE_MAX / sizeof(struct cell)));
}

static void cells_done(struct cells *cells)
{
    tide_mem_free(tide_mem_heap(), cells->items, cells->capacity * sizeof(struct cell));
    *cells = (struct cells){0};
}

/* ---- filters ---- */

static size_t value_text(const struct run *run, box_dimension dimension, uint32_t value,
                         char *text_out)
{
    switch (dimension) {
    case BOX_BY_QUERY:
        return box_query_text(run->property, value, text_out);
    case BOX_BY_PAGE:
        return box_page_text(run->property, value, text_out);
    case BOX_BY_COUNTRY:
        memcpy(text_out, box_country_text((uint8_t)value), 4);
        return 3;
    case BOX_BY_DEVICE:
    case BOX_BY_APPEARANCE: {
        const char *text = "";
        if (dimension == BOX_BY_DEVICE)
            text = box_device_text((uint8_t)value);
        else if (value > 0)
            text = box_appearance_text((uint8_t)value);
        const size_t bytes = strlen(text);
        memcpy(text_out, text, bytes + 1);
        return bytes;
    }
    case BOX_BY_DATE:
    case BOX_BY_HOUR:
    case BOX_DIMENSIONS:
        break;
    }
    TIDE_ASSERT(false);
    return 0;
}

/* Every value is tried once, however many rows have it. */
static bool value_passes(const struct run *run, box_dimension dimension, uint32_t value)
{
    uint8_t *memo = &run->memo[dimension][value];
    if (*memo != 0)
        return *memo == 1;
    char text[BOX_KEY_BYTES_MAX + 1];
    const size_t bytes = value_text(run, dimension, value, text);
    bool passes = true;
    for (size_t i = 0; passes && i < run->query->filters_count; i++)
        if (run->query->filters[i].dimension == dimension)
            passes = box_filter_passes(&run->query->filters[i], text, bytes);
    *memo = passes ? 1 : 2;
    return passes;
}

static void memo_open(struct run *run)
{
    static const size_t values[BOX_DIMENSIONS] = {
        [BOX_BY_QUERY] = BOX_QUERIES_MAX + 1,  [BOX_BY_PAGE] = BOX_PAGES_MAX + 1,
        [BOX_BY_COUNTRY] = BOX_COUNTRIES,      [BOX_BY_DEVICE] = BOX_DEVICES,
        [BOX_BY_APPEARANCE] = BOX_APPEARANCES,
    };
    for (uint32_t i = 0; i < BOX_DIMENSIONS; i++)
        if ((run->query->filtered >> i & 1u) != 0) {
            run->memo[i] = tide_arena_take(run->scratch, values[i]);
            TIDE_ASSERT(run->memo[i] != NULL);
        }
}

static inline bool row_passes(const struct run *run, const struct box_row *row)
{
    if (run->query->filtered == 0)
        return true;
    return (run->memo[BOX_BY_QUERY] == NULL || value_passes(run, BOX_BY_QUERY, row->query)) &&
           (run->memo[BOX_BY_PAGE] == NULL || value_passes(run, BOX_BY_PAGE, row->page)) &&
           (run->memo[BOX_BY_COUNTRY] == NULL || value_passes(run, BOX_BY_COUNTRY, row->country)) &&
           (run->memo[BOX_BY_DEVICE] == NULL || value_passes(run, BOX_BY_DEVICE, row->device)) &&
           (run->memo[BOX_BY_APPEARANCE] == NULL ||
            value_passes(run, BOX_BY_APPEARANCE, row->appearance));
}

/* ---- rows that stay apart ---- */

/* One day in the merge. */
struct lane {
    struct box_day day;
    uint32_t number; /* of the day, from the first */
    uint32_t rank;   /* of the row in `next`, plus one */
    struct cell next;
};

/* Moves to the next row that passes; false at the end of the day. */
static bool lane_next(const struct run *run, uint64_t mask, struct lane *lane)
{
    while (lane->rank < lane->day.rows) {
        struct box_row row;
        box_day_row(&lane->day, lane->rank++, &row);
        if (!row_passes(run, &row))
            continue;
        lane->next = (struct cell){key_of(lane->number, 0, &row) & mask, row.clicks,
                                   row.impressions, row.positions};
        return true;
    }
    return false;
}

static bool lane_before(const struct lane *a, const struct lane *b)
{
    return a->next.clicks != b->next.clicks ? a->next.clicks > b->next.clicks
                                            : a->number < b->number;
}

static void heap_sink(struct lane **heap, size_t count, size_t at)
{
    for (;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (lane_before(heap[child], heap[best]))
                best = child;
        if (best == at)
            return;
        struct lane *moved = heap[at];
        heap[at] = heap[best];
        heap[best] = moved;
        at = best;
    }
}

/* The rows [from, to) of all days together, as far as there are any. */
static void merge(const struct run *run, size_t from, size_t to, struct cells *cells)
{
    const uint64_t mask = key_mask(run->query->grouped);
    const size_t days = (size_t)(run->last_day - run->first_day + 1);
    struct lane *lanes = tide_mem_array(tide_mem_heap(), days, sizeof *lanes);
    struct lane **heap = tide_mem_array(tide_mem_heap(), days, sizeof(struct lane *));
    TIDE_ASSERT(lanes != NULL && heap != NULL);
    size_t count = 0;
    for (size_t i = 0; i < days; i++) {
        struct lane *lane = &lanes[i];
        lane->number = (uint32_t)i;
        box_day_open(run->property, run->query->type, run->first_day + (int32_t)i, run->now_ms,
                     &lane->day);
        /* A day alone and unfiltered begins at the rank that is asked for. */
        if (days == 1 && run->query->filtered == 0)
            lane->rank = (uint32_t)(from < lane->day.rows ? from : lane->day.rows);
        if (lane_next(run, mask, lane))
            heap[count++] = lane;
    }
    for (size_t i = count / 2; i > 0; i--)
        heap_sink(heap, count, i - 1);
    for (size_t at = days == 1 && run->query->filtered == 0 ? from : 0; at < to && count > 0;
         at++) {
        if (at >= from)
            cells->items[cells->count++] = heap[0]->next;
        if (!lane_next(run, mask, heap[0]))
            heap[0] = heap[--count];
        heap_sink(heap, count, 0);
    }
    tide_mem_free(tide_mem_heap(), heap, days * sizeof(struct lane *));
    tide_mem_free(tide_mem_heap(), lanes, days * sizeof *lanes);
}

/* ---- sums ---- */

static size_t place_of(uint64_t key, size_t capacity)
{
    key *= 0x9e3779b97f4a7c15u;
    return (size_t)(key ^ key >> 32) & (capacity - 1);
}

static void table_double(struct cells *table)
{
    struct cells old = *table;
    *table = (struct cells){.count = old.count};
    cells_need(table, old.capacity == 0 ? 1024 : old.capacity * 2);
    TIDE_ASSERT((table->capacity & (table->capacity - 1)) == 0);
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.items[i].impressions == 0)
            continue;
        size_t at = place_of(old.items[i].key, table->capacity);
        while (table->items[at].impressions != 0)
            at = (at + 1) & (table->capacity - 1);
        table->items[at] = old.items[i];
    }
    cells_done(&old);
}

static inline void table_add(struct cells *table, uint64_t key, const struct box_row *row)
{
    if ((table->count + 1) * 2 > table->capacity)
        table_double(table);
    size_t at = place_of(key, table->capacity);
    while (table->items[at].impressions != 0 && table->items[at].key != key)
        at = (at + 1) & (table->capacity - 1);
    struct cell *cell = &table->items[at];
    if (cell->impressions == 0) {
        cell->key = key;
        table->count++;
    }
    cell->clicks += row->clicks;
    cell->impressions += row->impressions;
    cell->positions += row->positions;
}

/* Keeps the best BOX_ANALYTICS_ROWS_MAX of all it was given. */
struct best {
    struct cells cells;
    bool full;
    struct cell last; /* the worst that is kept, once full */
};

static void best_cut(struct best *best)
{
    if (best->cells.count > 0)
        qsort(best->cells.items, best->cells.count, sizeof(struct cell), compare);
    if (best->cells.count >= BOX_ANALYTICS_ROWS_MAX) {
        best->cells.count = BOX_ANALYTICS_ROWS_MAX;
        best->full = true;
        best->last = best->cells.items[BOX_ANALYTICS_ROWS_MAX - 1];
    }
}

/* Moves the groups out of the table, which is empty afterwards. */
static void best_take(struct best *best, struct cells *table)
{
    for (size_t i = 0; i < table->capacity; i++) {
        struct cell *cell = &table->items[i];
        if (cell->impressions == 0)
            continue;
        if (!best->full || before(cell, &best->last)) {
            cells_need(&best->cells, best->cells.count + 1);
            best->cells.items[best->cells.count++] = *cell;
            if (best->cells.count == 4 * BOX_ANALYTICS_ROWS_MAX)
                best_cut(best);
        }
        *cell = (struct cell){0};
    }
    table->count = 0;
}

static void sum_row(const struct run *run, const struct box_day *day, uint32_t number,
                    uint32_t hour, uint64_t mask, const struct box_row *row, struct cells *table)
{
    if (!row_passes(run, row))
        return;
    /* Rows without an appearance are not a group of appearances. */
    if ((run->query->grouped >> BOX_BY_APPEARANCE & 1u) != 0 && row->appearance == 0)
        return;
    if ((run->query->grouped >> BOX_BY_HOUR & 1u) == 0) {
        table_add(table, key_of(number, 0, row) & mask, row);
        return;
    }
    struct box_row part;
    if (box_row_hour(day, row, hour, &part))
        table_add(table, key_of(number, hour, &part) & mask, &part);
}

/* One day, or one hour of it, into the table. */
static void sum_slice(const struct run *run, const struct box_day *day, uint32_t number,
                      uint32_t hour, uint64_t mask, struct cells *table)
{
    struct box_row row;
    for (uint32_t rank = 0; rank < day->rows; rank++) {
        box_day_row(day, rank, &row);
        sum_row(run, day, number, hour, mask, &row, table);
    }
    /* BCON3: a report by query does not show the rare ones. */
    if (box_analytics_uses(run->query, BOX_BY_QUERY))
        return;
    for (uint32_t i = 0; i < day->hidden; i++) {
        box_day_hidden(day, i, &row);
        sum_row(run, day, number, hour, mask, &row, table);
    }
}

static void sum(const struct run *run, size_t from, size_t to, struct cells *cells)
{
    const uint64_t mask = key_mask(run->query->grouped);
    const bool by_hour = (run->query->grouped >> BOX_BY_HOUR & 1u) != 0;
    const bool by_day = by_hour || (run->query->grouped >> BOX_BY_DATE & 1u) != 0;
    struct cells table = {0};
    struct best best = {0};
    for (int32_t i = run->first_day; i <= run->last_day; i++) {
        struct box_day day;
        box_day_open(run->property, run->query->type, i, run->now_ms, &day);
        const uint32_t slices = by_hour ? day.hours : 1;
        for (uint32_t hour = 0; hour < slices; hour++) {
            sum_slice(run, &day, (uint32_t)(i - run->first_day), hour, mask, &table);
            if (by_day)
                best_take(&best, &table);
        }
    }
    best_take(&best, &table);
    best_cut(&best);
    for (size_t i = from; i < to && i < best.cells.count; i++)
        cells->items[cells->count++] = best.cells.items[i];
    cells_done(&best.cells);
    cells_done(&table);
}

/* ---- ties ---- */

static void shuffle_ties(struct cell *cells, size_t count, tide_rng *rng)
{
    for (size_t from = 0; from < count;) {
        size_t to = from + 1;
        while (to < count && cells[to].clicks == cells[from].clicks)
            to++;
        for (size_t left = to - from; left > 1; left--) {
            const size_t other = from + (size_t)tide_rng_below(rng, left);
            const struct cell moved = cells[from + left - 1];
            cells[from + left - 1] = cells[other];
            cells[other] = moved;
        }
        from = to;
    }
}

/* ---- writing ---- */

struct writer {
    const struct run *run;
    char *at; /* in room that was reserved for the whole row */
    bool pretty;
    uint32_t dated; /* the day in `date`, plus one */
    char date[11];
};

static inline void put(struct writer *writer, const char *text, size_t bytes)
{
    memcpy(writer->at, text, bytes);
    writer->at += bytes;
}

#define PUT(writer, literal) put((writer), (literal), sizeof(literal) - 1)

static void put_u64(struct writer *writer, uint64_t number)
{
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *writer->at++ = reversed[--count];
}

/* numerator / denominator with up to 15 places, as a double would show. */
static void put_ratio(struct writer *writer, uint64_t numerator, uint64_t denominator)
{
    uint64_t whole = numerator / denominator;
    const double rest = (double)(numerator % denominator) / (double)denominator;
    uint64_t places = (uint64_t)(rest * 1e15 + 0.5);
    if (places >= 1000000000000000u) {
        places = 0;
        whole++;
    }
    put_u64(writer, whole);
    if (places == 0)
        return;
    char *to = writer->at;
    to[0] = '.';
    for (size_t i = 15; i > 0; i--) {
        to[i] = (char)('0' + places % 10);
        places /= 10;
    }
    size_t count = 16;
    while (to[count - 1] == '0')
        count--;
    writer->at += count;
}

/* Our own texts hold no control characters. */
static void put_text(struct writer *writer, const char *text, size_t bytes)
{
    char *to = writer->at;
    *to++ = '"';
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"' || text[i] == '\\')
            *to++ = '\\';
        *to++ = text[i];
    }
    *to++ = '"';
    writer->at = to;
}

static void put_key(struct writer *writer, box_dimension dimension, uint64_t key)
{
    char text[BOX_KEY_BYTES_MAX + 1];
    const uint32_t day = (uint32_t)(key >> DAY_AT) & 0x3ff;
    uint32_t value = 0;
    switch (dimension) {
    case BOX_BY_DATE:
        if (writer->dated != day + 1) {
            box_day_print(writer->run->first_day + (int32_t)day, writer->date);
            writer->dated = day + 1;
        }
        put_text(writer, writer->date, 10);
        return;
    case BOX_BY_HOUR:
        box_hour_print(writer->run->first_day + (int32_t)day, (uint32_t)(key >> HOUR_AT) & 0x1f,
                       text);
        put_text(writer, text, 25);
        return;
    case BOX_BY_QUERY:
        value = (uint32_t)(key >> QUERY_AT) & 0x1ffff;
        break;
    case BOX_BY_PAGE:
        value = (uint32_t)(key >> PAGE_AT) & 0x7fff;
        break;
    case BOX_BY_COUNTRY:
        value = (uint32_t)(key >> COUNTRY_AT) & 0x3f;
        break;
    case BOX_BY_DEVICE:
        value = (uint32_t)(key >> DEVICE_AT) & 3;
        break;
    case BOX_BY_APPEARANCE:
    case BOX_DIMENSIONS:
        value = (uint32_t)key & 15;
        break;
    }
    const size_t bytes = value_text(writer->run, dimension, value, text);
    put_text(writer, text, bytes);
}

static void put_row(struct writer *writer, const struct cell *cell)
{
    const struct box_analytics *query = writer->run->query;
    const bool pretty = writer->pretty;
    if (pretty)
        PUT(writer, "    {\n      ");
    else
        PUT(writer, "{");
    for (size_t i = 0; i < query->dimensions_count; i++) {
        if (i == 0)
            pretty ? PUT(writer, "\"keys\": [\n        ") : PUT(writer, "\"keys\":[");
        else
            pretty ? PUT(writer, ",\n        ") : PUT(writer, ",");
        put_key(writer, query->dimensions[i], cell->key);
    }
    if (query->dimensions_count > 0)
        pretty ? PUT(writer, "\n      ],\n      ") : PUT(writer, "],");
    pretty ? PUT(writer, "\"clicks\": ") : PUT(writer, "\"clicks\":");
    put_u64(writer, cell->clicks);
    pretty ? PUT(writer, ",\n      \"impressions\": ") : PUT(writer, ",\"impressions\":");
    put_u64(writer, cell->impressions);
    pretty ? PUT(writer, ",\n      \"ctr\": ") : PUT(writer, ",\"ctr\":");
    put_ratio(writer, cell->clicks, cell->impressions);
    if (query->type != BOX_SEARCH_DISCOVER && query->type != BOX_SEARCH_GOOGLE_NEWS) {
        pretty ? PUT(writer, ",\n      \"position\": ") : PUT(writer, ",\"position\":");
        put_ratio(writer, cell->positions, cell->impressions);
    }
    pretty ? PUT(writer, "\n    }") : PUT(writer, "}");
}

enum { ROW_BYTES_MAX = BOX_DIMENSIONS * (2 * BOX_KEY_BYTES_MAX + 32) + 512 };

static void put_rows(const struct run *run, const struct cell *cells, size_t count, bool pretty,
                     tide_buf *out)
{
    struct writer writer = {.run = run, .pretty = pretty};
    box_add_cstr(out, pretty ? "  \"rows\": [\n" : "\"rows\":[");
    for (size_t i = 0; i < count; i++) {
        char *room = tide_buf_reserve(out, ROW_BYTES_MAX);
        TIDE_ASSERT(room != NULL);
        writer.at = room;
        if (i > 0)
            pretty ? PUT(&writer, ",\n") : PUT(&writer, ",");
        put_row(&writer, &cells[i]);
        out->bytes += (size_t)(writer.at - room);
    }
    box_add_cstr(out, pretty ? "\n  ],\n" : "],");
}

/* From when on the numbers can still change; only said when it is asked for by
 * the data state and the grouping. */
static bool incomplete_from(const struct run *run, const char **name_out, char text_out[26])
{
    const bool hourly = run->query->state == BOX_DATA_HOURLY;
    const box_dimension needed = hourly ? BOX_BY_HOUR : BOX_BY_DATE;
    if (run->query->state == BOX_DATA_FINAL || (run->query->grouped >> needed & 1u) == 0)
        return false;
    for (int32_t i = run->first_day; i <= run->last_day; i++) {
        struct box_day day;
        box_day_open(run->property, run->query->type, i, run->now_ms, &day);
        if (day.final)
            continue;
        *name_out = hourly ? "firstIncompleteHour" : "firstIncompleteDate";
        if (hourly)
            box_hour_print(i, day.hours_complete, text_out);
        else
            box_day_print(i, text_out);
        return true;
    }
    return false;
}

static void write_answer(const struct run *run, const struct cell *cells, size_t count, bool pretty,
                         tide_buf *out)
{
    static const char *const names[] = {"auto", "byProperty", "byPage", "byNewsShowcasePanel"};
    box_add_cstr(out, pretty ? "{\n" : "{");
    if (count > 0)
        put_rows(run, cells, count, pretty, out);
    box_print(out,
              pretty ? "  \"responseAggregationType\": \"%s\""
                     : "\"responseAggregationType\":\"%s\"",
              names[run->query->aggregated]);
    const char *name = NULL;
    char text[26];
    if (incomplete_from(run, &name, text))
        box_print(out,
                  pretty ? ",\n  \"metadata\": {\n    \"%s\": \"%s\"\n  }"
                         : ",\"metadata\":{\"%s\":\"%s\"}",
                  name, text);
    box_add_cstr(out, pretty ? "\n}\n" : "}");
}

/* ---- the whole ---- */

/* The part of the range that there is data for; `last < first`: none. */
static void clip_days(struct run *run)
{
    const int32_t today = box_day_at(run->now_ms);
    int32_t oldest = box_day_oldest(today);
    if ((run->query->grouped >> BOX_BY_HOUR & 1u) != 0)
        oldest = today - BOX_HOURLY_DAYS;
    if (oldest < 0)
        oldest = 0;
    run->first_day = run->query->first_day > oldest ? run->query->first_day : oldest;
    run->last_day = run->query->last_day < today ? run->query->last_day : today;
    /* At most four steps: a day is final two days after its end. */
    while (run->query->state == BOX_DATA_FINAL && run->last_day >= run->first_day) {
        struct box_day day;
        box_day_open(run->property, run->query->type, run->last_day, run->now_ms, &day);
        if (day.final)
            break;
        run->last_day--;
    }
}

static bool rows_stay_apart(const struct run *run)
{
    const uint32_t grouped = run->query->grouped;
    const uint32_t needed = 1u << BOX_BY_QUERY | 1u << BOX_BY_COUNTRY | 1u << BOX_BY_DEVICE;
    const uint32_t never = 1u << BOX_BY_HOUR | 1u << BOX_BY_APPEARANCE;
    return (grouped & needed) == needed && (grouped & never) == 0 &&
           ((grouped >> BOX_BY_DATE & 1u) != 0 || run->first_day == run->last_day);
}

/* The answer's rows, with whole runs of ties around them so that every call
 * shuffles the same sets. */
static void collect(const struct run *run, uint64_t luck, uint32_t shift, struct cells *cells,
                    size_t *skip_out)
{
    *skip_out = 0;
    const size_t start = run->query->start_row;
    if (run->first_day > run->last_day || start >= BOX_ANALYTICS_ROWS_MAX)
        return;
    const size_t run_of = BOX_TIE_RUN;
    const size_t low = start < shift ? 0 : (start - shift) / run_of * run_of + shift;
    size_t high = start + run->query->row_limit;
    high = high <= shift ? shift : (high - shift + run_of - 1) / run_of * run_of + shift;
    if (high > BOX_ANALYTICS_ROWS_MAX)
        high = BOX_ANALYTICS_ROWS_MAX;
    cells_need(cells, high - low);
    if (rows_stay_apart(run))
        merge(run, low, high, cells);
    else
        sum(run, low, high, cells);
    for (size_t at = 0; at < cells->count;) {
        const size_t place = low + at;
        const size_t end =
            place < shift ? shift : (place - shift) / run_of * run_of + run_of + shift;
        const size_t count = end - place < cells->count - at ? end - place : cells->count - at;
        tide_rng rng = tide_rng_seeded(luck + place * 0x9e3779b97f4a7c15u);
        shuffle_ties(cells->items + at, count, &rng);
        at += count;
    }
    *skip_out = start - low < cells->count ? start - low : cells->count;
}

void box_analytics_answer(struct box_call *call, const struct box_property *property,
                          const struct box_analytics *query, uint64_t luck, uint32_t tie_shift)
{
    TIDE_ASSERT(tie_shift < BOX_TIE_RUN);
    struct run run = {
        .property = property, .query = query, .scratch = call->scratch, .now_ms = call->now_ms};
    clip_days(&run);
    memo_open(&run);
    struct cells cells = {0};
    size_t skip = 0;
    collect(&run, luck, tie_shift, &cells, &skip);
    size_t count = cells.count - skip;
    if (count > query->row_limit)
        count = query->row_limit;
    if (count > 0 && query->start_row + count > BOX_ANALYTICS_ROWS_MAX)
        count = BOX_ANALYTICS_ROWS_MAX - query->start_row;

    const tide_text print = box_call_param(call, "prettyPrint");
    const bool fields = box_call_param(call, "fields").bytes > 0;
    const bool pretty = !fields && !tide_text_equal(print, TIDE_TEXT("false")) &&
                        !tide_text_equal(print, TIDE_TEXT("0"));
    box_answer_json(call->answer, 200, json_object(), false); /* status and type */
    tide_buf_clear(&call->answer->body);
    write_answer(&run, count > 0 ? cells.items + skip : NULL, count, pretty, &call->answer->body);
    cells_done(&cells);
    if (!fields)
        return;
    /* A selection of fields is rare and may cost a detour. */
    json_t *value =
        json_loadb(tide_buf_cstr(&call->answer->body), call->answer->body.bytes, 0, NULL);
    TIDE_ASSERT(value != NULL);
    box_call_reply(call, value);
}
