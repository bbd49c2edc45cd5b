/* own_table.h - SQL on a program's own tables inside a transaction of the ledger, for the
 * examples: the same few lines for SQLite and for PostgreSQL. */
#ifndef OWN_TABLE_H
#define OWN_TABLE_H

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <tidemark.h>

/* Puts the number in the first column of the first row, if there is one, into *number_out. */
static tide_status on_sqlite(sqlite3 *db, const char *sql, long long *number_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW && number_out != NULL)
        *number_out = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE
               ? TIDE_OK
               : tide_error_set(err, TIDE_IO, "%s", sqlite3_errmsg(db));
}

static tide_status on_postgres(PGconn *db, const char *sql, long long *number_out, tide_error *err)
{
    PGresult *result = PQexec(db, sql);
    tide_status rc = TIDE_OK;
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        rc = tide_error_set(err, TIDE_IO, "%.300s", PQerrorMessage(db));
    else if (number_out != NULL && PQntuples(result) > 0)
        *number_out = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return rc;
}

static tide_status own_sql(tide_transaction *transaction, const char *sql, long long *number_out,
                           tide_error *err)
{
    PGconn *postgres = tide_transaction_postgres(transaction);
    return postgres != NULL ? on_postgres(postgres, sql, number_out, err)
                            : on_sqlite(tide_transaction_sqlite(transaction), sql, number_out, err);
}

#endif
