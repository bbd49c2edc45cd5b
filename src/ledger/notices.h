/* notices.h - which notices of alerts were sent, are being sent, and are due: rows beside the ledger
 * (E6.4).
 *
 * core/alerts/notices.h decides; here a decision becomes durable before anything is sent (E1.9), and of
 * several processes on a shared ledger one gets the notice.  The row of a notice in flight has all
 * that the notice says and its tag, so that a repetition after a crash is the same one.
 *
 *     A takes the notice: its tag, owner A, until 10:02        (durable)
 *     A sends it and dies; or it loses the ledger
 *     10:02, or at once on a ledger of one process: B takes the row, again with the same tag
 *
 * Invariants:
 *   NTR1  every change names the version it read; of two processes that decided on the same row the
 *         second changes nothing.
 *   NTR2  a row with a tag is not forgotten before its outcome is stored.
 */
#ifndef TIDE_LEDGER_NOTICES_H
#define TIDE_LEDGER_NOTICES_H

#include "core/alerts/notices.h"
#include "db/rows.h"
#include "ledger/ledger.h"

#define TIDE_NOTICES_TABLES "notice" /* their names begin with it and '_' */
/* The alert that notices cannot be sent: no account, and no notice of its own. */
#define TIDE_NOTICES_CONDITION "notices"

enum { TIDE_NOTICE_TAG_BYTES = 32 };

/* A notice, as it is sent. */
struct tide_notice_row {
    char condition[49];
    uint32_t account; /* 0: none */
    char account_name[201];
    struct tide_notice_state state;
    uint64_t version;
    /* Of the one in flight. */
    char tag[TIDE_NOTICE_TAG_BYTES + 1]; /* "": none */
    enum tide_notice_kind kind;
    int level; /* 0: the all-clear */
    uint64_t since_unix_ms, made_unix_ms;
    char text[401];
    bool again; /* it may have been sent before */
    char owner[33];
};

/* Creates what is missing. */
tide_status tide_notices_tables(tide_rows rows, tide_error *err);

struct tide_notices_ask {
    /* What counts for an account, 0: for none; false: no notice of it is wanted. */
    bool (*settings_of)(void *arg, uint32_t account, struct tide_alerts_settings *settings_out);
    void *settings_arg;
    const char *owner; /* this process; at most 32 bytes */
    const char *tag;   /* for a new notice: random */
    bool alone;        /* no other process works on this ledger */
    uint64_t lease_ms; /* for sending it */
    uint64_t now_unix_ms;
};
/* Takes the notice that is due, if there is one: then row_out->tag is set.  *next_unix_ms_out: when
 * to look again; now, if another process was faster; UINT64_MAX: after the next change of an
 * alert. */
tide_status tide_notices_take(tide_rows rows, const struct tide_notices_ask *ask,
                              struct tide_notice_row *row_out, uint64_t *next_unix_ms_out,
                              tide_error *err);
/* Stores how it ended, with the error if it did.  Nothing changes if another process has taken it
 * meanwhile. */
tide_status tide_notices_end(tide_rows rows, const struct tide_notice_row *row,
                             enum tide_notice_end end, const char *error, uint64_t now_unix_ms,
                             tide_error *err);
/* Forgets failures, so that the next look tries again. */
tide_status tide_notices_retry(tide_rows rows, tide_error *err);
/* The error of a notice that a user should know of; "": there is none. */
tide_status tide_notices_failing(tide_rows rows, char *error_out, size_t error_bytes,
                                 tide_error *err);

#endif
