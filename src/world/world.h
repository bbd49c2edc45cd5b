/* world.h - the port to everything outside the process.
 *
 * Time, waiting, threads, locks, randomness, files and HTTP are reached through this
 * one port.  It has two implementations: the real world (world/real*.c) and a
 * simulated one (tests/sim), where one seed fixes the order of threads, the network's
 * answers and faults, the clock, and what the disk loses in a crash.  The same engine
 * and the same handlers run in both (E10.2).
 *
 * Rules for users of the port:
 *   WLD1  the time is read once per step and passed down.
 *   WLD2  a wait ends with TIDE_OK (woken, possibly spuriously), TIDE_TIMEOUT, or TIDE_STOPPED when
 *         the world has died.  Every waiting loop leaves on TIDE_STOPPED: that is how threads
 *         unwind after a simulated crash.
 *   WLD3  a lock is held for microseconds, never over a wait or a call.
 *   WLD4  the code that starts a thread joins it.
 */
#ifndef TIDE_WORLD_WORLD_H
#define TIDE_WORLD_WORLD_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "tidemark/http.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tide_world tide_world;
typedef struct tide_thread tide_thread;
typedef struct tide_lock tide_lock;
typedef struct tide_cond tide_cond;
typedef struct tide_file_lock tide_file_lock;

#define TIDE_NEVER UINT64_MAX

/* Why a running call should end (E7.3: one mechanism for all of them). */
typedef enum tide_cancel_reason {
    TIDE_CANCEL_NONE = 0,
    TIDE_CANCEL_USER,
    TIDE_CANCEL_PREEMPT,
    TIDE_CANCEL_HALT,
    TIDE_CANCEL_STALL,
    TIDE_CANCEL_STOP,
    TIDE_CANCEL_STALE, /* the claim was lost */
} tide_cancel_reason;

/* Embedded in anything that can be canceled; zero means not canceled.  Only tide_world_cancel()
 * writes it. */
typedef struct tide_cancel {
    int reason; /* atomic */
} tide_cancel;

/* ---- HTTP ---------------------------------------------------------------- */

/* Requests are public: tidemark/http.h.  Responses are opaque to programs. */

enum { TIDE_RESPONSE_HEADERS_MAX = 64 };

struct tide_response {
    int http;              /* status code; 0 while none arrived */
    tide_buf body;         /* if the request had no sink */
    tide_buf header_bytes; /* names and values, each terminated; `headers` point into it */
    struct tide_header headers[TIDE_RESPONSE_HEADERS_MAX];
    size_t headers_count;
    uint64_t body_bytes; /* counted also when a sink took them */
    uint32_t latency_ms; /* from sending to the last byte */
};

void tide_response_init(struct tide_response *response, tide_mem *mem);
void tide_response_done(struct tide_response *response);

/* ---- the port ------------------------------------------------------------ */

struct tide_world_ops {
    uint64_t (*now_us)(tide_world *world);
    uint64_t (*now_unix_ms)(tide_world *world);
    void (*random)(tide_world *world, void *bytes, size_t count);
    bool (*dead)(tide_world *world);

    tide_status (*thread_start)(tide_world *world, const char *name, void (*run)(void *arg),
                                void *arg, tide_thread **thread_out, tide_error *err);
    void (*thread_join)(tide_world *world, tide_thread *thread);
    tide_status (*lock_new)(tide_world *world, tide_lock **lock_out);
    void (*lock_free)(tide_world *world, tide_lock *lock);
    void (*lock)(tide_world *world, tide_lock *lock);
    void (*unlock)(tide_world *world, tide_lock *lock);
    tide_status (*cond_new)(tide_world *world, tide_cond **cond_out);
    void (*cond_free)(tide_world *world, tide_cond *cond);
    tide_status (*cond_wait)(tide_world *world, tide_cond *cond, tide_lock *lock,
                             uint64_t deadline_us);
    void (*cond_wake)(tide_world *world, tide_cond *cond, bool all);
    tide_status (*sleep_until)(tide_world *world, uint64_t deadline_us, const tide_cancel *cancel);
    void (*cancel)(tide_world *world, tide_cancel *cancel, tide_cancel_reason reason);

    tide_status (*call)(tide_world *world, const struct tide_request *request,
                        struct tide_response *response, const tide_cancel *cancel, tide_error *err);
    tide_byte_budget *(*budget_new)(tide_world *world, uint64_t bytes_max);
    void (*budget_free)(tide_world *world, tide_byte_budget *budget);

    const char *(*vfs)(tide_world *world);
    tide_status (*file_read)(tide_world *world, const char *path, size_t bytes_max, tide_buf *out,
                             tide_error *err);
    tide_status (*file_read_private)(tide_world *world, const char *path, size_t bytes_max,
                                     tide_buf *out, tide_error *err);
    tide_status (*file_replace)(tide_world *world, const char *path, tide_text content,
                                unsigned mode, tide_error *err);
    tide_status (*file_remove)(tide_world *world, const char *path, tide_error *err);
    tide_status (*file_rename)(tide_world *world, const char *path, const char *to,
                               tide_error *err);
    tide_status (*file_forget)(tide_world *world, const char *path, tide_error *err);
    tide_status (*dir_make)(tide_world *world, const char *path, tide_error *err);
    tide_status (*dir_list)(tide_world *world, const char *path,
                            void (*visit)(const char *name, void *arg), void *arg, tide_error *err);
    tide_status (*disk_free)(tide_world *world, const char *path, uint64_t *bytes_out,
                             tide_error *err);
    tide_status (*file_lock)(tide_world *world, const char *path, tide_text holder,
                             tide_file_lock **lock_out, tide_error *err);
    void (*file_unlock)(tide_world *world, tide_file_lock *lock);
};

struct tide_world {
    const struct tide_world_ops *ops;
};

/* The real world.  One per process is enough; the first call starts the network thread.  The
 * caller owns it and frees it after everything that uses it. */
tide_status tide_world_real_new(tide_mem *mem, tide_world **world_out, tide_error *err);
void tide_world_real_free(tide_world *world);

/* Monotonic.  Microseconds for latencies, milliseconds for decisions. */
static inline uint64_t tide_world_now_us(tide_world *world)
{
    return world->ops->now_us(world);
}
static inline uint64_t tide_world_now_ms(tide_world *world)
{
    return world->ops->now_us(world) / 1000;
}
/* Wall time, for stored, displayed or sent times only. */
static inline uint64_t tide_world_now_unix_ms(tide_world *world)
{
    return world->ops->now_unix_ms(world);
}
/* Cryptographic in the real world; seeded in the simulated one. */
static inline void tide_world_random(tide_world *world, void *bytes, size_t count)
{
    world->ops->random(world, bytes, count);
}
static inline uint64_t tide_world_random_u64(tide_world *world)
{
    uint64_t number = 0;
    world->ops->random(world, &number, sizeof number);
    return number;
}
/* A dead world has crashed: writes are dropped, waits return TIDE_STOPPED. */
static inline bool tide_world_dead(tide_world *world)
{
    return world->ops->dead(world);
}

static inline tide_status tide_world_thread(tide_world *world, const char *name,
                                            void (*run)(void *arg), void *arg,
                                            tide_thread **thread_out, tide_error *err)
{
    return world->ops->thread_start(world, name, run, arg, thread_out, err);
}
/* Waits for the thread to end and frees it.  NULL is fine. */
static inline void tide_world_join(tide_world *world, tide_thread *thread)
{
    world->ops->thread_join(world, thread);
}

static inline tide_status tide_lock_new(tide_world *world, tide_lock **lock_out)
{
    return world->ops->lock_new(world, lock_out);
}
static inline void tide_lock_free(tide_world *world, tide_lock *lock)
{
    world->ops->lock_free(world, lock);
}
static inline void tide_lock_take(tide_world *world, tide_lock *lock)
{
    world->ops->lock(world, lock);
}
static inline void tide_lock_drop(tide_world *world, tide_lock *lock)
{
    world->ops->unlock(world, lock);
}
static inline tide_status tide_cond_new(tide_world *world, tide_cond **cond_out)
{
    return world->ops->cond_new(world, cond_out);
}
static inline void tide_cond_free(tide_world *world, tide_cond *cond)
{
    world->ops->cond_free(world, cond);
}
/* Releases the lock, waits, takes it again (also on TIDE_STOPPED). */
static inline tide_status tide_cond_wait(tide_world *world, tide_cond *cond, tide_lock *lock,
                                         uint64_t deadline_us)
{
    return world->ops->cond_wait(world, cond, lock, deadline_us);
}
static inline void tide_cond_wake_one(tide_world *world, tide_cond *cond)
{
    world->ops->cond_wake(world, cond, false);
}
static inline void tide_cond_wake_all(tide_world *world, tide_cond *cond)
{
    world->ops->cond_wake(world, cond, true);
}
/* TIDE_OK at the deadline, TIDE_CANCELED, TIDE_STOPPED. cancel may be NULL. */
static inline tide_status tide_world_sleep_until(tide_world *world, uint64_t deadline_us,
                                                 const tide_cancel *cancel)
{
    return world->ops->sleep_until(world, deadline_us, cancel);
}
/* The first reason stays.  Wakes every thread that sleeps or calls with this token. */
static inline void tide_world_cancel(tide_world *world, tide_cancel *cancel,
                                     tide_cancel_reason reason)
{
    world->ops->cancel(world, cancel, reason);
}
static inline tide_cancel_reason tide_canceled(const tide_cancel *cancel)
{
    return (tide_cancel_reason)__atomic_load_n(&cancel->reason, __ATOMIC_ACQUIRE);
}

/* Makes one HTTP call and waits for it.
 *   TIDE_OK       a complete answer arrived, whatever its code
 *   TIDE_NETWORK  nothing reached the server (name, connection, TLS)
 *   TIDE_UNKNOWN  the connection ended after the request was sent
 *   TIDE_SERVER   the answer began and then broke the protocol, or was cut off, and the
 *                 request may be repeated
 *   TIDE_INVALID  it was not sent and never can be
 * TIDE_TIMEOUT, TIDE_CANCELED, TIDE_STOPPED, TIDE_FULL and a failing sink say nothing about
 * whether the request took effect.  Else the sink's own status.
 *
 * The caller initialises and owns `response`; it is emptied first, and its code and headers
 * are set before the sink gets the first byte.  A body compressed by the server arrives
 * decoded, unless the request has its own Accept-Encoding (or a Range).  Redirects are
 * answers like any other; they are not followed. */
static inline tide_status tide_world_call(tide_world *world, const struct tide_request *request,
                                          struct tide_response *response, const tide_cancel *cancel,
                                          tide_error *err)
{
    return world->ops->call(world, request, response, cancel, err);
}

/* NULL: no memory.  A budget outlives the calls that use it. */
static inline tide_byte_budget *tide_budget_new(tide_world *world, uint64_t bytes_max)
{
    return world->ops->budget_new(world, bytes_max);
}
static inline void tide_budget_free(tide_world *world, tide_byte_budget *budget)
{
    world->ops->budget_free(world, budget);
}

/* The name of the SQLite VFS for this world's disk; NULL: the default. */
static inline const char *tide_world_vfs(tide_world *world)
{
    return world->ops->vfs(world);
}

/* Replaces a file so that a crash leaves the old one or the new one, never a mixture.  The new
 * file has `mode` (0600, for example) from its creation. */
static inline tide_status tide_file_replace(tide_world *world, const char *path, tide_text content,
                                            unsigned mode, tide_error *err)
{
    return world->ops->file_replace(world, path, content, mode, err);
}
/* TIDE_NOT_FOUND; TIDE_FULL: longer than bytes_max. */
static inline tide_status tide_file_read(tide_world *world, const char *path, size_t bytes_max,
                                         tide_buf *out, tide_error *err)
{
    return world->ops->file_read(world, path, bytes_max, out, err);
}
/* Like tide_file_read(), for a file that contains a secret.  TIDE_INVALID, with the command that
 * fixes it, unless it is a plain file of this user that no other user may read or write. */
static inline tide_status tide_file_read_private(tide_world *world, const char *path,
                                                 size_t bytes_max, tide_buf *out, tide_error *err)
{
    return world->ops->file_read_private(world, path, bytes_max, out, err);
}
/* Gives a finished file its name, durably; both in one directory.  TIDE_EXISTS: the name is
 * taken, nothing changed. */
static inline tide_status tide_file_rename(tide_world *world, const char *path, const char *to,
                                           tide_error *err)
{
    return world->ops->file_rename(world, path, to, err);
}

/* Durable on return.  TIDE_NOT_FOUND. */
static inline tide_status tide_file_remove(tide_world *world, const char *path, tide_error *err)
{
    return world->ops->file_remove(world, path, err);
}
/* Syncs a file, then drops it from the page cache, so that the next read comes from the disk
 * (M13).  Safe for a file that SQLite has open here.  TIDE_NOT_FOUND. */
static inline tide_status tide_file_forget(tide_world *world, const char *path, tide_error *err)
{
    return world->ops->file_forget(world, path, err);
}
/* Makes a directory and its parents, private (0700); fine if it exists. */
static inline tide_status tide_dir_make(tide_world *world, const char *path, tide_error *err)
{
    return world->ops->dir_make(world, path, err);
}
/* Calls `visit` with the name of each entry except "." and "..", in no order.  TIDE_NOT_FOUND. */
static inline tide_status tide_dir_list(tide_world *world, const char *path,
                                        void (*visit)(const char *name, void *arg), void *arg,
                                        tide_error *err)
{
    return world->ops->dir_list(world, path, visit, arg, err);
}
/* Bytes free for this user on the disk that holds `path`. */
static inline tide_status tide_disk_free(tide_world *world, const char *path, uint64_t *bytes_out,
                                         tide_error *err)
{
    return world->ops->disk_free(world, path, bytes_out, err);
}
/* Locks `path` for this process until unlocked or until the process dies, and writes `holder` (a
 * line that names it) into it.  TIDE_BUSY: another process holds it; err->text has that one's
 * line. */
static inline tide_status tide_file_lock_take(tide_world *world, const char *path, tide_text holder,
                                              tide_file_lock **lock_out, tide_error *err)
{
    return world->ops->file_lock(world, path, holder, lock_out, err);
}
/* The same, and waits up to `wait_us` for another process that holds it; `cancel` may be NULL. */
tide_status tide_file_lock_wait(tide_world *world, const char *path, uint64_t wait_us,
                                const tide_cancel *cancel, tide_file_lock **lock_out,
                                tide_error *err);
static inline void tide_file_lock_drop(tide_world *world, tide_file_lock *lock)
{
    world->ops->file_unlock(world, lock);
}

#endif
