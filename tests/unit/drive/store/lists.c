/* lists.c - consent, conflicts, and what is owed. */
#include "drive_store_fixture.h"

#include "drive/store/concerns.h"
#include "drive/store/look.h"
#include "drive/store/report.h"

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
