/* M20: an address in a query is that address, and a domain that domain, not words that others contain. */
#include "search_fixture.h"

static void mail_of(struct fixture *f, const char *from, const char *to, const char *cc,
                    const char *headers)
{
    struct mail *mail = &f->mails[f->count];
    *mail = (struct mail){.indexed = true};
    (void)snprintf(mail->id, sizeof mail->id, "m%04zu", f->count);
    (void)snprintf(mail->message_id, sizeof mail->message_id, "%zu@id.example", f->count);
    (void)snprintf(mail->from, sizeof mail->from, "%s", from);
    (void)snprintf(mail->to, sizeof mail->to, "%s", to);
    (void)snprintf(mail->cc, sizeof mail->cc, "%s", cc);
    (void)snprintf(mail->subject, sizeof mail->subject, "hello");
    (void)snprintf(mail->text, sizeof mail->text, "hello");
    (void)snprintf(mail->headers, sizeof mail->headers, "%s", headers);
    mail->ms = start_ms + (int64_t)f->count * 60000;
    mail_put(f, mail);
    f->count++;
}

static void fill_people(struct fixture *f)
{
    archive_open(f, false, 0);
    mail_of(f, "Bob <bob@example.com>", "me@example.com", "", "Delivered-To: me@example.com\r\n");
    mail_of(f, "jim.bob@example.com", "a.me@example.com", "", "Delivered-To: a.me@example.com\r\n");
    mail_of(f, "Bob <bob@example.com.au>", "ann@x.example", "Me <ME@EXAMPLE.COM>",
            "Delivered-To: <me@example.com.au>\r\n");
    mail_of(f, "\"bob@example.com\" <evil@other.example>", "ann@x.example", "", "");
    mail_of(f, "\"Bob, bob@example.com\" <evil@other.example>", "ann@x.example", "", "");
    mail_of(f, "News <bob@mail.example.com>", "Team: ann@x.example, bob@example.com;", "", "");
    mail_of(f, "BOB@Example.COM", "\"Lee, \\\"Ann\\\" <x\" <ann@x.example>", "bob+x@example.com",
            "");
    sync_all(f);
    index_all(f);
    OK(tide_archive_close(f->archive, &f->err));
    archive_open(f, true, 0);
}

static void finds(struct fixture *f, const char *text, const char *expected)
{
    static struct seen seen;
    tide_query *query = parse(f, text);
    char found[200] = "";
    size_t at = 0;
    uint64_t count = 0, bytes = 0;
    search_all(f, (struct tide_search){.query = query, .limit = 50, .oldest_first = true}, &seen);
    for (size_t i = 0; i < seen.count; i++)
        at +=
            (size_t)snprintf(found + at, sizeof found - at, i == 0 ? "%zu" : " %zu", seen.list[i]);
    if (strcmp(found, expected) != 0)
        fail_msg("%s finds %s, not %s", text, found, expected);
    OK(tide_search_count(f->archive, query, &count, &bytes, &f->err));
    assert_int_equal(count, seen.count);
    tide_query_free(query);
}

CASE(an_address_is_that_address)
{
    fill_people(f);
    finds(f, "from:bob@example.com", "0 6");
    finds(f, "from:\"bob@example.com\"", "0 6");
    finds(f, "from:<Bob@EXAMPLE.com>", "0 6");
    finds(f, "hello from:(jim.bob@example.com OR bob@example.com.au)", "1 2");
    finds(f, "-from:bob@example.com", "1 2 3 4 5");
    finds(f, "from:evil@other.example", "3 4");
    finds(f, "from:ob@example.com", "");
    finds(f, "from:bob@example.co*", "0 1 2 3 4 6"); /* the beginning of one is words */
    finds(f, "to:bob@example.com", "5");
    finds(f, "to:ann@x.example", "2 3 4 5 6");
    finds(f, "to:me@example.com", "0 2");
    finds(f, "to:me", "0 2");
    finds(f, "cc:me@example.com", "2");
    finds(f, "cc:x@example.com", "");
    finds(f, "deliveredto:me@example.com", "0");
    finds(f, "-deliveredto:me@example.com hello", "1 2 3 4 5 6");
}

CASE(a_domain_is_that_domain)
{
    fill_people(f);
    finds(f, "from:@example.com", "0 1 6"); /* and none under it */
    finds(f, "from:@mail.example.com", "5");
    finds(f, "from:example.com", "0 1 3 4 5 6"); /* under it, and in names, but not longer */
    finds(f, "from:example.com.au", "2");
    finds(f, "from:mail.example", "");
    finds(f, "from:jim.bob", "1"); /* before the '@' */
    finds(f, "from:\"mail.example\"", "5");
    finds(f, "deliveredto:@example.com", "0 1");
    finds(f, "deliveredto:example.com", "0 1");
    finds(f, "to:x.example -from:example.com", "2");
}
