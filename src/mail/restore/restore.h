/* restore.h - messages that were removed from Gmail, put back from the archive (M14).
 *
 * What is restored is named by entries of a manifest that are in the state removed; a
 * restore by query writes such a manifest first, so that both go on the same way after a
 * crash.  What it takes depends on how a message was removed:
 *
 *   from the inbox   INBOX is put back
 *   to the trash     it is taken out of it and has its labels of before again; if Gmail has
 *                    emptied its trash meanwhile, it is inserted
 *   deleted, or gone the bytes are inserted with the labels of before.  Gmail gives them a
 *                    new id, which the archive learns, so that no sync fetches them again
 *
 * The caller drives it: one job of the kind mail.restore at a time, each with some entries.
 * It starts no thread, waits for nobody's answer but the server's, and removes nothing.
 *
 * Invariants:
 *   R1  a message is inserted only if its copy was read back just before, and hashes to what
 *       the manifest says.
 *   R2  an insert is asked for under an intent only (E1.9).  When it is not known whether an
 *       earlier one happened, in whichever run, the server is searched first.
 *   R2a just before it the server is asked for the id that the message had: one that came back
 *       by itself is not inserted a second time (M21).
 *   R3  an entry is restored once the archive has the new id on disk, and not before.
 *   R4  a job acts for the run that made it: what a process that died left behind does nothing.
 */
#ifndef TIDE_MAIL_RESTORE_H
#define TIDE_MAIL_RESTORE_H

#include "mail/mail.h"
#include "mail/manifest.h"

typedef struct tide_restore tide_restore;

enum {
    TIDE_RESTORE_ENTRIES = 25,  /* of one job that inserts: 11 s of quota */
    TIDE_RESTORE_LABELED = 300, /* of one that changes labels */
    TIDE_RESTORE_ENTRIES_MAX = 10000000,
    TIDE_RESTORE_REFUSALS_MAX = 10000, /* that are told by name */
};

/* What is, or would be, done with a message. */
typedef enum tide_deed {
    TIDE_DEED_THERE,  /* nothing: Gmail has it */
    TIDE_DEED_INBOX,  /* INBOX put back */
    TIDE_DEED_TRASH,  /* taken out of the trash */
    TIDE_DEED_INSERT, /* inserted */
    TIDE_DEED_REFUSE, /* its copy is damaged or missing, or the server does not take it */
    TIDE_DEEDS,
} tide_deed;

struct tide_restore_options {
    tide_mail *mail;        /* borrowed, outlives it */
    uint64_t manifest;      /* 0: by query */
    const char *email;      /* of a query; NULL with a manifest is any */
    const char *query;      /* as M10 */
    const char *const *ids; /* of the manifest's messages; none: all of them */
    size_t ids_count;
    uint64_t limit; /* messages; 0: all */
};
/* Looks what there is to do, reads every copy that would be inserted, and changes nothing.
 * TIDE_NOT_FOUND, TIDE_INVALID: err says what. */
tide_status tide_restore_open(const struct tide_restore_options *options, tide_mem *mem,
                              tide_restore **restore_out, tide_error *err);
void tide_restore_close(tide_restore *restore); /* NULL is fine; the engine has stopped */

struct tide_restore_sum {
    uint64_t messages, bytes;
};
struct tide_restore_state {
    uint64_t manifest; /* 0: none is written yet */
    tide_removal_mode mode;
    char email[256];
    struct tide_restore_sum planned[TIDE_DEEDS];
    struct tide_restore_sum done[TIDE_DEEDS];
    uint64_t twice;  /* inserted, and fetched by a sync before we knew their id: stored twice */
    uint64_t labels; /* made again */
    uint64_t labels_lost;
};
void tide_restore_state(tide_restore *restore, struct tide_restore_state *state_out);
/* Those that were refused: while planning, or since tide_restore_begin(). */
void tide_restore_refused(tide_restore *restore,
                          void (*visit)(const char *gmail_id, const char *reason, void *arg),
                          void *arg);

/* Writes the manifest of a restore by query, and what the jobs need; one at a time in a
 * process (TIDE_BUSY). */
tide_status tide_restore_begin(tide_restore *restore, tide_error *err);
/* After the engine started: lets it work for about `wait_ms`.  TIDE_TIMEOUT: not ready yet.
 * TIDE_OK: everything is restored or refused.  TIDE_PERMANENT with err->code 403: the
 * sign-in does not allow it.  Any other: why it cannot go on; run it again later. */
tide_status tide_restore_step(tide_restore *restore, uint64_t wait_ms, tide_error *err);

#endif
