/* once.h - the answers of requests that must have their effect once: rows in the ledger's database.
 *
 * A client that got no answer sends its POST again with the same Idempotency-Key.  Each call here runs
 * in the caller's transaction:
 *
 *     begin   ---> FIRST: the row is there, without an answer, and durable
 *     (the handler runs, and commits its effect in transactions of its own)
 *     end     ---> the answer is in the row, and durable; only then the client gets it
 *
 * Of two that come with one key, one is FIRST; the other waits (RUNNING) or gets the answer (STORED).
 * A crash between `begin` and `end` leaves a row without an answer.  It cannot say whether the effect
 * is committed, so the next request with that key is FIRST again and runs the handler a second time.
 * That is safe because doing any of these actions twice is the same as doing it once:
 *   - halt, resume and pause set a state; accept and cancel end in one
 *   - a sync is a job with a dedupe key
 *   - a run of a schedule is a mark in its row, unless one started after the first request came: the row
 *     here keeps that time
 *   - a retry touches only jobs that have failed, and with a filter it says how many it expects: after
 *     the first effect another number matches, and the answer is 409 with nothing done.
 * A new action must have this property, or take its row into its own transaction.
 *
 * Rows live 24 hours.  PostgreSQL: a row belongs to the home whose keys (access/keys_rows.h) it names.
 *
 * Invariants:
 *   ONC1  an answer below 500 is stored before it is sent; one that cannot be stored is sent all the
 *         same, and a repeat runs the handler again, as after a crash.
 *   ONC2  a key never stands for two requests: another digest is OTHER, for as long as the row lives.
 *   ONC3  at most TIDE_ONCE_MAX rows of a home; then TIDE_FULL.
 */
#ifndef TIDE_SERVE_ONCE_ONCE_H
#define TIDE_SERVE_ONCE_ONCE_H

#include "base/buf.h"
#include "db/rows.h"

enum {
    TIDE_ONCE_MAX = 100000,
    TIDE_ONCE_LIFE_MS = 24 * 3600 * 1000,
    TIDE_ONCE_BODY_BYTES_MAX = 1 << 20,
    TIDE_ONCE_DIGEST_BYTES = 32,
};

/* Names a row; the texts are borrowed. */
struct tide_once_name {
    const char *home; /* "" on SQLite */
    uint64_t who;     /* the key that authorised it */
    tide_text key;    /* Idempotency-Key */
};

typedef enum tide_once {
    TIDE_ONCE_FIRST,
    TIDE_ONCE_STORED,
    TIDE_ONCE_OTHER,
} tide_once;

tide_status tide_once_tables(tide_rows rows, tide_error *err);
/* What the rows say of a request. */
struct tide_once_row {
    tide_once once;
    int status;             /* STORED: of the first answer; its body is in `body_out` */
    uint64_t asked_unix_ms; /* FIRST: when the request came, or came before a crash */
};
/* TIDE_FULL. */
tide_status tide_once_begin(tide_rows rows, const struct tide_once_name *name,
                            const unsigned char digest[TIDE_ONCE_DIGEST_BYTES],
                            uint64_t now_unix_ms, struct tide_once_row *row_out, tide_buf *body_out,
                            tide_error *err);
/* Status 0: there was no answer, the row goes. */
tide_status tide_once_end(tide_rows rows, const struct tide_once_name *name, int status,
                          tide_text body, tide_error *err);

#endif
