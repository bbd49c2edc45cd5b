/* place.c - from an address to an item of a drive. */
#include "cloudbox/graph/inside.h"

#include <stdio.h>

/* ---- drives ---- */

static struct box_user *user_with(const struct box_call *call, tide_text drive)
{
    struct box_user *user = NULL;
    for (size_t i = 0; (user = box_cloud_user_at(call->cloud, i)) != NULL; i++)
        if (box_drive_is(box_user_drive(user), drive))
            return user;
    return NULL;
}

/* Whose drive it is; NULL: answered. */
static struct box_user *owner_of(struct box_call *call, const struct box_address *address)
{
    if (address->user.data != NULL && !box_is(address->user, call->user->email) &&
        !box_is(address->user, "me")) {
        box_graph_fail(call, 403, "accessDenied", NULL, "Access denied");
        return NULL;
    }
    struct box_user *owner =
        address->drive.data == NULL ? call->user : user_with(call, address->drive);
    if (owner == NULL)
        box_graph_missing(call);
    return owner;
}

/* Whether the caller has a shortcut to what is at the place, or to a folder above it, and may do to it what
 * is asked. */
static bool is_shared(const struct box_call *call, const struct box_spot *place)
{
    const box_drive *own = box_user_drive(call->user);
    const uint32_t inner = place->slot != BOX_ITEM_NONE ? place->slot : place->parent;
    const struct box_lead *lead = NULL;
    size_t cursor = 0;
    while ((lead = box_drive_lead_to(own, place->address.drive, &cursor)) != NULL) {
        const uint32_t top = box_drive_find(place->drive, tide_text_of(lead->item));
        if (top != BOX_ITEM_NONE && box_drive_is_below(place->drive, inner, top) &&
            (!lead->read_only || call->request->verb == BOX_GET))
            return true;
    }
    return false;
}

/* ---- items ---- */

/* Walks a path from `place->slot` on.  At its end nothing may be: then name and parent say where.
 * false: a folder on the way is missing. */
static bool walk(struct box_spot *place, tide_text path)
{
    while (path.bytes > 0) {
        const char *slash = memchr(path.data, '/', path.bytes);
        const size_t bytes = slash == NULL ? path.bytes : (size_t)(slash - path.data);
        const tide_text name = {path.data, bytes};
        const size_t step = slash == NULL ? bytes : bytes + 1;
        path = (tide_text){path.data + step, path.bytes - step};
        if (place->slot == BOX_ITEM_NONE || !box_drive_at(place->drive, place->slot)->folder)
            return false;
        place->parent = place->slot;
        place->name = name;
        place->slot = box_drive_child(place->drive, place->parent, name);
    }
    return true;
}

static bool begin(struct box_spot *place)
{
    place->slot = BOX_ITEM_ROOT;
    if (place->address.id.data != NULL)
        place->slot = box_drive_find(place->drive, place->address.id);
    if (place->slot == BOX_ITEM_NONE || box_drive_at(place->drive, place->slot)->gone)
        return false;
    place->parent = box_drive_at(place->drive, place->slot)->parent;
    return true;
}

bool box_graph_place(struct box_call *call, struct box_spot *place_out)
{
    struct box_spot *place = place_out;
    *place = (struct box_spot){.slot = BOX_ITEM_NONE, .parent = BOX_ITEM_NONE};
    (void)box_address_parse(&call->target, call->scratch, &place->address);
    struct box_user *owner = owner_of(call, &place->address);
    if (owner == NULL)
        return false;
    place->drive = box_user_drive(owner);
    if (!begin(place) || !walk(place, place->address.path)) {
        box_graph_missing(call);
        return false;
    }
    if (owner != call->user && !is_shared(call, place)) {
        box_graph_fail(call, 403, "accessDenied", NULL, "Access denied");
        return false;
    }
    /* What follows concerns the owner's drive: the record, and addresses that are given away. */
    call->user = owner;
    return true;
}

bool box_graph_item(struct box_call *call, struct box_spot *place_out)
{
    if (!box_graph_place(call, place_out))
        return false;
    if (place_out->slot != BOX_ITEM_NONE)
        return true;
    box_graph_missing(call);
    return false;
}

static bool find_reference(box_drive *drive, const json_t *reference, uint32_t *slot_out)
{
    const char *id = json_string_value(json_object_get(reference, "id"));
    const char *path = json_string_value(json_object_get(reference, "path"));
    struct box_spot place = {.drive = drive};
    if (id != NULL && strcmp(id, "root") != 0)
        place.address.id = tide_text_of(id);
    if (!begin(&place))
        return false;
    const char *colon = id != NULL || path == NULL ? NULL : strchr(path, ':');
    if (id == NULL && path == NULL)
        return false;
    if (colon != NULL && colon[1] == '/' && !walk(&place, tide_text_of(colon + 2)))
        return false;
    *slot_out = place.slot;
    return place.slot != BOX_ITEM_NONE;
}

bool box_graph_reference(struct box_call *call, box_drive *drive, const json_t *reference,
                         uint32_t *slot_out)
{
    const char *other = json_string_value(json_object_get(reference, "driveId"));
    if (other != NULL && !box_drive_is(drive, tide_text_of(other))) {
        box_graph_fail(call, 400, "invalidRequest", NULL,
                       "An item cannot be moved to another drive.");
        return false;
    }
    if (find_reference(drive, reference, slot_out) && box_drive_at(drive, *slot_out)->folder)
        return true;
    box_graph_missing(call);
    return false;
}

bool box_graph_name(struct box_call *call, const box_drive *drive, uint32_t parent, tide_text name)
{
    const char *wrong = box_name_wrong(name);
    char room[BOX_NAME_BYTES_MAX + 1];
    if (box_drive_at(drive, parent)->mark == BOX_MARK_SHORTCUT) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "The item is in another drive.");
        return false;
    }
    if (wrong != NULL) {
        box_graph_fail(call, 400, "invalidRequest", "invalidPath", "%s", wrong);
        return false;
    }
    if (box_drive_slots(drive) > BOX_ITEMS_MAX / 2) { /* a copy may still double them */
        box_graph_fail(call, 507, "quotaLimitReached", "childItemCountExceeded",
                       "There are too many items.");
        return false;
    }
    uint32_t units = box_name_units(name), depth = 1;
    for (uint32_t slot = parent; slot != BOX_ITEM_ROOT; slot = box_drive_at(drive, slot)->parent) {
        units += 1 + box_name_units(box_drive_name(drive, slot, room));
        depth++;
    }
    if (units > BOX_PATH_UNITS_MAX || depth >= BOX_ITEM_DEPTH_MAX) {
        box_graph_fail(call, 400, "invalidRequest",
                       depth >= BOX_ITEM_DEPTH_MAX ? "pathTooDeep" : "pathIsTooLong",
                       "The path is too long.");
        return false;
    }
    return true;
}
