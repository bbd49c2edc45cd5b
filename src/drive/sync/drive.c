#include "drive/sync/sync.h"

#include "base/check.h"
#include "base/json.h"
#include "drive/sync/inside.h"
#include "ledger/home.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- opening and closing ---- */

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_rows rows = tide_transaction_rows(transaction);
    TIDE_TRY(tide_drives_tables(rows, err));
    TIDE_TRY(tide_drives_upgrade(rows, err));
    return tide_rows_number(rows, "the drives", arg, err, "SELECT count(*) FROM drive_drive");
}

static tide_status define_kinds(tide_drive *drive, tide_error *err)
{
    tide_engine *engine = drive->options.engine;
    /* Looking and planning never wait behind transfers. */
    const struct tide_kind sync = {.name = TIDE_DRIVE_SYNC_KIND,
                                   .handler = tide_drive_sync_job,
                                   .context = drive,
                                   .lane = TIDE_KIND_INTERACTIVE,
                                   .priority = 80,
                                   .level = 3,
                                   .stall_after_ms = 1800000};
    const struct tide_kind plan = {.name = TIDE_DRIVE_PLAN_KIND,
                                   .handler = tide_drive_plan_job,
                                   .context = drive,
                                   .lane = TIDE_KIND_INTERACTIVE,
                                   .priority = 80,
                                   .level = 3,
                                   .stall_after_ms = 1800000};
    const struct tide_kind act = {.name = "drive.act",
                                  .handler = tide_drive_act_job,
                                  .context = drive,
                                  .level = 3,
                                  .attempts_max = 1000, /* act.c counts them */
                                  .dedupe_running = true};
    const struct tide_kind displaced = {.name = "drive.displaced",
                                        .handler = tide_drive_displaced_job,
                                        .context = drive,
                                        .lane = TIDE_KIND_INTERACTIVE,
                                        .level = 3};
    const struct tide_kind concern = {.name = "drive.concern",
                                      .handler = tide_drive_concern_job,
                                      .context = drive,
                                      .lane = TIDE_KIND_INTERACTIVE,
                                      .level = 3};
    TIDE_TRY(tide_engine_kind(engine, &sync, &drive->sync_kind, err));
    TIDE_TRY(tide_engine_kind(engine, &plan, &drive->plan_kind, err));
    TIDE_TRY(tide_engine_kind(engine, &act, &drive->act_kind, err));
    TIDE_TRY(tide_engine_kind(engine, &displaced, &drive->displaced_kind, err));
    return tide_engine_kind(engine, &concern, &drive->concern_kind, err);
}

static void show_side(json_t *object, const char *name, const struct tide_drive_side_state *side)
{
    tide_json one;
    tide_json_object(&one);
    tide_json_set_u64(&one, "files", side->files);
    tide_json_set_u64(&one, "bytes", side->bytes);
    (void)json_object_set(object, name, one.value);
    tide_json_done(&one);
}

/* As the last look found it (alerts.c). */
static void show_concerns(tide_json *one, const struct tide_drive_seat *seat, uint64_t now_ms)
{
    if (!seat->judged)
        return;
    tide_json_set_cstr(one, "name", seat->name);
    tide_json_set_u64(one, "conflicts", seat->conflicts);
    tide_json_set_u64(one, "deletions_waiting", seat->deletions);
    tide_json_set_u64(one, "owed", seat->owed);
    tide_json_set_u64(one, "bad", seat->bad);
    if (seat->tidemark_ms != 0)
        tide_json_set_u64(one, "round_age_ms",
                          now_ms > seat->tidemark_ms ? now_ms - seat->tidemark_ms : 0);
}

/* What this process does for each drive (D9). */
static void show(json_t *object, void *arg)
{
    tide_drive *drive = arg;
    struct tide_drive_seat seats[TIDE_DRIVES_OPEN_MAX];
    tide_lock_take(drive->options.world, drive->lock);
    const size_t count = drive->seats_count;
    memcpy(seats, drive->seats, count * sizeof *seats);
    tide_lock_drop(drive->options.world, drive->lock);
    for (size_t i = 0; i < count; i++) {
        struct tide_drive_state now;
        char name[16];
        tide_json one;
        tide_json_object(&one);
        tide_drive_state(drive, seats[i].number, &now);
        show_side(one.value, "downloading", &now.down);
        show_side(one.value, "uploading", &now.up);
        tide_json_set_u64(&one, "waiting", now.waiting);
        tide_json_set_u64(&one, "downloaded", now.downloaded);
        tide_json_set_u64(&one, "downloaded_bytes", now.downloaded_bytes);
        tide_json_set_u64(&one, "uploaded", now.uploaded);
        tide_json_set_u64(&one, "uploaded_bytes", now.uploaded_bytes);
        tide_json_set_bool(&one, "observing", seats[i].observing != 0);
        tide_json_set_bool(&one, "planning", seats[i].planning != 0);
        show_concerns(&one, &seats[i], tide_world_now_unix_ms(drive->options.world));
        (void)snprintf(name, sizeof name, "%" PRIu32, seats[i].number);
        (void)json_object_set(object, name, one.value);
        tide_json_done(&one);
    }
}

tide_status tide_drive_open(const struct tide_drive_options *options, tide_mem *mem,
                            tide_drive **drive_out, tide_error *err)
{
    tide_drive *drive = tide_mem_new(mem, sizeof *drive);
    if (drive == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the drives");
    uint64_t drives = 0;
    drive->mem = mem;
    drive->options = *options;
    tide_map_init(&drive->act_at, mem);
    tide_map_init(&drive->superseded, mem);
    (void)snprintf(drive->state_path, sizeof drive->state_path, "%s/" TIDE_STATE_FILE,
                   options->state_dir);
    (void)gethostname(drive->host, sizeof drive->host - 1);
    tide_status rc = tide_lock_new(options->world, &drive->lock);
    if (rc == TIDE_OK)
        rc = tide_drive_dirty_new(options->world, mem, &drive->dirty, err);
    if (rc == TIDE_OK)
        rc = define_kinds(drive, err);
    if (rc == TIDE_OK)
        rc = tide_transact(options->engine, make_tables, &drives, err);
    if (rc == TIDE_OK && drives > 0)
        tide_engine_workers_want(options->engine, TIDE_DRIVE_WORKERS);
    if (rc == TIDE_OK)
        rc = tide_engine_snapshot_add(options->engine, "drive", show, drive, err);
    if (rc != TIDE_OK) {
        tide_drive_close(drive);
        return rc;
    }
    *drive_out = drive;
    return TIDE_OK;
}

void tide_drive_close(tide_drive *drive)
{
    if (drive == NULL)
        return;
    TIDE_ASSERT(drive->watching == NULL);
    tide_drive_dirty_free(drive->dirty);
    while (drive->idle != NULL) {
        struct tide_drive_reader *reader = drive->idle;
        drive->idle = reader->next;
        tide_rows_kept_done(&reader->kept);
        tide_db_close(&reader->db);
        tide_mem_free(drive->mem, reader, sizeof *reader);
    }
    for (size_t i = 0; i < drive->users_count; i++) {
        tide_onedrive_close(drive->users[i]->client);
        tide_tokens_close(drive->users[i]->tokens);
        tide_mem_free(drive->mem, drive->users[i], sizeof *drive->users[i]);
    }
    if (drive->lock != NULL)
        tide_lock_free(drive->options.world, drive->lock);
    tide_map_done(&drive->act_at);
    tide_map_done(&drive->superseded);
    tide_mem_free(drive->mem, drive->acts, drive->acts_room * sizeof *drive->acts);
    tide_mem_free(drive->mem, drive, sizeof *drive);
}

/* ---- what users ask for ---- */

void tide_drive_secret_name(const char *account, char out[TIDE_SECRET_NAME_BYTES_MAX])
{
    (void)snprintf(out, TIDE_SECRET_NAME_BYTES_MAX, "onedrive/%s", account);
}

void tide_drive_stream_name(uint32_t number, char name_out[TIDE_DRIVE_STREAM_BYTES])
{
    (void)snprintf(name_out, TIDE_DRIVE_STREAM_BYTES, "drive:%" PRIu32, number);
}

void tide_drive_request(uint32_t number, bool full, struct tide_drive_request *request_out)
{
    (void)snprintf(request_out->payload, sizeof request_out->payload,
                   "{\"drive\":%" PRIu32 ",\"full\":%s}", number, full ? "true" : "false");
    (void)snprintf(request_out->dedupe, sizeof request_out->dedupe, "drive:%" PRIu32 ":sync%s",
                   number, full ? ":full" : "");
}

void tide_drive_look_request(uint32_t number, struct tide_drive_request *request_out)
{
    (void)snprintf(request_out->payload, sizeof request_out->payload,
                   "{\"drive\":%" PRIu32 ",\"full\":false,\"look\":true}", number);
    (void)snprintf(request_out->dedupe, sizeof request_out->dedupe, "drive:%" PRIu32 ":look",
                   number);
}

void tide_drive_plan_request(uint32_t number, struct tide_drive_request *request_out)
{
    (void)snprintf(request_out->payload, sizeof request_out->payload, "{\"drive\":%" PRIu32 "}",
                   number);
    (void)snprintf(request_out->dedupe, sizeof request_out->dedupe, "drive:%" PRIu32 ":plan",
                   number);
}

static tide_status enqueue_sync(tide_drive *drive, const struct tide_drive_row *row,
                                const struct tide_drive_request *request, tide_error *err)
{
    const struct tide_spec spec = {.kind = drive->sync_kind,
                                   .account = row->account,
                                   .payload = request->payload,
                                   .dedupe = request->dedupe};
    return tide_enqueue(drive->options.engine, &spec, 1, NULL, err);
}

tide_status tide_drive_sync(tide_drive *drive, const struct tide_drive_row *row, bool full,
                            tide_error *err)
{
    struct tide_drive_request request;
    tide_drive_request(row->number, full, &request);
    return enqueue_sync(drive, row, &request, err);
}

tide_status tide_drive_sync_changed(tide_drive *drive, const struct tide_drive_row *row,
                                    tide_error *err)
{
    struct tide_drive_request request;
    (void)snprintf(request.payload, sizeof request.payload,
                   "{\"drive\":%" PRIu32 ",\"full\":false,\"changed\":true}", row->number);
    (void)snprintf(request.dedupe, sizeof request.dedupe, "drive:%" PRIu32 ":changed", row->number);
    return enqueue_sync(drive, row, &request, err);
}

tide_status tide_drive_payload(tide_job *job, json_t **payload_out, uint32_t *number_out,
                               tide_error *err)
{
    json_t *payload = NULL;
    uint64_t number = 0;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    tide_status rc = tide_json_get_u64(payload, "drive", &number, err);
    if (rc == TIDE_OK && (number == 0 || number > UINT32_MAX))
        rc = tide_error_set(err, TIDE_INVALID, "invalid payload of a drive's job");
    if (rc != TIDE_OK) {
        json_decref(payload);
        return rc;
    }
    *payload_out = payload;
    *number_out = (uint32_t)number;
    return TIDE_OK;
}
