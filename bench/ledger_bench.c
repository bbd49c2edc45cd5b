/* ledger_bench.c - measures the speed of the ledger, compared with SQLite alone.
 *
 * Enqueues and drains jobs without work, with synchronous=FULL, history kept, in
 * groups, as the writer does.  For comparison, in the same run, on a file of the same
 * schema, runs a minimal queue: prepared statements in a loop, nothing returned,
 * nothing checked.  Rounds alternate, so that a noisy machine affects both; CPU time
 * per job is printed too, which depends less on a busy machine than wall time.  Prints
 * one JSON object per line.
 *
 *     ledger_bench [JOBS [GROUP [DIR]]]
 */
#include "bench.h"

#include "base/check.h"
#include "base/limits.h"
#include "db/db.h"
#include "ledger/ledger.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, CHECKPOINT_EVERY = 50, TENTHS = 1000, GROUP_MAX = TIDE_CLAIM_MAX };

struct bench {
    tide_world *world;
    char dir[BENCH_PATH_BYTES]; /* of the current ledger */
    char path[BENCH_PATH_BYTES + 16];
    size_t jobs;
    size_t group;
    uint64_t tx_us_max;
    size_t tx_count;
    size_t tx_tenths[TENTHS]; /* of a millisecond; the last one: everything beyond */
    double cpu_us;            /* of the last drain */
};

static tide_ledger *ledger_new(struct bench *bench)
{
    dir_make(bench->dir);
    (void)snprintf(bench->path, sizeof bench->path, "%s/state.db", bench->dir);
    tide_error err = {.text = ""};
    tide_ledger *ledger = NULL;
    struct tide_ledger_options options = {
        .path = bench->path, .run_id = "bench", .now_unix_ms = 1790000000000u};
    must(tide_ledger_open(bench->world, &options, &ledger, &err), "open", &err);
    return ledger;
}

static double per_second(size_t count, uint64_t us)
{
    return (double)count * 1e6 / (double)(us == 0 ? 1 : us);
}

static void note_tx(struct bench *bench, uint64_t began_us)
{
    uint64_t took_us = tide_world_now_us(bench->world) - began_us;
    if (took_us > bench->tx_us_max)
        bench->tx_us_max = took_us;
    bench->tx_count++;
    bench->tx_tenths[took_us / 100 < TENTHS ? took_us / 100 : TENTHS - 1]++;
}

/* Returns jobs per second. */
static double enqueue_all(struct bench *bench, tide_ledger *ledger, bool keys)
{
    static struct tide_job_new jobs[TIDE_ENQUEUE_SLICE];
    static struct tide_enqueued enqueued[TIDE_ENQUEUE_SLICE];
    static char texts[TIDE_ENQUEUE_SLICE][96];
    static char names[TIDE_ENQUEUE_SLICE][40];
    tide_error err = {.text = ""};
    tide_tx *tx = NULL;
    uint32_t kind = 0;
    uint32_t account = 0;
    must(tide_tx_begin(ledger, &tx, &err), "begin", &err);
    must(tide_ledger_kind(tx, "noop", TIDE_DEDUPE_PENDING, &kind, &err), "kind", &err);
    must(tide_ledger_account(tx, "a@example.com", "test", &account, &err), "account", &err);
    must(tide_tx_commit(tx, &err), "commit", &err);

    uint64_t began = tide_world_now_us(bench->world);
    for (size_t at = 0; at < bench->jobs; at += TIDE_ENQUEUE_SLICE) {
        size_t count =
            bench->jobs - at < TIDE_ENQUEUE_SLICE ? bench->jobs - at : (size_t)TIDE_ENQUEUE_SLICE;
        for (size_t i = 0; i < count; i++) {
            int key = snprintf(names[i], sizeof names[i], "message-%010zu", at + i);
            int text =
                snprintf(texts[i], sizeof texts[i], "{\"n\":%zu,\"folder\":\"inbox\"}", at + i);
            jobs[i] = (struct tide_job_new){.account = account,
                                            .kind = kind,
                                            .payload = {texts[i], (size_t)text},
                                            .attempts_max = 5,
                                            .priority = 30,
                                            .lane = 1,
                                            .level = 4,
                                            .preemptible = true};
            if (keys)
                jobs[i].dedupe_key = (tide_text){names[i], (size_t)key};
        }
        uint64_t tx_began = tide_world_now_us(bench->world);
        must(tide_tx_begin(ledger, &tx, &err), "begin", &err);
        must(tide_ledger_enqueue(tx, jobs, count, 1790000000000u, enqueued, &err), "enqueue", &err);
        must(tide_tx_commit(tx, &err), "commit", &err);
        note_tx(bench, tx_began);
    }
    uint64_t took = tide_world_now_us(bench->world) - began;
    uint32_t left = 0;
    must(tide_ledger_checkpoint(ledger, &left, &err), "checkpoint", &err);
    return per_second(bench->jobs, took);
}

/* Finish the last group and claim the next in one transaction, as the writer does. */
static double drain_ledger(struct bench *bench, tide_ledger *ledger)
{
    tide_error err = {.text = ""};
    tide_mem *mem = tide_mem_heap();
    struct tide_changes changes;
    tide_changes_init(&changes, mem);
    static struct tide_brief briefs[10000];
    static struct tide_finish finishes[GROUP_MAX];
    static struct tide_job_body *bodies[GROUP_MAX];
    static uint64_t ids[GROUP_MAX];
    static bool applied[GROUP_MAX];
    size_t window = 0;
    size_t next = 0;
    size_t running = 0;
    size_t done = 0;
    uint64_t token = 1000000;
    uint64_t after = 0;
    uint8_t after_priority = 255;

    double cpu_began = cpu_s();
    uint64_t began = tide_world_now_us(bench->world);
    for (size_t turn = 1; done < bench->jobs; turn++) {
        if (next == window) {
            must(tide_ledger_refill(ledger, 1, after_priority, after, briefs, 8000, &window, &err),
                 "refill", &err);
            next = 0;
            if (window > 0) {
                after = briefs[window - 1].id;
                after_priority = briefs[window - 1].priority;
            }
        }
        for (size_t i = 0; i < running; i++)
            finishes[i] = (struct tide_finish){
                .id = bodies[i]->id, .token = bodies[i]->token, .state = TIDE_ROW_DONE};
        size_t claims = window - next < bench->group ? window - next : bench->group;
        for (size_t i = 0; i < claims; i++)
            ids[i] = briefs[next + i].id;
        tide_tx *tx = NULL;
        tide_changes_clear(&changes);
        uint64_t tx_began = tide_world_now_us(bench->world);
        must(tide_tx_begin(ledger, &tx, &err), "begin", &err);
        must(tide_ledger_finish(tx, finishes, running, 1790000001000u, applied, &changes, &err),
             "finish", &err);
        for (size_t i = 0; i < running; i++) {
            TIDE_ASSERT(applied[i]);
            tide_job_body_free(mem, bodies[i]);
        }
        done += running;
        must(tide_ledger_claim(tx, ids, claims, 7, token, 1790000000500u, mem, bodies, &err),
             "claim", &err);
        must(tide_tx_commit(tx, &err), "commit", &err);
        note_tx(bench, tx_began);
        running = claims;
        next += claims;
        token += claims;
        uint32_t left = 0;
        if (turn % CHECKPOINT_EVERY == 0)
            must(tide_ledger_checkpoint(ledger, &left, &err), "checkpoint", &err);
    }
    uint64_t took = tide_world_now_us(bench->world) - began;
    bench->cpu_us = (cpu_s() - cpu_began) * 1e6;
    tide_changes_done(&changes);
    return per_second(bench->jobs, took);
}

/* ---- a minimal queue -------------------------------------------------------------- */

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK) {
        (void)fprintf(stderr, "ledger_bench: %s: %s\n", sql, sqlite3_errmsg(db));
        exit(1);
    }
    return stmt;
}

static void run(sqlite3_stmt *stmt)
{
    int code = sqlite3_step(stmt);
    TIDE_ASSERT(code == SQLITE_DONE || code == SQLITE_ROW);
    (void)sqlite3_reset(stmt);
}

static void run_id(sqlite3_stmt *stmt, size_t id)
{
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)id);
    run(stmt);
}

/* `fenced`: writes and deletes a claim row; else two updates only. */
static double drain_raw(struct bench *bench, bool fenced)
{
    sqlite3 *db = NULL;
    sqlite3 *side = NULL;
    TIDE_ASSERT(sqlite3_open_v2(bench->path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                                NULL) == SQLITE_OK);
    TIDE_ASSERT(sqlite3_open_v2(bench->path, &side, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                                NULL) == SQLITE_OK);
    (void)sqlite3_exec(db,
                       "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                       "PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;"
                       "PRAGMA secure_delete = OFF",
                       NULL, NULL, NULL);
    (void)sqlite3_exec(side, "PRAGMA synchronous = FULL", NULL, NULL, NULL);
    sqlite3_stmt *begin = prepare(db, "BEGIN IMMEDIATE");
    sqlite3_stmt *commit = prepare(db, "COMMIT");
    sqlite3_stmt *get = prepare(db, "SELECT payload FROM job WHERE id = ?1 AND state = 0");
    sqlite3_stmt *start = prepare(db, "UPDATE job SET state = 1 WHERE id = ?1");
    sqlite3_stmt *claim = prepare(db, "INSERT INTO claim (job, token, owner, run, started)"
                                      " VALUES (?1, ?2, 7, 1, 1790000000500)");
    sqlite3_stmt *drop = prepare(db, "DELETE FROM claim WHERE job = ?1 AND token = ?2");
    sqlite3_stmt *end = prepare(db, "UPDATE job SET state = 2, started = 1790000000500,"
                                    " finished = 1790000001000, run = 1 WHERE id = ?1");
    uint64_t bytes = 0;
    double cpu_began = cpu_s();
    uint64_t began = tide_world_now_us(bench->world);
    for (size_t at = 0, turn = 1; at < bench->jobs + bench->group; at += bench->group, turn++) {
        run(begin);
        for (size_t i = at < bench->group ? 0 : at - bench->group; i < at && i < bench->jobs; i++) {
            if (fenced) {
                (void)sqlite3_bind_int64(drop, 2, (sqlite3_int64)(i + 1000000));
                run_id(drop, i + 1);
            }
            run_id(end, i + 1);
        }
        for (size_t i = at; i < at + bench->group && i < bench->jobs; i++) {
            (void)sqlite3_bind_int64(get, 1, (sqlite3_int64)(i + 1));
            TIDE_ASSERT(sqlite3_step(get) == SQLITE_ROW);
            bytes += (uint64_t)sqlite3_column_bytes(get, 0);
            (void)sqlite3_reset(get);
            run_id(start, i + 1);
            if (fenced) {
                (void)sqlite3_bind_int64(claim, 2, (sqlite3_int64)(i + 1000000));
                run_id(claim, i + 1);
            }
        }
        run(commit);
        if (turn % CHECKPOINT_EVERY == 0)
            (void)sqlite3_wal_checkpoint_v2(side, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
    uint64_t took = tide_world_now_us(bench->world) - began;
    bench->cpu_us = (cpu_s() - cpu_began) * 1e6;
    TIDE_ASSERT(bytes > 0);
    sqlite3_stmt *all[] = {begin, commit, get, start, claim, drop, end};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        (void)sqlite3_finalize(all[i]);
    (void)sqlite3_close(db);
    (void)sqlite3_close(side);
    return per_second(bench->jobs, took);
}

/* The best round: a disturbance only ever makes a round slower. */
static void keep_most(double *best, double value)
{
    if (value > *best)
        *best = value;
}

static void keep_least(double *best, double value)
{
    if (*best == 0 || value < *best)
        *best = value;
}

static double tx_p99_ms(const struct bench *bench)
{
    size_t seen = 0;
    size_t i = 0;
    for (; i < TENTHS && seen * 100 < bench->tx_count * 99; i++)
        seen += bench->tx_tenths[i];
    return (double)i / 10.0;
}

int main(int argc, char **argv)
{
    tide_error err = {.text = ""};
    struct bench bench = {.jobs = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000,
                          .group = argc > 2 ? strtoul(argv[2], NULL, 10) : 128};
    if (argc > 3)
        (void)setenv("TMPDIR", argv[3], 1);
    if (bench.group == 0 || bench.group > GROUP_MAX || bench.jobs == 0)
        die("usage", "ledger_bench [JOBS [GROUP [DIR]]]");
    tide_db_tune_process();
    must(tide_world_real_new(tide_mem_heap(), &bench.world, &err), "world", &err);

    enum { KEYED, PLAIN, DRAIN, RAW_BARE, RAW, DRAIN_CPU, RAW_BARE_CPU, RAW_CPU, MEASURES };
    double best[MEASURES] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        tide_ledger *ledger = ledger_new(&bench);
        keep_most(&best[PLAIN], enqueue_all(&bench, ledger, false));
        tide_ledger_close(ledger, true);
        dir_remove(bench.dir);

        ledger = ledger_new(&bench);
        keep_most(&best[KEYED], enqueue_all(&bench, ledger, true));
        keep_most(&best[DRAIN], drain_ledger(&bench, ledger));
        keep_least(&best[DRAIN_CPU], bench.cpu_us / (double)bench.jobs);
        tide_ledger_close(ledger, true);
        dir_remove(bench.dir);
        for (int fenced = 0; fenced < 2; fenced++) {
            ledger = ledger_new(&bench);
            (void)enqueue_all(&bench, ledger, true);
            tide_ledger_close(ledger, true);
            keep_most(&best[RAW_BARE + fenced], drain_raw(&bench, fenced != 0));
            keep_least(&best[RAW_BARE_CPU + fenced], bench.cpu_us / (double)bench.jobs);
            dir_remove(bench.dir);
        }
    }
    figure("ledger_enqueue_dedupe", best[KEYED], "jobs/s", 0, NULL);
    figure("ledger_enqueue_plain", best[PLAIN], "jobs/s", 0, NULL);
    figure("raw_drain", best[RAW], "jobs/s", 0, NULL);
    figure("raw_drain_without_claims", best[RAW_BARE], "jobs/s", 0, NULL);
    compared("ledger_drain", best[DRAIN], "jobs/s", best[RAW], "raw_drain");
    compared("ledger_drain_to_bare", best[DRAIN], "jobs/s", best[RAW_BARE],
             "raw_drain_without_claims");
    figure("raw_drain_cpu", best[RAW_CPU], "us/job", 0, NULL);
    figure("raw_drain_without_claims_cpu", best[RAW_BARE_CPU], "us/job", 0, NULL);
    figure("ledger_drain_cpu", best[DRAIN_CPU], "us/job", best[RAW_CPU] / best[DRAIN_CPU],
           "raw_drain_cpu");
    figure("ledger_transaction_p99", tx_p99_ms(&bench), "ms", 0, NULL);
    figure("ledger_transaction_max", (double)bench.tx_us_max / 1000.0, "ms", 0, NULL);
    tide_world_real_free(bench.world);
    return 0;
}
