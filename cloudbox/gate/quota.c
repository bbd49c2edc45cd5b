#include "cloudbox/gate/quota.h"

#include "base/check.h"
#include "base/map.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/record/referee.h"
#include "cloudbox/record/window.h"

#include <stdio.h>
#include <time.h>

enum {
    TOLD_STEP_MS = 5000,
    TOLD_GRACE_MS = 1000,
    TOLD_MAX_MS = 24 * 3600 * 1000,
    ROWS_MAX = BOX_QUOTA_SETTINGS_MAX, /* limits of all services */
};

/* One limit of one service. */
struct row {
    const struct box_service *service;
    const struct box_limit *limit;
    uint32_t value; /* in force */
};

struct user_state {
    uint32_t in_flight;
    uint32_t told_moves;   /* how often the time was moved */
    uint64_t told_from_ms; /* when the answer with it was sent */
    uint64_t told_until_ms;
};

struct box_quota {
    box_quota_rules rules;
    tide_rng rng;
    struct row rows[ROWS_MAX];
    size_t rows_count;
    tide_map numbers; /* row, user or subject, project -> windows[] */
    box_window **windows;
    size_t windows_count;
    size_t windows_capacity;
    struct user_state *users; /* by user number */
    size_t users_capacity;
};

/* ---- life ---- */

static uint32_t limit_of(const struct box_limit *limit, box_quota_rules rules)
{
    return rules == BOX_QUOTA_LEGACY && limit->limit_legacy != 0 ? limit->limit_legacy
                                                                 : limit->limit;
}

static void rows_add(struct box_quota *quota, const struct box_service *service,
                     const struct box_options *options)
{
    for (size_t i = 0; i < service->limits_count; i++) {
        const struct box_limit *limit = &service->limits[i];
        TIDE_ASSERT(quota->rows_count < ROWS_MAX);
        uint32_t value = limit_of(limit, options->quota);
        if (limit->window_ms == 0 && options->concurrency_max != 0)
            value = options->concurrency_max;
        quota->rows[quota->rows_count++] = (struct row){service, limit, value};
    }
}

struct box_quota *box_quota_new(const struct box_options *options)
{
    struct box_quota *quota = tide_mem_new(tide_mem_heap(), sizeof *quota);
    TIDE_ASSERT(quota != NULL);
    quota->rules = options->quota;
    for (size_t i = 0; options->services[i] != NULL; i++)
        rows_add(quota, options->services[i], options);
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

tide_rng *box_quota_rng(struct box_quota *quota)
{
    return &quota->rng;
}

/* The window of a limit for one user or subject and project, made on first use. */
static box_window *window_of(struct box_quota *quota, size_t row, uint32_t who, uint32_t project)
{
    const uint64_t key = ((uint64_t)(row + 1) << 56) | ((uint64_t)(who & 0xffffff) << 32) | project;
    uint32_t index = 0;
    if (tide_map_get(&quota->numbers, key, &index))
        return quota->windows[index];

    const struct box_limit *limit = quota->rows[row].limit;
    const size_t count = quota->windows_count;
    TIDE_ASSERT(TIDE_GROW(quota->windows, quota->windows_capacity, count + 1, UINT32_MAX));
    quota->windows[count] = box_window_new(limit->window_ms, limit->step_ms);
    quota->windows_count++;
    TIDE_ASSERT(tide_map_put(&quota->numbers, key, (uint32_t)count));
    return quota->windows[count];
}

static struct user_state *user_state(struct box_quota *quota, uint32_t number)
{
    TIDE_ASSERT(number <= BOX_USERS_MAX);
    if (number >= quota->users_capacity)
        TIDE_ASSERT(
            TIDE_GROW(quota->users, quota->users_capacity, (size_t)number + 1, BOX_USERS_MAX + 1));
    return &quota->users[number];
}

/* ---- charging ---- */

uint32_t box_quota_units(const struct box_quota *quota, const struct box_method *method)
{
    return quota->rules == BOX_QUOTA_LEGACY ? method->units_legacy : method->units;
}

static bool counts(const struct box_limit *limit, const struct box_call *call)
{
    return (limit->meter & call->method->meter) != 0;
}

bool box_quota_counts_units(const struct box_call *call)
{
    for (size_t i = 0; i < call->service->limits_count; i++)
        if (call->service->limits[i].counted == BOX_UNITS &&
            counts(&call->service->limits[i], call))
            return true;
    return false;
}

/* The windows that one call is charged to: first all are asked, then all are charged, so
 * that a refused call leaves no trace (BQTA2). */
struct charges {
    struct {
        const struct row *row;
        box_window *window;
        uint32_t amount;
    } list[ROWS_MAX];
    size_t count;
};

/* `load` is computed once, when a limit asks for it; 0: not yet. */
static uint32_t amount_of(const struct box_quota *quota, const struct box_limit *limit,
                          const struct box_call *call, uint32_t *load)
{
    if (limit->counted == BOX_UNITS)
        return box_quota_units(quota, call->method);
    if (limit->counted != BOX_LOAD)
        return 1;
    if (*load == 0)
        *load = call->service->load(call);
    return *load;
}

/* A limit per subject does not concern calls without one. */
static void charges_of(struct charges *charges, struct box_quota *quota,
                       const struct box_call *call)
{
    tide_text name = TIDE_TEXT_NONE;
    uint32_t load = 0;
    const uint32_t user = call->user == NULL ? 0 : call->user->number;
    const uint32_t subject =
        call->service->subject == NULL ? 0 : call->service->subject(call, &name);
    charges->count = 0;
    for (size_t i = 0; i < quota->rows_count; i++) {
        const struct row *row = &quota->rows[i];
        const uint8_t whose = row->limit->whose;
        if (row->service != call->service || row->limit->window_ms == 0 ||
            !counts(row->limit, call) || ((whose & BOX_PER_SUBJECT) != 0 && subject == 0))
            continue;
        const uint32_t who = (whose & BOX_PER_SUBJECT) != 0 ? subject
                             : (whose & BOX_PER_USER) != 0  ? user
                                                            : 0;
        charges->list[charges->count].row = row;
        charges->list[charges->count].window =
            window_of(quota, i, who, (whose & BOX_PER_PROJECT) != 0 ? call->project : 0);
        charges->list[charges->count++].amount = amount_of(quota, row->limit, call, &load);
    }
}

uint32_t box_quota_used(struct box_quota *quota, const struct box_call *call,
                        const struct box_limit *limit)
{
    const uint32_t user = call->user == NULL ? 0 : call->user->number;
    for (size_t i = 0; i < quota->rows_count; i++)
        if (quota->rows[i].limit == limit) {
            box_window *window =
                window_of(quota, i, (limit->whose & BOX_PER_USER) != 0 ? user : 0,
                          (limit->whose & BOX_PER_PROJECT) != 0 ? call->project : 0);
            return (uint32_t)box_window_count(window, call->now_ms);
        }
    return 0;
}

/* The limit that enforces the user's "Retry after" time; NULL: none. */
static const struct box_limit *binding(const struct box_call *call)
{
    for (size_t i = 0; call->user != NULL && i < call->service->limits_count; i++)
        if (call->service->limits[i].binds && counts(&call->service->limits[i], call))
            return &call->service->limits[i];
    return NULL;
}

/* Whether the user calls before its "Retry after" time. */
static bool too_early(struct box_quota *quota, const struct box_call *call,
                      uint64_t *retry_at_ms_out)
{
    struct user_state *state = user_state(quota, call->user->number);
    if (call->now_ms >= state->told_until_ms) {
        state->told_moves = 0;
        return false;
    }
    /* On a clock that runs faster the same way through the network takes longer. */
    uint64_t grace_ms = box_cloud_clock(call->cloud)->speed_permille;
    if (grace_ms < TOLD_GRACE_MS)
        grace_ms = TOLD_GRACE_MS;
    if (call->now_ms >= state->told_from_ms + grace_ms) {
        box_call_violation(call, "early-retry", TIDE_TEXT_NONE);
        state->told_moves++;
        state->told_until_ms += (uint64_t)state->told_moves * TOLD_STEP_MS;
        state->told_from_ms = call->now_ms; /* the user learns the new time now */
    }
    *retry_at_ms_out = state->told_until_ms;
    return quota->rules != BOX_QUOTA_OFF;
}

/* The first limit that the call would cross; `retry_at_ms_out`: when it crosses none. */
static const struct box_limit *crossed(const struct charges *charges, uint64_t now_ms,
                                       uint64_t *retry_at_ms_out)
{
    const struct box_limit *over = NULL;
    for (size_t i = 0; i < charges->count; i++) {
        box_window *window = charges->list[i].window;
        const struct row *row = charges->list[i].row;
        const uint32_t amount = charges->list[i].amount;
        if (box_window_count(window, now_ms) + amount <= row->value)
            continue;
        const uint64_t fits_at_ms = box_window_fits_at(window, now_ms, row->value, amount);
        if (fits_at_ms > *retry_at_ms_out)
            *retry_at_ms_out = fits_at_ms;
        if (over == NULL)
            over = row->limit;
    }
    return over;
}

const struct box_limit *box_quota_charge(struct box_quota *quota, const struct box_call *call,
                                         uint64_t *retry_at_ms_out)
{
    if (call->method->meter == BOX_METER_NONE)
        return NULL;
    const struct box_limit *bound = binding(call);
    if (bound != NULL && too_early(quota, call, retry_at_ms_out))
        return bound;

    struct charges charges;
    charges_of(&charges, quota, call);
    *retry_at_ms_out = 0;
    const struct box_limit *over =
        quota->rules == BOX_QUOTA_OFF ? NULL : crossed(&charges, call->now_ms, retry_at_ms_out);
    for (size_t i = 0; i < charges.count; i++)
        if (over == NULL || charges.list[i].row->limit->refusals_count)
            box_window_add(charges.list[i].window, call->now_ms, charges.list[i].amount);
    return over;
}

void box_quota_told(struct box_quota *quota, const struct box_user *user, uint64_t now_ms,
                    uint64_t until_ms)
{
    struct user_state *state = user_state(quota, user->number);
    if (until_ms > now_ms + TOLD_MAX_MS)
        until_ms = now_ms + TOLD_MAX_MS;
    /* Refused again while waiting: for calls in flight the first time counts. */
    if (state->told_until_ms <= now_ms)
        state->told_from_ms = now_ms;
    if (until_ms > state->told_until_ms)
        state->told_until_ms = until_ms;
}

uint64_t box_quota_told_until(struct box_quota *quota, const struct box_user *user)
{
    return user_state(quota, user->number)->told_until_ms;
}

/* ---- in flight ---- */

/* The service's limit of calls in flight; NULL: the method is in none. */
static const struct row *flight_row(const struct box_quota *quota, const struct box_call *call)
{
    for (size_t i = 0; call->user != NULL && i < quota->rows_count; i++)
        if (quota->rows[i].service == call->service && quota->rows[i].limit->window_ms == 0 &&
            counts(quota->rows[i].limit, call))
            return &quota->rows[i];
    return NULL;
}

bool box_quota_enter(struct box_quota *quota, const struct box_call *call,
                     const struct box_limit **over_out)
{
    const struct row *row = flight_row(quota, call);
    *over_out = NULL;
    if (row == NULL)
        return false;
    struct user_state *state = user_state(quota, call->user->number);
    if (quota->rules != BOX_QUOTA_OFF && state->in_flight >= row->value) {
        *over_out = row->limit;
        return false;
    }
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

/* ---- settings ---- */

static bool has_setting(const struct row *row, const char *setting)
{
    return row->limit->setting != NULL && strcmp(row->limit->setting, setting) == 0;
}

size_t box_quota_settings(const struct box_quota *quota,
                          const char *names_out[BOX_QUOTA_SETTINGS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < quota->rows_count; i++)
        if (quota->rows[i].limit->setting != NULL)
            names_out[count++] = quota->rows[i].limit->setting;
    return count;
}

box_quota_rules box_quota_rules_now(const struct box_quota *quota)
{
    return quota->rules;
}

void box_quota_set_rules(struct box_quota *quota, box_quota_rules rules)
{
    if (rules == quota->rules)
        return;
    quota->rules = rules;
    for (size_t i = 0; i < quota->rows_count; i++)
        if (quota->rows[i].limit->limit_legacy != 0)
            quota->rows[i].value = limit_of(quota->rows[i].limit, rules);
}

bool box_quota_set(struct box_quota *quota, const char *setting, uint32_t limit)
{
    bool found = false;
    for (size_t i = 0; i < quota->rows_count; i++)
        if (has_setting(&quota->rows[i], setting)) {
            quota->rows[i].value = limit;
            found = true;
        }
    return found;
}

uint32_t box_quota_get(const struct box_quota *quota, const char *setting)
{
    for (size_t i = 0; i < quota->rows_count; i++)
        if (has_setting(&quota->rows[i], setting))
            return quota->rows[i].value;
    return 0;
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
    json_t *object = json_pack("{s:s}", "rules", rules_names[quota->rules]);
    TIDE_ASSERT(object != NULL);
    for (size_t i = 0; i < quota->rows_count; i++)
        if (quota->rows[i].limit->setting != NULL)
            json_object_set_new(object, quota->rows[i].limit->setting,
                                json_integer(quota->rows[i].value));
    return object;
}

/* ---- times ---- */

void box_time_text(uint64_t unix_ms, char text_out[BOX_TIME_TEXT_BYTES])
{
    /* The last year that fits four digits; a later time means never. */
    const uint64_t last_ms = 253402300799999u;
    const uint64_t shown_ms = unix_ms > last_ms ? last_ms : unix_ms;
    const time_t seconds = (time_t)(shown_ms / 1000);
    struct tm tm;
    TIDE_ASSERT(gmtime_r(&seconds, &tm) != NULL);
    char date[24];
    TIDE_ASSERT(strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm) > 0);
    (void)snprintf(text_out, BOX_TIME_TEXT_BYTES, "%s.%03uZ", date, (unsigned)(shown_ms % 1000));
}
