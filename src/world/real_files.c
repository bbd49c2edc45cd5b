#include "world/real.h"
#include "base/check.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

struct tide_file_lock {
    int fd;
};

/* ---- reading ------------------------------------------------------------- */

static tide_status read_up_to(int fd, const char *path, size_t bytes_max, tide_buf *out,
                              tide_error *err)
{
    enum { STEP_BYTES = 16 << 10 };
    size_t total_bytes = 0;
    for (;;) {
        /* Asks for one byte more than allowed: getting it proves that the file is too long. */
        size_t want =
            bytes_max - total_bytes < STEP_BYTES ? bytes_max - total_bytes + 1 : (size_t)STEP_BYTES;
        char step[STEP_BYTES];
        if (want > sizeof step)
            want = sizeof step;
        ssize_t got = read(fd, step, want);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tide_error_os(err, errno, "read %s", path);
        if (got == 0)
            return TIDE_OK;
        total_bytes += (size_t)got;
        if (total_bytes > bytes_max)
            return tide_error_set(err, TIDE_FULL, "%s is longer than %zu bytes", path, bytes_max);
        tide_status rc = tide_buf_add(out, step, (size_t)got);
        explicit_bzero(step, (size_t)got); /* it may be a secret */
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "no room for the content of %s", path);
    }
}

static tide_status read_whole(int fd, const char *path, size_t bytes_max, tide_buf *out,
                              tide_error *err)
{
    const size_t before_bytes = out->bytes;
    tide_status rc = read_up_to(fd, path, bytes_max, out, err);
    if (rc != TIDE_OK && out->data != NULL) {
        out->bytes = before_bytes;
        out->data[before_bytes] = '\0';
    }
    (void)close(fd);
    return rc;
}

tide_status real_file_read(tide_world *world, const char *path, size_t bytes_max, tide_buf *out,
                           tide_error *err)
{
    (void)world;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tide_error_os(err, errno, "open %s", path);
    return read_whole(fd, path, bytes_max, out, err);
}

/* Checks the open file, not its name: what was checked is what is read. */
static tide_status check_private(int fd, const char *path, tide_error *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return tide_error_os(err, errno, "check %s", path);
    if (!S_ISREG(info.st_mode))
        return tide_error_set(err, TIDE_INVALID, "%s is not a plain file", path);
    if (info.st_uid != geteuid())
        return tide_error_set(err, TIDE_INVALID,
                              "%s holds a secret and belongs to another user: run `chown %u %s`",
                              path, (unsigned)geteuid(), path);
    if ((info.st_mode & 077) != 0)
        return tide_error_set(err, TIDE_INVALID,
                              "%s holds a secret and others can read or write it: run "
                              "`chmod 600 %s`",
                              path, path);
    return TIDE_OK;
}

tide_status real_file_read_private(tide_world *world, const char *path, size_t bytes_max,
                                   tide_buf *out, tide_error *err)
{
    (void)world;
    /* O_NONBLOCK: a pipe put in its place must not block us. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ELOOP)
        return tide_error_set(err, TIDE_INVALID, "%s is not a plain file", path);
    if (fd < 0)
        return tide_error_os(err, errno, "open %s", path);
    tide_status rc = check_private(fd, path, err);
    if (rc != TIDE_OK) {
        (void)close(fd);
        return rc;
    }
    return read_whole(fd, path, bytes_max, out, err);
}

/* ---- directories --------------------------------------------------------- */

/* Opens the directory that holds `path` and points at the name inside it. */
static tide_status dir_of(const char *path, int *dir_fd_out, const char **name_out, tide_error *err)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return tide_error_set(err, TIDE_INVALID, "not the name of a file: %s", path);
    size_t dir_bytes = slash == NULL ? 0 : (size_t)(slash - path);
    if (dir_bytes >= sizeof dir)
        return tide_error_set(err, TIDE_INVALID, "path too long: %.100s...", path);
    memcpy(dir, path, dir_bytes);
    dir[dir_bytes] = '\0';
    if (dir_bytes == 0)
        (void)snprintf(dir, sizeof dir, "%s", slash == NULL ? "." : "/");

    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tide_error_os(err, errno, "open directory %s", dir);
    *dir_fd_out = fd;
    *name_out = name;
    return TIDE_OK;
}

/* Makes one directory, durably; fine if it exists. */
static tide_status dir_make_one(const char *path, tide_error *err)
{
    if (mkdir(path, 0700) < 0) {
        const int os_error = errno;
        struct stat info;
        if (os_error == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            return TIDE_OK;
        return tide_error_os(err, os_error, "make directory %s", path);
    }
    int parent_fd = -1;
    const char *name = NULL;
    TIDE_TRY(dir_of(path, &parent_fd, &name, err));
    tide_status rc = TIDE_OK;
    if (fsync(parent_fd) < 0) /* else a crash loses the directory and its content */
        rc = tide_error_os(err, errno, "sync the parent directory of %s", path);
    (void)close(parent_fd);
    return rc;
}

tide_status real_dir_make(tide_world *world, const char *path, tide_error *err)
{
    (void)world;
    char part[PATH_MAX];
    size_t path_bytes = strlen(path);
    while (path_bytes > 1 && path[path_bytes - 1] == '/')
        path_bytes--;
    if (path_bytes == 0 || path_bytes >= sizeof part)
        return tide_error_set(err, TIDE_INVALID, "not the path of a directory: %.100s", path);

    for (size_t at = 1; at <= path_bytes; at++) {
        if (at < path_bytes && (path[at] != '/' || path[at - 1] == '/'))
            continue;
        memcpy(part, path, at);
        part[at] = '\0';
        /* An existing directory is not made again: mkdir("/") may fail with anything (a
         * read-only root) although the directory is fine. */
        struct stat info;
        if (stat(part, &info) == 0 && S_ISDIR(info.st_mode))
            continue;
        TIDE_TRY(dir_make_one(part, err));
    }
    return TIDE_OK;
}

tide_status real_dir_list(tide_world *world, const char *path,
                          void (*visit)(const char *name, void *arg), void *arg, tide_error *err)
{
    (void)world;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return tide_error_os(err, errno, "open directory %s", path);
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            visit(entry->d_name, arg);
    }
    const int os_error = errno;
    (void)closedir(dir);
    return os_error == 0 ? TIDE_OK : tide_error_os(err, os_error, "read directory %s", path);
}

tide_status real_disk_free(tide_world *world, const char *path, uint64_t *bytes_out,
                           tide_error *err)
{
    (void)world;
    struct statvfs info;
    if (statvfs(path, &info) < 0)
        return tide_error_os(err, errno, "get the free space on the disk of %s", path);
    *bytes_out = (uint64_t)info.f_bavail * (uint64_t)info.f_frsize;
    return TIDE_OK;
}

/* ---- writing ------------------------------------------------------------- */

static tide_status write_all(int fd, tide_text content, const char *name, tide_error *err)
{
    size_t done_bytes = 0;
    while (done_bytes < content.bytes) {
        ssize_t wrote = write(fd, content.data + done_bytes, content.bytes - done_bytes);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return tide_error_os(err, errno, "write %s", name);
        done_bytes += (size_t)wrote;
    }
    return TIDE_OK;
}

static int flock_patiently(int fd)
{
    int failed = 0;
    do
        failed = flock(fd, LOCK_EX);
    while (failed < 0 && errno == EINTR);
    return failed;
}

/* The temporary file has one fixed name, so that a crash leaves at most one behind, and the next
 * replacement removes it.  Hence two replacements of one file must not overlap: replace_lock
 * excludes threads, and a lock on the directory excludes processes. */
static tide_status replace_in(int dir_fd, const char *name, tide_text content, unsigned mode,
                              tide_error *err)
{
    char temp[NAME_MAX + 1];
    if ((size_t)snprintf(temp, sizeof temp, ".%s.new", name) >= sizeof temp)
        return tide_error_set(err, TIDE_INVALID, "name too long: %.100s...", name);
    if (flock_patiently(dir_fd) < 0)
        return tide_error_os(err, errno, "lock the directory of %s", name);

    tide_status rc = TIDE_OK;
    bool temp_exists = false;
    (void)unlinkat(dir_fd, temp, 0); /* left by a crash; no other code uses this name */
    int fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) {
        rc = tide_error_os(err, errno, "create %s", temp);
        goto done;
    }
    temp_exists = true;

    rc = write_all(fd, content, temp, err);
    if (rc != TIDE_OK)
        goto done;
    if (fsync(fd) < 0) {
        rc = tide_error_os(err, errno, "sync %s", temp);
        goto done;
    }
    if (renameat(dir_fd, temp, dir_fd, name) < 0) {
        rc = tide_error_os(err, errno, "rename %s", temp);
        goto done;
    }
    temp_exists = false;
    if (fsync(dir_fd) < 0) /* until here a crash may lose the rename itself */
        rc = tide_error_os(err, errno, "sync directory of %s", name);

done:
    if (fd >= 0)
        (void)close(fd);
    if (temp_exists)
        (void)unlinkat(dir_fd, temp, 0);
    return rc;
}

tide_status real_file_replace(tide_world *world, const char *path, tide_text content, unsigned mode,
                              tide_error *err)
{
    struct real_world *real = real_of(world);
    TIDE_ASSERT((mode & ~0777u) == 0);
    int dir_fd = -1;
    const char *name = NULL;
    TIDE_TRY(dir_of(path, &dir_fd, &name, err));
    real_lock(&real->replace_lock);
    tide_status rc = replace_in(dir_fd, name, content, mode, err);
    real_unlock(&real->replace_lock);
    (void)close(dir_fd); /* releases the directory's lock */
    return rc;
}

tide_status real_file_remove(tide_world *world, const char *path, tide_error *err)
{
    (void)world;
    int dir_fd = -1;
    const char *name = NULL;
    TIDE_TRY(dir_of(path, &dir_fd, &name, err));
    tide_status rc = TIDE_OK;
    if (unlinkat(dir_fd, name, 0) < 0)
        rc = tide_error_os(err, errno, "remove %s", path);
    else if (fsync(dir_fd) < 0)
        rc = tide_error_os(err, errno, "sync directory of %s", path);
    (void)close(dir_fd);
    return rc;
}

tide_status real_file_rename(tide_world *world, const char *path, const char *to, tide_error *err)
{
    (void)world;
    int dir_fd = -1;
    const char *name = NULL;
    TIDE_TRY(dir_of(to, &dir_fd, &name, err));
    tide_status rc = TIDE_OK;
    /* link() fails if the name is taken; rename() would replace it. */
    if (linkat(AT_FDCWD, path, dir_fd, name, 0) < 0)
        rc = tide_error_os(err, errno, "rename %s to %s", path, to);
    else if (fsync(dir_fd) < 0)
        rc = tide_error_os(err, errno, "sync directory of %s", to);
    else if (unlink(path) < 0)
        rc = tide_error_os(err, errno, "remove %s", path);
    (void)close(dir_fd);
    return rc;
}

/* ---- locks --------------------------------------------------------------- */

/* Runs in a child process: closing a file drops every POSIX lock that this process has on it,
 * SQLite's included.  A child has none.  It calls only functions that are safe between a fork of
 * a threaded process and its exit. */
tide_status real_file_forget(tide_world *world, const char *path, tide_error *err)
{
    (void)world;
    const pid_t child = fork();
    if (child < 0)
        return tide_error_os(err, errno, "start a process to sync %s", path);
    if (child == 0) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            _exit(errno);
        if (fsync(fd) != 0)
            _exit(errno);
        _exit(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    }
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    if (ended != child || !WIFEXITED(status))
        return tide_error_set(err, TIDE_IO, "sync %s: the child process was killed", path);
    if (WEXITSTATUS(status) != 0)
        return tide_error_os(err, WEXITSTATUS(status), "sync %s", path);
    return TIDE_OK;
}

/* Reads the line of the process that holds the lock, made printable. */
static void holder_read(int fd, char line[TIDE_LOCK_LINE_BYTES_MAX])
{
    ssize_t got = pread(fd, line, TIDE_LOCK_LINE_BYTES_MAX - 1, 0);
    size_t bytes = got > 0 ? (size_t)got : 0;
    size_t end = 0;
    while (end < bytes && line[end] != '\n')
        end++;
    line[end] = '\0';
    for (size_t i = 0; i < end; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    if (end == 0) /* it holds the lock and has not written its line yet */
        (void)snprintf(line, TIDE_LOCK_LINE_BYTES_MAX, "another process");
}

static tide_status holder_write(int fd, const char *path, tide_text holder, tide_error *err)
{
    char line[TIDE_LOCK_LINE_BYTES_MAX];
    size_t bytes = holder.bytes < sizeof line - 1 ? holder.bytes : sizeof line - 1;
    if (bytes > 0)
        memcpy(line, holder.data, bytes);
    line[bytes] = '\n';
    if (ftruncate(fd, 0) < 0)
        return tide_error_os(err, errno, "truncate %s", path);
    return write_all(fd, (tide_text){line, bytes + 1}, path, err);
}

tide_status real_file_lock(tide_world *world, const char *path, tide_text holder,
                           tide_file_lock **lock_out, tide_error *err)
{
    tide_status rc = TIDE_OK;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return tide_error_os(err, errno, "open lock %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        const int os_error = errno;
        char line[TIDE_LOCK_LINE_BYTES_MAX];
        holder_read(fd, line);
        rc = os_error == EWOULDBLOCK ? tide_error_set(err, TIDE_BUSY, "%s", line)
                                     : tide_error_os(err, os_error, "lock %s", path);
        goto failed;
    }
    /* We never remove lock files.  If another program did, between our open and our flock, we
     * hold a file that the next process will not find. */
    struct stat ours;
    struct stat named;
    if (fstat(fd, &ours) < 0 || stat(path, &named) < 0 || ours.st_ino != named.st_ino ||
        ours.st_dev != named.st_dev) {
        rc = tide_error_set(err, TIDE_BUSY,
                            "lock file %s was removed by another program; try again", path);
        goto failed;
    }
    rc = holder_write(fd, path, holder, err);
    if (rc != TIDE_OK)
        goto failed;
    tide_file_lock *lock = real_mem_new(real_of(world), sizeof *lock);
    if (lock == NULL) {
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for lock %s", path);
        goto failed;
    }
    lock->fd = fd;
    *lock_out = lock;
    return TIDE_OK;

failed:
    (void)close(fd);
    return rc;
}

void real_file_unlock(tide_world *world, tide_file_lock *lock)
{
    if (lock == NULL)
        return;
    /* The file stays: removing it would let two processes hold two files of the same name.  Its
     * line is removed, so that no process reads of a holder that has left. */
    if (ftruncate(lock->fd, 0) == 0)
        TIDE_SEEN("lock: left without a name");
    (void)close(lock->fd);
    real_mem_free(real_of(world), lock, sizeof *lock);
}
