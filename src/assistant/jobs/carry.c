#include "assistant/jobs/inside.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

enum { PAYLOAD_BYTES_MAX = 4096 };

/* ---- labels ---- */

/* A message that labels can be put on, and whether the plan changes it. */
static bool is_changed(const struct tide_task *task, const struct tide_gmail_parts *parts,
                       const struct tide_assistant_plan *plan)
{
    bool changed = plan->take_inbox && tide_gmail_parts_labeled(parts, "INBOX");
    for (unsigned label = 0; label < TIDE_ASSISTANT_LABELS; label++) {
        const bool has = tide_gmail_parts_labeled(parts, task->labels.ids[label]);
        changed = changed || (!has && (plan->add >> label & 1u) != 0) ||
                  (has && (plan->take >> label & 1u) != 0);
    }
    return changed;
}

/* Labels that a user gives commands with, and that this plan puts on (J22). */
static uint32_t commands_of(const struct tide_assistant_plan *plan)
{
    return plan->add &
           (TIDE_LABEL_BIT(NEEDS_RESPONSE) | TIDE_LABEL_BIT(REWORK) | TIDE_LABEL_BIT(DONE));
}

struct marking {
    const struct tide_task *task;
    const struct tide_assistant_plan *plan;
};

static tide_status put_marks(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct marking *marking = arg;
    const struct tide_task *task = marking->task;
    const tide_rows db = tide_transaction_rows(transaction);
    for (size_t i = 0; i < task->thread.count; i++) {
        const struct tide_gmail_parts *parts = &task->thread.messages[i];
        if (tide_gmail_parts_labeled(parts, "DRAFT"))
            continue;
        for (unsigned label = 0; label < TIDE_ASSISTANT_LABELS; label++)
            if ((commands_of(marking->plan) >> label & 1u) != 0 &&
                !tide_gmail_parts_labeled(parts, task->labels.ids[label]))
                TIDE_TRY(tide_assistant_mark_put(db, task->account, parts->message.id.data,
                                                 task->labels.ids[label], tide_job_id(task->job),
                                                 task->now_ms, err));
    }
    return TIDE_OK;
}

static void list_of(const struct tide_task *task, uint32_t bits, bool inbox,
                    const char *list[TIDE_ASSISTANT_LABELS + 2])
{
    size_t count = 0;
    for (unsigned label = 0; label < TIDE_ASSISTANT_LABELS; label++)
        if ((bits >> label & 1u) != 0)
            list[count++] = task->labels.ids[label];
    if (inbox)
        list[count++] = "INBOX";
    list[count] = NULL;
}

tide_status tide_carry_labels(struct tide_task *task, const struct tide_assistant_plan *plan,
                              tide_error *err)
{
    const char *add[TIDE_ASSISTANT_LABELS + 2], *take[TIDE_ASSISTANT_LABELS + 2];
    bool changed = false;
    for (size_t i = 0; i < task->thread.count; i++)
        changed = changed || (!tide_gmail_parts_labeled(&task->thread.messages[i], "DRAFT") &&
                              is_changed(task, &task->thread.messages[i], plan));
    if (!changed)
        return TIDE_OK;
    struct marking marking = {task, plan};
    if (commands_of(plan) != 0)
        TIDE_TRY(tide_transact(task->jobs->options.engine, put_marks, &marking, err));
    list_of(task, plan->add, false, add);
    list_of(task, plan->take, plan->take_inbox, take);
    const tide_status rc = tide_gmail_thread_modify(task->gmail, task->job,
                                                    tide_text_of(task->thread_id), add, take, err);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}

/* ---- what follows ---- */

tide_status tide_carry_follow(struct tide_carry *carry, tide_assistant_kind kind,
                              const char *dedupe, const char *const *pairs, tide_error *err)
{
    TIDE_ASSERT(carry->follow_count < TIDE_ASSISTANT_SPECS_MAX);
    struct tide_follow *follow = &carry->follow[carry->follow_count];
    tide_auto_json json;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "thread_id", carry->task->thread_id);
    if (carry->task->message_id[0] != '\0')
        tide_json_set_cstr(&json, "message_id", carry->task->message_id);
    for (size_t i = 0; pairs != NULL && pairs[i] != NULL; i += 2)
        tide_json_set_cstr(&json, pairs[i], pairs[i + 1]);
    follow->kind = kind;
    (void)snprintf(follow->dedupe, sizeof follow->dedupe, "%s", dedupe);
    tide_buf_init(&follow->payload, carry->task->jobs->mem, PAYLOAD_BYTES_MAX);
    carry->follow_count++;
    const tide_status rc = tide_json_line(&json, &follow->payload);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for the payload of a job");
}

tide_status tide_carry_cleanup(struct tide_carry *carry, const char *action, tide_error *err)
{
    const char *const pairs[] = {"action", action, NULL};
    char dedupe[TIDE_ASSISTANT_KEY_BYTES];
    (void)snprintf(dedupe, sizeof dedupe, "%s/%s", action, carry->task->thread_id);
    return tide_carry_follow(carry, TIDE_ASSISTANT_CLEANUP, dedupe, pairs, err);
}

void tide_carry_done(struct tide_carry *carry)
{
    for (size_t i = 0; i < carry->follow_count; i++)
        tide_buf_done(&carry->follow[i].payload);
    carry->follow_count = 0;
}

/* ---- the transaction ---- */

static tide_status write_record(tide_rows db, const struct tide_carry *carry, tide_error *err)
{
    const struct tide_task *task = carry->task;
    const struct tide_assistant_plan *plan = carry->plan;
    const uint64_t job = tide_job_id(task->job);
    if (carry->also != NULL)
        TIDE_TRY(carry->also(db, carry->also_arg, err));
    if (carry->put != NULL)
        TIDE_TRY(tide_assistant_email_put(db, carry->put, plan->event, job, err));
    if (plan->draft_stale)
        TIDE_TRY(tide_assistant_draft_stale(db, task->account, task->thread_id, err));
    if (carry->gone != NULL)
        TIDE_TRY(tide_assistant_draft_gone(db, carry->gone, err));
    if (carry->draft != NULL)
        TIDE_TRY(tide_assistant_draft_made(db, carry->token, carry->draft->id,
                                           carry->draft->message_id, task->now_ms, err));
    if (plan->status != TIDE_ASSISTANT_NO_STATUS) {
        const struct tide_assistant_event event = {
            .account = task->account,
            .thread_id = task->thread_id,
            /* A classification has its event already. */
            .kind = carry->put != NULL ? tide_assistant_status_name(plan->status) : plan->event,
            .detail = carry->detail == NULL ? "" : carry->detail,
            .job = job,
            .at_ms = task->now_ms};
        TIDE_TRY(tide_assistant_email_move(db, &event, plan->status, err));
    }
    if (carry->reworked)
        TIDE_TRY(tide_assistant_email_reworked(db, task->account, task->thread_id,
                                               task->email.reworks + 1, task->now_ms, err));
    return tide_assistant_marks_done(db, task->account, job, task->now_ms, err);
}

static tide_status write_all(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_carry *carry = arg;
    const struct tide_task *task = carry->task;
    TIDE_TRY(write_record(tide_transaction_rows(transaction), carry, err));
    for (size_t i = 0; i < carry->follow_count; i++) {
        const struct tide_follow *follow = &carry->follow[i];
        const struct tide_spec spec = {.kind = task->jobs->kinds[follow->kind],
                                       .account = task->account,
                                       .dedupe = follow->dedupe,
                                       .payload = tide_buf_cstr(&follow->payload)};
        TIDE_TRY(tide_transaction_enqueue(transaction, &spec, 1, NULL, err));
    }
    return TIDE_OK;
}

tide_status tide_carry_out(struct tide_carry *carry, tide_error *err)
{
    return tide_transact(carry->task->jobs->options.engine, write_all, carry, err);
}
