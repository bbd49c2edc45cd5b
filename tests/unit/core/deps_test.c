/* Goal: every batch gets an order in which needs come first, or a job on a
 * circle is named.  Method: examples, every graph of up to four jobs, and
 * random ones against a model that looks for depths and circles the slow way. */
#include "core/deps.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/test.h"

enum { MODEL_JOBS = 64 };

/* reach[a][b]: a needs b, over any number of steps (Warshall's closure). */
static void model_reach(uint32_t count, const struct tide_edge *edges, size_t edges_count,
                        bool reach[MODEL_JOBS][MODEL_JOBS])
{
    memset(reach, 0, sizeof(bool) * MODEL_JOBS * MODEL_JOBS);
    for (size_t i = 0; i < edges_count; i++)
        reach[edges[i].job][edges[i].needs] = true;
    for (uint32_t via = 0; via < count; via++)
        for (uint32_t a = 0; a < count; a++)
            if (reach[a][via])
                for (uint32_t b = 0; b < count; b++)
                    reach[a][b] |= reach[via][b];
}

/* Relaxes the depths until nothing changes; only for graphs without circles. */
static void model_depths(uint32_t count, const struct tide_edge *edges, size_t edges_count,
                         uint32_t *depths)
{
    memset(depths, 0, count * sizeof *depths);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < edges_count; i++)
            if (depths[edges[i].job] < depths[edges[i].needs] + 1) {
                depths[edges[i].job] = depths[edges[i].needs] + 1;
                changed = true;
            }
    }
}

/* Returns whether the batch had a circle. */
static bool compare(uint32_t count, const struct tide_edge *edges, size_t edges_count)
{
    static bool reach[MODEL_JOBS][MODEL_JOBS];
    uint32_t order[MODEL_JOBS], depths[MODEL_JOBS], scratch[MODEL_JOBS];
    uint32_t culprit = UINT32_MAX;
    memset(order, 0xee, sizeof order);
    model_reach(count, edges, edges_count, reach);
    bool circle = false;
    for (uint32_t job = 0; job < count; job++)
        circle |= reach[job][job];

    tide_status rc =
        tide_deps_order(count, edges, edges_count, tide_mem_heap(), order, &culprit, NULL);
    if (circle) {
        assert_int_equal(rc, TIDE_INVALID);
        assert_true(culprit < count);
        assert_true(reach[culprit][culprit]);
        assert_int_equal(order[0], 0xeeeeeeee);
        return true;
    }
    assert_int_equal(rc, TIDE_OK);
    assert_int_equal(culprit, UINT32_MAX);
    tide_deps_check(count, edges, edges_count, order, scratch);
    model_depths(count, edges, edges_count, depths);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t before = order[i - 1], here = order[i];
        assert_true(depths[before] < depths[here] ||
                    (depths[before] == depths[here] && before < here));
    }
    return false;
}

TEST(what_is_needed_comes_first_and_equals_keep_their_order)
{
    const struct tide_edge edges[] = {{0, 3}, {3, 4}, {1, 3}, {1, 3}};
    uint32_t order[6];
    OK(tide_deps_order(6, edges, 4, tide_mem_heap(), order, NULL, NULL));
    const uint32_t expected[6] = {2, 4, 5, 3, 0, 1};
    assert_memory_equal(order, expected, sizeof expected);
}

TEST(a_circle_is_refused_and_named)
{
    /* 0 waits for the circle 2 -> 4 -> 3 -> 2 without being on it. */
    const struct tide_edge edges[] = {{0, 4}, {2, 4}, {4, 3}, {3, 2}};
    uint32_t order[5], culprit = 99;
    tide_error err;
    assert_int_equal(tide_deps_order(5, edges, 4, tide_mem_heap(), order, &culprit, &err),
                     TIDE_INVALID);
    assert_int_equal(culprit, 2);
    assert_non_null(strstr(err.text, "job 2"));
    const struct tide_edge self = {1, 1};
    assert_int_equal(tide_deps_order(2, &self, 1, tide_mem_heap(), order, &culprit, NULL),
                     TIDE_INVALID);
    assert_int_equal(culprit, 1);
    assert_int_equal(tide_deps_order(2, &self, 1, tide_mem_heap(), order, NULL, NULL),
                     TIDE_INVALID);
}

TEST(indices_outside_the_batch_and_too_many_are_refused)
{
    uint32_t order[2], culprit = 99;
    struct tide_edge edge = {1, 2};
    assert_int_equal(tide_deps_order(2, &edge, 1, tide_mem_heap(), order, &culprit, NULL),
                     TIDE_INVALID);
    assert_int_equal(culprit, 1);
    edge = (struct tide_edge){7, 0};
    assert_int_equal(tide_deps_order(2, &edge, 1, tide_mem_heap(), order, &culprit, NULL),
                     TIDE_INVALID);
    assert_int_equal(culprit, 7);
    assert_int_equal(tide_deps_order(2, &edge, 1, tide_mem_heap(), order, NULL, NULL),
                     TIDE_INVALID);
    assert_int_equal(
        tide_deps_order(TIDE_CHILDREN_MAX + 1, NULL, 0, tide_mem_heap(), order, NULL, NULL),
        TIDE_FULL);
    assert_int_equal(
        tide_deps_order(1, &edge, (size_t)TIDE_EDGES_MAX + 1, tide_mem_heap(), order, NULL, NULL),
        TIDE_FULL);
    OK(tide_deps_order(0, NULL, 0, tide_mem_heap(), NULL, NULL, NULL));
}

TEST(every_graph_of_up_to_four_jobs_agrees_with_the_model)
{
    uint64_t circles = 0, orders = 0;
    for (uint32_t count = 1; count <= 4; count++)
        for (uint32_t graph = 0; graph < 1u << (count * count); graph++) {
            struct tide_edge edges[16];
            size_t edges_count = 0;
            for (uint32_t bit = 0; bit < count * count; bit++)
                if (graph & 1u << bit)
                    edges[edges_count++] = (struct tide_edge){bit / count, bit % count};
            if (compare(count, edges, edges_count))
                circles++;
            else
                orders++;
        }
    assert_int_equal(orders, 1 + 3 + 25 + 543); /* labelled acyclic graphs */
    assert_true(circles > orders);
}

TEST(random_graphs_agree_with_the_model)
{
    uint64_t circles = 0, rounds = scaled(40000);
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        uint32_t count = 1 + (uint32_t)tide_rng_below(&rng, MODEL_JOBS);
        struct tide_edge edges[3 * MODEL_JOBS];
        size_t edges_count = tide_rng_below(&rng, 3 * (uint64_t)count);
        uint32_t names[MODEL_JOBS]; /* a hidden order that most edges respect */
        for (uint32_t i = 0; i < count; i++) {
            uint32_t other = (uint32_t)tide_rng_below(&rng, i + 1);
            names[i] = names[other];
            names[other] = i;
        }
        bool any = tide_rng_chance(&rng, 1, 3);
        size_t kept = 0;
        for (size_t i = 0; i < edges_count; i++) {
            uint32_t a = (uint32_t)tide_rng_below(&rng, count);
            uint32_t b = (uint32_t)tide_rng_below(&rng, any ? count : a + 1);
            if (any || a != b)
                edges[kept++] = (struct tide_edge){names[a], names[b]};
        }
        circles += compare(count, edges, kept);
    }
    assert_true(circles > rounds / 20);
    assert_true(circles < rounds * 9 / 10);
}

/* A chain as long as a batch may be: no recursion, no quadratic walk. */
TEST(the_longest_chain_is_ordered_and_closing_it_is_refused)
{
    enum { COUNT = TIDE_CHILDREN_MAX };
    struct tide_edge *edges = malloc(COUNT * sizeof *edges);
    uint32_t *order = malloc(COUNT * sizeof *order);
    assert_true(edges != NULL && order != NULL);
    for (uint32_t i = 0; i < COUNT; i++)
        edges[i] = (struct tide_edge){i, (i + 1) % COUNT};
    OK(tide_deps_order(COUNT, edges, COUNT - 1, tide_mem_heap(), order, NULL, NULL));
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(order[i], COUNT - 1 - i);
    uint32_t culprit = 99;
    assert_int_equal(tide_deps_order(COUNT, edges, COUNT, tide_mem_heap(), order, &culprit, NULL),
                     TIDE_INVALID);
    assert_int_equal(culprit, 0);
    free(edges);
    free(order);
}

TEST(deps_survive_every_failed_allocation)
{
    const struct tide_edge edges[] = {{0, 1}, {1, 2}};
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        uint32_t order[3] = {9, 9, 9};
        tide_status rc = tide_deps_order(3, edges, 2, &mem.base, order, NULL, NULL);
        assert_swept(mem, rc);
        if (!mem.fired) {
            assert_int_equal(order[0], 2);
            assert_true(mem.fail_at > 0);
        }
        if (mem.fired)
            assert_int_equal(order[0], 9);
    }
}
