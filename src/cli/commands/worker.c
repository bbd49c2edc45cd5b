/* worker.c - `tidemark worker`: one process of a fleet (docs/fleet.md).
 *
 * It runs an engine on a shared ledger with the kinds of all systems or of some, takes the
 * accounts whose archive is on this machine, and works until a signal stops it.  It logs
 * events to standard error, one line each, with --json one object each; a service
 * manager gets its state through notify.h.
 *
 * Only this thread takes signals, at one place with sigtimedwait(), so that there is no
 * code that must be safe inside a signal handler. */
#include "cli/log_file.h"
#include "cli/notify.h"
#include "cli/run/engine.h"

#include "base/limits.h"
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_MS = 1000,
    ADOPT_MS = 60000, /* accounts may be added while we run */
    STOP_TICK_MS = 50,
    STOP_MS_MAX = 60000, /* after that closing the engine waits */
    AWAY_FIRST_MS = 250, /* between two attempts to reach the server */
    AWAY_MS_MAX = 5000,
    ACCOUNTS_MAX = 64,
    LIST_BYTES = 4096,
};

struct worker {
    struct cli *cli;
    struct cli_engine open;
    tide_log log;
    char list[LIST_BYTES]; /* of --accounts, split into names */
    const char *names[ACCOUNTS_MAX];
    sigset_t signals;
    uint64_t watchdog_ms, watchdog_at_ms, adopt_at_ms;
    bool once, joined, interrupted;
    uint64_t put_back;
    struct tide_progress progress;
};

/* ---- flags ---- */

static tide_status unknown_system(struct cli *cli, const char *name, int bytes)
{
    char hint[200] = "Systems:";
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const size_t used = strlen(hint);
        (void)snprintf(hint + used, sizeof hint - used, "%s %s", i == 0 ? "" : ",",
                       cli->systems[i]->name);
    }
    (void)strncat(hint, ".", sizeof hint - strlen(hint) - 1);
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(cli, TIDE_INVALID, hint, "--kinds: there is no \"%.*s\"", bytes, name);
}

static tide_status kinds_of_flag(struct worker *worker, const char *flag)
{
    struct cli *cli = worker->cli;
    if (flag == NULL)
        archive_here_take_all(&worker->open.here, cli);
    for (const char *at = flag; at != NULL;) {
        const size_t bytes = strcspn(at, ",");
        const struct tide_system *system = tide_system_named(cli->systems, (tide_text){at, bytes});
        if (system == NULL)
            return unknown_system(cli, at, (int)(bytes > 60 ? 60 : bytes));
        if (!archive_here_takes(&worker->open.here, system))
            archive_here_take(&worker->open.here, system);
        at = at[bytes] == '\0' ? NULL : at + bytes + 1;
    }
    return TIDE_OK;
}

static tide_status accounts_of_flag(struct worker *worker, const char *flag)
{
    struct cli *cli = worker->cli;
    cli->exit_code = CLI_EXIT_USAGE;
    if (flag != NULL && strlen(flag) >= sizeof worker->list)
        return cli_fail(cli, TIDE_INVALID, "Name fewer.", "--accounts is too long");
    (void)snprintf(worker->list, sizeof worker->list, "%s", flag == NULL ? "" : flag);
    for (char *at = flag == NULL ? NULL : worker->list; at != NULL;) {
        char *comma = strchr(at, ',');
        if (comma != NULL)
            *comma = '\0';
        if (*at == '\0' || worker->open.here.accounts_count == ACCOUNTS_MAX)
            return cli_fail(cli, TIDE_INVALID,
                            "Separate them with commas: a@example.org,b@example.org.",
                            "--accounts has an empty name, or more than %d", ACCOUNTS_MAX);
        worker->names[worker->open.here.accounts_count++] = at;
        at = comma == NULL ? NULL : comma + 1;
    }
    worker->open.here.accounts = worker->names;
    cli->exit_code = CLI_EXIT_DONE;
    return TIDE_OK;
}

static tide_status flags_read(struct worker *worker)
{
    struct cli *cli = worker->cli;
    const char *workers = cli_flag(cli, "workers");
    uint64_t count = 0;
    worker->once = cli_flag(cli, "once") != NULL;
    tide_status rc = kinds_of_flag(worker, cli_flag(cli, "kinds"));
    if (rc == TIDE_OK)
        rc = accounts_of_flag(worker, cli_flag(cli, "accounts"));
    if (rc == TIDE_OK && workers != NULL)
        rc = cli_number(cli, workers, "--workers", &count);
    if (rc == TIDE_OK && workers != NULL && (count == 0 || count > TIDE_WORKERS_MAX)) {
        cli->exit_code = CLI_EXIT_USAGE;
        rc = cli_fail(cli, TIDE_INVALID, "Omit it to use the setting workers.count.",
                      "--workers must be between 1 and %d", TIDE_WORKERS_MAX);
    }
    worker->open.workers = (uint32_t)count;
    return rc;
}

/* ---- opening ---- */

static void tell(struct worker *worker, tide_log_level level, const char *event, const char *key,
                 const char *value)
{
    tide_log_event(&worker->log, level, tide_world_now_unix_ms(worker->cli->world), event,
                   TIDE_F_CSTR(key, value));
}

static void log_open(struct worker *worker)
{
    struct cli *cli = worker->cli;
    char name[40];
    (void)snprintf(name, sizeof name, "worker-%d", (int)getpid());
    tide_log_init(&worker->log,
                  cli->quiet     ? TIDE_LOG_WARN
                  : cli->verbose ? TIDE_LOG_DEBUG
                                 : TIDE_LOG_INFO,
                  cli->want_json ? TIDE_LOG_JSON : TIDE_LOG_PLAIN, name, tide_log_to_file, stderr);
    worker->log.also = cli_log_file(cli);
}

static tide_status worker_open(struct worker *worker)
{
    struct cli *cli = worker->cli;
    worker->open.log = &worker->log;
    worker->open.busy_hint =
        "A directory can have one worker. Stop the other one, or name another directory with "
        "--home DIR.";
    return cli_shared_hint(cli, cli_engine_open(cli, &worker->open));
}

/* ---- working ---- */

/* Waits for a signal; false: none came. */
static bool signal_waits(struct worker *worker, long wait_ms)
{
    const struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000};
    return sigtimedwait(&worker->signals, NULL, &wait) > 0;
}

/* Lets each system do a piece of what it has for idle times. */
static tide_status idle_some(struct worker *worker, bool *more_out)
{
    tide_status rc = TIDE_OK;
    *more_out = false;
    for (size_t i = 0; rc == TIDE_OK && i < worker->open.here.taken_count; i++) {
        bool more = false;
        if (worker->open.here.taken[i]->idle != NULL)
            rc = worker->open.here.taken[i]->idle(worker->open.states[i], &more, &worker->cli->err);
        *more_out = *more_out || more;
    }
    return rc;
}

/* Closes archives of accounts that are no longer ours: another process may open them. */
static void rest(struct worker *worker)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < worker->open.here.taken_count; i++)
        if (worker->open.here.taken[i]->rest != NULL)
            rc = worker->open.here.taken[i]->rest(worker->open.states[i], &err);
    /* Not fatal: only durable work was recorded as done; the other accounts continue. */
    if (rc != TIDE_OK)
        tell(worker, TIDE_LOG_WARN, "closing an archive failed", "detail", err.text);
}

static void adopt(struct worker *worker, uint64_t now_ms)
{
    struct cli *cli = worker->cli;
    unsigned count = 0;
    char text[32];
    if (now_ms < worker->adopt_at_ms)
        return;
    worker->adopt_at_ms = now_ms + ADOPT_MS;
    const tide_status rc =
        archive_here_adopt(cli, &worker->open.here, worker->open.secrets, &count);
    (void)snprintf(text, sizeof text, "%u", count);
    if (rc == TIDE_OK && count > 0)
        tell(worker, TIDE_LOG_INFO, "accounts assigned to the archive here", "count", text);
    else if (rc != TIDE_OK)
        tell(worker, TIDE_LOG_WARN, "cannot check for accounts without an archive", "detail",
             cli->err.text);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    cli->exit_code = CLI_EXIT_DONE;
}

static void keep_watchdog(struct worker *worker, uint64_t now_ms)
{
    if (worker->watchdog_ms == 0 || now_ms < worker->watchdog_at_ms)
        return;
    worker->watchdog_at_ms = now_ms + worker->watchdog_ms;
    (void)cli_notify("WATCHDOG=1");
}

/* Takes the engine's lock: a hanging engine blocks here and is no longer reported alive. */
static void report_alive(struct worker *worker, uint64_t now_ms)
{
    const struct tide_progress before = worker->progress;
    tide_engine_progress(worker->open.engine, &worker->progress);
    const struct tide_progress *now = &worker->progress;
    const uint32_t running = now->running[0] + now->running[1];
    if (now->done != before.done || now->failed != before.failed ||
        running != before.running[0] + before.running[1])
        (void)cli_notify("STATUS=%" PRIu32 " jobs run; %" PRIu64 " done, %" PRIu64 " failed",
                         running, now->done, now->failed);
    keep_watchdog(worker, now_ms);
}

static tide_status work(struct worker *worker)
{
    struct cli *cli = worker->cli;
    bool more = false;
    for (;;) {
        const uint64_t now_ms = tide_world_now_ms(cli->world);
        long wait_ms = more ? 0 : TICK_MS;
        if (worker->watchdog_ms > 0 && (uint64_t)wait_ms > worker->watchdog_ms)
            wait_ms = (long)worker->watchdog_ms;
        adopt(worker, now_ms);
        report_alive(worker, now_ms);
        tide_status rc = tide_engine_wait(worker->open.engine, 0, &cli->err);
        if (rc != TIDE_OK && rc != TIDE_TIMEOUT)
            return rc;
        if (rc == TIDE_OK && worker->once && !more) {
            rc = idle_some(worker, &more);
            if (rc != TIDE_OK || !more)
                return rc;
        }
        worker->interrupted = signal_waits(worker, wait_ms);
        if (worker->interrupted)
            return TIDE_STOPPED;
        rest(worker);
        rc = idle_some(worker, &more);
        if (rc != TIDE_OK)
            return rc;
    }
}

/* E7.4: running jobs get time to end, the rest is put back.  A second signal ends the program at
 * once; nothing is lost by that either. */
static void stop(struct worker *worker)
{
    struct cli *cli = worker->cli;
    struct tide_progress before, now;
    (void)cli_notify("STOPPING=1\nSTATUS=stopping");
    tell(worker, TIDE_LOG_INFO, "stopping", "ledger", cli_shared_name(cli));
    tide_engine_progress(worker->open.engine, &before);
    tide_engine_stop(worker->open.engine);
    const uint64_t until_ms = tide_world_now_ms(cli->world) + STOP_MS_MAX;
    do {
        if (signal_waits(worker, STOP_TICK_MS)) {
            (void)signal(SIGTERM, SIG_DFL);
            (void)sigprocmask(SIG_UNBLOCK, &worker->signals, NULL);
            (void)raise(SIGTERM);
        }
        tide_engine_progress(worker->open.engine, &now);
    } while (!now.idle && tide_world_now_ms(cli->world) < until_ms);
    const uint64_t ran = (uint64_t)before.running[0] + before.running[1];
    const uint64_t ended = now.done - before.done + now.failed - before.failed + now.retried -
                           before.retried + now.split - before.split;
    worker->put_back = ran > ended ? ran - ended : 0;
    worker->progress = now;
}

static tide_status conclude(struct worker *worker, tide_status rc)
{
    struct cli *cli = worker->cli;
    if (rc != TIDE_OK && rc != TIDE_STOPPED)
        return cli_shared_hint(cli, rc);
    const struct tide_progress *now = &worker->progress;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    if (!cli->quiet && !worker->joined)
        cli_print(cli, "waited for %s: nothing was done\n", cli_shared_name(cli));
    else if (!cli->quiet)
        cli_print(cli, "worked on %s: %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " put back\n",
                  cli_shared_name(cli), now->done, now->failed, worker->put_back);
    tide_json_set_cstr(&cli->json, "ledger", cli_shared_name(cli));
    tide_json_set_u64(&cli->json, "done", now->done);
    tide_json_set_u64(&cli->json, "failed", now->failed);
    tide_json_set_u64(&cli->json, "put_back", worker->put_back);
    tide_json_set_bool(&cli->json, "interrupted", worker->interrupted);
    cli->exit_code = worker->put_back > 0 || !worker->joined ? CLI_EXIT_INTERRUPTED : CLI_EXIT_DONE;
    return TIDE_OK;
}

static tide_status join(struct worker *worker)
{
    struct cli *cli = worker->cli;
    /* Only the owner creates tables (`ledger migrate`), never a worker that happens to have
     * the rights. */
    tide_status rc = cli_ledger_read(cli);
    cli_ledger_close(cli);
    if (rc == TIDE_OK)
        rc = worker_open(worker);
    if (rc == TIDE_OK)
        rc = cli_shared_hint(cli, tide_engine_start(worker->open.engine, &cli->err));
    return rc;
}

/* Waits until the next attempt; false: a signal came first. */
static bool wait_away(struct worker *worker, uint64_t wait_ms)
{
    const uint64_t until_ms = tide_world_now_ms(worker->cli->world) + wait_ms;
    for (;;) {
        const uint64_t now_ms = tide_world_now_ms(worker->cli->world);
        keep_watchdog(worker, now_ms);
        if (now_ms >= until_ms)
            return true;
        uint64_t tick_ms = until_ms - now_ms;
        if (worker->watchdog_ms > 0 && tick_ms > worker->watchdog_ms)
            tick_ms = worker->watchdog_ms;
        if (signal_waits(worker, (long)tick_ms))
            return false;
    }
}

/* Waits for a server that cannot be reached at the start, as later; other errors (a wrong
 * password, a missing database) do not fix themselves and end the worker. */
static tide_status join_or_wait(struct worker *worker)
{
    struct cli *cli = worker->cli;
    uint64_t away_ms = 0;
    for (;;) {
        tide_status rc = join(worker);
        if (rc == TIDE_OK && away_ms > 0)
            tell(worker, TIDE_LOG_INFO, "ledger reached again", "ledger", cli_shared_name(cli));
        if ((rc != TIDE_NETWORK && rc != TIDE_TIMEOUT) || worker->once)
            return rc;
        if (away_ms == 0) {
            /* This process is fine: the service manager must neither wait for it nor restart it. */
            tell(worker, TIDE_LOG_WARN, "ledger out of reach", "detail", cli->err.text);
            (void)cli_notify("READY=1\nSTATUS=waiting for %s", cli_shared_name(cli));
        }
        if (cli_engine_close(worker->cli, &worker->open) == TIDE_TIMEOUT)
            return rc;
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        cli->exit_code = CLI_EXIT_DONE;
        away_ms = away_ms == 0 ? AWAY_FIRST_MS : away_ms * 2;
        away_ms = away_ms < AWAY_MS_MAX ? away_ms : AWAY_MS_MAX;
        /* A random part: many workers wait for the same server. */
        if (!wait_away(worker, away_ms / 2 + tide_world_random_u64(cli->world) % away_ms))
            return TIDE_STOPPED;
    }
}

static tide_status run(struct worker *worker)
{
    struct cli *cli = worker->cli;
    (void)cli_notify("STATUS=connecting to %s", cli_shared_name(cli));
    worker->watchdog_ms = cli_notify_watchdog_ms();
    tide_status rc = join_or_wait(worker);
    if (rc == TIDE_STOPPED) {
        (void)cli_notify("STOPPING=1\nSTATUS=stopping");
        worker->interrupted = true;
        return conclude(worker, rc);
    }
    if (rc != TIDE_OK)
        return rc;
    worker->joined = cli->ledger_reached = true;
    tell(worker, TIDE_LOG_INFO, "joined", "ledger", cli_shared_name(cli));
    (void)cli_notify("READY=1\nSTATUS=working on %s", cli_shared_name(cli));
    rc = work(worker);
    stop(worker);
    return conclude(worker, rc);
}

tide_status cli_worker(struct cli *cli)
{
    struct worker *worker = tide_mem_new(cli->mem, sizeof *worker);
    if (worker == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    worker->cli = cli;
    tide_status rc = flags_read(worker);
    if (rc == TIDE_OK)
        rc = cli_shared_only(cli);
    if (rc == TIDE_OK) {
        log_open(worker);
        /* Before any thread starts, so that all of them leave signals to this one. */
        (void)sigemptyset(&worker->signals);
        (void)sigaddset(&worker->signals, SIGTERM);
        (void)sigaddset(&worker->signals, SIGINT);
        (void)sigprocmask(SIG_BLOCK, &worker->signals, NULL);
        rc = run(worker);
    }
    const tide_status closed = cli_engine_close(worker->cli, &worker->open);
    if (closed != TIDE_TIMEOUT)
        tide_mem_free(cli->mem, worker, sizeof *worker);
    return rc == TIDE_OK ? closed : rc;
}
