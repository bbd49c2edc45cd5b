/* home.c - the files of the sites in this home. */
#include "console/commands/home.h"

#include "cli/archive_here.h"

#include <stdio.h>

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
