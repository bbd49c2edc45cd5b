/* shares.c - a limit that many processes have in common is never exceeded by them
 * together (E4.1). */
#include "ledger_fixture.h"
#include "support/scale.h"

enum { WINDOW_MS = 60000, LEASE_MS = 15000, UNITS = 100 };

static uint64_t grant(struct fixture *f, uint64_t owner, uint64_t wanted, uint64_t now_unix_ms)
{
    uint64_t units = 99999;
    begin(f);
    OK(tide_ledger_grant(f->tx, "project", owner, UNITS, wanted, WINDOW_MS, LEASE_MS, now_unix_ms,
                         &units, &f->err));
    commit(f);
    assert_true(units <= wanted);
    return units;
}

CASE(one_alone_has_all_and_two_have_halves)
{
    uint64_t now = NOW;
    assert_int_equal(grant(f, 1, 1000, now), UNITS);
    assert_int_equal(grant(f, 2, 1000, now), 0); /* all is taken; but it is counted */
    now += 1000;
    assert_int_equal(grant(f, 1, 1000, now), UNITS / 2);
    /* What the first gave up it may have used just now. */
    assert_int_equal(grant(f, 2, 1000, now), 0);
    for (uint64_t t = 5000; t < WINDOW_MS; t += 5000) {
        assert_int_equal(grant(f, 1, 1000, now + t), UNITS / 2);
        assert_int_equal(grant(f, 2, 1000, now + t), 0);
    }
    now += WINDOW_MS;
    assert_int_equal(grant(f, 1, 1000, now), UNITS / 2);
    assert_int_equal(grant(f, 2, 1000, now), UNITS / 2);
    /* Of another limit each has its own. */
    uint64_t units = 0;
    begin(f);
    OK(tide_ledger_grant(f->tx, "model", 2, 7, 1000, WINDOW_MS, LEASE_MS, now, &units, &f->err));
    commit(f);
    assert_int_equal(units, 7);
}

CASE(what_is_given_back_is_free_after_a_window)
{
    assert_int_equal(grant(f, 1, 30, NOW), 30); /* no more than it wants */
    assert_int_equal(grant(f, 2, 1000, NOW), UNITS / 2);
    assert_int_equal(grant(f, 1, 0, NOW + 1000), 0);
    /* The second is alone now, but the thirty may just have been used. */
    assert_int_equal(grant(f, 2, 1000, NOW + 1000), UNITS - 30);
    assert_int_equal(grant(f, 2, 1000, NOW + 10000), UNITS - 30);
    assert_int_equal(grant(f, 2, 1000, NOW + 22000), UNITS - 30);
    assert_int_equal(grant(f, 2, 1000, NOW + 34000), UNITS - 30);
    assert_int_equal(grant(f, 2, 1000, NOW + 46000), UNITS - 30);
    assert_int_equal(grant(f, 2, 1000, NOW + 1000 + WINDOW_MS), UNITS);
}

/* Else a small limit would stop a large fleet altogether. */
CASE(less_than_a_unit_for_each_goes_to_the_first)
{
    uint64_t sum = 0;
    for (int round = 0; round < 2; round++) {
        sum = 0;
        for (uint64_t owner = 1; owner <= 5; owner++) {
            uint64_t units = 99;
            begin(f);
            OK(tide_ledger_grant(f->tx, "small", owner, 2, owner == 1 ? 1 : 10, WINDOW_MS, LEASE_MS,
                                 NOW + (uint64_t)round, &units, &f->err));
            commit(f);
            sum += units;
        }
    }
    assert_int_equal(sum, 2);
}

CASE(a_share_that_is_not_renewed_runs_out)
{
    assert_int_equal(grant(f, 1, 60, NOW), 60);
    assert_int_equal(grant(f, 2, 1000, NOW), 40);
    assert_int_equal(grant(f, 2, 1000, NOW + LEASE_MS - 1), 40);
    /* Until its end it may have been used, so it counts for a window after that. */
    assert_int_equal(grant(f, 2, 1000, NOW + LEASE_MS + 1), 40);
    uint64_t now = NOW + LEASE_MS + 1;
    for (; now < NOW + LEASE_MS + WINDOW_MS; now += 10000)
        assert_int_equal(grant(f, 2, 1000, now), 40);
    assert_int_equal(grant(f, 2, 1000, NOW + LEASE_MS + WINDOW_MS), UNITS);
}

/* What a process may have used of the limit in the last window, written down as it
 * happens: at each moment it uses all it is allowed. */
struct use {
    uint64_t at_ms, units, until_ms;
};

CASE(shares_never_exceed_the_limit_in_any_order)
{
    enum { MEMBERS = 5, STEPS = 400 };
    static struct use uses[MEMBERS][STEPS];
    size_t counts[MEMBERS] = {0};
    const size_t steps = scale_percent() > 100 ? STEPS : scaled(STEPS);
    tide_rng rng = tide_rng_seeded(17);
    uint64_t now = NOW;
    uint64_t most = 0;
    begin(f);
    for (size_t step = 0; step < steps; step++) {
        uint64_t member = tide_rng_below(&rng, MEMBERS);
        uint64_t wanted = tide_rng_chance(&rng, 1, 5) ? 0 : tide_rng_below(&rng, 2 * UNITS);
        uint64_t units = 0;
        now += tide_rng_below(&rng, 4000);
        OK(tide_ledger_grant(f->tx, "project", member + 1, UNITS, wanted, WINDOW_MS, LEASE_MS, now,
                             &units, &f->err));
        assert_true(units <= wanted && units <= UNITS);
        struct use *list_of = uses[member];
        size_t *count = &counts[member];
        if (*count > 0 && list_of[*count - 1].until_ms > now)
            list_of[*count - 1].until_ms = now;
        list_of[(*count)++] = (struct use){now, units, now + LEASE_MS};
        /* The most each may have used inside one window is its greatest share in it. */
        uint64_t sum = 0;
        for (size_t m = 0; m < MEMBERS; m++) {
            uint64_t greatest = 0;
            for (size_t i = 0; i < counts[m]; i++)
                if (uses[m][i].until_ms + WINDOW_MS > now && uses[m][i].units > greatest)
                    greatest = uses[m][i].units;
            sum += greatest;
        }
        assert_true(sum <= UNITS);
        most = sum > most ? sum : most;
    }
    commit(f);
    assert_true(steps < 100 || most > UNITS / 2); /* and it is not kept by giving nothing */
}
