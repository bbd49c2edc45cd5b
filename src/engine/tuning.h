/* tuning.h - turns settings into the parameters of the engine's parts (E11.1).
 *
 * The only place that knows both sides: a setting's name and unit, and the field
 * it becomes.  Pure: it reads settings, keeps nothing, and never fails, because
 * the bounds of the table (settings/list.h) are such that the core accepts every
 * value that the table accepts.  It does not know when settings change
 * (reload.h does).
 *
 * Invariants (tests/unit/engine/tuning_test.c, for every row of the table):
 *   TUN1  a setting changed alone changes its own fields and no others, and at least one.
 *   TUN2  the least and the greatest value of each give valid parts.
 *   TUN3  the defaults of the table are the defaults of the core.
 */
#ifndef TIDE_ENGINE_TUNING_H
#define TIDE_ENGINE_TUNING_H

#include "base/log.h"
#include "core/alerts/alerts.h"
#include "core/badness.h"
#include "core/governor/bandwidth.h"
#include "core/lanes.h"
#include "core/retry.h"
#include "engine/providers.h"
#include "settings/settings.h"
#include "tidemark_inside.h"

/* Numbers that the engine itself reads, outside of any part of the core. */
struct tide_tuning {
    uint32_t workers;
    uint32_t window_jobs;
    uint32_t refill_below_permille, refill_to_permille;
    uint32_t enqueue_slice, purge_slice; /* jobs */
    uint64_t retry_after_ms_max;         /* what a server may ask for in a header */
    uint64_t write_requests_us_max;      /* of one transaction, for callers' write requests */
    uint64_t interactive_below_bytes;
    uint64_t small_below_bytes, large_above_bytes;
    uint64_t purge_after_ms, purge_every_ms;
    uint64_t disk_free_min_bytes; /* for systems that write many files besides the ledger */
    uint8_t purge_priority;
    uint8_t history_priority, list_priority, fetch_priority, console_priority; /* E3.4 */
    uint16_t attempts_max; /* of a kind that names none */
    uint32_t stall_after_ms;
    uint64_t stall_ignored_ms;
    uint64_t stop_grace_ms;
    uint64_t reload_every_ms;
    uint64_t fleet_lease_ms, fleet_look_ms, fleet_poll_ms;
    bool log_level_given; /* a user set it: it overrides the program's */
    tide_log_level log_level;
    uint64_t archive_guard;  /* for the command that archives mail */
    uint64_t log_file_bytes; /* for programs that keep the log in files */
    uint32_t log_files;
    bool ledger_is_shared; /* for commands: ledger.url names one */
    char serve_listen[32]; /* for `tidemark serve`, as the next */
    struct {
        char listen[32], url[256], audience[256], sender[256], keys[256];
    } webhook;
    char mail_push_topic[256];                                      /* for the mail system */
    uint32_t console_workers, console_batch;                        /* for the console system */
    uint64_t chat_tokens_per_day, chat_silence_ms, chat_timeout_ms; /* for chat models */
    bool drive_watch; /* for the drive system, as the next */
    uint64_t drive_poll_ms, drive_rescan_ms;
    uint64_t drive_owed_after_ms, drive_late_after_ms; /* for its alerts */
    char project[64];    /* of the account at its provider (engine/accounts/limits.c) */
    bool notices_wanted; /* the settings say where mail about alerts goes */
};
struct tide_tuning tide_tuning_engine(const tide_settings *settings);

/* The numbers of an account at that provider, with the settings that concern it. */
struct tide_governor_profile tide_tuning_profile(const tide_settings *settings,
                                                 const struct tide_provider_limits *limits);
/* What all accounts of the provider share: units in any window; 0: none, also where one account
 * has no limit (E4.1). */
uint64_t tide_tuning_shared(const tide_settings *settings,
                            const struct tide_provider_limits *limits, uint32_t *window_ms_out);
struct tide_badness_settings tide_tuning_badness(const tide_settings *settings);
struct tide_alerts_settings tide_tuning_alerts(const tide_settings *settings);
/* For the program, which sends the mail. */
struct tide_alert_mail tide_tuning_alert_mail(const tide_settings *settings);
struct tide_retry_policy tide_tuning_retry(const tide_settings *settings);
/* The priority that the settings give to the kind of that name; 0: none. */
uint8_t tide_tuning_priority(const struct tide_tuning *tuning, const char *kind);
/* Places for so many workers.  Where the settings reserve all of them or more: one per lane, or
 * none with fewer than three workers (E3.1). */
struct tide_lanes_limits tide_tuning_lanes(const tide_settings *settings, uint32_t workers);

struct tide_tuning_bandwidth {
    struct tide_bandwidth_rates rates;
    struct tide_bandwidth_span spans[TIDE_SETTING_WINDOWS_MAX];
    unsigned spans_count;
};
void tide_tuning_bandwidth(const tide_settings *settings, struct tide_tuning_bandwidth *out);

#endif
