#include "mail/mime/check.h"
#include "base/check.h"

enum {
    BOUNDARY_BYTES_MAX = 16 << 10, /* RFC 2046 allows 70 */
    BOUNDARY_ROOM = 1 << 20,       /* for all open ones together */
    JUNK_LINES_MAX = 4,
    VALUE_BYTES_MAX = 16 << 10, /* of Content-Type and Content-Disposition, read several times */
};

/* An open container.  A contained message has no boundary: it ends with its container. */
struct frame {
    uint32_t part;
    uint32_t boundary_at; /* in scan.boundaries */
    uint32_t boundary_bytes;
};

struct scan {
    tide_text raw;
    size_t at; /* always the start of a line */
    struct tide_parts parts;
    uint32_t leaf; /* the part whose body is being skipped, or none */
    size_t frames_count;
    struct frame frames[TIDE_MESSAGE_PARTS_DEEP];
    uint32_t hashes[TIDE_MESSAGE_PARTS_DEEP]; /* parallel to the frames, for fast comparing */
    uint64_t filter;                          /* one bit per hash: most lines need no comparison */
    size_t header_at; /* a header is known to start here, after junk lines */
    tide_buf boundaries;
};

static void problem_set(struct scan *scan, const char *problem)
{
    if (scan->parts.problem == NULL)
        scan->parts.problem = problem;
}

static tide_text rest_of(const struct scan *scan)
{
    return (tide_text){scan->raw.data + scan->at, scan->raw.bytes - scan->at};
}

/* ---- boundaries ---- */

static uint32_t hash_of(const char *text, size_t bytes)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

/* The innermost open multipart with this boundary; -1: none. */
static int frame_with(const struct scan *scan, const char *text, size_t bytes)
{
    if (bytes == 0 || bytes > BOUNDARY_BYTES_MAX)
        return -1;
    uint32_t hash = hash_of(text, bytes);
    if ((scan->filter >> (hash & 63) & 1) == 0)
        return -1;
    for (size_t i = scan->frames_count; i > 0; i--) {
        const struct frame *frame = &scan->frames[i - 1];
        if (scan->hashes[i - 1] == hash && frame->boundary_bytes == bytes &&
            memcmp(scan->boundaries.data + frame->boundary_at, text, bytes) == 0)
            return (int)(i - 1);
    }
    return -1;
}

static size_t trimmed(const char *line, size_t bytes)
{
    while (bytes > 0 && (line[bytes - 1] == ' ' || line[bytes - 1] == '\t' ||
                         line[bytes - 1] == '\r' || line[bytes - 1] == '\n'))
        bytes--;
    return bytes;
}

/* Whether the line at `at` is a boundary of an open multipart. */
static int boundary_at(const struct scan *scan, size_t at, bool *closes_out)
{
    tide_text raw = scan->raw;
    if (at + 2 >= raw.bytes || raw.data[at] != '-' || raw.data[at + 1] != '-')
        return -1;
    size_t left = raw.bytes - at;
    size_t looked = left < BOUNDARY_BYTES_MAX + 64 ? left : BOUNDARY_BYTES_MAX + 64;
    const char *line = raw.data + at + 2;
    const char *end = memchr(line, scan->parts.line_end, looked - 2);
    if (end == NULL && looked < left)
        return -1;
    size_t bytes = end != NULL ? (size_t)(end - line) : looked - 2;
    bytes = trimmed(line, bytes);
    /* A boundary may itself end in dashes, so the whole line is tried first. */
    int frame = frame_with(scan, line, bytes);
    *closes_out = false;
    if (frame < 0 && bytes > 2 && line[bytes - 1] == '-' && line[bytes - 2] == '-') {
        frame = frame_with(scan, line, trimmed(line, bytes - 2));
        *closes_out = frame >= 0;
    }
    return frame;
}

/* Moves to the next boundary at or after the current line; -1: the end. */
static int boundary_next(struct scan *scan, bool *closes_out)
{
    const char *end = scan->raw.data + scan->raw.bytes;
    const char *at = scan->raw.data + scan->at;
    char line_end = scan->parts.line_end;
    while (scan->frames_count > 0 && at < end) {
        if (*at == '-') {
            int frame = boundary_at(scan, (size_t)(at - scan->raw.data), closes_out);
            if (frame >= 0) {
                scan->at = (size_t)(at - scan->raw.data);
                return frame;
            }
        }
        /* Go to the next line that could be a boundary. */
        do {
            at = *at == line_end ? at : memchr(at, line_end, (size_t)(end - at));
            if (at == NULL)
                goto none;
            at++;
        } while (at < end && *at != '-');
    }
none:
    scan->at = scan->raw.bytes;
    return -1;
}

/* Where a body ends whose boundary line is at `at`: the line end before it belongs to the boundary
 * (CHK4). */
static size_t body_end(const struct scan *scan, size_t at)
{
    if (at > 0 && scan->raw.data[at - 1] == scan->parts.line_end)
        at--;
    if (scan->parts.line_end == '\n' && at > 0 && scan->raw.data[at - 1] == '\r')
        at--;
    return at;
}

static void skip_line(struct scan *scan)
{
    tide_text rest = rest_of(scan);
    const char *found =
        rest.bytes == 0 ? NULL : memchr(rest.data, scan->parts.line_end, rest.bytes);
    scan->at = found == NULL ? scan->raw.bytes : (size_t)(found - scan->raw.data) + 1;
}

/* ---- headers of a part ---- */

static tide_encoding encoding_of(tide_text value)
{
    if (value.bytes > 0 && value.data[0] == '"')
        value = (tide_text){value.data + 1, value.bytes - 1};
    if (tide_text_starts_nocase(value, "base64"))
        return TIDE_ENCODING_BASE64;
    if (tide_text_starts_nocase(value, "quoted-printable"))
        return TIDE_ENCODING_QUOTED;
    return TIDE_ENCODING_PLAIN;
}

static tide_text value_cut(struct scan *scan, tide_text value)
{
    if (value.bytes > VALUE_BYTES_MAX) {
        problem_set(scan, "a header longer than the limit");
        value.bytes = VALUE_BYTES_MAX;
    }
    return value;
}

/* If a header occurs twice, the first one counts. */
static void note_header(struct scan *scan, struct tide_part *part,
                        const struct tide_mail_header *header, bool *encoded)
{
    part->headers++;
    if (header->name.bytes < 10 || (header->name.data[0] | 0x20) != 'c')
        return;
    if (part->type.bytes == 0 && tide_text_equal_nocase(header->name, "content-type")) {
        part->type = value_cut(scan, header->value);
    } else if (!*encoded && tide_text_equal_nocase(header->name, "content-transfer-encoding")) {
        part->encoding = encoding_of(header->value);
        *encoded = true;
    } else if (part->disposition.bytes == 0 &&
               tide_text_equal_nocase(header->name, "content-disposition")) {
        part->disposition = value_cut(scan, header->value);
    } else if (part->id.bytes == 0 && tide_text_equal_nocase(header->name, "content-id")) {
        part->id = value_cut(scan, header->value);
    }
}

/* A line among the headers that is not a header: skipped if headers follow soon (or if it is the
 * first line of an mbox), else the body starts here. */
static bool junk_is_skipped(struct scan *scan, const struct tide_part *part, size_t bytes)
{
    tide_text rest = rest_of(scan);
    tide_text line = {rest.data, bytes};
    if (tide_text_starts_nocase(line, "from ") || tide_text_starts_nocase(line, ">from "))
        return true;
    if (part->headers == 0)
        return false;
    if (scan->at < scan->header_at)
        return true;
    for (int i = 0; i < JUNK_LINES_MAX; i++) {
        rest = (tide_text){rest.data + bytes, rest.bytes - bytes};
        const char *end =
            rest.bytes == 0 ? NULL : memchr(rest.data, scan->parts.line_end, rest.bytes);
        size_t next = end == NULL ? rest.bytes : (size_t)(end - rest.data) + 1;
        struct tide_mail_header header;
        size_t lines = 0;
        tide_header_line kind = tide_header_read((tide_text){rest.data, next}, scan->parts.line_end,
                                                 &header, &bytes, &lines);
        if (kind == TIDE_HEADER_LINE_NAMED)
            scan->header_at = (size_t)(rest.data - scan->raw.data);
        if (kind != TIDE_HEADER_LINE_JUNK)
            return kind == TIDE_HEADER_LINE_NAMED;
    }
    return false;
}

/* How many of `bytes`, which are `lines` lines, are within the remaining limits for headers. */
static size_t head_room(struct scan *scan, size_t bytes, size_t lines, size_t bytes_left,
                        size_t lines_left)
{
    size_t room = bytes;
    if (lines > lines_left) {
        problem_set(scan, "more header lines than the limit");
        room = 0;
        for (; lines_left > 0; lines_left--) {
            tide_text rest = {scan->raw.data + scan->at + room, bytes - room};
            const char *end = memchr(rest.data, scan->parts.line_end, rest.bytes);
            room = end == NULL ? bytes : (size_t)(end - scan->raw.data) + 1 - scan->at;
        }
    }
    if (room > bytes_left) {
        problem_set(scan, "headers longer than the limit");
        room = bytes_left;
    }
    return room;
}

/* Beyond the limit: skips to the line that ends the headers, without parsing. */
static bool skip_head(struct scan *scan)
{
    char line_end = scan->parts.line_end;
    while (scan->at < scan->raw.bytes) {
        const char *line = scan->raw.data + scan->at;
        size_t left = scan->raw.bytes - scan->at;
        bool closes = false;
        if (*line == '-' && boundary_at(scan, scan->at, &closes) >= 0)
            return true;
        bool blank = *line == line_end || (*line == '\r' && left > 1 && line[1] == line_end);
        skip_line(scan);
        if (blank)
            return false;
    }
    return false;
}

/* Records the headers of `part` up to the limits; the last one may be truncated.  true: a boundary
 * ended them. */
static bool note_headers(struct scan *scan, struct tide_part *part)
{
    size_t lines_left = TIDE_MESSAGE_HEADER_LINES_MAX;
    bool encoded = false, closes = false;
    while (scan->at < scan->raw.bytes) {
        struct tide_mail_header header;
        size_t bytes = 0, lines = 0;
        if (scan->raw.data[scan->at] == '-' && boundary_at(scan, scan->at, &closes) >= 0)
            return true;
        tide_header_line kind =
            tide_header_read(rest_of(scan), scan->parts.line_end, &header, &bytes, &lines);
        if (kind == TIDE_HEADER_LINE_JUNK && !junk_is_skipped(scan, part, bytes))
            return false;
        if (kind == TIDE_HEADER_LINE_BLANK) {
            scan->at += bytes;
            return false;
        }
        size_t bytes_left =
            TIDE_MESSAGE_HEADER_BYTES_MAX - (size_t)(part->head_end - part->head_begin);
        size_t room = head_room(scan, bytes, lines, bytes_left, lines_left);
        size_t cut = 0;
        if (room < bytes)
            kind = tide_header_read((tide_text){scan->raw.data + scan->at, room},
                                    scan->parts.line_end, &header, &cut, &lines);
        if (kind == TIDE_HEADER_LINE_NAMED)
            note_header(scan, part, &header, &encoded);
        part->head_end = scan->at + room;
        scan->at += bytes;
        if (room < bytes)
            return skip_head(scan);
        lines_left -= lines;
    }
    return false;
}

/* Reads the headers of `part`, up to the start of its body. */
static void read_head(struct scan *scan, struct tide_part *part)
{
    part->head_begin = part->head_end = scan->at;
    bool cut = note_headers(scan, part);
    size_t begin = cut ? body_end(scan, scan->at) : scan->at;
    if (begin < part->head_begin)
        begin = part->head_begin;
    if (part->head_end > begin)
        part->head_end = begin;
    part->begin = part->end = begin;
}

/* ---- parts ---- */

static bool holds_message(const struct tide_part *part)
{
    return part->encoding == TIDE_ENCODING_PLAIN &&
           tide_text_equal_nocase(part->major, "message") &&
           (tide_text_equal_nocase(part->minor, "rfc822") ||
            tide_text_equal_nocase(part->minor, "global") ||
            tide_text_equal_nocase(part->minor, "news"));
}

static void type_set(const struct scan *scan, struct tide_part *part)
{
    if (tide_header_type(part->type, &part->major, &part->minor))
        return;
    bool digest = false;
    if (part->type.bytes == 0 && part->parent != TIDE_PART_NONE) {
        const struct tide_part *parent = &scan->parts.part[part->parent];
        digest = parent->kind == TIDE_PART_MULTI && tide_text_equal_nocase(parent->minor, "digest");
    }
    part->major = digest ? TIDE_TEXT("message") : TIDE_TEXT("text");
    part->minor = digest ? TIDE_TEXT("rfc822") : TIDE_TEXT("plain");
}

/* Pushes a multipart; *opened_out false: it has no usable boundary. */
static tide_status push_multi(struct scan *scan, uint32_t index, bool *opened_out)
{
    const struct tide_part *part = &scan->parts.part[index];
    size_t before = scan->boundaries.bytes;
    bool found = false;
    tide_status rc = tide_header_param_raw(part->type, "boundary", &scan->boundaries, &found);
    if (rc != TIDE_OK && rc != TIDE_FULL)
        return rc;
    size_t bytes = scan->boundaries.bytes - before;
    const char *text = bytes > 0 ? scan->boundaries.data + before : "";
    bytes = trimmed(text, bytes);
    *opened_out = rc == TIDE_OK && found && bytes > 0 && bytes <= BOUNDARY_BYTES_MAX;
    if (!*opened_out) {
        scan->boundaries.bytes = before;
        return TIDE_OK;
    }
    scan->boundaries.bytes = before + bytes;
    scan->hashes[scan->frames_count] = hash_of(text, bytes);
    scan->filter |= (uint64_t)1 << (scan->hashes[scan->frames_count] & 63);
    scan->frames[scan->frames_count++] = (struct frame){index, (uint32_t)before, (uint32_t)bytes};
    return TIDE_OK;
}

static void push_message(struct scan *scan, uint32_t index)
{
    scan->hashes[scan->frames_count] = 0;
    scan->frames[scan->frames_count++] = (struct frame){index, (uint32_t)scan->boundaries.bytes, 0};
}

/* Records the part at the current position and reads its headers.  *held_out: it contains a
 * message, whose headers come next. */
static tide_status open_part(struct scan *scan, uint32_t parent, bool *held_out)
{
    *held_out = false;
    scan->leaf = TIDE_PART_NONE;
    if (scan->parts.count == TIDE_MESSAGE_PARTS_MAX) {
        problem_set(scan, "more parts than the limit");
        return TIDE_OK;
    }
    void *array = scan->parts.part;
    if (!tide_mem_grow(scan->parts.mem, &array, &scan->parts.capacity, scan->parts.count + 1,
                       TIDE_MESSAGE_PARTS_MAX, sizeof(struct tide_part)))
        return TIDE_NO_MEMORY;
    scan->parts.part = array;
    uint32_t index = (uint32_t)scan->parts.count++;
    struct tide_part *part = &scan->parts.part[index];
    *part = (struct tide_part){.parent = parent, .depth = (uint32_t)scan->frames_count};
    part->type = part->disposition = part->id = TIDE_TEXT("");
    if (parent != TIDE_PART_NONE)
        scan->parts.part[parent].children++;
    read_head(scan, part);
    type_set(scan, part);
    scan->leaf = index;
    bool multi = tide_text_equal_nocase(part->major, "multipart");
    bool message = holds_message(part);
    if (!multi && !message)
        return TIDE_OK;
    if (scan->frames_count == TIDE_MESSAGE_PARTS_DEEP) {
        problem_set(scan, "parts nested deeper than the limit");
        part->beyond = true;
        return TIDE_OK;
    }
    bool opened = true;
    tide_status rc = TIDE_OK;
    if (multi)
        rc = push_multi(scan, index, &opened);
    else
        push_message(scan, index);
    if (opened) {
        part->kind = multi ? TIDE_PART_MULTI : TIDE_PART_MESSAGE;
        scan->leaf = TIDE_PART_NONE;
    }
    *held_out = message && rc == TIDE_OK;
    return rc;
}

/* Opens a part, the message in it, the message in that, and so on, as deep as frames go. */
static tide_status open_parts(struct scan *scan, uint32_t parent)
{
    bool held = true;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && held) {
        rc = open_part(scan, parent, &held);
        parent = (uint32_t)scan->parts.count - 1;
    }
    return rc;
}

static void end_part(struct scan *scan, uint32_t index, size_t end)
{
    struct tide_part *part = &scan->parts.part[index];
    /* The line between the headers and an empty body belongs to the boundary; an empty message in
     * that body has no headers at all. */
    if (end < part->head_begin)
        part->head_begin = part->head_end = end;
    if (end < part->begin)
        part->begin = end > part->head_end ? end : part->head_end;
    part->end = end > part->begin ? end : part->begin;
}

/* Ends the current body and every container above `frames_left`. */
static void end_parts(struct scan *scan, size_t frames_left, size_t end)
{
    if (scan->leaf != TIDE_PART_NONE)
        end_part(scan, scan->leaf, end);
    scan->leaf = TIDE_PART_NONE;
    while (scan->frames_count > frames_left) {
        const struct frame *frame = &scan->frames[--scan->frames_count];
        end_part(scan, frame->part, end);
        scan->boundaries.bytes = frame->boundary_at;
    }
    scan->filter = 0;
    for (size_t i = 0; i < scan->frames_count; i++)
        scan->filter |= (uint64_t)1 << (scan->hashes[i] & 63);
}

/* ---- the whole message ---- */

/* Old files of classic Mac OS end lines with \r only. */
static char line_end_of(tide_text raw)
{
    if (raw.bytes == 0 || memchr(raw.data, '\n', raw.bytes) != NULL)
        return '\n';
    return memchr(raw.data, '\r', raw.bytes) != NULL ? '\r' : '\n';
}

static void skip_front(struct scan *scan)
{
    tide_text rest = rest_of(scan);
    if (rest.bytes >= 3 && memcmp(rest.data, "\xef\xbb\xbf", 3) == 0)
        scan->at += 3;
    while (scan->at < scan->raw.bytes &&
           (scan->raw.data[scan->at] == '\n' || scan->raw.data[scan->at] == '\r'))
        scan->at++;
}

static tide_status walk(struct scan *scan)
{
    tide_status rc = open_parts(scan, TIDE_PART_NONE);
    while (rc == TIDE_OK) {
        bool closes = false;
        int found = boundary_next(scan, &closes);
        if (found < 0)
            break;
        size_t frame = (size_t)found;
        uint32_t multi = scan->frames[frame].part;
        end_parts(scan, frame + 1, body_end(scan, scan->at));
        skip_line(scan);
        if (closes)
            end_parts(scan, frame, body_end(scan, scan->at));
        else
            rc = open_parts(scan, multi);
    }
    if (rc == TIDE_OK)
        end_parts(scan, 0, scan->raw.bytes);
    return rc;
}

/* A multipart whose boundary was never found is a plain body; and the rest of the input belongs to
 * the message itself, also what follows its last boundary. */
static void settle(struct scan *scan)
{
    if (scan->parts.count > 0)
        scan->parts.part[0].end = scan->raw.bytes;
    for (size_t i = 0; i < scan->parts.count; i++) {
        struct tide_part *part = &scan->parts.part[i];
        if (part->kind == TIDE_PART_MULTI && part->children == 0)
            part->kind = TIDE_PART_LEAF;
    }
}

tide_status tide_parts_scan(tide_text raw, tide_mem *mem, struct tide_parts *parts_out)
{
    struct scan scan;
    scan.raw = raw.bytes > 0 ? raw : TIDE_TEXT("");
    scan.at = 0;
    scan.leaf = TIDE_PART_NONE;
    scan.frames_count = 0;
    scan.filter = 0;
    scan.header_at = 0;
    scan.parts = (struct tide_parts){.mem = mem, .line_end = line_end_of(raw)};
    tide_buf_init(&scan.boundaries, mem, BOUNDARY_ROOM);
    skip_front(&scan);
    tide_status rc = walk(&scan);
    tide_buf_done(&scan.boundaries);
    if (rc != TIDE_OK) {
        tide_parts_done(&scan.parts);
        return rc;
    }
    settle(&scan);
    *parts_out = scan.parts;
    return TIDE_OK;
}

void tide_parts_done(struct tide_parts *parts)
{
    if (parts->part != NULL)
        tide_mem_free(parts->mem, parts->part, parts->capacity * sizeof(struct tide_part));
    parts->part = NULL;
    parts->count = parts->capacity = 0;
}

bool tide_parts_check(const struct tide_parts *parts, tide_text raw)
{
    if (parts->count > TIDE_MESSAGE_PARTS_MAX)
        return false;
    for (size_t i = 0; i < parts->count; i++) {
        const struct tide_part *part = &parts->part[i];
        if (part->head_begin > part->head_end || part->head_end > part->begin ||
            part->begin > part->end || part->end > raw.bytes)
            return false;
        if (part->depth > TIDE_MESSAGE_PARTS_DEEP)
            return false;
        if (i == 0 ? part->parent != TIDE_PART_NONE : part->parent >= i)
            return false;
        if (i == 0)
            continue;
        const struct tide_part *parent = &parts->part[part->parent];
        if (part->head_begin < parent->begin || part->end > parent->end)
            return false;
        if (part->head_begin < parts->part[i - 1].head_begin)
            return false;
    }
    return true;
}
