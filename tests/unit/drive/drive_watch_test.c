/* drive_watch_test.c - watched folders and the thread that watches them (DWF1 to DWF3, DWT1 to DWT3).
 *
 * Goal: every change below the root is told under its folder's path of now, also in folders that came a
 * moment ago, and no other folder is watched.
 * Method: real folders and the kernel's real events; trees that are made, moved and removed at once,
 * by another thread, and at random from a printed seed, after which each folder must be watched;
 * more events than the kernel keeps; inotify_add_watch() that refuses when the test says so; a count
 * of the thread's waits. */
#include "base/rng.h"
#include "drive/watch/tree.h"
#include "drive/watch/watcher.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int watches_left = -1; /* -1: any number */

int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (watches_left == 0) {
        errno = ENOSPC;
        return -1;
    }
    watches_left -= watches_left > 0 ? 1 : 0;
    return __real_inotify_add_watch(fd, path, mask);
}

static uint64_t waits; /* atomic; each is a wake-up of the watcher's thread */

void __real_tide_dir_watch_wait(tide_dir_watch *const *watches, size_t count,
                                const struct tide_waker *waker, uint64_t wait_ms);
void __wrap_tide_dir_watch_wait(tide_dir_watch *const *watches, size_t count,
                                const struct tide_waker *waker, uint64_t wait_ms);
void __wrap_tide_dir_watch_wait(tide_dir_watch *const *watches, size_t count,
                                const struct tide_waker *waker, uint64_t wait_ms)
{
    (void)__atomic_add_fetch(&waits, 1, __ATOMIC_SEQ_CST);
    __real_tide_dir_watch_wait(watches, count, waker, wait_ms);
}

struct fixture {
    char dir[64], root[80];
    tide_drive_tree *tree;
    tide_ignore *ignore;
    tide_drive_changes changes;
    tide_drive_folders told;
    uint64_t now_ms;
    tide_error err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/drive-watch-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->root, sizeof f->root, "%s/root", f->dir);
    assert_int_equal(mkdir(f->root, 0700), 0);
    tide_drive_changes_init(&f->changes, tide_mem_heap());
    tide_drive_folders_init(&f->told, tide_mem_heap());
    watches_left = -1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    watches_left = -1;
    tide_drive_tree_free(f->tree);
    tide_ignore_free(f->ignore);
    tide_drive_changes_done(&f->changes);
    tide_drive_folders_done(&f->told);
    (void)temp_dir_remove(f->dir);
    free(f);
    return 0;
}

static const char *at(const struct fixture *f, const char *path)
{
    return textf("%s/%s", f->root, path);
}

static void make(const struct fixture *f, const char *folder)
{
    assert_int_equal(mkdir(at(f, folder), 0700), 0);
}

static void put(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    (void)close(fd);
}

static void begin(struct fixture *f)
{
    OK(tide_drive_tree_new(f->root, f->ignore, tide_mem_heap(), &f->tree, &f->err));
    assert_int_equal(tide_drive_tree_now(f->tree), TIDE_DRIVE_TREE_WHOLE);
}

/* Takes all events, then all that is due; what is to come again after a deletion comes at once. */
static void settle(struct fixture *f)
{
    tide_drive_folders_clear(&f->told);
    tide_drive_tree_take(f->tree, &f->changes, f->now_ms);
    f->now_ms += TIDE_DRIVE_QUIET_MS;
    (void)tide_drive_changes_take(&f->changes, f->now_ms, &f->told);
    f->now_ms += TIDE_DRIVE_DELETED_MS;
    (void)tide_drive_changes_take(&f->changes, f->now_ms, &f->told);
}

static bool told(const struct fixture *f, const char *folder)
{
    return !f->told.all && tide_drive_folders_has(&f->told, tide_text_of(folder));
}

/* ---- what changes ---- */

TEST_ON(a_change_names_its_folder, struct fixture *f, setup, teardown)
{
    make(f, "a");
    make(f, "a/b");
    begin(f);
    settle(f);
    assert_false(tide_drive_folders_any(&f->told));
    put(at(f, "top"));
    settle(f);
    assert_true(told(f, "") && f->told.count == 1);
    put(at(f, "a/b/file"));
    settle(f);
    assert_true(told(f, "a/b") && f->told.count == 1);
    assert_int_equal(rename(at(f, "a/b/file"), at(f, "a/file")), 0);
    settle(f);
    assert_true(told(f, "a/b") && told(f, "a") && f->told.count == 2);
    assert_int_equal(unlink(at(f, "a/file")), 0);
    settle(f);
    assert_true(told(f, "a") && f->told.count == 1);
}

/* DWF1: folders and files made before their watch was set. */
TEST_ON(a_deep_tree_made_at_once_is_found_and_watched, struct fixture *f, setup, teardown)
{
    begin(f);
    char path[80] = "1";
    for (int depth = 2; depth < 20; depth++) {
        make(f, path);
        const size_t used = strlen(path);
        (void)snprintf(path + used, sizeof path - used, "/%d", depth);
    }
    *strrchr(path, '/') = '\0';
    put(at(f, textf("%s/file", path)));
    settle(f);
    assert_true(told(f, path) && told(f, "1") && told(f, ""));
    assert_int_equal(tide_drive_tree_folders(f->tree), 19);
    put(at(f, textf("%s/later", path)));
    settle(f);
    assert_true(told(f, path) && f->told.count == 1);
}

/* ---- every folder is watched, whatever happens ---- */

static struct fixture *counting;
static size_t folders_count;

static int count_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)path;
    (void)info;
    (void)walk;
    folders_count += type == FTW_D ? 1 : 0;
    return 0;
}

static int touch_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)walk;
    if (type == FTW_D)
        put(textf("%s/touched", path));
    return 0;
}

static int check_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)walk;
    const size_t root = strlen(counting->root);
    if (type == FTW_D && !told(counting, path[root] == '\0' ? "" : path + root + 1))
        fail_msg("%s is not watched", path);
    return 0;
}

/* DWF1, DWF2, and that nothing else is watched. */
static void check_all_watched(struct fixture *f)
{
    counting = f;
    folders_count = 0;
    assert_int_equal(nftw(f->root, count_one, 8, FTW_PHYS), 0);
    settle(f);
    assert_int_equal(tide_drive_tree_folders(f->tree), folders_count);
    assert_int_equal(nftw(f->root, touch_one, 8, FTW_PHYS), 0);
    settle(f);
    assert_false(f->told.all);
    assert_int_equal(f->told.count, folders_count);
    assert_int_equal(nftw(f->root, check_one, 8, FTW_PHYS), 0);
}

struct maker {
    const struct fixture *f;
    bool done; /* atomic */
};

static void *make_many(void *arg)
{
    struct maker *maker = arg;
    for (int i = 0; i < 60; i++) {
        char path[200], to[200];
        (void)snprintf(path, sizeof path, "%s/%d", maker->f->root, i);
        for (int depth = 0; depth < 6; depth++) {
            (void)mkdir(path, 0700);
            const size_t used = strlen(path);
            (void)snprintf(path + used, sizeof path - used, "/d%d", depth);
        }
        (void)snprintf(path, sizeof path, "%s/%d", maker->f->root, i);
        (void)snprintf(to, sizeof to, "%s/%d/d0/d1", maker->f->root, i - 1);
        if (i % 3 == 2)
            (void)rename(path, textf("%s/moved", to));
    }
    __atomic_store_n(&maker->done, true, __ATOMIC_RELEASE);
    return NULL;
}

TEST_ON(folders_made_and_moved_by_another_thread_are_all_watched, struct fixture *f, setup,
        teardown)
{
    struct maker maker = {.f = f};
    pthread_t thread;
    begin(f);
    assert_int_equal(pthread_create(&thread, NULL, make_many, &maker), 0);
    while (!__atomic_load_n(&maker.done, __ATOMIC_ACQUIRE))
        tide_drive_tree_take(f->tree, &f->changes, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    check_all_watched(f);
}

/* A random path of folders "0".."3", up to four deep; it may not exist. */
static const char *random_folder(const struct fixture *f, tide_rng *rng)
{
    char path[40] = "";
    const uint64_t depth = 1 + tide_rng_below(rng, 4);
    for (uint64_t i = 0; i < depth; i++) {
        const size_t used = strlen(path);
        (void)snprintf(path + used, sizeof path - used, "%s%d", used > 0 ? "/" : "",
                       (int)tide_rng_below(rng, 4));
    }
    return at(f, path);
}

/* One thing that a user may do; most fail, which changes nothing. */
static void do_something(const struct fixture *f, tide_rng *rng)
{
    const char *one = random_folder(f, rng), *other = random_folder(f, rng);
    switch (tide_rng_below(rng, 7)) {
    case 0:
    case 1:
    case 2:
        (void)mkdir(one, 0700);
        break;
    case 3:
        (void)rename(one, other);
        break;
    case 4:
        (void)syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, 2u /* RENAME_EXCHANGE */);
        break;
    case 5:
        (void)rmdir(one);
        break;
    default:
        (void)temp_dir_remove(one);
    }
}

TEST_ON(after_random_changes_each_folder_is_watched, struct fixture *f, setup, teardown)
{
    begin(f);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        for (int i = 0; i < 300; i++) {
            do_something(f, &rng);
            if (tide_rng_chance(&rng, 1, 5))
                tide_drive_tree_take(f->tree, &f->changes, f->now_ms);
        }
        print_message("seed %" PRIu64 "\r", seed);
        check_all_watched(f);
    }
}

TEST_ON(a_moved_folder_is_told_at_its_new_place, struct fixture *f, setup, teardown)
{
    make(f, "a");
    make(f, "a/b");
    make(f, "c");
    begin(f);
    assert_int_equal(rename(at(f, "a"), at(f, "c/x")), 0);
    settle(f);
    assert_true(told(f, "") && told(f, "c") && told(f, "c/x") && told(f, "c/x/b"));
    put(at(f, "c/x/b/file"));
    settle(f);
    assert_true(told(f, "c/x/b") && f->told.count == 1);
}

TEST_ON(a_folder_that_leaves_is_no_longer_watched_and_one_that_comes_is, struct fixture *f, setup,
        teardown)
{
    make(f, "a");
    make(f, "a/b");
    begin(f);
    const char *outside = textf("%s/outside", f->dir);
    assert_int_equal(rename(at(f, "a"), outside), 0);
    put(textf("%s/outside/b/file", f->dir));
    settle(f);
    assert_true(told(f, "") && f->told.count == 1);
    assert_int_equal(tide_drive_tree_folders(f->tree), 1);
    assert_int_equal(rename(outside, at(f, "back")), 0);
    settle(f);
    assert_true(told(f, "back/b"));
    check_all_watched(f);
}

/* ---- what is left alone ---- */

/* DWF3. */
TEST_ON(links_are_not_followed, struct fixture *f, setup, teardown)
{
    const char *outside = textf("%s/outside", f->dir);
    assert_int_equal(mkdir(outside, 0700), 0);
    assert_int_equal(symlink(outside, at(f, "before")), 0);
    begin(f);
    assert_int_equal(symlink(outside, at(f, "after")), 0);
    settle(f);
    assert_true(told(f, "") && f->told.count == 1);
    put(textf("%s/file", outside));
    settle(f);
    assert_false(tide_drive_folders_any(&f->told));
    assert_int_equal(tide_drive_tree_folders(f->tree), 1);
}

TEST_ON(ignored_and_temporary_names_are_not_told, struct fixture *f, setup, teardown)
{
    OK(tide_ignore_new(TIDE_TEXT("node_modules/\n*.tmp\n"), tide_mem_heap(), &f->ignore, &f->err));
    make(f, "node_modules");
    make(f, "node_modules/x");
    make(f, "a");
    begin(f);
    assert_int_equal(tide_drive_tree_folders(f->tree), 2);
    make(f, "a/node_modules");
    put(at(f, "a/node_modules/file"));
    put(at(f, "a/save.tmp"));
    put(at(f, "a/.tidemark-0123abcd.partial"));
    put(at(f, "node_modules/x/file"));
    settle(f);
    assert_false(tide_drive_folders_any(&f->told));
    assert_int_equal(tide_drive_tree_folders(f->tree), 2);
    assert_int_equal(rename(at(f, "a/save.tmp"), at(f, "a/saved")), 0);
    settle(f);
    assert_true(told(f, "a") && f->told.count == 1);
    put(at(f, ".tidemark-root"));
    settle(f);
    assert_true(told(f, "") && f->told.count == 1);
}

/* A folder that was unreadable is watched when that changes. */
TEST_ON(an_unreadable_folder_is_watched_when_it_can_be_read, struct fixture *f, setup, teardown)
{
    make(f, "a");
    make(f, "a/b");
    assert_int_equal(chmod(at(f, "a"), 0), 0);
    begin(f);
    if (geteuid() != 0)
        assert_int_equal(tide_drive_tree_folders(f->tree), 1);
    assert_int_equal(chmod(at(f, "a"), 0700), 0);
    settle(f);
    check_all_watched(f);
}

/* ---- trouble ---- */

/* F15. */
TEST_ON(lost_events_mean_all_and_all_is_watched_again, struct fixture *f, setup, teardown)
{
    unsigned events_max = 16384;
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    if (file != NULL) {
        assert_int_equal(fscanf(file, "%u", &events_max), 1);
        (void)fclose(file);
    }
    begin(f);
    for (unsigned i = 0; i < events_max / 2; i++) {
        put(at(f, "file"));
        assert_int_equal(unlink(at(f, "file")), 0);
    }
    make(f, "unheard");
    make(f, "unheard/of");
    settle(f);
    assert_true(f->told.all);
    assert_int_equal(tide_drive_tree_now(f->tree), TIDE_DRIVE_TREE_WHOLE);
    f->now_ms += TIDE_DRIVE_DELETED_MS;
    check_all_watched(f);
}

TEST_ON(the_limit_of_watches_is_told_and_what_is_watched_stays_so, struct fixture *f, setup,
        teardown)
{
    for (int i = 0; i < 10; i++)
        make(f, textf("%d", i));
    watches_left = 5;
    OK(tide_drive_tree_new(f->root, NULL, tide_mem_heap(), &f->tree, &f->err));
    assert_int_equal(tide_drive_tree_now(f->tree), TIDE_DRIVE_TREE_PART);
    assert_non_null(strstr(tide_drive_tree_why(f->tree), "max_user_watches"));
    assert_int_equal(tide_drive_tree_folders(f->tree), 5);
    put(at(f, "file"));
    settle(f);
    assert_true(told(f, ""));
    tide_drive_tree_free(f->tree);
    f->tree = NULL;
    watches_left = 0;
    assert_int_equal(tide_drive_tree_new(f->root, NULL, tide_mem_heap(), &f->tree, &f->err),
                     TIDE_FULL);
    assert_non_null(strstr(f->err.text, "max_user_watches"));
}

TEST_ON(a_root_that_is_removed_is_lost, struct fixture *f, setup, teardown)
{
    begin(f);
    assert_int_equal(rmdir(f->root), 0);
    settle(f);
    assert_int_equal(tide_drive_tree_now(f->tree), TIDE_DRIVE_TREE_LOST);
    assert_non_null(strstr(tide_drive_tree_why(f->tree), f->root));
    tide_drive_tree_free(f->tree);
    f->tree = NULL;
    assert_int_equal(tide_drive_tree_new(f->root, NULL, tide_mem_heap(), &f->tree, &f->err),
                     TIDE_NOT_FOUND);
}

TEST_ON(a_root_that_is_moved_is_lost, struct fixture *f, setup, teardown)
{
    begin(f);
    assert_int_equal(rename(f->root, textf("%s/away", f->dir)), 0);
    assert_int_equal(mkdir(f->root, 0700), 0); /* another one in its place */
    settle(f);
    assert_int_equal(tide_drive_tree_now(f->tree), TIDE_DRIVE_TREE_LOST);
}

static tide_status walk_and_change(struct fixture *f, tide_mem *mem)
{
    tide_drive_tree *tree = NULL;
    tide_drive_changes changes;
    tide_drive_changes_init(&changes, mem);
    const tide_status rc = tide_drive_tree_new(f->root, NULL, mem, &tree, NULL);
    if (rc == TIDE_OK) {
        (void)rename(at(f, "a"), at(f, "b"));
        tide_drive_tree_take(tree, &changes, 0);
        (void)rename(at(f, "b"), at(f, "a"));
        tide_drive_tree_take(tree, &changes, 0);
    }
    const bool whole = tree == NULL || tide_drive_tree_now(tree) == TIDE_DRIVE_TREE_WHOLE ||
                       tide_drive_tree_now(tree) == TIDE_DRIVE_TREE_PART;
    assert_true(whole);
    tide_drive_tree_free(tree);
    tide_drive_changes_done(&changes);
    return rc;
}

TEST_ON(every_failed_allocation_is_survived, struct fixture *f, setup, teardown)
{
    make(f, "a");
    for (int i = 0; i < 20; i++)
        make(f, textf("a/%d", i));
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        const tide_status rc = walk_and_change(f, &mem.base);
        assert_int_equal(mem.bytes_live, 0);
        assert_true(rc == TIDE_OK || rc == TIDE_NO_MEMORY);
        if (!mem.fired)
            return;
    }
}

/* 100,000 files in 10,000 folders: what counts for memory is folders, about 140 bytes each. */
TEST_ON(a_folder_needs_little_memory, struct fixture *f, setup, teardown)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    for (int i = 0; i < 10; i++) {
        make(f, textf("folder number %d", i));
        for (int j = 0; j < 99; j++)
            make(f, textf("folder number %d/another folder %d", i, j));
    }
    OK(tide_drive_tree_new(f->root, NULL, &mem.base, &f->tree, &f->err));
    assert_int_equal(tide_drive_tree_folders(f->tree), 1001);
    assert_true(mem.bytes_peak < 32768 + 250 * 1001); /* a buffer for events, and the folders */
    tide_drive_tree_free(f->tree);
    f->tree = NULL;
    assert_int_equal(mem.bytes_live, 0);
}

/* ---- the thread ---- */

struct asked {
    uint32_t number;
    bool all;
    size_t count;
    char first[80];
};

struct stage {
    struct fixture *f;
    tide_world *world;
    tide_drive_watcher *watcher;
    pthread_mutex_t lock;
    struct asked asked[64];
    size_t asked_count, told_count;
    char told[300];
    uint64_t poll_ms;
    bool gone;    /* the drive was removed from the list */
    bool refuses; /* syncs cannot be asked for */
    tide_error err;
};

static tide_status list_drives(void *arg,
                               void (*visit)(const struct tide_drive_watched *drive, void *to),
                               void *visit_arg, tide_error *err)
{
    struct stage *stage = arg;
    (void)err;
    struct tide_drive_watched drive = {.number = 7,
                                       .name = "papers",
                                       .root = stage->f->root,
                                       .ignore = TIDE_TEXT("*.tmp"),
                                       .rescan_ms = 3600000};
    (void)pthread_mutex_lock(&stage->lock);
    const bool gone = stage->gone;
    drive.poll_ms = stage->poll_ms;
    (void)pthread_mutex_unlock(&stage->lock);
    if (!gone)
        visit(&drive, visit_arg);
    return TIDE_OK;
}

static tide_status ask(void *arg, uint32_t number, const tide_drive_folders *folders,
                       tide_error *err)
{
    struct stage *stage = arg;
    size_t next = 0;
    tide_text path = TIDE_TEXT("");
    tide_status rc = TIDE_OK;
    (void)tide_drive_folders_next(folders, &next, &path);
    (void)pthread_mutex_lock(&stage->lock);
    assert_true(stage->asked_count < 64);
    struct asked *asked = &stage->asked[stage->asked_count++];
    *asked = (struct asked){number, folders->all, folders->count, ""};
    (void)snprintf(asked->first, sizeof asked->first, "%.*s", (int)path.bytes, path.data);
    if (stage->refuses)
        rc = tide_error_set(err, TIDE_DISK_FULL, "the disk is full");
    (void)pthread_mutex_unlock(&stage->lock);
    return rc;
}

static void tell(void *arg, const char *drive, bool trouble, const char *text)
{
    struct stage *stage = arg;
    assert_string_equal(drive, "papers");
    (void)pthread_mutex_lock(&stage->lock);
    if (trouble) {
        stage->told_count++;
        (void)snprintf(stage->told, sizeof stage->told, "%s", text);
    }
    (void)pthread_mutex_unlock(&stage->lock);
}

static const struct tide_drive_watch_ops ops = {list_drives, ask, tell};

static void stage_open(struct stage *stage, struct fixture *f, uint64_t poll_ms)
{
    *stage = (struct stage){.f = f, .poll_ms = poll_ms, .lock = PTHREAD_MUTEX_INITIALIZER};
    OK(tide_world_real_new(tide_mem_heap(), &stage->world, &stage->err));
    OK(tide_drive_watcher_start(stage->world, tide_mem_heap(), &ops, stage, 50, &stage->watcher,
                                &stage->err));
}

static void list_has(struct stage *stage, bool drive)
{
    (void)pthread_mutex_lock(&stage->lock);
    stage->gone = !drive;
    (void)pthread_mutex_unlock(&stage->lock);
    tide_drive_watcher_look(stage->watcher);
}

static void stage_close(struct stage *stage)
{
    tide_drive_watcher_stop(stage->watcher);
    tide_world_real_free(stage->world);
}

static void pause_ms(unsigned ms)
{
    const struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

static size_t asked_so_far(struct stage *stage)
{
    (void)pthread_mutex_lock(&stage->lock);
    const size_t count = stage->asked_count;
    (void)pthread_mutex_unlock(&stage->lock);
    return count;
}

/* The n-th sync that was asked for, from 0; waits for it. */
static struct asked asked_at(struct stage *stage, size_t nth)
{
    for (unsigned waited = 0; asked_so_far(stage) <= nth; waited++) {
        if (waited > 1000)
            fail_msg("sync %zu was not asked for", nth);
        pause_ms(10);
    }
    (void)pthread_mutex_lock(&stage->lock);
    const struct asked asked = stage->asked[nth];
    (void)pthread_mutex_unlock(&stage->lock);
    return asked;
}

/* DWT1. */
TEST_ON(everything_is_asked_for_first_and_then_what_changed, struct fixture *f, setup, teardown)
{
    struct stage stage;
    make(f, "a");
    stage_open(&stage, f, 3600000);
    struct asked asked = asked_at(&stage, 0);
    assert_true(asked.all && asked.number == 7);
    put(at(f, "a/file"));
    put(at(f, "a/other.tmp"));
    asked = asked_at(&stage, 1);
    assert_true(!asked.all && asked.count == 1);
    assert_string_equal(asked.first, "a");
    stage_close(&stage);
}

TEST_ON(what_is_online_is_asked_for_again_and_again, struct fixture *f, setup, teardown)
{
    struct stage stage;
    stage_open(&stage, f, 700);
    assert_true(asked_at(&stage, 0).all);
    for (size_t i = 1; i < 3; i++) {
        const struct asked asked = asked_at(&stage, i);
        assert_true(!asked.all && asked.count == 0);
    }
    stage_close(&stage);
}

/* E11.1: it waits for an hour, and less from now on. */
TEST_ON(other_times_count_from_the_next_look_at_the_list, struct fixture *f, setup, teardown)
{
    struct stage stage;
    stage_open(&stage, f, 3600000);
    assert_true(asked_at(&stage, 0).all);
    (void)pthread_mutex_lock(&stage.lock);
    stage.poll_ms = 300;
    (void)pthread_mutex_unlock(&stage.lock);
    tide_drive_watcher_look(stage.watcher);
    for (size_t i = 1; i < 3; i++) {
        const struct asked asked = asked_at(&stage, i);
        assert_true(!asked.all && asked.count == 0);
    }
    stage_close(&stage);
}

/* DWT2. */
TEST_ON(a_sync_that_cannot_be_asked_for_is_asked_for_again, struct fixture *f, setup, teardown)
{
    struct stage stage;
    stage_open(&stage, f, 3600000);
    (void)asked_at(&stage, 0);
    (void)pthread_mutex_lock(&stage.lock);
    stage.refuses = true;
    (void)pthread_mutex_unlock(&stage.lock);
    make(f, "b");
    (void)asked_at(&stage, 2);
    (void)pthread_mutex_lock(&stage.lock);
    stage.refuses = false;
    assert_int_equal(stage.told_count, 1); /* told once */
    assert_string_equal(stage.told, "the disk is full");
    const size_t before = stage.asked_count;
    (void)pthread_mutex_unlock(&stage.lock);
    const struct asked asked = asked_at(&stage, before);
    assert_int_equal(asked.count, 2); /* the root and "b" */
    stage_close(&stage);
}

TEST_ON(a_folder_that_is_not_there_is_told_and_found_when_it_comes, struct fixture *f, setup,
        teardown)
{
    struct stage stage;
    assert_int_equal(rmdir(f->root), 0);
    stage_open(&stage, f, 3600000);
    assert_true(asked_at(&stage, 0).all); /* a scan says what is wrong */
    (void)pthread_mutex_lock(&stage.lock);
    assert_int_equal(stage.told_count, 1);
    (void)pthread_mutex_unlock(&stage.lock);
    assert_int_equal(mkdir(f->root, 0700), 0);
    assert_true(asked_at(&stage, 1).all);
    put(at(f, "file"));
    assert_int_equal(asked_at(&stage, 2).count, 1);
    assert_int_equal(rename(f->root, textf("%s/away", f->dir)), 0);
    assert_true(asked_at(&stage, 3).all);
    stage_close(&stage);
}

/* DWT3, and a drive that is removed. */
TEST_ON(a_drive_that_is_removed_is_no_longer_asked_for, struct fixture *f, setup, teardown)
{
    struct stage stage;
    stage_open(&stage, f, 3600000);
    (void)asked_at(&stage, 0);
    list_has(&stage, false);
    pause_ms(100);
    put(at(f, "file"));
    pause_ms(800);
    assert_int_equal(asked_so_far(&stage), 1);
    stage_close(&stage);
    put(at(f, "another"));
    assert_int_equal(stage.asked_count, 1);
}

TEST_ON(without_changes_it_does_not_wake_up, struct fixture *f, setup, teardown)
{
    struct stage stage;
    stage_open(&stage, f, 3600000);
    (void)asked_at(&stage, 0);
    pause_ms(100);
    const uint64_t before = __atomic_load_n(&waits, __ATOMIC_SEQ_CST);
    pause_ms(1500);
    assert_int_equal(__atomic_load_n(&waits, __ATOMIC_SEQ_CST), before);
    stage_close(&stage);
}

TEST_ON(without_drives_it_never_wakes_up_until_one_comes, struct fixture *f, setup, teardown)
{
    struct stage stage;
    stage_open(&stage, f, 200);
    (void)asked_at(&stage, 0);
    list_has(&stage, false);
    pause_ms(100);
    const uint64_t before = __atomic_load_n(&waits, __ATOMIC_SEQ_CST);
    pause_ms(1000);
    assert_int_equal(__atomic_load_n(&waits, __ATOMIC_SEQ_CST), before);
    const size_t asked = asked_so_far(&stage);
    list_has(&stage, true);
    assert_true(asked_at(&stage, asked).all);
    assert_int_equal(asked_at(&stage, asked + 1).count, 0); /* and it is asked again and again */
    stage_close(&stage);
}
