/* sync.c - `tidemark drive sync`: the work of cli/run/work.h (D9, D12). */
#include "drive/commands/sync.h"

#include "base/clocktext.h"
#include "drive/sync/sync.h"
#include "world/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct cli_columns columns = {.done = "files",
                                           .done_json = "files",
                                           .rate = "files/s",
                                           .rate_json = "files_per_s",
                                           .tidemark = true,
                                           .more = {{"downloading", "downloading"},
                                                    {"uploading", "uploading"},
                                                    {"waiting", "waiting"},
                                                    {"owed", "owed"}}};

static const struct cli_words words = {
    .stored = "what was transferred stays",
    .items_bad = "some items are owed",
    .items_list = "`tidemark drive status` lists them.",
};

/* ---- the drives of an account ---- */

static bool is_of(const struct drive_sync *sync, size_t drive, size_t account)
{
    return strcmp(sync->drives.rows[drive].account_name, sync->work.accounts[account].name) == 0;
}

static bool request(void *arg, size_t account, size_t nth, struct cli_request *out)
{
    const struct drive_sync *sync = arg;
    struct tide_drive_request wanted;
    for (size_t i = 0; i < sync->drives.count; i++) {
        if (!is_of(sync, i, account) || !tide_drive_row_syncs(&sync->drives.rows[i]) || nth-- > 0)
            continue;
        if (sync->look_only)
            tide_drive_look_request(sync->drives.rows[i].number, &wanted);
        else
            tide_drive_request(sync->drives.rows[i].number, sync->full, &wanted);
        *out = (struct cli_request){.kind = TIDE_DRIVE_SYNC_KIND};
        memcpy(out->payload, wanted.payload, sizeof wanted.payload);
        memcpy(out->dedupe, wanted.dedupe, sizeof wanted.dedupe);
        return true;
    }
    return false;
}

/* ---- how far it is ---- */

static uint64_t number_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* An engine that was not seen before counts from its own start. */
static void take_done(const json_t *snapshot, const struct tide_drive_row *row,
                      struct drive_synced *synced)
{
    char number[16];
    (void)snprintf(number, sizeof number, "%" PRIu32, row->number);
    const json_t *systems = json_object_get(snapshot, "systems");
    const json_t *one = json_object_get(json_object_get(systems, "drive"), number);
    if (snapshot == NULL)
        return;
    synced->now = (struct drive_done){.downloaded = number_of(one, "downloaded"),
                                      .downloaded_bytes = number_of(one, "downloaded_bytes"),
                                      .uploaded = number_of(one, "uploaded"),
                                      .uploaded_bytes = number_of(one, "uploaded_bytes")};
    if (!synced->seen)
        synced->first = synced->now;
    synced->seen = true;
}

static void add_to(struct cli_live *live, const struct drive_synced *synced)
{
    const struct drive_look *look = &synced->look;
    live->done += synced->now.downloaded - synced->first.downloaded + synced->now.uploaded -
                  synced->first.uploaded;
    live->bytes += synced->now.downloaded_bytes - synced->first.downloaded_bytes +
                   synced->now.uploaded_bytes - synced->first.uploaded_bytes;
    live->total += look->down.files + look->up.files + look->waiting;
    live->more[0] += look->down.files;
    live->more[1] += look->up.files;
    live->more[2] += look->waiting;
    live->more[3] += look->counts.owed;
    live->bad += look->counts.owed;
    if (live->tidemark_ms == 0 || look->tidemark_ms < live->tidemark_ms)
        live->tidemark_ms = look->tidemark_ms;
}

/* Shared folders that a sync attached are part of it; an engine counts for them from 0. */
static tide_status take_shared(struct drive_sync *sync)
{
    const size_t before = sync->drives.count;
    TIDE_TRY(drive_list_again(sync->cli, &sync->drives));
    for (size_t i = before; i < sync->drives.count; i++)
        sync->synced[i] = (struct drive_synced){.seen = true};
    return TIDE_OK;
}

static tide_status look(void *arg, size_t account, const json_t *snapshot, bool full)
{
    struct drive_sync *sync = arg;
    struct cli *cli = sync->cli;
    struct cli_watched *watched = &sync->work.accounts[account];
    struct cli_live *live = &sync->work.lives[account];
    uint64_t looks = 0;
    live->done = live->bytes = live->total = live->bad = live->tidemark_ms = 0;
    memset(live->more, 0, sizeof live->more);
    TIDE_TRY(take_shared(sync));
    for (size_t i = 0; i < sync->drives.count; i++) {
        if (!is_of(sync, i, account))
            continue;
        TIDE_TRY(drive_look(cli->ledger, &sync->drives.rows[i], &sync->synced[i].look, &cli->err));
        looks += sync->synced[i].look.looks;
        take_done(snapshot, &sync->drives.rows[i], &sync->synced[i]);
        add_to(live, &sync->synced[i]);
    }
    live->total += live->done;
    if (full)
        TIDE_TRY(cli_watched_jobs(&sync->work, account, NULL));
    /* Who only looks does not wait for transfers, those of other drives of the account among them. */
    watched->settled = sync->look_only ? looks == 0 : watched->jobs_left == 0;
    return TIDE_OK;
}

/* ---- the summary ---- */

/* A drive without its folder was not synced (S14). */
static bool is_mounted(const struct tide_drive_row *row, struct cli_ended *ended)
{
    tide_error why = {TIDE_OK, 0, ""};
    int root = -1;
    if (row->parent != 0)
        return true; /* the drive around it knows, and shows it as detached */
    const tide_status rc = drive_folder_open(row, &root, &why);
    tide_folder_close(root);
    if (rc == TIDE_OK)
        return true;
    ended->outcome = CLI_OUTCOME_FAILED;
    (void)snprintf(ended->reason, sizeof ended->reason, "%.390s", why.text);
    (void)snprintf(ended->remedy, sizeof ended->remedy,
                   "Mount it, or put the folder back where it was. Nothing was deleted.");
    return false;
}

static void judge(void *arg, size_t account, struct cli_ended *ended)
{
    const struct drive_sync *sync = arg;
    uint64_t owed = 0;
    uint64_t conflicts = 0;
    uint64_t deletions = 0;
    uint64_t unsure = 0;
    uint64_t shared = 0;
    char unread[128] = "";
    for (size_t i = 0; i < sync->drives.count; i++)
        if (is_of(sync, i, account) && ended->outcome != CLI_OUTCOME_SIGNED_OUT &&
            !is_mounted(&sync->drives.rows[i], ended))
            return;
    for (size_t i = 0; i < sync->drives.count; i++) {
        const struct tide_drive_counts *counts = &sync->synced[i].look.counts;
        owed += is_of(sync, i, account) ? counts->owed : 0;
        conflicts += is_of(sync, i, account) ? counts->conflicts : 0;
        deletions += is_of(sync, i, account) ? counts->deletions : 0;
        unsure += is_of(sync, i, account) ? counts->unsure : 0;
        shared += is_of(sync, i, account) ? sync->synced[i].look.shared_trouble : 0;
    }
    if (ended->outcome != CLI_OUTCOME_DONE || owed + conflicts + deletions + unsure + shared == 0)
        return;
    if (unsure > 0)
        (void)snprintf(unread, sizeof unread, ", %" PRIu64 " here that cannot be read", unsure);
    if (shared > 0)
        (void)snprintf(unread + strlen(unread), sizeof unread - strlen(unread),
                       ", %" PRIu64 " shared folder%s that cannot be synced", shared,
                       shared == 1 ? "" : "s");
    ended->outcome = CLI_OUTCOME_BAD_ITEMS;
    (void)snprintf(ended->reason, sizeof ended->reason,
                   "%" PRIu64 " owed, %" PRIu64 " conflicts, %" PRIu64
                   " deletions that wait for consent%s",
                   owed, conflicts, deletions, unread);
    (void)snprintf(ended->remedy, sizeof ended->remedy,
                   "`tidemark drive status` lists what is owed%s%s%s.",
                   unsure > 0 ? " or cannot be read" : "",
                   conflicts > 0 ? ", `tidemark drive conflicts` the conflicts" : "",
                   deletions > 0 ? ", `tidemark drive deletions` the deletions" : "");
}

static void line(void *arg, size_t account)
{
    const struct drive_sync *sync = arg;
    struct cli *cli = sync->cli;
    bool first = true;
    for (size_t i = 0; i < sync->drives.count; i++) {
        const struct drive_synced *synced = &sync->synced[i];
        char down[TIDE_SIZE_TEXT_BYTES];
        char up[TIDE_SIZE_TEXT_BYTES];
        if (!is_of(sync, i, account))
            continue;
        tide_size_human(synced->now.downloaded_bytes - synced->first.downloaded_bytes, down);
        tide_size_human(synced->now.uploaded_bytes - synced->first.uploaded_bytes, up);
        cli_print(cli,
                  "%s%s: downloaded %" PRIu64 " file%s (%s), uploaded %" PRIu64 " (%s); %" PRIu64
                  " synced",
                  first ? "" : "\n", sync->drives.rows[i].name,
                  synced->now.downloaded - synced->first.downloaded,
                  synced->now.downloaded - synced->first.downloaded == 1 ? "" : "s", down,
                  synced->now.uploaded - synced->first.uploaded, up, synced->look.counts.files);
        first = false;
    }
}

static void details(void *arg, size_t account, tide_json *json)
{
    const struct drive_sync *sync = arg;
    tide_json list;
    tide_json_array(&list);
    for (size_t i = 0; i < sync->drives.count; i++) {
        const struct drive_synced *synced = &sync->synced[i];
        tide_json one;
        if (!is_of(sync, i, account))
            continue;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "drive", sync->drives.rows[i].name);
        tide_json_set_u64(&one, "downloaded", synced->now.downloaded - synced->first.downloaded);
        tide_json_set_u64(&one, "downloaded_bytes",
                          synced->now.downloaded_bytes - synced->first.downloaded_bytes);
        tide_json_set_u64(&one, "uploaded", synced->now.uploaded - synced->first.uploaded);
        tide_json_set_u64(&one, "uploaded_bytes",
                          synced->now.uploaded_bytes - synced->first.uploaded_bytes);
        drive_look_json(&synced->look, &one);
        tide_json_append(&list, &one);
    }
    tide_json_set(json, "drives", &list);
}

/* ---- the command ---- */

/* Whether no drive before it has the same account. */
static bool is_first(const struct drive_list *drives, size_t drive)
{
    for (size_t i = 0; i < drive; i++)
        if (strcmp(drives->rows[i].account_name, drives->rows[drive].account_name) == 0)
            return false;
    return true;
}

static tide_status accounts_of(struct drive_sync *sync)
{
    const struct drive_list *drives = &sync->drives;
    size_t count = 0;
    for (size_t i = 0; i < drives->count; i++)
        count += is_first(drives, i);
    TIDE_TRY(cli_work_accounts(&sync->work, count));
    for (size_t i = 0, at = 0; i < drives->count; i++)
        if (is_first(drives, i))
            (void)snprintf(sync->work.accounts[at++].name, sizeof sync->work.accounts[0].name, "%s",
                           drives->rows[i].account_name);
    return TIDE_OK;
}

static tide_status drives_wanted(struct cli *cli, const char *account, const char *const *names,
                                 size_t count, struct drive_list *drives)
{
    if (account != NULL && count > 0)
        return cli_wrong(cli, "Give one of them.",
                         "--account and the name of a drive exclude each other");
    TIDE_TRY(drive_list_named(cli, names, count, drives));
    TIDE_TRY(drive_list_synced(cli, drives));
    return account == NULL ? TIDE_OK : drive_list_of_account(cli, account, drives);
}

tide_status drive_sync_prepare(struct drive_sync *sync, const char *const *names, size_t count)
{
    struct cli *cli = sync->cli;
    sync->work = (struct cli_work){.cli = cli,
                                   .system = &tide_drive_system,
                                   .columns = &columns,
                                   .words = &words,
                                   .settles = sync->look_only,
                                   .arg = sync,
                                   .request = request,
                                   .look = look,
                                   .judge = judge,
                                   .line = line,
                                   .details = details};
    TIDE_TRY(drives_wanted(cli, sync->account, names, count, &sync->drives));
    sync->synced = tide_mem_array(cli->mem, DRIVES_MAX, sizeof *sync->synced);
    if (sync->synced == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    return accounts_of(sync);
}

tide_status drive_sync_done(struct drive_sync *sync)
{
    const tide_status rc = cli_work_done(&sync->work);
    if (sync->synced != NULL)
        tide_mem_free(sync->cli->mem, sync->synced, DRIVES_MAX * sizeof *sync->synced);
    drive_list_done(&sync->drives);
    return rc;
}

tide_status cli_drive_sync_check(struct cli *cli)
{
    struct drive_list drives = {.mem = NULL};
    uint64_t deadline_ms = 0;
    TIDE_TRY(cli_work_deadline(cli, &deadline_ms));
    const tide_status rc =
        drives_wanted(cli, cli_flag(cli, "account"), cli->arguments, cli->arguments_count, &drives);
    drive_list_done(&drives);
    return rc;
}

tide_status cli_drive_sync(struct cli *cli)
{
    struct drive_sync sync = {
        .cli = cli, .account = cli_flag(cli, "account"), .full = cli_flag(cli, "full") != NULL};
    tide_status rc = drive_sync_prepare(&sync, cli->arguments, cli->arguments_count);
    if (rc == TIDE_OK)
        rc = cli_work_deadline(cli, &sync.work.deadline_ms);
    if (rc == TIDE_OK && cli_flag(cli, "no-wait") != NULL)
        rc = cli_work_ask(&sync.work);
    else if (rc == TIDE_OK) {
        rc = cli_work_run(&sync.work);
        if (rc == TIDE_OK)
            cli_work_report(&sync.work);
    }
    const tide_status closed = drive_sync_done(&sync);
    return rc == TIDE_OK ? closed : rc;
}
