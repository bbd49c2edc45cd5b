#include "core/governor/governor.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

enum {
    BURST_MS = 1000,                /* capacity of the bucket, at the ceiling rate */
    LATENCY_COUNT_MIN = 100,        /* samples before a p95 is used */
    LATENCY_MS_UNKNOWN = 1000,      /* assumed before the first answer */
    CONCURRENCY_FORGET_MS = 900000, /* after this, try one more than the learned limit */
    DAY_MS = 86400000,
    DRIFT = 4096, /* the provider's clock may be slower by 1 in 4096: 244 ppm */
};

struct tide_governor {
    tide_mem *mem;
    struct tide_governor_profile profile; /* complete */
    uint64_t now_ms;                      /* the latest time passed in */

    /* Pace. */
    double tokens;
    uint64_t tokens_at_ms;

    /* Limits. */
    tide_window window; /* unused without profile.window_ms */
    struct tide_limit *shared[TIDE_LIMITS_PER_ACCOUNT];
    unsigned shared_count;
    tide_window day; /* bytes; unused unless the profile learns them */
    uint64_t day_bytes_max;
    uint64_t day_learned_ms;
    unsigned in_flight;
    unsigned concurrency; /* learned; 0: none */
    uint64_t concurrency_ms;

    tide_aimd aimd;
    struct tide_demand demand;
    tide_breaker breaker;
    bool halted;
    char halt_reason[TIDE_ERROR_TEXT_BYTES_MAX];

    tide_lease lease;     /* unused without a window */
    uint64_t trips_saved; /* as of the last snapshot */

    /* For display. */
    tide_latency latency; /* of all methods */
    tide_latency methods[TIDE_METHODS_MAX];
    uint64_t calls;
    uint64_t calls_by_class[TIDE_CLASS_BUG + 1];
};

static bool has_window(const tide_governor *governor)
{
    return governor->profile.window_ms > 0;
}

static uint64_t later(uint64_t a_ms, uint64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

/* ---- Derived from the profile. ---- */

static uint64_t window_limit(const tide_governor *governor)
{
    return governor->profile.window_units_max * governor->profile.share_permille / 1000;
}

static uint64_t reserve_units(const tide_governor *governor)
{
    return window_limit(governor) * governor->profile.reserve_permille / 1000;
}

static double burst_units(const tide_governor *governor)
{
    const double by_rate = governor->profile.rate_max * BURST_MS / 1000;
    const double by_call = 2.0 * governor->profile.call_units;
    return by_rate > by_call ? by_rate : by_call;
}

/* The units one snapshot allows beyond itself.  A full batch must fit. */
static uint64_t lease_units(const tide_governor *governor)
{
    const struct tide_governor_profile *profile = &governor->profile;
    uint64_t units = (uint64_t)(profile->rate_max * profile->spend_lease_ms / 1000);
    const uint64_t batch = (uint64_t)profile->in_flight_max * profile->call_units;
    if (units < batch)
        units = batch;
    return units < window_limit(governor) ? units : window_limit(governor);
}

/* ---- Create and free. ---- */

void tide_governor_free(tide_governor *governor)
{
    if (governor == NULL)
        return;
    tide_window_done(&governor->window);
    tide_window_done(&governor->day);
    tide_mem_free(governor->mem, governor, sizeof *governor);
}

tide_status tide_governor_new(const struct tide_governor_profile *profile, uint64_t now_ms,
                              tide_mem *mem, tide_governor **governor_out)
{
    struct tide_governor_profile complete;
    tide_status rc = tide_profile_complete(profile, &complete);
    if (rc != TIDE_OK)
        return rc;
    tide_governor *governor = tide_mem_new(mem, sizeof *governor);
    if (governor == NULL)
        return TIDE_NO_MEMORY;
    governor->mem = mem;
    governor->profile = complete;

    if (complete.window_ms > 0)
        rc = tide_window_init(&governor->window, complete.window_ms + complete.window_ms / DRIFT,
                              mem);
    if (rc == TIDE_OK && complete.learn_bytes_per_day)
        rc = tide_window_init(&governor->day, DAY_MS, mem);
    if (rc != TIDE_OK) {
        tide_governor_free(governor);
        return rc;
    }

    governor->now_ms = now_ms;
    governor->tokens_at_ms = now_ms;
    governor->tokens = complete.call_units;
    tide_aimd_init(&governor->aimd, &governor->profile);
    tide_breaker_init(&governor->breaker, &complete.breaker);
    tide_latency_init(&governor->latency, now_ms);
    for (int i = 0; i < TIDE_METHODS_MAX; i++)
        tide_latency_init(&governor->methods[i], now_ms);
    *governor_out = governor;
    return TIDE_OK;
}

tide_status tide_governor_limit_add(tide_governor *governor, struct tide_limit *limit)
{
    if (governor->in_flight > 0)
        return TIDE_BUSY;
    if (governor->shared_count + (has_window(governor) ? 1 : 0) >= TIDE_LIMITS_PER_ACCOUNT)
        return TIDE_FULL;
    governor->shared[governor->shared_count++] = limit;
    return TIDE_OK;
}

tide_status tide_governor_limits_set(tide_governor *governor,
                                     const struct tide_governor_profile *profile)
{
    struct tide_governor_profile complete;
    const tide_status rc = tide_profile_complete(profile, &complete);
    if (rc != TIDE_OK)
        return rc;
    if (complete.window_ms != governor->profile.window_ms ||
        complete.learn_bytes_per_day != governor->profile.learn_bytes_per_day)
        return TIDE_INVALID;
    governor->profile = complete;
    tide_breaker_rules_set(&governor->breaker, &complete.breaker);
    tide_aimd_set(&governor->aimd, governor->aimd.rate, governor->aimd.workers);
    return TIDE_OK;
}

/* ---- The decision.  These functions change nothing. ---- */

static double tokens_at(const tide_governor *governor, uint64_t now_ms)
{
    double tokens = governor->tokens;
    if (now_ms > governor->tokens_at_ms)
        tokens += governor->aimd.rate * (double)(now_ms - governor->tokens_at_ms) / 1000;
    const double burst = burst_units(governor);
    return tokens < burst ? tokens : burst;
}

/* A call larger than the bucket may be sent when the bucket is full, and leaves a debt.  A call
 * at level 1 may borrow up to the reserve: a user's call must not wait for the rate. */
static uint64_t bucket_at_ms(const tide_governor *governor, uint64_t now_ms, unsigned level,
                             uint32_t units)
{
    const double burst = burst_units(governor);
    double needed = units < burst ? units : burst;
    if (level == 1)
        needed -= (double)reserve_units(governor);
    const double missing = needed - tokens_at(governor, now_ms);
    if (missing <= 1e-9)
        return now_ms;
    return now_ms + (uint64_t)(missing * 1000 / governor->aimd.rate) + 1;
}

static unsigned calls_max(const tide_governor *governor)
{
    const unsigned published = governor->profile.in_flight_max;
    return governor->concurrency > 0 && governor->concurrency < published ? governor->concurrency
                                                                          : published;
}

/* Where there are enough places, one is kept for level 1.  A batch larger than a learned limit
 * may be sent alone. */
static bool has_place(const tide_governor *governor, unsigned level, uint32_t calls)
{
    unsigned places = calls_max(governor);
    if (level > 1 && governor->profile.reserve_permille > 0 && places > 4)
        places--;
    return governor->in_flight == 0 || governor->in_flight + calls <= places;
}

static uint64_t limits_at_ms(const tide_governor *governor, uint64_t now_ms, unsigned level,
                             uint32_t units)
{
    uint64_t at_ms = now_ms;
    if (has_window(governor)) {
        const uint64_t limit = window_limit(governor) - (level > 1 ? reserve_units(governor) : 0);
        at_ms = tide_window_frees_at_ms(&governor->window, now_ms, units, limit);
    }
    for (unsigned i = 0; i < governor->shared_count; i++) {
        const struct tide_limit *shared = governor->shared[i];
        const uint64_t free_ms =
            tide_window_frees_at_ms(&shared->window, now_ms, units, shared->units_max);
        at_ms = later(at_ms, free_ms < shared->granted_until_ms ? free_ms : UINT64_MAX);
    }
    if (governor->day_bytes_max > 0)
        at_ms = later(at_ms,
                      tide_window_frees_at_ms(&governor->day, now_ms, 1, governor->day_bytes_max));
    return at_ms;
}

static bool lease_covers(const tide_governor *governor, uint32_t units)
{
    return !has_window(governor) || tide_lease_covers(&governor->lease, units);
}

/* When an account that is not halted may send a call of this size: `now_ms`, later, or UINT64_MAX
 * when that depends on an answer, a save or a command. */
static uint64_t fits_at_ms(const tide_governor *governor, uint64_t now_ms, unsigned level,
                           uint32_t units, uint32_t calls)
{
    TIDE_ASSERT(!governor->halted); /* each caller has its own answer for that */
    if (!has_place(governor, level, calls) || !lease_covers(governor, units))
        return UINT64_MAX;
    uint64_t at_ms = tide_breaker_allows_at_ms(&governor->breaker, now_ms);
    at_ms = later(at_ms, bucket_at_ms(governor, now_ms, level, units));
    return later(at_ms, limits_at_ms(governor, now_ms, level, units));
}

static bool can_ever_fit(const tide_governor *governor, unsigned level, uint32_t units,
                         uint32_t calls)
{
    if (calls > governor->profile.in_flight_max)
        return false;
    if (!has_window(governor))
        return true;
    return units <= lease_units(governor) &&
           units <= window_limit(governor) - (level > 1 ? reserve_units(governor) : 0);
}

unsigned tide_governor_jobs_max(tide_governor *governor, uint64_t now_ms)
{
    if (governor->halted)
        return 0;
    switch (tide_breaker_state(&governor->breaker, now_ms)) {
    case TIDE_BREAKER_OPEN:
        return 0;
    case TIDE_BREAKER_HALF_OPEN:
        return 1;
    case TIDE_BREAKER_CLOSED:
        break;
    }
    uint32_t latency_ms = tide_latency_quantile_ms(&governor->latency, 990);
    if (tide_latency_count(&governor->latency) == 0)
        latency_ms = LATENCY_MS_UNKNOWN;
    else if (latency_ms == 0)
        latency_ms = 1; /* measured values are rounded down */
    const double at_once =
        governor->aimd.rate / governor->profile.call_units * (double)latency_ms / 1000;
    unsigned jobs = at_once < TIDE_WORKERS_MAX ? (unsigned)at_once : TIDE_WORKERS_MAX;
    if (jobs == 0 || jobs < at_once)
        jobs++;
    if (jobs > governor->aimd.workers)
        jobs = governor->aimd.workers;
    /* Fast calls need few jobs, but a job may be a transfer of an hour.  After refusals pace goes first. */
    if (jobs < governor->profile.jobs_min && governor->aimd.rate >= governor->profile.rate_start)
        jobs = governor->profile.jobs_min;
    return jobs < calls_max(governor) ? jobs : calls_max(governor);
}

uint64_t tide_governor_wake_at_ms(const tide_governor *governor, uint64_t now_ms)
{
    if (governor->halted)
        return UINT64_MAX;
    if (tide_breaker_state(&governor->breaker, now_ms) == TIDE_BREAKER_OPEN)
        return governor->breaker.until_ms;
    const uint64_t at_ms = fits_at_ms(governor, now_ms, 4, governor->profile.call_units, 1);
    return at_ms > now_ms ? at_ms : UINT64_MAX;
}

/* ---- Charge, answer, uncharge. ---- */

static void advance(tide_governor *governor, uint64_t now_ms)
{
    governor->tokens = tokens_at(governor, now_ms);
    governor->tokens_at_ms = later(governor->tokens_at_ms, now_ms);
    governor->now_ms = later(governor->now_ms, now_ms);
}

tide_status tide_governor_charge_batch(tide_governor *governor, uint64_t now_ms, unsigned level,
                                       uint32_t units, uint32_t calls, uint64_t *again_at_ms_out)
{
    TIDE_ASSERT(level >= 1 && level <= 4);
    TIDE_ASSERT(calls > 0);
    if (governor->halted)
        return TIDE_STOPPED;
    if (!can_ever_fit(governor, level, units, calls))
        return TIDE_INVALID;
    const uint64_t at_ms = fits_at_ms(governor, now_ms, level, units, calls);
    if (at_ms > now_ms) {
        if (!lease_covers(governor, units))
            tide_lease_want(&governor->lease, units);
        *again_at_ms_out = at_ms;
        return TIDE_AGAIN;
    }

    advance(governor, now_ms);
    governor->tokens -= units;
    governor->in_flight += calls;
    if (has_window(governor)) {
        tide_lease_spend(&governor->lease, units);
        tide_window_send(&governor->window, now_ms, units);
    }
    for (unsigned i = 0; i < governor->shared_count; i++)
        tide_window_send(&governor->shared[i]->window, now_ms, units);
    tide_breaker_sent(&governor->breaker, now_ms);
    return TIDE_OK;
}

tide_status tide_governor_charge(tide_governor *governor, uint64_t now_ms, unsigned level,
                                 uint32_t units, uint64_t *again_at_ms_out)
{
    return tide_governor_charge_batch(governor, now_ms, level, units, 1, again_at_ms_out);
}

/* Units stay spent in the lease: a snapshot may have promised them. */
void tide_governor_uncharge_batch(tide_governor *governor, uint64_t now_ms, uint32_t units,
                                  uint32_t calls)
{
    TIDE_ASSERT(governor->in_flight >= calls);
    advance(governor, now_ms);
    governor->in_flight -= calls;
    governor->tokens += units;
    if (has_window(governor))
        tide_window_unsend(&governor->window, units);
    for (unsigned i = 0; i < governor->shared_count; i++)
        tide_window_unsend(&governor->shared[i]->window, units);
    tide_breaker_unsent(&governor->breaker);
}

/* The provider may still count a call without an answer for a while. */
static void release(tide_governor *governor, uint64_t now_ms, const struct tide_answer *answer)
{
    const bool answered = answer->status == TIDE_OK || answer->http != 0;
    const uint64_t counted_by_ms = answered ? now_ms : now_ms + governor->profile.stray_ms;
    const uint32_t calls = answer->calls > 0 ? answer->calls : 1;
    TIDE_ASSERT(governor->in_flight >= calls);
    governor->in_flight -= calls;
    if (has_window(governor))
        tide_window_unanswered(&governor->window, now_ms, counted_by_ms, answer->units);
    for (unsigned i = 0; i < governor->shared_count; i++)
        tide_window_unanswered(&governor->shared[i]->window, now_ms, counted_by_ms, answer->units);
    if (governor->profile.learn_bytes_per_day && answer->bytes > 0) {
        tide_window_send(&governor->day, now_ms, answer->bytes);
        tide_window_received(&governor->day, now_ms, answer->bytes);
    }
}

/* ---- Learning from answers. ---- */

/* After a cut, saved-up tokens must not burst into the refusal. */
static void drop_tokens(tide_governor *governor)
{
    if (governor->tokens > governor->profile.call_units)
        governor->tokens = governor->profile.call_units;
}

/* A learned limit is a guess and is tested again, rarely: one refusal in a quarter of an hour is
 * within the 0.1 % of E4.3. */
static void doubt_learned_limits(tide_governor *governor, uint64_t now_ms)
{
    if (governor->concurrency > 0 && now_ms >= governor->concurrency_ms + CONCURRENCY_FORGET_MS) {
        governor->concurrency_ms = now_ms;
        if (++governor->concurrency >= governor->profile.in_flight_max)
            governor->concurrency = 0;
    }
    if (governor->day_bytes_max > 0 && now_ms >= governor->day_learned_ms + DAY_MS) {
        governor->day_learned_ms = now_ms;
        governor->day_bytes_max += governor->day_bytes_max / 10;
    }
}

/* A method whose p95 exceeds its own normal range is overloaded, by us or by others.  Its
 * samples are then dropped, so that one slow minute cuts once. */
static bool a_method_is_slow(tide_governor *governor, uint64_t now_ms)
{
    for (int i = 0; i < TIDE_METHODS_MAX; i++) {
        tide_latency *method = &governor->methods[i];
        if (tide_latency_count(method) < LATENCY_COUNT_MIN)
            continue;
        const uint32_t p95_ms = tide_latency_quantile_ms(method, 950);
        const uint64_t ordinary_ms = (uint64_t)tide_latency_best_p50_ms(method) *
                                     governor->profile.latency_factor_permille / 1000;
        if (p95_ms > governor->profile.latency_max_ms && p95_ms > ordinary_ms) {
            tide_latency_forget(method, now_ms);
            return true;
        }
    }
    return false;
}

static void learn_limits(tide_governor *governor, uint64_t now_ms, const struct tide_answer *answer)
{
    if (answer->refusal == TIDE_REFUSAL_CONCURRENCY) {
        /* The refused call is no longer counted here; of a batch, which left the count as a
         * whole, at least one part was too many. */
        const unsigned parts = answer->calls > 1 ? answer->calls - 1 : 0;
        const unsigned others = governor->in_flight + parts;
        const unsigned limit = others > 1 ? others : 1;
        if (governor->concurrency == 0 || limit < governor->concurrency)
            governor->concurrency = limit;
        governor->concurrency_ms = now_ms;
    }
    if (answer->refusal == TIDE_REFUSAL_BYTES && governor->profile.learn_bytes_per_day) {
        governor->day_bytes_max = tide_window_used(&governor->day, now_ms) + 1;
        governor->day_learned_ms = now_ms;
    }
}

/* ---- Handling an answer. ---- */

static void answered_throttled(tide_governor *governor, uint64_t now_ms, uint64_t sent_ms,
                               const struct tide_answer *answer, tide_rng *rng)
{
    learn_limits(governor, now_ms, answer);
    if (tide_aimd_refused(&governor->aimd, now_ms, sent_ms))
        drop_tokens(governor);
    tide_breaker_refused(&governor->breaker, now_ms, sent_ms,
                         answer->retry_after_ms > 0 ? now_ms + answer->retry_after_ms : 0,
                         TIDE_THROTTLED, rng);
}

static void answered_well(tide_governor *governor, uint64_t now_ms, uint64_t sent_ms,
                          const struct tide_answer *answer, tide_rng *rng)
{
    tide_breaker_succeeded(&governor->breaker, sent_ms);
    tide_breaker_subject_succeeded(&governor->breaker, answer->subject);
    tide_latency_add(&governor->latency, now_ms, answer->latency_ms);
    if (answer->method < TIDE_METHODS_MAX)
        tide_latency_add(&governor->methods[answer->method], now_ms, answer->latency_ms);
    if (!tide_aimd_succeeded(&governor->aimd, now_ms, sent_ms, answer->bytes) ||
        governor->breaker.why != TIDE_OK)
        return;
    if (!a_method_is_slow(governor, now_ms)) {
        tide_aimd_grow(&governor->aimd, now_ms, &governor->demand);
        doubt_learned_limits(governor, now_ms);
        return;
    }
    TIDE_SEEN("governor: a method went slow");
    tide_aimd_cut(&governor->aimd, now_ms);
    drop_tokens(governor);
    tide_breaker_open(&governor->breaker, now_ms, now_ms + 500 + tide_rng_below(rng, 500),
                      TIDE_THROTTLED);
}

/* Worth a retry, and not caused by the provider. */
static bool is_our_own(tide_status status)
{
    return status == TIDE_NO_MEMORY || status == TIDE_FULL || status == TIDE_BUSY;
}

/* A failure, never a refused sign-in. */
static bool is_of_its_subject(tide_governor *governor, tide_class class,
                              const struct tide_answer *answer)
{
    return class == TIDE_CLASS_RETRY &&
           tide_breaker_subject_failed(&governor->breaker, answer->subject);
}

void tide_governor_answered(tide_governor *governor, uint64_t now_ms,
                            const struct tide_answer *answer, tide_rng *rng)
{
    advance(governor, now_ms);
    release(governor, now_ms, answer);
    const uint64_t sent_ms = now_ms > answer->latency_ms ? now_ms - answer->latency_ms : 0;
    const tide_class class = tide_status_class(answer->status);
    governor->calls++;
    governor->calls_by_class[class]++;

    switch (class) {
    case TIDE_CLASS_OK:
    case TIDE_CLASS_GONE:
    case TIDE_CLASS_PERMANENT:
        answered_well(governor, now_ms, sent_ms, answer, rng);
        break;
    case TIDE_CLASS_THROTTLED:
        answered_throttled(governor, now_ms, sent_ms, answer, rng);
        break;
    case TIDE_CLASS_NETWORK:
        tide_aimd_unhealthy(&governor->aimd);
        tide_breaker_refused(&governor->breaker, now_ms, sent_ms, 0, answer->status, rng);
        break;
    case TIDE_CLASS_RETRY:
    case TIDE_CLASS_AUTH:
        if (is_our_own(answer->status) || is_of_its_subject(governor, class, answer)) {
            tide_breaker_unknown(&governor->breaker, sent_ms);
            break;
        }
        tide_aimd_failed(&governor->aimd);
        tide_breaker_failed(&governor->breaker, now_ms, sent_ms, answer->status, rng);
        break;
    case TIDE_CLASS_DISK:
    case TIDE_CLASS_CANCELED:
    case TIDE_CLASS_BUG:
        tide_breaker_unknown(&governor->breaker, sent_ms);
        break;
    }
}

/* ---- Commands. ---- */

void tide_governor_demand(tide_governor *governor, const struct tide_demand *demand)
{
    governor->demand = *demand;
}

void tide_governor_halt(tide_governor *governor, const char *reason)
{
    governor->halted = true;
    (void)snprintf(governor->halt_reason, sizeof governor->halt_reason, "%s", reason);
}

void tide_governor_resume(tide_governor *governor, uint64_t now_ms)
{
    advance(governor, now_ms);
    governor->halted = false;
    governor->halt_reason[0] = '\0';
    tide_breaker_close(&governor->breaker);
    tide_aimd_unhealthy(&governor->aimd);
}

bool tide_governor_signed_in(tide_governor *governor, uint64_t now_ms)
{
    advance(governor, now_ms);
    if (tide_status_class(governor->breaker.why) != TIDE_CLASS_AUTH)
        return false; /* a closed breaker has no cause */
    tide_breaker_close(&governor->breaker);
    return true;
}

void tide_governor_pause(tide_governor *governor, uint64_t until_ms, tide_status why)
{
    if (until_ms <= governor->breaker.until_ms)
        return;
    tide_breaker_open(&governor->breaker, governor->now_ms, until_ms, why);
}

/* ---- The spend lease. ---- */

uint64_t tide_governor_save_at_ms(const tide_governor *governor)
{
    const tide_lease *lease = &governor->lease;
    const uint32_t every_ms = governor->profile.save_every_ms;
    uint64_t at_ms = UINT64_MAX;
    if (governor->breaker.trips_total != governor->trips_saved) /* pauses are saved too */
        at_ms = lease->taken ? lease->taken_ms + every_ms : 0;
    if (has_window(governor)) {
        const uint64_t lease_ms = tide_lease_save_at_ms(lease, lease_units(governor), every_ms);
        at_ms = lease_ms < at_ms ? lease_ms : at_ms;
    }
    return at_ms;
}

bool tide_governor_save_due(const tide_governor *governor, uint64_t now_ms)
{
    return tide_governor_save_at_ms(governor) <= now_ms;
}

void tide_governor_save(tide_governor *governor, uint64_t now_ms, uint64_t now_unix_ms,
                        struct tide_governor_saved *saved_out)
{
    *saved_out = (struct tide_governor_saved){
        .at_ms = now_ms,
        .at_unix_ms = now_unix_ms,
        .unrecorded_units = tide_lease_promise(&governor->lease, now_ms,
                                               has_window(governor) ? lease_units(governor) : 0),
        .rate_milli = (uint64_t)(governor->aimd.rate * 1000),
        .workers = governor->aimd.workers,
        .concurrency = governor->concurrency,
        .day_bytes_max = governor->day_bytes_max,
    };
    if (tide_breaker_state(&governor->breaker, now_ms) == TIDE_BREAKER_OPEN) {
        saved_out->paused_until_unix_ms = now_unix_ms + (governor->breaker.until_ms - now_ms);
        saved_out->paused_why = governor->breaker.why;
    }
    if (has_window(governor))
        tide_window_save(&governor->window, now_ms, now_unix_ms, &saved_out->window);
    if (governor->profile.learn_bytes_per_day)
        tide_window_save(&governor->day, now_ms, now_unix_ms, &saved_out->day);
    governor->trips_saved = governor->breaker.trips_total;
}

void tide_governor_saved(tide_governor *governor, uint64_t saved_at_ms)
{
    tide_lease_saved(&governor->lease, saved_at_ms);
}

/* A lower bound of the time since the snapshot.  The wall clock says too much if it was set
 * forward in between.  On the machine that saved, the time since boot is never too long: either
 * it is the same boot, or the new one began after the snapshot.  On another machine it means
 * nothing, and the wall clock is the bound. */
static uint64_t age_ms(const struct tide_governor_saved *saved, uint64_t now_ms,
                       uint64_t now_unix_ms)
{
    const uint64_t boot_ms = now_ms >= saved->at_ms ? now_ms - saved->at_ms : now_ms;
    const uint64_t wall_ms = now_unix_ms > saved->at_unix_ms ? now_unix_ms - saved->at_unix_ms : 0;
    return boot_ms < wall_ms ? boot_ms : wall_ms;
}

tide_status tide_governor_restore(tide_governor *governor, const struct tide_governor_saved *saved,
                                  uint64_t now_ms, uint64_t now_unix_ms)
{
    TIDE_ASSERT(!governor->lease.taken);
    TIDE_ASSERT(governor->calls == 0 && governor->in_flight == 0);
    if (saved->unrecorded_units > UINT32_MAX || saved->workers > UINT32_MAX ||
        saved->concurrency > UINT32_MAX || saved->rate_milli > UINT64_MAX / 2)
        return TIDE_CORRUPT;
    if (!tide_window_saved_is_valid(&saved->window) || !tide_window_saved_is_valid(&saved->day))
        return TIDE_CORRUPT;
    if (saved->paused_until_unix_ms > 0 && (saved->paused_why >= 0 || saved->paused_why < TIDE_BUG))
        return TIDE_CORRUPT;

    /* Units that were in flight or unrecorded may be counted until the last call of the dead
     * process must have reached the provider. */
    const uint64_t counted_by_ms = now_ms + governor->profile.stray_ms;
    if (has_window(governor)) {
        tide_window_restore(&governor->window, &saved->window, now_ms,
                            saved->at_unix_ms + age_ms(saved, now_ms, now_unix_ms), counted_by_ms);
        tide_window_send(&governor->window, now_ms, saved->unrecorded_units);
        tide_window_unanswered(&governor->window, now_ms, counted_by_ms, saved->unrecorded_units);
    }
    if (governor->profile.learn_bytes_per_day) {
        /* A learned limit lasts a day at most: a machine that was off all night must not keep
         * it. */
        tide_window_restore(&governor->day, &saved->day, now_ms, now_unix_ms, now_ms);
        governor->day_bytes_max = saved->day_bytes_max;
    }

    governor->day_learned_ms = now_ms;
    /* A rate learned under a window does not apply to a profile without one. */
    const bool window_is_gone = !has_window(governor) && saved->unrecorded_units > 0;
    if (!window_is_gone)
        tide_aimd_set(&governor->aimd, (double)saved->rate_milli / 1000, (unsigned)saved->workers);
    governor->concurrency = (unsigned)saved->concurrency;
    governor->concurrency_ms = now_ms;
    /* The owner may have signed in between two runs: the new process tries once. */
    if (saved->paused_until_unix_ms > now_unix_ms && saved->paused_why != TIDE_AUTH) {
        uint64_t pause_ms = saved->paused_until_unix_ms - now_unix_ms;
        if (pause_ms > DAY_MS)
            pause_ms = DAY_MS; /* the wall clock was set back */
        tide_breaker_open(&governor->breaker, now_ms, now_ms + pause_ms,
                          (tide_status)saved->paused_why);
    }
    return TIDE_OK;
}

/* ---- For display (E9.1). ---- */

static enum tide_governor_state state_at(const tide_governor *governor, uint64_t now_ms)
{
    if (governor->halted)
        return TIDE_GOVERNOR_HALTED;
    switch (tide_breaker_state(&governor->breaker, now_ms)) {
    case TIDE_BREAKER_CLOSED:
        return TIDE_GOVERNOR_RUNNING;
    case TIDE_BREAKER_HALF_OPEN:
        return TIDE_GOVERNOR_PROBING;
    case TIDE_BREAKER_OPEN:
        break;
    }
    const tide_class class = tide_status_class(governor->breaker.why);
    return class == TIDE_CLASS_RETRY || class == TIDE_CLASS_AUTH ? TIDE_GOVERNOR_OPEN
                                                                 : TIDE_GOVERNOR_PAUSED;
}

enum tide_governor_state tide_governor_state(const tide_governor *governor, uint64_t now_ms,
                                             tide_status *why_out, uint64_t *until_ms_out)
{
    *why_out = governor->breaker.why;
    *until_ms_out = governor->breaker.until_ms;
    return state_at(governor, now_ms);
}

void tide_governor_view(const tide_governor *governor, uint64_t now_ms,
                        struct tide_governor_view *view_out)
{
    *view_out = (struct tide_governor_view){
        .state = state_at(governor, now_ms),
        .reason = governor->halt_reason,
        .why = governor->breaker.why,
        .until_ms = governor->breaker.until_ms,
        .rate = governor->aimd.rate,
        .rate_max = governor->profile.rate_max,
        .tokens = tokens_at(governor, now_ms),
        .in_flight = governor->in_flight,
        .in_flight_max = calls_max(governor),
        .workers = governor->aimd.workers,
        .day_bytes_max = governor->day_bytes_max,
        .calls = governor->calls,
        .cuts = governor->aimd.cuts,
        .p50_ms = tide_latency_quantile_ms(&governor->latency, 500),
        .p95_ms = tide_latency_quantile_ms(&governor->latency, 950),
        .p99_ms = tide_latency_quantile_ms(&governor->latency, 990),
    };
    memcpy(view_out->calls_by_class, governor->calls_by_class, sizeof view_out->calls_by_class);
    if (has_window(governor)) {
        view_out->window_used = tide_window_used(&governor->window, now_ms);
        view_out->window_max = window_limit(governor);
        view_out->lease_left = governor->lease.durable - governor->lease.spent;
    }
    if (governor->profile.learn_bytes_per_day)
        view_out->day_bytes = tide_window_used(&governor->day, now_ms);
}

const tide_latency *tide_governor_latency(const tide_governor *governor, uint32_t method)
{
    TIDE_ASSERT(method < TIDE_METHODS_MAX);
    return &governor->methods[method];
}

bool tide_governor_check(const tide_governor *governor, uint64_t now_ms)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    if (!tide_aimd_check(&governor->aimd) || !tide_breaker_check(&governor->breaker) ||
        !tide_latency_check(&governor->latency))
        return false; /* GOV4 */
    if (tokens_at(governor, now_ms) > burst_units(governor))
        return false; /* GOV5 */
    return !has_window(governor) ||
           (tide_lease_check(&governor->lease) && tide_window_check(&governor->window)); /* GOV3 */
    /* GCOVR_EXCL_BR_STOP */
}
