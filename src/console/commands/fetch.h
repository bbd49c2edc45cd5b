/* fetch.h - the work of `console sites`, `console backfill` and `console sync` (cli/run/work.h). */
#ifndef TIDE_CONSOLE_COMMANDS_FETCH_H
#define TIDE_CONSOLE_COMMANDS_FETCH_H

#include "cli/run/outcome.h"
#include "console/look.h"

/* The counts of a snapshot, which are also fields of the JSON. */
enum {
    CONSOLE_DAYS,
    CONSOLE_ROWS,
    CONSOLE_BYTES,
    CONSOLE_QUERIES,
    CONSOLE_BATCHES,
    CONSOLE_REFUSED,
    CONSOLE_MISSING,
    CONSOLE_READINGS_MORE,
    CONSOLE_COUNTS,
};
extern const char *const console_count_names[CONSOLE_COUNTS];

/* What an engine has done for a sign-in; engines come and go while a command runs. */
struct console_counts {
    uint64_t before[CONSOLE_COUNTS]; /* by engines that ended */
    uint64_t base[CONSOLE_COUNTS];   /* by this engine, before the command */
    uint64_t now[CONSOLE_COUNTS];
    uint64_t batch_size, batch_latency_ms;
    uint64_t done_looked; /* at the last full count */
};

struct console_fetch {
    struct cli *cli;
    struct cli_work work;
    struct tide_console_options options; /* workers, batch_max */
    uint64_t began_ms;                   /* unix time */

    struct tide_console_site sites[TIDE_CONSOLE_SITES_MAX]; /* to fetch; with work.kind: known */
    size_t sites_count;
    struct console_job {
        size_t site;
        struct tide_console_request request;
    } * jobs; /* owned */
    size_t jobs_count, jobs_capacity;
    struct console_counts *counts; /* like work.accounts */
};

/* What was done since the command began. */
uint64_t console_count(const struct console_counts *counts, size_t which);

/* NULL: no memory, with an error. */
struct console_fetch *console_fetch_new(struct cli *cli);
/* No sites: one job of this kind for each sign-in. */
void console_fetch_only(struct console_fetch *fetch, const char *kind);
/* Adds the jobs of a run for a site of `sites`. */
tide_status console_fetch_add(struct console_fetch *fetch, size_t site,
                              const struct tide_console_run *run);
/* Does the work for the sign-ins of the sites, or for this one; then sets the exit code, or returns
 * an error that says what is left. */
tide_status console_fetch_run(struct console_fetch *fetch, const char *account);
/* Only asks the running process to do it (cli_work_ask()). */
tide_status console_fetch_ask(struct console_fetch *fetch);
tide_status console_fetch_conclude(struct console_fetch *fetch); /* the second half of it */
/* Sets the numbers of the run in the JSON, and prints them if `rc` is TIDE_OK. */
void console_fetch_report(struct console_fetch *fetch, tide_status rc);
void console_refusal_json(tide_json *list, const char *site, const char *reason,
                          uint64_t since_unix_ms);
tide_status console_fetch_done(struct console_fetch *fetch); /* NULL is fine */

#endif
