#include "cli/run/inside.h"
#include "cli/run/names.h"
#include "cli/run/outcome.h"

#include "base/clocktext.h"
#include "tidemark_inside.h"

#include <string.h>

enum { ANSWER_MS = 10000 }; /* an engine that starts or ends does not answer for a moment */

tide_status cli_work_deadline(struct cli *cli, uint64_t *deadline_ms)
{
    const char *timeout = cli_flag(cli, "timeout");
    uint64_t wait_ms = 0;
    if (timeout == NULL)
        return TIDE_OK;
    if (!tide_duration_parse(tide_text_of(timeout), &wait_ms) || wait_ms == 0)
        return cli_wrong(cli, "Give a duration such as 30s, 10m or 2h.",
                         "--timeout %.60s is not a duration", timeout);
    *deadline_ms = tide_world_now_ms(cli->world) + wait_ms;
    return TIDE_OK;
}

bool cli_work_is_late(const struct cli_work *work)
{
    return work->deadline_ms != 0 && tide_world_now_ms(work->cli->world) >= work->deadline_ms;
}

const struct tide_system *cli_work_owner(const struct cli_work *work)
{
    return work->accounts_of == NULL ? work->system : work->accounts_of;
}

/* ---- beginning ---- */

static tide_status enqueue(struct cli_work *work, size_t account)
{
    uint32_t id = 0;
    bool runs = false;
    const tide_status rc =
        tide_engine_account(work->opened->engine, work->accounts[account].name,
                            cli_work_owner(work)->provider, &id, &work->cli->err);
    return rc == TIDE_OK ? cli_begin_requests(work, account, work->opened->engine, &runs) : rc;
}

/* RUN4. */
static tide_status begin_all(struct cli_work *work)
{
    struct cli *cli = work->cli;
    for (size_t i = 0; i < work->count; i++) {
        struct cli_watched *watched = &work->accounts[i];
        watched->error = (tide_error){TIDE_OK, 0, ""};
        const tide_status rc = work->begin == NULL
                                   ? enqueue(work, i)
                                   : work->begin(work->arg, i, work->opened->states[0], &cli->err);
        if (rc == TIDE_STOPPED || tide_status_class(rc) == TIDE_CLASS_BUG)
            return rc;
        if (rc == TIDE_OK)
            continue;
        watched->error = cli->err;
        watched->error.status = rc;
        cli->err = (tide_error){TIDE_OK, 0, ""};
    }
    return TIDE_OK;
}

/* RUN1.  An account that could not begin gets no worker either: its remaining jobs would only
 * fail. */
static tide_status restrict_engine(struct cli_work *work)
{
    struct cli *cli = work->cli;
    size_t count = 0;
    const char **names = tide_mem_array(cli->mem, work->count + 1, sizeof *names);
    if (names == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    for (size_t i = 0; i < work->count; i++)
        if (work->accounts[i].error.status == TIDE_OK)
            names[count++] = work->accounts[i].name;
    if (work->also != NULL)
        names[count++] = work->also;
    const tide_status rc = tide_engine_only(work->opened->engine, names, count, &cli->err);
    tide_mem_free(cli->mem, names, (work->count + 1) * sizeof *names);
    return rc;
}

/* ---- our own engine ---- */

/* Begins more for accounts that are finished.  Returns whether it did. */
static bool begin_more(struct cli_work *work)
{
    bool began = false;
    if (work->more == NULL || work->cli->shared != NULL)
        return false;
    cli_watch_look_soon(work);
    if (cli_watch_tick(work, false) != TIDE_OK)
        return false;
    for (size_t i = 0; i < work->count; i++) {
        struct cli_watched *watched = &work->accounts[i];
        if (watched->error.status != TIDE_OK || cli_watched_is_stuck(watched) ||
            !cli_watch_is_over(work, i) || !work->more(work->arg, i, work->opened->states[0]))
            continue;
        watched->active++; /* until the next look */
        began = true;
    }
    if (began)
        cli_watch_look_soon(work); /* finished accounts have work again */
    return began;
}

/* Our engine is idle: TIDE_TIMEOUT while other processes have work, or we may take it soon. */
static tide_status wait_for_others(struct cli_work *work)
{
    struct cli *cli = work->cli;
    if (cli->shared == NULL || work->stopping || cli_watch_all_over(work))
        return TIDE_OK;
    const tide_status rc = cli_elsewhere_check(work);
    if (rc != TIDE_OK)
        return rc;
    cli_watch_look_soon(work);
    (void)tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + CLI_TICK_MS * 1000ull,
                                 NULL);
    return TIDE_TIMEOUT;
}

/* An error of check() is kept for the end. */
static void stop_when_due(struct cli_work *work, tide_error *failed)
{
    struct cli *cli = work->cli;
    if (failed->status == TIDE_OK && work->check != NULL) {
        const tide_status rc = work->check(work->arg, work->opened->states[0], &work->enough);
        if (rc != TIDE_OK) {
            *failed = cli->err;
            failed->status = rc;
        }
    }
    const bool early =
        cli_interrupted(cli) || cli_work_is_late(work) || work->enough || failed->status != TIDE_OK;
    if (work->stopping || !(early || cli_watch_all_over(work)))
        return;
    if (!early && (cli_engine_is_busy(cli, work->opened) || begin_more(work)))
        return;
    work->stopping = true;
    tide_engine_stop(work->opened->engine);
}

static tide_status run_engine(struct cli_work *work)
{
    struct cli *cli = work->cli;
    tide_error failed = {TIDE_OK, 0, ""};
    tide_status rc = tide_engine_start(work->opened->engine, &cli->err);
    while (rc == TIDE_OK || rc == TIDE_TIMEOUT) {
        rc = tide_engine_wait(work->opened->engine, CLI_TICK_MS, &cli->err);
        if (rc == TIDE_OK)
            rc = wait_for_others(work);
        if (rc == TIDE_OK && !work->stopping && begin_more(work))
            rc = TIDE_TIMEOUT;
        if (rc != TIDE_TIMEOUT)
            break;
        (void)cli_watch_tick(work, false);
        stop_when_due(work, &failed);
    }
    if (failed.status != TIDE_OK) {
        cli->err = failed;
        return failed.status;
    }
    /* We requested the stop: the summary says for each account how far it got. */
    return rc == TIDE_STOPPED ? TIDE_OK : rc;
}

static tide_status work_here(struct cli_work *work)
{
    void *state = work->opened->states[0];
    tide_status rc = work->check == NULL ? TIDE_OK : work->check(work->arg, state, &work->enough);
    if (rc == TIDE_OK)
        rc = cli_elsewhere_find(work);
    if (rc == TIDE_OK)
        rc = begin_all(work);
    if (rc == TIDE_OK)
        rc = restrict_engine(work);
    if (rc == TIDE_OK)
        rc = cli_watch_tick(work, false);
    if (rc != TIDE_OK)
        return rc;
    cli_elsewhere_tell(work);
    if (!cli_watch_all_over(work))
        rc = run_engine(work);
    if (rc == TIDE_OK && work->last != NULL)
        rc = work->last(work->arg, state);
    work->stopping = false;
    return rc;
}

/* ---- either ---- */

static tide_status open_here(struct cli_work *work)
{
    *work->opened = (struct cli_engine){.options = work->options, .workers = work->workers};
    archive_here_take(&work->opened->here, work->system);
    if (cli_work_owner(work) != work->system)
        archive_here_take(&work->opened->here, cli_work_owner(work));
    return cli_engine_open(work->cli, work->opened);
}

/* Does the work here, or hands it to the process that uses the directory. */
static tide_status here_or_there(struct cli_work *work)
{
    struct cli *cli = work->cli;
    uint64_t give_up_ms = tide_world_now_ms(cli->world) + ANSWER_MS;
    for (;;) {
        tide_status rc = open_here(work);
        if (rc == TIDE_OK) {
            work->handed_over = false;
            return work_here(work);
        }
        if (rc != TIDE_BUSY)
            return rc;
        const tide_error busy = cli->err;
        cli->hint[0] = '\0';
        rc = cli_hand_over(work);
        if (rc == TIDE_OK || !work->gone)
            return rc;
        /* That process ended before the work was done: try again, now it may be ours. */
        const uint64_t now_ms = tide_world_now_ms(cli->world);
        if (work->pid != 0)
            give_up_ms = now_ms + ANSWER_MS;
        cli_watch_restart(work);
        cli->err = busy;
        cli->hint[0] = '\0';
        if (now_ms >= give_up_ms || cli_interrupted(cli))
            break;
        (void)tide_world_sleep_until(cli->world,
                                     tide_world_now_us(cli->world) + CLI_TICK_MS * 1000ull, NULL);
    }
    return cli_hint(cli, TIDE_BUSY,
                    "Another process uses this directory but does not answer. Wait, or stop it, "
                    "and run this command again.");
}

tide_status cli_work_run(struct cli_work *work)
{
    static const struct cli_columns jobs = {
        .done = "jobs", .done_json = "jobs", .rate = "jobs/s", .rate_json = "jobs_per_s"};
    struct cli *cli = work->cli;
    (void)cli_interruptible(cli);
    if (work->columns == NULL)
        work->columns = &jobs;
    work->opened = tide_mem_new(cli->mem, sizeof *work->opened);
    if (work->opened == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    cli_display_open(cli, work->system->name, work->columns, &work->display);
    for (size_t i = 0; i < work->count; i++)
        memcpy(work->lives[i].name, work->accounts[i].name, sizeof work->lives[i].name);
    const tide_status rc = here_or_there(work);
    const tide_error kept = cli->err;
    if (rc == TIDE_OK)
        (void)cli_watch_tick(work, true);
    for (size_t i = 0; rc == TIDE_OK && i < work->count; i++)
        (void)cli_watched_removed(work, &work->accounts[i]);
    cli->err = kept;
    return rc;
}

/* ---- life ---- */

tide_status cli_work_accounts(struct cli_work *work, size_t count)
{
    struct cli *cli = work->cli;
    work->count = count;
    work->accounts = tide_mem_array(cli->mem, count, sizeof *work->accounts);
    work->lives = tide_mem_array(cli->mem, count, sizeof *work->lives);
    if (work->accounts == NULL || work->lives == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory for %zu accounts",
                        count);
    for (size_t i = 0; i < count; i++)
        work->lives[i].total = work->lives[i].left_ms = CLI_UNKNOWN;
    return TIDE_OK;
}

tide_status cli_work_names(struct cli_work *work)
{
    struct cli *cli = work->cli;
    struct cli_names names;
    tide_status rc =
        cli_names(cli, cli_work_owner(work), cli->arguments, cli->arguments_count, &names);
    if (rc == TIDE_OK)
        rc = cli_work_accounts(work, names.count);
    for (size_t i = 0; rc == TIDE_OK && i < names.count; i++)
        memcpy(work->accounts[i].name, names.list[i], sizeof names.list[i]);
    cli_names_done(&names);
    return rc;
}

tide_status cli_work_done(struct cli_work *work)
{
    struct cli *cli = work->cli;
    tide_status rc = TIDE_OK;
    if (cli == NULL)
        return rc;
    if (work->opened != NULL)
        rc = cli_engine_close(cli, work->opened);
    if (rc != TIDE_TIMEOUT)
        tide_mem_free(cli->mem, work->opened, sizeof *work->opened);
    cli_display_close(&work->display);
    tide_mem_free(cli->mem, work->accounts, work->count * sizeof *work->accounts);
    tide_mem_free(cli->mem, work->lives, work->count * sizeof *work->lives);
    work->accounts = NULL;
    work->lives = NULL;
    work->opened = NULL;
    work->count = 0;
    return rc;
}

tide_status cli_sync(struct cli *cli)
{
    const tide_text group = tide_text_of(cli->command->group);
    struct cli_work work = {.cli = cli, .system = tide_system_named(cli->systems, group)};
    tide_status rc = cli_work_names(&work);
    if (rc == TIDE_OK)
        rc = cli_work_run(&work);
    if (rc == TIDE_OK)
        cli_work_report(&work);
    const tide_status closed = cli_work_done(&work);
    return rc == TIDE_OK ? closed : rc;
}
