/* claim_free.c - jobs of no account are claimed by the first process that asks (E1.3). */
#include "ledger_fixture.h"

#include <unistd.h>

enum { ROOM = 40 };

struct got {
    struct tide_brief briefs[ROOM];
    uint64_t tokens[ROOM];
    size_t count;
    uint64_t due;
};

/* One call; the bodies are looked at and freed. */
static void claim_once(struct fixture *f, const uint32_t *kinds, size_t kinds_count,
                       const uint32_t counts[2], uint64_t now_unix_ms, struct got *got)
{
    struct tide_job_body *bodies[ROOM] = {NULL};
    struct tide_brief *briefs = got->briefs + got->count;
    size_t count = 99;
    begin(f);
    OK(tide_ledger_claim_free(f->tx, kinds, kinds_count, counts, 7, f->token, now_unix_ms,
                              tide_mem_heap(), briefs, bodies, &count, &got->due, &f->err));
    commit(f);
    assert_true(count <= (size_t)counts[0] + counts[1]);
    for (size_t i = 0; i < count; i++) {
        assert_non_null(bodies[i]);
        assert_int_equal(bodies[i]->id, briefs[i].id);
        assert_in_range(bodies[i]->token, f->token, f->token + ROOM - 1);
        assert_true(tide_text_equal(bodies[i]->payload, TIDE_TEXT("{\"n\":1}")));
        got->tokens[got->count + i] = bodies[i]->token;
        tide_job_body_free(tide_mem_heap(), bodies[i]);
        assert_state(f, briefs[i].id, TIDE_ROW_RUNNING);
        assert_int_equal(look(f, briefs[i].id).row.token, got->tokens[got->count + i]);
        assert_int_equal(look(f, briefs[i].id).row.owner, 7);
    }
    got->count += count;
    f->token += ROOM;
}

/* All that may be had at this moment: where fewer came, it asks again at the time it was given,
 * until the answer is the same.  A busy shared store may need that. */
static struct got claim_free(struct fixture *f, const uint32_t *kinds, size_t kinds_count,
                             uint32_t interactive, uint32_t bulk, uint64_t now_unix_ms)
{
    struct got got = {.count = 0, .due = 0};
    uint64_t told = 1;
    for (int tries = 0; tries < 5 && got.due != told; tries++) {
        const size_t before = got.count;
        const uint32_t counts[2] = {interactive, bulk};
        told = got.due;
        claim_once(f, kinds, kinds_count, counts, now_unix_ms, &got);
        for (size_t i = before; i < got.count; i++)
            *(got.briefs[i].lane == TIDE_LANE_INTERACTIVE ? &interactive : &bulk) -= 1;
        if (got.due <= now_unix_ms || got.due == UINT64_MAX)
            break;
        uint64_t wait_ms = got.due - now_unix_ms;
        (void)usleep((useconds_t)(wait_ms < 300 ? wait_ms : 1) * 1000);
    }
    return got;
}

static uint64_t add_of(struct fixture *f, uint8_t lane, uint8_t priority)
{
    struct tide_job_new job = job_of(f, NULL);
    job.account = 0;
    job.lane = lane;
    job.priority = priority;
    return add(f, &job).id;
}

CASE(free_jobs_come_lane_by_lane_in_their_order)
{
    const uint32_t kinds[] = {f->once};
    const uint64_t ids[] = {
        add_of(f, TIDE_LANE_BULK, 30),        add_of(f, TIDE_LANE_BULK, 90),
        add_of(f, TIDE_LANE_INTERACTIVE, 10), add_of(f, TIDE_LANE_INTERACTIVE, 50),
        add_of(f, TIDE_LANE_BULK, 30),        add_of(f, TIDE_LANE_INTERACTIVE, 50),
        add_of(f, TIDE_LANE_BULK, 90)};
    struct got got = claim_free(f, kinds, 1, 2, 3, NOW);
    const uint64_t wanted[] = {ids[3], ids[5], ids[1], ids[6], ids[0]};
    assert_int_equal(got.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(got.briefs[i].id, wanted[i]);
    assert_int_equal(got.briefs[0].lane, TIDE_LANE_INTERACTIVE);
    assert_int_equal(got.briefs[0].priority, 50);
    assert_int_equal(got.briefs[4].level, 4);
    assert_int_equal(got.briefs[4].attempts_max, 5);
    assert_int_equal(got.due, 0); /* all that were asked for came */
    got = claim_free(f, kinds, 1, 0, 5, NOW);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.briefs[0].id, ids[4]);
    assert_int_equal(got.due, UINT64_MAX); /* nothing waits for its time */
    got = claim_free(f, kinds, 1, 5, 5, NOW);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.briefs[0].id, ids[2]);
    got = claim_free(f, kinds, 1, 0, 0, NOW);
    assert_int_equal(got.count, 0);
    assert_int_equal(got.due, 0);
}

CASE(only_what_is_free_ready_and_of_these_kinds_is_claimed)
{
    const uint32_t both[] = {f->once, f->alone};
    struct tide_job_new job = job_of(f, NULL);
    uint64_t of_account = add(f, &job).id;
    job.account = 0;
    uint64_t ready = add(f, &job).id;
    job.needs = &ready;
    job.needs_count = 1;
    uint64_t blocked = add(f, &job).id;
    job.needs_count = 0;
    job.kind = f->alone;
    uint64_t other_kind = add(f, &job).id;
    uint64_t canceled = add(f, &job).id;
    (void)cancel(f, canceled, NULL);

    struct got got = claim_free(f, NULL, 0, 9, 9, NOW);
    assert_int_equal(got.count, 0);
    assert_int_equal(got.due, UINT64_MAX);
    got = claim_free(f, both, 1, 9, 9, NOW);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.briefs[0].id, ready);
    begin(f);
    OK(tide_ledger_kind_pause(f->tx, f->alone, true, &f->err));
    commit(f);
    assert_int_equal(claim_free(f, both, 2, 9, 9, NOW).count, 0);
    begin(f);
    OK(tide_ledger_kind_pause(f->tx, f->alone, false, &f->err));
    commit(f);
    assert_true(end_as(f, ready, got.tokens[0], TIDE_ROW_DONE));
    got = claim_free(f, both, 2, 9, 9, NOW);
    assert_int_equal(got.count, 2);
    assert_int_equal(got.briefs[0].id, blocked);
    assert_int_equal(got.briefs[1].id, other_kind);
    assert_state(f, of_account, TIDE_ROW_PENDING);
    assert_int_equal(claim_free(f, both, 2, 9, 9, NOW).count, 0);
}

static uint64_t add_later(struct fixture *f, uint32_t kind, uint64_t not_before)
{
    struct tide_job_new job = job_of(f, NULL);
    job.account = 0;
    job.kind = kind;
    job.not_before_unix_ms = not_before;
    return add(f, &job).id;
}

CASE(the_next_one_that_waits_for_its_time_is_told)
{
    const uint32_t kinds[] = {f->once};
    uint64_t late = add_later(f, f->once, NOW + 500);
    uint64_t soon = add_later(f, f->once, NOW + 100);
    struct tide_job_new job = job_of(f, NULL);
    job.not_before_unix_ms = NOW + 10; /* of an account */
    (void)add(f, &job);
    job.account = 0;
    job.needs = &late;
    job.needs_count = 1; /* its time is not all it waits for */
    (void)add(f, &job);

    struct got got = claim_free(f, kinds, 1, 0, 5, NOW);
    assert_int_equal(got.count, 0);
    assert_int_equal(got.due, NOW + 100);
    got = claim_free(f, kinds, 1, 0, 5, NOW + 100);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.briefs[0].id, soon);
    assert_int_equal(got.due, NOW + 500);
    got = claim_free(f, kinds, 1, 0, 1, NOW + 600);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.briefs[0].id, late);
    assert_int_equal(got.due, 0);
    assert_int_equal(claim_free(f, kinds, 1, 0, 5, NOW + 600).due, UINT64_MAX);

    /* Put back until a time, it waits again. */
    assert_true(finish(f, &(struct tide_finish){.id = soon,
                                                .token = look(f, soon).row.token,
                                                .state = TIDE_ROW_PENDING,
                                                .not_before_unix_ms = NOW + 900}));
    assert_int_equal(claim_free(f, kinds, 1, 0, 5, NOW + 899).due, NOW + 900);
    assert_int_equal(claim_free(f, kinds, 1, 0, 5, NOW + 900).count, 1);
}

/* To ask too early costs a look; to ask too late leaves a job standing. */
CASE(a_time_is_never_told_too_late)
{
    const uint32_t kinds[] = {f->once};
    (void)add_later(f, f->once, NOW + 100);
    (void)add_later(f, f->alone, NOW + 50); /* not of the kinds asked for */
    uint64_t due = claim_free(f, kinds, 1, 0, 5, NOW).due;
    assert_true(due > NOW && due <= NOW + 100);
    (void)add_later(f, f->once, NOW + 20); /* sooner than what was known */
    assert_int_equal(claim_free(f, kinds, 1, 0, 5, NOW + 1).due, NOW + 20);
    assert_int_equal(claim_free(f, kinds, 1, 0, 5, NOW + 20).count, 1);
    (void)add_later(f, f->once, NOW + 25);
    struct got got = claim_free(f, kinds, 1, 0, 5, NOW + 30);
    assert_int_equal(got.count, 1);
    assert_true(got.due > NOW + 30 && got.due <= NOW + 100);
}

/* Added by another process after we last looked, and due before we look again. */
CASE(what_another_process_queued_is_claimed_when_due)
{
    const uint32_t kinds[] = {f->once};
    tide_ledger *mine = f->ledger;
    tide_ledger *theirs = store_open(&f->store, "run-2", false);
    (void)add_later(f, f->once, NOW + 5000);
    assert_int_equal(claim_free(f, kinds, 1, 0, 5, NOW).due, NOW + 5000);
    f->ledger = theirs;
    uint64_t id = add_later(f, f->once, NOW + 100);
    f->ledger = mine;
    struct got got = claim_free(f, kinds, 1, 0, 5, NOW + 200);
    assert_int_equal(got.count, 1);
    assert_int_equal(got.briefs[0].id, id);
    assert_int_equal(got.due, NOW + 5000);
    tide_ledger_close(theirs, true);
}

/* One whose time has come stands in its place in the order, not behind the others. */
CASE(what_is_due_keeps_its_place)
{
    const uint32_t kinds[] = {f->once};
    uint64_t old = add_later(f, f->once, NOW + 10);
    uint64_t young = add_free(f);
    uint64_t high = add_of(f, TIDE_LANE_BULK, 60);
    struct got got = claim_free(f, kinds, 1, 0, 9, NOW + 20);
    assert_int_equal(got.count, 3);
    assert_int_equal(got.briefs[0].id, high);
    assert_int_equal(got.briefs[1].id, old);
    assert_int_equal(got.briefs[2].id, young);
}

/* However many there are, and whatever way a database finds them. */
CASE(many_come_in_order_too)
{
    enum { MANY = 600, HALF = 200 };
    static struct tide_job_new jobs[MANY];
    static struct tide_enqueued enqueued[MANY];
    static struct tide_brief briefs[2 * HALF];
    static struct tide_job_body *bodies[2 * HALF];
    const uint32_t kinds[] = {f->once};
    const uint32_t counts[2] = {HALF, HALF};
    tide_rng rng = tide_rng_seeded(5);
    for (size_t i = 0; i < MANY; i++) {
        jobs[i] = job_of(f, NULL);
        jobs[i].account = 0;
        jobs[i].lane = (uint8_t)tide_rng_below(&rng, 2);
        jobs[i].priority = (uint8_t)tide_rng_below(&rng, 6);
    }
    size_t count = 0;
    uint64_t due = 9;
    begin(f);
    OK(tide_ledger_enqueue(f->tx, jobs, MANY, NOW, enqueued, &f->err));
    commit(f);
    begin(f);
    OK(tide_ledger_claim_free(f->tx, kinds, 1, counts, 7, 5000, NOW, tide_mem_heap(), briefs,
                              bodies, &count, &due, &f->err));
    commit(f);
    assert_int_equal(count, 2 * HALF);
    assert_int_equal(due, 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(briefs[i].lane, i < HALF ? 0 : 1);
        assert_true(i % HALF == 0 || tide_brief_before(&briefs[i - 1], &briefs[i]));
        assert_int_equal(bodies[i]->id, briefs[i].id);
        assert_in_range(bodies[i]->token, 5000, 5000 + 2 * HALF - 1);
        tide_job_body_free(tide_mem_heap(), bodies[i]);
    }
}

CASE(a_failed_allocation_in_a_free_claim_loses_nothing)
{
    const uint32_t kinds[] = {f->once};
    const uint32_t counts[2] = {2, 2};
    const uint64_t ids[] = {add_free(f), add_free(f)};
    for (uint64_t fail_at = 0;; fail_at++) { /* ends: a claim allocates finitely often */
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        struct tide_job_body *bodies[4] = {NULL};
        struct tide_brief briefs[4];
        size_t count = 77;
        uint64_t due = 77;
        begin(f);
        tide_status rc = tide_ledger_claim_free(f->tx, kinds, 1, counts, 7, 500, NOW, &mem.base,
                                                briefs, bodies, &count, &due, &f->err);
        if (!mem.fired) {
            OK(rc);
            commit(f);
            assert_int_equal(count, 2);
            for (size_t i = 0; i < count; i++)
                tide_job_body_free(&mem.base, bodies[i]);
            assert_int_equal(mem.bytes_live, 0);
            return;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
        assert_int_equal(mem.bytes_live, 0);
        assert_int_equal(count, 77);
        assert_int_equal(due, 77);
        assert_int_equal(tide_tx_commit(f->tx, &f->err), TIDE_NO_MEMORY);
        f->tx = NULL;
        for (size_t i = 0; i < 2; i++)
            assert_state(f, ids[i], TIDE_ROW_PENDING);
    }
}
