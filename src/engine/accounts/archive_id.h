/* archive_id.h - which archive is in a directory, and which archive an account needs.
 *
 * Mail and search analytics are local files, while the ledger may be shared by many
 * machines (docs/fleet.md).  So each such directory has an id: random, in a file of its
 * own, written when the directory is made.  The ledger keeps for each account the id of
 * its archive, and a process takes an account only if it has the archive with that id.
 *
 * When a directory is moved to another machine, its account is run there.  A copy has the same
 * id: both machines may take the account, one at a time (the lease ensures that).  Each copy
 * lacks what the other one stored meanwhile; the shards' generations show it, the tidemark moves
 * back, and what is missing is fetched again (M4).  So a copy costs requests, never mail.
 *
 * Invariants:
 *   AID1  an id never changes once it is written: a second process reads the id of the first.
 *   AID2  an id is durable before the ledger names it.
 */
#ifndef TIDE_ENGINE_ARCHIVE_ID_H
#define TIDE_ENGINE_ARCHIVE_ID_H

#include "tidemark.h"
#include "world/world.h"

#define TIDE_ARCHIVE_ID_FILE "archive.id"
enum { TIDE_ARCHIVE_ID_BYTES = 33 }; /* 32 hex digits and the terminator */

/* TIDE_NOT_FOUND: the directory has no id.  TIDE_CORRUPT: the file holds something else. */
tide_status tide_archive_id_read(tide_world *world, const char *dir,
                                 char id_out[TIDE_ARCHIVE_ID_BYTES], tide_error *err);
/* Like tide_archive_id_read(); makes the directory and its id when they are missing. */
tide_status tide_archive_id_make(tide_world *world, const char *dir,
                                 char id_out[TIDE_ARCHIVE_ID_BYTES], tide_error *err);
/* Gives a copy of a directory the id of the original: an archive that is restored from it is the
 * same archive, and its account continues with it.  An original without an id is fine. */
tide_status tide_archive_id_copy(tide_world *world, const char *from_dir, const char *to_dir,
                                 tide_error *err);
/* Whether the archive with that id is in the directory; for tide_engine_options.may_take. */
bool tide_archive_id_is(tide_world *world, const char *dir, const char *id);

/* Records in the ledger where an account's archive and its secret are (the place, never the
 * secret itself), and sends a hint to other processes. */
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
    bool added;         /* a user adds the account now: the place of the secret is new too */
};
/* Call it before writing to an archive: makes sure that the directory has an id and that the
 * ledger names it.  TIDE_INVALID: a shared ledger names an archive elsewhere; a new one here would
 * fetch everything again, and the two would differ.  On SQLite the directory counts, and its id
 * replaces the one in the ledger.  *shared_out: whether the ledger is shared. */
tide_status tide_archive_place(tide_engine *engine, tide_world *world,
                               const struct tide_placing *placing, bool *shared_out,
                               tide_error *err);

#endif
