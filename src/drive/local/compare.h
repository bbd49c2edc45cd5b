/* compare.h - what a scan finds, compared with the rows: only differences are written (S2, S13).
 *
 * The caller is given one folder after another, says what is in it, and that it was read to its end or
 * could not be read.  Rows are read on a connection of the caller's that need not be the one that
 * writes; differences are handed out in slices, each to be written in one transaction by
 * tide_drive_scan_write().  A scan without a difference writes nothing.  Actions may write rows at the
 * same time.
 *
 * Invariants (tests/unit/drive/drive_compare_test.c; with crashes tests/sim/drive):
 *   DCM1  the rows of a folder are read before the caller lists it: an entry that an action makes and
 *         records meanwhile is not among them, so it cannot be taken for missing; and a row that was
 *         written since it was read is left alone (store.h DST8).
 *   DCM2  a row is handed out as gone only by tide_drive_compare_end() with `complete`, and only if
 *         its folder was read to its end, is gone itself, or is a file by now.
 *   DCM3  a folder that was not read is unread, and what is beneath it is unsure; what no one looked at (another part of
 *         the tree, a scan that broke off) stays as it was.
 *   DCM4  a new folder is given out to be read when it has a row: so children have their parent.
 *   DCM5  of each folder, the caller says the entries with names of ours first: one that stepped aside
 *         before a crash (D24) takes its row along, with all beneath it, before another entry gets
 *         that row by its name.
 *   DCM6  a folder that was unread is so until the end of a complete scan that read it: a plan that is made
 *         meanwhile must not take for missing what is in it and has no row yet (plan.h DPL6).
 */
#ifndef TIDE_DRIVE_LOCAL_COMPARE_H
#define TIDE_DRIVE_LOCAL_COMPARE_H

#include "base/mem.h"
#include "drive/store/store.h"

enum { TIDE_DRIVE_SLICE_MAX = 1000 };

typedef struct tide_drive_compare tide_drive_compare;

struct tide_drive_compare_options {
    tide_rows db; /* read only; with the number of the drive */
    /* One transaction with tide_drive_scan_write(); up to TIDE_DRIVE_SLICE_MAX of them. */
    tide_status (*write)(void *arg, struct tide_drive_difference *list, size_t count,
                         tide_error *err);
    void *arg;
    bool all; /* enter folders that are known, too; else only those that are new or were not sure */
};

/* `mem` is borrowed and outlives it. */
tide_status tide_drive_compare_new(const struct tide_drive_compare_options *options, tide_mem *mem,
                                   tide_drive_compare **compare_out, tide_error *err);
void tide_drive_compare_free(tide_drive_compare *compare); /* NULL is fine */

/* A folder to begin with; `path` is opaque here, and copied. */
tide_status tide_drive_compare_add(tide_drive_compare *compare, uint64_t row, tide_text path,
                                   tide_error *err);
/* The next folder to read; *path_out is borrowed until the next call of this.  TIDE_NOT_FOUND: there is
 * none any more. */
tide_status tide_drive_compare_next(tide_drive_compare *compare, uint64_t *row_out,
                                    tide_text *path_out, tide_error *err);
/* The row that the entry has, as far as is known by now; NULL.  Borrowed until the next folder. */
const struct tide_drive_found *tide_drive_compare_known(const tide_drive_compare *compare,
                                                        tide_text name);
/* An entry of the folder; its parent, row and version are filled in here.  `path`: of a folder that may
 * be entered; NULL: it must not be, or it is a file. */
tide_status tide_drive_compare_found(tide_drive_compare *compare,
                                     const struct tide_drive_found *found, const tide_text *path,
                                     tide_error *err);
/* The folder was read to its end without an error: what was not found is missing. */
tide_status tide_drive_compare_read(tide_drive_compare *compare, tide_error *err);
/* The folder could not be read: it is unread, and what is beneath it is unsure (DCM3). */
tide_status tide_drive_compare_unread(tide_drive_compare *compare, tide_error *err);
/* Writes what is left.  `complete`: the root was right before and after (S14); else what is missing is
 * unsure. */
tide_status tide_drive_compare_end(tide_drive_compare *compare, bool complete, tide_error *err);

#endif
