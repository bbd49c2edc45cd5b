/* days.c - deletes old rows (E1.2), and creates and drops the partitions of days.
 *
 * A round of purges checks each day that is older than the limit, one per call: where no
 * row belongs to an unfinished cycle the day is dropped whole, which costs the same for ten
 * rows and ten million.  Then it walks the rest row by row, in the order of ids: failed and
 * canceled jobs, rows that have no day partition, and the days that an unfinished cycle holds.
 * The day of the limit itself is kept until all of it is older: its rows would be deleted one
 * by one for nothing.
 *
 * Creating and dropping a partition needs a lock of the whole table for a moment.  Every
 * process that finishes a job queues behind a session that waits for that lock, so the wait is
 * short; a long reader delays the change to the next round. */
#include "ledger/postgres/cold.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <string.h>

enum {
    DAYS_AHEAD = 2,
    LOOK_MAX = 10000, /* rows checked in one call (E2.5) */
};
#define LOCK_WAIT_MS "300"

/* Days that have a partition, by its bounds in the catalog. */
#define DAYS                                                                                       \
    "(SELECT c.oid, substring(pg_catalog.pg_get_expr(c.relpartbound, c.oid)"                       \
    " from 'FROM \\(''?(-?[0-9]+)')::bigint / " PG_DAY_MS " AS day"                                \
    " FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid"              \
    " WHERE i.inhparent = 'tidemark.job_done'::regclass) days"

#define UNFINISHED "(SELECT id FROM tidemark.cycle WHERE outstanding > 0 OR failed > 0)"

/* ---- waiting for a short time ------------------------------------------------------------ */

/* Runs one statement that locks a whole table, inside a savepoint.
 * *done_out = false: another session held a lock, and nothing happened. */
static tide_status briefly(struct tide_postgres *self, const char *sql, int64_t day,
                           int64_t *number_out, bool *done_out, tide_error *err)
{
    PGresult *result = NULL;
    char usual[32] = "0";
    (void)tide_pgl_params(self);
    TIDE_TRY(
        tide_pgl_write(self, "SELECT pg_catalog.current_setting('lock_timeout')", &result, err));
    tide_pgl_copy(result, 0, 0, usual, sizeof usual);
    TIDE_TRY(tide_pg_exec(self->pg, "SAVEPOINT day; SET LOCAL lock_timeout = " LOCK_WAIT_MS, err));
    (void)tide_pgl_params(self);
    tide_pg_i64(self->pg, day);
    tide_status rc = tide_pgl_write(self, sql, &result, err);
    if (rc == TIDE_BUSY && strcmp(tide_pg_sqlstate(self->pg), "55P03") == 0) {
        TIDE_SEEN("ledger: a partition had to wait");
        *done_out = false;
        return tide_pg_exec(self->pg, "ROLLBACK TO SAVEPOINT day; RELEASE SAVEPOINT day", err);
    }
    if (rc != TIDE_OK)
        return rc;
    *number_out = tide_pg_get_i64(result, 0, 0);
    *done_out = true;
    rc = tide_pg_exec(self->pg, "RELEASE SAVEPOINT day", err);
    (void)tide_pgl_params(self);
    tide_pg_text(self->pg, tide_text_of(usual));
    if (rc == TIDE_OK)
        rc = tide_pgl_write(self, "SELECT pg_catalog.set_config('lock_timeout', $1, true)", NULL,
                            err);
    return rc;
}

/* ---- creating ---------------------------------------------------------------------------- */

/* Days from today on that have no partition yet; the first `ahead` + 1 of them. */
static const char missing_sql[] = "SELECT d.day, t.today FROM (SELECT " PG_NOW(
    "NULL") " / " PG_DAY_MS " AS today) t"
            " CROSS JOIN LATERAL pg_catalog.generate_series(t.today, t.today + $1) AS d (day)"
            " WHERE NOT EXISTS (SELECT 1 FROM " DAYS " WHERE days.day = d.day) ORDER BY d.day";

static const char open_sql[] = "SELECT tidemark.day_open($1)::int";

static tide_status days_missing(struct tide_postgres *self, int64_t *days_out, size_t *count_out,
                                tide_error *err)
{
    PGresult *rows = NULL;
    (void)tide_pgl_params(self);
    tide_pg_i64(self->pg, DAYS_AHEAD);
    TIDE_TRY(tide_pgl_rows(self, missing_sql, &rows, err));
    size_t count = (size_t)PQntuples(rows);
    TIDE_ASSERT(count <= DAYS_AHEAD + 1);
    for (size_t i = 0; i < count; i++)
        days_out[i] = tide_pg_get_i64(rows, (int)i, 0);
    PQclear(rows);
    *count_out = count;
    return TIDE_OK;
}

/* A failure here does not fail the open: a partition that cannot be created now is created by
 * the next purge, and the default partition takes rows meanwhile. */
tide_status tide_pgl_days_open(struct tide_postgres *self, tide_error *err)
{
    int64_t days[DAYS_AHEAD + 1];
    size_t count = 0;
    TIDE_ASSERT(!self->in_tx);
    if (!self->database_clock || self->read_only)
        return TIDE_OK;
    TIDE_TRY(days_missing(self, days, &count, err));
    for (size_t i = 0; i < count; i++) {
        tide_status made =
            tide_pg_exec(self->pg, "BEGIN; SET LOCAL lock_timeout = " LOCK_WAIT_MS, err);
        (void)tide_pgl_params(self);
        tide_pg_i64(self->pg, days[i]);
        if (made == TIDE_OK)
            made = tide_pg_query(self->pg, open_sql, NULL, err);
        if (made == TIDE_OK)
            made = tide_pg_exec(self->pg, "COMMIT", err);
        if (made == TIDE_NETWORK || made == TIDE_NO_MEMORY)
            TIDE_TRY(made);
        else if (made != TIDE_OK)
            TIDE_TRY(tide_pg_exec(self->pg, "ROLLBACK", err));
    }
    return TIDE_OK;
}

static tide_status days_make(struct tide_postgres *self, tide_error *err)
{
    int64_t days[DAYS_AHEAD + 1];
    size_t count = 0;
    bool made = true;
    int64_t ignored = 0;
    if (!self->database_clock)
        return TIDE_OK;
    TIDE_TRY(days_missing(self, days, &count, err));
    for (size_t i = 0; made && i < count; i++)
        TIDE_TRY(briefly(self, open_sql, days[i], &ignored, &made, err));
    return TIDE_OK;
}

/* ---- dropping ---------------------------------------------------------------------------- */

static tide_status day_next(struct tide_postgres *self, int64_t before, int64_t *day_out,
                            bool *found_out, tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_i64(self->pg, self->purge_day);
    tide_pg_i64(self->pg, before);
    TIDE_TRY(tide_pgl_write(self,
                            "SELECT min(day) FROM " DAYS " WHERE day >= $1"
                            " AND (day + 1) * " PG_DAY_MS " <= $2",
                            &result, err));
    *found_out = !PQgetisnull(result, 0, 0);
    *day_out = tide_pg_get_i64(result, 0, 0);
    return TIDE_OK;
}

/* Rows of the day, and those of them that an unfinished cycle holds. */
static tide_status day_count(struct tide_postgres *self, int64_t day, uint64_t *rows_out,
                             uint64_t *held_out, tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_i64(self->pg, day);
    TIDE_TRY(tide_pgl_write(self,
                            "SELECT count(*), count(*) FILTER (WHERE cycle IN " UNFINISHED ")"
                            " FROM tidemark.job_done WHERE finished >= $1 * " PG_DAY_MS
                            " AND finished < ($1 + 1) * " PG_DAY_MS,
                            &result, err));
    *rows_out = tide_pg_get_u64(result, 0, 0);
    *held_out = tide_pg_get_u64(result, 0, 1);
    return TIDE_OK;
}

static tide_status day_drop(struct tide_postgres *self, int64_t day, bool *dropped_out,
                            tide_error *err)
{
    int64_t there = 0;
    bool done = false;
    /* An intent with an unknown outcome outlives its job (E1.9). */
    (void)tide_pgl_params(self);
    tide_pg_i64(self->pg, day);
    TIDE_TRY(tide_pgl_write(self,
                            "DELETE FROM tidemark.intent i WHERE i.state IN (1, 2)"
                            " AND EXISTS (SELECT 1 FROM tidemark.job_done d"
                            " WHERE d.id = i.job AND d.finished >= $1 * " PG_DAY_MS
                            " AND d.finished < ($1 + 1) * " PG_DAY_MS ")",
                            NULL, err));
    TIDE_TRY(briefly(self, "SELECT tidemark.day_drop($1)", day, &there, &done, err));
    *dropped_out = done && there > 0;
    return TIDE_OK;
}

/* ---- row by row -------------------------------------------------------------------------- */

/* Failed and canceled jobs that no job waits for; those of a cycle keep it unfinished. */
static const char gap_sql[] =
    "WITH old AS MATERIALIZED (SELECT id FROM tidemark.job WHERE state >= 3 AND finished < $1"
    "  AND (cycle IS NULL OR cycle NOT IN " UNFINISHED ") AND NOT EXISTS"
    "  (SELECT 1 FROM tidemark.dep d WHERE d.needs = job.id) LIMIT $2)"
    " SELECT id FROM tidemark.job WHERE id IN (SELECT id FROM old) AND state >= 3 AND finished < $1"
    " ORDER BY id FOR UPDATE SKIP LOCKED";

/* They are locked, so no new job can wait for one (LPG6). */
static const char gap_delete_sql[] =
    "WITH gone AS (DELETE FROM tidemark.job j WHERE j.id = ANY($1) AND NOT EXISTS"
    "  (SELECT 1 FROM tidemark.dep d WHERE d.needs = j.id) RETURNING j.id),"
    " waits AS (DELETE FROM tidemark.dep d WHERE d.job IN (SELECT id FROM gone)),"
    " told AS (DELETE FROM tidemark.intent i WHERE i.job IN (SELECT id FROM gone)"
    "  AND i.state IN (1, 2))"
    " SELECT count(*) FROM gone";

static tide_status ids_run(struct tide_postgres *self, const char *sql, const uint64_t *ids,
                           size_t count, uint64_t before, size_t *count_out, tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pgl_ids(self, ids, count);
    if (before != 0)
        tide_pg_u64(self->pg, before);
    TIDE_TRY(tide_pgl_write(self, sql, &result, err));
    *count_out = (size_t)tide_pg_get_u64(result, 0, 0);
    return TIDE_OK;
}

static tide_status purge_gap(struct tide_postgres *self, uint64_t before, size_t count_max,
                             size_t *count_out, tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, before);
    tide_pg_u64(self->pg, count_max);
    TIDE_TRY(tide_pgl_write(self, gap_sql, &result, err));
    size_t count = (size_t)PQntuples(result);
    if (count == 0) {
        *count_out = 0;
        return TIDE_OK;
    }
    uint64_t *ids = tide_mem_array(self->mem, count, sizeof ids[0]);
    if (ids == NULL)
        return tide_pgl_no_memory(err);
    for (size_t i = 0; i < count; i++)
        ids[i] = tide_pg_get_u64(result, (int)i, 0);
    tide_status rc = ids_run(self, gap_delete_sql, ids, count, 0, count_out, err);
    tide_mem_free(self->mem, ids, count * sizeof ids[0]);
    return rc;
}

/* Done rows by id: of days that are older than the limit as a whole ($2: where the day of the
 * limit begins), and of no day. */
static const char done_sql[] =
    "SELECT id, coalesce(cycle IN " UNFINISHED ", false) FROM ("
    " (SELECT id, cycle FROM tidemark.job_done WHERE finished < $2 AND id > $1"
    "  ORDER BY id LIMIT $4) UNION ALL"
    " (SELECT id, cycle FROM tidemark.job_done_rest WHERE finished >= $2 AND finished < $3"
    "  AND id > $1 ORDER BY id LIMIT $4)) old ORDER BY id LIMIT $4";

static const char done_delete_sql[] =
    "WITH gone AS (DELETE FROM tidemark.job_done WHERE id = ANY($1) AND finished < $2"
    "  RETURNING id),"
    " told AS (DELETE FROM tidemark.intent i WHERE i.job IN (SELECT id FROM gone)"
    "  AND i.state IN (1, 2))"
    " SELECT count(*) FROM gone";

/* Chooses ids from a slice of LOOK_MAX, and sets where the next slice begins. */
static size_t done_choose(struct tide_postgres *self, const PGresult *result, uint64_t *ids,
                          size_t count_max)
{
    int looked = 0;
    size_t count = 0;
    for (; looked < PQntuples(result) && count < count_max; looked++) {
        self->purge_after = tide_pg_get_u64(result, looked, 0);
        if (!tide_pg_get_bool(result, looked, 1))
            ids[count++] = self->purge_after;
    }
    self->base.purge_more = looked < PQntuples(result) || PQntuples(result) == LOOK_MAX;
    return count;
}

static tide_status purge_done(struct tide_postgres *self, uint64_t before, size_t count_max,
                              size_t *count_out, tide_error *err)
{
    PGresult *result = NULL;
    const uint64_t day_ms = 86400000;
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_u64(pg, self->purge_after);
    tide_pg_u64(pg, before - before % day_ms);
    tide_pg_u64(pg, before);
    tide_pg_i64(pg, LOOK_MAX);
    TIDE_TRY(tide_pgl_write(self, done_sql, &result, err));
    uint64_t *ids = tide_mem_array(self->mem, LOOK_MAX, sizeof ids[0]);
    if (ids == NULL)
        return tide_pgl_no_memory(err);
    size_t count = done_choose(self, result, ids, count_max);
    *count_out = 0;
    tide_status rc = TIDE_OK;
    if (count > 0)
        rc = ids_run(self, done_delete_sql, ids, count, before, count_out, err);
    tide_mem_free(self->mem, ids, LOOK_MAX * sizeof ids[0]);
    return rc;
}

/* ---- what is kept for as long as jobs are ------------------------------------------------- */

static tide_status purge_rest(struct tide_postgres *self, uint64_t before, tide_error *err)
{
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, before);
    tide_pg_i64(self->pg, LOOK_MAX);
    TIDE_TRY(tide_pgl_write(self,
                            "DELETE FROM tidemark.batch WHERE name IN (SELECT name"
                            " FROM tidemark.batch WHERE made < $1 LIMIT $2)",
                            NULL, err));
    /* An expired share counts for one more window: never for a day.  Rows of dead members are
     * deleted by reclaim. */
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, before);
    return tide_pgl_write(self,
                          "DELETE FROM tidemark.share WHERE until < $1 - " PG_DAY_MS
                          " AND before_until < $1 - " PG_DAY_MS,
                          NULL, err);
}

/* ---- a call ------------------------------------------------------------------------------- */

static tide_status purge_day(struct tide_postgres *self, uint64_t before, size_t *count_out,
                             bool *found_out, tide_error *err)
{
    int64_t day = 0;
    uint64_t rows = 0;
    uint64_t held = 0;
    bool dropped = false;
    TIDE_TRY(day_next(self, (int64_t)before, &day, found_out, err));
    if (!*found_out)
        return TIDE_OK;
    TIDE_TRY(day_count(self, day, &rows, &held, err));
    if (held == 0)
        TIDE_TRY(day_drop(self, day, &dropped, err));
    *count_out = dropped ? (size_t)rows : 0;
    self->purge_day = day + 1;
    self->base.purge_more = true;
    return TIDE_OK;
}

static tide_status purge_rows(struct tide_postgres *self, uint64_t before, size_t count_max,
                              size_t *count_out, tide_error *err)
{
    size_t gaps = 0;
    size_t done = 0;
    tide_status rc = TIDE_OK;
    if (self->purge_after == 0)
        rc = purge_gap(self, before, count_max, &gaps, err);
    self->base.purge_more = true;
    if (rc == TIDE_OK && gaps < count_max)
        rc = purge_done(self, before, count_max - gaps, &done, err);
    if (rc == TIDE_OK && !self->base.purge_more) {
        self->purge_day = 0;
        self->purge_after = 0;
        rc = purge_rest(self, before, err);
    }
    if (rc == TIDE_OK)
        *count_out = gaps + done;
    return rc;
}

/* The caller's clock decides what is old.  A clock that is far ahead would purge jobs that
 * were finished just now, and batch names that callers still use. */
static tide_status clock_judge(struct tide_postgres *self, tide_error *err)
{
    PGresult *result = NULL;
    if (!self->database_clock)
        return TIDE_OK;
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, tide_world_now_unix_ms(self->world));
    TIDE_TRY(
        tide_pgl_write(self, "SELECT $1 > " TIDE_PGL_CLOCK " + " PG_AHEAD_MS_MAX, &result, err));
    if (tide_pg_get_bool(result, 0, 0))
        return tide_error_set(err, TIDE_INVALID,
                              "this machine's clock is over an hour ahead of the database's: "
                              "nothing is purged");
    return TIDE_OK;
}

tide_status tide_pgl_purge(tide_tx *tx, uint64_t finished_before_unix_ms, size_t count_max,
                           size_t *count_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    uint64_t before = finished_before_unix_ms < INT64_MAX ? finished_before_unix_ms : INT64_MAX;
    size_t slice = count_max == 0 ? TIDE_PURGE_SLICE : count_max;
    size_t count = 0;
    bool day = false;
    tide_status rc = clock_judge(self, err);
    if (slice > LOOK_MAX)
        slice = LOOK_MAX;
    if (rc == TIDE_OK && self->purge_day == 0 && self->purge_after == 0)
        rc = days_make(self, err);
    if (rc == TIDE_OK && self->purge_after == 0)
        rc = purge_day(self, before, &count, &day, err);
    if (rc == TIDE_OK && !day)
        rc = purge_rows(self, before, slice, &count, err);
    if (rc == TIDE_OK)
        *count_out = count;
    return tide_pgl_end(self, rc);
}
