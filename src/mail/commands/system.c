/* system.c - the mail system, as the list of systems has it (system/system.h). */
#include "mail/commands/home.h"

#include "cloud/gmail.h"
#include "mail/archive/shelf.h"
#include "mail/files/backup.h"
#include "mail/inside.h"
#include "mail/mail.h"
#include "mail/manifest.h"
#include "mail/result.h"
#include "mail/rows.h"
#include "mail/status.h"
#include "mail/page/page.h"
#include "mail/tools/tools.h"
#include "net/judge_google.h"
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
    const struct tide_mail_options *wanted = home->options;
    const struct tide_mail_options options = {.engine = home->engine,
                                              .world = home->world,
                                              .secrets = home->secrets,
                                              .archive_dir = home->archive_dir,
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

/* Searches are to find what was stored. */
static tide_status idle(void *state, bool *more_out, tide_error *err)
{
    return tide_mail_index_soon(state, more_out, err);
}

static bool busy(void *state)
{
    return tide_mail_imports(state);
}

static tide_status keep(tide_world *world, tide_mem *mem, void **kept_out, tide_error *err)
{
    tide_shelf *shelf = NULL;
    const tide_status rc = tide_shelf_new(world, mem, TIDE_SHELF_REST_MS, &shelf, err);
    *kept_out = shelf;
    return rc;
}

static void keep_end(void *kept)
{
    tide_shelf_free(kept);
}

static tide_status changed(void *state, const char *subject, bool whole, tide_error *err)
{
    return tide_mail_changed(state, subject, whole, err);
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

/* An account of exactly that spelling signs in again (M16). */
static tide_status spelling_check(struct cli *cli, const char *email)
{
    char hint[400];
    char here[256];
    mail_home_spelling(cli, email, here);
    if (here[0] == '\0' || strcmp(here, email) == 0)
        return TIDE_OK;
    (void)snprintf(hint, sizeof hint, "Nothing was added. Run `tidemark account add gmail %.200s`.",
                   here);
    return cli_fail(cli, TIDE_EXISTS, hint, "this mailbox is here already, as %.200s", here);
}

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
               ? spelling_check(cli, email)
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

/* ---- names for completion: labels, of all archives here ---- */

struct names_ask {
    const struct tide_system_home *home;
    void (*visit)(tide_text name, void *arg);
    void *arg;
};

static void take_label(const struct tide_label_row *label, void *arg)
{
    const struct names_ask *ask = arg;
    ask->visit(label->name.bytes > 0 ? label->name : label->id, ask->arg);
}

static bool take_archive(const char *email, void *arg)
{
    const struct names_ask *ask = arg;
    char dir[4096 + 256];
    tide_archive *archive = NULL;
    tide_mail_dir(ask->home->archive_dir, email, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = email, .world = ask->home->world, .read_only = true};
    if (tide_archive_open(&options, ask->home->mem, &archive, NULL) == TIDE_OK)
        (void)tide_archive_labels_all(archive, take_label, arg, NULL);
    (void)tide_archive_close(archive, NULL);
    return true;
}

/* Of queries, as `mail search --help` explains them. */
static const char *const operators[] = {
    "from:",          "to:",      "cc:",          "bcc:",         "subject:",
    "filename:",      "after:",   "before:",      "newer_than:",  "older_than:",
    "larger:",        "smaller:", "label:",       "in:anywhere",  "in:inbox",
    "in:spam",        "in:trash", "is:unread",    "is:starred",   "category:",
    "has:attachment", "list:",    "deliveredto:", "rfc822msgid:", "saved:"};
enum { OPERATORS = sizeof operators / sizeof operators[0] };

static void names(const struct tide_system_home *home, const char *kind,
                  void (*visit)(tide_text name, void *arg), void *arg)
{
    struct names_ask ask = {home, visit, arg};
    if (strcmp(kind, "labels") == 0)
        mail_home_archives(home->archive_dir, take_archive, &ask);
    else if (strcmp(kind, "saved") == 0)
        mail_saved_names(home, visit, arg);
    for (size_t i = 0; strcmp(kind, "operators") == 0 && i < OPERATORS; i++)
        visit(tide_text_of(operators[i]), arg);
}

/* ---- status ---- */

/* What is before the first span is complete: its oldest message, or where syncing began. */
static void status_ruler(const struct tide_mail_look *look, uint64_t oldest_ms,
                         struct tide_ruler *ruler)
{
    uint64_t from_ms = look->since_ms > 0 ? look->since_ms : oldest_ms;
    uint64_t to_ms = look->tidemark_ms;
    for (size_t i = 0; i < look->spans_count; i++) {
        const struct tide_mail_span *span = &look->spans[i];
        if (span->from_ms > 0 && (from_ms == 0 || span->from_ms < from_ms))
            from_ms = span->from_ms;
        if (span->to_ms > to_ms)
            to_ms = span->to_ms;
    }
    tide_ruler_begin(ruler, from_ms > 0 ? from_ms : to_ms, to_ms);
    for (size_t i = 0; i < look->spans_count; i++) {
        const struct tide_mail_span *span = &look->spans[i];
        const char state = span->state == TIDE_SPAN_FAILED    ? TIDE_RULER_FAILED
                           : span->state != TIDE_SPAN_COVERED ? TIDE_RULER_GAP
                           : span->bad > 0                    ? TIDE_RULER_BAD
                                                              : TIDE_RULER_BEYOND;
        tide_ruler_mark(ruler, span->from_ms, span->to_ms, state);
    }
}

static void status_of_look(const struct tide_mail_look *look, struct tide_account_status *out)
{
    bool before = false; /* adjacent ones are one gap */
    out->tidemark_unix_ms = look->tidemark_ms;
    out->left = look->messages_left;
    out->left_units = TIDE_GMAIL_GET_UNITS;
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
static void status_of_archive(const struct tide_system_home *home,
                              const struct tide_mail_look *look, struct tide_account_status *out)
{
    const char *email = look->email;
    char dir[4096 + 256];
    tide_error why = {TIDE_OK, 0, ""};
    struct tide_mail_kept kept = {.stored = 0};
    struct tide_archive_tally tally = {.gone = 0};
    tide_archive *archive = NULL;
    tide_mail_dir(home->archive_dir, email, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = email, .world = home->world, .read_only = true};
    tide_status rc = tide_shelf_take(home->kept, &options, home->mem, &archive, &why);
    if (rc == TIDE_OK)
        rc = tide_mail_kept(archive, &kept, &why);
    if (rc == TIDE_OK)
        rc = tide_archive_tally(archive, &tally, &why);
    for (size_t i = 0; i < TIDE_COPIES; i++)
        out->inexact += tally.copies[i];
    if (look->jobs_exact > 0)
        out->left += tally.copies[TIDE_COPY_HELD]; /* to be replaced by Gmail's own bytes */
    if (rc == TIDE_OK)
        out->stored = kept.stored;
    else if (rc != TIDE_NOT_FOUND)
        (void)snprintf(out->note, sizeof out->note, "%.150s: `tidemark mail verify`", why.text);
    tide_shelf_give(home->kept, archive);
    status_ruler(look, kept.oldest_ms > 0 ? (uint64_t)kept.oldest_ms : 0, &out->ruler);
}

static tide_status archive_stored(const struct tide_system_home *home, const char *name,
                                  uint64_t *stored_out, tide_error *err)
{
    char dir[4096 + 256];
    struct tide_mail_kept kept = {.stored = 0};
    tide_archive *archive = NULL;
    tide_mail_dir(home->archive_dir, name, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = name, .world = home->world, .read_only = true};
    tide_status rc = tide_shelf_take(home->kept, &options, home->mem, &archive, err);
    if (rc == TIDE_OK)
        rc = tide_mail_kept(archive, &kept, err);
    tide_shelf_give(home->kept, archive);
    if (rc == TIDE_OK)
        *stored_out = kept.stored;
    return rc;
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
        status_of_archive(home, &look, out);
    }
    tide_mail_look_done(&look);
    return rc;
}

/* ---- mail about alerts ---- */

#define SCOPE_READ "https://www.googleapis.com/auth/gmail.readonly"
#define SCOPE_SEND "https://www.googleapis.com/auth/gmail.send"

static tide_status may_not_send(const char *email, tide_error *err)
{
    return tide_error_set(
        err, TIDE_AUTH,
        "the sign-in of %.100s does not allow to send mail; run `tidemark account "
        "add gmail %.100s --for alerts`",
        email, email);
}

static tide_status mail_self(const struct tide_system_home *home, const char *name,
                             const char *endpoint, const struct tide_self_mail *mail,
                             tide_buf *answer, tide_error *err)
{
    const struct tide_gmail_send send = {.message = mail->message,
                                         .message_id = mail->message_id,
                                         .again = mail->again,
                                         .cancel = mail->cancel};
    tide_tokens *tokens = NULL;
    tide_buf id;
    tide_buf_init(&id, home->mem, 256);
    tide_status rc = tide_mail_tokens(home->world, home->secrets, name, home->mem, &tokens, err);
    if (rc == TIDE_OK && !tide_tokens_cover(tokens, SCOPE_SEND))
        rc = may_not_send(name, err);
    if (rc == TIDE_OK)
        rc = tide_gmail_send(home->world, endpoint[0] == '\0' ? NULL : endpoint, tokens, &send,
                             home->mem, &id, err);
    if (rc == TIDE_PERMANENT && err != NULL && tide_google_lacks_scope(err->text))
        rc = may_not_send(name, err);
    if (rc == TIDE_OK)
        rc = id.bytes == 0 ? tide_buf_add_text(answer, "it had been sent before")
                           : tide_buf_print(answer, "sent as message %.*s", (int)id.bytes, id.data);
    tide_tokens_close(tokens);
    tide_buf_done(&id);
    return rc;
}

/* Least privilege (M15a): sync needs only to read, and only mail about alerts (E6.4) to send.  The
 * wider scopes include the narrower ones, so one scope is requested where one is enough. */
static const struct tide_purpose purposes[] = {
    {"sync", SCOPE_READ, "to read mail, and nothing else"},
    {"archive", "https://www.googleapis.com/auth/gmail.modify",
     "to read mail, change its labels, move it to the trash and put it back; not to delete it for "
     "good"},
    {"delete", "https://mail.google.com/",
     "to read, change and put back mail, and to delete it for good"},
    {"assistant", "https://www.googleapis.com/auth/gmail.modify",
     "to read mail, change its labels, write drafts and send replies; not to delete mail for good"},
    {"alerts", SCOPE_READ " " SCOPE_SEND,
     "to read mail, and to send mail (to yourself, about alerts)"},
    {NULL, NULL, NULL},
};

static const struct tide_action actions[] = {
    {"mail sync", NULL, "every 15min", "fetches new mail", cli_mail_sync_check},
    {"mail verify", NULL, "monthly 1 05:00", "reads the archive back and compares it",
     cli_mail_verify_check},
    /* M11: it removes mail, so a user must say which and how, and that nobody is asked. */
    {"mail archive", "yes", "weekly sun 04:00", "archives mail by a filter: --older-than 1y --yes",
     cli_mail_archive_check},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct tide_system tide_mail_system = {
    .name = "mail",
    .provider = "gmail",
    .method_name = tide_gmail_method_name,
    .subject = "EMAIL",
    .sync_by = "",
    .examples = mail_examples,
    .names = names,
    .oauth = &tide_oauth_google,
    .purposes = purposes,
    .unit = "messages",
    .commands = mail_commands,
    .details = mail_details,
    .actions = actions,
    .tools = mail_tools,
    .api = mail_page_api,
    .tables = tables,
    .open = open_mail,
    .close = close_mail,
    .rest = rest,
    .idle = idle,
    .busy = busy,
    .changed = changed,
    .keep = keep,
    .keep_end = keep_end,
    .account_check = account_check,
    .account_try = account_try,
    .account_put = tide_mail_account_put,
    .account_drop = tide_mail_row_remove,
    .mail_self = mail_self,
    .status = status,
    .archive_path = tide_mail_dir,
    .owns_entry = owns_entry,
    .archives = mail_home_archives,
    .archive_stored = archive_stored,
    .backup = tide_backup_archive,
    .backup_check = backup_check,
    .settings_files = mail_settings_files,
};
