/* doctor.c - `jobs doctor`: diagnosis of a running ledger in a SQLite file.
 *
 * Each look reports what it found, healthy or not, so that silence is never mistaken for
 * health.  It changes nothing, and reads only indexes and small tables: it may run on a
 * ledger that is in trouble. */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    LOG_WARN_MIB = 64, /* the keeper copies it back at 4 MB */
    LOG_CRITICAL_MIB = 1024,
    FREE_WARN_PERCENT = 50,
    FREE_WARN_MIB = 64,    /* less is not reported */
    SILENT_MS = 5 * 60000, /* running jobs beat every few seconds */
    STANDING_MS = 10 * 60000,
};

struct looking {
    struct tide_sqlite *self;
    uint64_t now_unix_ms;
    bool (*visit)(const struct tide_symptom *symptom, void *arg);
    void *arg;
    bool stopped; /* the visitor returned false */
};

static void tell(struct looking *looking, int level, const char *what, const char *advice,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

static void tell(struct looking *looking, int level, const char *what, const char *advice,
                 const char *format, ...)
{
    struct tide_symptom symptom = {.level = level};
    va_list list;
    (void)snprintf(symptom.what, sizeof symptom.what, "%s", what);
    (void)snprintf(symptom.advice, sizeof symptom.advice, "%s", level == 0 ? "" : advice);
    va_start(list, format);
    (void)vsnprintf(symptom.text, sizeof symptom.text, format, list);
    va_end(list);
    if (!looking->stopped)
        looking->stopped = !looking->visit(&symptom, looking->arg);
}

/* ---- the file ---------------------------------------------------------------------- */

static tide_status look_at_log(struct looking *looking, tide_error *err)
{
    (void)err;
    sqlite3_file *file = NULL;
    sqlite3_int64 bytes = 0;
    /* Ask the VFS: only SQLite may open and close the file itself. */
    if (sqlite3_file_control(looking->self->db.handle, "main", SQLITE_FCNTL_JOURNAL_POINTER,
                             &file) == SQLITE_OK &&
        file != NULL && file->pMethods != NULL && file->pMethods->xFileSize(file, &bytes) != 0)
        bytes = 0;
    int64_t mib = bytes >> 20;
    tell(looking, mib >= LOG_CRITICAL_MIB ? 2 : mib >= LOG_WARN_MIB, "log_size",
         "a reader holds it, or no checkpoint runs: end old commands, restart the engine",
         "the write-ahead log has %" PRId64 " MiB", mib);
    return TIDE_OK;
}

static tide_status look_at_free_pages(struct looking *looking, tide_error *err)
{
    tide_db *db = &looking->self->db;
    int64_t pages = 0;
    int64_t unused = 0;
    int64_t page_bytes = 0;
    TIDE_TRY(tide_db_number(db, "PRAGMA page_count", &pages, err));
    TIDE_TRY(tide_db_number(db, "PRAGMA freelist_count", &unused, err));
    TIDE_TRY(tide_db_number(db, "PRAGMA page_size", &page_bytes, err));
    int64_t mib = unused * page_bytes >> 20;
    int64_t percent = pages == 0 ? 0 : unused * 100 / pages;
    tell(looking, mib >= FREE_WARN_MIB && percent >= FREE_WARN_PERCENT, "free_pages",
         "stop the engine and run VACUUM on the file; new jobs use this space too",
         "%" PRId64 " %% of the file (%" PRId64 " MiB) are unused", percent, mib);
    return TIDE_OK;
}

/* ---- jobs --------------------------------------------------------------------------- */

/* Up to three numbers of one row, with two times as parameters. */
static tide_status numbers(struct tide_sqlite *self, const char *sql, uint64_t first,
                           uint64_t second, uint64_t *numbers_out, int count, char *name_out,
                           size_t name_bytes, tide_error *err)
{
    tide_auto_prepared *stmt = NULL;
    int code = sqlite3_prepare_v2(self->db.handle, sql, -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(&self->db, code, "prepare a query", err);
    if (sqlite3_bind_parameter_count(stmt) > 0)
        tide_bind_u64(stmt, 1, first);
    if (sqlite3_bind_parameter_count(stmt) > 1)
        tide_bind_u64(stmt, 2, second);
    code = sqlite3_step(stmt);
    TIDE_ASSERT(code != SQLITE_DONE); /* each text is an aggregate */
    if (code == SQLITE_ROW) {
        for (int i = 0; i < count; i++)
            numbers_out[i] = tide_column_u64(stmt, i);
        if (name_out != NULL)
            tide_column_copy(stmt, count, name_out, name_bytes);
    } else
        return tide_db_failed(&self->db, code, "run a query", err);
    return TIDE_OK;
}

static uint64_t ago(const struct looking *looking, uint64_t ms)
{
    return looking->now_unix_ms < ms ? 0 : looking->now_unix_ms - ms;
}

/* They stay running until an engine starts and puts them back. */
static tide_status look_at_lost(struct looking *looking, tide_error *err)
{
    uint64_t seen[2] = {0};
    TIDE_TRY(numbers(looking->self,
                     "SELECT count(*), min(coalesce(beat, started)) FROM claim"
                     " WHERE coalesce(beat, started) <= ?1",
                     ago(looking, SILENT_MS), 0, seen, 2, NULL, 0, err));
    if (seen[0] == 0)
        tell(looking, 0, "lost_jobs", "", "every running job sent a heartbeat recently");
    else
        tell(looking, 1, "lost_jobs", "start an engine: it puts them back and runs them again",
             "%" PRIu64 " running jobs sent no heartbeat for up to %" PRIu64 " minutes", seen[0],
             (looking->now_unix_ms - seen[1]) / 60000);
    return TIDE_OK;
}

/* A queue is stalled when a job has been ready for long and none of its account runs; a long
 * queue that moves is no symptom. */
static tide_status look_at_standing(struct looking *looking, tide_error *err)
{
    uint64_t queues = 0;
    char name[201] = "";
    TIDE_TRY(numbers(looking->self,
                     "SELECT count(*), min(a.name) FROM (SELECT id, name FROM account"
                     "  WHERE paused = 0 AND halted = 0 UNION ALL SELECT 0, 'jobs of no account') a"
                     " WHERE EXISTS (SELECT 1 FROM job j INDEXED BY job_ready WHERE j.state = 0"
                     "  AND j.open_deps = 0 AND j.account = a.id AND j.created <= ?1"
                     "  AND coalesce(j.not_before, 0) <= ?1"
                     "  AND j.kind NOT IN (SELECT id FROM kind WHERE paused = 1))"
                     " AND NOT EXISTS (SELECT 1 FROM claim c CROSS JOIN job r ON r.id = c.job"
                     "  WHERE r.account = a.id)",
                     ago(looking, STANDING_MS), 0, &queues, 1, name, sizeof name, err));
    if (queues == 0)
        tell(looking, 0, "standing_queues", "", "no queue is stalled");
    else
        tell(looking, 1, "standing_queues",
             "see `tidemark jobs explain`: no engine runs, or the account waits for something",
             "%" PRIu64 " queues have jobs that were ready for 10 minutes and none that runs"
             " (%.100s)",
             queues, name);
    return TIDE_OK;
}

static tide_status look_at_gaps(struct looking *looking, tide_error *err)
{
    uint64_t seen[3] = {0};
    TIDE_TRY(numbers(looking->self,
                     "SELECT count(DISTINCT c.stream), count(*), coalesce(sum(c.failed), 0)"
                     " FROM stream s CROSS JOIN cycle c ON c.stream = s.id"
                     " AND c.ordinal >= s.ordinal WHERE c.failed > 0",
                     0, 0, seen, 3, NULL, 0, err));
    if (seen[1] == 0)
        tell(looking, 0, "failed_gaps", "", "no cursor waits for a failed job");
    else
        tell(looking, 1, "failed_gaps",
             "run `tidemark jobs retry`, or `tidemark jobs accept` to give the jobs up",
             "%" PRIu64 " cursors wait for %" PRIu64 " failed jobs in %" PRIu64 " cycles", seen[0],
             seen[2], seen[1]);
    return TIDE_OK;
}

tide_status tide_sql_doctor(tide_ledger *ledger, uint64_t now_unix_ms,
                            bool (*visit)(const struct tide_symptom *symptom, void *arg), void *arg,
                            tide_error *err)
{
    static tide_status (*const looks[])(struct looking *, tide_error *) = {
        look_at_log, look_at_free_pages, look_at_lost, look_at_standing, look_at_gaps,
    };
    struct looking looking = {sqlite_of(ledger), now_unix_ms, visit, arg, false};
    for (size_t i = 0; !looking.stopped && i < sizeof looks / sizeof looks[0]; i++)
        TIDE_TRY(looks[i](&looking, err));
    return TIDE_OK;
}
