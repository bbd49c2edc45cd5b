#include "assistant/jobs/inside.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

/* ---- asking ---- */

struct asking {
    struct tide_carry *carry;
    const char *key;
    const struct tide_assistant_question *question;
    tide_buf payload; /* of assistant.ask */
    bool *answered;   /* NULL: the next job is enqueued also if there is an answer */
};

static tide_status write_question(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct asking *asking = arg;
    const struct tide_task *task = asking->carry->task;
    const struct tide_assistant_question *question = asking->question;
    const struct tide_follow *follow = &asking->carry->follow[0];
    const struct tide_assistant_call call = {.account = task->account,
                                             .thread_id = task->thread_id,
                                             .key = asking->key,
                                             .kind = question->kind,
                                             .model = question->model,
                                             .system = question->system,
                                             .prompt = question->talk.bytes > 0 ? question->talk
                                                                                : question->prompt,
                                             .job = tide_job_id(task->job),
                                             .begun_ms = task->now_ms};
    const uint32_t first = 0;
    uint64_t id = 0, ids[2];
    bool ended = false;
    TIDE_TRY(
        tide_assistant_call_begin(tide_transaction_rows(transaction), &call, &id, &ended, err));
    if (asking->answered != NULL)
        *asking->answered = ended;
    if (asking->answered != NULL && ended)
        return TIDE_OK;
    const struct tide_spec specs[2] = {{.kind = task->jobs->kinds[TIDE_ASSISTANT_ASK],
                                        .account = task->terms.model_account,
                                        .dedupe = asking->key,
                                        .payload = tide_buf_cstr(&asking->payload)},
                                       {.kind = task->jobs->kinds[follow->kind],
                                        .account = task->account,
                                        .dedupe = follow->dedupe,
                                        .payload = tide_buf_cstr(&follow->payload),
                                        .needs_index = ended ? NULL : &first,
                                        .needs_index_count = ended ? 0 : 1}};
    return ended ? tide_transaction_enqueue(transaction, &specs[1], 1, ids, err)
                 : tide_transaction_enqueue(transaction, specs, 2, ids, err);
}

tide_status tide_task_ask(struct tide_carry *carry, const char *key,
                          const struct tide_assistant_question *question, bool *answered_out,
                          tide_error *err)
{
    TIDE_ASSERT(carry->follow_count == 1);
    struct asking asking = {
        .carry = carry, .key = key, .question = question, .answered = answered_out};
    struct tide_follow *follow = &carry->follow[0];
    /* With the account: a job that waits for a question to another one, which may be canceled, is not
     * enough. */
    (void)snprintf(follow->dedupe, sizeof follow->dedupe, "then/%u/%s",
                   (unsigned)carry->task->terms.model_account, key);
    tide_auto_json json;
    tide_buf_init(&asking.payload, carry->task->jobs->mem, 1024);
    tide_json_object(&json);
    tide_json_set_cstr(&json, "key", key);
    tide_json_set_bool(&json, "json", question->json);
    tide_json_set_bool(&json, "talk", question->talk.bytes > 0);
    tide_json_set_u64(&json, "tokens_max", question->tokens_max);
    tide_status rc = tide_json_line(&json, &asking.payload);
    if (rc == TIDE_OK)
        rc = tide_transact(carry->task->jobs->options.engine, write_question, &asking, err);
    else
        (void)tide_error_set(err, rc, "no room for a question");
    tide_buf_done(&asking.payload);
    return rc;
}

/* ---- answers ---- */

struct answering {
    const char *key;
    tide_buf *text;
    bool ended, failed;
    tide_status rc;
};

static void take_answer(const struct tide_assistant_call *call, void *arg)
{
    struct answering *answering = arg;
    answering->ended = call->ended;
    answering->failed = call->error[0] != '\0';
    const tide_text text = answering->failed ? tide_text_of(call->error) : call->answer;
    tide_buf_clear(answering->text); /* a transaction may run again */
    answering->rc = tide_buf_add(answering->text, text.bytes > 0 ? text.data : "", text.bytes);
}

static tide_status read_answer(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct answering *answering = arg;
    return tide_assistant_call_get(tide_transaction_rows(transaction), answering->key, take_answer,
                                   answering, err);
}

tide_status tide_task_answer(struct tide_task *task, const char *key, tide_buf *text_out,
                             bool *failed_out, tide_error *err)
{
    struct answering answering = {.key = key, .text = text_out};
    const tide_status rc = tide_transact(task->jobs->options.engine, read_answer, &answering, err);
    if (rc == TIDE_NOT_FOUND || (rc == TIDE_OK && !answering.ended))
        return tide_error_set(err, TIDE_NOT_FOUND, "the question %.100s has no answer", key);
    if (rc == TIDE_OK && answering.rc != TIDE_OK)
        return tide_error_set(err, answering.rc, "no memory for an answer");
    *failed_out = answering.failed;
    return rc;
}

/* ---- assistant.ask ---- */

/* A question that is asked, copied out of its row. */
struct question {
    const char *key;
    uint64_t id;
    uint32_t account; /* of its user */
    bool ended;
    tide_buf kind, model, system, prompt;
    tide_status rc;
};

static void take_question(const struct tide_assistant_call *call, void *arg)
{
    struct question *question = arg;
    tide_buf *const bufs[] = {&question->kind, &question->model, &question->system,
                              &question->prompt};
    const tide_text texts[] = {tide_text_of(call->kind), tide_text_of(call->model), call->system,
                               call->prompt};
    question->id = call->id;
    question->account = call->account;
    question->ended = call->ended;
    question->rc = TIDE_OK;
    for (size_t i = 0; i < 4; i++) {
        tide_buf_clear(bufs[i]);
        if (question->rc == TIDE_OK)
            question->rc =
                tide_buf_add(bufs[i], texts[i].bytes > 0 ? texts[i].data : "", texts[i].bytes);
    }
}

/* TIDE_NOT_FOUND: nobody waits for an answer, since its user was removed or the assistant ended for
 * it (JBS10). */
static tide_status read_question(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct question *question = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_assistant_user user;
    TIDE_TRY(tide_assistant_call_get(db, question->key, take_question, question, err));
    if (question->rc != TIDE_OK)
        return TIDE_OK;
    TIDE_TRY(tide_assistant_user_get(db, question->account, &user, err));
    return user.ended_ms > 0 ? tide_error_set(err, TIDE_NOT_FOUND, "its user has ended") : TIDE_OK;
}

static tide_status write_answer(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_assistant_call_end(tide_transaction_rows(transaction), arg, err);
}

/* Whether the engine tries again by itself, at no cost, or the model may answer another time. */
static bool is_worth_another_try(tide_job *job, tide_status rc)
{
    switch (tide_status_class(rc)) {
    case TIDE_CLASS_RETRY:
        return tide_job_attempt(job) < TIDE_ASSISTANT_ATTEMPTS_MAX;
    case TIDE_CLASS_PERMANENT:
        return false;
    default:
        return rc != TIDE_GONE && rc != TIDE_SUPERSEDED;
    }
}

static tide_status ask(tide_assistant_jobs *jobs, tide_job *job, const json_t *payload,
                       struct question *question, tide_error *err)
{
    const bool talk = json_is_true(json_object_get(payload, "talk"));
    tide_auto_buf text = tide_buf_in(jobs->mem, talk ? TIDE_ASSISTANT_TALK_BYTES_MAX
                                                     : TIDE_ASSISTANT_TEXT_BYTES_MAX);
    struct tide_assistant_answer answer = {.text = &text};
    const struct tide_assistant_question asked = {
        .kind = tide_buf_cstr(&question->kind),
        .model = tide_buf_cstr(&question->model),
        .system = tide_buf_text(&question->system),
        .prompt = talk ? TIDE_TEXT("") : tide_buf_text(&question->prompt),
        .talk = talk ? tide_buf_text(&question->prompt) : TIDE_TEXT(""),
        .json = json_is_true(json_object_get(payload, "json")),
        .tokens_max = (uint32_t)json_integer_value(json_object_get(payload, "tokens_max"))};
    tide_error wrong = {TIDE_OK, 0, ""};
    /* A process that died during each call may have died of it. */
    const tide_status rc =
        tide_job_attempt(job) > TIDE_ASSISTANT_ATTEMPTS_MAX
            ? tide_error_set(&wrong, TIDE_PERMANENT, "the process ended each time it was asked")
            : jobs->options.model(jobs->options.model_arg, job, &asked, &answer, &wrong);
    if (rc != TIDE_OK && is_worth_another_try(job, rc)) {
        if (err != NULL)
            *err = wrong;
        return rc;
    }
    /* What was said before it failed is kept, for those who look why. */
    struct tide_assistant_call call = {.id = question->id,
                                       .answer = tide_buf_text(&text),
                                       .error = rc == TIDE_OK           ? ""
                                                : wrong.text[0] != '\0' ? wrong.text
                                                                        : tide_status_name(rc),
                                       .tokens_in = answer.tokens_in,
                                       .tokens_out = answer.tokens_out,
                                       .latency_ms = answer.latency_ms,
                                       .ended_ms = tide_world_now_unix_ms(jobs->options.world)};
    return tide_transact(jobs->options.engine, write_answer, &call, err);
}

tide_status tide_assistant_ask_run(tide_job *job, void *context, tide_error *err)
{
    tide_assistant_jobs *jobs = context;
    json_auto_t *payload = NULL;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    struct question question = {.key = json_string_value(json_object_get(payload, "key"))};
    if (question.key == NULL)
        return tide_error_set(err, TIDE_INVALID, "the payload has no \"key\"");
    tide_buf_init(&question.kind, jobs->mem, 256);
    tide_buf_init(&question.model, jobs->mem, 1024);
    tide_buf_init(&question.system, jobs->mem, TIDE_ASSISTANT_TEXT_BYTES_MAX);
    tide_buf_init(&question.prompt, jobs->mem, TIDE_ASSISTANT_TALK_BYTES_MAX);
    tide_status rc = tide_transact(jobs->options.engine, read_question, &question, err);
    if (rc == TIDE_NOT_FOUND) { /* its user was removed: no job waits for the answer */
        question.ended = true;
        rc = TIDE_OK;
    }
    if (rc == TIDE_OK)
        rc = question.rc;
    if (rc == TIDE_OK && !question.ended)
        rc = ask(jobs, job, payload, &question, err);
    tide_buf_done(&question.kind);
    tide_buf_done(&question.model);
    tide_buf_done(&question.system);
    tide_buf_done(&question.prompt);
    return rc;
}
