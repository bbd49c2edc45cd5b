/* listen.c - a thread that waits for hints from other processes. */
#include "fleet/inside.h"

enum { WAIT_MS = 10000 };

static void take_hints(tide_engine *engine, const struct tide_hints *hints)
{
    struct tide_fleet *fleet = engine->fleet;
    tide_lock_take(engine->world, engine->lock);
    if (hints->control || hints->all)
        fleet->look_wanted = true;
    if (hints->free_work || hints->all) {
        tide_fleet_free_work(engine);
        engine->stuff_to_claim = true;
    }
    for (size_t i = 0; i < hints->accounts_count; i++) {
        if (tide_fleet_ours(engine, hints->accounts[i])) {
            tide_tracker_more(engine->tracker, hints->accounts[i]);
            engine->stuff_to_claim = true;
        } else {
            fleet->look_wanted = true; /* perhaps no member holds it */
        }
    }
    if (fleet->look_wanted)
        tide_cond_wake_one(engine->world, engine->pump);
    tide_dispatch(engine, tide_world_now_ms(engine->world));
    tide_lock_drop(engine->world, engine->lock);
}

static void listen_main(void *arg)
{
    tide_engine *engine = arg;
    struct tide_hints hints;
    for (;;) {
        tide_error err;
        tide_status rc = tide_listener_wait(engine->fleet->listener, WAIT_MS, &hints, &err);
        if (rc == TIDE_OK)
            take_hints(engine, &hints);
        else if (rc != TIDE_TIMEOUT)
            return;
    }
}

tide_status tide_fleet_listen(tide_engine *engine, tide_error *err)
{
    struct tide_fleet *fleet = engine->fleet;
    if (fleet == NULL)
        return TIDE_OK;
    tide_status rc =
        tide_listener_open(engine->world, engine->ledger_path, engine->mem, &fleet->listener, err);
    if (rc != TIDE_OK) {
        /* A pooler without LISTEN, or no connection left: the engine works without hints. */
        tide_log_event(engine->log, TIDE_LOG_INFO, tide_world_now_unix_ms(engine->world),
                       "no listener, looking more often",
                       TIDE_F_CSTR("detail", err == NULL ? "" : err->text));
        return TIDE_OK;
    }
    return tide_world_thread(engine->world, "listener", listen_main, engine,
                             &fleet->listener_thread, err);
}

void tide_fleet_listen_stop(tide_engine *engine)
{
    struct tide_fleet *fleet = engine->fleet;
    if (fleet == NULL || fleet->listener == NULL)
        return;
    tide_listener_stop(fleet->listener);
    if (fleet->listener_thread != NULL)
        tide_world_join(engine->world, fleet->listener_thread);
    tide_listener_close(fleet->listener);
    fleet->listener = NULL;
    fleet->listener_thread = NULL;
}
