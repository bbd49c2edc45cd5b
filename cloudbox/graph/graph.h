/* graph.h - Microsoft Graph's drives: OneDrive as clients see it.
 *
 * A drive for each user (cloudbox/drive), served by id and by path.  Addresses that carry
 * their own permission (downloads, upload sessions, monitors) are below /_files and take no
 * sign-in.
 *
 * Stricter than the service: folders of a path are not made by an upload into them, names
 * are checked by all rules that were ever published, and every drive has the limits of business
 * accounts.
 *
 * Invariants:
 *   BGPH1  an upload session changes nothing before its last byte has arrived.
 *   BGPH2  a delta round that is followed to its end and applied (last state wins) gives the tree
 *          that the drive had at the end, whatever happened in between.
 *   BGPH3  an answer about an item has the eTag that If-Match takes.
 */
#ifndef BOX_GRAPH_H
#define BOX_GRAPH_H

#include "cloudbox/drive/drive.h"
#include "cloudbox/gate/user.h"

extern const struct box_service box_graph;

box_drive *box_user_drive(const struct box_user *user);

#endif
