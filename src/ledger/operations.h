/* operations.h - every operation on jobs, streams and records, once, with its contract.
 *
 * An entry is WRITE(name, (parameters), (arguments)) or READ(...): the arguments are the names
 * of the parameters.  Its function is tide_ledger_NAME():
 *
 *     WRITE   tide_status tide_ledger_NAME(tide_tx *tx, PARAMETERS, tide_error *err)
 *     READ    tide_status tide_ledger_NAME(tide_ledger *ledger, PARAMETERS, tide_error *err)
 *
 * A WRITE is part of the caller's transaction; a READ runs in a transaction or outside.
 *
 *     WRITE, READ   ledger.c passes it to the store, which checks jobs, finishes and items
 *                   itself (ops.h)
 *     CHECKED_...   ledger.c checks lengths and ranges before it calls the store
 *     SHARED_...    only on a ledger that several processes share (tide_ledger_shared());
 *                   another store leaves it out: TIDE_INVALID
 *     COMMON_...    written once for all stores, over db/rows.h, in records.c and read.c;
 *                   without arguments
 *
 * The file is included several times and has no guard.  The includer defines what an entry
 * becomes: OP(ledger, name, parameters, arguments), where `ledger` is the expression for the
 * ledger and both lists are complete and in parentheses.  OP_CHECKED and OP_SHARED are the same
 * for their entries, which else are OP; OP_COMMON for the others, which else are nothing.  From
 * this one table come the prototypes of ledger.h, the members of struct tide_ledger_ops (ops.h),
 * the calls of ledger.c, and the prototypes and the table of each store.  Opening, transactions
 * and handles are in ledger.h. */
#ifndef OP_CHECKED
#define OP_CHECKED OP
#endif
#ifndef OP_SHARED
#define OP_SHARED OP
#endif
#ifndef OP_COMMON
#define OP_COMMON(ledger, name, params, args)
#endif
#define OP_LIST(...) __VA_ARGS__
#define OP_WRITE(op, name, params, args)                                                           \
    op(tx->ledger, name, (tide_tx * tx, OP_LIST params, tide_error * err), (tx, OP_LIST args, err))
#define OP_READ(op, name, params, args)                                                            \
    op(ledger, name, (tide_ledger * ledger, OP_LIST params, tide_error * err),                     \
       (ledger, OP_LIST args, err))
#define WRITE(name, params, args)         OP_WRITE(OP, name, params, args)
#define READ(name, params, args)          OP_READ(OP, name, params, args)
#define CHECKED_WRITE(name, params, args) OP_WRITE(OP_CHECKED, name, params, args)
#define CHECKED_READ(name, params, args)  OP_READ(OP_CHECKED, name, params, args)
#define SHARED_WRITE(name, params, args)  OP_WRITE(OP_SHARED, name, params, args)
#define SHARED_READ(name, params, args)   OP_READ(OP_SHARED, name, params, args)
#define COMMON_WRITE(name, params)        OP_WRITE(OP_COMMON, name, params, ())
#define COMMON_READ(name, params)         OP_READ(OP_COMMON, name, params, ())

/* ---- the log, copies, the check ---- */

/* Copies the log into the main file on a connection of its own (E2.5), so that
 * the writer never does it.  May run on another thread while the writer works.
 * *pages_left_out = 0 where there is no log. */
READ(checkpoint, (uint32_t * pages_left_out), (pages_left_out))
/* A consistent copy of a live ledger into a new file (`tidemark backup`).  TIDE_INVALID with
 * advice where the server does it. */
READ(backup, (const char *path), (path))
/* G1..G7 and the file itself.  `problems` gets a line each. */
READ(check, (tide_buf * problems), (problems))

/* ---- names and accounts ---- */

/* Small stable numbers for names; a new name gets a new number. */
COMMON_WRITE(kind, (const char *name, tide_dedupe_scope scope, uint32_t *kind_out))
/* The number of a kind or account by name; TIDE_NOT_FOUND. */
COMMON_READ(kind_find, (const char *name, uint32_t *kind_out, bool *paused_out))
/* Whether jobs of the kind can be split.  Reclaim then puts a job that is over its
 * budget back instead of failing it, and lists it in tide_changes.over_budget. */
COMMON_WRITE(kind_splits, (uint32_t kind, bool splits))
COMMON_WRITE(kind_pause, (uint32_t kind, bool paused))
COMMON_WRITE(account, (const char *name, const char *provider, uint32_t *account_out))
COMMON_READ(account_find, (const char *name, uint32_t *account_out))
COMMON_READ(accounts, (bool (*visit)(const struct tide_account_row *row, void *arg), void *arg))
COMMON_WRITE(account_halt,
             (uint32_t account, bool halted, const char *reason, uint64_t now_unix_ms))
COMMON_WRITE(account_pause, (uint32_t account, bool paused))
/* The archive and the secret that a process must have to take the account; NULL keeps the
 * stored value. */
COMMON_WRITE(account_place, (uint32_t account, const char *archive, const char *secret))
WRITE(governor_save, (uint32_t account, tide_text saved), (account, saved))

/* ---- members of a fleet and what they hold (E1.7, E1.8, E4.1): struct tide_member ---- */

/* In a transaction of its own.  From then on this ledger's transactions belong to the
 * member.  TIDE_EXISTS: the owner number is taken.  TIDE_NEWER: the tables were upgraded
 * meanwhile, and this program can no longer use them. */
SHARED_READ(member_join,
            (const struct tide_member *member, uint32_t lease_ms, uint64_t now_unix_ms),
            (member, lease_ms, now_unix_ms))
/* Renews the lease. */
SHARED_WRITE(member_beat, (uint32_t lease_ms, uint64_t now_unix_ms), (lease_ms, now_unix_ms))
/* A clean end: its accounts are free at once.  Jobs that still run with its owner number
 * are put back by reclaim. */
SHARED_WRITE(member_leave, (uint64_t now_unix_ms), (now_unix_ms))
/* None on a ledger that is not shared. */
READ(members, (bool (*visit)(const struct tide_member *member, void *arg), void *arg), (visit, arg))

/* Takes the accounts that no other living member holds; taken_out[i]: `owner` has it now. */
SHARED_WRITE(accounts_take,
             (const uint32_t *accounts, size_t count, uint64_t owner, bool *taken_out,
              uint64_t now_unix_ms),
             (accounts, count, owner, taken_out, now_unix_ms))
SHARED_WRITE(accounts_release, (const uint32_t *accounts, size_t count, uint64_t owner),
             (accounts, count, owner))

/* A share of a limit that many accounts have in common (E4.1), for `lease_ms`.  The
 * shares of all members never exceed units_max: *units_out is at most an equal part of
 * it, less while others still hold more.  Units that a member gives up go to others only
 * `window_ms` later: it may have just spent them.  units_wanted = 0 gives the share back. */
SHARED_WRITE(grant,
             (const char *limit, uint64_t owner, uint64_t units_max, uint64_t units_wanted,
              uint32_t window_ms, uint32_t lease_ms, uint64_t now_unix_ms, uint64_t *units_out),
             (limit, owner, units_max, units_wanted, window_ms, lease_ms, now_unix_ms, units_out))

/* ---- new jobs: struct tide_job_new ---- */

/* One code path for one job and for many (lesson 5).  A dependency that is already
 * done does not count; one that does not exist is TIDE_NOT_FOUND.  On a failure
 * nothing of this call is stored. */
WRITE(enqueue,
      (const struct tide_job_new *jobs, size_t count, uint64_t now_unix_ms,
       struct tide_enqueued *enqueued_out),
      (jobs, count, now_unix_ms, enqueued_out))
/* An enqueue that may be repeated (the caller lost the answer): its ids are kept under a
 * name that the caller chose, for as long as finished jobs are kept.  get: TIDE_NOT_FOUND
 * for a new name.  put: TIDE_EXISTS when another transaction was first; get it again. */
CHECKED_READ(batch_get, (tide_text name, uint64_t *ids_out, size_t ids_max, size_t *count_out),
             (name, ids_out, ids_max, count_out))
CHECKED_WRITE(batch_put, (tide_text name, const uint64_t *ids, size_t count, uint64_t now_unix_ms),
              (name, ids, count, now_unix_ms))

/* ---- from pending to running ---- */

/* Ready pending jobs of an account (open_deps = 0, account and kind not paused)
 * that come after (after_priority, after_id) in order; 255 and 0: from the beginning.
 * not_before_ms holds unix ms.  Rows in order, at most `count_max`. */
READ(refill,
     (uint32_t account, uint8_t after_priority, uint64_t after_id, struct tide_brief *briefs_out,
      size_t count_max, size_t *count_out),
     (account, after_priority, after_id, briefs_out, count_max, count_out))
/* Accounts (0 included) that have pending jobs with open_deps = 0. */
READ(accounts_with_work, (uint32_t * accounts_out, size_t accounts_max, size_t *count_out),
     (accounts_out, accounts_max, count_out))
/* Which of these accounts have such jobs of one of these kinds. */
SHARED_READ(accounts_have,
            (const uint32_t *accounts, size_t count, const uint32_t *kinds, size_t kinds_count,
             bool *have_out),
            (accounts, count, kinds, kinds_count, have_out))
/* One job as a brief; TIDE_NOT_FOUND when it is finished or does not exist. */
READ(brief, (uint64_t id, struct tide_brief *brief_out), (id, brief_out))

/* Gives each pending job to `owner` with a token of its own, from `first_token`
 * upwards (E1.3, E1.8).  bodies_out[i] is NULL where the job was not pending
 * (canceled, purged, paused, claimed by another process): the caller drops it. */
WRITE(claim,
      (const uint64_t *ids, size_t count, uint64_t owner, uint64_t first_token,
       uint64_t now_unix_ms, tide_mem *mem, struct tide_job_body **bodies_out),
      (ids, count, owner, first_token, now_unix_ms, mem, bodies_out))
/* Claims ready jobs of no account ("free jobs"), enqueued by any process: those that are due,
 * of these kinds, not paused, in order, at most counts[lane] of each lane (E1.3).
 * Other processes do the same at the same time and get other jobs (SKIP LOCKED).
 * Interactive jobs come first; a job that another process put back may come later than
 * its place in the order, even at the next call.  Tokens are from `first_token` on, at most
 * as many as were asked for; jobs of one call may share one: id and token name a claim.
 * *due_unix_ms_out: when to call again at the latest, because the next delayed job may be
 * due then; UINT64_MAX: no job is delayed.  Only set when fewer jobs came than were asked
 * for, else 0. */
SHARED_WRITE(claim_free,
             (const uint32_t *kinds, size_t kinds_count, const uint32_t counts[2], uint64_t owner,
              uint64_t first_token, uint64_t now_unix_ms, tide_mem *mem,
              struct tide_brief *briefs_out, struct tide_job_body **bodies_out, size_t *count_out,
              uint64_t *due_unix_ms_out),
             (kinds, kinds_count, counts, owner, first_token, now_unix_ms, mem, briefs_out,
              bodies_out, count_out, due_unix_ms_out))
/* Heartbeats and resume data of running jobs, fenced.  applied_out as in finish. */
CHECKED_WRITE(beat,
              (const struct tide_beat *beats, size_t count, uint64_t now_unix_ms,
               bool *applied_out),
              (beats, count, now_unix_ms, applied_out))

/* ---- from running to finished, or back: struct tide_finish, struct tide_changes ---- */

/* Writes the ends of running jobs.  A finish whose token no longer matches
 * applies nothing at all (applied_out[i] = false): a fenced process changes nothing
 * (E1.8, lesson 3).  One refused finish does not drop the rest (lesson 9).  If a cancel of
 * the job was requested, a finish after which it would run again is refused with
 * TIDE_CANCELED (E7.3). */
WRITE(finish,
      (const struct tide_finish *finishes, size_t count, uint64_t now_unix_ms, bool *applied_out,
       struct tide_changes *changes),
      (finishes, count, now_unix_ms, applied_out, changes))
/* Declares members dead whose lease expired, and frees what they held.  Running rows of
 * every owner except `owner` and the living members go back to pending and cost an attempt
 * (E1.7, lesson 4); those over their budget fail, or are listed in `over_budget` for a
 * forced split when their kind can be split (E7.1); those with a requested cancel are
 * canceled.  In slices of `count_max`; *count_out < count_max means all done. */
WRITE(reclaim,
      (uint64_t owner, size_t count_max, uint64_t now_unix_ms, size_t *count_out,
       struct tide_changes *changes),
      (owner, count_max, now_unix_ms, count_out, changes))
/* Running jobs of `owner` for which any process called tide_ledger_cancel(): the ledger
 * keeps the request until the job ends. */
SHARED_READ(cancels, (uint64_t owner, uint64_t *ids_out, size_t ids_max, size_t *count_out),
            (owner, ids_out, ids_max, count_out))

/* ---- commands that change jobs: struct tide_job_filter; in slices like reclaim ---- */

/* Failed and canceled jobs become pending with a fresh budget; pending ones lose their
 * not-before time. */
WRITE(retry,
      (const struct tide_job_filter *filter, uint64_t now_unix_ms, size_t *count_out,
       struct tide_changes *changes),
      (filter, now_unix_ms, count_out, changes))
/* Pending jobs become canceled; running ones are listed in `running_out` (the engine that
 * runs them cancels them). */
WRITE(cancel,
      (const struct tide_job_filter *filter, uint64_t now_unix_ms, size_t *count_out,
       uint64_t *running_out, size_t running_max, size_t *running_count_out,
       struct tide_changes *changes),
      (filter, now_unix_ms, count_out, running_out, running_max, running_count_out, changes))
/* A user accepts what failed: failed and canceled jobs become done, so that their
 * cycle can finish and the jobs that wait for them can start (E5.2). */
WRITE(accept,
      (const struct tide_job_filter *filter, uint64_t now_unix_ms, size_t *count_out,
       struct tide_changes *changes),
      (filter, now_unix_ms, count_out, changes))

/* ---- removing old rows ---- */

/* Deletes finished rows older than the time, never those of an unfinished cycle
 * nor those that an unfinished job waits for (E1.2).  At most `count_max`.  It checks a
 * bounded number of rows a call (tide_ledger_purge_more()). */
WRITE(purge, (uint64_t finished_before_unix_ms, size_t count_max, size_t *count_out),
      (finished_before_unix_ms, count_max, count_out))

/* ---- streams, cycles and cursors (E5) ---- */

/* Finds or creates it.  Texts in row_out are borrowed until the next call. */
CHECKED_WRITE(stream,
              (uint32_t account, const char *name, tide_text floor,
               struct tide_stream_row *row_out),
              (account, name, floor, row_out))
COMMON_READ(streams, (bool (*visit)(const struct tide_stream_row *row, void *arg), void *arg))
/* The next cycle of the stream, with no jobs yet.  Its jobs are enqueued in the
 * same transaction; a cycle without any is finished at once. */
WRITE(cycle,
      (uint64_t stream, tide_text start, tide_text end, uint64_t now_unix_ms,
       struct tide_cycle_row *row_out),
      (stream, start, end, now_unix_ms, row_out))
/* Cycles at or beyond the stream's cursor, by ordinal. */
COMMON_READ(cycles, (uint64_t stream, bool (*visit)(const struct tide_cycle_row *row, void *arg),
                     void *arg))
/* Jobs of an account that are not done, by cycle, kind and state: what is left of each
 * span of time.  Blocked and delayed jobs count as pending. */
COMMON_READ(work_left, (uint32_t account,
                        bool (*visit)(const struct tide_work_left *row, void *arg), void *arg))
/* Moves the cursor to `to`, whose value is the end of cycle to-1; cursor_out (may
 * be NULL) is replaced by it.  TIDE_STALE if it no longer stands at `from`; TIDE_BUG
 * if a cycle in between is unfinished: the second half of the frontier's assertion
 * (LED4). */
WRITE(cursor_move,
      (uint64_t stream, uint64_t from, uint64_t to, uint64_t now_unix_ms, tide_buf *cursor_out),
      (stream, from, to, now_unix_ms, cursor_out))
/* Moves the cursor over every finished cycle it can reach, as counted in the ledger: for
 * streams whose jobs several processes finish.  *ordinal_out: where it stands now. */
WRITE(cursor_advance,
      (uint64_t stream, uint64_t now_unix_ms, uint64_t *ordinal_out, tide_buf *cursor_out),
      (stream, now_unix_ms, ordinal_out, cursor_out))

/* ---- bad items ---- */

/* In the order of account, kind and item. */
COMMON_READ(bad_list, (uint32_t account, uint32_t kind,
                       bool (*visit)(const struct tide_bad_row *row, void *arg), void *arg))
/* The same from behind a row on, which need not exist any more. */
COMMON_READ(bad_after, (uint32_t account, uint32_t kind, const struct tide_bad_key *after,
                        bool (*visit)(const struct tide_bad_row *row, void *arg), void *arg))
/* state -1: any. */
COMMON_READ(bad_count, (uint32_t account, uint32_t kind, int state, uint64_t *count_out))
COMMON_WRITE(bad_state, (uint32_t account, uint32_t kind, tide_text item, tide_bad_state state,
                         uint64_t now_unix_ms))

/* ---- intents (E1.9): a unique tag is durable before the call, its outcome after it ---- */

/* Creates it, or returns the existing one. */
CHECKED_WRITE(intent,
              (uint64_t job, tide_text tag, tide_text detail, uint64_t now_unix_ms,
               tide_intent_state *state_out, tide_buf *outcome_out),
              (job, tag, detail, now_unix_ms, state_out, outcome_out))
/* The same without creating one: TIDE_NOT_FOUND tells a new tag from one that
 * was written before a crash. */
READ(intent_find, (tide_text tag, tide_intent_state *state_out, tide_buf *outcome_out),
     (tag, state_out, outcome_out))
COMMON_WRITE(intent_end,
             (tide_text tag, tide_intent_state state, tide_text outcome, uint64_t now_unix_ms))

/* ---- schedules ---- */

/* Adds or changes by name; keeps slot_last. */
COMMON_WRITE(schedule, (const struct tide_schedule_row *row, uint64_t *id_out))
COMMON_READ(schedules, (bool (*visit)(const struct tide_schedule_row *row, void *arg), void *arg))
/* The unique (schedule, slot) decides (lesson 10): TIDE_EXISTS when it fired. */
CHECKED_WRITE(schedule_fire, (uint64_t schedule, uint64_t slot, uint64_t now_unix_ms),
              (schedule, slot, now_unix_ms))

/* ---- alerts ---- */

/* level 0 clears it. */
COMMON_WRITE(alert, (const char *condition, uint32_t account, int level, const char *text,
                     uint64_t now_unix_ms))
/* Records that a notification was sent; kept while the alert lasts (E6.4). */
COMMON_WRITE(alert_notified, (const char *condition, uint32_t account, uint64_t now_unix_ms))
COMMON_READ(alerts, (bool (*visit)(const struct tide_alert_row *row, void *arg), void *arg))

/* ---- notes: small facts, as the clean stop, the last run, last-sent times ---- */

COMMON_WRITE(note, (const char *key, tide_text value))
/* TIDE_NOT_FOUND. */
COMMON_READ(note_get, (const char *key, tide_buf *value_out))

/* ---- reading, for commands ---- */

/* Newest first.  Texts are borrowed during the call.  `visit` returns false to stop. */
COMMON_READ(jobs, (const struct tide_job_filter *filter,
                   bool (*visit)(const struct tide_job_row *row, void *arg), void *arg))
/* How many match; reads no more than an index where there is one for the state. */
COMMON_READ(jobs_count, (const struct tide_job_filter *filter, uint64_t *count_out))
/* What the job waits for: unfinished, failed and canceled dependencies, at most
 * `count_max` ids with their states. */
COMMON_READ(needs, (uint64_t job, struct tide_need *needs_out, size_t count_max, size_t *count_out))
COMMON_READ(counts, (uint64_t now_unix_ms,
                     bool (*visit)(const struct tide_job_count *row, void *arg), void *arg))
/* The same without jobs that are done, of which a history may have many. */
COMMON_READ(counts_left, (uint64_t now_unix_ms,
                          bool (*visit)(const struct tide_job_count *row, void *arg), void *arg))
/* The size of what is stored for an account besides its jobs: streams, unfinished cycles, bad
 * items, its governor and its notes, as bytes of text plus 8 for each number (E6.4), and whether
 * there are records of its items.  Reads all of it. */
COMMON_READ(metadata, (uint32_t account, uint64_t *bytes_out, bool *bad_out))
/* Diagnosis of the running ledger (`jobs doctor`): old snapshots, bloat, dead members that
 * hold something, jobs that no living member can run, stalled queues, partitions that are
 * missing or overdue. */
READ(doctor,
     (uint64_t now_unix_ms, bool (*visit)(const struct tide_symptom *symptom, void *arg),
      void *arg),
     (now_unix_ms, visit, arg))

#undef OP
#undef OP_CHECKED
#undef OP_SHARED
#undef OP_COMMON
#undef OP_LIST
#undef OP_WRITE
#undef OP_READ
#undef WRITE
#undef READ
#undef CHECKED_WRITE
#undef CHECKED_READ
#undef SHARED_WRITE
#undef SHARED_READ
#undef COMMON_WRITE
#undef COMMON_READ
