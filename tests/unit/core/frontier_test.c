/* Goal: the cursor never passes unfinished work and never goes back, whatever
 * the order of events.  Method: examples of each rule, then random events
 * against a model that keeps one record per cycle forever. */
#include "core/frontier.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/test.h"

static tide_frontier *frontier_at(uint64_t committed)
{
    tide_frontier *frontier = NULL;
    OK(tide_frontier_new(committed, tide_mem_heap(), &frontier));
    return frontier;
}

TEST(the_cursor_waits_for_the_oldest_cycle)
{
    tide_frontier *frontier = frontier_at(40);
    for (uint64_t cycle = 40; cycle < 45; cycle++)
        OK(tide_frontier_open(frontier, cycle));
    tide_frontier_finish(frontier, 42);
    tide_frontier_finish(frontier, 41);
    assert_int_equal(tide_frontier_reachable(frontier), 40);
    tide_frontier_finish(frontier, 40);
    assert_int_equal(tide_frontier_reachable(frontier), 43);
    assert_int_equal(tide_frontier_cursor(frontier), 40);
    tide_frontier_committed(frontier, 43);
    assert_int_equal(tide_frontier_cursor(frontier), 43);
    tide_frontier_check(frontier);
    tide_frontier_free(frontier);
}

TEST(finishing_twice_changes_nothing)
{
    tide_frontier *frontier = frontier_at(0);
    OK(tide_frontier_open(frontier, 0));
    OK(tide_frontier_open(frontier, 1));
    tide_frontier_finish(frontier, 1);
    tide_frontier_finish(frontier, 1);
    assert_int_equal(tide_frontier_totals(frontier).finished, 1);
    tide_frontier_finish(frontier, 0);
    tide_frontier_finish(frontier, 0);
    assert_int_equal(tide_frontier_reachable(frontier), 2);
    tide_frontier_check(frontier);
    tide_frontier_free(frontier);
}

TEST(a_cycle_never_opened_holds_the_cursor)
{
    tide_frontier *frontier = frontier_at(7);
    OK(tide_frontier_open(frontier, 8));
    tide_frontier_finish(frontier, 8);
    assert_int_equal(tide_frontier_reachable(frontier), 7);
    struct tide_cycle_view gap = {0};
    assert_int_equal(tide_frontier_gaps(frontier, 0, &gap, 1), 1);
    assert_int_equal(gap.cycle, 7);
    assert_false(gap.opened);
    OK(tide_frontier_open(frontier, 7));
    tide_frontier_finish(frontier, 7);
    assert_int_equal(tide_frontier_reachable(frontier), 9);
    tide_frontier_free(frontier);
}

TEST(opening_is_refused_when_known_full_or_impossible)
{
    tide_frontier *frontier = frontier_at(100);
    assert_int_equal(tide_frontier_open(frontier, 99), TIDE_EXISTS);
    OK(tide_frontier_open(frontier, 100));
    assert_int_equal(tide_frontier_open(frontier, 100), TIDE_EXISTS);
    assert_int_equal(tide_frontier_open(frontier, 100 + TIDE_CYCLES_OPEN_MAX), TIDE_FULL);
    OK(tide_frontier_open(frontier, 99 + TIDE_CYCLES_OPEN_MAX));
    assert_int_equal(tide_frontier_open(frontier, UINT64_MAX), TIDE_INVALID);
    tide_frontier_check(frontier);
    /* The oldest one finishes, and there is room for exactly one more. */
    tide_frontier_finish(frontier, 100);
    OK(tide_frontier_open(frontier, 100 + TIDE_CYCLES_OPEN_MAX));
    assert_int_equal(tide_frontier_open(frontier, 101 + TIDE_CYCLES_OPEN_MAX), TIDE_FULL);
    tide_frontier_check(frontier);
    tide_frontier_free(frontier);

    frontier = frontier_at(UINT64_MAX - 1);
    OK(tide_frontier_open(frontier, UINT64_MAX - 1));
    assert_int_equal(tide_frontier_open(frontier, UINT64_MAX), TIDE_INVALID);
    tide_frontier_finish(frontier, UINT64_MAX - 1);
    assert_int_equal(tide_frontier_reachable(frontier), UINT64_MAX);
    tide_frontier_check(frontier);
    tide_frontier_free(frontier);
}

/* The model: every cycle that ever was, and a scan for each question. */
enum { MODEL_CYCLES = 4000, MODEL_WINDOW = 200 };

struct model_cycle {
    bool opened, finished;
};

struct model {
    struct model_cycle cycles[MODEL_CYCLES];
    uint64_t reachable_before;
};

static uint64_t model_reachable(const struct model *model, uint64_t from)
{
    while (from < MODEL_CYCLES && model->cycles[from].finished)
        from++;
    return from;
}

static void random_step(tide_frontier *frontier, struct model *model, tide_rng *rng)
{
    uint64_t base = model->reachable_before;
    uint64_t at = base + tide_rng_below(rng, MODEL_WINDOW);
    if (at >= MODEL_CYCLES)
        at = MODEL_CYCLES - 1;
    struct model_cycle *cycle = &model->cycles[at];
    if (tide_rng_chance(rng, 1, 2)) {
        assert_int_equal(tide_frontier_open(frontier, at), cycle->opened ? TIDE_EXISTS : TIDE_OK);
        cycle->opened = true;
    } else if (cycle->opened) { /* perhaps once more */
        tide_frontier_finish(frontier, at);
        cycle->finished = true;
    }
}

static void compare_gaps(const tide_frontier *frontier, const struct model *model)
{
    struct tide_cycle_view views[16];
    size_t count = tide_frontier_gaps(frontier, 0, views, 16);
    uint64_t at = model_reachable(model, 0);
    for (size_t i = 0; i < count; i++, at++) {
        while (model->cycles[at].finished)
            at++;
        assert_int_equal(views[i].cycle, at);
        assert_int_equal(views[i].opened, model->cycles[at].opened);
    }
    if (count < 16) /* then nothing that is open may be missing */
        for (; at < MODEL_CYCLES; at++)
            assert_false(model->cycles[at].opened && !model->cycles[at].finished);
}

TEST(random_events_agree_with_the_model)
{
    struct model *model = malloc(sizeof *model);
    assert_non_null(model);
    uint64_t steps = scaled(4000000), moved = 0;
    for (uint64_t seed = 1; steps > 0; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        memset(model, 0, sizeof *model);
        tide_frontier *frontier = frontier_at(0);
        uint64_t run = steps < 500000 ? steps : 500000;
        for (uint64_t step = 0; step < run; step++) {
            random_step(frontier, model, &rng);
            uint64_t expected = model_reachable(model, model->reachable_before);
            if (tide_frontier_reachable(frontier) != expected)
                fail_msg("seed %" PRIu64 " step %" PRIu64 ": %" PRIu64 " instead of %" PRIu64, seed,
                         step, tide_frontier_reachable(frontier), expected);
            model->reachable_before = expected;
            if (tide_rng_chance(&rng, 1, 100))
                tide_frontier_committed(frontier, expected);
            if (step % 4096 == 0) {
                tide_frontier_check(frontier);
                compare_gaps(frontier, model);
            }
        }
        moved += model->reachable_before;
        tide_frontier_check(frontier);
        tide_frontier_free(frontier);
        steps -= run;
    }
    assert_true(moved > 0); /* the walk did reach what it is about */
    free(model);
}

/* All orders in which six cycles can finish. */
TEST(every_order_of_six_cycles_ends_at_the_same_place)
{
    enum { COUNT = 6, ORDERS = 720 };
    for (int order = 0; order < ORDERS; order++) {
        tide_frontier *frontier = frontier_at(0);
        uint64_t left[COUNT];
        bool finished[COUNT + 1] = {false};
        for (uint64_t cycle = 0; cycle < COUNT; cycle++) {
            left[cycle] = cycle;
            OK(tide_frontier_open(frontier, cycle));
        }
        for (int code = order, count = COUNT; count > 0; count--) {
            int pick = code % count;
            code /= count;
            finished[left[pick]] = true;
            tide_frontier_finish(frontier, left[pick]);
            left[pick] = left[count - 1];
            uint64_t expected = 0;
            while (finished[expected])
                expected++;
            assert_int_equal(tide_frontier_reachable(frontier), expected);
            tide_frontier_check(frontier);
        }
        assert_int_equal(tide_frontier_reachable(frontier), COUNT);
        tide_frontier_free(frontier);
    }
}

/* Opens forty cycles, so that the ring has to grow, and finishes them backwards. */
static tide_status finish_forty_backwards(tide_mem *mem, uint64_t *reachable_out)
{
    tide_frontier *frontier = NULL;
    tide_status rc = tide_frontier_new(0, mem, &frontier);

    for (uint64_t cycle = 0; rc == TIDE_OK && cycle < 40; cycle++) {
        rc = tide_frontier_open(frontier, cycle);
        tide_frontier_check(frontier);
    }
    if (rc == TIDE_OK) {
        for (uint64_t left = 40; left > 0; left--) {
            assert_int_equal(tide_frontier_reachable(frontier), 0);
            tide_frontier_finish(frontier, left - 1);
        }
        *reachable_out = tide_frontier_reachable(frontier);
    }
    tide_frontier_free(frontier);
    return rc;
}

TEST(frontier_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        uint64_t reachable = 0;
        tide_status rc = finish_forty_backwards(&mem.base, &reachable);
        assert_swept(mem, rc);
        if (!mem.fired) {
            assert_int_equal(reachable, 40);
            assert_true(mem.fail_at > 3);
        }
    }
}

TEST(an_open_refused_for_memory_can_be_tried_again)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, 2);
    tide_frontier *frontier = NULL;
    OK(tide_frontier_new(0, &mem.base, &frontier));
    OK(tide_frontier_open(frontier, 0));
    assert_int_equal(tide_frontier_open(frontier, 100), TIDE_NO_MEMORY);
    tide_frontier_check(frontier);
    assert_int_equal(tide_frontier_totals(frontier).opened, 1);
    OK(tide_frontier_open(frontier, 100));
    assert_int_equal(tide_frontier_totals(frontier).opened, 2);
    tide_frontier_check(frontier);
    tide_frontier_free(frontier);
    tide_frontier_free(NULL);
}
