/* status.h - where an account stands, seen from outside: for `mail status`, the
 * live block, and whoever watches another process work.
 *
 * Everything is read, from a ledger and an archive that were opened to be read, so
 * it works beside a running engine and without one.  It starts nothing, waits for
 * nothing, and changes nothing.
 *
 * Invariants (tide_mail_look_check()):
 *   L1  the spans are in the order of their cycles; each begins where it is said to
 *       begin and is either covered or a gap, never both.
 *   L2  no span is behind the tidemark: what is there is finished.
 *   L3  a look without gaps has no job left in any cycle.
 */
#ifndef TIDE_MAIL_LOOK_H
#define TIDE_MAIL_LOOK_H

#include "ledger/ledger.h"
#include "mail/archive/archive.h"

/* What a span of time waits for; a later one is said before an earlier one. */
typedef enum tide_span_state {
    TIDE_SPAN_COVERED = 0, /* finished, but something before it is not */
    TIDE_SPAN_FETCHING,    /* listed; messages_left are to be fetched */
    TIDE_SPAN_LISTING,     /* not listed to its end */
    TIDE_SPAN_CHANGES,     /* its changes are not read to their end */
    TIDE_SPAN_FAILED,      /* jobs failed or were canceled: a person decides */
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
    uint64_t messages_total; /* as the server said at the last plan; 0: unknown */
    uint64_t last_run_ms;    /* when its plan was made; 0: never */
    uint64_t since_ms;       /* the tidemark covers what came after; 0: from the beginning */
    char notice[400];        /* what people should know: that the archive lost something; "" */

    size_t shards_lost; /* tide_mail_look_proof(): not as the ledger remembers them */

    /* The stream. */
    uint64_t watermark_ms; /* 0: none yet */
    uint64_t moved_ms;     /* when the tidemark moved last */
    uint64_t cycles, cycles_open;
    char history_id[64]; /* the adopted one; "" */

    /* The account in the engine. */
    bool paused, halted;
    char halt_reason[401];
    bool signed_out;  /* its sign-in was refused, and nothing has succeeded since */
    uint64_t owner;   /* on a shared ledger: the process that holds it; 0: nobody */
    char archive[65]; /* the id of its archive; "": none yet */

    /* Only in a full look. */
    struct tide_mail_span *spans; /* owned; at and beyond the tidemark */
    size_t spans_count, spans_capacity;
    uint64_t jobs_left; /* pending and running, outside of cycles too */
    uint64_t jobs_running;
    uint64_t jobs_failed;
    uint64_t messages_left;                       /* in jobs that are not done */
    bool listing;                                 /* what is left is not wholly known yet */
    uint64_t bad, gone, owed, accepted, retrying; /* items of the mail system's kinds */
};

/* The accounts there are; none where the mail system was never used. */
tide_status tide_mail_look_accounts(tide_ledger *ledger,
                                    void (*visit)(const char *email, const char *endpoint,
                                                  void *arg),
                                    void *arg, tide_error *err);

void tide_mail_look_init(struct tide_mail_look *look, tide_mem *mem);
void tide_mail_look_done(struct tide_mail_look *look); /* a zeroed one is fine */
/* Looks again.  Not `full`: what costs a walk over the jobs stays as it was.
 * TIDE_NOT_FOUND: no account of the mail system; the look is as it was. */
tide_status tide_mail_look(tide_ledger *ledger, const char *email, bool full,
                           struct tide_mail_look *look, tide_error *err);
bool tide_mail_look_check(const struct tide_mail_look *look);
/* Holds the archive (NULL: there is none) against what the ledger remembers (M4): what is lost is told in the
 * notice, and the tidemark is where it will fall back to.  Changes nothing on disk. */
tide_status tide_mail_look_proof(tide_ledger *ledger, tide_archive *archive,
                                 struct tide_mail_look *look, tide_error *err);

/* Whether a kind of jobs is the mail system's. */
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
