/* badness.h - decides whether a failing item or its whole account is at fault (E6.2).
 *
 * There is one per account.  It gets the outcome of every item that was tried on its own or
 * named by an error, and has the last word before an item is recorded as bad.  It blames no
 * item as long as nothing else succeeds.  When too many items fail it asks for a probe of an
 * item that is known to be good; if that fails too, it orders the account to halt instead
 * of marking a mailbox bad.  It stores no bad items and starts no requests.
 *
 * Items are identified by a non-zero 64-bit number (an id or a hash of one).  Memory is
 * allocated once; if more items fail than can be watched, the item with the oldest last
 * failure is forgotten and starts from zero, which delays its verdict and never makes it
 * worse.
 *
 * Invariants (tide_badness_check() tests BAD1 and BAD2):
 *   BAD1  at most `suspects_max` items are watched, each once.
 *   BAD2  `failed_in_a_row` and the count over the last 100 match the outcomes reported.
 *   BAD3  no item is bad while the account is in doubt or halted, or unless another item succeeded
 *         since it first failed.  Nor is one vanished: a provider that denies everything would
 *         empty an account.
 *   BAD4  throttling, network, sign-in, disk and cancellation never count.
 *   BAD5  an item is bad only if all its own errors were the same; one whose errors vary becomes
 *         owed, so it does not block forever.  So does one without any other item to compare with.
 *   BAD6  an order is repeated until it was carried out: a probe until it is answered, a halt until
 *         tide_badness_halted().
 *   BAD7  while another item fails too, an item is bad only after three errors of its own, or
 *         after `attempts_max` if that is less.  The attempts that a part inherits from its batch
 *         (E6.1) may all be the fault of that other item.  They are the fault of an item that
 *         fails while no other one does.
 *
 * BAD7 and the bound of E6.3: with n items, L = log2 n rounded up, and k > 1 bad ones, the batch
 * costs 3 extra requests, its halves at most 2 (k L - k + 1), and each bad item 2 more alone.
 * That is 2 k L + 5, and k (5 + 2 log2 n) is more than 2 k L + 3 k.
 */
#ifndef TIDE_CORE_BADNESS_H
#define TIDE_CORE_BADNESS_H

#include "base/mem.h"
#include "base/status.h"

typedef struct tide_badness tide_badness;

enum { TIDE_BADNESS_WINDOW = 100 }; /* "the last 100" of E6.2 */

/* Settings (E11); tide_badness_defaults() has the values of the spec. */
struct tide_badness_settings {
    uint32_t attempts_max;          /* 5 */
    uint32_t row_max;               /* 20 items in a row are suspicious */
    uint32_t window_failed_max;     /* and so are more than 50 of the last 100 */
    uint32_t stalls_min;            /* 5 stalls */
    uint64_t stalls_over_ms;        /* over at least 10 min make an item owed */
    uint64_t pause_first_ms;        /* 1 s, until a verdict */
    uint32_t pause_factor_permille; /* 2000: each further one is twice as long */
    uint64_t pause_max_ms;          /* 5 min */
    uint64_t owed_first_ms;         /* 10 min, doubling, for owed items */
    uint64_t owed_max_ms;           /* 24 h */
    uint64_t probe_again_ms;        /* 1 min until a probe without an answer is repeated */
    uint32_t suspects_max;          /* TIDE_SUSPECTS_MAX at most */
};
struct tide_badness_settings tide_badness_defaults(void);

struct tide_item_outcome {
    uint64_t item;      /* not 0 */
    tide_status status; /* TIDE_OK: it succeeded */
    uint64_t detail;    /* tells errors of one status apart: a code, a hash of its reason */
    uint32_t attempts;  /* charged to the item so far, this one included (E6.1) */
    bool retried;       /* alone, and attempts are left: its error is noted and not judged */
};

enum tide_item_verdict {
    TIDE_ITEM_GOOD,
    TIDE_ITEM_VANISHED,  /* recorded as gone, not bad */
    TIDE_ITEM_BLAMELESS, /* the cause lies outside: as if it had not been tried */
    TIDE_ITEM_AGAIN,     /* try it again at `at_ms` */
    TIDE_ITEM_HELD,      /* attempts used up, but not proven bad: try again at `at_ms` */
    TIDE_ITEM_BAD,       /* record it; it blocks nothing */
    TIDE_ITEM_OWED,      /* record it as owed, try it again at `at_ms`; it blocks nothing */
};

struct tide_badness_verdict {
    enum tide_item_verdict kind;
    uint64_t at_ms;    /* of again, held and owed; else 0 */
    uint32_t failures; /* of the item itself, as far as remembered */
};

enum tide_badness_order_kind {
    TIDE_BADNESS_PROBE, /* try `item` and report with tide_badness_probed() */
    TIDE_BADNESS_HALT,  /* halt the account (E4.6) */
};

struct tide_badness_order {
    enum tide_badness_order_kind kind;
    uint64_t item;            /* to probe; 0: none known here, use any stored item */
    uint32_t failed_in_a_row; /* why */
    uint32_t failed_of_last;
};

/* TIDE_INVALID: settings out of range.  The caller owns the result. */
tide_status tide_badness_new(const struct tide_badness_settings *settings, tide_mem *mem,
                             tide_badness **badness_out);
void tide_badness_free(tide_badness *badness); /* NULL is fine. */
/* On a running engine.  TIDE_INVALID: out of range, or another suspects_max;
 * nothing changed. */
tide_status tide_badness_set(tide_badness *badness, const struct tide_badness_settings *settings);

/* Feeds one outcome of one item.  Never fails, never allocates. */
struct tide_badness_verdict
tide_badness_item(tide_badness *badness, const struct tide_item_outcome *outcome, uint64_t now_ms);

/* Takes out the next order; false: none now.  An order that is not carried out is repeated after
 * `probe_again_ms`. */
bool tide_badness_next(tide_badness *badness, uint64_t now_ms,
                       struct tide_badness_order *order_out);
/* When to call tide_badness_next() again without a new outcome; UINT64_MAX: not needed. */
uint64_t tide_badness_wake_at_ms(const tide_badness *badness);

/* Reports how the probe ended:
 *   TIDE_OK          clears the suspicion
 *   vanished item    the next one is probed
 *   outside causes   probed again later; so is a failing server while only a single item is
 *                    in doubt
 *   TIDE_NOT_FOUND   nothing to probe with: a suspicion halts, a single item is owed
 *   anything else    halts */
void tide_badness_probed(tide_badness *badness, tide_status status, uint64_t now_ms);

/* Asks for a probe because something else points at the account. */
void tide_badness_doubt(tide_badness *badness, uint64_t now_ms);

/* The account is halted, durably. */
void tide_badness_halted(tide_badness *badness);

/* The owner resumed the account: clears counts and doubts, keeps the suspects. */
void tide_badness_resumed(tide_badness *badness);

struct tide_badness_view {
    uint32_t suspects;
    uint32_t failed_in_a_row;
    uint32_t failed_of_last; /* of the last TIDE_BADNESS_WINDOW items */
    bool suspicious;         /* a probe is wanted or under way */
    bool halted;
};
struct tide_badness_view tide_badness_view(const tide_badness *badness);

void tide_badness_check(const tide_badness *badness);

#endif
