/* What a person waits for goes first (K3, K4, K15), and the lessons of an earlier implementation (K16).
 *
 * Method: answers take long, so that jobs are under way when others come; the calls that reach the cloud
 * say in which order and when. */
#include "reader_jobs_fixture.h"

CASE(a_long_page_never_blocks_an_opened_message)
{
    const char *id = NULL;
    uint64_t job = 0;
    for (uint64_t i = 0; i < 40; i++)
        id = deliver(f, 0, (60 + i) * DAY_MS);
    f->think_us = 400000;
    OK(tide_reader_more(f->reader, f->accounts[0], "INBOX", &job, err));
    pass(f, 3000); /* in the middle of it */
    assert_null(call_with(f, id));
    const uint64_t asked_ms = now_ms(f);
    OK(tide_reader_fetch(f->reader, f->accounts[0], id, &job, err));
    pass(f, 150);
    const struct call *call = call_with(f, id);
    assert_non_null(call);
    assert_true(call->at_ms - asked_ms <= 50 + 40); /* and the way to the server */
    (void)settle(f);
    assert_true(has_body(f, 0, id));
    assert_int_equal(count_shown(f, 0, "INBOX"), 20); /* the page ends as if nothing was */
    assert_int_equal(calls_with(f, "GET messages?"), 1);
    /* The one in flight was lost, and no other. */
    assert_true(calls_with(f, "format=metadata") <= 21);
    assert_int_equal(failed_jobs(f), 0);
}

CASE(a_backfill_never_blocks_an_opened_message)
{
    const char *id = NULL;
    uint64_t job = 0;
    for (uint64_t i = 0; i < 60; i++)
        id = deliver(f, 0, i * 3600000);
    f->think_us = 400000;
    poll_now(f, 0);
    pass(f, 5000);
    assert_null(call_with(f, id));
    const uint64_t asked_ms = now_ms(f);
    OK(tide_reader_fetch(f->reader, f->accounts[0], id, &job, err));
    pass(f, 150);
    assert_non_null(call_with(f, id));
    assert_true(call_with(f, id)->at_ms - asked_ms <= 50 + 40);
    (void)settle(f);
    assert_int_equal(count_shown(f, 0, "INBOX"), 60);
    assert_int_equal(tide_sim_net_stats(f->sim).in_flight_highest, 1); /* K4 */
}

CASE(accounts_run_in_parallel)
{
    uint64_t job = 0;
    for (uint64_t i = 0; i < 20; i++)
        (void)deliver(f, 0, i * 3600000);
    const char *id = deliver(f, 1, 1000);
    f->think_us = 400000;
    poll_now(f, 0);
    pass(f, 2000);
    const uint64_t asked_ms = now_ms(f);
    poll_now(f, 1);
    OK(tide_reader_fetch(f->reader, f->accounts[1], id, &job, err));
    pass(f, 2500);
    const struct call *call = call_with(f, id);
    assert_non_null(call); /* while the other account is at work */
    assert_true(call->at_ms - asked_ms < 1500);
    assert_true(count_shown(f, 0, "INBOX") < 20);
    (void)settle(f);
    assert_int_equal(count_shown(f, 0, "INBOX"), 20);
    assert_int_equal(count_shown(f, 1, "INBOX"), 1);
}

CASE(equal_priorities_are_first_come_first_served)
{
    const char *ids[6];
    uint64_t job = 0;
    for (uint64_t i = 0; i < 6; i++)
        ids[i] = deliver(f, 0, i * 1000);
    f->think_us = 200000;
    const int order[] = {3, 0, 5, 1, 4, 2};
    for (int i = 0; i < 6; i++)
        OK(tide_reader_fetch(f->reader, f->accounts[0], ids[order[i]], &job, err));
    (void)settle(f);
    uint64_t last = 0;
    for (int i = 0; i < 6; i++) {
        const struct call *call = call_with(f, ids[order[i]]);
        assert_non_null(call);
        assert_true(call->at_ms > last);
        last = call->at_ms;
    }
    assert_int_equal(tide_sim_net_stats(f->sim).in_flight_highest, 1); /* K4 */
}

/* K3: level 1 before 2 before 3 before 4, whatever came first. */
CASE(levels_are_strict)
{
    const char *ids[3];
    uint64_t job = 0;
    for (uint64_t i = 0; i < 3; i++)
        ids[i] = deliver(f, 0, 1000 + i);
    poll_now(f, 0);
    (void)settle(f);
    const char *old = deliver(f, 0, 60 * DAY_MS);
    f->calls_count = 0;
    f->think_us = 300000;
    const struct tide_reader_job folders = {
        .kind = TIDE_READER_FOLDERS, .account = f->accounts[0], .key = "folders"};
    OK(tide_reader_enqueue(f->reader, &folders, NULL, err));
    (void)act(f, 0, "star", ids[0]);
    (void)act(f, 0, "pin", ids[1]);
    OK(tide_reader_fetch(f->reader, f->accounts[0], old, &job, err));
    (void)settle(f);
    const char *const order[] = {old, "/modify", ids[1], "GET labels"};
    for (int i = 0; i + 1 < 4; i++) {
        /* A lower one that was under way is made again after them: its last call counts. */
        const struct call *last = NULL;
        for (size_t k = 0; k < f->calls_count; k++)
            if (strstr(f->calls[k].what, order[i + 1]) != NULL)
                last = &f->calls[k];
        assert_non_null(call_with(f, order[i]));
        assert_non_null(last);
        assert_true(call_with(f, order[i])->at_ms < last->at_ms);
    }
}

/* A message that is gone has nothing to show for having been asked for: it is asked for once, or a page
 * that waits for its units would never end. */
CASE(an_interrupted_page_does_not_ask_again_for_what_is_gone)
{
    char gone[2][32];
    uint64_t job = 0;
    for (uint64_t i = 0; i < 2; i++)
        (void)snprintf(gone[i], sizeof gone[i], "%s", deliver(f, 0, 50 * DAY_MS + i));
    for (uint64_t i = 0; i < 3; i++)
        (void)deliver(f, 0, 60 * DAY_MS + i);
    const char *opened = deliver(f, 0, 70 * DAY_MS);
    f->think_us = 400000;
    OK(tide_reader_more(f->reader, f->accounts[0], "INBOX", &job, err));
    while (calls_with(f, "GET messages?") == 0)
        pass(f, 10);
    for (size_t i = 0; i < 2; i++)
        box_mailbox_remove(f->mailboxes[0],
                           box_mailbox_find(f->mailboxes[0], tide_text_of(gone[i])));
    while (calls_with(f, "format=metadata") < 3)
        pass(f, 10);
    OK(tide_reader_fetch(f->reader, f->accounts[0], opened, &job, err));
    (void)settle(f);
    assert_int_equal(calls_with(f, gone[0]), 1);
    assert_int_equal(calls_with(f, gone[1]), 1);
    assert_int_equal(count_shown(f, 0, "INBOX"), 4);
    assert_int_equal(failed_jobs(f), 0);
}

/* K6: while one is pending or running, another one of the same folder is dropped. */
CASE(duplicates_of_a_folder_are_dropped)
{
    uint64_t first = 0, second = 0;
    for (uint64_t i = 0; i < 10; i++)
        (void)deliver(f, 0, i * 1000);
    f->think_us = 300000;
    OK(tide_reader_more(f->reader, f->accounts[0], "INBOX", &first, err));
    OK(tide_reader_more(f->reader, f->accounts[0], "INBOX", &second, err));
    assert_int_equal(first, second);
    pass(f, 1000); /* it runs */
    OK(tide_reader_more(f->reader, f->accounts[0], "INBOX", &second, err));
    assert_int_equal(first, second);
    (void)settle(f);
    assert_int_equal(calls_with(f, "GET messages?"), 1);
}

/* The queue survives the process's death. */
CASE(the_queue_survives_the_death_of_the_process)
{
    const char *id = deliver(f, 0, 1000);
    uint64_t job = 0;
    poll_now(f, 0);
    (void)settle(f);
    tide_sim_net_down(f->sim, true);
    const struct tide_reader_action action = act(f, 0, "archive", id);
    OK(tide_reader_fetch(f->reader, f->accounts[0], id, &job, err));
    f->may_die = true;
    tide_sim_crash_after(f->sim, 1, TIDE_SIM_CRASH_POWER);
    pass(f, 1000);
    life_end(f);
    tide_sim_reboot(f->sim);
    f->may_die = false;
    tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
    tide_sim_net_down(f->sim, false);
    OK(life_begin(f));
    assert_string_equal(shown(f, 0, "INBOX"), "");
    (void)settle(f);
    assert_false(labeled(f, 0, id, BOX_LABEL_INBOX));
    assert_int_equal(action_of(f, 0, action.id).state, TIDE_ACTION_DONE);
    assert_true(has_body(f, 0, id));
}

/* K16: bodies that are kept for reading without a network do not chase those that had to go. */
TEST(eviction_does_not_fetch_again_what_was_evicted)
{
    static const char *const settings[] = {"reader.offline=30d", "reader.cache=16MiB", NULL};
    const struct tide_sim_options options = {.net = {.latency_us_max = 2000}};
    struct fixture *f = begin_in(11, &options);
    const char *ids[24];
    size_t kept = 0;
    f->settings = settings;
    OK(life_begin(f));
    for (uint64_t i = 0; i < 24; i++)
        ids[i] = deliver_big(f, 0, i * 60000, 1500000);
    const struct tide_reader_job evict = {
        .kind = TIDE_READER_EVICT, .account = f->accounts[0], .key = "evict"};
    for (int round = 0; round < 6; round++) {
        poll_now(f, 0);
        (void)settle(f);
        pass(f, 10 * 60000);
        OK(tide_reader_enqueue(f->reader, &evict, NULL, err));
        (void)settle(f);
    }
    for (int i = 0; i < 24; i++)
        kept += has_body(f, 0, ids[i]);
    assert_in_range(kept, 8, 18);                    /* the others had to go */
    assert_true(calls_with(f, "format=raw") <= 24);  /* each at most once */
    assert_true(calls_with(f, "format=raw") > kept); /* and some of them in vain */
    assert_int_equal(count_shown(f, 0, "INBOX"), 24);
    assert_int_equal(failed_jobs(f), 0);
    finish(f);
}

/* K12: opened messages that pass the limit make room by themselves, and what is on a screen stays. */
TEST(a_cache_that_reading_filled_is_small_again_in_a_minute)
{
    static const char *const settings[] = {"reader.cache=16MiB", NULL};
    const struct tide_sim_options options = {.net = {.latency_us_max = 2000}};
    struct fixture *f = begin_in(12, &options);
    const char *ids[24];
    size_t kept = 0;
    uint64_t job = 0;
    f->settings = settings;
    OK(life_begin(f));
    for (uint64_t i = 0; i < 24; i++)
        ids[i] = deliver_big(f, 0, i * 60000, 1500000);
    poll_now(f, 0);
    (void)settle(f);
    for (int i = 0; i < 24; i++) {
        OK(tide_reader_fetch(f->reader, f->accounts[0], ids[i], &job, err));
        pass(f, 1000);
    }
    for (int i = 0; i < 24; i++)
        assert_true(has_body(f, 0, ids[i])); /* all were opened in this minute */
    pass(f, 90000);
    for (int i = 0; i < 24; i++) {
        const bool here = has_body(f, 0, ids[i]);
        assert_false(kept > 0 && !here); /* those opened last */
        kept += here;
    }
    assert_in_range(kept, 8, 18);
    assert_int_equal(calls_with(f, "format=raw"), 24);
    assert_int_equal(failed_jobs(f), 0);
    finish(f);
}
