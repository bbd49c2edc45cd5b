/* Settings and what they become: every row of the table has an effect, exactly
 * the one listed here, and no value that is accepted breaks a part. */
#include "base/limits.h"
#include "core/governor/governor.h"
#include "core/tracker.h"
#include "engine/tuning.h"
#include "support/ok.h"
#include "support/test.h"
#include "unit/core/referee.h"
#include "support/scale.h"
#include "support/heap.h"

enum { PROVIDERS = 5, FIELDS_MAX = 256 };
static const char *const providers[PROVIDERS] = {"gmail", "console", "onedrive", "chat", "default"};

/* Everything that is made of settings. */
struct parts {
    struct tide_tuning engine;
    struct tide_governor_profile profiles[PROVIDERS];
    struct tide_badness_settings badness;
    struct tide_alerts_settings alerts;
    struct tide_alert_mail mail;
    struct tide_retry_policy retry;
    struct tide_lanes_limits lanes;
    struct tide_tuning_bandwidth bandwidth;
    struct {
        uint64_t units;
        uint32_t window_ms;
    } gmail_project, console_project;
    struct {
        uint64_t poll_active, poll_passive, window, offline, page, cache, hold, quiet;
        char saving[8];
    } reader; /* asks for each where it needs it */
};

static void parts_of(const tide_settings *settings, struct parts *parts)
{
    memset(parts, 0, sizeof *parts);
    parts->engine = tide_tuning_engine(settings);
    for (int i = 0; i < PROVIDERS; i++)
        parts->profiles[i] = tide_tuning_profile(settings, tide_provider_known(providers[i]));
    parts->badness = tide_tuning_badness(settings);
    parts->alerts = tide_tuning_alerts(settings);
    parts->mail = tide_tuning_alert_mail(settings);
    parts->retry = tide_tuning_retry(settings);
    parts->lanes = tide_tuning_lanes(settings, parts->engine.workers);
    tide_tuning_bandwidth(settings, &parts->bandwidth);
    parts->gmail_project.units =
        tide_tuning_shared(settings, tide_provider_known("gmail"), &parts->gmail_project.window_ms);
    parts->console_project.units = tide_tuning_shared(settings, tide_provider_known("console"),
                                                      &parts->console_project.window_ms);
    parts->reader.poll_active = tide_setting_u64(settings, TIDE_SET_READER_POLL_ACTIVE);
    parts->reader.poll_passive = tide_setting_u64(settings, TIDE_SET_READER_POLL_PASSIVE);
    parts->reader.window = tide_setting_u64(settings, TIDE_SET_READER_WINDOW);
    parts->reader.offline = tide_setting_u64(settings, TIDE_SET_READER_OFFLINE);
    parts->reader.page = tide_setting_u64(settings, TIDE_SET_READER_PAGE);
    parts->reader.cache = tide_setting_u64(settings, TIDE_SET_READER_CACHE);
    parts->reader.hold = tide_setting_u64(settings, TIDE_SET_READER_HOLD);
    parts->reader.quiet = tide_setting_u64(settings, TIDE_SET_READER_QUIET);
    (void)snprintf(parts->reader.saving, sizeof parts->reader.saving, "%s",
                   tide_setting_text(settings, TIDE_SET_READER_SAVING));
}

struct field {
    const char *name;
    size_t at, bytes;
};

#define FIELD(part, member)                                                                        \
    {                                                                                              \
#part "." #member, offsetof(struct parts, part.member),                                    \
            sizeof(((struct parts *)0)->part.member)                                               \
    }
#define PROFILE(i, name, member)                                                                   \
    {                                                                                              \
        name "." #member, offsetof(struct parts, profiles[i].member),                              \
            sizeof(((struct parts *)0)->profiles[i].member)                                        \
    }
#define ALL(member)                                                                                \
    PROFILE(0, "gmail", member), PROFILE(1, "console", member), PROFILE(2, "onedrive", member),    \
        PROFILE(3, "chat", member), PROFILE(4, "default", member)

static const struct field fields[] = {
    FIELD(engine, workers),
    FIELD(engine, window_jobs),
    FIELD(engine, refill_below_permille),
    FIELD(engine, refill_to_permille),
    FIELD(engine, retry_after_ms_max),
    FIELD(engine, enqueue_slice),
    FIELD(engine, purge_slice),
    FIELD(engine, write_requests_us_max),
    FIELD(engine, interactive_below_bytes),
    FIELD(engine, small_below_bytes),
    FIELD(engine, large_above_bytes),
    FIELD(engine, purge_after_ms),
    FIELD(engine, purge_every_ms),
    FIELD(engine, disk_free_min_bytes),
    FIELD(engine, purge_priority),
    FIELD(engine, history_priority),
    FIELD(engine, list_priority),
    FIELD(engine, fetch_priority),
    FIELD(engine, console_priority),
    FIELD(engine, attempts_max),
    FIELD(engine, stall_after_ms),
    FIELD(engine, stall_ignored_ms),
    FIELD(engine, stop_grace_ms),
    FIELD(engine, reload_every_ms),
    FIELD(engine, fleet_lease_ms),
    FIELD(engine, fleet_look_ms),
    FIELD(engine, fleet_poll_ms),
    FIELD(gmail_project, units),
    FIELD(gmail_project, window_ms),
    FIELD(console_project, units),
    FIELD(console_project, window_ms),
    FIELD(engine, log_level_given),
    FIELD(engine, ledger_is_shared),
    FIELD(engine, serve_listen),
    FIELD(engine, notices_wanted),
    FIELD(engine, webhook.listen),
    FIELD(engine, webhook.url),
    FIELD(engine, webhook.audience),
    FIELD(engine, webhook.sender),
    FIELD(engine, webhook.keys),
    FIELD(engine, mail_push_topic),
    FIELD(engine, console_workers),
    FIELD(engine, console_batch),
    FIELD(engine, chat_tokens_per_day),
    FIELD(engine, chat_silence_ms),
    FIELD(engine, chat_timeout_ms),
    FIELD(engine, drive_watch),
    FIELD(engine, drive_poll_ms),
    FIELD(engine, drive_rescan_ms),
    FIELD(engine, drive_owed_after_ms),
    FIELD(engine, drive_late_after_ms),
    FIELD(engine, project),
    FIELD(engine, log_level),
    FIELD(engine, archive_guard),
    FIELD(engine, log_file_bytes),
    FIELD(engine, log_files),
    ALL(window_ms),
    ALL(window_units_max),
    ALL(rate_min),
    ALL(rate_start),
    ALL(rate_max),
    ALL(in_flight_max),
    ALL(workers_min),
    ALL(workers_start),
    ALL(workers_max),
    ALL(reserve_permille),
    ALL(share_permille),
    ALL(call_units),
    ALL(healthy_ms),
    ALL(workers_step),
    ALL(rate_step_permille),
    ALL(rate_step_call_permille),
    ALL(cut_permille),
    ALL(latency_max_ms),
    ALL(latency_factor_permille),
    ALL(small_jobs),
    ALL(large_jobs),
    ALL(spend_lease_ms),
    ALL(save_every_ms),
    ALL(stray_ms),
    ALL(learn_bytes_per_day),
    ALL(breaker.failures_max),
    ALL(breaker.pause_ms_first),
    ALL(breaker.pause_ms_max),
    ALL(breaker.pause_ms_soft_max),
    FIELD(badness, attempts_max),
    FIELD(badness, row_max),
    FIELD(badness, window_failed_max),
    FIELD(badness, stalls_min),
    FIELD(badness, stalls_over_ms),
    FIELD(badness, pause_first_ms),
    FIELD(badness, pause_factor_permille),
    FIELD(badness, pause_max_ms),
    FIELD(badness, owed_first_ms),
    FIELD(badness, owed_max_ms),
    FIELD(badness, probe_again_ms),
    FIELD(badness, suspects_max),
    FIELD(alerts, bad_window_items),
    FIELD(alerts, bad_items_min),
    FIELD(alerts, bad_warn_ppm),
    FIELD(alerts, bad_critical_ppm),
    FIELD(alerts, bad_hour_ms),
    FIELD(alerts, bad_hour_critical),
    FIELD(alerts, metadata_budget_bytes),
    FIELD(alerts, metadata_warn_ppm),
    FIELD(alerts, metadata_critical_ppm),
    FIELD(alerts, throttled_window_ms),
    FIELD(alerts, throttled_calls_min),
    FIELD(alerts, throttled_warn_ppm),
    FIELD(alerts, queue_warn_ms),
    FIELD(alerts, queue_clear_ms),
    FIELD(alerts, keep_percent),
    FIELD(alerts, notify_every_ms),
    FIELD(alerts, notify_still_ms),
    FIELD(mail, to),
    FIELD(mail, from),
    FIELD(mail, server),
    FIELD(mail, ca_file),
    FIELD(mail, account),
    FIELD(retry, attempts_max),
    FIELD(retry, pause_first_ms),
    FIELD(retry, pause_factor_permille),
    FIELD(retry, pause_max_ms),
    FIELD(retry, reclaim_attempts),
    FIELD(retry, halves_attempts),
    FIELD(lanes, workers),
    FIELD(lanes, reserved[0]),
    FIELD(lanes, reserved[1]),
    FIELD(bandwidth, rates.down_bytes_per_s),
    FIELD(bandwidth, rates.up_bytes_per_s),
    FIELD(bandwidth, rates.both_bytes_per_s),
    FIELD(bandwidth, spans_count),
    FIELD(bandwidth, spans[0].from_minute),
    FIELD(reader, poll_active),
    FIELD(reader, poll_passive),
    FIELD(reader, window),
    FIELD(reader, offline),
    FIELD(reader, page),
    FIELD(reader, cache),
    FIELD(reader, hold),
    FIELD(reader, quiet),
    FIELD(reader, saving),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* A setting, another value for it, and all that changes then.  "all.x" stands for
 * x of every provider. */
static const struct effect {
    const char *name, *value, *changes;
} effects[] = {
    {"purge.after", "1d", "engine.purge_after_ms"},
    {"purge.every", "2h", "engine.purge_every_ms"},
    {"disk.free_min", "1GiB", "engine.disk_free_min_bytes"},
    {"ledger.transaction_max", "20ms", "engine.write_requests_us_max"},
    {"ledger.enqueue_slice", "100", "engine.enqueue_slice"},
    {"ledger.purge_slice", "100", "engine.purge_slice"},
    {"tracker.window_jobs", "500", "engine.window_jobs"},
    {"tracker.refill_below", "400", "engine.refill_below_permille"},
    {"tracker.refill_to", "900", "engine.refill_to_permille"},
    {"workers.count", "20", "engine.workers lanes.workers"},
    {"workers.reserved_interactive", "3", "lanes.reserved[0]"},
    {"workers.reserved_bulk", "3", "lanes.reserved[1]"},
    {"workers.stop_grace", "1s", "engine.stop_grace_ms"},
    {"fleet.lease", "20s", "engine.fleet_lease_ms"},
    {"fleet.look", "2s", "engine.fleet_look_ms"},
    {"fleet.poll", "2s", "engine.fleet_poll_ms"},
    {"governor.gmail.project_units", "500000", "gmail_project.units"},
    {"governor.console.project_units", "50000", "console_project.units"},
    {"lanes.interactive_below", "1MB", "engine.interactive_below_bytes"},
    {"priority.purge", "9", "engine.purge_priority"},
    {"priority.mail_history", "9", "engine.history_priority"},
    {"priority.mail_list", "9", "engine.list_priority"},
    {"priority.mail_fetch", "9", "engine.fetch_priority"},
    {"priority.console", "9", "engine.console_priority"},
    {"governor.share", "900", "all.share_permille"},
    {"governor.healthy_window", "1s", "all.healthy_ms"},
    {"governor.workers_step", "2", "all.workers_step"},
    {"governor.rate_step", "60", "all.rate_step_permille"},
    {"governor.rate_step_call", "600", "all.rate_step_call_permille"},
    {"governor.cut", "600", "all.cut_permille"},
    {"governor.latency_max", "1s", "all.latency_max_ms"},
    {"governor.latency_factor", "4000", "all.latency_factor_permille"},
    {"governor.spend_lease", "1s", "all.spend_lease_ms"},
    {"governor.save_every", "1s", "all.save_every_ms"},
    {"governor.stray", "1s", "all.stray_ms"},
    {"governor.retry_after_max", "10m", "engine.retry_after_ms_max"},
    {"governor.small_jobs", "50", "all.small_jobs"},
    {"governor.small_below", "2MB", "engine.small_below_bytes"},
    {"governor.large_jobs", "5", "all.large_jobs"},
    {"governor.large_above", "50MB", "engine.large_above_bytes"},
    {"governor.default.workers_start", "6", "gmail.workers_start default.workers_start"},
    {"governor.default.workers_min", "1", "all.workers_min"},
    {"governor.default.workers_max", "16",
     "gmail.workers_max default.workers_max default.in_flight_max"},
    {"governor.default.rate_start", "5", "chat.rate_start default.rate_start"},
    {"governor.default.rate_min", "2", "chat.rate_min default.rate_min"},
    {"governor.default.rate_max", "20", "chat.rate_max default.rate_max"},
    {"governor.gmail.window", "30s", "gmail.window_ms gmail_project.window_ms"},
    {"governor.gmail.window_units", "15000", "gmail.window_units_max"},
    {"governor.gmail.in_flight", "12", "gmail.in_flight_max"},
    {"governor.gmail.reserve", "30", "gmail.reserve_permille"},
    {"governor.console.window", "30s", "console.window_ms console_project.window_ms"},
    {"governor.console.site_units", "2000", "console.window_units_max"},
    {"governor.console.in_flight", "12",
     "console.in_flight_max console.workers_start console.workers_max"},
    {"governor.onedrive.window_units", "1250", "onedrive.window_ms onedrive.window_units_max"},
    {"governor.onedrive.in_flight_start", "9", "onedrive.workers_start"},
    {"governor.onedrive.in_flight_max", "20", "onedrive.in_flight_max onedrive.workers_max"},
    {"governor.chat.in_flight", "5", "chat.in_flight_max chat.workers_start chat.workers_max"},
    {"breaker.failures", "6", "all.breaker.failures_max"},
    {"breaker.pause_first", "2s", "all.breaker.pause_ms_first"},
    {"breaker.pause_max", "1m", "all.breaker.pause_ms_max"},
    {"breaker.pause_soft_max", "9s", "all.breaker.pause_ms_soft_max"},
    {"bandwidth.down", "1MiB", "bandwidth.rates.down_bytes_per_s"},
    {"bandwidth.up", "1MiB", "bandwidth.rates.up_bytes_per_s"},
    {"bandwidth.both", "1MiB", "bandwidth.rates.both_bytes_per_s"},
    {"bandwidth.schedule", "08:00-09:00 full",
     "bandwidth.spans_count bandwidth.spans[0].from_minute"},
    {"bad.owed_failures", "6", "badness.stalls_min"},
    {"bad.owed_over", "1m", "badness.stalls_over_ms"},
    {"bad.systemic_in_a_row", "30", "badness.row_max"},
    {"bad.systemic_share", "400", "badness.window_failed_max"},
    {"alerts.bad_window", "500", "alerts.bad_window_items alerts.bad_items_min"},
    {"alerts.bad_warn", "3", "alerts.bad_warn_ppm"},
    {"alerts.bad_critical", "20", "alerts.bad_critical_ppm"},
    {"alerts.bad_critical_hour", "100", "alerts.bad_hour_critical"},
    {"alerts.throttle_warn", "60", "alerts.throttled_warn_ppm"},
    {"alerts.throttle_window", "1m", "alerts.throttled_window_ms"},
    {"alerts.queue_full_after", "30s", "alerts.queue_warn_ms"},
    {"alerts.metadata_budget", "1MiB", "alerts.metadata_budget_bytes"},
    {"alerts.metadata_warn", "400", "alerts.metadata_warn_ppm"},
    {"alerts.metadata_critical", "900", "alerts.metadata_critical_ppm"},
    {"alerts.drive_owed_after", "2d", "engine.drive_owed_after_ms"},
    {"alerts.drive_late_after", "2d", "engine.drive_late_after_ms"},
    {"alerts.mail.to", "ada@example.com", "mail.to"},
    {"alerts.mail.from", "ada@example.com", "mail.from"},
    {"alerts.mail.server", "smtps://mail.example.com", "mail.server"},
    {"alerts.mail.ca_file", "/etc/ssl/ours.pem", "mail.ca_file"},
    {"alerts.mail.account", "ada@example.com", "mail.account engine.notices_wanted"},
    {"alerts.mail.every", "2h", "alerts.notify_every_ms"},
    {"alerts.mail.still", "2d", "alerts.notify_still_ms"},
    {"stall.after", "1m", "engine.stall_after_ms"},
    {"stall.ignored_max", "30s", "engine.stall_ignored_ms"},
    {"retry.attempts_max", "7", "engine.attempts_max badness.attempts_max retry.attempts_max"},
    {"retry.backoff_start", "2s", "badness.pause_first_ms retry.pause_first_ms"},
    {"retry.backoff_factor", "3000", "badness.pause_factor_permille retry.pause_factor_permille"},
    {"retry.backoff_max", "1m", "badness.pause_max_ms retry.pause_max_ms"},
    {"log.level", "debug", "engine.log_level_given engine.log_level"},
    {"archive.guard", "50", "engine.archive_guard"},
    {"log.file_bytes", "1MiB", "engine.log_file_bytes"},
    {"log.files", "2", "engine.log_files"},
    {"ledger.url", "postgres://host/db", "engine.ledger_is_shared"},
    {"settings.reload_every", "1s", "engine.reload_every_ms"},
    {"serve.listen", "127.0.0.1:0", "engine.serve_listen"},
    {"serve.webhook.listen", "127.0.0.1:0", "engine.webhook.listen"},
    {"serve.webhook.url", "https://mail.example.org", "engine.webhook.url"},
    {"serve.webhook.audience", "https://mail.example.org/webhook/gmail", "engine.webhook.audience"},
    {"serve.webhook.sender", "push@p.iam.gserviceaccount.com", "engine.webhook.sender"},
    {"drive.watch", "no", "engine.drive_watch"},
    {"drive.poll", "5m", "engine.drive_poll_ms"},
    {"drive.rescan", "1d", "engine.drive_rescan_ms"},
    {"mail.push_topic", "projects/p/topics/mail", "engine.mail_push_topic"},
    {"serve.webhook.keys", "https://example.org/certs", "engine.webhook.keys"},
    {"console.workers", "5", "engine.console_workers"},
    {"console.batch", "10", "engine.console_batch"},
    {"chat.tokens_per_day", "5000", "engine.chat_tokens_per_day"},
    {"chat.silence", "1m", "engine.chat_silence_ms"},
    {"chat.timeout", "5m", "engine.chat_timeout_ms"},
    {"governor.project", "other", "engine.project"},
    {"reader.poll_active", "9s", "reader.poll_active"},
    {"reader.poll_passive", "9m", "reader.poll_passive"},
    {"reader.saving", "always", "reader.saving"},
    {"reader.window", "9d", "reader.window"},
    {"reader.offline", "9d", "reader.offline"},
    {"reader.page", "9", "reader.page"},
    {"reader.cache", "99MiB", "reader.cache"},
    {"reader.hold", "9s", "reader.hold"},
    {"reader.quiet", "9s", "reader.quiet"},
};
enum { EFFECTS = sizeof effects / sizeof effects[0] };

static tide_settings *settings_with(const char *name, const char *value)
{
    tide_settings *settings = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    char assignment[400];
    OK(tide_settings_new(tide_mem_heap(), &settings));
    if (name == NULL)
        return settings;
    (void)snprintf(assignment, sizeof assignment, "%s=%s", name, value);
    if (tide_settings_add_flag(settings, assignment, &err) != TIDE_OK ||
        tide_settings_check(settings, &err) != TIDE_OK)
        fail_msg("%s: %s", assignment, err.text);
    return settings;
}

static bool listed(const char *changes, const char *field)
{
    size_t provider = strcspn(field, ".");
    for (const char *at = changes; *at != '\0';) {
        size_t bytes = strcspn(at, " ");
        if (strlen(field) == bytes && memcmp(at, field, bytes) == 0)
            return true;
        if (strncmp(at, "all.", 4) == 0 && strlen(field + provider) == bytes - 3 &&
            memcmp(at + 3, field + provider, bytes - 3) == 0)
            return true;
        at += bytes + (at[bytes] == ' ');
    }
    return false;
}

static void assert_effect(size_t effect, const char *changes, const struct parts *before,
                          const struct parts *after)
{
    size_t changed = 0;
    for (size_t f = 0; f < FIELDS; f++) {
        bool differs = memcmp((const char *)before + fields[f].at,
                              (const char *)after + fields[f].at, fields[f].bytes) != 0;
        changed += differs;
        if (differs != listed(changes, fields[f].name))
            fail_msg("%s = %s: %s %s", effects[effect].name, effects[effect].value, fields[f].name,
                     differs ? "changed" : "did not change");
    }
    /* A listed name that is no field is found out by this. */
    assert_true(changed > 0 || changes[0] == '\0');
}

TEST(each_setting_changes_its_own_fields_and_no_others)
{
    struct parts before, after;
    tide_settings *settings = settings_with(NULL, NULL);
    parts_of(settings, &before);
    tide_settings_free(settings);
    for (size_t i = 0; i < EFFECTS; i++) {
        settings = settings_with(effects[i].name, effects[i].value);
        parts_of(settings, &after);
        tide_settings_free(settings);
        assert_effect(i, effects[i].changes, &before, &after);
    }
}

/* E11.2: whatever can be set for one account has its whole effect for that account, and none for
 * another; all else is refused. */
TEST(a_setting_of_one_account_changes_what_counts_for_it_alone)
{
    static const char account[] = "ada@example.com";
    struct parts common, before, after;
    char assignment[400];
    size_t refused = 0;
    for (size_t i = 0; i < EFFECTS; i++) {
        tide_error err = {TIDE_OK, 0, ""};
        tide_setting setting = TIDE_SETTINGS_COUNT;
        assert_true(tide_setting_find(tide_text_of(effects[i].name), &setting));
        /* The quota of a project needs a project. */
        tide_settings *settings = settings_with("accounts.ada@example.com.governor.project", "p");
        parts_of(tide_settings_of(settings, account), &before);
        (void)snprintf(assignment, sizeof assignment, "accounts.%s.%s=%s", account, effects[i].name,
                       effects[i].value);
        const tide_status rc = tide_settings_add_flag(settings, assignment, &err);
        if (!tide_setting_info(setting)->own) {
            assert_int_equal(rc, TIDE_INVALID);
            assert_non_null(strstr(err.text, "for all accounts together"));
            refused++;
            tide_settings_free(settings);
            continue;
        }
        if (rc != TIDE_OK || tide_settings_check(settings, &err) != TIDE_OK)
            fail_msg("%s: %s", assignment, err.text);
        parts_of(tide_settings_of(settings, account), &after);
        assert_effect(i, effects[i].changes, &before, &after);
        parts_of(settings, &common);
        tide_settings *defaults = settings_with(NULL, NULL);
        parts_of(defaults, &after);
        assert_effect(i, "", &common, &after);
        parts_of(tide_settings_of(settings, "bob@example.com"), &after);
        assert_effect(i, "", &common, &after);
        tide_settings_free(defaults);
        tide_settings_free(settings);
    }
    assert_true(refused > 0 && refused < EFFECTS);
}

TEST(no_setting_is_without_an_effect)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        int rows = 0;
        for (size_t e = 0; e < EFFECTS; e++)
            rows += strcmp(effects[e].name, tide_setting_info((tide_setting)i)->name) == 0;
        if (rows != 1)
            fail_msg("%s has %d rows in this test", tide_setting_info((tide_setting)i)->name, rows);
    }
    assert_int_equal(EFFECTS, TIDE_SETTINGS_COUNT);
}

/* Without a published quota (0) there is no window, and the pace is that of the
 * answers: thousands of calls go out in the first second. */
TEST(a_gmail_without_a_known_limit_is_asked_at_its_own_pace)
{
    tide_settings *settings = settings_with("governor.gmail.window_units", "0");
    struct tide_governor_profile profile =
        tide_tuning_profile(settings, tide_provider_known("gmail"));
    tide_settings_free(settings);
    tide_governor *governor = NULL;
    tide_rng rng = tide_rng_seeded(1);
    OK(tide_governor_new(&profile, 1000, tide_mem_heap(), &governor));
    assert_int_equal(tide_governor_save_at_ms(governor), UINT64_MAX);
    int sent = 0;
    for (uint64_t now_ms = 1000; now_ms < 2000; now_ms++) {
        for (int i = 0; i < 8; i++) { /* eight at once, each answered within the millisecond */
            uint64_t again_ms = 0;
            if (tide_governor_charge(governor, now_ms, 4, 20, &again_ms) != TIDE_OK)
                continue;
            sent++;
            struct tide_answer answer = {.units = 20, .status = TIDE_OK, .http = 200};
            tide_governor_answered(governor, now_ms, &answer, &rng);
        }
    }
    assert_true(sent >= 4000);
    assert_true(tide_governor_check(governor, 2000));
    tide_governor_free(governor);
}

/* The pace below a limit is not that of a server without one. */
/* A model that takes 2 s for an answer and had taken one for another is not overloaded (J19): calls at once
 * would be cut, and mail wait for nothing. */
TEST(a_model_may_take_its_time)
{
    tide_settings *settings = settings_with(NULL, NULL);
    const struct tide_governor_profile chat =
        tide_tuning_profile(settings, tide_provider_known("chat"));
    assert_int_equal(chat.latency_max_ms, 120000);
    assert_int_equal(tide_tuning_profile(settings, tide_provider_known("gmail")).latency_max_ms,
                     1200);
    tide_settings_free(settings);
}

TEST(a_limit_that_went_away_does_not_slow_the_next_start)
{
    tide_governor *before = NULL, *after = NULL;
    tide_settings *settings = settings_with(NULL, NULL);
    struct tide_governor_profile profile =
        tide_tuning_profile(settings, tide_provider_known("gmail"));
    tide_settings_free(settings);
    OK(tide_governor_new(&profile, 1000, tide_mem_heap(), &before));
    struct tide_governor_saved saved;
    tide_governor_save(before, 1000, 1700000000000, &saved);
    assert_true(saved.rate_milli <= 100000); /* five messages a second */

    settings = settings_with("governor.gmail.window_units", "0");
    profile = tide_tuning_profile(settings, tide_provider_known("gmail"));
    tide_settings_free(settings);
    OK(tide_governor_new(&profile, 1000, tide_mem_heap(), &after));
    OK(tide_governor_restore(after, &saved, 1000, 1700000001000));
    struct tide_governor_view view;
    tide_governor_view(after, 1000, &view);
    assert_true(view.rate == profile.rate_start);

    /* What it saves itself it takes up again. */
    tide_governor_save(after, 1000, 1700000000000, &saved);
    saved.rate_milli /= 2;
    tide_governor_free(after);
    OK(tide_governor_new(&profile, 1000, tide_mem_heap(), &after));
    OK(tide_governor_restore(after, &saved, 1000, 1700000001000));
    tide_governor_view(after, 1000, &view);
    assert_true(view.rate == profile.rate_start / 2);
    tide_governor_free(before);
    tide_governor_free(after);
}

TEST(a_limit_too_small_for_one_call_is_refused)
{
    const struct {
        const char *value;
        tide_status expected;
    } cases[] = {{"0", TIDE_OK}, {"1", TIDE_INVALID}, {"399", TIDE_INVALID}, {"400", TIDE_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_settings *settings = settings_with(NULL, NULL);
        tide_error err = {TIDE_OK, 0, ""};
        const char *text = textf("governor.gmail.window_units=%s", cases[i].value);
        OK(tide_settings_add_flag(settings, text, &err));
        assert_int_equal(tide_settings_check(settings, &err), cases[i].expected);
        if (cases[i].expected != TIDE_OK)
            assert_non_null(strstr(err.text, "at least 400"));
        tide_settings_free(settings);
    }
}

/* ---- validity ------------------------------------------------------------------- */

/* The core's own checks; NULL: it takes all of it. */
static const char *refused_by_core(const tide_settings *settings)
{
    static struct parts parts;
    parts_of(settings, &parts);
    tide_mem *mem = tide_mem_heap();
    for (int i = 0; i < PROVIDERS; i++) {
        tide_governor *governor = NULL;
        uint64_t again_ms = 0;
        if (tide_governor_new(&parts.profiles[i], 1000, mem, &governor) != TIDE_OK)
            return providers[i];
        uint32_t units = parts.profiles[i].call_units > 0 ? parts.profiles[i].call_units : 1;
        bool fits = tide_governor_charge(governor, 1000, 4, units, &again_ms) != TIDE_INVALID;
        bool good = fits && tide_governor_check(governor, 1000) &&
                    tide_governor_limits_set(governor, &parts.profiles[i]) == TIDE_OK;
        tide_governor_free(governor);
        if (!good)
            return providers[i];
    }
    tide_badness *badness = NULL;
    tide_alerts *alerts = NULL;
    tide_lanes *lanes = NULL;
    tide_tracker *tracker = NULL;
    tide_bandwidth bandwidth;
    tide_bandwidth_init(&bandwidth, 1000);
    const struct tide_tuning *engine = &parts.engine;
    const char *why = NULL;
    if (tide_badness_new(&parts.badness, mem, &badness) != TIDE_OK ||
        tide_badness_set(badness, &parts.badness) != TIDE_OK)
        why = "badness";
    else if (tide_alerts_new(&parts.alerts, mem, &alerts) != TIDE_OK)
        why = "alerts";
    else if (tide_retry_check(&parts.retry, NULL) != TIDE_OK)
        why = "retry";
    else if (tide_lanes_new(&parts.lanes, 100, mem, &lanes) != TIDE_OK)
        why = "lanes";
    else if (tide_tracker_new(engine->window_jobs, mem, &tracker) != TIDE_OK ||
             tide_tracker_refill_set(tracker, engine->refill_below_permille,
                                     engine->refill_to_permille) != TIDE_OK)
        why = "tracker";
    else if (tide_bandwidth_set(&bandwidth, &parts.bandwidth.rates, parts.bandwidth.spans,
                                parts.bandwidth.spans_count) != TIDE_OK)
        why = "bandwidth";
    else if (engine->workers == 0 || engine->workers > TIDE_WORKERS_MAX ||
             engine->purge_slice == 0 || engine->purge_slice > TIDE_PURGE_SLICE ||
             engine->purge_priority == 0 || engine->attempts_max == 0 ||
             engine->write_requests_us_max == 0)
        why = "engine";
    tide_badness_free(badness);
    tide_alerts_free(alerts);
    tide_lanes_free(lanes);
    tide_tracker_free(tracker);
    return why;
}

static void assignment_of(tide_setting setting, uint64_t number, char text[100])
{
    const struct tide_setting_info *info = tide_setting_info(setting);
    const char *unit = info->type == TIDE_TYPE_DURATION ? "ms"
                       : info->type == TIDE_TYPE_SIZE   ? "B"
                                                        : "";
    (void)snprintf(text, 100, "%s=%" PRIu64 "%s", info->name, number, unit);
}

/* Values that contradict other settings are refused before they get here (SET5). */
TEST(the_least_and_the_greatest_value_of_each_are_valid)
{
    int tried = 0;
    for (int i = 0; i < 2 * TIDE_SETTINGS_COUNT; i++) {
        const struct tide_setting_info *info = tide_setting_info((tide_setting)(i / 2));
        if (info->text != NULL)
            continue;
        tide_settings *settings = settings_with(NULL, NULL);
        tide_error err = {TIDE_OK, 0, ""};
        char text[100];
        assignment_of((tide_setting)(i / 2), i % 2 == 0 ? info->min : info->max, text);
        if (tide_settings_add_flag(settings, text, &err) != TIDE_OK)
            fail_msg("%s: %s", text, err.text);
        if (tide_settings_check(settings, &err) == TIDE_OK) {
            tried++;
            const char *why = refused_by_core(settings);
            if (why != NULL)
                fail_msg("%s is accepted but refused by %s", text, why);
        }
        tide_settings_free(settings);
    }
    assert_true(tried > TIDE_SETTINGS_COUNT);
}

/* Up to six settings at once, at their bounds or anywhere between. */
TEST(settings_that_agree_make_valid_parts)
{
    const int rounds = (int)scaled(4000);
    int tried = 0;
    for (int seed = 0; seed < rounds; seed++) {
        tide_rng rng = tide_rng_seeded((uint64_t)seed);
        tide_settings *settings = settings_with(NULL, NULL);
        tide_error err = {TIDE_OK, 0, ""};
        for (uint64_t n = 1 + tide_rng_below(&rng, 6); n > 0; n--) {
            tide_setting setting = (tide_setting)tide_rng_below(&rng, TIDE_SETTINGS_COUNT);
            const struct tide_setting_info *info = tide_setting_info(setting);
            if (info->text != NULL)
                continue;
            uint64_t span = info->max - info->min;
            uint64_t number = info->min + tide_rng_below(&rng, span + 1);
            switch (tide_rng_below(&rng, 4)) {
            case 0:
                number = info->min;
                break;
            case 1:
                number = info->max;
                break;
            case 2: /* near the low end, where products vanish */
                number = info->min + tide_rng_below(&rng, span < 20 ? span + 1 : 20);
                break;
            default:
                break;
            }
            char text[100];
            assignment_of(setting, number, text);
            OK(tide_settings_add_flag(settings, text, &err));
        }
        if (tide_settings_check(settings, &err) == TIDE_OK) {
            tried++;
            const char *why = refused_by_core(settings);
            if (why != NULL) {
                for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
                    char value[TIDE_SETTING_TEXT_BYTES];
                    tide_setting_print(settings, (tide_setting)i, value);
                    if (tide_setting_layer(settings, (tide_setting)i) != TIDE_ORIGIN_DEFAULT)
                        print_message("%s=%s\n", tide_setting_info((tide_setting)i)->name, value);
                }
                fail_msg("seed %d: refused by %s", seed, why);
            }
        }
        tide_settings_free(settings);
    }
    assert_true(tried > rounds / 10);
}

/* ---- defaults --------------------------------------------------------------------- */

TEST(the_defaults_of_the_table_are_those_of_the_core)
{
    static struct parts table, core;
    tide_settings *settings = settings_with(NULL, NULL);
    parts_of(settings, &table);
    tide_settings_free(settings);
    core = table;
    core.badness = tide_badness_defaults();
    core.alerts = tide_alerts_defaults();
    core.retry = tide_retry_defaults();
    tide_breaker breaker;
    tide_breaker_init(&breaker, &(struct tide_breaker_rules){0});
    for (int i = 0; i < PROVIDERS; i++) {
        struct tide_governor_profile named = tide_provider_known(providers[i])->profile;
        struct tide_governor_profile tuned = table.profiles[i];
        named.breaker = breaker.rules;
        OK(tide_profile_complete(&named, &core.profiles[i]));
        OK(tide_profile_complete(&tuned, &table.profiles[i]));
    }
    for (size_t f = 0; f < FIELDS; f++)
        if (memcmp((char *)&table + fields[f].at, (char *)&core + fields[f].at, fields[f].bytes) !=
            0)
            fail_msg("%s: the table and the core differ", fields[f].name);
}

/* E4.3: the default settings leave no more than 3 % of a quota unused. */
TEST(the_default_share_uses_97_percent_of_the_quota)
{
    tide_settings *settings = settings_with(NULL, NULL);
    struct tide_governor_profile gmail =
        tide_tuning_profile(settings, tide_provider_known("gmail"));
    tide_settings_free(settings);
    const struct referee_options hour = {
        .seed = 1, .duration_ms = 3600000, .limit_units = 6000, .call_units = 20, .level = 4};
    struct referee_report report = referee_run(&gmail, &hour);
    print_message("share %.4f, refused %" PRIu64 "\n", report.share, (uint64_t)report.refused);
    assert_true(report.share >= 0.97);
    assert_int_equal(report.crossed, 0);
}
