/* charset.h - bytes in whatever character set into clean UTF-8.
 *
 * Labels lie, so they are weighed against the bytes: what is valid UTF-8 with
 * characters beyond ASCII is UTF-8 whatever a one-byte label says, Latin-1 is
 * read as Windows-1252, the national sets as their Microsoft supersets.  Only
 * the sets of a list are given to iconv: an unknown name from outside would be
 * remembered by the C library for ever, and rare converters had rare bugs.
 *
 * Invariants:
 *   C1  what is appended is valid UTF-8 without control characters except \n
 *       and \t, and without these in TIDE_CLEAN_LINE.
 *   C2  time is linear in the bytes; no byte yields more than three.
 *   C3  when the buffer is full, it ends in a whole character and the status is
 *       TIDE_FULL; what fits is there.
 */
#ifndef TIDE_MAIL_CHARSET_H
#define TIDE_MAIL_CHARSET_H

#include "base/buf.h"

typedef enum tide_clean {
    TIDE_CLEAN_TEXT, /* line ends become \n */
    TIDE_CLEAN_LINE, /* one line: runs of white space become one space, none in front */
} tide_clean;

enum { TIDE_CHARSETS = 85 }; /* that are known by name */

/* What decoding keeps between calls: room, and converters. */
typedef struct tide_decoder {
    tide_mem *mem;
    tide_text hint;                  /* the set of bytes of which nothing is said; "".  Borrowed. */
    void *converters[TIDE_CHARSETS]; /* iconv_t; NULL until it is needed */
    tide_buf bytes;                  /* decoded from base64 or quoted-printable */
    tide_buf word;                   /* the same of an encoded word */
    tide_buf wide;                   /* out of iconv */
} tide_decoder;

void tide_decoder_init(tide_decoder *decoder, tide_mem *mem);
void tide_decoder_done(tide_decoder *decoder); /* a zeroed one is fine */

/* UTF-8, or nearly: a byte that belongs to no character becomes U+FFFD. */
tide_status tide_clean_add(tide_text utf8, tide_clean how, tide_buf *out);

/* Bytes that are said to be in the set `label`; "" when nothing is said. */
tide_status tide_charset_add(tide_decoder *decoder, tide_text label, tide_text bytes,
                             tide_clean how, tide_buf *out);
/* Whether tide_charset_add() would read these bytes as the UTF-8 they are. */
bool tide_charset_is_utf8(tide_text label, tide_text bytes);

/* Letters are ASCII here. */
bool tide_text_equal_nocase(tide_text a, const char *lower);
bool tide_text_starts_nocase(tide_text a, const char *lower);
/* Without white space at both ends. */
tide_text tide_text_trimmed(tide_text text);

#endif
