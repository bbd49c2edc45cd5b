/* archive.c - which archive a call reads, and what could not be read of it. */
#include "mail/tools/tools.h"

#include "cli/archive_here.h"
#include "mail/mail.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHORT_MIN = 4 }; /* characters of an id, as for commands (mail/commands/find.c) */

/* ---- which account ---- */

struct choice {
    const char *named; /* NULL: any */
    const char *dir;   /* of the archives */
    unsigned count;
    char email[256];
    char list[400]; /* of names, for an error */
};

static void note(struct choice *choice, const char *name)
{
    const size_t used = strlen(choice->list);
    choice->count++;
    (void)snprintf(choice->email, sizeof choice->email, "%s", name);
    (void)snprintf(choice->list + used, sizeof choice->list - used, "%s%s", used == 0 ? "" : ", ",
                   name);
}

/* The directories of the archive are named after accounts.  An argument is compared with them, and
 * never used as a path: it may come from a text in a mail. */
static void choose(struct choice *choice)
{
    DIR *folder = opendir(choice->dir);
    if (folder == NULL)
        return;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        if (strchr(entry->d_name, '@') != NULL &&
            (choice->named == NULL || strcmp(choice->named, entry->d_name) == 0))
            note(choice, entry->d_name);
    (void)closedir(folder);
}

static void note_existing(const char *name, void *arg)
{
    struct choice *choice = arg;
    char dir[CLI_PATH_BYTES + 300];
    tide_mail_dir(choice->dir, name, dir, sizeof dir);
    if (access(dir, F_OK) == 0)
        note(choice, name);
}

/* Archives stay where accounts are removed: of several, those of accounts that exist come first.  A
 * ledger that cannot be read changes nothing. */
static void prefer_existing(struct cli *cli, struct choice *choice)
{
    const tide_error kept = cli->err;
    struct choice existing = {.dir = choice->dir};
    const struct tide_system *mail = tide_system_named(cli->systems, TIDE_TEXT("mail"));
    tide_status rc = mail == NULL ? TIDE_NOT_FOUND : cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_system_accounts(mail, cli->ledger, note_existing, &existing, &cli->err);
    cli->err = kept;
    if (rc == TIDE_OK && existing.count > 0)
        *choice = existing;
}

static tide_status account_choose(struct tide_tool_call *call, const char *archive_dir,
                                  char email_out[256])
{
    struct choice choice = {.named = tide_tool_text(call, "account"), .dir = archive_dir};
    choose(&choice);
    if (choice.count > 1)
        prefer_existing(call->cli, &choice);
    if (choice.count == 0 && choice.named != NULL)
        return cli_fail(call->cli, TIDE_NOT_FOUND, "list_accounts has the names.",
                        "there is no archive of mail of \"%.200s\" here", choice.named);
    if (choice.count == 0)
        return cli_fail(call->cli, TIDE_NOT_FOUND,
                        "The user adds one with `tidemark account add` and fetches mail with "
                        "`tidemark mail sync`.",
                        "there is no mail archive here");
    if (choice.count > 1)
        return cli_fail(call->cli, TIDE_INVALID, "Give the argument account.",
                        "there are %u mail accounts: %.300s", choice.count, choice.list);
    (void)snprintf(email_out, 256, "%s", choice.email);
    return TIDE_OK;
}

tide_status mail_tool_open(struct tide_tool_call *call, struct mail_tool_archive *at_out)
{
    struct cli *cli = call->cli;
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    char dir[CLI_PATH_BYTES + 300];
    *at_out = (struct mail_tool_archive){.archive = NULL};
    tide_status rc = archive_here_places(cli, archive_dir, secrets_dir);
    if (rc == TIDE_OK)
        rc = account_choose(call, archive_dir, at_out->email);
    if (rc != TIDE_OK)
        return rc;
    tide_mail_dir(archive_dir, at_out->email, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = at_out->email, .world = cli->world, .read_only = true};
    rc = tide_archive_open(&options, cli->mem, &at_out->archive, &cli->err);
    return cli_hint(cli, rc, "The user can run `tidemark mail verify`.");
}

/* ---- what could not be read ---- */

static void broken_shard(const char *shard, tide_status rc, const char *why, void *arg)
{
    tide_json one;
    (void)rc;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "shard", shard);
    tide_json_set_cstr(&one, "what", why);
    tide_json_append(arg, &one);
}

/* An answer that leaves out mail must say so. */
static tide_status broken_show(struct tide_tool_call *call, tide_archive *archive)
{
    tide_json list;
    tide_json_array(&list);
    const tide_status rc = tide_archive_broken(archive, broken_shard, &list, &call->cli->err);
    if (json_array_size(list.value) > 0)
        tide_json_set(call->result, "unreadable", &list);
    else
        tide_json_done(&list);
    return rc;
}

tide_status mail_tool_close(struct tide_tool_call *call, struct mail_tool_archive *at,
                            tide_status rc)
{
    if (at->archive != NULL && rc == TIDE_OK) {
        tide_json_set_cstr(call->result, "account", at->email);
        tide_json_set_cstr(call->result, TIDE_TOOL_NOTICE, TIDE_TOOL_NOTICE_TEXT);
        rc = broken_show(call, at->archive);
    }
    const tide_status closed =
        tide_archive_close(at->archive, rc == TIDE_OK ? &call->cli->err : NULL);
    return rc == TIDE_OK ? closed : rc;
}

tide_status mail_tool_no_message(struct tide_tool_call *call, const struct mail_tool_archive *at,
                                 const char *id)
{
    return cli_fail(call->cli, TIDE_NOT_FOUND, "mail_search finds the ids of messages.",
                    "there is no message or thread \"%.100s\" in the archive of %s", id, at->email);
}

tide_status mail_tool_find(struct tide_tool_call *call, const struct mail_tool_archive *at,
                           const char *id, struct tide_stored *stored_out)
{
    struct cli *cli = call->cli;
    unsigned count = 0;
    tide_status rc = tide_archive_find(at->archive, tide_text_of(id), stored_out, &cli->err);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    if (strlen(id) >= SHORT_MIN)
        TIDE_TRY(
            tide_archive_find_short(at->archive, tide_text_of(id), &count, stored_out, &cli->err));
    if (count == 0)
        return mail_tool_no_message(call, at, id);
    if (count > 1)
        return cli_fail(cli, TIDE_INVALID, "Give more of the id.",
                        "more than one message has an id that begins with %.100s", id);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    return TIDE_OK;
}

tide_status mail_tool_wanted(const struct tide_tool_call *call)
{
    return tide_canceled(call->cancel) == TIDE_CANCEL_NONE
               ? TIDE_OK
               : tide_error_set(&call->cli->err, TIDE_CANCELED, "the call was canceled");
}
