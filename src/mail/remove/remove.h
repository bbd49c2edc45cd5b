/* remove.h - removes mail from Gmail that is safely stored (M11-M15).
 *
 * The only part of Tidemark that removes a user's mail from Gmail.  It runs only at the user's
 * request and never because a sync finds its jobs: a job names the start of the engine that was
 * asked for it, and does nothing in another one (RMV7).
 *
 * A run is a manifest (manifest.h).  Choosing writes an entry for every message;
 * then batches of at most TIDE_REMOVE_IDS are removed, each by a job mail.remove that holds only
 * the number of the manifest and takes the next entries from it.  The manifest is authoritative and
 * jobs are disposable: those of a dead process are canceled, and resuming a run reads the manifest
 * again.  No state of a run is in the process: runs of several accounts, restores and syncs share
 * one engine.
 *
 * A batch, in this order and from the top whenever it had to wait:
 *   1  the tidemark is read                            past it: refused
 *   2  the history is read from the adopted id to now  changed: refused
 *   3  the registry of bad items is read               bad: refused
 *      after a gap of the history (manifest.h), which hides label changes, the labels of
 *      each message are read from the server           other ones: refused
 *   4  the logs are moved into the shard files, the system's page cache of these files is
 *      dropped, and every message is read by a new connection and hashed
 *                                                      missing, damaged, not exact: refused
 *      the state of messages that are refused, but were asked by an earlier batch, is read
 *      from the server                                 where it was to go: removed
 *   5  the entries become `asked`, durably, and only while the claim holds
 *   6  one call removes them
 *   7  they become `removed` with the job's `done`
 *
 * Invariants (tests/sim/archiver_sim_test.c looks at every removing call):
 *   RMV1  a message is named in a call only if all of these were so after the last wait before it:
 *         its date is below the tidemark, it is not in the registry of bad items, nothing has
 *         changed about it since it was chosen, its copy is exact (mail/archive/archive.h ARC6),
 *         and its bytes were read back from the disk and have the hash in the manifest.
 *   RMV2  its entry is `asked` on disk before the call (MAN1), so that a crash at any moment leaves
 *         it on the server, or in the archive with an entry that names it.
 *   RMV3  no message is fetched, and nothing is adopted or moved: neither the tidemark, nor the
 *         history id, nor a row of the archive.
 *   RMV4  an asked entry whose message is where it was to go becomes `removed`, whether this run or
 *         a user moved it: a repeated batch recognizes its own work this way.
 *   RMV5  when in doubt the message stays: an expired history id, an unknown failure, a lost claim
 *         or a new stream end the batch without a call.
 *   RMV6  an asked entry leaves that state in one of two ways.  It becomes `removed` (step 7,
 *         RMV4); or `refused`, after a read of the message from the server, later than the call,
 *         has shown that it is not where it was to go.  The tidemark, the registry, the copy and
 *         the history may forbid another call; they cannot tell what the first call did.  A 404 for
 *         a message that was to leave the inbox counts only if the history or the archive knows of
 *         a deletion.  So every removal is in a manifest as such, and a restore finds it.
 *   RMV7  a batch calls the server only in the start of the engine that was asked for it: whatever
 *         finds the job later, a sync or `tidemark jobs retry`, does not continue the run (decision
 *         22).  In another process than the command's it also begins only within
 *         TIDE_REMOVE_ASKED_MS; the command then asks again, unless it was killed.
 *
 * Not promised: a change in Gmail between the answer of step 2 and the call of step 6 is not seen.
 * At most TIDE_REMOVE_STALE_MS lie between the two; a longer pause (a suspended machine) restarts
 * the batch.  Bytes never change under an id, so all that can be lost this way is a label that was
 * added in these seconds.
 */
#ifndef TIDE_MAIL_ARCHIVER_H
#define TIDE_MAIL_ARCHIVER_H

#include "base/json.h"
#include "mail/mail.h"
#include "mail/manifest.h"

enum {
    TIDE_REMOVE_IDS = 300,             /* per call (M12) */
    TIDE_REMOVE_UNSURE_IDS = 25,       /* per call after a gap (manifest.h) */
    TIDE_REMOVE_BYTES = 256 << 20,     /* per batch: its proof may have to be repeated */
    TIDE_REMOVE_STALE_MS = 60000,      /* longest time between the history and the call */
    TIDE_REMOVE_PATIENCE_MS = 45000,   /* longest wait for units in one batch */
    TIDE_REMOVE_ASKED_MS = 120000,     /* for how long a batch may begin in another process */
    TIDE_REMOVE_PAGES_MAX = 2000,      /* of history; with more, sync first */
    TIDE_ARCHIVING_QUERY_BYTES = 1000, /* stored in the manifest */
};

/* ---- choosing ---- */

struct tide_archiving {
    const char *email;
    tide_removal_mode mode;
    const char *query; /* M10's syntax over the archive, filters included; words are exact */
    uint64_t now_ms;   /* for older_than: */
    uint64_t limit;    /* candidates at most; 0: all */
    bool read_back;    /* only for choosing: also look for damage */
    bool with_history; /* only for choosing: also look for changes in Gmail */
};

struct tide_candidate {
    struct tide_stored stored;
    char labels[2048];   /* ids, separated by spaces */
    bool unsure;         /* stored before a gap: its labels must be read from the server */
    const char *refused; /* why it would be refused; NULL: it would be removed */
};

/* Calls `visit` for every message that the query finds and that could be removed: still in Gmail,
 * in the inbox (mode inbox), not yet in the trash (mode trash).  Messages that would be refused are
 * visited too, with the reason.  Changes nothing.  `job` calls the server, gets heartbeats and can be
 * canceled; NULL: none, without with_history.  TIDE_PERMANENT: the history id has expired, or there
 * is too much history. */
tide_status tide_archiver_choose(tide_mail *mail, const struct tide_archiving *ask, tide_job *job,
                                 bool (*visit)(const struct tide_candidate *candidate, void *arg),
                                 void *arg, tide_error *err);

/* Writes the manifest: an entry for each candidate, in transactions of bounded size.  It is complete
 * when this returns, and valid once a batch of it is requested (manifest.h MAN5): a user confirms no
 * more than it names.  `job` as above. */
tide_status tide_archiver_plan(tide_mail *mail, const struct tide_archiving *ask, tide_job *job,
                               struct tide_manifest *manifest_out, tide_error *err);

/* The same as a job TIDE_MAIL_CHOOSE; its result has the number of the manifest.  `dry`: sums and refusals instead,
 * and nothing is written (chosen.c). */
void tide_archiver_choose_ask(const struct tide_archiving *ask, bool dry, tide_json *payload);

/* ---- removing ---- */

/* The next batch of a run as a job TIDE_MAIL_REMOVE: fills its payload, to which cli/run/ask.h adds the start of the
 * engine (RMV7).  The caller has the user's consent.  At most `ids` messages (0: TIDE_REMOVE_IDS, which
 * is also the limit).  After `until_ms` (unix time; 0: never) it does nothing.  A run whose ended_ms is
 * set needs none. */
void tide_archiver_batch_ask(uint64_t manifest, uint32_t ids, uint64_t until_ms,
                             tide_json *payload);
/* Its key: an account has one batch at a time. */
void tide_archiver_batch_dedupe(uint32_t account, char dedupe_out[64]);

/* Whether ask->query can be read.  TIDE_INVALID: err says why not. */
tide_status tide_archiver_query_check(const struct tide_archiving *ask, tide_mem *mem,
                                      tide_error *err);

/* Whether the account's sign-in covers a mode, if known (M15a).  TIDE_AUTH: it does not. */
tide_status tide_archiver_allowed(tide_world *world, tide_secrets *secrets, const char *email,
                                  tide_removal_mode mode, tide_mem *mem, tide_error *err);
/* What the mode needs: a scope, and the value for `account add --for`. */
const char *tide_archiver_scope(tide_removal_mode mode);
const char *tide_archiver_purpose(tide_removal_mode mode);

#endif
