#include "world/folder.h"

#include "base/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READ_BYTES = 256 << 10, READ_MORE_BYTES = 64 /* of a file that grew */ };

struct name {
    char text[NAME_MAX + 1];
};

/* FOL1. */
static tide_status name_of(tide_text name, struct name *out, tide_error *err)
{
    const bool dots = (name.bytes == 1 && name.data[0] == '.') ||
                      (name.bytes == 2 && name.data[0] == '.' && name.data[1] == '.');
    if (name.bytes == 0 || name.bytes > NAME_MAX || dots ||
        memchr(name.data, '/', name.bytes) != NULL || memchr(name.data, '\0', name.bytes) != NULL)
        return tide_error_set(err, TIDE_INVALID, "not the name of a file in a folder");
    memcpy(out->text, name.data, name.bytes);
    out->text[name.bytes] = '\0';
    return TIDE_OK;
}

static tide_status failed(int error, const char *what, const char *name, tide_error *err)
{
    if (error == ENOENT)
        return tide_error_set(err, TIDE_NOT_FOUND, "%s %.200s: there is no such file", what, name);
    if (error == EEXIST || error == ENOTEMPTY)
        return tide_error_set(err, TIDE_EXISTS, "%s %.200s: %s", what, name,
                              error == EEXIST ? "the name is taken" : "the folder is not empty");
    if (error == ELOOP || error == ENOTDIR)
        return tide_error_set(err, TIDE_STALE, "%s %.200s: it is not what it was", what, name);
    return tide_error_os(err, error, "%s %.200s", what, name);
}

/* ---- directories ---- */

tide_status tide_folder_open(const char *path, int *root_out, tide_error *err)
{
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOTDIR ? tide_error_set(err, TIDE_INVALID, "%s is not a folder", path)
                                : failed(errno, "open", path, err);
    *root_out = dir;
    return TIDE_OK;
}

void tide_folder_close(int dir)
{
    if (dir >= 0)
        (void)close(dir);
}

static tide_status enter_one(int dir, const char *name, int *dir_out, tide_error *err)
{
    const int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return failed(errno, "open", name, err);
    *dir_out = next;
    return TIDE_OK;
}

tide_status tide_folder_enter(int root, tide_text path, int *dir_out, tide_error *err)
{
    int dir = -1;
    TIDE_TRY(enter_one(root, ".", &dir, err));
    for (size_t start = 0; start < path.bytes;) {
        const char *slash = memchr(path.data + start, '/', path.bytes - start);
        const size_t end = slash == NULL ? path.bytes : (size_t)(slash - path.data);
        struct name name;
        int next = -1;
        tide_status rc = name_of((tide_text){path.data + start, end - start}, &name, err);
        if (rc == TIDE_OK)
            rc = enter_one(dir, name.text, &next, err);
        tide_folder_close(dir);
        if (rc != TIDE_OK)
            return rc;
        dir = next;
        start = end + 1;
    }
    *dir_out = dir;
    return TIDE_OK;
}

/* Whether it is a folder, if the directory itself says so; else it is asked. */
static bool is_folder(int dir, const struct dirent *entry)
{
    struct stat info;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dir, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

static tide_status list(int dir, bool folders, bool (*visit)(tide_text name, void *arg), void *arg,
                        tide_error *err)
{
    int copy = -1;
    TIDE_TRY(enter_one(dir, ".", &copy, err)); /* a position of its own */
    DIR *entries = fdopendir(copy);
    if (entries == NULL) {
        const int error = errno;
        tide_folder_close(copy);
        return failed(error, "list", "a folder", err);
    }
    int error = 0;
    bool more = true;
    while (more) {
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (entry == NULL) {
            error = errno;
            break;
        }
        const tide_text name = tide_text_of(entry->d_name);
        if (!tide_text_equal(name, TIDE_TEXT(".")) && !tide_text_equal(name, TIDE_TEXT("..")) &&
            (!folders || is_folder(dir, entry)))
            more = visit(name, arg);
    }
    (void)closedir(entries);
    if (error != 0)
        return failed(error, "list", "a folder", err);
    return more ? TIDE_OK : tide_error_set(err, TIDE_CANCELED, "a folder was not read to its end");
}

tide_status tide_folder_list(int dir, bool (*visit)(tide_text name, void *arg), void *arg,
                             tide_error *err)
{
    return list(dir, false, visit, arg, err);
}

tide_status tide_folder_list_folders(int dir, bool (*visit)(tide_text name, void *arg), void *arg,
                                     tide_error *err)
{
    return list(dir, true, visit, arg, err);
}

/* ---- entries ---- */

static uint64_t ns_of(const struct statx_timestamp *time)
{
    return time->tv_sec < 0 ? 0 : (uint64_t)time->tv_sec * 1000000000u + time->tv_nsec;
}

static tide_entry_kind kind_of(unsigned mode)
{
    if (S_ISREG(mode))
        return TIDE_ENTRY_FILE;
    if (S_ISDIR(mode))
        return TIDE_ENTRY_FOLDER;
    return S_ISLNK(mode) ? TIDE_ENTRY_LINK : TIDE_ENTRY_OTHER;
}

static tide_status look(int dir, const char *name, int flags, struct tide_entry *entry_out,
                        tide_error *err)
{
    struct statx info;
    if (statx(dir, name, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
              STATX_BASIC_STATS | STATX_BTIME, &info) != 0)
        return failed(errno, "look at", name, err);
    *entry_out = (struct tide_entry){
        .kind = kind_of(info.stx_mode),
        .bytes = info.stx_size,
        .mtime_ns = ns_of(&info.stx_mtime),
        .ctime_ns = ns_of(&info.stx_ctime),
        .dev = (uint64_t)info.stx_dev_major << 32 | info.stx_dev_minor,
        .inode = info.stx_ino,
        .birth_ns = (info.stx_mask & STATX_BTIME) != 0 ? ns_of(&info.stx_btime) : 0,
        .nlink = info.stx_nlink,
        .mode = info.stx_mode & 07777u,
    };
    return TIDE_OK;
}

tide_status tide_folder_look(int dir, tide_text name, struct tide_entry *entry_out, tide_error *err)
{
    struct name text;
    TIDE_TRY(name_of(name, &text, err));
    return look(dir, text.text, 0, entry_out, err);
}

tide_status tide_folder_look_self(int dir, struct tide_entry *entry_out, tide_error *err)
{
    return look(dir, "", AT_EMPTY_PATH, entry_out, err);
}

bool tide_entry_same(const struct tide_entry *a, const struct tide_entry *b)
{
    return a->kind == b->kind && a->dev == b->dev && a->inode == b->inode &&
           a->birth_ns == b->birth_ns && a->bytes == b->bytes && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns;
}

/* ---- contents ---- */

tide_status tide_folder_open_file(int dir, tide_text name, int *file_out, tide_error *err)
{
    struct name text;
    struct tide_entry entry;
    TIDE_TRY(name_of(name, &text, err));
    TIDE_TRY(look(dir, text.text, 0, &entry, err));
    if (entry.kind != TIDE_ENTRY_FILE) /* opening a pipe would wait for its other end */
        return tide_error_set(err, TIDE_STALE, "%.200s is not a file", text.text);
    const int file =
        openat(dir, text.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        return failed(errno, "open", text.text, err);
    *file_out = file;
    return TIDE_OK;
}

tide_status tide_folder_read_at(int file, uint64_t offset, char *bytes, size_t count,
                                tide_error *err)
{
    for (size_t done = 0; done < count;) {
        const ssize_t got = pread(file, bytes + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno != EINTR)
            return tide_error_os(err, errno, "read a file");
        if (got == 0)
            return tide_error_set(err, TIDE_STALE, "a file became shorter while it was read");
        done += got > 0 ? (size_t)got : 0;
    }
    return TIDE_OK;
}

tide_status tide_folder_read(int dir, tide_text name,
                             void (*take)(const void *bytes, size_t count, void *arg), void *arg,
                             struct tide_entry *entry_out, tide_error *err)
{
    struct name text;
    struct tide_entry before, after;
    int file = -1;
    TIDE_TRY(name_of(name, &text, err));
    TIDE_TRY(tide_folder_open_file(dir, name, &file, err));
    tide_status rc = look(file, "", AT_EMPTY_PATH, &before, err);
    if (rc == TIDE_OK && before.kind != TIDE_ENTRY_FILE)
        rc = tide_error_set(err, TIDE_STALE, "%.200s is not a file", text.text);
    /* Most files are small, and memory is zeroed: no more than one read needs. */
    const size_t room_bytes = rc == TIDE_OK && before.bytes < READ_BYTES
                                  ? (size_t)before.bytes + READ_MORE_BYTES
                                  : (size_t)READ_BYTES;
    char *room = tide_mem_new(tide_mem_heap(), room_bytes);
    if (room == NULL && rc == TIDE_OK)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory to read %.200s", text.text);
    while (rc == TIDE_OK) {
        const ssize_t count = read(file, room, room_bytes);
        if (count < 0 && errno != EINTR)
            rc = failed(errno, "read", text.text, err);
        if (count > 0)
            take(room, (size_t)count, arg);
        if (count == 0)
            break;
    }
    if (rc == TIDE_OK)
        rc = look(file, "", AT_EMPTY_PATH, &after, err);
    if (rc == TIDE_OK && !tide_entry_same(&before, &after))
        rc = tide_error_set(err, TIDE_STALE, "%.200s changed while it was read", text.text);
    tide_mem_free(tide_mem_heap(), room, room_bytes);
    (void)close(file);
    if (rc == TIDE_OK)
        *entry_out = before;
    return rc;
}

tide_status tide_folder_write(int dir, tide_text name, uint64_t offset, tide_text bytes,
                              tide_error *err)
{
    struct name text;
    struct stat info;
    TIDE_TRY(name_of(name, &text, err));
    const int file = openat(dir, text.text,
                            O_WRONLY | (offset == 0 ? O_CREAT : 0) | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return failed(errno, offset == 0 ? "create" : "write", text.text, err);
    tide_status rc = TIDE_OK;
    if (fstat(file, &info) != 0)
        rc = failed(errno, "write", text.text, err);
    else if ((uint64_t)info.st_size < offset)
        rc = tide_error_set(err, TIDE_STALE, "%.200s was cut short", text.text);
    for (size_t done = 0; rc == TIDE_OK && done < bytes.bytes;) {
        const ssize_t count =
            pwrite(file, bytes.data + done, bytes.bytes - done, (off_t)(offset + done));
        if (count < 0 && errno != EINTR)
            rc = failed(errno, "write", text.text, err);
        done += count > 0 ? (size_t)count : 0;
    }
    if (close(file) != 0 && rc == TIDE_OK)
        rc = failed(errno, "write", text.text, err);
    return rc;
}

tide_status tide_folder_free(int dir, uint64_t *bytes_out, tide_error *err)
{
    struct statvfs info;
    if (fstatvfs(dir, &info) != 0)
        return tide_error_os(err, errno, "ask for the free space of a folder");
    *bytes_out = (uint64_t)info.f_bavail * info.f_frsize;
    return TIDE_OK;
}

/* ---- changes ---- */

static tide_status sync_dir(int dir, tide_error *err)
{
    return fsync(dir) == 0 ? TIDE_OK : tide_error_os(err, errno, "sync a folder");
}

/* The bytes and the time are durable before the name is (S3, D42). */
static tide_status finish_file(int dir, const char *name, uint64_t mtime_s, tide_error *err)
{
    const int file = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return failed(errno, "open", name, err);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)mtime_s}};
    tide_status rc = TIDE_OK;
    if (mtime_s != 0 && futimens(file, times) != 0)
        rc = failed(errno, "set the time of", name, err);
    if (rc == TIDE_OK && fsync(file) != 0)
        rc = failed(errno, "sync", name, err);
    (void)close(file);
    return rc;
}

static int rename_with(int dir, const char *name, int to_dir, const char *to, unsigned flags)
{
    return renameat2(dir, name, to_dir, to, flags) == 0 ? 0 : errno;
}

/* Exchanges the two, looks at what was displaced, and takes it back if it is another (FOL3): there
 * is no moment at which the name is free or has partial bytes. */
static tide_status exchange(int dir, const char *partial, const char *name,
                            const struct tide_entry *expected, tide_error *err)
{
    struct tide_entry was;
    TIDE_TRY(look(dir, name, 0, &was, err));
    if (!tide_entry_same(&was, expected))
        return tide_error_set(err, TIDE_STALE, "%.200s is not what it was", name);
    int error = rename_with(dir, partial, dir, name, RENAME_EXCHANGE);
    if (error != 0)
        return failed(error, "place", name, err);
    tide_status rc = look(dir, partial, 0, &was, err);
    /* The rename itself moves the displaced file's ctime; bytes and time of its content do not. */
    was.ctime_ns = expected->ctime_ns;
    if (rc == TIDE_OK && !tide_entry_same(&was, expected))
        rc = tide_error_set(err, TIDE_STALE, "%.200s was written to while it was replaced", name);
    if (rc != TIDE_OK) {
        error = rename_with(dir, partial, dir, name, RENAME_EXCHANGE);
        if (error != 0)
            return failed(error, "put back", name, err);
    }
    return rc;
}

tide_status tide_folder_place(int dir, tide_text partial, tide_text name, uint64_t mtime_s,
                              const struct tide_entry *expected, tide_error *err)
{
    struct name from, to;
    TIDE_TRY(name_of(partial, &from, err));
    TIDE_TRY(name_of(name, &to, err));
    struct tide_entry above = {.mode = 0};
    if (expected == NULL)
        TIDE_TRY(tide_folder_look_self(dir, &above, err));
    if (fchmodat(dir, from.text, expected != NULL ? expected->mode & 0777u : above.mode & 0666u,
                 0) != 0)
        return failed(errno, "set the mode of", from.text, err);
    TIDE_TRY(finish_file(dir, from.text, mtime_s, err));
    if (expected != NULL) {
        TIDE_TRY(exchange(dir, from.text, to.text, expected, err));
    } else {
        const int error = rename_with(dir, from.text, dir, to.text, RENAME_NOREPLACE);
        if (error != 0)
            return failed(error, "place", to.text, err);
    }
    return sync_dir(dir, err);
}

tide_status tide_folder_make(int dir, tide_text name, tide_error *err)
{
    struct name text;
    TIDE_TRY(name_of(name, &text, err));
    if (mkdirat(dir, text.text, 0777) != 0)
        return failed(errno, "create", text.text, err);
    return sync_dir(dir, err);
}

tide_status tide_folder_move(int dir, tide_text name, int to_dir, tide_text to_name,
                             tide_error *err)
{
    struct name from, to;
    TIDE_TRY(name_of(name, &from, err));
    TIDE_TRY(name_of(to_name, &to, err));
    const int error = rename_with(dir, from.text, to_dir, to.text, RENAME_NOREPLACE);
    if (error != 0)
        return failed(error, "move", from.text, err);
    /* The new name first: a crash in between leaves both or the new one, never none. */
    TIDE_TRY(sync_dir(to_dir, err));
    return sync_dir(dir, err);
}

tide_status tide_folder_remove(int dir, tide_text name, const struct tide_entry *expected,
                               tide_error *err)
{
    struct name text;
    struct tide_entry is;
    TIDE_TRY(name_of(name, &text, err));
    TIDE_TRY(look(dir, text.text, 0, &is, err));
    const bool folder = is.kind == TIDE_ENTRY_FOLDER;
    if (is.kind != expected->kind || is.inode != expected->inode || is.dev != expected->dev ||
        (!folder && !tide_entry_same(&is, expected)))
        return tide_error_set(err, TIDE_STALE, "%.200s is not what it was", text.text);
    if (unlinkat(dir, text.text, folder ? AT_REMOVEDIR : 0) != 0)
        return failed(errno, "remove", text.text, err);
    return sync_dir(dir, err);
}
