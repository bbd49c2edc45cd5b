#include "db/migrate.h"
#include "base/check.h"

#include <stdio.h>

struct marks {
    int64_t tables;
    int64_t application;
    int64_t version;
};

/* In one transaction: between two reads another connection may create the file, and its
 * version with the application id of an empty file would look like another program's. */
static tide_status read_marks(tide_db *db, struct marks *marks, tide_error *err)
{
    TIDE_TRY(tide_db_exec(db, "BEGIN", err));
    tide_status rc = tide_db_number(db, "SELECT count(*) FROM sqlite_schema", &marks->tables, err);
    if (rc == TIDE_OK)
        rc = tide_db_number(db, "PRAGMA application_id", &marks->application, err);
    if (rc == TIDE_OK)
        rc = tide_db_number(db, "PRAGMA user_version", &marks->version, err);
    (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL); /* it only read */
    return rc;
}

tide_status tide_migrate_look(tide_db *db, const struct tide_schema *schema, uint32_t *version_out,
                              tide_error *err)
{
    struct marks marks = {0};
    TIDE_TRY(read_marks(db, &marks, err));

    const int64_t version = marks.version;
    if (marks.tables == 0 && marks.application == 0 && version == 0) {
        *version_out = 0;
        return TIDE_OK;
    }
    if ((uint32_t)marks.application != schema->application_id || version < 0)
        return tide_error_set(err, TIDE_INVALID,
                              "%s: a database of another program, not a %s; name another file",
                              db->path, schema->what);
    if (version > (int64_t)schema->steps_count)
        return tide_error_set(err, TIDE_NEWER,
                              "%s: written by a newer version (schema %lld, this program knows "
                              "%u); use that version of the program",
                              db->path, (long long)version, schema->steps_count);
    *version_out = (uint32_t)version;
    return TIDE_OK;
}

static tide_status step(tide_db *db, const struct tide_schema *schema, uint32_t version,
                        tide_error *err)
{
    char mark[120];
    (void)snprintf(mark, sizeof mark, "PRAGMA application_id = %u; PRAGMA user_version = %u",
                   schema->application_id, version + 1);
    TIDE_TRY(tide_db_exec(db, schema->steps[version], err));
    return tide_db_exec(db, mark, err);
}

/* All steps in one transaction: a crash leaves the old version or the newest, never one in
 * between, which a read-only program would have to refuse. */
tide_status tide_migrate(tide_db *db, const struct tide_schema *schema, uint32_t version,
                         tide_error *err)
{
    TIDE_ASSERT(schema->application_id != 0);
    TIDE_ASSERT(version <= schema->steps_count);
    if (version == schema->steps_count)
        return TIDE_OK;
    TIDE_TRY(tide_db_exec(db, "BEGIN IMMEDIATE", err));
    /* Another connection may have done it since the caller looked. */
    int64_t found = 0;
    tide_status rc = tide_db_number(db, "PRAGMA user_version", &found, err);
    if (rc == TIDE_OK && found > version)
        version = (uint32_t)found;
    for (; rc == TIDE_OK && version < schema->steps_count; version++)
        rc = step(db, schema, version, err);
    if (rc == TIDE_OK)
        rc = tide_db_exec(db, "COMMIT", err);
    if (rc != TIDE_OK && !sqlite3_get_autocommit(db->handle))
        (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}
