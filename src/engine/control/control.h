/* control.h - requests of commands to the engine that holds their directory.
 *
 * The engine listens on `engine.sock` in its state directory (world/socket.h
 * carries lines; this page says what they mean).  A request is one JSON object
 * on one line, its answer another one:
 *
 *     {"op":"retry","filter":{"id":12}}
 *     {"ok":true,"count":1}
 *     {"ok":false,"status":"not_found","error":"there is no job 12"}
 *
 * The handler's own return value is TIDE_OK also when the answer is a refusal,
 * because TIDE_NOT_FOUND from world/socket.h means that no engine listens.
 *
 *   op              request fields                 fields of the answer
 *   ping            -                              pid, run, version, since (unix ms)
 *   snapshot        -                              snapshot (E9.1)
 *   explain         id                             why (TIDE_CONTROL_WHY_*), text,
 *                                                  until (unix ms, optional)
 *   retry           filter                         count
 *   cancel          filter                         count, running (ids being canceled)
 *   accept          filter                         count (failed ones become done, E5.2)
 *   pause, resume   kind and/or account            -
 *   halt            account, reason                -
 *   account_resume  account                        -
 *   purge           older_than_ms                  count
 *   bad_retry       account, kind, item, state,    count
 *                   expect
 *   bad_accept      the same                       count
 *   alerts          -                              alerts (array, as in --json)
 *   reload          -                              changed, restart (arrays of names)
 *   stop            -                              - (answers before it stops)
 *   enqueue         kind; account, payload,        id (of the waiting job, for a
 *                   dedupe, force                  duplicate); an unknown kind: not_found
 *   signed_in       account                        lifted (a pause for a sign-in ended)
 *   metrics         -                              text (metrics.h)
 *   series          name ("rate", "quota",         step_ms, end_unix_ms, series
 *                   "held"); span ("hour", "day"), [{account, values, window_max_units}]
 *                   account
 *
 * The program that has the engine may add ops of its own (tide_control_add()).
 *
 * A filter is an object; every field may be missing and then means "any":
 *     id, cycle   numbers
 *     account     a name, or "" for jobs without an account
 *     kind        a name
 *     state       "pending", "running", "done", "failed", "canceled"
 *     expect      so many jobs must match, or nothing is changed and the answer is "stale"
 * The fields account, kind, item, state and expect of bad_* may be missing in the same way.
 * Requests carry names, not numbers, so that a log of requests can be read.
 *
 * The names of the socket and of the lock that a writer holds are in ledger/home.h.
 */
#ifndef TIDE_ENGINE_CONTROL_H
#define TIDE_ENGINE_CONTROL_H

#include "base/json.h"
#include "ledger/home.h"
#include "ledger/ledger.h"

enum { TIDE_CONTROL_TIMEOUT_MS = 15000 };

typedef enum tide_control_op {
    TIDE_OP_PING,
    TIDE_OP_SNAPSHOT,
    TIDE_OP_EXPLAIN,
    TIDE_OP_RETRY,
    TIDE_OP_CANCEL,
    TIDE_OP_ACCEPT,
    TIDE_OP_PAUSE,
    TIDE_OP_RESUME,
    TIDE_OP_HALT,
    TIDE_OP_ACCOUNT_RESUME,
    TIDE_OP_PURGE,
    TIDE_OP_BAD_RETRY,
    TIDE_OP_BAD_ACCEPT,
    TIDE_OP_ALERTS,
    TIDE_OP_RELOAD,
    TIDE_OP_STOP,
    TIDE_OP_ENQUEUE,
    TIDE_OP_SIGNED_IN,
    TIDE_OP_METRICS,
    TIDE_OP_SERIES,
    TIDE_OPS,
} tide_control_op;

/* The words of `why` in the answer to "explain". */
#define TIDE_CONTROL_WHY_STARTING   "starting"   /* it is about to run */
#define TIDE_CONTROL_WHY_LANE_FULL  "lane_full"  /* all workers of its lane are busy */
#define TIDE_CONTROL_WHY_QUOTA      "quota"      /* its account has no units now */
#define TIDE_CONTROL_WHY_ORDER      "order"      /* other jobs go first */
#define TIDE_CONTROL_WHY_LEVEL      "level"      /* a user waits for another job (E3.3) */
#define TIDE_CONTROL_WHY_BACKOFF    "backoff"    /* the account waits after a failure */
#define TIDE_CONTROL_WHY_NO_HANDLER "no_handler" /* this engine does not know the kind */
#define TIDE_CONTROL_WHY_WINDOW     "window"     /* not loaded yet; other jobs are before it */

const char *tide_control_op_name(tide_control_op op);
bool tide_control_op_parse(tide_text name, tide_control_op *op_out);

const char *tide_row_state_name(tide_row_state state); /* "pending" */
bool tide_row_state_parse(tide_text name, tide_row_state *state_out);
const char *tide_bad_state_name(tide_bad_state state); /* "bad", "gone", "owed", ... */
bool tide_bad_state_parse(tide_text name, tide_bad_state *state_out);

/* ---- the command's side ---- */

/* Which jobs, by name; NULL and 0 mean any. */
struct tide_control_filter {
    uint64_t id;
    uint64_t cycle;
    const char *account;
    const char *kind;
    const char *state;
    bool expects; /* `expected` must match */
    uint64_t expected;
};
void tide_control_request(tide_control_op op, tide_json *request);
void tide_control_filter_set(tide_json *request, const struct tide_control_filter *filter);
/* Turns an answer into a status; err gets its text. */
tide_status tide_control_answer(const json_t *answer, tide_error *err);

/* ---- the engine's side ---- */

/* Finds the op of a request.  TIDE_INVALID: not a request. */
tide_status tide_control_op_read(const json_t *request, tide_control_op *op_out, tide_error *err);
/* The field "filter" of a request with its names looked up.  TIDE_NOT_FOUND: the ledger
 * has no such account or kind, err names it.  TIDE_INVALID: an unknown field. */
tide_status tide_control_filter_read(const json_t *request, tide_ledger *ledger,
                                     struct tide_job_filter *filter_out, tide_error *err);
/* The same for a filter that is not part of a request. */
tide_status tide_control_filter_find(const struct tide_control_filter *named, tide_ledger *ledger,
                                     struct tide_job_filter *filter_out, tide_error *err);
/* Adds an op, or replaces one of the engine's; `name` is static.  `answer` runs on the thread of its
 * connection, and may take up to TIDE_CONTROL_TIMEOUT_MS.  TIDE_FULL: TIDE_CONTROL_ADDED_MAX. */
enum { TIDE_CONTROL_ADDED_MAX = 16 };
typedef tide_status tide_control_fn(void *arg, const json_t *request, tide_json *answer,
                                    tide_error *err);
struct tide_engine;
tide_status tide_control_add(struct tide_engine *engine, const char *name, tide_control_fn *answer,
                             void *arg, tide_error *err);
/* Answers a request of a command that runs in this process, without the socket.  The caller owns the
 * answer; NULL: no memory, or the engine takes no requests. */
json_t *tide_control_here(struct tide_engine *engine, const json_t *request);
/* Removes the added ops and waits until none of them runs. */
void tide_control_remove_added(struct tide_engine *engine);
/* {"ok":true}, to which fields may be added; and a refusal. */
void tide_control_ok(tide_json *answer);
void tide_control_refusal(const tide_error *err, tide_json *answer);

#endif
