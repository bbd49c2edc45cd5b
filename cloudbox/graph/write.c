/* write.c - making folders, changing, moving and removing items, and putting files in place. */
#include "base/clocktext.h"
#include "cloudbox/graph/inside.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- parts of requests ---- */

static bool read_time(struct box_call *call, const json_t *info, const char *name, uint64_t *ms_out)
{
    const json_t *value = json_object_get(info, name);
    uint64_t ms = 0;
    if (value == NULL || json_is_null(value))
        return true;
    tide_text text = {json_string_value(value), json_string_length(value)};
    char room[32];
    /* More digits than we have: clients send up to seven. */
    if (text.data != NULL && text.bytes > 24 && text.bytes < sizeof room &&
        text.data[text.bytes - 1] == 'Z') {
        snprintf(room, sizeof room, "%.23sZ", text.data);
        text = tide_text_of(room);
    }
    if (text.data == NULL || !tide_time_parse(text, &ms) || ms == 0) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "%s is not a time.", name);
        return false;
    }
    *ms_out = ms;
    return true;
}

bool box_graph_times(struct box_call *call, const json_t *body, struct box_file_times *times_out)
{
    const json_t *info = json_object_get(body, "fileSystemInfo");
    *times_out = (struct box_file_times){0};
    return read_time(call, info, "createdDateTime", &times_out->made_ms) &&
           read_time(call, info, "lastModifiedDateTime", &times_out->changed_ms);
}

bool box_graph_fits(struct box_call *call, const box_drive *drive, uint64_t more, uint64_t less)
{
    const uint64_t used = box_drive_used(drive) - less;
    const uint64_t total = box_drive_spec(drive)->total_bytes;
    if (more > BOX_DRIVE_FILE_BYTES) {
        box_graph_fail(call, 413, "invalidRequest", "maxFileSizeExceeded",
                       "The file is too large.");
        return false;
    }
    if (more == 0 || (used <= total && more <= total - used))
        return true;
    box_graph_fail(call, 507, "quotaLimitReached", NULL, "Insufficient Space Available");
    return false;
}

static void fail_taken(struct box_call *call)
{
    box_graph_fail(call, 409, "nameAlreadyExists", NULL,
                   "An item with the same name already exists under the parent");
}

/* A name of the body; false: answered. */
static bool read_name(struct box_call *call, const json_t *body, tide_text *name_out)
{
    const json_t *value = json_object_get(body, "name");
    *name_out = (tide_text){json_string_value(value), json_string_length(value)};
    if (value == NULL || json_is_string(value))
        return true;
    box_graph_fail(call, 400, "invalidRequest", NULL, "The name must be a string.");
    return false;
}

/* ---- folders ---- */

static void add_folder(struct box_call *call, const struct box_spot *place, const json_t *body,
                       tide_text name)
{
    box_conflict conflict;
    struct box_file_times times;
    if (!box_graph_conflict(call, body, BOX_CONFLICT_FAIL, &conflict) ||
        !box_graph_times(call, body, &times) ||
        !box_graph_name(call, place->drive, place->slot, name))
        return;
    const uint32_t there = box_drive_child(place->drive, place->slot, name);
    if (there != BOX_ITEM_NONE && conflict == BOX_CONFLICT_RENAME) {
        name = box_graph_free_name(call, place->drive, place->slot, name);
    } else if (there != BOX_ITEM_NONE) {
        /* "replace" keeps a folder that is there. */
        if (conflict == BOX_CONFLICT_REPLACE && box_drive_at(place->drive, there)->folder)
            box_item_reply(call, place->drive, there, 200);
        else
            fail_taken(call);
        return;
    }
    const uint32_t slot = box_drive_add(place->drive, place->slot, name, NULL, times, call->now_ms);
    box_item_reply(call, place->drive, slot, 201);
}

void box_graph_add(struct box_call *call)
{
    struct box_spot place;
    tide_text name;
    if (!box_graph_item(call, &place))
        return;
    json_auto_t *body = box_call_body(call);
    if (body == NULL || !read_name(call, body, &name))
        return;
    if (!box_drive_at(place.drive, place.slot)->folder)
        box_graph_fail(call, 400, "invalidRequest", NULL, "The item is not a folder.");
    else if (!json_is_object(json_object_get(body, "folder")))
        box_graph_fail(call, 400, "invalidRequest", NULL,
                       "A new item must have a folder facet; files are uploaded.");
    else
        add_folder(call, &place, body, name);
}

/* ---- changing ---- */

/* Whether an item may be called `name` in `parent`.  false: answered. */
static bool can_move(struct box_call *call, const struct box_spot *place, uint32_t parent,
                     tide_text *name, box_conflict conflict)
{
    if (place->slot == BOX_ITEM_ROOT) {
        box_graph_fail(call, 403, "accessDenied", NULL, "The root cannot be changed.");
        return false;
    }
    if (box_drive_is_below(place->drive, parent, place->slot)) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "A folder cannot be moved into itself.");
        return false;
    }
    if (!box_graph_name(call, place->drive, parent, *name))
        return false;
    const uint32_t there = box_drive_child(place->drive, parent, *name);
    if (there == BOX_ITEM_NONE || there == place->slot)
        return true;
    if (conflict == BOX_CONFLICT_RENAME) {
        *name = box_graph_free_name(call, place->drive, parent, *name);
        return true;
    }
    if (conflict == BOX_CONFLICT_REPLACE && !box_drive_at(place->drive, there)->folder) {
        box_graph_judge_delete(call, place->drive, there);
        box_drive_remove(place->drive, there, call->now_ms);
        return true;
    }
    fail_taken(call);
    return false;
}

static bool move(struct box_call *call, const struct box_spot *place, const json_t *body)
{
    const json_t *reference = json_object_get(body, "parentReference");
    uint32_t parent = place->parent;
    tide_text name;
    box_conflict conflict;
    char room[BOX_NAME_BYTES_MAX + 1];
    if (!read_name(call, body, &name) ||
        !box_graph_conflict(call, body, BOX_CONFLICT_FAIL, &conflict) ||
        (reference != NULL && !box_graph_reference(call, place->drive, reference, &parent)))
        return false;
    if (name.data == NULL && reference == NULL)
        return true;
    if (name.data == NULL)
        name = box_drive_name(place->drive, place->slot, room);
    if (!can_move(call, place, parent, &name, conflict))
        return false;
    box_drive_move(place->drive, place->slot, parent, name, call->now_ms);
    return true;
}

void box_graph_update(struct box_call *call)
{
    struct box_spot place;
    struct box_file_times times;
    if (!box_graph_item(call, &place) || !box_graph_conditions(call, place.drive, place.slot))
        return;
    json_auto_t *body = box_call_body(call);
    if (body == NULL || !box_graph_times(call, body, &times) || !move(call, &place, body))
        return;
    if (times.made_ms != 0 || times.changed_ms != 0)
        box_drive_touch(place.drive, place.slot, times, call->now_ms);
    box_item_reply(call, place.drive, place.slot, 200);
}

void box_graph_remove(struct box_call *call)
{
    struct box_spot place;
    if (!box_graph_item(call, &place) || !box_graph_conditions(call, place.drive, place.slot))
        return;
    if (place.slot == BOX_ITEM_ROOT) {
        box_graph_fail(call, 403, "accessDenied", NULL, "The root cannot be deleted.");
        return;
    }
    box_graph_judge_delete(call, place.drive, place.slot);
    box_drive_remove(place.drive, place.slot, call->now_ms);
    box_call_reply_empty(call);
}

/* ---- files ---- */

/* On request the service changes what was uploaded, as it does with documents into which it writes
 * properties: the answer has the client's version, delta the other. */
static void rewrite(struct box_call *call, box_drive *drive, uint32_t slot)
{
    const struct box_item *item = box_drive_at(drive, slot);
    if (!box_faults_strikes(box_cloud_faults(call->cloud), call, "rewrite"))
        return;
    const struct box_content content =
        box_content_made(item->content.bytes + slot, item->content.bytes + 100);
    const struct box_file_times times = {.changed_ms = item->file_changed_ms};
    box_drive_write(drive, slot, &content, times, call->now_ms);
}

static void put_new(struct box_call *call, const struct box_spot *place, tide_text name,
                    const struct box_content *content, struct box_file_times times)
{
    if (!box_graph_name(call, place->drive, place->parent, name) ||
        !box_graph_fits(call, place->drive, content->bytes, 0))
        return;
    const uint32_t slot =
        box_drive_add(place->drive, place->parent, name, content, times, call->now_ms);
    box_item_reply(call, place->drive, slot, 201);
    rewrite(call, place->drive, slot);
}

void box_graph_put(struct box_call *call, const struct box_spot *place,
                   const struct box_content *content, struct box_file_times times,
                   box_conflict conflict, bool checked)
{
    if (place->slot == BOX_ITEM_NONE) {
        put_new(call, place, place->name, content, times);
        return;
    }
    const struct box_item *item = box_drive_at(place->drive, place->slot);
    /* An item that was addressed by its id is meant, whatever its name. */
    if (place->name.data != NULL && conflict == BOX_CONFLICT_RENAME) {
        put_new(call, place, box_graph_free_name(call, place->drive, place->parent, place->name),
                content, times);
    } else if (item->folder || (place->name.data != NULL && conflict == BOX_CONFLICT_FAIL)) {
        fail_taken(call);
    } else if (box_graph_fits(call, place->drive, content->bytes, item->content.bytes)) {
        box_graph_judge_overwrite(call, place->drive, place->slot, checked);
        box_drive_write(place->drive, place->slot, content, times, call->now_ms);
        box_item_reply(call, place->drive, place->slot, 200);
        rewrite(call, place->drive, place->slot);
    }
}
