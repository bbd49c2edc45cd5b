#include "core/alerts/alerts_record.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = TIDE_ALERT_STEPS, SLOTS = TIDE_ALERT_SLOTS, BITS = TIDE_ALERT_WORD_BITS };
enum { WORDS = TIDE_ALERT_WORDS, PPM = 1000000, PERCENT = 100 };

struct tide_alerts_settings tide_alerts_defaults(void)
{
    return (struct tide_alerts_settings){
        .bad_window_items = TIDE_ALERT_ITEMS_MAX,
        .bad_items_min = 1000,
        .bad_warn_ppm = 2000,
        .bad_critical_ppm = 10000,
        .bad_hour_ms = 60 * 60 * 1000,
        .bad_hour_critical = 200,
        .metadata_budget_bytes = 64 << 20,
        .metadata_warn_ppm = 500000,
        .metadata_critical_ppm = 800000,
        .throttled_window_ms = 10 * 60 * 1000,
        .throttled_calls_min = 100,
        .throttled_warn_ppm = 50000,
        .queue_warn_ms = 60 * 1000,
        .queue_clear_ms = 10 * 1000,
        .keep_percent = 80,
        .notify_every_ms = 60 * 60 * 1000,
        .notify_still_ms = 24 * 60 * 60 * 1000,
    };
}

static bool settings_valid(const struct tide_alerts_settings *settings)
{
    return settings->bad_window_items > 0 && settings->bad_window_items <= TIDE_ALERT_ITEMS_MAX &&
           settings->bad_items_min > 0 && settings->bad_items_min <= settings->bad_window_items &&
           settings->bad_hour_ms >= STEPS && settings->metadata_budget_bytes > 0 &&
           settings->throttled_window_ms >= STEPS && settings->throttled_calls_min > 0 &&
           settings->keep_percent > 0 && settings->keep_percent <= PERCENT;
}

tide_status tide_alerts_new(const struct tide_alerts_settings *settings, tide_mem *mem,
                            tide_alerts **alerts_out)
{
    TIDE_ASSERT(mem != NULL);
    if (!settings_valid(settings))
        return TIDE_INVALID;
    tide_alerts *alerts = tide_mem_new(mem, sizeof *alerts);
    if (alerts == NULL)
        return TIDE_NO_MEMORY;
    alerts->settings = *settings;
    alerts->mem = mem;
    tide_map_init(&alerts->places, mem);
    *alerts_out = alerts;
    return TIDE_OK;
}

void tide_alerts_free(tide_alerts *alerts)
{
    if (alerts == NULL)
        return;
    tide_map_done(&alerts->places);
    tide_mem_free(alerts->mem, alerts->records, alerts->capacity * sizeof *alerts->records);
    tide_mem_free(alerts->mem, alerts, sizeof *alerts);
}

static uint64_t step_ms_of(uint64_t window_ms)
{
    return window_ms / STEPS;
}

/* Advances to the step of `now_ms` and empties the slots it passes. */
static void series_advance(struct tide_alert_series *series, uint64_t window_ms, uint64_t now_ms)
{
    uint64_t step = now_ms / step_ms_of(window_ms);
    if (step <= series->step)
        return;
    uint64_t passed = step - series->step;
    if (passed >= SLOTS) {
        memset(series->slots, 0, sizeof series->slots);
        series->sum = 0;
    } else {
        for (uint64_t i = 1; i <= passed; i++) {
            uint32_t *slot = &series->slots[(series->step + i) % SLOTS];
            series->sum -= *slot;
            *slot = 0;
        }
    }
    series->step = step;
}

static void series_add(struct tide_alert_series *series, uint64_t count)
{
    uint32_t *slot = &series->slots[series->step % SLOTS];
    uint32_t room = UINT32_MAX - *slot;
    uint32_t added = count > room ? room : (uint32_t)count;
    *slot += added;
    series->sum += added;
}

static void bits_push(struct tide_alert_record *record, uint32_t window_items, uint64_t count,
                      bool bad)
{
    if (count > window_items)
        count = window_items;
    for (; count > 0; count--) {
        uint64_t *word = &record->bits[record->bits_at / BITS];
        uint64_t bit = (uint64_t)1 << (record->bits_at % BITS);
        record->bits_bad -= (*word & bit) != 0;
        record->bits_bad += bad;
        *word = bad ? *word | bit : *word & ~bit;
        record->bits_at = (record->bits_at + 1) % window_items;
        record->bits_seen += record->bits_seen < window_items;
    }
}

tide_status tide_alerts_record(tide_alerts *alerts, uint64_t account,
                               struct tide_alert_record **record_out)
{
    uint32_t at = 0;
    TIDE_ASSERT(account != 0);
    if (!tide_map_get(&alerts->places, account, &at)) {
        if (alerts->count >= TIDE_ACCOUNTS_MAX)
            return TIDE_FULL;
        if (!tide_map_reserve(&alerts->places, alerts->count + 1) ||
            !TIDE_GROW_IN(alerts->mem, alerts->records, alerts->capacity, alerts->count + 1,
                          TIDE_ACCOUNTS_MAX))
            return TIDE_NO_MEMORY;
        at = (uint32_t)alerts->count++;
        alerts->records[at] =
            (struct tide_alert_record){.account = account, .settings = alerts->settings};
        bool put = tide_map_put(&alerts->places, account, at);
        TIDE_ASSERT(put); /* room was reserved */
    }
    *record_out = &alerts->records[at];
    return TIDE_OK;
}

/* What a condition measures and its thresholds.  A level is met if value / out_of reaches
 * threshold / scale, or exceeds it where the spec says "more than". */
struct measure {
    uint64_t value, out_of;
    uint64_t warn, critical; /* 0: never */
    uint64_t scale;
    bool more_than;
};

static uint64_t at_least(uint64_t value, uint64_t minimum)
{
    return value > minimum ? value : minimum;
}

static uint64_t waited_ms(const tide_alerts *alerts, const struct tide_alert_record *record)
{
    return record->waits_since_ms == 0 ? 0 : alerts->now_ms - record->waits_since_ms;
}

/* A queue that moves again keeps its alert for queue_clear_ms: another wait may follow. */
static bool queue_lingers(const tide_alerts *alerts, const struct tide_alert_record *record)
{
    return record->levels[TIDE_ALERT_QUEUE] != TIDE_LEVEL_NONE &&
           alerts->now_ms - record->full_ms < record->settings.queue_clear_ms;
}

static struct measure measure_queue(const tide_alerts *alerts,
                                    const struct tide_alert_record *record)
{
    return (struct measure){.value = queue_lingers(alerts, record) ? record->full_waited_ms
                                                                   : waited_ms(alerts, record),
                            .out_of = 1,
                            .warn = record->settings.queue_warn_ms,
                            .scale = 1};
}

static void queue_advance(const tide_alerts *alerts, struct tide_alert_record *record)
{
    const uint64_t waited = waited_ms(alerts, record);
    if (waited == 0 || waited < record->settings.queue_warn_ms)
        return;
    record->full_ms = alerts->now_ms;
    record->full_waited_ms = waited;
}

static struct measure measure_of(const tide_alerts *alerts, const struct tide_alert_record *record,
                                 enum tide_condition condition)
{
    const struct tide_alerts_settings *settings = &record->settings;
    switch (condition) {
    case TIDE_ALERT_BAD_RATE:
        return (struct measure){.value = record->bits_bad,
                                .out_of = at_least(record->bits_seen, settings->bad_items_min),
                                .warn = settings->bad_warn_ppm,
                                .critical = settings->bad_critical_ppm,
                                .scale = PPM};
    case TIDE_ALERT_BAD_HOUR:
        return (struct measure){.value = record->bad.sum,
                                .out_of = 1,
                                .critical = settings->bad_hour_critical,
                                .scale = 1,
                                .more_than = true};
    case TIDE_ALERT_METADATA:
        return (struct measure){.value = record->metadata_bytes,
                                .out_of = settings->metadata_budget_bytes,
                                .warn = settings->metadata_warn_ppm,
                                .critical = settings->metadata_critical_ppm,
                                .scale = PPM};
    case TIDE_ALERT_THROTTLED:
        return (struct measure){.value = record->refused.sum,
                                .out_of =
                                    at_least(record->calls.sum, settings->throttled_calls_min),
                                .warn = settings->throttled_warn_ppm,
                                .scale = PPM,
                                .more_than = true};
    case TIDE_ALERT_QUEUE:
    case TIDE_CONDITIONS:
        break;
    }
    return measure_queue(alerts, record);
}

static bool measure_meets(const struct measure *measure, uint64_t threshold, uint32_t percent)
{
    if (threshold == 0)
        return false;
    unsigned __int128 have = (unsigned __int128)measure->value * measure->scale * PERCENT;
    unsigned __int128 want = (unsigned __int128)threshold * measure->out_of * percent;
    return measure->more_than ? have > want : have >= want;
}

static enum tide_level measure_level(const struct measure *measure, uint32_t percent)
{
    if (measure_meets(measure, measure->critical, percent))
        return TIDE_LEVEL_CRITICAL;
    return measure_meets(measure, measure->warn, percent) ? TIDE_LEVEL_WARN : TIDE_LEVEL_NONE;
}

static void level_set(tide_alerts *alerts, struct tide_alert_record *record,
                      enum tide_condition condition, enum tide_level level)
{
    if (record->levels[condition] == level)
        return;
    bool was_untold = record->told[condition] != record->levels[condition];
    if (record->levels[condition] == TIDE_LEVEL_NONE)
        record->since_ms[condition] = alerts->now_ms;
    if (level == TIDE_LEVEL_NONE)
        record->since_ms[condition] = 0;
    record->levels[condition] = level;
    bool is_untold = record->told[condition] != level;
    alerts->untold += is_untold;
    alerts->untold -= was_untold;
}

void tide_alerts_told_set(tide_alerts *alerts, struct tide_alert_record *record,
                          enum tide_condition condition, enum tide_level told)
{
    alerts->untold -= record->told[condition] != record->levels[condition];
    record->told[condition] = told;
    alerts->untold += told != record->levels[condition];
}

void tide_alerts_judge(tide_alerts *alerts, struct tide_alert_record *record)
{
    const struct tide_alerts_settings *settings = &record->settings;
    queue_advance(alerts, record);
    series_advance(&record->bad, settings->bad_hour_ms, alerts->now_ms);
    series_advance(&record->calls, settings->throttled_window_ms, alerts->now_ms);
    series_advance(&record->refused, settings->throttled_window_ms, alerts->now_ms);
    for (int i = 0; i < TIDE_CONDITIONS; i++) {
        enum tide_condition condition = (enum tide_condition)i;
        struct measure measure = measure_of(alerts, record, condition);
        enum tide_level raised = measure_level(&measure, PERCENT);
        enum tide_level kept = measure_level(&measure, settings->keep_percent);
        enum tide_level level = record->levels[condition];
        if (raised > level)
            level = raised;
        else if (kept < level)
            level = kept;
        level_set(alerts, record, condition, level);
    }
}

/* The record of an account, brought up to date. */
static tide_status record_now(tide_alerts *alerts, uint64_t account, uint64_t now_ms,
                              struct tide_alert_record **record_out)
{
    tide_status rc = tide_alerts_record(alerts, account, record_out);
    if (rc != TIDE_OK)
        return rc;
    alerts->now_ms = at_least(now_ms, alerts->now_ms); /* a past time: use the last */
    tide_alerts_judge(alerts, *record_out);
    return TIDE_OK;
}

tide_status tide_alerts_items(tide_alerts *alerts, uint64_t account, uint64_t good, uint64_t bad,
                              uint64_t now_ms)
{
    struct tide_alert_record *record = NULL;
    tide_status rc = record_now(alerts, account, now_ms, &record);
    if (rc != TIDE_OK)
        return rc;
    bits_push(record, record->settings.bad_window_items, good, false);
    bits_push(record, record->settings.bad_window_items, bad, true);
    series_add(&record->bad, bad);
    tide_alerts_judge(alerts, record);
    return TIDE_OK;
}

tide_status tide_alerts_calls(tide_alerts *alerts, uint64_t account, uint32_t calls,
                              uint32_t refused, uint64_t now_ms)
{
    TIDE_ASSERT(refused <= calls);
    struct tide_alert_record *record = NULL;
    tide_status rc = record_now(alerts, account, now_ms, &record);
    if (rc != TIDE_OK)
        return rc;
    series_add(&record->calls, calls);
    series_add(&record->refused, refused);
    tide_alerts_judge(alerts, record);
    return TIDE_OK;
}

tide_status tide_alerts_metadata(tide_alerts *alerts, uint64_t account, uint64_t bytes,
                                 uint64_t now_ms)
{
    struct tide_alert_record *record = NULL;
    tide_status rc = record_now(alerts, account, now_ms, &record);
    if (rc != TIDE_OK)
        return rc;
    record->metadata_bytes = bytes;
    tide_alerts_judge(alerts, record);
    return TIDE_OK;
}

tide_status tide_alerts_queue(tide_alerts *alerts, uint64_t account, const char *queue,
                              uint64_t since_ms, uint64_t now_ms)
{
    struct tide_alert_record *record = NULL;
    tide_status rc = record_now(alerts, account, now_ms, &record);
    if (rc != TIDE_OK)
        return rc;
    if (since_ms != 0)
        record->queue = queue;
    record->waits_since_ms = since_ms < alerts->now_ms ? since_ms : alerts->now_ms;
    tide_alerts_judge(alerts, record);
    return TIDE_OK;
}

void tide_alerts_tick(tide_alerts *alerts, uint64_t now_ms)
{
    alerts->now_ms = at_least(now_ms, alerts->now_ms);
    for (size_t i = 0; i < alerts->count; i++)
        tide_alerts_judge(alerts, &alerts->records[i]);
}

static void record_set(struct tide_alert_record *record,
                       const struct tide_alerts_settings *settings)
{
    const struct tide_alerts_settings old = record->settings;
    record->settings = *settings;
    if (old.bad_window_items != settings->bad_window_items) {
        memset(record->bits, 0, sizeof record->bits);
        record->bits_at = record->bits_seen = record->bits_bad = 0;
    }
    if (old.bad_hour_ms != settings->bad_hour_ms)
        record->bad = (struct tide_alert_series){0};
    if (old.throttled_window_ms != settings->throttled_window_ms)
        record->calls = record->refused = (struct tide_alert_series){0};
}

tide_status tide_alerts_set(tide_alerts *alerts, const struct tide_alerts_settings *settings)
{
    if (!settings_valid(settings))
        return TIDE_INVALID;
    alerts->settings = *settings;
    for (size_t i = 0; i < alerts->count; i++)
        if (!alerts->records[i].own)
            record_set(&alerts->records[i], settings);
    tide_alerts_tick(alerts, alerts->now_ms);
    return TIDE_OK;
}

tide_status tide_alerts_set_own(tide_alerts *alerts, uint64_t account,
                                const struct tide_alerts_settings *settings)
{
    uint32_t at = 0;
    struct tide_alert_record *record = NULL;
    if (settings == NULL && !tide_map_get(&alerts->places, account, &at))
        return TIDE_OK;
    if (settings != NULL && !settings_valid(settings))
        return TIDE_INVALID;
    TIDE_TRY(tide_alerts_record(alerts, account, &record));
    record->own = settings != NULL;
    record_set(record, record->own ? settings : &alerts->settings);
    tide_alerts_judge(alerts, record);
    return TIDE_OK;
}

void tide_alerts_forget(tide_alerts *alerts, uint64_t account)
{
    uint32_t at = 0;
    if (account == 0 || !tide_map_get(&alerts->places, account, &at))
        return;
    struct tide_alert_record *record = &alerts->records[at];
    for (int i = 0; i < TIDE_CONDITIONS; i++)
        alerts->untold -= record->told[i] != record->levels[i];
    (void)tide_map_remove(&alerts->places, account);
    alerts->count--;
    if (at < alerts->count) {
        *record = alerts->records[alerts->count];
        bool put = tide_map_put(&alerts->places, record->account, at);
        TIDE_ASSERT(put); /* the key is there */
    }
}

static uint64_t threshold_of(const struct measure *measure, enum tide_level level)
{
    return level == TIDE_LEVEL_CRITICAL ? measure->critical
           : measure->warn > 0          ? measure->warn
                                        : measure->critical;
}

static struct tide_alert alert_of(const tide_alerts *alerts, const struct tide_alert_record *record,
                                  enum tide_condition condition)
{
    struct measure measure = measure_of(alerts, record, condition);
    uint64_t out_of = measure.scale == PPM ? measure.out_of : 0;
    if (condition == TIDE_ALERT_BAD_RATE) /* the real count, not the minimum of the sample */
        out_of = record->bits_seen;
    if (condition == TIDE_ALERT_THROTTLED)
        out_of = record->calls.sum;
    return (struct tide_alert){
        .account = record->account,
        .condition = condition,
        .level = record->levels[condition],
        .since_ms = record->since_ms[condition],
        .value = measure.value,
        .out_of = out_of,
        .threshold = threshold_of(&measure, record->levels[condition]),
        .queue = condition == TIDE_ALERT_QUEUE && record->queue != NULL ? record->queue : "",
    };
}

bool tide_alerts_next(tide_alerts *alerts, struct tide_alert *alert_out,
                      enum tide_level *before_out)
{
    if (alerts->untold == 0)
        return false;
    for (size_t at = 0;; at++) { /* ends: there is one (ALE4) */
        TIDE_ASSERT(at < alerts->count);
        struct tide_alert_record *record = &alerts->records[at];
        for (int i = 0; i < TIDE_CONDITIONS; i++) {
            if (record->told[i] == record->levels[i])
                continue;
            *alert_out = alert_of(alerts, record, (enum tide_condition)i);
            *before_out = record->told[i];
            record->told[i] = record->levels[i];
            alerts->untold--;
            return true;
        }
    }
}

static uint64_t sum_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t step_after(const struct tide_alert_series *series, uint64_t window_ms)
{
    uint64_t at_ms = 0;
    return __builtin_mul_overflow(series->step + 1, step_ms_of(window_ms), &at_ms) ? UINT64_MAX
                                                                                   : at_ms;
}

/* When a wait becomes too long, or when an alert about an ended wait may be lowered. */
static uint64_t queue_wake_at_ms(const tide_alerts *alerts, const struct tide_alert_record *record)
{
    const struct tide_alerts_settings *settings = &record->settings;
    if (queue_lingers(alerts, record))
        return sum_saturated(record->full_ms, settings->queue_clear_ms);
    if (record->waits_since_ms == 0 || settings->queue_warn_ms == 0)
        return UINT64_MAX;
    return sum_saturated(record->waits_since_ms, settings->queue_warn_ms);
}

/* Events can raise a condition at any time.  Only passing time lowers the windows, raises a
 * queue in which a caller waits, and lowers a queue that moves again. */
uint64_t tide_alerts_wake_at_ms(const tide_alerts *alerts)
{
    uint64_t wake_ms = alerts->untold > 0 ? 0 : UINT64_MAX;
    for (size_t i = 0; i < alerts->count; i++) {
        const struct tide_alert_record *record = &alerts->records[i];
        const struct tide_alerts_settings *settings = &record->settings;
        wake_ms = earlier(wake_ms, queue_wake_at_ms(alerts, record));
        if (record->levels[TIDE_ALERT_BAD_HOUR] != TIDE_LEVEL_NONE)
            wake_ms = earlier(wake_ms, step_after(&record->bad, settings->bad_hour_ms));
        if (record->levels[TIDE_ALERT_THROTTLED] != TIDE_LEVEL_NONE)
            wake_ms = earlier(wake_ms, step_after(&record->calls, settings->throttled_window_ms));
    }
    return wake_ms;
}

bool tide_alerts_each(const tide_alerts *alerts, size_t *cursor_io, struct tide_alert *alert_out)
{
    for (; *cursor_io < alerts->count * TIDE_CONDITIONS; (*cursor_io)++) {
        const struct tide_alert_record *record = &alerts->records[*cursor_io / TIDE_CONDITIONS];
        enum tide_condition condition = (enum tide_condition)(*cursor_io % TIDE_CONDITIONS);
        if (record->levels[condition] == TIDE_LEVEL_NONE)
            continue;
        *alert_out = alert_of(alerts, record, condition);
        (*cursor_io)++;
        return true;
    }
    return false;
}

bool tide_alerts_may_notify(const struct tide_alerts_settings *settings, uint64_t now_unix_ms,
                            uint64_t *last_unix_ms_io)
{
    if (*last_unix_ms_io > now_unix_ms) {
        TIDE_SEEN("alerts: the clock jumped back behind the last mail");
        *last_unix_ms_io = now_unix_ms;
        return false;
    }
    if (*last_unix_ms_io != 0 && now_unix_ms - *last_unix_ms_io < settings->notify_every_ms)
        return false;
    *last_unix_ms_io = now_unix_ms;
    return true;
}

static const char *const condition_names[TIDE_CONDITIONS] = {"bad_rate", "bad_hour", "metadata",
                                                             "throttled", "queue"};

const char *tide_condition_name(enum tide_condition condition)
{
    TIDE_ASSERT(condition < TIDE_CONDITIONS);
    return condition_names[condition];
}

bool tide_condition_parse(const char *name, enum tide_condition *condition_out)
{
    for (int i = 0; i < TIDE_CONDITIONS; i++)
        if (strcmp(name, condition_names[i]) == 0) {
            *condition_out = (enum tide_condition)i;
            return true;
        }
    return false;
}

const char *tide_level_name(enum tide_level level)
{
    static const char *const names[] = {"none", "warn", "critical"};
    TIDE_ASSERT(level <= TIDE_LEVEL_CRITICAL);
    return names[level];
}

size_t tide_alert_print(const struct tide_alert *alert, char *text_out, size_t text_bytes)
{
    TIDE_ASSERT(text_bytes > 0);
    double share = alert->out_of > 0 ? 100.0 * (double)alert->value / (double)alert->out_of : 0.0;
    int wanted = 0;
    switch (alert->condition) {
    case TIDE_ALERT_BAD_RATE:
        wanted = snprintf(text_out, text_bytes,
                          "%" PRIu64 " of the last %" PRIu64 " items are bad (%.2f %%)",
                          alert->value, alert->out_of, share);
        break;
    case TIDE_ALERT_BAD_HOUR:
        wanted = snprintf(text_out, text_bytes,
                          "%" PRIu64 " items went bad within an hour (more than %" PRIu64 ")",
                          alert->value, alert->threshold);
        break;
    case TIDE_ALERT_METADATA:
        wanted = snprintf(text_out, text_bytes,
                          "metadata uses %" PRIu64 " of %" PRIu64 " bytes (%.1f %%)", alert->value,
                          alert->out_of, share);
        break;
    case TIDE_ALERT_THROTTLED:
        wanted = snprintf(text_out, text_bytes,
                          "the provider refused %" PRIu64 " of %" PRIu64 " calls (%.1f %%)",
                          alert->value, alert->out_of, share);
        break;
    case TIDE_ALERT_QUEUE:
    case TIDE_CONDITIONS:
        wanted = snprintf(text_out, text_bytes,
                          "the queue of %s is full and has not moved for %" PRIu64 " s",
                          alert->queue[0] == '\0' ? "jobs" : alert->queue, alert->value / 1000);
        break;
    }
    TIDE_ASSERT(wanted >= 0);
    return (size_t)wanted < text_bytes ? (size_t)wanted : text_bytes - 1;
}

static void series_check(const struct tide_alert_series *series)
{
    uint64_t sum = 0;
    for (int i = 0; i < SLOTS; i++)
        sum += series->slots[i];
    TIDE_ASSERT(sum == series->sum); /* ALE2 */
}

void tide_alerts_check(const tide_alerts *alerts)
{
    size_t untold = 0;
    TIDE_ASSERT(alerts->places.count == alerts->count);
    for (size_t at = 0; at < alerts->count; at++) {
        const struct tide_alert_record *record = &alerts->records[at];
        uint32_t found = UINT32_MAX, bad = 0;
        TIDE_ASSERT(tide_map_get(&alerts->places, record->account, &found)); /* ALE1 */
        TIDE_ASSERT(found == at);
        for (int i = 0; i < WORDS; i++)
            bad += (uint32_t)__builtin_popcountll(record->bits[i]);
        TIDE_ASSERT(bad == record->bits_bad); /* ALE2 */
        TIDE_ASSERT(record->bits_bad <= record->bits_seen);
        series_check(&record->bad);
        series_check(&record->calls);
        series_check(&record->refused);
        for (int i = 0; i < TIDE_CONDITIONS; i++) {
            if (record->levels[i] == TIDE_LEVEL_NONE) /* ALE3 */
                TIDE_ASSERT(record->since_ms[i] == 0);
            untold += record->told[i] != record->levels[i];
        }
    }
    TIDE_ASSERT(untold == alerts->untold); /* ALE4 */
}
