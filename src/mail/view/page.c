/* page.c - the washed HTML of a message. */
#include "mail/view/inside.h"
#include "base/check.h"
#include "mail/mime/body.h"
#include "mail/wash/wash.h"
#include "net/image/type.h"

/* A message with HTML shows its parts; another the text that is searched, which has the texts of
 * attached messages too. */
static tide_status pieces_of(struct tide_view *view, struct tide_wash_piece **pieces_out,
                             size_t *count_out, bool *cut_out)
{
    struct tide_body body = {.count = 0};
    tide_status rc = TIDE_OK;
    if (view->message.has_html)
        rc = tide_body_read(tide_buf_text(&view->raw), &view->arena, &body);
    if (rc != TIDE_OK)
        return rc;
    const size_t count = view->message.has_html ? body.count : 1;
    struct tide_wash_piece *pieces = tide_arena_take(&view->arena, (count + 1) * sizeof pieces[0]);
    if (pieces == NULL)
        return TIDE_NO_MEMORY;
    for (size_t i = 0; i < body.count; i++)
        pieces[i] = (struct tide_wash_piece){body.pieces[i].text, !body.pieces[i].html};
    if (!view->message.has_html)
        pieces[0] = (struct tide_wash_piece){view->message.text, true};
    *pieces_out = pieces;
    *count_out = count;
    *cut_out = (view->message.has_html ? body.problem : view->message.problem) != NULL;
    return TIDE_OK;
}

/* The first part with this Content-ID. */
static size_t part_with_id(const struct tide_message *message, tide_text id)
{
    for (size_t i = 0; i < message->attachments_count; i++) {
        if (message->attachments[i].id.bytes > 0 && tide_text_equal(message->attachments[i].id, id))
            return i;
    }
    return TIDE_VIEW_NO_PART;
}

static tide_status find_parts(struct tide_view *view, const struct tide_washed *washed,
                              struct tide_view_page *page)
{
    if (washed->cids_count == 0)
        return TIDE_OK;
    size_t *cids = tide_arena_take(&view->arena, washed->cids_count * sizeof cids[0]);
    if (cids == NULL)
        return TIDE_NO_MEMORY;
    for (size_t i = 0; i < washed->cids_count; i++)
        cids[i] = part_with_id(&view->message, washed->cids[i]);
    page->cids = cids;
    page->cids_count = washed->cids_count;
    return TIDE_OK;
}

tide_status tide_view_html(struct tide_view *view, tide_buf *out, struct tide_view_page *page_out)
{
    struct tide_view_page page = {.html = view->message.has_html};
    struct tide_wash_piece *pieces = NULL;
    struct tide_washed washed = {.remote_count = 0};
    size_t count = 0;
    const size_t before = out->bytes;
    tide_status rc = TIDE_OK;
    if (view->readable)
        rc = pieces_of(view, &pieces, &count, &page.cut);
    if (rc == TIDE_OK && count > 0) {
        rc = tide_html_wash_pieces(pieces, count, &view->arena, out, &washed);
        if (rc == TIDE_FULL && out->bytes > before) {
            page.cut = true;
            rc = TIDE_OK;
        }
    }
    page.remote = washed.remote;
    page.remote_count = washed.remote_count;
    if (rc == TIDE_OK)
        rc = find_parts(view, &washed, &page);
    if (rc == TIDE_OK)
        *page_out = page;
    else
        tide_view_back(out, before);
    return rc;
}

tide_status tide_view_image(const struct tide_view *view, const struct tide_view_page *page,
                            size_t number, tide_buf *out, const char **type_out)
{
    if (number >= page->cids_count || page->cids[number] == TIDE_VIEW_NO_PART)
        return TIDE_NOT_FOUND;
    TIDE_ASSERT(page->cids[number] < view->message.attachments_count);
    const struct tide_attachment *part = &view->message.attachments[page->cids[number]];
    const tide_text raw = tide_buf_text(&view->raw);
    if (tide_attachment_bytes(raw, part) > TIDE_VIEW_IMAGE_BYTES_MAX)
        return TIDE_FULL;
    const size_t before = out->bytes;
    tide_status rc = tide_attachment_decode(raw, part, out, NULL);
    if (rc != TIDE_OK)
        return rc;
    const char *type = tide_image_type((tide_text){out->data + before, out->bytes - before});
    if (out->bytes == before || type == NULL) {
        tide_view_back(out, before);
        return TIDE_NOT_FOUND;
    }
    *type_out = type;
    return TIDE_OK;
}
