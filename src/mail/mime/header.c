#include "mail/mime/header.h"
#include "mail/mime/transfer.h"
#include "base/check.h"
#include "base/encode.h"

enum {
    PARAM_PIECES_MAX = 64, /* name*0= ... name*63= */
    CHARSET_BYTES_MAX = 60,
};

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- lines ---- */

/* The bytes of one line with its end. */
static size_t line_bytes(tide_text rest, char line_end)
{
    const char *found = rest.bytes == 0 ? NULL : memchr(rest.data, line_end, rest.bytes);
    return found == NULL ? rest.bytes : (size_t)(found - rest.data) + 1;
}

/* The position of the colon, if the line starts a header. */
static bool find_colon(tide_text line, size_t *name_bytes_out, size_t *colon_out)
{
    size_t name = 0;
    while (name < line.bytes && line.data[name] > ' ' && line.data[name] < 0x7f &&
           line.data[name] != ':')
        name++;
    size_t colon = name;
    while (colon < line.bytes && (line.data[colon] == ' ' || line.data[colon] == '\t'))
        colon++;
    if (name == 0 || colon == line.bytes || line.data[colon] != ':')
        return false;
    *name_bytes_out = name;
    *colon_out = colon;
    return true;
}

/* Only a line end, which may have more than one \r. */
static bool is_blank(tide_text line)
{
    size_t i = 0;
    while (i < line.bytes && (line.data[i] == '\r' || line.data[i] == '\n'))
        i++;
    return i == line.bytes;
}

tide_header_line tide_header_read(tide_text rest, char line_end,
                                  struct tide_mail_header *header_out, size_t *bytes_out,
                                  size_t *lines_out)
{
    size_t bytes = line_bytes(rest, line_end);
    size_t lines = 1;
    size_t name_bytes = 0, colon = 0;
    tide_header_line kind = TIDE_HEADER_LINE_NAMED;
    if (is_blank((tide_text){rest.data, bytes}))
        kind = TIDE_HEADER_LINE_BLANK;
    else if (!find_colon((tide_text){rest.data, bytes}, &name_bytes, &colon))
        kind = TIDE_HEADER_LINE_JUNK;
    if (kind == TIDE_HEADER_LINE_NAMED) {
        while (bytes < rest.bytes && (rest.data[bytes] == ' ' || rest.data[bytes] == '\t')) {
            bytes += line_bytes((tide_text){rest.data + bytes, rest.bytes - bytes}, line_end);
            lines++;
        }
        header_out->name = (tide_text){rest.data, name_bytes};
        header_out->value =
            tide_text_trimmed((tide_text){rest.data + colon + 1, bytes - colon - 1});
    }
    *bytes_out = bytes;
    *lines_out = lines;
    return kind;
}

/* ---- encoded words ---- */

struct word {
    tide_text charset;
    tide_encoding encoding;
    tide_text text;
    size_t bytes; /* from =? to ?= */
};

/* `ends` is the position of the next ?= at or after the last search; kept, because searching it
 * from every =? would not be linear (HDR1). */
static bool word_read(tide_text value, size_t at, size_t *ends, struct word *word_out)
{
    size_t i = at + 2;
    size_t charset = i;
    while (i < value.bytes && i - charset <= CHARSET_BYTES_MAX && value.data[i] != '?' &&
           !is_white(value.data[i]))
        i++;
    if (i + 3 > value.bytes || value.data[i] != '?' || i == charset || value.data[i + 2] != '?')
        return false;
    char encoding = (char)(value.data[i + 1] | 0x20);
    if (encoding != 'b' && encoding != 'q')
        return false;
    tide_text name = {value.data + charset, i - charset};
    const char *language = memchr(name.data, '*', name.bytes);
    if (language != NULL)
        name.bytes = (size_t)(language - name.data);
    size_t text = i + 3;
    if (*ends < text) {
        const char *found = memmem(value.data + text, value.bytes - text, "?=", 2);
        *ends = found == NULL ? value.bytes : (size_t)(found - value.data);
    }
    if (*ends == value.bytes)
        return false;
    *word_out = (struct word){
        .charset = name,
        .encoding = encoding == 'b' ? TIDE_ENCODING_BASE64 : TIDE_ENCODING_QUOTED,
        .text = {value.data + text, *ends - text},
        .bytes = *ends + 2 - at,
    };
    return true;
}

size_t tide_header_word_bytes(tide_text value, size_t at, size_t *ends)
{
    struct word word;
    return word_read(value, at, ends, &word) ? word.bytes : 0;
}

static bool same_charset(tide_text a, tide_text b)
{
    if (a.bytes != b.bytes)
        return false;
    for (size_t i = 0; i < a.bytes; i++) {
        if ((a.data[i] | 0x20) != (b.data[i] | 0x20))
            return false;
    }
    return true;
}

static tide_status word_flush(tide_decoder *decoder, tide_text charset, tide_buf *out)
{
    if (decoder->word.bytes == 0)
        return TIDE_OK;
    tide_status rc =
        tide_charset_add(decoder, charset, tide_buf_text(&decoder->word), TIDE_CLEAN_LINE, out);
    tide_buf_clear(&decoder->word);
    return rc;
}

static bool all_white(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (!is_white(text[i]))
            return false;
    }
    return true;
}

static tide_status word_decode(tide_decoder *decoder, const struct word *word)
{
    if (word->encoding == TIDE_ENCODING_BASE64)
        return tide_transfer_add(word->text, TIDE_ENCODING_BASE64, &decoder->word);
    return tide_transfer_add_q(word->text, &decoder->word);
}

/* Adjacent words in one charset are decoded together: a character may begin in the first and end in
 * the second. */
tide_status tide_header_words(tide_decoder *decoder, tide_text value, tide_buf *out)
{
    tide_text charset = TIDE_TEXT("");
    size_t plain = 0; /* where text outside of words begins */
    size_t ends = 0;
    bool after_word = false;
    tide_status rc = TIDE_OK;
    if (value.bytes == 0)
        return TIDE_OK;
    tide_buf_clear(&decoder->word);
    for (size_t at = 0; rc == TIDE_OK && at < value.bytes;) {
        const char *found = memmem(value.data + at, value.bytes - at, "=?", 2);
        struct word word;
        if (found == NULL)
            break;
        at = (size_t)(found - value.data);
        if (!word_read(value, at, &ends, &word)) {
            at += 2;
            continue;
        }
        bool joins = after_word && all_white(value.data + plain, at - plain);
        if (!joins || !same_charset(charset, word.charset))
            rc = word_flush(decoder, charset, out);
        if (rc == TIDE_OK && !joins)
            rc =
                tide_charset_add(decoder, TIDE_TEXT(""),
                                 (tide_text){value.data + plain, at - plain}, TIDE_CLEAN_LINE, out);
        if (rc == TIDE_OK)
            rc = word_decode(decoder, &word);
        charset = word.charset;
        after_word = true;
        at += word.bytes;
        plain = at;
    }
    TIDE_TRY(rc);
    TIDE_TRY(word_flush(decoder, charset, out));
    return tide_charset_add(decoder, TIDE_TEXT(""),
                            (tide_text){value.data + plain, value.bytes - plain}, TIDE_CLEAN_LINE,
                            out);
}

/* ---- types and parameters ---- */

static bool is_token(char c)
{
    return c > ' ' && c < 0x7f && strchr("()<>@,;:\\\"/[]?=", c) == NULL;
}

static tide_text token_at(tide_text text, size_t at)
{
    size_t end = at;
    while (end < text.bytes && is_token(text.data[end]))
        end++;
    return (tide_text){text.data + at, end - at};
}

bool tide_header_type(tide_text value, tide_text *major_out, tide_text *minor_out)
{
    size_t at = 0;
    while (at < value.bytes && (is_white(value.data[at]) || value.data[at] == '"'))
        at++;
    tide_text major = token_at(value, at);
    at += major.bytes;
    if (major.bytes == 0 || at == value.bytes || value.data[at] != '/')
        return false;
    tide_text minor = token_at(value, at + 1);
    if (minor.bytes == 0)
        return false;
    *major_out = major;
    *minor_out = minor;
    return true;
}

struct param {
    tide_text name;
    tide_text value; /* inside its quotes */
    bool quoted;
};

/* The end of an unquoted value: a semicolon, or white space before what looks like the next
 * parameter, for senders that omit the semicolon. */
static size_t bare_end(tide_text text, size_t at)
{
    while (at < text.bytes && text.data[at] != ';') {
        if (!is_white(text.data[at])) {
            at++;
            continue;
        }
        size_t next = at;
        while (next < text.bytes && is_white(text.data[next]))
            next++;
        tide_text name = token_at(text, next);
        size_t after = next + name.bytes;
        if (name.bytes > 0 && after < text.bytes && text.data[after] == '=')
            return at;
        at = after > at ? after : at + 1;
    }
    return at;
}

static size_t quoted_end(tide_text text, size_t at)
{
    while (at < text.bytes && text.data[at] != '"')
        at += text.data[at] == '\\' && at + 1 < text.bytes ? 2 : 1;
    return at < text.bytes ? at : text.bytes;
}

/* The next parameter at or after *at; false: there are no more. */
static bool param_next(tide_text text, size_t *at, struct param *param_out)
{
    size_t i = *at;
    for (;;) {
        while (i < text.bytes && !is_token(text.data[i]))
            i++;
        if (i == text.bytes)
            return false;
        tide_text name = token_at(text, i);
        i += name.bytes;
        while (i < text.bytes && is_white(text.data[i]))
            i++;
        if (i == text.bytes || text.data[i] != '=')
            continue;
        i++;
        while (i < text.bytes && is_white(text.data[i]))
            i++;
        bool quoted = i < text.bytes && text.data[i] == '"';
        size_t begin = i + quoted;
        size_t end = quoted ? quoted_end(text, begin) : bare_end(text, begin);
        *param_out = (struct param){name, {text.data + begin, end - begin}, quoted};
        *at = end + (quoted && end < text.bytes);
        return true;
    }
}

struct pieces {
    struct param plain; /* name= */
    bool has_plain;
    struct param piece[PARAM_PIECES_MAX]; /* name*0=, or name*= as the first */
    bool encoded[PARAM_PIECES_MAX];
    bool has[PARAM_PIECES_MAX];
};

/* Which piece of `name` this parameter is: -2 none, -1 the plain one. */
static int piece_index(tide_text param_name, const char *name, bool *encoded_out)
{
    size_t bytes = strlen(name);
    *encoded_out = false;
    if (!tide_text_starts_nocase(param_name, name))
        return -2;
    tide_text rest = {param_name.data + bytes, param_name.bytes - bytes};
    if (rest.bytes == 0)
        return -1;
    if (rest.data[0] != '*')
        return -2;
    rest = (tide_text){rest.data + 1, rest.bytes - 1};
    if (rest.bytes == 0 || rest.data[rest.bytes - 1] == '*') {
        *encoded_out = true;
        rest.bytes -= rest.bytes > 0;
    }
    uint64_t index = 0;
    if (rest.bytes > 0 && !tide_text_to_u64(rest, &index))
        return -2;
    return index < PARAM_PIECES_MAX ? (int)index : -2;
}

static void pieces_collect(tide_text value, const char *name, struct pieces *pieces)
{
    /* Skip the type itself, unless it is missing. */
    size_t at = 0;
    while (at < value.bytes && (is_token(value.data[at]) || value.data[at] == '/'))
        at++;
    if (at < value.bytes && value.data[at] == '=')
        at = 0;
    memset(pieces->has, 0, sizeof pieces->has);
    pieces->has_plain = false;
    struct param param;
    while (param_next(value, &at, &param)) {
        bool encoded = false;
        int index = piece_index(param.name, name, &encoded);
        if (index == -1 && !pieces->has_plain) {
            pieces->has_plain = true;
            pieces->plain = param;
        } else if (index >= 0 && !pieces->has[index]) {
            pieces->has[index] = true;
            pieces->encoded[index] = encoded;
            pieces->piece[index] = param;
        }
    }
}

/* Removes folding, and backslashes before quotes and backslashes; any other backslash is part of a
 * path that a client sent as a file name. */
static tide_status unquote(const struct param *param, tide_buf *out)
{
    tide_text text = param->value;
    for (size_t i = 0; i < text.bytes; i++) {
        char c = text.data[i];
        if (c == '\r' || c == '\n')
            continue;
        if (param->quoted && c == '\\' && i + 1 < text.bytes &&
            (text.data[i + 1] == '"' || text.data[i + 1] == '\\'))
            c = text.data[++i];
        TIDE_TRY(tide_buf_add(out, &c, 1));
    }
    return TIDE_OK;
}

static tide_status unpercent(tide_text text, tide_buf *out)
{
    for (size_t i = 0; i < text.bytes; i++) {
        char c = text.data[i];
        const tide_text behind = {text.data + i + 1, text.bytes - i - 1};
        const int byte = c == '%' ? tide_hex_byte(behind) : -1;
        if (byte >= 0) {
            c = (char)byte;
            i += 2;
        }
        if (c != '\r' && c != '\n')
            TIDE_TRY(tide_buf_add(out, &c, 1));
    }
    return TIDE_OK;
}

/* charset'language'text: removes the first two. */
static tide_text extended_charset(tide_text *value)
{
    const char *first = memchr(value->data, '\'', value->bytes);
    if (first == NULL)
        return TIDE_TEXT("");
    size_t behind = value->bytes - (size_t)(first + 1 - value->data);
    const char *second = memchr(first + 1, '\'', behind);
    if (second == NULL)
        return TIDE_TEXT("");
    tide_text charset = {value->data, (size_t)(first - value->data)};
    *value = (tide_text){second + 1, value->bytes - (size_t)(second + 1 - value->data)};
    return charset;
}

/* Copies the bytes of a parameter into `out`, and their charset if given. */
static tide_status gather(tide_text value, const char *name, tide_buf *out, tide_text *charset_out,
                          bool *extended_out, bool *found_out)
{
    struct pieces pieces;
    pieces_collect(value, name, &pieces);
    *charset_out = TIDE_TEXT("");
    *extended_out = pieces.has[0];
    *found_out = pieces.has[0] || pieces.has_plain;
    if (!pieces.has[0])
        return pieces.has_plain ? unquote(&pieces.plain, out) : TIDE_OK;
    for (size_t i = 0; i < PARAM_PIECES_MAX && pieces.has[i]; i++) {
        if (i == 0 && pieces.encoded[0])
            *charset_out = extended_charset(&pieces.piece[0].value);
        TIDE_TRY(pieces.encoded[i] ? unpercent(pieces.piece[i].value, out)
                                   : unquote(&pieces.piece[i], out));
    }
    return TIDE_OK;
}

tide_status tide_header_param_raw(tide_text value, const char *name, tide_buf *out, bool *found_out)
{
    tide_text charset;
    bool extended = false;
    return gather(value, name, out, &charset, &extended, found_out);
}

tide_status tide_header_param(tide_decoder *decoder, tide_text value, const char *name,
                              tide_buf *out, bool *found_out)
{
    tide_text charset;
    bool extended = false;
    tide_buf_clear(&decoder->bytes);
    TIDE_TRY(gather(value, name, &decoder->bytes, &charset, &extended, found_out));
    if (!*found_out)
        return TIDE_OK;
    tide_text bytes = tide_text_trimmed(tide_buf_text(&decoder->bytes));
    if (extended && charset.bytes > 0)
        return tide_charset_add(decoder, charset, bytes, TIDE_CLEAN_LINE, out);
    return tide_header_words(decoder, bytes, out);
}
