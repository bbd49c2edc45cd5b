/* inside.h - what the files of a restore share.
 *
 *   restore.c         driving: the manifest, one job after the other
 *   plan.c    which messages, and what is to be done with each
 *   job.c     the handler: labels, inserting, writing down
 *   server.c  what the server is asked besides: labels, and whether an insert
 *                     whose answer was lost has happened
 */
#ifndef TIDE_MAIL_RESTORE_INSIDE_H
#define TIDE_MAIL_RESTORE_INSIDE_H

#include "mail/inside.h"
#include "mail/restore/restore.h"

enum {
    TIDE_RESTORE_LABELS_MAX = 100,   /* of one message: what one call takes */
    TIDE_RESTORE_COMPARED_MAX = 50,  /* messages fetched to find a lost one among them */
    TIDE_RESTORE_LOOK_PAGES_MAX = 4, /* of 500 ids */
    TIDE_RESTORE_TRIES_MAX = 6,      /* of one message */
    TIDE_RESTORE_RAW_BYTES_MAX = 160 << 20,
    TIDE_RESTORE_IDS_MAX = 64,
};

/* A label that the server did not have, and what it is called there now. */
struct tide_label_made {
    char was[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char is[TIDE_GMAIL_ID_BYTES_MAX + 1]; /* "": it is lost */
};

struct tide_refusal {
    uint64_t entry; /* 0: while planning */
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char reason[256];
};

struct tide_restore {
    tide_mail *mail;
    tide_mem *mem;
    uint32_t account;
    struct tide_mail_user *user;
    uint64_t limit;
    char query[1024]; /* as it was asked for; "": by manifest */
    char ids[TIDE_RESTORE_IDS_MAX][TIDE_GMAIL_ID_BYTES_MAX + 1];
    size_t ids_count;
    struct tide_restore_state state; /* under the mail's lock while jobs run */
    struct tide_refusal *refusals;   /* likewise */
    size_t refusals_count, refusals_capacity;

    uint64_t *entries; /* ids of what is to be restored */
    size_t entries_count, entries_capacity;
    size_t entries_next; /* the first that no job has got yet */
    uint64_t number;     /* of this run (R4) */
    uint64_t job;        /* 0: none */
    bool job_over;       /* under the lock */
    tide_error fatal;    /* under the lock: why it cannot go on */

    /* The handler's: one job at a time. */
    json_t *labels; /* as the server has them; NULL: not asked yet */
    struct tide_label_made *made;
    size_t made_count, made_capacity;
    tide_packer *packer;
    uint64_t unsent; /* the entry whose intent is made and whose insert surely was not sent */
    uint64_t trying; /* the entry that failed last ... */
    uint32_t tries;  /* ... so often */
    uint64_t looking;
    char compared[TIDE_RESTORE_COMPARED_MAX][TIDE_GMAIL_ID_BYTES_MAX + 1]; /* and differ */
    size_t compared_count;
};

/* An entry with what is to be done about it. */
struct tide_piece {
    struct tide_removal removal;
    tide_removal_mode mode; /* of its manifest */
    uint64_t origin;        /* the entry of the archiver that a restore by query undoes; 0 */
    tide_removal_mode origin_mode;
    tide_deed deed;
    bool stored_known;
    struct tide_stored stored; /* its row; by another id when it was restored before */
    bool looked;               /* Gmail was asked whether it has it after all (M21) */
    bool over;                 /* restored, or refused */
};

/* ---- plan.c ---- */
/* What is to be done with it, as the archive knows; fills `deed` and `stored`.  A copy that
 * is missing is refused with a reason. */
tide_status tide_piece_decide(tide_restore *restore, struct tide_piece *piece, char reason[256],
                              tide_error *err);
/* Its bytes, hash checked (R1).  TIDE_CORRUPT: err says why; it is this message alone. */
tide_status tide_piece_raw(tide_restore *restore, const struct tide_piece *piece, tide_buf *raw,
                           tide_error *err);
/* Counts what there is to do. */
tide_status tide_restore_plan(tide_restore *restore, tide_error *err);
/* Writes the manifest when it is by query, and collects the entries. */
tide_status tide_restore_collect(tide_restore *restore, tide_error *err);
/* The entries of `manifest` that are removed and named, as pieces; at most the limit. */
tide_status tide_restore_each(tide_restore *restore,
                              tide_status (*each)(tide_restore *restore, struct tide_piece *piece,
                                                  tide_error *err),
                              tide_error *err);

/* ---- restore.c ---- */
void tide_restore_refuse(tide_restore *restore, uint64_t entry, const char *gmail_id,
                         uint64_t bytes, const char *reason);
void tide_restore_count(tide_restore *restore, tide_deed deed, uint64_t bytes);
bool tide_restore_was_refused(const tide_restore *restore, uint64_t entry);

/* ---- server.c ---- */
/* What the labels of before are called now; those that cannot be given are left out.
 * `insert`: for an insert, which may say SENT.  Texts are the restore's, until it ends. */
tide_status tide_restore_labels(tide_restore *restore, tide_job *job, const char *labels,
                                bool insert, tide_text labels_out[TIDE_RESTORE_LABELS_MAX],
                                size_t *count_out, tide_error *err);
struct tide_found_again {
    char id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char thread_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
};
/* Whether the server has these bytes as a message that nobody knows of: an insert whose
 * answer was lost.  TIDE_NOT_FOUND: it has not.  TIDE_INVALID: too much has arrived since to
 * tell. */
tide_status tide_restore_look(tide_restore *restore, tide_job *job, const struct tide_piece *piece,
                              tide_text raw, struct tide_found_again *found_out, tide_error *err);
/* Which of the pieces the server lists as restored by their labels; seen_out[i]. */
tide_status tide_restore_seen(tide_restore *restore, tide_job *job,
                              struct tide_piece *const *pieces, size_t count, tide_deed deed,
                              bool *seen_out, tide_error *err);

#endif
