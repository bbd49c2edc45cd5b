/* conditions.c - eTags in requests, what happens to a name that is taken, and what the referee
 * thinks of changes made without looking. */
#include "base/check.h"
#include "cloudbox/graph/inside.h"

#include <stdio.h>

/* ---- If-Match, If-None-Match ---- */

/* W/"tag", "tag" or the bare tag. */
static tide_text bare(tide_text tag)
{
    tag = box_trim(tag, BOX_BLANKS);
    if (box_starts(tag, "W/"))
        tag = (tide_text){tag.data + 2, tag.bytes - 2};
    return box_trim(tag, "\"");
}

static bool one_fits(tide_text tag, const box_drive *drive, uint32_t slot)
{
    char etag[BOX_TAG_BYTES], ctag[BOX_TAG_BYTES];
    if (tide_text_equal(tag, TIDE_TEXT("*")))
        return true;
    box_item_etag(drive, slot, etag);
    box_item_ctag(drive, slot, ctag);
    return tide_text_equal(tag, tide_text_of(etag)) || tide_text_equal(tag, tide_text_of(ctag));
}

/* Our tags have a comma inside, so a list is split at a comma outside of quotes. */
bool box_graph_tag_fits(tide_text tags, const box_drive *drive, uint32_t slot)
{
    bool quoted = false;
    size_t start = 0;
    if (slot == BOX_ITEM_NONE)
        return false;
    if (one_fits(bare(tags), drive, slot))
        return true;
    for (size_t i = 0; i <= tags.bytes; i++) {
        if (i < tags.bytes && tags.data[i] == '"')
            quoted = !quoted;
        if (i < tags.bytes && (quoted || tags.data[i] != ','))
            continue;
        if (one_fits(bare((tide_text){tags.data + start, i - start}), drive, slot))
            return true;
        start = i + 1;
    }
    return false;
}

bool box_graph_conditions(struct box_call *call, const box_drive *drive, uint32_t slot)
{
    const tide_text match = box_request_header(call->request, "If-Match");
    const tide_text none = box_request_header(call->request, "If-None-Match");
    if (none.data != NULL && box_graph_tag_fits(none, drive, slot)) {
        if (call->request->verb == BOX_GET) {
            box_answer_clear(call->answer);
            call->answer->status = 304;
            return false;
        }
    } else if (match.data == NULL || box_graph_tag_fits(match, drive, slot)) {
        return true;
    }
    box_graph_fail(call, 412, "resourceModified", "entityTagDoesNotMatch",
                   "ETag does not match current item's value");
    return false;
}

/* ---- the referee ---- */

static tide_text id_text(const struct box_call *call, const box_drive *drive, uint32_t slot)
{
    char *id = tide_arena_take(call->scratch, BOX_ITEM_ID_BYTES);
    TIDE_ASSERT(id != NULL);
    box_drive_id(drive, slot, id);
    return tide_text_of(id);
}

void box_graph_judge_overwrite(const struct box_call *call, const box_drive *drive, uint32_t slot,
                               bool checked)
{
    if (!checked)
        box_call_violation(call, "overwrite-blind", id_text(call, drive, slot));
}

void box_graph_judge_delete(const struct box_call *call, const box_drive *drive, uint32_t slot)
{
    if (!box_drive_at(drive, slot)->shown)
        box_call_violation(call, "delete-unseen", id_text(call, drive, slot));
}

/* ---- conflicts ---- */

bool box_graph_conflict(struct box_call *call, const json_t *body, box_conflict fallback,
                        box_conflict *conflict_out)
{
    static const char key[] = "@microsoft.graph.conflictBehavior";
    static const char *const words[] = {"fail", "replace", "rename"};
    tide_text text = box_call_param(call, key);
    const char *in_body = json_string_value(json_object_get(body, key));
    if (text.data == NULL && in_body != NULL)
        text = tide_text_of(in_body);
    *conflict_out = fallback;
    if (text.data == NULL)
        return true;
    for (size_t i = 0; i < 3; i++)
        if (box_is(text, words[i])) {
            *conflict_out = (box_conflict)i;
            return true;
        }
    box_graph_fail(call, 400, "invalidRequest", NULL, "Unknown conflict behavior: %.*s",
                   (int)(text.bytes < 100 ? text.bytes : 100), text.data);
    return false;
}

/* Ends: a folder has fewer items than numbers.  A name that becomes too long is cut before its
 * number. */
tide_text box_graph_free_name(const struct box_call *call, const box_drive *drive, uint32_t parent,
                              tide_text name)
{
    enum { ROOM = BOX_NAME_BYTES_MAX + 32 };
    char *room = tide_arena_take(call->scratch, ROOM);
    TIDE_ASSERT(room != NULL);
    size_t stem = name.bytes;
    for (size_t i = name.bytes; i > 1; i--)
        if (name.data[i - 1] == '.') {
            stem = i - 1;
            break;
        }
    const tide_text ending = {name.data + stem, name.bytes - stem};
    while (stem > 1 && box_name_units(name) + 12 > BOX_NAME_UNITS_MAX &&
           stem + ending.bytes + 12 > BOX_NAME_UNITS_MAX)
        stem--;
    while (stem > 1 && ((unsigned char)name.data[stem] & 0xc0) == 0x80)
        stem--; /* whole characters */
    for (unsigned number = 1;; number++) {
        const int bytes = snprintf(room, ROOM, "%.*s %u%.*s", (int)stem, name.data, number,
                                   (int)ending.bytes, ending.data);
        const tide_text tried = {room, (size_t)bytes};
        if (box_drive_child(drive, parent, tried) == BOX_ITEM_NONE)
            return tried;
    }
}
