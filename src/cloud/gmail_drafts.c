#include "cloud/gmail_drafts.h"

#include "base/check.h"
#include "base/encode.h"
#include "cloud/gmail_answer.h"
#include "cloud/gmail_methods.h"

#include <stdio.h>
#include <string.h>

enum { LIST_BYTES_MAX = 4 << 20 };

/* ---- making ---- */

/* {"message":{"raw":"...","threadId":"..."}} */
static tide_status body_of(tide_text raw, tide_text thread_id, tide_buf *out)
{
    TIDE_TRY(tide_buf_add_text(out, "{\"message\":{\"raw\":\""));
    TIDE_TRY(tide_base64_add(out, raw, tide_base64_url, false));
    TIDE_TRY(tide_buf_add_text(out, "\""));
    if (thread_id.bytes > 0) {
        TIDE_TRY(tide_buf_add_text(out, ",\"threadId\":"));
        TIDE_TRY(tide_json_escape(thread_id, out));
    }
    return tide_buf_add_text(out, "}}");
}

static bool copy(const json_t *object, const char *key, char *out, size_t room)
{
    const char *text = json_string_value(json_object_get(object, key));
    return (size_t)snprintf(out, room, "%s", text == NULL ? "" : text) < room;
}

bool tide_gmail_draft_read(const json_t *value, struct tide_gmail_draft *draft)
{
    const json_t *message = json_object_get(value, "message");
    return copy(value, "id", draft->id, sizeof draft->id) &&
           copy(message, "id", draft->message_id, sizeof draft->message_id) &&
           copy(message, "threadId", draft->thread_id, sizeof draft->thread_id) &&
           draft->id[0] != '\0' && draft->message_id[0] != '\0';
}

/* drafts.create and drafts.update. */
static tide_status put_draft(struct tide_api_ask *ask, tide_gmail *gmail, tide_text raw,
                             tide_text thread_id, struct tide_gmail_draft *draft_out,
                             tide_error *err)
{
    struct tide_gmail_draft draft;
    json_auto_t *value = NULL;
    tide_auto_buf body = tide_buf_in(tide_api_mem(gmail), 2 * TIDE_GMAIL_DRAFT_BYTES_MAX);
    tide_auto_buf id = tide_buf_in(tide_api_mem(gmail), sizeof draft.id - 1);
    if (raw.bytes > TIDE_GMAIL_DRAFT_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "a draft of %zu bytes; %d are allowed", raw.bytes,
                              TIDE_GMAIL_DRAFT_BYTES_MAX);
    tide_status rc = body_of(raw, thread_id, &body);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "%s: no room for the request", tide_api_ask_name(ask));
    ask->call.body = tide_buf_text(&body);
    rc = tide_api_ask_json(ask, &value, err);
    rc = tide_gmail_made(ask, value, &id, rc, err);
    if (rc == TIDE_OK && !tide_gmail_draft_read(value, &draft))
        rc = tide_error_set(err, TIDE_UNKNOWN, "%s: the answer does not name the draft",
                            tide_api_ask_name(ask));
    if (rc == TIDE_OK)
        *draft_out = draft;
    return rc;
}

#define DRAFT_FIELDS "?prettyPrint=false&fields=id,message(id,threadId)"

tide_status tide_gmail_draft_create(tide_gmail *gmail, tide_job *job, tide_text raw,
                                    tide_text thread_id, struct tide_gmail_draft *draft_out,
                                    tide_error *err)
{
    struct tide_api_ask ask;
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_DRAFT_CREATE,
                      "/gmail/v1/users/me/drafts" DRAFT_FIELDS);
    const tide_status rc = put_draft(&ask, gmail, raw, thread_id, draft_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

/* ---- finding ---- */

void tide_gmail_drafts_done(struct tide_gmail_drafts *page)
{
    json_decref(page->value);
    *page = (struct tide_gmail_drafts){.value = NULL};
}

/* GML3.  The struct owns `value` on success. */
static tide_status page_read(json_t *value, struct tide_gmail_drafts *page_out, tide_error *err)
{
    struct tide_gmail_drafts page = {.value = value, .next = TIDE_TEXT("")};
    struct tide_gmail_draft draft;
    TIDE_TRY(tide_gmail_field_array(value, "drafts", &page.drafts, err));
    for (size_t i = 0; i < json_array_size(page.drafts); i++)
        if (!tide_gmail_draft_read(json_array_get(page.drafts, i), &draft))
            return tide_error_set(err, TIDE_SERVER, "an entry of \"drafts\" is not a draft");
    TIDE_TRY(tide_gmail_field_text(value, "nextPageToken", &page.next, err));
    if (json_array_size(page.drafts) == 0)
        page.drafts = NULL;
    *page_out = page;
    return TIDE_OK;
}

tide_status tide_gmail_drafts_list(tide_gmail *gmail, tide_job *job, tide_text token,
                                   struct tide_gmail_drafts *page_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *value = NULL;
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_DRAFT_LIST,
                      "/gmail/v1/users/me/drafts?prettyPrint=false&maxResults=500"
                      "&fields=drafts(id,message(id,threadId)),nextPageToken");
    ask.call.answer_bytes_max = LIST_BYTES_MAX;
    if (token.bytes > 0) {
        tide_api_ask_add(&ask, "&pageToken=");
        tide_api_ask_value(&ask, token);
    }
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, page_read(value, page_out, err), err);
    if (rc != TIDE_OK)
        json_decref(value);
    tide_api_ask_done(&ask);
    return rc;
}

static bool page_find(const struct tide_gmail_drafts *page, tide_text message_id,
                      struct tide_gmail_draft *draft_out)
{
    for (size_t i = 0; i < json_array_size(page->drafts); i++) {
        struct tide_gmail_draft draft;
        if (tide_gmail_draft_read(json_array_get(page->drafts, i), &draft) &&
            tide_text_equal(tide_text_of(draft.message_id), message_id)) {
            *draft_out = draft;
            return true;
        }
    }
    return false;
}

tide_status tide_gmail_draft_of(tide_gmail *gmail, tide_job *job, tide_text message_id,
                                struct tide_gmail_draft *draft_out, tide_error *err)
{
    struct tide_gmail_drafts page = {.value = NULL};
    tide_status rc = TIDE_OK;
    bool found = false;
    for (unsigned i = 0; rc == TIDE_OK && !found && i < TIDE_GMAIL_DRAFT_PAGES_MAX; i++) {
        struct tide_gmail_drafts next;
        rc = tide_gmail_drafts_list(gmail, job, i == 0 ? TIDE_TEXT("") : page.next, &next, err);
        if (rc != TIDE_OK)
            break;
        tide_gmail_drafts_done(&page);
        page = next;
        found = page_find(&page, message_id, draft_out);
        if (page.next.bytes == 0)
            break;
    }
    const bool all = page.next.bytes == 0;
    tide_gmail_drafts_done(&page);
    if (rc != TIDE_OK || found)
        return rc;
    return all ? tide_error_set(err, TIDE_NOT_FOUND, "no draft has the message %.*s",
                                (int)message_id.bytes, message_id.data)
               : tide_error_set(err, TIDE_FULL, "the mailbox has more than %d drafts",
                                500 * TIDE_GMAIL_DRAFT_PAGES_MAX);
}

tide_status tide_gmail_drafts_with_id(tide_gmail *gmail, tide_job *job, const char *message_id,
                                      struct tide_gmail_draft *drafts_out, size_t count_max,
                                      size_t *count_out, tide_error *err)
{
    struct tide_api_ask ask;
    struct tide_gmail_drafts page = {.value = NULL};
    json_t *value = NULL;
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_DRAFT_LIST,
                      "/gmail/v1/users/me/drafts?prettyPrint=false&maxResults=100"
                      "&fields=drafts(id,message(id,threadId)),nextPageToken&q=rfc822msgid%3A");
    tide_api_ask_value(&ask, tide_text_of(message_id));
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, page_read(value, &page, err), err);
    if (rc != TIDE_OK)
        json_decref(value);
    *count_out = 0;
    for (size_t i = 0; rc == TIDE_OK && i < json_array_size(page.drafts) && i < count_max; i++)
        if (tide_gmail_draft_read(json_array_get(page.drafts, i), &drafts_out[*count_out]))
            (*count_out)++;
    tide_gmail_drafts_done(&page);
    tide_api_ask_done(&ask);
    return rc;
}

/* The message of the thread with that token; NULL: none (GDR1). */
static const struct tide_gmail_parts *tagged(const struct tide_gmail_thread *thread,
                                             tide_text token)
{
    for (size_t i = thread->count; i > 0; i--) {
        const struct tide_gmail_parts *parts = &thread->messages[i - 1];
        if (tide_gmail_parts_labeled(parts, "DRAFT") && !tide_gmail_parts_labeled(parts, "TRASH") &&
            tide_text_equal(tide_gmail_parts_header(parts, TIDE_GMAIL_DRAFT_HEADER), token))
            return parts;
    }
    return NULL;
}

tide_status tide_gmail_draft_find(tide_gmail *gmail, tide_job *job, tide_text thread_id,
                                  tide_text token, struct tide_gmail_draft *draft_out,
                                  tide_error *err)
{
    static const char *const headers[] = {TIDE_GMAIL_DRAFT_HEADER, NULL};
    struct tide_gmail_thread thread;
    TIDE_ASSERT(token.bytes > 0);
    tide_gmail_thread_init(&thread, tide_api_mem(gmail));
    tide_status rc = tide_gmail_thread_look(gmail, job, thread_id, headers, &thread, err);
    const struct tide_gmail_parts *parts = rc == TIDE_OK ? tagged(&thread, token) : NULL;
    if (rc == TIDE_OK && parts != NULL)
        rc = tide_gmail_draft_of(gmail, job, parts->message.id, draft_out, err);
    else if (rc == TIDE_OK || rc == TIDE_GONE)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "no draft of the thread has the token %.*s",
                            (int)token.bytes, token.data);
    tide_gmail_thread_done(&thread);
    return rc;
}

/* ---- one draft ---- */

static void ask_draft(struct tide_api_ask *ask, tide_gmail *gmail, tide_job *job,
                      enum tide_gmail_method method, tide_text id, const char *rest)
{
    tide_api_ask_init(ask, gmail, job, method, "/gmail/v1/users/me/drafts/");
    tide_api_ask_value(ask, id);
    tide_api_ask_add(ask, rest);
}

/* GML4: the answer is about the draft that was asked for. */
static tide_status draft_take(const json_t *value, tide_text id, struct tide_gmail_parts *parts_out,
                              tide_error *err)
{
    tide_text seen;
    const json_t *message = NULL;
    TIDE_TRY(tide_gmail_answer_id(value, &seen, err));
    if (!tide_text_equal(seen, id))
        return tide_error_set(err, TIDE_SERVER, "the answer is about draft \"%.60s\"", seen.data);
    TIDE_TRY(tide_gmail_field_object(value, "message", &message, err));
    if (message == NULL)
        return tide_error_set(err, TIDE_SERVER, "the draft has no message");
    TIDE_TRY(tide_gmail_parts_read(message, parts_out, err));
    if (!tide_gmail_parts_labeled(parts_out, "TRASH"))
        return TIDE_OK;
    tide_gmail_parts_done(parts_out);
    return tide_error_set(err, TIDE_GONE, "the draft is in the trash");
}

tide_status tide_gmail_draft_get(tide_gmail *gmail, tide_job *job, tide_text id,
                                 struct tide_gmail_parts *parts_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_auto_t *value = NULL;
    TIDE_ASSERT(id.bytes > 0);
    tide_gmail_parts_done(parts_out);
    ask_draft(&ask, gmail, job, TIDE_GMAIL_DRAFT_GET, id, "?format=full&prettyPrint=false");
    ask.call.answer_bytes_max = 4 * (uint64_t)TIDE_GMAIL_DRAFT_BYTES_MAX;
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, draft_take(value, id, parts_out, err), err);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_gmail_draft_delete(tide_gmail *gmail, tide_job *job, tide_text id, tide_error *err)
{
    struct tide_api_ask ask;
    TIDE_ASSERT(id.bytes > 0); /* or it would mean the list */
    ask_draft(&ask, gmail, job, TIDE_GMAIL_DRAFT_DELETE, id, "?prettyPrint=false");
    const tide_status rc = tide_api_ask_send(&ask, err);
    tide_api_ask_done(&ask);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}

tide_status tide_gmail_draft_update(tide_gmail *gmail, tide_job *job, tide_text id, tide_text raw,
                                    tide_text thread_id, struct tide_gmail_draft *draft_out,
                                    tide_error *err)
{
    struct tide_api_ask ask;
    TIDE_ASSERT(id.bytes > 0);
    ask_draft(&ask, gmail, job, TIDE_GMAIL_DRAFT_UPDATE, id, DRAFT_FIELDS);
    const tide_status rc = put_draft(&ask, gmail, raw, thread_id, draft_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

/* ---- sending ---- */

static void sent_read(const json_t *value, struct tide_gmail_sent *sent)
{
    *sent = (struct tide_gmail_sent){.message_id = ""};
    if (!copy(value, "id", sent->message_id, sizeof sent->message_id))
        sent->message_id[0] = '\0';
    if (!copy(value, "threadId", sent->thread_id, sizeof sent->thread_id))
        sent->thread_id[0] = '\0';
}

tide_status tide_gmail_draft_send(tide_gmail *gmail, tide_job *job, tide_text id,
                                  struct tide_gmail_sent *sent_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_auto_t *value = NULL;
    tide_auto_buf body = tide_buf_in(tide_api_mem(gmail), 1000);
    TIDE_ASSERT(id.bytes > 0);
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_DRAFT_SEND,
                      "/gmail/v1/users/me/drafts/send?prettyPrint=false&fields=id,threadId");
    if (ask.failed == TIDE_OK)
        ask.failed = tide_buf_add_text(&body, "{\"id\":");
    if (ask.failed == TIDE_OK)
        ask.failed = tide_json_escape(id, &body);
    if (ask.failed == TIDE_OK)
        ask.failed = tide_buf_add_text(&body, "}");
    ask.call.body = tide_buf_text(&body);
    tide_status rc = tide_api_ask_send(&ask, err);
    if (rc == TIDE_OK) {
        /* It is sent, whatever the answer looks like. */
        (void)tide_api_object(tide_buf_text(&ask.response.body), &value, NULL);
        sent_read(value, sent_out);
    }
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_gmail_sent_find(tide_gmail *gmail, tide_job *job, const char *message_id,
                                 struct tide_gmail_sent *sent_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_auto_t *value = NULL;
    const json_t *messages = NULL;
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_LIST,
                      "/gmail/v1/users/me/messages?prettyPrint=false&maxResults=1"
                      "&includeSpamTrash=true&q=in%3Asent%20rfc822msgid%3A");
    tide_api_ask_value(&ask, tide_text_of(message_id));
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, tide_gmail_field_array(value, "messages", &messages, err),
                                err);
    if (rc == TIDE_OK && json_array_size(messages) == 0)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "no sent message has the id %s", message_id);
    if (rc == TIDE_OK)
        sent_read(json_array_get(messages, 0), sent_out);
    tide_api_ask_done(&ask);
    return rc;
}
