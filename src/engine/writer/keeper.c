/* keeper.c - a thread that checkpoints SQLite's log while the writer works (E2.5), and checks
 * whether the settings changed (reload.h).
 *
 * SQLite starts its log over only when all of it was copied.  While the writer is busy
 * a copy is never complete, so the keeper does the bulk of it and leaves the short rest
 * to the writer, between two transactions. */
#include "engine/engine.h"
#include "engine/reload.h"

void tide_keeper_main(void *arg)
{
    tide_engine *engine = arg;
    tide_lock_take(engine->world, engine->lock);
    while (engine->phase != TIDE_PHASE_ENDED) {
        uint64_t look_ms = tide_reload_look(engine, tide_world_now_ms(engine->world));
        if (engine->phase == TIDE_PHASE_ENDED)
            break; /* the engine ended while the lock was dropped */
        if (engine->wal_pages < TIDE_WAL_PAGES_KEEPER || engine->wal_short || engine->wal_copying) {
            uint64_t until_us = look_ms == TIDE_NEVER ? TIDE_NEVER : look_ms * 1000;
            tide_status rc = tide_cond_wait(engine->world, engine->keeper, engine->lock, until_us);
            if (rc == TIDE_STOPPED)
                break;
            continue;
        }
        engine->wal_pages = 0;
        engine->wal_copying = true;
        tide_lock_drop(engine->world, engine->lock);
        uint32_t pages_left = 0;
        tide_error err;
        tide_status rc = tide_ledger_checkpoint(engine->ledger, &pages_left, &err);
        tide_lock_take(engine->world, engine->lock);
        engine->wal_copying = false;
        if (rc == TIDE_OK && pages_left > 0)
            engine->wal_short = true;
        tide_cond_wake_one(engine->world, engine->write);
        if (rc == TIDE_IO || rc == TIDE_CORRUPT)
            tide_engine_fail(engine, rc, &err);
    }
    tide_lock_drop(engine->world, engine->lock);
}
