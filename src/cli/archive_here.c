#include "cli/archive_here.h"

#include "base/limits.h"
#include "console/console.h"
#include "mail/mail.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ID_FILE "archive.id"
enum { ID_RANDOM = 16, ID_FILE_BYTES_MAX = 256 };

static bool id_is_good(const char *id)
{
    const size_t bytes = strlen(id);
    return bytes == 2 * ID_RANDOM && strspn(id, "0123456789abcdef") == bytes;
}

static tide_status id_make(struct cli *cli, const char *path, struct archive_here *here)
{
    unsigned char random[ID_RANDOM];
    char line[2 * ID_RANDOM + 2];
    tide_world_random(cli->world, random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(here->id + 2 * i, 3, "%02x", random[i]);
    (void)snprintf(line, sizeof line, "%.32s\n", here->id);
    return cli_hint(cli, tide_file_replace(cli->world, path, tide_text_of(line), 0600, &cli->err),
                    "Check that the directory is yours and has room.");
}

tide_status archive_here_open(struct cli *cli, const char *archive_dir, struct archive_here *here)
{
    char path[CLI_PATH_BYTES + 16];
    tide_buf text;
    (void)snprintf(path, sizeof path, "%s/" ID_FILE, archive_dir);
    tide_status rc = tide_dir_make(cli->world, archive_dir, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Name a directory that can be made and written to: --home DIR.");
    tide_buf_init(&text, cli->mem, ID_FILE_BYTES_MAX);
    rc = tide_file_read(cli->world, path, ID_FILE_BYTES_MAX - 1, &text, &cli->err);
    if (rc == TIDE_NOT_FOUND) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        rc = id_make(cli, path, here);
    } else if (rc == TIDE_OK) {
        const char *found = tide_buf_cstr(&text);
        (void)snprintf(here->id, sizeof here->id, "%.*s", (int)strcspn(found, "\r\n"), found);
        if (!id_is_good(here->id))
            rc = cli_fail(cli, TIDE_CORRUPT,
                          "Restore it from a backup of this machine, or write there the archive "
                          "that `tidemark account list --json` names for the accounts here.",
                          "%.300s is not the id of an archive", path);
    }
    tide_buf_done(&text);
    return rc;
}

bool archive_here_wants(const struct archive_here *here, const char *account, const char *provider)
{
    if (!(here->mail && strcmp(provider, "gmail") == 0) &&
        !(here->console && strcmp(provider, "console") == 0))
        return false;
    for (size_t i = 0; i < here->accounts_count; i++)
        if (strcmp(here->accounts[i], account) == 0)
            return true;
    return here->accounts_count == 0;
}

bool archive_here_may_take(void *arg, const char *account, const char *provider,
                           const char *archive)
{
    const struct archive_here *here = arg;
    return strcmp(archive, here->id) == 0 && archive_here_wants(here, account, provider);
}

/* ---- telling the ledger ---- */

static tide_status place(struct cli *cli, const struct archive_here *here, tide_secrets *secrets,
                         uint32_t account)
{
    char host[65] = "?";
    char where[201];
    tide_tx *tx = NULL;
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(where, sizeof where, "%s: %.100s", host, tide_secrets_where(secrets));
    tide_status rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_ledger_account_place(tx, account, here->id, where, &cli->err);
    if (rc == TIDE_OK)
        rc = cli_tell(cli, tx, TIDE_HINT_CONTROL, account);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, &cli->err);
    tide_tx_rollback(tx);
    return rc;
}

tide_status archive_here_place(struct cli *cli, const struct archive_here *here,
                               tide_secrets *secrets, const char *account)
{
    uint32_t id = 0;
    tide_status rc = cli_ledger_choose(cli);
    if (rc != TIDE_OK || cli->shared == NULL)
        return rc;
    rc = cli_ledger_write(cli);
    if (rc == TIDE_OK)
        rc = tide_ledger_account_find(cli->ledger, account, &id, &cli->err);
    if (rc == TIDE_OK)
        rc = place(cli, here, secrets, id);
    cli_ledger_close(cli);
    if (rc == TIDE_NOT_FOUND) { /* another process adds it, and will adopt it soon */
        cli->err = (tide_error){TIDE_OK, 0, ""};
        return TIDE_OK;
    }
    return cli_shared_hint(cli, rc);
}

struct homeless {
    const struct archive_here *here;
    uint32_t ids[TIDE_MAIL_ACCOUNTS_MAX];
    char names[TIDE_MAIL_ACCOUNTS_MAX][201];
    bool mail[TIDE_MAIL_ACCOUNTS_MAX];
    size_t count;
};

static bool homeless_note(const struct tide_account_row *row, void *arg)
{
    struct homeless *list = arg;
    if (row->archive[0] != '\0' || !archive_here_wants(list->here, row->name, row->provider))
        return true;
    list->ids[list->count] = row->id;
    list->mail[list->count] = strcmp(row->provider, "gmail") == 0;
    memcpy(list->names[list->count++], row->name, sizeof row->name);
    return list->count < TIDE_MAIL_ACCOUNTS_MAX;
}

static bool signed_in_here(struct cli *cli, tide_secrets *secrets, const char *account, bool mail)
{
    char name[TIDE_SECRET_NAME_BYTES_MAX];
    tide_buf secret;
    if (mail)
        tide_mail_secret_name(account, name);
    else
        tide_console_secret_name(account, name);
    tide_buf_init(&secret, cli->mem, TIDE_SECRET_BYTES_MAX);
    const tide_status rc = tide_secrets_get(secrets, name, &secret, NULL);
    tide_secret_wipe(&secret);
    tide_buf_done(&secret);
    return rc == TIDE_OK;
}

tide_status archive_here_adopt(struct cli *cli, const struct archive_here *here,
                               tide_secrets *secrets, unsigned *count_out)
{
    struct homeless *list = tide_mem_new(cli->mem, sizeof *list);
    unsigned adopted = 0;
    if (list == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    list->here = here;
    tide_status rc = cli_ledger_write(cli);
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(cli->ledger, homeless_note, list, &cli->err);
    for (size_t i = 0; rc == TIDE_OK && i < list->count; i++)
        if (signed_in_here(cli, secrets, list->names[i], list->mail[i])) {
            rc = place(cli, here, secrets, list->ids[i]);
            adopted += rc == TIDE_OK;
        }
    cli_ledger_close(cli);
    tide_mem_free(cli->mem, list, sizeof *list);
    if (rc == TIDE_OK)
        *count_out = adopted;
    return cli_shared_hint(cli, rc);
}
