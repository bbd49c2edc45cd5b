/* mail_inside.h - what the files of the mail system share. */
#ifndef TIDE_MAIL_INSIDE_H
#define TIDE_MAIL_INSIDE_H

#include "base/map.h"
#include "mail/mail.h"
#include "mail/mail_state.h"

/* An account in use: opened with the first job that needs it, closed at the end. */
struct tide_mail_user {
    uint32_t account;
    char email[256];
    tide_tokens *tokens;
    tide_gmail *gmail;
    tide_archive *archive;
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
    uint32_t plan_kind, list_kind, fetch_kind, history_kind;
    uint32_t remove_kind, changes_kind; /* 0: not for this process */
    uint64_t removing;                  /* the manifest whose batches may run; atomic */
    tide_map looked;                    /* by the last mail.changes: keys of ids that changed */
    tide_lock *lock;                    /* over users */
    struct tide_mail_user *users[TIDE_MAIL_ACCOUNTS_MAX];
    size_t users_count;
    uint64_t fetched;     /* atomic */
    char signed_out[256]; /* the last account whose sign-in was refused; under lock */
    char signed_out_text[400];
};

/* The account of a job, opened when it is not yet.  Borrowed. */
tide_status tide_mail_user(tide_mail *mail, uint32_t account, struct tide_mail_user **user_out,
                           tide_error *err);
/* Its row, read in a transaction of its own. */
tide_status tide_mail_row_read(tide_mail *mail, uint32_t account, struct tide_mail_row *row_out,
                               tide_error *err);
/* Its stream, by the epoch of its row. */
tide_status tide_mail_stream(tide_mail *mail, const struct tide_mail_row *row, uint64_t *stream_out,
                             tide_error *err);

/* How every handler ends: a refused sign-in is noted for whoever is watching. */
tide_status tide_mail_ended(tide_mail *mail, tide_job *job, tide_status rc, const tide_error *err);

/* Handlers; context is the tide_mail. */
tide_handler tide_mail_plan;    /* plan.c */
tide_handler tide_mail_list;    /* fetch.c */
tide_handler tide_mail_fetch;   /* fetch.c */
tide_handler tide_mail_history; /* history.c */
tide_handler tide_mail_remove;  /* archiver_batch.c */
tide_handler tide_mail_changes; /* archiver_history.c */

/* Children of a job: mail.fetch jobs for the ids that are not stored. */
tide_status tide_mail_fetch_missing(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                    const tide_text *ids, size_t count, tide_error *err);

#endif
