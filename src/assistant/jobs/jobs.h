/* jobs.h - the kinds of jobs of the mail assistant, as linear C on the engine (J7 to J17, J21 to J26).
 *
 *     assistant.onboard       finds or makes the nine labels, seeds the history id (J9)
 *     assistant.offboard      the assistant ends for a user; of no account, so that it runs while that is halted
 *     assistant.sync          history, or the inbox itself, to jobs (J7, J5, J22, J23)
 *     assistant.classify      router, tier 1, model, label, record (J8, J10, J16, J25)
 *     assistant.draft         a draft for a pending record (J11)
 *     assistant.manual_draft  the same, asked for by the user's label (J14)
 *     assistant.rework        a draft again, by the user's instruction (J13, J26)
 *     assistant.cleanup       Done; a draft that is gone; drafts that are stale (J12, J24)
 *     assistant.agent         a run of an agent: model, tools, model, ... (J15, J28; agent.h)
 *     assistant.ask           one call of the model, on the account of the model
 *     assistant.tick          what is due for all users: syncs, watches (J4); of no account
 *     assistant.watch         keeps Gmail pushing the changes of a mailbox
 *
 * A model call is a job of its own, on another account with another quota.  A handler that needs one
 * records the question (store/store.h STO8), enqueues assistant.ask and a job that needs it, and ends;
 * that job reads the answer and goes on.  assistant.ask never fails: what went wrong is the answer, so
 * that nothing waits behind it forever.  What was decided is in decide.h; here it is carried out.
 *
 * Invariants:
 *   JBS1  one handler at a time works on a thread.  Another one is put back for a moment.  Among processes the
 *         lease of the account does it: jobs of a user run in the process that has it.  One that was frozen
 *         beyond its lease is told so before its next call, and what it writes is checked against the
 *         record (store/store.h STO2, STO3); only a request that it had sent cannot be taken back.
 *   JBS2  a question is asked of the model once for each round: the same key finds the same answer,
 *         also after a crash, but for a crash during the call itself.
 *   JBS3  before a draft is made its token is durable, and drafts that are stale are in the trash:
 *         after any crash a thread has at most one draft of ours, and it is found again.
 *   JBS4  before a command label is put on, it is recorded whose it is (J22).
 *   JBS5  the history id moves in the transaction that has the last of the jobs that follow from it.
 *   JBS6  threads, messages and drafts that a handler changes are those of its payload and of its own
 *         record.  Nothing that a model or a mail says names one.
 *   JBS7  every handler may run again from its beginning, and then leaves the same labels, draft and
 *         record (J17).
 *   JBS8  a job of a thread that failed, killed or refused as often as it is tried, is tried again with each
 *         full sync, until it has failed TIDE_ASSISTANT_FAILURES_MAX times; then with the next message, the
 *         next label of the user, or by hand.  A record in work without any job gets one: no message and no
 *         command of the user is lost without a word.
 *   JBS9  a handler sees one configuration: a file that changes while it runs counts for the next one.
 *   JBS10 a job of a user for whom the assistant ended ends without a call to Gmail or to the model.
 */
#ifndef TIDE_ASSISTANT_JOBS_JOBS_H
#define TIDE_ASSISTANT_JOBS_JOBS_H

#include "assistant/config/config.h"
#include "assistant/store/store.h"
#include "cloud/gmail_drafts.h"
#include "world/world.h"

typedef struct tide_assistant_jobs tide_assistant_jobs;

enum { TIDE_ASSISTANT_PATIENCE_MS = 65000 }; /* for units, of the Gmail clients */

/* A question to the model; all borrowed. */
struct tide_assistant_question {
    const char *kind; /* "classify", "context", "draft", "rework", "agent" */
    const char *model;
    tide_text system, prompt;
    /* Instead of these: a whole conversation, as the JSON of cloud/chat/talk.h, with its model, tools
     * and limits.  The answer's text is then the JSON of an answer.  "": none. */
    tide_text talk;
    bool json; /* the answer is to be one JSON object */
    uint32_t tokens_max;
};
struct tide_assistant_answer {
    tide_buf *text; /* appended to, also before a failure */
    uint64_t tokens_in, tokens_out, latency_ms;
};
/* Makes one call under the job's governor.  TIDE_AGAIN: not now (the day's budget, J27). */
typedef tide_status tide_assistant_asker(void *arg, tide_job *job,
                                         const struct tide_assistant_question *question,
                                         struct tide_assistant_answer *answer, tide_error *err);
/* The client of a user, with TIDE_ASSISTANT_PATIENCE_MS; borrowed until the engine is closed. */
typedef tide_status tide_assistant_gmail(void *arg, const struct tide_assistant_user *user,
                                         tide_gmail **gmail_out, tide_error *err);

/* What a handler works by, from its beginning to its end (JBS9). */
struct tide_assistant_terms {
    const struct tide_assistant_config *config; /* borrowed */
    uint32_t model_account;                     /* of the ledger: where assistant.ask runs */
};
/* Lends the terms that hold now, until they are given back.  TIDE_AGAIN: there are none; the job waits.
 * Any thread. */
struct tide_assistant_lender {
    tide_status (*take)(void *arg, tide_job *job, struct tide_assistant_terms *terms_out,
                        tide_error *err);
    void (*give)(void *arg, const struct tide_assistant_terms *terms);
    void *arg;
};

struct tide_assistant_jobs_options {
    tide_engine *engine;
    tide_world *world;
    struct tide_assistant_terms terms;          /* that always hold; or: */
    const struct tide_assistant_lender *lender; /* copied; NULL: `terms` */
    tide_assistant_asker *model;
    void *model_arg;
    tide_assistant_gmail *gmail;
    void *gmail_arg;
};
/* Makes tables and defines kinds, on an engine that was not started.  The options are copied. */
tide_status tide_assistant_jobs_open(const struct tide_assistant_jobs_options *options,
                                     tide_mem *mem, tide_assistant_jobs **jobs_out,
                                     tide_error *err);
/* After the engine was closed. */
void tide_assistant_jobs_close(tide_assistant_jobs *jobs); /* NULL is fine */

/* {email}, for the engine of another process. */
#define TIDE_ASSISTANT_OFFBOARD_KIND "assistant.offboard"

/* A sync as a job, also for the engine of another process. */
#define TIDE_ASSISTANT_SYNC_DEDUPE  "sync"
#define TIDE_ASSISTANT_SYNC_PAYLOAD "{\"history_id\":\"\"}"
#define TIDE_ASSISTANT_FULL_DEDUPE  "sync/full"
#define TIDE_ASSISTANT_FULL_PAYLOAD "{\"history_id\":\"\",\"force_full\":true}"
/* A forced classification of a known thread (J21). */
#define TIDE_ASSISTANT_FORCE_DEDUPE  "force/%s"
#define TIDE_ASSISTANT_FORCE_PAYLOAD "{\"thread_id\":\"%s\",\"round\":\"force\"}"

/* Asks for these jobs; durable when it returns.  A waiting one is enough. */
tide_status tide_assistant_onboard(tide_assistant_jobs *jobs, uint32_t account, tide_error *err);
/* The assistant ends for the user of that address, durably; its jobs are the caller's to cancel.  On any engine
 * of the ledger.  TIDE_NOT_FOUND: there is no such user. */
tide_status tide_assistant_offboard(tide_engine *engine, const char *email, uint64_t now_ms,
                                    tide_error *err);
tide_status tide_assistant_sync(tide_assistant_jobs *jobs, uint32_t account, bool full,
                                tide_error *err);
/* What is due for all users now: "sync", "full", "watch". */
tide_status tide_assistant_tick(tide_assistant_jobs *jobs, const char *what, tide_error *err);
/* From now on the engine makes these jobs by the intervals of the configuration (J4); again: by others. */
tide_status tide_assistant_plan(tide_assistant_jobs *jobs,
                                const struct tide_assistant_config *config, tide_error *err);
/* A person wants the thread classified again (J10, force). */
tide_status tide_assistant_reclassify(tide_assistant_jobs *jobs, uint32_t account,
                                      const char *thread_id, tide_error *err);

#endif
