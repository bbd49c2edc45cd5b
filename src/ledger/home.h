/* home.h - names and lock of a directory that holds a ledger in a SQLite file.
 *
 * A process that writes to TIDE_STATE_FILE, an engine or a command, holds a lock on
 * TIDE_CONTROL_LOCK beside it.  A command holds it for one change when no engine answers
 * on TIDE_CONTROL_SOCKET; an engine that finds it held waits up to
 * TIDE_CONTROL_LOCK_WAIT_MS before it gives up. */
#ifndef TIDE_LEDGER_HOME_H
#define TIDE_LEDGER_HOME_H

#define TIDE_STATE_FILE     "state.db"
#define TIDE_CONTROL_SOCKET "engine.sock"
#define TIDE_CONTROL_LOCK   "engine.lock"

enum { TIDE_CONTROL_LOCK_WAIT_MS = 3000 };

#endif
