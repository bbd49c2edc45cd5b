/* data.h - the numbers behind search analytics, row by row.
 *
 * A day of a property is a list of (query, page, country, device) rows in
 * order of their clicks.  Any row is computed from its rank alone, in constant
 * time, so a page of a day costs the page and nothing is stored.  Behind the
 * visible rows come the hidden ones: searches too rare to be named, which count
 * in every total that does not ask for queries.
 *
 * It knows nothing of requests; it reads no clock and has no state.
 *
 * Invariants (console_test.c):
 *   BDAT1  clicks never increase with the rank; clicks <= impressions; impressions >= 1.
 *   BDAT2  no two visible rows of a day have the same (query, country, device), and a row's page
 *          follows from them.
 *   BDAT3  the parts of a row by hours add up to the row.
 *   BDAT4  what a day shows never shrinks while it gets older, and stays as it is once it is final.
 */
#ifndef BOX_CONSOLE_DATA_H
#define BOX_CONSOLE_DATA_H

#include "base/text.h"

enum {
    BOX_SITE_ROWS_MAX = 200000, /* visible rows of one day */
    BOX_SITE_BYTES_MAX = 512,
    BOX_KEY_BYTES_MAX = BOX_SITE_BYTES_MAX + 256, /* of one query or page */
    BOX_DAY_HOURS_MAX = 25,                       /* when summer time ends */
    BOX_RETENTION_MONTHS = 16,
    BOX_HOURLY_DAYS = 10,
    BOX_QUERIES_MAX = BOX_SITE_ROWS_MAX / 8,
    BOX_PAGES_MAX = BOX_SITE_ROWS_MAX / 40 + 1,
    BOX_COUNTRIES = 48,
    BOX_DEVICES = 3,
    BOX_APPEARANCES = 8,   /* 0: none */
    BOX_RANK_BLOCKS = 9,   /* of 16, 64, 256, ... ranks */
    BOX_NO_QUERY = 0x1ffff /* of a hidden row */
};

typedef enum box_search {
    BOX_SEARCH_WEB,
    BOX_SEARCH_IMAGE,
    BOX_SEARCH_VIDEO,
    BOX_SEARCH_NEWS,
    BOX_SEARCH_DISCOVER,
    BOX_SEARCH_GOOGLE_NEWS,
    BOX_SEARCHES,
} box_search;

/* ---- Pacific days, counted from 1970-01-01 ---- */

/* "2026-02-28"; false: no such day. */
bool box_day_parse(tide_text text, int32_t *day_out);
void box_day_print(int32_t day, char text_out[11]);
/* When the day begins in Los Angeles. */
int64_t box_day_start_ms(int32_t day);
int32_t box_day_at(uint64_t unix_ms);
/* 23, 24 or 25. */
uint32_t box_day_hours(int32_t day);
/* "2026-02-28T07:00:00-08:00" */
void box_hour_print(int32_t day, uint32_t hour, char text_out[26]);
/* The oldest day that is kept. */
int32_t box_day_oldest(int32_t today);

/* ---- rows ---- */

struct box_property {
    uint64_t seed; /* of this site */
    tide_text name;
    uint32_t rows_per_day;
};

struct box_day {
    uint64_t seed; /* of site and type */
    int32_t day;
    bool final;
    bool feed;       /* Discover or Google News: other appearances */
    uint32_t rows;   /* visible now, by rank */
    uint32_t hidden; /* hidden now */
    uint32_t rows_full;
    uint32_t hours;
    uint32_t hours_complete;                /* from the first one on without a gap */
    uint64_t weight[BOX_DAY_HOURS_MAX + 1]; /* cumulated: what the hours hold by now */
    uint64_t weight_full;                   /* what they will hold */
    uint32_t top;                           /* clicks of the first rank, when final */
    struct {
        uint32_t step;
        uint32_t shift;
    } blocks[BOX_RANK_BLOCKS];
};

struct box_row {
    uint32_t query; /* BOX_NO_QUERY: hidden */
    uint32_t page;
    uint8_t country;
    uint8_t device;
    uint8_t appearance;
    uint64_t hash;
    uint64_t clicks;
    uint64_t impressions;
    uint64_t positions; /* the sum over all impressions */
};

/* A day as it stands at `now_ms`; one that has not begun has no rows. */
void box_day_open(const struct box_property *property, box_search type, int32_t day,
                  uint64_t now_ms, struct box_day *day_out);
/* rank < day->rows */
void box_day_row(const struct box_day *day, uint32_t rank, struct box_row *row_out);
/* nth < day->hidden */
void box_day_hidden(const struct box_day *day, uint32_t nth, struct box_row *row_out);
/* What of a row falls into an hour; false: nothing. */
bool box_row_hour(const struct box_day *day, const struct box_row *row, uint32_t hour,
                  struct box_row *part_out);

/* ---- names ---- */

/* Both write at most BOX_KEY_BYTES_MAX bytes and a NUL, and return the length. */
size_t box_query_text(const struct box_property *property, uint32_t query, char *text_out);
size_t box_page_text(const struct box_property *property, uint32_t page, char *text_out);
const char *box_country_text(uint8_t country); /* alpha-3, lower case */
const char *box_device_text(uint8_t device);
const char *box_appearance_text(uint8_t appearance); /* not of 0 */

#endif
