/* splitter.h - removes failing items from a batch (E6.1 to E6.3).
 *
 * From the result of an attempt it decides for each item: stored, gone, bad, owed, alone
 * from now on, or still in the batch; and for the rest of the batch: retried, split in two,
 * or put back because the cause lies outside.  It keeps no state between attempts: it needs
 * only a job's items and its attempts, which are in the ledger.  It does not decide that the
 * account is at fault; see badness.h, which has the last word before an item is recorded as
 * bad.
 *
 * Invariants (tide_splitter_check() tests them on a plan):
 *   SPT1  every item has exactly one fate; stored items never run again, and no item counts as
 *         stored that was not reported so.
 *   SPT2  attempts never decrease and grow by at most one; everything that continues inherits them,
 *         except an item that an error names in a batch: the batch's attempts were not its fault,
 *         and its own count begins with that error (E6.1, E6.2).
 *   SPT3  an item is bad or owed only if it was alone in its request, or if a permanent error named
 *         it.
 *   SPT4  the two halves keep the order and differ by at most one item.
 *   SPT5  every attempt makes progress: an item leaves, the attempts grow, the batch is split, or
 *         the cause lies outside.  So no batch runs forever.
 *
 * The bound of E6.3, k * (5 + 2 log2 n) extra requests for k bad items among n:
 * with k = 1 a batch costs 4 requests in one piece (1 of them not extra), then
 * 2 per halving, ceil(log2 n) times: 3 + 2 ceil(log2 n) < 5 + 2 log2 n.  Further
 * bad items share the 4 and part of the path.  An item that is named drops out
 * of a batch of at least two, which saves it a halving, and is tried alone 4 times
 * more.
 */
#ifndef TIDE_CORE_SPLITTER_H
#define TIDE_CORE_SPLITTER_H

#include "core/retry.h"

#include <stddef.h>

enum tide_seen {
    TIDE_SEEN_NOTHING, /* the attempt had no result for this item */
    TIDE_SEEN_STORED,  /* it is durably stored */
    TIDE_SEEN_ERROR,   /* an error named this very item: `status` */
};

struct tide_split_item {
    enum tide_seen seen;
    tide_status status; /* of an error; not TIDE_OK then */
};

struct tide_split_input {
    const struct tide_split_item *items;
    uint32_t count;           /* 1 .. TIDE_ITEMS_MAX */
    tide_status batch_status; /* TIDE_OK unless the attempt failed as a whole */
    uint32_t attempts;        /* charged before this attempt */
    uint32_t attempts_max;    /* 0: the policy's */
    uint64_t again_at_ms;     /* named by the provider; 0: not named */
};

enum tide_fate {
    TIDE_FATE_STORED,
    TIDE_FATE_GONE,   /* recorded as vanished, not bad */
    TIDE_FATE_BAD,    /* `reason`; the caller asks badness.h before recording it */
    TIDE_FATE_OWED,   /* stalls or resets the connection: badness.h decides since when */
    TIDE_FATE_ALONE,  /* becomes a job of its own in the same cycle */
    TIDE_FATE_FIRST,  /* stays; after a split: in the first half */
    TIDE_FATE_SECOND, /* in the second half */
    TIDE_FATES,
};

struct tide_item_fate {
    enum tide_fate fate;
    tide_status reason; /* of gone, bad, owed, alone; else TIDE_OK */
};

enum tide_rest {
    TIDE_REST_NONE,     /* no item is left: the job is done */
    TIDE_REST_RETRY,    /* the items with fate FIRST, at `at_ms` */
    TIDE_REST_SPLIT,    /* two jobs, FIRST and SECOND, at `at_ms` */
    TIDE_REST_PUT_BACK, /* FIRST, not before `at_ms`; `cause` may block the account */
};

struct tide_split_plan {
    enum tide_rest rest;
    uint32_t attempts;       /* inherited by the rest */
    uint64_t at_ms;          /* 0 with a blocking cause: when its probe succeeds */
    tide_class cause;        /* of a put back: what the account waits for, or TIDE_CLASS_OK */
    uint32_t alone_attempts; /* of each item that goes alone, this one included */
    uint64_t alone_at_ms;
    uint32_t counts[TIDE_FATES];
};

/* Fills `fates_out`, one per item, and `plan_out`.  TIDE_INVALID, with nothing
 * written: no items, too many, or an error without a status. */
tide_status tide_splitter_plan(const struct tide_retry_policy *policy,
                               const struct tide_split_input *input, uint64_t now_ms, tide_rng *rng,
                               struct tide_item_fate *fates_out, struct tide_split_plan *plan_out);

/* Asserts SPT1 to SPT5. */
void tide_splitter_check(const struct tide_split_input *input, const struct tide_item_fate *fates,
                         const struct tide_split_plan *plan);

#endif
