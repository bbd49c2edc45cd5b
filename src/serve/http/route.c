/* route.c - which route a path means. */
#include "serve/http/route.h"

#include "base/check.h"

#include <string.h>

/* The segment at *at, which moves behind the slash that ends it.  false: there is none. */
static bool segment_next(tide_text path, size_t *at, tide_text *segment_out)
{
    if (*at > path.bytes)
        return false;
    const char *from = path.data + *at;
    const char *slash = *at == path.bytes ? NULL : memchr(from, '/', path.bytes - *at);
    const size_t bytes = slash == NULL ? path.bytes - *at : (size_t)(slash - from);
    *segment_out = (tide_text){from, bytes};
    *at += bytes + 1;
    return true;
}

static bool is_part(tide_text segment)
{
    return segment.bytes > 2 && segment.data[0] == '{';
}

bool tide_httpd_match(const char *pattern, tide_text path,
                      tide_text parts_out[TIDE_HTTPD_PARTS_MAX])
{
    const tide_text whole = tide_text_of(pattern);
    size_t parts = 0, at = 0, pattern_at = 0;
    tide_text wanted, segment;
    while (segment_next(whole, &pattern_at, &wanted)) {
        if (!segment_next(path, &at, &segment))
            return false;
        if (is_part(wanted)) {
            if (segment.bytes == 0)
                return false;
            TIDE_ASSERT(parts < TIDE_HTTPD_PARTS_MAX);
            parts_out[parts++] = segment;
        } else if (!tide_text_equal(wanted, segment)) {
            return false;
        }
    }
    return !segment_next(path, &at, &segment);
}

size_t tide_httpd_part_at(const char *pattern, const char *name)
{
    const tide_text whole = tide_text_of(pattern);
    const size_t bytes = strlen(name);
    size_t parts = 0, at = 0;
    tide_text segment;
    while (segment_next(whole, &at, &segment)) {
        if (!is_part(segment))
            continue;
        if (segment.bytes == bytes + 2 && memcmp(segment.data + 1, name, bytes) == 0)
            return parts;
        parts++;
    }
    return TIDE_HTTPD_PARTS_MAX;
}
