/* look.h - what users are shown of the assistant's records: counts, lists, one thread explained.
 *
 * Reads only, on any connection, while an engine runs or not; where the assistant never ran there is
 * nothing.  Lists begin with what changed last and go on behind a cursor, so that a page costs the
 * records of the page, not of the account: a hundred thousand records answer in under 100 ms
 * (tests/unit/assistant/assistant_scale_test.c).
 *
 *   LOK1  a walk by cursors visits every record that does not change meanwhile exactly once.
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
    struct tide_assistant_sync sync;
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
};
/* At most `count` records after the cursor, which moves to the last one.  *more_out: there are more. */
tide_status tide_assistant_emails(tide_rows db, const struct tide_assistant_filter *filter,
                                  struct tide_assistant_cursor *cursor, size_t count,
                                  void (*visit)(const struct tide_assistant_email *email,
                                                void *arg),
                                  void *arg, bool *more_out, tide_error *err);

/* What happened to one thread: its record, then in the order of time its events, model calls, runs and
 * drafts.  A visitor of NULL is not called.  TIDE_NOT_FOUND: nothing is known of it. */
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

/* Events, calls and runs of an account (0: all), the newest first, with ids below `before` (0: all). */
tide_status tide_assistant_events(tide_rows db, uint32_t account, uint64_t before, size_t count,
                                  void (*visit)(const struct tide_assistant_event *event,
                                                void *arg),
                                  void *arg, tide_error *err);
tide_status tide_assistant_calls(tide_rows db, uint32_t account, uint64_t before, size_t count,
                                 void (*visit)(const struct tide_assistant_call *call, void *arg),
                                 void *arg, tide_error *err);
tide_status tide_assistant_runs(tide_rows db, uint32_t account, uint64_t before, size_t count,
                                void (*visit)(const struct tide_assistant_run *run, void *arg),
                                void *arg, tide_error *err);

#endif
