/* server.h - the cloud behind HTTP/1.1, by libmicrohttpd.
 *
 * One daemon with one polling thread: the logic is single-threaded, so more
 * threads would only wait for each other.  The server reads requests as they
 * are on the wire (the target is never decoded here), hands them to the logic
 * and lets wire.c carry the answers out.  A body goes to a sink or comes from a source,
 * piece by piece, where the service asks for it (cloudbox/gate/http.h).
 *
 * Invariants:
 *   BSRV1  every served request is reported finished exactly once, also when its client is gone or
 *          the server ends.
 *   BSRV2  no request body over BOX_BODY_BYTES_MAX is ever held in memory.
 *   BSRV3  box_server_stop() returns soon, whatever connections wait for.
 */
#ifndef BOX_SERVE_SERVER_H
#define BOX_SERVE_SERVER_H

#include "cloudbox/serve/deliver.h"
#include "cloudbox/serve/options.h"
#include "cloudbox/serve/shared.h"
#include "cloudbox/serve/wire.h"

typedef struct box_server box_server;

/* `deliver` may be NULL.  All are borrowed. */
tide_status box_server_start(const struct box_settings *settings, struct box_shared *shared,
                             box_deliver *deliver, box_server **server_out, tide_error *err);
void box_server_stop(box_server *server); /* frees it; NULL is fine */

/* "http://127.0.0.1:4443" */
const char *box_server_origin(const box_server *server);

/* ---- for wire.c ---- */

box_timers *box_server_timers(box_server *server);
/* A connection was resumed: wakes the daemon.  Any thread. */
void box_server_wake(box_server *server);
bool box_server_is_tls(const box_server *server);
bool box_server_is_stopping(const box_server *server);
/* Whether the answer is final (gate/http.h: settle), and no rule of faults holds it. */
bool box_server_settled(struct box_exchange *exchange);
/* Reads a piece of the answer's source, under the cloud's lock. */
void box_server_read(struct box_exchange *exchange, uint64_t at, char *bytes, size_t count);
/* Packs the answer if its client asked for it. */
void box_server_pack(struct box_exchange *exchange);
void box_exchange_release(struct box_exchange *exchange);

#endif
