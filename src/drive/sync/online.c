/* online.c - folders, moves and deletions online. */
#include "drive/sync/inside.h"

#include <string.h>

void tide_drive_online_of(const struct tide_drive_remote_look *look, struct tide_drive_online *out)
{
    *out = (struct tide_drive_online){.id = tide_text_of(look->id),
                                      .parent_id = tide_text_of(look->parent_id),
                                      .name = tide_text_of(look->name),
                                      .kind = look->kind,
                                      .content = look->content,
                                      .ctag = tide_text_of(look->ctag)};
}

/* A change may have been refused because the item is not what its row says: the row is renewed. */
void tide_drive_look_online(struct tide_drive_task *task)
{
    struct tide_onedrive_answer answer = {.value = NULL};
    const tide_status rc = tide_onedrive_get(task->user->client, task->job, task->act.drive,
                                             tide_text_of(task->remote.id), &answer, NULL);
    if (rc == TIDE_OK)
        tide_drive_live_is(task, &answer);
    task->live_gone = rc == TIDE_GONE;
    tide_onedrive_answer_done(&answer);
}

tide_status tide_drive_do_mkdir_remote(struct tide_drive_task *task, tide_error *err)
{
    char parent_id[TIDE_DRIVE_LOOK_ID_BYTES];
    struct tide_onedrive_answer answer = {.value = NULL};
    if (!task->has_local || task->local.state != TIDE_DRIVE_LOCAL_LIVE ||
        task->local.kind != TIDE_DRIVE_FOLDER || strcmp(task->local.name, task->order.name) != 0)
        return tide_drive_other_plan(err);
    TIDE_TRY(tide_drive_target_online(task, parent_id, err));
    const tide_status rc = tide_drive_mkdir_remote(&task->act, tide_text_of(parent_id),
                                                   tide_text_of(task->order.name), &answer, err);
    if (rc == TIDE_OK)
        tide_drive_live_is(task, &answer);
    tide_onedrive_answer_done(&answer);
    return rc;
}

static tide_status write_aside(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_drive_task *task = arg;
    return tide_drive_aside_remote(
        tide_drives_rows(tide_transaction_rows(transaction), task->order.drive), task->order.item,
        tide_text_of(task->remote.name), err);
}

tide_status tide_drive_do_move_remote(struct tide_drive_task *task, tide_error *err)
{
    char parent_id[TIDE_DRIVE_LOOK_ID_BYTES];
    struct tide_onedrive_answer answer = {.value = NULL};
    struct tide_drive_online was;
    if (!task->has_remote || task->remote.state != TIDE_DRIVE_REMOTE_LIVE ||
        tide_drive_mark_remote_place(&task->remote) != task->order.remote_place)
        return tide_drive_other_plan(err);
    if (task->order.step_aside)
        memcpy(parent_id, task->remote.parent_id, sizeof parent_id);
    else
        TIDE_TRY(tide_drive_target_online(task, parent_id, err));
    /* The name that it had is durable before the step (D24). */
    if (task->order.step_aside && task->remote.aside[0] == '\0')
        TIDE_TRY(tide_transact(task->drive->options.engine, write_aside, task, err));
    tide_drive_online_of(&task->remote, &was);
    const tide_status rc = tide_drive_move_remote(&task->act, &was, tide_text_of(parent_id),
                                                  tide_text_of(task->order.name), &answer, err);
    if (rc == TIDE_OK)
        tide_drive_live_is(task, &answer);
    tide_onedrive_answer_done(&answer);
    if (rc == TIDE_SUPERSEDED || rc == TIDE_EXISTS)
        tide_drive_look_online(task);
    return rc;
}

/* ---- deletions ---- */

/* Something has the name: the item is gone only if that is another one, which was moved there, or of the other
 * kind, which no item ever becomes (D17). */
static tide_status check_other(const struct tide_drive_task *task, const struct tide_entry *entry,
                               tide_error *err)
{
    const struct tide_drive_identity identity = {entry->dev, entry->inode, entry->birth_ns};
    bool other = false;
    if (task->base.kind == TIDE_DRIVE_FILE ? entry->kind == TIDE_ENTRY_FOLDER
                                           : entry->kind == TIDE_ENTRY_FILE)
        return TIDE_OK;
    TIDE_TRY(tide_drive_is_other_item(task->db, &identity, task->order.item, &other, err));
    return other ? TIDE_OK : tide_error_set(err, TIDE_SUPERSEDED, "the item is here again");
}

/* Whether the item is proved absent here now (S13): the first name of its path that is missing is
 * missing in a folder that was entered. */
static tide_status is_absent(const struct tide_drive_task *task, tide_text folder, tide_text rest,
                             tide_error *err)
{
    int dir = -1;
    tide_auto_buf path = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    tide_status rc = tide_buf_add(&path, folder.data, folder.bytes);
    while (rc == TIDE_OK) {
        struct tide_entry entry;
        const char *slash = memchr(rest.data, '/', rest.bytes);
        const tide_text name = {rest.data,
                                slash == NULL ? rest.bytes : (size_t)(slash - rest.data)};
        rc = tide_folder_enter(task->act.root, tide_buf_text(&path), &dir, err);
        if (rc == TIDE_OK)
            rc = tide_folder_look(dir, name, &entry, err);
        const bool entered = dir >= 0;
        tide_folder_close(dir);
        dir = -1;
        if (rc == TIDE_NOT_FOUND && entered)
            return TIDE_OK;
        if (rc == TIDE_OK && slash == NULL)
            return check_other(task, &entry, err);
        if (rc == TIDE_OK && path.bytes > 0)
            rc = tide_buf_add(&path, "/", 1);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&path, name.data, name.bytes);
        if (slash != NULL)
            rest = (tide_text){slash + 1, rest.bytes - name.bytes - 1};
    }
    return tide_error_set(err, TIDE_SUPERSEDED, "whether the item is still here is not known");
}

/* The path of the item by its baseline: from the nearest folder that has a row. */
static tide_status check_absent(const struct tide_drive_task *task, tide_error *err)
{
    tide_auto_buf rest = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    tide_auto_buf folder = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
    struct tide_drive_base_look base = task->base;
    tide_status rc = tide_buf_add_text(&rest, base.local_name);
    for (int depth = 0; rc == TIDE_OK && depth < TIDE_DRIVE_DEPTH_MAX; depth++) {
        uint64_t row = 0;
        tide_buf_clear(&folder);
        rc = tide_drive_row_of_item(task->db, base.parent, &row, err);
        if (rc == TIDE_OK)
            rc = tide_drive_path_of_row(task->db, row, &folder, err);
        if (rc == TIDE_OK)
            return is_absent(task, tide_buf_text(&folder), tide_buf_text(&rest), err);
        if (rc != TIDE_NOT_FOUND)
            return rc;
        rc = tide_drive_look_base(task->db, base.parent, &base, err); /* the folder is gone, too */
        if (rc == TIDE_OK) {
            tide_auto_buf longer = tide_buf_in(task->drive->mem, TIDE_DRIVE_PATH_BYTES_MAX);
            TIDE_TRY(tide_buf_print(&longer, "%s/%s", base.local_name, tide_buf_cstr(&rest)));
            tide_buf_clear(&rest);
            rc = tide_buf_add(&rest, longer.data, longer.bytes);
        }
    }
    return rc == TIDE_OK || rc == TIDE_NOT_FOUND ? tide_drive_other_plan(err) : rc;
}

static tide_status still_absent(void *arg, tide_error *err)
{
    struct tide_drive_task *task = arg;
    TIDE_TRY(check_absent(task, err));
    return tide_drive_deletion_intent(task, true, err);
}

tide_status tide_drive_do_del_remote(struct tide_drive_task *task, tide_error *err)
{
    struct tide_drive_online was;
    if (!task->has_remote) /* an earlier run deleted it, and a feed has told so */
        return tide_drive_other_plan(err);
    if (!task->has_base || task->remote.state != TIDE_DRIVE_REMOTE_LIVE ||
        tide_drive_mark_remote(&task->remote) != task->order.remote_content ||
        tide_drive_mark_remote_place(&task->remote) != task->order.remote_place)
        return tide_drive_other_plan(err);
    TIDE_TRY(check_absent(task, err));
    tide_drive_online_of(&task->remote, &was);
    task->act.still_absent = still_absent;
    const tide_status rc = tide_drive_delete_remote(&task->act, &was, err);
    task->live_gone = rc == TIDE_OK;
    if (rc == TIDE_SUPERSEDED)
        tide_drive_look_online(task);
    return rc;
}
