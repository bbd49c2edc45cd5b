/* Folders, moves and deletions on both sides, each with its gate (S4, S10, S17, S18). */
#include "drive/local/hash.h"
#include "drive_act_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#define ROOT TIDE_TEXT("")

static struct tide_drive_online was_of(const struct tide_onedrive_answer *answer)
{
    const struct tide_onedrive_item *item = &answer->item;
    struct tide_drive_online was = {
        .id = item->id,
        .parent_id = item->parent_id,
        .name = item->name,
        .ctag = item->ctag,
        .kind = item->kind == TIDE_ONEDRIVE_FOLDER ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
        .content = {.bytes = item->size, .has_qxh = item->has_hash},
    };
    memcpy(was.content.qxh, item->hash, sizeof item->hash);
    return was;
}

static void reset_it(struct fixture *f, const struct tide_request *request,
                     struct tide_sim_answer *answer)
{
    (void)f;
    (void)request;
    answer->reset = true;
}

/* ---- folders ---- */

CASE(a_folder_is_made_online_or_taken_if_it_is_there)
{
    struct tide_onedrive_answer made = {.value = NULL}, again = {.value = NULL};
    EXPECT(tide_drive_mkdir_remote(&f->act, ROOT, TIDE_TEXT("d"), &made, &f->err), TIDE_OK);
    assert_true(is_online(f, "d"));
    EXPECT(tide_drive_mkdir_remote(&f->act, ROOT, TIDE_TEXT("d"), &again, &f->err), TIDE_OK);
    assert_true(tide_text_equal(made.item.id, again.item.id));
    /* A file has the name (D30); and the folder above was deleted meanwhile. */
    online(f, "put", "{\"path\":\"file\",\"content\":\"abc\"}");
    EXPECT(tide_drive_mkdir_remote(&f->act, ROOT, TIDE_TEXT("file"), &again, &f->err), TIDE_EXISTS);
    assert_null(again.value);
    online(f, "delete", "{\"path\":\"d\"}");
    EXPECT(tide_drive_mkdir_remote(&f->act, made.item.id, TIDE_TEXT("e"), &again, &f->err),
           TIDE_SUPERSEDED);
    tide_onedrive_answer_done(&made);
}

CASE(a_folder_whose_answer_is_lost_is_found)
{
    struct tide_onedrive_answer made = {.value = NULL};
    f->watched = "POST ";
    f->after = reset_it;
    EXPECT(tide_drive_mkdir_remote(&f->act, ROOT, TIDE_TEXT("d"), &made, &f->err), TIDE_OK);
    assert_true(made.item.id.bytes > 0);
    assert_int_equal(f->seen, 1);
    tide_onedrive_answer_done(&made);
}

CASE(a_folder_is_made_here_or_taken_if_it_is_there)
{
    struct tide_entry made, again;
    EXPECT(tide_drive_mkdir_local(&f->act, ROOT, TIDE_TEXT("d"), &made, &f->err), TIDE_OK);
    EXPECT(tide_drive_mkdir_local(&f->act, ROOT, TIDE_TEXT("d"), &again, &f->err), TIDE_OK);
    assert_int_equal(made.inode, again.inode);
    EXPECT(tide_drive_mkdir_local(&f->act, TIDE_TEXT("d"), TIDE_TEXT("e"), &made, &f->err),
           TIDE_OK);
    assert_true(is_here(f, "d/e"));
    put_file(f, "file", "abc");
    EXPECT(tide_drive_mkdir_local(&f->act, ROOT, TIDE_TEXT("file"), &again, &f->err),
           TIDE_SUPERSEDED);
    EXPECT(tide_drive_mkdir_local(&f->act, TIDE_TEXT("none"), TIDE_TEXT("e"), &again, &f->err),
           TIDE_SUPERSEDED);
}

/* ---- moves ---- */

CASE(an_item_is_moved_and_renamed_online_once)
{
    struct tide_onedrive_answer moved = {.value = NULL};
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"abc\"}");
    online(f, "folder", "{\"path\":\"d\"}");
    struct tide_onedrive_answer item = item_at(f, "a.txt"), folder = item_at(f, "d");
    const struct tide_drive_online was = was_of(&item);
    EXPECT(
        tide_drive_move_remote(&f->act, &was, folder.item.id, TIDE_TEXT("B.txt"), &moved, &f->err),
        TIDE_OK);
    assert_true(is_online(f, "d/B.txt"));
    assert_false(is_online(f, "a.txt"));
    assert_true(tide_text_equal(moved.item.id, was.id));
    /* Again, as after a crash: nothing is sent. */
    f->watched = "PATCH ";
    EXPECT(
        tide_drive_move_remote(&f->act, &was, folder.item.id, TIDE_TEXT("B.txt"), &moved, &f->err),
        TIDE_OK);
    assert_int_equal(f->seen, 0);
    assert_true(tide_text_equal(moved.item.name, TIDE_TEXT("B.txt")));
    tide_onedrive_answer_done(&moved);
    tide_onedrive_answer_done(&folder);
    tide_onedrive_answer_done(&item);
}

CASE(a_rename_online_whose_answer_is_lost_is_found)
{
    struct tide_onedrive_answer moved = {.value = NULL};
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"abc\"}");
    struct tide_onedrive_answer item = item_at(f, "a.txt");
    const struct tide_drive_online was = was_of(&item);
    f->watched = "PATCH ";
    f->after = reset_it;
    EXPECT(
        tide_drive_move_remote(&f->act, &was, was.parent_id, TIDE_TEXT("A.txt"), &moved, &f->err),
        TIDE_OK);
    assert_int_equal(f->seen, 1);
    assert_true(tide_text_equal(moved.item.name, TIDE_TEXT("A.txt"))); /* only its case (D25) */
    tide_onedrive_answer_done(&moved);
    tide_onedrive_answer_done(&item);
}

static void moved_by_another(struct fixture *f)
{
    online(f, "move", "{\"path\":\"a.txt\",\"to\":\"c.txt\"}");
}

CASE(an_item_that_is_elsewhere_online_is_not_moved)
{
    struct tide_onedrive_answer moved = {.value = NULL};
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"abc\"}");
    online(f, "put", "{\"path\":\"taken.txt\",\"content\":\"def\"}");
    struct tide_onedrive_answer item = item_at(f, "a.txt");
    const struct tide_drive_online was = was_of(&item);
    EXPECT(tide_drive_move_remote(&f->act, &was, was.parent_id, TIDE_TEXT("TAKEN.txt"), &moved,
                                  &f->err),
           TIDE_EXISTS);
    f->watched = "PATCH "; /* between our look and our call: If-Match */
    f->before = moved_by_another;
    EXPECT(
        tide_drive_move_remote(&f->act, &was, was.parent_id, TIDE_TEXT("b.txt"), &moved, &f->err),
        TIDE_SUPERSEDED);
    assert_true(is_online(f, "c.txt"));
    EXPECT(
        tide_drive_move_remote(&f->act, &was, was.parent_id, TIDE_TEXT("b.txt"), &moved, &f->err),
        TIDE_SUPERSEDED);
    online(f, "delete", "{\"path\":\"c.txt\"}");
    EXPECT(
        tide_drive_move_remote(&f->act, &was, was.parent_id, TIDE_TEXT("b.txt"), &moved, &f->err),
        TIDE_SUPERSEDED);
    assert_false(is_online(f, "b.txt"));
    tide_onedrive_answer_done(&moved);
    tide_onedrive_answer_done(&item);
}

CASE(an_entry_is_moved_here_once_and_only_as_planned)
{
    struct tide_entry moved;
    put_file(f, "a.txt", "abc");
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    struct tide_drive_here was = {.name = TIDE_TEXT("a.txt"), .entry = entry_at(f, "a.txt")};
    EXPECT(tide_drive_move_local(&f->act, &was, TIDE_TEXT("d"), TIDE_TEXT("b"), &moved, &f->err),
           TIDE_OK);
    assert_file(f, "d/b", "abc");
    EXPECT(tide_drive_move_local(&f->act, &was, TIDE_TEXT("d"), TIDE_TEXT("b"), &moved, &f->err),
           TIDE_OK); /* as after a crash */
    assert_int_equal(moved.inode, was.entry.inode);
    EXPECT(tide_drive_move_local(&f->act, &was, ROOT, TIDE_TEXT("c"), &moved, &f->err),
           TIDE_SUPERSEDED); /* it is no longer at a.txt */

    put_file(f, "a.txt", "new");
    EXPECT(tide_drive_move_local(&f->act, &was, ROOT, TIDE_TEXT("c"), &moved, &f->err),
           TIDE_SUPERSEDED); /* another file has its name */
    was.entry = entry_at(f, "a.txt");
    put_file(f, "taken", "the user's");
    EXPECT(tide_drive_move_local(&f->act, &was, ROOT, TIDE_TEXT("taken"), &moved, &f->err),
           TIDE_SUPERSEDED);
    assert_file(f, "taken", "the user's");
    /* A folder is the same one, whatever was put into it. */
    struct tide_drive_here folder = {.name = TIDE_TEXT("d"), .entry = entry_at(f, "d")};
    put_file(f, "d/more", "x");
    EXPECT(tide_drive_move_local(&f->act, &folder, ROOT, TIDE_TEXT("e"), &moved, &f->err), TIDE_OK);
    assert_file(f, "e/more", "x");
}

/* ---- deletions ---- */

CASE(a_file_is_deleted_online_only_as_it_was_synced)
{
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"abc\"}");
    struct tide_onedrive_answer item = item_at(f, "a.txt");
    const struct tide_drive_online was = was_of(&item);
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"abd\"}");
    EXPECT(tide_drive_delete_remote(&f->act, &was, &f->err), TIDE_SUPERSEDED);
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"abc\"}");
    online(f, "move", "{\"path\":\"a.txt\",\"to\":\"c.txt\"}");
    EXPECT(tide_drive_delete_remote(&f->act, &was, &f->err), TIDE_SUPERSEDED);
    online(f, "move", "{\"path\":\"c.txt\",\"to\":\"a.txt\"}");
    fault(f, "{\"method\":\"graph.drive.item.get\",\"count\":1,\"fault\":\"403\"}");
    assert_int_not_equal(tide_drive_delete_remote(&f->act, &was, &f->err), TIDE_OK);
    assert_true(is_online(f, "a.txt"));
    EXPECT(tide_drive_delete_remote(&f->act, &was, &f->err), TIDE_OK);
    assert_false(is_online(f, "a.txt"));
    EXPECT(tide_drive_delete_remote(&f->act, &was, &f->err), TIDE_OK); /* as after a crash */
    tide_onedrive_answer_done(&item);
}

static void edited_by_another(struct fixture *f)
{
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"edited\"}");
}

CASE(an_edit_between_look_and_deletion_is_kept)
{
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"abc\"}");
    struct tide_onedrive_answer item = item_at(f, "a.txt");
    const struct tide_drive_online was = was_of(&item);
    f->watched = "DELETE ";
    f->before = edited_by_another;
    EXPECT(tide_drive_delete_remote(&f->act, &was, &f->err), TIDE_SUPERSEDED);
    assert_true(is_online(f, "a.txt"));
    f->before = NULL;
    f->after = reset_it; /* it is deleted, and nobody says so */
    tide_onedrive_answer_done(&item);
    item = item_at(f, "a.txt");
    const struct tide_drive_online now = was_of(&item);
    EXPECT(tide_drive_delete_remote(&f->act, &now, &f->err), TIDE_OK);
    assert_false(is_online(f, "a.txt"));
    tide_onedrive_answer_done(&item);
}

/* S18. */
CASE(a_folder_is_deleted_only_when_it_is_empty)
{
    online(f, "put", "{\"path\":\"d/a.txt\",\"content\":\"abc\"}");
    struct tide_onedrive_answer item = item_at(f, "d");
    const struct tide_drive_online was = was_of(&item);
    EXPECT(tide_drive_delete_remote(&f->act, &was, &f->err), TIDE_SUPERSEDED);
    assert_true(is_online(f, "d/a.txt"));
    online(f, "delete", "{\"path\":\"d/a.txt\"}");
    EXPECT(tide_drive_delete_remote(&f->act, &was, &f->err), TIDE_OK);
    assert_false(is_online(f, "d"));
    tide_onedrive_answer_done(&item);

    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    put_file(f, "d/a.txt", "abc");
    const struct tide_drive_here here = {.name = TIDE_TEXT("d"), .entry = entry_at(f, "d")};
    EXPECT(tide_drive_delete_local(&f->act, &here, NULL, &f->err), TIDE_SUPERSEDED);
    assert_file(f, "d/a.txt", "abc");
    assert_int_equal(unlink(textf("%s/d/a.txt", f->root)), 0);
    EXPECT(tide_drive_delete_local(&f->act, &here, NULL, &f->err), TIDE_OK);
    assert_false(is_here(f, "d"));
    EXPECT(tide_drive_delete_local(&f->act, &here, NULL, &f->err), TIDE_OK);
}

/* S4, F22: the same size and time, other bytes. */
CASE(a_file_is_deleted_here_only_with_the_bytes_of_the_baseline)
{
    struct tide_drive_content baseline;
    put_file(f, "a.txt", "abc");
    struct tide_drive_here was = {.name = TIDE_TEXT("a.txt")};
    OK(tide_drive_hash_file(f->act.root, was.name, &baseline, &was.entry, &f->err));
    put_file(f, "a.txt", "abd");
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
                                      {.tv_sec = (time_t)(was.entry.mtime_ns / 1000000000),
                                       .tv_nsec = (long)(was.entry.mtime_ns % 1000000000)}};
    assert_int_equal(utimensat(f->act.root, "a.txt", times, 0), 0);
    was.entry = entry_at(f, "a.txt");
    EXPECT(tide_drive_delete_local(&f->act, &was, &baseline, &f->err), TIDE_SUPERSEDED);
    assert_file(f, "a.txt", "abd");

    put_file(f, "a.txt", "abc"); /* other times, the same bytes: not changed (D14) */
    EXPECT(tide_drive_delete_local(&f->act, &was, &baseline, &f->err), TIDE_OK);
    assert_false(is_here(f, "a.txt"));
    assert_file(f, ".tidemark-trash/1970-01-01/a.txt", "abc");
    EXPECT(tide_drive_delete_local(&f->act, &was, &baseline, &f->err), TIDE_OK);
    was.folder = TIDE_TEXT("unmounted"); /* S13 */
    EXPECT(tide_drive_delete_local(&f->act, &was, &baseline, &f->err), TIDE_SUPERSEDED);
}
