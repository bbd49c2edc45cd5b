/* The real world without its network: clock, randomness, threads, waits, files. */
#include "support/ok.h"
#include "support/sweep.h"
#include "support/heap.h"
#include "support/test.h"
#include "world/real.h"
#include "world/world.h"
#include "base/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    tide_world *world;
    char dir[64];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-world-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    OK(tide_world_real_new(tide_mem_heap(), &f->world, NULL));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_world_real_free(f->world);
    assert_int_equal(rmdir(f->dir), 0); /* every test cleans up, and so do we */
    free(f);
    return 0;
}

static const char *path_in(struct fixture *f, const char *name)
{
    static char paths[4][256];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", f->dir, name);
    return path;
}

static size_t entries_in(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    size_t count = 0;
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2;
}

/* ---- time and chance ----------------------------------------------------- */

#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

CASE(the_clock_goes_forward_only)
{
    uint64_t last_us = tide_world_now_us(f->world);
    for (int i = 0; i < 100000; i++) {
        const uint64_t now_us = tide_world_now_us(f->world);
        assert_true(now_us >= last_us);
        last_us = now_us;
    }
    assert_true(tide_world_now_unix_ms(f->world) > 1700000000000u);
    assert_false(tide_world_dead(f->world));
    assert_null(tide_world_vfs(f->world));
}

CASE(random_bytes_are_neither_constant_nor_repeated)
{
    unsigned ones[64] = {0};
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        const uint64_t number = tide_world_random_u64(f->world);
        assert_true(number != last); /* 2^-64 to fail by chance */
        last = number;
        for (int bit = 0; bit < 64; bit++)
            ones[bit] += (unsigned)(number >> bit) & 1;
    }
    for (int bit = 0; bit < 64; bit++) /* 500 plus or minus 12 deviations */
        assert_in_range(ones[bit], 310, 690);
    static char large[1 << 20];
    tide_world_random(f->world, large, sizeof large);
    assert_memory_not_equal(large, large + sizeof large / 2, 32);
}

/* ---- threads and waits --------------------------------------------------- */

struct counter {
    tide_world *world;
    tide_lock *lock;
    tide_cond *cond;
    int count;
    int turn;
    char name[16];
    bool signals_blocked;
};

static void count_up(void *arg)
{
    struct counter *counter = arg;
    for (int i = 0; i < 10000; i++) {
        tide_lock_take(counter->world, counter->lock);
        counter->count++;
        tide_lock_drop(counter->world, counter->lock);
    }
}

CASE(a_lock_keeps_threads_apart)
{
    struct counter counter = {.world = f->world};
    OK(tide_lock_new(f->world, &counter.lock));
    tide_thread *threads[4];
    for (int i = 0; i < 4; i++)
        OK(tide_world_thread(f->world, "count", count_up, &counter, &threads[i], NULL));
    for (int i = 0; i < 4; i++)
        tide_world_join(f->world, threads[i]);
    tide_world_join(f->world, NULL);
    assert_int_equal(counter.count, 40000);
    tide_lock_free(f->world, counter.lock);
}

static void take_turns(void *arg)
{
    struct counter *counter = arg;
    tide_lock_take(counter->world, counter->lock);
    for (int i = 0; i < 500; i++) {
        while (counter->turn != 1)
            (void)tide_cond_wait(counter->world, counter->cond, counter->lock, TIDE_NEVER);
        counter->turn = 0;
        counter->count++;
        tide_cond_wake_all(counter->world, counter->cond);
    }
    tide_lock_drop(counter->world, counter->lock);
}

CASE(a_condition_passes_the_turn)
{
    tide_world *world = f->world;
    struct counter counter = {.world = world};
    OK(tide_lock_new(world, &counter.lock));
    OK(tide_cond_new(world, &counter.cond));
    tide_thread *thread = NULL;
    OK(tide_world_thread(world, "turns", take_turns, &counter, &thread, NULL));
    tide_lock_take(world, counter.lock);
    for (int i = 0; i < 500; i++) {
        while (counter.turn != 0)
            (void)tide_cond_wait(world, counter.cond, counter.lock, TIDE_NEVER);
        assert_int_equal(counter.count, i);
        counter.turn = 1;
        tide_cond_wake_one(world, counter.cond);
    }
    tide_lock_drop(world, counter.lock);
    tide_world_join(world, thread);

    /* No thread wakes this one. */
    const uint64_t until_us = tide_world_now_us(world) + 20000;
    tide_lock_take(world, counter.lock);
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK)
        rc = tide_cond_wait(world, counter.cond, counter.lock, until_us);
    tide_lock_drop(world, counter.lock);
    assert_int_equal(rc, TIDE_TIMEOUT);
    assert_true(tide_world_now_us(world) >= until_us);
    tide_cond_free(world, counter.cond);
    tide_lock_free(world, counter.lock);
    tide_cond_free(world, NULL);
    tide_lock_free(world, NULL);
}

static void look_at_self(void *arg)
{
    struct counter *counter = arg;
    (void)pthread_getname_np(pthread_self(), counter->name, sizeof counter->name);
    sigset_t mask;
    counter->signals_blocked = pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 &&
                               sigismember(&mask, SIGTERM) == 1 &&
                               sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGPIPE) == 1;
}

CASE(threads_have_names_and_take_no_signals)
{
    struct counter counter = {.world = f->world};
    tide_thread *thread = NULL;
    OK(tide_world_thread(f->world, "a-name-that-is-too-long", look_at_self, &counter, &thread,
                         NULL));
    tide_world_join(f->world, thread);
    assert_string_equal(counter.name, "a-name-that-is-");
    assert_true(counter.signals_blocked);
    sigset_t mask;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGTERM), 0); /* ours is as it was */
}

struct sleeper {
    tide_world *world;
    tide_world *clock;
    tide_cancel cancel;
    tide_cancel asleep; /* rung just before */
    tide_status status;
    uint64_t woke_us;
};

static void sleep_for_ever(void *arg)
{
    struct sleeper *sleeper = arg;
    tide_world_cancel(sleeper->clock, &sleeper->asleep, TIDE_CANCEL_USER);
    sleeper->status = tide_world_sleep_until(sleeper->world, TIDE_NEVER, &sleeper->cancel);
    sleeper->woke_us = tide_world_now_us(sleeper->clock);
}

CASE(sleep_ends_in_time_or_when_canceled)
{
    tide_world *world = f->world;
    const uint64_t until_us = tide_world_now_us(world) + 10000;
    OK(tide_world_sleep_until(world, until_us, NULL));
    assert_true(tide_world_now_us(world) >= until_us);
    OK(tide_world_sleep_until(world, 0, NULL));

    uint64_t worst_us = 0;
    for (int i = 0; i < 200; i++) {
        struct sleeper sleeper = {.world = world, .clock = world};
        struct sleeper other = {.world = world, .clock = world};
        tide_thread *thread = NULL;
        tide_thread *other_thread = NULL;
        OK(tide_world_thread(world, "s", sleep_for_ever, &sleeper, &thread, NULL));
        OK(tide_world_thread(world, "o", sleep_for_ever, &other, &other_thread, NULL));
        if (i % 2 == 0) /* else the cancellation comes at any moment, also before */
            (void)tide_world_sleep_until(world, TIDE_NEVER, &sleeper.asleep);
        const uint64_t from_us = tide_world_now_us(world);
        tide_world_cancel(world, &sleeper.cancel, TIDE_CANCEL_STALE);
        tide_world_join(world, thread);
        assert_int_equal(sleeper.status, TIDE_CANCELED);
        if (i % 2 == 0 && sleeper.woke_us - from_us > worst_us)
            worst_us = sleeper.woke_us - from_us;
        tide_world_cancel(world, &other.cancel, TIDE_CANCEL_STOP);
        tide_world_join(world, other_thread);
        assert_int_equal(other.status, TIDE_CANCELED);
        assert_int_equal(tide_world_sleep_until(world, 0, &other.cancel), TIDE_CANCELED);
    }
    assert_true(worst_us < 100000);
    print_message("slowest wake of a canceled sleeper: %llu us\n", (unsigned long long)worst_us);
}

CASE(freeing_the_world_wakes_its_sleepers)
{
    struct sleeper sleeper = {.clock = f->world};
    OK(tide_world_real_new(tide_mem_heap(), &sleeper.world, NULL));
    tide_thread *thread = NULL;
    OK(tide_world_thread(f->world, "s", sleep_for_ever, &sleeper, &thread, NULL));
    /* Until it is really inside: a world must not be freed under one who is
     * about to enter it. */
    struct real_world *real = real_of(sleeper.world);
    bool inside = false;
    while (!inside) {
        real_lock(&real->wait_lock);
        inside = real->sleepers != NULL;
        real_unlock(&real->wait_lock);
    }
    tide_world_real_free(sleeper.world);
    tide_world_join(f->world, thread);
    assert_int_equal(sleeper.status, TIDE_STOPPED);
}

/* ---- files --------------------------------------------------------------- */

static tide_status read_back(struct fixture *f, const char *path, size_t bytes_max, tide_buf *buf)
{
    tide_buf_clear(buf);
    return tide_file_read(f->world, path, bytes_max, buf, NULL);
}

CASE(a_replaced_file_is_the_new_one_and_leaves_no_litter)
{
    tide_buf buf = heap_buf(1 << 20);
    const char *path = path_in(f, "token");
    assert_int_equal(read_back(f, path, 100, &buf), TIDE_NOT_FOUND);
    OK(tide_file_replace(f->world, path, TIDE_TEXT("first"), 0600, NULL));
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    OK(read_back(f, path, 100, &buf));
    assert_string_equal(tide_buf_cstr(&buf), "first");

    /* What a crash left behind blocks nothing. */
    int fd = open(path_in(f, ".token.new"), O_CREAT | O_WRONLY, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "half", 4), 4);
    close(fd);
    OK(tide_file_replace(f->world, path, TIDE_TEXT("2"), 0600, NULL));
    OK(read_back(f, path, 100, &buf));
    assert_string_equal(tide_buf_cstr(&buf), "2");
    assert_int_equal(entries_in(f->dir), 1);

    OK(tide_file_replace(f->world, path, TIDE_TEXT_NONE, 0600, NULL));
    OK(read_back(f, path, 0, &buf));
    assert_int_equal(buf.bytes, 0);
    OK(tide_file_remove(f->world, path, NULL));
    assert_int_equal(tide_file_remove(f->world, path, NULL), TIDE_NOT_FOUND);
    assert_int_equal(tide_file_replace(f->world, path_in(f, "no/such"), TIDE_TEXT("x"), 0600, NULL),
                     TIDE_NOT_FOUND);
    assert_int_equal(tide_file_replace(f->world, path_in(f, ""), TIDE_TEXT("x"), 0600, NULL),
                     TIDE_INVALID);
    tide_buf_done(&buf);
}

CASE(reading_stops_at_the_ceiling)
{
    static char content[100001];
    memset(content, 'x', sizeof content);
    const char *path = path_in(f, "large");
    OK(tide_file_replace(f->world, path, (tide_text){content, sizeof content}, 0600, NULL));
    tide_buf buf = heap_buf(1 << 20);
    OK(tide_buf_add_text(&buf, "kept"));
    const size_t refused[] = {0, 1, 16383, 16384, 16385, 100000};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(tide_file_read(f->world, path, refused[i], &buf, NULL), TIDE_FULL);
        assert_string_equal(tide_buf_cstr(&buf), "kept"); /* untouched on failure */
    }
    OK(tide_file_read(f->world, path, 100001, &buf, NULL));
    assert_int_equal(buf.bytes, 4 + 100001);
    OK(read_back(f, path, SIZE_MAX, &buf));
    assert_int_equal(buf.bytes, 100001);
    tide_buf_done(&buf);

    tide_buf_init(&buf, tide_mem_heap(), 1000); /* the buffer's own ceiling */
    assert_int_equal(tide_file_read(f->world, path, 200000, &buf, NULL), TIDE_FULL);
    tide_buf_done(&buf);
    OK(tide_file_remove(f->world, path, NULL));
}

struct replacer {
    struct fixture *f;
    const char *path;
    char letter;
    int failures;
};

static void replace_often(void *arg)
{
    struct replacer *replacer = arg;
    char content[3000];
    memset(content, replacer->letter, sizeof content);
    for (int i = 0; i < 50; i++)
        if (tide_file_replace(replacer->f->world, replacer->path,
                              (tide_text){content, sizeof content}, 0600, NULL) != TIDE_OK)
            replacer->failures++;
}

CASE(replacing_from_many_threads_never_mixes)
{
    const char *path = path_in(f, "shared");
    struct replacer replacers[3];
    tide_thread *threads[3];
    for (int i = 0; i < 3; i++) {
        replacers[i] = (struct replacer){f, path, (char)('a' + i), 0};
        OK(tide_world_thread(f->world, "replace", replace_often, &replacers[i], &threads[i], NULL));
    }
    tide_buf buf = heap_buf(10000);
    for (int i = 0; i < 200; i++) {
        tide_status rc = read_back(f, path, 10000, &buf);
        if (rc == TIDE_NOT_FOUND) /* not yet */
            continue;
        assert_int_equal(rc, TIDE_OK);
        assert_int_equal(buf.bytes, 3000);
        for (size_t k = 1; k < buf.bytes; k++)
            assert_int_equal(buf.data[k], buf.data[0]);
    }
    for (int i = 0; i < 3; i++) {
        tide_world_join(f->world, threads[i]);
        assert_int_equal(replacers[i].failures, 0);
    }
    assert_int_equal(entries_in(f->dir), 1);
    tide_buf_done(&buf);
    OK(tide_file_remove(f->world, path, NULL));
}

struct names {
    size_t count;
    bool a, f;
};

static void name_seen(const char *name, void *arg)
{
    struct names *names = arg;
    names->count++;
    names->a = names->a || strcmp(name, "a") == 0;
    names->f = names->f || strcmp(name, "f") == 0;
}

CASE(directories_are_made_private_with_those_above)
{
    tide_world *world = f->world;
    OK(tide_dir_make(world, path_in(f, "a//b/c/"), NULL));
    OK(tide_dir_make(world, path_in(f, "a/b/c"), NULL));
    OK(tide_dir_make(world, "/", NULL));
    assert_int_equal(tide_dir_make(world, "", NULL), TIDE_INVALID);
    struct stat info;
    assert_int_equal(stat(path_in(f, "a/b/c"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    OK(tide_file_replace(world, path_in(f, "f"), TIDE_TEXT("x"), 0600, NULL));
    assert_int_not_equal(tide_dir_make(world, path_in(f, "f"), NULL), TIDE_OK);
    assert_int_not_equal(tide_dir_make(world, path_in(f, "f/g"), NULL), TIDE_OK);
    struct names names = {0};
    OK(tide_dir_list(world, f->dir, name_seen, &names, NULL));
    assert_int_equal(names.count, 2);
    assert_true(names.a);
    assert_true(names.f);
    assert_int_equal(tide_dir_list(world, path_in(f, "none"), name_seen, &names, NULL),
                     TIDE_NOT_FOUND);
    uint64_t free_bytes = 0;
    OK(tide_disk_free(world, f->dir, &free_bytes, NULL));
    assert_true(free_bytes > 0);
    assert_int_equal(tide_disk_free(world, path_in(f, "none"), &free_bytes, NULL), TIDE_NOT_FOUND);
    OK(tide_file_remove(world, path_in(f, "f"), NULL));
    assert_int_equal(rmdir(path_in(f, "a/b/c")), 0);
    assert_int_equal(rmdir(path_in(f, "a/b")), 0);
    assert_int_equal(rmdir(path_in(f, "a")), 0);
}

CASE(a_held_lock_names_its_holder)
{
    tide_world *world = f->world;
    const char *path = path_in(f, "lock");
    tide_file_lock *lock = NULL;
    tide_file_lock *other = NULL;
    tide_error err = {0};
    OK(tide_file_lock_take(world, path, TIDE_TEXT("serve, process 1"), &lock, &err));
    assert_int_equal(tide_file_lock_take(world, path, TIDE_TEXT("second"), &other, &err),
                     TIDE_BUSY);
    assert_string_equal(err.text, "serve, process 1");
    assert_null(other);
    tide_file_lock_drop(world, lock);
    OK(tide_file_lock_take(world, path, TIDE_TEXT("third\nline"), &lock, &err));
    assert_int_equal(tide_file_lock_take(world, path, TIDE_TEXT("x"), &other, &err), TIDE_BUSY);
    assert_string_equal(err.text, "third");
    tide_file_lock_drop(world, lock);
    tide_file_lock_drop(world, NULL);
    OK(tide_file_remove(world, path, NULL));
}

/* A process that is killed leaves no lock behind (E1.7: restart at once). */
CASE(a_lock_dies_with_its_process)
{
    const char *path = path_in(f, "lock");
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tide_file_lock *lock = NULL;
        tide_status rc = tide_file_lock_take(f->world, path, TIDE_TEXT("the child"), &lock, NULL);
        char byte = rc == TIDE_OK ? 'y' : 'n';
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    tide_file_lock *lock = NULL;
    tide_error err = {0};
    assert_int_equal(tide_file_lock_take(f->world, path, TIDE_TEXT("parent"), &lock, &err),
                     TIDE_BUSY);
    assert_string_equal(err.text, "the child");
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    OK(tide_file_lock_take(f->world, path, TIDE_TEXT("parent"), &lock, &err));
    tide_file_lock_drop(f->world, lock);
    OK(tide_file_remove(f->world, path, NULL));
    close(ready[0]);
    close(ready[1]);
}

/* ---- memory -------------------------------------------------------------- */

static void do_nothing(void *arg)
{
    (void)arg;
}

static tide_status make_everything(struct fixture *f, tide_mem *mem)
{
    tide_world *world = NULL;
    tide_lock *lock = NULL;
    tide_cond *cond = NULL;
    tide_thread *thread = NULL;
    tide_file_lock *file_lock = NULL;
    tide_status rc = tide_world_real_new(mem, &world, NULL);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_lock_new(world, &lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(world, &cond);
    if (rc == TIDE_OK)
        rc = tide_world_thread(world, "nothing", do_nothing, NULL, &thread, NULL);
    if (rc == TIDE_OK)
        rc = tide_file_lock_take(world, path_in(f, "lock"), TIDE_TEXT("me"), &file_lock, NULL);
    tide_byte_budget *budget = rc == TIDE_OK ? tide_budget_new(world, 1) : NULL;
    if (rc == TIDE_OK && budget == NULL)
        rc = TIDE_NO_MEMORY;
    tide_budget_free(world, budget);
    tide_file_lock_drop(world, file_lock);
    tide_world_join(world, thread);
    tide_cond_free(world, cond);
    tide_lock_free(world, lock);
    tide_world_real_free(world);
    return rc;
}

CASE(the_world_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        tide_status rc = make_everything(f, &mem.base);
        assert_swept(mem, rc);
    }
    assert_int_equal(unlink(path_in(f, "lock")), 0);
}

/* Whether another process would find the file locked. */
static bool is_locked(const char *path)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int fd = open(path, O_RDWR);
        struct flock ask = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        _exit(fd >= 0 && fcntl(fd, F_GETLK, &ask) == 0 && ask.l_type != F_UNLCK ? 1 : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* SQLite's locks are of the sort that a close in this process would take away (M13). */
CASE(forgetting_a_file_keeps_its_bytes_and_its_locks)
{
    const char *path = textf("%s", path_in(f, "shard"));
    tide_error err = {0};
    assert_int_equal(tide_file_forget(f->world, path, &err), TIDE_NOT_FOUND);
    assert_non_null(strstr(err.text, path));
    OK(tide_file_replace(f->world, path, TIDE_TEXT("bytes"), 0600, &err));
    const int fd = open(path, O_RDWR);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
    assert_true(is_locked(path));
    OK(tide_file_forget(f->world, path, &err));
    assert_true(is_locked(path));
    tide_buf bytes = heap_buf(100);
    OK(tide_file_read(f->world, path, 100, &bytes, &err));
    assert_string_equal(tide_buf_cstr(&bytes), "bytes");
    assert_false(is_locked(path)); /* as said: that read closed the file */
    tide_buf_done(&bytes);
    (void)close(fd);
    assert_int_equal(unlink(path), 0);
}

/* In a time namespace the clock that counts sleep is a day ahead of the one that does not, as
 * after a day with the lid closed. */
static int look_after_sleep(void)
{
    tide_world *world = NULL;
    tide_error err;
    if (tide_world_real_new(tide_mem_heap(), &world, &err) != TIDE_OK)
        return 1;
    const uint64_t now_us = tide_world_now_us(world);
    struct timespec awake;
    (void)clock_gettime(CLOCK_MONOTONIC, &awake);
    if (now_us < ((uint64_t)awake.tv_sec + 86000) * 1000000)
        return 2; /* the sleep did not count */
    if (tide_world_sleep_until(world, now_us + 20000, NULL) != TIDE_OK)
        return 3;
    tide_world_real_free(world);
    return 0;
}

CASE(the_clock_counts_while_the_machine_sleeps)
{
    const pid_t child = fork();
    if (child == 0) {
        FILE *offsets =
            unshare(CLONE_NEWTIME) == 0 ? fopen("/proc/self/timens_offsets", "w") : NULL;
        if (offsets == NULL || fputs("boottime 86400 0\n", offsets) < 0 || fclose(offsets) != 0)
            _exit(77);
        const pid_t inside = fork(); /* only children are in the new namespace */
        if (inside == 0)
            _exit(look_after_sleep());
        int status = 0;
        (void)waitpid(inside, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("skipped: no time namespaces here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}
