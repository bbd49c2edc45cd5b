/* generate.c - a drive of any size from a seed: fifty files to a folder, a hundred folders to a
 * folder above.  Names have what clients get wrong: blanks, '#', '%', '+', letters beyond ASCII. */
#include "base/check.h"
#include "base/rng.h"
#include "cloudbox/drive/inside.h"

#include <stdio.h>

enum {
    FILES_PER_FOLDER = 50,
    FOLDERS_PER_SHELF = 100,
    SPREAD_BITS = 20, /* sizes up to 1 MiB, most of them small */
};
#define DAY_MS  UINT64_C(86400000)
#define YEAR_MS (365 * DAY_MS)

static uint64_t luck_of(const box_drive *drive, uint32_t slot)
{
    tide_rng rng = tide_rng_seeded(drive->spec.seed ^ (uint64_t)slot << 20);
    return tide_rng_next(&rng);
}

tide_text box_drive_made_name(const box_drive *drive, uint32_t slot,
                              char room[BOX_NAME_BYTES_MAX + 1])
{
    static const struct {
        const char *before, *after;
    } forms[] = {
        {"file-", ".txt"},
        {"IMG_", ".jpg"},
        {"notes ", ".md"},
        {"Report ", " (final).pdf"},
        {"data-", ".bin"},
        {"#", " 100%+tax.csv"},
        {"\xc3\x9c"
         "bung ",
         ".odt"},
        {"\xd0\xbf\xd0\xbb\xd0\xb0\xd0\xbd-", ".txt"},
        {"folder-", ""},
    };
    enum { FOLDER = sizeof forms / sizeof forms[0] - 1 };
    const size_t form = box_drive_at(drive, slot)->folder ? FOLDER : luck_of(drive, slot) % FOLDER;
    const int bytes = snprintf(room, BOX_NAME_BYTES_MAX + 1, "%s%07u%s", forms[form].before, slot,
                               forms[form].after);
    return (tide_text){room, (size_t)bytes};
}

static uint64_t size_of(uint64_t file_bytes, uint64_t luck)
{
    if (file_bytes != 0)
        return file_bytes;
    const unsigned bits = (unsigned)(luck >> 32) % (SPREAD_BITS + 1);
    return luck & ((UINT64_C(1) << bits) - 1); /* also none at all */
}

static void add_file(box_drive *drive, uint32_t folder, uint64_t file_bytes, uint64_t now_ms)
{
    const uint64_t luck = luck_of(drive, drive->items_count);
    const uint64_t age_ms = (luck >> 8) % (now_ms > YEAR_MS ? YEAR_MS : now_ms);
    /* Whole seconds, as most file systems and clients have them. */
    const uint64_t changed_ms = (now_ms - age_ms) / 1000 * 1000;
    const struct box_content content = box_content_made(luck >> 1, size_of(file_bytes, luck));
    const struct box_file_times times = {.made_ms = changed_ms, .changed_ms = changed_ms};
    (void)box_drive_place(drive, folder, TIDE_TEXT_NONE, &content, times, changed_ms);
}

void box_drive_fill(box_drive *drive, uint64_t files, uint64_t file_bytes, uint64_t now_ms)
{
    const struct box_file_times times = {0};
    uint32_t shelf = BOX_ITEM_ROOT;
    uint32_t folder = BOX_ITEM_ROOT;
    uint64_t folders = 0;
    TIDE_ASSERT(now_ms > 0);
    for (uint64_t i = 0; i < files; i++) {
        if (i % FILES_PER_FOLDER == 0) {
            if (folders++ % FOLDERS_PER_SHELF == 0)
                shelf = box_drive_place(drive, BOX_ITEM_ROOT, TIDE_TEXT_NONE, NULL, times, now_ms);
            folder = box_drive_place(drive, shelf, TIDE_TEXT_NONE, NULL, times, now_ms);
        }
        add_file(drive, folder, file_bytes, now_ms);
    }
    box_drive_tell_fill(drive, files, file_bytes, now_ms);
}
