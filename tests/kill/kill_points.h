/* kill_points.h - numbers every change this process makes to a file, and dies at
 * one of them.
 *
 * Two doors lead to the disk: SQLite's, where a VFS of ours stands in front of
 * the default one, and the world's own calls (write, fsync, rename, ...), which
 * the linker sends through here (--wrap).  Each operation that changes a file or
 * makes it durable gets the next number.  At the armed number the process kills
 * itself with SIGKILL, before the operation, after it, or half-way through a
 * write ("torn").  Nothing is simulated: what the files hold afterwards is what
 * the kernel received.
 *
 * A kill loses no page that was written; what a power loss forgets is the
 * subject of the simulated disk (tests/sim).
 */
#ifndef TIDE_TESTS_KILL_POINTS_H
#define TIDE_TESTS_KILL_POINTS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum kill_mode { KILL_BEFORE, KILL_AFTER, KILL_TORN, KILL_MODES } kill_mode;

extern const char *const kill_mode_names[KILL_MODES];

/* Registers the VFS; its name. */
const char *kill_vfs(void);
/* Operation `at` (from 1) is the last one; 0: none.  Restarts the count.  The count is
 * kept in `*ops`, which another process may watch. */
void kill_arm(uint64_t at, kill_mode mode, uint64_t *ops);
/* Operations so far. */
uint64_t kill_count(void);

#endif
