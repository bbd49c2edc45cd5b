/* agent.c - assistant.agent: steps of a run, each durable before the next (agent.h). */
#include "assistant/jobs/agent.h"

#include "assistant/agent/outside.h"
#include "assistant/text/crisp.h"
#include "assistant/text/prompt.h"
#include "base/check.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    RESULT_BYTES_MAX = 1 << 20,   /* of a tool of ours; run.h cuts it for the model */
    OUTSIDE_BYTES_MAX = 32 << 10, /* of the user's own, which grows as JSON */
    REASON_BYTES_MAX = 1000,
    DETAIL_BYTES_MAX = 300, /* of an event */
    SETTINGS_BYTES = TIDE_ASSISTANT_NAME_BYTES_MAX + 1,
};

/* ---- what tools share ---- */

tide_status tide_agent_refuse(const char *why, tide_buf *result, bool *failed_out)
{
    *failed_out = true;
    tide_buf_clear(result);
    return tide_agent_error(tide_text_of(why), result);
}

bool tide_agent_text(const struct tide_agent_call *call, const char *name, size_t bytes_max,
                     tide_text *text_out, tide_buf *result, bool *failed_out)
{
    const json_t *value = json_object_get(call->arguments, name);
    char why[120];
    const tide_text text = {json_string_value(value), json_string_length(value)};
    if (!json_is_string(value) || strspn(text.data, " \t\r\n") == text.bytes)
        (void)snprintf(why, sizeof why, "\"%s\" must be a text", name);
    else if (text.bytes > bytes_max)
        (void)snprintf(why, sizeof why, "\"%s\" is longer than %zu bytes", name, bytes_max);
    else if (memchr(text.data, '\0', text.bytes) != NULL)
        (void)snprintf(why, sizeof why, "\"%s\" has a NUL character", name);
    else {
        *text_out = text;
        return true;
    }
    /* Without memory the result stays empty, and the call has failed all the same. */
    (void)tide_agent_refuse(why, result, failed_out);
    return false;
}

const struct tide_gmail_parts *tide_agent_message(const struct tide_agent_work *work)
{
    const struct tide_task *task = &work->task;
    for (size_t i = 0; i < task->thread.count; i++) {
        const struct tide_gmail_parts *parts = &task->thread.messages[i];
        if (tide_text_equal(parts->message.id, tide_text_of(task->message_id)) &&
            !tide_gmail_parts_labeled(parts, "TRASH"))
            return parts;
    }
    return NULL;
}

/* ---- the row ---- */

struct loading {
    struct tide_agent_work *work;
    tide_buf *state;
};

static void take_run(const struct tide_assistant_run *run, void *arg)
{
    struct tide_agent_work *work = arg;
    work->id = run->id;
    work->begun_ms = run->begun_ms;
    work->ended = run->ended_ms > 0;
    (void)snprintf(work->profile_name, sizeof work->profile_name, "%s", run->profile);
    (void)snprintf(work->rule, sizeof work->rule, "%s", run->rule);
}

static tide_status read_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct loading *loading = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    tide_buf_clear(loading->state);
    loading->work->id = 0;
    const tide_status rc =
        tide_assistant_run_get(db, loading->work->key, take_run, loading->work, err);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    TIDE_TRY(rc);
    return tide_assistant_run_state_get(db, loading->work->id, loading->state, err);
}

static tide_status load(struct tide_agent_work *work, tide_error *err)
{
    struct tide_task *task = &work->task;
    tide_auto_buf state = tide_buf_in(task->jobs->mem, TIDE_ASSISTANT_STATE_BYTES_MAX);
    struct loading loading = {work, &state};
    TIDE_TRY(tide_transact(task->jobs->options.engine, read_run, &loading, err));
    if (work->id == 0 || work->ended)
        return TIDE_OK;
    return tide_agent_run_read(tide_buf_text(&state), task->jobs->mem, &work->run, err);
}

/* What is written of a run, beside its end. */
struct saving {
    struct tide_agent_work *work;
    tide_buf state, tools;
};

static tide_status saving_begin(struct saving *saving, struct tide_agent_work *work,
                                tide_error *err)
{
    saving->work = work;
    tide_buf_init(&saving->state, work->task.jobs->mem, TIDE_ASSISTANT_STATE_BYTES_MAX);
    tide_buf_init(&saving->tools, work->task.jobs->mem, TIDE_ASSISTANT_STATE_BYTES_MAX);
    TIDE_TRY(tide_agent_run_write(work->run, &saving->state, err));
    const tide_json log = {.value = (json_t *)(uintptr_t)tide_agent_log(work->run)};
    const tide_status rc = tide_json_line(&log, &saving->tools);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for the run of an agent");
}

static void saving_end(struct saving *saving)
{
    tide_buf_done(&saving->state);
    tide_buf_done(&saving->tools);
}

static tide_status write_row(tide_rows db, const struct saving *saving, bool ended, tide_error *err)
{
    const struct tide_agent_work *work = saving->work;
    const tide_agent_status status = tide_agent_status_of(work->run);
    const bool failed = status == TIDE_AGENT_FAILED;
    const tide_text final = tide_agent_final(work->run);
    const struct tide_assistant_run row = {
        .id = work->id,
        .status = tide_agent_status_name(ended ? status : TIDE_AGENT_RUNNING),
        .tools = tide_buf_text(&saving->tools),
        .iterations = tide_agent_iterations(work->run),
        .final = ended ? final : TIDE_TEXT(""),
        .error = ended && failed ? final.data : "",
        .ended_ms = ended ? work->task.now_ms : 0};
    TIDE_TRY(tide_assistant_run_put(db, &row, err));
    return tide_assistant_run_state_put(db, work->id, tide_buf_text(&saving->state), err);
}

static tide_status event_add(tide_rows db, const struct tide_agent_work *work, const char *kind,
                             const char *detail, tide_error *err)
{
    const struct tide_assistant_event event = {.account = work->task.account,
                                               .thread_id = work->task.thread_id,
                                               .kind = kind,
                                               .detail = detail,
                                               .job = tide_job_id(work->task.job),
                                               .at_ms = work->task.now_ms};
    return tide_assistant_event_add(db, &event, err);
}

/* With the result of a tool goes what it left in Gmail. */
static tide_status write_step(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct saving *saving = arg;
    const struct tide_agent_work *work = saving->work;
    const tide_rows db = tide_transaction_rows(transaction);
    tide_status rc = TIDE_OK;
    if (work->drafted)
        rc = tide_assistant_draft_made(db, work->made.token, work->made.draft.id,
                                       work->made.draft.message_id, work->task.now_ms, err);
    if (rc != TIDE_SUPERSEDED) /* it became stale meanwhile: the end of the run trashes it */
        TIDE_TRY(rc);
    if (work->sent)
        TIDE_TRY(tide_assistant_reply_sent(db, work->id, work->task.now_ms, err));
    return write_row(db, saving, false, err);
}

static tide_status save(struct tide_agent_work *work, tide_error *err)
{
    struct saving saving;
    tide_status rc = saving_begin(&saving, work, err);
    if (rc == TIDE_OK)
        rc = tide_transact(work->task.jobs->options.engine, write_step, &saving, err);
    saving_end(&saving);
    work->drafted = work->sent = false;
    return rc;
}

/* ---- begin ---- */

static tide_status write_begin(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct saving *saving = arg;
    struct tide_agent_work *work = saving->work;
    const struct tide_task *task = &work->task;
    const tide_rows db = tide_transaction_rows(transaction);
    const struct tide_assistant_run row = {.account = task->account,
                                           .thread_id = task->thread_id,
                                           .message_id = task->message_id,
                                           .key = work->key,
                                           .profile = work->profile_name,
                                           .rule = work->rule,
                                           .begun_ms = task->now_ms};
    TIDE_TRY(tide_assistant_run_begin(db, &row, &work->id, err));
    TIDE_TRY(tide_assistant_run_state_put(db, work->id, tide_buf_text(&saving->state), err));
    return event_add(db, work, "agent_started", work->profile_name, err);
}

/* The run as it begins, with this mail. */
static tide_status run_make(struct tide_agent_work *work, const struct tide_letter *letter,
                            tide_error *err)
{
    const struct tide_profile *profile = work->profile;
    tide_mem *mem = work->task.jobs->mem;
    struct tide_crisp crisp;
    struct tide_prompt prompt;
    json_auto_t *tools = NULL;
    TIDE_TRY(tide_agent_tools(work->task.terms.config, profile, &tools, err));
    if (profile->preprocessor == TIDE_PREPROCESSOR_CRISP)
        tide_crisp_read(letter, &crisp);
    const struct tide_prompt_agent wanted = {
        .prompt = profile->system_prompt,
        .letter = letter,
        .crisp = profile->preprocessor == TIDE_PREPROCESSOR_CRISP ? &crisp : NULL};
    tide_prompt_init(&prompt, mem);
    tide_status rc = tide_prompt_agent(&wanted, &prompt);
    const struct tide_agent_begin begin = {.profile = profile->name,
                                           .model = profile->model,
                                           .system = tide_buf_text(&prompt.system),
                                           .message = tide_buf_text(&prompt.user),
                                           .tools = tools,
                                           .iterations_max = profile->max_iterations,
                                           .tokens_max = profile->max_tokens,
                                           .has_temperature = profile->has_temperature,
                                           .temperature_milli = profile->temperature_milli};
    if (rc == TIDE_OK)
        rc = tide_agent_run_new(&begin, mem, &work->run, err);
    else
        (void)tide_error_set(err, rc, "no room for a prompt");
    tide_prompt_done(&prompt);
    return rc;
}

/* A rule of an older configuration: there is nothing to run, and a person should know (AGJ8). */
static tide_status run_make_failed(struct tide_agent_work *work, tide_error *err)
{
    const char *name = work->profile_name;
    const struct tide_agent_begin begin = {.profile = tide_text_of(name), .iterations_max = 1};
    char why[SETTINGS_BYTES + 60];
    (void)snprintf(why, sizeof why, "the configuration has no profile \"%.64s\"", name);
    TIDE_TRY(tide_agent_run_new(&begin, work->task.jobs->mem, &work->run, err));
    return tide_agent_end(work->run, TIDE_AGENT_FAILED, tide_text_of(why), err);
}

/* work->run stays NULL when the message is gone: there is nothing to do. */
static tide_status begin(struct tide_agent_work *work, tide_error *err)
{
    struct tide_task *task = &work->task;
    struct tide_letter letter;
    struct saving saving;
    const tide_status there = tide_task_thread(task, true, err);
    if (there == TIDE_GONE)
        return TIDE_OK;
    TIDE_TRY(there);
    const struct tide_gmail_parts *parts = tide_agent_message(work);
    if (parts == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_task_letter(task, parts, &letter, err));
    TIDE_TRY(work->profile != NULL ? run_make(work, &letter, err) : run_make_failed(work, err));
    work->begun_ms = task->now_ms;
    tide_status rc = saving_begin(&saving, work, err);
    if (rc == TIDE_OK)
        rc = tide_transact(task->jobs->options.engine, write_begin, &saving, err);
    saving_end(&saving);
    return rc;
}

/* ---- the model ---- */

static tide_status ask(struct tide_agent_work *work, const char *key, tide_error *err)
{
    struct tide_task *task = &work->task;
    const struct tide_assistant_plan plan = {.act = true};
    struct tide_carry carry = {.task = task, .plan = &plan};
    tide_auto_buf talk = tide_buf_in(task->jobs->mem, TIDE_ASSISTANT_TALK_BYTES_MAX);
    char model[TIDE_ASSISTANT_KEY_BYTES] = "";
    const char *const pairs[] = {"profile", work->profile_name, "route_rule", work->rule, NULL};
    if (work->profile != NULL)
        (void)snprintf(model, sizeof model, "%.*s", (int)work->profile->model.bytes,
                       work->profile->model.data);
    TIDE_TRY(tide_agent_talk(work->run, &talk, err));
    const struct tide_assistant_question question = {
        .kind = "agent",
        .model = model,
        .talk = tide_buf_text(&talk),
        .tokens_max = work->profile != NULL ? work->profile->max_tokens : 0};
    tide_status rc = tide_carry_follow(&carry, TIDE_ASSISTANT_AGENT, "", pairs, err);
    if (rc == TIDE_OK)
        rc = tide_task_ask(&carry, key, &question, NULL, err);
    tide_carry_done(&carry);
    return rc;
}

/* Takes the answer to the question at hand, or asks it: *asked_out, and the job is over. */
static tide_status ask_step(struct tide_agent_work *work, bool *asked_out, tide_error *err)
{
    struct tide_task *task = &work->task;
    tide_auto_buf text = tide_buf_in(task->jobs->mem, TIDE_ASSISTANT_TALK_BYTES_MAX);
    char key[TIDE_ASSISTANT_KEY_BYTES + 16];
    bool failed = false;
    tide_error wrong = {TIDE_OK, 0, ""};
    (void)snprintf(key, sizeof key, "%s/%u", work->key,
                   (unsigned)tide_agent_iterations(work->run) + 1);
    tide_status rc = tide_task_answer(task, key, &text, &failed, err);
    if (rc == TIDE_NOT_FOUND) {
        *asked_out = true;
        return ask(work, key, err);
    }
    TIDE_TRY(rc);
    if (!failed) {
        rc = tide_agent_take(work->run, tide_buf_text(&text), &wrong);
        if (rc != TIDE_OK && rc != TIDE_INVALID)
            return tide_error_set(err, rc, "%s", wrong.text);
    }
    if (failed || rc == TIDE_INVALID)
        TIDE_TRY(tide_agent_end(work->run, TIDE_AGENT_FAILED,
                                failed ? tide_buf_text(&text) : tide_text_of(wrong.text), err));
    return save(work, err);
}

/* ---- tools ---- */

static tide_status outside(struct tide_agent_work *work, const struct tide_assistant_tool *tool,
                           const struct tide_agent_call *call, tide_buf *result, bool *failed_out,
                           tide_error *err)
{
    tide_auto_buf output = tide_buf_in(work->task.jobs->mem, tool->output_bytes_max + 4096);
    TIDE_TRY(tide_agent_outside(work->task.jobs->options.world, tool, call->arguments,
                                tide_job_cancellation(work->task.job), &output, failed_out, err));
    if (*failed_out)
        return tide_buf_add(result, output.data, output.bytes);
    return tide_prompt_tool_result(tide_buf_text(&output), OUTSIDE_BYTES_MAX, result);
}

static tide_status run_tool(struct tide_agent_work *work, const struct tide_agent_call *call,
                            const struct tide_agent_tool *tool, tide_buf *result, bool *failed_out,
                            tide_error *err)
{
    static tide_agent_do *const builtins[TIDE_BUILTINS] = {
        [TIDE_BUILTIN_SEARCH_ARCHIVE] = tide_agent_search,
        [TIDE_BUILTIN_READ_THREAD] = tide_agent_read,
        [TIDE_BUILTIN_CREATE_DRAFT] = tide_agent_draft,
        [TIDE_BUILTIN_SEND_REPLY] = tide_agent_send,
        [TIDE_BUILTIN_ADD_LABEL] = tide_agent_label};
    if (tool->own != NULL)
        return outside(work, tool->own, call, result, failed_out, err);
    TIDE_ASSERT(builtins[tool->builtin] != NULL); /* escalate is no tool that returns */
    return builtins[tool->builtin](work, call, result, failed_out, err);
}

/* Whether a tool that could not run is the model's to deal with.  Otherwise the job tries again: at a
 * cost as often as jobs are tried, or when the account can work again. */
static bool is_told(const struct tide_agent_work *work, tide_status rc)
{
    switch (tide_status_class(rc)) {
    case TIDE_CLASS_RETRY:
        return rc != TIDE_NO_MEMORY &&
               tide_job_attempt(work->task.job) >= TIDE_ASSISTANT_ATTEMPTS_MAX;
    case TIDE_CLASS_GONE:
    case TIDE_CLASS_PERMANENT:
        return rc != TIDE_SUPERSEDED;
    default:
        return false;
    }
}

/* J28: ends the run.  false: the arguments have no reason; the result says so. */
static tide_status escalate(struct tide_agent_work *work, const struct tide_agent_call *call,
                            tide_buf *result, bool *failed_out, tide_error *err)
{
    tide_text reason;
    if (!tide_agent_text(call, "reason", TIDE_AGENT_RESULT_BYTES_MAX, &reason, result, failed_out))
        return TIDE_OK;
    tide_auto_buf text = tide_buf_in(work->task.jobs->mem, REASON_BYTES_MAX);
    const tide_text cut = tide_utf8_cut(reason, REASON_BYTES_MAX - 1);
    TIDE_TRY(tide_buf_add(&text, cut.data, cut.bytes)); /* the end frees the arguments */
    return tide_agent_end(work->run, TIDE_AGENT_ESCALATED, tide_buf_text(&text), err);
}

static tide_status tool_step(struct tide_agent_work *work, tide_error *err)
{
    tide_assistant_jobs *jobs = work->task.jobs;
    tide_auto_buf result = tide_buf_in(jobs->mem, RESULT_BYTES_MAX);
    struct tide_agent_call call;
    struct tide_agent_tool tool;
    tide_error wrong = {TIDE_OK, 0, ""};
    bool failed = false;
    tide_status rc = TIDE_OK;
    const uint64_t begun_us = tide_world_now_us(jobs->options.world);
    tide_arena_reset(&work->task.arena); /* letters of the tool before */
    tide_agent_call_of(work->run, &call);
    if (work->profile == NULL ||
        !tide_agent_tool(work->task.terms.config, work->profile, call.name, &tool))
        rc = tide_agent_refuse("there is no such tool", &result, &failed);
    else if (tool.own == NULL && tool.builtin == TIDE_BUILTIN_ESCALATE)
        rc = escalate(work, &call, &result, &failed, &wrong);
    else
        rc = run_tool(work, &call, &tool, &result, &failed, &wrong);
    if (rc != TIDE_OK && is_told(work, rc))
        rc = tide_agent_refuse(wrong.text[0] != '\0' ? wrong.text : tide_status_name(rc), &result,
                               &failed);
    if (rc != TIDE_OK) {
        if (err != NULL)
            *err = wrong;
        return rc;
    }
    const uint64_t took_ms = (tide_world_now_us(jobs->options.world) - begun_us) / 1000;
    if (tide_agent_next_of(work->run) == TIDE_AGENT_TOOL)
        TIDE_TRY(tide_agent_result(work->run, tide_buf_text(&result), failed, took_ms, err));
    return save(work, err);
}

/* ---- the end ---- */

struct ending {
    struct saving saving;
    const struct tide_assistant_plan *plan; /* NULL: the record stays as it is */
    bool look;
    char detail[DETAIL_BYTES_MAX];
};

/* One line of what the run said last. */
static void detail_of(const struct tide_agent_work *work, char detail[DETAIL_BYTES_MAX])
{
    const int bytes = snprintf(detail, DETAIL_BYTES_MAX,
                               "%s: ", tide_agent_status_name(tide_agent_status_of(work->run)));
    const tide_text final =
        tide_utf8_cut(tide_agent_final(work->run), DETAIL_BYTES_MAX - (size_t)bytes - 1);
    for (size_t i = 0; i < final.bytes; i++)
        detail[(size_t)bytes + i] = (unsigned char) final.data[i] < ' ' ? ' ' : final.data[i];
    detail[(size_t)bytes + final.bytes] = '\0';
}

static tide_status write_end(tide_rows db, void *arg, tide_error *err)
{
    const struct ending *ending = arg;
    const struct tide_agent_work *work = ending->saving.work;
    const struct tide_task *task = &work->task;
    TIDE_TRY(write_row(db, &ending->saving, true, err));
    TIDE_TRY(event_add(db, work, "agent_ended", ending->detail, err));
    if (ending->look)
        TIDE_TRY(event_add(db, work, "escalated", ending->detail, err));
    if (ending->plan == NULL || task->email.status == TIDE_ASSISTANT_NO_STATUS ||
        tide_assistant_may_follow(task->email.status, ending->plan->status))
        return TIDE_OK;
    const struct tide_assistant_event event = {
        .account = task->account,
        .thread_id = task->thread_id,
        .kind = tide_assistant_status_name(TIDE_ASSISTANT_PENDING),
        .detail = "",
        .job = tide_job_id(task->job),
        .at_ms = task->now_ms};
    return tide_assistant_email_move(db, &event, TIDE_ASSISTANT_PENDING, err);
}

struct left {
    const struct tide_agent_work *work;
    struct tide_assistant_agent_end end;
};

/* What the run left in Gmail, by the rows: its log does not know what became of a draft. */
static tide_status read_left(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct left *left = arg;
    const struct tide_task *task = &left->work->task;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_assistant_reply reply;
    struct tide_assistant_draft draft;
    char own[24];
    (void)snprintf(own, sizeof own, "r%" PRIx64 "-", left->work->id);
    tide_status rc = tide_assistant_reply_get(db, left->work->id, &reply, err);
    left->end.sent = rc == TIDE_OK;
    for (unsigned state = 0; rc == TIDE_OK || rc == TIDE_NOT_FOUND; state++) {
        if (state == TIDE_ASSISTANT_DRAFT_GONE)
            return TIDE_OK;
        rc = tide_assistant_draft_get(db, task->account, task->thread_id,
                                      (tide_assistant_draft_state)state, &draft, err);
        const bool its = rc == TIDE_OK && strncmp(draft.token, own, strlen(own)) == 0;
        if (state == TIDE_ASSISTANT_DRAFT_LIVE)
            left->end.drafted = its;
        else
            left->end.doubt = left->end.doubt || its;
    }
    return rc;
}

static tide_status end_of(const struct tide_agent_work *work, struct tide_assistant_agent_end *end,
                          tide_error *err)
{
    struct left left = {.work = work};
    TIDE_TRY(tide_transact(work->task.jobs->options.engine, read_left, &left, err));
    *end = left.end;
    end->look = tide_agent_status_of(work->run) != TIDE_AGENT_DONE;
    return TIDE_OK;
}

/* How many messages of the thread the run knows. */
static uint32_t messages_of(const struct tide_agent_work *work)
{
    const struct tide_task *task = &work->task;
    uint32_t count = 0;
    for (size_t i = 0; i < task->thread.count; i++) {
        const struct tide_gmail_parts *parts = &task->thread.messages[i];
        if (!tide_gmail_parts_labeled(parts, "DRAFT") && !tide_gmail_parts_labeled(parts, "TRASH"))
            count++;
        if (tide_text_equal(parts->message.id, tide_text_of(task->message_id)) &&
            parts != tide_task_newest(task))
            break; /* later ones are of another round */
    }
    return count;
}

static tide_status record_of(struct tide_agent_work *work, const struct tide_gmail_parts *parts,
                             const struct tide_assistant_agent_end *end,
                             const struct tide_assistant_plan *plan,
                             struct tide_assistant_email *email, tide_error *err)
{
    struct tide_task *task = &work->task;
    struct tide_letter letter;
    TIDE_TRY(tide_task_letter(task, parts, &letter, err));
    tide_task_record(task, tide_text_of(task->message_id), &letter, email);
    email->category = tide_assistant_agent_category(end);
    tide_task_copy(email->confidence, sizeof email->confidence, TIDE_TEXT("high"));
    tide_task_copy(email->reasoning, sizeof email->reasoning, tide_agent_final(work->run));
    email->status =
        plan->status == TIDE_ASSISTANT_SKIPPED ? TIDE_ASSISTANT_SKIPPED : TIDE_ASSISTANT_PENDING;
    email->messages = messages_of(work);
    return TIDE_OK;
}

/* A message came while the agent worked: another round is queued for it (J25).  The labels of the end are on
 * it, too, so that after an expired history id no listing would tell of it: there was no record then. */
static tide_status follow_newer(struct tide_carry *carry, tide_error *err)
{
    const struct tide_task *task = carry->task;
    const struct tide_gmail_parts *newest = tide_task_newest(task);
    if (newest == NULL || tide_gmail_parts_labeled(newest, "SENT"))
        return TIDE_OK;
    const size_t place = (size_t)(newest - task->thread.messages) + 1;
    if (place <= tide_task_place(task, task->message_id) ||
        place <= tide_task_place(task, task->email.message_id))
        return TIDE_OK;
    TIDE_SEEN("assistant: a message came while an agent worked");
    const char *const pairs[] = {"round", "retriage", "message_id", newest->message.id.data, NULL};
    char dedupe[TIDE_ASSISTANT_KEY_BYTES];
    (void)snprintf(dedupe, sizeof dedupe, "retriage/%s", task->thread_id);
    return tide_carry_follow(carry, TIDE_ASSISTANT_CLASSIFY, dedupe, pairs, err);
}

/* Writes the end, with the record if `parts` is given. */
static tide_status carry_end(struct tide_agent_work *work, const struct tide_gmail_parts *parts,
                             const struct tide_assistant_agent_end *end, struct ending *ending,
                             tide_error *err)
{
    struct tide_task *task = &work->task;
    const struct tide_assistant_facts facts = tide_task_facts(task);
    const struct tide_assistant_plan none = {.act = true};
    const struct tide_assistant_plan plan = tide_assistant_plan_agent(&facts, end);
    struct tide_assistant_email email;
    struct tide_carry carry = {.task = task, .plan = &none, .also = write_end, .also_arg = ending};
    if (parts != NULL) {
        TIDE_TRY(record_of(work, parts, end, &plan, &email, err));
        /* The user took the thread out of the inbox meanwhile: it is not for us to sort, unless a person
         * must look. */
        if (end->look || tide_gmail_thread_labeled(&task->thread, "INBOX"))
            TIDE_TRY(tide_carry_labels(task, &plan, err));
        ending->plan = carry.plan = &plan;
        carry.put = &email;
        carry.detail = ending->detail;
    }
    tide_status rc = follow_newer(&carry, err);
    if (rc == TIDE_OK && carry.plan->draft_stale)
        rc = tide_carry_cleanup(&carry, "stale", err);
    else if (rc == TIDE_OK && carry.plan->status == TIDE_ASSISTANT_DRAFTED)
        /* The user may have sent or discarded it since, and history told that of a record that was not
         * drafted yet. */
        rc = tide_carry_cleanup(&carry, "check_sent", err);
    if (rc == TIDE_OK && carry.plan->done)
        rc = tide_carry_cleanup(&carry, "done", err);
    if (rc == TIDE_OK)
        rc = tide_carry_out(&carry, err);
    tide_carry_done(&carry);
    return rc;
}

static tide_status conclude(struct tide_agent_work *work, tide_error *err)
{
    struct tide_task *task = &work->task;
    struct tide_assistant_agent_end end;
    struct ending ending = {.plan = NULL};
    const struct tide_gmail_parts *parts = NULL;
    TIDE_TRY(end_of(work, &end, err));
    tide_arena_reset(&task->arena);
    const tide_status there = tide_task_thread(task, true, err);
    if (there != TIDE_OK && there != TIDE_GONE)
        return there;
    if (there == TIDE_OK)
        parts = tide_agent_message(work);
    end.done =
        parts != NULL && !tide_gmail_thread_labeled(&task->thread, "INBOX") &&
        tide_gmail_thread_labeled(&task->thread, task->labels.ids[TIDE_ASSISTANT_LABEL_DONE]);
    if (parts != NULL && task->email.status != TIDE_ASSISTANT_NO_STATUS &&
        tide_task_place(task, task->email.message_id) > tide_task_place(task, task->message_id))
        parts = NULL; /* AGJ9 */
    ending.look = end.look;
    detail_of(work, ending.detail);
    tide_status rc = saving_begin(&ending.saving, work, err);
    if (rc == TIDE_OK)
        rc = carry_end(work, parts, &end, &ending, err);
    saving_end(&ending.saving);
    return rc;
}

/* ---- the handler ---- */

static const struct tide_profile *profile_of(const struct tide_agent_work *work)
{
    const struct tide_assistant_config *config = work->task.terms.config;
    for (size_t i = 0; i < config->profiles_count; i++)
        if (tide_text_equal(config->profiles[i].name, tide_text_of(work->profile_name)))
            return &config->profiles[i];
    return NULL;
}

static tide_status steps(struct tide_agent_work *work, tide_error *err)
{
    bool asked = false;
    TIDE_TRY(load(work, err));
    if (work->ended)
        return TIDE_OK;
    work->profile = profile_of(work);
    if (work->id == 0)
        TIDE_TRY(begin(work, err));
    if (work->run == NULL)
        return TIDE_OK;
    while (!asked) { /* AGR2 bounds it */
        switch (tide_agent_next_of(work->run)) {
        case TIDE_AGENT_ASK:
            TIDE_TRY(ask_step(work, &asked, err));
            break;
        case TIDE_AGENT_TOOL:
            TIDE_TRY(tool_step(work, err));
            break;
        case TIDE_AGENT_ENDED:
            return conclude(work, err);
        }
    }
    return TIDE_OK;
}

tide_status tide_assistant_agent_run(tide_job *job, void *context, tide_error *err)
{
    struct tide_agent_work work;
    memset(&work, 0, sizeof work);
    tide_status rc = tide_task_begin(&work.task, context, job, err);
    if (rc == TIDE_OK && (work.task.thread_id[0] == '\0' || work.task.message_id[0] == '\0'))
        rc = tide_error_set(err, TIDE_INVALID, "the payload names no message");
    if (rc == TIDE_OK) {
        tide_task_copy(work.profile_name, sizeof work.profile_name,
                       tide_text_of(tide_task_text(&work.task, "profile")));
        tide_task_copy(work.rule, sizeof work.rule,
                       tide_text_of(tide_task_text(&work.task, "route_rule")));
        (void)snprintf(work.key, sizeof work.key, "agent/%u/%s/%s", (unsigned)work.task.account,
                       work.task.thread_id, work.task.message_id);
        rc = steps(&work, err);
    }
    tide_agent_run_free(work.run);
    tide_task_end(&work.task);
    return rc;
}
