/* scenarios_more.c - streams, bad items, schedules, commands, purge, quota, backups,
 * settings. */
#include "scenario.h"
#include "kill_points.h"

#include "engine/engine.h"
#include "ledger/ledger.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- streams: cycles that finish in any order, one cursor --------------------------- */

enum { CYCLES = 10, CYCLE_JOBS = 4 };

static tide_status cycle_handler(tide_job *job, void *context, tide_error *err)
{
    struct stage *stage = context;
    char key[KEY_BYTES];
    key_of(job, "key", key);
    /* Early cycles take longer than late ones. */
    uint64_t wait_ms = (uint64_t)(strstr(key, "c0") != NULL ? 6 : strstr(key, "c1") ? 3 : 0);
    if (wait_ms > 0 && tide_job_sleep(job, wait_ms) != TIDE_OK)
        return TIDE_CANCELED;
    (void)stage;
    return effect_handler(job, context, err);
}

/* The end of a cycle is its name; its jobs come with it. */
static tide_status cycle_plan_one(tide_transaction *transaction, struct stage *stage, int number,
                                  tide_error *err)
{
    char start[KEY_BYTES], end[KEY_BYTES], prefix[KEY_BYTES];
    uint64_t cycle = 0;
    (void)snprintf(start, sizeof start, "s%d", number);
    (void)snprintf(end, sizeof end, "s%d", number + 1);
    tide_status rc = tide_transaction_cycle(transaction, stage->stream, start, end, &cycle, err);
    if (rc != TIDE_OK)
        return rc;
    (void)snprintf(prefix, sizeof prefix, "c%d", number);
    const struct tide_spec spec = {.kind = stage->kind, .cycle = cycle};
    return numbered(transaction, &spec, prefix, CYCLE_JOBS, err);
}

/* plan_once() knows no argument but the stage; the cycle's number travels here. */
static int cycle_now;

static tide_status cycle_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    return cycle_plan_one(transaction, stage, cycle_now, err);
}

void run_streams(struct stage *stage)
{
    kind_define(stage, "cycle", cycle_handler, &stage->kind);
    must(stage, tide_stream_open(stage->engine, 0, "inbox", "floor", &stage->stream, &stage->err),
         "stream");
    engine_start(stage);
    for (cycle_now = 0; cycle_now < CYCLES; cycle_now++) {
        char mark[KEY_BYTES];
        (void)snprintf(mark, sizeof mark, "cycle-%d", cycle_now);
        plan_once(stage, mark, cycle_plan);
    }
    engine_wait(stage);
    struct tide_stream_state state;
    must(stage, tide_stream_state(stage->engine, stage->stream, &state, &stage->err), "state");
    if (state.cycles_finished != CYCLES || state.cycles_opened != CYCLES)
        wrong("quiet, and %" PRIu64 " of %" PRIu64 " cycles are finished", state.cycles_finished,
              state.cycles_opened);
}

void verify_streams(struct stage *stage)
{
    expect_effects(stage, CYCLES * CYCLE_JOBS);
    expect(stage->db, "SELECT count(*) FROM stream", 1);
    expect(stage->db, "SELECT ordinal FROM stream", CYCLES);
    expect(stage->db, "SELECT cursor = 's10' FROM stream", 1);
    expect(stage->db, "SELECT count(*) FROM cycle WHERE outstanding + failed > 0", 0);
}

/* ---- split: batches with bad items in them (E6) ----------------------------------------- */

enum { BATCHES = 4, BATCH_ITEMS = 16 };

static bool item_is_bad(const char *item)
{
    return strcmp(item, "i1-3") == 0 || strcmp(item, "i2-0") == 0 || strcmp(item, "i2-15") == 0;
}

/* A batch with a bad item fails as a whole, and names no item. */
static tide_status batch_handler(tide_job *job, void *context, tide_error *err)
{
    struct stage *stage = context;
    (void)__atomic_add_fetch(&stage->witness->handler_runs, 1, __ATOMIC_RELAXED);
    size_t count = tide_job_items(job);
    for (size_t i = 0; i < count; i++)
        if (item_is_bad(tide_job_item(job, i).data))
            return tide_error_set(err, TIDE_SERVER, "something in here is bad");
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        rc = effect_leave(job, tide_job_item(job, i).data, err);
        tide_job_item_done(job, i);
    }
    return rc;
}

static tide_status split_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    uint64_t cycle = 0;
    tide_status rc = tide_transaction_cycle(transaction, stage->stream, "a", "b", &cycle, err);
    for (int b = 0; rc == TIDE_OK && b < BATCHES; b++) {
        char payload[BATCH_ITEMS * 16 + 32];
        size_t used = (size_t)snprintf(payload, sizeof payload, "{\"items\":[");
        for (int i = 0; i < BATCH_ITEMS; i++)
            used += (size_t)snprintf(payload + used, sizeof payload - used, "%s\"i%d-%d\"",
                                     i == 0 ? "" : ",", b, i);
        (void)snprintf(payload + used, sizeof payload - used, "]}");
        struct tide_spec spec = {.kind = stage->items_kind, .cycle = cycle, .payload = payload};
        rc = tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
    }
    return rc;
}

void run_split(struct stage *stage)
{
    kind_define_as(stage,
                   (struct tide_kind){
                       .name = "batch", .handler = batch_handler, .items = true, .attempts_max = 2},
                   &stage->items_kind);
    must(stage, tide_stream_open(stage->engine, 0, "items", "", &stage->stream, &stage->err),
         "stream");
    engine_start(stage);
    plan_once(stage, "split", split_plan);
    engine_wait(stage);
}

void verify_split(struct stage *stage)
{
    enum { PLANTED = 3 };
    expect_effects(stage, BATCHES * BATCH_ITEMS - PLANTED);
    expect(stage->db, "SELECT count(*) FROM bad WHERE item IN ('i1-3', 'i2-0', 'i2-15')", PLANTED);
    expect(stage->db, "SELECT count(*) FROM bad", PLANTED);
    expect(stage->db, "SELECT count(*) FROM job WHERE state <> 2", 0);
    expect(stage->db, "SELECT ordinal FROM stream", 1);
    expect(stage->db, "SELECT cursor = 'b' FROM stream", 1);
}

/* ---- schedule: once per tick across kills (E8.1) ------------------------------------------ */

enum { TICKS = 5, PERIOD_MS = 40 };

static int64_t effects_now(struct stage *stage)
{
    sqlite3 *db = database_open(stage->dir, "state.db", true);
    int64_t count = number_of(db, "SELECT count(*) FROM effect");
    (void)sqlite3_close(db);
    return count;
}

static tide_status tick_handler(tide_job *job, void *context, tide_error *err)
{
    struct stage *stage = context;
    char key[KEY_BYTES];
    (void)__atomic_add_fetch(&stage->witness->handler_runs, 1, __ATOMIC_RELAXED);
    (void)snprintf(key, sizeof key, "tick-%" PRIu64, tide_job_id(job));
    return effect_leave(job, key, err);
}

void run_schedule(struct stage *stage)
{
    kind_define(stage, "tick", tick_handler, &stage->kind);
    struct tide_schedule schedule = {
        .name = "tick", .kind = stage->kind, .period_ms = PERIOD_MS, .at_start = true};
    must(stage, tide_engine_schedule(stage->engine, &schedule, &stage->err), "schedule");
    engine_start(stage);
    while (effects_now(stage) < TICKS)
        (void)tide_world_sleep_until(stage->world, tide_world_now_us(stage->world) + 5000, NULL);
    /* Not engine_wait(): on a slow machine the next tick is due before the last one has ended. */
}

void verify_schedule(struct stage *stage)
{
    expect(stage->db, "SELECT count(*) >= 5 FROM effect", 1);
    expect(stage->db,
           "SELECT (SELECT count(*) FROM effect) = (SELECT count(*) FROM job WHERE"
           " kind = (SELECT id FROM kind WHERE name = 'tick') AND state = 2)",
           1);
    /* No more jobs than ticks: the one at the start, and one for each period since. */
    expect(stage->db,
           "SELECT (SELECT count(*) FROM job WHERE kind = s.kind) <="
           " 2 + (s.slot_last - s.anchor) / s.period FROM schedule s WHERE name = 'tick'",
           1);
}

/* ---- commands: pause, cancel, resume, retry ---------------------------------------------------- */

enum { OURS = 10, CANCELED = 5, REVIVED = 2 };

static tide_status commands_plan(tide_transaction *transaction, struct stage *stage,
                                 tide_error *err)
{
    const struct tide_spec a = {.kind = stage->kind}, b = {.kind = stage->other_kind};
    const tide_status rc = numbered(transaction, &a, "a", OURS, err);
    return rc == TIDE_OK ? numbered(transaction, &b, "b", OURS, err) : rc;
}

static void pause_kind(struct stage *stage, const char *kind, bool paused)
{
    must(stage, tide_engine_pause(stage->engine, kind, /* account= */ NULL, paused, &stage->err),
         paused ? "pause" : "resume");
}

static uint64_t job_of(struct stage *stage, const char *key)
{
    sqlite3 *db = database_open(stage->dir, "state.db", true);
    char *sql = sqlite3_mprintf("SELECT id FROM job WHERE payload ->> 'key' = %Q", key);
    uint64_t id = (uint64_t)number_of(db, sql);
    sqlite3_free(sql);
    (void)sqlite3_close(db);
    return id;
}

/* Each step is harmless when it is repeated before its mark: nothing it touches can
 * run meanwhile. */
void run_commands(struct stage *stage)
{
    kind_define(stage, "a", effect_handler, &stage->kind);
    kind_define(stage, "b", effect_handler, &stage->other_kind);
    engine_start(stage);
    if (!mark_is_set(stage, "paused")) {
        pause_kind(stage, "a", true);
        pause_kind(stage, "b", true);
    }
    mark_set(stage, "paused");
    plan_once(stage, "jobs", commands_plan);
    for (int i = 0; i < CANCELED && !mark_is_set(stage, "canceled"); i++) {
        char key[KEY_BYTES];
        (void)snprintf(key, sizeof key, "a-%d", i);
        must(stage, tide_cancel_job(stage->engine, job_of(stage, key), &stage->err), "cancel");
    }
    mark_set(stage, "canceled");
    if (!mark_is_set(stage, "resumed"))
        pause_kind(stage, "a", false);
    mark_set(stage, "resumed");
    engine_wait(stage);
    for (int i = 0; i < REVIVED && !mark_is_set(stage, "revived"); i++) {
        char key[KEY_BYTES];
        (void)snprintf(key, sizeof key, "a-%d", i);
        must(stage, tide_retry_job(stage->engine, job_of(stage, key), &stage->err), "retry");
    }
    mark_set(stage, "revived");
    pause_kind(stage, "b", false);
    engine_wait(stage);
}

void verify_commands(struct stage *stage)
{
    expect_effects(stage, 2 * OURS - CANCELED + REVIVED);
    expect(stage->db, "SELECT count(*) FROM job WHERE state = 4", CANCELED - REVIVED);
    expect(stage->db, "SELECT count(*) FROM job WHERE state = 2", 2 * OURS - CANCELED + REVIVED);
    expect(stage->db, "SELECT count(*) FROM kind WHERE paused <> 0", 0);
}

/* ---- purge: finished rows go, what is still needed stays ------------------------------------------ */

enum { OLD = 40, KEPT = 6 };

static tide_status purge_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    uint64_t cycle = 0;
    tide_status rc = tide_transaction_cycle(transaction, stage->stream, "a", "b", &cycle, err);
    for (int i = 0; rc == TIDE_OK && i < OLD + KEPT; i++) {
        char payload[KEY_BYTES];
        (void)snprintf(payload, sizeof payload, "{\"key\":\"p-%d\"}", i);
        /* The last ones belong to a cycle that one hopeless job keeps open. */
        struct tide_spec spec = {.kind = i == OLD + KEPT - 1 ? stage->other_kind : stage->kind,
                                 .cycle = i >= OLD ? cycle : 0,
                                 .payload = payload};
        rc = tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
    }
    return rc;
}

void run_purge(struct stage *stage)
{
    uint64_t count = 0;
    kind_define(stage, "old", effect_handler, &stage->kind);
    kind_define(stage, "gap", hopeless_handler, &stage->other_kind);
    must(stage, tide_stream_open(stage->engine, 0, "gap", "", &stage->stream, &stage->err),
         "stream");
    engine_start(stage);
    plan_once(stage, "purge", purge_plan);
    engine_wait(stage);
    /* Rows of this very millisecond are not older than now. */
    (void)tide_world_sleep_until(stage->world, tide_world_now_us(stage->world) + 3000, NULL);
    must(stage, tide_engine_purge(stage->engine, 0, NULL, &count, &stage->err), "purge");
}

void verify_purge(struct stage *stage)
{
    expect(stage->db, "SELECT count(*) FROM effect", OLD + KEPT - 1);
    expect(stage->db, "SELECT count(*) FROM job", KEPT);
    expect(stage->db, "SELECT count(*) FROM job WHERE cycle IS NOT NULL", KEPT);
    expect(stage->db, "SELECT count(*) FROM job WHERE state = 3", 1);
    expect(stage->db, "SELECT ordinal FROM stream", 0);
}

/* ---- governor: a crash loop crosses no window (E4.3b) ----------------------------------------------- */

enum { CALLS = 30, CALL_UNITS = 20, WINDOW_UNITS = 600, WINDOW_US = 1000000 };

struct witness *provider_witness;

/* The provider: answers at once and remembers when it was asked. */
tide_status provider_call(tide_world *world, const struct tide_request *request,
                          struct tide_response *response, const tide_cancel *cancel,
                          tide_error *err)
{
    (void)request;
    (void)cancel;
    (void)err;
    uint64_t at = __atomic_fetch_add(&provider_witness->calls_count, 1, __ATOMIC_SEQ_CST);
    if (at < CALLS_LOGGED_MAX)
        provider_witness->calls_us[at] = tide_world_now_us(world);
    response->http = 200;
    response->latency_ms = 0;
    return TIDE_OK;
}

static tide_status call_handler(tide_job *job, void *context, tide_error *err)
{
    struct tide_request request = {.method = "GET", .url = "http://provider.invalid/"};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    tide_status rc = tide_job_call(job, CALL_UNITS, 0, NULL, &request, &response, err);
    tide_response_done(&response);
    return rc == TIDE_OK ? effect_handler(job, context, err) : rc;
}

static tide_status governor_plan(tide_transaction *transaction, struct stage *stage,
                                 tide_error *err)
{
    const struct tide_spec spec = {.kind = stage->kind, .account = stage->account};
    return numbered(transaction, &spec, "call", CALLS, err);
}

void run_governor(struct stage *stage)
{
    kind_define(stage, "call", call_handler, &stage->kind);
    must(
        stage,
        tide_engine_account(stage->engine, "me@example.com", "gmail", &stage->account, &stage->err),
        "account");
    plan_once(stage, "governor", governor_plan);
    engine_start(stage);
    engine_wait(stage);
}

static int by_time(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

void verify_governor(struct stage *stage)
{
    struct witness *seen = stage->witness;
    expect_effects(stage, CALLS);
    size_t count = seen->calls_count < CALLS_LOGGED_MAX ? seen->calls_count : CALLS_LOGGED_MAX;
    qsort(seen->calls_us, count, sizeof seen->calls_us[0], by_time);
    size_t from = 0;
    for (size_t i = 0; i < count; i++) {
        while (seen->calls_us[i] - seen->calls_us[from] >= WINDOW_US)
            from++;
        if ((i - from + 1) * CALL_UNITS > WINDOW_UNITS)
            wrong("%zu units within one window of %d", (i - from + 1) * CALL_UNITS, WINDOW_UNITS);
    }
}

/* ---- backup: copies of a ledger that works ------------------------------------------------------------- */

enum { BACKED = 60, BACKUPS = 4 };

static tide_status backup_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    return numbered(transaction, &(struct tide_spec){.kind = stage->kind}, "k", BACKED, err);
}

/* As the command does it: a read-only ledger of its own, while the engine runs.  A copy
 * that was cut off keeps its name; the next one takes another. */
static void backup_once(struct stage *stage)
{
    char path[PATH_BYTES], name[KEY_BYTES];
    uint64_t random = tide_world_random_u64(stage->world);
    path_of(stage, "state.db", path);
    struct tide_ledger_options options = {.path = path, .read_only = true};
    tide_ledger *ledger = NULL;
    must(stage, tide_ledger_open(stage->world, &options, &ledger, &stage->err), "open");
    (void)snprintf(name, sizeof name, "backup-%016" PRIx64 ".db", random);
    path_of(stage, name, path);
    must(stage, tide_ledger_backup(ledger, path, &stage->err), "backup");
    tide_ledger_close(ledger, true);
}

void run_backup(struct stage *stage)
{
    kind_define(stage, "work", effect_handler, &stage->kind);
    plan_once(stage, "backup", backup_plan);
    engine_start(stage);
    for (int i = 0; i < BACKUPS; i++)
        backup_once(stage);
    engine_wait(stage);
}

/* A copy is whole, with every job of the plan in it, or it is plainly no ledger. */
static int64_t backup_check(struct stage *stage, const char *name)
{
    char path[PATH_BYTES];
    path_of(stage, name, path);
    struct tide_ledger_options options = {.path = path, .read_only = true};
    tide_ledger *ledger = NULL;
    if (tide_ledger_open(stage->world, &options, &ledger, &stage->err) != TIDE_OK)
        return 0;
    tide_buf problems;
    tide_buf_init(&problems, tide_mem_heap(), 1 << 16);
    if (tide_ledger_check(ledger, &problems, &stage->err) != TIDE_OK || problems.bytes > 0)
        wrong("%s: %s", name, stage->err.text);
    tide_buf_done(&problems);
    tide_ledger_close(ledger, true);
    sqlite3 *db = database_open(stage->dir, name, true);
    expect(db, "SELECT count(*) FROM job", BACKED);
    expect(db,
           "SELECT count(*) FROM job j WHERE (j.state = 2) <> EXISTS (SELECT 1 FROM effect e"
           " WHERE e.job = j.id)",
           0);
    (void)sqlite3_close(db);
    return 1;
}

void verify_backup(struct stage *stage)
{
    expect_effects(stage, BACKED);
    int64_t whole = 0;
    DIR *dir = opendir(stage->dir);
    if (dir == NULL)
        wrong("cannot list %s", stage->dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        size_t bytes = strlen(entry->d_name);
        if (strncmp(entry->d_name, "backup-", 7) == 0 &&
            strcmp(entry->d_name + bytes - 3, ".db") == 0)
            whole += backup_check(stage, entry->d_name);
    }
    (void)closedir(dir);
    if (whole < BACKUPS)
        wrong("%" PRId64 " whole copies, expected %d", whole, BACKUPS);
}

/* ---- config: a file that is replaced while others read it ------------------------------------------------ */

enum { CHANGES = 8, REMARKS = 100 };

static const char config_end[] = "# the end\n";

/* Long enough to be torn; its last line tells a whole file from a part. */
static void config_make(struct stage *stage, const char *path)
{
    tide_buf yaml;
    tide_buf_init(&yaml, tide_mem_heap(), 1 << 16);
    (void)tide_buf_print(&yaml, "retry.attempts_max: 1\n");
    for (int i = 0; i < REMARKS; i++)
        (void)tide_buf_print(&yaml, "# remark %d: an edit keeps the whole file\n", i);
    (void)tide_buf_print(&yaml, "%s", config_end);
    must(stage, tide_file_replace(stage->world, path, tide_buf_text(&yaml), 0600, &stage->err),
         "config.yaml");
    tide_buf_done(&yaml);
}

void run_config(struct stage *stage)
{
    char path[PATH_BYTES], value[KEY_BYTES];
    kind_define(stage, "work", effect_handler, &stage->kind);
    plan_once(stage, "config", backup_plan);
    engine_start(stage);
    path_of(stage, "config.yaml", path);
    if (!mark_is_set(stage, "config made"))
        config_make(stage, path);
    mark_set(stage, "config made");
    for (int i = 1; i <= CHANGES; i++) {
        (void)snprintf(value, sizeof value, "%d", i);
        must(stage,
             tide_settings_edit_file(stage->world, path, TIDE_TEXT("retry.attempts_max"),
                                     tide_text_of(value), tide_mem_heap(), &stage->err),
             "config set");
    }
    engine_wait(stage);
}

/* Old or new, never a mixture, and never none once there was one. */
void midway_config(struct stage *stage)
{
    char path[PATH_BYTES];
    tide_buf yaml;
    tide_settings *settings = NULL;
    path_of(stage, "config.yaml", path);
    if (number_of(stage->db, "SELECT count(*) FROM mark WHERE name = 'config made'") == 0)
        return;
    tide_buf_init(&yaml, tide_mem_heap(), 1 << 16);
    must(stage, tide_file_read(stage->world, path, 1 << 16, &yaml, &stage->err), "read");
    must(stage, tide_settings_new(tide_mem_heap(), &settings), "settings");
    must(stage, tide_settings_add_yaml(settings, path, tide_buf_text(&yaml), &stage->err),
         "config.yaml");
    uint64_t value = tide_setting_u64(settings, TIDE_SET_RETRY_ATTEMPTS_MAX);
    size_t end_bytes = sizeof config_end - 1;
    if (value < 1 || value > CHANGES)
        wrong("retry.attempts_max is %" PRIu64, value);
    if (yaml.bytes < end_bytes || memcmp(yaml.data + yaml.bytes - end_bytes, config_end, end_bytes))
        wrong("config.yaml lost its end");
    tide_settings_free(settings);
    tide_buf_done(&yaml);
}

void verify_config(struct stage *stage)
{
    char path[PATH_BYTES];
    tide_buf yaml;
    expect_effects(stage, BACKED);
    path_of(stage, "config.yaml", path);
    tide_buf_init(&yaml, tide_mem_heap(), 1 << 16);
    must(stage, tide_file_read(stage->world, path, 1 << 16, &yaml, &stage->err), "read");
    if (strstr(tide_buf_cstr(&yaml), "retry.attempts_max: 8\n") == NULL)
        wrong("the last value is not in the file: %s", tide_buf_cstr(&yaml));
    tide_buf_done(&yaml);
    path_of(stage, ".config.yaml.new", path);
    struct stat info;
    if (stat(path, &info) == 0)
        wrong("a temporary file was left behind");
}
