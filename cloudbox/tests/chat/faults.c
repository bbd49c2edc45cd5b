/* Faults on request, answers put into its mouth, and its quota. */
#include "chat_fixture.h"
#include "cloudbox/gate/quota.h"

static const char *const plain = HEAD "\"messages\":[" USER "]}";

CASE(faults_look_like_the_real_ones)
{
    chat_fault(world, "billing");
    assert_int_equal(ask_raw(world, OPENAI, plain), 429);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(world->json, "error"), "type")),
        "insufficient_quota");
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 429);
    assert_string_equal(
        json_string_value(json_object_get(
            json_object_get(json_object_get(world->json, "error"), "details"), "error_code")),
        "enforced_spend_limit_reached");
    for (size_t i = 0; i < world->answer.headers_count; i++)
        assert_string_not_equal(world->answer.headers[i].name, "retry-after");
    assert_int_equal(ask_raw(world, OPENAI, plain), 429);
    (void)ask_raw(world, OPENAI, plain);
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 402);
}

CASE(an_overloaded_model_says_so)
{
    chat_fault(world, "overloaded");
    assert_int_equal(ask_raw(world, OPENAI, plain), 503);
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 529);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(world->json, "error"), "type")),
        "overloaded_error");
}

CASE(spoiled_answers_are_spoiled_as_asked)
{
    json_t *body = json_pack("{s:s,s:i,s:[{s:s,s:s}],s:o,s:s}", "model", "m", "max_tokens", 900,
                             "messages", "role", "user", "content", mails[0].mail, "tools",
                             classify_tool(true, five), "tool_choice", "required");
    chat_fault(world, "no-usage");
    chat_fault(world, "invalid-arguments");
    assert_int_equal(ask(world, OPENAI, json_deep_copy(body)), 200);
    assert_null(json_object_get(world->json, "usage"));
    assert_null(json_loads(json_string_value(json_object_get(openai_call(world, 0), "arguments")),
                           0, NULL));
    json_object_del(body, "tool_choice");
    json_object_set_new(body, "tools", classify_tool(false, five));
    json_object_set_new(body, "tool_choice", json_pack("{s:s}", "type", "any"));
    assert_int_equal(ask(world, ANTHROPIC, body), 200);
    assert_null(json_object_get(world->json, "usage"));
    const json_t *input =
        json_object_get(json_array_get(json_object_get(world->json, "content"), 0), "input");
    assert_null(json_object_get(input, "category"));
    chat_fault(world, "length");
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 200);
    assert_string_equal(json_string_value(json_object_get(world->json, "stop_reason")),
                        "max_tokens");
    chat_fault(world, "bad-json");
    assert_int_equal(ask_raw(world, OPENAI, plain), 200);
    assert_null(world->json);
}

CASE(a_fixture_overrides_the_model)
{
    struct box_chat_state *chat = box_cloud_chat(world->cloud);
    tide_error err;
    static const char *const wrong[] = {"{}", "{\"contains\":\"a\"}",
                                        "{\"contains\":\"a\",\"tool\":{}}",
                                        "{\"contains\":3,\"reply\":\"b\"}"};
    for (size_t i = 0; i < 4; i++) {
        json_auto_t *fixture = json_loads(wrong[i], 0, NULL);
        assert_int_equal(box_chat_add_fixture(chat, fixture, &err), TIDE_INVALID);
    }
    json_auto_t *fixture = json_loads("{\"contains\":\"Hi there\",\"reply\":\"General!\",\"tool\":"
                                      "{\"name\":\"f\",\"arguments\":{\"a\":1}}}",
                                      0, NULL);
    assert_ok(box_chat_add_fixture(chat, fixture, &err));
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 200);
    const json_t *block = json_array_get(json_object_get(world->json, "content"), 0);
    assert_string_equal(json_string_value(json_object_get(block, "name")), "f");
    assert_int_equal(ask_raw(world, ANTHROPIC,
                             HEAD "\"messages\":[" USER "," USE
                                  ",{\"role\":\"user\",\"content\":[" RESULT "]}]}"),
                     200);
    block = json_array_get(json_object_get(world->json, "content"), 0);
    assert_string_equal(json_string_value(json_object_get(block, "text")), "General!");
    box_chat_clear_fixtures(chat);
    assert_int_equal(ask_raw(world, ANTHROPIC, plain), 200);
    block = json_array_get(json_object_get(world->json, "content"), 0);
    assert_string_not_equal(json_string_value(json_object_get(block, "text")), "General!");
}

CASE(too_many_calls_are_told_when_to_come_back)
{
    box_quota_set_rules(box_cloud_quota(world->cloud), BOX_QUOTA_2026);
    assert_true(box_quota_set(box_cloud_quota(world->cloud), "chat_per_minute", 2));
    assert_int_equal(ask_raw(world, OPENAI, plain), 200);
    assert_int_equal(ask_raw(world, OPENAI, plain), 200);
    static const char *const targets[] = {OPENAI, ANTHROPIC};
    for (size_t t = 0; t < 2; t++) {
        assert_int_equal(ask_raw(world, targets[t], plain), 429);
        bool told = false;
        for (size_t i = 0; i < world->answer.headers_count; i++)
            if (strcmp(world->answer.headers[i].name, "retry-after") == 0) {
                const long seconds = strtol(world->answer.headers[i].value, NULL, 10);
                told = seconds >= 1 && seconds <= 61;
            }
        assert_true(told);
    }
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(world->json, "error"), "type")),
        "rate_limit_error");
}
