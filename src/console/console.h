/* console.h - Search Console backfill on the engine (B1-B11).
 *
 * A date is a cycle of the stream SITE/TYPE/DIMENSIONS; a request (date, start row)
 * is a job of it.  The handlers of many jobs meet in a batcher (net/batch.h), so
 * that up to fifty requests travel in one HTTP request and several of those fly.
 *
 *   console.plan   looks which days are missing or were not final, and opens a cycle
 *                  for each, oldest first, while there is room (B3)
 *   console.page   one request; a full page makes the next start row a child job of the
 *                  same cycle, a short one ends the day: its rows become visible in one
 *                  transaction (B2)
 *
 * The stream's cursor is the last day up to which everything is complete and final; a
 * day that is not final is stored, and fetched again by the next run.
 *
 * Invariants:
 *   K1  the cursor never passes a day that is not stored whole, or not final.
 *   K2  a day is stored once, with its pages in order of start row (store.h V1).
 *   K3  a permanent refusal of one page halts the account with its date and reason: a
 *       day with a missing page is never shown as complete (B6).
 *   K4  at most 10 batches are in the air and 1,000 requests queued (B3).
 */
#ifndef TIDE_CONSOLE_CONSOLE_H
#define TIDE_CONSOLE_CONSOLE_H

#include "console/store.h"
#include "net/secrets.h"
#include "tidemark.h"

typedef struct tide_console tide_console;

enum {
    TIDE_CONSOLE_SITES_MAX = 1000,
    TIDE_CONSOLE_DAYS_MAX = 600, /* 16 months, and some */
    TIDE_CONSOLE_QUEUE_MAX = 1000,
    TIDE_CONSOLE_WORKERS_MAX = 10,
};

struct tide_console_options {
    tide_engine *engine; /* borrowed; not started yet */
    tide_world *world;
    tide_secrets *secrets;
    const char *archive_dir; /* its folder console/ */
    unsigned workers;        /* HTTP requests in the air; 0: 3 */
    unsigned batch_max;      /* parts of one; 0: 50; with one worker: 1 */
};
tide_status tide_console_open(const struct tide_console_options *options, tide_mem *mem,
                              tide_console **console_out, tide_error *err);
tide_status tide_console_close(tide_console *console, tide_error *err); /* after the engine */

/* A sign-in, by a name of the person's own ("console" unless said), and its sites. */
tide_status tide_console_account_add(tide_console *console, const char *name, const char *endpoint,
                                     tide_error *err);
tide_status tide_console_site_add(tide_console *console, const char *name, const char *site,
                                  tide_error *err);
void tide_console_secret_name(const char *name, char out[TIDE_SECRET_NAME_BYTES_MAX]);

struct tide_console_run {
    const char *site;
    uint32_t types;        /* bits */
    uint32_t dimensions;   /* bits */
    char from[16], to[16]; /* dates; "": from what is there, to the last final day */
    bool totals;           /* of each day, one request more */
    uint32_t row_limit;    /* of a page; 0: 25,000 */
};
/* Enqueues the plan.  TIDE_NOT_FOUND: no such site. */
tide_status tide_console_run(tide_console *console, const struct tide_console_run *run,
                             tide_error *err);

#endif
