/* fields.c - see fields.h. */
#include "cloudbox/google/fields.h"

#include "base/check.h"

/* What a client can write is bounded; what lies beyond is not a selection. */
enum { FIELDS_BYTES_MAX = 8192, FIELDS_NODES_MAX = 512, FIELDS_DEEP = 32 };

/* One name of the selection.  Without children it takes the whole value. */
struct node {
    tide_text name;
    bool whole; /* all of it was asked for: "a,a/b" is "a" */
    struct node *first;
    struct node *next;
};

struct parser {
    tide_text text;
    size_t at;
    size_t nodes;
    tide_arena *arena;
};

static int peek(const struct parser *parser)
{
    return parser->at < parser->text.bytes ? (unsigned char)parser->text.data[parser->at] : -1;
}

static bool name_has(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '@' || c == '$';
}

/* A name, or '*' standing alone; empty: neither. */
static tide_text take_name(struct parser *parser)
{
    const size_t start = parser->at;
    if (peek(parser) == '*')
        parser->at++;
    else
        while (name_has(peek(parser)))
            parser->at++;
    return (tide_text){parser->text.data + start, parser->at - start};
}

/* The child of that name, made when it is not there: "a/b,a/c" is "a(b,c)". */
static struct node *child_need(struct parser *parser, struct node *parent, tide_text name)
{
    for (struct node *child = parent->first; child != NULL; child = child->next)
        if (tide_text_equal(child->name, name))
            return child;
    if (++parser->nodes > FIELDS_NODES_MAX)
        return NULL;
    struct node *child = tide_arena_take(parser->arena, sizeof *child);
    TIDE_ASSERT(child != NULL);
    child->name = name;
    child->next = parent->first;
    parent->first = child;
    return child;
}

/* list = path { "," path };  path = name { "/" name } [ "(" list ")" ].
 * Recursion is bounded by `deep`. */
static bool take_list(struct parser *parser, struct node *parent, size_t deep)
{
    do {
        struct node *node = parent;
        size_t path_deep = deep;
        do {
            const tide_text name = take_name(parser);
            if (name.bytes == 0 || ++path_deep > FIELDS_DEEP)
                return false;
            node = child_need(parser, node, name);
            if (node == NULL)
                return false;
        } while (peek(parser) == '/' && parser->at++ < parser->text.bytes);

        if (peek(parser) != '(') {
            node->whole = true;
            continue;
        }
        parser->at++;
        if (!take_list(parser, node, path_deep) || peek(parser) != ')')
            return false;
        parser->at++;
    } while (peek(parser) == ',' && parser->at++ < parser->text.bytes);
    return true;
}

/* The selections that hold for one value: more than one where a name and '*'
 * both lead to it. */
struct active {
    const struct node *nodes[FIELDS_NODES_MAX];
    size_t count;
};

/* Those for the member `key`.  True: it is taken whole. */
static bool narrow(const struct active *active, tide_text key, struct active *inner)
{
    inner->count = 0;
    for (size_t i = 0; i < active->count; i++) {
        for (const struct node *child = active->nodes[i]->first; child; child = child->next) {
            if (!tide_text_equal(child->name, TIDE_TEXT("*")) && !tide_text_equal(child->name, key))
                continue;
            if (child->whole)
                return true;
            TIDE_ASSERT(inner->count < FIELDS_NODES_MAX); /* every node at most once: a tree */
            inner->nodes[inner->count++] = child;
        }
    }
    return false;
}

static json_t *select_from(const struct active *active, const json_t *value, size_t deep);

static json_t *select_members(const struct active *active, const json_t *value, size_t deep)
{
    json_t *out = json_object();
    TIDE_ASSERT(out != NULL);
    /* jansson's iterator wants a value it could change; it does not. */
    json_t *object = (json_t *)(uintptr_t)value;
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        json_t *member = json_object_iter_value(at);
        struct active inner;
        json_t *chosen = NULL;
        if (narrow(active, tide_text_of(key), &inner))
            chosen = json_incref(member);
        else if (inner.count > 0)
            chosen = select_from(&inner, member, deep + 1);
        if (chosen != NULL)
            TIDE_ASSERT(json_object_set_new_nocheck(out, key, chosen) == 0);
    }
    return out;
}

static json_t *select_elements(const struct active *active, const json_t *value, size_t deep)
{
    json_t *out = json_array();
    TIDE_ASSERT(out != NULL);
    for (size_t i = 0; i < json_array_size(value); i++) {
        json_t *chosen = select_from(active, json_array_get(value, i), deep + 1);
        if (chosen != NULL)
            TIDE_ASSERT(json_array_append_new(out, chosen) == 0);
    }
    if (json_array_size(out) == 0) { /* empty arrays are absent, as everywhere */
        json_decref(out);
        return NULL;
    }
    return out;
}

/* What the selection leaves of a value, or NULL for nothing.  An object stays,
 * even empty; a plain value has no members to select.  The depth is that of the
 * selection and of arrays inside arrays, which no answer of ours nests. */
static json_t *select_from(const struct active *active, const json_t *value, size_t deep)
{
    if (deep > 2 * FIELDS_DEEP)
        return NULL;
    if (json_is_object(value))
        return select_members(active, value, deep);
    if (json_is_array(value))
        return select_elements(active, value, deep);
    return NULL;
}

static bool parse(tide_text fields, tide_arena *arena, struct node *root)
{
    if (fields.bytes == 0 || fields.bytes > FIELDS_BYTES_MAX)
        return false;
    struct parser parser = {.text = fields, .arena = arena};
    return take_list(&parser, root, 0) && parser.at == fields.bytes;
}

bool box_fields_valid(tide_text fields, tide_arena *arena)
{
    struct node root = {0};
    return parse(fields, arena, &root);
}

json_t *box_fields_select(tide_text fields, const json_t *value, tide_arena *arena)
{
    struct node root = {0};
    if (!parse(fields, arena, &root))
        return NULL;

    struct active active = {.nodes = {&root}, .count = 1};
    json_t *out = select_from(&active, value, 0);
    return out != NULL ? out : json_object();
}
