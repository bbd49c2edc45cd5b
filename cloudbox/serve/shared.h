/* shared.h - the one cloud and the lock before it.
 *
 * The logic knows no threads; its callers (the server, the deliveries)
 * hold this lock.  Its time is the wall clock at the start plus what has
 * passed since, so that a clock that is set back while serving goes unnoticed.
 */
#ifndef BOX_SERVE_SHARED_H
#define BOX_SERVE_SHARED_H

#include "cloudbox/gate/cloud.h"

#include <pthread.h>
#include <time.h>

struct box_state;

struct box_shared {
    box_cloud *cloud;
    struct box_state *state; /* NULL: nothing is kept */
    pthread_mutex_t lock;
    uint64_t start_unix_ms;
    uint64_t start_ms; /* monotonic */
};

static inline uint64_t box_clock_read_ms(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline void box_shared_init(struct box_shared *shared)
{
    *shared = (struct box_shared){.start_unix_ms = box_clock_read_ms(CLOCK_REALTIME),
                                  .start_ms = box_clock_read_ms(CLOCK_MONOTONIC)};
    (void)pthread_mutex_init(&shared->lock, NULL);
}

static inline uint64_t box_shared_now(const struct box_shared *shared)
{
    return shared->start_unix_ms + (box_clock_read_ms(CLOCK_MONOTONIC) - shared->start_ms);
}

#endif
