/* inside.h - declarations shared by the files of the restore.
 *
 *   restore.c what is wanted, and what was done
 *   plan.c    chooses the messages, and what to do with each
 *   run.c     mail.restore: the job, and its state between two attempts
 *   job.c     some entries of it: labels, inserts, recording the results
 *   server.c  other calls: labels, and a search for an insert whose answer was lost
 */
#ifndef TIDE_MAIL_RESTORE_INSIDE_H
#define TIDE_MAIL_RESTORE_INSIDE_H

#include "mail/inside.h"
#include "mail/restore/restore.h"

enum {
    TIDE_RESTORE_LABELS_MAX = 100,   /* per message: the limit of one call */
    TIDE_RESTORE_COMPARED_MAX = 50,  /* messages fetched to find a lost insert among them */
    TIDE_RESTORE_LOOK_PAGES_MAX = 4, /* of 500 ids */
    TIDE_RESTORE_TRIES_MAX = 6,      /* per message */
    TIDE_RESTORE_RAW_BYTES_MAX = 160 << 20,
    TIDE_RESTORE_IDS_MAX = 64,
};

/* A label that the server did not have, and its id there now. */
struct tide_label_made {
    char was[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char is[TIDE_GMAIL_ID_BYTES_MAX + 1]; /* "": it is lost */
};

struct tide_refusal {
    uint64_t entry; /* 0: during planning */
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char reason[256];
};

struct tide_restore {
    tide_mem *mem;
    tide_world *world;
    tide_rows db;    /* for planning */
    tide_mail *mail; /* for the job; NULL: it only plans */
    struct tide_mail_user *user;
    tide_archive *archive;
    uint32_t account;
    uint64_t limit;
    char query[1024]; /* as requested; "": by manifest */
    char ids[TIDE_RESTORE_IDS_MAX][TIDE_GMAIL_ID_BYTES_MAX + 1];
    size_t ids_count;
    struct tide_restore_state state;
    struct tide_refusal *refusals;
    size_t refusals_count, refusals_capacity;

    /* Of the job; kept from one attempt to the next. */
    struct tide_restore *next; /* in tide_mail.restores, under the mail system's lock */
    uint64_t job;
    bool running;   /* an attempt uses it; under lock */
    bool collected; /* the manifest is written, the entries are known */
    bool denied;    /* the sign-in does not permit it */
    uint64_t *entries;
    size_t entries_count, entries_capacity;
    size_t entries_next; /* the first one that is not restored yet */
    json_t *labels;      /* the server's labels; NULL: not read yet */
    struct tide_label_made *made;
    size_t made_count, made_capacity;
    uint64_t unsent; /* the entry with an intent whose insert was certainly not sent */
    uint64_t trying; /* the entry that failed last ... */
    uint32_t tries;  /* ... this often */
    uint64_t looking;
    char compared[TIDE_RESTORE_COMPARED_MAX][TIDE_GMAIL_ID_BYTES_MAX + 1]; /* these differ */
    size_t compared_count;
    tide_packer *packer;
};

/* An entry and what to do with it. */
struct tide_piece {
    struct tide_removal removal;
    tide_removal_mode mode; /* of its manifest */
    uint64_t origin;        /* the entry of the archiver that a restore by query undoes; 0 */
    tide_removal_mode origin_mode;
    tide_deed deed;
    bool stored_known;
    struct tide_stored stored; /* its row; with another id when it was restored before */
    bool looked;               /* Gmail was asked whether it still has it (M21) */
    bool over;                 /* restored, or refused */
};

/* ---- plan.c ---- */
/* Decides what to do with it, by the archive; fills `deed` and `stored`.  A missing copy is refused
 * with a reason. */
tide_status tide_piece_decide(tide_restore *restore, struct tide_piece *piece, char reason[256],
                              tide_error *err);
/* Its bytes, hash checked (RDR1).  TIDE_CORRUPT: err says why; it concerns only this message. */
tide_status tide_piece_raw(tide_restore *restore, const struct tide_piece *piece, tide_buf *raw,
                           tide_error *err);
/* Counts the work. */
tide_status tide_restore_plan(tide_restore *restore, tide_error *err);
/* Writes the manifest of a restore by query, and collects the entries. */
tide_status tide_restore_collect(tide_restore *restore, tide_error *err);
/* Visits the removed and selected entries of `manifest` as pieces; at most the limit. */
tide_status tide_restore_each(tide_restore *restore,
                              tide_status (*each)(tide_restore *restore, struct tide_piece *piece,
                                                  tide_error *err),
                              tide_error *err);

/* ---- restore.c ---- */
tide_status tide_restore_new(const struct tide_restore_wanted *wanted, tide_mem *mem,
                             tide_restore **restore_out, tide_error *err);
/* Fills account, manifest and mode. */
tide_status tide_restore_aim(tide_restore *restore, tide_rows db, uint64_t manifest,
                             const char *email, tide_error *err);
/* Runs `read` on the ledger: of the command, or of the engine in a transaction. */
typedef tide_status tide_restore_read_fn(tide_rows db, void *arg, tide_error *err);
tide_status tide_restore_read(tide_restore *restore, tide_restore_read_fn *read, void *arg,
                              tide_error *err);
void tide_restore_refuse(tide_restore *restore, uint64_t entry, const char *gmail_id,
                         uint64_t bytes, const char *reason);
void tide_restore_count(tide_restore *restore, tide_deed deed, uint64_t bytes);
bool tide_restore_was_refused(const tide_restore *restore, uint64_t entry);
void tide_restore_result(const tide_restore *restore, tide_json *result);

/* ---- job.c ---- */
/* Restores `count` entries; continues at the next attempt with what is left of them. */
tide_status tide_restore_entries(tide_restore *restore, tide_job *job, const uint64_t *entries,
                                 size_t count, tide_error *err);

/* ---- server.c ---- */
/* The current ids of the former labels; labels that cannot be set are left out.  `insert`: for an
 * insert, which may set SENT.  The restore owns the texts until it ends. */
tide_status tide_restore_labels(tide_restore *restore, tide_job *job, const char *labels,
                                bool insert, tide_text labels_out[TIDE_RESTORE_LABELS_MAX],
                                size_t *count_out, tide_error *err);
struct tide_found_again {
    char id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char thread_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
};
/* Whether the server has these bytes as an unknown message: an insert whose answer was lost.
 * TIDE_NOT_FOUND: it has not.  TIDE_INVALID: too many messages have arrived since to tell. */
tide_status tide_restore_look(tide_restore *restore, tide_job *job, const struct tide_piece *piece,
                              tide_text raw, struct tide_found_again *found_out, tide_error *err);
/* Which of the pieces the server lists as restored, by their labels; seen_out[i]. */
tide_status tide_restore_seen(tide_restore *restore, tide_job *job,
                              struct tide_piece *const *pieces, size_t count, tide_deed deed,
                              bool *seen_out, tide_error *err);

#endif
