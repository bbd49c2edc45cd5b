/* The text of a message: charsets, encodings, parts, HTML. */
#include "message_examples.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"
#include "unit/mail/message_fixture.h"

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

TEST(every_charset_is_read_in_every_encoding)
{
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

#define MULTI(type) "Subject: s\nContent-Type: multipart/" type "; boundary=\"=b\"\n\n"

const struct message_example message_examples[] = {
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
const size_t message_examples_count = sizeof message_examples / sizeof message_examples[0];

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
TEST(parts_are_found)
{
    for (size_t i = 0; i < sizeof message_examples / sizeof message_examples[0]; i++) {
        tide_text raw = exact(tide_text_of(message_examples[i].raw));
        check_message(&message_examples[i], raw);
        exact_free(raw);
        if (strchr(message_examples[i].raw, '\r') != NULL)
            continue;
        tide_buf crlf = heap_buf(1 << 20);
        for (const char *c = message_examples[i].raw; *c != '\0'; c++)
            OK(tide_buf_add_text(&crlf, *c == '\n' ? "\r\n" : (char[]){*c, '\0'}));
        check_message(&message_examples[i], tide_buf_text(&crlf));
        tide_buf_done(&crlf);
    }
}

/* MSG3 with the byte that ends strings in C. */
TEST(nul_bytes_are_no_end)
{
    tide_text raw = TIDE_TEXT("Subject: a\0b\nTo: x\0@y\n\none\0two\n\0");
    struct parsed parsed;
    parse(raw, &parsed);
    assert_text(parsed.message.subject, "a b");
    assert_text(parsed.message.text, "one two\n ");
    assert_int_equal(parsed.message.parsed, TIDE_PARSED_WHOLE);
    parsed_done(&parsed);
}

/* ---- HTML ---- */

TEST(html_becomes_text)
{
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
        tide_buf out = heap_buf(1 << 20);
        OK(tide_html_text(html, &out));
        assert_text(tide_buf_text(&out), examples[i][1]);
        tide_buf_done(&out);
        exact_free(html);
    }
}

TEST(html_that_does_not_fit_is_cut_between_characters)
{
    for (size_t room = 0; room < 12; room++) {
        tide_buf out = heap_buf(room);
        tide_status rc = tide_html_text(TIDE_TEXT("\303\244\343\201\202 <p>x"), &out);
        assert_int_equal(rc, room < 8 ? TIDE_FULL : TIDE_OK);
        assert_clean(tide_buf_text(&out), false);
        assert_true(out.bytes + 3 > room || rc == TIDE_OK);
        tide_buf_done(&out);
    }
}
