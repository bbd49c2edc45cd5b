#include "sim_inside.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[] = {
    [SIM_OP_LOCK] = "lock",           [SIM_OP_UNLOCK] = "unlock",     [SIM_OP_WAIT] = "wait",
    [SIM_OP_WAKE] = "wake",           [SIM_OP_SLEEP] = "sleep",       [SIM_OP_CANCEL] = "cancel",
    [SIM_OP_THREAD] = "thread",       [SIM_OP_JOIN] = "join",         [SIM_OP_END] = "end",
    [SIM_OP_CALL] = "call",           [SIM_OP_EFFECT] = "effect",     [SIM_OP_ANSWER] = "answer",
    [SIM_OP_SYNC] = "sync",           [SIM_OP_WRITE] = "write",       [SIM_OP_FILE] = "file",
    [SIM_OP_FILE_LOCK] = "file-lock", [SIM_OP_SQL_LOCK] = "sql-lock", [SIM_OP_RANDOM] = "random",
    [SIM_OP_SWITCH] = "switch",       [SIM_OP_JUMP] = "jump",         [SIM_OP_PAUSE] = "PAUSE",
    [SIM_OP_WALL] = "WALL-JUMP",      [SIM_OP_HICCUP] = "HICCUP",     [SIM_OP_CRASH] = "CRASH",
    [SIM_OP_REBOOT] = "REBOOT",       [SIM_OP_NOTE] = "note",
};

static const char *const wait_names[] = {
    [SIM_WAIT_NOTHING] = "can run",           [SIM_WAIT_LOCK] = "waits for lock",
    [SIM_WAIT_COND] = "waits for condition",  [SIM_WAIT_SLEEP] = "sleeps",
    [SIM_WAIT_NET] = "waits for the network", [SIM_WAIT_DISK] = "waits for the disk",
    [SIM_WAIT_JOIN] = "joins thread",         [SIM_WAIT_STILL] = "stands still",
    [SIM_WAIT_ENDED] = "has ended",
};

const char *sim_wait_name(sim_wait wait)
{
    return wait_names[wait];
}

void sim_trace_init(struct sim_trace *trace)
{
    trace->events = sim_alloc(SIM_TRACE_EVENTS * sizeof *trace->events);
    trace->hash = 0x6a09e667f3bcc908u;
    const char *path = getenv("TIDE_SIM_TRACE");
    if (path != NULL && path[0] != '\0')
        trace->file = fopen(path, "a");
}

void sim_trace_done(struct sim_trace *trace)
{
    if (trace->file != NULL)
        (void)fclose(trace->file);
    free(trace->events);
    trace->events = NULL;
}

static uint64_t mix(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return mix(tide_hash(hash, tide_text_of(text)), 1);
}

static void event_print(const struct sim_event *event, FILE *out)
{
    (void)fprintf(
        out, "%6" PRIu64 ".%06" PRIu64 " %8" PRIu64 " %3" PRIu32 " %-16s %-9s %" PRIu64 " %s\n",
        event->now_us / 1000000, event->now_us % 1000000, event->step, event->thread, event->name,
        op_names[event->op], event->number, event->text);
}

void sim_trace_add(tide_sim *sim, sim_op op, uint64_t number, const char *text)
{
    struct sim_trace *trace = &sim->trace;
    struct sim_event *event = &trace->events[trace->count++ % SIM_TRACE_EVENTS];

    event->now_us = sim->now_us;
    event->step = sim->stats.steps;
    event->number = number;
    event->thread = sim->current->id;
    event->op = op;
    /* A copy: the thread may be gone when the trace is read. */
    memcpy(event->name, sim->current->name, sizeof event->name);
    event->text[0] = '\0';
    trace->hash = mix(trace->hash, sim->now_us);
    trace->hash = mix(trace->hash, number + ((uint64_t)op << 56) + ((uint64_t)event->thread << 40));
    if (text != NULL) {
        size_t bytes = strnlen(text, SIM_TRACE_TEXT_BYTES - 1);
        memcpy(event->text, text, bytes);
        event->text[bytes] = '\0';
        trace->hash = mix_text(trace->hash, text);
    }
    if (trace->file != NULL)
        event_print(event, trace->file);
}

uint64_t tide_sim_trace_hash(tide_sim *sim)
{
    return sim->trace.hash;
}

void tide_sim_trace_print(tide_sim *sim, FILE *out, size_t count)
{
    const struct sim_trace *trace = &sim->trace;
    uint64_t kept = trace->count < SIM_TRACE_EVENTS ? trace->count : SIM_TRACE_EVENTS;
    if (count == 0 || count > kept)
        count = (size_t)kept;

    (void)fprintf(out, "last %zu of %" PRIu64 " events (seconds, step, thread):\n", count,
                  trace->count);
    for (uint64_t i = trace->count - count; i < trace->count; i++) {
        const struct sim_event *event = &trace->events[i % SIM_TRACE_EVENTS];
        event_print(event, out);
    }
}

static void thread_print(const tide_sim *sim, const tide_thread *thread, FILE *out)
{
    (void)fprintf(out, "  %3" PRIu32 " %-16s %s", thread->id, thread->name,
                  sim_wait_name(thread->wait));
    if (thread->wait_id != 0)
        (void)fprintf(out, " %" PRIu64, thread->wait_id);
    if (thread->wait == SIM_WAIT_LOCK) {
        const tide_lock *lock = thread->wait_for;
        (void)fprintf(out, ", held by %s", lock->owner != NULL ? lock->owner->name : "nobody");
    }
    if (thread->wait != SIM_WAIT_NOTHING && thread->deadline_us != TIDE_NEVER)
        (void)fprintf(out, ", until %" PRIu64 " us", thread->deadline_us);
    if (thread->locks_held > 0)
        (void)fprintf(out, ", holds %" PRIu32 " lock(s)", thread->locks_held);
    (void)fprintf(out, "%s\n", thread == sim->current ? "  <- has the baton" : "");
}

void tide_sim_threads_print(tide_sim *sim, FILE *out)
{
    (void)fprintf(out,
                  "%s world, life %" PRIu32 ", step %" PRIu64 ", %" PRIu64 " us, %zu threads:\n",
                  sim->dead ? "dead" : "living", sim->life, sim->stats.steps, sim->now_us,
                  sim->threads_count);
    for (size_t i = 0; i < sim->threads_count; i++)
        thread_print(sim, sim->threads[i], out);
}

void tide_sim_note(tide_sim *sim, const char *format, ...)
{
    char text[SIM_TRACE_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sim_trace_add(sim, SIM_OP_NOTE, 0, text);
}

_Noreturn void tide_sim_fail(tide_sim *sim, const char *format, ...)
{
    (void)fprintf(stderr, "\nsimulation failed: ");
    va_list args;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fprintf(stderr, "\nseed %" PRIu64 "\n", sim->seed);
    tide_sim_threads_print(sim, stderr);
    tide_sim_trace_print(sim, stderr, 200);
    (void)fprintf(stderr, "seed %" PRIu64 "\n", sim->seed);
    (void)fflush(stderr);
    abort();
}
