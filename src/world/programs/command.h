/* command.h - runs a program of this machine and takes what it prints.
 *
 * There is no shell: the program gets an argument vector, the environment that the caller names,
 * and nothing else of this process.  It has a process group of its own, and its whole group is gone
 * when the call returns.
 *
 * It uses real processes, so it is only for the real world.
 *
 * Invariants:
 *   CMD1  the program inherits standard input, output and error, and no other file.
 *   CMD2  no process of its group runs when the call returns, whatever it returns.
 *   CMD3  at most `output_bytes_max` bytes are kept; a program that prints more is killed.
 *   CMD4  the call takes at most `wait_ms` and a moment.
 */
#ifndef TIDE_WORLD_PROGRAMS_COMMAND_H
#define TIDE_WORLD_PROGRAMS_COMMAND_H

#include "base/buf.h"
#include "world/world.h"

struct tide_command {
    const char *const *arguments;   /* up to NULL; the first is the program's absolute path */
    const char *const *environment; /* "NAME=value", up to NULL */
    const char *dir;                /* where it runs; NULL: / */
    tide_text input;                /* its standard input */
    uint64_t wait_ms;
    size_t output_bytes_max;
    size_t errors_bytes_max; /* of what it prints on standard error, the first are kept */
};

struct tide_command_end {
    int code;   /* its exit code; -1: a signal ended it */
    int signal; /* 0: none */
};

/* Appends what it printed to `output` and `errors`.  TIDE_OK: it ended, with any code.
 * TIDE_NOT_FOUND: no such program; TIDE_TIMEOUT; TIDE_FULL: it printed too much (what was printed
 * until then is there); TIDE_CANCELED within 50 ms of `cancel` (may be NULL); TIDE_STOPPED;
 * TIDE_IO. */
tide_status tide_command_run(tide_world *world, const struct tide_command *command,
                             const tide_cancel *cancel, tide_buf *output, tide_buf *errors,
                             struct tide_command_end *end_out, tide_error *err);

#endif
