/* shared.c - a ledger that many machines share, as commands see it (docs/fleet.md). */
#include "cli/cli.h"
#include "cli/restoring.h"

#include "settings/url.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char password_places[] =
    "Give it in ~/.pgpass, PGPASSWORD or PGSERVICE, or write the setting ledger.url into "
    "config.yaml with an editor, and give that file mode 0600.";

tide_status cli_url_refuse_password(struct cli *cli, const char *url)
{
    char hint[400];
    if (!tide_url_has_password(tide_text_of(url)))
        return TIDE_OK;
    cli->exit_code = CLI_EXIT_USAGE;
    (void)snprintf(hint, sizeof hint, "%s Change the password: others may have seen it.",
                   password_places);
    return cli_fail(cli, TIDE_INVALID, hint,
                    "every user of this machine can read a password on the command line");
}

/* Other users cannot read the environment; they can read a file unless its mode forbids it. */
static tide_status refuse_open_file(struct cli *cli, const char *url)
{
    struct stat info;
    char hint[CLI_PATH_BYTES];
    if (tide_setting_layer(cli->settings, TIDE_SET_LEDGER_URL) != TIDE_ORIGIN_FILE ||
        !tide_url_has_password(tide_text_of(url)) || stat(cli->config_path, &info) != 0 ||
        (info.st_mode & (S_IRWXG | S_IRWXO)) == 0)
        return TIDE_OK;
    (void)snprintf(hint, sizeof hint, "Run `chmod 600 %.300s`.", cli->config_path);
    return cli_fail(cli, TIDE_INVALID, hint,
                    "%.200s has a password in ledger.url, and other users can read it",
                    cli->config_path);
}

/* Refuses a half-restored home: what it lacks would be counted as lost, or fetched again. */
static tide_status refuse_half_restored(struct cli *cli)
{
    char path[CLI_PATH_BYTES + 32];
    (void)snprintf(path, sizeof path, "%s/" CLI_RESTORE_PENDING, cli->state_dir);
    if (access(path, F_OK) != 0 || (cli->group != NULL && strcmp(cli->group, "restore") == 0))
        return TIDE_OK;
    return cli_fail(cli, TIDE_BUSY, "Finish it: run `tidemark restore DIR` again.",
                    "a restore of this home was interrupted");
}

tide_status cli_ledger_choose(struct cli *cli)
{
    if (cli->ledger_chosen)
        return TIDE_OK;
    const tide_status half = refuse_half_restored(cli);
    if (half != TIDE_OK)
        return half;
    /* With --ledger no setting is needed, but a wrong file is still an error. */
    TIDE_TRY(cli_settings(cli));
    tide_status rc = TIDE_OK;
    if (cli->shared == NULL) {
        const char *url = tide_setting_text(cli->settings, TIDE_SET_LEDGER_URL);
        rc = url[0] == '\0' ? TIDE_OK : refuse_open_file(cli, url);
        if (rc == TIDE_OK && url[0] != '\0')
            cli->shared = url;
    }
    cli->ledger_chosen = rc == TIDE_OK;
    return rc;
}

tide_status cli_shared_only(struct cli *cli)
{
    TIDE_TRY(cli_ledger_choose(cli));
    if (cli->shared != NULL)
        return TIDE_OK;
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(
        cli, TIDE_INVALID,
        "Name one with --ledger postgres://HOST/DATABASE or the setting ledger.url; "
        "docs/fleet.md describes how to create one.",
        "this command needs a shared ledger (PostgreSQL); the ledger of this home is a file");
}

const char *cli_shared_name(const struct cli *cli)
{
    static _Thread_local char name[TIDE_SETTING_TEXT_BYTES * 2];
    tide_ledger_name(cli->shared, name, sizeof name);
    return name;
}

tide_status cli_shared_hint(struct cli *cli, tide_status rc)
{
    switch (rc) {
    case TIDE_OK:
        return rc;
    case TIDE_NETWORK:
    case TIDE_TIMEOUT:
        return cli_hint(cli, rc,
                        "Check that the server runs and accepts connections at that host and port. "
                        "Workers wait for it and resume by themselves.");
    case TIDE_AUTH:
        /* Not exit code 4: it is the database that refuses, not an account's provider. */
        cli->exit_code = CLI_EXIT_FAILED;
        return cli_hint(cli, rc,
                        "Check role and password. The password comes from PGPASSWORD, ~/.pgpass, "
                        "PGSERVICE or the setting ledger.url.");
    case TIDE_NOT_FOUND:
        return cli_hint(cli, rc,
                        "Run `tidemark ledger migrate` once, as the owner of the database.");
    case TIDE_NEWER:
        return cli_hint(
            cli, rc,
            "Nothing was changed. Upgrade tidemark on this machine to the version of the others.");
    case TIDE_INVALID:
        return cli_hint(cli, rc,
                        "Check the names in the URL. A role gets its rights from `tidemark ledger "
                        "migrate --role NAME`, run by the owner of the database.");
    case TIDE_BUSY:
        return cli_hint(
            cli, rc, "Another process is using it. Wait until it ends, and run the command again.");
    case TIDE_DISK_FULL:
        return cli_hint(cli, rc, "Free space on the server's disk.");
    default:
        return cli_hint(cli, rc, "Check the server's log, and run `tidemark jobs doctor`.");
    }
}

tide_status cli_shared_open(struct cli *cli, bool read_only, bool upgrade)
{
    char run_id[40];
    (void)snprintf(run_id, sizeof run_id, "command-%d", (int)getpid());
    const struct tide_ledger_options options = {.path = cli->shared,
                                                .run_id = run_id,
                                                .now_unix_ms = cli->now_unix_ms,
                                                .read_only = read_only,
                                                .must_exist = !upgrade,
                                                .database_clock = true};
    const tide_status rc = tide_ledger_open(cli->world, &options, &cli->ledger, &cli->err);
    cli->ledger_reached = cli->ledger_reached || rc == TIDE_OK;
    return cli_shared_hint(cli, rc);
}

tide_status cli_tell(struct cli *cli, tide_tx *tx, tide_hint hint, uint32_t account)
{
    return cli->shared == NULL ? TIDE_OK : tide_tx_hint(tx, hint, account, &cli->err);
}
