/* limits.c - a limit that many accounts have in common: a project's quota (E4.1).
 *
 * Accounts of one provider belong to one project, unless governor.project names another for some of
 * them (E11.2).  Of several numbers for one project the least counts.
 *
 * On SQLite this process uses all of it.  On a shared ledger each process gets a share of it,
 * for as long as its lease lasts (tide_ledger_grant()). */
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

static struct tide_common_limit *limit_find(tide_engine *engine, const char *provider,
                                            const char *project)
{
    for (size_t i = 0; i < engine->limits_count; i++)
        if (strcmp(engine->limits[i].provider->name, provider) == 0 &&
            strcmp(engine->limits[i].project, project) == 0)
            return &engine->limits[i];
    return NULL;
}

static tide_status limit_new(tide_engine *engine, const struct tide_provider_limits *provider,
                             const char *project, struct tide_common_limit **common_out,
                             tide_error *err)
{
    struct tide_common_limit *common = &engine->limits[engine->limits_count];
    if (engine->limits_count == TIDE_COMMON_LIMITS)
        return tide_error_set(err, TIDE_FULL, "more than %d limits of many accounts",
                              TIDE_COMMON_LIMITS);
    /* A project has one window, whatever its accounts say. */
    (void)tide_tuning_shared(engine->settings, provider, &common->window_ms);
    if (tide_window_init(&common->limit.window, common->window_ms, engine->mem) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a limit");
    common->provider = provider;
    common->units_max = 0;
    common->limit.units_max = UINT64_MAX;
    common->limit.granted_until_ms = UINT64_MAX;
    (void)snprintf(common->project, sizeof common->project, "%s", project);
    (void)snprintf(common->key, sizeof common->key, "%s%s%s", provider->name,
                   project[0] == '\0' ? "" : "/", project);
    engine->limits_count++;
    *common_out = common;
    return TIDE_OK;
}

/* The project has so many units from now on; 0: no limit is known. */
static void units_set(const tide_engine *engine, struct tide_common_limit *common, uint64_t units)
{
    const bool known = common->units_max > 0;
    common->units_max = units;
    if (engine->fleet == NULL || units == 0)
        common->limit.units_max = units > 0 ? units : UINT64_MAX;
    else if (!known && common->project[0] != '\0')
        common->limit.units_max = common->limit.granted_until_ms = 0; /* until the first grant */
    else if (common->limit.units_max > units)
        common->limit.units_max = units; /* until the next grant */
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

static uint64_t units_of(const struct tide_common_limit *common, const tide_settings *settings)
{
    uint32_t window_ms = 0; /* ignored: a change of the window needs a restart */
    return tide_tuning_shared(settings, common->provider, &window_ms);
}

tide_status tide_limits_add(tide_engine *engine, const struct tide_provider_limits *provider,
                            tide_error *err)
{
    struct tide_common_limit *common = NULL;
    if (!provider->shared_by_setting && provider->shared_units == 0)
        return TIDE_OK;
    TIDE_TRY(limit_new(engine, provider, "", &common, err));
    units_set(engine, common, units_of(common, engine->settings));
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
        uint64_t units = 0;
        if (common->project[0] == '\0')
            units = units_of(common, engine->settings);
        for (size_t a = 0; common->project[0] != '\0' && a < engine->accounts_count; a++)
            if (engine->accounts[a]->common == common)
                units = least(units,
                              units_of(common, tide_account_settings(engine, engine->accounts[a])));
        units_set(engine, common, units);
    }
}

tide_status tide_limits_bind(tide_engine *engine, struct tide_account *account)
{
    const tide_settings *settings = tide_account_settings(engine, account);
    const struct tide_tuning tuning = tide_tuning_engine(settings);
    const char *project = tuning.project;
    const struct tide_common_limit *whole = limit_find(engine, account->provider, "");
    struct tide_common_limit *common = limit_find(engine, account->provider, project);
    if (whole == NULL)
        return TIDE_OK; /* accounts of this provider share nothing */
    if (common == NULL)
        TIDE_TRY(limit_new(engine, whole->provider, project, &common, NULL));
    if (project[0] != '\0')
        units_set(engine, common, least(common->units_max, units_of(common, settings)));
    account->common = common;
    return tide_governor_limit_add(account->governor, &common->limit);
}

uint64_t tide_limits_wanted(const tide_engine *engine, size_t index)
{
    const struct tide_common_limit *common = &engine->limits[index];
    uint64_t wanted = 0;
    for (size_t i = 0; common->units_max > 0 && i < engine->accounts_count; i++) {
        const struct tide_account *account = engine->accounts[i];
        if (!account->held || account->common != common)
            continue;
        const struct tide_governor_profile profile = tide_account_profile(engine, account);
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
