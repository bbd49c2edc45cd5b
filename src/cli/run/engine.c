#include "cli/run/engine.h"

#include "cli/run/account_change.h"
#include "cli/run/schedule_change.h"

#include <stdio.h>
#include <unistd.h>

static tide_status systems_open(struct cli *cli, struct cli_engine *engine)
{
    struct tide_system_home *home = &engine->home;
    *home = (struct tide_system_home){.world = cli->world,
                                      .mem = cli->mem,
                                      .engine = engine->engine,
                                      .secrets = engine->secrets,
                                      .settings = cli->settings,
                                      .archive_dir = engine->archive_dir,
                                      .state_dir = cli->state_dir,
                                      .config_path = cli->config_path,
                                      .cache_dir = cli->cache_dir};
    tide_status rc = account_job_define(cli, home);
    if (rc == TIDE_OK)
        rc = schedule_op_add(cli, engine->engine);
    if (rc == TIDE_OK)
        rc = alert_mailer_bind(cli, &engine->mailer, engine->engine, engine->secrets);
    /* Accounts of all systems may be added, whichever are open. */
    for (size_t i = 0; rc == TIDE_OK && cli->systems[i] != NULL; i++)
        if (cli->systems[i]->quota != NULL)
            rc = tide_engine_quota(engine->engine, cli->systems[i]->quota, &cli->err);
    for (size_t i = 0; rc == TIDE_OK && cli->systems[i] != NULL; i++)
        if (cli->systems[i]->method_name != NULL)
            rc = tide_engine_methods(engine->engine, cli->systems[i]->provider,
                                     cli->systems[i]->method_name, &cli->err);
    for (size_t i = 0; rc == TIDE_OK && i < engine->here.taken_count; i++) {
        home->options = i == 0 ? engine->options : NULL;
        rc = engine->here.taken[i]->open(home, &engine->states[i], &cli->err);
    }
    return rc;
}

static tide_status open_beside(struct cli *cli, struct cli_engine *engine,
                               struct tide_engine_options *options)
{
    if ((size_t)snprintf(engine->beside_dir, sizeof engine->beside_dir, "%s/beside-%d",
                         cli->state_dir, (int)getpid()) >= sizeof engine->beside_dir)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter --home.", "the path is too long");
    engine->here.taken_count = 0;
    options->state_dir = engine->beside_dir;
    options->no_control_socket = true;
    return tide_engine_open(options, &engine->engine, &cli->err);
}

/* Removes what an engine leaves in its directory when the ledger is shared. */
static void remove_beside(const struct cli_engine *engine)
{
    char lock[CLI_PATH_BYTES + 16];
    if (engine->beside_dir[0] == '\0')
        return;
    (void)snprintf(lock, sizeof lock, "%s/engine.lock", engine->beside_dir);
    (void)unlink(lock);
    (void)rmdir(engine->beside_dir);
}

/* Another command may hand over work of any system (E12.2).  A member of a fleet takes the accounts
 * of its systems, so it has only those that it works for. */
static void take_others(const struct cli *cli, struct archive_here *here)
{
    for (size_t i = 0; cli->shared == NULL && cli->systems[i] != NULL; i++)
        if (!archive_here_takes(here, cli->systems[i]))
            archive_here_take(here, cli->systems[i]);
}

tide_status cli_engine_open(struct cli *cli, struct cli_engine *engine)
{
    struct tide_engine_options options;
    tide_status rc = archive_here_places(cli, engine->archive_dir, engine->secrets_dir);
    if (rc == TIDE_OK)
        rc = archive_here_options(cli, engine->archive_dir, &engine->here, &options);
    if (rc != TIDE_OK)
        return rc;
    take_others(cli, &engine->here);
    options.workers = engine->workers;
    if (engine->log != NULL)
        options.log = engine->log;
    rc = tide_engine_open(&options, &engine->engine, &cli->err);
    if (rc == TIDE_BUSY && engine->beside && cli->shared != NULL)
        rc = open_beside(cli, engine, &options);
    if (rc == TIDE_BUSY && engine->busy_hint != NULL)
        return cli_hint(cli, rc, engine->busy_hint);
    rc = archive_here_opened(cli, rc);
    if (rc == TIDE_OK)
        rc = tide_secrets_open(cli->world, engine->secrets_dir, TIDE_SECRETS_BEST, cli->mem,
                               &engine->secrets, &cli->err);
    return rc == TIDE_OK ? systems_open(cli, engine) : rc;
}

static bool is_busy(const struct cli_engine *engine)
{
    for (size_t i = 0; i < engine->here.taken_count; i++) {
        const struct tide_system *system = engine->here.taken[i];
        if (engine->states[i] != NULL && system->busy != NULL && system->busy(engine->states[i]))
            return true;
    }
    return false;
}

bool cli_engine_is_busy(struct cli *cli, struct cli_engine *engine)
{
    const bool busy = is_busy(engine);
    if (busy && !engine->told_busy && !cli->quiet && !cli->want_json)
        (void)fprintf(stderr, "This process still does the work of another command, and ends after "
                              "it. Ctrl-C stops it.\n");
    engine->told_busy = engine->told_busy || busy;
    return busy;
}

void cli_engine_settle(struct cli *cli, struct cli_engine *engine)
{
    enum { TICK_US = 100000 };
    while (!cli_interrupted(cli) && cli_engine_is_busy(cli, engine) &&
           tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + TICK_US, NULL) ==
               TIDE_OK)
        continue;
}

/* Closes all of them; the first failure is reported. */
static tide_status systems_close(struct cli_engine *engine, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; i < engine->here.taken_count; i++) {
        if (engine->states[i] == NULL)
            continue;
        const tide_status closed =
            engine->here.taken[i]->close(engine->states[i], rc == TIDE_OK ? err : NULL);
        rc = rc == TIDE_OK ? closed : rc;
        engine->states[i] = NULL;
    }
    return rc;
}

tide_status cli_engine_close(struct cli *cli, struct cli_engine *engine)
{
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status stopped = tide_engine_close(engine->engine);
    if (stopped == TIDE_TIMEOUT)
        return stopped;
    const tide_status closed = systems_close(engine, &err);
    tide_secrets_close(engine->secrets);
    remove_beside(engine);
    engine->engine = NULL;
    engine->secrets = NULL;
    if (closed != TIDE_OK && cli->err.status == TIDE_OK)
        cli->err = err;
    return stopped == TIDE_OK ? closed : stopped;
}
