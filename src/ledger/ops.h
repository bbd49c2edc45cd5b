/* ops.h - the table of operations that a store (SQLite, PostgreSQL) implements.
 *
 * One member for each operation of ledger.h, with the contract written there.  "required":
 * ledger.c calls it without a test for NULL.  "NULL: ...": may be left out, and this happens
 * instead.  The name says which operation: tide_ledger_NAME(), or tide_NAME() for tx_...;
 * savepoint, savepoint_end and hint are tide_tx_NAME().
 *
 * Jobs and records: a member with a `tide_tx` writes, inside the transaction; one with a
 * `tide_ledger` reads, in a transaction or outside.  member_join runs in a transaction of its
 * own.  A store's ledger and transaction begin with the two structs behind the table.
 *
 * ledger.c checks the lengths and ranges of names, tags, slots, alerts and places before it
 * calls the store.  The store checks jobs, finishes and items itself, with the functions at
 * the end of this file: a finish that is refused must not fail the rest of its call. */
#ifndef TIDE_ENGINE_LEDGER_OPS_H
#define TIDE_ENGINE_LEDGER_OPS_H

#include "ledger/ledger.h"

struct tide_ledger_ops {
    /* ---- closing: required ---- */
    void (*close)(tide_ledger *ledger, bool clean);

    /* ---- transactions: required, except tx_begin_lazily ----
     * One at a time.  tx_commit ends it, whatever it returns. */
    tide_status (*tx_begin)(tide_ledger *ledger, tide_tx **tx_out, tide_error *err);
    /* NULL: as tx_begin */
    tide_status (*tx_begin_lazily)(tide_ledger *ledger, tide_tx **tx_out, tide_error *err);
    tide_status (*tx_commit)(tide_tx *tx, tide_error *err);
    void (*tx_rollback)(tide_tx *tx);
    tide_status (*savepoint)(tide_tx *tx, tide_error *err);
    tide_status (*savepoint_end)(tide_tx *tx, bool keep, tide_error *err);
    /* true: a callback's own statement ended the transaction */
    bool (*tx_over)(tide_tx *tx);

    /* ---- handles for callers' own statements: required ----
     * They return NULL in a store of the other kind. */
    struct sqlite3 *(*tx_sqlite)(tide_tx *tx);
    struct sqlite3 *(*sqlite)(tide_ledger *ledger);
    struct pg_conn *(*tx_postgres)(tide_tx *tx);
    struct pg_conn *(*postgres)(tide_ledger *ledger);

    /* ---- may run on another thread while the writer works ---- */
    /* NULL: tx_commit never waits for the outcome of a commit */
    void (*give_up)(tide_ledger *ledger);
    /* required; *pages_left_out = 0 where there is no log */
    tide_status (*checkpoint)(tide_ledger *ledger, uint32_t *pages_left_out, tide_error *err);

    /* ---- the log, copies, the check ---- */
    /* NULL: there is no log, 0 pages */
    uint32_t (*log_pages)(tide_ledger *ledger);
    /* required; TIDE_INVALID with advice where the server does it */
    tide_status (*backup)(tide_ledger *ledger, const char *path, tide_error *err);
    /* required; G1 to G7 and the file itself */
    tide_status (*check)(tide_ledger *ledger, tide_buf *problems, tide_error *err);

    /* ---- names and accounts: required ---- */
    tide_status (*kind)(tide_tx *tx, const char *name, tide_dedupe_scope scope, uint32_t *kind_out,
                        tide_error *err);
    tide_status (*kind_find)(tide_ledger *ledger, const char *name, uint32_t *kind_out,
                             bool *paused_out, tide_error *err);
    tide_status (*kind_splits)(tide_tx *tx, uint32_t kind, bool splits, tide_error *err);
    tide_status (*kind_pause)(tide_tx *tx, uint32_t kind, bool paused, tide_error *err);
    tide_status (*account)(tide_tx *tx, const char *name, const char *provider,
                           uint32_t *account_out, tide_error *err);
    tide_status (*account_find)(tide_ledger *ledger, const char *name, uint32_t *account_out,
                                tide_error *err);
    tide_status (*accounts)(tide_ledger *ledger,
                            bool (*visit)(const struct tide_account_row *row, void *arg), void *arg,
                            tide_error *err);
    tide_status (*account_halt)(tide_tx *tx, uint32_t account, bool halted, const char *reason,
                                uint64_t now_unix_ms, tide_error *err);
    tide_status (*account_pause)(tide_tx *tx, uint32_t account, bool paused, tide_error *err);
    tide_status (*account_place)(tide_tx *tx, uint32_t account, const char *archive,
                                 const char *secret, tide_error *err);
    tide_status (*governor_save)(tide_tx *tx, uint32_t account, tide_text saved, tide_error *err);

    /* ---- members of a fleet and what they hold: required ---- */
    tide_status (*member_join)(tide_ledger *ledger, const struct tide_member *member,
                               uint32_t lease_ms, uint64_t now_unix_ms, tide_error *err);
    tide_status (*member_beat)(tide_tx *tx, uint32_t lease_ms, uint64_t now_unix_ms,
                               tide_error *err);
    tide_status (*member_leave)(tide_tx *tx, uint64_t now_unix_ms, tide_error *err);
    tide_status (*members)(tide_ledger *ledger,
                           bool (*visit)(const struct tide_member *member, void *arg), void *arg,
                           tide_error *err);
    tide_status (*accounts_take)(tide_tx *tx, const uint32_t *accounts, size_t count,
                                 uint64_t owner, bool *taken_out, uint64_t now_unix_ms,
                                 tide_error *err);
    tide_status (*accounts_release)(tide_tx *tx, const uint32_t *accounts, size_t count,
                                    uint64_t owner, tide_error *err);
    tide_status (*grant)(tide_tx *tx, const char *limit, uint64_t owner, uint64_t units_max,
                         uint64_t units_wanted, uint32_t window_ms, uint32_t lease_ms,
                         uint64_t now_unix_ms, uint64_t *units_out, tide_error *err);
    /* required; does nothing where no other process listens */
    tide_status (*hint)(tide_tx *tx, tide_hint hint, uint32_t account, tide_error *err);

    /* ---- new jobs: required ---- */
    tide_status (*enqueue)(tide_tx *tx, const struct tide_job_new *jobs, size_t count,
                           uint64_t now_unix_ms, struct tide_enqueued *enqueued_out,
                           tide_error *err);
    tide_status (*batch_get)(tide_ledger *ledger, tide_text name, uint64_t *ids_out, size_t ids_max,
                             size_t *count_out, tide_error *err);
    tide_status (*batch_put)(tide_tx *tx, tide_text name, const uint64_t *ids, size_t count,
                             uint64_t now_unix_ms, tide_error *err);

    /* ---- from pending to running: required ---- */
    tide_status (*refill)(tide_ledger *ledger, uint32_t account, uint8_t after_priority,
                          uint64_t after_id, struct tide_brief *briefs_out, size_t count_max,
                          size_t *count_out, tide_error *err);
    tide_status (*accounts_with_work)(tide_ledger *ledger, uint32_t *accounts_out,
                                      size_t accounts_max, size_t *count_out, tide_error *err);
    tide_status (*accounts_have)(tide_ledger *ledger, const uint32_t *accounts, size_t count,
                                 const uint32_t *kinds, size_t kinds_count, bool *have_out,
                                 tide_error *err);
    tide_status (*brief)(tide_ledger *ledger, uint64_t id, struct tide_brief *brief_out,
                         tide_error *err);
    tide_status (*claim)(tide_tx *tx, const uint64_t *ids, size_t count, uint64_t owner,
                         uint64_t first_token, uint64_t now_unix_ms, tide_mem *mem,
                         struct tide_job_body **bodies_out, tide_error *err);
    tide_status (*claim_free)(tide_tx *tx, const uint32_t *kinds, size_t kinds_count,
                              const uint32_t counts[2], uint64_t owner, uint64_t first_token,
                              uint64_t now_unix_ms, tide_mem *mem, struct tide_brief *briefs_out,
                              struct tide_job_body **bodies_out, size_t *count_out,
                              uint64_t *due_unix_ms_out, tide_error *err);
    tide_status (*beat)(tide_tx *tx, const struct tide_beat *beats, size_t count,
                        uint64_t now_unix_ms, bool *applied_out, tide_error *err);

    /* ---- from running to finished, or back: required ---- */
    tide_status (*finish)(tide_tx *tx, const struct tide_finish *finishes, size_t count,
                          uint64_t now_unix_ms, bool *applied_out, struct tide_changes *changes,
                          tide_error *err);
    tide_status (*reclaim)(tide_tx *tx, uint64_t owner, size_t count_max, uint64_t now_unix_ms,
                           size_t *count_out, struct tide_changes *changes, tide_error *err);
    tide_status (*cancels)(tide_ledger *ledger, uint64_t owner, uint64_t *ids_out, size_t ids_max,
                           size_t *count_out, tide_error *err);

    /* ---- commands that change jobs: required ---- */
    tide_status (*retry)(tide_tx *tx, const struct tide_job_filter *filter, uint64_t now_unix_ms,
                         size_t *count_out, struct tide_changes *changes, tide_error *err);
    tide_status (*cancel)(tide_tx *tx, const struct tide_job_filter *filter, uint64_t now_unix_ms,
                          size_t *count_out, uint64_t *running_out, size_t running_max,
                          size_t *running_count_out, struct tide_changes *changes, tide_error *err);
    tide_status (*accept)(tide_tx *tx, const struct tide_job_filter *filter, uint64_t now_unix_ms,
                          size_t *count_out, struct tide_changes *changes, tide_error *err);

    /* ---- removing old rows: required ---- */
    tide_status (*purge)(tide_tx *tx, uint64_t finished_before_unix_ms, size_t count_max,
                         size_t *count_out, tide_error *err);
    bool (*purge_more)(const tide_ledger *ledger);

    /* ---- streams, cycles and cursors: required ---- */
    tide_status (*stream)(tide_tx *tx, uint32_t account, const char *name, tide_text floor,
                          struct tide_stream_row *row_out, tide_error *err);
    tide_status (*streams)(tide_ledger *ledger,
                           bool (*visit)(const struct tide_stream_row *row, void *arg), void *arg,
                           tide_error *err);
    tide_status (*cycle)(tide_tx *tx, uint64_t stream, tide_text start, tide_text end,
                         uint64_t now_unix_ms, struct tide_cycle_row *row_out, tide_error *err);
    tide_status (*cycles)(tide_ledger *ledger, uint64_t stream,
                          bool (*visit)(const struct tide_cycle_row *row, void *arg), void *arg,
                          tide_error *err);
    tide_status (*work_left)(tide_ledger *ledger, uint32_t account,
                             bool (*visit)(const struct tide_work_left *row, void *arg), void *arg,
                             tide_error *err);
    tide_status (*cursor_move)(tide_tx *tx, uint64_t stream, uint64_t from, uint64_t to,
                               uint64_t now_unix_ms, tide_buf *cursor_out, tide_error *err);
    tide_status (*cursor_advance)(tide_tx *tx, uint64_t stream, uint64_t now_unix_ms,
                                  uint64_t *ordinal_out, tide_buf *cursor_out, tide_error *err);

    /* ---- bad items, intents, schedules, alerts, notes: required ---- */
    tide_status (*bad_list)(tide_ledger *ledger, uint32_t account, uint32_t kind,
                            bool (*visit)(const struct tide_bad_row *row, void *arg), void *arg,
                            tide_error *err);
    tide_status (*bad_state)(tide_tx *tx, uint32_t account, uint32_t kind, tide_text item,
                             tide_bad_state state, uint64_t now_unix_ms, tide_error *err);
    tide_status (*intent)(tide_tx *tx, uint64_t job, tide_text tag, tide_text detail,
                          uint64_t now_unix_ms, tide_intent_state *state_out, tide_buf *outcome_out,
                          tide_error *err);
    tide_status (*intent_find)(tide_ledger *ledger, tide_text tag, tide_intent_state *state_out,
                               tide_buf *outcome_out, tide_error *err);
    tide_status (*intent_end)(tide_tx *tx, tide_text tag, tide_intent_state state,
                              tide_text outcome, uint64_t now_unix_ms, tide_error *err);
    tide_status (*schedule)(tide_tx *tx, const struct tide_schedule_row *row, uint64_t *id_out,
                            tide_error *err);
    tide_status (*schedules)(tide_ledger *ledger,
                             bool (*visit)(const struct tide_schedule_row *row, void *arg),
                             void *arg, tide_error *err);
    tide_status (*schedule_fire)(tide_tx *tx, uint64_t schedule, uint64_t slot,
                                 uint64_t now_unix_ms, tide_error *err);
    tide_status (*alert)(tide_tx *tx, const char *condition, uint32_t account, int level,
                         const char *text, uint64_t now_unix_ms, tide_error *err);
    tide_status (*alert_notified)(tide_tx *tx, const char *condition, uint32_t account,
                                  uint64_t now_unix_ms, tide_error *err);
    tide_status (*alerts)(tide_ledger *ledger,
                          bool (*visit)(const struct tide_alert_row *row, void *arg), void *arg,
                          tide_error *err);
    tide_status (*note)(tide_tx *tx, const char *key, tide_text value, tide_error *err);
    tide_status (*note_get)(tide_ledger *ledger, const char *key, tide_buf *value_out,
                            tide_error *err);

    /* ---- reading, for commands: required ---- */
    tide_status (*jobs)(tide_ledger *ledger, const struct tide_job_filter *filter,
                        bool (*visit)(const struct tide_job_row *row, void *arg), void *arg,
                        tide_error *err);
    tide_status (*needs)(tide_ledger *ledger, uint64_t job, struct tide_need *needs_out,
                         size_t count_max, size_t *count_out, tide_error *err);
    tide_status (*counts)(tide_ledger *ledger, uint64_t now_unix_ms,
                          bool (*visit)(const struct tide_job_count *row, void *arg), void *arg,
                          tide_error *err);
    tide_status (*metadata)(tide_ledger *ledger, uint32_t account, uint64_t *bytes_out,
                            bool *bad_out, tide_error *err);
    tide_status (*doctor)(tide_ledger *ledger, uint64_t now_unix_ms,
                          bool (*visit)(const struct tide_symptom *symptom, void *arg), void *arg,
                          tide_error *err);
};

struct tide_ledger {
    const struct tide_ledger_ops *ops;
    bool shared; /* tide_ledger_shared() */
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
    LIST_OWN, /* the store's own columns begin here */
};
/* The status of a job in `state` that has `stored` with its last error. */
tide_status tide_status_shown(tide_row_state state, int64_t stored);
/* Whether a stream whose cursor is at `ordinal` may open cycle `next`. */
tide_status tide_cycle_check(uint64_t stream, uint64_t ordinal, uint64_t next, tide_error *err);
/* The rule by which a cursor moves (G4): only from where it stands, and only over finished
 * cycles.  [from, to) holds `count` cycles, `unfinished` of them are not finished. */
tide_status tide_cursor_check(uint64_t stream, uint64_t ordinal, uint64_t from, uint64_t to,
                              tide_error *err);
tide_status tide_span_check(uint64_t stream, uint64_t from, uint64_t to, uint64_t count,
                            uint64_t unfinished, tide_error *err);
/* Copies the texts of a row into `kept`; the row borrows them until `kept` is used again. */
tide_status tide_stream_keep(struct tide_stream_row *row, tide_buf *kept, tide_error *err);

/* TIDE_FULL: the ledger has TIDE_ACCOUNTS_MAX accounts. */
tide_status tide_accounts_full(const char *name, tide_error *err);

#endif
