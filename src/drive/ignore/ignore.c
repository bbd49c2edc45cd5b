#include "drive/ignore/ignore.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/json.h"
#include "drive/names/key.h"

#include <stdint.h>

enum { PATH_BYTES_MAX = 64 << 10 };

struct pattern {
    tide_text text; /* in `texts`; without '!', without slashes at its ends */
    bool back;      /* '!' */
    bool folders;   /* only */
    bool rooted;
};

struct tide_ignore {
    tide_mem *mem;
    tide_buf texts; /* keys of the patterns */
    struct pattern *patterns;
    size_t count, capacity;
};

/* ---- one part of a path ---- */

static tide_text char_at(tide_text text, size_t at)
{
    const tide_text rest = {text.data + at, text.bytes - at};
    const size_t bytes = tide_utf8_bytes(rest);
    return (tide_text){rest.data, bytes == 0 ? 1 : bytes};
}

/* Compares two characters by their bytes: in UTF-8 that is their order. */
static int char_order(tide_text a, tide_text b)
{
    const size_t bytes = a.bytes < b.bytes ? a.bytes : b.bytes;
    const int order = memcmp(a.data, b.data, bytes);
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

/* "[a-z]"; its length, or 0 when it does not end: then '[' is a letter. */
static size_t set(tide_text pattern, size_t start, tide_text c, bool *fits_out)
{
    size_t at = start + 1;
    const bool negated = at < pattern.bytes && (pattern.data[at] == '!' || pattern.data[at] == '^');
    bool fits = false;
    at += negated;
    for (bool first = true; at < pattern.bytes; first = false) {
        if (pattern.data[at] == ']' && !first) {
            *fits_out = fits != negated;
            return at + 1 - start;
        }
        at += pattern.data[at] == '\\' && at + 1 < pattern.bytes;
        const tide_text low = char_at(pattern, at);
        tide_text high = low;
        at += low.bytes;
        if (at + 1 < pattern.bytes && pattern.data[at] == '-' && pattern.data[at + 1] != ']') {
            at++;
            at += pattern.data[at] == '\\' && at + 1 < pattern.bytes;
            high = char_at(pattern, at);
            at += high.bytes;
        }
        fits = fits || (char_order(low, c) <= 0 && char_order(c, high) <= 0);
    }
    return 0;
}

/* A letter of the pattern at `at`: the length it takes, and whether it fits `c`. */
static size_t letter(tide_text pattern, size_t at, tide_text c, bool *fits_out)
{
    if (pattern.data[at] == '?') {
        *fits_out = true;
        return 1;
    }
    const size_t bytes = pattern.data[at] == '[' ? set(pattern, at, c, fits_out) : 0;
    if (bytes > 0)
        return bytes;
    const size_t skip = pattern.data[at] == '\\' && at + 1 < pattern.bytes;
    const tide_text wanted = char_at(pattern, at + skip);
    *fits_out = tide_text_equal(wanted, c);
    return skip + wanted.bytes;
}

/* One part without '/': the last '*' is tried one letter further each time (IGN1). */
static bool part_fits(tide_text pattern, tide_text name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, star_n = 0;
    while (n < name.bytes) {
        const tide_text c = char_at(name, n);
        bool fits = false;
        if (p < pattern.bytes && pattern.data[p] == '*') {
            star = ++p;
            star_n = n;
            continue;
        }
        const size_t bytes = p < pattern.bytes ? letter(pattern, p, c, &fits) : 0;
        if (fits) {
            p += bytes;
            n += c.bytes;
        } else if (star != SIZE_MAX) {
            p = star;
            star_n += char_at(name, star_n).bytes;
            n = star_n;
        } else {
            return false;
        }
    }
    while (p < pattern.bytes && pattern.data[p] == '*')
        p++;
    return p == pattern.bytes;
}

/* ---- parts of a path ---- */

static tide_text part_at(tide_text path, size_t at)
{
    const char *slash = memchr(path.data + at, '/', path.bytes - at);
    return (tide_text){path.data + at,
                       slash == NULL ? path.bytes - at : (size_t)(slash - path.data) - at};
}

static size_t after(tide_text path, size_t at, tide_text part)
{
    const size_t next = at + part.bytes + 1;
    return next > path.bytes ? path.bytes + 1 : next; /* beyond the end: no part is left */
}

static bool is_any(tide_text part)
{
    return tide_text_equal(part, TIDE_TEXT("**"));
}

/* The same as part_fits(), with parts for letters and '**' for '*'. */
static bool path_fits(tide_text pattern, tide_text path)
{
    size_t p = 0, n = 0, any = SIZE_MAX, any_n = 0;
    while (n <= path.bytes) {
        const tide_text name = part_at(path, n);
        const bool left = p <= pattern.bytes;
        const tide_text part = left ? part_at(pattern, p) : TIDE_TEXT_NONE;
        if (left && is_any(part)) {
            p = after(pattern, p, part);
            if (p > pattern.bytes)
                return true; /* a final one is everything inside */
            any = p;
            any_n = n;
        } else if (left && part_fits(part, name)) {
            p = after(pattern, p, part);
            n = after(path, n, name);
        } else if (any != SIZE_MAX) {
            p = any;
            any_n = after(path, any_n, part_at(path, any_n));
            n = any_n;
        } else {
            return false;
        }
    }
    return p > pattern.bytes;
}

static bool fits(const struct pattern *pattern, tide_text path, bool is_folder)
{
    if (pattern->folders && !is_folder)
        return false;
    if (pattern->rooted)
        return path_fits(pattern->text, path);
    size_t start = path.bytes;
    while (start > 0 && path.data[start - 1] != '/')
        start--;
    return part_fits(pattern->text, (tide_text){path.data + start, path.bytes - start});
}

static bool key_ignored(const tide_ignore *ignore, tide_text key, bool is_folder)
{
    for (size_t i = ignore->count; i > 0; i--)
        if (fits(&ignore->patterns[i - 1], key, is_folder))
            return !ignore->patterns[i - 1].back;
    return false;
}

bool tide_ignored_here(const tide_ignore *ignore, tide_text path, bool is_folder)
{
    tide_auto_buf key = tide_buf_in(ignore->mem, PATH_BYTES_MAX);
    if (ignore->count == 0)
        return false;
    /* A path too long to judge is too long to sync: leaving it out is the safe answer. */
    return tide_drive_key_add(&key, path) != TIDE_OK ||
           key_ignored(ignore, tide_buf_text(&key), is_folder);
}

bool tide_ignored(const tide_ignore *ignore, tide_text path, bool is_folder)
{
    for (size_t i = 0; i < path.bytes; i++)
        if (path.data[i] == '/' && tide_ignored_here(ignore, (tide_text){path.data, i}, true))
            return true;
    return tide_ignored_here(ignore, path, is_folder);
}

/* ---- reading patterns ---- */

static tide_text trimmed(tide_text line)
{
    if (line.bytes > 0 && line.data[line.bytes - 1] == '\r')
        line.bytes--;
    while (line.bytes > 0 && line.data[line.bytes - 1] == ' ' &&
           (line.bytes < 2 || line.data[line.bytes - 2] != '\\'))
        line.bytes--;
    return line;
}

static tide_status add_line(tide_ignore *ignore, tide_text line, uint32_t number, tide_error *err)
{
    struct pattern pattern = {.back = false};
    if (line.bytes == 0 || line.data[0] == '#')
        return TIDE_OK;
    if (!tide_drive_is_utf8(line))
        return tide_error_set(err, TIDE_INVALID, "line %u of the ignore patterns is not UTF-8",
                              number);
    if (line.data[0] == '!') {
        pattern.back = true;
        line = (tide_text){line.data + 1, line.bytes - 1};
    }
    if (line.bytes > 0 && line.data[line.bytes - 1] == '/') {
        pattern.folders = true;
        line.bytes--;
    }
    pattern.rooted = line.bytes > 0 && memchr(line.data, '/', line.bytes) != NULL;
    if (line.bytes > 0 && line.data[0] == '/')
        line = (tide_text){line.data + 1, line.bytes - 1};
    if (line.bytes == 0)
        return tide_error_set(err, TIDE_INVALID,
                              "line %u of the ignore patterns would ignore everything", number);
    if (!TIDE_GROW_IN(ignore->mem, ignore->patterns, ignore->capacity, ignore->count + 1,
                      TIDE_IGNORE_PATTERNS_MAX))
        return tide_error_set(err, TIDE_FULL, "too many ignore patterns, or no memory for them");
    const size_t start = ignore->texts.bytes;
    TIDE_TRY(tide_drive_key_add(&ignore->texts, line));
    pattern.text = (tide_text){(const char *)start, ignore->texts.bytes - start};
    ignore->patterns[ignore->count++] = pattern;
    return TIDE_OK;
}

static tide_status read_all(tide_ignore *ignore, tide_text text, tide_error *err)
{
    uint32_t number = 1;
    for (size_t start = 0; start < text.bytes; number++) {
        const char *end = memchr(text.data + start, '\n', text.bytes - start);
        const size_t bytes = end == NULL ? text.bytes - start : (size_t)(end - text.data) - start;
        const tide_text line = {text.data + start, bytes};
        TIDE_TRY(add_line(ignore, trimmed(line), number, err));
        start += bytes + 1;
    }
    /* The buffer no longer moves: offsets become pointers. */
    for (size_t i = 0; i < ignore->count; i++)
        ignore->patterns[i].text.data =
            ignore->texts.data + (uintptr_t)ignore->patterns[i].text.data;
    return TIDE_OK;
}

tide_status tide_ignore_new(tide_text patterns, tide_mem *mem, tide_ignore **ignore_out,
                            tide_error *err)
{
    if (patterns.bytes > TIDE_IGNORE_TEXT_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "the ignore patterns are longer than 1 MiB");
    tide_ignore *ignore = tide_mem_new(mem, sizeof *ignore);
    if (ignore == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the ignore patterns");
    ignore->mem = mem;
    tide_buf_init(&ignore->texts, mem, 4 * (size_t)TIDE_IGNORE_TEXT_BYTES_MAX);
    const tide_status rc = read_all(ignore, patterns, err);
    if (rc != TIDE_OK) {
        tide_ignore_free(ignore);
        return rc;
    }
    *ignore_out = ignore;
    return TIDE_OK;
}

void tide_ignore_free(tide_ignore *ignore)
{
    if (ignore == NULL)
        return;
    tide_buf_done(&ignore->texts);
    tide_mem_free(ignore->mem, ignore->patterns, ignore->capacity * sizeof *ignore->patterns);
    tide_mem_free(ignore->mem, ignore, sizeof *ignore);
}
