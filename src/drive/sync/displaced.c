/* displaced.c - files that a download replaced (D42).
 *
 * A replaced file is kept for ten seconds under a name of ours, because a program may have it open; what
 * is written to it meanwhile becomes a copy.  leftovers.c has those that a crash left without a job. */
#include "base/check.h"
#include "base/json.h"
#include "drive/local/hash.h"
#include "drive/sync/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

tide_status tide_drive_displaced_add(struct tide_drive_task *task, uint64_t parent_row,
                                     tide_error *err)
{
    const struct tide_entry *entry = &task->displaced_entry;
    tide_auto_buf payload = tide_buf_in(task->drive->mem, 8 << 10);
    TIDE_TRY(tide_buf_print(&payload,
                            "{\"drive\":%" PRIu32 ",\"folder\":%" PRIu64 ",\"item\":%" PRIu64
                            ",\"displaced\":\"%s\",\"entry\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64
                            ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32
                            "],\"name\":",
                            task->order.drive, parent_row, task->order.item, task->displaced,
                            entry->bytes, entry->mtime_ns, entry->ctime_ns, entry->dev,
                            entry->inode, entry->birth_ns, entry->nlink, entry->mode));
    TIDE_TRY(tide_json_escape(tide_text_of(task->found_name), &payload));
    TIDE_TRY(tide_buf_add_text(&payload, "}"));
    const struct tide_spec spec = {.kind = task->drive->displaced_kind,
                                   .account = task->row.account,
                                   .payload = tide_buf_cstr(&payload),
                                   .delay_ms = TIDE_DRIVE_DISPLACED_MS};
    return tide_job_enqueue(task->job, &spec, err);
}

struct old_file {
    uint64_t folder, item;
    tide_text displaced, name;
    struct tide_entry entry;
};

static tide_status read_payload(const json_t *payload, struct old_file *file, tide_error *err)
{
    const json_t *entry = NULL;
    TIDE_TRY(tide_json_get_u64(payload, "folder", &file->folder, err));
    TIDE_TRY(tide_json_get_u64(payload, "item", &file->item, err));
    TIDE_TRY(tide_json_get_text(payload, "displaced", &file->displaced, err));
    TIDE_TRY(tide_json_get_text(payload, "name", &file->name, err));
    TIDE_TRY(tide_json_get_array(payload, "entry", &entry, err));
    uint64_t numbers[8];
    for (size_t i = 0; i < 8; i++)
        numbers[i] = (uint64_t)json_integer_value(json_array_get(entry, i));
    file->entry = (struct tide_entry){.kind = TIDE_ENTRY_FILE,
                                      .bytes = numbers[0],
                                      .mtime_ns = numbers[1],
                                      .ctime_ns = numbers[2],
                                      .dev = numbers[3],
                                      .inode = numbers[4],
                                      .birth_ns = numbers[5],
                                      .nlink = (uint32_t)numbers[6],
                                      .mode = (uint32_t)numbers[7]};
    return TIDE_OK;
}

struct noting {
    uint32_t number;
    struct tide_drive_conflict conflict;
    char name[TIDE_DRIVE_NAME_BYTES_MAX + 1], copy[TIDE_DRIVE_NAME_BYTES_MAX + 1];
};

static tide_status note(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct noting *noting = arg;
    noting->conflict.name = tide_text_of(noting->name);
    noting->conflict.copy = tide_text_of(noting->copy);
    return tide_drive_conflict_add(
        tide_drives_rows(tide_transaction_rows(transaction), noting->number), &noting->conflict,
        err);
}

/* Ends it, under the first copy name that is free. */
static tide_status end_old(tide_drive *drive, const struct tide_drive_act *act, tide_text folder,
                           const struct old_file *file, struct noting *noting, bool *kept_out,
                           tide_error *err)
{
    char displaced[TIDE_DRIVE_TEMPORARY_BYTES];
    const struct tide_drive_stamp stamp = {.host = tide_text_of(drive->host),
                                           .unix_ms = act->now_unix_ms};
    (void)snprintf(displaced, sizeof displaced, "%.*s", (int)file->displaced.bytes,
                   file->displaced.data);
    tide_status rc = TIDE_EXISTS;
    for (uint32_t ordinal = 1; rc == TIDE_EXISTS && ordinal <= TIDE_DRIVE_COPIES_MAX; ordinal++) {
        tide_drive_conflict_name(file->name, &stamp, ordinal, noting->copy);
        rc = tide_drive_displaced_end(act, folder, displaced, &file->entry,
                                      tide_text_of(noting->copy), kept_out, err);
    }
    return rc;
}

static tide_status run(tide_drive *drive, tide_job *job, const struct tide_drive_row *row,
                       const struct old_file *file, struct noting *noting, tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    tide_auto_buf folder = tide_buf_in(drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    struct tide_drive_act act = {
        .root = -1, .mem = drive->mem, .now_unix_ms = tide_world_now_unix_ms(drive->options.world)};
    bool kept = false;
    TIDE_TRY(tide_drive_reader_take(drive, &reader, err));
    tide_status rc = tide_drive_path_of_row(tide_drive_reader_rows(reader, row->number),
                                            file->folder, &folder, err);
    tide_drive_reader_give(drive, reader);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK; /* the folder went: the next sweep finds the file, wherever it is */
    if (rc == TIDE_OK)
        rc = tide_folder_open(row->dir, &act.root, err);
    if (rc == TIDE_OK)
        rc = tide_drive_marker_check(act.root, row->marker, err);
    if (rc == TIDE_OK)
        rc = end_old(drive, &act, tide_buf_text(&folder), file, noting, &kept, err);
    tide_folder_close(act.root);
    if (rc == TIDE_SUPERSEDED)
        return TIDE_OK;
    if (rc != TIDE_OK || !kept)
        return rc;
    noting->number = row->number;
    noting->conflict = (struct tide_drive_conflict){
        .notice = TIDE_DRIVE_K1, .item = file->item, .at_ms = act.now_unix_ms};
    (void)snprintf(noting->name, sizeof noting->name, "%.*s", (int)file->name.bytes,
                   file->name.data);
    return tide_job_effect(job, note, noting, err);
}

static tide_status displaced_job(tide_job *job, tide_drive *drive, tide_error *err)
{
    json_auto_t *payload = NULL;
    uint32_t number = 0;
    struct tide_drive_row row;
    struct tide_drive_user *user = NULL;
    struct old_file file;
    struct noting *noting = tide_job_memory(job, sizeof *noting);
    if (noting == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a replaced file");
    TIDE_TRY(tide_drive_payload(job, &payload, &number, err));
    TIDE_TRY(read_payload(payload, &file, err));
    const tide_status rc = tide_drive_use(drive, number, &row, &user, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    return run(drive, job, &row, &file, noting, err);
}

tide_status tide_drive_displaced_job(tide_job *job, void *context, tide_error *err)
{
    return tide_drive_unless_removed(context, job, displaced_job(job, context, err), err);
}
