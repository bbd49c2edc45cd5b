/* Files: what is not synced meets every fate, what is replaced is the old or the new
 * one, and locks end with their process. */
#include "sim_world_fixture.h"

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

/* SDSK3: the second sync has nothing left to write, and says so with success. */
TEST(syncing_again_after_a_failed_sync_does_not_help)
{
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
        assert_int_equal(file->pMethods->xRead(file, seen, 3, 0), SQLITE_IOERR_READ); /* SDSK4 */
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
TEST(unsynced_writes_meet_every_fate)
{
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

TEST(a_replaced_file_is_the_old_or_the_new_one)
{
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

TEST(files_follow_the_contract)
{
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

TEST(a_file_lock_ends_with_its_process)
{
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
