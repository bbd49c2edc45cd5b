/* cold.h - private to this folder: what the rarely used operations have in common.
 *
 * Their statements are written where they are used; each answers for a whole set.
 * Often two statements follow each other where one seems enough, for one reason: a
 * statement that waited for a row's lock sees the new row, but every other table as it
 * was before it waited.  So the first statement locks the rows, in order (LPG3), and the
 * second, which sees what was committed meanwhile, decides. */
#ifndef TIDE_ENGINE_LEDGER_PG_COLD_H
#define TIDE_ENGINE_LEDGER_PG_COLD_H

#include "ledger/postgres/postgres.h"

/* Now, in unix ms: parameter `n` (tide_pgl_clock()), or the database's own clock, read
 * when it is evaluated and not when the transaction began. */
#define PG_NOW(n) "coalesce(" n "::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"

#define PG_DAY_MS "86400000"
/* A member that may still write: it was not declared dead. */
#define PG_ALIVE(owner)                                                                            \
    "EXISTS (SELECT 1 FROM tidemark.member m WHERE m.owner = " owner " AND NOT m.dead)"

/* How far a machine's clock may be ahead of the database's for operations that cannot be
 * undone: firing a slot, purging. */
#define PG_AHEAD_MS_MAX "3600000"

/* Begins the parameters of the next statement. */
static inline tide_pg *tide_pgl_params(struct tide_postgres *self)
{
    tide_pg_params(self->pg);
    return self->pg;
}
/* The parameter of PG_NOW(). */
static inline void tide_pgl_clock(struct tide_postgres *self, uint64_t now_unix_ms)
{
    tide_pg_u64_or_null(self->pg, self->database_clock ? 0 : now_unix_ms);
}
static inline void tide_pgl_ids(struct tide_postgres *self, const uint64_t *ids, size_t count)
{
    tide_pg_array(self->pg, TIDE_PG_INT8);
    for (size_t i = 0; i < count; i++)
        tide_pg_u64(self->pg, ids[i]);
    tide_pg_array_end(self->pg);
}

/* A statement inside a transaction.  A unique index that refuses it means that another
 * process has just written the same: TIDE_BUSY, and the caller retries the transaction. */
tide_status tide_pgl_write(struct tide_postgres *self, const char *sql, PGresult **result_out,
                           tide_error *err);
/* The same for one that changes exactly one row; none is TIDE_NOT_FOUND. */
tide_status tide_pgl_change_one(struct tide_postgres *self, const char *sql, const char *what,
                                uint64_t id, tide_error *err);
/* A query, in a transaction or outside; it reconnects if needed.  The caller owns the rows
 * (PQclear()), so that a visitor may query the ledger while it walks through them.  After a
 * failure *rows_out is unchanged: NULL has no rows, and needs no test. */
tide_status tide_pgl_rows(struct tide_postgres *self, const char *sql, PGresult **rows_out,
                          tide_error *err);
/* A terminated copy of a column, cut to text_bytes. */
void tide_pgl_copy(const PGresult *rows, int row, int column, char *text_out, size_t text_bytes);

/* Whether the account exists; TIDE_NOT_FOUND. */
tide_status tide_pgl_account_exists(struct tide_postgres *self, uint32_t account, tide_error *err);

#endif
