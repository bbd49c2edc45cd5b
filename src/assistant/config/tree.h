/* tree.h - a YAML file as a tree of mappings, lists and values, with their places.
 *
 * settings/yaml.h reads flat lists of settings; the assistant's rules and tools need lists and
 * mappings in each other.  Anchors, aliases, tags, directives, a second document and a key given
 * twice are refused, with file, line and column.
 *
 * Invariants:
 *   TRE1  at most TIDE_TREE_NODES_MAX nodes, TIDE_TREE_DEEP deep, from a file of at most
 *         TIDE_TREE_BYTES_MAX.
 *   TRE2  no key of a mapping occurs twice, none is empty; children are in the order of the file.
 *   TRE3  every text is UTF-8 without control characters but \n and \t.
 */
#ifndef TIDE_ASSISTANT_CONFIG_TREE_H
#define TIDE_ASSISTANT_CONFIG_TREE_H

#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

enum {
    TIDE_TREE_BYTES_MAX = 512 << 10,
    TIDE_TREE_NODES_MAX = 20000,
    TIDE_TREE_DEEP = 12,
    TIDE_TREE_CHILDREN_MAX = 2000, /* of one mapping or list */
};

typedef enum tide_node_kind {
    TIDE_NODE_VALUE,
    TIDE_NODE_MAP,
    TIDE_NODE_LIST,
} tide_node_kind;

struct tide_node {
    tide_node_kind kind;
    unsigned line, column; /* from 1; of the value */
    unsigned key_line, key_column;
    tide_text key;  /* in a mapping; "" */
    tide_text text; /* of a value */
    bool plain;     /* a value without quotes: 5 and true are no strings */
    bool missing;   /* "key:" with nothing after it */
    struct tide_node *parent, *first, *last, *next;
    size_t count; /* of children */
    json_t *json; /* used by tide_node_json(); borrowed from the whole */
};

/* In `arena`; *root_out is NULL when the file has no content. */
tide_status tide_tree_parse(const char *path, tide_text yaml, tide_arena *arena,
                            const struct tide_node **root_out, tide_error *err);
/* The child with this key, or NULL. */
const struct tide_node *tide_node_get(const struct tide_node *map, const char *key);
/* The mapping or list as JSON; plain 5, 0.5, true and null are not strings.  The caller owns it. */
tide_status tide_node_json(const struct tide_node *node, json_t **json_out);

#endif
