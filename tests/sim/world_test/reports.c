/* Who breaks the rules of the world is reported by name. */
#include "sim_world_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(broken_rules_are_reported_by_name)
{
    expect_abort(deadlock_body, "deadlock", "left-alone       waits for condition");
    expect_abort(lock_cycle_body, "forwards         waits for lock 3, held by backwards",
                 "backwards        waits for lock 1, held by forwards");
    expect_abort(spin_body, "SWLD4", "stubborn");
    expect_abort(lock_over_sleep_body, "SWLD3", "main holds a lock over a sleep");
    expect_abort(unjoined_body, "SWLD5", "orphan");
}
