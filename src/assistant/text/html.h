/* html.h - the text of an HTML mail, with '>' before lines that repeat another message.
 *
 * Mail programs put what they repeat into <blockquote type="cite"> or a blockquote whose class says
 * "quote"; as plain text that is lost, and with it where an answer below the quote begins
 * (quote.h).  A blockquote without such a sign is an indented paragraph of the writer.
 *
 * Invariants:
 *   HTQ1  without such a blockquote the result is that of tide_html_text().
 *   HTQ2  the content of scripts and styles is never in the result.
 *   HTQ3  time is linear in the HTML; nothing recurses.
 */
#ifndef TIDE_ASSISTANT_TEXT_HTML_H
#define TIDE_ASSISTANT_TEXT_HTML_H

#include "base/buf.h"

/* Appends clean text (mail/mime/charset.h CHR1).  TIDE_FULL: the part that fits is in `out`. */
tide_status tide_html_quoted_text(tide_text html, tide_buf *out);

#endif
