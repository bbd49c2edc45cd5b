#include "cli/resident/events.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static sigset_t our_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    return set;
}

/* A timer that never fires in our time, but is canceled when the clock is set. */
static void clock_arm(int fd)
{
    const struct itimerspec far = {.it_value = {.tv_sec = (time_t)253402300800}}; /* year 10000 */
    if (fd >= 0)
        (void)timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
}

/* The directory is watched, not the file: editors replace files. */
static int settings_open(struct cli_events *events, const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL || (size_t)(slash - path) >= sizeof dir ||
        strlen(slash + 1) >= sizeof events->settings_name)
        return -1;
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
    (void)snprintf(events->settings_name, sizeof events->settings_name, "%s", slash + 1);
    const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd >= 0 &&
        inotify_add_watch(
            fd, dir, IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR) < 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Deleting a file that is open changes its links, which is IN_ATTRIB. */
void cli_events_home(struct cli_events *events, const char *dir, const char *file)
{
    if (events->home >= 0)
        (void)close(events->home);
    events->home = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (events->home < 0)
        return;
    (void)inotify_add_watch(events->home, dir, IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    (void)inotify_add_watch(events->home, file, IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF);
}

tide_status cli_events_open(struct cli_events *events, const char *settings_path, tide_error *err)
{
    const sigset_t set = our_signals();
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    events->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    events->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    events->clock = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    events->settings = settings_open(events, settings_path);
    events->home = -1;
    clock_arm(events->clock);
    if (events->signals >= 0 && events->wake >= 0)
        return TIDE_OK;
    cli_events_close(events);
    return tide_error_set(err, TIDE_IO, "cannot wait for signals: %s", strerror(errno));
}

void cli_events_close(struct cli_events *events)
{
    int *const fds[] = {&events->signals, &events->wake, &events->clock, &events->settings,
                        &events->home};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (*fds[i] >= 0)
            (void)close(*fds[i]);
        *fds[i] = -1;
    }
}

static unsigned take_signals(const struct cli_events *events)
{
    struct signalfd_siginfo info;
    unsigned happened = 0;
    while (read(events->signals, &info, sizeof info) == (ssize_t)sizeof info)
        happened |= info.ssi_signo == SIGHUP ? CLI_EVENT_RELOAD : CLI_EVENT_STOP;
    return happened;
}

static unsigned take_settings(const struct cli_events *events)
{
    _Alignas(struct inotify_event) char bytes[4096];
    unsigned happened = 0;
    ssize_t used = 0;
    while ((used = read(events->settings, bytes, sizeof bytes)) > 0) {
        const struct inotify_event *event = NULL;
        for (ssize_t at = 0; at < used; at += (ssize_t)(sizeof *event + event->len)) {
            event = (const struct inotify_event *)(const void *)(bytes + at);
            if ((event->mask & IN_Q_OVERFLOW) != 0 ||
                (event->len > 0 && strcmp(event->name, events->settings_name) == 0))
                happened |= CLI_EVENT_SETTINGS;
        }
    }
    return happened;
}

static unsigned take_home(const struct cli_events *events)
{
    _Alignas(struct inotify_event) char bytes[4096];
    while (read(events->home, bytes, sizeof bytes) > 0)
        ; /* which one it was does not matter */
    return CLI_EVENT_HOME;
}

static unsigned take_clock(const struct cli_events *events)
{
    uint64_t ticks = 0;
    if (read(events->clock, &ticks, sizeof ticks) < 0 && errno != ECANCELED)
        return 0;
    clock_arm(events->clock);
    return CLI_EVENT_CLOCK;
}

static unsigned take_wakes(const struct cli_events *events)
{
    uint64_t count = 0;
    return read(events->wake, &count, sizeof count) == (ssize_t)sizeof count ? CLI_EVENT_WAKE : 0;
}

unsigned cli_events_wait(struct cli_events *events, long wait_ms)
{
    struct pollfd fds[] = {{.fd = events->signals, .events = POLLIN},
                           {.fd = events->wake, .events = POLLIN},
                           {.fd = events->clock, .events = POLLIN},
                           {.fd = events->settings, .events = POLLIN},
                           {.fd = events->home, .events = POLLIN}};
    unsigned happened = 0;
    if (poll(fds, sizeof fds / sizeof fds[0],
             wait_ms < 0         ? -1
             : wait_ms > INT_MAX ? INT_MAX
                                 : (int)wait_ms) <= 0)
        return 0;
    if (fds[0].revents != 0)
        happened |= take_signals(events);
    if (fds[1].revents != 0)
        happened |= take_wakes(events);
    if (fds[2].revents != 0)
        happened |= take_clock(events);
    if (fds[3].revents != 0)
        happened |= take_settings(events);
    if (fds[4].revents != 0)
        happened |= take_home(events);
    return happened;
}

void cli_events_wake(void *arg)
{
    const struct cli_events *events = arg;
    const uint64_t one = 1;
    (void)!write(events->wake, &one, sizeof one); /* full: it is awake anyway */
}

void cli_events_die(void)
{
    const sigset_t set = our_signals();
    (void)signal(SIGTERM, SIG_DFL);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(SIGTERM);
}
