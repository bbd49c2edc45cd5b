/* look.h - what users are shown of the assistant's records: counts, lists, one thread explained.
 *
 * Reads only, on any connection, while an engine runs or not; where the assistant never ran there is
 * nothing.  Lists begin with what changed last and go on behind a cursor, so that a page costs the
 * records of the page, not of the account: a hundred thousand records answer in under 100 ms
 * (tests/unit/assistant/assistant_many_rows_test.c).
 *
 *   LOK1  a walk by cursors visits every record that does not change meanwhile exactly once.
 *   LOK2  a list and a timeline read no prompt, answer or tool log: those may be megabytes each.
 */
#ifndef TIDE_ASSISTANT_STORE_LOOK_H
#define TIDE_ASSISTANT_STORE_LOOK_H

#include "assistant/store/store.h"

enum { TIDE_ASSISTANT_PAGE_MAX = 500, TIDE_ASSISTANT_CURSOR_BYTES = 48 };

struct tide_assistant_counts {
    uint64_t records;
    uint64_t by_status[TIDE_ASSISTANT_STATUSES];
    uint64_t by_category[TIDE_ASSISTANT_CATEGORIES];
    /* Model calls that began since `since_ms`. */
    uint64_t calls, tokens_in, tokens_out;
    uint64_t given_up; /* threads whose jobs failed as often as they are tried */
    struct tide_assistant_sync sync;
    uint64_t pushed_ms; /* when a push came last; 0: none did yet */
};
tide_status tide_assistant_counts(tide_rows db, uint32_t account, uint64_t since_ms,
                                  struct tide_assistant_counts *counts_out, tide_error *err);

/* Where a page ends; zeroed: at the beginning. */
struct tide_assistant_cursor {
    uint64_t updated_ms, id;
};
/* "1767225600000.17", for links; "" for a zeroed one. */
void tide_assistant_cursor_text(const struct tide_assistant_cursor *cursor,
                                char text_out[TIDE_ASSISTANT_CURSOR_BYTES]);
bool tide_assistant_cursor_of(tide_text text, struct tide_assistant_cursor *cursor_out);

struct tide_assistant_filter {
    uint32_t account;                 /* 0: all */
    tide_assistant_status status;     /* NO_STATUS: all */
    tide_assistant_category category; /* NO_CATEGORY: all */
    const char *sender;               /* NULL: all */
    bool oldest_first;                /* by the last change */
};
/* How many there are, from the tally (STO9).  `sender` is not counted. */
tide_status tide_assistant_emails_total(tide_rows db, const struct tide_assistant_filter *filter,
                                        uint64_t *total_out, tide_error *err);
/* At most `count` records after the cursor, which moves to the last one.  *more_out: there are more. */
tide_status tide_assistant_emails(tide_rows db, const struct tide_assistant_filter *filter,
                                  struct tide_assistant_cursor *cursor, size_t count,
                                  void (*visit)(const struct tide_assistant_email *email,
                                                void *arg),
                                  void *arg, bool *more_out, tide_error *err);

/* What happened to one thread: its record, then its events, model calls, runs and drafts, each kind in
 * the order of time.  Calls and runs come without their texts (LOK2).  A visitor of NULL is not called.
 * TIDE_NOT_FOUND: nothing is known of it; TIDE_CORRUPT: a row is wrong, and err says which. */
struct tide_assistant_explain {
    void (*email)(const struct tide_assistant_email *email, void *arg);
    void (*event)(const struct tide_assistant_event *event, void *arg);
    void (*call)(const struct tide_assistant_call *call, void *arg);
    void (*run)(const struct tide_assistant_run *run, void *arg);
    void (*draft)(const struct tide_assistant_draft *draft, void *arg);
    void *arg;
};
tide_status tide_assistant_explain(tide_rows db, uint32_t account, const char *thread_id,
                                   const struct tide_assistant_explain *explain, tide_error *err);

/* ---- events, calls, runs: by id, which is the order in which they began ---- */

typedef enum tide_assistant_outcome {
    TIDE_ASSISTANT_ANY = 0,
    TIDE_ASSISTANT_ANSWERED,
    TIDE_ASSISTANT_CALL_FAILED,
    TIDE_ASSISTANT_WAITS, /* it has no end yet */
} tide_assistant_outcome;

struct tide_assistant_log {
    uint32_t account;               /* 0: all */
    const char *thread_id;          /* NULL: all */
    const char *kind;               /* of events and calls, the status of runs; NULL: all */
    tide_assistant_outcome outcome; /* of calls */
    bool oldest_first;
    uint64_t after; /* the last id of the page before; 0: at the beginning */
    size_t count;   /* 1 to TIDE_ASSISTANT_PAGE_MAX */
};
/* At most log->count of them.  *more_out: there are more. */
tide_status tide_assistant_events(tide_rows db, const struct tide_assistant_log *log,
                                  void (*visit)(const struct tide_assistant_event *event,
                                                void *arg),
                                  void *arg, bool *more_out, tide_error *err);
/* Without their texts (LOK2). */
tide_status tide_assistant_calls(tide_rows db, const struct tide_assistant_log *log,
                                 void (*visit)(const struct tide_assistant_call *call, void *arg),
                                 void *arg, bool *more_out, tide_error *err);
tide_status tide_assistant_runs(tide_rows db, const struct tide_assistant_log *log,
                                void (*visit)(const struct tide_assistant_run *run, void *arg),
                                void *arg, bool *more_out, tide_error *err);
/* One of them with its texts.  TIDE_NOT_FOUND. */
tide_status tide_assistant_call_look(tide_rows db, uint64_t id,
                                     void (*visit)(const struct tide_assistant_call *call,
                                                   void *arg),
                                     void *arg, tide_error *err);
tide_status tide_assistant_run_look(tide_rows db, uint64_t id,
                                    void (*visit)(const struct tide_assistant_run *run, void *arg),
                                    void *arg, tide_error *err);

#endif
