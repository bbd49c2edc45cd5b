/* charset.h - converts bytes of any character set to clean UTF-8.
 *
 * Labels are often wrong, so they are checked against the bytes: valid UTF-8 with characters beyond
 * ASCII is UTF-8 whatever a one-byte label says, Latin-1 is read as Windows-1252, the national sets
 * as their Microsoft supersets.  Only the sets of a list are passed to iconv: the C library would
 * remember an unknown name from outside forever, and rare converters have had bugs.
 *
 * Invariants:
 *   CHR1  what is appended is valid UTF-8 without control characters except \n and \t, and without
 *         these in TIDE_CLEAN_LINE.
 *   CHR2  time is linear in the bytes; a byte gives at most three bytes.
 *   CHR3  when the buffer is full, it ends in a whole character and the status is TIDE_FULL; the
 *         part that fits is in it.
 */
#ifndef TIDE_MAIL_CHARSET_H
#define TIDE_MAIL_CHARSET_H

#include "base/buf.h"

typedef enum tide_clean {
    TIDE_CLEAN_TEXT, /* line ends become \n */
    TIDE_CLEAN_LINE, /* one line: runs of white space become one space, none in front */
} tide_clean;

enum { TIDE_CHARSETS = 85 }; /* sets with a known name */

/* State kept between calls: buffers and converters. */
typedef struct tide_decoder {
    tide_mem *mem;
    tide_text hint;                  /* the set of bytes without a label; "".  Borrowed. */
    void *converters[TIDE_CHARSETS]; /* iconv_t; NULL until it is needed */
    tide_buf bytes;                  /* decoded from base64 or quoted-printable */
    tide_buf word;                   /* the same for an encoded word */
    tide_buf wide;                   /* iconv's output */
} tide_decoder;

void tide_decoder_init(tide_decoder *decoder, tide_mem *mem);
void tide_decoder_done(tide_decoder *decoder); /* a zeroed one is fine */

/* UTF-8, possibly with errors: a byte that is part of no character becomes U+FFFD. */
tide_status tide_clean_add(tide_text utf8, tide_clean how, tide_buf *out);

/* Bytes labeled with the set `label`; "": no label. */
tide_status tide_charset_add(tide_decoder *decoder, tide_text label, tide_text bytes,
                             tide_clean how, tide_buf *out);
/* Whether a label says more than the bytes do: it is known, and not ASCII. */
bool tide_charset_tells(tide_text label);
/* Whether tide_charset_add() would read these bytes as UTF-8. */
bool tide_charset_is_utf8(tide_text label, tide_text bytes);

/* ASCII letters only. */
bool tide_text_equal_nocase(tide_text a, const char *lower);
bool tide_text_starts_nocase(tide_text a, const char *lower);
/* Without white space at both ends. */
tide_text tide_text_trimmed(tide_text text);

#endif
