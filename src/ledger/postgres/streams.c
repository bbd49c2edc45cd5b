/* streams.c - streams, their cycles, and the one rule by which a cursor moves
 * (E5.1), among many processes.
 *
 * A transaction that moves a cursor locks the stream's row before it reads any cycle, and
 * keeps the lock until the commit.  Two processes that each finish the last job of a cycle
 * do this one after the other, and the second sees what the first committed: so no end of a
 * cycle is missed, though neither sees the other's before that.  Then the finished cycles are
 * locked too (LPG5): this waits for a transaction that adds a job to one of them, and sees its
 * job. */
#include "ledger/postgres/cold.h"
#include "base/check.h"

#include <inttypes.h>

#define STREAM                                                                                     \
    "SELECT s.id, s.account, s.ordinal, s.ordinal_next, s.name, s.cursor, s.floor,"                \
    " (SELECT c.start FROM tidemark.cycle c WHERE c.stream = s.id ORDER BY c.ordinal LIMIT 1),"    \
    " s.moved FROM tidemark.stream s"

static void stream_read(const PGresult *rows, int i, struct tide_stream_row *row)
{
    *row = (struct tide_stream_row){
        .id = tide_pg_get_u64(rows, i, 0),
        .account = (uint32_t)tide_pg_get_u64(rows, i, 1),
        .ordinal = tide_pg_get_u64(rows, i, 2),
        .ordinal_next = tide_pg_get_u64(rows, i, 3),
        .name = tide_pg_get_text(rows, i, 4),
        .cursor = tide_pg_get_text(rows, i, 5),
        .floor = tide_pg_get_text(rows, i, 6),
        .start = tide_pg_get_text(rows, i, 7),
        .moved_unix_ms = tide_pg_get_u64(rows, i, 8),
    };
}

static tide_status stream_find(struct tide_postgres *self, uint32_t account, const char *name,
                               struct tide_stream_row *row_out, bool *found_out, tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_i64(self->pg, account);
    tide_pg_text(self->pg, tide_text_of(name));
    TIDE_TRY(tide_pgl_write(self, STREAM " WHERE s.account = $1 AND s.name = $2", &result, err));
    *found_out = PQntuples(result) > 0;
    if (!*found_out)
        return TIDE_OK;
    stream_read(result, 0, row_out);
    return tide_stream_keep(row_out, &self->kept, err);
}

/* Another process may add the same stream at the same time: one of them does, both find it. */
static tide_status stream_add(struct tide_postgres *self, uint32_t account, const char *name,
                              tide_text floor, tide_error *err)
{
    TIDE_TRY(account == 0 ? TIDE_OK : tide_pgl_account_exists(self, account, err));
    (void)tide_pgl_params(self);
    tide_pg_i64(self->pg, account);
    tide_pg_text(self->pg, tide_text_of(name));
    tide_pg_text_or_null(self->pg, floor);
    return tide_pgl_write(self,
                          "INSERT INTO tidemark.stream (account, name, floor) VALUES ($1, $2, $3)"
                          " ON CONFLICT (account, name) DO NOTHING",
                          NULL, err);
}

static tide_status stream_floor(struct tide_postgres *self, uint64_t stream, tide_text floor,
                                tide_error *err)
{
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, stream);
    tide_pg_text(self->pg, floor);
    return tide_pgl_write(self, "UPDATE tidemark.stream SET floor = $2 WHERE id = $1", NULL, err);
}

tide_status tide_pgl_stream(tide_tx *tx, uint32_t account, const char *name, tide_text floor,
                            struct tide_stream_row *row_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    struct tide_stream_row row = {0};
    bool found = false;
    tide_status rc = stream_find(self, account, name, &row, &found, err);
    bool added = rc == TIDE_OK && !found;
    if (added) {
        rc = stream_add(self, account, name, floor, err);
        if (rc == TIDE_OK)
            rc = stream_find(self, account, name, &row, &found, err);
    }
    if (rc == TIDE_OK && floor.bytes > 0 && !tide_text_equal(floor, row.floor)) {
        rc = stream_floor(self, row.id, floor, err);
        if (rc == TIDE_OK)
            rc = stream_find(self, account, name, &row, &found, err);
    }
    if (rc == TIDE_OK) {
        TIDE_ASSERT(found);
        *row_out = row;
    }
    return tide_pgl_end(self, rc);
}

/* ---- cycles ------------------------------------------------------------------------ */

static tide_status cursor_copy(const PGresult *result, int column, tide_buf *cursor_out,
                               tide_error *err)
{
    tide_text value = tide_pg_get_text(result, 0, column);
    tide_buf_clear(cursor_out);
    tide_status rc = tide_buf_add(cursor_out, value.data, value.bytes);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for a cursor");
}

/* Locks the stream's row and reads its ordinals and its cursor (may be NULL). */
static tide_status stream_lock(struct tide_postgres *self, uint64_t stream, uint64_t *ordinal_out,
                               uint64_t *next_out, tide_buf *cursor_out, tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, stream);
    TIDE_TRY(tide_pgl_write(self,
                            "SELECT ordinal, ordinal_next, cursor FROM tidemark.stream"
                            " WHERE id = $1 FOR NO KEY UPDATE",
                            &result, err));
    if (PQntuples(result) == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no stream %" PRIu64, stream);
    *ordinal_out = tide_pg_get_u64(result, 0, 0);
    *next_out = tide_pg_get_u64(result, 0, 1);
    return cursor_out == NULL ? TIDE_OK : cursor_copy(result, 2, cursor_out, err);
}

tide_status tide_pgl_cycle(tide_tx *tx, uint64_t stream, tide_text start, tide_text end,
                           uint64_t now_unix_ms, struct tide_cycle_row *row_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    PGresult *result = NULL;
    uint64_t ordinal = 0;
    uint64_t next = 0;
    tide_status rc = stream_lock(self, stream, &ordinal, &next, NULL, err);
    if (rc == TIDE_OK)
        rc = tide_cycle_check(stream, ordinal, next, err);
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_u64(pg, stream);
    tide_pg_u64(pg, next);
    tide_pg_text_or_null(pg, start);
    tide_pg_text_or_null(pg, end);
    tide_pg_u64(pg, now_unix_ms);
    rc = tide_pgl_write(self,
                        "WITH moved AS (UPDATE tidemark.stream SET ordinal_next = $2 + 1"
                        " WHERE id = $1)"
                        " INSERT INTO tidemark.cycle (stream, ordinal, start, \"end\", opened)"
                        " VALUES ($1, $2, $3, $4, $5) RETURNING id",
                        &result, err);
    if (rc == TIDE_OK)
        *row_out = (struct tide_cycle_row){.id = tide_pg_get_u64(result, 0, 0),
                                           .stream = stream,
                                           .ordinal = next,
                                           .start = start,
                                           .end = end,
                                           .opened_unix_ms = now_unix_ms};
    return tide_pgl_end(self, rc);
}

/* ---- cursors ----------------------------------------------------------------------- */

/* Locks the cycles of [from, to); counts them, and those that are unfinished. */
static tide_status span_lock(struct tide_postgres *self, uint64_t stream, uint64_t from,
                             uint64_t to, uint64_t *count_out, uint64_t *unfinished_out,
                             tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, stream);
    tide_pg_u64(self->pg, from);
    tide_pg_u64(self->pg, to);
    TIDE_TRY(
        tide_pgl_write(self,
                       "SELECT outstanding > 0 OR failed > 0 FROM tidemark.cycle WHERE stream = $1"
                       " AND ordinal >= $2 AND ordinal < $3 ORDER BY id FOR UPDATE",
                       &result, err));
    uint64_t unfinished = 0;
    for (int i = 0; i < PQntuples(result); i++)
        unfinished += tide_pg_get_bool(result, i, 0);
    *count_out = (uint64_t)PQntuples(result);
    *unfinished_out = unfinished;
    return TIDE_OK;
}

/* The move itself; its cycles are locked and finished. */
static tide_status move(struct tide_postgres *self, uint64_t stream, uint64_t from, uint64_t to,
                        uint64_t now_unix_ms, tide_buf *cursor_out, tide_error *err)
{
    PGresult *result = NULL;
    TIDE_ASSERT(from < to);
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_u64(pg, stream);
    tide_pg_u64(pg, from);
    tide_pg_u64(pg, to);
    tide_pg_u64(pg, now_unix_ms);
    TIDE_TRY(
        tide_pgl_write(self,
                       "UPDATE tidemark.stream s SET ordinal = $3, cursor = c.\"end\", moved = $4"
                       " FROM tidemark.cycle c WHERE s.id = $1 AND s.ordinal = $2"
                       " AND c.stream = s.id AND c.ordinal = $3 - 1 RETURNING s.cursor",
                       &result, err));
    TIDE_ASSERT(PQntuples(result) == 1); /* it is locked, and so is its cycle */
    return cursor_out == NULL ? TIDE_OK : cursor_copy(result, 0, cursor_out, err);
}

tide_status tide_pgl_cursor_move(tide_tx *tx, uint64_t stream, uint64_t from, uint64_t to,
                                 uint64_t now_unix_ms, tide_buf *cursor_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    uint64_t ordinal = 0;
    uint64_t next = 0;
    uint64_t count = 0;
    uint64_t unfinished = 0;
    tide_status rc = stream_lock(self, stream, &ordinal, &next, NULL, err);
    if (rc == TIDE_OK)
        rc = tide_cursor_check(stream, ordinal, from, to, err);
    if (rc == TIDE_OK)
        rc = span_lock(self, stream, from, to, &count, &unfinished, err);
    if (rc == TIDE_OK)
        rc = tide_span_check(stream, from, to, count, unfinished, err);
    if (rc == TIDE_OK)
        rc = move(self, stream, from, to, now_unix_ms, cursor_out, err);
    return tide_pgl_end(self, rc);
}

/* How far the cursor may move, by what is committed now or written by this transaction. */
static tide_status reachable(struct tide_postgres *self, uint64_t stream, uint64_t from,
                             uint64_t next, uint64_t *to_out, tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, stream);
    tide_pg_u64(self->pg, from);
    tide_pg_u64(self->pg, next);
    TIDE_TRY(tide_pgl_write(self,
                            "SELECT coalesce(min(ordinal), $3) FROM tidemark.cycle"
                            " WHERE stream = $1 AND ordinal >= $2 AND ordinal < $3"
                            " AND (outstanding > 0 OR failed > 0)",
                            &result, err));
    *to_out = tide_pg_get_u64(result, 0, 0);
    return TIDE_OK;
}

tide_status tide_pgl_cursor_advance(tide_tx *tx, uint64_t stream, uint64_t now_unix_ms,
                                    uint64_t *ordinal_out, tide_buf *cursor_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    uint64_t ordinal = 0;
    uint64_t next = 0;
    uint64_t to = 0;
    uint64_t count = 0;
    uint64_t unfinished = 0;
    tide_status rc = stream_lock(self, stream, &ordinal, &next, cursor_out, err);
    if (rc == TIDE_OK)
        rc = reachable(self, stream, ordinal, next, &to, err);
    if (rc == TIDE_OK && to > ordinal)
        rc = span_lock(self, stream, ordinal, to, &count, &unfinished, err);
    /* While this transaction waited for the locks, another one added a job to one of the
     * cycles.  The cursor stops before that cycle; no job can be added to the locked ones. */
    if (rc == TIDE_OK && unfinished > 0)
        rc = reachable(self, stream, ordinal, next, &to, err);
    if (rc == TIDE_OK && to > ordinal)
        rc = move(self, stream, ordinal, to, now_unix_ms, cursor_out, err);
    if (rc == TIDE_OK)
        *ordinal_out = to;
    return tide_pgl_end(self, rc);
}
