/* stage.c - opening, closing and checking a directory around any scenario. */
#include "scenario.h"
#include "kill_points.h"

#include "base/json.h"
#include "ledger/ledger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *now_playing = "";

void wrong(const char *format, ...)
{
    char text[1200];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    (void)fprintf(stderr, "WRONG %s: %s\n", now_playing, text);
    _exit(1);
}

void must(struct stage *stage, tide_status rc, const char *what)
{
    if (rc != TIDE_OK)
        wrong("%s: %s: %s", what, tide_status_name(rc), stage->err.text);
}

int64_t number_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(stmt);
    if (code != SQLITE_ROW)
        wrong("%s: %s", sql, sqlite3_errmsg(db));
    int64_t number = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return number;
}

void expect(sqlite3 *db, const char *sql, int64_t expected)
{
    int64_t found = number_of(db, sql);
    if (found != expected)
        wrong("%s = %" PRId64 ", expected %" PRId64, sql, found, expected);
}

void path_of(const struct stage *stage, const char *name, char path_out[PATH_BYTES])
{
    if ((size_t)snprintf(path_out, PATH_BYTES, "%s/%s", stage->dir, name) >= PATH_BYTES)
        wrong("path too long: %s", stage->dir);
}

sqlite3 *database_open(const char *dir, const char *name, bool plain)
{
    char path[PATH_BYTES];
    sqlite3 *db = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    int flags = SQLITE_OPEN_READWRITE | (plain ? 0 : SQLITE_OPEN_CREATE);
    if (sqlite3_open_v2(path, &db, flags, plain ? NULL : kill_vfs()) != SQLITE_OK)
        wrong("open %s: %s", path, sqlite3_errmsg(db));
    (void)sqlite3_busy_timeout(db, 2000);
    return db;
}

/* ---- the world, with doors that count ------------------------------------------- */

static const char *counting_vfs(tide_world *world)
{
    (void)world;
    return kill_vfs();
}

static void stage_init(struct stage *stage, const struct scenario *scenario, const char *dir,
                       struct witness *witness)
{
    static struct tide_world_ops ops;
    memset(stage, 0, sizeof *stage);
    now_playing = scenario->name;
    stage->scenario = scenario;
    stage->witness = witness;
    provider_witness = witness;
    (void)snprintf(stage->dir, sizeof stage->dir, "%s", dir);
    must(stage, tide_world_real_new(tide_mem_heap(), &stage->world, &stage->err), "world");
    ops = *stage->world->ops;
    ops.vfs = counting_vfs;
    ops.call = provider_call;
    stage->world->ops = &ops;
    must(stage, tide_settings_new(tide_mem_heap(), &stage->settings), "settings");
    for (const char *const *flag = scenario->settings; flag != NULL && *flag != NULL; flag++)
        must(stage, tide_settings_add_flag(stage->settings, *flag, &stage->err), *flag);
    must(stage, tide_settings_check(stage->settings, &stage->err), "settings");
}

static void stage_done(struct stage *stage)
{
    tide_settings_free(stage->settings);
    tide_world_real_free(stage->world);
}

static const char own_tables[] =
    "CREATE TABLE IF NOT EXISTS effect (seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT, job INT,"
    " attempt INT);"
    "CREATE TABLE IF NOT EXISTS mark (name TEXT PRIMARY KEY)";

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    sqlite3 *db = tide_transaction_sqlite(transaction);
    return sqlite3_exec(db, own_tables, NULL, NULL, NULL) == SQLITE_OK
               ? TIDE_OK
               : tide_error_set(err, TIDE_INVALID, "own tables: %s", sqlite3_errmsg(db));
}

/* A scenario without a function of its own. */
static void run_planned(struct stage *stage)
{
    const struct scenario *scenario = stage->scenario;
    kind_define(stage, scenario->name, scenario->handler, &stage->kind);
    plan_once(stage, scenario->name, scenario->plan);
    engine_start(stage);
    engine_wait(stage);
}

void scenario_run(const struct scenario *scenario, const char *dir, struct witness *witness)
{
    struct stage stage;
    stage_init(&stage, scenario, dir, witness);
    struct tide_engine_options options = {
        .state_dir = dir, .world = stage.world, .settings = stage.settings, .workers = 4};
    uint64_t begun_us = tide_world_now_us(stage.world);
    must(&stage, tide_engine_open(&options, &stage.engine, &stage.err), "open");
    must(&stage, tide_transact(stage.engine, make_tables, NULL, &stage.err), "tables");
    witness->opened_us = begun_us;
    (scenario->run != NULL ? scenario->run : run_planned)(&stage);
    must(&stage, tide_engine_close(stage.engine), "close");
    if (stage.shard != NULL && sqlite3_close(stage.shard) != SQLITE_OK)
        wrong("close the shard");
    witness->ops = kill_count();
    stage_done(&stage);
}

/* ---- checks ---------------------------------------------------------------------- */

static bool journal_exists(const char *path)
{
    char journal[PATH_BYTES + 16];
    struct stat info;
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    return stat(journal, &info) == 0;
}

/* The invariants G1..G7 of the file as it lies there.  False: there is no ledger
 * yet, because the kill came before its first transaction. */
static bool ledger_is_good(struct stage *stage, const char *name)
{
    char path[PATH_BYTES];
    path_of(stage, name, path);
    struct tide_ledger_options options = {.path = path, .read_only = true};
    tide_ledger *ledger = NULL;
    tide_status rc = tide_ledger_open(stage->world, &options, &ledger, &stage->err);
    if (rc == TIDE_NOT_FOUND || rc == TIDE_INVALID)
        return false;
    /* Killed while the file was being made, before it has a log: only a writer can
     * undo what the rollback journal holds, and there is nothing in it yet. */
    if (rc == TIDE_IO && journal_exists(path))
        return false;
    must(stage, rc, "open the ledger to check it");
    tide_buf problems;
    tide_buf_init(&problems, tide_mem_heap(), 1 << 20);
    rc = tide_ledger_check(ledger, &problems, &stage->err);
    if (rc != TIDE_OK || problems.bytes > 0)
        wrong("ledger check of %s: %s %s", name, stage->err.text, tide_buf_cstr(&problems));
    tide_buf_done(&problems);
    tide_ledger_close(ledger, true);
    return true;
}

static const char doubled[] =
    "SELECT count(*) FROM (SELECT 1 FROM effect GROUP BY key HAVING count(*) > 1)";
static const char of_unfinished[] =
    "SELECT count(*) FROM effect e JOIN job j ON j.id = e.job WHERE j.state <> 2";

void scenario_midway(const struct scenario *scenario, const char *dir, struct witness *witness)
{
    struct stage stage;
    stage_init(&stage, scenario, dir, witness);
    if (ledger_is_good(&stage, "state.db")) {
        stage.db = database_open(dir, "state.db", true);
        if (number_of(stage.db, "SELECT count(*) FROM sqlite_master WHERE name = 'effect'") == 1) {
            expect(stage.db, doubled, 0);
            if (scenario->midway != NULL)
                scenario->midway(&stage);
        }
        (void)sqlite3_close(stage.db);
    }
    stage_done(&stage);
}

void scenario_verify(const struct scenario *scenario, const char *dir, struct witness *witness)
{
    struct stage stage;
    stage_init(&stage, scenario, dir, witness);
    if (!ledger_is_good(&stage, "state.db"))
        wrong("there is no ledger at the end");
    stage.db = database_open(dir, "state.db", true);
    expect(stage.db, "SELECT count(*) FROM claim", 0);
    expect(stage.db, "SELECT count(*) FROM job WHERE state = 1", 0);
    expect(stage.db, "SELECT count(*) FROM note WHERE key = 'running'", 0);
    expect(stage.db, doubled, 0);
    scenario->verify(&stage);
    if (scenario->midway != NULL)
        scenario->midway(&stage);
    (void)sqlite3_close(stage.db);
    stage_done(&stage);
}

void expect_effects(struct stage *stage, int64_t count)
{
    expect(stage->db, "SELECT count(*) FROM effect", count);
    expect(stage->db, "SELECT count(DISTINCT key) FROM effect", count);
    expect(stage->db, of_unfinished, 0);
}

/* ---- handlers ----------------------------------------------------------------------- */

void key_of(tide_job *job, const char *field, char key_out[KEY_BYTES])
{
    tide_text payload = tide_job_payload(job);
    tide_text text = TIDE_TEXT_NONE;
    json_error_t error;
    json_t *json = json_loadb(payload.data, payload.bytes, 0, &error);
    if (json == NULL || tide_json_get_text(json, field, &text, NULL) != TIDE_OK ||
        text.bytes >= KEY_BYTES)
        wrong("payload %.*s has no %s", (int)payload.bytes, payload.data, field);
    (void)snprintf(key_out, KEY_BYTES, "%.*s", (int)text.bytes, text.data);
    json_decref(json);
}

struct effect {
    char key[KEY_BYTES];
    uint64_t job;
    int attempt;
};

static tide_status effect_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct effect *effect = arg;
    sqlite3 *db = tide_transaction_sqlite(transaction);
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, "INSERT INTO effect (key, job, attempt) VALUES (?1, ?2, ?3)",
                                  -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        (void)sqlite3_bind_text(stmt, 1, effect->key, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(stmt, 2, (sqlite3_int64)effect->job);
        (void)sqlite3_bind_int(stmt, 3, effect->attempt);
        code = sqlite3_step(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return code == SQLITE_DONE ? TIDE_OK
                               : tide_error_set(err, TIDE_IO, "effect: %s", sqlite3_errmsg(db));
}

/* The argument lives until the process ends: a transaction that fails is tried
 * again with the same one, so its last use is not known here. */
tide_status effect_leave(tide_job *job, const char *key, tide_error *err)
{
    struct effect *effect = calloc(1, sizeof *effect);
    if (effect == NULL)
        return TIDE_NO_MEMORY;
    (void)snprintf(effect->key, sizeof effect->key, "%s", key);
    effect->job = tide_job_id(job);
    effect->attempt = tide_job_attempt(job);
    return tide_job_effect(job, effect_write, effect, err);
}

tide_status effect_handler(tide_job *job, void *context, tide_error *err)
{
    struct stage *stage = context;
    char key[KEY_BYTES];
    (void)__atomic_add_fetch(&stage->witness->handler_runs, 1, __ATOMIC_RELAXED);
    key_of(job, "key", key);
    return effect_leave(job, key, err);
}

void kind_define_as(struct stage *stage, struct tide_kind kind, uint32_t *kind_out)
{
    kind.context = stage;
    if (kind.attempts_max == 0)
        kind.attempts_max = 60000; /* every kill costs one (E7.2), and we kill a lot */
    must(stage, tide_engine_kind(stage->engine, &kind, kind_out, &stage->err), kind.name);
}

void kind_define(struct stage *stage, const char *name, tide_handler *handler, uint32_t *kind_out)
{
    kind_define_as(stage, (struct tide_kind){.name = name, .handler = handler}, kind_out);
}

/* ---- planning -------------------------------------------------------------------------- */

struct planning {
    struct stage *stage;
    const char *mark;
    plan_fn *plan; /* NULL: only look */
    bool known;
};

static tide_status planning_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct planning *planning = arg;
    sqlite3 *db = tide_transaction_sqlite(transaction);
    char *sql = sqlite3_mprintf("SELECT count(*) FROM mark WHERE name = %Q", planning->mark);
    planning->known = number_of(db, sql) > 0;
    sqlite3_free(sql);
    if (planning->known || planning->plan == NULL)
        return TIDE_OK;
    sql = sqlite3_mprintf("INSERT INTO mark VALUES (%Q)", planning->mark);
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    if (code != SQLITE_OK)
        return tide_error_set(err, TIDE_IO, "mark: %s", sqlite3_errmsg(db));
    return planning->plan(transaction, planning->stage, err);
}

void plan_once(struct stage *stage, const char *mark, plan_fn *plan)
{
    struct planning planning = {stage, mark, plan, false};
    must(stage, tide_transact(stage->engine, planning_run, &planning, &stage->err), mark);
}

static tide_status nothing(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    (void)transaction;
    (void)stage;
    (void)err;
    return TIDE_OK;
}

void mark_set(struct stage *stage, const char *mark)
{
    plan_once(stage, mark, nothing);
}

tide_status numbered(tide_transaction *transaction, const struct tide_spec *spec,
                     const char *prefix, int count, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (int i = 0; rc == TIDE_OK && i < count; i++) {
        char payload[KEY_BYTES * 2];
        struct tide_spec one = *spec;
        (void)snprintf(payload, sizeof payload, "{\"key\":\"%s-%d\"}", prefix, i);
        one.payload = payload;
        rc = tide_transaction_enqueue(transaction, &one, 1, NULL, err);
    }
    return rc;
}

tide_status hopeless_handler(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)context;
    return tide_error_set(err, TIDE_PERMANENT, "never");
}

bool mark_is_set(struct stage *stage, const char *mark)
{
    struct planning planning = {stage, mark, NULL, false};
    must(stage, tide_transact(stage->engine, planning_run, &planning, &stage->err), mark);
    return planning.known;
}

void engine_start(struct stage *stage)
{
    must(stage, tide_engine_start(stage->engine, &stage->err), "start");
    stage->witness->opened_us = tide_world_now_us(stage->world) - stage->witness->opened_us;
}

void engine_wait(struct stage *stage)
{
    must(stage, tide_engine_wait(stage->engine, 60000, &stage->err), "wait");
}
