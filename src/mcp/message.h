/* message.h - the messages of JSON-RPC 2.0, one per line, as the Model Context Protocol uses them.
 *
 * A line from a client is a request (method and id), a notification (method), or an answer, which
 * is ignored: this side asks nothing.  Arrays of messages are refused: only one old version of the
 * protocol has them, and it is not offered (session.h).
 *
 * Invariants:
 *   RPC1  any bytes are accepted; what is not a message gets an error with the code that the
 *         standard has for it, with the id if it could be read, else with null.
 *   RPC2  a line that is written is valid JSON without a line end inside.
 */
#ifndef TIDE_MCP_MESSAGE_H
#define TIDE_MCP_MESSAGE_H

#include "base/json.h"

enum {
    TIDE_RPC_LINE_BYTES_MAX = 1 << 20, /* of a line from a client */
    TIDE_RPC_METHOD_BYTES_MAX = 100,
};

/* The codes of the standard; the last one is of the range that is left to servers. */
enum {
    TIDE_RPC_NOT_JSON = -32700,
    TIDE_RPC_NOT_REQUEST = -32600,
    TIDE_RPC_NO_METHOD = -32601,
    TIDE_RPC_BAD_PARAMS = -32602,
    TIDE_RPC_INTERNAL = -32603,
    TIDE_RPC_BUSY = -32000,
};

struct tide_rpc {
    json_t *root;         /* owned */
    const json_t *id;     /* a text or a whole number; NULL: a notification, or it has none */
    const char *method;   /* NULL: an answer */
    const json_t *params; /* an object; NULL: none */
};

/* *code_out is 0, or the code of an error that `err` describes; then rpc_out->id is what could be
 * read.  Call tide_rpc_done() in both cases. */
void tide_rpc_parse(tide_text line, struct tide_rpc *rpc_out, int *code_out, tide_error *err);
void tide_rpc_done(struct tide_rpc *rpc);

/* Appends one line.  `result` is taken.  TIDE_NO_MEMORY, TIDE_FULL: `line` is unchanged. */
tide_status tide_rpc_result(const json_t *id, tide_json *result, tide_buf *line);
tide_status tide_rpc_error(const json_t *id, int code, const char *text, tide_buf *line);

#endif
