/* list.h - the one table of settings (E11.1).
 *
 * Every number of the engine's rules that a user may tune has one row here
 * and is defined nowhere else.  The comment above each group and behind each row
 * names the requirement; `meaning` is printed by `config list|get` and names none.
 * Numbers that are promises about our own speed (memory of the window, CPU while
 * idle, time to replace a worker) are tested, not set.
 *
 *   N(ID, name, type, default, min, max, unit, live, meaning)
 *   T(ID, name, type, default, bytes_max, choices, live, meaning)
 *
 * Durations are in milliseconds, sizes in bytes.  `live` ones change on a
 * running engine; the others at the next start.
 */
#ifndef TIDE_ENGINE_SETTINGS_LIST_H
#define TIDE_ENGINE_SETTINGS_LIST_H

#define TIDE_MS_SECOND 1000ull
#define TIDE_MS_MINUTE 60000ull
#define TIDE_MS_HOUR   3600000ull
#define TIDE_MS_DAY    86400000ull
#define TIDE_MB        1000000ull
#define TIDE_MIB       1048576ull
#define TIDE_TIB       1099511627776ull

/* clang-format off */
#define TIDE_SETTINGS(N, T) \
    /* E1 ledger */ \
    N(PURGE_AFTER, "purge.after", DURATION, 7 * TIDE_MS_DAY, TIDE_MS_HOUR, 3650 * TIDE_MS_DAY, "", true, \
      "finished jobs are kept this long as the audit trail") /* E1.2 */ \
    N(PURGE_EVERY, "purge.every", DURATION, TIDE_MS_HOUR, TIDE_MS_MINUTE, 30 * TIDE_MS_DAY, "", true, \
      "how often old finished jobs are removed") /* E1.2 */ \
    N(LEDGER_TRANSACTION_MAX, "ledger.transaction_max", DURATION, 10, 1, 10 * TIDE_MS_SECOND, "", true, \
      "bulk writes are cut into slices of about this length") /* E2.5 */ \
    N(LEDGER_ENQUEUE_SLICE, "ledger.enqueue_slice", INTEGER, 500, 1, 500, "jobs", true, \
      "rows per slice of a bulk enqueue") /* E2.5 */ \
    N(LEDGER_PURGE_SLICE, "ledger.purge_slice", INTEGER, 500, 1, 500, "jobs", true, \
      "rows per slice of a purge") /* E2.5 */ \
    T(LEDGER_URL, "ledger.url", URL, "", 250, NULL, false, \
      "the ledger that many machines share, as postgres://host/database; empty: state.db") /* E1.7 */ \
    /* E1.7, E4.1 many processes on one ledger */ \
    N(FLEET_LEASE, "fleet.lease", DURATION, 15 * TIDE_MS_SECOND, TIDE_MS_SECOND, 10 * TIDE_MS_MINUTE, "", true, \
      "a process that does not renew its lease for this long is dead; others run its jobs") /* E1.7 */ \
    N(FLEET_LOOK, "fleet.look", DURATION, 5 * TIDE_MS_SECOND, 100, 5 * TIDE_MS_MINUTE, "", true, \
      "how often a process renews its lease and polls for work besides the hints; at most a third of the lease") \
    N(FLEET_POLL, "fleet.poll", DURATION, TIDE_MS_SECOND, 50, TIDE_MS_MINUTE, "", true, \
      "the same where hints are not available (a pooler in transaction mode)") \
    /* E2 tracker */ \
    N(TRACKER_WINDOW_JOBS, "tracker.window_jobs", INTEGER, 10000, 100, 10000, "jobs", false, \
      "jobs held in memory; the ledger holds the rest") /* E2.1 */ \
    N(TRACKER_REFILL_BELOW, "tracker.refill_below", PERMILLE, 500, 1, 900, "", true, \
      "share of the window below which it is refilled") /* E2.1 */ \
    N(TRACKER_REFILL_TO, "tracker.refill_to", PERMILLE, 800, 2, 1000, "", true, \
      "share of the window up to which it is refilled") /* E2.1 */ \
    /* E3 lanes and priorities */ \
    N(WORKERS_COUNT, "workers.count", INTEGER, 16, 1, 64, "threads", true, \
      "threads that run jobs") /* E3.1 */ \
    N(WORKERS_RESERVED_INTERACTIVE, "workers.reserved_interactive", INTEGER, 2, 0, 32, "threads", true, \
      "workers kept for the interactive lane") /* E3.1 */ \
    N(WORKERS_RESERVED_BULK, "workers.reserved_bulk", INTEGER, 2, 0, 32, "threads", true, \
      "workers kept for the bulk lane") /* E3.1 */ \
    N(WORKERS_STOP_GRACE, "workers.stop_grace", DURATION, 5 * TIDE_MS_SECOND, 0, TIDE_MS_HOUR, "", true, \
      "how long a shutdown waits for running jobs to end before it cancels them") /* E7.4 */ \
    N(LANES_INTERACTIVE_BELOW, "lanes.interactive_below", SIZE, 10 * TIDE_MB, 0, TIDE_TIB, "", true, \
      "transfers smaller than this go to the interactive lane") /* E3.1 */ \
    N(PRIORITY_PURGE, "priority.purge", INTEGER, 5, 1, 100, "", false, "priority of the purge") /* E3.4 */ \
    N(PRIORITY_MAIL_HISTORY, "priority.mail_history", INTEGER, 50, 1, 100, "", false, \
      "priority of reading what changed in a mailbox") /* E3.4 */ \
    N(PRIORITY_MAIL_LIST, "priority.mail_list", INTEGER, 30, 1, 100, "", false, \
      "priority of listing a mailbox") /* E3.4 */ \
    N(PRIORITY_MAIL_FETCH, "priority.mail_fetch", INTEGER, 30, 1, 100, "", false, \
      "priority of fetching messages") /* E3.4 */ \
    N(PRIORITY_CONSOLE, "priority.console", INTEGER, 28, 1, 99, "", false, \
      "priority of fetching pages of Search Console") /* E3.4 */ \
    /* E4 governor */ \
    N(GOVERNOR_SHARE, "governor.share", PERMILLE, 1000, 100, 1000, "", true, \
      "share of the published quota that may be used; 100% uses about 97% of it in practice") /* E4.3 */ \
    N(GOVERNOR_HEALTHY_WINDOW, "governor.healthy_window", DURATION, 5 * TIDE_MS_SECOND, 100, 10 * TIDE_MS_MINUTE, "", true, \
      "time without trouble after which rate and concurrency rise") /* E4.2 */ \
    N(GOVERNOR_WORKERS_STEP, "governor.workers_step", INTEGER, 1, 1, 64, "workers", true, \
      "workers added per healthy window") /* E4.2 */ \
    N(GOVERNOR_RATE_STEP, "governor.rate_step", PERMILLE, 50, 1, 1000, "", true, \
      "share of the ceiling added to the rate per healthy window") /* E4.2 */ \
    N(GOVERNOR_RATE_STEP_CALL, "governor.rate_step_call", PERMILLE, 500, 1, 10000, "", true, \
      "but at least this share of one call") /* E4.2 */ \
    N(GOVERNOR_CUT, "governor.cut", PERMILLE, 500, 100, 950, "", true, \
      "rate and concurrency are multiplied by this after a throttle") /* E4.2 */ \
    N(GOVERNOR_LATENCY_MAX, "governor.latency_max", DURATION, 1200, 10, 10 * TIDE_MS_MINUTE, "", true, \
      "p95 latency of a method above which calls are slowed") /* E4.2 */ \
    N(GOVERNOR_LATENCY_FACTOR, "governor.latency_factor", PERMILLE, 3000, 1000, 100000, "", true, \
      "or this multiple of its own best p50, whichever is more") /* E4.2 */ \
    N(GOVERNOR_SPEND_LEASE, "governor.spend_lease", DURATION, 2 * TIDE_MS_SECOND, 100, TIDE_MS_MINUTE, "", true, \
      "units worth this time at full rate may be spent before they are saved") /* E4.3b */ \
    N(GOVERNOR_SAVE_EVERY, "governor.save_every", DURATION, 500, 10, TIDE_MS_MINUTE, "", true, \
      "how often spent units are saved while calls are made") /* E4.3b */ \
    N(GOVERNOR_STRAY, "governor.stray", DURATION, 10 * TIDE_MS_SECOND, 1, 10 * TIDE_MS_MINUTE, "", true, \
      "how long the provider may still count a call after we closed its connection") /* E4.1 */ \
    N(GOVERNOR_RETRY_AFTER_MAX, "governor.retry_after_max", DURATION, 60 * TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", true, \
      "longest wait that a server may ask for with Retry-After; then one call probes") /* E4.3 */ \
    N(GOVERNOR_SMALL_JOBS, "governor.small_jobs", INTEGER, 100, 1, 10000, "jobs", true, \
      "more small jobs than this waiting: concurrency grows freely") /* E4.2 */ \
    N(GOVERNOR_SMALL_BELOW, "governor.small_below", SIZE, TIDE_MB, 1, TIDE_TIB, "", true, \
      "what counts as small there") /* E4.2 */ \
    N(GOVERNOR_LARGE_JOBS, "governor.large_jobs", INTEGER, 4, 1, 10000, "jobs", true, \
      "fewer jobs than this, all large: only workers that raise the byte rate") /* E4.2 */ \
    N(GOVERNOR_LARGE_ABOVE, "governor.large_above", SIZE, 100 * TIDE_MB, 1, TIDE_TIB, "", true, \
      "what counts as large there") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_WORKERS_START, "governor.default.workers_start", INTEGER, 8, 1, 64, "workers", true, \
      "concurrency at the start where nothing better is known") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_WORKERS_MIN, "governor.default.workers_min", INTEGER, 2, 1, 64, "workers", true, \
      "lowest concurrency") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_WORKERS_MAX, "governor.default.workers_max", INTEGER, 32, 1, 64, "workers", true, \
      "highest concurrency") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_RATE_START, "governor.default.rate_start", INTEGER, 4, 1, 1000000, "calls/s", true, \
      "rate at the start where nothing better is known") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_RATE_MIN, "governor.default.rate_min", INTEGER, 1, 1, 1000000, "calls/s", true, \
      "lowest rate") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_RATE_MAX, "governor.default.rate_max", INTEGER, 16, 1, 1000000, "calls/s", true, \
      "highest rate") /* E4.2 */ \
    N(GOVERNOR_GMAIL_WINDOW, "governor.gmail.window", DURATION, TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", false, \
      "sliding window of Gmail's quota") /* E4.2 */ \
    N(GOVERNOR_GMAIL_WINDOW_UNITS, "governor.gmail.window_units", INTEGER, 6000, 0, 100000000, "units", true, \
      "units a Gmail user has per window; 15000 for older projects; 0: no limit is known") /* E4.2 */ \
    N(GOVERNOR_GMAIL_IN_FLIGHT, "governor.gmail.in_flight", INTEGER, 10, 1, 1000, "calls", true, \
      "Gmail calls at once, every part of a batch counts") /* E4.2 */ \
    N(GOVERNOR_GMAIL_RESERVE, "governor.gmail.reserve", PERMILLE, 20, 0, 500, "", true, \
      "share of the window kept for jobs a user waits for (level 1)") /* E4.2 */ \
    N(GOVERNOR_GMAIL_PROJECT_UNITS, "governor.gmail.project_units", INTEGER, 1200000, 0, 1000000000, "units", true, \
      "units per window of all Gmail accounts together: one project; 0: no limit is known") /* E4.1 */ \
    N(GOVERNOR_CONSOLE_WINDOW, "governor.console.window", DURATION, TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", false, \
      "sliding window of Search Console's quotas") /* E4.2 */ \
    N(GOVERNOR_CONSOLE_SITE_UNITS, "governor.console.site_units", INTEGER, 1200, 0, 100000000, "units", true, \
      "Search Console queries per window and site; 0: no limit is known") /* E4.2 */ \
    N(GOVERNOR_CONSOLE_PROJECT_UNITS, "governor.console.project_units", INTEGER, 40000, 0, 1000000000, "units", true, \
      "queries per window of all Search Console accounts together: one project; 0: no limit is known") /* E4.1 */ \
    N(GOVERNOR_CONSOLE_IN_FLIGHT, "governor.console.in_flight", INTEGER, 64, 1, 64, "queries", true, \
      "Search Console queries at once, every part of a batch counts") /* E4.2 */ \
    N(GOVERNOR_GRAPH_IN_FLIGHT_START, "governor.graph.in_flight_start", INTEGER, 8, 1, 1000, "calls", true, \
      "drive calls at once at the start") /* E4.2 */ \
    N(GOVERNOR_GRAPH_IN_FLIGHT_MAX, "governor.graph.in_flight_max", INTEGER, 16, 1, 1000, "calls", true, \
      "drive calls at once at most") /* E4.2 */ \
    N(GOVERNOR_CHAT_IN_FLIGHT, "governor.chat.in_flight", INTEGER, 4, 1, 1000, "calls", true, \
      "calls to a chat model at once") /* E4.2 */ \
    N(BREAKER_FAILURES, "breaker.failures", INTEGER, 5, 1, 10000, "failures", true, \
      "failures in a row that open the circuit breaker of an account") /* E4.5 */ \
    N(BREAKER_PAUSE_FIRST, "breaker.pause_first", DURATION, TIDE_MS_SECOND, 1, TIDE_MS_HOUR, "", true, \
      "pause before the first probe of an open breaker; doubles") /* E4.5 */ \
    N(BREAKER_PAUSE_MAX, "breaker.pause_max", DURATION, 5 * TIDE_MS_MINUTE, 1, TIDE_MS_DAY, "", true, \
      "longest pause between probes") /* E4.5 */ \
    N(BREAKER_PAUSE_SOFT_MAX, "breaker.pause_soft_max", DURATION, 8 * TIDE_MS_SECOND, 1, TIDE_MS_DAY, "", true, \
      "the same after refusals and a lost network, which end soon") /* E4.5 */ \
    N(BANDWIDTH_DOWN, "bandwidth.down", SIZE, 0, 0, TIDE_TIB, "per second", true, \
      "download limit of all transfers together; 0: none") /* E4.7 */ \
    N(BANDWIDTH_UP, "bandwidth.up", SIZE, 0, 0, TIDE_TIB, "per second", true, \
      "upload limit of all transfers together; 0: none") /* E4.7 */ \
    N(BANDWIDTH_BOTH, "bandwidth.both", SIZE, 0, 0, TIDE_TIB, "per second", true, \
      "limit of both directions together; 0: none") /* E4.7 */ \
    T(BANDWIDTH_SCHEDULE, "bandwidth.schedule", SCHEDULE, "", 250, NULL, true, \
      "limits by hour, as 'mon-fri 08:00-18:00 500KiB; 18:00-08:00 full'") /* E4.7 */ \
    /* E6 bad items and alerts */ \
    N(BAD_OWED_FAILURES, "bad.owed_failures", INTEGER, 5, 1, 1000, "failures", true, \
      "stalls or resets after which an item is owed") /* E6.2 */ \
    N(BAD_OWED_OVER, "bad.owed_over", DURATION, 10 * TIDE_MS_MINUTE, TIDE_MS_SECOND, 7 * TIDE_MS_DAY, "", true, \
      "shortest time these failures must be spread over") /* E6.2 */ \
    N(BAD_SYSTEMIC_IN_A_ROW, "bad.systemic_in_a_row", INTEGER, 20, 2, 100000, "items", true, \
      "bad items in a row after which a good item is probed") /* E6.2 */ \
    N(BAD_SYSTEMIC_SHARE, "bad.systemic_share", PERMILLE, 500, 1, 990, "", true, \
      "share of bad items among the last 100 after which a good item is probed") /* E6.2 */ \
    N(ALERTS_BAD_WINDOW, "alerts.bad_window", INTEGER, 10000, 100, 10000, "items", true, \
      "number of latest items the bad rate is computed from") /* E6.4 */ \
    N(ALERTS_BAD_WARN, "alerts.bad_warn", PERMILLE, 2, 0, 1000, "", true, \
      "bad rate that warns") /* E6.4 */ \
    N(ALERTS_BAD_CRITICAL, "alerts.bad_critical", PERMILLE, 10, 0, 1000, "", true, \
      "bad rate that is critical") /* E6.4 */ \
    N(ALERTS_BAD_CRITICAL_HOUR, "alerts.bad_critical_hour", INTEGER, 200, 1, 1000000, "items", true, \
      "more bad items than this in an hour are critical") /* E6.4 */ \
    N(ALERTS_THROTTLE_WARN, "alerts.throttle_warn", PERMILLE, 50, 1, 1000, "", true, \
      "share of refused calls that warns") /* E6.4 */ \
    N(ALERTS_THROTTLE_WINDOW, "alerts.throttle_window", DURATION, 10 * TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", true, \
      "period the share of refused calls is computed from") /* E6.4 */ \
    N(ALERTS_QUEUE_FULL_AFTER, "alerts.queue_full_after", DURATION, TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", true, \
      "a caller that waits this long for room in a full queue raises a warning") /* E6.4 */ \
    N(ALERTS_METADATA_BUDGET, "alerts.metadata_budget", SIZE, 64 * TIDE_MIB, 1024, TIDE_TIB, "", true, \
      "what the ledger may store for one account besides its jobs: cursors, cycles, bad items, notes") /* E6.4 */ \
    N(ALERTS_METADATA_WARN, "alerts.metadata_warn", PERMILLE, 500, 0, 1000, "", true, \
      "share of that budget that warns") /* E6.4 */ \
    N(ALERTS_METADATA_CRITICAL, "alerts.metadata_critical", PERMILLE, 800, 0, 1000, "", true, \
      "share of that budget that is critical") /* E6.4 */ \
    /* E7 supervision */ \
    N(STALL_AFTER, "stall.after", DURATION, 10 * TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", true, \
      "a running job without a beat for this long is stalled") /* E7.1 */ \
    N(STALL_IGNORED_MAX, "stall.ignored_max", DURATION, TIDE_MS_MINUTE, 100, TIDE_MS_DAY, "", true, \
      "a handler that ignores its cancellation this long loses its worker") /* E7.2 */ \
    N(RETRY_ATTEMPTS_MAX, "retry.attempts_max", INTEGER, 5, 1, 1000, "attempts", true, \
      "retry budget of a job or batch") /* E6.1 */ \
    N(RETRY_BACKOFF_START, "retry.backoff_start", DURATION, TIDE_MS_SECOND, 1, TIDE_MS_HOUR, "", true, \
      "pause before the first retry") /* E7.2 */ \
    N(RETRY_BACKOFF_FACTOR, "retry.backoff_factor", PERMILLE, 2000, 1000, 10000, "", true, \
      "each further pause is this many times longer") /* E7.2 */ \
    N(RETRY_BACKOFF_MAX, "retry.backoff_max", DURATION, 5 * TIDE_MS_MINUTE, 1, TIDE_MS_DAY, "", true, \
      "longest pause between retries") /* E7.2 */ \
    N(DISK_FREE_MIN, "disk.free_min", SIZE, 512 * TIDE_MIB, 0, 1024 * TIDE_TIB, "", false, \
      "commands that write much stop before the disk has less than this left; 0: no check") /* E7.2 */ \
    /* M11: the archiver of mail */ \
    N(ARCHIVE_GUARD, "archive.guard", INTEGER, 1000, 1, 1000000000, "messages", true, \
      "removing more than this from Gmail in one run has to be confirmed") /* M11 */ \
    /* E9, E11: what can be seen, settings themselves */ \
    T(LOG_LEVEL, "log.level", TEXT, "info", 8, "debug|info|warn|error|none", true, \
      "lowest level that is logged; not set: the command's own default") /* E9.2 */ \
    N(LOG_FILE_BYTES, "log.file_bytes", SIZE, 16 * TIDE_MIB, 64 * 1024, TIDE_TIB, "", false, \
      "tidemark.log is renamed to tidemark.log.1 before it grows beyond this") /* E9.4 */ \
    N(LOG_FILES, "log.files", INTEGER, 4, 1, 99, "files", false, \
      "number of renamed log files that are kept") /* E9.4 */ \
    N(SETTINGS_RELOAD_EVERY, "settings.reload_every", DURATION, 2 * TIDE_MS_SECOND, 100, 5 * TIDE_MS_SECOND, "", true, \
      "how often a running engine checks whether the settings file changed") /* E11.1 */
/* clang-format on */

/* Settings that are missing here are added with the part that reads them: leases and
 * grants of a fleet (E1.7, E4.1), priorities of future kinds (E3.4), spans and pages of
 * listings (E5.5), the budget of a metadata store and mail about alerts (E6.4),
 * Search Console's quotas per user and project.  Targets are tested, not set: refused
 * calls, recovery after a throttle (E4.3), the time of a halt (E4.6).  tests/unit/engine/tuning_test.c refuses a row
 * without an effect. */

#endif
