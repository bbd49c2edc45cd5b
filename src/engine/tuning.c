/* tuning.c - turns settings into the numbers that the engine and the core use (tuning.h). */
#include "engine/tuning.h"

#include "base/check.h"
#include "base/limits.h"

#include <stdio.h>
#include <string.h>

#define U32(id) tide_setting_u32(settings, TIDE_SET_##id)
#define U64(id) tide_setting_u64(settings, TIDE_SET_##id)
#define TEXT(field, id)                                                                            \
    (void)snprintf(tuning.field, sizeof tuning.field, "%s",                                        \
                   tide_setting_text(settings, TIDE_SET_##id))

_Static_assert((int)TIDE_SETTING_TEXT_BYTES <= (int)TIDE_ALERT_MAIL_TEXT_BYTES,
               "every text of the settings fits");
_Static_assert((int)TIDE_SETTING_WINDOWS_MAX <= (int)TIDE_BANDWIDTH_SPANS_MAX,
               "every schedule that is accepted fits");

static bool is_set(const tide_settings *settings, tide_setting setting)
{
    return tide_setting_text(settings, setting)[0] != '\0';
}

struct tide_tuning tide_tuning_engine(const tide_settings *settings)
{
    struct tide_tuning tuning = {
        .workers = U32(WORKERS_COUNT),
        .window_jobs = U32(TRACKER_WINDOW_JOBS),
        .refill_below_permille = U32(TRACKER_REFILL_BELOW),
        .refill_to_permille = U32(TRACKER_REFILL_TO),
        .retry_after_ms_max = U64(GOVERNOR_RETRY_AFTER_MAX),
        .enqueue_slice = U32(LEDGER_ENQUEUE_SLICE),
        .purge_slice = U32(LEDGER_PURGE_SLICE),
        /* Two fifths of a transaction: ends, claims and the disk need the rest. */
        .write_requests_us_max = U64(LEDGER_TRANSACTION_MAX) * 400,
        .interactive_below_bytes = U64(LANES_INTERACTIVE_BELOW),
        .small_below_bytes = U64(GOVERNOR_SMALL_BELOW),
        .large_above_bytes = U64(GOVERNOR_LARGE_ABOVE),
        .purge_after_ms = U64(PURGE_AFTER),
        .purge_every_ms = U64(PURGE_EVERY),
        .disk_free_min_bytes = U64(DISK_FREE_MIN),
        .purge_priority = (uint8_t)U32(PRIORITY_PURGE),
        .history_priority = (uint8_t)U32(PRIORITY_MAIL_HISTORY),
        .list_priority = (uint8_t)U32(PRIORITY_MAIL_LIST),
        .fetch_priority = (uint8_t)U32(PRIORITY_MAIL_FETCH),
        .console_priority = (uint8_t)U32(PRIORITY_CONSOLE),
        .attempts_max = (uint16_t)U32(RETRY_ATTEMPTS_MAX),
        .stall_after_ms = U32(STALL_AFTER),
        .stall_ignored_ms = U64(STALL_IGNORED_MAX),
        .stop_grace_ms = U64(WORKERS_STOP_GRACE),
        .fleet_lease_ms = U64(FLEET_LEASE),
        .fleet_look_ms = U64(FLEET_LOOK),
        .fleet_poll_ms = U64(FLEET_POLL),
        .reload_every_ms = U64(SETTINGS_RELOAD_EVERY),
        .archive_guard = U64(ARCHIVE_GUARD),
        .console_workers = U32(CONSOLE_WORKERS),
        .console_batch = U32(CONSOLE_BATCH),
        .chat_tokens_per_day = U64(CHAT_TOKENS_PER_DAY),
        .chat_silence_ms = U64(CHAT_SILENCE),
        .chat_timeout_ms = U64(CHAT_TIMEOUT),
        .drive_watch = U32(DRIVE_WATCH) != 0,
        .drive_poll_ms = U64(DRIVE_POLL),
        .drive_rescan_ms = U64(DRIVE_RESCAN),
        .drive_owed_after_ms = U64(ALERTS_DRIVE_OWED_AFTER),
        .drive_late_after_ms = U64(ALERTS_DRIVE_LATE_AFTER),
        .log_file_bytes = U64(LOG_FILE_BYTES),
        .log_files = U32(LOG_FILES),
        .ledger_is_shared = is_set(settings, TIDE_SET_LEDGER_URL),
        .notices_wanted = is_set(settings, TIDE_SET_ALERTS_MAIL_ACCOUNT) ||
                          (is_set(settings, TIDE_SET_ALERTS_MAIL_TO) &&
                           is_set(settings, TIDE_SET_ALERTS_MAIL_SERVER)),
        .log_level_given = tide_setting_layer(settings, TIDE_SET_LOG_LEVEL) != TIDE_ORIGIN_DEFAULT,
    };
    bool known = tide_log_level_parse(tide_text_of(tide_setting_text(settings, TIDE_SET_LOG_LEVEL)),
                                      &tuning.log_level);
    TIDE_ASSERT(known); /* the table's choices are these names */
    TEXT(serve_listen, SERVE_LISTEN);
    TEXT(webhook.listen, SERVE_WEBHOOK_LISTEN);
    TEXT(webhook.url, SERVE_WEBHOOK_URL);
    TEXT(webhook.audience, SERVE_WEBHOOK_AUDIENCE);
    TEXT(webhook.sender, SERVE_WEBHOOK_SENDER);
    TEXT(webhook.keys, SERVE_WEBHOOK_KEYS);
    TEXT(mail_push_topic, MAIL_PUSH_TOPIC);
    TEXT(project, GOVERNOR_PROJECT);
    return tuning;
}

/* ---- governors (E4) ---------------------------------------------------------- */

enum { UNLIMITED_CALLS_PER_S_START = 5000, UNLIMITED_CALLS_PER_S_MAX = 20000 };

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* A provider without a published quota is called as fast as it answers: the calls in flight
 * limit the pace, and a refusal halves it (E4.2). */
static void profile_unlimited(struct tide_governor_profile *profile)
{
    profile->window_ms = 0;
    profile->window_units_max = 0;
    profile->rate_start = UNLIMITED_CALLS_PER_S_START * (double)profile->call_units;
    profile->rate_max = UNLIMITED_CALLS_PER_S_MAX * (double)profile->call_units;
}

static void profile_setting(struct tide_governor_profile *profile, const tide_settings *settings,
                            const struct tide_provider_setting *row)
{
    void *field = (char *)profile + row->offset;
    switch (row->type) {
    case TIDE_LIMIT_NONE:
        break;
    case TIDE_LIMIT_U32:
        *(uint32_t *)field = tide_setting_u32(settings, row->setting);
        break;
    case TIDE_LIMIT_U64:
        *(uint64_t *)field = tide_setting_u64(settings, row->setting);
        break;
    case TIDE_LIMIT_RATE:
        *(double *)field = tide_setting_u32(settings, row->setting);
        break;
    }
}

/* What the settings say of every provider; the provider's own number of workers goes first. */
static void profile_general(struct tide_governor_profile *profile, const tide_settings *settings)
{
    profile->workers_min = U32(GOVERNOR_DEFAULT_WORKERS_MIN);
    if (profile->workers_max == 0)
        profile->workers_max = U32(GOVERNOR_DEFAULT_WORKERS_MAX);
    if (profile->workers_start == 0)
        profile->workers_start = U32(GOVERNOR_DEFAULT_WORKERS_START);
    profile->share_permille = U32(GOVERNOR_SHARE);
    profile->healthy_ms = U32(GOVERNOR_HEALTHY_WINDOW);
    profile->workers_step = U32(GOVERNOR_WORKERS_STEP);
    profile->rate_step_permille = U32(GOVERNOR_RATE_STEP);
    profile->rate_step_call_permille = U32(GOVERNOR_RATE_STEP_CALL);
    profile->cut_permille = U32(GOVERNOR_CUT);
    profile->latency_max_ms = U32(GOVERNOR_LATENCY_MAX);
    profile->latency_factor_permille = U32(GOVERNOR_LATENCY_FACTOR);
    profile->small_jobs = U32(GOVERNOR_SMALL_JOBS);
    profile->large_jobs = U32(GOVERNOR_LARGE_JOBS);
    profile->spend_lease_ms = U32(GOVERNOR_SPEND_LEASE);
    profile->save_every_ms = U32(GOVERNOR_SAVE_EVERY);
    profile->stray_ms = U32(GOVERNOR_STRAY);
    profile->breaker = (struct tide_breaker_rules){
        .failures_max = U32(BREAKER_FAILURES),
        .pause_ms_first = U32(BREAKER_PAUSE_FIRST),
        .pause_ms_max = U32(BREAKER_PAUSE_MAX),
        .pause_ms_soft_max = U32(BREAKER_PAUSE_SOFT_MAX),
    };
}

/* Without the rule for a window of no units. */
static struct tide_governor_profile tuned(const tide_settings *settings,
                                          const struct tide_provider_limits *limits)
{
    struct tide_governor_profile profile = limits->profile;
    profile_general(&profile, settings);
    for (size_t i = 0; i < TIDE_PROVIDER_SETTINGS_MAX; i++)
        profile_setting(&profile, settings, &limits->settings[i]);
    if (limits->profile.window_ms == 0 && profile.window_units_max > 0)
        profile.window_ms = TIDE_MS_MINUTE;
    profile.workers_start = smaller(profile.workers_start, profile.workers_max);
    profile.workers_min = smaller(profile.workers_min, profile.workers_start);
    if (limits->batch_parts > 1)
        profile.latency_max_ms *= limits->batch_parts;
    if (limits->latency_times > 1)
        profile.latency_max_ms *= limits->latency_times;
    return profile;
}

static bool is_unlimited(const struct tide_provider_limits *limits,
                         const struct tide_governor_profile *profile)
{
    return limits->profile.window_ms > 0 && profile->window_units_max == 0;
}

struct tide_governor_profile tide_tuning_profile(const tide_settings *settings,
                                                 const struct tide_provider_limits *limits)
{
    struct tide_governor_profile profile = tuned(settings, limits);
    if (is_unlimited(limits, &profile))
        profile_unlimited(&profile);
    return profile;
}

uint64_t tide_tuning_shared(const tide_settings *settings,
                            const struct tide_provider_limits *limits, uint32_t *window_ms_out)
{
    const struct tide_governor_profile profile = tuned(settings, limits);
    *window_ms_out = limits->shared_window_ms > 0 ? limits->shared_window_ms : profile.window_ms;
    if (is_unlimited(limits, &profile))
        return 0;
    return limits->shared_by_setting ? tide_setting_u64(settings, limits->shared_setting)
                                     : limits->shared_units;
}

/* ---- endings, bad items, alerts (E6, E7) ----------------------------------------- */

struct tide_retry_policy tide_tuning_retry(const tide_settings *settings)
{
    struct tide_retry_policy policy = tide_retry_defaults();
    policy.attempts_max = U32(RETRY_ATTEMPTS_MAX);
    policy.pause_first_ms = U64(RETRY_BACKOFF_START);
    policy.pause_factor_permille = U32(RETRY_BACKOFF_FACTOR);
    policy.pause_max_ms = U64(RETRY_BACKOFF_MAX);
    if (policy.halves_attempts >= policy.attempts_max)
        policy.halves_attempts = policy.attempts_max - 1;
    return policy;
}

struct tide_badness_settings tide_tuning_badness(const tide_settings *settings)
{
    struct tide_badness_settings badness = tide_badness_defaults();
    badness.attempts_max = U32(RETRY_ATTEMPTS_MAX);
    badness.pause_first_ms = U64(RETRY_BACKOFF_START);
    badness.pause_factor_permille = U32(RETRY_BACKOFF_FACTOR);
    badness.pause_max_ms = U64(RETRY_BACKOFF_MAX);
    badness.row_max = U32(BAD_SYSTEMIC_IN_A_ROW);
    badness.window_failed_max = U32(BAD_SYSTEMIC_SHARE) * TIDE_BADNESS_WINDOW / 1000;
    badness.stalls_min = U32(BAD_OWED_FAILURES);
    badness.stalls_over_ms = U64(BAD_OWED_OVER);
    return badness;
}

struct tide_alerts_settings tide_tuning_alerts(const tide_settings *settings)
{
    struct tide_alerts_settings alerts = tide_alerts_defaults();
    alerts.bad_window_items = U32(ALERTS_BAD_WINDOW);
    if (alerts.bad_items_min > alerts.bad_window_items)
        alerts.bad_items_min = alerts.bad_window_items;
    alerts.bad_warn_ppm = U32(ALERTS_BAD_WARN) * 1000;
    alerts.bad_critical_ppm = U32(ALERTS_BAD_CRITICAL) * 1000;
    alerts.bad_hour_critical = U32(ALERTS_BAD_CRITICAL_HOUR);
    alerts.throttled_warn_ppm = U32(ALERTS_THROTTLE_WARN) * 1000;
    alerts.throttled_window_ms = U64(ALERTS_THROTTLE_WINDOW);
    alerts.queue_warn_ms = U64(ALERTS_QUEUE_FULL_AFTER);
    alerts.metadata_budget_bytes = U64(ALERTS_METADATA_BUDGET);
    alerts.metadata_warn_ppm = U32(ALERTS_METADATA_WARN) * 1000;
    alerts.metadata_critical_ppm = U32(ALERTS_METADATA_CRITICAL) * 1000;
    alerts.notify_every_ms = U64(ALERTS_MAIL_EVERY);
    alerts.notify_still_ms = U64(ALERTS_MAIL_STILL);
    return alerts;
}

static void text_copy(const tide_settings *settings, tide_setting setting,
                      char out[TIDE_ALERT_MAIL_TEXT_BYTES])
{
    (void)snprintf(out, TIDE_ALERT_MAIL_TEXT_BYTES, "%s", tide_setting_text(settings, setting));
}

struct tide_alert_mail tide_tuning_alert_mail(const tide_settings *settings)
{
    struct tide_alert_mail mail = {.to = ""};
    text_copy(settings, TIDE_SET_ALERTS_MAIL_TO, mail.to);
    text_copy(settings, TIDE_SET_ALERTS_MAIL_FROM, mail.from);
    text_copy(settings, TIDE_SET_ALERTS_MAIL_SERVER, mail.server);
    text_copy(settings, TIDE_SET_ALERTS_MAIL_CA_FILE, mail.ca_file);
    text_copy(settings, TIDE_SET_ALERTS_MAIL_ACCOUNT, mail.account);
    return mail;
}

/* ---- lanes, bandwidth (E3.1, E4.7) --------------------------------------------------- */

uint8_t tide_tuning_priority(const struct tide_tuning *tuning, const char *kind)
{
    const struct {
        const char *kind;
        uint8_t priority;
    } known[] = {{"mail.history", tuning->history_priority},
                 {"mail.list", tuning->list_priority},
                 {"mail.fetch", tuning->fetch_priority},
                 {"console.page", tuning->console_priority}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].kind, kind) == 0)
            return known[i].priority;
    return 0;
}

struct tide_lanes_limits tide_tuning_lanes(const tide_settings *settings, uint32_t workers)
{
    struct tide_lanes_limits limits = {
        .workers = workers,
        .reserved = {U32(WORKERS_RESERVED_INTERACTIVE), U32(WORKERS_RESERVED_BULK)}};
    if (limits.reserved[0] + limits.reserved[1] >= workers)
        limits.reserved[0] = limits.reserved[1] = workers >= 3 ? 1 : 0;
    return limits;
}

void tide_tuning_bandwidth(const tide_settings *settings, struct tide_tuning_bandwidth *out)
{
    struct tide_setting_window windows[TIDE_SETTING_WINDOWS_MAX];
    size_t count = tide_setting_windows(settings, TIDE_SET_BANDWIDTH_SCHEDULE, windows);
    memset(out, 0, sizeof *out);
    out->rates =
        (struct tide_bandwidth_rates){U64(BANDWIDTH_DOWN), U64(BANDWIDTH_UP), U64(BANDWIDTH_BOTH)};
    for (size_t i = 0; i < count; i++) {
        const struct tide_setting_window *window = &windows[i];
        out->spans[out->spans_count++] = (struct tide_bandwidth_span){
            window->days,
            window->from_minute,
            window->to_minute,
            {window->down_bytes_per_s, window->up_bytes_per_s, window->both_bytes_per_s}};
    }
}
