/* scan.h - walks the folder and reports what is in it (D1, S2, S13, S14, D28).
 *
 * It writes nothing: rows go to the caller's functions, which are those of store.h in a program.
 * Folders are walked from the root's descriptor, no link is followed, and another file system inside
 * is not entered.  A file is hashed unless its size, times and identity are those of the last scan
 * and are older than that scan by two seconds (D14).
 *
 * Invariants (tests/unit/drive/drive_scan_test.c):
 *   DSC1  a folder is reported as read only if it was read to its end, without error, and is the one
 *         that the last scan knew.  A file that could not be read or changed meanwhile is unsure.
 *   DSC2  `complete` is true only if the marker was right before and after, and the root is
 *         the same directory: an unmounted disk is incomplete, not empty.
 *   DSC3  nothing outside the root is opened.
 */
#ifndef TIDE_DRIVE_LOCAL_SCAN_H
#define TIDE_DRIVE_LOCAL_SCAN_H

#include "base/mem.h"
#include "drive/ignore/ignore.h"
#include "drive/names/names.h"
#include "drive/store/store.h"

#define TIDE_DRIVE_MARKER ".tidemark-root"

/* Why an entry is not synced; shown once (D27, D28). */
typedef enum tide_drive_skip {
    TIDE_DRIVE_SKIP_NAME,  /* `refusal` says which rule */
    TIDE_DRIVE_SKIP_LINK,  /* */
    TIDE_DRIVE_SKIP_OTHER, /* socket, pipe, device */
    TIDE_DRIVE_SKIP_IGNORED,
    TIDE_DRIVE_SKIP_MOUNT,      /* another file system, or one that is no longer there */
    TIDE_DRIVE_SKIP_UNREADABLE, /* a folder or file that could not be read */
} tide_drive_skip;

struct tide_drive_scan_ops {
    /* What the last scan knew of the entry; TIDE_NOT_FOUND. */
    tide_status (*known)(void *arg, uint64_t parent, tide_text name,
                         struct tide_drive_found *found_out, tide_error *err);
    tide_status (*put)(void *arg, const struct tide_drive_found *found, uint64_t *row_out,
                       tide_error *err);
    tide_status (*read)(void *arg, uint64_t row, tide_error *err); /* read to its end */
    void (*skipped)(void *arg, tide_text path, tide_drive_skip why, tide_drive_refusal refusal);
};

struct tide_drive_scan {
    const char *root;
    const char *marker; /* what TIDE_DRIVE_MARKER must contain */
    bool business;
    const tide_ignore *ignore; /* NULL: nothing */
    uint64_t now_ns;           /* of the wall clock */
    const struct tide_drive_scan_ops *ops;
    void *arg;
};

/* TIDE_NOT_FOUND, TIDE_INVALID: the root or its marker is not there; nothing was reported.  Failures of
 * the caller's functions are returned.  *hashed_out: bytes that were hashed. */
tide_status tide_drive_scan(const struct tide_drive_scan *scan, tide_mem *mem, bool *complete_out,
                            uint64_t *hashed_out, tide_error *err);
/* Writes the marker, once, at set-up.  TIDE_EXISTS: this folder belongs to a drive already. */
tide_status tide_drive_marker_make(const char *root, const char *marker, tide_error *err);

#endif
