#include "world/watch/dir_watch.h"

#include "base/check.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { EVENT_BYTES = 16 << 10, WATCHES_MAX = 256 };

/* No IN_MODIFY: a file that is written for an hour would wake us for an hour.  It is told when it is
 * closed. */
#define CAME   (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB)
#define LEFT   (IN_DELETE | IN_MOVED_FROM)
#define WANTED (CAME | LEFT | IN_DELETE_SELF | IN_MOVE_SELF)

struct tide_dir_watch {
    tide_mem *mem;
    int fd;
    size_t at, used; /* in `bytes` */
    _Alignas(struct inotify_event) char bytes[EVENT_BYTES];
};

/* The limits are the kernel's, and differ from machine to machine. */
static tide_status too_many(const char *what, const char *limit, tide_error *err)
{
    char path[80], value[24] = "";
    (void)snprintf(path, sizeof path, "/proc/sys/fs/inotify/%s", limit);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(value, sizeof value, file) == NULL)
            value[0] = '\0';
        (void)fclose(file);
    }
    value[strcspn(value, "\n")] = '\0';
    return tide_error_set(err, TIDE_FULL,
                          "the limit of %s of this user is reached (fs.inotify.%s%s%s)", what,
                          limit, value[0] != '\0' ? " is " : "", value);
}

tide_status tide_dir_watch_new(tide_mem *mem, tide_dir_watch **watch_out, tide_error *err)
{
    tide_dir_watch *watch = tide_mem_new(mem, sizeof *watch);
    if (watch == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to watch a folder");
    watch->mem = mem;
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0) {
        const int error = errno;
        tide_mem_free(mem, watch, sizeof *watch);
        return error == EMFILE ? too_many("watchers", "max_user_instances", err)
                               : tide_error_os(err, error, "watch a folder");
    }
    *watch_out = watch;
    return TIDE_OK;
}

void tide_dir_watch_free(tide_dir_watch *watch)
{
    if (watch == NULL)
        return;
    (void)close(watch->fd);
    tide_mem_free(watch->mem, watch, sizeof *watch);
}

tide_status tide_dir_watch_add(tide_dir_watch *watch, int dir, int *id_out, tide_error *err)
{
    char path[40];
    TIDE_ASSERT(dir >= 0);
    /* The link leads to the open directory itself, wherever it is by now. */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
    const int id = inotify_add_watch(watch->fd, path, WANTED | IN_ONLYDIR | IN_EXCL_UNLINK);
    if (id < 0)
        return errno == ENOSPC ? too_many("watched folders", "max_user_watches", err)
                               : tide_error_os(err, errno, "watch a folder");
    *id_out = id;
    return TIDE_OK;
}

void tide_dir_watch_remove(tide_dir_watch *watch, int id)
{
    (void)inotify_rm_watch(watch->fd, id); /* EINVAL: it ended by itself */
}

static void translate(const struct inotify_event *event, struct tide_dir_event *out)
{
    *out = (struct tide_dir_event){
        .id = event->wd,
        .what = ((event->mask & CAME) != 0 ? TIDE_DIR_CHANGED : 0u) |
                ((event->mask & LEFT) != 0 ? TIDE_DIR_LEFT : 0u) |
                ((event->mask & IN_ISDIR) != 0 ? TIDE_DIR_FOLDER : 0u) |
                ((event->mask & IN_MOVE_SELF) != 0 ? TIDE_DIR_MOVED : 0u) |
                ((event->mask & (IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF)) != 0 ? TIDE_DIR_ENDED
                                                                                 : 0u) |
                ((event->mask & IN_Q_OVERFLOW) != 0 ? TIDE_DIR_LOST : 0u),
        .name = event->len > 0 ? tide_text_of(event->name) : TIDE_TEXT(""),
    };
}

bool tide_dir_watch_next(tide_dir_watch *watch, struct tide_dir_event *event_out)
{
    if (watch->at == watch->used) {
        const ssize_t count = read(watch->fd, watch->bytes, sizeof watch->bytes);
        watch->at = 0;
        watch->used = count > 0 ? (size_t)count : 0;
        if (watch->used == 0)
            return false;
    }
    const struct inotify_event *event =
        (const struct inotify_event *)(const void *)(watch->bytes + watch->at);
    TIDE_ASSERT(watch->used - watch->at >= sizeof *event);
    watch->at += sizeof *event + event->len;
    translate(event, event_out);
    return true;
}

/* ---- waiting ---- */

tide_status tide_waker_open(struct tide_waker *waker, tide_error *err)
{
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return tide_error_os(err, errno, "watch folders");
    waker->fd = fd + 1;
    return TIDE_OK;
}

void tide_waker_close(struct tide_waker *waker)
{
    if (waker->fd > 0)
        (void)close(waker->fd - 1);
    waker->fd = 0;
}

void tide_waker_wake(const struct tide_waker *waker)
{
    const uint64_t one = 1;
    TIDE_ASSERT(waker->fd > 0);
    (void)!write(waker->fd - 1, &one, sizeof one); /* full: it is awake anyway */
}

void tide_dir_watch_wait(tide_dir_watch *const *watches, size_t count,
                         const struct tide_waker *waker, uint64_t wait_ms)
{
    struct pollfd fds[WATCHES_MAX + 1] = {{.fd = waker->fd - 1, .events = POLLIN}};
    uint64_t woken = 0;
    TIDE_ASSERT(count <= WATCHES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (watches[i] != NULL && watches[i]->at < watches[i]->used)
            return; /* read already, not taken yet */
        fds[i + 1] =
            (struct pollfd){.fd = watches[i] == NULL ? -1 : watches[i]->fd, .events = POLLIN};
    }
    const int timeout = wait_ms == UINT64_MAX ? -1 : wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
    if (poll(fds, (nfds_t)count + 1, timeout) > 0 && fds[0].revents != 0)
        (void)!read(waker->fd - 1, &woken, sizeof woken);
}
