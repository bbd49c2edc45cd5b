#include "base/check.h"
#include "drive/act/inside.h"
#include "drive/local/hash.h"
#include "drive/local/trash.h"

#include <strings.h>

/* ---- online ---- */

/* Ids are compared without case: rows have them in lower case (D13). */
static bool id_equal(tide_text a, tide_text b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || strncasecmp(a.data, b.data, a.bytes) == 0);
}

static bool is_at(const struct tide_onedrive_item *item, tide_text parent_id, tide_text name)
{
    return id_equal(item->parent_id, parent_id) && tide_text_equal(item->name, name);
}

static tide_status read_item(const struct tide_drive_act *act, tide_text id,
                             struct tide_onedrive_answer *answer, tide_error *err)
{
    tide_onedrive_answer_done(answer);
    return tide_onedrive_get(act->onedrive, act->job, act->drive, id, answer, err);
}

tide_status tide_drive_still_online(const struct tide_drive_act *act,
                                    const struct tide_drive_online *was,
                                    struct tide_onedrive_answer *answer_out, tide_error *err)
{
    const tide_status rc = read_item(act, was->id, answer_out, err);
    if (rc == TIDE_GONE)
        return tide_error_set(err, TIDE_SUPERSEDED, "the item is no longer online");
    if (rc != TIDE_OK || tide_drive_gate_content(&answer_out->item, &was->content, was->ctag))
        return rc;
    return tide_error_set(err, TIDE_SUPERSEDED, "the file changed online");
}

/* The call may have had its effect, though no answer says so. */
static bool is_doubtful(tide_status rc)
{
    return rc == TIDE_UNKNOWN || rc == TIDE_TIMEOUT || rc == TIDE_SERVER;
}

tide_status tide_drive_mkdir_remote(const struct tide_drive_act *act, tide_text parent_id,
                                    tide_text name, struct tide_onedrive_answer *answer_out,
                                    tide_error *err)
{
    tide_onedrive_answer_done(answer_out);
    const tide_status rc = tide_onedrive_folder_create(act->onedrive, act->job, act->drive,
                                                       parent_id, name, answer_out, err);
    if (rc == TIDE_GONE)
        return tide_error_set(err, TIDE_SUPERSEDED, "the folder above is no longer online");
    if (rc != TIDE_EXISTS && !is_doubtful(rc))
        return rc;
    /* Made by an earlier run, by another device, or by the call whose answer is missing. */
    tide_onedrive_answer_done(answer_out);
    if (tide_onedrive_get_at(act->onedrive, act->job, act->drive, parent_id, name, answer_out,
                             NULL) == TIDE_OK &&
        answer_out->item.kind == TIDE_ONEDRIVE_FOLDER && !answer_out->item.remote)
        return TIDE_OK;
    tide_onedrive_answer_done(answer_out);
    return rc;
}

tide_status tide_drive_move_remote(const struct tide_drive_act *act,
                                   const struct tide_drive_online *was, tide_text parent_id,
                                   tide_text name, struct tide_onedrive_answer *answer_out,
                                   tide_error *err)
{
    struct tide_onedrive_answer live = {.value = NULL};
    tide_onedrive_answer_done(answer_out);
    tide_status rc = read_item(act, was->id, &live, err);
    if (rc == TIDE_GONE)
        rc = tide_error_set(err, TIDE_SUPERSEDED, "the item is no longer online");
    if (rc != TIDE_OK)
        return rc;
    if (is_at(&live.item, parent_id, name)) { /* an earlier run did it */
        *answer_out = live;
        return TIDE_OK;
    }
    if (!is_at(&live.item, was->parent_id, was->name)) {
        tide_onedrive_answer_done(&live);
        return tide_error_set(err, TIDE_SUPERSEDED, "the item was moved online");
    }
    const bool stays = id_equal(parent_id, was->parent_id);
    const struct tide_onedrive_update update = {
        .name = name,
        .parent_id = stays ? TIDE_TEXT("") : parent_id,
        .if_match = live.item.etag,
    };
    rc = tide_onedrive_update(act->onedrive, act->job, act->drive, was->id, &update, answer_out,
                              err);
    if (rc == TIDE_GONE) /* the item, or its new folder */
        rc = tide_error_set(err, TIDE_SUPERSEDED, "the item or its new folder is gone online");
    if (is_doubtful(rc) && read_item(act, was->id, &live, NULL) == TIDE_OK &&
        is_at(&live.item, parent_id, name)) {
        tide_onedrive_answer_done(answer_out);
        *answer_out = live;
        return TIDE_OK;
    }
    tide_onedrive_answer_done(&live);
    return rc;
}

static tide_status count_child(const struct tide_onedrive_item *item, void *arg)
{
    uint64_t *children = arg;
    (void)item;
    (*children)++;
    return TIDE_OK;
}

static void count_again(void *arg)
{
    *(uint64_t *)arg = 0;
}

/* No tag of a folder sees a new child: it is listed (S18). */
static tide_status is_empty(const struct tide_drive_act *act, tide_text id, tide_error *err)
{
    uint64_t children = 0;
    const struct tide_onedrive_sink sink = {count_child, count_again, &children};
    tide_auto_buf link = tide_buf_in(act->mem, TIDE_ONEDRIVE_LINK_BYTES_MAX);
    struct tide_onedrive_page page;
    tide_onedrive_page_init(&page, act->mem);
    tide_status rc = TIDE_OK;
    do {
        tide_buf_clear(&link);
        rc = tide_buf_add(&link, page.next.data, page.next.bytes);
        if (rc == TIDE_OK)
            rc = tide_onedrive_children(act->onedrive, act->job, act->drive, id,
                                        tide_buf_cstr(&link), &sink, &page, err);
        else
            (void)tide_error_set(err, rc, "no memory for a folder's list");
    } while (rc == TIDE_OK && children == 0 && page.next.bytes > 0);
    tide_onedrive_page_done(&page);
    if (rc == TIDE_OK && children > 0)
        return tide_error_set(err, TIDE_SUPERSEDED, "the folder is not empty online");
    return rc;
}

/* The item is what was planned to be deleted, and where it was (S10). */
static tide_status check_delete(const struct tide_drive_act *act,
                                const struct tide_drive_online *was,
                                const struct tide_onedrive_item *item, tide_error *err)
{
    if (!is_at(item, was->parent_id, was->name))
        return tide_error_set(err, TIDE_SUPERSEDED, "the item was moved online");
    if (was->kind == TIDE_DRIVE_FOLDER)
        return item->kind == TIDE_ONEDRIVE_FOLDER
                   ? is_empty(act, was->id, err)
                   : tide_error_set(err, TIDE_SUPERSEDED, "the item is no folder");
    if (!tide_drive_gate_content(item, &was->content, was->ctag))
        return tide_error_set(err, TIDE_SUPERSEDED, "the file changed online");
    return TIDE_OK;
}

tide_status tide_drive_delete_remote(const struct tide_drive_act *act,
                                     const struct tide_drive_online *was, tide_error *err)
{
    struct tide_onedrive_answer live = {.value = NULL};
    tide_status rc = read_item(act, was->id, &live, err);
    if (rc == TIDE_OK)
        rc = check_delete(act, was, &live.item, err);
    if (rc == TIDE_OK && act->still_absent != NULL)
        rc = act->still_absent(act->arg, err);
    if (rc == TIDE_OK)
        rc =
            tide_onedrive_delete(act->onedrive, act->job, act->drive, was->id, live.item.etag, err);
    if (is_doubtful(rc) && read_item(act, was->id, &live, NULL) == TIDE_GONE)
        rc = TIDE_OK;
    tide_onedrive_answer_done(&live);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}

/* ---- here ---- */

static bool identity_same(const struct tide_entry *a, const struct tide_entry *b)
{
    return a->kind == b->kind && a->dev == b->dev && a->inode == b->inode &&
           a->birth_ns == b->birth_ns;
}

tide_status tide_drive_mkdir_local(const struct tide_drive_act *act, tide_text folder,
                                   tide_text name, struct tide_entry *entry_out, tide_error *err)
{
    int dir = -1;
    struct tide_entry entry;
    TIDE_TRY(tide_drive_gate_enter(act, folder, &dir, err));
    tide_status rc = tide_folder_make(dir, name, err);
    if (rc == TIDE_OK || rc == TIDE_EXISTS)
        rc = tide_folder_look(dir, name, &entry, err);
    tide_folder_close(dir);
    if (rc != TIDE_OK)
        return tide_drive_gate_disk(rc, err);
    if (entry.kind != TIDE_ENTRY_FOLDER)
        return tide_error_set(err, TIDE_SUPERSEDED, "%.*s: the name is taken by now",
                              (int)name.bytes, name.data);
    *entry_out = entry;
    return TIDE_OK;
}

/* The source is there as planned, or the target is it already. */
static tide_status move_from_to(int from, const struct tide_drive_here *was, int to, tide_text name,
                                struct tide_entry *entry_out, tide_error *err)
{
    struct tide_entry is;
    tide_status rc = tide_folder_look(from, was->name, &is, err);
    if (rc == TIDE_NOT_FOUND && tide_folder_look(to, name, &is, NULL) == TIDE_OK &&
        identity_same(&is, &was->entry)) {
        *entry_out = is;
        return TIDE_OK;
    }
    TIDE_TRY(tide_drive_gate_disk(rc, err));
    const bool folder = was->entry.kind == TIDE_ENTRY_FOLDER;
    if (folder ? !identity_same(&is, &was->entry) : !tide_entry_same(&is, &was->entry))
        return tide_error_set(err, TIDE_SUPERSEDED, "%.*s changed after it was looked at",
                              (int)was->name.bytes, was->name.data);
    TIDE_TRY(tide_drive_gate_disk(tide_folder_move(from, was->name, to, name, err), err));
    return tide_drive_gate_disk(tide_folder_look(to, name, entry_out, err), err);
}

tide_status tide_drive_move_local(const struct tide_drive_act *act,
                                  const struct tide_drive_here *was, tide_text folder,
                                  tide_text name, struct tide_entry *entry_out, tide_error *err)
{
    int from = -1, to = -1;
    TIDE_TRY(tide_drive_gate_enter(act, was->folder, &from, err));
    tide_status rc = tide_drive_gate_enter(act, folder, &to, err);
    if (rc == TIDE_OK)
        rc = move_from_to(from, was, to, name, entry_out, err);
    tide_folder_close(to);
    tide_folder_close(from);
    return rc;
}

/* S4: its bytes are read again, whatever its stamp says. */
static tide_status delete_file(const struct tide_drive_act *act, int dir,
                               const struct tide_drive_here *was,
                               const struct tide_drive_content *baseline, tide_error *err)
{
    struct tide_drive_content content;
    struct tide_entry entry;
    const struct tide_drive_trash trash = {.root = act->root,
                                           .path = act->path,
                                           .desktop = act->desktop,
                                           .now_unix_ms = act->now_unix_ms};
    TIDE_TRY(tide_drive_hash_file(dir, was->name, &content, &entry, err));
    if (!baseline->has_strong || content.bytes != baseline->bytes ||
        memcmp(content.strong, baseline->strong, sizeof content.strong) != 0)
        return tide_error_set(err, TIDE_SUPERSEDED, "%.*s changed since it was synced",
                              (int)was->name.bytes, was->name.data);
    return tide_drive_trash_file(&trash, dir, was->folder, was->name, &entry, err);
}

tide_status tide_drive_delete_local(const struct tide_drive_act *act,
                                    const struct tide_drive_here *was,
                                    const struct tide_drive_content *baseline, tide_error *err)
{
    int dir = -1;
    /* That its folder is missing proves nothing (S13): that is for the next scan. */
    TIDE_TRY(tide_drive_gate_enter(act, was->folder, &dir, err));
    const tide_status rc = was->entry.kind == TIDE_ENTRY_FOLDER
                               ? tide_folder_remove(dir, was->name, &was->entry, err)
                               : delete_file(act, dir, was, baseline, err);
    tide_folder_close(dir);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : tide_drive_gate_disk(rc, err);
}
