/* open.c - creates, upgrades or checks the schema of a ledger on PostgreSQL.
 *
 * tidemark.meta says which version the tables have and which program is the oldest that
 * can work with them.  So machines can be upgraded one after the other: the first new
 * program upgrades the tables, and the old ones continue as long as `oldest` allows. */
#include "ledger/postgres/postgres.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Held by the process that creates or upgrades the schema, so that ten machines that start
 * at once do it one after the other. */
#define SCHEMA_LOCK "1414087749, 0"

static const char what[] = "Tidemark ledger";

struct found {
    bool exists;
    uint32_t version;
    uint32_t oldest;
    bool copying; /* a copy into it has not ended (ledger/copy/copy.h, LCP2) */
};

static tide_status foreign(const struct tide_postgres *self, tide_error *err)
{
    return tide_error_set(err, TIDE_INVALID,
                          "%s: its schema \"tidemark\" is not one of ours; name another database",
                          tide_pg_name(self->pg));
}

/* A schema of that name with other tables belongs to another program. */
static tide_status look_for_tables(struct tide_postgres *self, bool *ours_out, tide_error *err)
{
    PGresult *result = NULL;
    tide_pg_params(self->pg);
    TIDE_TRY(tide_pg_query(
        self->pg,
        "SELECT count(*), count(*) FILTER (WHERE c.relname = 'meta')"
        " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'tidemark' AND c.relkind IN ('r', 'p', 'v', 'm')",
        &result, err));
    uint64_t tables = tide_pg_get_u64(result, 0, 0);
    *ours_out = tide_pg_get_u64(result, 0, 1) == 1;
    return tables > 0 && !*ours_out ? foreign(self, err) : TIDE_OK;
}

static tide_status look(struct tide_postgres *self, struct found *found_out, tide_error *err)
{
    PGresult *result = NULL;
    *found_out = (struct found){0};
    tide_status rc = look_for_tables(self, &found_out->exists, err);
    if (rc != TIDE_OK || !found_out->exists)
        return rc;
    tide_pg_params(self->pg);
    tide_pg_text(self->pg, tide_text_of(what));
    rc = tide_pg_query(self->pg,
                       "SELECT max(value) FILTER (WHERE key = 'version')::int,"
                       " max(value) FILTER (WHERE key = 'oldest_program')::int,"
                       " count(*) FILTER (WHERE key = 'what' AND value = $1),"
                       " count(*) FILTER (WHERE key = 'copying')"
                       " FROM tidemark.meta",
                       &result, err);
    if (rc == TIDE_IO) /* a table `meta` of another shape */
        return foreign(self, err);
    if (rc != TIDE_OK)
        return rc;
    found_out->version = (uint32_t)tide_pg_get_u64(result, 0, 0);
    found_out->oldest = (uint32_t)tide_pg_get_u64(result, 0, 1);
    found_out->copying = tide_pg_get_u64(result, 0, 3) != 0;
    if (tide_pg_get_u64(result, 0, 2) != 1 || found_out->version == 0 ||
        found_out->oldest > found_out->version)
        return foreign(self, err);
    return TIDE_OK;
}

static tide_status judge(struct tide_postgres *self, const struct tide_ledger_options *options,
                         const struct found *found, tide_error *err)
{
    const char *name = tide_pg_name(self->pg);
    uint32_t ours = (uint32_t)tide_pg_schema.steps_count;
    if (!found->exists && (options->read_only || options->must_exist))
        return tide_error_set(err, TIDE_NOT_FOUND,
                              "%s: there is no ledger; create one with `tidemark ledger migrate`",
                              name);
    if (found->exists && found->oldest > ours)
        return tide_error_set(err, TIDE_NEWER,
                              "%s: schema %" PRIu32 " needs a program of schema %" PRIu32
                              " or newer, this one has %" PRIu32 "; install a newer Tidemark",
                              name, found->version, found->oldest, ours);
    if (found->copying && !options->building)
        return tide_error_set(err, TIDE_BUSY,
                              "%s: a copy into it has not ended; finish it with `tidemark ledger "
                              "copy FROM TO`, or name another database",
                              name);
    if (found->exists && options->read_only && found->version < ours)
        return tide_error_set(err, TIDE_INVALID,
                              "%s: schema %" PRIu32 ", this program needs %" PRIu32
                              "; upgrade it with `tidemark ledger migrate`",
                              name, found->version, ours);
    return TIDE_OK;
}

static tide_status upgrade_locked(struct tide_postgres *self,
                                  const struct tide_ledger_options *options, tide_error *err)
{
    struct found found;
    /* Another process may have done it while we waited for the lock. */
    TIDE_TRY(look(self, &found, err));
    TIDE_TRY(judge(self, options, &found, err));
    /* Programs that are too old for the new tables may be running.  Their leases end here, so
     * that they cannot write to a table; each gets TIDE_NEWER when it joins again. */
    if (found.exists && found.oldest < tide_pg_schema.oldest)
        TIDE_TRY(
            tide_pg_exec(self->pg, "UPDATE tidemark.member SET dead = true WHERE NOT dead", err));
    for (size_t i = found.version; i < tide_pg_schema.steps_count; i++)
        for (const char *const *text = tide_pg_schema.steps[i]; *text; text++)
            TIDE_TRY(tide_pg_exec(self->pg, *text, err));
    if (found.version >= tide_pg_schema.steps_count)
        return TIDE_OK;
    tide_pg_params(self->pg);
    tide_pg_text(self->pg, tide_text_of(what));
    tide_pg_i32(self->pg, (int32_t)tide_pg_schema.steps_count);
    tide_pg_i32(self->pg, (int32_t)tide_pg_schema.oldest);
    return tide_pg_query(self->pg,
                         "INSERT INTO tidemark.meta (key, value) VALUES ('what', $1),"
                         " ('version', $2::text), ('oldest_program', $3::text)"
                         " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                         NULL, err);
}

/* All of it or nothing: tables are created in a transaction, like rows. */
static tide_status upgrade(struct tide_postgres *self, const struct tide_ledger_options *options,
                           tide_error *err)
{
    tide_status rc = tide_pg_exec(self->pg,
                                  "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
                                  "SELECT pg_catalog.pg_advisory_xact_lock(" SCHEMA_LOCK ")",
                                  err);
    if (rc == TIDE_OK)
        rc = upgrade_locked(self, options, err);
    if (rc == TIDE_OK)
        rc = tide_pg_exec(self->pg, "COMMIT", err);
    if (rc != TIDE_OK && tide_pg_handle(self->pg) != NULL)
        (void)tide_pg_exec(self->pg, "ROLLBACK", NULL);
    return rc;
}

/* A text that the server cannot store ends the whole transaction there, and a text from a
 * provider would come again at each retry.  SQL_ASCII stores any bytes. */
static tide_status judge_encoding(const struct tide_postgres *self, tide_error *err)
{
    const char *encoding = PQparameterStatus(tide_pg_handle(self->pg), "server_encoding");
    if (encoding == NULL || strcmp(encoding, "UTF8") == 0 || strcmp(encoding, "SQL_ASCII") == 0)
        return TIDE_OK;
    return tide_error_set(err, TIDE_INVALID,
                          "%s: stores text as %.30s; create a database with ENCODING 'UTF8'",
                          tide_pg_name(self->pg), encoding);
}

tide_status tide_pgl_schema(struct tide_postgres *self, const struct tide_ledger_options *options,
                            tide_error *err)
{
    struct found found;
    TIDE_TRY(judge_encoding(self, err));
    TIDE_TRY(look(self, &found, err));
    TIDE_TRY(judge(self, options, &found, err));
    if (found.version < tide_pg_schema.steps_count && !options->read_only)
        TIDE_TRY(upgrade(self, options, err));
    return TIDE_OK;
}

tide_status tide_pgl_schema_hold(struct tide_postgres *self, tide_error *err)
{
    const struct tide_ledger_options as_is = {.must_exist = true};
    struct found found;
    TIDE_TRY(tide_pg_exec(self->pg,
                          "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
                          "SELECT pg_catalog.pg_advisory_xact_lock_shared(" SCHEMA_LOCK ")",
                          err));
    TIDE_TRY(look(self, &found, err));
    return judge(self, &as_is, &found, err);
}

tide_status tide_pgl_run_add(struct tide_postgres *self, uint64_t now_unix_ms, tide_error *err)
{
    PGresult *result = NULL;
    tide_pg_params(self->pg);
    tide_pg_text(self->pg, tide_text_of(self->run_name));
    tide_pg_u64(self->pg, now_unix_ms);
    TIDE_TRY(tide_pg_query(self->pg,
                           "INSERT INTO tidemark.run (name, started) VALUES ($1, $2)"
                           " RETURNING id, 'tidemark.job_new'::regtype::oid::bigint",
                           &result, err));
    self->run = tide_pg_get_u64(result, 0, 0);
    self->job_new = (Oid)tide_pg_get_u64(result, 0, 1);
    return TIDE_OK;
}
