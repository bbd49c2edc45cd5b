/* meters.h - what an engine counts for display and metrics alone; no decision uses it (E9.1).
 *
 * All of it is in memory, since the start of this process, and under the engine's lock.
 *
 * Invariants:
 *   MTR1  a count never decreases, also when the governor of an account is replaced because another
 *         process had the account meanwhile.
 *   MTR2  bounded: the systems and methods that are seen first have a place each; the last place
 *         counts all others.  HTTP codes are a fixed list, whatever a server answers.
 */
#ifndef TIDE_ENGINE_METERS_H
#define TIDE_ENGINE_METERS_H

#include "base/limits.h"
#include "base/mem.h"
#include "core/governor/governor.h"
#include "core/tracker.h"
#include "metrics/histogram.h"
#include "metrics/lines.h"
#include "tidemark_inside.h"

#include <jansson.h>

enum {
    TIDE_METER_SYSTEMS_MAX = 16,
    TIDE_METER_METHODS_MAX = TIDE_METRICS_METHODS_MAX,
    TIDE_METER_PROVIDERS_MAX = 16,
    TIDE_METER_CLASSES = TIDE_CLASS_BUG + 1,
    TIDE_METER_CODES = 32,
};

/* A system: the part of a kind's name before the first point. */
struct tide_meter_system {
    char name[33];
    uint64_t done, failed, canceled;  /* jobs that ended */
    tide_histogram duration;          /* of runs of a handler */
    uint32_t loaded[TIDE_JOB_STATES]; /* as counted by tide_accounts_count() */
};

struct tide_meter_method {
    char name[33 + 64]; /* "gmail.messages.get" */
    tide_histogram duration;
};

struct tide_meters {
    struct tide_meter_system systems[TIDE_METER_SYSTEMS_MAX];
    size_t systems_count;
    struct tide_meter_method methods[TIDE_METER_METHODS_MAX];
    size_t methods_count;
    tide_histogram batches; /* requests that carried several calls */
    struct {
        char provider[33];
        tide_method_name *name_of;
    } named[TIDE_METER_PROVIDERS_MAX]; /* tide_engine_methods() */
    size_t named_count;
};

/* Why an account may make no call. */
enum tide_blocked {
    TIDE_BLOCKED_NOT,
    TIDE_BLOCKED_PAUSED, /* by command */
    TIDE_BLOCKED_HALTED,
    TIDE_BLOCKED_THROTTLED,
    TIDE_BLOCKED_SERVER,
    TIDE_BLOCKED_AUTH,
    TIDE_BLOCKED_NETWORK,
    TIDE_BLOCKED_DISK,
    TIDE_BLOCKED_OTHER,
    TIDE_BLOCKED_REASONS,
};

/* The calls of an account; there from its first call on. */
struct tide_meter_calls {
    uint64_t by_class[TIDE_METHODS_MAX][TIDE_METER_CLASSES];
    uint64_t failed_by_code[TIDE_METER_CODES]; /* calls that failed, by the HTTP code */
    uint8_t method_at[TIDE_METHODS_MAX]; /* its place in tide_meters, from 1; 0: not looked up */
    uint64_t units, bytes_down, bytes_up;
};

struct tide_account_meters {
    struct tide_meter_calls *calls; /* NULL: none yet */
    enum tide_blocked blocked;      /* as last seen, at ... */
    uint64_t blocked_seen_ms, blocked_until_ms;
    uint64_t blocked_ms[TIDE_BLOCKED_REASONS];
};

struct tide_account;
struct tide_job;
struct tide_engine;

/* The place of a kind's system. */
uint8_t tide_meters_system(struct tide_meters *meters, const char *kind_name);
/* A handler returned. */
void tide_meters_ran(struct tide_job *job, uint64_t run_ms);
/* A call was answered; the bytes are those of both bodies. */
void tide_meters_called(struct tide_engine *engine, struct tide_account *account,
                        const struct tide_answer *answer, uint64_t bytes_down, uint64_t bytes_up);
/* A part of a batch was answered, and not with 2xx. */
void tide_meters_part_failed(struct tide_engine *engine, struct tide_account *account, int http);
/* Adds the time since the last look, and looks again.  Call it when the account may have been blocked
 * or unblocked; the end of a pause is known before. */
void tide_meters_blocked(struct tide_account *account, uint64_t now_ms);
void tide_account_meters_free(struct tide_account_meters *meters, tide_mem *mem);

/* For a snapshot: "work", "methods", "batches" and "limits" (of projects) of the engine; "calls_by_method",
 * "errors_by_code", "units", "bytes_down", "bytes_up" and "blocked_ms" of an account. */
void tide_meters_json(struct tide_engine *engine, uint64_t now_ms, json_t *json);
void tide_account_meters_json(struct tide_engine *engine, struct tide_account *account,
                              json_t *json);
/* {"counts": [], "sum_us"}, and back; what is missing counts as 0. */
json_t *tide_histogram_json(const tide_histogram *histogram);
tide_histogram tide_histogram_of(const json_t *json);

#endif
