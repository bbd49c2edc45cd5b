/* status.h - reads the state of an account, for `mail status`, the live display and commands that
 * watch another process.
 *
 * Reads only, from a ledger and an archive opened for reading, so it works with or without a
 * running engine.  It starts nothing, waits for nothing and changes nothing.
 *
 * Invariants (tide_mail_look_check()):
 *   MST1  the spans are in the order of their cycles; each begins at its stated time and is either
 *         covered or a gap, never both.
 *   MST2  no span is behind the tidemark: what is there is finished.
 *   MST3  a look without gaps has no job left in any cycle.
 */
#ifndef TIDE_MAIL_LOOK_H
#define TIDE_MAIL_LOOK_H

#include "ledger/ledger.h"
#include "mail/archive/archive.h"

/* What a span of time waits for; of several states the later one wins. */
typedef enum tide_span_state {
    TIDE_SPAN_COVERED = 0, /* finished, but something before it is not */
    TIDE_SPAN_FETCHING,    /* listed; messages_left are to be fetched */
    TIDE_SPAN_LISTING,     /* its listing is not finished */
    TIDE_SPAN_CHANGES,     /* its changes are not all read */
    TIDE_SPAN_FAILED,      /* jobs failed or were canceled: the user decides */
} tide_span_state;

struct tide_mail_span {
    uint64_t ordinal;
    uint64_t from_ms, to_ms; /* [from, to); 0: from the beginning */
    tide_span_state state;
    uint64_t jobs_left;
    uint64_t messages_left; /* known so far */
    uint64_t failed;        /* jobs */
    uint64_t bad;           /* messages */
};

struct tide_mail_look {
    tide_mem *mem;
    uint32_t account;
    char email[256];
    char endpoint[512];      /* "": Google's */
    uint64_t messages_total; /* as the server reported at the last plan; 0: unknown */
    uint64_t last_run_ms;    /* when its plan was made; 0: never */
    uint64_t since_ms;       /* the tidemark covers what came after; 0: from the beginning */
    char notice[400];        /* warning for the user, such as a loss in the archive; "" */

    size_t shards_lost; /* tide_mail_look_proof(): shards that differ from the ledger's record */

    /* The stream. */
    uint64_t tidemark_ms; /* 0: none yet */
    uint64_t moved_ms;    /* when the tidemark moved last */
    uint64_t cycles, cycles_open;
    char history_id[64]; /* the adopted one; "" */

    /* The account in the engine. */
    bool paused, halted;
    char halt_reason[401];
    bool signed_out;  /* its sign-in was refused, and no call has succeeded since */
    uint64_t owner;   /* on a shared ledger: the process that leases it; 0: none */
    char archive[65]; /* the id of its archive; "": none yet */

    /* Only in a full look. */
    struct tide_mail_span *spans; /* owned; at and beyond the tidemark */
    size_t spans_count, spans_capacity;
    uint64_t jobs_left; /* pending and running, outside of cycles too */
    uint64_t
        jobs_healing; /* of them, outside of cycles: messages that are checked or fetched again */
    uint64_t jobs_exact; /* and those that replace held copies (M18) */
    uint64_t jobs_running;
    uint64_t jobs_failed;
    uint64_t messages_left;                 /* in jobs that are not done; without held ones */
    bool listing;                           /* the remaining work is not fully known yet */
    uint64_t bad, owed, accepted, retrying; /* items of the mail system's kinds */
};

void tide_mail_look_init(struct tide_mail_look *look, tide_mem *mem);
void tide_mail_look_done(struct tide_mail_look *look); /* a zeroed one is fine */
/* Reads the state again.  Without `full`, fields that need a walk over the jobs keep their values.
 * TIDE_NOT_FOUND: no account of the mail system; the look is unchanged. */
tide_status tide_mail_look(tide_ledger *ledger, const char *email, bool full,
                           struct tide_mail_look *look, tide_error *err);
/* Since when everything up to the newest slice is stored, bad or gone, though older mail is not; 0:
 * there is no such time.  Where the newest mail is fetched first, the tidemark waits for the oldest. */
uint64_t tide_mail_look_complete_since(const struct tide_mail_look *look);
/* Whether no work of a run is left, according to a full look. */
bool tide_mail_look_settled(const struct tide_mail_look *look);
bool tide_mail_look_check(const struct tide_mail_look *look);
/* Compares the archive (NULL: there is none) with the ledger's record (M4): reports losses in the
 * notice and sets the tidemark to where it will fall back.  Changes nothing on disk. */
tide_status tide_mail_look_proof(tide_ledger *ledger, tide_archive *archive,
                                 struct tide_mail_look *look, tide_error *err);

/* Whether a job kind belongs to the mail system. */
bool tide_mail_kind_is_ours(tide_text kind_name);

struct tide_mail_kept {
    uint64_t stored;
    uint64_t raw_bytes;     /* as they were sent */
    uint64_t archive_bytes; /* of the files */
    size_t shards;
    int64_t oldest_ms, newest_ms; /* 0: none */
};
tide_status tide_mail_kept(tide_archive *archive, struct tide_mail_kept *kept_out, tide_error *err);

#endif
