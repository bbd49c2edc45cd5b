/* read.c - queries for commands, and the check of LED1 to LED7. */
#include "ledger/postgres/cold.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- texts for ledger/read.c ------------------------------------------------------- */

#define FILTER                                                                                     \
    " id BETWEEN ?1 AND ?7 AND account BETWEEN ?2 AND ?3 AND (?4 = 0 OR kind = ?4)"                \
    " AND (?6 = 0 OR cycle = ?6) "

#define LIVING_ROWS(where)                                                                         \
    "(SELECT id, cycle, size, bytes_done, owner, token, not_before, created, started, finished,"   \
    "  beat, account, kind, open_deps, attempts, attempts_max, priority, lane, level, "            \
    "preemptible,"                                                                                 \
    "  force, state, status, dedupe, payload, resume, error, run FROM job"                         \
    "  WHERE " where " AND" FILTER "ORDER BY id DESC LIMIT ?8)"

#define LIST(rows)                                                                                 \
    "SELECT x.id, x.cycle, x.size, x.bytes_done, x.owner, x.token, x.not_before, x.created,"       \
    " x.started, x.finished, x.beat, x.account, x.kind, x.open_deps, x.attempts, x.attempts_max,"  \
    " x.priority, x.state, x.status, x.dedupe, x.payload, x.resume, x.error, a.name, k.name,"      \
    " r.name, x.lane, x.level, x.preemptible, x.force FROM (" rows ") x"                           \
    " LEFT JOIN account a ON a.id = x.account LEFT JOIN kind k ON k.id = x.kind"                   \
    " LEFT JOIN run r ON r.id = x.run ORDER BY x.id DESC LIMIT ?8"

/* Failed and canceled ones have an index: they are few, and a million may wait (E2.5).  Else both
 * tables by id from the newest down, no more of each than is shown; a table that cannot hold
 * matching rows is not read. */
const char *tide_pgl_jobs_text(const struct tide_job_filter *filter)
{
    if (filter->id == 0 && filter->state >= TIDE_ROW_FAILED)
        return LIST(LIVING_ROWS("state >= 3 AND state = ?5"));
    /* clang-format off */
    return LIST(
        LIVING_ROWS("?5 <> 2 AND (?5 < 0 OR state = ?5)") " UNION ALL"
        " (SELECT id, cycle, size, bytes_done, NULL, NULL, NULL, created, started, finished,"
        "  NULL, account, kind, 0, attempts, attempts_max, priority, lane, level, preemptible,"
        "  force, 2, status, dedupe, payload, resume, error, run FROM job_done"
        "  WHERE (?5 < 0 OR ?5 = 2) AND" FILTER "ORDER BY id DESC LIMIT ?8)");
    /* clang-format on */
}

const char *tide_pgl_jobs_count_text(const struct tide_job_filter *filter)
{
    if (filter->id == 0 && filter->state >= TIDE_ROW_FAILED)
        return "SELECT count(*) FROM job WHERE state >= 3 AND state = ?5 AND" FILTER;
    return "SELECT (SELECT count(*) FROM job WHERE ?5 <> 2 AND (?5 < 0 OR state = ?5) AND" FILTER
           ") + (SELECT count(*) FROM job_done WHERE (?5 < 0 OR ?5 = 2) AND" FILTER ")";
}

#define COUNTS_OF(more)                                                                            \
    "SELECT g.account, g.kind, g.state, g.n, g.blocked, g.delayed, a.name, k.name, a.paused,"      \
    " a.halted, k.paused FROM ("                                                                   \
    " SELECT account, kind, state, count(*) AS n,"                                                 \
    "  count(*) FILTER (WHERE state = 0 AND open_deps > 0) AS blocked,"                            \
    "  count(*) FILTER (WHERE state = 0 AND not_before > ?1) AS delayed"                           \
    "  FROM job GROUP BY account, kind, state" more ") g"                                          \
    " LEFT JOIN account a ON a.id = g.account"                                                     \
    " LEFT JOIN kind k ON k.id = g.kind ORDER BY g.account, g.kind, g.state"
const char tide_pgl_counts_text[] =
    COUNTS_OF(" UNION ALL SELECT account, kind, 2, count(*), 0, 0 FROM job_done"
              "  GROUP BY account, kind");
const char tide_pgl_counts_left_text[] = COUNTS_OF("");

/* Every row of `job` is unfinished, failed or canceled (LPG1), so nothing done is read. */
const char tide_pgl_work_left_text[] =
    "SELECT g.cycle, g.kind, g.state, g.n, g.items, k.name FROM"
    " (SELECT cycle, kind, state, count(*) AS n,"
    "  sum(CASE WHEN strpos(payload, '\"items\"') = 0 THEN 0"
    "   ELSE tidemark.items_of(payload) END)::bigint AS items"
    "  FROM job WHERE account = ?1 GROUP BY cycle, kind, state) g"
    " LEFT JOIN kind k ON k.id = g.kind ORDER BY g.cycle NULLS FIRST, g.kind, g.state";

/* ---- the check --------------------------------------------------------------------- */

struct rule {
    const char *name;
    const char *sql; /* each row is a problem: an id */
};

static const struct rule rules[] = {
    {"LED1: a job in no known state", "SELECT id FROM tidemark.job WHERE state NOT IN (0, 1, 3, 4)"
                                      " AND state <> 2"},
    {"LPG1: a done job among the unfinished", "SELECT id FROM tidemark.job WHERE state = 2"},
    {"LPG1: a job both done and unfinished",
     "SELECT j.id FROM tidemark.job j JOIN tidemark.job_done d ON d.id = j.id"},
    {"LED1: a running job without a token or an owner",
     "SELECT id FROM tidemark.job WHERE state = 1 AND (token IS NULL OR owner IS NULL)"},
    {"LED1: a job that does not run has a token or an owner",
     "SELECT id FROM tidemark.job WHERE state <> 1 AND (token IS NOT NULL OR owner IS NOT NULL)"},
    {"LED1: a finished job without a time, or an unfinished one with one",
     "SELECT id FROM tidemark.job WHERE (finished IS NOT NULL) <> (state >= 2)"},
    {"LED2: open_deps is not the number of open dependencies",
     "SELECT j.id FROM tidemark.job j LEFT JOIN (SELECT job, count(*) AS n FROM tidemark.dep"
     " GROUP BY job) d ON d.job = j.id WHERE j.open_deps <> coalesce(d.n, 0)"},
    {"LPG2: a dependency on a job that is done or gone",
     "SELECT d.job FROM tidemark.dep d LEFT JOIN tidemark.job j ON j.id = d.needs"
     " WHERE j.id IS NULL"},
    {"LED2: a dependency of no job",
     "SELECT d.needs FROM tidemark.dep d LEFT JOIN tidemark.job j ON j.id = d.job"
     " WHERE j.id IS NULL"},
    {"LED2: a job runs before what it needs",
     "SELECT id FROM tidemark.job WHERE open_deps > 0 AND state = 1"},
    {"LED3: the counts of a cycle",
     "SELECT c.id FROM tidemark.cycle c LEFT JOIN (SELECT cycle,"
     " count(*) FILTER (WHERE state <= 1) AS o, count(*) FILTER (WHERE state >= 3) AS f"
     " FROM tidemark.job WHERE cycle IS NOT NULL GROUP BY cycle) j ON j.cycle = c.id"
     " WHERE c.outstanding <> coalesce(j.o, 0) OR c.failed <> coalesce(j.f, 0)"},
    {"LED3: a job of no cycle",
     "SELECT j.id FROM tidemark.job j LEFT JOIN tidemark.cycle c ON c.id = j.cycle"
     " WHERE j.cycle IS NOT NULL AND c.id IS NULL"},
    {"LED3: a done job of no cycle",
     "SELECT d.id FROM tidemark.job_done d LEFT JOIN tidemark.cycle c ON c.id = d.cycle"
     " WHERE d.cycle IS NOT NULL AND c.id IS NULL"},
    {"LED4: unfinished work below the cursor of a stream",
     "SELECT s.id FROM tidemark.stream s JOIN tidemark.cycle c ON c.stream = s.id"
     " AND c.ordinal < s.ordinal WHERE c.outstanding > 0 OR c.failed > 0"},
    {"LED4: the ordinals of a stream",
     "SELECT s.id FROM tidemark.stream s LEFT JOIN (SELECT stream, count(*) AS n"
     " FROM tidemark.cycle GROUP BY stream) c ON c.stream = s.id"
     " WHERE s.ordinal > s.ordinal_next OR s.ordinal_next <> coalesce(c.n, 0)"},
    {"LED4: the cursor is not the end of the cycle before it",
     "SELECT s.id FROM tidemark.stream s JOIN tidemark.cycle c ON c.stream = s.id"
     " AND c.ordinal = s.ordinal - 1 WHERE s.cursor IS DISTINCT FROM c.\"end\""},
    {"LED5: two waiting jobs with one key",
     "SELECT min(id) FROM tidemark.job WHERE state = 0 AND dedupe IS NOT NULL"
     " GROUP BY account, kind, dedupe HAVING count(*) > 1"},
    {"LED5: two waiting or running jobs with one key",
     "SELECT min(id) FROM tidemark.job WHERE state <= 1 AND scope = 1 AND dedupe IS NOT NULL"
     " GROUP BY account, kind, dedupe HAVING count(*) > 1"},
    {"LED7: a job that is done twice",
     "SELECT id FROM tidemark.job_done GROUP BY id HAVING count(*) > 1"},
    {"a cancel request for a job that does not run",
     "SELECT id FROM tidemark.job WHERE cancel_wanted AND state <> 1"},
};

static tide_status check_rule(struct tide_postgres *self, const struct rule *rule,
                              tide_buf *problems, tide_error *err)
{
    enum { SHOWN_MAX = 5 };
    char sql[800];
    PGresult *rows = NULL;
    (void)tide_pgl_params(self);
    tide_pg_i64(self->pg, SHOWN_MAX);
    size_t bytes = (size_t)snprintf(sql, sizeof sql, "%s LIMIT $1", rule->sql);
    TIDE_ASSERT(bytes < sizeof sql);
    TIDE_TRY(tide_pgl_rows(self, sql, &rows, err));
    for (int i = 0; i < PQntuples(rows); i++)
        (void)tide_buf_print(problems, "%s: %" PRIu64 "\n", rule->name,
                             tide_pg_get_u64(rows, i, 0));
    PQclear(rows);
    return TIDE_OK;
}

/* All rules are checked in one snapshot, because other processes keep writing.  Inside a
 * transaction that is not possible; then the caller must be the only writer. */
static tide_status look_begin(struct tide_postgres *self, tide_error *err)
{
    if (self->in_tx)
        return TIDE_OK;
    return tide_pg_exec(self->pg,
                        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
                        /* These read whole tables, unlike all other statements. */
                        "SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on;"
                        "SET LOCAL enable_mergejoin = on; SET LOCAL statement_timeout = 0",
                        err);
}

static void look_end(struct tide_postgres *self)
{
    if (!self->in_tx && tide_pg_handle(self->pg) != NULL)
        (void)tide_pg_exec(self->pg, "ROLLBACK", NULL);
}

tide_status tide_pgl_check(tide_ledger *ledger, tide_buf *problems, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    const size_t before = problems->bytes;
    TIDE_TRY(tide_pgl_ready(self, err));
    TIDE_TRY(look_begin(self, err));
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof rules / sizeof rules[0]; i++)
        rc = check_rule(self, &rules[i], problems, err);
    look_end(self);
    if (rc == TIDE_OK && problems->bytes > before)
        rc = tide_error_set(err, TIDE_CORRUPT, "%s: %.200s", tide_pg_name(self->pg),
                            tide_buf_cstr(problems) + before);
    return rc;
}
