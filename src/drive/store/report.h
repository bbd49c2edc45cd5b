/* report.h - what a user is shown of a drive: counts, paths, and lists by name.  Reads only, on any
 * connection, while an engine runs or not. */
#ifndef TIDE_DRIVE_STORE_REPORT_H
#define TIDE_DRIVE_STORE_REPORT_H

#include "base/buf.h"
#include "drive/store/store.h"

enum { TIDE_DRIVE_REPORT_DEPTH_MAX = 1000 };

struct tide_drive_counts {
    uint64_t files, folders, bytes; /* that both sides agreed on */
    uint64_t owed;
    uint64_t conflicts; /* copies that were kept: k1, k2, k6, k8 */
    uint64_t notices;   /* what else was decided and is still listed */
    uint64_t deletions; /* that wait for consent */
    uint64_t skipped_here, skipped_online;
    uint64_t unsure; /* here: could not be read; of folders only the top */
    uint64_t hidden; /* missing here, and not deleted online: something here could not be read */
    uint64_t applied_ms; /* where the tidemark stays while something is owed (D4) */
};
tide_status tide_drive_counts(tide_rows db, struct tide_drive_counts *counts_out, tide_error *err);

/* The path of an item or of a local row below the root, "a/b/c", replaces what is in `path`.  Of an item
 * that is here it is the local one.  TIDE_NOT_FOUND. */
tide_status tide_drive_path_of(tide_rows db, uint64_t item, tide_buf *path, tide_error *err);
tide_status tide_drive_path_here(tide_rows db, uint64_t row, tide_buf *path, tide_error *err);

tide_status tide_drive_deletions_each(tide_rows db,
                                      void (*visit)(const struct tide_drive_deletion *deletion,
                                                    void *arg),
                                      void *arg, tide_error *err);

/* Entries that are not synced; of folders only the top.  At most `count` of each side. */
struct tide_drive_skipped {
    uint64_t item, row; /* one of them is 0 */
    tide_text name;
    tide_drive_kind kind;
    tide_drive_reason reason; /* of an item */
    bool at_root;
};
/* The same for what could not be read here. */
tide_status tide_drive_unsure_each(tide_rows db, size_t count,
                                   void (*visit)(const struct tide_drive_skipped *skipped,
                                                 void *arg),
                                   void *arg, tide_error *err);
tide_status tide_drive_skipped_each(tide_rows db, size_t count,
                                    void (*visit)(const struct tide_drive_skipped *skipped,
                                                  void *arg),
                                    void *arg, tide_error *err);

/* Files of the baseline after `item`, by item, `count` at most: what they had here. */
struct tide_drive_kept {
    uint64_t item, row;
    struct tide_drive_content content; /* here */
    uint64_t mtime_ns;                 /* as the last scan saw it; 0: it did not */
};
tide_status tide_drive_kept_each(tide_rows db, uint64_t after, size_t count,
                                 void (*visit)(const struct tide_drive_kept *kept, void *arg),
                                 void *arg, tide_error *err);

#endif
