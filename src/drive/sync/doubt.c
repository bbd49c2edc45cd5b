/* doubt.c - uploads whose answer was lost with the process (D38).
 *
 * Our own bytes online would look like a change there: they would replace a file that was moved here
 * meanwhile, or make a copy of one that was edited.  So before a scan is stored and before a plan the
 * item is read: if it has the bytes, the baseline is written from the rows as they were planned.  An upload
 * that runs in this process is not in doubt; one that has not finished is taken up by its own job, which
 * puts it in doubt again. */
#include "drive/sync/inside.h"

#include <string.h>

struct settling {
    uint32_t number;
    struct tide_drive_doubt doubt;
    struct tide_drive_item item;
    bool ours;
    uint64_t now_ms;
};

/* A new item's baseline has the place of both sides. */
static bool is_at_its_place(tide_rows db, const struct settling *settling,
                            const struct tide_drive_local_look *now)
{
    char id[TIDE_DRIVE_LOOK_ID_BYTES];
    uint64_t parent = 0;
    return now->state == TIDE_DRIVE_LOCAL_LIVE &&
           strcmp(now->name, settling->doubt.local.name) == 0 &&
           tide_drive_item_of_row(db, now->parent, &parent, NULL) == TIDE_OK &&
           tide_drive_id_of(db, parent, id, NULL) == TIDE_OK &&
           strcmp(id, settling->doubt.parent_id) == 0;
}

static tide_status write_base(tide_rows db, const struct settling *settling, tide_error *err)
{
    struct tide_drive_local_look now;
    uint64_t item = 0;
    TIDE_TRY(tide_drive_remote_put(db, &settling->item.seen, &item, err));
    tide_status rc = tide_drive_look_local(db, settling->doubt.row, &now, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    if (settling->doubt.parent_id[0] != '\0' && !is_at_its_place(db, settling, &now))
        return TIDE_OK; /* it was moved here meanwhile */
    const struct tide_drive_outcome outcome = {.verb = TIDE_DRIVE_UP,
                                               .item = item,
                                               .row = settling->doubt.row,
                                               .was_item = settling->doubt.was_item,
                                               .now_ms = settling->now_ms};
    TIDE_TRY(tide_drive_local_facts(db, &settling->doubt.local, err));
    rc = tide_drive_commit(db, &outcome, err);
    TIDE_TRY(rc == TIDE_SUPERSEDED ? TIDE_OK : rc);
    return tide_drive_local_facts(db, &now, err);
}

static tide_status settle(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct settling *settling = arg;
    const tide_rows db = tide_drives_rows(tide_transaction_rows(transaction), settling->number);
    if (settling->ours)
        TIDE_TRY(write_base(db, settling, err));
    return tide_drive_doubt_end(db, settling->doubt.item, err);
}

static bool is_ours(const struct tide_onedrive_item *item, const struct tide_drive_content *content)
{
    if (item->deleted || item->kind != TIDE_ONEDRIVE_FILE || !item->has_size ||
        item->size != content->bytes)
        return false;
    return item->size == 0 ||
           (item->has_hash && memcmp(item->hash, content->qxh, sizeof content->qxh) == 0);
}

static tide_status look_up(tide_drive *drive, tide_job *job, const struct tide_drive_row *row,
                           struct tide_drive_user *user, struct settling *settling, tide_error *err)
{
    const struct tide_drive_doubt *doubt = &settling->doubt;
    const tide_text drive_id = tide_text_of(row->drive_id);
    char id[TIDE_DRIVE_LOOK_ID_BYTES];
    struct tide_drive_reader *reader = NULL;
    struct tide_onedrive_answer answer = {.value = NULL};
    tide_status rc = TIDE_OK;
    if (doubt->parent_id[0] != '\0') {
        rc = tide_onedrive_get_at(user->client, job, drive_id, tide_text_of(doubt->parent_id),
                                  tide_text_of(doubt->local.name), &answer, err);
    } else {
        TIDE_TRY(tide_drive_reader_take(drive, &reader, err));
        rc = tide_drive_id_of(tide_drive_reader_rows(reader, row->number), doubt->item, id, err);
        tide_drive_reader_give(drive, reader);
        TIDE_TRY(rc);
        rc = tide_onedrive_get(user->client, job, drive_id, tide_text_of(id), &answer, err);
    }
    settling->ours = rc == TIDE_OK && is_ours(&answer.item, &settling->doubt.local.content);
    if (settling->ours)
        tide_drive_item_of_answer(&answer.item, false, &settling->item);
    tide_onedrive_answer_done(&answer);
    if (rc != TIDE_OK && rc != TIDE_GONE && rc != TIDE_PERMANENT)
        return rc;
    return tide_transact(drive->options.engine, settle, settling, err);
}

tide_status tide_drive_doubts(tide_drive *drive, tide_job *job, const struct tide_drive_row *row,
                              struct tide_drive_user *user, tide_error *err)
{
    struct settling *settling = tide_mem_new(drive->mem, sizeof *settling);
    tide_status rc = TIDE_OK;
    if (settling == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to look up an upload");
    settling->number = row->number;
    settling->now_ms = tide_world_now_unix_ms(drive->options.world);
    while (rc == TIDE_OK) {
        struct tide_drive_reader *reader = NULL;
        rc = tide_drive_reader_take(drive, &reader, err);
        if (rc == TIDE_OK)
            rc = tide_drive_doubt_next(tide_drive_reader_rows(reader, row->number),
                                       settling->doubt.item, &settling->doubt, err);
        tide_drive_reader_give(drive, reader);
        if (rc == TIDE_OK &&
            !tide_drive_is_running(drive, row->number, settling->doubt.item, settling->doubt.row))
            rc = look_up(drive, job, row, user, settling, err);
    }
    tide_mem_free(drive->mem, settling, sizeof *settling);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}
