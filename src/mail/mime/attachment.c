#include "mail/mime/message.h"
#include "mail/mime/transfer.h"
#include "base/check.h"
#include "base/encode.h"

#include <inttypes.h>

enum { STAGE_BYTES = 6000 };

/* Collects decoded bytes before they go into the buffer, so that a limit is met exactly and the
 * buffer grows rarely. */
struct stage {
    tide_buf *out;  /* NULL: only counted */
    uint64_t total; /* bytes flushed */
    size_t bytes;
    char room[STAGE_BYTES];
};

static void stage_init(struct stage *stage, tide_buf *out)
{
    stage->out = out;
    stage->total = 0;
    stage->bytes = 0;
    stage->room[0] = '\0'; /* it is filled before it is read; zeroing all of it costs time */
}

static tide_status stage_flush(struct stage *stage)
{
    stage->total += stage->bytes;
    if (stage->out == NULL) {
        stage->bytes = 0;
        return TIDE_OK;
    }
    size_t room = stage->out->bytes_max - stage->out->bytes;
    bool fits = stage->bytes <= room;
    tide_status rc = tide_buf_add(stage->out, stage->room, fits ? stage->bytes : room);
    stage->bytes = 0;
    return rc == TIDE_OK && !fits ? TIDE_FULL : rc;
}

/* ---- base64 ---- */

/* 0..63, or 0xff for a character that is not base64. */
static const uint8_t digits[256] = {
#define ROW16                                                                                      \
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff
    ROW16, ROW16, 0xff,  0xff,  0xff,  0xff,  0xff,  0xff,  0xff, 0xff, 0xff, 0xff, 0xff, 62,
    0xff,  0xff,  0xff,  63,    52,    53,    54,    55,    56,   57,   58,   59,   60,   61,
    0xff,  0xff,  0xff,  0xff,  0xff,  0xff,  0xff,  0,     1,    2,    3,    4,    5,    6,
    7,     8,     9,     10,    11,    12,    13,    14,    15,   16,   17,   18,   19,   20,
    21,    22,    23,    24,    25,    0xff,  0xff,  0xff,  0xff, 0xff, 0xff, 26,   27,   28,
    29,    30,    31,    32,    33,    34,    35,    36,    37,   38,   39,   40,   41,   42,
    43,    44,    45,    46,    47,    48,    49,    50,    51,   0xff, 0xff, 0xff, 0xff, 0xff,
    ROW16, ROW16, ROW16, ROW16, ROW16, ROW16, ROW16, ROW16,
#undef ROW16
};

/* Decodes complete groups of four without other characters between them; returns the number of
 * bytes read. */
static size_t base64_groups(const uint8_t *s, size_t bytes, struct stage *stage)
{
    size_t i = 0;
    while (i + 4 <= bytes && stage->bytes + 3 <= STAGE_BYTES) {
        uint8_t a = digits[s[i]], b = digits[s[i + 1]], c = digits[s[i + 2]], d = digits[s[i + 3]];
        if (((a | b | c | d) & 0x80) != 0)
            break;
        char *out = stage->room + stage->bytes;
        out[0] = (char)(a << 2 | b >> 4);
        out[1] = (char)(b << 4 | c >> 2);
        out[2] = (char)(c << 6 | d);
        stage->bytes += 3;
        i += 4;
    }
    return i;
}

/* The bits of an incomplete group: two digits are one byte, three are two. */
static void base64_rest(uint32_t bits, unsigned count, struct stage *stage)
{
    if (count == 2) {
        stage->room[stage->bytes++] = (char)(bits >> 4);
    } else if (count == 3) {
        stage->room[stage->bytes++] = (char)(bits >> 10);
        stage->room[stage->bytes++] = (char)(bits >> 2);
    }
}

static tide_status add_base64(tide_text encoded, struct stage *stage)
{
    const uint8_t *s = (const uint8_t *)encoded.data;
    uint32_t bits = 0;
    unsigned count = 0; /* digits in `bits` */
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < encoded.bytes;) {
        if (count == 0)
            i += base64_groups(s + i, encoded.bytes - i, stage);
        if (stage->bytes + 6 > STAGE_BYTES)
            rc = stage_flush(stage);
        if (i == encoded.bytes || rc != TIDE_OK)
            break;
        uint8_t digit = digits[s[i]];
        if (digit != 0xff) {
            bits = bits << 6 | digit;
            count++;
        } else if (s[i] == '=') { /* padding ends a group; more base64 may follow */
            base64_rest(bits, count, stage);
            count = 0;
            bits = 0;
        }
        i++;
        if (count == 4) {
            stage->room[stage->bytes++] = (char)(bits >> 16);
            stage->room[stage->bytes++] = (char)(bits >> 8);
            stage->room[stage->bytes++] = (char)bits;
            count = 0;
            bits = 0;
        }
    }
    if (rc == TIDE_OK) {
        base64_rest(bits, count, stage);
        rc = stage_flush(stage);
    }
    return rc;
}

/* ---- quoted-printable ---- */

/* The length of a soft line break, with `at` after its equals sign; 0: none. */
static size_t soft_break(tide_text encoded, size_t at)
{
    size_t i = at;
    while (i < encoded.bytes && (encoded.data[i] == ' ' || encoded.data[i] == '\t'))
        i++;
    if (i + 1 < encoded.bytes && encoded.data[i] == '\r' && encoded.data[i + 1] == '\n')
        return i + 2 - at;
    if (i < encoded.bytes && encoded.data[i] == '\n')
        return i + 1 - at;
    return 0;
}

static tide_status add_quoted(tide_text encoded, bool header, struct stage *stage)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < encoded.bytes;) {
        char c = encoded.data[i++];
        if (stage->bytes == STAGE_BYTES)
            rc = stage_flush(stage);
        if (c == '_' && header)
            c = ' ';
        if (c == '=' && i < encoded.bytes) {
            const int byte = tide_hex_byte((tide_text){encoded.data + i, encoded.bytes - i});
            size_t broken = byte < 0 ? soft_break(encoded, i) : 0;
            if (broken > 0) {
                i += broken;
                continue;
            }
            if (byte >= 0) {
                c = (char)byte;
                i += 2;
            }
        } else if (c == '=' && !header) {
            continue; /* the line break that ends the part */
        }
        stage->room[stage->bytes++] = c;
    }
    return rc == TIDE_OK ? stage_flush(stage) : rc;
}

tide_status tide_transfer_add_q(tide_text encoded, tide_buf *out)
{
    struct stage stage;
    stage_init(&stage, out);
    return add_quoted(encoded, true, &stage);
}

tide_status tide_transfer_add(tide_text encoded, tide_encoding encoding, tide_buf *out)
{
    struct stage stage;
    stage_init(&stage, out);
    switch (encoding) {
    case TIDE_ENCODING_BASE64:
        return add_base64(encoded, &stage);
    case TIDE_ENCODING_QUOTED:
        return add_quoted(encoded, false, &stage);
    case TIDE_ENCODING_PLAIN:
        break;
    }
    size_t room = out->bytes_max - out->bytes;
    bool fits = encoded.bytes <= room;
    tide_status rc = tide_buf_add(out, encoded.data, fits ? encoded.bytes : room);
    return rc == TIDE_OK && !fits ? TIDE_FULL : rc;
}

/* ---- attachments ---- */

uint64_t tide_attachment_bytes(tide_text raw, const struct tide_attachment *attachment)
{
    if (attachment->begin > attachment->end || attachment->end > raw.bytes)
        return 0;
    const tide_text encoded = {raw.data + attachment->begin,
                               (size_t)(attachment->end - attachment->begin)};
    struct stage stage;
    stage_init(&stage, NULL);
    switch (attachment->encoding) {
    case TIDE_ENCODING_BASE64:
        (void)add_base64(encoded, &stage); /* without a buffer nothing can fail */
        return stage.total;
    case TIDE_ENCODING_QUOTED:
        (void)add_quoted(encoded, false, &stage);
        return stage.total;
    case TIDE_ENCODING_PLAIN:
        break;
    }
    return encoded.bytes;
}

tide_status tide_attachment_decode(tide_text raw, const struct tide_attachment *attachment,
                                   tide_buf *out, tide_error *err)
{
    if (attachment->begin > attachment->end || attachment->end > raw.bytes)
        return tide_error_set(err, TIDE_INVALID,
                              "attachment at %" PRIu64 "..%" PRIu64 " of a message of %zu bytes",
                              attachment->begin, attachment->end, raw.bytes);
    tide_text encoded = {raw.data + attachment->begin,
                         (size_t)(attachment->end - attachment->begin)};
    size_t before = out->bytes;
    tide_status rc = tide_transfer_add(encoded, attachment->encoding, out);
    if (rc == TIDE_OK)
        return TIDE_OK;
    out->bytes = before; /* leave it unchanged */
    if (out->data != NULL)
        out->data[before] = '\0';
    if (rc == TIDE_FULL)
        return tide_error_set(err, rc, "attachment of %zu encoded bytes exceeds %zu bytes",
                              encoded.bytes, out->bytes_max);
    return tide_error_set(err, rc, "no memory for an attachment of %zu encoded bytes",
                          encoded.bytes);
}
