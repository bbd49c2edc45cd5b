/* Conversations and answers as JSON (TLK1), what they cost, and JSON in answers. */
#include "chat_client_fixture.h"

#define GOOD(call) assert_int_equal((call), TIDE_OK)

static const struct tide_chat_part first[] = {{.kind = TIDE_CHAT_TEXT,
                                               .text = {"Gr\xc3\xbc\xc3\x9f"
                                                        "e \"x\"\n",
                                                        12}}};
static const struct tide_chat_part second[] = {
    {.kind = TIDE_CHAT_OPAQUE, .text = {"{\"type\":\"thinking\",\"n\":1}", 25}},
    {.kind = TIDE_CHAT_TEXT, .text = {"Let me see.", 11}},
    {.kind = TIDE_CHAT_CALL, .id = {"c1", 2}, .name = {"f", 1}, .arguments = {"{\"a\":1}", 7}},
    {.kind = TIDE_CHAT_CALL,
     .id = {"c2", 2},
     .name = {"g", 1},
     .arguments = {"{}", 2},
     .invalid = true,
     .unknown = true}};
static const struct tide_chat_part third[] = {
    {.kind = TIDE_CHAT_RESULT, .id = {"c1", 2}, .text = {"ok", 2}},
    {.kind = TIDE_CHAT_RESULT, .id = {"c2", 2}, .text = {"no such tool", 12}, .failed = true}};
static const struct tide_chat_message turns[] = {
    {TIDE_CHAT_USER, first, 1}, {TIDE_CHAT_ASSISTANT, second, 4}, {TIDE_CHAT_USER, third, 2}};
static const struct tide_chat_tool tool[] = {
    {{"f", 1}, {"does f", 6}, {"{\"type\":\"object\"}", 17}}};
static const struct tide_chat_talk whole = {.model = {"m", 1},
                                            .system = {"Be kind.", 8},
                                            .messages = turns,
                                            .messages_count = 3,
                                            .tools = tool,
                                            .tools_count = 1,
                                            .choice = TIDE_CHAT_CHOICE_NAMED,
                                            .choice_name = {"f", 1},
                                            .json = true,
                                            .schema = {"{\"type\":\"object\"}", 17},
                                            .tokens_max = 77,
                                            .has_temperature = true,
                                            .temperature_milli = 0};

TEST(a_conversation_reads_back_the_same)
{
    struct tide_chat_stored stored = {.talk = {.messages_count = 0}};
    tide_auto_buf line = tide_buf_heap(1 << 20);
    tide_auto_buf again = tide_buf_heap(1 << 20);
    GOOD(tide_chat_talk_write(&whole, &line, NULL));
    GOOD(tide_chat_talk_read(tide_buf_text(&line), tide_mem_heap(), &stored, NULL));
    GOOD(tide_chat_talk_write(&stored.talk, &again, NULL));
    assert_string_equal(tide_buf_cstr(&line), tide_buf_cstr(&again));
    assert_int_equal(stored.talk.choice, TIDE_CHAT_CHOICE_NAMED);
    assert_true(stored.talk.has_temperature);
    assert_int_equal(stored.talk.tokens_max, 77);
    assert_true(tide_text_equal(stored.talk.messages[0].parts[0].text, first[0].text));
    assert_true(stored.talk.messages[2].parts[1].failed);
    assert_true(stored.talk.messages[1].parts[3].invalid &&
                stored.talk.messages[1].parts[3].unknown);
    assert_int_equal(tide_chat_cost_of(&stored.talk, 0), tide_chat_cost_of(&whole, 0));
    tide_chat_stored_done(&stored);
    tide_chat_stored_done(&stored); /* twice is fine */
    /* Defaults are left out. */
    tide_buf_clear(&line);
    const struct tide_chat_talk small = {.messages = turns, .messages_count = 1};
    GOOD(tide_chat_talk_write(&small, &line, NULL));
    GOOD(tide_chat_talk_read(tide_buf_text(&line), tide_mem_heap(), &stored, NULL));
    assert_false(stored.talk.json || stored.talk.has_temperature);
    assert_int_equal(stored.talk.choice, TIDE_CHAT_CHOICE_AUTO);
    assert_int_equal(stored.talk.tools_count, 0);
    tide_chat_stored_done(&stored);
}

TEST(what_is_not_a_conversation_is_refused_by_its_field)
{
    static const struct {
        const char *json;
        const char *field;
    } rows[] = {
        {"{}", "messages"},
        {"{\"messages\":{}}", "messages"},
        {"{\"messages\":[{}]}", "role"},
        {"{\"messages\":[{\"role\":\"system\",\"parts\":[]}]}", "role"},
        {"{\"messages\":[{\"role\":\"user\"}]}", "parts"},
        {"{\"messages\":[{\"role\":\"user\",\"parts\":[{}]}]}", "parts"},
        {"{\"messages\":[{\"role\":\"user\",\"parts\":[{\"text\":1}]}]}", "parts"},
        {"{\"messages\":[{\"role\":\"user\",\"parts\":[{\"call\":{\"id\":\"x\"}}]}]}", "call"},
        {"{\"messages\":[{\"role\":\"user\",\"parts\":[{\"call\":{\"id\":\"x\",\"name\":\"f\","
         "\"arguments\":\"{}\"}}]}]}",
         "arguments"},
        {"{\"messages\":[],\"tools\":[{}]}", "tools"},
        {"{\"messages\":[],\"choice\":\"maybe\"}", "choice"},
        {"{\"messages\":[],\"choice\":\"tool:\"}", "choice"},
        {"{\"messages\":[],\"tokens_max\":-1}", "tokens_max"},
        {"{\"messages\":[],\"temperature_milli\":2001}", "temperature_milli"},
        {"{\"messages\":[],\"schema\":[]}", "schema"},
        {"{\"messages\":[],\"system\":5}", "system"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tide_chat_stored stored = {.talk = {.messages_count = 0}};
        tide_error err = {TIDE_OK, 0, ""};
        assert_int_equal(
            tide_chat_talk_read(tide_text_of(rows[i].json), tide_mem_heap(), &stored, &err),
            TIDE_INVALID);
        if (strstr(err.text, rows[i].field) == NULL)
            fail_msg("%s: %s", rows[i].json, err.text);
    }
    struct tide_chat_answer answer = {.calls_count = 0};
    assert_int_equal(
        tide_chat_answer_read(TIDE_TEXT("{\"parts\":[]}"), tide_mem_heap(), &answer, NULL),
        TIDE_INVALID);
    assert_int_equal(tide_chat_answer_read(TIDE_TEXT("no"), tide_mem_heap(), &answer, NULL),
                     TIDE_INVALID);
}

TEST(an_answer_reads_back_the_same)
{
    struct tide_chat_answer answer = {.text = TIDE_TEXT("Let me see."),
                                      .message = {TIDE_CHAT_ASSISTANT, second, 4},
                                      .stop = TIDE_CHAT_STOP_TOOLS,
                                      .in_tokens = 12,
                                      .out_tokens = 34,
                                      .tokens_known = true,
                                      .request_id = "req_1",
                                      .model = "m",
                                      .latency_ms = 56};
    struct tide_chat_answer read = {.calls_count = 0};
    tide_auto_buf line = tide_buf_heap(1 << 20);
    tide_auto_buf again = tide_buf_heap(1 << 20);
    GOOD(tide_chat_answer_write(&answer, &line, NULL));
    GOOD(tide_chat_answer_read(tide_buf_text(&line), tide_mem_heap(), &read, NULL));
    GOOD(tide_chat_answer_write(&read, &again, NULL));
    assert_string_equal(tide_buf_cstr(&line), tide_buf_cstr(&again));
    assert_int_equal(read.calls_count, 2);
    assert_true(read.calls[1].unknown);
    assert_int_equal(read.stop, TIDE_CHAT_STOP_TOOLS);
    tide_chat_answer_done(&read);
    tide_chat_answer_done(&read);
}

TEST(every_failed_allocation_of_reading_is_survived)
{
    tide_auto_buf line = tide_buf_heap(1 << 20);
    GOOD(tide_chat_talk_write(&whole, &line, NULL));
    for (uint64_t at = 0;; at++) {
        struct tide_mem_faulty mem;
        struct tide_chat_stored stored = {.talk = {.messages_count = 0}};
        tide_mem_faulty_once(&mem, at);
        const tide_status rc = tide_chat_talk_read(tide_buf_text(&line), &mem.base, &stored, NULL);
        assert_int_equal(rc, mem.fired ? TIDE_NO_MEMORY : TIDE_OK);
        tide_chat_stored_done(&stored);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired)
            break;
    }
}

/* On the high side: at least what four bytes for a token would give, and all of the answer. */
TEST(the_cost_grows_with_what_is_said_and_what_may_be_answered)
{
    const uint64_t cost = tide_chat_cost_of(&hello, 0);
    assert_true(cost > 500 && cost < 600);
    assert_int_equal(tide_chat_cost_of(&hello, 100), cost - 400);
    struct tide_chat_talk talk = hello;
    talk.tokens_max = 0;
    assert_int_equal(tide_chat_cost_of(&talk, 0), cost - 500 + 1024);
    char *long_text = malloc(400000);
    assert_non_null(long_text);
    memset(long_text, 'a', 400000);
    talk.system = (tide_text){long_text, 400000};
    assert_true(tide_chat_cost_of(&talk, 0) > 100000);
    assert_true(tide_chat_cost_of(&tooled, 1) > tide_chat_cost_of(&hello, 1) + 50);
    free(long_text);
}
