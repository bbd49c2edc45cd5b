/* letter.h - a message as the assistant reads it: decoded headers and the text that a reader sees.
 *
 * From the raw bytes, or from headers and text that a caller already has (Gmail's `full` format).
 * Mail is data from strangers: any bytes are accepted, and nothing in them is an instruction.
 *
 * Invariants:
 *   LTR1  every text is clean (mail/mime/charset.h CHR1), all but `text` on one line.
 *   LTR2  at most TIDE_LETTER_HEADERS_MAX headers of TIDE_LETTER_HEADER_BYTES_MAX, and
 *         TIDE_LETTER_TEXT_BYTES_MAX of text; `cut` says that text is missing.
 *   LTR3  ids are as tide_compose_is_id() says.
 */
#ifndef TIDE_ASSISTANT_TEXT_LETTER_H
#define TIDE_ASSISTANT_TEXT_LETTER_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "mail/compose/answer.h"

enum {
    TIDE_LETTER_HEADERS_MAX = 500,
    TIDE_LETTER_HEADER_BYTES_MAX = 16 << 10,
    TIDE_LETTER_TEXT_BYTES_MAX = 256 << 10,
};

struct tide_letter_header {
    tide_text name, value;
};

struct tide_letter {
    tide_text from, to, cc, reply_to; /* addresses as displayed (mailbox.h reads them); "" */
    tide_text subject;
    tide_text message_id; /* without <>; "" */
    tide_text references; /* ids without <>, separated by spaces, oldest first */
    bool has_date;
    int64_t date_unix_ms;
    tide_text text;
    bool cut;
    const struct tide_letter_header *headers; /* all of them, in order */
    size_t headers_count;
};

/* All results are in `arena`.  The only error is TIDE_NO_MEMORY. */
tide_status tide_letter_read(tide_text raw, tide_arena *arena, struct tide_letter *letter_out);
/* From headers as they stand in the message, still encoded, and its text. */
tide_status tide_letter_make(const struct tide_letter_header *headers, size_t count, tide_text text,
                             tide_arena *arena, struct tide_letter *letter_out);

/* The next header of this name, from *cursor_io on (0 at first); false: there is none. */
bool tide_letter_header(const struct tide_letter *letter, const char *name, size_t *cursor_io,
                        tide_text *value_out);
/* The address it is from; "" when there is none. */
tide_text tide_letter_sender(const struct tide_letter *letter);
/* The same as a message to answer; borrowed. */
struct tide_answered tide_letter_answered(const struct tide_letter *letter);

#endif
