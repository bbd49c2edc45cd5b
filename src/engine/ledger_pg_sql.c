/* ledger_pg_sql.c - the texts that a ledger on PostgreSQL prepares, by number. */
#include "engine/ledger_pg.h"

const char *const tide_pg_sql[PGSQL_COUNT_OF_STATEMENTS] = {
    [PGSQL_KIND_SCOPES] = "SELECT id, scope FROM tidemark.kind WHERE id = ANY ($1)",
};
