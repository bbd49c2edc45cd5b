#include "world/userfile.h"
#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE_BYTES = 256 << 10, COMPARE_BYTES = 64 << 10 };

struct tide_reading {
    tide_mem *mem;
    int fd;
    char path[PATH_MAX];
};

struct tide_writing {
    tide_mem *mem;
    int fd;
    size_t held; /* in room, not written yet */
    uint64_t bytes;
    char path[PATH_MAX];
    char temp[PATH_MAX];
    char room[WRITE_BYTES];
};

static tide_status too_long(const char *path, tide_error *err)
{
    return tide_error_set(err, TIDE_INVALID, "path too long: %.100s...", path);
}

tide_status tide_path_look(const char *path, struct tide_path_info *info_out, tide_error *err)
{
    struct stat info;
    *info_out = (struct tide_path_info){.kind = TIDE_PATH_NONE};
    if (lstat(path, &info) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? TIDE_OK
                   : tide_error_os(err, errno, "check %.300s", path);
    info_out->link = S_ISLNK(info.st_mode);
    if (info_out->link && stat(path, &info) < 0)
        return TIDE_OK; /* it points nowhere */
    info_out->kind = S_ISREG(info.st_mode)   ? TIDE_PATH_FILE
                     : S_ISDIR(info.st_mode) ? TIDE_PATH_DIR
                                             : TIDE_PATH_OTHER;
    info_out->bytes = info.st_size < 0 ? 0 : (uint64_t)info.st_size;
    info_out->changed_ms =
        (int64_t)info.st_mtim.tv_sec * 1000 + (int64_t)(info.st_mtim.tv_nsec / 1000000);
    return TIDE_OK;
}

/* ---- reading ---------------------------------------------------------------------- */

tide_status tide_reading_open(tide_mem *mem, const char *path, tide_reading **reading_out,
                              tide_error *err)
{
    if (strlen(path) >= PATH_MAX)
        return too_long(path, err);
    tide_reading *reading = tide_mem_new(mem, sizeof *reading);
    if (reading == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to read %.200s", path);
    reading->mem = mem;
    (void)snprintf(reading->path, sizeof reading->path, "%s", path);
    /* O_NONBLOCK: a pipe with the name of a mailbox must not block us. */
    reading->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (reading->fd < 0) {
        tide_status rc = tide_error_os(err, errno, "open %.300s", path);
        tide_mem_free(mem, reading, sizeof *reading);
        return rc;
    }
    *reading_out = reading;
    return TIDE_OK;
}

tide_status tide_reading_at(tide_reading *reading, uint64_t at, char *bytes, size_t room,
                            size_t *count_out, tide_error *err)
{
    size_t count = 0;
    while (count < room) {
        ssize_t got = pread(reading->fd, bytes + count, room - count, (off_t)(at + count));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tide_error_os(err, errno, "read %.300s", reading->path);
        if (got == 0)
            break;
        count += (size_t)got;
    }
    *count_out = count;
    return TIDE_OK;
}

void tide_reading_close(tide_reading *reading)
{
    if (reading == NULL)
        return;
    (void)close(reading->fd);
    tide_mem_free(reading->mem, reading, sizeof *reading);
}

/* ---- writing ---------------------------------------------------------------------- */

/* "DIR/.NAME.new": one fixed name, so that a crash leaves at most one behind and the next try
 * removes it. */
static tide_status temp_name(const char *path, char temp[PATH_MAX], tide_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const int dir_bytes = (int)(name - path);
    if (name[0] == '\0')
        return tide_error_set(err, TIDE_INVALID, "not the name of a file: %.300s", path);
    const int used = snprintf(temp, PATH_MAX, "%.*s.%s.new", dir_bytes, path, name);
    return used < 0 || used >= PATH_MAX ? too_long(path, err) : TIDE_OK;
}

tide_status tide_writing_open(tide_mem *mem, const char *path, tide_writing **writing_out,
                              tide_error *err)
{
    if (strlen(path) >= PATH_MAX)
        return too_long(path, err);
    tide_writing *writing = tide_mem_new(mem, sizeof *writing);
    if (writing == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to write %.200s", path);
    writing->mem = mem;
    writing->fd = -1;
    (void)snprintf(writing->path, sizeof writing->path, "%s", path);
    tide_status rc = temp_name(path, writing->temp, err);
    if (rc == TIDE_OK) {
        (void)unlink(writing->temp);
        writing->fd = open(writing->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (writing->fd < 0)
            rc = tide_error_os(err, errno, "create %.300s", writing->temp);
    }
    if (rc != TIDE_OK) {
        tide_mem_free(mem, writing, sizeof *writing);
        return rc;
    }
    *writing_out = writing;
    return TIDE_OK;
}

static tide_status write_all(tide_writing *writing, const char *bytes, size_t count,
                             tide_error *err)
{
    while (count > 0) {
        ssize_t wrote = write(writing->fd, bytes, count);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return tide_error_os(err, errno, "write %.300s", writing->temp);
        bytes += wrote;
        count -= (size_t)wrote;
    }
    return TIDE_OK;
}

static tide_status flush(tide_writing *writing, tide_error *err)
{
    TIDE_TRY(write_all(writing, writing->room, writing->held, err));
    writing->held = 0;
    return TIDE_OK;
}

tide_status tide_writing_add(tide_writing *writing, const char *bytes, size_t count,
                             tide_error *err)
{
    writing->bytes += count;
    if (count > WRITE_BYTES - writing->held)
        TIDE_TRY(flush(writing, err));
    if (count > WRITE_BYTES)
        return write_all(writing, bytes, count, err);
    if (count > 0) {
        memcpy(writing->room + writing->held, bytes, count);
        writing->held += count;
    }
    return TIDE_OK;
}

/* Whether the existing file is a plain file with the same bytes. */
static bool same_as_there(tide_writing *writing)
{
    struct stat info;
    char ours[COMPARE_BYTES];
    char theirs[COMPARE_BYTES];
    bool same = true;
    int fd = open(writing->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || (uint64_t)info.st_size != writing->bytes)
        same = false;
    for (uint64_t at = 0; same && at < writing->bytes;) {
        const size_t want =
            writing->bytes - at < sizeof ours ? (size_t)(writing->bytes - at) : sizeof ours;
        same = pread(fd, theirs, want, (off_t)at) == (ssize_t)want &&
               pread(writing->fd, ours, want, (off_t)at) == (ssize_t)want &&
               memcmp(ours, theirs, want) == 0;
        at += want;
    }
    (void)close(fd);
    return same;
}

void tide_writing_drop(tide_writing *writing)
{
    if (writing == NULL)
        return;
    (void)close(writing->fd);
    if (writing->temp[0] != '\0')
        (void)unlink(writing->temp); /* gone already if it was renamed */
    tide_mem_free(writing->mem, writing, sizeof *writing);
}

static void set_time(const tide_writing *writing, int64_t changed_ms)
{
    int64_t seconds = changed_ms / 1000;
    int64_t rest_ms = changed_ms % 1000;
    if (rest_ms < 0) {
        rest_ms += 1000;
        seconds--;
    }
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {(time_t)seconds, (long)rest_ms * 1000000}};
    (void)futimens(writing->fd, times); /* optional: some file systems do not store these times */
}

/* Both calls fail if the name is taken; not every file system supports both. */
static tide_status name_new(const tide_writing *writing, const char *path, tide_error *err)
{
    if (renameat2(AT_FDCWD, writing->temp, AT_FDCWD, path, RENAME_NOREPLACE) < 0 &&
        (errno == EEXIST || link(writing->temp, path) < 0))
        return errno == EEXIST ? tide_error_set(err, TIDE_EXISTS, "%.300s exists", path)
                               : tide_error_os(err, errno, "rename to %.300s", path);
    return TIDE_OK;
}

static tide_status end(tide_writing *writing, int64_t changed_ms, bool replace, bool *same_out,
                       tide_error *err)
{
    tide_status rc = flush(writing, err);
    const bool same = rc == TIDE_OK && same_as_there(writing);
    if (rc == TIDE_OK && !same && changed_ms != INT64_MIN)
        set_time(writing, changed_ms);
    if (rc == TIDE_OK && !same && !replace) {
        rc = name_new(writing, writing->path, err);
    } else if (rc == TIDE_OK && !same) {
        if (rename(writing->temp, writing->path) < 0)
            rc = tide_error_os(err, errno, "rename %.300s", writing->temp);
        else
            writing->temp[0] = '\0'; /* it has its final name */
    }
    if (rc == TIDE_OK && same_out != NULL)
        *same_out = same;
    tide_writing_drop(writing);
    return rc;
}

tide_status tide_writing_end(tide_writing *writing, int64_t changed_ms, bool *same_out,
                             tide_error *err)
{
    return end(writing, changed_ms, true, same_out, err);
}

tide_status tide_writing_end_keeping(tide_writing *writing, int64_t changed_ms, bool *same_out,
                                     tide_error *err)
{
    return end(writing, changed_ms, false, same_out, err);
}

tide_status tide_writing_end_new(tide_writing *writing, const char *path, tide_error *err)
{
    tide_status rc = flush(writing, err);
    if (rc == TIDE_OK) {
        rc = name_new(writing, path, err);
        if (rc != TIDE_OK)
            return rc;
    }
    tide_writing_drop(writing);
    return rc;
}

/* ---- the disk --------------------------------------------------------------------- */

tide_status tide_userfile_settle(const char *path, tide_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tide_error_os(err, errno, "open %.300s", path);
    tide_status rc = TIDE_OK;
    if (syncfs(fd) < 0)
        rc = tide_error_os(err, errno, "sync the disk of %.300s", path);
    (void)close(fd);
    return rc;
}

tide_status tide_userfile_replace(const char *path, const char *to, tide_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    tide_status rc = TIDE_OK;
    if (fd < 0)
        return tide_error_os(err, errno, "open %.300s", path);
    if (fsync(fd) < 0)
        rc = tide_error_os(err, errno, "sync %.300s", path);
    (void)close(fd);
    if (rc == TIDE_OK && rename(path, to) < 0)
        rc = tide_error_os(err, errno, "rename %.150s to %.150s", path, to);
    if (rc != TIDE_OK)
        return rc;
    char dir[PATH_MAX];
    const char *slash = strrchr(to, '/');
    (void)snprintf(dir, sizeof dir, "%.*s", slash == NULL ? 1 : (int)(slash - to + (slash == to)),
                   slash == NULL ? "." : to);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tide_error_os(err, errno, "open %.300s", dir);
    if (fsync(fd) < 0)
        rc = tide_error_os(err, errno, "sync %.300s", dir);
    (void)close(fd);
    return rc;
}
