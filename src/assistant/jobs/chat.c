#include "assistant/jobs/chat.h"

#include "assistant/budget/budget.h"
#include "ledger/rows.h"

#include <inttypes.h>

enum {
    HOLD_MS = 3600000, /* longer than any call takes */
    LOOK_MS = 600000,  /* over the budget: how often to look whether it was raised */
};

struct holding {
    struct tide_assistant_hold hold;
    uint64_t again_unix_ms;
};

static tide_status hold(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct holding *holding = arg;
    return tide_assistant_budget_hold(tide_transaction_rows(transaction), &holding->hold,
                                      &holding->again_unix_ms, err);
}

struct settling {
    uint32_t account;
    uint64_t call;
    struct tide_assistant_used used;
};

static tide_status settle(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct settling *settling = arg;
    return tide_assistant_budget_settle(tide_transaction_rows(transaction), settling->account,
                                        settling->call, &settling->used, err);
}

/* What came of the call: its tokens are known, or it certainly cost nothing, or it may have cost what
 * is held, and then the hold stays. */
static tide_status ended(const struct tide_assistant_chat *self, tide_job *job, tide_status rc,
                         const struct tide_chat_answer *said, const tide_error *why,
                         tide_error *err)
{
    struct settling settling = {.account = self->account, .call = tide_job_id(job)};
    if (rc == TIDE_OK)
        settling.used = (struct tide_assistant_used){.in_tokens = said->in_tokens,
                                                     .out_tokens = said->out_tokens,
                                                     .estimated = !said->tokens_known};
    else if (!tide_chat_may_cost(rc, why))
        settling.used.nothing = true;
    else
        return TIDE_OK;
    return tide_transact(self->engine, settle, &settling, err);
}

/* Of a conversation the whole answer is kept: its caller knows what a refusal means. */
static tide_status take(const struct tide_chat_answer *said, const struct tide_chat_talk *talk,
                        bool whole, struct tide_assistant_answer *answer, tide_error *err)
{
    answer->tokens_in = said->in_tokens;
    answer->tokens_out = said->out_tokens;
    answer->latency_ms = said->latency_ms;
    if (whole)
        return tide_chat_answer_write(said, answer->text, err);
    if (said->stop == TIDE_CHAT_STOP_REFUSED)
        return tide_error_set(err, TIDE_PERMANENT, "the model refused to answer");
    TIDE_TRY(
        tide_buf_add(answer->text, said->text.bytes > 0 ? said->text.data : "", said->text.bytes));
    /* A reply that ends in the middle looks like a whole one, so that it is a failure that the user sees
     * (J11); asked again it would be cut again.  JSON that was cut is told by its reader. */
    if (said->stop == TIDE_CHAT_STOP_LENGTH && !talk->json)
        return tide_error_set(err, TIDE_PERMANENT,
                              "the answer was cut at the limit of %" PRIu32
                              " tokens; a higher drafts.max_tokens lets it end",
                              talk->tokens_max);
    return TIDE_OK;
}

/* Asks under the day's budget. */
static tide_status ask(const struct tide_assistant_chat *self, tide_job *job,
                       const struct tide_chat_talk *talk, bool whole,
                       struct tide_assistant_answer *answer, tide_error *err)
{
    const uint64_t now_unix_ms = tide_world_now_unix_ms(self->world);
    struct holding holding = {.hold = {.account = self->account,
                                       .call = tide_job_id(job),
                                       .model = talk->model,
                                       .tokens = tide_chat_cost_of(talk, 0),
                                       .limit = self->tokens_per_day,
                                       .now_unix_ms = now_unix_ms,
                                       .until_unix_ms = now_unix_ms + HOLD_MS}};
    struct tide_chat_answer said = {.calls_count = 0};
    tide_error why = {TIDE_OK, 0, ""};
    const tide_status held = tide_transact(self->engine, hold, &holding, err);
    if (self->on_budget != NULL && (held == TIDE_OK || held == TIDE_AGAIN))
        self->on_budget(self->on_budget_arg, held == TIDE_AGAIN);
    if (held == TIDE_AGAIN) { /* J27 */
        const uint64_t wait_ms = holding.again_unix_ms - now_unix_ms;
        return tide_job_again(job, tide_job_now_ms(job) + (wait_ms < LOOK_MS ? wait_ms : LOOK_MS));
    }
    TIDE_TRY(held);
    tide_status rc = tide_chat_call(self->chat, job, talk, NULL, &said, &why);
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    /* A budget that cannot be settled now is settled by its time: the answer counts more. */
    (void)ended(self, job, rc, &said, &why, NULL);
    if (rc == TIDE_OK)
        rc = take(&said, talk, whole, answer, err);
    tide_chat_answer_done(&said);
    return rc;
}

tide_status tide_assistant_chat_ask(void *chat, tide_job *job,
                                    const struct tide_assistant_question *question,
                                    struct tide_assistant_answer *answer, tide_error *err)
{
    if (question->talk.bytes > 0) {
        struct tide_chat_stored stored = {.talk = {.messages_count = 0}};
        tide_status rc = tide_chat_talk_read(question->talk, tide_mem_heap(), &stored, err);
        if (rc == TIDE_OK)
            rc = ask(chat, job, &stored.talk, true, answer, err);
        tide_chat_stored_done(&stored);
        return rc;
    }
    const struct tide_chat_part part = {.kind = TIDE_CHAT_TEXT, .text = question->prompt};
    const struct tide_chat_message message = {TIDE_CHAT_USER, &part, 1};
    const struct tide_chat_talk talk = {.model = tide_text_of(question->model),
                                        .system = question->system,
                                        .messages = &message,
                                        .messages_count = 1,
                                        .json = question->json,
                                        .tokens_max = question->tokens_max};
    return ask(chat, job, &talk, false, answer, err);
}
