/* watch.c - `tidemark drive watch`: syncs drives as they change, until it is stopped (D9). */
#include "cli/resident/resident.h"
#include "drive/commands/home.h"
#include "engine/tuning.h"

/* A process that stays watches all drives unless the settings say no; then nothing is to be followed. */
static bool any_watched(const struct cli *cli, const struct drive_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (tide_tuning_engine(tide_settings_of(cli->settings, list->rows[i].account_name))
                .drive_watch)
            return true;
    return false;
}

static tide_status follow(struct cli *cli, bool *ended_out)
{
    struct drive_list list;
    tide_status rc = drive_list_named(cli, cli->arguments, cli->arguments_count, &list);
    *ended_out = true;
    if (rc == TIDE_OK && cli->shared == NULL && any_watched(cli, &list))
        rc = drive_follow(cli, &list, ended_out);
    drive_list_done(&list);
    cli_ledger_close(cli);
    return rc;
}

tide_status cli_drive_watch(struct cli *cli)
{
    const struct drive_watch_options options = {.names = cli->arguments,
                                                .names_count = cli->arguments_count};
    bool ended = true;
    struct cli_resident *resident = tide_mem_new(cli->mem, sizeof *resident);
    if (resident == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    resident->cli = cli;
    resident->name = "watch";
    resident->open.busy_hint = "It is `tidemark serve` and does not watch drives, because "
                               "drive.watch is false there, or it is "
                               "starting. Set drive.watch to true, or stop it.";
    resident->open.options = &options;
    archive_here_take(&resident->open.here, &tide_drive_system);
    tide_status rc = cli_ledger_choose(cli);
    if (rc == TIDE_OK)
        rc = follow(cli, &ended);
    if (rc == TIDE_OK && ended)
        rc = cli_resident_run(resident);
    if (!resident->stuck)
        tide_mem_free(cli->mem, resident, sizeof *resident);
    return rc;
}
