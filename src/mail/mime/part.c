#include "mail/mime/part.h"

enum { META_BYTES_MAX = 2048 }; /* where a page declares its charset */

bool tide_part_is(const struct tide_part *part, const char *major, const char *minor)
{
    return tide_text_equal_nocase(part->major, major) &&
           (minor == NULL || tide_text_equal_nocase(part->minor, minor));
}

bool tide_part_is_attached(const struct tide_part *part)
{
    return tide_text_starts_nocase(part->disposition, "attachment");
}

bool tide_part_is_text(const struct tide_part *part)
{
    if (part->kind != TIDE_PART_LEAF || part->beyond)
        return false;
    if (tide_part_is(part, "multipart", NULL)) /* no boundary: treated as text */
        return true;
    if (tide_part_is(part, "message", "delivery-status") ||
        tide_part_is(part, "message", "disposition-notification"))
        return true;
    return tide_part_is(part, "text", NULL) && !tide_part_is(part, "text", "rtf");
}

bool tide_part_is_html(const struct tide_part *part)
{
    return tide_part_is(part, "text", "html") || tide_part_is(part, "text", "enriched") ||
           tide_part_is(part, "text", "richtext");
}

static size_t spaces(tide_text text, size_t at)
{
    size_t i = at;
    while (i < text.bytes && strchr(" \t\r\n", text.data[i]) != NULL && text.data[i] != '\0')
        i++;
    return i - at;
}

/* The name after "charset", if a '=' follows. */
static tide_text charset_value(tide_text head, size_t at)
{
    at += spaces(head, at);
    if (at == head.bytes || head.data[at] != '=')
        return TIDE_TEXT("");
    at++;
    at += spaces(head, at);
    at += at < head.bytes && (head.data[at] == '"' || head.data[at] == '\'');
    at += spaces(head, at);
    size_t end = at;
    while (end < head.bytes && strchr("\"'>;/ \t\r\n", head.data[end]) == NULL)
        end++;
    return (tide_text){head.data + at, end - at};
}

static tide_text meta_charset(tide_text html)
{
    const tide_text head = {html.data, html.bytes < META_BYTES_MAX ? html.bytes : META_BYTES_MAX};
    for (size_t i = 0; i + 8 < head.bytes; i++) {
        if ((head.data[i] | 0x20) != 'c' ||
            !tide_text_starts_nocase((tide_text){head.data + i, head.bytes - i}, "charset"))
            continue;
        const tide_text name = charset_value(head, i + 7);
        if (name.bytes > 0)
            return name;
    }
    return TIDE_TEXT("");
}

tide_text tide_part_html_charset(tide_text label, tide_text html)
{
    if (tide_charset_tells(label))
        return label;
    const tide_text name = meta_charset(html);
    /* A <meta> that can be read as ASCII is not in UTF-16, whatever it says. */
    const bool wide = tide_text_starts_nocase(name, "utf-16") ||
                      tide_text_starts_nocase(name, "utf16") ||
                      tide_text_starts_nocase(name, "unicode");
    return name.bytes == 0 || wide ? label : name;
}
