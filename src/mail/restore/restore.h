/* restore.h - restores removed messages from the archive to Gmail (M14).
 *
 * Entries of a manifest in the state removed name the messages to restore; a restore by query
 * writes such a manifest first, so that both resume the same way after a crash.  How a message is
 * restored depends on how it was removed:
 *
 *   from the inbox   INBOX is put back
 *   to the trash     it is taken out of the trash and gets its former labels; if Gmail has
 *                    emptied its trash meanwhile, it is inserted
 *   deleted, or gone the bytes are inserted with the former labels.  Gmail gives them a
 *                    new id, which is recorded in the archive, so that no sync fetches them again
 *
 * A command plans: it reads the ledger and the archive, which is safe while other processes run.
 * Then one job mail.restore does the work, some entries at a time, in the process that has the
 * engine.  What it has done is in its result (mail/result.h), message by message in the manifest.
 * Several restores run side by side, one per account.
 *
 * Invariants:
 *   RST1  a message is inserted only if its copy was read back just before and has the hash in the
 *         manifest.
 *   RST2  an insert is sent only under an intent (E1.9).  If it is not known whether an earlier
 *         one, in any run, happened, the server is searched first.
 *   RST2a just before an insert the server is asked for the former id: a message that came back by
 *       itself is not inserted a second time (M21).
 *   RST3  an entry becomes restored only after the archive has the new id on disk.
 *   RST4  a job acts only in the start of the engine that was asked for it: jobs of a dead process
 *         do nothing.
 *   RST5  an account has one restore at a time: two would insert the same message.
 */
#ifndef TIDE_MAIL_RESTORE_H
#define TIDE_MAIL_RESTORE_H

#include "mail/mail.h"
#include "base/json.h"
#include "mail/manifest.h"

typedef struct tide_restore tide_restore;

enum {
    TIDE_RESTORE_ENTRIES = 25,  /* per job that inserts: 11 s of quota */
    TIDE_RESTORE_LABELED = 300, /* per job that changes labels */
    TIDE_RESTORE_ENTRIES_MAX = 10000000,
    TIDE_RESTORE_REFUSALS_MAX = 10000, /* reported by name */
};

/* What is, or would be, done with a message. */
typedef enum tide_deed {
    TIDE_DEED_THERE,  /* nothing: Gmail has it */
    TIDE_DEED_INBOX,  /* INBOX put back */
    TIDE_DEED_TRASH,  /* taken out of the trash */
    TIDE_DEED_INSERT, /* inserted */
    TIDE_DEED_REFUSE, /* its copy is damaged or missing, or the server refuses it */
    TIDE_DEEDS,
} tide_deed;

struct tide_restore_wanted {
    uint64_t manifest;      /* 0: by query */
    const char *email;      /* for a query; with a manifest NULL means any */
    const char *query;      /* in the syntax of search.h */
    const char *const *ids; /* of the manifest's messages; none: all */
    size_t ids_count;
    uint64_t limit; /* messages; 0: all */
};
/* The account that it concerns.  TIDE_NOT_FOUND, TIDE_INVALID: err says what is wrong. */
tide_status tide_restore_account(tide_rows db, const struct tide_restore_wanted *wanted,
                                 uint32_t *account_out, char email_out[256], tide_error *err);

/* Determines the work, reads every copy that would be inserted, and changes nothing.  `archive` is
 * the account's; it and `db` are borrowed. */
tide_status tide_restore_open(tide_world *world, tide_rows db, tide_archive *archive,
                              const struct tide_restore_wanted *wanted, tide_mem *mem,
                              tide_restore **restore_out, tide_error *err);
void tide_restore_close(tide_restore *restore); /* NULL is fine */

struct tide_restore_sum {
    uint64_t messages, bytes;
};
struct tide_restore_state {
    uint64_t manifest; /* 0: not written yet */
    tide_removal_mode mode;
    char email[256];
    struct tide_restore_sum planned[TIDE_DEEDS];
    struct tide_restore_sum done[TIDE_DEEDS];
    uint64_t twice;  /* inserted, and fetched by a sync before their id was known: stored twice */
    uint64_t labels; /* created again */
    uint64_t labels_lost;
};
const struct tide_restore_state *tide_restore_state(const tide_restore *restore);
/* Visits the refused messages. */
void tide_restore_refused(const tide_restore *restore,
                          void (*visit)(const char *gmail_id, const char *reason, void *arg),
                          void *arg);

/* ---- the job ---- */

/* TIDE_MAIL_RESTORE: its key for an account (RST5). */
void tide_restore_dedupe(uint32_t account, char dedupe_out[64]);
/* Adds what is wanted to its payload. */
void tide_restore_ask(const struct tide_restore_wanted *wanted, tide_json *payload);
/* Takes what the job has done so far, `done` and what follows it, from its result.  true: the
 * sign-in does not permit it. */
bool tide_restore_answer(const json_t *result, struct tide_restore_state *state);
/* Visits the messages that the job refused. */
void tide_restore_answer_refused(const json_t *result,
                                 void (*visit)(const char *gmail_id, const char *reason, void *arg),
                                 void *arg);

#endif
