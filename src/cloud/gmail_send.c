/* gmail_send.c - sends a message once: mail about alerts outside of any job, replies in one. */
#include "cloud/gmail_drafts.h"
#include "cloud/gmail_methods.h"

#include "base/encode.h"

enum { MESSAGE_BYTES_MAX = 1 << 20, SEND_TIMEOUT_MS = 60000 };

/* Whether the mailbox has a message with this Message-ID. */
static tide_status find(tide_gmail *gmail, tide_job *job, const struct tide_gmail_send *send,
                        bool *found_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *value = NULL;
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_LIST,
                      "/gmail/v1/users/me/messages?maxResults=1&includeSpamTrash=true"
                      "&q=rfc822msgid%3A");
    tide_api_ask_value(&ask, tide_text_of(send->message_id));
    ask.call.cancel = send->cancel;
    ask.call.total_timeout_ms = SEND_TIMEOUT_MS;
    const tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        *found_out = json_array_size(json_object_get(value, "messages")) > 0;
    json_decref(value);
    tide_api_ask_done(&ask);
    return rc;
}

static tide_status body_of(const struct tide_gmail_send *send, tide_text thread_id, tide_buf *out)
{
    TIDE_TRY(tide_buf_add_text(out, "{\"raw\":\""));
    TIDE_TRY(tide_base64_add(out, send->message, tide_base64_url, false));
    TIDE_TRY(tide_buf_add_text(out, "\""));
    if (thread_id.bytes > 0) {
        TIDE_TRY(tide_buf_add_text(out, ",\"threadId\":"));
        TIDE_TRY(tide_json_escape(thread_id, out));
    }
    return tide_buf_add_text(out, "}");
}

static tide_status post(tide_gmail *gmail, tide_job *job, const struct tide_gmail_send *send,
                        tide_text thread_id, tide_buf *id_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *value = NULL;
    tide_buf body;
    tide_buf_init(&body, tide_api_mem(gmail), MESSAGE_BYTES_MAX);
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_SEND, "/gmail/v1/users/me/messages/send");
    tide_status rc = body_of(send, thread_id, &body);
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "messages.send: no room for the message");
    ask.call.body = tide_buf_text(&body);
    ask.call.cancel = send->cancel;
    ask.call.total_timeout_ms = SEND_TIMEOUT_MS;
    if (rc == TIDE_OK)
        rc = tide_api_ask_json(&ask, &value, err);
    const char *id = json_string_value(json_object_get(value, "id"));
    if (rc == TIDE_OK && id != NULL)
        (void)tide_buf_add_text(id_out, id);
    /* A server that fails, or whose answer is garbled, may have sent it. */
    if (rc == TIDE_SERVER || rc == TIDE_TIMEOUT) {
        rc = TIDE_UNKNOWN;
        if (err != NULL)
            err->status = rc;
    }
    json_decref(value);
    tide_api_ask_done(&ask);
    tide_buf_done(&body);
    return rc;
}

tide_status tide_gmail_send(tide_world *world, const char *endpoint, tide_tokens *tokens,
                            const struct tide_gmail_send *send, tide_mem *mem, tide_buf *id_out,
                            tide_error *err)
{
    const struct tide_api_options options = {
        .provider = &tide_gmail_api, .endpoint = endpoint, .tokens = tokens, .world = world};
    tide_gmail *gmail = NULL;
    bool found = false;
    tide_status rc = tide_api_open(&options, mem, &gmail, err);
    if (rc == TIDE_OK && send->again)
        rc = find(gmail, NULL, send, &found, err);
    if (rc == TIDE_OK && !found)
        rc = post(gmail, NULL, send, TIDE_TEXT_NONE, id_out, err);
    tide_gmail_close(gmail);
    return rc;
}

tide_status tide_gmail_reply_send(tide_gmail *gmail, tide_job *job,
                                  const struct tide_gmail_send *send, tide_text thread_id,
                                  tide_buf *id_out, tide_error *err)
{
    bool found = false;
    tide_status rc = send->again ? find(gmail, job, send, &found, err) : TIDE_OK;
    if (rc == TIDE_OK && !found)
        rc = post(gmail, job, send, thread_id, id_out, err);
    return rc;
}
