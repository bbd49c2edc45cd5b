/* Threads are read and labeled (gmail_threads.h), their messages in parts (gmail_parts.h). */
#include "gmail_client_fixture.h"

#define TWO_TEXTS                                                                                  \
    "From: Anna <anna@example.com>\r\nTo: " ME "\r\nSubject: Offer\r\n"                            \
    "Message-ID: <1@example.com>\r\nMIME-Version: 1.0\r\n"                                         \
    "Content-Type: multipart/mixed; boundary=m\r\n\r\n"                                            \
    "--m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n"                               \
    "--a\r\nContent-Type: text/plain; charset=iso-8859-1\r\n"                                      \
    "Content-Transfer-Encoding: 8bit\r\n\r\nGr\xfc\xdf"                                            \
    "e\r\n"                                                                                        \
    "--a\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Hello</p>\r\n--a--\r\n"               \
    "--m\r\nContent-Type: text/plain; name=notes.txt\r\n"                                          \
    "Content-Disposition: attachment; filename=notes.txt\r\n\r\nnot the text\r\n--m--\r\n"

CASE(a_thread_comes_with_headers_texts_and_labels, 0)
{
    put(f, TWO_TEXTS, 10);
    char first[64];
    (void)snprintf(first, sizeof first, "%s", f->id);
    put(f, "From: " ME "\r\nTo: anna@example.com\r\nSubject: Re: Offer\r\n\r\nThanks\r\n", 20);
    const uint64_t before = units(f);
    run_ok(f, play_thread_get);
    assert_int_equal(units(f) - before, 40);
    assert_string_equal(f->thread.id, f->thread_id);
    assert_true(f->thread.history_id[0] != '\0');
    assert_int_equal(f->thread.count, 2);
    const struct tide_gmail_parts *one = &f->thread.messages[0];
    assert_string_equal(one->message.id.data, first);
    assert_string_equal(tide_gmail_parts_header(one, "subject").data, "Offer");
    assert_null(tide_gmail_parts_header(one, "X-None").data);
    assert_true(tide_gmail_parts_labeled(one, "INBOX"));
    assert_false(tide_gmail_parts_labeled(one, "SENT"));
    assert_non_null(strstr(tide_buf_cstr(&one->plain.bytes), "Gr"));
    assert_null(strstr(tide_buf_cstr(&one->plain.bytes), "not the text"));
    assert_non_null(strstr(one->plain.type.data, "iso-8859-1"));
    assert_non_null(strstr(tide_buf_cstr(&one->html.bytes), "<p>Hello</p>"));
    assert_int_equal(one->attachments, 1);
    assert_false(one->plain.cut);
    assert_true(one->snippet.bytes > 0);
    const struct tide_gmail_parts *two = &f->thread.messages[1];
    assert_string_equal(tide_buf_cstr(&two->plain.bytes), "Thanks\r\n");
    assert_int_equal(two->message.internal_ms - one->message.internal_ms, 600000);
    assert_ptr_equal(tide_gmail_thread_last(&f->thread), two);
    assert_int_equal(tide_gmail_thread_letters(&f->thread), 2);
    assert_true(tide_gmail_thread_labeled(&f->thread, "UNREAD"));
}

CASE(a_look_costs_no_bodies, 0)
{
    static const char *const headers[] = {"Subject", "X-Tidemark-Draft", NULL};
    put(f, TWO_TEXTS, 10);
    f->headers = headers;
    run_ok(f, play_thread_look);
    assert_non_null(strstr(f->url, "format=metadata"));
    assert_int_equal(f->thread.count, 1);
    assert_string_equal(tide_gmail_parts_header(&f->thread.messages[0], "Subject").data, "Offer");
    assert_null(tide_gmail_parts_header(&f->thread.messages[0], "From").data);
    assert_int_equal(f->thread.messages[0].plain.bytes.bytes, 0);
    f->headers = NULL;
    run_ok(f, play_thread_look);
    assert_non_null(strstr(f->url, "format=minimal"));
    assert_null(f->thread.messages[0].headers);
    assert_true(tide_gmail_parts_labeled(&f->thread.messages[0], "INBOX"));
    (void)snprintf(f->thread_id, sizeof f->thread_id, "ffffffffffff");
    assert_int_equal(run(f, play_thread_look), TIDE_GONE);
    assert_int_equal(f->thread.count, 0);
}

/* GTH2: the order of dates, and of the answer where they are equal. */
CASE(messages_are_in_the_order_of_their_dates, 0)
{
    (void)snprintf(f->thread_id, sizeof f->thread_id, "t1");
    f->say_http = 200;
    f->say = "{\"messages\":[{\"id\":\"c\",\"internalDate\":\"30\"},{\"id\":\"a\",\"internalDate\":"
             "\"10\"},"
             "{\"id\":\"d\",\"internalDate\":\"30\"},{\"id\":\"b\",\"internalDate\":\"20\"}],"
             "\"id\":\"t1\"}";
    run_ok(f, play_thread_get);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(f->thread.messages[i].message.id.data[0], "abcd"[i]);
    f->say = "{\"id\":\"t1\"}"; /* an empty list is absent */
    assert_int_equal(run(f, play_thread_get), TIDE_GONE);
}

/* GPT2: a long text is cut and says so; one that the server keeps apart is not there. */
CASE(a_long_text_is_cut, 0)
{
    const size_t bytes = TIDE_GMAIL_TEXT_BYTES_MAX + 1000;
    char *raw = malloc(bytes + 100);
    assert_non_null(raw);
    const int head = snprintf(raw, 100, "Subject: long\r\n\r\n");
    for (size_t i = 0; i < bytes; i++)
        raw[(size_t)head + i] = i % 70 == 69 ? '\n' : 'x';
    raw[(size_t)head + bytes] = '\0';
    put(f, raw, 1);
    free(raw);
    run_ok(f, play_thread_get);
    assert_true(f->thread.messages[0].plain.cut);
    assert_true(f->thread.messages[0].plain.bytes.bytes <= TIDE_GMAIL_TEXT_BYTES_MAX);
    (void)snprintf(f->thread_id, sizeof f->thread_id, "t1");
    f->say_http = 200;
    f->say = "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\",\"payload\":{\"mimeType\":\"text/plain\","
             "\"body\":{\"size\":9000000,\"attachmentId\":\"x\"}}}]}";
    run_ok(f, play_thread_get);
    assert_true(f->thread.messages[0].plain.cut);
    assert_int_equal(f->thread.messages[0].plain.bytes.bytes, 0);
}

/* GPT3, GTH3: a tree without end, and a thread without end. */
CASE(depth_and_length_are_bounded, 0)
{
    tide_buf say;
    tide_buf_init(&say, NULL, 1 << 20);
    (void)snprintf(f->thread_id, sizeof f->thread_id, "t1");
    f->say_http = 200;
    OK(f, tide_buf_add_text(&say, "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\",\"payload\":"));
    for (int i = 0; i < 200; i++)
        OK(f, tide_buf_add_text(&say, "{\"parts\":["));
    OK(f, tide_buf_add_text(&say, "{\"mimeType\":\"text/plain\",\"body\":{\"data\":\"QUJD\"}}"));
    for (int i = 0; i < 200; i++)
        OK(f, tide_buf_add_text(&say, "]}"));
    OK(f, tide_buf_add_text(&say, "}]}"));
    f->say = tide_buf_cstr(&say);
    run_ok(f, play_thread_get);
    assert_int_equal(f->thread.messages[0].plain.bytes.bytes, 0);
    for (int more = 0; more < 2; more++) {
        tide_buf_clear(&say);
        OK(f, tide_buf_add_text(&say, "{\"id\":\"t1\",\"messages\":[{\"id\":\"0\"}"));
        for (int i = 1; i < TIDE_GMAIL_IDS_MAX + more; i++)
            OK(f, tide_buf_print(&say, ",{\"id\":\"%d\"}", i));
        OK(f, tide_buf_add_text(&say, "]}"));
        f->say = tide_buf_cstr(&say);
        assert_int_equal(run(f, play_thread_get), more == 0 ? TIDE_OK : TIDE_FULL);
    }
    tide_buf_done(&say);
}

CASE(a_thread_is_labeled_as_a_whole, 0)
{
    static const char *const star[] = {"STARRED", NULL};
    static const char *const inbox[] = {"INBOX", "UNREAD", NULL};
    char ids[2][64];
    for (unsigned i = 0; i < 2; i++) {
        put(f, "Subject: a\r\n\r\nb\r\n", i);
        (void)snprintf(ids[i], sizeof ids[i], "%s", f->id);
    }
    f->add = star;
    f->take = inbox;
    const uint64_t before = units(f);
    run_ok(f, play_thread_modify);
    run_ok(f, play_thread_modify); /* again: harmless */
    assert_int_equal(units(f) - before, 20);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(has_label(f, tide_text_of(ids[i]), "STARRED"));
        assert_false(has_label(f, tide_text_of(ids[i]), "INBOX"));
    }
    (void)snprintf(f->thread_id, sizeof f->thread_id, "ffffffffffff");
    assert_int_equal(run(f, play_thread_modify), TIDE_GONE);
}

CASE(a_message_goes_to_the_trash, 0)
{
    put(f, "Subject: a\r\n\r\nb\r\n", 1);
    const uint64_t before = units(f);
    run_ok(f, play_trash);
    assert_int_equal(units(f) - before, 20);
    assert_true(has_label(f, tide_text_of(f->id), "TRASH"));
    run_ok(f, play_thread_look);
    assert_null(tide_gmail_thread_last(&f->thread));
    assert_int_equal(tide_gmail_thread_letters(&f->thread), 0);
    (void)snprintf(f->id, sizeof f->id, "ffffffffffff");
    run_ok(f, play_trash); /* gone is fine */
}

/* 409 and an answer that is lost both end in the label that is there. */
CASE(a_label_is_found_or_made, 0)
{
    f->text = TIDE_TEXT("\xf0\x9f\xa4\x96 AI/Needs Response");
    run_ok(f, play_label_ensure);
    char id[100];
    (void)snprintf(id, sizeof id, "%s", tide_buf_cstr(&f->new_id));
    run_ok(f, play_label_ensure);
    assert_string_equal(tide_buf_cstr(&f->new_id), id);
    assert_int_equal(f->requests, 1); /* the list is enough */
    f->text = TIDE_TEXT("\xf0\x9f\xa4\x96 ai/needs response");
    run_ok(f, play_label_ensure); /* Gmail's names ignore case */
    assert_string_equal(tide_buf_cstr(&f->new_id), id);
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.labels.create\",\"fault\":\"truncate\",\"count\":1}");
    f->text = TIDE_TEXT("lost");
    run_ok(f, play_label_ensure);
    assert_int_equal(f->requests, 3); /* list, create, list */
    assert_true(f->new_id.bytes > 0);
}
