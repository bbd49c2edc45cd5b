/* schema.c - every SQL text of the ledger, in one place. */
#include "ledger/sqlite/sqlite.h"

/* Version 1. */
static const char schema_first[] =
    "CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT NOT NULL, started INTEGER NOT NULL)"
    " STRICT;"
    "CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, scope INTEGER NOT NULL,"
    " paused INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE INDEX kind_paused ON kind (id) WHERE paused = 1;"
    "CREATE TABLE account (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " provider TEXT NOT NULL, paused INTEGER NOT NULL DEFAULT 0, halted INTEGER NOT NULL DEFAULT 0,"
    " halt_reason TEXT, halted_at INTEGER, governor TEXT) STRICT;"
    "CREATE INDEX account_paused ON account (id) WHERE paused = 1;"
    "CREATE TABLE job (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, open_deps INTEGER NOT NULL,"
    " account INTEGER NOT NULL, priority INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " scope INTEGER NOT NULL, dedupe TEXT, cycle INTEGER, attempts INTEGER NOT NULL,"
    " attempts_max INTEGER NOT NULL, traits INTEGER NOT NULL, not_before INTEGER, size INTEGER,"
    " created INTEGER NOT NULL, started INTEGER, finished INTEGER, run INTEGER, noted INTEGER,"
    " payload TEXT NOT NULL) STRICT;"
    /* The order in which jobs are claimed; kind, so that a paused one is passed
     * over without reading its rows. */
    "CREATE INDEX job_ready ON job (account, priority DESC, id, kind)"
    " WHERE state = 0 AND open_deps = 0;"
    /* scope 0: while it waits; scope 1: while it waits or runs (E1.5). */
    "CREATE UNIQUE INDEX job_dedupe ON job (account, kind, dedupe)"
    " WHERE dedupe IS NOT NULL AND state <= scope;"
    "CREATE INDEX job_gap ON job (cycle) WHERE state >= 3;"
    "CREATE TABLE claim (job INTEGER PRIMARY KEY, token INTEGER NOT NULL, owner INTEGER NOT NULL,"
    " run INTEGER NOT NULL, started INTEGER NOT NULL, cycle INTEGER, noted INTEGER,"
    " beat INTEGER, bytes_done INTEGER) STRICT;"
    "CREATE TABLE detail (job INTEGER PRIMARY KEY, status INTEGER, bytes_done INTEGER, error TEXT,"
    " resume TEXT) STRICT;"
    "CREATE TABLE dep (needs INTEGER NOT NULL, job INTEGER NOT NULL, PRIMARY KEY (needs, job))"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX dep_job ON dep (job);"
    "CREATE TABLE stream (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, name TEXT NOT NULL,"
    " ordinal INTEGER NOT NULL DEFAULT 0, ordinal_next INTEGER NOT NULL DEFAULT 0, cursor TEXT,"
    " floor TEXT, moved INTEGER, UNIQUE (account, name)) STRICT;"
    "CREATE TABLE cycle (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, ordinal INTEGER NOT NULL,"
    " start TEXT, \"end\" TEXT, total INTEGER NOT NULL DEFAULT 0,"
    " outstanding INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,"
    " opened INTEGER NOT NULL, UNIQUE (stream, ordinal)) STRICT;"
    "CREATE TABLE bad (account INTEGER NOT NULL, kind INTEGER NOT NULL, item TEXT NOT NULL,"
    " state INTEGER NOT NULL, cycle INTEGER, first_seen INTEGER NOT NULL,"
    " last_tried INTEGER NOT NULL, retries INTEGER NOT NULL, reason TEXT,"
    " PRIMARY KEY (account, kind, item)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX bad_cycle ON bad (cycle) WHERE cycle IS NOT NULL;"
    "CREATE TABLE intent (tag TEXT PRIMARY KEY, job INTEGER NOT NULL, state INTEGER NOT NULL,"
    " made INTEGER NOT NULL, ended INTEGER, detail TEXT, outcome TEXT) STRICT, WITHOUT ROWID;"
    "CREATE INDEX intent_job ON intent (job);"
    "CREATE TABLE schedule (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " kind INTEGER NOT NULL, period INTEGER NOT NULL, anchor INTEGER NOT NULL,"
    " slot_last INTEGER NOT NULL DEFAULT 0, fired INTEGER, per_account INTEGER NOT NULL,"
    " payload TEXT) STRICT;"
    "CREATE TABLE note (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;";

/* Version 2: alerts, schedules that run at start, forced splits, and the index
 * that lets a cancel find blocked jobs without walking the history. */
static const char schema_second[] =
    "ALTER TABLE schedule ADD COLUMN at_start INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE kind ADD COLUMN splits INTEGER NOT NULL DEFAULT 0;"
    "DROP INDEX job_gap;"
    "CREATE INDEX job_aside ON job (state, not_before) WHERE " ASIDE ";"
    "CREATE TABLE alert (condition TEXT NOT NULL, account INTEGER NOT NULL, level INTEGER NOT NULL,"
    " since INTEGER NOT NULL, notified INTEGER, text TEXT, PRIMARY KEY (condition, account))"
    " STRICT, WITHOUT ROWID;";

/* Version 3: requests to cancel running jobs, and enqueues that may be repeated.  The tables
 * member and share and the owner of an account are empty: only processes on PostgreSQL use
 * theirs. */
static const char schema_third[] =
    "ALTER TABLE account ADD COLUMN owner INTEGER;"
    "ALTER TABLE account ADD COLUMN archive TEXT;"
    "ALTER TABLE account ADD COLUMN secret TEXT;"
    "ALTER TABLE claim ADD COLUMN cancel_wanted INTEGER;"
    "CREATE TABLE member (owner INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL,"
    " joined INTEGER NOT NULL, until INTEGER NOT NULL, dead INTEGER NOT NULL DEFAULT 0,"
    " seq INTEGER NOT NULL DEFAULT 0) STRICT;"
    "CREATE TABLE share (name TEXT NOT NULL, owner INTEGER NOT NULL, units INTEGER NOT NULL,"
    " until INTEGER NOT NULL, units_before INTEGER NOT NULL DEFAULT 0,"
    " before_until INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (name, owner)) STRICT, WITHOUT ROWID;"
    /* The ids are a JSON array, which any tool can read. */
    "CREATE TABLE batch (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, ids TEXT NOT NULL,"
    " made INTEGER NOT NULL) STRICT;"
    "CREATE INDEX batch_made ON batch (made);";

static const char *const steps[] = {schema_first, schema_second, schema_third};

const struct tide_schema tide_ledger_schema = {
    .what = "Tidemark ledger",
    .application_id = TIDE_LEDGER_APPLICATION_ID,
    .steps = steps,
    .steps_count = sizeof steps / sizeof steps[0],
};

#define STREAM                                                                                     \
    "SELECT id, account, ordinal, ordinal_next, name, cursor, floor,"                              \
    " (SELECT start FROM cycle WHERE stream = stream.id ORDER BY ordinal LIMIT 1), moved"          \
    " FROM stream"

/* A job filter: ?1 id, ?2..?3 accounts, ?4 kind, ?5 state, ?6 cycle, ?7 before, ?8 rows. */
#define FILTER                                                                                     \
    " account BETWEEN ?2 AND ?3 AND (?4 = 0 OR kind = ?4) AND (?5 < 0 OR state = ?5)"              \
    " AND (?6 = 0 OR cycle = ?6) AND (?7 = 0 OR id < ?7) "
#define PICK "SELECT id, state, cycle, kind FROM job "

#define FINISH_SET                                                                                 \
    "UPDATE job SET state = ?2, attempts = max(0, min(65535, attempts + ?3)), started = ?4,"       \
    " finished = ?5, run = ?6, noted = ?7, not_before = ?8, payload = coalesce(?9, payload)"

#define BRIEF                                                                                      \
    "SELECT id, cycle, size, not_before, account, kind, open_deps, attempts, attempts_max,"        \
    " priority, traits FROM job "

/* Owners whose claims and accounts no other process may take. */

#define REFILL_SAME                                                                                \
    BRIEF "INDEXED BY job_ready WHERE state = 0 AND open_deps = 0"                                 \
          " AND account = ?1 AND priority = ?2 AND id > ?3 "
#define REFILL_BELOW                                                                               \
    BRIEF "INDEXED BY job_ready WHERE state = 0 AND open_deps = 0"                                 \
          " AND account = ?1 AND priority < ?2 AND ?3 >= 0 "
#define NOT_PAUSED "kind NOT IN (SELECT id FROM kind WHERE paused = 1) "

const char *const tide_ledger_sql[SQL_COUNT_OF_STATEMENTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_DATA_VERSION] = "PRAGMA data_version", /* changes when another connection commits */
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_SAVEPOINT] = "SAVEPOINT one",
    [SQL_SAVEPOINT_UNDO] = "ROLLBACK TO one",
    [SQL_SAVEPOINT_END] = "RELEASE one",
    [SQL_RUN_ADD] = "INSERT INTO run (name, started) VALUES (?1, ?2)",
    [SQL_RUN_GET] = "SELECT id FROM run WHERE name = ?1 ORDER BY id DESC LIMIT 1",

    [SQL_KIND_BY_ID] = "SELECT scope FROM kind WHERE id = ?1",
    [SQL_ACCOUNT_BY_ID] = "SELECT 1 FROM account WHERE id = ?1",
    [SQL_ACCOUNT_GOVERNOR] = "UPDATE account SET governor = ?2 WHERE id = ?1",
    [SQL_PAUSED] = "SELECT 0, id FROM account WHERE paused = 1"
                   " UNION ALL SELECT 1, id FROM kind WHERE paused = 1",

    [SQL_JOB_INSERT] = "INSERT INTO job (state, open_deps, account, priority, kind, scope, dedupe,"
                       " cycle, attempts, attempts_max, traits, not_before, size, created, payload)"
                       " VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    [SQL_JOB_DUPLICATE] = "SELECT id, state, priority, traits, open_deps FROM job"
                          " INDEXED BY job_dedupe"
                          " WHERE account = ?1 AND kind = ?2 AND dedupe = ?3 AND state <= scope",
    [SQL_JOB_RAISE] = "UPDATE job SET priority = ?2, traits = ?3 WHERE id = ?1",
    [SQL_JOB_STATE] = "SELECT state FROM job WHERE id = ?1",
    [SQL_JOB_CLAIM_GET] = "SELECT account, kind, attempts, traits, cycle, noted, dedupe, payload"
                          " FROM job WHERE id = ?1 AND state = 0 AND open_deps = 0",
    [SQL_JOB_CLAIM] = "UPDATE job SET state = 1 WHERE id = ?1",
    [SQL_JOB_CLAIM_RUN_GET] =
        "SELECT account, kind, attempts, traits, cycle, noted, dedupe, payload, id FROM job"
        " WHERE id BETWEEN ?1 AND ?2 AND +state = 0 AND +open_deps = 0 ORDER BY id",
    [SQL_JOB_CLAIM_RUN] = "UPDATE job SET state = 1 WHERE id BETWEEN ?1 AND ?2",
    [SQL_CLAIM_INSERT_RUN] = "INSERT INTO claim (job, token, owner, run, started, cycle)"
                             " SELECT id, id + ?3, ?4, ?5, ?6, cycle FROM job"
                             " WHERE id BETWEEN ?1 AND ?2",
    [SQL_CLAIM_INSERT] = "INSERT INTO claim (job, token, owner, run, started, cycle, noted, beat,"
                         " bytes_done) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8)",
    [SQL_CLAIM_GET] = "SELECT started, cycle, noted, run FROM claim WHERE job = ?1 AND token = ?2",
    [SQL_CLAIM_DELETE] = "DELETE FROM claim WHERE job = ?1 AND token = ?2",
    [SQL_CLAIM_RUN_COUNT] = "SELECT count(*) FROM claim WHERE job BETWEEN ?1 AND ?2"
                            " AND token = job + ?3",
    [SQL_CLAIM_RUN_DELETE] = "DELETE FROM claim WHERE job BETWEEN ?1 AND ?2",
    [SQL_CLAIM_BEAT] = "UPDATE claim SET beat = ?3, bytes_done = ?4 WHERE job = ?1 AND token = ?2",
    [SQL_CLAIM_BEAT_NOTED] = "UPDATE claim SET beat = ?3, bytes_done = ?4, noted = 1"
                             " WHERE job = ?1 AND token = ?2",
    [SQL_CLAIM_CANCEL] =
        "UPDATE claim SET cancel_wanted = 1 WHERE job = ?1 AND cancel_wanted IS NULL",
    [SQL_CLAIM_WANTED] = "SELECT 1 FROM claim WHERE job = ?1 AND token = ?2 AND cancel_wanted = 1",
    [SQL_FINISH_DONE] = "UPDATE job SET state = 2, started = ?2, finished = ?3, run = ?4,"
                        " noted = ?5 WHERE id = ?1",
    [SQL_FINISH_DONE_RUN] = "UPDATE job SET state = 2, started = ?3, finished = ?4, run = ?5,"
                            " noted = NULL WHERE id BETWEEN ?1 AND ?2",
    [SQL_FINISH_OTHER] = FINISH_SET " WHERE id = ?1",
    [SQL_FINISH_KEYLESS] = FINISH_SET ", dedupe = NULL WHERE id = ?1",
    [SQL_DETAIL_SET] = "INSERT INTO detail (job, status, bytes_done, error, resume)"
                       " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (job) DO UPDATE SET"
                       " status = excluded.status, bytes_done = excluded.bytes_done,"
                       " error = excluded.error,"
                       " resume = CASE WHEN ?6 THEN excluded.resume ELSE resume END",
    [SQL_DETAIL_RESUME] = "INSERT INTO detail (job, resume) VALUES (?1, ?2)"
                          " ON CONFLICT (job) DO UPDATE SET resume = excluded.resume",
    [SQL_DETAIL_GET] = "SELECT resume, bytes_done FROM detail WHERE job = ?1",
    [SQL_DETAIL_DELETE] = "DELETE FROM detail WHERE job = ?1",
    [SQL_DEP_INSERT] = "INSERT INTO dep (needs, job) VALUES (?1, ?2)",
    [SQL_DEP_ADD] = "INSERT INTO dep (needs, job) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    /* All dependencies of a job, direct and indirect. */
    [SQL_DEP_ALL_NEEDS] = "WITH RECURSIVE needed (id) AS (SELECT needs FROM dep WHERE job = ?1"
                          " UNION SELECT d.needs FROM needed n CROSS JOIN dep d ON d.job = n.id)"
                          " SELECT id FROM needed",
    [SQL_DEP_WAITING] = "SELECT job FROM dep WHERE needs = ?1",
    [SQL_DEP_CLEAR] = "DELETE FROM dep WHERE needs = ?1",
    [SQL_DEP_CLEAR_JOB] = "DELETE FROM dep WHERE job = ?1",
    [SQL_DEP_ANY] = "SELECT 1 FROM dep LIMIT 1",
    [SQL_DEP_NEEDED] = "SELECT 1 FROM dep WHERE needs = ?1 LIMIT 1",
    [SQL_JOB_RELEASE] = "UPDATE job SET open_deps = open_deps - ?2 WHERE id = ?1",
    [SQL_JOB_RELEASED] = "SELECT account, open_deps, state FROM job WHERE id = ?1",
    [SQL_JOB_ACCOUNT_KIND] = "SELECT account, kind FROM job WHERE id = ?1",
    [SQL_REFILL_SAME] = REFILL_SAME "ORDER BY id LIMIT ?4",
    [SQL_REFILL_BELOW] = REFILL_BELOW "ORDER BY priority DESC, id LIMIT ?4",
    [SQL_REFILL_SAME_PAUSED] = REFILL_SAME "AND " NOT_PAUSED "ORDER BY id LIMIT ?4",
    [SQL_REFILL_BELOW_PAUSED] =
        REFILL_BELOW "AND " NOT_PAUSED "ORDER BY priority DESC, id LIMIT ?4",
    [SQL_ACCOUNT_NEXT_WORK] = "SELECT account FROM job INDEXED BY job_ready"
                              " WHERE state = 0 AND open_deps = 0 AND account > ?1"
                              " ORDER BY account LIMIT 1",
    [SQL_BRIEF] = BRIEF "WHERE id = ?1 AND state <= 1",
    [SQL_RECLAIM_LIST] =
        "SELECT c.job, j.state, c.cycle, j.kind, j.attempts, j.attempts_max,"
        " c.started, c.run, c.noted, c.bytes_done, k.splits, c.token, c.cancel_wanted"
        " FROM claim c CROSS JOIN job j ON j.id = c.job LEFT JOIN kind k ON k.id = j.kind"
        " WHERE c.owner <> ?1 ORDER BY c.job LIMIT ?2",
    [SQL_PICK_ID] = PICK "WHERE id = ?1 AND" FILTER "LIMIT ?8",
    [SQL_PICK_GAP] =
        PICK "INDEXED BY job_aside WHERE " ASIDE " AND state >= 3 AND" FILTER "LIMIT ?8",
    [SQL_PICK_DELAYED] = PICK "INDEXED BY job_aside WHERE " ASIDE
                              " AND state = 0 AND not_before IS NOT NULL AND" FILTER "LIMIT ?8",
    [SQL_PICK_READY] =
        PICK "INDEXED BY job_ready WHERE state = 0 AND open_deps = 0 AND" FILTER "LIMIT ?8",
    [SQL_PICK_BLOCKED] = PICK "INDEXED BY job_aside WHERE " ASIDE
                              " AND state = 0 AND open_deps > 0 AND" FILTER "LIMIT ?8",
    [SQL_PICK_RUNNING] = PICK "WHERE id IN (SELECT job FROM claim) AND" FILTER "LIMIT ?8",
    [SQL_RETRY_ONE] = "UPDATE job SET state = 0, attempts = 0, not_before = NULL, finished = NULL"
                      " WHERE id = ?1",
    [SQL_RETRY_KEYLESS] = "UPDATE job SET state = 0, attempts = 0, not_before = NULL,"
                          " finished = NULL, dedupe = NULL WHERE id = ?1",
    [SQL_RETRY_SOON] = "UPDATE job SET not_before = NULL WHERE id = ?1",
    [SQL_CANCEL_ONE] = "UPDATE job SET state = 4, finished = ?2 WHERE id = ?1",
    [SQL_ACCEPT_ONE] = "UPDATE job SET state = 2, finished = ?2, open_deps = 0 WHERE id = ?1",
    [SQL_JOB_NEWEST] = "SELECT max(id) FROM job",
    [SQL_PURGE_SCAN] = "SELECT id, state, finished, created, cycle FROM job WHERE id > ?1"
                       " ORDER BY id LIMIT ?2",
    [SQL_JOB_DELETE] = "DELETE FROM job WHERE id = ?1",
    /* An intent with an unknown outcome outlives its job: a later job that retries the same
     * must look it up first, however long ago it was (E1.9). */
    [SQL_INTENT_DELETE_JOB] = "DELETE FROM intent WHERE job = ?1 AND state IN (1, 2)",

    [SQL_STREAM_GET] = STREAM " WHERE account = ?1 AND name = ?2",
    [SQL_STREAM_BY_ID] = "SELECT ordinal, ordinal_next FROM stream WHERE id = ?1",
    [SQL_STREAM_ADD] = "INSERT INTO stream (account, name, floor) VALUES (?1, ?2, ?3)",
    [SQL_STREAM_FLOOR] = "UPDATE stream SET floor = ?2 WHERE id = ?1",
    [SQL_STREAM_NEXT] = "UPDATE stream SET ordinal_next = ordinal_next + 1 WHERE id = ?1",
    [SQL_STREAM_MOVE] = "UPDATE stream SET ordinal = ?3, cursor = ?4, moved = ?5"
                        " WHERE id = ?1 AND ordinal = ?2",
    [SQL_CYCLE_ADD] = "INSERT INTO cycle (stream, ordinal, start, \"end\", opened)"
                      " VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_CYCLE_OPEN] = "SELECT c.ordinal >= s.ordinal FROM cycle c JOIN stream s ON s.id = c.stream"
                       " WHERE c.id = ?1",
    [SQL_CYCLE_TALLY] = "UPDATE cycle SET total = total + ?2, outstanding = outstanding + ?3,"
                        " failed = failed + ?4 WHERE id = ?1",
    [SQL_CYCLE_GET] = "SELECT stream, ordinal, outstanding, failed, total,"
                      " (SELECT count(*) FROM bad WHERE cycle = ?1 AND state = 0)"
                      " FROM cycle WHERE id = ?1",
    [SQL_CYCLE_SPAN] = "SELECT count(*), count(*) FILTER (WHERE outstanding > 0 OR failed > 0)"
                       " FROM cycle WHERE stream = ?1 AND ordinal >= ?2 AND ordinal < ?3",
    [SQL_CYCLE_END] = "SELECT \"end\" FROM cycle WHERE stream = ?1 AND ordinal = ?2",
    [SQL_CYCLE_UNFINISHED] = "SELECT ordinal FROM cycle WHERE stream = ?1 AND ordinal >= ?2"
                             " AND (outstanding > 0 OR failed > 0) ORDER BY ordinal LIMIT 1",
    [SQL_STREAM_CURSOR] = "SELECT cursor FROM stream WHERE id = ?1",
    /* An accepted item stays accepted; a retried item that fails is bad again. */
    [SQL_BAD_ADD] = "INSERT INTO bad (account, kind, item, state, cycle, first_seen, last_tried,"
                    " retries, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 0, ?7)"
                    " ON CONFLICT (account, kind, item) DO UPDATE SET"
                    " state = CASE WHEN state = 3 THEN 3 ELSE excluded.state END,"
                    " cycle = excluded.cycle, last_tried = excluded.last_tried,"
                    " retries = retries + 1, reason = excluded.reason",
    [SQL_BAD_CLEAR] = "DELETE FROM bad WHERE account = ?1 AND kind = ?2 AND item = ?3",
    [SQL_INTENT_GET] = "SELECT state, outcome FROM intent WHERE tag = ?1",
    [SQL_INTENT_ADD] = "INSERT INTO intent (tag, job, state, made, detail)"
                       " VALUES (?1, ?2, 0, ?3, ?4)",
    /* Slots only grow, so one number per schedule is enough, as a row per slot would be. */
    [SQL_SCHEDULE_FIRE] = "UPDATE schedule SET slot_last = ?2, fired = ?3"
                          " WHERE id = ?1 AND slot_last < ?2",
    [SQL_SCHEDULE_BY_ID] = "SELECT 1 FROM schedule WHERE id = ?1",
    [SQL_NOTE_CLEAR] = "DELETE FROM note WHERE key = ?1",

    [SQL_BATCH_GET] = "SELECT e.value, json_array_length(b.ids) FROM batch b"
                      " LEFT JOIN json_each(b.ids) e WHERE b.name = ?1 ORDER BY e.key",
    [SQL_BATCH_PUT] = "INSERT INTO batch (name, ids, made) VALUES (?1, ?2, ?3)",
    [SQL_BATCH_FORGET] = "DELETE FROM batch WHERE id IN"
                         " (SELECT id FROM batch WHERE made < ?1 LIMIT ?2)",

};
