/* text.h - strings that carry their length: tidemark/text.h, which programs see
 * too, and what only we need. */
#ifndef TIDE_BASE_TEXT_H
#define TIDE_BASE_TEXT_H

#include "tidemark/text.h"

#include <stdint.h>

/* A whole number in decimal, no sign, no spaces, no overflow. */
bool tide_text_to_u64(tide_text text, uint64_t *number_out);
/* The same with an optional '-'. */
bool tide_text_to_i64(tide_text text, int64_t *number_out);

/* Takes the first word out of `rest_io`, and the one space after it.  Empty at the end and where
 * two spaces meet. */
tide_text tide_text_word(tide_text *rest_io);
/* The same as a number, as tide_text_to_u64() reads it. */
bool tide_text_number(tide_text *rest_io, uint64_t *number_out);

/* How many letters must be added, dropped or replaced to turn one into the
 * other; for "did you mean".  Texts over 64 bytes count as wholly different. */
size_t tide_text_distance(tide_text a, tide_text b);

#endif
