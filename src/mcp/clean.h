/* clean.h - makes text from outside harmless to the program and the person that read it.
 *
 * Removed are characters that act instead of being read: control characters (but line ends and
 * tabs), those that change the direction of writing, and those that are invisible, above all the
 * tag characters U+E0000 to U+E0FFF, in which whole sentences can be hidden from a person and shown
 * to a language model.  Joiners (U+200C, U+200D) stay: Persian and emoji need them.
 *
 * Invariants:
 *   CLN1  the result is valid UTF-8 and has none of these characters; cleaning it again changes
 *         nothing.
 *   CLN2  the result is not longer than the text, or three times as long where it was not UTF-8.
 */
#ifndef TIDE_MCP_CLEAN_H
#define TIDE_MCP_CLEAN_H

#include "base/json.h"

/* Appends the cleaned text; bytes that are not UTF-8 become U+FFFD. */
tide_status tide_clean_text(tide_text text, tide_buf *out);
/* Cleans every text of a value in place; its depth is bounded by the code that built it. */
tide_status tide_clean_json(json_t *value);

#endif
