/* Messages that a person writes and sends (K11, E1.9; reader/drafts.h DRF1 to DRF8).
 *
 * The other account of the fixture is the recipient: what it gets is what was sent. */
#include "letters.h"
#include "support/scale.h"

CASE(a_message_is_sent_after_its_hold_with_its_files_and_nothing_of_it_is_left_here)
{
    struct tide_reader_action action;
    tide_auto_buf scratch = tide_buf_heap(1 << 20);
    poll_now(f, 0); /* so that the next poll reads the history */
    (void)settle(f);
    assert_int_equal(save(f, "d1", "{\"to\":\"\"}"), TIDE_OK);
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    assert_int_equal(attach(f, "d1", FILE_A, "plan.txt", TIDE_TEXT("the old plan")), TIDE_OK);
    assert_int_equal(attach(f, "d1", FILE_B, "plan.txt", TIDE_TEXT("the plan")), TIDE_OK);
    assert_false(file_is_there(f, FILE_A)); /* replaced */
    assert_int_equal(send_draft(f, "d1", &action), TIDE_OK);
    assert_true(action.id > 0);
    pass(f, 9000);
    assert_int_equal(calls_with(f, "drafts"), 0); /* it can still be undone */
    (void)settle(f);
    assert_int_equal(action_of(f, 0, action.id).state, TIDE_ACTION_DONE);
    assert_int_equal(received(f), 1);
    const tide_text got = box_mailbox_raw(f->mailboxes[1], 0, &scratch);
    assert_non_null(memmem(got.data, got.bytes, "Subject: Plan\r\n", 15));
    assert_non_null(memmem(got.data, got.bytes, "Here it is.", 11));
    assert_non_null(memmem(got.data, got.bytes, "plan.txt", 8));
    assert_non_null(memmem(got.data, got.bytes, "dGhlIHBsYW4=", 12)); /* "the plan" */
    assert_int_equal(with_label(f, BOX_LABEL_SENT), 1);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
    assert_int_equal(drafts_of(f).count, 0);
    assert_false(file_is_there(f, FILE_B));
    assert_int_equal(count_shown(f, 0, "SENT"), 1);        /* it was looked for */
    assert_int_equal(calls_with(f, "format=metadata"), 1); /* and its draft was not */
    assert_int_equal(failed_jobs(f), 0);
    assert_no_violation(f);
}

CASE(a_send_that_is_undone_in_time_sends_nothing_and_gives_the_draft_back)
{
    struct tide_reader_action action;
    uint64_t inverse = 9;
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    assert_int_equal(send_draft(f, "d1", &action), TIDE_OK);
    /* DRF2 */
    struct tide_reader_action second;
    bool removed = false;
    assert_int_equal(save(f, "d1", "{}"), TIDE_EXISTS);
    assert_int_equal(attach(f, "d1", FILE_A, "a", TIDE_TEXT("a")), TIDE_EXISTS);
    assert_false(file_is_there(f, FILE_A));
    assert_int_equal(send_draft(f, "d1", &second), TIDE_EXISTS);
    assert_int_equal(tide_reader_draft_drop(f->reader, f->accounts[0], "d1", &removed, NULL),
                     TIDE_EXISTS);
    pass(f, 5000);
    OK(tide_reader_undo(f->reader, f->accounts[0], action.id, &inverse, err));
    assert_int_equal(inverse, 0);
    (void)settle(f);
    assert_int_equal(received(f), 0);
    assert_int_equal(drafts_of(f).sending, 0);
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    assert_int_equal(send_draft(f, "d1", &action), TIDE_OK);
    (void)settle(f);
    assert_int_equal(received(f), 1);
    assert_int_equal(tide_reader_undo(f->reader, f->accounts[0], action.id, &inverse, NULL),
                     TIDE_STALE);
    assert_int_equal(received(f), 1);
}

CASE(a_refused_message_stays_a_draft_says_why_and_can_be_thrown_away_everywhere)
{
    struct tide_reader_action action;
    bool removed = false;
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.drafts.send\",\"fault\":\"403\",\"count\":1}");
    assert_int_equal(send_draft(f, "d1", &action), TIDE_OK);
    (void)settle(f);
    assert_int_equal(action_of(f, 0, action.id).state, TIDE_ACTION_REFUSED);
    assert_true(strlen(action_of(f, 0, action.id).error) > 0);
    assert_int_equal(received(f), 0);
    assert_int_equal(drafts_of(f).count, 1);
    assert_int_equal(drafts_of(f).sending, 0);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 1);
    OK(tide_reader_draft_drop(f->reader, f->accounts[0], "d1", &removed, err));
    assert_true(removed);
    (void)settle(f);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
    assert_int_equal(drafts_of(f).count, 0);
    OK(tide_reader_draft_drop(f->reader, f->accounts[0], "d1", &removed, err)); /* again is fine */
    assert_false(removed);
    assert_int_equal(failed_jobs(f), 0);
}

CASE(what_cannot_be_sent_or_kept_is_refused_at_once)
{
    struct tide_reader_action action;
    const tide_text message = TIDE_TEXT("m");
    assert_int_equal(save(f, "d1", "{\"to\":\"nobody\"}"), TIDE_OK); /* half typed */
    assert_int_equal(send_draft(f, "d1", &action), TIDE_INVALID);
    assert_int_equal(save(f, "d1", "{}"), TIDE_OK);
    assert_int_equal(send_draft(f, "d1", &action), TIDE_INVALID);
    assert_int_equal(send_draft(f, "none", &action), TIDE_NOT_FOUND);
    assert_int_equal(send_draft(f, "../d1", &action), TIDE_NOT_FOUND);
    const struct tide_reader_wish both = {
        .what = "send", .draft = "d1", .messages = &message, .messages_count = 1};
    assert_int_equal(tide_reader_act(f->reader, f->accounts[0], &both, &action, NULL),
                     TIDE_INVALID);
    assert_int_equal(save(f, "a/b", LETTER), TIDE_INVALID);
    assert_int_equal(save(f, "", LETTER), TIDE_INVALID);
    assert_int_equal(save(f, "d1", "[]"), TIDE_INVALID);
    assert_int_equal(save(f, "d1", "{\"to\":7}"), TIDE_INVALID);
    assert_int_equal(save(f, "d1", "{\"x\":\"y\"}"), TIDE_INVALID);
    assert_int_equal(attach(f, "none", FILE_A, "a", TIDE_TEXT("a")), TIDE_NOT_FOUND);
    assert_false(file_is_there(f, FILE_A));
    assert_int_equal(attach(f, "d1", FILE_A, "a\nb", TIDE_TEXT("a")), TIDE_INVALID);
    const struct tide_draft_file elsewhere = {
        .file = "../../secrets", .name = "a", .type = "", .bytes = 1};
    assert_int_equal(tide_reader_attach(f->reader, f->accounts[0], "d1", &elsewhere, NULL),
                     TIDE_INVALID);
    const struct tide_draft_file missing = {.file = FILE_B, .name = "a", .type = "", .bytes = 1};
    assert_int_equal(tide_reader_attach(f->reader, f->accounts[0], "d1", &missing, NULL),
                     TIDE_NOT_FOUND);
    pass(f, 20000);
    assert_int_equal(received(f), 0);
}

CASE(a_file_that_no_draft_lists_is_swept_and_those_of_drafts_stay)
{
    char path[300];
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    assert_int_equal(attach(f, "d1", FILE_A, "a.txt", TIDE_TEXT("a")), TIDE_OK);
    assert_true(tide_draft_path("/archive", ME, FILE_B, path, sizeof path));
    OK(tide_file_replace(tide_sim_world(f->sim), path, TIDE_TEXT("b"), 0600, err));
    OK(tide_reader_files_sweep(f->reader, f->accounts[0], err));
    pass(f, 3000000);
    OK(tide_reader_files_sweep(f->reader, f->accounts[0], err));
    assert_true(file_is_there(f, FILE_B)); /* its row may be on its way */
    pass(f, 3000000);
    OK(tide_reader_files_sweep(f->reader, f->accounts[0], err));
    assert_true(file_is_there(f, FILE_A));
    assert_false(file_is_there(f, FILE_B));
    OK(tide_reader_files_sweep(f->reader, f->accounts[1], err)); /* it has no directory */
}

/* ---- copies at the server ---- */

CASE(a_draft_is_copied_to_the_server_when_it_is_quiet_and_shown_once)
{
    struct tide_reader_action action;
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(save(f, "d1", "{\"to\":\"half ty\",\"text\":\"He\"}"), TIDE_OK);
    pass(f, 8000);
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    pass(f, 8000);
    assert_int_equal(calls_with(f, "drafts"), 0); /* somebody writes */
    pass(f, 3000);
    assert_int_equal(calls_with(f, "POST drafts"), 1);
    (void)settle(f);
    assert_copied(f, "Here it is.");
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK); /* the same again is no change */
    pass(f, 15000);
    assert_int_equal(calls_with(f, "PUT drafts"), 0);
    assert_int_equal(save(f, "d1", SECOND), TIDE_OK);
    assert_int_equal(attach(f, "d1", FILE_A, "plan.txt", TIDE_TEXT("the plan")), TIDE_OK);
    (void)settle(f);
    assert_int_equal(calls_with(f, "PUT drafts"), 1);
    assert_copied(f, "A second thought.");
    assert_true(server_has(f, "dGhlIHBsYW4="));
    assert_int_equal(send_draft(f, "d1", &action), TIDE_OK);
    (void)settle(f);
    assert_int_equal(received(f), 1);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 0);
    assert_int_equal(count_shown(f, 0, "SENT"), 1);
    assert_int_equal(calls_with(f, "POST drafts?"), 1); /* the one that was there was sent */
    assert_int_equal(failed_jobs(f), 0);
    assert_no_violation(f);
}

CASE(a_draft_that_is_closed_is_copied_at_once_and_a_large_one_only_then)
{
    struct tide_reader_action action;
    const struct tide_reader_wish none = {.what = "keep", .draft = "none"};
    char *big = malloc(2 << 20);
    assert_non_null(big);
    memset(big, 'x', 2 << 20);
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    close_it(f, "d1");
    pass(f, 1000);
    assert_true(server_has(f, "Here it is."));
    assert_int_equal(attach(f, "d1", FILE_A, "plan.txt", (tide_text){big, 2 << 20}), TIDE_OK);
    assert_int_equal(save(f, "d1", SECOND), TIDE_OK);
    pass(f, 60000);
    assert_true(server_has(f, "Here it is."));
    close_it(f, "d1");
    pass(f, 5000);
    assert_true(server_has(f, "A second thought."));
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    (void)settle(f); /* a page that vanished closes nothing; it is copied all the same */
    assert_true(server_has(f, "Here it is."));
    assert_int_equal(tide_reader_act(f->reader, f->accounts[0], &none, &action, NULL),
                     TIDE_NOT_FOUND);
    assert_int_equal(failed_jobs(f), 0);
    free(big);
}

CASE(a_draft_that_is_thrown_away_is_removed_at_the_server)
{
    bool removed = false;
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    assert_int_equal(save(f, "d2", SECOND), TIDE_OK);
    close_it(f, "d1");
    (void)settle(f);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 2);
    OK(tide_reader_draft_drop(f->reader, f->accounts[0], "d1", &removed, err));
    assert_true(removed);
    (void)settle(f);
    assert_copied(f, "A second thought.");
}

TEST(a_draft_that_was_written_without_a_network_is_copied_when_it_is_back)
{
    struct fixture *f = begin();
    poll_now(f, 0);
    (void)settle(f);
    tide_sim_net_down(f->sim, true);
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    close_it(f, "d1");
    pass(f, 30000);
    assert_int_equal(save(f, "d1", SECOND), TIDE_OK);
    pass(f, 30000);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
    tide_sim_net_down(f->sim, false);
    (void)settle(f);
    assert_copied(f, "A second thought.");
    finish(f);
}

CASE(what_is_changed_while_it_is_copied_is_copied_again)
{
    f->think_us = 4000000;
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    pass(f, 12000); /* its call waits for its answer */
    assert_int_equal(save(f, "d1", SECOND), TIDE_OK);
    (void)settle(f);
    assert_copied(f, "A second thought.");
}

CASE(a_refused_copy_stays_here_and_is_tried_again_when_it_changed)
{
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"403\",\"count\":1}");
    (void)settle(f);
    pass(f, 60000);
    assert_int_equal(calls_with(f, "POST drafts"), 1);
    assert_int_equal(drafts_of(f).count, 1);
    assert_int_equal(save(f, "d1", SECOND), TIDE_OK);
    (void)settle(f);
    assert_copied(f, "A second thought.");
    assert_int_equal(failed_jobs(f), 0);
}

/* The answer to the first call is lost, and the search that looks for the draft is behind. */
CASE(a_second_copy_that_a_lost_answer_made_is_removed_when_the_search_knows_it)
{
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-after\",\"count\":1}");
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.drafts.list\",\"fault\":\"list-empty\",\"count\":3}");
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    (void)settle(f);
    assert_int_equal(calls_with(f, "POST drafts"), 2);
    assert_copied(f, "Here it is.");
}

/* DRF6 and K9: last write wins. */
CASE(a_copy_that_another_program_changed_or_removed_is_written_again)
{
    struct tide_reader_action action;
    tide_auto_buf scratch = tide_buf_heap(1 << 20);
    const struct box_insert other = {
        .raw = TIDE_TEXT("To: " YOU "\r\nSubject: Plan\r\n\r\nFrom a phone.\r\n"),
        .date_ms = now_ms(f)};
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    (void)settle(f);
    box_mailbox_draft_update(f->mailboxes[0], 0, &other);
    poll_now(f, 0);
    (void)settle(f);
    assert_copied(f, "From a phone."); /* nothing was changed here since (taking.c) */
    assert_int_equal(save(f, "d1", SECOND), TIDE_OK);
    (void)settle(f);
    assert_copied(f, "A second thought.");
    box_mailbox_draft_remove(f->mailboxes[0], 0);
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    (void)settle(f);
    assert_copied(f, "Here it is.");
    box_mailbox_draft_update(f->mailboxes[0], 1, &other);
    assert_int_equal(send_draft(f, "d1", &action), TIDE_OK);
    (void)settle(f);
    assert_int_equal(received(f), 1);
    const tide_text got = box_mailbox_raw(f->mailboxes[1], 0, &scratch);
    assert_non_null(memmem(got.data, got.bytes, "Here it is.", 11)); /* what was checked */
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
}

/* DRF4: whichever call fails, before its effect or after. */
TEST(there_are_never_two_copies_whichever_call_fails)
{
    static const char *const faults[] = {"500", "reset-before", "reset-after", "garbage",
                                         "truncate"};
    for (size_t kind = 0; kind < sizeof faults / sizeof faults[0]; kind++)
        for (unsigned at = 0; at < 4; at++) {
            struct fixture *f = begin();
            char rule[200];
            bool removed = false;
            (void)snprintf(rule, sizeof rule,
                           "{\"method\":\"gmail.users.drafts.*\",\"fault\":\"%s\",\"count\":1,"
                           "\"after\":%u}",
                           faults[kind], at);
            poll_now(f, 0);
            (void)settle(f);
            tide_sim_cloud_fault(f->cloud, f->sim, rule);
            assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
            (void)settle(f);
            assert_copied(f, "Here it is.");
            assert_int_equal(save(f, "d1", SECOND), TIDE_OK);
            (void)settle(f);
            assert_copied(f, "A second thought.");
            OK(tide_reader_draft_drop(f->reader, f->accounts[0], "d1", &removed, err));
            (void)settle(f);
            assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
            assert_int_equal(drafts_of(f).count, 0);
            finish(f);
        }
}

/* ---- deaths ---- */

static void live(struct fixture *f, uint64_t steps)
{
    struct tide_reader_action action;
    f->may_die = true;
    tide_sim_crash_after(f->sim, steps,
                         steps % 2 == 0 ? TIDE_SIM_CRASH_KILL : TIDE_SIM_CRASH_POWER);
    if (life_begin(f) == TIDE_OK) {
        (void)save(f, "d1", LETTER);
        (void)attach(f, "d1", FILE_A, "plan.txt", TIDE_TEXT("the plan"));
        (void)send_draft(f, "d1", &action);
        (void)settle(f);
    }
    life_end(f);
    tide_sim_reboot(f->sim);
    f->may_die = false;
}

struct accepted {
    uint32_t account;
    uint64_t count;
    tide_action_state state;
};

static void note_action(const struct tide_reader_action *action, void *arg)
{
    struct accepted *accepted = arg;
    accepted->count++;
    accepted->state = action->state;
}

static tide_status read_accepted(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct accepted *accepted = arg;
    accepted->count = 0;
    return tide_actions_each(tide_transaction_rows(transaction), accepted->account, 10, note_action,
                             accepted, err);
}

static void check(struct fixture *f, uint64_t steps)
{
    struct accepted accepted = {.account = f->accounts[0]};
    OK(tide_transact(f->engine, read_accepted, &accepted, err));
    if (received(f) != accepted.count || with_label(f, BOX_LABEL_SENT) != accepted.count)
        fail_msg("step %" PRIu64 ": accepted %" PRIu64 ", received %" PRIu32 ", sent %" PRIu32,
                 steps, accepted.count, received(f), with_label(f, BOX_LABEL_SENT));
    if (accepted.count == 1 && accepted.state != TIDE_ACTION_DONE)
        fail_msg("step %" PRIu64 ": the action is %s", steps,
                 tide_action_state_name(accepted.state));
    if (accepted.count == 1 && (drafts_of(f).count != 0 || with_label(f, BOX_LABEL_DRAFT) != 0))
        fail_msg("step %" PRIu64 ": a draft is left", steps);
    OK(tide_reader_files_sweep(f->reader, f->accounts[0], err));
    pass(f, 3600000);
    OK(tide_reader_files_sweep(f->reader, f->accounts[0], err));
    if (accepted.count == 1 && file_is_there(f, FILE_A))
        fail_msg("step %" PRIu64 ": a file is left", steps);
    assert_int_equal(failed_jobs(f), 0);
    assert_no_violation(f);
}

/* A draft is written, copied, changed, copied, and thrown away or sent.  Whether it was accepted. */
static bool live_writing(struct fixture *f, uint64_t steps, bool thrown)
{
    struct tide_reader_action action;
    bool removed = false;
    bool saved = false;
    f->may_die = true;
    tide_sim_crash_after(f->sim, steps,
                         steps % 2 == 0 ? TIDE_SIM_CRASH_KILL : TIDE_SIM_CRASH_POWER);
    if (life_begin(f) == TIDE_OK) {
        saved = save(f, "d1", LETTER) == TIDE_OK;
        (void)settle(f);
        (void)save(f, "d1", SECOND);
        (void)settle(f);
        if (thrown)
            (void)tide_reader_draft_drop(f->reader, f->accounts[0], "d1", &removed, NULL);
        else
            (void)send_draft(f, "d1", &action);
        (void)settle(f);
    }
    life_end(f);
    tide_sim_reboot(f->sim);
    f->may_die = false;
    return saved;
}

/* DRF4, DRF5, DRF7. */
TEST(a_draft_is_at_the_server_once_and_never_lost_wherever_the_process_dies)
{
    static const char *const settings[] = {"reader.hold=0s", NULL};
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    const uint64_t stride = 2400 / scaled_at_least(80, 10);
    uint64_t last = 0;
    for (uint64_t steps = 1;; steps += stride) {
        struct fixture *f = begin_in(11, &options);
        f->settings = settings;
        OK(life_begin(f));
        poll_now(f, 0);
        (void)settle(f);
        life_end(f);
        tide_sim_reboot(f->sim);
        const bool thrown = (steps / stride) % 2 == 0;
        const bool saved = live_writing(f, steps, thrown);
        const bool died = tide_sim_stats(f->sim).crashes > 0;
        tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
        OK(life_begin(f));
        (void)settle(f);
        check_writing(f, steps, saved && !thrown);
        finish(f);
        if (!died)
            break;
        last = steps;
    }
    (void)printf("interrupted up to step %" PRIu64 "\n", last);
    assert_true(last > 200);
}

/* E1.9: what was accepted is sent, and once. */
TEST(an_accepted_message_is_sent_once_wherever_the_process_dies)
{
    static const char *const settings[] = {"reader.hold=0s", NULL};
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    const uint64_t stride = 1600 / scaled_at_least(60, 10);
    uint64_t last = 0;
    for (uint64_t steps = 1;; steps += stride) {
        struct fixture *f = begin_in(9, &options);
        f->settings = settings;
        OK(life_begin(f));
        poll_now(f, 0);
        (void)settle(f);
        life_end(f);
        tide_sim_reboot(f->sim);
        live(f, steps);
        const bool died = tide_sim_stats(f->sim).crashes > 0;
        tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
        OK(life_begin(f));
        (void)settle(f);
        check(f, steps);
        finish(f);
        if (!died)
            break;
        last = steps;
    }
    (void)printf("interrupted up to step %" PRIu64 "\n", last);
    assert_true(last > 100);
}
