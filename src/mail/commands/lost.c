/* lost.c - `tidemark mail lost [list|accept]`: mail that is lost here and exists nowhere else
 * (M4). */
#include "mail/commands/known.h"

#include <inttypes.h>
#include <stdio.h>

/* Opens the archive of an account read-only; NULL if there is none. */
static tide_status archive_of(struct cli *cli, struct mail_home *home, const char *named,
                              tide_archive **archive_out)
{
    char email[256];
    *archive_out = NULL;
    const tide_status rc = mail_home_archive(cli, home, named, email, archive_out);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    return TIDE_OK;
}

static tide_status list_account(struct cli *cli, struct mail_home *home, const char *email,
                                tide_json *list)
{
    struct tide_mail_look look;
    struct tide_mail_kept kept = {0};
    tide_archive *archive = NULL;
    tide_json one;
    tide_mail_look_init(&look, cli->mem);
    tide_status rc = tide_mail_look(cli->ledger, email, false, &look, &cli->err);
    if (rc == TIDE_OK)
        rc = archive_of(cli, home, email, &archive);
    if (rc == TIDE_OK && archive != NULL)
        rc = tide_mail_kept(archive, &kept, &cli->err);
    const struct mail_known_ask ask = {
        .look = &look, .archive = archive, .stored = kept.stored, .thorough = true, .names = true};
    const int before = cli->exit_code;
    cli->exit_code = CLI_EXIT_DONE;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "account", email);
    cli_print(cli, "%s\n", email);
    if (rc == TIDE_OK)
        rc = mail_known_show(cli, &ask, &one);
    if (cli->exit_code == CLI_EXIT_DONE)
        cli_print(cli, "  nothing is lost\n");
    cli->exit_code = cli->exit_code == CLI_EXIT_DONE ? before : cli->exit_code;
    tide_json_append(list, &one);
    const tide_status closed = tide_archive_close(archive, &cli->err);
    tide_mail_look_done(&look);
    return rc == TIDE_OK ? closed : rc;
}

static tide_status list(struct cli *cli, const struct cli_names *names)
{
    struct mail_home home = {0};
    tide_json accounts;
    tide_json_array(&accounts);
    tide_status rc = mail_home_places(cli, &home);
    for (size_t i = 0; rc == TIDE_OK && i < names->count; i++)
        rc = list_account(cli, &home, names->list[i], &accounts);
    tide_json_set(&cli->json, "accounts", &accounts);
    if (rc == TIDE_OK && cli->exit_code == CLI_EXIT_BAD_ITEMS)
        cli_print(cli, "Restore the missing files from a backup (`tidemark mail sync` then checks "
                       "them), or accept the loss with `tidemark mail lost accept`.\n");
    return rc;
}

/* ---- accepting ---- */

/* Without an engine if another process has the directory. */
static tide_status home_open(struct cli *cli, struct mail_home *home)
{
    const tide_status rc = mail_home_open(cli, home);
    if (rc != TIDE_BUSY)
        return rc;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    return TIDE_OK;
}

/* By the process that has the archive open, or here; here also if that process ends meanwhile. */
static tide_status accept_one(struct cli *cli, struct mail_home *home, const char *email)
{
    tide_status rc = TIDE_OK;
    struct cli_tries tries = {0};
    while (rc == TIDE_OK && home->engine == NULL && cli_try(cli, &tries)) {
        tide_json payload;
        tide_json_object(&payload);
        rc = cli_ask_there(cli, TIDE_MAIL_ACCEPT_KIND, email, &payload);
        if (rc != TIDE_STOPPED)
            return rc;
        cli->hint[0] = '\0';
        (void)mail_home_close(cli, home);
        rc = home_open(cli, home);
    }
    if (rc == TIDE_OK && home->engine == NULL)
        return cli_tries_over(cli);
    return rc == TIDE_OK ? tide_mail_lost_accepted(home->mail, email, &cli->err) : rc;
}

static tide_status accept(struct cli *cli, const struct cli_names *names)
{
    struct mail_home home = {0};
    cli_ledger_close(cli);
    tide_status rc = home_open(cli, &home);
    for (size_t i = 0; rc == TIDE_OK && i < names->count; i++) {
        rc = accept_one(cli, &home, names->list[i]);
        if (rc == TIDE_OK && !cli->quiet)
            cli_print(cli, "%s: the loss is accepted and no longer reported\n", names->list[i]);
    }
    const tide_status closed = mail_home_close(cli, &home);
    return rc == TIDE_OK ? closed : rc;
}

tide_status cli_mail_lost(struct cli *cli)
{
    const char *word = cli->arguments_count > 0 ? cli->arguments[0] : "list";
    const char *account = cli_flag(cli, "account");
    const bool accepts = strcmp(word, "accept") == 0;
    struct cli_names names = {.count = 0};
    if (!accepts && strcmp(word, "list") != 0)
        return cli_wrong(cli, "Write `tidemark mail lost` or `tidemark mail lost accept`.",
                         "the word must be list or accept, not \"%.100s\"", word);
    tide_status rc = cli_names(cli, &tide_mail_system, &account, account != NULL, &names);
    if (rc == TIDE_OK)
        rc = accepts ? accept(cli, &names) : list(cli, &names);
    cli_names_done(&names);
    return rc;
}
