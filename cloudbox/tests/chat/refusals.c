/* What either dialect refuses, and how it says so. */
#include "chat_fixture.h"

CASE(openai_requests_that_are_wrong_are_refused)
{
#define CALL                                                                                       \
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":"            \
    "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
    static const struct {
        int status;
        const char *body;
        const char *word;
    } cases[] = {
        {400, "nonsense", "parse"},
        {400, "[]", "parse"},
        {400, "{\"messages\":[" USER "]}", "model"},
        {404, "{\"model\":\"no-such-model\",\"messages\":[" USER "]}", "exist"},
        {400, "{\"model\":\"m\"}", "messages"},
        {400, "{\"model\":\"m\",\"messages\":[]}", "messages"},
        {400, "{\"model\":\"m\",\"messages\":[{\"content\":\"x\"}]}", "role"},
        {400, "{\"model\":\"m\",\"messages\":[{\"role\":\"boss\",\"content\":\"x\"}]}", "boss"},
        {400, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]}", "content"},
        {400, "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\"}]}", "tool_calls"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "," CALL "]}", "must be followed"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "," CALL "," USER "]}", "c1"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER
         ",{\"role\":\"tool\",\"tool_call_id\":\"c9\",\"content\":\"x\"}]}",
         "preceding"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "],\"max_tokens\":0}", "tokens"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER "],\"max_tokens\":5,\"max_completion_tokens\":5}",
         "same time"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "],\"n\":2}", "choice"},
        {400, "{\"model\":\"m\",\"messages\":[" USER "],\"tool_choice\":\"required\"}", "tools"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER
         "],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a b\"}}]}",
         "name"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER "],\"response_format\":{\"type\":\"json_object\"}}",
         "json"},
        {400,
         "{\"model\":\"m\",\"messages\":[" USER "],\"response_format\":{\"type\":\"json_schema\"}}",
         "schema"},
        {200,
         "{\"model\":\"m\",\"messages\":[" USER "," CALL
         ",{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"x\"}],\"temperature\":0}",
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int status = ask_raw(world, OPENAI, cases[i].body);
        if (status != cases[i].status)
            print_error("%s\n%s\n", cases[i].body, tide_buf_cstr(&world->answer.body));
        assert_int_equal(status, cases[i].status);
        const json_t *error = json_object_get(world->json, "error");
        if (status == 200)
            continue;
        assert_int_equal(json_object_size(error), 4);
        assert_non_null(
            strstr(json_string_value(json_object_get(error, "message")), cases[i].word));
    }
}

CASE(anthropic_requests_that_are_wrong_are_refused)
{

    static const struct {
        int status;
        const char *version;
        const char *body;
        const char *word;
    } cases[] = {
        {400, NULL, HEAD "\"messages\":[" USER "]}", "anthropic-version"},
        {400, "2020-01-01", HEAD "\"messages\":[" USER "]}", "version"},
        {200, "2023-06-01", HEAD "\"temperature\":0.5,\"messages\":[" USER "]}", ""},
        {400, "2023-06-01", HEAD "\"temperature\":1.5,\"messages\":[" USER "]}", "temperature"},
        {400, "2026-10-21", HEAD "\"temperature\":0.5,\"messages\":[" USER "]}", "temperature"},
        {400, "2026-10-21", HEAD "\"top_p\":1,\"messages\":[" USER "]}", "top_p"},
        {400, "2026-10-21", HEAD "\"top_k\":1,\"messages\":[" USER "]}", "top_k"},
        {400, "2026-10-21", "{\"model\":\"m\",\"messages\":[" USER "]}", "max_tokens"},
        {400, "2026-10-21", "{\"model\":\"m\",\"max_tokens\":0,\"messages\":[" USER "]}",
         "max_tokens"},
        {400, "2026-10-21", HEAD "\"messages\":[]}", "at least one"},
        {400, "2026-10-21", HEAD "\"messages\":[{\"role\":\"assistant\",\"content\":\"x\"}]}",
         "first message"},
        {400, "2026-10-21", HEAD "\"messages\":[" USER ",{\"role\":\"system\",\"content\":\"x\"}]}",
         "role"},
        {400, "2026-10-21", HEAD "\"messages\":[" USER "," USE "]}", "tool_use"},
        {400, "2026-10-21", HEAD "\"messages\":[" USER "," USE "," USER "]}", "t1"},
        {400, "2026-10-21",
         HEAD "\"messages\":[" USER ",{\"role\":\"user\",\"content\":[" RESULT "]}]}",
         "tool_use_id"},
        {400, "2026-10-21",
         HEAD "\"messages\":[" USER "," USE
              ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}," RESULT "]}]}",
         "before"},
        {200, "2026-10-21",
         HEAD "\"messages\":[" USER "," USE ",{\"role\":\"user\",\"content\":[" RESULT
              ",{\"type\":\"text\",\"text\":\"a\"}]}]}",
         ""},
        {400, "2026-10-21",
         HEAD "\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":[{\"type\":"
              "\"document\"}]}," USER "]}",
         "document"},
        {200, "2023-06-01",
         HEAD "\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":[{\"type\":"
              "\"document\"}]}," USER "]}",
         ""},
        {400, "2026-10-21",
         HEAD "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\","
              "\"citations\":[{}]}]}]}",
         "citations"},
        {400, "2026-10-21", HEAD "\"messages\":[" USER "],\"tools\":[{\"name\":\"f\"}]}",
         "input_schema"},
        {404, "2026-10-21", "{\"model\":\"no-such\",\"max_tokens\":1,\"messages\":[" USER "]}",
         "model"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world->version = cases[i].version;
        const int status = ask_raw(world, ANTHROPIC, cases[i].body);
        if (status != cases[i].status)
            print_error("%s\n%s\n", cases[i].body, tide_buf_cstr(&world->answer.body));
        assert_int_equal(status, cases[i].status);
        if (status == 200)
            continue;
        assert_string_equal(json_string_value(json_object_get(world->json, "type")), "error");
        assert_non_null(strstr(
            json_string_value(json_object_get(json_object_get(world->json, "error"), "message")),
            cases[i].word));
    }
}

CASE(without_a_key_nobody_is_answered)
{
    static const char *const keys[] = {NULL, "Bearer ", "Bearer    ", "Basic abc"};
    for (size_t i = 0; i < 4; i++) {
        world->key = keys[i];
        assert_int_equal(ask_raw(world, OPENAI, "{}"), 401);
        assert_int_equal(ask_raw(world, ANTHROPIC, "{}"), 401);
        assert_string_equal(
            json_string_value(json_object_get(json_object_get(world->json, "error"), "type")),
            "authentication_error");
        assert_int_equal(ask_raw(world, "/v1/models", NULL), 401);
    }
    world->key = "Bearer any";
    assert_int_equal(ask_raw(world, "/v1/models", NULL), 200);
    assert_int_equal(json_array_size(json_object_get(world->json, "data")), 2);
}
