#include "db/rows.h"

tide_status tide_rows_failed(struct sqlite3 *db, const char *what, tide_error *err)
{
    return tide_error_set(err, TIDE_IO, "%s: %s", what, sqlite3_errmsg(db));
}

tide_status tide_rows_exec(struct sqlite3 *db, const char *sql, const char *what, tide_error *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? TIDE_OK
                                                                : tide_rows_failed(db, what, err);
}

tide_status tide_rows_prepare(struct sqlite3 *db, const char *sql, const char *what,
                              sqlite3_stmt **stmt_out, tide_error *err)
{
    return sqlite3_prepare_v2(db, sql, -1, stmt_out, NULL) == SQLITE_OK
               ? TIDE_OK
               : tide_rows_failed(db, what, err);
}

tide_status tide_rows_run(struct sqlite3 *db, sqlite3_stmt *stmt, const char *what, tide_error *err)
{
    const int code = sqlite3_step(stmt);
    const tide_status rc = code == SQLITE_DONE ? TIDE_OK : tide_rows_failed(db, what, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_rows_end(struct sqlite3 *db, sqlite3_stmt *stmt, int code, const char *what,
                          tide_error *err)
{
    const bool well = code == SQLITE_DONE || code == SQLITE_ROW;
    const tide_status rc = well ? TIDE_OK : tide_rows_failed(db, what, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_rows_one(struct sqlite3 *db, sqlite3_stmt *stmt, const char *what, tide_error *err)
{
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        return TIDE_OK;
    return code == SQLITE_DONE ? TIDE_NOT_FOUND : tide_rows_failed(db, what, err);
}
