/* session.h - one conversation of the Model Context Protocol: which message means what.
 *
 * Pure: takes a line, gives an order, does no I/O and starts no thread.  The caller writes replies,
 * runs tools and cancels them (cli/mcp).
 *
 * Versions of the protocol are dates.  The client names one; the answer is the same if it is
 * offered, else the newest offered one before it, so that an older client finds one that it knows.
 * 2025-03-26 is not offered: it demands arrays of messages, which all later versions removed.
 *
 * Invariants:
 *   MCP1  every request gets exactly one order, REPLY or CALL; a notification never gets a reply.
 *   MCP2  before `initialize` only `ping` is answered; no tool runs.
 *   MCP3  a CALL has a tool of the list and arguments that fit its table.
 */
#ifndef TIDE_MCP_SESSION_H
#define TIDE_MCP_SESSION_H

#include "mcp/message.h"
#include "mcp/tool.h"

enum {
    TIDE_MCP_TOOLS_MAX = 64,
    /* Of a result, before it is written twice (as text, for clients without structured content). */
    TIDE_MCP_RESULT_BYTES_MAX = 256 << 10,
    TIDE_MCP_REPLY_BYTES_MAX = 2 << 20,
};

struct tide_mcp_session {
    const struct tide_tool *const *tools; /* ends with NULL */
    const char *instructions;             /* for the model, about all tools */
    const char *version;                  /* of the program */
    bool initialized;
};

typedef enum tide_mcp_what {
    TIDE_MCP_NOTHING,
    TIDE_MCP_REPLY,  /* `reply` has a line to write */
    TIDE_MCP_CALL,   /* run `tool` */
    TIDE_MCP_CANCEL, /* the call `id`, if it still runs */
} tide_mcp_what;

struct tide_mcp_order {
    tide_mcp_what what;
    json_t *id;                   /* CALL, CANCEL: owned */
    const struct tide_tool *tool; /* CALL */
    json_t *arguments;            /* CALL: owned; NULL: none */
};

/* Takes a line without its end; `reply` is empty.  TIDE_NO_MEMORY: nothing was answered. */
tide_status tide_mcp_feed(struct tide_mcp_session *session, tide_text line,
                          struct tide_mcp_order *order_out, tide_buf *reply);
void tide_mcp_order_done(struct tide_mcp_order *order);

/* Appends the answer to a CALL.  `result` is taken; with `rc` other than TIDE_OK it is left out and
 * `text` and `hint` (may be NULL) say what happened.  Cleans all text (clean.h). */
tide_status tide_mcp_answer(const json_t *id, tide_status rc, tide_json *result, const char *text,
                            const char *hint, tide_buf *reply);

#endif
