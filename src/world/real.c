#include "world/real.h"
#include "base/check.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

void *real_mem_new(struct real_world *real, size_t bytes)
{
    real_lock(&real->mem_lock);
    void *pointer = tide_mem_new(real->mem, bytes);
    real_unlock(&real->mem_lock);
    return pointer;
}

void real_mem_free(struct real_world *real, void *pointer, size_t bytes)
{
    real_lock(&real->mem_lock);
    tide_mem_free(real->mem, pointer, bytes);
    real_unlock(&real->mem_lock);
}

static uint64_t now_unix_ms(tide_world *world)
{
    (void)world;
    struct timespec now;
    TIDE_ASSERT(clock_gettime(CLOCK_REALTIME, &now) == 0);
    if (now.tv_sec < 0) /* the clock was never set */
        return 0;
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void fill_random(tide_world *world, void *bytes, size_t count)
{
    (void)world;
    char *at = bytes;
    while (count > 0) {
        ssize_t got = getrandom(at, count, 0);
        if (got < 0) {
            /* The kernel's generator cannot fail once it is seeded, and bytes that are not
             * random would leak secrets. */
            TIDE_ASSERT(errno == EINTR);
            continue;
        }
        at += got;
        count -= (size_t)got;
    }
}

static bool never_dead(tide_world *world)
{
    (void)world;
    return false;
}

static void cancel_token(tide_world *world, tide_cancel *cancel, tide_cancel_reason reason)
{
    TIDE_ASSERT(reason != TIDE_CANCEL_NONE);
    int none = TIDE_CANCEL_NONE;
    if (!__atomic_compare_exchange_n(&cancel->reason, &none, (int)reason, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return; /* the first reason stays, and all waiters were woken then */
    real_sleepers_cancel(real_of(world), cancel);
    real_net_wake(real_of(world)->net);
}

static const char *default_vfs(tide_world *world)
{
    (void)world;
    return NULL;
}

static const struct tide_world_ops real_ops = {
    .now_us = real_now_us,
    .now_unix_ms = now_unix_ms,
    .random = fill_random,
    .dead = never_dead,
    .thread_start = real_thread_start,
    .thread_join = real_thread_join,
    .lock_new = real_lock_new,
    .lock_free = real_lock_free,
    .lock = real_lock_take,
    .unlock = real_lock_drop,
    .cond_new = real_cond_new,
    .cond_free = real_cond_free,
    .cond_wait = real_cond_wait,
    .cond_wake = real_cond_wake,
    .sleep_until = real_sleep_until,
    .cancel = cancel_token,
    .call = real_call,
    .budget_new = real_budget_new,
    .budget_free = real_budget_free,
    .vfs = default_vfs,
    .file_read = real_file_read,
    .file_read_private = real_file_read_private,
    .file_replace = real_file_replace,
    .file_remove = real_file_remove,
    .file_rename = real_file_rename,
    .file_forget = real_file_forget,
    .dir_make = real_dir_make,
    .dir_list = real_dir_list,
    .disk_free = real_disk_free,
    .file_lock = real_file_lock,
    .file_unlock = real_file_unlock,
};

tide_status tide_world_real_new(tide_mem *mem, tide_world **world_out, tide_error *err)
{
    TIDE_ASSERT(mem != NULL);
    struct real_world *real = tide_mem_new(mem, sizeof *real);
    if (real == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the world");
    real->base.ops = &real_ops;
    real->mem = mem;
    TIDE_ASSERT(pthread_mutex_init(&real->mem_lock, NULL) == 0);
    TIDE_ASSERT(pthread_mutex_init(&real->wait_lock, NULL) == 0);
    TIDE_ASSERT(pthread_mutex_init(&real->replace_lock, NULL) == 0);
    TIDE_ASSERT(real_cond_init(&real->sleepers_gone));

    tide_status rc = real_net_new(real, &real->net, err);
    if (rc != TIDE_OK) {
        tide_world_real_free(&real->base);
        return rc;
    }
    *world_out = &real->base;
    return TIDE_OK;
}

void tide_world_real_free(tide_world *world)
{
    if (world == NULL)
        return;
    struct real_world *real = real_of(world);
    real_sleepers_stop(real);
    real_net_free(real->net);
    TIDE_ASSERT(pthread_cond_destroy(&real->sleepers_gone) == 0);
    TIDE_ASSERT(pthread_mutex_destroy(&real->replace_lock) == 0);
    TIDE_ASSERT(pthread_mutex_destroy(&real->wait_lock) == 0);
    TIDE_ASSERT(pthread_mutex_destroy(&real->mem_lock) == 0);
    tide_mem_free(real->mem, real, sizeof *real);
}
