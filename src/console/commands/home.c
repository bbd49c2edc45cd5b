/* home.c - opens and closes the Search Console system for a command. */
#include "console/commands/home.h"

#include "cli/account_job.h"

#include "base/limits.h"

#include <stdio.h>
#include <unistd.h>

static tide_status open_beside(struct cli *cli, struct console_home *home,
                               struct tide_engine_options *engine)
{
    home->beside = true;
    home->here.taken_count = 0; /* the worker takes all accounts */
    if ((size_t)snprintf(home->beside_dir, sizeof home->beside_dir, "%s/beside-%d", cli->state_dir,
                         (int)getpid()) >= sizeof home->beside_dir)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter --home.", "the path is too long");
    engine->state_dir = home->beside_dir;
    engine->no_control_socket = true;
    return tide_engine_open(engine, &home->engine, &cli->err);
}

/* Removes what an engine leaves in its directory when the ledger is shared. */
static void remove_beside(const struct console_home *home)
{
    char lock[CLI_PATH_BYTES + 16];
    if (!home->beside)
        return;
    (void)snprintf(lock, sizeof lock, "%s/engine.lock", home->beside_dir);
    (void)unlink(lock);
    (void)rmdir(home->beside_dir);
}

tide_status console_home_open(struct cli *cli, struct console_home *home)
{
    struct tide_console_options options = {
        .world = cli->world, .workers = home->workers, .batch_max = home->batch_max};
    struct tide_engine_options engine;
    archive_here_take(&home->here, &tide_console_system);
    tide_status rc = archive_here_places(cli, home->archive_dir, home->secrets_dir);
    if (rc == TIDE_OK)
        rc = archive_here_options(cli, home->archive_dir, &home->here, &engine);
    if (rc != TIDE_OK)
        return rc;
    engine.workers = TIDE_WORKERS_MAX;
    rc = tide_engine_open(&engine, &home->engine, &cli->err);
    if (rc == TIDE_BUSY && cli->shared != NULL && home->may_hand_over)
        rc = open_beside(cli, home, &engine);
    rc = archive_here_opened(cli, rc);
    if (rc == TIDE_OK)
        rc = tide_secrets_open(cli->world, home->secrets_dir, TIDE_SECRETS_BEST, cli->mem,
                               &home->secrets, &cli->err);
    const struct tide_system_home at = {.world = cli->world,
                                        .mem = cli->mem,
                                        .engine = home->engine,
                                        .secrets = home->secrets,
                                        .settings = cli->settings,
                                        .archive_dir = home->archive_dir};
    if (rc == TIDE_OK)
        rc = account_job_define(cli, &at);
    options.engine = home->engine;
    options.secrets = home->secrets;
    options.archive_dir = home->archive_dir;
    return rc == TIDE_OK ? tide_console_open(&options, cli->mem, &home->console, &cli->err) : rc;
}

tide_status console_home_close(struct cli *cli, struct console_home *home)
{
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status stopped = tide_engine_close(home->engine);
    const tide_status closed = tide_console_close(home->console, &err);
    tide_secrets_close(home->secrets);
    remove_beside(home);
    if (closed != TIDE_OK && cli->err.status == TIDE_OK)
        cli->err = err;
    return stopped == TIDE_OK ? closed : stopped;
}

tide_status console_home_store(struct cli *cli, const char *site, tide_console_store **store_out)
{
    char archive[CLI_PATH_BYTES];
    char secrets[CLI_PATH_BYTES];
    char dir[CLI_PATH_BYTES + 16];
    tide_status rc = archive_here_places(cli, archive, secrets);
    if (rc == TIDE_OK)
        rc = tide_console_site_check(site, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark console status` shows the sites.");
    (void)snprintf(dir, sizeof dir, "%s/console", archive);
    const struct tide_console_store_options options = {
        .dir = dir, .site = site, .world = cli->world, .read_only = true};
    rc = tide_console_store_open(&options, cli->mem, store_out, &cli->err);
    return cli_hint(cli, rc, "Fetch it first: `tidemark console backfill SITE`.");
}
