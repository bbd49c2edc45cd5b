/* purge.c - what is finished and old goes, what is needed stays (E1.2). */
#include "ledger_fixture.h"

static size_t purge_all(struct fixture *f, uint64_t before)
{
    size_t total = 0;
    do { /* ends: each call looks at later rows, until it wraps around */
        size_t count = 0;
        begin(f);
        OK(tide_ledger_purge(f->tx, before, 2, &count, &f->err));
        commit(f);
        total += count;
    } while (tide_ledger_purge_more(f->ledger));
    return total;
}

CASE(purge_keeps_what_is_still_needed)
{
    uint64_t in_cycle[2];
    uint64_t done[3];
    for (int i = 0; i < 3; i++) {
        done[i] = add_plain(f);
        run_to(f, done[i], TIDE_ROW_DONE);
    }
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    (void)cycle_with_jobs(f, stream, "march", 2, in_cycle);
    commit(f);
    run_to(f, in_cycle[0], TIDE_ROW_DONE);
    uint64_t failed = add_plain(f);
    run_to(f, failed, TIDE_ROW_FAILED);
    uint64_t waiting = add_needing(f, &failed, 1);
    uint64_t pending = add_plain(f);
    assert_int_equal(purge_all(f, NOW), 0); /* nothing is old enough */
    assert_int_equal(purge_all(f, NOW + 100), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(look(f, done[i]).count, 0);
    assert_state(f, in_cycle[0], TIDE_ROW_DONE);
    assert_state(f, failed, TIDE_ROW_FAILED);
    assert_state(f, waiting, TIDE_ROW_PENDING);
    assert_state(f, pending, TIDE_ROW_PENDING);
    run_to(f, in_cycle[1], TIDE_ROW_DONE);
    assert_int_equal(purge_all(f, NOW + 100), 2);

    /* A canceled one goes first, then what it waited for. */
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = waiting;
    uint64_t running[1];
    size_t count = 0;
    begin(f);
    OK(tide_ledger_cancel(f->tx, &filter, NOW, &count, running, 1, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(purge_all(f, NOW + 100) + purge_all(f, NOW + 100), 2);
}

/* E1.9: a repeat must find the earlier intent, no matter how old it is. */
CASE(an_intent_without_an_outcome_outlives_its_job)
{
    const char *const tags[] = {"made", "done", "failed", "unknown"};
    const tide_intent_state ends[] = {TIDE_INTENT_MADE, TIDE_INTENT_DONE, TIDE_INTENT_FAILED,
                                      TIDE_INTENT_UNKNOWN};
    const uint64_t job = add_plain(f);
    tide_intent_state intent = TIDE_INTENT_MADE;
    begin(f);
    for (int i = 0; i < 4; i++) {
        const tide_text tag = tide_text_of(tags[i]);
        OK(tide_ledger_intent(f->tx, job, tag, TIDE_TEXT_NONE, NOW, &intent, NULL, &f->err));
        if (i > 0)
            OK(tide_ledger_intent_end(f->tx, tag, ends[i], TIDE_TEXT_NONE, NOW, &f->err));
    }
    commit(f);
    run_to(f, job, TIDE_ROW_DONE);
    (void)add_plain(f); /* the newest row stays, so that ids only grow */
    assert_int_equal(purge_all(f, NOW + 100), 1);
    for (int i = 0; i < 4; i++) {
        const bool kept = ends[i] == TIDE_INTENT_MADE || ends[i] == TIDE_INTENT_UNKNOWN;
        assert_int_equal(
            tide_ledger_intent_find(f->ledger, tide_text_of(tags[i]), &intent, NULL, &f->err),
            kept ? TIDE_OK : TIDE_NOT_FOUND);
    }
}
