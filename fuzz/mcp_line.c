/* mcp_line.c - lines from a client of `tidemark mcp`: any bytes give a valid order, every reply is
 * one line of JSON-RPC, and no call has arguments that do not fit its table. */
#include "fuzz.h"
#include "mcp/clean.h"
#include "mcp/session.h"

static tide_status run_never(struct tide_tool_call *call)
{
    (void)call;
    abort();
}

static const struct tide_tool_argument arguments[] = {
    {"word", TIDE_TOOL_TEXT, true, 1, 20, NULL, "A word."},
    {"order", TIDE_TOOL_TEXT, false, 0, 0, "up down", "Which way."},
    {"count", TIDE_TOOL_NUMBER, false, 1, 10, NULL, "How many."},
    {"loud", TIDE_TOOL_FLAG, false, 0, 0, NULL, "Whether loud."},
    {NULL, TIDE_TOOL_TEXT, false, 0, 0, NULL, NULL},
};
static const struct tide_tool say = {"say", "Say", "Says.", arguments, "{}", run_never};
static const struct tide_tool *const tools[] = {&say, NULL};

static void reply_check(const tide_buf *reply)
{
    json_t *parsed = NULL;
    const char *text = tide_buf_cstr(reply);
    TIDE_ASSERT(reply->bytes > 1 && text[reply->bytes - 1] == '\n');
    TIDE_ASSERT(memchr(text, '\n', reply->bytes - 1) == NULL);
    TIDE_ASSERT(tide_json_parse((tide_text){text, reply->bytes - 1}, &parsed, NULL) == TIDE_OK);
    const bool result = json_object_get(parsed, "result") != NULL;
    TIDE_ASSERT(result != (json_object_get(parsed, "error") != NULL));
    TIDE_ASSERT(json_object_get(parsed, "id") != NULL);
    json_decref(parsed);
}

static void call_check(const struct tide_mcp_order *order)
{
    const struct tide_tool_call call = {.arguments = order->arguments};
    const char *word = tide_tool_text(&call, "word");
    const char *way = tide_tool_text(&call, "order");
    const uint64_t count = tide_tool_number(&call, "count", 1);
    TIDE_ASSERT(order->tool == &say && order->id != NULL);
    TIDE_ASSERT(word != NULL && word[0] != '\0' && strlen(word) <= 20);
    TIDE_ASSERT(way == NULL || strcmp(way, "up") == 0 || strcmp(way, "down") == 0);
    TIDE_ASSERT(count >= 1 && count <= 10);
    (void)tide_tool_flag(&call, "loud");
}

/* The arguments come back as a result: what a client sent is hostile text as well. */
static void answer_check(const struct tide_mcp_order *order)
{
    tide_auto_buf reply = tide_buf_heap(TIDE_MCP_REPLY_BYTES_MAX);
    tide_json result = {.value = json_deep_copy(order->arguments)};
    TIDE_ASSERT(tide_mcp_answer(order->id, TIDE_OK, &result, NULL, NULL, &reply) == TIDE_OK);
    reply_check(&reply);
}

static void line_feed(struct tide_mcp_session *session, tide_text line)
{
    struct tide_mcp_order order;
    tide_auto_buf reply = tide_buf_heap(TIDE_MCP_REPLY_BYTES_MAX);
    const bool began = session->initialized;
    const tide_text exact = fuzz_exact(line);
    TIDE_ASSERT(tide_mcp_feed(session, exact, &order, &reply) == TIDE_OK);
    TIDE_ASSERT((order.what == TIDE_MCP_REPLY) == (reply.bytes > 0));
    if (order.what == TIDE_MCP_REPLY)
        reply_check(&reply);
    if (order.what == TIDE_MCP_CALL) {
        TIDE_ASSERT(began);
        call_check(&order);
        answer_check(&order);
    }
    TIDE_ASSERT(order.what != TIDE_MCP_CANCEL || order.id != NULL);
    tide_mcp_order_done(&order);
    free((void *)(uintptr_t)exact.data);
}

static void clean_check(tide_text text)
{
    tide_auto_buf once = tide_buf_heap(text.bytes * 3 + 1);
    tide_auto_buf twice = tide_buf_heap(text.bytes * 3 + 1);
    TIDE_ASSERT(tide_clean_text(text, &once) == TIDE_OK);
    TIDE_ASSERT(tide_clean_text(tide_buf_text(&once), &twice) == TIDE_OK);
    TIDE_ASSERT(tide_text_equal(tide_buf_text(&once), tide_buf_text(&twice)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    struct tide_mcp_session session = {.tools = tools, .instructions = "", .version = "0"};
    clean_check((tide_text){(const char *)data, bytes});
    /* Whether it begins with a handshake: most lines are refused without one. */
    if (fuzz_u8(&input) != '!')
        line_feed(&session, TIDE_TEXT("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\","
                                      "\"params\":{\"protocolVersion\":\"2025-06-18\"}}"));
    while (fuzz_more(&input))
        line_feed(&session, fuzz_text(&input, '\n'));
    return 0;
}
