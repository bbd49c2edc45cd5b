#include "cloud/gmail_threads.h"

#include "base/check.h"
#include "cloud/gmail_answer.h"
#include "cloud/gmail_methods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_BYTES_MAX = 64 << 20,
    MESSAGE_BYTES_MAX = 32 << 20, /* of the JSON of one */
};

void tide_gmail_thread_init(struct tide_gmail_thread *thread, tide_mem *mem)
{
    *thread = (struct tide_gmail_thread){.mem = mem};
}

static void thread_clear(struct tide_gmail_thread *thread)
{
    for (size_t i = 0; i < thread->count; i++)
        tide_gmail_parts_done(&thread->messages[i]);
    thread->count = 0;
    thread->id[0] = thread->history_id[0] = '\0';
}

void tide_gmail_thread_done(struct tide_gmail_thread *thread)
{
    thread_clear(thread);
    tide_mem_free(thread->mem, thread->messages, thread->capacity * sizeof *thread->messages);
    tide_gmail_thread_init(thread, thread->mem);
}

/* ---- reading ---- */

/* A thread on its way. */
struct getting {
    struct tide_api_list list;
    struct tide_gmail_thread *thread;
    tide_job *job;
    tide_text id;
    tide_error err; /* of a message */
};

static tide_status on_message(void *arg, const json_t *element)
{
    struct getting *getting = arg;
    struct tide_gmail_thread *thread = getting->thread;
    if (thread->count == TIDE_GMAIL_IDS_MAX)
        return tide_error_set(&getting->err, TIDE_FULL, "the thread has more than %d messages",
                              TIDE_GMAIL_IDS_MAX);
    if (!TIDE_GROW_IN(thread->mem, thread->messages, thread->capacity, thread->count + 1,
                      TIDE_GMAIL_IDS_MAX))
        return tide_error_set(&getting->err, TIDE_NO_MEMORY, "no memory for a thread");
    struct tide_gmail_parts *parts = &thread->messages[thread->count];
    tide_gmail_parts_init(parts, thread->mem);
    TIDE_TRY(tide_gmail_parts_read(element, parts, &getting->err));
    thread->count++;
    if (parts->message.thread_id.bytes > 0 &&
        !tide_text_equal(parts->message.thread_id, getting->id)) /* GTH1 */
        return tide_error_set(&getting->err, TIDE_SERVER, "a message is of thread \"%.60s\"",
                              parts->message.thread_id.data);
    return TIDE_OK;
}

static void on_restart(void *arg)
{
    struct getting *getting = arg;
    tide_api_list_restart(&getting->list);
    thread_clear(getting->thread);
    getting->err = (tide_error){TIDE_OK, 0, ""};
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct getting *getting = arg;
    tide_job_beat(getting->job, 0);
    return tide_api_list_write(&getting->list, bytes, count);
}

static int by_date(const void *a, const void *b)
{
    const struct tide_gmail_parts *one = a, *other = b;
    const int64_t x = one->message.internal_ms, y = other->message.internal_ms;
    return x < y ? -1 : x > y;
}

/* GTH2.  The answers of Gmail are sorted; an insertion sort keeps equal ones as they are. */
static void sort(struct tide_gmail_thread *thread)
{
    for (size_t i = 1; i < thread->count; i++) {
        struct tide_gmail_parts moved = thread->messages[i];
        size_t to = i;
        for (; to > 0 && by_date(&thread->messages[to - 1], &moved) > 0; to--)
            thread->messages[to] = thread->messages[to - 1];
        thread->messages[to] = moved;
    }
}

static tide_status rest_read(struct getting *getting, tide_error *err)
{
    struct tide_gmail_thread *thread = getting->thread;
    json_auto_t *rest = NULL;
    tide_text id, history_id = TIDE_TEXT("");
    TIDE_TRY(tide_api_list_end(&getting->list, &rest, err));
    TIDE_TRY(tide_gmail_answer_id(rest, &id, err));
    TIDE_TRY(tide_gmail_field_text(rest, "historyId", &history_id, err));
    if (!tide_text_equal(id, getting->id))
        return tide_error_set(err, TIDE_SERVER, "the answer is about thread \"%.60s\"", id.data);
    if (id.bytes >= sizeof thread->id || history_id.bytes >= sizeof thread->history_id)
        return tide_error_set(err, TIDE_SERVER, "an id of the answer is too long");
    (void)snprintf(thread->id, sizeof thread->id, "%s", id.data);
    (void)snprintf(thread->history_id, sizeof thread->history_id, "%s", history_id.data);
    sort(thread);
    return TIDE_OK;
}

/* Sends it and takes the thread; ends the ask. */
static tide_status thread_get(struct tide_api_ask *ask, tide_text id,
                              struct tide_gmail_thread *thread, tide_error *err)
{
    struct getting getting = {.thread = thread, .job = ask->job, .id = id};
    thread_clear(thread);
    tide_api_list_init(&getting.list, "messages", MESSAGE_BYTES_MAX, on_message, &getting,
                       tide_api_mem(ask->api));
    getting.list.optional = true; /* an empty list is absent */
    ask->call.sink = on_bytes;
    ask->call.restart = on_restart;
    ask->call.sink_arg = &getting;
    ask->call.answer_bytes_max = ANSWER_BYTES_MAX;
    tide_status rc = tide_api_ask_send(ask, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(ask, rest_read(&getting, err), err);
    else if (getting.err.status == rc && err != NULL)
        *err = getting.err; /* which field of which message */
    if (rc == TIDE_OK && thread->count == 0)
        rc = tide_error_set(err, TIDE_GONE, "%s: the thread has no messages",
                            tide_api_ask_name(ask));
    if (rc != TIDE_OK)
        tide_gmail_thread_done(thread);
    tide_api_list_done(&getting.list);
    tide_api_ask_done(ask);
    return rc;
}

static void ask_thread(struct tide_api_ask *ask, tide_gmail *gmail, tide_job *job,
                       enum tide_gmail_method method, tide_text id, const char *rest)
{
    tide_api_ask_init(ask, gmail, job, method, "/gmail/v1/users/me/threads/");
    tide_api_ask_value(ask, id);
    tide_api_ask_add(ask, rest);
}

#define MESSAGE_FIELDS "id,threadId,labelIds,snippet,historyId,internalDate,sizeEstimate"

tide_status tide_gmail_thread_get(tide_gmail *gmail, tide_job *job, tide_text id,
                                  struct tide_gmail_thread *thread_out, tide_error *err)
{
    struct tide_api_ask ask;
    ask_thread(&ask, gmail, job, TIDE_GMAIL_THREAD_GET, id,
               "?format=full&prettyPrint=false&fields=id,historyId,messages(" MESSAGE_FIELDS
               ",payload)");
    return thread_get(&ask, id, thread_out, err);
}

tide_status tide_gmail_thread_look(tide_gmail *gmail, tide_job *job, tide_text id,
                                   const char *const *headers, struct tide_gmail_thread *thread_out,
                                   tide_error *err)
{
    struct tide_api_ask ask;
    ask_thread(
        &ask, gmail, job, TIDE_GMAIL_THREAD_LOOK, id,
        headers == NULL
            ? "?format=minimal&prettyPrint=false&fields=id,historyId,messages(" MESSAGE_FIELDS ")"
            : "?format=metadata&prettyPrint=false&fields=id,historyId,messages(" MESSAGE_FIELDS
              ",payload(headers))");
    for (size_t i = 0; headers != NULL && headers[i] != NULL; i++) {
        tide_api_ask_add(&ask, "&metadataHeaders=");
        tide_api_ask_value(&ask, tide_text_of(headers[i]));
    }
    return thread_get(&ask, id, thread_out, err);
}

/* ---- what a thread says ---- */

static bool is_letter(const struct tide_gmail_parts *parts)
{
    return !tide_gmail_parts_labeled(parts, "DRAFT") && !tide_gmail_parts_labeled(parts, "TRASH");
}

const struct tide_gmail_parts *tide_gmail_thread_last(const struct tide_gmail_thread *thread)
{
    for (size_t i = thread->count; i > 0; i--)
        if (is_letter(&thread->messages[i - 1]))
            return &thread->messages[i - 1];
    return NULL;
}

bool tide_gmail_thread_labeled(const struct tide_gmail_thread *thread, const char *label)
{
    for (size_t i = 0; i < thread->count; i++)
        if (tide_gmail_parts_labeled(&thread->messages[i], label))
            return true;
    return false;
}

size_t tide_gmail_thread_letters(const struct tide_gmail_thread *thread)
{
    size_t count = 0;
    for (size_t i = 0; i < thread->count; i++)
        count += is_letter(&thread->messages[i]);
    return count;
}

/* ---- changing ---- */

tide_status tide_gmail_thread_modify(tide_gmail *gmail, tide_job *job, tide_text id,
                                     const char *const *add, const char *const *take,
                                     tide_error *err)
{
    tide_auto_buf body = tide_buf_in(tide_api_mem(gmail), TIDE_API_SMALL_BYTES_MAX);
    TIDE_ASSERT(id.bytes > 0);
    TIDE_TRY(tide_gmail_change_body(NULL, 0, add, take, &body, err));
    struct tide_api_ask ask;
    ask_thread(&ask, gmail, job, TIDE_GMAIL_THREAD_MODIFY, id,
               "/modify?prettyPrint=false&fields=id");
    ask.call.body = tide_buf_text(&body);
    const tide_status rc = tide_api_ask_send(&ask, err);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_gmail_trash(tide_gmail *gmail, tide_job *job, tide_text id, tide_error *err)
{
    struct tide_api_ask ask;
    TIDE_ASSERT(id.bytes > 0);
    tide_gmail_ask_message(&ask, gmail, job, TIDE_GMAIL_TRASH, id,
                           "/trash?prettyPrint=false&fields=id");
    const tide_status rc = tide_api_ask_send(&ask, err);
    tide_api_ask_done(&ask);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}
