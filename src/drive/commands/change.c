#include "drive/commands/change.h"

#include "cli/run/account_change.h"
#include "cli/run/ask.h"
#include "drive/sync/sync.h"
#include "ledger/rows.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- as an object ---- */

void drive_change_begin(tide_json *change, const char *op, uint32_t drive)
{
    tide_json_object(change);
    tide_json_set_cstr(change, "op", op);
    tide_json_set_u64(change, "drive", drive);
}

void drive_change_row(tide_json *change, const struct tide_drive_row *row)
{
    tide_json_set_cstr(change, "account", row->account_name);
    tide_json_set_cstr(change, "name", row->name);
    tide_json_set_cstr(change, "dir", row->dir);
    tide_json_set_cstr(change, "drive_id", row->drive_id);
    tide_json_set_cstr(change, "root_id", row->root_id);
    tide_json_set_cstr(change, "marker", row->marker);
    tide_json_set_cstr(change, "mode", tide_drive_mode_name(row->mode));
    tide_json_set_bool(change, "business", row->business);
}

static tide_status get_copy(const json_t *change, const char *key, char *room, size_t room_bytes,
                            tide_error *err)
{
    tide_text text = TIDE_TEXT_NONE;
    TIDE_TRY(tide_json_get_text(change, key, &text, err));
    if (text.bytes >= room_bytes)
        return tide_error_set(err, TIDE_INVALID, "the field \"%s\" of a drive is too long", key);
    memcpy(room, text.data, text.bytes);
    room[text.bytes] = '\0';
    return TIDE_OK;
}

static tide_status row_read(const json_t *change, struct tide_drive_row *row, tide_error *err)
{
    char mode[32];
    TIDE_TRY(get_copy(change, "account", row->account_name, sizeof row->account_name, err));
    TIDE_TRY(get_copy(change, "name", row->name, sizeof row->name, err));
    TIDE_TRY(get_copy(change, "dir", row->dir, sizeof row->dir, err));
    TIDE_TRY(get_copy(change, "drive_id", row->drive_id, sizeof row->drive_id, err));
    TIDE_TRY(get_copy(change, "root_id", row->root_id, sizeof row->root_id, err));
    TIDE_TRY(get_copy(change, "marker", row->marker, sizeof row->marker, err));
    TIDE_TRY(get_copy(change, "mode", mode, sizeof mode, err));
    TIDE_TRY(tide_drive_mode_of(mode, &row->mode, err));
    TIDE_TRY(tide_json_get_bool(change, "business", &row->business, err));
    return row->dir[0] == '/' && row->name[0] != '\0'
               ? TIDE_OK
               : tide_error_set(err, TIDE_INVALID, "a drive needs a name and an absolute path");
}

/* ---- in a transaction ---- */

static tide_status add(tide_rows db, const json_t *change, tide_error *err)
{
    struct tide_drive_row row = {.number = 0};
    uint64_t account = 0;
    TIDE_TRY(row_read(change, &row, err));
    const tide_status rc = tide_rows_number(db, "the accounts", &account, err,
                                            "SELECT s.account FROM drive_account s JOIN account a "
                                            "ON a.id = s.account WHERE a.name = ?1",
                                            row.account_name);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, TIDE_INVALID, "there is no OneDrive account \"%.100s\"",
                              row.account_name);
    row.account = (uint32_t)account;
    return rc == TIDE_OK ? tide_drives_add(db, &row, err) : rc;
}

static tide_status patterns(tide_rows db, uint32_t drive, const json_t *list, bool remove,
                            tide_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const tide_text pattern = {json_string_value(one), json_string_length(one)};
        if (pattern.data == NULL)
            return tide_error_set(err, TIDE_INVALID, "a pattern must be text");
        TIDE_TRY(remove ? tide_drive_rules_remove(db, drive, pattern, err)
                        : tide_drive_rules_add(db, drive, pattern, err));
    }
    return TIDE_OK;
}

/* A number of 64 bits does not fit a number of JSON. */
static tide_status fingerprint_of(const json_t *change, uint64_t *fingerprint_out, tide_error *err)
{
    tide_text text = TIDE_TEXT_NONE;
    TIDE_TRY(tide_json_get_text(change, "fingerprint", &text, err));
    return tide_text_to_u64(text, fingerprint_out)
               ? TIDE_OK
               : tide_error_set(err, TIDE_INVALID, "the fingerprint must be a number");
}

static tide_status deletions(tide_rows db, uint32_t drive, const json_t *change, bool restore,
                             uint64_t now_ms, tide_error *err)
{
    const tide_rows own = tide_drives_rows(db, drive);
    uint64_t fingerprint = 0;
    TIDE_TRY(fingerprint_of(change, &fingerprint, err));
    return restore ? tide_drive_deletions_restore(own, fingerprint, err)
                   : tide_drive_deletions_accept(own, fingerprint, now_ms, err);
}

static tide_status conflict_end(tide_rows db, uint32_t drive, const json_t *change, tide_error *err)
{
    uint64_t id = 0;
    TIDE_TRY(tide_json_get_u64(change, "id", &id, err));
    return tide_drive_conflict_end(tide_drives_rows(db, drive), id, err);
}

static tide_status accept_item(tide_rows db, uint32_t drive, const json_t *change, tide_error *err)
{
    uint64_t item = 0;
    TIDE_TRY(tide_json_get_u64(change, "item", &item, err));
    return tide_drive_accept(tide_drives_rows(db, drive), item, err);
}

static tide_status of_drive(tide_rows db, tide_text op, uint32_t drive, const json_t *change,
                            uint64_t now_ms, tide_error *err)
{
    struct tide_drive_row row;
    char mode[32];
    TIDE_TRY(tide_drives_get(db, drive, &row, err));
    if (tide_text_equal(op, TIDE_TEXT("mode"))) {
        TIDE_TRY(get_copy(change, "mode", mode, sizeof mode, err));
        TIDE_TRY(tide_drive_mode_of(mode, &row.mode, err));
        return tide_drives_mode_set(db, drive, row.mode, err);
    }
    if (tide_text_equal(op, TIDE_TEXT("ignore"))) {
        TIDE_TRY(patterns(db, drive, json_object_get(change, "remove"), true, err));
        return patterns(db, drive, json_object_get(change, "add"), false, err);
    }
    if (tide_text_equal(op, TIDE_TEXT("deletions_accept")))
        return deletions(db, drive, change, false, now_ms, err);
    if (tide_text_equal(op, TIDE_TEXT("deletions_restore")))
        return deletions(db, drive, change, true, now_ms, err);
    if (tide_text_equal(op, TIDE_TEXT("accept")))
        return accept_item(db, drive, change, err);
    if (tide_text_equal(op, TIDE_TEXT("conflict_end")))
        return conflict_end(db, drive, change, err);
    return tide_error_set(err, TIDE_INVALID, "there is no such change of a drive");
}

struct applying {
    const json_t *change;
    uint64_t now_ms;
    uint32_t plan_kind; /* 0: the next sync plans */
    /* A drive that was removed, with its shared folders. */
    uint32_t removed[1 + TIDE_DRIVE_MOUNTS_MAX];
    size_t removed_count;
    uint32_t account;
};

/* In an engine that runs, what was decided is planned at once. */
static tide_status plan_soon(tide_transaction *transaction, uint32_t plan_kind, uint32_t drive,
                             tide_error *err)
{
    struct tide_drive_request request;
    struct tide_drive_row row;
    if (plan_kind == 0 ||
        tide_drives_get(tide_transaction_rows(transaction), drive, &row, NULL) != TIDE_OK)
        return TIDE_OK;
    tide_drive_plan_request(drive, &request);
    const struct tide_spec spec = {.kind = plan_kind,
                                   .account = row.account,
                                   .payload = request.payload,
                                   .dedupe = request.dedupe};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static void take_removed(const struct tide_drive_row *row, void *arg)
{
    struct applying *applying = arg;
    if (row->parent == applying->removed[0] && applying->removed_count <= TIDE_DRIVE_MOUNTS_MAX)
        applying->removed[applying->removed_count++] = row->number;
}

static tide_status remove_drive(tide_rows db, uint32_t drive, struct applying *applying,
                                tide_error *err)
{
    struct tide_drive_row row;
    TIDE_TRY(tide_drives_get(db, drive, &row, err));
    applying->removed[0] = drive;
    applying->removed_count = 1; /* also when the transaction is tried again */
    applying->account = row.account;
    TIDE_TRY(tide_drives_each(db, take_removed, applying, err));
    return tide_drives_remove(db, drive, err);
}

static tide_status apply(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct applying *applying = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    tide_text op = TIDE_TEXT_NONE;
    uint64_t drive = 0;
    TIDE_TRY(tide_json_get_text(applying->change, "op", &op, err));
    TIDE_TRY(tide_json_get_u64(applying->change, "drive", &drive, err));
    TIDE_TRY(tide_drives_tables(db, err));
    if (tide_text_equal(op, TIDE_TEXT("add")))
        return add(db, applying->change, err);
    if (drive == 0 || drive > UINT32_MAX)
        return tide_error_set(err, TIDE_INVALID, "there is no such drive");
    if (tide_text_equal(op, TIDE_TEXT("remove")))
        return remove_drive(db, (uint32_t)drive, applying, err);
    TIDE_TRY(of_drive(db, op, (uint32_t)drive, applying->change, applying->now_ms, err));
    return plan_soon(transaction, applying->plan_kind, (uint32_t)drive, err);
}

static tide_status end_removed(tide_engine *engine, const struct applying *applying,
                               tide_error *err)
{
    for (size_t i = 0; i < applying->removed_count; i++)
        TIDE_TRY(tide_drive_end_waiting(engine, applying->account, applying->removed[i], err));
    return TIDE_OK;
}

/* ---- as a job ---- */

/* A job that an engine left when it ended does nothing: the command that asked has made the change
 * itself, or said that it was not made. */
static tide_status change_job(tide_job *job, void *context, tide_error *err)
{
    const struct drive_changes *changes = context;
    json_auto_t *payload = NULL;
    struct applying applying = {.now_ms = tide_world_now_unix_ms(changes->world)};
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    applying.change = payload;
    if (!tide_engine_asked_here(changes->engine, payload))
        return TIDE_OK;
    TIDE_TRY(tide_engine_kind_named(changes->engine, TIDE_TEXT(TIDE_DRIVE_PLAN_KIND),
                                    &applying.plan_kind, err));
    tide_status rc = tide_transact(changes->engine, apply, &applying, err);
    if (rc == TIDE_OK)
        changes->changed(changes->arg);
    if (rc == TIDE_OK)
        rc = end_removed(changes->engine, &applying, err);
    for (size_t i = 0; rc == TIDE_OK && i < applying.removed_count; i++)
        rc = changes->removed(changes->arg, job, applying.removed[i], err);
    /* Trying again would not help. */
    return rc == TIDE_NOT_FOUND || rc == TIDE_EXISTS || rc == TIDE_STALE ? TIDE_INVALID : rc;
}

tide_status drive_change_define(const struct drive_changes *changes, tide_error *err)
{
    uint32_t number = 0;
    const struct tide_kind kind = {.name = DRIVE_CHANGE_KIND,
                                   .handler = change_job,
                                   .context = (void *)(uintptr_t)changes,
                                   .lane = TIDE_KIND_INTERACTIVE,
                                   .priority = 90,
                                   .level = 1};
    return tide_engine_kind(changes->engine, &kind, &number, err);
}

/* ---- making it ---- */

/* cli_ask_there() takes what it sends; another try needs it again. */
static tide_status ask_there(struct cli *cli, const tide_json *change)
{
    tide_json copy = {.value = json_deep_copy(change->value)};
    if (copy.value == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    return cli_ask_there(cli, DRIVE_CHANGE_KIND, NULL, &copy);
}

static tide_status change_with(struct cli *cli, struct cli_engine *opened, const tide_json *change)
{
    struct applying applying = {.change = change->value, .now_ms = cli->now_unix_ms};
    struct cli_tries tries = {0};
    tide_status rc = account_change_open(cli, opened);
    while (rc == TIDE_OK && opened->engine == NULL && cli_try(cli, &tries)) {
        rc = ask_there(cli, change);
        if (rc != TIDE_STOPPED)
            return rc;
        cli->hint[0] = '\0';
        (void)cli_engine_close(cli, opened);
        rc = account_change_open(cli, opened);
    }
    if (rc == TIDE_OK && opened->engine == NULL)
        rc = cli_tries_over(cli);
    if (rc == TIDE_OK)
        rc = tide_transact(opened->engine, apply, &applying, &cli->err);
    return rc == TIDE_OK ? end_removed(opened->engine, &applying, &cli->err) : rc;
}

tide_status drive_change(struct cli *cli, tide_json *change)
{
    struct cli_engine opened = {.engine = NULL};
    tide_status rc = change->failed
                         ? cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory")
                         : TIDE_OK;
    cli_ledger_close(cli); /* what was read is over; an engine opens it to write */
    if (rc == TIDE_OK)
        rc = change_with(cli, &opened, change);
    tide_json_done(change);
    const tide_status closed = cli_engine_close(cli, &opened);
    return rc == TIDE_OK ? closed : rc;
}
