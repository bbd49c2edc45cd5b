/* free_space.h - checks free disk space before and during large writes.
 *
 * A full disk harms more than its writer: ledgers, other programs, the system.  So a large
 * writer stops, with nothing lost and with an error, while `disk.free_min` bytes are still
 * free.  The system call is not free: it is made once per TIDE_ROOM_STEP_BYTES written. */
#ifndef TIDE_MAIL_ROOM_H
#define TIDE_MAIL_ROOM_H

#include "world/world.h"

enum { TIDE_ROOM_STEP_BYTES = 16 << 20 };

struct tide_room {
    tide_world *world;
    const char *path; /* borrowed */
    uint64_t free_min_bytes;
    uint64_t spent_bytes; /* since the last check */
};
/* TIDE_DISK_FULL says how much is missing. free_min_bytes 0: no check. */
tide_status tide_room_check(tide_world *world, const char *path, uint64_t free_min_bytes,
                            tide_error *err);
/* Starts with a first check. */
tide_status tide_room_open(struct tide_room *room, tide_world *world, const char *path,
                           uint64_t free_min_bytes, tide_error *err);
/* Call before writing `bytes`. */
tide_status tide_room_spend(struct tide_room *room, uint64_t bytes, tide_error *err);

#endif
