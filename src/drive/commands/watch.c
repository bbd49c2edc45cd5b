/* watch.c - `tidemark drive watch`: syncs drives as they change, until it is stopped (D9). */
#include "cli/resident/resident.h"
#include "drive/commands/home.h"

static tide_status check_names(struct cli *cli)
{
    struct drive_list list;
    const tide_status rc = drive_list_named(cli, cli->arguments, cli->arguments_count, &list);
    drive_list_done(&list);
    cli_ledger_close(cli);
    return rc;
}

tide_status cli_drive_watch(struct cli *cli)
{
    const struct drive_watch_options options = {.names = cli->arguments,
                                                .names_count = cli->arguments_count};
    struct cli_resident *resident = tide_mem_new(cli->mem, sizeof *resident);
    if (resident == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    resident->cli = cli;
    resident->name = "watch";
    resident->open.busy_hint =
        "If it is `tidemark serve`, it watches the drives already; `tidemark drive status` shows "
        "them.";
    resident->open.options = &options;
    archive_here_take(&resident->open.here, &tide_drive_system);
    tide_status rc = cli_ledger_choose(cli);
    if (rc == TIDE_OK)
        rc = check_names(cli);
    if (rc == TIDE_OK)
        rc = cli_resident_run(resident);
    if (!resident->stuck)
        tide_mem_free(cli->mem, resident, sizeof *resident);
    return rc;
}
