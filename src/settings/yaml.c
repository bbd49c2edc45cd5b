#include "settings/yaml.h"

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "settings/settings.h"

#include <libfyaml.h>

#include <stdio.h>
#include <stdlib.h>

/* accounts, its name, and the parts of a setting's name. */
enum { DEPTH_MAX = 6, KEYS_MAX = 2048, KEY_BYTES = TIDE_SETTING_NAME_BYTES };

struct key {
    char name[KEY_BYTES];
    unsigned line;
};

struct walk {
    const char *path;
    tide_yaml_visit *visit;
    void *arg;
    struct fy_parser *parser;
    char name[KEY_BYTES];           /* of the key just read, with its prefixes */
    size_t prefix_bytes[DEPTH_MAX]; /* length of `name` in front of each level's keys */
    unsigned depth;
    bool has_key; /* a key was read, its value is next */
    unsigned documents;
    unsigned line; /* of the last event that had a place */
    struct key *keys;
    size_t keys_count;
};

static tide_status refuse(const struct walk *walk, tide_error *err, const char *reason)
{
    return tide_error_set(err, TIDE_INVALID, "%s:%u: %s", walk->path, walk->line, reason);
}

/* Records the full name of a mapping or value; nested and dotted spellings give the same. */
static tide_status key_note(struct walk *walk, tide_error *err)
{
    for (size_t i = 0; i < walk->keys_count; i++)
        if (strcmp(walk->keys[i].name, walk->name) == 0)
            return tide_error_set(err, TIDE_INVALID,
                                  "%s:%u: \"%s\" is given twice, first in line %u", walk->path,
                                  walk->line, walk->name, walk->keys[i].line);
    if (walk->keys_count == KEYS_MAX)
        return refuse(walk, err, "too many keys");
    struct key *key = &walk->keys[walk->keys_count++];
    memcpy(key->name, walk->name, sizeof key->name);
    key->line = walk->line;
    return TIDE_OK;
}

static tide_status take_key(struct walk *walk, tide_text key, tide_error *err)
{
    size_t prefix = walk->prefix_bytes[walk->depth - 1];
    if (key.bytes == 0 || memchr(key.data, '\0', key.bytes) != NULL)
        return refuse(walk, err, "a name is empty");
    if (key.bytes >= sizeof walk->name - prefix)
        return refuse(walk, err, "a name is too long");
    memcpy(walk->name + prefix, key.data, key.bytes);
    walk->name[prefix + key.bytes] = '\0';
    walk->has_key = true;
    return key_note(walk, err);
}

static tide_status take_scalar(struct walk *walk, struct fy_event *event, tide_error *err)
{
    struct fy_token *token = event->scalar.value;
    size_t bytes = 0;
    const char *data = token == NULL ? NULL : fy_token_get_text(token, &bytes);
    tide_text text = {data, data == NULL ? 0 : bytes};

    if (event->scalar.anchor != NULL || event->scalar.tag != NULL)
        return refuse(walk, err, "anchors and tags are not used here; write the value itself");
    if (walk->depth == 0)
        return text.bytes == 0 ? TIDE_OK : refuse(walk, err, "expected \"name: value\" lines");
    if (!walk->has_key)
        return take_key(walk, text, err);
    walk->has_key = false;
    if (token == NULL)
        return tide_error_set(err, TIDE_INVALID, "%s:%u: \"%s\" has no value", walk->path,
                              walk->line, walk->name);

    enum fy_scalar_style style = fy_token_scalar_style(token);
    const struct fy_mark *start = fy_event_start_mark(event);
    const struct fy_mark *end = fy_event_end_mark(event);
    TIDE_ASSERT(start != NULL && end != NULL);
    size_t quote = style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
    struct tide_yaml_entry entry = {
        .name = tide_text_of(walk->name),
        .value = text,
        .line = (unsigned)start->line + 1,
        .start = start->input_pos - quote,
        .end = end->input_pos + quote,
        .editable = start->line == end->line && (quote || style == FYSS_PLAIN),
    };
    return walk->visit(walk->arg, &entry, err);
}

static tide_status take_mapping(struct walk *walk, const struct fy_event *event, tide_error *err)
{
    if (event->mapping_start.anchor != NULL || event->mapping_start.tag != NULL)
        return refuse(walk, err, "anchors and tags are not used here; write the value itself");
    if (walk->depth > 0 && !walk->has_key)
        return refuse(walk, err, "a name is not a plain word");
    if (walk->depth == DEPTH_MAX)
        return refuse(walk, err, "nested too deeply");
    size_t bytes = walk->depth == 0 ? 0 : strlen(walk->name);
    if (bytes + 2 > sizeof walk->name)
        return refuse(walk, err, "a name is too long");
    if (bytes > 0)
        walk->name[bytes++] = '.';
    walk->name[bytes] = '\0';
    walk->prefix_bytes[walk->depth++] = bytes;
    walk->has_key = false;
    return TIDE_OK;
}

static tide_status take_event(struct walk *walk, struct fy_event *event, tide_error *err)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (mark != NULL)
        walk->line = (unsigned)mark->line + 1;
    switch (event->type) {
    case FYET_DOCUMENT_START:
        return ++walk->documents == 1 ? TIDE_OK
                                      : refuse(walk, err, "a second document begins here");
    case FYET_MAPPING_START:
        return take_mapping(walk, event, err);
    case FYET_MAPPING_END:
        TIDE_ASSERT(walk->depth > 0);
        walk->depth--;
        return TIDE_OK;
    case FYET_SCALAR:
        return take_scalar(walk, event, err);
    case FYET_SEQUENCE_START:
        return refuse(walk, err, "lists are not used here");
    case FYET_ALIAS:
        return refuse(walk, err, "aliases are not used here; write the value itself");
    default:
        return TIDE_OK;
    }
}

static tide_status syntax_error(const struct walk *walk, struct fy_diag *diag, tide_error *err)
{
    void *iterator = NULL;
    const struct fy_diag_error *error = fy_diag_errors_iterate(diag, &iterator);
    if (error == NULL || error->msg == NULL)
        return refuse(walk, err, "not YAML");
    return tide_error_set(err, TIDE_INVALID, "%s:%d: not YAML: %s", walk->path, error->line,
                          error->msg);
}

static tide_status walk_events(struct walk *walk, struct fy_diag *diag, tide_error *err)
{
    tide_status rc = TIDE_OK;
    struct fy_event *event = NULL;
    while (rc == TIDE_OK && (event = fy_parser_parse(walk->parser)) != NULL) {
        rc = take_event(walk, event, err);
        fy_parser_event_free(walk->parser, event);
    }
    if (rc == TIDE_OK && (fy_parser_get_stream_error(walk->parser) || fy_diag_got_error(diag)))
        rc = syntax_error(walk, diag, err);
    return rc;
}

/* Like refuse(), with the column: there is no event yet. */
static tide_status refuse_at(const struct walk *walk, size_t column, tide_error *err,
                             const char *reason)
{
    return tide_error_set(err, TIDE_INVALID, "%s:%u:%zu: %s", walk->path, walk->line, column,
                          reason);
}

tide_status tide_yaml_check(const char *path, tide_text yaml, tide_error *err)
{
    struct walk walk = {.path = path, .line = 1};
    size_t column = 1;
    for (size_t at = 0; at < yaml.bytes;) {
        const tide_text rest = {yaml.data + at, yaml.bytes - at};
        const size_t bytes = tide_utf8_bytes(rest);
        const unsigned char c = (unsigned char)rest.data[0];
        if (bytes == 0)
            return refuse_at(&walk, column, err, "not YAML: a byte is not UTF-8");
        if (c == '\0')
            return refuse_at(&walk, column, err, "not YAML: the file contains a zero byte");
        if ((c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == 0x7f)
            return refuse_at(&walk, column, err, "not YAML: the file contains a control character");
        if (column == 1 && c == '%')
            return refuse_at(&walk, column, err, "directives are not used here");
        column = c == '\n' || c == '\r' ? 1 : column + 1;
        walk.line += c == '\n';
        at += bytes;
    }
    return TIDE_OK;
}

tide_status tide_yaml_walk(const char *path, tide_text yaml, tide_yaml_visit *visit, void *arg,
                           tide_error *err)
{
    TIDE_ASSERT(path != NULL && visit != NULL);
    struct walk walk = {.path = path, .visit = visit, .arg = arg, .line = 1};
    if (yaml.bytes == 0)
        return TIDE_OK;
    if (yaml.bytes > TIDE_SETTINGS_FILE_BYTES_MAX)
        return refuse(&walk, err, "the file is too large");
    TIDE_TRY(tide_yaml_check(path, yaml, err));

    tide_status rc = tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading %s", path);
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL; /* the library prints nothing itself */
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    walk.keys = calloc(KEYS_MAX, sizeof *walk.keys);
    if (diag == NULL || walk.keys == NULL)
        goto done;
    fy_diag_set_collect_errors(diag, true);
    walk.parser = fy_parser_create(&(struct fy_parse_cfg){.search_path = "", .diag = diag});
    if (walk.parser == NULL || fy_parser_set_string(walk.parser, yaml.data, yaml.bytes) != 0)
        goto done;
    rc = walk_events(&walk, diag, err);

done:
    if (walk.parser != NULL)
        fy_parser_destroy(walk.parser);
    if (diag != NULL)
        fy_diag_destroy(diag);
    free(walk.keys);
    return rc;
}
