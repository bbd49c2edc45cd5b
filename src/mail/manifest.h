/* manifest.h - records what was removed from Gmail or restored to it, and at whose request (M14).
 *
 * A manifest is one run of the archiver or of a restore: the request, and an entry for every
 * message it touches.  An entry is written before the first call to the server, so the manifest
 * names every message that may have changed.  A restore needs only the manifest and the archive.
 *
 * Rows of state.db, in the ledger's transactions (E1.6).  All functions run on the ledger's writer,
 * inside a transaction, unless stated otherwise.
 *
 * Invariants:
 *   MAN1  an entry exists, with the hash of the copy, before its message is removed.
 *   MAN2  an entry's state only moves along planned -> asked -> removed -> restored, or from
 *         planned or asked (mail/remove/remove.h RMV6) to refused; never back.
 *   MAN3  (manifest, Gmail id) is unique: planning again adds nothing.
 *   MAN4  a restored entry names the id that the message has now.
 *   MAN5  a run of the archiver is valid once its first batch is asked for (planned_ms), after its
 *         last entry was planned and the user consented; before that it has sent nothing to the
 *         server and may be forgotten.
 */
#ifndef TIDE_MAIL_MANIFEST_H
#define TIDE_MAIL_MANIFEST_H

#include "ledger/rows.h"
#include "mail/archive/archive.h"

typedef enum tide_removal_mode {
    TIDE_REMOVE_FROM_INBOX = 0, /* the default: easy to undo in Gmail */
    TIDE_REMOVE_TO_TRASH = 1,   /* Gmail keeps it for 30 days */
    TIDE_REMOVE_FOR_GOOD = 2,   /* full archiving: gone there, kept here */
    TIDE_REMOVE_NOTHING = 3,    /* a restore by query: entries start as removed */
} tide_removal_mode;
/* "inbox", "trash", "delete", "restore" */
const char *tide_removal_mode_name(tide_removal_mode mode);

typedef enum tide_removal_state {
    TIDE_REMOVAL_PLANNED = 0,
    TIDE_REMOVAL_ASKED = 1, /* the call was sent or is about to be */
    TIDE_REMOVAL_REMOVED = 2,
    TIDE_REMOVAL_REFUSED = 3, /* by Tidemark: `reason` says why */
    TIDE_REMOVAL_RESTORED = 4,
} tide_removal_state;
const char *tide_removal_state_name(tide_removal_state state);

struct tide_manifest {
    uint64_t id; /* 0: assign one */
    uint32_t account;
    tide_removal_mode mode;
    char query[1024]; /* as requested, filters included */
    uint64_t made_ms;
    uint64_t ended_ms;    /* 0: unfinished */
    uint64_t tidemark_ms; /* when it was planned */
    uint64_t planned_ms;  /* when its first batch began; 0: not yet (MAN5) */
    /* Counted from the entries on read. */
    uint64_t entries[TIDE_REMOVAL_RESTORED + 1];
    uint64_t bytes[TIDE_REMOVAL_RESTORED + 1];
};

struct tide_removal {
    uint64_t id; /* 0: assign one */
    uint64_t manifest;
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char thread_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    uint8_t hash[TIDE_CONTENT_HASH_BYTES]; /* of the copy in the archive */
    uint64_t bytes;
    int64_t internal_ms;
    char labels[2048]; /* label ids before the removal, separated by spaces */
    tide_removal_state state;
    char reason[256];
    char restored_id[TIDE_GMAIL_ID_BYTES_MAX + 1]; /* MAN4 */
    uint64_t changed_ms;
};

tide_status tide_manifest_tables(tide_rows db, tide_error *err);

/* Writes a new manifest and sets its id. */
tide_status tide_manifest_add(tide_rows db, struct tide_manifest *manifest, tide_error *err);
/* Marks the manifest as valid (MAN5). */
tide_status tide_manifest_planned(tide_rows db, uint64_t manifest, uint64_t now_ms,
                                  tide_error *err);
/* The newest unfinished run of the archiver for an account; TIDE_NOT_FOUND. */
tide_status tide_manifest_run_left(tide_rows db, uint32_t account,
                                   struct tide_manifest *manifest_out, tide_error *err);
/* Forgets runs of the archiver that are not valid yet (MAN5), at most `limit` entries per
 * call; *more_out: there are more.  Only those of this account: the caller has its archive open for
 * writing, so no other process is planning one. */
tide_status tide_manifest_forget_unplanned(tide_rows db, uint32_t account, uint32_t limit,
                                           bool *more_out, tide_error *err);
tide_status tide_manifest_end(tide_rows db, uint64_t manifest, uint64_t ended_ms, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_manifest_get(tide_rows db, uint64_t manifest, struct tide_manifest *manifest_out,
                              tide_error *err);
/* Newest first; `account` 0: of all. */
tide_status tide_manifest_list(tide_rows db, uint32_t account,
                               void (*visit)(const struct tide_manifest *manifest, void *arg),
                               void *arg, tide_error *err);

/* Adds `removal` as it is; an existing entry is kept (MAN3). */
tide_status tide_removal_add(tide_rows db, const struct tide_removal *removal, tide_error *err);
/* Moves an entry to a state (MAN2; any other move is TIDE_STALE and changes nothing).  `text` is the
 * reason of a refusal or the new id of a restored message; else "". */
tide_status tide_removal_move(tide_rows db, uint64_t id, tide_removal_state state, const char *text,
                              uint64_t now_ms, tide_error *err);
/* Entries of a manifest with id > `after`, ascending, at most `limit`; `state` -1: all.
 * Until `visit` returns false. */
tide_status tide_removal_list(tide_rows db, uint64_t manifest, int state, uint64_t after,
                              uint32_t limit,
                              bool (*visit)(const struct tide_removal *removal, void *arg),
                              void *arg, tide_error *err);

/* ---- for restores ---- */

/* By its id; TIDE_NOT_FOUND. */
tide_status tide_removal_get(tide_rows db, uint64_t id, struct tide_removal *removal_out,
                             tide_error *err);
/* The newest entry that removed this message from the account, without those of restores, and the
 * mode of its manifest; TIDE_NOT_FOUND. */
tide_status tide_removal_origin(tide_rows db, uint32_t account, tide_text gmail_id,
                                struct tide_removal *removal_out, tide_removal_mode *mode_out,
                                tide_error *err);
/* The entry of a manifest for a message; TIDE_NOT_FOUND. */
tide_status tide_removal_of(tide_rows db, uint64_t manifest, tide_text gmail_id,
                            struct tide_removal *removal_out, tide_error *err);
/* The message is back under `new_id`: every entry that removed it, in any manifest, becomes
 * restored (MAN2, MAN4). */
tide_status tide_removal_restored(tide_rows db, uint32_t account, tide_text gmail_id,
                                  tide_text new_id, uint64_t now_ms, tide_error *err);
/* Further facts about a message: when the first manifest that names it was made (0: none does),
 * whether an entry was restored to this id, and whether one was restored to another id. */
struct tide_removal_facts {
    uint64_t first_ms;
    bool claimed;
    bool moved;
};
tide_status tide_removal_facts(tide_rows db, uint32_t account, tide_text gmail_id,
                               struct tide_removal_facts *facts_out, tide_error *err);
/* The unfinished restore of an account with this query; TIDE_NOT_FOUND. */
tide_status tide_manifest_unfinished(tide_rows db, uint32_t account, const char *query,
                                     struct tide_manifest *manifest_out, tide_error *err);

/* ---- gaps ----
 *
 * A history id that was not reached by reading the history before it (it had expired, or everything
 * was listed again) leaves a gap: the label changes in it are unknown.  What was stored before the
 * gap may have other labels in Gmail than here. */

/* Called in the transaction that records such an id; `at_ms` is when its run started. */
tide_status tide_gap_put(tide_rows db, uint32_t account, uint64_t at_ms, tide_error *err);
/* The labels of everything stored before `at_ms` were read again: a gap up to then is closed. */
tide_status tide_gap_close(tide_rows db, uint32_t account, uint64_t at_ms, tide_error *err);
/* When the newest gap was; 0: there is none. */
tide_status tide_gap_get(tide_rows db, uint32_t account, uint64_t *at_ms_out, tide_error *err);

#endif
