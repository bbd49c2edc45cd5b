/* drive_plan_test.c - whole plans: random worlds, moves, circles, guards, size (DPL1 to DPL6).
 *
 * Goal: whatever two users do to two trees, plans carried out in any order that keeps their edges,
 * and interrupted anywhere, end in one tree in which nothing is lost (I1, I2, I11, I12).
 * Method: users from a seed; an executor in memory (support/drive/world.h) that supersedes what no
 * longer holds.  What must not be lost is written down before the sync: every content that a user
 * made and that neither user deleted or replaced. */
#include "support/drive/world.h"
#include "drive/names/names.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/sweep.h"
#include "support/test.h"

static void plan_of(struct drive_world *world, struct tide_drive_plan *plan)
{
    const struct tide_drive_plan_options options = drive_options(world);
    OK(tide_drive_plan(drive_rows(world), &options, tide_mem_heap(), plan, NULL));
}

/* ---- what a plan promises by itself ---- */

/* DPL3: the edges have no circle; DPL4: one action for each verb of an item. */
static void check_plan(const struct tide_drive_plan *plan)
{
    uint32_t *waits = calloc(plan->actions_count + 1, sizeof *waits);
    size_t left = plan->actions_count;
    for (size_t i = 0; i < plan->edges_count; i++) {
        waits[plan->edges[i].after]++;
        if (plan->actions[plan->edges[i].before].state != TIDE_DRIVE_READY)
            assert_int_not_equal(plan->actions[plan->edges[i].after].state, TIDE_DRIVE_READY);
    }
    for (bool more = true; more;) {
        more = false;
        for (uint32_t a = 0; a < plan->actions_count; a++) {
            if (waits[a] != 0)
                continue;
            waits[a] = UINT32_MAX;
            left--;
            more = true;
            for (size_t i = 0; i < plan->edges_count; i++)
                if (plan->edges[i].before == a)
                    waits[plan->edges[i].after]--;
        }
    }
    assert_int_equal(left, 0);
    free(waits);
    for (size_t i = 0; i < plan->actions_count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct tide_drive_action *a = &plan->actions[i], *b = &plan->actions[k];
            assert_false(a->verb == b->verb && a->item == b->item && a->row == b->row &&
                         a->step_aside == b->step_aside);
        }
}

/* ---- what must not be lost ---- */

struct kept {
    uint64_t contents[512];
    size_t count;
};

/* New or changed against the baseline, on either side (I1). */
static void note_new(struct drive_world *world, struct kept *kept)
{
    struct drive_side *sides[] = {&world->online, &world->here};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s]->count; i++) {
            const struct drive_item *item = &sides[s]->items[i];
            bool known = item->kind == TIDE_DRIVE_FOLDER || !item->alive;
            for (size_t k = 0; k < world->records_count && !known; k++)
                known = world->records[k].alive && world->records[k].content == item->content;
            if (!known && kept->count < 512)
                kept->contents[kept->count++] = item->content;
        }
}

static void check_end(struct drive_world *world, const struct kept *kept, uint64_t seed)
{
    const char *differs = drive_differs(world);
    if (differs != NULL) {
        drive_print(world, NULL);
        fail_msg("seed %" PRIu64 ": %s differs", seed, differs);
    }
    for (size_t i = 0; i < kept->count; i++)
        if (!drive_has_content(&world->online, kept->contents[i]) ||
            !drive_has_content(&world->here, kept->contents[i])) {
            drive_print(world, NULL);
            fail_msg("seed %" PRIu64 ": content %" PRIu64 " is lost", seed, kept->contents[i]);
        }
    for (size_t i = 0; i < world->online.count; i++) /* I16 */
        if (world->online.items[i].alive)
            assert_false(tide_drive_name_is_ours(tide_text_of(world->online.items[i].name)));
}

static void converge(struct drive_world *world, tide_rng *rng, uint64_t seed)
{
    for (int round = 0; round < 12; round++) {
        struct tide_drive_plan plan;
        plan_of(world, &plan);
        check_plan(&plan);
        const size_t count = plan.actions_count;
        (void)drive_run(world, &plan, rng, SIZE_MAX);
        if (round == 11 && count > 0) {
            drive_print(world, &plan);
            fail_msg("seed %" PRIu64 " does not end", seed);
        }
        tide_drive_plan_done(&plan);
        if (count == 0)
            return;
    }
}

TEST(random_worlds_end_in_one_tree_in_which_nothing_is_lost)
{
    for (uint64_t seed = 1; seed <= scaled(2000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        struct drive_world *world = drive_world_new();
        for (int day = 0; day < 4; day++) {
            struct kept kept = {.count = 0};
            for (uint64_t acts = tide_rng_below(&rng, 14); acts > 0; acts--)
                drive_act(world, tide_rng_chance(&rng, 1, 2) ? &world->online : &world->here, &rng);
            note_new(world, &kept);
            converge(world, &rng, seed);
            check_end(world, &kept, seed);
            world->now_ms += 1000;
        }
        drive_world_free(world);
    }
}

/* Interrupted after any number of actions, with users who go on meanwhile. */
TEST(interrupted_anywhere_it_still_ends_and_loses_nothing)
{
    for (uint64_t seed = 1; seed <= scaled(2000); seed++) {
        tide_rng rng = tide_rng_seeded(seed + 1000000);
        struct drive_world *world = drive_world_new();
        for (int i = 0; i < 14; i++)
            drive_act(world, &world->online, &rng);
        converge(world, &rng, seed);
        for (int life = 0; life < 5; life++) {
            struct tide_drive_plan plan;
            for (uint64_t acts = tide_rng_below(&rng, 5); acts > 0; acts--)
                drive_act(world, tide_rng_chance(&rng, 1, 2) ? &world->online : &world->here, &rng);
            plan_of(world, &plan);
            check_plan(&plan);
            (void)drive_run(world, &plan, &rng, (size_t)tide_rng_below(&rng, 6));
            tide_drive_plan_done(&plan);
            world->now_ms += 1000;
        }
        struct kept kept = {.count = 0};
        note_new(world, &kept);
        converge(world, &rng, seed);
        check_end(world, &kept, seed);
        drive_world_free(world);
    }
}

/* ---- S1, S2, S13: what is not proved ---- */

static struct drive_world *synced(uint64_t files, uint64_t folders)
{
    struct drive_world *world = drive_world_new();
    tide_rng rng = tide_rng_seeded(files);
    for (uint64_t f = 0; f < folders; f++) {
        const uint64_t folder = drive_add(world, &world->online, TIDE_DRIVE_ROOT,
                                          textf("d%" PRIu64, f), TIDE_DRIVE_FOLDER, 0)
                                    ->id;
        for (uint64_t i = 0; i < files; i++)
            (void)drive_add(world, &world->online, folder, textf("f%" PRIu64, i), TIDE_DRIVE_FILE,
                            world->next_content++);
    }
    assert_true(drive_sync(world, &rng) > 0);
    return world;
}

TEST(nothing_missing_in_an_incomplete_scan_is_deleted)
{
    struct drive_world *world = synced(5, 3);
    struct tide_drive_plan plan;
    for (size_t i = 0; i < world->here.count; i++)
        world->here.items[i].alive = false; /* the disk is not mounted */
    world->scan_incomplete = true;
    plan_of(world, &plan);
    assert_int_equal(plan.actions_count, 0);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

TEST(an_item_without_a_remote_row_is_not_taken_for_deleted)
{
    struct drive_world *world = synced(5, 3);
    struct tide_drive_plan plan;
    struct tide_drive_trees trees = *drive_rows(world);
    const struct tide_drive_plan_options options = drive_options(world);
    trees.remotes_count = 0; /* a listing that broke off */
    OK(tide_drive_plan(&trees, &options, tide_mem_heap(), &plan, NULL));
    assert_int_equal(plan.actions_count, 0);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

TEST(beneath_a_folder_that_is_unsure_nothing_is_deleted_or_moved)
{
    struct drive_world *world = synced(5, 3);
    struct tide_drive_plan plan;
    struct drive_item *folder = drive_child(&world->here, TIDE_DRIVE_ROOT, "d1");
    folder->unsure = true;
    drive_delete(&world->online, drive_child(&world->online, TIDE_DRIVE_ROOT, "d1")->id);
    plan_of(world, &plan);
    assert_int_equal(plan.actions_count, 0);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* D34: the server forgot everything; nothing is deleted here, everything goes up again. */
TEST(what_the_server_forgot_is_uploaded)
{
    struct drive_world *world = synced(3, 2);
    tide_rng rng = tide_rng_seeded(1);
    for (size_t i = 0; i < world->online.count; i++) {
        world->online.items[i].alive = false;
        world->online.items[i].forgotten = true;
    }
    const uint64_t before = world->uploads;
    assert_true(drive_sync(world, &rng) > 0);
    assert_null(drive_differs(world));
    assert_int_equal(world->uploads - before, 6);
    assert_int_equal(world->deletions, 0);
    drive_world_free(world);
}

/* ---- moves (D22, D24, D26; I6) ---- */

TEST(renaming_a_folder_moves_one_thing_and_transfers_nothing)
{
    struct drive_world *world = synced(100, 2);
    struct tide_drive_plan plan;
    const struct drive_item *folder = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0");
    assert_true(drive_move(&world->here, folder->id, TIDE_DRIVE_ROOT, "renamed"));
    plan_of(world, &plan);
    assert_int_equal(plan.actions_count, 1);
    assert_int_equal(plan.actions[0].verb, TIDE_DRIVE_MOVE_REMOTE);
    assert_int_equal(plan.deletions, 0);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

TEST(two_names_that_are_exchanged_need_one_step_aside)
{
    struct drive_world *world = synced(2, 1);
    struct tide_drive_plan plan;
    tide_rng rng = tide_rng_seeded(2);
    const uint64_t folder = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    struct drive_item *a = drive_child(&world->here, folder, "f0");
    struct drive_item *b = drive_child(&world->here, folder, "f1");
    (void)snprintf(a->name, sizeof a->name, "f1");
    (void)snprintf(b->name, sizeof b->name, "f0");
    plan_of(world, &plan);
    check_plan(&plan);
    assert_int_equal(plan.actions_count, 3);
    unsigned asides = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(plan.actions[i].verb, TIDE_DRIVE_MOVE_REMOTE);
        asides += plan.actions[i].step_aside;
    }
    assert_int_equal(asides, 1);
    tide_drive_plan_done(&plan);
    const uint64_t moved = world->uploads + world->downloads;
    assert_true(drive_sync(world, &rng) > 0);
    assert_null(drive_differs(world));
    assert_int_equal(world->uploads + world->downloads, moved); /* I6 */
    drive_world_free(world);
}

/* I10: a file that was moved and edited here is moved online, and then overwritten. */
TEST(the_steps_of_an_item_run_one_after_the_other)
{
    struct drive_world *world = synced(1, 2);
    struct tide_drive_plan plan;
    const uint64_t from = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    const uint64_t to = drive_child(&world->here, TIDE_DRIVE_ROOT, "d1")->id;
    const uint64_t file = drive_child(&world->here, from, "f0")->id;
    assert_true(drive_move(&world->here, file, to, "moved"));
    drive_edit(world, &world->here, file, false);
    plan_of(world, &plan);
    assert_int_equal(plan.actions_count, 2);
    assert_int_equal(plan.edges_count, 1);
    assert_int_equal(plan.actions[plan.edges[0].before].verb, TIDE_DRIVE_MOVE_REMOTE);
    assert_int_equal(plan.actions[plan.edges[0].after].verb, TIDE_DRIVE_UP);
    tide_drive_plan_done(&plan);
    /* A move that the mode forbids keeps no upload back (D20). */
    drive_edit(world, &world->here, file, false);
    struct tide_drive_plan_options options = drive_options(world);
    options.mode = TIDE_DRIVE_UPLOAD_ONLY;
    assert_true(drive_move(&world->here, file, from, "f0"));
    const uint64_t online =
        drive_record_of(world,
                        drive_child(&world->online,
                                    drive_child(&world->online, TIDE_DRIVE_ROOT, "d0")->id, "f0")
                            ->id)
            ->item;
    assert_true(drive_move(&world->online, online, TIDE_DRIVE_ROOT, "elsewhere"));
    OK(tide_drive_plan(drive_rows(world), &options, tide_mem_heap(), &plan, NULL));
    assert_int_equal(plan.actions_count, 2);
    assert_int_equal(plan.edges_count, 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(plan.actions[i].state, plan.actions[i].verb == TIDE_DRIVE_UP
                                                    ? TIDE_DRIVE_READY
                                                    : TIDE_DRIVE_HELD_MODE);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* I10: two files that want one name, one of them moved on both sides to other places: each side has its
 * move, and they are not at a time. */
TEST(the_moves_of_an_item_on_both_sides_have_an_order)
{
    struct drive_world *world = synced(1, 2);
    struct tide_drive_plan plan;
    const uint64_t here = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    const uint64_t online = drive_child(&world->online, TIDE_DRIVE_ROOT, "d1")->id;
    const uint64_t file = drive_child(&world->here, here, "f0")->id;
    const uint64_t other = drive_child(&world->online, online, "f0")->id;
    /* Both want "same" at the top: the loser takes a conflict name on both sides (k8). */
    assert_true(drive_move(&world->here, file, TIDE_DRIVE_ROOT, "same"));
    assert_true(drive_move(&world->online, other, TIDE_DRIVE_ROOT, "same"));
    plan_of(world, &plan);
    check_plan(&plan);
    unsigned pairs = 0;
    for (uint32_t i = 0; i < plan.actions_count; i++)
        for (uint32_t k = 0; k < plan.actions_count; k++)
            if (plan.actions[i].verb == TIDE_DRIVE_MOVE_LOCAL &&
                plan.actions[k].verb == TIDE_DRIVE_MOVE_REMOTE &&
                plan.actions[i].item == plan.actions[k].item) {
                bool ordered = false;
                for (size_t e = 0; e < plan.edges_count; e++)
                    ordered = ordered || (plan.edges[e].before == i && plan.edges[e].after == k) ||
                              (plan.edges[e].before == k && plan.edges[e].after == i);
                assert_true(ordered);
                pairs++;
            }
    assert_int_equal(pairs, 1);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* F38: d0 goes into d1 here, d1 into d0 online. */
TEST(folders_moved_into_each_other_keep_the_place_online)
{
    struct drive_world *world = synced(1, 2);
    struct tide_drive_plan plan;
    tide_rng rng = tide_rng_seeded(3);
    const uint64_t here0 = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    const uint64_t here1 = drive_child(&world->here, TIDE_DRIVE_ROOT, "d1")->id;
    const uint64_t online0 = drive_child(&world->online, TIDE_DRIVE_ROOT, "d0")->id;
    const uint64_t online1 = drive_child(&world->online, TIDE_DRIVE_ROOT, "d1")->id;
    assert_true(drive_move(&world->here, here0, here1, "d0"));
    assert_true(drive_move(&world->online, online1, online0, "d1"));
    plan_of(world, &plan);
    check_plan(&plan);
    assert_int_equal(plan.actions_count, 2); /* d0 back out, then d1 into it */
    assert_int_equal(plan.edges_count, 1);
    tide_drive_plan_done(&plan);
    assert_true(drive_sync(world, &rng) > 0);
    assert_null(drive_differs(world));
    assert_non_null(drive_child(&world->here, here0, "d1"));
    drive_world_free(world);
}

/* D26: deleted and created again online: new bytes over the old, no deletion. */
TEST(a_file_created_again_online_is_the_same_file_here)
{
    struct drive_world *world = synced(1, 1);
    struct tide_drive_plan plan;
    const uint64_t folder = drive_child(&world->online, TIDE_DRIVE_ROOT, "d0")->id;
    const uint64_t old = drive_child(&world->online, folder, "f0")->id;
    drive_delete(&world->online, old);
    (void)drive_add(world, &world->online, folder, "F0", TIDE_DRIVE_FILE, world->next_content++);
    plan_of(world, &plan);
    assert_int_equal(plan.actions[plan.actions_count - 1].verb, TIDE_DRIVE_DOWN);
    assert_int_equal(plan.actions[plan.actions_count - 1].was_item, old);
    assert_int_equal(plan.deletions, 0);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* D22: an inode that was used again, with the size of the old file (F21). */
TEST(an_inode_alone_is_no_move)
{
    struct drive_world *world = synced(2, 1);
    struct tide_drive_plan plan;
    const uint64_t folder = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    const uint64_t birth = drive_child(&world->here, folder, "f0")->birth;
    drive_delete(&world->here, drive_child(&world->here, folder, "f0")->id);
    struct drive_item *other =
        drive_add(world, &world->here, folder, "new", TIDE_DRIVE_FILE, world->next_content++);
    const uint64_t row = other->id;
    (void)drive_rows(world);
    for (size_t i = 0; i < world->trees.locals_count; i++)
        if (world->locals[i].row == row)
            world->locals[i].identity = (struct tide_drive_identity){1, birth, 77};
    const struct tide_drive_plan_options options = drive_options(world);
    OK(tide_drive_plan(&world->trees, &options, tide_mem_heap(), &plan, NULL));
    assert_int_equal(plan.actions_count, 2); /* delR of the one, upload of the other */
    for (size_t i = 0; i < 2; i++)
        assert_true(plan.actions[i].verb == TIDE_DRIVE_DEL_REMOTE ||
                    plan.actions[i].verb == TIDE_DRIVE_NEW);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* Found by the simulation, on a disk without birth times: d0 died online and stepped aside here, and d1
 * has its name by now. */
TEST(an_entry_that_stepped_aside_is_still_the_item)
{
    struct drive_world *world = synced(1, 2);
    struct tide_drive_plan plan;
    struct drive_item *d0 = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0");
    const struct drive_item *d1 = drive_child(&world->here, TIDE_DRIVE_ROOT, "d1");
    const uint64_t row = d0->id;
    drive_delete(&world->here, drive_child(&world->here, row, "f0")->id);
    drive_delete(&world->online, drive_child(&world->online, TIDE_DRIVE_ROOT, "d0")->id);
    assert_true(drive_move(&world->here, row, TIDE_DRIVE_ROOT, "tidemark-move-00000001"));
    (void)snprintf(d0->was_name, sizeof d0->was_name, "d0");
    d0->stepped = true;
    assert_true(drive_move(&world->here, d1->id, TIDE_DRIVE_ROOT, "d0"));
    (void)drive_rows(world);
    for (size_t i = 0; i < world->trees.locals_count; i++)
        world->locals[i].identity.birth_ns = 0;
    for (size_t i = 0; i < world->trees.bases_count; i++)
        world->bases[i].identity.birth_ns = 0;
    const struct tide_drive_plan_options options = drive_options(world);
    OK(tide_drive_plan(&world->trees, &options, tide_mem_heap(), &plan, NULL));
    for (size_t i = 0; i < plan.actions_count; i++) {
        assert_int_not_equal(plan.actions[i].verb, TIDE_DRIVE_DEL_REMOTE);
        if (plan.actions[i].verb == TIDE_DRIVE_DEL_LOCAL)
            assert_int_equal(plan.actions[i].row, row);
    }
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* Found by the simulation, on a disk without birth times: an action moved a folder here, its new place is
 * not recorded yet, and its children are the same on both sides, so that no plan has their rows. */
TEST(a_folder_that_an_action_moved_keeps_its_item)
{
    struct drive_world *world = synced(1, 2);
    struct tide_drive_plan plan;
    const uint64_t row = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    assert_true(drive_move(&world->here, row, TIDE_DRIVE_ROOT, "moved"));
    (void)drive_rows(world);
    struct tide_drive_trees trees = world->trees;
    size_t locals = 0;
    for (size_t i = 0; i < trees.locals_count; i++)
        if (world->locals[i].kind == TIDE_DRIVE_FOLDER)
            world->locals[locals++] = world->locals[i];
    for (size_t i = 0; i < locals; i++)
        world->locals[i].identity.birth_ns = 0;
    for (size_t i = 0; i < trees.bases_count; i++) {
        world->bases[i].identity.birth_ns = 0;
        world->bases[i].local_gone = world->bases[i].kind == TIDE_DRIVE_FOLDER;
    }
    trees.locals_count = locals;
    const struct tide_drive_plan_options options = drive_options(world);
    OK(tide_drive_plan(&trees, &options, tide_mem_heap(), &plan, NULL));
    assert_int_equal(plan.actions_count, 1);
    assert_int_equal(plan.actions[0].verb, TIDE_DRIVE_MOVE_REMOTE);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* D22: copied and deleted, as mv between file systems does. */
TEST(the_only_new_file_with_the_bytes_is_the_moved_one)
{
    struct drive_world *world = synced(2, 1);
    struct tide_drive_plan plan;
    const uint64_t folder = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    const struct drive_item old = *drive_child(&world->here, folder, "f0");
    drive_delete(&world->here, old.id);
    (void)drive_add(world, &world->here, TIDE_DRIVE_ROOT, "g", TIDE_DRIVE_FILE, old.content);
    plan_of(world, &plan);
    assert_int_equal(plan.actions_count, 1);
    assert_int_equal(plan.actions[0].verb, TIDE_DRIVE_MOVE_REMOTE);
    tide_drive_plan_done(&plan);
    /* Of two such files neither is it. */
    (void)drive_add(world, &world->here, TIDE_DRIVE_ROOT, "h", TIDE_DRIVE_FILE, old.content);
    plan_of(world, &plan);
    assert_int_equal(plan.actions_count, 3);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

TEST(two_local_names_with_one_key_are_held_and_one_with_a_baseline_syncs_on)
{
    struct drive_world *world = synced(1, 1);
    struct tide_drive_plan plan;
    const uint64_t folder = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    (void)drive_add(world, &world->here, folder, "Twin", TIDE_DRIVE_FILE, 900);
    (void)drive_add(world, &world->here, folder, "twin", TIDE_DRIVE_FILE, 901);
    (void)drive_add(world, &world->here, folder, "F0", TIDE_DRIVE_FILE, 902);
    drive_edit(world, &world->here, drive_child(&world->here, folder, "f0")->id, false);
    plan_of(world, &plan);
    assert_int_equal(plan.actions_count, 1);
    assert_int_equal(plan.actions[0].verb, TIDE_DRIVE_UP);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* D25: composed here, decomposed online. */
TEST(a_rename_in_unicode_form_only_is_not_sent)
{
    struct drive_world *world = drive_world_new();
    struct tide_drive_plan plan;
    tide_rng rng = tide_rng_seeded(4);
    const uint64_t item =
        drive_add(world, &world->online, TIDE_DRIVE_ROOT, "a\xcc\x88", TIDE_DRIVE_FILE, 1)->id;
    assert_true(drive_sync(world, &rng) > 0);
    struct drive_item *here = drive_find(&world->here, drive_record_of(world, item)->row);
    (void)snprintf(here->name, sizeof here->name, "\xc3\xa4");
    plan_of(world, &plan);
    for (size_t i = 0; i < plan.actions_count; i++)
        assert_int_equal(plan.actions[i].verb, TIDE_DRIVE_BASE);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* ---- what cannot be read here (DPL6) ---- */

TEST(nothing_is_deleted_online_while_something_here_is_unread)
{
    for (int unread = 0; unread < 2; unread++) {
        struct drive_world *world = drive_world_new();
        const struct tide_drive_plan_options options = drive_options(world);
        struct tide_drive_plan plan;
        tide_rng rng = tide_rng_seeded(5);
        unsigned held = 0, others = 0, ready = 0;
        for (int i = 0; i < 4; i++)
            (void)drive_add(world, &world->online, TIDE_DRIVE_ROOT, textf("f%d", i),
                            TIDE_DRIVE_FILE, 10 + (uint64_t)i);
        assert_true(drive_sync(world, &rng) > 0);
        drive_delete(&world->here, drive_child(&world->here, TIDE_DRIVE_ROOT, "f0")->id);
        drive_delete(&world->here, drive_child(&world->here, TIDE_DRIVE_ROOT, "f1")->id);
        drive_delete(&world->online, drive_child(&world->online, TIDE_DRIVE_ROOT, "f2")->id);
        /* A new folder wants the name of a file that is missing: it waits for it. */
        (void)drive_add(world, &world->here, TIDE_DRIVE_ROOT, "f1", TIDE_DRIVE_FOLDER, 0);
        (void)drive_add(world, &world->here, TIDE_DRIVE_ROOT, "new", TIDE_DRIVE_FILE, 20);
        struct tide_drive_trees trees = *drive_rows(world);
        trees.unread_here = unread != 0;
        OK(tide_drive_plan(&trees, &options, tide_mem_heap(), &plan, NULL));
        check_plan(&plan);
        for (size_t i = 0; i < plan.actions_count; i++) {
            const struct tide_drive_action *action = &plan.actions[i];
            held += action->state == TIDE_DRIVE_HELD_UNREAD;
            others += action->state == TIDE_DRIVE_HELD_OTHER;
            ready += action->state == TIDE_DRIVE_READY;
            if (unread)
                assert_int_equal(action->state == TIDE_DRIVE_HELD_UNREAD,
                                 action->verb == TIDE_DRIVE_DEL_REMOTE);
        }
        assert_int_equal(held, unread ? 2 : 0);
        assert_int_equal(others, unread ? 1 : 0);
        assert_int_equal(ready, unread ? 2 : 5); /* the file that died online, and the new one */
        tide_drive_plan_done(&plan);
        drive_world_free(world);
    }
}

/* ---- the guard (S15), with the examples of the spec ---- */

static void guard_says(struct drive_world *world, uint64_t largest, uint64_t done, uint64_t count,
                       bool waits)
{
    struct tide_drive_plan_options options = drive_options(world);
    struct tide_drive_plan plan;
    options.guard.largest_24h = largest;
    options.guard.done_24h = done;
    OK(tide_drive_plan(drive_rows(world), &options, tide_mem_heap(), &plan, NULL));
    assert_int_equal(plan.deletions, count);
    assert_int_equal(plan.guarded, waits);
    for (size_t i = 0; i < plan.actions_count; i++) {
        const bool deletes = plan.actions[i].verb == TIDE_DRIVE_DEL_LOCAL ||
                             plan.actions[i].verb == TIDE_DRIVE_DEL_REMOTE;
        assert_int_equal(plan.actions[i].state == TIDE_DRIVE_WAITS_CONSENT, deletes && waits);
        if (!deletes)
            assert_int_equal(plan.actions[i].state, TIDE_DRIVE_READY); /* all else flows */
    }
    tide_drive_plan_done(&plan);
}

static void delete_folders(struct drive_world *world, struct drive_side *side, unsigned from,
                           unsigned to)
{
    for (unsigned i = from; i < to; i++)
        drive_delete(side, drive_child(side, TIDE_DRIVE_ROOT, textf("d%u", i))->id);
    (void)world;
}

TEST(the_guard_counts_items_of_both_sides_and_of_24_hours)
{
    struct drive_world *world = synced(100, 16);
    delete_folders(world, &world->here, 0, 15); /* 15 folders of 100 */
    guard_says(world, 5000, 0, 1515, true);
    drive_world_free(world);

    world = synced(100, 12);
    delete_folders(world, &world->here, 0, 5);
    delete_folders(world, &world->online, 5, 10); /* 505 here, 505 online */
    guard_says(world, 5000, 0, 1010, true);
    drive_world_free(world);

    world = synced(100, 4);
    delete_folders(world, &world->here, 0, 3); /* 303, after 606 and after 707 in the same day */
    guard_says(world, 5000, 606, 909, false);
    guard_says(world, 5000, 707, 1010, true);
    drive_world_free(world);

    world = synced(160, 1);
    delete_folders(world, &world->online, 0, 1); /* of 300 */
    guard_says(world, 300, 0, 161, true);
    guard_says(world, 400, 0, 161, false);
    drive_world_free(world);

    world = synced(4, 1);
    delete_folders(world, &world->online, 0, 1); /* 5 of 5 */
    guard_says(world, 5, 0, 5, false);
    drive_world_free(world);
}

TEST(a_folder_gone_here_with_files_edited_online_counts_what_is_deleted)
{
    struct drive_world *world = synced(1200, 1);
    const uint64_t folder = drive_child(&world->online, TIDE_DRIVE_ROOT, "d0")->id;
    delete_folders(world, &world->here, 0, 1);
    for (unsigned i = 0; i < 300; i++)
        drive_edit(world, &world->online, drive_child(&world->online, folder, textf("f%u", i))->id,
                   false);
    guard_says(world, 5000, 0, 900, false);
    drive_world_free(world);
}

TEST(consent_frees_exactly_the_items_it_names)
{
    struct drive_world *world = synced(20, 1);
    struct tide_drive_plan_options options = drive_options(world);
    struct tide_drive_plan plan;
    uint64_t consented[64];
    size_t count = 0;
    delete_folders(world, &world->here, 0, 1);
    (void)drive_rows(world);
    for (size_t i = 0; i < world->trees.bases_count; i++)
        if (i % 2 == 0)
            consented[count++] = world->bases[i].item;
    options.guard = (struct tide_drive_guard){
        .done_24h = 1000, .largest_24h = 21, .consented = consented, .consented_count = count};
    OK(tide_drive_plan(&world->trees, &options, tide_mem_heap(), &plan, NULL));
    assert_int_equal(plan.deletions, 1000 + 21 - count);
    size_t ready = 0;
    for (size_t i = 0; i < plan.actions_count; i++)
        ready += plan.actions[i].state == TIDE_DRIVE_READY;
    assert_in_range(ready, count - 1, count); /* the folder waits for its files */
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* ---- memory ---- */

static tide_status scenario(struct drive_world *world, tide_mem *mem)
{
    const struct tide_drive_plan_options options = drive_options(world);
    struct tide_drive_plan plan;
    const tide_status rc = tide_drive_plan(&world->trees, &options, mem, &plan, NULL);
    tide_drive_plan_done(&plan);
    return rc;
}

TEST(every_failed_allocation_is_reported)
{
    tide_rng rng = tide_rng_seeded(9);
    struct drive_world *world = synced(3, 3);
    for (int i = 0; i < 12; i++)
        drive_act(world, i % 2 == 0 ? &world->online : &world->here, &rng);
    (void)drive_rows(world);
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        const tide_status rc = scenario(world, &mem.base);
        assert_swept(mem, rc);
    }
    drive_world_free(world);
}

TEST(the_same_trees_have_the_same_plan)
{
    tide_rng rng = tide_rng_seeded(10);
    struct drive_world *world = synced(5, 5);
    for (int i = 0; i < 40; i++)
        drive_act(world, i % 2 == 0 ? &world->online : &world->here, &rng);
    struct tide_drive_plan one, two;
    plan_of(world, &one);
    plan_of(world, &two);
    assert_int_equal(one.actions_count, two.actions_count);
    assert_int_equal(one.edges_count, two.edges_count);
    for (size_t i = 0; i < one.actions_count; i++) {
        struct tide_drive_action a = one.actions[i], b = two.actions[i];
        assert_true(tide_text_equal(a.name, b.name));
        a.name = b.name;
        assert_true(a.verb == b.verb && a.item == b.item && a.row == b.row && a.state == b.state &&
                    a.notice == b.notice && a.parent_item == b.parent_item);
    }
    tide_drive_plan_done(&one);
    tide_drive_plan_done(&two);
    drive_world_free(world);
}

/* Found by the simulation: two files changed places, and the scan broke off after the first of them. */
TEST(a_stranger_at_the_path_of_an_item_is_not_taken_for_it)
{
    struct drive_world *world = synced(2, 1);
    struct tide_drive_plan plan;
    const uint64_t folder = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    const struct drive_item a = *drive_child(&world->here, folder, "f0");
    const struct drive_item b = *drive_child(&world->here, folder, "f1");
    drive_find(&world->here, a.id)->birth = b.birth;
    drive_find(&world->here, a.id)->content = b.content;
    drive_find(&world->here, b.id)->unsure = true; /* as the last scan knew it */
    plan_of(world, &plan);
    assert_int_equal(plan.actions_count, 0);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

static struct tide_drive_base *base_of(struct drive_world *world, const char *name)
{
    for (size_t i = 0; i < world->trees.bases_count; i++)
        if (tide_text_equal(world->bases[i].local_name, tide_text_of(name)))
            return &world->bases[i];
    return NULL;
}

/* Found by the simulation: a file got another item, and the first one, which is gone online, is not forgotten
 * yet.  By its path, and even by its identity, the file is both; its row says which (D22). */
TEST(a_file_is_the_item_that_has_its_row)
{
    for (int editor = 0; editor < 2; editor++) { /* that renames over it: another identity */
        struct drive_world *world = synced(2, 1);
        struct tide_drive_plan plan;
        const uint64_t here = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
        const uint64_t there = drive_child(&world->online, TIDE_DRIVE_ROOT, "d0")->id;
        drive_delete(&world->here, drive_child(&world->here, here, "f0")->id);
        drive_delete(&world->online, drive_child(&world->online, there, "f0")->id);
        struct drive_item *file = drive_child(&world->here, here, "f1");
        file->content = world->next_content++;
        if (editor != 0)
            file->birth = 12345;
        (void)drive_rows(world);
        struct tide_drive_base *first = base_of(world, "f0");
        const struct tide_drive_base *second = base_of(world, "f1");
        assert_true(first != NULL && second != NULL && first < second);
        first->name = first->local_name = second->local_name;
        first->identity = second->identity;
        first->row = 0;
        first->local_gone = true;
        const struct tide_drive_plan_options options = drive_options(world);
        OK(tide_drive_plan(&world->trees, &options, tide_mem_heap(), &plan, NULL));
        assert_int_equal(plan.actions_count, 2);
        for (size_t i = 0; i < 2; i++) {
            const bool drops = plan.actions[i].verb == TIDE_DRIVE_DROP;
            assert_true(drops || plan.actions[i].verb == TIDE_DRIVE_UP);
            assert_int_equal(plan.actions[i].item, drops ? first->item : second->item);
        }
        tide_drive_plan_done(&plan);
        drive_world_free(world);
    }
}

/* Found by the simulation: the same with folders, where the first one had another path. */
TEST(a_folder_is_the_item_that_has_its_row)
{
    struct drive_world *world = synced(0, 2);
    struct tide_drive_plan plan;
    drive_delete(&world->here, drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id);
    (void)drive_rows(world);
    struct tide_drive_base *first = base_of(world, "d0");
    const struct tide_drive_base *second = base_of(world, "d1");
    assert_true(first != NULL && second != NULL && first < second);
    first->identity = second->identity;
    const struct tide_drive_plan_options options = drive_options(world);
    OK(tide_drive_plan(&world->trees, &options, tide_mem_heap(), &plan, NULL));
    assert_int_equal(plan.actions_count, 1);
    assert_int_equal(plan.actions[0].verb, TIDE_DRIVE_DEL_REMOTE);
    assert_int_equal(plan.actions[0].item, first->item);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}

/* Found by the simulation: a late echo of the feed put two folders into each other.  Nothing is done with
 * them and beneath them; the rest goes on. */
TEST(folders_that_contain_each_other_online_are_left_alone)
{
    struct drive_world *world = synced(2, 4);
    struct tide_drive_plan plan;
    struct drive_item *a = drive_child(&world->online, TIDE_DRIVE_ROOT, "d0");
    struct drive_item *b = drive_child(&world->online, TIDE_DRIVE_ROOT, "d1");
    const uint64_t inside = drive_child(&world->online, a->id, "f0")->id;
    a->parent = b->id;
    b->parent = a->id;
    drive_find(&world->online, inside)->content = 77;
    const uint64_t to = drive_child(&world->here, TIDE_DRIVE_ROOT, "d0")->id;
    const uint64_t moved = drive_child(&world->here, TIDE_DRIVE_ROOT, "d2")->id;
    assert_true(drive_move(&world->here, moved, to, "d2"));
    const uint64_t other = drive_child(&world->here, TIDE_DRIVE_ROOT, "d3")->id;
    drive_edit(world, &world->here, drive_child(&world->here, other, "f0")->id, false);
    plan_of(world, &plan);
    check_plan(&plan);
    assert_int_equal(plan.actions_count, 1);
    assert_int_equal(plan.actions[0].verb, TIDE_DRIVE_UP);
    tide_drive_plan_done(&plan);
    drive_world_free(world);
}
