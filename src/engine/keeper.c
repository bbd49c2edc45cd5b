/* keeper.c - copies the log back into the database, beside the writer (E2.5).
 *
 * SQLite starts its log over only when all of it was copied.  Beside a busy
 * writer a copy is never complete, so the keeper does the bulk of it and leaves
 * the short rest to the writer, between two transactions. */
#include "engine/engine.h"

void tide_keeper_main(void *arg)
{
    tide_engine *engine = arg;
    enum { PAGES = 1000 }; /* about 4 MB */
    tide_lock_take(engine->world, engine->lock);
    while (engine->phase != TIDE_PHASE_ENDED) {
        if (engine->wal_pages < PAGES || engine->wal_short) {
            tide_status rc =
                tide_cond_wait(engine->world, engine->keeper, engine->lock, TIDE_NEVER);
            if (rc == TIDE_STOPPED)
                break;
            continue;
        }
        engine->wal_pages = 0;
        tide_lock_drop(engine->world, engine->lock);
        uint32_t pages_left = 0;
        tide_error err;
        tide_status rc = tide_ledger_checkpoint(engine->ledger, &pages_left, &err);
        tide_lock_take(engine->world, engine->lock);
        if (rc == TIDE_IO || rc == TIDE_CORRUPT)
            tide_engine_fail(engine, rc, &err);
        else if (rc == TIDE_OK && pages_left > 0)
            engine->wal_short = true;
    }
    tide_lock_drop(engine->world, engine->lock);
}
