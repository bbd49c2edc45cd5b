/* wash.c - the open elements: which tag opens, closes or is ignored.
 *
 * Not the tree of a browser, but enough of its rules that ordinary mail keeps its layout: missing
 * end tags of paragraphs, list items and parts of tables; end tags that do not leave their cell.
 * Every step is O(1) or pays for an element that was opened, so the whole is linear. */
#include "mail/wash/inside.h"
#include "base/check.h"

/* "</blockquote>" for each open element: kept free, so that a full buffer can be closed. */
enum { CLOSING_ROOM = TIDE_WASH_DEPTH_MAX * 13 };

/* ---- the stack ---- */

static const char *shown_name(tide_wash_element element)
{
    return element == WASH_BODY ? "div" : tide_wash_element_name(element);
}

/* End tags and implied ends reach down to here, not further. */
static int barrier_of(const struct tide_wash *wash)
{
    return wash->depth == 0 ? -1 : wash->stack[wash->depth - 1].barrier;
}

static int block_of(const struct tide_wash *wash)
{
    return wash->depth == 0 ? -1 : wash->stack[wash->depth - 1].block;
}

static void push(struct tide_wash *wash, tide_wash_element element)
{
    TIDE_ASSERT(wash->depth < TIDE_WASH_DEPTH_MAX);
    unsigned flags = tide_wash_element_flags(element);
    struct tide_wash_open open = {
        .same = wash->last[element],
        .barrier = (int16_t)((flags & WASH_BARRIER) != 0 ? wash->depth : barrier_of(wash)),
        .block = (int16_t)((flags & WASH_BLOCK) != 0 ? wash->depth : block_of(wash)),
        .element = (uint8_t)element,
    };
    wash->last[element] = (int16_t)wash->depth;
    wash->stack[wash->depth++] = open;
}

/* Closes elements until `depth` are open. */
static void pop_to(struct tide_wash *wash, int depth)
{
    while (wash->depth > depth) {
        const struct tide_wash_open *open = &wash->stack[wash->depth - 1];
        char tag[16] = "</";
        size_t bytes = strlen(shown_name(open->element));
        memcpy(tag + 2, shown_name(open->element), bytes);
        tag[2 + bytes] = '>';
        tide_wash_put(&wash->out, tag, bytes + 3);
        if (wash->out.rc != TIDE_OK)
            return;
        wash->out.work++;
        wash->last[open->element] = open->same;
        wash->depth--;
    }
}

/* ---- start tags ---- */

/* Closes the lowest open element of `kinds` above `limit`, and with it all above it.  There is at
 * most one of each kind there, because each closes the one before. */
static void close_kinds(struct tide_wash *wash, int limit, const tide_wash_element *kinds,
                        size_t count)
{
    int lowest = wash->depth;
    for (size_t i = 0; i < count; i++) {
        int at = wash->last[kinds[i]];
        if (at > limit && at < lowest)
            lowest = at;
    }
    pop_to(wash, lowest);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Ends that the start of `element` implies. */
static void close_implied(struct tide_wash *wash, tide_wash_element element)
{
    static const tide_wash_element cells[] = {WASH_TD, WASH_TH, WASH_CAPTION, WASH_COLGROUP};
    static const tide_wash_element rows[] = {WASH_TD, WASH_TH, WASH_CAPTION, WASH_COLGROUP,
                                             WASH_TR};
    static const tide_wash_element sections[] = {WASH_TD, WASH_TH,    WASH_CAPTION, WASH_COLGROUP,
                                                 WASH_TR, WASH_TBODY, WASH_THEAD,   WASH_TFOOT};
    static const tide_wash_element item[] = {WASH_LI};
    static const tide_wash_element terms[] = {WASH_DT, WASH_DD};
    static const tide_wash_element paragraph[] = {WASH_P};
    static const tide_wash_element link[] = {WASH_A};
    int table = wash->last[WASH_TABLE], barrier = barrier_of(wash);
    switch (element) {
    case WASH_TD:
    case WASH_TH:
        close_kinds(wash, table, cells, 4);
        return;
    case WASH_TR:
        close_kinds(wash, table, rows, 5);
        return;
    case WASH_TBODY:
    case WASH_THEAD:
    case WASH_TFOOT:
    case WASH_CAPTION:
    case WASH_COLGROUP:
        close_kinds(wash, table, sections, 8);
        return;
    case WASH_LI:
        close_kinds(wash, larger(barrier, larger(wash->last[WASH_UL], wash->last[WASH_OL])), item,
                    1);
        break;
    case WASH_DT:
    case WASH_DD:
        close_kinds(wash, larger(barrier, wash->last[WASH_DL]), terms, 2);
        break;
    case WASH_A:
        close_kinds(wash, block_of(wash), link, 1);
        break;
    default:
        break;
    }
    if ((tide_wash_element_flags(element) & WASH_BLOCK) != 0)
        close_kinds(wash, barrier, paragraph, 1);
}

/* <style>: written only if something is left of it. */
static void wash_style(struct tide_wash *wash)
{
    struct tide_wash_out *out = &wash->out;
    size_t before = out->buf->bytes;
    tide_wash_put_cstr(out, "<style");
    tide_wash_attributes(wash, WASH_STYLE);
    tide_wash_put(out, ">", 1);
    size_t empty = out->buf->bytes;
    if (tide_html_tag_end(&wash->reader)) {
        tide_text css = tide_html_raw(&wash->reader, "style");
        out->work += css.bytes;
        tide_wash_sheet(out, css);
    }
    if (out->rc == TIDE_OK && out->buf->bytes > empty)
        tide_wash_put_cstr(out, "</style>");
    if (out->rc != TIDE_OK || out->buf->bytes == empty)
        tide_wash_back(out, before);
}

/* Writes the tag; false: it was not, because the html or the room ends in it. */
static bool write_start(struct tide_wash *wash, tide_wash_element element)
{
    struct tide_wash_out *out = &wash->out;
    size_t before = out->buf->bytes;
    tide_wash_put(out, "<", 1);
    tide_wash_put_cstr(out, shown_name(element));
    tide_wash_attributes(wash, element);
    tide_wash_put(out, ">", 1);
    if (tide_html_tag_end(&wash->reader) && out->rc == TIDE_OK)
        return true;
    tide_wash_back(out, before);
    return false;
}

static void start(struct tide_wash *wash, tide_wash_element element)
{
    unsigned flags = tide_wash_element_flags(element);
    if (element == WASH_STYLE) {
        wash_style(wash);
    } else if ((flags & WASH_DROPPED) != 0) {
        if (tide_html_tag_end(&wash->reader))
            wash->out.work += tide_html_raw(&wash->reader, tide_wash_element_name(element)).bytes;
    } else if ((flags & WASH_PART) == 0 || wash->last[WASH_TABLE] >= 0) {
        close_implied(wash, element);
        if ((flags & WASH_VOID) == 0 && wash->depth == TIDE_WASH_DEPTH_MAX)
            wash->ignore[element]++;
        else if (write_start(wash, element) && (flags & WASH_VOID) == 0)
            push(wash, element);
    }
}

/* ---- end tags ---- */

static void end(struct tide_wash *wash, tide_wash_element element)
{
    unsigned flags = tide_wash_element_flags(element);
    int at = wash->last[element];
    if (wash->ignore[element] > 0) {
        wash->ignore[element]--;
        return;
    }
    int limit = barrier_of(wash);
    if (element == WASH_TABLE)
        limit = -1;
    else if ((flags & WASH_PART) != 0)
        limit = wash->last[WASH_TABLE];
    if (at <= limit)
        return;
    /* "<b><div>x</b>y</div>": the end of the div will come, and must not close another one. */
    for (int i = at + 1; (flags & WASH_BLOCK) == 0 && i < wash->depth; i++) {
        tide_wash_element inner = wash->stack[i].element;
        if ((tide_wash_element_flags(inner) & (WASH_BLOCK | WASH_IMPLIED)) == WASH_BLOCK)
            wash->ignore[inner]++;
    }
    pop_to(wash, at);
}

/* ---- the whole ---- */

static void wash_html(struct tide_wash *wash, tide_text html)
{
    struct tide_html_token token;
    wash->reader = (struct tide_html_reader){.html = html};
    while (wash->out.rc == TIDE_OK && tide_html_next(&wash->reader, &token)) {
        wash->out.work += token.text.bytes + 1;
        if (token.kind == TIDE_HTML_TEXT) {
            tide_wash_text(&wash->out, token.text);
            continue;
        }
        tide_wash_element element = tide_wash_element_of(token.text);
        if (element == WASH_OTHER)
            continue;
        if (token.kind == TIDE_HTML_OPEN)
            start(wash, element);
        else
            end(wash, element);
    }
}

/* Text keeps its line ends and is wrapped where the page ends. */
static void wash_plain(struct tide_wash *wash, tide_text text)
{
    tide_wash_put_cstr(&wash->out, "<div style=\"white-space:pre-wrap\">");
    if (wash->out.rc != TIDE_OK)
        return;
    push(wash, WASH_DIV);
    tide_wash_plain(&wash->out, text);
}

static void wash_piece(struct tide_wash *wash, const struct tide_wash_piece *piece)
{
    memset(wash->ignore, 0, sizeof wash->ignore);
    if (piece->plain)
        wash_plain(wash, piece->text);
    else
        wash_html(wash, piece->text);
    /* Room for these ends is kept free. */
    const tide_status rc = wash->out.rc;
    const size_t bytes_max = wash->out.buf->bytes_max;
    if (rc == TIDE_NO_MEMORY)
        return;
    wash->out.rc = TIDE_OK;
    wash->out.buf->bytes_max = bytes_max + CLOSING_ROOM;
    pop_to(wash, 0);
    wash->out.buf->bytes_max = bytes_max;
    if (wash->out.rc == TIDE_OK)
        wash->out.rc = rc;
}

tide_status tide_html_wash_pieces(const struct tide_wash_piece *pieces, size_t count,
                                  tide_arena *arena, tide_buf *out, struct tide_washed *washed_out)
{
    memset(washed_out, 0, sizeof *washed_out);
    const size_t before = out->bytes, bytes_max = out->bytes_max;
    if (before > bytes_max || bytes_max - before < CLOSING_ROOM)
        return TIDE_FULL;
    if (tide_buf_room(out, before + CLOSING_ROOM) != TIDE_OK)
        return TIDE_NO_MEMORY;
    struct tide_wash *wash = tide_arena_take(arena, sizeof *wash);
    if (wash == NULL)
        return TIDE_NO_MEMORY;
    wash->out.buf = out;
    wash->arena = arena;
    tide_buf_init(&wash->value, arena->mem, SIZE_MAX / 4);
    tide_buf_init(&wash->url, arena->mem, SIZE_MAX / 4);
    memset(wash->last, -1, sizeof wash->last);

    out->bytes_max = bytes_max - CLOSING_ROOM;
    for (size_t i = 0; i < count && wash->out.rc == TIDE_OK; i++) {
        if (out->bytes > out->bytes_max) /* the ends of the last one took of that room */
            wash->out.rc = TIDE_FULL;
        else
            wash_piece(wash, &pieces[i]);
    }
    out->bytes_max = bytes_max;
    const tide_status rc = wash->out.rc;
    if (rc == TIDE_NO_MEMORY)
        out->bytes = before;
    out->data[out->bytes] = '\0';
    *washed_out = (struct tide_washed){
        .remote = wash->remote.items,
        .remote_count = wash->remote.count,
        .cids = wash->cids.items,
        .cids_count = wash->cids.count,
        .work = wash->out.work,
    };
    tide_buf_done(&wash->value);
    tide_buf_done(&wash->url);
    return rc;
}

tide_status tide_html_wash(tide_text html, tide_arena *arena, tide_buf *out,
                           struct tide_washed *washed_out)
{
    const struct tide_wash_piece piece = {.text = html};
    return tide_html_wash_pieces(&piece, 1, arena, out, washed_out);
}
