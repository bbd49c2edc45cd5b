/* read.c - an item, and the items of a folder page by page. */
#include "base/encode.h"
#include "cloudbox/graph/inside.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAGE_ITEMS = 200, PAGE_ITEMS_MAX = 1000 };

void box_graph_get(struct box_call *call)
{
    struct box_spot place;
    if (!box_graph_item(call, &place) || !box_graph_conditions(call, place.drive, place.slot))
        return;
    box_item_reply(call, place.drive, place.slot, 200);
}

/* Where a page begins: "place.slot" of the last item before it. */
static bool read_token(struct box_call *call, uint32_t *place_out, uint32_t *hint_out)
{
    const tide_text token = box_call_param(call, "$skiptoken");
    const char *dot = token.bytes == 0 ? NULL : memchr(token.data, '.', token.bytes);
    uint64_t place = 0, hint = 0;
    *place_out = 0;
    *hint_out = BOX_ITEM_NONE;
    if (token.data == NULL)
        return true;
    const size_t bytes = dot == NULL ? token.bytes : (size_t)(dot - token.data);
    if (dot == NULL || !tide_text_to_u64((tide_text){token.data, bytes}, &place) ||
        !tide_text_to_u64((tide_text){dot + 1, token.bytes - bytes - 1}, &hint) ||
        place > UINT32_MAX || hint > UINT32_MAX) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "The $skiptoken is not valid.");
        return false;
    }
    *place_out = (uint32_t)place;
    *hint_out = (uint32_t)hint;
    return true;
}

static void carry(const struct box_call *call, const char *name, tide_buf *out)
{
    const tide_text value = box_call_param(call, name);
    if (value.data == NULL)
        return;
    box_print(out, "&%s=", name);
    (void)tide_percent_add(out, value, TIDE_URL_UNRESERVED ",");
}

void box_graph_link(const struct box_call *call, const char *name, const char *token, tide_buf *out)
{
    tide_auto_buf link = tide_buf_heap(4 * BOX_TARGET_BYTES_MAX);
    box_add(&link, call->request->origin.data, call->request->origin.bytes);
    box_add(&link, call->target.path.data, call->target.path.bytes);
    box_print(&link, "?%s", token);
    carry(call, "$top", &link);
    carry(call, "$select", &link);
    carry(call, "select", &link);
    box_print(out, ",\"%s\":", name);
    box_add_json_text(out, tide_buf_text(&link));
}

void box_graph_children(struct box_call *call)
{
    struct box_spot place;
    uint64_t top = 0;
    uint32_t at = 0, hint = 0;
    if (!box_graph_item(call, &place) || !read_token(call, &at, &hint) ||
        !box_call_number(call, "$top", 1, PAGE_ITEMS_MAX, PAGE_ITEMS, &top))
        return;
    if (!box_drive_at(place.drive, place.slot)->folder) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "The item is not a folder.");
        return;
    }
    tide_buf *out = &call->answer->body;
    const uint32_t select = box_item_select(call);
    uint32_t slot = box_drive_after(place.drive, place.slot, at, hint);
    uint32_t last = slot;
    box_answer_clear(call->answer);
    snprintf(call->answer->type, sizeof call->answer->type, "application/json; charset=utf-8");
    box_add_cstr(out, "{\"value\":[");
    for (uint64_t i = 0; i < top && slot != BOX_ITEM_NONE; i++) {
        box_add_cstr(out, i > 0 ? "," : "");
        box_item_write(call, place.drive, slot, select, 0, out);
        box_drive_show(place.drive, slot);
        last = slot;
        slot = box_drive_at(place.drive, slot)->next;
    }
    box_add_cstr(out, "]");
    if (slot != BOX_ITEM_NONE) {
        char token[64];
        snprintf(token, sizeof token, "$skiptoken=%" PRIu32 ".%" PRIu32,
                 box_drive_at(place.drive, last)->place, last);
        box_graph_link(call, "@odata.nextLink", token, out);
    }
    box_add_cstr(out, "}");
}
