/* socket.h - the control socket: how a command talks to the engine that holds
 * its directory (docs/decisions.md, 11).
 *
 * A unix stream socket, private to the user.  A request is one line of JSON;
 * the answer is any number of lines of JSON (progress, rows) and then one last
 * line written by this module, {"end":"ok"} or {"end":"invalid","text":"..."}:
 * an answer without its end is an engine that died, and is never taken for a
 * short one.  A connection may carry many requests, one after another.
 *
 * It does not look into requests: it hands each line to the handler, on a
 * thread of that connection.
 *
 * Invariants:
 *   S1  only processes of the same user are listened to.
 *   S2  a socket file is replaced only if nobody answers there, and two
 *       servers that start together agree on who was first.
 *   S3  at most TIDE_SOCKET_PEERS_MAX connections, one line in memory each, of
 *       at most TIDE_SOCKET_LINE_BYTES_MAX; who wants more is told "full".  A line of an
 *       answer is the engine's own and may have TIDE_SOCKET_ANSWER_BYTES_MAX.
 *   S4  a client that does not read delays only its own handler, and that one
 *       for TIDE_SOCKET_SEND_TIMEOUT_MS at most.
 *
 * A path too long for a socket address is reached through its directory. */
#ifndef TIDE_WORLD_SOCKET_H
#define TIDE_WORLD_SOCKET_H

#include "world/world.h"

typedef struct tide_socket tide_socket;
typedef struct tide_socket_reply tide_socket_reply;

/* Answers one request.  The line is borrowed and has no newline.  What it
 * returns becomes the last line of the answer; the text of *err goes with it. */
typedef tide_status tide_socket_handle(void *arg, tide_text request, tide_socket_reply *reply,
                                       tide_error *err);

/* Adds a line to the answer.  TIDE_CANCELED: the client has left; TIDE_STOPPED:
 * the server is stopping; TIDE_TIMEOUT: the client does not read; TIDE_INVALID:
 * a line with a newline in it, or too long.  After the first failure the
 * handler should come to an end. */
tide_status tide_socket_say(tide_socket_reply *reply, tide_text line);
/* True once the client has left or the server is stopping, so that a handler
 * which waits for work to finish can stop waiting. */
bool tide_socket_gone(tide_socket_reply *reply);

/* Listens on `path` and serves until it is freed.  TIDE_BUSY: somebody answers
 * there already; TIDE_EXISTS: the path is something else than a socket. */
tide_status tide_socket_serve(tide_world *world, tide_mem *mem, const char *path,
                              tide_socket_handle *handle, void *handle_arg,
                              tide_socket **socket_out, tide_error *err);
/* Removes the socket file, waits for handlers, and returns; NULL is fine. */
void tide_socket_free(tide_socket *self);

/* Sends one request and hands each line of the answer to `line` (on this
 * thread).  Returns what the handler returned, with its text.  TIDE_NOT_FOUND:
 * nobody listens; TIDE_UNKNOWN: the other side left before the end;
 * TIDE_TIMEOUT: no line for so long (0: wait for ever); what `line` returned if
 * that was not TIDE_OK; TIDE_CANCELED within 50 ms if `cancel` (may be NULL)
 * says so. */
typedef tide_status tide_socket_line(void *arg, tide_text line);
tide_status tide_socket_ask(tide_world *world, tide_mem *mem, const char *path, tide_text request,
                            uint32_t timeout_ms, const tide_cancel *cancel, tide_socket_line *line,
                            void *line_arg, tide_error *err);

#endif
