/* fields.h - the `fields` parameter: a partial answer.
 *
 * "messages(id,threadId),nextPageToken", "a/b", "*": selects from a JSON value.
 */
#ifndef BOX_FIELDS_H
#define BOX_FIELDS_H

#include "base/mem.h"
#include "base/text.h"

#include <jansson.h>

/* Whether the text is a selection: asked before anything is changed. */
bool box_fields_valid(tide_text fields, tide_arena *arena);
/* A new value with only what `fields` selects; the caller owns it.  NULL: the
 * text is not a selection (400 "Invalid field selection").  A name the
 * value does not have selects nothing. */
json_t *box_fields_select(tide_text fields, const json_t *value, tide_arena *arena);

#endif
