/* Random operations: the invariants hold after each. */
#include "governor_fixture.h"

struct out_call {
    uint32_t units;
    uint32_t calls;
    uint64_t sent_ms;
};

static void random_answer(tide_governor *governor, uint64_t now_ms, const struct out_call *call,
                          tide_rng *rng)
{
    static const tide_status troubles[] = {TIDE_GONE,    TIDE_SERVER,  TIDE_THROTTLED,
                                           TIDE_AUTH,    TIDE_TIMEOUT, TIDE_SERVER,
                                           TIDE_NETWORK, TIDE_CANCELED};
    tide_status status = TIDE_OK;
    if (tide_rng_chance(rng, 1, 30))
        status = troubles[tide_rng_below(rng, sizeof troubles / sizeof troubles[0])];
    const struct tide_answer fact = {
        .units = call->units,
        .calls = call->calls,
        .latency_ms = (uint32_t)(now_ms - call->sent_ms),
        .status = status,
        .http = (int)tide_rng_below(rng, 2) * 200,
        .retry_after_ms = tide_rng_chance(rng, 1, 3) ? tide_rng_below(rng, 5000) : 0,
        .method = (uint32_t)tide_rng_below(rng, TIDE_METHODS_MAX + 2),
        .refusal = (enum tide_refusal)tide_rng_below(rng, 3),
        .bytes = tide_rng_below(rng, 100000),
    };
    tide_governor_answered(governor, now_ms, &fact, rng);
}

enum { OUT_MAX = 32 };
struct walk {
    tide_governor *governor;
    struct tide_governor_profile profile;
    struct out_call out[OUT_MAX];
    unsigned out_count;
    tide_rng rng;
    uint64_t now_ms;
};

static void walk_charge(struct walk *walk)
{
    const unsigned level = 1 + (unsigned)tide_rng_below(&walk->rng, 4);
    const uint32_t calls = 1 + (uint32_t)tide_rng_below(&walk->rng, 3);
    const uint32_t units = (uint32_t)tide_rng_below(&walk->rng, 2 * walk->profile.call_units + 1);
    uint64_t again_ms = 0;
    if (walk->out_count == OUT_MAX)
        return;
    const tide_status rc =
        tide_governor_charge_batch(walk->governor, walk->now_ms, level, units, calls, &again_ms);
    if (rc == TIDE_OK)
        walk->out[walk->out_count++] = (struct out_call){units, calls, walk->now_ms};
    if (rc == TIDE_AGAIN)
        assert_true(again_ms > walk->now_ms);
}

/* A call comes back, or turns out never to have been sent. */
static void walk_end(struct walk *walk, bool sent)
{
    if (walk->out_count == 0)
        return;
    const unsigned i = (unsigned)tide_rng_below(&walk->rng, walk->out_count);
    const struct out_call call = walk->out[i];
    walk->out[i] = walk->out[--walk->out_count];
    if (sent)
        random_answer(walk->governor, walk->now_ms, &call, &walk->rng);
    else
        tide_governor_uncharge_batch(walk->governor, walk->now_ms, call.units, call.calls);
}

static void walk_command(struct walk *walk)
{
    switch (tide_rng_below(&walk->rng, 200)) {
    case 0:
        tide_governor_halt(walk->governor, "random");
        break;
    case 1:
        tide_governor_pause(walk->governor, walk->now_ms + tide_rng_below(&walk->rng, 3000),
                            TIDE_NETWORK);
        break;
    case 2:
    case 3:
    case 4:
        tide_governor_resume(walk->governor, walk->now_ms);
        break;
    case 5:
        walk->profile.share_permille = 500 + (unsigned)tide_rng_below(&walk->rng, 501);
        (void)tide_governor_limits_set(walk->governor, &walk->profile);
        break;
    default:
        break;
    }
}

static uint64_t random_walk(uint64_t seed, uint64_t steps)
{
    struct walk walk = {.rng = tide_rng_seeded(seed), .now_ms = 1};
    walk.profile = (struct tide_governor_profile){
        .window_ms = 1000 + (uint32_t)tide_rng_below(&walk.rng, 60000),
        .window_units_max = 200 + tide_rng_below(&walk.rng, 5000),
        .call_units = 1 + (uint32_t)tide_rng_below(&walk.rng, 20),
        .in_flight_max = 1 + (unsigned)tide_rng_below(&walk.rng, 20),
        .reserve_permille = (unsigned)tide_rng_below(&walk.rng, 2) * 20,
        .learn_bytes_per_day = tide_rng_chance(&walk.rng, 1, 2),
    };
    walk.governor = governor_of(&walk.profile, 1);
    uint64_t window_max = walk.profile.window_units_max; /* the largest share there was */

    for (uint64_t step = 0; step < steps; step++) {
        walk.now_ms += tide_rng_below(&walk.rng, 20);
        const uint64_t dice = tide_rng_below(&walk.rng, 12);
        if (dice < 2)
            walk_command(&walk);
        else if (dice < 7)
            walk_end(&walk, dice > 2);
        else
            walk_charge(&walk);
        if (tide_governor_save_due(walk.governor, walk.now_ms))
            save_now(walk.governor, walk.now_ms);
        const struct tide_governor_view view = view_of(walk.governor, walk.now_ms);
        assert_true(view.window_used <= window_max);
        assert_true(view.in_flight <= walk.profile.in_flight_max);
        assert_true(tide_governor_jobs_max(walk.governor, walk.now_ms) <= view.in_flight_max);
        if (!tide_governor_check(walk.governor, walk.now_ms))
            fail_msg("seed %llu step %llu", (unsigned long long)seed, (unsigned long long)step);
    }
    const uint64_t calls = view_of(walk.governor, walk.now_ms).calls;
    tide_governor_free(walk.governor);
    return calls;
}

TEST(random_operations_keep_the_invariants)
{
    uint64_t calls = 0;
    for (uint64_t seed = 1; seed <= 40; seed++)
        calls += random_walk(seed, scaled(50000));
    print_message("%llu calls\n", (unsigned long long)calls);
    assert_true(calls > scaled(40 * 50000) / 100); /* it was not halted all the time */
}
