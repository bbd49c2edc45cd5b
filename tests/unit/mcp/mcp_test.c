/* mcp_test.c - the Model Context Protocol without its pipes: which line gets which order, what
 * arguments are refused, and what is removed from text (reads only; hostile text is data). */
#include "support/test.h"

#include "mcp/clean.h"
#include "mcp/session.h"

/* ---- a session with two tools ---- */

static tide_status run_never(struct tide_tool_call *call)
{
    (void)call;
    fail_msg("a session runs no tool");
    return TIDE_OK;
}

static const struct tide_tool_argument arguments[] = {
    {"word", TIDE_TOOL_TEXT, true, 1, 5, NULL, "A word."},
    {"order", TIDE_TOOL_TEXT, false, 0, 0, "up down", "Which way."},
    {"count", TIDE_TOOL_NUMBER, false, 1, 10, NULL, "How many."},
    {"loud", TIDE_TOOL_FLAG, false, 0, 0, NULL, "Whether loud."},
    {NULL, TIDE_TOOL_TEXT, false, 0, 0, NULL, NULL},
};
static const struct tide_tool say = {"say",    "Say", "Says.", arguments, "{\"type\":\"object\"}",
                                     run_never};
static const struct tide_tool look = {"look",   "Look", "Looks.", NULL, "{\"type\":\"object\"}",
                                      run_never};
static const struct tide_tool *const tools[] = {&say, &look, NULL};

struct fixture {
    struct tide_mcp_session session;
    struct tide_mcp_order order;
    tide_buf reply;
    json_t *parsed; /* the reply; NULL: there is none */
};

static int begin(void **state)
{
    static struct fixture fixture;
    fixture =
        (struct fixture){.session = {.tools = tools, .instructions = "Read.", .version = "1.2.3"}};
    tide_buf_init(&fixture.reply, NULL, TIDE_MCP_REPLY_BYTES_MAX);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;
    tide_mcp_order_done(&f->order);
    json_decref(f->parsed);
    tide_buf_done(&f->reply);
    return 0;
}

/* Feeds a line; every reply is one line of JSON-RPC. */
static tide_mcp_what feed(struct fixture *f, const char *line)
{
    tide_mcp_order_done(&f->order);
    json_decref(f->parsed);
    f->parsed = NULL;
    tide_buf_clear(&f->reply);
    assert_int_equal(tide_mcp_feed(&f->session, tide_text_of(line), &f->order, &f->reply), TIDE_OK);
    assert_int_equal(f->order.what == TIDE_MCP_REPLY, f->reply.bytes > 0);
    if (f->reply.bytes == 0)
        return f->order.what;
    const char *text = tide_buf_cstr(&f->reply);
    assert_ptr_equal(memchr(text, '\n', f->reply.bytes), text + f->reply.bytes - 1);
    assert_int_equal(tide_json_parse((tide_text){text, f->reply.bytes - 1}, &f->parsed, NULL),
                     TIDE_OK);
    assert_string_equal(json_string_value(json_object_get(f->parsed, "jsonrpc")), "2.0");
    return f->order.what;
}

static int code(const struct fixture *f)
{
    return (int)json_integer_value(json_object_get(json_object_get(f->parsed, "error"), "code"));
}

static const json_t *result(const struct fixture *f)
{
    return json_object_get(f->parsed, "result");
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static void initialize(struct fixture *f)
{
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                             "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}}"),
                     TIDE_MCP_REPLY);
    assert_non_null(result(f));
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"),
                     TIDE_MCP_NOTHING);
}

/* ---- versions ---- */

TEST_ON(the_version_is_the_clients_or_the_newest_before_it, struct fixture *f, begin, end)
{
    static const char *const asked[][2] = {
        {"2025-11-25", "2025-11-25"}, {"2025-06-18", "2025-06-18"}, {"2024-11-05", "2024-11-05"},
        {"2025-03-26", "2024-11-05"}, /* demands arrays of messages, and is not offered */
        {"2027-01-01", "2025-11-25"}, {"1999-01-01", "2025-11-25"}, {"", "2025-11-25"},
        {"draft", "2025-11-25"},
    };
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        char line[300];
        f->session.initialized = false;
        (void)snprintf(line, sizeof line,
                       "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"initialize\",\"params\":{"
                       "\"protocolVersion\":\"%s\"}}",
                       asked[i][0]);
        assert_int_equal(feed(f, line), TIDE_MCP_REPLY);
        assert_string_equal(text_at(result(f), "protocolVersion"), asked[i][1]);
        assert_string_equal(text_at(f->parsed, "id"), "a");
        assert_string_equal(text_at(json_object_get(result(f), "serverInfo"), "version"), "1.2.3");
        assert_non_null(json_object_get(json_object_get(result(f), "capabilities"), "tools"));
    }
}

TEST_ON(before_initialize_only_a_ping_is_answered, struct fixture *f, begin, end)
{
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"), TIDE_MCP_REPLY);
    assert_non_null(result(f));
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}"),
                     TIDE_MCP_REPLY);
    assert_int_equal(code(f), TIDE_RPC_NOT_REQUEST);
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{"
                             "\"name\":\"look\"}}"),
                     TIDE_MCP_REPLY);
    assert_int_equal(code(f), TIDE_RPC_NOT_REQUEST);
    initialize(f);
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"initialize\",\"params\":{"
                             "\"protocolVersion\":\"2025-06-18\"}}"),
                     TIDE_MCP_REPLY);
    assert_int_equal(code(f), TIDE_RPC_NOT_REQUEST);
}

/* ---- wrong lines ---- */

TEST_ON(a_wrong_line_gets_the_code_of_the_standard, struct fixture *f, begin, end)
{
    static const struct {
        const char *line;
        int code;
    } wrong[] = {
        {"{", TIDE_RPC_NOT_JSON},
        {"hello", TIDE_RPC_NOT_JSON},
        {"{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
         TIDE_RPC_NOT_JSON},
        {"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"ping\"}",
         TIDE_RPC_NOT_JSON},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", TIDE_RPC_NOT_JSON},
        {"[]", TIDE_RPC_NOT_REQUEST},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", TIDE_RPC_NOT_REQUEST},
        {"{}", TIDE_RPC_NOT_REQUEST},
        {"{\"id\":1,\"method\":\"ping\"}", TIDE_RPC_NOT_REQUEST},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", TIDE_RPC_NOT_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", TIDE_RPC_NOT_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", TIDE_RPC_NOT_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", TIDE_RPC_NOT_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", TIDE_RPC_NOT_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", TIDE_RPC_BAD_PARAMS},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}", TIDE_RPC_NO_METHOD},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}", TIDE_RPC_NOT_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}",
         TIDE_RPC_BAD_PARAMS},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", TIDE_RPC_BAD_PARAMS},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"fly\"}}",
         TIDE_RPC_BAD_PARAMS},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"look\","
         "\"arguments\":[]}}",
         TIDE_RPC_BAD_PARAMS},
    };
    initialize(f);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(feed(f, wrong[i].line), TIDE_MCP_REPLY);
        if (code(f) != wrong[i].code)
            fail_msg("%s: %d, not %d", wrong[i].line, code(f), wrong[i].code);
        assert_true(json_object_get(f->parsed, "id") != NULL);
    }
}

TEST_ON(a_line_beyond_the_limit_is_refused, struct fixture *f, begin, end)
{
    char *line = malloc(TIDE_RPC_LINE_BYTES_MAX + 2);
    assert_non_null(line);
    memset(line, ' ', TIDE_RPC_LINE_BYTES_MAX + 1);
    memcpy(line, "{}", 2);
    line[TIDE_RPC_LINE_BYTES_MAX + 1] = '\0';
    assert_int_equal(feed(f, line), TIDE_MCP_REPLY);
    assert_int_equal(code(f), TIDE_RPC_NOT_JSON);
    free(line);
}

TEST_ON(notifications_answers_and_blank_lines_get_no_reply, struct fixture *f, begin, end)
{
    static const char *const quiet[] = {
        "",
        "  \r",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/whatever\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/whatever\",\"params\":[1]}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}",
    };
    initialize(f);
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++)
        if (feed(f, quiet[i]) != TIDE_MCP_NOTHING)
            fail_msg("%s: %s", quiet[i], tide_buf_cstr(&f->reply));
}

/* ---- tools ---- */

TEST_ON(the_list_has_the_schema_of_every_argument, struct fixture *f, begin, end)
{
    initialize(f);
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"),
                     TIDE_MCP_REPLY);
    const json_t *list = json_object_get(result(f), "tools");
    assert_int_equal(json_array_size(list), 2);
    const json_t *one = json_array_get(list, 0);
    const json_t *schema = json_object_get(one, "inputSchema");
    const json_t *fields = json_object_get(schema, "properties");
    assert_string_equal(text_at(one, "name"), "say");
    assert_true(json_is_true(json_object_get(json_object_get(one, "annotations"), "readOnlyHint")));
    assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    assert_int_equal(json_array_size(json_object_get(schema, "required")), 1);
    assert_string_equal(text_at(json_object_get(fields, "count"), "type"), "integer");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(fields, "count"), "maximum")), 10);
    assert_int_equal(json_array_size(json_object_get(json_object_get(fields, "order"), "enum")), 2);
    assert_string_equal(text_at(json_object_get(fields, "loud"), "type"), "boolean");
    assert_true(json_is_object(json_object_get(one, "outputSchema")));
}

TEST_ON(arguments_that_do_not_fit_are_a_result_that_says_why, struct fixture *f, begin, end)
{
    static const char *const wrong[][2] = {
        {"{}", "word is missing"},
        {"{\"word\":7}", "word must be a text"},
        {"{\"word\":null}", "word must be a text"},
        {"{\"word\":\"\"}", "1 to 5 bytes, not 0"},
        {"{\"word\":\"sixsix\"}", "1 to 5 bytes, not 6"},
        {"{\"word\":\"a\",\"order\":\"side\"}", "order must be one of: up down"},
        {"{\"word\":\"a\",\"order\":\"\"}", "order must be one of: up down"},
        {"{\"word\":\"a\",\"count\":0}", "count must be a whole number from 1 to 10"},
        {"{\"word\":\"a\",\"count\":11}", "count must be a whole number from 1 to 10"},
        {"{\"word\":\"a\",\"count\":-1}", "count must be a whole number from 1 to 10"},
        {"{\"word\":\"a\",\"count\":1.5}", "count must be a whole number from 1 to 10"},
        {"{\"word\":\"a\",\"loud\":1}", "loud must be true or false"},
        {"{\"word\":\"a\",\"path\":\"/etc\"}", "say has no argument \"path\""},
    };
    initialize(f);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[400];
        (void)snprintf(line, sizeof line,
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"say\",\"arguments\":%s}}",
                       wrong[i][0]);
        assert_int_equal(feed(f, line), TIDE_MCP_REPLY);
        assert_true(json_is_true(json_object_get(result(f), "isError")));
        const char *text =
            text_at(json_array_get(json_object_get(result(f), "content"), 0), "text");
        if (strstr(text, wrong[i][1]) == NULL)
            fail_msg("%s: %s", wrong[i][0], text);
    }
}

TEST_ON(a_call_that_fits_is_an_order, struct fixture *f, begin, end)
{
    initialize(f);
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\","
                             "\"params\":{\"name\":\"say\",\"arguments\":{\"word\":\"abc\","
                             "\"order\":\"down\",\"count\":10,\"loud\":true}}}"),
                     TIDE_MCP_CALL);
    assert_ptr_equal(f->order.tool, &say);
    assert_string_equal(json_string_value(f->order.id), "x");
    const struct tide_tool_call call = {.arguments = f->order.arguments};
    assert_string_equal(tide_tool_text(&call, "word"), "abc");
    assert_int_equal(tide_tool_number(&call, "count", 3), 10);
    assert_int_equal(tide_tool_number(&call, "absent", 3), 3);
    assert_true(tide_tool_flag(&call, "loud"));
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","
                             "\"params\":{\"name\":\"look\"}}"),
                     TIDE_MCP_CALL);
    assert_null(f->order.arguments);
    assert_int_equal(feed(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                             "\"params\":{\"requestId\":\"x\",\"reason\":\"enough\"}}"),
                     TIDE_MCP_CANCEL);
    assert_string_equal(json_string_value(f->order.id), "x");
}

/* ---- results ---- */

static json_t *answered(struct fixture *f)
{
    json_decref(f->parsed);
    f->parsed = NULL;
    assert_int_equal(tide_json_parse((tide_text){tide_buf_cstr(&f->reply), f->reply.bytes - 1},
                                     &f->parsed, NULL),
                     TIDE_OK);
    return json_object_get(f->parsed, "result");
}

/* Goal: text of a mail cannot end the line, the JSON or the screen.  Method: every control
 * character, hidden tag characters and bytes that are not UTF-8, read back from both forms. */
TEST_ON(hostile_text_stays_text, struct fixture *f, begin, end)
{
    static const char hostile[] = "a\x1b[2J\x01\x7f\xc2\x9b" /* terminal, marks, C1 */
                                  "b\xe2\x80\xae"            /* right to left */
                                  "c\xf3\xa0\x81\x81"        /* a tag character: hidden A */
                                  "\xff\n\"}]}\n\td";
    tide_json made, inner;
    tide_json_object(&made);
    tide_json_object(&inner);
    tide_json_set_text(&inner, "text", TIDE_TEXT(hostile));
    tide_json_set(&made, TIDE_TOOL_UNTRUSTED, &inner);
    tide_buf_clear(&f->reply);
    json_t *id = json_integer(7);
    assert_int_equal(tide_mcp_answer(id, TIDE_OK, &made, NULL, NULL, &f->reply), TIDE_OK);
    json_decref(id);
    const json_t *back = answered(f);
    const char *clean = "a[2Jbc\xef\xbf\xbd\n\"}]}\n\td";
    const json_t *structured = json_object_get(back, "structuredContent");
    assert_string_equal(text_at(json_object_get(structured, "untrusted"), "text"), clean);
    json_t *again = NULL;
    const char *text = text_at(json_array_get(json_object_get(back, "content"), 0), "text");
    assert_int_equal(tide_json_parse(tide_text_of(text), &again, NULL), TIDE_OK);
    assert_true(json_equal(again, structured));
    json_decref(again);
}

TEST_ON(a_result_beyond_the_limit_is_an_error, struct fixture *f, begin, end)
{
    tide_json made;
    char *large = malloc(TIDE_MCP_RESULT_BYTES_MAX + 1);
    assert_non_null(large);
    memset(large, 'x', TIDE_MCP_RESULT_BYTES_MAX);
    large[TIDE_MCP_RESULT_BYTES_MAX] = '\0';
    tide_json_object(&made);
    tide_json_set_cstr(&made, "text", large);
    free(large);
    tide_buf_clear(&f->reply);
    assert_int_equal(tide_mcp_answer(NULL, TIDE_OK, &made, NULL, NULL, &f->reply), TIDE_OK);
    assert_true(json_is_true(json_object_get(answered(f), "isError")));
}

TEST_ON(an_error_of_a_tool_has_its_hint, struct fixture *f, begin, end)
{
    tide_buf_clear(&f->reply);
    assert_int_equal(
        tide_mcp_answer(NULL, TIDE_NOT_FOUND, NULL, "no \x1b[1mmail", "Sync first.", &f->reply),
        TIDE_OK);
    const json_t *back = answered(f);
    assert_true(json_is_true(json_object_get(back, "isError")));
    assert_string_equal(text_at(json_array_get(json_object_get(back, "content"), 0), "text"),
                        "no [1mmail\nSync first.");
}

/* ---- cleaning ---- */

/* Every character, alone: valid UTF-8 comes out, and cleaning it again changes nothing (CLN1). */
TEST(cleaning_twice_is_cleaning_once)
{
    tide_auto_buf once = tide_buf_heap(64);
    tide_auto_buf twice = tide_buf_heap(64);
    size_t removed = 0;
    for (uint32_t code = 0; code < 0x110000; code++) {
        char bytes[4];
        size_t count = 0;
        if (code < 0x80) {
            bytes[count++] = (char)code;
        } else if (code < 0x800) {
            bytes[count++] = (char)(0xc0 | code >> 6);
            bytes[count++] = (char)(0x80 | (code & 0x3f));
        } else if (code < 0x10000) {
            bytes[count++] = (char)(0xe0 | code >> 12);
            bytes[count++] = (char)(0x80 | (code >> 6 & 0x3f));
            bytes[count++] = (char)(0x80 | (code & 0x3f));
        } else {
            bytes[count++] = (char)(0xf0 | code >> 18);
            bytes[count++] = (char)(0x80 | (code >> 12 & 0x3f));
            bytes[count++] = (char)(0x80 | (code >> 6 & 0x3f));
            bytes[count++] = (char)(0x80 | (code & 0x3f));
        }
        tide_buf_clear(&once);
        tide_buf_clear(&twice);
        assert_int_equal(tide_clean_text((tide_text){bytes, count}, &once), TIDE_OK);
        assert_int_equal(tide_clean_text(tide_buf_text(&once), &twice), TIDE_OK);
        assert_true(tide_text_equal(tide_buf_text(&once), tide_buf_text(&twice)));
        removed += once.bytes == 0;
    }
    /* 30 of C0, 33 of DEL and C1, 33 single ones and short ranges, 0x1000 hidden ones. */
    assert_int_equal(removed, 30 + 33 + 33 + 0x1000);
}
