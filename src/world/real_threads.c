#include "world/real.h"
#include "base/check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

struct tide_thread {
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
    char name[16]; /* the kernel's limit */
};

struct tide_lock {
    pthread_mutex_t mutex;
};

struct tide_cond {
    pthread_cond_t cond;
};

static uint64_t clock_us(clockid_t clock)
{
    struct timespec now;
    TIDE_ASSERT(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Includes the time the machine is suspended: a lease that expired meanwhile must not look valid
 * to a process that wakes up (E1.8). */
uint64_t real_now_us(tide_world *world)
{
    (void)world;
    return clock_us(CLOCK_BOOTTIME);
}

void real_lock(pthread_mutex_t *mutex)
{
    int failed = pthread_mutex_lock(mutex);
    TIDE_ASSERT(failed == 0);
}

void real_unlock(pthread_mutex_t *mutex)
{
    int failed = pthread_mutex_unlock(mutex);
    TIDE_ASSERT(failed == 0);
}

bool real_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return false;
    /* Waits must not jump when the wall clock is set. */
    bool ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(cond, &attr) == 0;
    (void)pthread_condattr_destroy(&attr);
    return ok;
}

static void *thread_main(void *arg)
{
    tide_thread *thread = arg;
    (void)pthread_setname_np(pthread_self(), thread->name); /* for display only */
    thread->run(thread->arg);
    return NULL;
}

tide_status real_thread_start(tide_world *world, const char *name, void (*run)(void *arg),
                              void *arg, tide_thread **thread_out, tide_error *err)
{
    TIDE_ASSERT(run != NULL);
    tide_thread *thread = real_mem_new(real_of(world), sizeof *thread);
    if (thread == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for thread %s", name);
    thread->run = run;
    thread->arg = arg;
    (void)snprintf(thread->name, sizeof thread->name, "%s", name);

    /* A thread inherits the mask, so the signals are blocked before it is created: it can never
     * receive one (REAL1). */
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    TIDE_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int failed = pthread_create(&thread->id, NULL, thread_main, thread);
    TIDE_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (failed != 0) {
        real_mem_free(real_of(world), thread, sizeof *thread);
        return tide_error_os(err, failed == EAGAIN ? ENOMEM : failed, "start thread %s", name);
    }
    *thread_out = thread;
    return TIDE_OK;
}

void real_thread_join(tide_world *world, tide_thread *thread)
{
    if (thread == NULL)
        return;
    int failed = pthread_join(thread->id, NULL);
    TIDE_ASSERT(failed == 0);
    real_mem_free(real_of(world), thread, sizeof *thread);
}

tide_status real_lock_new(tide_world *world, tide_lock **lock_out)
{
    tide_lock *lock = real_mem_new(real_of(world), sizeof *lock);
    if (lock == NULL)
        return TIDE_NO_MEMORY;
    if (pthread_mutex_init(&lock->mutex, NULL) != 0) {
        real_mem_free(real_of(world), lock, sizeof *lock);
        return TIDE_NO_MEMORY;
    }
    *lock_out = lock;
    return TIDE_OK;
}

void real_lock_free(tide_world *world, tide_lock *lock)
{
    if (lock == NULL)
        return;
    int failed = pthread_mutex_destroy(&lock->mutex);
    TIDE_ASSERT(failed == 0); /* else a thread still holds it */
    real_mem_free(real_of(world), lock, sizeof *lock);
}

void real_lock_take(tide_world *world, tide_lock *lock)
{
    (void)world;
    real_lock(&lock->mutex);
}

void real_lock_drop(tide_world *world, tide_lock *lock)
{
    (void)world;
    real_unlock(&lock->mutex);
}

tide_status real_cond_new(tide_world *world, tide_cond **cond_out)
{
    tide_cond *cond = real_mem_new(real_of(world), sizeof *cond);
    if (cond == NULL)
        return TIDE_NO_MEMORY;
    if (!real_cond_init(&cond->cond)) {
        real_mem_free(real_of(world), cond, sizeof *cond);
        return TIDE_NO_MEMORY;
    }
    *cond_out = cond;
    return TIDE_OK;
}

void real_cond_free(tide_world *world, tide_cond *cond)
{
    if (cond == NULL)
        return;
    int failed = pthread_cond_destroy(&cond->cond);
    TIDE_ASSERT(failed == 0);
    real_mem_free(real_of(world), cond, sizeof *cond);
}

/* TIDE_OK or TIDE_TIMEOUT. */
static tide_status wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline_us)
{
    int failed = 0;
    if (deadline_us == TIDE_NEVER) {
        failed = pthread_cond_wait(cond, mutex);
    } else {
        /* Conditions cannot wait by CLOCK_BOOTTIME, which includes suspended time.  They wait
         * for the rest by CLOCK_MONOTONIC, and a little too long after a suspend. */
        const uint64_t now_us = clock_us(CLOCK_BOOTTIME);
        const uint64_t left_us = deadline_us > now_us ? deadline_us - now_us : 0;
        const uint64_t until_us = clock_us(CLOCK_MONOTONIC) + left_us;
        struct timespec deadline = {
            .tv_sec = (time_t)(until_us / 1000000),
            .tv_nsec = (long)(until_us % 1000000) * 1000,
        };
        failed = pthread_cond_timedwait(cond, mutex, &deadline);
    }
    TIDE_ASSERT(failed == 0 || failed == ETIMEDOUT);
    return failed == 0 ? TIDE_OK : TIDE_TIMEOUT;
}

tide_status real_cond_wait(tide_world *world, tide_cond *cond, tide_lock *lock,
                           uint64_t deadline_us)
{
    (void)world;
    return wait_until(&cond->cond, &lock->mutex, deadline_us);
}

void real_cond_wake(tide_world *world, tide_cond *cond, bool all)
{
    (void)world;
    int failed = all ? pthread_cond_broadcast(&cond->cond) : pthread_cond_signal(&cond->cond);
    TIDE_ASSERT(failed == 0);
}

static void sleeper_link(struct real_world *real, struct real_sleeper *sleeper)
{
    sleeper->prev = NULL;
    sleeper->next = real->sleepers;
    if (sleeper->next != NULL)
        sleeper->next->prev = sleeper;
    real->sleepers = sleeper;
}

static void sleeper_unlink(struct real_world *real, struct real_sleeper *sleeper)
{
    if (sleeper->next != NULL)
        sleeper->next->prev = sleeper->prev;
    if (sleeper->prev != NULL)
        sleeper->prev->next = sleeper->next;
    else
        real->sleepers = sleeper->next;
    if (real->stopping && real->sleepers == NULL)
        (void)pthread_cond_signal(&real->sleepers_gone);
}

tide_status real_sleep_until(tide_world *world, uint64_t deadline_us, const tide_cancel *cancel)
{
    struct real_world *real = real_of(world);
    struct real_sleeper sleeper = {.cancel = cancel};
    if (!real_cond_init(&sleeper.cond))
        return TIDE_NO_MEMORY;

    real_lock(&real->wait_lock);
    sleeper_link(real, &sleeper);
    tide_status rc = TIDE_OK;
    for (;;) {
        if (real->stopping) {
            rc = TIDE_STOPPED;
            break;
        }
        if (cancel != NULL && tide_canceled(cancel) != TIDE_CANCEL_NONE) {
            rc = TIDE_CANCELED;
            break;
        }
        if (real_now_us(world) >= deadline_us)
            break;
        (void)wait_until(&sleeper.cond, &real->wait_lock, deadline_us);
    }
    sleeper_unlink(real, &sleeper);
    real_unlock(&real->wait_lock);
    (void)pthread_cond_destroy(&sleeper.cond); /* wakers signal under the lock, so none is left */
    return rc;
}

void real_sleepers_cancel(struct real_world *real, const tide_cancel *cancel)
{
    /* There are at most as many sleepers as threads, so a list is enough. */
    real_lock(&real->wait_lock);
    for (struct real_sleeper *at = real->sleepers; at != NULL; at = at->next)
        if (at->cancel == cancel)
            (void)pthread_cond_signal(&at->cond);
    real_unlock(&real->wait_lock);
}

void real_sleepers_stop(struct real_world *real)
{
    real_lock(&real->wait_lock);
    real->stopping = true;
    for (struct real_sleeper *at = real->sleepers; at != NULL; at = at->next)
        (void)pthread_cond_signal(&at->cond);
    while (real->sleepers != NULL)
        (void)wait_until(&real->sleepers_gone, &real->wait_lock, TIDE_NEVER);
    real_unlock(&real->wait_lock);
}
