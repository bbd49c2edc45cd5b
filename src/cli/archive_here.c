#include "cli/archive_here.h"
#include "cli/log_file.h"

#include "base/check.h"
#include "base/limits.h"
#include "engine/accounts/archive_id.h"

#include <stdio.h>
#include <string.h>

tide_status archive_here_open(struct cli *cli, const char *archive_dir, struct archive_here *here)
{
    here->world = cli->world;
    (void)snprintf(here->archive_dir, sizeof here->archive_dir, "%s", archive_dir);
    return cli_hint(cli, tide_dir_make(cli->world, archive_dir, &cli->err),
                    "Name a directory that can be created and written with --home DIR.");
}

tide_status archive_here_places(struct cli *cli, char archive_dir_out[CLI_PATH_BYTES],
                                char secrets_dir_out[CLI_PATH_BYTES])
{
    const size_t room = CLI_PATH_BYTES;
    if ((size_t)snprintf(archive_dir_out, room, "%s/archive", cli->data_dir) >= room ||
        (size_t)snprintf(secrets_dir_out, room, "%s/secrets", cli->state_dir) >= room)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter --home.", "the path is too long");
    return TIDE_OK;
}

tide_status archive_here_options(struct cli *cli, const char *archive_dir,
                                 struct archive_here *here, struct tide_engine_options *options_out)
{
    TIDE_TRY(cli_ledger_choose(cli));
    if (cli->shared != NULL)
        TIDE_TRY(archive_here_open(cli, archive_dir, here));
    *options_out = (struct tide_engine_options){.state_dir = cli->state_dir,
                                                .ledger = cli->shared,
                                                .may_take = archive_here_may_take,
                                                .may_take_arg = here,
                                                .world = cli->world,
                                                .settings = cli->settings,
                                                .log = cli_log_file(cli)};
    return TIDE_OK;
}

tide_status archive_here_opened(struct cli *cli, tide_status rc)
{
    cli->ledger_reached = cli->ledger_reached || rc == TIDE_OK;
    if (rc == TIDE_BUSY)
        return cli_hint(cli, rc, "Wait until it ends, or stop it, and run this command again.");
    return cli->shared == NULL ? rc : cli_shared_hint(cli, rc);
}

void archive_here_take(struct archive_here *here, const struct tide_system *system)
{
    TIDE_ASSERT(here->taken_count < TIDE_SYSTEMS_MAX);
    here->taken[here->taken_count++] = system;
}

bool archive_here_takes(const struct archive_here *here, const struct tide_system *system)
{
    for (size_t i = 0; i < here->taken_count; i++)
        if (here->taken[i] == system)
            return true;
    return false;
}

void archive_here_take_all(struct archive_here *here, const struct cli *cli)
{
    for (size_t i = 0; cli->systems[i] != NULL; i++)
        archive_here_take(here, cli->systems[i]);
}

const struct tide_system *archive_here_wants(const struct archive_here *here, const char *account,
                                             const char *provider)
{
    const struct tide_system *system = NULL;
    bool named = here->accounts_count == 0;
    for (size_t i = 0; i < here->taken_count; i++)
        if (strcmp(here->taken[i]->provider, provider) == 0)
            system = here->taken[i];
    for (size_t i = 0; i < here->accounts_count; i++)
        named = named || strcmp(here->accounts[i], account) == 0;
    return named ? system : NULL;
}

bool archive_here_may_take(void *arg, const char *account, const char *provider,
                           const char *archive)
{
    const struct archive_here *here = arg;
    const struct tide_system *system = archive_here_wants(here, account, provider);
    return system != NULL &&
           tide_system_is_here(system, here->world, here->archive_dir, account, archive);
}

/* ---- telling the ledger ---- */

static tide_status place(struct cli *cli, const struct archive_here *here, tide_secrets *secrets,
                         uint32_t account, const char *name, const struct tide_system *system)
{
    char dir[CLI_PATH_BYTES + 300];
    char id[TIDE_ARCHIVE_ID_BYTES];
    char where[TIDE_SECRET_PLACE_BYTES];
    tide_tx *tx = NULL;
    tide_system_archive_path(system, here->archive_dir, name, dir, sizeof dir);
    tide_secret_place(tide_secrets_where(secrets), where);
    TIDE_TRY(tide_archive_id_make(cli->world, dir, id, &cli->err));
    TIDE_TRY(tide_tx_begin(cli->ledger, &tx, &cli->err));
    tide_status rc = tide_ledger_account_place(tx, account, id, where, &cli->err);
    if (rc == TIDE_OK)
        rc = cli_tell(cli, tx, TIDE_HINT_CONTROL, account);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, &cli->err);
    tide_tx_rollback(tx);
    return rc;
}

struct without_archive {
    const struct archive_here *here;
    uint32_t ids[TIDE_ACCOUNTS_MAX];
    char names[TIDE_ACCOUNTS_MAX][201];
    const struct tide_system *systems[TIDE_ACCOUNTS_MAX];
    size_t count;
};

static bool without_archive_note(const struct tide_account_row *row, void *arg)
{
    struct without_archive *list = arg;
    const struct tide_system *system = archive_here_wants(list->here, row->name, row->provider);
    if (row->archive[0] != '\0' || system == NULL)
        return true;
    list->ids[list->count] = row->id;
    list->systems[list->count] = system;
    memcpy(list->names[list->count++], row->name, sizeof row->name);
    return list->count < TIDE_ACCOUNTS_MAX;
}

static bool signed_in_here(struct cli *cli, tide_secrets *secrets, const char *account,
                           const struct tide_system *system)
{
    char name[TIDE_SECRET_NAME_BYTES_MAX];
    tide_system_secret_name(system, account, name);
    tide_auto_secret secret = tide_buf_in(cli->mem, TIDE_SECRET_BYTES_MAX);
    const tide_status rc = tide_secrets_get(secrets, name, &secret, NULL);
    return rc == TIDE_OK;
}

tide_status archive_here_adopt(struct cli *cli, const struct archive_here *here,
                               tide_secrets *secrets, unsigned *count_out)
{
    struct without_archive *list = tide_mem_new(cli->mem, sizeof *list);
    unsigned adopted = 0;
    if (list == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    list->here = here;
    tide_status rc = cli_ledger_write(cli);
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(cli->ledger, without_archive_note, list, &cli->err);
    for (size_t i = 0; rc == TIDE_OK && i < list->count; i++)
        if (signed_in_here(cli, secrets, list->names[i], list->systems[i])) {
            rc = place(cli, here, secrets, list->ids[i], list->names[i], list->systems[i]);
            adopted += rc == TIDE_OK;
        }
    cli_ledger_close(cli);
    tide_mem_free(cli->mem, list, sizeof *list);
    if (rc == TIDE_OK)
        *count_out = adopted;
    return cli_shared_hint(cli, rc);
}
