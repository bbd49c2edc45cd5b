/* process.h - other processes of this machine. */
#ifndef TIDE_WORLD_PROCESS_H
#define TIDE_WORLD_PROCESS_H

#include <stdbool.h>

/* Whether a process is stopped (SIGSTOP, Ctrl-Z): it holds what it has and does not answer.  false:
 * it is not, or that is unknown. */
bool tide_process_is_stopped(long pid);

#endif
