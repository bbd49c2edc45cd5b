/* make.c - a draft of ours in a thread, once (JBS3). */
#include "assistant/jobs/inside.h"

#include "assistant/text/reply.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct drafting {
    struct tide_task *task;
    tide_assistant_draft_state state;
    struct tide_assistant_draft draft;
    const char *token;
    bool found;
};

static tide_status read_draft(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct drafting *drafting = arg;
    const struct tide_task *task = drafting->task;
    const tide_status rc =
        tide_assistant_draft_get(tide_transaction_rows(transaction), task->account, task->thread_id,
                                 drafting->state, &drafting->draft, err);
    drafting->found = rc == TIDE_OK;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static tide_status write_gone(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct drafting *drafting = arg;
    return tide_assistant_draft_gone(tide_transaction_rows(transaction), drafting->token, err);
}

static tide_status write_begin(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct drafting *drafting = arg;
    const struct tide_task *task = drafting->task;
    return tide_assistant_draft_begin(tide_transaction_rows(transaction), task->account,
                                      task->thread_id, drafting->token, task->now_ms, err);
}

/* ---- stale ones ---- */

/* A draft whose id is not known was perhaps never made: its token says. */
static tide_status trash(struct tide_task *task, const struct tide_assistant_draft *draft,
                         tide_error *err)
{
    struct tide_gmail_draft found;
    struct tide_gmail_parts parts;
    char id[TIDE_ASSISTANT_ID_BYTES];
    (void)snprintf(id, sizeof id, "%s", draft->draft_id);
    if (id[0] == '\0') {
        const tide_status rc =
            tide_gmail_draft_find(task->gmail, task->job, tide_text_of(task->thread_id),
                                  tide_text_of(draft->token), &found, err);
        if (rc == TIDE_NOT_FOUND)
            return TIDE_OK;
        TIDE_TRY(rc);
        (void)snprintf(id, sizeof id, "%s", found.id);
    }
    /* The message of a draft is another one after each change: it is asked for by the draft's id. */
    tide_gmail_parts_init(&parts, task->jobs->mem);
    tide_status rc = tide_gmail_draft_get(task->gmail, task->job, tide_text_of(id), &parts, err);
    if (rc == TIDE_OK)
        rc = tide_gmail_trash(task->gmail, task->job, parts.message.id, err);
    tide_gmail_parts_done(&parts);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}

tide_status tide_task_trash_stale(struct tide_task *task, tide_error *err)
{
    tide_engine *engine = task->jobs->options.engine;
    for (;;) { /* each turn one is gone */
        struct drafting drafting = {.task = task, .state = TIDE_ASSISTANT_DRAFT_STALE};
        TIDE_TRY(tide_transact(engine, read_draft, &drafting, err));
        if (!drafting.found)
            return TIDE_OK;
        TIDE_TRY(trash(task, &drafting.draft, err));
        drafting.token = drafting.draft.token;
        TIDE_TRY(tide_transact(engine, write_gone, &drafting, err));
    }
}

/* ---- a new one ---- */

/* The token that begins with `own`: the one recorded in an earlier attempt, else a new one. */
static tide_status token_of(struct tide_task *task, const char *own,
                            char token[TIDE_ASSISTANT_TOKEN_BYTES], bool *again_out,
                            tide_error *err)
{
    struct drafting drafting = {.task = task, .state = TIDE_ASSISTANT_DRAFT_MAKING};
    TIDE_TRY(tide_transact(task->jobs->options.engine, read_draft, &drafting, err));
    *again_out = drafting.found && strncmp(drafting.draft.token, own, strlen(own)) == 0;
    if (*again_out) {
        (void)snprintf(token, TIDE_ASSISTANT_TOKEN_BYTES, "%s", drafting.draft.token);
        return TIDE_OK;
    }
    /* With the time: the numbers of jobs begin again in another ledger, the thread stays. */
    (void)snprintf(token, TIDE_ASSISTANT_TOKEN_BYTES, "%s%" PRIx64, own, task->now_ms);
    drafting.token = token;
    return tide_transact(task->jobs->options.engine, write_begin, &drafting, err);
}

static tide_status write_stale(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct drafting *drafting = arg;
    return tide_assistant_draft_stale(tide_transaction_rows(transaction), drafting->task->account,
                                      drafting->task->thread_id, err);
}

/* How tokens of the job begin. */
static const char *by_job(const struct tide_task *task, char own[24])
{
    (void)snprintf(own, 24, "j%" PRIx64 "-", tide_job_id(task->job));
    return own;
}

tide_status tide_task_draft_forget(struct tide_task *task, const char *own, tide_error *err)
{
    tide_engine *engine = task->jobs->options.engine;
    char jobs_own[24];
    if (own == NULL)
        own = by_job(task, jobs_own);
    struct drafting drafting = {.task = task, .state = TIDE_ASSISTANT_DRAFT_MAKING};
    TIDE_TRY(tide_transact(engine, read_draft, &drafting, err));
    if (!drafting.found || strncmp(drafting.draft.token, own, strlen(own)) != 0)
        return TIDE_OK;
    /* STO3: there is no other one that is being made or lives. */
    TIDE_TRY(tide_transact(engine, write_stale, &drafting, err));
    return tide_task_trash_stale(task, err);
}

tide_status tide_task_draft(struct tide_task *task, const struct tide_letter *letter,
                            tide_text body, const char *own,
                            char token_out[TIDE_ASSISTANT_TOKEN_BYTES],
                            struct tide_gmail_draft *draft_out, tide_error *err)
{
    const tide_text thread_id = tide_text_of(task->thread_id);
    tide_auto_buf raw = tide_buf_in(task->jobs->mem, TIDE_GMAIL_DRAFT_BYTES_MAX);
    char jobs_own[24];
    bool again = false;
    TIDE_TRY(token_of(task, own != NULL ? own : by_job(task, jobs_own), token_out, &again, err));
    TIDE_TRY(tide_task_trash_stale(task, err)); /* before there are two */
    if (again) {
        TIDE_SEEN("assistant: a draft was perhaps made before a crash");
        const tide_status rc = tide_gmail_draft_find(task->gmail, task->job, thread_id,
                                                     tide_text_of(token_out), draft_out, err);
        if (rc != TIDE_NOT_FOUND)
            return rc;
    }
    const struct tide_reply reply = {.answered = letter,
                                     .self = tide_text_of(task->user.email),
                                     .token = tide_text_of(token_out),
                                     .body = body};
    TIDE_TRY(tide_reply_add(&reply, &raw, err));
    return tide_gmail_draft_create(task->gmail, task->job, tide_buf_text(&raw), thread_id,
                                   draft_out, err);
}
