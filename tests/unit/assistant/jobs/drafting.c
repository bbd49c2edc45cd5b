/* Drafts and what users do with them: Done, Rework, Needs Response, sending, discarding (J11 to J14,
 * J22, J24, J26). */
#include "assistant_jobs_fixture.h"

#include "assistant/text/marker.h"

static void drafted(struct fixture *f)
{
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    pass(f, 5);
}

CASE(done_archives_the_thread)
{
    drafted(f);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_ARCHIVED);
    assert_string_equal(labels_of(f, f->thread), "Done");
    assert_false(in_inbox(f, f->thread));
    assert_int_equal(events_of(f, f->thread, "archived"), 1);
    sync_now(f, true);
    assert_int_equal(events_of(f, f->thread, "archived"), 1);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
}

CASE(done_that_was_taken_back_does_nothing)
{
    drafted(f);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, false);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_true(in_inbox(f, f->thread));
}

static void archived(struct fixture *f)
{
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_ARCHIVED);
    assert_string_equal(labels_of(f, f->thread), "Done");
    assert_false(in_inbox(f, f->thread));
    assert_int_equal(failed_jobs(f), 0);
}

/* A message comes and the user is done with the thread: one sync sees both, and the round of the message
 * must not take Done off before it is carried out (DCD5).  In both orders, of a thread without a record,
 * with one, and with one that was archived before.  A round that asks no model ends before the cleanup. */
TEST_OF(a_message_and_done_in_one_sync_archive_the_thread, struct fixture *f,
        begin("models: {fast: a, better: b}\ntriage: {blacklist: ['*@ads.example']}\n"), finish)
{
    static const char *const senders[] = {"x@ads.example", "anna@example.com"};
    for (unsigned i = 0; i < 4; i++) {
        const char *from = senders[i % 2];
        const bool done_first = i >= 2;
        deliver(f, from, textf("s%u", i), "text", NULL);
        label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
        sync_now(f, false);
        assert_string_equal(labels_of(f, f->thread), "Done");
        assert_false(in_inbox(f, f->thread));
        for (unsigned round = 0; round < 2; round++) {
            if (done_first && round == 0) {
                deliver(f, from, textf("Re: s%u", i), "more", f->thread);
                sync_now(f, false);
                assert_int_not_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
                label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
                deliver(f, from, textf("Re: s%u", i), "and more", f->thread);
            } else {
                deliver(f, from, textf("Re: s%u", i), "more", f->thread);
                label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
            }
            sync_now(f, false);
            assert_string_equal(labels_of(f, f->thread), "Done");
            assert_false(in_inbox(f, f->thread));
        }
        assert_int_equal(failed_jobs(f), 0);
    }
}

/* J23: the same while the history is lost, of a thread that was archived before. */
CASE(done_on_a_new_message_of_an_archived_thread_outlives_an_expired_history_id)
{
    drafted(f);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
    sync_now(f, false);
    archived(f);
    f->category = "fyi";
    deliver(f, "anna@example.com", "Re: Offer", "never mind", f->thread);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\",\"count\":1}");
    sync_now(f, false);
    archived(f);
    assert_string_equal(record(f, f->thread).message_id, f->message);
}

/* A Done that was carried out is no command for the messages that come later, not even when history is
 * lost (J23). */
CASE(a_done_that_was_carried_out_does_not_archive_what_comes_later)
{
    drafted(f);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
    sync_now(f, false);
    f->category = "fyi";
    deliver(f, "anna@example.com", "Re: Offer", "one more thing", f->thread);
    sync_now(f, false);
    assert_string_equal(labels_of(f, f->thread), "FYI");
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\",\"count\":1}");
    sync_now(f, false);
    assert_string_equal(labels_of(f, f->thread), "FYI");
    assert_true(in_inbox(f, f->thread));
}

static void into_inbox(struct fixture *f, uint32_t slot, void *arg)
{
    static const uint16_t inbox = BOX_LABEL_INBOX;
    (void)arg;
    box_mailbox_relabel(f->mailbox, slot, &inbox, 1, NULL, 0);
}

/* The user moves a thread back that was archived with a message of its own round: it stays there, also when
 * history is lost or a person has it classified again. */
CASE(a_thread_that_the_user_moves_back_is_not_archived_again)
{
    drafted(f);
    deliver(f, "anna@example.com", "Re: Offer", "never mind", f->thread);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
    sync_now(f, false);
    archived(f);
    assert_string_equal(record(f, f->thread).message_id, f->message);
    assert_int_equal(record(f, f->thread).messages, 2);
    each_message(f, f->thread, into_inbox, NULL);
    f->category = "fyi";
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\",\"count\":1}");
    sync_now(f, false);
    assert_true(in_inbox(f, f->thread));
    OK(tide_assistant_reclassify(f->jobs, f->account, f->thread, err));
    (void)settle(f);
    assert_true(in_inbox(f, f->thread));
    assert_string_equal(labels_of(f, f->thread), "FYI");
    assert_int_equal(events_of(f, f->thread, "archived"), 1);
}

static void done_meanwhile(struct fixture *f, const char *kind)
{
    if (strcmp(kind, "draft") != 0)
        return;
    f->during = NULL;
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
}

/* The user is done with it while the model writes: the end of the draft leaves that. */
CASE(done_while_the_model_writes_is_carried_out)
{
    f->during = done_meanwhile;
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    sync_now(f, false);
    archived(f);
}

CASE(a_draft_that_the_user_sent_is_sent)
{
    drafted(f);
    send_draft(f, f->thread);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SENT);
    assert_string_equal(labels_of(f, f->thread), "");
    assert_int_equal(events_of(f, f->thread, "sent"), 1);
}

/* J24 */
CASE(a_draft_that_the_user_threw_away_is_discarded)
{
    drafted(f);
    discard_draft(f, f->thread);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SKIPPED);
    assert_string_equal(labels_of(f, f->thread), "");
    assert_int_equal(events_of(f, f->thread, "draft_discarded"), 1);
}

/* An edit replaces the message of the draft; the draft is still there. */
CASE(a_draft_that_the_user_edits_stays)
{
    drafted(f);
    edit_draft(f, f->thread, "Dear Anna, no.\r\n");
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_string_equal(labels_of(f, f->thread), "Outbox");
    assert_int_equal(drafts_of(f, f->thread, false), 1);
}

static void rework(struct fixture *f, const char *above)
{
    edit_draft(f, f->thread,
               textf("%s\r\n\r\n\xe2\x9c\x82\xef\xb8\x8f\r\n\r\nDear Anna, yes.\r\n", above));
    label(f, f->thread, TIDE_ASSISTANT_LABEL_REWORK, true);
    sync_now(f, false);
}

/* J13 and J26: three times, and no fourth. */
CASE(the_third_rework_is_the_last)
{
    drafted(f);
    for (unsigned i = 1; i <= 3; i++) {
        f->text = textf("Rework number %u", i);
        rework(f, textf("Make it shorter, %u.", i));
        assert_int_equal(f->asked[ASKED_REWORK], i);
        assert_non_null(strstr(f->prompt, textf("Make it shorter, %u.", i)));
        const struct tide_assistant_email email = record(f, f->thread);
        assert_int_equal(email.status, TIDE_ASSISTANT_DRAFTED);
        assert_int_equal(email.reworks, i);
        assert_int_equal(drafts_of(f, f->thread, false), 1);
        assert_string_equal(labels_of(f, f->thread), i == 3 ? "Action Required" : "Outbox");
        const char *draft = draft_text(f, f->thread);
        assert_non_null(strstr(draft, textf("Rework number %u", i)));
        assert_int_equal(strstr(draft, tide_last_rework_notice) != NULL, i == 3);
        pass(f, 5);
    }
    rework(f, "Once more.");
    assert_int_equal(f->asked[ASKED_REWORK], 3);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SKIPPED);
    assert_int_equal(events_of(f, f->thread, "rework_limit_reached"), 1);
    assert_string_equal(labels_of(f, f->thread), "Action Required");
    assert_int_equal(failed_jobs(f), 0);
}

/* drafts.rework_limit: 0. */
TEST_OF(without_reworks_the_first_one_is_over_the_limit, struct fixture *f,
        begin("models: {fast: a, better: b}\ndrafts: {rework_limit: 0}\n"), finish)
{
    drafted(f);
    rework(f, "Make it shorter.");
    assert_int_equal(f->asked[ASKED_REWORK], 0);
    assert_int_equal(events_of(f, f->thread, "rework_limit_reached"), 1);
    assert_string_equal(labels_of(f, f->thread), "Action Required");
    assert_int_equal(failed_jobs(f), 0);
}

/* J14, with notes and without. */
CASE(needs_response_by_the_user_is_a_draft)
{
    f->category = "fyi";
    deliver(f, "anna@example.com", "News", "text", NULL);
    sync_now(f, false);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, true);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(record(f, f->thread).category, TIDE_ASSISTANT_NEEDS_RESPONSE);
    assert_string_equal(labels_of(f, f->thread), "Outbox");
    assert_int_equal(drafts_of(f, f->thread, true), 1);
    /* A thread that the assistant never saw, with the user's notes. */
    static const uint16_t inbox = BOX_LABEL_INBOX;
    deliver(f, "bob@example.com", "Plan", "text", NULL);
    box_mailbox_relabel(f->mailbox, box_mailbox_find(f->mailbox, tide_text_of(f->message)), NULL, 0,
                        &inbox, 1);
    edit_draft(f, f->thread, "say no, politely\r\n");
    label(f, f->thread, TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, true);
    sync_now(f, false);
    assert_non_null(strstr(f->prompt, "say no, politely"));
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(drafts_of(f, f->thread, true), 1);
    assert_int_equal(drafts_of(f, f->thread, false), 1); /* the notes are in the trash */
    assert_int_equal(failed_jobs(f), 0);
}

static void message_during_draft(struct fixture *f, const char *kind)
{
    if (strcmp(kind, "draft") != 0)
        return;
    f->during = NULL;
    deliver(f, "bob@example.com", "Re: Plan", "And on Monday?", f->thread);
}

/* J14: the round begins again, and the notes count for it, too. */
CASE(notes_are_followed_also_when_another_message_comes)
{
    f->category = "fyi";
    deliver(f, "bob@example.com", "Plan", "text", NULL);
    sync_now(f, false);
    edit_draft(f, f->thread, "say no, politely\r\n");
    label(f, f->thread, TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, true);
    f->during = message_during_draft;
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_DRAFT], 2);
    assert_non_null(strstr(f->prompt, "And on Monday?"));
    assert_non_null(strstr(f->prompt, "say no, politely"));
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(drafts_of(f, f->thread, true), 1);
    assert_int_equal(drafts_of(f, f->thread, false), 1);
    assert_int_equal(failed_jobs(f), 0);
}

/* J10: a contact's style counts also where no model was asked for one. */
TEST_OF(a_draft_that_was_asked_for_has_the_style_of_its_sender, struct fixture *f,
        begin("models: {fast: a, better: b}\nstyles: {business: Formal., friendly: Warm.}\n"
              "contacts: {senders: {'bob@example.com': friendly}}\n"),
        finish)
{
    static const uint16_t inbox = BOX_LABEL_INBOX;
    deliver(f, "bob@example.com", "Plan", "text", NULL);
    box_mailbox_relabel(f->mailbox, box_mailbox_find(f->mailbox, tide_text_of(f->message)), NULL, 0,
                        &inbox, 1);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, true);
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 0);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_string_equal(record(f, f->thread).style, "friendly");
}

/* J22: the label that the assistant puts on is no command. */
CASE(our_own_label_is_no_command)
{
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false); /* Needs Response came and went; history has it */
    const unsigned asked = f->asked[ASKED_DRAFT];
    discard_draft(f, f->thread);
    sync_now(f, false);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SKIPPED);
    assert_int_equal(f->asked[ASKED_DRAFT], asked);
    assert_int_equal(events_of(f, f->thread, "manual_draft"), 0);
    /* The same label by the user is one. */
    label(f, f->thread, TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, true);
    sync_now(f, false);
    assert_int_equal(events_of(f, f->thread, "manual_draft"), 1);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
}

/* Both in one window of the history: ours, and the user's a moment later. */
CASE(the_users_label_after_ours_is_a_command)
{
    f->category = "fyi";
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    f->category = "needs_response";
    OK(tide_assistant_reclassify(f->jobs, f->account, f->thread, err));
    (void)settle(f); /* no sync has seen our label yet */
    discard_draft(f, f->thread);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, true);
    sync_now(f, false);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_string_equal(labels_of(f, f->thread), "Outbox");
    assert_int_equal(drafts_of(f, f->thread, false), 1);
}

/* J11: related mail, found by searches of the model. */
CASE(related_mail_is_shown_to_the_model)
{
    f->category = "fyi";
    deliver(f, "carl@example.com", "Meeting", "We meet in room 17.", NULL);
    sync_now(f, false);
    f->category = "needs_response";
    f->searches = "{\"searches\":[\"room\",\"from:carl@example.com\"]}";
    deliver(f, "anna@example.com", "Where?", "Where do we meet?", NULL);
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_CONTEXT], 1);
    assert_non_null(strstr(f->prompt, "We meet in room 17."));
    /* Nonsense is swallowed. */
    f->searches = "what?";
    deliver(f, "anna@example.com", "When?", "When do we meet?", NULL);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(failed_jobs(f), 0);
}

static void remove_one(struct fixture *f, uint32_t slot, void *arg)
{
    (void)arg;
    box_mailbox_remove(f->mailbox, slot);
}

static void thread_goes(struct fixture *f, const char *kind)
{
    if (strcmp(kind, "draft") == 0)
        each_message(f, f->thread, remove_one, NULL);
}

/* JBS8 resumes what is in work: there must be something to work on. */
CASE(a_thread_that_was_deleted_is_not_tried_again)
{
    f->during = thread_goes;
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SKIPPED);
    assert_int_equal(events_of(f, f->thread, "thread_gone"), 1);
    for (int i = 0; i < 2; i++) {
        pass(f, 61);
        sync_now(f, true);
    }
    assert_int_equal(events_of(f, f->thread, "resumed"), 0);
    assert_int_equal(failed_jobs(f), 0);
}

static void trash_one(struct fixture *f, uint32_t slot, void *arg)
{
    static const uint16_t trash = BOX_LABEL_TRASH, inbox = BOX_LABEL_INBOX;
    (void)arg;
    box_mailbox_relabel(f->mailbox, slot, &trash, 1, &inbox, 1);
}

static void thread_is_trashed(struct fixture *f, const char *kind)
{
    if (strcmp(kind, "draft") == 0)
        each_message(f, f->thread, trash_one, NULL);
}

/* It may come back from the trash: its label then says nothing of a draft that was never made. */
CASE(a_thread_that_was_trashed_loses_the_label_of_its_round)
{
    f->during = thread_is_trashed;
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SKIPPED);
    assert_string_equal(labels_of(f, f->thread), "");
    assert_int_equal(drafts_of(f, f->thread, false), 0);
    assert_int_equal(failed_jobs(f), 0);
}

/* ---- the end of a user (JBS10) ---- */

static void end_user(struct fixture *f, const char *kind)
{
    (void)kind;
    f->during = NULL;
    OK(tide_assistant_offboard(f->engine, ME, tide_world_now_unix_ms(tide_sim_world(f->sim)), err));
}

CASE(after_the_end_of_a_user_neither_gmail_nor_a_model_is_asked)
{
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    f->during = end_user; /* while the first question is answered */
    sync_now(f, false);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    assert_string_equal(labels_of(f, f->thread), "");
    deliver(f, "anna@example.com", "Again", "Can you come?", NULL);
    sync_now(f, true);
    assert_int_equal(f->asked[ASKED_CLASSIFY], 1);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    assert_int_equal(failed_jobs(f), 0);
}
