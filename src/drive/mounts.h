/* mounts.h - folders of other users that have a place in a drive: which there are, where they lead, and
 * how it is with each (D10, D16, D35).
 *
 * A shortcut online (`remoteItem`, a folder) is a mount.  When it is attached, it has a row of its own in
 * the list of drives, with its tables, its marker and its rounds at the target; `drive` is its number.
 * The rows of the drive that it is in have the shortcut as an item that is not synced, so its name stays
 * taken; where the shortcut is and whether it is still there is read from them.
 *
 * What was read of a shortcut's target is kept by the shortcut's id.  It is written with the page that
 * brought it, and means nothing before the round has ended (DST1): only then a row has the id.
 *
 * Invariants (tests/unit/drive/drive_drives_test.c, tests/unit/drive/sync/mounts.c):
 *   DMT1  a shortcut has at most one drive, and a drive that is a mount exactly one shortcut.
 *   DMT2  no change of a mount's state deletes anything, here or online.
 *   DMT3  mounts are in drives of the user, never in other mounts: shares that lead to each other end.
 */
#ifndef TIDE_DRIVE_MOUNTS_H
#define TIDE_DRIVE_MOUNTS_H

#include "drive/drives.h"
#include "drive/store/look.h"

/* What the rows of the drive say of the shortcut. */
typedef enum tide_drive_shortcut {
    TIDE_DRIVE_SHORTCUT_UNKNOWN, /* nothing that counts, for now */
    TIDE_DRIVE_SHORTCUT_THERE,
    TIDE_DRIVE_SHORTCUT_GONE, /* by a finished round (S12) */
} tide_drive_shortcut;

struct tide_drive_mount {
    char id[TIDE_DRIVE_LOOK_ID_BYTES]; /* of the shortcut */
    char target_drive[TIDE_DRIVE_LOOK_ID_BYTES], target_id[TIDE_DRIVE_LOOK_ID_BYTES];
    uint32_t drive; /* 0: it has none */
    tide_drive_mount_state state;
    char why[TIDE_DRIVE_WHY_BYTES];
    tide_drive_shortcut shortcut;
    uint64_t item,
        folder; /* of the shortcut, and the item of the folder that it is in; 0: unknown */
    char name[TIDE_DRIVE_LOOK_NAME_BYTES];
};

/* A shortcut to a folder was seen in the drive `parent`.  Ids are as rows have them. */
tide_status tide_drive_mount_seen(tide_rows db, uint32_t parent, tide_text id,
                                  tide_text target_drive, tide_text target_id, tide_error *err);
/* All of a drive, by id; none, where no drive ever had one. */
tide_status tide_drive_mounts_each(tide_rows db, uint32_t parent,
                                   void (*visit)(const struct tide_drive_mount *mount, void *arg),
                                   void *arg, tide_error *err);

/* Gives the mount a drive: `row` has account, marker, folder and ids, and gets its name and number; the
 * rules of the parent that fit in any folder are its rules, too.  TIDE_EXISTS: another drive has its
 * folder. */
tide_status tide_drive_mount_register(tide_rows db, uint32_t parent, const char *id,
                                      const char *shortcut_name, struct tide_drive_row *row,
                                      tide_error *err);
/* Another shortcut to the same target takes over what `from` had. */
tide_status tide_drive_mount_adopt(tide_rows db, uint32_t parent, const char *from, const char *id,
                                   tide_error *err);
/* When it becomes ATTACHED, all is planned anew. */
tide_status tide_drive_mount_state_set(tide_rows db, uint32_t parent, const char *id,
                                       tide_drive_mount_state state, const char *why,
                                       tide_error *err);
/* Its folder was moved there, because its shortcut was renamed or moved. */
tide_status tide_drive_mount_moved(tide_rows db, uint32_t drive, const char *dir,
                                   const char *shortcut_name, tide_error *err);
/* Its drive goes, and its tables; it may get another one.  And: it is not known any more. */
tide_status tide_drive_mount_release(tide_rows db, uint32_t parent, const char *id,
                                     tide_error *err);
tide_status tide_drive_mount_forget(tide_rows db, uint32_t parent, const char *id, tide_error *err);

/* What `drive status` says of a drive: how many items of it are shared folders that are synced, and so not
 * among what is not synced, on each side; and how many shared folders need a user. */
struct tide_drive_mount_counts {
    uint64_t online, here;
    uint64_t trouble;
};
tide_status tide_drive_mount_counts(tide_rows db, uint32_t parent,
                                    struct tide_drive_mount_counts *counts_out, tide_error *err);

/* "attached", "refused", ... */
const char *tide_drive_mount_word(tide_drive_mount_state state);

#endif
