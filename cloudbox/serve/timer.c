#include "cloudbox/serve/timer.h"

#include "base/check.h"
#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    TIMERS_MAX = 1 << 20,
    EVENTS_MAX = 256,
    WATCH_FROM_MS = 250, /* shorter waits are not worth two system calls */
    NOT_WAITING = UINT32_MAX,
};

struct box_timers {
    pthread_mutex_t lock;
    pthread_t thread;
    box_timer_ring *ring;
    struct box_timer **heap; /* the earliest first */
    size_t count;
    size_t capacity;
    uint64_t added;
    bool stopping;
    int epoll_fd;
    int wake_fd;
};

uint64_t box_timers_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the heap ---- */

static bool earlier(const struct box_timer *a, const struct box_timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void place(box_timers *timers, struct box_timer *timer, size_t index)
{
    timers->heap[index] = timer;
    timer->index = (uint32_t)index;
}

static void sift_up(box_timers *timers, struct box_timer *timer, size_t index)
{
    while (index > 0 && earlier(timer, timers->heap[(index - 1) / 2])) {
        place(timers, timers->heap[(index - 1) / 2], index);
        index = (index - 1) / 2;
    }
    place(timers, timer, index);
}

static void sift_down(box_timers *timers, struct box_timer *timer, size_t index)
{
    for (;;) {
        size_t child = index * 2 + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count && earlier(timers->heap[child + 1], timers->heap[child]))
            child++;
        if (!earlier(timers->heap[child], timer))
            break;
        place(timers, timers->heap[child], index);
        index = child;
    }
    place(timers, timer, index);
}

/* Takes a timer out and rings it.  Its memory may be gone afterwards. */
static void ring_at(box_timers *timers, size_t index)
{
    struct box_timer *timer = timers->heap[index];
    TIDE_ASSERT(timer->index == index);
    struct box_timer *last = timers->heap[--timers->count];
    if (last != timer) {
        if (index > 0 && earlier(last, timers->heap[(index - 1) / 2]))
            sift_up(timers, last, index);
        else
            sift_down(timers, last, index);
    }
    timer->index = NOT_WAITING;
    if (timer->fd >= 0) /* before the ring: afterwards the descriptor may be another's */
        (void)epoll_ctl(timers->epoll_fd, EPOLL_CTL_DEL, timer->fd, NULL);
    timers->ring(timer);
}

/* ---- the thread ---- */

static void wake(box_timers *timers)
{
    uint64_t one = 1;
    while (write(timers->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static int wait_ms(box_timers *timers)
{
    if (timers->count == 0)
        return -1;
    uint64_t now_ms = box_timers_now_ms();
    uint64_t due_ms = timers->heap[0]->due_ms;
    if (due_ms <= now_ms)
        return 0;
    return due_ms - now_ms > 60000 ? 60000 : (int)(due_ms - now_ms);
}

/* Only this thread takes timers out, so whatever an event points to still waits. */
static void take_events(box_timers *timers, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        struct box_timer *timer = events[i].data.ptr;
        if (timer == NULL) {
            uint64_t ignored;
            while (read(timers->wake_fd, &ignored, sizeof ignored) < 0 && errno == EINTR)
                continue;
            continue;
        }
        timer->vanished = true;
        ring_at(timers, timer->index);
    }
}

static void *run(void *arg)
{
    box_timers *timers = arg;
    struct epoll_event events[EVENTS_MAX];
    (void)pthread_mutex_lock(&timers->lock);
    while (!timers->stopping) {
        int timeout_ms = wait_ms(timers);
        (void)pthread_mutex_unlock(&timers->lock);
        int count = epoll_wait(timers->epoll_fd, events, EVENTS_MAX, timeout_ms);
        (void)pthread_mutex_lock(&timers->lock);
        take_events(timers, events, count);
        const uint64_t now_ms = box_timers_now_ms();
        while (timers->count > 0 && timers->heap[0]->due_ms <= now_ms)
            ring_at(timers, 0);
    }
    while (timers->count > 0)
        ring_at(timers, 0);
    (void)pthread_mutex_unlock(&timers->lock);
    return NULL;
}

box_timers *box_timers_new(box_timer_ring *ring)
{
    box_timers *timers = tide_mem_new(tide_mem_heap(), sizeof *timers);
    TIDE_ASSERT(timers != NULL);
    timers->ring = ring;
    timers->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    timers->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    TIDE_ASSERT(timers->epoll_fd >= 0);
    TIDE_ASSERT(timers->wake_fd >= 0);
    struct epoll_event event = {.events = EPOLLIN};
    TIDE_ASSERT(epoll_ctl(timers->epoll_fd, EPOLL_CTL_ADD, timers->wake_fd, &event) == 0);
    TIDE_ASSERT(pthread_mutex_init(&timers->lock, NULL) == 0);
    TIDE_ASSERT(pthread_create(&timers->thread, NULL, run, timers) == 0);
    return timers;
}

void box_timers_stop(box_timers *timers)
{
    (void)pthread_mutex_lock(&timers->lock);
    bool first = !timers->stopping;
    timers->stopping = true;
    (void)pthread_mutex_unlock(&timers->lock);
    if (first) {
        wake(timers);
        (void)pthread_join(timers->thread, NULL);
    }
}

void box_timers_free(box_timers *timers)
{
    if (timers == NULL)
        return;
    box_timers_stop(timers);
    TIDE_ASSERT(timers->count == 0);
    (void)close(timers->epoll_fd);
    (void)close(timers->wake_fd);
    (void)pthread_mutex_destroy(&timers->lock);
    tide_mem_free(tide_mem_heap(), timers->heap, timers->capacity * sizeof(struct box_timer *));
    tide_mem_free(tide_mem_heap(), timers, sizeof *timers);
}

void box_timers_add(box_timers *timers, struct box_timer *timer, uint32_t wait, int fd)
{
    (void)pthread_mutex_lock(&timers->lock);
    timer->vanished = false;
    if (timers->stopping) {
        timers->ring(timer);
        (void)pthread_mutex_unlock(&timers->lock);
        return;
    }
    TIDE_ASSERT(TIDE_GROW(timers->heap, timers->capacity, timers->count + 1, TIMERS_MAX));
    timer->due_ms = box_timers_now_ms() + wait;
    timer->order = timers->added++;
    timer->fd = wait >= WATCH_FROM_MS ? fd : -1;
    sift_up(timers, timer, timers->count++);
    /* Edge-triggered and without EPOLLIN: a pipelined request is no event. */
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = timer};
    if (timer->fd >= 0 && epoll_ctl(timers->epoll_fd, EPOLL_CTL_ADD, timer->fd, &event) != 0)
        timer->fd = -1;
    if (timer->index == 0)
        wake(timers);
    (void)pthread_mutex_unlock(&timers->lock);
}
