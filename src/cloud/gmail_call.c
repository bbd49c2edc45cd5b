#include "cloud/gmail_call.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/limits.h"
#include "cloud/gmail_answer.h"
#include "net/judge_google.h"

#include <string.h>

static_assert((int)TIDE_GMAIL_METHODS <= (int)TIDE_METHODS_MAX,
              "every method has a latency of its own");

/* Names as in Google's discovery document; units since May 2026. */
static const struct tide_api_method methods[TIDE_GMAIL_METHODS] = {
    [TIDE_GMAIL_PROFILE] = {"users.getProfile", "GET", 1, true},
    [TIDE_GMAIL_LIST] = {"messages.list", "GET", 5, true},
    [TIDE_GMAIL_GET] = {"messages.get", "GET", TIDE_GMAIL_GET_UNITS, true},
    [TIDE_GMAIL_GET_MINIMAL] = {"messages.get", "GET", TIDE_GMAIL_GET_UNITS, true},
    [TIDE_GMAIL_HISTORY] = {"history.list", "GET", 2, true},
    [TIDE_GMAIL_LABELS] = {"labels.list", "GET", 1, true},
    [TIDE_GMAIL_LABEL_CREATE] = {"labels.create", "POST", 5, false},
    [TIDE_GMAIL_MODIFY] = {"messages.modify", "POST", 5, true},
    [TIDE_GMAIL_BATCH_MODIFY] = {"messages.batchModify", "POST", 50, true},
    [TIDE_GMAIL_DELETE] = {"messages.delete", "DELETE", 10, true},
    [TIDE_GMAIL_BATCH_DELETE] = {"messages.batchDelete", "POST", 50, true},
    [TIDE_GMAIL_INSERT] = {"messages.insert", "POST", 25, false},
};

static const struct tide_provider_net gmail_api = {
    .name = "Gmail API",
    .url = "https://gmail.googleapis.com",
    .judge = tide_google_judge,
    .methods = methods,
    .methods_count = TIDE_GMAIL_METHODS,
};

/* ---- open and close ---- */

tide_status tide_gmail_open_with(struct tide_api_options options, tide_mem *mem,
                                 tide_gmail **gmail_out, tide_error *err)
{
    TIDE_ASSERT(mem != NULL);
    tide_api *api = NULL;
    options.provider = &gmail_api;
    const tide_status rc = tide_api_open(&options, mem, &api, err);
    if (rc != TIDE_OK)
        return rc;
    tide_gmail *gmail = tide_mem_new(mem, sizeof *gmail);
    if (gmail == NULL) {
        tide_api_close(api);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a Gmail account");
    }
    gmail->mem = mem;
    gmail->api = api;
    *gmail_out = gmail;
    return TIDE_OK;
}

tide_status tide_gmail_open(const char *endpoint, tide_tokens *tokens, tide_mem *mem,
                            tide_gmail **gmail_out, tide_error *err)
{
    return tide_gmail_open_with((struct tide_api_options){.endpoint = endpoint, .tokens = tokens},
                                mem, gmail_out, err);
}

void tide_gmail_close(tide_gmail *gmail)
{
    if (gmail == NULL)
        return;
    tide_api_close(gmail->api);
    tide_mem_free(gmail->mem, gmail, sizeof *gmail);
}

/* ---- a request ---- */

void tide_gmail_ask_init(struct tide_gmail_ask *ask, tide_gmail *gmail, tide_job *job,
                         enum tide_gmail_method method, const char *path)
{
    memset(ask, 0, sizeof *ask);
    ask->gmail = gmail;
    ask->job = job;
    ask->call.method = method;
    ask->call.answer_bytes_max = TIDE_GMAIL_SMALL_BYTES_MAX;
    tide_buf_init(&ask->path, gmail->mem, TIDE_URL_BYTES_MAX);
    tide_response_init(&ask->response, gmail->mem);
    tide_gmail_ask_add(ask, path);
}

void tide_gmail_ask_message(struct tide_gmail_ask *ask, tide_gmail *gmail, tide_job *job,
                            enum tide_gmail_method method, tide_text id, const char *rest)
{
    tide_gmail_ask_init(ask, gmail, job, method, "/gmail/v1/users/me/messages/");
    tide_gmail_ask_value(ask, id);
    tide_gmail_ask_add(ask, rest);
}

void tide_gmail_ask_done(struct tide_gmail_ask *ask)
{
    tide_response_done(&ask->response);
    tide_buf_done(&ask->path);
}

void tide_gmail_ask_add(struct tide_gmail_ask *ask, const char *text)
{
    if (ask->failed == TIDE_OK)
        ask->failed = tide_buf_add_text(&ask->path, text);
}

void tide_gmail_ask_value(struct tide_gmail_ask *ask, tide_text value)
{
    if (ask->failed == TIDE_OK)
        ask->failed = tide_percent_add(&ask->path, value, TIDE_URL_UNRESERVED);
}

const char *tide_gmail_ask_name(const struct tide_gmail_ask *ask)
{
    return methods[ask->call.method].name;
}

tide_status tide_gmail_ask_send(struct tide_gmail_ask *ask, tide_error *err)
{
    if (ask->failed != TIDE_OK)
        return tide_error_set(err, ask->failed, "%s: the request is too long to be sent",
                              tide_gmail_ask_name(ask));
    ask->call.path = tide_buf_cstr(&ask->path);
    return tide_api_call(ask->gmail->api, ask->job, &ask->call, &ask->response, err);
}

tide_status tide_gmail_ask_named(const struct tide_gmail_ask *ask, tide_status rc, tide_error *err)
{
    if (rc == TIDE_OK || err == NULL)
        return rc;
    const tide_error inner = *err;
    (void)tide_error_set(err, rc, "%s: %.340s", tide_gmail_ask_name(ask), inner.text);
    err->code = inner.code != 0 ? inner.code : ask->response.http;
    return rc;
}

tide_status tide_gmail_ask_json(struct tide_gmail_ask *ask, json_t **value_out, tide_error *err)
{
    tide_status rc = tide_gmail_ask_send(ask, err);
    if (rc == TIDE_OK)
        rc = tide_gmail_ask_named(
            ask, tide_gmail_answer_parse(tide_buf_text(&ask->response.body), value_out, err), err);
    return rc;
}
