/* budget.h - how many tokens a day the calls of a chat account may cost (J19, J27).
 *
 * A call costs what its answer says, which is known after it; so before it an estimate is held
 * (tide_chat_cost_of()) and settled after it.  A day is one of UTC, and a call counts for the day on
 * which it began.
 *
 *     transaction: hold            TIDE_AGAIN: not before the next day
 *     the call
 *     transaction: settle
 *
 * A process can die between the two, and then it is not known whether the provider counted the call.
 * It is taken for made: what it held becomes spent, when its time is over or when the call is made
 * again.  A call that certainly cost nothing (refused, not sent) is settled with nothing.
 *
 * Tables, beside the ledger on both databases, so that all processes of a fleet share a budget:
 *   assistant_budget_day   (account, day) -> tokens spent, tokens held
 *   assistant_budget_held  (account, call) -> what the call holds, until when
 *   assistant_budget_cost  (account, day, model) -> calls and tokens, for display
 *
 * All functions run inside a transaction.
 *
 * Invariants:
 *   BUD1  the day's spent + held <= the limit after every hold that was granted under that limit.  Two
 *         processes at once do not both get the last tokens: the day's row is locked first.
 *   BUD2  a call is counted once, however often its end is written.
 *   BUD3  held is the sum of the day's rows in assistant_budget_held.
 */
#ifndef TIDE_ASSISTANT_BUDGET_H
#define TIDE_ASSISTANT_BUDGET_H

#include "db/rows.h"

enum { TIDE_ASSISTANT_MODEL_BYTES = 204 };
#define TIDE_ASSISTANT_DAY_MS UINT64_C(86400000)

tide_status tide_assistant_budget_tables(tide_rows db, tide_error *err);

/* Of two limits of a day the one that counts; 0: none. */
uint64_t tide_assistant_smaller_budget(uint64_t a, uint64_t b);
/* The day of a time, and when it ends. */
uint64_t tide_assistant_day_of(uint64_t unix_ms);
uint64_t tide_assistant_day_end(uint64_t unix_ms);

struct tide_assistant_hold {
    uint32_t account;
    uint64_t call;   /* a number of the call that is never used again */
    tide_text model; /* for the costs */
    uint64_t tokens; /* at most, by estimate */
    uint64_t limit;  /* of a day; 0: none */
    uint64_t now_unix_ms;
    uint64_t until_unix_ms; /* the call is over or dead by then */
};
/* Holds the tokens of a call.  If this call holds some already, an earlier try of it died: they count as
 * spent.  TIDE_AGAIN: not before *again_unix_ms_out, and err says why. */
tide_status tide_assistant_budget_hold(tide_rows db, const struct tide_assistant_hold *hold,
                                       uint64_t *again_unix_ms_out, tide_error *err);

struct tide_assistant_used {
    uint64_t in_tokens, out_tokens;
    bool estimated; /* the server did not say */
    bool nothing;   /* the call was not made, or refused: it cost nothing and is not counted */
};
/* The call ended.  Without a hold (settled before, or expired) nothing changes (BUD2). */
tide_status tide_assistant_budget_settle(tide_rows db, uint32_t account, uint64_t call,
                                         const struct tide_assistant_used *used, tide_error *err);
/* Holds whose time is over count as spent.  tide_assistant_budget_hold() does it for its account. */
tide_status tide_assistant_budget_expire(tide_rows db, uint32_t account, uint64_t now_unix_ms,
                                         uint64_t *expired_out, tide_error *err);

/* ---- for display ---- */

struct tide_assistant_left {
    uint64_t spent, held;   /* today */
    uint64_t left;          /* of the limit; UINT64_MAX: there is none */
    uint64_t again_unix_ms; /* when the day ends */
};
tide_status tide_assistant_budget_left(tide_rows db, uint32_t account, uint64_t limit,
                                       uint64_t now_unix_ms, struct tide_assistant_left *left_out,
                                       tide_error *err);

struct tide_assistant_cost {
    uint32_t account;
    uint64_t day;
    char model[TIDE_ASSISTANT_MODEL_BYTES];
    uint64_t calls, in_tokens, out_tokens;
    uint64_t estimated; /* calls whose server did not say */
    uint64_t lost;      /* calls that died, and were counted by their estimate */
};
/* From this day on, by day, account and model.  `account` 0: of all. */
tide_status tide_assistant_budget_costs(tide_rows db, uint32_t account, uint64_t from_day,
                                        void (*visit)(const struct tide_assistant_cost *cost,
                                                      void *arg),
                                        void *arg, tide_error *err);

/* ---- cleaning up ---- */

/* The account is removed. */
tide_status tide_assistant_budget_drop(tide_rows db, uint32_t account, tide_error *err);

#endif
