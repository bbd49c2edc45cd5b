/* scan.h - walks the folder and hands out what differs from the rows (D1, S2, S13, S14, D28).
 *
 * It reads rows and files and writes neither: differences go to the caller's function, in slices
 * (compare.h).  Folders are walked from the root's descriptor, no link is followed, and another file
 * system inside is not entered.  A file is hashed unless its size, times and identity are those of
 * its row and are older than its hash by two seconds (D14).
 *
 * Invariants (tests/unit/drive/drive_scan_test.c):
 *   DSC1  a folder counts as read only if it was read to its end, without error, and is on the
 *         file system of the root.  A file that could not be read or changed meanwhile is unsure,
 *         and so is an empty folder in place of one that had rows (F13), with these.
 *   DSC2  `complete` is true only if the marker was right before and after, and the root is
 *         the same directory: an unmounted disk is incomplete, not empty, and nothing is gone then.
 *   DSC3  nothing outside the root is opened.
 *   DSC4  a folder with a marker is that of another drive: its name is taken, and nothing in it is a
 *         row of this one, also when that drive is not synced any more (D16).
 *   DSC5  a folder that is there and was not read, or an entry that could not be looked at, is unread: an
 *         item that is missing elsewhere may have been moved there (plan.h DPL6).  Not so a place where
 *         a disk is or was mounted, because nothing is moved there by renaming it.
 */
#ifndef TIDE_DRIVE_LOCAL_SCAN_H
#define TIDE_DRIVE_LOCAL_SCAN_H

#include "base/mem.h"
#include "drive/ignore/ignore.h"
#include "drive/names/names.h"
#include "drive/store/store.h"
#include "world/folder.h"

#define TIDE_DRIVE_MARKER ".tidemark-root"

/* Why an entry is not synced; shown once (D27, D28). */
typedef enum tide_drive_skip {
    TIDE_DRIVE_SKIP_NAME,  /* `refusal` says which rule */
    TIDE_DRIVE_SKIP_LINK,  /* */
    TIDE_DRIVE_SKIP_OTHER, /* socket, pipe, device */
    TIDE_DRIVE_SKIP_IGNORED,
    TIDE_DRIVE_SKIP_MOUNT,      /* another file system, or one that is no longer there */
    TIDE_DRIVE_SKIP_DRIVE,      /* the folder of another drive: it has a marker (S14) */
    TIDE_DRIVE_SKIP_UNREADABLE, /* a folder or file that could not be read */
} tide_drive_skip;

struct tide_drive_scan_ops {
    /* A transaction with tide_drive_scan_write(). */
    tide_status (*write)(void *arg, struct tide_drive_difference *list, size_t count,
                         tide_error *err);
    void (*skipped)(void *arg, tide_text path, tide_drive_skip why, tide_drive_refusal refusal);
    void (*ours)(void *arg, tide_text name); /* a file of ours lies in a folder; NULL is fine */
};

struct tide_drive_scan {
    const char *root;
    const char *marker; /* what TIDE_DRIVE_MARKER must contain */
    bool business;
    const tide_ignore *ignore; /* NULL: nothing */
    uint64_t now_ns;           /* of the wall clock */
    tide_rows db;              /* to read; with the number of the drive */
    const struct tide_drive_scan_ops *ops;
    void *arg;
    /* Paths of folders that changed, "" the root: only these are read, and new ones in them.  Of a
     * path that is not a known folder, the nearest one above it.  None: all. */
    const tide_text *folders;
    size_t folders_count;
};

/* TIDE_NOT_FOUND, TIDE_INVALID: the root or its marker is not there; nothing was written.  Failures of
 * the caller's functions are returned: what is written until then is right.  *hashed_out: bytes that
 * were hashed. */
tide_status tide_drive_scan(const struct tide_drive_scan *scan, tide_mem *mem, bool *complete_out,
                            uint64_t *hashed_out, tide_error *err);
/* TIDE_INVALID: the directory is not the drive's (S14). */
tide_status tide_drive_marker_check(int root, const char *marker, tide_error *err);
/* D14: the file is the one that was hashed, and was not written in that moment. */
bool tide_drive_scan_is_known(const struct tide_drive_found *known, const struct tide_entry *entry);
/* Another folder than the one that a row is of.  Device numbers change with mounts, inodes are given
 * again: birth times tell. */
bool tide_drive_is_other_folder(const struct tide_drive_identity *was, const struct tide_entry *is);
/* Writes the marker, once, at set-up.  TIDE_EXISTS: this folder belongs to a drive already. */
tide_status tide_drive_marker_make(const char *root, const char *marker, tide_error *err);

#endif
