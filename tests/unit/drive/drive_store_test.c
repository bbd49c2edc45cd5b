/* drive_store_test.c - the state of a drive (DST1 to DST6).
 *
 * Goal: rows are what finished rounds and scans proved; a plan made from the working set is the plan
 * made from all rows; a file of a newer version is left alone.
 * Method: one SQLite database in memory; each rule of the feed and of scans as a short story.
 * Crashes are in tests/sim/drive. */
#include "db/db.h"
#include "drive/store/concerns.h"
#include "drive/store/look.h"
#include "drive/store/report.h"
#include "drive/store/store.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/test.h"

struct fixture {
    sqlite3 *handle;
    tide_rows db;
    tide_error err;
    struct tide_drive_loaded loaded;
};

static const struct tide_drive_home home = {"drive", "root", "marker"};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_int_equal(sqlite3_open(":memory:", &f->handle), SQLITE_OK);
    f->db = (tide_rows){.sqlite = f->handle, .number = 1};
    OK(tide_drive_store_tables(f->db, &f->err));
    OK(tide_drive_store_set_up(f->db, &home, &f->err));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tide_drive_loaded_done(&f->loaded);
    assert_int_equal(sqlite3_close(f->handle), SQLITE_OK);
    free(f);
    return 0;
}

static struct tide_drive_seen seen(const char *id, const char *parent, const char *name,
                                   uint64_t content)
{
    struct tide_drive_seen item = {
        .id = tide_text_of(id),
        .parent_id = tide_text_of(parent),
        .name = tide_text_of(name),
        .etag = TIDE_TEXT("e"),
        .ctag = TIDE_TEXT("c"),
        .kind = content == 0 ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
        .state = TIDE_DRIVE_REMOTE_LIVE,
        .content = {.bytes = content, .has_qxh = content > 0},
    };
    memcpy(item.content.qxh, &content, sizeof content);
    return item;
}

static struct tide_drive_seen tombstone(const char *id)
{
    return (struct tide_drive_seen){.id = tide_text_of(id),
                                    .parent_id = TIDE_TEXT_NONE,
                                    .kind = TIDE_DRIVE_FILE,
                                    .state = TIDE_DRIVE_REMOTE_GONE,
                                    .etag = TIDE_TEXT(""),
                                    .ctag = TIDE_TEXT("")};
}

static void page(struct fixture *f, const struct tide_drive_seen *items, size_t count, bool last)
{
    OK(tide_drive_page(f->db, items, count, last ? TIDE_TEXT_NONE : TIDE_TEXT("next"),
                       last ? TIDE_TEXT("delta") : TIDE_TEXT_NONE, 1000, &f->err));
}

static void round_of(struct fixture *f, tide_drive_round kind, const struct tide_drive_seen *items,
                     size_t count)
{
    OK(tide_drive_round_begin(f->db, kind, &f->err));
    page(f, items, count, true);
}

static void load(struct fixture *f, uint64_t now_ms)
{
    tide_drive_loaded_done(&f->loaded);
    OK(tide_drive_load(f->db, 1000, now_ms, tide_mem_heap(), &f->loaded, &f->err));
}

static const struct tide_drive_remote *remote(struct fixture *f, const char *id)
{
    uint64_t item = 0;
    if (tide_drive_item_of(f->db, tide_text_of(id), &item, &f->err) != TIDE_OK)
        return NULL;
    for (size_t i = 0; i < f->loaded.trees.remotes_count; i++)
        if (f->loaded.remotes[i].item == item)
            return &f->loaded.remotes[i];
    return NULL;
}

static uint64_t number(struct fixture *f, const char *sql)
{
    uint64_t value = 0;
    OK(tide_rows_number(f->db, "a test", &value, &f->err, sql));
    return value;
}

static struct tide_drive_found found_of(uint64_t parent, const char *name, uint64_t content)
{
    struct tide_drive_found found = {
        .parent = parent,
        .name = tide_text_of(name),
        .identity = {1, 1000 + content, 1000 + content},
        .kind = content == 0 ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
        .state = TIDE_DRIVE_LOCAL_LIVE,
        .nlink = 1,
        .content = {.bytes = content, .has_qxh = content > 0, .has_strong = content > 0}};
    memcpy(found.content.qxh, &content, sizeof content);
    memcpy(found.content.strong, &content, sizeof content);
    return found;
}

static uint64_t put(struct fixture *f, uint64_t parent, const char *name, uint64_t content)
{
    const struct tide_drive_found found = found_of(parent, name, content);
    uint64_t row = 0;
    OK(tide_drive_scan_put(f->db, &found, &row, &f->err));
    return row;
}

/* A scan finds that the entry has this state. */
static void find_state(struct fixture *f, uint64_t row, int state, uint64_t now_ms)
{
    struct tide_drive_difference differs = {.found = {.row = row}, .state_only = true};
    differs.found.state = (tide_drive_local_state)state;
    differs.found.version =
        number(f, textf("SELECT version FROM drive_@_local WHERE row = %" PRIu64, row));
    OK(tide_drive_scan_write(f->db, &differs, 1, now_ms, &f->err));
}

/* Everything that is new on both sides becomes baseline. */
static void agree(struct fixture *f)
{
    const struct tide_drive_plan_options options = {.guard = {.largest_24h = 1000}};
    struct tide_drive_plan plan;
    load(f, 1000);
    OK(tide_drive_plan(&f->loaded.trees, &options, tide_mem_heap(), &plan, &f->err));
    struct tide_drive_outcome outcomes[8];
    assert_in_range(plan.actions_count, 1, 8);
    for (size_t i = 0; i < plan.actions_count; i++) {
        assert_int_equal(plan.actions[i].verb, TIDE_DRIVE_BASE);
        outcomes[i] = (struct tide_drive_outcome){
            .verb = TIDE_DRIVE_BASE, .item = plan.actions[i].item, .row = plan.actions[i].row};
    }
    OK(tide_drive_commit_all(f->db, outcomes, plan.actions_count, &f->err));
    tide_drive_plan_done(&plan);
}

/* d/x and y, on both sides and in the baseline. */
static void two_files(struct fixture *f, uint64_t rows[3])
{
    const struct tide_drive_seen items[] = {seen("d", "root", "d", 0), seen("x", "d", "x", 7),
                                            seen("y", "root", "y", 8)};
    round_of(f, TIDE_DRIVE_ROUND_FULL, items, 3);
    rows[0] = put(f, TIDE_DRIVE_ROOT, "d", 0);
    rows[1] = put(f, rows[0], "x", 7);
    rows[2] = put(f, TIDE_DRIVE_ROOT, "y", 8);
    agree(f);
    load(f, 1000);
    assert_int_equal(f->loaded.trees.bases_count, 0); /* nothing differs: nothing is read */
}

/* ---- the feed ---- */

TEST_ON(a_round_is_seen_when_its_last_page_is_stored, struct fixture *f, setup, teardown)
{
    struct tide_drive_feed feed;
    const struct tide_drive_seen first[] = {seen("x", "d", "x", 7)}; /* child first */
    const struct tide_drive_seen second[] = {seen("d", "root", "d", 0)};
    OK(tide_drive_round_begin(f->db, TIDE_DRIVE_ROUND_FULL, &f->err));
    page(f, first, 1, false);
    OK(tide_drive_feed_read(f->db, &feed, &f->err));
    assert_string_equal(feed.next_link, "next");
    load(f, 0);
    assert_int_equal(f->loaded.trees.remotes_count, 0);
    page(f, second, 1, true);
    OK(tide_drive_feed_read(f->db, &feed, &f->err));
    assert_string_equal(feed.next_link, "");
    assert_string_equal(feed.delta_link, "delta");
    load(f, 0);
    assert_int_equal(f->loaded.trees.remotes_count, 2);
    assert_int_equal(remote(f, "x")->parent, remote(f, "d")->item);
}

TEST_ON(the_last_occurrence_of_an_id_wins, struct fixture *f, setup, teardown)
{
    const struct tide_drive_seen items[] = {
        seen("x", "root", "old", 7), tombstone("x"), seen("x", "root", "new", 8),
        seen("z", "root", "z", 1),   tombstone("z"), tombstone("never")};
    round_of(f, TIDE_DRIVE_ROUND_FULL, items, 6);
    load(f, 0);
    assert_int_equal(f->loaded.trees.remotes_count, 1);
    assert_true(tide_text_equal(remote(f, "x")->name, TIDE_TEXT("new")));
    assert_int_equal(remote(f, "x")->content.bytes, 8);
}

TEST_ON(a_folders_tombstone_covers_what_is_still_in_it, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    const struct tide_drive_seen out[] = {seen("w", "d", "w", 3)};
    round_of(f, TIDE_DRIVE_ROUND_DELTA, out, 1);
    /* x is moved out, then the folder dies; w, which was never here, dies with it. */
    const struct tide_drive_seen items[] = {tombstone("d"), seen("x", "root", "x", 7)};
    round_of(f, TIDE_DRIVE_ROUND_DELTA, items, 2);
    load(f, 1000);
    assert_int_equal(remote(f, "d")->state, TIDE_DRIVE_REMOTE_GONE);
    assert_int_equal(remote(f, "x")->state, TIDE_DRIVE_REMOTE_LIVE);
    assert_null(remote(f, "w"));
}

TEST_ON(missing_in_a_full_enumeration_is_gone_only_at_its_end, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    const struct tide_drive_seen items[] = {seen("y", "root", "y", 8)};
    OK(tide_drive_round_begin(f->db, TIDE_DRIVE_ROUND_FULL, &f->err));
    page(f, items, 1, false);
    load(f, 1000);
    assert_int_equal(f->loaded.trees.bases_count, 0);
    page(f, NULL, 0, true);
    load(f, 1000);
    assert_int_equal(remote(f, "d")->state, TIDE_DRIVE_REMOTE_GONE);
    assert_int_equal(remote(f, "x")->state, TIDE_DRIVE_REMOTE_GONE);
    assert_int_equal(f->loaded.trees.bases_count, 2);
}

TEST_ON(a_round_that_begins_again_forgets_its_pages, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    const struct tide_drive_seen gone[] = {tombstone("x")};
    OK(tide_drive_round_begin(f->db, TIDE_DRIVE_ROUND_DELTA, &f->err));
    page(f, gone, 1, false);
    round_of(f, TIDE_DRIVE_ROUND_DELTA, NULL, 0);
    load(f, 1000);
    assert_int_equal(f->loaded.trees.bases_count, 0);
}

/* D34. */
TEST_ON(after_a_server_that_lost_its_state_nothing_is_gone, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    round_of(f, TIDE_DRIVE_ROUND_FORGOT, NULL, 0);
    load(f, 1000);
    assert_int_equal(remote(f, "x")->state, TIDE_DRIVE_REMOTE_FORGOTTEN);
}

/* D33. */
TEST_ON(an_empty_round_keeps_the_token, struct fixture *f, setup, teardown)
{
    struct tide_drive_feed feed;
    uint64_t rows[3];
    two_files(f, rows);
    OK(tide_drive_round_begin(f->db, TIDE_DRIVE_ROUND_DELTA, &f->err));
    OK(tide_drive_page(f->db, NULL, 0, TIDE_TEXT_NONE, TIDE_TEXT("later"), 5, &f->err));
    OK(tide_drive_feed_read(f->db, &feed, &f->err));
    assert_string_equal(feed.delta_link, "delta");
    assert_int_equal(feed.round, TIDE_DRIVE_ROUND_NONE);
}

static void count_id(tide_text id, void *arg)
{
    (void)id;
    ++*(size_t *)arg;
}

/* D32: no name, and a parent that never came. */
TEST_ON(incomplete_items_are_listed_and_not_planned, struct fixture *f, setup, teardown)
{
    size_t count = 0;
    uint64_t item = 0;
    const struct tide_drive_seen items[] = {seen("x", "root", "", 7), seen("y", "lost", "y", 8)};
    round_of(f, TIDE_DRIVE_ROUND_FULL, items, 2);
    OK(tide_drive_incomplete(f->db, 10, count_id, &count, &f->err));
    assert_int_equal(count, 2); /* x, and y's parent */
    const struct tide_drive_seen answer = seen("lost", "root", "found", 0);
    OK(tide_drive_remote_put(f->db, &answer, &item, &f->err));
    count = 0;
    OK(tide_drive_incomplete(f->db, 10, count_id, &count, &f->err));
    assert_int_equal(count, 1);
    load(f, 0);
    assert_int_equal(f->loaded.trees.remotes_count, 2);
}

TEST_ON(a_page_without_a_link_is_refused, struct fixture *f, setup, teardown)
{
    assert_int_equal(tide_drive_page(f->db, NULL, 0, TIDE_TEXT_NONE, TIDE_TEXT_NONE, 0, &f->err),
                     TIDE_SERVER);
}

/* ---- scans ---- */

/* Folders, doubt and proof are in drive_compare_test.c. */
TEST_ON(a_missing_file_is_gone_after_ten_seconds, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    find_state(f, rows[0], TIDE_DRIVE_LOCAL_GONE, 5000);
    find_state(f, rows[1], TIDE_DRIVE_LOCAL_GONE, 5000);
    load(f, 14999);
    assert_int_equal(f->loaded.trees.bases_count, 2); /* d, and x with it */
    assert_false(f->loaded.bases[0].local_gone || f->loaded.bases[1].local_gone);
    load(f, 15000);
    assert_true(f->loaded.bases[0].local_gone && f->loaded.bases[1].local_gone);
    find_state(f, rows[1], TIDE_DRIVE_LOCAL_UNSURE, 16000); /* doubt is no proof */
    load(f, 60000);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(f->loaded.bases[i].local_gone, f->loaded.bases[i].row == rows[0]);
}

/* DST8: between reading the rows and writing what differs, an action wrote, moved, removed or made. */
TEST_ON(a_scan_leaves_alone_what_was_written_since, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    struct tide_drive_difference list[5] = {
        {.found = found_of(TIDE_DRIVE_ROOT, "y", 80)},
        {.found = {.row = 0, .state = (tide_drive_local_state)TIDE_DRIVE_LOCAL_GONE},
         .state_only = true},
        {.found = found_of(TIDE_DRIVE_ROOT, "new", 6)},
        {.found = found_of(TIDE_DRIVE_ROOT, "folder", 0)},
        {.found = found_of(99, "orphan", 5)},
    };
    two_files(f, rows);
    list[0].found.row = rows[2];
    list[1].found.row = rows[1];
    list[0].found.version = list[1].found.version = 1;
    assert_int_equal(put(f, TIDE_DRIVE_ROOT, "y", 81), rows[2]);
    OK(tide_drive_local_moved(f->db, rows[1], TIDE_DRIVE_ROOT, TIDE_TEXT("x"), &f->err));
    const uint64_t made = put(f, TIDE_DRIVE_ROOT, "new", 61);
    const uint64_t folder = put(f, TIDE_DRIVE_ROOT, "folder", 0);
    const uint64_t changed = number(f, "SELECT changed FROM drive_@_state");
    OK(tide_drive_scan_write(f->db, list, 5, 5000, &f->err));
    assert_int_equal(number(f, "SELECT changed FROM drive_@_state"), changed);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE state = 1"), 5);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE bytes IN (7, 61, 81)"), 3);
    assert_int_equal(list[2].found.row, made);
    assert_int_equal(list[3].found.row, folder); /* its children are read beneath this row */
    assert_int_equal(list[4].found.row, 0);
}

/* The transaction of a slice failed, and the slice is written again. */
TEST_ON(a_slice_may_be_written_again, struct fixture *f, setup, teardown)
{
    struct tide_drive_difference one = {.found = found_of(TIDE_DRIVE_ROOT, "a", 1)};
    OK(tide_rows_do(f->db, "a test", &f->err, "BEGIN"));
    OK(tide_drive_scan_write(f->db, &one, 1, 5000, &f->err));
    assert_true(one.found.row > TIDE_DRIVE_ROOT);
    OK(tide_rows_do(f->db, "a test", &f->err, "ROLLBACK"));
    OK(tide_drive_scan_write(f->db, &one, 1, 5000, &f->err));
    assert_int_equal(number(f, "SELECT row FROM drive_@_local"), one.found.row);
}

TEST_ON(what_an_action_finds_again_is_not_written, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], row = 0;
    two_files(f, rows);
    const uint64_t changed = number(f, "SELECT changed FROM drive_@_state");
    assert_int_equal(put(f, rows[0], "x", 7), rows[1]);
    struct tide_drive_found touched = found_of(rows[0], "x", 7);
    touched.mtime_ns = touched.hashed_ns = 5; /* written, but nothing to plan */
    OK(tide_drive_scan_put(f->db, &touched, &row, &f->err));
    assert_int_equal(number(f, "SELECT changed FROM drive_@_state"), changed);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE mtime_ns = 5"), 1);
    touched.nlink = 2;
    OK(tide_drive_scan_put(f->db, &touched, &row, &f->err));
    assert_int_equal(number(f, "SELECT changed FROM drive_@_state"), changed + 1);
    touched.parent = 99;
    assert_int_equal(tide_drive_scan_put(f->db, &touched, &row, &f->err), TIDE_SUPERSEDED);
}

/* F24: the clock is put back by a day, and times that were noted before have not come yet. */
TEST_ON(a_clock_that_is_put_back_keeps_nothing_waiting, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    const struct tide_drive_owed owed = {.item = 7,
                                         .row = 9,
                                         .verb = TIDE_DRIVE_DOWN,
                                         .name = TIDE_TEXT("x"),
                                         .error = TIDE_TEXT("500"),
                                         .attempts = 1,
                                         .next_ms = TIDE_DRIVE_DAY_MS + TIDE_DRIVE_OWED_MS_MAX};
    two_files(f, rows);
    find_state(f, rows[2], TIDE_DRIVE_LOCAL_GONE, TIDE_DRIVE_DAY_MS);
    OK(tide_drive_owe(f->db, &owed, &f->err));
    load(f, TIDE_DRIVE_DAY_MS);
    assert_false(f->loaded.bases[0].local_gone);
    assert_int_equal(f->loaded.trees.owed_items_count, 1);
    assert_int_equal(f->loaded.trees.owed_rows_count, 1);
    load(f, TIDE_DRIVE_DAY_MS - 5000); /* a little: it waits a little longer */
    assert_false(f->loaded.bases[0].local_gone);
    load(f, 1000);
    assert_true(f->loaded.bases[0].local_gone);
    assert_int_equal(f->loaded.trees.owed_items_count, 0);
    assert_int_equal(f->loaded.trees.owed_rows_count, 0);
}

/* DST5. */
TEST_ON(numbers_are_not_used_again, struct fixture *f, setup, teardown)
{
    const uint64_t first = put(f, TIDE_DRIVE_ROOT, "a", 1);
    assert_true(first > TIDE_DRIVE_ROOT);
    find_state(f, first, TIDE_DRIVE_LOCAL_GONE, 1);
    OK(tide_drive_planned(f->db, 0, 1, &f->err)); /* nothing needs the row any more */
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local"), 0);
    assert_true(put(f, TIDE_DRIVE_ROOT, "a", 1) > first);
}

/* A folder that is gone stays while something beneath it has a baseline: it may come back. */
TEST_ON(a_row_that_is_gone_stays_while_it_serves, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0;
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("d"), &item, &f->err));
    struct tide_drive_outcome outcome = {.verb = TIDE_DRIVE_DROP, .item = item};
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    find_state(f, rows[0], TIDE_DRIVE_LOCAL_GONE, 5000);
    find_state(f, rows[1], TIDE_DRIVE_LOCAL_GONE, 5000);
    OK(tide_drive_planned(f->db, 0, 1, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE state = 4"), 2);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &outcome.item, &f->err));
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    OK(tide_drive_planned(f->db, 0, 1, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local"), 1); /* y */
}

/* ---- the baseline ---- */

/* DST4: a row that is gone cannot be agreed on. */
TEST_ON(what_is_not_on_both_sides_is_not_recorded, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    uint64_t item = 0;
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    const struct tide_drive_seen gone[] = {tombstone("x")};
    round_of(f, TIDE_DRIVE_ROUND_DELTA, gone, 1);
    const struct tide_drive_outcome outcome = {
        .verb = TIDE_DRIVE_BASE, .item = item, .row = rows[1]};
    assert_int_equal(tide_drive_commit(f->db, &outcome, &f->err), TIDE_SUPERSEDED);
}

TEST_ON(a_move_is_recorded_when_both_sides_have_it, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0, put_item = 0;
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    const struct tide_drive_seen moved = seen("x", "root", "renamed", 7);
    OK(tide_drive_remote_put(f->db, &moved, &put_item, &f->err));
    assert_int_equal(put_item, item);
    struct tide_drive_outcome outcome = {
        .verb = TIDE_DRIVE_MOVE_LOCAL, .item = item, .row = rows[1]};
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_base WHERE name = X'78'"), 1);
    outcome.row = put(f, TIDE_DRIVE_ROOT, "renamed", 7);
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_base WHERE name = X'78'"), 0);
    assert_int_equal(number(f, "SELECT parent FROM drive_@_base WHERE item ="
                               " (SELECT item FROM drive_@_item WHERE id = 'x')"),
                     TIDE_DRIVE_ROOT);
}

/* ---- what a plan is due for (DST7) ---- */

static bool is_due(struct fixture *f, uint64_t now_ms)
{
    struct tide_drive_progress progress;
    OK(tide_drive_progress_read(f->db, &progress, &f->err));
    return tide_drive_plan_is_due(&progress, now_ms);
}

/* As after a plan that found nothing to do. */
static void planned(struct fixture *f, uint64_t now_ms)
{
    struct tide_drive_progress progress;
    OK(tide_drive_progress_read(f->db, &progress, &f->err));
    OK(tide_drive_planned(f->db, progress.changed, now_ms, &f->err));
    assert_false(is_due(f, now_ms));
}

TEST_ON(a_round_that_brings_what_is_known_makes_no_plan_due, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0;
    const struct tide_drive_seen all[] = {seen("d", "root", "d", 0), seen("x", "d", "x", 7),
                                          seen("y", "root", "y", 8)};
    struct tide_drive_seen part = seen("y", "root", "", 8); /* fields that are missing (D32) */
    part.parent_id = TIDE_TEXT_NONE;
    assert_false(is_due(f, 0));
    two_files(f, rows);
    assert_true(is_due(f, 1000));
    planned(f, 1000);
    round_of(f, TIDE_DRIVE_ROUND_DELTA, NULL, 0);
    round_of(f, TIDE_DRIVE_ROUND_DELTA, all, 3);
    round_of(f, TIDE_DRIVE_ROUND_DELTA, &part, 1);
    round_of(f, TIDE_DRIVE_ROUND_FULL, all, 3);
    OK(tide_drive_remote_put(f->db, &all[1], &item, &f->err));
    const struct tide_drive_seen never[] = {tombstone("never")};
    round_of(f, TIDE_DRIVE_ROUND_DELTA, never, 1);
    assert_false(is_due(f, 1000));
    /* The listing that follows has them all the same: no row of an echo is taken for missing. */
    round_of(f, TIDE_DRIVE_ROUND_FULL, all, 3);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_remote WHERE state = 1"), 3);
    assert_false(is_due(f, 1000));
}

TEST_ON(every_field_of_an_item_makes_a_plan_due, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    struct tide_drive_seen changes[9];
    two_files(f, rows);
    for (size_t i = 0; i < 9; i++)
        changes[i] = seen("y", "root", "y", 8);
    changes[0].parent_id = TIDE_TEXT("d");
    changes[1].name = TIDE_TEXT("Y");
    changes[2].etag = TIDE_TEXT("e2");
    changes[3].ctag = TIDE_TEXT("c2");
    changes[4].mtime_s = 5;
    changes[5].content.bytes = 9;
    changes[6].content.has_qxh = false;
    changes[7].state = TIDE_DRIVE_REMOTE_UNSURE;
    changes[8] = tombstone("y");
    for (size_t i = 0; i < 9; i++)
        for (int by_get = 0; by_get < 2; by_get++) {
            uint64_t item = 0;
            const struct tide_drive_seen as_before = seen("y", "root", "y", 8);
            OK(tide_drive_remote_put(f->db, &as_before, &item, &f->err));
            planned(f, 1000);
            if (by_get)
                OK(tide_drive_remote_put(f->db, &changes[i], &item, &f->err));
            else
                round_of(f, TIDE_DRIVE_ROUND_DELTA, &changes[i], 1);
            if (!is_due(f, 1000))
                fail_msg("change %zu was not noted", i);
        }
}

TEST_ON(outcomes_and_consent_make_a_plan_due, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0, shown = 0;
    const struct tide_drive_deletion one = {5, TIDE_DRIVE_DEL_LOCAL, TIDE_TEXT("a")};
    const struct tide_drive_owed owed = {
        .item = 5, .name = TIDE_TEXT("a"), .error = TIDE_TEXT("e"), .attempts = 1, .next_ms = 9000};
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    planned(f, 1000);
    OK(tide_drive_aside_remote(f->db, item, TIDE_TEXT_NONE, &f->err));
    OK(tide_drive_aside_local(f->db, rows[1], TIDE_TEXT_NONE, &f->err));
    OK(tide_drive_owed_paid(f->db, 99, 0, &f->err));
    OK(tide_drive_deletions_set(f->db, &one, 1, &f->err)); /* by the plan itself */
    OK(tide_drive_owe(f->db, &owed, &f->err));
    assert_false(is_due(f, 8999));
    assert_true(is_due(f, 9000)); /* its time has come */
    planned(f, 9000);
    assert_false(is_due(f, 100000));
    OK(tide_drive_owed_paid(f->db, 5, 0, &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_deletions_fingerprint(f->db, &shown, &f->err));
    OK(tide_drive_deletions_accept(f->db, shown, 9000, &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_aside_local(f->db, rows[1], TIDE_TEXT("x"), &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_aside_remote(f->db, item, TIDE_TEXT("x"), &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_local_moved(f->db, rows[1], TIDE_DRIVE_ROOT, TIDE_TEXT("z"), &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    const struct tide_drive_outcome outcome = {
        .verb = TIDE_DRIVE_DROP, .item = item, .now_ms = 9000};
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_local_removed(f->db, rows[1], &f->err));
    assert_true(is_due(f, 9000));
}

/* D24: the name is written before the step.  Of a step that was not made nothing is seen, by whoever reads
 * the row: a plan and what carries it out would not agree for ever. */
TEST_ON(a_step_aside_counts_when_it_was_made, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0;
    struct tide_drive_remote_look remote;
    struct tide_drive_local_look local;
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    OK(tide_drive_aside_remote(f->db, item, TIDE_TEXT("before"), &f->err));
    OK(tide_drive_aside_local(f->db, rows[1], TIDE_TEXT("before"), &f->err));
    OK(tide_drive_look_remote(f->db, item, &remote, &f->err));
    OK(tide_drive_look_local(f->db, rows[1], &local, &f->err));
    assert_string_equal(remote.aside, "");
    assert_string_equal(local.aside, "");
    const struct tide_drive_seen stepped = seen("x", "root", "tidemark-move-0123abcd", 8);
    OK(tide_drive_remote_put(f->db, &stepped, &item, &f->err));
    OK(tide_drive_look_remote(f->db, item, &remote, &f->err));
    assert_string_equal(remote.aside, "before");
}

/* What was written while a plan was made is for the next one; and a late note does not go back. */
TEST_ON(a_change_during_a_plan_stays_due, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0;
    struct tide_drive_progress first, second;
    two_files(f, rows);
    OK(tide_drive_progress_read(f->db, &first, &f->err));
    const struct tide_drive_seen other = seen("y", "root", "y", 9);
    OK(tide_drive_remote_put(f->db, &other, &item, &f->err));
    OK(tide_drive_planned(f->db, first.changed, 1000, &f->err));
    assert_true(is_due(f, 1000));
    planned(f, 2000);
    OK(tide_drive_planned(f->db, first.changed, 1000, &f->err));
    OK(tide_drive_progress_read(f->db, &second, &f->err));
    assert_int_equal(second.planned, second.changed);
    assert_int_equal(second.planned_ms, 2000);
}

/* S13: after ten seconds, whether or not anything was written meanwhile. */
TEST_ON(a_missing_file_makes_a_plan_due_in_time, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    find_state(f, rows[2], TIDE_DRIVE_LOCAL_GONE, 5000);
    assert_true(is_due(f, 5000));
    planned(f, 6000);
    assert_false(is_due(f, 14999));
    assert_true(is_due(f, 15000));
    planned(f, 15000); /* held by the guard, say */
    assert_false(is_due(f, 60000));
}

/* ---- lists ---- */

/* F24: an item that fails after the clock was put back is owed before the last plan. */
TEST_ON(a_clock_that_is_put_back_makes_a_plan_due, struct fixture *f, setup, teardown)
{
    struct tide_drive_progress progress;
    OK(tide_drive_progress_read(f->db, &progress, &f->err));
    OK(tide_drive_planned(f->db, progress.changed, 90000, &f->err));
    assert_false(is_due(f, 90000));
    assert_true(is_due(f, 89999));
    OK(tide_drive_planned(f->db, progress.changed, 89999, &f->err));
    assert_false(is_due(f, 89999));
}

TEST_ON(consent_is_for_the_list_that_was_shown, struct fixture *f, setup, teardown)
{
    const struct tide_drive_deletion two[] = {{5, TIDE_DRIVE_DEL_LOCAL, TIDE_TEXT("a")},
                                              {6, TIDE_DRIVE_DEL_REMOTE, TIDE_TEXT("b")}};
    struct tide_drive_guard guard;
    uint64_t shown = 0;
    OK(tide_drive_deletions_set(f->db, two, 1, &f->err));
    OK(tide_drive_deletions_fingerprint(f->db, &shown, &f->err));
    OK(tide_drive_deletions_set(f->db, two, 2, &f->err));
    assert_int_equal(tide_drive_deletions_accept(f->db, shown, 1000, &f->err), TIDE_STALE);
    OK(tide_drive_deletions_fingerprint(f->db, &shown, &f->err));
    OK(tide_drive_deletions_accept(f->db, shown, 1000, &f->err));
    OK(tide_drive_guard_read(f->db, 2000, tide_mem_heap(), &guard, &f->err));
    assert_int_equal(guard.consented_count, 2);
    assert_int_equal(guard.consented[1], 6);
    tide_drive_guard_done(&guard, tide_mem_heap());
    OK(tide_drive_guard_read(f->db, 1000 + TIDE_DRIVE_DAY_MS, tide_mem_heap(), &guard, &f->err));
    assert_int_equal(guard.consented_count, 0); /* for 24 hours */
}

/* S16: without its baseline an item is new on the side that has it. */
TEST_ON(restoring_takes_the_baseline_of_what_was_listed, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0, shown = 0;
    two_files(f, rows);
    const uint64_t all = number(f, "SELECT count(*) FROM drive_@_base");
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    const struct tide_drive_deletion one = {item, TIDE_DRIVE_DEL_REMOTE, TIDE_TEXT("x")};
    OK(tide_drive_deletions_set(f->db, &one, 1, &f->err));
    OK(tide_drive_deletions_fingerprint(f->db, &shown, &f->err));
    assert_int_equal(tide_drive_deletions_restore(f->db, shown + 1, &f->err), TIDE_STALE);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_base"), all);
    OK(tide_drive_deletions_restore(f->db, shown, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_base"), all - 1);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_deletion"), 0);
}

TEST_ON(deletions_of_the_last_day_are_counted, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0;
    struct tide_drive_guard guard;
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    const struct tide_drive_outcome outcome = {
        .verb = TIDE_DRIVE_DEL_REMOTE, .item = item, .row = rows[1], .now_ms = 1000};
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    OK(tide_drive_guard_read(f->db, 2000, tide_mem_heap(), &guard, &f->err));
    assert_int_equal(guard.done_24h, 1);
    assert_int_equal(guard.largest_24h, 3);
    OK(tide_drive_guard_read(f->db, 1000 + TIDE_DRIVE_DAY_MS, tide_mem_heap(), &guard, &f->err));
    assert_int_equal(guard.done_24h, 0);
}

static void see_owed(const struct tide_drive_owed *owed, void *arg)
{
    assert_true(tide_text_equal(owed->name, TIDE_TEXT("d/x\xff")));
    assert_int_equal(owed->attempts, 2);
    ++*(int *)arg;
}

static void see_conflict(const struct tide_drive_conflict *conflict, void *arg)
{
    *(uint64_t *)arg = conflict->id;
}

TEST_ON(owed_items_and_conflicts_stay_until_they_end, struct fixture *f, setup, teardown)
{
    struct tide_drive_owed owed = {.item = 5,
                                   .row = 0,
                                   .verb = TIDE_DRIVE_DOWN,
                                   .name = TIDE_TEXT("d/x\xff"),
                                   .error = TIDE_TEXT("server error 500"),
                                   .attempts = 1};
    int count = 0;
    OK(tide_drive_owe(f->db, &owed, &f->err));
    owed.attempts = 2;
    OK(tide_drive_owe(f->db, &owed, &f->err));
    OK(tide_drive_owed_each(f->db, see_owed, &count, &f->err));
    assert_int_equal(count, 1);
    OK(tide_drive_owed_paid(f->db, 5, 0, &f->err));
    OK(tide_drive_owed_each(f->db, see_owed, &count, &f->err));
    assert_int_equal(count, 1);
    uint64_t id = 0;
    const struct tide_drive_conflict conflict = {.notice = TIDE_DRIVE_K1,
                                                 .item = 5,
                                                 .name = TIDE_TEXT("x"),
                                                 .copy = TIDE_TEXT("y"),
                                                 .at_ms = 1};
    OK(tide_drive_conflict_add(f->db, &conflict, &f->err));
    OK(tide_drive_conflicts_each(f->db, see_conflict, &id, &f->err));
    OK(tide_drive_conflict_end(f->db, id, &f->err));
    assert_int_equal(tide_drive_conflict_end(f->db, id, &f->err), TIDE_NOT_FOUND);
}

/* plan.h DPL6: a deletion waits until everything was read; nothing else needs to differ. */
TEST_ON(what_is_missing_is_not_deleted_while_a_folder_is_unread, struct fixture *f, setup, teardown)
{
    static const tide_drive_local_state states[] = {TIDE_DRIVE_LOCAL_LIVE, TIDE_DRIVE_LOCAL_UNREAD,
                                                    TIDE_DRIVE_LOCAL_UNSURE};
    const struct tide_drive_plan_options options = {.guard = {.largest_24h = 1000}};
    struct tide_drive_plan plan;
    struct tide_drive_counts counts;
    uint64_t rows[3];
    two_files(f, rows);
    OK(tide_rows_do(f->db, "a test", &f->err,
                    "UPDATE drive_@_local SET state = 4, gone_ms = 1 WHERE row = ?1", rows[2]));
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        const bool held = states[i] == TIDE_DRIVE_LOCAL_UNREAD;
        OK(tide_rows_do(f->db, "a test", &f->err,
                        "UPDATE drive_@_local SET state = ?2 WHERE row = ?1", rows[0],
                        (int)states[i]));
        load(f, 100000);
        assert_int_equal(f->loaded.trees.unread_here, held);
        OK(tide_drive_plan(&f->loaded.trees, &options, tide_mem_heap(), &plan, &f->err));
        assert_int_equal(plan.actions_count, 1);
        assert_int_equal(plan.actions[0].verb, TIDE_DRIVE_DEL_REMOTE);
        assert_int_equal(plan.actions[0].state, held ? TIDE_DRIVE_HELD_UNREAD : TIDE_DRIVE_READY);
        tide_drive_plan_done(&plan);
        OK(tide_drive_counts(f->db, &counts, &f->err));
        assert_int_equal(counts.hidden, held ? 1 : 0);
        assert_int_equal(counts.unsure, i == 0 ? 0 : 1);
    }
}

/* D4: what failed is planned and held until its time; the others go on. */
TEST_ON(what_is_owed_waits_for_its_next_try, struct fixture *f, setup, teardown)
{
    const struct tide_drive_plan_options options = {.guard = {.largest_24h = 1000}};
    struct tide_drive_plan plan;
    uint64_t rows[3], item = 0, made = 0;
    int count = 0;
    two_files(f, rows);
    (void)put(f, rows[0], "x", 70);
    (void)put(f, TIDE_DRIVE_ROOT, "y", 80);
    struct tide_drive_found folder = found_of(TIDE_DRIVE_ROOT, "n", 0);
    folder.identity.inode = 500; /* not d's */
    OK(tide_drive_scan_put(f->db, &folder, &made, &f->err));
    (void)put(f, made, "inside", 90);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    struct tide_drive_owed owed = {.item = item,
                                   .row = rows[1],
                                   .verb = TIDE_DRIVE_UP,
                                   .name = TIDE_TEXT("d/x\xff"),
                                   .error = TIDE_TEXT("server error 500"),
                                   .attempts = 2,
                                   .next_ms = 5000};
    OK(tide_drive_owe(f->db, &owed, &f->err));
    owed.item = 0;
    owed.row = made;
    OK(tide_drive_owe(f->db, &owed, &f->err));
    for (int later = 0; later < 2; later++) {
        unsigned states[8] = {0};
        load(f, later ? 5000 : 4999);
        OK(tide_drive_plan(&f->loaded.trees, &options, tide_mem_heap(), &plan, &f->err));
        for (size_t i = 0; i < plan.actions_count; i++)
            states[plan.actions[i].state]++;
        assert_int_equal(plan.actions_count, 4);
        assert_int_equal(states[TIDE_DRIVE_HELD_OWED], later ? 0 : 2);
        assert_int_equal(states[TIDE_DRIVE_HELD_OTHER], later ? 0 : 1); /* in the new folder */
        assert_int_equal(states[TIDE_DRIVE_READY], later ? 4 : 1);
        OK(tide_drive_owed_settle(f->db, &plan, 0, &f->err));
        tide_drive_plan_done(&plan);
    }
    OK(tide_drive_owed_each(f->db, see_owed, &count, &f->err));
    assert_int_equal(count, 2);
    /* A user made it as it was: nothing is owed any more. */
    (void)put(f, rows[0], "x", 7);
    load(f, 6000);
    OK(tide_drive_plan(&f->loaded.trees, &options, tide_mem_heap(), &plan, &f->err));
    OK(tide_drive_owed_settle(f->db, &plan, 0, &f->err));
    tide_drive_plan_done(&plan);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_owed WHERE item = 0"), 1);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_owed"), 1);
}

/* ---- the loop breaker (S11) ---- */

static void transfer(struct fixture *f, tide_drive_verb verb, uint64_t content, uint64_t now_ms)
{
    uint64_t item = 0;
    struct tide_drive_outcome outcome = {.verb = verb, .now_ms = now_ms};
    const struct tide_drive_seen there = seen("y", "root", "y", content);
    OK(tide_drive_remote_put(f->db, &there, &item, &f->err));
    outcome.item = item;
    outcome.row = put(f, TIDE_DRIVE_ROOT, "y", content);
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    OK(tide_drive_owed_paid(f->db, item, outcome.row, &f->err));
}

static uint64_t loops(struct fixture *f)
{
    return number(f, "SELECT count(*) FROM drive_@_owed WHERE loop = 1");
}

/* A server changes what is uploaded, a program here changes it back. */
TEST_ON(the_same_bytes_that_cross_again_and_again_are_held, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    struct tide_drive_progress progress;
    two_files(f, rows);
    for (uint64_t i = 0; i < 6; i++) {
        assert_int_equal(loops(f), 0);
        transfer(f, i % 2 == 0 ? TIDE_DRIVE_UP : TIDE_DRIVE_DOWN, 80 + i % 2, 10000 + 1000 * i);
    }
    assert_int_equal(loops(f), 1); /* two with news, four without */
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_owed WHERE name = X'79'"
                               " AND attempts = 4 AND next_ms = 615000"),
                     1);
    load(f, 20000);
    assert_int_equal(f->loaded.trees.owed_items_count, 1);
    load(f, 615000);
    assert_int_equal(f->loaded.trees.owed_items_count, 0);
    planned(f, 20000);
    OK(tide_drive_progress_read(f->db, &progress, &f->err));
    assert_int_equal(progress.due_ms, 615000);
    /* New bytes end it. */
    transfer(f, TIDE_DRIVE_UP, 90, 616000);
    assert_int_equal(loops(f), 0);
}

/* Saving every minute is no loop, on whichever side; and old transfers do not count. */
TEST_ON(new_bytes_are_no_loop, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    for (uint64_t i = 0; i < 12; i++)
        transfer(f, i < 6 ? TIDE_DRIVE_UP : TIDE_DRIVE_DOWN, 80 + i, 10000 + 1000 * i);
    assert_int_equal(loops(f), 0);
    for (uint64_t i = 0; i < 12; i++)
        transfer(f, TIDE_DRIVE_UP, 200 + i % 2, 1000000 + TIDE_DRIVE_LOOP_MS / 3 * i);
    assert_int_equal(loops(f), 0);
    assert_in_range(number(f, "SELECT count(*) FROM drive_@_turn"), 1, 3);
}

TEST_ON(ten_copies_a_day_are_too_many, struct fixture *f, setup, teardown)
{
    struct tide_drive_conflict conflict = {
        .notice = TIDE_DRIVE_K1, .item = 5, .name = TIDE_TEXT("x"), .copy = TIDE_TEXT("x 2")};
    for (uint64_t i = 0; i < 19; i++) {
        /* One of each two days has ten. */
        conflict.at_ms = i < 9 ? 1000 + i : 2000 + TIDE_DRIVE_DAY_MS + i;
        assert_int_equal(loops(f), 0);
        OK(tide_drive_conflict_add(f->db, &conflict, &f->err));
    }
    assert_int_equal(loops(f), 1);
    load(f, 3000 + TIDE_DRIVE_DAY_MS);
    assert_int_equal(f->loaded.trees.owed_items_count, 1);
}

/* ---- files that are not ours to write ---- */

TEST_ON(a_newer_state_is_left_alone, struct fixture *f, setup, teardown)
{
    OK(tide_rows_do(f->db, "a test", &f->err, "UPDATE drive_@_state SET version = 99"));
    OK(tide_rows_do(f->db, "a test", &f->err, "DROP TABLE drive_@_conflict"));
    assert_int_equal(tide_drive_store_tables(f->db, &f->err), TIDE_NEWER);
    assert_int_equal(
        number(f, "SELECT count(*) FROM sqlite_schema WHERE name = 'drive_@_conflict'"), 0);
}

/* What version 1 had: an item that is owed counts from its next failure. */
TEST_ON(an_older_state_is_upgraded, struct fixture *f, setup, teardown)
{
    struct tide_drive_concerns concerns;
    struct tide_drive_owed owed = {.item = 7, .error = TIDE_TEXT("500"), .now_ms = 5000};
    OK(tide_drive_owe(f->db, &owed, &f->err));
    OK(tide_rows_do(f->db, "a test", &f->err, "ALTER TABLE drive_@_state DROP COLUMN trouble"));
    OK(tide_rows_do(f->db, "a test", &f->err, "ALTER TABLE drive_@_owed DROP COLUMN since_ms"));
    OK(tide_rows_do(f->db, "a test", &f->err, "ALTER TABLE drive_@_owed DROP COLUMN bad"));
    OK(tide_rows_do(f->db, "a test", &f->err, "UPDATE drive_@_state SET version = 1"));
    OK(tide_drive_store_tables(f->db, &f->err));
    OK(tide_drive_store_tables(f->db, &f->err)); /* once */
    OK(tide_drive_concerns(f->db, 1000000, &concerns, &f->err));
    assert_int_equal(concerns.owed, 1);
    assert_int_equal(concerns.old, 0);
    owed.now_ms = 9000;
    OK(tide_drive_owe(f->db, &owed, &f->err));
    OK(tide_drive_concerns(f->db, 1000000, &concerns, &f->err));
    assert_int_equal(concerns.old, 1);
    assert_int_equal(concerns.oldest_ms, 9000);
}

/* What fails again is owed since it failed first; what is read-only online is held, not owed. */
TEST_ON(an_item_is_owed_since_its_first_failure, struct fixture *f, setup, teardown)
{
    struct tide_drive_concerns concerns;
    struct tide_drive_owed owed = {
        .item = 7, .name = TIDE_TEXT("x"), .error = TIDE_TEXT("500"), .now_ms = 5000};
    const struct tide_drive_owed closed = {.item = 8, .closed = true, .now_ms = 1000};
    OK(tide_drive_owe(f->db, &owed, &f->err));
    OK(tide_drive_owe(f->db, &closed, &f->err));
    owed.now_ms = 9000;
    owed.bad = true;
    OK(tide_drive_owe(f->db, &owed, &f->err));
    OK(tide_drive_concerns(f->db, 4999, &concerns, &f->err));
    assert_int_equal(concerns.owed, 1);
    assert_int_equal(concerns.bad, 1);
    assert_int_equal(concerns.old, 0);
    OK(tide_drive_concerns(f->db, 5000, &concerns, &f->err));
    assert_int_equal(concerns.old, 1);
    assert_int_equal(concerns.oldest_ms, 5000);
    assert_string_equal(concerns.oldest, "x: 500");
}

TEST_ON(the_state_of_another_drive_is_refused, struct fixture *f, setup, teardown)
{
    const struct tide_drive_home drive = {"other", "root", "marker"};
    const struct tide_drive_home folder = {"drive", "root", "other"};
    OK(tide_drive_store_set_up(f->db, &home, &f->err));
    assert_int_equal(tide_drive_store_set_up(f->db, &drive, &f->err), TIDE_INVALID);
    assert_int_equal(tide_drive_store_set_up(f->db, &folder, &f->err), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "not mounted"));
}

/* Two drives of one home: the tables of each are its own, and go alone. */
TEST_ON(drives_of_one_database_do_not_meet, struct fixture *f, setup, teardown)
{
    const struct tide_drive_home drive = {"drive two", "root", "marker two"};
    tide_rows other = f->db;
    bool there = false;
    uint64_t item = 0;
    other.number = 20;
    OK(tide_drive_store_tables(other, &f->err));
    OK(tide_drive_store_set_up(other, &drive, &f->err));
    const struct tide_drive_seen here = seen("a", "root", "one", 1);
    const struct tide_drive_seen there_too = seen("a", "root", "two", 2);
    OK(tide_drive_remote_put(f->db, &here, &item, &f->err));
    OK(tide_drive_remote_put(other, &there_too, &item, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_1_remote WHERE name = X'6f6e65'"), 1);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_20_remote WHERE name = X'74776f'"), 1);
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_sequence WHERE name = 'drive_20_local'"
                               " AND seq = 1"),
                     1);

    OK(tide_drive_store_remove(other, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'drive_20%'"),
                     0);
    OK(tide_rows_has(f->db, "drive_@_state", "a test", &there, &f->err));
    assert_true(there);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_1_remote"), 1);
}

/* A damaged file is an error, not an empty drive. */
TEST(a_damaged_file_is_an_error)
{
    char path[] = "/tmp/drive-store-XXXXXX";
    const int fd = mkstemp(path);
    tide_error err = {TIDE_OK, 0, ""};
    sqlite3 *handle = NULL;
    assert_true(fd >= 0);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    tide_rows db = {.sqlite = handle, .number = 1};
    OK(tide_drive_store_tables(db, &err));
    OK(tide_drive_store_set_up(db, &home, &err));
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    FILE *file = fopen(path, "r+");
    for (long at = 1024; at < 64 << 10; at += 512) {
        (void)fseek(file, at, SEEK_SET);
        (void)fwrite("damage", 1, 6, file);
    }
    (void)fclose(file);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    db.sqlite = handle;
    tide_status rc = tide_drive_store_tables(db, &err);
    if (rc == TIDE_OK)
        rc = tide_drive_store_set_up(db, &home, &err);
    assert_int_not_equal(rc, TIDE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    assert_int_equal(remove(path), 0);
}
