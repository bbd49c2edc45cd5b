/* scenarios.c - jobs, dependencies, children, effects, intents, retries. */
#include "scenario.h"

#include "base/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- plain: jobs with dedupe keys ------------------------------------------------ */

enum { PLAIN = 60 };

static tide_status plain_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    char keys[PLAIN][KEY_BYTES];
    char payloads[PLAIN][KEY_BYTES];
    struct tide_spec specs[PLAIN] = {{0}};
    uint64_t first[PLAIN], second[PLAIN];
    for (int i = 0; i < PLAIN; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "plain-%d", i);
        (void)snprintf(payloads[i], sizeof payloads[i], "{\"key\":\"%.40s\"}", keys[i]);
        specs[i] = (struct tide_spec){.kind = stage->kind,
                                      .dedupe = keys[i],
                                      .payload = payloads[i],
                                      .priority = (int16_t)(1 + i % 100)};
    }
    tide_status rc = tide_transaction_enqueue(transaction, specs, PLAIN, first, err);
    /* The same once more: each is the waiting one. */
    if (rc == TIDE_OK)
        rc = tide_transaction_enqueue(transaction, specs, PLAIN, second, err);
    if (rc == TIDE_OK && memcmp(first, second, sizeof first) != 0)
        wrong("a duplicate became a job of its own");
    return rc;
}

static void plain_verify(struct stage *stage)
{
    expect_effects(stage, PLAIN);
    expect(stage->db, "SELECT count(*) FROM job WHERE state = 2", PLAIN);
    expect(stage->db, "SELECT count(*) FROM job", PLAIN);
}

/* ---- deps: chains and diamonds, given out of order ---------------------------------- */

enum { CHAINS = 5, LINKS = 6, DIAMONDS = 5, CORNERS = 4 };
enum { DEPS = CHAINS * LINKS + DIAMONDS * CORNERS };

/* Where job (group, part) stands in the call: last ones first. */
static uint32_t chain_at(int chain, int link)
{
    return (uint32_t)(DEPS - 1 - (chain * LINKS + link));
}

static uint32_t corner_at(int diamond, int corner)
{
    return (uint32_t)(DIAMONDS * CORNERS - 1 - (diamond * CORNERS + corner));
}

static tide_status deps_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    char payloads[DEPS][KEY_BYTES];
    uint32_t needs[DEPS][2];
    struct tide_spec specs[DEPS] = {{0}};
    for (int c = 0; c < CHAINS; c++)
        for (int l = 0; l < LINKS; l++) {
            uint32_t at = chain_at(c, l);
            (void)snprintf(payloads[at], KEY_BYTES, "{\"key\":\"chain-%d-%d\"}", c, l);
            needs[at][0] = l > 0 ? chain_at(c, l - 1) : 0;
            specs[at].needs_index_count = l > 0;
        }
    for (int d = 0; d < DIAMONDS; d++)
        for (int k = 0; k < CORNERS; k++) {
            uint32_t at = corner_at(d, k);
            (void)snprintf(payloads[at], KEY_BYTES, "{\"key\":\"diamond-%d-%d\"}", d, k);
            needs[at][0] = k == 3 ? corner_at(d, 1) : corner_at(d, 0);
            needs[at][1] = corner_at(d, 2);
            specs[at].needs_index_count = k == 0 ? 0 : k == 3 ? 2 : 1;
        }
    for (int i = 0; i < DEPS; i++) {
        specs[i].kind = stage->kind;
        specs[i].payload = payloads[i];
        specs[i].needs_index = needs[i];
    }
    return tide_transaction_enqueue(transaction, specs, DEPS, NULL, err);
}

static void comes_before(struct stage *stage, const char *first, const char *second)
{
    char *sql = sqlite3_mprintf("SELECT (SELECT seq FROM effect WHERE key = %Q) <"
                                " (SELECT seq FROM effect WHERE key = %Q)",
                                first, second);
    expect(stage->db, sql, 1);
    sqlite3_free(sql);
}

static void deps_order(struct stage *stage, const char *group, int g, int from, int to)
{
    char first[KEY_BYTES], second[KEY_BYTES];
    (void)snprintf(first, sizeof first, "%s-%d-%d", group, g, from);
    (void)snprintf(second, sizeof second, "%s-%d-%d", group, g, to);
    comes_before(stage, first, second);
}

static void deps_verify(struct stage *stage)
{
    expect_effects(stage, DEPS);
    expect(stage->db, "SELECT count(*) FROM dep", 0);
    for (int c = 0; c < CHAINS; c++)
        for (int l = 1; l < LINKS; l++)
            deps_order(stage, "chain", c, l - 1, l);
    for (int d = 0; d < DIAMONDS; d++) {
        deps_order(stage, "diamond", d, 0, 1);
        deps_order(stage, "diamond", d, 0, 2);
        deps_order(stage, "diamond", d, 1, 3);
        deps_order(stage, "diamond", d, 2, 3);
    }
}

/* ---- children: each job makes the next generation ------------------------------------- */

enum { ROOTS = 4, PER_ROOT = 3, PER_CHILD = 3 };
enum { FAMILY = ROOTS * (1 + PER_ROOT * (1 + PER_CHILD)) };

static tide_status child_handler(tide_job *job, void *context, tide_error *err)
{
    struct stage *stage = context;
    char key[KEY_BYTES], payload[KEY_BYTES * 2];
    tide_status rc = effect_handler(job, context, err);
    key_of(job, "key", key);
    size_t depth = strlen(key); /* "r2", "r2.1", "r2.1.0" */
    int children = depth < 4 ? PER_ROOT : depth < 6 ? PER_CHILD : 0;
    for (int i = 0; rc == TIDE_OK && i < children; i++) {
        (void)snprintf(payload, sizeof payload, "{\"key\":\"%s.%d\"}", key, i);
        struct tide_spec spec = {.kind = stage->kind, .payload = payload};
        rc = tide_job_enqueue(job, &spec, err);
    }
    return rc;
}

static tide_status children_plan(tide_transaction *transaction, struct stage *stage,
                                 tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (int i = 0; rc == TIDE_OK && i < ROOTS; i++) {
        char payload[KEY_BYTES];
        (void)snprintf(payload, sizeof payload, "{\"key\":\"r%d\"}", i);
        struct tide_spec spec = {.kind = stage->kind, .payload = payload};
        rc = tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
    }
    return rc;
}

static void children_verify(struct stage *stage)
{
    expect_effects(stage, FAMILY);
    expect(stage->db, "SELECT count(*) FROM job WHERE state = 2", FAMILY);
}

/* A child exists if and only if its parent's effect does (E1.6). */
static void children_midway(struct stage *stage)
{
    expect(stage->db,
           "SELECT count(*) FROM job j WHERE length(payload) > length('{\"key\":\"r0\"}')"
           " AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.key ="
           " substr(j.payload ->> 'key', 1, length(j.payload ->> 'key') - 2))",
           0);
}

/* ---- effects: several rows and resume data with one done --------------------------------- */

enum { EFFECTS = 30, STEPS = 3 };

/* Three steps, each saved before the next; a restart resumes. */
static tide_status steps_handler(tide_job *job, void *context, tide_error *err)
{
    struct stage *stage = context;
    char key[KEY_BYTES], row[KEY_BYTES * 2];
    (void)__atomic_add_fetch(&stage->witness->handler_runs, 1, __ATOMIC_RELAXED);
    key_of(job, "key", key);
    tide_text resume = tide_job_resume(job);
    int step = resume.bytes == 1 ? resume.data[0] - '0' : 0;
    tide_status rc = TIDE_OK;
    for (; rc == TIDE_OK && step < STEPS - 1; step++) {
        char next = (char)('0' + step + 1);
        rc = tide_job_save(job, (tide_text){&next, 1}, err);
    }
    for (int i = 0; rc == TIDE_OK && i < STEPS; i++) {
        (void)snprintf(row, sizeof row, "%.40s/%d", key, i);
        rc = effect_leave(job, row, err);
    }
    return rc;
}

static tide_status effects_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    return numbered(transaction, &(struct tide_spec){.kind = stage->kind}, "e", EFFECTS, err);
}

static void effects_midway(struct stage *stage)
{
    expect(stage->db,
           "SELECT count(*) FROM (SELECT 1 FROM effect GROUP BY job HAVING count(*) <> 3)", 0);
    expect(stage->db,
           "SELECT count(*) FROM job j WHERE (j.state = 2 AND j.kind = (SELECT id FROM kind WHERE"
           " name = 'effects')) <> EXISTS (SELECT 1 FROM effect e WHERE e.job = j.id)",
           0);
}

static void effects_verify(struct stage *stage)
{
    expect_effects(stage, EFFECTS * STEPS);
}

/* ---- shard: effects in a database of their own, synced before done (E1.4) ------------------ */

enum { SHARD = 30 };

static tide_status shard_handler(tide_job *job, void *context, tide_error *err)
{
    struct stage *stage = context;
    char key[KEY_BYTES];
    (void)__atomic_add_fetch(&stage->witness->handler_runs, 1, __ATOMIC_RELAXED);
    key_of(job, "key", key);
    tide_lock_take(stage->world, stage->shard_lock);
    char *sql = sqlite3_mprintf("INSERT OR IGNORE INTO message VALUES (%Q)", key);
    int code = sqlite3_exec(stage->shard, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    tide_lock_drop(stage->world, stage->shard_lock);
    if (code != SQLITE_OK)
        return tide_error_set(err, TIDE_IO, "shard: %s", sqlite3_errmsg(stage->shard));
    return effect_leave(job, key, err);
}

static tide_status shard_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    return numbered(transaction, &(struct tide_spec){.kind = stage->kind}, "m", SHARD, err);
}

static void shard_run(struct stage *stage)
{
    kind_define(stage, "archive", shard_handler, &stage->kind);
    stage->shard = database_open(stage->dir, "shard.db", false);
    must(stage, tide_lock_new(stage->world, &stage->shard_lock), "lock");
    if (sqlite3_exec(stage->shard,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "CREATE TABLE IF NOT EXISTS message (key TEXT PRIMARY KEY)",
                     NULL, NULL, NULL) != SQLITE_OK)
        wrong("shard: %s", sqlite3_errmsg(stage->shard));
    plan_once(stage, "shard", shard_plan);
    engine_start(stage);
    engine_wait(stage);
}

/* What is done in the ledger is in the shard, at every moment. */
static void shard_midway(struct stage *stage)
{
    char path[PATH_BYTES];
    path_of(stage, "shard.db", path);
    struct stat info;
    if (stat(path, &info) != 0) {
        expect(stage->db, "SELECT count(*) FROM effect", 0);
        return;
    }
    char *sql = sqlite3_mprintf("ATTACH %Q AS shard", path);
    if (sqlite3_exec(stage->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        wrong("attach: %s", sqlite3_errmsg(stage->db));
    sqlite3_free(sql);
    if (number_of(stage->db, "SELECT count(*) FROM shard.sqlite_master") == 0)
        expect(stage->db, "SELECT count(*) FROM effect", 0);
    else
        expect(stage->db,
               "SELECT count(*) FROM effect WHERE key NOT IN (SELECT key FROM shard.message)", 0);
}

static void shard_verify(struct stage *stage)
{
    expect_effects(stage, SHARD);
}

/* ---- intent: what the remote cannot repeat safely (E1.9) ------------------------------------ */

enum { INTENTS = 16 };

static int64_t remote_has(struct stage *stage, const char *tag)
{
    char path[PATH_BYTES], line[KEY_BYTES * 2];
    tide_buf log;
    path_of(stage, "remote.log", path);
    tide_buf_init(&log, tide_mem_heap(), 1 << 20);
    tide_status rc = tide_file_read(stage->world, path, 1 << 20, &log, &stage->err);
    int64_t count = 0;
    (void)snprintf(line, sizeof line, "<%s>\n", tag);
    for (const char *at = rc == TIDE_OK ? tide_buf_cstr(&log) : ""; (at = strstr(at, line)) != NULL;
         at++)
        count++;
    tide_buf_done(&log);
    return count;
}

/* The remote takes a whole line or nothing: half a line, left by a torn write, has
 * no end and is no effect. */
static void remote_send(struct stage *stage, const char *tag)
{
    char path[PATH_BYTES], line[KEY_BYTES * 2];
    path_of(stage, "remote.log", path);
    int bytes = snprintf(line, sizeof line, "\n<%s>\n", tag);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)bytes) != bytes || fsync(fd) != 0)
        wrong("the remote broke");
    (void)close(fd);
}

static tide_status intent_handler(tide_job *job, void *context, tide_error *err)
{
    struct stage *stage = context;
    char tag[KEY_BYTES];
    (void)__atomic_add_fetch(&stage->witness->handler_runs, 1, __ATOMIC_RELAXED);
    key_of(job, "key", tag);
    tide_status rc = tide_job_intent(job, tag, "send", err);
    if (rc != TIDE_OK && rc != TIDE_EXISTS)
        return rc;
    if (rc == TIDE_OK || remote_has(stage, tag) == 0)
        remote_send(stage, tag);
    rc = tide_job_intent_end(job, tag, TIDE_OK, "sent", err);
    return rc == TIDE_OK ? effect_leave(job, tag, err) : rc;
}

static tide_status intent_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    return numbered(transaction, &(struct tide_spec){.kind = stage->kind}, "tag", INTENTS, err);
}

static void intent_midway(struct stage *stage)
{
    for (int i = 0; i < INTENTS; i++) {
        char tag[KEY_BYTES];
        (void)snprintf(tag, sizeof tag, "tag-%d", i);
        if (remote_has(stage, tag) > 1)
            wrong("%s was sent twice", tag);
    }
}

static void intent_verify(struct stage *stage)
{
    expect_effects(stage, INTENTS);
    expect(stage->db, "SELECT count(*) FROM intent WHERE state = 1", INTENTS);
    for (int i = 0; i < INTENTS; i++) {
        char tag[KEY_BYTES];
        (void)snprintf(tag, sizeof tag, "tag-%d", i);
        if (remote_has(stage, tag) != 1)
            wrong("%s was sent %d times", tag, (int)remote_has(stage, tag));
    }
}

/* ---- retry: failures with a backoff, and failures for good ----------------------------------- */

enum { RETRIED = 20, HOPELESS = 5 };

static tide_status flaky_handler(tide_job *job, void *context, tide_error *err)
{
    if (tide_job_attempt(job) <= 2)
        return tide_error_set(err, TIDE_SERVER, "not yet");
    return effect_handler(job, context, err);
}

static tide_status retry_plan(tide_transaction *transaction, struct stage *stage, tide_error *err)
{
    tide_status rc =
        numbered(transaction, &(struct tide_spec){.kind = stage->kind}, "flaky", RETRIED, err);
    if (rc == TIDE_OK)
        rc = numbered(transaction, &(struct tide_spec){.kind = stage->other_kind}, "hopeless",
                      HOPELESS, err);
    return rc;
}

static void retry_run(struct stage *stage)
{
    kind_define(stage, "flaky", flaky_handler, &stage->kind);
    kind_define(stage, "hopeless", hopeless_handler, &stage->other_kind);
    plan_once(stage, "retry", retry_plan);
    engine_start(stage);
    engine_wait(stage);
}

static void retry_verify(struct stage *stage)
{
    expect_effects(stage, RETRIED);
    expect(stage->db, "SELECT count(*) FROM effect WHERE attempt < 3", 0);
    expect(stage->db, "SELECT count(*) FROM job WHERE state = 3", HOPELESS);
    expect(stage->db, "SELECT count(*) FROM job WHERE state = 2", RETRIED);
}

/* ---- bulk: an enqueue in many slices, killed between them -------------------------------------- */

enum { BULK = 1200 };

/* Nothing runs yet, so that a second call finds every job of the first one waiting. */
static void bulk_enqueue(struct stage *stage)
{
    char(*texts)[2][KEY_BYTES] = calloc(BULK, sizeof *texts);
    struct tide_spec *specs = calloc(BULK, sizeof *specs);
    if (texts == NULL || specs == NULL)
        wrong("no memory");
    for (int i = 0; i < BULK; i++) {
        (void)snprintf(texts[i][0], KEY_BYTES, "bulk-%d", i);
        (void)snprintf(texts[i][1], KEY_BYTES, "{\"key\":\"bulk-%d\"}", i);
        specs[i] =
            (struct tide_spec){.kind = stage->kind, .dedupe = texts[i][0], .payload = texts[i][1]};
    }
    must(stage, tide_enqueue(stage->engine, specs, BULK, NULL, &stage->err), "enqueue");
    free(specs);
    free(texts);
}

static void bulk_run(struct stage *stage)
{
    kind_define(stage, "bulk", effect_handler, &stage->kind);
    if (!mark_is_set(stage, "bulk"))
        bulk_enqueue(stage);
    mark_set(stage, "bulk");
    engine_start(stage);
    engine_wait(stage);
}

static void bulk_verify(struct stage *stage)
{
    expect_effects(stage, BULK);
    expect(stage->db, "SELECT count(*) FROM job", BULK);
}

/* Slices are whole or not there. */
static void bulk_midway(struct stage *stage)
{
    expect(stage->db, "SELECT count(*) % 100 FROM job", 0);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const char *const quick_retries[] = {"retry.backoff_start=1ms", "retry.backoff_max=4ms",
                                            NULL};
static const char *const small_slices[] = {"ledger.enqueue_slice=100", NULL};
static const char *const small_window[] = {
    "governor.gmail.window=1s",   "governor.gmail.window_units=600", "governor.save_every=10ms",
    "governor.spend_lease=100ms", "governor.gmail.reserve=0",        NULL};

const struct scenario scenarios[] = {
    {.name = "plain", .handler = effect_handler, .plan = plain_plan, .verify = plain_verify},
    {.name = "deps", .handler = effect_handler, .plan = deps_plan, .verify = deps_verify},
    {.name = "children",
     .handler = child_handler,
     .plan = children_plan,
     .verify = children_verify,
     .midway = children_midway},
    {.name = "effects",
     .handler = steps_handler,
     .plan = effects_plan,
     .verify = effects_verify,
     .midway = effects_midway},
    {.name = "shard", .run = shard_run, .verify = shard_verify, .midway = shard_midway},
    {.name = "intent",
     .handler = intent_handler,
     .plan = intent_plan,
     .verify = intent_verify,
     .midway = intent_midway},
    {.name = "retry", .settings = quick_retries, .run = retry_run, .verify = retry_verify},
    {.name = "bulk",
     .settings = small_slices,
     .run = bulk_run,
     .verify = bulk_verify,
     .midway = bulk_midway},
    {.name = "streams", .run = run_streams, .verify = verify_streams},
    {.name = "split", .settings = quick_retries, .run = run_split, .verify = verify_split},
    {.name = "schedule", .run = run_schedule, .verify = verify_schedule, .slow = true},
    {.name = "commands", .run = run_commands, .verify = verify_commands},
    {.name = "purge", .run = run_purge, .verify = verify_purge},
    {.name = "governor",
     .settings = small_window,
     .run = run_governor,
     .verify = verify_governor,
     .slow = true},
    {.name = "backup", .run = run_backup, .verify = verify_backup},
    {.name = "config", .run = run_config, .verify = verify_config, .midway = midway_config},
};
const size_t scenarios_count = sizeof scenarios / sizeof scenarios[0];

const struct scenario *scenario_named(const char *name)
{
    for (size_t i = 0; i < scenarios_count; i++)
        if (strcmp(scenarios[i].name, name) == 0)
            return &scenarios[i];
    return NULL;
}
