#include "mail/search/search.h"
#include "base/json.h"

enum { STAGE_BYTES = 4096 };

struct range {
    uint32_t first, last;
};

/* Scripts that are written without spaces between words.  Their digits are left out, so that
 * numbers stay whole. */
static const struct range alone[] = {
    {0x0e01, 0x0e3a},   {0x0e40, 0x0e4e},   /* Thai */
    {0x0e81, 0x0ece},   {0x0edc, 0x0edf},   /* Lao */
    {0x1000, 0x103f},   {0x104c, 0x108f},   /* Myanmar */
    {0x109a, 0x109f},                       /* Myanmar */
    {0x1780, 0x17d3},   {0x17d7, 0x17d7},   /* Khmer */
    {0x17dc, 0x17dd},                       /* Khmer */
    {0x2e80, 0x2fdf},                       /* radicals */
    {0x3005, 0x3007},   {0x3021, 0x302d},   /* iteration marks, numerals */
    {0x3031, 0x3035},   {0x3038, 0x303c},   /* the same */
    {0x3041, 0x3096},   {0x3099, 0x309f},   /* Hiragana */
    {0x30a1, 0x30fa},   {0x30fc, 0x30ff},   /* Katakana */
    {0x3105, 0x312f},   {0x31a0, 0x31bf},   /* Bopomofo */
    {0x31f0, 0x31ff},                       /* Katakana */
    {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   /* ideographs */
    {0xa9e0, 0xa9ef},   {0xa9fa, 0xa9fe},   /* Myanmar */
    {0xaa60, 0xaa7f},                       /* Myanmar */
    {0xf900, 0xfaff},                       /* ideographs */
    {0xff66, 0xff9f},                       /* Katakana */
    {0x1aff0, 0x1b16f}, {0x20000, 0x3fffd}, /* Kana, ideographs */
};

/* Combining marks belong to the character before them: separated, the mark would become a word. */
static const struct range marks[] = {
    {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, /* Thai */
    {0x0eb1, 0x0eb1}, {0x0eb4, 0x0ebc}, {0x0ec8, 0x0ece}, /* Lao */
    {0x102b, 0x103e}, {0x1056, 0x1059}, {0x105e, 0x1060}, /* Myanmar */
    {0x1062, 0x1064}, {0x1067, 0x106d}, {0x1071, 0x1074}, /* Myanmar */
    {0x1082, 0x108d}, {0x108f, 0x108f}, {0x109a, 0x109d}, /* Myanmar */
    {0x17b4, 0x17d3}, {0x17dd, 0x17dd},                   /* Khmer */
    {0x302a, 0x302d}, {0x3099, 0x309a},                   /* tones, voicing */
    {0xa9e5, 0xa9e5}, {0xaa7b, 0xaa7d},                   /* Myanmar */
};

static bool is_in(const struct range *ranges, size_t count, uint32_t code)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && code >= ranges[low].first;
}

/* The code of a character of three or four bytes. */
static uint32_t code_of(const char *text, size_t bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    if (bytes == 3)
        return (uint32_t)((s[0] & 0x0f) << 12 | (s[1] & 0x3f) << 6 | (s[2] & 0x3f));
    return (uint32_t)((s[0] & 0x07) << 18 | (s[1] & 0x3f) << 12 | (s[2] & 0x3f) << 6 |
                      (s[3] & 0x3f));
}

typedef enum stand {
    STAND_SPACE, /* nothing yet, or white space */
    STAND_OTHER, /* text that is copied unchanged */
    STAND_ALONE, /* a character of the scripts above, with its marks */
} stand;

struct folder {
    tide_buf *out;
    size_t bytes;
    stand last;
    char stage[STAGE_BYTES];
};

static tide_status flush(struct folder *folder)
{
    tide_status rc = tide_buf_add(folder->out, folder->stage, folder->bytes);
    folder->bytes = 0;
    return rc;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The length of the prefix that is copied unchanged: valid, without characters of three or more
 * bytes. */
static size_t quiet_run(tide_text text)
{
    size_t i = 0;
    while (i < text.bytes) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < 0x80) {
            i++;
        } else if (c < 0xe0) {
            size_t bytes = tide_utf8_bytes((tide_text){text.data + i, text.bytes - i});
            if (bytes == 0)
                break;
            i += bytes;
        } else {
            break;
        }
    }
    return i;
}

static tide_status add_run(struct folder *folder, const char *run, size_t bytes)
{
    tide_status rc = TIDE_OK;
    if (folder->last == STAND_ALONE && !is_space(run[0]))
        folder->stage[folder->bytes++] = ' ';
    if (folder->bytes + bytes + 8 > STAGE_BYTES)
        rc = flush(folder);
    if (rc == TIDE_OK && bytes + 8 > STAGE_BYTES) {
        rc = tide_buf_add(folder->out, run, bytes);
    } else if (rc == TIDE_OK) {
        memcpy(folder->stage + folder->bytes, run, bytes);
        folder->bytes += bytes;
    }
    folder->last = is_space(run[bytes - 1]) ? STAND_SPACE : STAND_OTHER;
    return rc;
}

static tide_status add_alone(struct folder *folder, const char *text, size_t bytes, bool mark)
{
    tide_status rc = folder->bytes + 16 > STAGE_BYTES ? flush(folder) : TIDE_OK;
    bool joins = folder->last == STAND_SPACE || (mark && folder->last == STAND_ALONE);
    if (!joins)
        folder->stage[folder->bytes++] = ' ';
    memcpy(folder->stage + folder->bytes, text, bytes);
    folder->bytes += bytes;
    folder->last = STAND_ALONE;
    return rc;
}

tide_status tide_search_fold(tide_text text, tide_buf *out)
{
    struct folder folder;
    folder.out = out;
    folder.bytes = 0;
    folder.last = STAND_SPACE;
    size_t before = out->bytes;
    tide_status rc = TIDE_OK;
    for (size_t at = 0; rc == TIDE_OK && at < text.bytes;) {
        tide_text rest = {text.data + at, text.bytes - at};
        size_t bytes = quiet_run(rest);
        if (bytes > 0) {
            rc = add_run(&folder, rest.data, bytes);
            at += bytes;
            continue;
        }
        bytes = tide_utf8_bytes(rest);
        uint32_t code = bytes >= 3 ? code_of(rest.data, bytes) : 0;
        if (bytes == 0)
            rc = add_run(&folder, "\xef\xbf\xbd", 3);
        else if (is_in(alone, sizeof alone / sizeof alone[0], code))
            rc = add_alone(&folder, rest.data, bytes,
                           is_in(marks, sizeof marks / sizeof marks[0], code));
        else
            rc = add_run(&folder, rest.data, bytes);
        at += bytes > 0 ? bytes : 1;
    }
    if (rc == TIDE_OK)
        rc = flush(&folder);
    if (rc != TIDE_OK && out->data != NULL) { /* leave it unchanged */
        out->bytes = before;
        out->data[before] = '\0';
    }
    return rc;
}
