#include "base/encode.h"

#include <string.h>

const char tide_base64_standard[65] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const char tide_base64_url[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void tide_hex(const void *bytes, size_t count, char *text_out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;
    for (size_t i = 0; i < count; i++) {
        *text_out++ = digits[from[i] >> 4];
        *text_out++ = digits[from[i] & 15];
    }
    *text_out = '\0';
}

bool tide_is_plain(char c, const char *others)
{
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || (c != '\0' && strchr(others, c) != NULL);
}

tide_status tide_percent_add(tide_buf *out, tide_text text, const char *others)
{
    static const char digits[] = "0123456789ABCDEF";
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        const char escaped[3] = {'%', digits[c >> 4], digits[c & 15]};
        rc = tide_is_plain(text.data[i], others) ? tide_buf_add(out, &text.data[i], 1)
                                                 : tide_buf_add(out, escaped, sizeof escaped);
    }
    return rc;
}

static void encode_group(const unsigned char *from, size_t left, const char *alphabet, char to[4])
{
    const uint32_t group = (uint32_t)from[0] << 16 | (left > 1 ? (uint32_t)from[1] << 8 : 0) |
                           (left > 2 ? (uint32_t)from[2] : 0);
    to[0] = alphabet[group >> 18];
    to[1] = alphabet[group >> 12 & 63];
    to[2] = left > 1 ? alphabet[group >> 6 & 63] : '=';
    to[3] = left > 2 ? alphabet[group & 63] : '=';
}

tide_status tide_base64_add(tide_buf *out, tide_text bytes, const char *alphabet, bool padded)
{
    const unsigned char *from = (const unsigned char *)bytes.data;
    const size_t rest = bytes.bytes % 3;
    const size_t rest_digits = rest == 0 ? 0 : padded ? 4 : rest + 1;
    const size_t count = bytes.bytes / 3 * 4 + rest_digits;
    char *to = tide_buf_reserve(out, count);
    if (to == NULL)
        return count > out->bytes_max - out->bytes ? TIDE_FULL : TIDE_NO_MEMORY;
    for (size_t left = bytes.bytes; left >= 3; left -= 3, from += 3, to += 4)
        encode_group(from, 3, alphabet, to);
    if (rest > 0) {
        char last[4];
        encode_group(from, rest, alphabet, last);
        memcpy(to, last, rest_digits);
    }
    out->bytes += count;
    return TIDE_OK;
}

/* -1: not a digit of either alphabet. */
static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Whether all digits were some and no bits are left over. */
static bool decode_digits(tide_text text, char *to)
{
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        const int digit = base64_digit(text.data[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held >= 8) {
            held -= 8;
            *to++ = (char)(bits >> held & 0xff);
        }
    }
    return (bits & ((UINT32_C(1) << held) - 1)) == 0;
}

static size_t without_padding(tide_text text)
{
    size_t bytes = text.bytes;
    for (int i = 0; i < 2 && text.bytes % 4 == 0 && bytes > 0 && text.data[bytes - 1] == '='; i++)
        bytes--;
    return bytes;
}

tide_status tide_base64_read(tide_buf *out, tide_text text)
{
    const size_t digits = without_padding(text);
    const size_t count = digits / 4 * 3 + (digits % 4 == 0 ? 0 : digits % 4 - 1);
    if (digits % 4 == 1)
        return TIDE_INVALID;
    char *to = tide_buf_reserve(out, count);
    if (to == NULL)
        return count > out->bytes_max - out->bytes ? TIDE_FULL : TIDE_NO_MEMORY;
    if (!decode_digits((tide_text){text.data, digits}, to)) {
        *to = '\0'; /* it wrote behind the end */
        return TIDE_INVALID;
    }
    out->bytes += count;
    return TIDE_OK;
}

/* An encoded word is at most 75 bytes long (RFC 2047): 42 bytes each, cut between characters. */
tide_status tide_encoded_words_add(tide_buf *out, tide_text text)
{
    tide_status rc = TIDE_OK;
    for (size_t at = 0; rc == TIDE_OK && at < text.bytes;) {
        size_t part = text.bytes - at < 42 ? text.bytes - at : 42;
        while (part > 1 && at + part < text.bytes &&
               ((unsigned char)text.data[at + part] & 0xc0) == 0x80)
            part--;
        rc = tide_buf_print(out, "%s=?utf-8?B?", at == 0 ? "" : "\r\n ");
        if (rc == TIDE_OK)
            rc =
                tide_base64_add(out, (tide_text){text.data + at, part}, tide_base64_standard, true);
        if (rc == TIDE_OK)
            rc = tide_buf_print(out, "?=");
        at += part;
    }
    return rc;
}
