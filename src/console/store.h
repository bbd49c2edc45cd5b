/* store.h - one property's search analytics in one SQLite file (B10).
 *
 * archive/console/SITE.db, ready for plain SQL (docs/console-format.md is the
 * promise): texts of queries and pages are stored once, a row is a few small numbers.  The totals
 * of a day are stored with its rows, because the server hides rare queries.
 *
 * Pages of an unfinished day are staged in a separate table, packed; the last page makes the whole
 * day visible in one transaction.
 *
 * Invariants (tide_console_store_check()):
 *   CST1  a day of a set is complete, with its pages in order, or not there at all.
 *   CST2  (set, date, keys) is unique: a day that is committed again replaces the old one.
 *   CST3  a text has one number, forever.
 *   CST4  a day survives power loss once tide_console_store_commit() has returned.
 *   CST5  a day records how many of its rows the server counted and never returned; 0 proves that
 *         none is missing.
 *   CST6  final numbers are replaced only by final ones, and rows never by an empty day: the server
 *         deletes old data, we do not.
 */
#ifndef TIDE_CONSOLE_STORE_H
#define TIDE_CONSOLE_STORE_H

#include "cloud/searchconsole.h"

typedef struct tide_console_store tide_console_store;

struct tide_console_store_options {
    const char *dir; /* archive/console; created when missing */
    const char *site;
    tide_world *world;
    bool read_only;
};
/* The file's name is the site with unsafe characters as %XX.  TIDE_NOT_FOUND: read-only and
 * missing. */
tide_status tide_console_store_open(const struct tide_console_store_options *options, tide_mem *mem,
                                    tide_console_store **store_out, tide_error *err);
tide_status tide_console_store_close(tide_console_store *store, tide_error *err);

/* A set is what is requested, apart from the day: (type, dimensions). */
struct tide_console_set {
    tide_sc_type type;
    uint32_t dimensions; /* bits, without date */
};

/* ---- writing: any thread; one transaction at a time inside ---- */

/* One thread adds the rows, then passes the page on. */
typedef struct tide_console_page tide_console_page;
tide_status tide_console_page_new(tide_console_store *store, tide_console_page **page_out,
                                  tide_error *err);
void tide_console_page_free(tide_console_page *page); /* NULL is fine */
tide_status tide_console_page_add(tide_console_page *page, const struct tide_sc_row *row);
void tide_console_page_clear(tide_console_page *page);

/* Which request of a day this is.  A day is read from its first row to the last, page by page; if
 * that does not prove that every row was seen, it is read again. */
enum { TIDE_CONSOLE_READINGS_MAX = 13 };
struct tide_console_part {
    const char *date;
    uint64_t asked;     /* the plan that requested it; not 0 */
    uint32_t reading;   /* 0, 1, ... */
    uint32_t from;      /* where this reading began; 0: it is a complete one */
    uint32_t start_row; /* of this page */
    bool last;          /* commit: no other reading follows, and this one is complete */
};
/* Stages a page that does not end its reading: durable, not visible. */
tide_status tide_console_store_stage(tide_console_store *store, const struct tide_console_set *set,
                                     const struct tide_console_part *part,
                                     const tide_console_page *page, tide_error *err);
struct tide_console_day {
    bool final;
    double clicks, impressions; /* totals of the day, rare queries included; position NaN: none */
    double position;
    bool totals; /* were requested */
    uint64_t fetched_ms;
};
struct tide_console_committed {
    bool again;       /* nothing is visible yet: read the day again */
    bool gap;         /* because pages of this reading are missing; the rest is 0 */
    uint64_t rows;    /* of the day, each key once */
    uint64_t counted; /* rows that a complete reading returned */
    uint64_t missing; /* of these were on no page (CST5) */
};
/* Commits the page that ends a reading; its earlier pages are staged from `from` to `start_row`
 * without a gap.  A row whose key occurred before in the same day (page borders move) is kept once.
 * If rows or pages are missing, the result is `again`, and the page is staged; with `last`, missing
 * rows are recorded, and a gap is TIDE_CORRUPT.
 *
 * A day that was committed for the same plan before is kept: after a crash between this and the end
 * of the job the job runs again, and its pages are no longer staged. */
tide_status tide_console_store_commit(tide_console_store *store, const struct tide_console_set *set,
                                      const struct tide_console_part *part,
                                      const struct tide_console_day *day,
                                      const tide_console_page *page,
                                      struct tide_console_committed *committed_out,
                                      tide_error *err);

/* ---- reading ---- */

struct tide_console_day_row {
    char date[16];
    bool final;
    uint64_t rows;
    double clicks, impressions, position; /* the day's totals */
    double row_clicks, row_impressions;   /* sums of its rows: the difference is hidden */
    uint64_t fetched_ms;
    uint64_t missing; /* rows that were on no page (CST5) */
    bool counted;     /* false: stored by a version that did not count */
};
/* Days of a set in [from, to], ascending; either may be NULL. */
tide_status tide_console_store_days(
    tide_console_store *store, const struct tide_console_set *set, const char *from, const char *to,
    bool (*visit)(const struct tide_console_day_row *day, void *arg), void *arg, tide_error *err);
enum { TIDE_CONSOLE_SETS_MAX = 192 }; /* six types, 32 choices of dimensions */
/* Visits the sets.  `visit` may read from the store; the callbacks of days and top may not. */
tide_status tide_console_store_sets(tide_console_store *store,
                                    void (*visit)(const struct tide_console_set *set, uint64_t days,
                                                  uint64_t rows, void *arg),
                                    void *arg, tide_error *err);
struct tide_console_top {
    tide_text key;
    double clicks, impressions, ctr, position;
};
/* The keys of one dimension in [from, to] by clicks, then impressions; at most `limit`. */
tide_status tide_console_store_top(tide_console_store *store, const struct tide_console_set *set,
                                   tide_sc_dimension by, const char *from, const char *to,
                                   uint32_t limit,
                                   bool (*visit)(const struct tide_console_top *top, void *arg),
                                   void *arg, tide_error *err);
tide_status tide_console_store_check(tide_console_store *store, tide_buf *problems,
                                     tide_error *err);
/* The rows in a file that is not open, such as a copy.  `check`: TIDE_CORRUPT if days lack rows. */
tide_status tide_console_store_rows(tide_world *world, const char *path, bool check, tide_mem *mem,
                                    uint64_t *rows_out, tide_error *err);

#endif
