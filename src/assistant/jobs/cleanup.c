/* cleanup.c - assistant.cleanup {thread_id, action}: done, check_sent, stale, left (J12, J24). */
#include "assistant/jobs/inside.h"

#include <string.h>

enum { CLOCKS_MS = 60000 }; /* ours and Gmail's may differ */

/* All messages of the thread are archived: a round that one of them had to come is not left to do, and a
 * Done that is on it later, since the user moved it back, is none of a new message (decide.h DCD5). */
static tide_status know_newest(tide_rows db, void *arg, tide_error *err)
{
    const struct tide_task *task = arg;
    const struct tide_gmail_parts *newest = tide_task_newest(task);
    if (newest == NULL || task->email.status == TIDE_ASSISTANT_NO_STATUS)
        return TIDE_OK;
    return tide_assistant_email_knows(db, task->account, task->thread_id, newest->message.id.data,
                                      (uint32_t)tide_gmail_thread_letters(&task->thread), err);
}

static tide_status done(struct tide_task *task, tide_error *err)
{
    const tide_status rc = tide_task_thread(task, false, err);
    if (rc != TIDE_OK && rc != TIDE_GONE)
        return rc;
    /* The user took it back. */
    if (rc == TIDE_OK &&
        !tide_gmail_thread_labeled(&task->thread, task->labels.ids[TIDE_ASSISTANT_LABEL_DONE]))
        return TIDE_OK;
    const struct tide_assistant_facts facts = tide_task_facts(task);
    const struct tide_assistant_plan plan = tide_assistant_plan_done(&facts);
    struct tide_carry carry = {.task = task, .plan = &plan, .also = know_newest, .also_arg = task};
    TIDE_TRY(tide_carry_labels(task, &plan, err));
    return tide_carry_out(&carry, err);
}

struct living {
    const struct tide_task *task;
    struct tide_assistant_draft draft;
    bool found;
};

static tide_status read_living(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct living *living = arg;
    const tide_status rc = tide_assistant_draft_get(tide_transaction_rows(transaction),
                                                    living->task->account, living->task->thread_id,
                                                    TIDE_ASSISTANT_DRAFT_LIVE, &living->draft, err);
    living->found = rc == TIDE_OK;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* Whether the thread has a message that the user sent after the draft was made. */
static bool was_sent(const struct tide_task *task, uint64_t made_ms)
{
    for (size_t i = 0; i < task->thread.count; i++) {
        const struct tide_gmail_parts *parts = &task->thread.messages[i];
        if (tide_gmail_parts_labeled(parts, "SENT") &&
            parts->message.internal_ms + CLOCKS_MS > (int64_t)made_ms)
            return true;
    }
    return false;
}

static tide_status check_sent(struct tide_task *task, tide_error *err)
{
    struct living living = {.task = task};
    struct tide_gmail_parts parts;
    TIDE_TRY(tide_transact(task->jobs->options.engine, read_living, &living, err));
    if (!living.found)
        return TIDE_OK;
    tide_gmail_parts_init(&parts, task->jobs->mem);
    tide_status rc = tide_gmail_draft_get(task->gmail, task->job,
                                          tide_text_of(living.draft.draft_id), &parts, err);
    tide_gmail_parts_done(&parts);
    if (rc != TIDE_GONE)
        return rc; /* it is still there */
    rc = tide_task_thread(task, false, err);
    if (rc != TIDE_OK && rc != TIDE_GONE)
        return rc;
    const struct tide_assistant_facts facts = tide_task_facts(task);
    const struct tide_assistant_plan plan =
        tide_assistant_plan_check_sent(&facts, false, was_sent(task, living.draft.made_ms));
    if (!plan.act)
        return TIDE_OK;
    struct tide_carry carry = {.task = task, .plan = &plan, .gone = living.draft.token};
    TIDE_TRY(tide_carry_labels(task, &plan, err));
    return tide_carry_out(&carry, err);
}

/* A draft whose job failed before its end was recorded.  One of a round that is in work is that
 * round's, and so is one that lives. */
static tide_status left(struct tide_task *task, tide_error *err)
{
    const bool in_work = task->email.status == TIDE_ASSISTANT_PENDING ||
                         task->email.status == TIDE_ASSISTANT_REWORK_REQUESTED;
    if (!in_work)
        TIDE_TRY(tide_task_draft_forget(task, "", err));
    return tide_task_trash_stale(task, err);
}

tide_status tide_assistant_cleanup_run(tide_job *job, void *context, tide_error *err)
{
    struct tide_task task;
    tide_status rc = tide_task_begin(&task, context, job, err);
    const char *action = tide_task_text(&task, "action");
    if (rc == TIDE_OK)
        rc = strcmp(action, "done") == 0         ? done(&task, err)
             : strcmp(action, "check_sent") == 0 ? check_sent(&task, err)
             : strcmp(action, "left") == 0       ? left(&task, err)
             : strcmp(action, "stale") == 0
                 ? tide_task_trash_stale(&task, err)
                 : tide_error_set(err, TIDE_INVALID, "no such action: %.40s", action);
    tide_task_end(&task);
    return rc;
}
