/* runner.c - runs what users scheduled, at its time (serve/schedule/planned.h).
 *
 * One thread sleeps until the next run is due, on a timer of the wall clock that also wakes it when
 * the clock is set or the machine was suspended; each run has a thread of its own, so that a long sync
 * does not delay a backup.  A run whose earlier run has not ended waits for it, and its missed slots
 * collapse into one. */
#include "cli/serve/serve.h"

#include "cli/run/call.h"
#include "cli/run/schedule_change.h"
#include "ledger/rows.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    RUNS_MAX = 8,           /* at once */
    SHARED_LOOK_MS = 30000, /* other machines change the rows of a shared ledger */
    FAILED_LOOK_MS = 10000, /* the ledger could not be read or written */
    WORDS_MAX = CLI_ARGUMENTS_MAX,
};

struct run {
    struct cli_runner *runner;
    struct tide_planned planned; /* as it was when it started */
    tide_thread *thread;         /* NULL: free */
    tide_cancel cancel;
    bool over; /* atomic */
};

struct cli_runner {
    struct cli_serve *serve;
    tide_thread *thread;
    int wake, timer;
    bool stopping; /* atomic */
    char name[TIDE_PLANNED_RUNNER_BYTES];
    struct tide_planned *rows; /* TIDE_PLANNED_MAX */
    size_t rows_count;
    struct run runs[RUNS_MAX];
};

static void tell(struct cli_runner *runner, tide_log_level level, const char *event,
                 const char *name, const char *detail)
{
    tide_log_event(&runner->serve->resident->log, level,
                   tide_world_now_unix_ms(runner->serve->cli->world), event,
                   TIDE_F_CSTR("schedule", name), TIDE_F_CSTR("detail", detail));
}

/* ---- one run ---- */

struct start {
    const struct tide_planned *planned;
    uint64_t now_unix_ms;
    const char *runner;
};

static tide_status start_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct start *start = arg;
    return tide_planned_start(tide_transaction_rows(transaction), start->planned,
                              start->now_unix_ms, start->runner, err);
}

static tide_status end_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_planned *planned = arg;
    return tide_planned_end(tide_transaction_rows(transaction), planned->name,
                            planned->started_unix_ms, planned->ended_unix_ms, planned->exit_code,
                            planned->result, err);
}

/* However long the ledger takes (a full disk, a server that is away): without it the run is repeated. */
static void end_store(struct run *run)
{
    struct cli_runner *runner = run->runner;
    tide_world *world = runner->serve->cli->world;
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = tide_transact(runner->serve->engine, end_run, &run->planned, &err);
    if (rc != TIDE_OK)
        tell(runner, TIDE_LOG_WARN, "the end of a scheduled run is not recorded yet",
             run->planned.name, err.text);
    while (rc != TIDE_OK && rc != TIDE_STOPPED &&
           tide_world_sleep_until(world, tide_world_now_us(world) + FAILED_LOOK_MS * 1000ull,
                                  &run->cancel) == TIDE_OK)
        rc = tide_transact(runner->serve->engine, end_run, &run->planned, &err);
}

static void run_end(struct run *run, const struct cli_called *called)
{
    struct cli_runner *runner = run->runner;
    struct tide_planned *planned = &run->planned;
    planned->ended_unix_ms = tide_world_now_unix_ms(runner->serve->cli->world);
    planned->exit_code = (uint64_t)called->exit_code;
    (void)snprintf(planned->result, sizeof planned->result, "%s", called->line);
    end_store(run);
    tell(runner, called->exit_code == CLI_EXIT_DONE ? TIDE_LOG_INFO : TIDE_LOG_WARN,
         called->exit_code == CLI_EXIT_DONE ? "scheduled run done" : "scheduled run failed",
         planned->name, called->line);
}

static void run_main(void *arg)
{
    struct run *run = arg;
    struct cli_runner *runner = run->runner;
    const char *words[WORDS_MAX];
    json_t *array = NULL;
    struct cli_called called = {.exit_code = CLI_EXIT_USAGE, .line = "its command cannot be read"};
    const size_t count = schedule_words(&run->planned, words, WORDS_MAX, &array);
    tell(runner, TIDE_LOG_INFO, "scheduled run", run->planned.name, run->planned.words);
    if (count > 0 && cli_call(runner->serve->cli, words, count, &run->cancel, &called) != TIDE_OK)
        (void)snprintf(called.line, sizeof called.line, "out of memory");
    /* Stopped: it has no end, so the next start runs it again (PLN2). */
    if (!__atomic_load_n(&runner->stopping, __ATOMIC_ACQUIRE) || called.exit_code == CLI_EXIT_DONE)
        run_end(run, &called);
    cli_called_done(&called);
    json_decref(array);
    __atomic_store_n(&run->over, true, __ATOMIC_RELEASE);
    cli_runner_wake(runner);
}

/* ---- which ---- */

/* A run of a schedule that was removed is none of the one that was added under its name. */
static bool is_running(const struct cli_runner *runner, const struct tide_planned *planned)
{
    for (size_t i = 0; i < RUNS_MAX; i++) {
        const struct run *run = &runner->runs[i];
        if (run->thread != NULL && strcmp(run->planned.name, planned->name) == 0 &&
            run->planned.created_unix_ms == planned->created_unix_ms)
            return true;
    }
    return false;
}

static struct run *run_free(struct cli_runner *runner)
{
    for (size_t i = 0; i < RUNS_MAX; i++)
        if (runner->runs[i].thread == NULL)
            return &runner->runs[i];
    return NULL;
}

static void reap(struct cli_runner *runner, bool all)
{
    for (size_t i = 0; i < RUNS_MAX; i++) {
        struct run *run = &runner->runs[i];
        if (run->thread == NULL || (!all && !__atomic_load_n(&run->over, __ATOMIC_ACQUIRE)))
            continue;
        tide_world_join(runner->serve->cli->world, run->thread);
        run->thread = NULL;
    }
}

/* PLN2: it was ours, and does not run: it ended with an earlier process, or its thread did not start.  No
 * time says so, because the clock may have been set since. */
static bool is_interrupted(const struct cli_runner *runner, const struct tide_planned *planned)
{
    return planned->started_unix_ms > 0 && planned->ended_unix_ms == 0 &&
           strcmp(planned->runner, runner->name) == 0;
}

/* Returns when to look again. */
static uint64_t begin(struct cli_runner *runner, struct run *run,
                      const struct tide_planned *planned, uint64_t now_unix_ms)
{
    struct start start = {planned, now_unix_ms, runner->name};
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = tide_transact(runner->serve->engine, start_run, &start, &err);
    if (rc == TIDE_OK) {
        *run = (struct run){.runner = runner, .planned = *planned};
        run->planned.started_unix_ms = now_unix_ms;
        rc = tide_world_thread(runner->serve->cli->world, "schedule", run_main, run, &run->thread,
                               &err);
    }
    if (rc == TIDE_OK || rc == TIDE_STALE)
        return 0; /* the rows changed */
    tell(runner, TIDE_LOG_WARN, "a scheduled run did not start", planned->name, err.text);
    return now_unix_ms + FAILED_LOOK_MS;
}

/* Starts what is due; returns when to look again. */
static uint64_t look(struct cli_runner *runner)
{
    uint64_t at_unix_ms = TIDE_TIMETABLE_NEVER;
    for (size_t i = 0; i < runner->rows_count; i++) {
        const struct tide_planned *planned = &runner->rows[i];
        const uint64_t now_unix_ms = tide_world_now_unix_ms(runner->serve->cli->world);
        struct run *run = run_free(runner);
        uint64_t next_unix_ms = 0;
        if (is_running(runner, planned) || run == NULL)
            continue; /* its end wakes this thread */
        if (tide_planned_next(planned, now_unix_ms, &schedule_zone, &next_unix_ms, NULL) != TIDE_OK)
            continue; /* of a newer version */
        if (next_unix_ms <= now_unix_ms || planned->wanted_unix_ms != 0 ||
            is_interrupted(runner, planned))
            next_unix_ms = begin(runner, run, planned, now_unix_ms);
        if (next_unix_ms < at_unix_ms)
            at_unix_ms = next_unix_ms;
    }
    return at_unix_ms;
}

/* ---- the thread ---- */

static bool take_row(void *arg, const struct tide_planned *planned)
{
    struct cli_runner *runner = arg;
    runner->rows[runner->rows_count++] = *planned;
    return runner->rows_count < TIDE_PLANNED_MAX;
}

static tide_status load_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct cli_runner *runner = arg;
    runner->rows_count = 0;
    return tide_planned_each(tide_transaction_rows(transaction), take_row, runner, err);
}

static void sleep_until(struct cli_runner *runner, uint64_t at_unix_ms, int wait_ms)
{
    struct pollfd fds[] = {{.fd = runner->wake, .events = POLLIN},
                           {.fd = runner->timer, .events = POLLIN}};
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_unix_ms / 1000),
                                           .tv_nsec = (long)(at_unix_ms % 1000 * 1000000)}};
    uint64_t count = 0;
    if (at_unix_ms == TIDE_TIMETABLE_NEVER)
        when = (struct itimerspec){.it_value = {.tv_sec = 0}}; /* disarms it */
    (void)timerfd_settime(runner->timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL);
    (void)poll(fds, 2, wait_ms);
    (void)!read(runner->wake, &count, sizeof count);
    (void)!read(runner->timer, &count, sizeof count);
}

static void runner_main(void *arg)
{
    struct cli_runner *runner = arg;
    const bool shared = runner->serve->cli->shared != NULL;
    while (!__atomic_load_n(&runner->stopping, __ATOMIC_ACQUIRE)) {
        tide_error err = {TIDE_OK, 0, ""};
        reap(runner, false);
        const tide_status rc = tide_transact(runner->serve->engine, load_run, runner, &err);
        const uint64_t at_unix_ms = rc == TIDE_OK ? look(runner) : TIDE_TIMETABLE_NEVER;
        if (rc != TIDE_OK && rc != TIDE_STOPPED)
            tell(runner, TIDE_LOG_WARN, "schedules cannot be read", "", err.text);
        if (at_unix_ms != 0)
            sleep_until(runner, at_unix_ms,
                        rc != TIDE_OK ? FAILED_LOOK_MS
                        : shared      ? SHARED_LOOK_MS
                                      : -1);
    }
}

void cli_runner_wake(void *arg)
{
    const struct cli_runner *runner = arg;
    const uint64_t one = 1;
    if (runner != NULL)
        (void)!write(runner->wake, &one, sizeof one);
}

tide_status cli_runner_start(struct cli_serve *serve, tide_error *err)
{
    struct cli *cli = serve->cli;
    struct cli_runner *runner = tide_mem_new(cli->mem, sizeof *runner);
    if (runner == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for schedules");
    runner->serve = serve;
    runner->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    runner->timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    runner->rows = tide_mem_new(cli->mem, TIDE_PLANNED_MAX * sizeof *runner->rows);
    __atomic_store_n(&serve->runner, runner, __ATOMIC_RELEASE);
    (void)snprintf(runner->name, sizeof runner->name, "%.256s",
                   serve->home[0] == '\0' ? cli->state_dir : serve->home);
    if (runner->wake < 0 || runner->timer < 0 || runner->rows == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for schedules");
    return tide_world_thread(cli->world, "schedules", runner_main, runner, &runner->thread, err);
}

void cli_runner_stopping(struct cli_runner *runner)
{
    if (runner == NULL)
        return;
    __atomic_store_n(&runner->stopping, true, __ATOMIC_RELEASE);
    cli_runner_wake(runner);
    if (runner->thread != NULL)
        tide_world_join(runner->serve->cli->world, runner->thread);
    runner->thread = NULL;
    for (size_t i = 0; i < RUNS_MAX; i++)
        if (runner->runs[i].thread != NULL)
            tide_world_cancel(runner->serve->cli->world, &runner->runs[i].cancel, TIDE_CANCEL_STOP);
}

void cli_runner_free(struct cli_runner *runner)
{
    if (runner == NULL)
        return;
    struct cli *cli = runner->serve->cli;
    reap(runner, true);
    if (runner->wake >= 0)
        (void)close(runner->wake);
    if (runner->timer >= 0)
        (void)close(runner->timer);
    tide_mem_free(cli->mem, runner->rows,
                  runner->rows == NULL ? 0 : TIDE_PLANNED_MAX * sizeof *runner->rows);
    tide_mem_free(cli->mem, runner, sizeof *runner);
}
