/* drive_store_test.c - the state of a drive (DST1 to DST6).
 *
 * Goal: rows are what finished rounds and scans proved; a plan made from the working set is the plan
 * made from all rows; a file of a newer version is left alone.
 * Method: one SQLite database in memory; each rule of the feed and of scans as a short story.
 * Crashes are in tests/sim/drive. */
#include "db/db.h"
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
    f->db.sqlite = f->handle;
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

static uint64_t put(struct fixture *f, uint64_t scan, uint64_t parent, const char *name,
                    uint64_t content)
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
    uint64_t row = 0;
    OK(tide_drive_scan_put(f->db, scan, &found, &row, &f->err));
    return row;
}

/* Everything that is new on both sides becomes baseline. */
static void agree(struct fixture *f)
{
    const struct tide_drive_plan_options options = {.guard = {.largest_24h = 1000}};
    struct tide_drive_plan plan;
    load(f, 1000);
    OK(tide_drive_plan(&f->loaded.trees, &options, tide_mem_heap(), &plan, &f->err));
    for (size_t i = 0; i < plan.actions_count; i++) {
        assert_int_equal(plan.actions[i].verb, TIDE_DRIVE_BASE);
        const struct tide_drive_outcome outcome = {
            .verb = TIDE_DRIVE_BASE, .item = plan.actions[i].item, .row = plan.actions[i].row};
        OK(tide_drive_commit(f->db, &outcome, &f->err));
    }
    tide_drive_plan_done(&plan);
}

/* d/x and y, on both sides and in the baseline. */
static void two_files(struct fixture *f, uint64_t rows[3])
{
    const struct tide_drive_seen items[] = {seen("d", "root", "d", 0), seen("x", "d", "x", 7),
                                            seen("y", "root", "y", 8)};
    uint64_t scan = 0;
    round_of(f, TIDE_DRIVE_ROUND_FULL, items, 3);
    OK(tide_drive_scan_begin(f->db, &scan, &f->err));
    rows[0] = put(f, scan, TIDE_DRIVE_ROOT, "d", 0);
    rows[1] = put(f, scan, rows[0], "x", 7);
    rows[2] = put(f, scan, TIDE_DRIVE_ROOT, "y", 8);
    OK(tide_drive_scan_read(f->db, scan, TIDE_DRIVE_ROOT, &f->err));
    OK(tide_drive_scan_read(f->db, scan, rows[0], &f->err));
    OK(tide_drive_scan_end(f->db, scan, true, 1000, &f->err));
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

TEST_ON(missing_in_a_folder_that_was_not_read_is_unsure, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], scan = 0;
    two_files(f, rows);
    OK(tide_drive_scan_begin(f->db, &scan, &f->err));
    assert_int_equal(put(f, scan, TIDE_DRIVE_ROOT, "d", 0), rows[0]);
    OK(tide_drive_scan_read(f->db, scan, TIDE_DRIVE_ROOT, &f->err)); /* d could not be read */
    OK(tide_drive_scan_end(f->db, scan, true, 5000, &f->err));
    load(f, 60000);
    for (size_t i = 0; i < f->loaded.trees.bases_count; i++)
        if (tide_text_equal(f->loaded.bases[i].name, TIDE_TEXT("x")))
            assert_false(f->loaded.bases[i].local_gone);
        else if (tide_text_equal(f->loaded.bases[i].name, TIDE_TEXT("y")))
            assert_true(f->loaded.bases[i].local_gone);
}

TEST_ON(in_a_scan_that_did_not_finish_nothing_is_gone, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], scan = 0;
    two_files(f, rows);
    OK(tide_drive_scan_begin(f->db, &scan, &f->err));
    OK(tide_drive_scan_read(f->db, scan, TIDE_DRIVE_ROOT, &f->err));
    OK(tide_drive_scan_end(f->db, scan, false, 5000, &f->err));
    load(f, 60000);
    assert_int_equal(f->loaded.trees.bases_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_false(f->loaded.bases[i].local_gone);
    /* A scan that sees them again ends the doubt. */
    OK(tide_drive_scan_begin(f->db, &scan, &f->err));
    assert_int_equal(put(f, scan, TIDE_DRIVE_ROOT, "d", 0), rows[0]);
    assert_int_equal(put(f, scan, rows[0], "x", 7), rows[1]);
    assert_int_equal(put(f, scan, TIDE_DRIVE_ROOT, "y", 8), rows[2]);
    OK(tide_drive_scan_end(f->db, scan, true, 6000, &f->err));
    load(f, 60000);
    assert_int_equal(f->loaded.trees.bases_count, 0);
}

TEST_ON(a_missing_file_is_gone_after_ten_seconds, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], scan = 0;
    two_files(f, rows);
    OK(tide_drive_scan_begin(f->db, &scan, &f->err));
    (void)put(f, scan, TIDE_DRIVE_ROOT, "y", 8);
    OK(tide_drive_scan_read(f->db, scan, TIDE_DRIVE_ROOT, &f->err));
    OK(tide_drive_scan_end(f->db, scan, true, 5000, &f->err));
    load(f, 14999);
    assert_int_equal(f->loaded.trees.bases_count, 2); /* d, and x with it */
    assert_false(f->loaded.bases[0].local_gone || f->loaded.bases[1].local_gone);
    load(f, 15000);
    assert_true(f->loaded.bases[0].local_gone && f->loaded.bases[1].local_gone);
}

/* DST5. */
TEST_ON(numbers_are_not_used_again, struct fixture *f, setup, teardown)
{
    uint64_t scan = 0;
    OK(tide_drive_scan_begin(f->db, &scan, &f->err));
    const uint64_t first = put(f, scan, TIDE_DRIVE_ROOT, "a", 1);
    assert_true(first > TIDE_DRIVE_ROOT);
    OK(tide_drive_scan_begin(f->db, &scan, &f->err));
    OK(tide_drive_scan_read(f->db, scan, TIDE_DRIVE_ROOT, &f->err));
    OK(tide_drive_scan_end(f->db, scan, true, 1, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_local"), 0);
    assert_true(put(f, scan, TIDE_DRIVE_ROOT, "a", 1) > first);
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
    uint64_t rows[3], item = 0, put_item = 0, scan = 0;
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    const struct tide_drive_seen moved = seen("x", "root", "renamed", 7);
    OK(tide_drive_remote_put(f->db, &moved, &put_item, &f->err));
    assert_int_equal(put_item, item);
    struct tide_drive_outcome outcome = {
        .verb = TIDE_DRIVE_MOVE_LOCAL, .item = item, .row = rows[1]};
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_base WHERE name = X'78'"), 1);
    OK(tide_drive_scan_begin(f->db, &scan, &f->err));
    outcome.row = put(f, scan, TIDE_DRIVE_ROOT, "renamed", 7);
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_base WHERE name = X'78'"), 0);
    assert_int_equal(number(f, "SELECT parent FROM drive_base WHERE item ="
                               " (SELECT item FROM drive_item WHERE id = 'x')"),
                     TIDE_DRIVE_ROOT);
}

/* ---- lists ---- */

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

/* ---- files that are not ours to write ---- */

TEST_ON(a_newer_state_is_left_alone, struct fixture *f, setup, teardown)
{
    OK(tide_rows_do(f->db, "a test", &f->err, "UPDATE drive_state SET version = 99"));
    OK(tide_rows_do(f->db, "a test", &f->err, "DROP TABLE drive_conflict"));
    assert_int_equal(tide_drive_store_tables(f->db, &f->err), TIDE_NEWER);
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_schema WHERE name = 'drive_conflict'"),
                     0);
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

/* A damaged file is an error, not an empty drive. */
TEST(a_damaged_file_is_an_error)
{
    char path[] = "/tmp/drive-store-XXXXXX";
    const int fd = mkstemp(path);
    tide_error err = {TIDE_OK, 0, ""};
    sqlite3 *handle = NULL;
    assert_true(fd >= 0);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    tide_rows db = {.sqlite = handle};
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
