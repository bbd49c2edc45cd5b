/* migrate.h - upgrades an SQLite file to the schema of this program.
 *
 * A file says whose it is (application_id) and how old it is (user_version).
 * Migrations are an ordered list that only ever grows; step n turns version n
 * into n+1.  All missing steps are one transaction, so that a crash leaves the old
 * version or the newest, never one in between.
 * A new file takes the same steps as an old one: there is one path to test.
 *
 * Invariants:
 *   MIG1  a file of another program, or of a newer version, is not written to.
 *   MIG2  user_version changes in the same transaction as the schema.
 */
#ifndef TIDE_DB_MIGRATE_H
#define TIDE_DB_MIGRATE_H

#include "db/db.h"

struct tide_schema {
    const char *what;        /* "ledger": for texts */
    uint32_t application_id; /* never 0 */
    const char *const *steps;
    uint32_t steps_count; /* the version after the last one */
};

/* Reads whose file this is and how old: 0 for an empty one.  TIDE_INVALID: not
 * ours.  TIDE_NEWER.  Writes nothing. */
tide_status tide_migrate_look(tide_db *db, const struct tide_schema *schema, uint32_t *version_out,
                              tide_error *err);
/* Runs the missing steps; `version` is from tide_migrate_look(). */
tide_status tide_migrate(tide_db *db, const struct tide_schema *schema, uint32_t version,
                         tide_error *err);

#endif
