/* system.c - the mail system, as the list of systems has it (system/system.h). */
#include "mail/commands/home.h"

#include "cloud/gmail.h"
#include "mail/files/backup.h"
#include "mail/mail.h"
#include "mail/manifest.h"
#include "mail/result.h"
#include "mail/rows.h"
#include "mail/status.h"
#include "net/oauth/google.h"

#include <stdio.h>
#include <string.h>

static tide_status tables(tide_rows db, tide_error *err)
{
    tide_status rc = tide_mail_tables(db, err);
    if (rc == TIDE_OK)
        rc = tide_manifest_tables(db, err);
    return rc == TIDE_OK ? tide_result_tables(db, err) : rc;
}

/* ---- running ---- */

static tide_status open_mail(const struct tide_system_home *home, void **state_out, tide_error *err)
{
    const tide_settings *settings = home->settings;
    const struct tide_mail_options *wanted = home->options;
    const struct tide_mail_options options = {
        .engine = home->engine,
        .world = home->world,
        .secrets = home->secrets,
        .archive_dir = home->archive_dir,
        .window_units = tide_setting_u64(settings, TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS),
        .window_ms = tide_setting_u64(settings, TIDE_SET_GOVERNOR_GMAIL_WINDOW),
        .archiver = wanted != NULL && wanted->archiver,
        .no_sync = wanted != NULL && wanted->no_sync};
    tide_mail *mail = NULL;
    const tide_status rc = tide_mail_open(&options, home->mem, &mail, err);
    *state_out = mail;
    return rc;
}

static tide_status close_mail(void *state, tide_error *err)
{
    return tide_mail_close(state, err);
}

static tide_status rest(void *state, tide_error *err)
{
    return tide_mail_rest(state, err);
}

/* Indexes stored messages, one group at a time, so that searches find them. */
static tide_status idle(void *state, bool *more_out, tide_error *err)
{
    uint64_t done = 0;
    const tide_status rc = tide_mail_index(state, &done, err);
    *more_out = rc == TIDE_OK && done > 0;
    return rc;
}

/* ---- copies: a directory for each address ---- */

static bool owns_entry(const char *name)
{
    return strchr(name, '@') != NULL;
}

static void note_damage(const struct tide_damage *damage, void *arg)
{
    tide_error *err = arg;
    if (err->status == TIDE_OK)
        (void)tide_error_set(err, TIDE_CORRUPT, "shard %s %s is damaged: %s", damage->shard,
                             damage->gmail_id, damage->what);
}

static tide_status backup_check(const struct tide_system_copy *copy, tide_error *err)
{
    const struct tide_archive_options options = {
        .dir = copy->to, .account = copy->name, .world = copy->world, .read_only = true};
    tide_archive *archive = NULL;
    tide_error damage = {TIDE_OK, 0, ""};
    uint64_t checked = 0;
    tide_status rc = tide_archive_open(&options, copy->mem, &archive, err);
    if (rc == TIDE_OK)
        rc = tide_archive_verify(archive, 0, note_damage, &damage, &checked, err);
    (void)tide_archive_close(archive, NULL);
    if (rc == TIDE_OK && damage.status != TIDE_OK) {
        *err = damage;
        return damage.status;
    }
    return rc;
}

/* ---- accounts ---- */

static tide_status account_check(struct cli *cli, const char *named,
                                 struct tide_account_request *request)
{
    const char *email = request->subjects[0];
    request->name = email;
    if (request->subjects_count > 1)
        return cli_wrong(cli, "Run the command once for each.",
                         "only one mail account can be added at a time");
    if (strchr(email, '@') == NULL || strpbrk(email, "/\\ \t") != NULL || email[0] == '.' ||
        strlen(email) > 200)
        return cli_wrong(cli, "Give an address like ada@example.com.",
                         "\"%.200s\" is not an e-mail address", email);
    return named == NULL
               ? TIDE_OK
               : cli_wrong(cli, "Omit --name.", "a mail account has the name of its address");
}

static tide_status another_mailbox(struct cli *cli, const char *email, const char *mailbox)
{
    char hint[400];
    (void)snprintf(
        hint, sizeof hint,
        "Nothing was added. Sign in as %.100s, or add the mailbox under its own address: "
        "`tidemark account add gmail %.100s`.",
        email, mailbox);
    return cli_fail(cli, TIDE_AUTH, hint, "this sign-in opens the mailbox of %.100s, not of %.100s",
                    mailbox, email);
}

/* Asks the server whose mailbox the sign-in opens (M16, M19a). */
static tide_status account_try(struct cli *cli, const struct tide_account_request *request,
                               tide_text bearer)
{
    struct tide_gmail_profile profile = {.messages = 0};
    const tide_status rc =
        tide_gmail_whose(cli->world, request->endpoint[0] == '\0' ? NULL : request->endpoint,
                         bearer, cli->mem, cli_interruptible(cli), &profile, &cli->err);
    return rc == TIDE_OK && tide_mail_compare(request->name, &profile, NULL) != TIDE_OK
               ? another_mailbox(cli, request->name, profile.email)
               : rc;
}

/* ---- status ---- */

static void status_of_look(const struct tide_mail_look *look, struct tide_account_status *out)
{
    bool before = false; /* adjacent ones are one gap */
    out->tidemark_unix_ms = look->tidemark_ms;
    out->left = look->messages_left;
    out->more = look->listing;
    out->bad = look->bad + look->owed;
    for (size_t i = 0; i < look->spans_count; i++) {
        const bool open = look->spans[i].state != TIDE_SPAN_COVERED;
        out->gaps += open && !before ? 1 : 0;
        before = open;
    }
    (void)snprintf(out->note, sizeof out->note, "%.190s", look->notice);
}

/* An archive that cannot be read is noted: the other accounts are shown. */
static void status_of_archive(const struct tide_system_home *home, const char *email,
                              struct tide_account_status *out)
{
    char dir[4096 + 256];
    tide_error why = {TIDE_OK, 0, ""};
    struct tide_mail_kept kept = {.stored = 0};
    tide_archive *archive = NULL;
    tide_mail_dir(home->archive_dir, email, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = email, .world = home->world, .read_only = true};
    tide_status rc = tide_archive_open(&options, home->mem, &archive, &why);
    if (rc == TIDE_OK)
        rc = tide_mail_kept(archive, &kept, &why);
    if (rc == TIDE_OK)
        out->stored = kept.stored;
    else if (rc != TIDE_NOT_FOUND)
        (void)snprintf(out->note, sizeof out->note, "%.150s: `tidemark mail verify`", why.text);
    (void)tide_archive_close(archive, NULL);
}

static tide_status status(const struct tide_system_home *home, tide_ledger *ledger,
                          const struct tide_account_row *account, struct tide_account_status *out,
                          tide_error *err)
{
    struct tide_mail_look look;
    tide_mail_look_init(&look, home->mem);
    const tide_status rc = tide_mail_look(ledger, account->name, true, &look, err);
    if (rc == TIDE_OK) {
        status_of_look(&look, out);
        status_of_archive(home, account->name, out);
    }
    tide_mail_look_done(&look);
    return rc;
}

/* Least privilege (M15a): sync needs only to read.  The wider scopes include the
 * narrower ones, so one scope is requested. */
static const struct tide_purpose purposes[] = {
    {"sync", "https://www.googleapis.com/auth/gmail.readonly", "to read mail, and nothing else"},
    {"archive", "https://www.googleapis.com/auth/gmail.modify",
     "to read mail, change its labels, move it to the trash and put it back; not to delete it for "
     "good"},
    {"delete", "https://mail.google.com/",
     "to read, change and put back mail, and to delete it for good"},
    {NULL, NULL, NULL},
};

const struct tide_system tide_mail_system = {
    .name = "mail",
    .provider = "gmail",
    .subject = "EMAIL",
    .oauth = &tide_oauth_google,
    .purposes = purposes,
    .unit = "messages",
    .commands = mail_commands,
    .tables = tables,
    .open = open_mail,
    .close = close_mail,
    .rest = rest,
    .idle = idle,
    .account_check = account_check,
    .account_try = account_try,
    .account_put = tide_mail_account_put,
    .account_drop = tide_mail_row_remove,
    .status = status,
    .archive_path = tide_mail_dir,
    .owns_entry = owns_entry,
    .backup = tide_backup_archive,
    .backup_check = backup_check,
};
