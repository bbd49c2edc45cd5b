/* streams.c - streams, their cycles, and the one rule by which a cursor
 * moves (E5.1). */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"

#include <inttypes.h>

static void stream_read(sqlite3_stmt *stmt, struct tide_stream_row *row)
{
    *row = (struct tide_stream_row){
        .id = tide_column_u64(stmt, 0),
        .account = tide_column_u32(stmt, 1),
        .ordinal = tide_column_u64(stmt, 2),
        .ordinal_next = tide_column_u64(stmt, 3),
        .name = tide_column_text(stmt, 4),
        .cursor = tide_column_text(stmt, 5),
        .floor = tide_column_text(stmt, 6),
        .start = tide_column_text(stmt, 7),
        .moved_unix_ms = tide_column_u64(stmt, 8),
    };
}

static tide_status stream_find(struct tide_sqlite *self, uint32_t account, const char *name,
                               struct tide_stream_row *row_out, bool *found_out, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_STREAM_GET);
    tide_db_end(stmt); /* it still holds the texts of the last answer */
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, tide_text_of(name));
    TIDE_TRY(tide_db_step(&self->db, stmt, found_out, err));
    if (*found_out)
        stream_read(stmt, row_out);
    return TIDE_OK;
}

static tide_status stream_add(struct tide_sqlite *self, uint32_t account, const char *name,
                              tide_text floor, tide_error *err)
{
    TIDE_TRY(account == 0 ? TIDE_OK : tide_sql_account_exists(self, account, err));
    return tide_db_do(&self->db, err, SQL_STREAM_ADD, account, name, tide_value_or_null(floor));
}

tide_status tide_sql_stream(tide_tx *tx, uint32_t account, const char *name, tide_text floor,
                            struct tide_stream_row *row_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    struct tide_stream_row row = {0};
    bool found = false;
    tide_status rc = stream_find(self, account, name, &row, &found, err);
    if (rc == TIDE_OK && !found) {
        rc = stream_add(self, account, name, floor, err);
        if (rc == TIDE_OK)
            rc = stream_find(self, account, name, &row, &found, err);
    } else if (rc == TIDE_OK && floor.bytes > 0 && !tide_text_equal(floor, row.floor)) {
        uint64_t id = row.id;
        tide_db_end(sql_of(self, SQL_STREAM_GET));
        rc = tide_db_do(&self->db, err, SQL_STREAM_FLOOR, id, floor);
        if (rc == TIDE_OK)
            rc = stream_find(self, account, name, &row, &found, err);
    }
    if (rc == TIDE_OK) /* the statement must not stay active (LSQ3) */
        rc = tide_stream_keep(&row, &self->kept, err);
    tide_db_end(sql_of(self, SQL_STREAM_GET));
    if (rc == TIDE_OK)
        *row_out = row;
    return tide_sql_end(self, rc);
}

static tide_status stream_ordinals(struct tide_sqlite *self, uint64_t stream, uint64_t *ordinal_out,
                                   uint64_t *next_out, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_STREAM_BY_ID);
    bool row = false;
    tide_bind_u64(stmt, 1, stream);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    if (!row)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no stream %" PRIu64, stream);
    *ordinal_out = tide_column_u64(stmt, 0);
    *next_out = tide_column_u64(stmt, 1);
    tide_db_end(stmt);
    return TIDE_OK;
}

tide_status tide_sql_cycle(tide_tx *tx, uint64_t stream, tide_text start, tide_text end,
                           uint64_t now_unix_ms, struct tide_cycle_row *row_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    uint64_t ordinal = 0;
    uint64_t next = 0;
    tide_status rc = stream_ordinals(self, stream, &ordinal, &next, err);
    if (rc == TIDE_OK)
        rc = tide_cycle_check(stream, ordinal, next, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    rc = tide_db_do(&self->db, err, SQL_CYCLE_ADD, stream, next, tide_value_or_null(start),
                    tide_value_or_null(end), now_unix_ms);
    uint64_t id = (uint64_t)sqlite3_last_insert_rowid(self->db.handle);
    if (rc == TIDE_OK)
        rc = tide_db_do(&self->db, err, SQL_STREAM_NEXT, stream);
    if (rc == TIDE_OK)
        *row_out = (struct tide_cycle_row){.id = id,
                                           .stream = stream,
                                           .ordinal = next,
                                           .start = start,
                                           .end = end,
                                           .opened_unix_ms = now_unix_ms};
    return tide_sql_end(self, rc);
}

/* Whether all cycles of [from, to) are there and finished (LED4). */
static tide_status span_finished(struct tide_sqlite *self, uint64_t stream, uint64_t from,
                                 uint64_t to, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_CYCLE_SPAN);
    bool row = false;
    tide_bind_u64(stmt, 1, stream);
    tide_bind_u64(stmt, 2, from);
    tide_bind_u64(stmt, 3, to);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    TIDE_ASSERT(row); /* an aggregate always has one */
    uint64_t count = tide_column_u64(stmt, 0);
    uint64_t unfinished = tide_column_u64(stmt, 1);
    tide_db_end(stmt);
    return tide_span_check(stream, from, to, count, unfinished, err);
}

tide_status tide_sql_cursor_move(tide_tx *tx, uint64_t stream, uint64_t from, uint64_t to,
                                 uint64_t now_unix_ms, tide_buf *cursor_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    uint64_t ordinal = 0;
    uint64_t next = 0;
    tide_status rc = stream_ordinals(self, stream, &ordinal, &next, err);
    if (rc == TIDE_OK)
        rc = tide_cursor_check(stream, ordinal, from, to, err);
    if (rc == TIDE_OK)
        rc = span_finished(self, stream, from, to, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);

    sqlite3_stmt *end = sql_of(self, SQL_CYCLE_END);
    bool row = false;
    tide_bind_u64(end, 1, stream);
    tide_bind_u64(end, 2, to - 1);
    rc = tide_db_step(&self->db, end, &row, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    TIDE_ASSERT(row);
    sqlite3_stmt *stmt = tide_db_ask(&self->db, SQL_STREAM_MOVE, stream, from, to,
                                     tide_value_or_null(tide_column_text(end, 0)), now_unix_ms);
    rc = tide_sql_change_one(self, stmt, "stream", stream, err);
    if (rc == TIDE_OK && cursor_out != NULL) {
        tide_text value = tide_column_text(end, 0);
        tide_buf_clear(cursor_out);
        rc = tide_buf_add(cursor_out, value.data, value.bytes);
    }
    tide_db_end(end);
    return rc;
}

/* The first ordinal from `from` on that the cursor may not pass. */
static tide_status reachable(struct tide_sqlite *self, uint64_t stream, uint64_t from,
                             uint64_t next, uint64_t *to_out, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_CYCLE_UNFINISHED);
    bool row = false;
    tide_bind_u64(stmt, 1, stream);
    tide_bind_u64(stmt, 2, from);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    *to_out = row ? tide_column_u64(stmt, 0) : next;
    if (row)
        tide_db_end(stmt);
    return TIDE_OK;
}

static tide_status cursor_get(struct tide_sqlite *self, uint64_t stream, tide_buf *cursor_out,
                              tide_error *err)
{
    tide_auto_stmt *stmt = sql_of(self, SQL_STREAM_CURSOR);
    bool row = false;
    tide_bind_u64(stmt, 1, stream);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    TIDE_ASSERT(row); /* its ordinals were read a moment ago */
    tide_text value = tide_column_text(stmt, 0);
    tide_buf_clear(cursor_out);
    return tide_buf_add(cursor_out, value.data, value.bytes);
}

tide_status tide_sql_cursor_advance(tide_tx *tx, uint64_t stream, uint64_t now_unix_ms,
                                    uint64_t *ordinal_out, tide_buf *cursor_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    uint64_t from = 0;
    uint64_t next = 0;
    uint64_t to = 0;
    tide_status rc = stream_ordinals(self, stream, &from, &next, err);
    if (rc == TIDE_OK)
        rc = reachable(self, stream, from, next, &to, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    TIDE_ASSERT(from <= to);
    /* Through the one function that checks the rule again (LED4). */
    if (from < to)
        rc = tide_sql_cursor_move(tx, stream, from, to, now_unix_ms, cursor_out, err);
    else if (cursor_out != NULL)
        rc = cursor_get(self, stream, cursor_out, err);
    if (rc == TIDE_OK)
        *ordinal_out = to;
    return tide_sql_end(self, rc);
}
