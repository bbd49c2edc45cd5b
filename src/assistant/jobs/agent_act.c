/* agent_act.c - tools that act in the thread of a run: create_draft, send_reply, add_label. */
#include "assistant/jobs/agent.h"

#include "assistant/rules/triage.h"
#include "assistant/text/marker.h"
#include "assistant/text/quote.h"
#include "assistant/text/reply.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_BYTES_MAX = 64 << 10,
    BODY_BYTES_MAX = 192 << 10,
    QUOTE_BYTES_MAX = 32 << 10,
    LABEL_BYTES_MAX = 225, /* Gmail's */
};

/* ---- the message that is answered ---- */

/* Reads the thread and the letter.  false: the run's message is not the one to answer (AGJ7), and the
 * result says so. */
static tide_status answered(struct tide_agent_work *work, struct tide_letter *letter_out,
                            bool *good_out, tide_buf *result, bool *failed_out, tide_error *err)
{
    struct tide_task *task = &work->task;
    *good_out = false;
    const tide_status rc = tide_task_thread(task, true, err);
    if (rc == TIDE_GONE)
        return tide_agent_refuse("the message is gone", result, failed_out);
    TIDE_TRY(rc);
    const struct tide_gmail_parts *parts = tide_agent_message(work);
    if (parts == NULL)
        return tide_agent_refuse("the message is gone", result, failed_out);
    if (parts != tide_task_newest(task))
        return tide_agent_refuse("another message came in the meantime; it is answered instead",
                                 result, failed_out);
    *good_out = true;
    return tide_task_letter(task, parts, letter_out, err);
}

static tide_status done(const char *what, tide_buf *result)
{
    tide_auto_json json;
    tide_json_object(&json);
    tide_json_set_bool(&json, what, true);
    return tide_json_line(&json, result);
}

/* ---- create_draft ---- */

tide_status tide_agent_draft(struct tide_agent_work *work, const struct tide_agent_call *call,
                             tide_buf *result, bool *failed_out, tide_error *err)
{
    struct tide_task *task = &work->task;
    tide_auto_buf body = tide_buf_in(task->jobs->mem, BODY_BYTES_MAX);
    struct tide_letter letter;
    tide_text text;
    bool good = false;
    char own[32]; /* AGJ4 */
    if (!tide_agent_text(call, "text", TEXT_BYTES_MAX, &text, result, failed_out))
        return TIDE_OK;
    (void)snprintf(own, sizeof own, "r%" PRIx64 "-%u-", work->id, call->number);
    TIDE_TRY(answered(work, &letter, &good, result, failed_out, err));
    if (!good)
        return tide_task_draft_forget(task, own, err);
    TIDE_TRY(tide_draft_add(NULL, text, &body));
    if (task->terms.config->quote_original) {
        TIDE_TRY(tide_buf_add_text(&body, "\n\n"));
        TIDE_TRY(tide_quote_add(&letter, QUOTE_BYTES_MAX, &body));
    }
    TIDE_TRY(tide_task_draft(task, &letter, tide_buf_text(&body), own, &work->made, err));
    work->drafted = true;
    return done("drafted", result);
}

/* ---- send_reply ---- */

static bool is_in(tide_text header, tide_text address)
{
    struct tide_mailbox mailboxes[TIDE_MAILBOXES_MAX];
    const size_t count = tide_mailboxes_read(header, mailboxes, TIDE_MAILBOXES_MAX);
    for (size_t i = 0; i < count; i++)
        if (tide_mailbox_equal(mailboxes[i].address, address))
            return true;
    return false;
}

/* An address of Reply-To alone is not a participant: a stranger's mail could direct replies anywhere. */
static bool is_participant(const struct tide_letter *letters, size_t count, tide_text address)
{
    for (size_t i = 0; i < count; i++)
        if (is_in(letters[i].from, address) || is_in(letters[i].to, address) ||
            is_in(letters[i].cc, address))
            return true;
    return false;
}

/* AGJ10: whether a tool has shown it mail of other threads. */
static bool has_read_others(const struct tide_agent_work *work)
{
    size_t i = 0;
    json_t *line = NULL;
    json_array_foreach(tide_agent_log(work->run), i, line)
    {
        const char *tool = json_string_value(json_object_get(line, "tool"));
        const char *thread =
            json_string_value(json_object_get(json_object_get(line, "arguments"), "thread"));
        const bool named =
            thread != NULL && thread[0] != '\0' && strcmp(thread, work->task.thread_id) != 0;
        if (!json_is_true(json_object_get(line, "failed")) &&
            (strcmp(tool, "search_archive") == 0 || (strcmp(tool, "read_thread") == 0 && named)))
            return true;
    }
    return false;
}

/* Why nothing may be sent; NULL: it may. */
static tide_status may_send(struct tide_agent_work *work, const struct tide_letter *letter,
                            const char **why_out, tide_error *err)
{
    struct tide_task *task = &work->task;
    struct tide_triage triage;
    struct tide_recipients recipients;
    struct tide_letter *letters = NULL;
    size_t count = 0;
    *why_out = NULL;
    tide_triage_look(task->terms.config, letter, &triage);
    tide_reply_recipients(letter, tide_text_of(task->user.email), false, &recipients);
    TIDE_TRY(tide_task_letters(task, &task->thread, NULL, &letters, &count, err));
    if (has_read_others(work))
        *why_out = "other mail was read: no reply is sent, a draft can be written";
    else if (triage.automated || triage.blacklisted)
        *why_out = "the message is automated: no reply is sent to it";
    else if (recipients.to_count == 0)
        *why_out = "the message has no address that can be answered";
    for (size_t i = 0; *why_out == NULL && i < recipients.to_count; i++)
        if (!is_participant(letters, count, recipients.to[i].address))
            *why_out = "a reply would go to an address that is not in the thread";
    return TIDE_OK;
}

struct sending {
    const struct tide_task *task;
    struct tide_assistant_reply reply;
    bool again;
};

static tide_status read_reply(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sending *sending = arg;
    struct tide_assistant_reply reply;
    const tide_status rc = tide_assistant_reply_get(tide_transaction_rows(transaction),
                                                    sending->reply.run, &reply, err);
    sending->again = rc == TIDE_OK;
    if (rc == TIDE_OK)
        sending->reply = reply;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static tide_status write_reply(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sending *sending = arg;
    bool again = false;
    return tide_assistant_reply_begin(tide_transaction_rows(transaction), sending->task->account,
                                      &sending->reply, sending->task->now_ms, &again, err);
}

static tide_status drop_reply(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct sending *sending = arg;
    return tide_assistant_reply_drop(tide_transaction_rows(transaction), sending->reply.run, err);
}

static tide_status post(struct tide_agent_work *work, const struct tide_letter *letter,
                        tide_text text, const struct sending *sending, tide_error *err)
{
    struct tide_task *task = &work->task;
    tide_auto_buf raw = tide_buf_in(task->jobs->mem, TIDE_GMAIL_DRAFT_BYTES_MAX);
    tide_auto_buf id = tide_buf_in(task->jobs->mem, 256);
    char message_id[TIDE_ASSISTANT_EMAIL_BYTES + 2];
    const struct tide_reply reply = {.answered = letter,
                                     .self = tide_text_of(task->user.email),
                                     .message_id = tide_text_of(sending->reply.message_id),
                                     .body = text};
    (void)snprintf(message_id, sizeof message_id, "<%s>", sending->reply.message_id);
    TIDE_TRY(tide_reply_add(&reply, &raw, err));
    const struct tide_gmail_send send = {
        .message = tide_buf_text(&raw), .message_id = message_id, .again = sending->again};
    return tide_gmail_reply_send(task->gmail, task->job, &send, tide_text_of(task->thread_id), &id,
                                 err);
}

tide_status tide_agent_send(struct tide_agent_work *work, const struct tide_agent_call *call,
                            tide_buf *result, bool *failed_out, tide_error *err)
{
    struct tide_task *task = &work->task;
    tide_engine *engine = task->jobs->options.engine;
    struct sending sending = {.task = task, .reply = {.run = work->id, .call = call->number}};
    struct tide_letter letter;
    const char *why = NULL;
    tide_text text;
    bool good = false;
    if (!tide_agent_text(call, "text", TEXT_BYTES_MAX, &text, result, failed_out))
        return TIDE_OK;
    TIDE_TRY(tide_transact(engine, read_reply, &sending, err));
    if (sending.again && sending.reply.call != call->number) /* AGJ5 */
        return tide_agent_refuse("a reply was sent already, or may have been", result, failed_out);
    TIDE_TRY(answered(work, &letter, &good, result, failed_out, err));
    if (good)
        TIDE_TRY(may_send(work, &letter, &why, err));
    if (!good)
        return TIDE_OK;
    if (why != NULL)
        return tide_agent_refuse(why, result, failed_out);
    if (!sending.again) {
        const tide_text domain = tide_mailbox_domain(tide_text_of(task->user.email));
        (void)snprintf(sending.reply.message_id, sizeof sending.reply.message_id,
                       "tidemark.%" PRIx64 ".%" PRIx64 "@%.*s", work->id, work->begun_ms,
                       (int)domain.bytes, domain.data);
        TIDE_TRY(tide_transact(engine, write_reply, &sending, err));
    } else {
        TIDE_SEEN("assistant: a reply was perhaps sent before a crash");
    }
    const tide_status rc = post(work, &letter, text, &sending, err);
    const int class = (int)tide_status_class(rc);
    /* The server refused it.  Of a second try that proves nothing: it may be the search for the first
     * one that was refused, and the first one may have been sent (AGJ5). */
    if (!sending.again && (class == TIDE_CLASS_PERMANENT || class == TIDE_CLASS_GONE))
        TIDE_TRY(tide_transact(engine, drop_reply, &sending, NULL));
    TIDE_TRY(rc);
    work->sent = true;
    return done("sent", result);
}

/* ---- add_label ---- */

static bool is_ours(const struct tide_task *task, const char *id)
{
    for (unsigned i = 0; i < TIDE_ASSISTANT_LABELS; i++)
        if (strcmp(task->labels.ids[i], id) == 0)
            return true;
    return false;
}

/* The id of the user's label of that name (AGJ6), borrowed; NULL: there is none. */
static const char *label_of(const struct tide_task *task, const json_t *labels, tide_text name)
{
    size_t i;
    json_t *label;
    json_array_foreach(json_object_get(labels, "labels"), i, label)
    {
        const json_t *its = json_object_get(label, "name");
        const char *id = json_string_value(json_object_get(label, "id"));
        const char *type = json_string_value(json_object_get(label, "type"));
        if (id != NULL && type != NULL && strcmp(type, "user") == 0 && json_is_string(its) &&
            tide_text_equal((tide_text){json_string_value(its), json_string_length(its)}, name))
            return is_ours(task, id) ? NULL : id;
    }
    return NULL;
}

tide_status tide_agent_label(struct tide_agent_work *work, const struct tide_agent_call *call,
                             tide_buf *result, bool *failed_out, tide_error *err)
{
    struct tide_task *task = &work->task;
    json_auto_t *labels = NULL;
    tide_text name;
    if (!tide_agent_text(call, "label", LABEL_BYTES_MAX, &name, result, failed_out))
        return TIDE_OK;
    TIDE_TRY(tide_gmail_labels(task->gmail, task->job, &labels, err));
    const char *const add[] = {label_of(task, labels, name), NULL};
    if (add[0] == NULL)
        return tide_agent_refuse("the user has no such label", result, failed_out);
    const tide_status rc = tide_gmail_thread_modify(task->gmail, task->job,
                                                    tide_text_of(task->thread_id), add, NULL, err);
    if (rc == TIDE_GONE)
        return tide_agent_refuse("the message is gone", result, failed_out);
    TIDE_TRY(rc);
    return done("labeled", result);
}
