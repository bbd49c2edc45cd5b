/* Goal: up slowly, down at once, never out of bounds, back within a minute.
 * Method: examples, every starting point of the climb, random answers. */
#include "core/governor/aimd.h"
#include "engine/providers.h"

#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

static const struct tide_demand no_demand = {0};

static struct tide_governor_profile profile_named(const char *name)
{
    struct tide_governor_profile profile;
    OK(tide_profile_complete(&tide_provider_known(name)->profile, &profile));
    return profile;
}

/* Answers every 100 ms until the pace is at 90 % of the ceiling; how long it took. */
static uint64_t climb_ms(tide_aimd *aimd, uint64_t now_ms)
{
    const uint64_t start_ms = now_ms;
    while (aimd->rate < 0.9 * aimd->profile->rate_max && now_ms < start_ms + 600000) {
        now_ms += 100;
        if (tide_aimd_succeeded(aimd, now_ms, now_ms - 50, 0))
            tide_aimd_grow(aimd, now_ms, &no_demand);
    }
    return now_ms - start_ms;
}

TEST(the_climb_after_one_cut_takes_less_than_a_minute_in_every_profile)
{
    static const char *const names[] = {"gmail", "console", "onedrive", "chat", "default"};
    for (int i = 0; i < 5; i++) {
        const struct tide_governor_profile profile = profile_named(names[i]);
        tide_aimd aimd;
        tide_aimd_init(&aimd, &profile);
        tide_aimd_set(&aimd, profile.rate_max, profile.workers_max);
        assert_true(tide_aimd_refused(&aimd, 1000, 990));
        assert_true(aimd.rate == profile.rate_max / 2);
        assert_int_equal(aimd.workers, profile.workers_max / 2);
        assert_in_range(climb_ms(&aimd, 1000), 5000, 50000);
        tide_aimd_set(&aimd, 0, 0); /* and little more from the very bottom */
        assert_in_range(climb_ms(&aimd, 100000), 5000, 90000);
    }
    const struct tide_governor_profile gmail = profile_named("gmail");
    tide_aimd aimd;
    tide_aimd_init(&aimd, &gmail);
    tide_aimd_set(&aimd, 0, 0);
    assert_in_range(climb_ms(&aimd, 0), 5000, 45000);
}

TEST(only_news_cuts_and_a_shut_door_cuts_once)
{
    const struct tide_governor_profile profile = profile_named("default");
    tide_aimd aimd;
    tide_aimd_init(&aimd, &profile);
    assert_true(tide_aimd_refused(&aimd, 1000, 900));
    assert_true(aimd.rate == 2);
    assert_false(tide_aimd_refused(&aimd, 1100, 950));  /* was out at the cut */
    assert_false(tide_aimd_refused(&aimd, 5000, 4900)); /* nothing succeeded since */
    (void)tide_aimd_succeeded(&aimd, 5500, 980, 0);     /* nor is this one news */
    assert_false(tide_aimd_refused(&aimd, 6000, 5900));
    (void)tide_aimd_succeeded(&aimd, 7000, 6900, 0);
    assert_true(tide_aimd_refused(&aimd, 7100, 7000));
    assert_true(aimd.rate == 1);
    assert_int_equal(aimd.cuts, 2);
}

/* One call in a hundred fails at many providers: the pace must still climb. */
TEST(a_few_failures_do_not_keep_the_pace_down)
{
    struct tide_governor_profile profile;
    OK(tide_profile_complete(&tide_provider_known("gmail")->profile, &profile));
    tide_aimd aimd;
    tide_aimd_init(&aimd, &profile);
    tide_aimd_cut(&aimd, 1000);
    double cut_rate = aimd.rate;
    uint64_t now_ms = 2000;
    const struct tide_demand demand = {.jobs = 10};
    for (int i = 0; i < 300; i++, now_ms += 200) {
        if (i % 50 == 49)
            tide_aimd_failed(&aimd);
        else if (tide_aimd_succeeded(&aimd, now_ms, now_ms - 100, 0))
            tide_aimd_grow(&aimd, now_ms, &demand);
    }
    assert_true(aimd.rate > cut_rate);
    cut_rate = aimd.rate;
    for (int i = 0; i < 300; i++, now_ms += 200) {
        if (i % 3 == 0)
            tide_aimd_failed(&aimd);
        else if (tide_aimd_succeeded(&aimd, now_ms, now_ms - 100, 0))
            tide_aimd_grow(&aimd, now_ms, &demand);
    }
    assert_true(aimd.rate <= cut_rate); /* a third of them is no health */
}

TEST(health_begins_with_an_answer_and_ends_with_trouble)
{
    const struct tide_governor_profile profile = profile_named("default");
    tide_aimd aimd;
    tide_aimd_init(&aimd, &profile);
    assert_false(tide_aimd_succeeded(&aimd, 100000, 99000, 0)); /* silence is not health */
    assert_false(tide_aimd_succeeded(&aimd, 104999, 104000, 0));
    tide_aimd_unhealthy(&aimd);
    assert_false(tide_aimd_succeeded(&aimd, 105000, 104000, 0));
    assert_true(tide_aimd_succeeded(&aimd, 110000, 109000, 0));
}

TEST(a_failed_trial_of_many_workers_ends_at_the_minimum)
{
    struct tide_governor_profile profile;
    const struct tide_governor_profile wide = {.workers_step = 40};
    const struct tide_demand large = {.jobs = 3, .large = 3};
    OK(tide_profile_complete(&wide, &profile));
    tide_aimd aimd;
    tide_aimd_init(&aimd, &profile);
    (void)tide_aimd_succeeded(&aimd, 1000, 900, 5000);
    assert_true(tide_aimd_succeeded(&aimd, 6000, 5900, 5000));
    tide_aimd_grow(&aimd, 6000, &large);
    assert_int_equal(aimd.workers, 32);
    (void)tide_aimd_succeeded(&aimd, 7000, 6900, 1); /* no more bytes than before */
    assert_true(tide_aimd_succeeded(&aimd, 12000, 11900, 1));
    tide_aimd_grow(&aimd, 12000, &large);
    assert_int_equal(aimd.workers, 2);
}

TEST(random_answers_keep_the_bounds)
{
    static const char *const names[] = {"gmail", "console", "onedrive", "chat", "default"};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        const struct tide_governor_profile profile = profile_named(names[seed % 5]);
        tide_aimd aimd;
        tide_aimd_init(&aimd, &profile);
        uint64_t now_ms = 10000;
        const uint64_t steps = scaled(200000);
        for (uint64_t step = 0; step < steps; step++) {
            now_ms += tide_rng_below(&rng, 400);
            const uint64_t sent_ms = now_ms - tide_rng_below(&rng, 5000);
            const struct tide_demand demand = {(uint32_t)tide_rng_below(&rng, 6),
                                               (uint32_t)tide_rng_below(&rng, 202),
                                               (uint32_t)tide_rng_below(&rng, 6)};
            const double rate = aimd.rate;
            const uint64_t cuts = aimd.cuts;
            if (tide_rng_chance(&rng, 1, 100)) {
                (void)tide_aimd_refused(&aimd, now_ms, sent_ms);
                assert_true(aimd.cuts == cuts ? aimd.rate == rate : aimd.rate <= rate);
            } else if (tide_rng_chance(&rng, 1, 100)) {
                tide_aimd_unhealthy(&aimd);
            } else if (tide_aimd_succeeded(&aimd, now_ms, sent_ms, tide_rng_below(&rng, 9999))) {
                tide_aimd_grow(&aimd, now_ms, &demand);
                assert_true(aimd.rate > rate || aimd.rate == profile.rate_max);
            }
            if (!tide_aimd_check(&aimd))
                fail_msg("seed %llu step %llu", (unsigned long long)seed, (unsigned long long)step);
        }
    }
}

/* Everything a setting may change (E11.1), away from its default. */
TEST(steps_and_cuts_are_those_of_the_profile)
{
    struct tide_governor_profile profile = profile_named("default"); /* 1 to 16 calls/s, 2 to 32 */
    profile.workers_step = 3;
    profile.rate_step_permille = 100;
    profile.cut_permille = 750;
    profile.small_jobs = 10;
    profile.large_jobs = 2;
    tide_aimd aimd;
    tide_aimd_init(&aimd, &profile);
    tide_aimd_set(&aimd, 10, 12);
    tide_aimd_grow(&aimd, 1000, &no_demand);
    assert_int_equal(aimd.workers, 15);
    assert_true(aimd.rate > 11.59 && aimd.rate < 11.61);
    profile.rate_step_call_permille = 2000; /* two calls are more than a tenth of 16 */
    tide_aimd_set(&aimd, 10, 12);
    tide_aimd_grow(&aimd, 1000, &(struct tide_demand){.jobs = 11, .small = 11});
    assert_int_equal(aimd.workers, 24);
    assert_true(aimd.rate == 12);
    tide_aimd_grow(&aimd, 2000, &(struct tide_demand){.jobs = 10, .small = 10});
    assert_int_equal(aimd.workers, 27);
    tide_aimd_set(&aimd, 16, 20);
    tide_aimd_cut(&aimd, 3000);
    assert_int_equal(aimd.workers, 15);
    assert_true(aimd.rate == 12);

    /* One large job: three workers on trial raise nothing, and go together. */
    const struct tide_demand large = {.jobs = 1, .large = 1};
    (void)tide_aimd_succeeded(&aimd, 4000, 3990, 1000000);
    tide_aimd_grow(&aimd, 5000, &large);
    assert_int_equal(aimd.workers, 18);
    (void)tide_aimd_succeeded(&aimd, 6000, 5990, 1000000);
    tide_aimd_grow(&aimd, 7000, &large);
    assert_int_equal(aimd.workers, 15);
    assert_true(tide_aimd_check(&aimd));

    profile.cut_permille = 1000;
    assert_int_equal(tide_profile_complete(&profile, &profile), TIDE_INVALID);
}
