/* claiming.c - a pending job is given to one owner, with all a worker needs (E1.3). */
#include "ledger_fixture.h"

CASE(a_claim_carries_what_a_worker_needs)
{
    struct tide_job_new job = job_of(f, "key");
    job.force = true;
    uint64_t id = add(f, &job).id;
    uint64_t token = claim(f, id);
    assert_int_equal(claim(f, id), 0); /* it is claimed only once */
    struct seen_job seen = look(f, id);
    assert_int_equal(seen.row.owner, 7);
    assert_int_equal(seen.row.started_unix_ms, NOW + 1);
    assert_string_equal(seen.run, "run-1");
    assert_true(finish(f, &(struct tide_finish){.id = id,
                                                .token = token,
                                                .state = TIDE_ROW_PENDING,
                                                .attempts_add = 1,
                                                .not_before_unix_ms = NOW + 50,
                                                .status = TIDE_SERVER,
                                                .error = TIDE_TEXT("HTTP 500"),
                                                .resume_set = true,
                                                .resume = TIDE_TEXT("page 2"),
                                                .payload = TIDE_TEXT("{\"left\":1}"),
                                                .bytes_done = 10}));
    seen = look(f, id);
    assert_int_equal(seen.row.not_before_unix_ms, NOW + 50);
    assert_int_equal(seen.row.status, TIDE_SERVER);
    assert_string_equal(seen.error, "HTTP 500");
    assert_int_equal(seen.row.bytes_done, 10);
    assert_int_equal(seen.row.finished_unix_ms, 0);

    struct tide_job_body *body = NULL;
    begin(f);
    OK(tide_ledger_claim(f->tx, &id, 1, UINT64_MAX, UINT64_MAX - 5, NOW, tide_mem_heap(), &body,
                         &f->err));
    commit(f);
    assert_non_null(body);
    assert_int_equal(body->attempts, 1);
    assert_true(body->force);
    assert_true(tide_text_equal(body->payload, TIDE_TEXT("{\"left\":1}")));
    assert_true(tide_text_equal(body->resume, TIDE_TEXT("page 2")));
    assert_true(tide_text_equal(body->dedupe_key, TIDE_TEXT("key")));
    assert_int_equal(body->token, UINT64_MAX - 5);
    tide_job_body_free(tide_mem_heap(), body);
    assert_int_equal(look(f, id).row.owner, UINT64_MAX);
    assert_true(end_as(f, id, UINT64_MAX - 5, TIDE_ROW_DONE));
    seen = look(f, id);
    assert_int_equal(seen.row.status, TIDE_OK);
    assert_string_equal(seen.error, "");
    assert_int_equal(seen.row.finished_unix_ms, NOW + 2);
    assert_int_equal(claim(f, id), 0); /* done is done */
}

CASE(a_failed_allocation_in_a_claim_loses_nothing)
{
    const uint64_t ids[] = {add_plain(f), add_plain(f), add_plain(f)};
    for (uint64_t fail_at = 0;; fail_at++) { /* ends: a claim allocates finitely often */
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        struct tide_job_body *bodies[3] = {NULL};
        begin(f);
        tide_status rc = tide_ledger_claim(f->tx, ids, 3, 7, 500, NOW, &mem.base, bodies, &f->err);
        if (!mem.fired) {
            OK(rc);
            commit(f);
            for (size_t i = 0; i < 3; i++)
                tide_job_body_free(&mem.base, bodies[i]);
            assert_int_equal(mem.bytes_live, 0);
            return;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
        assert_int_equal(mem.bytes_live, 0);
        /* What failed like this can only be rolled back, whatever is asked. */
        assert_int_equal(tide_tx_commit(f->tx, &f->err), TIDE_NO_MEMORY);
        f->tx = NULL;
        for (size_t i = 0; i < 3; i++)
            assert_state(f, ids[i], TIDE_ROW_PENDING);
    }
}

/* Neighbours are claimed together where an engine can; whatever is special about one of
 * them must not touch the others. */
CASE(each_of_many_is_claimed_as_if_alone)
{
    enum { COUNT = 12 };
    uint64_t ids[COUNT];
    struct tide_job_body *bodies[COUNT] = {NULL};
    for (size_t i = 0; i < COUNT; i++) {
        struct tide_job_new job = job_of(f, NULL);
        char payload[32];
        (void)snprintf(payload, sizeof payload, "{\"i\":%zu}", i);
        job.payload = tide_text_of(payload);
        job.kind = i == 9 ? f->alone : f->once;
        job.needs = ids;
        job.needs_count = i == 4 ? 1 : 0;
        ids[i] = add(f, &job).id;
    }
    (void)cancel(f, ids[2], NULL);
    assert_true(finish(f, &(struct tide_finish){.id = ids[6],
                                                .token = claim(f, ids[6]),
                                                .state = TIDE_ROW_PENDING,
                                                .resume_set = true,
                                                .resume = TIDE_TEXT("page 2")}));
    begin(f);
    OK(tide_ledger_kind_pause(f->tx, f->alone, true, &f->err));
    OK(tide_ledger_claim(f->tx, ids, COUNT, 7, 500, NOW + 3, tide_mem_heap(), bodies, &f->err));
    commit(f);
    for (size_t i = 0; i < COUNT; i++) {
        bool had = i != 2 && i != 4 && i != 9; /* canceled, blocked, paused */
        assert_int_equal(bodies[i] != NULL, had);
        assert_state(f, ids[i],
                     had      ? TIDE_ROW_RUNNING
                     : i == 2 ? TIDE_ROW_CANCELED
                              : TIDE_ROW_PENDING);
        if (!had)
            continue;
        char payload[32];
        (void)snprintf(payload, sizeof payload, "{\"i\":%zu}", i);
        assert_true(tide_text_equal(bodies[i]->payload, tide_text_of(payload)));
        assert_int_equal(bodies[i]->resume.bytes, i == 6 ? 6 : 0);
        assert_int_equal(bodies[i]->token, 500 + i);
        assert_int_equal(look(f, ids[i]).row.token, 500 + i);
        tide_job_body_free(tide_mem_heap(), bodies[i]);
    }
}
