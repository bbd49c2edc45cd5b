/* sim_disk.h - a disk that loses and tears what was not synced.
 *
 * Files live in memory.  SQLite reaches them through a VFS whose name is
 * tide_world_vfs(); the world's own file operations see the same files.
 * Directories are made by the world's dir_make; "/" is there from the start.
 *
 * Every file has two contents: what the process sees, and what would be found
 * after the power went.  Between them stands the ordered list of writes and
 * truncations that were not synced.  At a power loss each of them is kept,
 * dropped or torn (by 512-byte sector, at times inside one), each by a toss of
 * its own.  A file's creation, removal or renaming is durable once the file or
 * its directory was synced; before that a toss decides too.
 *
 * Invariants:
 *   SDSK1  what a successful sync covered is found after every crash.
 *   SDSK2  a write that started after a sync began is not covered by it.
 *   SDSK3  after a failed sync its writes are still seen, and never become durable by syncing again
 *          (that is how real kernels behave; E1.10).
 *   SDSK4  a handle opened in an earlier life fails with SQLITE_IOERR in every operation but
 *          xClose, xUnlock and the release of shared memory.
 *   SDSK5  in a dead world nothing reaches the disk.
 */
#ifndef TIDE_SIM_DISK_H
#define TIDE_SIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tide_sim tide_sim;

/* Zero is a calm and endless disk with a little latency. */
struct tide_sim_disk_options {
    uint64_t bytes_max;               /* 0: 1 GiB */
    uint32_t sync_us_max;             /* latency of a sync; 0: 3000 */
    uint32_t write_error_per_million; /* SQLITE_IOERR_WRITE, nothing written */
    uint32_t sync_error_per_million;  /* SQLITE_IOERR_FSYNC, see SDSK3 */
    uint32_t full_per_million;        /* SQLITE_FULL, nothing written */
};

struct tide_sim_disk_stats {
    uint64_t writes;
    uint64_t bytes_written;
    uint64_t syncs;
    uint64_t syncs_failed;
    uint64_t faults; /* write errors and refusals for lack of room */
    /* What power losses did to unsynced writes. */
    uint64_t kept;
    uint64_t dropped;
    uint64_t torn;
};

struct tide_sim_disk_stats tide_sim_disk_stats(tide_sim *sim);

/* Room on the disk, also below what is used already: then nothing may grow. */
void tide_sim_disk_room(tide_sim *sim, uint64_t bytes_max);
uint64_t tide_sim_disk_used(tide_sim *sim);
/* Fails one operation: the next is 1, the one after it 2; 0 takes it back.
 * `path` NULL means any file, else files whose path ends so ("-wal"). */
void tide_sim_disk_fail_write(tide_sim *sim, const char *path, uint32_t nth);
void tide_sim_disk_fail_sync(tide_sim *sim, const char *path, uint32_t nth);

/* Flips one seeded bit of the durable and the visible content.  false: no such
 * file, or an empty one. */
bool tide_sim_disk_rot(tide_sim *sim, const char *path);
/* Forgets the file, at once and for good, as if a user removed it. */
bool tide_sim_disk_remove(tide_sim *sim, const char *path);
/* The same for a directory with all that is in it. */
bool tide_sim_disk_remove_dir(tide_sim *sim, const char *path);
/* Visible size, or -1. */
int64_t tide_sim_disk_file_bytes(tide_sim *sim, const char *path);

#endif
