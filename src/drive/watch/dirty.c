#include "drive/watch/dirty.h"

#include "base/check.h"

enum { DRIVES_MAX = 1 << 16 };

struct drive {
    uint32_t number;
    bool watched;
    tide_drive_folders folders;
};

struct tide_drive_dirty {
    tide_world *world;
    tide_mem *mem;
    tide_lock *lock; /* of all below */
    struct drive *drives;
    size_t count, room;
};

tide_status tide_drive_dirty_new(tide_world *world, tide_mem *mem, tide_drive_dirty **dirty_out,
                                 tide_error *err)
{
    tide_drive_dirty *dirty = tide_mem_new(mem, sizeof *dirty);
    if (dirty == NULL || tide_lock_new(world, &dirty->lock) != TIDE_OK) {
        tide_mem_free(mem, dirty, sizeof *dirty);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the drives of this home");
    }
    dirty->world = world;
    dirty->mem = mem;
    *dirty_out = dirty;
    return TIDE_OK;
}

void tide_drive_dirty_free(tide_drive_dirty *dirty)
{
    if (dirty == NULL)
        return;
    for (size_t i = 0; i < dirty->count; i++)
        tide_drive_folders_done(&dirty->drives[i].folders);
    tide_mem_free(dirty->mem, dirty->drives, dirty->room * sizeof *dirty->drives);
    tide_lock_free(dirty->world, dirty->lock);
    tide_mem_free(dirty->mem, dirty, sizeof *dirty);
}

/* Under the lock.  A new one has everything to scan.  NULL: no memory; then it stays unknown, and
 * that is everything, too. */
static struct drive *find(tide_drive_dirty *dirty, uint32_t number)
{
    for (size_t i = 0; i < dirty->count; i++)
        if (dirty->drives[i].number == number)
            return &dirty->drives[i];
    if (!TIDE_GROW_IN(dirty->mem, dirty->drives, dirty->room, dirty->count + 1, DRIVES_MAX))
        return NULL;
    struct drive *drive = &dirty->drives[dirty->count++];
    *drive = (struct drive){.number = number};
    tide_drive_folders_init(&drive->folders, dirty->mem);
    tide_drive_folders_add_all(&drive->folders);
    return drive;
}

void tide_drive_dirty_watched(tide_drive_dirty *dirty, uint32_t number)
{
    tide_lock_take(dirty->world, dirty->lock);
    struct drive *drive = find(dirty, number);
    if (drive != NULL && !drive->watched)
        tide_drive_folders_add_all(&drive->folders);
    if (drive != NULL)
        drive->watched = true;
    tide_lock_drop(dirty->world, dirty->lock);
}

void tide_drive_dirty_unwatched(tide_drive_dirty *dirty, uint32_t number)
{
    tide_lock_take(dirty->world, dirty->lock);
    for (size_t i = 0; i < dirty->count; i++)
        if (dirty->drives[i].number == number)
            dirty->drives[i].watched = false;
    tide_lock_drop(dirty->world, dirty->lock);
}

void tide_drive_dirty_unwatch_all(tide_drive_dirty *dirty)
{
    tide_lock_take(dirty->world, dirty->lock);
    for (size_t i = 0; i < dirty->count; i++)
        dirty->drives[i].watched = false;
    tide_lock_drop(dirty->world, dirty->lock);
}

void tide_drive_dirty_add(tide_drive_dirty *dirty, uint32_t number,
                          const tide_drive_folders *folders)
{
    tide_lock_take(dirty->world, dirty->lock);
    struct drive *drive = find(dirty, number);
    if (drive != NULL)
        tide_drive_folders_join(&drive->folders, folders);
    tide_lock_drop(dirty->world, dirty->lock);
}

void tide_drive_dirty_take(tide_drive_dirty *dirty, uint32_t number, tide_drive_folders *folders)
{
    TIDE_ASSERT(!tide_drive_folders_any(folders));
    tide_lock_take(dirty->world, dirty->lock);
    struct drive *drive = find(dirty, number);
    if (drive == NULL || !drive->watched) {
        tide_drive_folders_add_all(folders);
    } else {
        const tide_drive_folders empty = *folders;
        *folders = drive->folders;
        drive->folders = empty;
    }
    tide_lock_drop(dirty->world, dirty->lock);
}
