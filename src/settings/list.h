/* list.h - the one table of settings (E11.1).
 *
 * Every number of the engine's rules that a user may tune has one row here
 * and is defined nowhere else.  The comment above each group and behind each row
 * names the requirement; `meaning` is printed by `config list|get` and names none.
 * Numbers that are promises about our own speed (memory of the window, CPU while
 * idle, time to replace a worker) are tested, not set.
 *
 *   N(ID, name, type, default, min, max, unit, when, meaning)
 *   T(ID, name, type, default, bytes_max, choices, when, meaning)
 *
 * Durations are in milliseconds, sizes in bytes.  `when` says from when on a changed value
 * counts: LIVE on a running engine, NEXT_START at the next one; with _OWN the setting can be set
 * for one account alone (E11.2).  The others are of the process, the machine or the ledger, or
 * set a limit for all accounts together.
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
    N(PURGE_AFTER, "purge.after", DURATION, 7 * TIDE_MS_DAY, TIDE_MS_HOUR, 3650 * TIDE_MS_DAY, "", LIVE, \
      "finished jobs are kept this long as the audit trail") /* E1.2 */ \
    N(PURGE_EVERY, "purge.every", DURATION, TIDE_MS_HOUR, TIDE_MS_MINUTE, 30 * TIDE_MS_DAY, "", LIVE, \
      "how often old finished jobs are removed") /* E1.2 */ \
    N(LEDGER_TRANSACTION_MAX, "ledger.transaction_max", DURATION, 10, 1, 10 * TIDE_MS_SECOND, "", LIVE, \
      "bulk writes are cut into slices of about this length") /* E2.5 */ \
    N(LEDGER_ENQUEUE_SLICE, "ledger.enqueue_slice", INTEGER, 500, 1, 500, "jobs", LIVE, \
      "rows per slice of a bulk enqueue") /* E2.5 */ \
    N(LEDGER_PURGE_SLICE, "ledger.purge_slice", INTEGER, 500, 1, 500, "jobs", LIVE, \
      "rows per slice of a purge") /* E2.5 */ \
    T(LEDGER_URL, "ledger.url", URL, "", 250, NULL, NEXT_START, \
      "the ledger that many machines share, as postgres://host/database; empty: state.db") /* E1.7 */ \
    T(SERVE_LISTEN, "serve.listen", TEXT, "127.0.0.1:7433", 24, NULL, NEXT_START, \
      "where `tidemark serve` has its page, on this machine alone; port 0: any free one") \
    /* J6 pushes */ \
    T(SERVE_WEBHOOK_LISTEN, "serve.webhook.listen", TEXT, "", 24, NULL, NEXT_START, \
      "where `tidemark serve` takes pushes of Pub/Sub, as 127.0.0.1:7434; empty: nowhere") /* J6 */ \
    T(SERVE_WEBHOOK_URL, "serve.webhook.url", TEXT, "", 250, NULL, NEXT_START, \
      "the public address that leads to it, as https://sync.example.org, where OneDrive posts notifications; empty: drives are polled") /* D9 */ \
    T(SERVE_WEBHOOK_AUDIENCE, "serve.webhook.audience", TEXT, "", 250, NULL, NEXT_START, \
      "the audience that the token of a push must have, as the subscription has it") /* J6 */ \
    T(SERVE_WEBHOOK_SENDER, "serve.webhook.sender", TEXT, "", 250, NULL, NEXT_START, \
      "the service account that signs the token of a push, as the subscription has it") /* J6 */ \
    T(SERVE_WEBHOOK_KEYS, "serve.webhook.keys", TEXT, "https://www.googleapis.com/oauth2/v3/certs", 250, NULL, NEXT_START, \
      "where the keys are published with which such tokens are signed") /* J6 */ \
    /* E1.7, E4.1 many processes on one ledger */ \
    N(FLEET_LEASE, "fleet.lease", DURATION, 15 * TIDE_MS_SECOND, TIDE_MS_SECOND, 10 * TIDE_MS_MINUTE, "", LIVE, \
      "a process that does not renew its lease for this long is dead; others run its jobs") /* E1.7 */ \
    N(FLEET_LOOK, "fleet.look", DURATION, 5 * TIDE_MS_SECOND, 100, 5 * TIDE_MS_MINUTE, "", LIVE, \
      "how often a process renews its lease and polls for work besides the hints; at most a third of the lease") \
    N(FLEET_POLL, "fleet.poll", DURATION, TIDE_MS_SECOND, 50, TIDE_MS_MINUTE, "", LIVE, \
      "the same where hints are not available (a pooler in transaction mode)") \
    /* E2 tracker */ \
    N(TRACKER_WINDOW_JOBS, "tracker.window_jobs", INTEGER, 10000, 100, 10000, "jobs", NEXT_START, \
      "jobs held in memory; the ledger holds the rest") /* E2.1 */ \
    N(TRACKER_REFILL_BELOW, "tracker.refill_below", PERMILLE, 500, 1, 900, "", LIVE, \
      "share of the window below which it is refilled") /* E2.1 */ \
    N(TRACKER_REFILL_TO, "tracker.refill_to", PERMILLE, 800, 2, 1000, "", LIVE, \
      "share of the window up to which it is refilled") /* E2.1 */ \
    /* E3 lanes and priorities */ \
    N(WORKERS_COUNT, "workers.count", INTEGER, 16, 1, 64, "threads", LIVE, \
      "threads that run jobs") /* E3.1 */ \
    N(WORKERS_RESERVED_INTERACTIVE, "workers.reserved_interactive", INTEGER, 2, 0, 32, "threads", LIVE, \
      "workers kept for the interactive lane") /* E3.1 */ \
    N(WORKERS_RESERVED_BULK, "workers.reserved_bulk", INTEGER, 2, 0, 32, "threads", LIVE, \
      "workers kept for the bulk lane") /* E3.1 */ \
    N(WORKERS_STOP_GRACE, "workers.stop_grace", DURATION, 5 * TIDE_MS_SECOND, 0, TIDE_MS_HOUR, "", LIVE, \
      "how long a shutdown waits for running jobs to end before it cancels them") /* E7.4 */ \
    N(LANES_INTERACTIVE_BELOW, "lanes.interactive_below", SIZE, 10 * TIDE_MB, 0, TIDE_TIB, "", LIVE, \
      "transfers smaller than this go to the interactive lane") /* E3.1 */ \
    N(PRIORITY_PURGE, "priority.purge", INTEGER, 5, 1, 100, "", NEXT_START, "priority of the purge") /* E3.4 */ \
    N(PRIORITY_MAIL_HISTORY, "priority.mail_history", INTEGER, 50, 1, 100, "", NEXT_START, \
      "priority of reading what changed in a mailbox") /* E3.4 */ \
    N(PRIORITY_MAIL_LIST, "priority.mail_list", INTEGER, 30, 1, 100, "", NEXT_START, \
      "priority of listing a mailbox") /* E3.4 */ \
    N(PRIORITY_MAIL_FETCH, "priority.mail_fetch", INTEGER, 30, 1, 100, "", NEXT_START, \
      "priority of fetching messages") /* E3.4 */ \
    N(PRIORITY_CONSOLE, "priority.console", INTEGER, 28, 1, 99, "", NEXT_START, \
      "priority of fetching pages of Search Console") /* E3.4 */ \
    /* E4 governor */ \
    N(GOVERNOR_SHARE, "governor.share", PERMILLE, 1000, 100, 1000, "", LIVE_OWN, \
      "share of the published quota that may be used; 100% uses about 97% of it in practice") /* E4.3 */ \
    T(GOVERNOR_PROJECT, "governor.project", TEXT, "", 60, NULL, NEXT_START_OWN, \
      "name you give to the project of an account at its provider; accounts of one project share its quota") /* E11.2 */ \
    N(GOVERNOR_HEALTHY_WINDOW, "governor.healthy_window", DURATION, 5 * TIDE_MS_SECOND, 100, 10 * TIDE_MS_MINUTE, "", LIVE_OWN, \
      "time without trouble after which rate and concurrency rise") /* E4.2 */ \
    N(GOVERNOR_WORKERS_STEP, "governor.workers_step", INTEGER, 1, 1, 64, "workers", LIVE_OWN, \
      "workers added per healthy window") /* E4.2 */ \
    N(GOVERNOR_RATE_STEP, "governor.rate_step", PERMILLE, 50, 1, 1000, "", LIVE_OWN, \
      "share of the ceiling added to the rate per healthy window") /* E4.2 */ \
    N(GOVERNOR_RATE_STEP_CALL, "governor.rate_step_call", PERMILLE, 500, 1, 10000, "", LIVE_OWN, \
      "but at least this share of one call") /* E4.2 */ \
    N(GOVERNOR_CUT, "governor.cut", PERMILLE, 500, 100, 950, "", LIVE_OWN, \
      "rate and concurrency are multiplied by this after a throttle") /* E4.2 */ \
    N(GOVERNOR_LATENCY_MAX, "governor.latency_max", DURATION, 1200, 10, 10 * TIDE_MS_MINUTE, "", LIVE_OWN, \
      "p95 latency of a method above which calls are slowed") /* E4.2 */ \
    N(GOVERNOR_LATENCY_FACTOR, "governor.latency_factor", PERMILLE, 3000, 1000, 100000, "", LIVE_OWN, \
      "or this multiple of its own best p50, whichever is more") /* E4.2 */ \
    N(GOVERNOR_SPEND_LEASE, "governor.spend_lease", DURATION, 2 * TIDE_MS_SECOND, 100, TIDE_MS_MINUTE, "", LIVE_OWN, \
      "units worth this time at full rate may be spent before they are saved") /* E4.3b */ \
    N(GOVERNOR_SAVE_EVERY, "governor.save_every", DURATION, 500, 10, TIDE_MS_MINUTE, "", LIVE_OWN, \
      "how often spent units are saved while calls are made") /* E4.3b */ \
    N(GOVERNOR_STRAY, "governor.stray", DURATION, 10 * TIDE_MS_SECOND, 1, 10 * TIDE_MS_MINUTE, "", LIVE_OWN, \
      "how long the provider may still count a call after we closed its connection") /* E4.1 */ \
    N(GOVERNOR_RETRY_AFTER_MAX, "governor.retry_after_max", DURATION, 60 * TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", LIVE_OWN, \
      "longest wait that a server may ask for with Retry-After; then one call probes") /* E4.3 */ \
    N(GOVERNOR_SMALL_JOBS, "governor.small_jobs", INTEGER, 100, 1, 10000, "jobs", LIVE_OWN, \
      "more small jobs than this waiting: concurrency grows freely") /* E4.2 */ \
    N(GOVERNOR_SMALL_BELOW, "governor.small_below", SIZE, TIDE_MB, 1, TIDE_TIB, "", LIVE_OWN, \
      "what counts as small there") /* E4.2 */ \
    N(GOVERNOR_LARGE_JOBS, "governor.large_jobs", INTEGER, 4, 1, 10000, "jobs", LIVE_OWN, \
      "fewer jobs than this, all large: only workers that raise the byte rate") /* E4.2 */ \
    N(GOVERNOR_LARGE_ABOVE, "governor.large_above", SIZE, 100 * TIDE_MB, 1, TIDE_TIB, "", LIVE_OWN, \
      "what counts as large there") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_WORKERS_START, "governor.default.workers_start", INTEGER, 8, 1, 64, "workers", LIVE_OWN, \
      "concurrency at the start where nothing better is known") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_WORKERS_MIN, "governor.default.workers_min", INTEGER, 2, 1, 64, "workers", LIVE_OWN, \
      "lowest concurrency") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_WORKERS_MAX, "governor.default.workers_max", INTEGER, 32, 1, 64, "workers", LIVE_OWN, \
      "highest concurrency") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_RATE_START, "governor.default.rate_start", INTEGER, 4, 1, 1000000, "calls/s", LIVE_OWN, \
      "rate at the start where nothing better is known") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_RATE_MIN, "governor.default.rate_min", INTEGER, 1, 1, 1000000, "calls/s", LIVE_OWN, \
      "lowest rate") /* E4.2 */ \
    N(GOVERNOR_DEFAULT_RATE_MAX, "governor.default.rate_max", INTEGER, 16, 1, 1000000, "calls/s", LIVE_OWN, \
      "highest rate") /* E4.2 */ \
    N(GOVERNOR_GMAIL_WINDOW, "governor.gmail.window", DURATION, TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", NEXT_START_OWN, \
      "sliding window of Gmail's quota") /* E4.2 */ \
    N(GOVERNOR_GMAIL_WINDOW_UNITS, "governor.gmail.window_units", INTEGER, 6000, 0, 100000000, "units", LIVE_OWN, \
      "units a Gmail user has per window; 15000 for older projects; 0: no limit is known") /* E4.2 */ \
    N(GOVERNOR_GMAIL_IN_FLIGHT, "governor.gmail.in_flight", INTEGER, 10, 1, 1000, "calls", LIVE_OWN, \
      "Gmail calls at once, every part of a batch counts") /* E4.2 */ \
    N(GOVERNOR_GMAIL_RESERVE, "governor.gmail.reserve", PERMILLE, 20, 0, 500, "", LIVE_OWN, \
      "share of the window kept for jobs a user waits for (level 1)") /* E4.2 */ \
    N(GOVERNOR_GMAIL_PROJECT_UNITS, "governor.gmail.project_units", INTEGER, 1200000, 0, 1000000000, "units", LIVE_OWN, \
      "units per window of all Gmail accounts of one project together; 0: no limit is known") /* E4.1 */ \
    N(GOVERNOR_CONSOLE_WINDOW, "governor.console.window", DURATION, TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", NEXT_START_OWN, \
      "sliding window of Search Console's quotas") /* E4.2 */ \
    N(GOVERNOR_CONSOLE_SITE_UNITS, "governor.console.site_units", INTEGER, 1200, 0, 100000000, "units", LIVE_OWN, \
      "Search Console queries per window and site; 0: no limit is known") /* E4.2 */ \
    N(GOVERNOR_CONSOLE_PROJECT_UNITS, "governor.console.project_units", INTEGER, 40000, 0, 1000000000, "units", LIVE_OWN, \
      "queries per window of all Search Console accounts of one project together; 0: no limit is known") /* E4.1 */ \
    N(GOVERNOR_CONSOLE_IN_FLIGHT, "governor.console.in_flight", INTEGER, 64, 1, 64, "queries", LIVE_OWN, \
      "Search Console queries at once, every part of a batch counts") /* E4.2 */ \
    N(CONSOLE_WORKERS, "console.workers", INTEGER, 3, 1, 10, "requests", LIVE_OWN, \
      "batches of Search Console queries in flight at once") /* B12 */ \
    N(CONSOLE_BATCH, "console.batch", INTEGER, 50, 1, 50, "queries", LIVE_OWN, \
      "queries in one batch at most; it starts smaller and grows") /* B12 */ \
    N(GOVERNOR_ONEDRIVE_WINDOW_UNITS, "governor.onedrive.window_units", INTEGER, 0, 0, 100000000, "units", NEXT_START_OWN, \
      "units a drive account has per minute, as 1250 in a small business; 0: no limit is known") /* E4.2 */ \
    N(GOVERNOR_ONEDRIVE_IN_FLIGHT_START, "governor.onedrive.in_flight_start", INTEGER, 16, 1, 1000, "calls", LIVE_OWN, \
      "drive calls at once at the start, or the most if that is less") /* E4.2 */ \
    N(GOVERNOR_ONEDRIVE_IN_FLIGHT_MAX, "governor.onedrive.in_flight_max", INTEGER, 32, 1, 1000, "calls", LIVE_OWN, \
      "drive calls at once at most") /* E4.2 */ \
    N(GOVERNOR_CHAT_IN_FLIGHT, "governor.chat.in_flight", INTEGER, 4, 1, 1000, "calls", LIVE_OWN, \
      "calls to a chat model at once") /* E4.2 */ \
    /* J19 chat models */ \
    N(CHAT_TOKENS_PER_DAY, "chat.tokens_per_day", INTEGER, 2000000, 0, 1000000000000, "tokens", LIVE_OWN, \
      "tokens that calls to a chat model may cost per day (UTC), said and answered; 0: no limit") /* J19, J27 */ \
    N(CHAT_SILENCE, "chat.silence", DURATION, 30 * TIDE_MS_SECOND, TIDE_MS_SECOND, TIDE_MS_HOUR, "", LIVE_OWN, \
      "a chat model that sends nothing for this long while it answers is given up") /* J19 */ \
    N(CHAT_TIMEOUT, "chat.timeout", DURATION, 9 * TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_HOUR, "", LIVE_OWN, \
      "how long an answer of a chat model may take in all") /* J19 */ \
    N(BREAKER_FAILURES, "breaker.failures", INTEGER, 5, 1, 10000, "failures", LIVE_OWN, \
      "failures in a row that open the circuit breaker of an account") /* E4.5 */ \
    N(BREAKER_PAUSE_FIRST, "breaker.pause_first", DURATION, TIDE_MS_SECOND, 1, TIDE_MS_HOUR, "", LIVE_OWN, \
      "pause before the first probe of an open breaker; doubles") /* E4.5 */ \
    N(BREAKER_PAUSE_MAX, "breaker.pause_max", DURATION, 5 * TIDE_MS_MINUTE, 1, TIDE_MS_DAY, "", LIVE_OWN, \
      "longest pause between probes") /* E4.5 */ \
    N(BREAKER_PAUSE_SOFT_MAX, "breaker.pause_soft_max", DURATION, 8 * TIDE_MS_SECOND, 1, TIDE_MS_DAY, "", LIVE_OWN, \
      "the same after refusals and a lost network, which end soon") /* E4.5 */ \
    N(BANDWIDTH_DOWN, "bandwidth.down", SIZE, 0, 0, TIDE_TIB, "per second", LIVE, \
      "download limit of all transfers together; 0: none") /* E4.7 */ \
    N(BANDWIDTH_UP, "bandwidth.up", SIZE, 0, 0, TIDE_TIB, "per second", LIVE, \
      "upload limit of all transfers together; 0: none") /* E4.7 */ \
    N(BANDWIDTH_BOTH, "bandwidth.both", SIZE, 0, 0, TIDE_TIB, "per second", LIVE, \
      "limit of both directions together; 0: none") /* E4.7 */ \
    T(BANDWIDTH_SCHEDULE, "bandwidth.schedule", SCHEDULE, "", 250, NULL, LIVE, \
      "limits by hour, as 'mon-fri 08:00-18:00 500KiB; 18:00-08:00 full'") /* E4.7 */ \
    /* E6 bad items and alerts */ \
    N(BAD_OWED_FAILURES, "bad.owed_failures", INTEGER, 5, 1, 1000, "failures", LIVE_OWN, \
      "stalls or resets after which an item is owed") /* E6.2 */ \
    N(BAD_OWED_OVER, "bad.owed_over", DURATION, 10 * TIDE_MS_MINUTE, TIDE_MS_SECOND, 7 * TIDE_MS_DAY, "", LIVE_OWN, \
      "shortest time these failures must be spread over") /* E6.2 */ \
    N(BAD_SYSTEMIC_IN_A_ROW, "bad.systemic_in_a_row", INTEGER, 20, 2, 100000, "items", LIVE_OWN, \
      "bad items in a row after which a good item is probed") /* E6.2 */ \
    N(BAD_SYSTEMIC_SHARE, "bad.systemic_share", PERMILLE, 500, 1, 990, "", LIVE_OWN, \
      "share of bad items among the last 100 after which a good item is probed") /* E6.2 */ \
    N(ALERTS_BAD_WINDOW, "alerts.bad_window", INTEGER, 10000, 100, 10000, "items", LIVE_OWN, \
      "number of latest items the bad rate is computed from") /* E6.4 */ \
    N(ALERTS_BAD_WARN, "alerts.bad_warn", PERMILLE, 2, 0, 1000, "", LIVE_OWN, \
      "bad rate that warns") /* E6.4 */ \
    N(ALERTS_BAD_CRITICAL, "alerts.bad_critical", PERMILLE, 10, 0, 1000, "", LIVE_OWN, \
      "bad rate that is critical") /* E6.4 */ \
    N(ALERTS_BAD_CRITICAL_HOUR, "alerts.bad_critical_hour", INTEGER, 200, 1, 1000000, "items", LIVE_OWN, \
      "more bad items than this in an hour are critical") /* E6.4 */ \
    N(ALERTS_THROTTLE_WARN, "alerts.throttle_warn", PERMILLE, 50, 1, 1000, "", LIVE_OWN, \
      "share of refused calls that warns") /* E6.4 */ \
    N(ALERTS_THROTTLE_WINDOW, "alerts.throttle_window", DURATION, 10 * TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", LIVE_OWN, \
      "period the share of refused calls is computed from") /* E6.4 */ \
    N(ALERTS_QUEUE_FULL_AFTER, "alerts.queue_full_after", DURATION, TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", LIVE_OWN, \
      "a caller that waits this long for room in a full queue raises a warning") /* E6.4 */ \
    N(ALERTS_METADATA_BUDGET, "alerts.metadata_budget", SIZE, 64 * TIDE_MIB, 1024, TIDE_TIB, "", LIVE_OWN, \
      "what the ledger may store for one account besides its jobs: cursors, cycles, bad items, notes") /* E6.4 */ \
    N(ALERTS_METADATA_WARN, "alerts.metadata_warn", PERMILLE, 500, 0, 1000, "", LIVE_OWN, \
      "share of that budget that warns") /* E6.4 */ \
    N(ALERTS_METADATA_CRITICAL, "alerts.metadata_critical", PERMILLE, 800, 0, 1000, "", LIVE_OWN, \
      "share of that budget that is critical") /* E6.4 */ \
    N(ALERTS_DRIVE_OWED_AFTER, "alerts.drive_owed_after", DURATION, TIDE_MS_DAY, TIDE_MS_MINUTE, 30 * TIDE_MS_DAY, "", LIVE_OWN, \
      "an item of a drive that is owed for so long raises a warning") /* E6.4 */ \
    N(ALERTS_DRIVE_LATE_AFTER, "alerts.drive_late_after", DURATION, TIDE_MS_DAY, 15 * TIDE_MS_MINUTE, 30 * TIDE_MS_DAY, "", LIVE_OWN, \
      "a drive that is watched and has no complete round for so long raises a warning") /* E6.4 */ \
    T(ALERTS_MAIL_TO, "alerts.mail.to", ADDRESS, "", 250, NULL, LIVE_OWN, \
      "address that mail about alerts is sent to, about one account where it is set for that; empty: none is sent, or the account of alerts.mail.account") /* E6.4 */ \
    T(ALERTS_MAIL_FROM, "alerts.mail.from", ADDRESS, "", 250, NULL, LIVE, \
      "sender of that mail; empty: the address it is sent to") /* E6.4 */ \
    T(ALERTS_MAIL_SERVER, "alerts.mail.server", SERVER, "", 250, NULL, LIVE, \
      "mail server that takes it, as smtp://HOST:587 (with STARTTLS) or smtps://HOST:465") /* E6.4 */ \
    T(ALERTS_MAIL_CA_FILE, "alerts.mail.ca_file", TEXT, "", 250, NULL, LIVE, \
      "certificates that this server is checked against, as PEM; empty: those of the system") /* E6.4 */ \
    T(ALERTS_MAIL_ACCOUNT, "alerts.mail.account", TEXT, "", 200, NULL, LIVE, \
      "instead of a server: the account that sends it, to itself, through its provider") /* E6.4 */ \
    N(ALERTS_MAIL_EVERY, "alerts.mail.every", DURATION, TIDE_MS_HOUR, TIDE_MS_MINUTE, 30 * TIDE_MS_DAY, "", LIVE_OWN, \
      "at most one mail about a condition of an account in this time") /* E6.4 */ \
    N(ALERTS_MAIL_STILL, "alerts.mail.still", DURATION, TIDE_MS_DAY, 0, 365 * TIDE_MS_DAY, "", LIVE_OWN, \
      "a condition that lasts is mailed again after this time; 0: only its end is") /* E6.4 */ \
    /* E7 supervision */ \
    N(STALL_AFTER, "stall.after", DURATION, 10 * TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", LIVE_OWN, \
      "a running job without a beat for this long is stalled") /* E7.1 */ \
    N(STALL_IGNORED_MAX, "stall.ignored_max", DURATION, TIDE_MS_MINUTE, 100, TIDE_MS_DAY, "", LIVE_OWN, \
      "a handler that ignores its cancellation this long loses its worker") /* E7.2 */ \
    N(RETRY_ATTEMPTS_MAX, "retry.attempts_max", INTEGER, 5, 1, 1000, "attempts", LIVE_OWN, \
      "retry budget of a job or batch") /* E6.1 */ \
    N(RETRY_BACKOFF_START, "retry.backoff_start", DURATION, TIDE_MS_SECOND, 1, TIDE_MS_HOUR, "", LIVE_OWN, \
      "pause before the first retry") /* E7.2 */ \
    N(RETRY_BACKOFF_FACTOR, "retry.backoff_factor", PERMILLE, 2000, 1000, 10000, "", LIVE_OWN, \
      "each further pause is this many times longer") /* E7.2 */ \
    N(RETRY_BACKOFF_MAX, "retry.backoff_max", DURATION, 5 * TIDE_MS_MINUTE, 1, TIDE_MS_DAY, "", LIVE_OWN, \
      "longest pause between retries") /* E7.2 */ \
    N(DISK_FREE_MIN, "disk.free_min", SIZE, 512 * TIDE_MIB, 0, 1024 * TIDE_TIB, "", NEXT_START, \
      "commands that write much stop before the disk has less than this left; 0: no check") /* E7.2 */ \
    T(MAIL_PUSH_TOPIC, "mail.push_topic", TEXT, "", 250, NULL, NEXT_START_OWN, \
      "the Pub/Sub topic to which Gmail publishes changes, as projects/P/topics/T; empty: none") /* J4 */ \
    /* K5, K7, K8, K11, K12 the reader */ \
    N(READER_POLL_ACTIVE, "reader.poll_active", DURATION, 5 * TIDE_MS_SECOND, TIDE_MS_SECOND, TIDE_MS_HOUR, "", LIVE_OWN, \
      "how often new mail is looked for while the reader's page is open") /* K7 */ \
    N(READER_POLL_PASSIVE, "reader.poll_passive", DURATION, 15 * TIDE_MS_MINUTE, TIDE_MS_MINUTE, TIDE_MS_DAY, "", LIVE_OWN, \
      "the same while no page is open, on battery, or on a metered link") /* K7 */ \
    T(READER_SAVING, "reader.saving", TEXT, "auto", 8, "auto|always|never", LIVE_OWN, \
      "look for mail rarely while a page is open: auto does so on battery and on a metered link") /* K7 */ \
    N(READER_WINDOW, "reader.window", DURATION, 30 * TIDE_MS_DAY, TIDE_MS_HOUR, 36500 * TIDE_MS_DAY, "", LIVE_OWN, \
      "how much of a mailbox the reader lists at first; the rest comes by scrolling") /* K8 */ \
    N(READER_OFFLINE, "reader.offline", DURATION, 0, 0, 36500 * TIDE_MS_DAY, "", LIVE_OWN, \
      "mail of this age is kept to be read without a network; 0: what was opened or pinned") /* K3 */ \
    N(READER_PAGE, "reader.page", INTEGER, 20, 1, 100, "messages", LIVE_OWN, \
      "messages of a list that are fetched at once") /* K6 */ \
    N(READER_CACHE, "reader.cache", SIZE, 1024 * TIDE_MIB, 16 * TIDE_MIB, TIDE_TIB, "", LIVE_OWN, \
      "beyond this size the cache of a mailbox drops the bodies used longest ago") /* K12 */ \
    N(READER_HOLD, "reader.hold", DURATION, 10 * TIDE_MS_SECOND, 0, 10 * TIDE_MS_MINUTE, "", LIVE_OWN, \
      "sending and deleting for good wait this long, to be undone") /* K11 */ \
    N(READER_QUIET, "reader.quiet", DURATION, 10 * TIDE_MS_SECOND, TIDE_MS_SECOND, TIDE_MS_HOUR, "", LIVE_OWN, \
      "a message that is being written is copied to the drafts at the server when nobody changed it for so long") \
    /* D1, D9: drives */ \
    N(DRIVE_WATCH, "drive.watch", BOOL, 1, 0, 1, "", LIVE_OWN, \
      "whether `tidemark serve` watches the folders of drives and syncs what changes") /* D9 */ \
    N(DRIVE_POLL, "drive.poll", DURATION, TIDE_MS_MINUTE, TIDE_MS_SECOND, TIDE_MS_DAY, "", LIVE_OWN, \
      "how often a watched drive is asked for changes online") /* D9 */ \
    N(DRIVE_RESCAN, "drive.rescan", DURATION, TIDE_MS_HOUR, TIDE_MS_MINUTE, 30 * TIDE_MS_DAY, "", LIVE_OWN, \
      "how often the whole folder of a watched drive is scanned; at least every 5 minutes where not all can be watched") /* D1 */ \
    /* M11: the archiver of mail */ \
    N(ARCHIVE_GUARD, "archive.guard", INTEGER, 1000, 1, 1000000000, "messages", LIVE_OWN, \
      "removing more than this from Gmail in one run has to be confirmed") /* M11 */ \
    /* E9, E11: what can be seen, settings themselves */ \
    T(LOG_LEVEL, "log.level", TEXT, "info", 8, "debug|info|warn|error|none", LIVE, \
      "lowest level that is logged; not set: the command's own default") /* E9.2 */ \
    N(LOG_FILE_BYTES, "log.file_bytes", SIZE, 16 * TIDE_MIB, 64 * 1024, TIDE_TIB, "", NEXT_START, \
      "tidemark.log is renamed to tidemark.log.1 before it grows beyond this") /* E9.4 */ \
    N(LOG_FILES, "log.files", INTEGER, 4, 1, 99, "files", NEXT_START, \
      "number of renamed log files that are kept") /* E9.4 */ \
    N(SETTINGS_RELOAD_EVERY, "settings.reload_every", DURATION, 2 * TIDE_MS_SECOND, 100, 5 * TIDE_MS_SECOND, "", LIVE, \
      "how often a running engine checks whether the settings file changed") /* E11.1 */
/* clang-format on */

/* Settings that are missing here are added with the part that reads them: leases and
 * grants of a fleet (E1.7, E4.1), priorities of future kinds (E3.4), spans and pages of
 * listings (E5.5),
 * Search Console's quotas per user and project.  Targets are tested, not set: refused
 * calls, recovery after a throttle (E4.3), the time of a halt (E4.6).  tests/unit/engine/tuning_test.c refuses a row
 * without an effect. */

#endif
