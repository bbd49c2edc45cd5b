/* header.h - finds and parses header lines.
 *
 * No function here knows particular headers.  Values stay as in the raw bytes, with their folding,
 * until a caller decodes them.
 *
 * Invariants:
 *   HDR1  every function is linear in the bytes it is given.
 *   HDR2  appended text is clean (charset.h CHR1), except from tide_header_param_raw(), which
 *         promises nothing.
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

/* Reads the line or header at the front of `rest`, with lines ended by `line_end` (
 * , or \r in a message that has no
 * ).  *bytes_out is its length, line end included; *lines_out the number of lines. */
tide_header_line tide_header_read(tide_text rest, char line_end,
                                  struct tide_mail_header *header_out, size_t *bytes_out,
                                  size_t *lines_out);

/* Text with encoded words (RFC 2047), unfolded; the charset of 8-bit bytes is guessed. */
tide_status tide_header_words(tide_decoder *decoder, tide_text value, tide_buf *out);

/* The length of the encoded word at `at`, where there is a "=?"; 0: it is none.  *ends is 0 at the
 * first call for a value and kept between calls (HDR1). */
size_t tide_header_word_bytes(tide_text value, size_t at, size_t *ends);

/* "text/html" of a Content-Type, split in two; false: there is no slash. */
bool tide_header_type(tide_text value, tide_text *major_out, tide_text *minor_out);

/* A parameter of Content-Type or Content-Disposition, with the continuations and charsets of RFC
 * 2231, and encoded words, which are not allowed there but occur. */
tide_status tide_header_param(tide_decoder *decoder, tide_text value, const char *name,
                              tide_buf *out, bool *found_out);
/* Its raw bytes: a boundary is compared, not shown. */
tide_status tide_header_param_raw(tide_text value, const char *name, tide_buf *out,
                                  bool *found_out);

#endif
