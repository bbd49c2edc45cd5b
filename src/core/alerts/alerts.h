/* alerts.h - decides when an operator should look at an account (E6.4).
 *
 * Counts per account what happens to items, calls, the metadata store and the queue,
 * compares with thresholds, and says which conditions hold and since when.  It writes no
 * log and sends no mail: the caller takes the changes out, and asks whether another mail
 * may be sent.
 *
 * A condition is raised as soon as its threshold is met, and lowered only when its measure
 * has fallen below `keep_percent` of it, so that alerts do not flicker.
 *
 * Time windows are kept in sixty steps, and the current step counts too, so an hour is at
 * least 60 and less than 61 minutes long.  Counts of items are exact.
 *
 * Invariants (tide_alerts_check() tests them):
 *   ALE1  every account has one record and is found by its id.
 *   ALE2  a window's sum is the sum of its steps; the bad items are the bits set.
 *   ALE3  a condition that does not hold has no `since`.
 *   ALE4  the number of pending changes matches the levels not yet handed out.
 */
#ifndef TIDE_CORE_ALERTS_H
#define TIDE_CORE_ALERTS_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

typedef struct tide_alerts tide_alerts;

enum { TIDE_ALERT_ITEMS_MAX = 10000 }; /* "the last 10,000 items" */

enum tide_condition {
    TIDE_ALERT_BAD_RATE,  /* bad among the last items */
    TIDE_ALERT_BAD_HOUR,  /* bad within an hour */
    TIDE_ALERT_METADATA,  /* bytes of the metadata store */
    TIDE_ALERT_THROTTLED, /* calls refused */
    TIDE_ALERT_QUEUE,     /* a queue stays at its bound */
    TIDE_CONDITIONS,
};

enum tide_level { TIDE_LEVEL_NONE, TIDE_LEVEL_WARN, TIDE_LEVEL_CRITICAL };

/* Settings (E11); tide_alerts_defaults() has the values of the spec.  A threshold of 0 switches
 * that level off. ppm: parts per million. */
struct tide_alerts_settings {
    uint32_t bad_window_items;      /* 10,000 */
    uint32_t bad_items_min;         /* 1,000: fewer items count as this many */
    uint32_t bad_warn_ppm;          /* >= 2,000 (0.2 %) */
    uint32_t bad_critical_ppm;      /* >= 10,000 (1 %) */
    uint64_t bad_hour_ms;           /* 1 h */
    uint32_t bad_hour_critical;     /* > 200 */
    uint64_t metadata_budget_bytes; /* 64 MiB */
    uint32_t metadata_warn_ppm;     /* >= 500,000 (50 %) */
    uint32_t metadata_critical_ppm; /* >= 800,000 (80 %) */
    uint64_t throttled_window_ms;   /* 10 min */
    uint32_t throttled_calls_min;   /* 100: fewer calls count as this many */
    uint32_t throttled_warn_ppm;    /* > 50,000 (5 %) */
    uint64_t queue_warn_ms;         /* 60 s: how long a caller has waited for room */
    uint64_t queue_clear_ms;        /* 10 s without such a wait */
    uint32_t keep_percent;          /* 80: of a threshold, below which it is lowered */
    uint64_t notify_every_ms;       /* 1 h: notices of one condition are so far apart */
    uint64_t notify_still_ms;       /* 1 day: a notice that it still holds; 0: none */
};
struct tide_alerts_settings tide_alerts_defaults(void);

struct tide_alert {
    uint64_t account;
    enum tide_condition condition;
    enum tide_level level;
    uint64_t since_ms;  /* when it left NONE; 0 if it is NONE */
    uint64_t value;     /* bad items, bytes, refused calls, or ms of waiting */
    uint64_t out_of;    /* items, budget or calls; 0: not used */
    uint64_t threshold; /* of its level, as set: ppm, count or ms */
    const char *queue;  /* which one; "" for other conditions */
};

/* TIDE_INVALID: settings out of range. */
tide_status tide_alerts_new(const struct tide_alerts_settings *settings, tide_mem *mem,
                            tide_alerts **alerts_out);
void tide_alerts_free(tide_alerts *alerts); /* NULL is fine. */
/* On a running daemon.  A window whose length changes starts empty. */
tide_status tide_alerts_set(tide_alerts *alerts, const struct tide_alerts_settings *settings);
/* The same for one account alone (E11.2), until it is forgotten; NULL: those of all accounts
 * again.  TIDE_INVALID, TIDE_NO_MEMORY, TIDE_FULL: nothing changed. */
tide_status tide_alerts_set_own(tide_alerts *alerts, uint64_t account,
                                const struct tide_alerts_settings *settings);

/* Events.  Account ids are not 0; a record is created on first use: TIDE_NO_MEMORY, TIDE_FULL
 * (TIDE_ACCOUNTS_MAX), with nothing changed. */
tide_status tide_alerts_items(tide_alerts *alerts, uint64_t account, uint64_t good, uint64_t bad,
                              uint64_t now_ms);
tide_status tide_alerts_calls(tide_alerts *alerts, uint64_t account, uint32_t calls,
                              uint32_t refused, uint64_t now_ms);
tide_status tide_alerts_metadata(tide_alerts *alerts, uint64_t account, uint64_t bytes,
                                 uint64_t now_ms);
/* A queue is at its bound while a caller waits for room in it.  `since_ms`: since when the
 * caller that has waited longest waits; 0: no caller waits.  `queue` is static: "finished jobs". */
tide_status tide_alerts_queue(tide_alerts *alerts, uint64_t account, const char *queue,
                              uint64_t since_ms, uint64_t now_ms);
/* Time passed without events. */
void tide_alerts_tick(tide_alerts *alerts, uint64_t now_ms);
void tide_alerts_forget(tide_alerts *alerts, uint64_t account); /* it was removed */

/* Saving (E6.4): an alert belongs to the home, not to the process that raised it.  Prints the
 * windows and levels of an account as text.  TIDE_NOT_FOUND: there are none. */
tide_status tide_alerts_save(const tide_alerts *alerts, uint64_t account, uint64_t now_ms,
                             uint64_t now_unix_ms, tide_buf *text);
/* Restores saved text, aged by the time since then; replaces the account's record.  A window
 * whose configured length has changed starts empty.  TIDE_CORRUPT, TIDE_NEWER, TIDE_NO_MEMORY,
 * TIDE_FULL: nothing changed. */
tide_status tide_alerts_restore(tide_alerts *alerts, uint64_t account, tide_text saved,
                                uint64_t now_ms, uint64_t now_unix_ms);
/* The ledger shows this level to users.  If it no longer holds, the next change says so. */
tide_status tide_alerts_shown(tide_alerts *alerts, uint64_t account, enum tide_condition condition,
                              enum tide_level level, uint64_t now_ms);

/* Takes out the next change of level, to be logged; false: none.  A condition that was raised
 * and lowered in between is not reported. */
bool tide_alerts_next(tide_alerts *alerts, struct tide_alert *alert_out,
                      enum tide_level *before_out);
/* When to tick again; UINT64_MAX: not needed. */
uint64_t tide_alerts_wake_at_ms(const tide_alerts *alerts);

/* All that hold, one per call; `*cursor_io` starts at 0. */
bool tide_alerts_each(const tide_alerts *alerts, size_t *cursor_io, struct tide_alert *alert_out);

/* Whether a mail about one condition may be sent; if so, records the time.  `*last_unix_ms_io`
 * is durable, one per account and condition, 0 at first.  If it lies in the future the clock
 * jumped back: the hour starts again from now. */
bool tide_alerts_may_notify(const struct tide_alerts_settings *settings, uint64_t now_unix_ms,
                            uint64_t *last_unix_ms_io);

/* "bad_rate", "throttled"; "warn", "critical". */
const char *tide_condition_name(enum tide_condition condition);
/* false: not a condition of the engine; a system built on it may have its own. */
bool tide_condition_parse(const char *name, enum tide_condition *condition_out);
const char *tide_level_name(enum tide_level level);
/* One line for display, without the account: "25 of the last 10000 items are bad (0.25 %)".
 * Always terminated; returns the bytes written. */
size_t tide_alert_print(const struct tide_alert *alert, char *text_out, size_t text_bytes);

void tide_alerts_check(const tide_alerts *alerts);

#endif
