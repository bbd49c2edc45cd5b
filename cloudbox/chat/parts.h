/* parts.h - what filling and judging by a schema share. */
#ifndef BOX_CHAT_PARTS_H
#define BOX_CHAT_PARTS_H

#include "base/text.h"

#include <jansson.h>

/* The schema itself, or what its $ref points to; NULL: nowhere. */
const json_t *box_schema_ref(const json_t *root, const json_t *schema);
bool box_schema_number(const json_t *schema, const char *key, double *number_out);
bool box_format_valid(const char *format, tide_text text);
size_t box_utf8_count(tide_text text);

#endif
