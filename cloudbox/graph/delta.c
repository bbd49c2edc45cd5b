/* delta.c - what changed in a drive since a token.
 *
 * A token is four numbers: the epoch, the line of the log where the round began (what the
 * client has applied), the line where the page begins, and the end of the log when the
 * round began.  A round ends at the end of the log as it then is, so what changes during a
 * round comes in it, perhaps a second time.
 *
 * Folders above a changed item come along, before it, once a page; a client that sends
 * deltaExcludeParent does not get them.
 *
 * An item that was made and removed between two rounds is in neither: its removal is left out
 * when it happened before the round began and the item is younger than the client's
 * state.  A removal during the round may be of an item that an earlier page had: it comes. */
#include "base/encode.h"
#include "base/hash.h"
#include "base/map.h"
#include "cloudbox/graph/inside.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAGE_ITEMS = 200, PAGE_ITEMS_MAX = 1000 };

struct token {
    uint32_t epoch;
    uint32_t base; /* 0: the client knows nothing */
    uint32_t line;
    uint32_t end;
};

/* ---- tokens ---- */

static uint32_t seal(const box_drive *drive, const struct token *token)
{
    char text[BOX_ITEM_ID_BYTES + 64];
    box_drive_own_id(drive, text);
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, ".%u.%u.%u.%u", token->epoch, token->base,
             token->line, token->end);
    return (uint32_t)(tide_hash_key(tide_text_of(text)) >> 32);
}

enum { TOKEN_BYTES = 64 };
static void token_text(const box_drive *drive, const struct token *token,
                       char text_out[TOKEN_BYTES])
{
    snprintf(text_out, TOKEN_BYTES, "token=aTE%08x%08x%08x%08x%08x", token->epoch, token->base,
             token->line, token->end, seal(drive, token));
}

static bool token_parse(const box_drive *drive, tide_text text, struct token *token_out)
{
    uint32_t numbers[5] = {0};
    if (text.bytes != 43 || memcmp(text.data, "aTE", 3) != 0)
        return false;
    for (size_t i = 0; i < 40; i++) {
        const int digit = tide_hex_digit(text.data[3 + i]);
        if (digit < 0)
            return false;
        numbers[i / 8] = numbers[i / 8] << 4 | (uint32_t)digit;
    }
    *token_out = (struct token){numbers[0], numbers[1], numbers[2], numbers[3]};
    return numbers[4] == seal(drive, token_out) && token_out->line <= box_drive_log_end(drive);
}

/* 410: begin again, at the address in Location. */
void box_graph_resync(struct box_call *call, const char *kind)
{
    tide_auto_buf location = tide_buf_heap(4 * BOX_TARGET_BYTES_MAX);
    box_graph_fail(
        call, 410, "resyncRequired", kind,
        "Resync required. Replace any local items with the server's version (including "
        "deletes) if you're sure that the service was up to date with your local changes "
        "when you last sync'd.");
    box_add(&location, call->request->origin.data, call->request->origin.bytes);
    tide_text path = call->target.path;
    const char *bracket = memchr(path.data, '(', path.bytes);
    if (bracket != NULL)
        path.bytes = (size_t)(bracket - path.data);
    /* It is encoded already; what cannot stand in a header is encoded now. */
    (void)tide_percent_add(&location, path, TIDE_URL_UNRESERVED "/%:!$&'()*+,;=@");
    box_answer_header(call->answer, "Location", tide_buf_cstr(&location));
}

/* false: answered. */
static bool read_token(struct box_call *call, const struct box_spot *place, struct token *token)
{
    tide_text text = box_call_param(call, "token");
    const uint32_t end = box_drive_log_end(place->drive);
    if (text.data == NULL)
        text = place->address.token;
    *token = (struct token){.epoch = box_drive_epoch(place->drive), .end = end};
    if (text.bytes == 0)
        return true;
    if (tide_text_equal(text, TIDE_TEXT("latest"))) {
        token->base = token->line = end;
        return true;
    }
    if (!token_parse(place->drive, text, token)) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "The token is not valid.");
        return false;
    }
    if (token->epoch == box_drive_epoch(place->drive)) {
        if (token->line == token->base) /* a new round */
            token->end = end;
        return true;
    }
    box_graph_resync(call, "resyncChangesApplyDifferences");
    return false;
}

/* ---- a page ---- */

struct page {
    struct box_call *call;
    box_drive *drive;
    uint32_t folder; /* of which the changes are asked */
    uint32_t select;
    bool parents;
    bool old; /* items as they were before their latest change */
    bool first;
    tide_map written; /* slot + 1 */
    uint64_t items;
};

static void write_item(struct page *page, uint32_t slot)
{
    tide_buf *out = &page->call->answer->body;
    box_add_cstr(out, page->first ? "" : ",");
    page->first = false;
    box_item_write(page->call, page->drive, slot, page->select,
                   BOX_ITEM_IN_DELTA | (page->old ? BOX_ITEM_FORMER : 0), out);
    box_drive_show(page->drive, slot);
    (void)tide_map_put(&page->written, (uint64_t)slot + 1, 1);
    page->items++;
}

static void write_parents(struct page *page, uint32_t slot)
{
    uint32_t chain[BOX_ITEM_DEPTH_MAX + 1], known = 0;
    size_t count = 0;
    while (slot != page->folder && slot != BOX_ITEM_ROOT && count <= BOX_ITEM_DEPTH_MAX) {
        slot = box_drive_at(page->drive, slot)->parent;
        chain[count++] = slot;
    }
    while (count-- > 0)
        if (!box_drive_at(page->drive, chain[count])->gone &&
            !tide_map_get(&page->written, (uint64_t)chain[count] + 1, &known))
            write_item(page, chain[count]);
}

static bool concerns(const struct page *page, const struct token *token, uint32_t line,
                     uint32_t slot)
{
    const struct box_item *item = box_drive_at(page->drive, slot);
    if (!box_drive_is_below(page->drive, slot, page->folder))
        return false;
    return !item->gone || line >= token->end || item->born_at < token->base;
}

/* Writes items from token->line on, which moves. */
static void write_page(struct page *page, struct token *token, uint64_t top)
{
    const uint32_t end = box_drive_log_end(page->drive);
    for (; token->line < end && page->items < top; token->line++) {
        const uint32_t slot = box_drive_log_at(page->drive, token->line);
        if (slot == BOX_ITEM_NONE || !concerns(page, token, token->line, slot))
            continue;
        if (page->parents)
            write_parents(page, slot);
        write_item(page, slot);
    }
    if (token->line == end)
        token->base = end;
}

/* ---- the method ---- */

static bool strikes(struct page *page, const char *fault)
{
    return box_faults_strikes(box_cloud_faults(page->call->cloud), page->call, fault);
}

static void answer_page(struct page *page, struct token *token, uint64_t top)
{
    tide_buf *out = &page->call->answer->body;
    char text[TOKEN_BYTES];
    const struct token began = *token;
    snprintf(page->call->answer->type, sizeof page->call->answer->type,
             "application/json; charset=utf-8");
    box_add_cstr(out, "{\"@odata.context\":\"https://graph.microsoft.com/v1.0/"
                      "$metadata#Collection(driveItem)\",\"value\":[");
    const uint32_t end = box_drive_log_end(page->drive);
    const bool empty = began.line < end && strikes(page, "delta-empty");
    page->old = !empty && began.line < end && strikes(page, "delta-old");
    if (!empty)
        write_page(page, token, top);
    /* The same lines once more, on a page of their own; after old states the true ones. */
    const bool again =
        !empty && began.line < token->line && (page->old || strikes(page, "delta-repeat"));
    if (again)
        *token = began;
    box_add_cstr(out, "]");
    const bool more = empty || again || token->line < end;
    token_text(page->drive, token, text);
    box_graph_link(page->call, more ? "@odata.nextLink" : "@odata.deltaLink", text, out);
    box_add_cstr(out, "}");
}

/* What a round has told is told once: a client that comes back with the same deltaLink lost
 * its state, or does not keep it. */
static void judge_token(const struct box_call *call, const struct box_spot *place,
                        const struct token *token)
{
    if (token->base > 0 && token->line == token->base)
        box_graph_token_used(call, place->drive, token->base);
}

void box_graph_delta(struct box_call *call)
{
    struct box_spot place;
    struct token token;
    uint64_t top = 0;
    if (!box_graph_item(call, &place) || !read_token(call, &place, &token) ||
        !box_call_number(call, "$top", 1, PAGE_ITEMS_MAX, PAGE_ITEMS, &top))
        return;
    if (!box_drive_at(place.drive, place.slot)->folder) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "The item is not a folder.");
        return;
    }
    judge_token(call, &place, &token);
    struct page page = {.call = call,
                        .drive = place.drive,
                        .folder = place.slot,
                        .select = box_item_select(call),
                        .parents =
                            box_request_header(call->request, "deltaExcludeParent").data == NULL,
                        .first = true};
    tide_map_init(&page.written, tide_mem_heap());
    box_answer_clear(call->answer);
    answer_page(&page, &token, top);
    tide_map_done(&page.written);
}
