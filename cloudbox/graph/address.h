/* address.h - what a Graph path names: a drive, an item by id or by path, and what is asked of it.
 *
 *   /v1.0/me/drive                               the drive
 *   /v1.0/drives/{id}/items/{id}/children        an item by id
 *   /v1.0/me/drive/root:/a/b.txt:/content        by path from the root
 *   /v1.0/me/drive/items/{id}:/b.txt:/content    by path from an item
 *   /v1.0/me/drive/root/delta(token='T')         a function with its argument
 *
 * Pure: it reads the text and looks nothing up. */
#ifndef BOX_GRAPH_ADDRESS_H
#define BOX_GRAPH_ADDRESS_H

#include "cloudbox/gate/http.h"

typedef enum box_address_kind {
    BOX_ADDRESS_OTHER,  /* below /v1.0, and nothing that is known here */
    BOX_ADDRESS_ME,     /* /me */
    BOX_ADDRESS_DRIVES, /* /me/drives, /drives */
    BOX_ADDRESS_DRIVE,
    BOX_ADDRESS_ITEM,
    BOX_ADDRESS_SUBSCRIPTIONS,
    BOX_ADDRESS_SUBSCRIPTION, /* /subscriptions/{more} */
    BOX_ADDRESS_PASS,         /* /_files/{what}/{more}: carries its own permission */
} box_address_kind;

struct box_address {
    box_address_kind kind;
    tide_text user;  /* of /users/{user}/...; none: me */
    tide_text drive; /* of /drives/{drive}; none: the user's own */
    tide_text id;    /* of the item where the path begins; none: the root */
    tide_text path;  /* from there, "a/b.txt"; none: the item itself */
    tide_text what;  /* "children", "content", ...; none: the item */
    tide_text more;  /* a further segment, for subscriptions and permissions */
    tide_text token; /* of delta(token='...') */
};

/* false: not an address of Graph.  Texts are in the target or the arena. */
bool box_address_parse(const struct box_target *target, tide_arena *arena,
                       struct box_address *address_out);

#endif
