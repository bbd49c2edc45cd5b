/* Goal: every tick once, also over restarts, two machines and a clock that
 * jumps.  Method: examples, then random clocks against a model that walks the
 * grid slot by slot. */
#include "core/schedule.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/test.h"

static tide_schedules *schedule_make(void)
{
    tide_schedules *schedule = NULL;
    OK(tide_schedules_new(tide_mem_heap(), &schedule));
    return schedule;
}

#define CASE(name) TEST_OF(name, tide_schedules *schedule, schedule_make(), tide_schedules_free)

TEST(the_first_run_is_at_start_or_after_one_period)
{
    struct tide_schedule_entry entry = {
        .id = 1, .anchor_unix_ms = 5000, .period_ms = 100, .at_start = true};
    struct tide_firing firing;
    assert_false(tide_schedule_due(&entry, 4999, &firing));
    assert_true(tide_schedule_due(&entry, 5000, &firing));
    assert_int_equal(firing.slot, 0);
    assert_int_equal(firing.slot_unix_ms, 5000);
    entry.at_start = false;
    assert_false(tide_schedule_due(&entry, 5099, &firing));
    assert_true(tide_schedule_due(&entry, 5100, &firing));
    assert_int_equal(firing.slot, 1);
    assert_int_equal(firing.missed, 0);
}

CASE(missed_ticks_collapse_into_the_latest)
{
    struct tide_schedule_entry entry = {.id = 9,
                                        .anchor_unix_ms = 1000,
                                        .period_ms = 10,
                                        .fired = true,
                                        .last_unix_ms = 1020}; /* as the store remembers */
    OK(tide_schedules_put(schedule, &entry));
    struct tide_firing firing;
    assert_int_equal(tide_schedules_wake_at_unix_ms(schedule), 1030);
    assert_true(tide_schedules_next(schedule, 1099, &firing));
    assert_int_equal(firing.slot, 9);
    assert_int_equal(firing.slot_unix_ms, 1090);
    assert_int_equal(firing.missed, 6);
    assert_false(tide_schedules_next(schedule, 1099, &firing));
    assert_int_equal(tide_schedules_wake_at_unix_ms(schedule), 1100);
}

CASE(a_clock_that_jumps_back_fires_nothing_twice)
{
    struct tide_schedule_entry entry = {.id = 9, .anchor_unix_ms = 1000, .period_ms = 10};
    OK(tide_schedules_put(schedule, &entry));
    assert_int_equal(tide_schedule_lag_ms(&entry, 0), 0); /* it never fired */
    struct tide_firing firing;
    assert_true(tide_schedules_next(schedule, 1055, &firing));
    assert_false(tide_schedules_next(schedule, 1000, &firing));
    assert_false(tide_schedules_next(schedule, 1059, &firing));
    assert_int_equal(tide_schedule_lag_ms(tide_schedules_find(schedule, 9), 1055), 0);
    assert_int_equal(tide_schedule_lag_ms(tide_schedules_find(schedule, 9), 1000), 50);
    assert_true(tide_schedules_next(schedule, 1060, &firing));
    assert_int_equal(firing.slot_unix_ms, 1060);
}

/* Its anchor lies weeks ahead once the clock is set right, and nothing has fired. */
CASE(an_entry_made_on_a_clock_that_ran_ahead_does_not_wait_for_it)
{
    const uint64_t now = 1000000, week_ms = 7ull * 86400 * 1000;
    struct tide_schedule_entry soon = {
        .id = 1, .anchor_unix_ms = now + week_ms + 70, .period_ms = 100, .at_start = true};
    struct tide_schedule_entry later = {
        .id = 2, .anchor_unix_ms = now + 3 * week_ms + 30, .period_ms = 1000};
    struct tide_schedule_entry fired = {.id = 3,
                                        .anchor_unix_ms = now + week_ms,
                                        .period_ms = 10,
                                        .fired = true,
                                        .last_unix_ms = now + week_ms + 20};
    struct tide_schedule_entry no_room = {
        .id = 4, .anchor_unix_ms = now + 5, .period_ms = week_ms, .at_start = true};
    OK(tide_schedules_put(schedule, &no_room));
    OK(tide_schedules_put(schedule, &fired));
    OK(tide_schedules_put(schedule, &later));
    OK(tide_schedules_put(schedule, &soon));
    struct tide_firing firing;
    assert_true(tide_schedules_next(schedule, now, &firing));
    assert_int_equal(firing.id, 1);
    assert_int_equal(firing.slot_unix_ms, now - 30); /* on the grid that others know */
    assert_int_equal(firing.missed, 0);
    tide_schedules_check(schedule);
    assert_false(tide_schedules_next(schedule, now, &firing));
    assert_true(tide_schedules_next(schedule, now + 5, &firing));
    assert_int_equal(firing.id, 4);
    assert_false(tide_schedules_next(schedule, now + 29, &firing));
    assert_true(tide_schedules_next(schedule, now + 69, &firing));
    assert_int_equal(firing.id, 2);
    assert_int_equal(firing.slot_unix_ms, now + 30);
    assert_true(tide_schedules_next(schedule, now + 70, &firing));
    assert_int_equal(firing.id, 1);
    /* What has fired waits, so that no slot fires twice (SCH2). */
    assert_int_equal(tide_schedule_due_at_unix_ms(tide_schedules_find(schedule, 3)),
                     now + week_ms + 30);
}

CASE(an_anchor_that_cannot_be_moved_back_stays)
{
    /* Two of its periods would be needed, and do not fit 64 bits. */
    struct tide_schedule_entry huge = {
        .id = 1, .anchor_unix_ms = UINT64_MAX, .period_ms = 1ull << 63, .at_start = true};
    OK(tide_schedules_put(schedule, &huge));
    struct tide_firing firing;
    assert_false(tide_schedules_next(schedule, 1000000, &firing));
    assert_int_equal(tide_schedules_find(schedule, 1)->anchor_unix_ms, UINT64_MAX);
    tide_schedules_check(schedule);
}

CASE(a_slot_fired_elsewhere_is_not_fired_here)
{
    struct tide_schedule_entry entry = {.id = 9, .anchor_unix_ms = 1000, .period_ms = 10};
    OK(tide_schedules_put(schedule, &entry));
    tide_schedules_fired(schedule, 9, 1030);
    tide_schedules_fired(schedule, 9, 1010); /* older news */
    tide_schedules_fired(schedule, 77, 1010);
    struct tide_firing firing;
    assert_false(tide_schedules_next(schedule, 1039, &firing));
    assert_true(tide_schedules_next(schedule, 1040, &firing));
}

CASE(a_new_period_goes_on_from_the_last_slot)
{
    struct tide_schedule_entry entry = {.id = 9, .anchor_unix_ms = 1000, .period_ms = 10};
    OK(tide_schedules_put(schedule, &entry));
    struct tide_firing firing;
    assert_true(tide_schedules_next(schedule, 1050, &firing));
    entry.period_ms = 40; /* the store's copy is older than what fired */
    OK(tide_schedules_put(schedule, &entry));
    assert_int_equal(tide_schedules_count(schedule), 1);
    assert_false(tide_schedules_next(schedule, 1079, &firing));
    assert_true(tide_schedules_next(schedule, 1081, &firing));
    assert_int_equal(firing.slot_unix_ms, 1080);
    tide_schedules_check(schedule);
}

CASE(a_new_period_before_the_first_firing_starts_at_the_anchor)
{
    struct tide_schedule_entry entry = {.id = 9, .anchor_unix_ms = 1000, .period_ms = 100};
    OK(tide_schedules_put(schedule, &entry));
    entry.period_ms = 40;
    OK(tide_schedules_put(schedule, &entry));
    assert_int_equal(tide_schedules_count(schedule), 1);
    assert_false(tide_schedules_find(schedule, 9)->fired); /* a change of settings fires nothing */
    assert_int_equal(tide_schedules_wake_at_unix_ms(schedule), 1040);
    struct tide_firing firing;
    assert_false(tide_schedules_next(schedule, 1039, &firing));
    assert_true(tide_schedules_next(schedule, 1040, &firing));
    assert_int_equal(firing.slot, 1);
    assert_int_equal(firing.missed, 0);
    tide_schedules_check(schedule);
}

CASE(entries_are_bounded_and_checked)
{
    struct tide_schedule_entry entry = {.id = 0, .period_ms = 1};
    assert_int_equal(tide_schedules_put(schedule, &entry), TIDE_INVALID);
    entry = (struct tide_schedule_entry){.id = 1, .period_ms = 0};
    assert_int_equal(tide_schedules_put(schedule, &entry), TIDE_INVALID);
    entry.period_ms = 5;
    for (entry.id = 1; entry.id <= TIDE_SCHEDULES_MAX; entry.id++)
        OK(tide_schedules_put(schedule, &entry));
    assert_int_equal(tide_schedules_put(schedule, &entry), TIDE_FULL);
    assert_null(tide_schedules_find(schedule, 0));
    /* Equals come by id. */
    struct tide_firing firing;
    for (uint64_t id = 1; id <= TIDE_SCHEDULES_MAX; id++) {
        assert_true(tide_schedules_next(schedule, 6, &firing));
        assert_int_equal(firing.id, id);
    }
    assert_false(tide_schedules_next(schedule, 6, &firing));
    tide_schedules_check(schedule);
    tide_schedules_free(NULL);
}

TEST(the_end_of_time_is_never_reached)
{
    struct tide_schedule_entry entry = {.id = 1,
                                        .anchor_unix_ms = UINT64_MAX - 5,
                                        .period_ms = UINT64_MAX / 2,
                                        .fired = true,
                                        .last_unix_ms = UINT64_MAX - 1};
    struct tide_firing firing;
    assert_int_equal(tide_schedule_due_at_unix_ms(&entry), UINT64_MAX);
    assert_false(tide_schedule_due(&entry, UINT64_MAX, &firing));
    entry = (struct tide_schedule_entry){.id = 1,
                                         .period_ms = UINT64_MAX / 2 + 1,
                                         .fired = true,
                                         .last_unix_ms = UINT64_MAX / 2 + 1};
    assert_int_equal(tide_schedule_due_at_unix_ms(&entry), UINT64_MAX); /* twice the period */
    entry = (struct tide_schedule_entry){
        .id = 1, .period_ms = 1, .fired = true, .last_unix_ms = UINT64_MAX};
    assert_int_equal(tide_schedule_due_at_unix_ms(&entry), UINT64_MAX);
    assert_false(tide_schedule_due(&entry, UINT64_MAX, &firing));
}

/* The model: entries in a list, and a walk along the grid for each question. */
enum { MODEL_IDS = 24, GRID = 1 << 14 };

struct model_entry {
    bool there;
    struct tide_schedule_entry entry;
    bool fired_at[2 * GRID]; /* by slot time: nothing fires twice, ever */
};

static bool model_due(const struct tide_schedule_entry *entry, uint64_t now, uint64_t *slot_out,
                      uint64_t *due_out)
{
    bool due = false;
    *due_out = UINT64_MAX;
    for (uint64_t slot = entry->at_start ? 0 : 1;; slot++) { /* ends: the grid moves on */
        uint64_t time = entry->anchor_unix_ms + slot * entry->period_ms;
        if (entry->fired && time <= entry->last_unix_ms)
            continue;
        if (*due_out == UINT64_MAX)
            *due_out = time;
        if (time > now)
            return due;
        due = true;
        *slot_out = slot;
    }
}

static void model_step(tide_schedules *schedule, struct model_entry *model, uint64_t now,
                       tide_rng *rng)
{
    uint64_t id = 1 + tide_rng_below(rng, MODEL_IDS);
    struct model_entry *mine = &model[id];
    switch (tide_rng_below(rng, 16)) {
    case 0: {
        struct tide_schedule_entry entry = {
            .id = id,
            .anchor_unix_ms = tide_rng_below(rng, GRID),
            .period_ms = 50 + tide_rng_below(rng, 500),
            .at_start = tide_rng_chance(rng, 1, 2),
        };
        if (mine->there) {
            entry.fired = mine->entry.fired;
            entry.last_unix_ms = mine->entry.last_unix_ms;
        }
        OK(tide_schedules_put(schedule, &entry));
        mine->entry = entry;
        mine->there = true;
        break;
    }
    case 1: /* another machine was faster, for its own idea of now */
        if (mine->there) {
            uint64_t slot = 0, due = 0;
            if (model_due(&mine->entry, now + 300, &slot, &due)) {
                mine->entry.fired = true;
                mine->entry.last_unix_ms =
                    mine->entry.anchor_unix_ms + slot * mine->entry.period_ms;
                mine->fired_at[mine->entry.last_unix_ms] = true;
                tide_schedules_fired(schedule, id, mine->entry.last_unix_ms);
            }
        }
        break;
    default:
        break;
    }
}

static void model_move_back(struct tide_schedule_entry *entry, uint64_t now)
{
    uint64_t anchor = entry->anchor_unix_ms;
    while (anchor > now && anchor >= entry->period_ms)
        anchor -= entry->period_ms;
    if (anchor <= now)
        entry->anchor_unix_ms = anchor;
}

static void model_drain(tide_schedules *schedule, struct model_entry *model, uint64_t now,
                        uint64_t seed, uint64_t *fired)
{
    struct tide_firing firing;
    for (uint64_t id = 1; id <= MODEL_IDS; id++)
        model_move_back(&model[id].entry, now);
    while (tide_schedules_next(schedule, now, &firing)) {
        struct model_entry *mine = &model[firing.id];
        uint64_t slot = 0, due = 0;
        assert_true(mine->there);
        if (!model_due(&mine->entry, now, &slot, &due) || slot != firing.slot)
            fail_msg("seed %" PRIu64 ": entry %" PRIu64 " fired slot %" PRIu64, seed, firing.id,
                     firing.slot);
        assert_int_equal(firing.slot_unix_ms,
                         mine->entry.anchor_unix_ms + slot * mine->entry.period_ms);
        assert_int_equal(firing.missed, (firing.slot_unix_ms - due) / mine->entry.period_ms);
        assert_false(mine->fired_at[firing.slot_unix_ms]);
        mine->fired_at[firing.slot_unix_ms] = true;
        mine->entry.fired = true;
        mine->entry.last_unix_ms = firing.slot_unix_ms;
        (*fired)++;
    }
    uint64_t wake = UINT64_MAX;
    for (uint64_t id = 1; id <= MODEL_IDS; id++)
        if (model[id].there) {
            uint64_t slot = 0, due = 0;
            assert_false(model_due(&model[id].entry, now, &slot, &due));
            wake = due < wake ? due : wake;
        }
    assert_int_equal(tide_schedules_wake_at_unix_ms(schedule), wake);
}

TEST(random_clocks_agree_with_the_model)
{
    struct model_entry *model = calloc(MODEL_IDS + 1, sizeof *model);
    assert_non_null(model);
    uint64_t runs = scaled(40), fired = 0;
    for (uint64_t seed = 1; seed <= runs; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        memset(model, 0, (MODEL_IDS + 1) * sizeof *model);
        tide_schedules *schedule = schedule_make();
        uint64_t now = tide_rng_below(&rng, GRID);
        for (int step = 0; step < 3000; step++) {
            uint64_t ahead = tide_rng_below(&rng, 40);
            if (tide_rng_chance(&rng, 1, 50)) /* back or forth, anywhere */
                now = tide_rng_below(&rng, GRID + GRID / 2);
            else if (now + ahead < GRID + GRID / 2)
                now += ahead;
            model_step(schedule, model, now, &rng);
            model_drain(schedule, model, now, seed, &fired);
            if (step % 64 == 0)
                tide_schedules_check(schedule);
        }
        tide_schedules_free(schedule);
    }
    assert_true(fired > runs * 100);
    free(model);
}

/* The same rule for one entry, millions of times, with a closed formula. */
TEST(random_entries_fire_the_latest_slot)
{
    tide_rng rng = tide_rng_seeded(5);
    uint64_t rounds = scaled(3000000), fired = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        struct tide_schedule_entry entry = {
            .id = 1,
            .anchor_unix_ms = tide_rng_below(&rng, 1000),
            .period_ms = 1 + tide_rng_below(&rng, 100),
            .at_start = tide_rng_chance(&rng, 1, 2),
            .fired = tide_rng_chance(&rng, 1, 2),
            .last_unix_ms = tide_rng_below(&rng, 3000),
        };
        uint64_t now = tide_rng_below(&rng, 4000);
        struct tide_firing firing;
        bool due = tide_schedule_due(&entry, now, &firing);
        uint64_t after = entry.anchor_unix_ms + (entry.at_start ? 0 : entry.period_ms);
        bool slot_exists = now >= after;
        uint64_t latest = slot_exists ? now - (now - entry.anchor_unix_ms) % entry.period_ms : 0;
        assert_int_equal(due, slot_exists && (!entry.fired || latest > entry.last_unix_ms));
        if (due) {
            assert_int_equal(firing.slot_unix_ms, latest);
            assert_true(tide_schedule_due_at_unix_ms(&entry) <= latest);
            fired++;
        } else {
            assert_true(tide_schedule_due_at_unix_ms(&entry) > now);
        }
    }
    assert_true(fired > rounds / 10);
}

static tide_status put_twenty(tide_mem *mem, size_t *count_out)
{
    tide_schedules *schedule = NULL;
    tide_status rc = tide_schedules_new(mem, &schedule);
    for (uint64_t id = 1; rc == TIDE_OK && id <= 20; id++) {
        struct tide_schedule_entry entry = {.id = id, .period_ms = 100 - id};
        rc = tide_schedules_put(schedule, &entry);
        tide_schedules_check(schedule);
        *count_out = tide_schedules_count(schedule);
        assert_int_equal(*count_out, rc == TIDE_OK ? id : id - 1);
    }
    tide_schedules_free(schedule);
    return rc;
}

TEST(schedule_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        size_t count = 0;
        tide_status rc = put_twenty(&mem.base, &count);
        assert_swept(mem, rc);
        if (!mem.fired) {
            assert_int_equal(count, 20);
            assert_true(mem.fail_at > 3);
        }
    }
}

TEST(firing_never_allocates)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    tide_schedules *schedule = NULL;
    OK(tide_schedules_new(&mem.base, &schedule));
    uint64_t now = 0;
    for (uint64_t id = 1; id <= 200; id++) {
        struct tide_schedule_entry entry = {.id = id, .period_ms = 1 + id % 7};
        OK(tide_schedules_put(schedule, &entry));
        uint64_t allocations = mem.allocations;
        struct tide_firing firing;
        now += 5;
        while (tide_schedules_next(schedule, now, &firing))
            ;
        OK(tide_schedules_put(schedule, &entry)); /* replaces */
        assert_int_equal(mem.allocations, allocations);
    }
    tide_schedules_free(schedule);
    assert_int_equal(mem.bytes_live, 0);
}
