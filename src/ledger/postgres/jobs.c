/* jobs.c - reclaim, retry, cancel, accept, and the counters that follow a change. */
#include "ledger/postgres/cold.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    PICKS_MAX = 100000, /* rows of one slice */
    PICKS_USUAL = 500,  /* when the caller does not say */
    CHANGES_MAX = 16 << 20,
};

/* ---- what the cold operations share ------------------------------------------------ */

tide_status tide_pgl_write(struct tide_postgres *self, const char *sql, PGresult **result_out,
                           tide_error *err)
{
    TIDE_ASSERT(self->in_tx);
    tide_status rc = tide_pg_query(self->pg, sql, result_out, err);
    if (rc != TIDE_EXISTS)
        return rc;
    if (err != NULL)
        err->status = TIDE_BUSY;
    return TIDE_BUSY;
}

tide_status tide_pgl_change_one(struct tide_postgres *self, const char *sql, const char *what,
                                uint64_t id, tide_error *err)
{
    tide_status rc = tide_pgl_write(self, sql, NULL, err);
    if (rc == TIDE_OK && tide_pg_changed(self->pg) != 1)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no %s %" PRIu64, what, id);
    return tide_pgl_end(self, rc);
}

tide_status tide_pgl_rows(struct tide_postgres *self, const char *sql, PGresult **rows_out,
                          tide_error *err)
{
    PGresult *result = NULL;
    tide_status rc = tide_pgl_ready(self, err);
    if (rc == TIDE_OK)
        rc = tide_pg_query(self->pg, sql, &result, err);
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    PGresult *rows = PQcopyResult(result, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
    if (rows == NULL)
        return tide_pgl_no_memory(err);
    *rows_out = rows;
    return TIDE_OK;
}

void tide_pgl_copy(const PGresult *rows, int row, int column, char *text_out, size_t text_bytes)
{
    tide_text text = tide_pg_get_text(rows, row, column);
    size_t bytes = text.bytes < text_bytes ? text.bytes : text_bytes - 1;
    if (bytes > 0)
        memcpy(text_out, text.data, bytes);
    text_out[bytes] = '\0';
}

static bool grow(tide_mem *mem, void **array, size_t *capacity, size_t count, size_t element_bytes)
{
    return tide_mem_grow(mem, array, capacity, count, CHANGES_MAX, element_bytes);
}

/* ---- counters ---------------------------------------------------------------------- */

static int delta_order(const void *a, const void *b)
{
    uint64_t x = ((const struct pg_cycle_delta *)a)->cycle;
    uint64_t y = ((const struct pg_cycle_delta *)b)->cycle;
    return x < y ? -1 : x > y;
}

static size_t merge_deltas(struct pg_cycle_delta *deltas, size_t count)
{
    qsort(deltas, count, sizeof deltas[0], delta_order);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || deltas[kept - 1].cycle != deltas[i].cycle) {
            deltas[kept++] = deltas[i];
            continue;
        }
        deltas[kept - 1].total += deltas[i].total;
        deltas[kept - 1].outstanding += deltas[i].outstanding;
        deltas[kept - 1].failed += deltas[i].failed;
    }
    return kept;
}

static tide_status report_cycle(const PGresult *result, int row, struct tide_changes *changes,
                                tide_error *err)
{
    struct tide_cycle_change change = {
        .cycle = tide_pg_get_u64(result, row, 0),
        .stream = tide_pg_get_u64(result, row, 1),
        .ordinal = tide_pg_get_u64(result, row, 2),
        .outstanding = tide_pg_get_u64(result, row, 3),
        .failed = tide_pg_get_u64(result, row, 4),
        .total = tide_pg_get_u64(result, row, 5),
        .bad = tide_pg_get_u64(result, row, 6),
    };
    /* LED3: no count ever becomes negative. */
    TIDE_ASSERT((int64_t)change.outstanding >= 0);
    TIDE_ASSERT((int64_t)change.failed >= 0);
    if (!grow(changes->mem, (void **)&changes->cycles, &changes->cycles_capacity,
              changes->cycles_count + 1, sizeof changes->cycles[0]))
        return tide_pgl_no_memory(err);
    changes->cycles[changes->cycles_count++] = change;
    return TIDE_OK;
}

static void delta_params(struct tide_postgres *self, const struct pg_cycle_delta *deltas,
                         size_t count)
{
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_array(pg, TIDE_PG_INT8);
    for (size_t i = 0; i < count; i++)
        tide_pg_u64(pg, deltas[i].cycle);
    tide_pg_array_end(pg);
    tide_pg_array(pg, TIDE_PG_INT8);
    for (size_t i = 0; i < count; i++)
        tide_pg_i64(pg, deltas[i].total);
    tide_pg_array_end(pg);
    tide_pg_array(pg, TIDE_PG_INT8);
    for (size_t i = 0; i < count; i++)
        tide_pg_i64(pg, deltas[i].outstanding);
    tide_pg_array_end(pg);
    tide_pg_array(pg, TIDE_PG_INT8);
    for (size_t i = 0; i < count; i++)
        tide_pg_i64(pg, deltas[i].failed);
    tide_pg_array_end(pg);
}

tide_status tide_pgl_cycles_write(struct tide_postgres *self, struct pg_cycle_delta *deltas,
                                  size_t count, struct tide_changes *changes, tide_error *err)
{
    if (count == 0)
        return TIDE_OK;
    count = merge_deltas(deltas, count);
    PGresult *result = NULL;
    delta_params(self, deltas, count);
    TIDE_TRY(tide_pg_run(self->pg, PGSQL_CYCLES_ADD, &result, err));
    if ((size_t)PQntuples(result) != count)
        return tide_error_set(err, TIDE_CORRUPT, "%s: a cycle of a job is missing; run a check",
                              tide_pg_name(self->pg));
    for (int i = 0; changes != NULL && i < PQntuples(result); i++)
        TIDE_TRY(report_cycle(result, i, changes, err));
    return TIDE_OK;
}

/* A free job became ready at an id that claims have passed; its lane is in `column`, its
 * priority in the next. */
static void head_back(struct tide_postgres *self, const PGresult *result, int row, int column,
                      uint64_t id)
{
    tide_pgl_head_back(self, (unsigned)tide_pg_get_u64(result, row, column),
                       (unsigned)tide_pg_get_u64(result, row, column + 1), id);
}

tide_status tide_pgl_release(struct tide_postgres *self, const uint64_t *ids, size_t count,
                             struct tide_changes *changes, tide_error *err)
{
    if (count == 0)
        return TIDE_OK;
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pgl_ids(self, ids, count);
    TIDE_TRY(tide_pg_run(self->pg, PGSQL_RELEASE, &result, err));
    for (int i = 0; i < PQntuples(result); i++) {
        struct tide_released released = {tide_pg_get_u64(result, i, 0),
                                         (uint32_t)tide_pg_get_i64(result, i, 1),
                                         (uint32_t)tide_pg_get_i64(result, i, 2)};
        TIDE_ASSERT((int32_t)released.open_deps >= 0);
        /* A canceled job keeps its count right, but is not reported. */
        if (tide_pg_get_i64(result, i, 3) != TIDE_ROW_PENDING)
            continue;
        if (released.account == 0 && released.open_deps == 0)
            head_back(self, result, i, 4, released.id);
        if (changes == NULL)
            continue;
        if (!grow(changes->mem, (void **)&changes->released, &changes->released_capacity,
                  changes->released_count + 1, sizeof changes->released[0]))
            return tide_pgl_no_memory(err);
        changes->released[changes->released_count++] = released;
    }
    return TIDE_OK;
}

/* ---- slices of many -------------------------------------------------------------- */

static size_t slice_of(size_t wanted)
{
    if (wanted == 0)
        return PICKS_USUAL;
    return wanted < PICKS_MAX ? wanted : PICKS_MAX;
}

/* A job filter: $1 id, $2..$3 accounts, $4 kind, $5 state, $6 cycle, $7 before, $8 rows.
 * A plan is made without knowing them, so each way to find rows is a statement of its own: by
 * id, or by the index that has just these rows.  The rows found are locked in the order of
 * ids (LPG3), and checked again then. */
#define FILTER                                                                                     \
    " account BETWEEN $2 AND $3 AND ($4 = 0 OR kind = $4) AND ($5 < 0 OR state = $5)"              \
    " AND ($6 = 0 OR cycle = $6) AND ($7 = 0 OR id < $7) AND ($1 = 0 OR id = $1) "
#define FOUND(columns) "found AS MATERIALIZED (SELECT " columns " FROM tidemark.job WHERE "
#define PENDING(name, where)                                                                       \
    name " AS MATERIALIZED (SELECT id FROM tidemark.job WHERE state = 0 AND " where " AND" FILTER  \
         "LIMIT $8),"
#define BY_ID(columns, states) "WITH " FOUND(columns) states " AND id = $1 AND" FILTER "LIMIT $8)"

static void filter_params(struct tide_postgres *self, const struct tide_job_filter *filter,
                          size_t count_max)
{
    bool any_account = filter->account == UINT32_MAX;
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_u64(pg, filter->id);
    tide_pg_i64(pg, any_account ? 0 : filter->account);
    tide_pg_i64(pg, filter->account);
    tide_pg_i64(pg, filter->kind);
    tide_pg_i64(pg, filter->state);
    tide_pg_u64(pg, filter->cycle);
    tide_pg_u64(pg, filter->before_id);
    tide_pg_u64(pg, count_max);
}

/* Column 0 of a result into a new array of ids, in order. */
static tide_status ids_of(struct tide_postgres *self, const PGresult *result, uint64_t **ids_out,
                          size_t *count_out, tide_error *err)
{
    size_t count = (size_t)PQntuples(result);
    uint64_t *ids = tide_mem_array(self->mem, count == 0 ? 1 : count, sizeof ids[0]);
    if (ids == NULL)
        return tide_pgl_no_memory(err);
    for (size_t i = 0; i < count; i++)
        ids[i] = tide_pg_get_u64(result, (int)i, 0);
    *ids_out = ids;
    *count_out = count;
    return TIDE_OK;
}

static void ids_free(struct tide_postgres *self, uint64_t *ids, size_t count)
{
    if (ids != NULL)
        tide_mem_free(self->mem, ids, (count == 0 ? 1 : count) * sizeof ids[0]);
}

/* What each changed row does to its cycle: column `column` names it, the delta is given
 * for the state in column `column` + 1, or the same for all where that is absent. */
static tide_status cycles_follow(struct tide_postgres *self, const PGresult *result, int column,
                                 struct pg_cycle_delta each, struct tide_changes *changes,
                                 tide_error *err)
{
    size_t rows = (size_t)PQntuples(result);
    size_t count = 0;
    struct pg_cycle_delta *deltas =
        tide_mem_array(self->mem, rows == 0 ? 1 : rows, sizeof deltas[0]);
    if (deltas == NULL)
        return tide_pgl_no_memory(err);
    for (size_t i = 0; i < rows; i++) {
        uint64_t cycle = tide_pg_get_u64(result, (int)i, column);
        if (cycle == 0)
            continue;
        each.cycle = cycle;
        deltas[count++] = each;
    }
    tide_status rc = tide_pgl_cycles_write(self, deltas, count, changes, err);
    tide_mem_free(self->mem, deltas, (rows == 0 ? 1 : rows) * sizeof deltas[0]);
    return rc;
}

/* ---- retry ------------------------------------------------------------------------- */

/* Whether a row that becomes pending again must give up its key, because another job of the
 * key was enqueued since, or becomes pending before it in this statement: both have to run
 * (LED5). */
#define KEYLESS(row)                                                                               \
    "EXISTS (SELECT 1 FROM tidemark.job o WHERE o.account = " row ".account AND o.kind = " row     \
    ".kind AND o.dedupe = " row ".dedupe AND o.dedupe IS NOT NULL AND o.state <= o.scope"          \
    " AND o.id <> " row ".id)"
#define FIRST_OF_KEY "row_number() OVER (PARTITION BY account, kind, dedupe ORDER BY id) = 1"

/* Failed and canceled jobs, and delayed ones; by id, any pending one. */
#define RETRY_REST                                                                                 \
    " picked AS MATERIALIZED (SELECT id, state, account, kind, dedupe FROM tidemark.job"           \
    "  WHERE id IN (SELECT id FROM found) AND state IN (0, 3, 4) ORDER BY id FOR NO KEY UPDATE),"  \
    " again AS MATERIALIZED (SELECT id, " FIRST_OF_KEY " AND NOT " KEYLESS(                        \
        "picked") "  AS keeps FROM picked WHERE state >= 3)"                                       \
                  " UPDATE tidemark.job j SET state = 0, not_before = NULL, finished = NULL,"      \
                  " attempts = CASE WHEN p.state >= 3 THEN 0 ELSE j.attempts END,"                 \
                  " dedupe = CASE WHEN a.keeps IS false THEN NULL ELSE j.dedupe END"               \
                  " FROM picked p LEFT JOIN again a ON a.id = p.id WHERE j.id = p.id"              \
                  " RETURNING CASE WHEN p.state >= 3 THEN j.cycle END, j.id, j.lane, j.priority"

static const char retry_one_sql[] = BY_ID("id", "state IN (0, 3, 4)") "," RETRY_REST;
/* clang-format off */
static const char retry_sql[] =
    "WITH gap AS MATERIALIZED (SELECT id FROM tidemark.job WHERE state >= 3 AND" FILTER "LIMIT $8),"
    PENDING("ready", "open_deps = 0 AND account <> 0 AND not_before IS NOT NULL")
    PENDING("late", "open_deps = 0 AND account = 0 AND not_before IS NOT NULL AND NOT due")
    PENDING("free", "open_deps = 0 AND account = 0 AND (not_before IS NULL OR due)"
                    " AND not_before IS NOT NULL")
    PENDING("blocked", "open_deps > 0 AND not_before IS NOT NULL")
    " found AS MATERIALIZED (SELECT id FROM gap UNION ALL SELECT id FROM ready"
    "  UNION ALL SELECT id FROM free UNION ALL SELECT id FROM late"
    "  UNION ALL SELECT id FROM blocked LIMIT $8),"
    RETRY_REST;
/* clang-format on */

tide_status tide_pgl_retry(tide_tx *tx, const struct tide_job_filter *filter, uint64_t now_unix_ms,
                           size_t *count_out, struct tide_changes *changes, tide_error *err)
{
    (void)now_unix_ms;
    struct tide_postgres *self = postgres_of_tx(tx);
    PGresult *result = NULL;
    filter_params(self, filter, slice_of(filter->count_max));
    tide_status rc =
        tide_pgl_write(self, filter->id != 0 ? retry_one_sql : retry_sql, &result, err);
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    size_t count = (size_t)PQntuples(result);
    tide_pgl_look_again(self);
    for (int i = 0; i < PQntuples(result); i++)
        head_back(self, result, i, 2, tide_pg_get_u64(result, i, 1));
    rc = cycles_follow(self, result, 0, (struct pg_cycle_delta){.outstanding = 1, .failed = -1},
                       changes, err);
    if (rc == TIDE_OK)
        *count_out = count;
    return tide_pgl_end(self, rc);
}

/* ---- cancel ------------------------------------------------------------------------ */

#define CANCEL_REST                                                                                \
    " picked AS MATERIALIZED (SELECT id FROM tidemark.job WHERE id IN (SELECT id FROM found)"      \
    "  AND state = 0 ORDER BY id FOR NO KEY UPDATE)"                                               \
    " UPDATE tidemark.job j SET state = 4, finished = $9 FROM picked p WHERE j.id = p.id"          \
    " RETURNING j.cycle"

static const char cancel_one_sql[] = BY_ID("id", "state = 0") "," CANCEL_REST;
/* Every waiting job is in one of these four indexes. */
/* clang-format off */
static const char cancel_sql[] =
    "WITH "
    PENDING("ready", "open_deps = 0 AND account <> 0")
    PENDING("free", "open_deps = 0 AND account = 0 AND (not_before IS NULL OR due)")
    PENDING("late", "open_deps = 0 AND account = 0 AND not_before IS NOT NULL AND NOT due")
    PENDING("blocked", "open_deps > 0")
    " found AS MATERIALIZED (SELECT id FROM ready UNION ALL SELECT id FROM free"
    "  UNION ALL SELECT id FROM late UNION ALL SELECT id FROM blocked LIMIT $8),"
    CANCEL_REST;
/* clang-format on */

/* All running jobs get the cancel request, also those that are not returned, and keep it until
 * they end: another process may run them, and checks for it. */
#define CANCEL_RUNNING_REST                                                                        \
    " picked AS MATERIALIZED (SELECT id FROM tidemark.job WHERE id IN (SELECT id FROM found)"      \
    "  AND state = 1 ORDER BY id FOR NO KEY UPDATE),"                                              \
    " marked AS (UPDATE tidemark.job j SET cancel_wanted = true FROM picked p"                     \
    "  WHERE j.id = p.id RETURNING j.id)"                                                          \
    " SELECT id FROM marked ORDER BY id"
static const char cancel_running_one_sql[] = BY_ID("id", "state = 1") "," CANCEL_RUNNING_REST;
static const char cancel_running_sql[] =
    "WITH " FOUND("id") "state = 1 AND" FILTER "LIMIT $8)," CANCEL_RUNNING_REST;

static tide_status cancel_running(struct tide_postgres *self, const struct tide_job_filter *filter,
                                  uint64_t *running_out, size_t running_max, size_t *count_out,
                                  tide_error *err)
{
    PGresult *result = NULL;
    filter_params(self, filter, PICKS_MAX);
    TIDE_TRY(tide_pgl_write(self, filter->id != 0 ? cancel_running_one_sql : cancel_running_sql,
                            &result, err));
    size_t count = (size_t)PQntuples(result);
    if (count > running_max)
        count = running_max;
    for (size_t i = 0; i < count; i++)
        running_out[i] = tide_pg_get_u64(result, (int)i, 0);
    *count_out = count;
    return TIDE_OK;
}

tide_status tide_pgl_cancel(tide_tx *tx, const struct tide_job_filter *filter, uint64_t now_unix_ms,
                            size_t *count_out, uint64_t *running_out, size_t running_max,
                            size_t *running_count_out, struct tide_changes *changes,
                            tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    PGresult *result = NULL;
    size_t running = 0;
    filter_params(self, filter, slice_of(filter->count_max));
    tide_pg_u64(self->pg, now_unix_ms);
    tide_status rc =
        tide_pgl_write(self, filter->id != 0 ? cancel_one_sql : cancel_sql, &result, err);
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    size_t count = (size_t)PQntuples(result);
    rc = cycles_follow(self, result, 0, (struct pg_cycle_delta){.outstanding = -1, .failed = 1},
                       changes, err);
    if (rc == TIDE_OK)
        rc = cancel_running(self, filter, running_out, running_max, &running, err);
    if (rc == TIDE_OK) {
        *count_out = count;
        *running_count_out = running;
    }
    return tide_pgl_end(self, rc);
}

tide_status tide_pgl_cancels(tide_ledger *ledger, uint64_t owner, uint64_t *ids_out, size_t ids_max,
                             size_t *count_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, owner);
    tide_pg_u64(self->pg, ids_max);
    TIDE_TRY(
        tide_pgl_rows(self,
                      "SELECT id FROM (SELECT id FROM tidemark.job WHERE state = 1 AND owner = $1"
                      " AND cancel_wanted OFFSET 0) mine ORDER BY id LIMIT $2",
                      &result, err));
    size_t count = (size_t)PQntuples(result);
    TIDE_ASSERT(count <= ids_max);
    for (size_t i = 0; i < count; i++)
        ids_out[i] = tide_pg_get_u64(result, (int)i, 0);
    *count_out = count;
    PQclear(result);
    return TIDE_OK;
}

/* ---- accept ------------------------------------------------------------------------ */

#define ACCEPT_REST                                                                                \
    " SELECT id FROM tidemark.job WHERE id IN (SELECT id FROM found) AND state >= 3"               \
    " ORDER BY id FOR UPDATE"
static const char accept_one_sql[] = BY_ID("id", "state >= 3") ACCEPT_REST;
static const char accept_pick_sql[] =
    "WITH " FOUND("id") "state >= 3 AND" FILTER "LIMIT $8)" ACCEPT_REST;

/* A canceled job may still wait for others; once accepted it does not. */
static const char accept_sql[] =
    "WITH waits AS (DELETE FROM tidemark.dep WHERE job = ANY($1)),"
    " gone AS (DELETE FROM tidemark.job WHERE id = ANY($1) RETURNING *),"
    " done AS (INSERT INTO tidemark.job_done (id, account, kind, priority, lane, level, attempts,"
    "  attempts_max, preemptible, force, status, cycle, size, created, started, finished, run,"
    "  bytes_done, dedupe, payload, error, resume)"
    "  SELECT id, account, kind, priority, lane, level, attempts, attempts_max, preemptible, force,"
    "  status, cycle, size, created, started, $2, run, bytes_done, dedupe, payload, error, resume"
    "  FROM gone)"
    " SELECT cycle FROM gone";

static tide_status accept_picked(struct tide_postgres *self, const uint64_t *ids, size_t count,
                                 uint64_t now_unix_ms, struct tide_changes *changes,
                                 tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pgl_ids(self, ids, count);
    tide_pg_u64(self->pg, now_unix_ms);
    TIDE_TRY(tide_pgl_write(self, accept_sql, &result, err));
    TIDE_TRY(cycles_follow(self, result, 0, (struct pg_cycle_delta){.failed = -1}, changes, err));
    return tide_pgl_release(self, ids, count, changes, err);
}

tide_status tide_pgl_accept(tide_tx *tx, const struct tide_job_filter *filter, uint64_t now_unix_ms,
                            size_t *count_out, struct tide_changes *changes, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    PGresult *result = NULL;
    uint64_t *ids = NULL;
    size_t count = 0;
    filter_params(self, filter, slice_of(filter->count_max));
    tide_status rc =
        tide_pgl_write(self, filter->id != 0 ? accept_one_sql : accept_pick_sql, &result, err);
    if (rc == TIDE_OK)
        rc = ids_of(self, result, &ids, &count, err);
    if (rc == TIDE_OK && count > 0)
        rc = accept_picked(self, ids, count, now_unix_ms, changes, err);
    if (rc == TIDE_OK)
        *count_out = count;
    ids_free(self, ids, count);
    return tide_pgl_end(self, rc);
}

/* ---- reclaim ------------------------------------------------------------------------- */

/* A member in the middle of a transaction has its row locked (LPG4): it is skipped, and checked
 * again next time.  The lock taken here is held until the commit, so the member's next
 * transaction waits, and then gets TIDE_STALE. */
/* clang-format off */
static const char declare_dead_sql[] =
    "WITH forgotten AS (DELETE FROM tidemark.member WHERE dead"
    "  AND until <= " PG_NOW("$2") " - " PG_DAY_MS ")"
    ", declared AS (UPDATE tidemark.member SET dead = true WHERE owner IN"
    "  (SELECT owner FROM tidemark.member"
    "   WHERE NOT dead AND owner <> $1 AND until <= " PG_NOW("$2")
    "   ORDER BY owner FOR UPDATE SKIP LOCKED) RETURNING 1)"
    " SELECT (SELECT count(*) FROM tidemark.member"
    "  WHERE NOT dead AND owner <> $1 AND until <= " PG_NOW("$2") ")"
    "  > (SELECT count(*) FROM declared)";

/* A process that stops while it sends (a COPY, an array) keeps its row locked, and no time-out
 * of the server ends that: it waits for the rest.  This ends sessions whose statement is older
 * than the statement time-out. */
static const char end_halves_sql[] =
    "SELECT pg_catalog.pg_terminate_backend(a.pid) FROM pg_catalog.pg_stat_activity a"
    " WHERE a.datname = pg_catalog.current_database() AND a.usename = current_user"
    " AND a.state = 'active' AND a.wait_event = 'ClientRead'"
    " AND a.query LIKE '%tidemark.%' AND a.query_start < clock_timestamp()"
    " - interval '1 ms' * (SELECT coalesce(nullif(s.setting, '0')::int, 60000)"
    "  FROM pg_catalog.pg_settings s WHERE s.name = 'statement_timeout')";

/* First locked, then checked against what is committed by then: the process that took an
 * account meanwhile may have joined after the first statement began, which does not see it as
 * alive. */
static const char dead_accounts_sql[] =
    "SELECT x.id FROM tidemark.account x"
    " WHERE x.owner IS NOT NULL AND x.owner <> $1 AND NOT " PG_ALIVE("x.owner")
    " ORDER BY x.id FOR NO KEY UPDATE SKIP LOCKED";
static const char free_accounts_sql[] =
    "UPDATE tidemark.account a SET owner = NULL WHERE a.id = ANY($2)"
    " AND a.owner <> $1 AND NOT " PG_ALIVE("a.owner");
/* clang-format on */

/* Running jobs without a living owner: searched in the ranges between two living owners, so
 * that the index entries of jobs that living owners claimed and ended, which a long transaction
 * of another session keeps, are not read.  Several processes may reclaim at once: each takes
 * other rows. */
#define LEFT_BETWEEN(where) "SELECT id FROM tidemark.job WHERE state = 1 AND " where " LIMIT $2"
/* clang-format off */
static const char reclaim_pick_sql[] =
    "WITH living AS MATERIALIZED"
    "  (SELECT m.owner FROM tidemark.member m WHERE NOT m.dead UNION SELECT $1),"
    " spans AS MATERIALIZED"
    "  (SELECT owner AS above, pg_catalog.lead(owner) OVER (ORDER BY owner) AS below FROM living),"
    " left_over AS MATERIALIZED (SELECT id FROM"
    "  ((" LEFT_BETWEEN("owner < (SELECT min(owner) FROM living)") ")"
    "   UNION ALL SELECT x.id FROM spans s CROSS JOIN LATERAL"
    "    (" LEFT_BETWEEN("owner > s.above AND owner < s.below") ") x WHERE s.below IS NOT NULL"
    "   UNION ALL (" LEFT_BETWEEN("owner > (SELECT max(owner) FROM living)") ")) y LIMIT $2)"
    " SELECT j.id FROM tidemark.job j WHERE j.id = ANY (ARRAY(SELECT id FROM left_over))"
    " FOR UPDATE SKIP LOCKED";
/* clang-format on */

/* The rows are locked; whether their owner is dead is checked again, because a claim in
 * between is visible now.  A budget of 0 is unlimited. */
/* clang-format off */
static const char reclaim_sql[] =
    "WITH rows AS MATERIALIZED (SELECT j.id, j.account, j.kind, j.dedupe,"
    "  j.attempts_max > 0 AND j.attempts + 1 >= j.attempts_max AND NOT j.cancel_wanted AS over,"
    "  CASE WHEN j.cancel_wanted THEN 4"
    "   WHEN j.attempts_max > 0 AND j.attempts + 1 >= j.attempts_max"
    "    AND NOT coalesce(k.splits, false) THEN 3 ELSE 0 END AS state_new"
    "  FROM tidemark.job j LEFT JOIN tidemark.kind k ON k.id = j.kind"
    "  WHERE j.id = ANY($2) AND j.state = 1 AND j.owner <> $1 AND NOT " PG_ALIVE("j.owner") "),"
    " back AS MATERIALIZED (SELECT id, " FIRST_OF_KEY " AND NOT " KEYLESS("rows") " AS keeps"
    "  FROM rows WHERE state_new = 0)"
    " UPDATE tidemark.job j SET state = r.state_new,"
    "  attempts = CASE WHEN r.state_new = 4 THEN j.attempts"
    "   ELSE least(65535, j.attempts + 1) END,"
    "  finished = CASE WHEN r.state_new = 0 THEN NULL ELSE $3::bigint END,"
    "  status = CASE WHEN r.state_new = 4 THEN $5 ELSE $4 END,"
    "  error = 'the process that ran it ended',"
    "  dedupe = CASE WHEN b.keeps IS false THEN NULL ELSE j.dedupe END,"
    "  not_before = NULL, token = NULL, owner = NULL, beat = NULL, cancel_wanted = false"
    " FROM rows r LEFT JOIN back b ON b.id = r.id WHERE j.id = r.id"
    " RETURNING CASE WHEN r.state_new <> 0 THEN j.cycle END, j.id, j.kind, r.over, r.state_new,"
    "  j.lane, j.priority";
/* clang-format on */

static tide_status over_budget_add(struct tide_changes *changes, const PGresult *result, int row,
                                   tide_error *err)
{
    if (!grow(changes->mem, (void **)&changes->over_budget, &changes->over_budget_capacity,
              changes->over_budget_count + 1, sizeof changes->over_budget[0]))
        return tide_pgl_no_memory(err);
    changes->over_budget[changes->over_budget_count++] =
        (struct tide_over_budget){.id = tide_pg_get_u64(result, row, 1),
                                  .kind = (uint32_t)tide_pg_get_i64(result, row, 2),
                                  .failed = tide_pg_get_i64(result, row, 4) == TIDE_ROW_FAILED};
    return TIDE_OK;
}

static tide_status reclaim_rows(struct tide_postgres *self, uint64_t owner, const uint64_t *ids,
                                size_t count, uint64_t now_unix_ms, struct tide_changes *changes,
                                tide_error *err)
{
    PGresult *result = NULL;
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_u64(pg, owner);
    tide_pgl_ids(self, ids, count);
    tide_pg_u64(pg, now_unix_ms);
    tide_pg_i32(pg, TIDE_STALE);
    tide_pg_i32(pg, TIDE_CANCELED);
    tide_status rc = tide_pgl_write(self, reclaim_sql, &result, err);
    for (int i = 0; rc == TIDE_OK && i < PQntuples(result); i++) {
        if (tide_pg_get_bool(result, i, 3))
            rc = over_budget_add(changes, result, i, err);
        head_back(self, result, i, 5, tide_pg_get_u64(result, i, 1));
    }
    if (rc == TIDE_OK)
        rc = cycles_follow(self, result, 0, (struct pg_cycle_delta){.outstanding = -1, .failed = 1},
                           changes, err);
    return rc;
}

static tide_status free_accounts(struct tide_postgres *self, uint64_t owner, tide_error *err)
{
    PGresult *result = NULL;
    uint64_t *ids = NULL;
    size_t count = 0;
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, owner);
    tide_status rc = tide_pgl_write(self, dead_accounts_sql, &result, err);
    if (rc != TIDE_OK || PQntuples(result) == 0)
        return rc;
    rc = ids_of(self, result, &ids, &count, err);
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, owner);
    tide_pgl_ids(self, ids, count);
    if (rc == TIDE_OK)
        rc = tide_pgl_write(self, free_accounts_sql, NULL, err);
    ids_free(self, ids, count);
    return rc;
}

static tide_status declare_dead(struct tide_postgres *self, uint64_t owner, uint64_t now_unix_ms,
                                tide_error *err)
{
    (void)tide_pgl_params(self);
    tide_pg_u64(self->pg, owner);
    tide_pgl_clock(self, now_unix_ms);
    PGresult *result = NULL;
    tide_status rc = tide_pgl_write(self, declare_dead_sql, &result, err);
    bool locked = rc == TIDE_OK && tide_pg_get_bool(result, 0, 0);
    (void)tide_pgl_params(self);
    if (locked)
        rc = tide_pgl_write(self, end_halves_sql, NULL, err);
    if (rc != TIDE_OK)
        return rc;
    return free_accounts(self, owner, err);
}

tide_status tide_pgl_reclaim(tide_tx *tx, uint64_t owner, size_t count_max, uint64_t now_unix_ms,
                             size_t *count_out, struct tide_changes *changes, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    PGresult *result = NULL;
    uint64_t *ids = NULL;
    size_t count = 0;
    tide_status rc = declare_dead(self, owner, now_unix_ms, err);
    if (rc == TIDE_OK) {
        (void)tide_pgl_params(self);
        tide_pg_u64(self->pg, owner);
        tide_pg_u64(self->pg, slice_of(count_max));
        rc = tide_pgl_write(self, reclaim_pick_sql, &result, err);
    }
    if (rc == TIDE_OK)
        rc = ids_of(self, result, &ids, &count, err);
    if (count > 0)
        tide_pgl_look_again(self);
    if (rc == TIDE_OK && count > 0)
        rc = reclaim_rows(self, owner, ids, count, now_unix_ms, changes, err);
    if (rc == TIDE_OK)
        *count_out = count;
    ids_free(self, ids, count);
    return tide_pgl_end(self, rc);
}
