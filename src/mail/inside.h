/* inside.h - declarations shared by the files of the mail system.
 *
 *   mail.c               opening, accounts, running, state
 *   mail/sync/plan.c     mail.plan: reads the state of an account, enqueues the work
 *   mail/sync/fetch.c    mail.list, mail.fetch: from spans of time to ids, from ids to the archive
 *   mail/sync/history.c  mail.history: reads the changes since a history id
 *   mail/sync/pages.c    paging: next page, loops, restart from the first page
 *   mail/sync/absent.c   mail.absent, mail.confirm: messages that a complete listing did not name
 *   mail/sync/labels.c   mail.labels: reads labels again by listing each of them
 *   mail/sync/identity.c checks which mailbox the sign-in opens, before any job calls the server
 *   mail/sync/audit.c    checks that the archive still holds what the ledger recorded
 *   mail/sync/refetch.c  fetches again copies that are not exact
 *   mail/sync/held.c     mail.held: chooses held copies whose exact bytes are fetched
 *   mail/sync/aside.c    sets damaged shards aside and copies their readable messages
 *   mail/sync/sole.c     the ledger's list of messages that exist only in the archive */
#ifndef TIDE_MAIL_INSIDE_H
#define TIDE_MAIL_INSIDE_H

#include "engine/accounts/archive_id.h"
#include "mail/claims.h"
#include "mail/mail.h"
#include "mail/rows.h"
#include "mail/slice.h"
#include "tidemark_inside.h"

/* An open account: opened by the first job that needs it, closed when the process stops. */
struct tide_mail_user {
    uint32_t account; /* 0: no account yet, only an import uses the archive */
    char email[256];
    tide_tokens *tokens; /* NULL: no account yet, as is gmail */
    tide_gmail *gmail;
    tide_archive *archive;
    struct tide_claims claims; /* ids that a job is fetching; guarded by the mail system's lock */
    struct tide_mail_budget *budget; /* likewise; of the run in progress; NULL: no limit */
    bool broken; /* atomic: the archive accepts no more writes in this process (E1.10) */
    /* Guarded by the mail system's lock (mail/sync/identity.c). */
    bool known;                        /* the server confirmed that the mailbox is this account's */
    bool asking;                       /* a job is asking the server now */
    struct tide_gmail_profile profile; /* the server's answer */
    bool profile_none;                 /* the server has no profile call */
    uint64_t profile_job;              /* the last job that got an answer; 0: none */
    /* Guarded likewise (mail/sync/watch.c). */
    uint64_t watch_due_ms;   /* 0: Gmail was not asked yet */
    char watch_refused[200]; /* what it answered; "": it publishes */
};

/* A kind whose jobs call the server. */
struct tide_mail_gate {
    struct tide_mail *mail;
    tide_handler *handler;
    bool each_job; /* check the mailbox before each job, not once per process */
};
enum { TIDE_MAIL_GATES_MAX = 20 };

/* An account whose sign-in was refused. */
struct tide_mail_signed_out {
    uint32_t account;
    char email[256];
    char text[400];
};

struct tide_mail {
    tide_mem *mem;
    tide_world *world;
    tide_engine *engine;
    tide_secrets *secrets;
    struct tide_mail_options options; /* the caller owns its texts */
    char archive_dir[4096];
    uint32_t plan_kind, list_kind, fetch_kind, history_kind, absent_kind, confirm_kind;
    uint32_t index_kind;
    uint32_t heal_kind, accept_kind;
    uint32_t held_kind, exact_kind, labels_kind;
    uint32_t remove_kind, choose_kind; /* 0: this process does not run the kind */
    tide_lock *lock;                   /* guards users and their claims */
    bool opening;                      /* a thread is opening an account; under lock */
    tide_cond *opened;                 /* signaled when that account is open */
    struct tide_mail_user *users[TIDE_MAIL_ACCOUNTS_MAX];
    size_t users_count;
    struct tide_mail_signed_out *signed_out; /* under lock */
    size_t signed_out_count, signed_out_capacity;
    struct tide_mail_gate gates[TIDE_MAIL_GATES_MAX];
    size_t gates_count;

    uint32_t restore_kind, import_kind;
    uint32_t imports;              /* that run; under lock */
    struct tide_restore *restores; /* that have a job (mail/restore/run.c); under lock */
};

/* The account of a job.  Opens it and checks its archive on first use.  Borrowed. */
tide_status tide_mail_user(tide_mail *mail, uint32_t account, struct tide_mail_user **user_out,
                           tide_error *err);
/* The archive of that name: of an account, or one that only imports fill, which needs no account.  If
 * an account of that name is added later, it gets the same one.  Borrowed.  Not on a shared ledger. */
tide_status tide_mail_user_named(tide_mail *mail, const char *email,
                                 struct tide_mail_user **user_out, tide_error *err);
/* Reads the account's row in its own transaction. */
tide_status tide_mail_row_read(tide_mail *mail, uint32_t account, struct tide_mail_row *row_out,
                               tide_error *err);
/* The account's stream, named by the epoch of its row. */
tide_status tide_mail_stream(tide_mail *mail, const struct tide_mail_row *row, uint64_t *stream_out,
                             tide_error *err);

/* Defines a kind that calls the server; its jobs run after the mailbox check (M19a). */
tide_status tide_mail_gate(tide_mail *mail, const struct tide_kind *kind, bool each_job,
                           uint32_t *kind_out, tide_error *err);
tide_handler tide_mail_gate_run; /* context: the tide_mail_gate */

/* Every handler returns through this: it records a refused sign-in for display. */
tide_status tide_mail_ended(tide_mail *mail, tide_job *job, tide_status rc, const tide_error *err);

enum {
    TIDE_MAIL_WAIT_PACE_MS = 1000,    /* where many accounts may wait, each holding a worker */
    TIDE_MAIL_WAIT_WINDOW_MS = 65000, /* a minute of quota and its rounding */
};
/* For a handler that makes several calls and starts with the first one at every attempt: waits for
 * units inside the handler, because the first calls would spend what the last one waited for
 * (E4.3a).  true: repeat the call.  false: it was made, the job is canceled, or there are no units
 * for longer than `patience_ms`: return `rc`. */
bool tide_mail_wait(tide_job *job, tide_status rc, uint32_t patience_ms);

/* The status of a job when the archive refuses a message: a damaged or locked file pauses the
 * account and never counts against the message (E6.2). */
tide_status tide_mail_archived(struct tide_mail_user *user, tide_status rc, tide_error *err);

/* Handlers; context is the tide_mail. */
tide_handler tide_mail_plan;       /* mail/sync/plan.c */
tide_handler tide_mail_list;       /* mail/sync/fetch.c */
tide_handler tide_mail_fetch;      /* mail/sync/fetch.c */
tide_handler tide_mail_held;       /* mail/sync/held.c */
tide_handler tide_mail_exact;      /* mail/sync/fetch.c: replaces held copies */
tide_handler tide_mail_history;    /* mail/sync/history.c */
tide_handler tide_mail_absent;     /* mail/sync/absent.c */
tide_handler tide_mail_labels_job; /* mail/sync/labels.c */
tide_handler tide_mail_confirm;    /* mail/sync/absent.c */
tide_handler tide_mail_heal;       /* mail/sync/refetch.c */
tide_handler tide_mail_accept;     /* mail/sync/refetch.c */
tide_handler tide_mail_restore;    /* mail/restore/run.c */
tide_handler tide_mail_import;     /* mail/files/import_job.c */
tide_handler tide_mail_remove;     /* mail/remove/batch.c */
tide_handler tide_mail_choose;     /* mail/remove/chosen.c */

void tide_restores_close(tide_mail *mail); /* mail/restore/run.c */
/* Forgets what a crash left of planning (mail/manifest.h MAN5).  The account has just been opened: no
 * process is planning for it. */
tide_status tide_archiver_forget_unplanned(tide_mail *mail, uint32_t account, tide_error *err);

/* ---- mail/sync/plan.c ---- */

/* The position of the server before anything is listed (M6a): the history id and the number of
 * messages (0: the server does not say).  A server without a profile call is asked for the history
 * id of any message, then for the end of its history. */
struct tide_mail_position {
    uint64_t messages;
    char history_id[64]; /* "": an empty mailbox on a server without a profile call */
    bool dates;          /* the server understands after: and before:; else spans are ignored */
};
tide_status tide_mail_position(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                               struct tide_mail_position *position_out, tide_error *err);

/* All first jobs of a complete listing of [from, now), in one cycle. */
struct tide_mail_relist {
    uint64_t cycle;
    uint64_t listing; /* 0: named after the cycle */
    uint32_t account;
    uint64_t from_ms, now_ms;
    bool dates;
};
tide_status tide_mail_relist(tide_transaction *transaction, tide_mail *mail,
                             const struct tide_mail_relist *relist, tide_error *err);

/* ---- mail/sync/again.c ---- */

/* At the start of a run: listings, histories and fetches of earlier runs that failed become pending
 * again. */
tide_status tide_mail_retry_failed(tide_mail *mail, tide_job *job, tide_error *err);
/* At the end of a mail.plan that succeeded: earlier ones that failed before it began, and were
 * asked for no more than it, become done. */
tide_status tide_mail_accept_failed(tide_mail *mail, tide_job *job, uint64_t began_ms,
                                    tide_error *err);

/* ---- mail/sync/fetch.c ---- */

/* Whether it looks like a message id: at least six letters, digits, "-" or "_". */
bool tide_mail_id_can_be(const char *id);
/* Adds mail.fetch children for the ids that are not stored. */
tide_status tide_mail_fetch_missing(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                    const tide_text *ids, size_t count, tide_error *err);
/* How many messages a job should fetch, by the account's quota (M2). */
enum { TIDE_MAIL_FETCH_IDS_MAX = 300 };
uint32_t tide_mail_ids_per_job(tide_mail *mail, uint32_t account);
/* Adds a child job with these items; `known` is passed along with them (NULL: nothing). */
tide_status tide_mail_items_job(tide_mail *mail, tide_job *job, uint32_t kind, const tide_text *ids,
                                size_t count, const char *known, tide_error *err);
/* Requests the one message of a job that probes its account (E6.2); stores nothing. */
tide_status tide_mail_probe(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                            tide_error *err);
/* Reads at most `room` label ids of an answer; returns their number. */
size_t tide_mail_labels(const json_t *labels, tide_text *texts, size_t room);
/* Whether a job is fetching that message and has not yet given the answer to the archive.  Newer
 * changes from the server must wait until it has. */
bool tide_mail_in_flight(tide_mail *mail, struct tide_mail_user *user, tide_text id);

/* ---- mail/sync/pages.c ---- */

/* A position in a paged walk.  A repeated page token would loop forever, so a walk remembers the
 * token of one earlier page, the last whose number is a power of two: that detects a loop of any
 * length. */
struct tide_mail_page {
    uint64_t number; /* 0: the first page, without a token */
    tide_text token;
    uint64_t mark; /* the page number of the remembered token */
};
/* The page that `next` leads to.  false: the walk is in a loop. */
bool tide_mail_page_next(const struct tide_mail_page *page, tide_text next,
                         struct tide_mail_page *next_out);
/* Reads the page from a job's payload; no page there means the first.  The token points into the
 * payload. */
tide_status tide_mail_page_read(const json_t *payload, struct tide_mail_page *page_out,
                                tide_error *err);
/* Enqueues that page as a job of this job's account.  `payload` holds the other fields. */
tide_status tide_mail_page_job(tide_mail *mail, tide_job *job, uint32_t kind, tide_json *payload,
                               const struct tide_mail_page *page, tide_error *err);
/* A walk that cannot continue from a page (its token is refused or loops) restarts from the first
 * page: at this job's next attempt, a few times, and then when a sync restarts the failed job.
 * Every attempt calls tide_mail_over_begin(). */
tide_status tide_mail_over(tide_job *job, uint64_t tries, tide_error *err);
void tide_mail_over_begin(tide_job *job, struct tide_mail_page *page, uint64_t *tries);

/* ---- mail/sync/history.c ---- */

/* TIDE_SERVER if a change names an id that cannot be a message id: the page is rejected (M6a),
 * because skipping the change could lose a deletion. */
tide_status tide_mail_history_ids(const json_t *records, tide_error *err);

/* ---- mail/sync/refetch.c ---- */

/* Renews the watch of the mailbox if that is due, and says in `notice` that Gmail refuses it. */
tide_status tide_mail_watch(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                            char notice[TIDE_MAIL_NOTICE_BYTES], tide_error *err);

/* Adds mail.fetch children for messages whose copy is incomplete or damaged, if a retry is due or
 * `all` is set. */
tide_status tide_mail_refetch(tide_mail *mail, struct tide_mail_user *user, tide_job *job, bool all,
                              tide_error *err);
/* Adds a child that verifies everything from that time on and refetches damaged messages. */
tide_status tide_mail_heal_job(tide_mail *mail, tide_job *job, int64_t from_ms, tide_error *err);
/* Forgets healed losses when all work is done (mail/sync/lost.h LOST3). */
tide_status tide_mail_settle(tide_mail *mail, struct tide_mail_user *user, tide_error *err);

/* ---- mail/sync/labels.c ---- */

/* In the transaction that opens a complete listing: labels are read again when it has ended, because
 * `history_id` was not reached by reading the history.  Until then there is a gap (mail/manifest.h). */
tide_status tide_mail_labels_wanted(tide_transaction *transaction,
                                    const struct tide_mail_relist *relist, const char *history_id,
                                    tide_error *err);
/* What to do next for a listing with labels. */
typedef enum tide_labels_step {
    TIDE_LABELS_NEXT,    /* list the next label */
    TIDE_LABELS_COMPARE, /* find messages that have a label here and were not listed with it */
    TIDE_LABELS_FORGET,  /* delete the ids that were listed */
} tide_labels_step;
/* Enqueues that step in the job's cycle; nothing if the listing reads no labels. */
tide_status tide_mail_labels_go(tide_transaction *transaction, tide_mail *mail, tide_job *job,
                                uint64_t listing, tide_labels_step step, tide_error *err);
/* Adds the label to those of these messages that are stored without it; *ticket covers it. */
tide_status tide_mail_labels_add(struct tide_mail_user *user,
                                 const struct tide_mail_label_pass *pass, const tide_text *ids,
                                 size_t count, int64_t now_ms, uint64_t *ticket, tide_error *err);

/* ---- mail/sync/held.c ---- */

/* Records whether held copies stay as they are; else adds a child that has their exact bytes fetched
 * behind everything else (M18). */
tide_status tide_mail_held_begin(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                 bool inexact, tide_error *err);
/* At the end of a mail.exact: if it was the last, deletes what its messages and those of others
 * replaced. */
tide_status tide_mail_held_swept(tide_mail *mail, tide_job *job, tide_error *err);
/* Whether held copies of this account stay as they are. */
tide_status tide_mail_inexact(tide_mail *mail, uint32_t account, bool *inexact_out,
                              tide_error *err);

/* ---- mail/sync/aside.c ---- */

/* Moves shards that are damaged as files into a directory next to them, and copies their readable
 * messages into new shards.  The rest counts as lost and is fetched again.  Crash-safe: the next
 * heal resumes.  The archive must not be open.  `aside` may be NULL. */
tide_status tide_mail_set_aside(tide_mail *mail, const char *email, struct tide_mail_aside *aside,
                                tide_error *err);

/* ---- mail/sync/audit.c ---- */

/* Compares the archive with what the ledger recorded (M4, MAIL3).  Records losses in the account's
 * row, durably, before anything may be stored. */
tide_status tide_mail_prove(tide_mail *mail, struct tide_mail_user *user, tide_error *err);
/* With the job's end, records the ids that are now gone from the server (mail/sync/lost.h LOST2;
 * mail/sync/sole.c). */
tide_status tide_mail_remember_gone(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                    tide_error *err);
/* With the job's end, records the state of the archive, which the next run must find again. */
tide_status tide_mail_remember(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                               tide_error *err);
/* The same as a proof: everything up to `history_id` is stored. */
tide_status tide_mail_remember_proof(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                     const char *history_id, uint64_t now_ms, tide_error *err);

#endif
