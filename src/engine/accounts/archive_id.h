/* archive_id.h - which archive is in a directory, and which archive an account needs.
 *
 * Mail and search analytics are local files, while the ledger may be shared by many
 * machines (docs/fleet.md).  So each such directory has an id: random, in a file of its
 * own, written when the directory is made.  The ledger keeps for each account the id of
 * its archive, and a process takes an account only if it has that very archive.
 *
 * A directory that is moved to another machine takes its account with it.  A copy has the same
 * id: both machines may take the account, one at a time (its lease sees to that).  What
 * the one stored while it had it the other one lacks, and the shards' generations tell it:
 * the watermark falls back and what is missing is fetched again (M4).  So a copy costs
 * requests, never mail.
 *
 * Invariants:
 *   I1  an id is never changed once it is there: whoever comes second reads the first's.
 *   I2  an id is durable before the ledger names it.
 */
#ifndef TIDE_ENGINE_ARCHIVE_ID_H
#define TIDE_ENGINE_ARCHIVE_ID_H

#include "tidemark.h"
#include "world/world.h"

#define TIDE_ARCHIVE_ID_FILE "archive.id"
enum { TIDE_ARCHIVE_ID_BYTES = 33 }; /* 32 digits and the end */

/* TIDE_NOT_FOUND: there is none.  TIDE_CORRUPT: there is something else. */
tide_status tide_archive_id_read(tide_world *world, const char *dir,
                                 char id_out[TIDE_ARCHIVE_ID_BYTES], tide_error *err);
/* The same, and makes the directory and its id when they are missing. */
tide_status tide_archive_id_make(tide_world *world, const char *dir,
                                 char id_out[TIDE_ARCHIVE_ID_BYTES], tide_error *err);
/* Gives a copy of a directory the id of the original: what is restored from it is the same
 * archive, and its account goes on with it.  One without an id is fine. */
tide_status tide_archive_id_copy(tide_world *world, const char *from_dir, const char *to_dir,
                                 tide_error *err);
/* Whether the archive with that id is in the directory; for tide_engine_options.may_take. */
bool tide_archive_id_is(tide_world *world, const char *dir, const char *id);

/* Says in the ledger where an account's archive and its secret are (the place, never the
 * secret itself), and tells the other processes. */
tide_status tide_transaction_place(tide_transaction *transaction, uint32_t account,
                                   const char *archive, const char *secret, tide_error *err);

enum { TIDE_SECRET_PLACE_BYTES = 201 };
/* "host: keyring", from what tide_secrets_where() says. */
void tide_secret_place(const char *where, char place_out[TIDE_SECRET_PLACE_BYTES]);

struct tide_placing {
    uint32_t account;
    const char *name;   /* of the account, for messages */
    const char *dir;    /* of its archive here */
    const char *secret; /* where its secret is kept on this machine: "keyring", "file" */
    bool added;         /* by a person, here and now: the place of the secret is new too */
};
/* Before an archive is written to: it is in this directory, with an id, and the ledger says
 * so.  A shared ledger may say that it is elsewhere; an empty one that began here would
 * fetch everything again, and the two would drift apart: TIDE_INVALID.  On a ledger of
 * this machine alone the directory counts, whatever was there before.  *shared_out: whether
 * the ledger is shared. */
tide_status tide_archive_place(tide_engine *engine, tide_world *world,
                               const struct tide_placing *placing, bool *shared_out,
                               tide_error *err);

/* ---- for systems on the engine ---- */

/* Whether other processes work on the same ledger. */
bool tide_engine_shared(const tide_engine *engine);
/* What its jobs have unless they name another one. */
uint8_t tide_engine_kind_priority(tide_engine *engine, uint32_t kind);
/* Jobs of an account that this process does not hold were just enqueued: it is taken as soon
 * as may be, if it is free.  Until that was tried tide_engine_wait() does not call the
 * engine quiet.  Nothing on a ledger of our own. */
void tide_engine_take_soon(tide_engine *engine);
/* Whether this process holds the account, or still runs a job of it.  When it does not, what
 * it has open for it may be in another one's way. */
bool tide_engine_uses(tide_engine *engine, uint32_t account);
/* Cancels what waits of a kind, of one account.  For work that must not go on by itself after
 * the process that wanted it died. */
tide_status tide_cancel_kind_of(tide_engine *engine, const char *kind, const char *account,
                                tide_error *err);

#endif
