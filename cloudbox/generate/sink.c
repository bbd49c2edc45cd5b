#include "cloudbox/generate/sink.h"
#include "base/check.h"

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char hex_upper[] = "0123456789ABCDEF";

enum { LINE_MAX_QUOTED = 75, LINE_BASE64 = 76 };

const char *box_charset_name(box_charset charset)
{
    static const char *const names[] = {
        "us-ascii", "UTF-8", "ISO-8859-1", "windows-1251", "KOI8-R", "Shift_JIS",
    };
    return names[charset];
}

const char *box_coding_name(box_coding coding)
{
    static const char *const names[] = {"7bit", "8bit", "quoted-printable", "base64"};
    return names[coding];
}

/* ---- the pen ---- */

void box_pen_fill(struct box_pen *pen, char byte, size_t count)
{
    memset(pen->room + pen->at, byte, count);
    pen->at += count;
}

void box_pen_number(struct box_pen *pen, uint64_t number, uint32_t digits_least)
{
    char digits[20];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 || count < digits_least);
    while (count > 0)
        pen->room[pen->at++] = digits[--count];
}

void box_pen_hex(struct box_pen *pen, uint64_t number, uint32_t digits)
{
    static const char lower[] = "0123456789abcdef";
    while (digits-- > 0)
        pen->room[pen->at++] = lower[number >> (4 * digits) & 15];
}

/* Five bits of each byte choose among A to P and a to p. */
static inline uint64_t noise_of(uint64_t number)
{
    return ((number ^ number >> 29) & 0x2f2f2f2f2f2f2f2fu) + 0x4141414141414141u;
}

/* One multiplication for eight characters: large messages are mostly this. */
void box_pen_noise(struct box_pen *pen, size_t count, uint64_t *state)
{
    TIDE_ASSERT(count % 4 == 0);
    uint64_t number = *state;
    char *p = pen->room + pen->at;
    pen->at += count;
    for (; count > 0; count -= count < 8 ? count : 8) {
        number = number * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
        uint64_t word = noise_of(number);
        if (count < 8) {
            memcpy(p, &word, 4);
            break;
        }
        memcpy(p, &word, 8);
        p += 8;
    }
    *state = number;
}

/* ---- charsets ---- */

/* What of Shift JIS the texts use beside hiragana, which is one range. */
static const struct {
    uint16_t unicode;
    uint16_t sjis;
} sjis_pairs[] = {
    {0x3001, 0x8141}, {0x3002, 0x8142}, {0x30a4, 0x8343}, {0x30a8, 0x8347}, {0x30a9, 0x8348},
    {0x30b5, 0x8354}, {0x30b9, 0x8358}, {0x30ba, 0x8359}, {0x30bb, 0x835a}, {0x30c0, 0x835f},
    {0x30c3, 0x8362}, {0x30c6, 0x8365}, {0x30c8, 0x8367}, {0x30c9, 0x8368}, {0x30cd, 0x836c},
    {0x30d1, 0x8370}, {0x30d5, 0x8374}, {0x30e1, 0x8381}, {0x30e9, 0x8389}, {0x30eb, 0x838b},
    {0x30ef, 0x838f}, {0x30f3, 0x8393}, {0x30fc, 0x815b}, {0x4e00, 0x88ea}, {0x4e08, 0x8fe4},
    {0x4e0a, 0x8fe3}, {0x4e0d, 0x9573}, {0x4e16, 0x90a2}, {0x4e2d, 0x9286}, {0x4e8b, 0x8e96},
    {0x4eca, 0x8da1}, {0x4ecb, 0x89ee}, {0x4ed8, 0x9574}, {0x4ef6, 0x8c8f}, {0x4f11, 0x8b78},
    {0x4f1a, 0x89ef}, {0x4f50, 0x8db2}, {0x4fa1, 0x89bf}, {0x4fe1, 0x904d}, {0x5065, 0x8c92},
    {0x5148, 0x90e6}, {0x5165, 0x93fc}, {0x5171, 0x8ba4}, {0x5186, 0x897e}, {0x5199, 0x8eca},
    {0x524d, 0x914f}, {0x52a9, 0x8f95}, {0x53d7, 0x8ef3}, {0x53f7, 0x8d86}, {0x5408, 0x8d87},
    {0x540c, 0x93af}, {0x544a, 0x8d90}, {0x54c1, 0x9569}, {0x54e1, 0x88f5}, {0x5546, 0x8fa4},
    {0x554f, 0x96e2}, {0x571f, 0x9379}, {0x5831, 0x95f1}, {0x5909, 0x95cf}, {0x591c, 0x96e9},
    {0x5927, 0x91e5}, {0x592a, 0x91be}, {0x592b, 0x9576}, {0x597d, 0x8d44}, {0x5b50, 0x8e71},
    {0x5b57, 0x8e9a}, {0x5c0f, 0x8fac}, {0x5c4a, 0x93cd}, {0x5c4b, 0x89ae}, {0x5c71, 0x8e52},
    {0x5e97, 0x9358}, {0x5f15, 0x88f8}, {0x5f53, 0x9396}, {0x5f8c, 0x8ce3}, {0x601d, 0x8e76},
    {0x6025, 0x8b7d}, {0x610f, 0x88d3}, {0x6253, 0x91c5}, {0x6255, 0x95a5}, {0x627f, 0x8fb3},
    {0x62c5, 0x9253}, {0x652f, 0x8e78}, {0x6559, 0x8bb3}, {0x6570, 0x9094}, {0x6574, 0x90ae},
    {0x6587, 0x95b6}, {0x6599, 0x97bf}, {0x65b0, 0x9056}, {0x65b9, 0x95fb}, {0x65c5, 0x97b7},
    {0x65e5, 0x93fa}, {0x660e, 0x96be}, {0x6628, 0x8df0}, {0x6642, 0x8e9e}, {0x66dc, 0x976a},
    {0x66f4, 0x8d58}, {0x66f8, 0x8f91}, {0x6700, 0x8dc5}, {0x6708, 0x8c8e}, {0x6709, 0x974c},
    {0x671f, 0x8afa}, {0x6728, 0x96d8}, {0x672c, 0x967b}, {0x6751, 0x91ba}, {0x6797, 0x97d1},
    {0x683c, 0x8a69}, {0x697d, 0x8a79}, {0x6a4b, 0x8bb4}, {0x6b21, 0x8e9f}, {0x6c34, 0x9085},
    {0x6c42, 0x8b81}, {0x6c7a, 0x8c88}, {0x6ce8, 0x928d}, {0x706b, 0x89ce}, {0x70b9, 0x935f},
    {0x7121, 0x96b3}, {0x7269, 0x95a8}, {0x7406, 0x979d}, {0x7528, 0x9770}, {0x7530, 0x9363},
    {0x756a, 0x94d4}, {0x767a, 0x94ad}, {0x7686, 0x8a46}, {0x771f, 0x905e}, {0x77e5, 0x926d},
    {0x78ba, 0x8a6d}, {0x793a, 0x8ea6}, {0x79c1, 0x8e84}, {0x7a0b, 0x92f6}, {0x7a0e, 0x90c5},
    {0x7d39, 0x8fd0}, {0x7d42, 0x8f49}, {0x7f8e, 0x94fc}, {0x82b1, 0x89d4}, {0x85e4, 0x93a1},
    {0x884c, 0x8d73}, {0x8868, 0x955c}, {0x898b, 0x8ca9}, {0x8a08, 0x8c76}, {0x8a71, 0x9862},
    {0x8a8d, 0x9446}, {0x8aad, 0x93c7}, {0x8acb, 0x90bf}, {0x8cb7, 0x9483}, {0x8cc7, 0x8e91},
    {0x8fbc, 0x8d9e}, {0x8fd4, 0x95d4}, {0x9001, 0x9197}, {0x901a, 0x92ca}, {0x9031, 0x8f54},
    {0x90ce, 0x9859}, {0x91d1, 0x8be0}, {0x9593, 0x8ad4}, {0x9650, 0x8cc0}, {0x96fb, 0x9364},
    {0x984c, 0x91e8}, {0x984d, 0x8a7a}, {0x9858, 0x8ae8}, {0x9999, 0x8d81}, {0x99c5, 0x8977},
    {0xff08, 0x8169}, {0xff09, 0x816a}, {0xff1a, 0x8146},
};

static uint32_t sjis_of(uint32_t letter)
{
    if (letter < 0x80)
        return letter;
    if (letter >= 0x3041 && letter <= 0x3093)
        return 0x829f + (letter - 0x3041);
    size_t low = 0, high = sizeof sjis_pairs / sizeof sjis_pairs[0];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sjis_pairs[middle].unicode < letter)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < sizeof sjis_pairs / sizeof sjis_pairs[0] && sjis_pairs[low].unicode == letter)
        return sjis_pairs[low].sjis;
    return '?';
}

static uint32_t koi8_of(uint32_t letter)
{
    static const uint8_t small[32] = {
        0xc1, 0xc2, 0xd7, 0xc7, 0xc4, 0xc5, 0xd6, 0xda, 0xc9, 0xca, 0xcb,
        0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xd5, 0xc6, 0xc8,
        0xc3, 0xde, 0xdb, 0xdd, 0xdf, 0xd9, 0xd8, 0xdc, 0xc0, 0xd1,
    };
    if (letter < 0x80)
        return letter;
    if (letter >= 0x430 && letter <= 0x44f)
        return small[letter - 0x430];
    if (letter >= 0x410 && letter <= 0x42f)
        return small[letter - 0x410] + 0x20u;
    return letter == 0x451 ? 0xa3u : letter == 0x401 ? 0xb3u : '?';
}

static uint32_t cp1251_of(uint32_t letter)
{
    if (letter < 0x80)
        return letter;
    if (letter >= 0x410 && letter <= 0x44f)
        return letter - 0x410 + 0xc0;
    return letter == 0x451 ? 0xb8u : letter == 0x401 ? 0xa8u : '?';
}

/* One letter of well-formed UTF-8. */
static size_t letter_at(const char *utf8, uint32_t *letter_out)
{
    const unsigned char *u = (const unsigned char *)utf8;
    if (u[0] < 0x80) {
        *letter_out = u[0];
        return 1;
    }
    if (u[0] < 0xe0) {
        *letter_out = (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu);
        return 2;
    }
    if (u[0] < 0xf0) {
        *letter_out = (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
        return 3;
    }
    *letter_out = 0xfffd;
    return 4;
}

static bool is_ascii(const char *text, size_t bytes)
{
    uint64_t high = 0, word = 0;
    size_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
        memcpy(&word, text + at, 8);
        high |= word;
    }
    for (; at < bytes; at++)
        high |= (unsigned char)text[at];
    return (high & 0x8080808080808080u) == 0;
}

/* No charset here needs more bytes than UTF-8. */
static size_t convert(box_charset charset, const char *utf8, size_t bytes, char *out)
{
    size_t written = 0;
    for (size_t at = 0; at < bytes;) {
        uint32_t letter;
        at += letter_at(utf8 + at, &letter);
        uint32_t code;
        switch (charset) {
        case BOX_CP1251:
            code = cp1251_of(letter);
            break;
        case BOX_KOI8R:
            code = koi8_of(letter);
            break;
        case BOX_SJIS:
            code = sjis_of(letter);
            break;
        default:
            code = letter < 0x100 ? letter : '?';
            break;
        }
        if (code > 0xff)
            out[written++] = (char)(code >> 8);
        out[written++] = (char)code;
    }
    return written;
}

/* ---- encoded words ---- */

static void one_word(struct box_pen *pen, box_charset charset, const char *bytes, size_t count)
{
    bool quoted = charset == BOX_LATIN1;
    box_pen_text(pen, "=?");
    box_pen_text(pen, box_charset_name(charset));
    box_pen_text(pen, quoted ? "?Q?" : "?B?");
    const unsigned char *u = (const unsigned char *)bytes;
    for (size_t i = 0; quoted && i < count; i++) {
        bool plain = (u[i] >= '0' && u[i] <= '9') || (u[i] >= 'A' && u[i] <= 'Z') ||
                     (u[i] >= 'a' && u[i] <= 'z');
        if (plain || u[i] == ' ') {
            pen->room[pen->at++] = u[i] == ' ' ? '_' : (char)u[i];
        } else {
            pen->room[pen->at++] = '=';
            pen->room[pen->at++] = hex_upper[u[i] >> 4];
            pen->room[pen->at++] = hex_upper[u[i] & 15];
        }
    }
    for (size_t i = 0; !quoted && i < count; i += 3) {
        uint32_t group = (uint32_t)u[i] << 16;
        group |= i + 1 < count ? (uint32_t)u[i + 1] << 8 : 0;
        group |= i + 2 < count ? (uint32_t)u[i + 2] : 0;
        pen->room[pen->at++] = base64[group >> 18];
        pen->room[pen->at++] = base64[group >> 12 & 63];
        pen->room[pen->at++] = i + 1 < count ? base64[group >> 6 & 63] : '=';
        pen->room[pen->at++] = i + 2 < count ? base64[group & 63] : '=';
    }
    box_pen_text(pen, "?=");
}

void box_pen_words(struct box_pen *pen, box_charset charset, tide_text utf8)
{
    if (charset == BOX_ASCII || is_ascii(utf8.data, utf8.bytes)) {
        box_pen_add(pen, utf8.data, utf8.bytes);
        return;
    }
    /* A word is at most 75 characters: 16 letters of three bytes each, or 18
     * that are quoted, and letters are never split. */
    size_t part_max = charset == BOX_LATIN1 ? 18 : 39;
    for (size_t at = 0; at < utf8.bytes;) {
        size_t end = at;
        while (end < utf8.bytes) {
            uint32_t letter;
            size_t next = end + letter_at(utf8.data + end, &letter);
            if (next - at > part_max)
                break;
            end = next;
        }
        char converted[64];
        size_t count = end - at;
        if (charset == BOX_UTF8)
            memcpy(converted, utf8.data + at, count);
        else
            count = convert(charset, utf8.data + at, count, converted);
        if (at > 0)
            box_pen_text(pen, "\r\n ");
        one_word(pen, charset, converted, count);
        at = end;
    }
}

/* ---- sinks ---- */

void box_sink_init(struct box_sink *sink, struct box_pen *pen, box_charset charset,
                   box_coding coding, size_t limit)
{
    *sink = (struct box_sink){.pen = pen, .limit = limit, .charset = charset, .coding = coding};
}

/* How many bytes from `at` need no quoting and fit `room` columns. */
static size_t plain_run(const char *bytes, size_t at, size_t count, size_t room)
{
    size_t end = count - at < room ? count : at + room;
    size_t run = at;
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    for (; run + 8 <= end; run += 8) {
        uint64_t word;
        memcpy(&word, bytes + run, 8);
        uint64_t equals = word ^ (ones * '=');
        /* A byte above ASCII, below the space, or '='; may be wrong only by doubting. */
        if (((word | (word - ones * ' ') | (equals - ones)) & tops) != 0)
            break;
    }
    const unsigned char *u = (const unsigned char *)bytes;
    while (run < end && u[run] >= ' ' && u[run] < 0x7f && u[run] != '=')
        run++;
    /* A space at the end of a line would be dropped on the way. */
    if (run == count && run > at && bytes[run - 1] == ' ')
        run--;
    return run - at;
}

static void put_quoted(struct box_sink *sink, const char *bytes, size_t count)
{
    char *p = sink->pen->room + sink->pen->at;
    size_t column = 0;
    for (size_t i = 0; i < count;) {
        size_t run = plain_run(bytes, i, count, LINE_MAX_QUOTED - column);
        memcpy(p, bytes + i, run);
        p += run;
        i += run;
        column += run;
        if (i == count)
            break;
        if (column + 3 > LINE_MAX_QUOTED) {
            memcpy(p, "=\r\n", 3);
            p += 3;
            column = 0;
            continue;
        }
        unsigned char byte = (unsigned char)bytes[i++];
        p[0] = '=';
        p[1] = hex_upper[byte >> 4];
        p[2] = hex_upper[byte & 15];
        p += 3;
        column += 3;
    }
    memcpy(p, "\r\n", 2);
    sink->pen->at = (size_t)(p + 2 - sink->pen->room);
}

static void put_group(struct box_sink *sink, uint32_t group)
{
    char *p = sink->pen->room + sink->pen->at;
    p[0] = base64[group >> 18];
    p[1] = base64[group >> 12 & 63];
    p[2] = base64[group >> 6 & 63];
    p[3] = base64[group & 63];
    sink->pen->at += 4;
    sink->column += 4;
    if (sink->column == LINE_BASE64) {
        box_pen_add(sink->pen, "\r\n", 2);
        sink->column = 0;
    }
}

static void put_base64(struct box_sink *sink, const char *bytes, size_t count)
{
    const unsigned char *u = (const unsigned char *)bytes;
    size_t i = 0;
    while (sink->carried > 0 && sink->carried < 3 && i < count) {
        if (sink->carried == 2) {
            uint32_t group = (uint32_t)sink->carry[0] << 16 | (uint32_t)sink->carry[1] << 8;
            put_group(sink, group | u[i++]);
            sink->carried = 0;
        } else {
            sink->carry[sink->carried++] = u[i++];
        }
    }
    for (; i + 3 <= count; i += 3)
        put_group(sink, (uint32_t)u[i] << 16 | (uint32_t)u[i + 1] << 8 | u[i + 2]);
    for (; i < count; i++)
        sink->carry[sink->carried++] = u[i];
}

bool box_sink_line(struct box_sink *sink, const char *utf8, size_t bytes)
{
    enum { END_BYTES = 6 }; /* a group of base64 and a line end */
    char converted[BOX_SINK_LINE_BYTES_MAX + 2];
    TIDE_ASSERT(bytes <= BOX_SINK_LINE_BYTES_MAX);
    /* The cheap way to know that it cannot fit, before any work (BSNK1). */
    size_t least = sink->charset <= BOX_UTF8 ? bytes : bytes / 2;
    if (sink->pen->at + least + 2 > sink->limit)
        return false;
    struct box_sink before = *sink;
    size_t at = sink->pen->at;
    const char *text = utf8;
    if (sink->charset > BOX_UTF8 && !is_ascii(utf8, bytes)) {
        bytes = convert(sink->charset, utf8, bytes, converted);
        text = converted;
    }
    switch (sink->coding) {
    case BOX_QUOTED:
        put_quoted(sink, text, bytes);
        break;
    case BOX_BASE64:
        put_base64(sink, text, bytes);
        put_base64(sink, "\r\n", 2);
        break;
    default:
        box_pen_add(sink->pen, text, bytes);
        box_pen_add(sink->pen, "\r\n", 2);
        break;
    }
    if (sink->pen->at + (sink->coding == BOX_BASE64 ? END_BYTES : 0) <= sink->limit)
        return true;
    *sink = before;
    sink->pen->at = at;
    return false;
}

bool box_sink_block(struct box_sink *sink, const char *lines, size_t bytes)
{
    if (sink->coding != BOX_BASE64) {
        if (sink->pen->at + bytes > sink->limit)
            return false;
        box_pen_add(sink->pen, lines, bytes);
        return true;
    }
    size_t encoded = (bytes + 2) / 3 * 4;
    if (sink->pen->at + encoded + encoded / LINE_BASE64 * 2 + 12 > sink->limit)
        return false;
    put_base64(sink, lines, bytes);
    return true;
}

void box_sink_end(struct box_sink *sink)
{
    if (sink->coding != BOX_BASE64)
        return;
    if (sink->carried > 0) {
        uint32_t group = (uint32_t)sink->carry[0] << 16;
        group |= sink->carried == 2 ? (uint32_t)sink->carry[1] << 8 : 0;
        uint32_t carried = sink->carried;
        uint32_t column = sink->column;
        put_group(sink, group);
        char *end = sink->pen->room + sink->pen->at - (column + 4 == LINE_BASE64 ? 2 : 0);
        end[-1] = '=';
        if (carried == 1)
            end[-2] = '=';
        sink->carried = 0;
    }
    if (sink->column > 0)
        box_pen_add(sink->pen, "\r\n", 2);
    sink->column = 0;
}
