/* home.h - names and lock of a directory that holds a ledger in a SQLite file.
 *
 * A process that writes to TIDE_STATE_FILE, an engine or a command, holds a lock on
 * TIDE_CONTROL_LOCK beside it.  A command holds it for one change when no engine answers
 * on TIDE_CONTROL_SOCKET, an engine as long as it runs. */
#ifndef TIDE_LEDGER_HOME_H
#define TIDE_LEDGER_HOME_H

#include "world/world.h"

#define TIDE_STATE_FILE     "state.db"
#define TIDE_CONTROL_SOCKET "engine.sock"
#define TIDE_CONTROL_LOCK   "engine.lock"

/* Takes the lock at `path`; `holder` ends with "process PID".  Waits a few seconds for a command, and
 * with `engines` also for an engine: it may be ending.  Does not wait for a process that is stopped.
 * TIDE_BUSY: `err` names the process. */
tide_status tide_home_lock(tide_world *world, const char *path, const char *holder, bool engines,
                           tide_file_lock **lock_out, tide_error *err);
/* Whether an engine holds the lock now, which may be starting or ending: then its socket is not there.
 * Makes the file. */
bool tide_home_has_engine(tide_world *world, const char *path, const char *holder);

#endif
