/* make.c - a draft of ours in a thread, once (JBS3). */
#include "assistant/jobs/inside.h"

#include "assistant/text/marker.h"
#include "assistant/text/reply.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CLOCKS_MS = 60000, /* ours and Gmail's may differ */
    SEARCHES_MAX = 3,
    OWN_BYTES = 24,
};

struct drafting {
    struct tide_task *task;
    tide_assistant_draft_state state;
    struct tide_assistant_draft draft;
    const char *token;
    const struct tide_gmail_draft *made;
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

static tide_status write_named(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct drafting *drafting = arg;
    return tide_assistant_draft_named(tide_transaction_rows(transaction), drafting->token,
                                      drafting->made->id, drafting->made->message_id,
                                      drafting->task->now_ms, err);
}

/* ---- one that was perhaps made ---- */

static tide_status read_known(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct drafting *drafting = arg;
    const struct tide_task *task = drafting->task;
    return tide_assistant_draft_known(tide_transaction_rows(transaction), task->account,
                                      task->thread_id, drafting->made->id, &drafting->found, err);
}

/* What is left to know a draft of ours by after a mail program saved it: it is younger than the intent,
 * and has the sign that all of ours have. */
static tide_status looks_ours(struct tide_task *task, const struct tide_gmail_parts *parts,
                              uint64_t begun_ms, bool *ours_out, tide_error *err)
{
    struct tide_letter letter;
    struct tide_marked marked = {.found = false};
    *ours_out = false;
    if (!tide_gmail_parts_labeled(parts, "DRAFT") || tide_gmail_parts_labeled(parts, "TRASH") ||
        tide_gmail_parts_header(parts, TIDE_GMAIL_DRAFT_HEADER).bytes > 0 ||
        parts->message.internal_ms + CLOCKS_MS < (int64_t)begun_ms)
        return TIDE_OK;
    TIDE_TRY(tide_task_letter(task, parts, &letter, err));
    tide_marker_find(letter.text, &marked);
    *ours_out = marked.found;
    return TIDE_OK;
}

/* A draft of the thread that looks as if it were the one that was begun then, and is none that the store
 * knows.  TIDE_NOT_FOUND: none does; TIDE_STALE: one was saved again meanwhile. */
static tide_status saved_in(struct tide_task *task, const struct tide_gmail_thread *thread,
                            uint64_t begun_ms, struct tide_gmail_draft *draft_out, tide_error *err)
{
    for (size_t i = thread->count; i > 0; i--) {
        const struct tide_gmail_parts *parts = &thread->messages[i - 1];
        struct drafting drafting = {.task = task, .made = draft_out};
        bool ours = false;
        TIDE_TRY(looks_ours(task, parts, begun_ms, &ours, err));
        if (!ours)
            continue;
        const tide_status rc =
            tide_gmail_draft_of(task->gmail, task->job, parts->message.id, draft_out, err);
        if (rc == TIDE_NOT_FOUND)
            return TIDE_STALE;
        TIDE_TRY(rc);
        TIDE_TRY(tide_transact(task->jobs->options.engine, read_known, &drafting, err));
        if (!drafting.found)
            return TIDE_OK;
    }
    return tide_error_set(err, TIDE_NOT_FOUND, "no draft of the thread looks as if it were ours");
}

static tide_status saved_find(struct tide_task *task, uint64_t begun_ms,
                              struct tide_gmail_draft *draft_out, tide_error *err)
{
    struct tide_gmail_thread thread;
    tide_gmail_thread_init(&thread, task->jobs->mem);
    tide_status rc =
        tide_gmail_thread_get(task->gmail, task->job, tide_text_of(task->thread_id), &thread, err);
    if (rc == TIDE_OK)
        rc = saved_in(task, &thread, begun_ms, draft_out, err);
    tide_gmail_thread_done(&thread);
    return rc == TIDE_GONE ? tide_error_set(err, TIDE_NOT_FOUND, "the thread is gone") : rc;
}

/* A draft whose id is not known, after a call whose outcome is not: by its token, and when the user
 * saved it before that was asked, by its looks.  TIDE_NOT_FOUND: it was not made, or the user sent it,
 * threw it away or took out the sign. */
static tide_status made_find(struct tide_task *task, const struct tide_assistant_draft *draft,
                             struct tide_gmail_draft *draft_out, tide_error *err)
{
    tide_status rc = TIDE_STALE;
    TIDE_SEEN("assistant: a draft was perhaps made before a crash");
    for (unsigned i = 0; rc == TIDE_STALE && i < SEARCHES_MAX; i++) {
        rc = tide_gmail_draft_find(task->gmail, task->job, tide_text_of(task->thread_id),
                                   tide_text_of(draft->token), draft_out, err);
        if (rc == TIDE_NOT_FOUND)
            rc = saved_find(task, draft->begun_ms, draft_out, err);
    }
    return rc == TIDE_STALE ? tide_error_set(err, TIDE_SERVER, "a draft changes all the time") : rc;
}

/* ---- stale ones ---- */

static tide_status trash(struct tide_task *task, const struct tide_assistant_draft *draft,
                         tide_error *err)
{
    struct tide_gmail_draft found;
    struct tide_gmail_parts parts;
    char id[TIDE_ASSISTANT_ID_BYTES];
    (void)snprintf(id, sizeof id, "%s", draft->draft_id);
    if (id[0] == '\0') {
        const tide_status rc = made_find(task, draft, &found, err);
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

/* The draft whose token begins with `own`: the one recorded in an earlier attempt, else a new one. */
static tide_status intent_of(struct tide_task *task, const char *own,
                             struct tide_assistant_draft *draft_out, bool *again_out,
                             tide_error *err)
{
    struct drafting drafting = {.task = task, .state = TIDE_ASSISTANT_DRAFT_MAKING};
    TIDE_TRY(tide_transact(task->jobs->options.engine, read_draft, &drafting, err));
    *again_out = drafting.found && strncmp(drafting.draft.token, own, strlen(own)) == 0;
    if (*again_out) {
        *draft_out = drafting.draft;
        return TIDE_OK;
    }
    *draft_out = (struct tide_assistant_draft){.begun_ms = task->now_ms};
    /* With the time: the numbers of jobs begin again in another ledger, the thread stays. */
    (void)snprintf(draft_out->token, sizeof draft_out->token, "%s%" PRIx64, own, task->now_ms);
    drafting.token = draft_out->token;
    return tide_transact(task->jobs->options.engine, write_begin, &drafting, err);
}

static tide_status write_stale(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct drafting *drafting = arg;
    return tide_assistant_draft_stale(tide_transaction_rows(transaction), drafting->task->account,
                                      drafting->task->thread_id, err);
}

/* How tokens of the round begin.  A step that was killed may have been followed by two jobs for the next:
 * they make one draft. */
static const char *by_round(const struct tide_task *task, char own[OWN_BYTES])
{
    const char *begun = tide_task_text(task, "begun");
    if (begun[0] != '\0')
        (void)snprintf(own, OWN_BYTES, "j%s-", begun);
    else
        (void)snprintf(own, OWN_BYTES, "j%" PRIu64 "-", tide_job_id(task->job));
    return own;
}

tide_status tide_task_draft_forget(struct tide_task *task, const char *own, tide_error *err)
{
    tide_engine *engine = task->jobs->options.engine;
    char rounds_own[OWN_BYTES];
    if (own == NULL)
        own = by_round(task, rounds_own);
    struct drafting drafting = {.task = task, .state = TIDE_ASSISTANT_DRAFT_MAKING};
    TIDE_TRY(tide_transact(engine, read_draft, &drafting, err));
    if (!drafting.found || strncmp(drafting.draft.token, own, strlen(own)) != 0)
        return TIDE_OK;
    /* STO3: there is no other one that is being made or lives. */
    TIDE_TRY(tide_transact(engine, write_stale, &drafting, err));
    return tide_task_trash_stale(task, err);
}

/* TIDE_NOT_FOUND: it is to be made. */
static tide_status made_before(struct tide_task *task, const struct tide_assistant_draft *draft,
                               struct tide_gmail_draft *draft_out, tide_error *err)
{
    if (draft->draft_id[0] == '\0')
        return made_find(task, draft, draft_out, err);
    *draft_out = (struct tide_gmail_draft){.id = ""};
    (void)snprintf(draft_out->id, sizeof draft_out->id, "%s", draft->draft_id);
    (void)snprintf(draft_out->message_id, sizeof draft_out->message_id, "%s", draft->message_id);
    return TIDE_OK;
}

static tide_status make(struct tide_task *task, const struct tide_letter *letter, tide_text body,
                        const char *token, struct tide_gmail_draft *draft_out, tide_error *err)
{
    tide_auto_buf raw = tide_buf_in(task->jobs->mem, TIDE_GMAIL_DRAFT_BYTES_MAX);
    const struct tide_reply reply = {.answered = letter,
                                     .self = tide_text_of(task->user.email),
                                     .token = tide_text_of(token),
                                     .body = body};
    TIDE_TRY(tide_reply_add(&reply, &raw, err));
    return tide_gmail_draft_create(task->gmail, task->job, tide_buf_text(&raw),
                                   tide_text_of(task->thread_id), draft_out, err);
}

tide_status tide_task_draft(struct tide_task *task, const struct tide_letter *letter,
                            tide_text body, const char *own, struct tide_made *made_out,
                            tide_error *err)
{
    struct tide_assistant_draft draft;
    char rounds_own[OWN_BYTES];
    tide_status rc = TIDE_NOT_FOUND;
    bool again = false;
    TIDE_TRY(intent_of(task, own != NULL ? own : by_round(task, rounds_own), &draft, &again, err));
    TIDE_TRY(tide_task_trash_stale(task, err)); /* before there are two */
    if (again)
        rc = made_before(task, &draft, &made_out->draft, err);
    made_out->before = rc == TIDE_OK;
    if (rc == TIDE_NOT_FOUND)
        rc = make(task, letter, body, draft.token, &made_out->draft, err);
    TIDE_TRY(rc);
    (void)snprintf(made_out->token, sizeof made_out->token, "%s", draft.token);
    if (draft.draft_id[0] != '\0')
        return TIDE_OK;
    struct drafting named = {.task = task, .token = draft.token, .made = &made_out->draft};
    return tide_transact(task->jobs->options.engine, write_named, &named, err);
}
