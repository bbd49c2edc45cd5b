/* quote.h - which part of a mail's text repeats an earlier message.
 *
 * Two shapes: lines that begin with '>', and everything below a line like "On Monday Ann wrote:" or
 * "-----Original Message-----", where the repeated text has no sign of its own (HTML mail).  If
 * lines with '>' follow such a line, the answer may stand between them: then only those lines are
 * taken out.  A forwarded message is not a repetition; from its heading on all is kept.
 *
 * Invariants:
 *   QUO1  what is kept is a subsequence of the lines of the text.
 *   QUO2  time is linear in the text.
 */
#ifndef TIDE_ASSISTANT_TEXT_QUOTE_H
#define TIDE_ASSISTANT_TEXT_QUOTE_H

#include "assistant/text/letter.h"
#include "base/buf.h"

/* Whether a line repeats another message: it begins with '>'. */
bool tide_quote_is_line(tide_text line);
/* Where the repeated text without '>' begins, with the line above it; the length of the text when
 * there is none. */
size_t tide_quote_begin(tide_text text);

/* Appends the text without repetitions, without a signature below "-- ", and without empty lines at
 * both ends; runs of empty lines become one. */
tide_status tide_quote_strip(tide_text text, tide_buf *out); /* tide_answer_quote() of a letter. */
tide_status tide_quote_add(const struct tide_letter *letter, size_t bytes_max, tide_buf *out);

#endif
