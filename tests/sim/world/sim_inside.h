/* sim_inside.h - what the parts of the simulated world share.  Not for tests.
 *
 * No part needs locking: the running thread has the baton, and handing it over
 * orders memory.
 */
#ifndef TIDE_SIM_INSIDE_H
#define TIDE_SIM_INSIDE_H

#include "base/check.h"
#include "sim_world.h"

#include <pthread.h>
#include <sched.h>

enum {
    SIM_TRACE_EVENTS = 4096,
    SIM_TRACE_TEXT_BYTES = 56,
    SIM_THREAD_NAME_BYTES = 32,
    SIM_FAVOUR_STEPS = 300, /* mean length of a stretch in an unfair world */
};

/* What an event in the trace was. */
typedef enum sim_op {
    SIM_OP_LOCK,
    SIM_OP_UNLOCK,
    SIM_OP_WAIT,
    SIM_OP_WAKE,
    SIM_OP_SLEEP,
    SIM_OP_CANCEL,
    SIM_OP_THREAD,
    SIM_OP_JOIN,
    SIM_OP_END,
    SIM_OP_CALL,
    SIM_OP_EFFECT,
    SIM_OP_ANSWER,
    SIM_OP_SYNC,
    SIM_OP_WRITE,
    SIM_OP_FILE,
    SIM_OP_FILE_LOCK,
    SIM_OP_SQL_LOCK,
    SIM_OP_RANDOM,
    SIM_OP_SWITCH,
    SIM_OP_JUMP,
    SIM_OP_PAUSE,
    SIM_OP_WALL,
    SIM_OP_HICCUP,
    SIM_OP_CRASH,
    SIM_OP_REBOOT,
    SIM_OP_NOTE,
} sim_op;

struct sim_event {
    uint64_t now_us;
    uint64_t step;
    uint64_t number;
    uint32_t thread;
    sim_op op;
    char name[SIM_THREAD_NAME_BYTES]; /* the thread's */
    char text[SIM_TRACE_TEXT_BYTES];
};

struct sim_trace {
    struct sim_event *events; /* a ring */
    uint64_t count;           /* ever */
    uint64_t hash;
    FILE *file; /* everything as it happens, when asked for */
};

/* What a thread waits for. */
typedef enum sim_wait {
    SIM_WAIT_NOTHING, /* it can run */
    SIM_WAIT_LOCK,
    SIM_WAIT_COND,
    SIM_WAIT_SLEEP,
    SIM_WAIT_NET,
    SIM_WAIT_DISK,
    SIM_WAIT_JOIN,
    SIM_WAIT_STILL, /* hiccup or freeze */
    SIM_WAIT_ENDED,
} sim_wait;

struct tide_thread {
    tide_sim *sim;
    uint32_t baton; /* a futex word: 1 says run */
    uint32_t id;
    char name[SIM_THREAD_NAME_BYTES];
    pthread_t pthread;
    void (*run)(void *arg);
    void *arg;

    sim_wait wait;
    const void *wait_for;      /* lock, condition or thread, by the kind of wait */
    uint64_t wait_id;          /* its number, for reports */
    const tide_cancel *cancel; /* ends a sleep or a call */
    uint64_t deadline_us;
    tide_status woken; /* how the wait ended */
    uint64_t frozen_until_us;
    uint32_t locks_held;
    uint64_t dead_steps; /* in this life's death (SWLD4) */
    size_t runnable_at;  /* index in sim->runnable while it can run */
    int64_t favour;      /* in an unfair world the highest runs */
};

struct tide_lock {
    uint64_t id;
    tide_thread *owner;
};

struct tide_cond {
    uint64_t id;
};

struct sim_disk;
struct sim_net;

struct tide_sim {
    tide_world world; /* first: a tide_world is the sim */
    uint64_t seed;
    struct tide_sim_options options;
    tide_rng order; /* threads, costs, faults of the process */
    tide_rng secrets;
    tide_rng disk_rng;
    tide_rng net_rng;

    uint64_t now_us;
    int64_t wall_offset_ms; /* unix time minus monotonic, with all jumps */
    bool dead;
    bool faults;
    tide_sim_crash_kind death; /* KILL or POWER while dead */
    uint32_t life;

    tide_thread *current;
    tide_thread *main;
    tide_thread **threads; /* in order of their start */
    size_t threads_count;
    tide_thread **runnable;
    size_t runnable_count;
    size_t threads_capacity; /* of both */
    uint64_t deadline_us;    /* no later than the earliest of the waiting */
    uint32_t threads_ever;
    int64_t favour_least;  /* below all threads */
    uint64_t objects_ever; /* numbers for locks, conditions, files */

    uint64_t crash_step; /* step numbers at which things happen; UINT64_MAX: never */
    tide_sim_crash_kind crash_kind;
    bool crash_asked; /* by the test: also with faults off */
    uint64_t pause_step;
    uint64_t wall_step;
    uint64_t hiccup_step;
    uint64_t next_step; /* the earliest of these */

    struct tide_sim_stats stats;
    struct sim_trace trace;
    struct sim_disk *disk;
    struct sim_net *net;

    cpu_set_t cpus; /* as they were */
    bool pinned;
    pthread_t watchdog;
    pthread_mutex_t watchdog_lock;
    pthread_cond_t watchdog_wake;
    bool watchdog_ends;
};

static inline tide_sim *sim_of(tide_world *world)
{
    return (tide_sim *)(void *)world;
}

/* Memory that is simply there; the simulation does not test its own poverty. */
void *sim_alloc(size_t bytes); /* zeroed */
void *sim_resize(void *old, size_t old_bytes, size_t new_bytes);
char *sim_copy_text(const char *text);

/* ---- sim_trace.c ---- */
void sim_trace_init(struct sim_trace *trace);
void sim_trace_done(struct sim_trace *trace);
void sim_trace_add(tide_sim *sim, sim_op op, uint64_t number, const char *text);
const char *sim_wait_name(sim_wait wait);

/* ---- sim_sched.c ---- */
extern const struct tide_world_ops sim_ops;

/* One step: costs time, may carry out the fault plan, may hand the baton on.
 * Every primitive begins or ends with one. */
void sim_step(tide_sim *sim, sim_op op, uint64_t number, const char *text);
/* Time passes and the trace knows, but the baton stays. */
void sim_tick(tide_sim *sim, sim_op op, uint64_t number, const char *text);
/* Blocks the caller until woken, canceled or `deadline_us`; TIDE_TIMEOUT when
 * that came, TIDE_STOPPED when the world is or becomes dead. */
tide_status sim_block(tide_sim *sim, sim_wait wait, const void *wait_for, uint64_t wait_id,
                      uint64_t deadline_us, const tide_cancel *cancel);
void sim_wake(tide_sim *sim, tide_thread *thread, tide_status how);
/* Wakes every thread that a death or a cancel token concerns. */
void sim_wake_dead(tide_sim *sim);
void sim_sched_init(tide_sim *sim);
void sim_sched_done(tide_sim *sim);
/* SWLD3: nothing may be held when a thread goes to wait outside. */
void sim_expect_no_locks(tide_sim *sim, const char *what);

/* ---- sim_world.c ---- */
/* Carries out what the plan has for this step. */
void sim_plan_run(tide_sim *sim);
/* `count` times in a million, when faults are on. */
bool sim_fault(tide_sim *sim, tide_rng *rng, uint32_t per_million);

/* ---- sim_disk.c ---- */
struct sim_disk *sim_disk_new(tide_sim *sim);
void sim_disk_free(struct sim_disk *disk);
/* What is left of the disk after the death of this life. */
void sim_disk_reboot(struct sim_disk *disk, bool forgets);
const char *sim_disk_vfs(tide_world *world);
tide_status sim_file_read(tide_world *world, const char *path, size_t bytes_max, tide_buf *out,
                          tide_error *err);
tide_status sim_file_replace(tide_world *world, const char *path, tide_text content, unsigned mode,
                             tide_error *err);
tide_status sim_file_remove(tide_world *world, const char *path, tide_error *err);
tide_status sim_file_rename(tide_world *world, const char *path, const char *to, tide_error *err);
tide_status sim_file_forget(tide_world *world, const char *path, tide_error *err);
tide_status sim_dir_make(tide_world *world, const char *path, tide_error *err);
tide_status sim_dir_list(tide_world *world, const char *path,
                         void (*visit)(const char *name, void *arg), void *arg, tide_error *err);
tide_status sim_disk_room_left(tide_world *world, const char *path, uint64_t *bytes_out,
                               tide_error *err);
tide_status sim_file_lock(tide_world *world, const char *path, tide_text holder,
                          tide_file_lock **lock_out, tide_error *err);
void sim_file_unlock(tide_world *world, tide_file_lock *lock);

/* ---- sim_net.c ---- */
struct sim_net *sim_net_new(tide_sim *sim);
void sim_net_free(struct sim_net *net);
void sim_net_reboot(struct sim_net *net);
tide_status sim_call(tide_world *world, const struct tide_request *request,
                     struct tide_response *response, const tide_cancel *cancel, tide_error *err);
tide_byte_budget *sim_budget_new(tide_world *world, uint64_t bytes_max);
void sim_budget_free(tide_world *world, tide_byte_budget *budget);

#endif
