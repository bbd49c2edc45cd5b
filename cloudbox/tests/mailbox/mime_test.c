
#include "cloudbox/gate/http.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/mailbox/mime_tree.h"
#include "base/rng.h"
#include "cloudbox/tests/owned.h"
#include "support/scale.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { ROOM = 1 << 30 };

static json_t *full(const char *raw)
{
    return box_mime_full(tide_text_of(raw));
}

static const char *string_at(const json_t *part, const char *key)
{
    return json_string_value(json_object_get(part, key));
}

static const json_t *child(const json_t *part, size_t index)
{
    return json_array_get(json_object_get(part, "parts"), index);
}

static const char *header(const json_t *part, const char *name)
{
    const json_t *headers = json_object_get(part, "headers");
    for (size_t i = 0; i < json_array_size(headers); i++) {
        const json_t *entry = json_array_get(headers, i);
        if (strcmp(string_at(entry, "name"), name) == 0)
            return string_at(entry, "value");
    }
    return NULL;
}

/* The body of a part is that text, and its size says so. */
static void assert_body(const json_t *part, const char *expected)
{
    const json_t *body = json_object_get(part, "body");
    tide_auto_buf decoded = tide_buf_heap(ROOM);
    const char *data = string_at(body, "data");
    if (data != NULL)
        assert_true(box_base64_decode(tide_text_of(data), &decoded));
    assert_string_equal(tide_buf_cstr(&decoded), expected);
    assert_int_equal(json_integer_value(json_object_get(body, "size")), strlen(expected));
    assert_null(json_object_get(body, "attachmentId"));
}

static void assert_file(const char *raw, const json_t *part, const char *expected)
{
    const json_t *body = json_object_get(part, "body");
    const char *id = string_at(body, "attachmentId");
    tide_auto_buf bytes = tide_buf_heap(ROOM);
    assert_non_null(id);
    assert_null(json_object_get(body, "data"));
    assert_true(box_mime_attachment(tide_text_of(raw), tide_text_of(id), &bytes));
    assert_string_equal(tide_buf_cstr(&bytes), expected);
    assert_int_equal(json_integer_value(json_object_get(body, "size")), bytes.bytes);
}

static void assert_snippet(const char *raw, const char *expected)
{
    tide_auto_buf out = tide_buf_heap(ROOM);
    box_mime_snippet(tide_text_of(raw), &out);
    assert_string_equal(tide_buf_cstr(&out), expected);
}

/* ---- shapes ---- */

TEST(a_plain_message_is_one_part)
{
    json_auto_t *part = full("From: a@x.example\r\nSubject: Hi\r\n\r\nHello\r\n");
    assert_string_equal(string_at(part, "partId"), "");
    assert_string_equal(string_at(part, "mimeType"), "text/plain");
    assert_string_equal(string_at(part, "filename"), "");
    assert_string_equal(header(part, "Subject"), "Hi");
    assert_null(json_object_get(part, "parts"));
    assert_body(part, "Hello\r\n");
}

static const char nested[] = "Subject: n\r\n"
                             "Content-Type: multipart/MIXED; boundary=\"out er\"\r\n\r\n"
                             "preamble, ignored\r\n"
                             "--out er\r\n"
                             "Content-Type: multipart/alternative; boundary=in\r\n\r\n"
                             "--in\r\nContent-Type: text/plain\r\n\r\nplain\r\n"
                             "--in\r\nContent-Type: text/html\r\n\r\n<b>bold</b>\r\n"
                             "--in--\r\nepilogue of the inner one\r\n"
                             "--out er  \r\n"
                             "Content-Type: application/pdf; name=\"a b.pdf\"\r\n"
                             "Content-Disposition: attachment; filename=\"a b.pdf\"\r\n"
                             "Content-Transfer-Encoding: base64\r\n\r\n"
                             "JVBE\r\nRi0=\r\n"
                             "--out er--\r\nignored\r\n";

TEST(parts_are_numbered_as_gmail_numbers_them)
{
    json_auto_t *part = full(nested);
    assert_string_equal(string_at(part, "mimeType"), "multipart/mixed");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(part, "body"), "size")), 0);
    assert_int_equal(json_array_size(json_object_get(part, "parts")), 2);
    const json_t *inner = child(part, 0);
    assert_string_equal(string_at(inner, "partId"), "0");
    assert_string_equal(string_at(child(inner, 0), "partId"), "0.0");
    assert_string_equal(string_at(child(inner, 1), "partId"), "0.1");
    assert_body(child(inner, 0), "plain");
    assert_body(child(inner, 1), "<b>bold</b>");
    const json_t *file = child(part, 1);
    assert_string_equal(string_at(file, "partId"), "1");
    assert_string_equal(string_at(file, "filename"), "a b.pdf");
    assert_file(nested, file, "%PDF-");
}

TEST(attachment_ids_are_stable_and_of_their_message)
{
    json_t *first = full(nested), *second = full(nested);
    assert_true(json_equal(first, second));
    const char *id = string_at(json_object_get(child(first, 1), "body"), "attachmentId");
    assert_int_equal(strncmp(id, "ANGjdJ", 6), 0);
    tide_auto_buf out = tide_buf_heap(ROOM);
    char other[sizeof nested];
    memcpy(other, nested, sizeof nested);
    other[9] = 'm'; /* another subject */
    assert_false(box_mime_attachment(tide_text_of(other), tide_text_of(id), &out));
    assert_false(box_mime_attachment(tide_text_of(nested), TIDE_TEXT("ANGjdJ"), &out));
    assert_false(box_mime_attachment(tide_text_of(nested), TIDE_TEXT(""), &out));
    assert_int_equal(out.bytes, 0);
    json_decref(first);
    json_decref(second);
}

TEST(a_message_inside_has_parts_of_its_own)
{
    static const char raw[] = "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
                              "--b\r\n\r\ntext\r\n"
                              "--b\r\nContent-Type: message/rfc822\r\n\r\n"
                              "Subject: inner\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
                              "--c\r\n\r\nfirst\r\n--c\r\n\r\nsecond\r\n--c--\r\n"
                              "--b--\r\n";
    json_auto_t *part = full(raw);
    const json_t *message = child(part, 1);
    assert_string_equal(string_at(message, "mimeType"), "message/rfc822");
    const json_t *inner = child(message, 0);
    assert_string_equal(string_at(inner, "partId"), "1.0");
    assert_string_equal(header(inner, "Subject"), "inner");
    assert_string_equal(string_at(child(inner, 1), "partId"), "1.0.1");
    assert_body(child(inner, 1), "second");
}

TEST(digests_hold_messages)
{
    json_auto_t *part = full("Content-Type: multipart/digest; boundary=b\r\n\r\n"
                             "--b\r\n\r\nSubject: one\r\n\r\nbody\r\n--b--\r\n");
    const json_t *message = child(part, 0);
    assert_string_equal(string_at(message, "mimeType"), "message/rfc822");
    assert_string_equal(header(child(message, 0), "Subject"), "one");
}

TEST(texts_with_a_name_are_files)
{
    static const char raw[] =
        "Content-Type: text/csv; charset=iso-8859-1; name=l.csv\r\n\r\n\xe4;1";
    json_auto_t *part = full(raw);
    assert_string_equal(string_at(part, "filename"), "l.csv");
    assert_file(raw, part, "\xe4;1"); /* its bytes, not its letters */
}

TEST(large_texts_are_fetched_on_their_own)
{
    tide_auto_buf raw = tide_buf_heap(ROOM);
    (void)tide_buf_add_text(&raw, "Subject: large\r\n\r\n");
    while (raw.bytes < 3 << 20)
        (void)tide_buf_add_text(&raw, "All work and no play makes a long message.\r\n");
    json_auto_t *part = box_mime_full(tide_buf_text(&raw));
    const char *id = string_at(json_object_get(part, "body"), "attachmentId");
    assert_non_null(id);
    tide_auto_buf out = tide_buf_heap(ROOM);
    assert_true(box_mime_attachment(tide_buf_text(&raw), tide_text_of(id), &out));
    assert_int_equal(out.bytes, raw.bytes - strlen("Subject: large\r\n\r\n"));
}

TEST(names_of_files_are_decoded)
{
    static const char *const heads[] = {
        "Content-Disposition: attachment; filename*=UTF-8''%C3%9Cbersicht.pdf\r\n",
        "Content-Disposition: attachment; filename=\"=?ISO-8859-1?Q?=DCbersicht=2Epdf?=\"\r\n",
        "Content-Disposition: attachment; filename*0*=UTF-8''%C3%9Cb; filename*1=ersicht.pdf\r\n",
    };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char raw[512];
        snprintf(raw, sizeof raw, "Content-Type: application/pdf\r\n%s\r\nx", heads[i]);
        json_auto_t *part = full(raw);
        assert_string_equal(string_at(part, "filename"), "Übersicht.pdf");
    }
}

/* ---- headers ---- */

TEST(headers_are_unfolded_and_decoded)
{
    json_auto_t *part = full("Received: by x;\r\n        Mon, 1 Jan\r\n"
                             "Subject: =?UTF-8?B?R3LDvMOf?=\r\n =?UTF-8?Q?e_an?= alle\r\n"
                             "From: =?ISO-8859-1?Q?J=FCrgen?= <j@x.example>\r\n"
                             "X-Raw: caf\xe9\r\n"
                             "X-Empty:\r\n"
                             "no colon here\r\n"
                             "X-Last  : ok\r\n\r\n");
    assert_string_equal(header(part, "Received"), "by x;        Mon, 1 Jan");
    assert_string_equal(header(part, "Subject"), "Grüße an alle");
    assert_string_equal(header(part, "From"), "Jürgen <j@x.example>");
    assert_string_equal(header(part, "X-Raw"), "café");
    assert_string_equal(header(part, "X-Empty"), "");
    assert_string_equal(header(part, "X-Last"), "ok");
    assert_int_equal(json_array_size(json_object_get(part, "headers")), 6);
}

TEST(metadata_gives_the_wanted_headers_in_order)
{
    json_auto_t *all = box_mime_metadata(tide_text_of(nested), NULL, 0);
    assert_string_equal(string_at(all, "mimeType"), "multipart/mixed");
    assert_int_equal(json_array_size(json_object_get(all, "headers")), 2);
    assert_null(json_object_get(all, "parts"));
    const tide_text only[] = {TIDE_TEXT("SUBJECT"), TIDE_TEXT("Date")};
    json_auto_t *some = box_mime_metadata(tide_text_of(nested), only, 2);
    assert_int_equal(json_array_size(json_object_get(some, "headers")), 1);
    assert_string_equal(header(some, "Subject"), "n");
    const tide_text none[] = {TIDE_TEXT("X-None")};
    json_auto_t *empty = box_mime_metadata(tide_text_of(nested), none, 1);
    assert_null(json_object_get(empty, "headers"));
}

static uint64_t date_of(const char *date)
{
    char raw[200];
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    snprintf(raw, sizeof raw, "Date: %s\r\n\r\n", date);
    struct box_view view;
    box_mime_headers(tide_text_of(raw), &arena, &view);
    return view.has_date ? view.date_ms / 1000 : 0;
}

TEST(dates_of_all_ages_are_read)
{
    assert_int_equal(date_of("Thu, 9 Oct 2025 08:20:20 +0000"), 1759998020);
    assert_int_equal(date_of("Thu, 09 Oct 2025 10:20:20 +0200 (CEST)"), 1759998020);
    assert_int_equal(date_of("9 Oct 2025 03:50 -0430"), 1759998000);
    assert_int_equal(date_of("Thu, 9 Oct 25 04:20:20 EDT"), 1759998020);
    assert_int_equal(date_of("Thursday, 09-Oct-25 08:20:20 GMT"), 1759998020);
    assert_int_equal(date_of("Thu, 29 Feb 2024 23:59:59 +0000"), 1709251199);
    assert_int_equal(date_of("Thu, 1 Jan 1970 00:00:01 +0000"), 1);
    assert_int_equal(date_of("Fri, 31 Dec 1999 23:59:59 +0000"), 946684799);
    assert_int_equal(date_of("yesterday"), 0);
    assert_int_equal(date_of(""), 0);
    assert_int_equal(date_of("99 Oct 2025 08:20:20 +0000"), 0);
    assert_int_equal(date_of("9 Foo 2025 08:20:20 +0000"), 0);
}

TEST(the_view_of_headers_is_complete)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    struct box_view view;
    box_mime_headers(TIDE_TEXT("from: =?UTF-8?Q?Ren=C3=A9?= <r@x.example>\r\n"
                               "To: a@x.example\r\nTO: b@x.example\r\nCc: c@x.example\r\n"
                               "Message-Id: <one@x.example>\r\n"
                               "In-Reply-To: <p@x.example>\r\n"
                               "References: <r@x.example>\r\n <p@x.example>\r\n"
                               "List-ID: List <l.x.example>\r\nDelivered-To: d@x.example\r\n\r\n"
                               "Subject: not a header\r\n"),
                     &arena, &view);
    assert_true(tide_text_equal(view.from, TIDE_TEXT("René <r@x.example>")));
    assert_true(tide_text_equal(view.to, TIDE_TEXT("a@x.example, b@x.example")));
    assert_true(tide_text_equal(view.cc, TIDE_TEXT("c@x.example")));
    assert_true(tide_text_equal(view.message_id, TIDE_TEXT("one@x.example")));
    assert_true(
        tide_text_equal(view.references, TIDE_TEXT("<r@x.example> <p@x.example> <p@x.example>")));
    assert_true(tide_text_equal(view.list_id, TIDE_TEXT("List <l.x.example>")));
    assert_true(tide_text_equal(view.delivered_to, TIDE_TEXT("d@x.example")));
    assert_int_equal(view.subject.bytes, 0);
    assert_false(view.has_date);
}

/* ---- texts ---- */

TEST(texts_become_utf8)
{
    static const struct {
        const char *raw;
        const char *expected;
    } cases[] = {
        {"Content-Type: text/plain; charset=iso-8859-1\r\n\r\ncaf\xe9", "café"},
        {"Content-Type: text/plain; charset=ISO-8859-1\r\n\r\n\x80 5", "€ 5"},
        {"Content-Type: text/plain; charset=Shift_JIS\r\n\r\n\x93\xfa\x96\x7b", "日本"},
        {"Content-Type: text/plain; charset=koi8-r\r\n\r\n\xcd\xc9\xd2", "мир"},
        {"Content-Type: text/plain; charset=iso-2022-jp\r\n\r\n\x1b$BF|K\\\x1b(B", "日本"},
        {"Content-Type: text/plain; charset=utf-8\r\n\r\nok \xff\xfe end", "ok \uFFFD\uFFFD end"},
        {"Content-Type: text/plain; charset=x-nobody-knows\r\n\r\nna\xc3\xafve", "naïve"},
        {"Content-Type: text/plain; charset=x-nobody-knows\r\n\r\nna\xefve", "naïve"},
        {"Content-Type: text/plain\r\n\r\nna\xefve", "naïve"},
        {"Content-Type: text/plain; charset=Shift_JIS\r\n\r\nx\x93", "x\uFFFD"},
        {"Content-Transfer-Encoding: quoted-printable\r\n\r\na=3Db=\r\nc=C3=A9 =XX=\r\n",
         "a=bcé =XX"},
        {"Content-Transfer-Encoding: BASE64\r\n\r\nSGVs\r\nbG8=\r\n IQ==\r\n", "Hello!"},
        {"Content-Transfer-Encoding: x-uuencode\r\n\r\nbegin 644 a\r\n%2&5L;&\\ \r\n`\r\nend\r\n",
         "Hello"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_auto_t *part = full(cases[i].raw);
        assert_body(part, cases[i].expected);
    }
}

static void assert_html(const char *html, const char *expected)
{
    tide_auto_buf out = tide_buf_heap(ROOM);
    box_add_html_text(&out, tide_text_of(html));
    assert_string_equal(tide_buf_cstr(&out), expected);
}

TEST(html_is_read_as_a_reader_sees_it)
{
    assert_html("a<b>b</b>c", "abc");
    assert_html("a<br>b", "a\nb");
    assert_html("<STYLE>p{color:red}</Style>x", "\nx");
    assert_html("<script>if (a < b) { '</b>' }</script>x", "\nx");
    assert_html("<!-- <p>no</p> -->x", "x");
    assert_html("&lt;&amp;&gt; &#8364;&#x20AC; &nbsp;&unknown; & done", "<&> €€  &unknown; & done");
    assert_html("1 < 2", "1 < 2");
    assert_html("<p title='a", "\n");
    assert_html("<style>never ends", "\n");
    assert_html("&#0;&#xD800;&#99999999;", "\uFFFD\uFFFD\uFFFD");
    assert_html("&", "&");
    assert_html("<", "<");
}

TEST(snippets_are_collapsed_escaped_and_short)
{
    assert_snippet("\r\n  Hello \r\n\r\n\tthere  \r\n", "Hello there");
    assert_snippet("\r\nit's <b> & \"c\"", "it&#39;s &lt;b&gt; &amp; &quot;c&quot;");
    assert_snippet("Content-Type: text/html\r\n\r\n<style>x</style><p>One</p><p>two&nbsp;&amp;</p>",
                   "One two &amp;");
    assert_snippet("Content-Type: image/png\r\n\r\nxxxx", "");
    assert_snippet(nested, "plain");
    assert_snippet("", "");
    tide_auto_buf raw = tide_buf_heap(ROOM);
    tide_auto_buf out = tide_buf_heap(ROOM);
    (void)tide_buf_add_text(&raw, "Content-Type: text/plain; charset=utf-8\r\n\r\n");
    for (size_t i = 0; i < 300; i++)
        (void)tide_buf_add_text(&raw, "ä ");
    box_mime_snippet(tide_buf_text(&raw), &out);
    size_t characters = 0;
    for (size_t i = 0; i < out.bytes; i++)
        characters += ((unsigned char)out.data[i] & 0xc0) != 0x80;
    assert_in_range(characters, 199, 200);
    assert_true(box_utf8_valid(tide_buf_text(&out)));
}

TEST(the_view_collects_texts_and_names)
{
    tide_auto_arena arena = tide_arena_heap(1 << 24);
    struct box_view view;
    box_mime_view(tide_text_of(nested), &arena, &view);
    assert_true(tide_text_equal(view.text, TIDE_TEXT("plain\nbold\n")));
    assert_true(tide_text_equal(view.filenames, TIDE_TEXT("a b.pdf\n")));
    assert_true(view.has_attachment);
    box_mime_view(TIDE_TEXT("Content-Type: image/png; name=logo.png\r\n"
                            "Content-Disposition: inline; filename=logo.png\r\n\r\nx"),
                  &arena, &view);
    assert_false(view.has_attachment); /* a picture that is shown */
    box_mime_view(TIDE_TEXT("Subject: x\r\n\r\ny"), &arena, &view);
    assert_false(view.has_attachment);
    assert_int_equal(view.filenames.bytes, 0);
}

/* ---- what others send ---- */

/* Whatever it is, every call answers, and what it answers is JSON that can be
 * read back, whose attachments can be fetched at their size. */
static uint32_t check_part(tide_text raw, const json_t *part, uint32_t depth)
{
    uint32_t count = 1;
    assert_true(depth < BOX_PARTS_DEEP);
    const json_t *body = json_object_get(part, "body");
    const char *id = string_at(body, "attachmentId"), *data = string_at(body, "data");
    json_int_t size = json_integer_value(json_object_get(body, "size"));
    tide_auto_buf bytes = tide_buf_heap(ROOM);
    if (id != NULL)
        assert_true(box_mime_attachment(raw, tide_text_of(id), &bytes));
    if (data != NULL)
        assert_true(box_base64_decode(tide_text_of(data), &bytes));
    assert_int_equal(bytes.bytes, size);
    assert_false(id != NULL && data != NULL);
    const json_t *parts = json_object_get(part, "parts");
    for (size_t i = 0; i < json_array_size(parts); i++)
        count += check_part(raw, json_array_get(parts, i), depth + 1);
    return count;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint32_t check_any(tide_text raw)
{
    json_auto_t *part = box_mime_full(raw);
    json_decref(box_mime_metadata(raw, NULL, 0));
    auto_text *dumped = json_dumps(part, JSON_COMPACT);
    assert_non_null(dumped);
    json_error_t error;
    json_auto_t *again = json_loads(dumped, 0, &error);
    assert_non_null(again);
    assert_true(json_equal(again, part));
    uint32_t count = check_part(raw, part, 0);
    assert_true(count <= BOX_PARTS_MAX);
    tide_auto_arena arena = tide_arena_heap(1u << 29);
    struct box_view view;
    box_mime_view(raw, &arena, &view);
    assert_true(box_utf8_valid(view.text));
    assert_true(box_utf8_valid(view.subject));
    assert_true(box_utf8_valid(view.filenames));
    tide_auto_buf snippet = tide_buf_heap(ROOM);
    box_mime_snippet(raw, &snippet);
    assert_true(box_utf8_valid(tide_buf_text(&snippet)));
    assert_true(snippet.bytes <= 200 * 6);
    return count;
}

TEST(broken_messages_are_one_text)
{
    assert_int_equal(check_any(TIDE_TEXT_NONE), 1);
    assert_int_equal(check_any(TIDE_TEXT("")), 1);
    assert_int_equal(check_any(TIDE_TEXT("\n")), 1);
    assert_int_equal(check_any(TIDE_TEXT("\0\0\0\xff\xfe")), 1);
    json_auto_t *part = full("Content-Type: multipart/mixed\r\n\r\n--x\r\n\r\nbody\r\n--x--\r\n");
    assert_string_equal(string_at(part, "mimeType"), "text/plain");
    assert_body(part, "--x\r\n\r\nbody\r\n--x--\r\n");
    json_decref(part);
    part = full("Content-Type: multipart/mixed; boundary=q\r\n\r\nno parts at all");
    assert_string_equal(string_at(part, "mimeType"), "text/plain");
    assert_body(part, "no parts at all");
    json_decref(part);
    part = full("Content-Type: nonsense\r\n\r\nx");
    assert_string_equal(string_at(part, "mimeType"), "text/plain");
}

TEST(an_inner_part_ends_where_the_outer_one_goes_on)
{
    json_t *part = full("Content-Type: multipart/mixed; boundary=b\r\n\r\n"
                        "--b\r\nContent-Type: multipart/mixed; boundary=bb\r\n\r\n"
                        "--bb\r\n\r\nnever closed\r\n"
                        "--b\nContent-Type: text/plain\n\nlast\n--b--");
    assert_int_equal(json_array_size(json_object_get(part, "parts")), 2);
    assert_body(child(child(part, 0), 0), "never closed");
    assert_body(child(part, 1), "last");
    json_decref(part);
    /* Headers that run into a delimiter. */
    part = full("Content-Type: multipart/mixed; boundary=b\r\n\r\n"
                "--b\r\nContent-Type: text/plain\r\n--b\r\n\r\nx\r\n--b--\r\n");
    assert_int_equal(json_array_size(json_object_get(part, "parts")), 2);
    assert_body(child(part, 0), "");
    assert_body(child(part, 1), "x");
    json_decref(part);
}

TEST(nesting_ends_at_the_ceiling)
{
    tide_auto_buf raw = tide_buf_heap(ROOM);
    for (int i = 0; i < 5000; i++)
        (void)tide_buf_print(&raw, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n",
                             i, i);
    (void)tide_buf_add_text(&raw, "\r\nthe innermost\r\n");
    assert_int_equal(check_any(tide_buf_text(&raw)), BOX_PARTS_DEEP);
    tide_buf_clear(&raw);
    for (int i = 0; i < 20000; i++)
        (void)tide_buf_add_text(&raw, "Content-Type: message/rfc822\r\n\r\n");
    assert_int_equal(check_any(tide_buf_text(&raw)), BOX_PARTS_DEEP);
}

TEST(parts_end_at_the_ceiling)
{
    tide_auto_buf raw = tide_buf_heap(ROOM);
    (void)tide_buf_add_text(&raw, "Content-Type: multipart/mixed; boundary=b\r\n\r\n");
    for (int i = 0; i < 20000; i++)
        (void)tide_buf_print(&raw, "--b\r\n\r\npart %d\r\n", i);
    assert_int_equal(check_any(tide_buf_text(&raw)), BOX_PARTS_MAX);
    json_auto_t *part = box_mime_full(tide_buf_text(&raw));
    const json_t *last = child(part, BOX_PARTS_MAX - 2);
    assert_string_equal(string_at(last, "mimeType"), "application/octet-stream");
}

TEST(large_headers_take_no_time)
{
    tide_auto_buf raw = tide_buf_heap(ROOM);
    double start = seconds();
    (void)tide_buf_add_text(&raw, "To: ");
    while (raw.bytes < 135000)
        (void)tide_buf_add_text(&raw, "\"A (b) \\\" c\" <someone@x.example>,\r\n ");
    (void)tide_buf_add_text(&raw, "\r\nCc: ");
    for (int i = 0; i < 20000; i++)
        (void)tide_buf_add_text(&raw, "g:");
    for (int i = 0; i < 20000; i++)
        (void)tide_buf_add_text(&raw, ";");
    (void)tide_buf_add_text(&raw, "\r\nSubject: ");
    for (int i = 0; i < 20000; i++)
        (void)tide_buf_add_text(&raw, "=?utf-8?q?=c3=a4?= ");
    (void)tide_buf_add_text(&raw, "\r\nX-Half: ");
    for (int i = 0; i < 50000; i++)
        (void)tide_buf_add_text(&raw, "=?");
    (void)tide_buf_add_text(&raw, "\r\nContent-Type: text/plain");
    for (int i = 0; i < 20000; i++)
        (void)tide_buf_print(&raw, "; p*%d*=x", i);
    for (int i = 0; i < 30000; i++)
        (void)tide_buf_add_text(&raw, "\r\nTo: x");
    (void)tide_buf_add_text(&raw, "\r\n\r\nbody");
    assert_int_equal(check_any(tide_buf_text(&raw)), 1);
    /* Generous: what is quadratic takes minutes. */
    assert_true(seconds() - start < 20);
}

TEST(random_bytes_never_hurt)
{
    static const char *const pieces[] = {
        "Content-Type: multipart/mixed; boundary=b\r\n",
        "--b\r\n",
        "--b--\r\n",
        "\r\n",
        "\n",
        "--",
        "Content-Type: message/rfc822\r\n",
        "Content-Transfer-Encoding: base64\r\n",
        "Content-Transfer-Encoding: quoted-printable\r\n",
        "=?utf-8?b?",
        "?=",
        "=",
        "\xff",
        "\0",
        "Content-Disposition: attachment; filename*0*=utf-8''%",
        ";",
        "\"",
        "(",
        "\r",
        "Content-Type: text/html; charset=shift_jis\r\n",
        "<style",
        "<!--",
        "&#",
        "text ",
        "Content-Type: multipart/digest; boundary=\"c\"\r\n",
        "--c\r\n",
        ":",
        " \t",
    };
    const uint64_t runs = scaled(20000);
    tide_auto_buf raw = tide_buf_heap(ROOM);
    for (uint64_t seed = 0; seed < runs; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        tide_buf_clear(&raw);
        uint64_t count = tide_rng_below(&rng, 60);
        for (uint64_t i = 0; i < count; i++) {
            const char *piece = pieces[tide_rng_below(&rng, sizeof pieces / sizeof pieces[0])];
            (void)tide_buf_add(&raw, piece, *piece == '\0' ? 1 : strlen(piece));
        }
        (void)check_any(tide_buf_text(&raw));
    }
}

/* ---- real mail ---- */

static void read_file(const char *path, tide_buf *out)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char room[65536];
    size_t bytes;
    while ((bytes = fread(room, 1, sizeof room, file)) > 0)
        (void)tide_buf_add(out, room, bytes);
    fclose(file);
}

static uint32_t check_folder(const char *path, uint32_t depth, double *slowest)
{
    uint32_t count = 0;
    DIR *folder = opendir(path);
    if (folder == NULL || depth > 6)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char inner[4096];
        struct stat info;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (stat(inner, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode)) {
            count += check_folder(inner, depth + 1, slowest);
            continue;
        }
        tide_auto_buf raw = tide_buf_heap(ROOM);
        read_file(inner, &raw);
        (void)check_any(tide_buf_text(&raw));
        double start = seconds();
        json_decref(box_mime_full(tide_buf_text(&raw)));
        double took = seconds() - start;
        if (took > *slowest)
            *slowest = took;
        count++;
    }
    closedir(folder);
    return count;
}

TEST(the_corpus_is_read_without_harm)
{
    const char *path = getenv("TIDE_CORPUS");
    static const char *const guesses[] = {"../shared/corpus/mail", "../../shared/corpus/mail",
                                          "../../../shared/corpus/mail"};
    double slowest = 0;
    uint32_t count = path != NULL ? check_folder(path, 0, &slowest) : 0;
    for (size_t i = 0; path == NULL && count == 0 && i < 3; i++)
        count = check_folder(guesses[i], 0, &slowest);
    if (count == 0) {
        print_message("skipped: no corpus (TIDE_CORPUS)\n");
        skip();
    }
    print_message("%u messages, the slowest took %.1f ms\n", count, slowest * 1000);
    assert_true(slowest < 0.5);
}

int main(void)
{
    box_mime_start();
    return tests_run(NULL);
}
