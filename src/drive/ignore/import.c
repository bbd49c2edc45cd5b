#include "drive/ignore/import.h"

#include "drive/ignore/ignore.h"

#include <string.h>

/* Patterns for files come first: those for folders are the last that fit, and so decide (a pattern
 * "!NAME/" must not take a folder back). */
struct import {
    tide_buf files, folders;
    tide_buf *out;
    unsigned line;
    bool strict; /* skip_dir_strict_match */
    tide_status rc;
    tide_error *err;
};

/* ---- texts ---- */

static tide_text trim(tide_text text)
{
    while (text.bytes > 0 && strchr(" \t\r", text.data[0]) != NULL) {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0 && strchr(" \t\r", text.data[text.bytes - 1]) != NULL)
        text.bytes--;
    return text;
}

/* The part before `end`, which is dropped, or all of it. */
static tide_text cut(tide_text *rest, char end)
{
    const char *at = memchr(rest->data, end, rest->bytes);
    const size_t bytes = at == NULL ? rest->bytes : (size_t)(at - rest->data);
    const tide_text part = {rest->data, bytes};
    rest->data += bytes + (at != NULL);
    rest->bytes -= bytes + (at != NULL);
    return part;
}

static bool has(tide_text text, const char *letters)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (strchr(letters, text.data[i]) != NULL)
            return true;
    return false;
}

static bool begins(tide_text text, const char *with)
{
    return text.bytes >= strlen(with) && memcmp(text.data, with, strlen(with)) == 0;
}

static bool ends(tide_text text, const char *with)
{
    const size_t bytes = strlen(with);
    return text.bytes >= bytes && memcmp(text.data + text.bytes - bytes, with, bytes) == 0;
}

/* ---- results ---- */

static void refuse(struct import *import, tide_text what, const char *why)
{
    if (import->rc == TIDE_OK)
        import->rc = tide_error_set(import->err, TIDE_INVALID,
                                    "line %u, \"%.*s\", cannot be taken over: %s", import->line,
                                    (int)(what.bytes > 100 ? 100 : what.bytes), what.data, why);
}

/* Whether the line that begins at `from` was there before. */
static bool is_there(const tide_buf *lines, size_t from)
{
    tide_text rest = {lines->data, from};
    const tide_text line = {lines->data + from, lines->bytes - from - 1};
    while (rest.bytes > 0)
        if (tide_text_equal(cut(&rest, '\n'), line))
            return true;
    return false;
}

/* A line that is there already is not repeated: in the lists that are made here the first one
 * counts as much. */
static void put(struct import *import, tide_buf *to, const char *before, tide_text pattern,
                const char *after)
{
    const size_t from = to->bytes;
    tide_status rc = tide_buf_add(to, before, strlen(before));
    if (rc == TIDE_OK)
        rc = tide_buf_add(to, pattern.data, pattern.bytes);
    if (rc == TIDE_OK)
        rc = tide_buf_add(to, after, strlen(after));
    if (rc == TIDE_OK)
        rc = tide_buf_add(to, "\n", 1);
    if (rc != TIDE_OK && import->rc == TIDE_OK)
        import->rc = tide_error_set(import->err, rc, "the list is too long");
    else if (rc == TIDE_OK && is_there(to, from))
        to->bytes = from;
}

static void put_file(struct import *import, const char *before, tide_text pattern)
{
    char again[8] = "!";
    (void)strncat(again, before, sizeof again - 2);
    put(import, &import->files, before, pattern, "");
    put(import, &import->files, again, pattern, "/");
}

/* ---- abraunegg's config ---- */

/* Its '*' and '?' cross a '/', ours do not: only where no '/' can be meant they are the same. */
static void skip_file(struct import *import, tide_text entry)
{
    if (begins(entry, "./"))
        entry = (tide_text){entry.data + 1, entry.bytes - 1};
    if (has(entry, "[\\"))
        refuse(import, entry, "letters in brackets and backslashes mean something else here");
    else if (!has(entry, "/"))
        put_file(import, "", entry);
    else if (has(entry, "*?"))
        refuse(import, entry, "its * and ? also cover folders beneath; write patterns for them");
    else
        put_file(import, entry.data[0] == '/' ? "" : "/", entry);
}

static void skip_dir(struct import *import, tide_text entry)
{
    if (begins(entry, "./"))
        entry = (tide_text){entry.data + 1, entry.bytes - 1};
    while (ends(entry, "/"))
        entry.bytes--;
    const bool path = has(entry, "/") || import->strict;
    tide_text inner = entry;
    if (begins(inner, "*"))
        inner = (tide_text){inner.data + 1, inner.bytes - 1};
    if (ends(inner, "*"))
        inner.bytes--;
    if (has(entry, "[\\"))
        refuse(import, entry, "letters in brackets and backslashes mean something else here");
    else if (path ? has(entry, "*?") : has(inner, "*?"))
        refuse(import, entry, "its * and ? also cover folders beneath; write patterns for them");
    else if (entry.bytes > 0)
        put(import, &import->folders, path && entry.data[0] != '/' ? "/" : "", entry, "/");
}

static void each_entry(struct import *import, tide_text list,
                       void (*one)(struct import *import, tide_text entry))
{
    while (list.bytes > 0) {
        const tide_text entry = trim(cut(&list, '|'));
        if (entry.bytes > 0)
            one(import, entry);
    }
}

static void config_line(struct import *import, tide_text line)
{
    tide_text rest = line;
    const tide_text name = trim(cut(&rest, '='));
    tide_text value = trim(rest);
    if (value.bytes >= 2 && value.data[0] == '"' && ends(value, "\""))
        value = (tide_text){value.data + 1, value.bytes - 2};
    const bool on = tide_text_equal(value, TIDE_TEXT("true"));
    if (tide_text_equal(name, TIDE_TEXT("skip_file")))
        each_entry(import, value, skip_file);
    else if (tide_text_equal(name, TIDE_TEXT("skip_dir")))
        each_entry(import, value, skip_dir);
    else if (tide_text_equal(name, TIDE_TEXT("skip_dotfiles")) && on)
        put(import, &import->folders, "", TIDE_TEXT(".*"), "");
    else if (tide_text_equal(name, TIDE_TEXT("skip_size")) &&
             !tide_text_equal(value, TIDE_TEXT("0")))
        refuse(import, line, "files cannot be left out by their size");
    else if (tide_text_equal(name, TIDE_TEXT("check_nosync")) && on)
        refuse(import, line, "a file .nosync has no meaning here; name its folder");
}

/* ---- sync_list: all is left out but these ---- */

static bool is_inside(tide_text path, tide_text folder)
{
    return path.bytes > folder.bytes && memcmp(path.data, folder.data, folder.bytes) == 0 &&
           path.data[folder.bytes] == '/';
}

/* Whether the next line of `text` that counts can be had; paths without '/' at their end. */
static bool next_path(tide_text *text, unsigned *line, bool *exclude, tide_text *path)
{
    while (text->bytes > 0) {
        *path = trim(cut(text, '\n'));
        ++*line;
        if (path->bytes == 0 || strchr("#;", path->data[0]) != NULL)
            continue;
        *exclude = strchr("!-", path->data[0]) != NULL;
        if (*exclude)
            *path = trim((tide_text){path->data + 1, path->bytes - 1});
        while (path->bytes > 1 && ends(*path, "/"))
            path->bytes--;
        return true;
    }
    return false;
}

static bool is_covered(tide_text all, tide_text path)
{
    tide_text other;
    unsigned line = 0;
    bool exclude = false;
    while (next_path(&all, &line, &exclude, &other))
        if (!exclude && is_inside(path, other))
            return true;
    return false;
}

/* The folders above a path are taken, and of what is in them nothing but what later patterns name.
 * `depth` counts them; false: there is none at that depth. */
static bool above(struct import *import, tide_text path, unsigned depth)
{
    size_t at = 1;
    for (unsigned i = 0; at < path.bytes; at++)
        if (path.data[at] == '/' && ++i == depth)
            break;
    if (at >= path.bytes)
        return false;
    const tide_text folder = {path.data, at};
    put(import, import->out, "!", folder, "/");
    put(import, import->out, "", folder, "/*");
    return true;
}

static void sync_list(struct import *import, tide_text text)
{
    tide_text rest = text;
    tide_text path;
    bool exclude = false;
    bool any = false;
    while (import->rc == TIDE_OK && next_path(&rest, &import->line, &exclude, &path)) {
        if (path.data[0] != '/' || path.bytes < 2 || has(path, "*?[\\"))
            refuse(import, path,
                   "only whole paths that begin with / can be; others mean any folder");
        any = any || !exclude;
    }
    if (import->rc != TIDE_OK || !any)
        return;
    put(import, import->out, "", TIDE_TEXT("/*"), "");
    bool deeper = true;
    for (unsigned depth = 1; deeper && import->rc == TIDE_OK; depth++) {
        unsigned line = 0;
        deeper = false;
        for (rest = text; next_path(&rest, &line, &exclude, &path);)
            if (!exclude && !is_covered(text, path))
                deeper = above(import, path, depth) || deeper;
    }
    unsigned line = 0;
    for (rest = text; next_path(&rest, &line, &exclude, &path);)
        if (!exclude && !is_covered(text, path))
            put(import, import->out, "!", path, "");
    line = 0;
    for (rest = text; next_path(&rest, &line, &exclude, &path);)
        if (exclude)
            put(import, import->out, "", path, "");
}

/* ---- rclone ---- */

static void rclone_line(struct import *import, tide_text line)
{
    if (begins(line, "- "))
        line = trim((tide_text){line.data + 2, line.bytes - 2});
    else if (begins(line, "+ ") || tide_text_equal(line, TIDE_TEXT("!"))) {
        refuse(import, line, "its order decides in another way; write patterns with ! instead");
        return;
    }
    tide_text body = line;
    if (ends(body, "/**"))
        body.bytes -= 3;
    for (size_t i = 0; i + 1 < body.bytes; i++) /* as a whole part it means the same */
        if (body.data[i] == '*' && body.data[i + 1] == '*' &&
            !((i == 0 || body.data[i - 1] == '/') && i + 2 < body.bytes && body.data[i + 2] == '/'))
            refuse(import, line, "** is understood only as a whole part of a path");
    if (has(line, "{}"))
        refuse(import, line, "alternatives in braces; write a pattern for each");
    if (has(line, "^"))
        refuse(import, line, "[^...] is written [!...] here");
    const bool rooted = line.data[0] == '/';
    tide_text inner = {line.data, line.bytes - ends(line, "/")};
    const char *before = rooted || !has(inner, "/") ? "" : "**/";
    if (ends(line, "/") || ends(line, "/**"))
        put(import, &import->folders, before, line, "");
    else
        put_file(import, before, line);
}

/* ---- all ---- */

tide_status tide_ignore_format_of(const char *name, tide_ignore_format *format_out, tide_error *err)
{
    static const char *const names[] = {"patterns", "onedrive", "sync-list", "rclone"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            *format_out = (tide_ignore_format)i;
            return TIDE_OK;
        }
    return tide_error_set(err, TIDE_INVALID,
                          "\"%.40s\" is no format; there are patterns, onedrive, sync-list and "
                          "rclone",
                          name);
}

static void each_line(struct import *import, tide_text text, tide_ignore_format format)
{
    while (text.bytes > 0 && import->rc == TIDE_OK) {
        const tide_text whole = cut(&text, '\n');
        const tide_text line = trim(whole);
        import->line++;
        if (line.bytes == 0 || line.data[0] == '#' ||
            (line.data[0] == ';' && format != TIDE_IGNORE_PATTERNS))
            continue;
        if (format == TIDE_IGNORE_PATTERNS)
            put(import, import->out, "", line, "");
        else if (format == TIDE_IGNORE_RCLONE)
            rclone_line(import, line);
        else
            config_line(import, line);
    }
}

/* A setting that changes the meaning of others may come after them. */
static bool is_strict(tide_text text)
{
    while (text.bytes > 0) {
        tide_text line = cut(&text, '\n');
        if (tide_text_equal(trim(cut(&line, '=')), TIDE_TEXT("skip_dir_strict_match")))
            return tide_text_equal(trim(line), TIDE_TEXT("\"true\""));
    }
    return false;
}

tide_status tide_ignore_import(tide_text text, tide_ignore_format format, tide_buf *patterns_out,
                               tide_error *err)
{
    struct import import = {.out = patterns_out, .rc = TIDE_OK, .err = err};
    import.files = tide_buf_heap(TIDE_IGNORE_TEXT_BYTES_MAX);
    import.folders = tide_buf_heap(TIDE_IGNORE_TEXT_BYTES_MAX);
    import.strict = format == TIDE_IGNORE_ONEDRIVE_CONFIG && is_strict(text);
    if (format == TIDE_IGNORE_ONEDRIVE_LIST)
        sync_list(&import, text);
    else
        each_line(&import, text, format);
    if (import.rc == TIDE_OK)
        import.rc = tide_buf_add(patterns_out, import.files.data, import.files.bytes);
    if (import.rc == TIDE_OK)
        import.rc = tide_buf_add(patterns_out, import.folders.data, import.folders.bytes);
    tide_buf_done(&import.files);
    tide_buf_done(&import.folders);
    return import.rc;
}
