/* header.h - the lines before a body: finding them, and reading what they say.
 *
 * Nothing here knows which header is which.  Values stay as they are in the raw
 * bytes, with their folding, until somebody asks for their meaning.
 *
 * Invariants:
 *   H1  every function is linear in the bytes it is given.
 *   H2  what it appends is clean in the sense of charset.h (C1), but for
 *       tide_header_param_raw(), which promises nothing.
 */
#ifndef TIDE_MAIL_HEADER_H
#define TIDE_MAIL_HEADER_H

#include "mail/mime/charset.h"

struct tide_mail_header {
    tide_text name;  /* without the colon */
    tide_text value; /* all its lines, trimmed */
};

typedef enum tide_header_line {
    TIDE_HEADER_LINE_NAMED, /* a header, with the lines that continue it */
    TIDE_HEADER_LINE_BLANK, /* ends the headers */
    TIDE_HEADER_LINE_JUNK,  /* neither; one line */
} tide_header_line;

/* Reads what begins at the front of `rest`, where `line_end` (\n, or \r in a
 * message that has no other) ends lines.  *bytes_out is how far it goes, its
 * line end included; *lines_out how many lines that were. */
tide_header_line tide_header_read(tide_text rest, char line_end,
                                  struct tide_mail_header *header_out, size_t *bytes_out,
                                  size_t *lines_out);

/* Text with encoded words (RFC 2047), unfolded; 8-bit bytes are guessed. */
tide_status tide_header_words(tide_decoder *decoder, tide_text value, tide_buf *out);

/* The bytes of the encoded word at `at`, where there is a "=?"; 0: it is none.
 * *ends is 0 at the first call for a value and kept between calls (H1). */
size_t tide_header_word_bytes(tide_text value, size_t at, size_t *ends);

/* "text/html" of a Content-Type, in its two halves; false: there is no slash. */
bool tide_header_type(tide_text value, tide_text *major_out, tide_text *minor_out);

/* A parameter of Content-Type or Content-Disposition, with the continuations
 * and charsets of RFC 2231, and encoded words, which have no business there. */
tide_status tide_header_param(tide_decoder *decoder, tide_text value, const char *name,
                              tide_buf *out, bool *found_out);
/* Just its bytes: a boundary is compared, not shown. */
tide_status tide_header_param_raw(tide_text value, const char *name, tide_buf *out,
                                  bool *found_out);

#endif
