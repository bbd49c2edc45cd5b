/* alerts_record.h - the record of an account, shared by alerts.c and alerts_saved.c only. */
#ifndef TIDE_CORE_ALERTS_RECORD_H
#define TIDE_CORE_ALERTS_RECORD_H

#include "base/map.h"
#include "core/alerts/alerts.h"

enum { TIDE_ALERT_STEPS = 60, TIDE_ALERT_SLOTS = TIDE_ALERT_STEPS + 1 };
enum { TIDE_ALERT_WORD_BITS = 64 };
enum {
    TIDE_ALERT_WORDS = (TIDE_ALERT_ITEMS_MAX + TIDE_ALERT_WORD_BITS - 1) / TIDE_ALERT_WORD_BITS
};

/* Counts over a sliding window: one slot per step, plus one for the current step. */
struct tide_alert_series {
    uint64_t step; /* number of the newest one */
    uint64_t sum;
    uint32_t slots[TIDE_ALERT_SLOTS];
};

struct tide_alert_record {
    uint64_t account;
    struct tide_alerts_settings settings;
    bool own;                        /* they are this account's alone */
    uint64_t bits[TIDE_ALERT_WORDS]; /* the last items, 1: bad */
    uint32_t bits_at, bits_seen, bits_bad;
    struct tide_alert_series bad;
    struct tide_alert_series calls;
    struct tide_alert_series refused;
    uint64_t metadata_bytes;
    const char *queue;       /* in which a caller waits or waited; static */
    uint64_t waits_since_ms; /* of the caller that has waited longest; 0: none waits */
    uint64_t full_ms;        /* when the wait was last too long, */
    uint64_t full_waited_ms; /* and how long it was then */
    enum tide_level levels[TIDE_CONDITIONS];
    enum tide_level told[TIDE_CONDITIONS];
    uint64_t since_ms[TIDE_CONDITIONS];
};

struct tide_alerts {
    struct tide_alerts_settings settings; /* of accounts without their own */
    tide_mem *mem;
    struct tide_alert_record *records;
    size_t capacity;
    size_t count;
    tide_map places; /* account to record */
    size_t untold;
    uint64_t now_ms; /* of the last event: what `each` shows */
};

/* The record of an account, created on first use: TIDE_NO_MEMORY, TIDE_FULL. */
tide_status tide_alerts_record(tide_alerts *alerts, uint64_t account,
                               struct tide_alert_record **record_out);
/* Advances the windows of a record to alerts->now_ms and sets its levels by the thresholds. */
void tide_alerts_judge(tide_alerts *alerts, struct tide_alert_record *record);
/* Sets the level that was handed out last, and keeps ALE4. */
void tide_alerts_told_set(tide_alerts *alerts, struct tide_alert_record *record,
                          enum tide_condition condition, enum tide_level told);

#endif
