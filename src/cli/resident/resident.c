#include "cli/resident/resident.h"

#include "cli/log_file.h"
#include "cli/notify.h"
#include "engine/reload.h"
#include "ledger/home.h"
#include "tidemark_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TICK_MS = 1000,
    ADOPT_MS = 60000,    /* accounts may be added while we run */
    STOP_TICK_MS = 50,   /* while it ends */
    STOP_MS_MAX = 60000, /* after that closing the engine waits */
    AWAY_FIRST_MS = 250, /* between two attempts to reach the server */
    AWAY_MS_MAX = 5000,
    FOREVER = -1,
};

static const char *ledger_name(const struct cli *cli)
{
    return cli->shared != NULL ? cli_shared_name(cli) : cli->ledger_path;
}

/* ---- telling ---- */

static tide_status hint(struct cli *cli, tide_status rc)
{
    return cli->shared != NULL ? cli_shared_hint(cli, rc)
                               : cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

void cli_resident_tell(struct cli_resident *resident, tide_log_level level, const char *event,
                       const char *key, const char *value)
{
    tide_log_event(&resident->log, level, tide_world_now_unix_ms(resident->cli->world), event,
                   TIDE_F_CSTR(key, value));
}

static void log_open(struct cli_resident *resident)
{
    struct cli *cli = resident->cli;
    char name[40];
    (void)snprintf(name, sizeof name, "%s-%d", resident->name, (int)getpid());
    tide_log_init(&resident->log,
                  cli->quiet     ? TIDE_LOG_WARN
                  : cli->verbose ? TIDE_LOG_DEBUG
                                 : TIDE_LOG_INFO,
                  cli->want_json ? TIDE_LOG_JSON : TIDE_LOG_PLAIN, name, tide_log_to_file, stderr);
    resident->log.also = cli_log_file(cli);
}

/* ---- watching ---- */

static void tell_of_watch(void *arg, const char *what, bool trouble, const char *text)
{
    struct cli_resident *resident = arg;
    tide_log_event(&resident->log, trouble ? TIDE_LOG_WARN : TIDE_LOG_INFO,
                   tide_world_now_unix_ms(resident->cli->world),
                   trouble ? "watching is in trouble" : "watching", TIDE_F_CSTR("what", what),
                   TIDE_F_CSTR("detail", text));
}

/* Without it the process does its other work. */
static void watch(struct cli_resident *resident)
{
    resident->teller = (struct tide_system_teller){tell_of_watch, resident};
    for (size_t i = 0; !resident->once && i < resident->open.here.taken_count; i++) {
        const struct tide_system *system = resident->open.here.taken[i];
        tide_error err = {TIDE_OK, 0, ""};
        if (system->watch != NULL &&
            system->watch(resident->open.states[i], &resident->teller, &err) != TIDE_OK)
            tell_of_watch(resident, system->name, true, err.text);
    }
}

static void watch_end(struct cli_resident *resident)
{
    for (size_t i = 0; !resident->once && i < resident->open.here.taken_count; i++)
        if (resident->open.here.taken[i]->watch_end != NULL)
            resident->open.here.taken[i]->watch_end(resident->open.states[i]);
}

/* ---- between jobs ---- */

/* Lets each system begin what it has for idle times (RES3). */
static tide_status idle_some(struct cli_resident *resident, bool *more_out)
{
    tide_status rc = TIDE_OK;
    *more_out = false;
    for (size_t i = 0; rc == TIDE_OK && i < resident->open.here.taken_count; i++) {
        bool more = false;
        if (resident->open.here.taken[i]->idle != NULL)
            rc = resident->open.here.taken[i]->idle(resident->open.states[i], &more,
                                                    &resident->cli->err);
        *more_out = *more_out || more;
    }
    return rc;
}

/* Closes archives of accounts that are no longer ours: another process may open them. */
static void rest(struct cli_resident *resident)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < resident->open.here.taken_count; i++)
        if (resident->open.here.taken[i]->rest != NULL)
            rc = resident->open.here.taken[i]->rest(resident->open.states[i], &err);
    /* Not fatal: only durable work was recorded as done; the other accounts continue. */
    if (rc != TIDE_OK)
        cli_resident_tell(resident, TIDE_LOG_WARN, "closing an archive failed", "detail", err.text);
}

static void adopt(struct cli_resident *resident, uint64_t now_ms)
{
    struct cli *cli = resident->cli;
    unsigned count = 0;
    char text[32];
    if (cli->shared == NULL || now_ms < resident->adopt_at_ms)
        return;
    resident->adopt_at_ms = now_ms + ADOPT_MS;
    const tide_status rc =
        archive_here_adopt(cli, &resident->open.here, resident->open.secrets, &count);
    (void)snprintf(text, sizeof text, "%u", count);
    if (rc == TIDE_OK && count > 0)
        cli_resident_tell(resident, TIDE_LOG_INFO, "accounts assigned to the archive here", "count",
                          text);
    else if (rc != TIDE_OK)
        cli_resident_tell(resident, TIDE_LOG_WARN, "cannot check for accounts without an archive",
                          "detail", cli->err.text);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    cli->exit_code = CLI_EXIT_DONE;
}

static void keep_watchdog(struct cli_resident *resident, uint64_t now_ms)
{
    if (resident->watchdog_ms == 0 || now_ms < resident->watchdog_at_ms)
        return;
    resident->watchdog_at_ms = now_ms + resident->watchdog_ms;
    (void)cli_notify("WATCHDOG=1");
}

/* Takes the engine's lock: a hanging engine blocks here and is no longer reported alive. */
static void report_alive(struct cli_resident *resident, uint64_t now_ms)
{
    const struct tide_progress before = resident->progress;
    tide_engine_progress(resident->open.engine, &resident->progress);
    const struct tide_progress *now = &resident->progress;
    const uint32_t running = now->running[0] + now->running[1];
    if (now->done != before.done || now->failed != before.failed ||
        running != before.running[0] + before.running[1])
        (void)cli_notify("STATUS=%" PRIu32 " jobs run; %" PRIu64 " done, %" PRIu64 " failed",
                         running, now->done, now->failed);
    keep_watchdog(resident, now_ms);
}

/* Indexing and the like.  A damaged archive must not end a process that serves others, too; with
 * --once the command reports it. */
static tide_status idle_or_tell(struct cli_resident *resident, bool *more_out)
{
    struct cli *cli = resident->cli;
    const tide_status rc = idle_some(resident, more_out);
    if (rc == TIDE_OK || resident->once)
        return rc;
    if (strcmp(resident->idle_failed, cli->err.text) != 0)
        cli_resident_tell(resident, TIDE_LOG_WARN, "idle work failed", "detail", cli->err.text);
    (void)snprintf(resident->idle_failed, sizeof resident->idle_failed, "%s", cli->err.text);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    *more_out = false;
    return TIDE_OK;
}

static void reload(struct cli_resident *resident)
{
    bool changed[TIDE_SETTINGS_COUNT] = {false};
    bool restart[TIDE_SETTINGS_COUNT] = {false};
    tide_error err = {TIDE_OK, 0, ""};
    if (tide_engine_reload(resident->open.engine, changed, restart, &err) == TIDE_OK)
        cli_resident_tell(resident, TIDE_LOG_INFO, "settings reloaded", "file",
                          resident->cli->config_path);
    else
        cli_resident_tell(resident, TIDE_LOG_ERROR, "settings refused", "detail", err.text);
}

static void follow(struct cli_resident *resident, unsigned happened)
{
    if ((happened & CLI_EVENT_RELOAD) != 0)
        reload(resident);
    if ((happened & CLI_EVENT_SETTINGS) != 0)
        tide_engine_settings_changed(resident->open.engine);
    if ((happened & CLI_EVENT_CLOCK) != 0)
        tide_engine_clock_changed(resident->open.engine);
}

/* What it would write from now on nobody would find, and the next command would begin a home of its
 * own beside it.  Checked whenever this thread wakes up, too: no event tells that a parent directory was
 * moved, that something was mounted over it, or what happens on the server of a network file system. */
static tide_status home_check(struct cli_resident *resident)
{
    struct cli *cli = resident->cli;
    struct stat now;
    if (resident->lock_file.st_nlink == 0)
        return TIDE_OK; /* it could not be seen when the engine was opened */
    if (stat(resident->lock_path, &now) == 0
            ? now.st_ino == resident->lock_file.st_ino && now.st_dev == resident->lock_file.st_dev
            : errno != ENOENT && errno != ENOTDIR)
        return TIDE_OK;
    return cli_fail(cli, TIDE_NOT_FOUND,
                    "Put it back, or restore it with `tidemark restore`, then start this again.",
                    "%.300s was deleted or moved while this process used it", cli->state_dir);
}

static void home_watch(struct cli_resident *resident)
{
    const char *dir = resident->cli->state_dir;
    (void)snprintf(resident->lock_path, sizeof resident->lock_path, "%s/" TIDE_CONTROL_LOCK, dir);
    cli_events_home(&resident->events, dir, resident->lock_path);
    if (stat(resident->lock_path, &resident->lock_file) != 0)
        resident->lock_file = (struct stat){.st_nlink = 0};
}

/* RES1. */
static long wait_ms(const struct cli_resident *resident, bool more)
{
    long wait = FOREVER;
    if (more && resident->once)
        wait = STOP_TICK_MS;
    else if (resident->cli->shared != NULL || resident->once || !resident->progress.idle)
        wait = TICK_MS;
    if (resident->watchdog_ms > 0 && (wait < 0 || (uint64_t)wait > resident->watchdog_ms))
        wait = (long)resident->watchdog_ms;
    return wait;
}

static tide_status work(struct cli_resident *resident)
{
    struct cli *cli = resident->cli;
    for (;;) {
        bool more = false;
        const uint64_t now_ms = tide_world_now_ms(cli->world);
        adopt(resident, now_ms);
        report_alive(resident, now_ms);
        tide_status rc = tide_engine_wait(resident->open.engine, 0, &cli->err);
        if (rc != TIDE_OK && rc != TIDE_TIMEOUT)
            return rc;
        if (rc == TIDE_OK)
            rc = idle_or_tell(resident, &more);
        if ((rc != TIDE_OK && rc != TIDE_TIMEOUT) || (rc == TIDE_OK && resident->once && !more))
            return rc;
        const unsigned happened = cli_events_wait(&resident->events, wait_ms(resident, more));
        resident->interrupted = (happened & CLI_EVENT_STOP) != 0;
        if (resident->interrupted)
            return TIDE_STOPPED;
        TIDE_TRY(home_check(resident));
        follow(resident, happened);
        rest(resident);
    }
}

/* ---- stopping ---- */

/* E7.4: running jobs get time to end, the rest is put back.  A second signal ends the program at
 * once; nothing is lost by that either. */
static void stop(struct cli_resident *resident)
{
    struct cli *cli = resident->cli;
    struct tide_progress before, now;
    (void)cli_notify("STOPPING=1\nSTATUS=stopping");
    cli_resident_tell(resident, TIDE_LOG_INFO, "stopping", "ledger", ledger_name(cli));
    watch_end(resident);
    tide_engine_progress(resident->open.engine, &before);
    tide_engine_stop(resident->open.engine);
    if (resident->stopping != NULL)
        resident->stopping(resident->arg);
    const uint64_t until_ms = tide_world_now_ms(cli->world) + STOP_MS_MAX;
    do {
        if ((cli_events_wait(&resident->events, STOP_TICK_MS) & CLI_EVENT_STOP) != 0)
            cli_events_die();
        tide_engine_progress(resident->open.engine, &now);
    } while (!now.idle && tide_world_now_ms(cli->world) < until_ms);
    const uint64_t ran = (uint64_t)before.running[0] + before.running[1];
    const uint64_t ended = now.done - before.done + now.failed - before.failed + now.retried -
                           before.retried + now.split - before.split;
    resident->put_back = ran > ended ? ran - ended : 0;
    resident->progress = now;
}

static tide_status conclude(struct cli_resident *resident, tide_status rc)
{
    struct cli *cli = resident->cli;
    if (rc != TIDE_OK && rc != TIDE_STOPPED)
        return hint(cli, rc);
    const struct tide_progress *now = &resident->progress;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    if (!cli->quiet && !resident->joined)
        cli_print(cli, "waited for %s: nothing was done\n", ledger_name(cli));
    else if (!cli->quiet)
        cli_print(cli, "worked on %s: %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " put back\n",
                  ledger_name(cli), now->done, now->failed, resident->put_back);
    tide_json_set_cstr(&cli->json, "ledger", ledger_name(cli));
    tide_json_set_u64(&cli->json, "done", now->done);
    tide_json_set_u64(&cli->json, "failed", now->failed);
    tide_json_set_u64(&cli->json, "put_back", resident->put_back);
    tide_json_set_bool(&cli->json, "interrupted", resident->interrupted);
    cli->exit_code =
        resident->put_back > 0 || !resident->joined ? CLI_EXIT_INTERRUPTED : CLI_EXIT_DONE;
    return TIDE_OK;
}

/* ---- opening ---- */

static tide_status engine_open(struct cli_resident *resident)
{
    struct cli *cli = resident->cli;
    resident->open.log = &resident->log;
    const tide_status rc = hint(cli, cli_engine_open(cli, &resident->open));
    if (rc != TIDE_OK)
        return rc;
    home_watch(resident);
    tide_engine_watch(resident->open.engine, cli_events_wake, &resident->events);
    if (resident->events.settings >= 0)
        tide_engine_settings_watched(resident->open.engine);
    if (resident->events.clock >= 0)
        tide_engine_clock_watched(resident->open.engine);
    return TIDE_OK;
}

static tide_status join(struct cli_resident *resident)
{
    struct cli *cli = resident->cli;
    /* Only the owner creates tables of a shared ledger (`ledger migrate`), never a process that
     * happens to have the rights. */
    tide_status rc = cli->shared == NULL ? TIDE_OK : cli_ledger_read(cli);
    cli_ledger_close(cli);
    if (rc == TIDE_OK)
        rc = engine_open(resident);
    if (rc == TIDE_OK)
        rc = hint(cli, tide_engine_start(resident->open.engine, &cli->err));
    return rc;
}

/* Waits until the next attempt; false: a signal came first. */
static bool wait_away(struct cli_resident *resident, uint64_t wait_ms)
{
    const uint64_t until_ms = tide_world_now_ms(resident->cli->world) + wait_ms;
    for (;;) {
        const uint64_t now_ms = tide_world_now_ms(resident->cli->world);
        keep_watchdog(resident, now_ms);
        if (now_ms >= until_ms)
            return true;
        uint64_t tick_ms = until_ms - now_ms;
        if (resident->watchdog_ms > 0 && tick_ms > resident->watchdog_ms)
            tick_ms = resident->watchdog_ms;
        if ((cli_events_wait(&resident->events, (long)tick_ms) & CLI_EVENT_STOP) != 0)
            return false;
    }
}

/* Waits for a server that cannot be reached at the start, as later; other errors (a wrong
 * password, a missing database) do not fix themselves and end the worker. */
static tide_status join_or_wait(struct cli_resident *resident)
{
    struct cli *cli = resident->cli;
    uint64_t away_ms = 0;
    for (;;) {
        tide_status rc = join(resident);
        if (rc == TIDE_OK && away_ms > 0)
            cli_resident_tell(resident, TIDE_LOG_INFO, "ledger reached again", "ledger",
                              ledger_name(cli));
        if (cli->shared == NULL || (rc != TIDE_NETWORK && rc != TIDE_TIMEOUT) || resident->once)
            return rc;
        if (away_ms == 0) {
            /* This process is fine: the service manager must neither wait for it nor restart it. */
            cli_resident_tell(resident, TIDE_LOG_WARN, "ledger out of reach", "detail",
                              cli->err.text);
            (void)cli_notify("READY=1\nSTATUS=waiting for %s", ledger_name(cli));
        }
        if (cli_engine_close(resident->cli, &resident->open) == TIDE_TIMEOUT)
            return rc;
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        cli->exit_code = CLI_EXIT_DONE;
        away_ms = away_ms == 0 ? AWAY_FIRST_MS : away_ms * 2;
        away_ms = away_ms < AWAY_MS_MAX ? away_ms : AWAY_MS_MAX;
        /* A random part: many workers wait for the same server. */
        if (!wait_away(resident, away_ms / 2 + tide_world_random_u64(cli->world) % away_ms))
            return TIDE_STOPPED;
    }
}

static tide_status run(struct cli_resident *resident)
{
    struct cli *cli = resident->cli;
    (void)cli_notify("STATUS=connecting to %s", ledger_name(cli));
    resident->watchdog_ms = cli_notify_watchdog_ms();
    tide_status rc = join_or_wait(resident);
    if (rc == TIDE_STOPPED) {
        (void)cli_notify("STOPPING=1\nSTATUS=stopping");
        resident->interrupted = true;
        return conclude(resident, rc);
    }
    if (rc != TIDE_OK)
        return rc;
    resident->joined = cli->ledger_reached = true;
    cli_resident_tell(resident, TIDE_LOG_INFO, "joined", "ledger", ledger_name(cli));
    if (resident->started != NULL)
        rc = resident->started(resident->arg);
    if (rc == TIDE_OK) {
        watch(resident);
        (void)cli_notify("READY=1\nSTATUS=working on %s", ledger_name(cli));
        rc = work(resident);
    }
    stop(resident);
    return conclude(resident, rc);
}

/* Without the directory of its settings file it would have to look for the file all the time.  On a
 * shared ledger it wakes up anyway. */
static void make_settings_dir(struct cli *cli)
{
    char dir[CLI_PATH_BYTES];
    if (cli->shared != NULL)
        return;
    (void)snprintf(dir, sizeof dir, "%s", cli->config_path);
    char *slash = strrchr(dir, '/');
    if (slash != NULL)
        *slash = '\0';
    (void)tide_dir_make(cli->world, dir, NULL);
}

tide_status cli_resident_run(struct cli_resident *resident)
{
    struct cli *cli = resident->cli;
    log_open(resident);
    make_settings_dir(cli);
    tide_status rc = cli_events_open(&resident->events, cli->config_path, &cli->err);
    if (rc == TIDE_OK)
        rc = run(resident);
    if (resident->joined && resident->stopped != NULL)
        resident->stopped(resident->arg);
    const tide_status closed = cli_engine_close(cli, &resident->open);
    resident->stuck = closed == TIDE_TIMEOUT;
    if (!resident->stuck)
        cli_events_close(&resident->events);
    return rc == TIDE_OK ? closed : rc;
}
