/* doctor.c - `jobs doctor`: diagnosis of a running ledger on PostgreSQL.
 *
 * Each look is one query, which returns a level and a sentence with figures, healthy or not,
 * so that silence is never mistaken for health.  It changes nothing and reads no whole table:
 * it may run on a server in trouble.  What the role may not see is reported too. */
#include "ledger/postgres/cold.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>

/* A look gets $1, the time (PG_NOW()), and $2, whether this ledger creates day partitions. */
#define NOW_MS      PG_NOW("$1")
#define MINUTES(ms) "(" ms ") / 60000"

struct look {
    const char *what;
    const char *advice;
    const char *sql; /* one row: level, text */
};

/* An old snapshot keeps every dead version of every row: claims read over them, and vacuum
 * cannot remove them. */
#define SNAPSHOT_TEXT                                                                              \
    " CASE WHEN n = 0 THEN 'no other session holds a snapshot' ELSE pg_catalog.format('%s "        \
    "transactions hold a"                                                                          \
    " snapshot; the oldest is %s transactions and %s minutes old (process %s, %s)', n, xids,"      \
    " minutes, pid, coalesce(nullif(who, ''), '?')) END"

/* The estimated number of rows of table c. */
#define ROWS_OF "greatest(pg_catalog.pg_stat_get_live_tuples(c.oid), 0)"

static const struct look server_looks[] = {
    {"server_version", "upgrade the server: this version gets no more fixes",
     "SELECT CASE WHEN v < 130000 THEN 2 WHEN v < 140000 THEN 1 ELSE 0 END,"
     " 'PostgreSQL ' || pg_catalog.current_setting('server_version')"
     " FROM (SELECT pg_catalog.current_setting('server_version_num')::int AS v) s"},
    {"durability",
     "set fsync, full_page_writes and synchronous_commit to on: a power cut loses "
     "finished work, or the database",
     "SELECT CASE WHEN f = 'off' OR s = 'off' THEN 2 WHEN p = 'off' THEN 1 ELSE 0 END,"
     " pg_catalog.format('fsync %s, full_page_writes %s, synchronous_commit %s', f, p, s) FROM "
     "(SELECT"
     " pg_catalog.current_setting('fsync') AS f, pg_catalog.current_setting('full_page_writes')"
     " AS p, pg_catalog.current_setting('synchronous_commit') AS s) x"},
    {"connections", "end idle ones, raise max_connections, or put a pooler in between",
     "SELECT CASE WHEN room - n < 3 THEN 2 WHEN (room - n) * 10 < room THEN 1 ELSE 0 END,"
     " pg_catalog.format('%s of %s connections are in use', n, room) FROM (SELECT count(*) AS n,"
     " pg_catalog.current_setting('max_connections')::int"
     " - pg_catalog.current_setting('superuser_reserved_connections')::int AS room"
     " FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend') c"},
    {"old_snapshot",
     "end that transaction (pg_terminate_backend), or let its program commit more often",
     "SELECT CASE WHEN minutes >= 30 OR xids > 10000000 THEN 2 WHEN minutes >= 5 OR xids > 1000000"
     " THEN 1 ELSE 0 END," SNAPSHOT_TEXT " FROM (SELECT count(*) AS n,"
     " coalesce(max(age(backend_xmin)), 0) AS xids, coalesce(floor(extract(epoch FROM"
     " max(clock_timestamp() - xact_start)) / 60), 0)::bigint AS minutes,"
     " (pg_catalog.array_agg(pid ORDER BY age(backend_xmin) DESC))[1] AS pid,"
     " (pg_catalog.array_agg(left(application_name, 60) ORDER BY age(backend_xmin) DESC))[1] AS who"
     " FROM pg_catalog.pg_stat_activity WHERE backend_xmin IS NOT NULL"
     " AND pid <> pg_catalog.pg_backend_pid()) s"},
    {"prepared_transactions", "COMMIT PREPARED or ROLLBACK PREPARED the abandoned ones",
     "SELECT CASE WHEN minutes >= 30 THEN 2 WHEN minutes >= 5 THEN 1 ELSE 0 END,"
     " pg_catalog.format('%s prepared transactions wait, the oldest for %s minutes', n, minutes)"
     " FROM (SELECT count(*) AS n, coalesce(floor(extract(epoch FROM max(clock_timestamp()"
     " - prepared)) / 60), 0)::bigint AS minutes FROM pg_catalog.pg_prepared_xacts) p"},
    {"replication_slots", "drop slots that have no reader (pg_drop_replication_slot)",
     "SELECT CASE WHEN xids > 10000000 OR bytes > 68719476736 THEN 2"
     " WHEN xids > 1000000 OR (idle > 0 AND bytes > 1073741824) THEN 1 ELSE 0 END,"
     " pg_catalog.format('%s slots, %s idle; they hold %s transactions and %s MiB of log', n, "
     "idle, xids,"
     " bytes / 1048576) FROM (SELECT count(*) AS n, count(*) FILTER (WHERE NOT active) AS idle,"
     " coalesce(max(greatest(age(xmin), age(catalog_xmin))), 0) AS xids,"
     " CASE WHEN pg_catalog.pg_is_in_recovery() THEN 0 ELSE "
     "coalesce(max(pg_catalog.pg_wal_lsn_diff("
     " pg_catalog.pg_current_wal_lsn(), restart_lsn)), 0)::bigint END AS bytes"
     " FROM pg_catalog.pg_replication_slots) r"},
    {"autovacuum", "turn autovacuum and track_counts on: the hot table grows without bound",
     "SELECT CASE WHEN a = 'off' OR t = 'off' OR o > 0 THEN 2 ELSE 0 END,"
     " pg_catalog.format('autovacuum %s, track_counts %s%s', a, t, CASE WHEN o > 0 THEN"
     " ', disabled for a table of the ledger' ELSE '' END) FROM (SELECT"
     " pg_catalog.current_setting('autovacuum') AS a, pg_catalog.current_setting('track_counts')"
     " AS t, (SELECT count(*) FROM pg_catalog.pg_class c WHERE c.relnamespace = (SELECT oid FROM"
     " pg_catalog.pg_namespace WHERE nspname = 'tidemark') AND 'autovacuum_enabled=false'"
     " = ANY(c.reloptions)) AS o) x"},
    {"dead_rows", "see old_snapshot; then VACUUM tidemark.job, or make autovacuum more aggressive",
     "SELECT CASE WHEN dead > 100000 AND dead > 2 * live THEN 2 WHEN dead > 10000 AND dead > live"
     " THEN 1 ELSE 0 END, pg_catalog.format('%s dead versions beside %s rows in the hot table; "
     "last vacuumed"
     " %s', dead, live, coalesce(to_char(last, 'YYYY-MM-DD HH24:MI TZ'), 'never')) FROM (SELECT"
     " n_dead_tup AS dead, n_live_tup AS live, greatest(last_vacuum, last_autovacuum) AS last"
     " FROM pg_catalog.pg_stat_all_tables WHERE relid = 'tidemark.job'::regclass) t"},
    {"table_bloat",
     "VACUUM FULL tidemark.job when nothing runs, or pg_repack: most of it is unused",
     "SELECT CASE WHEN mib >= 1024 AND bytes / (n + 1) > 16384 THEN 2 WHEN mib >= 64"
     " AND bytes / (n + 1) > 8192 THEN 1 ELSE 0 END, pg_catalog.format('the hot table has %s MiB "
     "for %s"
     " rows', mib, n) FROM (SELECT pg_catalog.pg_relation_size(c.oid) AS bytes,"
     " pg_catalog.pg_relation_size(c.oid) / 1048576 AS mib, " ROWS_OF " AS n"
     " FROM pg_catalog.pg_class c WHERE c.oid = 'tidemark.job'::regclass) b"},
    {"index_bloat", "REINDEX INDEX CONCURRENTLY tidemark.<index>: claims read its dead entries",
     "SELECT CASE WHEN bytes / 1048576 >= 512 AND bytes / (n + 1) > 1024 THEN 2"
     " WHEN bytes / 1048576 >= 32 AND bytes / (n + 1) > 512 THEN 1 ELSE 0 END,"
     " pg_catalog.format('the largest index of the hot table, %s, has %s MiB for %s rows', name,"
     " bytes / 1048576, n) FROM (SELECT x.relname AS name, pg_catalog.pg_relation_size(x.oid)"
     " AS bytes, " ROWS_OF " AS n FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x"
     " ON x.oid = i.indexrelid JOIN pg_catalog.pg_class c ON c.oid = i.indrelid"
     " WHERE c.oid = 'tidemark.job'::regclass ORDER BY 2 DESC LIMIT 1) b"},
};

#define READY(j, ms)                                                                               \
    j ".state = 0 AND " j ".open_deps = 0 AND " j ".created <= " NOW_MS " - " ms                   \
      " AND coalesce(" j ".not_before, 0) <= " NOW_MS " - " ms " AND " j ".kind NOT IN"            \
      " (SELECT id FROM tidemark.kind WHERE paused)"

static const struct look fleet_looks[] = {
    {"stale_leases", "start a worker: it declares them dead and takes what they held",
     "SELECT CASE WHEN late > 0 THEN 1 ELSE 0 END, pg_catalog.format('%s members, %s of them with "
     "an expired"
     " lease', n, late) FROM (SELECT count(*) AS n, count(*) FILTER (WHERE until <= " NOW_MS
     ") AS late FROM tidemark.member WHERE NOT dead) m"},
    {"lost_jobs", "start a worker: it puts them back and runs them again",
     "SELECT CASE WHEN n > 0 THEN 1 ELSE 0 END, CASE WHEN n = 0 THEN 'every running job is held by"
     " a living process, or sent a heartbeat recently' ELSE pg_catalog.format('%s running jobs of "
     "dead "
     "processes sent"
     " no heartbeat for up to %s minutes', n, " MINUTES(
         NOW_MS " - since") ") END FROM (SELECT count(*)"
                            " AS n, min(coalesce(beat, started)) AS since FROM tidemark.job j "
                            "WHERE state = 1"
                            " AND coalesce(beat, started) <= " NOW_MS
                            " - 300000 AND NOT " PG_ALIVE("j.owner") ") l"},
    {"unheld_accounts", "start a worker that may take them (--accounts, the archive they name)",
     "SELECT CASE WHEN n > 0 AND members > 0 THEN 1 ELSE 0 END, CASE WHEN n = 0 OR members = 0"
     " THEN 'every account with ready work is held, or no worker runs' ELSE pg_catalog.format('%s "
     "accounts have"
     " had ready work for 2 minutes and no process holds them (%s)', n, left(name, 100)) END"
     " FROM (SELECT count(*) AS n, min(a.name) AS name, (SELECT count(*) FROM tidemark.member"
     " WHERE NOT dead AND until > " NOW_MS ") AS members FROM tidemark.account a WHERE NOT a.paused"
     " AND NOT a.halted AND (a.owner IS NULL OR NOT " PG_ALIVE(
         "a.owner") ") AND EXISTS (SELECT 1"
                    " FROM tidemark.job j WHERE j.account = a.id AND j.account <> 0 AND " READY(
                        "j", "120000") ")) u"},
    {"standing_queues",
     "see `tidemark jobs explain`: no engine runs, or the account waits for something",
     "SELECT CASE WHEN n > 0 THEN 1 ELSE 0 END, CASE WHEN n = 0 THEN 'no queue is stalled'"
     " ELSE pg_catalog.format('%s queues have jobs that were ready for 10 minutes and none that "
     "runs (%s)',"
     " n, left(name, 100)) END FROM (SELECT count(*) AS n, min(a.name) AS name"
     " FROM tidemark.account a WHERE NOT a.paused AND NOT a.halted AND EXISTS (SELECT 1"
     " FROM tidemark.job j WHERE j.account = a.id AND j.account <> 0 AND " READY(
         "j", "600000") ")"
                        " AND NOT EXISTS (SELECT 1 FROM tidemark.job r WHERE r.state = 1 AND "
                        "r.account = a.id)) q"},
    {"unhandled_kinds", "start a worker with --kinds that names them, or cancel their jobs",
     "SELECT CASE WHEN n > 0 THEN 1 ELSE 0 END, CASE WHEN n = 0 THEN 'no kind of free jobs"
     " is stalled' ELSE pg_catalog.format('free jobs of %s kinds were ready for 10 minutes and "
     "none "
     "of them"
     " runs (%s)', n, left(name, 100)) END FROM (SELECT count(*) AS n, min(k.name) AS name"
     " FROM tidemark.kind k WHERE NOT k.paused AND EXISTS (SELECT 1 FROM tidemark.job j"
     " WHERE j.account = 0 AND j.kind = k.id AND " READY(
         "j", "600000") ") AND NOT EXISTS (SELECT 1"
                        " FROM tidemark.job r WHERE r.state = 1 AND r.account = 0 AND r.kind = "
                        "k.id)) q"},
    {"failed_gaps", "run `tidemark jobs retry`, or `tidemark jobs accept` to give the jobs up",
     "SELECT CASE WHEN cycles > 0 THEN 1 ELSE 0 END, CASE WHEN cycles = 0 THEN 'no cursor waits"
     " for a failed job' ELSE pg_catalog.format('%s cursors wait for %s failed jobs in %s cycles', "
     "streams,"
     " failed, cycles) END FROM (SELECT pg_catalog.count(DISTINCT c.stream) AS streams, count(*) "
     "AS cycles,"
     " coalesce(sum(c.failed), 0) AS failed FROM tidemark.stream s JOIN tidemark.cycle c"
     " ON c.stream = s.id AND c.ordinal >= s.ordinal WHERE c.failed > 0) g"},
};

/* Days that have a partition, by its bounds in the catalog; NULL for the default one. */
#define DAY_LIST                                                                                   \
    "(SELECT substring(pg_catalog.pg_get_expr(c.relpartbound, c.oid)"                              \
    " from 'FROM \\(''?(-?[0-9]+)')::bigint / " PG_DAY_MS " AS day FROM pg_catalog.pg_inherits i"  \
    " JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid"                                            \
    " WHERE i.inhparent = 'tidemark.job_done'::regclass) d"

static const struct look day_looks[] = {
    {"missing_days", "start a worker: it creates them at its start and with every purge",
     "SELECT CASE WHEN $2 AND n < 2 THEN 1 ELSE 0 END, CASE WHEN NOT $2 THEN 'this ledger creates"
     " no day partitions' ELSE pg_catalog.format('%s of today and tomorrow have a partition', n) "
     "END FROM "
     "(SELECT count(*)"
     " AS n FROM " DAY_LIST " WHERE day BETWEEN " NOW_MS " / " PG_DAY_MS " AND " NOW_MS
     " / " PG_DAY_MS " + 1) p"},
    {"overdue_days", "check whether the purge job runs, and which cycle is unfinished since then",
     "SELECT CASE WHEN $2 AND n > 0 THEN 1 ELSE 0 END, pg_catalog.format('%s days of finished "
     "jobs; %s of them"
     " are older than 10 days', of, n) FROM (SELECT count(*) AS of, count(*) FILTER (WHERE day + "
     "10 <"
     " " NOW_MS " / " PG_DAY_MS ") AS n FROM " DAY_LIST " WHERE day IS NOT NULL) p"},
    {"rows_of_no_day",
     "see missing_days: such rows are deleted one by one instead of with their day",
     "SELECT CASE WHEN $2 AND n > 100000 THEN 1 ELSE 0 END, pg_catalog.format('about %s finished "
     "jobs are in "
     "no"
     " day''s partition', n) FROM (SELECT greatest(n_live_tup, 0) AS n"
     " FROM pg_catalog.pg_stat_all_tables WHERE relid = 'tidemark.job_done_rest'::regclass) r"},
};

struct looking {
    struct tide_postgres *self;
    uint64_t now_unix_ms;
    bool (*visit)(const struct tide_symptom *symptom, void *arg);
    void *arg;
    bool stopped; /* the visitor returned false */
};

static void tell(struct looking *looking, int level, const struct look *look, const char *text)
{
    struct tide_symptom symptom = {.level = level};
    (void)snprintf(symptom.what, sizeof symptom.what, "%s", look->what);
    (void)snprintf(symptom.advice, sizeof symptom.advice, "%s", level == 0 ? "" : look->advice);
    (void)snprintf(symptom.text, sizeof symptom.text, "%.*s", (int)sizeof symptom.text - 1, text);
    looking->stopped = !looking->visit(&symptom, looking->arg);
}

static tide_status look_at(struct looking *looking, const struct look *look, tide_error *err)
{
    struct tide_postgres *self = looking->self;
    PGresult *rows = NULL;
    char text[301];
    (void)tide_pgl_params(self);
    tide_pgl_clock(self, looking->now_unix_ms);
    tide_pg_bool(self->pg, self->database_clock);
    tide_status rc = tide_pgl_rows(self, look->sql, &rows, err);
    if (rc == TIDE_INVALID) { /* the role may not see it */
        tell(looking, 1,
             &(struct look){look->what, "run it as a role with pg_monitor, or as the owner", ""},
             err == NULL ? "this role may not read it" : err->text);
        return TIDE_OK;
    }
    if (rc != TIDE_OK)
        return rc;
    if (PQntuples(rows) == 1) {
        tide_pgl_copy(rows, 0, 1, text, sizeof text);
        tell(looking, (int)tide_pg_get_i64(rows, 0, 0), look, text);
    }
    PQclear(rows);
    return TIDE_OK;
}

static tide_status look_at_all(struct looking *looking, const struct look *looks, size_t count,
                               tide_error *err)
{
    for (size_t i = 0; !looking->stopped && i < count; i++)
        TIDE_TRY(look_at(looking, &looks[i], err));
    return TIDE_OK;
}

#define ALL(looks) looks, sizeof(looks) / sizeof(looks)[0]

tide_status tide_pgl_doctor(tide_ledger *ledger, uint64_t now_unix_ms,
                            bool (*visit)(const struct tide_symptom *symptom, void *arg), void *arg,
                            tide_error *err)
{
    struct looking looking = {postgres_of(ledger), now_unix_ms, visit, arg, false};
    TIDE_TRY(tide_pgl_ready(looking.self, err));
    TIDE_TRY(look_at_all(&looking, ALL(fleet_looks), err));
    TIDE_TRY(look_at_all(&looking, ALL(day_looks), err));
    return look_at_all(&looking, ALL(server_looks), err);
}
