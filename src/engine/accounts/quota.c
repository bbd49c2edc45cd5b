/* quota.c - providers that a system or a program brings (engine/providers.h, tidemark.h). */
#include "engine/engine.h"
#include "engine/options.h"

#include <stdio.h>
#include <string.h>

const struct tide_provider_limits *tide_engine_limits_of(const tide_engine *engine,
                                                         const char *provider)
{
    for (size_t i = 0; i < engine->providers_count; i++)
        if (strcmp(engine->providers[i].name, provider) == 0)
            return &engine->providers[i].limits;
    return tide_provider_known(provider);
}

struct tide_governor_profile tide_account_profile(const tide_engine *engine,
                                                  const struct tide_account *account)
{
    const struct tide_provider_limits *limits = tide_engine_limits_of(engine, account->provider);
    return tide_tuning_profile(tide_account_settings(engine, account),
                               limits != NULL ? limits : tide_provider_known("default"));
}

/* ---- accounts that were loaded before their provider was known ------------------------ */

struct retune {
    tide_engine *engine;
    const char *provider;
    tide_status rc;
};

static bool retune_visit(const struct tide_account_row *row, void *arg)
{
    struct retune *retune = arg;
    tide_engine *engine = retune->engine;
    if (strcmp(row->provider, retune->provider) != 0)
        return true;
    tide_lock_take(engine->world, engine->lock);
    const uint64_t now_ms = tide_world_now_ms(engine->world);
    struct tide_account *account = tide_engine_account_of(engine, row->id);
    if (account != NULL && account->held) {
        retune->rc = tide_account_retune(engine, account, row->governor, now_ms);
        tide_account_refresh(engine, account, now_ms);
    }
    tide_lock_drop(engine->world, engine->lock);
    return retune->rc == TIDE_OK;
}

static tide_status retune_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct retune *retune = arg;
    const tide_status rc =
        tide_ledger_accounts(transaction->engine->ledger, retune_visit, retune, err);
    if (rc == TIDE_OK && retune->rc != TIDE_OK)
        return tide_error_set(err, retune->rc, "no memory for the accounts of %s",
                              retune->provider);
    return rc;
}

/* ---- new providers --------------------------------------------------------------------- */

static tide_status limits_check(tide_engine *engine, const struct tide_provider_limits *limits,
                                tide_error *err)
{
    struct tide_governor_profile complete;
    const struct tide_governor_profile profile = tide_tuning_profile(engine->settings, limits);
    uint32_t shared_window_ms = 0;
    const uint64_t shared = tide_tuning_shared(engine->settings, limits, &shared_window_ms);
    if (tide_profile_complete(&profile, &complete) != TIDE_OK)
        return tide_error_set(err, TIDE_INVALID,
                              "the limits of %s contradict each other: a window has a length and "
                              "units, a call fits into it, and starts are below their maximum",
                              limits->name);
    if (shared > 0 ? shared_window_ms == 0 : limits->shared_window_ms > 0)
        return tide_error_set(err, TIDE_INVALID,
                              "%s: what accounts share needs units and the length of a window",
                              limits->name);
    if (shared > 0 && shared < complete.call_units)
        return tide_error_set(err, TIDE_INVALID,
                              "%s: a call needs more units than all accounts may use together",
                              limits->name);
    return TIDE_OK;
}

tide_status tide_engine_provider(tide_engine *engine, const struct tide_provider_limits *limits,
                                 tide_error *err)
{
    if (limits->name == NULL || limits->name[0] == '\0' ||
        strlen(limits->name) > TIDE_PROVIDER_NAME_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "a provider's name has 1 to %d bytes",
                              TIDE_PROVIDER_NAME_BYTES_MAX);
    tide_lock_take(engine->world, engine->lock);
    tide_status rc = limits_check(engine, limits, err);
    struct tide_provider *provider = &engine->providers[engine->providers_count];
    if (rc == TIDE_OK && engine->phase != TIDE_PHASE_OPEN)
        rc = tide_error_set(err, TIDE_INVALID, "%s: bring limits before the start", limits->name);
    else if (rc == TIDE_OK && tide_engine_limits_of(engine, limits->name) != NULL)
        rc = tide_error_set(err, TIDE_EXISTS, "there is a provider %s already", limits->name);
    else if (rc == TIDE_OK && engine->providers_count == TIDE_PROVIDERS_MAX)
        rc = tide_error_set(err, TIDE_FULL, "more than %d providers", TIDE_PROVIDERS_MAX);
    if (rc == TIDE_OK) {
        (void)snprintf(provider->name, sizeof provider->name, "%s", limits->name);
        provider->limits = *limits;
        provider->limits.name = provider->name;
        rc = tide_limits_add(engine, &provider->limits, err);
    }
    if (rc == TIDE_OK)
        engine->providers_count++;
    tide_lock_drop(engine->world, engine->lock);
    if (rc != TIDE_OK)
        return rc;
    struct retune retune = {engine, provider->name, TIDE_OK};
    struct tide_write write = {.run = retune_run, .arg = &retune};
    return tide_write_run(engine, &write, err);
}

tide_status tide_engine_quota(tide_engine *engine, const struct tide_quota *quota, tide_error *err)
{
    if (TIDE_RESERVED_USED(quota))
        return tide_reserved_refuse("struct tide_quota", err);
    if ((quota->window_ms > 0) != (quota->window_units > 0))
        return tide_error_set(err, TIDE_INVALID, "a window has a length and units, or neither");
    if (quota->rate_start < 0 || quota->rate_max < 0)
        return tide_error_set(err, TIDE_INVALID, "a rate is not below 0");
    struct tide_provider_limits limits = {
        .name = quota->name,
        .profile = {.window_ms = quota->window_ms,
                    .window_units_max = quota->window_units,
                    .rate_start = quota->rate_start,
                    .rate_max = quota->rate_max,
                    .in_flight_max = quota->in_flight_max,
                    .workers_start = quota->workers_start,
                    .workers_max = quota->workers_max,
                    .call_units = quota->call_units},
        .shared_units = quota->shared_units,
        .shared_window_ms = quota->shared_window_ms,
    };
    const struct tide_provider_limits *plain = tide_provider_known("default");
    if (quota->window_ms == 0 && quota->rate_start == 0 && quota->rate_max == 0)
        memcpy(limits.settings, plain->settings, sizeof limits.settings);
    if (quota->in_flight_max > 0) /* the first of those settings is for calls in flight */
        limits.settings[0].type = TIDE_LIMIT_NONE;
    return tide_engine_provider(engine, &limits, err);
}
