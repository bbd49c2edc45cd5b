#include "mail/browse/lines.h"

#include "base/json.h"
#include "cli/cli.h"

#include <glib.h>

enum { TAB = 8 };

void browse_lines_init(struct browse_lines *lines, tide_mem *mem)
{
    *lines = (struct browse_lines){.mem = mem};
    tide_buf_init(&lines->text, mem, BROWSE_TEXT_BYTES_MAX);
}

void browse_lines_done(struct browse_lines *lines)
{
    tide_buf_done(&lines->text);
    tide_mem_free(lines->mem, lines->list, lines->capacity * sizeof *lines->list);
    *lines = (struct browse_lines){.mem = lines->mem};
}

void browse_lines_clear(struct browse_lines *lines, unsigned columns)
{
    tide_buf_clear(&lines->text);
    lines->count = 0;
    lines->columns = columns == 0 ? 1 : columns;
}

tide_text browse_lines_at(const struct browse_lines *lines, size_t index)
{
    if (index >= lines->count || lines->text.data == NULL)
        return TIDE_TEXT("");
    return (tide_text){lines->text.data + lines->list[index].at, lines->list[index].bytes};
}

/* ---- clean text ---- */

/* Joiners shape the letters beside them, in Persian and in emoji; other format characters are
 * invisible, or turn the text around. */
static bool is_shown(gunichar c)
{
    if (c == 0x200c || c == 0x200d)
        return true;
    const GUnicodeType type = g_unichar_type(c);
    return type != G_UNICODE_CONTROL && type != G_UNICODE_FORMAT &&
           type != G_UNICODE_LINE_SEPARATOR && type != G_UNICODE_PARAGRAPH_SEPARATOR;
}

/* `column`: where the text is on its line, for tabs; *bytes_out: of the character that was taken. */
static tide_status clean_one(tide_text text, unsigned column, tide_buf *out, size_t *bytes_out)
{
    static const char blanks[] = "        ";
    const size_t bytes = tide_utf8_bytes(text);
    *bytes_out = bytes == 0 ? 1 : bytes;
    if (bytes == 0)
        return tide_buf_add(out, "?", 1);
    if (text.data[0] == '\t')
        return tide_buf_add(out, blanks, TAB - column % TAB);
    if (text.data[0] == '\n' || text.data[0] == '\r')
        return tide_buf_add(out, blanks, 1);
    return is_shown(g_utf8_get_char(text.data)) ? tide_buf_add(out, text.data, bytes) : TIDE_OK;
}

tide_status browse_clean(tide_text text, tide_buf *out)
{
    const size_t begin = out->bytes;
    for (size_t bytes; text.bytes > 0; text.data += bytes, text.bytes -= bytes)
        TIDE_TRY(clean_one(text, (unsigned)(out->bytes - begin), out, &bytes));
    return TIDE_OK;
}

/* ---- wrapping ---- */

static tide_status line_add(struct browse_lines *lines, browse_style style, size_t at, size_t bytes)
{
    while (bytes > 0 && lines->text.data[at + bytes - 1] == ' ')
        bytes--;
    if (!TIDE_GROW_IN(lines->mem, lines->list, lines->capacity, lines->count + 1, BROWSE_LINES_MAX))
        return TIDE_NO_MEMORY;
    lines->list[lines->count++] = (struct browse_line){at, bytes, style};
    return TIDE_OK;
}

/* The bytes of `text` that go on one line: to the last blank that fits, else as many as fit. */
static size_t fitting(tide_text text, unsigned columns)
{
    size_t used = 0, after_blank = 0;
    unsigned width = 0;
    for (size_t bytes; used < text.bytes; used += bytes) {
        const tide_text rest = {text.data + used, text.bytes - used};
        width += cli_char_width(rest, &bytes);
        if (width > columns && rest.data[0] != ' ')
            return after_blank > 0 ? after_blank : used == 0 ? bytes : used;
        if (rest.data[0] == ' ')
            after_blank = used + 1;
    }
    return used;
}

static tide_status paragraph_add(struct browse_lines *lines, browse_style style, tide_text text)
{
    const size_t begin = lines->text.bytes;
    const browse_style shown =
        style == BROWSE_PLAIN && text.bytes > 0 && text.data[0] == '>' ? BROWSE_QUOTED : style;
    TIDE_TRY(browse_clean(text, &lines->text));
    size_t at = begin;
    do {
        const size_t left = lines->text.bytes - at;
        const size_t bytes =
            left == 0 ? 0 : fitting((tide_text){lines->text.data + at, left}, lines->columns);
        TIDE_TRY(line_add(lines, shown, at, bytes));
        at += bytes;
    } while (at < lines->text.bytes);
    return TIDE_OK;
}

tide_status browse_lines_add(struct browse_lines *lines, browse_style style, tide_text text)
{
    do {
        const char *end = text.bytes == 0 ? NULL : memchr(text.data, '\n', text.bytes);
        size_t bytes = end == NULL ? text.bytes : (size_t)(end - text.data);
        const size_t taken = end == NULL ? bytes : bytes + 1;
        if (bytes > 0 && text.data[bytes - 1] == '\r')
            bytes--;
        TIDE_TRY(paragraph_add(lines, style, (tide_text){text.data, bytes}));
        text.data += taken;
        text.bytes -= taken;
    } while (text.bytes > 0);
    return TIDE_OK;
}
