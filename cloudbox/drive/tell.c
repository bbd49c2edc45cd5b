/* tell.c - changes as JSON: what a state file keeps, and the way back. */
#include "base/check.h"
#include "base/encode.h"
#include "base/json.h"
#include "cloudbox/drive/inside.h"

/* ---- telling ---- */

static json_t *change_of(const char *what, uint32_t slot, uint64_t now_ms)
{
    json_t *change = json_pack("{s:s, s:s, s:I, s:I}", "op", "drive", "do", what, "item",
                               (json_int_t)slot, "now", (json_int_t)now_ms);
    TIDE_ASSERT(change != NULL);
    return change;
}

static json_t *base64_of(const void *bytes, size_t count)
{
    tide_auto_buf text = tide_buf_heap(BOX_CONTENT_KEPT_BYTES * 2);
    TIDE_ASSERT(tide_base64_add(&text, (tide_text){bytes, count}, tide_base64_standard, true) ==
                TIDE_OK);
    json_t *value = json_stringn(tide_buf_cstr(&text), text.bytes);
    TIDE_ASSERT(value != NULL);
    return value;
}

static void set_content(json_t *change, const struct box_content *content)
{
    json_object_set_new(change, "size", json_integer((json_int_t)content->bytes));
    if (content->stored == NULL) {
        json_object_set_new(change, "seed", json_integer((json_int_t)content->seed));
        return;
    }
    uint8_t hash[BOX_QUICKXOR_BYTES];
    const tide_text kept = box_content_kept(content);
    box_content_hash(content, hash);
    if (kept.data != NULL)
        json_object_set_new(change, "bytes", base64_of(kept.data, kept.bytes));
    else
        json_object_set_new(change, "hash", base64_of(hash, sizeof hash));
}

static void set_times(json_t *change, const struct box_item *item)
{
    json_object_set_new(change, "file_made", json_integer((json_int_t)item->file_made_ms));
    json_object_set_new(change, "file_changed", json_integer((json_int_t)item->file_changed_ms));
}

static void set_place(const box_drive *drive, json_t *change, uint32_t slot)
{
    char room[BOX_NAME_BYTES_MAX + 1];
    const tide_text name = box_drive_name(drive, slot, room);
    json_object_set_new(change, "parent", json_integer(drive->items[slot].parent));
    json_object_set_new(change, "name", json_stringn(name.data, name.bytes));
}

static void tell(box_drive *drive, json_t *change)
{
    if (drive->spec.changed != NULL)
        drive->spec.changed(drive->spec.changed_arg, change);
    else
        json_decref(change);
}

void box_drive_tell_add(box_drive *drive, uint32_t slot, uint64_t now_ms)
{
    const struct box_item *item = &drive->items[slot];
    json_t *change = change_of("add", slot, now_ms);
    if (drive->spec.keeps) {
        set_place(drive, change, slot);
        set_times(change, item);
        if (!item->folder)
            set_content(change, &item->content);
    }
    tell(drive, change);
}

void box_drive_tell_write(box_drive *drive, uint32_t slot, uint64_t now_ms)
{
    json_t *change = change_of("write", slot, now_ms);
    if (drive->spec.keeps) {
        set_times(change, &drive->items[slot]);
        set_content(change, &drive->items[slot].content);
    }
    tell(drive, change);
}

void box_drive_tell_move(box_drive *drive, uint32_t slot, uint64_t now_ms)
{
    json_t *change = change_of("move", slot, now_ms);
    set_place(drive, change, slot);
    tell(drive, change);
}

void box_drive_tell_touch(box_drive *drive, uint32_t slot, uint64_t now_ms)
{
    json_t *change = change_of("touch", slot, now_ms);
    set_times(change, &drive->items[slot]);
    tell(drive, change);
}

void box_drive_tell_mark(box_drive *drive, uint32_t slot, uint64_t now_ms)
{
    json_t *change = change_of("mark", slot, now_ms);
    json_object_set_new(change, "as",
                        json_string(box_mark_word((box_mark)drive->items[slot].mark)));
    tell(drive, change);
}

void box_drive_tell_lead(box_drive *drive, const struct box_lead *lead, uint64_t now_ms)
{
    json_t *change = change_of("lead", lead->slot, now_ms);
    json_object_set_new(change, "to_drive", json_string(lead->drive));
    json_object_set_new(change, "to_item", json_string(lead->item));
    json_object_set_new(change, "folder", json_integer(lead->folder));
    json_object_set_new(change, "lost", json_integer(lead->lost));
    json_object_set_new(change, "read_only", json_integer(lead->read_only));
    tell(drive, change);
}

void box_drive_tell_remove(box_drive *drive, uint32_t slot, uint64_t now_ms)
{
    tell(drive, change_of("remove", slot, now_ms));
}

void box_drive_tell_fill(box_drive *drive, uint64_t files, uint64_t file_bytes, uint64_t now_ms)
{
    json_t *change = change_of("fill", BOX_ITEM_ROOT, now_ms);
    json_object_set_new(change, "files", json_integer((json_int_t)files));
    json_object_set_new(change, "size", json_integer((json_int_t)file_bytes));
    tell(drive, change);
}

void box_drive_tell_forget(box_drive *drive)
{
    tell(drive, change_of("forget", BOX_ITEM_ROOT, drive->spec.now_ms));
}

void box_drive_tell_quota(box_drive *drive)
{
    json_t *change = change_of("quota", BOX_ITEM_ROOT, drive->spec.now_ms);
    json_object_set_new(change, "total", json_integer((json_int_t)drive->spec.total_bytes));
    tell(drive, change);
}

/* ---- replaying ---- */

/* A change that was read; every field is checked before anything moves. */
struct change {
    const json_t *json;
    tide_text what;
    uint32_t slot;
    uint64_t now_ms;
    struct box_file_times times;
    uint32_t parent;
    tide_text name;
};

static tide_status corrupt(tide_error *err, const char *what)
{
    return tide_error_set(err, TIDE_CORRUPT, "a change of a drive: %s", what);
}

static tide_status read_content(const json_t *json, struct box_content *content_out,
                                tide_error *err)
{
    uint64_t bytes = 0, seed = 0;
    tide_text text;
    const tide_status rc = tide_json_get_u64(json, "size", &bytes, err);
    if (rc != TIDE_OK)
        return rc;
    if (tide_json_get_u64(json, "seed", &seed, NULL) == TIDE_OK) {
        *content_out = box_content_made(seed, bytes);
        return TIDE_OK;
    }
    const bool kept = tide_json_get_text(json, "bytes", &text, NULL) == TIDE_OK;
    tide_auto_buf read = tide_buf_heap(BOX_CONTENT_KEPT_BYTES + 1);
    if ((!kept && tide_json_get_text(json, "hash", &text, NULL) != TIDE_OK) ||
        tide_base64_read(&read, text) != TIDE_OK)
        return corrupt(err, "no content");
    if (!kept) {
        if (read.bytes != BOX_QUICKXOR_BYTES || bytes <= BOX_QUICKXOR_COLUMNS)
            return corrupt(err, "not a hash");
        *content_out = box_content_hashed(bytes, (const uint8_t *)read.data);
        return TIDE_OK;
    }
    struct box_gather gather;
    box_gather_init(&gather);
    box_gather_add(&gather, (tide_text){tide_buf_cstr(&read), read.bytes});
    *content_out = box_content_stored(&gather);
    box_gather_done(&gather);
    return TIDE_OK;
}

static bool is(const struct change *change, const char *what)
{
    return tide_text_equal(change->what, tide_text_of(what));
}

/* Whether a place can be taken by the item. */
static bool fits(const box_drive *drive, const struct change *change)
{
    if (change->parent >= drive->items_count || !drive->items[change->parent].folder ||
        drive->items[change->parent].gone || box_name_wrong(change->name) != NULL)
        return false;
    const uint32_t there = box_drive_child(drive, change->parent, change->name);
    return there == BOX_ITEM_NONE || there == change->slot;
}

static tide_status read_place(const box_drive *drive, struct change *change, tide_error *err)
{
    uint64_t parent = 0;
    tide_status rc = tide_json_get_u64(change->json, "parent", &parent, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change->json, "name", &change->name, err);
    if (rc != TIDE_OK)
        return rc;
    change->parent = parent < BOX_ITEMS_MAX ? (uint32_t)parent : BOX_ITEM_NONE;
    return fits(drive, change) ? TIDE_OK : corrupt(err, "a place that cannot be");
}

static tide_status replay_add(box_drive *drive, struct change *change, tide_error *err)
{
    struct box_content content = {0};
    tide_status rc = read_place(drive, change, err);
    if (rc == TIDE_OK && change->slot != drive->items_count)
        rc = corrupt(err, "another number");
    const bool folder = json_object_get(change->json, "size") == NULL;
    if (rc == TIDE_OK && !folder)
        rc = read_content(change->json, &content, err);
    if (rc != TIDE_OK)
        return rc;
    (void)box_drive_add(drive, change->parent, change->name, folder ? NULL : &content,
                        change->times, change->now_ms);
    box_content_drop(&content);
    return TIDE_OK;
}

static tide_status replay_write(box_drive *drive, const struct change *change, tide_error *err)
{
    struct box_content content = {0};
    if (drive->items[change->slot].folder)
        return corrupt(err, "bytes of a folder");
    const tide_status rc = read_content(change->json, &content, err);
    if (rc == TIDE_OK)
        box_drive_write(drive, change->slot, &content, change->times, change->now_ms);
    box_content_drop(&content);
    return rc;
}

static tide_status replay_move(box_drive *drive, struct change *change, tide_error *err)
{
    const tide_status rc = read_place(drive, change, err);
    if (rc != TIDE_OK)
        return rc;
    if (change->slot == BOX_ITEM_ROOT || box_drive_is_below(drive, change->parent, change->slot))
        return corrupt(err, "a circle");
    box_drive_move(drive, change->slot, change->parent, change->name, change->now_ms);
    return TIDE_OK;
}

static tide_status replay_mark(box_drive *drive, const struct change *change, tide_error *err)
{
    tide_text word;
    box_mark mark = BOX_MARK_NONE;
    TIDE_TRY(tide_json_get_text(change->json, "as", &word, err));
    if (!box_mark_find(word, &mark) || mark == BOX_MARK_SHORTCUT ||
        !box_drive_mark_fits(drive, change->slot, mark))
        return corrupt(err, "a mark that cannot be");
    box_drive_mark(drive, change->slot, mark, change->now_ms);
    return TIDE_OK;
}

static tide_status replay_lead(box_drive *drive, const struct change *change, tide_error *err)
{
    struct box_lead lead = {.slot = change->slot};
    tide_text other, item;
    uint64_t folder = 0, lost = 0;
    TIDE_TRY(tide_json_get_text(change->json, "to_drive", &other, err));
    TIDE_TRY(tide_json_get_text(change->json, "to_item", &item, err));
    TIDE_TRY(tide_json_get_u64(change->json, "folder", &folder, err));
    TIDE_TRY(tide_json_get_u64(change->json, "lost", &lost, err));
    const struct box_item *here = &drive->items[change->slot];
    if (change->slot == BOX_ITEM_ROOT || !here->folder || here->count > 0 ||
        other.bytes >= sizeof lead.drive || item.bytes >= sizeof lead.item ||
        (here->mark != BOX_MARK_SHORTCUT && !box_drive_leads_fit(drive)))
        return corrupt(err, "a shortcut that cannot be");
    lead.folder = folder > 0;
    lead.lost = lost > 0;
    /* Older state files do not have it. */
    lead.read_only = json_integer_value(json_object_get(change->json, "read_only")) > 0;
    memcpy(lead.drive, other.data, other.bytes);
    memcpy(lead.item, item.data, item.bytes);
    box_drive_lead_set(drive, &lead, change->now_ms);
    return TIDE_OK;
}

static tide_status replay_quota(box_drive *drive, const struct change *change, tide_error *err)
{
    uint64_t total = 0;
    const tide_status rc = tide_json_get_u64(change->json, "total", &total, err);
    if (rc == TIDE_OK)
        box_drive_quota(drive, total);
    return rc;
}

static tide_status replay_fill(box_drive *drive, const struct change *change, tide_error *err)
{
    uint64_t files = 0, file_bytes = 0;
    tide_status rc = tide_json_get_u64(change->json, "files", &files, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change->json, "size", &file_bytes, err);
    if (rc == TIDE_OK && (files > drive->spec.files_max || drive->items_count > BOX_ITEMS_MAX / 2 ||
                          change->now_ms == 0))
        rc = corrupt(err, "too many files");
    if (rc == TIDE_OK)
        box_drive_fill(drive, files, file_bytes, change->now_ms);
    return rc;
}

static tide_status replay(box_drive *drive, struct change *change, tide_error *err)
{
    if (is(change, "add"))
        return replay_add(drive, change, err);
    if (is(change, "forget")) {
        box_drive_forget(drive);
        return TIDE_OK;
    }
    if (is(change, "fill"))
        return replay_fill(drive, change, err);
    if (is(change, "quota"))
        return replay_quota(drive, change, err);
    if (change->slot >= drive->items_count || drive->items[change->slot].gone)
        return corrupt(err, "an item that is not there");
    if (is(change, "write"))
        return replay_write(drive, change, err);
    if (is(change, "move"))
        return replay_move(drive, change, err);
    if (is(change, "mark"))
        return replay_mark(drive, change, err);
    if (is(change, "lead"))
        return replay_lead(drive, change, err);
    if (is(change, "touch"))
        box_drive_touch(drive, change->slot, change->times, change->now_ms);
    else if (is(change, "remove") && change->slot != BOX_ITEM_ROOT)
        box_drive_remove(drive, change->slot, change->now_ms);
    else
        return corrupt(err, "of no known kind");
    return TIDE_OK;
}

tide_status box_drive_replay(box_drive *drive, const json_t *json, tide_error *err)
{
    struct change change = {.json = json};
    uint64_t slot = 0;
    tide_status rc = tide_json_get_text(json, "do", &change.what, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(json, "item", &slot, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(json, "now", &change.now_ms, err);
    if (rc != TIDE_OK)
        return rc;
    if (slot >= BOX_ITEMS_MAX)
        return corrupt(err, "a number that is too large");
    change.slot = (uint32_t)slot;
    (void)tide_json_get_u64(json, "file_made", &change.times.made_ms, NULL);
    (void)tide_json_get_u64(json, "file_changed", &change.times.changed_ms, NULL);
    return replay(drive, &change, err);
}
