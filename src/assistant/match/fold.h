/* fold.h - reads text character by character without regard to case.
 *
 * Addresses, subjects and patterns are compared this way, in any script: "ČESKY" is "česky".  One
 * character folds to one character; "ß" is not "ss". */
#ifndef TIDE_ASSISTANT_MATCH_FOLD_H
#define TIDE_ASSISTANT_MATCH_FOLD_H

#include "base/text.h"

/* Takes the character at the front of a non-empty `rest_io`; a byte that is not UTF-8 counts as
 * U+FFFD. */
uint32_t tide_fold_take(tide_text *rest_io);
/* The same without folding. */
uint32_t tide_fold_take_exact(tide_text *rest_io);
uint32_t tide_fold_code(uint32_t code);
uint32_t tide_fold_upper(uint32_t code);

bool tide_fold_equal(tide_text a, tide_text b);
/* O(bytes of text x bytes of part). */
bool tide_fold_contains(tide_text text, tide_text part);

#endif
