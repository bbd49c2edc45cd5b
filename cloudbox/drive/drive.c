#include "cloudbox/drive/inside.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    LOG_LINES_MAX = 1 << 30,
    FIRST_NUMBER = 101, /* of the root in a personal drive's ids */
};

/* ---- life ---- */

box_drive *box_drive_new(const struct box_drive_spec *spec)
{
    box_drive *drive = tide_mem_new(tide_mem_heap(), sizeof *drive);
    TIDE_ASSERT(drive != NULL);
    drive->spec = *spec;
    if (drive->spec.total_bytes == 0)
        drive->spec.total_bytes = BOX_DRIVE_TOTAL_BYTES;
    if (drive->spec.files_max == 0)
        drive->spec.files_max = BOX_FILES_MAX;
    tide_rng rng = tide_rng_seeded(spec->seed);
    drive->cid = tide_rng_next(&rng);
    tide_map_init(&drive->names, tide_mem_heap());
    const struct box_file_times times = {0};
    (void)box_drive_place(drive, BOX_ITEM_NONE, TIDE_TEXT("root"), NULL, times, spec->now_ms);
    return drive;
}

void box_drive_free(box_drive *drive)
{
    if (drive == NULL)
        return;
    for (uint32_t i = 0; i < drive->items_count; i++) {
        struct box_item *item = &drive->items[i];
        if (!item->folder)
            box_content_drop(&item->content);
        if (item->name != NULL)
            tide_mem_free(tide_mem_heap(), item->name, strlen(item->name) + 1);
    }
    tide_mem_free(tide_mem_heap(), drive->items, drive->items_capacity * sizeof *drive->items);
    tide_mem_free(tide_mem_heap(), drive->log, drive->log_capacity * sizeof *drive->log);
    tide_map_done(&drive->names);
    box_drive_odd_done(drive);
    tide_mem_free(tide_mem_heap(), drive, sizeof *drive);
}

const struct box_drive_spec *box_drive_spec(const box_drive *drive)
{
    return &drive->spec;
}

/* ---- reading ---- */

uint32_t box_drive_slots(const box_drive *drive)
{
    return drive->items_count;
}

const struct box_item *box_drive_at(const box_drive *drive, uint32_t slot)
{
    TIDE_ASSERT(slot < drive->items_count);
    return &drive->items[slot];
}

tide_text box_drive_name(const box_drive *drive, uint32_t slot, char room[BOX_NAME_BYTES_MAX + 1])
{
    const struct box_item *item = box_drive_at(drive, slot);
    return item->name != NULL ? tide_text_of(item->name) : box_drive_made_name(drive, slot, room);
}

void box_drive_own_id(const box_drive *drive, char id_out[BOX_ITEM_ID_BYTES])
{
    (void)snprintf(id_out, BOX_ITEM_ID_BYTES,
                   drive->spec.business ? "b!%016" PRIX64 : "%016" PRIX64, drive->cid);
}

bool box_drive_is(const box_drive *drive, tide_text id)
{
    char own[BOX_ITEM_ID_BYTES];
    box_drive_own_id(drive, own);
    if (id.bytes != strlen(own))
        return false;
    return drive->spec.business ? memcmp(id.data, own, id.bytes) == 0
                                : strncasecmp(id.data, own, id.bytes) == 0;
}

void box_drive_id(const box_drive *drive, uint32_t slot, char id_out[BOX_ITEM_ID_BYTES])
{
    if (drive->spec.business)
        (void)snprintf(id_out, BOX_ITEM_ID_BYTES, "01%016" PRIX64 "%016" PRIX32, drive->cid, slot);
    else
        (void)snprintf(id_out, BOX_ITEM_ID_BYTES, "%016" PRIX64 "!%" PRIu32, drive->cid,
                       slot + FIRST_NUMBER);
}

/* Digits of either case, and nothing else. */
static bool read_hex(tide_text text, uint64_t *number_out)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        const int digit = tide_hex_digit(text.data[i]);
        if (digit < 0)
            return false;
        number = number << 4 | (uint64_t)digit;
    }
    *number_out = number;
    return text.bytes > 0 && text.bytes <= 16;
}

uint32_t box_drive_find(const box_drive *drive, tide_text id)
{
    const size_t lead = drive->spec.business ? 2 : 0;
    uint64_t cid = 0, number = 0;
    if (id.bytes < lead + 17 || memcmp(id.data, "01", lead) != 0 ||
        !read_hex((tide_text){id.data + lead, 16}, &cid) || cid != drive->cid)
        return BOX_ITEM_NONE;
    tide_text rest = {id.data + lead + 16, id.bytes - lead - 16};
    if (drive->spec.business) {
        if (rest.bytes != 16 || !read_hex(rest, &number))
            return BOX_ITEM_NONE;
    } else {
        if (rest.data[0] != '!' ||
            !tide_text_to_u64((tide_text){rest.data + 1, rest.bytes - 1}, &number) ||
            number < FIRST_NUMBER)
            return BOX_ITEM_NONE;
        number -= FIRST_NUMBER;
    }
    return number < drive->items_count ? (uint32_t)number : BOX_ITEM_NONE;
}

uint32_t box_drive_child(const box_drive *drive, uint32_t folder, tide_text name)
{
    char room[BOX_NAME_BYTES_MAX + 1];
    uint32_t slot = BOX_ITEM_NONE;
    if (!tide_map_get(&drive->names, box_name_hash(folder, name), &slot))
        return BOX_ITEM_NONE;
    for (; slot != BOX_ITEM_NONE; slot = drive->items[slot].same)
        if (drive->items[slot].parent == folder &&
            box_name_equal(box_drive_name(drive, slot, room), name))
            return slot;
    return BOX_ITEM_NONE;
}

uint32_t box_drive_after(const box_drive *drive, uint32_t folder, uint32_t place, uint32_t hint)
{
    if (hint < drive->items_count) {
        const struct box_item *item = &drive->items[hint];
        if (!item->gone && item->parent == folder && item->place == place)
            return item->next;
    }
    uint32_t slot = box_drive_at(drive, folder)->first; /* it is gone: seek its place */
    while (slot != BOX_ITEM_NONE && drive->items[slot].place <= place)
        slot = drive->items[slot].next;
    return slot;
}

bool box_drive_is_below(const box_drive *drive, uint32_t slot, uint32_t folder)
{
    while (slot != BOX_ITEM_NONE && slot != folder)
        slot = drive->items[slot].parent;
    return slot == folder;
}

uint32_t box_drive_depth(const box_drive *drive, uint32_t slot)
{
    uint32_t depth = 0;
    for (; slot != BOX_ITEM_ROOT; slot = drive->items[slot].parent)
        depth++;
    return depth;
}

uint64_t box_drive_used(const box_drive *drive)
{
    return drive->items[BOX_ITEM_ROOT].content.bytes;
}

/* ---- the tree ---- */

static uint64_t key_of(const box_drive *drive, uint32_t slot)
{
    char room[BOX_NAME_BYTES_MAX + 1];
    return box_name_hash(drive->items[slot].parent, box_drive_name(drive, slot, room));
}

static void name_in(box_drive *drive, uint32_t slot)
{
    const uint64_t key = key_of(drive, slot);
    uint32_t first = BOX_ITEM_NONE;
    (void)tide_map_get(&drive->names, key, &first);
    drive->items[slot].same = first;
    TIDE_ASSERT(tide_map_put(&drive->names, key, slot));
}

static void name_out(box_drive *drive, uint32_t slot)
{
    const uint64_t key = key_of(drive, slot);
    const uint32_t after = drive->items[slot].same;
    uint32_t at = BOX_ITEM_NONE;
    TIDE_ASSERT(tide_map_get(&drive->names, key, &at));
    if (at == slot && after == BOX_ITEM_NONE) {
        (void)tide_map_remove(&drive->names, key);
    } else if (at == slot) {
        TIDE_ASSERT(tide_map_put(&drive->names, key, after));
    } else {
        while (drive->items[at].same != slot)
            at = drive->items[at].same;
        drive->items[at].same = after;
    }
}

/* Everything below `folder` became larger or smaller, and its cTag moves. */
static void swell(box_drive *drive, uint32_t folder, uint64_t more, uint64_t less)
{
    for (; folder != BOX_ITEM_NONE; folder = drive->items[folder].parent) {
        struct box_item *item = &drive->items[folder];
        item->content.bytes = item->content.bytes + more - less;
        item->content_version++;
    }
}

static void link_in(box_drive *drive, uint32_t slot, uint32_t parent)
{
    struct box_item *item = &drive->items[slot];
    struct box_item *folder = &drive->items[parent];
    item->parent = parent;
    item->place = ++drive->places;
    item->next = BOX_ITEM_NONE;
    item->previous = folder->last;
    if (folder->last != BOX_ITEM_NONE)
        drive->items[folder->last].next = slot;
    else
        folder->first = slot;
    folder->last = slot;
    folder->count++;
    swell(drive, parent, item->content.bytes, 0);
}

static void link_out(box_drive *drive, uint32_t slot)
{
    const struct box_item *item = &drive->items[slot];
    struct box_item *folder = &drive->items[item->parent];
    if (item->previous != BOX_ITEM_NONE)
        drive->items[item->previous].next = item->next;
    else
        folder->first = item->next;
    if (item->next != BOX_ITEM_NONE)
        drive->items[item->next].previous = item->previous;
    else
        folder->last = item->previous;
    folder->count--;
    swell(drive, item->parent, 0, item->content.bytes);
}

/* ---- changes ---- */

static void log_add(box_drive *drive, uint32_t slot)
{
    TIDE_ASSERT(
        TIDE_GROW(drive->log, drive->log_capacity, (size_t)drive->log_end + 1, LOG_LINES_MAX));
    drive->items[slot].changed_at = drive->log_end;
    drive->log[drive->log_end++] = slot;
}

void box_drive_changed(box_drive *drive, uint32_t slot, uint64_t now_ms)
{
    drive->items[slot].version++;
    drive->items[slot].changed_ms = now_ms;
    log_add(drive, slot);
}

char *box_drive_copy_name(tide_text name)
{
    if (name.data == NULL)
        return NULL;
    char *copy = tide_mem_new(tide_mem_heap(), name.bytes + 1);
    TIDE_ASSERT(copy != NULL);
    memcpy(copy, name.data, name.bytes);
    return copy;
}

uint32_t box_drive_place(box_drive *drive, uint32_t parent, tide_text name,
                         const struct box_content *content, struct box_file_times times,
                         uint64_t now_ms)
{
    const uint32_t slot = drive->items_count;
    TIDE_ASSERT(TIDE_GROW(drive->items, drive->items_capacity, (size_t)slot + 1, BOX_ITEMS_MAX));
    drive->items_count++;
    struct box_item *item = &drive->items[slot];
    *item = (struct box_item){
        .name = box_drive_copy_name(name),
        .folder = content == NULL,
        .parent = parent,
        .first = BOX_ITEM_NONE,
        .last = BOX_ITEM_NONE,
        .next = BOX_ITEM_NONE,
        .previous = BOX_ITEM_NONE,
        .same = BOX_ITEM_NONE,
        .made_ms = now_ms,
        .file_made_ms = times.made_ms != 0 ? times.made_ms : now_ms,
        .file_changed_ms = times.changed_ms != 0 ? times.changed_ms : now_ms,
        .content_version = 1,
        .born_at = drive->log_end,
    };
    if (content != NULL)
        item->content = box_content_hold(content);
    if (parent != BOX_ITEM_NONE) {
        link_in(drive, slot, parent);
        name_in(drive, slot);
    }
    box_drive_changed(drive, slot, now_ms);
    return slot;
}

uint32_t box_drive_add(box_drive *drive, uint32_t parent, tide_text name,
                       const struct box_content *content, struct box_file_times times,
                       uint64_t now_ms)
{
    TIDE_ASSERT(box_drive_at(drive, parent)->folder && !box_drive_at(drive, parent)->gone);
    TIDE_ASSERT(box_name_wrong(name) == NULL);
    TIDE_ASSERT(box_drive_child(drive, parent, name) == BOX_ITEM_NONE);
    const uint32_t slot = box_drive_place(drive, parent, name, content, times, now_ms);
    box_drive_tell_add(drive, slot, now_ms);
    return slot;
}

static void set_times(struct box_item *item, struct box_file_times times, uint64_t otherwise_ms)
{
    if (times.made_ms != 0)
        item->file_made_ms = times.made_ms;
    if (times.changed_ms != 0 || otherwise_ms != 0)
        item->file_changed_ms = times.changed_ms != 0 ? times.changed_ms : otherwise_ms;
}

void box_drive_write(box_drive *drive, uint32_t slot, const struct box_content *content,
                     struct box_file_times times, uint64_t now_ms)
{
    struct box_item *item = &drive->items[slot];
    TIDE_ASSERT(slot < drive->items_count && !item->folder && !item->gone);
    const struct box_content held = box_content_hold(content);
    box_drive_remember(drive, slot);
    swell(drive, item->parent, held.bytes, item->content.bytes);
    box_content_drop(&item->content);
    item->content = held;
    item->content_version++;
    item->fetched_bytes = 0;
    set_times(item, times, now_ms);
    box_drive_changed(drive, slot, now_ms);
    box_drive_tell_write(drive, slot, now_ms);
}

void box_drive_move(box_drive *drive, uint32_t slot, uint32_t parent, tide_text name,
                    uint64_t now_ms)
{
    struct box_item *item = &drive->items[slot];
    TIDE_ASSERT(slot != BOX_ITEM_ROOT && slot < drive->items_count && !item->gone);
    TIDE_ASSERT(!box_drive_is_below(drive, parent, slot));
    TIDE_ASSERT(box_name_wrong(name) == NULL);
    char *copy = box_drive_copy_name(name); /* it may be the item's own */
    box_drive_remember(drive, slot);
    name_out(drive, slot);
    if (parent != item->parent) {
        link_out(drive, slot);
        link_in(drive, slot, parent);
    }
    if (item->name != NULL)
        tide_mem_free(tide_mem_heap(), item->name, strlen(item->name) + 1);
    item->name = copy;
    name_in(drive, slot);
    box_drive_changed(drive, slot, now_ms);
    box_drive_tell_move(drive, slot, now_ms);
}

void box_drive_touch(box_drive *drive, uint32_t slot, struct box_file_times times, uint64_t now_ms)
{
    TIDE_ASSERT(slot < drive->items_count && !drive->items[slot].gone);
    set_times(&drive->items[slot], times, 0);
    box_drive_changed(drive, slot, now_ms);
    box_drive_tell_touch(drive, slot, now_ms);
}

/* The item that follows in a walk of everything below `top`; `done`: not what is below it. */
static uint32_t walk_next(const box_drive *drive, uint32_t top, uint32_t slot)
{
    if (drive->items[slot].first != BOX_ITEM_NONE)
        return drive->items[slot].first;
    while (slot != top && drive->items[slot].next == BOX_ITEM_NONE)
        slot = drive->items[slot].parent;
    return slot == top ? BOX_ITEM_NONE : drive->items[slot].next;
}

static uint32_t copy_one(box_drive *drive, uint32_t slot, uint32_t parent, tide_text name,
                         uint64_t now_ms)
{
    const struct box_item item = drive->items[slot]; /* the table may move */
    const struct box_file_times times = {item.file_made_ms, item.file_changed_ms};
    return box_drive_add(drive, parent, name, item.folder ? NULL : &item.content, times, now_ms);
}

uint32_t box_drive_copy(box_drive *drive, uint32_t slot, uint32_t parent, tide_text name,
                        uint64_t now_ms)
{
    TIDE_ASSERT(slot != BOX_ITEM_ROOT && !drive->items[slot].gone);
    TIDE_ASSERT(!box_drive_is_below(drive, parent, slot));
    tide_auto_map copies; /* item + 1 -> its copy */
    tide_map_init(&copies, tide_mem_heap());
    char room[BOX_NAME_BYTES_MAX + 1];
    const uint32_t made = copy_one(drive, slot, parent, name, now_ms);
    TIDE_ASSERT(tide_map_put(&copies, (uint64_t)slot + 1, made));
    for (uint32_t at = walk_next(drive, slot, slot); at != BOX_ITEM_NONE;
         at = walk_next(drive, slot, at)) {
        uint32_t into = BOX_ITEM_NONE;
        TIDE_ASSERT(tide_map_get(&copies, (uint64_t)drive->items[at].parent + 1, &into));
        const uint32_t copy = copy_one(drive, at, into, box_drive_name(drive, at, room), now_ms);
        TIDE_ASSERT(tide_map_put(&copies, (uint64_t)at + 1, copy));
    }
    return made;
}

void box_drive_remove(box_drive *drive, uint32_t slot, uint64_t now_ms)
{
    TIDE_ASSERT(slot != BOX_ITEM_ROOT && slot < drive->items_count && !drive->items[slot].gone);
    box_drive_remember(drive, slot);
    link_out(drive, slot);
    for (uint32_t at = slot; at != BOX_ITEM_NONE; at = walk_next(drive, slot, at)) {
        name_out(drive, at);
        drive->items[at].gone = true;
    }
    box_drive_changed(drive, slot, now_ms);
    box_drive_tell_remove(drive, slot, now_ms);
}

void box_drive_quota(box_drive *drive, uint64_t total_bytes)
{
    drive->spec.total_bytes = total_bytes;
    box_drive_tell_quota(drive);
}

void box_drive_business(box_drive *drive)
{
    TIDE_ASSERT(drive->items_count == 1 && !drive->items[BOX_ITEM_ROOT].shown);
    drive->spec.business = true;
}

/* ---- the log and the record ---- */

void box_drive_forget(box_drive *drive)
{
    drive->epoch++;
    box_drive_tell_forget(drive);
}

uint32_t box_drive_epoch(const box_drive *drive)
{
    return drive->epoch;
}

uint32_t box_drive_log_end(const box_drive *drive)
{
    return drive->log_end;
}

uint32_t box_drive_log_at(const box_drive *drive, uint32_t line)
{
    TIDE_ASSERT(line < drive->log_end);
    const uint32_t slot = drive->log[line];
    return drive->items[slot].changed_at == line ? slot : BOX_ITEM_NONE;
}

void box_drive_show(box_drive *drive, uint32_t slot)
{
    TIDE_ASSERT(slot < drive->items_count);
    drive->items[slot].shown = true;
}

uint64_t box_drive_fetched(box_drive *drive, uint32_t slot, uint64_t bytes)
{
    TIDE_ASSERT(slot < drive->items_count);
    const uint64_t before = drive->items[slot].fetched_bytes;
    drive->items[slot].fetched_bytes += bytes;
    return before;
}

void box_drive_fetched_reset(box_drive *drive)
{
    for (uint32_t i = 0; i < drive->items_count; i++)
        drive->items[i].fetched_bytes = 0;
}

/* ---- the invariants ---- */

static const char *check_item(const box_drive *drive, uint32_t slot, uint64_t *bytes_out,
                              uint32_t *count_out)
{
    const struct box_item *item = &drive->items[slot];
    char room[BOX_NAME_BYTES_MAX + 1];
    *bytes_out = 0;
    *count_out = 0;
    if (item->gone)
        return "BDRV1: an item that is gone is in a folder";
    for (uint32_t at = item->first; at != BOX_ITEM_NONE; at = drive->items[at].next) {
        *bytes_out += drive->items[at].content.bytes;
        ++*count_out;
        if (drive->items[at].parent != slot)
            return "BDRV1: an item has another parent";
        if (box_drive_child(drive, slot, box_drive_name(drive, at, room)) != at)
            return "BDRV2: two items have one name";
    }
    return NULL;
}

const char *box_drive_check(const box_drive *drive)
{
    uint32_t reached = 0, alive = 0;
    for (uint32_t at = BOX_ITEM_ROOT; at != BOX_ITEM_NONE;
         at = walk_next(drive, BOX_ITEM_ROOT, at)) {
        uint64_t bytes = 0;
        uint32_t count = 0;
        const char *wrong = check_item(drive, at, &bytes, &count);
        const struct box_item *item = &drive->items[at];
        if (wrong != NULL)
            return wrong;
        if (item->folder && (item->content.bytes != bytes || item->count != count))
            return "BDRV3: a folder's size is wrong";
        reached++;
    }
    for (uint32_t at = 0; at < drive->items_count; at++) {
        alive += drive->items[at].gone ? 0 : 1;
        if (drive->log[drive->items[at].changed_at] != at)
            return "BDRV4: the log names another item";
    }
    return reached == alive ? NULL : "BDRV1: an item is in no folder";
}
