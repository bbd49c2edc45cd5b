/* transfer.c - files cross: the actions up, new and down (D36 to D42). */
#include "base/check.h"
#include "drive/sync/inside.h"

#include <stdio.h>
#include <string.h>

/* ---- up ---- */

static tide_status write_doubt(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_drive_task *task = arg;
    const struct tide_drive_doubt doubt = {.item = task->order.item,
                                           .row = task->order.row,
                                           .was_item = task->order.was_item,
                                           .local = task->local};
    return tide_drive_doubt_put(
        tide_drives_rows(tide_transaction_rows(transaction), task->order.drive), &doubt, err);
}

static bool is_here(const struct tide_drive_task *task)
{
    return task->has_local && task->local.state == TIDE_DRIVE_LOCAL_LIVE &&
           tide_drive_mark_local(&task->local) == task->order.local_content;
}

static bool is_online(const struct tide_drive_task *task)
{
    return task->has_remote && task->remote.state == TIDE_DRIVE_REMOTE_LIVE &&
           tide_drive_mark_remote(&task->remote) == task->order.remote_content;
}

static tide_status send(struct tide_drive_task *task, struct tide_drive_upload *upload,
                        tide_error *err)
{
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
    const tide_status rc = tide_drive_upload(&task->act, upload, &done, err);
    tide_drive_live_is(task, &done.live);
    task->rewritten = done.rewritten;
    if (rc == TIDE_OK)
        tide_drive_transferred(task->drive, task->order.drive, false, done.sent_bytes);
    tide_drive_uploaded_done(&done);
    return rc;
}

tide_status tide_drive_do_up(struct tide_drive_task *task, tide_error *err)
{
    if (!is_here(task) || !is_online(task))
        return tide_drive_other_plan(err);
    /* Before its first byte: after a crash it is looked up (doubt.c). */
    TIDE_TRY(tide_transact(task->drive->options.engine, write_doubt, task, err));
    struct tide_drive_upload upload = {.id = tide_text_of(task->remote.id),
                                       .replaces = task->remote.content,
                                       .ctag = tide_text_of(task->remote.ctag)};
    return send(task, &upload, err);
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
        return tide_drive_other_plan(err);
    TIDE_TRY(tide_drive_target_online(task, parent_id, err));
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
