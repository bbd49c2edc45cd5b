/* Answers in odd shapes and every split (ITK1 to ITK4). */
#include "chat_client_fixture.h"

#include "cloud/chat/intake.h"

#define GOOD(call) assert_int_equal((call), TIDE_OK)

struct taken {
    tide_status status;
    tide_error err;
    struct tide_chat_answer answer;
};

static const struct tide_chat_tool known[] = {{{"f", 1}, {"", 0}, {"{}", 2}}};
static const struct tide_chat_talk talk = {.tools = known, .tools_count = 1};

static void take_in(const struct tide_chat_reader *reader, tide_text text, size_t piece, size_t max,
                    struct taken *taken)
{
    struct tide_chat_intake intake;
    tide_chat_intake_init(&intake, reader, max, tide_mem_heap());
    for (size_t at = 0; at < text.bytes; at += piece)
        (void)tide_chat_intake_write(&intake, text.data + at,
                                     text.bytes - at < piece ? text.bytes - at : piece);
    memset(taken, 0, sizeof *taken);
    taken->status = tide_chat_intake_end(&intake, &talk, &taken->answer, &taken->err);
    assert_true(taken->status == TIDE_OK || taken->err.text[0] != '\0');
    tide_chat_intake_done(&intake);
}

/* "text|name(arguments)flags|...|stop" */
static const char *shown(const struct taken *taken)
{
    static char room[2000];
    const struct tide_chat_answer *answer = &taken->answer;
    size_t bytes = (size_t)snprintf(room, sizeof room, "%s", answer->text.data);
    for (size_t i = 0; i < answer->calls_count; i++)
        bytes += (size_t)snprintf(
            room + bytes, sizeof room - bytes, "|%s:%s(%s)%s%s", answer->calls[i].id.data,
            answer->calls[i].name.data, answer->calls[i].arguments.data,
            answer->calls[i].invalid ? "!" : "", answer->calls[i].unknown ? "?" : "");
    (void)snprintf(room + bytes, sizeof room - bytes, "|%s", tide_chat_stop_name(answer->stop));
    return room;
}

static void expect(const struct tide_chat_reader *reader, const char *text, const char *result)
{
    struct taken taken;
    const size_t bytes = strlen(text);
    for (size_t piece = 1; piece <= bytes; piece += piece < 40 ? 1 : 37) {
        take_in(reader, tide_text_of(text), piece, 1000, &taken);
        if (taken.status != TIDE_OK)
            fail_msg("%s: %s: %s", text, tide_status_name(taken.status), taken.err.text);
        assert_string_equal(shown(&taken), result);
        tide_chat_answer_done(&taken.answer);
    }
}

static void expect_wrong(const struct tide_chat_reader *reader, const char *text,
                         tide_status status, const char *why)
{
    struct taken taken;
    for (size_t piece = 1; piece <= strlen(text) + 1; piece += piece < 40 ? 1 : 37) {
        take_in(reader, tide_text_of(text), piece, 1000, &taken);
        if (taken.status != status || strstr(taken.err.text, why) == NULL)
            fail_msg("%s: %s: \"%s\" has no \"%s\"", text, tide_status_name(taken.status),
                     taken.err.text, why);
    }
}

#define O        &tide_chat_reader_openai
#define A        &tide_chat_reader_anthropic
#define DELTA(d) "data: {\"choices\":[{\"delta\":{" d "}}]}\n\n"
#define END(why) "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"" why "\"}]}\n\n"
#define DONE     "data: [DONE]\n\n"
#define CALL(index, id, name, text)                                                                \
    DELTA("\"tool_calls\":[{\"index\":" index ",\"id\":\"" id "\",\"function\":{\"name\":\"" name  \
          "\",\"arguments\":\"" text "\"}}]")
#define MORE(index, text)                                                                          \
    DELTA("\"tool_calls\":[{\"index\":" index ",\"function\":{\"arguments\":\"" text "\"}}]")

TEST(openai_streams)
{
    expect(O, DELTA("\"content\":\"Hel\"") DELTA("\"content\":\"lo\"") END("stop") DONE,
           "Hello|done");
    expect(O, "\n\n" DELTA("\"content\":\"x\"") END("length") DONE, "x|length");
    expect(O, DELTA("\"content\":\"x\"") END("content_filter"), "x|refused"); /* without [DONE] */
    expect(O, DELTA("\"content\":\"x\"") DONE, "x|done");                     /* without a reason */
    expect(O, DELTA("\"content\":\"x\"") END("eos") DONE, "x|other");
    expect(O, DELTA("\"content\":null") DELTA("\"role\":\"assistant\"") END("stop") DONE, "|done");
    expect(O, DELTA("\"content\":[{\"type\":\"text\",\"text\":\"a\"}]") END("stop") DONE, "a|done");
    expect(O, DELTA("\"refusal\":\"No\"") DELTA("\"refusal\":\".\"") END("stop") DONE,
           "No.|refused");
    /* Calls in pieces, by their numbers, in any order. */
    expect(O,
           CALL("0", "c1", "f", "") MORE("0", "{\\\"a\\\"") MORE("0", ":1}")
               CALL("1", "c2", "g", "{}") END("tool_calls") DONE,
           "|c1:f({\"a\":1})|c2:g({})?|tools");
    expect(O,
           CALL("0", "c1", "f", "{") CALL("1", "c2", "f", "{") MORE("0", "}") MORE("1", "}")
               END("tool_calls") DONE,
           "|c1:f({})|c2:f({})|tools");
    /* Servers that number every call 0, or not at all. */
    expect(O, CALL("0", "c1", "f", "{}") CALL("0", "c2", "f", "{}") END("stop") DONE,
           "|c1:f({})|c2:f({})|tools");
    expect(O,
           DELTA("\"tool_calls\":[{\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":{"
                 "\"a\":2}}}]") END("stop") DONE,
           "|c1:f({\"a\":2})|tools");
    expect(O, CALL("0", "c1", "f", "") END("tool_calls") DONE, "|c1:f({})|tools");
    expect(O, CALL("0", "c1", "f", "{\\\"a") END("length") DONE, "|c1:f({})!|length");
    expect(O, CALL("0", "c1", "f", "[1]") END("tool_calls") DONE, "|c1:f({})!|tools");
    expect(O, CALL("0", "c1", "f", "{\\\"a\\\":1,\\\"a\\\":2}") END("tool_calls") DONE,
           "|c1:f({})!|tools");
    expect(O, DELTA("\"content\":\"x\"") END("tool_calls") DONE, "x|done"); /* but calls nothing */
    /* Without an id, one is made; without a name there is no call. */
    expect(O, CALL("0", "", "f", "{}") CALL("1", "", "f", "{}") END("stop") DONE,
           "|call_1:f({})|call_2:f({})|tools");
    expect_wrong(O, CALL("0", "c", "", "{}") END("stop") DONE, TIDE_SERVER, "without a name");
    /* Comments, and what comes after the end. */
    expect(O, ": PROCESSING\n\n" DELTA("\"content\":\"x\"") END("stop") DONE "data: junk\n\n",
           "x|done");
}

/* A character that is cut in two between events loses itself, not the answer. */
TEST(halves_of_characters_are_replaced)
{
    expect(O,
           DELTA("\"content\":\"a\xf0\x9f\"") DELTA("\"content\":\"\x98\x80"
                                                    "b\"") END("stop") DONE,
           "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
           "b|done");
    expect(O, DELTA("\"content\":\"a\\ud83d\"") DELTA("\"content\":\"\\ude00b\"") END("stop") DONE,
           "a\xef\xbf\xbd\xef\xbf\xbd"
           "b|done");
    expect(O, DELTA("\"content\":\"\\\\ud83d \\ud83d\\ude00 \xff\"") END("stop") DONE,
           "\\ud83d \xf0\x9f\x98\x80 \xef\xbf\xbd|done");
}

TEST(openai_whole)
{
    expect(O, "{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}",
           "Hi|done");
    expect(O, "  {\"choices\":[{\"message\":{\"content\":\"Hi\"}}]}\n", "Hi|done");
    expect(
        O,
        "{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"function\":"
        "{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}],\"error\":null}",
        "|c:f({})|tools");
    expect_wrong(O, "{\"choices\":[]}", TIDE_SERVER, "not one of a chat model");
    expect_wrong(O, "{}", TIDE_SERVER, "not one of a chat model");
    expect_wrong(O, "{\"choices\":[{\"message\":{\"content\":\"Hi", TIDE_SERVER, "broke off");
    expect_wrong(O, "{\"error\":{\"message\":\"m\",\"code\":\"rate_limit_exceeded\"}}",
                 TIDE_THROTTLED, "rate_limit_exceeded");
}

TEST(openai_streams_that_are_none)
{
    expect_wrong(O, "", TIDE_SERVER, "not one of a chat model");
    expect_wrong(O, " \r\n", TIDE_SERVER, "not one of a chat model");
    expect_wrong(O, DONE, TIDE_SERVER, "not one of a chat model");
    expect_wrong(O, "hello\n\n", TIDE_SERVER, "not one of a chat model");
    expect_wrong(O, DELTA("\"content\":\"x\""), TIDE_SERVER, "broke off");
    expect_wrong(O, DELTA("\"content\":\"x\"") "data: [DONE]\n", TIDE_SERVER, "broke off");
    expect_wrong(O, "data: [1]\n\n", TIDE_SERVER, "not a JSON object");
    expect_wrong(O, "data: {\"choices\n\n", TIDE_SERVER, "not a JSON object");
    expect_wrong(O, DELTA("\"content\":\"x\"") "data: {\"error\":{\"message\":\"m\"}}\n\n" DONE,
                 TIDE_SERVER, "500");
    /* ITK3: beyond the ceiling */
    char *text = calloc(1, 4000);
    assert_non_null(text);
    for (unsigned i = 0; i < 40; i++)
        (void)snprintf(text + strlen(text), 4000 - strlen(text), "%s",
                       DELTA("\"content\":\"01234567890123456789012345678\""));
    expect_wrong(O, text, TIDE_SERVER, "longer than 1000 bytes");
    free(text);
}

TEST(too_many_calls_are_refused)
{
    tide_auto_buf text = tide_buf_heap(1 << 20);
    struct taken taken;
    for (unsigned i = 0; i <= TIDE_CHAT_CALLS_MAX; i++)
        GOOD(tide_buf_print(&text,
                            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%u,"
                            "\"id\":\"c%u\",\"function\":{\"name\":\"f\"}}]}}]}\n\n",
                            i, i));
    GOOD(tide_buf_add_text(&text, END("stop") DONE));
    take_in(O, tide_buf_text(&text), 100, 1 << 20, &taken);
    assert_int_equal(taken.status, TIDE_SERVER);
    assert_non_null(strstr(taken.err.text, "more than 64 tools"));
}

#define E(json) "event: x\ndata: " json "\n\n"
#define START                                                                                      \
    E("{\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":9}}}")
#define TEXT(i)                                                                                    \
    E("{\"type\":\"content_block_start\",\"index\":" i                                             \
      ",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}")
#define SAY(i, t)                                                                                  \
    E("{\"type\":\"content_block_delta\",\"index\":" i                                             \
      ",\"delta\":{\"type\":\"text_delta\",\"text\":\"" t "\"}}")
#define USE(i, n)                                                                                  \
    E("{\"type\":\"content_block_start\",\"index\":" i                                             \
      ",\"content_block\":{\"type\":\"tool_use\",\"id\":\"u\",\"name\":\"" n "\",\"input\":{}}}")
#define ARG(i, t)                                                                                  \
    E("{\"type\":\"content_block_delta\",\"index\":" i                                             \
      ",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" t "\"}}")
#define WHY(r)                                                                                     \
    E("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" r                                \
      "\"},\"usage\":{\"output_tokens\":5}}")
#define STOP E("{\"type\":\"message_stop\"}")

TEST(anthropic_streams)
{
    expect(A,
           START E("{\"type\":\"ping\"}") TEXT("0") SAY("0", "Hel") SAY("0", "lo") WHY("end_turn")
               STOP,
           "Hello|done");
    expect(A,
           START TEXT("0") SAY("0", "a") USE("1", "f") ARG("1", "{\\\"x\\\"") ARG("1", ":1}")
               WHY("tool_use") STOP,
           "a|u:f({\"x\":1})|tools");
    expect(A, START USE("0", "f") WHY("tool_use") STOP, "|u:f({})|tools");
    expect(A, START USE("0", "g") ARG("0", "{\\\"x") WHY("max_tokens") STOP, "|u:g({})!?|length");
    expect(A, START WHY("refusal") STOP, "|refused");
    expect(A, START TEXT("0") SAY("0", "a") WHY("pause_turn") STOP, "a|other");
    expect(A, START TEXT("0") SAY("0", "a") WHY("model_context_window_exceeded"), "a|length");
    expect(A,
           START TEXT("0") SAY("0", "a") E(
               "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"citations_"
               "delta\",\"citation\":{}}}") E("{\"type\":\"something_new\"}") WHY("end_turn") STOP,
           "a|done");
    expect_wrong(A, START TEXT("0") SAY("0", "a"), TIDE_SERVER, "broke off");
    expect_wrong(A, START SAY("0", "a") WHY("end_turn") STOP, TIDE_SERVER, "no block");
    expect_wrong(A, TEXT("0") SAY("0", "a") WHY("end_turn") STOP, TIDE_SERVER, "not one of a");
    expect_wrong(
        A,
        START E("{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}"),
        TIDE_THROTTLED, "529");
}

TEST(anthropic_whole)
{
    expect(A,
           "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"Hi\"},{\"type\":"
           "\"tool_use\",\"id\":\"u\",\"name\":\"f\",\"input\":{\"a\":[1]}}],\"stop_reason\":"
           "\"tool_use\"}",
           "Hi|u:f({\"a\":[1]})|tools");
    expect(A,
           "{\"content\":[{\"type\":\"tool_use\",\"id\":\"u\",\"name\":\"f\",\"input\":5}],"
           "\"stop_reason\":\"tool_use\"}",
           "|u:f({})!|tools");
    /* Servers that imitate it name every field. */
    expect(A,
           "{\"type\":\"message\",\"error\":null,\"content\":[{\"type\":\"text\",\"text\":\"x\"}],"
           "\"stop_reason\":\"end_turn\"}",
           "x|done");
    expect_wrong(A, "{\"content\":[5]}", TIDE_SERVER, "not a JSON object");
    expect_wrong(A, "{\"content\":\"x\"}", TIDE_SERVER, "not one of a chat model");
    expect_wrong(A, "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"m\"}}",
                 TIDE_SERVER, "api_error");
}

#define THINK                                                                                      \
    E("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\","    \
      "\"thinking\":\"\",\"signature\":\"\"}}")
#define GROW(type, key, text)                                                                      \
    E("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"" type "\",\"" key      \
      "\":\"" text "\"}}")

TEST(an_opaque_block_grows_and_stays_whole)
{
    struct taken taken;
    take_in(A,
            tide_text_of(START THINK GROW("thinking_delta", "thinking", "Hm") GROW(
                "thinking_delta", "thinking", "m.") GROW("signature_delta", "signature", "s1")
                             GROW("signature_delta", "signature", "s2") TEXT("1") SAY("1", "Yes")
                                 WHY("end_turn") STOP),
            11, 1000, &taken);
    GOOD(taken.status);
    assert_int_equal(taken.answer.message.parts_count, 2);
    json_auto_t *value = json_loads(taken.answer.message.parts[0].text.data, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(value, "thinking")), "Hmm.");
    assert_string_equal(json_string_value(json_object_get(value, "signature")), "s1s2");
    assert_string_equal(taken.answer.text.data, "Yes");
    tide_chat_answer_done(&taken.answer);
    /* What grows in a way that is not known cannot be given back: it is dropped as a whole. */
    take_in(A,
            tide_text_of(START THINK GROW("dream_delta", "dream", "z") TEXT("1") SAY("1", "Yes")
                             WHY("end_turn") STOP),
            7, 1000, &taken);
    GOOD(taken.status);
    assert_int_equal(taken.answer.message.parts_count, 1);
    tide_chat_answer_done(&taken.answer);
    /* One that never ends has the ceiling of everything else. */
    tide_auto_buf text = tide_buf_heap(1 << 20);
    GOOD(tide_buf_add_text(&text, START THINK));
    for (unsigned i = 0; i < 200; i++)
        GOOD(tide_buf_add_text(&text, GROW("thinking_delta", "thinking", "0123456789")));
    take_in(A, tide_buf_text(&text), 50, 1000, &taken);
    assert_int_equal(taken.status, TIDE_SERVER);
    assert_non_null(strstr(taken.err.text, "longer than"));
}

TEST(counts_of_tokens_that_nobody_can_mean_are_not_believed)
{
    struct taken taken;
    take_in(O,
            TIDE_TEXT("{\"choices\":[{\"message\":{\"content\":\"Hi\"}}],\"usage\":{\"prompt_"
                      "tokens\":999999999999,\"completion_tokens\":-5}}"),
            9, 1000, &taken);
    GOOD(taken.status);
    assert_false(taken.answer.tokens_known);
    assert_true(taken.answer.in_tokens < 100 && taken.answer.out_tokens < 100);
    tide_chat_answer_done(&taken.answer);
    take_in(A,
            TIDE_TEXT("{\"content\":[],\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":"
                      "40,\"cache_creation_input_tokens\":500,\"output_tokens\":2}}"),
            9, 1000, &taken);
    GOOD(taken.status);
    assert_true(taken.answer.tokens_known);
    assert_int_equal(taken.answer.in_tokens, 543);
    assert_int_equal(taken.answer.out_tokens, 2);
    tide_chat_answer_done(&taken.answer);
}
