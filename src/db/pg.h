/* pg.h - a thin helper over libpq: for PostgreSQL what db.h is for SQLite.
 *
 * One connection, its statements prepared once and found by number, parameters as
 * plain values and whole arrays, and one mapping from SQLSTATE to our statuses with a
 * text that says what failed, on which server, and what to do.  It knows nothing of
 * jobs and starts no threads: a connection is used by one thread at a time.
 *
 * Passwords: a URL may carry one, but then every user of the machine can see it in the
 * caller's arguments; PGPASSWORD, PGPASSFILE, ~/.pgpass and PGSERVICE are libpq's and work.
 * No text of ours, no error, no log ever contains the URL's password or query.
 *
 * A pooler in transaction mode gives every transaction another server connection:
 * named statements may not be there.  It is recognised when connecting (the server's
 * process is not the one the handshake named), by SQLSTATE 26000 and 42P05, and by the
 * URL's own ?tidemark_pooler=1, which is removed before libpq sees it; from then on
 * statements are unnamed, and the transaction that detected it ends with TIDE_BUSY.
 *
 * Statuses: TIDE_NETWORK for a lost, refused or full server (57P01..57P05, 53300, 08xxx,
 * 57014 by time-out) and for a standby that cannot be written to (25006), TIDE_BUSY for
 * 40001 and 40P01 and 55P03, TIDE_DISK_FULL for 53100, TIDE_NO_MEMORY for 53200, TIDE_AUTH
 * for 28xxx, TIDE_INVALID for 42501 (the role lacks a right) and 3D000, TIDE_CORRUPT for
 * XX001/XX002, TIDE_EXISTS for 23505, else TIDE_IO.
 *
 * Invariants:
 *   PG1  after TIDE_NETWORK the connection is closed; tide_pg_ready() opens a new one.
 *   PG2  a failed open leaves nothing open.
 *   PG3  results are cleared before the next statement runs.
 */
#ifndef TIDE_DB_PG_H
#define TIDE_DB_PG_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tide_pg tide_pg;

struct tide_pg_options {
    const char *url;         /* postgres://... */
    const char *application; /* application_name; NULL: "tidemark" */
    uint32_t connect_ms;     /* per attempt; 0: 5000 */
    uint32_t statement_ms;   /* statement_timeout; 0: 60000 */
    bool read_only;
    /* Like "enable_seqscan = off; jit = off", for the session; NULL: none.  Behind a pooler
     * each transaction has to set them, see tide_pg_local_settings(). */
    const char *settings;
    const char *const *sql; /* by number, with $1...; borrowed, prepared when first used */
    size_t sql_count;
};

/* Connects.  TIDE_NETWORK, TIDE_AUTH, TIDE_INVALID (not a URL) as above. */
tide_status tide_pg_open(const struct tide_pg_options *options, tide_mem *mem, tide_pg **pg_out,
                         tide_error *err);
void tide_pg_close(tide_pg *pg); /* NULL is fine */
/* Reconnects when the connection was lost; one attempt. */
tide_status tide_pg_ready(tide_pg *pg, tide_error *err);
/* Closes the connection; the next tide_pg_ready() opens a new one. */
void tide_pg_drop(tide_pg *pg);
PGconn *tide_pg_handle(tide_pg *pg); /* NULL while not connected */
/* What a transaction has to run first: "" unless behind a pooler. */
const char *tide_pg_local_settings(const tide_pg *pg);
const char *tide_pg_name(const tide_pg *pg); /* host, port and database; no password */
bool tide_pg_pooled(const tide_pg *pg);      /* unnamed statements, no LISTEN */

/* ---- parameters ---- */

/* Values are copied into the binary form the server reads (int8, int4, int2, bool, text
 * and arrays of them), so that arrays of thousands cost no text parsing.  They have these
 * types on the server, whatever the statement does with them.  Cleared by
 * tide_pg_params(); at most TIDE_PG_PARAMS_MAX.  A text must be UTF-8 without a zero
 * byte: else the statement fails with TIDE_INVALID. */
enum { TIDE_PG_PARAMS_MAX = 32 };
void tide_pg_params(tide_pg *pg); /* begins a new list */
void tide_pg_i64(tide_pg *pg, int64_t value);
void tide_pg_u64(tide_pg *pg, uint64_t value);         /* the same 64 bits */
void tide_pg_u64_or_null(tide_pg *pg, uint64_t value); /* 0 is NULL */
void tide_pg_i32(tide_pg *pg, int32_t value);
void tide_pg_i16(tide_pg *pg, int16_t value);
void tide_pg_bool(tide_pg *pg, bool value);
void tide_pg_text(tide_pg *pg, tide_text value);
void tide_pg_text_or_null(tide_pg *pg, tide_text value); /* empty is NULL */
/* An array parameter, element by element: start, add any number, end.  Element calls
 * in between are the ones above. */
void tide_pg_array(tide_pg *pg, Oid element); /* TIDE_PG_INT8, ... */
void tide_pg_array_end(tide_pg *pg);
enum {
    TIDE_PG_BOOL = 16,
    TIDE_PG_INT8 = 20,
    TIDE_PG_INT2 = 21,
    TIDE_PG_INT4 = 23,
    TIDE_PG_TEXT = 25,
};

/* An element of an array of a composite type (tide_pg_array() with the type's Oid, and a
 * cast in the statement): its columns are values in between.  Whole rows in one array cost
 * the server a third of what an array for each column does. */
void tide_pg_record(tide_pg *pg);
void tide_pg_record_end(tide_pg *pg);

/* Rows for COPY ... FROM STDIN (FORMAT binary), instead of parameters: start, then for
 * each row its number of columns and its values. */
void tide_pg_copy(tide_pg *pg);
void tide_pg_copy_row(tide_pg *pg, uint16_t columns);
tide_status tide_pg_copy_run(tide_pg *pg, const char *sql, tide_error *err);

/* ---- statements ---- */

/* Runs statement `number` with the parameters begun last; results are binary.
 * *result_out is borrowed until the next statement; may be NULL. */
tide_status tide_pg_run(tide_pg *pg, size_t number, PGresult **result_out, tide_error *err);
/* The same for a text that is used rarely: not prepared. */
tide_status tide_pg_query(tide_pg *pg, const char *sql, PGresult **result_out, tide_error *err);
/* Texts without parameters, several allowed: begin, schema. */
tide_status tide_pg_exec(tide_pg *pg, const char *sql, tide_error *err);
/* The same, with the last one's result: in text form, not binary. */
tide_status tide_pg_texts(tide_pg *pg, const char *sql, PGresult **result_out, tide_error *err);
/* Passes the last statement's result to the caller (PQclear()), for a caller that runs more
 * statements while it reads the result. */
PGresult *tide_pg_take(tide_pg *pg);
/* COPY ... FROM STDIN with these bytes. */
tide_status tide_pg_copy_in(tide_pg *pg, const char *sql, tide_text rows, tide_error *err);

/* ---- a lead ----
 *
 * The begin of a transaction and its first statement need no round trip of their own: they
 * are sent with the next statement, in one pipeline.  Not behind a pooler, where the settings
 * have to come in between. */
struct tide_pg_lead {
    size_t begin;             /* numbers of two statements; the first without parameters, */
    size_t first;             /* the second with these, as texts */
    const char *const *texts; /* borrowed until it is sent */
    int texts_count;
    /* Gets the result of the second one, before that of the statement sent with it.  If it
     * returns another status than TIDE_OK, that statement returns it. */
    tide_status (*accept)(void *arg, const PGresult *first, tide_error *err);
    void *arg;
};
void tide_pg_lead(tide_pg *pg, const struct tide_pg_lead *lead);
bool tide_pg_leads(const tide_pg *pg);                     /* it is not sent yet */
tide_status tide_pg_lead_go(tide_pg *pg, tide_error *err); /* sends it alone, if not sent yet */
void tide_pg_lead_drop(tide_pg *pg);                       /* it will not be sent */

/* Rows that the last statement changed. */
uint64_t tide_pg_changed(const tide_pg *pg);
/* The five characters of the last failure, "" when it had none. */
const char *tide_pg_sqlstate(const tide_pg *pg);

/* What five characters mean; for statements that run on tide_pg_handle() itself. */
tide_status tide_pg_status(const char *sqlstate);

/* ---- columns of a binary result ----
 *
 * Numbers may be int2, int4, int8 or boolean.  sum() of int8 is numeric: cast it. */
int64_t tide_pg_get_i64(const PGresult *result, int row,
                        int column); /* int2, int4, int8; NULL: 0 */
uint64_t tide_pg_get_u64(const PGresult *result, int row, int column);
bool tide_pg_get_bool(const PGresult *result, int row, int column);
/* Borrowed until the next statement; terminated; NULL is empty. */
tide_text tide_pg_get_text(const PGresult *result, int row, int column);

#endif
