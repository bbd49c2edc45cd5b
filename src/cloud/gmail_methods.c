#include "cloud/gmail_methods.h"

#include "base/limits.h"
#include "net/judge_google.h"

#include <assert.h>

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
    [TIDE_GMAIL_SEND] = {"messages.send", "POST", 100, false},
    [TIDE_GMAIL_WATCH] = {"users.watch", "POST", 100, true},
    [TIDE_GMAIL_THREAD_GET] = {"threads.get", "GET", 40, true},
    [TIDE_GMAIL_THREAD_LOOK] = {"threads.get", "GET", 40, true},
    [TIDE_GMAIL_THREAD_MODIFY] = {"threads.modify", "POST", 10, true},
    [TIDE_GMAIL_TRASH] = {"messages.trash", "POST", 20, true},
    [TIDE_GMAIL_DRAFT_CREATE] = {"drafts.create", "POST", 10, false},
    [TIDE_GMAIL_DRAFT_LIST] = {"drafts.list", "GET", 5, true},
    [TIDE_GMAIL_DRAFT_GET] = {"drafts.get", "GET", 20, true},
    [TIDE_GMAIL_DRAFT_DELETE] = {"drafts.delete", "DELETE", 10, true},
    [TIDE_GMAIL_LABEL_GET] = {"labels.get", "GET", 1, true},
    [TIDE_GMAIL_DRAFT_UPDATE] = {"drafts.update", "PUT", 15, true},
    [TIDE_GMAIL_DRAFT_SEND] = {"drafts.send", "POST", 100, false},
    [TIDE_GMAIL_UPLOAD_CREATE] = {"drafts.create", "POST", 10, true},
    [TIDE_GMAIL_UPLOAD_UPDATE] = {"drafts.update", "PUT", 15, true},
    [TIDE_GMAIL_UPLOAD] = {"upload", "PUT", 1, true},
};

const struct tide_provider_net tide_gmail_api = {
    .name = "Gmail API",
    .url = "https://gmail.googleapis.com",
    .judge = tide_google_judge,
    .methods = methods,
    .methods_count = TIDE_GMAIL_METHODS,
};

const char *tide_gmail_method_name(uint32_t method)
{
    return method < TIDE_GMAIL_METHODS ? methods[method].name : NULL;
}

tide_status tide_gmail_open_patient(const char *endpoint, tide_tokens *tokens, uint32_t patience_ms,
                                    tide_mem *mem, tide_gmail **gmail_out, tide_error *err)
{
    const struct tide_api_options options = {.provider = &tide_gmail_api,
                                             .endpoint = endpoint,
                                             .tokens = tokens,
                                             .patience_ms = patience_ms};
    return tide_api_open(&options, mem, gmail_out, err);
}

tide_status tide_gmail_open(const char *endpoint, tide_tokens *tokens, tide_mem *mem,
                            tide_gmail **gmail_out, tide_error *err)
{
    return tide_gmail_open_patient(endpoint, tokens, 0, mem, gmail_out, err);
}

void tide_gmail_close(tide_gmail *gmail)
{
    tide_api_close(gmail);
}

void tide_gmail_ask_message(struct tide_api_ask *ask, tide_gmail *gmail, tide_job *job,
                            enum tide_gmail_method method, tide_text id, const char *rest)
{
    tide_api_ask_init(ask, gmail, job, method, "/gmail/v1/users/me/messages/");
    tide_api_ask_value(ask, id);
    tide_api_ask_add(ask, rest);
}
