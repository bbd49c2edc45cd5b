/* enqueue.c - jobs are queued whole, or not at all. */
#include "ledger_fixture.h"

CASE(a_job_is_read_back_as_it_was_queued)
{
    struct tide_job_new job = job_of(f, "key");
    job.size_bytes = 12345;
    job.not_before_unix_ms = NOW + 99;
    job.attempts = 2;
    job.level = 3;
    job.force = true;
    struct tide_enqueued enqueued = add(f, &job);
    assert_false(enqueued.existed);
    struct seen_job seen = look(f, enqueued.id);
    assert_int_equal(seen.row.size_bytes, 12345);
    assert_int_equal(seen.row.not_before_unix_ms, NOW + 99);
    assert_int_equal(seen.row.created_unix_ms, NOW);
    assert_int_equal(seen.row.attempts, 2);
    assert_int_equal(seen.row.attempts_max, 5);
    assert_int_equal(seen.row.priority, 30);
    assert_int_equal(seen.row.lane, TIDE_LANE_BULK);
    assert_int_equal(seen.row.level, 3);
    assert_true(seen.row.preemptible);
    assert_true(seen.row.force);
    assert_string_equal(seen.payload, "{\"n\":1}");
    assert_string_equal(seen.key, "key");
    assert_string_equal(seen.account_name, "a@example.com");
    assert_string_equal(seen.kind_name, "once");
    assert_state(f, enqueued.id, TIDE_ROW_PENDING);

    struct tide_brief brief;
    OK(tide_ledger_brief(f->ledger, enqueued.id, &brief, &f->err));
    assert_int_equal(brief.not_before_ms, NOW + 99);
    assert_int_equal(brief.level, 3);
    assert_true(brief.preemptible);
    assert_int_equal(tide_ledger_brief(f->ledger, 999, &brief, &f->err), TIDE_NOT_FOUND);
}

CASE(ids_only_grow_even_after_a_purge_and_a_restart)
{
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t id = add_plain(f);
        assert_true(id > last);
        last = id;
        run_to(f, id, TIDE_ROW_DONE);
        size_t count = 0;
        begin(f);
        OK(tide_ledger_purge(f->tx, NOW + 100, 0, &count, &f->err));
        commit(f);
        reopen(f, i % 2 == 0);
    }
}

CASE(a_refused_enqueue_leaves_nothing)
{
    struct tide_job_new jobs[2] = {job_of(f, "a"), job_of(f, "b")};
    struct tide_enqueued enqueued[2];
    const uint64_t missing = 77;
    const uint32_t later = 1;
    static char huge[TIDE_PAYLOAD_BYTES_MAX + 1];
    struct {
        struct tide_job_new job;
        tide_status status;
    } wrong[8];
    for (size_t i = 0; i < 8; i++)
        wrong[i].job = jobs[1];
    wrong[0].job.needs = &missing, wrong[0].job.needs_count = 1, wrong[0].status = TIDE_NOT_FOUND;
    wrong[1].job.kind = 99, wrong[1].status = TIDE_NOT_FOUND;
    wrong[2].job.account = 99, wrong[2].status = TIDE_NOT_FOUND;
    wrong[3].job.cycle = 99, wrong[3].status = TIDE_NOT_FOUND;
    wrong[4].job.priority = 101, wrong[4].status = TIDE_INVALID;
    wrong[5].job.payload = (tide_text){huge, sizeof huge}, wrong[5].status = TIDE_INVALID;
    wrong[6].job.needs_earlier = &later, wrong[6].job.needs_earlier_count = 1;
    wrong[6].status = TIDE_INVALID;
    wrong[7].job.dedupe_key = (tide_text){huge, TIDE_DEDUPE_BYTES_MAX + 1};
    wrong[7].status = TIDE_INVALID;
    for (size_t i = 0; i < 8; i++) {
        jobs[1] = wrong[i].job;
        begin(f);
        assert_int_equal(tide_ledger_enqueue(f->tx, jobs, 2, NOW, enqueued, &f->err),
                         wrong[i].status);
        assert_true(strlen(f->err.text) > 0);
        commit(f);
        struct tide_brief briefs[4];
        assert_int_equal(refill(f, f->account, briefs, 4), 0);
    }
}
