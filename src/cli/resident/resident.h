/* resident.h - the main loop of a process that stays: `tidemark serve` and `tidemark worker`.
 *
 * It opens the engine of the home, waits for a shared ledger that is out of reach, reports its
 * state to a service manager (cli/notify.h), reloads settings on SIGHUP, and on SIGTERM stops within
 * workers.stop_grace and a moment.  It logs events to standard error, one line each, with --json one
 * object each, and to the log of the home.
 *
 * Invariants:
 *   RES1  between two pieces of work it does not wake up: it waits for events (events.h).  On a
 *         shared ledger it looks once a second, because accounts come and go between machines.
 *   RES2  READY is reported after `started` returned TIDE_OK, so what it offers can be reached then.
 *   RES3  its thread does no work of a system, so it is always ready for a signal and the watchdog.
 */
#ifndef TIDE_CLI_RESIDENT_RESIDENT_H
#define TIDE_CLI_RESIDENT_RESIDENT_H

#include "cli/run/engine.h"
#include "cli/resident/events.h"

#include <sys/stat.h>

/* Zeroed, then the first part is set. */
struct cli_resident {
    struct cli *cli;
    const char *name;       /* "worker": of its log lines */
    struct cli_engine open; /* systems, accounts, workers, busy_hint */
    bool once;              /* end when no job is left that can run */
    /* The engine runs; and, in that order, it begins to stop, and nothing of it is used any more
     * before it is closed.  NULL: nothing to do. */
    tide_status (*started)(void *arg);
    void (*stopping)(void *arg);
    void (*stopped)(void *arg);
    void *arg;

    tide_log log;
    struct tide_system_teller teller;
    struct cli_events events;
    char lock_path[CLI_PATH_BYTES +
                   16]; /* the file whose lock makes the home ours, and which one it is */
    struct stat lock_file;
    uint64_t watchdog_ms, watchdog_at_ms, adopt_at_ms;
    bool joined, interrupted;
    bool stuck; /* after the run: a handler does not return and uses all of this */
    uint64_t put_back;
    struct tide_progress progress;
    char idle_failed[sizeof((tide_error *)0)->text]; /* what was logged of idle work last */
};

/* Runs until a signal or an error ends it, and fills in the result of the command. */
tide_status cli_resident_run(struct cli_resident *resident);
/* Logs an event with one field. */
void cli_resident_tell(struct cli_resident *resident, tide_log_level level, const char *event,
                       const char *key, const char *value);

#endif
