/* sql.c - the statements that a ledger on PostgreSQL prepares, by number. */
#include "ledger/postgres/postgres.h"

#define JOB_NEW_COLUMNS                                                                            \
    "id, open_deps, account, kind, scope, priority, lane, level, attempts, attempts_max,"          \
    " preemptible, force, cycle, not_before, size, created, dedupe, payload"

/* If the id is NULL, the server chooses it. */
#define INSERT_JOBS                                                                                \
    "INSERT INTO tidemark.job (" JOB_NEW_COLUMNS ")"                                               \
    " SELECT coalesce(r.id, pg_catalog.nextval('tidemark.job_id')), r.open_deps, r.account,"       \
    " r.kind, r.scope,"                                                                            \
    " r.priority, r.lane, r.level, r.attempts, r.attempts_max, r.preemptible, r.force, r.cycle,"   \
    " r.not_before, r.size, r.created, r.dedupe, r.payload"                                        \
    " FROM pg_catalog.unnest($1::tidemark.job_new[]) AS r"

#define BRIEF_COLUMNS                                                                              \
    "j.id, j.cycle, j.size, j.not_before, j.account, j.kind, j.open_deps, j.attempts,"             \
    " j.attempts_max, j.priority, j.lane, j.level, j.preemptible"
#define BRIEF "SELECT " BRIEF_COLUMNS

/* Kinds that a parameter lists and that are not paused: read once per statement. */
#define OPEN_KINDS(n)                                                                              \
    "ANY (ARRAY(SELECT k.id FROM tidemark.kind k WHERE k.id = ANY (" n ") AND NOT k.paused))"
#define OPEN_KINDS_1 OPEN_KINDS("$1")
#define OPEN_KINDS_7 OPEN_KINDS("$7")
#define PAUSED_KINDS "ALL (ARRAY(SELECT k.id FROM tidemark.kind k WHERE k.paused))"

#define DUE                                                                                        \
    "FROM tidemark.job WHERE state = 0 AND open_deps = 0 AND account = 0"                          \
    " AND not_before IS NOT NULL AND NOT due"

#define READY_ACCOUNT                                                                              \
    "SELECT account FROM tidemark.job WHERE state = 0 AND open_deps = 0 AND account <> 0"

#define DONE_COLUMNS                                                                               \
    "id, account, kind, priority, lane, level, attempts, attempts_max, preemptible, force,"        \
    " status, cycle, size, created, started, finished, run, bytes_done, dedupe, payload, error,"   \
    " resume"
/* Only a running job has a token, so `state = 1` is not a condition here: whenever the server
 * collects statistics there are so few running jobs that its plan would read the index of the
 * running ones, and compare each of them with each of ours. */

/* Deletes running jobs whose token matches; the INSERT adds them to job_done. */
#define DONE(arrays, names, columns)                                                               \
    "WITH gone AS (DELETE FROM tidemark.job j USING unnest(" arrays ") AS u (" names ")"           \
    " WHERE j.id = u.id AND j.token = u.token RETURNING " columns ")"                              \
    " INSERT INTO tidemark.job_done (" DONE_COLUMNS ") SELECT * FROM gone"                         \
    " RETURNING id, cycle, account, kind"

const char tide_pg_copy_jobs[] =
    "COPY tidemark.job (" JOB_NEW_COLUMNS ") FROM STDIN (FORMAT binary)";

/* How these are written, so that no bad plan is chosen (see `settings` in postgres.c):
 *   - a table is joined to an array by its primary key, and no condition names a state: with
 *     statistics from a quiet time an index of just the running jobs would look cheaper;
 *   - ORDER BY only where an index gives the order, and together with the comparison of
 *     (100 - priority), id that no other index can answer;
 *   - rows found by id = ANY come, and are locked, in the order of the ids (LPG3). */
const char *const tide_pg_sql[PGSQL_COUNT_OF_STATEMENTS] = {
    [PGSQL_BEGIN] = TIDE_PGL_BEGIN,
    [PGSQL_FENCE] = "UPDATE tidemark.member SET seq = $1::int8 WHERE owner = $2::int8"
                    " AND ctid = $3::text::tid AND NOT dead RETURNING ctid::text",
    [PGSQL_NAMES] = "SELECT 0, id, scope FROM tidemark.kind WHERE id = ANY ($1)"
                    " UNION ALL SELECT 1, id, 0 FROM tidemark.account WHERE id = ANY ($2)",
    [PGSQL_CYCLES_OPEN] = "SELECT c.id, c.ordinal >= s.ordinal FROM tidemark.cycle c"
                          " JOIN tidemark.stream s ON s.id = c.stream WHERE c.id = ANY ($1)",
    /* LPG6: no process can finish them before this transaction ends. */
    [PGSQL_NEEDS] = "SELECT id FROM tidemark.job WHERE id = ANY ($1) FOR KEY SHARE",
    [PGSQL_NEEDS_DONE] = "SELECT id FROM tidemark.job_done WHERE id = ANY ($1)",
    [PGSQL_IDS] = "SELECT pg_catalog.nextval('tidemark.job_id')"
                  " FROM pg_catalog.generate_series(1, $1)",
    [PGSQL_INSERT] = INSERT_JOBS " RETURNING id",
    [PGSQL_INSERT_KEYED] = INSERT_JOBS
    " ON CONFLICT (account, kind, dedupe) WHERE dedupe IS NOT NULL AND state <= scope"
    " DO NOTHING RETURNING id",
    [PGSQL_DUPLICATES] =
        "WITH found AS MATERIALIZED (SELECT u.n, k.id"
        "  FROM unnest($1::int4[], $2::int4[], $3::int4[], $4::text[])"
        "   AS u (n, account, kind, dedupe) CROSS JOIN LATERAL"
        "   (SELECT id FROM tidemark.job WHERE account = u.account AND kind = u.kind"
        "     AND dedupe = u.dedupe AND dedupe IS NOT NULL AND state <= scope LIMIT 1) k"
        "  ORDER BY k.id)"
        " SELECT f.n, j.* FROM found f CROSS JOIN LATERAL"
        "  (SELECT id, state, priority, force, open_deps, lane, account FROM tidemark.job"
        "    WHERE id = f.id AND state <= scope LIMIT 1 FOR UPDATE) j",
    [PGSQL_RAISE] = "UPDATE tidemark.job j SET priority = u.priority, force = u.force"
                    " FROM unnest($1::int8[], $2::int2[], $3::bool[]) AS u (id, priority, force)"
                    " WHERE j.id = u.id",
    [PGSQL_DEPS] = "INSERT INTO tidemark.dep (needs, job)"
                   " SELECT u.needs, u.job FROM unnest($1::int8[], $2::int8[]) AS u (needs, job)",
    [PGSQL_BRIEFS] = BRIEF " FROM tidemark.job j WHERE j.id = ANY ($1) AND j.state <= 1",

    [PGSQL_CLAIM] =
        "UPDATE tidemark.job j SET state = 1, token = u.token, owner = $3, run = $4, started = $5,"
        " beat = NULL FROM unnest($1::int8[], $2::int8[]) AS u (id, token)"
        " WHERE j.id = u.id AND j.state = 0 AND j.open_deps = 0 AND j.kind <> " PAUSED_KINDS
        " AND j.account <> ALL (ARRAY(SELECT a.id FROM tidemark.account a WHERE a.paused))"
        " RETURNING j.id, j.token, j.attempts, j.force, j.payload, j.resume, j.dedupe",
    /* Parts of the index, in order; the next part is read only while fewer were found than
     * wanted.  The rows found are locked, so they stay in their place.  The xmax of a row
     * shows that another transaction is about to claim it, for much less than a refused lock
     * costs; but xmax also stays set after a claim was undone, so a claim from the beginning
     * ($12) ignores it. */
    [PGSQL_CLAIM_FREE] =
        "UPDATE tidemark.job j SET state = 1, token = $9, owner = $8, run = $10, started = $11,"
        " beat = NULL WHERE j.ctid = ANY (ARRAY(SELECT p.tid"
        " FROM unnest($1::int2[], $2::int4[]) AS l (lane, wanted) CROSS JOIN LATERAL"
        "  (SELECT q.tid FROM unnest($3::int2[], $4::int4[], $5::int8[], $6::int4[])"
        "    AS u (lane, rank, after, last) CROSS JOIN LATERAL"
        "    (SELECT ctid AS tid FROM tidemark.job WHERE state = 0 AND open_deps = 0"
        "      AND account = 0 AND (not_before IS NULL OR due) AND lane = l.lane"
        "      AND ROW((100 - priority), id) > ROW(u.rank, u.after)"
        "      AND (100 - priority) <= u.last AND (xmax = 0 OR $12) AND kind = " OPEN_KINDS_7
        "     ORDER BY (100 - priority), id LIMIT l.wanted FOR UPDATE SKIP LOCKED) q"
        "   WHERE u.lane = l.lane LIMIT l.wanted) p))"
        " RETURNING j.id, j.lane, j.priority, j.kind, j.level, j.attempts, j.attempts_max,"
        " j.preemptible, j.force, j.cycle, j.size, j.payload, j.resume, j.dedupe",
    [PGSQL_DUE] = "SELECT not_before " DUE " ORDER BY not_before LIMIT 1",
    [PGSQL_DUE_OF] =
        "SELECT not_before " DUE " AND kind = " OPEN_KINDS_1 " ORDER BY not_before LIMIT 1",
    [PGSQL_PROMOTE] = "WITH late AS (SELECT id " DUE " AND not_before <= $1 ORDER BY not_before"
                      " LIMIT $2 FOR UPDATE SKIP LOCKED)"
                      " UPDATE tidemark.job j SET due = true FROM late WHERE j.id = late.id"
                      " RETURNING j.id, j.lane, j.priority",
    [PGSQL_BEAT] = "UPDATE tidemark.job j SET beat = $6, bytes_done = u.bytes_done,"
                   " resume = CASE WHEN u.resume_set THEN u.resume ELSE j.resume END"
                   " FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::bool[], $5::text[])"
                   "  AS u (id, token, bytes_done, resume_set, resume)"
                   " WHERE j.id = u.id AND j.token = u.token RETURNING j.id, j.token",
    /* First the rest of that priority, then all below it. */
    [PGSQL_REFILL] =
        BRIEF " FROM tidemark.job j WHERE j.state = 0 AND j.open_deps = 0 AND j.account <> 0"
              " AND j.account = $1 AND ROW((100 - j.priority), j.id) > ROW((100 - $2), $3)"
              " AND j.kind <> " PAUSED_KINDS
              " AND NOT EXISTS (SELECT 1 FROM tidemark.account a WHERE a.id = $1 AND a.paused)"
              " ORDER BY (100 - j.priority), j.id LIMIT $4",
    [PGSQL_REFILL_FREE] = BRIEF
    " FROM tidemark.job j WHERE j.state = 0 AND j.open_deps = 0 AND j.account = 0"
    " AND (j.priority < $2 OR (j.priority = $2 AND j.id > $3)) AND j.kind <> " PAUSED_KINDS
    " AND $1 = 0 ORDER BY j.priority DESC, j.id LIMIT $4",
    /* One seek for each account, not one step for each job. */
    [PGSQL_WORK] =
        "WITH RECURSIVE next AS ((" READY_ACCOUNT " ORDER BY account LIMIT 1) UNION ALL"
        " SELECT (" READY_ACCOUNT " AND account > next.account ORDER BY account LIMIT 1)"
        " FROM next WHERE next.account IS NOT NULL)"
        " SELECT 0 WHERE EXISTS (SELECT 1 FROM tidemark.job WHERE state = 0 AND open_deps = 0"
        "  AND account = 0 AND (not_before IS NULL OR due)) OR EXISTS (SELECT 1 " DUE ")"
        " UNION ALL SELECT account FROM next WHERE account IS NOT NULL LIMIT $1",

    [PGSQL_DONE] =
        DONE("$1::int8[], $2::int8[]", "id, token",
             "j.id, j.account, j.kind, j.priority, j.lane, j.level, j.attempts, j.attempts_max,"
             " j.preemptible, j.force, 0::int2, j.cycle, j.size, j.created, j.started, $3::int8,"
             " j.run, NULL::int8, j.dedupe, j.payload, NULL::text, j.resume"),
    [PGSQL_DONE_NOTED] =
        DONE("$1::int8[], $2::int8[], $4::int4[], $5::int4[], $6::text[], $7::int8[], $8::bool[],"
             " $9::text[], $10::text[]",
             "id, token, attempts_add, status, error, bytes_done, resume_set, resume, payload",
             "j.id, j.account, j.kind, j.priority, j.lane, j.level,"
             " greatest(0, least(65535, j.attempts + u.attempts_add)), j.attempts_max,"
             " j.preemptible, j.force, u.status::int2, j.cycle, j.size, j.created, j.started,"
             " $3::int8, j.run, u.bytes_done, j.dedupe, coalesce(u.payload, j.payload), u.error,"
             " CASE WHEN u.resume_set THEN u.resume ELSE j.resume END"),
    /* While the job ran, another one of its key may have been enqueued, and only one may wait
     * (LED5).  Both have to run, so this one goes back without its key. */
    [PGSQL_OTHER] =
        "UPDATE tidemark.job j SET state = u.state::int2,"
        " attempts = greatest(0, least(65535, j.attempts + u.attempts_add)),"
        " finished = CASE WHEN u.state = 0 THEN NULL ELSE $3::int8 END,"
        " not_before = CASE WHEN u.state = 0 THEN u.not_before END,"
        " payload = coalesce(u.payload, j.payload), status = u.status::int2, error = u.error,"
        " bytes_done = u.bytes_done,"
        " resume = CASE WHEN u.resume_set THEN u.resume ELSE j.resume END,"
        " token = NULL, owner = NULL, beat = NULL, cancel_wanted = false, due = false,"
        " dedupe = CASE WHEN u.state > 0 OR j.dedupe IS NULL OR (u.nth = 1 AND NOT EXISTS"
        "  (SELECT 1 FROM tidemark.job o WHERE o.account = j.account AND o.kind = j.kind"
        "   AND o.dedupe = j.dedupe AND o.dedupe IS NOT NULL AND o.state <= o.scope"
        "   AND o.id <> j.id)) THEN j.dedupe END"
        " FROM (SELECT a.*, row_number() OVER (PARTITION BY a.state = 0, k.account, k.kind,"
        "   k.dedupe ORDER BY a.n) AS nth"
        "  FROM unnest($1::int8[], $2::int8[], $4::int4[], $5::int4[], $6::text[], $7::int8[],"
        "   $8::bool[], $9::text[], $10::text[], $11::int4[], $12::int8[], $13::int4[])"
        "   AS a (id, token, attempts_add, status, error, bytes_done, resume_set, resume, payload,"
        "    state, not_before, n)"
        "  JOIN tidemark.job k ON k.id = a.id AND k.token = a.token) u"
        " WHERE j.id = u.id AND j.token = u.token AND NOT (u.state = 0 AND j.cancel_wanted)"
        " RETURNING j.id, j.cycle, j.account, j.kind, j.state, j.lane, j.priority, j.not_before",
    /* Jobs that wait for the parent wait for its parts too (E6.1).  Parts that wait for the
     * parent themselves do not wait for each other. */
    [PGSQL_PARTS] =
        "WITH waiting AS (INSERT INTO tidemark.dep (needs, job) SELECT p.id, d.job"
        "  FROM tidemark.dep d CROSS JOIN pg_catalog.unnest($2::int8[]) AS p (id)"
        "  WHERE d.needs = $1 AND NOT (d.job = ANY($2) AND EXISTS (SELECT 1"
        "   FROM tidemark.dep e WHERE e.needs = $1 AND e.job = p.id))"
        "  ON CONFLICT DO NOTHING RETURNING job)"
        " UPDATE tidemark.job j SET open_deps = j.open_deps + w.n"
        " FROM (SELECT job, count(*)::int AS n FROM waiting GROUP BY job) w WHERE j.id = w.job",
    /* The rows are locked in the order of their ids (LPG3).  An update that had to wait for a
     * row adds to its new values, not to those of its snapshot. */
    [PGSQL_CYCLES_ADD] =
        "WITH locked AS MATERIALIZED (SELECT id FROM tidemark.cycle WHERE id = ANY($1)"
        " FOR NO KEY UPDATE)"
        " UPDATE tidemark.cycle c SET total = c.total + d.total,"
        " outstanding = c.outstanding + d.outstanding, failed = c.failed + d.failed"
        " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])"
        " AS d (id, total, outstanding, failed) JOIN locked USING (id) WHERE c.id = d.id"
        " RETURNING c.id, c.stream, c.ordinal, c.outstanding, c.failed, c.total,"
        " (SELECT count(*) FROM tidemark.bad b WHERE b.cycle = c.id AND b.state = 0)",
    /* A job that waits for many gets one update for all that were done together. */
    [PGSQL_RELEASE] =
        "WITH gone AS (DELETE FROM tidemark.dep WHERE needs = ANY($1) RETURNING job),"
        " waits AS MATERIALIZED (SELECT job AS id, count(*)::int AS n FROM gone GROUP BY job),"
        " locked AS MATERIALIZED (SELECT j.id FROM tidemark.job j"
        "  WHERE j.id = ANY (ARRAY(SELECT id FROM waits)) FOR NO KEY UPDATE)"
        " UPDATE tidemark.job j SET open_deps = j.open_deps - w.n"
        " FROM waits w JOIN locked USING (id) WHERE j.id = w.id"
        " RETURNING j.id, j.account, j.open_deps, j.state, j.lane, j.priority",
    [PGSQL_PARTS_WAIT] = "SELECT 1 FROM tidemark.job WHERE id = $1 FOR UPDATE",
};
