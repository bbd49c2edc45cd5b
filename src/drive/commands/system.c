/* system.c - the drive system, as the list of systems has it (system/system.h). */
#include "cli/advice.h"
#include "drive/commands/change.h"
#include "drive/commands/home.h"
#include "drive/commands/look.h"
#include "drive/page/page.h"
#include "drive/sync/sync.h"
#include "ledger/rows.h"
#include "net/oauth/microsoft.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- running ---- */

struct open_drives {
    tide_mem *mem;
    struct drive_changes changes;
    tide_drive *drive;
    char desktop[CLI_PATH_BYTES];
    const struct tide_system_home *home;
    const struct drive_watch_options *watch; /* of `drive watch`; NULL: another command */
};

static tide_status close_drives(void *state, tide_error *err)
{
    struct open_drives *open = state;
    (void)err;
    tide_drive_close(open->drive);
    tide_mem_free(open->mem, open, sizeof *open);
    return TIDE_OK;
}

/* A drive was added or removed, or its rules were changed. */
static void changed(void *arg)
{
    tide_drive_watch_look(((struct open_drives *)arg)->drive);
}

static tide_status removed(void *arg, tide_job *job, uint32_t drive, tide_error *err)
{
    return tide_drive_leave(((struct open_drives *)arg)->drive, drive, tide_job_cancellation(job),
                            err);
}

static tide_status open_drives(const struct tide_system_home *home, void **state_out,
                               tide_error *err)
{
    struct open_drives *open = tide_mem_new(home->mem, sizeof *open);
    if (open == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the drives");
    open->mem = home->mem;
    open->home = home;
    open->watch = home->options;
    open->changes = (struct drive_changes){.engine = home->engine,
                                           .world = home->world,
                                           .changed = changed,
                                           .removed = removed,
                                           .arg = open};
    const bool has_desktop = drive_desktop_trash(open->desktop, sizeof open->desktop);
    const struct tide_drive_options options = {.engine = home->engine,
                                               .world = home->world,
                                               .secrets = home->secrets,
                                               .state_dir = home->state_dir,
                                               .desktop = has_desktop ? open->desktop : NULL};
    tide_status rc = drive_change_define(&open->changes, err);
    if (rc == TIDE_OK)
        rc = tide_drive_open(&options, home->mem, &open->drive, err);
    if (rc == TIDE_OK)
        *state_out = open;
    else
        tide_mem_free(home->mem, open, sizeof *open);
    return rc;
}

/* `drive watch` watches the drives that it names, other processes that stay watch all for which the
 * settings say so. */
static tide_status watch(void *state, const struct tide_system_teller *teller, tide_error *err)
{
    struct open_drives *open = state;
    struct tide_drive_watch as = {.tell = teller->tell, .arg = teller->arg};
    if (open->watch != NULL) {
        as.names = open->watch->names;
        as.names_count = open->watch->names_count;
        as.whatever_is_set = true;
    }
    return tide_drive_watch(open->drive, &as, err);
}

static void watch_end(void *state)
{
    tide_drive_watch_end(((struct open_drives *)state)->drive);
}

/* ---- what OneDrive tells ---- */

static tide_status hear(void *state, const char *url, tide_error *err)
{
    return tide_drive_hear(((struct open_drives *)state)->drive, url, err);
}

static bool notified(void *state, tide_text subscription, tide_text secret,
                     char subject_out[TIDE_SUBJECT_BYTES])
{
    return tide_drive_notified(((struct open_drives *)state)->drive, subscription, secret,
                               subject_out);
}

static tide_status changed_online(void *state, const char *subject, bool whole, tide_error *err)
{
    return tide_drive_changed_online(((struct open_drives *)state)->drive, subject, whole, err);
}

/* ---- accounts ---- */

static tide_status account_check(struct cli *cli, const char *named,
                                 struct tide_account_request *request)
{
    if (request->subjects_count != 1)
        return cli_wrong(cli, "Give one: `tidemark account add onedrive EMAIL`.",
                         "a OneDrive account is one address");
    request->name = named == NULL ? request->subjects[0] : named;
    if (request->name[0] == '\0' || request->name[0] == '-' || strlen(request->name) > 120 ||
        strpbrk(request->name, "/\\ \t\n") != NULL)
        return cli_wrong(cli, "Give your address, or a short --name without spaces and slashes.",
                         "\"%.100s\" is not a name of an account", request->name);
    return TIDE_OK;
}

struct known {
    struct cli *cli;
    const struct tide_account_request *request;
    tide_onedrive *onedrive;
    tide_status rc;
};

/* A drive belongs to one OneDrive for ever (D35): a sign-in of somebody else must not get at it. */
static void try_drive(const struct tide_drive_row *row, void *arg)
{
    struct known *known = arg;
    struct tide_onedrive_drive drive;
    if (known->rc != TIDE_OK || row->parent != 0 || /* of another user, and perhaps refused */
        strcmp(row->account_name, known->request->name) != 0)
        return;
    const tide_status rc =
        tide_onedrive_drive_get(known->onedrive, NULL, tide_text_of(row->drive_id),
                                cli_interruptible(known->cli), &drive, &known->cli->err);
    if (rc == TIDE_OK || tide_status_class(rc) == TIDE_CLASS_NETWORK || rc == TIDE_TIMEOUT)
        known->rc = rc;
    else
        known->rc =
            cli_fail(known->cli, TIDE_INVALID,
                     "Nothing was changed. Sign in as the user whose OneDrive it is, or give "
                     "this account another --name.",
                     "this sign-in cannot read drive \"%s\" of %.100s: it is another user's",
                     row->name, known->request->name);
}

static tide_status try_drives(struct known *known)
{
    struct cli *cli = known->cli;
    const tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        TIDE_TRY(tide_drives_each(tide_ledger_rows(cli->ledger), try_drive, known, &cli->err));
    cli_ledger_close(cli);
    if (rc == TIDE_NOT_FOUND) { /* the first account of this home */
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        return TIDE_OK;
    }
    return rc == TIDE_OK ? known->rc : rc;
}

static tide_status account_try(struct cli *cli, const struct tide_account_request *request,
                               tide_text bearer)
{
    struct known known = {.cli = cli, .request = request};
    struct tide_onedrive_drive drive;
    const struct tide_onedrive_options options = {
        .endpoint = request->endpoint[0] == '\0' ? NULL : request->endpoint,
        .bearer = bearer,
        .world = cli->world};
    TIDE_TRY(tide_onedrive_open(&options, cli->mem, &known.onedrive, &cli->err));
    tide_status rc = tide_onedrive_drive_get(known.onedrive, NULL, TIDE_TEXT(""),
                                             cli_interruptible(cli), &drive, &cli->err);
    if (rc == TIDE_OK)
        rc = try_drives(&known);
    tide_onedrive_close(known.onedrive);
    if (rc == TIDE_OK) {
        tide_json_set_cstr(&cli->json, "drive_type", drive.type);
        tide_json_set_cstr(&cli->json, "owner", drive.owner);
    }
    return rc;
}

/* The drives of an account go with it; their files stay, and their markers go, as with `drive remove`:
 * then the folders can be added again.  If the rows stayed after all, the drives would stop. */
struct owned {
    uint32_t account;
    bool shared; /* folders in a drive go before it */
    uint32_t numbers[DRIVES_MAX];
    size_t count;
};

static void find_owned(const struct tide_drive_row *row, void *arg)
{
    struct owned *owned = arg;
    if (row->account == owned->account && (row->parent != 0) == owned->shared &&
        owned->count < DRIVES_MAX)
        owned->numbers[owned->count++] = row->number;
}

static tide_status drop_owned(tide_rows db, uint32_t account, bool shared, tide_error *err)
{
    struct owned owned = {.account = account, .shared = shared};
    TIDE_TRY(tide_drives_each(db, find_owned, &owned, err));
    for (size_t i = 0; i < owned.count; i++) {
        struct tide_drive_row row;
        TIDE_TRY(tide_drives_get(db, owned.numbers[i], &row, err));
        TIDE_TRY(tide_drives_remove(db, row.number, err));
        (void)drive_marker_remove(&row);
    }
    return TIDE_OK;
}

static tide_status account_drop(tide_rows db, uint32_t account, tide_error *err)
{
    TIDE_TRY(drop_owned(db, account, true, err));
    TIDE_TRY(drop_owned(db, account, false, err));
    return tide_rows_do(db, "the OneDrive accounts", err,
                        "DELETE FROM drive_account WHERE account = ?1", account);
}

static tide_status account_put(tide_rows db, uint32_t account,
                               const struct tide_account_request *request, tide_error *err)
{
    return tide_system_row_put("drive", db, account, request, err);
}

/* ---- copies of the ledger ---- */

static tide_status table_stays(const char *table, tide_error *err)
{
    const size_t digits = strspn(table + strlen("drive_"), "0123456789");
    if (digits == 0)
        return TIDE_OK;
    return tide_error_set(err, TIDE_EXISTS,
                          "this ledger has a drive (%.60s): its folder is on this machine, and so "
                          "is its state; remove it with `tidemark drive remove`, its files stay",
                          table);
}

/* ---- status: all drives of the account ---- */

struct standing {
    tide_ledger *ledger;
    const char *account;
    struct tide_account_status *out;
    uint64_t drives, conflicts, deletions;
    bool none; /* one of them has no tidemark yet */
    tide_status rc;
    tide_error *err;
};

static void take_drive(const struct tide_drive_row *row, void *arg)
{
    struct standing *standing = arg;
    struct tide_account_status *out = standing->out;
    struct drive_look look;
    if (standing->rc != TIDE_OK || !tide_drive_row_syncs(row) ||
        strcmp(row->account_name, standing->account) != 0)
        return;
    standing->rc = drive_look(standing->ledger, row, &look, standing->err);
    if (standing->rc != TIDE_OK)
        return;
    standing->drives++;
    standing->none = standing->none || look.tidemark_ms == 0;
    if (out->tidemark_unix_ms == 0 || look.tidemark_ms < out->tidemark_unix_ms)
        out->tidemark_unix_ms = look.tidemark_ms;
    out->left += look.waiting + look.down.files + look.up.files + look.others;
    out->more = out->more || look.syncs > 0;
    out->stored += look.counts.files;
    out->bad += look.counts.owed;
    standing->conflicts += look.counts.conflicts;
    standing->deletions += look.counts.deletions;
}

static tide_status status(const struct tide_system_home *home, tide_ledger *ledger,
                          const struct tide_account_row *account, struct tide_account_status *out,
                          tide_error *err)
{
    struct standing standing = {.ledger = ledger, .account = account->name, .out = out, .err = err};
    (void)home;
    TIDE_TRY(tide_drives_each(tide_ledger_rows(ledger), take_drive, &standing, err));
    if (standing.none)
        out->tidemark_unix_ms = 0;
    if (standing.drives == 0)
        (void)snprintf(out->note, sizeof out->note, "no drive yet: `tidemark drive add DIR`");
    else if (standing.deletions > 0)
        (void)snprintf(out->note, sizeof out->note,
                       "%" PRIu64 " deletions wait for consent: `tidemark drive deletions`",
                       standing.deletions);
    else if (standing.conflicts > 0)
        (void)snprintf(out->note, sizeof out->note,
                       "%" PRIu64 " conflicts: `tidemark drive conflicts`", standing.conflicts);
    return standing.rc;
}

static const struct tide_purpose purposes[] = {
    {"sync", TIDE_MICROSOFT_FILES, "to read and write the files in your OneDrive"},
    {"read", "Files.Read", "to read the files in your OneDrive, for download-only drives"},
    {"shared", TIDE_MICROSOFT_FILES_ALL,
     "to read and write all files that you can access, also those that others share with you"},
    {NULL, NULL, NULL},
};

static const struct tide_action actions[] = {
    {"drive sync", NULL, "every 5min", "syncs the drives", cli_drive_sync_check},
    {NULL, NULL, NULL, NULL, NULL},
};

static const struct cli_advice advices[] = {
    {"drive_stopped",
     "Nothing of these drives is synced, in either direction. Nothing is deleted meanwhile.",
     "Mount the folder, sign in again, or add the drive again, as the text says; then sync.",
     "tidemark drive status"},
    {"drive_deletions",
     "More would be deleted than is usual, so all deletions of these drives wait. All else is "
     "synced.",
     "See what would go, then accept it or bring it back.", "tidemark drive deletions list"},
    {"drive_owed",
     "Some items could not be synced for a day. They are tried again by themselves, and keep "
     "nothing else waiting.",
     "See which ones and why. A file whose hash never fits can be accepted as it is.",
     "tidemark drive status"},
    {"drive_late",
     "These drives are watched, but changes did not come through to the end for long.",
     "See what runs and what waits; check the network and the sign-in.", "tidemark drive status"},
    {NULL, NULL, NULL, NULL},
};

const struct tide_system tide_drive_system = {
    .name = "drive",
    .provider = "onedrive",
    .method_name = tide_onedrive_method_name,
    .subject = "EMAIL",
    .next = "drive add DIR",
    .sync_by = "account",
    .oauth = &tide_oauth_microsoft,
    .purposes = purposes,
    .unit = "files of drives",
    .unit_json = "drive_files",
    .commands = drive_commands,
    .actions = actions,
    .tools = drive_page_tools,
    .api = drive_page_api,
    .objects = drive_page_objects,
    .advices = advices,
    .tables = tide_drives_tables,
    .table_stays = table_stays,
    .open = open_drives,
    .close = close_drives,
    .watch = watch,
    .watch_end = watch_end,
    .changed = changed_online,
    .hear = hear,
    .notified = notified,
    .account_check = account_check,
    .account_try = account_try,
    .account_put = account_put,
    .account_drop = account_drop,
    .status = status,
    .metrics = drive_page_metrics,
};
