/* snapshot.c - the state of a running engine as JSON and as numbers (E9.1).
 *
 * Taken under the lock from memory alone: no database work, no waiting.  On a shared ledger
 * streams are as the last look read them (fleet/streams.c). */
#include "engine/engine.h"
#include "base/check.h"
#include "fleet/fleet.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { GAPS_SHOWN = 32, METHODS_SHOWN = TIDE_METHODS_MAX };

void tide_engine_progress(tide_engine *engine, struct tide_progress *progress_out)
{
    tide_lock_take(engine->world, engine->lock);
    struct tide_progress progress = engine->counts;
    for (int lane = 0; lane < TIDE_LANES; lane++) {
        progress.running[lane] = tide_lanes_running(engine->lanes, (tide_lane)lane);
        progress.waiting[lane] = tide_lanes_waiting(engine->lanes, (tide_lane)lane);
    }
    progress.window = tide_tracker_count(engine->tracker);
    progress.tracker_bytes = tide_tracker_bytes(engine->tracker);
    /* After the end no writer runs, so writer_idle does not count. */
    progress.idle = (engine->writer_idle || engine->phase == TIDE_PHASE_ENDED) &&
                    engine->ended_count == 0 && progress.running[0] + progress.running[1] == 0;
    tide_lock_drop(engine->world, engine->lock);
    *progress_out = progress;
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static void put(json_t *object, const char *name, json_t *value)
{
    (void)json_object_set_new(object, name, value);
}

/* ---- accounts ---------------------------------------------------------------- */

static const char *governor_state_name(enum tide_governor_state state)
{
    switch (state) {
    case TIDE_GOVERNOR_RUNNING:
        return "running";
    case TIDE_GOVERNOR_PAUSED:
        return "paused";
    case TIDE_GOVERNOR_OPEN:
        return "breaker_open";
    case TIDE_GOVERNOR_PROBING:
        return "probing";
    case TIDE_GOVERNOR_HALTED:
        return "halted";
    }
    return "unknown";
}

static json_t *classes_json(const struct tide_governor_view *view)
{
    static const char *const names[] = {"ok",   "retry",    "throttled", "auth",      "network",
                                        "disk", "canceled", "gone",      "permanent", "bug"};
    json_t *classes = json_object();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (view->calls_by_class[i] > 0)
            put(classes, names[i], number(view->calls_by_class[i]));
    return classes;
}

static json_t *methods_json(const tide_governor *governor)
{
    json_t *methods = json_array();
    for (uint32_t i = 0; i < METHODS_SHOWN; i++) {
        const tide_latency *latency = tide_governor_latency(governor, i);
        if (latency == NULL || tide_latency_count(latency) == 0)
            continue;
        (void)json_array_append_new(
            methods, json_pack("{s:i, s:I, s:I, s:I, s:I}", "method", (int)i, "calls",
                               (json_int_t)tide_latency_count(latency), "p50_ms",
                               (json_int_t)tide_latency_quantile_ms(latency, 500), "p95_ms",
                               (json_int_t)tide_latency_quantile_ms(latency, 950), "p99_ms",
                               (json_int_t)tide_latency_quantile_ms(latency, 990)));
    }
    return methods;
}

static void outcome_json(json_t *json, const struct tide_outcome *outcome)
{
    put(json, "last_ok_unix_ms", number(outcome->ok_unix_ms));
    put(json, "last_failed_unix_ms", number(outcome->failed_unix_ms));
    put(json, "failing_since_unix_ms",
        number(tide_outcome_is_bad(outcome) ? outcome->since_unix_ms : 0));
    if (outcome->failed_unix_ms > 0) {
        put(json, "last_failure", json_string(outcome->text));
        put(json, "last_failure_status", json_string(tide_status_name(outcome->status)));
    }
}

/* In the last six steps that are over. */
static uint64_t items_last_minute(const struct tide_account *account, uint64_t now_ms)
{
    uint32_t values[TIDE_SERIES_STEPS_MAX];
    uint64_t sum = 0;
    if (account->series == NULL)
        return 0;
    const size_t steps =
        tide_series_read(&account->series->items, TIDE_SERIES_HOUR, now_ms, values);
    for (size_t i = steps - 7; i < steps - 1; i++)
        sum += values[i];
    return sum;
}

static json_t *account_json(tide_engine *engine, struct tide_account *account, uint64_t now_ms)
{
    const struct tide_account_jobs *jobs = &account->jobs;
    struct tide_governor_view view;
    tide_governor_view(account->governor, now_ms, &view);
    json_t *json = json_object();
    put(json, "account", json_string(account->name));
    put(json, "paused", json_boolean(account->paused));
    put(json, "state", json_string(account->halted ? "halted" : governor_state_name(view.state)));
    if (account->halted)
        put(json, "reason", json_string(account->halt_reason));
    else if (view.state != TIDE_GOVERNOR_RUNNING) {
        put(json, "reason", json_string(tide_status_name(view.why)));
        if (view.until_ms != UINT64_MAX && view.until_ms > now_ms) {
            put(json, "for_ms", number(view.until_ms - now_ms));
            put(json, "next_try_unix_ms",
                number(tide_world_now_unix_ms(engine->world) + (view.until_ms - now_ms)));
        }
    }
    put(json, "wanted", json_boolean(!account->unwanted));
    outcome_json(json, &account->outcome);
    put(json, "running", number(jobs->states[TIDE_JOB_RUNNING]));
    put(json, "parked", number(jobs->states[TIDE_JOB_PARKED]));
    put(json, "waiting",
        number(jobs->states[TIDE_JOB_READY] + jobs->states[TIDE_JOB_CLAIMING] +
               jobs->states[TIDE_JOB_CLAIMED]));
    put(json, "delayed", number(jobs->states[TIDE_JOB_WAITING]));
    put(json, "blocked", number(jobs->states[TIDE_JOB_BLOCKED]));
    put(json, "bytes", number(jobs->bytes));
    put(json, "items_last_minute", number(items_last_minute(account, now_ms)));
    put(json, "rate_units_per_s", json_real(view.rate));
    put(json, "rate_max_units_per_s", json_real(view.rate_max));
    put(json, "tokens", json_real(view.tokens));
    put(json, "window_used_units", number(view.window_used));
    put(json, "window_max_units", number(view.window_max));
    put(json, "in_flight", number(view.in_flight));
    put(json, "in_flight_max", number(view.in_flight_max));
    put(json, "workers", number(view.workers));
    put(json, "calls", number(view.calls));
    put(json, "calls_by_class", classes_json(&view));
    put(json, "methods", methods_json(account->governor));
    tide_meters_blocked(account, now_ms);
    tide_account_meters_json(engine, account, json);
    struct tide_badness_view badness = tide_badness_view(account->badness);
    put(json, "failing_items", number(badness.suspects));
    put(json, "failed", number(account->failed));
    put(json, "retried", number(account->retried));
    put(json, "split", number(account->split));
    put(json, "bad", number(account->bad));
    return json;
}

/* ---- streams ------------------------------------------------------------------- */

static json_t *stream_json(tide_engine *engine, const struct tide_stream *stream, uint64_t now_ms)
{
    struct tide_frontier_totals totals = tide_frontier_totals(stream->frontier);
    json_t *json = json_object();
    put(json, "stream", number(stream->id));
    put(json, "name", json_string(stream->name));
    put(json, "tidemark", json_string(stream->cursor));
    put(json, "cycles_finished", number(tide_frontier_cursor(stream->frontier)));
    put(json, "cycles_open", number(totals.opened));
    put(json, "cycles_finished_beyond", number(totals.finished));
    json_t *gaps = json_array();
    struct tide_cycle_view views[GAPS_SHOWN];
    size_t count = tide_frontier_gaps(stream->frontier, 0, views, GAPS_SHOWN);
    for (size_t i = 0; i < count; i++) {
        const struct tide_cycle_live *live = tide_stream_live(stream, views[i].cycle);
        if (live == NULL)
            continue;
        json_t *gap = json_pack("{s:I, s:s, s:s}", "ordinal", (json_int_t)live->ordinal, "start",
                                live->start, "end", live->end);
        put(gap, "total", number(live->total));
        put(gap, "outstanding", number(live->outstanding));
        put(gap, "failed", number(live->failed));
        put(gap, "bad", number(live->bad));
        put(gap, "done", number(live->total - live->outstanding - live->failed));
        if (engine->fleet == NULL) /* on a shared ledger other processes end its jobs, too */
            put(gap, "last_beat_ms_ago", number(now_ms - live->beat_ms));
        (void)json_array_append_new(gaps, gap);
    }
    put(json, "open", gaps);
    return json;
}

struct streams_list {
    tide_engine *engine;
    json_t *json;
    uint64_t now_ms;
};

static void add_stream(const struct tide_stream *stream, void *arg)
{
    const struct streams_list *list = arg;
    (void)json_array_append_new(list->json, stream_json(list->engine, stream, list->now_ms));
}

static void put_streams(json_t *json, tide_engine *engine, uint64_t now_ms)
{
    struct streams_list list = {engine, json_array(), now_ms};
    uint64_t left_out = 0;
    if (engine->fleet != NULL)
        left_out = tide_fleet_streams_each(engine, now_ms, add_stream, &list);
    for (size_t i = 0; engine->fleet == NULL && i < engine->streams_count; i++)
        add_stream(engine->streams[i], &list);
    put(json, "streams", list.json);
    if (left_out > 0)
        put(json, "streams_left_out", number(left_out));
}

/* ---- all ------------------------------------------------------------------------- */

static json_t *lanes_json(tide_engine *engine)
{
    static const char *const names[TIDE_LANES] = {"interactive", "bulk"};
    json_t *lanes = json_object();
    for (int lane = 0; lane < TIDE_LANES; lane++)
        put(lanes, names[lane],
            json_pack("{s:I, s:I}", "running",
                      (json_int_t)tide_lanes_running(engine->lanes, (tide_lane)lane), "waiting",
                      (json_int_t)tide_lanes_waiting(engine->lanes, (tide_lane)lane)));
    return lanes;
}

/* From the pace since the start; null while no job is done. */
static json_t *time_left_json(tide_engine *engine, uint64_t now_ms)
{
    uint64_t run_ms = now_ms - engine->started_ms;
    uint64_t left = tide_tracker_count(engine->tracker);
    if (engine->counts.done == 0 || run_ms == 0)
        return json_null();
    return json_real((double)left * (double)run_ms / (double)engine->counts.done / 1000.0);
}

/* Calls the systems without the lock: they have locks of their own, and call the engine while they
 * hold them.  The control socket answers while systems still open, so more may be added meanwhile. */
static void put_systems(json_t *json, tide_engine *engine)
{
    struct tide_shown shown[TIDE_ENGINE_SHOWN_MAX];
    tide_lock_take(engine->world, engine->lock);
    const size_t count = engine->shown_count;
    memcpy(shown, engine->shown, sizeof shown);
    tide_lock_drop(engine->world, engine->lock);
    json_t *systems = json_object();
    for (size_t i = 0; i < count; i++) {
        json_t *one = json_object();
        shown[i].fill(one, shown[i].arg);
        put(systems, shown[i].name, one);
    }
    put(json, "systems", systems);
}

json_t *tide_engine_snapshot_json(tide_engine *engine)
{
    json_t *json = json_object();
    tide_lock_take(engine->world, engine->lock);
    uint64_t now_ms = tide_world_now_ms(engine->world);
    put(json, "run", json_string(engine->run_id));
    put(json, "lanes", lanes_json(engine));
    put(json, "window", number(tide_tracker_count(engine->tracker)));
    put(json, "tracker_bytes", number(tide_tracker_bytes(engine->tracker)));
    put(json, "done", number(engine->counts.done));
    put(json, "failed", number(engine->counts.failed));
    put(json, "retried", number(engine->counts.retried));
    put(json, "split", number(engine->counts.split));
    put(json, "bad", number(engine->counts.bad));
    put(json, "transactions", number(engine->counts.ledger_writes));
    put(json, "window_left_s", time_left_json(engine, now_ms));
    json_t *accounts = json_array();
    tide_accounts_count(engine);
    for (size_t i = 0; i < engine->accounts_count; i++)
        (void)json_array_append_new(accounts, account_json(engine, engine->accounts[i], now_ms));
    put(json, "accounts", accounts);
    tide_meters_json(engine, now_ms, json);
    put_streams(json, engine, now_ms);
    tide_lock_drop(engine->world, engine->lock);
    put_systems(json, engine);
    return json;
}

tide_status tide_engine_snapshot_add(tide_engine *engine, const char *name, tide_snapshot_fn *fill,
                                     void *arg, tide_error *err)
{
    tide_lock_take(engine->world, engine->lock);
    const bool room = engine->shown_count < TIDE_ENGINE_SHOWN_MAX;
    if (room)
        engine->shown[engine->shown_count++] = (struct tide_shown){name, fill, arg};
    tide_lock_drop(engine->world, engine->lock);
    return room ? TIDE_OK
                : tide_error_set(err, TIDE_FULL, "a snapshot has room for %d systems",
                                 TIDE_ENGINE_SHOWN_MAX);
}

tide_status tide_engine_snapshot(tide_engine *engine, tide_buf *json_out, tide_error *err)
{
    json_auto_t *json = tide_engine_snapshot_json(engine);
    char *text = json_dumps(json, JSON_COMPACT);
    if (text == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a snapshot");
    tide_status rc = tide_buf_add_text(json_out, text);
    free(text);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for a snapshot");
}
