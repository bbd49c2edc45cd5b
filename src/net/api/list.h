/* list.h - takes an answer with one long list apart while it streams in.
 *
 * A page of changes is an object with a list of up to thousands of objects and a few texts around
 * it.  A JSON library would build all of it first; here each element is passed on alone, parsed or as
 * its text, so that a page costs the memory of its largest element.
 *
 * It repairs nothing: text that is not JSON, a list that is missing or occurs twice, or an element
 * that is not an object, is TIDE_SERVER.
 *
 * Invariants:
 *   LST1  TIDE_OK at the end means: the whole text is one JSON object, and every element of the list
 *         was passed on, in order, once.
 *   LST2  the result does not depend on how the text is split.
 *   LST3  a failure is final.
 *   LST4  memory: one element up to its ceiling, as text and as a value, and 64 KiB for the rest.
 */
#ifndef TIDE_NET_API_LIST_H
#define TIDE_NET_API_LIST_H

#include "base/json.h"

enum {
    TIDE_API_LIST_REST_BYTES_MAX = 64 << 10,
    TIDE_API_LIST_DEPTH_MAX = 64, /* outside of the list */
};

/* An element, borrowed for the call.  Another status ends the answer with it. */
typedef tide_status tide_api_element_visit(void *arg, const json_t *element);
/* The same for a caller with a parser of its own: braces that match, and nothing else is checked. */
typedef tide_status tide_api_element_text(void *arg, tide_text element);

/* Embedded; use only `optional`, `elements`, `failed` and `wrong`. */
struct tide_api_list {
    const char *name;              /* of the list, in the outermost object; borrowed */
    tide_api_element_visit *visit; /* one of these two */
    tide_api_element_text *text;
    void *arg;
    bool optional;    /* an answer without the list has no elements */
    tide_buf element; /* one that arrived in several parts */
    tide_buf rest;    /* the answer with an empty list */
    tide_status failed;
    const char *wrong; /* why; a literal */
    uint64_t elements;
    unsigned depth; /* outside of the list */
    unsigned element_depth;
    bool in_list, in_element, in_string, escaped;
    bool want_comma; /* between elements */
    bool comma;      /* one was read, so that an element must follow */
    bool list_next;  /* the value of the list follows */
    bool list_seen;
    char key[32]; /* the last string, when short */
    size_t key_bytes;
};

void tide_api_list_init(struct tide_api_list *self, const char *name, size_t element_bytes_max,
                        tide_api_element_visit *visit, void *arg, tide_mem *mem);
void tide_api_list_init_text(struct tide_api_list *self, const char *name, size_t element_bytes_max,
                             tide_api_element_text *text, void *arg, tide_mem *mem);
void tide_api_list_done(struct tide_api_list *self); /* a zeroed one is fine */
void tide_api_list_restart(void *self);              /* another answer begins */
/* A tide_sink_write.  TIDE_SERVER, or what `visit` returned. */
tide_status tide_api_list_write(void *self, const char *bytes, size_t count);
/* The answer ended.  *rest_out: everything around the list, with an empty one; owned by the
 * caller. */
tide_status tide_api_list_end(struct tide_api_list *self, json_t **rest_out, tide_error *err);

#endif
