/* How the model answers: with tools, by a schema, within limits, as a stream. */
#include "chat_fixture.h"

/* ---- tools ---- */

/* An agent's loop: tools are called, each once, what is dangerous never, and
 * after that it speaks. */
CASE(a_loop_of_tools_comes_to_an_end)
{
    json_auto_t *tools = json_array();
    static const char *const tool_names[] = {"search_archive", "read_thread", "create_draft",
                                             "send_reply",     "add_label",   "escalate",
                                             "delete_thread"};
    for (size_t i = 0; i < 7; i++)
        json_array_append_new(
            tools, json_pack("{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s},s:{s:s}},s:[s]}}}", "type",
                             "function", "function", "name", tool_names[i], "description",
                             "A tool of the mail program", "parameters", "type", "object",
                             "properties", "thread_id", "type", "string", "body", "type", "string",
                             "required", "thread_id"));
    for (int parallel = 0; parallel < 2; parallel++)
        for (size_t m = 0; m < MAILS; m++) {
            char user[2000];
            (void)snprintf(user, sizeof user, "thread_id: t-%zu\n\n%s", m, mails[m].mail);
            json_auto_t *list = json_pack("[{s:s,s:s},{s:s,s:s}]", "role", "system", "content",
                                          "You help with mail.", "role", "user", "content", user);
            json_auto_t *used = json_object();
            size_t rounds = 0;
            for (;; rounds++) {
                assert_true(rounds < 8);
                assert_int_equal(ask(world, OPENAI,
                                     json_pack("{s:s,s:O,s:O,s:b}", "model", "m", "messages", list,
                                               "tools", tools, "parallel_tool_calls", parallel)),
                                 200);
                const json_t *calls = json_object_get(message_of(world), "tool_calls");
                if (json_array_size(calls) == 0)
                    break;
                assert_true(parallel || json_array_size(calls) == 1);
                json_array_append(list, message_of(world));
                for (size_t i = 0; i < json_array_size(calls); i++) {
                    const json_t *call = json_array_get(calls, i);
                    const json_t *function = json_object_get(call, "function");
                    const char *name = json_string_value(json_object_get(function, "name"));
                    assert_null(json_object_get(used, name));
                    assert_string_not_equal(name, "send_reply");
                    assert_string_not_equal(name, "delete_thread");
                    json_object_set_new(used, name, json_true());
                    char wanted[20];
                    (void)snprintf(wanted, sizeof wanted, "\"t-%zu\"", m);
                    assert_non_null(
                        strstr(json_string_value(json_object_get(function, "arguments")), wanted));
                    json_array_append_new(
                        list, json_pack("{s:s,s:O,s:s}", "role", "tool", "tool_call_id",
                                        json_object_get(call, "id"), "content", "{\"ok\":true}"));
                }
            }
            assert_true(rounds >= 1);
            assert_non_null(content_of(world));
            assert_int_equal(strncmp(content_of(world), "Done: ", 6), 0);
            assert_int_equal(json_object_get(used, "create_draft") != NULL,
                             strcmp(mails[m].category, "needs_response") == 0);
            assert_int_equal(json_object_get(used, "escalate") != NULL,
                             strcmp(mails[m].kind, "urgent") == 0);
        }
}

/* A mail that comes as JSON asks for no JSON, and a word of prose is no category. */
CASE(instructions_are_told_from_what_they_are_about)
{
    static const char given[] = "The next message is one JSON object.";
    static const char mail[] =
        "{\"mail\":{\"from\":\"Eve <eve@example.org>\",\"subject\":\"Notes\","
        "\"body\":\"For your information: the notes are online.\"}}";
    static const char choice[] =
        "Do they have to do something other than answer? Answer with JSON: "
        "{\"category\": one of \"needs_response\", \"fyi\"}.";
    for (int asked = 0; asked < 2; asked++) {
        char system[400];
        (void)snprintf(system, sizeof system, "You help with mail. %s %s", given,
                       asked ? choice : "Write a reply.");
        assert_int_equal(
            ask(world, OPENAI,
                json_pack("{s:s,s:[{s:s,s:s},{s:s,s:s}]}", "model", "m", "messages", "role",
                          "system", "content", system, "role", "user", "content", mail)),
            200);
        if (asked)
            assert_string_equal(content_of(world), "{\"category\":\"fyi\"}");
        else
            assert_int_not_equal(content_of(world)[0], '{');
    }
}

CASE(tool_choice_is_obeyed)
{
    static const struct {
        const char *choice;
        const char *name; /* NULL: none may be called */
    } cases[] = {
        {"\"none\"", NULL},
        {"\"auto\"", NULL}, /* no tool is wanted */
        {"\"required\"", "send"},
        {"{\"type\":\"function\",\"function\":{\"name\":\"send\"}}", "send"},
    };
    for (size_t i = 0; i < 4; i++) {
        json_t *body = json_pack("{s:s,s:[{s:s,s:s}],s:[{s:s,s:{s:s}}],s:o}", "model", "m",
                                 "messages", "role", "user", "content", "What is two and two?",
                                 "tools", "type", "function", "function", "name", "send",
                                 "tool_choice", json_loads(cases[i].choice, JSON_DECODE_ANY, NULL));
        assert_int_equal(ask(world, OPENAI, body), 200);
        const json_t *call = openai_call(world, 0);
        assert_int_equal(call != NULL, cases[i].name != NULL);
        if (cases[i].name != NULL)
            assert_string_equal(json_string_value(json_object_get(call, "name")), cases[i].name);
    }
}

CASE(an_answer_follows_its_schema)
{
    json_auto_t *schema = json_loads(
        "{\"type\":\"object\",\"properties\":{\"tasks\":{\"type\":\"array\",\"items\":{\"type\":"
        "\"string\"}},\"contacts\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
        "\"properties\":{\"email\":{\"type\":\"string\",\"format\":\"email\"},\"name\":{\"type\":"
        "\"string\"}},\"required\":[\"email\",\"name\"],\"additionalProperties\":false}}},"
        "\"required\":[\"tasks\",\"contacts\"],\"additionalProperties\":false}",
        0, NULL);
    json_t *body =
        json_pack("{s:s,s:[{s:s,s:s}],s:{s:s,s:{s:s,s:b,s:O}}}", "model", "m", "messages", "role",
                  "user", "content", mails[0].mail, "response_format", "type", "json_schema",
                  "json_schema", "name", "notes", "strict", 1, "schema", schema);
    assert_int_equal(ask(world, OPENAI, body), 200);
    json_auto_t *said = json_loads(content_of(world), 0, NULL);
    tide_auto_arena arena = tide_arena_heap(16 << 20);
    assert_true(box_schema_valid(schema, said, &arena));
    assert_true(json_array_size(json_object_get(said, "tasks")) >= 1);
    const json_t *contact = json_array_get(json_object_get(said, "contacts"), 0);
    assert_string_equal(json_string_value(json_object_get(contact, "email")), "ann@partner.org");
    assert_string_equal(json_string_value(json_object_get(contact, "name")), "Ann Smith");
}

/* BCHT1, and ids that are the same with it. */
CASE(the_same_conversation_gets_the_same_answer)
{
    const char *body = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello, "
                       "how are you today?\"}]}";
    assert_int_equal(ask_raw(world, OPENAI, body), 200);
    json_auto_t *first = json_incref(world->json);
    assert_int_equal(ask_raw(world, OPENAI, body), 200);
    assert_true(json_equal(first, world->json));
}

/* ---- limits ---- */

CASE(a_small_limit_cuts_the_answer)
{
    for (int limit = 1; limit <= 6; limit++) {
        json_t *body =
            json_pack("{s:s,s:i,s:s,s:[{s:s,s:s}]}", "model", "m", "max_tokens", limit, "system",
                      "Draft a reply.", "messages", "role", "user", "content", mails[9].mail);
        assert_int_equal(ask(world, ANTHROPIC, body), 200);
        assert_string_equal(json_string_value(json_object_get(world->json, "stop_reason")),
                            "max_tokens");
        assert_int_equal(json_integer_value(json_object_get(json_object_get(world->json, "usage"),
                                                            "output_tokens")),
                         limit);
        body = json_pack("{s:s,s:i,s:[{s:s,s:s},{s:s,s:s}]}", "model", "m",
                         limit % 2 ? "max_tokens" : "max_completion_tokens", limit, "messages",
                         "role", "system", "content", "Draft a reply.", "role", "user", "content",
                         mails[9].mail);
        assert_int_equal(ask(world, OPENAI, body), 200);
        assert_string_equal(finish_of(world), "length");
        assert_true(strlen(content_of(world)) <= (size_t)limit * 4);
    }
    json_t *body = json_pack("{s:s,s:i,s:[s],s:s,s:[{s:s,s:s}]}", "model", "m", "max_tokens", 500,
                             "stop_sequences", "Ann", "system", "Draft a reply.", "messages",
                             "role", "user", "content", mails[0].mail);
    assert_int_equal(ask(world, ANTHROPIC, body), 200);
    assert_string_equal(json_string_value(json_object_get(world->json, "stop_reason")),
                        "stop_sequence");
    assert_string_equal(json_string_value(json_object_get(world->json, "stop_sequence")), "Ann");
}

CASE(usage_adds_up)
{
    json_t *body = json_pack("{s:s,s:[{s:s,s:s}]}", "model", "m", "messages", "role", "user",
                             "content", mails[0].mail);
    assert_int_equal(ask(world, OPENAI, body), 200);
    const json_t *usage = json_object_get(world->json, "usage");
    const json_int_t prompt = json_integer_value(json_object_get(usage, "prompt_tokens"));
    const json_int_t answer = json_integer_value(json_object_get(usage, "completion_tokens"));
    assert_true(prompt > (json_int_t)strlen(mails[0].mail) / 4);
    assert_int_equal(answer, (strlen(content_of(world)) + 3) / 4);
    assert_int_equal(json_integer_value(json_object_get(usage, "total_tokens")), prompt + answer);
}

/* ---- streams ---- */

/* Puts the pieces of a stream together again. */
static void read_stream(const struct world *world, char *text, char *arguments, char *last)
{
    assert_string_equal(world->answer.type, "text/event-stream");
    const char *at = tide_buf_cstr(&world->answer.body);
    text[0] = arguments[0] = last[0] = '\0';
    while ((at = strstr(at, "data: ")) != NULL) {
        at += 6;
        const size_t bytes = strcspn(at, "\n");
        json_auto_t *event = json_loadb(at, bytes, 0, NULL);
        (void)snprintf(last, 100, "%.*s", (int)bytes, at);
        if (event == NULL) {
            assert_int_equal(strncmp(at, "[DONE]", 6), 0);
            break;
        }
        const json_t *delta =
            json_object_get(json_array_get(json_object_get(event, "choices"), 0), "delta");
        if (delta == NULL)
            delta = json_object_get(event, "delta");
        const json_t *call = json_array_get(json_object_get(delta, "tool_calls"), 0);
        const char *pieces[] = {
            json_string_value(json_object_get(delta, "content")),
            json_string_value(json_object_get(delta, "text")),
            json_string_value(json_object_get(delta, "partial_json")),
            json_string_value(json_object_get(json_object_get(call, "function"), "arguments"))};
        for (size_t i = 0; i < 4; i++)
            if (pieces[i] != NULL)
                strncat(i < 2 ? text : arguments, pieces[i], 3000);
    }
}

CASE(a_stream_holds_what_the_whole_answer_holds)
{
    static char text[8192];
    static char arguments[8192];
    char last[100];
    for (size_t m = 0; m < MAILS; m++)
        for (int tools = 0; tools < 2; tools++) {
            json_t *whole = json_pack("{s:s,s:i,s:[{s:s,s:s}]}", "model", "m", "max_tokens", 900,
                                      "messages", "role", "user", "content", mails[m].mail);
            json_t *other = json_deep_copy(whole);
            if (tools) {
                json_object_set_new(whole, "tools", classify_tool(true, five));
                json_object_set_new(other, "tools", classify_tool(false, five));
            }
            assert_int_equal(ask(world, OPENAI, json_deep_copy(whole)), 200);
            auto_text *wanted = strdup(
                tools ? json_string_value(json_object_get(openai_call(world, 0), "arguments"))
                      : content_of(world));
            json_object_set_new(whole, "stream", json_true());
            json_object_set_new(other, "stream", json_true());
            assert_int_equal(ask(world, OPENAI, whole), 200);
            read_stream(world, text, arguments, last);
            assert_string_equal(tools ? arguments : text, wanted);
            assert_int_equal(strncmp(last, "[DONE]", 6), 0);
            assert_int_equal(ask(world, ANTHROPIC, other), 200);
            read_stream(world, text, arguments, last);
            assert_string_equal(tools ? arguments : text, wanted);
            assert_non_null(strstr(last, "message_stop"));
            assert_non_null(strstr(tide_buf_cstr(&world->answer.body), "event: message_start\n"));
        }
}
