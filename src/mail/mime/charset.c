#include "mail/mime/charset.h"
#include "mail/mime/message.h"
#include "base/check.h"
#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <iconv.h>

enum {
    LABEL_BYTES_MAX = 40,
    WIDE_STEP_BYTES = 16 << 10,
    ERRORS_FREE = 64, /* beyond these, nine of ten bytes must fit the label */
};

static const char replacement[] = "\xef\xbf\xbd";

/* ---- small text helpers ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool tide_text_starts_nocase(tide_text a, const char *wanted)
{
    size_t i = 0;
    while (wanted[i] != '\0' && i < a.bytes && lower(a.data[i]) == wanted[i])
        i++;
    return wanted[i] == '\0';
}

bool tide_text_equal_nocase(tide_text a, const char *wanted)
{
    return a.bytes == strlen(wanted) && tide_text_starts_nocase(a, wanted);
}

tide_text tide_text_trimmed(tide_text text)
{
    while (text.bytes > 0 && is_white(text.data[0])) {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0 && is_white(text.data[text.bytes - 1]))
        text.bytes--;
    return text;
}

/* ---- cleaning ---- */

/* The length of the clean prefix: characters that are copied unchanged.  In a line a space ends it,
 * because runs of spaces become one. */
static size_t clean_run(tide_text text, tide_clean how)
{
    const unsigned char *s = (const unsigned char *)text.data;
    unsigned char first = how == TIDE_CLEAN_LINE ? 0x21 : 0x20;
    size_t i = 0;
    while (i < text.bytes) {
        if ((s[i] >= first && s[i] < 0x7f) ||
            (how == TIDE_CLEAN_TEXT && (s[i] == '\n' || s[i] == '\t'))) {
            i++;
            continue;
        }
        if (s[i] < 0x80)
            break;
        size_t bytes = tide_utf8_bytes((tide_text){text.data + i, text.bytes - i});
        if (bytes == 0 || (s[i] == 0xc2 && s[i + 1] < 0xa0)) /* CHR1 controls */
            break;
        i += bytes;
    }
    return i;
}

/* CHR3: as much of a clean run as fits, in whole characters. */
static tide_status add_run(const char *run, size_t bytes, tide_buf *out)
{
    size_t room = out->bytes_max - out->bytes;
    if (bytes <= room)
        return tide_buf_add(out, run, bytes);
    while (room > 0 && ((unsigned char)run[room] & 0xc0) == 0x80)
        room--;
    TIDE_TRY(tide_buf_add(out, run, room));
    return TIDE_FULL;
}

/* The unclean sequence at the front: its length and its replacement. */
static size_t unclean(tide_text text, tide_clean how, const char **instead_out)
{
    const unsigned char *s = (const unsigned char *)text.data;
    *instead_out = " ";
    if (s[0] == 0xc2 && text.bytes > 1 && s[1] >= 0x80 && s[1] < 0xa0)
        return 2;
    if (s[0] >= 0x80) {
        *instead_out = replacement;
        return 1;
    }
    if (s[0] == '\r' && how == TIDE_CLEAN_TEXT) {
        *instead_out = "\n";
        return text.bytes > 1 && s[1] == '\n' ? 2 : 1;
    }
    return 1;
}

tide_status tide_clean_add(tide_text utf8, tide_clean how, tide_buf *out)
{
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && utf8.bytes > 0) {
        size_t bytes = clean_run(utf8, how);
        if (bytes > 0) {
            rc = add_run(utf8.data, bytes, out);
        } else {
            const char *instead = NULL;
            bytes = unclean(utf8, how, &instead);
            bool joined = how == TIDE_CLEAN_LINE && instead[0] == ' ' &&
                          (out->bytes == 0 || out->data[out->bytes - 1] == ' ');
            if (!joined)
                rc = tide_buf_add_text(out, instead);
        }
        utf8 = (tide_text){utf8.data + bytes, utf8.bytes - bytes};
    }
    return rc;
}

/* ---- choosing the character set ---- */

typedef enum family {
    FAMILY_GUESS,  /* no useful label */
    FAMILY_UTF8,   /* no conversion */
    FAMILY_LATIN,  /* Windows-1252 */
    FAMILY_SINGLE, /* one byte a character, by iconv */
    FAMILY_MULTI,  /* by iconv */
    FAMILY_UTF16,
} family;

struct set {
    const char *label; /* normalised: lower case, only letters and digits */
    const char *iconv_name;
    family kind;
};

/* Supersets for labels that name a subset to which senders do not keep. */
static const struct set sets[] = {
    {"usascii", NULL, FAMILY_GUESS},
    {"ascii", NULL, FAMILY_GUESS},
    {"ansix341968", NULL, FAMILY_GUESS},
    {"utf8", NULL, FAMILY_UTF8},
    {"unicode11utf8", NULL, FAMILY_UTF8},
    {"iso88591", NULL, FAMILY_LATIN},
    {"latin1", NULL, FAMILY_LATIN},
    {"windows1252", NULL, FAMILY_LATIN},
    {"cp1252", NULL, FAMILY_LATIN},
    {"iso88592", "ISO-8859-2", FAMILY_SINGLE},
    {"latin2", "ISO-8859-2", FAMILY_SINGLE},
    {"iso88593", "ISO-8859-3", FAMILY_SINGLE},
    {"iso88594", "ISO-8859-4", FAMILY_SINGLE},
    {"iso88595", "ISO-8859-5", FAMILY_SINGLE},
    {"iso88596", "ISO-8859-6", FAMILY_SINGLE},
    {"iso88597", "ISO-8859-7", FAMILY_SINGLE},
    {"iso88598", "ISO-8859-8", FAMILY_SINGLE},
    {"iso88598i", "ISO-8859-8", FAMILY_SINGLE},
    {"iso88599", "CP1254", FAMILY_SINGLE},
    {"iso885910", "ISO-8859-10", FAMILY_SINGLE},
    {"iso885911", "CP874", FAMILY_SINGLE},
    {"iso885913", "ISO-8859-13", FAMILY_SINGLE},
    {"iso885914", "ISO-8859-14", FAMILY_SINGLE},
    {"iso885915", "ISO-8859-15", FAMILY_SINGLE},
    {"iso885916", "ISO-8859-16", FAMILY_SINGLE},
    {"windows874", "CP874", FAMILY_SINGLE},
    {"tis620", "CP874", FAMILY_SINGLE},
    {"windows1250", "CP1250", FAMILY_SINGLE},
    {"cp1250", "CP1250", FAMILY_SINGLE},
    {"windows1251", "CP1251", FAMILY_SINGLE},
    {"cp1251", "CP1251", FAMILY_SINGLE},
    {"windows1253", "CP1253", FAMILY_SINGLE},
    {"windows1254", "CP1254", FAMILY_SINGLE},
    {"windows1255", "CP1255", FAMILY_SINGLE},
    {"windows1256", "CP1256", FAMILY_SINGLE},
    {"windows1257", "CP1257", FAMILY_SINGLE},
    {"windows1258", "CP1258", FAMILY_SINGLE},
    {"koi8r", "KOI8-R", FAMILY_SINGLE},
    {"koi8u", "KOI8-U", FAMILY_SINGLE},
    {"ibm437", "CP437", FAMILY_SINGLE},
    {"cp437", "CP437", FAMILY_SINGLE},
    {"ibm850", "CP850", FAMILY_SINGLE},
    {"cp850", "CP850", FAMILY_SINGLE},
    {"ibm852", "CP852", FAMILY_SINGLE},
    {"cp852", "CP852", FAMILY_SINGLE},
    {"ibm866", "CP866", FAMILY_SINGLE},
    {"cp866", "CP866", FAMILY_SINGLE},
    {"macintosh", "MACINTOSH", FAMILY_SINGLE},
    {"xmacroman", "MACINTOSH", FAMILY_SINGLE},
    {"gb2312", "GB18030", FAMILY_MULTI},
    {"gbk", "GB18030", FAMILY_MULTI},
    {"xgbk", "GB18030", FAMILY_MULTI},
    {"cp936", "GB18030", FAMILY_MULTI},
    {"euccn", "GB18030", FAMILY_MULTI},
    {"gb18030", "GB18030", FAMILY_MULTI},
    {"big5", "BIG5-HKSCS", FAMILY_MULTI},
    {"big5hkscs", "BIG5-HKSCS", FAMILY_MULTI},
    {"cnbig5", "BIG5-HKSCS", FAMILY_MULTI},
    {"cp950", "CP950", FAMILY_MULTI},
    {"euctw", "EUC-TW", FAMILY_MULTI},
    {"shiftjis", "CP932", FAMILY_MULTI},
    {"sjis", "CP932", FAMILY_MULTI},
    {"xsjis", "CP932", FAMILY_MULTI},
    {"windows31j", "CP932", FAMILY_MULTI},
    {"cp932", "CP932", FAMILY_MULTI},
    {"eucjp", "EUC-JP-MS", FAMILY_MULTI},
    {"iso2022jp", "ISO-2022-JP-2", FAMILY_MULTI},
    {"iso2022jp1", "ISO-2022-JP-2", FAMILY_MULTI},
    {"iso2022jp2", "ISO-2022-JP-2", FAMILY_MULTI},
    {"iso2022kr", "ISO-2022-KR", FAMILY_MULTI},
    {"euckr", "CP949", FAMILY_MULTI},
    {"ksc5601", "CP949", FAMILY_MULTI},
    {"ksc56011987", "CP949", FAMILY_MULTI},
    {"ksc56011989", "CP949", FAMILY_MULTI},
    {"cp949", "CP949", FAMILY_MULTI},
    {"windows949", "CP949", FAMILY_MULTI},
    {"utf7", "UTF-7", FAMILY_MULTI},
    {"utf16", NULL, FAMILY_UTF16},
    {"unicode", NULL, FAMILY_UTF16},
    {"ucs2", NULL, FAMILY_UTF16},
    {"utf16le", "UTF-16LE", FAMILY_MULTI},
    {"utf16be", "UTF-16BE", FAMILY_MULTI},
    {"utf32", "UTF-32", FAMILY_MULTI},
    {"utf32le", "UTF-32LE", FAMILY_MULTI},
    {"utf32be", "UTF-32BE", FAMILY_MULTI},
};

static_assert(sizeof sets / sizeof sets[0] == TIDE_CHARSETS, "a converter for each");

static struct set set_of(tide_text label)
{
    char name[LABEL_BYTES_MAX];
    size_t bytes = 0;
    for (size_t i = 0; i < label.bytes; i++) {
        char c = lower(label.data[i]);
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9'))
            continue;
        if (bytes + 1 == sizeof name) {
            bytes = 0;
            break;
        }
        name[bytes++] = c;
    }
    name[bytes] = '\0';
    for (size_t i = 0; bytes > 0 && i < sizeof sets / sizeof sets[0]; i++) {
        if (strcmp(sets[i].label, name) == 0)
            return sets[i];
    }
    return (struct set){"", NULL, FAMILY_GUESS};
}

struct census {
    bool ascii;
    bool utf8;            /* all of it is valid */
    size_t multi;         /* characters of two bytes ... */
    size_t wide;          /* ... and of more */
    size_t bad;           /* bytes that are part of no character */
    bool escapes;         /* ESC, as in ISO-2022-JP */
    const char *bom_name; /* the set that a byte order mark names */
};

static size_t ascii_run(tide_text text)
{
    size_t i = 0;
    for (; i + 8 <= text.bytes; i += 8) {
        uint64_t eight;
        memcpy(&eight, text.data + i, 8);
        if ((eight & 0x8080808080808080u) != 0)
            break;
    }
    while (i < text.bytes && (unsigned char)text.data[i] < 0x80)
        i++;
    return i;
}

static struct census census_of(tide_text text)
{
    struct census census = {.ascii = true, .utf8 = true};
    if (text.bytes >= 2 && memcmp(text.data, "\xff\xfe", 2) == 0)
        census.bom_name = "UTF-16LE";
    else if (text.bytes >= 2 && memcmp(text.data, "\xfe\xff", 2) == 0)
        census.bom_name = "UTF-16BE";
    for (size_t i = 0; i < text.bytes;) {
        i += ascii_run((tide_text){text.data + i, text.bytes - i});
        if (i == text.bytes)
            break;
        census.ascii = false;
        size_t bytes = tide_utf8_bytes((tide_text){text.data + i, text.bytes - i});
        census.bad += bytes == 0;
        census.multi += bytes == 2;
        census.wide += bytes > 2;
        i += bytes > 0 ? bytes : 1;
    }
    census.utf8 = census.bad == 0;
    if (census.ascii)
        census.escapes = text.bytes > 0 && memchr(text.data, '\x1b', text.bytes) != NULL;
    return census;
}

/* ---- converting ---- */

/* Windows-1252 in 0x80..0x9f; 0 is undefined there. */
static const uint16_t latin_middle[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178,
};

static size_t latin_encode(unsigned char byte, char out[3])
{
    unsigned code = byte;
    if (byte >= 0x80 && byte < 0xa0)
        code = latin_middle[byte - 0x80] != 0 ? latin_middle[byte - 0x80] : 0xfffd;
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3f));
    out[2] = (char)(0x80 | (code & 0x3f));
    return 3;
}

static tide_status add_latin(tide_decoder *decoder, tide_text bytes, tide_clean how, tide_buf *out)
{
    tide_buf_clear(&decoder->wide);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < bytes.bytes;) {
        size_t run = ascii_run((tide_text){bytes.data + i, bytes.bytes - i});
        rc = add_run(bytes.data + i, run, &decoder->wide);
        i += run;
        char encoded[3];
        for (; rc == TIDE_OK && i < bytes.bytes && (unsigned char)bytes.data[i] >= 0x80; i++)
            rc = tide_buf_add(&decoder->wide, encoded,
                              latin_encode((unsigned char)bytes.data[i], encoded));
    }
    tide_status clean_rc = tide_clean_add(tide_buf_text(&decoder->wide), how, out);
    return rc == TIDE_OK ? clean_rc : rc;
}

/* One converter per set, kept open: a header with encoded words in alternating sets would otherwise
 * load and unload their tables for every word. */
static iconv_t converter_of(tide_decoder *decoder, const char *name)
{
    size_t index = 0;
    while (index < TIDE_CHARSETS &&
           (sets[index].iconv_name == NULL || strcmp(sets[index].iconv_name, name) != 0))
        index++;
    TIDE_ASSERT(index < TIDE_CHARSETS);
    if (decoder->converters[index] != NULL) {
        (void)iconv(decoder->converters[index], NULL, NULL, NULL, NULL);
    } else {
        iconv_t opened = iconv_open("UTF-8", name);
        decoder->converters[index] = opened != (iconv_t)-1 ? opened : NULL;
    }
    return decoder->converters[index];
}

/* One step of iconv into `wide`.  *bad_out: the first byte of the rest is invalid. */
static tide_status convert_step(tide_decoder *decoder, iconv_t converter, tide_text *rest,
                                bool *bad_out)
{
    size_t room = decoder->wide.bytes_max - decoder->wide.bytes;
    room = room > WIDE_STEP_BYTES ? WIDE_STEP_BYTES : room;
    if (room < 16)
        return TIDE_FULL;
    char *out = tide_buf_reserve(&decoder->wide, room);
    if (out == NULL)
        return TIDE_NO_MEMORY;
    char *in = (char *)(uintptr_t)rest->data;
    size_t in_bytes = rest->bytes, out_bytes = room;
    size_t done = iconv(converter, &in, &in_bytes, &out, &out_bytes);
    bool stuck = in_bytes == rest->bytes && out_bytes == room;
    *bad_out = stuck || (done == (size_t)-1 && errno != E2BIG);
    decoder->wide.bytes += room - out_bytes;
    decoder->wide.data[decoder->wide.bytes] = '\0';
    *rest = (tide_text){in, in_bytes};
    return TIDE_OK;
}

/* Without a label.  A text with many valid characters and few bad bytes is damaged UTF-8; long
 * valid sequences hardly occur by accident. */
static tide_status add_unlabelled(tide_decoder *decoder, const struct census *census,
                                  tide_text bytes, tide_clean how, tide_buf *out)
{
    if (census->utf8 || census->multi + 4 * census->wide > 8 * census->bad)
        return tide_clean_add(bytes, how, out);
    return add_latin(decoder, bytes, how, out);
}

/* Gives up a label that turns out to be wrong: CHR2 holds, because the rest is then read without
 * it. */
static tide_status add_iconv(tide_decoder *decoder, const char *name, tide_text bytes,
                             tide_clean how, tide_buf *out)
{
    struct census census = census_of(bytes);
    iconv_t converter = converter_of(decoder, name);
    if (converter == NULL) {
        TIDE_SEEN("charset: no converter");
        return add_unlabelled(decoder, &census, bytes, how, out);
    }
    tide_buf_clear(&decoder->wide);
    size_t errors = 0;
    tide_text rest = bytes;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && rest.bytes > 0) {
        bool bad = false;
        rc = convert_step(decoder, converter, &rest, &bad);
        if (rc != TIDE_OK || !bad || rest.bytes == 0)
            continue;
        errors++;
        size_t seen = bytes.bytes - rest.bytes;
        if (errors > ERRORS_FREE && errors > seen / 10)
            break;
        rc = tide_buf_add_text(&decoder->wide, replacement);
        rest = (tide_text){rest.data + 1, rest.bytes - 1};
    }
    /* Valid UTF-8 that is invalid in its label's set: the label is wrong. */
    if (errors > 0 && census.utf8 && !census.ascii)
        return tide_clean_add(bytes, how, out);
    tide_status clean_rc = tide_clean_add(tide_buf_text(&decoder->wide), how, out);
    TIDE_TRY(rc);
    TIDE_TRY(clean_rc);
    if (rest.bytes > 0) {
        TIDE_SEEN("charset: label given up");
        TIDE_TRY(add_unlabelled(decoder, &census, rest, how, out));
    }
    return TIDE_OK;
}

static tide_status add_guess(tide_decoder *decoder, const struct census *census, tide_text bytes,
                             tide_clean how, tide_buf *out)
{
    if (census->escapes && memmem(bytes.data, bytes.bytes, "\x1b$", 2) != NULL)
        return add_iconv(decoder, "ISO-2022-JP-2", bytes, how, out);
    struct set hint = set_of(decoder->hint);
    if (!census->utf8 && (hint.kind == FAMILY_SINGLE || hint.kind == FAMILY_MULTI))
        return add_iconv(decoder, hint.iconv_name, bytes, how, out);
    return add_unlabelled(decoder, census, bytes, how, out);
}

static const char *utf16_order(tide_text bytes)
{
    /* Without a byte order mark: in most scripts used in mail the zero bytes are the high ones. */
    size_t zeros[2] = {0, 0};
    for (size_t i = 0; i < bytes.bytes && i < 4096; i++)
        zeros[i & 1] += bytes.data[i] == '\0';
    return zeros[0] > zeros[1] ? "UTF-16BE" : "UTF-16LE";
}

bool tide_charset_tells(tide_text label)
{
    return set_of(label).kind != FAMILY_GUESS;
}

bool tide_charset_is_utf8(tide_text label, tide_text bytes)
{
    family kind = set_of(label).kind;
    struct census census = census_of(bytes);
    if (census.bom_name != NULL || !census.utf8)
        return false;
    switch (kind) {
    case FAMILY_GUESS:
        return !census.escapes;
    case FAMILY_UTF8:
    case FAMILY_LATIN:
    case FAMILY_SINGLE:
        return true;
    default:
        return false;
    }
}

tide_status tide_charset_add(tide_decoder *decoder, tide_text label, tide_text bytes,
                             tide_clean how, tide_buf *out)
{
    struct set set = set_of(label);
    struct census census = census_of(bytes);
    if (census.bom_name != NULL)
        return add_iconv(decoder, census.bom_name, (tide_text){bytes.data + 2, bytes.bytes - 2},
                         how, out);
    if (bytes.bytes >= 3 && memcmp(bytes.data, "\xef\xbb\xbf", 3) == 0)
        bytes = (tide_text){bytes.data + 3, bytes.bytes - 3};
    switch (set.kind) {
    case FAMILY_UTF16:
        return add_iconv(decoder, utf16_order(bytes), bytes, how, out);
    case FAMILY_MULTI:
        return add_iconv(decoder, set.iconv_name, bytes, how, out);
    case FAMILY_SINGLE:
        return census.utf8 ? tide_clean_add(bytes, how, out)
                           : add_iconv(decoder, set.iconv_name, bytes, how, out);
    case FAMILY_LATIN:
        return census.utf8 ? tide_clean_add(bytes, how, out) : add_latin(decoder, bytes, how, out);
    case FAMILY_UTF8:
        return census.utf8 || census.multi + census.wide > 0 ? tide_clean_add(bytes, how, out)
                                                             : add_latin(decoder, bytes, how, out);
    case FAMILY_GUESS:
        break;
    }
    return add_guess(decoder, &census, bytes, how, out);
}

void tide_decoder_init(tide_decoder *decoder, tide_mem *mem)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->mem = mem;
    tide_buf_init(&decoder->bytes, mem, TIDE_MESSAGE_TEXT_BYTES_MAX);
    tide_buf_init(&decoder->word, mem, TIDE_MESSAGE_TEXT_BYTES_MAX);
    tide_buf_init(&decoder->wide, mem, TIDE_MESSAGE_TEXT_BYTES_MAX);
}

void tide_decoder_done(tide_decoder *decoder)
{
    for (size_t i = 0; i < TIDE_CHARSETS; i++) {
        if (decoder->converters[i] != NULL)
            (void)iconv_close(decoder->converters[i]);
    }
    if (decoder->mem != NULL) {
        tide_buf_done(&decoder->bytes);
        tide_buf_done(&decoder->word);
        tide_buf_done(&decoder->wide);
    }
    memset(decoder, 0, sizeof *decoder);
}
