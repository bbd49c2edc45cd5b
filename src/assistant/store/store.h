/* store.h - the records of the mail assistant beside the ledger (J18), on SQLite and PostgreSQL.
 *
 * A user is a Gmail account of the ledger.  Functions take the connection of a transaction that the
 * caller begins and ends: a handler runs them in tide_transact() or tide_job_effect(), together with
 * the jobs that follow from them, so that neither is ever there without the other.  They may run
 * again in a transaction that is repeated.  Times are milliseconds since 1970.
 *
 *     users.c    users, their labels, settings and sync states
 *     emails.c   one record a thread, its events
 *     drafts.c   drafts of ours, from the intent to their end
 *     marks.c    label changes of ours, known before history shows them (J22)
 *     calls.c    model calls
 *     runs.c     runs of agents, and what they sent
 *     failures.c how often jobs of a thread failed
 *     look.h     what users are shown: counts, lists, one thread explained
 *     status.h   the words, and which status may follow which
 *
 * Invariants (tests/unit/assistant/assistant_rows_test.c, on both databases):
 *   STO1  there is at most one record of a (user, thread).
 *   STO2  a status changes only as status.h allows, and each change has its event in the same
 *         transaction.
 *   STO3  a thread has at most one draft of ours that is being made or lives; the database refuses a
 *         second one.
 *   STO4  a draft's token is recorded before the draft is made, and its id after; a draft of ours that
 *         is not known to be gone is in the table.
 *   STO5  a history id moves only from the one it was read at (TIDE_STALE otherwise), by a function
 *         that needs the transaction of the jobs it stands for.
 *   STO6  events are never changed, and deleted only with their user.
 *   STO7  a mark of a label change is taken at most once.
 *   STO8  a model call is recorded before it is made; the same key finds the same call.
 *   STO9  the tally of a user counts its records by status and category, exactly: it changes with them.
 *   STO10 a run of an agent has at most one reply, recorded before it is sent.
 *   STO11 a failure of a thread's job is counted once, however often it is seen.
 */
#ifndef TIDE_ASSISTANT_STORE_STORE_H
#define TIDE_ASSISTANT_STORE_STORE_H

#include "assistant/words/status.h"
#include "db/rows.h"

enum {
    TIDE_ASSISTANT_ID_BYTES = 64, /* of Gmail's ids */
    TIDE_ASSISTANT_EMAIL_BYTES = 256,
    TIDE_ASSISTANT_SUBJECT_BYTES = 400,
    TIDE_ASSISTANT_REASONING_BYTES = 1000,
    TIDE_ASSISTANT_TOKEN_BYTES = 40,
    TIDE_ASSISTANT_KEY_BYTES = 200,
    TIDE_ASSISTANT_TEXT_BYTES_MAX = 1 << 20, /* of a prompt or an answer */
    TIDE_ASSISTANT_TALK_BYTES_MAX = 6 << 20, /* of an agent's conversation or its answer, as JSON */
    TIDE_ASSISTANT_STATE_BYTES_MAX = 64 << 20, /* of an agent's run, as JSON */
};

/* Makes what is missing. */
tide_status tide_assistant_tables(tide_rows db, tide_error *err);

/* ---- users ---- */

struct tide_assistant_user {
    uint32_t account; /* the ledger's number of the Gmail account */
    char email[TIDE_ASSISTANT_EMAIL_BYTES];
    char endpoint[512];    /* "": Google's */
    uint64_t onboarded_ms; /* 0: its labels are not all known yet (J9), or it ended */
    uint64_t ended_ms;     /* when the assistant ended for it; 0: it did not */
};
/* Adds the user, or changes it. */
tide_status tide_assistant_user_put(tide_rows db, const struct tide_assistant_user *user,
                                    tide_error *err);
/* TIDE_NOT_FOUND: J2, a job of an unknown user fails. */
tide_status tide_assistant_user_get(tide_rows db, uint32_t account,
                                    struct tide_assistant_user *user_out, tide_error *err);
/* By address, case ignored.  TIDE_NOT_FOUND, also where the assistant never ran. */
tide_status tide_assistant_user_named(tide_rows db, const char *email,
                                      struct tide_assistant_user *user_out, tide_error *err);
tide_status tide_assistant_users_each(tide_rows db,
                                      void (*visit)(const struct tide_assistant_user *user,
                                                    void *arg),
                                      void *arg, tide_error *err);
/* The assistant no longer works for the user: records stay, and onboarding makes it a user again, from the
 * mail that comes then.  Again: nothing changes. */
tide_status tide_assistant_user_end(tide_rows db, uint32_t account, uint64_t now_ms,
                                    tide_error *err);
/* The user and all its rows. */
tide_status tide_assistant_user_remove(tide_rows db, uint32_t account, tide_error *err);

/* Gmail's ids of the labels; "" where one is not known. */
struct tide_assistant_labels {
    char ids[TIDE_ASSISTANT_LABELS][TIDE_ASSISTANT_ID_BYTES];
};
tide_status tide_assistant_label_put(tide_rows db, uint32_t account, tide_assistant_label label,
                                     const char *id, tide_error *err);
tide_status tide_assistant_labels_get(tide_rows db, uint32_t account,
                                      struct tide_assistant_labels *labels_out, tide_error *err);

tide_status tide_assistant_setting_put(tide_rows db, uint32_t account, const char *name,
                                       const char *value, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_assistant_setting_get(tide_rows db, uint32_t account, const char *name,
                                       char *value, size_t value_bytes, tide_error *err);
/* By name. */
tide_status tide_assistant_settings_each(tide_rows db, uint32_t account,
                                         void (*visit)(const char *name, const char *value,
                                                       void *arg),
                                         void *arg, tide_error *err);

/* When a push came last (J6); 0: none did yet. */
tide_status tide_assistant_pushed_put(tide_rows db, uint32_t account, uint64_t now_ms,
                                      tide_error *err);
tide_status tide_assistant_pushed_get(tide_rows db, uint32_t account, uint64_t *pushed_ms_out,
                                      tide_error *err);

struct tide_assistant_sync {
    char history_id[TIDE_ASSISTANT_ID_BYTES]; /* "": none, the next sync is a full one (J7) */
    uint64_t synced_ms;                       /* when it moved last */
    uint64_t full_ms;                         /* when the last full sync ended */
};
/* All zero: there was none yet. */
tide_status tide_assistant_sync_get(tide_rows db, uint32_t account,
                                    struct tide_assistant_sync *sync_out, tide_error *err);
/* STO5: `from` is what the caller read before it created the jobs of this transaction.  `full`: all
 * of the window was listed. */
tide_status tide_assistant_sync_move(tide_rows db, uint32_t account, const char *from,
                                     const char *to, bool full, uint64_t now_ms, tide_error *err);

/* ---- records ---- */

struct tide_assistant_email {
    uint64_t id;
    uint32_t account;
    char thread_id[TIDE_ASSISTANT_ID_BYTES];
    char message_id[TIDE_ASSISTANT_ID_BYTES]; /* the message that was classified or archived last */
    char sender[TIDE_ASSISTANT_EMAIL_BYTES];
    char subject[TIDE_ASSISTANT_SUBJECT_BYTES];
    tide_assistant_category category;
    char confidence[16], language[16], style[64];
    char reasoning[TIDE_ASSISTANT_REASONING_BYTES];
    tide_assistant_status status;
    uint32_t messages; /* in the thread when it was classified (J16) */
    uint32_t reworks;
    uint64_t created_ms, updated_ms;
    char draft_id[TIDE_ASSISTANT_ID_BYTES]; /* of the draft that lives; "": none */
    uint64_t draft_ms;                      /* when it was made */
};
/* TIDE_NOT_FOUND. */
tide_status tide_assistant_email_get(tide_rows db, uint32_t account, const char *thread_id,
                                     struct tide_assistant_email *email_out, tide_error *err);
/* Makes the record, or writes a new classification into it: everything but id, status, reworks and
 * created_ms, which are kept (J10).  A new one has `status`, pending or skipped (AST1).  Adds the event
 * `event`. */
tide_status tide_assistant_email_put(tide_rows db, const struct tide_assistant_email *email,
                                     const char *event, uint64_t job, tide_error *err);

struct tide_assistant_event {
    uint64_t id;
    uint32_t account;
    const char *thread_id;
    const char *kind;   /* "classified", "draft_created", ... */
    const char *detail; /* one line; "": none */
    uint64_t job;       /* that caused it */
    uint64_t at_ms;
};
tide_status tide_assistant_event_add(tide_rows db, const struct tide_assistant_event *event,
                                     tide_error *err);
/* Whether that job has written an event of that kind about the thread. */
tide_status tide_assistant_event_known(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *kind, uint64_t job, bool *known_out,
                                       tide_error *err);
/* Changes the status of the event's thread and adds the event (STO2); from that status to itself
 * nothing is written.  TIDE_NOT_FOUND: no record; TIDE_SUPERSEDED: this status may not follow the
 * one it has, because another job changed it meanwhile. */
tide_status tide_assistant_email_move(tide_rows db, const struct tide_assistant_event *event,
                                      tide_assistant_status to, tide_error *err);
/* Sets the newest message of the thread that the record knows, and how many there were: those were archived
 * with it (J12).  Without a record nothing changes. */
tide_status tide_assistant_email_knows(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *message_id, uint32_t messages, tide_error *err);
/* Sets how often it was reworked. */
tide_status tide_assistant_email_reworked(tide_rows db, uint32_t account, const char *thread_id,
                                          uint32_t reworks, uint64_t now_ms, tide_error *err);

/* ---- drafts of ours ---- */

typedef enum tide_assistant_draft_state {
    TIDE_ASSISTANT_DRAFT_MAKING = 0, /* its token is recorded; it may exist */
    TIDE_ASSISTANT_DRAFT_LIVE = 1,
    TIDE_ASSISTANT_DRAFT_STALE = 2, /* to be trashed */
    TIDE_ASSISTANT_DRAFT_GONE = 3,  /* trashed by us, sent, or discarded */
} tide_assistant_draft_state;

struct tide_assistant_draft {
    char token[TIDE_ASSISTANT_TOKEN_BYTES]; /* the value of its X-Tidemark-Draft; unique */
    uint32_t account;
    char thread_id[TIDE_ASSISTANT_ID_BYTES];
    tide_assistant_draft_state state;
    char draft_id[TIDE_ASSISTANT_ID_BYTES];   /* "": whether it exists is not known */
    char message_id[TIDE_ASSISTANT_ID_BYTES]; /* of Gmail, when it was made */
    uint64_t begun_ms, made_ms;               /* made 0: as above */
};
/* The intent (STO4): the draft that lived or was being made is stale, this one is being made.  A
 * token that is known already changes nothing. */
tide_status tide_assistant_draft_begin(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *token, uint64_t now_ms, tide_error *err);
/* It exists, and what follows from it is not written yet: from now on its id names it, whatever a mail
 * program makes of its headers. */
tide_status tide_assistant_draft_named(tide_rows db, const char *token, const char *draft_id,
                                       const char *message_id, uint64_t now_ms, tide_error *err);
/* Whether a draft of ours has, or had, that id. */
tide_status tide_assistant_draft_known(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *draft_id, bool *known_out, tide_error *err);
/* It exists, and its round is over.  TIDE_SUPERSEDED: it became stale meanwhile; its ids are recorded all the same, so that
 * it is trashed. */
tide_status tide_assistant_draft_made(tide_rows db, const char *token, const char *draft_id,
                                      const char *message_id, uint64_t now_ms, tide_error *err);
/* The draft that lives is to be trashed; none is fine. */
tide_status tide_assistant_draft_stale(tide_rows db, uint32_t account, const char *thread_id,
                                       tide_error *err);
tide_status tide_assistant_draft_gone(tide_rows db, const char *token, tide_error *err);
/* The draft of a thread in that state that was begun first.  TIDE_NOT_FOUND. */
tide_status tide_assistant_draft_get(tide_rows db, uint32_t account, const char *thread_id,
                                     tide_assistant_draft_state state,
                                     struct tide_assistant_draft *draft_out, tide_error *err);

/* Threads with a draft that is being made or stale since then, at most `count`. */
tide_status tide_assistant_drafts_left(tide_rows db, uint32_t account, uint64_t until_ms,
                                       size_t count,
                                       void (*visit)(const char *thread_id, void *arg), void *arg,
                                       tide_error *err);

/* ---- label changes of ours (J22) ---- */

/* Before the call: `job` is going to put the label on the message.  Again: harmless. */
tide_status tide_assistant_mark_put(tide_rows db, uint32_t account, const char *message_id,
                                    const char *label_id, uint64_t job, uint64_t now_ms,
                                    tide_error *err);
/* After it: history has it from now on. */
tide_status tide_assistant_marks_done(tide_rows db, uint32_t account, uint64_t job, uint64_t now_ms,
                                      tide_error *err);
/* History shows the label on the message: *ours_out, and the mark is gone (STO7). */
tide_status tide_assistant_mark_take(tide_rows db, uint32_t account, const char *message_id,
                                     const char *label_id, bool *ours_out, tide_error *err);
/* A job was about to put the label on the message, and has not ended: *open_out.  The mark stays. */
tide_status tide_assistant_mark_open(tide_rows db, uint32_t account, const char *message_id,
                                     const char *label_id, bool *open_out, tide_error *err);
/* A sync that began at `begun_ms` read all of history: marks of changes that were over a minute
 * before, and are still there, were never shown (the label was there already), nor will be.
 * `skipped`: it left history out up to that time, and all of them count.  Those of jobs that did not
 * end are kept for an hour. */
tide_status tide_assistant_marks_prune(tide_rows db, uint32_t account, uint64_t begun_ms,
                                       bool skipped, tide_error *err);

/* ---- threads whose jobs failed ---- */

/* After so many failures a thread is not tried again by itself. */
enum { TIDE_ASSISTANT_FAILURES_MAX = 5 };

struct tide_assistant_failure {
    char message_id[TIDE_ASSISTANT_ID_BYTES]; /* the newest one that was known then; "" */
    uint32_t failures;                        /* since then; at most TIDE_ASSISTANT_FAILURES_MAX */
};
/* Jobs of the thread are failed, the last one since `failed_ms`: a failure that was not counted yet is.
 * *failures_out: how many there are; *more_out: this is one more.  `message_id` counts for the first. */
tide_status tide_assistant_failure_add(tide_rows db, uint32_t account, const char *thread_id,
                                       const char *message_id, uint64_t failed_ms, uint64_t now_ms,
                                       uint32_t *failures_out, bool *more_out, tide_error *err);
/* There is a reason to try the thread again: its failures count from 0, with this message ("": the same). */
tide_status tide_assistant_failure_reset(tide_rows db, uint32_t account, const char *thread_id,
                                         const char *message_id, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_assistant_failure_get(tide_rows db, uint32_t account, const char *thread_id,
                                       struct tide_assistant_failure *failure_out, tide_error *err);
/* Forgets the threads that have no failed job at `now_ms`, when all that have one were added: at once if they
 * had been given up, since a user saw to them; else after a day, in which they may fail again. */
tide_status tide_assistant_failures_prune(tide_rows db, uint32_t account, uint64_t now_ms,
                                          tide_error *err);
/* All of a user. */
tide_status tide_assistant_failures_drop(tide_rows db, uint32_t account, tide_error *err);

/* ---- model calls ---- */

struct tide_assistant_call {
    uint64_t id;
    uint32_t account;
    const char *thread_id; /* "": of none */
    const char *key;       /* what it is for, unique: "classify/3/17f2/1"; STO8 */
    const char *kind;      /* "classify", "context", "draft", "rework", "agent" */
    const char *model;
    /* As they were sent.  Of an agent the prompt is the whole conversation, and the answer is one,
     * both as the JSON of cloud/chat/talk.h. */
    tide_text system, prompt;
    uint64_t job;
    uint64_t begun_ms;
    /* Its end. */
    bool ended;
    tide_text answer;
    const char *error; /* "": it has an answer */
    uint64_t tokens_in, tokens_out, latency_ms;
    uint64_t ended_ms;
};
/* STO8: *id_out is the call of that key, also when it was there before; *ended_out: it has its end. */
tide_status tide_assistant_call_begin(tide_rows db, const struct tide_assistant_call *call,
                                      uint64_t *id_out, bool *ended_out, tide_error *err);
/* Writes what is below "Its end". */
tide_status tide_assistant_call_end(tide_rows db, const struct tide_assistant_call *call,
                                    tide_error *err);
/* `visit` sees the call of that key, borrowed for its duration.  TIDE_NOT_FOUND. */
tide_status tide_assistant_call_get(tide_rows db, const char *key,
                                    void (*visit)(const struct tide_assistant_call *call,
                                                  void *arg),
                                    void *arg, tide_error *err);
/* Whether a question about the thread that began since then has no answer yet. */
tide_status tide_assistant_call_open(tide_rows db, uint32_t account, const char *thread_id,
                                     uint64_t since_ms, bool *open_out, tide_error *err);

/* ---- runs of agents (J15) ---- */

struct tide_assistant_run {
    uint64_t id;
    uint32_t account;
    const char *thread_id;
    const char *message_id;
    const char *key; /* unique, as of a call */
    const char *profile, *rule;
    const char *status; /* "running", "done", "limit", "escalated", "failed" */
    tide_text tools;    /* JSON: the log of tool calls */
    uint32_t iterations;
    tide_text final; /* the model's last message */
    const char *error;
    uint64_t begun_ms, ended_ms; /* 0: it has not ended */
};
tide_status tide_assistant_run_begin(tide_rows db, const struct tide_assistant_run *run,
                                     uint64_t *id_out, tide_error *err);
/* Writes status, tools, iterations, final, error and ended_ms. */
tide_status tide_assistant_run_put(tide_rows db, const struct tide_assistant_run *run,
                                   tide_error *err);
/* What a run resumes from: the JSON of agent/run.h. */
tide_status tide_assistant_run_state_put(tide_rows db, uint64_t id, tide_text state,
                                         tide_error *err);
/* Appends it. */
tide_status tide_assistant_run_state_get(tide_rows db, uint64_t id, tide_buf *state_out,
                                         tide_error *err);
tide_status tide_assistant_run_get(tide_rows db, const char *key,
                                   void (*visit)(const struct tide_assistant_run *run, void *arg),
                                   void *arg, tide_error *err);

/* The runs of a user that began until then and have not ended, oldest first, at most `count`. */
tide_status
tide_assistant_runs_open(tide_rows db, uint32_t account, uint64_t until_ms, size_t count,
                         void (*visit)(const char *thread_id, const char *message_id, void *arg),
                         void *arg, tide_error *err);

/* The reply of a run (STO10). */
struct tide_assistant_reply {
    uint64_t run;
    unsigned call;                               /* the number of the tool call that sends it */
    char message_id[TIDE_ASSISTANT_EMAIL_BYTES]; /* of its header, without <> */
    bool sent;                                   /* false: it may have been */
};
/* The intent: *reply_io is the reply of that run, also when it was there before (*again_out). */
tide_status tide_assistant_reply_begin(tide_rows db, uint32_t account,
                                       struct tide_assistant_reply *reply_io, uint64_t now_ms,
                                       bool *again_out, tide_error *err);
tide_status tide_assistant_reply_sent(tide_rows db, uint64_t run, uint64_t now_ms, tide_error *err);
/* It was certainly not sent. */
tide_status tide_assistant_reply_drop(tide_rows db, uint64_t run, tide_error *err);
/* TIDE_NOT_FOUND: the run sends none. */
tide_status tide_assistant_reply_get(tide_rows db, uint64_t run,
                                     struct tide_assistant_reply *reply_out, tide_error *err);

#endif
