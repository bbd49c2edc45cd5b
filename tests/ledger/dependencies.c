/* dependencies.c - a job waits for what it needs, and for nothing else (E2.2). */
#include "ledger_fixture.h"

static void a_job_waits_until_all_it_needs_are_done(void **state)
{
    struct fixture *f = *state;
    uint64_t a = add_plain(f);
    uint64_t b = add_plain(f);
    uint64_t done = add_plain(f);
    run_to(f, done, TIDE_ROW_DONE);
    const uint64_t needs[] = {a, b, done, a};
    uint64_t c = add_needing(f, needs, 4);
    assert_int_equal(look(f, c).row.open_deps, 2);
    assert_int_equal(claim(f, c), 0);
    struct tide_need open[4];
    size_t count = 0;
    OK(tide_ledger_needs(f->ledger, c, open, 4, &count, &f->err));
    assert_int_equal(count, 2);
    assert_int_equal(open[0].id, a);
    assert_int_equal(open[1].state, TIDE_ROW_PENDING);

    run_to(f, a, TIDE_ROW_DONE);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].id, c);
    assert_int_equal(f->changes.released[0].open_deps, 1);
    assert_int_equal(f->changes.released[0].account, f->account);

    /* b fails: c goes on waiting, and says for what. */
    run_to(f, b, TIDE_ROW_FAILED);
    assert_int_equal(f->changes.released_count, 0);
    OK(tide_ledger_needs(f->ledger, c, open, 4, &count, &f->err));
    assert_int_equal(count, 1);
    assert_int_equal(open[0].state, TIDE_ROW_FAILED);

    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = b;
    begin(f);
    OK(tide_ledger_retry(f->tx, &filter, NOW, &count, &f->changes, &f->err));
    commit(f);
    run_to(f, b, TIDE_ROW_DONE);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].open_deps, 0);
    assert_int_not_equal(claim(f, c), 0);
}

static void jobs_ending_together_release_a_job_once(void **state)
{
    struct fixture *f = *state;
    const uint64_t needs[] = {add_plain(f), add_plain(f), add_plain(f)};
    uint64_t waiting = add_needing(f, needs, 3);
    struct tide_finish finishes[3];
    bool applied[3];
    for (size_t i = 0; i < 3; i++)
        finishes[i] = (struct tide_finish){
            .id = needs[i], .token = claim(f, needs[i]), .state = TIDE_ROW_DONE};
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_finish(f->tx, finishes, 3, NOW, applied, &f->changes, &f->err));
    commit(f);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].id, waiting);
    assert_int_equal(f->changes.released[0].open_deps, 0);
}

static void jobs_of_one_call_may_need_each_other(void **state)
{
    struct fixture *f = *state;
    struct tide_job_new jobs[3] = {job_of(f, "k"), job_of(f, "k"), job_of(f, NULL)};
    const uint32_t earlier[] = {0, 1};
    struct tide_enqueued enqueued[3];
    jobs[2].needs_earlier = earlier;
    jobs[2].needs_earlier_count = 2;
    begin(f);
    OK(tide_ledger_enqueue(f->tx, jobs, 3, NOW, enqueued, &f->err));
    commit(f);
    assert_int_equal(enqueued[2].open_deps, 1); /* the second one is the first */
    run_to(f, enqueued[0].id, TIDE_ROW_DONE);
    assert_int_not_equal(claim(f, enqueued[2].id), 0);
}

/* E6.1: a part that a job hands on is still a part of it. */
static void whoever_waits_for_a_job_waits_for_its_parts(void **state)
{
    struct fixture *f = *state;
    uint64_t parent = add_plain(f);
    uint64_t waiting = add_needing(f, &parent, 1);
    struct tide_job_new children[3] = {job_of(f, NULL), job_of(f, NULL), job_of(f, NULL)};
    children[0].part = true;
    children[1].part = true;
    /* The parent goes on, with one part beside it. */
    assert_true(finish(f, &(struct tide_finish){.id = parent,
                                                .token = claim(f, parent),
                                                .state = TIDE_ROW_PENDING,
                                                .children = children,
                                                .children_count = 1}));
    uint64_t beside = f->changes.children[0].brief.id;
    assert_int_equal(look(f, waiting).row.open_deps, 2);
    /* Then it ends, leaving a part and a job that is none. */
    assert_true(finish(f, &(struct tide_finish){.id = parent,
                                                .token = claim(f, parent),
                                                .state = TIDE_ROW_DONE,
                                                .children = children + 1,
                                                .children_count = 2}));
    uint64_t after = f->changes.children[0].brief.id;
    assert_int_equal(look(f, waiting).row.open_deps, 2);
    assert_int_equal(claim(f, waiting), 0);
    run_to(f, beside, TIDE_ROW_DONE);
    run_to(f, after, TIDE_ROW_DONE);
    assert_int_equal(f->changes.released[0].id, waiting);
    assert_int_equal(f->changes.released[0].open_deps, 0);
    assert_int_not_equal(claim(f, waiting), 0);
}

static void what_a_person_accepts_releases_those_who_wait(void **state)
{
    struct fixture *f = *state;
    uint64_t first = add_plain(f);
    uint64_t second = add_needing(f, &first, 1);
    uint64_t third = add_needing(f, &second, 1);
    assert_int_equal(cancel(f, second, NULL), 1);
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    size_t count = 0;
    filter.id = second;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_accept(f->tx, &filter, NOW + 9, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].id, third);
    assert_state(f, second, TIDE_ROW_DONE);
    assert_int_equal(look(f, second).row.open_deps, 0); /* it no longer waits for the first */
    run_to(f, first, TIDE_ROW_DONE);
    assert_int_equal(f->changes.released_count, 0);
    assert_int_not_equal(claim(f, third), 0);
}

static void a_canceled_job_keeps_count_of_what_it_needs(void **state)
{
    struct fixture *f = *state;
    const uint64_t needs[] = {add_plain(f), add_plain(f)};
    uint64_t waiting = add_needing(f, needs, 2);
    assert_int_equal(cancel(f, waiting, NULL), 1);
    run_to(f, needs[0], TIDE_ROW_DONE);
    assert_int_equal(f->changes.released_count, 0); /* no news for anybody */
    assert_int_equal(look(f, waiting).row.open_deps, 1);
    assert_int_equal(retry(f, waiting), 1);
    assert_int_equal(claim(f, waiting), 0);
    run_to(f, needs[1], TIDE_ROW_DONE);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_not_equal(claim(f, waiting), 0);
}

static void accepting_a_chain_at_once_leaves_nobody_waiting(void **state)
{
    struct fixture *f = *state;
    uint64_t first = add_plain(f);
    uint64_t second = add_needing(f, &first, 1);
    const uint64_t needs[] = {first, second};
    uint64_t third = add_needing(f, needs, 2);
    run_to(f, first, TIDE_ROW_FAILED);
    assert_int_equal(cancel(f, second, NULL), 1);
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    size_t count = 0;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_accept(f->tx, &filter, NOW + 9, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 2);
    assert_int_equal(look(f, second).row.open_deps, 0);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].id, third);
    assert_int_equal(f->changes.released[0].open_deps, 0);
    assert_int_not_equal(claim(f, third), 0);
}

static const struct CMUnitTest tests[] = {
    CASE(a_job_waits_until_all_it_needs_are_done),
    CASE(jobs_ending_together_release_a_job_once),
    CASE(jobs_of_one_call_may_need_each_other),
    CASE(whoever_waits_for_a_job_waits_for_its_parts),
    CASE(what_a_person_accepts_releases_those_who_wait),
    CASE(a_canceled_job_keeps_count_of_what_it_needs),
    CASE(accepting_a_chain_at_once_leaves_nobody_waiting),
};
GROUP(dependencies, tests);
