#include "serve/once/once.h"

#include <string.h>

static const char what[] = "the answers of tidemark serve";

/* status 0: it has not ended. */
static const char tables_sql[] =
    "CREATE TABLE IF NOT EXISTS serve_once("
    " home TEXT NOT NULL, who INTEGER NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL,"
    " begun_unix_ms INTEGER NOT NULL, status INTEGER NOT NULL, body BLOB NOT NULL,"
    " PRIMARY KEY (home, who, key)) STRICT;"
    "CREATE INDEX IF NOT EXISTS serve_once_begun ON serve_once (home, begun_unix_ms);";

tide_status tide_once_tables(tide_rows rows, tide_error *err)
{
    return tide_rows_tables(rows, tables_sql, what, err);
}

static tide_status forget_old(tide_rows rows, const struct tide_once_name *name,
                              uint64_t now_unix_ms, tide_error *err)
{
    const uint64_t before = now_unix_ms > TIDE_ONCE_LIFE_MS ? now_unix_ms - TIDE_ONCE_LIFE_MS : 0;
    return tide_rows_do(rows, what, err,
                        "DELETE FROM serve_once WHERE home = ?1 AND begun_unix_ms < ?2", name->home,
                        before);
}

static tide_status room_check(tide_rows rows, const struct tide_once_name *name, tide_error *err)
{
    uint64_t count = 0;
    const tide_status rc = tide_rows_number(
        rows, what, &count, err, "SELECT count(*) FROM serve_once WHERE home = ?1", name->home);
    return rc == TIDE_OK && count > TIDE_ONCE_MAX
               ? tide_error_set(err, TIDE_FULL, "%s: more than %d in a day", what, TIDE_ONCE_MAX)
               : rc;
}

static tide_status row_read(const tide_rows_stmt *stmt, const unsigned char *digest,
                            struct tide_once_row *row_out, tide_buf *body_out)
{
    const tide_text stored = tide_rows_get_text(stmt, 0);
    const uint64_t status = tide_rows_get_u64(stmt, 1);
    const tide_text body = tide_rows_get_text(stmt, 2);
    if (stored.bytes != TIDE_ONCE_DIGEST_BYTES ||
        memcmp(stored.data, digest, TIDE_ONCE_DIGEST_BYTES) != 0) {
        row_out->once = TIDE_ONCE_OTHER;
        return TIDE_OK;
    }
    *row_out = (struct tide_once_row){.once = status == 0 ? TIDE_ONCE_FIRST : TIDE_ONCE_STORED,
                                      .status = (int)status,
                                      .asked_unix_ms = tide_rows_get_u64(stmt, 3)};
    tide_buf_clear(body_out);
    return tide_buf_add(body_out, body.data, body.bytes);
}

tide_status tide_once_begin(tide_rows rows, const struct tide_once_name *name,
                            const unsigned char digest[TIDE_ONCE_DIGEST_BYTES],
                            uint64_t now_unix_ms, struct tide_once_row *row_out, tide_buf *body_out,
                            tide_error *err)
{
    uint64_t inserted = 0;
    tide_status rc = forget_old(rows, name, now_unix_ms, err);
    if (rc == TIDE_OK)
        rc = tide_rows_change(
            rows, what, &inserted, err,
            "INSERT INTO serve_once (home, who, key, digest, begun_unix_ms, status, body)"
            " VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6) ON CONFLICT (home, who, key) DO NOTHING",
            name->home, name->who, name->key, tide_value_bytes(digest, TIDE_ONCE_DIGEST_BYTES),
            now_unix_ms, tide_value_bytes("", 0));
    if (rc != TIDE_OK)
        return rc;
    *row_out = (struct tide_once_row){.once = TIDE_ONCE_FIRST, .asked_unix_ms = now_unix_ms};
    if (inserted == 1)
        return room_check(rows, name, err);
    tide_rows_stmt stmt;
    rc = tide_rows_first(rows, what, &stmt, err,
                         "SELECT digest, status, body, begun_unix_ms FROM serve_once"
                         " WHERE home = ?1 AND who = ?2 AND key = ?3",
                         name->home, name->who, name->key);
    if (rc == TIDE_OK)
        rc = row_read(&stmt, digest, row_out, body_out);
    tide_rows_end(&stmt);
    return rc;
}

tide_status tide_once_end(tide_rows rows, const struct tide_once_name *name, int status,
                          tide_text body, tide_error *err)
{
    if (status == 0)
        return tide_rows_do(rows, what, err,
                            "DELETE FROM serve_once"
                            " WHERE home = ?1 AND who = ?2 AND key = ?3 AND status = 0",
                            name->home, name->who, name->key);
    return tide_rows_do(rows, what, err,
                        "UPDATE serve_once SET status = ?4, body = ?5"
                        " WHERE home = ?1 AND who = ?2 AND key = ?3",
                        name->home, name->who, name->key, status,
                        tide_value_bytes(body.data, body.bytes));
}
