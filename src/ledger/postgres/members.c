/* members.c - members of a fleet, their accounts, shares of a limit, hints, and repeated
 * enqueues.
 *
 * A lease is judged by the database's clock only, read when the statement runs: machines
 * disagree about the time, and a transaction may have begun long ago. */
#include "ledger/postgres/cold.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- members ------------------------------------------------------------------------- */

/* clang-format off */
static const char join_sql[] =
    "INSERT INTO tidemark.member (owner, name, version, joined, until)"
    " SELECT $1, $2, $3, c.now, c.now + $4 FROM (SELECT " PG_NOW("$5") " AS now) c"
    " ON CONFLICT (owner) DO NOTHING";
static const char beat_sql[] =
    "UPDATE tidemark.member SET until = " PG_NOW("$2") " + $3 WHERE owner = $1 AND NOT dead"
    " RETURNING ctid::text";
/* clang-format on */

/* A process that runs for months joins again after its lease was lost: the tables may have
 * become too new for it meanwhile. */
static tide_status member_add(struct tide_postgres *self, const struct tide_member *member,
                              uint32_t lease_ms, uint64_t now_unix_ms, tide_error *err)
{
    TIDE_TRY(tide_pgl_schema_hold(self, err));
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_u64(pg, member->owner);
    tide_pg_text(pg, tide_text_of(member->name));
    tide_pg_text(pg, tide_text_of(member->version));
    tide_pg_i64(pg, lease_ms);
    tide_pgl_clock(self, now_unix_ms);
    TIDE_TRY(tide_pg_query(pg, join_sql, NULL, err));
    if (tide_pg_changed(pg) != 1)
        return tide_error_set(err, TIDE_EXISTS, "%s: a member with that number exists",
                              tide_pg_name(pg));
    return tide_pg_exec(pg, "COMMIT", err);
}

tide_status tide_pgl_member_join(tide_ledger *ledger, const struct tide_member *member,
                                 uint32_t lease_ms, uint64_t now_unix_ms, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    TIDE_ASSERT(member->owner != 0);
    TIDE_ASSERT(!self->in_tx);
    tide_status rc = tide_pgl_ready(self, err);
    if (rc == TIDE_OK)
        rc = member_add(self, member, lease_ms, now_unix_ms, err);
    if (rc != TIDE_OK) {
        if (tide_pg_handle(self->pg) != NULL)
            (void)tide_pg_exec(self->pg, "ROLLBACK", NULL);
        return rc;
    }
    self->owner = member->owner;
    self->seq = 0;
    self->place[0] = '\0';
    return TIDE_OK;
}

/* An update of the member's own row moves it to a new place (ctid), which the next transaction
 * needs. */
static tide_status member_change(struct tide_postgres *self, const char *sql, tide_error *err)
{
    PGresult *result = NULL;
    TIDE_TRY(tide_pgl_write(self, sql, &result, err));
    if (PQntuples(result) != 1)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no member %" PRIu64, self->owner);
    tide_pgl_copy(result, 0, 0, self->place_next, sizeof self->place_next);
    return TIDE_OK;
}

tide_status tide_pgl_member_beat(tide_tx *tx, uint32_t lease_ms, uint64_t now_unix_ms,
                                 tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    TIDE_ASSERT(self->owner != 0);
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_u64(pg, self->owner);
    tide_pgl_clock(self, now_unix_ms);
    tide_pg_i64(pg, lease_ms);
    return tide_pgl_end(self, member_change(self, beat_sql, err));
}

tide_status tide_pgl_member_leave(tide_tx *tx, uint64_t now_unix_ms, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    TIDE_ASSERT(self->owner != 0);
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_u64(pg, self->owner);
    tide_pgl_clock(self, now_unix_ms);
    tide_status rc = member_change(self,
                                   "UPDATE tidemark.member SET dead = true, until = least(until,"
                                   " " PG_NOW("$2") ") WHERE owner = $1 RETURNING ctid::text",
                                   err);
    if (rc == TIDE_OK) {
        (void)tide_pgl_params(self);
        tide_pg_u64(pg, self->owner);
        rc = tide_pgl_write(self, "UPDATE tidemark.account SET owner = NULL WHERE owner = $1", NULL,
                            err);
    }
    if (rc == TIDE_OK)
        self->leaves = true;
    return tide_pgl_end(self, rc);
}

static const char members_sql[] =
    "SELECT m.owner, m.name, m.version, m.joined, m.until, m.dead,"
    " (SELECT count(*) FROM tidemark.account a WHERE a.owner = m.owner),"
    " (SELECT count(*) FROM tidemark.job j WHERE j.owner = m.owner AND j.state = 1)"
    " FROM tidemark.member m ORDER BY m.joined, m.name COLLATE \"C\", m.owner";

tide_status tide_pgl_members(tide_ledger *ledger,
                             bool (*visit)(const struct tide_member *member, void *arg), void *arg,
                             tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    PGresult *rows = NULL;
    (void)tide_pgl_params(self);
    tide_status rc = tide_pgl_rows(self, members_sql, &rows, err);
    for (int i = 0; i < PQntuples(rows); i++) {
        struct tide_member member = {
            .owner = tide_pg_get_u64(rows, i, 0),
            .joined_unix_ms = tide_pg_get_u64(rows, i, 3),
            .until_unix_ms = tide_pg_get_u64(rows, i, 4),
            .dead = tide_pg_get_bool(rows, i, 5),
            .accounts = (uint32_t)tide_pg_get_u64(rows, i, 6),
            .running = (uint32_t)tide_pg_get_u64(rows, i, 7),
        };
        tide_pgl_copy(rows, i, 1, member.name, sizeof member.name);
        tide_pgl_copy(rows, i, 2, member.version, sizeof member.version);
        if (!visit(&member, arg))
            break;
    }
    PQclear(rows);
    return rc;
}

/* ---- accounts ------------------------------------------------------------------------ */

static void account_params(struct tide_postgres *self, const uint32_t *accounts, size_t count)
{
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_array(pg, TIDE_PG_INT4);
    for (size_t i = 0; i < count; i++)
        tide_pg_i32(pg, (int32_t)accounts[i]);
    tide_pg_array_end(pg);
}

/* Two processes that take the same account wait for each other at its row; the second reads
 * the owner after it has the lock. */
static tide_status accounts_lock(struct tide_postgres *self, const uint32_t *accounts, size_t count,
                                 tide_error *err)
{
    account_params(self, accounts, count);
    return tide_pgl_write(self,
                          "SELECT 1 FROM tidemark.account WHERE id = ANY($1) ORDER BY id"
                          " FOR NO KEY UPDATE",
                          NULL, err);
}

/* A member whose lease expired holds its accounts until it is declared dead: only then are
 * its own transactions refused. */
static const char take_sql[] =
    "WITH taken AS (UPDATE tidemark.account a SET owner = $2 WHERE a.id = ANY($1)"
    "  AND (a.owner IS NULL OR a.owner = $2 OR NOT " PG_ALIVE(
        "a.owner") ") RETURNING a.id)"
                   " SELECT t.id IS NOT NULL FROM pg_catalog.unnest($1::int[]) WITH ORDINALITY AS "
                   "u (id, "
                   "place)"
                   " LEFT JOIN taken t ON t.id = u.id ORDER BY u.place";

tide_status tide_pgl_accounts_take(tide_tx *tx, const uint32_t *accounts, size_t count,
                                   uint64_t owner, bool *taken_out, uint64_t now_unix_ms,
                                   tide_error *err)
{
    (void)now_unix_ms;
    struct tide_postgres *self = postgres_of_tx(tx);
    PGresult *result = NULL;
    TIDE_ASSERT(owner != 0);
    if (count == 0)
        return TIDE_OK;
    tide_status rc = accounts_lock(self, accounts, count, err);
    if (rc == TIDE_OK) {
        account_params(self, accounts, count);
        tide_pg_u64(self->pg, owner);
        rc = tide_pgl_write(self, take_sql, &result, err);
    }
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    TIDE_ASSERT((size_t)PQntuples(result) == count);
    for (size_t i = 0; i < count; i++)
        taken_out[i] = tide_pg_get_bool(result, (int)i, 0);
    return TIDE_OK;
}

tide_status tide_pgl_accounts_release(tide_tx *tx, const uint32_t *accounts, size_t count,
                                      uint64_t owner, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    if (count == 0)
        return TIDE_OK;
    tide_status rc = accounts_lock(self, accounts, count, err);
    if (rc == TIDE_OK) {
        account_params(self, accounts, count);
        tide_pg_u64(self->pg, owner);
        rc = tide_pgl_write(self,
                            "UPDATE tidemark.account SET owner = NULL WHERE id = ANY($1)"
                            " AND owner = $2",
                            NULL, err);
    }
    return tide_pgl_end(self, rc);
}

/* One index seek for each account that has such jobs.  For an account that has none, all its
 * ready jobs of other kinds are read. */
tide_status tide_pgl_accounts_have(tide_ledger *ledger, const uint32_t *accounts, size_t count,
                                   const uint32_t *kinds, size_t kinds_count, bool *have_out,
                                   tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    PGresult *result = NULL;
    tide_status rc = tide_pgl_ready(self, err);
    if (rc != TIDE_OK || count == 0)
        return rc;
    account_params(self, accounts, count);
    tide_pg_array(self->pg, TIDE_PG_INT4);
    for (size_t i = 0; i < kinds_count; i++)
        tide_pg_i32(self->pg, (int32_t)kinds[i]);
    tide_pg_array_end(self->pg);
    rc = tide_pg_query(self->pg,
                       "SELECT w.some IS NOT NULL FROM unnest($1) WITH ORDINALITY AS a (id, n)"
                       " LEFT JOIN LATERAL (SELECT true AS some FROM tidemark.job j"
                       "  WHERE j.state = 0 AND j.open_deps = 0 AND j.account <> 0"
                       "  AND j.account = a.id AND j.kind = ANY($2)"
                       "  ORDER BY (100 - j.priority), j.id LIMIT 1) w ON true ORDER BY a.n",
                       &result, err);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        have_out[i] = tide_pg_get_bool(result, (int)i, 0);
    return tide_pgl_end(self, rc);
}

/* ---- shares of a limit (E4.1) -------------------------------------------------------- */

/* The weight of a share at a time t is the most its holder can have had during the window
 * that ends at t: `units` while its lease runs and for a window more, and what it had
 * before (`units_before`) until `before_until`.
 *
 * Claim: in no window of window_ms do all holders together spend more than units_max.
 *
 *   1. One holder.  It spends at u only if what it spent in the window that ends at u stays
 *      within the share L(u) it holds then.  In a window that ends at t let u be its last
 *      spending: everything it spent in that window lies in the window that ends at u, so
 *      it is at most L(u), which is at most the weight at t.
 *   2. Weights.  A weight rises only by a grant to its holder.  Grants of one limit are
 *      made one after the other: each holds the lock of the limit until it has committed,
 *      reads the shares in a statement after it has the lock, and takes the time then.  A
 *      grant gives at most units_max less the weights of all others.  A member that gets
 *      less than it had keeps the old number as its weight for a window, which is what it
 *      weighed before.  So the weights of all never add up to more than units_max.
 *   3. Together: what all spend in the window that ends at t is at most the sum of the
 *      weights at t, hence at most units_max.
 *
 * Two duties of the holder: it stops using a share before the lease ends by its own clock
 * (counted from before the request), and what it spends between a request for less and the
 * answer is within the answer.  When units_max itself is lowered, shares granted before count
 * until they expire.
 *
 * A member that gets nothing now is counted too: the others make room at their next request.
 * If there is less than one unit for each, the first ones get one. */
#define GRANT_CLOCK "WITH clock AS MATERIALIZED (SELECT " PG_NOW("$6") " AS now),"
static const char grant_sql[] = GRANT_CLOCK
    " shares AS MATERIALIZED (SELECT s.owner, s.units, s.until, c.now,"
    "  least(s.until, c.now) + $5 AS used_until,"
    "  CASE WHEN c.now < s.before_until THEN s.units_before ELSE 0 END AS had,"
    "  CASE WHEN c.now < s.before_until THEN s.before_until ELSE 0 END AS had_until"
    "  FROM tidemark.share s CROSS JOIN clock c WHERE s.name = $1),"
    " others AS (SELECT count(*) FILTER (WHERE now < until) AS n,"
    "  coalesce(sum(greatest(had, CASE WHEN now < until + $5 THEN units ELSE 0 END)), 0) AS weight"
    "  FROM shares WHERE owner <> $2),"
    " given AS (SELECT least($4, greatest($3 / (o.n + 1), least($3, 1)),"
    "  greatest(0, $3 - o.weight)::bigint) AS units FROM others o),"
    " own AS (SELECT g.units, c.now, coalesce(s.had, 0) AS had,"
    "  coalesce(s.had_until, 0) AS had_until, s.units AS units_old, s.used_until,"
    "  coalesce(s.units > g.units AND s.used_until > c.now, false) AS less"
    "  FROM given g CROSS JOIN clock c LEFT JOIN shares s ON s.owner = $2),"
    " gone AS (DELETE FROM tidemark.share s USING clock c WHERE s.name = $1 AND s.owner <> $2"
    "  AND s.until + $5 <= c.now AND s.before_until <= c.now)"
    " INSERT INTO tidemark.share (name, owner, units, until, units_before, before_until)"
    " SELECT $1, $2, units, CASE WHEN $4 = 0 THEN now ELSE now + $7 END,"
    "  CASE WHEN less THEN greatest(had, units_old) ELSE had END,"
    "  CASE WHEN less THEN greatest(had_until, used_until) ELSE had_until END FROM own"
    " ON CONFLICT (name, owner) DO UPDATE SET units = excluded.units, until = excluded.until,"
    "  units_before = excluded.units_before, before_until = excluded.before_until"
    " RETURNING units";

/* The first number separates our advisory locks from those of other programs. */
#define GRANT_LOCK "SELECT pg_catalog.pg_advisory_xact_lock(1414087749, pg_catalog.hashtext($1))"

static uint64_t at_most(uint64_t value, uint64_t value_max)
{
    return value < value_max ? value : value_max;
}

tide_status tide_pgl_grant(tide_tx *tx, const char *limit, uint64_t owner, uint64_t units_max,
                           uint64_t units_wanted, uint32_t window_ms, uint32_t lease_ms,
                           uint64_t now_unix_ms, uint64_t *units_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    PGresult *result = NULL;
    TIDE_ASSERT(owner != 0);
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_text(pg, tide_text_of(limit));
    tide_status rc = tide_pgl_write(self, GRANT_LOCK, NULL, err);
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    (void)tide_pgl_params(self);
    tide_pg_text(pg, tide_text_of(limit));
    tide_pg_u64(pg, owner);
    tide_pg_u64(pg, at_most(units_max, INT64_MAX));
    tide_pg_u64(pg, at_most(units_wanted, INT64_MAX));
    tide_pg_i64(pg, window_ms);
    tide_pgl_clock(self, now_unix_ms);
    tide_pg_i64(pg, lease_ms);
    rc = tide_pgl_write(self, grant_sql, &result, err);
    if (rc == TIDE_OK)
        *units_out = tide_pg_get_u64(result, 0, 0);
    return tide_pgl_end(self, rc);
}

/* ---- hints ----------------------------------------------------------------------------- */

tide_status tide_pgl_hint(tide_tx *tx, tide_hint hint, uint32_t account, tide_error *err)
{
    struct pg_hints *hints = &postgres_of_tx(tx)->hints;
    (void)err;
    if (hint == TIDE_HINT_CONTROL) {
        hints->control = true;
        return TIDE_OK;
    }
    for (size_t i = 0; i < hints->accounts_count; i++)
        if (hints->accounts[i] == account)
            return TIDE_OK;
    if (hints->accounts_count == TIDE_HINTS_ACCOUNTS_MAX)
        hints->all = true;
    else
        hints->accounts[hints->accounts_count++] = account;
    return TIDE_OK;
}

void tide_pgl_hints_text(const struct tide_postgres *self, char *sql_out, size_t sql_bytes)
{
    const struct pg_hints *hints = &self->hints;
    sql_out[0] = '\0';
    if (!hints->control && !hints->all && hints->accounts_count == 0)
        return;
    size_t at = (size_t)snprintf(sql_out, sql_bytes, "NOTIFY tidemark, '%s%s",
                                 hints->control ? "c" : "", hints->all ? "a" : "");
    for (size_t i = 0; !hints->all && i < hints->accounts_count; i++)
        at += (size_t)snprintf(sql_out + at, sql_bytes - at, "%c%" PRIu32, i == 0 ? 'w' : ',',
                               hints->accounts[i]);
    at += (size_t)snprintf(sql_out + at, sql_bytes - at, "'; ");
    TIDE_ASSERT(at < sql_bytes);
}

/* ---- enqueues that may be repeated ------------------------------------------------------ */

tide_status tide_pgl_batch_get(tide_ledger *ledger, tide_text name, uint64_t *ids_out,
                               size_t ids_max, size_t *count_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    PGresult *rows = NULL;
    (void)tide_pgl_params(self);
    tide_pg_text(self->pg, name);
    TIDE_TRY(
        tide_pgl_rows(self,
                      "SELECT u.id FROM tidemark.batch b LEFT JOIN LATERAL pg_catalog.unnest(b.ids)"
                      " WITH ORDINALITY AS u (id, place) ON true WHERE b.name = $1"
                      " ORDER BY u.place",
                      &rows, err));
    size_t total = (size_t)PQntuples(rows);
    tide_status rc = TIDE_OK;
    if (total == 1 && PQgetisnull(rows, 0, 0))
        *count_out = 0; /* a batch of no jobs */
    else if (total == 0)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no batch %.*s", (int)name.bytes,
                            name.data);
    else if (total > ids_max)
        rc = tide_error_set(err, TIDE_FULL, "the batch has %zu ids, there is room for %zu", total,
                            ids_max);
    else {
        for (size_t i = 0; i < total; i++)
            ids_out[i] = tide_pg_get_u64(rows, (int)i, 0);
        *count_out = total;
    }
    PQclear(rows);
    return rc;
}

/* Waits for another transaction that adds the same name; TIDE_EXISTS if that one commits. */
tide_status tide_pgl_batch_put(tide_tx *tx, tide_text name, const uint64_t *ids, size_t count,
                               uint64_t now_unix_ms, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_text(pg, name);
    tide_pgl_ids(self, ids, count);
    tide_pg_u64(pg, now_unix_ms);
    tide_status rc =
        tide_pgl_write(self,
                       "INSERT INTO tidemark.batch (name, ids, made) VALUES ($1, $2, $3)"
                       " ON CONFLICT (name) DO NOTHING",
                       NULL, err);
    if (rc == TIDE_OK && tide_pg_changed(pg) != 1)
        rc = tide_error_set(err, TIDE_EXISTS, "the batch %.*s exists", (int)name.bytes, name.data);
    return tide_pgl_end(self, rc);
}
