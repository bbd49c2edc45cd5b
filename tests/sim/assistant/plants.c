/* plants.c - what the linker puts between the assistant's jobs and what they call: what is done and not
 * written down, where processes die most, whose thread a change is for; and bugs on purpose. */
#include "assistant_sim.h"

#include "assistant/jobs/inside.h"
#include "support/wrap.h"
#include "tidemark_inside.h"

static bool planted(enum asim_plant plant)
{
    return asim_now != NULL && asim_now->plant == plant;
}

/* ---- crashes ---- */

/* Right there a crash matters most. */
void asim_opens(tide_status rc, enum asim_open open)
{
    struct asim_stage *stage = asim_now;
    if (rc != TIDE_OK)
        return;
    stage->open[open]++;
    const bool often = stage->cursed == open;
    if (!stage->calm && tide_rng_below(&stage->rng, often ? 2 : 25) == 0)
        tide_sim_crash_after(stage->f->sim, 1 + tide_rng_below(&stage->rng, 30),
                             TIDE_SIM_CRASH_KILL);
}

static void closes(tide_status rc, enum asim_open open)
{
    if (rc == TIDE_OK)
        asim_now->open[open] = 0;
}

/* ---- changes of the mailbox (ASM8) ---- */

static struct asim_thread *thread_of(tide_job *job)
{
    json_auto_t *payload = json_loads(tide_job_payload(job).data, 0, NULL);
    const char *id = json_string_value(json_object_get(payload, "thread_id"));
    return id == NULL ? NULL : asim_thread(asim_now, id);
}

/* The thread of the job is about to be changed. */
static void expect(tide_job *job)
{
    struct asim_thread *thread = thread_of(job);
    if (thread != NULL)
        thread->expected++;
}

static const char *another(const char *id)
{
    for (unsigned i = 0; i < asim_now->threads_count; i++)
        if (strcmp(asim_now->threads[i].id, id) != 0)
            return asim_now->threads[i].id;
    return id;
}

WRAP(tide_status, tide_gmail_thread_modify, tide_gmail *gmail, tide_job *job, tide_text id,
     const char *const *add, const char *const *take, tide_error *err)
{
    const char *taken[TIDE_ASSISTANT_LABELS + 2];
    size_t count = 0;
    for (size_t i = 0; take != NULL && take[i] != NULL && !planted(APLANT_LABEL_KEPT); i++)
        if (!planted(APLANT_DONE_HALFWAY) || strcmp(take[i], "INBOX") != 0)
            taken[count++] = take[i];
    taken[count] = NULL;
    expect(job);
    if (planted(APLANT_OTHER_THREAD))
        id = tide_text_of(another(id.data));
    const tide_status rc = __real_tide_gmail_thread_modify(gmail, job, id, add, taken, err);
    asim_opens(rc, AOPEN_LABELS);
    return rc;
}

WRAP(tide_status, tide_gmail_draft_create, tide_gmail *gmail, tide_job *job, tide_text raw,
     tide_text thread_id, struct tide_gmail_draft *draft_out, tide_error *err)
{
    expect(job);
    const tide_status rc =
        __real_tide_gmail_draft_create(gmail, job, raw, thread_id, draft_out, err);
    if (rc == TIDE_OK && thread_of(job) != NULL)
        thread_of(job)->unrecorded = true;
    asim_opens(rc, AOPEN_DRAFT);
    return rc;
}

WRAP(tide_status, tide_gmail_trash, tide_gmail *gmail, tide_job *job, tide_text id, tide_error *err)
{
    expect(job);
    if (planted(APLANT_DRAFT_KEPT))
        return TIDE_OK;
    const tide_status rc = __real_tide_gmail_trash(gmail, job, id, err);
    asim_opens(rc, AOPEN_TRASH);
    return rc;
}

WRAP(tide_status, tide_gmail_reply_send, tide_gmail *gmail, tide_job *job,
     const struct tide_gmail_send *send, tide_text thread_id, tide_buf *id_out, tide_error *err)
{
    struct tide_gmail_send once = *send;
    expect(job);
    if (planted(APLANT_REPLY_TWICE))
        once.again = false;
    const tide_status rc = __real_tide_gmail_reply_send(gmail, job, &once, thread_id, id_out, err);
    asim_opens(rc, AOPEN_REPLY);
    return rc;
}

/* ---- what is written down ---- */

WRAP(tide_status, tide_carry_out, struct tide_carry *carry, tide_error *err)
{
    if (planted(APLANT_DRAFT_NOT_GONE))
        carry->gone = NULL;
    const tide_status rc = __real_tide_carry_out(carry, err);
    closes(rc, AOPEN_LABELS);
    closes(rc, AOPEN_DRAFT);
    struct asim_thread *thread = asim_thread(asim_now, carry->task->thread_id);
    if (rc == TIDE_OK && thread != NULL)
        thread->unrecorded = false;
    return rc;
}

WRAP(tide_status, tide_assistant_reply_sent, tide_rows db, uint64_t run, uint64_t now_ms,
     tide_error *err)
{
    const tide_status rc = __real_tide_assistant_reply_sent(db, run, now_ms, err);
    closes(rc, AOPEN_REPLY);
    return rc;
}

WRAP(tide_status, tide_assistant_draft_gone, tide_rows db, const char *token, tide_error *err)
{
    closes(TIDE_OK, AOPEN_TRASH);
    return __real_tide_assistant_draft_gone(db, token, err);
}

WRAP(tide_status, tide_task_ask, struct tide_carry *carry, const char *key,
     const struct tide_assistant_question *question, bool *answered_out, tide_error *err)
{
    const tide_status rc = __real_tide_task_ask(carry, key, question, answered_out, err);
    asim_opens(rc, AOPEN_QUESTION);
    return rc;
}

WRAP(tide_status, tide_assistant_ask_run, tide_job *job, void *context, tide_error *err)
{
    const tide_status rc = __real_tide_assistant_ask_run(job, context, err);
    closes(rc, AOPEN_ANSWERED);
    return rc;
}

WRAP(tide_status, tide_assistant_call_end, tide_rows db, const struct tide_assistant_call *call,
     tide_error *err)
{
    if (planted(APLANT_ANSWER_LOST))
        return TIDE_OK;
    if (planted(APLANT_ANSWER_TWICE) && tide_rng_below(&asim_now->rng, 4) == 0)
        return tide_error_set(err, TIDE_SERVER, "not now");
    return __real_tide_assistant_call_end(db, call, err);
}

struct moving {
    const struct tide_sights *sights;
    const char *from, *to;
    bool full;
};

static tide_status move_only(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct moving *moving = arg;
    return tide_assistant_sync_move(tide_transaction_rows(transaction),
                                    moving->sights->task->account, moving->from, moving->to,
                                    moving->full, moving->sights->task->now_ms, err);
}

WRAP(tide_status, tide_sights_commit, struct tide_sights *sights, const char *from, const char *to,
     bool full, tide_error *err)
{
    struct moving moving = {sights, from, to, full};
    if (planted(APLANT_HISTORY_FIRST)) {
        TIDE_TRY(tide_transact(sights->task->jobs->options.engine, move_only, &moving, err));
        from = to;
    }
    asim_opens(TIDE_OK, AOPEN_SYNC);
    const tide_status rc = __real_tide_sights_commit(sights, from, to, full, err);
    closes(rc, AOPEN_SYNC);
    return rc;
}

/* ASM4: ids are the server's, and those of one account ascend. */
WRAP(tide_status, tide_assistant_sync_move, tide_rows db, uint32_t account, const char *from,
     const char *to, bool full, uint64_t now_ms, tide_error *err)
{
    const uint64_t was = strtoull(from, NULL, 10), is = strtoull(to, NULL, 10);
    if (is < was || is > box_mailbox_history_id(asim_now->f->mailbox))
        tide_sim_fail(asim_now->f->sim, "ASM4: the history id moves from %s to %s", from, to);
    return __real_tide_assistant_sync_move(db, account, from, to, full, now_ms, err);
}

/* ---- one handler at a time (ASM12) ---- */

WRAP(tide_status, tide_task_begin, struct tide_task *task, tide_assistant_jobs *jobs, tide_job *job,
     tide_error *err)
{
    if (planted(APLANT_TOGETHER))
        memset(jobs->busy, 0, sizeof jobs->busy);
    const tide_status rc = __real_tide_task_begin(task, jobs, job, err);
    struct asim_thread *thread = asim_thread(asim_now, task->thread_id);
    asim_say("job %d: %s %s", (int)tide_job_id(job), tide_status_name(rc),
             tide_job_payload(job).data);
    if (task->busy != 0 && thread != NULL && ++thread->handlers > 1)
        tide_sim_fail(asim_now->f->sim, "ASM12: two handlers work on thread %s", task->thread_id);
    return rc;
}

WRAP(void, tide_task_end, struct tide_task *task)
{
    struct asim_thread *thread = asim_thread(asim_now, task->thread_id);
    if (task->busy != 0 && thread != NULL)
        thread->handlers--;
    __real_tide_task_end(task);
}

/* ---- bugs on purpose ---- */

WRAP(tide_status, tide_gmail_draft_find, tide_gmail *gmail, tide_job *job, tide_text thread_id,
     tide_text token, struct tide_gmail_draft *draft_out, tide_error *err)
{
    if (planted(APLANT_DRAFT_NOT_LOOKED_FOR))
        return tide_error_set(err, TIDE_NOT_FOUND, "no such draft");
    return __real_tide_gmail_draft_find(gmail, job, thread_id, token, draft_out, err);
}

WRAP(tide_status, tide_gmail_list, tide_gmail *gmail, tide_job *job, const char *query,
     tide_text token, struct tide_gmail_page *page_out, tide_error *err)
{
    if ((planted(APLANT_GAP_BLIND) && strncmp(query, "label:", 6) == 0) ||
        (planted(APLANT_INBOX_BLIND) && strncmp(query, "in:inbox", 8) == 0)) {
        *page_out = (struct tide_gmail_page){.value = NULL};
        return TIDE_OK;
    }
    return __real_tide_gmail_list(gmail, job, query, token, page_out, err);
}

WRAP(tide_status, tide_assistant_mark_put, tide_rows db, uint32_t account, const char *message_id,
     const char *label_id, uint64_t job, uint64_t now_ms, tide_error *err)
{
    if (planted(APLANT_MARK_FORGOTTEN))
        return TIDE_OK;
    return __real_tide_assistant_mark_put(db, account, message_id, label_id, job, now_ms, err);
}

WRAP(tide_status, tide_assistant_mark_take, tide_rows db, uint32_t account, const char *message_id,
     const char *label_id, bool *ours_out, tide_error *err)
{
    const tide_status rc =
        __real_tide_assistant_mark_take(db, account, message_id, label_id, ours_out, err);
    *ours_out = *ours_out || planted(APLANT_MARK_GREEDY);
    return rc;
}

WRAP(tide_status, tide_assistant_email_put, tide_rows db, const struct tide_assistant_email *email,
     const char *event, uint64_t job, tide_error *err)
{
    if (planted(APLANT_NO_RECORD))
        return TIDE_OK;
    return __real_tide_assistant_email_put(db, email, event, job, err);
}

WRAP(tide_status, tide_assistant_emails, tide_rows db, const struct tide_assistant_filter *filter,
     struct tide_assistant_cursor *cursor, size_t count,
     void (*visit)(const struct tide_assistant_email *email, void *arg), void *arg, bool *more_out,
     tide_error *err)
{
    if (planted(APLANT_STUCK_LEFT)) {
        *more_out = false;
        return TIDE_OK;
    }
    return __real_tide_assistant_emails(db, filter, cursor, count, visit, arg, more_out, err);
}

WRAP(tide_status, tide_retry_failed_where, tide_engine *engine, uint32_t account, uint32_t kind,
     tide_over_fn *is_wanted, void *arg, tide_error *err)
{
    if (planted(APLANT_STUCK_LEFT))
        return TIDE_OK;
    return __real_tide_retry_failed_where(engine, account, kind, is_wanted, arg, err);
}
