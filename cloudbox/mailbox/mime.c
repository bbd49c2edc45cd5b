#include "cloudbox/mailbox/mime.h"
#include "cloudbox/mailbox/mime_tree.h"
#include "cloudbox/gate/http.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/hash.h"
#include "base/rng.h"

#include <gmime/gmime.h>

enum {
    INLINE_BYTES_MAX = 1 << 20,         /* larger texts are fetched on their own */
    VIEW_TEXT_BYTES_MAX = 4 << 20,      /* of one message that a search looks at */
    VIEW_PART_BYTES_MAX = 2 << 20,      /* of one part of it */
    SNIPPET_PART_BYTES_MAX = 256 << 10, /* of the part that a snippet is made of */
    SNIPPET_CHARACTERS_MAX = 200,
    ATTACHMENT_ID_BYTES = 94,
};

void box_mime_start(void)
{
    g_mime_init();
}

/* A string in JSON must be UTF-8; what is not is made so. */
static json_t *json_of(tide_text text)
{
    if (text.bytes == 0)
        return json_string("");
    json_t *string = json_stringn(text.data, text.bytes);
    if (string != NULL)
        return string;
    tide_auto_buf repaired = tide_buf_heap(4 * text.bytes + 16);
    box_add_utf8(&repaired, "utf-8", text);
    string = json_stringn(repaired.data, repaired.bytes);
    TIDE_ASSERT(string != NULL);
    return string;
}

static void set(json_t *object, const char *key, json_t *value)
{
    TIDE_ASSERT(value != NULL);
    TIDE_ASSERT(json_object_set_new(object, key, value) == 0);
}

/* ---- headers ---- */

static bool wanted(tide_text name, const tide_text *only, size_t only_count)
{
    if (only_count == 0)
        return true;
    for (size_t i = 0; i < only_count; i++) {
        if (only[i].bytes == name.bytes && strncasecmp(only[i].data, name.data, name.bytes) == 0)
            return true;
    }
    return false;
}

/* Left out when there is none, as Google leaves out what is empty. */
static void set_headers(json_t *object, tide_text head, const tide_text *only, size_t only_count,
                        size_t *told)
{
    tide_arena arena = tide_arena_heap(BOX_SCRATCH_BYTES_MAX);
    json_t *headers = json_array();
    tide_text name, raw;
    while (*told < BOX_HEADERS_TOLD_MAX && box_head_next(&head, &name, &raw)) {
        if (!wanted(name, only, only_count))
            continue;
        json_t *header = json_object();
        set(header, "name", json_of(name));
        set(header, "value", json_of(box_value_decoded(raw, &arena)));
        TIDE_ASSERT(json_array_append_new(headers, header) == 0);
        tide_arena_reset(&arena);
        (*told)++;
    }
    tide_arena_done(&arena);
    if (json_array_size(headers) > 0)
        set(object, "headers", headers);
    else
        json_decref(headers);
}

json_t *box_mime_metadata(tide_text raw, const tide_text *only, size_t only_count)
{
    /* Only the head is looked at: the type of the message stands there. */
    tide_text head, body;
    if (raw.data == NULL)
        raw.data = "";
    box_head_split(raw, &head, &body);
    struct box_tree tree;
    box_tree_init(&tree, head);
    json_t *payload = json_object();
    size_t told = 0;
    set(payload, "mimeType", json_of(tide_text_of(tree.parts[0].type)));
    set_headers(payload, head, only, only_count, &told);
    box_tree_done(&tree);
    return payload;
}

/* ---- attachments ---- */

/* Opaque, and bound to this message: a hash of its bytes and the part's id. */
static void attachment_id(tide_text raw, tide_text part_id, char out[ATTACHMENT_ID_BYTES + 1])
{
    const tide_text looked_at = {raw.data, raw.bytes < 4096 ? raw.bytes : 4096};
    uint64_t hash = tide_hash(raw.bytes * 0x9e3779b97f4a7c15u, looked_at);
    hash ^= hash >> 29;
    tide_rng rng = tide_rng_seeded(tide_hash(hash, part_id));
    memcpy(out, "ANGjdJ", 6);
    for (size_t i = 6; i < ATTACHMENT_ID_BYTES; i += 8) {
        uint64_t word = tide_rng_next(&rng);
        for (size_t k = 0; k < 8; k++)
            out[i + k] = tide_base64_url[word >> (6 * k) & 63];
    }
    out[ATTACHMENT_ID_BYTES] = '\0';
}

static bool is_leaf(const struct box_part *part)
{
    return part->children == 0 || strcmp(part->type, "message/rfc822") == 0;
}

bool box_mime_attachment(tide_text raw, tide_text wanted_id, tide_buf *out)
{
    if (wanted_id.bytes != ATTACHMENT_ID_BYTES)
        return false;
    struct box_tree tree;
    box_tree_init(&tree, raw);
    bool found = false;
    for (uint32_t i = 0; i < tree.count && !found; i++) {
        char id[ATTACHMENT_ID_BYTES + 1];
        if (!is_leaf(&tree.parts[i]))
            continue;
        attachment_id(raw, box_part_id(&tree, i), id);
        found = memcmp(id, wanted_id.data, ATTACHMENT_ID_BYTES) == 0;
        if (found && box_part_is_text(&tree.parts[i]) && tree.parts[i].filename.bytes == 0)
            box_part_text(&tree.parts[i], SIZE_MAX, out);
        else if (found)
            box_part_decode(&tree.parts[i], SIZE_MAX, out);
    }
    box_tree_done(&tree);
    return found;
}

/* ---- format=full ---- */

static void set_attached(json_t *body, tide_text raw, struct box_tree *tree, uint32_t index,
                         size_t bytes)
{
    char id[ATTACHMENT_ID_BYTES + 1];
    attachment_id(raw, box_part_id(tree, index), id);
    set(body, "attachmentId", json_string(id));
    set(body, "size", json_integer((json_int_t)bytes));
}

static json_t *body_of(tide_text raw, struct box_tree *tree, uint32_t index)
{
    const struct box_part *part = &tree->parts[index];
    json_t *body = json_object();
    if (!is_leaf(part)) {
        set(body, "size", json_integer(0));
        return body;
    }
    if (!box_part_is_text(part) || part->filename.bytes > 0) {
        set_attached(body, raw, tree, index, box_part_decode(part, SIZE_MAX, NULL));
        return body;
    }
    tide_auto_buf text = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    tide_auto_buf encoded = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    box_part_text(part, SIZE_MAX, &text);
    if (text.bytes > INLINE_BYTES_MAX) {
        set_attached(body, raw, tree, index, text.bytes);
    } else {
        set(body, "size", json_integer((json_int_t)text.bytes));
        box_add_base64url(&encoded, tide_buf_text(&text));
        if (encoded.bytes > 0)
            set(body, "data", json_stringn_nocheck(encoded.data, encoded.bytes));
    }
    return body;
}

json_t *box_mime_full(tide_text raw)
{
    struct box_tree tree;
    box_tree_init(&tree, raw);
    json_t **values = tide_mem_array(tide_mem_heap(), tree.count, sizeof(json_t *));
    TIDE_ASSERT(values != NULL);
    size_t told = 0;
    for (uint32_t i = 0; i < tree.count; i++) {
        const struct box_part *part = &tree.parts[i];
        json_t *value = values[i] = json_object();
        set(value, "partId", json_of(box_part_id(&tree, i)));
        set(value, "mimeType", json_of(tide_text_of(box_part_type(part))));
        set(value, "filename", json_of(part->filename));
        set_headers(value, part->head, NULL, 0, &told);
        set(value, "body", body_of(raw, &tree, i));
        if (part->children > 0)
            set(value, "parts", json_array());
        if (i > 0) /* BTRE1: the parent is there, and takes it */
            TIDE_ASSERT(
                json_array_append_new(json_object_get(values[part->parent], "parts"), value) == 0);
    }
    json_t *payload = values[0];
    tide_mem_free(tide_mem_heap(), values, tree.count * sizeof(json_t *));
    box_tree_done(&tree);
    return payload;
}

/* ---- what searching looks at ---- */

static void add_part_text(const struct box_part *part, size_t bytes_max, tide_buf *out)
{
    if (strcmp(part->type, "text/html") != 0) {
        box_part_text(part, bytes_max, out);
        return;
    }
    tide_auto_buf html = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    box_part_text(part, bytes_max, &html);
    box_add_html_text(out, tide_buf_text(&html));
}

void box_mime_view(tide_text raw, tide_arena *arena, struct box_view *view_out)
{
    struct box_view view;
    box_mime_headers(raw, arena, &view);
    struct box_tree tree;
    box_tree_init(&tree, raw);
    tide_auto_buf text = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    tide_auto_buf names = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    for (uint32_t i = 0; i < tree.count; i++) {
        const struct box_part *part = &tree.parts[i];
        if (part->filename.bytes > 0) {
            box_add(&names, part->filename.data, part->filename.bytes);
            box_add(&names, "\n", 1);
        }
        /* Pictures that the text shows are none. */
        if (part->attached || (part->filename.bytes > 0 && !part->inlined))
            view.has_attachment = true;
        if (part->children == 0 && box_part_is_text(part) && part->filename.bytes == 0 &&
            text.bytes < VIEW_TEXT_BYTES_MAX) {
            add_part_text(part, VIEW_PART_BYTES_MAX, &text);
            box_add(&text, "\n", 1);
        }
    }
    view.text = box_arena_text(arena, tide_buf_cstr(&text), text.bytes);
    view.filenames = box_arena_text(arena, tide_buf_cstr(&names), names.bytes);
    box_tree_done(&tree);
    *view_out = view;
}

/* ---- snippets ---- */

static void add_escaped(tide_buf *out, const char *character, size_t bytes)
{
    switch (*character) {
    case '&':
        box_add_cstr(out, "&amp;");
        return;
    case '<':
        box_add_cstr(out, "&lt;");
        return;
    case '>':
        box_add_cstr(out, "&gt;");
        return;
    case '"':
        box_add_cstr(out, "&quot;");
        return;
    case '\'':
        box_add_cstr(out, "&#39;");
        return;
    default:
        box_add(out, character, bytes);
        return;
    }
}

/* `text` is well-formed UTF-8. */
static void add_snippet(tide_buf *out, tide_text text)
{
    size_t written = 0;
    bool gap = false;
    for (size_t at = 0; at < text.bytes && written < SNIPPET_CHARACTERS_MAX;) {
        const char *c = text.data + at;
        unsigned char lead = (unsigned char)*c;
        size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        at += bytes;
        if (lead <= ' ' || lead == 0x7f || (bytes == 2 && memcmp(c, "\xc2\xa0", 2) == 0)) {
            gap = written > 0;
            continue;
        }
        if (gap && written + 1 >= SNIPPET_CHARACTERS_MAX)
            break;
        if (gap) {
            box_add(out, " ", 1);
            written++;
        }
        gap = false;
        add_escaped(out, c, bytes);
        written++;
    }
}

void box_mime_snippet(tide_text raw, tide_buf *out)
{
    struct box_tree tree;
    box_tree_init(&tree, raw);
    for (uint32_t i = 0; i < tree.count; i++) {
        const struct box_part *part = &tree.parts[i];
        if (part->children > 0 || !box_part_is_text(part) || part->filename.bytes > 0 ||
            part->attached)
            continue;
        tide_auto_buf text = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
        add_part_text(part, SNIPPET_PART_BYTES_MAX, &text);
        add_snippet(out, tide_buf_text(&text));
        break;
    }
    box_tree_done(&tree);
}
