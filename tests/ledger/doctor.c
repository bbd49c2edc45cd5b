/* doctor.c - what is wrong with a ledger as a running thing is found and named. */
#include "ledger_fixture.h"

enum { MINUTE_MS = 60000 };

struct symptoms {
    struct tide_symptom rows[32];
    size_t count;
};

static bool see_symptom(const struct tide_symptom *symptom, void *arg)
{
    struct symptoms *seen = arg;
    assert_true(seen->count < 32);
    assert_true(symptom->level >= 0 && symptom->level <= 2);
    assert_true(strlen(symptom->what) > 0);
    assert_true(strlen(symptom->text) > 0);
    /* What is healthy needs no advice, what is not always has some. */
    assert_int_equal(symptom->level > 0, strlen(symptom->advice) > 0);
    seen->rows[seen->count++] = *symptom;
    return true;
}

/* How bad something is; -1: not told of. */
static int level_of(struct fixture *f, const char *what, uint64_t now_unix_ms)
{
    struct symptoms seen = {.count = 0};
    OK(tide_ledger_doctor(f->ledger, now_unix_ms, see_symptom, &seen, &f->err));
    for (size_t i = 0; i < seen.count; i++)
        if (strcmp(seen.rows[i].what, what) == 0)
            return seen.rows[i].level;
    return -1;
}

CASE(a_healthy_ledger_says_so)
{
    struct symptoms seen = {.count = 0};
    (void)add_plain(f);
    OK(tide_ledger_doctor(f->ledger, NOW + 1, see_symptom, &seen, &f->err));
    assert_true(seen.count >= 3);
    for (size_t i = 0; i < seen.count; i++) {
        /* The test server runs without fsync, and its settings say so. */
        if (strcmp(seen.rows[i].what, "durability") == 0)
            continue;
        if (seen.rows[i].level > 0)
            print_error("%s: %s\n", seen.rows[i].what, seen.rows[i].text);
        assert_int_equal(seen.rows[i].level, 0);
    }
}

static bool see_one(const struct tide_symptom *symptom, void *arg)
{
    (void)symptom;
    ++*(size_t *)arg;
    return false;
}

CASE(a_visitor_that_has_seen_enough_is_not_asked_again)
{
    size_t count = 0;
    OK(tide_ledger_doctor(f->ledger, NOW, see_one, &count, &f->err));
    assert_int_equal(count, 1);
}

CASE(a_queue_that_stands_still_is_found)
{
    uint64_t id = add_plain(f);
    assert_int_equal(level_of(f, "standing_queues", NOW + 9 * MINUTE_MS), 0);
    assert_true(level_of(f, "standing_queues", NOW + 11 * MINUTE_MS) > 0);
    begin(f);
    OK(tide_ledger_account_pause(f->tx, f->account, true, &f->err)); /* then it is meant to */
    commit(f);
    assert_int_equal(level_of(f, "standing_queues", NOW + 11 * MINUTE_MS), 0);
    begin(f);
    OK(tide_ledger_account_pause(f->tx, f->account, false, &f->err));
    commit(f);
    (void)add_plain(f);
    (void)claim(f, id); /* and now it moves */
    assert_int_equal(level_of(f, "standing_queues", NOW + 11 * MINUTE_MS), 0);
}

CASE(a_failed_job_that_holds_a_cursor_is_found)
{
    uint64_t id = 0;
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    (void)cycle_with_jobs(f, stream, "march", 1, &id);
    commit(f);
    assert_int_equal(level_of(f, "failed_gaps", NOW), 0);
    run_to(f, id, TIDE_ROW_FAILED);
    assert_true(level_of(f, "failed_gaps", NOW) > 0);
    assert_int_equal(retry(f, id), 1);
    run_to(f, id, TIDE_ROW_DONE);
    assert_int_equal(level_of(f, "failed_gaps", NOW), 0);
}

CASE(a_lease_that_passed_is_found)
{
    if (!tide_ledger_shared(f->ledger)) { /* it has no members, and nothing to say about them */
        assert_int_equal(level_of(f, "stale_leases", NOW), -1);
        return;
    }
    struct tide_member member = {.owner = 12, .name = "host, process 12", .version = "1"};
    tide_ledger *theirs = store_open(&f->store, "run-2", false);
    OK(tide_ledger_member_join(theirs, &member, 15000, NOW, &f->err));
    assert_int_equal(level_of(f, "stale_leases", NOW + 1), 0);
    assert_true(level_of(f, "stale_leases", NOW + 10 * MINUTE_MS) > 0);
    (void)reclaim(f, 5, NOW + 10 * MINUTE_MS);
    assert_int_equal(level_of(f, "stale_leases", NOW + 10 * MINUTE_MS), 0);
    tide_ledger_close(theirs, false);
}

CASE(running_jobs_without_a_living_process_are_found)
{
    uint64_t id = add_plain(f);
    uint64_t token = claim(f, id);
    assert_int_equal(level_of(f, "lost_jobs", NOW + MINUTE_MS), 0);
    assert_true(level_of(f, "lost_jobs", NOW + 30 * MINUTE_MS) > 0);
    struct tide_beat beat = {.id = id, .token = token};
    bool applied = false;
    begin(f);
    OK(tide_ledger_beat(f->tx, &beat, 1, NOW + 29 * MINUTE_MS, &applied, &f->err));
    commit(f);
    assert_int_equal(level_of(f, "lost_jobs", NOW + 30 * MINUTE_MS), 0);
}
