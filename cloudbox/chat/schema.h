/* schema.h - values for JSON schemas, out of what a mail says.
 *
 * Fills arguments of tools and structured answers: the name of a property says
 * which fact belongs there, its schema what it may look like.
 *
 * Understood: type, enum, const, properties, required, additionalProperties,
 * items, sizes of texts, lists, objects and numbers, multipleOf, uniqueItems,
 * pattern and the usual formats, anyOf, oneOf, allOf, $ref inside the schema.
 * Other words are ignored.
 *
 * Invariants:
 *   BSCM1  what is filled in validates, if the schema can be met by looking at it this way;
 *          box_schema_valid() is the judge.
 *   BSCM2  depth and size are bounded whatever the schema says.
 */
#ifndef BOX_CHAT_SCHEMA_H
#define BOX_CHAT_SCHEMA_H

#include "cloudbox/chat/mail.h"

enum {
    BOX_SCHEMA_DEPTH_MAX = 24,
    BOX_SCHEMA_ITEMS_MAX = 64,        /* of a list that is filled */
    BOX_SCHEMA_TEXT_BYTES_MAX = 4096, /* of a text that is filled */
    BOX_SCHEMA_STEPS_MAX = 5000,      /* values made for one answer */
};

struct box_fill {
    const struct box_facts *facts;
    tide_text context; /* everything that was said: "thread_id: 17" is looked up here */
    tide_text draft;   /* an answer to the mail */
    tide_arena *arena;
};

/* A new value; the caller owns it. */
json_t *box_schema_fill(const struct box_fill *fill, const json_t *schema);
bool box_schema_valid(const json_t *schema, const json_t *value, tide_arena *arena);

/* The value behind a name in a text: `"thread_id": "17"` or `Thread ID: 17`.
 * Nothing: data == NULL. */
tide_text box_context_find(tide_text context, const char *name);

#endif
