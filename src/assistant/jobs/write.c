/* write.c - assistant.draft, assistant.manual_draft, assistant.rework: drafts, in steps around the
 * model (J11, J13, J14, J26).
 *
 *   begin  whether there is something to write; a rework's status before the model is called
 *   write  mail that is related, found by searches of the model; the question for the draft
 *   make   the draft in Gmail, labels, the record */
#include "assistant/jobs/inside.h"

#include "assistant/text/marker.h"
#include "assistant/text/prompt.h"
#include "assistant/text/quote.h"
#include "assistant/text/verdict.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/map.h"

#include <stdio.h>
#include <string.h>

enum {
    CONTEXT_TOKENS_MAX = 300,
    RELATED_MAX = 20,
    BODY_BYTES_MAX = 192 << 10,
    QUOTE_BYTES_MAX = 32 << 10,
};

struct writing {
    struct tide_task task;
    tide_assistant_kind kind;
    const struct tide_gmail_parts *newest;
    struct tide_letter *letters; /* of the thread */
    size_t letters_count;
    struct tide_letter letter; /* the newest */
    tide_buf instruction;      /* the user's */
    tide_buf draft;            /* that is reworked */
    struct tide_prompt_related related[RELATED_MAX];
    size_t related_count;
};

static const struct tide_assistant_config *config_of(const struct writing *self)
{
    return self->task.terms.config;
}

/* "draft/3/17f2/99": a question of the round that job 99 began. */
static void key_of(const struct writing *self, const char *what, char key[TIDE_ASSISTANT_KEY_BYTES])
{
    const struct tide_task *task = &self->task;
    (void)snprintf(key, TIDE_ASSISTANT_KEY_BYTES, "%s/%u/%s/%s", what, (unsigned)task->account,
                   task->thread_id, tide_task_text(task, "begun"));
}

/* ---- the thread ---- */

static tide_status look(struct writing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    TIDE_TRY(tide_task_thread(task, true, err));
    self->newest = tide_task_newest(task);
    if (self->newest == NULL)
        return tide_error_set(err, TIDE_GONE, "the thread has no message left");
    TIDE_TRY(tide_task_letter(task, self->newest, &self->letter, err));
    return tide_task_letters(task, &task->thread, NULL, &self->letters, &self->letters_count, err);
}

/* A draft in the thread that is not ours: the user's notes (J14). */
static const struct tide_gmail_parts *notes_of(const struct tide_task *task)
{
    for (size_t i = task->thread.count; i > 0; i--) {
        const struct tide_gmail_parts *parts = &task->thread.messages[i - 1];
        if (tide_gmail_parts_labeled(parts, "DRAFT") && !tide_gmail_parts_labeled(parts, "TRASH") &&
            tide_gmail_parts_header(parts, TIDE_GMAIL_DRAFT_HEADER).bytes == 0)
            return parts;
    }
    return NULL;
}

static tide_status notes_read(struct writing *self, tide_error *err)
{
    const struct tide_gmail_parts *notes = notes_of(&self->task);
    struct tide_letter letter;
    struct tide_marked marked;
    tide_buf_clear(&self->instruction);
    if (self->kind != TIDE_ASSISTANT_MANUAL_DRAFT || notes == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_task_letter(&self->task, notes, &letter, err));
    tide_marker_find(letter.text, &marked);
    return tide_manual_notes(&marked, &self->instruction);
}

/* The instruction and the text of the draft that is to be reworked.  TIDE_GONE: it is not there any
 * more. */
static tide_status old_draft_read(struct writing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    struct tide_gmail_parts parts;
    struct tide_letter letter;
    struct tide_marked marked;
    if (task->email.draft_id[0] == '\0')
        return tide_error_set(err, TIDE_GONE, "there is no draft to rework");
    tide_gmail_parts_init(&parts, task->jobs->mem);
    tide_status rc = tide_gmail_draft_get(task->gmail, task->job,
                                          tide_text_of(task->email.draft_id), &parts, err);
    if (rc == TIDE_OK)
        rc = tide_task_letter(task, &parts, &letter, err);
    if (rc == TIDE_OK) {
        tide_marker_find(letter.text, &marked);
        rc = tide_rework_instruction(&marked, &self->instruction);
    }
    if (rc == TIDE_OK)
        rc = tide_buf_add(&self->draft, marked.below.bytes > 0 ? marked.below.data : "",
                          marked.below.bytes);
    tide_gmail_parts_done(&parts);
    return rc;
}

/* ---- questions ---- */

/* Asks, with the next step behind it. */
static tide_status ask(struct writing *self, const char *kind, tide_text model, uint32_t tokens_max,
                       const struct tide_prompt *prompt, const char *step, tide_error *err)
{
    struct tide_task *task = &self->task;
    const struct tide_assistant_plan plan = {.act = true};
    struct tide_carry carry = {.task = task, .plan = &plan};
    char key[TIDE_ASSISTANT_KEY_BYTES], name[TIDE_ASSISTANT_KEY_BYTES];
    key_of(self, kind, key);
    (void)snprintf(name, sizeof name, "%.*s", (int)model.bytes, model.data);
    const char *const pairs[] = {"step", step, "key", key, "begun", tide_task_text(task, "begun"),
                                 NULL};
    const struct tide_assistant_question question = {.kind = kind,
                                                     .model = name,
                                                     .system = tide_buf_text(&prompt->system),
                                                     .prompt = tide_buf_text(&prompt->user),
                                                     .json = strcmp(kind, "context") == 0,
                                                     .tokens_max = tokens_max};
    (void)snprintf(task->message_id, sizeof task->message_id, "%s", self->newest->message.id.data);
    tide_status rc = tide_carry_follow(&carry, self->kind, "", pairs, err);
    if (rc == TIDE_OK)
        rc = tide_task_ask(&carry, key, &question, NULL, err);
    tide_carry_done(&carry);
    return rc;
}

static tide_status ask_context(struct writing *self, tide_error *err)
{
    struct tide_prompt prompt;
    tide_prompt_init(&prompt, self->task.jobs->mem);
    tide_status rc = tide_prompt_context(config_of(self)->prompts.context, &self->letter,
                                         config_of(self)->context_searches, &prompt);
    if (rc == TIDE_OK)
        rc = ask(self, "context", config_of(self)->model_fast, CONTEXT_TOKENS_MAX, &prompt, "write",
                 err);
    else
        (void)tide_error_set(err, rc, "no room for a prompt");
    tide_prompt_done(&prompt);
    return rc;
}

static tide_text style_of(const struct writing *self)
{
    const struct tide_assistant_config *config = config_of(self);
    for (size_t i = 0; i < config->styles_count; i++)
        if (tide_text_equal(config->styles[i].name, tide_text_of(self->task.email.style)))
            return config->styles[i].text;
    return config->styles[config->default_style].text;
}

static tide_status ask_draft(struct writing *self, tide_error *err)
{
    const struct tide_assistant_config *config = config_of(self);
    const bool rework = self->kind == TIDE_ASSISTANT_REWORK;
    const struct tide_prompt_draft wanted = {.prompt = rework ? config->prompts.rework
                                                              : config->prompts.draft,
                                             .self = tide_text_of(self->task.user.email),
                                             .style = style_of(self),
                                             .language = tide_text_of(self->task.email.language),
                                             .instruction = tide_buf_text(&self->instruction),
                                             .draft = tide_buf_text(&self->draft),
                                             .thread = self->letters,
                                             .thread_count = self->letters_count,
                                             .related = self->related,
                                             .related_count = self->related_count,
                                             .related_chars = config->context_chars};
    struct tide_prompt prompt;
    tide_prompt_init(&prompt, self->task.jobs->mem);
    tide_status rc = tide_prompt_draft(&wanted, &prompt);
    if (rc == TIDE_OK)
        rc = ask(self, rework ? "rework" : "draft", config->model_better, config->draft_max_tokens,
                 &prompt, "make", err);
    else
        (void)tide_error_set(err, rc, "no room for a prompt");
    tide_prompt_done(&prompt);
    return rc;
}

/* ---- related mail (J11) ---- */

static tide_status related_add(struct writing *self, tide_text thread_id, tide_error *err)
{
    struct tide_task *task = &self->task;
    struct tide_gmail_thread thread;
    struct tide_letter *letters = NULL;
    size_t count = 0;
    tide_gmail_thread_init(&thread, task->jobs->mem);
    tide_status rc = tide_gmail_thread_get(task->gmail, task->job, thread_id, &thread, err);
    if (rc == TIDE_OK)
        rc = tide_task_letters(task, &thread, NULL, &letters, &count, err);
    if (rc == TIDE_OK && count > 0)
        self->related[self->related_count++] =
            (struct tide_prompt_related){.letters = letters, .count = count};
    tide_gmail_thread_done(&thread);
    return rc;
}

static bool is_known(const tide_map *seen, tide_text thread_id)
{
    uint32_t there = 0;
    return tide_map_get(seen, tide_hash_key(thread_id), &there);
}

static tide_status search(struct writing *self, const char *query, tide_map *seen, tide_error *err)
{
    struct tide_task *task = &self->task;
    struct tide_gmail_page page = {.value = NULL};
    tide_status rc = tide_gmail_list(task->gmail, task->job, query, TIDE_TEXT_NONE, &page, err);
    for (size_t i = 0; rc == TIDE_OK && i < json_array_size(page.ids); i++) {
        const json_t *id = json_object_get(json_array_get(page.ids, i), "threadId");
        const tide_text thread_id = {json_string_value(id), json_string_length(id)};
        if (self->related_count == config_of(self)->context_threads ||
            self->related_count == RELATED_MAX)
            break;
        if (thread_id.bytes == 0 || is_known(seen, thread_id) ||
            !tide_map_put(seen, tide_hash_key(thread_id), 1))
            continue;
        rc = related_add(self, thread_id, err);
    }
    tide_gmail_page_done(&page);
    return rc;
}

/* Any failure is swallowed: a draft without related mail is a draft.  Requests of the engine to
 * stop or to wait are not failures. */
static tide_status related_read(struct writing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    tide_auto_buf text = tide_buf_in(task->jobs->mem, TIDE_ASSISTANT_TEXT_BYTES_MAX);
    tide_auto_map seen;
    struct tide_searches searches = {.count = 0};
    bool failed = false;
    tide_map_init(&seen, task->jobs->mem);
    tide_status rc = tide_task_answer(task, tide_task_text(task, "key"), &text, &failed, err);
    if (rc != TIDE_OK || failed ||
        tide_searches_read(tide_buf_text(&text), config_of(self)->context_searches, &searches,
                           NULL) != TIDE_OK ||
        !tide_map_put(&seen, tide_hash_key(tide_text_of(task->thread_id)), 1))
        return TIDE_OK;
    for (size_t i = 0; i < searches.count; i++) {
        rc = search(self, searches.queries[i], &seen, err);
        const int class = (int)tide_status_class(rc);
        if (class == TIDE_CLASS_CANCELED || class == TIDE_CLASS_THROTTLED || rc == TIDE_AGAIN)
            return rc;
    }
    return TIDE_OK;
}

/* ---- begin ---- */

/* The user asked for a draft: the record becomes pending. */
static tide_status manual_begin(struct writing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    const struct tide_assistant_facts facts = tide_task_facts(task);
    const struct tide_assistant_plan plan = tide_assistant_plan_manual(&facts);
    struct tide_assistant_email email;
    tide_task_record(task, self->newest->message.id, &self->letter, &email);
    memcpy(email.language, task->email.language, sizeof email.language);
    if (task->email.style[0] != '\0')
        memcpy(email.style, task->email.style, sizeof email.style);
    memcpy(email.draft_id, task->email.draft_id, sizeof email.draft_id);
    email.reworks = task->email.reworks;
    email.category = TIDE_ASSISTANT_NEEDS_RESPONSE;
    (void)snprintf(email.confidence, sizeof email.confidence, "high");
    (void)snprintf(email.reasoning, sizeof email.reasoning, "the user asked for a draft");
    email.status = TIDE_ASSISTANT_PENDING;
    struct tide_carry carry = {.task = task, .plan = &plan, .put = &email};
    TIDE_TRY(tide_carry_labels(task, &plan, err));
    TIDE_TRY(tide_carry_out(&carry, err));
    task->email = email;
    return TIDE_OK;
}

struct begun {
    const struct tide_task *task;
    bool known;
};

static tide_status read_begun(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct begun *begun = arg;
    const struct tide_task *task = begun->task;
    return tide_assistant_event_known(tide_transaction_rows(transaction), task->account,
                                      task->thread_id, "manual_draft", tide_job_id(task->job),
                                      &begun->known, err);
}

/* Begins the round, if there is one to begin: one request is one round and one event, also when history or
 * a listing shows its label twice, and when an attempt was killed behind the beginning. */
static tide_status manual_wanted(struct writing *self, bool *wanted_out, tide_error *err)
{
    const struct tide_task *task = &self->task;
    struct begun begun = {.task = task};
    const bool in_work = task->email.status == TIDE_ASSISTANT_PENDING &&
                         strcmp(task->email.message_id, self->newest->message.id.data) == 0;
    if (in_work)
        TIDE_TRY(tide_transact(task->jobs->options.engine, read_begun, &begun, err));
    *wanted_out = !in_work || begun.known;
    return in_work ? TIDE_OK : manual_begin(self, err);
}

/* J14: there is a draft, or one in work. */
static tide_status manual_skip(struct writing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    const struct tide_assistant_facts facts = tide_task_facts(task);
    const struct tide_assistant_plan plan = tide_assistant_plan_manual(&facts);
    if (!plan.act)
        return TIDE_OK;
    TIDE_TRY(tide_task_thread(task, false, err));
    return tide_carry_labels(task, &plan, err);
}

static tide_status follow_check(struct tide_carry *carry, tide_error *err)
{
    static const char *const pairs[] = {"action", "check_sent", NULL};
    return tide_carry_follow(carry, TIDE_ASSISTANT_CLEANUP, carry->task->thread_id, pairs, err);
}

static tide_status rework_begin(struct writing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    const struct tide_assistant_facts facts = tide_task_facts(task);
    const struct tide_assistant_plan plan =
        tide_assistant_plan_rework(&facts, config_of(self)->rework_limit);
    struct tide_carry carry = {.task = task, .plan = &plan};
    if (!plan.write) {
        TIDE_TRY(tide_carry_labels(task, &plan, err));
        return tide_carry_out(&carry, err);
    }
    const tide_status rc = old_draft_read(self, err);
    if (rc == TIDE_GONE) { /* sent or discarded before: that has a job of its own */
        const struct tide_assistant_plan none = {.act = true};
        carry.plan = &none;
        tide_status done = follow_check(&carry, err);
        if (done == TIDE_OK)
            done = tide_carry_out(&carry, err);
        tide_carry_done(&carry);
        return done;
    }
    TIDE_TRY(rc);
    TIDE_TRY(tide_carry_out(&carry, err)); /* J26: before the model */
    return ask_draft(self, err);
}

static void see_call(const struct tide_assistant_call *call, void *arg)
{
    (void)call;
    *(bool *)arg = true;
}

struct asked {
    const char *key;
    bool found;
};

static tide_status read_asked(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct asked *asked = arg;
    const tide_status rc = tide_assistant_call_get(tide_transaction_rows(transaction), asked->key,
                                                   see_call, &asked->found, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* Whether an earlier attempt of this job asked the model: then the next step is on its way, or done. */
static tide_status was_asked(struct writing *self, bool *asked_out, tide_error *err)
{
    static const char *const kinds[] = {"context", "draft", "rework"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char key[TIDE_ASSISTANT_KEY_BYTES];
        struct asked asked = {.key = key};
        key_of(self, kinds[i], key);
        TIDE_TRY(tide_transact(self->task.jobs->options.engine, read_asked, &asked, err));
        *asked_out = *asked_out || asked.found;
    }
    return TIDE_OK;
}

/* The label of the user's command, while it is on the thread: a user may take it back. */
static bool is_still_wanted(const struct writing *self)
{
    const struct tide_task *task = &self->task;
    const tide_assistant_label label = self->kind == TIDE_ASSISTANT_REWORK
                                           ? TIDE_ASSISTANT_LABEL_REWORK
                                           : TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE;
    return self->kind == TIDE_ASSISTANT_DRAFT ||
           task->email.status == TIDE_ASSISTANT_REWORK_REQUESTED || /* it was, when it began */
           tide_gmail_thread_labeled(&task->thread, task->labels.ids[label]);
}

static tide_status begin(struct writing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    struct tide_assistant_facts facts = tide_task_facts(task);
    const bool draft = self->kind == TIDE_ASSISTANT_DRAFT;
    /* A user's round that begins again: its record is pending, as that of any draft. */
    const bool again = tide_task_text(task, "again")[0] != '\0';
    const bool manual = self->kind == TIDE_ASSISTANT_MANUAL_DRAFT && !again;
    bool asked = false;
    if ((draft || again) && !tide_assistant_draft_wanted(&facts))
        return TIDE_OK;
    if (manual && !tide_assistant_plan_manual(&facts).write)
        return manual_skip(self, err);
    if (self->kind == TIDE_ASSISTANT_REWORK &&
        tide_assistant_rework_for(&facts, config_of(self)->rework_limit) == TIDE_REWORK_NONE)
        return TIDE_OK;
    /* A round of its own: what an earlier one was answered is not used again. */
    char begun[24];
    (void)snprintf(begun, sizeof begun, "%llu", (unsigned long long)tide_job_id(task->job));
    if (json_object_set_new(task->payload, "begun", json_string(begun)) != 0)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a draft");
    TIDE_TRY(was_asked(self, &asked, err));
    if (asked)
        return TIDE_OK;
    TIDE_TRY(look(self, err));
    if (!again && !is_still_wanted(self))
        return TIDE_OK;
    if (self->kind == TIDE_ASSISTANT_REWORK)
        return rework_begin(self, err);
    if (manual) {
        bool wanted = false;
        TIDE_TRY(manual_wanted(self, &wanted, err));
        if (!wanted)
            return TIDE_OK;
    }
    if (config_of(self)->context_searches > 0)
        return ask_context(self, err);
    TIDE_TRY(notes_read(self, err));
    return ask_draft(self, err);
}

static tide_status write_step(struct writing *self, tide_error *err)
{
    const struct tide_assistant_facts facts = tide_task_facts(&self->task);
    if (!tide_assistant_draft_wanted(&facts))
        return TIDE_OK;
    TIDE_TRY(look(self, err));
    TIDE_TRY(related_read(self, err));
    TIDE_TRY(notes_read(self, err));
    return ask_draft(self, err);
}

/* ---- make ---- */

static tide_status body_of(struct writing *self, bool last, tide_buf *body, tide_error *err)
{
    tide_auto_buf text = tide_buf_in(self->task.jobs->mem, TIDE_ASSISTANT_TEXT_BYTES_MAX);
    tide_auto_buf wrong = tide_buf_in(self->task.jobs->mem, TIDE_DRAFT_BYTES_MAX);
    bool failed = false;
    TIDE_TRY(
        tide_task_answer(&self->task, tide_task_text(&self->task, "key"), &text, &failed, err));
    /* A model that says nothing is a failure too, and one the user sees (J11). */
    if (!failed && strspn(tide_buf_cstr(&text), " \t\r\n") == text.bytes) {
        failed = true;
        tide_buf_clear(&text);
        TIDE_TRY(tide_buf_add_text(&text, "the model answered nothing"));
    }
    if (failed)
        TIDE_TRY(tide_draft_error_add(tide_buf_text(&text), &wrong));
    TIDE_TRY(tide_draft_add(last ? tide_last_rework_notice : NULL,
                            failed ? tide_buf_text(&wrong) : tide_buf_text(&text), body));
    if (!config_of(self)->quote_original)
        return TIDE_OK;
    TIDE_TRY(tide_buf_add_text(body, "\n\n"));
    return tide_quote_add(&self->letter, QUOTE_BYTES_MAX, body);
}

/* Another message came while the model thought: the draft would not know it.  The round begins
 * again, with the user's notes if it has some. */
static tide_status begin_again(struct writing *self, tide_error *err)
{
    static const char *const manual[] = {"again", "yes", NULL};
    const struct tide_assistant_plan plan = {.act = true};
    struct tide_carry carry = {.task = &self->task, .plan = &plan};
    TIDE_SEEN("assistant: a message came while a draft was written");
    tide_status rc =
        tide_carry_follow(&carry, self->kind, self->task.thread_id,
                          self->kind == TIDE_ASSISTANT_MANUAL_DRAFT ? manual : NULL, err);
    if (rc == TIDE_OK)
        rc = tide_carry_out(&carry, err);
    tide_carry_done(&carry);
    return rc;
}

/* Notes that were followed are not needed any more.  What has no header of ours may be our draft, saved
 * by the user after an attempt that was killed. */
static tide_status notes_trash(struct tide_task *task, const struct tide_gmail_parts *notes,
                               const struct tide_gmail_draft *made, tide_error *err)
{
    struct tide_gmail_draft its;
    tide_status rc = tide_gmail_draft_of(task->gmail, task->job, notes->message.id, &its, err);
    if (rc == TIDE_OK && strcmp(its.id, made->id) != 0)
        rc = tide_gmail_trash(task->gmail, task->job, notes->message.id, err);
    return rc == TIDE_NOT_FOUND || rc == TIDE_GONE ? TIDE_OK : rc; /* the user has it in hand */
}

static struct tide_assistant_plan plan_of(const struct writing *self)
{
    const struct tide_assistant_facts facts = tide_task_facts(&self->task);
    return self->kind == TIDE_ASSISTANT_REWORK
               ? tide_assistant_plan_reworked(&facts, config_of(self)->rework_limit)
               : tide_assistant_plan_drafted(&facts);
}

static tide_status make(struct writing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    const bool rework = self->kind == TIDE_ASSISTANT_REWORK;
    const uint32_t limit = config_of(self)->rework_limit;
    tide_auto_buf body = tide_buf_in(task->jobs->mem, BODY_BYTES_MAX);
    struct tide_made made;
    /* The user, or another message, was faster than an attempt that failed behind its draft. */
    if (!plan_of(self).act)
        return tide_task_draft_forget(task, NULL, err);
    TIDE_TRY(look(self, err));
    const struct tide_assistant_facts facts = tide_task_facts(task);
    const struct tide_assistant_plan plan = plan_of(self); /* with what the thread says */
    if (strcmp(task->message_id, self->newest->message.id.data) != 0)
        return begin_again(self, err);
    TIDE_TRY(body_of(self, rework && tide_assistant_rework_for(&facts, limit) == TIDE_REWORK_LAST,
                     &body, err));
    const struct tide_gmail_parts *notes =
        self->kind == TIDE_ASSISTANT_MANUAL_DRAFT ? notes_of(task) : NULL;
    TIDE_TRY(tide_task_draft(task, &self->letter, tide_buf_text(&body), NULL, &made, err));
    if (notes != NULL)
        TIDE_TRY(notes_trash(task, notes, &made.draft, err));
    TIDE_TRY(tide_carry_labels(task, &plan, err));
    struct tide_carry carry = {
        .task = task, .plan = &plan, .draft = &made.draft, .token = made.token, .reworked = rework};
    /* If it was sent or deleted since, history reported that before the record knew of the draft. */
    tide_status rc = made.before ? follow_check(&carry, err) : TIDE_OK;
    if (rc == TIDE_OK)
        rc = tide_carry_out(&carry, err);
    tide_carry_done(&carry);
    return rc;
}

/* ---- the handlers ---- */

/* The user deleted or trashed the thread: nothing is left to answer, and no full sync is to try again. */
static tide_status gone(struct writing *self, tide_error *err)
{
    const struct tide_assistant_facts facts = tide_task_facts(&self->task);
    const struct tide_assistant_plan plan = tide_assistant_plan_gone(&facts);
    struct tide_carry carry = {.task = &self->task, .plan = &plan};
    if (!plan.act)
        return TIDE_OK;
    tide_status rc = tide_carry_labels(&self->task, &plan, err);
    if (rc == TIDE_OK)
        rc = tide_carry_cleanup(&carry, "stale", err);
    if (rc == TIDE_OK)
        rc = tide_carry_out(&carry, err);
    tide_carry_done(&carry);
    return rc;
}

static tide_status run(tide_job *job, void *context, tide_assistant_kind kind, tide_error *err)
{
    struct writing self;
    memset(&self, 0, sizeof self);
    self.kind = kind;
    tide_status rc = tide_task_begin(&self.task, context, job, err);
    tide_buf_init(&self.instruction, self.task.jobs->mem, TIDE_DRAFT_BYTES_MAX);
    tide_buf_init(&self.draft, self.task.jobs->mem, TIDE_LETTER_TEXT_BYTES_MAX);
    const char *step = tide_task_text(&self.task, "step");
    if (rc == TIDE_OK)
        rc = strcmp(step, "write") == 0  ? write_step(&self, err)
             : strcmp(step, "make") == 0 ? make(&self, err)
                                         : begin(&self, err);
    if (rc == TIDE_GONE)
        rc = gone(&self, err);
    tide_buf_done(&self.instruction);
    tide_buf_done(&self.draft);
    tide_task_end(&self.task);
    return rc;
}

tide_status tide_assistant_draft_run(tide_job *job, void *context, tide_error *err)
{
    return run(job, context, TIDE_ASSISTANT_DRAFT, err);
}

tide_status tide_assistant_manual_run(tide_job *job, void *context, tide_error *err)
{
    return run(job, context, TIDE_ASSISTANT_MANUAL_DRAFT, err);
}

tide_status tide_assistant_rework_run(tide_job *job, void *context, tide_error *err)
{
    return run(job, context, TIDE_ASSISTANT_REWORK, err);
}
