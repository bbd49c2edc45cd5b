#include "assistant/config/inside.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>

enum { PATH_BYTES = 160, SHOWN_BYTES = 60 };

static int shown(tide_text text)
{
    return (int)tide_utf8_cut(text, SHOWN_BYTES).bytes;
}

/* ---- refusals -------------------------------------------------------------------- */

/* Puts ".key" or "[2]" in front of the path at `*at`, from the end of the buffer on. */
static void path_prepend(char path[PATH_BYTES], size_t *at, const struct tide_node *node)
{
    char part[TIDE_ASSISTANT_NAME_BYTES_MAX + 16];
    if (node->parent->kind == TIDE_NODE_LIST) {
        size_t index = 1;
        for (const struct tide_node *n = node->parent->first; n != node; n = n->next)
            index++;
        (void)snprintf(part, sizeof part, "[%zu]", index);
    } else {
        (void)snprintf(part, sizeof part, "%s%.*s", node->parent->parent == NULL ? "" : ".",
                       shown(node->key), node->key.data);
    }
    const size_t bytes = strlen(part);
    if (bytes > *at)
        return;
    *at -= bytes;
    memcpy(path + *at, part, bytes);
}

tide_status tide_config_refuse(const struct tide_config_reader *reader,
                               const struct tide_node *node, const char *format, ...)
{
    char path[PATH_BYTES], reason[300];
    size_t at = PATH_BYTES - 1;
    path[at] = '\0';
    for (const struct tide_node *n = node; n != NULL && n->parent != NULL; n = n->parent)
        path_prepend(path, &at, n);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return tide_error_set(reader->err, TIDE_INVALID, "%s:%u:%u: %s%s%s", reader->source->path,
                          node == NULL ? 1 : node->line, node == NULL ? 1 : node->column, path + at,
                          path[at] == '\0' ? "" : ": ", reason);
}

tide_status tide_config_no_memory(const struct tide_config_reader *reader)
{
    return tide_error_set(reader->err, TIDE_NO_MEMORY, "out of memory while reading %s",
                          reader->source->path);
}

/* ---- names ----------------------------------------------------------------------- */

const char *tide_config_nearest(tide_text name, tide_config_named *named, const void *arg,
                                size_t count)
{
    const char *nearest = NULL;
    size_t best = name.bytes / 3 + 2; /* a larger distance is another word */
    for (size_t i = 0; i < count; i++) {
        const char *known = named(arg, i);
        const size_t distance = tide_text_distance(name, tide_text_of(known));
        if (distance < best) {
            best = distance;
            nearest = known;
        }
    }
    return nearest;
}

tide_status tide_config_unknown(const struct tide_config_reader *reader,
                                const struct tide_node *node, const char *what, tide_text name,
                                const char *nearest)
{
    return tide_config_refuse(reader, node, "there is no %s \"%.*s\"%s%s%s", what, shown(name),
                              name.data, nearest == NULL ? "" : "; did you mean \"",
                              nearest == NULL ? "" : nearest, nearest == NULL ? "" : "\"?");
}

static const char *named_in_list(const void *arg, size_t index)
{
    return ((const char *const *)arg)[index];
}

const struct tide_node *tide_config_section(const struct tide_node *root, const char *key)
{
    const struct tide_node *node = tide_node_get(root, key);
    return node != NULL && node->kind == TIDE_NODE_VALUE && node->missing ? NULL : node;
}

tide_status tide_config_map(const struct tide_config_reader *reader, const struct tide_node *node,
                            const char *const *known)
{
    size_t count = 0;
    while (known[count] != NULL)
        count++;
    if (node->kind != TIDE_NODE_MAP)
        return tide_config_refuse(reader, node, "expected names and values");
    for (const struct tide_node *child = node->first; child != NULL; child = child->next) {
        size_t i = 0;
        while (i < count && !tide_text_equal(child->key, tide_text_of(known[i])))
            i++;
        if (i == count) {
            struct tide_node name = *child; /* the place of the name, not of its value */
            name.line = child->key_line;
            name.column = child->key_column;
            return tide_config_unknown(
                reader, &name, "setting", child->key,
                tide_config_nearest(child->key, named_in_list, known, count));
        }
    }
    return TIDE_OK;
}

tide_status tide_config_name(const struct tide_config_reader *reader, const struct tide_node *node,
                             tide_text name)
{
    bool good = name.bytes > 0 && name.bytes <= TIDE_ASSISTANT_NAME_BYTES_MAX;
    for (size_t i = 0; good && i < name.bytes; i++) {
        const char c = name.data[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    }
    return good ? TIDE_OK
                : tide_config_refuse(reader, node,
                                     "\"%.*s\" is not a name: letters, digits, - and _, at most %d",
                                     shown(name), name.data, TIDE_ASSISTANT_NAME_BYTES_MAX);
}

/* ---- values ---------------------------------------------------------------------- */

tide_status tide_config_text(const struct tide_config_reader *reader, const struct tide_node *node,
                             size_t bytes_max, tide_text *text_out)
{
    if (node->kind != TIDE_NODE_VALUE)
        return tide_config_refuse(reader, node, "expected one value");
    if (node->text.bytes == 0)
        return tide_config_refuse(reader, node, "has no value");
    if (node->text.bytes > bytes_max)
        return tide_config_refuse(reader, node, "is longer than %zu bytes", bytes_max);
    *text_out = node->text;
    return TIDE_OK;
}

tide_status tide_config_line(const struct tide_config_reader *reader, const struct tide_node *node,
                             size_t bytes_max, tide_text *text_out)
{
    tide_text text = TIDE_TEXT_NONE;
    TIDE_TRY(tide_config_text(reader, node, bytes_max, &text));
    if (memchr(text.data, '\n', text.bytes) != NULL || memchr(text.data, '\t', text.bytes) != NULL)
        return tide_config_refuse(reader, node, "has more than one line");
    *text_out = text;
    return TIDE_OK;
}

tide_status tide_config_number(const struct tide_config_reader *reader,
                               const struct tide_node *node, uint64_t min, uint64_t max,
                               uint64_t *number_out)
{
    tide_text text = TIDE_TEXT_NONE;
    uint64_t number = 0;
    TIDE_TRY(tide_config_line(reader, node, SHOWN_BYTES, &text));
    if (!tide_text_to_u64(text, &number))
        return tide_config_refuse(reader, node, "\"%.*s\" is not a whole number", shown(text),
                                  text.data);
    if (number < min || number > max)
        return tide_config_refuse(reader, node, "%.*s is not between %llu and %llu", shown(text),
                                  text.data, (unsigned long long)min, (unsigned long long)max);
    *number_out = number;
    return TIDE_OK;
}

tide_status tide_config_bool(const struct tide_config_reader *reader, const struct tide_node *node,
                             bool *flag_out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    tide_text text = TIDE_TEXT_NONE;
    TIDE_TRY(tide_config_line(reader, node, SHOWN_BYTES, &text));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (tide_text_equal(text, tide_text_of(words[i]))) {
            *flag_out = i % 2 == 1;
            return TIDE_OK;
        }
    }
    return tide_config_refuse(reader, node, "\"%.*s\" is neither true nor false", shown(text),
                              text.data);
}

tide_status tide_config_texts(const struct tide_config_reader *reader, const struct tide_node *node,
                              size_t count_max, size_t bytes_max, struct tide_texts *texts_out)
{
    const bool list = node->kind == TIDE_NODE_LIST;
    const size_t count = list ? node->count : 1;
    if (count > count_max)
        return tide_config_refuse(reader, node, "has more than %zu values", count_max);
    tide_text *texts = tide_arena_take(reader->arena, count * sizeof *texts + 1);
    if (texts == NULL)
        return tide_config_no_memory(reader);
    const struct tide_node *one = list ? node->first : node;
    for (size_t i = 0; i < count; i++, one = one->next)
        TIDE_TRY(tide_config_line(reader, one, bytes_max, &texts[i]));
    *texts_out = (struct tide_texts){texts, count};
    return TIDE_OK;
}

/* ---- files ----------------------------------------------------------------------- */

/* A relative path without ".", ".." or empty parts (CFG3). */
static bool is_inside(tide_text name)
{
    size_t begin = 0;
    for (size_t i = 0; i <= name.bytes; i++) {
        if (i < name.bytes && name.data[i] != '/')
            continue;
        const tide_text part = {name.data + begin, i - begin};
        if (part.bytes == 0 || tide_text_equal(part, TIDE_TEXT(".")) ||
            tide_text_equal(part, TIDE_TEXT("..")))
            return false;
        begin = i + 1;
    }
    return true;
}

bool tide_config_is_text(tide_text text)
{
    for (size_t at = 0; at < text.bytes;) {
        const size_t bytes = tide_utf8_bytes((tide_text){text.data + at, text.bytes - at});
        const unsigned char c = (unsigned char)text.data[at];
        if (bytes == 0 || (c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 0x7f)
            return false;
        at += bytes;
    }
    return true;
}

static tide_status read_file(struct tide_config_reader *reader, const struct tide_node *node,
                             tide_text *text_out)
{
    tide_text name = TIDE_TEXT_NONE;
    TIDE_TRY(tide_config_line(reader, node, 200, &name));
    if (!is_inside(name))
        return tide_config_refuse(reader, node,
                                  "\"%.*s\" is not a path below the folder of this file",
                                  shown(name), name.data);
    if (reader->source->file == NULL || ++reader->files > TIDE_ASSISTANT_FILES_MAX)
        return tide_config_refuse(reader, node, "no more files can be read");
    tide_auto_buf content = tide_buf_in(reader->config->mem, TIDE_ASSISTANT_PROMPT_BYTES_MAX);
    tide_error why = {TIDE_OK, 0, ""};
    const tide_status rc = reader->source->file(reader->source->file_arg, name,
                                                TIDE_ASSISTANT_PROMPT_BYTES_MAX, &content, &why);
    if (rc == TIDE_NO_MEMORY)
        return tide_config_no_memory(reader);
    if (rc == TIDE_FULL)
        return tide_config_refuse(reader, node, "%.*s is longer than %d bytes", shown(name),
                                  name.data, TIDE_ASSISTANT_PROMPT_BYTES_MAX);
    if (rc != TIDE_OK)
        return tide_config_refuse(reader, node, "%.*s cannot be read: %s", shown(name), name.data,
                                  why.text);
    if (content.bytes == 0 || !tide_config_is_text(tide_buf_text(&content)))
        return tide_config_refuse(reader, node, "%.*s is %s", shown(name), name.data,
                                  content.bytes == 0 ? "empty" : "not a text in UTF-8");
    char *copy = tide_arena_copy(reader->arena, content.data, content.bytes);
    if (copy == NULL)
        return tide_config_no_memory(reader);
    *text_out = (tide_text){copy, content.bytes};
    return TIDE_OK;
}

tide_status tide_config_prompt(struct tide_config_reader *reader, const struct tide_node *node,
                               tide_text *text_out)
{
    static const char *const known[] = {"file", NULL};
    if (node->kind == TIDE_NODE_VALUE)
        return tide_config_text(reader, node, TIDE_ASSISTANT_PROMPT_BYTES_MAX, text_out);
    TIDE_TRY(tide_config_map(reader, node, known));
    const struct tide_node *file = tide_node_get(node, "file");
    if (file == NULL)
        return tide_config_refuse(reader, node, "expected a text or file: NAME");
    return read_file(reader, file, text_out);
}
