/* engine_bench.c - measures the whole engine, compared with a raw program that does the least
 * SQL for the same rows in the same run.  One JSON object a line.
 *
 *     engine_bench [SECTION...]     drain, enqueue, latency, million, idle, lanes
 *
 * Every section runs in its own process, so that the heap of an earlier one does not
 * count as its memory.  The directory is $TMPDIR or /tmp: it must be on the disk whose
 * syncs are to be measured. */
#include "engine_tools.h"
#include "settings/settings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DRAIN_JOBS = 200000,
    DRAIN_ROUNDS = 3,
    RAW_GROUP = 200, /* jobs of one transaction of the raw program */
    ENQUEUE_JOBS = 200000,
    SPECS = 5000, /* passed to the engine in one call */
    RAW_SLICE = 500,
    LATENCY_SAMPLES = 1000,
    MILLION = 1000000,
    IDLE_JOBS = 1000,
    IDLE_SECONDS = 5,
    LANES_SAMPLES = 500,
    LANES_BULK_JOBS = 64,
    WORKERS = 16,
};

static char dir[BENCH_PATH_BYTES];

/* ---- tools ------------------------------------------------------------------------ */

static double seconds_since(uint64_t start_us)
{
    return (double)(now_us() - start_us) / 1e6;
}

static double rss_mb(void)
{
    long total = 0;
    long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
        die("/proc/self/statm", "cannot be read");
    (void)fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

/* CPU time of one thread of this process, by its name.  On a shared machine the CPU time of a
 * job says more than its duration. */
static double thread_cpu_seconds(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    double seconds = 0;
    struct dirent *task = NULL;
    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[64];
        char found[32] = "";
        unsigned long long ns = 0;
        (void)snprintf(path, sizeof path, "/proc/self/task/%.12s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        bool named = fscanf(file, "%31s", found) == 1;
        (void)fclose(file);
        (void)snprintf(path, sizeof path, "/proc/self/task/%.12s/schedstat", task->d_name);
        file = named && strcmp(found, name) == 0 ? fopen(path, "r") : NULL;
        if (file == NULL)
            continue;
        if (fscanf(file, "%llu", &ns) == 1)
            seconds += (double)ns / 1e9;
        (void)fclose(file);
    }
    if (tasks != NULL)
        (void)closedir(tasks);
    return seconds;
}

struct rate {
    double per_s;
    double cpu_us; /* of the whole process, for one job */
    double writer_us;
};

static struct rate rate_of(size_t jobs, uint64_t start_us, double cpu_start)
{
    return (struct rate){.per_s = (double)jobs / seconds_since(start_us),
                         .cpu_us = (cpu_s() - cpu_start) * 1e6 / (double)jobs,
                         .writer_us = thread_cpu_seconds("writer") * 1e6 / (double)jobs};
}

static void rate_keep_best(struct rate *best, struct rate rate)
{
    if (rate.per_s > best->per_s)
        best->per_s = rate.per_s;
    if (best->cpu_us == 0 || rate.cpu_us < best->cpu_us) {
        best->cpu_us = rate.cpu_us;
        best->writer_us = rate.writer_us;
    }
}

static const char *path_of(const char *name)
{
    static char paths[4][BENCH_PATH_BYTES + 96];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void copy_file(const char *from, const char *to)
{
    static char block[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (in < 0 || out < 0)
        die(from, strerror(errno));
    ssize_t bytes = 0;
    while ((bytes = read(in, block, sizeof block)) > 0)
        if (write(out, block, (size_t)bytes) != bytes)
            die(to, strerror(errno));
    /* Pending writes must not be charged to the next caller of sync. */
    if (bytes < 0 || fsync(out) != 0)
        die(from, strerror(errno));
    (void)close(in);
    (void)close(out);
}

/* ---- the engine --------------------------------------------------------------------- */

static tide_engine *engine_in(const char *name, struct tide_settings *settings)
{
    return engine_open(&(struct tide_engine_options){.state_dir = path_of(name),
                                                     .settings = settings,
                                                     .workers = WORKERS,
                                                     .no_control_socket = true});
}

static void wait_quiet(tide_engine *engine)
{
    tide_error err = {.text = ""};
    must(tide_engine_wait(engine, TIDE_WAIT_FOREVER, &err), "wait", &err);
}

/* ---- the raw program ------------------------------------------------------------------ */

struct raw {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *insert, *next, *claim, *claim_add, *claim_drop, *done;
};

static void raw_check(const struct raw *raw, bool ok, const char *what)
{
    if (!ok)
        die(what, sqlite3_errmsg(raw->db));
}

static sqlite3_stmt *raw_prepare(const struct raw *raw, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    raw_check(raw,
              sqlite3_prepare_v3(raw->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) ==
                  SQLITE_OK,
              sql);
    return stmt;
}

/* The engine's pragmas.  The engine has a thread that checkpoints the log; this program lets
 * SQLite do it after as many pages. */
static void raw_open(struct raw *raw, const char *path)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    if (sqlite3_open_v2(path, &raw->db, flags, NULL) != SQLITE_OK)
        die(path, "cannot be opened");
    const char *pragmas =
        "PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;"
        "PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 1000;"
        "PRAGMA secure_delete = OFF";
    raw_check(raw, sqlite3_exec(raw->db, pragmas, NULL, NULL, NULL) == SQLITE_OK, "pragmas");
    raw->begin = raw_prepare(raw, "BEGIN IMMEDIATE");
    raw->commit = raw_prepare(raw, "COMMIT");
    raw->insert = raw_prepare(
        raw, "INSERT INTO job (state, open_deps, account, priority, kind, scope, dedupe, attempts,"
             " attempts_max, traits, created, payload)"
             " VALUES (0, 0, 0, 50, 1, 0, ?1, 0, 0, 0, ?2, ?3)");
    raw->next = raw_prepare(raw, "SELECT id, payload FROM job INDEXED BY job_ready"
                                 " WHERE state = 0 AND open_deps = 0 AND account = 0"
                                 " ORDER BY priority DESC, id LIMIT ?1");
    raw->claim = raw_prepare(raw, "UPDATE job SET state = 1 WHERE id = ?1");
    raw->claim_add = raw_prepare(raw, "INSERT INTO claim (job, token, owner, run, started)"
                                      " VALUES (?1, ?1, 1, 1, ?2)");
    raw->claim_drop = raw_prepare(raw, "DELETE FROM claim WHERE job = ?1");
    raw->done = raw_prepare(raw, "UPDATE job SET state = 2, attempts = attempts + 1, started = ?2,"
                                 " finished = ?2, run = 1 WHERE id = ?1");
}

static void raw_close(struct raw *raw)
{
    sqlite3_stmt *stmts[] = {raw->begin, raw->commit,    raw->insert,     raw->next,
                             raw->claim, raw->claim_add, raw->claim_drop, raw->done};
    for (size_t i = 0; i < sizeof stmts / sizeof stmts[0]; i++)
        (void)sqlite3_finalize(stmts[i]);
    (void)sqlite3_close(raw->db);
}

static void raw_run(const struct raw *raw, sqlite3_stmt *stmt)
{
    raw_check(raw, sqlite3_step(stmt) == SQLITE_DONE, "step");
    (void)sqlite3_reset(stmt);
}

static void raw_run_id(const struct raw *raw, sqlite3_stmt *stmt, int64_t id)
{
    (void)sqlite3_bind_int64(stmt, 1, id);
    raw_run(raw, stmt);
}

static size_t raw_claim(const struct raw *raw, int64_t ids[RAW_GROUP], bool claims)
{
    size_t count = 0;
    size_t payload_bytes = 0;
    (void)sqlite3_bind_int(raw->next, 1, RAW_GROUP);
    while (sqlite3_step(raw->next) == SQLITE_ROW) {
        ids[count++] = sqlite3_column_int64(raw->next, 0);
        (void)sqlite3_column_text(raw->next, 1);
        payload_bytes += (size_t)sqlite3_column_bytes(raw->next, 1);
    }
    (void)sqlite3_reset(raw->next);
    raw_check(raw, count == 0 || payload_bytes > 0, "payload");
    for (size_t i = 0; i < count; i++) {
        raw_run_id(raw, raw->claim, ids[i]);
        if (!claims)
            continue;
        (void)sqlite3_bind_int64(raw->claim_add, 2, 1700000000000);
        raw_run_id(raw, raw->claim_add, ids[i]);
    }
    return count;
}

/* Finishes a group and claims the next in one transaction, until all are done.  `claims`: also
 * writes the row that names the owner, without which recovery after a crash would have to read
 * the whole table. */
static struct rate raw_drain(const char *path, size_t jobs, bool claims)
{
    struct raw raw;
    int64_t ids[RAW_GROUP];
    size_t held = 0;
    size_t done = 0;
    raw_open(&raw, path);
    uint64_t start_us = now_us();
    double cpu_start = cpu_s();
    do {
        raw_run(&raw, raw.begin);
        for (size_t i = 0; i < held; i++) {
            if (claims)
                raw_run_id(&raw, raw.claim_drop, ids[i]);
            (void)sqlite3_bind_int64(raw.done, 2, 1700000000000);
            raw_run_id(&raw, raw.done, ids[i]);
        }
        done += held;
        held = raw_claim(&raw, ids, claims);
        raw_run(&raw, raw.commit);
    } while (held > 0);
    struct rate rate = rate_of(jobs, start_us, cpu_start);
    if (done != jobs)
        die("raw drain", "jobs are missing");
    raw_close(&raw);
    return rate;
}

static double raw_enqueue(const char *path, size_t jobs, bool dedupe)
{
    struct raw raw;
    char key[32];
    char payload[40];
    raw_open(&raw, path);
    uint64_t start_us = now_us();
    for (size_t i = 0; i < jobs; i++) {
        if (i % RAW_SLICE == 0)
            raw_run(&raw, raw.begin);
        (void)snprintf(key, sizeof key, "message-%08zu", i);
        (void)snprintf(payload, sizeof payload, "{\"message\":%zu}", i);
        if (dedupe)
            (void)sqlite3_bind_text(raw.insert, 1, key, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(raw.insert, 2, 1700000000000);
        (void)sqlite3_bind_text(raw.insert, 3, payload, -1, SQLITE_STATIC);
        raw_run(&raw, raw.insert);
        if ((i + 1) % RAW_SLICE == 0 || i + 1 == jobs)
            raw_run(&raw, raw.commit);
    }
    double rate = (double)jobs / seconds_since(start_us);
    raw_close(&raw);
    return rate;
}

/* ---- drain ------------------------------------------------------------------------------ */

static double best_of(double best, double value)
{
    return value > best ? value : best;
}

/* Makes a directory whose ledger holds `jobs` jobs, closed, and so without a log. */
static void make_full(const char *name, size_t jobs)
{
    tide_engine *engine = engine_in(name, NULL);
    uint32_t kind = engine_kind(engine, &kind_none);
    enqueue_many(engine, kind, jobs, true);
    engine_close(engine);
}

static struct rate engine_drain(const char *name, size_t jobs, uint64_t *writes_out)
{
    tide_engine *engine = engine_in(name, NULL);
    (void)engine_kind(engine, &kind_none);
    uint64_t start_us = now_us();
    double cpu_start = cpu_s();
    engine_start(engine);
    wait_quiet(engine);
    struct rate rate = rate_of(jobs, start_us, cpu_start);
    struct tide_progress progress;
    tide_engine_progress(engine, &progress);
    if (progress.done != jobs) {
        char why[80];
        (void)snprintf(why, sizeof why, "%" PRIu64 " of %zu were done", progress.done, jobs);
        die("drain", why);
    }
    *writes_out = progress.ledger_writes;
    engine_close(engine);
    return rate;
}

static void drain(void)
{
    struct rate engine = {0};
    struct rate rows = {0};
    struct rate claims = {0};
    double worst = 1e12;
    uint64_t writes = 0;
    for (int round = 0; round < DRAIN_ROUNDS; round++) {
        char name[32];
        (void)snprintf(name, sizeof name, "drain%d", round);
        make_full(name, DRAIN_JOBS);
        char state[64];
        (void)snprintf(state, sizeof state, "%s/state.db", name);
        copy_file(path_of(state), path_of("rows.db"));
        copy_file(path_of(state), path_of("claims.db"));
        rate_keep_best(&rows, raw_drain(path_of("rows.db"), DRAIN_JOBS, false));
        struct rate rate = engine_drain(name, DRAIN_JOBS, &writes);
        rate_keep_best(&engine, rate);
        worst = rate.per_s < worst ? rate.per_s : worst;
        rate_keep_best(&claims, raw_drain(path_of("claims.db"), DRAIN_JOBS, true));
    }
    compared("raw_drain_rows", rows.per_s, "jobs/s", 0, "");
    compared("raw_drain_rows_and_claims", claims.per_s, "jobs/s", rows.per_s, "raw_drain_rows");
    compared("engine_drain", engine.per_s, "jobs/s", rows.per_s, "raw_drain_rows");
    compared("engine_drain_to_claims", engine.per_s, "jobs/s", claims.per_s,
             "raw_drain_rows_and_claims");
    compared("engine_drain_worst", worst, "jobs/s", engine.per_s, "engine_drain");
    compared("engine_drain_jobs_per_transaction", (double)DRAIN_JOBS / (double)writes, "jobs", 0,
             "");
    compared("raw_drain_rows_cpu", rows.cpu_us, "us/job", 0, "");
    compared("raw_drain_rows_and_claims_cpu", claims.cpu_us, "us/job", rows.cpu_us,
             "raw_drain_rows_cpu");
    compared("engine_drain_cpu", engine.cpu_us, "us/job", claims.cpu_us,
             "raw_drain_rows_and_claims_cpu");
    compared("engine_drain_writer_cpu", engine.writer_us, "us/job", claims.cpu_us,
             "raw_drain_rows_and_claims_cpu");
}

/* ---- enqueue ------------------------------------------------------------------------------ */

static void enqueue_one_way(const char *name, bool dedupe)
{
    double engine_rate = 0;
    double raw_rate = 0;
    for (int round = 0; round < DRAIN_ROUNDS; round++) {
        char state[64];
        (void)snprintf(state, sizeof state, "%s%d", name, round);
        tide_engine *engine = engine_in(state, NULL);
        uint32_t kind = engine_kind(engine, &kind_none);
        engine_close(engine);
        char file[80];
        (void)snprintf(file, sizeof file, "%s/state.db", state);
        copy_file(path_of(file), path_of("raw.db"));
        raw_rate = best_of(raw_rate, raw_enqueue(path_of("raw.db"), ENQUEUE_JOBS, dedupe));

        engine = engine_in(state, NULL);
        kind = engine_kind(engine, &kind_none);
        uint64_t start_us = now_us();
        enqueue_many(engine, kind, ENQUEUE_JOBS, dedupe);
        engine_rate = best_of(engine_rate, ENQUEUE_JOBS / seconds_since(start_us));
        engine_close(engine);
    }
    char raw_name[64];
    (void)snprintf(raw_name, sizeof raw_name, "raw_%s", name);
    compared(raw_name, raw_rate, "jobs/s", 0, "");
    char engine_name[64];
    (void)snprintf(engine_name, sizeof engine_name, "engine_%s", name);
    compared(engine_name, engine_rate, "jobs/s", raw_rate, raw_name);
}

static void enqueue_rates(void)
{
    enqueue_one_way("enqueue_dedupe", true);
    enqueue_one_way("enqueue_plain", false);
}

/* ---- latency ------------------------------------------------------------------------------ */

/* Two commits, one that stores the job and one that claims it. */
static double raw_latency(const char *path)
{
    static uint64_t samples_us[LATENCY_SAMPLES];
    struct raw raw;
    raw_open(&raw, path);
    for (size_t i = 0; i < LATENCY_SAMPLES; i++) {
        uint64_t start_us = now_us();
        raw_run(&raw, raw.begin);
        (void)sqlite3_bind_int64(raw.insert, 2, 1700000000000);
        (void)sqlite3_bind_text(raw.insert, 3, "{}", 2, SQLITE_STATIC);
        raw_run(&raw, raw.insert);
        int64_t id = sqlite3_last_insert_rowid(raw.db);
        raw_run(&raw, raw.commit);
        raw_run(&raw, raw.begin);
        raw_run_id(&raw, raw.claim, id);
        raw_run(&raw, raw.commit);
        samples_us[i] = now_us() - start_us;
        nap_us(500);
    }
    raw_close(&raw);
    return quantile_ms(samples_us, LATENCY_SAMPLES, 500);
}

static void latency(void)
{
    static uint64_t samples_us[LATENCY_SAMPLES];
    struct bell bell;
    bell_init(&bell);
    const struct tide_kind ringing = bell_kind(&bell);
    tide_engine *engine = engine_in("latency", NULL);
    uint32_t kind = engine_kind(engine, &ringing);
    engine_start(engine);
    for (size_t i = 0; i < LATENCY_SAMPLES; i++) {
        wait_quiet(engine);
        nap_us(500); /* until all threads sleep */
        samples_us[i] = ring_once(engine, kind, &bell);
    }
    wait_quiet(engine);
    engine_close(engine);
    double raw_ms = raw_latency(path_of("latency/state.db"));
    compared("raw_two_commits_p50", raw_ms, "ms", 0, "");
    compared("engine_start_latency_p50", quantile_ms(samples_us, LATENCY_SAMPLES, 500), "ms",
             raw_ms, "raw_two_commits_p50");
    compared("engine_start_latency_p99", quantile_ms(samples_us, LATENCY_SAMPLES, 990), "ms",
             raw_ms, "raw_two_commits_p50");
    (void)sem_destroy(&bell.rung);
}

/* ---- a million --------------------------------------------------------------------------- */

/* Ten jobs at a time, alternately a chain, and a fan of one, eight and one. */
static void fill_ten(struct tide_spec *specs, uint32_t needs[][10], uint32_t base, uint32_t kind)
{
    bool chain = base / 10 % 2 == 0;
    for (uint32_t i = 0; i < 10; i++) {
        struct tide_spec *spec = &specs[base + i];
        *spec = (struct tide_spec){.kind = kind, .needs_index = needs[base + i]};
        if (i == 0)
            continue;
        spec->needs_index_count = !chain && i == 9 ? 8 : 1;
        for (uint32_t n = 0; n < spec->needs_index_count; n++)
            needs[base + i][n] = chain ? base + i - 1 : i == 9 ? base + 1 + n : base;
    }
}

struct memory {
    double enqueued_mb;
    double half_mb[2]; /* the most in the first and in the second half of the run */
    uint64_t tracker_bytes;
};

static void look(tide_engine *engine, struct memory *memory, uint64_t *done_out)
{
    struct tide_progress progress;
    tide_engine_progress(engine, &progress);
    double mb = rss_mb();
    int half = progress.done > MILLION / 2;
    if (mb > memory->half_mb[half])
        memory->half_mb[half] = mb;
    if (progress.tracker_bytes > memory->tracker_bytes)
        memory->tracker_bytes = progress.tracker_bytes;
    *done_out = progress.done;
}

static void million(void)
{
    static struct tide_spec specs[SPECS];
    static uint32_t needs[SPECS][10];
    struct memory memory = {0};
    tide_engine *engine = engine_in("million", NULL);
    uint32_t kind = engine_kind(engine, &kind_none);
    uint64_t start_us = now_us();
    uint64_t done = 0;
    for (size_t i = 0; i < MILLION; i += SPECS) {
        for (uint32_t base = 0; base < SPECS; base += 10)
            fill_ten(specs, needs, base, kind);
        enqueue(engine, specs, SPECS);
        look(engine, &memory, &done);
    }
    compared("million_enqueue_with_needs", MILLION / seconds_since(start_us), "jobs/s", 0, "");
    memory.enqueued_mb = rss_mb();
    start_us = now_us();
    engine_start(engine);
    while (done < MILLION) {
        nap_us(50000);
        look(engine, &memory, &done);
    }
    wait_quiet(engine);
    compared("million_drain_with_needs", MILLION / seconds_since(start_us), "jobs/s", 0, "");
    compared("million_tracker", (double)memory.tracker_bytes / 1e6, "MB", 5, "5 MB allowed");
    compared("million_rss_enqueued", memory.enqueued_mb, "MB", 64, "64 MB allowed");
    double most_mb = memory.half_mb[0] > memory.half_mb[1] ? memory.half_mb[0] : memory.half_mb[1];
    compared("million_rss_max", most_mb, "MB", 64, "64 MB allowed");
    compared("million_rss_second_half", memory.half_mb[1], "MB", memory.half_mb[0],
             "the first half");
    engine_close(engine);
}

/* ---- idle -------------------------------------------------------------------------------- */

static atomic_uint_fast64_t statements;

static int count_statement(unsigned type, void *context, void *stmt, void *text)
{
    (void)type;
    (void)context;
    (void)stmt;
    (void)text;
    atomic_fetch_add(&statements, 1);
    return 0;
}

/* SQLite calls it for every connection opened in this process. */
static int trace_connection(sqlite3 *db, char **error_out, const void *routines)
{
    (void)error_out;
    (void)routines;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count_statement, NULL);
}

static void idle(void)
{
    if (sqlite3_auto_extension((void (*)(void))trace_connection) != SQLITE_OK)
        die("idle", "no trace");
    tide_engine *engine = engine_in("idle", NULL);
    uint32_t kind = engine_kind(engine, &kind_none);
    engine_start(engine);
    struct tide_spec spec = {.kind = kind, .delay_ms = 3600000};
    for (size_t i = 0; i < IDLE_JOBS; i++)
        enqueue(engine, &spec, 1);
    enqueue_many(engine, kind, IDLE_JOBS, true);
    nap_us(999999);
    uint64_t before = atomic_load(&statements);
    if (before < IDLE_JOBS)
        die("idle", "the trace sees nothing");
    double cpu_before = cpu_s();
    uint64_t start_us = now_us();
    (void)sleep(IDLE_SECONDS);
    double share = (cpu_s() - cpu_before) / seconds_since(start_us) * 100;
    compared("idle_cpu", share, "%", 1, "1 % allowed");
    compared("idle_statements", (double)(atomic_load(&statements) - before), "statements", 0, "");
    engine_close(engine);
}

/* ---- lanes ------------------------------------------------------------------------------- */

static tide_status transfer(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    (void)err;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK) {
        tide_job_beat(job, 1);
        rc = tide_job_sleep(job, 10000);
    }
    return rc;
}

static void wait_full(tide_engine *engine, uint32_t bulk_running)
{
    struct tide_progress progress;
    do {
        nap_us(1000);
        tide_engine_progress(engine, &progress);
    } while (progress.running[0] > 0 || progress.running[1] < bulk_running);
}

static void lanes_one_way(const char *name, bool preemptible, uint32_t bulk_running)
{
    static uint64_t samples_us[LANES_SAMPLES];
    tide_settings *settings = NULL;
    tide_error err = {.text = ""};
    must(tide_settings_new(tide_mem_heap(), &settings), "settings", &err);
    /* Transfers never end by themselves: nothing to wait for at the end. */
    must(tide_settings_add_flag(settings, "workers.stop_grace=0s", &err), "settings", &err);
    struct bell bell;
    bell_init(&bell);
    const struct tide_kind ringing = bell_kind(&bell);
    tide_engine *engine = engine_in(name, settings);
    uint32_t bulk = engine_kind(engine, &(struct tide_kind){.name = "bench.transfer",
                                                            .handler = transfer,
                                                            .not_preemptible = !preemptible});
    uint32_t person = engine_kind(engine, &ringing);
    engine_start(engine);
    struct tide_spec spec = {.kind = bulk, .size_bytes = 1000000000};
    for (size_t i = 0; i < LANES_BULK_JOBS; i++)
        enqueue(engine, &spec, 1);
    for (size_t i = 0; i < LANES_SAMPLES; i++) {
        wait_full(engine, bulk_running);
        samples_us[i] = ring_once(engine, person, &bell);
    }
    engine_close(engine);
    tide_settings_free(settings);
    (void)sem_destroy(&bell.rung);
    char line[80];
    (void)snprintf(line, sizeof line, "%s_p50", name);
    compared(line, quantile_ms(samples_us, LANES_SAMPLES, 500), "ms", 0, "");
    (void)snprintf(line, sizeof line, "%s_p99", name);
    compared(line, quantile_ms(samples_us, LANES_SAMPLES, 990), "ms", 0, "");
}

static void lanes(void)
{
    lanes_one_way("interactive_reserved", false, WORKERS - 2);
    lanes_one_way("interactive_preempting", true, WORKERS);
}

/* ---- main -------------------------------------------------------------------------------- */

static const struct section {
    const char *name;
    void (*run)(void);
} sections[] = {
    {"drain", drain}, {"enqueue", enqueue_rates}, {"latency", latency}, {"million", million},
    {"idle", idle},   {"lanes", lanes},
};

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 1;
}

static int run_section(const struct section *section)
{
    dir_make(dir);
    pid_t child = fork();
    if (child < 0)
        die("fork", strerror(errno));
    if (child == 0) {
        section->run();
        exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    dir_remove(dir);
    if (status != 0)
        (void)fprintf(stderr, "engine_bench: %s ended with status %d\n", section->name, status);
    return status != 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    int ran = 0;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (wanted(sections[i].name, argc, argv)) {
            failed |= run_section(&sections[i]);
            ran++;
        }
    if (ran == 0 || (argc > 1 && ran != argc - 1)) {
        (void)fprintf(stderr,
                      "usage: engine_bench [drain|enqueue|latency|million|idle|lanes ...]\n");
        return 2;
    }
    return failed;
}
