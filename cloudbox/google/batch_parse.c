#include "cloudbox/google/batch_parse.h"

#include "base/check.h"

#include <strings.h>

enum { BOUNDARY_BYTES_MAX = 200 }; /* the standard allows 70 */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* ---- the boundary ---- */

/* One parameter `; name=value` off the front of a header value. */
static bool next_parameter(tide_text *rest, tide_text *name_out, tide_text *value_out)
{
    while (rest->bytes > 0 && (is_blank(rest->data[0]) || rest->data[0] == ';')) {
        rest->data++;
        rest->bytes--;
    }
    const char *equals = rest->bytes == 0 ? NULL : memchr(rest->data, '=', rest->bytes);
    if (equals == NULL)
        return false;
    *name_out = box_trim((tide_text){rest->data, (size_t)(equals - rest->data)}, BOX_BLANKS);
    rest->bytes -= (size_t)(equals + 1 - rest->data);
    rest->data = equals + 1;
    while (rest->bytes > 0 && is_blank(rest->data[0])) {
        rest->data++;
        rest->bytes--;
    }
    const bool quoted = rest->bytes > 0 && rest->data[0] == '"';
    if (quoted) {
        rest->data++;
        rest->bytes--;
    }
    const char *end = rest->bytes == 0 ? NULL : memchr(rest->data, quoted ? '"' : ';', rest->bytes);
    if (end == NULL && quoted)
        return false;
    const size_t bytes = end == NULL ? rest->bytes : (size_t)(end - rest->data);
    *value_out = (tide_text){rest->data, bytes};
    if (!quoted)
        *value_out = box_trim(*value_out, BOX_BLANKS);
    rest->data += bytes + (quoted ? 1 : 0);
    rest->bytes -= bytes + (quoted ? 1 : 0);
    return true;
}

static const char *find_boundary(const struct box_request *outer, tide_text *boundary_out)
{
    tide_text type = box_trim(box_request_header(outer, "Content-Type"), BOX_BLANKS);
    if (!box_starts(type, "multipart/mixed"))
        return "The batch request must have the content type multipart/mixed.";
    type.data += strlen("multipart/mixed");
    type.bytes -= strlen("multipart/mixed");
    if (type.bytes > 0 && !is_blank(type.data[0]) && type.data[0] != ';')
        return "The batch request must have the content type multipart/mixed.";
    tide_text name;
    tide_text value;
    while (next_parameter(&type, &name, &value)) {
        if (!box_is(name, "boundary"))
            continue;
        if (value.bytes == 0 || value.bytes > BOUNDARY_BYTES_MAX)
            return "The boundary of the batch request has an invalid length.";
        *boundary_out = value;
        return NULL;
    }
    return "The content type of the batch request names no boundary.";
}

/* ---- the parts ---- */

/* Whether a line is a delimiter: "--boundary", perhaps "--", perhaps blanks. */
static bool is_delimiter(tide_text line, tide_text boundary, bool *last_out)
{
    if (line.bytes < boundary.bytes + 2 || memcmp(line.data, "--", 2) != 0 ||
        memcmp(line.data + 2, boundary.data, boundary.bytes) != 0)
        return false;
    tide_text behind = {line.data + boundary.bytes + 2, line.bytes - boundary.bytes - 2};
    *last_out = behind.bytes >= 2 && memcmp(behind.data, "--", 2) == 0;
    if (*last_out) {
        behind.data += 2;
        behind.bytes -= 2;
    }
    return box_trim(behind, BOX_BLANKS).bytes == 0;
}

/* The line end before a delimiter belongs to the delimiter. */
static tide_text without_line_end(tide_text text)
{
    if (text.bytes > 0 && text.data[text.bytes - 1] == '\n')
        text.bytes--;
    if (text.bytes > 0 && text.data[text.bytes - 1] == '\r')
        text.bytes--;
    return text;
}

/* Fills up to `max` texts and returns how many there are. */
static size_t split(tide_text body, tide_text boundary, tide_text *texts, size_t max)
{
    size_t count = 0;
    const char *start = NULL; /* of the part being read; NULL in the preamble */
    tide_text rest = body;
    tide_text line;
    bool last = false;
    while (!last && box_line_next(&rest, &line)) {
        if (!is_delimiter(line, boundary, &last))
            continue;
        if (start != NULL) {
            if (count < max)
                texts[count] = without_line_end((tide_text){start, (size_t)(line.data - start)});
            count++;
        }
        start = rest.data;
    }
    /* A body that ends without its last delimiter: what is there counts. */
    if (!last && start != NULL && start < body.data + body.bytes) {
        if (count < max)
            texts[count] = (tide_text){start, (size_t)(body.data + body.bytes - start)};
        count++;
    }
    return count;
}

/* ---- one part ---- */

static bool read_header(tide_text line, struct box_header *header_out)
{
    const char *colon = memchr(line.data, ':', line.bytes);
    if (colon == NULL || colon == line.data)
        return false;
    const size_t at = (size_t)(colon - line.data);
    header_out->name = box_trim((tide_text){line.data, at}, BOX_BLANKS);
    header_out->value = box_trim((tide_text){colon + 1, line.bytes - at - 1}, BOX_BLANKS);
    return header_out->name.bytes > 0;
}

/* Path and query of a target that may name scheme and host as well. */
static tide_text without_host(tide_text target)
{
    size_t scheme = 0;
    if (box_starts(target, "http://"))
        scheme = 7;
    else if (box_starts(target, "https://"))
        scheme = 8;
    if (scheme == 0)
        return target;
    for (size_t i = scheme; i < target.bytes; i++) {
        if (target.data[i] == '/')
            return (tide_text){target.data + i, target.bytes - i};
    }
    return TIDE_TEXT("/");
}

static bool is_below(tide_text target, const char *path)
{
    const size_t bytes = strlen(path);
    return box_starts(target, path) &&
           (target.bytes == bytes || target.data[bytes] == '/' || target.data[bytes] == '?');
}

static const char *read_request_line(tide_text line, struct box_request *request)
{
    const char *space = memchr(line.data, ' ', line.bytes);
    if (space == NULL)
        return "The inner request has no request line.";
    request->verb = box_verb_of((tide_text){line.data, (size_t)(space - line.data)});
    tide_text target =
        box_trim((tide_text){space, line.bytes - (size_t)(space - line.data)}, BOX_BLANKS);
    const char *end = target.bytes == 0 ? NULL : memchr(target.data, ' ', target.bytes);
    if (end != NULL) {
        const tide_text version =
            box_trim((tide_text){end, target.bytes - (size_t)(end - target.data)}, BOX_BLANKS);
        if (!box_starts(version, "HTTP/"))
            return "The inner request line is malformed.";
        target.bytes = (size_t)(end - target.data);
    }
    target = without_host(target);
    if (target.bytes == 0 || target.data[0] != '/')
        return "The inner request must name a path.";
    if (target.bytes > BOX_TARGET_BYTES_MAX)
        return "The target of the inner request is too long.";
    if (is_below(target, "/batch"))
        return "A batch request cannot contain another one.";
    if (is_below(target, "/upload") || is_below(target, "/resumable"))
        return "A batch request cannot contain media uploads.";
    request->target = target;
    return NULL;
}

/* The head of the part itself, ahead of the request in it. */
static const char *read_part_head(tide_text *rest, struct box_part *part)
{
    tide_text line;
    while (box_line_next(rest, &line) && line.bytes > 0) {
        struct box_header header;
        if (!read_header(line, &header))
            return "A header of the part is malformed.";
        if (box_is(header.name, "Content-ID"))
            part->content_id = header.value;
        if (box_is(header.name, "Content-Type") && !box_starts(header.value, "application/http"))
            return "The part must have the content type application/http.";
    }
    return NULL;
}

/* Headers of the inner request, then those of the outer one that it lacks.  What
 * describes the outer body or connection stays outside. */
static const char *read_headers(tide_text *rest, const struct box_request *outer, tide_arena *arena,
                                struct box_request *request)
{
    struct box_header *headers =
        tide_arena_take(arena, (BOX_HEADERS_MAX + outer->headers_count) * sizeof *headers);
    TIDE_ASSERT(headers != NULL);
    size_t count = 0;
    tide_text line;
    while (box_line_next(rest, &line) && line.bytes > 0) {
        if (count == BOX_HEADERS_MAX)
            return "The inner request has too many headers.";
        if (!read_header(line, &headers[count]))
            return "A header of the inner request is malformed.";
        count++;
    }
    const size_t inner = count;
    for (size_t i = 0; i < outer->headers_count; i++) {
        const struct box_header *header = &outer->headers[i];
        bool kept = !box_starts(header->name, "Content-") &&
                    !box_is(header->name, "Transfer-Encoding") && !box_is(header->name, "Expect") &&
                    !box_is(header->name, "Connection");
        for (size_t j = 0; kept && j < inner; j++)
            kept = header->name.bytes != headers[j].name.bytes ||
                   strncasecmp(header->name.data, headers[j].name.data, header->name.bytes) != 0;
        if (kept)
            headers[count++] = *header;
    }
    request->headers = headers;
    request->headers_count = count;
    return NULL;
}

static tide_text query_of(tide_text target)
{
    const char *mark = target.bytes == 0 ? NULL : memchr(target.data, '?', target.bytes);
    if (mark == NULL)
        return TIDE_TEXT_NONE;
    const size_t at = (size_t)(mark - target.data);
    return (tide_text){mark + 1, target.bytes - at - 1};
}

/* Takes the next name=value off a query. */
static bool next_pair(tide_text *rest, tide_text *pair_out, tide_text *name_out)
{
    if (rest->bytes == 0)
        return false;
    const char *end = memchr(rest->data, '&', rest->bytes);
    const size_t bytes = end == NULL ? rest->bytes : (size_t)(end - rest->data);
    *pair_out = (tide_text){rest->data, bytes};
    const char *equals = memchr(rest->data, '=', bytes);
    *name_out = (tide_text){rest->data, equals == NULL ? bytes : (size_t)(equals - rest->data)};
    rest->data += end == NULL ? bytes : bytes + 1;
    rest->bytes -= end == NULL ? bytes : bytes + 1;
    return true;
}

static bool has_name(tide_text query, tide_text wanted)
{
    tide_text pair;
    tide_text name;
    while (next_pair(&query, &pair, &name))
        if (tide_text_equal(name, wanted))
            return true;
    return false;
}

/* Parameters of the outer target count for every part that does not say otherwise. */
static void inherit_query(const struct box_request *outer, tide_arena *arena,
                          struct box_request *request)
{
    tide_text rest = query_of(outer->target);
    if (rest.bytes == 0)
        return;
    const tide_text own = query_of(request->target);
    char *joined = tide_arena_take(arena, request->target.bytes + rest.bytes + 2);
    TIDE_ASSERT(joined != NULL);
    memcpy(joined, request->target.data, request->target.bytes);
    size_t bytes = request->target.bytes;
    bool first = own.data == NULL;
    size_t pairs = 0;
    tide_text pair;
    tide_text name;
    while (pairs++ < BOX_PARAMS_MAX && next_pair(&rest, &pair, &name)) {
        if (pair.bytes == 0 || has_name(own, name))
            continue;
        joined[bytes++] = first ? '?' : '&';
        first = false;
        memcpy(joined + bytes, pair.data, pair.bytes);
        bytes += pair.bytes;
    }
    request->target = (tide_text){joined, bytes};
}

static const char *read_body(tide_text rest, struct box_request *request)
{
    const tide_text length = box_request_header(request, "Content-Length");
    uint64_t bytes = rest.bytes;
    if (length.data != NULL && !tide_text_to_u64(length, &bytes))
        return "The Content-Length of the inner request is no number.";
    if (bytes > rest.bytes)
        return "The inner request is shorter than its Content-Length.";
    request->body = (tide_text){rest.data, (size_t)bytes};
    return NULL;
}

static const char *read_part(tide_text text, const struct box_request *outer, tide_arena *arena,
                             struct box_part *part)
{
    const char *refusal = read_part_head(&text, part);
    if (refusal != NULL)
        return refusal;
    tide_text line = TIDE_TEXT_NONE;
    while (line.bytes == 0) {
        if (!box_line_next(&text, &line))
            return "The part contains no request.";
    }
    refusal = read_request_line(line, &part->request);
    if (refusal == NULL)
        refusal = read_headers(&text, outer, arena, &part->request);
    if (refusal == NULL)
        refusal = read_body(text, &part->request);
    if (refusal == NULL)
        inherit_query(outer, arena, &part->request);
    return refusal;
}

const char *box_batch_parse(const struct box_request *outer, tide_arena *arena,
                            struct box_parts *parts_out)
{
    tide_text boundary;
    const char *wrong = find_boundary(outer, &boundary);
    if (wrong != NULL)
        return wrong;

    tide_text texts[BOX_BATCH_PARTS_MAX];
    struct box_parts parts = {0};
    parts.received = split(outer->body, boundary, texts, BOX_BATCH_PARTS_MAX);
    if (parts.received == 0)
        return "The batch request contains no parts.";
    if (parts.received <= BOX_BATCH_PARTS_MAX) {
        parts.count = parts.received;
        parts.list = tide_arena_take(arena, parts.count * sizeof *parts.list);
        TIDE_ASSERT(parts.list != NULL);
    }
    for (size_t i = 0; i < parts.count; i++) {
        parts.list[i].request.origin = outer->origin;
        parts.list[i].refusal = read_part(texts[i], outer, arena, &parts.list[i]);
    }
    *parts_out = parts;
    return NULL;
}
