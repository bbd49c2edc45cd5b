/* free_space.h - room on a disk, looked at before and while much is written.
 *
 * A disk that is full harms more than the one who filled it: ledgers, other programs,
 * the system.  So whoever writes much stops while `disk.free_min` bytes are left, with
 * nothing lost, and says so.  Asking the system costs little but not nothing: it is
 * asked once for every TIDE_ROOM_STEP_BYTES that are spent. */
#ifndef TIDE_MAIL_ROOM_H
#define TIDE_MAIL_ROOM_H

#include "world/world.h"

enum { TIDE_ROOM_STEP_BYTES = 16 << 20 };

struct tide_room {
    tide_world *world;
    const char *path; /* borrowed */
    uint64_t free_min_bytes;
    uint64_t spent_bytes; /* since it was last asked */
};
/* TIDE_DISK_FULL with what is missing.  free_min_bytes 0: never looked at. */
tide_status tide_room_check(tide_world *world, const char *path, uint64_t free_min_bytes,
                            tide_error *err);
/* The first look. */
tide_status tide_room_open(struct tide_room *room, tide_world *world, const char *path,
                           uint64_t free_min_bytes, tide_error *err);
/* Before so many bytes are written. */
tide_status tide_room_spend(struct tide_room *room, uint64_t bytes, tide_error *err);

#endif
