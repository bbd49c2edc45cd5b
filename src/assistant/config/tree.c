#include "assistant/config/tree.h"

#include "base/check.h"
#include "settings/yaml.h"

#include <libfyaml.h>

#include <errno.h>
#include <stdlib.h>

struct reader {
    const char *path;
    tide_arena *arena;
    struct tide_node *root;
    struct tide_node *open; /* the innermost mapping or list */
    unsigned depth;
    size_t nodes;
    tide_text key; /* of the mapping `open`, read before its value */
    unsigned key_line, key_column;
    bool has_key;
    unsigned documents;
    unsigned line, column; /* of the last event that had a place */
};

static tide_status refuse(const struct reader *reader, tide_error *err, const char *reason)
{
    return tide_error_set(err, TIDE_INVALID, "%s:%u:%u: %s", reader->path, reader->line,
                          reader->column, reason);
}

static tide_status no_memory(const struct reader *reader, tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading %s", reader->path);
}

/* ---- nodes ----------------------------------------------------------------------- */

const struct tide_node *tide_node_get(const struct tide_node *map, const char *key)
{
    const tide_text wanted = tide_text_of(key);
    for (const struct tide_node *node = map == NULL ? NULL : map->first; node != NULL;
         node = node->next)
        if (tide_text_equal(node->key, wanted))
            return node;
    return NULL;
}

/* Whether a mapping may still have this key (TRE2). */
static tide_status check_key(const struct reader *reader, tide_error *err)
{
    if (reader->key.bytes == 0)
        return refuse(reader, err, "a name is empty");
    for (const struct tide_node *node = reader->open->first; node != NULL; node = node->next)
        if (tide_text_equal(node->key, reader->key))
            return tide_error_set(err, TIDE_INVALID,
                                  "%s:%u:%u: \"%.*s\" is given twice, first in line %u",
                                  reader->path, reader->line, reader->column,
                                  (int)(reader->key.bytes > 80 ? 80 : reader->key.bytes),
                                  reader->key.data, node->line);
    return TIDE_OK;
}

static tide_status add_node(struct reader *reader, tide_node_kind kind, struct tide_node **node_out,
                            tide_error *err)
{
    struct tide_node *open = reader->open;
    if (open == NULL && reader->root != NULL)
        return refuse(reader, err, "more than one value");
    if (++reader->nodes > TIDE_TREE_NODES_MAX)
        return refuse(reader, err, "the file has too many entries");
    if (open != NULL && open->count == TIDE_TREE_CHILDREN_MAX)
        return refuse(reader, err, "the list is too long");
    struct tide_node *node = tide_arena_take(reader->arena, sizeof *node);
    if (node == NULL)
        return no_memory(reader, err);
    *node = (struct tide_node){
        .kind = kind, .line = reader->line, .column = reader->column, .parent = open};
    if (open != NULL && open->kind == TIDE_NODE_MAP) {
        TIDE_ASSERT(reader->has_key);
        node->key = reader->key;
        node->key_line = reader->key_line;
        node->key_column = reader->key_column;
        reader->has_key = false;
    }
    if (open == NULL)
        reader->root = node;
    else if (open->last == NULL)
        open->first = node;
    else
        open->last->next = node;
    if (open != NULL) {
        open->last = node;
        open->count++;
    }
    *node_out = node;
    return TIDE_OK;
}

/* ---- events ---------------------------------------------------------------------- */

/* A value in quotes can have escapes for anything (TRE3). */
static bool is_clean(tide_text text)
{
    for (size_t at = 0; at < text.bytes;) {
        const unsigned char c = (unsigned char)text.data[at];
        const size_t bytes = tide_utf8_bytes((tide_text){text.data + at, text.bytes - at});
        if (bytes == 0 || (c < ' ' && c != '\n' && c != '\t') || c == 0x7f ||
            (c == 0xc2 && (unsigned char)text.data[at + 1] < 0xa0))
            return false;
        at += bytes;
    }
    return true;
}

static tide_status take_scalar(struct reader *reader, struct fy_event *event, tide_error *err)
{
    if (event->scalar.anchor != NULL || event->scalar.tag != NULL)
        return refuse(reader, err, "anchors and tags are not used here; write the value itself");
    struct fy_token *token = event->scalar.value;
    size_t bytes = 0;
    const char *data = token == NULL ? NULL : fy_token_get_text(token, &bytes);
    const enum fy_scalar_style style = token == NULL ? FYSS_PLAIN : fy_token_scalar_style(token);
    const bool plain = style == FYSS_PLAIN;
    if ((style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) && reader->column > 1)
        reader->column--; /* the mark is behind the quote */
    const tide_text text = {data, data == NULL ? 0 : bytes};
    if (!is_clean(text))
        return refuse(reader, err, "a value contains a control character");
    if (reader->open == NULL && text.bytes == 0)
        return TIDE_OK; /* nothing but comments */
    char *copy = tide_arena_copy(reader->arena, text.bytes == 0 ? "" : text.data, text.bytes);
    if (copy == NULL)
        return no_memory(reader, err);
    if (reader->open != NULL && reader->open->kind == TIDE_NODE_MAP && !reader->has_key) {
        reader->key = (tide_text){copy, text.bytes};
        reader->key_line = reader->line;
        reader->key_column = reader->column;
        reader->has_key = true;
        return check_key(reader, err);
    }
    struct tide_node *node = NULL;
    TIDE_TRY(add_node(reader, TIDE_NODE_VALUE, &node, err));
    node->text = (tide_text){copy, text.bytes};
    node->plain = plain;
    node->missing = token == NULL || (plain && text.bytes == 0);
    return TIDE_OK;
}

static tide_status open_node(struct reader *reader, tide_node_kind kind, bool marked,
                             tide_error *err)
{
    if (marked)
        return refuse(reader, err, "anchors and tags are not used here; write the value itself");
    if (reader->open != NULL && reader->open->kind == TIDE_NODE_MAP && !reader->has_key)
        return refuse(reader, err, "a name is not a plain word");
    if (reader->depth == TIDE_TREE_DEEP)
        return refuse(reader, err, "nested too deeply");
    struct tide_node *node = NULL;
    TIDE_TRY(add_node(reader, kind, &node, err));
    reader->depth++;
    reader->open = node;
    return TIDE_OK;
}

static void close_node(struct reader *reader)
{
    TIDE_ASSERT(reader->open != NULL && reader->depth > 0);
    reader->depth--;
    reader->open = reader->open->parent;
}

static tide_status take_event(struct reader *reader, struct fy_event *event, tide_error *err)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (mark != NULL) {
        reader->line = (unsigned)mark->line + 1;
        reader->column = (unsigned)mark->column + 1;
    }
    switch (event->type) {
    case FYET_DOCUMENT_START:
        return ++reader->documents == 1 ? TIDE_OK
                                        : refuse(reader, err, "a second document begins here");
    case FYET_MAPPING_START:
        return open_node(reader, TIDE_NODE_MAP,
                         event->mapping_start.anchor != NULL || event->mapping_start.tag != NULL,
                         err);
    case FYET_SEQUENCE_START:
        return open_node(reader, TIDE_NODE_LIST,
                         event->sequence_start.anchor != NULL || event->sequence_start.tag != NULL,
                         err);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        close_node(reader);
        return TIDE_OK;
    case FYET_SCALAR:
        return take_scalar(reader, event, err);
    case FYET_ALIAS:
        return refuse(reader, err, "aliases are not used here; write the value itself");
    default:
        return TIDE_OK;
    }
}

static tide_status syntax_error(struct reader *reader, struct fy_diag *diag, tide_error *err)
{
    void *iterator = NULL;
    const struct fy_diag_error *error = fy_diag_errors_iterate(diag, &iterator);
    if (error == NULL || error->msg == NULL)
        return refuse(reader, err, "not YAML");
    return tide_error_set(err, TIDE_INVALID, "%s:%d:%d: not YAML: %s", reader->path, error->line,
                          error->column, error->msg);
}

static tide_status read_events(struct reader *reader, struct fy_parser *parser,
                               struct fy_diag *diag, tide_error *err)
{
    tide_status rc = TIDE_OK;
    struct fy_event *event = NULL;
    while (rc == TIDE_OK && (event = fy_parser_parse(parser)) != NULL) {
        rc = take_event(reader, event, err);
        fy_parser_event_free(parser, event);
    }
    if (rc == TIDE_OK && (fy_parser_get_stream_error(parser) || fy_diag_got_error(diag)))
        rc = syntax_error(reader, diag, err);
    return rc;
}

tide_status tide_tree_parse(const char *path, tide_text yaml, tide_arena *arena,
                            const struct tide_node **root_out, tide_error *err)
{
    TIDE_ASSERT(path != NULL && root_out != NULL);
    struct reader reader = {.path = path, .arena = arena, .line = 1, .column = 1};
    if (yaml.bytes > TIDE_TREE_BYTES_MAX)
        return refuse(&reader, err, "the file is too large");
    TIDE_TRY(tide_yaml_check(path, yaml, err)); /* libfyaml does not end on some files */
    if (yaml.bytes == 0) {
        *root_out = NULL;
        return TIDE_OK;
    }
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL; /* the library prints nothing itself */
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    if (diag == NULL)
        return no_memory(&reader, err);
    fy_diag_set_collect_errors(diag, true);
    struct fy_parser *parser =
        fy_parser_create(&(struct fy_parse_cfg){.search_path = "", .diag = diag});
    tide_status rc = no_memory(&reader, err);
    if (parser != NULL && fy_parser_set_string(parser, yaml.data, yaml.bytes) == 0)
        rc = read_events(&reader, parser, diag, err);
    if (parser != NULL)
        fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    if (rc == TIDE_OK)
        *root_out = reader.root;
    return rc;
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *number_of(const char *text)
{
    char *end = NULL;
    errno = 0;
    if (strspn(text, "0123456789-") == strlen(text)) {
        const long long number = strtoll(text, &end, 10);
        return *end == '\0' && end != text && errno == 0 ? json_integer(number) : NULL;
    }
    if (strspn(text, "0123456789.eE+-") != strlen(text) || strpbrk(text, "0123456789") == NULL)
        return NULL;
    const double number = strtod(text, &end);
    return *end == '\0' && errno == 0 ? json_real(number) : NULL;
}

static json_t *value_json(const struct tide_node *node)
{
    const char *text = node->text.data;
    if (node->plain) {
        if (node->missing || strcmp(text, "null") == 0 || strcmp(text, "~") == 0)
            return json_null();
        if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
            return json_boolean(text[0] == 't');
        json_t *number = number_of(text);
        if (number != NULL)
            return number;
    }
    return json_stringn(text, node->text.bytes);
}

static json_t *json_of(const struct tide_node *node)
{
    if (node->kind == TIDE_NODE_VALUE)
        return value_json(node);
    return node->kind == TIDE_NODE_MAP ? json_object() : json_array();
}

/* The next in the order of the file, below `top`; NULL at the end. */
static struct tide_node *after(const struct tide_node *top, struct tide_node *node)
{
    if (node->first != NULL)
        return node->first;
    while (node != top && node->next == NULL)
        node = node->parent;
    return node == top ? NULL : node->next;
}

tide_status tide_node_json(const struct tide_node *node, json_t **json_out)
{
    TIDE_ASSERT(node->kind != TIDE_NODE_VALUE);
    struct tide_node *top = (struct tide_node *)(uintptr_t)node; /* `json` is scratch */
    json_t *whole = json_of(top);
    bool good = whole != NULL;
    top->json = whole;
    for (struct tide_node *at = good ? after(top, top) : NULL; good && at != NULL;
         at = after(top, at)) {
        at->json = json_of(at);
        json_t *parent = at->parent->json;
        /* Both take the value over, also when they fail. */
        good = json_is_object(parent)
                   ? json_object_setn_new(parent, at->key.data, at->key.bytes, at->json) == 0
                   : json_array_append_new(parent, at->json) == 0;
    }
    if (!good) {
        json_decref(whole);
        return TIDE_NO_MEMORY;
    }
    *json_out = whole;
    return TIDE_OK;
}
