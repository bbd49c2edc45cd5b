#include "gate_support.h"

int handled;

static void handle(struct box_call *call)
{
    handled++;
    json_t *value =
        json_pack("{s:s, s:I}", "method", call->method->name, "run", (json_int_t)handled);
    if (call->args_count > 0)
        json_object_set_new(value, "id", box_json_text(call->args[0]));
    if (call->request->body.bytes > 0)
        json_object_set_new(value, "body", box_json_text(call->request->body));
    if (box_call_param(call, "q").data != NULL)
        json_object_set_new(value, "q", box_json_text(box_call_param(call, "q")));
    if (box_call_param(call, "page").data != NULL &&
        box_faults_strikes(box_cloud_faults(call->cloud), call, "page-loop"))
        json_object_set_new(value, "loop", json_true());
    box_answer_json(call->answer, 200, value, false);
}

enum { METER_CHAT = 1 };

const struct box_method test_methods[] = {
    {"gmail.users.messages.get", BOX_GET, "/gmail/v1/users/{userId}/messages/{id}",
     BOX_SCOPE_READONLY, BOX_METER_GMAIL, 20, 5, handle},
    {"gmail.users.messages.list", BOX_GET, "/gmail/v1/users/{userId}/messages", BOX_SCOPE_READONLY,
     BOX_METER_GMAIL, 5, 5, handle},
    {"gmail.users.messages.modify", BOX_POST, "/gmail/v1/users/{userId}/messages/{id}/modify",
     BOX_SCOPE_MODIFY, BOX_METER_GMAIL, 5, 5, handle},
    {"gmail.users.history.list", BOX_GET, "/gmail/v1/users/{userId}/history", BOX_SCOPE_READONLY,
     BOX_METER_GMAIL, 2, 2, handle},
    {"webmasters.searchanalytics.query", BOX_POST,
     "/webmasters/v3/sites/{siteUrl}/searchAnalytics/query", BOX_SCOPE_CONSOLE, BOX_METER_ANALYTICS,
     1, 1, handle},
    {"webmasters.sites.list", BOX_GET, "/webmasters/v3/sites", BOX_SCOPE_CONSOLE,
     BOX_METER_CONSOLE_OTHER, 1, 1, handle},
    {"chat.completions", BOX_POST, "/v1/chat/completions", BOX_SCOPE_READONLY, METER_CHAT, 1, 1,
     handle},
    {"messages", BOX_POST, "/v1/messages", BOX_SCOPE_READONLY, METER_CHAT, 1, 1, handle},
};
struct box_service test_gmail;
static struct box_service test_console, test_chat;
const struct box_service *const test_services[] = {
    &test_gmail, &test_console, &test_chat, &box_mail,    &box_pubsub,
    &box_signin, &box_console,  &box_batch, &box_control, NULL,
};

static void fake(struct box_service *service, const struct box_service *real, size_t first,
                 size_t count)
{
    *service = *real;
    service->methods = test_methods + first;
    service->methods_count = count;
    service->open = NULL;
    service->close = NULL;
}

void fake_services(void)
{
    fake(&test_gmail, &box_gmail, 0, 4);
    fake(&test_console, &box_console, 4, 2);
    fake(&test_chat, &box_chat, 6, 2);
}

box_cloud *cloud_with(const struct box_options *options)
{
    struct box_options settled = *options;
    fake_services();
    settled.services = test_services;
    box_cloud *cloud = box_cloud_new(&settled);
    tide_error err = {0};
    const struct box_mailbox_options empty = {.now_unix_ms = START_MS};
    assert_ok(box_cloud_add_mailbox(cloud, TIDE_TEXT("a@x.org"), &empty, &err));
    assert_ok(box_cloud_add_mailbox(cloud, TIDE_TEXT("b@x.org"), &empty, &err));
    assert_ok(box_cloud_add_token(cloud, TIDE_TEXT("a"), TIDE_TEXT("a@x.org"), &err));
    assert_ok(box_cloud_add_token(cloud, TIDE_TEXT("b"), TIDE_TEXT("b@x.org"), &err));
    handled = 0;
    return cloud;
}

int ask(box_cloud *cloud, uint64_t now_ms, const struct ask *what, struct box_answer *answer)
{
    char bearer[64];
    struct box_header headers[3];
    size_t count = 0;
    if (what->token != NULL) {
        (void)snprintf(bearer, sizeof bearer, "Bearer %s", what->token);
        headers[count++] = (struct box_header){TIDE_TEXT("authorization"), tide_text_of(bearer)};
    }
    if (what->type != NULL)
        headers[count++] = (struct box_header){TIDE_TEXT("Content-Type"), tide_text_of(what->type)};
    if (what->extra.name.data != NULL)
        headers[count++] = what->extra;
    const struct box_request request = {
        .verb = what->verb,
        .target = tide_text_of(what->target),
        .headers = headers,
        .headers_count = count,
        .body = tide_text_of(what->body),
        .origin = TIDE_TEXT("http://127.0.0.1:4443"),
    };
    box_answer_init(answer);
    box_cloud_serve(cloud, &request, now_ms, answer);
    return answer->status;
}

int ask_status(box_cloud *cloud, uint64_t now_ms, const struct ask *what)
{
    auto_answer answer;
    const int status = ask(cloud, now_ms, what, &answer);
    box_cloud_finished(cloud, &answer.ticket, now_ms);
    return status;
}

int get_message(box_cloud *cloud, uint64_t now_ms, const char *id)
{
    char target[128];
    (void)snprintf(target, sizeof target, "/gmail/v1/users/me/messages/%s", id);
    return ask_status(cloud, now_ms, &(struct ask){.target = target, .token = "a"});
}

json_t *ask_json(box_cloud *cloud, uint64_t now_ms, int status, const struct ask *what)
{
    auto_answer answer;
    const int got = ask(cloud, now_ms, what, &answer);
    if (got != status)
        print_message("%s: %d %s\n", what->target, got, tide_buf_cstr(&answer.body));
    assert_int_equal(got, status);
    json_t *value = json_loadb(tide_buf_cstr(&answer.body), answer.body.bytes, 0, NULL);
    assert_non_null(value);
    box_cloud_finished(cloud, &answer.ticket, now_ms);
    return value;
}

const json_t *inside(const json_t *value, ...)
{
    va_list path;
    va_start(path, value);
    const char *name = NULL;
    while ((name = va_arg(path, const char *)) != NULL)
        value = json_object_get(value, name);
    va_end(path);
    return value;
}
