/* Addresses, subjects, ids and dates as people and their programs write them. */
#include "support/test.h"
#include "unit/mail/message_fixture.h"

/* ---- headers ---- */

struct header_example {
    const char *header; /* one or more lines, without the last line end */
    const char *from, *to, *subject;
};

static const struct header_example header_examples[] = {
    {"From: ann@example.org", "ann@example.org", "", ""},
    {"From: Ann Lee <ann@example.org>", "Ann Lee <ann@example.org>", "", ""},
    {"FROM:\"Lee, Ann\" <ann@example.org>", "\"Lee, Ann\" <ann@example.org>", "", ""},
    {"From: ann@example.org (Ann Lee)", "Ann Lee <ann@example.org>", "", ""},
    {"From: \"ann@example.org\" <ann@example.org>", "ann@example.org", "", ""},
    {"From: Ann Lee", "Ann Lee", "", ""},
    {"From: \"Ann \\\"the\\\" Lee\" <a@b>", "\"Ann \\\"the\\\" Lee\" <a@b>", "", ""},
    {"From: =?utf-8?Q?J=C3=BCrgen_M=C3=BCller?= <j@b.de>", "J\303\274rgen M\303\274ller <j@b.de>",
     "", ""},
    {"From: \"=?utf-8?B?SsO8cmdlbg==?=\" <j@b.de>", "J\303\274rgen <j@b.de>", "", ""},
    {"From: =?utf-8?Q?Lee,_Ann:_x?= <a@b>", "\"Lee, Ann: x\" <a@b>", "", ""},
    {"From: J\374rgen <j@b.de>", "J\303\274rgen <j@b.de>", "", ""},
    {"From: J\303\274rgen <j@b.de>", "J\303\274rgen <j@b.de>", "", ""},
    {"From: \"unfinished <a@b>", "unfinished <a@b>", "", ""},
    {"From: Ann <ann@example.org", "Ann <ann@example.org>", "", ""},
    {"From: <@relay.example,@other.example:ann@example.org>", "ann@example.org", "", ""},
    {"From: <mailto:ann@example.org>", "mailto:ann@example.org", "", ""},
    {"From: \"a b\"@example.org", "\"a b\"@example.org", "", ""},
    {"From: a@[IPv6:2001:db8::1]", "a@[IPv6:2001:db8::1]", "", ""},
    {"From:", "", "", ""},
    {"To: a@b, Bob <b@c>,, c@d", "", "a@b, Bob <b@c>, c@d", ""},
    {"To: a@b; b@c", "", "a@b, b@c", ""},
    {"To: a@b\r\nTo: c@d", "", "a@b, c@d", ""},
    {"To: Team: Ann <a@b>, b@c;, d@e", "", "Team: Ann <a@b>, b@c, d@e", ""},
    {"To: undisclosed-recipients:;", "", "undisclosed-recipients", ""},
    {"To: a (one (two) three) @ b . c", "", "one (two) three <a@b.c>", ""},
    {"To: a@b,\r\n\tBob\r\n <b@c>", "", "a@b, Bob <b@c>", ""},
    {"Subject: plain", "", "", "plain"},
    {"subject :  spaces \t and tabs  ", "", "", "spaces and tabs"},
    {"Subject: folded\r\n one\r\n\ttwo", "", "", "folded one two"},
    {"Subject: =?iso-8859-1?Q?a=E4?= =?iso-8859-1?q?=F6?=", "", "", "a\303\244\303\266"},
    {"Subject: =?utf-8?B?w?= =?utf-8?B?7w=?=", "", "", "\303\257"},
    /* The two bytes of one letter in two words. */
    {"Subject: =?utf-8?Q?a=C3?=\r\n =?utf-8?Q?=A4b?=", "", "", "a\303\244b"},
    {"Subject: a =?utf-8?Q?b?= c =?utf-8?Q?d?= e", "", "", "a b c d e"},
    {"Subject: =?utf-8*de?Q?b?=", "", "", "b"},
    {"Subject: =?utf-8?X?b?= =?utf-8?Q?", "", "", "=?utf-8?X?b?= =?utf-8?Q?"},
    {"Subject: =?utf-8?Q?with space?=", "", "", "with space"},
    {"Subject: =?iso-2022-jp?B?GyRCRnxLXDhsGyhC?=", "", "", "\346\227\245\346\234\254\350\252\236"},
    {"Subject: =?gb2312?B?vPLM5Q==?= =?big5?B?wWPF6Q==?=", "", "",
     "\347\256\200\344\275\223\347\271\201\351\253\224"},
    {"Subject: \033$BF|K\\8l\033(B", "", "", "\346\227\245\346\234\254\350\252\236"},
    {"Subject: bell \a and nul\001", "", "", "bell and nul"},
    {"Subject:\r\nSubject: second", "", "", "second"},
    {"Subject: one\r\nSubject: two", "", "", "one"},
    {"X: y\r\nthis line is no header\r\nSubject: z", "", "", "z"},
};

static void check_header(const struct header_example *example)
{
    char text[1024];
    int bytes = snprintf(text, sizeof text, "%s\r\n\r\nbody\r\n", example->header);
    tide_text raw = exact((tide_text){text, (size_t)bytes});
    struct parsed parsed;
    parse(raw, &parsed);
    assert_text(parsed.message.from, example->from);
    assert_text(parsed.message.to, example->to);
    assert_text(parsed.message.subject, example->subject);
    assert_text(parsed.message.text, "body\n");
    assert_int_equal(parsed.message.parsed, TIDE_PARSED_WHOLE);
    parsed_done(&parsed);
    exact_free(raw);
}

TEST(headers_are_read_as_people_write_them)
{
    for (size_t i = 0; i < sizeof header_examples / sizeof header_examples[0]; i++)
        check_header(&header_examples[i]);
}

TEST(raw_headers_take_the_charset_of_the_text)
{
    tide_text raw = TIDE_TEXT("Subject: \274\362\314\345\326\320\316\304\r\n"
                              "Content-Type: text/plain; charset=gb2312\r\n\r\nx\r\n");
    struct parsed parsed;
    parse(raw, &parsed);
    assert_text(parsed.message.subject, "\347\256\200\344\275\223\344\270\255\346\226\207");
    parsed_done(&parsed);
}

TEST(ids_are_read_without_brackets)
{
    tide_text raw = TIDE_TEXT("Message-ID: <one@x>\n"
                              "In-Reply-To: Your message of Monday <two@x>\n"
                              "References: <three@x><four@x>\n\t<five@x\n"
                              "List-Id: People who sail <sail.example.org>\n\n");
    struct parsed parsed;
    parse(raw, &parsed);
    assert_text(parsed.message.message_id, "one@x");
    assert_text(parsed.message.in_reply_to, "two@x");
    assert_text(parsed.message.references, "three@x four@x five@x");
    assert_text(parsed.message.list_id, "sail.example.org");
    parsed_done(&parsed);
    parse(TIDE_TEXT("Message-Id: bare@x\n\n"), &parsed);
    assert_text(parsed.message.message_id, "bare@x");
    assert_text(parsed.message.references, "");
    parsed_done(&parsed);
}

TEST(dates_are_read)
{
    static const struct {
        const char *date;
        int64_t seconds; /* -1: none */
    } examples[] = {
        {"Fri, 21 Nov 1997 09:55:06 -0600", 880127706},
        {"21 Nov 97 09:55:06 -0600", 880127706},
        {"Fri, 21 Nov 1997 09(comment): 55 : 06 -0600 (CST)", 880127706},
        {"Fri, 21 Nov 1997 15:55:06 GMT", 880127706},
        {"Thu, 1 Jan 1970 00:00:01 +0000", 1},
        {"", -1},
        {"yesterday", -1},
        {"((((((((((((", -1},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        char text[256];
        int bytes = snprintf(text, sizeof text, "X: y\nDate: %s\n\n", examples[i].date);
        struct parsed parsed;
        parse((tide_text){text, (size_t)bytes}, &parsed);
        assert_int_equal(parsed.message.has_date, examples[i].seconds >= 0);
        if (examples[i].seconds >= 0)
            assert_int_equal(parsed.message.date_ms, examples[i].seconds * 1000);
        parsed_done(&parsed);
    }
}
