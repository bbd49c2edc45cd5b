/* The baton: threads, locks, conditions, sleeping and cancelling. */
#include "sim_inside.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- handing over -------------------------------------------------------- */

static void baton_give(tide_thread *to)
{
    __atomic_store_n(&to->baton, 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &to->baton, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void baton_await(tide_thread *self)
{
    while (__atomic_load_n(&self->baton, __ATOMIC_ACQUIRE) == 0)
        (void)syscall(SYS_futex, &self->baton, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    __atomic_store_n(&self->baton, 0, __ATOMIC_RELAXED);
}

static void runnable_add(tide_sim *sim, tide_thread *thread)
{
    thread->wait = SIM_WAIT_NOTHING;
    thread->runnable_at = sim->runnable_count;
    sim->runnable[sim->runnable_count++] = thread;
}

static void runnable_remove(tide_sim *sim, tide_thread *thread)
{
    tide_thread *last = sim->runnable[--sim->runnable_count];
    sim->runnable[thread->runnable_at] = last;
    last->runnable_at = thread->runnable_at;
}

void sim_wake(tide_sim *sim, tide_thread *thread, tide_status how)
{
    TIDE_ASSERT(thread->wait != SIM_WAIT_NOTHING);
    TIDE_ASSERT(thread->wait != SIM_WAIT_ENDED);
    thread->woken = how;
    runnable_add(sim, thread);
}

static bool ends_with_the_world(sim_wait wait)
{
    switch (wait) {
    case SIM_WAIT_COND:
    case SIM_WAIT_SLEEP:
    case SIM_WAIT_NET:
    case SIM_WAIT_DISK:
    case SIM_WAIT_STILL:
        return true;
    case SIM_WAIT_NOTHING:
    case SIM_WAIT_LOCK:
    case SIM_WAIT_JOIN:
    case SIM_WAIT_ENDED:
        break;
    }
    return false;
}

void sim_wake_dead(tide_sim *sim)
{
    for (size_t i = 0; i < sim->threads_count; i++) {
        tide_thread *thread = sim->threads[i];
        thread->dead_steps = 0;
        thread->frozen_until_us = 0;
        if (ends_with_the_world(thread->wait))
            sim_wake(sim, thread, TIDE_STOPPED);
    }
}

/* Every thread whose time has come can run; the rest says when to look again. */
static void wake_due(tide_sim *sim)
{
    uint64_t earliest_us = TIDE_NEVER;
    for (size_t i = 0; i < sim->threads_count; i++) {
        tide_thread *thread = sim->threads[i];
        if (thread->wait == SIM_WAIT_NOTHING || thread->deadline_us == TIDE_NEVER)
            continue;
        if (thread->deadline_us <= sim->now_us)
            sim_wake(sim, thread, TIDE_TIMEOUT);
        else if (thread->deadline_us < earliest_us)
            earliest_us = thread->deadline_us;
    }
    sim->deadline_us = earliest_us;
}

/* Few changes between long stretches find what a fair choice seldom does: one
 * thread does all its work while another stands between two of its steps. */
static tide_thread *favourite(tide_sim *sim)
{
    if (tide_rng_chance(&sim->order, 1, SIM_FAVOUR_STEPS))
        sim->current->favour = --sim->favour_least;
    tide_thread *best = sim->runnable[0];
    for (size_t i = 1; i < sim->runnable_count; i++)
        if (sim->runnable[i]->favour > best->favour)
            best = sim->runnable[i];
    return best;
}

/* The seed picks one of those that can run; time jumps until there is one. */
static tide_thread *pick(tide_sim *sim)
{
    if (sim->now_us >= sim->deadline_us)
        wake_due(sim);
    while (sim->runnable_count == 0) {
        if (sim->deadline_us == TIDE_NEVER)
            tide_sim_fail(sim, "deadlock: nobody can run and nobody has a deadline");
        sim->now_us = sim->deadline_us;
        sim->stats.jumps++;
        sim_trace_add(sim, SIM_OP_JUMP, 0, NULL);
        wake_due(sim); /* the bound may have been too early: look again */
    }
    /* In a dead world every thread gets out: one that waits for another one's last
     * words asks again and again, and must not be preferred for it. */
    if (sim->options.unfair && !sim->dead && !tide_rng_chance(&sim->order, 1, 8))
        return favourite(sim);
    return sim->runnable[tide_rng_below(&sim->order, sim->runnable_count)];
}

static void switch_to(tide_sim *sim, tide_thread *next)
{
    tide_thread *self = sim->current;
    if (next == self)
        return;
    sim->stats.switches++;
    sim->current = next;
    sim_trace_add(sim, SIM_OP_SWITCH, 0, NULL);
    baton_give(next);
    baton_await(self);
    TIDE_ASSERT(sim->current == self);
}

/* ---- steps --------------------------------------------------------------- */

void sim_tick(tide_sim *sim, sim_op op, uint64_t number, const char *text)
{
    tide_thread *self = sim->current;
    if (!pthread_equal(pthread_self(), self->pthread))
        tide_sim_fail(sim, "SWLD1: a thread without the baton calls the world (%s has it)",
                      self->name);
    __atomic_store_n(&sim->stats.steps, sim->stats.steps + 1, __ATOMIC_RELAXED);
    sim->now_us += tide_rng_below(&sim->order, sim->options.cost_us_max + 1u);
    sim_trace_add(sim, op, number, text);
    if (sim->dead && ++self->dead_steps > sim->options.dead_steps_max)
        tide_sim_fail(sim, "SWLD4: %s goes on in a dead world: a loop ignores TIDE_STOPPED",
                      self->name);
}

/* A thread that was frozen while it waited stays frozen. */
static void stand_still(tide_sim *sim, tide_thread *self)
{
    while (self->frozen_until_us > sim->now_us && !sim->dead) {
        uint64_t until_us = self->frozen_until_us;
        self->frozen_until_us = 0;
        (void)sim_block(sim, SIM_WAIT_STILL, NULL, 0, until_us, NULL);
    }
}

void sim_step(tide_sim *sim, sim_op op, uint64_t number, const char *text)
{
    sim_tick(sim, op, number, text);
    if (sim->stats.steps >= sim->next_step)
        sim_plan_run(sim);
    stand_still(sim, sim->current);
    if (tide_rng_chance(&sim->order, sim->options.yield_permille, 1000))
        switch_to(sim, pick(sim));
}

tide_status sim_block(tide_sim *sim, sim_wait wait, const void *wait_for, uint64_t wait_id,
                      uint64_t deadline_us, const tide_cancel *cancel)
{
    tide_thread *self = sim->current;
    TIDE_ASSERT(self->wait == SIM_WAIT_NOTHING);
    if (sim->dead && ends_with_the_world(wait))
        return TIDE_STOPPED;
    if (cancel != NULL && tide_canceled(cancel) != TIDE_CANCEL_NONE)
        return TIDE_CANCELED;

    runnable_remove(sim, self);
    self->wait = wait;
    self->wait_for = wait_for;
    self->wait_id = wait_id;
    self->cancel = cancel;
    self->deadline_us = deadline_us;
    self->woken = TIDE_OK;
    if (deadline_us < sim->deadline_us)
        sim->deadline_us = deadline_us;
    switch_to(sim, pick(sim));

    TIDE_ASSERT(self->wait == SIM_WAIT_NOTHING);
    tide_status woken = self->woken;
    self->wait_for = NULL;
    self->wait_id = 0;
    self->cancel = NULL;
    self->deadline_us = TIDE_NEVER;
    if (wait != SIM_WAIT_STILL)
        stand_still(sim, self);
    if (sim->dead && ends_with_the_world(wait))
        return TIDE_STOPPED;
    return woken;
}

void sim_expect_no_locks(tide_sim *sim, const char *what)
{
    if (sim->current->locks_held > 0)
        tide_sim_fail(sim, "SWLD3: %s holds a lock over a %s", sim->current->name, what);
}

/* ---- threads ------------------------------------------------------------- */

static void wake_all_for(tide_sim *sim, sim_wait wait, const void *what)
{
    for (size_t i = 0; i < sim->threads_count; i++)
        if (sim->threads[i]->wait == wait && sim->threads[i]->wait_for == what)
            sim_wake(sim, sim->threads[i], TIDE_OK);
}

static void *thread_main(void *arg)
{
    tide_thread *self = arg;
    tide_sim *sim = self->sim;

    baton_await(self);
    self->run(self->arg);

    sim_tick(sim, SIM_OP_END, self->id, self->name);
    if (self->locks_held > 0)
        tide_sim_fail(sim, "SWLD2: %s ends with a lock", self->name);
    runnable_remove(sim, self);
    self->wait = SIM_WAIT_ENDED;
    self->deadline_us = TIDE_NEVER;
    wake_all_for(sim, SIM_WAIT_JOIN, self);
    /* The next thread may join this one and free it, so it is not touched
     * after the baton is gone. */
    tide_thread *next = pick(sim);
    sim->stats.switches++;
    sim->current = next;
    sim_trace_add(sim, SIM_OP_SWITCH, 0, NULL);
    baton_give(next);
    return NULL;
}

static tide_thread *thread_new(tide_sim *sim, const char *name)
{
    if (sim->threads_count == sim->threads_capacity) {
        size_t old_bytes = sim->threads_capacity * sizeof(tide_thread *);
        size_t new_bytes = old_bytes == 0 ? 16 * sizeof(tide_thread *) : old_bytes * 2;
        sim->threads = sim_resize(sim->threads, old_bytes, new_bytes);
        sim->runnable = sim_resize(sim->runnable, old_bytes, new_bytes);
        sim->threads_capacity = new_bytes / sizeof(tide_thread *);
    }
    tide_thread *thread = sim_alloc(sizeof *thread);
    thread->sim = sim;
    thread->id = ++sim->threads_ever;
    thread->deadline_us = TIDE_NEVER;
    if (sim->options.unfair) /* two alike would make the order hang on an index */
        thread->favour = (int64_t)(tide_rng_next(&sim->order) >> 16 << 8 | (thread->id & 0xff));
    (void)snprintf(thread->name, sizeof thread->name, "%s", name);
    sim->threads[sim->threads_count++] = thread;
    if (sim->threads_count > sim->stats.threads_highest)
        sim->stats.threads_highest = (uint32_t)sim->threads_count;
    runnable_add(sim, thread);
    return thread;
}

static void thread_forget(tide_sim *sim, tide_thread *thread)
{
    size_t at = 0;
    while (sim->threads[at] != thread)
        at++;
    memmove(sim->threads + at, sim->threads + at + 1,
            (sim->threads_count - at - 1) * sizeof(tide_thread *));
    sim->threads_count--;
    free(thread);
}

static tide_status sim_thread_start(tide_world *world, const char *name, void (*run)(void *arg),
                                    void *arg, tide_thread **thread_out, tide_error *err)
{
    tide_sim *sim = sim_of(world);
    TIDE_ASSERT(run != NULL);
    sim_step(sim, SIM_OP_THREAD, 0, name);
    if (sim->dead)
        return tide_error_set(err, TIDE_STOPPED, "start thread %s: the world is dead", name);
    if (sim->threads_count >= sim->options.threads_max)
        return tide_error_set(err, TIDE_FULL, "start thread %s: too many threads", name);

    tide_thread *thread = thread_new(sim, name);
    thread->run = run;
    thread->arg = arg;
    pthread_attr_t attr;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, 1 << 20);
    int failed = pthread_create(&thread->pthread, &attr, thread_main, thread);
    (void)pthread_attr_destroy(&attr);
    if (failed != 0) {
        runnable_remove(sim, thread);
        thread_forget(sim, thread);
        return tide_error_os(err, failed, "start thread %s", name);
    }
    *thread_out = thread;
    sim_step(sim, SIM_OP_THREAD, thread->id, name);
    return TIDE_OK;
}

static void sim_thread_join(tide_world *world, tide_thread *thread)
{
    if (thread == NULL)
        return;
    tide_sim *sim = sim_of(world);
    TIDE_ASSERT(thread != sim->current);
    sim_expect_no_locks(sim, "join");
    sim_step(sim, SIM_OP_JOIN, thread->id, thread->name);
    while (thread->wait != SIM_WAIT_ENDED)
        (void)sim_block(sim, SIM_WAIT_JOIN, thread, thread->id, TIDE_NEVER, NULL);
    (void)pthread_join(thread->pthread, NULL);
    thread_forget(sim, thread);
}

void sim_sched_init(tide_sim *sim)
{
    sim->deadline_us = TIDE_NEVER;
    sim->main = thread_new(sim, "main");
    sim->main->pthread = pthread_self();
    sim->current = sim->main;
}

void sim_sched_done(tide_sim *sim)
{
    TIDE_ASSERT(sim->threads_count == 1);
    free(sim->main);
    free(sim->threads);
    free(sim->runnable);
}

/* ---- locks and conditions ------------------------------------------------ */

static tide_status sim_lock_new(tide_world *world, tide_lock **lock_out)
{
    tide_lock *lock = sim_alloc(sizeof *lock);
    lock->id = ++sim_of(world)->objects_ever;
    *lock_out = lock;
    return TIDE_OK;
}

static void sim_lock_free(tide_world *world, tide_lock *lock)
{
    if (lock == NULL)
        return;
    if (lock->owner != NULL)
        tide_sim_fail(sim_of(world), "SWLD2: lock is freed while %s has it", lock->owner->name);
    free(lock);
}

static void lock_acquire(tide_sim *sim, tide_lock *lock)
{
    if (lock->owner == sim->current)
        tide_sim_fail(sim, "SWLD2: %s takes a lock twice", sim->current->name);
    /* A woken thread still has to win it: another may have come first. */
    while (lock->owner != NULL)
        (void)sim_block(sim, SIM_WAIT_LOCK, lock, lock->id, TIDE_NEVER, NULL);
    lock->owner = sim->current;
    sim->current->locks_held++;
}

/* Wakes one of those waiting, picked by the seed. */
static void wake_one_for(tide_sim *sim, sim_wait wait, const void *what)
{
    size_t waiting = 0;
    for (size_t i = 0; i < sim->threads_count; i++)
        waiting += sim->threads[i]->wait == wait && sim->threads[i]->wait_for == what;
    if (waiting == 0)
        return;
    size_t chosen = waiting == 1 ? 0 : (size_t)tide_rng_below(&sim->order, waiting);
    for (size_t i = 0; i < sim->threads_count; i++) {
        if (sim->threads[i]->wait != wait || sim->threads[i]->wait_for != what)
            continue;
        if (chosen-- == 0) {
            sim_wake(sim, sim->threads[i], TIDE_OK);
            return;
        }
    }
}

static void lock_release(tide_sim *sim, tide_lock *lock)
{
    if (lock->owner != sim->current)
        tide_sim_fail(sim, "SWLD2: %s drops a lock that is not its own", sim->current->name);
    lock->owner = NULL;
    sim->current->locks_held--;
    wake_one_for(sim, SIM_WAIT_LOCK, lock);
}

static void sim_lock(tide_world *world, tide_lock *lock)
{
    tide_sim *sim = sim_of(world);
    sim_step(sim, SIM_OP_LOCK, lock->id, NULL);
    lock_acquire(sim, lock);
}

static void sim_unlock(tide_world *world, tide_lock *lock)
{
    tide_sim *sim = sim_of(world);
    uint64_t id = lock->id;
    lock_release(sim, lock);
    sim_step(sim, SIM_OP_UNLOCK, id, NULL);
}

static tide_status sim_cond_new(tide_world *world, tide_cond **cond_out)
{
    tide_cond *cond = sim_alloc(sizeof *cond);
    cond->id = ++sim_of(world)->objects_ever;
    *cond_out = cond;
    return TIDE_OK;
}

static void sim_cond_free(tide_world *world, tide_cond *cond)
{
    if (cond == NULL)
        return;
    tide_sim *sim = sim_of(world);
    for (size_t i = 0; i < sim->threads_count; i++)
        if (sim->threads[i]->wait == SIM_WAIT_COND && sim->threads[i]->wait_for == cond)
            tide_sim_fail(sim, "a condition is freed while %s waits for it", sim->threads[i]->name);
    free(cond);
}

static tide_status sim_cond_wait(tide_world *world, tide_cond *cond, tide_lock *lock,
                                 uint64_t deadline_us)
{
    tide_sim *sim = sim_of(world);
    if (lock->owner != sim->current)
        tide_sim_fail(sim, "SWLD2: %s waits without the lock", sim->current->name);
    if (sim->current->locks_held > 1)
        sim_expect_no_locks(sim, "wait for the condition of another lock");
    sim_tick(sim, SIM_OP_WAIT, cond->id, NULL);
    if (sim->stats.steps >= sim->next_step)
        sim_plan_run(sim);

    /* No thread runs between the release and the wait, so no wake-up is lost. */
    lock_release(sim, lock);
    tide_status rc = TIDE_OK;
    if (sim->dead) {
        switch_to(sim, pick(sim)); /* this thread may wait for another one's end */
    } else if (sim_fault(sim, &sim->order, sim->options.spurious_permille * 1000)) {
        sim->stats.spurious++;
        switch_to(sim, pick(sim));
        rc = sim->dead ? TIDE_STOPPED : TIDE_OK;
    } else {
        rc = sim_block(sim, SIM_WAIT_COND, cond, cond->id, deadline_us, NULL);
    }
    lock_acquire(sim, lock);
    return sim->dead ? TIDE_STOPPED : rc;
}

static void sim_cond_wake(tide_world *world, tide_cond *cond, bool all)
{
    tide_sim *sim = sim_of(world);
    if (all)
        wake_all_for(sim, SIM_WAIT_COND, cond);
    else
        wake_one_for(sim, SIM_WAIT_COND, cond);
    sim_step(sim, SIM_OP_WAKE, cond->id, NULL);
}

/* ---- sleeping, cancelling, time ------------------------------------------ */

static tide_status sim_sleep_until(tide_world *world, uint64_t deadline_us,
                                   const tide_cancel *cancel)
{
    tide_sim *sim = sim_of(world);
    sim_expect_no_locks(sim, "sleep");
    sim_step(sim, SIM_OP_SLEEP, deadline_us, NULL);
    tide_status rc = sim_block(sim, SIM_WAIT_SLEEP, NULL, 0, deadline_us, cancel);
    return rc == TIDE_TIMEOUT ? TIDE_OK : rc;
}

static void sim_cancel(tide_world *world, tide_cancel *cancel, tide_cancel_reason reason)
{
    tide_sim *sim = sim_of(world);
    TIDE_ASSERT(reason != TIDE_CANCEL_NONE);
    int none = TIDE_CANCEL_NONE;
    (void)__atomic_compare_exchange_n(&cancel->reason, &none, (int)reason, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < sim->threads_count; i++) {
        tide_thread *thread = sim->threads[i];
        if (thread->wait != SIM_WAIT_NOTHING && thread->cancel == cancel)
            sim_wake(sim, thread, TIDE_CANCELED);
    }
    sim_step(sim, SIM_OP_CANCEL, (uint64_t)reason, NULL);
}

/* Reading the clock takes time too, or a loop that waits for it would never
 * end; but it is no place to hand the baton on. */
static uint64_t sim_now_us(tide_world *world)
{
    tide_sim *sim = sim_of(world);
    if (sim->dead && ++sim->current->dead_steps > sim->options.dead_steps_max)
        tide_sim_fail(sim, "SWLD4: %s goes on in a dead world", sim->current->name);
    return sim->now_us++;
}

static uint64_t sim_now_unix_ms(tide_world *world)
{
    tide_sim *sim = sim_of(world);
    int64_t now_ms = (int64_t)(sim->now_us++ / 1000) + sim->wall_offset_ms;
    return now_ms < 0 ? 0 : (uint64_t)now_ms;
}

static void sim_random(tide_world *world, void *bytes, size_t count)
{
    tide_sim *sim = sim_of(world);
    unsigned char *to = bytes;
    while (count > 0) {
        uint64_t number = tide_rng_next(&sim->secrets);
        size_t part = count < sizeof number ? count : sizeof number;
        memcpy(to, &number, part);
        to += part;
        count -= part;
    }
}

static bool sim_dead(tide_world *world)
{
    return sim_of(world)->dead;
}

const struct tide_world_ops sim_ops = {
    .now_us = sim_now_us,
    .now_unix_ms = sim_now_unix_ms,
    .random = sim_random,
    .dead = sim_dead,
    .thread_start = sim_thread_start,
    .thread_join = sim_thread_join,
    .lock_new = sim_lock_new,
    .lock_free = sim_lock_free,
    .lock = sim_lock,
    .unlock = sim_unlock,
    .cond_new = sim_cond_new,
    .cond_free = sim_cond_free,
    .cond_wait = sim_cond_wait,
    .cond_wake = sim_cond_wake,
    .sleep_until = sim_sleep_until,
    .cancel = sim_cancel,
    .call = sim_call,
    .budget_new = sim_budget_new,
    .budget_free = sim_budget_free,
    .vfs = sim_disk_vfs,
    .file_read = sim_file_read,
    .file_read_private = sim_file_read, /* there is one user here */
    .file_replace = sim_file_replace,
    .file_remove = sim_file_remove,
    .file_rename = sim_file_rename,
    .file_forget = sim_file_forget,
    .dir_make = sim_dir_make,
    .dir_list = sim_dir_list,
    .disk_free = sim_disk_room_left,
    .file_lock = sim_file_lock,
    .file_unlock = sim_file_unlock,
};
