/* copy.h - copies a whole ledger into another one, also to the other kind of database.
 *
 * From SQLite to PostgreSQL when one machine is no longer enough, and back; the same
 * kind works too.  Rows that systems keep beside the ledger (E1.6) are copied too.  What
 * belongs to a process and not to the work is not: members, their leases and shares, the
 * owners of accounts.  A running job is copied as running, and the first engine on the
 * target puts it back, as after a crash (E1.7).
 *
 * It refuses to merge: a target that has rows of its own is not touched.  It refuses to
 * copy a ledger in use: an engine that holds the state directory, or a living member of
 * the fleet, on either side.  It does not copy archives, sign-ins or settings.
 *
 * Rows are compared, counted and hashed in one canonical form, the columns of
 * PostgreSQL's tables, whichever database they are in (tables.c).
 *
 * Invariants:
 *   LCP1  the source is opened read-only, in one snapshot, and never changed.
 *   LCP2  until the last step the target carries a mark, and tide_ledger_open() refuses it
 *         (TIDE_BUSY) with advice: on SQLite another application id, which older versions refuse
 *         too; on PostgreSQL the row `copying` of tidemark.meta.
 *   LCP3  rows and the place up to which they were copied are in one transaction: a copy that was
 *         killed anywhere resumes there at the next run.
 *   LCP4  the place is changed only by the copy that read it: of two copies into one target one
 *         ends with TIDE_BUSY.
 *   LCP5  the mark is removed when every table has been read back from both sides and is equal, row
 *         by row, and tide_ledger_check() found nothing on the target.
 *   LCP6  a source that was written to since the copy began (each writer leaves a row in `run`) is
 *         copied from the beginning.
 *   LCP7  ids of jobs are never reused: those that the target gives are greater than any that the
 *         source gave.
 *   LCP8  what the target cannot hold (a zero byte in a text, a number out of range) is found
 *         before the first row is written, and named.
 */
#ifndef TIDE_ENGINE_LEDGER_COPY_H
#define TIDE_ENGINE_LEDGER_COPY_H

#include "ledger/ledger.h"
#include "ledger/rows.h"

/* A system on the engine that keeps rows beside the ledger: all tables whose names begin
 * with its name and '_'.  Their columns are read from the database, not listed here again. */
struct tide_copy_system {
    const char *name; /* "mail" */
    /* Creates its tables in the target. */
    tide_status (*make)(const void *arg, tide_rows db, tide_error *err);
    const void *arg;
    /* Whether a table of it cannot be in another ledger; then nothing is copied, and the error says
     * what to do (TIDE_EXISTS).  NULL: none. */
    tide_status (*stays)(const char *table, tide_error *err);
};
bool tide_copy_system_has(const struct tide_copy_system *system, const char *table);

typedef enum tide_copy_step {
    TIDE_COPY_CHECK,   /* check the source: its rules, and what the target cannot hold */
    TIDE_COPY_ROWS,    /* copy rows to the target */
    TIDE_COPY_COMPARE, /* compare both sides */
} tide_copy_step;

struct tide_copy_progress {
    tide_copy_step step;
    const char *table;
    uint64_t rows, rows_all; /* of all tables; in this step */
};

struct tide_ledger_copy {
    const char *from, *to; /* a path of a state.db, or postgres://... */
    const struct tide_copy_system *systems;
    size_t systems_count;
    bool restart;              /* delete what an unfinished copy left in the target */
    uint32_t batch_rows;       /* in one transaction; 0: 5000 */
    const tide_cancel *cancel; /* asked before each batch; may be NULL */
    void (*progress)(const struct tide_copy_progress *progress, void *arg); /* may be NULL */
    void *progress_arg;
};

enum {
    TIDE_COPY_TABLES_MAX = 128, /* all systems together have half of them */
    TIDE_COPY_COLUMNS_MAX = 40,
    TIDE_COPY_BATCH_BYTES = 4 << 20, /* ends a batch early */
};

struct tide_copy_table {
    char name[64];
    uint64_t rows_from, rows_to;
    bool equal; /* compared, and the same */
    char hash_from[65], hash_to[65];
    char difference[300]; /* the first one: which row, which column; empty when equal */
};

struct tide_copy_report {
    struct tide_copy_table tables[TIDE_COPY_TABLES_MAX];
    size_t tables_count;
    uint64_t rows;         /* of the source */
    uint64_t rows_copied;  /* in this run */
    uint64_t rows_resumed; /* copied by an earlier run that did not end */
    bool equal;
    bool restarted; /* the source had changed (LCP6), or `restart` was set */
    uint64_t copy_ms, compare_ms;
    char left_out[300]; /* tables beside the ledger that belong to no known system */
};

/* Copies, compares, checks, and opens the target for use.  Fills the report also when it
 * fails, with what is known by then.
 *   TIDE_BUSY       an engine uses one of them, or another copy into the target runs
 *   TIDE_EXISTS     the target has rows of its own, or was begun from another source; or the source
 *                   has a table that stays
 *   TIDE_INVALID    the target cannot store a value; nothing was written
 *   TIDE_CORRUPT    the source breaks its own rules; or the copy is not equal: the mark
 *                   stays, and the next run starts over
 *   TIDE_CANCELED, TIDE_DISK_FULL, TIDE_NETWORK: run it again, it resumes. */
tide_status tide_ledger_copy(tide_world *world, const struct tide_ledger_copy *copy, tide_mem *mem,
                             struct tide_copy_report *report_out, tide_error *err);
/* Compares two ledgers and changes neither.  TIDE_OK with report_out->equal. */
tide_status tide_ledger_compare(tide_world *world, const struct tide_ledger_copy *copy,
                                tide_mem *mem, struct tide_copy_report *report_out,
                                tide_error *err);
/* Counts what tide_ledger_copy() would copy, and checks for values that the target could
 * not hold; does not touch the target. */
tide_status tide_ledger_copy_count(tide_world *world, const struct tide_ledger_copy *copy,
                                   tide_mem *mem, struct tide_copy_report *report_out,
                                   tide_error *err);

#endif
