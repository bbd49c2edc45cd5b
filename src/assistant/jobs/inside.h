/* inside.h - shared by the handlers.
 *
 *   jobs.c      kinds, open and close, requests
 *   task.c      what every handler begins with: payload, user, record, its claim on the thread
 *   carry.c     carries out a plan: labels, then record and jobs in one transaction
 *   ask.c       questions to the model and their answers
 *   letters.c   messages of Gmail as letters
 *   tick.c      what happens by itself
 *   labels.c    the labels of a user in Gmail
 *   offboard.c  the end of a user
 *   sync.c sights.c onboard.c classify.c write.c make.c cleanup.c   the handlers
 *   agent.c agent_read.c agent_act.c   the handler of agents, and their tools (agent.h) */
#ifndef TIDE_ASSISTANT_JOBS_INSIDE_H
#define TIDE_ASSISTANT_JOBS_INSIDE_H

#include "assistant/jobs/decide.h"
#include "assistant/jobs/jobs.h"
#include "assistant/text/letter.h"
#include "base/json.h"
#include "base/map.h"
#include "ledger/rows.h"

typedef enum tide_assistant_kind {
    TIDE_ASSISTANT_ONBOARD,
    TIDE_ASSISTANT_OFFBOARD,
    TIDE_ASSISTANT_SYNC,
    TIDE_ASSISTANT_CLASSIFY,
    TIDE_ASSISTANT_DRAFT,
    TIDE_ASSISTANT_MANUAL_DRAFT,
    TIDE_ASSISTANT_REWORK,
    TIDE_ASSISTANT_CLEANUP,
    TIDE_ASSISTANT_AGENT,
    TIDE_ASSISTANT_ASK,
    TIDE_ASSISTANT_TICK,
    TIDE_ASSISTANT_WATCH,
    TIDE_ASSISTANT_KINDS,
} tide_assistant_kind;

enum {
    TIDE_ASSISTANT_BUSY_MAX = 64,
    TIDE_ASSISTANT_BUSY_MS = 200,
    TIDE_ASSISTANT_SPECS_MAX = 4,
    TIDE_ASSISTANT_ATTEMPTS_MAX = 3,      /* J1 */
    TIDE_ASSISTANT_ASK_ATTEMPTS_MAX = 20, /* the model is asked in the first three */
};

struct tide_assistant_jobs {
    struct tide_assistant_jobs_options options;
    struct tide_assistant_lender lender; /* its `take` NULL: none */
    tide_mem *mem;
    uint32_t kinds[TIDE_ASSISTANT_KINDS];
    tide_lock *lock;
    uint64_t busy[TIDE_ASSISTANT_BUSY_MAX]; /* threads that handlers work on (JBS1); under lock */
};

tide_handler tide_assistant_onboard_run;
tide_handler tide_assistant_offboard_run;
tide_handler tide_assistant_sync_run;
tide_handler tide_assistant_classify_run;
tide_handler tide_assistant_draft_run;
tide_handler tide_assistant_manual_run;
tide_handler tide_assistant_rework_run;
tide_handler tide_assistant_cleanup_run;
tide_handler tide_assistant_agent_run;
tide_handler tide_assistant_ask_run;
tide_handler tide_assistant_tick_run;
tide_handler tide_assistant_watch_run;

/* ---- task.c ---- */

/* A handler at work; on its stack. */
struct tide_task {
    tide_assistant_jobs *jobs;
    tide_job *job;
    uint32_t account;
    json_t *payload;
    char thread_id[TIDE_ASSISTANT_ID_BYTES]; /* "": the job is of none */
    char message_id[TIDE_ASSISTANT_ID_BYTES];
    uint64_t now_ms; /* since 1970, when it began */
    struct tide_assistant_user user;
    struct tide_assistant_labels labels;
    struct tide_assistant_email email; /* its status is NO_STATUS without a record */
    struct tide_assistant_terms terms;
    bool lent; /* to be given back */
    tide_gmail *gmail;
    struct tide_gmail_thread thread; /* when a handler read it */
    tide_arena arena;
    uint64_t busy; /* its entry in jobs->busy; 0: none */
};
/* Reads all of that.  TIDE_NOT_FOUND: the user is unknown (J2); TIDE_PERMANENT: it was not onboarded;
 * TIDE_SUPERSEDED: the assistant ended for it (JBS10);
 * TIDE_AGAIN: another handler works on the thread.  The task must be ended in any case. */
tide_status tide_task_begin(struct tide_task *task, tide_assistant_jobs *jobs, tide_job *job,
                            tide_error *err);
void tide_task_end(struct tide_task *task);
/* No other handler that is called so works for the user now.  TIDE_AGAIN: one does. */
tide_status tide_task_alone(struct tide_task *task, const char *what);
/* A text of the payload; "" when it has none. */
const char *tide_task_text(const struct tide_task *task, const char *key);
/* The whole thread, or its labels alone. */
tide_status tide_task_thread(struct tide_task *task, bool full, tide_error *err);
/* Where a message is in the thread that was read, from 1; 0: nowhere. */
size_t tide_task_place(const struct tide_task *task, const char *message_id);
struct tide_assistant_facts tide_task_facts(const struct tide_task *task);
/* The newest message that another person sent; the newest of all when there is none; NULL: the thread
 * is empty. */
const struct tide_gmail_parts *tide_task_newest(const struct tide_task *task);

/* ---- labels.c ---- */

/* Finds the nine labels by their names, or makes them (J9): task->labels has their ids. */
tide_status tide_task_labels(struct tide_task *task, tide_error *err);
tide_status tide_task_labels_write(tide_rows db, const struct tide_task *task, tide_error *err);
/* The same for those that are no longer there: the user has deleted them.  Durable when it returns; nothing
 * is written when all are there, which is one call. */
tide_status tide_task_labels_again(struct tide_task *task, tide_error *err);

/* ---- letters.c ---- */

/* In task->arena. */
tide_status tide_task_letter(struct tide_task *task, const struct tide_gmail_parts *parts,
                             struct tide_letter *letter_out, tide_error *err);
/* All messages but `except` (NULL: none) that are neither drafts nor in the trash, oldest first. */
tide_status tide_task_letters(struct tide_task *task, const struct tide_gmail_thread *thread,
                              const struct tide_gmail_parts *except,
                              struct tide_letter **letters_out, size_t *count_out, tide_error *err);

/* Cut between characters; `to` is terminated. */
void tide_task_copy(char *to, size_t room, tide_text text);
/* What a record says of a message without a model: ids, sender, subject, the style for its sender, the
 * count of messages; the rest is zero. */
void tide_task_record(const struct tide_task *task, tide_text message_id,
                      const struct tide_letter *letter, struct tide_assistant_email *email_out);

/* ---- carry.c ---- */

/* A job that follows; texts are borrowed until the transaction. */
struct tide_follow {
    tide_assistant_kind kind;
    char dedupe[TIDE_ASSISTANT_KEY_BYTES];
    tide_buf payload;
};
/* What is written when a handler is through: with the plan, in one transaction. */
struct tide_carry {
    struct tide_task *task;
    const struct tide_assistant_plan *plan;
    const struct tide_assistant_email *put; /* a classification; NULL: none */
    const struct tide_gmail_draft *draft;   /* that was made with `token`; NULL: none */
    const char *token;
    const char *gone; /* the token of a draft that is gone; NULL: none */
    bool reworked;    /* one more rework is counted */
    struct tide_follow follow[TIDE_ASSISTANT_SPECS_MAX];
    size_t follow_count;
    const char *detail; /* of the event; NULL: none */
    /* Writes more of the same transaction, before the rest; NULL: nothing. */
    tide_status (*also)(tide_rows db, void *arg, tide_error *err);
    void *also_arg;
};
/* Labels of the thread as the plan wants them, with marks before (JBS4).  Nothing is sent when they are
 * so already. */
tide_status tide_carry_labels(struct tide_task *task, const struct tide_assistant_plan *plan,
                              tide_error *err);
/* Adds a job of the thread with {"thread_id","message_id", key: value, ...}; NULL ends the pairs. */
tide_status tide_carry_follow(struct tide_carry *carry, tide_assistant_kind kind,
                              const char *dedupe, const char *const *pairs, tide_error *err);
/* assistant.cleanup {action} of the thread; one that waits is enough. */
tide_status tide_carry_cleanup(struct tide_carry *carry, const char *action, tide_error *err);
/* Writes it.  TIDE_SUPERSEDED: the record was changed by another job; nothing was written. */
tide_status tide_carry_out(struct tide_carry *carry, tide_error *err);
void tide_carry_done(struct tide_carry *carry);

/* ---- ask.c ---- */

/* Records the question and enqueues assistant.ask with `carry`'s one job behind it (JBS2), whose dedupe
 * is made here.  A question that has its answer already enqueues that job alone; or, unless
 * `answered_out` is NULL, nothing, and *answered_out says so. */
tide_status tide_task_ask(struct tide_carry *carry, const char *key,
                          const struct tide_assistant_question *question, bool *answered_out,
                          tide_error *err);
/* The answer to a key.  *text_out is appended to; *failed_out: the text says what went wrong.
 * TIDE_NOT_FOUND: it was not asked, or has no answer. */
tide_status tide_task_answer(struct tide_task *task, const char *key, tide_buf *text_out,
                             bool *failed_out, tide_error *err);

/* ---- make.c ---- */

struct tide_made {
    char token[TIDE_ASSISTANT_TOKEN_BYTES];
    struct tide_gmail_draft draft;
    bool before; /* in an earlier attempt: the user may have sent it or thrown it away since */
};
/* Makes a draft with this body, which answers `letter`: stale ones are trashed, it is looked for after
 * a crash (JBS3), and its id is durable.  `own` begins the token and is the same in each attempt; NULL:
 * by the round's number.  The record is written by the caller. */
tide_status tide_task_draft(struct tide_task *task, const struct tide_letter *letter,
                            tide_text body, const char *own, struct tide_made *made_out,
                            tide_error *err);
/* Trashes what an attempt with `own` (NULL: of this round, "": any) may have made, if its end was not recorded. */
tide_status tide_task_draft_forget(struct tide_task *task, const char *own, tide_error *err);
/* Trashes the drafts of the thread that are stale. */
tide_status tide_task_trash_stale(struct tide_task *task, tide_error *err);

/* ---- sights.c ---- */

/* What a sync saw. */
struct tide_sight {
    tide_assistant_sight sight;
    char thread_id[TIDE_ASSISTANT_ID_BYTES];
    char message_id[TIDE_ASSISTANT_ID_BYTES];
};
struct tide_sights {
    struct tide_task *task;
    struct tide_sight *list;
    size_t count, capacity;
    tide_map known;  /* what is in the list, by sight and thread */
    tide_map failed; /* threads with a failed job that would classify them */
    bool gap;        /* history was left out */
};
void tide_sights_init(struct tide_sights *sights, struct tide_task *task);
void tide_sights_done(struct tide_sights *sights);
/* One of a sight and thread is enough; of NEEDS_RESPONSE each counts, since some may be ours. */
tide_status tide_sights_add(struct tide_sights *sights, tide_assistant_sight sight,
                            tide_text thread_id, tide_text message_id, tide_error *err);
/* A job that would classify the thread has failed, and is tried again or given up: that the thread is listed
 * makes no further one, unless it has a message that it had not then. */
tide_status tide_sights_failed(struct tide_sights *sights, const char *thread_id, tide_error *err);
/* Creates the jobs that follow, and moves the history id with the last of them (JBS5); `to` NULL: it
 * stays.  `full`: the window was listed. */
tide_status tide_sights_commit(struct tide_sights *sights, const char *from, const char *to,
                               bool full, tide_error *err);

#endif
