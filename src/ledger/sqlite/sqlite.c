/* sqlite.c - opening, transactions, checkpoints, backups and the check of
 * a ledger in a SQLite file. */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char running_key[] = "running";

tide_status tide_sql_no_memory(tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "ledger: no memory");
}

tide_status tide_sql_end(struct tide_sqlite *self, tide_status rc)
{
    if (rc == TIDE_IO || rc == TIDE_CORRUPT || rc == TIDE_DISK_FULL || rc == TIDE_NO_MEMORY)
        self->tx_failed = rc;
    return rc;
}

tide_status tide_sql_change_one(struct tide_sqlite *self, sqlite3_stmt *stmt, const char *what,
                                uint64_t id, tide_error *err)
{
    tide_status rc = tide_db_run(&self->db, stmt, err);
    if (rc == TIDE_OK && sqlite3_changes(self->db.handle) != 1)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no %s %" PRIu64, what, id);
    return tide_sql_end(self, rc);
}

/* ---- transactions --------------------------------------------------------------- */

/* After a rollback a cached name may no longer exist. */
static void forget(struct tide_sqlite *self)
{
    tide_map_clear(&self->kinds);
    tide_map_clear(&self->accounts);
}

static void rollback(tide_tx *tx);

/* Drops what is cached between transactions if another connection has written to the file: a
 * command, or a second engine, may have it open. */
static tide_status remember(struct tide_sqlite *self, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_DATA_VERSION);
    bool row = false;
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    TIDE_ASSERT(row);
    uint64_t version = tide_column_u64(stmt, 0);
    tide_db_end(stmt);
    if (version == self->data_version)
        return TIDE_OK;
    self->data_version = version;
    memset(self->known, 0, sizeof self->known);
    forget(self);
    return TIDE_OK;
}

static tide_status begin(tide_ledger *ledger, tide_tx **tx_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    TIDE_ASSERT(!self->in_tx);
    TIDE_ASSERT(!self->read_only);
    if (self->broken != TIDE_OK)
        return tide_error_set(
            err, self->broken,
            "%s: an earlier write could not be synced to disk; stop, check the disk "
            "and start again",
            self->db.path);
    TIDE_TRY(tide_db_run(&self->db, sql_of(self, SQL_BEGIN), err));
    self->in_tx = true;
    self->tx_failed = TIDE_OK;
    self->tx_over = false;
    self->savepoints = 0;
    self->paused_known = false;
    self->deps_known = false;
    self->tally_cycles_count = 0;
    self->tally_released_count = 0;
    tide_status rc = remember(self, err);
    if (rc != TIDE_OK) {
        rollback(&self->tx);
        return rc;
    }
    *tx_out = &self->tx;
    return TIDE_OK;
}

static void rollback(tide_tx *tx)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    TIDE_ASSERT(self->in_tx);
    self->savepoints = 0;
    /* Some failures make SQLite roll back by itself. */
    if (!sqlite3_get_autocommit(self->db.handle))
        (void)tide_db_run(&self->db, sql_of(self, SQL_ROLLBACK), NULL);
    self->in_tx = false;
    forget(self);
}

static tide_status commit(tide_tx *tx, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    TIDE_ASSERT(self->in_tx);
    tide_status rc = self->tx_failed;
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "%s: nothing was stored, because an earlier step failed (%s)",
                             self->db.path, tide_status_name(rc));
    else
        rc = tide_db_run(&self->db, sql_of(self, SQL_COMMIT), err);
    if (rc == TIDE_OK) {
        self->in_tx = false;
        return TIDE_OK;
    }
    /* After a failed sync it is unknown whether the pages are on disk, and a second sync may
     * report success falsely (E1.10). */
    if (rc == TIDE_IO)
        self->broken = TIDE_IO;
    rollback(tx);
    return rc;
}

/* ---- callbacks --------------------------------------------------------------------- */

/* Callers run statements of their own on the handle, inside a savepoint.  If one ends the
 * transaction (COMMIT, ROLLBACK, ON CONFLICT ROLLBACK), all statements that follow would run
 * outside of any transaction and be stored one by one.  So no commit succeeds while a savepoint
 * is open, and the end of the savepoint reports it (tide_tx_over()). */
static int commit_wanted(void *arg)
{
    struct tide_sqlite *self = arg;
    if (self->savepoints == 0)
        return 0;
    self->tx_over = true;
    return 1; /* becomes a rollback */
}

static void rolled_back(void *arg)
{
    struct tide_sqlite *self = arg;
    if (self->savepoints > 0)
        self->tx_over = true;
}

static int log_grew(void *arg, sqlite3 *handle, const char *name, int pages)
{
    struct tide_sqlite *self = arg;
    (void)handle;
    (void)name;
    self->base.log_pages = (uint32_t)pages;
    return SQLITE_OK;
}

bool tide_sql_tx_over(struct tide_sqlite *self)
{
    return self->tx_over || sqlite3_get_autocommit(self->db.handle) != 0;
}

static bool tx_over(tide_tx *tx)
{
    return tide_sql_tx_over(sqlite_of_tx(tx));
}

tide_status tide_sql_over(struct tide_sqlite *self, tide_status rc, tide_error *err)
{
    /* A full disk or a failed read may have ended it; else the callback did, and the caller
     * retries without that callback. */
    if (rc != TIDE_DISK_FULL && rc != TIDE_IO && rc != TIDE_CORRUPT && rc != TIDE_NO_MEMORY)
        rc = tide_error_set(err, TIDE_AGAIN, "%s: a callback ended the transaction it ran in",
                            self->db.path);
    self->tx_failed = rc;
    return rc;
}

/* SQLite finds the innermost savepoint of a name, so one name is enough for the stack. */
tide_status tide_sql_savepoint(struct tide_sqlite *self, tide_error *err)
{
    tide_status rc = tide_db_run(&self->db, sql_of(self, SQL_SAVEPOINT), err);
    self->savepoints += rc == TIDE_OK;
    return rc;
}

static tide_status savepoint(tide_tx *tx, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    TIDE_ASSERT(self->in_tx);
    if (self->tx_failed != TIDE_OK)
        return tide_error_set(err, self->tx_failed, "%s: an earlier step failed (%s)",
                              self->db.path, tide_status_name(self->tx_failed));
    return tide_sql_end(self, tide_sql_savepoint(self, err));
}

static tide_status savepoint_end(tide_tx *tx, bool keep, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    TIDE_ASSERT(self->in_tx);
    TIDE_ASSERT(self->savepoints > 0);
    self->savepoints--;
    if (self->tx_failed == TIDE_OK && tide_sql_tx_over(self))
        return tide_sql_over(self, TIDE_OK, err);
    if (self->tx_failed != TIDE_OK)
        return tide_error_set(err, self->tx_failed, "%s: an earlier step failed (%s)",
                              self->db.path, tide_status_name(self->tx_failed));
    tide_status rc = TIDE_OK;
    if (!keep) {
        rc = tide_db_run(&self->db, sql_of(self, SQL_SAVEPOINT_UNDO), err);
        /* Values cached since the savepoint may have been undone. */
        forget(self);
        self->paused_known = false;
        self->deps_known = false;
    }
    if (rc == TIDE_OK)
        rc = tide_db_run(&self->db, sql_of(self, SQL_SAVEPOINT_END), err);
    /* The rest of the transaction would build on changes that should have been undone. */
    if (rc != TIDE_OK)
        self->tx_failed = rc;
    return rc;
}

static tide_status rows_of(tide_ledger *ledger, tide_rows *rows_out, tide_error *err)
{
    (void)err;
    rows_out->sqlite = ledger->sqlite;
    rows_out->kept = ledger->kept;
    return TIDE_OK;
}

static tide_status rows_end(tide_ledger *ledger, tide_status rc)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    return self->in_tx ? tide_sql_end(self, rc) : rc;
}

static void names_change(tide_ledger *ledger)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    tide_map_clear(&self->kinds);
    self->paused_known = false;
}

/* ---- opening ------------------------------------------------------------------- */

static void destroy(struct tide_sqlite *self)
{
    tide_mem *mem = self->mem;
    tide_rows_kept_done(&self->statements);
    tide_db_close(&self->side);
    tide_db_close(&self->db);
    tide_buf_done(&self->kept);
    tide_map_done(&self->kinds);
    tide_map_done(&self->accounts);
    tide_map_done(&self->tally_map);
    tide_mem_free(mem, self->paused_accounts,
                  self->paused_accounts_capacity * sizeof self->paused_accounts[0]);
    tide_mem_free(mem, self->paused_kinds,
                  self->paused_kinds_capacity * sizeof self->paused_kinds[0]);
    tide_mem_free(mem, self->tally_cycles,
                  self->tally_cycles_capacity * sizeof self->tally_cycles[0]);
    tide_mem_free(mem, self->tally_released,
                  self->tally_released_capacity * sizeof self->tally_released[0]);
    tide_mem_free(mem, self->needs, self->needs_capacity * sizeof self->needs[0]);
    tide_mem_free(mem, self->plain, self->plain_capacity * sizeof self->plain[0]);
    tide_mem_free(mem, self->picks, self->picks_capacity * sizeof self->picks[0]);
    tide_mem_free(mem, self, sizeof *self);
}

/* After an unclean stop the whole file is checked once before it is used. */
static tide_status check_after_crash(struct tide_sqlite *self, tide_error *err)
{
    int64_t running = 0;
    TIDE_TRY(tide_db_number(&self->db, "SELECT count(*) FROM note WHERE key = 'running'", &running,
                            err));
    if (running == 0)
        return TIDE_OK;
    TIDE_SEEN("ledger: checked after an unclean stop");
    tide_auto_buf problems = tide_buf_in(self->mem, 16 << 10);
    TIDE_TRY(tide_db_quick_check(&self->db, &problems, err));
    if (problems.bytes > 0)
        return tide_error_set(err, TIDE_CORRUPT, "%s: damaged (%.150s); restore it from a backup",
                              self->db.path, tide_buf_cstr(&problems));
    return TIDE_OK;
}

/* Marks the run, so that the next start knows whether this one ended cleanly. */
static tide_status record_start(struct tide_sqlite *self, const struct tide_ledger_options *options,
                                tide_error *err)
{
    const char *run_id = options->run_id == NULL ? "" : options->run_id;
    tide_tx *tx = NULL;
    TIDE_TRY(begin(&self->base, &tx, err));
    sqlite3_stmt *stmt = sql_of(self, SQL_RUN_ADD);
    tide_bind_text(stmt, 1, tide_text_of(run_id));
    tide_bind_u64(stmt, 2, options->now_unix_ms);
    tide_status rc = tide_db_run(&self->db, stmt, err);
    self->run = (uint64_t)sqlite3_last_insert_rowid(self->db.handle);
    if (rc == TIDE_OK)
        rc = tide_ledger_note(tx, running_key, tide_text_of(run_id[0] == '\0' ? "?" : run_id), err);
    if (rc == TIDE_OK)
        return commit(tx, err);
    rollback(tx);
    return rc;
}

/* The target of a copy has another application id until the copy is complete, so that no
 * version of the program takes it for a ledger.  A new target has it from the start. */
static tide_status look_for_copy(struct tide_sqlite *self,
                                 const struct tide_ledger_options *options,
                                 struct tide_schema *schema, tide_error *err)
{
    int64_t application = 0;
    TIDE_TRY(tide_db_number(&self->db, "PRAGMA application_id", &application, err));
    if (application == TIDE_LEDGER_COPYING_ID && !options->building)
        return tide_error_set(err, TIDE_BUSY,
                              "%s: a copy into it has not ended; finish it with `tidemark ledger "
                              "copy FROM TO`, or remove the file",
                              options->path);
    if (options->building && application != TIDE_LEDGER_APPLICATION_ID)
        schema->application_id = TIDE_LEDGER_COPYING_ID;
    return TIDE_OK;
}

static tide_status open_file(struct tide_sqlite *self, const struct tide_ledger_options *options,
                             tide_error *err)
{
    bool exists = false;
    TIDE_TRY(tide_db_exists(options->path, self->vfs, &exists, err));
    if (!exists && (options->must_exist || options->read_only))
        return tide_error_set(err, TIDE_NOT_FOUND,
                              "%s: there is no such file; start the engine "
                              "once to create it",
                              options->path);
    /* Created private: SQLite would follow the umask.  An empty file counts as new, and the
     * log takes its mode from it.  If it cannot be created, the open below says why, with
     * advice. */
    if (!exists)
        (void)tide_file_replace(self->world, options->path, TIDE_TEXT_NONE, 0600, NULL);
    struct tide_db_options db = {
        .path = options->path,
        .vfs = self->vfs,
        .read_only = options->read_only,
        .must_exist = exists,
        .busy_timeout_ms = 2000,
        .cache_kib = 8192,
    };
    TIDE_TRY(tide_db_open(&db, self->mem, &self->db, err));
    uint32_t version = 0;
    struct tide_schema schema = tide_ledger_schema;
    TIDE_TRY(look_for_copy(self, options, &schema, err));
    TIDE_TRY(tide_migrate_look(&self->db, &schema, &version, err));
    if (options->read_only)
        return version == tide_ledger_schema.steps_count
                   ? TIDE_OK
                   : tide_error_set(err, TIDE_INVALID,
                                    "%s: schema %u, this program needs %u; start the engine once "
                                    "to upgrade it",
                                    options->path, version, tide_ledger_schema.steps_count);
    if (version > 0)
        TIDE_TRY(check_after_crash(self, err));
    TIDE_TRY(tide_db_wal(&self->db, err));
    TIDE_TRY(tide_migrate(&self->db, &schema, version, err));
    db.must_exist = true;
    db.cache_kib = 512;
    return tide_db_open(&db, self->mem, &self->side, err);
}

static const struct tide_ledger_ops sqlite_ops;

tide_status tide_ledger_sqlite_open(tide_world *world, const struct tide_ledger_options *options,
                                    tide_ledger **ledger_out, tide_error *err)
{
    tide_mem *mem = tide_mem_heap();
    struct tide_sqlite *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_sql_no_memory(err);
    self->base.ops = &sqlite_ops;
    self->tx.ledger = &self->base;
    self->mem = mem;
    self->world = world;
    self->vfs = tide_world_vfs(world);
    self->read_only = options->read_only;
    tide_buf_init(&self->kept, mem, (size_t)4 << 20);
    tide_map_init(&self->kinds, mem);
    tide_map_init(&self->accounts, mem);
    tide_map_init(&self->tally_map, mem);

    tide_status rc = open_file(self, options, err);
    if (rc == TIDE_OK)
        rc = tide_db_statements(&self->db, tide_ledger_sql, SQL_COUNT_OF_STATEMENTS, err);
    if (rc == TIDE_OK) {
        self->base.sqlite = self->db.handle;
        self->base.kept = options->read_only ? &self->statements : NULL;
        self->base.tx_kept = options->read_only ? NULL : &self->statements;
        (void)sqlite3_commit_hook(self->db.handle, commit_wanted, self);
        (void)sqlite3_rollback_hook(self->db.handle, rolled_back, self);
        (void)sqlite3_wal_hook(self->db.handle, log_grew, self);
    }
    if (rc == TIDE_OK && !options->read_only && !options->building)
        rc = record_start(self, options, err);
    if (rc != TIDE_OK) {
        destroy(self);
        return rc;
    }
    *ledger_out = &self->base;
    return TIDE_OK;
}

static void close_ledger(tide_ledger *ledger, bool clean)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    TIDE_ASSERT(!self->in_tx);
    tide_tx *tx = NULL;
    if (clean && !self->read_only && begin(ledger, &tx, NULL) == TIDE_OK) {
        sqlite3_stmt *stmt = sql_of(self, SQL_NOTE_CLEAR);
        tide_bind_text(stmt, 1, TIDE_TEXT("running"));
        /* If this fails the next start checks the file, which is harmless. */
        if (tide_db_run(&self->db, stmt, NULL) == TIDE_OK)
            (void)commit(tx, NULL);
        else
            rollback(tx);
    }
    destroy(self);
}

/* ---- checkpoints and backups ------------------------------------------------------ */

tide_status tide_sql_checkpoint(tide_ledger *ledger, uint32_t *pages_left_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    TIDE_ASSERT(!self->read_only);
    int pages = 0;
    int done = 0;
    int code = sqlite3_wal_checkpoint_v2(self->side.handle, "main", SQLITE_CHECKPOINT_PASSIVE,
                                         &pages, &done);
    /* Busy: a reader is active or another checkpoint runs.  The rest is done next time. */
    if (code != SQLITE_OK && code != SQLITE_BUSY)
        return tide_db_failed(&self->side, code, "copy the log into the file", err);
    *pages_left_out = pages > done ? (uint32_t)(pages - done) : 0;
    return TIDE_OK;
}

static tide_status copy_into(tide_db *source, tide_db *target, tide_error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(target->handle, "main", source->handle, "main");
    if (backup == NULL)
        return tide_db_failed(target, sqlite3_extended_errcode(target->handle), "begin the copy",
                              err);
    /* All pages in one step: one snapshot, and no writer can make the copy start over. */
    int code = sqlite3_backup_step(backup, -1);
    int end = sqlite3_backup_finish(backup);
    if (code != SQLITE_DONE)
        return tide_db_failed(target, end == SQLITE_OK ? code : end, "copy", err);
    /* The copy was made of a running ledger, but nothing crashed in it. */
    return tide_db_exec(target, "DELETE FROM note WHERE key = 'running'", err);
}

tide_status tide_sql_backup(tide_ledger *ledger, const char *path, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    bool exists = false;
    TIDE_TRY(tide_db_exists(path, self->vfs, &exists, err));
    if (exists)
        return tide_error_set(err, TIDE_EXISTS, "%s: already exists; name a new file", path);

    /* A killed copy must not look like a ledger: it gets its name when it is complete. */
    char partial[4096];
    if ((size_t)snprintf(partial, sizeof partial, "%s.partial", path) >= sizeof partial)
        return tide_error_set(err, TIDE_INVALID, "%.100s...: the name is too long", path);
    (void)tide_file_remove(self->world, partial, NULL);
    tide_db source = {0};
    tide_db target = {0};
    struct tide_db_options options = {
        .path = self->db.path, .vfs = self->vfs, .read_only = true, .busy_timeout_ms = 2000};
    tide_status rc = tide_db_open(&options, self->mem, &source, err);
    options.path = partial;
    options.read_only = false;
    if (rc == TIDE_OK)
        rc = tide_db_open(&options, self->mem, &target, err);
    if (rc == TIDE_OK)
        rc = copy_into(&source, &target, err);
    tide_db_close(&target);
    tide_db_close(&source);
    if (rc == TIDE_OK)
        return tide_file_rename(self->world, partial, path, err);
    (void)tide_file_remove(self->world, partial, NULL);
    return rc;
}

/* ---- the check ------------------------------------------------------------------ */

struct rule {
    const char *name;
    const char *sql; /* each row is a problem: an id */
};

static const struct rule rules[] = {
    {"LED1: a job in no known state", "SELECT id FROM job WHERE state NOT IN (0, 1, 2, 3, 4)"},
    {"LED1: a running job without a claim",
     "SELECT id FROM job WHERE state = 1 AND id NOT IN (SELECT job FROM claim)"},
    {"LED1: a claim on a job that does not run",
     "SELECT c.job FROM claim c LEFT JOIN job j ON j.id = c.job WHERE j.state IS NOT 1"},
    {"LED1: a finished job without a time, or an unfinished one with one",
     "SELECT id FROM job WHERE (finished IS NOT NULL) <> (state >= 2)"},
    {"LED2: open_deps is not the number of open dependencies",
     "SELECT id FROM job WHERE open_deps <> (SELECT count(*) FROM dep WHERE dep.job = job.id)"},
    {"LED2: a dependency on a job that is done or gone",
     "SELECT d.job FROM dep d LEFT JOIN job j ON j.id = d.needs WHERE j.id IS NULL OR j.state = 2"},
    {"LED2: a dependency of no job",
     "SELECT d.needs FROM dep d LEFT JOIN job j ON j.id = d.job WHERE j.id IS NULL"},
    {"LED2: a job runs or is done before what it needs",
     "SELECT id FROM job WHERE open_deps > 0 AND state IN (1, 2)"},
    {"LED3: the counts of a cycle",
     "SELECT c.id FROM cycle c LEFT JOIN (SELECT cycle, sum(state <= 1) AS o, sum(state >= 3) AS f"
     " FROM job WHERE cycle IS NOT NULL GROUP BY cycle) j ON j.cycle = c.id"
     " WHERE c.outstanding <> coalesce(j.o, 0) OR c.failed <> coalesce(j.f, 0)"},
    {"LED3: a job of no cycle",
     "SELECT id FROM job WHERE cycle IS NOT NULL AND cycle NOT IN (SELECT id FROM cycle)"},
    {"LED4: unfinished work below the cursor of a stream",
     "SELECT s.id FROM stream s JOIN cycle c ON c.stream = s.id AND c.ordinal < s.ordinal"
     " WHERE c.outstanding > 0 OR c.failed > 0"},
    {"LED4: the ordinals of a stream",
     "SELECT id FROM stream s WHERE ordinal > ordinal_next OR ordinal_next <>"
     " (SELECT count(*) FROM cycle c WHERE c.stream = s.id)"},
    {"LED4: the cursor is not the end of the cycle before it",
     "SELECT s.id FROM stream s JOIN cycle c ON c.stream = s.id AND c.ordinal = s.ordinal - 1"
     " WHERE s.cursor IS NOT c.\"end\""},
    {"LED5: two waiting jobs with one key",
     "SELECT min(id) FROM job WHERE state = 0 AND dedupe IS NOT NULL"
     " GROUP BY account, kind, dedupe HAVING count(*) > 1"},
    {"LED5: two waiting or running jobs with one key",
     "SELECT min(id) FROM job WHERE state <= 1 AND scope = 1 AND dedupe IS NOT NULL"
     " GROUP BY account, kind, dedupe HAVING count(*) > 1"},
};

static tide_status check_rule(struct tide_sqlite *self, const struct rule *rule, tide_buf *problems,
                              tide_error *err)
{
    enum { SHOWN_MAX = 5 };
    tide_auto_prepared *stmt = NULL;
    int code = sqlite3_prepare_v2(self->db.handle, rule->sql, -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(&self->db, code, "prepare a check", err);
    for (int shown = 0; (code = sqlite3_step(stmt)) == SQLITE_ROW && shown < SHOWN_MAX; shown++)
        (void)tide_buf_print(problems, "%s: %" PRIu64 "\n", rule->name, tide_column_u64(stmt, 0));
    return code == SQLITE_ROW || code == SQLITE_DONE
               ? TIDE_OK
               : tide_db_failed(&self->db, code, "check", err);
}

tide_status tide_sql_check(tide_ledger *ledger, tide_buf *problems, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    const size_t before = problems->bytes;
    TIDE_TRY(tide_db_quick_check(&self->db, problems, err));
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        TIDE_TRY(check_rule(self, &rules[i], problems, err));
    if (problems->bytes > before)
        return tide_error_set(err, TIDE_CORRUPT, "%s: %.200s", self->db.path,
                              tide_buf_cstr(problems) + before);
    return TIDE_OK;
}

static const struct tide_ledger_ops sqlite_ops = {
    .close = close_ledger,
    .tx_begin = begin,
    .tx_commit = commit,
    .tx_rollback = rollback,
    .tx_over = tx_over,
    .savepoint = savepoint,
    .savepoint_end = savepoint_end,
    .rows = rows_of,
    .rows_end = rows_end,
    .names_change = names_change,
    .jobs_text = tide_sql_jobs_text,
    .jobs_count_text = tide_sql_jobs_count_text,
    .counts_text = tide_sql_counts_text,
    .counts_left_text = tide_sql_counts_left_text,
    .work_left_text = tide_sql_work_left_text,
    .metadata_text = LEDGER_METADATA("length(CAST(", " AS BLOB))"),
#define OP_SHARED(ledger, name, params, args)
#define OP(ledger, name, params, args) .name = tide_sql_##name,
#include "ledger/operations.h"
};
