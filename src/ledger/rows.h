/* rows.h - the connection for rows that systems keep beside the ledger (db/rows.h). */
#ifndef TIDE_ENGINE_LEDGER_ROWS_H
#define TIDE_ENGINE_LEDGER_ROWS_H

#include "db/rows.h"
#include "ledger/ledger.h"
#include "tidemark.h"

static inline tide_rows tide_rows_of(struct sqlite3 *sqlite, struct pg_conn *postgres)
{
    return (tide_rows){.sqlite = sqlite, .postgres = postgres};
}

/* Valid until the transaction ends. */
static inline tide_rows tide_transaction_rows(tide_transaction *transaction)
{
    struct sqlite3 *sqlite = tide_transaction_sqlite(transaction);
    return tide_rows_of(sqlite, sqlite != NULL ? NULL : tide_transaction_postgres(transaction));
}
/* Statements of a SQLite ledger's transactions that stay prepared; NULL.  Transactions come one after the
 * other, so each has them for itself. */
struct tide_rows_kept *tide_tx_kept(tide_tx *tx);
struct tide_rows_kept *tide_transaction_kept(tide_transaction *transaction);
/* For what many jobs write when they end. */
static inline tide_rows tide_transaction_rows_often(tide_transaction *transaction)
{
    tide_rows rows = tide_transaction_rows(transaction);
    rows.kept = tide_transaction_kept(transaction);
    return rows;
}
static inline tide_rows tide_tx_rows(tide_tx *tx)
{
    struct sqlite3 *sqlite = tide_tx_sqlite(tx);
    return tide_rows_of(sqlite, sqlite != NULL ? NULL : tide_tx_postgres(tx));
}
/* The statements that a SQLite ledger keeps if it was opened with `read_only`; NULL. */
struct tide_rows_kept *tide_ledger_kept(tide_ledger *ledger);
/* Of a ledger that was opened with `read_only`; valid until its next operation. */
static inline tide_rows tide_ledger_rows(tide_ledger *ledger)
{
    struct sqlite3 *sqlite = tide_ledger_sqlite(ledger);
    tide_rows rows = tide_rows_of(sqlite, sqlite != NULL ? NULL : tide_ledger_postgres(ledger));
    rows.kept = tide_ledger_kept(ledger);
    return rows;
}

#endif
