/* store.h - the durable state of a drive: what was seen on both sides, what both agreed on, what is
 * owed, what waits for consent (D4, D10, D13, D31).
 *
 * Its tables are beside the ledger, in one database, so that an action's `done` and its baseline are
 * one transaction (D3).  Each drive of a home has tables of its own, by its number: `db.number`
 * (db/rows.h).  Functions take the connection of a transaction that the caller begins and ends; a
 * function that returns a failure leaves its transaction to be rolled back.
 * SQLite only: a folder is on one machine, and so is its state.
 *
 * The parts: store.c set-up and versions; remote.c delta pages and rounds; local.c scans; load.c rows
 * for the planner; marks.c which rows may differ; commit.c outcomes of actions; loops.c items that go round in circles; lists.c owed
 * items, consent, conflicts.
 *
 * Invariants (tests/unit/drive/store; with crashes tests/sim/drive):
 *   DST1  a page's rows and its link become durable together; the rows are seen by the planner only
 *         when the link that ends the round is (D31).  Rows + feed from the token = server (I8).
 *   DST2  a remote row is `gone` only by a tombstone in a finished round, or because a finished full
 *         enumeration did not have it (S12); before the end of a round nothing is.
 *   DST3  a local row is `gone` only if its folder was read to its end in a scan that finished, or is
 *         itself gone (S13); a row whose folder could not be read is unsure, not absent (S2).
 *   DST4  a baseline row is written only by the outcome of an action, with both sides' facts (I3).
 *   DST5  an item number or row number is never given twice.
 *   DST6  a database of a newer version is not written to.
 *   DST7  if neither rows nor time changed anything since the last plan, a new plan would find nothing
 *         to do; a page or a scan that brings what the rows already have writes no row.
 *   DST8  a scan leaves alone what was written after it had read the row: an outcome is newer.
 */
#ifndef TIDE_DRIVE_STORE_STORE_H
#define TIDE_DRIVE_STORE_STORE_H

#include "base/mem.h"
#include "db/rows.h"
#include "drive/plan/plan.h"

enum {
    TIDE_DRIVE_ID_BYTES_MAX = 256,
    TIDE_DRIVE_LINK_BYTES_MAX = 8 << 10,
    TIDE_DRIVE_GONE_MS = 10000, /* how long a local file must be missing (S13) */
    TIDE_DRIVE_DAY_MS = 86400000,
    /* The loop breaker (S11). */
    TIDE_DRIVE_LOOP_MS = 600000,
    TIDE_DRIVE_LOOP_TRANSFERS = 4, /* in that time, none of which brought bytes that are new here */
    TIDE_DRIVE_LOOP_COPIES = 10,   /* in a day */
    TIDE_DRIVE_OWED_MS_MAX =
        3600000, /* from a failure until the next try; a loop's hold is a day */
};

/* ---- store.c ---- */

struct tide_drive_home {
    const char *drive_id; /* OneDrive's, normalized */
    const char *root_id;
    const char *marker; /* random, also in .tidemark-root (S14) */
};
/* Creates missing tables.  TIDE_NEWER. */
tide_status tide_drive_store_tables(tide_rows db, tide_error *err);
/* Removes them with all that is in them. */
tide_status tide_drive_store_remove(tide_rows db, tide_error *err);
/* Once, at set-up; later it compares.  TIDE_INVALID: the state of another drive (D35). */
tide_status tide_drive_store_set_up(tide_rows db, const struct tide_drive_home *home,
                                    tide_error *err);

/* Whether there is anything to plan (DST7). */
struct tide_drive_progress {
    uint64_t changed;    /* raised by every write that a plan would see */
    uint64_t planned;    /* `changed` when the last plan loaded its rows */
    uint64_t planned_ms; /* and when that was */
    uint64_t due_ms;     /* time alone makes a plan due then: an owed item, a file that is missing
                          * for long enough (S13); UINT64_MAX: it does not */
};
tide_status tide_drive_progress_read(tide_rows db, struct tide_drive_progress *progress_out,
                                     tide_error *err);
static inline bool tide_drive_plan_is_due(const struct tide_drive_progress *progress,
                                          uint64_t now_ms)
{
    /* A plan that was made later than now: the clock was put back, and says nothing of what is due. */
    return progress->changed != progress->planned || progress->due_ms <= now_ms ||
           progress->planned_ms > now_ms;
}
/* D4: the tidemark stays where it was before the first of the items that are owed now.  A sync begins,
 * and the drive's stream is at `applied_ms`: kept unless something is owed.  What is owed later was
 * seen by this sync or an unfinished one, which the stream has not passed. */
tide_status tide_drive_applied(tide_rows db, uint64_t applied_ms, tide_error *err);
/* Raises `changed` if any of `rows` was written (DST7). */
tide_status tide_drive_changed(tide_rows db, uint64_t rows, tide_error *err);
/* All that a plan of the rows at `changed`, made with `now_ms`, found to do is durable as jobs or is
 * done; and it left nothing out (`loaded.more`). */
tide_status tide_drive_planned(tide_rows db, uint64_t changed, uint64_t now_ms, tide_error *err);

/* ---- remote.c: the delta feed ---- */

typedef enum tide_drive_round {
    TIDE_DRIVE_ROUND_NONE = 0,
    TIDE_DRIVE_ROUND_DELTA = 1,
    TIDE_DRIVE_ROUND_FULL = 2,   /* missing at its end: gone (S12, ApplyDifferences) */
    TIDE_DRIVE_ROUND_FORGOT = 3, /* missing at its end: forgotten by the server (D34) */
} tide_drive_round;

/* An item of a page; empty texts are missing fields (D32). */
struct tide_drive_seen {
    tide_text id;
    tide_text parent_id;
    tide_text name;
    tide_text etag;
    tide_text ctag;
    uint64_t mtime_s;
    struct tide_drive_content content;
    tide_drive_kind kind;
    tide_drive_remote_state state;     /* LIVE, SKIPPED, UNSURE, or GONE: a tombstone */
    tide_drive_reason reason;          /* of SKIPPED */
    tide_text target_drive, target_id; /* of a shortcut to a folder; for drive/mounts.h */
};
struct tide_drive_feed {
    tide_drive_round round;
    char next_link[TIDE_DRIVE_LINK_BYTES_MAX];  /* of the round that runs; "" */
    char delta_link[TIDE_DRIVE_LINK_BYTES_MAX]; /* of the last finished one; "": none */
    uint64_t full_at_ms;                        /* the last full enumeration that finished */
};
tide_status tide_drive_feed_read(tide_rows db, struct tide_drive_feed *feed_out, tide_error *err);
/* Begins a round; drops what an unfinished one brought (dead nextLink, 410). */
tide_status tide_drive_round_begin(tide_rows db, tide_drive_round round, tide_error *err);
/* One page.  Either link is empty; with `delta_link` the round ends and its rows take effect.  A round
 * without any item keeps the old token (D33). */
tide_status tide_drive_page(tide_rows db, const struct tide_drive_seen *items, size_t count,
                            tide_text next_link, tide_text delta_link, uint64_t now_ms,
                            tide_error *err);
/* Ids that a GET must complete: no name, or a parent that is unknown (D32); at most `count` of them
 * are visited. */
tide_status tide_drive_incomplete(tide_rows db, size_t count,
                                  void (*visit)(tide_text id, void *arg), void *arg,
                                  tide_error *err);
/* The answer of a GET outside of a round: the row as it is now. */
tide_status tide_drive_remote_put(tide_rows db, const struct tide_drive_seen *seen,
                                  uint64_t *item_out, tide_error *err);
/* The number of an id; TIDE_NOT_FOUND. */
tide_status tide_drive_item_of(tide_rows db, tide_text id, uint64_t *item_out, tide_error *err);

/* ---- local.c: scans ---- */

/* A local row that was here and is proved absent; rows.h has no word for it, because the planner
 * sees such a row as `local_gone` of its baseline. */
enum { TIDE_DRIVE_LOCAL_GONE = 4 };

/* An entry of a folder: as it was found, or as its row has it. */
struct tide_drive_found {
    uint64_t row;     /* 0: none yet */
    uint64_t version; /* of the row, from 1; each write raises it */
    uint64_t parent;  /* row of its folder */
    tide_text name;
    struct tide_drive_identity identity;
    struct tide_drive_content content;
    uint64_t mtime_ns, ctime_ns, hashed_ns;
    uint32_t nlink, mode;
    tide_drive_kind kind;
    tide_drive_local_state state;
    bool
        has_below; /* of a row that is known: a folder, or there are rows beneath it all the same */
};
/* Whether a row with `a` need not be written for `b`.  *quiet_out: it need, but a plan would not see
 * the difference (times, mode). */
bool tide_drive_found_same(const struct tide_drive_found *a, const struct tide_drive_found *b,
                           bool *quiet_out);
/* The rows of a folder in the order of their names, those that are gone included. */
tide_status tide_drive_known_each(tide_rows db, uint64_t folder,
                                  void (*visit)(const struct tide_drive_found *known, void *arg),
                                  void *arg, tide_error *err);
/* The version of a row.  TIDE_NOT_FOUND: there is none, or it is gone. */
tide_status tide_drive_version_of(tide_rows db, uint64_t row, uint64_t *version_out,
                                  tide_error *err);
/* The row of the folder "a/b"; "": the root.  TIDE_NOT_FOUND: it is no folder that is synced. */
tide_status tide_drive_folder_at(tide_rows db, tide_text path, uint64_t *row_out, tide_error *err);

/* What a scan found to differ from the rows that it had read (local/compare.h). */
struct tide_drive_difference {
    struct tide_drive_found found; /* row and version are those that were read; version 0: new */
    bool state_only;               /* of `found` only row, version and state count */
    bool quiet;
};
/* Writes differences in their order.  A row that has another version by now, or a new entry that has
 * a row by now, was written by an action that knows better: it stays (DST8).  `found.row` is the row
 * of each new entry afterwards; 0: its folder is no longer known.  May be tried again after its
 * transaction failed. */
tide_status tide_drive_scan_write(tide_rows db, struct tide_drive_difference *list, size_t count,
                                  uint64_t now_ms, tide_error *err);
/* What an action found at a place, in the transaction of its outcome; `found.row` and `version` do not
 * count.  TIDE_SUPERSEDED: its folder is not known. */
tide_status tide_drive_scan_put(tide_rows db, const struct tide_drive_found *found,
                                uint64_t *row_out, tide_error *err);

/* An action moved or removed the entry.  Whatever had the new place is gone: it was free. */
tide_status tide_drive_local_moved(tide_rows db, uint64_t row, uint64_t parent, tide_text name,
                                   tide_error *err);
tide_status tide_drive_local_removed(tide_rows db, uint64_t row, tide_error *err);

/* ---- load.c: rows for the planner ---- */

/* How far a plan, or several one after the other, came in what is new on each side. */
struct tide_drive_slice {
    uint64_t item, row; /* 0: at its beginning */
};

/* Owned; the texts live in the arena. */
struct tide_drive_loaded {
    tide_mem *mem;
    tide_arena arena;
    struct tide_drive_trees trees;
    struct tide_drive_remote *remotes;
    struct tide_drive_local *locals;
    struct tide_drive_base *bases;
    uint64_t *owed[3]; /* items, rows, closed items */
    size_t remotes_room, locals_room, bases_room, owed_room[3];
    struct tide_drive_slice from, to; /* of what is new */
    bool more;                        /* new items were left out: those after `to` */
    uint64_t *same; /* items that are marked and differ no longer, for tide_drive_unmark() */
    size_t same_count, same_room;
};
/* The working set of plan.h: all that differs, and of items without baseline at most `news_max` on each
 * side, with what they meet; and what is owed and not due by `now_ms`.  Its cost follows what differs
 * and `news_max`, not what is there (marks.h).  TIDE_FULL: too many changes. */
tide_status tide_drive_load(tide_rows db, size_t news_max, uint64_t now_ms, tide_mem *mem,
                            struct tide_drive_loaded *loaded_out, tide_error *err);
/* The same with the new items after `from`: what is new and cannot be done (held, owed, not synced) must
 * not stand before the rest forever. */
tide_status tide_drive_load_from(tide_rows db, const struct tide_drive_slice *from, size_t news_max,
                                 uint64_t now_ms, tide_mem *mem,
                                 struct tide_drive_loaded *loaded_out, tide_error *err);
void tide_drive_loaded_done(struct tide_drive_loaded *loaded); /* a zeroed one is fine */
/* The next plan need not look at these items, as far as they are still the same (marks.c). */
tide_status tide_drive_unmark(tide_rows db, const uint64_t *items, size_t count, tide_error *err);

/* ---- commit.c: outcomes ---- */

/* What an action did, with the rows as they are now.  The caller has put the remote row
 * (tide_drive_remote_put) and the local one (tide_drive_scan_put) where they changed. */
struct tide_drive_outcome {
    tide_drive_verb verb;
    uint64_t item; /* its remote item now; 0: none */
    uint64_t row;
    uint64_t was_item; /* baseline that this replaces; 0 */
    bool rewritten;    /* the server changed the bytes (D40) */
    bool consented;    /* of a deletion */
    uint64_t now_ms;
};
tide_status tide_drive_commit(tide_rows db, const struct tide_drive_outcome *outcome,
                              tide_error *err);
/* Many of them, as when a plan adopts what both sides have; the first that fails ends it. */
tide_status tide_drive_commit_all(tide_rows db, const struct tide_drive_outcome *outcomes,
                                  size_t count, tide_error *err);
/* Before an item steps aside (D24): it keeps the name it had; and when it no longer does.
 * The empty text ends it. */
tide_status tide_drive_aside_remote(tide_rows db, uint64_t item, tide_text was_name,
                                    tide_error *err);
tide_status tide_drive_aside_local(tide_rows db, uint64_t row, tide_text was_name, tide_error *err);

/* ---- lists.c ---- */

struct tide_drive_owed {
    uint64_t item, row;
    tide_drive_verb verb;
    tide_text name;
    tide_text error;
    uint32_t attempts;
    uint64_t next_ms;
    uint64_t now_ms; /* of tide_drive_owe(): it is owed since then, unless it was before */
    bool bad;        /* refused for what it is: trying again may not help (D40, D41) */
    bool loop;       /* it did not fail: it was transferred or copied again and again (S11) */
    bool closed;     /* the item and all beneath it are read-only online (D37); row 0 */
};
/* tide_drive_commit() and tide_drive_conflict_add() owe by themselves what loops; that ends with its
 * time, or when nothing is to be done any more. */
tide_status tide_drive_owe(tide_rows db, const struct tide_drive_owed *owed, tide_error *err);
tide_status tide_drive_owed_paid(tide_rows db, uint64_t item, uint64_t row, tide_error *err);
/* The job of an action ended without its effect: it is no change that was made.  Only the newest are
 * kept, as many as a list of changes looks through. */
enum { TIDE_DRIVE_UNDONE_MAX = 5000 };
tide_status tide_drive_undone(tide_rows db, uint64_t job, tide_error *err);
/* A user asks for a sync: what failed before is tried with it, and does not wait for its time.  What loops
 * does (S11). */
tide_status tide_drive_owed_now(tide_rows db, tide_error *err);
/* A plan that left nothing out has no action for these: they are paid.  What is closed stays so until
 * its time has come. */
tide_status tide_drive_owed_settle(tide_rows db, const struct tide_drive_plan *plan,
                                   uint64_t now_ms, tide_error *err);
tide_status tide_drive_owed_each(tide_rows db,
                                 void (*visit)(const struct tide_drive_owed *owed, void *arg),
                                 void *arg, tide_error *err);

/* A user wants the content that the item has online now, although its size or hash does not fit: it is
 * tried at once (D41).  TIDE_NOT_FOUND: it is not owed. */
tide_status tide_drive_accept(tide_rows db, uint64_t item, tide_error *err);
tide_status tide_drive_is_accepted(tide_rows db, uint64_t item, tide_text ctag, bool *accepted_out,
                                   tide_error *err);

/* Deletions that wait for consent are exactly those of the last plan (S16). */
struct tide_drive_deletion {
    uint64_t item;
    tide_drive_verb verb;
    tide_text name;
};
tide_status tide_drive_deletions_set(tide_rows db, const struct tide_drive_deletion *deletions,
                                     size_t count, tide_error *err);
/* A number that stands for the whole list; changes with it. */
tide_status tide_drive_deletions_fingerprint(tide_rows db, uint64_t *fingerprint_out,
                                             tide_error *err);
/* TIDE_STALE: the list is another one by now. */
tide_status tide_drive_deletions_accept(tide_rows db, uint64_t fingerprint, uint64_t now_ms,
                                        tide_error *err);
/* What was deleted on one side comes back from the other, at the next plan.  TIDE_STALE: as above. */
tide_status tide_drive_deletions_restore(tide_rows db, uint64_t fingerprint, tide_error *err);
/* The numbers of the guard; `consented` is owned by the caller, of `mem`, `count` large. */
tide_status tide_drive_guard_read(tide_rows db, uint64_t now_ms, tide_mem *mem,
                                  struct tide_drive_guard *guard_out, tide_error *err);
void tide_drive_guard_done(struct tide_drive_guard *guard, tide_mem *mem);

struct tide_drive_conflict {
    uint64_t id;
    tide_drive_notice notice;
    uint64_t item;
    tide_text name;
    tide_text copy;
    uint64_t at_ms;
};
tide_status tide_drive_conflict_add(tide_rows db, const struct tide_drive_conflict *conflict,
                                    tide_error *err);
tide_status tide_drive_conflict_end(tide_rows db, uint64_t id, tide_error *err);
tide_status tide_drive_conflicts_each(tide_rows db,
                                      void (*visit)(const struct tide_drive_conflict *conflict,
                                                    void *arg),
                                      void *arg, tide_error *err);

#endif
