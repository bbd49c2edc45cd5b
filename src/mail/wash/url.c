/* url.c - URLs: which are allowed, and how they are written.
 *
 * A browser removes white space around a URL and tabs and line ends inside it before it looks for
 * the scheme; so does clean().  What is left must begin with a scheme of the list.  There is no
 * list of bad schemes. */
#include "base/encode.h"
#include "base/hash.h"
#include "base/limits.h"
#include "mail/mime/charset.h"
#include "mail/wash/inside.h"

#include <stdio.h>

enum { PROBES_MAX = 8 };

/* ---- reading ---- */

/* The URL as a browser sees it, in wash->url; "": it has characters that no URL has.  Characters
 * that need it are percent-encoded. */
static tide_text clean(struct tide_wash *wash, tide_text value)
{
    static const char hex[] = "0123456789ABCDEF";
    tide_buf *url = &wash->url;
    tide_buf_clear(url);
    while (value.bytes > 0 && (unsigned char)value.data[0] <= ' ')
        value = (tide_text){value.data + 1, value.bytes - 1};
    while (value.bytes > 0 && (unsigned char)value.data[value.bytes - 1] <= ' ')
        value.bytes--;
    wash->out.work += value.bytes;
    size_t room = 0;
    if (__builtin_mul_overflow(value.bytes, 3u, &room) || tide_buf_reserve(url, room) == NULL) {
        wash->out.rc = TIDE_NO_MEMORY;
        return TIDE_TEXT("");
    }
    char *to = url->data;
    bool query = false;
    for (size_t at = 0; at < value.bytes;) {
        size_t bytes = 0;
        uint32_t code = tide_wash_character((tide_text){value.data + at, value.bytes - at}, &bytes);
        if (code == '\t' || code == '\n' || code == '\r') {
            at += bytes;
            continue;
        }
        if (tide_wash_is_control(code) || code == 0xfffd)
            return TIDE_TEXT("");
        query = query || code == '?' || code == '#';
        if (code == '\\' && !query) {
            *to++ = '/'; /* what browsers make of it */
        } else if (code < 0x80 && strchr(" \"<>\\^`{|}", (int)code) != NULL) {
            *to++ = '%';
            *to++ = hex[code >> 4];
            *to++ = hex[code & 15];
        } else {
            memcpy(to, value.data + at, bytes);
            to += bytes;
        }
        at += bytes;
    }
    url->bytes = (size_t)(to - url->data);
    *to = '\0';
    return tide_buf_text(url);
}

/* The rest of `url` behind `prefix`, in lower case; NULL data: it does not begin so. */
static tide_text behind(tide_text url, const char *prefix)
{
    size_t bytes = strlen(prefix);
    if (!tide_text_starts_nocase(url, prefix))
        return TIDE_TEXT_NONE;
    return (tide_text){url.data + bytes, url.bytes - bytes};
}

/* Whether it is an http or https URL with a host; then its scheme and what follows the scheme's
 * slashes.  "//host" has the scheme https. */
static bool is_web(tide_text url, const char **scheme_out, tide_text *rest_out)
{
    static const struct {
        const char *prefix, *scheme;
    } schemes[] = {{"https://", "https://"}, {"http://", "http://"}, {"//", "https://"}};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        tide_text rest = behind(url, schemes[i].prefix);
        if (rest.data == NULL)
            continue;
        *scheme_out = schemes[i].scheme;
        *rest_out = rest;
        return rest.bytes > 0 && url.bytes <= TIDE_URL_BYTES_MAX &&
               strchr("/?#@:", rest.data[0]) == NULL;
    }
    return false;
}

/* ---- links ---- */

bool tide_wash_link(struct tide_wash *wash, tide_text value)
{
    tide_text url = clean(wash, value), rest;
    const char *scheme = NULL;
    if (is_web(url, &scheme, &rest)) {
        tide_wash_put_cstr(&wash->out, scheme);
        tide_wash_value(&wash->out, rest);
        return true;
    }
    rest = behind(url, "mailto:");
    if (rest.bytes == 0 || url.bytes > TIDE_URL_BYTES_MAX)
        return false;
    tide_wash_put_cstr(&wash->out, "mailto:");
    tide_wash_value(&wash->out, rest);
    return true;
}

/* ---- images ---- */

static bool list_start(struct tide_wash *wash, struct tide_wash_list *list)
{
    if (list->items != NULL)
        return true;
    list->items = tide_arena_take(wash->arena, TIDE_WASH_IMAGES_MAX * sizeof list->items[0]);
    list->hashes = tide_arena_take(wash->arena, TIDE_WASH_IMAGES_MAX * sizeof list->hashes[0]);
    list->slots = tide_arena_take(wash->arena, WASH_SLOTS * sizeof list->slots[0]);
    return list->items != NULL && list->hashes != NULL && list->slots != NULL;
}

/* The number of an item, old or new; false: there are too many, or no memory.  Looks at a few slots
 * only, so that crowded ones cost nothing but a second number. */
static bool number_of(struct tide_wash *wash, struct tide_wash_list *list, tide_text item,
                      size_t *number_out)
{
    if (!list_start(wash, list)) {
        wash->out.rc = TIDE_NO_MEMORY;
        return false;
    }
    uint64_t hash = tide_hash(TIDE_HASH_START, item);
    wash->out.work += item.bytes;
    uint16_t *slot = NULL;
    for (size_t i = 0; i < PROBES_MAX; i++) {
        slot = &list->slots[(hash + i) % WASH_SLOTS];
        wash->out.work++;
        if (*slot == 0)
            break;
        size_t number = (size_t)*slot - 1;
        if (list->hashes[number] == hash && tide_text_equal(list->items[number], item)) {
            *number_out = number;
            return true;
        }
    }
    if (list->count == TIDE_WASH_IMAGES_MAX)
        return false;
    char *copy = tide_arena_copy(wash->arena, item.data, item.bytes);
    if (copy == NULL) {
        wash->out.rc = TIDE_NO_MEMORY;
        return false;
    }
    *number_out = list->count;
    list->items[list->count] = (tide_text){copy, item.bytes};
    list->hashes[list->count++] = hash;
    if (*slot == 0)
        *slot = (uint16_t)list->count;
    return true;
}

static bool put_number(struct tide_wash *wash, struct tide_wash_list *list, tide_text item,
                       const char *prefix)
{
    char text[32];
    size_t number = 0;
    if (!number_of(wash, list, item, &number))
        return false;
    int bytes = snprintf(text, sizeof text, "%s%zu", prefix, number);
    tide_wash_put(&wash->out, text, (size_t)bytes);
    return true;
}

/* "img/12" and "cid/3": what this module wrote (WSH5). */
static bool is_numbered(tide_text url)
{
    if (url.bytes < 5 || url.bytes > 7 ||
        (memcmp(url.data, "img/", 4) != 0 && memcmp(url.data, "cid/", 4) != 0))
        return false;
    for (size_t i = 4; i < url.bytes; i++) {
        if (url.data[i] < '0' || url.data[i] > '9')
            return false;
    }
    return url.data[4] != '0' || url.bytes == 5;
}

/* Decodes %40 and the like in place. */
static tide_text percent_decoded(tide_buf *url, size_t begin)
{
    char *to = url->data + begin;
    for (size_t i = begin; i < url->bytes; i++) {
        const int byte = url->data[i] != '%'
                             ? -1
                             : tide_hex_byte((tide_text){url->data + i + 1, url->bytes - i - 1});
        *to++ = byte < 0 ? url->data[i] : (char)byte;
        i += byte < 0 ? 0 : 2;
    }
    return (tide_text){url->data + begin, (size_t)(to - url->data) - begin};
}

/* Images with pixels only: an SVG is a document. */
static bool put_data(struct tide_wash *wash, tide_text rest)
{
    static const char *const types[] = {"png", "jpeg", "jpg", "gif", "webp", "bmp"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        tide_text behind_type = behind(rest, types[i]);
        tide_text base64 = behind_type.data == NULL ? behind_type : behind(behind_type, ";base64,");
        if (base64.bytes == 0)
            continue;
        struct tide_wash_out *out = &wash->out;
        tide_wash_put_cstr(out, "data:image/");
        tide_wash_put_cstr(out, types[i]);
        tide_wash_put_cstr(out, ";base64,");
        out->work += base64.bytes;
        for (size_t at = 0; at < base64.bytes; at++) {
            char c = base64.data[at];
            if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '+' || c == '/' || c == '='))
                return false;
        }
        tide_wash_put(out, base64.data, base64.bytes);
        return true;
    }
    return false;
}

bool tide_wash_image(struct tide_wash *wash, tide_text value, bool data_too)
{
    tide_text url = clean(wash, value), rest;
    const char *scheme = NULL;
    if (url.bytes == 0)
        return false;
    if (is_numbered(url)) {
        tide_wash_put(&wash->out, url.data, url.bytes);
        return true;
    }
    rest = behind(url, "data:image/");
    if (rest.data != NULL)
        return data_too && put_data(wash, rest);
    rest = behind(url, "cid:");
    if (rest.data != NULL) {
        rest = percent_decoded(&wash->url, 4);
        return rest.bytes > 0 && rest.bytes <= TIDE_URL_BYTES_MAX &&
               put_number(wash, &wash->cids, rest, "cid/");
    }
    if (!is_web(url, &scheme, &rest))
        return false;
    tide_buf_clear(&wash->value); /* `value` was in it, and was copied */
    wash->out.rc = tide_buf_add_text(&wash->value, scheme);
    if (wash->out.rc == TIDE_OK)
        wash->out.rc = tide_buf_add(&wash->value, rest.data, rest.bytes);
    return wash->out.rc == TIDE_OK &&
           put_number(wash, &wash->remote, tide_buf_text(&wash->value), "img/");
}
