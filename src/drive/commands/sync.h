/* sync.h - runs jobs for drives on an engine, ours or that of the process that has the home: for
 * `drive sync`, and for `drive plan`, which only looks. */
#ifndef TIDE_DRIVE_COMMANDS_SYNC_H
#define TIDE_DRIVE_COMMANDS_SYNC_H

#include "cli/run/outcome.h"
#include "drive/commands/home.h"
#include "drive/commands/look.h"

/* What an engine did for a drive since it started, and at the first look at it. */
struct drive_done {
    uint64_t downloaded, downloaded_bytes, uploaded, uploaded_bytes;
};

struct drive_synced {
    struct drive_look look;
    struct drive_done first, now;
    bool seen;
    bool looked; /* for `drive plan`: both sides were looked at now */
};

struct drive_sync {
    struct cli *cli;
    struct cli_work work; /* its accounts: those of the drives */
    struct drive_list drives;
    struct drive_synced *synced; /* like drives.rows, with room for DRIVES_MAX */
    const char *account;         /* only its drives; NULL: any */
    bool full;                   /* list everything */
    bool look_only;              /* plan nothing */
};

/* Finds the drives that the command line names, and their accounts. */
tide_status drive_sync_prepare(struct drive_sync *sync, const char *const *names, size_t count);
tide_status drive_sync_done(struct drive_sync *sync); /* a zeroed one is fine */

#endif
