#include "core/deps.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <string.h>

/* Scratch, all of it in one allocation of 32-bit numbers. */
struct work {
    uint32_t *starts;  /* [count + 1]: where a job's dependents begin in `targets` */
    uint32_t *open;    /* [count]: needs not yet placed */
    uint32_t *depths;  /* [count] */
    uint32_t *queue;   /* [count]: jobs in the order in which they became free */
    uint32_t *tallies; /* [count + 1]: jobs per depth; at the end where each depth begins */
    uint32_t *targets; /* [edges]: the dependents, grouped by what they need */
    size_t words;
};

static_assert(TIDE_CHILDREN_MAX < UINT32_MAX / 8 && TIDE_EDGES_MAX < UINT32_MAX / 8,
              "all counts fit 32 bits with room to spare");

static uint32_t *work_new(struct work *work, uint32_t count, size_t edges_count, tide_mem *mem)
{
    work->words = (size_t)5 * count + 2 + edges_count;
    uint32_t *words = tide_mem_array(mem, work->words, sizeof *words);
    if (words == NULL)
        return NULL;
    work->starts = words;
    work->open = work->starts + count + 1;
    work->depths = work->open + count;
    work->queue = work->depths + count;
    work->tallies = work->queue + count;
    work->targets = work->tallies + count + 1;
    return words;
}

/* Groups the edges by the needed job.  After the first pass starts[i + 1] is a count, after the
 * second a sum; the third fills, using starts[i] as the write position, which leaves each one at
 * the start of the next group.  Hence the shift at the end. */
static void dependents_group(struct work *work, uint32_t count, const struct tide_edge *edges,
                             size_t edges_count)
{
    for (size_t i = 0; i < edges_count; i++) {
        work->starts[edges[i].needs + 1]++;
        work->open[edges[i].job]++;
    }
    for (uint32_t i = 0; i < count; i++)
        work->starts[i + 1] += work->starts[i];
    for (size_t i = 0; i < edges_count; i++)
        work->targets[work->starts[edges[i].needs]++] = edges[i].job;
    for (uint32_t i = count; i > 0; i--)
        work->starts[i] = work->starts[i - 1];
    work->starts[0] = 0;
}

/* Frees jobs whose needs are all placed; returns how many.  A job is one deeper than the deepest
 * it needs. */
static uint32_t depths_find(struct work *work, uint32_t count)
{
    uint32_t tail = 0;
    for (uint32_t job = 0; job < count; job++)
        if (work->open[job] == 0)
            work->queue[tail++] = job;
    for (uint32_t head = 0; head < tail; head++) {
        uint32_t job = work->queue[head];
        for (uint32_t at = work->starts[job]; at < work->starts[job + 1]; at++) {
            uint32_t dependent = work->targets[at];
            if (work->depths[dependent] <= work->depths[job])
                work->depths[dependent] = work->depths[job] + 1;
            if (--work->open[dependent] == 0)
                work->queue[tail++] = dependent;
        }
    }
    return tail;
}

/* Counting sort: by depth, and by index within a depth (DEP3). */
static void order_fill(struct work *work, uint32_t count, uint32_t *order_out)
{
    for (uint32_t job = 0; job < count; job++)
        work->tallies[work->depths[job] + 1]++;
    for (uint32_t depth = 0; depth < count; depth++)
        work->tallies[depth + 1] += work->tallies[depth];
    for (uint32_t job = 0; job < count; job++)
        order_out[work->tallies[work->depths[job]]++] = job;
}

/* Each job that was never freed needs another such job.  Following one of
 * those needs `count` times ends on a circle; once around it finds its lowest
 * index. */
static uint32_t circle_find(struct work *work, uint32_t count, const struct tide_edge *edges,
                            size_t edges_count)
{
    uint32_t *needed = work->queue; /* the queue is no longer needed */
    uint32_t at = UINT32_MAX;
    for (size_t i = 0; i < edges_count; i++)
        if (work->open[edges[i].job] > 0 && work->open[edges[i].needs] > 0) {
            needed[edges[i].job] = edges[i].needs;
            at = edges[i].job;
        }
    TIDE_ASSERT(at != UINT32_MAX);
    for (uint32_t step = 0; step < count; step++)
        at = needed[at];
    uint32_t lowest = at;
    for (uint32_t job = needed[at]; job != at; job = needed[job])
        lowest = job < lowest ? job : lowest;
    return lowest;
}

tide_status tide_deps_order(uint32_t count, const struct tide_edge *edges, size_t edges_count,
                            tide_mem *mem, uint32_t *order_out, uint32_t *culprit_out,
                            tide_error *err)
{
    TIDE_ASSERT(mem != NULL);
    TIDE_ASSERT(count == 0 || order_out != NULL);
    if (count > TIDE_CHILDREN_MAX || edges_count > TIDE_EDGES_MAX)
        return tide_error_set(err, TIDE_FULL,
                              "a batch of %" PRIu32 " jobs with %zu dependencies is too large",
                              count, edges_count);
    for (size_t i = 0; i < edges_count; i++)
        if (edges[i].job >= count || edges[i].needs >= count) {
            if (culprit_out != NULL)
                *culprit_out = edges[i].job;
            return tide_error_set(err, TIDE_INVALID,
                                  "job %" PRIu32 " needs job %" PRIu32 ", the batch has %" PRIu32,
                                  edges[i].job, edges[i].needs, count);
        }
    if (count == 0)
        return TIDE_OK;

    struct work work;
    uint32_t *words = work_new(&work, count, edges_count, mem);
    if (words == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to order %" PRIu32 " jobs", count);
    tide_status rc = TIDE_OK;
    dependents_group(&work, count, edges, edges_count);
    if (depths_find(&work, count) == count) {
        order_fill(&work, count, order_out);
    } else {
        TIDE_SEEN("deps: circle refused");
        uint32_t culprit = circle_find(&work, count, edges, edges_count);
        if (culprit_out != NULL)
            *culprit_out = culprit;
        rc = tide_error_set(err, TIDE_INVALID, "job %" PRIu32 " of the batch depends on itself",
                            culprit);
    }
    tide_mem_free(mem, words, work.words * sizeof *words);
    return rc;
}

void tide_deps_check(uint32_t count, const struct tide_edge *edges, size_t edges_count,
                     const uint32_t *order, uint32_t *scratch)
{
    for (uint32_t i = 0; i < count; i++)
        scratch[i] = UINT32_MAX;
    for (uint32_t place = 0; place < count; place++) { /* DEP1 */
        TIDE_ASSERT(order[place] < count);
        TIDE_ASSERT(scratch[order[place]] == UINT32_MAX);
        scratch[order[place]] = place;
    }
    for (size_t i = 0; i < edges_count; i++) /* DEP2 */
        TIDE_ASSERT(scratch[edges[i].needs] < scratch[edges[i].job]);
}
