/* drives.c - who one is, and which drives there are. */
#include "cloudbox/graph/inside.h"

void box_graph_me(struct box_call *call)
{
    char id[BOX_ITEM_ID_BYTES];
    box_drive_own_id(box_user_drive(call->user), id);
    const char *email = call->user->email;
    box_call_reply(call, json_pack("{s:s, s:s, s:s, s:s}", "id", id, "displayName", email,
                                   "userPrincipalName", email, "mail", email));
}

static json_t *quota_json(const box_drive *drive)
{
    const uint64_t total = box_drive_spec(drive)->total_bytes, used = box_drive_used(drive);
    const uint64_t left = used < total ? total - used : 0;
    const char *state = left == 0            ? "exceeded"
                        : left < total / 100 ? "critical"
                        : left < total / 10  ? "nearing"
                                             : "normal";
    return json_pack("{s:I, s:I, s:I, s:I, s:s}", "total", (json_int_t)total, "used",
                     (json_int_t)used, "remaining", (json_int_t)left, "deleted", (json_int_t)0,
                     "state", state);
}

static json_t *drive_json(const struct box_call *call)
{
    const box_drive *drive = box_user_drive(call->user);
    char id[BOX_ITEM_ID_BYTES];
    box_drive_own_id(drive, id);
    const char *email = call->user->email;
    return json_pack("{s:s, s:s, s:s, s:{s:{s:s, s:s, s:s}}, s:o}", "id", id, "name", "OneDrive",
                     "driveType", box_drive_spec(drive)->business ? "business" : "personal",
                     "owner", "user", "displayName", email, "email", email, "id", id, "quota",
                     quota_json(drive));
}

void box_graph_drives(struct box_call *call)
{
    box_call_reply(call, json_pack("{s:[o]}", "value", drive_json(call)));
}

void box_graph_drive(struct box_call *call)
{
    struct box_spot place;
    if (box_graph_place(call, &place))
        box_call_reply(call, drive_json(call));
}
