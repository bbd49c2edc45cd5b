/* A drive by itself: items, the tree, the log, generated drives. */
#include "cloudbox/drive/drive.h"
#include "cloudbox/tests/owned.h"

#include <ctype.h>

#define NOW_MS UINT64_C(1790000000000)

static const struct box_file_times no_times;

static void owned_drive(box_drive **drive)
{
    assert_null(box_drive_check(*drive));
    box_drive_free(*drive);
}
#define auto_drive __attribute__((cleanup(owned_drive))) box_drive

static box_drive *drive_of(uint64_t files)
{
    box_drive *drive = box_drive_new(&(struct box_drive_spec){.seed = 4, .now_ms = NOW_MS});
    box_drive_fill(drive, files, 0, NOW_MS);
    return drive;
}

static uint32_t add_file(box_drive *drive, uint32_t parent, const char *name, uint64_t bytes)
{
    const struct box_content content = box_content_made(bytes, bytes);
    return box_drive_add(drive, parent, tide_text_of(name), &content, no_times, NOW_MS);
}

static uint32_t add_folder(box_drive *drive, uint32_t parent, const char *name)
{
    return box_drive_add(drive, parent, tide_text_of(name), NULL, no_times, NOW_MS);
}

/* The items with changes from a line on, as "3 4 7". */
static const char *changes_since(const box_drive *drive, uint32_t line)
{
    static char text[500];
    size_t used = 0;
    text[0] = '\0';
    for (; line < box_drive_log_end(drive); line++) {
        const uint32_t slot = box_drive_log_at(drive, line);
        if (slot != BOX_ITEM_NONE)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, used > 0 ? " %u" : "%u", slot);
    }
    return text;
}

TEST(an_item_is_found_by_id_and_by_name_through_moves)
{
    auto_drive *drive = drive_of(0);
    const uint32_t folder = add_folder(drive, BOX_ITEM_ROOT, "Folder");
    const uint32_t file = add_file(drive, BOX_ITEM_ROOT, "a.txt", 10);
    char id[BOX_ITEM_ID_BYTES], room[BOX_NAME_BYTES_MAX + 1];
    box_drive_id(drive, file, id);
    assert_int_equal(box_drive_child(drive, BOX_ITEM_ROOT, TIDE_TEXT("A.TXT")), file);
    box_drive_move(drive, file, folder, TIDE_TEXT("b.txt"), NOW_MS + 5);
    assert_int_equal(box_drive_find(drive, tide_text_of(id)), file);
    assert_int_equal(box_drive_child(drive, BOX_ITEM_ROOT, TIDE_TEXT("a.txt")), BOX_ITEM_NONE);
    assert_int_equal(box_drive_child(drive, folder, TIDE_TEXT("b.txt")), file);
    assert_string_equal(box_drive_name(drive, file, room).data, "b.txt");
    assert_int_equal(box_drive_at(drive, folder)->content.bytes, 10);
    assert_int_equal(box_drive_used(drive), 10);
    assert_true(box_drive_is_below(drive, file, folder));
    assert_false(box_drive_is_below(drive, folder, file));
}

TEST(ids_of_both_kinds_of_drives_are_read_back_and_others_are_not)
{
    for (int business = 0; business < 2; business++) {
        auto_drive *drive = box_drive_new(
            &(struct box_drive_spec){.seed = 4, .now_ms = NOW_MS, .business = business == 1});
        box_drive_fill(drive, 20, 0, NOW_MS);
        char id[BOX_ITEM_ID_BYTES];
        for (uint32_t slot = 0; slot < box_drive_slots(drive); slot++) {
            box_drive_id(drive, slot, id);
            assert_int_equal(box_drive_find(drive, tide_text_of(id)), slot);
            for (char *c = id; *c != '\0'; c++)
                *c = (char)tolower(*c);
            assert_int_equal(box_drive_find(drive, tide_text_of(id)), slot);
        }
        id[business == 1 ? 5 : 3] ^= 1;
        assert_int_equal(box_drive_find(drive, tide_text_of(id)), BOX_ITEM_NONE);
        assert_int_equal(box_drive_find(drive, TIDE_TEXT("")), BOX_ITEM_NONE);
        assert_int_equal(box_drive_find(drive, TIDE_TEXT("root")), BOX_ITEM_NONE);
        box_drive_id(drive, box_drive_slots(drive), id);
        assert_int_equal(box_drive_find(drive, tide_text_of(id)), BOX_ITEM_NONE);
    }
}

TEST(the_log_gives_each_changed_item_once_in_its_latest_state)
{
    auto_drive *drive = drive_of(0);
    const uint32_t folder = add_folder(drive, BOX_ITEM_ROOT, "f");
    const uint32_t a = add_file(drive, folder, "a", 1);
    const uint32_t b = add_file(drive, folder, "b", 1);
    assert_string_equal(changes_since(drive, 0), "0 1 2 3");
    const uint32_t since = box_drive_log_end(drive);
    const struct box_content content = box_content_made(1, 2);
    box_drive_write(drive, b, &content, no_times, NOW_MS);
    box_drive_move(drive, a, BOX_ITEM_ROOT, TIDE_TEXT("c"), NOW_MS);
    box_drive_write(drive, b, &content, no_times, NOW_MS);
    assert_string_equal(changes_since(drive, since), "2 3");
    assert_string_equal(changes_since(drive, 0), "0 1 2 3");
    const uint32_t later = box_drive_log_end(drive);
    box_drive_remove(drive, folder, NOW_MS);
    assert_string_equal(changes_since(drive, later), "1"); /* what was in it has no line */
    assert_true(box_drive_at(drive, b)->gone);
    assert_false(box_drive_at(drive, a)->gone);
}

TEST(etag_moves_with_every_change_and_ctag_with_content_and_below)
{
    auto_drive *drive = drive_of(0);
    const uint32_t folder = add_folder(drive, BOX_ITEM_ROOT, "f");
    const uint32_t file = add_file(drive, folder, "a", 1);
    const struct box_item *item = box_drive_at(drive, file);
    const uint32_t version = item->version, content_version = item->content_version;
    const uint32_t below = box_drive_at(drive, folder)->content_version;
    box_drive_touch(drive, file, (struct box_file_times){.changed_ms = 5000}, NOW_MS + 1);
    assert_int_equal(item->version, version + 1);
    assert_int_equal(item->content_version, content_version);
    assert_int_equal(item->file_changed_ms, 5000);
    assert_int_equal(item->changed_ms, NOW_MS + 1);
    const struct box_content content = box_content_made(1, 2);
    box_drive_write(drive, file, &content, no_times, NOW_MS + 2);
    assert_int_equal(item->version, version + 2);
    assert_int_equal(item->content_version, content_version + 1);
    assert_true(box_drive_at(drive, folder)->content_version > below);
}

TEST(a_listing_continues_behind_an_item_that_left)
{
    auto_drive *drive = drive_of(0);
    uint32_t files[5];
    for (uint32_t i = 0; i < 5; i++)
        files[i] = add_file(drive, BOX_ITEM_ROOT, (char[]){(char)('a' + i), '\0'}, 1);
    const uint32_t place = box_drive_at(drive, files[1])->place;
    assert_int_equal(box_drive_after(drive, BOX_ITEM_ROOT, place, files[1]), files[2]);
    box_drive_remove(drive, files[1], NOW_MS);
    box_drive_remove(drive, files[2], NOW_MS);
    assert_int_equal(box_drive_after(drive, BOX_ITEM_ROOT, place, files[1]), files[3]);
    assert_int_equal(box_drive_after(drive, BOX_ITEM_ROOT, 0, BOX_ITEM_NONE), files[0]);
}

TEST(a_generated_drive_is_whole_and_the_same_each_time)
{
    auto_drive *drive = drive_of(12345);
    auto_drive *again = drive_of(12345);
    char room[BOX_NAME_BYTES_MAX + 1], other[BOX_NAME_BYTES_MAX + 1];
    uint64_t files = 0, bytes = 0;
    assert_int_equal(box_drive_slots(drive), box_drive_slots(again));
    for (uint32_t slot = 1; slot < box_drive_slots(drive); slot++) {
        const struct box_item *item = box_drive_at(drive, slot);
        const tide_text name = box_drive_name(drive, slot, room);
        assert_true(tide_text_equal(name, box_drive_name(again, slot, other)));
        assert_null(box_name_wrong(name));
        files += item->folder ? 0 : 1;
        bytes += item->folder ? 0 : item->content.bytes;
        assert_int_equal(item->content.bytes, box_drive_at(again, slot)->content.bytes);
    }
    assert_int_equal(files, 12345);
    assert_int_equal(bytes, box_drive_used(drive));
}

int main(void)
{
    return tests_run(NULL);
}
