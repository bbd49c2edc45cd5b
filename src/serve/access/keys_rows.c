#include "serve/access/keys_rows.h"

#include <string.h>

static const char what[] = "the keys of tidemark serve";

/* The hash is the SHA-256 of the key; the key itself is stored nowhere.  A time of 0 is none. */
static const char tables_sql[] =
    "CREATE TABLE IF NOT EXISTS serve_key("
    " home TEXT NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, scope TEXT NOT NULL, hash BLOB "
    "NOT NULL,"
    " created_unix_ms INTEGER NOT NULL, expires_unix_ms INTEGER NOT NULL,"
    " revoked_unix_ms INTEGER NOT NULL, PRIMARY KEY (home, id)"
    ") STRICT;";

tide_status tide_keys_rows_tables(tide_rows rows, tide_error *err)
{
    return tide_rows_tables(rows, tables_sql, what, err);
}

/* A row that is not what was written holds no key. */
static bool row_read(const tide_rows_stmt *stmt, struct tide_key *key_out)
{
    struct tide_key key = {.id = tide_rows_get_u64(stmt, 0)};
    tide_rows_get_copy(stmt, 1, key.name, sizeof key.name);
    if (!tide_key_scope_parse(tide_rows_get_text(stmt, 2), &key.scope))
        return false;
    const tide_text hash = tide_rows_get_text(stmt, 3);
    if (hash.bytes != sizeof key.hash)
        return false;
    memcpy(key.hash, hash.data, sizeof key.hash);
    key.created_unix_ms = tide_rows_get_u64(stmt, 4);
    key.expires_unix_ms = tide_rows_get_u64(stmt, 5);
    key.revoked_unix_ms = tide_rows_get_u64(stmt, 6);
    *key_out = key;
    return true;
}

tide_status tide_keys_rows_load(tide_rows rows, const char *home,
                                bool (*take)(void *arg, const struct tide_key *key), void *take_arg,
                                tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_rows_ask(
        rows, what, &stmt, err,
        "SELECT id, name, scope, hash, created_unix_ms, expires_unix_ms, revoked_unix_ms"
        " FROM serve_key WHERE home = ?1 ORDER BY id",
        home);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_key key;
        if (!row_read(&stmt, &key))
            rc = tide_error_set(err, TIDE_CORRUPT, "%s: a row cannot be read", what);
        else if (!take(take_arg, &key))
            rc = tide_error_set(err, TIDE_FULL, "%s: too many rows", what);
    }
    tide_rows_end(&stmt);
    return rc;
}

tide_status tide_keys_rows_add(tide_rows rows, const char *home, const struct tide_key *key,
                               uint64_t gone, tide_error *err)
{
    tide_status rc = TIDE_OK;
    if (gone != 0)
        rc = tide_rows_do(rows, what, err, "DELETE FROM serve_key WHERE home = ?1 AND id = ?2",
                          home, gone);
    if (rc != TIDE_OK)
        return rc;
    return tide_rows_do(rows, what, err,
                        "INSERT INTO serve_key (home, id, name, scope, hash, created_unix_ms,"
                        " expires_unix_ms, revoked_unix_ms)"
                        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                        home, key->id, key->name, tide_key_scope_name(key->scope),
                        tide_value_bytes(key->hash, sizeof key->hash), key->created_unix_ms,
                        key->expires_unix_ms, key->revoked_unix_ms);
}

tide_status tide_keys_rows_revoke(tide_rows rows, const char *home, uint64_t id,
                                  uint64_t now_unix_ms, tide_error *err)
{
    return tide_rows_do(rows, what, err,
                        "UPDATE serve_key SET revoked_unix_ms = ?3"
                        " WHERE home = ?1 AND id = ?2 AND revoked_unix_ms = 0",
                        home, id, now_unix_ms);
}
