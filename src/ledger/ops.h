/* ops.h - what a store (SQLite, PostgreSQL) implements.
 *
 * One member for each operation of operations.h, except COMMON_ ones, and one for each function
 * of ledger.h that differs between stores, with the contract written there.  "required": ledger.c calls it
 * without a test for NULL.  "NULL: ...": may be left out, and this happens instead.
 *
 * A store's ledger and transaction begin with the two structs behind the table.
 *
 * ledger.c checks the lengths and ranges of names, tags, slots and places before it calls the
 * store.  The store checks jobs, finishes and items itself, with the functions at
 * the end of this file: a finish that is refused must not fail the rest of its call. */
#ifndef TIDE_ENGINE_LEDGER_OPS_H
#define TIDE_ENGINE_LEDGER_OPS_H

#include "db/rows.h"
#include "ledger/ledger.h"

struct tide_ledger_ops {
    /* ---- closing: required ---- */
    __typeof__(tide_ledger_close) *close;

    /* ---- transactions: required, except tx_begin_lazily ----
     * One at a time.  tx_commit ends it, whatever it returns. */
    __typeof__(tide_tx_begin) *tx_begin;
    __typeof__(tide_tx_begin_lazily) *tx_begin_lazily; /* NULL: as tx_begin */
    __typeof__(tide_tx_commit) *tx_commit;
    __typeof__(tide_tx_rollback) *tx_rollback;
    __typeof__(tide_tx_savepoint) *savepoint;
    __typeof__(tide_tx_savepoint_end) *savepoint_end;
    __typeof__(tide_tx_over) *tx_over;
    __typeof__(tide_tx_hint) *hint; /* NULL: no other process listens, nothing is done */
    /* From another thread.  NULL: tx_commit never waits for the outcome of a commit. */
    __typeof__(tide_ledger_give_up) *give_up;

    /* ---- handles for callers' own statements; NULL: not on PostgreSQL ---- */
    __typeof__(tide_tx_postgres) *tx_postgres;
    __typeof__(tide_ledger_postgres) *postgres;

    /* ---- the connection for records.c and read.c: required ----
     * rows: before a statement.  rows_end: after it, with its status, which it returns; the store
     * remembers a failure after which only a rollback is allowed. */
    tide_status (*rows)(tide_ledger *ledger, tide_rows *rows_out, tide_error *err);
    tide_status (*rows_end)(tide_ledger *ledger, tide_status rc);
    /* A kind changes, or what is paused: the store forgets what it has read of them. */
    void (*names_change)(tide_ledger *ledger);

    /* ---- texts of statements for read.c (db/rows.h): required ----
     * jobs: columns LIST_...; ?1 id or 0, ?2 to ?3 accounts, ?4 kind or 0, ?5 state or -1,
     * ?6 cycle or 0, ?7 the last id, ?8 the number of rows.  counts: ?1 now.  The others: ?1 the
     * account. */
    const char *(*jobs_text)(const struct tide_job_filter *filter);
    const char *(*jobs_count_text)(const struct tide_job_filter *filter);
    const char *counts_text, *counts_left_text, *work_left_text, *metadata_text;

    /* ---- operations: required; SHARED_... NULL: the ledger is not shared ---- */
#define OP(ledger, name, params, args) tide_status(*name) params;
#include "ledger/operations.h"
};

struct tide_ledger {
    const struct tide_ledger_ops *ops;
    bool shared;                    /* tide_ledger_shared() */
    bool purge_more;                /* tide_ledger_purge_more(); set by each purge */
    uint32_t log_pages;             /* tide_ledger_log_pages(); 0 where there is no log */
    struct sqlite3 *sqlite;         /* tide_ledger_sqlite() */
    struct tide_rows_kept *kept;    /* tide_ledger_kept() */
    struct tide_rows_kept *tx_kept; /* tide_tx_kept() */
};

struct tide_tx {
    tide_ledger *ledger;
};

/* Opens the store behind a path. */
tide_status tide_ledger_postgres_open(tide_world *world, const struct tide_ledger_options *options,
                                      tide_ledger **ledger_out, tide_error *err);
tide_status tide_ledger_sqlite_open(tide_world *world, const struct tide_ledger_options *options,
                                    tide_ledger **ledger_out, tide_error *err);

/* ---- ledger.c, shared by the stores ----
 *
 * Checks against the limits of base/limits.h.  A failure is TIDE_INVALID or TIDE_FULL and
 * belongs to the job, finish or item that is refused, not to the store. */

/* `index`: the job's place in the call; it may need earlier jobs of the call only. */
tide_status tide_job_new_check(const struct tide_job_new *job, size_t index, tide_error *err);
tide_status tide_finish_check(const struct tide_finish *finish, tide_error *err);
tide_status tide_item_check(const struct tide_item_report *item, tide_error *err);
/* TIDE_INVALID: job `waiting` would wait for `part`, which needs `waiting`. */
tide_status tide_part_refused(uint64_t waiting, uint64_t part, tide_error *err);

/* The state that is recorded for an item that failed with `status`. */
tide_bad_state tide_bad_state_of(tide_status status);
/* metadata_text; begin, end: what is around a column for the bytes of its text. */
/* clang-format off */
#define LEDGER_METADATA(begin, end)                                                                \
    "SELECT CAST("                                                                                 \
    " (SELECT coalesce(sum(" LEDGER_BYTES(begin, "item", end)                                      \
    "   + " LEDGER_BYTES(begin, "reason", end) " + 56), 0) FROM bad WHERE account = ?1)"           \
    " + (SELECT coalesce(sum(" LEDGER_BYTES(begin, "name", end)                                    \
    "   + " LEDGER_BYTES(begin, "cursor", end) " + " LEDGER_BYTES(begin, "floor", end)             \
    "   + 32), 0) FROM stream WHERE account = ?1)"                                                 \
    " + (SELECT coalesce(sum(" LEDGER_BYTES(begin, "c.start", end)                                 \
    "   + " LEDGER_BYTES(begin, "c.\"end\"", end) " + 48), 0)"                                     \
    "   FROM stream s JOIN cycle c ON c.stream = s.id WHERE s.account = ?1)"                       \
    " + (SELECT coalesce(sum(" LEDGER_BYTES(begin, "governor", end) "), 0)"                        \
    "   FROM account WHERE id = ?1)"                                                               \
    " + (SELECT coalesce(sum(" LEDGER_BYTES(begin, "key", end)                                     \
    "   + " LEDGER_BYTES(begin, "value", end) "), 0) FROM note WHERE key IN"                       \
    "   ('alerts:' || ?1, 'totals:' || ?1, 'good:' || ?1, 'outcome:' || ?1)) AS bigint),"          \
    " EXISTS (SELECT 1 FROM bad WHERE account = ?1)"
#define LEDGER_BYTES(begin, column, end) "coalesce(" begin column end ", 0)"
/* clang-format on */
/* Columns of a job in the statements that list jobs for commands, the same in every store. */
enum {
    LIST_ID,
    LIST_CYCLE,
    LIST_SIZE,
    LIST_BYTES_DONE,
    LIST_OWNER,
    LIST_TOKEN,
    LIST_NOT_BEFORE,
    LIST_CREATED,
    LIST_STARTED,
    LIST_FINISHED,
    LIST_BEAT,
    LIST_ACCOUNT,
    LIST_KIND,
    LIST_OPEN_DEPS,
    LIST_ATTEMPTS,
    LIST_ATTEMPTS_MAX,
    LIST_PRIORITY,
    LIST_STATE,
    LIST_STATUS,
    LIST_DEDUPE,
    LIST_PAYLOAD,
    LIST_RESUME,
    LIST_ERROR,
    LIST_ACCOUNT_NAME,
    LIST_KIND_NAME,
    LIST_RUN,
    LIST_LANE,
    LIST_LEVEL,
    LIST_PREEMPTIBLE,
    LIST_FORCE,
};
/* The status of a job in `state` that has `stored` with its last error. */
tide_status tide_status_shown(tide_row_state state, int64_t stored);
/* Whether a stream whose cursor is at `ordinal` may open cycle `next`. */
tide_status tide_cycle_check(uint64_t stream, uint64_t ordinal, uint64_t next, tide_error *err);
/* The rule by which a cursor moves (LED4): only from where it stands, and only over finished
 * cycles.  [from, to) holds `count` cycles, `unfinished` of them are not finished. */
tide_status tide_cursor_check(uint64_t stream, uint64_t ordinal, uint64_t from, uint64_t to,
                              tide_error *err);
tide_status tide_span_check(uint64_t stream, uint64_t from, uint64_t to, uint64_t count,
                            uint64_t unfinished, tide_error *err);
/* Copies the texts of a row into `kept`; the row borrows them until `kept` is used again. */
tide_status tide_stream_keep(struct tide_stream_row *row, tide_buf *kept, tide_error *err);

/* TIDE_INVALID: a name has 1 to bytes_max bytes. */
tide_status tide_name_check(const char *what, tide_text name, size_t bytes_max, tide_error *err);

#endif
