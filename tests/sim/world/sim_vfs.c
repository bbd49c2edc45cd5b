/* SQLite's view of the simulated disk: a VFS with shared memory for WAL.
 *
 * The baton may change hands inside these functions.  SQLite holds no mutex of
 * the process then, only the connection's, and a connection is used by one
 * thread. */
#include "sim_disk_inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct sim_file {
    sqlite3_file base;
    struct sim_disk *disk;
    struct sim_inode *inode;
    char *path; /* NULL: a temporary file */
    uint32_t life;
    int level; /* SQLITE_LOCK_* */
    bool delete_on_close;
    bool sync_dir; /* at the next sync: its creation is not durable yet */
    struct sim_shm *shm;
    unsigned shm_shared; /* bits of slots */
    unsigned shm_exclusive;
};

/* A handle of a dead or an earlier life (SDSK4, SDSK5). */
static bool cut_off(const struct sim_file *file)
{
    return file->disk->sim->dead || file->life != file->disk->sim->life;
}

/* ---- file methods -------------------------------------------------------- */

static int file_unlock(sqlite3_file *base, int level);

static int file_shm_unmap(sqlite3_file *base, int delete_flag);

static int file_close(sqlite3_file *base)
{
    struct sim_file *file = (struct sim_file *)base;
    (void)file_unlock(base, SQLITE_LOCK_NONE);
    (void)file_shm_unmap(base, 0);
    if (file->delete_on_close && file->path != NULL && !cut_off(file))
        sim_disk_unlink(file->disk, file->path, false);
    sim_inode_drop(file->disk, file->inode);
    free(file->path);
    file->base.pMethods = NULL;
    return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *to, int count, sqlite3_int64 offset)
{
    struct sim_file *file = (struct sim_file *)base;
    const struct sim_content *seen = &file->inode->seen;
    if (cut_off(file))
        return SQLITE_IOERR_READ;
    size_t wanted = (size_t)count;
    size_t got = 0;
    if ((uint64_t)offset < seen->count)
        got = seen->count - (size_t)offset < wanted ? seen->count - (size_t)offset : wanted;
    if (got > 0)
        memcpy(to, seen->bytes + offset, got);
    if (got == wanted)
        return SQLITE_OK;
    memset((char *)to + got, 0, wanted - got); /* SQLite relies on it */
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *from, int count, sqlite3_int64 offset)
{
    struct sim_file *file = (struct sim_file *)base;
    sim_step(file->disk->sim, SIM_OP_WRITE, (uint64_t)offset, file->path);
    if (cut_off(file))
        return SQLITE_IOERR_WRITE;
    return sim_inode_write(file->disk, file->inode, file->path, from, (size_t)count,
                           (uint64_t)offset);
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct sim_file *file = (struct sim_file *)base;
    sim_step(file->disk->sim, SIM_OP_WRITE, (uint64_t)size, "truncate");
    if (cut_off(file))
        return SQLITE_IOERR_TRUNCATE;
    return sim_inode_truncate(file->disk, file->inode, (uint64_t)size);
}

static int file_sync(sqlite3_file *base, int flags)
{
    struct sim_file *file = (struct sim_file *)base;
    (void)flags;
    if (cut_off(file))
        return SQLITE_IOERR_FSYNC;
    int rc = sim_inode_sync(file->disk, file->inode, file->path);
    /* As on Unix: the first sync of a journal also syncs its directory, and so
     * makes removals before it durable, such as that of another journal. */
    if (rc == SQLITE_OK && file->sync_dir) {
        sim_disk_sync_dir(file->disk, file->path);
        file->sync_dir = false;
    }
    return rc;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size_out)
{
    struct sim_file *file = (struct sim_file *)base;
    if (cut_off(file))
        return SQLITE_IOERR_FSTAT;
    *size_out = (sqlite3_int64)file->inode->seen.count;
    return SQLITE_OK;
}

static int lock_exclusively(struct sim_file *file)
{
    struct sim_inode *inode = file->inode;
    if (inode->reserved != NULL && inode->reserved != file)
        return SQLITE_BUSY;
    if (inode->pending != NULL && inode->pending != file)
        return SQLITE_BUSY;
    inode->pending = file; /* no new readers from here on */
    file->level = SQLITE_LOCK_PENDING;
    if (inode->shared_count > 1)
        return SQLITE_BUSY;
    inode->exclusive = file;
    file->level = SQLITE_LOCK_EXCLUSIVE;
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int level)
{
    struct sim_file *file = (struct sim_file *)base;
    struct sim_inode *inode = file->inode;
    sim_step(file->disk->sim, SIM_OP_SQL_LOCK, (uint64_t)level, file->path);
    if (cut_off(file))
        return SQLITE_IOERR_LOCK;
    if (file->level >= level)
        return SQLITE_OK;
    switch (level) {
    case SQLITE_LOCK_SHARED:
        if (inode->pending != NULL || inode->exclusive != NULL)
            return SQLITE_BUSY;
        inode->shared_count++;
        file->level = SQLITE_LOCK_SHARED;
        return SQLITE_OK;
    case SQLITE_LOCK_RESERVED:
        if (inode->reserved != NULL || inode->pending != NULL)
            return SQLITE_BUSY;
        inode->reserved = file;
        file->level = SQLITE_LOCK_RESERVED;
        return SQLITE_OK;
    default:
        return lock_exclusively(file);
    }
}

static int file_unlock(sqlite3_file *base, int level)
{
    struct sim_file *file = (struct sim_file *)base;
    struct sim_inode *inode = file->inode;
    int old = file->level;
    if (old <= level)
        return SQLITE_OK;
    file->level = level;
    if (file->life != file->disk->sim->life)
        return SQLITE_OK; /* its locks went with its life */
    if (inode->reserved == file)
        inode->reserved = NULL;
    if (inode->pending == file)
        inode->pending = NULL;
    if (inode->exclusive == file)
        inode->exclusive = NULL;
    if (level == SQLITE_LOCK_NONE && old >= SQLITE_LOCK_SHARED) {
        TIDE_ASSERT(inode->shared_count > 0);
        inode->shared_count--;
    }
    return SQLITE_OK;
}

static int file_check_reserved(sqlite3_file *base, int *reserved_out)
{
    struct sim_file *file = (struct sim_file *)base;
    if (cut_off(file))
        return SQLITE_IOERR_CHECKRESERVEDLOCK;
    *reserved_out = file->inode->reserved != NULL || file->inode->pending != NULL ||
                    file->inode->exclusive != NULL;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int op, void *arg)
{
    const struct sim_file *file = (const struct sim_file *)base;
    if (op != SQLITE_FCNTL_HAS_MOVED || file->path == NULL || cut_off(file))
        return SQLITE_NOTFOUND;
    *(int *)arg = sim_disk_find(file->disk, file->path) != file->inode;
    return SQLITE_OK;
}

static int file_sector_size(sqlite3_file *base)
{
    (void)base;
    return 4096;
}

/* What SQLite assumes on Linux: bytes next to a torn write stay as they were. */
static int file_characteristics(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* ---- shared memory ------------------------------------------------------- */

void sim_shm_drop(struct sim_shm *shm)
{
    if (shm == NULL || --shm->references > 0)
        return;
    for (size_t i = 0; i < shm->regions_count; i++)
        free(shm->regions[i]);
    free(shm);
}

static int file_shm_map(sqlite3_file *base, int region, int region_bytes, int extend,
                        void volatile **region_out)
{
    struct sim_file *file = (struct sim_file *)base;
    *region_out = NULL;
    if (cut_off(file))
        return SQLITE_IOERR_SHMMAP;
    if (file->shm == NULL) {
        if (file->inode->shm == NULL) {
            file->inode->shm = sim_alloc(sizeof *file->inode->shm);
            file->inode->shm->references = 1;
        }
        file->shm = file->inode->shm;
        file->shm->references++;
    }
    struct sim_shm *shm = file->shm;
    if (region >= SIM_SHM_REGIONS_MAX)
        return SQLITE_IOERR_SHMSIZE;
    if ((size_t)region >= shm->regions_count && !extend)
        return SQLITE_OK;
    while (shm->regions_count <= (size_t)region)
        shm->regions[shm->regions_count++] = sim_alloc((size_t)region_bytes);
    *region_out = shm->regions[region];
    return SQLITE_OK;
}

static void shm_unlock(struct sim_file *file, unsigned slot)
{
    unsigned bit = 1u << slot;
    if (file->shm_shared & bit)
        file->shm->shared[slot]--;
    if (file->shm_exclusive & bit)
        file->shm->exclusive[slot] = false;
    file->shm_shared &= ~bit;
    file->shm_exclusive &= ~bit;
}

static bool shm_can_lock(const struct sim_file *file, unsigned slot, bool exclusive)
{
    unsigned bit = 1u << slot;
    const struct sim_shm *shm = file->shm;
    if (file->shm_exclusive & bit)
        return true;
    if (shm->exclusive[slot])
        return false;
    uint32_t others = shm->shared[slot] - ((file->shm_shared & bit) != 0);
    return !exclusive || others == 0;
}

static int file_shm_lock(sqlite3_file *base, int first, int count, int flags)
{
    struct sim_file *file = (struct sim_file *)base;
    bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
    if (flags & SQLITE_SHM_UNLOCK) {
        for (int slot = first; slot < first + count; slot++)
            shm_unlock(file, (unsigned)slot);
        return SQLITE_OK;
    }
    sim_step(file->disk->sim, SIM_OP_SQL_LOCK, (uint64_t)(first * 100 + flags), "shm");
    if (cut_off(file))
        return SQLITE_IOERR_SHMLOCK;
    for (int slot = first; slot < first + count; slot++)
        if (!shm_can_lock(file, (unsigned)slot, exclusive))
            return SQLITE_BUSY;
    for (int slot = first; slot < first + count; slot++) {
        unsigned bit = 1u << slot;
        if (exclusive) {
            file->shm->exclusive[slot] = true;
            file->shm_exclusive |= bit;
        } else if (!(file->shm_shared & bit)) {
            file->shm->shared[slot]++;
            file->shm_shared |= bit;
        }
    }
    return SQLITE_OK;
}

static void file_shm_barrier(sqlite3_file *base)
{
    (void)base; /* handing over the baton is one */
}

static int file_shm_unmap(sqlite3_file *base, int delete_flag)
{
    struct sim_file *file = (struct sim_file *)base;
    if (file->shm == NULL)
        return SQLITE_OK;
    for (unsigned slot = 0; slot < SIM_SHM_SLOTS; slot++)
        shm_unlock(file, slot);
    /* The last one out may take the memory along; a later connection then
     * recovers it from the log, as after a crash. */
    bool last = file->shm->references == 2 && file->inode->shm == file->shm;
    sim_shm_drop(file->shm);
    file->shm = NULL;
    if (last) {
        (void)delete_flag; /* no user of it is left */
        sim_shm_drop(file->inode->shm);
        file->inode->shm = NULL;
    }
    return SQLITE_OK;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- VFS methods --------------------------------------------------------- */

static struct sim_disk *disk_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags,
                    int *flags_out)
{
    struct sim_disk *disk = disk_of(vfs);
    struct sim_file *file = (struct sim_file *)base;
    memset(file, 0, sizeof *file);
    sim_step(disk->sim, SIM_OP_FILE, 0, path);
    if (disk->sim->dead)
        return SQLITE_CANTOPEN;

    if (path == NULL) {
        file->inode = sim_inode_new(disk);
    } else {
        struct sim_inode *inode = sim_disk_find(disk, path);
        if (inode != NULL && (flags & SQLITE_OPEN_EXCLUSIVE) && (flags & SQLITE_OPEN_CREATE))
            return SQLITE_CANTOPEN;
        if (inode == NULL && (flags & SQLITE_OPEN_CREATE)) {
            inode = sim_disk_create(disk, path);
            file->sync_dir = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL |
                                       SQLITE_OPEN_WAL)) != 0;
        }
        if (inode == NULL)
            return SQLITE_CANTOPEN;
        inode->references++;
        file->inode = inode;
        file->path = sim_copy_text(path);
    }
    file->disk = disk;
    file->life = disk->sim->life;
    file->delete_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    file->base.pMethods = &file_methods;
    if (flags_out != NULL)
        *flags_out = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    struct sim_disk *disk = disk_of(vfs);
    sim_step(disk->sim, SIM_OP_FILE, 1, path);
    if (disk->sim->dead)
        return SQLITE_IOERR_DELETE;
    if (sim_disk_find(disk, path) == NULL)
        return SQLITE_IOERR_DELETE_NOENT;
    sim_disk_unlink(disk, path, sync_dir != 0);
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *result_out)
{
    struct sim_disk *disk = disk_of(vfs);
    if (disk->sim->dead)
        return SQLITE_IOERR_ACCESS;
    struct sim_inode *inode = sim_disk_find(disk, path);
    /* An empty journal counts as none: so does the VFS of Unix. */
    *result_out = inode != NULL && (flags != SQLITE_ACCESS_EXISTS || inode->seen.count > 0);
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int count, char *out)
{
    (void)vfs;
    int wanted = snprintf(out, (size_t)count, "%s%s", path[0] == '/' ? "" : "/", path);
    return wanted < 0 || wanted >= count ? SQLITE_CANTOPEN : SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *vfs, int count, char *out)
{
    tide_world_random(&disk_of(vfs)->sim->world, out, (size_t)count);
    return count;
}

static int vfs_sleep(sqlite3_vfs *vfs, int sleep_us)
{
    tide_sim *sim = disk_of(vfs)->sim;
    if (sim->current->locks_held > 0)
        sim->stats.locks_over_sync++;
    sim_step(sim, SIM_OP_SLEEP, (uint64_t)sleep_us, "sqlite");
    (void)sim_block(sim, SIM_WAIT_DISK, NULL, 0, sim->now_us + (uint64_t)sleep_us, NULL);
    return sleep_us;
}

static int vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *julian_ms_out)
{
    /* 1970 began at this many milliseconds of the Julian calendar. */
    const sqlite3_int64 unix_epoch_ms = 210866760000000;
    *julian_ms_out =
        unix_epoch_ms + (sqlite3_int64)tide_world_now_unix_ms(&disk_of(vfs)->sim->world);
    return SQLITE_OK;
}

static int vfs_time(sqlite3_vfs *vfs, double *julian_days_out)
{
    sqlite3_int64 julian_ms = 0;
    (void)vfs_time_ms(vfs, &julian_ms);
    *julian_days_out = (double)julian_ms / 86400000.0;
    return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int count, char *out)
{
    (void)vfs;
    (void)count;
    (void)out;
    return 0;
}

void sim_vfs_register(struct sim_disk *disk)
{
    /* Several worlds may exist one after another and, in tests of the world
     * itself, next to each other. */
    static uint64_t worlds;
    uint64_t number = __atomic_add_fetch(&worlds, 1, __ATOMIC_RELAXED);
    (void)snprintf(disk->vfs_name, sizeof disk->vfs_name, "tidesim-%" PRIu64, number);
    disk->vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(struct sim_file),
        .mxPathname = 512,
        .zName = disk->vfs_name,
        .pAppData = disk,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
        .xGetLastError = vfs_last_error,
        .xCurrentTimeInt64 = vfs_time_ms,
    };
    TIDE_ASSERT(sqlite3_vfs_register(&disk->vfs, 0) == SQLITE_OK);
}
