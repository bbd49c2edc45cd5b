#include "cloudbox/gate/quota.h"

#include "base/check.h"
#include "base/map.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/chat/chat.h"
#include "cloudbox/console/console.h"
#include "cloudbox/record/referee.h"

#include <stdio.h>
#include <time.h>

enum {
    MINUTE_MS = 60000,
    LEGACY_USER_UNITS = 15000,
    USER_UNITS = 6000,
    PROJECT_UNITS = 1200000,
    CONCURRENCY = 10,
    CONSOLE_PER_MINUTE = 1200,
    CONSOLE_PROJECT_PER_MINUTE = 40000,
    CONSOLE_PROJECT_PER_DAY = 30000000,
    CONSOLE_OTHER_PER_SECOND = 20,
    CONSOLE_OTHER_PER_MINUTE = 200,
    LOAD_PER_10_MINUTES = 1000000,
    LOAD_PER_DAY = 100000000,
    LOAD_DEAREST_DAY = 40, /* one day by date, query, page, country and device: box_sites_load() */
    CHAT_PER_MINUTE = 600,
    TOLD_STEP_MS = 5000,
    TOLD_GRACE_MS = 1000,
    TOLD_MAX_MS = 24 * 60 * MINUTE_MS,
    PROJECT_NUMBER = 100000000, /* of project 0, in texts */
    CALL_WINDOWS_MAX = 8,       /* one call is charged to at most so many */
};

/* Google does not publish its load figures; these are ours.  Whoever asks for one
 * day at a time stays below them at the full 1,200 calls a minute, for ever: only
 * long ranges by page and query are dear. */
_Static_assert(10 * CONSOLE_PER_MINUTE * LOAD_DEAREST_DAY < LOAD_PER_10_MINUTES,
               "one-day queries never meet the load of ten minutes");
_Static_assert(24 * 60 * CONSOLE_PER_MINUTE * LOAD_DEAREST_DAY < LOAD_PER_DAY,
               "one-day queries never meet the load of a day");

/* ---- a sliding window ---- */

struct bucket {
    uint64_t step; /* its time in steps */
    uint64_t amount;
};

/* A ring of the buckets that are not empty, oldest first.  There are at most
 * `steps` of them, since no two have the same step. */
struct box_window {
    uint32_t step_ms;
    uint32_t steps; /* a bucket counts while it is less than so many steps old */
    uint64_t sum;
    uint64_t highest;
    struct bucket *ring;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t first;
    uint32_t count;
};

box_window *box_window_new(uint32_t length_ms, uint32_t step_ms)
{
    TIDE_ASSERT(step_ms > 0);
    TIDE_ASSERT(length_ms >= step_ms);
    TIDE_ASSERT(length_ms % step_ms == 0);
    box_window *window = tide_mem_new(tide_mem_heap(), sizeof *window);
    TIDE_ASSERT(window != NULL);
    window->step_ms = step_ms;
    /* A coarse bucket stays until its youngest charge is old enough. */
    window->steps = length_ms / step_ms + (step_ms > 1 ? 1 : 0);
    return window;
}

void box_window_free(box_window *window)
{
    if (window == NULL)
        return;
    tide_mem_free(tide_mem_heap(), window->ring, window->capacity * sizeof *window->ring);
    tide_mem_free(tide_mem_heap(), window, sizeof *window);
}

static struct bucket *bucket_at(const box_window *window, uint32_t index)
{
    return &window->ring[(window->first + index) & (window->capacity - 1)];
}

static void window_advance(box_window *window, uint64_t step)
{
    while (window->count > 0) {
        const struct bucket *oldest = &window->ring[window->first];
        if (step < oldest->step + window->steps)
            return;
        TIDE_ASSERT(window->sum >= oldest->amount);
        window->sum -= oldest->amount;
        window->first = (window->first + 1) & (window->capacity - 1);
        window->count--;
    }
}

uint64_t box_window_count(box_window *window, uint64_t now_ms)
{
    window_advance(window, now_ms / window->step_ms);
    return window->sum;
}

static void window_grow(box_window *window)
{
    const uint32_t capacity = window->capacity == 0 ? 16 : window->capacity * 2;
    struct bucket *ring = tide_mem_array(tide_mem_heap(), capacity, sizeof *ring);
    TIDE_ASSERT(ring != NULL);
    for (uint32_t i = 0; i < window->count; i++)
        ring[i] = *bucket_at(window, i);
    tide_mem_free(tide_mem_heap(), window->ring, window->capacity * sizeof *window->ring);
    window->ring = ring;
    window->capacity = capacity;
    window->first = 0;
}

void box_window_add(box_window *window, uint64_t now_ms, uint32_t amount)
{
    uint64_t step = now_ms / window->step_ms;
    window_advance(window, step);
    if (amount == 0)
        return;
    struct bucket *last = window->count == 0 ? NULL : bucket_at(window, window->count - 1);
    if (last != NULL && step < last->step)
        step = last->step; /* time never goes back (B4) */
    if (last != NULL && last->step == step) {
        last->amount += amount;
    } else {
        if (window->count == window->capacity)
            window_grow(window);
        TIDE_ASSERT(window->count < window->steps);
        window->count++;
        *bucket_at(window, window->count - 1) = (struct bucket){step, amount};
    }
    window->sum += amount;
    if (window->sum > window->highest)
        window->highest = window->sum;
}

uint64_t box_window_highest(const box_window *window)
{
    return window->highest;
}

uint64_t box_window_fits_at(box_window *window, uint64_t now_ms, uint64_t limit, uint32_t amount)
{
    uint64_t sum = box_window_count(window, now_ms);
    if (amount > limit)
        return UINT64_MAX;
    if (sum + amount <= limit)
        return now_ms;
    for (uint32_t i = 0; i < window->count; i++) {
        const struct bucket *bucket = bucket_at(window, i);
        sum -= bucket->amount;
        if (sum + amount <= limit)
            return (bucket->step + window->steps) * window->step_ms;
    }
    TIDE_ASSERT(false && "an empty window has room for what is below its limit");
    return UINT64_MAX;
}

/* ---- the windows of everybody, made on first use ---- */

typedef enum meter_kind {
    METER_USER_MINUTE = 1,
    METER_PROJECT_MINUTE,
    METER_SITE_MINUTE,
    METER_CONSOLE_USER_MINUTE,
    METER_CONSOLE_PROJECT_MINUTE,
    METER_CONSOLE_PROJECT_DAY,
    METER_LOAD_10_MINUTES,
    METER_LOAD_DAY,
    METER_OTHER_SECOND,
    METER_OTHER_MINUTE,
    METER_CHAT_MINUTE,
    METER_KINDS,
} meter_kind;

static const struct {
    uint32_t length_ms;
    uint32_t step_ms;
} meter_shapes[METER_KINDS] = {
    [METER_USER_MINUTE] = {MINUTE_MS, 1},
    [METER_PROJECT_MINUTE] = {MINUTE_MS, 1},
    [METER_SITE_MINUTE] = {MINUTE_MS, 1},
    [METER_CONSOLE_USER_MINUTE] = {MINUTE_MS, 1},
    [METER_CONSOLE_PROJECT_MINUTE] = {MINUTE_MS, 1},
    [METER_CONSOLE_PROJECT_DAY] = {24 * 60 * MINUTE_MS, 1000},
    [METER_LOAD_10_MINUTES] = {10 * MINUTE_MS, 1000},
    [METER_LOAD_DAY] = {24 * 60 * MINUTE_MS, 1000},
    [METER_OTHER_SECOND] = {1000, 1},
    [METER_OTHER_MINUTE] = {MINUTE_MS, 1},
    [METER_CHAT_MINUTE] = {MINUTE_MS, 1},
};

struct user_state {
    uint32_t in_flight;
    uint32_t project;      /* of the latest call, for texts */
    uint32_t told_moves;   /* how often the time was moved */
    uint64_t told_from_ms; /* when it was told */
    uint64_t told_until_ms;
};

struct box_quota {
    struct box_quota_limits limits;
    tide_rng rng;
    tide_map numbers; /* kind, user or site, project -> windows[] */
    box_window **windows;
    size_t windows_count;
    size_t windows_capacity;
    struct user_state *users; /* by user number */
    size_t users_capacity;
};

static uint32_t default_units(box_quota_rules rules)
{
    return rules == BOX_QUOTA_LEGACY ? LEGACY_USER_UNITS : USER_UNITS;
}

struct box_quota *box_quota_new(const struct box_options *options)
{
    struct box_quota *quota = tide_mem_new(tide_mem_heap(), sizeof *quota);
    TIDE_ASSERT(quota != NULL);
    quota->limits = (struct box_quota_limits){
        .rules = options->quota,
        .user_units_per_minute = default_units(options->quota),
        .project_units_per_minute = PROJECT_UNITS,
        .concurrency_max = options->concurrency_max == 0 ? CONCURRENCY : options->concurrency_max,
        .console_per_minute = CONSOLE_PER_MINUTE,
        .load_per_10_minutes = LOAD_PER_10_MINUTES,
        .load_per_day = LOAD_PER_DAY,
        .chat_per_minute = CHAT_PER_MINUTE,
    };
    quota->rng = tide_rng_seeded(options->seed ^ 0x71756f7461u); /* "quota" */
    tide_map_init(&quota->numbers, tide_mem_heap());
    return quota;
}

void box_quota_free(struct box_quota *quota)
{
    if (quota == NULL)
        return;
    for (size_t i = 0; i < quota->windows_count; i++)
        box_window_free(quota->windows[i]);
    tide_mem_free(tide_mem_heap(), quota->windows,
                  quota->windows_capacity * sizeof *quota->windows);
    tide_mem_free(tide_mem_heap(), quota->users, quota->users_capacity * sizeof *quota->users);
    tide_map_done(&quota->numbers);
    tide_mem_free(tide_mem_heap(), quota, sizeof *quota);
}

static box_window *meter(struct box_quota *quota, meter_kind kind, uint32_t who, uint32_t project)
{
    const uint64_t key = ((uint64_t)kind << 56) | ((uint64_t)(who & 0xffffff) << 32) | project;
    uint32_t index = 0;
    if (tide_map_get(&quota->numbers, key, &index))
        return quota->windows[index];

    const size_t count = quota->windows_count;
    TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&quota->windows, &quota->windows_capacity,
                              count + 1, UINT32_MAX, sizeof *quota->windows));
    quota->windows[count] =
        box_window_new(meter_shapes[kind].length_ms, meter_shapes[kind].step_ms);
    quota->windows_count++;
    TIDE_ASSERT(tide_map_put(&quota->numbers, key, (uint32_t)count));
    return quota->windows[count];
}

static struct user_state *user_state(struct box_quota *quota, uint32_t number)
{
    TIDE_ASSERT(number <= BOX_USERS_MAX);
    if (number >= quota->users_capacity)
        TIDE_ASSERT(tide_mem_grow(tide_mem_heap(), (void **)&quota->users, &quota->users_capacity,
                                  (size_t)number + 1, BOX_USERS_MAX + 1, sizeof *quota->users));
    return &quota->users[number];
}

/* ---- charging ---- */

uint32_t box_quota_units(const struct box_quota *quota, const struct box_method *method)
{
    return quota->limits.rules == BOX_QUOTA_LEGACY ? method->units_legacy : method->units;
}

/* All the windows one call is charged to: first every one is asked, then every
 * one is charged, so that a refused call leaves no trace (Q2). */
struct charges {
    struct {
        box_window *window;
        uint64_t limit;
        uint32_t amount;
        box_refusal refusal;
    } list[CALL_WINDOWS_MAX];
    size_t count;
};

static void charges_add(struct charges *charges, box_window *window, uint64_t limit,
                        uint32_t amount, box_refusal refusal)
{
    TIDE_ASSERT(charges->count < CALL_WINDOWS_MAX);
    charges->list[charges->count].window = window;
    charges->list[charges->count].limit = limit;
    charges->list[charges->count].amount = amount;
    charges->list[charges->count].refusal = refusal;
    charges->count++;
}

static uint32_t console_load(const struct box_call *call)
{
    const tide_text body = call->request->body;
    if (body.bytes == 0 || body.bytes > 1 << 20)
        return 1;
    json_t *query = json_loadb(body.data, body.bytes, 0, NULL);
    const uint32_t load = query == NULL ? 1 : box_sites_load(query);
    json_decref(query);
    return load;
}

static void charges_console(struct charges *charges, struct box_quota *quota,
                            const struct box_call *call, uint32_t user, uint32_t project)
{
    const struct box_quota_limits *limits = &quota->limits;
    const uint32_t site =
        call->args_count == 0 ? 0 : box_sites_number(box_cloud_sites(call->cloud), call->args[0]);
    if (site != 0) {
        const uint32_t load = console_load(call);
        charges_add(charges, meter(quota, METER_SITE_MINUTE, site, project),
                    limits->console_per_minute, 1, BOX_OVER_SITE_MINUTE);
        charges_add(charges, meter(quota, METER_LOAD_10_MINUTES, site, 0),
                    limits->load_per_10_minutes, load, BOX_OVER_LOAD);
        charges_add(charges, meter(quota, METER_LOAD_DAY, site, 0), limits->load_per_day, load,
                    BOX_OVER_LOAD);
    }
    charges_add(charges, meter(quota, METER_CONSOLE_USER_MINUTE, user, project),
                limits->console_per_minute, 1, BOX_OVER_CONSOLE_USER);
    charges_add(charges, meter(quota, METER_CONSOLE_PROJECT_MINUTE, 0, project),
                CONSOLE_PROJECT_PER_MINUTE, 1, BOX_OVER_PROJECT_MINUTE);
    charges_add(charges, meter(quota, METER_CONSOLE_PROJECT_DAY, 0, project),
                CONSOLE_PROJECT_PER_DAY, 1, BOX_OVER_CONSOLE_DAY);
}

static void charges_of(struct charges *charges, struct box_quota *quota,
                       const struct box_call *call, uint32_t project)
{
    const struct box_quota_limits *limits = &quota->limits;
    const uint32_t user = call->user == NULL ? 0 : call->user->number;
    const uint32_t units = box_quota_units(quota, call->method);
    charges->count = 0;

    switch (call->method->meter) {
    case BOX_METER_NONE:
        break;
    case BOX_METER_GMAIL:
        charges_add(charges, meter(quota, METER_USER_MINUTE, user, project),
                    limits->user_units_per_minute, units, BOX_OVER_USER_MINUTE);
        charges_add(charges, meter(quota, METER_PROJECT_MINUTE, 0, project),
                    limits->project_units_per_minute, units, BOX_OVER_PROJECT_MINUTE);
        break;
    case BOX_METER_CONSOLE:
        charges_console(charges, quota, call, user, project);
        break;
    case BOX_METER_CONSOLE_OTHER:
        charges_add(charges, meter(quota, METER_OTHER_SECOND, user, project),
                    CONSOLE_OTHER_PER_SECOND, 1, BOX_OVER_CONSOLE_USER);
        charges_add(charges, meter(quota, METER_OTHER_MINUTE, user, project),
                    CONSOLE_OTHER_PER_MINUTE, 1, BOX_OVER_CONSOLE_USER);
        break;
    case BOX_METER_CHAT:
        charges_add(charges, meter(quota, METER_CHAT_MINUTE, user, project),
                    limits->chat_per_minute, 1, BOX_OVER_CHAT);
        break;
    }
}

/* Whether the user is asking before the time it was told. */
static bool too_early(struct box_quota *quota, const struct box_call *call, uint32_t project,
                      uint64_t *retry_at_ms_out)
{
    struct user_state *state = user_state(quota, call->user->number);
    state->project = project;
    if (call->now_ms >= state->told_until_ms) {
        state->told_moves = 0;
        return false;
    }
    /* On a clock that runs faster the same way through the network takes longer. */
    uint64_t grace_ms = box_cloud_clock(call->cloud)->speed_permille;
    if (grace_ms < TOLD_GRACE_MS)
        grace_ms = TOLD_GRACE_MS;
    if (call->now_ms >= state->told_from_ms + grace_ms) {
        box_referee_violation(box_cloud_referee(call->cloud), call->user, "early-retry");
        state->told_moves++;
        state->told_until_ms += (uint64_t)state->told_moves * TOLD_STEP_MS;
        state->told_from_ms = call->now_ms; /* the new time is news as well */
    }
    *retry_at_ms_out = state->told_until_ms;
    return quota->limits.rules != BOX_QUOTA_OFF;
}

box_refusal box_quota_charge(struct box_quota *quota, const struct box_call *call, uint32_t project,
                             uint64_t *retry_at_ms_out)
{
    if (call->method->meter == BOX_METER_NONE)
        return BOX_ALLOWED;
    if (call->method->meter == BOX_METER_GMAIL && call->user != NULL &&
        too_early(quota, call, project, retry_at_ms_out))
        return BOX_OVER_USER_MINUTE;

    struct charges charges;
    charges_of(&charges, quota, call, project);
    box_refusal refusal = BOX_ALLOWED;
    uint64_t retry_at_ms = 0;
    for (size_t i = 0; quota->limits.rules != BOX_QUOTA_OFF && i < charges.count; i++) {
        box_window *window = charges.list[i].window;
        const uint32_t amount = charges.list[i].amount;
        if (box_window_count(window, call->now_ms) + amount <= charges.list[i].limit)
            continue;
        const uint64_t fits_at_ms =
            box_window_fits_at(window, call->now_ms, charges.list[i].limit, amount);
        if (fits_at_ms > retry_at_ms)
            retry_at_ms = fits_at_ms;
        if (refusal == BOX_ALLOWED)
            refusal = charges.list[i].refusal;
    }
    if (refusal != BOX_ALLOWED) {
        *retry_at_ms_out = retry_at_ms;
        return refusal;
    }
    for (size_t i = 0; i < charges.count; i++)
        box_window_add(charges.list[i].window, call->now_ms, charges.list[i].amount);
    return BOX_ALLOWED;
}

void box_quota_told(struct box_quota *quota, const struct box_user *user, uint64_t now_ms,
                    uint64_t until_ms)
{
    struct user_state *state = user_state(quota, user->number);
    if (until_ms > now_ms + TOLD_MAX_MS)
        until_ms = now_ms + TOLD_MAX_MS;
    /* Told again while waiting: the first time counts for what is on its way. */
    if (state->told_until_ms <= now_ms)
        state->told_from_ms = now_ms;
    if (until_ms > state->told_until_ms)
        state->told_until_ms = until_ms;
}

/* ---- in flight ---- */

bool box_quota_enter(struct box_quota *quota, const struct box_user *user)
{
    struct user_state *state = user_state(quota, user->number);
    if (quota->limits.rules != BOX_QUOTA_OFF && state->in_flight >= quota->limits.concurrency_max)
        return false;
    state->in_flight++;
    return true;
}

void box_quota_leave(struct box_quota *quota, uint32_t user_number, uint32_t slots)
{
    struct user_state *state = user_state(quota, user_number);
    TIDE_ASSERT(state->in_flight >= slots);
    state->in_flight -= slots;
}

uint32_t box_quota_in_flight(const struct box_quota *quota, uint32_t user_number)
{
    return user_number < quota->users_capacity ? quota->users[user_number].in_flight : 0;
}

/* ---- limits ---- */

static void take(uint32_t *limit, uint32_t wanted)
{
    if (wanted != 0)
        *limit = wanted;
}

void box_quota_set(struct box_quota *quota, const struct box_quota_limits *limits)
{
    struct box_quota_limits *now = &quota->limits;
    if (limits->rules != now->rules) {
        now->rules = limits->rules;
        now->user_units_per_minute = default_units(limits->rules);
    }
    take(&now->user_units_per_minute, limits->user_units_per_minute);
    take(&now->project_units_per_minute, limits->project_units_per_minute);
    take(&now->concurrency_max, limits->concurrency_max);
    take(&now->console_per_minute, limits->console_per_minute);
    take(&now->load_per_10_minutes, limits->load_per_10_minutes);
    take(&now->load_per_day, limits->load_per_day);
    take(&now->chat_per_minute, limits->chat_per_minute);
}

struct box_quota_limits box_quota_get(const struct box_quota *quota)
{
    return quota->limits;
}

static const char *const rules_names[] = {"off", "2026", "legacy"};

bool box_quota_rules_of(tide_text name, box_quota_rules *rules_out)
{
    for (int i = BOX_QUOTA_OFF; i <= BOX_QUOTA_LEGACY; i++) {
        if (tide_text_equal(name, tide_text_of(rules_names[i]))) {
            *rules_out = (box_quota_rules)i;
            return true;
        }
    }
    return false;
}

json_t *box_quota_json(const struct box_quota *quota)
{
    const struct box_quota_limits *limits = &quota->limits;
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rules", rules_names[limits->rules],
        "user_units_per_minute", (json_int_t)limits->user_units_per_minute,
        "project_units_per_minute", (json_int_t)limits->project_units_per_minute, "concurrency_max",
        (json_int_t)limits->concurrency_max, "console_per_minute",
        (json_int_t)limits->console_per_minute, "load_per_10_minutes",
        (json_int_t)limits->load_per_10_minutes, "load_per_day", (json_int_t)limits->load_per_day,
        "chat_per_minute", (json_int_t)limits->chat_per_minute);
    TIDE_ASSERT(object != NULL);
    return object;
}

/* ---- refusing ---- */

const char *box_refusal_name(box_refusal refusal)
{
    static const char *const names[BOX_REFUSALS] = {
        [BOX_ALLOWED] = "allowed",
        [BOX_OVER_USER_MINUTE] = "user-minute",
        [BOX_OVER_PROJECT_MINUTE] = "project-minute",
        [BOX_OVER_CONCURRENCY] = "concurrency",
        [BOX_OVER_SITE_MINUTE] = "site-minute",
        [BOX_OVER_CONSOLE_USER] = "console-user",
        [BOX_OVER_CONSOLE_DAY] = "console-day",
        [BOX_OVER_LOAD] = "load",
        [BOX_OVER_CHAT] = "chat-minute",
    };
    TIDE_ASSERT(refusal < BOX_REFUSALS);
    return names[refusal];
}

void box_time_text(uint64_t unix_ms, char text_out[BOX_TIME_TEXT_BYTES])
{
    /* The last year that fits four digits; a wish beyond it means never. */
    const uint64_t last_ms = 253402300799999u;
    const uint64_t shown_ms = unix_ms > last_ms ? last_ms : unix_ms;
    const time_t seconds = (time_t)(shown_ms / 1000);
    struct tm tm;
    TIDE_ASSERT(gmtime_r(&seconds, &tm) != NULL);
    char date[24];
    TIDE_ASSERT(strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm) > 0);
    (void)snprintf(text_out, BOX_TIME_TEXT_BYTES, "%s.%03uZ", date, (unsigned)(shown_ms % 1000));
}

/* Google answers the same situation in four ways; clients must know them all. */
static void refuse_user_minute(struct box_call *call, uint64_t retry_at_ms)
{
    struct box_quota *quota = box_cloud_quota(call->cloud);
    const struct user_state *state = user_state(quota, call->user == NULL ? 0 : call->user->number);
    char time_text[BOX_TIME_TEXT_BYTES];

    /* Who waits for a time must hear when it moved, or it could not obey. */
    uint64_t variant = tide_rng_below(&quota->rng, 4);
    if (state->told_until_ms > call->now_ms)
        variant = 2;
    switch (variant) {
    case 0:
        box_fail(call, 403, "usageLimits", "rateLimitExceeded", "PERMISSION_DENIED",
                 "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per "
                 "user' of service 'gmail.googleapis.com' for consumer 'project_number:%u'.",
                 PROJECT_NUMBER + state->project);
        break;
    case 1:
        box_fail(call, 403, "usageLimits", "userRateLimitExceeded", "PERMISSION_DENIED",
                 "User Rate Limit Exceeded");
        break;
    case 2:
        box_time_text(retry_at_ms, time_text);
        box_fail(call, 429, "usageLimits", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
                 "User-rate limit exceeded.  Retry after %s", time_text);
        if (call->user != NULL)
            box_quota_told(quota, call->user, call->now_ms, retry_at_ms);
        break;
    default:
        box_fail(call, 429, "global", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
                 "Resource has been exhausted (e.g. check quota).");
        break;
    }
}

static void refuse_console(struct box_call *call)
{
    struct box_quota *quota = box_cloud_quota(call->cloud);
    if (tide_rng_chance(&quota->rng, 1, 2))
        box_fail(call, 403, "usageLimits", "quotaExceeded", "PERMISSION_DENIED",
                 "Search Analytics QPS quota exceeded. Learn about usage limits and how to "
                 "increase them.");
    else
        box_fail(call, 429, "usageLimits", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
                 "Search Analytics QPS quota exceeded");
}

void box_quota_refuse(struct box_call *call, box_refusal refusal, uint64_t retry_at_ms)
{
    TIDE_ASSERT(refusal != BOX_ALLOWED);
    TIDE_ASSERT(refusal < BOX_REFUSALS);

    switch (refusal) {
    case BOX_OVER_USER_MINUTE:
        refuse_user_minute(call, retry_at_ms);
        break;
    case BOX_OVER_CONCURRENCY:
        box_fail(call, 429, "usageLimits", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
                 "Too many concurrent requests for user");
        break;
    case BOX_OVER_PROJECT_MINUTE:
        box_fail(call, 403, "usageLimits", "rateLimitExceeded", "PERMISSION_DENIED",
                 "Rate Limit Exceeded");
        break;
    case BOX_OVER_SITE_MINUTE:
    case BOX_OVER_CONSOLE_USER:
        refuse_console(call);
        break;
    case BOX_OVER_CONSOLE_DAY:
        box_fail(call, 403, "usageLimits", "dailyLimitExceeded", "PERMISSION_DENIED",
                 "Daily Limit Exceeded");
        break;
    case BOX_OVER_LOAD:
        box_fail(call, 403, "usageLimits", "quotaExceeded", "PERMISSION_DENIED",
                 "Search Analytics load quota exceeded. Learn about usage limits and how to "
                 "increase them.");
        break;
    default:
        TIDE_ASSERT(refusal == BOX_OVER_CHAT);
        box_chat_refuse(call, retry_at_ms);
        break;
    }
}
