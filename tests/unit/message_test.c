/* What is read in a message: examples of everything mail does to text, the whole
 * corpus, GMime as a second opinion, and thousands of broken messages. */
#include "message_fixture.h"
#include "base/rng.h"

#include <gmime/gmime.h>
#include <inttypes.h>

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

static void headers_are_read_as_people_write_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof header_examples / sizeof header_examples[0]; i++)
        check_header(&header_examples[i]);
}

static void raw_headers_take_the_charset_of_the_text(void **state)
{
    (void)state;
    tide_text raw = TIDE_TEXT("Subject: \274\362\314\345\326\320\316\304\r\n"
                              "Content-Type: text/plain; charset=gb2312\r\n\r\nx\r\n");
    struct parsed parsed;
    parse(raw, &parsed);
    assert_text(parsed.message.subject, "\347\256\200\344\275\223\344\270\255\346\226\207");
    parsed_done(&parsed);
}

static void ids_are_read_without_brackets(void **state)
{
    (void)state;
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

static void dates_are_read(void **state)
{
    (void)state;
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

/* ---- text ---- */

static const struct {
    const char *charset; /* "": no label */
    const char *bytes;
    size_t count;
    const char *text;
} charset_examples[] = {
    {"iso-2022-jp", "\033$BF|K\1348l$N%a!<%k\033(B", 20, "日本語のメール"},
    {"Shift_JIS", "\223\372\226{\214\352\202\314\203\201\201[\203\213", 14, "日本語のメール"},
    {"x-sjis", "\223\372\226{\214\352\202\314\203\201\201[\203\213", 14, "日本語のメール"},
    {"euc-jp", "\306\374\313\334\270\354", 6, "日本語"},
    {"big5", "\301c\305\351\244\244\244\345\266l\245\363", 12, "繁體中文郵件"},
    {"gb2312", "\274\362\314\345\326\320\316\304\323\312\274\376", 12, "简体中文邮件"},
    {"gb2312", "\351F\273\371", 4, "镕基"},
    {"ks_c_5601-1987", "\307\321\261\271\276\356 \306\355\301\366", 11, "한국어 편지"},
    {"euc-kr", "\214c\271\346\260\242\307\317", 8, "똠방각하"},
    {"utf-16", "\377\376G\000r\000\374\000\337\000e\000 \000\345e,g", 18, "Grüße 日本"},
    {"utf-16le", "G\000r\000\374\000\337\000e\000", 10, "Grüße"},
    {"utf-16", "\000G\000r\000\374\000\337\000e", 10, "Grüße"},
    {"koi8-r", "\360\322\311\327\305\324", 6, "Привет"},
    {"windows-1251", "\317\360\350\342\345\362", 6, "Привет"},
    {"tis-620", "\344\267\302", 3, "ไทย"},
    {"iso-8859-7", "\303\345\351\334", 4, "Γειά"},
    {"utf-7", "Gr+APwA3w-e", 11, "Grüße"},
    {"iso-8859-15", "5 \244", 3, "5 €"},
    {"iso-8859-1", "\223curly\224", 7, "“curly”"},
    {"us-ascii", "Gr\303\274\303\237e", 7, "Grüße"},
    {"", "Gr\303\274\303\237e", 7, "Grüße"},
    {"", "Gr\374\337e", 5, "Grüße"},
    {"iso-8859-1", "Gr\303\274\303\237e", 7, "Grüße"},
    {"windows-1251", "\320\237\321\200\320\270\320\262\320\265\321\202", 12, "Привет"},
    {"utf-8", "Gr\374\337e", 5, "Grüße"},
    {"utf-8", "\346\227\245\346\234\254\350\252\236", 9, "日本語"},
    {"x-no-such-set", "Gr\303\274\303\237e", 7, "Grüße"},
    {"big5", "\346\227\245\346\234\254\350\252\236\343\201\256\346\226\207", 15, "日本語の文"},
    {"", "\033$BF|K\1348l$N%a!<%k\033(B", 20, "日本語のメール"},
    {"\"UTF-8\"", "Gr\303\274\303\237e", 7, "Grüße"},
};

static void encode_base64(const char *bytes, size_t count, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        uint32_t three = 0;
        for (size_t j = 0; j < 3; j++)
            three = three << 8 | (i + j < count ? (unsigned char)bytes[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *out++ = i + j <= count ? digits[three >> (18 - 6 * j) & 63] : '=';
    }
    *out = '\0';
}

static void encode_quoted(const char *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++)
        out += snprintf(out, 8, i % 5 == 4 ? "=\r\n=%02X" : "=%02X", (unsigned char)bytes[i]);
    *out = '\0';
}

static void check_charset(size_t index, const char *encoding, const char *body, size_t count)
{
    char text[1024];
    int head = snprintf(text, sizeof text,
                        "Subject: x\r\nContent-Transfer-Encoding: %s\r\nContent-Type: text/plain",
                        encoding);
    if (charset_examples[index].charset[0] != '\0')
        head += snprintf(text + head, sizeof text - (size_t)head, "; charset=%s",
                         charset_examples[index].charset);
    head += snprintf(text + head, sizeof text - (size_t)head, "\r\n\r\n");
    memcpy(text + head, body, count);
    tide_text raw = exact((tide_text){text, (size_t)head + count});
    struct parsed parsed;
    parse(raw, &parsed);
    if (!tide_text_equal(parsed.message.text, tide_text_of(charset_examples[index].text)))
        fail_msg("%s in %s: got \"%.*s\"", charset_examples[index].charset, encoding,
                 (int)parsed.message.text.bytes, parsed.message.text.data);
    parsed_done(&parsed);
    exact_free(raw);
}

static void every_charset_is_read_in_every_encoding(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof charset_examples / sizeof charset_examples[0]; i++) {
        char body[512];
        const char *bytes = charset_examples[i].bytes;
        size_t count = charset_examples[i].count;
        check_charset(i, "8bit", bytes, count);
        check_charset(i, "binary", bytes, count);
        check_charset(i, "x-unknown", bytes, count);
        encode_base64(bytes, count, body);
        check_charset(i, "base64", body, strlen(body));
        check_charset(i, "BASE64", body, strlen(body));
        encode_quoted(bytes, count, body);
        check_charset(i, "Quoted-Printable", body, strlen(body));
    }
}

struct message_example {
    const char *name;
    const char *raw;
    const char *text;
    const char *attachments; /* "name type;" each */
    tide_parsed parsed;
};

#define MULTI(type) "Subject: s\nContent-Type: multipart/" type "; boundary=\"=b\"\n\n"

static const struct message_example message_examples[] = {
    {"nothing", "", "", "", TIDE_PARSED_NOT},
    {"no headers", "Hello there\nX: y\n", "Hello there\nX: y\n", "", TIDE_PARSED_NOT},
    {"only headers", "Subject: x", "", "", TIDE_PARSED_WHOLE},
    {"mbox line first", "From ann@x Thu Jan  1 00:00:00 1970\nSubject: x\n\nhi\n", "hi\n", "",
     TIDE_PARSED_WHOLE},
    {"byte order mark first", "\357\273\277Subject: x\n\nhi\n", "hi\n", "", TIDE_PARSED_WHOLE},
    {"empty lines first", "\r\n\r\nSubject: x\r\n\r\nhi\r\n", "hi\n", "", TIDE_PARSED_WHOLE},
    {"bare CR everywhere", "Subject: x\rTo: a@b\r\rone\rtwo\r", "one\ntwo\n", "",
     TIDE_PARSED_WHOLE},
    {"bare CR inside", "Subject: x\n\none\rtwo\r\nthree", "one\ntwo\nthree", "", TIDE_PARSED_WHOLE},
    {"alternatives with other words",
     MULTI("alternative") "--=b\n\nplain words\n--=b\nContent-Type: text/html\n\n"
                          "<p>other <b>words</b></p>\n--=b--\n",
     "plain words\nother words\n", "", TIDE_PARSED_WHOLE},
    {"alternatives with the same words",
     MULTI("alternative") "--=b\n\nthe same\nwords\n--=b\nContent-Type: text/html\n\n"
                          "<p>the</p> same <b>words</b>\n--=b--\n",
     "the\nsame words\n", "", TIDE_PARSED_WHOLE},
    {"alternatives with the same words around links",
     MULTI("alternative") "--=b\n\nOur *new* shop\n<https://x.example/?q=1>\nis open!\n"
                          "[https://y.example]\n--=b\nContent-Type: text/html\n\n"
                          "<p>Our <b>new</b> <a href=\"https://x.example\">shop</a> is open!</p>\n"
                          "--=b--\n",
     "Our new shop is open!\n\n<https://x.example/?q=1>\n[https://y.example]", "",
     TIDE_PARSED_WHOLE},
    {"alternatives of which one says more",
     MULTI("alternative") "--=b\n\none two three https://x.example\n--=b\n"
                          "Content-Type: text/html\n\none two\n--=b--\n",
     "one two three https://x.example\none two\n", "", TIDE_PARSED_WHOLE},
    {"preamble and epilogue",
     MULTI("mixed") "preamble\n--=b\n\none\n--=b\n\ntwo\n--=b--\nepilogue\n", "one\ntwo", "",
     TIDE_PARSED_WHOLE},
    {"no last boundary", MULTI("mixed") "--=b\n\none\n--=b\n\ntwo\n", "one\ntwo\n", "",
     TIDE_PARSED_WHOLE},
    {"a boundary that never comes", MULTI("mixed") "text\n", "text\n", "", TIDE_PARSED_WHOLE},
    {"no boundary named", "Content-Type: multipart/mixed\n\n--x\n\ntext\n", "--x\n\ntext\n", "",
     TIDE_PARSED_WHOLE},
    {"a boundary that begins like another",
     MULTI("mixed") "--=b\nContent-Type: multipart/mixed; boundary==bb\n\n"
                    "--=bb\n\none\n--=bb--\n--=b\n\ntwo\n--=b--\n",
     "one\ntwo", "", TIDE_PARSED_WHOLE},
    {"the same boundary twice",
     MULTI("mixed") "--=b\nContent-Type: multipart/mixed; boundary=\"=b\"\n\n"
                    "--=b\n\none\n--=b--\n--=b\n\ntwo\n--=b--\n",
     "one\ntwo", "", TIDE_PARSED_WHOLE},
    {"a part that is cut by the outer boundary",
     MULTI("mixed") "--=b\nContent-Type: multipart/mixed; boundary=i\n\n--i\n\none\n"
                    "--=b\n\ntwo\n--=b--\n",
     "one\ntwo", "", TIDE_PARSED_WHOLE},
    {"a boundary with dashes at its end",
     "Content-Type: multipart/mixed; boundary=\"b--\"\n\n--b--\n\none\n--b--\n\ntwo\n--b----\n",
     "one\ntwo", "", TIDE_PARSED_WHOLE},
    {"a boundary in the headers of a part",
     MULTI("mixed") "--=b\nContent-Type: image/png\n--=b\n\ntwo\n--=b--\n", "two", " image/png;",
     TIDE_PARSED_WHOLE},
    {"a boundary in pieces",
     "Content-Type: multipart/mixed; boundary*0=\"=\"; boundary*1=b\n\n--=b\n\none\n--=b--\n",
     "one", "", TIDE_PARSED_WHOLE},
    {"a message in the message",
     MULTI("mixed") "--=b\n\none\n--=b\nContent-Type: message/rfc822\n\n"
                    "Subject: =?utf-8?Q?inn=C3=A9r?=\nContent-Type: text/html\n\n<p>two</p>\n"
                    "--=b--\n",
     "one\ninn\303\251r\ntwo\n", " message/rfc822;", TIDE_PARSED_WHOLE},
    {"a message in a message in a message",
     "Content-Type: message/rfc822\n\nSubject: a\nContent-Type: message/rfc822\n\n"
     "Subject: b\n\ntext\n",
     "a\nb\ntext\n", " message/rfc822; message/rfc822;", TIDE_PARSED_WHOLE},
    {"a digest",
     MULTI("digest") "--=b\n\nSubject: one\n\nfirst\n--=b\n\nSubject: two\n\nsecond\n"
                     "--=b--\n",
     "one\nfirst\ntwo\nsecond", " message/rfc822; message/rfc822;", TIDE_PARSED_WHOLE},
    {"attachments",
     MULTI("mixed") "--=b\n\none\n"
                    "--=b\nContent-Type: application/PDF; name=a.pdf\n\nx\n"
                    "--=b\nContent-Type: text/plain\n"
                    "Content-Disposition: attachment; filename=\"b/../c.txt\"\n\nnot shown\n"
                    "--=b\nContent-Type: text/x-patch; name=p.diff\n\nshown\n"
                    "--=b\nContent-Disposition: attachment\n\nno name\n--=b--\n",
     "one\nshown", "a.pdf application/pdf;b_.._c.txt text/plain;p.diff text/x-patch; text/plain;",
     TIDE_PARSED_WHOLE},
    {"the message is an attachment",
     "Content-Type: application/zip\nContent-Disposition: attachment; filename=x.zip\n\nPK", "",
     "x.zip application/zip;", TIDE_PARSED_WHOLE},
    {"types that are none", "Content-Type: nonsense\n\ntext\n", "text\n", "", TIDE_PARSED_WHOLE},
    {"an HTML page that says its charset",
     "Content-Type: text/html\n\n<meta http-equiv=Content-Type content=\"text/html; "
     "charset=windows-1251\"><p>\317\360\350\342\345\362</p>",
     "\320\237\321\200\320\270\320\262\320\265\321\202\n", "", TIDE_PARSED_WHOLE},
};

static void check_message(const struct message_example *example, tide_text raw)
{
    struct parsed parsed;
    char attachments[512] = "";
    size_t used = 0;
    parse(raw, &parsed);
    const struct tide_message *message = &parsed.message;
    for (size_t i = 0; i < message->attachments_count; i++) {
        const struct tide_attachment *one = &message->attachments[i];
        used += (size_t)snprintf(attachments + used, sizeof attachments - used, "%.*s %.*s;",
                                 (int)one->name.bytes, one->name.data, (int)one->type.bytes,
                                 one->type.data);
    }
    if (!tide_text_equal(message->text, tide_text_of(example->text)) ||
        strcmp(attachments, example->attachments) != 0 || message->parsed != example->parsed)
        fail_msg("%s: parsed %d, text \"%.*s\", attachments \"%s\"", example->name,
                 (int)message->parsed, (int)message->text.bytes, message->text.data, attachments);
    parsed_done(&parsed);
}

/* Each as it stands, and once more with other line ends. */
static void parts_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof message_examples / sizeof message_examples[0]; i++) {
        tide_text raw = exact(tide_text_of(message_examples[i].raw));
        check_message(&message_examples[i], raw);
        exact_free(raw);
        if (strchr(message_examples[i].raw, '\r') != NULL)
            continue;
        tide_buf crlf;
        tide_buf_init(&crlf, tide_mem_heap(), 1 << 20);
        for (const char *c = message_examples[i].raw; *c != '\0'; c++)
            assert_int_equal(tide_buf_add_text(&crlf, *c == '\n' ? "\r\n" : (char[]){*c, '\0'}),
                             TIDE_OK);
        check_message(&message_examples[i], tide_buf_text(&crlf));
        tide_buf_done(&crlf);
    }
}

/* M3 with the byte that ends strings in C. */
static void nul_bytes_are_no_end(void **state)
{
    (void)state;
    tide_text raw = TIDE_TEXT("Subject: a\0b\nTo: x\0@y\n\none\0two\n\0");
    struct parsed parsed;
    parse(raw, &parsed);
    assert_text(parsed.message.subject, "a b");
    assert_text(parsed.message.text, "one two\n ");
    assert_int_equal(parsed.message.parsed, TIDE_PARSED_WHOLE);
    parsed_done(&parsed);
}

/* ---- attachments ---- */

static void names_of_attachments_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *headers;
        const char *name;
    } examples[] = {
        {"Content-Disposition: attachment; filename=plain.txt", "plain.txt"},
        {"Content-Disposition: attachment; filename=with spaces.txt; size=3", "with spaces.txt"},
        {"Content-Disposition: attachment; filename=\"a;b\\\"c.txt\"", "a;b\"c.txt"},
        {"Content-Disposition: attachment; filename=\"never ends.txt", "never ends.txt"},
        {"Content-Disposition: attachment;\n filename=folded.txt", "folded.txt"},
        {"Content-Disposition: attachment filename=forgot.txt", "forgot.txt"},
        {"Content-Disposition: attachment; FileName*=utf-8'de'Gr%C3%BC%C3%9Fe.txt",
         "Gr\303\274\303\237e.txt"},
        {"Content-Disposition: attachment; filename*=iso-8859-1''%fc.txt", "\303\274.txt"},
        {"Content-Disposition: attachment; filename=x; filename*=utf-8''y", "y"},
        {"Content-Disposition: attachment; filename*0*=utf-8''a%C3; filename*1*=%A4;\n"
         " filename*2=\"b.txt\"",
         "a\303\244b.txt"},
        {"Content-Disposition: attachment; filename*1=\"b.txt\"; filename*0=\"a\"", "ab.txt"},
        {"Content-Disposition: attachment; filename=\"=?utf-8?B?w6QudHh0?=\"", "\303\244.txt"},
        {"Content-Disposition: attachment; filename=\"\303\244.txt\"", "\303\244.txt"},
        {"Content-Disposition: attachment; filename=\"\344.txt\"", "\303\244.txt"},
        {"Content-Disposition: attachment; filename=\"C:\\\\dir\\\\x.txt\"", "C:_dir_x.txt"},
        {"Content-Disposition: attachment; filename=\"../../etc/passwd\"", ".._.._etc_passwd"},
        {"Content-Disposition: attachment; filename=\"..\"", ""},
        {"Content-Disposition: attachment; filename=\"a\tb\"", "a b"},
        {"Content-Disposition: attachment; filename=%", "%"},
        {"Content-Disposition: attachment; filename*=utf-8''%4", "%4"},
        {"Content-Disposition: attachment", ""},
        {"Content-Disposition: attachment\nContent-Type: image/png; name=n.png", "n.png"},
        {"Content-Disposition: attachment; filename=\"\"\nContent-Type: image/png; name=n.png",
         "n.png"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        char text[1024];
        int bytes = snprintf(text, sizeof text, "%s\n\nx", examples[i].headers);
        tide_text raw = exact((tide_text){text, (size_t)bytes});
        struct parsed parsed;
        parse(raw, &parsed);
        assert_int_equal(parsed.message.attachments_count, 1);
        assert_text(parsed.message.attachments[0].name, examples[i].name);
        parsed_done(&parsed);
        exact_free(raw);
    }
}

static void long_names_keep_their_extension(void **state)
{
    (void)state;
    char text[2000];
    size_t bytes = (size_t)snprintf(text, sizeof text, "Content-Type: a/b; name=\"");
    for (int i = 0; i < 400; i++)
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "\303\244");
    bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, ".tar.gz\"\n\nx");
    struct parsed parsed;
    parse((tide_text){text, bytes}, &parsed);
    tide_text name = parsed.message.attachments[0].name;
    assert_true(name.bytes <= 200);
    assert_memory_equal(name.data + name.bytes - 3, ".gz", 3);
    parsed_done(&parsed);
}

/* M4: the region is the body, byte for byte. */
static void regions_are_exact(void **state)
{
    (void)state;
    static const char *const ends[] = {"\n", "\r\n"};
    for (size_t e = 0; e < 2; e++) {
        const char *n = ends[e];
        char text[1024];
        int bytes = snprintf(text, sizeof text,
                             "Content-Type: multipart/mixed; boundary=b%s%s--b%s"
                             "Content-Type: image/png%sContent-Transfer-Encoding: base64%s%s"
                             "QUJD%sREVG%s%s--b%sContent-Type: a/b%s%s--b%s"
                             "Content-Type: a/c%s%sx%s--b--%s",
                             n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);
        tide_text raw = exact((tide_text){text, (size_t)bytes});
        struct parsed parsed;
        char expected[64];
        parse(raw, &parsed);
        assert_int_equal(parsed.message.attachments_count, 3);
        const struct tide_attachment *png = &parsed.message.attachments[0];
        (void)snprintf(expected, sizeof expected, "QUJD%sREVG%s", n, n);
        assert_text((tide_text){raw.data + png->begin, (size_t)(png->end - png->begin)}, expected);
        tide_buf out;
        tide_error err = {TIDE_OK, 0, ""};
        tide_buf_init(&out, tide_mem_heap(), 6);
        assert_int_equal(tide_attachment_decode(raw, png, &out, &err), TIDE_OK);
        assert_text(tide_buf_text(&out), "ABCDEF");
        const struct tide_attachment *empty = &parsed.message.attachments[1];
        assert_int_equal(empty->begin, empty->end);
        const struct tide_attachment *last = &parsed.message.attachments[2];
        assert_text((tide_text){raw.data + last->begin, (size_t)(last->end - last->begin)}, "x");
        /* A ceiling and a region outside are failures that change nothing. */
        assert_int_equal(tide_attachment_decode(raw, png, &out, &err), TIDE_FULL);
        assert_text(tide_buf_text(&out), "ABCDEF");
        struct tide_attachment outside = *png;
        outside.end = raw.bytes + 1;
        assert_int_equal(tide_attachment_decode(raw, &outside, &out, &err), TIDE_INVALID);
        assert_non_null(strstr(err.text, "attachment at"));
        tide_buf_done(&out);
        parsed_done(&parsed);
        exact_free(raw);
    }
}

static void encodings_tolerate_what_does_not_belong(void **state)
{
    (void)state;
    static const struct {
        tide_encoding encoding;
        const char *encoded, *decoded;
    } examples[] = {
        {TIDE_ENCODING_BASE64, "QUJD", "ABC"},
        {TIDE_ENCODING_BASE64, "QU JD\r\n\tRA==", "ABCD"},
        {TIDE_ENCODING_BASE64, "QUJDRA", "ABCD"},
        {TIDE_ENCODING_BASE64, "QUJDREU", "ABCDE"},
        {TIDE_ENCODING_BASE64, "QQ==QUJD", "AABC"},
        {TIDE_ENCODING_BASE64, "QUJ!D*", "ABC"},
        {TIDE_ENCODING_BASE64, "====", ""},
        {TIDE_ENCODING_BASE64, "Q", ""},
        {TIDE_ENCODING_BASE64, "", ""},
        {TIDE_ENCODING_QUOTED, "a=20b=\r\nc=\nd", "a bcd"},
        {TIDE_ENCODING_QUOTED, "a= \t\r\nb", "ab"},
        {TIDE_ENCODING_QUOTED, "=e4=E4", "\344\344"},
        {TIDE_ENCODING_QUOTED, "a=ZZb=4", "a=ZZb=4"},
        {TIDE_ENCODING_QUOTED, "a=", "a"},
        {TIDE_ENCODING_QUOTED, "a_b", "a_b"},
        {TIDE_ENCODING_PLAIN, "a=20", "a=20"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        tide_text raw = exact(tide_text_of(examples[i].encoded));
        struct tide_attachment attachment = {.encoding = examples[i].encoding, .end = raw.bytes};
        tide_buf out;
        tide_buf_init(&out, tide_mem_heap(), 1 << 20);
        assert_int_equal(tide_attachment_decode(raw, &attachment, &out, NULL), TIDE_OK);
        assert_text(tide_buf_text(&out), examples[i].decoded);
        tide_buf_done(&out);
        exact_free(raw);
    }
}

static void base64_gives_back_any_bytes(void **state)
{
    (void)state;
    tide_rng rng = tide_rng_seeded(64);
    for (size_t round = 0; round < scaled(2000); round++) {
        char bytes[300], encoded[500];
        size_t count = (size_t)tide_rng_below(&rng, sizeof bytes);
        for (size_t i = 0; i < count; i++)
            bytes[i] = (char)tide_rng_next(&rng);
        encode_base64(bytes, count, encoded);
        struct tide_attachment attachment = {.encoding = TIDE_ENCODING_BASE64,
                                             .end = strlen(encoded)};
        tide_buf out;
        tide_buf_init(&out, tide_mem_heap(), count);
        assert_int_equal(tide_attachment_decode(tide_text_of(encoded), &attachment, &out, NULL),
                         TIDE_OK);
        assert_int_equal(out.bytes, count);
        assert_memory_equal(tide_buf_cstr(&out), bytes, count);
        tide_buf_done(&out);
    }
}

/* ---- HTML ---- */

static void html_becomes_text(void **state)
{
    (void)state;
    static const char *const examples[][2] = {
        {"", ""},
        {"just text", "just text\n"},
        {"<p>one</p><p>two</p>", "one\ntwo\n"},
        {"one<br>two<br/><br>three<br><br><br>four", "one\ntwo\n\nthree\n\nfour\n"},
        {"<div>a<div>b</div>c</div>", "a\nb\nc\n"},
        {" a \n b\t c ", "a b c\n"},
        {"a<b>b</b>c <i> d</i>", "abc d\n"},
        {"<table><tr><td>a</td><td>b</td></tr><tr><th>c</table>", "a b\nc\n"},
        {"<ul><li>a<li>b</ul>c", "a\nb\nc\n"},
        {"<a href='x>y'>link</a>", "link\n"},
        {"<a title=\"a > b\" b=c>x</a>", "x\n"},
        {"<img src=x alt=\"a &amp; picture\">text", "a & picture text\n"},
        {"<style>p{}</style>a<script>if (a<b) '</p>'</script>b<STYLE\n>x</style >c", "abc\n"},
        {"<title>t</title><body>b", "b\n"},
        {"<script>never ends", ""},
        {"a<!-- <p>x</p> -->b<!-->c<!--->d<!-- e --", "abcd\n"},
        {"<!DOCTYPE html><?xml version=1?><![if x]>a<![endif]>", "a\n"},
        {"&lt;&gt;&amp;&quot;&apos;&nbsp;&copy;&eacute;&Eacute;",
         "<>&\"' \302\251\303\251\303\211\n"},
        {"&#65;&#x42;&#X43;&#128;&#x1F600;&#0;&#xD800;&#99999999;",
         "ABC\342\202\254\360\237\230\200\357\277\275\357\277\275\357\277\275\n"},
        {"&;&#;&#x;&nosuch;&amp &ampx AT&T", "&;&#;&#x;&nosuch;& &ampx AT&T\n"},
        {"a < b <3 </ x>c", "a < b <3 c\n"},
        {"a</b></i></div>b", "a\nb\n"},
        {"<pre>a\n  b\n</pre>c", "a\n  b\nc\n"},
        {"a<", "a<\n"},
        {"a<b", "a\n"},
        {"a<b c=\"", "a\n"},
        {"a\001\177b\302\205c\377d", "a b c\357\277\275d\n"},
        {"\303\244\343\201\202\360\237\230\200", "\303\244\343\201\202\360\237\230\200\n"},
        {"<p>\n</p>\n<p> </p>x", "x\n"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        tide_text html = exact(tide_text_of(examples[i][0]));
        tide_buf out;
        tide_buf_init(&out, tide_mem_heap(), 1 << 20);
        assert_int_equal(tide_html_text(html, &out), TIDE_OK);
        assert_text(tide_buf_text(&out), examples[i][1]);
        tide_buf_done(&out);
        exact_free(html);
    }
}

static void html_that_does_not_fit_is_cut_between_characters(void **state)
{
    (void)state;
    for (size_t room = 0; room < 12; room++) {
        tide_buf out;
        tide_buf_init(&out, tide_mem_heap(), room);
        tide_status rc = tide_html_text(TIDE_TEXT("\303\244\343\201\202 <p>x"), &out);
        assert_int_equal(rc, room < 8 ? TIDE_FULL : TIDE_OK);
        assert_clean(tide_buf_text(&out), false);
        assert_true(out.bytes + 3 > room || rc == TIDE_OK);
        tide_buf_done(&out);
    }
}

/* ---- ceilings, in small; the large ones are in message_hostile_test.c ---- */

static void beyond_a_ceiling_what_was_found_is_there(void **state)
{
    (void)state;
    tide_buf raw;
    struct parsed parsed;
    tide_buf_init(&raw, tide_mem_heap(), 1 << 24);
    (void)tide_buf_add_text(&raw, "Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n");
    for (int i = 0; i < TIDE_MESSAGE_PARTS_MAX; i++)
        (void)tide_buf_print(&raw, "--b\nContent-Type: a/b; name=n%d\n\nx%d\n", i, i);
    (void)tide_buf_add_text(&raw, "--b--\n");
    parse(tide_buf_text(&raw), &parsed);
    assert_int_equal(parsed.message.parsed, TIDE_PARSED_PARTLY);
    assert_string_equal(parsed.message.problem, "more parts than the ceiling");
    assert_text(parsed.message.subject, "s");
    assert_int_equal(parsed.message.attachments_count, TIDE_MESSAGE_ATTACHMENTS_MAX);
    assert_text(parsed.message.attachments[499].name, "n499");
    parsed_done(&parsed);

    /* One header too many, behind those that matter. */
    tide_buf_clear(&raw);
    (void)tide_buf_add_text(&raw, "Subject: s\n");
    for (int i = 1; i < TIDE_MESSAGE_HEADER_LINES_MAX; i++)
        (void)tide_buf_add_text(&raw, "X: y\n");
    size_t whole = raw.bytes;
    (void)tide_buf_add_text(&raw, "\ntext\n");
    parse(tide_buf_text(&raw), &parsed);
    assert_int_equal(parsed.message.parsed, TIDE_PARSED_WHOLE);
    parsed_done(&parsed);
    raw.bytes = whole;
    (void)tide_buf_add_text(&raw, "To: a@b\n\ntext\n");
    parse(tide_buf_text(&raw), &parsed);
    assert_string_equal(parsed.message.problem, "more header lines than the ceiling");
    assert_text(parsed.message.subject, "s");
    assert_text(parsed.message.to, "");
    assert_text(parsed.message.text, "text\n");
    parsed_done(&parsed);
    tide_buf_done(&raw);
}

static void add_nested(tide_buf *raw, int deep)
{
    (void)tide_buf_add_text(raw, "Subject: s\n");
    for (int i = 0; i < deep; i++)
        (void)tide_buf_print(raw, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i);
    (void)tide_buf_add_text(raw, "\ninnermost\n");
    for (int i = deep; i > 0; i--)
        (void)tide_buf_print(raw, "--b%d\nContent-Type: a/b; name=n%d\n\nx\n--b%d--\n", i - 1,
                             i - 1, i - 1);
}

/* What is too deep is walked over; what encloses it still has its parts. */
static void depth_has_a_ceiling(void **state)
{
    (void)state;
    tide_buf raw;
    struct parsed parsed;
    tide_buf_init(&raw, tide_mem_heap(), 1 << 24);
    add_nested(&raw, TIDE_MESSAGE_PARTS_DEEP);
    parse(tide_buf_text(&raw), &parsed);
    assert_int_equal(parsed.message.parsed, TIDE_PARSED_WHOLE);
    assert_text(parsed.message.text, "innermost");
    assert_int_equal(parsed.message.attachments_count, TIDE_MESSAGE_PARTS_DEEP);
    parsed_done(&parsed);
    tide_buf_clear(&raw);
    add_nested(&raw, TIDE_MESSAGE_PARTS_DEEP + 1);
    parse(tide_buf_text(&raw), &parsed);
    assert_string_equal(parsed.message.problem, "parts nested deeper than the ceiling");
    assert_int_equal(parsed.message.attachments_count, TIDE_MESSAGE_PARTS_DEEP);
    assert_text(parsed.message.attachments[0].name, "n49");
    parsed_done(&parsed);
    tide_buf_done(&raw);
}

static void text_has_a_ceiling(void **state)
{
    (void)state;
    tide_buf raw;
    struct parsed parsed;
    tide_buf_init(&raw, tide_mem_heap(), 1 << 24);
    (void)tide_buf_add_text(&raw, "Subject: s\nContent-Type: text/plain; charset=utf-8\n\n");
    while (raw.bytes < TIDE_MESSAGE_TEXT_BYTES_MAX + 100)
        (void)tide_buf_add_text(&raw, "\343\201\202");
    parse(tide_buf_text(&raw), &parsed);
    assert_string_equal(parsed.message.problem, "more text than the ceiling");
    assert_true(parsed.message.text.bytes > TIDE_MESSAGE_TEXT_BYTES_MAX - 8);
    parsed_done(&parsed);
    tide_buf_done(&raw);
}

/* ---- the corpus ---- */

static void the_corpus_is_read_and_twice_the_same(void **state)
{
    (void)state;
    struct corpus *corpus = corpus_open();
    size_t whole = 0, attachments = 0;
    for (size_t i = 0; corpus != NULL && i < corpus->count; i++) {
        struct parsed one, two;
        parse(corpus->files[i], &one);
        parse(corpus->files[i], &two);
        assert_true(tide_text_equal(one.message.text, two.message.text)); /* M1 */
        assert_true(tide_text_equal(one.message.subject, two.message.subject));
        assert_true(tide_text_equal(one.message.to, two.message.to));
        assert_int_equal(one.message.attachments_count, two.message.attachments_count);
        whole += one.message.parsed == TIDE_PARSED_WHOLE;
        attachments += one.message.attachments_count;
        parsed_done(&one);
        parsed_done(&two);
    }
    if (corpus != NULL)
        print_message("corpus: %zu messages, %zu read whole, %zu attachments\n", corpus->count,
                      whole, attachments);
    corpus_close(corpus);
}

/* ---- GMime, as a second opinion ---- */

struct opinion {
    tide_text raw;
    const struct tide_message *message;
    size_t parts, agreed; /* parts that are no text, and how many have our bytes */
    const char *name;
};

static bool some_attachment_is(const struct opinion *opinion, const char *bytes, size_t count)
{
    for (size_t i = 0; i < opinion->message->attachments_count; i++) {
        tide_buf out;
        tide_buf_init(&out, tide_mem_heap(), opinion->raw.bytes);
        (void)tide_attachment_decode(opinion->raw, &opinion->message->attachments[i], &out, NULL);
        bool same = out.bytes == count && (count == 0 || memcmp(out.data, bytes, count) == 0);
        tide_buf_done(&out);
        if (same)
            return true;
    }
    return false;
}

static void compare_part(GMimeObject *parent, GMimeObject *object, gpointer arg)
{
    (void)parent;
    struct opinion *opinion = arg;
    GMimeContentType *type = g_mime_object_get_content_type(object);
    if (!GMIME_IS_PART(object) || GMIME_IS_TEXT_PART(object) ||
        g_mime_content_type_is_type(type, "message", "delivery-status") ||
        g_mime_content_type_is_type(type, "message", "disposition-notification"))
        return; /* text, to us */
    GMimeDataWrapper *content = g_mime_part_get_content(GMIME_PART(object));
    if (content == NULL)
        return;
    GMimeStream *stream = g_mime_stream_mem_new();
    (void)g_mime_data_wrapper_write_to_stream(content, stream);
    GByteArray *bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream));
    opinion->parts++;
    if (some_attachment_is(opinion, (const char *)bytes->data, bytes->len))
        opinion->agreed++;
    else
        print_message("  %s: a part of %u bytes that we have not\n", opinion->name, bytes->len);
    g_object_unref(stream);
}

/* GMime would overflow its stack on these. */
static bool gmime_survives(tide_text raw)
{
    size_t colons = 0;
    for (size_t i = 0; i < raw.bytes && i < 200000; i++)
        colons += raw.data[i] == ':';
    return colons < 4000;
}

struct tally {
    size_t subjects, subjects_agreed, dates, dates_agreed, parts, parts_agreed;
};

static void second_opinion(tide_text raw, const char *name, struct tally *tally)
{
    struct parsed parsed;
    parse(raw, &parsed);
    GMimeStream *stream = g_mime_stream_mem_new_with_buffer(raw.data, raw.bytes);
    GMimeParser *parser = g_mime_parser_new_with_stream(stream);
    if (raw.bytes > 5 && memcmp(raw.data, "From ", 5) == 0)
        g_mime_parser_set_format(parser, GMIME_FORMAT_MBOX);
    GMimeMessage *message = g_mime_parser_construct_message(parser, NULL);
    if (message != NULL) {
        struct opinion opinion = {raw, &parsed.message, 0, 0, name};
        g_mime_message_foreach(message, compare_part, &opinion);
        const char *subject = g_mime_message_get_subject(message);
        GDateTime *date = g_mime_message_get_date(message);
        if (subject != NULL) {
            bool same = tide_text_equal(parsed.message.subject, tide_text_of(subject));
            if (!same)
                print_message("  %s:\n    GMime \"%s\"\n    ours  \"%.*s\"\n", name, subject,
                              (int)parsed.message.subject.bytes, parsed.message.subject.data);
            tally->subjects++;
            tally->subjects_agreed += same;
        }
        tally->dates += date != NULL;
        tally->dates_agreed += date != NULL && parsed.message.has_date &&
                               g_date_time_to_unix(date) * 1000 == parsed.message.date_ms;
        tally->parts += opinion.parts;
        tally->parts_agreed += opinion.agreed;
        g_object_unref(message);
    }
    g_object_unref(parser);
    g_object_unref(stream);
    parsed_done(&parsed);
}

/* The two differ where a message is broken; on the corpus, rarely. */
static void gmime_is_of_the_same_opinion(void **state)
{
    (void)state;
    struct corpus *corpus = corpus_open();
    struct tally tally = {0, 0, 0, 0, 0, 0};
    for (size_t i = 0; corpus != NULL && i < corpus->count; i++) {
        if (gmime_survives(corpus->files[i]))
            second_opinion(corpus->files[i], corpus->names[i], &tally);
    }
    corpus_close(corpus);
    if (corpus == NULL)
        return;
    print_message("GMime agrees on %zu of %zu subjects, %zu of %zu dates, %zu of %zu parts\n",
                  tally.subjects_agreed, tally.subjects, tally.dates_agreed, tally.dates,
                  tally.parts_agreed, tally.parts);
    assert_true(tally.subjects_agreed * 100 >= tally.subjects * 90);
    assert_true(tally.dates_agreed * 100 >= tally.dates * 98);
    assert_true(tally.parts_agreed * 100 >= tally.parts * 95);
}

/* ---- broken messages ---- */

static const char *const pieces[] = {
    "\n--=b\n",
    "\n--=b--\n",
    "=?utf-8?Q?",
    "?=",
    "\"",
    "(",
    ")",
    "<",
    ">",
    ",",
    ";",
    ":",
    "\r",
    "\n",
    "\r\n",
    "\n\n",
    "\t",
    " ",
    "=",
    "=\n",
    "boundary=",
    "name*0*=",
    "''",
    "%",
    "<!--",
    "-->",
    "<script>",
    "&#x",
    "\033$B",
    "\377\376",
    "\303",
    "\342\202",
    "base64",
    "charset=gb2312",
    "message/rfc822",
    "multipart/x",
};

/* One to eight changes: bytes, runs that are lost or doubled, and pieces that
 * mean something. */
static void mutate(tide_buf *raw, tide_rng *rng)
{
    size_t changes = 1 + (size_t)tide_rng_below(rng, 8);
    for (size_t i = 0; i < changes && raw->bytes > 0; i++) {
        size_t at = (size_t)tide_rng_below(rng, raw->bytes);
        size_t run = (size_t)tide_rng_below(rng, 40);
        run = run < raw->bytes - at ? run : raw->bytes - at;
        switch (tide_rng_below(rng, 4)) {
        case 0:
            raw->data[at] = (char)tide_rng_next(rng);
            break;
        case 1:
            memmove(raw->data + at, raw->data + at + run, raw->bytes - at - run);
            raw->bytes -= run;
            break;
        case 2:
            if (tide_buf_reserve(raw, run) != NULL) {
                memmove(raw->data + at + run, raw->data + at, raw->bytes - at);
                raw->bytes += run;
            }
            break;
        default: {
            const char *piece = pieces[tide_rng_below(rng, sizeof pieces / sizeof pieces[0])];
            size_t bytes = strlen(piece);
            bytes = bytes < raw->bytes - at ? bytes : raw->bytes - at;
            memcpy(raw->data + at, piece, bytes);
            break;
        }
        }
    }
}

static void parse_mutated(tide_text original, uint64_t seed)
{
    tide_rng rng = tide_rng_seeded(seed);
    tide_buf raw;
    tide_buf_init(&raw, tide_mem_heap(), original.bytes + 1000);
    assert_int_equal(tide_buf_add(&raw, original.data, original.bytes), TIDE_OK);
    mutate(&raw, &rng);
    tide_text bytes = exact(tide_buf_text(&raw));
    struct parsed parsed;
    parse(bytes, &parsed);
    parsed_done(&parsed);
    exact_free(bytes);
    tide_buf_done(&raw);
}

static uint64_t seed_now; /* 0 when nothing is under way */

static int say_seed(void **state)
{
    (void)state;
    if (seed_now != 0)
        print_message("seed %" PRIu64 "\n", seed_now);
    return 0;
}

static void broken_messages_are_read_too(void **state)
{
    (void)state;
    struct corpus *corpus = corpus_open();
    size_t examples = sizeof message_examples / sizeof message_examples[0];
    size_t rounds = scaled(100000);
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        tide_rng rng = tide_rng_seeded(seed * 7919);
        tide_text original = tide_text_of(message_examples[tide_rng_below(&rng, examples)].raw);
        if (corpus != NULL && tide_rng_chance(&rng, 1, 2))
            original = corpus->files[tide_rng_below(&rng, corpus->count)];
        if (original.bytes > 40000)
            continue;
        seed_now = seed;
        parse_mutated(original, seed);
        seed_now = 0;
    }
    corpus_close(corpus);
}

static const char all_of_it[] =
    "From: =?utf-8?Q?J=C3=BCrgen?= <j@b.de>\r\nTo: Team: a@b, \"x, y\" <c@d>;\r\n"
    "Subject: =?big5?B?wWPF6Q==?= =?gb2312?B?vPLM5Q==?=\r\nDate: Fri, 21 Nov 1997 09:55:06 "
    "-0600\r\n"
    "Message-ID: <a@b>\r\nReferences: <c@d> <e@f>\r\n"
    "Content-Type: multipart/mixed; boundary=\"=b\"\r\n\r\n--=b\r\n"
    "Content-Type: text/plain; charset=koi8-r\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    "8NLJ18XU\r\n--=b\r\nContent-Type: text/html; charset=iso-8859-1\r\n"
    "Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>gr=FC=DFe &amp; more</p>\r\n"
    "--=b\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\ninner text\r\n"
    "--=b\r\nContent-Type: application/pdf;\r\n name*0*=utf-8''a%C3%A4; name*1=.pdf\r\n"
    "Content-Transfer-Encoding: base64\r\n\r\nQUJD\r\n--=b--\r\n";

static void every_beginning_of_a_message_is_a_message(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < sizeof all_of_it; bytes++) {
        tide_text raw = exact((tide_text){all_of_it, bytes});
        struct parsed parsed;
        parse(raw, &parsed);
        parsed_done(&parsed);
        exact_free(raw);
    }
}

/* Every allocation fails once; the loop ends with the first run in which none
 * was left to fail. */
static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_arena arena;
        struct tide_message message = {.date_ms = 77};
        tide_mem_faulty_once(&mem, fail_at);
        tide_arena_init(&arena, &mem.base, 1 << 20);
        tide_status rc =
            tide_message_parse((tide_text){all_of_it, sizeof all_of_it - 1}, &arena, &message);
        if (rc == TIDE_OK)
            assert_text(message.subject, "\347\271\201\351\253\224\347\256\200\344\275\223");
        else
            assert_int_equal(message.date_ms, 77); /* untouched */
        tide_arena_done(&arena);
        assert_int_equal(mem.bytes_live, 0);
        assert_int_equal(rc, mem.fired ? TIDE_NO_MEMORY : TIDE_OK);
        if (!mem.fired)
            return;
    }
}

int main(void)
{
    tide_message_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_read_as_people_write_them),
        cmocka_unit_test(raw_headers_take_the_charset_of_the_text),
        cmocka_unit_test(ids_are_read_without_brackets),
        cmocka_unit_test(dates_are_read),
        cmocka_unit_test(every_charset_is_read_in_every_encoding),
        cmocka_unit_test(parts_are_found),
        cmocka_unit_test(nul_bytes_are_no_end),
        cmocka_unit_test(names_of_attachments_are_read),
        cmocka_unit_test(long_names_keep_their_extension),
        cmocka_unit_test(regions_are_exact),
        cmocka_unit_test(encodings_tolerate_what_does_not_belong),
        cmocka_unit_test(base64_gives_back_any_bytes),
        cmocka_unit_test(html_becomes_text),
        cmocka_unit_test(html_that_does_not_fit_is_cut_between_characters),
        cmocka_unit_test(beyond_a_ceiling_what_was_found_is_there),
        cmocka_unit_test(depth_has_a_ceiling),
        cmocka_unit_test(text_has_a_ceiling),
        cmocka_unit_test(the_corpus_is_read_and_twice_the_same),
        cmocka_unit_test(gmime_is_of_the_same_opinion),
        cmocka_unit_test_teardown(broken_messages_are_read_too, say_seed),
        cmocka_unit_test(every_beginning_of_a_message_is_a_message),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
