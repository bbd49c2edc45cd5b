/* text.h - strings with a length: the public tidemark/text.h plus internal functions. */
#ifndef TIDE_BASE_TEXT_H
#define TIDE_BASE_TEXT_H

#include "tidemark/text.h"

#include <stdint.h>

/* A whole number in decimal, no sign, no spaces, no overflow. */
bool tide_text_to_u64(tide_text text, uint64_t *number_out);
/* The same with an optional '-'. */
bool tide_text_to_i64(tide_text text, int64_t *number_out);

/* Takes the first word and the one space after it out of `rest_io`.  Empty at the end and between
 * two adjacent spaces. */
tide_text tide_text_word(tide_text *rest_io);
/* Like tide_text_word(), parsed as tide_text_to_u64() does. */
bool tide_text_number(tide_text *rest_io, uint64_t *number_out);

/* Takes the next line out of `rest_io`, without its line end. */
tide_text tide_text_line(tide_text *rest_io);

/* Edit distance: how many letters must be added, dropped or replaced to turn one into the other;
 * for "did you mean".  Texts over 64 bytes count as wholly different. */
size_t tide_text_distance(tide_text a, tide_text b);

#endif
