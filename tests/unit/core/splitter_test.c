/* Goal: bad items are isolated, nothing else is lost, and the bound of E6.3
 * holds.  Method: examples; a simulated provider that answers the requests of a
 * whole life of a batch, for every batch of up to nine items and for many random
 * large ones; random inputs against the invariants. */
#include "core/splitter.h"
#include "base/check.h"
#include "base/limits.h"
#include "core/badness.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

#include <math.h>

enum { NOW = 5000000 };

static struct tide_split_plan plan_of(const struct tide_split_input *input,
                                      struct tide_item_fate *fates)
{
    struct tide_retry_policy policy = tide_retry_defaults();
    struct tide_split_plan plan;
    tide_rng rng = tide_rng_seeded(3);
    OK(tide_splitter_plan(&policy, input, NOW, &rng, fates, &plan));
    tide_splitter_check(input, fates, &plan);
    return plan;
}

TEST(a_named_item_goes_alone_and_the_others_are_stored)
{
    const struct tide_split_item items[] = {
        {TIDE_SEEN_STORED, TIDE_OK},
        {TIDE_SEEN_ERROR, TIDE_SERVER},
        {TIDE_SEEN_ERROR, TIDE_GONE},
        {TIDE_SEEN_ERROR, TIDE_PERMANENT},
    };
    struct tide_item_fate fates[4];
    struct tide_split_plan plan =
        plan_of(&(struct tide_split_input){.items = items, .count = 4, .attempts = 0}, fates);
    assert_int_equal(plan.rest, TIDE_REST_NONE);
    assert_int_equal(fates[0].fate, TIDE_FATE_STORED);
    assert_int_equal(fates[1].fate, TIDE_FATE_ALONE);
    assert_int_equal(fates[1].reason, TIDE_SERVER);
    assert_int_equal(fates[2].fate, TIDE_FATE_GONE);
    assert_int_equal(fates[3].fate, TIDE_FATE_BAD);
    assert_int_equal(fates[3].reason, TIDE_PERMANENT);
    assert_int_equal(plan.alone_attempts, 1);
    assert_in_range(plan.alone_at_ms, NOW + 500, NOW + 1000);
}

/* The batch stalled three times before: that was not the fault of the one that is named now. */
TEST(a_named_item_does_not_pay_for_what_its_batch_met_before)
{
    const struct tide_split_item items[] = {{TIDE_SEEN_STORED, TIDE_OK},
                                            {TIDE_SEEN_ERROR, TIDE_SERVER}};
    struct tide_item_fate fates[2];
    struct tide_split_plan plan =
        plan_of(&(struct tide_split_input){.items = items, .count = 2, .attempts = 3}, fates);
    assert_int_equal(fates[1].fate, TIDE_FATE_ALONE);
    assert_int_equal(plan.alone_attempts, 1);
    assert_in_range(plan.alone_at_ms, NOW + 500, NOW + 1000);
}

TEST(a_batch_that_keeps_failing_is_split_and_stored_items_leave_it)
{
    struct tide_split_item items[6] = {[2] = {TIDE_SEEN_STORED, TIDE_OK}};
    struct tide_item_fate fates[6];
    struct tide_split_input input = {
        .items = items, .count = 6, .batch_status = TIDE_SERVER, .attempts = 2};
    struct tide_split_plan plan = plan_of(&input, fates);
    assert_int_equal(plan.rest, TIDE_REST_RETRY);
    assert_int_equal(plan.attempts, 3);
    assert_in_range(plan.at_ms, NOW + 2000, NOW + 4000);
    assert_int_equal(plan.counts[TIDE_FATE_FIRST], 5);

    input.attempts = 3;
    plan = plan_of(&input, fates);
    assert_int_equal(plan.rest, TIDE_REST_SPLIT);
    assert_int_equal(plan.attempts, 4);
    const enum tide_fate expected[6] = {TIDE_FATE_FIRST, TIDE_FATE_FIRST,  TIDE_FATE_STORED,
                                        TIDE_FATE_FIRST, TIDE_FATE_SECOND, TIDE_FATE_SECOND};
    for (int i = 0; i < 6; i++)
        assert_int_equal(fates[i].fate, expected[i]);
}

TEST(a_single_item_is_bad_after_its_budget_and_stalls_make_it_owed)
{
    struct tide_split_item item = {TIDE_SEEN_NOTHING, TIDE_OK};
    struct tide_item_fate fate;
    struct tide_split_input input = {
        .items = &item, .count = 1, .batch_status = TIDE_SERVER, .attempts = 3};
    assert_int_equal(plan_of(&input, &fate).rest, TIDE_REST_RETRY);
    input.attempts = 4;
    assert_int_equal(plan_of(&input, &fate).rest, TIDE_REST_NONE);
    assert_int_equal(fate.fate, TIDE_FATE_BAD);
    assert_int_equal(fate.reason, TIDE_SERVER);
    input.batch_status = TIDE_TIMEOUT;
    assert_int_equal(plan_of(&input, &fate).rest, TIDE_REST_NONE);
    assert_int_equal(fate.fate, TIDE_FATE_OWED);
    input.batch_status = TIDE_GONE;
    assert_int_equal(plan_of(&input, &fate).counts[TIDE_FATE_GONE], 1);
    input.batch_status = TIDE_OK; /* the same, said by name */
    item = (struct tide_split_item){TIDE_SEEN_ERROR, TIDE_SERVER};
    assert_int_equal(plan_of(&input, &fate).counts[TIDE_FATE_BAD], 1);
    input.attempts = 0;
    assert_int_equal(plan_of(&input, &fate).rest, TIDE_REST_RETRY);
    assert_int_equal(plan_of(&input, &fate).attempts, 1);
}

TEST(the_last_item_left_of_a_batch_is_tried_alone_before_it_is_bad)
{
    const struct tide_split_item items[2] = {{TIDE_SEEN_STORED, TIDE_OK}};
    struct tide_item_fate fates[2];
    struct tide_split_plan plan = plan_of(
        &(struct tide_split_input){
            .items = items, .count = 2, .batch_status = TIDE_SERVER, .attempts = 9},
        fates);
    assert_int_equal(plan.rest, TIDE_REST_RETRY);
    assert_int_equal(plan.attempts, 10);
}

TEST(causes_outside_put_the_batch_back_for_nothing)
{
    struct tide_split_item items[3] = {{TIDE_SEEN_STORED, TIDE_OK}};
    struct tide_item_fate fates[3];
    struct tide_split_input input = {
        .items = items, .count = 3, .batch_status = TIDE_THROTTLED, .attempts = 4};
    struct tide_split_plan plan = plan_of(&input, fates);
    assert_int_equal(plan.rest, TIDE_REST_PUT_BACK);
    assert_int_equal(plan.attempts, 4);
    assert_int_equal(plan.cause, TIDE_CLASS_THROTTLED);
    assert_int_equal(plan.at_ms, 0);
    input.again_at_ms = NOW + 60000;
    assert_int_equal(plan_of(&input, fates).at_ms, NOW + 60000);
    input.batch_status = TIDE_CANCELED;
    plan = plan_of(&input, fates);
    assert_int_equal(plan.rest, TIDE_REST_PUT_BACK);
    assert_int_equal(plan.cause, TIDE_CLASS_OK);
    /* One part of a batch was refused for its quota: only that one goes back. */
    input = (struct tide_split_input){.items = items, .count = 3, .attempts = 4};
    items[1] = (struct tide_split_item){TIDE_SEEN_ERROR, TIDE_THROTTLED};
    items[2] = (struct tide_split_item){TIDE_SEEN_STORED, TIDE_OK};
    plan = plan_of(&input, fates);
    assert_int_equal(plan.rest, TIDE_REST_PUT_BACK);
    assert_int_equal(plan.counts[TIDE_FATE_FIRST], 1);
    assert_int_equal(plan.cause, TIDE_CLASS_THROTTLED);
}

TEST(a_permanent_answer_to_a_batch_splits_it_at_once)
{
    const struct tide_split_item items[2] = {{TIDE_SEEN_NOTHING, TIDE_OK}};
    struct tide_item_fate fates[2];
    struct tide_split_input input = {
        .items = items, .count = 2, .batch_status = TIDE_PERMANENT, .attempts = 0};
    struct tide_split_plan plan = plan_of(&input, fates);
    assert_int_equal(plan.rest, TIDE_REST_SPLIT);
    assert_int_equal(plan.at_ms, NOW);
    input.batch_status = TIDE_GONE;
    assert_int_equal(plan_of(&input, fates).rest, TIDE_REST_SPLIT);
}

TEST(success_without_any_result_costs_an_attempt)
{
    struct tide_split_item items[2] = {{TIDE_SEEN_NOTHING, TIDE_OK}};
    struct tide_item_fate fates[2];
    struct tide_split_input input = {.items = items, .count = 2, .attempts = 1};
    struct tide_split_plan plan = plan_of(&input, fates);
    assert_int_equal(plan.rest, TIDE_REST_RETRY);
    assert_int_equal(plan.attempts, 2);
    items[0].seen = TIDE_SEEN_STORED; /* half the way: free, at once */
    plan = plan_of(&input, fates);
    assert_int_equal(plan.attempts, 1);
    assert_int_equal(plan.at_ms, NOW);
}

TEST(senseless_input_is_refused)
{
    struct tide_retry_policy policy = tide_retry_defaults();
    tide_rng rng = tide_rng_seeded(1);
    struct tide_split_item item = {TIDE_SEEN_ERROR, TIDE_OK};
    struct tide_item_fate fate;
    struct tide_split_plan plan;
    struct tide_split_input input = {.items = &item, .count = 1};
    assert_int_equal(tide_splitter_plan(&policy, &input, NOW, &rng, &fate, &plan), TIDE_INVALID);
    input.count = 0;
    assert_int_equal(tide_splitter_plan(&policy, &input, NOW, &rng, &fate, &plan), TIDE_INVALID);
    input.count = TIDE_ITEMS_MAX + 1;
    assert_int_equal(tide_splitter_plan(&policy, &input, NOW, &rng, &fate, &plan), TIDE_INVALID);
    item = (struct tide_split_item){TIDE_SEEN_ERROR, TIDE_SERVER};
    input = (struct tide_split_input){.items = &item, .count = 1, .attempts = UINT32_MAX};
    assert_int_equal(tide_splitter_plan(&policy, &input, NOW, &rng, &fate, &plan), TIDE_INVALID);
    input.attempts = 0; /* at the end of time the pause ends with it */
    OK(tide_splitter_plan(&policy, &input, UINT64_MAX, &rng, &fate, &plan));
    assert_true(plan.at_ms == UINT64_MAX);
}

/* The life of one batch.  GOOD items are stored.  A SILENT item fails the whole
 * request without a reason; a NAMED one fails alone, by name. */
enum nature { GOOD, SILENT, NAMED };
enum { SIM_ITEMS = 1000, SIM_JOBS = 4 * SIM_ITEMS };

struct sim_job {
    uint32_t first, count, attempts; /* a run of sim->members */
};

struct sim {
    enum nature natures[SIM_ITEMS];
    bool stored[SIM_ITEMS], bad[SIM_ITEMS];
    uint32_t members[64 * SIM_ITEMS], members_count;
    struct sim_job jobs[SIM_JOBS];
    uint32_t jobs_count;
    uint64_t requests;
    tide_badness *badness; /* decides, as in the engine; NULL: not used */
};

static struct sim sim;
static struct tide_split_item sim_items[SIM_ITEMS];
static struct tide_item_fate sim_fates[SIM_ITEMS];

static void sim_job_add(const uint32_t *ids, enum tide_fate wanted, uint32_t count,
                        uint32_t attempts)
{
    struct sim_job job = {.first = sim.members_count, .attempts = attempts};
    for (uint32_t i = 0; i < count; i++)
        if (sim_fates[i].fate == wanted)
            sim.members[sim.members_count++] = ids[i];
    job.count = sim.members_count - job.first;
    assert_true(sim.jobs_count < SIM_JOBS);
    assert_true(job.count > 0);
    sim.jobs[sim.jobs_count++] = job;
}

/* Lets badness.h hold the verdict on a single item: it is tried again, with an attempt left. */
static void sim_judge(const struct sim_job *job, uint32_t id, struct tide_item_fate *fate,
                      struct tide_split_plan *plan)
{
    if (sim.badness == NULL || job->count > 1 || fate->fate != TIDE_FATE_BAD)
        return;
    struct tide_item_outcome outcome = {
        .item = UINT64_MAX - 1, .status = TIDE_SERVER, .attempts = 1, .retried = true};
    (void)tide_badness_item(sim.badness, &outcome, NOW); /* others fail */
    outcome = (struct tide_item_outcome){
        .item = id + 1, .status = TIDE_SERVER, .attempts = job->attempts + 1};
    if (tide_badness_item(sim.badness, &outcome, NOW).kind == TIDE_ITEM_HELD) {
        fate->fate = TIDE_FATE_ALONE;
        plan->alone_attempts = job->attempts;
    }
    outcome = (struct tide_item_outcome){.item = UINT64_MAX, .status = TIDE_OK};
    (void)tide_badness_item(sim.badness, &outcome, NOW); /* and others succeed */
}

static void sim_attempt(struct sim_job job, const struct tide_retry_policy *policy, tide_rng *rng)
{
    static uint32_t ids[SIM_ITEMS];
    memcpy(ids, sim.members + job.first, job.count * sizeof *ids);
    bool silent = false;
    for (uint32_t i = 0; i < job.count; i++)
        silent |= sim.natures[ids[i]] == SILENT;
    for (uint32_t i = 0; i < job.count; i++)
        sim_items[i] = silent ? (struct tide_split_item){TIDE_SEEN_NOTHING, TIDE_OK}
                       : sim.natures[ids[i]] == NAMED
                           ? (struct tide_split_item){TIDE_SEEN_ERROR, TIDE_SERVER}
                           : (struct tide_split_item){TIDE_SEEN_STORED, TIDE_OK};
    sim.requests++;

    struct tide_split_input input = {.items = sim_items,
                                     .count = job.count,
                                     .batch_status = silent ? TIDE_SERVER : TIDE_OK,
                                     .attempts = job.attempts};
    struct tide_split_plan plan;
    OK(tide_splitter_plan(policy, &input, NOW, rng, sim_fates, &plan));
    tide_splitter_check(&input, sim_fates, &plan);
    sim_judge(&job, ids[0], &sim_fates[0], &plan);
    for (uint32_t i = 0; i < job.count; i++) {
        sim.stored[ids[i]] |= sim_fates[i].fate == TIDE_FATE_STORED;
        sim.bad[ids[i]] |= sim_fates[i].fate == TIDE_FATE_BAD;
    }
    if (plan.rest == TIDE_REST_RETRY || plan.rest == TIDE_REST_SPLIT)
        sim_job_add(ids, TIDE_FATE_FIRST, job.count, plan.attempts);
    if (plan.rest == TIDE_REST_SPLIT)
        sim_job_add(ids, TIDE_FATE_SECOND, job.count, plan.attempts);
    for (uint32_t i = 0; i < job.count; i++)
        if (sim_fates[i].fate == TIDE_FATE_ALONE) {
            assert_true(sim.jobs_count < SIM_JOBS);
            sim.jobs[sim.jobs_count++] = (struct sim_job){
                .first = sim.members_count, .count = 1, .attempts = plan.alone_attempts};
            sim.members[sim.members_count++] = ids[i];
        }
}

/* Runs a batch of `count` items to its end; returns the extra requests.  Jobs
 * are taken from the end, so the room that they used can be used again. */
static uint64_t sim_run(uint32_t count, tide_rng *rng)
{
    struct tide_retry_policy policy = tide_retry_defaults();
    memset(sim.stored, 0, sizeof sim.stored);
    memset(sim.bad, 0, sizeof sim.bad);
    sim.requests = 0;
    sim.jobs_count = 1;
    sim.members_count = count;
    sim.jobs[0] = (struct sim_job){.first = 0, .count = count};
    for (uint32_t i = 0; i < count; i++)
        sim.members[i] = i;
    while (sim.jobs_count > 0) {
        struct sim_job job = sim.jobs[--sim.jobs_count];
        sim.members_count = job.first + job.count;
        sim_attempt(job, &policy, rng);
    }
    return sim.requests - 1;
}

static void sim_verify(uint32_t count, uint64_t extra, uint64_t seed)
{
    uint32_t bad_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        bad_count += sim.natures[i] != GOOD;
        if (sim.stored[i] != (sim.natures[i] == GOOD) || sim.bad[i] != (sim.natures[i] != GOOD))
            fail_msg("seed %" PRIu64 ": item %" PRIu32 " of %" PRIu32 " ended wrong", seed, i,
                     count);
    }
    double bound = bad_count * (5.0 + 2.0 * log2((double)count));
    if ((double)extra > bound)
        fail_msg("seed %" PRIu64 ": %" PRIu64 " extra requests for %" PRIu32 " bad of %" PRIu32
                 ", allowed %.2f",
                 seed, extra, bad_count, count, bound);
}

TEST(the_bound_holds_for_every_batch_of_up_to_nine_items)
{
    tide_rng rng = tide_rng_seeded(1);
    for (uint32_t count = 1, batches = 3; count <= 9; count++, batches *= 3)
        for (uint32_t code = 0; code < batches; code++) {
            for (uint32_t i = 0, rest = code; i < count; i++, rest /= 3)
                sim.natures[i] = (enum nature)(rest % 3);
            sim_verify(count, sim_run(count, &rng), code);
        }
}

/* BAD7: where several items fail, each is tried alone three times before it is bad. */
TEST(the_bound_holds_for_several_bad_items_that_are_held)
{
    tide_rng rng = tide_rng_seeded(1);
    struct tide_badness_settings settings = tide_badness_defaults();
    for (uint32_t count = 2; count <= 10; count++)
        for (uint32_t code = 0; code < 1u << count; code++) {
            if (__builtin_popcount(code) < 2)
                continue;
            for (uint32_t i = 0; i < count; i++)
                sim.natures[i] = code >> i & 1 ? SILENT : GOOD;
            OK(tide_badness_new(&settings, tide_mem_heap(), &sim.badness));
            sim_verify(count, sim_run(count, &rng), code);
            tide_badness_free(sim.badness);
            sim.badness = NULL;
        }
}

TEST(the_bound_holds_for_one_bad_item_anywhere_in_any_batch)
{
    tide_rng rng = tide_rng_seeded(1);
    for (uint32_t count = 1; count <= 130; count++)
        for (uint32_t at = 0; at < count; at++)
            for (int nature = SILENT; nature <= NAMED; nature++) {
                memset(sim.natures, 0, sizeof sim.natures);
                sim.natures[at] = (enum nature)nature;
                sim_verify(count, sim_run(count, &rng), at);
            }
}

TEST(the_bound_holds_for_random_batches)
{
    uint64_t rounds = scaled(6000);
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        uint32_t count = 1 + (uint32_t)tide_rng_below(&rng, SIM_ITEMS);
        uint32_t bad_count = (uint32_t)tide_rng_below(&rng, count < 40 ? count + 1 : 40);
        memset(sim.natures, 0, sizeof sim.natures);
        for (uint32_t i = 0; i < bad_count; i++)
            sim.natures[tide_rng_below(&rng, count)] = tide_rng_chance(&rng, 1, 2) ? SILENT : NAMED;
        sim_verify(count, sim_run(count, &rng), seed);
    }
}

TEST(random_attempts_keep_the_invariants)
{
    struct tide_retry_policy policy = tide_retry_defaults();
    tide_rng rng = tide_rng_seeded(99);
    uint64_t rounds = scaled(1000000), kinds[TIDE_REST_PUT_BACK + 1] = {0};
    for (uint64_t round = 0; round < rounds; round++) {
        struct tide_split_item items[12];
        struct tide_item_fate fates[12];
        struct tide_split_input input = {
            .items = items,
            .count = 1 + (uint32_t)tide_rng_below(&rng, 12),
            .batch_status = (tide_status)(-(int)tide_rng_below(&rng, 1 - TIDE_BUG)),
            .attempts = (uint32_t)tide_rng_below(&rng, 9),
            .attempts_max = (uint32_t)tide_rng_below(&rng, 8),
            .again_at_ms = tide_rng_below(&rng, 2 * NOW),
        };
        if (tide_rng_chance(&rng, 1, 2))
            input.batch_status = TIDE_OK;
        for (uint32_t i = 0; i < input.count; i++) {
            items[i].seen = (enum tide_seen)tide_rng_below(&rng, 3);
            items[i].status = (tide_status)(-1 - (int)tide_rng_below(&rng, -TIDE_BUG));
        }
        struct tide_split_plan plan;
        OK(tide_splitter_plan(&policy, &input, NOW, &rng, fates, &plan));
        tide_splitter_check(&input, fates, &plan);
        kinds[plan.rest]++;
        if (plan.rest == TIDE_REST_RETRY || plan.rest == TIDE_REST_SPLIT)
            assert_true(plan.at_ms >= NOW);
    }
    for (int kind = 0; kind <= TIDE_REST_PUT_BACK; kind++)
        assert_true(kinds[kind] > 0);
}
