#include "mcp/clean.h"

#include "base/check.h"

enum { DEEP_MAX = 32 };

static uint32_t code_of(const unsigned char *bytes, size_t count)
{
    switch (count) {
    case 1:
        return bytes[0];
    case 2:
        return (uint32_t)(bytes[0] & 0x1f) << 6 | (bytes[1] & 0x3f);
    case 3:
        return (uint32_t)(bytes[0] & 0x0f) << 12 | (uint32_t)(bytes[1] & 0x3f) << 6 |
               (bytes[2] & 0x3f);
    default:
        return (uint32_t)(bytes[0] & 0x07) << 18 | (uint32_t)(bytes[1] & 0x3f) << 12 |
               (uint32_t)(bytes[2] & 0x3f) << 6 | (bytes[3] & 0x3f);
    }
}

static bool is_between(uint32_t code, uint32_t first, uint32_t last)
{
    return code >= first && code <= last;
}

/* Whether a character acts or is invisible. */
static bool is_removed(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || /* C0 */
           is_between(code, 0x7f, 0x9f) ||                  /* DEL, C1 */
           code == 0xad ||                                  /* soft hyphen */
           code == 0x61c || code == 0x180e ||               /* Arabic and Mongolian marks */
           code == 0x200b || is_between(code, 0x200e, 0x200f) ||
           is_between(code, 0x2028, 0x202e) || /* separators, direction */
           is_between(code, 0x2060, 0x206f) || /* invisible operators, isolates */
           code == 0xfeff ||                   /* byte order mark */
           is_between(code, 0xfff9, 0xfffb) || /* annotations */
           is_between(code, 0xe0000, 0xe0fff); /* tags, variation selectors */
}

tide_status tide_clean_text(tide_text text, tide_buf *out)
{
    tide_status rc = TIDE_OK;
    while (text.bytes > 0 && rc == TIDE_OK) {
        const size_t count = tide_utf8_bytes(text);
        const size_t step = count == 0 ? 1 : count;
        if (count == 0)
            rc = tide_buf_add(out, "\xef\xbf\xbd", 3);
        else if (!is_removed(code_of((const unsigned char *)text.data, count)))
            rc = tide_buf_add(out, text.data, count);
        text.data += step;
        text.bytes -= step;
    }
    return rc;
}

static tide_status string_clean(json_t *value)
{
    const tide_text text = {json_string_value(value), json_string_length(value)};
    tide_auto_buf clean = tide_buf_heap(text.bytes + 1);
    tide_status rc = tide_clean_text(text, &clean);
    if (rc == TIDE_OK && clean.bytes != text.bytes &&
        json_string_setn(value, tide_buf_cstr(&clean), clean.bytes) != 0)
        rc = TIDE_NO_MEMORY;
    return rc;
}

static tide_status clean_at(json_t *value, int deep)
{
    const char *key;
    json_t *child;
    size_t index;
    tide_status rc = TIDE_OK;
    TIDE_ASSERT(deep < DEEP_MAX);
    if (json_is_string(value))
        return string_clean(value);
    if (json_is_array(value)) {
        json_array_foreach(value, index, child)
        {
            rc = rc == TIDE_OK ? clean_at(child, deep + 1) : rc;
        }
    } else if (json_is_object(value)) {
        json_object_foreach(value, key, child)
        {
            rc = rc == TIDE_OK ? clean_at(child, deep + 1) : rc;
        }
    }
    return rc;
}

tide_status tide_clean_json(json_t *value)
{
    return clean_at(value, 0);
}
