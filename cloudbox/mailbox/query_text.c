/* query_text.c - words in a form that can be compared; see query_tree.h. */
#include "cloudbox/mailbox/query_tree.h"

#include "base/check.h"
#include "base/json.h"

typedef enum shape {
    SHAPE_BETWEEN, /* parts words */
    SHAPE_NOTHING, /* is as if it were not there: accents on their own, joiners */
    SHAPE_LETTER,
    SHAPE_ALONE, /* a word by itself */
} shape;

struct range {
    uint32_t low, high;
    shape is;
};

/* Ascending; what is not listed above U+00FF is a letter. */
static const struct range ranges[] = {
    {0x02b0, 0x02ff, SHAPE_NOTHING}, {0x0300, 0x036f, SHAPE_NOTHING},
    {0x0e00, 0x0fff, SHAPE_ALONE},   {0x1000, 0x109f, SHAPE_ALONE},
    {0x1780, 0x17ff, SHAPE_ALONE},   {0x2000, 0x200b, SHAPE_BETWEEN},
    {0x200c, 0x200f, SHAPE_NOTHING}, {0x2010, 0x2bff, SHAPE_BETWEEN},
    {0x2e00, 0x2e7f, SHAPE_BETWEEN}, {0x2e80, 0x2fff, SHAPE_ALONE},
    {0x3000, 0x3004, SHAPE_BETWEEN}, {0x3005, 0x3007, SHAPE_ALONE},
    {0x3008, 0x303f, SHAPE_BETWEEN}, {0x3040, 0x4dbf, SHAPE_ALONE},
    {0x4dc0, 0x4dff, SHAPE_BETWEEN}, {0x4e00, 0x9fff, SHAPE_ALONE},
    {0xac00, 0xd7ff, SHAPE_ALONE},   {0xe000, 0xf8ff, SHAPE_BETWEEN},
    {0xf900, 0xfaff, SHAPE_ALONE},   {0xfe00, 0xfe0f, SHAPE_NOTHING},
    {0xfe10, 0xfe6f, SHAPE_BETWEEN}, {0xfeff, 0xfeff, SHAPE_NOTHING},
    {0xff5f, 0xff65, SHAPE_BETWEEN}, {0xff66, 0xffdf, SHAPE_ALONE},
    {0xffe0, 0xffff, SHAPE_BETWEEN}, {0x1f000, 0x1ffff, SHAPE_ALONE},
    {0x20000, 0x3ffff, SHAPE_ALONE}, {0xe0000, 0x10ffff, SHAPE_NOTHING},
};

static shape shape_of(uint32_t point)
{
    if (point < 0xc0) {
        if (point == 0xad) /* a hyphen that only shows at the end of a line */
            return SHAPE_NOTHING;
        return point == 0xaa || point == 0xb5 || point == 0xba ? SHAPE_LETTER : SHAPE_BETWEEN;
    }
    if (point == 0xd7 || point == 0xf7)
        return SHAPE_BETWEEN;
    size_t low = 0;
    size_t high = sizeof ranges / sizeof ranges[0];
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (point > ranges[middle].high)
            low = middle + 1;
        else
            high = middle;
    }
    const bool inside = low < sizeof ranges / sizeof ranges[0] && point >= ranges[low].low;
    return inside ? ranges[low].is : SHAPE_LETTER;
}

/* The letters of U+00C0..U+017F without their accents: each row holds up to and
 * including its code point. */
static const struct {
    uint32_t last;
    char letters[3];
} latin[] = {
    {0xc5, "a"},  {0xc6, "ae"},  {0xc7, "c"},  {0xcb, "e"},  {0xcf, "i"},  {0xd0, "d"},
    {0xd1, "n"},  {0xd8, "o"},   {0xdc, "u"},  {0xdd, "y"},  {0xde, "th"}, {0xdf, "ss"},
    {0xe5, "a"},  {0xe6, "ae"},  {0xe7, "c"},  {0xeb, "e"},  {0xef, "i"},  {0xf0, "d"},
    {0xf1, "n"},  {0xf8, "o"},   {0xfc, "u"},  {0xfd, "y"},  {0xfe, "th"}, {0xff, "y"},
    {0x105, "a"}, {0x10d, "c"},  {0x111, "d"}, {0x11b, "e"}, {0x123, "g"}, {0x127, "h"},
    {0x131, "i"}, {0x133, "ij"}, {0x135, "j"}, {0x138, "k"}, {0x142, "l"}, {0x14b, "n"},
    {0x151, "o"}, {0x153, "oe"}, {0x159, "r"}, {0x161, "s"}, {0x167, "t"}, {0x173, "u"},
    {0x175, "w"}, {0x178, "y"},  {0x17e, "z"}, {0x17f, "s"},
};

static uint32_t greek_lower(uint32_t point)
{
    switch (point) {
    case 0x386:
    case 0x3ac:
        return 0x3b1;
    case 0x388:
    case 0x3ad:
        return 0x3b5;
    case 0x389:
    case 0x3ae:
        return 0x3b7;
    case 0x38a:
    case 0x3af:
        return 0x3b9;
    case 0x38c:
    case 0x3cc:
        return 0x3bf;
    case 0x38e:
    case 0x3cd:
        return 0x3c5;
    case 0x38f:
    case 0x3ce:
        return 0x3c9;
    case 0x3c2: /* at the end of a word */
        return 0x3c3;
    default:
        return point >= 0x391 && point <= 0x3a9 ? point + 0x20 : point;
    }
}

static uint32_t lower(uint32_t point)
{
    if (point >= 0x370 && point <= 0x3ff)
        return greek_lower(point);
    if (point >= 0x400 && point <= 0x40f)
        return point + 0x50;
    if (point >= 0x410 && point <= 0x42f)
        return point + 0x20;
    if ((point >= 0x460 && point <= 0x52f) || (point >= 0x1e00 && point <= 0x1eff))
        return point | 1;
    if (point >= 0x531 && point <= 0x556)
        return point + 0x30;
    return point;
}

static size_t utf8_write(uint32_t point, char out[4])
{
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* The letter as it is compared, in 1 to 4 bytes. */
static size_t letter_write(uint32_t point, char out[4])
{
    if (point >= 0xc0 && point <= 0x17f) {
        size_t row = 0;
        while (point > latin[row].last)
            row++;
        const size_t bytes = strlen(latin[row].letters);
        memcpy(out, latin[row].letters, bytes);
        return bytes;
    }
    return utf8_write(lower(point), out);
}

static uint32_t utf8_read(const char *at, size_t bytes)
{
    static const unsigned char first_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = (unsigned char)at[0] & first_mask[bytes];
    for (size_t i = 1; i < bytes; i++)
        point = point << 6 | ((unsigned char)at[i] & 0x3f);
    return point;
}

/* One byte of ASCII as it is compared, 0 between words. */
static char ascii_fold(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c + ('a' - 'A'));
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ? (char)c : 0;
}

/* Worst growth: a character of its own in two bytes gets a blank behind it, and
 * the text one in front. */
enum { FOLD_SLICE = 4096, FOLD_ROOM = 2 * FOLD_SLICE + 16 };

/* Folds the characters that begin in the next FOLD_SLICE bytes; `inside` is
 * whether a word is open. */
static size_t fold_slice(tide_text text, size_t at, tide_buf *out, bool *inside)
{
    const size_t stop = text.bytes - at > FOLD_SLICE ? at + FOLD_SLICE : text.bytes;
    char *to = tide_buf_reserve(out, FOLD_ROOM);
    if (to == NULL)
        return text.bytes;
    char *const start = to;
    while (at < stop) {
        const unsigned char c = (unsigned char)text.data[at];
        char piece[4] = {0};
        size_t bytes = 1;
        size_t piece_bytes = 1;
        shape is = SHAPE_BETWEEN;
        if (c < 0x80) {
            piece[0] = ascii_fold(c);
            is = piece[0] != 0 ? SHAPE_LETTER : SHAPE_BETWEEN;
        } else {
            bytes = tide_utf8_bytes((tide_text){text.data + at, text.bytes - at});
            uint32_t point = bytes > 0 ? utf8_read(text.data + at, bytes) : 0xfffd;
            if (point >= 0xff01 && point <= 0xff5e) { /* ASCII in the width of a kanji */
                piece[0] = ascii_fold((unsigned char)(point - 0xfee0));
                is = piece[0] != 0 ? SHAPE_LETTER : SHAPE_BETWEEN;
            } else {
                is = shape_of(point);
                piece_bytes = letter_write(point, piece);
            }
        }
        at += bytes > 0 ? bytes : 1;
        if (is == SHAPE_NOTHING)
            continue;
        if (*inside && is != SHAPE_LETTER) {
            *to++ = ' ';
            *inside = false;
        }
        if (is != SHAPE_BETWEEN) {
            memcpy(to, piece, piece_bytes);
            to += piece_bytes;
            *inside = is == SHAPE_LETTER;
        }
        if (is == SHAPE_ALONE)
            *to++ = ' ';
    }
    out->bytes += (size_t)(to - start);
    return at;
}

void box_query_fold(tide_text text, tide_buf *out)
{
    const size_t before = out->bytes;
    if (tide_buf_add(out, " ", 1) != TIDE_OK)
        return;
    bool inside = false;
    for (size_t at = 0; at < text.bytes;)
        at = fold_slice(text, at, out, &inside);
    if (inside && tide_buf_add(out, " ", 1) != TIDE_OK)
        return;
    if (out->bytes == before + 1) /* no word at all */
        out->bytes = before;
    out->data[out->bytes] = '\0';
}
