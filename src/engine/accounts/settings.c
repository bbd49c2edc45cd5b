/* settings.c - which settings count for one account (E11.2). */
#include "engine/engine.h"

#include <stdio.h>

const tide_settings *tide_account_settings(const tide_engine *engine,
                                           const struct tide_account *account)
{
    return tide_settings_of(engine->settings, account->name);
}

void tide_account_tune(tide_engine *engine, struct tide_account *account)
{
    const tide_settings *settings = tide_account_settings(engine, account);
    const struct tide_tuning tuning = tide_tuning_engine(settings);
    account->small_below_bytes = tuning.small_below_bytes;
    account->large_above_bytes = tuning.large_above_bytes;
    account->metadata_budget_bytes = tide_tuning_alerts(settings).metadata_budget_bytes;
    account->attempts_max = tuning.attempts_max;
    account->stall_after_ms = tuning.stall_after_ms;
    account->stall_ignored_ms = tuning.stall_ignored_ms;
    __atomic_store_n(&account->retry_after_ms_max, tuning.retry_after_ms_max, __ATOMIC_RELAXED);
}

/* ---- for systems on the engine ---- */

static const tide_settings *settings_of(tide_engine *engine, uint32_t account)
{
    const struct tide_account *known = tide_engine_account_of(engine, account);
    return known == NULL ? engine->settings : tide_account_settings(engine, known);
}

uint64_t tide_engine_setting_u64(tide_engine *engine, uint32_t account, int setting)
{
    tide_lock_take(engine->world, engine->lock);
    const uint64_t number = tide_setting_u64(settings_of(engine, account), (tide_setting)setting);
    tide_lock_drop(engine->world, engine->lock);
    return number;
}

void tide_engine_setting_text(tide_engine *engine, uint32_t account, int setting, char *text_out,
                              size_t text_bytes)
{
    tide_lock_take(engine->world, engine->lock);
    (void)snprintf(text_out, text_bytes, "%s",
                   tide_setting_text(settings_of(engine, account), (tide_setting)setting));
    tide_lock_drop(engine->world, engine->lock);
}
