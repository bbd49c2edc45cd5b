/* call.c - a handler's calls, under its account's governor (E4). */
#include "engine/engine.h"
#include "base/check.h"
#include "base/clocktext.h"
#include "base/hash.h"
#include "engine/options.h"

#include <inttypes.h>
#include <string.h>

/* For when the governor cannot name a time, because a running call has to be answered first. */
enum { AGAIN_DEFAULT_MS = 250 };

/* Units may be spent only as far as the ledger has recorded them (E4.3b). */
static void save_if_due(tide_engine *engine, const struct tide_account *account, uint64_t now_ms)
{
    if (engine->save_due || !tide_governor_save_due(account->governor, now_ms))
        return;
    engine->save_due = true;
    if (engine->writer_idle)
        tide_cond_wake_one(engine->world, engine->write);
}

/* Jobs of lower levels were held back, so that they do not spend the units that this one waited
 * for (E3.3). */
static void got_units(tide_job *job, uint64_t now_ms)
{
    job->parked_for_units = false;
    tide_lanes_charged(job->engine->lanes, job->brief.id);
    tide_dispatch(job->engine, now_ms);
}

/* Whether the account waits for a sign-in.  That ends when the user signs in, not at a time. */
static bool waits_for_sign_in(const struct tide_account *account, uint64_t now_ms)
{
    tide_status why = TIDE_OK;
    uint64_t until_ms = 0;
    return tide_governor_state(account->governor, now_ms, &why, &until_ms) !=
               TIDE_GOVERNOR_RUNNING &&
           why == TIDE_AUTH;
}

static tide_status charge(tide_job *job, uint32_t units, uint32_t parts, tide_error *err)
{
    if (job->account == NULL)
        return TIDE_OK;
    tide_engine *engine = job->engine;
    uint64_t again_at_ms = TIDE_NEVER;
    tide_lock_take(engine->world, engine->lock);
    uint64_t now_ms = tide_world_now_ms(engine->world);
    tide_status rc = tide_governor_charge_batch(job->account->governor, now_ms, job->brief.level,
                                                units, parts, &again_at_ms);
    job->lacks_units = rc == TIDE_AGAIN;
    /* The next process tries at once; a time in the row of this job would make it wait. */
    if (rc == TIDE_AGAIN && waits_for_sign_in(job->account, now_ms))
        again_at_ms = TIDE_NEVER;
    if (rc == TIDE_OK)
        tide_account_series_add(engine, job->account, now_ms, 0, units);
    if (rc == TIDE_OK && job->parked_for_units && !job->given_up)
        got_units(job, now_ms);
    save_if_due(engine, job->account, now_ms);
    tide_lock_drop(engine->world, engine->lock);
    if (rc == TIDE_STOPPED)
        return tide_error_set(err, TIDE_CANCELED, "account %s is halted", job->account->name);
    if (rc == TIDE_AGAIN) {
        job->again_at_ms = again_at_ms == TIDE_NEVER ? now_ms + AGAIN_DEFAULT_MS : again_at_ms;
        return tide_error_set(err, TIDE_AGAIN, "no quota left for account %s now",
                              job->account->name);
    }
    if (rc != TIDE_OK)
        return tide_error_set(err, rc,
                              "a call of %" PRIu32 " units in %" PRIu32
                              " parts can never fit the quota of account %s: make it smaller",
                              units, parts, job->account->name);
    return TIDE_OK;
}

/* Failures opened the breaker: a probe of a known good item shows whether the account fails, or
 * only the last requests. */
static void look_at_a_good_one(tide_engine *engine, struct tide_account *account, uint64_t now_ms)
{
    struct tide_governor_view view;
    tide_governor_view(account->governor, now_ms, &view);
    if (view.state != TIDE_GOVERNOR_OPEN || tide_status_class(view.why) != TIDE_CLASS_RETRY)
        return;
    tide_badness_doubt(account->badness, now_ms);
    tide_account_badness_orders(engine, account, now_ms);
}

/* "HOST:PORT" of an address; borrowed. */
static tide_text host_of(const char *url)
{
    const char *host = strstr(url, "://");
    host = host == NULL ? url : host + 3;
    return (tide_text){host, strcspn(host, "/?#")};
}

/* `up` are the bytes that were sent; all others of the answer came. */
static void answered(tide_job *job, const struct tide_answer *answer, uint64_t up, const char *url,
                     const char *text)
{
    if (job->account == NULL)
        return;
    tide_engine *engine = job->engine;
    tide_lock_take(engine->world, engine->lock);
    uint64_t now_ms = tide_world_now_ms(engine->world);
    tide_governor_answered(job->account->governor, now_ms, answer, &engine->rng);
    look_at_a_good_one(engine, job->account, now_ms);
    job->account->calls++;
    if (answer->status == TIDE_THROTTLED)
        job->account->refused++;
    tide_meters_called(engine, job->account, answer, answer->bytes - up, up);
    tide_account_came_to(engine, job->account, answer->status, host_of(url), text);
    tide_account_refresh(engine, job->account, now_ms);
    tide_dispatch(engine, now_ms);
    tide_lock_drop(engine->world, engine->lock);
}

void tide_job_part_failed(tide_job *job, int http)
{
    if (job->account == NULL)
        return;
    tide_lock_take(job->engine->world, job->engine->lock);
    tide_meters_part_failed(job->engine, job->account, http);
    tide_lock_drop(job->engine->world, job->engine->lock);
}

enum { RETRY_AFTER_S_MAX = 86400 };

/* Seconds, or a date: then the wait counts from the answer's own Date header, so that our
 * clock does not matter. */
static uint64_t retry_after_ms(const struct tide_response *response)
{
    tide_text text = tide_response_header(response, "Retry-After");
    uint64_t seconds = 0;
    uint64_t until_ms = 0;
    uint64_t now_ms = 0;
    if (!tide_text_to_u64(text, &seconds) && tide_time_http_parse(text, &until_ms) &&
        tide_time_http_parse(tide_response_header(response, "Date"), &now_ms) && until_ms > now_ms)
        seconds = (until_ms - now_ms) / 1000;
    return seconds < RETRY_AFTER_S_MAX ? seconds * 1000 : (uint64_t)RETRY_AFTER_S_MAX * 1000;
}

/* Caps a wait that comes from the Retry-After header at `governor.retry_after_max`; after it one
 * call probes whether the server still refuses.  A wait that the judge took from elsewhere (a
 * daily quota) is longer than the header's and is not capped. */
static uint64_t header_capped(const tide_job *job, const struct tide_response *response,
                              uint64_t wait_ms)
{
    const uint64_t *setting =
        job->account != NULL ? &job->account->retry_after_ms_max : &job->engine->retry_after_ms_max;
    const uint64_t max_ms = __atomic_load_n(setting, __ATOMIC_RELAXED);
    return wait_ms > max_ms && wait_ms <= retry_after_ms(response) ? max_ms : wait_ms;
}

enum { SUBJECT_BODY_BYTES_MAX = 4096 };

/* A hash of what a request asks for: the same for a repeated request. */
static uint64_t subject_of(const struct tide_request *request)
{
    const size_t bytes =
        request->body.bytes < SUBJECT_BODY_BYTES_MAX ? request->body.bytes : SUBJECT_BODY_BYTES_MAX;
    uint64_t hash = tide_hash(TIDE_HASH_START, tide_text_of(request->method));
    hash = tide_hash(hash, tide_text_of(request->url));
    hash = tide_hash(hash, (tide_text){request->body.data, bytes});
    return hash == 0 ? 1 : hash;
}

/* Which limit the judge named in why->code; replaces that by the HTTP code for the caller. */
static enum tide_refusal refusal_of(tide_status status, tide_error *why, int http)
{
    const int code = why->code;
    if (code < 0)
        why->code = http;
    if (status != TIDE_THROTTLED)
        return TIDE_REFUSAL_RATE;
    return code == TIDE_REFUSED_CONCURRENCY ? TIDE_REFUSAL_CONCURRENCY
           : code == TIDE_REFUSED_BYTES     ? TIDE_REFUSAL_BYTES
                                            : TIDE_REFUSAL_RATE;
}

tide_status tide_job_call_judged(tide_job *job, uint32_t units, uint32_t parts, uint32_t method,
                                 tide_judge_with *judge, void *judge_arg,
                                 const struct tide_request *request, struct tide_response *response,
                                 tide_error *err)
{
    TIDE_ASSERT(parts > 0);
    if (TIDE_RESERVED_USED(request))
        return tide_reserved_refuse("struct tide_request", err);
    if (tide_job_canceled(job))
        return tide_error_set(err, TIDE_CANCELED, "canceled");
    TIDE_TRY(charge(job, units, parts, err));
    struct tide_answer answer = {
        .units = units, .calls = parts, .method = method, .subject = subject_of(request)};
    tide_error why = {TIDE_OK, 0, ""};
    uint64_t sent_us = tide_world_now_us(job->engine->world);
    tide_status rc = tide_transfer_call(job, request, response, &why);
    if (rc == TIDE_OK)
        rc = judge(judge_arg, response, &answer.retry_after_ms, &why);
    answer.retry_after_ms = header_capped(job, response, answer.retry_after_ms);
    answer.latency_ms = (uint32_t)((tide_world_now_us(job->engine->world) - sent_us) / 1000);
    answer.status = rc;
    answer.refusal = refusal_of(rc, &why, response->http);
    answer.http = response->http;
    const uint64_t up = request->source != NULL ? request->source_bytes : request->body.bytes;
    answer.bytes = response->body_bytes + up;
    answered(job, &answer, up, request->url, why.text);
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    tide_job_beat(job, 0);
    return rc;
}

/* `arg` points to the judge. */
static tide_status judge_plain(void *arg, const struct tide_response *response,
                               uint64_t *retry_after_ms_out, tide_error *err)
{
    return (*(tide_judge **)arg)(response, retry_after_ms_out, err);
}

tide_status tide_job_batch(tide_job *job, uint32_t units, uint32_t parts, uint32_t method,
                           tide_judge *judge, const struct tide_request *request,
                           struct tide_response *response, tide_error *err)
{
    tide_judge *by = judge != NULL ? judge : tide_http_judge;
    return tide_job_call_judged(job, units, parts, method, judge_plain, &by, request, response,
                                err);
}

tide_status tide_job_call(tide_job *job, uint32_t units, uint32_t method, tide_judge *judge,
                          const struct tide_request *request, struct tide_response *response,
                          tide_error *err)
{
    return tide_job_batch(job, units, 1, method, judge, request, response, err);
}

/* ---- what an answer means ------------------------------------------------------- */

enum { BANDWIDTH = 509 }; /* "bandwidth limit exceeded"; no standard, but in use */

tide_status tide_http_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                            tide_error *err)
{
    *retry_after_ms_out = retry_after_ms(response);
    int http = response->http;
    tide_status status = TIDE_PERMANENT;
    if (http >= 200 && http < 300)
        return TIDE_OK;
    if (http == 401)
        status = TIDE_AUTH;
    else if (http == 404 || http == 410)
        status = TIDE_GONE;
    else if (http == 429 || http == BANDWIDTH || (http == 503 && *retry_after_ms_out > 0))
        status = TIDE_THROTTLED;
    else if (http == 408)
        status = TIDE_TIMEOUT;
    else if (http >= 500)
        status = TIDE_SERVER;
    if (err != NULL) {
        (void)tide_error_set(err, status, "the server answered %d", http);
        err->code = http == BANDWIDTH ? TIDE_REFUSED_BYTES : http;
    }
    return status;
}
