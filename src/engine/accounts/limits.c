/* limits.c - a limit that many accounts have in common: a project's quota (E4.1).
 *
 * On SQLite this process uses all of it.  On a shared ledger each process gets a share of it,
 * for as long as its lease lasts (tide_ledger_grant()). */
#include "engine/engine.h"

#include <string.h>

tide_status tide_limits_add(tide_engine *engine, const struct tide_provider_limits *provider,
                            tide_error *err)
{
    struct tide_common_limit *common = &engine->limits[engine->limits_count];
    if (!provider->shared_by_setting && provider->shared_units == 0)
        return TIDE_OK;
    if (engine->limits_count == TIDE_COMMON_LIMITS)
        return tide_error_set(err, TIDE_FULL, "more than %d limits of many accounts",
                              TIDE_COMMON_LIMITS);
    common->provider = provider;
    common->units_max = tide_tuning_shared(engine->settings, provider, &common->window_ms);
    common->limit.units_max = common->units_max > 0 ? common->units_max : UINT64_MAX;
    common->limit.granted_until_ms = UINT64_MAX;
    if (tide_window_init(&common->limit.window, common->window_ms, engine->mem) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a limit");
    engine->limits_count++;
    return TIDE_OK;
}

tide_status tide_limits_new(tide_engine *engine, tide_error *err)
{
    for (size_t i = 0; i < TIDE_PROVIDERS_KNOWN; i++)
        TIDE_TRY(tide_limits_add(engine, &tide_providers_known[i], err));
    return TIDE_OK;
}

void tide_limits_free(tide_engine *engine)
{
    for (size_t i = 0; i < engine->limits_count; i++)
        tide_window_done(&engine->limits[i].limit.window);
}

void tide_limits_reload(tide_engine *engine)
{
    for (size_t i = 0; i < engine->limits_count; i++) {
        struct tide_common_limit *common = &engine->limits[i];
        uint32_t window_ms = 0; /* ignored: a change of the window needs a restart */
        common->units_max = tide_tuning_shared(engine->settings, common->provider, &window_ms);
        if (engine->fleet == NULL || common->units_max == 0)
            common->limit.units_max = common->units_max > 0 ? common->units_max : UINT64_MAX;
        else if (common->limit.units_max > common->units_max)
            common->limit.units_max = common->units_max; /* until the next grant */
    }
}

tide_status tide_limits_bind(tide_engine *engine, struct tide_account *account)
{
    for (size_t i = 0; i < engine->limits_count; i++)
        if (strcmp(engine->limits[i].provider->name, account->provider) == 0)
            return tide_governor_limit_add(account->governor, &engine->limits[i].limit);
    return TIDE_OK;
}

uint64_t tide_limits_wanted(const tide_engine *engine, size_t index)
{
    const struct tide_common_limit *common = &engine->limits[index];
    uint64_t wanted = 0;
    for (size_t i = 0; common->units_max > 0 && i < engine->accounts_count; i++) {
        const struct tide_account *account = engine->accounts[i];
        if (!account->held || strcmp(account->provider, common->provider->name) != 0)
            continue;
        const struct tide_governor_profile profile = tide_engine_profile(engine, account->provider);
        wanted += profile.window_units_max > 0 ? profile.window_units_max : common->units_max;
    }
    return wanted < common->units_max ? wanted : common->units_max;
}

void tide_limits_granted(tide_engine *engine, size_t index, uint64_t units, uint64_t until_ms)
{
    struct tide_common_limit *common = &engine->limits[index];
    if (common->units_max == 0)
        return;
    common->limit.units_max = units;
    common->limit.granted_until_ms = until_ms;
}
