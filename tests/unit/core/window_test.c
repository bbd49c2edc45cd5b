/* Goal: a window never counts less than the truth, and at most a grain longer.
 * Method: examples, then random charges against a list of exact times. */
#include "core/governor/window.h"

#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

TEST(a_charge_counts_from_sending_until_its_answer_plus_the_window)
{
    tide_window window;
    OK(tide_window_init(&window, 60000, tide_mem_heap()));
    assert_int_equal(window.grain_ms, 79);

    tide_window_send(&window, 1000, 20);
    assert_int_equal(tide_window_used(&window, 1000), 20);
    assert_int_equal(tide_window_used(&window, 90000), 20); /* no answer, no end */
    assert_true(tide_window_frees_at_ms(&window, 90000, 90, 100) == UINT64_MAX);

    tide_window_received(&window, 90000, 20);
    assert_int_equal(tide_window_used(&window, 150000), 20);
    assert_int_equal(tide_window_used(&window, 150079), 0);
    const uint64_t at_ms = tide_window_frees_at_ms(&window, 90000, 90, 100);
    assert_true(at_ms > 150000 && at_ms <= 150079);
    assert_int_equal(tide_window_frees_at_ms(&window, 90000, 80, 100), 90000);
    assert_true(tide_window_frees_at_ms(&window, 90000, 101, 100) == UINT64_MAX);

    tide_window_send(&window, 200000, 7);
    tide_window_unsend(&window, 7);
    assert_int_equal(tide_window_used(&window, 200000), 0);
    tide_window_done(&window);
}

TEST(a_charge_without_an_answer_counts_until_the_provider_cannot_count_it)
{
    tide_window window;
    OK(tide_window_init(&window, 1000, tide_mem_heap()));
    tide_window_send(&window, 0, 5);
    tide_window_unanswered(&window, 100, 600, 5);
    tide_window_send(&window, 150, 3);
    tide_window_received(&window, 200, 3); /* expires before the older one */
    assert_int_equal(tide_window_used(&window, 1200), 8);
    assert_int_equal(tide_window_used(&window, 1210), 5);
    assert_int_equal(tide_window_used(&window, 1600), 5);
    assert_int_equal(tide_window_used(&window, 1610), 0);
    assert_true(tide_window_check(&window));
    tide_window_done(&window);
}

/* The naive model: every charge with its times, never forgotten too early. */
enum { MODEL_MAX = 4096 };
struct model {
    struct {
        uint64_t units;
        uint64_t counted_by_ms; /* 0: in flight */
    } charges[MODEL_MAX];
    unsigned count;
};

static uint64_t model_used(const struct model *model, uint64_t now_ms, uint64_t life_ms)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < model->count; i++)
        if (model->charges[i].counted_by_ms == 0 ||
            model->charges[i].counted_by_ms + life_ms > now_ms)
            used += model->charges[i].units;
    return used;
}

static void model_forget(struct model *model, uint64_t now_ms, uint64_t life_ms)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < model->count; i++)
        if (model->charges[i].counted_by_ms == 0 ||
            model->charges[i].counted_by_ms + life_ms > now_ms)
            model->charges[kept++] = model->charges[i];
    model->count = kept;
}

static void compare(const tide_window *window, const struct model *model, uint64_t now_ms,
                    tide_rng *rng)
{
    const uint64_t used = tide_window_used(window, now_ms);
    assert_true(used >= model_used(model, now_ms, window->window_ms));
    assert_true(used <= model_used(model, now_ms, window->window_ms + window->grain_ms + 1));
    assert_true(tide_window_check(window));

    const uint64_t limit = tide_rng_below(rng, 2000);
    const uint64_t units = tide_rng_below(rng, 100);
    const uint64_t at_ms = tide_window_frees_at_ms(window, now_ms, units, limit);
    if (at_ms == UINT64_MAX) {
        assert_true(window->in_flight + units > limit);
    } else {
        assert_true(tide_window_used(window, at_ms) + units <= limit);
        if (at_ms > now_ms)
            assert_true(tide_window_used(window, at_ms - 1) + units > limit);
    }
}

static void check_restored(const tide_window *window, uint64_t now_ms, uint64_t stray_ms)
{
    struct tide_window_saved saved;
    const uint64_t unix_ms = 1700000000000u + now_ms;
    tide_window_save(window, now_ms, unix_ms, &saved);

    tide_window again;
    OK(tide_window_init(&again, window->window_ms, tide_mem_heap()));
    const uint64_t down_ms = window->window_ms / 7;
    /* The new process has a clock of its own, which starts at 5. */
    assert_true(tide_window_saved_is_valid(&saved));
    tide_window_restore(&again, &saved, 5, unix_ms + down_ms, 5 + stray_ms);
    assert_true(tide_window_check(&again));
    assert_int_equal(again.in_flight, 0);
    const uint64_t step_ms = window->window_ms / 50 + 1;
    for (uint64_t t = 0; t < window->window_ms + stray_ms; t += step_ms)
        assert_true(tide_window_used(&again, 5 + t) >=
                    tide_window_used(window, now_ms + down_ms + t));
    assert_int_equal(
        tide_window_used(&again, 5 + stray_ms + window->window_ms + 2 * window->grain_ms), 0);
    tide_window_done(&again);
}

static void random_walk(uint64_t seed, uint64_t window_ms, uint64_t steps)
{
    tide_rng rng = tide_rng_seeded(seed);
    static struct model model;
    model.count = 0;
    tide_window window;
    OK(tide_window_init(&window, window_ms, tide_mem_heap()));
    const uint64_t stray_ms = window_ms / 6;
    uint64_t now_ms = 1;

    for (uint64_t step = 0; step < steps; step++) {
        now_ms += tide_rng_below(&rng, tide_rng_chance(&rng, 1, 50) ? window_ms : window_ms / 100);
        model_forget(&model, now_ms, window_ms + window.grain_ms + stray_ms + 1);
        const unsigned i = (unsigned)tide_rng_below(&rng, model.count);
        if (model.count == 0 || (tide_rng_chance(&rng, 1, 3) && model.count < MODEL_MAX)) {
            const uint64_t units = 1 + tide_rng_below(&rng, 50);
            model.charges[model.count].units = units;
            model.charges[model.count++].counted_by_ms = 0;
            tide_window_send(&window, now_ms, units);
        } else if (model.charges[i].counted_by_ms == 0) {
            if (tide_rng_chance(&rng, 1, 20)) {
                tide_window_unsend(&window, model.charges[i].units);
                model.charges[i] = model.charges[--model.count];
            } else {
                const uint64_t by_ms =
                    now_ms + (tide_rng_chance(&rng, 1, 10) ? tide_rng_below(&rng, stray_ms) : 0);
                tide_window_unanswered(&window, now_ms, by_ms, model.charges[i].units);
                model.charges[i].counted_by_ms = by_ms;
            }
        }
        compare(&window, &model, now_ms, &rng);
        if (step % 256 == 0)
            check_restored(&window, now_ms, stray_ms);
    }
    tide_window_done(&window);
}

TEST(random_charges_agree_with_a_list_of_exact_times)
{
    static const uint64_t windows_ms[] = {1000, 60000, 61234, 86400000};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        print_message("seed %u\n", (unsigned)seed);
        random_walk(seed, windows_ms[seed - 1], scaled(500000));
    }
}

TEST(a_queue_without_room_counts_longer_and_never_less)
{
    tide_window window;
    OK(tide_window_init(&window, 700, tide_mem_heap()));
    /* A stray life far beyond the window makes more expiries than entries. */
    for (uint64_t i = 0; i < 3 * TIDE_WINDOW_ENTRIES; i++) {
        tide_window_send(&window, 1, 1);
        tide_window_unanswered(&window, 1, 1 + (i * 7919) % 20000, 1);
        assert_true(tide_window_check(&window));
    }
    assert_int_equal(window.count, TIDE_WINDOW_ENTRIES);
    for (uint64_t now_ms = 1; now_ms < 21000; now_ms += 11) {
        uint64_t naive = 0;
        for (uint64_t i = 0; i < 3 * TIDE_WINDOW_ENTRIES; i++)
            naive += 1 + (i * 7919) % 20000 + 700 >= now_ms;
        assert_true(tide_window_used(&window, now_ms) >= naive);
    }
    assert_int_equal(tide_window_used(&window, 20702), 0);
    tide_window_done(&window);
}

TEST(a_damaged_snapshot_is_refused_and_a_wrong_clock_is_bounded)
{
    tide_window window;
    OK(tide_window_init(&window, 60000, tide_mem_heap()));
    struct tide_window_saved saved = {
        .count = 2,
        .entries = {{.expires_unix_ms = 2000, .units = 5}, {.expires_unix_ms = 3000, .units = 5}}};
    struct tide_window_saved bad = saved;
    bad.count = TIDE_WINDOW_SAVED_MAX + 1;
    assert_false(tide_window_saved_is_valid(&bad));
    bad = saved;
    bad.entries[1].expires_unix_ms = 2000;
    assert_false(tide_window_saved_is_valid(&bad));
    bad = saved;
    bad.entries[0].units = UINT64_MAX;
    assert_false(tide_window_saved_is_valid(&bad));
    bad.entries[0].units = 0;
    assert_false(tide_window_saved_is_valid(&bad));
    bad = saved;
    bad.in_flight = UINT64_MAX;
    assert_false(tide_window_saved_is_valid(&bad));
    assert_true(tide_window_saved_is_valid(&saved));
    tide_window_restore(&window, &saved, 0, 2500, 0);
    assert_int_equal(tide_window_used(&window, 0), 5);
    /* A wall clock set back by a year does not lock the account for a year. */
    saved.entries[1].expires_unix_ms = 31536000000u;
    tide_window_restore(&window, &saved, 0, 2500, 0);
    assert_int_equal(tide_window_used(&window, 60079), 0);
    tide_window_done(&window);
}

TEST(a_failed_allocation_is_reported)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, 0);
    tide_window window = {0};
    assert_int_equal(tide_window_init(&window, 60000, &mem.base), TIDE_NO_MEMORY);
    tide_window_done(&window);
    assert_int_equal(mem.bytes_live, 0);
    OK(tide_window_init(&window, 60000, &mem.base));
    tide_window_done(&window);
    assert_int_equal(mem.bytes_live, 0);
}
