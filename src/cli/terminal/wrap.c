#include "cli/terminal/wrap.h"

#include "cli/cli.h"

#include <string.h>

enum { ROOM_MIN = 24 }; /* columns that a last column needs */

static size_t blanks_at(tide_text line, size_t at)
{
    size_t count = 0;
    while (at + count < line.bytes && line.data[at + count] == ' ')
        count++;
    return count;
}

/* Where the rest of a line goes: two blanks or more begin a column. */
static unsigned indent_of(tide_text line, unsigned columns, unsigned least)
{
    const size_t begin = blanks_at(line, 0);
    unsigned indent = (unsigned)begin + (begin > 0 ? 2 : 0);
    unsigned width = (unsigned)begin;
    for (size_t at = begin, bytes; at < line.bytes; at += bytes) {
        const size_t blanks = blanks_at(line, at);
        bytes = blanks;
        if (blanks == 0)
            width += cli_char_width((tide_text){line.data + at, line.bytes - at}, &bytes);
        width += (unsigned)blanks;
        if (width + ROOM_MIN > columns)
            break;
        if (blanks >= 2)
            indent = width;
    }
    indent = indent > least ? indent : least;
    return indent + ROOM_MIN > columns ? 0 : indent;
}

/* The bytes until the next blank that is not in `backquotes`. */
static size_t word_bytes(tide_text rest)
{
    size_t bytes = 0;
    bool quoted = false;
    while (bytes < rest.bytes && (quoted || rest.data[bytes] != ' ')) {
        quoted ^= rest.data[bytes] == '`';
        bytes++;
    }
    for (bytes = quoted ? 0 : bytes; quoted && bytes < rest.bytes && rest.data[bytes] != ' ';)
        bytes++; /* a lone backquote quotes nothing */
    return bytes;
}

static tide_status add_blanks(tide_buf *out, size_t count)
{
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && count-- > 0)
        rc = tide_buf_add(out, " ", 1);
    return rc;
}

static tide_status wrap_line(tide_text line, unsigned columns, unsigned least, tide_buf *out)
{
    const unsigned indent = indent_of(line, columns, least);
    unsigned used = 0;
    bool begun = false; /* a word is on this line */
    while (line.bytes > 0) {
        const size_t blanks = blanks_at(line, 0);
        const tide_text rest = {line.data + blanks, line.bytes - blanks};
        const tide_text word = {rest.data, word_bytes(rest)};
        const unsigned width = cli_text_width(word);
        if (begun && used + blanks + width > columns) {
            TIDE_TRY(tide_buf_add(out, "\n", 1));
            TIDE_TRY(add_blanks(out, indent));
            used = indent;
        } else {
            TIDE_TRY(add_blanks(out, blanks));
            used += (unsigned)blanks;
        }
        TIDE_TRY(tide_buf_add(out, word.data, word.bytes));
        used += width;
        begun = true;
        line = (tide_text){rest.data + word.bytes, rest.bytes - word.bytes};
    }
    return TIDE_OK;
}

static bool is_command(tide_text line)
{
    static const char name[] = "tidemark ";
    const size_t begin = blanks_at(line, 0);
    return line.bytes > begin + sizeof name && line.data[begin + sizeof name - 1] != ' ' &&
           memcmp(line.data + begin, name, sizeof name - 1) == 0 &&
           memmem(line.data + begin, line.bytes - begin, "  ", 2) == NULL;
}

tide_status cli_wrap(tide_text text, unsigned columns, unsigned indent, tide_buf *out)
{
    while (text.bytes > 0) {
        const char *end = memchr(text.data, '\n', text.bytes);
        const size_t bytes = end == NULL ? text.bytes : (size_t)(end - text.data);
        const tide_text line = {text.data, bytes};
        if (cli_text_width(line) <= columns || is_command(line))
            TIDE_TRY(tide_buf_add(out, line.data, line.bytes));
        else
            TIDE_TRY(wrap_line(line, columns, indent, out));
        if (end != NULL)
            TIDE_TRY(tide_buf_add(out, "\n", 1));
        text.data += bytes + (end != NULL);
        text.bytes -= bytes + (end != NULL);
    }
    return TIDE_OK;
}
