/* The simulated world must keep its own promises before it may judge others. */
#include "sim.h"

#include "base/check.h"

#include <jansson.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Never below `least`: a chance must have a chance to strike. */
static uint64_t scaled(uint64_t count, uint64_t least)
{
    const char *percent = getenv("TIDE_TEST_SCALE");
    uint64_t scale = 100;
    if (percent != NULL && !tide_text_to_u64(tide_text_of(percent), &scale))
        scale = 100;
    uint64_t result = count * scale / 100;
    return result < least ? least : result;
}

/* ---- threads, locks, conditions ------------------------------------------ */

enum { COUNTERS = 6, ROUNDS = 200 };

struct shared {
    tide_sim *sim;
    tide_world *world;
    tide_lock *lock;
    tide_cond *cond;
    uint64_t count;
    uint32_t inside;
    uint32_t waiting;
    uint32_t woken;
    uint32_t timeouts;
    uint32_t stopped;
    bool go;
    tide_cancel cancel;
};

static void shared_init(struct shared *shared, uint64_t seed,
                        const struct tide_sim_options *options)
{
    memset(shared, 0, sizeof *shared);
    shared->sim = tide_sim_new(seed, options);
    shared->world = tide_sim_world(shared->sim);
    assert_int_equal(tide_lock_new(shared->world, &shared->lock), TIDE_OK);
    assert_int_equal(tide_cond_new(shared->world, &shared->cond), TIDE_OK);
}

static void shared_done(struct shared *shared)
{
    tide_cond_free(shared->world, shared->cond);
    tide_lock_free(shared->world, shared->lock);
    tide_sim_free(shared->sim);
}

static tide_thread *start(struct shared *shared, const char *name, void (*run)(void *arg),
                          void *arg)
{
    tide_thread *thread = NULL;
    assert_int_equal(tide_world_thread(shared->world, name, run, arg, &thread, NULL), TIDE_OK);
    return thread;
}

static void count_up(void *arg)
{
    struct shared *shared = arg;
    for (int i = 0; i < ROUNDS; i++) {
        tide_lock_take(shared->world, shared->lock);
        TIDE_SIM_EXPECT(shared->sim, shared->inside == 0);
        shared->inside++;
        uint64_t count = shared->count;
        tide_cond_wake_all(shared->world, shared->cond); /* a chance to lose the baton */
        shared->count = count + 1;
        shared->inside--;
        tide_lock_drop(shared->world, shared->lock);
    }
}

/* Read, give others a chance, write: only exclusion makes the sum come out. */
static void a_lock_admits_one_thread_at_a_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct shared shared;
        const struct tide_sim_options options = {.unfair = seed % 2 == 0};
        shared_init(&shared, seed, &options);
        tide_thread *threads[COUNTERS];
        for (int i = 0; i < COUNTERS; i++)
            threads[i] = start(&shared, "counter", count_up, &shared);
        for (int i = 0; i < COUNTERS; i++)
            tide_world_join(shared.world, threads[i]);
        assert_int_equal(shared.count, COUNTERS * ROUNDS);
        assert_true(tide_sim_stats(shared.sim).switches > 100);
        shared_done(&shared);
    }
}

static void wait_for_go(void *arg)
{
    struct shared *shared = arg;
    tide_lock_take(shared->world, shared->lock);
    shared->waiting++;
    tide_status rc = TIDE_OK;
    while (!shared->go && rc != TIDE_STOPPED)
        rc = tide_cond_wait(shared->world, shared->cond, shared->lock, TIDE_NEVER);
    if (rc == TIDE_STOPPED)
        shared->stopped++;
    else
        shared->woken++;
    shared->go = false;
    tide_lock_drop(shared->world, shared->lock);
}

/* Lets every other thread run until it waits. */
static void let_them_run(struct shared *shared)
{
    uint64_t soon_us = tide_world_now_us(shared->world) + 1000 * 1000;
    (void)tide_world_sleep_until(shared->world, soon_us, NULL);
}

static void wake_one_wakes_one_and_wake_all_wakes_all(void **state)
{
    (void)state;
    struct shared shared;
    shared_init(&shared, 7, NULL);
    tide_thread *threads[COUNTERS];
    for (int i = 0; i < COUNTERS; i++)
        threads[i] = start(&shared, "waiter", wait_for_go, &shared);
    let_them_run(&shared);
    assert_int_equal(shared.waiting, COUNTERS);
    assert_int_equal(shared.woken, 0);

    tide_lock_take(shared.world, shared.lock);
    shared.go = true;
    tide_lock_drop(shared.world, shared.lock);
    tide_cond_wake_one(shared.world, shared.cond);
    let_them_run(&shared);
    assert_int_equal(shared.woken, 1);

    /* All are woken, the first takes the permission away again. */
    shared.go = true;
    tide_cond_wake_all(shared.world, shared.cond);
    let_them_run(&shared);
    assert_int_equal(shared.woken, 2);
    for (int i = 2; i < COUNTERS; i++) {
        shared.go = true;
        tide_cond_wake_all(shared.world, shared.cond);
        let_them_run(&shared);
    }
    for (int i = 0; i < COUNTERS; i++)
        tide_world_join(shared.world, threads[i]);
    assert_int_equal(shared.woken, COUNTERS);
    shared_done(&shared);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    struct shared shared;
    shared_init(&shared, 3, NULL);
    uint64_t start_us = tide_world_now_us(shared.world);
    tide_lock_take(shared.world, shared.lock);
    assert_int_equal(
        tide_cond_wait(shared.world, shared.cond, shared.lock, start_us + 5 * 1000 * 1000),
        TIDE_TIMEOUT);
    tide_lock_drop(shared.world, shared.lock);
    uint64_t waited_us = tide_world_now_us(shared.world) - start_us;
    assert_in_range(waited_us, 5 * 1000 * 1000, 5 * 1000 * 1000 + 1000);
    shared_done(&shared);
}

static void waits_may_end_for_no_reason(void **state)
{
    (void)state;
    struct shared shared;
    const struct tide_sim_options options = {.spurious_permille = 500};
    shared_init(&shared, 5, &options);
    uint32_t for_no_reason = 0;
    tide_lock_take(shared.world, shared.lock);
    for (int i = 0; i < 100; i++) {
        uint64_t until_us = tide_world_now_us(shared.world) + 1000;
        for_no_reason +=
            tide_cond_wait(shared.world, shared.cond, shared.lock, until_us) == TIDE_OK;
    }
    tide_lock_drop(shared.world, shared.lock);
    assert_in_range(for_no_reason, 20, 80);
    assert_int_equal(for_no_reason, tide_sim_stats(shared.sim).spurious);
    shared_done(&shared);
}

/* ---- time ---------------------------------------------------------------- */

static void days_of_sleep_take_no_time(void **state)
{
    (void)state;
    tide_sim *sim = tide_sim_new(1, NULL);
    tide_world *world = tide_sim_world(sim);
    const uint64_t day_us = 86400ull * 1000 * 1000;
    uint64_t start_us = tide_world_now_us(world);
    uint64_t start_ms = tide_world_now_unix_ms(world);
    for (uint64_t day = 1; day <= 1000; day++)
        assert_int_equal(tide_world_sleep_until(world, start_us + day * day_us, NULL), TIDE_OK);
    assert_in_range(tide_world_now_us(world) - start_us, 1000 * day_us, 1000 * day_us + 1000);
    assert_in_range(tide_world_now_unix_ms(world) - start_ms, 86400ull * 1000 * 1000,
                    86400ull * 1000 * 1000 + 1);
    tide_sim_free(sim);
}

static void the_wall_clock_jumps_alone(void **state)
{
    (void)state;
    tide_sim *sim = tide_sim_new(1, NULL);
    tide_world *world = tide_sim_world(sim);
    uint64_t mono_us = tide_world_now_us(world);
    uint64_t wall_ms = tide_world_now_unix_ms(world);
    tide_sim_wall_jump(sim, -3600 * 1000);
    assert_in_range(tide_world_now_unix_ms(world), wall_ms - 3600 * 1000, wall_ms - 3599 * 1000);
    assert_in_range(tide_world_now_us(world), mono_us, mono_us + 100);
    tide_sim_pause(sim, 7200ull * 1000 * 1000);
    assert_true(tide_world_now_us(world) >= mono_us + 7200ull * 1000 * 1000);
    assert_in_range(tide_world_now_unix_ms(world), wall_ms + 3600 * 1000,
                    wall_ms + 3600 * 1000 + 1000);
    tide_sim_free(sim);
}

static void seeded_pauses_and_jumps_happen(void **state)
{
    (void)state;
    const struct tide_sim_options options = {
        .pause_every_steps = 300, .wall_jump_every_steps = 300, .hiccup_every_steps = 50};
    struct shared shared;
    shared_init(&shared, 11, &options);
    tide_thread *a = start(&shared, "a", count_up, &shared);
    tide_thread *b = start(&shared, "b", count_up, &shared);
    tide_world_join(shared.world, a);
    tide_world_join(shared.world, b);
    struct tide_sim_stats stats = tide_sim_stats(shared.sim);
    assert_true(stats.pauses > 0);
    assert_true(stats.wall_jumps > 0);
    assert_true(stats.hiccups > 0);
    /* and stop when faults are switched off */
    tide_sim_faults(shared.sim, false);
    a = start(&shared, "a", count_up, &shared);
    tide_world_join(shared.world, a);
    assert_int_equal(tide_sim_stats(shared.sim).pauses, stats.pauses);
    assert_int_equal(tide_sim_stats(shared.sim).hiccups, stats.hiccups);
    shared_done(&shared);
}

static void beat_on(void *arg)
{
    struct shared *shared = arg;
    while (!shared->go) {
        shared->count++;
        uint64_t until_us = tide_world_now_us(shared->world) + 1000 * 1000;
        (void)tide_world_sleep_until(shared->world, until_us, NULL);
    }
}

static void a_frozen_thread_stands_still_while_others_run(void **state)
{
    (void)state;
    struct shared shared;
    shared_init(&shared, 2, NULL);
    tide_thread *thread = start(&shared, "left.beat", beat_on, &shared);
    let_them_run(&shared);
    tide_sim_freeze(shared.sim, "left.", 3600ull * 1000 * 1000);
    uint64_t before = shared.count;
    (void)tide_world_sleep_until(shared.world,
                                 tide_world_now_us(shared.world) + 3500ull * 1000 * 1000, NULL);
    assert_in_range(shared.count, before, before + 1);
    (void)tide_world_sleep_until(shared.world,
                                 tide_world_now_us(shared.world) + 200ull * 1000 * 1000, NULL);
    assert_true(shared.count > before + 50);
    shared.go = true;
    tide_world_join(shared.world, thread);
    shared_done(&shared);
}

static void sleep_long(void *arg)
{
    struct shared *shared = arg;
    tide_status rc = tide_world_sleep_until(shared->world, TIDE_NEVER, &shared->cancel);
    shared->woken += rc == TIDE_CANCELED;
    shared->stopped += rc == TIDE_STOPPED;
}

static void cancelling_wakes_a_sleeper_at_once(void **state)
{
    (void)state;
    struct shared shared;
    shared_init(&shared, 2, NULL);
    tide_thread *thread = start(&shared, "sleeper", sleep_long, &shared);
    let_them_run(&shared);
    uint64_t before_us = tide_world_now_us(shared.world);
    tide_world_cancel(shared.world, &shared.cancel, TIDE_CANCEL_PREEMPT);
    tide_world_cancel(shared.world, &shared.cancel, TIDE_CANCEL_STOP);
    tide_world_join(shared.world, thread);
    assert_int_equal(shared.woken, 1);
    assert_int_equal(tide_canceled(&shared.cancel), TIDE_CANCEL_PREEMPT);
    assert_true(tide_world_now_us(shared.world) - before_us < 1000);
    shared_done(&shared);
}

/* ---- reports ------------------------------------------------------------- */

/* Runs `body` in a child that must abort, and gives what it said. */
static void expect_abort(void (*body)(void), const char *first, const char *second)
{
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(pipe_fds[1], STDERR_FILENO);
        (void)close(pipe_fds[0]);
        body();
        _exit(0);
    }
    (void)close(pipe_fds[1]);
    static char said[256 * 1024];
    size_t bytes = 0;
    ssize_t got = 0;
    while (bytes + 1 < sizeof said &&
           (got = read(pipe_fds[0], said + bytes, sizeof said - 1 - bytes)) > 0)
        bytes += (size_t)got;
    said[bytes] = '\0';
    (void)close(pipe_fds[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_non_null(strstr(said, first));
    assert_non_null(strstr(said, second));
}

static void wait_without_end(void *arg)
{
    struct shared *shared = arg;
    tide_lock_take(shared->world, shared->lock);
    (void)tide_cond_wait(shared->world, shared->cond, shared->lock, TIDE_NEVER);
}

static void deadlock_body(void)
{
    struct shared shared;
    shared_init(&shared, 42, NULL);
    tide_thread *thread = start(&shared, "left-alone", wait_without_end, &shared);
    tide_world_join(shared.world, thread);
}

static void lock_cycle(struct shared *shared, tide_lock *first, tide_lock *second)
{
    for (int i = 0; i < 10000; i++) {
        tide_lock_take(shared->world, first);
        tide_lock_take(shared->world, second);
        tide_lock_drop(shared->world, second);
        tide_lock_drop(shared->world, first);
    }
}

static tide_lock *other_lock; /* of the child in which it is set */

static void lock_forwards(void *arg)
{
    struct shared *shared = arg;
    lock_cycle(shared, shared->lock, other_lock);
}

static void lock_backwards(void *arg)
{
    struct shared *shared = arg;
    lock_cycle(shared, other_lock, shared->lock);
}

static void lock_cycle_body(void)
{
    struct shared shared;
    shared_init(&shared, 42, NULL);
    assert_int_equal(tide_lock_new(shared.world, &other_lock), TIDE_OK);
    tide_thread *a = start(&shared, "forwards", lock_forwards, &shared);
    tide_thread *b = start(&shared, "backwards", lock_backwards, &shared);
    tide_world_join(shared.world, a);
    tide_world_join(shared.world, b);
}

static void spin(void *arg)
{
    struct shared *shared = arg;
    while (!shared->go) /* ignores TIDE_STOPPED */
        (void)tide_world_sleep_until(shared->world, TIDE_NEVER, NULL);
}

static void spin_body(void)
{
    struct shared shared;
    shared_init(&shared, 42, NULL);
    tide_thread *thread = start(&shared, "stubborn", spin, &shared);
    let_them_run(&shared);
    tide_sim_crash(shared.sim, TIDE_SIM_CRASH_KILL);
    tide_world_join(shared.world, thread);
}

static void lock_over_sleep_body(void)
{
    struct shared shared;
    shared_init(&shared, 42, NULL);
    tide_lock_take(shared.world, shared.lock);
    let_them_run(&shared);
}

static void unjoined_body(void)
{
    struct shared shared;
    shared_init(&shared, 42, NULL);
    (void)start(&shared, "orphan", wait_without_end, &shared);
    let_them_run(&shared);
    tide_sim_reboot(shared.sim);
}

static void broken_rules_are_reported_by_name(void **state)
{
    (void)state;
    expect_abort(deadlock_body, "deadlock", "left-alone       waits for condition");
    expect_abort(lock_cycle_body, "forwards         waits for lock 3, held by backwards",
                 "backwards        waits for lock 1, held by forwards");
    expect_abort(spin_body, "S4", "stubborn");
    expect_abort(lock_over_sleep_body, "S3", "main holds a lock over a sleep");
    expect_abort(unjoined_body, "S5", "orphan");
}

/* ---- crash --------------------------------------------------------------- */

static void a_crash_ends_every_wait(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct shared shared;
        shared_init(&shared, seed, NULL);
        tide_world *world = shared.world;
        tide_thread *threads[4];
        for (int i = 0; i < 4; i++)
            threads[i] = start(&shared, "waiter", i < 2 ? wait_for_go : sleep_long, &shared);
        let_them_run(&shared);
        uint64_t before_us = tide_world_now_us(world);
        tide_sim_crash(shared.sim, TIDE_SIM_CRASH_SEEDED);
        assert_true(tide_world_dead(world));
        for (int i = 0; i < 4; i++)
            tide_world_join(world, threads[i]);
        assert_int_equal(shared.stopped, 4);
        assert_int_equal(tide_world_sleep_until(world, 0, NULL), TIDE_STOPPED);
        tide_thread *none = NULL;
        assert_int_equal(tide_world_thread(world, "late", beat_on, &shared, &none, NULL),
                         TIDE_STOPPED);
        assert_null(none);

        tide_sim_reboot(shared.sim);
        assert_false(tide_world_dead(world));
        assert_int_equal(tide_sim_life(shared.sim), 2);
        assert_true(tide_world_now_us(world) > before_us + 5000);
        tide_cancel none_yet = {0};
        assert_int_equal(tide_world_sleep_until(world, 0, &none_yet), TIDE_OK);
        shared_done(&shared);
    }
}

static void a_planned_crash_comes_at_its_step(void **state)
{
    (void)state;
    for (uint64_t step = 50; step < 80; step++) {
        const struct tide_sim_options options = {.crash_at_step = step, .unfair = step % 2 == 0};
        struct shared shared;
        shared_init(&shared, 9, &options);
        while (!tide_world_dead(shared.world)) {
            tide_lock_take(shared.world, shared.lock);
            tide_lock_drop(shared.world, shared.lock);
        }
        assert_int_equal(tide_sim_stats(shared.sim).steps, step + step % 2);
        tide_sim_reboot(shared.sim);
        tide_sim_crash_after(shared.sim, 10, TIDE_SIM_CRASH_KILL);
        uint64_t from = tide_sim_stats(shared.sim).steps;
        while (!tide_world_dead(shared.world))
            (void)tide_world_sleep_until(shared.world, 0, NULL);
        assert_int_equal(tide_sim_stats(shared.sim).steps, from + 10);
        shared_done(&shared);
    }
}

/* ---- SQLite on the disk that forgets ------------------------------------- */

struct bank {
    tide_sim *sim;
    tide_world *world;
    const char *journal;     /* "WAL" */
    const char *synchronous; /* "FULL" */
    sqlite3_int64 tried;     /* the highest number whose commit was begun */
    sqlite3_int64 committed; /* the highest number whose commit was reported */
    bool stop;
    int last_error;
};

static int sql_run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int first_number(void *arg, int count, char **values, char **names)
{
    (void)names;
    if (count > 0 && values[0] != NULL)
        *(sqlite3_int64 *)arg = strtoll(values[0], NULL, 10);
    return 0;
}

static sqlite3_int64 sql_number(sqlite3 *db, const char *sql)
{
    sqlite3_int64 number = -1;
    (void)sqlite3_exec(db, sql, first_number, &number, NULL);
    return number;
}

static sqlite3 *bank_open(struct bank *bank)
{
    sqlite3 *db = NULL;
    char sql[200];
    int rc = sqlite3_open_v2("/bank.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                             tide_world_vfs(bank->world));
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(db, 10000);
    (void)snprintf(sql, sizeof sql, "PRAGMA journal_mode=%s; PRAGMA synchronous=%s;", bank->journal,
                   bank->synchronous);
    if (rc == SQLITE_OK)
        rc = sql_run(db, sql);
    if (rc == SQLITE_OK)
        rc = sql_run(db, "PRAGMA wal_autocheckpoint=40; PRAGMA cache_size=10;"
                         "CREATE TABLE IF NOT EXISTS entry(number INTEGER PRIMARY KEY, text TEXT);"
                         "CREATE TABLE IF NOT EXISTS total(id INTEGER PRIMARY KEY, sum INTEGER);"
                         "INSERT OR IGNORE INTO total VALUES(1, 0);");
    if (rc != SQLITE_OK) {
        bank->last_error = rc;
        (void)sqlite3_close(db);
        return NULL;
    }
    return db;
}

/* Several rows and a running sum per transaction, so that half a transaction
 * would show. */
static int bank_commit(struct bank *bank, sqlite3 *db, sqlite3_int64 number)
{
    char sql[400];
    (void)snprintf(sql, sizeof sql,
                   "BEGIN IMMEDIATE;"
                   "INSERT INTO entry SELECT %lld + value, hex(zeroblob(%lld)) FROM "
                   "(SELECT 0 AS value UNION ALL SELECT 1 UNION ALL SELECT 2);"
                   "UPDATE total SET sum = sum + %lld; COMMIT;",
                   (long long)number * 3, (long long)(number * 37 % 900), (long long)number);
    bank->tried = number;
    int rc = sql_run(db, sql);
    if (rc == SQLITE_OK)
        bank->committed = number;
    else
        (void)sql_run(db, "ROLLBACK");
    return rc;
}

static void bank_write(void *arg)
{
    struct bank *bank = arg;
    sqlite3 *db = bank_open(bank);
    while (db != NULL && !tide_world_dead(bank->world)) {
        int rc = bank_commit(bank, db, bank->tried + 1);
        if (rc == SQLITE_BUSY)
            bank->tried--;
        else if (rc != SQLITE_OK)
            break;
    }
    (void)sqlite3_close(db);
}

/* Reads and checkpoints beside the writer, on a connection of its own. */
static void bank_read(void *arg)
{
    struct bank *bank = arg;
    sqlite3 *db = bank_open(bank);
    while (db != NULL && !tide_world_dead(bank->world)) {
        sqlite3_int64 committed = bank->committed;
        sqlite3_int64 seen = sql_number(db, "SELECT max(number) / 3 FROM entry");
        if (!tide_world_dead(bank->world) && seen >= 0)
            TIDE_SIM_EXPECT(bank->sim, seen >= committed);
        if (sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
            SQLITE_IOERR)
            break;
        uint64_t until_us = tide_world_now_us(bank->world) + 20 * 1000;
        if (tide_world_sleep_until(bank->world, until_us, NULL) != TIDE_OK)
            break;
    }
    (void)sqlite3_close(db);
}

/* What must hold after every reboot; true when a reported commit is gone. */
static bool bank_check(struct bank *bank)
{
    tide_sim *sim = bank->sim;
    sqlite3 *db = bank_open(bank);
    TIDE_SIM_EXPECT(sim, db != NULL);
    sqlite3_int64 sound = 0;
    TIDE_SIM_EXPECT(sim,
                    sqlite3_exec(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check",
                                 first_number, &sound, NULL) == SQLITE_OK);
    TIDE_SIM_EXPECT(sim, sound == 1);
    sqlite3_int64 last = sql_number(db, "SELECT coalesce(max(number) / 3, 0) FROM entry");
    TIDE_SIM_EXPECT(sim, sql_number(db, "SELECT count(*) FROM entry") == last * 3);
    TIDE_SIM_EXPECT(sim, sql_number(db, "SELECT sum FROM total") == last * (last + 1) / 2);
    TIDE_SIM_EXPECT(sim, last <= bank->tried);
    bool lost = last < bank->committed;
    bank->tried = last;
    bank->committed = last;
    (void)sqlite3_close(db);
    return lost;
}

/* One life: writer and reader until the crash. */
static void bank_live_and_crash(struct bank *bank, tide_rng *rng, tide_sim_crash_kind kind)
{
    tide_thread *threads[2] = {NULL, NULL};
    tide_sim_crash_after(bank->sim, 1 + tide_rng_below(rng, 800), kind);
    (void)tide_world_thread(bank->world, "writer", bank_write, bank, &threads[0], NULL);
    (void)tide_world_thread(bank->world, "reader", bank_read, bank, &threads[1], NULL);
    (void)tide_world_sleep_until(bank->world, TIDE_NEVER, NULL);
    tide_world_join(bank->world, threads[0]);
    tide_world_join(bank->world, threads[1]);
}

struct bank_sum {
    uint64_t crashes;
    uint64_t lost;
    uint64_t commits;
    struct tide_sim_disk_stats disk;
};

static struct bank_sum bank_run(const char *journal, const char *synchronous, uint64_t crashes,
                                tide_sim_crash_kind kind)
{
    struct bank_sum sum = {0};
    for (uint64_t seed = 1; sum.crashes < crashes; seed++) {
        struct bank bank = {.journal = journal, .synchronous = synchronous};
        bank.sim = tide_sim_new(seed, NULL);
        bank.world = tide_sim_world(bank.sim);
        tide_rng rng = tide_sim_rng(bank.sim);
        for (int life = 0; life < 10; life++) {
            sqlite3_int64 before = bank.committed;
            bank_live_and_crash(&bank, &rng, kind);
            sum.commits += (uint64_t)(bank.committed - before);
            sum.crashes++;
            tide_sim_reboot(bank.sim);
            sum.lost += bank_check(&bank);
        }
        struct tide_sim_disk_stats disk = tide_sim_disk_stats(bank.sim);
        sum.disk.kept += disk.kept;
        sum.disk.dropped += disk.dropped;
        sum.disk.torn += disk.torn;
        tide_sim_free(bank.sim);
    }
    print_message("%s %s: %" PRIu64 " crashes, %" PRIu64 " commits, lost in %" PRIu64
                  "; unsynced writes kept %" PRIu64 ", dropped %" PRIu64 ", torn %" PRIu64 "\n",
                  journal, synchronous, sum.crashes, sum.commits, sum.lost, sum.disk.kept,
                  sum.disk.dropped, sum.disk.torn);
    return sum;
}

static void a_full_commit_survives_every_power_loss(void **state)
{
    (void)state;
    struct bank_sum sum = bank_run("WAL", "FULL", scaled(2500, 60), TIDE_SIM_CRASH_POWER);
    assert_int_equal(sum.lost, 0);
    assert_true(sum.commits > sum.crashes);
    assert_true(sum.disk.kept > 0);
    assert_true(sum.disk.dropped > 0);
    assert_true(sum.disk.torn > 0);
}

static void a_normal_commit_is_lost_at_times_but_nothing_is_corrupt(void **state)
{
    (void)state;
    struct bank_sum sum = bank_run("WAL", "NORMAL", scaled(300, 60), TIDE_SIM_CRASH_POWER);
    assert_true(sum.lost > sum.crashes / 10);
}

static void a_killed_process_loses_nothing_even_unsynced(void **state)
{
    (void)state;
    struct bank_sum sum = bank_run("WAL", "OFF", scaled(300, 60), TIDE_SIM_CRASH_KILL);
    assert_int_equal(sum.lost, 0);
    assert_int_equal(sum.disk.dropped, 0);
}

/* With a rollback journal the commit is the removal of a file, and SQLite
 * syncs the directory after it only at EXTRA: so this shows that removals are
 * forgotten too. */
static void a_removed_journal_comes_back_unless_the_directory_was_synced(void **state)
{
    (void)state;
    struct bank_sum extra = bank_run("DELETE", "EXTRA", scaled(300, 60), TIDE_SIM_CRASH_POWER);
    assert_int_equal(extra.lost, 0);
    struct bank_sum full = bank_run("DELETE", "FULL", scaled(300, 60), TIDE_SIM_CRASH_POWER);
    assert_true(full.lost > 0);
}

static void a_full_disk_is_reported_and_heals(void **state)
{
    (void)state;
    struct bank bank = {.journal = "WAL", .synchronous = "FULL"};
    bank.sim = tide_sim_new(1, NULL);
    bank.world = tide_sim_world(bank.sim);
    sqlite3 *db = bank_open(&bank);
    assert_non_null(db);
    assert_int_equal(bank_commit(&bank, db, 1), SQLITE_OK);
    tide_sim_disk_room(bank.sim, tide_sim_disk_used(bank.sim) + 3000);
    sqlite3_int64 number = 2;
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK)
        rc = bank_commit(&bank, db, number++);
    assert_int_equal(rc, SQLITE_FULL);
    uint64_t left_bytes = UINT64_MAX;
    assert_int_equal(tide_disk_free(bank.world, "/bank.db", &left_bytes, NULL), TIDE_OK);
    assert_true(left_bytes < 3000);
    tide_error err;
    assert_int_equal(tide_file_replace(bank.world, "/note", TIDE_TEXT("x"), 0600, &err), TIDE_OK);
    char large[4000];
    memset(large, 'x', sizeof large);
    assert_int_equal(
        tide_file_replace(bank.world, "/note", (tide_text){large, sizeof large}, 0600, &err),
        TIDE_DISK_FULL);

    tide_sim_disk_room(bank.sim, 1 << 30);
    sqlite3_int64 again = bank.committed + 1;
    assert_int_equal(bank_commit(&bank, db, again), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    tide_sim_crash(bank.sim, TIDE_SIM_CRASH_POWER);
    tide_sim_reboot(bank.sim);
    assert_false(bank_check(&bank));
    assert_int_equal(bank.committed, again);
    tide_sim_free(bank.sim);
}

static void a_failed_write_or_sync_is_reported(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct bank bank = {.journal = "WAL", .synchronous = "FULL"};
        bank.sim = tide_sim_new(seed, NULL);
        bank.world = tide_sim_world(bank.sim);
        sqlite3 *db = bank_open(&bank);
        assert_non_null(db);
        for (sqlite3_int64 number = 1; number <= 5; number++)
            assert_int_equal(bank_commit(&bank, db, number), SQLITE_OK);
        if (seed % 2 == 0)
            tide_sim_disk_fail_sync(bank.sim, "-wal", 1);
        else
            tide_sim_disk_fail_write(bank.sim, "-wal", 1);
        assert_int_equal(bank_commit(&bank, db, 6) & 0xff, SQLITE_IOERR);
        /* The store stops here (E1.10).  What was reported before is there. */
        tide_sim_crash(bank.sim, TIDE_SIM_CRASH_POWER);
        assert_int_equal(sql_run(db, "SELECT count(*) FROM entry") & 0xff, SQLITE_IOERR);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        tide_sim_reboot(bank.sim);
        assert_false(bank_check(&bank));
        assert_true(bank.committed >= 5);
        tide_sim_free(bank.sim);
    }
}

/* The file as SQLite's methods see it, without SQLite. */
static sqlite3_file *raw_open(tide_world *world, const char *path)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(tide_world_vfs(world));
    assert_non_null(vfs);
    sqlite3_file *file = calloc(1, (size_t)vfs->szOsFile);
    assert_non_null(file);
    assert_int_equal(vfs->xOpen(vfs, path, file,
                                SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB,
                                NULL),
                     SQLITE_OK);
    return file;
}

static void raw_close(sqlite3_file *file)
{
    assert_int_equal(file->pMethods->xClose(file), SQLITE_OK);
    free(file);
}

/* D3: the second sync has nothing left to write, and says so with success. */
static void syncing_again_after_a_failed_sync_does_not_help(void **state)
{
    (void)state;
    uint32_t lost = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        tide_sim *sim = tide_sim_new(seed, NULL);
        tide_world *world = tide_sim_world(sim);
        sqlite3_file *file = raw_open(world, "/file");
        char seen[4] = "";
        assert_int_equal(file->pMethods->xWrite(file, "old", 3, 0), SQLITE_OK);
        assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
        assert_int_equal(file->pMethods->xWrite(file, "new", 3, 0), SQLITE_OK);
        tide_sim_disk_fail_sync(sim, NULL, 1);
        assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_IOERR_FSYNC);
        assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
        assert_int_equal(file->pMethods->xRead(file, seen, 3, 0), SQLITE_OK);
        assert_string_equal(seen, "new");
        tide_sim_crash(sim, TIDE_SIM_CRASH_POWER);
        assert_int_equal(file->pMethods->xRead(file, seen, 3, 0), SQLITE_IOERR_READ);
        tide_sim_reboot(sim);
        assert_int_equal(file->pMethods->xRead(file, seen, 3, 0), SQLITE_IOERR_READ); /* D4 */
        raw_close(file);
        file = raw_open(world, "/file");
        assert_int_equal(file->pMethods->xRead(file, seen, 3, 0), SQLITE_OK);
        assert_true(strcmp(seen, "old") == 0 || strcmp(seen, "new") == 0);
        lost += strcmp(seen, "old") == 0;
        raw_close(file);
        tide_sim_free(sim);
    }
    assert_in_range(lost, 50, 95);
}

/* Two unsynced writes in different sectors: all four outcomes must occur, also
 * the one where only the later is kept. */
static void unsynced_writes_meet_every_fate(void **state)
{
    (void)state;
    uint32_t outcomes[4] = {0};
    uint32_t torn = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        tide_sim *sim = tide_sim_new(seed, NULL);
        tide_world *world = tide_sim_world(sim);
        sqlite3_file *file = raw_open(world, "/file");
        char zeros[8192] = {0};
        char ones[8192];
        memset(ones, 1, sizeof ones);
        assert_int_equal(file->pMethods->xWrite(file, zeros, sizeof zeros, 0), SQLITE_OK);
        assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
        assert_int_equal(file->pMethods->xWrite(file, ones, 4096, 0), SQLITE_OK);
        assert_int_equal(file->pMethods->xWrite(file, ones, 4096, 4096), SQLITE_OK);
        tide_sim_crash(sim, TIDE_SIM_CRASH_POWER);
        tide_sim_reboot(sim);
        raw_close(file);
        file = raw_open(world, "/file");
        assert_int_equal(file->pMethods->xRead(file, zeros, sizeof zeros, 0), SQLITE_OK);
        uint32_t sum[2] = {0};
        for (size_t i = 0; i < sizeof zeros; i++)
            sum[i / 4096] += zeros[i] != 0 ? 1u : 0u;
        if (sum[0] % 4096 == 0 && sum[1] % 4096 == 0)
            outcomes[sum[0] / 4096 + 2 * (sum[1] / 4096)]++;
        else
            torn++;
        raw_close(file);
        tide_sim_free(sim);
    }
    for (int i = 0; i < 4; i++)
        assert_true(outcomes[i] > 10);
    assert_true(torn > 20);
}

/* ---- files --------------------------------------------------------------- */

static void replace_and_die(void *arg)
{
    struct shared *shared = arg;
    (void)tide_file_replace(shared->world, "/token", TIDE_TEXT("the new one"), 0600, NULL);
}

static void a_replaced_file_is_the_old_or_the_new_one(void **state)
{
    (void)state;
    uint32_t old_count = 0;
    uint32_t new_count = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct shared shared;
        shared_init(&shared, seed, NULL);
        assert_int_equal(tide_file_replace(shared.world, "/token", TIDE_TEXT("old"), 0600, NULL),
                         TIDE_OK);
        tide_thread *thread = start(&shared, "replacer", replace_and_die, &shared);
        uint64_t until_us = tide_world_now_us(shared.world) + seed * 30;
        (void)tide_world_sleep_until(shared.world, until_us, NULL);
        tide_sim_crash(shared.sim, TIDE_SIM_CRASH_POWER);
        tide_world_join(shared.world, thread);
        tide_sim_reboot(shared.sim);
        tide_buf content;
        tide_buf_init(&content, tide_mem_heap(), 1000);
        assert_int_equal(tide_file_read(shared.world, "/token", 1000, &content, NULL), TIDE_OK);
        bool is_old = strcmp(tide_buf_cstr(&content), "old") == 0;
        bool is_new = strcmp(tide_buf_cstr(&content), "the new one") == 0;
        assert_true(is_old || is_new);
        old_count += is_old;
        new_count += is_new;
        tide_buf_done(&content);
        shared_done(&shared);
    }
    assert_true(old_count > 20);
    assert_true(new_count > 20);
}

static void file_seen(const char *name, void *arg)
{
    uint32_t *files = arg;
    assert_string_equal(name, "c");
    (*files)++;
}

static void files_follow_the_contract(void **state)
{
    (void)state;
    tide_sim *sim = tide_sim_new(4, NULL);
    tide_world *world = tide_sim_world(sim);
    tide_error err;
    tide_buf content;
    tide_buf_init(&content, tide_mem_heap(), 1000);
    assert_int_equal(tide_file_read(world, "/none", 10, &content, &err), TIDE_NOT_FOUND);
    assert_int_equal(tide_file_replace(world, "/a/b/c", TIDE_TEXT("x"), 0600, &err), TIDE_IO);
    assert_int_equal(tide_dir_make(world, "/a/b", &err), TIDE_OK);
    assert_int_equal(tide_file_replace(world, "/a/b/c", TIDE_TEXT("four"), 0600, &err), TIDE_OK);
    assert_int_equal(tide_file_replace(world, "/a/b2", TIDE_TEXT("x"), 0600, &err), TIDE_OK);
    uint32_t files = 0;
    assert_int_equal(tide_dir_list(world, "/a/b", file_seen, &files, &err), TIDE_OK);
    assert_int_equal(files, 1);
    assert_int_equal(tide_dir_list(world, "/a/c", file_seen, &files, &err), TIDE_NOT_FOUND);
    assert_int_equal(tide_file_read(world, "/a/b/c", 3, &content, &err), TIDE_FULL);
    assert_int_equal(tide_file_read(world, "/a/b/c", 4, &content, &err), TIDE_OK);
    assert_int_equal(tide_file_remove(world, "/a/b/c", &err), TIDE_OK);
    assert_int_equal(tide_file_remove(world, "/a/b/c", &err), TIDE_NOT_FOUND);
    tide_sim_crash(sim, TIDE_SIM_CRASH_POWER);
    assert_int_equal(tide_file_read(world, "/a/b/c", 4, &content, &err), TIDE_STOPPED);
    tide_sim_reboot(sim);
    assert_int_equal(tide_file_read(world, "/a/b/c", 4, &content, &err), TIDE_NOT_FOUND);
    tide_buf_done(&content);
    tide_sim_free(sim);
}

static void a_file_lock_ends_with_its_process(void **state)
{
    (void)state;
    tide_sim *sim = tide_sim_new(4, NULL);
    tide_world *world = tide_sim_world(sim);
    tide_error err;
    tide_file_lock *first = NULL;
    tide_file_lock *second = NULL;
    assert_int_equal(tide_file_lock_take(world, "/lock", TIDE_TEXT("pid 1"), &first, &err),
                     TIDE_OK);
    assert_int_equal(tide_file_lock_take(world, "/lock", TIDE_TEXT("pid 2"), &second, &err),
                     TIDE_BUSY);
    assert_string_equal(err.text, "pid 1");
    tide_file_lock_drop(world, first);
    assert_int_equal(tide_file_lock_take(world, "/lock", TIDE_TEXT("pid 2"), &second, &err),
                     TIDE_OK);
    tide_sim_crash(sim, TIDE_SIM_CRASH_KILL);
    tide_sim_reboot(sim);
    assert_int_equal(tide_file_lock_take(world, "/lock", TIDE_TEXT("pid 3"), &first, &err),
                     TIDE_OK);
    tide_file_lock_drop(world, second); /* of the life before: changes nothing */
    assert_int_equal(tide_file_lock_take(world, "/lock", TIDE_TEXT("pid 4"), &second, &err),
                     TIDE_BUSY);
    tide_file_lock_drop(world, first);
    tide_sim_free(sim);
}

/* ---- network ------------------------------------------------------------- */

struct echo {
    uint64_t effects;
    uint64_t last_ms;
    size_t body_bytes;
    uint64_t think_us;
    size_t got_bytes;
};

/* Answers with `body_bytes` letters, or with the request's body. */
static void echo_provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                         tide_rng *rng, struct tide_sim_answer *answer)
{
    struct echo *echo = arg;
    (void)rng;
    assert_true(now_unix_ms >= echo->last_ms);
    echo->last_ms = now_unix_ms;
    echo->effects++;
    echo->got_bytes = request->body.bytes;
    answer->http = 200;
    answer->think_us = echo->think_us;
    tide_sim_answer_header(answer, "X-Echo", "yes");
    for (size_t i = 0; i < echo->body_bytes; i++)
        assert_int_equal(tide_buf_add(&answer->body, "x", 1), TIDE_OK);
    if (echo->body_bytes == 0)
        assert_int_equal(tide_buf_add(&answer->body, request->body.data, request->body.bytes),
                         TIDE_OK);
}

struct called {
    tide_status status;
    int http;
    uint64_t took_us;
    size_t body_bytes;
    bool echo_header;
};

static struct called call_once(tide_sim *sim, const struct tide_request *request,
                               const tide_cancel *cancel)
{
    tide_world *world = tide_sim_world(sim);
    struct tide_response response;
    tide_error err;
    tide_response_init(&response, tide_mem_heap());
    struct called called = {0};
    uint64_t start_us = tide_world_now_us(world);
    called.status = tide_world_call(world, request, &response, cancel, &err);
    called.took_us = tide_world_now_us(world) - start_us;
    called.http = response.http;
    called.body_bytes = (size_t)response.body_bytes;
    called.echo_header =
        tide_text_equal(tide_response_header(&response, "x-echo"), TIDE_TEXT("yes"));
    tide_response_done(&response);
    return called;
}

static struct tide_sim_options echo_options(struct echo *echo)
{
    return (struct tide_sim_options){.net = {.provide = echo_provide, .provide_arg = echo}};
}

static void a_call_arrives_and_answers(void **state)
{
    (void)state;
    struct echo echo = {0};
    struct tide_sim_options options = echo_options(&echo);
    tide_sim *sim = tide_sim_new(1, &options);
    struct tide_request request = {
        .method = "POST", .url = "https://x/", .body = TIDE_TEXT("hello")};
    struct called called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_OK);
    assert_int_equal(called.http, 200);
    assert_int_equal(called.body_bytes, 5);
    assert_true(called.echo_header);
    assert_in_range(called.took_us, 1, 4 * 40000 + 1000);
    assert_int_equal(echo.effects, 1);

    echo.body_bytes = 1000;
    request.body_bytes_max = 999;
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_FULL);
    tide_sim_net_down(sim, true);
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_NETWORK);
    assert_int_equal(echo.effects, 2);
    tide_sim_crash(sim, TIDE_SIM_CRASH_KILL);
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_STOPPED);
    tide_sim_free(sim);
}

struct sums {
    size_t bytes;
    size_t parts;
    tide_status then;
};

static tide_status sums_write(void *arg, const char *bytes, size_t count)
{
    struct sums *sums = arg;
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 'x')
            return TIDE_CORRUPT;
    sums->bytes += count;
    sums->parts++;
    return sums->then;
}

static tide_status sums_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct sums *sums = arg;
    size_t count = sums->bytes < room ? sums->bytes : room;
    memset(bytes, 'x', count);
    sums->bytes -= count;
    sums->parts++;
    *count_out = count;
    return TIDE_OK;
}

static void bodies_stream_in_parts(void **state)
{
    (void)state;
    struct echo echo = {.body_bytes = 300000};
    struct tide_sim_options options = echo_options(&echo);
    tide_sim *sim = tide_sim_new(1, &options);
    tide_world *world = tide_sim_world(sim);
    struct sums down = {0};
    struct sums up = {.bytes = 200000};
    tide_byte_budget *budget = tide_budget_new(world, 1000);
    struct tide_request request = {.method = "PUT",
                                   .url = "https://x/",
                                   .source = sums_read,
                                   .source_arg = &up,
                                   .source_bytes = 200000,
                                   .sink = sums_write,
                                   .sink_arg = &down,
                                   .budget = budget};
    struct called called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_OK);
    assert_int_equal(called.body_bytes, 300000);
    assert_int_equal(down.bytes, 300000);
    assert_int_equal(echo.got_bytes, 200000);
    assert_true(down.parts > 10);
    assert_true(up.parts > 10);

    up.bytes = 200000;
    down.then = TIDE_DISK_FULL;
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_DISK_FULL);
    tide_budget_free(world, budget);
    tide_sim_free(sim);
}

static void timeouts_end_a_call_in_time(void **state)
{
    (void)state;
    struct echo echo = {.think_us = 100ull * 1000 * 1000};
    struct tide_sim_options options = echo_options(&echo);
    tide_sim *sim = tide_sim_new(1, &options);
    struct tide_request request = {.method = "GET", .url = "https://x/"};
    struct called called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_TIMEOUT);
    assert_in_range(called.took_us, 60000000, 60000000 + 1000);
    request.stall_timeout_ms = 1000;
    called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_TIMEOUT);
    assert_in_range(called.took_us, 1000000, 1000000 + 1000);
    request.stall_timeout_ms = 0;
    request.total_timeout_ms = 5000;
    called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_TIMEOUT);
    assert_in_range(called.took_us, 5000000, 5000000 + 1000);
    request.total_timeout_ms = 0;
    request.stall_timeout_ms = 200000;
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_OK);
    tide_sim_free(sim);
}

struct fault_case {
    const char *name;
    uint32_t *permille;
    tide_status get;  /* what a GET may end in, beside TIDE_OK */
    tide_status post; /* a POST */
    bool all;         /* every call fails */
};

/* Each fault alone, always striking: statuses as the contract says, and the
 * provider saw what may have been seen. */
static void every_fault_has_its_status(void **state)
{
    (void)state;
    struct tide_sim_options o;
    struct fault_case cases[] = {
        {"refuse", &o.net.refuse_permille, TIDE_NETWORK, TIDE_NETWORK, true},
        {"loss", &o.net.loss_permille, TIDE_NETWORK, TIDE_NETWORK, true},
        {"reset", &o.net.reset_permille, TIDE_UNKNOWN, TIDE_UNKNOWN, true},
        {"stall", &o.net.stall_permille, TIDE_TIMEOUT, TIDE_TIMEOUT, true},
        {"truncate", &o.net.truncate_permille, TIDE_SERVER, TIDE_UNKNOWN, true},
        {"garbage", &o.net.garbage_permille, TIDE_OK, TIDE_OK, false},
        {"duplicate", &o.net.duplicate_permille, TIDE_OK, TIDE_OK, false},
        {"slow", &o.net.slow_permille, TIDE_OK, TIDE_OK, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct echo echo = {.body_bytes = 20000};
        o = echo_options(&echo);
        *cases[i].permille = 1000;
        tide_sim *sim = tide_sim_new(100 + i, &o);
        for (int round = 0; round < 40; round++) {
            struct tide_request request = {.method = round % 2 ? "POST" : "GET",
                                           .url = "https://x/"};
            struct called called = call_once(sim, &request, NULL);
            assert_int_equal(called.status, round % 2 ? cases[i].post : cases[i].get);
        }
        tide_sim_pause(sim, 1000ull * 1000 * 1000);
        tide_sim_net_settle(sim);
        struct tide_sim_net_stats stats = tide_sim_net_stats(sim);
        assert_int_equal(stats.calls, 40);
        assert_int_equal(stats.effects, echo.effects);
        if (strcmp(cases[i].name, "refuse") == 0 || strcmp(cases[i].name, "loss") == 0)
            assert_int_equal(echo.effects, 0); /* N3 */
        if (strcmp(cases[i].name, "reset") == 0)
            assert_in_range(echo.effects, 8, 32);
        if (strcmp(cases[i].name, "duplicate") == 0)
            assert_int_equal(echo.effects, 80);
        if (cases[i].all) { /* and none of it with faults off */
            tide_sim_faults(sim, false);
            struct tide_request request = {.method = "GET", .url = "https://x/"};
            assert_int_equal(call_once(sim, &request, NULL).status, TIDE_OK);
        }
        tide_sim_free(sim);
    }
}

struct caller {
    struct shared *shared;
    struct called called;
};

static void call_slowly(void *arg)
{
    struct caller *caller = arg;
    struct tide_request request = {.method = "POST", .url = "https://x/", .body = TIDE_TEXT("a")};
    caller->called = call_once(caller->shared->sim, &request, &caller->shared->cancel);
}

static void cancelling_reaches_a_call_at_once_and_its_effect_may_still_come(void **state)
{
    (void)state;
    uint64_t effects = 0;
    uint64_t ghosts = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct echo echo = {.think_us = 50ull * 1000 * 1000};
        struct tide_sim_options options = echo_options(&echo);
        options.net.latency_us_max = 10 * 1000 * 1000;
        struct shared shared;
        shared_init(&shared, seed, &options);
        struct caller caller = {.shared = &shared};
        tide_thread *thread = start(&shared, "caller", call_slowly, &caller);
        let_them_run(&shared);
        uint64_t before_us = tide_world_now_us(shared.world);
        tide_world_cancel(shared.world, &shared.cancel, TIDE_CANCEL_HALT);
        tide_world_join(shared.world, thread);
        assert_int_equal(caller.called.status, TIDE_CANCELED);
        assert_true(tide_world_now_us(shared.world) - before_us < 1000);
        tide_sim_pause(shared.sim, 100ull * 1000 * 1000);
        tide_sim_net_settle(shared.sim);
        effects += echo.effects;
        ghosts += tide_sim_net_stats(shared.sim).ghosts;
        shared_done(&shared);
    }
    assert_in_range(ghosts, 5, 195);
    assert_true(effects >= ghosts);
}

/* ---- provider ------------------------------------------------------------ */

/* A request, its answer as JSON (NULL: not even that) and its HTTP code. */
static json_t *ask(tide_sim *sim, const char *method, const char *path, tide_text body,
                   int *http_out)
{
    char url[300];
    (void)snprintf(url, sizeof url, "https://provider.test%s", path);
    struct tide_request request = {.method = method, .url = url, .body = body};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    json_t *answer = NULL;
    *http_out = 0;
    tide_status rc = tide_world_call(tide_sim_world(sim), &request, &response, NULL, NULL);
    if (rc == TIDE_OK) {
        *http_out = response.http;
        answer = json_loadb(tide_buf_cstr(&response.body), response.body.bytes, 0, NULL);
    }
    tide_response_done(&response);
    return answer;
}

static void listing_pages_through_a_span_once(void **state)
{
    (void)state;
    const struct tide_sim_provider_options items = {
        .seed = 5, .items_count = 1234, .new_count = 100, .vanish_permille = 100};
    tide_sim_provider *provider = tide_sim_provider_new(&items);
    const struct tide_sim_options options = {
        .net = {.provide = tide_sim_provider_call, .provide_arg = provider}};
    tide_sim *sim = tide_sim_new(5, &options);
    size_t count = 0;
    const struct tide_sim_item *all = tide_sim_provider_items(provider, &count);
    uint64_t start_ms = all[100].time_ms;
    uint64_t end_ms = all[1200].time_ms;
    char token[40] = "";
    size_t at = 0;
    uint32_t pages = 0;
    while (pages == 0 || token[0] != '\0') {
        char path[200];
        int http = 0;
        (void)snprintf(path, sizeof path,
                       "/items?start=%" PRIu64 "&end=%" PRIu64 "&pageSize=97%s%s", start_ms, end_ms,
                       token[0] ? "&pageToken=" : "", token);
        json_t *page = ask(sim, "GET", path, TIDE_TEXT_NONE, &http);
        assert_int_equal(http, 200);
        const json_t *list = json_object_get(page, "items");
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *id = json_string_value(json_object_get(json_array_get(list, i), "id"));
            const struct tide_sim_item *item = tide_sim_provider_item(provider, tide_text_of(id));
            assert_non_null(item);
            size_t index = (size_t)(item - all);
            assert_true(index >= at); /* in order, none twice */
            for (; at < index; at++)  /* none left out but what was not there */
                assert_true(all[at].time_ms < start_ms || all[at].vanishes_ms < UINT64_MAX);
            at = index + 1;
        }
        const char *next = json_string_value(json_object_get(page, "nextPageToken"));
        (void)snprintf(token, sizeof token, "%s", next == NULL ? "" : next);
        json_decref(page);
        pages++;
    }
    assert_in_range(at, 1150, 1200);
    assert_in_range(pages, 11, 12);
    tide_sim_free(sim);
    tide_sim_provider_free(provider);
}

static void items_appear_vanish_and_fail_as_planned(void **state)
{
    (void)state;
    const struct tide_sim_provider_options items = {.seed = 6,
                                                    .items_count = 600,
                                                    .new_count = 100,
                                                    .vanish_permille = 200,
                                                    .poison_500_permille = 50,
                                                    .poison_400_permille = 50,
                                                    .stalls_permille = 20,
                                                    .resets_permille = 20};
    tide_sim_provider *provider = tide_sim_provider_new(&items);
    const struct tide_sim_options options = {
        .net = {.provide = tide_sim_provider_call, .provide_arg = provider, .latency_us_max = 100}};
    tide_sim *sim = tide_sim_new(6, &options);
    size_t count = 0;
    const struct tide_sim_item *all = tide_sim_provider_items(provider, &count);
    tide_sim_pause(sim, 1800ull * 1000 * 1000); /* half of the changes have happened */
    uint32_t seen[2] = {0};
    for (size_t i = 0; i < count; i++) {
        char path[100];
        int http = 0;
        (void)snprintf(path, sizeof path, "/items/%s", all[i].id);
        bool there = tide_sim_item_there(&all[i], tide_sim_net_unix_ms(sim));
        json_t *answer = ask(sim, "GET", path, TIDE_TEXT_NONE, &http);
        bool still = tide_sim_item_there(&all[i], tide_sim_net_unix_ms(sim));
        if (!there && !still)
            assert_int_equal(http, 404);
        else if (all[i].kind == TIDE_SIM_ITEM_POISON_500)
            assert_int_equal(http, 500);
        else if (all[i].kind == TIDE_SIM_ITEM_POISON_400)
            assert_int_equal(http, 400);
        else if (all[i].kind != TIDE_SIM_ITEM_PLAIN)
            assert_int_equal(http, 0);
        else if (there && still)
            assert_int_equal(http, 200);
        if (http == 200) {
            json_t *data = json_object_get(answer, "data");
            tide_text text = {json_string_value(data), json_string_length(data)};
            assert_true(tide_sim_provider_content_is(provider, tide_text_of(all[i].id), text));
            assert_int_equal(all[i].given, 1);
        }
        seen[http == 404]++;
        json_decref(answer);
    }
    assert_true(seen[0] > 400);
    assert_true(seen[1] > 50);
    tide_sim_free(sim);
    tide_sim_provider_free(provider);
}

/* The referee's window against a sum over all pairs. */
static void the_referee_counts_every_sliding_window(void **state)
{
    (void)state;
    enum { CALLS = 3000 };
    const struct tide_sim_provider_options options = {
        .seed = 7, .items_count = 10, .units_per_minute = 1000, .think_us_max = 1};
    tide_sim_provider *provider = tide_sim_provider_new(&options);
    tide_rng rng = tide_rng_seeded(7);
    static uint64_t at_ms[CALLS];
    static uint32_t units[CALLS];
    uint64_t now_ms = 1772323200000;
    uint64_t highest = 0;
    uint64_t refused = 0;
    for (size_t i = 0; i < CALLS; i++) {
        now_ms += tide_rng_below(&rng, 1200);
        bool item = tide_rng_chance(&rng, 1, 2);
        struct tide_request request = {.method = "GET",
                                       .url = item ? "http://x/items/i0-0" : "http://x/items"};
        struct tide_sim_answer answer = {.truncate_from = UINT64_MAX};
        tide_buf_init(&answer.body, tide_mem_heap(), 1 << 20);
        tide_sim_provider_call(provider, &request, now_ms, &rng, &answer);
        uint64_t sum = 0;
        for (size_t past = 0; past < i; past++)
            if (at_ms[past] + 60000 > now_ms)
                sum += units[past];
        uint32_t cost = item ? 20 : 5;
        bool over = sum + cost > 1000;
        assert_int_equal(over, answer.http == 429 || answer.http == 403);
        at_ms[i] = now_ms;
        units[i] = over ? 0 : cost;
        refused += over;
        if (!over && sum + cost > highest)
            highest = sum + cost;
        tide_buf_done(&answer.body);
    }
    struct tide_sim_truth truth = tide_sim_provider_truth(provider);
    assert_int_equal(truth.over_quota, refused);
    assert_int_equal(truth.units_highest, highest);
    assert_true(refused > 100);
    for (int form = 0; form < TIDE_SIM_REFUSALS; form++)
        assert_true(truth.refusals[form] > 0);
    tide_sim_provider_free(provider);
}

static void notes_made_twice_are_noticed(void **state)
{
    (void)state;
    tide_sim_provider *provider =
        tide_sim_provider_new(&(struct tide_sim_provider_options){.seed = 1});
    const struct tide_sim_options options = {
        .net = {.provide = tide_sim_provider_call, .provide_arg = provider}};
    tide_sim *sim = tide_sim_new(8, &options);
    int http = 0;
    json_decref(ask(sim, "POST", "/notes", TIDE_TEXT("{\"tag\":\"a\"}"), &http));
    json_decref(ask(sim, "POST", "/notes", TIDE_TEXT("{\"tag\":\"b\"}"), &http));
    assert_int_equal(tide_sim_provider_truth(provider).notes_doubled, 0);
    json_decref(ask(sim, "POST", "/notes", TIDE_TEXT("{\"tag\":\"a\"}"), &http));
    assert_int_equal(tide_sim_provider_truth(provider).notes_doubled, 1);
    json_t *count = ask(sim, "GET", "/notes?tag=a", TIDE_TEXT_NONE, &http);
    assert_int_equal(json_integer_value(json_object_get(count, "count")), 2);
    json_decref(count);
    tide_sim_free(sim);
    tide_sim_provider_free(provider);
}

/* ---- all of it together -------------------------------------------------- */

enum { FETCHERS = 5 };

/* A very small engine: workers take the next item that is not stored, fetch
 * it, and hand it to one writer, who stores it.  What is stored survives. */
struct mini {
    tide_sim *sim;
    tide_world *world;
    tide_lock *lock;
    tide_cond *cond;
    const struct tide_sim_item *items;
    size_t items_count;
    bool *stored;
    bool *taken;
    size_t left;
    json_t *queue[FETCHERS];
    size_t queue_index[FETCHERS];
    bool end;
};

static bool mini_take(struct mini *mini, size_t *index_out)
{
    for (size_t i = 0; i < mini->items_count; i++) {
        if (!mini->stored[i] && !mini->taken[i]) {
            mini->taken[i] = true;
            *index_out = i;
            return true;
        }
    }
    return false;
}

static json_t *mini_fetch(struct mini *mini, size_t index)
{
    char path[100];
    int http = 0;
    (void)snprintf(path, sizeof path, "/items/%s", mini->items[index].id);
    json_t *answer = ask(mini->sim, "GET", path, TIDE_TEXT_NONE, &http);
    if (http == 200 && json_is_string(json_object_get(answer, "data")))
        return answer;
    json_decref(answer);
    return NULL;
}

static void mini_work(void *arg)
{
    struct mini *mini = arg;
    size_t index = 0;
    tide_lock_take(mini->world, mini->lock);
    while (!mini->end && !tide_world_dead(mini->world) && mini_take(mini, &index)) {
        tide_lock_drop(mini->world, mini->lock);
        json_t *answer = mini_fetch(mini, index);
        tide_lock_take(mini->world, mini->lock);
        size_t slot = FETCHERS;
        tide_status rc = TIDE_OK;
        while (answer != NULL && slot == FETCHERS && rc != TIDE_STOPPED) {
            for (slot = 0; slot < FETCHERS && mini->queue[slot] != NULL; slot++)
                ;
            if (slot == FETCHERS)
                rc = tide_cond_wait(mini->world, mini->cond, mini->lock, TIDE_NEVER);
        }
        if (answer != NULL && slot < FETCHERS) {
            mini->queue[slot] = answer;
            mini->queue_index[slot] = index;
            tide_cond_wake_all(mini->world, mini->cond);
        } else {
            json_decref(answer);
            mini->taken[index] = false;
        }
    }
    tide_lock_drop(mini->world, mini->lock);
}

static sqlite3 *mini_open(struct mini *mini)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2("/mini.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                             tide_world_vfs(mini->world));
    if (rc == SQLITE_OK)
        rc = sql_run(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                         "PRAGMA wal_autocheckpoint=20;"
                         "CREATE TABLE IF NOT EXISTS item(number INTEGER PRIMARY KEY, data TEXT)");
    if (rc == SQLITE_OK)
        return db;
    (void)sqlite3_close(db);
    return NULL;
}

static int mini_store(sqlite3 *db, size_t index, const json_t *answer)
{
    const json_t *data = json_object_get(answer, "data");
    sqlite3_stmt *stmt = NULL;
    (void)sqlite3_prepare_v2(db, "INSERT INTO item VALUES(?1, ?2)", -1, &stmt, NULL);
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)index);
    (void)sqlite3_bind_text(stmt, 2, json_string_value(data), (int)json_string_length(data),
                            SQLITE_TRANSIENT);
    (void)sqlite3_step(stmt);
    return sqlite3_finalize(stmt);
}

static void mini_write(void *arg)
{
    struct mini *mini = arg;
    sqlite3 *db = mini_open(mini);
    tide_status rc = db == NULL ? TIDE_STOPPED : TIDE_OK;
    tide_lock_take(mini->world, mini->lock);
    while (rc != TIDE_STOPPED && mini->left > 0) {
        size_t slot = 0;
        while (slot < FETCHERS && mini->queue[slot] == NULL)
            slot++;
        if (slot == FETCHERS) {
            rc = tide_cond_wait(mini->world, mini->cond, mini->lock, TIDE_NEVER);
            continue;
        }
        json_t *answer = mini->queue[slot];
        size_t index = mini->queue_index[slot];
        mini->queue[slot] = NULL;
        tide_cond_wake_all(mini->world, mini->cond);
        tide_lock_drop(mini->world, mini->lock);
        int sql = mini_store(db, index, answer);
        json_decref(answer);
        tide_lock_take(mini->world, mini->lock);
        if (sql == SQLITE_OK) {
            mini->stored[index] = true;
            mini->left--;
        } else {
            rc = TIDE_STOPPED;
        }
    }
    mini->end = true;
    tide_cond_wake_all(mini->world, mini->cond);
    tide_lock_drop(mini->world, mini->lock);
    (void)sqlite3_close(db);
}

/* What the disk has is what is stored; and it is right. */
static void mini_recover(struct mini *mini, tide_sim_provider *provider)
{
    sqlite3 *db = mini_open(mini);
    TIDE_SIM_EXPECT(mini->sim, db != NULL);
    sqlite3_stmt *stmt = NULL;
    (void)sqlite3_prepare_v2(db, "SELECT number, data FROM item", -1, &stmt, NULL);
    mini->left = mini->items_count;
    size_t found = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        size_t index = (size_t)sqlite3_column_int64(stmt, 0);
        tide_text data = {(const char *)sqlite3_column_text(stmt, 1),
                          (size_t)sqlite3_column_bytes(stmt, 1)};
        TIDE_SIM_EXPECT(mini->sim, index < mini->items_count);
        TIDE_SIM_EXPECT(mini->sim, tide_sim_provider_content_is(
                                       provider, tide_text_of(mini->items[index].id), data));
        mini->taken[index] = true;
        found++;
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    for (size_t i = 0; i < mini->items_count; i++) {
        TIDE_SIM_EXPECT(mini->sim, !mini->stored[i] || mini->taken[i]); /* never lost */
        mini->stored[i] = mini->taken[i];
        mini->taken[i] = false;
    }
    mini->left = mini->items_count - found;
    mini->end = false;
}

static void mini_live(struct mini *mini)
{
    tide_thread *threads[FETCHERS + 1] = {NULL};
    (void)tide_world_thread(mini->world, "writer", mini_write, mini, &threads[FETCHERS], NULL);
    for (int i = 0; i < FETCHERS; i++)
        (void)tide_world_thread(mini->world, "fetcher", mini_work, mini, &threads[i], NULL);
    if (threads[FETCHERS] == NULL)
        mini->end = true;
    for (int i = 0; i <= FETCHERS; i++)
        tide_world_join(mini->world, threads[i]);
    for (int i = 0; i < FETCHERS; i++) {
        json_decref(mini->queue[i]);
        mini->queue[i] = NULL;
    }
    memset(mini->taken, 0, mini->items_count * sizeof *mini->taken);
}

struct mini_result {
    uint64_t hash;
    uint64_t steps;
    uint64_t crashes;
};

static struct mini_result mini_run(uint64_t seed, uint32_t items_count)
{
    const struct tide_sim_provider_options items = {.seed = seed,
                                                    .items_count = items_count,
                                                    .error_permille = 20,
                                                    .garbage_permille = 20,
                                                    .refuse_permille = 20};
    struct tide_sim_options options = tide_sim_options_seeded(seed);
    struct mini mini = {.items_count = items_count};
    tide_sim_provider *provider = tide_sim_provider_new(&items);
    options.net.provide = tide_sim_provider_call;
    options.net.provide_arg = provider;
    options.crash_every_steps = 3000;
    options.crashes_max = 8;
    mini.sim = tide_sim_new(seed, &options);
    mini.world = tide_sim_world(mini.sim);
    mini.items = tide_sim_provider_items(provider, &mini.items_count);
    mini.stored = calloc(items_count, sizeof *mini.stored);
    mini.taken = calloc(items_count, sizeof *mini.taken);
    mini.left = items_count;
    assert_int_equal(tide_lock_new(mini.world, &mini.lock), TIDE_OK);
    assert_int_equal(tide_cond_new(mini.world, &mini.cond), TIDE_OK);
    /* Each life fetches what is missing; fetchers give up on their own after a
     * failure, so a life may end without a crash and without the end. */
    for (uint32_t life = 0; mini.left > 0; life++) {
        if (life == 40) {
            tide_sim_faults(mini.sim, false);
            tide_sim_provider_faults(provider, false);
        }
        TIDE_SIM_EXPECT(mini.sim, life < 60);
        mini_live(&mini);
        tide_sim_reboot(mini.sim);
        tide_sim_faults(mini.sim, false);
        mini_recover(&mini, provider);
        tide_sim_faults(mini.sim, life < 40);
    }
    struct tide_sim_stats stats = tide_sim_stats(mini.sim);
    struct mini_result result = {tide_sim_trace_hash(mini.sim), stats.steps, stats.crashes};
    tide_cond_free(mini.world, mini.cond);
    tide_lock_free(mini.world, mini.lock);
    tide_sim_free(mini.sim);
    tide_sim_provider_free(provider);
    free(mini.stored);
    free(mini.taken);
    return result;
}

/* Threads, locks, SQLite, the network, crashes and reboots: every event of
 * more than 100,000 steps, twice in one process. */
static void the_same_seed_gives_the_same_trace(void **state)
{
    (void)state;
    uint64_t steps = 0;
    uint64_t crashes = 0;
    uint64_t last_hash = 0;
    uint64_t target = scaled(150000, 20000);
    for (uint64_t seed = 1; steps < target; seed++) {
        struct mini_result first = mini_run(seed, 300);
        struct mini_result second = mini_run(seed, 300);
        if (first.hash != second.hash)
            fail_msg("seed %" PRIu64 " does not replay", seed);
        assert_int_equal(first.steps, second.steps);
        assert_true(first.hash != last_hash);
        last_hash = first.hash;
        steps += first.steps;
        crashes += first.crashes;
    }
    print_message("%" PRIu64 " steps, %" PRIu64 " crashes, each twice; last trace %016" PRIx64 "\n",
                  steps, crashes, last_hash);
    assert_true(crashes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_admits_one_thread_at_a_time),
        cmocka_unit_test(wake_one_wakes_one_and_wake_all_wakes_all),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
        cmocka_unit_test(waits_may_end_for_no_reason),
        cmocka_unit_test(days_of_sleep_take_no_time),
        cmocka_unit_test(the_wall_clock_jumps_alone),
        cmocka_unit_test(seeded_pauses_and_jumps_happen),
        cmocka_unit_test(a_frozen_thread_stands_still_while_others_run),
        cmocka_unit_test(cancelling_wakes_a_sleeper_at_once),
        cmocka_unit_test(broken_rules_are_reported_by_name),
        cmocka_unit_test(a_crash_ends_every_wait),
        cmocka_unit_test(a_planned_crash_comes_at_its_step),
        cmocka_unit_test(a_full_commit_survives_every_power_loss),
        cmocka_unit_test(a_normal_commit_is_lost_at_times_but_nothing_is_corrupt),
        cmocka_unit_test(a_killed_process_loses_nothing_even_unsynced),
        cmocka_unit_test(a_removed_journal_comes_back_unless_the_directory_was_synced),
        cmocka_unit_test(a_full_disk_is_reported_and_heals),
        cmocka_unit_test(a_failed_write_or_sync_is_reported),
        cmocka_unit_test(syncing_again_after_a_failed_sync_does_not_help),
        cmocka_unit_test(unsynced_writes_meet_every_fate),
        cmocka_unit_test(a_replaced_file_is_the_old_or_the_new_one),
        cmocka_unit_test(files_follow_the_contract),
        cmocka_unit_test(a_file_lock_ends_with_its_process),
        cmocka_unit_test(a_call_arrives_and_answers),
        cmocka_unit_test(bodies_stream_in_parts),
        cmocka_unit_test(timeouts_end_a_call_in_time),
        cmocka_unit_test(every_fault_has_its_status),
        cmocka_unit_test(cancelling_reaches_a_call_at_once_and_its_effect_may_still_come),
        cmocka_unit_test(listing_pages_through_a_span_once),
        cmocka_unit_test(items_appear_vanish_and_fail_as_planned),
        cmocka_unit_test(the_referee_counts_every_sliding_window),
        cmocka_unit_test(notes_made_twice_are_noticed),
        cmocka_unit_test(the_same_seed_gives_the_same_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
