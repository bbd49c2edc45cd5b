/* mail_inside.h - what the files of the mail system share.
 *
 *   mail.c     opening, accounts, running, state
 *   plan.c     mail.plan: where an account stands, what is to be done
 *   fetch.c    mail.list, mail.fetch: from spans of time to ids, from ids to the archive
 *   history.c  mail.history: what changed
 *   pages.c    walks over pages: the next one, circles, beginning again
 *   absent.c   mail.absent, mail.confirm: what a complete listing did not name
 *   identity.c whose mailbox the sign-in opens; every job that asks the server passes it
 *   prove.c    does the archive still hold what the ledger remembers?
 *   mend.c     copies that are not exact are fetched again
 *   aside.c    damaged shards are set aside, and what can be read in them is copied
 *   only.c     the ledger's list of what exists nowhere else */
#ifndef TIDE_MAIL_INSIDE_H
#define TIDE_MAIL_INSIDE_H

#include "base/map.h"
#include "engine/archive_id.h"
#include "mail/mail.h"
#include "mail/mail_state.h"
#include "mail/slice.h"
#include "tidemark_inside.h"

/* An account in use: opened with the first job that needs it, closed at the end. */
struct tide_mail_user {
    uint32_t account;
    char email[256];
    tide_tokens *tokens;
    tide_gmail *gmail;
    tide_archive *archive;
    tide_map claims;       /* of ids that a job is fetching; under the mail system's lock */
    uint64_t claims_ended; /* likewise */
    bool broken;           /* atomic: the archive takes nothing any more in this process (E1.10) */
    /* Under the mail system's lock (identity.c). */
    bool known;                        /* the server said that the mailbox is this one */
    bool asking;                       /* a job asks it */
    struct tide_gmail_profile profile; /* what it said */
    bool profile_none;                 /* it has no such call */
    uint64_t profile_job;              /* which job asked it last and got an answer; 0: none */
};

/* A kind of jobs that ask the server. */
struct tide_mail_gate {
    struct tide_mail *mail;
    tide_handler *handler;
    bool anew; /* whose mailbox it is is asked each time, else once in a process */
};
enum { TIDE_MAIL_GATES_MAX = 16 };

/* An account whose sign-in was refused. */
struct tide_mail_signed_out {
    uint32_t account;
    char email[256];
    char text[400];
};

#define TIDE_MAIL_REMOVE  "mail.remove"
#define TIDE_MAIL_CHANGES "mail.changes"

struct tide_mail {
    tide_mem *mem;
    tide_world *world;
    tide_engine *engine;
    tide_secrets *secrets;
    struct tide_mail_options options; /* its texts are not ours */
    char archive_dir[4096];
    uint32_t plan_kind, list_kind, fetch_kind, history_kind, absent_kind, confirm_kind;
    uint32_t index_kind, account_kind;
    uint32_t heal_kind, accept_kind;
    uint32_t remove_kind, changes_kind; /* 0: not for this process */
    uint32_t fetch_ids;                 /* of one mail.fetch (M2) */
    uint64_t removing;                  /* the manifest whose batches may run; atomic */
    tide_map looked;                    /* by the last mail.changes: keys of ids that changed */
    tide_lock *lock;                    /* over users and their claims */
    bool opening;                       /* somebody opens an account; under lock */
    tide_cond *opened;                  /* who waits for that */
    struct tide_mail_user *users[TIDE_MAIL_ACCOUNTS_MAX];
    size_t users_count;
    uint64_t fetched;                        /* atomic */
    uint64_t allowed;                        /* messages this run may fetch; under lock */
    bool spent;                              /* it wanted more; under lock */
    struct tide_mail_signed_out *signed_out; /* under lock */
    size_t signed_out_count, signed_out_capacity;
    struct tide_mail_gate gates[TIDE_MAIL_GATES_MAX];
    size_t gates_count;

    uint32_t restore_kind;
    struct tide_restore *restoring; /* the one at work (restore.h); NULL; under lock */
};

/* The account of a job, opened and proven when it is not yet.  Borrowed. */
tide_status tide_mail_user(tide_mail *mail, uint32_t account, struct tide_mail_user **user_out,
                           tide_error *err);
/* Its row, read in a transaction of its own. */
tide_status tide_mail_row_read(tide_mail *mail, uint32_t account, struct tide_mail_row *row_out,
                               tide_error *err);
/* Its stream, by the epoch of its row. */
tide_status tide_mail_stream(tide_mail *mail, const struct tide_mail_row *row, uint64_t *stream_out,
                             tide_error *err);

/* Defines a kind that asks the server, behind the question whose mailbox it is (M19a). */
tide_status tide_mail_gate(tide_mail *mail, const struct tide_kind *kind, bool anew,
                           uint32_t *kind_out, tide_error *err);
tide_handler tide_mail_gate_run; /* context: the tide_mail_gate */

/* How every handler ends: a refused sign-in is noted for whoever is watching. */
tide_status tide_mail_ended(tide_mail *mail, tide_job *job, tide_status rc, const tide_error *err);

enum {
    TIDE_MAIL_WAIT_PACE_MS = 1000,    /* of many accounts at once: their workers wait */
    TIDE_MAIL_WAIT_WINDOW_MS = 65000, /* a minute of quota, and its grains */
};
/* For a handler that makes several calls and begins with the first one whenever it comes back:
 * waits for units inside the handler, because the first calls would spend what the last one
 * waited for (E4.3a).  true: make the call again.  false: it was made, the job is canceled, or
 * there are no units for longer than `patience_ms`: return `rc`. */
bool tide_mail_wait(tide_job *job, tide_status rc, uint32_t patience_ms);

/* What the archive says when it does not take a message: a broken or locked file is the
 * account's trouble, which waits for it, and never the message's (E6.2). */
tide_status tide_mail_archived(struct tide_mail_user *user, tide_status rc, tide_error *err);

/* Handlers; context is the tide_mail. */
tide_handler tide_mail_plan;    /* plan.c */
tide_handler tide_mail_list;    /* fetch.c */
tide_handler tide_mail_fetch;   /* fetch.c */
tide_handler tide_mail_history; /* history.c */
tide_handler tide_mail_absent;  /* absent.c */
tide_handler tide_mail_confirm; /* absent.c */
tide_handler tide_mail_heal;    /* mend.c */
tide_handler tide_mail_accept;  /* mend.c */
tide_handler tide_mail_restore; /* restore_job.c */
tide_handler tide_mail_remove;  /* archiver_batch.c */
tide_handler tide_mail_changes; /* archiver_history.c */

/* The kind of restores; what a process that died left of them is canceled (restore.c). */
tide_status tide_restore_start(tide_mail *mail, tide_error *err);

/* ---- plan.c ---- */

/* Where the server stands, before anything is listed (M6a): the history id, and the
 * number of messages (0: it does not say).  A server without a profile is asked for
 * the history id of any message, then where its history ends. */
struct tide_mail_position {
    uint64_t messages;
    char history_id[64]; /* "": an empty mailbox of a server without a profile */
    bool dates;          /* it understands after: and before:; else spans mean nothing */
};
tide_status tide_mail_position(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                               struct tide_mail_position *position_out, tide_error *err);

/* A complete listing of [from, now), in a cycle: all of its first jobs. */
struct tide_mail_relist {
    uint64_t cycle;
    uint32_t account;
    uint64_t from_ms, now_ms;
    bool dates;
};
tide_status tide_mail_relist(tide_transaction *transaction, tide_mail *mail,
                             const struct tide_mail_relist *relist, tide_error *err);

/* ---- again.c ---- */

/* At the start of a run: listings, histories and fetches of earlier runs that failed wait again. */
tide_status tide_mail_retry_failed(tide_mail *mail, tide_job *job, tide_error *err);
/* At the end of a mail.plan that succeeded: earlier ones that failed before it began, and were
 * asked for no more than it, are done with it. */
tide_status tide_mail_accept_failed(tide_mail *mail, tide_job *job, uint64_t began_ms,
                                    tide_error *err);

/* ---- fetch.c ---- */

/* Whether it has the shape of a message's id: six letters, digits, "-" or "_" at least. */
bool tide_mail_id_can_be(const char *id);
/* Children of a job: mail.fetch jobs for the ids that are not stored. */
tide_status tide_mail_fetch_missing(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                    const tide_text *ids, size_t count, tide_error *err);
/* A child of a job with these items; `known` goes with them, NULL: nothing. */
tide_status tide_mail_items_job(tide_mail *mail, tide_job *job, uint32_t kind, const tide_text *ids,
                                size_t count, const char *known, tide_error *err);
/* Asks for the one message of a job that probes its account (E6.2); stores nothing. */
tide_status tide_mail_probe(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                            tide_error *err);
/* The ids of labels in an answer, at most `room`; how many. */
size_t tide_mail_labels(const json_t *labels, tide_text *texts, size_t room);
/* Whether somebody has asked for that message and not yet given the answer to the
 * archive: what the server told since must wait. */
bool tide_mail_flying(tide_mail *mail, struct tide_mail_user *user, tide_text id);

/* ---- pages.c ---- */

/* Where a walk over pages is.  A token that comes again would lead round for ever; so a
 * walk remembers the token of one earlier page, the last whose number is a power of two,
 * which meets a loop of any length. */
struct tide_mail_page {
    uint64_t number; /* 0: the first, without a token */
    tide_text token;
    uint64_t mark; /* a number for the remembered token */
};
/* The page after this one, which `next` leads to.  false: the walk goes in a circle. */
bool tide_mail_page_next(const struct tide_mail_page *page, tide_text next,
                         struct tide_mail_page *next_out);
/* Of a job's payload; none there: the first page.  The token points into the payload. */
tide_status tide_mail_page_read(const json_t *payload, struct tide_mail_page *page_out,
                                tide_error *err);
/* That page as a job of its own, of this job's account.  `payload` says the rest. */
tide_status tide_mail_page_job(tide_mail *mail, tide_job *job, uint32_t kind, tide_json *payload,
                               const struct tide_mail_page *page, tide_error *err);
/* A walk that cannot go on from a page (its token is refused or leads in a circle) begins
 * again with the first one: at this job's next attempt, a few times, and then when a sync
 * starts the failed job again.  tide_mail_over_begin() is called by every attempt. */
tide_status tide_mail_over(tide_job *job, uint64_t tries, tide_error *err);
void tide_mail_over_begin(tide_job *job, struct tide_mail_page *page, uint64_t *tries);

/* ---- history.c ---- */

/* A change of a message whose id can be none is a change of some message: TIDE_SERVER, the page
 * is not believed (M6a).  Passed over, a deletion would never be known. */
tide_status tide_mail_history_ids(const json_t *records, tide_error *err);

/* ---- mend.c ---- */

/* Children of a job: mail.fetch jobs for messages whose copy is short or damaged, if it is worth
 * asking again by now, or `all`. */
tide_status tide_mail_refetch(tide_mail *mail, struct tide_mail_user *user, tide_job *job, bool all,
                              tide_error *err);
/* A child of a job: everything from that time on is read back, and what is damaged fetched. */
tide_status tide_mail_heal_job(tide_mail *mail, tide_job *job, int64_t from_ms, tide_error *err);
/* Everything is done: losses that are healed are forgotten (lost.h K3). */
tide_status tide_mail_settle(tide_mail *mail, struct tide_mail_user *user, tide_error *err);

/* ---- aside.c ---- */

/* Moves shards that are damaged as files into a directory beside them, and copies what can be read
 * in them into new ones.  The rest counts as lost, and is fetched again.  Crash-safe: the
 * next heal goes on.  Nobody has the archive open.  `aside` may be NULL. */
tide_status tide_mail_set_aside(tide_mail *mail, const char *email, struct tide_mail_aside *aside,
                                tide_error *err);

/* ---- prove.c ---- */

/* Compares the archive with what the ledger remembers (M4, W3); what is lost is noted
 * in the account's row, durably, before anything may be put. */
tide_status tide_mail_prove(tide_mail *mail, struct tide_mail_user *user, tide_error *err);
/* With the job's end: the ids of what is gone from the server now (lost.h K2; only.c). */
tide_status tide_mail_remember_gone(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                    tide_error *err);
/* With the job's end: what the archive shows now must still be there at the next run. */
tide_status tide_mail_remember(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                               tide_error *err);
/* The same as a proof: everything up to `history_id` is there. */
tide_status tide_mail_remember_proof(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                     const char *history_id, uint64_t now_ms, tide_error *err);

#endif
