/* copy.c - copies within a drive.  The service answers 202 with the address of a monitor; ours has
 * copied by then, and the monitor says so a second later. */
#include "cloudbox/graph/inside.h"

#include <stdio.h>

enum { COPY_MS = 1000, MONITOR_LIFE_MS = 24 * 3600 * 1000 };

/* Where the copy goes, and how it is called.  false: answered. */
static bool read_place(struct box_call *call, const struct box_spot *spot, const json_t *body,
                       uint32_t *parent_out, tide_text *name_out, char room[BOX_NAME_BYTES_MAX + 1])
{
    const json_t *reference = json_object_get(body, "parentReference");
    const json_t *name = json_object_get(body, "name");
    *parent_out = spot->parent;
    *name_out = json_is_string(name)
                    ? (tide_text){json_string_value(name), json_string_length(name)}
                    : box_drive_name(spot->drive, spot->slot, room);
    if (reference != NULL && !box_graph_reference(call, spot->drive, reference, parent_out))
        return false;
    if (spot->slot == BOX_ITEM_ROOT || box_drive_is_below(spot->drive, *parent_out, spot->slot)) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "A folder cannot be copied into itself.");
        return false;
    }
    return box_graph_name(call, spot->drive, *parent_out, *name_out);
}

void box_graph_copy(struct box_call *call)
{
    struct box_spot spot;
    uint32_t parent = BOX_ITEM_NONE, made = BOX_ITEM_NONE;
    tide_text name;
    box_conflict conflict;
    char room[BOX_NAME_BYTES_MAX + 1];
    if (!box_graph_item(call, &spot))
        return;
    json_auto_t *body = box_call_body(call);
    if (body == NULL || !read_place(call, &spot, body, &parent, &name, room) ||
        !box_graph_conflict(call, body, BOX_CONFLICT_FAIL, &conflict) ||
        !box_graph_fits(call, spot.drive, box_drive_at(spot.drive, spot.slot)->content.bytes, 0))
        return;
    const bool taken = box_drive_child(spot.drive, parent, name) != BOX_ITEM_NONE;
    if (taken && conflict == BOX_CONFLICT_RENAME)
        name = box_graph_free_name(call, spot.drive, parent, name);
    if (!taken || conflict == BOX_CONFLICT_RENAME)
        made = box_drive_copy(spot.drive, spot.slot, parent, name, call->now_ms);
    tide_auto_buf url = tide_buf_heap(BOX_TARGET_BYTES_MAX);
    box_graph_pass_url(call, "monitor", made, call->now_ms + MONITOR_LIFE_MS, &url);
    box_answer_clear(call->answer);
    call->answer->status = 202;
    box_answer_header(call->answer, "Location", tide_buf_cstr(&url));
}

void box_graph_monitor(struct box_call *call)
{
    uint32_t slot = BOX_ITEM_NONE;
    uint64_t until_ms = 0;
    if (call->user == NULL || !box_graph_pass_read(call, "monitor", &slot, &until_ms) ||
        call->now_ms >= until_ms) {
        box_graph_missing(call);
        return;
    }
    if (call->now_ms < until_ms - MONITOR_LIFE_MS + COPY_MS) {
        box_answer_json(call->answer, 202,
                        json_pack("{s:s, s:s, s:f}", "operation", "itemCopy", "status",
                                  "inProgress", "percentageComplete", 50.0),
                        false);
    } else if (slot == BOX_ITEM_NONE) {
        box_answer_json(call->answer, 200,
                        json_pack("{s:s, s:s, s:{s:s, s:s}}", "operation", "itemCopy", "status",
                                  "failed", "error", "code", "nameAlreadyExists", "message",
                                  "Name already exists"),
                        false);
    } else {
        char id[BOX_ITEM_ID_BYTES];
        box_drive_id(box_user_drive(call->user), slot, id);
        box_answer_json(call->answer, 200,
                        json_pack("{s:s, s:s, s:f, s:s}", "operation", "itemCopy", "status",
                                  "completed", "percentageComplete", 100.0, "resourceId", id),
                        false);
    }
}
