/* socket.h - the control socket between a command and the engine that holds its directory
 * (docs/decisions.md, 11).
 *
 * A unix stream socket, private to the user.  A request is one line of JSON; the answer
 * is any number of lines of JSON (progress, rows) and then one last line written by this
 * module, {"end":"ok"} or {"end":"invalid","text":"..."}: an answer without its end
 * means that the engine died; it is never taken for a complete one.  A connection may
 * carry many requests, one after another.
 *
 * It does not parse requests: it passes each line to the handler, on a thread of that
 * connection.
 *
 * Invariants:
 *   SOCK1  only processes of the same user are served.
 *   SOCK2  a socket file is replaced only if no server answers there, and of two servers that start
 *          together exactly one wins.
 *   SOCK3  at most TIDE_SOCKET_PEERS_MAX connections, one line in memory each, of at most
 *          TIDE_SOCKET_LINE_BYTES_MAX; a further client gets TIDE_FULL.  A line of an answer comes
 *          from the engine and may have TIDE_SOCKET_ANSWER_BYTES_MAX.
 *   SOCK4  a client that does not read delays only its own handler, and that one for
 *          TIDE_SOCKET_SEND_TIMEOUT_MS at most.
 *
 * A path too long for a socket address is opened through its directory. */
#ifndef TIDE_WORLD_SOCKET_H
#define TIDE_WORLD_SOCKET_H

#include "world/world.h"

typedef struct tide_socket tide_socket;
typedef struct tide_socket_reply tide_socket_reply;

/* Answers one request.  The line is borrowed and has no newline.  The returned status becomes
 * the last line of the answer, with the text of *err. */
typedef tide_status tide_socket_handle(void *arg, tide_text request, tide_socket_reply *reply,
                                       tide_error *err);

/* Adds a line to the answer.  TIDE_CANCELED: the client has disconnected; TIDE_STOPPED: the
 * server is stopping, and has sent one line since; TIDE_TIMEOUT: the client does not read; TIDE_INVALID: a line with a
 * newline in it, or too long.  After the first failure the handler should return. */
tide_status tide_socket_say(tide_socket_reply *reply, tide_text line);
/* True once the client has disconnected or the server is stopping, so that a handler that waits
 * for work can stop waiting. */
bool tide_socket_gone(tide_socket_reply *reply);

/* Listens on `path` and serves until it is freed.  TIDE_BUSY: a server answers there already;
 * TIDE_EXISTS: the path is not a socket. */
tide_status tide_socket_serve(tide_world *world, tide_mem *mem, const char *path,
                              tide_socket_handle *handle, void *handle_arg,
                              tide_socket **socket_out, tide_error *err);
/* Removes the socket file and waits for handlers; NULL is fine. */
void tide_socket_free(tide_socket *self);

/* Sends one request and passes each line of the answer to `line` (on this thread).  Returns
 * the handler's status and text, or
 *   TIDE_NOT_FOUND  no server listens
 *   TIDE_UNKNOWN    the server disconnected before the end
 *   TIDE_TIMEOUT    no line for `timeout_ms` (0: no limit)
 *   TIDE_CANCELED   within 50 ms of `cancel` (may be NULL)
 * or what `line` returned if that was not TIDE_OK. */
typedef tide_status tide_socket_line(void *arg, tide_text line);
tide_status tide_socket_ask(tide_world *world, tide_mem *mem, const char *path, tide_text request,
                            uint32_t timeout_ms, const tide_cancel *cancel, tide_socket_line *line,
                            void *line_arg, tide_error *err);

#endif
