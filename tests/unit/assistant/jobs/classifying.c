/* Onboarding, sync and classification: labels, records and what follows (J7, J9, J10, J21, J25). */
#include "assistant_jobs_fixture.h"

CASE(onboarding_makes_nine_labels_and_seeds_the_history_id)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < TIDE_ASSISTANT_LABELS; i++)
        assert_true(box_mailbox_label_by_name(
            f->mailbox, tide_text_of(tide_assistant_label_name((tide_assistant_label)i)), &number));
    const uint32_t count = box_mailbox_labels_count(f->mailbox);
    OK(tide_assistant_onboard(f->jobs, f->account, err)); /* again */
    (void)settle(f);
    assert_int_equal(box_mailbox_labels_count(f->mailbox), count);
    assert_int_equal(failed_jobs(f), 0);
    /* Mail that was there before is not in the history: a full sync finds it. */
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 0);
}

/* A label that the user deletes in Gmail is made again by the next full sync, and what failed for want of
 * it is done.  One that was renamed is the same label. */
CASE(a_label_that_the_user_deletes_is_made_again)
{
    uint32_t number = 0;
    const uint32_t count = box_mailbox_labels_count(f->mailbox);
    f->category = "fyi";
    box_mailbox_label_remove(f->mailbox, label_number(f, TIDE_ASSISTANT_LABEL_FYI));
    deliver(f, "anna@example.com", "Offer", "text", NULL);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    assert_int_equal(failed_jobs(f), 1);
    sync_now(f, true);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SKIPPED);
    assert_string_equal(labels_of(f, f->thread), "FYI");
    assert_true(box_mailbox_label_by_name(
        f->mailbox, tide_text_of(tide_assistant_label_name(TIDE_ASSISTANT_LABEL_FYI)), &number));
    assert_int_equal(failed_jobs(f), 1); /* no more */
    /* And no other one was made. */
    const uint32_t after = box_mailbox_labels_count(f->mailbox);
    assert_true(after == count || after == count + 1); /* a number of a label is not used again */
    const struct box_label later = {.name = "Later"};
    OK(box_mailbox_label_update(f->mailbox, label_number(f, TIDE_ASSISTANT_LABEL_WAITING), &later));
    sync_now(f, true);
    assert_int_equal(box_mailbox_labels_count(f->mailbox), after);
}

CASE(a_new_message_is_classified_labeled_and_drafted)
{
    deliver(f, "Anna <anna@example.com>", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    const struct tide_assistant_email email = record(f, f->thread);
    assert_int_equal(email.category, TIDE_ASSISTANT_NEEDS_RESPONSE);
    assert_int_equal(email.status, TIDE_ASSISTANT_DRAFTED);
    assert_string_equal(email.sender, "anna@example.com");
    assert_string_equal(email.subject, "Offer");
    assert_string_equal(email.style, "business");
    assert_string_equal(email.message_id, f->message);
    assert_int_equal(email.messages, 1);
    assert_string_equal(labels_of(f, f->thread), "Outbox");
    assert_true(in_inbox(f, f->thread));
    assert_int_equal(drafts_of(f, f->thread, true), 1);
    assert_int_equal(events_of(f, f->thread, "classified"), 1);
    assert_int_equal(events_of(f, f->thread, "draft_created"), 1);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
    assert_int_equal(f->asked[ASKED_DRAFT], 1);
    assert_int_equal(failed_jobs(f), 0);
    const char *draft = draft_text(f, f->thread);
    assert_non_null(strstr(draft, "Re: Offer"));
    assert_non_null(strstr(draft, "anna@example.com"));
    assert_non_null(strstr(draft, "In-Reply-To:"));
    assert_non_null(strstr(draft, "\xe2\x9c\x82"));
    assert_non_null(strstr(draft, "Dear Anna, yes."));
    /* J17: nothing changes by more syncs. */
    for (int i = 0; i < 3; i++)
        sync_now(f, i == 2);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
    assert_int_equal(f->asked[ASKED_DRAFT], 1);
    assert_string_equal(labels_of(f, f->thread), "Outbox");
    assert_int_equal(drafts_of(f, f->thread, true), 1);
}

/* The model must know that the user has answered already. */
CASE(a_reply_of_the_user_is_a_part_of_the_question)
{
    f->category = "fyi";
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    edit_draft(f, f->thread, "I am on my way.\r\n");
    send_draft(f, f->thread);
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
    const char *mail = strstr(f->prompt, "Can you come?");
    assert_non_null(mail);
    assert_null(strstr(mail + 1, "Can you come?"));
    assert_non_null(strstr(f->prompt, "I am on my way."));
}

CASE(other_categories_get_their_label_and_no_draft)
{
    static const struct {
        const char *category, *label;
    } cases[] = {{"action_required", "Action Required"},
                 {"payment_request", "Payment Requests"},
                 {"fyi", "FYI"},
                 {"waiting", "Waiting"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        f->category = cases[i].category;
        deliver(f, "anna@example.com", textf("s%zu", i), "text", NULL);
        sync_now(f, false);
        assert_string_equal(labels_of(f, f->thread), cases[i].label);
        assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SKIPPED);
        assert_int_equal(drafts_of(f, f->thread, false), 0);
    }
    assert_int_equal(f->asked[ASKED_DRAFT], 0);
}

/* J21: known without a model, and what the model may not say of a machine. */
CASE(machines_need_no_response)
{
    deliver(f, "noreply@shop.example", "Your order", "text", NULL);
    sync_now(f, false);
    assert_string_equal(labels_of(f, f->thread), "FYI");
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
    assert_int_equal(drafts_of(f, f->thread, false), 0);
}

TEST_OF(a_blacklisted_sender_asks_no_model, struct fixture *f,
        begin("models: {fast: a, better: b}\ntriage: {blacklist: ['*@ads.example']}\n"), finish)
{
    deliver(f, "x@ads.example", "Buy", "text", NULL);
    sync_now(f, false);
    assert_string_equal(labels_of(f, f->thread), "FYI");
    assert_int_equal(f->asked[ASKED_CLASSIFY], 0);
}

/* J10: a model that answers nonsense or not at all: a person should look. */
CASE(a_model_that_fails_means_needs_response)
{
    f->answer = "I am a teapot";
    deliver(f, "anna@example.com", "one", "text", NULL);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).category, TIDE_ASSISTANT_NEEDS_RESPONSE);
    assert_string_equal(record(f, f->thread).confidence, "low");
    f->answer = NULL;
    f->model_fails = TIDE_PERMANENT;
    deliver(f, "anna@example.com", "two", "text", NULL);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).category, TIDE_ASSISTANT_NEEDS_RESPONSE);
    assert_string_equal(record(f, f->thread).confidence, "low");
    /* J11: and the draft says so. */
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_non_null(strstr(draft_text(f, f->thread), "out of order"));
    assert_int_equal(failed_jobs(f), 0);
    /* One that may work the next time is asked three times (J1). */
    f->model_fails = TIDE_SERVER;
    const unsigned before = f->asked[ASKED_CLASSIFY];
    deliver(f, "anna@example.com", "three", "text", NULL);
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_CLASSIFY] - before, 3);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(failed_jobs(f), 0);
}

TEST_OF(a_rule_gives_a_message_to_an_agent, struct fixture *f,
        begin("models: {fast: a, better: b}\nprofiles:\n  helpdesk: {system_prompt: help}\n"
              "rules:\n  - {name: crisp, when: {sender_domain: crisp.example}, "
              "route: agent, profile: helpdesk}\n"),
        finish)
{
    deliver(f, "bot@crisp.example", "Question", "text", NULL);
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_AGENT], 1);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 0);
    deliver(f, "anna@example.com", "Question", "text", NULL);
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_AGENT], 1);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
}

/* J5, and J4's window. */
CASE(a_full_sync_finds_what_has_no_label)
{
    deliver(f, "anna@example.com", "old", "text", NULL);
    char old[64];
    (void)snprintf(old, sizeof old, "%s", f->thread);
    pass(f, 11 * 24 * 60);
    deliver(f, "anna@example.com", "new", "text", NULL);
    /* The history is lost. */
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\"}");
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(record(f, old).status, TIDE_ASSISTANT_NO_STATUS);
    sync_now(f, true);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
}

/* J23: what the user did while the history was lost. */
CASE(after_an_expired_history_id_no_act_is_lost)
{
    char threads[4][64];
    for (unsigned i = 0; i < 4; i++) {
        f->category = i == 3 ? "fyi" : "needs_response";
        deliver(f, "anna@example.com", textf("s%u", i), "text", NULL);
        (void)snprintf(threads[i], sizeof threads[i], "%s", f->thread);
        sync_now(f, false);
    }
    label(f, threads[0], TIDE_ASSISTANT_LABEL_DONE, true);
    label(f, threads[1], TIDE_ASSISTANT_LABEL_REWORK, true);
    pass(f, 5);
    send_draft(f, threads[2]);
    label(f, threads[3], TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, true);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\",\"count\":1}");
    sync_now(f, false);
    assert_int_equal(record(f, threads[0]).status, TIDE_ASSISTANT_ARCHIVED);
    assert_int_equal(record(f, threads[1]).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(record(f, threads[1]).reworks, 1);
    assert_int_equal(record(f, threads[2]).status, TIDE_ASSISTANT_SENT);
    assert_int_equal(record(f, threads[3]).status, TIDE_ASSISTANT_DRAFTED);
    /* The next one finds nothing more. */
    const unsigned asked = f->asked[ASKED_DRAFT] + f->asked[ASKED_REWORK];
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\",\"count\":1}");
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_DRAFT] + f->asked[ASKED_REWORK], asked);
}

/* A message comes to a thread with a draft, the user asks for one on it, and history has expired. */
static void drafted_then_forgotten(struct fixture *f)
{
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    char thread[64];
    (void)snprintf(thread, sizeof thread, "%s", f->thread);
    pass(f, 5);
    f->category = "fyi";
    deliver(f, "anna@example.com", "Re: Offer", "never mind", thread);
    label(f, thread, TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, true);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\",\"count\":1}");
    sync_now(f, false);
}

static void back_to_inbox(struct fixture *f, uint32_t slot, void *arg)
{
    static const uint16_t inbox = BOX_LABEL_INBOX;
    (void)arg;
    box_mailbox_relabel(f->mailbox, slot, &inbox, 1, NULL, 0);
}

/* DCD5: of a thread that was done before it had a record nothing says so but its newest message, which has no Done. */
CASE(a_done_without_a_record_ends_with_the_next_message)
{
    char thread[64];
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    (void)snprintf(thread, sizeof thread, "%s", f->thread);
    label(f, thread, TIDE_ASSISTANT_LABEL_DONE, true);
    sync_now(f, false);
    assert_int_equal(record(f, thread).status, TIDE_ASSISTANT_NO_STATUS);
    assert_string_equal(labels_of(f, thread), "Done");
    each_message(f, thread, back_to_inbox, NULL);
    pass(f, 5);
    deliver(f, "anna@example.com", "Re: Offer", "And when?", thread);
    sync_now(f, false);
    assert_int_equal(record(f, thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_string_equal(labels_of(f, thread), "Outbox");
}

/* J25: a label on a message does not say that a sync saw it. */
CASE(after_an_expired_history_id_a_message_with_a_label_is_known)
{
    drafted_then_forgotten(f);
    assert_string_equal(record(f, f->thread).message_id, f->message);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SKIPPED);
    assert_string_equal(labels_of(f, f->thread), "FYI");
    assert_int_equal(drafts_of(f, f->thread, false), 0);
}

/* J16 and J25: a new message on a thread with a record. */
CASE(a_new_message_is_another_round)
{
    static const char *const first[] = {"waiting", "fyi", "needs_response"};
    for (size_t i = 0; i < 3; i++) {
        f->category = first[i];
        deliver(f, "anna@example.com", textf("s%zu", i), "text", NULL);
        sync_now(f, false);
        char thread[64];
        (void)snprintf(thread, sizeof thread, "%s", f->thread);
        f->category = "needs_response";
        f->text = "The second draft.";
        deliver(f, "anna@example.com", textf("Re: s%zu", i), "and?", thread);
        sync_now(f, false);
        assert_string_equal(f->thread, thread);
        assert_int_equal(record(f, thread).status, TIDE_ASSISTANT_DRAFTED);
        assert_int_equal(record(f, thread).messages, 2);
        assert_string_equal(labels_of(f, thread), "Outbox");
        assert_int_equal(drafts_of(f, thread, false), 1);
        assert_non_null(strstr(draft_text(f, thread), "The second draft."));
        assert_int_equal(events_of(f, thread, "retriaged"), 1);
        f->text = "Dear Anna, yes.";
        /* And one that needs none: the stale draft goes. */
        f->category = "fyi";
        deliver(f, "anna@example.com", textf("Re: s%zu", i), "thanks, done", thread);
        sync_now(f, false);
        assert_int_equal(record(f, thread).status, TIDE_ASSISTANT_SKIPPED);
        assert_string_equal(labels_of(f, thread), "FYI");
        assert_int_equal(drafts_of(f, thread, false), 0);
    }
    assert_int_equal(failed_jobs(f), 0);
}

static void another_comes(struct fixture *f, const char *kind)
{
    if (strcmp(kind, "draft") != 0)
        return;
    f->during = NULL;
    deliver(f, "anna@example.com", "Re: Offer", "One more thing.", f->thread);
}

/* A message that comes while the model writes: the draft knows it. */
CASE(a_draft_knows_the_message_that_came_meanwhile)
{
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    f->during = another_comes;
    sync_now(f, false);
    /* Before any sync tells of it: the draft of the old message was never made. */
    assert_int_equal(f->asked[ASKED_DRAFT], 2);
    assert_non_null(strstr(f->prompt, "One more thing."));
    assert_int_equal(drafts_of(f, f->thread, false), 1);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(record(f, f->thread).messages, 2);
    assert_non_null(strstr(f->prompt, "One more thing."));
    assert_int_equal(drafts_of(f, f->thread, false), 1);
}

/* J21: forced, with and without a draft that lives. */
CASE(a_person_may_have_it_classified_again)
{
    f->category = "fyi";
    deliver(f, "anna@example.com", "Offer", "text", NULL);
    sync_now(f, false);
    f->category = "needs_response";
    OK(tide_assistant_reclassify(f->jobs, f->account, f->thread, err));
    (void)settle(f);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_string_equal(labels_of(f, f->thread), "Outbox");
    OK(tide_assistant_reclassify(f->jobs, f->account, f->thread, err));
    (void)settle(f);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_string_equal(labels_of(f, f->thread), "Outbox");
    assert_int_equal(f->asked[ASKED_DRAFT], 1);
    f->category = "payment_request";
    OK(tide_assistant_reclassify(f->jobs, f->account, f->thread, err));
    (void)settle(f);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SKIPPED);
    assert_string_equal(labels_of(f, f->thread), "Payment Requests");
    assert_int_equal(drafts_of(f, f->thread, false), 0); /* the dangling draft is in the trash */
}

/* J2 */
CASE(a_job_of_an_unknown_user_fails)
{
    OK(tide_assistant_sync(f->jobs, f->model_account, false, err));
    (void)settle(f);
    assert_int_equal(failed_jobs(f), 1);
}

/* J27: over the day's budget the model says when to come back; nothing fails, nothing is asked
 * twice. */
CASE(over_the_budget_jobs_wait_for_the_next_day)
{
    f->again_ms = 20 * 3600 * 1000;
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    const uint64_t begun_ms = tide_sim_net_unix_ms(f->sim);
    sync_now(f, false);
    assert_true(tide_sim_net_unix_ms(f->sim) - begun_ms >= 20 * 3600 * 1000);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 2); /* refused, then answered */
    assert_int_equal(failed_jobs(f), 0);
}

/* A message that the user archived before it was its turn is left alone. */
CASE(what_left_the_inbox_is_not_classified)
{
    static const uint16_t inbox = BOX_LABEL_INBOX;
    deliver(f, "anna@example.com", "Offer", "text", NULL);
    box_mailbox_relabel(f->mailbox, box_mailbox_find(f->mailbox, tide_text_of(f->message)), NULL, 0,
                        &inbox, 1);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 0);
}

static void trash_one(struct fixture *f, uint32_t slot, void *arg)
{
    static const uint16_t trash = BOX_LABEL_TRASH, inbox = BOX_LABEL_INBOX;
    (void)arg;
    box_mailbox_relabel(f->mailbox, slot, &trash, 1, &inbox, 1);
}

/* J16: the thread has fewer messages than its record knew, and another one came. */
CASE(a_message_after_deleted_ones_is_another_round)
{
    char thread[64];
    f->category = "fyi";
    deliver(f, "anna@example.com", "Offer", "one", NULL);
    (void)snprintf(thread, sizeof thread, "%s", f->thread);
    deliver(f, "anna@example.com", "Re: Offer", "two", thread);
    sync_now(f, false);
    assert_int_equal(record(f, thread).messages, 2);
    each_message(f, thread, trash_one, NULL);
    f->category = "needs_response";
    deliver(f, "anna@example.com", "Re: Offer", "three", thread);
    sync_now(f, false);
    assert_string_equal(record(f, thread).message_id, f->message);
    assert_int_equal(record(f, thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(failed_jobs(f), 0);
}
