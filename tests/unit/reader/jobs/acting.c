/* What a person does: shown at once, uploaded in order, put back when refused, undone (K11, K9). */
#include "reader_jobs_fixture.h"

static struct fixture *three(const char *ids[3])
{
    struct fixture *f = begin();
    for (uint64_t i = 0; i < 3; i++)
        ids[i] = deliver(f, 0, 1000 * (3 - i));
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(count_shown(f, 0, "INBOX"), 3);
    return f;
}

TEST(an_action_is_shown_at_once_and_reaches_the_server)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    const struct tide_reader_action action = act(f, 0, "archive", ids[1]);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", ids[2], ids[0]));
    assert_string_equal(shown(f, 0, "ALL"), textf("%s %s %s", ids[2], ids[1], ids[0]));
    (void)settle(f);
    assert_false(labeled(f, 0, ids[1], BOX_LABEL_INBOX));
    assert_int_equal(action_of(f, 0, action.id).state, TIDE_ACTION_DONE);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", ids[2], ids[0]));
    finish(f);
}

/* K16: lost connectivity delays the network, never the user's action on the cache. */
TEST(without_a_network_everything_is_done_here_and_uploaded_in_order_later)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    tide_sim_net_down(f->sim, true);
    const uint64_t begun_us = tide_world_now_us(tide_sim_world(f->sim));
    (void)act(f, 0, "trash", ids[0]);
    (void)act(f, 0, "star", ids[1]);
    (void)act(f, 0, "unstar", ids[1]);
    (void)act(f, 0, "read", ids[2]);
    assert_true(tide_world_now_us(tide_sim_world(f->sim)) - begun_us < 500000);
    assert_string_equal(shown(f, 0, "TRASH"), ids[0]);
    assert_string_equal(shown(f, 0, "STARRED"), "");
    assert_string_equal(shown(f, 0, "UNREAD"), textf("%s %s", ids[1], ids[0]));
    pass(f, 60000);
    assert_true(labeled(f, 0, ids[0], BOX_LABEL_INBOX));
    tide_sim_net_down(f->sim, false);
    (void)settle(f);
    assert_true(labeled(f, 0, ids[0], BOX_LABEL_TRASH));
    assert_false(labeled(f, 0, ids[0], BOX_LABEL_INBOX));
    assert_false(labeled(f, 0, ids[1], BOX_LABEL_STARRED));
    assert_false(labeled(f, 0, ids[2], BOX_LABEL_UNREAD));
    /* In order: four actions, one message each. */
    const char *const order[] = {ids[0], ids[1], ids[1], ids[2]};
    size_t at = 0;
    for (size_t i = 0; i < f->calls_count; i++)
        if (strstr(f->calls[i].what, "/modify") != NULL) {
            assert_true(at < 4);
            assert_non_null(strstr(f->calls[i].what, order[at++]));
        }
    assert_int_equal(at, 4);
    assert_int_equal(failed_jobs(f), 0);
    finish(f);
}

TEST(a_refused_action_is_put_back_and_says_why)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.messages.modify\",\"fault\":\"403\",\"count\":1}");
    const struct tide_reader_action refused = act(f, 0, "archive", ids[0]);
    const struct tide_reader_action next = act(f, 0, "archive", ids[1]);
    assert_string_equal(shown(f, 0, "INBOX"), ids[2]);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", ids[2], ids[0]));
    assert_int_equal(action_of(f, 0, refused.id).state, TIDE_ACTION_REFUSED);
    assert_true(strlen(action_of(f, 0, refused.id).error) > 0);
    assert_int_equal(action_of(f, 0, next.id).state, TIDE_ACTION_DONE); /* it holds nothing up */
    assert_int_equal(failed_jobs(f), 0);
    finish(f);
}

TEST(undo_takes_back_what_waits_and_inverts_what_is_done)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    uint64_t inverse = 9;
    tide_sim_net_down(f->sim, true);
    const struct tide_reader_action waiting = act(f, 0, "trash", ids[0]);
    OK(tide_reader_undo(f->reader, f->accounts[0], waiting.id, &inverse, err));
    if (inverse == 0) /* it had not begun */
        assert_int_equal(action_of(f, 0, waiting.id).state, TIDE_ACTION_UNDONE);
    assert_int_equal(count_shown(f, 0, "INBOX"), 3);
    tide_sim_net_down(f->sim, false);
    (void)settle(f);
    assert_true(labeled(f, 0, ids[0], BOX_LABEL_INBOX));
    assert_false(labeled(f, 0, ids[0], BOX_LABEL_TRASH));
    const struct tide_reader_action done = act(f, 0, "trash", ids[1]);
    (void)settle(f);
    assert_true(labeled(f, 0, ids[1], BOX_LABEL_TRASH));
    OK(tide_reader_undo(f->reader, f->accounts[0], done.id, &inverse, err));
    assert_int_not_equal(inverse, 0);
    assert_int_equal(count_shown(f, 0, "INBOX"), 3);
    (void)settle(f);
    assert_true(labeled(f, 0, ids[1], BOX_LABEL_INBOX));
    assert_false(labeled(f, 0, ids[1], BOX_LABEL_TRASH));
    assert_int_equal(action_of(f, 0, inverse).undo_of, done.id);
    finish(f);
}

TEST(deleting_for_ever_waits_and_can_be_undone_until_then)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    uint64_t inverse = 0;
    const struct tide_reader_action undone = act(f, 0, "delete", ids[0]);
    const struct tide_reader_action done = act(f, 0, "delete", ids[1]);
    assert_string_equal(shown(f, 0, "INBOX"), ids[2]);
    pass(f, 5000);
    OK(tide_reader_undo(f->reader, f->accounts[0], undone.id, &inverse, err));
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", ids[2], ids[0]));
    pass(f, 3000);
    assert_int_equal(calls_with(f, "DELETE"), 0);
    pass(f, 10000);
    (void)settle(f);
    assert_int_equal(calls_with(f, "DELETE"), 1);
    assert_int_equal(box_mailbox_find(f->mailboxes[0], tide_text_of(ids[1])), BOX_SLOT_NONE);
    assert_string_equal(shown(f, 0, "INBOX"), textf("%s %s", ids[2], ids[0]));
    assert_int_equal(tide_reader_undo(f->reader, f->accounts[0], done.id, &inverse, NULL),
                     TIDE_STALE);
    finish(f);
}

TEST(what_changes_nothing_is_no_action)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    const tide_text unknown = TIDE_TEXT("ffff");
    const struct tide_reader_wish wish = {
        .what = "archive", .messages = &unknown, .messages_count = 1};
    const struct tide_reader_wish odd = {.what = "fold", .messages = &unknown, .messages_count = 1};
    const struct tide_reader_wish bare = {
        .what = "label", .messages = &unknown, .messages_count = 1};
    struct tide_reader_action action;
    assert_int_equal(act(f, 0, "unstar", ids[0]).id, 0);
    assert_int_equal(tide_reader_act(f->reader, f->accounts[0], &wish, &action, NULL),
                     TIDE_NOT_FOUND);
    assert_int_equal(tide_reader_act(f->reader, f->accounts[0], &odd, &action, NULL), TIDE_INVALID);
    assert_int_equal(tide_reader_act(f->reader, f->accounts[0], &bare, &action, NULL),
                     TIDE_INVALID);
    (void)settle(f);
    assert_int_equal(calls_with(f, "POST"), 0);
    finish(f);
}

/* What the archive has can be acted on, before and after the server has it. */
TEST(a_message_of_the_archive_is_acted_on_like_any_other)
{
    struct fixture *f = begin();
    const char *id = deliver(f, 0, 1000);
    archive(f, 0, id);
    poll_now(f, 0);
    (void)settle(f);
    assert_string_equal(shown(f, 0, "INBOX"), id);
    (void)act(f, 0, "archive", id);
    assert_string_equal(shown(f, 0, "INBOX"), "");
    assert_string_equal(shown(f, 0, "ALL"), id);
    (void)settle(f);
    assert_false(labeled(f, 0, id, BOX_LABEL_INBOX));
    assert_string_equal(shown(f, 0, "ALL"), id);
    assert_string_equal(shown(f, 0, "INBOX"), "");
    assert_int_equal(calls_with(f, "format="), 0);
    finish(f);
}

TEST(a_pinned_message_is_kept_to_be_read_without_a_network)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    (void)act(f, 0, "pin", ids[1]);
    (void)settle(f);
    assert_true(has_body(f, 0, ids[1]));
    assert_false(has_body(f, 0, ids[0]));
    finish(f);
}

/* An action is made in a call for each set of changes: one of them may be refused. */
TEST(an_action_that_is_refused_halfway_says_what_was_done_and_what_not)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    (void)act(f, 0, "archive", ids[1]); /* so it loses nothing when it is thrown away */
    (void)settle(f);
    const tide_text messages[] = {tide_text_of(ids[0]), tide_text_of(ids[1]), tide_text_of(ids[2])};
    const struct tide_reader_wish wish = {
        .what = "trash", .messages = messages, .messages_count = 3};
    struct tide_reader_action action = {.id = 0};
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.messages.modify\",\"fault\":\"403\",\"count\":1}");
    OK(tide_reader_act(f->reader, f->accounts[0], &wish, &action, err));
    (void)settle(f);
    action = action_of(f, 0, action.id);
    assert_int_equal(action.state, TIDE_ACTION_REFUSED);
    assert_non_null(strstr(action.error, "2 of 3 messages"));
    assert_non_null(strstr(action.error, ids[1]));
    assert_null(strstr(action.error, ids[0]));
    assert_true(labeled(f, 0, ids[0], BOX_LABEL_TRASH) && labeled(f, 0, ids[2], BOX_LABEL_TRASH));
    assert_string_equal(shown(f, 0, "TRASH"), textf("%s %s", ids[2], ids[0]));
    assert_string_equal(shown(f, 0, "ALL"), ids[1]);
    assert_int_equal(failed_jobs(f), 0);
    finish(f);
}

/* ---- a clock that is set back ---- */

#define BACK_MS (-(int64_t)DAY_MS)

TEST(a_clock_that_is_set_back_neither_delays_nor_reorders_actions)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    tide_sim_net_down(f->sim, true);
    const struct tide_reader_action first = act(f, 0, "star", ids[0]);
    tide_sim_wall_jump(f->sim, BACK_MS);
    const struct tide_reader_action second = act(f, 0, "unstar", ids[0]);
    tide_sim_net_down(f->sim, false);
    pass(f, 120000);
    assert_int_equal(action_of(f, 0, first.id).state, TIDE_ACTION_DONE);
    assert_int_equal(action_of(f, 0, second.id).state, TIDE_ACTION_DONE);
    assert_false(labeled(f, 0, ids[0], BOX_LABEL_STARRED));
    assert_int_equal(calls_with(f, "/modify"), 2);
    finish(f);
}

/* With and without a new process: a job that is stored for a time waits for it by the new clock. */
TEST(after_a_clock_was_set_back_a_held_action_waits_at_most_its_hold_once_more)
{
    for (int again = 0; again < 2; again++) {
        const char *ids[3];
        struct fixture *f = three(ids);
        const struct tide_reader_action action = act(f, 0, "delete", ids[0]);
        pass(f, 5000);
        if (again)
            life_end(f);
        tide_sim_wall_jump(f->sim, BACK_MS);
        if (again)
            OK(life_begin(f));
        const uint64_t since_ms = now_ms(f);
        pass(f, 4000);
        assert_int_equal(calls_with(f, "DELETE"), 0);
        pass(f, 20000);
        assert_int_equal(action_of(f, 0, action.id).state, TIDE_ACTION_DONE);
        assert_true(call_with(f, "DELETE")->at_ms - since_ms < 21000);
        finish(f);
    }
}

/* What the server may have of an action is not mixed with another one: the one that was begun ends
 * first, whatever became due meanwhile. */
TEST(an_action_that_was_begun_ends_before_an_older_one_that_becomes_due)
{
    const char *ids[3];
    struct fixture *f = three(ids);
    const struct tide_reader_action held = act(f, 0, "delete", ids[0]);
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.messages.modify\",\"fault\":\"503\",\"count\":5}");
    const struct tide_reader_action begun = act(f, 0, "star", ids[1]);
    (void)settle(f);
    const struct tide_reader_action ends[] = {action_of(f, 0, begun.id), action_of(f, 0, held.id)};
    assert_int_equal(ends[0].state, TIDE_ACTION_DONE);
    assert_int_equal(ends[1].state, TIDE_ACTION_DONE);
    assert_true(ends[0].changed < ends[1].changed);
    assert_true(ends[0].ended_ms > held.due_ms); /* both were due by then */
    finish(f);
}
