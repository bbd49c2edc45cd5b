/* Drafts are made once, found by their token, read and removed (gmail_drafts.h); replies are sent
 * once. */
#include "gmail_client_fixture.h"
#include "support/heap.h"

#define DRAFT(token)                                                                               \
    "To: anna@example.com\r\nSubject: Re: Offer\r\nX-Tidemark-Draft: " token "\r\n\r\nDear "       \
    "Anna\r\n"

static void make(struct fixture *f, const char *raw)
{
    f->text = tide_text_of(raw);
    run_ok(f, play_draft_create);
}

CASE(a_draft_is_made_in_its_thread_and_found_by_its_token, 0)
{
    be_patient(f);
    put(f, "From: anna@example.com\r\nSubject: Offer\r\n\r\nb\r\n", 1);
    uint64_t before = units(f);
    make(f, DRAFT("one"));
    assert_int_equal(units(f) - before, 10);
    const struct tide_gmail_draft one = f->draft;
    assert_string_equal(one.thread_id, f->thread_id);
    make(f, DRAFT("two"));
    f->text = TIDE_TEXT("one");
    before = units(f);
    run_ok(f, play_draft_find);
    assert_int_equal(units(f) - before, 45);
    assert_string_equal(f->draft.id, one.id);
    assert_string_equal(f->draft.message_id, one.message_id);
    f->text = TIDE_TEXT("on");
    assert_int_equal(run(f, play_draft_find), TIDE_NOT_FOUND);
    run_ok(f, play_draft_get);
    assert_string_equal(tide_buf_cstr(&f->parts.plain.bytes), "Dear Anna\r\n");
    assert_string_equal(tide_gmail_parts_header(&f->parts, "Subject").data, "Re: Offer");
    assert_true(tide_gmail_parts_labeled(&f->parts, "DRAFT"));
    /* GDR1: in the trash it is neither found nor there. */
    (void)snprintf(f->id, sizeof f->id, "%s", one.message_id);
    run_ok(f, play_trash);
    assert_int_equal(run(f, play_draft_get), TIDE_GONE);
    assert_null(f->parts.message.fields);
    f->text = TIDE_TEXT("one");
    assert_int_equal(run(f, play_draft_find), TIDE_NOT_FOUND);
    (void)snprintf(f->thread_id, sizeof f->thread_id, "ffffffffffff");
    assert_int_equal(run(f, play_draft_find), TIDE_NOT_FOUND);
}

/* After a lost answer the draft is there, and the token says which it is. */
CASE(a_lost_answer_is_not_a_second_draft, 0)
{
    be_patient(f);
    put(f, "From: anna@example.com\r\nSubject: Offer\r\n\r\nb\r\n", 1);
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-after\",\"count\":1}");
    f->text = TIDE_TEXT(DRAFT("tok"));
    assert_int_equal(run(f, play_draft_create), TIDE_UNKNOWN);
    f->text = TIDE_TEXT("tok");
    run_ok(f, play_draft_find);
    assert_true(f->draft.id[0] != '\0');
    f->text = TIDE_TEXT_NONE;
    run_ok(f, play_drafts_list);
    assert_int_equal(json_array_size(f->drafts.drafts), 1);
}

CASE(drafts_are_listed_page_by_page_and_deleted, 0)
{
    enum { COUNT = 503 };
    for (unsigned i = 0; i < COUNT; i++) {
        const struct box_insert message = {.raw =
                                               tide_text_of(textf("Subject: %u\r\n\r\nx\r\n", i)),
                                           .date_ms = 1767225600000 + i};
        (void)box_mailbox_draft_create(mailbox_of(f), &message);
    }
    const uint64_t before = units(f);
    f->text = TIDE_TEXT_NONE;
    run_ok(f, play_drafts_list);
    assert_int_equal(units(f) - before, 5);
    assert_int_equal(json_array_size(f->drafts.drafts), 500);
    char next[100];
    (void)snprintf(next, sizeof next, "%s", f->drafts.next.data);
    f->text = tide_text_of(next);
    run_ok(f, play_drafts_list);
    assert_int_equal(json_array_size(f->drafts.drafts), 3);
    assert_int_equal(f->drafts.next.bytes, 0);
    /* The last one of the last page is found all the same. */
    const json_t *last = json_array_get(f->drafts.drafts, 2);
    const json_t *message = json_object_get(last, "message");
    (void)snprintf(f->thread_id, sizeof f->thread_id, "%s",
                   json_string_value(json_object_get(message, "threadId")));
    (void)snprintf(f->draft.id, sizeof f->draft.id, "%s",
                   json_string_value(json_object_get(last, "id")));
    run_ok(f, play_draft_delete);
    run_ok(f, play_draft_delete); /* gone is fine */
    assert_int_equal(run(f, play_draft_get), TIDE_GONE);
}

CASE(a_reply_is_sent_once, 0)
{
    be_patient(f);
    put(f, "From: anna@example.com\r\nSubject: Offer\r\nMessage-ID: <1@x>\r\n\r\nb\r\n", 1);
    f->send = (struct tide_gmail_send){
        .message = TIDE_TEXT("From: " ME "\r\nTo: anna@example.com\r\nSubject: Re: Offer\r\n"
                             "Message-ID: <2@x>\r\nIn-Reply-To: <1@x>\r\n\r\nHello\r\n"),
        .message_id = "<2@x>"};
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.messages.send\",\"fault\":\"reset-after\",\"count\":1}");
    assert_int_equal(run(f, play_reply_send), TIDE_UNKNOWN);
    f->send.again = true;
    const uint64_t before = units(f);
    run_ok(f, play_reply_send);
    assert_int_equal(units(f) - before, 5); /* found, not sent again */
    assert_int_equal(f->new_id.bytes, 0);
    run_ok(f, play_thread_look);
    assert_int_equal(f->thread.count, 2);
    assert_true(tide_gmail_parts_labeled(&f->thread.messages[1], "SENT"));
    f->send.message_id = "<3@x>";
    run_ok(f, play_reply_send);
    assert_true(f->new_id.bytes > 0);
    (void)snprintf(f->thread_id, sizeof f->thread_id, "ffffffffffff");
    f->send.again = false;
    assert_int_equal(run(f, play_reply_send), TIDE_GONE);
}
