/* store.h - what must survive of the reader, beside the ledger: what a person did and the server has not
 * confirmed, and drafts (K11).
 *
 * Everything here runs inside a transaction of the ledger, on SQLite and PostgreSQL; what only reads
 * takes a ledger that was opened to read as well.
 *
 *     reader_action  what a person asked for; numbered for each account
 *     reader_change  which labels it changes of which messages.  Those of waiting actions are the
 *                    overlay: what is shown is what the server has, with these on top
 *     reader_draft   messages that are being written, and those that are to be sent
 *     reader_draft_copy  how far each is at the server as a draft
 *
 *                 add                     end(DONE)
 *     (nothing) ------> WAITING ---------------------------> DONE
 *                          | end(REFUSED): the server said no
 *                          +--------------------------------> REFUSED
 *                          | end(UNDONE): the person took it back
 *                          +--------------------------------> UNDONE
 *
 * Invariants:
 *   RDS1  an action leaves WAITING once; its changes leave the overlay in the same transaction.
 *   RDS2  changes name what differs from what was shown: an action that changes nothing has none, and
 *         undoing it restores exactly what was there.
 *   RDS3  of changes to the same label of a message the one of the latest action counts.
 *   RDS4  `changed` of an action grows with each change of any action of the account.
 *   RDS5  an action that was begun is not undone but followed by its inverse: the server may have it.
 *   RDS6  changes of action 0 hide the server's copies of drafts that are here: such a message is shown
 *         once, as the draft.
 *   RDS7  `changed_ms` of a draft grows with each change of it, whatever the clock does: it names what was
 *         written.
 */
#ifndef TIDE_READER_STORE_H
#define TIDE_READER_STORE_H

#include "base/buf.h"
#include "db/rows.h"

enum {
    TIDE_ACTION_WORD_BYTES = 16,
    TIDE_ACTION_ERROR_BYTES = 400,
    TIDE_ACTION_ID_BYTES = 65,
    TIDE_ACTION_MESSAGES_MAX = 1000,
    TIDE_DRAFT_ID_BYTES = 65,
    TIDE_DRAFT_BYTES_MAX = 1 << 20,
};

#define TIDE_OVERLAY_GONE "GONE" /* the pseudo label of what was deleted for ever */

typedef enum tide_action_state {
    TIDE_ACTION_WAITING = 0,
    TIDE_ACTION_DONE = 1,
    TIDE_ACTION_REFUSED = 2,
    TIDE_ACTION_UNDONE = 3,
} tide_action_state;
const char *tide_action_state_name(tide_action_state state); /* "waiting" */

struct tide_reader_action {
    uint64_t id; /* of the account */
    uint32_t account;
    char what[TIDE_ACTION_WORD_BYTES]; /* "archive" */
    tide_action_state state;
    char draft[TIDE_DRAFT_ID_BYTES]; /* of "send"; else "" */
    char error[TIDE_ACTION_ERROR_BYTES];
    uint64_t made_ms, due_ms, ended_ms;
    uint64_t undo_of; /* 0: none */
    uint64_t changed;
    uint64_t messages; /* how many it changes */
    bool begun;        /* a call may have been made: it can no longer be dropped */
};

struct tide_change {
    tide_text message, thread;
    tide_text label;
    bool added;
    int64_t internal_ms;
};

tide_status tide_reader_tables(tide_rows db, tide_error *err);
/* All rows of an account that is removed. */
tide_status tide_reader_forget(tide_rows db, uint32_t account, tide_error *err);

/* ---- actions ---- */

/* Adds it, WAITING; *action gets its id. */
tide_status tide_action_add(tide_rows db, struct tide_reader_action *action,
                            const struct tide_change *changes, size_t count, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_action_get(tide_rows db, uint32_t account, uint64_t id,
                            struct tide_reader_action *action_out, tide_error *err);
/* The clock may have been set back since actions were stored: one that nothing holds back is due now,
 * and one that is held waits at most `hold_ms`, the longest hold, from now on. */
tide_status tide_actions_clock(tide_rows db, uint32_t account, uint64_t now_ms, uint64_t hold_ms,
                               tide_error *err);
/* Accounts with a waiting action that was made later than now: the clock was set back. */
tide_status tide_actions_ahead(tide_rows db, uint64_t now_ms,
                               void (*visit)(uint32_t account, void *arg), void *arg,
                               tide_error *err);
/* The one that is uploaded next: the one that was begun, else the first by number of those that are due,
 * else the one that will be due next.  TIDE_NOT_FOUND: none waits. */
tide_status tide_action_next(tide_rows db, uint32_t account, uint64_t now_ms,
                             struct tide_reader_action *action_out, tide_error *err);
/* Before its first call.  TIDE_STALE: it does not wait. */
tide_status tide_action_begin(tide_rows db, uint32_t account, uint64_t id, tide_error *err);
/* TIDE_STALE: it does not wait. */
tide_status tide_action_end(tide_rows db, uint32_t account, uint64_t id, tide_action_state state,
                            const char *error, uint64_t now_ms, tide_error *err);
/* Newest first. */
tide_status tide_actions_each(tide_rows db, uint32_t account, uint32_t limit,
                              void (*visit)(const struct tide_reader_action *action, void *arg),
                              void *arg, tide_error *err);
/* Likewise, of one state. */
tide_status tide_actions_in(tide_rows db, uint32_t account, tide_action_state state, uint32_t limit,
                            void (*visit)(const struct tide_reader_action *action, void *arg),
                            void *arg, tide_error *err);
/* How many wait, and how many were refused since then. */
tide_status tide_actions_count(tide_rows db, uint32_t account, uint64_t since_ms,
                               uint64_t *waiting_out, uint64_t *refused_out, tide_error *err);
/* Actions that ended before that time are forgotten; one is kept, for RDS4. */
tide_status tide_actions_purge(tide_rows db, uint32_t account, uint64_t before_ms, tide_error *err);

/* The changes of an action, by message; borrowed for the call. */
tide_status tide_action_changes(tide_rows db, uint32_t account, uint64_t id,
                                void (*visit)(const struct tide_change *change, void *arg),
                                void *arg, tide_error *err);

/* ---- the overlay ---- */

/* Changes of a message, in the order of their actions. */
tide_status tide_overlay_of(tide_rows db, uint32_t account, tide_text message,
                            void (*visit)(tide_text label, bool added, void *arg), void *arg,
                            tide_error *err);
/* Messages to which the label was added and that arrived before (ms, id), newest first. */
tide_status tide_overlay_added(tide_rows db, uint32_t account, tide_text label, int64_t before_ms,
                               tide_text before_id, uint32_t limit,
                               bool (*visit)(tide_text message, int64_t internal_ms, void *arg),
                               void *arg, tide_error *err);
/* The messages it has changes of, each once. */
tide_status tide_overlay_messages(tide_rows db, uint32_t account,
                                  void (*visit)(tide_text message, void *arg), void *arg,
                                  tide_error *err);
/* The messages of actions that changed after `since`; *newest_out: the version now (RDS4). */
tide_status tide_overlay_changes(tide_rows db, uint32_t account, uint64_t since,
                                 void (*visit)(tide_text message, void *arg), void *arg,
                                 uint64_t *newest_out, tide_error *err);

/* ---- drafts ---- */

struct tide_draft {
    char id[TIDE_DRAFT_ID_BYTES]; /* chosen by the page */
    uint32_t account;
    uint64_t changed_ms;
    uint64_t sending;   /* the action that sends it; 0: it is being written */
    tide_text json;     /* what was written; borrowed, as the next */
    tide_text outgoing; /* how far the server has it: written before and after each call; "" */
    tide_text files;    /* [{"file", "name", "bytes"}]: what is attached (reader/drafts.h) */
    /* Values of changed_ms; 0: none. */
    uint64_t copied_ms;  /* this is at the server */
    uint64_t refused_ms; /* this the server refused */
    uint64_t closed_ms;  /* after this nobody has it open any more */
};
/* Adds or replaces what was written.  *created_out, which may be NULL: there was no such draft.
 * TIDE_EXISTS: it is being sent. */
tide_status tide_draft_put(tide_rows db, const struct tide_draft *draft, bool *created_out,
                           tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_draft_get(tide_rows db, uint32_t account, const char *id,
                           void (*visit)(const struct tide_draft *draft, void *arg), void *arg,
                           tide_error *err);
tide_status tide_drafts_each(tide_rows db, uint32_t account,
                             void (*visit)(const struct tide_draft *draft, void *arg), void *arg,
                             tide_error *err);
/* Those whose id is greater than `after`, in the order of ids, which no change moves; `visit` returns false to
 * end it. */
tide_status tide_drafts_after(tide_rows db, uint32_t account, const char *after,
                              bool (*visit)(const struct tide_draft *draft, void *arg), void *arg,
                              tide_error *err);
/* Also while it is being sent.  TIDE_NOT_FOUND. */
tide_status tide_draft_outgoing(tide_rows db, uint32_t account, const char *id, tide_text outgoing,
                                tide_error *err);
/* Adds or replaces it by what the server has: the texts of `draft`, which count as written at its changed_ms
 * or later (RDS7), and as copied.  TIDE_EXISTS: it is being sent. */
tide_status tide_draft_take(tide_rows db, const struct tide_draft *draft, tide_error *err);
/* Replaces the list of what is attached.  TIDE_EXISTS: it is being sent; TIDE_NOT_FOUND. */
tide_status tide_draft_files(tide_rows db, uint32_t account, const char *id, tide_text files,
                             uint64_t now_ms, tide_error *err);
typedef enum tide_draft_mark {
    TIDE_DRAFT_COPIED,
    TIDE_DRAFT_REFUSED,
    TIDE_DRAFT_CLOSED,
} tide_draft_mark;
/* What is true of a draft as it was at `changed_ms`; also while it is being sent.  TIDE_NOT_FOUND. */
tide_status tide_draft_is(tide_rows db, uint32_t account, const char *id, tide_draft_mark mark,
                          uint64_t changed_ms, tide_error *err);
/* Accounts with a draft that is not at the server as it is here. */
tide_status tide_drafts_ahead(tide_rows db, void (*visit)(uint32_t account, void *arg), void *arg,
                              tide_error *err);
/* It is to be sent by an action; 0: no longer.  TIDE_EXISTS: another one sends it; TIDE_NOT_FOUND. */
tide_status tide_draft_send(tide_rows db, uint32_t account, const char *id, uint64_t action,
                            tide_error *err);
/* TIDE_EXISTS: it is being sent. */
tide_status tide_draft_drop(tide_rows db, uint32_t account, const char *id, tide_error *err);
/* The same for one that was sent. */
tide_status tide_draft_end(tide_rows db, uint32_t account, const char *id, tide_error *err);

/* ---- the server's copies of drafts (RDS6) ---- */

tide_status tide_copy_hide(tide_rows db, uint32_t account, const char *message, tide_error *err);
tide_status tide_copy_unhide(tide_rows db, uint32_t account, const char *message, tide_error *err);
tide_status tide_copies_each(tide_rows db, uint32_t account,
                             void (*visit)(tide_text message, void *arg), void *arg,
                             tide_error *err);

#endif
