/* kept.c - what systems keep in a process that stays, between the commands it runs. */
#include "cli/cli.h"

#include "system/system.h"

tide_status cli_kept_begin(struct cli *cli)
{
    tide_status rc = TIDE_OK;
    cli->kept = tide_mem_new(cli->mem, TIDE_SYSTEMS_MAX * sizeof *cli->kept);
    if (cli->kept == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    for (size_t i = 0; rc == TIDE_OK && cli->systems[i] != NULL; i++)
        if (cli->systems[i]->keep != NULL)
            rc = cli->systems[i]->keep(cli->world, cli->mem, &cli->kept[i], &cli->err);
    return rc;
}

void cli_kept_end(struct cli *cli)
{
    if (cli->kept == NULL)
        return;
    for (size_t i = 0; cli->systems[i] != NULL; i++)
        if (cli->kept[i] != NULL)
            cli->systems[i]->keep_end(cli->kept[i]);
    tide_mem_free(cli->mem, cli->kept, TIDE_SYSTEMS_MAX * sizeof *cli->kept);
    cli->kept = NULL;
}

void *cli_kept(const struct cli *cli, const struct tide_system *system)
{
    for (size_t i = 0; cli->kept != NULL && cli->systems[i] != NULL; i++)
        if (cli->systems[i] == system)
            return cli->kept[i];
    return NULL;
}
