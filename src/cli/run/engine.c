#include "cli/run/engine.h"

static tide_status systems_open(struct cli *cli, struct cli_engine *engine)
{
    struct tide_system_home home = {.world = cli->world,
                                    .mem = cli->mem,
                                    .engine = engine->engine,
                                    .secrets = engine->secrets,
                                    .settings = cli->settings,
                                    .archive_dir = engine->archive_dir};
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < engine->here.taken_count; i++) {
        home.options = i == 0 ? engine->options : NULL;
        rc = engine->here.taken[i]->open(&home, &engine->states[i], &cli->err);
    }
    return rc;
}

tide_status cli_engine_open(struct cli *cli, struct cli_engine *engine)
{
    struct tide_engine_options options;
    tide_status rc = archive_here_places(cli, engine->archive_dir, engine->secrets_dir);
    if (rc == TIDE_OK)
        rc = archive_here_options(cli, engine->archive_dir, &engine->here, &options);
    if (rc != TIDE_OK)
        return rc;
    options.workers = engine->workers;
    if (engine->log != NULL)
        options.log = engine->log;
    rc = tide_engine_open(&options, &engine->engine, &cli->err);
    if (rc == TIDE_BUSY && engine->busy_hint != NULL)
        return cli_hint(cli, rc, engine->busy_hint);
    rc = archive_here_opened(cli, rc);
    if (rc == TIDE_OK)
        rc = tide_secrets_open(cli->world, engine->secrets_dir, TIDE_SECRETS_BEST, cli->mem,
                               &engine->secrets, &cli->err);
    return rc == TIDE_OK ? systems_open(cli, engine) : rc;
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
    engine->engine = NULL;
    engine->secrets = NULL;
    if (closed != TIDE_OK && cli->err.status == TIDE_OK)
        cli->err = err;
    return stopped == TIDE_OK ? closed : stopped;
}
