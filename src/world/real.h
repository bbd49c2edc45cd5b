/* real.h - internals of the real world, shared by world/real*.c.
 *
 * Only tests that need the counters include it too.
 *
 * Invariants:
 *   REAL1  every thread we start blocks all signals; the main thread handles them.
 *   REAL2  memory is taken from the allocator under mem_lock, so that any allocator will do, and
 *          never on the network thread.
 *   REAL3  a sleeper is linked from before it checks its token until after its last wait, both
 *          under wait_lock; so no cancellation is missed.
 *   REAL4  lock order: none.  No lock of the real world is taken while another one is held, except
 *          mem_lock, which is a leaf. */
#ifndef TIDE_WORLD_REAL_H
#define TIDE_WORLD_REAL_H

#include "world/world.h"

#include <pthread.h>

struct real_sleeper {
    struct real_sleeper *next;
    struct real_sleeper *prev;
    const tide_cancel *cancel;
    pthread_cond_t cond;
};

struct real_world {
    tide_world base;
    tide_mem *mem;
    pthread_mutex_t mem_lock;
    pthread_mutex_t wait_lock;
    pthread_cond_t sleepers_gone;
    struct real_sleeper *sleepers;
    bool stopping;
    pthread_mutex_t replace_lock;
    struct real_net *net;
};

static inline struct real_world *real_of(tide_world *world)
{
    return (struct real_world *)world;
}

void *real_mem_new(struct real_world *real, size_t bytes); /* zeroed, or NULL */
void real_mem_free(struct real_world *real, void *pointer, size_t bytes);

/* real_threads.c */
uint64_t real_now_us(tide_world *world);
void real_lock(pthread_mutex_t *mutex);
void real_unlock(pthread_mutex_t *mutex);
bool real_cond_init(pthread_cond_t *cond); /* on the monotonic clock */
tide_status real_thread_start(tide_world *world, const char *name, void (*run)(void *arg),
                              void *arg, tide_thread **thread_out, tide_error *err);
void real_thread_join(tide_world *world, tide_thread *thread);
tide_status real_lock_new(tide_world *world, tide_lock **lock_out);
void real_lock_free(tide_world *world, tide_lock *lock);
void real_lock_take(tide_world *world, tide_lock *lock);
void real_lock_drop(tide_world *world, tide_lock *lock);
tide_status real_cond_new(tide_world *world, tide_cond **cond_out);
void real_cond_free(tide_world *world, tide_cond *cond);
tide_status real_cond_wait(tide_world *world, tide_cond *cond, tide_lock *lock,
                           uint64_t deadline_us);
void real_cond_wake(tide_world *world, tide_cond *cond, bool all);
tide_status real_sleep_until(tide_world *world, uint64_t deadline_us, const tide_cancel *cancel);
void real_sleepers_cancel(struct real_world *real, const tide_cancel *cancel);
void real_sleepers_stop(struct real_world *real); /* returns when all of them have left */

/* real_files.c */
tide_status real_file_read(tide_world *world, const char *path, size_t bytes_max, tide_buf *out,
                           tide_error *err);
tide_status real_file_read_private(tide_world *world, const char *path, size_t bytes_max,
                                   tide_buf *out, tide_error *err);
tide_status real_file_replace(tide_world *world, const char *path, tide_text content, unsigned mode,
                              tide_error *err);
tide_status real_file_remove(tide_world *world, const char *path, tide_error *err);
tide_status real_file_rename(tide_world *world, const char *path, const char *to, tide_error *err);
tide_status real_file_forget(tide_world *world, const char *path, tide_error *err);
tide_status real_dir_make(tide_world *world, const char *path, tide_error *err);
tide_status real_dir_list(tide_world *world, const char *path,
                          void (*visit)(const char *name, void *arg), void *arg, tide_error *err);
tide_status real_disk_free(tide_world *world, const char *path, uint64_t *bytes_out,
                           tide_error *err);
tide_status real_file_lock(tide_world *world, const char *path, tide_text holder,
                           tide_file_lock **lock_out, tide_error *err);
void real_file_unlock(tide_world *world, tide_file_lock *lock);

/* real_net.c, real_call.c */
tide_status real_net_new(struct real_world *real, struct real_net **net_out, tide_error *err);
void real_net_free(struct real_net *net); /* ends running calls with TIDE_STOPPED */
void real_net_wake(struct real_net *net);
tide_status real_call(tide_world *world, const struct tide_request *request,
                      struct tide_response *response, const tide_cancel *cancel, tide_error *err);
tide_byte_budget *real_budget_new(tide_world *world, uint64_t bytes_max);
void real_budget_free(tide_world *world, tide_byte_budget *budget);

/* What the network thread did so far; for tests and benchmarks. */
struct real_net_stats {
    uint64_t calls;
    uint64_t connections;         /* opened */
    uint64_t buffered_bytes;      /* waiting in rings right now */
    uint64_t buffered_bytes_peak; /* the most there ever were */
    uint64_t budget_waits;        /* times a call had to wait for its budget */
};
void real_net_stats(tide_world *world, struct real_net_stats *stats_out);
uint64_t real_budget_held_bytes(tide_byte_budget *budget);

#endif
