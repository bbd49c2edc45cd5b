/* message_bench.c - measures reading a message for the index (M9): a typical one of 10 kB with
 * plain text, an HTML page and an attachment, compared with GMime and libxml2 doing the same
 * work; HTML alone, to text and washed for display; folding; and decoding base64. */
#include "mail/mime/message.h"
#include "mail/search/search.h"
#include "mail/wash/wash.h"

#include <gmime/gmime.h>
#include <libxml/HTMLparser.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 5, MESSAGES = 2000 };

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void must(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "message_bench: %s\n", what);
        exit(1);
    }
}

static void report(const char *name, double value, const char *unit, double other,
                   const char *other_name)
{
    if (other > 0)
        (void)printf("{\"name\":\"%s\",\"value\":%.4g,\"unit\":\"%s\",\"ratio\":%.3f,"
                     "\"to\":\"%s\"}\n",
                     name, value, unit, value / other, other_name);
    else
        (void)printf("{\"name\":\"%s\",\"value\":%.4g,\"unit\":\"%s\"}\n", name, value, unit);
}

/* ---- a typical message ---- */

static void add_page(tide_buf *out, size_t bytes)
{
    size_t begin = out->bytes;
    (void)tide_buf_add_text(out, "<html><head><style>td{font:12px Arial}</style></head><body>\r\n");
    for (int row = 1; out->bytes - begin < bytes; row++)
        (void)tide_buf_print(
            out,
            "<tr><td style=3D\"padding:4px 8px;color:#333333\" align=3D\"left\">"
            "Order %d</td><td><a href=3D\"https://shop.example/o?id=3D%d&amp;u=3D7"
            "\">Caf=C3=A9 chair</a>, oak &ndash; <b>129.00&nbsp;&euro;</b></td>=\r\n"
            "</tr>\r\n",
            row, row * 7919);
    (void)tide_buf_add_text(out, "</body></html>\r\n");
}

static void make_message(tide_buf *out)
{
    (void)tide_buf_add_text(
        out, "Delivered-To: bob@example.org\r\nReceived: by 2002:a05:7110:abc with SMTP id "
             "x12csp345;\r\n"
             "        Mon, 3 Mar 2025 08:15:42 -0800 (PST)\r\n"
             "Return-Path: <bounce-77123@mail.shop.example>\r\n"
             "Received: from mail.shop.example (mail.shop.example. [192.0.2.17])\r\n"
             "        by mx.example.org with ESMTPS id a1si9 for <bob@example.org>;\r\n"
             "        Mon, 03 Mar 2025 08:15:41 -0800 (PST)\r\n"
             "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=shop.example; s=k1;\r\n"
             " h=from:to:subject:date; bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=;\r\n"
             " b=Zm9yIGEgYmVuY2htYXJrIHRoaXMgaXMgZ29vZCBlbm91Z2gsIGlzIGl0IG5vdD8gWWVzLg==\r\n"
             "Date: Mon, 3 Mar 2025 17:15:40 +0100\r\n"
             "From: =?utf-8?Q?Caf=C3=A9_Shop?= <orders@shop.example>\r\n"
             "To: \"Brown, Bob\" <bob@example.org>, Ann Lee <ann@example.org>\r\n"
             "Message-ID: <20250303161540.77123@mail.shop.example>\r\n"
             "Subject: =?utf-8?Q?Your_order_=E2=80=93_thank_you?=\r\nMIME-Version: 1.0\r\n"
             "List-Unsubscribe: <https://shop.example/u?x=77123>\r\n"
             "Content-Type: multipart/mixed; boundary=\"=_outer\"\r\n\r\n--=_outer\r\n"
             "Content-Type: multipart/alternative; boundary=\"=_inner\"\r\n\r\n--=_inner\r\n"
             "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n");
    for (int i = 0; i < 25; i++)
        (void)tide_buf_print(out, "Order %d: Caf\303\251 chair, oak - 129.00 EUR\r\n", i);
    (void)tide_buf_add_text(out, "--=_inner\r\nContent-Type: text/html; charset=utf-8\r\n"
                                 "Content-Transfer-Encoding: quoted-printable\r\n\r\n");
    add_page(out, 5500);
    (void)tide_buf_add_text(out, "--=_inner--\r\n\r\n--=_outer\r\n"
                                 "Content-Type: application/pdf; name=\"invoice.pdf\"\r\n"
                                 "Content-Disposition: attachment; filename=\"invoice.pdf\"\r\n"
                                 "Content-Transfer-Encoding: base64\r\n\r\n");
    while (out->bytes < 10 * 1024 - 90)
        (void)tide_buf_add_text(out, "JVBERi0xLjQKJcOkw7zDtsOfCjIgMCBvYmoKPDwvTGVuZ3RoIDMgMCBSL0Zp"
                                     "bHRlci9GbGF0ZUQ=\r\n");
    (void)tide_buf_add_text(out, "--=_outer--\r\n");
}

/* ---- the same with GMime and libxml2 ---- */

static void take_characters(void *arg, const xmlChar *text, int bytes)
{
    (void)tide_buf_add(arg, text, (size_t)bytes);
}

static void libxml_text(const char *html, size_t bytes, tide_buf *out)
{
    static htmlSAXHandler sax;
    sax.characters = take_characters;
    htmlParserCtxtPtr context = htmlCreateMemoryParserCtxt(html, (int)bytes);
    must(context != NULL, "libxml2 failed");
    memcpy(context->sax, &sax, sizeof sax);
    context->userData = out;
    (void)htmlCtxtUseOptions(context, HTML_PARSE_RECOVER | HTML_PARSE_NOERROR |
                                          HTML_PARSE_NOWARNING | HTML_PARSE_NONET);
    (void)htmlParseDocument(context);
    htmlFreeParserCtxt(context);
}

static void gmime_part(GMimeObject *parent, GMimeObject *object, gpointer arg)
{
    (void)parent;
    if (!GMIME_IS_TEXT_PART(object)) {
        if (GMIME_IS_PART(object))
            (void)g_mime_part_get_filename(GMIME_PART(object));
        return;
    }
    char *text = g_mime_text_part_get_text(GMIME_TEXT_PART(object));
    if (g_mime_content_type_is_type(g_mime_object_get_content_type(object), "text", "html"))
        libxml_text(text, strlen(text), arg);
    else
        (void)tide_buf_add_text(arg, text);
    g_free(text);
}

static void gmime_read(tide_text raw, tide_buf *out)
{
    GMimeStream *stream = g_mime_stream_mem_new_with_buffer(raw.data, raw.bytes);
    GMimeParser *parser = g_mime_parser_new_with_stream(stream);
    GMimeMessage *message = g_mime_parser_construct_message(parser, NULL);
    must(message != NULL, "GMime failed");
    (void)g_mime_message_get_subject(message);
    (void)g_mime_message_get_date(message);
    (void)g_mime_message_get_message_id(message);
    char *from = internet_address_list_to_string(g_mime_message_get_from(message), NULL, FALSE);
    char *to = internet_address_list_to_string(g_mime_message_get_to(message), NULL, FALSE);
    g_free(from);
    g_free(to);
    g_mime_message_foreach(message, gmime_part, out);
    g_object_unref(message);
    g_object_unref(parser);
    g_object_unref(stream);
}

/* ---- measuring ---- */

static double ours_us(tide_text raw)
{
    double best = 1e9;
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 64 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_s();
        for (int i = 0; i < MESSAGES; i++) {
            struct tide_message message;
            must(tide_message_parse(raw, &arena, &message) == TIDE_OK, "not read");
            must(message.attachments_count == 1 && message.text.bytes > 1000, "read wrongly");
            tide_arena_reset(&arena);
        }
        double us = (now_s() - start) / MESSAGES * 1e6;
        best = us < best ? us : best;
    }
    tide_arena_done(&arena);
    return best;
}

static double gmime_us(tide_text raw)
{
    double best = 1e9;
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), 64 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_s();
        for (int i = 0; i < MESSAGES / 4; i++) {
            tide_buf_clear(&out);
            gmime_read(raw, &out);
        }
        double us = (now_s() - start) / (MESSAGES / 4.0) * 1e6;
        best = us < best ? us : best;
    }
    must(out.bytes > 1000, "GMime found no text");
    tide_buf_done(&out);
    return best;
}

/* MB a second of one of our functions over `text`. */
static double speed(tide_status (*function)(tide_text text, tide_buf *out), tide_text text)
{
    double best = 0;
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), 256 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_s();
        for (size_t done = 0; done < (20u << 20); done += text.bytes) {
            tide_buf_clear(&out);
            must(function(text, &out) == TIDE_OK, "a function failed");
        }
        double mb_s = 20 / (now_s() - start);
        best = mb_s > best ? mb_s : best;
    }
    tide_buf_done(&out);
    return best;
}

static tide_status libxml_function(tide_text text, tide_buf *out)
{
    libxml_text(text.data, text.bytes, out);
    return TIDE_OK;
}

static tide_status base64_function(tide_text text, tide_buf *out)
{
    struct tide_attachment all = {.encoding = TIDE_ENCODING_BASE64, .end = text.bytes};
    return tide_attachment_decode(text, &all, out, NULL);
}

/* ---- washing for display ---- */

static tide_status wash_function(tide_text text, tide_buf *out)
{
    tide_arena arena;
    struct tide_washed washed;
    tide_arena_init(&arena, tide_mem_heap(), 64 << 20);
    tide_status rc = tide_html_wash(text, &arena, out, &washed);
    tide_arena_done(&arena);
    return rc;
}

/* As newsletters are: more style than text. */
static void add_newsletter(tide_buf *out, size_t bytes)
{
    (void)tide_buf_add_text(
        out, "<!DOCTYPE html><html><head><title>News</title><style type=\"text/css\"><!--\n"
             "body,table,td{margin:0;padding:0} #outlook a{padding:0;}\n"
             "@media only screen and (max-width:600px){.wide{width:100% !important;}}\n"
             "--></style></head><body bgcolor=\"#f4f4f4\" style=\"margin:0\">"
             "<table width=\"100%\" cellpadding=\"0\" cellspacing=\"0\" border=\"0\">\n");
    for (int row = 1; out->bytes < bytes; row++)
        (void)tide_buf_print(
            out,
            "<tr><td class=\"wide\" align=\"center\" valign=\"top\" style=\"padding:20px 0 0 8px; "
            "font-family:'Helvetica Neue',Arial,sans-serif; font-size:16px; color:#333333;\">"
            "<!-- item --><img src=\"https://img.news.example/i/%d.png?w=600&amp;q=80\" "
            "width=\"600\" "
            "alt=\"Picture %d\" style=\"display:block;border:0\"><p>The harbour opens at %d "
            "&ndash; "
            "read on, and bring your neighbours; caf\303\251 and cake are free.</p>"
            "<a href=\"https://click.news.example/c?u=7&amp;id=%d\" target=\"_blank\" style=\""
            "color:#ffffff;background:#1a73e8 url(https://img.news.example/b.png) no-repeat;"
            "text-decoration:none\">Read&nbsp;more</a></td></tr>\n",
            row % 300, row, row, row * 7919);
    (void)tide_buf_add_text(out, "</table></body></html>\n");
}

static void measure_wash(void)
{
    tide_buf newsletter, nested;
    tide_buf_init(&newsletter, tide_mem_heap(), 8 << 20);
    tide_buf_init(&nested, tide_mem_heap(), 8 << 20);
    add_newsletter(&newsletter, 100 << 10);
    report("wash_newsletter", speed(wash_function, tide_buf_text(&newsletter)), "MB/s", 0, "");
    while (nested.bytes < 100000)
        (void)tide_buf_add_text(&nested, "<div>");
    report("wash_nested_div", speed(wash_function, tide_buf_text(&nested)), "MB/s", 0, "");
    tide_buf_done(&newsletter);
    tide_buf_done(&nested);
}

int main(void)
{
    tide_buf raw, page, cjk, base64;
    g_mime_init();
    tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
    tide_buf_init(&page, tide_mem_heap(), 8 << 20);
    tide_buf_init(&cjk, tide_mem_heap(), 8 << 20);
    tide_buf_init(&base64, tide_mem_heap(), 8 << 20);
    make_message(&raw);
    double gmime = gmime_us(tide_buf_text(&raw));
    report("message_typical_10k", ours_us(tide_buf_text(&raw)), "us", gmime, "GMime and libxml2");
    add_page(&page, 100 << 10);
    double libxml = speed(libxml_function, tide_buf_text(&page));
    report("html_text", speed(tide_html_text, tide_buf_text(&page)), "MB/s", libxml, "libxml2");
    measure_wash();
    while (cjk.bytes < (1 << 20))
        (void)tide_buf_add_text(&cjk, "\346\227\245\346\234\254\350\252\236 mixed with words ");
    report("search_fold", speed(tide_search_fold, tide_buf_text(&cjk)), "MB/s", 0, "");
    while (base64.bytes < (1 << 20))
        (void)tide_buf_add_text(&base64, "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w"
                                         "cXJzdHV2d3h5ejAxMjM0\r\n");
    report("attachment_base64", speed(base64_function, tide_buf_text(&base64)), "MB/s", 0, "");
    tide_buf_done(&raw);
    tide_buf_done(&page);
    tide_buf_done(&cjk);
    tide_buf_done(&base64);
    return 0;
}
