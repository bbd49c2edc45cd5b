/* console.h - the Search Console backfill on top of the engine (B1-B11).
 *
 * A date is a cycle of its series' stream; a request (date, start row) is a job in it.  The
 * handlers of many jobs share a batcher (net/batch/batch.h), which sends up to fifty requests in
 * one HTTP request and keeps several of those in flight.
 *
 *   console.plan   asks which day is the last final one, finds the missing days, and opens a cycle
 *                  for each, oldest first; later days get jobs without a cycle
 *   console.page   one request: the totals of a day, then page after page of its rows,
 *                  each the child of the one before it; the last one makes the day visible in one
 *                  transaction (B2), or has it read again, because rows were missed between pages
 *                  (store.h CST5)
 *
 * The stream's cursor (the tidemark) is the last day up to which everything is complete and final;
 * a day that is not final is stored, and fetched again by the next run.
 *
 * Invariants:
 *   CON1  the cursor never passes a day that is not completely stored or not final.
 *   CON2  a day is stored once, its rows by clicks in the order of the pages (store.h CST1).
 *   CON3  a permanent refusal of one page stops its site, with its date and reason, and no other
 *         site: a day with a missing page is never shown as complete (B6, refused.c).
 *   CON4  a run that is killed and restarted requests no page again whose job is done.
 */
#ifndef TIDE_CONSOLE_CONSOLE_H
#define TIDE_CONSOLE_CONSOLE_H

#include "console/store.h"
#include "db/rows.h"
#include "net/secrets.h"
#include "tidemark.h"

typedef struct tide_console tide_console;

enum {
    TIDE_CONSOLE_SITES_MAX = 1000,
    TIDE_CONSOLE_DAYS_MAX = 600, /* 16 months and a margin */
    TIDE_CONSOLE_WORKERS_MAX = 10,
    TIDE_CONSOLE_BATCH_MAX = 50,
};

struct tide_console_options {
    tide_engine *engine; /* borrowed; not started yet */
    tide_world *world;
    tide_secrets *secrets;
    const char *archive_dir; /* its folder console/ */
    unsigned workers;        /* HTTP requests in flight; 0: the account's setting */
    unsigned batch_max;      /* requests per batch; 0: likewise, or 1 with one worker (B12) */
    /* Receives each finished day (B2); any status but TIDE_OK halts the account, and err says why.
     * Called on a worker's thread; may be NULL. */
    tide_status (*on_day)(const char *site, const struct tide_console_set *set, const char *date,
                          uint64_t rows, void *arg, tide_error *err);
    void *on_day_arg;
};
/* Creates its tables in the ledger's database; also without an engine (for a copy of the
 * ledger). */
tide_status tide_console_tables(tide_rows db, tide_error *err);
/* Defines the kinds console.* and creates the tables. */
tide_status tide_console_open(const struct tide_console_options *options, tide_mem *mem,
                              tide_console **console_out, tide_error *err);
tide_status tide_console_close(tide_console *console, tide_error *err); /* after the engine */

/* Closes the files of accounts that this process no longer leases, so that another process can open
 * them.  A process on a shared ledger calls it about every second. */
tide_status tide_console_rest(tide_console *console, tide_error *err);

/* ---- sign-ins and sites ---- */

/* Writes the rows of a sign-in under a name of the user's choice ("console" by default) and of its
 * sites (system/system.h).  TIDE_INVALID: a site is neither a domain nor a URL-prefix property. */
struct tide_account_request;
tide_status tide_console_account_put(tide_rows db, uint32_t account,
                                     const struct tide_account_request *request, tide_error *err);
/* Stored days stay, and a site that is added again resumes where it was. */
tide_status tide_console_account_drop(tide_rows db, uint32_t account, tide_error *err);
tide_status tide_console_site_check(const char *site, tide_error *err);
void tide_console_secret_name(const char *name, char out[TIDE_SECRET_NAME_BYTES_MAX]);
struct tide_console_site {
    uint64_t id;
    uint32_t account;
    char account_name[128];
    char endpoint[512];
    char site[TIDE_SC_SITE_BYTES_MAX + 1];
};
/* TIDE_NOT_FOUND. */
tide_status tide_console_site(tide_engine *engine, const char *site,
                              struct tide_console_site *site_out, tide_error *err);

/* Stops fetching a site: cancels its jobs and waits a while for those that run, keeps stored days.
 * Added again, it resumes where it was.  TIDE_NOT_FOUND. */
tide_status tide_console_site_remove(tide_engine *engine, tide_world *world, tide_mem *mem,
                                     const char *site, tide_error *err);
typedef void tide_console_refused_visit(const char *site, const char *reason,
                                        uint64_t since_unix_ms, void *arg);

/* A job of this kind reads the properties of a sign-in from the server; no payload.  look.h has
 * the result. */
#define TIDE_CONSOLE_SITES_KIND "console.sites"

/* ---- running ---- */

struct tide_console_run {
    const char *site;
    uint32_t types;        /* bits; 0: web */
    uint32_t dimensions;   /* bits; 0: query, page, country, device */
    char from[16], to[16]; /* dates; "": `days` before the last final day; yesterday */
    uint32_t days;         /* 0: 480, sixteen months */
    bool sync;             /* without `from` and `days`: start at the first day of the series */
    bool no_totals;
    bool again;         /* also days that are stored and final */
    uint32_t row_limit; /* rows per page; 0: 25,000 */
};
/* TIDE_INVALID: not a date, not a range, too many rows. */
tide_status tide_console_run_check(const struct tide_console_run *run, tide_error *err);
uint32_t tide_console_types(const struct tide_console_run *run); /* bits, at least one */
/* Such a run of one type as a job of this kind with this payload and key; also for the engine of
 * another process. */
#define TIDE_CONSOLE_PLAN_KIND "console.plan"
struct tide_console_request {
    char payload[400];
    char dedupe[400];
};
void tide_console_request(const struct tide_console_site *site, const struct tide_console_run *run,
                          tide_sc_type type, struct tide_console_request *request_out);
/* Enqueues a plan for each type; joins a waiting or running plan for the same days. */
tide_status tide_console_run(tide_console *console, const struct tide_console_run *run,
                             tide_error *err);

/* What this process has done (B8); a snapshot of the engine has it for each sign-in. */
struct tide_console_state {
    struct tide_batch_state batches; /* of all sign-ins together */
    uint64_t days, rows, bytes;      /* stored, and received */
    uint64_t readings_more;          /* days that were read again, and how often */
    uint64_t rows_missing;           /* rows found on no page (store.h CST5) */
};
void tide_console_state(tide_console *console, struct tide_console_state *state_out);

#endif
