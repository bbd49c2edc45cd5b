/* order.c - an action as the payload of its job, with marks of the rows that it was planned with.
 *
 * A mark is a hash of what counts: an action whose rows have other marks when it runs is not carried
 * out (S10).  What a mark misses, the gates of act/ see. */
#include "base/hash.h"
#include "base/json.h"
#include "drive/sync/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- marks ---- */

static uint64_t add(uint64_t hash, const void *bytes, size_t count)
{
    return tide_hash(hash, (tide_text){bytes, count});
}

/* Never 0, and an integer of JSON. */
static uint64_t close_mark(uint64_t hash)
{
    return hash >> 1 | 1;
}

static uint64_t mark_place(uint64_t parent, tide_text name)
{
    return close_mark(tide_hash(add(TIDE_HASH_START, &parent, sizeof parent), name));
}

static uint64_t mark_remote(tide_drive_kind kind, tide_drive_remote_state state,
                            const struct tide_drive_content *content, tide_text ctag)
{
    const uint64_t head[] = {(uint64_t)kind, (uint64_t)state,
                             kind == TIDE_DRIVE_FILE ? content->bytes : 0};
    uint64_t hash = add(TIDE_HASH_START, head, sizeof head);
    if (kind == TIDE_DRIVE_FILE && state == TIDE_DRIVE_REMOTE_LIVE)
        hash =
            content->has_qxh ? add(hash, content->qxh, sizeof content->qxh) : tide_hash(hash, ctag);
    return close_mark(hash);
}

static uint64_t mark_local(tide_drive_kind kind, int state,
                           const struct tide_drive_content *content)
{
    const uint64_t head[] = {(uint64_t)kind, (uint64_t)state,
                             kind == TIDE_DRIVE_FILE ? content->bytes : 0};
    uint64_t hash = add(TIDE_HASH_START, head, sizeof head);
    if (kind == TIDE_DRIVE_FILE && content->has_strong)
        hash = add(hash, content->strong, sizeof content->strong);
    return close_mark(hash);
}

uint64_t tide_drive_mark_remote(const struct tide_drive_remote_look *look)
{
    return mark_remote(look->kind, look->state, &look->content, tide_text_of(look->ctag));
}

uint64_t tide_drive_mark_remote_place(const struct tide_drive_remote_look *look)
{
    return mark_place(look->parent,
                      tide_text_of(look->aside[0] != '\0' ? look->aside : look->name));
}

uint64_t tide_drive_mark_local(const struct tide_drive_local_look *look)
{
    return mark_local(look->kind, look->state, &look->content);
}

uint64_t tide_drive_mark_local_place(const struct tide_drive_local_look *look)
{
    return mark_place(look->parent,
                      tide_text_of(look->aside[0] != '\0' ? look->aside : look->name));
}

/* Each row of a tree begins with its number, and they are sorted by it. */
static const void *row_of(const void *rows, size_t count, size_t bytes, uint64_t number)
{
    size_t low = 0;
    for (size_t high = count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const uint64_t is = *(const uint64_t *)((const char *)rows + middle * bytes);
        if (is == number)
            return (const char *)rows + middle * bytes;
        if (is < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The item whose baseline an action is about. */
static uint64_t base_item(const struct tide_drive_order *order)
{
    return order->was_item != 0 ? order->was_item : order->item;
}

/* An earlier action of the same plan may have paired the two already.  What has no item yet overwrites
 * nothing, but must not get a second one: an action of an earlier plan may have made the first, which a
 * user deleted online since. */
tide_status tide_drive_order_pairs(tide_rows db, const struct tide_drive_order *order,
                                   bool *same_out, tide_error *err)
{
    uint64_t row = 0, item = 0;
    tide_status rc = TIDE_OK;
    if (order->item != 0)
        rc = tide_drive_row_of_item(db, base_item(order), &row, err);
    if (rc == TIDE_NOT_FOUND) /* it may have its new id already */
        rc = tide_drive_row_of_item(db, order->item, &row, err);
    if (rc == TIDE_OK || rc == TIDE_NOT_FOUND)
        rc = order->row != 0 ? tide_drive_item_of_row(db, order->row, &item, err) : TIDE_OK;
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    *same_out = (row == 0 || row == order->base_row || row == order->row) &&
                (item == 0 || item == order->item || item == order->row_item);
    return TIDE_OK;
}

tide_status tide_drive_order_of(uint32_t number, const struct tide_drive_action *action,
                                const struct tide_drive_trees *trees, const tide_map *owners,
                                struct tide_drive_order *order_out, tide_error *err)
{
    if (action->name.bytes >= sizeof order_out->name)
        return tide_error_set(err, TIDE_INVALID, "a planned name is too long");
    *order_out = (struct tide_drive_order){.drive = number,
                                           .item = action->item,
                                           .row = action->row,
                                           .was_item = action->was_item,
                                           .copy_of = action->copy_of,
                                           .parent_item = action->parent_item,
                                           .parent_row = action->parent_row,
                                           .verb = action->verb,
                                           .kind = action->kind,
                                           .notice = action->notice,
                                           .compare = action->compare,
                                           .step_aside = action->step_aside};
    if (action->name.bytes > 0)
        memcpy(order_out->name, action->name.data, action->name.bytes);
    const struct tide_drive_remote *remote =
        row_of(trees->remotes, trees->remotes_count, sizeof *remote,
               action->item != 0 ? action->item : action->copy_of);
    const struct tide_drive_local *local =
        row_of(trees->locals, trees->locals_count, sizeof *local, action->row);
    const struct tide_drive_base *base =
        row_of(trees->bases, trees->bases_count, sizeof *base, base_item(order_out));
    order_out->base_row = base != NULL ? base->row : 0;
    uint32_t owner = 0;
    if (action->row != 0 && tide_map_get(owners, action->row, &owner))
        order_out->row_item = trees->bases[owner].item;
    if (remote != NULL) {
        order_out->remote_content =
            mark_remote(remote->kind, remote->state, &remote->content, remote->ctag);
        order_out->remote_place = mark_place(remote->parent, remote->name);
    }
    if (local != NULL) {
        order_out->local_content = mark_local(local->kind, (int)local->state, &local->content);
        order_out->local_place = mark_place(local->parent, local->name);
    }
    return TIDE_OK;
}

/* ---- the payload ---- */

tide_status tide_drive_order_write(const struct tide_drive_order *order, tide_buf *out)
{
    TIDE_TRY(tide_buf_print(
        out,
        "{\"drive\":%" PRIu32 ",\"verb\":%d,\"kind\":%d,\"item\":%" PRIu64 ",\"row\":%" PRIu64
        ",\"was\":%" PRIu64 ",\"copy_of\":%" PRIu64 ",\"parent_item\":%" PRIu64
        ",\"parent_row\":%" PRIu64 ",\"notice\":%d,\"compare\":%s,\"aside\":%s,\"marks\":[%" PRIu64
        ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "],\"name\":",
        order->drive, (int)order->verb, (int)order->kind, order->item, order->row, order->was_item,
        order->copy_of, order->parent_item, order->parent_row, (int)order->notice,
        order->compare ? "true" : "false", order->step_aside ? "true" : "false",
        order->remote_content, order->remote_place, order->local_content, order->local_place,
        order->base_row, order->row_item));
    TIDE_TRY(tide_json_escape(tide_text_of(order->name), out));
    return tide_buf_add_text(out, "}");
}

static uint64_t mark_at(const json_t *marks, size_t at)
{
    return (uint64_t)json_integer_value(json_array_get(marks, at));
}

tide_status tide_drive_order_read(tide_text payload, struct tide_drive_order *order_out,
                                  tide_error *err)
{
    json_auto_t *object = NULL;
    struct tide_drive_order order = {.drive = 0};
    uint64_t drive = 0, verb = 0, kind = 0, notice = 0;
    tide_text name = TIDE_TEXT_NONE;
    const json_t *marks = NULL;
    TIDE_TRY(tide_json_parse(payload, &object, err));
    const struct {
        const char *key;
        uint64_t *number;
    } numbers[] = {{"drive", &drive},
                   {"verb", &verb},
                   {"kind", &kind},
                   {"item", &order.item},
                   {"row", &order.row},
                   {"was", &order.was_item},
                   {"copy_of", &order.copy_of},
                   {"parent_item", &order.parent_item},
                   {"parent_row", &order.parent_row},
                   {"notice", &notice}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        TIDE_TRY(tide_json_get_u64(object, numbers[i].key, numbers[i].number, err));
    TIDE_TRY(tide_json_get_bool(object, "compare", &order.compare, err));
    TIDE_TRY(tide_json_get_bool(object, "aside", &order.step_aside, err));
    TIDE_TRY(tide_json_get_text(object, "name", &name, err));
    TIDE_TRY(tide_json_get_array(object, "marks", &marks, err));
    if (drive == 0 || drive > UINT32_MAX || verb > TIDE_DRIVE_DROP ||
        (kind != TIDE_DRIVE_FILE && kind != TIDE_DRIVE_FOLDER) || notice > TIDE_DRIVE_K8 ||
        name.bytes >= sizeof order.name || (order.item == 0 && order.row == 0))
        return tide_error_set(err, TIDE_INVALID, "invalid payload of a drive.act job");
    order.drive = (uint32_t)drive;
    order.verb = (tide_drive_verb)verb;
    order.kind = (tide_drive_kind)kind;
    order.notice = (tide_drive_notice)notice;
    if (name.bytes > 0)
        memcpy(order.name, name.data, name.bytes);
    order.remote_content = mark_at(marks, 0);
    order.remote_place = mark_at(marks, 1);
    order.local_content = mark_at(marks, 2);
    order.local_place = mark_at(marks, 3);
    order.base_row = mark_at(marks, 4);
    order.row_item = mark_at(marks, 5);
    *order_out = order;
    return TIDE_OK;
}
