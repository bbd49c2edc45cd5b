/* agent_run_test.c - the run of an agent, told what models and tools say. */
#include "assistant/agent/run.h"
#include "base/rng.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/test.h"

static const char tools[] = "[{\"name\":\"look\",\"description\":\"looks\",\"schema\":{}},"
                            "{\"name\":\"label\",\"description\":\"labels\",\"schema\":{}}]";

static tide_agent_run *run_new(uint32_t iterations_max)
{
    json_t *list = json_loads(tools, 0, NULL);
    tide_agent_run *run = NULL;
    const struct tide_agent_begin begin = {.profile = tide_text_of("support"),
                                           .system = tide_text_of("You help."),
                                           .message = tide_text_of("{\"mail\":\"hello\"}"),
                                           .tools = list,
                                           .iterations_max = iterations_max,
                                           .tokens_max = 500,
                                           .has_temperature = true,
                                           .temperature_milli = 200};
    OK(tide_agent_run_new(&begin, tide_mem_heap(), &run, NULL));
    json_decref(list);
    return run;
}

#define CASE(test) TEST_OF(test, tide_agent_run *run, run_new(3), tide_agent_run_free)

static void say(tide_agent_run *run, const char *answer)
{
    OK(tide_agent_take(run, tide_text_of(answer), NULL));
}

#define CALL(id, name)                                                                             \
    "{\"call\":{\"id\":\"" id "\",\"name\":\"" name "\",\"arguments\":{\"a\":1}}}"
#define ANSWER(parts) "{\"text\":\"\",\"stop\":\"tools\",\"parts\":[" parts "]}"
#define LAST(text)    "{\"text\":\"" text "\",\"stop\":\"done\",\"parts\":[{\"text\":\"" text "\"}]}"

static json_t *talk_of(const tide_agent_run *run)
{
    tide_auto_buf text = heap_buf(1 << 20);
    OK(tide_agent_talk(run, &text, NULL));
    json_t *talk = json_loadb(text.data, text.bytes, 0, NULL);
    assert_non_null(talk);
    return talk;
}

static void result(tide_agent_run *run, const char *text)
{
    OK(tide_agent_result(run, tide_text_of(text), false, 7, NULL));
}

static struct tide_agent_call call_of(const tide_agent_run *run)
{
    struct tide_agent_call call;
    assert_int_equal(tide_agent_next_of(run), TIDE_AGENT_TOOL);
    tide_agent_call_of(run, &call);
    return call;
}

static void ended(const tide_agent_run *run, tide_agent_status status, const char *final)
{
    assert_int_equal(tide_agent_next_of(run), TIDE_AGENT_ENDED);
    assert_string_equal(tide_agent_status_name(tide_agent_status_of(run)),
                        tide_agent_status_name(status));
    assert_string_equal(tide_agent_final(run).data, final);
}

CASE(a_run_begins_with_what_the_user_says)
{
    assert_int_equal(tide_agent_next_of(run), TIDE_AGENT_ASK);
    json_t *talk = talk_of(run);
    json_t *expected =
        json_pack("[{s:s, s:[{s:s}]}]", "role", "user", "parts", "text", "{\"mail\":\"hello\"}");
    assert_true(json_equal(json_object_get(talk, "messages"), expected));
    assert_int_equal(json_array_size(json_object_get(talk, "tools")), 2);
    assert_int_equal(json_integer_value(json_object_get(talk, "temperature_milli")), 200);
    json_decref(expected);
    json_decref(talk);
}

CASE(an_answer_without_calls_ends_it)
{
    say(run, LAST("All is well."));
    ended(run, TIDE_AGENT_DONE, "All is well.");
    assert_int_equal(tide_agent_iterations(run), 1);
}

/* AGR1 */
CASE(results_are_given_in_order_and_in_one_message)
{
    say(run, ANSWER(CALL("c1", "look") "," CALL("c2", "label")));
    assert_int_equal(call_of(run).number, 1);
    assert_string_equal(call_of(run).id.data, "c1");
    result(run, "seen");
    assert_int_equal(call_of(run).number, 2);
    assert_string_equal(call_of(run).name.data, "label");
    assert_int_equal(json_integer_value(json_object_get(call_of(run).arguments, "a")), 1);
    OK(tide_agent_result(run, tide_text_of("{\"error\":\"no\"}"), true, 1, NULL));
    assert_int_equal(tide_agent_next_of(run), TIDE_AGENT_ASK);
    json_t *talk = talk_of(run);
    json_t *list = json_object_get(talk, "messages");
    assert_int_equal(json_array_size(list), 3);
    json_t *expected = json_pack("{s:s, s:[{s:{s:s,s:s}},{s:{s:s,s:s,s:b}}]}", "role", "user",
                                 "parts", "result", "id", "c1", "text", "seen", "result", "id",
                                 "c2", "text", "{\"error\":\"no\"}", "failed", 1);
    assert_true(json_equal(json_array_get(list, 2), expected));
    json_decref(expected);
    json_decref(talk);
    say(run, LAST("ok"));
    ended(run, TIDE_AGENT_DONE, "ok");
    assert_int_equal(json_array_size(tide_agent_log(run)), 2);
}

/* AGR5 */
CASE(a_tool_that_it_has_not_is_never_run)
{
    say(run, ANSWER(CALL("c1", "rm") "," CALL("c2", "look") "," CALL("c3", "send_reply")));
    assert_string_equal(call_of(run).id.data, "c2");
    result(run, "seen");
    assert_int_equal(tide_agent_next_of(run), TIDE_AGENT_ASK);
    assert_int_equal(json_array_size(tide_agent_log(run)), 3);
    say(run, ANSWER(CALL("c4", "rm")));
    assert_int_equal(tide_agent_next_of(run), TIDE_AGENT_ASK);
}

/* AGR2 */
CASE(a_model_that_never_ends_is_ended)
{
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(tide_agent_next_of(run), TIDE_AGENT_ASK);
        say(run, ANSWER(CALL("c1", "look")));
        result(run, "seen");
    }
    ended(run, TIDE_AGENT_LIMIT, "it did not come to an end within its limit of answers");
    assert_int_equal(tide_agent_iterations(run), 3);
}

TEST(a_run_has_so_many_tools_and_no_more)
{
    tide_agent_run *run = run_new(100);
    tide_auto_buf many = heap_buf(1 << 20);
    OK(tide_buf_add_text(&many, "{\"stop\":\"tools\",\"parts\":["));
    for (unsigned i = 0; i < 60; i++)
        OK(tide_buf_add_text(&many, i == 0 ? CALL("c", "look") : "," CALL("c", "look")));
    OK(tide_buf_add_text(&many, "]}"));
    unsigned ran = 0;
    while (tide_agent_next_of(run) != TIDE_AGENT_ENDED) {
        if (tide_agent_next_of(run) == TIDE_AGENT_ASK)
            say(run, many.data);
        else {
            ran++;
            result(run, "x");
        }
    }
    assert_int_equal(ran, TIDE_AGENT_CALLS_MAX);
    ended(run, TIDE_AGENT_LIMIT, "it called too many tools");
    tide_agent_run_free(run);
}

TEST(a_conversation_that_grows_too_long_is_ended)
{
    tide_agent_run *run = run_new(1000);
    char *long_text = malloc(1 << 20);
    assert_non_null(long_text);
    memset(long_text, 'x', 1 << 20);
    unsigned results = 0;
    while (tide_agent_next_of(run) != TIDE_AGENT_ENDED) {
        if (tide_agent_next_of(run) == TIDE_AGENT_ASK) {
            say(run, ANSWER(CALL("c1", "look")));
            continue;
        }
        OK(tide_agent_result(run, (tide_text){long_text, 1 << 20}, false, 0, NULL));
        results++;
    }
    ended(run, TIDE_AGENT_LIMIT, "its conversation grew too long");
    assert_in_range(results, 60, 66); /* each was cut */
    free(long_text);
    tide_agent_run_free(run);
}

/* AGR3 */
CASE(an_ended_run_stays_as_it_is)
{
    say(run, ANSWER(CALL("c1", "look")));
    OK(tide_agent_end(run, TIDE_AGENT_ESCALATED, tide_text_of("a person must look"), NULL));
    ended(run, TIDE_AGENT_ESCALATED, "a person must look");
    OK(tide_agent_end(run, TIDE_AGENT_FAILED, tide_text_of("no"), NULL));
    ended(run, TIDE_AGENT_ESCALATED, "a person must look");
}

CASE(a_model_that_refuses_or_is_cut_ends_it)
{
    say(run, "{\"text\":\"\",\"stop\":\"refused\",\"parts\":[]}");
    ended(run, TIDE_AGENT_FAILED, "the model refused");
    tide_agent_run *cut = run_new(3);
    say(cut, "{\"text\":\"half a\",\"stop\":\"length\",\"parts\":[{\"text\":\"half a\"}]}");
    ended(cut, TIDE_AGENT_LIMIT, "half a");
    tide_agent_run_free(cut);
}

CASE(an_answer_that_is_none_changes_nothing)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "no",
        "{\"parts\":1}",
        "{\"parts\":[1]}",
        "{\"parts\":[{\"call\":{\"id\":\"a\"}}]}",
        "{\"parts\":[{\"call\":{\"id\":\"a\",\"name\":\"look\",\"arguments\":\"{}\"}}]}",
        "{\"parts\":[{\"call\":7}]}"};
    tide_auto_buf before = heap_buf(1 << 20), after = heap_buf(1 << 20);
    OK(tide_agent_run_write(run, &before, NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(tide_agent_take(run, tide_text_of(wrong[i]), NULL), TIDE_INVALID);
    OK(tide_agent_run_write(run, &after, NULL));
    assert_string_equal(before.data, after.data);
}

/* AGR4: stored and read after each step, it comes to the same end. */
TEST(a_run_that_is_read_again_after_each_step_ends_the_same)
{
    const long rounds = (long)scaled(2000);
    for (long round = 0; round < rounds; round++) {
        tide_rng rng = tide_rng_seeded((uint64_t)round);
        tide_agent_run *kept = run_new(1 + (uint32_t)tide_rng_below(&rng, 6));
        tide_auto_buf line = heap_buf(1 << 20);
        OK(tide_agent_run_write(kept, &line, NULL));
        while (tide_agent_next_of(kept) != TIDE_AGENT_ENDED) {
            static const char *const answers[] = {
                ANSWER(CALL("c1", "look")), ANSWER(CALL("c1", "rm") "," CALL("c2", "label")),
                ANSWER("{\"opaque\":{\"x\":1}}," CALL("c1", "label") "," CALL("c2", "no")),
                LAST("done")};
            tide_agent_run *read = NULL;
            OK(tide_agent_run_read((tide_text){line.data, line.bytes}, tide_mem_heap(), &read,
                                   NULL));
            assert_int_equal(tide_agent_next_of(read), tide_agent_next_of(kept));
            const uint64_t choice = tide_rng_below(&rng, 4);
            for (int i = 0; i < 2; i++) {
                tide_agent_run *one = i == 0 ? kept : read;
                if (tide_agent_next_of(one) == TIDE_AGENT_ASK)
                    say(one, answers[choice]);
                else
                    OK(tide_agent_result(one, tide_text_of("r\xff"), choice == 0, choice, NULL));
            }
            tide_auto_buf other = heap_buf(1 << 20);
            tide_buf_clear(&line);
            OK(tide_agent_run_write(kept, &line, NULL));
            OK(tide_agent_run_write(read, &other, NULL));
            assert_string_equal(line.data, other.data);
            tide_agent_run_free(read);
        }
        tide_agent_run_free(kept);
    }
}

TEST(what_is_not_a_run_is_refused)
{
    static const char *const wrong[] = {"", "{}", "[]", "{\"status\":\"running\"}",
                                        "{\"status\":\"asleep\",\"profile\":\"\",\"final\":\"\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tide_agent_run *run = NULL;
        assert_int_equal(tide_agent_run_read(tide_text_of(wrong[i]), tide_mem_heap(), &run, NULL),
                         TIDE_INVALID);
        assert_null(run);
    }
}
