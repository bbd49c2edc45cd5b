/* notices.h - decides when a user is told of an alert outside of this program, by mail for example
 * (E6.4).
 *
 * One state for each condition of an account, kept by the ledger (ledger/notices.h).  A notice says
 * that a condition holds, that it still holds, or that it has ended; the state says what the user
 * was told last, and what may have been told just before a crash.
 *
 *           intent durable              outcome durable
 *   (rest) ----------------> (in flight) --------------> (rest)     sent, or refused
 *                                 |  ^
 *                                 +--+  unknown, or the process died: the same notice again (E1.9)
 *
 * Invariants:
 *   NTC1  two notices of one state are at least `notify_every_ms` apart, the all-clear included;
 *         only one whose outcome is unknown is repeated earlier, and it is the same notice.
 *   NTC2  an all-clear follows a notice that was sent; a condition that ended before its notice was
 *         sent is not told of at all.
 */
#ifndef TIDE_CORE_ALERTS_NOTICES_H
#define TIDE_CORE_ALERTS_NOTICES_H

#include "core/alerts/alerts.h"

enum tide_notice_kind {
    TIDE_NOTICE_NONE,
    TIDE_NOTICE_RAISED, /* it holds, or is critical now */
    TIDE_NOTICE_STILL,  /* it still holds */
    TIDE_NOTICE_CLEAR,  /* it has ended */
};

enum {
    TIDE_NOTICE_RETRY_FIRST_MS = 60 * 1000,    /* after a refusal; doubles */
    TIDE_NOTICE_RETRY_MAX_MS = 15 * 60 * 1000, /* also after one that is final */
    TIDE_NOTICE_FAILURES_TOLD = 3,             /* then the user is told of them */
};

/* Durable; zeroed at first.  Times are wall times. */
struct tide_notice_state {
    int told;                     /* the level that the user knows; 0: none, or the all-clear */
    uint64_t sent_unix_ms;        /* when a notice was sent last; 0: never */
    uint64_t ended_unix_ms;       /* when the condition was found to have ended; 0: it holds */
    bool in_flight;               /* a notice may have been sent */
    uint64_t taken_until_unix_ms; /* of one in flight: until then its process sends it */
    uint32_t failures;            /* since the last one that was sent */
    uint64_t retry_unix_ms;       /* not before; 0: at once */
};

/* What to do next, and when; `kind` NONE: nothing, ever. */
struct tide_notice_order {
    enum tide_notice_kind kind;
    bool again; /* the one in flight, unchanged */
    uint64_t at_unix_ms;
};

/* `level`: of the alert now; 0: the condition does not hold. */
struct tide_notice_order tide_notice_next(const struct tide_alerts_settings *settings,
                                          const struct tide_notice_state *state, int level,
                                          uint64_t now_unix_ms);
/* Brings the state up to what is true now: whether the condition ended, failures to send what need
 * not be sent any more, times that a clock left in the future.  Returns whether it changed; it must
 * be durable before the next decision. */
bool tide_notice_settle(const struct tide_alerts_settings *settings,
                        struct tide_notice_state *state, int level, uint64_t now_unix_ms);

/* How a notice ended. */
enum tide_notice_end {
    TIDE_NOTICE_SENT,
    TIDE_NOTICE_REFUSED, /* not sent; another try may succeed */
    TIDE_NOTICE_FINAL,   /* not sent, and only a user can change that */
    TIDE_NOTICE_UNKNOWN, /* it may have been sent */
};
/* `level`: of the notice; 0: the all-clear.  `again`: it may have been sent before, so a refusal does
 * not end it: without an outcome of the first try the user may wait for the all-clear. */
void tide_notice_ended(struct tide_notice_state *state, int level, bool again,
                       enum tide_notice_end end, uint64_t now_unix_ms);

#endif
