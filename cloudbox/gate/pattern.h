/* pattern.h - regular expressions of other dialects on POSIX extended ones.
 *
 * RE2 (Search Console) and ECMAScript (JSON schemas) share a core with POSIX,
 * and what they share means the same here; \d, \D and (?: are translated, a
 * leading (?i) is dropped.  What would be slow (back references, large or
 * nested counts, deep groups) is refused.
 */
#ifndef BOX_PATTERN_H
#define BOX_PATTERN_H

#include "base/buf.h"

#include <regex.h>

enum {
    BOX_PATTERN_BYTES_MAX = 4096,
    BOX_PATTERN_REPEAT_MAX = 1000,
    BOX_PATTERN_SIZE_MAX = 32 << 10, /* with its counts written out */
    BOX_PATTERN_DEPTH_MAX = 50,
};

/* false: not understood, or refused.  The caller frees the regex. */
bool box_pattern_compile(tide_text text, bool fold_case, tide_arena *arena, regex_t *regex_out);

/* Appends a text that the pattern should match; what may be repeated without
 * end is repeated `more` times beyond the least.  Whether it does match is for
 * the caller to try: not every pattern is understood. */
void box_pattern_example(tide_text pattern, size_t more, tide_buf *out);

#endif
