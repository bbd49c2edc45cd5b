/* transfer.c - HTTP calls within the bandwidth that the settings allow (E4.7).
 *
 * Bytes are counted where they pass: a download in its sink, on the thread that
 * made the call, so that a slow rate pauses the connection by back-pressure; an
 * upload in its source.  Without a limit nothing is wrapped. */
#include "engine/engine.h"
#include "base/check.h"

#include <string.h>
#include <time.h>

static unsigned minute_of_week(tide_engine *engine)
{
    time_t now = (time_t)(tide_world_now_unix_ms(engine->world) / 1000);
    struct tm local;
    if (localtime_r(&now, &local) == NULL)
        return 0;
    unsigned day = (unsigned)(local.tm_wday + 6) % 7; /* Monday is 0 */
    return day * 1440 + (unsigned)local.tm_hour * 60 + (unsigned)local.tm_min;
}

void tide_transfer_settings(tide_engine *engine)
{
    struct tide_tuning_bandwidth tuned;
    tide_tuning_bandwidth(engine->settings, &tuned);
    tide_bandwidth_init(&engine->bandwidth, tide_world_now_ms(engine->world));
    (void)tide_bandwidth_set(&engine->bandwidth, &tuned.rates, tuned.spans, tuned.spans_count);
    bool limited = tuned.spans_count > 0 || tuned.rates.down_bytes_per_s > 0 ||
                   tuned.rates.up_bytes_per_s > 0 || tuned.rates.both_bytes_per_s > 0;
    __atomic_store_n(&engine->bandwidth_limited, limited, __ATOMIC_RELAXED);
}

/* Waits until `bytes` more may pass.  The connection is paused meanwhile. */
static tide_status pay(tide_job *job, enum tide_direction direction, size_t bytes)
{
    tide_engine *engine = job->engine;
    unsigned minute = minute_of_week(engine);
    while (bytes > 0) {
        uint64_t taken = 0;
        uint64_t again_at_ms = 0;
        tide_lock_take(engine->world, engine->lock);
        tide_status rc = tide_bandwidth_take(&engine->bandwidth, tide_world_now_ms(engine->world),
                                             minute, direction, bytes, &taken, &again_at_ms);
        tide_lock_drop(engine->world, engine->lock);
        if (rc == TIDE_OK) {
            bytes -= (size_t)taken;
            continue;
        }
        rc = tide_world_sleep_until(engine->world, again_at_ms * 1000, &job->cancel);
        if (rc != TIDE_OK)
            return rc;
        tide_job_beat(job, 0);
        minute = minute_of_week(engine);
    }
    return TIDE_OK;
}

struct metered {
    tide_job *job;
    const struct tide_request *request;
    struct tide_response *response;
    size_t body_at; /* of an upload from memory */
};

static tide_status metered_sink(void *arg, const char *bytes, size_t count)
{
    struct metered *metered = arg;
    TIDE_TRY(pay(metered->job, TIDE_DOWN, count));
    if (metered->request->sink != NULL)
        return metered->request->sink(metered->request->sink_arg, bytes, count);
    return tide_buf_add(&metered->response->body, bytes, count);
}

static tide_status metered_source(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct metered *metered = arg;
    const struct tide_request *request = metered->request;
    size_t count = request->body.bytes - metered->body_at;
    if (request->source != NULL)
        TIDE_TRY(request->source(request->source_arg, bytes, room, &count));
    else {
        count = count < room ? count : room;
        if (count > 0)
            memcpy(bytes, request->body.data + metered->body_at, count);
        metered->body_at += count;
    }
    TIDE_TRY(pay(metered->job, TIDE_UP, count));
    *count_out = count;
    return TIDE_OK;
}

tide_status tide_transfer_call(tide_job *job, const struct tide_request *request,
                               struct tide_response *response, tide_error *err)
{
    tide_world *world = job->engine->world;
    if (!__atomic_load_n(&job->engine->bandwidth_limited, __ATOMIC_RELAXED))
        return tide_world_call(world, request, response, &job->cancel, err);
    struct metered metered = {job, request, response, 0};
    struct tide_request limited = *request;
    limited.sink = metered_sink;
    limited.sink_arg = &metered;
    if (request->source != NULL || request->body.bytes > 0) {
        limited.source = metered_source;
        limited.source_arg = &metered;
        limited.source_bytes =
            request->source != NULL ? request->source_bytes : request->body.bytes;
        limited.body = TIDE_TEXT_NONE;
    }
    return tide_world_call(world, &limited, response, &job->cancel, err);
}
