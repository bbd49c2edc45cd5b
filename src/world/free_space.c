#include "world/free_space.h"

#include "base/clocktext.h"

tide_status tide_room_check(tide_world *world, const char *path, uint64_t free_min_bytes,
                            tide_error *err)
{
    uint64_t free_bytes = 0;
    if (free_min_bytes == 0)
        return TIDE_OK;
    TIDE_TRY(tide_disk_free(world, path, &free_bytes, err));
    if (free_bytes >= free_min_bytes)
        return TIDE_OK;
    char left[TIDE_SIZE_TEXT_BYTES];
    char wanted[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(free_bytes, left);
    tide_size_human(free_min_bytes, wanted);
    return tide_error_set(
        err, TIDE_DISK_FULL,
        "the disk of %.200s has %s free; %s are needed, including the reserve of disk.free_min",
        path, left, wanted);
}

tide_status tide_room_open(struct tide_room *room, tide_world *world, const char *path,
                           uint64_t free_min_bytes, tide_error *err)
{
    *room = (struct tide_room){.world = world, .path = path, .free_min_bytes = free_min_bytes};
    return tide_room_check(world, path, free_min_bytes, err);
}

tide_status tide_room_spend(struct tide_room *room, uint64_t bytes, tide_error *err)
{
    room->spent_bytes += bytes;
    if (room->spent_bytes < TIDE_ROOM_STEP_BYTES)
        return TIDE_OK;
    room->spent_bytes = 0;
    return tide_room_check(room->world, room->path, room->free_min_bytes, err);
}
