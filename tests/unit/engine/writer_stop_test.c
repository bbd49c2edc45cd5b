/* Goal: an engine that ends while its writer copies the log, without the lock, is closed (E7.1).  The
 * writer used to wait for ever: it was woken before it waited.
 * Method: the linker puts a gate before the copying, which lets it through after the end. */
#include "engine_fixture.h"

#include "engine/engine.h"
#include "ledger/ledger.h"

#include <stdatomic.h>

static tide_engine *ending; /* NULL: no gate */
static atomic_bool copying;

static bool has_ended(tide_engine *engine)
{
    tide_lock_take(engine->world, engine->lock);
    const bool ended = engine->phase == TIDE_PHASE_ENDED;
    tide_lock_drop(engine->world, engine->lock);
    return ended;
}

tide_status __real_tide_ledger_checkpoint(tide_ledger *ledger, uint32_t *pages_left_out,
                                          tide_error *err);
tide_status __wrap_tide_ledger_checkpoint(tide_ledger *ledger, uint32_t *pages_left_out,
                                          tide_error *err);
tide_status __wrap_tide_ledger_checkpoint(tide_ledger *ledger, uint32_t *pages_left_out,
                                          tide_error *err)
{
    if (ending != NULL && !atomic_exchange(&copying, true))
        UNTIL(has_ended(ending));
    return __real_tide_ledger_checkpoint(ledger, pages_left_out, err);
}

OPENED(an_end_while_the_log_is_copied_is_not_missed)
{
    tide_engine *engine = f->engine;
    OK(tide_engine_start(engine, err));
    ending = engine;
    tide_lock_take(engine->world, engine->lock);
    engine->wal_short = true; /* as the keeper says when a short rest is left */
    tide_cond_wake_one(engine->world, engine->write);
    tide_lock_drop(engine->world, engine->lock);
    UNTIL(atomic_load(&copying));
    alarm(60); /* a test that hangs is killed, and fails */
    OK(tide_engine_close(engine));
    alarm(0);
    f->engine = NULL;
    ending = NULL;
}
