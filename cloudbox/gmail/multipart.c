#include "cloudbox/gmail/multipart.h"

#include <string.h>
#include <strings.h>

enum { BOUNDARY_BYTES_MAX = 200 }; /* RFC 2046 allows 70 */

/* The boundary parameter of a Content-Type. */
static bool boundary_of(tide_text type, tide_text *boundary_out)
{
    tide_text rest = type;
    for (;;) {
        const char *next = rest.bytes == 0 ? NULL : memchr(rest.data, ';', rest.bytes);
        if (next == NULL)
            return false;
        rest = box_trim((tide_text){next + 1, rest.bytes - (size_t)(next + 1 - rest.data)},
                        BOX_SPACES);
        if (rest.bytes > 9 && strncasecmp(rest.data, "boundary=", 9) == 0)
            break;
    }
    tide_text value = {rest.data + 9, rest.bytes - 9};
    const char end = value.data[0] == '"' ? '"' : ';';
    if (end == '"') {
        value.data++;
        value.bytes--;
    }
    const char *stop = value.bytes == 0 ? NULL : memchr(value.data, end, value.bytes);
    if (stop != NULL)
        value.bytes = (size_t)(stop - value.data);
    if (end == ';')
        value = box_trim(value, BOX_SPACES);
    *boundary_out = value;
    return value.bytes > 0 && value.bytes <= BOUNDARY_BYTES_MAX;
}

/* A line "--boundary" or "--boundary--". */
struct delimiter {
    size_t start; /* of the line end before it, which belongs to it */
    size_t end;   /* behind its own line end */
    bool last;
    bool crlf; /* its own line ends in CRLF */
};

/* The first one from `from` on.  `crlf`: the body's lines end so, and a single
 * LF before the dashes would be the message's. */
static bool delimiter_find(tide_text body, size_t from, tide_text boundary, bool crlf,
                           struct delimiter *delimiter_out)
{
    char dashes[BOUNDARY_BYTES_MAX + 3] = "--";
    memcpy(dashes + 2, boundary.data, boundary.bytes);
    const size_t bytes = boundary.bytes + 2;
    const size_t before = from == 0 ? 0 : (crlf ? 2 : 1);
    while (from < body.bytes) {
        const char *found = memmem(body.data + from, body.bytes - from, dashes, bytes);
        if (found == NULL)
            return false;
        const size_t at = (size_t)(found - body.data);
        from = at + 1;
        /* Alone on its line? */
        if (at > 0 && body.data[at - 1] != '\n')
            continue;
        if (at > 0 && before == 2 && (at < 2 || body.data[at - 2] != '\r'))
            continue;
        size_t end = at + bytes;
        const bool last = body.bytes - end >= 2 && memcmp(body.data + end, "--", 2) == 0;
        end += last ? 2 : 0;
        while (end < body.bytes && (body.data[end] == ' ' || body.data[end] == '\t'))
            end++;
        const bool ends_crlf =
            body.bytes - end >= 2 && body.data[end] == '\r' && body.data[end + 1] == '\n';
        const bool ends_lf = end < body.bytes && body.data[end] == '\n';
        if (!ends_crlf && !ends_lf && !(last && end == body.bytes))
            continue;
        *delimiter_out = (struct delimiter){.start = at >= before ? at - before : at,
                                            .end = ends_crlf ? end + 2 : (ends_lf ? end + 1 : end),
                                            .last = last,
                                            .crlf = ends_crlf};
        return true;
    }
    return false;
}

struct part {
    tide_text type;
    tide_text encoding;
    tide_text content;
};

/* Splits a part at its empty line.  false: it has none. */
static bool part_split(tide_text raw, struct part *part_out)
{
    struct part part = {.type = TIDE_TEXT_NONE};
    size_t at = 0;
    for (;;) {
        const char *line_end = at >= raw.bytes ? NULL : memchr(raw.data + at, '\n', raw.bytes - at);
        if (line_end == NULL)
            return false;
        const tide_text line =
            box_trim((tide_text){raw.data + at, (size_t)(line_end - raw.data) - at}, BOX_SPACES);
        at = (size_t)(line_end - raw.data) + 1;
        if (line.bytes == 0)
            break;
        if (line.bytes > 13 && strncasecmp(line.data, "Content-Type:", 13) == 0)
            part.type = box_trim((tide_text){line.data + 13, line.bytes - 13}, BOX_SPACES);
        if (line.bytes > 26 && strncasecmp(line.data, "Content-Transfer-Encoding:", 26) == 0)
            part.encoding = box_trim((tide_text){line.data + 26, line.bytes - 26}, BOX_SPACES);
    }
    part.content = (tide_text){raw.data + at, raw.bytes - at};
    *part_out = part;
    return true;
}

static bool is_base64(tide_text encoding)
{
    return encoding.bytes == 6 && strncasecmp(encoding.data, "base64", 6) == 0;
}

const char *box_related_parse(tide_text content_type, tide_text body, tide_buf *decoded,
                              struct box_related *parts_out)
{
    tide_text boundary;
    if (!boundary_of(content_type, &boundary))
        return "Missing or invalid boundary of a multipart body.";
    struct delimiter first, second, third;
    struct part json, media;
    if (!delimiter_find(body, 0, boundary, false, &first) || first.last ||
        !delimiter_find(body, first.end, boundary, first.crlf, &second) || second.last ||
        !delimiter_find(body, second.end, boundary, first.crlf, &third) || !third.last ||
        second.start < first.end || third.start < second.end ||
        !part_split((tide_text){body.data + first.end, second.start - first.end}, &json) ||
        !part_split((tide_text){body.data + second.end, third.start - second.end}, &media))
        return "A multipart body must have exactly two parts: JSON, then the media.";
    if (json.type.bytes < 16 || strncasecmp(json.type.data, "application/json", 16) != 0)
        return "The first part of a multipart body must be application/json.";
    parts_out->json = json.content;
    parts_out->media_type = media.type;
    parts_out->media = media.content;
    if (is_base64(media.encoding)) {
        if (!box_base64_decode(media.content, decoded))
            return "The media part is not valid base64.";
        parts_out->media = tide_buf_text(decoded);
        if (parts_out->media.data == NULL)
            parts_out->media.data = "";
    }
    return NULL;
}
