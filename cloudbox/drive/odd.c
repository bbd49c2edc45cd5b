/* odd.c - what is odd about some items: marks, shortcuts into other drives, and the states that items had before their
 * latest changes. */
#include "base/check.h"
#include "cloudbox/drive/inside.h"

#include <strings.h>

/* ---- marks ---- */

static const char *const words[BOX_MARKS] = {"none", "package", "malware", "pending", "shortcut"};

const char *box_mark_word(box_mark mark)
{
    TIDE_ASSERT(mark < BOX_MARKS);
    return words[mark];
}

bool box_mark_find(tide_text word, box_mark *mark_out)
{
    for (size_t i = 0; i < BOX_MARKS; i++) {
        if (tide_text_equal(word, tide_text_of(words[i]))) {
            *mark_out = (box_mark)i;
            return true;
        }
    }
    return false;
}

bool box_drive_mark_fits(const box_drive *drive, uint32_t slot, box_mark mark)
{
    const struct box_item *item = box_drive_at(drive, slot);
    if (slot == BOX_ITEM_ROOT || item->gone || item->mark == BOX_MARK_SHORTCUT)
        return false;
    return mark == BOX_MARK_NONE || (mark == BOX_MARK_PACKAGE) == item->folder;
}

void box_drive_mark(box_drive *drive, uint32_t slot, box_mark mark, uint64_t now_ms)
{
    TIDE_ASSERT(mark != BOX_MARK_SHORTCUT && box_drive_mark_fits(drive, slot, mark));
    drive->items[slot].mark = (uint8_t)mark;
    box_drive_changed(drive, slot, now_ms);
    box_drive_tell_mark(drive, slot, now_ms);
}

/* ---- shortcuts ---- */

const struct box_lead *box_drive_lead(const box_drive *drive, uint32_t slot)
{
    for (size_t i = 0; i < drive->leads_count; i++)
        if (drive->leads[i].slot == slot)
            return &drive->leads[i];
    return NULL;
}

bool box_drive_leads_fit(const box_drive *drive)
{
    return drive->leads_count < BOX_LEADS_MAX;
}

void box_drive_lead_set(box_drive *drive, const struct box_lead *lead, uint64_t now_ms)
{
    const uint32_t slot = lead->slot;
    TIDE_ASSERT(slot != BOX_ITEM_ROOT && box_drive_at(drive, slot)->folder);
    TIDE_ASSERT(!drive->items[slot].gone && drive->items[slot].count == 0);
    struct box_lead *place = NULL;
    for (size_t i = 0; i < drive->leads_count && place == NULL; i++)
        if (drive->leads[i].slot == slot)
            place = &drive->leads[i];
    if (place == NULL) {
        TIDE_ASSERT(
            TIDE_GROW(drive->leads, drive->leads_capacity, drive->leads_count + 1, BOX_LEADS_MAX));
        place = &drive->leads[drive->leads_count++];
    }
    *place = *lead;
    drive->items[slot].mark = BOX_MARK_SHORTCUT;
    box_drive_changed(drive, slot, now_ms);
    box_drive_tell_lead(drive, lead, now_ms);
}

const struct box_lead *box_drive_lead_to(const box_drive *drive, tide_text id, size_t *cursor_io)
{
    while (*cursor_io < drive->leads_count) {
        const struct box_lead *lead = &drive->leads[(*cursor_io)++];
        if (!lead->lost && !drive->items[lead->slot].gone && id.bytes == strlen(lead->drive) &&
            strncasecmp(id.data, lead->drive, id.bytes) == 0) /* as ids of drives are compared */
            return lead;
    }
    return NULL;
}

/* ---- states of before ---- */

static void former_drop(struct box_former *former)
{
    if (!former->used)
        return;
    if (!former->item.folder)
        box_content_drop(&former->item.content);
    tide_mem_free(tide_mem_heap(), former->item.name, strlen(former->item.name) + 1);
    former->used = false;
}

void box_drive_remember(box_drive *drive, uint32_t slot)
{
    struct box_former *former = &drive->formers[drive->formers_next];
    drive->formers_next = (drive->formers_next + 1) % BOX_FORMERS;
    char room[BOX_NAME_BYTES_MAX + 1];
    former_drop(former);
    *former = (struct box_former){.used = true, .slot = slot, .item = drive->items[slot]};
    if (!former->item.folder)
        former->item.content = box_content_hold(&drive->items[slot].content);
    former->item.name = box_drive_copy_name(box_drive_name(drive, slot, room));
}

const struct box_item *box_drive_former(const box_drive *drive, uint32_t slot)
{
    for (size_t i = 1; i <= BOX_FORMERS; i++) {
        const struct box_former *former =
            &drive->formers[(drive->formers_next + BOX_FORMERS - i) % BOX_FORMERS];
        if (former->used && former->slot == slot)
            return &former->item;
    }
    return NULL;
}

void box_drive_odd_done(box_drive *drive)
{
    for (size_t i = 0; i < BOX_FORMERS; i++)
        former_drop(&drive->formers[i]);
    tide_mem_free(tide_mem_heap(), drive->leads, drive->leads_capacity * sizeof *drive->leads);
}
