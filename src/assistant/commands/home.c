/* home.c - what the commands of the assistant share (home.h). */
#include "assistant/commands/home.h"

#include <string.h>
#include <unistd.h>

tide_status assistant_config_path(struct cli *cli, char path_out[CLI_PATH_BYTES])
{
    const char *slash = strrchr(cli->config_path, '/');
    const int folder = slash != NULL ? (int)(slash - cli->config_path) + 1 : 0;
    if (snprintf(path_out, CLI_PATH_BYTES, "%.*sassistant.yaml", folder, cli->config_path) >=
        CLI_PATH_BYTES)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter --home.", "the path is too long");
    return TIDE_OK;
}

tide_status assistant_config(struct cli *cli, struct tide_assistant_config **config_out)
{
    char path[CLI_PATH_BYTES];
    TIDE_TRY(assistant_config_path(cli, path));
    const tide_status rc = tide_assistant_config_load(path, (const char *const *)environ, cli->mem,
                                                      config_out, &cli->err);
    if (rc == TIDE_NOT_FOUND)
        return cli_fail(cli, rc, "Run `tidemark assistant onboard`: it writes one to begin with.",
                        "there is no configuration %.300s", path);
    return cli_hint(cli, rc, "Correct it there; nothing was changed.");
}

/* ---- users ---- */

struct only {
    struct tide_assistant_user user;
    size_t count;
};

static void count_user(const struct tide_assistant_user *user, void *arg)
{
    struct only *only = arg;
    only->user = *user;
    only->count++;
}

tide_status assistant_user(struct cli *cli, const char *email, struct tide_assistant_user *user_out)
{
    const tide_rows db = tide_ledger_rows(cli->ledger);
    struct only only = {.count = 0};
    if (email != NULL) {
        const tide_status rc = tide_assistant_user_named(db, email, user_out, &cli->err);
        if (rc != TIDE_NOT_FOUND)
            return rc;
        return cli_fail(cli, rc, "`tidemark assistant status` lists them.",
                        "the assistant does not work for %.200s", email);
    }
    TIDE_TRY(tide_assistant_users_each(db, count_user, &only, &cli->err));
    if (only.count == 0)
        return cli_fail(cli, TIDE_NOT_FOUND, "Run `tidemark assistant onboard EMAIL`.",
                        "the assistant works for no account yet");
    if (only.count > 1)
        return cli_wrong(cli, "Name one with --account.", "the assistant works for %zu accounts",
                         only.count);
    *user_out = only.user;
    return TIDE_OK;
}
