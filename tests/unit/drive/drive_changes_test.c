/* drive_changes_test.c - the change buffer and its sets of folders (DFS1, DCH1 to DCH3, DDI1).
 *
 * Goal: no change is lost and none waits longer than it says, whatever comes in which order.
 * Method: short stories with times as arguments; random streams of changes from a printed seed, each
 * checked against a plain list of what was added when; memory that fails at every allocation. */
#include "base/rng.h"
#include "drive/watch/changes.h"
#include "drive/watch/dirty.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/test.h"

static bool take(tide_drive_changes *changes, uint64_t now_ms, tide_drive_folders *folders)
{
    tide_drive_folders_clear(folders);
    return tide_drive_changes_take(changes, now_ms, folders);
}

TEST(a_set_has_each_path_once_in_order)
{
    tide_drive_folders folders;
    tide_text path;
    size_t at = 0;
    tide_drive_folders_init(&folders, tide_mem_heap());
    tide_drive_folders_add(&folders, TIDE_TEXT("b"));
    tide_drive_folders_add(&folders, TIDE_TEXT(""));
    tide_drive_folders_add(&folders, TIDE_TEXT("b/c"));
    tide_drive_folders_add(&folders, TIDE_TEXT("b"));
    assert_int_equal(folders.count, 3);
    static const char *const expected[] = {"b", "", "b/c"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(tide_drive_folders_next(&folders, &at, &path));
        assert_true(tide_text_equal(path, tide_text_of(expected[i])));
        assert_true(tide_drive_folders_has(&folders, path));
    }
    assert_false(tide_drive_folders_next(&folders, &at, &path));
    assert_false(tide_drive_folders_has(&folders, TIDE_TEXT("c")));
    tide_drive_folders_done(&folders);
}

/* DFS1: a ceiling makes it more, never less. */
TEST(a_set_that_is_full_is_all)
{
    tide_drive_folders folders;
    tide_drive_folders_init(&folders, tide_mem_heap());
    for (unsigned i = 0; i <= TIDE_DRIVE_FOLDERS_MAX; i++) {
        assert_false(folders.all);
        tide_drive_folders_add(&folders, tide_text_of(textf("folder %u", i)));
        assert_true(tide_drive_folders_has(&folders, TIDE_TEXT("folder 0")));
    }
    assert_true(folders.all);
    tide_drive_folders_clear(&folders);
    assert_false(tide_drive_folders_any(&folders));
    tide_drive_folders_done(&folders);
}

TEST(a_set_without_memory_is_all)
{
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_drive_folders folders;
        tide_mem_faulty_once(&mem, fail_at);
        tide_drive_folders_init(&folders, &mem.base);
        for (unsigned i = 0; i < 100; i++)
            tide_drive_folders_add(&folders, tide_text_of(textf("folder %u", i)));
        for (unsigned i = 0; i < 100; i++)
            assert_true(tide_drive_folders_has(&folders, tide_text_of(textf("folder %u", i))));
        assert_int_equal(folders.all, mem.fired);
        tide_drive_folders_done(&folders);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired)
            return;
    }
}

/* DCH1: half a second of quiet. */
TEST(a_change_waits_until_it_is_quiet)
{
    tide_drive_changes changes;
    tide_drive_folders folders;
    tide_drive_changes_init(&changes, tide_mem_heap());
    tide_drive_folders_init(&folders, tide_mem_heap());
    assert_true(tide_drive_changes_wake_at_ms(&changes) == UINT64_MAX);
    tide_drive_changes_add(&changes, TIDE_TEXT("a"), false, 1000);
    assert_int_equal(tide_drive_changes_wake_at_ms(&changes), 1500);
    tide_drive_changes_add(&changes, TIDE_TEXT("a"), false, 1400);
    assert_int_equal(tide_drive_changes_wake_at_ms(&changes), 1900);
    assert_false(take(&changes, 1899, &folders));
    assert_true(take(&changes, 1900, &folders));
    assert_int_equal(folders.count, 1);
    assert_true(tide_drive_folders_has(&folders, TIDE_TEXT("a")));
    assert_true(tide_drive_changes_wake_at_ms(&changes) == UINT64_MAX); /* DCH3 */
    assert_false(take(&changes, 100000, &folders));
    tide_drive_folders_done(&folders);
    tide_drive_changes_done(&changes);
}

/* DCH1: a folder that is never quiet is looked at all the same. */
TEST(a_change_waits_two_seconds_at_most)
{
    tide_drive_changes changes;
    tide_drive_folders folders;
    uint64_t taken_ms = 0;
    tide_drive_changes_init(&changes, tide_mem_heap());
    tide_drive_folders_init(&folders, tide_mem_heap());
    for (uint64_t now_ms = 0; taken_ms == 0; now_ms += 100) {
        tide_drive_changes_add(&changes, TIDE_TEXT("log"), false, now_ms);
        if (take(&changes, now_ms, &folders))
            taken_ms = now_ms;
    }
    assert_int_equal(taken_ms, 2000);
    tide_drive_folders_done(&folders);
    tide_drive_changes_done(&changes);
}

/* DCH2, S13: the folder of a deletion comes again after ten seconds, alone, and once. */
TEST(a_deletion_is_looked_at_again_ten_seconds_later)
{
    tide_drive_changes changes;
    tide_drive_folders folders;
    tide_drive_changes_init(&changes, tide_mem_heap());
    tide_drive_folders_init(&folders, tide_mem_heap());
    tide_drive_changes_add(&changes, TIDE_TEXT("a"), true, 0);
    tide_drive_changes_add(&changes, TIDE_TEXT("b"), false, 0);
    assert_true(take(&changes, 500, &folders));
    assert_int_equal(folders.count, 2);
    assert_int_equal(tide_drive_changes_wake_at_ms(&changes), 10500);
    assert_false(take(&changes, 10499, &folders));
    assert_true(take(&changes, 10500, &folders));
    assert_int_equal(folders.count, 1);
    assert_true(tide_drive_folders_has(&folders, TIDE_TEXT("a")));
    assert_true(tide_drive_changes_wake_at_ms(&changes) == UINT64_MAX);
    tide_drive_folders_done(&folders);
    tide_drive_changes_done(&changes);
}

/* Everything is due together and once, whatever else is waiting (F15). */
TEST(lost_events_mean_everything)
{
    tide_drive_changes changes;
    tide_drive_folders folders;
    tide_drive_changes_init(&changes, tide_mem_heap());
    tide_drive_folders_init(&folders, tide_mem_heap());
    tide_drive_changes_add(&changes, TIDE_TEXT("a"), false, 0);
    tide_drive_changes_add_all(&changes, 100);
    tide_drive_changes_add(&changes, TIDE_TEXT("b"), false, 200);
    assert_true(take(&changes, 700, &folders));
    assert_true(folders.all);
    assert_true(tide_drive_changes_wake_at_ms(&changes) == UINT64_MAX);
    tide_drive_folders_done(&folders);
    tide_drive_changes_done(&changes);
}

enum { NAMES = 5 };

/* What a folder is still owed, kept plainly. */
struct owed {
    bool changed;
    uint64_t changed_ms; /* the first that was not taken */
    bool deleted;        /* of it: an entry left */
    bool again;          /* taken once, to be taken again */
    uint64_t again_ms;   /* since when */
};

static void check_taken(struct owed *owed, bool in, uint64_t now_ms)
{
    if (in && owed->again && now_ms >= owed->again_ms + TIDE_DRIVE_DELETED_MS)
        owed->again = false;
    if (in && owed->deleted) {
        owed->again = true;
        owed->again_ms = now_ms;
    }
    if (in)
        owed->changed = owed->deleted = false;
    assert_true(!owed->changed || now_ms < owed->changed_ms + TIDE_DRIVE_CHANGE_MS_MAX);
    assert_true(!owed->again ||
                now_ms < owed->again_ms + (uint64_t)2 * TIDE_DRIVE_DELETED_MS + 100);
}

TEST(random_changes_are_all_taken_in_time)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        tide_drive_changes changes;
        tide_drive_folders folders;
        struct owed owed[NAMES] = {{.changed = false}};
        tide_rng rng = tide_rng_seeded(seed);
        tide_drive_changes_init(&changes, tide_mem_heap());
        tide_drive_folders_init(&folders, tide_mem_heap());
        const uint64_t busy = 1 + tide_rng_below(&rng, 40);
        for (uint64_t now_ms = 0; now_ms < 60000; now_ms += 50) {
            const size_t at = (size_t)tide_rng_below(&rng, NAMES);
            if (now_ms < 30000 && tide_rng_below(&rng, busy) == 0) {
                const bool deleted = tide_rng_below(&rng, 3) == 0;
                if (!owed[at].changed)
                    owed[at].changed_ms = now_ms;
                owed[at].changed = true;
                owed[at].deleted = owed[at].deleted || deleted;
                tide_drive_changes_add(&changes, tide_text_of(textf("%zu", at)), deleted, now_ms);
            }
            const bool taken = take(&changes, now_ms, &folders);
            assert_int_equal(taken, tide_drive_folders_any(&folders));
            for (size_t i = 0; i < NAMES; i++)
                check_taken(&owed[i],
                            tide_drive_folders_has(&folders, tide_text_of(textf("%zu", i))),
                            now_ms);
        }
        assert_true(tide_drive_changes_wake_at_ms(&changes) == UINT64_MAX);
        tide_drive_folders_done(&folders);
        tide_drive_changes_done(&changes);
    }
}

/* DDI1. */
TEST(a_job_takes_what_was_added_once)
{
    tide_world *world = NULL;
    tide_drive_dirty *dirty = NULL;
    tide_drive_folders folders, taken;
    tide_error err;
    OK(tide_world_real_new(tide_mem_heap(), &world, &err));
    OK(tide_drive_dirty_new(world, tide_mem_heap(), &dirty, &err));
    tide_drive_folders_init(&folders, tide_mem_heap());
    tide_drive_folders_init(&taken, tide_mem_heap());
    tide_drive_folders_add(&folders, TIDE_TEXT("a"));

    tide_drive_dirty_take(dirty, 1, &taken); /* not watched: each time */
    assert_true(taken.all);
    tide_drive_folders_clear(&taken);
    tide_drive_dirty_watched(dirty, 1);
    tide_drive_dirty_take(dirty, 1, &taken); /* watched from now on */
    assert_true(taken.all);
    tide_drive_folders_clear(&taken);
    tide_drive_dirty_take(dirty, 1, &taken);
    assert_false(tide_drive_folders_any(&taken));

    tide_drive_dirty_add(dirty, 1, &folders);
    tide_drive_dirty_add(dirty, 1, &folders);
    tide_drive_dirty_take(dirty, 2, &taken); /* another drive */
    assert_true(taken.all);
    tide_drive_folders_clear(&taken);
    tide_drive_dirty_take(dirty, 1, &taken);
    assert_int_equal(taken.count, 1);
    tide_drive_dirty_add(dirty, 1, &taken); /* the job failed */
    tide_drive_folders_clear(&taken);
    tide_drive_dirty_take(dirty, 1, &taken);
    assert_true(tide_drive_folders_has(&taken, TIDE_TEXT("a")) && !taken.all);

    tide_drive_dirty_unwatched(dirty, 2); /* another drive */
    tide_drive_folders_clear(&taken);
    tide_drive_dirty_take(dirty, 1, &taken);
    assert_false(tide_drive_folders_any(&taken));
    tide_drive_dirty_unwatched(dirty, 1);
    tide_drive_dirty_take(dirty, 1, &taken);
    assert_true(taken.all);
    tide_drive_folders_clear(&taken);
    tide_drive_dirty_watched(dirty, 1); /* again: nobody told of what happened meanwhile */
    tide_drive_dirty_take(dirty, 1, &taken);
    assert_true(taken.all);
    tide_drive_folders_done(&taken);
    tide_drive_folders_done(&folders);
    tide_drive_dirty_free(dirty);
    tide_world_real_free(world);
}
