/* loopback.h - receives one redirect from a browser on this machine.
 *
 * Listens on 127.0.0.1, on a port the system picks, for the redirect that ends a
 * sign-in (RFC 8252).  It serves no files and keeps nothing: it passes the target of
 * each well-formed GET to the caller, answers with a page of one sentence, and ends
 * with the first target that the caller takes.  The caller checks the target and its
 * state.
 *
 * There is no extra thread: the waiting thread does the work.  It uses real sockets,
 * so it is only for the real world; in a simulated one the user pastes the address.
 *
 * Invariants:
 *   LOOP1  only this machine can reach it; a request with another Host (a DNS name pointed at this
 *          machine) is refused.
 *   LOOP2  at most TIDE_LOOPBACK_PEERS_MAX connections, with one head of at most
 *          TIDE_LOOPBACK_HEAD_BYTES_MAX each; the oldest one makes room for a new one, so silent
 *          connections do not delay others.
 *   LOOP3  nothing of a request is in the answer, a log or an error.
 */
#ifndef TIDE_WORLD_LOOPBACK_H
#define TIDE_WORLD_LOOPBACK_H

#include "world/world.h"

typedef struct tide_loopback tide_loopback;

typedef enum tide_loopback_verdict {
    TIDE_LOOPBACK_TAKEN,     /* 200; the wait is over */
    TIDE_LOOPBACK_WRONG,     /* 400; keep waiting */
    TIDE_LOOPBACK_ELSEWHERE, /* 404; keep waiting: browsers ask for an icon */
} tide_loopback_verdict;

/* Checks "/path?query", borrowed.  `sentence_out` is shown to the user: a constant without
 * characters that HTML needs escaped. */
typedef tide_loopback_verdict tide_loopback_look(void *arg, tide_text target,
                                                 const char **sentence_out);

tide_status tide_loopback_open(tide_mem *mem, tide_loopback **loopback_out, tide_error *err);
void tide_loopback_close(tide_loopback *loopback); /* NULL is fine */
unsigned tide_loopback_port(const tide_loopback *loopback);

/* TIDE_OK: a target was taken.  TIDE_TIMEOUT; TIDE_CANCELED within 50 ms of
 * `cancel` (may be NULL); TIDE_STOPPED.  It may be called again. */
tide_status tide_loopback_wait(tide_loopback *loopback, tide_world *world, uint64_t wait_ms,
                               const tide_cancel *cancel, tide_loopback_look *look, void *look_arg,
                               tide_error *err);

/* Reads a request head (including its empty line).  Returns 200 and the target, or the code that
 * refuses it: 400, 405, 421 (another host), 505.  For tests. */
int tide_loopback_head_read(tide_text head, unsigned port, tide_text *target_out);

#endif
