/* transfer.c - files cross: the actions up, new and down (D36 to D42). */
#include "base/check.h"
#include "drive/sync/inside.h"

#include <stdio.h>
#include <string.h>

enum { FULL_MS = 20000 };

/* ---- up ---- */

struct doubting {
    uint32_t number;
    struct tide_drive_doubt doubt;
};

static tide_status write_doubt(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct doubting *doubting = arg;
    return tide_drive_doubt_put(
        tide_drives_rows(tide_transaction_rows_often(transaction), doubting->number),
        &doubting->doubt, err);
}

/* Before its first byte: after a crash it is looked up (doubt.c). */
static tide_status begin_doubt(struct tide_drive_task *task, uint64_t item, uint64_t was_item,
                               const char *parent_id, tide_error *err)
{
    struct doubting doubting = {
        .number = task->order.drive,
        .doubt = {
            .item = item, .row = task->order.row, .was_item = was_item, .local = task->local}};
    (void)snprintf(doubting.doubt.parent_id, sizeof doubting.doubt.parent_id, "%s", parent_id);
    return tide_transact(task->drive->options.engine, write_doubt, &doubting, err);
}

static bool is_here(const struct tide_drive_task *task)
{
    return task->has_local && task->local.state == TIDE_DRIVE_LOCAL_LIVE &&
           tide_drive_mark_local(&task->local) == task->order.local_content;
}

/* Its file or item is not what was planned.  What an earlier run sent of that is of no use (D5). */
static tide_status is_stale(struct tide_drive_task *task, tide_error *err)
{
    tide_drive_upload_forget(&task->act);
    return tide_drive_other_plan(err);
}

static bool is_online(const struct tide_drive_task *task)
{
    return task->has_remote && task->remote.state == TIDE_DRIVE_REMOTE_LIVE &&
           tide_drive_mark_remote(&task->remote) == task->order.remote_content;
}

/* After one upload that did not fit the others are not tried for a while: each would be a call in vain. */
static bool is_full(struct tide_drive_task *task)
{
    const struct tide_drive_options *options = &task->drive->options;
    tide_lock_take(options->world, task->drive->lock);
    const uint64_t until_ms = task->user->full_until_ms;
    tide_lock_drop(options->world, task->drive->lock);
    /* Far ahead: the clock was put back. */
    return task->now_ms < until_ms && until_ms - task->now_ms <= FULL_MS;
}

void tide_drive_full_until(tide_drive *drive, struct tide_drive_user *user, uint64_t until_ms)
{
    tide_lock_take(drive->options.world, drive->lock);
    user->full_until_ms = until_ms;
    tide_lock_drop(drive->options.world, drive->lock);
}

static tide_status no_room(tide_error *err)
{
    return tide_error_set(err, TIDE_DISK_FULL,
                          "there is no room in this OneDrive: delete something there, or get more");
}

static tide_status send(struct tide_drive_task *task, struct tide_drive_upload *upload,
                        tide_error *err)
{
    if (is_full(task) && task->local.content.bytes > 0)
        return no_room(err);
    tide_auto_buf folder = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    struct tide_drive_uploaded done;
    const tide_status found = tide_drive_path_of_row(task->db, task->local.parent, &folder, err);
    if (found != TIDE_OK)
        return found == TIDE_NOT_FOUND ? tide_drive_other_plan(err) : found;
    upload->folder = tide_buf_text(&folder);
    upload->here = tide_text_of(task->local.name);
    upload->content = task->local.content;
    upload->business = task->row.business;
    tide_drive_entry_of(&task->local, &upload->entry);
    tide_drive_rows_end(task);
    const tide_status rc = tide_drive_upload(&task->act, upload, &done, err);
    tide_drive_live_is(task, &done.live);
    task->rewritten = done.rewritten;
    if (rc == TIDE_OK)
        tide_drive_transferred(task->drive, task->order.drive, false, done.sent_bytes);
    tide_drive_uploaded_done(&done);
    if (rc != TIDE_DISK_FULL)
        return rc;
    tide_drive_full_until(task->drive, task->user, task->now_ms + FULL_MS);
    return no_room(err);
}

tide_status tide_drive_do_up(struct tide_drive_task *task, tide_error *err)
{
    if (!is_here(task) || !is_online(task))
        return is_stale(task, err);
    TIDE_TRY(begin_doubt(task, task->order.item, task->order.was_item, "", err));
    struct tide_drive_upload upload = {.id = tide_text_of(task->remote.id),
                                       .replaces = task->remote.content,
                                       .ctag = tide_text_of(task->remote.ctag)};
    const tide_status rc = send(task, &upload, err);
    /* The item may be gone, and its tombstone lost (F29): no feed would tell, and each plan would try the
     * same again. */
    if ((rc == TIDE_SUPERSEDED || rc == TIDE_GONE) && !task->has_live)
        tide_drive_look_online(task);
    return rc;
}

/* ---- new ---- */

/* Its name is taken online: whoever has it is looked at, so that the next plan knows of it (D30). */
static void look_at_taken(struct tide_drive_task *task, tide_text parent_id)
{
    struct tide_onedrive_answer answer = {.value = NULL};
    if (tide_onedrive_get_at(task->user->client, task->job, task->act.drive, parent_id,
                             tide_text_of(task->order.name), &answer, NULL) == TIDE_OK)
        tide_drive_live_is(task, &answer);
    tide_onedrive_answer_done(&answer);
}

tide_status tide_drive_do_new(struct tide_drive_task *task, tide_error *err)
{
    char parent_id[TIDE_DRIVE_LOOK_ID_BYTES];
    /* It has its name: what moves it comes before. */
    if (!is_here(task) || strcmp(task->local.name, task->order.name) != 0)
        return is_stale(task, err);
    TIDE_TRY(tide_drive_target_online(task, parent_id, err));
    TIDE_TRY(begin_doubt(task, tide_drive_doubt_of_new(task->order.row), task->order.item,
                         parent_id, err));
    struct tide_drive_upload upload = {.parent_id = tide_text_of(parent_id),
                                       .name = tide_text_of(task->order.name)};
    const tide_status rc = send(task, &upload, err);
    if (rc == TIDE_EXISTS)
        look_at_taken(task, upload.parent_id);
    return rc;
}

/* ---- down ---- */

static tide_status fetch(struct tide_drive_task *task, struct tide_drive_download *plan,
                         uint64_t parent, tide_error *err)
{
    struct tide_drive_downloaded done;
    plan->id = tide_text_of(task->remote.id);
    plan->content = task->remote.content;
    plan->ctag = tide_text_of(task->remote.ctag);
    plan->compare = task->order.compare;
    TIDE_TRY(tide_drive_is_accepted(task->db, task->order.item, plan->ctag, &plan->accept, err));
    tide_drive_rows_end(task);
    const tide_status rc = tide_drive_download(&task->act, plan, &done, err);
    tide_drive_live_is(task, &done.live);
    /* `compare` found other bytes: now the hash is known, which the row lacks. */
    if (rc == TIDE_SUPERSEDED && plan->compare && task->has_live && done.content.has_qxh) {
        task->live.seen.content.has_qxh = true;
        memcpy(task->live.seen.content.qxh, done.content.qxh, sizeof done.content.qxh);
    }
    if (rc == TIDE_OK) {
        tide_drive_found_is(task, parent, plan->name, &done.entry, &done.content);
        task->rewritten = plan->accept; /* both sides' hashes are kept as they are */
        (void)snprintf(task->displaced, sizeof task->displaced, "%s", done.displaced);
        task->displaced_entry = done.displaced_entry;
        tide_drive_transferred(task->drive, task->order.drive, true, done.fetched_bytes);
    }
    tide_drive_downloaded_done(&done);
    return rc;
}

tide_status tide_drive_do_down(struct tide_drive_task *task, tide_error *err)
{
    tide_auto_buf folder = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    struct tide_entry expected;
    uint64_t parent = task->local.parent;
    struct tide_drive_download plan = {.name = tide_text_of(task->order.name)};
    if (!is_online(task))
        return tide_drive_other_plan(err);
    if (task->order.row == 0) {
        TIDE_TRY(tide_drive_target_here(task, &folder, &parent, err));
    } else {
        if (!is_here(task))
            return tide_drive_other_plan(err);
        const tide_status found = tide_drive_path_of_row(task->db, parent, &folder, err);
        if (found != TIDE_OK)
            return found == TIDE_NOT_FOUND ? tide_drive_other_plan(err) : found;
        tide_drive_entry_of(&task->local, &expected);
        plan.expected = &expected;
        plan.name = tide_text_of(task->local.name);
    }
    plan.folder = tide_buf_text(&folder);
    return fetch(task, &plan, parent, err);
}
