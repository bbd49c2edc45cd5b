#include "cloudbox/graph/address.h"

#include "base/check.h"

/* The segments that are not read yet. */
struct rest {
    const tide_text *segments;
    size_t count;
};

static tide_text take(struct rest *rest)
{
    if (rest->count == 0)
        return TIDE_TEXT_NONE;
    rest->count--;
    return *rest->segments++;
}

static bool take_word(struct rest *rest, const char *word)
{
    if (rest->count == 0 || !box_is(rest->segments[0], word))
        return false;
    (void)take(rest);
    return true;
}

static bool ends_in_colon(tide_text text)
{
    return text.bytes > 0 && text.data[text.bytes - 1] == ':';
}

/* Joins the segments up to one that ends in ':', or all.  Empty ones and "." are left out: some
 * clients write them. */
static void take_path(struct rest *rest, tide_arena *arena, tide_text *path_out)
{
    size_t bytes = 1;
    for (size_t i = 0; i < rest->count; i++)
        bytes += rest->segments[i].bytes + 1;
    char *to = tide_arena_take(arena, bytes);
    TIDE_ASSERT(to != NULL);
    size_t used = 0;
    bool closed = false;
    while (!closed && rest->count > 0) {
        tide_text segment = take(rest);
        closed = ends_in_colon(segment);
        if (closed)
            segment.bytes--;
        if (segment.bytes == 0 || tide_text_equal(segment, TIDE_TEXT(".")))
            continue;
        if (used > 0)
            to[used++] = '/';
        memcpy(to + used, segment.data, segment.bytes);
        used += segment.bytes;
    }
    *path_out = (tide_text){to, used};
}

/* "delta(token='T')" and "microsoft.graph.delta()" are "delta". */
static void take_what(struct rest *rest, struct box_address *address)
{
    static const char space[] = "microsoft.graph.", token[] = "token='";
    tide_text what = take(rest);
    if (box_starts(what, space))
        what = (tide_text){what.data + sizeof space - 1, what.bytes - (sizeof space - 1)};
    const char *open = what.bytes == 0 ? NULL : memchr(what.data, '(', what.bytes);
    if (open != NULL && what.data[what.bytes - 1] == ')') {
        const tide_text inside = {open + 1, what.bytes - (size_t)(open - what.data) - 2};
        if (box_starts(inside, token) && inside.bytes >= sizeof token &&
            inside.data[inside.bytes - 1] == '\'')
            address->token =
                (tide_text){inside.data + sizeof token - 1, inside.bytes - sizeof token};
        what.bytes = (size_t)(open - what.data);
    }
    address->what = what;
    address->more = take(rest);
    if (rest->count > 0)
        address->kind = BOX_ADDRESS_OTHER;
}

static void parse_item(struct rest *rest, tide_arena *arena, struct box_address *address)
{
    bool path = false;
    address->kind = BOX_ADDRESS_ITEM;
    if (take_word(rest, "root:")) {
        path = true;
    } else if (!take_word(rest, "root")) {
        if (!take_word(rest, "items") || rest->count == 0) {
            address->kind = BOX_ADDRESS_OTHER;
            return;
        }
        address->id = take(rest);
        path = ends_in_colon(address->id);
        address->id.bytes -= path ? 1 : 0;
        if (box_is(address->id, "root"))
            address->id = TIDE_TEXT_NONE;
    }
    if (path)
        take_path(rest, arena, &address->path);
    take_what(rest, address);
}

static void parse_drive(struct rest *rest, tide_arena *arena, struct box_address *address)
{
    address->kind = BOX_ADDRESS_DRIVE;
    if (rest->count > 0 && rest->segments[0].bytes > 0)
        parse_item(rest, arena, address);
}

static void parse_person(struct rest *rest, tide_arena *arena, struct box_address *address)
{
    address->kind = BOX_ADDRESS_ME;
    if (rest->count == 0)
        return;
    if (take_word(rest, "drive"))
        parse_drive(rest, arena, address);
    else if (take_word(rest, "drives") && rest->count == 0)
        address->kind = BOX_ADDRESS_DRIVES;
    else
        address->kind = BOX_ADDRESS_OTHER;
}

bool box_address_parse(const struct box_target *target, tide_arena *arena,
                       struct box_address *address_out)
{
    struct rest rest = {target->segments, target->segments_count};
    *address_out = (struct box_address){.kind = BOX_ADDRESS_OTHER};
    if (take_word(&rest, "_files")) {
        address_out->what = take(&rest);
        address_out->more = take(&rest);
        if (address_out->more.bytes > 0 && rest.count == 0)
            address_out->kind = BOX_ADDRESS_PASS;
        return true;
    }
    if (!take_word(&rest, "v1.0") && !take_word(&rest, "beta"))
        return false;
    if (take_word(&rest, "me")) {
        parse_person(&rest, arena, address_out);
    } else if (take_word(&rest, "users")) {
        address_out->user = take(&rest);
        parse_person(&rest, arena, address_out);
    } else if (take_word(&rest, "drives")) {
        address_out->kind = BOX_ADDRESS_DRIVES;
        address_out->drive = take(&rest);
        if (address_out->drive.bytes > 0)
            parse_drive(&rest, arena, address_out);
    } else if (take_word(&rest, "subscriptions")) {
        address_out->more = take(&rest);
        address_out->kind =
            address_out->more.bytes > 0 ? BOX_ADDRESS_SUBSCRIPTION : BOX_ADDRESS_SUBSCRIPTIONS;
    }
    return true;
}
