/* faults.h - what goes wrong on request, all of it from the seed.
 *
 * A rule names methods (a name or a prefix ending in '*'), optionally a user
 * and a message id, how often it strikes (rate 0..1, or the next `count`
 * calls, after skipping `after`), and what happens.  Rules are drawn in
 * order; the first that strikes wins; latency and trickle add up with it.
 * Each rule has its own chance, so that one more rule moves no other.
 *
 *   {"method":"gmail.users.messages.get","rate":0.01,"fault":"503"}
 *   {"method":"*","count":3,"fault":"reset-after"}
 *   {"method":"gmail.users.messages.get","id":"18c...","fault":"poison"}
 *
 * "poison" draws by message id instead of by call: the same messages fail for ever.
 * "batch" is a method here: a fault on it concerns the request as a whole, "*" does
 * not mean it (its parts are meant); a fault of the wire on a part cuts the whole answer.
 * "ms" of "429-time" is how far the told time lies ahead; "retry_after" (seconds) adds a
 * Retry-After header to "403-rate" "403-user-rate" "403-daily" "429" "500" "502" "503" "504".
 * "hidden" draws by message id as well: those messages are denied everywhere.
 *
 * Faults: "401" "403" (no permission) "403-rate" "403-user-rate" "403-daily" "404" "429"
 * "429-time" "500" "502" "503" "504"; "latency" (ms, jitter_ms); "stall-start" "stall-head"
 * "stall-body" (ms); "slow" (bytes_per_s); "reset-before" "reset-after"; "truncate";
 * "garbage"; "html"; "batch-missing" "batch-extra" "batch-reorder"; "page-loop"
 * "page-restart"; "history-expired"; "poison" (500 for ever); "list-shift"; "push-duplicate"
 * "push-loss"; lies: "list-empty" "list-short" "raw-half" "raw-empty" "history-garbled"
 * "history-ahead" "id-garbled" "hidden";
 * chat: "billing" "overloaded" "bad-json" "length" "no-usage" "invalid-arguments".
 *
 * Invariants:
 *   F1  same seed, same rules, same calls: same faults.
 *   F2  a fault "before" never lets the handler run; one "after" always does.
 */
#ifndef BOX_FAULTS_H
#define BOX_FAULTS_H

#include "cloudbox/gate/service.h"

struct box_faults *box_faults_new(uint64_t seed);
void box_faults_free(struct box_faults *faults);

/* One rule from its JSON; err names the field.  `id_out` numbers it. */
tide_status box_faults_add(struct box_faults *faults, const json_t *rule, uint32_t *id_out,
                           tide_error *err);
/* 0: all.  false: there is no such rule. */
bool box_faults_remove(struct box_faults *faults, uint32_t id);
/* [{"rule":1,"fault":"503","method":"*",...,"seen":n,"struck":n}] */
json_t *box_faults_list(const struct box_faults *faults);

/* Before the handler: fills the answer and returns true if the call ends here. */
bool box_faults_before(struct box_faults *faults, struct box_call *call);
/* After it: may spoil the answer or its way (plan). */
void box_faults_after(struct box_faults *faults, struct box_call *call);
/* Whether a rule of that name strikes this call, for handlers with faults of
 * their own ("page-loop", "list-shift", "batch-missing", the chat ones). */
bool box_faults_strikes(struct box_faults *faults, const struct box_call *call, const char *fault);

#endif
