#include "engine/meters.h"

#include "engine/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const class_names[TIDE_METER_CLASSES] = {
    "ok", "retry", "throttled", "auth", "network", "disk", "canceled", "gone", "permanent", "bug"};
static const char *const blocked_names[TIDE_BLOCKED_REASONS] = {
    "not", "paused", "halted", "throttled", "server", "auth", "network", "disk", "other"};
/* MTR2: what providers and the proxies before them are known to answer, and the rest by its hundred. */
static const char *const code_names[] = {
    "none", "400", "401", "403", "404", "405", "407", "408",
    "409",  "410", "411", "412", "413", "414", "416", "421",
    "422",  "428", "429", "431", "451", "500", "501", "502",
    "503",  "504", "509", "2xx", "3xx", "4xx", "5xx", TIDE_METRICS_OTHER};
static_assert(sizeof code_names / sizeof code_names[0] == TIDE_METER_CODES, "a place for each");

/* ---- systems and jobs ---- */

uint8_t tide_meters_system(struct tide_meters *meters, const char *kind_name)
{
    const size_t bytes = strcspn(kind_name, ".");
    for (size_t i = 0; i < meters->systems_count; i++)
        if (strlen(meters->systems[i].name) == bytes &&
            memcmp(meters->systems[i].name, kind_name, bytes) == 0)
            return (uint8_t)i;
    if (meters->systems_count == TIDE_METER_SYSTEMS_MAX)
        return TIDE_METER_SYSTEMS_MAX - 1; /* MTR2 */
    struct tide_meter_system *fresh = &meters->systems[meters->systems_count++];
    if (meters->systems_count == TIDE_METER_SYSTEMS_MAX || bytes >= sizeof fresh->name)
        (void)snprintf(fresh->name, sizeof fresh->name, TIDE_METRICS_OTHER);
    else
        (void)snprintf(fresh->name, sizeof fresh->name, "%.*s", (int)bytes, kind_name);
    return (uint8_t)(meters->systems_count - 1);
}

void tide_meters_ran(tide_job *job, uint64_t run_ms)
{
    struct tide_meter_system *system = &job->engine->meters.systems[job->kind->system];
    tide_histogram_add(&system->duration, tide_histogram_work_us, run_ms * 1000);
}

/* ---- calls ---- */

tide_status tide_engine_methods(tide_engine *engine, const char *provider,
                                tide_method_name *name_of, tide_error *err)
{
    struct tide_meters *meters = &engine->meters;
    tide_status rc = TIDE_OK;
    tide_lock_take(engine->world, engine->lock);
    if (meters->named_count == TIDE_METER_PROVIDERS_MAX)
        rc = tide_error_set(err, TIDE_FULL, "more than %d providers", TIDE_METER_PROVIDERS_MAX);
    else {
        (void)snprintf(meters->named[meters->named_count].provider,
                       sizeof meters->named[0].provider, "%s", provider);
        meters->named[meters->named_count++].name_of = name_of;
    }
    tide_lock_drop(engine->world, engine->lock);
    return rc;
}

/* "gmail.messages.get"; a method without a name has its number. */
static void method_name(const struct tide_meters *meters, const char *provider, uint32_t method,
                        char *out, size_t out_bytes)
{
    const char *name = NULL;
    for (size_t i = 0; name == NULL && i < meters->named_count; i++)
        if (strcmp(meters->named[i].provider, provider) == 0)
            name = meters->named[i].name_of(method);
    if (name != NULL)
        (void)snprintf(out, out_bytes, "%s.%.60s", provider, name);
    else
        (void)snprintf(out, out_bytes, "%s.%" PRIu32, provider, method);
}

static struct tide_meter_method *method_of(struct tide_meters *meters,
                                           const struct tide_account *account, uint32_t method)
{
    uint8_t *at = &account->meters.calls->method_at[method];
    char name[sizeof meters->methods[0].name];
    if (*at != 0)
        return &meters->methods[*at - 1];
    method_name(meters, account->provider, method, name, sizeof name);
    for (size_t i = 0; *at == 0 && i < meters->methods_count; i++)
        if (strcmp(meters->methods[i].name, name) == 0)
            *at = (uint8_t)(i + 1);
    if (*at == 0 && meters->methods_count < TIDE_METER_METHODS_MAX) {
        if (meters->methods_count == TIDE_METER_METHODS_MAX - 1)
            (void)snprintf(name, sizeof name, TIDE_METRICS_OTHER); /* MTR2 */
        memcpy(meters->methods[meters->methods_count++].name, name, sizeof name);
        *at = (uint8_t)meters->methods_count;
    }
    if (*at == 0)
        *at = TIDE_METER_METHODS_MAX;
    return &meters->methods[*at - 1];
}

static struct tide_meter_calls *calls_of(tide_engine *engine, struct tide_account *account)
{
    if (account->meters.calls == NULL)
        account->meters.calls = tide_mem_new(engine->mem, sizeof *account->meters.calls);
    return account->meters.calls;
}

static size_t code_named(const char *name)
{
    size_t at = 0;
    while (at < TIDE_METER_CODES - 1 && strcmp(code_names[at], name) != 0)
        at++;
    return at;
}

/* The place of an HTTP code; 0: no answer came. */
static size_t code_place(int http)
{
    char name[16];
    if (http == 0)
        return code_named("none");
    (void)snprintf(name, sizeof name, "%d", http);
    const size_t exact = code_named(name);
    if (exact < TIDE_METER_CODES - 1 || http < 200 || http > 599)
        return exact;
    (void)snprintf(name, sizeof name, "%dxx", http / 100);
    return code_named(name);
}

/* A call that we gave up ourselves is no error.  A batch that was answered, but refused in parts, counts
 * those (tide_meters_part_failed()). */
static bool is_error(const struct tide_answer *answer)
{
    const tide_class class = tide_status_class(answer->status);
    const bool in_parts = class == TIDE_CLASS_THROTTLED || class == TIDE_CLASS_AUTH;
    if (class == TIDE_CLASS_OK || class == TIDE_CLASS_CANCELED)
        return false;
    return !(in_parts && answer->http >= 200 && answer->http < 300);
}

void tide_meters_part_failed(tide_engine *engine, struct tide_account *account, int http)
{
    struct tide_meter_calls *calls = calls_of(engine, account);
    if (calls != NULL)
        calls->failed_by_code[code_place(http)]++;
}

void tide_meters_called(tide_engine *engine, struct tide_account *account,
                        const struct tide_answer *answer, uint64_t bytes_down, uint64_t bytes_up)
{
    struct tide_meter_calls *calls = calls_of(engine, account);
    const uint32_t method = answer->method < TIDE_METHODS_MAX ? answer->method : 0;
    if (calls == NULL)
        return; /* without memory a call is not counted */
    const uint32_t count = answer->calls == 0 ? 1 : answer->calls;
    calls->by_class[method][tide_status_class(answer->status)] += count;
    if (is_error(answer))
        calls->failed_by_code[code_place(answer->http)] += count;
    calls->units += answer->units;
    calls->bytes_down += bytes_down;
    calls->bytes_up += bytes_up;
    const uint64_t duration_us = answer->latency_ms * (uint64_t)1000;
    tide_histogram_add(&method_of(&engine->meters, account, method)->duration,
                       tide_histogram_work_us, duration_us);
    if (count > 1)
        tide_histogram_add(&engine->meters.batches, tide_histogram_work_us, duration_us);
}

void tide_account_meters_free(struct tide_account_meters *meters, tide_mem *mem)
{
    tide_mem_free(mem, meters->calls, sizeof *meters->calls);
    meters->calls = NULL;
}

/* ---- time without calls ---- */

static enum tide_blocked reason_of_status(tide_status why)
{
    switch (tide_status_class(why)) {
    case TIDE_CLASS_THROTTLED:
        return TIDE_BLOCKED_THROTTLED;
    case TIDE_CLASS_RETRY:
        return TIDE_BLOCKED_SERVER;
    case TIDE_CLASS_AUTH:
        return TIDE_BLOCKED_AUTH;
    case TIDE_CLASS_NETWORK:
        return TIDE_BLOCKED_NETWORK;
    case TIDE_CLASS_DISK:
        return TIDE_BLOCKED_DISK;
    default:
        return TIDE_BLOCKED_OTHER;
    }
}

static enum tide_blocked reason_of(const struct tide_account *account, uint64_t now_ms,
                                   uint64_t *until_ms_out)
{
    tide_status why = TIDE_OK;
    *until_ms_out = UINT64_MAX;
    if (!account->held || account->unwanted)
        return TIDE_BLOCKED_NOT; /* it is not ours to call */
    if (account->halted)
        return TIDE_BLOCKED_HALTED;
    if (account->paused)
        return TIDE_BLOCKED_PAUSED;
    switch (tide_governor_state(account->governor, now_ms, &why, until_ms_out)) {
    case TIDE_GOVERNOR_RUNNING:
    case TIDE_GOVERNOR_PROBING:
        break;
    case TIDE_GOVERNOR_HALTED:
        return TIDE_BLOCKED_HALTED;
    case TIDE_GOVERNOR_PAUSED:
    case TIDE_GOVERNOR_OPEN:
        return reason_of_status(why);
    }
    return TIDE_BLOCKED_NOT;
}

void tide_meters_blocked(struct tide_account *account, uint64_t now_ms)
{
    struct tide_account_meters *meters = &account->meters;
    const uint64_t end_ms = now_ms < meters->blocked_until_ms ? now_ms : meters->blocked_until_ms;
    if (meters->blocked != TIDE_BLOCKED_NOT && end_ms > meters->blocked_seen_ms)
        meters->blocked_ms[meters->blocked] += end_ms - meters->blocked_seen_ms;
    meters->blocked = reason_of(account, now_ms, &meters->blocked_until_ms);
    meters->blocked_seen_ms = now_ms;
}

/* ---- JSON ---- */

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

json_t *tide_histogram_json(const tide_histogram *histogram)
{
    json_t *counts = json_array();
    for (int i = 0; i < TIDE_HISTOGRAM_STEPS; i++)
        (void)json_array_append_new(counts, number(histogram->counts[i]));
    return json_pack("{s:o, s:I}", "counts", counts, "sum_us", (json_int_t)histogram->sum_us);
}

tide_histogram tide_histogram_of(const json_t *json)
{
    tide_histogram histogram = {.sum_us = 0};
    const json_t *counts = json_object_get(json, "counts");
    for (size_t i = 0; i < TIDE_HISTOGRAM_STEPS; i++)
        histogram.counts[i] = (uint64_t)json_integer_value(json_array_get(counts, i));
    histogram.sum_us = (uint64_t)json_integer_value(json_object_get(json, "sum_us"));
    return histogram;
}

static json_t *system_json(const struct tide_meter_system *system)
{
    const uint32_t *loaded = system->loaded;
    json_t *json = json_object();
    (void)json_object_set_new(json, "system", json_string(system->name));
    (void)json_object_set_new(json, "running", number(loaded[TIDE_JOB_RUNNING]));
    (void)json_object_set_new(json, "parked", number(loaded[TIDE_JOB_PARKED]));
    (void)json_object_set_new(
        json, "waiting",
        number(loaded[TIDE_JOB_READY] + loaded[TIDE_JOB_CLAIMING] + loaded[TIDE_JOB_CLAIMED]));
    (void)json_object_set_new(json, "delayed", number(loaded[TIDE_JOB_WAITING]));
    (void)json_object_set_new(json, "blocked", number(loaded[TIDE_JOB_BLOCKED]));
    (void)json_object_set_new(json, "done", number(system->done));
    (void)json_object_set_new(json, "failed", number(system->failed));
    (void)json_object_set_new(json, "canceled", number(system->canceled));
    (void)json_object_set_new(json, "duration", tide_histogram_json(&system->duration));
    return json;
}

/* Limits that accounts have in common. */
static json_t *limits_json(tide_engine *engine, uint64_t now_ms)
{
    json_t *limits = json_array();
    for (size_t i = 0; i < engine->limits_count; i++) {
        const struct tide_common_limit *common = &engine->limits[i];
        if (common->units_max > 0 && common->limit.units_max > 0)
            (void)json_array_append_new(
                limits, json_pack("{s:s, s:I, s:I}", "provider", common->key, "used_units",
                                  (json_int_t)tide_window_used(&common->limit.window, now_ms),
                                  "max_units", (json_int_t)common->limit.units_max));
    }
    return limits;
}

void tide_meters_json(tide_engine *engine, uint64_t now_ms, json_t *json)
{
    const struct tide_meters *meters = &engine->meters;
    json_t *work = json_array();
    json_t *methods = json_array();
    for (size_t i = 0; i < meters->systems_count; i++)
        (void)json_array_append_new(work, system_json(&meters->systems[i]));
    for (size_t i = 0; i < meters->methods_count; i++)
        (void)json_array_append_new(
            methods, json_pack("{s:s, s:o}", "method", meters->methods[i].name, "duration",
                               tide_histogram_json(&meters->methods[i].duration)));
    (void)json_object_set_new(json, "work", work);
    (void)json_object_set_new(json, "methods", methods);
    (void)json_object_set_new(json, "batches", tide_histogram_json(&meters->batches));
    (void)json_object_set_new(json, "limits", limits_json(engine, now_ms));
}

/* Methods of one name are one. */
static void calls_json(struct tide_meters *meters, const struct tide_account *account, json_t *json)
{
    for (uint32_t i = 0; i < TIDE_METHODS_MAX; i++)
        for (int k = 0; k < TIDE_METER_CLASSES; k++) {
            const uint64_t count = account->meters.calls->by_class[i][k];
            if (count == 0)
                continue;
            const char *name = method_of(meters, account, i)->name;
            json_t *classes = json_object_get(json, name);
            if (classes == NULL) {
                (void)json_object_set_new(json, name, json_object());
                classes = json_object_get(json, name);
            }
            const json_int_t before = json_integer_value(json_object_get(classes, class_names[k]));
            (void)json_object_set_new(classes, class_names[k], number((uint64_t)before + count));
        }
}

void tide_account_meters_json(tide_engine *engine, struct tide_account *account, json_t *json)
{
    const struct tide_meter_calls *calls = account->meters.calls;
    json_t *by_method = json_object();
    json_t *blocked = json_object();
    json_t *codes = json_object();
    if (calls != NULL)
        calls_json(&engine->meters, account, by_method);
    for (int i = TIDE_BLOCKED_NOT + 1; i < TIDE_BLOCKED_REASONS; i++)
        if (account->meters.blocked_ms[i] > 0)
            (void)json_object_set_new(blocked, blocked_names[i],
                                      number(account->meters.blocked_ms[i]));
    for (size_t i = 0; calls != NULL && i < TIDE_METER_CODES; i++)
        if (calls->failed_by_code[i] > 0)
            (void)json_object_set_new(codes, code_names[i], number(calls->failed_by_code[i]));
    (void)json_object_set_new(json, "calls_by_method", by_method);
    (void)json_object_set_new(json, "errors_by_code", codes);
    (void)json_object_set_new(json, "units", number(calls == NULL ? 0 : calls->units));
    (void)json_object_set_new(json, "bytes_down", number(calls == NULL ? 0 : calls->bytes_down));
    (void)json_object_set_new(json, "bytes_up", number(calls == NULL ? 0 : calls->bytes_up));
    (void)json_object_set_new(json, "blocked_ms", blocked);
}
