/* events.h - what the main thread of a resident process waits for: signals, its settings file, its
 * home, the clock, and other threads.
 *
 * Everything is a file descriptor and all are waited for together, so a process without work never
 * wakes up.  Signals are taken here alone: no code has to be safe inside a signal handler.
 */
#ifndef TIDE_CLI_RESIDENT_EVENTS_H
#define TIDE_CLI_RESIDENT_EVENTS_H

#include "base/status.h"

#include <stdbool.h>

/* Bits of what happened. */
enum {
    CLI_EVENT_STOP = 1,     /* SIGTERM or SIGINT */
    CLI_EVENT_RELOAD = 2,   /* SIGHUP */
    CLI_EVENT_SETTINGS = 4, /* the settings file changed */
    CLI_EVENT_CLOCK = 8,    /* the wall clock was set, or the machine was suspended */
    CLI_EVENT_WAKE = 16,    /* cli_events_wake() */
    CLI_EVENT_HOME = 32,    /* the home may have been deleted or moved */
};

/* -1: not watched. */
struct cli_events {
    int signals, wake, clock, settings, home;
    char settings_name[256]; /* of the file in its directory */
};

/* Blocks the signals for this thread and all that it starts: call it before any other thread
 * runs.  A file whose directory cannot be watched, and a clock that cannot, are left out. */
tide_status cli_events_open(struct cli_events *events, const char *settings_path, tide_error *err);
/* Watches a directory and a file in it, which exist by now; again: the new ones instead. */
void cli_events_home(struct cli_events *events, const char *dir, const char *file);
void cli_events_close(struct cli_events *events); /* the signals stay blocked */

/* Waits; `wait_ms` below 0: without an end.  Returns what happened, 0: nothing in that time. */
unsigned cli_events_wait(struct cli_events *events, long wait_ms);
/* From any thread; `events` is a struct cli_events. */
void cli_events_wake(void *events);
/* Ends the program as the signal would have. */
void cli_events_die(void);

#endif
