/* SQLite on the disk that forgets. */
#include "sim_world_fixture.h"

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

/* Reads and checkpoints during the writer's work, on a connection of its own. */
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

TEST(a_full_commit_survives_every_power_loss)
{
    struct bank_sum sum = bank_run("WAL", "FULL", scaled_at_least(2500, 60), TIDE_SIM_CRASH_POWER);
    assert_int_equal(sum.lost, 0);
    assert_true(sum.commits > sum.crashes);
    assert_true(sum.disk.kept > 0);
    assert_true(sum.disk.dropped > 0);
    assert_true(sum.disk.torn > 0);
}

TEST(a_normal_commit_is_lost_at_times_but_nothing_is_corrupt)
{
    struct bank_sum sum = bank_run("WAL", "NORMAL", scaled_at_least(300, 60), TIDE_SIM_CRASH_POWER);
    assert_true(sum.lost > sum.crashes / 10);
}

TEST(a_killed_process_loses_nothing_even_unsynced)
{
    struct bank_sum sum = bank_run("WAL", "OFF", scaled_at_least(300, 60), TIDE_SIM_CRASH_KILL);
    assert_int_equal(sum.lost, 0);
    assert_int_equal(sum.disk.dropped, 0);
}

/* With a rollback journal the commit is the removal of a file, and SQLite
 * syncs the directory after it only at EXTRA: so this shows that removals are
 * forgotten too. */
TEST(a_removed_journal_comes_back_unless_the_directory_was_synced)
{
    struct bank_sum extra =
        bank_run("DELETE", "EXTRA", scaled_at_least(300, 60), TIDE_SIM_CRASH_POWER);
    assert_int_equal(extra.lost, 0);
    struct bank_sum full =
        bank_run("DELETE", "FULL", scaled_at_least(300, 60), TIDE_SIM_CRASH_POWER);
    assert_true(full.lost > 0);
}

TEST(a_full_disk_is_reported_and_heals)
{
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

TEST(a_failed_write_or_sync_is_reported)
{
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
