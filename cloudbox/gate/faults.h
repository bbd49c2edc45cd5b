/* faults.h - failures that rules ask for, drawn from the seed.
 *
 * A rule names methods (a name or a prefix ending in '*'), optionally a user
 * and a message id, how often it strikes (rate 0..1, or the next `count`
 * calls, after skipping `after`), and what happens.  Rules are drawn in
 * order; the first that strikes wins; latency, trickle and held add up with it.
 * Each rule has its own chance, so that one more rule moves no other.
 *
 *   {"method":"gmail.users.messages.get","rate":0.01,"fault":"503"}
 *   {"method":"*","count":3,"fault":"reset-after"}
 *   {"method":"gmail.users.messages.get","id":"18c...","fault":"poison"}
 *
 * "poison" draws by item id instead of by call: the same messages always fail.
 * "batch" is a method here: a fault on it concerns the request as a whole, "*" does
 * not mean it (its parts are meant); a fault of the wire on a part cuts the whole answer.
 * "ms" of "429-time" is how far ahead the "Retry after" time is; "retry_after" (seconds) adds a
 * Retry-After header to "403-rate" "403-user-rate" "403-daily" "429" "500" "502" "503" "504".
 *
 * The faults that any service can meet are in faults_known.c; a service brings its own
 * (struct box_service, `faults`), and only its calls meet those.
 *
 * Invariants:
 *   BFLT1  same seed, same rules, same calls: same faults.
 *   BFLT2  a fault "before" never lets the handler run; one "after" always does.
 */
#ifndef BOX_FAULTS_H
#define BOX_FAULTS_H

#include "cloudbox/gate/service.h"

typedef enum box_fault_when {
    BOX_ANSWERS, /* instead of the handler (BFLT2): `act`, or `problem` */
    BOX_SPOILS,  /* after the handler: `act` changes the answer or its plan */
    BOX_ADDS,    /* latency, trickle, held: in addition to any other */
    BOX_ASKED,   /* a handler asks with box_faults_strikes() */
} box_fault_when;

/* What numbers its rules take. */
enum {
    BOX_TAKES_MS = 1,
    BOX_NEEDS_MS = 2,
    BOX_TAKES_JITTER = 4,
    BOX_NEEDS_SPEED = 8,
    BOX_TAKES_RETRY = 16,
};

/* What it means. */
enum {
    BOX_BY_ITEM = 1,    /* drawn by the id in the path, not by call */
    BOX_HIDES_ITEM = 2, /* an item is answered with 404, listings are spoiled */
    BOX_OF_BATCH = 4,   /* concerns batches as a whole */
    BOX_HOLDS = 8,      /* the answer is ready, and is sent when the rule is removed */
};

/* A rule that applies to a call, for `act`. */
struct box_strike {
    const struct box_fault *fault;
    uint32_t ms;   /* of the rule */
    tide_rng *rng; /* of the rule */
    /* Whether a rule that draws by item strikes the item. */
    bool (*strikes_item)(const struct box_strike *strike, tide_text id);
    const void *rule;
};

struct box_fault {
    const char *name; /* "503" */
    box_fault_when when;
    uint32_t takes;
    uint32_t ms; /* when a rule gives none */
    uint32_t means;
    struct box_problem problem;
    bool (*fits)(const struct box_call *call); /* NULL: any call */
    void (*act)(struct box_call *call, const struct box_strike *strike);
};

/* faults_known.c */
extern const struct box_fault box_faults_known[];
extern const size_t box_faults_known_count;

/* `services`: whose faults are known beside the gate's; NULL: none. */
struct box_faults *box_faults_new(uint64_t seed, const struct box_service *const *services);
void box_faults_free(struct box_faults *faults);

/* One rule from its JSON; err names the field.  `id_out` numbers it. */
tide_status box_faults_add(struct box_faults *faults, const json_t *rule, uint32_t *id_out,
                           tide_error *err);
/* 0: all.  false: there is no such rule. */
bool box_faults_remove(struct box_faults *faults, uint32_t id);
/* Whether that rule still stands. */
bool box_faults_has(const struct box_faults *faults, uint32_t id);
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
