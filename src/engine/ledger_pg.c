/* ledger_pg.c - transactions of a ledger on PostgreSQL. */
#include "engine/ledger_pg.h"

tide_status tide_ledger_postgres_open(tide_world *world, const struct tide_ledger_options *options,
                                      tide_ledger **ledger_out, tide_error *err)
{
    (void)world;
    (void)options;
    (void)ledger_out;
    return tide_error_set(err, TIDE_INVALID, "PostgreSQL is not supported yet");
}
