/* inside.h - declarations shared by the files of the archiver.
 *
 *   remove.c  manifests, jobs, scopes: the functions that commands call
 *   choose.c  finds the candidates of a query
 *   chosen.c  mail.choose: the same for a command
 *   batch.c   mail.remove: one batch, from the tidemark to the call
 *   proofs.c  reads the changes since the adopted id; verifies copies on disk
 */
#ifndef TIDE_MAIL_ARCHIVER_INSIDE_H
#define TIDE_MAIL_ARCHIVER_INSIDE_H

#include "mail/remove/remove.h"
#include "mail/inside.h"

/* Why a message is refused; the start of an entry's reason. */
#define TIDE_REFUSED_PAST    "at or past the tidemark"
#define TIDE_REFUSED_BAD     "recorded as bad"
#define TIDE_REFUSED_DRAFT   "a draft"
#define TIDE_REFUSED_LABELS  "has more labels than can be recorded"
#define TIDE_REFUSED_UNREAD  "not indexed, so the query cannot check its words"
#define TIDE_REFUSED_CHANGED "changed in Gmail since the last sync"
#define TIDE_REFUSED_SINCE   "changed since it was chosen"
#define TIDE_REFUSED_UNSEEN  "has other labels in Gmail than here"
#define TIDE_REFUSED_MISSING "not in the archive"
#define TIDE_REFUSED_GONE    "no longer in Gmail"
#define TIDE_REFUSED_DAMAGED "damaged on disk"
/* Why a copy is not accepted as proof (M19a); NULL: it is exact. */
const char *tide_archiver_inexact(tide_copy copy);

/* ---- history (proofs.c) ---- */

typedef enum tide_history_change {
    TIDE_HISTORY_ADDED,
    TIDE_HISTORY_DELETED,
    TIDE_HISTORY_LABEL_ADDED,
    TIDE_HISTORY_LABEL_TAKEN,
} tide_history_change;
typedef void tide_history_visit(void *arg, tide_text id, tide_history_change change,
                                tide_text label);
/* Waits for units inside the handler, TIDE_REMOVE_PATIENCE_MS in total: a batch that restarted from
 * the top would forever spend the units it had waited for on the history.  true: call again. */
bool tide_archiver_wait(tide_job *job, tide_status rc, uint64_t *waited_ms);

/* All changes from `start` to now, in order; adopts nothing (RMV3).  TIDE_PERMANENT: the id has
 * expired, or there are more than TIDE_REMOVE_PAGES_MAX pages. */
tide_status tide_archiver_history(struct tide_mail_user *user, tide_job *job, const char *start,
                                  uint64_t *waited_ms, tide_mem *mem, tide_history_visit *visit,
                                  void *arg, tide_error *err);

/* The state of an account that a batch needs. */
struct tide_archiver_standing {
    struct tide_mail_row row;
    uint64_t stream;
    uint64_t tidemark_ms;
    char history_id[64];
    uint64_t gap_ms; /* labels of messages stored before this are not certain; 0: no gap */
};
tide_status tide_archiver_standing(tide_mail *mail, uint32_t account,
                                   struct tide_archiver_standing *standing_out, tide_error *err);

/* A key for an id in a tide_map; never 0. */
uint64_t tide_archiver_key(tide_text id);

/* ---- verifying copies (proofs.c) ---- */

struct tide_proof {
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    uint8_t hash[TIDE_CONTENT_HASH_BYTES]; /* that it must have */
    bool proven;
    char reason[160]; /* if it is not proven */
};
/* M13: syncs, checkpoints, drops the system's page cache, reads with a new connection.  Fails only
 * if it could not be tried; a problem with a message is in its proof.  `job` may be NULL; else it
 * gets heartbeats and can be canceled. */
tide_status tide_archiver_prove(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                struct tide_proof *proofs, size_t count, tide_error *err);

/* Label ids, separated by spaces; TIDE_FULL. */
tide_status tide_archiver_labels(tide_archive *archive, const struct tide_stored *stored,
                                 tide_mem *mem, char labels_out[2048], tide_error *err);
bool tide_archiver_has_label(const char *labels, const char *label);

#endif
