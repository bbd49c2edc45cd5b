/* sim_world.h - the world in which one seed decides everything.
 *
 * Threads are real ones, but exactly one of them runs at a time: they pass a
 * baton.  It changes hands only inside primitives of the world (world.h), and
 * the seed picks who is next among those that can run.  When no thread can run,
 * the clock jumps to the earliest deadline; when there is none either, that is
 * a deadlock and the process aborts with a report.  So a run is a function of
 * its seed and options, and takes no longer than the work in it.
 *
 * The thread that calls tide_sim_new() is a simulated thread too ("main") and
 * has the baton.  It runs the test: boots the engine, waits, joins, crashes,
 * reboots, looks at what is left.  No other thread may touch the world unless
 * it was started through it.
 *
 * A crash makes the world dead: nothing reaches the disk, waits and calls end
 * in TIDE_STOPPED, locks still work, threads unwind and are joined by whoever
 * started them.  tide_sim_reboot() then decides what the disk still knows and
 * gives a living world again, with the clock moved on.
 *
 * With TIDE_SIM_TRACE=FILE in the environment every event goes to that file as
 * it happens, to find where two runs of a seed part.
 *
 * Invariants (checked all the time; breaking one aborts with a report):
 *   SWLD1  only the thread with the baton calls the world.
 *   SWLD2  a lock is dropped by the thread that took it, and never taken twice.
 *   SWLD3  no lock is held over a sleep, a call or a wait for another lock's condition (WLD3).
 *   SWLD4  a thread makes at most `dead_steps_max` steps in a dead world: every waiting loop leaves
 *          on TIDE_STOPPED (WLD2).
 *   SWLD5  at reboot and at the end all threads but main were joined (WLD4).
 *   SWLD6  the monotonic clock never goes back.
 */
#ifndef TIDE_SIM_WORLD_H
#define TIDE_SIM_WORLD_H

#include "base/log.h"
#include "base/rng.h"
#include "sim_disk.h"
#include "sim_net.h"
#include "world/world.h"

#include <stdio.h>

typedef enum tide_sim_crash_kind {
    TIDE_SIM_CRASH_SEEDED = 0, /* one of the others, power twice as often */
    TIDE_SIM_CRASH_KILL,       /* kill -9: the process is gone, the disk forgets nothing */
    TIDE_SIM_CRASH_POWER,      /* the disk forgets and tears what was not synced */
} tide_sim_crash_kind;

/* Zero is a calm world with random thread order.  "every_steps" is a mean
 * distance between such events, in steps; 0: never. */
struct tide_sim_options {
    uint32_t cost_us_max;       /* simulated time a primitive takes; 0: 20 */
    uint32_t yield_permille;    /* a primitive gives the baton away; 0: 300, 1000: always */
    bool unfair;                /* some threads are preferred for long stretches, others starve */
    uint32_t spurious_permille; /* a wait ends for no reason (WLD2) */
    uint64_t crash_at_step;     /* 0: no */
    uint32_t crash_every_steps;
    uint32_t crashes_max; /* of crash_every_steps; 0: no limit */
    tide_sim_crash_kind crash_kind;
    uint32_t pause_every_steps; /* the whole process stands still for 1 s to 2 h */
    uint32_t wall_jump_every_steps;
    uint32_t hiccup_every_steps; /* one thread stands still for 1 ms to 5 s */
    uint32_t dead_steps_max;     /* SWLD4; 0: 20,000 */
    uint32_t threads_max;        /* thread_start fails beyond; 0: 256 */
    uint32_t silence_s_max;      /* real seconds without a step until the report; 0: 120 */
    uint64_t start_unix_ms;      /* 0: 2026-03-01T00:00:00Z */
    bool any_cpu;                /* do not pin the process to one cpu */
    struct tide_sim_disk_options disk;
    struct tide_sim_net_options net;
};

struct tide_sim_stats {
    uint64_t steps;
    uint64_t switches;
    uint64_t jumps; /* of the clock, because no thread could run */
    uint64_t crashes;
    uint64_t pauses;
    uint64_t wall_jumps;
    uint64_t hiccups;
    uint64_t spurious;
    uint64_t locks_over_sync; /* a lock was held while SQLite synced: slow in life (WLD3) */
    uint32_t threads_highest;
};

/* Never NULL: the simulation aborts when memory runs out.  `options` may be
 * NULL and is copied. */
tide_sim *tide_sim_new(uint64_t seed, const struct tide_sim_options *options);
void tide_sim_free(tide_sim *sim); /* NULL is fine */
/* Borrowed; the same one in every life. */
tide_world *tide_sim_world(tide_sim *sim);
/* For an engine whose seed fails: with TIDE_SIM_LOG in the environment all it says goes to
 * stderr.  NULL without. */
tide_log *tide_sim_log(void);
/* A mixture of faults that the seed picks, everything between calm and awful;
 * crashes are left to the caller. */
struct tide_sim_options tide_sim_options_seeded(uint64_t seed);

/* The world dies now; a dead one stays as it is. */
void tide_sim_crash(tide_sim *sim, tide_sim_crash_kind kind);
/* It dies at the n-th step from now; 0 takes the plan back. */
void tide_sim_crash_after(tide_sim *sim, uint64_t steps, tide_sim_crash_kind kind);
/* A living world again.  In a world that has not died, everything of it that
 * ran must have ended, and nothing is lost: a clean restart. */
void tide_sim_reboot(tide_sim *sim);
uint32_t tide_sim_life(tide_sim *sim); /* 1, and one more after each reboot */

/* The whole process stands still; all clocks continue.  From the running thread. */
void tide_sim_pause(tide_sim *sim, uint64_t pause_us);
void tide_sim_wall_jump(tide_sim *sim, int64_t jump_ms);
/* Threads whose names start so stand still from their next step or wake-up on;
 * the others run.  Two engines in one world are two such prefixes. */
void tide_sim_freeze(tide_sim *sim, const char *name_prefix, uint64_t freeze_us);
/* Switches all seeded faults (crashes, pauses, disk, network, spurious wakes)
 * off or on again.  Thread order stays random.  On from the start. */
void tide_sim_faults(tide_sim *sim, bool on);

/* A generator of the test's own, seeded from the world's. */
tide_rng tide_sim_rng(tide_sim *sim);
uint64_t tide_sim_seed(tide_sim *sim);
struct tide_sim_stats tide_sim_stats(tide_sim *sim);

/* A hash over every event so far: two runs are the same if it is. */
uint64_t tide_sim_trace_hash(tide_sim *sim);
/* The last `count` events as text: time, thread, primitive; 0: all that are kept. */
void tide_sim_trace_print(tide_sim *sim, FILE *out, size_t count);
/* Who is there and what it waits for. */
void tide_sim_threads_print(tide_sim *sim, FILE *out);
/* An event of the test's own. */
void tide_sim_note(tide_sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints seed, message, threads and trace, and aborts. */
_Noreturn void tide_sim_fail(tide_sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define TIDE_SIM_EXPECT(sim, condition)                                                            \
    ((condition) ? (void)0                                                                         \
                 : tide_sim_fail(sim, "%s:%d: expected %s", __FILE__, __LINE__, #condition))

#endif
