/* kill_preload.c - numbers every change that a program makes to a file, and kills it at one of them.
 *
 * A library for LD_PRELOAD, so that the program is the one that users run.  (kill_points.h does the
 * same inside of a test program, by the linker and a VFS of SQLite.)  The environment says what to do:
 *
 *   TIDE_KILL_COUNT  a file of 8 bytes: how many operations there were, for a test to watch
 *   TIDE_KILL_FILE   counts only operations on files whose path contains this; "socket:" counts what is
 *                    sent instead: requests to servers, and statements to a database that is one
 *   TIDE_KILL_AT     the operation that is the last one, from 1; 0 or absent: none
 *   TIDE_KILL_MODE   before, after, torn: not done, done, or half of a write done
 *
 * An operation is a write, a sync, a truncation, a rename or a removal, or a send. */
#undef _FILE_OFFSET_BITS /* with it pwrite is another name of pwrite64, and both are needed here */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };
#define SOCKETS "socket:"

static uint64_t own_count;
static uint64_t *count = &own_count;
static uint64_t armed_at;
static const char *only, *mode = "after";

__attribute__((constructor)) static void arm(void)
{
    const char *path = getenv("TIDE_KILL_COUNT"), *at = getenv("TIDE_KILL_AT");
    only = getenv("TIDE_KILL_FILE");
    if (getenv("TIDE_KILL_MODE") != NULL)
        mode = getenv("TIDE_KILL_MODE");
    if (path != NULL) {
        const int fd = open(path, O_RDWR | O_CLOEXEC);
        void *map = fd < 0 ? MAP_FAILED
                           : mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
            abort(); /* a test that counts nothing would pass */
        (void)close(fd);
        count = map;
    }
    armed_at = at == NULL ? 0 : strtoull(at, NULL, 10);
}

static _Noreturn void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;)
        (void)pause(); /* the signal is on its way */
}

/* True: this is the one, and it is to be done, wholly or half, before dying. */
static bool enter(const char *path)
{
    if (only != NULL && strstr(path, only) == NULL)
        return false;
    if (__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST) != armed_at)
        return false;
    if (strcmp(mode, "before") == 0)
        die();
    return true;
}

static bool enter_fd(int fd)
{
    char link[64], path[PATH_ROOM];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t bytes = readlink(link, path, sizeof path - 1);
    if (bytes <= 0)
        return false;
    path[bytes] = '\0';
    const bool sends = only != NULL && strcmp(only, SOCKETS) == 0;
    if (sends ? strncmp(path, SOCKETS, sizeof SOCKETS - 1) != 0 : path[0] != '/')
        return false; /* also a pipe */
    return enter(path);
}

static size_t part(bool last, size_t bytes)
{
    return last && strcmp(mode, "torn") == 0 ? bytes / 2 : bytes;
}

/* The function of the C library; POSIX lets dlsym() return functions, ISO C does not. */
#define REAL(type, name, ...)                                                                      \
    static type (*real)(__VA_ARGS__);                                                              \
    if (real == NULL)                                                                              \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

#define WRITING(name, off_type)                                                                    \
    ssize_t name(int fd, const void *bytes, size_t bytes_count, off_type at)                       \
    {                                                                                              \
        REAL(ssize_t, name, int, const void *, size_t, off_type);                                  \
        const bool last = enter_fd(fd);                                                            \
        const ssize_t wrote = real(fd, bytes, part(last, bytes_count), at);                        \
        if (last)                                                                                  \
            die();                                                                                 \
        return wrote;                                                                              \
    }
WRITING(pwrite, off_t)
WRITING(pwrite64, off64_t)

ssize_t write(int fd, const void *bytes, size_t bytes_count)
{
    REAL(ssize_t, write, int, const void *, size_t);
    const bool last = enter_fd(fd);
    const ssize_t wrote = real(fd, bytes, part(last, bytes_count));
    if (last)
        die();
    return wrote;
}

ssize_t send(int fd, const void *bytes, size_t bytes_count, int flags)
{
    REAL(ssize_t, send, int, const void *, size_t, int);
    const bool last = enter_fd(fd);
    const ssize_t sent = real(fd, bytes, part(last, bytes_count), flags);
    if (last)
        die();
    return sent;
}

#define ON_FD(name, parameters, types, arguments)                                                  \
    int name parameters                                                                            \
    {                                                                                              \
        REAL(int, name, types);                                                                    \
        const bool last = enter_fd(fd);                                                            \
        const int rc = real arguments;                                                             \
        if (last)                                                                                  \
            die();                                                                                 \
        return rc;                                                                                 \
    }
#define TWO(a, b) a, b
ON_FD(fsync, (int fd), int, (fd))
ON_FD(fdatasync, (int fd), int, (fd))
ON_FD(ftruncate, (int fd, off_t bytes), TWO(int, off_t), (fd, bytes))
ON_FD(ftruncate64, (int fd, off64_t bytes), TWO(int, off64_t), (fd, bytes))

#define ON_PATH(name, parameters, types, path, arguments)                                          \
    int name parameters                                                                            \
    {                                                                                              \
        REAL(int, name, types);                                                                    \
        const bool last = enter(path);                                                             \
        const int rc = real arguments;                                                             \
        if (last)                                                                                  \
            die();                                                                                 \
        return rc;                                                                                 \
    }
#define THREE(a, b, c)   a, b, c
#define FOUR(a, b, c, d) a, b, c, d
ON_PATH(unlink, (const char *path), const char *, path, (path))
ON_PATH(unlinkat, (int dir, const char *path, int flags), THREE(int, const char *, int), path,
        (dir, path, flags))
ON_PATH(rename, (const char *from, const char *to), TWO(const char *, const char *), to, (from, to))
ON_PATH(renameat, (int from_dir, const char *from, int to_dir, const char *to),
        FOUR(int, const char *, int, const char *), to, (from_dir, from, to_dir, to))
