/* What happens by itself, and one thing at a time (jobs/tick.c; J2, J4, J9). */
#include "assistant_jobs_fixture.h"

#include "base/json.h"
#include "ledger/rows.h"

/* ---- J4 ---- */

/* Push is lost: the fallback finds it within its interval. */
CASE(mail_is_looked_for_by_itself)
{
    OK(tide_assistant_plan(f->jobs, f->config, err));
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    pass(f, 10);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    pass(f, 7);
    (void)settle(f);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(failed_jobs(f), 0);
}

static struct fixture *begin_slow(void)
{
    return begin("models: {fast: small, better: large}\n"
                 "sync: {fallback_interval_minutes: 1440, full_sync_interval_hours: 2}\n");
}

/* The intervals are settings (J28), and a full sync finds what history does not tell. */
TEST_OF(the_inbox_itself_is_looked_at_by_its_own_interval, struct fixture *f, begin_slow(), finish)
{
    OK(tide_assistant_plan(f->jobs, f->config, err));
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    pass(f, 100);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    pass(f, 30);
    (void)settle(f);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
}

/* Other intervals take the place of those that were planned. */
CASE(a_changed_interval_is_planned_anew)
{
    struct tide_assistant_config other = *f->config;
    other.fallback_interval_minutes = 1440;
    OK(tide_assistant_plan(f->jobs, f->config, err));
    OK(tide_assistant_plan(f->jobs, &other, err));
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    pass(f, 40); /* before the first full sync */
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
}

/* Both come at the full hour: one waits for the other, and neither fails. */
CASE(two_syncs_of_a_user_run_one_after_the_other)
{
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    OK(tide_assistant_tick(f->jobs, "sync", err));
    OK(tide_assistant_tick(f->jobs, "full", err));
    OK(tide_assistant_tick(f->jobs, "watch", err)); /* no topic: nothing is asked */
    (void)settle(f);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
    assert_int_equal(drafts_of(f, f->thread, true), 1);
    assert_int_equal(failed_jobs(f), 0);
}

/* ---- users come and go ---- */

static tide_status remove_user(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_assistant_user_remove(tide_transaction_rows(transaction), *(uint32_t *)arg, err);
}

static void user_goes(struct fixture *f, const char *kind)
{
    (void)kind;
    f->again_ms = 60000; /* not now */
    OK(tide_transact(f->engine, remove_user, &f->account, err));
}

/* The question that waits is asked no more, and its job does not fail. */
CASE(a_question_of_a_removed_user_is_not_asked)
{
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    f->during = user_goes;
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
    assert_int_equal(failed_jobs(f), 1); /* the thread's own: its user is unknown (J2) */
    OK(tide_assistant_tick(f->jobs, "full", err));
    (void)settle(f);
    assert_int_equal(failed_jobs(f), 1);
}
