#include "mail/mime/body.h"
#include "mail/mime/part.h"
#include "mail/mime/transfer.h"
#include "base/check.h"

enum {
    LABEL_BYTES_MAX = 1000, /* a charset's name or a Content-ID in a parameter */
    NONE = -1,
};

/* What is known of a part while the shown ones are chosen. */
struct choice {
    bool html, text; /* it or a part in it could be shown as such */
    bool plain;      /* likewise: as text/plain */
    bool shown;
    int16_t root; /* of a multipart/related, as its parameter names it; NONE */
    int16_t first_html, first_text;
    int16_t last_html, last_text;
    int16_t last_plain; /* with text/plain and without HTML */
};
_Static_assert(TIDE_MESSAGE_PARTS_MAX < INT16_MAX, "a part's number fits");

/* ---- choosing ---- */

/* A message inside a message is an attachment.  One that is the whole message is opened. */
static bool is_open(const struct tide_parts *parts, uint32_t index)
{
    return parts->part[index].kind != TIDE_PART_MESSAGE || index == 0;
}

static void note_child(struct choice *parent, const struct choice *child, int16_t index)
{
    if (child->html) {
        parent->html = true;
        parent->first_html = index;
        parent->last_html = parent->last_html == NONE ? index : parent->last_html;
    }
    if (child->text) {
        parent->text = true;
        parent->first_text = index;
        parent->last_text = parent->last_text == NONE ? index : parent->last_text;
    }
    if (child->plain) {
        parent->plain = true;
        if (!child->html && parent->last_plain == NONE)
            parent->last_plain = index;
    }
}

/* From the last part to the first: a part comes after its parent (check.h CHK2). */
static void look_up(const struct tide_parts *parts, struct choice *choices)
{
    for (size_t i = parts->count; i-- > 0;) {
        const struct tide_part *part = &parts->part[i];
        struct choice *choice = &choices[i];
        if (tide_part_is_text(part) && !tide_part_is_attached(part)) {
            choice->text = true;
            choice->html = tide_part_is_html(part);
            choice->plain = tide_part_is(part, "text", "plain");
        }
        if (part->parent != TIDE_PART_NONE && is_open(parts, part->parent) &&
            !tide_part_is_attached(part))
            note_child(&choices[part->parent], choice, (int16_t)i);
    }
}

/* Which child of a part is shown; NONE: all of them. */
static int16_t child_of(const struct tide_part *part, const struct choice *choice,
                        const struct choice *choices, bool plain)
{
    const bool alternative = tide_part_is(part, "multipart", "alternative");
    if (alternative && plain && choice->last_plain != NONE)
        return choice->last_plain;
    if (alternative)
        return choice->last_html != NONE ? choice->last_html : choice->last_text;
    if (!tide_part_is(part, "multipart", "related"))
        return NONE;
    if (choice->root != NONE && choices[choice->root].text)
        return choice->root;
    /* Without a name the root is the first part; HTML anywhere is more than a stray text. */
    return choice->first_html != NONE ? choice->first_html : choice->first_text;
}

static void show_from_above(const struct tide_parts *parts, struct choice *choices, bool plain)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct tide_part *part = &parts->part[i];
        if (part->parent == TIDE_PART_NONE) {
            choices[i].shown = true;
            continue;
        }
        const struct choice *above = &choices[part->parent];
        const int16_t only = child_of(&parts->part[part->parent], above, choices, plain);
        choices[i].shown = above->shown && is_open(parts, part->parent) &&
                           !tide_part_is_attached(part) && (only == NONE || only == (int16_t)i);
    }
}

static void choices_init(const struct tide_parts *parts, struct choice *choices)
{
    TIDE_ASSERT(parts->count <= TIDE_MESSAGE_PARTS_MAX);
    for (size_t i = 0; i < parts->count; i++)
        choices[i] = (struct choice){.root = NONE,
                                     .first_html = NONE,
                                     .first_text = NONE,
                                     .last_html = NONE,
                                     .last_text = NONE,
                                     .last_plain = NONE};
}

static tide_text id_bare(tide_text id)
{
    id = tide_text_trimmed(id);
    if (id.bytes >= 2 && id.data[0] == '<' && id.data[id.bytes - 1] == '>')
        id = (tide_text){id.data + 1, id.bytes - 2};
    return id;
}

/* The child with this Content-ID; NONE.  At most TIDE_MESSAGE_PARTS_MAX steps. */
static int16_t child_with_id(const struct tide_parts *parts, size_t index, tide_text id)
{
    for (size_t i = index + 1; id.bytes > 0 && i < parts->count; i++) {
        const struct tide_part *part = &parts->part[i];
        if (part->depth <= parts->part[index].depth)
            break; /* behind the container */
        if (part->parent == index && tide_text_equal(id_bare(part->id), id))
            return (int16_t)i;
    }
    return NONE;
}

/* Finds the parts that the parameter `start` of a multipart/related names. */
static tide_status find_roots(const struct tide_parts *parts, struct choice *choices,
                              tide_buf *start)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct tide_part *part = &parts->part[i];
        bool found = false;
        if (part->kind != TIDE_PART_MULTI || !tide_part_is(part, "multipart", "related"))
            continue;
        tide_buf_clear(start);
        if (tide_header_param_raw(part->type, "start", start, &found) == TIDE_NO_MEMORY)
            return TIDE_NO_MEMORY;
        choices[i].root = child_with_id(parts, i, id_bare(tide_buf_text(start)));
    }
    return TIDE_OK;
}

static bool is_piece(const struct tide_parts *parts, const struct choice *choices, size_t i)
{
    return choices[i].shown && tide_part_is_text(&parts->part[i]) &&
           !tide_part_is_attached(&parts->part[i]);
}

static bool shows_html(const struct tide_parts *parts, const struct choice *choices)
{
    for (size_t i = 0; i < parts->count; i++) {
        if (is_piece(parts, choices, i) && tide_part_is_html(&parts->part[i]))
            return true;
    }
    return false;
}

static tide_status choose(const struct tide_parts *parts, struct choice *choices, bool plain,
                          tide_buf *label)
{
    choices_init(parts, choices);
    tide_status rc = find_roots(parts, choices, label);
    if (rc != TIDE_OK)
        return rc;
    look_up(parts, choices);
    show_from_above(parts, choices, plain);
    return TIDE_OK;
}

tide_status tide_body_has_html(const struct tide_parts *parts, tide_mem *mem, bool *html_out)
{
    struct choice choices[TIDE_MESSAGE_PARTS_MAX];
    tide_buf label;
    tide_buf_init(&label, mem, LABEL_BYTES_MAX);
    const tide_status rc = choose(parts, choices, false, &label);
    if (rc == TIDE_OK)
        *html_out = shows_html(parts, choices);
    tide_buf_done(&label);
    return rc;
}

/* ---- reading ---- */

struct work {
    tide_text raw;
    tide_arena *arena;
    bool plain; /* preferred to HTML */
    tide_decoder decoder;
    struct tide_parts parts;
    tide_buf label;
    tide_buf utf8;
    size_t left; /* bytes of text that may still be kept */
    const char *problem;
    struct tide_body_piece *pieces;
    size_t count;
    struct choice choices[TIDE_MESSAGE_PARTS_MAX];
};

static tide_status cut_when_full(struct work *work, tide_status rc)
{
    if (rc != TIDE_FULL)
        return rc;
    work->problem = work->problem == NULL ? "more text than can be shown" : work->problem;
    return TIDE_OK;
}

/* The decoded bytes of a part, borrowed from the raw message if they are not encoded. */
static tide_status part_bytes(struct work *work, const struct tide_part *part, tide_text *bytes_out)
{
    const tide_text encoded = {work->raw.data + part->begin, (size_t)(part->end - part->begin)};
    *bytes_out = encoded;
    if (part->encoding == TIDE_ENCODING_PLAIN)
        return TIDE_OK;
    tide_buf_clear(&work->decoder.bytes);
    const tide_status rc = tide_transfer_add(encoded, part->encoding, &work->decoder.bytes);
    *bytes_out = tide_buf_text(&work->decoder.bytes);
    return cut_when_full(work, rc);
}

/* Converts the part into work->utf8. */
static tide_status part_text(struct work *work, const struct tide_part *part)
{
    bool found = false;
    tide_text bytes = TIDE_TEXT("");
    tide_buf_clear(&work->label);
    tide_status rc = tide_header_param_raw(part->type, "charset", &work->label, &found);
    if (rc == TIDE_NO_MEMORY)
        return rc;
    rc = part_bytes(work, part, &bytes);
    if (rc != TIDE_OK)
        return rc;
    tide_text label = tide_buf_text(&work->label);
    if (tide_part_is_html(part))
        label = tide_part_html_charset(label, bytes);
    tide_buf_clear(&work->utf8);
    work->utf8.bytes_max = work->left;
    rc = tide_charset_add(&work->decoder, label, bytes, TIDE_CLEAN_TEXT, &work->utf8);
    return cut_when_full(work, rc);
}

static tide_status add_piece(struct work *work, const struct tide_part *part)
{
    tide_status rc = part_text(work, part);
    if (rc != TIDE_OK || work->utf8.bytes == 0)
        return rc;
    const char *kept = tide_arena_copy(work->arena, tide_buf_cstr(&work->utf8), work->utf8.bytes);
    if (kept == NULL)
        return TIDE_NO_MEMORY;
    work->left -= work->utf8.bytes;
    work->pieces[work->count++] = (struct tide_body_piece){
        .text = {kept, work->utf8.bytes}, .html = tide_part_is_html(part), .begin = part->begin};
    return TIDE_OK;
}

static tide_status read_body(struct work *work, struct tide_body *body_out)
{
    tide_status rc = tide_parts_scan(work->raw, work->arena->mem, &work->parts);
    if (rc == TIDE_OK)
        rc = choose(&work->parts, work->choices, work->plain, &work->label);
    if (rc != TIDE_OK)
        return rc;
    work->problem = work->parts.problem;
    work->pieces = tide_arena_take(work->arena, work->parts.count * sizeof work->pieces[0]);
    if (work->pieces == NULL)
        return TIDE_NO_MEMORY;
    for (size_t i = 0; rc == TIDE_OK && i < work->parts.count; i++) {
        if (is_piece(&work->parts, work->choices, i))
            rc = add_piece(work, &work->parts.part[i]);
    }
    if (rc == TIDE_OK)
        *body_out = (struct tide_body){.pieces = work->pieces,
                                       .count = work->count,
                                       .html = shows_html(&work->parts, work->choices),
                                       .problem = work->problem};
    return rc;
}

static tide_status read_raw(tide_text raw, bool plain, tide_arena *arena,
                            struct tide_body *body_out)
{
    if (raw.bytes == 0)
        raw = TIDE_TEXT(""); /* its data may be NULL */
    struct work *work = tide_mem_new(arena->mem, sizeof *work);
    if (work == NULL)
        return TIDE_NO_MEMORY;
    work->raw = raw;
    work->arena = arena;
    work->plain = plain;
    work->left = TIDE_BODY_BYTES_MAX;
    tide_decoder_init(&work->decoder, arena->mem);
    /* More than the index reads: a page may contain its images.  One character more than fits, so
     * that a text of the limit's size is whole and a longer one is known to be cut. */
    work->decoder.bytes.bytes_max = TIDE_BODY_BYTES_MAX + 4;
    work->decoder.wide.bytes_max = TIDE_BODY_BYTES_MAX + 64;
    tide_buf_init(&work->label, arena->mem, LABEL_BYTES_MAX);
    tide_buf_init(&work->utf8, arena->mem, TIDE_BODY_BYTES_MAX);
    const tide_status rc = read_body(work, body_out);
    tide_parts_done(&work->parts);
    tide_buf_done(&work->utf8);
    tide_buf_done(&work->label);
    tide_decoder_done(&work->decoder);
    tide_mem_free(arena->mem, work, sizeof *work);
    return rc;
}

tide_status tide_body_read(tide_text raw, tide_arena *arena, struct tide_body *body_out)
{
    return read_raw(raw, false, arena, body_out);
}

tide_status tide_body_read_plain(tide_text raw, tide_arena *arena, struct tide_body *body_out)
{
    return read_raw(raw, true, arena, body_out);
}
