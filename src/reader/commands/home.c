#include "reader/commands/home.h"

#include "base/hash.h"
#include "ledger/rows.h"
#include "mail/commands/home.h"
#include "mail/rows.h"
#include "mail/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct naming {
    const char *email;
    uint32_t account;
};

static void match(const struct tide_mail_row *row, void *arg)
{
    struct naming *naming = arg;
    if (strcmp(row->email, naming->email) == 0)
        naming->account = row->account;
}

static tide_status account_find(struct cli *cli, const char *email, uint32_t *account_out)
{
    struct naming naming = {.email = email};
    const tide_rows db = tide_ledger_rows(cli->ledger);
    bool has = false;
    TIDE_TRY(tide_rows_has(db, "mail_account", "the mail accounts", &has, &cli->err));
    if (has)
        TIDE_TRY(tide_mail_rows(db, match, &naming, &cli->err));
    *account_out = naming.account;
    return TIDE_OK;
}

static tide_status no_account(struct cli *cli, const char *email)
{
    return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark account list` shows the accounts.",
                    "there is no mail account \"%.200s\"", email);
}

/* An account is the name of a directory and of a file: nothing that leads elsewhere is one. */
static bool is_account(const char *name)
{
    return name[0] != '.' && strchr(name, '@') != NULL && strchr(name, '/') == NULL;
}

/* An archive that is not there is no error: the cache may have all there is. */
static void archive_take(struct reader_home *home)
{
    struct cli *cli = home->cli;
    struct mail_home mail = {0};
    char email[256];
    if (mail_home_take(cli, &mail, home->email, email, &home->mailbox.archive) != TIDE_OK) {
        home->mailbox.archive = NULL;
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
    }
}

static void mirror_read(struct reader_home *home)
{
    struct tide_mail_look look;
    tide_mail_look_init(&look, home->cli->mem);
    if (tide_mail_look(home->cli->ledger, home->email, false, &look, NULL) == TIDE_OK) {
        home->mailbox.mirror_since_ms = (int64_t)look.since_ms;
        home->mailbox.mirror_mark_ms = (int64_t)look.tidemark_ms;
    }
    tide_mail_look_done(&look);
}

static tide_status cache_open(struct reader_home *home)
{
    struct cli *cli = home->cli;
    uint64_t listed = 0;
    char dir[CLI_PATH_BYTES + 16];
    (void)snprintf(dir, sizeof dir, "%s/reader", cli->cache_dir);
    const struct tide_cache_options options = {
        .dir = dir, .account = home->email, .world = cli->world, .read_only = true};
    const tide_status rc = tide_cache_open(&options, cli->mem, &home->mailbox.cache, &cli->err);
    if (rc == TIDE_NOT_FOUND) {
        home->mailbox.cache = NULL;
        cli->err = (tide_error){TIDE_OK, 0, ""};
        return TIDE_OK;
    }
    if (rc != TIDE_OK)
        return rc;
    TIDE_TRY(tide_cache_get_u64(home->mailbox.cache, "listed", &listed, &cli->err));
    home->listed = listed != 0;
    return tide_cache_folder_get(home->mailbox.cache, TIDE_TEXT(TIDE_CACHE_ALL), &home->all,
                                 &cli->err);
}

tide_status reader_home_open(struct cli *cli, const char *email, struct reader_home *home)
{
    *home = (struct reader_home){.cli = cli, .all = {.floor_ms = INT64_MAX, .shown_ms = INT64_MAX}};
    (void)snprintf(home->email, sizeof home->email, "%s", email);
    home->mailbox.mem = cli->mem;
    if (!is_account(email))
        return no_account(cli, email);
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(account_find(cli, email, &home->mailbox.account));
    archive_take(home);
    if (home->mailbox.account == 0) /* an account that was removed leaves its archive */
        return home->mailbox.archive != NULL ? TIDE_OK : no_account(cli, email);
    home->mailbox.db = tide_ledger_rows(cli->ledger);
    TIDE_TRY(tide_rows_has(home->mailbox.db, "reader_draft_copy", "the reader's rows",
                           &home->mailbox.has_overlay, &cli->err));
    mirror_read(home);
    return cache_open(home);
}

void reader_home_close(struct reader_home *home)
{
    mail_home_give(home->cli, home->mailbox.archive);
    tide_cache_close(home->mailbox.cache);
    home->mailbox.archive = NULL;
    home->mailbox.cache = NULL;
}

static void nothing(tide_text message, void *arg)
{
    (void)message;
    (void)arg;
}

/* Of the archive.  A mark that moves changes what is shown only until it reaches what the reader listed itself
 * (view.h VWR2).  An archive that cannot be read has none: who lists it is told why. */
static uint64_t archive_version(const struct reader_home *home)
{
    const struct tide_reader_mailbox *mailbox = &home->mailbox;
    const int64_t mark_ms =
        mailbox->mirror_mark_ms < home->all.shown_ms ? mailbox->mirror_mark_ms : home->all.shown_ms;
    uint64_t version = 0;
    char joins[64];
    if (mailbox->archive == NULL ||
        tide_archive_version(mailbox->archive, &version, NULL) != TIDE_OK)
        return 0;
    (void)snprintf(joins, sizeof joins, "%" PRId64 " %" PRId64, mailbox->mirror_since_ms, mark_ms);
    return tide_hash(version, tide_text_of(joins));
}

tide_status reader_home_version(const struct reader_home *home, char version[READER_VERSION_BYTES])
{
    uint64_t cached = 0;
    uint64_t acted = 0;
    tide_error *err = &home->cli->err;
    if (home->mailbox.cache != NULL)
        TIDE_TRY(tide_cache_version(home->mailbox.cache, &cached, err));
    if (home->mailbox.has_overlay)
        TIDE_TRY(tide_overlay_changes(home->mailbox.db, home->mailbox.account, UINT64_MAX >> 1,
                                      nothing, NULL, &acted, err));
    (void)snprintf(version, READER_VERSION_BYTES, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, cached, acted,
                   archive_version(home));
    return TIDE_OK;
}

/* ---- a message ---- */

static tide_status cached_view(const struct reader_home *home, const struct tide_reader_shown *row,
                               struct tide_view *view)
{
    struct cli *cli = home->cli;
    tide_auto_buf raw = tide_buf_in(cli->mem, TIDE_VIEW_RAW_BYTES_MAX);
    struct tide_stored stored = {.internal_ms = row->internal_ms, .copy = TIDE_COPY_HELD};
    (void)snprintf(stored.gmail_id, sizeof stored.gmail_id, "%s", row->id);
    (void)snprintf(stored.thread_id, sizeof stored.thread_id, "%s", row->thread);
    TIDE_TRY(tide_cache_body_get(home->mailbox.cache, tide_text_of(row->id), &raw, &cli->err));
    stored.bytes = raw.bytes;
    return tide_view_take(&stored, &raw, cli->mem, view, &cli->err);
}

tide_status reader_home_view(const struct reader_home *home, const char *id, struct tide_view *view,
                             const char **body_out)
{
    struct cli *cli = home->cli;
    struct tide_reader_shown row;
    struct tide_stored stored;
    memset(view, 0, sizeof *view);
    *body_out = "none";
    tide_status rc = tide_shown_labels(&home->mailbox, tide_text_of(id), &row, &cli->err);
    if (rc == TIDE_OK && row.archived) {
        *body_out = "archive";
        rc = tide_archive_find(home->mailbox.archive, tide_text_of(id), &stored, &cli->err);
        if (rc == TIDE_OK)
            rc = tide_view_open(home->mailbox.archive, &stored, cli->mem, view, &cli->err);
    } else if (rc == TIDE_OK && row.cached_body) {
        *body_out = "cache";
        rc = cached_view(home, &row, view);
    }
    tide_shown_done(&row);
    return rc;
}

/* ---- asking ---- */

tide_status reader_ask(struct cli *cli, const char *what, tide_json *request, json_t **answer_out)
{
    bool runs = false;
    tide_json_set_cstr(request, "op", READER_OP);
    tide_json_set_cstr(request, "do", what);
    const tide_status rc = cli_engine_ask(cli, request, &runs, answer_out);
    if (rc == TIDE_NOT_FOUND && !runs)
        return cli_fail(cli, TIDE_BUSY, "Start it: `tidemark serve`.",
                        "tidemark serve does not run here");
    return rc;
}
