/* A stored message for display (mail/view/view.h): as one JSON object, as a thread, as washed HTML
 * with numbered images, and as one document for a browser without a network. */
#include "mail/view/view.h"
#include "support/heap.h"
#include "support/wash_scan.h"
#include "unit/mail/archive/archive_fixture.h"

#include <sqlite3.h>

#define PNG_BASE64 "iVBORw0KGgoAAAANSUhEUg==" /* the first 16 bytes of an image */

static const char rich[] =
    "From: =?utf-8?Q?Ada_L=C3=B8v?= <ada@example.com>\r\nTo: Ben <ben@example.org>, "
    "c@example.org\r\n"
    "Cc: d@example.org\r\nReply-To: list@example.org\r\nSubject: =?utf-8?B?R3LDvMOfZQ==?=\r\n"
    "Message-ID: <m1@example.com>\r\nIn-Reply-To: <m0@example.com>\r\n"
    "References: <r1@example.com> <m0@example.com>\r\nList-Id: Boats <boats.example.org>\r\n"
    "Date: Mon, 5 Jan 2026 10:00:00 +0000\r\n"
    "Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n"
    "Content-Type: multipart/related; boundary=r\r\n\r\n--r\r\n"
    "Content-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n\r\nHello plain\r\n--a\r\n"
    "Content-Type: text/html; charset=utf-8\r\n\r\n"
    "<p>Hello <b>HTML</b><script>alert(1)</script>"
    "<img src=\"cid:logo@x\" alt=\"Logo\"><img src=\"cid:nobody\" alt=\"Gone\">"
    "<img src=\"https://t.example/p.gif?a=1&amp;b=2\" alt=\"Pixel\"><img src=cid:text>"
    "<table background=\"cid:logo@x\"><tr><td background=\"http://t.example/bg.png\">cell</table>"
    "<a href=\"https://example.com/\" onclick=\"x()\">link</a>\r\n--a--\r\n--r\r\n"
    "Content-Type: image/png\r\nContent-ID: <logo@x>\r\nContent-Transfer-Encoding: "
    "base64\r\n\r\n" PNG_BASE64 "\r\n--r\r\n"
    "Content-Type: image/png; name=\"fake.png\"\r\nContent-ID: <text>\r\n\r\n<svg onload=x>\r\n"
    "--r--\r\n--m\r\n"
    "Content-Type: application/pdf; name=\"../plan.pdf\"\r\n"
    "Content-Disposition: attachment; filename=\"../plan.pdf\"\r\n"
    "Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--m--\r\n";

/* Opens the view of a message; the caller ends it. */
static void look(struct fixture *f, const char *id, struct tide_view *view)
{
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err));
    const tide_status rc = tide_view_open(f->archive, &stored, tide_mem_heap(), view, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
}

static void put_one(struct fixture *f, const char *id, const char *raw)
{
    put_text(f, id, year_2019, raw);
    sync_all(f);
}

/* ---- JSON ---- */

static const json_t *field(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (value == NULL)
        fail_msg("no field %s", name);
    return value;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(field(object, name));
    assert_non_null(text);
    return text;
}

static int64_t number_of(const json_t *object, const char *name)
{
    assert_true(json_is_integer(field(object, name)));
    return json_integer_value(field(object, name));
}

/* Every field, so that one that disappears or changes its kind is seen. */
OPENED(a_message_is_one_object)
{
    struct tide_incoming incoming = mail("a1", year_2019, tide_text_of(rich));
    const tide_text labels[] = {TIDE_TEXT("INBOX"), TIDE_TEXT("Label_7")};
    incoming.labels = labels;
    incoming.labels_count = 2;
    incoming.said_bytes = sizeof rich - 1;
    put(f, &incoming);
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_7"), TIDE_TEXT("Trips"),
                               TIDE_TEXT("user"), NULL, &f->err));
    sync_all(f);
    struct tide_view view;
    tide_json json;
    look(f, "a1", &view);
    tide_json_object(&json);
    tide_view_json(&view, &json);
    assert_false(json.failed);
    const json_t *o = json.value;
    assert_int_equal(json_object_size(o), 23);
    assert_string_equal(text_of(o, "id"), "a1");
    assert_string_equal(text_of(o, "thread"), "t1");
    assert_int_equal(number_of(o, "internal_unix_ms"), year_2019);
    assert_int_equal(number_of(o, "bytes"), sizeof rich - 1);
    assert_string_equal(text_of(o, "copy"), "exact");
    assert_true(json_is_false(field(o, "gone")));
    assert_string_equal(text_of(o, "from"), "Ada Løv <ada@example.com>");
    assert_string_equal(text_of(o, "to"), "Ben <ben@example.org>, c@example.org");
    assert_string_equal(text_of(o, "cc"), "d@example.org");
    assert_string_equal(text_of(o, "bcc"), "");
    assert_string_equal(text_of(o, "reply_to"), "list@example.org");
    assert_string_equal(text_of(o, "subject"), "Grüße");
    assert_string_equal(text_of(o, "message_id"), "m1@example.com");
    assert_string_equal(text_of(o, "in_reply_to"), "m0@example.com");
    assert_string_equal(text_of(o, "references"), "r1@example.com m0@example.com");
    assert_string_equal(text_of(o, "list_id"), "boats.example.org");
    assert_int_equal(number_of(o, "date_unix_ms"), 1767607200000);
    assert_true(json_is_true(field(o, "html")));
    assert_non_null(strstr(text_of(o, "text"), "Hello HTML"));
    assert_true(json_is_null(field(o, "problem")));
    const json_t *list = field(o, "labels");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(text_of(json_array_get(list, 0), "name"), "INBOX");
    assert_string_equal(text_of(json_array_get(list, 1), "id"), "Label_7");
    assert_string_equal(text_of(json_array_get(list, 1), "name"), "Trips");
    list = field(o, "attachments");
    assert_int_equal(json_array_size(list), 3);
    assert_int_equal(number_of(o, "attachments_count"), 3);
    const json_t *logo = json_array_get(list, 0), *plan = json_array_get(list, 2);
    assert_int_equal(number_of(logo, "number"), 1);
    assert_string_equal(text_of(logo, "type"), "image/png");
    assert_string_equal(text_of(logo, "content_id"), "logo@x");
    assert_true(json_is_true(field(logo, "inline")));
    assert_string_equal(text_of(logo, "file"), "attachment-1");
    assert_int_equal(number_of(logo, "bytes"), 16);
    assert_int_equal(number_of(plan, "number"), 3);
    assert_string_equal(text_of(plan, "name"), ".._plan.pdf");
    assert_string_equal(text_of(plan, "file"), "_plan.pdf");
    assert_string_equal(text_of(plan, "type"), "application/pdf");
    assert_int_equal(number_of(plan, "bytes"), 5);
    assert_true(json_is_false(field(plan, "inline")));
    tide_json_done(&json);
    tide_view_done(&view);
}

static void assert_copy(struct fixture *f, const char *id, const char *copy, bool gone)
{
    struct tide_view view;
    tide_json json;
    look(f, id, &view);
    tide_json_object(&json);
    tide_view_json(&view, &json);
    assert_string_equal(text_of(json.value, "copy"), copy);
    assert_int_equal(json_is_true(field(json.value, "gone")), gone);
    tide_json_done(&json);
    tide_view_done(&view);
}

/* What is known about a copy (M19a). */
OPENED(the_object_says_what_the_copy_is)
{
    struct tide_incoming incoming = mail("short", year_2019, TIDE_TEXT("Subject: x\r\n\r\ny\r\n"));
    incoming.said_bytes = 1000;
    put(f, &incoming);
    incoming = mail("gone", year_2019, TIDE_TEXT("Subject: x\r\n\r\nz\r\n"));
    put(f, &incoming);
    incoming = mail("doubted", year_2019, TIDE_TEXT("Subject: x\r\n\r\nw\r\n"));
    put(f, &incoming);
    sync_all(f);
    OK(tide_archive_gone(f->archive, TIDE_TEXT("gone"), 5, NULL, &f->err));
    OK(tide_archive_doubt(f->archive, TIDE_TEXT("doubted"), NULL, &f->err));
    sync_all(f);
    assert_copy(f, "short", "short", false);
    assert_copy(f, "gone", "exact", true);
    assert_copy(f, "doubted", "damaged", false);
}

static void spoil_all(struct fixture *f)
{
    sqlite3 *handle = NULL;
    close_archive(f);
    assert_int_equal(sqlite3_open(textf("%s/2019.db", f->dir), &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle,
                                  "UPDATE content SET hash = zeroblob(32) WHERE id ="
                                  " (SELECT content FROM message WHERE gmail_id = 'b')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    open_archive(f);
}

/* A message that cannot be read hides neither itself nor the others (VEW2). */
OPENED(a_thread_is_a_list_of_these_objects)
{
    put_text(f, "a", year_2019, "Subject: one\r\n\r\nfirst\r\n");
    put_text(f, "b", year_2019 + 1000, "Subject: two\r\n\r\nsecond\r\n");
    put_text(f, "c", year_2019 + 2000, rich);
    sync_all(f);
    spoil_all(f);
    struct tide_stored stored;
    tide_json json;
    OK(tide_archive_find(f->archive, TIDE_TEXT("c"), &stored, &f->err));
    tide_json_object(&json);
    OK(tide_view_thread_json(f->archive, &stored, tide_mem_heap(), &json, &f->err));
    assert_string_equal(text_of(json.value, "thread"), "t1");
    assert_true(json_is_false(field(json.value, "more")));
    const json_t *list = field(json.value, "messages");
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(text_of(json_array_get(list, 0), "subject"), "one");
    assert_string_equal(text_of(json_array_get(list, 0), "copy"), "exact");
    const json_t *bad = json_array_get(list, 1);
    assert_string_equal(text_of(bad, "id"), "b");
    assert_string_equal(text_of(bad, "copy"), "damaged");
    assert_string_equal(text_of(bad, "text"), "");
    assert_non_null(strstr(text_of(bad, "problem"), "b"));
    assert_int_equal(json_object_size(bad), 23);
    /* The same object as that of the message alone. */
    struct tide_view view;
    tide_json alone;
    look(f, "c", &view);
    tide_json_object(&alone);
    tide_view_json(&view, &alone);
    assert_true(json_equal(alone.value, json_array_get(list, 2)));
    tide_json_done(&alone);
    tide_view_done(&view);
    tide_json_done(&json);
}

OPENED(a_message_without_a_thread_is_its_own)
{
    struct tide_incoming incoming = mail("a", year_2019, TIDE_TEXT("Subject: x\r\n\r\ny\r\n"));
    incoming.thread_id = TIDE_TEXT("");
    put(f, &incoming);
    put_one(f, "b", "Subject: z\r\n\r\ny\r\n");
    struct tide_stored stored;
    tide_json json;
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err));
    tide_json_object(&json);
    OK(tide_view_thread_json(f->archive, &stored, tide_mem_heap(), &json, &f->err));
    assert_int_equal(json_array_size(field(json.value, "messages")), 1);
    tide_json_done(&json);
}

/* ---- HTML ---- */

OPENED(images_are_numbered_and_links_kept)
{
    put_one(f, "a", rich);
    struct tide_view view;
    struct tide_view_page page;
    tide_buf html = heap_buf(TIDE_VIEW_HTML_BYTES_MAX);
    look(f, "a", &view);
    OK(tide_view_html(&view, &html, &page));
    assert_string_equal(
        tide_buf_cstr(&html),
        "<p>Hello <b>HTML</b><img src=\"cid/0\" alt=\"Logo\"><img src=\"cid/1\" alt=\"Gone\">"
        "<img src=\"img/0\" alt=\"Pixel\"><img src=\"cid/2\"></p>"
        "<table background=\"cid/0\"><tr><td background=\"img/1\">cell</td></tr></table>"
        "<a href=\"https://example.com/\" rel=\"noopener noreferrer\">link</a>");
    assert_true(page.html);
    assert_false(page.cut);
    assert_int_equal(page.remote_count, 2);
    assert_true(tide_text_equal(page.remote[0], TIDE_TEXT("https://t.example/p.gif?a=1&b=2")));
    assert_true(tide_text_equal(page.remote[1], TIDE_TEXT("http://t.example/bg.png")));
    assert_int_equal(page.cids_count, 3);
    assert_int_equal(page.cids[0], 0);
    assert_true(page.cids[1] == TIDE_VIEW_NO_PART);
    assert_int_equal(page.cids[2], 1);

    tide_buf image = heap_buf(1 << 20);
    const char *type = NULL;
    OK(tide_view_image(&view, &page, 0, &image, &type));
    assert_string_equal(type, "image/png");
    assert_int_equal(image.bytes, 16);
    assert_int_equal(tide_view_image(&view, &page, 1, &image, &type), TIDE_NOT_FOUND);
    assert_int_equal(tide_view_image(&view, &page, 2, &image, &type), TIDE_NOT_FOUND); /* SVG */
    assert_int_equal(tide_view_image(&view, &page, 3, &image, &type), TIDE_NOT_FOUND);
    assert_int_equal(image.bytes, 16);
    tide_buf_done(&image);
    tide_buf_done(&html);
    tide_view_done(&view);
}

static void assert_html(struct fixture *f, const char *id, const char *raw, const char *expected)
{
    struct tide_view view;
    struct tide_view_page page;
    tide_buf html = heap_buf(TIDE_VIEW_HTML_BYTES_MAX);
    tide_buf again = heap_buf(TIDE_VIEW_HTML_BYTES_MAX);
    put_one(f, id, raw);
    look(f, id, &view);
    OK(tide_view_html(&view, &html, &page));
    assert_string_equal(tide_buf_cstr(&html), expected);
    assert_null(wash_scan(tide_buf_text(&html)));
    OK(tide_view_html(&view, &again, &page)); /* VEW4 */
    assert_string_equal(tide_buf_cstr(&again), expected);
    tide_buf_done(&html);
    tide_buf_done(&again);
    tide_view_done(&view);
}

OPENED(pieces_do_not_reach_into_each_other)
{
    assert_html(f, "a",
                "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"
                "Content-Type: text/html\r\n\r\n<div><b>one<!-- open\r\n--b\r\n"
                "Content-Type: text/plain\r\n\r\n1 < 2 &amp; <b>\r\n--b\r\n"
                "Content-Type: text/html\r\n\r\n</b></div><img src=cid:x><style>p{\r\n--b\r\n"
                "Content-Type: text/html\r\n\r\n<p>three<img src=cid:x>\r\n--b--\r\n",
                "<div><b>one</b></div><div style=\"white-space:pre-wrap\">1 &lt; 2 &amp;amp; "
                "&lt;b&gt;</div><img src=\"cid/0\"><p>three<img src=\"cid/0\"></p>");
    assert_html(f, "b", "Subject: x\r\n\r\nplain & simple\r\n<script>\r\n",
                "<div style=\"white-space:pre-wrap\">plain &amp; simple\n&lt;script&gt;\n</div>");
    assert_html(f, "c", "Subject: x\r\n\r\n", "<div style=\"white-space:pre-wrap\"></div>");
}

/* ---- the document ---- */

OPENED(a_document_needs_nothing_else)
{
    put_one(f, "a", rich);
    struct tide_view view;
    struct tide_view_page page;
    tide_buf out = heap_buf(TIDE_VIEW_DOCUMENT_BYTES_MAX);
    look(f, "a", &view);
    OK(tide_view_document(&view, &out, &page));
    const char *text = tide_buf_cstr(&out);
    assert_int_equal(strncmp(text, "<!DOCTYPE html>\n", 16), 0);
    assert_non_null(strstr(text, "content=\"default-src 'none'; img-src data:; "
                                 "style-src 'unsafe-inline'; base-uri 'none'; "
                                 "form-action 'none'\">"));
    assert_non_null(strstr(text, "<title>Grüße</title>"));
    const char *body = strstr(text, "<body>\n");
    assert_non_null(body);
    assert_string_equal(
        body,
        "<body>\n<p>Hello <b>HTML</b><img src=\"data:image/png;base64," PNG_BASE64
        "\" alt=\"Logo\">"
        "<span>[image, missing in the message or not shown: Gone]</span>"
        "<span>[remote image, not loaded: Pixel, https://t.example/p.gif?a=1&amp;b=2]</span>"
        "<span>[image, missing in the message or not shown]</span></p>"
        "<table><tr><td>cell</td></tr></table>"
        "<a href=\"https://example.com/\" rel=\"noopener noreferrer\">link</a>\n</body></html>\n");
    assert_int_equal(page.remote_count, 2);
    body += strlen("<body>\n"); /* VEW4 */
    assert_null(wash_scan((tide_text){body, strlen(body) - strlen("\n</body></html>\n")}));
    tide_buf_done(&out);
    tide_view_done(&view);
}

/* Marks in places where they would end the title, a value or a tag. */
OPENED(a_document_is_not_broken_out_of)
{
    put_one(f, "a",
            "Subject: </title><script>x</script>\"&\r\nContent-Type: text/html\r\n\r\n"
            "<img alt=' src=' src='http://t.example/&quot;>&lt;script>'>"
            "<style>p{color:red} a>b{color:red}</style><p title='a>b'>x"
            "<img alt='&quot;><script>' src=cid:none>");
    struct tide_view view;
    struct tide_view_page page;
    tide_buf out = heap_buf(TIDE_VIEW_DOCUMENT_BYTES_MAX);
    look(f, "a", &view);
    OK(tide_view_document(&view, &out, &page));
    const char *text = tide_buf_cstr(&out);
    assert_non_null(strstr(text, "<title>&lt;/title&gt;&lt;script&gt;x&lt;/script&gt;\"&amp;"
                                 "</title>"));
    assert_null(strstr(text, "<script"));
    assert_non_null(strstr(text, "[remote image, not loaded:  src=, "
                                 "http://t.example/%22%3E%3Cscript%3E]"));
    assert_non_null(strstr(text, "<style>p{color:red}a>b{color:red}</style>"));
    assert_non_null(strstr(text, "not shown: \"›‹script›]"));
    tide_buf_done(&out);
    tide_view_done(&view);
}

/* One image used so often that it cannot be written each time: no error, and the room is kept. */
OPENED(many_uses_of_one_image_fit)
{
    enum { USES = 20000 };
    tide_buf raw = heap_buf(64 << 20);
    OK(tide_buf_add_text(&raw, "Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\n"
                               "Content-Type: text/html\r\n\r\n<p>"));
    for (int i = 0; i < USES; i++)
        OK(tide_buf_add_text(&raw, "<img src=cid:x><img src=img/0>"));
    OK(tide_buf_add_text(&raw, "the end<img src='https://t.example/"));
    for (int i = 0; i < 1000; i++)
        OK(tide_buf_add_text(&raw, "0123456789"));
    OK(tide_buf_add_text(&raw, "'>\r\n--b\r\nContent-Type: image/gif\r\nContent-ID: <x>\r\n"
                               "Content-Transfer-Encoding: base64\r\n\r\nR0lGODlh"));
    for (int i = 0; i < 1000; i++)
        OK(tide_buf_add_text(&raw, "AAAAAAAAAAAA"));
    OK(tide_buf_add_text(&raw, "\r\n--b--\r\n"));
    struct tide_incoming incoming = mail("a", year_2019, tide_buf_text(&raw));
    put(f, &incoming);
    sync_all(f);
    struct tide_view view;
    struct tide_view_page page;
    tide_buf out = heap_buf(TIDE_VIEW_DOCUMENT_BYTES_MAX);
    look(f, "a", &view);
    OK(tide_view_document(&view, &out, &page));
    assert_false(page.cut);
    assert_true(out.bytes > TIDE_VIEW_DOCUMENT_BYTES_MAX / 2);
    assert_non_null(strstr(tide_buf_cstr(&out), "data:image/gif;base64,"));
    assert_non_null(strstr(tide_buf_cstr(&out), "[image]"));
    assert_non_null(strstr(tide_buf_cstr(&out), "the end"));
    assert_string_equal(out.data + out.bytes - 15, "</body></html>\n");
    tide_buf_done(&out);
    tide_buf_done(&raw);
    tide_view_done(&view);
}

/* A body that is washed into more than may be shown is cut, closed, and says so. */
OPENED(a_large_body_is_cut_and_closed)
{
    tide_buf raw = heap_buf(64 << 20);
    OK(tide_buf_add_text(&raw, "Content-Type: text/html\r\n\r\n<div><b>"));
    for (size_t i = 0; i < (size_t)TIDE_VIEW_HTML_BYTES_MAX / 4; i++)
        OK(tide_buf_add(&raw, "<", 1)); /* four bytes each: &lt; */
    for (size_t i = 0; i < 1000; i++)
        OK(tide_buf_add(&raw, "& ", 2));
    struct tide_incoming incoming = mail("a", year_2019, tide_buf_text(&raw));
    put(f, &incoming);
    sync_all(f);
    struct tide_view view;
    struct tide_view_page page;
    tide_buf html = heap_buf(TIDE_VIEW_HTML_BYTES_MAX);
    look(f, "a", &view);
    OK(tide_view_html(&view, &html, &page));
    assert_true(page.cut);
    assert_true(html.bytes <= TIDE_VIEW_HTML_BYTES_MAX);
    assert_string_equal(html.data + html.bytes - 10, "</b></div>");
    tide_buf_done(&html);
    tide_buf_done(&raw);
    tide_view_done(&view);
}

/* ---- memory ---- */

OPENED(it_survives_every_failed_allocation)
{
    put_one(f, "a", rich);
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err));
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        struct tide_view view;
        struct tide_view_page page;
        tide_buf out;
        tide_buf_init(&out, &mem.base, TIDE_VIEW_DOCUMENT_BYTES_MAX);
        tide_status rc = tide_view_open(f->archive, &stored, &mem.base, &view, &f->err);
        if (rc == TIDE_OK)
            rc = tide_view_document(&view, &out, &page);
        const size_t bytes = out.bytes;
        const bool fired = mem.fired;
        tide_buf_done(&out);
        tide_view_done(&view);
        assert_int_equal(mem.bytes_live, 0);
        if (!fired) {
            OK(rc);
            return;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
        assert_int_equal(bytes, 0);
    }
}
