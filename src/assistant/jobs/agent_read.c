/* agent_read.c - tools that read the user's mail: search_archive, read_thread. */
#include "assistant/jobs/agent.h"

#include "assistant/text/digest.h"
#include "base/check.h"
#include "base/encode.h"

#include <string.h>

enum {
    QUERY_BYTES_MAX = 500,
    SEARCH_MAX = 10,      /* messages */
    THREAD_CHARS = 12000, /* of a thread; more would be cut in the middle of its JSON */
    SNIPPET_BYTES = 1000,
};

/* ---- search_archive ---- */

static tide_text text_at(const json_t *object, const char *key)
{
    const json_t *text = json_object_get(object, key);
    return (tide_text){json_is_string(text) ? json_string_value(text) : "",
                       json_string_length(text)};
}

static void found_add(tide_json *messages, const struct tide_gmail_parts *parts)
{
    tide_json one;
    tide_json_object(&one);
    tide_json_set_text(&one, "thread", parts->message.thread_id);
    tide_json_set_text(&one, "from",
                       tide_utf8_cut(tide_gmail_parts_header(parts, "From"), SNIPPET_BYTES));
    tide_json_set_text(&one, "subject",
                       tide_utf8_cut(tide_gmail_parts_header(parts, "Subject"), SNIPPET_BYTES));
    tide_json_set_text(&one, "date",
                       tide_utf8_cut(tide_gmail_parts_header(parts, "Date"), SNIPPET_BYTES));
    tide_json_set_text(&one, "snippet", tide_utf8_cut(parts->snippet, SNIPPET_BYTES));
    tide_json_append(messages, &one);
}

/* Adds the message, unless it is gone, deleted, or a draft. */
static tide_status look(struct tide_agent_work *work, tide_text thread_id, tide_text id,
                        tide_json *messages, tide_error *err)
{
    static const char *const headers[] = {"From", "Subject", "Date", NULL};
    struct tide_task *task = &work->task;
    struct tide_gmail_thread thread;
    tide_gmail_thread_init(&thread, task->jobs->mem);
    const tide_status rc =
        tide_gmail_thread_look(task->gmail, task->job, thread_id, headers, &thread, err);
    for (size_t i = 0; rc == TIDE_OK && i < thread.count; i++) {
        const struct tide_gmail_parts *parts = &thread.messages[i];
        if (tide_text_equal(parts->message.id, id) && !tide_gmail_parts_labeled(parts, "TRASH") &&
            !tide_gmail_parts_labeled(parts, "SPAM") && !tide_gmail_parts_labeled(parts, "DRAFT"))
            found_add(messages, parts);
    }
    tide_gmail_thread_done(&thread);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}

tide_status tide_agent_search(struct tide_agent_work *work, const struct tide_agent_call *call,
                              tide_buf *result, bool *failed_out, tide_error *err)
{
    struct tide_task *task = &work->task;
    struct tide_gmail_page page = {.value = NULL};
    tide_text query;
    if (!tide_agent_text(call, "query", QUERY_BYTES_MAX, &query, result, failed_out))
        return TIDE_OK;
    tide_status rc =
        tide_gmail_list(task->gmail, task->job, query.data, TIDE_TEXT_NONE, &page, err);
    tide_auto_json json;
    tide_json messages;
    tide_json_object(&json);
    tide_json_array(&messages);
    for (size_t i = 0; rc == TIDE_OK && i < json_array_size(page.ids) && i < SEARCH_MAX; i++) {
        const json_t *found = json_array_get(page.ids, i);
        rc = look(work, text_at(found, "threadId"), text_at(found, "id"), &messages, err);
    }
    tide_json_set(&json, "messages", &messages);
    tide_json_set_bool(&json, "more", json_array_size(page.ids) > SEARCH_MAX);
    tide_gmail_page_done(&page);
    return rc == TIDE_OK ? tide_json_line(&json, result) : rc;
}

/* ---- read_thread ---- */

/* It is a part of a URL: nothing but what ids are made of. */
static bool is_id(tide_text id)
{
    for (size_t i = 0; i < id.bytes; i++)
        if (!tide_is_plain(id.data[i], "-_"))
            return false;
    return id.bytes > 0 && id.bytes < TIDE_ASSISTANT_ID_BYTES;
}

tide_status tide_agent_read(struct tide_agent_work *work, const struct tide_agent_call *call,
                            tide_buf *result, bool *failed_out, tide_error *err)
{
    struct tide_task *task = &work->task;
    const json_t *named = json_object_get(call->arguments, "thread");
    tide_text id = tide_text_of(task->thread_id);
    if (json_is_string(named) && json_string_length(named) > 0)
        id = (tide_text){json_string_value(named), json_string_length(named)};
    else if (named != NULL && !json_is_null(named) && !json_is_string(named))
        return tide_agent_refuse("\"thread\" must be a text", result, failed_out);
    if (!is_id(id))
        return tide_agent_refuse("there is no such thread", result, failed_out);
    struct tide_gmail_thread thread;
    struct tide_letter *letters = NULL;
    size_t count = 0;
    tide_auto_json json = {NULL, false};
    tide_gmail_thread_init(&thread, task->jobs->mem);
    tide_status rc = tide_gmail_thread_get(task->gmail, task->job, id, &thread, err);
    if (rc == TIDE_OK)
        rc = tide_task_letters(task, &thread, NULL, &letters, &count, err);
    if (rc == TIDE_OK)
        rc = tide_digest_thread(letters, count, THREAD_CHARS, &json);
    if (rc == TIDE_OK)
        rc = tide_json_line(&json, result);
    tide_gmail_thread_done(&thread);
    return rc == TIDE_GONE ? tide_agent_refuse("there is no such thread", result, failed_out) : rc;
}
