#include "mcp/message.h"

#include <string.h>

static bool is_id(const json_t *value)
{
    return json_is_string(value) || json_is_integer(value);
}

/* A key given twice, or a number beyond 64 bits, is refused as well: two readers could take it
 * differently. */
static tide_status root_parse(tide_text line, json_t **root_out, tide_error *err)
{
    if (line.bytes > TIDE_RPC_LINE_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "the line is longer than %d bytes",
                              TIDE_RPC_LINE_BYTES_MAX);
    return tide_json_parse(line, root_out, err);
}

/* What a message must have, beside its method. */
static int fields_check(const struct tide_rpc *rpc, tide_error *err)
{
    const char *version = json_string_value(json_object_get(rpc->root, "jsonrpc"));
    const json_t *id = json_object_get(rpc->root, "id");
    const json_t *params = json_object_get(rpc->root, "params");
    if (version == NULL || strcmp(version, "2.0") != 0) {
        (void)tide_error_set(err, TIDE_INVALID, "the field jsonrpc must be \"2.0\"");
        return TIDE_RPC_NOT_REQUEST;
    }
    if (id != NULL && !is_id(id)) {
        (void)tide_error_set(err, TIDE_INVALID, "the id must be a text or a whole number");
        return TIDE_RPC_NOT_REQUEST;
    }
    if (params != NULL && !json_is_object(params)) {
        (void)tide_error_set(err, TIDE_INVALID, "params must be an object");
        return TIDE_RPC_BAD_PARAMS;
    }
    return 0;
}

static int method_read(struct tide_rpc *rpc, tide_error *err)
{
    const json_t *method = json_object_get(rpc->root, "method");
    if (method == NULL && (json_object_get(rpc->root, "result") != NULL ||
                           json_object_get(rpc->root, "error") != NULL))
        return 0; /* an answer */
    if (!json_is_string(method) || json_string_length(method) > TIDE_RPC_METHOD_BYTES_MAX) {
        (void)tide_error_set(err, TIDE_INVALID, "the method must be a text of at most %d bytes",
                             TIDE_RPC_METHOD_BYTES_MAX);
        return TIDE_RPC_NOT_REQUEST;
    }
    rpc->method = json_string_value(method);
    return 0;
}

void tide_rpc_parse(tide_text line, struct tide_rpc *rpc_out, int *code_out, tide_error *err)
{
    *rpc_out = (struct tide_rpc){.root = NULL};
    *code_out = TIDE_RPC_NOT_JSON;
    if (root_parse(line, &rpc_out->root, err) != TIDE_OK)
        return;
    *code_out = TIDE_RPC_NOT_REQUEST;
    if (!json_is_object(rpc_out->root)) {
        (void)tide_error_set(err, TIDE_INVALID, "send one message per line, not an array");
        return;
    }
    const json_t *id = json_object_get(rpc_out->root, "id");
    rpc_out->id = is_id(id) ? id : NULL;
    *code_out = method_read(rpc_out, err);
    if (*code_out != 0 || rpc_out->method == NULL)
        return; /* answers are not even checked: two programs that complain to each other never end */
    *code_out = fields_check(rpc_out, err);
    if (*code_out == 0)
        rpc_out->params = json_object_get(rpc_out->root, "params");
}

void tide_rpc_done(struct tide_rpc *rpc)
{
    json_decref(rpc->root);
    *rpc = (struct tide_rpc){.root = NULL};
}

/* ---- writing ---- */

/* A copy: the original may belong to another thread's message. */
static void head(const json_t *id, tide_json *message)
{
    tide_json_object(message);
    tide_json_set_cstr(message, "jsonrpc", "2.0");
    if (json_is_string(id))
        tide_json_set_text(message, "id",
                           (tide_text){json_string_value(id), json_string_length(id)});
    else if (json_is_integer(id))
        tide_json_set_i64(message, "id", json_integer_value(id));
    else
        tide_json_set_null(message, "id");
}

static tide_status line_end(tide_json *message, tide_buf *line)
{
    const tide_status rc = tide_json_line(message, line);
    tide_json_done(message);
    return rc;
}

tide_status tide_rpc_result(const json_t *id, tide_json *result, tide_buf *line)
{
    tide_json message;
    head(id, &message);
    tide_json_set(&message, "result", result);
    return line_end(&message, line);
}

tide_status tide_rpc_error(const json_t *id, int code, const char *text, tide_buf *line)
{
    tide_json message, error;
    head(id, &message);
    tide_json_object(&error);
    tide_json_set_i64(&error, "code", code);
    tide_json_set_cstr(&error, "message", text);
    tide_json_set(&message, "error", &error);
    return line_end(&message, line);
}
