/* box_chat.c - conversations with the chat model.  The first line says how: 'o' for the one
 * dialect, 'a' for the other, 'n' for its newest version; then the body.  Text before a record
 * separator (1e) is a fixture first.
 *
 * The same conversation gives the same answer (BCHT1), and what is not a stream is
 * JSON with a reason why it ended; a tool call has a name and an object. */
#include "box.h"

#include "cloudbox/chat/chat.h"

static void ask_model(box_cloud *cloud, uint8_t kind, tide_text body, struct box_answer *answer)
{
    const struct box_header headers[] = {
        {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/json")},
        {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer k")},
        {TIDE_TEXT("anthropic-version"),
         kind == 'n' ? TIDE_TEXT("2026-10-21") : TIDE_TEXT("2023-06-01")},
    };
    fuzz_serve(cloud,
               &(struct box_request){.verb = BOX_POST,
                                     .target = kind == 'o' ? TIDE_TEXT("/v1/chat/completions")
                                                           : TIDE_TEXT("/v1/messages"),
                                     .headers = headers,
                                     .headers_count = kind == 'o' ? 2 : 3,
                                     .body = body,
                                     .origin = TIDE_TEXT("http://127.0.0.1:1")},
               FUZZ_START_MS, answer);
}

/* Whether the arguments match the schema is not checked: some schemas cannot be met (BSCM1). */
static void check_call(const json_t *name, const json_t *arguments)
{
    TIDE_ASSERT(json_is_string(name));
    TIDE_ASSERT(json_is_object(arguments));
}

static void check_openai(const json_t *answer)
{
    const json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
    const json_t *calls = json_object_get(json_object_get(choice, "message"), "tool_calls");
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    TIDE_ASSERT(reason != NULL);
    for (size_t i = 0; strcmp(reason, "length") != 0 && i < json_array_size(calls); i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        json_t *arguments =
            json_loads(json_string_value(json_object_get(function, "arguments")), 0, NULL);
        check_call(json_object_get(function, "name"), arguments);
        json_decref(arguments);
    }
}

static void check_anthropic(const json_t *answer)
{
    const json_t *content = json_object_get(answer, "content");
    const char *reason = json_string_value(json_object_get(answer, "stop_reason"));
    TIDE_ASSERT(reason != NULL);
    for (size_t i = 0; strcmp(reason, "max_tokens") != 0 && i < json_array_size(content); i++) {
        const json_t *block = json_array_get(content, i);
        const char *type = json_string_value(json_object_get(block, "type"));
        TIDE_ASSERT(type != NULL);
        if (strcmp(type, "tool_use") == 0)
            check_call(json_object_get(block, "name"), json_object_get(block, "input"));
    }
}

static void check(uint8_t kind, const struct box_answer *answer)
{
    if (strncmp(answer->type, "application/json", 16) != 0)
        return; /* a stream of events */
    json_t *value = json_loadb(answer->body.data, answer->body.bytes, JSON_ALLOW_NUL, NULL);
    TIDE_ASSERT(value != NULL);
    if (answer->status == 200) {
        if (kind == 'o')
            check_openai(value);
        else
            check_anthropic(value);
    }
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    const tide_text how = fuzz_text(&input, '\n');
    const uint8_t kind = how.bytes == 0 ? 'o' : (uint8_t)how.data[0];
    box_cloud *cloud = fuzz_cloud();
    if (memchr(data, '\x1e', bytes) != NULL) {
        const tide_text text = fuzz_text(&input, '\x1e');
        json_t *fixture = json_loadb(text.data == NULL ? "" : text.data, text.bytes, 0, NULL);
        (void)box_chat_add_fixture(box_cloud_chat(cloud), fixture, NULL);
        json_decref(fixture);
    }
    const tide_text body = fuzz_exact((tide_text){(const char *)input.data, input.bytes});
    struct box_answer answer, again;
    ask_model(cloud, kind, body, &answer);
    check(kind, &answer);
    ask_model(cloud, kind, body, &again);
    TIDE_ASSERT(answer.body.bytes == again.body.bytes);
    TIDE_ASSERT(answer.body.bytes == 0 ||
                memcmp(answer.body.data, again.body.data, answer.body.bytes) == 0);
    fuzz_answered(cloud, &answer, FUZZ_START_MS);
    fuzz_answered(cloud, &again, FUZZ_START_MS);
    fuzz_text_free(body);
    fuzz_cloud_end(cloud);
    return 0;
}
