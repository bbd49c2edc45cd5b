/* wanted.c - which accounts this process works for.
 *
 * A command for one account must neither run jobs of the others nor wait for them.  It names its
 * accounts before the start; an account that is not named gets no worker here, and its jobs stay
 * in the ledger.  Another command of the same directory may hand over work for such an account:
 * this process holds the directory and is the only one that can do it, so it does. */
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool tide_engine_wants(const tide_engine *engine, const char *name)
{
    for (size_t i = 0; i < engine->only_count; i++)
        if (strcmp(engine->only[i], name) == 0)
            return true;
    return engine->only == NULL;
}

static void wanted_is(tide_engine *engine, struct tide_account *account, bool wanted)
{
    account->unwanted = !wanted;
    tide_account_refresh(engine, account, tide_world_now_ms(engine->world));
}

tide_status tide_engine_only(tide_engine *engine, const char *const *names, size_t count,
                             tide_error *err)
{
    if (count == 0)
        return TIDE_OK;
    char(*only)[TIDE_NAME_BYTES_MAX + 1] = tide_mem_array(engine->mem, count, sizeof *only);
    if (only == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu accounts", count);
    for (size_t i = 0; i < count; i++)
        (void)snprintf(only[i], sizeof only[i], "%s", names[i]);
    tide_lock_take(engine->world, engine->lock);
    tide_mem_free(engine->mem, engine->only, engine->only_count * sizeof *engine->only);
    engine->only = only;
    engine->only_count = count;
    for (size_t i = 0; i < engine->accounts_count; i++)
        wanted_is(engine, engine->accounts[i],
                  tide_engine_wants(engine, engine->accounts[i]->name));
    tide_lock_drop(engine->world, engine->lock);
    return TIDE_OK;
}

tide_status tide_account_asked(tide_engine *engine, uint32_t id, tide_error *err)
{
    tide_lock_take(engine->world, engine->lock);
    struct tide_account *account = tide_engine_account_of(engine, id);
    if (account != NULL) {
        (void)tide_governor_signed_in(account->governor, tide_world_now_ms(engine->world));
        wanted_is(engine, account, true);
        tide_cond_wake_one(engine->world, engine->pump);
    }
    tide_lock_drop(engine->world, engine->lock);
    return account != NULL ? TIDE_OK
                           : tide_error_set(err, TIDE_NOT_FOUND, "no account %" PRIu32, id);
}
