/* here.c - folders, moves and deletions on this machine. */
#include "drive/sync/inside.h"

#include <string.h>

tide_status tide_drive_do_mkdir_local(struct tide_drive_task *task, tide_error *err)
{
    tide_auto_buf folder = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    struct tide_entry entry;
    uint64_t parent = 0;
    if (!task->has_remote || task->remote.state != TIDE_DRIVE_REMOTE_LIVE ||
        task->remote.kind != TIDE_DRIVE_FOLDER)
        return tide_drive_other_plan(err);
    TIDE_TRY(tide_drive_target_here(task, &folder, &parent, err));
    const tide_text name = tide_text_of(task->order.name);
    tide_drive_rows_end(task);
    TIDE_TRY(tide_drive_mkdir_local(&task->act, tide_buf_text(&folder), name, &entry, err));
    tide_drive_found_is(task, parent, name, &entry, NULL);
    return TIDE_OK;
}

static tide_status write_aside(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_drive_task *task = arg;
    return tide_drive_aside_local(
        tide_drives_rows(tide_transaction_rows(transaction), task->order.drive), task->order.row,
        tide_text_of(task->local.name), err);
}

/* A file gets a conflict name only if the other version is online now: an echo of an old state makes no
 * copy (S10, I19). */
static tide_status check_other(struct tide_drive_task *task, tide_error *err)
{
    struct tide_onedrive_answer live = {.value = NULL};
    struct tide_drive_online was;
    tide_status rc = tide_drive_look_remote(task->db, task->order.copy_of, &task->remote, err);
    if (rc == TIDE_NOT_FOUND ||
        (rc == TIDE_OK && tide_drive_mark_remote(&task->remote) != task->order.remote_content))
        return tide_drive_other_plan(err);
    TIDE_TRY(rc);
    /* An upload that ran meanwhile made it: then it is the version that was here before. */
    bool synced = false;
    TIDE_TRY(tide_drive_is_base_online(task->db, task->order.copy_of, &synced, err));
    if (synced)
        return tide_drive_other_plan(err);
    task->has_remote = true;
    tide_drive_online_of(&task->remote, &was);
    rc = tide_drive_still_online(&task->act, &was, &live, err);
    tide_drive_live_is(task, &live);
    task->live_gone = rc == TIDE_SUPERSEDED && !task->has_live;
    tide_onedrive_answer_done(&live);
    return rc;
}

tide_status tide_drive_do_move_local(struct tide_drive_task *task, tide_error *err)
{
    tide_auto_buf from = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    tide_auto_buf to = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    struct tide_drive_here was;
    struct tide_entry entry;
    uint64_t parent = task->local.parent;
    const tide_text name = tide_text_of(task->order.name);
    if (!task->has_local || task->local.state != TIDE_DRIVE_LOCAL_LIVE ||
        tide_drive_mark_local_place(&task->local) != task->order.local_place)
        return tide_drive_other_plan(err);
    if (task->order.item == 0 && task->order.copy_of != 0 && !task->order.step_aside)
        TIDE_TRY(check_other(task, err));
    tide_status rc = tide_drive_path_of_row(task->db, task->local.parent, &from, err);
    if (rc == TIDE_OK && !task->order.step_aside)
        rc = tide_drive_target_here(task, &to, &parent, err);
    else if (rc == TIDE_OK)
        rc = tide_buf_add(&to, from.data, from.bytes);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? tide_drive_other_plan(err) : rc;
    /* The name that it had is durable before the step (D24). */
    if (task->order.step_aside && task->local.aside[0] == '\0')
        TIDE_TRY(tide_transact(task->drive->options.engine, write_aside, task, err));
    was.folder = tide_buf_text(&from);
    was.name = tide_text_of(task->local.name);
    tide_drive_entry_of(&task->local, &was.entry);
    TIDE_TRY(tide_drive_move_local(&task->act, &was, tide_buf_text(&to), name, &entry, err));
    tide_drive_found_is(task, parent, name, &entry, NULL);
    task->found.content = task->local.content;
    task->found.hashed_ns = task->local.hashed_ns;
    return TIDE_OK;
}

/* S12: it is not online, as the server says now. */
static tide_status check_gone(struct tide_drive_task *task, tide_error *err)
{
    char id[TIDE_DRIVE_LOOK_ID_BYTES];
    struct tide_onedrive_answer answer = {.value = NULL};
    tide_status rc = tide_drive_id_of(task->db, task->order.item, id, err);
    if (rc == TIDE_OK)
        rc = tide_onedrive_get(task->user->client, task->job, task->act.drive, tide_text_of(id),
                               &answer, err);
    if (rc == TIDE_OK)
        tide_drive_live_is(task, &answer);
    tide_onedrive_answer_done(&answer);
    if (rc == TIDE_GONE)
        return TIDE_OK;
    return rc == TIDE_OK || rc == TIDE_NOT_FOUND
               ? tide_error_set(err, TIDE_SUPERSEDED, "the item is online again")
               : rc;
}

tide_status tide_drive_do_del_local(struct tide_drive_task *task, tide_error *err)
{
    tide_auto_buf folder = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    struct tide_drive_here was = {.name = tide_text_of(task->local.name)};
    if (!task->has_base || !task->has_local || task->local.state != TIDE_DRIVE_LOCAL_LIVE ||
        (task->has_remote && task->remote.state == TIDE_DRIVE_REMOTE_LIVE) ||
        tide_drive_mark_local(&task->local) != task->order.local_content ||
        tide_drive_mark_local_place(&task->local) != task->order.local_place)
        return tide_drive_other_plan(err);
    TIDE_TRY(check_gone(task, err));
    const tide_status rc = tide_drive_path_of_row(task->db, task->local.parent, &folder, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? tide_drive_other_plan(err) : rc;
    was.folder = tide_buf_text(&folder);
    tide_drive_entry_of(&task->local, &was.entry);
    TIDE_TRY(tide_drive_deletion_intent(task, false, err));
    return tide_drive_delete_local(&task->act, &was, &task->base.local, err);
}
