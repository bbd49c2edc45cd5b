/* rest.c - the last life: one rest after another, each with its rules. */
#include "drive_sim.h"

#include <inttypes.h>

enum { NOISY_ROUNDS = 4, REST_ROUNDS = 60, MODE_ROUNDS = 8, MOVES = 4, MODE_ACTS = 6 };

/* Rounds until two in a row had nothing to do. */
static void come_to_rest(struct drive_stage *stage, int rounds_max)
{
    tide_error err = {TIDE_OK, 0, ""};
    unsigned quiet = 0;
    for (int round = 0; quiet < 2; round++) {
        size_t actions = 0;
        if (round == rounds_max) {
            drive_explain(stage, NULL);
            tide_sim_fail(stage->sim, stage->bad != 0
                                          ? "DRI13: one item fails, and the others never end"
                                          : "DRI20: it does not come to rest");
        }
        const tide_status rc = drive_round(stage, &actions, &err);
        if (rc != TIDE_OK)
            tide_sim_fail(stage->sim, "DRI20: the calm life failed: %s", err.text);
        quiet = actions == 0 ? quiet + 1 : 0;
    }
}

/* All faults but crashes: what they left, only the watch knows (F15). */
static void make_noise(struct drive_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    size_t actions = 0;
    stage->deathless = true;
    for (int round = 0; round < NOISY_ROUNDS; round++) {
        for (uint64_t acts = tide_rng_below(&stage->rng, 4); acts > 0; acts--)
            drive_any_user(stage);
        if (drive_round(stage, &actions, &err) != TIDE_OK)
            tide_sim_fail(stage->sim, "DRI20: a life without a crash failed: %s", err.text);
    }
    drive_any_user(stage);
    drive_any_user(stage);
}

/* DRI13: the content of a file online never fits its hash (F37). */
static void rest_with_a_bad_item(struct drive_stage *stage)
{
    struct drive_world *world = stage->world;
    struct drive_item *taken = drive_child(&world->online, TIDE_DRIVE_ROOT, "c");
    stage->bad = world->next_content;
    if (taken == NULL) {
        (void)drive_add(world, &world->online, TIDE_DRIVE_ROOT, "c", TIDE_DRIVE_FILE,
                        world->next_content++);
        stage->made[stage->bad] = true;
    } else if (taken->kind == TIDE_DRIVE_FILE) {
        drive_user_edits(stage, &world->online, taken->id);
    } else {
        stage->bad = 0;
        return;
    }
    stage->totals.faults[F37_NEVER_FITS]++;
    drive_feed_look(stage);
    come_to_rest(stage, REST_ROUNDS);
    drive_check_but_bad(stage);
    stage->bad = 0;
}

/* DRI6: users only move things, on both sides. */
static void rest_after_moves(struct drive_stage *stage)
{
    const uint64_t transfers = stage->totals.transfers;
    for (int i = 0; i < MOVES; i++)
        drive_user_moves(stage, tide_rng_chance(&stage->rng, 1, 2) ? &stage->world->online
                                                                   : &stage->world->here);
    /* And both get the same file. */
    struct drive_world *world = stage->world;
    const bool is_free = drive_child(&world->online, TIDE_DRIVE_ROOT, "zz-same") == NULL;
    if (is_free && drive_child(&world->here, TIDE_DRIVE_ROOT, "zz-same") == NULL) {
        const uint64_t content = world->next_content++;
        (void)drive_add(world, &world->online, TIDE_DRIVE_ROOT, "zz-same", TIDE_DRIVE_FILE,
                        content);
        (void)drive_add(world, &world->here, TIDE_DRIVE_ROOT, "zz-same", TIDE_DRIVE_FILE, content);
        drive_feed_look(stage);
    }
    come_to_rest(stage, REST_ROUNDS);
    if (stage->totals.transfers != transfers)
        tide_sim_fail(stage->sim, "DRI6: %" PRIu64 " transfers after moves alone",
                      stage->totals.transfers - transfers);
    drive_check_rest(stage);
}

/* DRI17: a one-way mode for a while, and back. */
static void rest_after_a_mode(struct drive_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    size_t actions = 0;
    stage->mode =
        tide_rng_chance(&stage->rng, 1, 2) ? TIDE_DRIVE_DOWNLOAD_ONLY : TIDE_DRIVE_UPLOAD_ONLY;
    for (int i = 0; i < MODE_ACTS; i++)
        drive_any_user(stage);
    for (int round = 0; round < MODE_ROUNDS; round++) {
        if (drive_round(stage, &actions, &err) != TIDE_OK)
            tide_sim_fail(stage->sim, "DRI20: a one-way round failed: %s", err.text);
        if (round == MODE_ROUNDS / 2)
            drive_any_user(stage);
    }
    stage->mode = TIDE_DRIVE_TWO_WAY;
    come_to_rest(stage, REST_ROUNDS);
    drive_check_rest(stage);
}

void drive_rest(struct drive_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    if (drive_open_state(stage, &err) != TIDE_OK)
        tide_sim_fail(stage->sim, "DRI20: the last life does not begin: %s", err.text);
    make_noise(stage);
    stage->calm = true;
    tide_sim_faults(stage->sim, false);
    rest_with_a_bad_item(stage);
    come_to_rest(stage, REST_ROUNDS);
    drive_check_rest(stage);
    rest_after_moves(stage);
    rest_after_a_mode(stage);
    drive_close_state(stage);
}
