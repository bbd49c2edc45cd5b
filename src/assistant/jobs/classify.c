/* classify.c - assistant.classify {thread_id, message_id, round, key}: which way a message goes, what
 * it is, and what follows (J8, J10, J16, J21, J25).
 *
 *   1  the router chooses: an agent's job follows, or the pipeline
 *   2  tier 1 knows it, or the model is asked: a job with the question's key follows
 *   3  the label is put on, then the record is written with the jobs that follow from it */
#include "assistant/jobs/inside.h"

#include "assistant/rules/router.h"
#include "assistant/rules/triage.h"
#include "assistant/text/prompt.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>

enum { CLASSIFY_TOKENS_MAX = 600 };

struct classifying {
    struct tide_task task;
    tide_assistant_round round;
    const struct tide_gmail_parts *newest;
    struct tide_letter letter;
    struct tide_triage triage;
};

static tide_assistant_round round_of(const struct tide_task *task)
{
    const char *name = tide_task_text(task, "round");
    return strcmp(name, "force") == 0      ? TIDE_ROUND_FORCE
           : strcmp(name, "retriage") == 0 ? TIDE_ROUND_RETRIAGE
                                           : TIDE_ROUND_NEW;
}

/* ---- 1: the way ---- */

static tide_status to_agent(struct classifying *self, const struct tide_route *route,
                            tide_error *err)
{
    struct tide_task *task = &self->task;
    const struct tide_assistant_plan plan = {.act = true};
    struct tide_carry carry = {.task = task, .plan = &plan};
    char profile[TIDE_ASSISTANT_NAME_BYTES_MAX + 1], rule[TIDE_ASSISTANT_NAME_BYTES_MAX + 1];
    (void)snprintf(profile, sizeof profile, "%.*s", (int)route->profile->name.bytes,
                   route->profile->name.data);
    (void)snprintf(rule, sizeof rule, "%.*s", (int)route->rule->name.bytes, route->rule->name.data);
    const char *const pairs[] = {"profile", profile, "route_rule", rule, NULL};
    char dedupe[TIDE_ASSISTANT_KEY_BYTES];
    (void)snprintf(dedupe, sizeof dedupe, "%s", task->message_id);
    tide_status rc = tide_carry_follow(&carry, TIDE_ASSISTANT_AGENT, dedupe, pairs, err);
    if (rc == TIDE_OK)
        rc = tide_carry_out(&carry, err);
    tide_carry_done(&carry);
    return rc;
}

/* ---- 2: the question ---- */

/* Of the same message there is one question, but for a forced round, which asks again. */
static void key_of(const struct classifying *self, char key[TIDE_ASSISTANT_KEY_BYTES])
{
    const struct tide_task *task = &self->task;
    char forced[24] = "";
    if (self->round == TIDE_ROUND_FORCE)
        (void)snprintf(forced, sizeof forced, "/%llu", (unsigned long long)tide_job_id(task->job));
    (void)snprintf(key, TIDE_ASSISTANT_KEY_BYTES, "classify/%u/%s/%s%s", (unsigned)task->account,
                   task->thread_id, task->message_id, forced);
}

/* Asks `key`; *answered_out: it was asked before, and has its answer. */
static tide_status ask(struct classifying *self, const char *key, bool *answered_out,
                       tide_error *err)
{
    struct tide_task *task = &self->task;
    const struct tide_assistant_config *config = task->terms.config;
    const struct tide_assistant_plan plan = {.act = true};
    struct tide_carry carry = {.task = task, .plan = &plan};
    tide_text styles[TIDE_ASSISTANT_STYLES_MAX];
    struct tide_letter *letters = NULL;
    size_t count = 0;
    for (size_t i = 0; i < config->styles_count; i++)
        styles[i] = config->styles[i].name;
    /* Later ones, too: the user may have answered it already. */
    TIDE_TRY(tide_task_letters(task, &task->thread, self->newest, &letters, &count, err));
    const struct tide_prompt_classify wanted = {.prompt = config->prompts.classify,
                                                .letter = &self->letter,
                                                .thread = letters,
                                                .thread_count = count,
                                                .styles = styles,
                                                .styles_count = config->styles_count,
                                                .automated = self->triage.automated,
                                                .automated_why = tide_text_of(self->triage.why)};
    struct tide_prompt prompt;
    char model[TIDE_ASSISTANT_KEY_BYTES];
    tide_prompt_init(&prompt, task->jobs->mem);
    (void)snprintf(model, sizeof model, "%.*s", (int)config->model_fast.bytes,
                   config->model_fast.data);
    const char *const pairs[] = {"round", tide_task_text(task, "round"), "key", key, NULL};
    tide_status rc = tide_prompt_classify(&wanted, &prompt);
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no room for a prompt");
    const struct tide_assistant_question question = {.kind = "classify",
                                                     .model = model,
                                                     .system = tide_buf_text(&prompt.system),
                                                     .prompt = tide_buf_text(&prompt.user),
                                                     .json = true,
                                                     .tokens_max = CLASSIFY_TOKENS_MAX};
    if (rc == TIDE_OK)
        rc = tide_carry_follow(&carry, TIDE_ASSISTANT_CLASSIFY, "", pairs, err);
    if (rc == TIDE_OK)
        rc = tide_task_ask(&carry, key, &question,
                           self->round == TIDE_ROUND_FORCE ? NULL : answered_out, err);
    tide_carry_done(&carry);
    tide_prompt_done(&prompt);
    return rc;
}

/* The decision, with the answer to `key`; "": no model was needed. */
static tide_status decide(struct classifying *self, const char *key, struct tide_decision *decision,
                          tide_error *err)
{
    struct tide_task *task = &self->task;
    const struct tide_assistant_config *config = task->terms.config;
    tide_auto_buf text = tide_buf_in(task->jobs->mem, TIDE_ASSISTANT_TEXT_BYTES_MAX);
    tide_text styles[TIDE_ASSISTANT_STYLES_MAX];
    struct tide_verdict verdict;
    tide_error wrong = {TIDE_OK, 0, ""};
    bool failed = false, usable = false;
    for (size_t i = 0; i < config->styles_count; i++)
        styles[i] = config->styles[i].name;
    if (key[0] != '\0') {
        TIDE_TRY(tide_task_answer(task, key, &text, &failed, err));
        usable = !failed && tide_verdict_read(tide_buf_text(&text), styles, config->styles_count,
                                              &verdict, &wrong) == TIDE_OK;
    }
    tide_triage_decide(config, &self->letter, &self->triage, usable ? &verdict : NULL,
                       failed ? tide_buf_cstr(&text) : wrong.text, decision);
    return TIDE_OK;
}

/* ---- 3: the end ---- */

static void record_of(const struct classifying *self, const struct tide_decision *decision,
                      const struct tide_assistant_plan *plan, struct tide_assistant_email *email)
{
    const struct tide_task *task = &self->task;
    const struct tide_assistant_config *config = task->terms.config;
    tide_task_record(task, self->newest->message.id, &self->letter, email);
    email->category = decision->category;
    tide_task_copy(email->confidence, sizeof email->confidence,
                   tide_text_of(tide_confidence_name(decision->confidence)));
    tide_task_copy(email->language, sizeof email->language, tide_text_of(decision->language));
    tide_task_copy(email->style, sizeof email->style, config->styles[decision->style].name);
    tide_task_copy(email->reasoning, sizeof email->reasoning, tide_text_of(decision->reasoning));
    email->status =
        plan->status == TIDE_ASSISTANT_SKIPPED ? TIDE_ASSISTANT_SKIPPED : TIDE_ASSISTANT_PENDING;
}

static tide_status conclude(struct classifying *self, const struct tide_decision *decision,
                            tide_error *err)
{
    struct tide_task *task = &self->task;
    const struct tide_assistant_facts facts = tide_task_facts(task);
    const struct tide_assistant_plan plan =
        tide_assistant_plan_classified(self->round, &facts, decision->category);
    struct tide_assistant_email email;
    struct tide_carry carry = {.task = task, .plan = &plan, .put = &email};
    TIDE_ASSERT(plan.act);
    record_of(self, decision, &plan, &email);
    tide_status rc = tide_carry_labels(task, &plan, err);
    if (rc == TIDE_OK && plan.write)
        rc = tide_carry_follow(&carry, TIDE_ASSISTANT_DRAFT, task->thread_id, NULL, err);
    if (rc == TIDE_OK && plan.draft_stale)
        rc = tide_carry_cleanup(&carry, "stale", err);
    if (rc == TIDE_OK && plan.done)
        rc = tide_carry_cleanup(&carry, "done", err);
    if (rc == TIDE_OK)
        rc = tide_carry_out(&carry, err);
    tide_carry_done(&carry);
    return rc;
}

/* Whether the thread is one to classify now.  *wanted_out is set after TIDE_OK. */
static tide_status look(struct classifying *self, bool *wanted_out, tide_error *err)
{
    struct tide_task *task = &self->task;
    *wanted_out = false;
    if (self->round == TIDE_ROUND_NEW && task->email.status != TIDE_ASSISTANT_NO_STATUS)
        return TIDE_OK; /* J10, before any call */
    TIDE_TRY(tide_task_thread(task, true, err));
    const struct tide_assistant_facts facts = tide_task_facts(task);
    self->newest = tide_task_newest(task);
    if (self->newest == NULL || !tide_assistant_classify_wanted(self->round, &facts))
        return TIDE_OK;
    /* The user archived or deleted it before it was its turn. */
    if (self->round != TIDE_ROUND_FORCE && !tide_gmail_thread_labeled(&task->thread, "INBOX"))
        return TIDE_OK;
    /* From here on the newest message counts: the question and the draft are about it. */
    tide_task_copy(task->message_id, sizeof task->message_id, self->newest->message.id);
    TIDE_TRY(tide_task_letter(task, self->newest, &self->letter, err));
    tide_triage_look(task->terms.config, &self->letter, &self->triage);
    *wanted_out = true;
    return TIDE_OK;
}

struct leaving {
    const struct tide_task *task;
    bool begun; /* an attempt was about to put Needs Response on */
};

static tide_status read_begun(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct leaving *leaving = arg;
    const struct tide_task *task = leaving->task;
    const char *label = task->labels.ids[TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE];
    for (size_t i = 0; i < task->thread.count && !leaving->begun; i++)
        TIDE_TRY(tide_assistant_mark_open(tide_transaction_rows(transaction), task->account,
                                          task->thread.messages[i].message.id.data, label,
                                          &leaving->begun, err));
    return TIDE_OK;
}

static tide_status end_marks(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct leaving *leaving = arg;
    const struct tide_task *task = leaving->task;
    return tide_assistant_marks_done(tide_transaction_rows(transaction), task->account,
                                     tide_job_id(task->job), task->now_ms, err);
}

/* An earlier attempt may have been about to put a label on, when the user acted: without a record it is
 * taken off again, or it would ask for a draft; and its mark must not hide what the user does next. */
static tide_status leave(struct classifying *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    tide_engine *engine = task->jobs->options.engine;
    struct leaving leaving = {.task = task};
    const struct tide_assistant_plan plan = {.act = true, .take = TIDE_LABEL_BIT(NEEDS_RESPONSE)};
    TIDE_TRY(tide_transact(engine, read_begun, &leaving, err));
    if (leaving.begun && task->email.status == TIDE_ASSISTANT_NO_STATUS)
        TIDE_TRY(tide_carry_labels(task, &plan, err));
    return tide_transact(engine, end_marks, &leaving, err);
}

static tide_status classify(struct classifying *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    struct tide_decision decision;
    struct tide_route route;
    char key[TIDE_ASSISTANT_KEY_BYTES];
    bool wanted = false;
    TIDE_TRY(look(self, &wanted, err));
    if (!wanted)
        return leave(self, err);
    (void)snprintf(key, sizeof key, "%s", tide_task_text(task, "key"));
    if (key[0] == '\0' && self->round != TIDE_ROUND_FORCE) {
        tide_route_choose(task->terms.config, &self->letter, &route);
        if (route.profile != NULL)
            return to_agent(self, &route, err);
    }
    if (tide_triage_needs_model(&self->triage)) {
        char asked[TIDE_ASSISTANT_KEY_BYTES];
        bool answered = false;
        key_of(self, asked);
        /* Another message came while the model thought: its question is another one.  One that has its
         * answer is not waited for: the job behind it may wait for an ask that was canceled. */
        if (key[0] == '\0' || (self->round != TIDE_ROUND_FORCE && strcmp(key, asked) != 0)) {
            TIDE_TRY(ask(self, asked, &answered, err));
            if (!answered)
                return TIDE_OK;
            memcpy(key, asked, sizeof key);
        }
    }
    TIDE_TRY(decide(self, tide_triage_needs_model(&self->triage) ? key : "", &decision, err));
    return conclude(self, &decision, err);
}

tide_status tide_assistant_classify_run(tide_job *job, void *context, tide_error *err)
{
    struct classifying self;
    memset(&self, 0, sizeof self);
    tide_status rc = tide_task_begin(&self.task, context, job, err);
    if (rc == TIDE_OK) {
        self.round = round_of(&self.task);
        rc = classify(&self, err);
    }
    tide_task_end(&self.task);
    return rc;
}
