/* marks.h - what may differ between the trees of a drive, so that a plan need not look at the rest (D8).
 *
 * Triggers of the three tables keep the marks; no code that writes a row can forget one.  (INSERT OR
 * REPLACE could: SQLite runs no trigger for the row that it removes.)
 *
 *   BASE    item with a baseline: written, or what it is compared with was, since it was last found
 *           the same everywhere.  A plan finds out, and takes back what differs no longer
 *   ONLINE  item online without a baseline
 *   HERE    local row that no baseline has
 *
 * Invariants (tests/unit/drive/drive_marks_test.c, tests/sim/drive):
 *   DMA1  every baseline row that TIDE_DRIVE_DIFFERS says differs is marked.
 *   DMA2  exactly the rows of a side that have no baseline are marked ONLINE or HERE.
 */
#ifndef TIDE_DRIVE_STORE_MARKS_H
#define TIDE_DRIVE_STORE_MARKS_H

/* The table and its triggers; classes are literals in them. */
extern const char tide_drive_mark_tables[];

#define TIDE_DRIVE_MARK_BASE   "0"
#define TIDE_DRIVE_MARK_ONLINE "1"
#define TIDE_DRIVE_MARK_HERE   "2"

/* What a baseline row `b` is compared with: item and row of both sides, and the row of its folder. */
#define TIDE_DRIVE_SIDES                                                                           \
    " LEFT JOIN drive_@_remote AS r ON r.item = b.item"                                            \
    " LEFT JOIN drive_@_local AS l ON l.row = b.row"                                               \
    " LEFT JOIN drive_@_base AS p ON p.item = b.parent"
#define TIDE_DRIVE_DIFFERS                                                                         \
    "(r.item IS NULL OR r.state <> 1 OR r.parent <> b.parent OR r.name IS NOT b.name"              \
    " OR r.aside IS NOT NULL OR l.row IS NULL OR l.state <> 1 OR l.aside IS NOT NULL"              \
    " OR l.name <> b.local_name OR l.parent IS NOT (CASE b.parent WHEN 1 THEN 1 ELSE p.row END)"   \
    " OR l.kind <> b.kind OR (b.kind = 2 AND (l.inode <> b.inode OR l.dev <> b.dev))"              \
    " OR (b.kind = 1 AND (r.bytes <> b.bytes OR r.qxh IS NOT b.qxh OR l.bytes <> b.local_bytes"    \
    " OR l.strong IS NOT b.strong OR (r.qxh IS NULL AND (r.ctag <> b.ctag OR r.mtime_s <>"         \
    " b.mtime_s)))))"

#endif
