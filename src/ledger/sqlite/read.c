/* read.c - the texts of queries for commands (ledger/read.c). */
#include "ledger/sqlite/sqlite.h"

#include <assert.h>

static_assert(TRAIT_BULK == 1 && TIDE_LANE_BULK == 1 && TRAIT_PREEMPTIBLE == 2 &&
                  TRAIT_FORCE == 4 && TRAIT_LEVEL_SHIFT == 3,
              "the statement says so too");
#define LIST                                                                                       \
    "SELECT j.id, j.cycle, j.size, coalesce(c.bytes_done, d.bytes_done), c.owner, c.token,"        \
    " j.not_before, j.created, coalesce(c.started, j.started), j.finished, c.beat, j.account,"     \
    " j.kind, j.open_deps, j.attempts, j.attempts_max, j.priority, j.state, d.status, j.dedupe,"   \
    " j.payload, d.resume, d.error, a.name, k.name, r.name, j.traits & 1,"                         \
    " j.traits >> 3, j.traits & 2, j.traits & 4 FROM "
#define LIST_JOINS                                                                                 \
    " LEFT JOIN detail d ON d.job = j.id LEFT JOIN account a ON a.id = j.account"                  \
    " LEFT JOIN kind k ON k.id = j.kind LEFT JOIN run r ON r.id = coalesce(c.run, j.run) "
#define LIST_FILTER                                                                                \
    " j.account BETWEEN ?2 AND ?3 AND (?4 = 0 OR j.kind = ?4) AND (?5 < 0 OR j.state = ?5)"        \
    " AND (?6 = 0 OR j.cycle = ?6) AND j.id <= ?7 "

/* The statement that reads the fewest rows for a filter. */
const char *tide_sql_jobs_text(const struct tide_job_filter *filter)
{
    if (filter->id != 0)
        return LIST "job j LEFT JOIN claim c ON c.job = j.id" LIST_JOINS
                    "WHERE j.id = ?1 AND" LIST_FILTER "LIMIT ?8";
    if (filter->state == TIDE_ROW_RUNNING)
        return LIST "claim c CROSS JOIN job j ON j.id = c.job" LIST_JOINS
                    "WHERE ?1 = 0 AND" LIST_FILTER "ORDER BY c.job DESC LIMIT ?8";
    if (filter->state == TIDE_ROW_FAILED || filter->state == TIDE_ROW_CANCELED)
        return LIST "job j INDEXED BY job_aside LEFT JOIN claim c ON c.job = j.id" LIST_JOINS
                    "WHERE ?1 = 0 AND " ASIDE_OF("j.") " AND j.state >= 3 AND" LIST_FILTER
                                                       "ORDER BY j.id DESC LIMIT ?8";
    return LIST "job j LEFT JOIN claim c ON c.job = j.id" LIST_JOINS "WHERE ?1 = 0 AND" LIST_FILTER
                "ORDER BY j.id DESC LIMIT ?8";
}

#define COUNT "SELECT count(*) FROM "
/* Those that wait are counted from the two indexes that have them, without their rows' neighbours. */
const char *tide_sql_jobs_count_text(const struct tide_job_filter *filter)
{
    if (filter->id != 0)
        return COUNT "job j WHERE j.id = ?1 AND" LIST_FILTER;
    if (filter->state == TIDE_ROW_RUNNING)
        return COUNT "claim c CROSS JOIN job j ON j.id = c.job WHERE ?1 = 0 AND" LIST_FILTER;
    if (filter->state == TIDE_ROW_FAILED || filter->state == TIDE_ROW_CANCELED)
        return COUNT "job j INDEXED BY job_aside WHERE ?1 = 0 AND " ASIDE_OF(
            "j.") " AND j.state >= 3 AND" LIST_FILTER;
    if (filter->state == TIDE_ROW_PENDING)
        return "SELECT (" COUNT "job j INDEXED BY job_ready WHERE ?1 = 0 AND j.state = 0"
               " AND j.open_deps = 0 AND" LIST_FILTER ") + (" COUNT
               "job j INDEXED BY job_aside WHERE " ASIDE_OF(
                   "j.") " AND j.state = 0 AND j.open_deps > 0 AND" LIST_FILTER ")";
    return COUNT "job j WHERE ?1 = 0 AND" LIST_FILTER;
}

#define COUNTS_OF(jobs)                                                                            \
    "SELECT g.account, g.kind, g.state, g.n, g.blocked, g.delayed, a.name, k.name,"                \
    " a.paused, a.halted, k.paused FROM (SELECT account, kind, state, count(*) AS n,"              \
    " count(*) FILTER (WHERE state = 0 AND open_deps > 0) AS blocked,"                             \
    " count(*) FILTER (WHERE state = 0 AND not_before > ?1) AS delayed"                            \
    " FROM " jobs " GROUP BY account, kind, state) g"                                              \
    " LEFT JOIN account a ON a.id = g.account LEFT JOIN kind k ON k.id = g.kind"                   \
    " ORDER BY g.account, g.kind, g.state"
const char tide_sql_counts_text[] = COUNTS_OF("job");

/* As in the next one, done rows are never read: a history may have many. */
const char tide_sql_counts_left_text[] = COUNTS_OF(
    "(SELECT account, kind, 0 AS state, open_deps, not_before FROM job INDEXED BY job_ready"
    "  WHERE state = 0 AND open_deps = 0"
    " UNION ALL SELECT account, kind, 0, open_deps, not_before FROM job INDEXED BY job_aside"
    "  WHERE " ASIDE " AND state = 0 AND open_deps > 0"
    " UNION ALL SELECT j.account, j.kind, 1, 0, NULL FROM claim c CROSS JOIN job j ON j.id = c.job"
    " UNION ALL SELECT account, kind, state, 0, NULL FROM job INDEXED BY job_aside"
    "  WHERE " ASIDE " AND state >= 3)");

/* Each part uses the index that has just these rows: done ones are never read. */
const char tide_sql_work_left_text[] =
    "SELECT g.cycle, g.kind, g.state, g.n, g.items, k.name FROM"
    " (SELECT cycle, kind, state, count(*) AS n, sum(iif(json_valid(payload),"
    "  coalesce(json_array_length(payload, '$.items'), 0), 0)) AS items FROM"
    "  (SELECT cycle, kind, 0 AS state, payload FROM job INDEXED BY job_ready"
    "    WHERE account = ?1 AND state = 0 AND open_deps = 0"
    "   UNION ALL SELECT cycle, kind, 0, payload FROM job INDEXED BY job_aside"
    "    WHERE account = ?1 AND " ASIDE " AND state = 0 AND open_deps > 0"
    "   UNION ALL SELECT j.cycle, j.kind, 1, j.payload FROM claim c"
    "    CROSS JOIN job j ON j.id = c.job WHERE j.account = ?1"
    "   UNION ALL SELECT cycle, kind, state, payload FROM job INDEXED BY job_aside"
    "    WHERE account = ?1 AND " ASIDE " AND state >= 3)"
    "  GROUP BY cycle, kind, state) g LEFT JOIN kind k ON k.id = g.kind"
    " ORDER BY g.cycle, g.kind, g.state";

/* No process joins a fleet here (LSQ4). */
tide_status tide_sql_members(tide_ledger *ledger,
                             bool (*visit)(const struct tide_member *member, void *arg), void *arg,
                             tide_error *err)
{
    (void)ledger;
    (void)visit;
    (void)arg;
    (void)err;
    return TIDE_OK;
}
