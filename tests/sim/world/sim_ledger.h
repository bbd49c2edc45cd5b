/* sim_ledger.h - the ledger of a simulated world, looked at past the engine. */
#ifndef TIDE_SIM_LEDGER_H
#define TIDE_SIM_LEDGER_H

#include "sim_world.h"
#include "tidemark.h"

struct sqlite3;
struct sqlite3_stmt;

/* Opens a file that a crash left, which must be readable; NULL: there is none, or it is empty. */
struct sqlite3 *tide_sim_ledger_file(tide_sim *sim, const char *path);
/* NULL: there is no file, or the table is not there yet. */
struct sqlite3_stmt *tide_sim_ledger_prepare(struct sqlite3 *db, const char *sql);
/* Fails the simulation, with `rule` in front, where the ledger of /state does not open or breaks
 * an invariant. */
void tide_sim_ledger_check(tide_sim *sim, const char *rule);
/* Runs statements; `number_out` gets the first column of the last row. */
tide_status tide_sim_ledger_run(tide_transaction *transaction, const char *sql,
                                uint64_t *number_out, tide_error *err);
/* The same in a transaction of its own; `number_out` may be NULL.  Bad SQL fails the simulation. */
tide_status tide_sim_ledger_sql(tide_sim *sim, tide_engine *engine, const char *sql,
                                uint64_t *number_out, tide_error *err);
/* Prints the columns of a row and ends the line, on standard error. */
void tide_sim_ledger_row(struct sqlite3_stmt *stmt);

#endif
