/* A search of what is here: the archive's words, the cache's, and the labels that a person sees (K5, K14;
 * view.h VWR1, VWR4).
 *
 * Method: the same mailbox with and without an archive, without a call in between. */
#include "reader_jobs_fixture.h"

#include "mail/search/search.h"

static void fetch_body(struct fixture *f, const char *id)
{
    uint64_t job = 0;
    OK(tide_reader_fetch(f->reader, f->accounts[0], id, &job, err));
    OK(settle(f));
    assert_true(has_body(f, 0, id));
}

static void look_at_all(struct fixture *f)
{
    poll_now(f, 0);
    OK(settle(f));
}

CASE(what_is_cached_is_found_by_its_headers_without_an_archive)
{
    const char *old = deliver(f, 0, 2 * DAY_MS);
    const char *young = deliver(f, 0, 1 * DAY_MS);
    look_at_all(f);
    const size_t calls = f->calls_count;
    assert_string_equal(found(f, 0, "from:anna"), textf("%s %s", young, old));
    assert_string_equal(found(f, 0, "gruße"), textf("%s %s", young, old));
    assert_string_equal(found(f, 0, "subject:\"grüße 0\""), old);
    assert_string_equal(found(f, 0, "to:me -subject:0"), young);
    assert_string_equal(found(f, 0, "older_than:36h"), old);
    assert_string_equal(found(f, 0, "in:inbox is:unread"), textf("%s %s", young, old));
    assert_string_equal(found(f, 0, "in:trash"), "");
    assert_string_equal(found(f, 0, "from:nobody OR subject:1"), young);
    assert_string_equal(found(f, 0, "rfc822msgid:1@example.com"), young);
    assert_string_equal(found(f, 0, "cc:anna"), "");
    assert_string_equal(found(f, 0, "bcc:anna OR list:anna"), "");
    assert_string_equal(found(f, 0, "larger:1M OR has:attachment"), "");
    assert_string_equal(found(f, 0, "label:unheard_of"), "no label");
    assert_int_equal(f->calls_count, calls);
}

CASE(a_body_is_found_by_its_words_as_long_as_it_is_here)
{
    const char *id = deliver(f, 0, 40 * DAY_MS);
    uint64_t job = 0;
    look_at_all(f);
    OK(tide_reader_more(f->reader, f->accounts[0], "INBOX", &job, err));
    OK(settle(f));
    assert_string_equal(found(f, 0, "from:anna"), id);
    fetch_body(f, id);
    assert_string_equal(found(f, 0, "\"hello 0\" from:anna"), id);
    assert_string_equal(found(f, 0, "hellos"), id); /* a form of it */
    assert_string_equal(found(f, 0, "+hellos"), "");
    assert_string_equal(found(f, 0, "hel*"), id);
    assert_string_equal(found(f, 0, "-hello"), "");
}

CASE(what_both_have_is_found_once_and_all_that_the_archive_alone_has)
{
    const char *both = deliver(f, 0, 1 * DAY_MS);
    look_at_all(f);
    const char *archived = deliver(f, 0, 200 * DAY_MS);
    assert_string_equal(found(f, 0, "from:anna"), both);
    archive(f, 0, both);
    archive(f, 0, archived);
    assert_string_equal(found(f, 0, "from:anna"), textf("%s %s", both, archived));
    assert_string_equal(found(f, 0, "\"hello 0\""), both);
    assert_string_equal(found(f, 0, "from:anna -\"hello 0\""), archived);
    for (uint64_t i = 0; i < 20; i++) {
        const char *id = deliver(f, 0, (2 + i) * DAY_MS);
        if (i % 3 != 0)
            archive(f, 0, id);
    }
    look_at_all(f);
    assert_int_equal(strlen(found(f, 0, "from:anna")), 22 * strlen(both) + 21);
}

CASE(the_labels_that_a_person_sees_decide)
{
    const char *both = deliver(f, 0, 1 * DAY_MS);
    const char *cached = deliver(f, 0, 2 * DAY_MS);
    const char *archived = deliver(f, 0, 200 * DAY_MS);
    archive(f, 0, both);
    archive(f, 0, archived);
    look_at_all(f);
    const char *const all = textf("%s %s %s", both, cached, archived);
    assert_string_equal(found(f, 0, "in:inbox from:anna"), all);
    (void)act(f, 0, "star", both);
    (void)act(f, 0, "star", cached);
    (void)act(f, 0, "star", archived);
    assert_string_equal(found(f, 0, "is:starred"),
                        cached); /* those of the archive follow with the upload */
    assert_string_equal(found(f, 0, "-is:starred"), "");
    OK(settle(f));
    assert_string_equal(found(f, 0, "is:starred"), all);
    (void)act(f, 0, "archive", cached);
    (void)act(f, 0, "trash", archived);
    assert_string_equal(found(f, 0, "in:inbox from:anna"), both);
    assert_string_equal(found(f, 0, "from:anna"), textf("%s %s", both, cached));
    assert_string_equal(found(f, 0, "in:trash"), archived);
}
