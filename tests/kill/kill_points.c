#include "kill_points.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

const char *const kill_mode_names[KILL_MODES] = {"before", "after", "torn"};

static uint64_t own_count;
static uint64_t *count = &own_count;
static uint64_t armed_at;
static kill_mode armed_mode;

void kill_arm(uint64_t at, kill_mode mode, uint64_t *ops)
{
    armed_at = at;
    armed_mode = mode;
    count = ops;
    __atomic_store_n(count, 0, __ATOMIC_SEQ_CST);
}

uint64_t kill_count(void)
{
    return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

static _Noreturn void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;)
        (void)pause(); /* the signal is on its way */
}

/* True: this is the one, and it is to be done (wholly or half) before dying. */
static bool enter(void)
{
    uint64_t number = __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
    if (number != armed_at)
        return false;
    if (armed_mode == KILL_BEFORE)
        die();
    return true;
}

static void leave(bool last)
{
    if (last)
        die();
}

/* ---- the system calls of our own code ------------------------------------------ */

#define WRAPPED(type, name, ...)                                                                   \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

static bool is_file(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

WRAPPED(ssize_t, write, int fd, const void *bytes, size_t bytes_count)
{
    bool last = is_file(fd) && enter();
    if (last && armed_mode == KILL_TORN)
        bytes_count /= 2;
    ssize_t wrote = __real_write(fd, bytes, bytes_count);
    leave(last);
    return wrote;
}

WRAPPED(int, fsync, int fd)
{
    bool last = enter();
    int rc = __real_fsync(fd);
    leave(last);
    return rc;
}

WRAPPED(int, renameat, int from_dir, const char *from, int to_dir, const char *to)
{
    bool last = enter();
    int rc = __real_renameat(from_dir, from, to_dir, to);
    leave(last);
    return rc;
}

WRAPPED(int, unlinkat, int dir, const char *path, int flags)
{
    bool last = enter();
    int rc = __real_unlinkat(dir, path, flags);
    leave(last);
    return rc;
}

WRAPPED(int, mkdir, const char *path, mode_t mode)
{
    bool last = enter();
    int rc = __real_mkdir(path, mode);
    leave(last);
    return rc;
}

WRAPPED(int, ftruncate, int fd, off_t bytes)
{
    bool last = enter();
    int rc = __real_ftruncate(fd, bytes);
    leave(last);
    return rc;
}

WRAPPED(int, ftruncate64, int fd, off_t bytes)
{
    bool last = enter();
    int rc = __real_ftruncate64(fd, bytes);
    leave(last);
    return rc;
}

static unsigned mode_of(int flags, va_list list)
{
    return (flags & O_CREAT) != 0 ? va_arg(list, unsigned) : 0;
}

#define OPENING(name)                                                                              \
    WRAPPED(int, name, const char *path, int flags, ...)                                           \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        unsigned mode = mode_of(flags, list);                                                      \
        va_end(list);                                                                              \
        bool last = (flags & O_CREAT) != 0 && enter();                                             \
        int fd = __real_##name(path, flags, mode);                                                 \
        leave(last);                                                                               \
        return fd;                                                                                 \
    }
#define OPENING_AT(name)                                                                           \
    WRAPPED(int, name, int dir, const char *path, int flags, ...)                                  \
    {                                                                                              \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        unsigned mode = mode_of(flags, list);                                                      \
        va_end(list);                                                                              \
        bool last = (flags & O_CREAT) != 0 && enter();                                             \
        int fd = __real_##name(dir, path, flags, mode);                                            \
        leave(last);                                                                               \
        return fd;                                                                                 \
    }
OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)

/* ---- SQLite's --------------------------------------------------------------------- */

struct kill_file {
    sqlite3_file base;
    sqlite3_file *real; /* in the same allocation */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct kill_file *)file)->real;
}

static sqlite3_vfs *below;

static int file_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int file_read(sqlite3_file *file, void *bytes, int bytes_count, sqlite3_int64 at)
{
    return real_of(file)->pMethods->xRead(real_of(file), bytes, bytes_count, at);
}

static int file_write(sqlite3_file *file, const void *bytes, int bytes_count, sqlite3_int64 at)
{
    bool last = enter();
    if (last && armed_mode == KILL_TORN)
        bytes_count /= 2;
    int rc = real_of(file)->pMethods->xWrite(real_of(file), bytes, bytes_count, at);
    leave(last);
    return rc;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
    bool last = enter();
    int rc = real_of(file)->pMethods->xTruncate(real_of(file), bytes);
    leave(last);
    return rc;
}

static int file_sync(sqlite3_file *file, int flags)
{
    bool last = enter();
    int rc = real_of(file)->pMethods->xSync(real_of(file), flags);
    leave(last);
    return rc;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *bytes_out)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), bytes_out);
}

static int file_lock(sqlite3_file *file, int lock)
{
    return real_of(file)->pMethods->xLock(real_of(file), lock);
}

static int file_unlock(sqlite3_file *file, int lock)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), lock);
}

static int file_reserved(sqlite3_file *file, int *reserved_out)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), reserved_out);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int file_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int file_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

/* The log's index lives in shared memory and is rebuilt after a crash: its
 * changes are not operations on a file. */
static int shm_map(sqlite3_file *file, int region, int bytes, int extend, void volatile **map_out)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), region, bytes, extend, map_out);
}

static int shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int shm_unmap(sqlite3_file *file, int unlink_it)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), unlink_it);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
};

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                    int *flags_out)
{
    (void)vfs;
    struct kill_file *mine = (struct kill_file *)file;
    mine->base.pMethods = NULL;
    mine->real = (sqlite3_file *)(mine + 1);
    bool last = (flags & SQLITE_OPEN_CREATE) != 0 && enter();
    int rc = below->xOpen(below, path, mine->real, flags, flags_out);
    leave(last);
    if (mine->real->pMethods != NULL)
        mine->base.pMethods = &methods;
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_dir)
{
    (void)vfs;
    bool last = enter();
    int rc = below->xDelete(below, path, sync_dir);
    leave(last);
    return rc;
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *answer_out)
{
    (void)vfs;
    return below->xAccess(below, path, flags, answer_out);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int room, char *out)
{
    (void)vfs;
    return below->xFullPathname(below, path, room, out);
}

const char *kill_vfs(void)
{
    static sqlite3_vfs vfs;
    static const char name[] = "kill-points";
    if (sqlite3_vfs_find(name) != NULL)
        return name;
    below = sqlite3_vfs_find(NULL);
    if (below == NULL)
        abort();
    vfs = *below; /* randomness, sleep and time are the default's own */
    vfs.pNext = NULL;
    vfs.zName = name;
    vfs.szOsFile = (int)sizeof(struct kill_file) + below->szOsFile;
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    vfs.xAccess = vfs_access;
    vfs.xFullPathname = vfs_full_path;
    if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK)
        abort();
    return name;
}
