/* document.c - a message as one HTML file that needs nothing else.
 *
 * It is written from the washed HTML, whose form is known (mail/wash/wash.h): attributes are
 * name="value", without a '"' in the value, and only the content of <style> is not markup.  So one
 * pass that writes the tags of images again is enough, and what it copies is as safe as what it
 * reads.
 *
 * A mail may use one image a million times.  What is written in place of a tag is therefore paid
 * from the room that the washed HTML leaves; when that is used up, a tag becomes a word that is
 * shorter than the tag. */
#include "mail/view/inside.h"
#include "base/encode.h"
#include "mail/mime/html_token.h"

#include <stdio.h>

static const char head[] =
    "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
    "<meta name=\"referrer\" content=\"no-referrer\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>";
static const char middle[] = "</title></head>\n<body>\n";
static const char tail[] = "\n</body></html>\n";

/* What is known of an attachment as an image. */
struct known {
    bool seen, usable;
    size_t bytes;
};

struct document {
    struct tide_view *view;
    const struct tide_view_page *page;
    tide_buf *out;
    struct known *known; /* by attachment */
    tide_buf image;      /* decoded */
    size_t extra;        /* room that the washed HTML does not need */
    tide_status rc;
};

enum {
    TITLE_BYTES_MAX = 300,
    URL_BYTES_MAX = 500, /* of a remote image, shown */
    ESCAPE_BYTES_MAX = 5,
};

/* ---- writing ---- */

static void put(struct document *document, const char *text, size_t bytes)
{
    if (document->rc == TIDE_OK)
        document->rc = tide_buf_add(document->out, text, bytes);
}

static void put_text(struct document *document, tide_text text)
{
    put(document, text.data, text.bytes);
}

/* Between tags, where a '"' is a character like others. */
static void put_escaped(struct document *document, tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        switch (text.data[i]) {
        case '&':
            put(document, "&amp;", 5);
            break;
        case '<':
            put(document, "&lt;", 4);
            break;
        case '>':
            put(document, "&gt;", 4);
            break;
        default:
            put(document, text.data + i, 1);
            break;
        }
    }
}

/* ---- images ---- */

/* The number of "img/12" and the like; false: it is another URL. */
static bool number_of(tide_text url, const char *kind, size_t *number_out)
{
    uint64_t number = 0;
    if (url.bytes < 5 || memcmp(url.data, kind, 4) != 0 ||
        !tide_text_to_u64((tide_text){url.data + 4, url.bytes - 4}, &number))
        return false;
    *number_out = (size_t)number;
    return true;
}

static bool extra_take(struct document *document, size_t bytes)
{
    if (bytes > document->extra)
        return false;
    document->extra -= bytes;
    return true;
}

/* As base64, with what is around it. */
static size_t image_room(size_t bytes)
{
    return (bytes + 2) / 3 * 4 + 64;
}

/* Reads an image of the message; false: there is none, or no room for it.  Each part is decoded once
 * to know it, and then only to be written: the work is bounded by the size of the message and of the
 * document. */
static bool image_read(struct document *document, size_t number, const char **type_out)
{
    const struct tide_view_page *page = document->page;
    if (number >= page->cids_count || page->cids[number] == TIDE_VIEW_NO_PART)
        return false;
    struct known *known = &document->known[page->cids[number]];
    if (known->seen && (!known->usable || image_room(known->bytes) > document->extra))
        return false;
    tide_buf_clear(&document->image);
    const tide_status rc =
        tide_view_image(document->view, page, number, &document->image, type_out);
    if (rc == TIDE_NO_MEMORY)
        document->rc = rc;
    *known = (struct known){.seen = true, .usable = rc == TIDE_OK, .bytes = document->image.bytes};
    return rc == TIDE_OK && extra_take(document, image_room(document->image.bytes));
}

static void put_image(struct document *document, const char *type)
{
    put(document, "data:", 5);
    put_text(document, tide_text_of(type));
    put(document, ";base64,", 8);
    if (document->rc == TIDE_OK)
        document->rc = tide_base64_add(document->out, tide_buf_text(&document->image),
                                       tide_base64_standard, true);
}

/* A washed value as text: it was in the tag, so it needs no room.  Only its '"' is escaped otherwise. */
static void put_value_text(struct document *document, tide_text value)
{
    while (value.bytes > 0) {
        const char *found = memmem(value.data, value.bytes, "&#34;", 5);
        const size_t bytes = found == NULL ? value.bytes : (size_t)(found - value.data);
        put(document, value.data, bytes);
        if (found != NULL)
            put(document, "\"", 1);
        value.data += bytes + (found != NULL ? 5 : 0);
        value.bytes -= bytes + (found != NULL ? 5 : 0);
    }
}

/* An image that is not shown: what it is, its alternative text, its URL. */
static void put_missing(struct document *document, const char *what, tide_text alt, tide_text url)
{
    url = tide_utf8_cut(url, URL_BYTES_MAX);
    if (!extra_take(document, strlen(what) + url.bytes * ESCAPE_BYTES_MAX + 32)) {
        put(document, "[image]", 7);
        return;
    }
    put_text(document, TIDE_TEXT("<span>["));
    put_text(document, tide_text_of(what));
    if (alt.bytes > 0) {
        put(document, ": ", 2);
        put_value_text(document, alt);
    }
    if (url.bytes > 0) {
        put(document, ", ", 2);
        put_escaped(document, url);
    }
    put_text(document, TIDE_TEXT("]</span>"));
}

/* ---- tags ---- */

/* Whether the value of an attribute names an image by number. */
static bool is_numbered(tide_text value)
{
    size_t number = 0;
    return number_of(value, "img/", &number) || number_of(value, "cid/", &number);
}

static void put_attribute(struct document *document, tide_text name, tide_text value)
{
    put(document, " ", 1);
    put_text(document, name);
    put(document, "=\"", 2);
    put_text(document, value);
    put(document, "\"", 1);
}

/* Writes a tag again without the images that have a number; those of an <img> that can be shown are
 * in document->image, of type `type`. */
static void put_tag(struct document *document, tide_text name, struct tide_html_reader attributes,
                    const char *type)
{
    tide_text attribute, value;
    put(document, "<", 1);
    put_text(document, name);
    while (tide_html_attribute(&attributes, &attribute, &value)) {
        if (!is_numbered(value)) {
            put_attribute(document, attribute, value);
        } else if (type != NULL && tide_text_equal(attribute, TIDE_TEXT("src"))) {
            put_text(document, TIDE_TEXT(" src=\""));
            put_image(document, type);
            put(document, "\"", 1);
        } else if (!tide_text_equal(attribute, TIDE_TEXT("background"))) {
            put_attribute(document, attribute, value); /* a title that looks like one */
        }
    }
    put(document, ">", 1);
}

/* An <img>: as it is, with its image as data, or as text. */
static void put_img(struct document *document, tide_text name, struct tide_html_reader attributes)
{
    struct tide_html_reader again = attributes;
    tide_text attribute, value, source = TIDE_TEXT(""), alt = TIDE_TEXT("");
    while (tide_html_attribute(&again, &attribute, &value)) {
        if (tide_text_equal(attribute, TIDE_TEXT("src")))
            source = value;
        else if (tide_text_equal(attribute, TIDE_TEXT("alt")))
            alt = value;
    }
    size_t number = 0;
    const char *type = NULL;
    if (number_of(source, "img/", &number)) {
        const struct tide_view_page *page = document->page;
        put_missing(document, "remote image, not loaded", alt,
                    number < page->remote_count ? page->remote[number] : TIDE_TEXT(""));
    } else if (number_of(source, "cid/", &number) && !image_read(document, number, &type)) {
        type = NULL;
        put_missing(document, "image, missing in the message or not shown", alt, TIDE_TEXT(""));
    } else {
        put_tag(document, name, attributes, type);
    }
}

/* Whether a tag must be written again. */
static bool has_image(tide_text name, tide_text tag)
{
    return tide_text_equal(name, TIDE_TEXT("img")) ||
           memmem(tag.data, tag.bytes, " background=\"", 13) != NULL;
}

static void put_body(struct document *document, tide_text html)
{
    struct tide_html_reader reader = {.html = html};
    struct tide_html_token token;
    size_t copied = 0;
    while (document->rc == TIDE_OK && tide_html_next(&reader, &token)) {
        if (token.kind != TIDE_HTML_OPEN)
            continue;
        const size_t begin = (size_t)(token.text.data - html.data) - 1;
        const struct tide_html_reader attributes = reader;
        (void)tide_html_tag_end(&reader);
        if (tide_text_equal(token.text, TIDE_TEXT("style")))
            (void)tide_html_raw(&reader, "style");
        if (!has_image(token.text, (tide_text){html.data + begin, reader.at - begin}))
            continue;
        put(document, html.data + copied, begin - copied);
        copied = reader.at;
        if (tide_text_equal(token.text, TIDE_TEXT("img")))
            put_img(document, token.text, attributes);
        else
            put_tag(document, token.text, attributes, NULL);
    }
    put(document, html.data + copied, html.bytes - copied);
}

/* ---- the whole ---- */

tide_status tide_view_document(struct tide_view *view, tide_buf *out,
                               struct tide_view_page *page_out)
{
    struct tide_view_page page = {.html = false};
    struct document document = {.view = view, .page = &page, .out = out};
    const size_t before = out->bytes;
    tide_buf html;
    tide_buf_init(&html, view->mem, TIDE_VIEW_HTML_BYTES_MAX);
    tide_buf_init(&document.image, view->mem, TIDE_VIEW_IMAGE_BYTES_MAX);
    document.rc = tide_view_html(view, &html, &page);
    document.known = tide_arena_take(&view->arena, (view->message.attachments_count + 1) *
                                                       sizeof document.known[0]);
    if (document.rc == TIDE_OK && document.known == NULL)
        document.rc = TIDE_NO_MEMORY;
    put_text(&document, tide_text_of(head));
    put_escaped(&document, tide_utf8_cut(view->message.subject, TITLE_BYTES_MAX));
    put_text(&document, tide_text_of(middle));
    if (page.cut)
        put_text(&document, TIDE_TEXT("<p>[The message is too large to show whole.]</p>\n"));
    const size_t needed = html.bytes + sizeof tail;
    const size_t left = out->bytes_max - out->bytes;
    document.extra = left > needed ? left - needed : 0;
    put_body(&document, tide_buf_text(&html));
    put_text(&document, tide_text_of(tail));
    tide_buf_done(&html);
    tide_buf_done(&document.image);
    if (document.rc == TIDE_OK)
        *page_out = page;
    else
        tide_view_back(out, before);
    return document.rc;
}
