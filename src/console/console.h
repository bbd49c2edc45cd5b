/* console.h - Search Console backfill on the engine (B1-B11).
 *
 * A date is a cycle of its series' stream; a request (date, start row) is a job of it.
 * The handlers of many jobs meet in a batcher (net/batch/batch.h), so that up to fifty
 * requests travel in one HTTP request and several of those fly.
 *
 *   console.plan   asks which day is the last final one, looks which days are missing,
 *                  and opens a cycle for each, oldest first; later days get jobs
 *                  without a cycle
 *   console.page   one request: the totals of a day, then page after page of its rows,
 *                  each the child of the one before it; the last one makes the day
 *                  visible in one transaction (B2), or has it read again, because rows
 *                  fell between pages (store.h V5)
 *
 * The stream's cursor is the last day up to which everything is complete and final; a
 * day that is not final is stored, and fetched again by the next run.
 *
 * Invariants:
 *   K1  the cursor never passes a day that is not stored whole, or not final.
 *   K2  a day is stored once, its rows by clicks as the pages gave them (store.h V1).
 *   K3  a permanent refusal of one page stops its site, with its date and reason, and no other
 *       site: a day with a missing page is never shown as complete (B6, refused.c).
 *   K4  a run that is killed and started again asks for no page again whose job is done.
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
    TIDE_CONSOLE_DAYS_MAX = 600, /* 16 months, and some */
    TIDE_CONSOLE_WORKERS_MAX = 10,
    TIDE_CONSOLE_BATCH_MAX = 50,
};

struct tide_console_options {
    tide_engine *engine; /* borrowed; not started yet */
    tide_world *world;
    tide_secrets *secrets;
    const char *archive_dir; /* its folder console/ */
    unsigned workers;        /* HTTP requests in the air; 0: 3 */
    unsigned batch_max;      /* parts of one; 0: 50, or 1 with one worker */
    /* The receiver of a finished day (B2); anything but TIDE_OK halts the account, and
     * err says why.  On a worker's thread; may be NULL. */
    tide_status (*on_day)(const char *site, const struct tide_console_set *set, const char *date,
                          uint64_t rows, void *arg, tide_error *err);
    void *on_day_arg;
};
/* Its rows beside the ledger; also where no engine runs (a copy of the ledger). */
tide_status tide_console_tables(tide_rows db, tide_error *err);
/* Defines the kinds console.* and makes its tables. */
tide_status tide_console_open(const struct tide_console_options *options, tide_mem *mem,
                              tide_console **console_out, tide_error *err);
tide_status tide_console_close(tide_console *console, tide_error *err); /* after the engine */

/* Closes the files of accounts that this process no longer holds, so that another one may
 * have them.  For a process that works on a shared ledger, every second or so. */
tide_status tide_console_rest(tide_console *console, tide_error *err);

/* ---- sign-ins and sites ---- */

/* A sign-in has a name of the person's own ("console" unless said); known ones get the
 * new endpoint ("": Google's).  Its files are in our directory from now on
 * (engine/accounts/archive_id.h).  TIDE_INVALID: a shared ledger says that they are elsewhere. */
tide_status tide_console_account_add(tide_console *console, const char *name, const char *endpoint,
                                     tide_error *err);
/* Whether the files that the ledger names are in this directory: only then may a process
 * take the account (tide_engine_options.may_take). */
bool tide_console_is_here(tide_world *world, const char *archive_dir, const char *archive);
/* TIDE_INVALID: neither a domain nor a URL-prefix property. */
tide_status tide_console_site_add(tide_console *console, const char *name, const char *site,
                                  tide_error *err);
tide_status tide_console_site_check(const char *site, tide_error *err);
void tide_console_secret_name(const char *name, char out[TIDE_SECRET_NAME_BYTES_MAX]);
struct tide_console_site {
    uint64_t id;
    uint32_t account;
    char account_name[128];
    char endpoint[512];
    char site[TIDE_SC_SITE_BYTES_MAX + 1];
};
/* Sites that were added, by name. */
tide_status tide_console_sites(tide_console *console,
                               void (*visit)(const struct tide_console_site *site, void *arg),
                               void *arg, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_console_site(tide_console *console, const char *site,
                              struct tide_console_site *site_out, tide_error *err);

/* Stops fetching a site: its jobs are canceled, what is stored stays.  Added again, it goes on
 * where it was.  TIDE_NOT_FOUND.  The engine is open and has not been started. */
tide_status tide_console_site_remove(tide_console *console, const char *site, tide_error *err);
/* Sites that the server refuses for good, and since when; by name. */
typedef void tide_console_refused_visit(const char *site, const char *reason,
                                        uint64_t since_unix_ms, void *arg);
tide_status tide_console_refused(tide_console *console, tide_console_refused_visit *visit,
                                 void *arg, tide_error *err);

/* Asks the server for the properties of a sign-in: a job of its own.  What it found is
 * visited when the engine is quiet again. */
tide_status tide_console_list(tide_console *console, const char *name, tide_error *err);
void tide_console_listed(tide_console *console,
                         void (*visit)(const char *site, const char *level, void *arg), void *arg);

/* ---- running ---- */

struct tide_console_run {
    const char *site;
    uint32_t types;        /* bits; 0: web */
    uint32_t dimensions;   /* bits; 0: query, page, country, device */
    char from[16], to[16]; /* dates; "": `days` before the last final day; yesterday */
    uint32_t days;         /* 0: 480, sixteen months */
    bool sync;             /* without `from` and `days`: from the first day of the series */
    bool no_totals;
    bool again;         /* days that are stored and final too */
    uint32_t row_limit; /* of a page; 0: 25,000 */
};
/* Enqueues a plan for each type; one for the same days that waits or runs is joined. */
tide_status tide_console_run(tide_console *console, const struct tide_console_run *run,
                             tide_error *err);

/* What this process has done so far (B8). */
struct tide_console_state {
    struct tide_batch_state batches; /* of all sign-ins together */
    uint64_t days, rows, bytes;      /* stored, and received */
    uint64_t readings_more;          /* days that were read again, and how often */
    uint64_t rows_missing;           /* on no page, however often (store.h, V5) */
};
/* On a shared ledger: what another process, or this one at its next look, may do of what was
 * asked for here.  0 on a ledger of our own, whose engine is quiet when all is done. */
tide_status tide_console_waiting(tide_console *console, uint64_t *count_out, tide_error *err);
void tide_console_state(tide_console *console, struct tide_console_state *state_out);
/* Requests of a site that are not done: 0 when everything that was asked for is stored. */
tide_status tide_console_left(tide_console *console, const char *site, uint64_t *left_out,
                              tide_error *err);
/* Whether a sign-in of this process was refused; the text says why. */
bool tide_console_signed_out(tide_console *console, char name_out[128], char text_out[400]);
/* Whether the receiver of days halted the run, and why (B2). */
bool tide_console_halted(tide_console *console, char text_out[400]);

#endif
