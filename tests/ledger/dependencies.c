/* dependencies.c - a job waits for what it needs, and for nothing else (E2.2). */
#include "ledger_fixture.h"

CASE(a_job_waits_until_all_it_needs_are_done)
{
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

    /* b fails: c keeps waiting, and says for what. */
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

CASE(jobs_ending_together_release_a_job_once)
{
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

CASE(jobs_of_one_call_may_need_each_other)
{
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
CASE(a_job_that_needs_another_waits_for_its_parts)
{
    uint64_t parent = add_plain(f);
    uint64_t waiting = add_needing(f, &parent, 1);
    struct tide_job_new children[3] = {job_of(f, NULL), job_of(f, NULL), job_of(f, NULL)};
    children[0].part = true;
    children[1].part = true;
    /* The parent continues, next to one part. */
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

/* A part whose key is there already is the job that is there.  A job that waits for the parent
 * waits for that one, as long as it can ever come. */
static struct tide_enqueued add_keyed(struct fixture *f, const char *key, uint64_t needs)
{
    struct tide_job_new job = job_of(f, key);
    job.needs = &needs;
    job.needs_count = needs != 0;
    return add(f, &job);
}

static bool end_with_part(struct fixture *f, uint64_t parent, const char *key)
{
    struct tide_job_new part = job_of(f, key);
    part.part = true;
    return finish(f, &(struct tide_finish){.id = parent,
                                           .token = claim(f, parent),
                                           .state = TIDE_ROW_DONE,
                                           .children = &part,
                                           .children_count = 1});
}

CASE(a_part_that_is_there_is_waited_for_once)
{
    uint64_t parent = add_plain(f);
    uint64_t there = add_keyed(f, "k", 0).id;
    const uint64_t both[] = {parent, there};
    uint64_t waiting = add_needing(f, &parent, 1);
    uint64_t waiting_for_both = add_needing(f, both, 2);
    struct tide_job_new parts[2] = {job_of(f, "k"), job_of(f, "k")};
    parts[0].part = parts[1].part = true;
    struct tide_finish end = {.id = parent,
                              .token = claim(f, parent),
                              .state = TIDE_ROW_PENDING,
                              .children = parts,
                              .children_count = 2};
    assert_true(finish(f, &end));
    assert_int_equal(f->changes.children[1].brief.id, there);
    assert_int_equal(look(f, waiting).row.open_deps, 2);
    assert_int_equal(look(f, waiting_for_both).row.open_deps, 2);
    end.state = TIDE_ROW_DONE;
    end.token = claim(f, parent);
    assert_true(finish(f, &end));
    assert_int_equal(look(f, waiting).row.open_deps, 1);
    assert_int_equal(look(f, waiting_for_both).row.open_deps, 1);
    run_to(f, there, TIDE_ROW_DONE);
    assert_int_not_equal(claim(f, waiting), 0);
    assert_int_not_equal(claim(f, waiting_for_both), 0);
}

CASE(a_job_that_goes_on_as_its_own_part_is_waited_for_once)
{
    uint64_t parent = add_keyed(f, "k", 0).id;
    uint64_t waiting = add_needing(f, &parent, 1);
    struct tide_job_new part = job_of(f, "k");
    part.part = true;
    assert_true(finish(f, &(struct tide_finish){.id = parent,
                                                .token = claim(f, parent),
                                                .state = TIDE_ROW_PENDING,
                                                .children = &part,
                                                .children_count = 1}));
    assert_int_equal(f->changes.children[0].brief.id, parent);
    assert_int_equal(look(f, waiting).row.open_deps, 1);
    run_to(f, parent, TIDE_ROW_DONE);
    assert_int_not_equal(claim(f, waiting), 0);
}

CASE(a_part_that_waits_for_its_parent_does_not_wait_for_itself)
{
    uint64_t parent = add_plain(f);
    uint64_t part = add_keyed(f, "k", parent).id;
    uint64_t waiting = add_needing(f, &parent, 1);
    assert_true(end_with_part(f, parent, "k"));
    assert_int_equal(look(f, part).row.open_deps, 0);
    assert_int_equal(look(f, waiting).row.open_deps, 1); /* for the part */
    run_to(f, part, TIDE_ROW_DONE);
    assert_int_not_equal(claim(f, waiting), 0);
}

CASE(parts_that_wait_for_their_parent_do_not_wait_for_each_other)
{
    uint64_t parent = add_plain(f);
    uint64_t first = add_keyed(f, "1", parent).id;
    uint64_t second = add_keyed(f, "2", parent).id;
    uint64_t waiting = add_needing(f, &parent, 1);
    struct tide_job_new parts[3] = {job_of(f, "1"), job_of(f, "2"), job_of(f, "3")};
    parts[0].part = parts[1].part = parts[2].part = true;
    assert_true(finish(f, &(struct tide_finish){.id = parent,
                                                .token = claim(f, parent),
                                                .state = TIDE_ROW_DONE,
                                                .children = parts,
                                                .children_count = 3}));
    uint64_t third = f->changes.children[2].brief.id;
    assert_int_equal(look(f, waiting).row.open_deps, 3);
    run_to(f, third, TIDE_ROW_DONE);
    run_to(f, first, TIDE_ROW_DONE);
    run_to(f, second, TIDE_ROW_DONE);
    assert_int_not_equal(claim(f, waiting), 0);
}

/* The end of a job that would leave another one waiting forever is refused, and says why. */
static void assert_refused_as_circle(struct fixture *f, const struct tide_finish *end)
{
    assert_false(finish(f, end));
    assert_int_equal(f->changes.refused_count, 1);
    assert_int_equal(f->changes.refused[0].status, TIDE_INVALID);
    assert_non_null(strstr(f->changes.refused[0].text, "forever"));
    assert_int_equal(f->changes.children_count, 0);
    assert_state(f, end->id, TIDE_ROW_RUNNING);
}

CASE(a_part_that_needs_one_who_waits_for_its_parent_is_refused)
{
    uint64_t parent = add_plain(f);
    uint64_t waiting = add_needing(f, &parent, 1);
    uint64_t between = add_needing(f, &waiting, 1);
    uint64_t there = add_keyed(f, "k", between).id;
    struct tide_job_new part = job_of(f, "k");
    struct tide_finish end = {.id = parent,
                              .token = claim(f, parent),
                              .state = TIDE_ROW_DONE,
                              .children = &part,
                              .children_count = 1};
    part.part = true;
    assert_refused_as_circle(f, &end);
    end.state = TIDE_ROW_PENDING;
    assert_refused_as_circle(f, &end);
    /* A new one that has such a dependency is refused too. */
    part.dedupe_key = TIDE_TEXT_NONE;
    part.needs = &between;
    part.needs_count = 1;
    assert_refused_as_circle(f, &end);
    /* A child that is no part may need whom it likes. */
    part.part = false;
    end.state = TIDE_ROW_DONE;
    assert_true(finish(f, &end));
    run_to(f, waiting, TIDE_ROW_DONE);
    run_to(f, between, TIDE_ROW_DONE);
    run_to(f, there, TIDE_ROW_DONE);
}

CASE(what_a_person_accepts_releases_those_who_wait)
{
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

CASE(a_canceled_job_keeps_count_of_what_it_needs)
{
    const uint64_t needs[] = {add_plain(f), add_plain(f)};
    uint64_t waiting = add_needing(f, needs, 2);
    assert_int_equal(cancel(f, waiting, NULL), 1);
    run_to(f, needs[0], TIDE_ROW_DONE);
    assert_int_equal(f->changes.released_count, 0); /* no change to report */
    assert_int_equal(look(f, waiting).row.open_deps, 1);
    assert_int_equal(retry(f, waiting), 1);
    assert_int_equal(claim(f, waiting), 0);
    run_to(f, needs[1], TIDE_ROW_DONE);
    assert_int_equal(f->changes.released_count, 1);
    assert_int_not_equal(claim(f, waiting), 0);
}

CASE(accepting_a_chain_at_once_leaves_no_job_waiting)
{
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
