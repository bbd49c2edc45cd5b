/* inside.h - the parts of `tidemark mcp`: lines in and out, tools that run, the list of tools. */
#ifndef TIDE_CLI_MCP_INSIDE_H
#define TIDE_CLI_MCP_INSIDE_H

#include "cli/cli.h"
#include "mcp/session.h"

/* ---- lines (stdio.c) ---- */

/* Standard input and output as they were at the start.  From then on file descriptor 1 is standard
 * error: nothing but the protocol can reach the client, whatever prints. */
struct mcp_stdio;
tide_status mcp_stdio_open(struct cli *cli, struct mcp_stdio **stdio_out);
void mcp_stdio_close(struct mcp_stdio *stdio); /* NULL is fine */

typedef enum mcp_got {
    MCP_GOT_LINE,
    MCP_GOT_LONG, /* a line beyond the limit; it was skipped */
    MCP_GOT_TIME, /* `deadline_us` is reached */
    MCP_GOT_END,  /* end of the input */
    MCP_GOT_GONE, /* nobody reads the output any more, or the input cannot be read */
} mcp_got;
/* Waits for the next line; *line_out has no line end and is borrowed until the next call. */
mcp_got mcp_stdio_next(struct mcp_stdio *stdio, uint64_t deadline_us, tide_text *line_out);
/* Writes whole lines; any thread.  What cannot be written is dropped: the client is gone. */
void mcp_stdio_write(struct mcp_stdio *stdio, tide_text lines);
bool mcp_stdio_gone(struct mcp_stdio *stdio);

/* ---- tools that run (calls.c) ----
 *
 * Invariants:
 *   MCC1  a call is answered exactly once, or never if it was canceled: the protocol wants no answer
 *         then.
 *   MCC2  at most MCP_CALLS_MAX calls wait or run, MCP_WORKERS of them run.
 *   MCC3  a call ends by itself after MCP_CALL_MS, with an error.
 */
enum { MCP_CALLS_MAX = 16, MCP_WORKERS = 3, MCP_CALL_MS = 30000 };

struct mcp_calls;
tide_status mcp_calls_open(struct cli *host, struct mcp_stdio *stdio, struct mcp_calls **calls_out);
/* Takes the id and the arguments of the order.  TIDE_FULL: too many; TIDE_EXISTS: a call with this
 * id runs. */
tide_status mcp_calls_add(struct mcp_calls *calls, struct tide_mcp_order *order);
void mcp_calls_cancel(struct mcp_calls *calls, const json_t *id);
/* When the next call has used up its time; UINT64_MAX: none runs.  Ends those that have. */
uint64_t mcp_calls_deadline(struct mcp_calls *calls);
void mcp_calls_expire(struct mcp_calls *calls);
/* Answers what was asked; returns early if nobody reads the answers. */
void mcp_calls_drain(struct mcp_calls *calls);
/* Cancels what is left and frees; NULL is fine. */
void mcp_calls_close(struct mcp_calls *calls);

/* ---- the list (tools.c) ---- */

/* The tools that belong to no system, then those of each system. */
void mcp_tools_list(const struct cli *cli,
                    const struct tide_tool *list_out[TIDE_MCP_TOOLS_MAX + 1]);

#endif
