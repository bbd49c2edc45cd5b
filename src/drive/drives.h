/* drives.h - the drives of a home: a folder each, synced with a drive of an account (D10).
 *
 * All drives are in the ledger of their home, and each has tables of its own beside it: those of
 * store/, with the drive's number in their names (docs/decisions.md).  So one engine, one governor
 * for each account and one transaction serve them all, and no drive reads a row of another.
 *
 * Functions take the connection of a transaction that the caller begins and ends; readers work on
 * any connection, and find nothing where no drive was ever added.  On PostgreSQL there are none: a
 * folder is on one machine, and so is its state.
 *
 * Invariants (tests/unit/drive/drive_drives_test.c):
 *   DRV1  a number is never given twice, also after its drive was removed.
 *   DRV2  no two drives have the same name or the same folder, and no folder is inside another's but
 *         that of a shared folder (mounts.h), which is inside its parent's.
 *   DRV3  removing a drive removes its tables and rules, those of its shared folders, and no other's.
 */
#ifndef TIDE_DRIVE_DRIVES_H
#define TIDE_DRIVE_DRIVES_H

#include "db/rows.h"
#include "drive/plan/plan.h"
#include "drive/store/store.h"
#include "system/system.h"

enum {
    TIDE_DRIVE_NAME_BYTES = 64,
    TIDE_DRIVE_DIR_BYTES = 4096,
    TIDE_DRIVE_MARKER_BYTES = 40,
    TIDE_DRIVE_RULE_BYTES_MAX = 1024,
    TIDE_DRIVE_WHY_BYTES = 256,
    TIDE_DRIVE_MOUNTS_MAX = 200, /* shared folders of a drive that are synced */
};

/* How it is with a folder that another user shares, and that has a place in the drive (mounts.h). */
typedef enum tide_drive_mount_state {
    TIDE_DRIVE_MOUNT_NEW = 0,      /* not attached yet; its folder was not made */
    TIDE_DRIVE_MOUNT_ATTACHED = 1, /* synced as a drive of its own */
    TIDE_DRIVE_MOUNT_REFUSED = 2,  /* its target answers 400, 403 or 404 */
    TIDE_DRIVE_MOUNT_DETACHED = 3, /* removed here; its target is left alone */
    TIDE_DRIVE_MOUNT_LOST = 4,     /* its shortcut is gone online; its folder is left alone */
    TIDE_DRIVE_MOUNT_HELD = 5,     /* it cannot be where it should be */
    TIDE_DRIVE_MOUNT_IGNORED = 6,  /* by a rule of the drive that it is in */
} tide_drive_mount_state;

struct tide_drive_row {
    uint32_t number; /* of its tables */
    uint32_t account;
    char account_name[128];
    char endpoint[TIDE_ENDPOINT_BYTES]; /* "": Microsoft's own */
    char name[TIDE_DRIVE_NAME_BYTES];   /* what users type */
    char dir[TIDE_DRIVE_DIR_BYTES];     /* absolute, without a '/' at its end */
    char drive_id[TIDE_DRIVE_ID_BYTES_MAX];
    char root_id[TIDE_DRIVE_ID_BYTES_MAX];
    char marker[TIDE_DRIVE_MARKER_BYTES]; /* in .tidemark-root of the folder (S14) */
    tide_drive_mode mode;
    bool business;
    /* Of a shared folder: the drive that it is in, and how it is with it. */
    uint32_t parent; /* 0: it is none */
    char parent_name[TIDE_DRIVE_NAME_BYTES];
    tide_drive_mount_state mount;
    char mount_why[TIDE_DRIVE_WHY_BYTES]; /* why it is not synced; "" */
};
/* Whether it is to be synced: a shared folder may have no place, or no target, for now. */
static inline bool tide_drive_row_syncs(const struct tide_drive_row *row)
{
    return row->parent == 0 || row->mount == TIDE_DRIVE_MOUNT_ATTACHED ||
           row->mount == TIDE_DRIVE_MOUNT_REFUSED; /* which may answer again */
}

/* The tables of the system: its accounts, drives and rules. */
tide_status tide_drives_tables(tide_rows db, tide_error *err);

/* Tables of drives that an older version wrote become those of this one.  TIDE_NEWER. */
tide_status tide_drives_upgrade(tide_rows db, tide_error *err);

/* TIDE_EXISTS: the name is taken, or the folder is that of another drive, inside it or around it. */
tide_status tide_drives_free(tide_rows db, const struct tide_drive_row *row, tide_error *err);
/* Adds the drive with its tables, and sets its number; of a shared folder `parent` counts, and the caller
 * writes which one it is (mounts.h).  TIDE_EXISTS: as above; TIDE_INVALID: the
 * ledger is on PostgreSQL. */
tide_status tide_drives_add(tide_rows db, struct tide_drive_row *row, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_drives_get(tide_rows db, uint32_t number, struct tide_drive_row *row_out,
                            tide_error *err);
/* The same for a job of the drive: there was a drive, so there are tables, and they are not looked for. */
tide_status tide_drives_known(tide_rows db, uint32_t number, struct tide_drive_row *row_out,
                              tide_error *err);
/* Whether it is still there, for such a job. */
tide_status tide_drives_has(tide_rows db, uint32_t number, bool *there_out, tide_error *err);
tide_status tide_drives_named(tide_rows db, const char *name, struct tide_drive_row *row_out,
                              tide_error *err);
/* By name. */
tide_status tide_drives_each(tide_rows db,
                             void (*visit)(const struct tide_drive_row *row, void *arg), void *arg,
                             tide_error *err);
/* Of the drive and its shared folders. */
tide_status tide_drives_mode_set(tide_rows db, uint32_t number, tide_drive_mode mode,
                                 tide_error *err);
/* The drive, its tables and its rules, and its shared folders with theirs; no file is touched.  A shared
 * folder by itself is detached: it stays known, so that it is not attached again. */
tide_status tide_drives_remove(tide_rows db, uint32_t number, tide_error *err);
/* The same connection, for the functions of store/. */
tide_rows tide_drives_rows(tide_rows db, uint32_t number);

/* ---- ignored paths, in their order (ignore/ignore.h) ---- */

/* At the end.  TIDE_EXISTS: it is there already; TIDE_INVALID: it is no pattern. */
tide_status tide_drive_rules_add(tide_rows db, uint32_t number, tide_text pattern, tide_error *err);
tide_status tide_drive_rules_remove(tide_rows db, uint32_t number, tide_text pattern,
                                    tide_error *err);
tide_status tide_drive_rules_each(tide_rows db, uint32_t number,
                                  void (*visit)(tide_text pattern, void *arg), void *arg,
                                  tide_error *err);

/* "two-way", "download-only", "upload-only". */
const char *tide_drive_mode_name(tide_drive_mode mode);
/* TIDE_INVALID. */
tide_status tide_drive_mode_of(const char *name, tide_drive_mode *mode_out, tide_error *err);

#endif
