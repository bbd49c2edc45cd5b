/* rows.h - cold statements in somebody else's transaction.
 *
 * The systems on the engine keep rows of their own beside the ledger (E1.6) and get a
 * bare connection for the length of a transaction.  Their statements run a few times
 * in a run: preparing each when it is needed is simpler than keeping it.  What is hot
 * uses db.h, which keeps them.
 *
 * `what` names the rows in an error: "the mail system's rows". */
#ifndef TIDE_DB_ROWS_H
#define TIDE_DB_ROWS_H

#include "db/db.h"

/* TIDE_IO with SQLite's own words. */
tide_status tide_rows_failed(struct sqlite3 *db, const char *what, tide_error *err);
/* Texts without parameters and rows: tables. */
tide_status tide_rows_exec(struct sqlite3 *db, const char *sql, const char *what, tide_error *err);
/* The caller finalizes it, or lets one of the functions below do it. */
tide_status tide_rows_prepare(struct sqlite3 *db, const char *sql, const char *what,
                              sqlite3_stmt **stmt_out, tide_error *err);
/* Runs a statement without rows, and finalizes it. */
tide_status tide_rows_run(struct sqlite3 *db, sqlite3_stmt *stmt, const char *what,
                          tide_error *err);
/* The end of a walk over rows that stopped with `code`, and finalizes it: TIDE_OK at the end
 * of the rows, or before it (SQLITE_ROW). */
tide_status tide_rows_end(struct sqlite3 *db, sqlite3_stmt *stmt, int code, const char *what,
                          tide_error *err);
/* Steps once.  TIDE_OK: there is a row; TIDE_NOT_FOUND: there is none.  The caller
 * finalizes it in any case. */
tide_status tide_rows_one(struct sqlite3 *db, sqlite3_stmt *stmt, const char *what,
                          tide_error *err);

#endif
