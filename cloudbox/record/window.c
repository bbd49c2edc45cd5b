#include "cloudbox/record/window.h"

#include "base/check.h"
#include "base/mem.h"

struct bucket {
    uint64_t step; /* its time in steps */
    uint64_t amount;
};

/* A ring of the buckets that are not empty, oldest first.  There are at most
 * `steps` of them, since no two have the same step. */
struct box_window {
    uint32_t step_ms;
    uint32_t steps; /* a bucket counts while it is less than so many steps old */
    uint64_t sum;
    uint64_t highest;
    struct bucket *ring;
    uint32_t capacity; /* a power of two, or 0 */
    uint32_t first;
    uint32_t count;
};

box_window *box_window_new(uint32_t length_ms, uint32_t step_ms)
{
    TIDE_ASSERT(step_ms > 0);
    TIDE_ASSERT(length_ms >= step_ms);
    TIDE_ASSERT(length_ms % step_ms == 0);
    box_window *window = tide_mem_new(tide_mem_heap(), sizeof *window);
    TIDE_ASSERT(window != NULL);
    window->step_ms = step_ms;
    /* A coarse bucket stays until its youngest charge is old enough. */
    window->steps = length_ms / step_ms + (step_ms > 1 ? 1 : 0);
    return window;
}

void box_window_free(box_window *window)
{
    if (window == NULL)
        return;
    tide_mem_free(tide_mem_heap(), window->ring, window->capacity * sizeof *window->ring);
    tide_mem_free(tide_mem_heap(), window, sizeof *window);
}

static struct bucket *bucket_at(const box_window *window, uint32_t index)
{
    return &window->ring[(window->first + index) & (window->capacity - 1)];
}

static void window_advance(box_window *window, uint64_t step)
{
    while (window->count > 0) {
        const struct bucket *oldest = &window->ring[window->first];
        if (step < oldest->step + window->steps)
            return;
        TIDE_ASSERT(window->sum >= oldest->amount);
        window->sum -= oldest->amount;
        window->first = (window->first + 1) & (window->capacity - 1);
        window->count--;
    }
}

uint64_t box_window_count(box_window *window, uint64_t now_ms)
{
    window_advance(window, now_ms / window->step_ms);
    return window->sum;
}

static void window_grow(box_window *window)
{
    const uint32_t capacity = window->capacity == 0 ? 16 : window->capacity * 2;
    struct bucket *ring = tide_mem_array(tide_mem_heap(), capacity, sizeof *ring);
    TIDE_ASSERT(ring != NULL);
    for (uint32_t i = 0; i < window->count; i++)
        ring[i] = *bucket_at(window, i);
    tide_mem_free(tide_mem_heap(), window->ring, window->capacity * sizeof *window->ring);
    window->ring = ring;
    window->capacity = capacity;
    window->first = 0;
}

void box_window_add(box_window *window, uint64_t now_ms, uint32_t amount)
{
    uint64_t step = now_ms / window->step_ms;
    window_advance(window, step);
    if (amount == 0)
        return;
    struct bucket *last = window->count == 0 ? NULL : bucket_at(window, window->count - 1);
    if (last != NULL && step < last->step)
        step = last->step; /* time never goes back (BCLD4) */
    if (last != NULL && last->step == step) {
        last->amount += amount;
    } else {
        if (window->count == window->capacity)
            window_grow(window);
        TIDE_ASSERT(window->count < window->steps);
        window->count++;
        *bucket_at(window, window->count - 1) = (struct bucket){step, amount};
    }
    window->sum += amount;
    if (window->sum > window->highest)
        window->highest = window->sum;
}

uint64_t box_window_highest(const box_window *window)
{
    return window->highest;
}

uint64_t box_window_fits_at(box_window *window, uint64_t now_ms, uint64_t limit, uint32_t amount)
{
    uint64_t sum = box_window_count(window, now_ms);
    if (amount > limit)
        return UINT64_MAX;
    if (sum + amount <= limit)
        return now_ms;
    for (uint32_t i = 0; i < window->count; i++) {
        const struct bucket *bucket = bucket_at(window, i);
        sum -= bucket->amount;
        if (sum + amount <= limit)
            return (bucket->step + window->steps) * window->step_ms;
    }
    TIDE_ASSERT(false && "an empty window has room for what is below its limit");
    return UINT64_MAX;
}
