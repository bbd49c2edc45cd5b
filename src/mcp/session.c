#include "mcp/session.h"

#include "base/check.h"
#include "mcp/clean.h"

#include <stdio.h>
#include <string.h>

/* Newest first. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2024-11-05"};
enum { VERSIONS = sizeof versions / sizeof versions[0] };

/* ---- replies ---- */

static tide_status reply_error(struct tide_mcp_order *order, const json_t *id, int code,
                               const char *text, tide_buf *reply)
{
    order->what = TIDE_MCP_REPLY;
    return tide_rpc_error(id, code, text, reply);
}

static tide_status reply_result(struct tide_mcp_order *order, const json_t *id, tide_json *result,
                                tide_buf *reply)
{
    order->what = TIDE_MCP_REPLY;
    return tide_rpc_result(id, result, reply);
}

/* ---- initialize ---- */

static const char *version_choose(const char *asked)
{
    for (size_t i = 0; i < VERSIONS; i++)
        if (strcmp(versions[i], asked) <= 0)
            return versions[i];
    return versions[0]; /* older than all: the client decides */
}

static tide_status initialize(struct tide_mcp_session *session, const struct tide_rpc *rpc,
                              struct tide_mcp_order *order, tide_buf *reply)
{
    const char *asked = json_string_value(json_object_get(rpc->params, "protocolVersion"));
    tide_json result, capabilities, tools, server;
    if (session->initialized)
        return reply_error(order, rpc->id, TIDE_RPC_NOT_REQUEST,
                           "the session is initialized already", reply);
    if (asked == NULL)
        return reply_error(order, rpc->id, TIDE_RPC_BAD_PARAMS,
                           "protocolVersion is missing, or not a text", reply);
    tide_json_object(&result);
    tide_json_object(&capabilities);
    tide_json_object(&tools);
    tide_json_set_bool(&tools, "listChanged", false);
    tide_json_set(&capabilities, "tools", &tools);
    tide_json_object(&server);
    tide_json_set_cstr(&server, "name", "tidemark");
    tide_json_set_cstr(&server, "title", "Tidemark");
    tide_json_set_cstr(&server, "version", session->version);
    tide_json_set_cstr(&result, "protocolVersion", version_choose(asked));
    tide_json_set(&result, "capabilities", &capabilities);
    tide_json_set(&result, "serverInfo", &server);
    tide_json_set_cstr(&result, "instructions", session->instructions);
    const tide_status rc = reply_result(order, rpc->id, &result, reply);
    session->initialized = rc == TIDE_OK;
    return rc;
}

/* ---- tools ---- */

static void tool_describe(const struct tide_tool *tool, tide_json *json)
{
    tide_json schema, hints;
    tide_json_object(json);
    tide_json_set_cstr(json, "name", tool->name);
    tide_json_set_cstr(json, "title", tool->title);
    tide_json_set_cstr(json, "description", tool->meaning);
    tide_tool_schema(tool, &schema);
    tide_json_set(json, "inputSchema", &schema);
    tide_json_set_raw(json, "outputSchema", tide_text_of(tool->result));
    tide_json_object(&hints);
    tide_json_set_bool(&hints, "readOnlyHint", true);
    tide_json_set_bool(&hints, "destructiveHint", false);
    tide_json_set_bool(&hints, "idempotentHint", true);
    tide_json_set_bool(&hints, "openWorldHint", false);
    tide_json_set(json, "annotations", &hints);
}

/* All tools are on the first page. */
static tide_status tools_list(struct tide_mcp_session *session, const struct tide_rpc *rpc,
                              struct tide_mcp_order *order, tide_buf *reply)
{
    tide_json result, list;
    if (json_object_get(rpc->params, "cursor") != NULL)
        return reply_error(order, rpc->id, TIDE_RPC_BAD_PARAMS,
                           "there is no such page: the list has one", reply);
    tide_json_object(&result);
    tide_json_array(&list);
    for (size_t i = 0; session->tools[i] != NULL; i++) {
        tide_json one;
        tool_describe(session->tools[i], &one);
        tide_json_append(&list, &one);
    }
    tide_json_set(&result, "tools", &list);
    return reply_result(order, rpc->id, &result, reply);
}

static const struct tide_tool *tool_find(const struct tide_mcp_session *session, const char *name)
{
    for (size_t i = 0; session->tools[i] != NULL; i++)
        if (strcmp(session->tools[i]->name, name) == 0)
            return session->tools[i];
    return NULL;
}

/* Arguments that do not fit are the model's mistake, which it can correct: the answer is a result
 * that says so, not an error of the protocol. */
static tide_status tools_call(struct tide_mcp_session *session, const struct tide_rpc *rpc,
                              struct tide_mcp_order *order, tide_buf *reply)
{
    const char *name = json_string_value(json_object_get(rpc->params, "name"));
    json_t *arguments = json_object_get(rpc->params, "arguments");
    tide_error err = {TIDE_OK, 0, ""};
    char text[200];
    if (name == NULL)
        return reply_error(order, rpc->id, TIDE_RPC_BAD_PARAMS,
                           "the name of the tool is missing, or not a text", reply);
    if (arguments != NULL && !json_is_object(arguments))
        return reply_error(order, rpc->id, TIDE_RPC_BAD_PARAMS, "arguments must be an object",
                           reply);
    const struct tide_tool *tool = tool_find(session, name);
    if (tool == NULL) {
        (void)snprintf(text, sizeof text, "there is no tool \"%.100s\"; tools/list has them", name);
        return reply_error(order, rpc->id, TIDE_RPC_BAD_PARAMS, text, reply);
    }
    if (tide_tool_check(tool, arguments, &err) != TIDE_OK) {
        order->what = TIDE_MCP_REPLY;
        return tide_mcp_answer(rpc->id, err.status, NULL, err.text, NULL, reply);
    }
    order->what = TIDE_MCP_CALL;
    order->tool = tool;
    order->id = json_incref((json_t *)(uintptr_t)rpc->id);
    order->arguments = json_incref(arguments);
    return TIDE_OK;
}

/* ---- messages ---- */

static tide_status request(struct tide_mcp_session *session, const struct tide_rpc *rpc,
                           struct tide_mcp_order *order, tide_buf *reply)
{
    tide_json empty;
    char text[200];
    if (strcmp(rpc->method, "ping") == 0) {
        tide_json_object(&empty);
        return reply_result(order, rpc->id, &empty, reply);
    }
    if (strcmp(rpc->method, "initialize") == 0)
        return initialize(session, rpc, order, reply);
    if (!session->initialized)
        return reply_error(order, rpc->id, TIDE_RPC_NOT_REQUEST,
                           "the session is not initialized: send initialize first", reply);
    if (strcmp(rpc->method, "tools/list") == 0)
        return tools_list(session, rpc, order, reply);
    if (strcmp(rpc->method, "tools/call") == 0)
        return tools_call(session, rpc, order, reply);
    (void)snprintf(text, sizeof text, "there is no method \"%.100s\"", rpc->method);
    return reply_error(order, rpc->id, TIDE_RPC_NO_METHOD, text, reply);
}

/* Unknown notifications, and those that are wrong, are ignored: there is nobody to tell. */
static void notification(const struct tide_rpc *rpc, struct tide_mcp_order *order)
{
    json_t *id = json_object_get(rpc->params, "requestId");
    if (strcmp(rpc->method, "notifications/cancelled") != 0 ||
        (!json_is_string(id) && !json_is_integer(id)))
        return;
    order->what = TIDE_MCP_CANCEL;
    order->id = json_incref(id);
}

static bool is_blank(tide_text line)
{
    for (size_t i = 0; i < line.bytes; i++)
        if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r')
            return false;
    return true;
}

tide_status tide_mcp_feed(struct tide_mcp_session *session, tide_text line,
                          struct tide_mcp_order *order_out, tide_buf *reply)
{
    struct tide_rpc rpc;
    tide_error err = {TIDE_OK, 0, ""};
    int code = 0;
    tide_status rc = TIDE_OK;
    TIDE_ASSERT(reply->bytes == 0);
    *order_out = (struct tide_mcp_order){.what = TIDE_MCP_NOTHING};
    if (is_blank(line))
        return TIDE_OK;
    tide_rpc_parse(line, &rpc, &code, &err);
    const bool asked = rpc.id != NULL || code != TIDE_RPC_BAD_PARAMS; /* not a notification */
    if (code != 0 && asked)
        rc = reply_error(order_out, rpc.id, code, err.text, reply);
    else if (code == 0 && rpc.method != NULL && rpc.id != NULL)
        rc = request(session, &rpc, order_out, reply);
    else if (code == 0 && rpc.method != NULL)
        notification(&rpc, order_out);
    tide_rpc_done(&rpc);
    return rc;
}

void tide_mcp_order_done(struct tide_mcp_order *order)
{
    json_decref(order->id);
    json_decref(order->arguments);
    *order = (struct tide_mcp_order){.what = TIDE_MCP_NOTHING};
}

/* ---- results ---- */

static void text_add(tide_json *result, tide_text text)
{
    tide_json content, one;
    tide_json_array(&content);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "type", "text");
    tide_json_set_text(&one, "text", text);
    tide_json_append(&content, &one);
    tide_json_set(result, "content", &content);
}

static tide_status answer_failed(const json_t *id, const char *text, const char *hint,
                                 tide_buf *reply)
{
    tide_json result;
    tide_auto_buf line = tide_buf_heap(4096);
    tide_auto_buf clean = tide_buf_heap(4096 * 3);
    (void)tide_buf_print(&line, "%.1000s%s%.1000s", text,
                         hint == NULL || hint[0] == '\0' ? "" : "\n", hint == NULL ? "" : hint);
    tide_status rc = tide_clean_text(tide_buf_text(&line), &clean);
    if (rc != TIDE_OK)
        return rc;
    tide_json_object(&result);
    text_add(&result, tide_buf_text(&clean));
    tide_json_set_bool(&result, "isError", true);
    return tide_rpc_result(id, &result, reply);
}

tide_status tide_mcp_answer(const json_t *id, tide_status rc, tide_json *result, const char *text,
                            const char *hint, tide_buf *reply)
{
    tide_json whole;
    if (rc != TIDE_OK) {
        if (result != NULL)
            tide_json_done(result);
        return answer_failed(id, text, hint, reply);
    }
    tide_auto_buf line = tide_buf_heap(TIDE_MCP_RESULT_BYTES_MAX);
    rc = result->failed ? TIDE_NO_MEMORY : tide_clean_json(result->value);
    if (rc == TIDE_OK)
        rc = tide_json_line(result, &line);
    if (rc != TIDE_OK) {
        tide_json_done(result);
        return answer_failed(id, rc == TIDE_FULL ? "the result is too large" : "out of memory",
                             rc == TIDE_FULL ? "Ask for less: lower the limits." : "Try again.",
                             reply);
    }
    tide_json_object(&whole);
    text_add(&whole, (tide_text){tide_buf_cstr(&line), line.bytes - 1}); /* without its end */
    tide_json_set(&whole, "structuredContent", result);
    return tide_rpc_result(id, &whole, reply);
}
