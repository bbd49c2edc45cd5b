/* finishing.c - the end of a running job: all of it or nothing, and by its holder alone (E1.6, E1.8). */
#include "ledger_fixture.h"

CASE(a_zombie_changes_nothing)
{
    uint64_t id = add_plain(f);
    uint64_t stale = claim_as(f, id, 1);
    size_t count = 0;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_reclaim(f->tx, 2, 100, NOW, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    uint64_t token = claim_as(f, id, 2);

    struct tide_job_new child = job_of(f, "child");
    struct tide_item_report item = {TIDE_TEXT("x"), TIDE_TEXT("broken"), TIDE_PERMANENT};
    struct seen_job before = look(f, id);
    assert_false(finish(f, &(struct tide_finish){.id = id,
                                                 .token = stale,
                                                 .state = TIDE_ROW_DONE,
                                                 .error = TIDE_TEXT("zombie"),
                                                 .resume_set = true,
                                                 .resume = TIDE_TEXT("zombie"),
                                                 .children = &child,
                                                 .children_count = 1,
                                                 .items = &item,
                                                 .items_count = 1}));
    assert_int_equal(f->changes.refused[0].status, TIDE_STALE);
    assert_int_equal(f->changes.children_count, 0);
    struct tide_beat beat = {id, stale, 999, true, TIDE_TEXT("zombie")};
    bool applied = true;
    begin(f);
    OK(tide_ledger_beat(f->tx, &beat, 1, NOW + 9, &applied, &f->err));
    commit(f);
    assert_false(applied);
    struct seen_job after = look(f, id);
    assert_int_equal(after.row.token, before.row.token);
    assert_int_equal(after.row.bytes_done, before.row.bytes_done);
    assert_int_equal(after.row.beat_unix_ms, before.row.beat_unix_ms);
    assert_string_equal(after.resume, before.resume);
    assert_string_equal(after.error, before.error);
    assert_true(end_as(f, id, token, TIDE_ROW_DONE));
    assert_false(end_as(f, id, token, TIDE_ROW_FAILED));
    assert_state(f, id, TIDE_ROW_DONE);
}

CASE(beats_keep_bytes_and_resume_data)
{
    uint64_t id = add_plain(f);
    uint64_t token = claim(f, id);
    struct tide_beat beats[2] = {{id, token, 10, false, TIDE_TEXT_NONE},
                                 {id, token, 20, true, TIDE_TEXT("session 9")}};
    bool applied[2] = {false, false};
    begin(f);
    OK(tide_ledger_beat(f->tx, beats, 2, NOW + 9, applied, &f->err));
    commit(f);
    assert_true(applied[0] && applied[1]);
    struct seen_job seen = look(f, id);
    assert_int_equal(seen.row.bytes_done, 20);
    assert_int_equal(seen.row.beat_unix_ms, NOW + 9);
    assert_string_equal(seen.resume, "session 9");
    /* The process dies: what was saved is there for the next one. */
    reopen(f, false);
    size_t count = 0;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_reclaim(f->tx, 8, 100, NOW, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    seen = look(f, id);
    assert_int_equal(seen.row.attempts, 1);
    assert_string_equal(seen.resume, "session 9");
    assert_int_equal(seen.row.bytes_done, 20);
    assert_string_equal(seen.run, "run-1");
}

/* A command, or any process that has the same ledger open, may beat for a job that another process
 * claimed: the end of it must not forget what came with the beat. */
CASE(an_end_keeps_what_another_process_saved_for_the_job)
{
    uint64_t ids[5]; /* neighbours, claimed as a run, and one more */
    struct tide_job_body *bodies[5] = {NULL};
    for (size_t i = 0; i < 5; i++)
        ids[i] = add_plain(f);
    begin(f);
    OK(tide_ledger_claim(f->tx, ids, 5, 7, 100, NOW + 1, tide_mem_heap(), bodies, &f->err));
    commit(f);
    tide_ledger *ours = f->ledger;
    f->ledger = store_open(&f->store, "run-2", false);
    struct tide_beat beat = {ids[2], 102, 20, true, TIDE_TEXT("session 9")};
    bool applied = false;
    begin(f);
    OK(tide_ledger_beat(f->tx, &beat, 1, NOW + 9, &applied, &f->err));
    commit(f);
    assert_true(applied);
    tide_ledger_close(f->ledger, true);
    f->ledger = ours;
    for (size_t i = 0; i < 5; i++) {
        tide_job_body_free(tide_mem_heap(), bodies[i]);
        assert_true(end_as(f, ids[i], 100 + i, TIDE_ROW_PENDING));
        assert_string_equal(look(f, ids[i]).resume, i == 2 ? "session 9" : "");
    }
    struct tide_job_body *body = NULL;
    begin(f);
    OK(tide_ledger_claim(f->tx, &ids[2], 1, 7, 200, NOW, tide_mem_heap(), &body, &f->err));
    commit(f);
    assert_true(tide_text_equal(body->resume, TIDE_TEXT("session 9")));
    tide_job_body_free(tide_mem_heap(), body);
}

static tide_status effect_writes(void *arg, tide_tx *tx, tide_error *err)
{
    tide_status rc = tide_ledger_note(tx, "effect", TIDE_TEXT("happened"), err);
    tide_status wanted = *(tide_status *)arg;
    if (rc == TIDE_OK && wanted != TIDE_OK)
        return tide_error_set(err, wanted, "the effect failed");
    return rc;
}

CASE(one_bad_finish_is_undone_alone)
{
    uint64_t ids[4];
    struct tide_finish finishes[4];
    bool applied[4];
    tide_status fails = TIDE_PERMANENT;
    tide_status works = TIDE_OK;
    struct tide_job_new children[2] = {job_of(f, NULL), job_of(f, NULL)};
    struct tide_job_new orphan = job_of(f, NULL);
    const uint64_t missing = 4711;
    const uint32_t first = 0;
    children[1].needs_earlier = &first;
    children[1].needs_earlier_count = 1;
    orphan.needs = &missing;
    orphan.needs_count = 1;
    for (size_t i = 0; i < 4; i++) {
        ids[i] = add_plain(f);
        finishes[i] =
            (struct tide_finish){.id = ids[i], .token = claim(f, ids[i]), .state = TIDE_ROW_DONE};
    }
    finishes[1].effect = effect_writes;
    finishes[1].effect_arg = &fails;
    finishes[1].children = children;
    finishes[1].children_count = 2;
    finishes[2].children = &orphan;
    finishes[2].children_count = 1;
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_finish(f->tx, finishes, 4, NOW, applied, &f->changes, &f->err));
    commit(f);
    assert_true(applied[0] && !applied[1] && !applied[2] && applied[3]);
    assert_state(f, ids[1], TIDE_ROW_RUNNING);
    assert_int_equal(f->changes.children_count, 0);
    assert_int_equal(f->changes.refused_count, 2);
    assert_int_equal(f->changes.refused[0].index, 1);
    assert_int_equal(f->changes.refused[0].status, TIDE_PERMANENT);
    assert_string_equal(f->changes.refused[0].text, "the effect failed");
    assert_int_equal(f->changes.refused[1].status, TIDE_NOT_FOUND);
    assert_false(note_is(f, "effect", "happened"));
    struct tide_brief briefs[8];
    assert_int_equal(refill(f, f->account, briefs, 8), 0);

    finishes[1].effect_arg = &works;
    assert_true(finish(f, &finishes[1]));
    assert_true(note_is(f, "effect", "happened"));
    assert_int_equal(f->changes.children_count, 2);
    assert_int_equal(f->changes.children[1].brief.open_deps, 1);
    assert_false(f->changes.children[1].existed);
    assert_int_equal(refill(f, f->account, briefs, 8), 1);
}

CASE(children_appear_only_with_the_commit)
{
    uint64_t id = add_plain(f);
    struct tide_job_new child = job_of(f, "child");
    struct tide_finish finish_it = {.id = id,
                                    .token = claim(f, id),
                                    .state = TIDE_ROW_DONE,
                                    .children = &child,
                                    .children_count = 1};
    bool applied = false;
    begin(f);
    OK(tide_ledger_finish(f->tx, &finish_it, 1, NOW, &applied, &f->changes, &f->err));
    assert_true(applied);
    undo(f);
    assert_state(f, id, TIDE_ROW_RUNNING);
    struct tide_brief brief;
    assert_int_equal(refill(f, f->account, &brief, 1), 0);
    assert_true(finish(f, &finish_it));
    assert_int_equal(refill(f, f->account, &brief, 1), 1);
    assert_int_equal(brief.id, f->changes.children[0].brief.id);
}

enum { MANY = 8 };

/* Claims jobs in one call, as the engine does; returns the first token. */
static uint64_t claim_many(struct fixture *f, const uint64_t *ids)
{
    struct tide_job_body *bodies[MANY] = {NULL};
    uint64_t token = f->token;
    f->token += MANY;
    begin(f);
    OK(tide_ledger_claim(f->tx, ids, MANY, 7, token, NOW + 1, tide_mem_heap(), bodies, &f->err));
    commit(f);
    for (size_t i = 0; i < MANY; i++) {
        assert_non_null(bodies[i]);
        tide_job_body_free(tide_mem_heap(), bodies[i]);
    }
    return token;
}

/* Ends all of them in one call, not in the order of their ids, and the sixth once more. */
static void end_many(struct fixture *f, const uint64_t *ids, uint64_t token, bool *applied)
{
    static const size_t order[MANY + 1] = {1, 0, 5, 2, 7, 3, 5, 6, 4};
    struct tide_finish finishes[MANY + 1];
    bool results[MANY + 1];
    for (size_t i = 0; i <= MANY; i++)
        finishes[i] = (struct tide_finish){
            .id = ids[order[i]], .token = token + order[i], .state = TIDE_ROW_DONE};
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_finish(f->tx, finishes, MANY + 1, NOW + 2, results, &f->changes, &f->err));
    commit(f);
    memset(applied, 0, MANY);
    size_t refused = 0;
    for (size_t i = 0; i <= MANY; i++) {
        assert_false(applied[order[i]] && results[i]); /* once each */
        applied[order[i]] = applied[order[i]] || results[i];
        if (results[i])
            continue;
        assert_int_equal(f->changes.refused[refused].index, i);
        assert_int_equal(f->changes.refused[refused].status, TIDE_STALE);
        refused++;
    }
    assert_int_equal(f->changes.refused_count, refused);
}

CASE(jobs_that_end_together_end_as_each_would)
{
    uint64_t ids[MANY];
    bool applied[MANY];
    begin(f);
    uint64_t stream = stream_of(f, "s");
    (void)cycle_with_jobs(f, stream, "march", MANY, ids);
    commit(f);
    uint64_t waiting = add_needing(f, (uint64_t[]){ids[2], ids[6]}, 2);
    uint64_t token = claim_many(f, ids);
    /* The fourth is lost before the others end: its second end changes nothing (E1.8). */
    assert_true(end_as(f, ids[3], token + 3, TIDE_ROW_FAILED));
    end_many(f, ids, token, applied);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(applied[i], i != 3);
        assert_state(f, ids[i], i == 3 ? TIDE_ROW_FAILED : TIDE_ROW_DONE);
    }
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].id, waiting);
    assert_int_equal(f->changes.released[0].open_deps, 0);
    assert_int_equal(cycles_of(f, stream).rows[0].outstanding, 0);
    assert_int_equal(cycles_of(f, stream).rows[0].failed, 1);

    /* All are held. */
    begin(f);
    (void)cycle_with_jobs(f, stream, "april", MANY, ids);
    commit(f);
    waiting = add_needing(f, (uint64_t[]){ids[0], ids[7]}, 2);
    token = claim_many(f, ids);
    end_many(f, ids, token, applied);
    for (size_t i = 0; i < MANY; i++) {
        struct seen_job seen = look(f, ids[i]);
        assert_true(applied[i]);
        assert_int_equal(seen.row.state, TIDE_ROW_DONE);
        assert_int_equal(seen.row.started_unix_ms, NOW + 1);
        assert_int_equal(seen.row.finished_unix_ms, NOW + 2);
        assert_string_equal(seen.run, "run-1");
    }
    assert_int_equal(f->changes.released_count, 1);
    assert_int_equal(f->changes.released[0].id, waiting);
    assert_int_equal(f->changes.cycles_count, 1);
    assert_int_equal(f->changes.cycles[0].outstanding, 0);
    assert_int_equal(f->changes.cycles[0].failed, 0);
}
