/* encode.h - bytes as text: hexadecimal, percent-encoding, base64, encoded words. */
#ifndef TIDE_BASE_ENCODE_H
#define TIDE_BASE_ENCODE_H

#include "base/buf.h"

/* `count` bytes as 2 * count lower-case digits and a terminator. */
void tide_hex(const void *bytes, size_t count, char *text_out);

/* -1: not a digit. */
static inline int tide_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of the two digits at the start of `text`; -1: there are none. */
static inline int tide_hex_byte(tide_text text)
{
    const int high = text.bytes < 2 ? -1 : tide_hex_digit(text.data[0]);
    const int low = high < 0 ? -1 : tide_hex_digit(text.data[1]);
    return low < 0 ? -1 : high << 4 | low;
}

/* A letter or digit of ASCII, or one of `others`. */
bool tide_is_plain(char c, const char *others);
#define TIDE_URL_UNRESERVED "-._~" /* RFC 3986: these need no escape in any part of a URL */
/* Appends `text` with %XX for every byte that is not plain. */
tide_status tide_percent_add(tide_buf *out, tide_text text, const char *others);

extern const char tide_base64_standard[65];
extern const char tide_base64_url[65];
tide_status tide_base64_add(tide_buf *out, tide_text bytes, const char *alphabet, bool padded);
/* Appends the bytes of `text`, in either alphabet, padded in full or not at all.  TIDE_INVALID:
 * another character, a length that no bytes have, or bits left over; `out` is then unchanged. */
tide_status tide_base64_read(tide_buf *out, tide_text text);

/* Appends UTF-8 as encoded words of a mail header (RFC 2047), folded over lines of CR LF. */
tide_status tide_encoded_words_add(tide_buf *out, tide_text text);

#endif
