#include "cloudbox/mailbox/mime_tree.h"
#include "cloudbox/gate/http.h"
#include "base/check.h"

#include <gmime/gmime.h>

enum { TREE_BYTES_MAX = 64 << 20 };

tide_text box_arena_text(tide_arena *arena, const char *data, size_t bytes)
{
    char *copy = tide_arena_copy(arena, data, bytes);
    TIDE_ASSERT(copy != NULL);
    return (tide_text){copy, bytes};
}

const char *box_part_type(const struct box_part *part)
{
    return part->hollow ? "text/plain" : part->type;
}

bool box_part_is_text(const struct box_part *part)
{
    return strncmp(box_part_type(part), "text/", 5) == 0;
}

bool box_part_is_multipart(const struct box_part *part)
{
    return strncmp(part->type, "multipart/", 10) == 0;
}

/* ---- what a part says about itself ---- */

/* "Text/Plain; charset=x" gives "text/plain"; what is no type is left alone. */
static void read_type(struct box_part *part, tide_text value)
{
    char type[BOX_TYPE_BYTES];
    size_t bytes = 0, slashes = 0;
    for (; bytes < value.bytes && bytes < sizeof type - 1; bytes++) {
        char c = value.data[bytes];
        if (c == ';' || c == ' ' || c == '\t')
            break;
        if (c < 0x21 || c == 0x7f || strchr("()<>@,:\\\"[]?=", c) != NULL)
            return;
        slashes += c == '/';
        type[bytes] = (char)(c >= 'A' && c <= 'Z' ? c | 32 : c);
    }
    if (slashes != 1 || type[0] == '/' || type[bytes - 1] == '/')
        return;
    type[bytes] = '\0';
    memcpy(part->type, type, bytes + 1);
}

static void read_content_type(struct box_tree *tree, struct box_part *part, tide_text value)
{
    read_type(part, value);
    GMimeContentType *type = g_mime_content_type_parse(NULL, value.data);
    if (type == NULL)
        return;
    const char *charset = g_mime_content_type_get_parameter(type, "charset");
    const char *boundary = g_mime_content_type_get_parameter(type, "boundary");
    const char *name = g_mime_content_type_get_parameter(type, "name");
    if (charset != NULL && strlen(charset) < sizeof part->charset)
        memcpy(part->charset, charset, strlen(charset) + 1);
    if (boundary != NULL && box_part_is_multipart(part))
        part->boundary = box_arena_text(&tree->arena, boundary, strlen(boundary));
    if (name != NULL && part->filename.bytes == 0)
        part->filename = box_value_decoded(tide_text_of(name), &tree->arena);
    g_object_unref(type);
}

static void read_disposition(struct box_tree *tree, struct box_part *part, tide_text value)
{
    GMimeContentDisposition *disposition = g_mime_content_disposition_parse(NULL, value.data);
    if (disposition == NULL)
        return;
    const char *kind = g_mime_content_disposition_get_disposition(disposition);
    part->attached = kind != NULL && strcasecmp(kind, "attachment") == 0;
    part->inlined = kind != NULL && strcasecmp(kind, "inline") == 0;
    const char *name = g_mime_content_disposition_get_parameter(disposition, "filename");
    if (name != NULL && *name != '\0')
        part->filename = box_value_decoded(tide_text_of(name), &tree->arena);
    g_object_unref(disposition);
}

static box_transfer transfer_of(tide_text value)
{
    static const struct {
        const char *name;
        box_transfer transfer;
    } known[] = {
        {"base64", BOX_TRANSFER_BASE64}, {"quoted-printable", BOX_TRANSFER_QUOTED},
        {"x-uuencode", BOX_TRANSFER_UU}, {"uuencode", BOX_TRANSFER_UU},
        {"x-uue", BOX_TRANSFER_UU},
    };
    size_t bytes = 0;
    while (bytes < value.bytes && strchr(" \t;(", value.data[bytes]) == NULL)
        bytes++;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (box_is((tide_text){value.data, bytes}, known[i].name))
            return known[i].transfer;
    }
    return BOX_TRANSFER_PLAIN;
}

/* The first of each counts, as everywhere. */
static void read_head(struct box_tree *tree, struct box_part *part)
{
    tide_text rest = part->head, name, raw;
    bool seen_type = false, seen_transfer = false, seen_disposition = false;
    while (box_head_next(&rest, &name, &raw)) {
        if (name.bytes < 12 || (name.data[0] | 32) != 'c')
            continue;
        if (raw.bytes > BOX_PARAM_BYTES_MAX)
            raw.bytes = BOX_PARAM_BYTES_MAX;
        if (!seen_type && box_is(name, "Content-Type")) {
            seen_type = true;
            read_content_type(tree, part, box_value_plain(raw, &tree->arena));
        } else if (!seen_transfer && box_is(name, "Content-Transfer-Encoding")) {
            seen_transfer = true;
            part->transfer = transfer_of(box_value_plain(raw, &tree->arena));
        } else if (!seen_disposition && box_is(name, "Content-Disposition")) {
            seen_disposition = true;
            read_disposition(tree, part, box_value_plain(raw, &tree->arena));
        }
    }
}

/* ---- the pass over the lines ---- */

struct level {
    uint32_t part; /* a multipart that is being read */
    tide_text boundary;
};

struct pass {
    struct box_tree *tree;
    tide_text raw;
    struct level levels[BOX_PARTS_DEEP];
    uint32_t levels_count;
    uint32_t current; /* the innermost part that is being read */
    bool full;        /* BOX_PARTS_MAX is reached */
};

/* Which open multipart the line at `at` is a delimiter of; -1: none. */
static int delimiter_at(const struct pass *pass, size_t at, size_t *next_out, bool *close_out)
{
    const char *line = pass->raw.data + at;
    size_t left = pass->raw.bytes - at;
    if (left < 3 || line[0] != '-' || line[1] != '-')
        return -1;
    const char *end = memchr(line, '\n', left);
    size_t bytes = end == NULL ? left : (size_t)(end - line);
    *next_out = at + (end == NULL ? left : bytes + 1);
    while (bytes > 2 && strchr(" \t\r", line[bytes - 1]) != NULL)
        bytes--;
    for (uint32_t i = pass->levels_count; i-- > 0;) {
        const tide_text boundary = pass->levels[i].boundary;
        if (bytes < boundary.bytes + 2 || bytes > boundary.bytes + 4 ||
            memcmp(line + 2, boundary.data, boundary.bytes) != 0)
            continue;
        *close_out =
            bytes == boundary.bytes + 4 && line[bytes - 2] == '-' && line[bytes - 1] == '-';
        if (*close_out || bytes == boundary.bytes + 2)
            return (int)i;
    }
    return -1;
}

/* The next delimiter at or behind `at`, which is the start of a line. */
static int find_delimiter(const struct pass *pass, size_t at, size_t *line_out, size_t *next_out,
                          bool *close_out)
{
    while (pass->levels_count > 0 && at < pass->raw.bytes) {
        int level = delimiter_at(pass, at, next_out, close_out);
        if (level >= 0) {
            *line_out = at;
            return level;
        }
        const char *found = memmem(pass->raw.data + at, pass->raw.bytes - at, "\n--", 3);
        if (found == NULL)
            break;
        at = (size_t)(found - pass->raw.data) + 1;
    }
    *line_out = pass->raw.bytes;
    return -1;
}

/* Ends the bodies of all parts that are open below `above`. */
static void end_bodies(struct pass *pass, uint32_t above, bool all, size_t end)
{
    uint32_t at = pass->current;
    while (all || at != above) {
        struct box_part *part = &pass->tree->parts[at];
        size_t start = (size_t)(part->body.data - pass->raw.data);
        part->body.bytes = end > start ? end - start : 0;
        if (at == 0)
            break;
        at = part->parent;
    }
    pass->current = above;
}

/* Header lines end at an empty line or at a delimiter of a part around. */
static size_t end_of_head(const struct pass *pass, size_t at, size_t *body_out)
{
    size_t next;
    bool close;
    while (at < pass->raw.bytes) {
        const char *line = pass->raw.data + at;
        if (*line == '\n' || (*line == '\r' && at + 1 < pass->raw.bytes && line[1] == '\n')) {
            *body_out = at + (*line == '\n' ? 1 : 2);
            return at;
        }
        if (*line == '-' && delimiter_at(pass, at, &next, &close) >= 0)
            break;
        const char *end = memchr(line, '\n', pass->raw.bytes - at);
        at = end == NULL ? pass->raw.bytes : (size_t)(end - pass->raw.data) + 1;
    }
    *body_out = at;
    return at;
}

static uint32_t add_part(struct pass *pass, uint32_t parent)
{
    struct box_tree *tree = pass->tree;
    TIDE_ASSERT(tree->count < BOX_PARTS_MAX);
    TIDE_ASSERT(TIDE_GROW(tree->parts, tree->capacity, tree->count + 1, BOX_PARTS_MAX));
    struct box_part *part = &tree->parts[tree->count];
    memset(part, 0, sizeof *part);
    if (tree->count > 0) {
        part->parent = parent;
        part->depth = tree->parts[parent].depth + 1;
        part->place = tree->parts[parent].children++;
    }
    return tree->count++;
}

/* Starts the part at `at` and, when it is a message, the one inside, and so on.
 * Returns where the body of the innermost begins. */
static size_t start_part(struct pass *pass, uint32_t parent, size_t at)
{
    struct box_tree *tree = pass->tree;
    for (bool root = tree->count == 0;; root = false) {
        bool digest = !root && strcmp(tree->parts[parent].type, "multipart/digest") == 0;
        uint32_t index = add_part(pass, parent);
        struct box_part *part = &tree->parts[index];
        pass->current = index;
        memcpy(part->type, "text/plain", sizeof "text/plain");
        if (digest)
            memcpy(part->type, "message/rfc822", sizeof "message/rfc822");
        if (tree->count == BOX_PARTS_MAX) { /* BMIM2: all the rest is this one */
            memcpy(part->type, "application/octet-stream", sizeof "application/octet-stream");
            part->body.data = pass->raw.data + at;
            pass->full = true;
            return at;
        }
        size_t body, end = end_of_head(pass, at, &body);
        part->head = (tide_text){pass->raw.data + at, end - at};
        part->body.data = pass->raw.data + body;
        read_head(tree, part);
        at = body;
        if (part->depth + 1 >= BOX_PARTS_DEEP)
            return at;
        if (box_part_is_multipart(part) && part->boundary.bytes > 0) {
            pass->levels[pass->levels_count++] = (struct level){index, part->boundary};
            return at;
        }
        if (strcmp(part->type, "message/rfc822") != 0 || part->transfer != BOX_TRANSFER_PLAIN)
            return at;
        parent = index;
    }
}

void box_tree_init(struct box_tree *tree, tide_text raw)
{
    memset(tree, 0, sizeof *tree);
    tide_arena_init(&tree->arena, tide_mem_heap(), TREE_BYTES_MAX);
    struct pass pass = {.tree = tree, .raw = raw};
    if (raw.data == NULL)
        pass.raw.data = "";
    size_t at = start_part(&pass, 0, 0);
    while (!pass.full) {
        size_t line, next;
        bool close;
        int level = find_delimiter(&pass, at, &line, &next, &close);
        if (level < 0)
            break;
        /* The line end before a delimiter belongs to it. */
        size_t end = line;
        if (end > at && raw.data[end - 1] == '\n')
            end--;
        if (end > at && raw.data[end - 1] == '\r')
            end--;
        uint32_t multipart = pass.levels[level].part;
        end_bodies(&pass, multipart, false, end);
        pass.levels_count = (uint32_t)level + (close ? 0 : 1);
        at = close ? next : start_part(&pass, multipart, next);
    }
    end_bodies(&pass, 0, true, raw.bytes);
    for (uint32_t i = 0; i < tree->count; i++) {
        /* A multipart without parts says nothing; its body is what there is. */
        struct box_part *part = &tree->parts[i];
        part->hollow =
            box_part_is_multipart(part) && part->children == 0 && part->depth + 1 < BOX_PARTS_DEEP;
    }
}

void box_tree_done(struct box_tree *tree)
{
    tide_mem_free(tide_mem_heap(), tree->parts, tree->capacity * sizeof *tree->parts);
    tide_arena_done(&tree->arena);
}

tide_text box_part_id(struct box_tree *tree, uint32_t index)
{
    char text[BOX_PARTS_DEEP * 5];
    size_t at = sizeof text;
    for (uint32_t i = index; i != 0; i = tree->parts[i].parent) {
        uint32_t place = tree->parts[i].place;
        if (at < sizeof text)
            text[--at] = '.';
        do {
            TIDE_ASSERT(at > 0);
            text[--at] = (char)('0' + place % 10);
            place /= 10;
        } while (place > 0);
    }
    return box_arena_text(&tree->arena, text + at, sizeof text - at);
}

/* ---- transfer encodings ---- */

/* The value plus one; 0: not of the alphabet; 65: '=', which ends a group. */
static const signed char base64_values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
    ['='] = 65,
};

/* Whatever is not of the alphabet is skipped; '=' ends a group, and another one
 * may follow, as in files that were encoded in pieces. */
static size_t decode_base64(tide_text text, char *out)
{
    const unsigned char *u = (const unsigned char *)text.data;
    size_t written = 0;
    uint32_t bits = 0, held = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        uint32_t value = (uint32_t)base64_values[u[i]];
        if (value == 0)
            continue;
        if (value == 65) {
            bits = 0;
            held = 0;
            continue;
        }
        bits = bits << 6 | (value - 1);
        held += 6;
        if (held >= 8) {
            held -= 8;
            if (out != NULL)
                out[written] = (char)(bits >> held);
            written++;
        }
    }
    return written;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t decode_quoted(tide_text text, char *out)
{
    size_t written = 0;
    for (size_t i = 0; i < text.bytes;) {
        const char *p = text.data + i;
        size_t left = text.bytes - i;
        char c = *p;
        size_t used = 1;
        if (c == '=' && left >= 3 && hex_value(p[1]) >= 0 && hex_value(p[2]) >= 0) {
            c = (char)(hex_value(p[1]) << 4 | hex_value(p[2]));
            used = 3;
        } else if (c == '=') {
            /* A soft line break, perhaps with spaces behind. */
            size_t skip = 1;
            while (skip < left && (p[skip] == ' ' || p[skip] == '\t'))
                skip++;
            if (skip < left && p[skip] == '\r')
                skip++;
            if (skip == left || p[skip] == '\n') {
                i += skip + (skip < left ? 1 : 0);
                continue;
            }
        }
        if (out != NULL)
            out[written] = c;
        written++;
        i += used;
    }
    return written;
}

/* GMime decodes the lines behind "begin 644 name". */
static size_t decode_uu(tide_text text, char *out, size_t room)
{
    while (text.bytes > 0) {
        const char *end = memchr(text.data, '\n', text.bytes);
        size_t line = end == NULL ? text.bytes : (size_t)(end - text.data) + 1;
        bool begin = line > 6 && memcmp(text.data, "begin ", 6) == 0;
        text.data += line;
        text.bytes -= line;
        if (begin)
            break;
    }
    GMimeEncoding coder;
    g_mime_encoding_init_decode(&coder, GMIME_CONTENT_ENCODING_UUENCODE);
    TIDE_ASSERT(g_mime_encoding_outlen(&coder, text.bytes) <= room);
    return g_mime_encoding_flush(&coder, text.data, text.bytes, out);
}

size_t box_part_decode(const struct box_part *part, size_t bytes_max, tide_buf *out)
{
    tide_text body = part->body;
    if (body.bytes > bytes_max)
        body.bytes = bytes_max;
    tide_auto_buf scratch = tide_buf_heap(BOX_BODY_BYTES_MAX + 1024);
    if (part->transfer == BOX_TRANSFER_UU && out == NULL)
        out = &scratch; /* too rare to be counted in another way */
    char *room = NULL;
    if (out != NULL) {
        room = tide_buf_reserve(out, body.bytes + 512);
        TIDE_ASSERT(room != NULL);
    }
    size_t bytes = body.bytes;
    switch (part->transfer) {
    case BOX_TRANSFER_BASE64:
        bytes = decode_base64(body, room);
        break;
    case BOX_TRANSFER_QUOTED:
        bytes = decode_quoted(body, room);
        break;
    case BOX_TRANSFER_UU:
        bytes = decode_uu(body, room, body.bytes + 512);
        break;
    default:
        if (room != NULL && bytes > 0)
            memcpy(room, body.data, bytes);
        break;
    }
    if (out != NULL) {
        out->bytes += bytes;
        out->data[out->bytes] = '\0';
    }
    return bytes;
}
