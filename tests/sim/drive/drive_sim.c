/* drive_sim.c - lives of a simulated drive, and the rules at its end (drive_sim.h). */
#include "drive_sim.h"

#include "drive/names/conflict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIVES = 8, ROUNDS = 6, REST_ROUNDS = 60, CONTENTS_MAX = 8192 };
#define STATE "/state/drive.db"

const char *const drive_plant_names[PLANTS] = {"none",
                                               "token-first",
                                               "incomplete-scan",
                                               "no-directory-sync",
                                               "aside-unrecorded",
                                               "upload-twice",
                                               "delete-unchecked",
                                               "overwrite-by-name",
                                               "place-unchecked",
                                               "empty-token",
                                               "base-of-later",
                                               "recursive-delete",
                                               "guard-ignored",
                                               "move-onto"};
const char *const drive_plant_rules[PLANTS] = {
    [PLANT_NONE] = "",
    [PLANT_TOKEN_FIRST] = "DRI",
    [PLANT_INCOMPLETE_SCAN] = "DRI",
    [PLANT_NO_DIRECTORY_SYNC] = "DRI",
    [PLANT_ASIDE_UNRECORDED] = "DRI16",
    [PLANT_UPLOAD_TWICE] = "DRI16",
    [PLANT_DELETE_UNCHECKED] = "DRI1",
    [PLANT_OVERWRITE_BY_NAME] = "DRI",
    [PLANT_PLACE_UNCHECKED] = "DRI1",
    [PLANT_EMPTY_TOKEN] = "DRI",
    [PLANT_BASE_OF_LATER] = "DRI",
    [PLANT_RECURSIVE_DELETE] = "DRI1",
    [PLANT_GUARD_IGNORED] = "DRI5",
    [PLANT_MOVE_ONTO] = "DRI1",
};
const char *const drive_fault_names[FAULTS] = {
    "F1",  "F2",  "F3",  "F5",  "F6",  "F7",  "F9",  "F10", "F11", "F12", "F14",
    "F17", "F18", "F19", "F25", "F27", "F28", "F29", "F30", "F31", "F32", "F40"};

bool drive_happens(struct drive_stage *stage, enum fault fault, uint32_t one_in)
{
    if (stage->calm || !tide_rng_chance(&stage->rng, 1, one_in))
        return false;
    stage->totals.faults[fault]++;
    return true;
}

bool drive_may_die(struct drive_stage *stage, enum fault fault)
{
    if (!drive_happens(stage, fault, 25))
        return false;
    tide_sim_crash(stage->sim, TIDE_SIM_CRASH_SEEDED);
    return true;
}

/* ---- users ---- */

static bool holds(const struct drive_side *side, uint64_t content)
{
    return drive_has_content(side, content);
}

/* An editor that renames (F19); an item created again online under its name (F30). */
static void count_acts(struct drive_stage *stage, const struct drive_side *side,
                       const struct drive_item *was, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stage->totals.faults[F19_EDITOR_RENAME] +=
            side == &stage->world->here && side->items[i].birth != was[i].birth;
    for (size_t i = count; i < side->count; i++)
        for (size_t k = 0; k < count; k++)
            stage->totals.faults[F30_CREATED_AGAIN] +=
                side == &stage->world->online && was[k].alive && !side->items[k].alive &&
                was[k].parent == side->items[i].parent && was[k].kind == side->items[i].kind &&
                strcmp(was[k].name, side->items[i].name) == 0;
}

/* What a user deletes or replaces may be lost.  A content that is there twice counts as replaced when
 * one of the two is: they may be one file that was moved, and seen as two for a while. */
static void act(struct drive_stage *stage, struct drive_side *side, uint64_t edit)
{
    struct drive_world *world = stage->world;
    const uint64_t before = world->next_content;
    const size_t count = side->count;
    if (before >= CONTENTS_MAX - 2)
        return;
    struct drive_item *was = calloc(count + 1, sizeof *was);
    if (count > 0)
        memcpy(was, side->items, count * sizeof *was);
    if (edit != 0)
        drive_edit(world, side, edit, false);
    else
        drive_act(world, side, &stage->rng);
    drive_feed_look(stage);
    for (size_t i = 0; i < count; i++)
        if (was[i].alive && (!side->items[i].alive || side->items[i].content != was[i].content))
            stage->replaced[was[i].content] = true;
    count_acts(stage, side, was, count);
    for (uint64_t c = before; c < world->next_content; c++)
        stage->made[c] = holds(side, c);
    free(was);
}

void drive_user(struct drive_stage *stage, struct drive_side *side)
{
    act(stage, side, 0);
}

void drive_user_edits(struct drive_stage *stage, struct drive_side *side, uint64_t id)
{
    act(stage, side, id);
}

/* ---- rows ---- */

uint64_t drive_world_row(struct drive_stage *stage, uint64_t row)
{
    if (row == TIDE_DRIVE_ROOT)
        return TIDE_DRIVE_ROOT;
    for (size_t i = stage->rows_count; i > 0; i--)
        if (stage->rows[i - 1][0] == row)
            return stage->rows[i - 1][1];
    return 0;
}

void drive_note_row(struct drive_stage *stage, uint64_t row, uint64_t world_row)
{
    if (stage->rows_count == stage->rows_capacity) {
        stage->rows_capacity = 2 * stage->rows_capacity + 64;
        stage->rows = realloc(stage->rows, stage->rows_capacity * sizeof *stage->rows);
    }
    for (size_t i = 0; i < stage->rows_count; i++)
        if (stage->rows[i][1] == world_row)
            stage->rows[i][1] = 0;
    stage->rows[stage->rows_count][0] = row;
    stage->rows[stage->rows_count++][1] = world_row;
}

/* ---- a life ---- */

static tide_status open_state(struct drive_stage *stage, tide_error *err)
{
    static const struct tide_drive_home home = {"drive", "1", "marker"};
    const struct tide_db_options options = {.path = STATE,
                                            .vfs = tide_world_vfs(tide_sim_world(stage->sim))};
    TIDE_TRY(tide_dir_make(tide_sim_world(stage->sim), "/state", err));
    TIDE_TRY(tide_db_open(&options, tide_mem_heap(), &stage->db, err));
    stage->is_open = true;
    TIDE_TRY(tide_db_wal(&stage->db, err));
    TIDE_TRY(tide_drive_store_tables(drive_db(stage), err));
    TIDE_TRY(tide_db_exec(&stage->db, "BEGIN IMMEDIATE", err));
    TIDE_TRY(tide_drive_store_set_up(drive_db(stage), &home, err));
    TIDE_TRY(tide_db_exec(&stage->db, "COMMIT", err));
    return drive_finish_upload(stage, err);
}

static void close_state(struct drive_stage *stage)
{
    if (stage->is_open)
        tide_db_close(&stage->db);
    stage->is_open = false;
    /* A power loss may take an effect here that was not synced. */
    struct drive_item *item = drive_find(&stage->world->here, stage->undo.id);
    if (stage->undo_pending && tide_world_dead(tide_sim_world(stage->sim)) &&
        tide_rng_chance(&stage->rng, 1, 2)) {
        if (stage->undo_is_new && item != NULL)
            drive_delete(&stage->world->here, stage->undo.id);
        else if (item != NULL &&
                 drive_move(&stage->world->here, item->id, stage->undo.parent, stage->undo.name))
            item->content = stage->undo.content;
    }
    stage->undo_pending = false;
}

static bool is_consented(const struct tide_drive_guard *guard, uint64_t item)
{
    for (size_t i = 0; i < guard->consented_count; i++)
        if (guard->consented[i] == item)
            return true;
    return false;
}

static tide_status run_actions(struct drive_stage *stage, const struct tide_drive_loaded *loaded,
                               const struct tide_drive_plan *plan,
                               const struct tide_drive_guard *guard, tide_error *err)
{
    uint8_t *done = calloc(plan->actions_count + 1, 1);
    tide_status rc = TIDE_OK;
    for (;;) {
        uint32_t pick = UINT32_MAX;
        uint64_t seen = 0;
        for (uint32_t i = 0; i < plan->actions_count; i++) {
            bool waits = done[i] != 0 || plan->actions[i].state != TIDE_DRIVE_READY;
            if (stage->plant == PLANT_GUARD_IGNORED &&
                plan->actions[i].state == TIDE_DRIVE_WAITS_CONSENT)
                waits = done[i] != 0;
            for (size_t k = 0; k < plan->edges_count && !waits; k++)
                waits = plan->edges[k].after == i && done[plan->edges[k].before] == 0;
            if (!waits && tide_rng_chance(&stage->rng, 1, ++seen))
                pick = i;
        }
        if (pick == UINT32_MAX)
            break;
        const struct tide_drive_action *action = &plan->actions[pick];
        const uint64_t deletions = stage->world->deletions;
        rc = drive_carry_out(stage, action, &loaded->trees, err);
        /* Counted apart from the store: the largest baseline ever seen is lenient, not strict. */
        if (rc == TIDE_OK && stage->world->deletions > deletions &&
            !is_consented(guard, action->item))
            stage->unconsented++;
        if (stage->unconsented >= 10 && stage->unconsented > stage->largest / 2)
            tide_sim_fail(stage->sim, "DRI5: %" PRIu64 " deletions of %" PRIu64 " items",
                          stage->unconsented, stage->largest);
        done[pick] = 1;
        stage->totals.actions++;
        stage->totals.superseded += rc == TIDE_SUPERSEDED;
        if (rc == TIDE_SUPERSEDED)
            rc = TIDE_OK;
        if (rc != TIDE_OK)
            break;
        if (!stage->calm && tide_rng_chance(&stage->rng, 1, 8))
            drive_user(stage, tide_rng_chance(&stage->rng, 1, 2) ? &stage->world->online
                                                                 : &stage->world->here);
    }
    free(done);
    return rc;
}

/* Deletions that wait are listed and accepted, as a user would (S16). */
static tide_status consent(struct drive_stage *stage, const struct tide_drive_plan *plan,
                           tide_error *err)
{
    struct tide_drive_deletion list[4096];
    size_t count = 0;
    uint64_t fingerprint = 0;
    for (size_t i = 0; i < plan->actions_count && count < 4096; i++)
        if (plan->actions[i].state == TIDE_DRIVE_WAITS_CONSENT)
            list[count++] = (struct tide_drive_deletion){
                plan->actions[i].item, plan->actions[i].verb, plan->actions[i].name};
    if (count == 0 || stage->plant == PLANT_GUARD_IGNORED)
        return TIDE_OK;
    stage->totals.faults[F40_CONSENT]++;
    TIDE_TRY(tide_drive_deletions_set(drive_db(stage), list, count, err));
    TIDE_TRY(tide_drive_deletions_fingerprint(drive_db(stage), &fingerprint, err));
    return tide_drive_deletions_accept(drive_db(stage), fingerprint, stage->world->now_ms, err);
}

/* Observes, plans, acts; *actions_out: how much was planned. */
static tide_status one_round(struct drive_stage *stage, size_t *actions_out, tide_error *err)
{
    struct tide_drive_loaded loaded = {.mem = NULL};
    struct tide_drive_plan plan = {.mem = NULL};
    struct tide_drive_plan_options options = {
        .stamp = {.host = TIDE_TEXT("host"), .unix_ms = stage->world->now_ms}};
    const size_t news_max = stage->calm ? 1000 : 1 + (size_t)tide_rng_below(&stage->rng, 12);
    TIDE_TRY(drive_observe_online(stage, err));
    TIDE_TRY(drive_observe_here(stage, err));
    stage->world->now_ms += 11000;
    if (drive_may_die(stage, F2_BEFORE_PLANNING))
        return TIDE_STOPPED;
    tide_status rc = tide_drive_guard_read(drive_db(stage), stage->world->now_ms, tide_mem_heap(),
                                           &options.guard, err);
    if (rc == TIDE_OK)
        rc = tide_drive_load(drive_db(stage), news_max, stage->world->now_ms, tide_mem_heap(),
                             &loaded, err);
    if (rc == TIDE_OK)
        rc = tide_drive_plan(&loaded.trees, &options, tide_mem_heap(), &plan, err);
    uint64_t bases = 0;
    if (rc == TIDE_OK)
        rc = tide_rows_number(drive_db(stage), "sim", &bases, err,
                              "SELECT count(*) FROM drive_base");
    stage->largest = bases > stage->largest ? bases : stage->largest;
    if (rc == TIDE_OK) {
        stage->totals.plans++;
        *actions_out = plan.actions_count + (loaded.more ? 1 : 0);
        rc = run_actions(stage, &loaded, &plan, &options.guard, err);
    }
    if (rc == TIDE_OK && plan.guarded)
        rc = consent(stage, &plan, err);
    tide_drive_guard_done(&options.guard, tide_mem_heap());
    tide_drive_plan_done(&plan);
    tide_drive_loaded_done(&loaded);
    return rc;
}

static void live(struct drive_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    size_t actions = 0;
    tide_status rc = open_state(stage, &err);
    for (int round = 0; rc == TIDE_OK && round < ROUNDS; round++) {
        for (uint64_t acts = tide_rng_below(&stage->rng, 6); acts > 0; acts--)
            drive_user(stage, tide_rng_chance(&stage->rng, 1, 2) ? &stage->world->online
                                                                 : &stage->world->here);
        rc = one_round(stage, &actions, &err);
    }
    if (rc != TIDE_OK && !tide_world_dead(tide_sim_world(stage->sim)))
        tide_sim_fail(stage->sim, "DRI20: a life ended by itself: %s", err.text);
    close_state(stage);
    tide_sim_reboot(stage->sim);
    stage->totals.lives++;
}

/* ---- rules ---- */

static int print_row(void *arg, int count, char **values, char **names)
{
    (void)names;
    fprintf(stderr, "%s", (const char *)arg);
    for (int i = 0; i < count; i++)
        fprintf(stderr, " %s", values[i] == NULL ? "-" : values[i]);
    fprintf(stderr, "\n");
    return 0;
}

/* Both trees as they are, and as the store has them; then the rule that was broken. */
static void explain(struct drive_stage *stage)
{
    char base[] = "base: item, id, parent, name, row |",
         here[] = "local: row, parent, name, state |",
         online[] = "remote: item, id, parent, name, state |";
    sqlite3 *db = stage->db.handle;
    drive_print(stage->world, NULL);
    (void)sqlite3_exec(
        db,
        "SELECT b.item, i.id, b.parent, CAST(b.name AS TEXT), b.row FROM drive_base b"
        " JOIN drive_item i ON i.item = b.item",
        print_row, base, NULL);
    (void)sqlite3_exec(db,
                       "SELECT row, parent, CAST(name AS TEXT), state, gone_ms, CAST(aside AS TEXT)"
                       " FROM drive_local",
                       print_row, here, NULL);
    (void)sqlite3_exec(db,
                       "SELECT r.item, i.id, parent, CAST(name AS TEXT), state, CAST(aside AS TEXT)"
                       " FROM drive_remote r JOIN drive_item i ON i.item = r.item",
                       print_row, online, NULL);
}

static void check_content(struct drive_stage *stage)
{
    struct drive_world *world = stage->world;
    for (uint64_t c = 1; c < world->next_content && c < CONTENTS_MAX; c++) {
        const bool online = holds(&world->online, c), here = holds(&world->here, c);
        if (stage->made[c] && !stage->replaced[c] && (!online || !here))
            tide_sim_fail(stage->sim, "DRI1: content %" PRIu64 " is lost (%s online, %s here)", c,
                          online ? "is" : "not", here ? "is" : "not");
    }
}

static const char *differs_at(struct drive_world *world, uint64_t item, uint64_t row)
{
    static char text[200];
    for (size_t i = 0; i < world->online.count; i++) {
        const struct drive_item *online = &world->online.items[i];
        if (!online->alive || online->parent != item)
            continue;
        const struct drive_item *here = drive_child(&world->here, row, online->name);
        (void)snprintf(text, sizeof text, "%s online", online->name);
        if (here == NULL || here->kind != online->kind || here->content != online->content)
            return text;
        const char *below =
            online->kind == TIDE_DRIVE_FOLDER ? differs_at(world, online->id, here->id) : NULL;
        if (below != NULL)
            return below;
    }
    for (size_t i = 0; i < world->here.count; i++) {
        const struct drive_item *here = &world->here.items[i];
        (void)snprintf(text, sizeof text, "%s here", here->name);
        if (here->alive && here->parent == row &&
            drive_child(&world->online, item, here->name) == NULL)
            return text;
    }
    return NULL;
}

static void check_names(struct drive_stage *stage)
{
    static const char users[] = "abcdefE";
    for (size_t i = 0; i < stage->world->online.count; i++) {
        const struct drive_item *item = &stage->world->online.items[i];
        if (!item->alive)
            continue;
        const bool known = (strlen(item->name) == 1 && strchr(users, item->name[0]) != NULL) ||
                           strcmp(item->name, "\xc3\x84") == 0 ||
                           strncmp(item->name, "zz-", 3) == 0;
        if (!known && !tide_drive_is_conflict_name(tide_text_of(item->name)))
            tide_sim_fail(stage->sim, "DRI16: a name that no user gave: %s", item->name);
    }
}

/* Calm: it comes to rest, and then everything holds. */
static void rest(struct drive_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    size_t actions = 1;
    stage->calm = true;
    tide_sim_faults(stage->sim, false);
    tide_status rc = open_state(stage, &err);
    unsigned quiet = 0;
    for (int round = 0; rc == TIDE_OK && quiet < 2; round++) {
        if (round == REST_ROUNDS) {
            explain(stage);
            tide_sim_fail(stage->sim, "DRI20: it does not come to rest");
        }
        rc = one_round(stage, &actions, &err);
        quiet = actions == 0 ? quiet + 1 : 0;
    }
    if (rc != TIDE_OK)
        tide_sim_fail(stage->sim, "DRI20: the calm life failed: %s", err.text);
    if (getenv("TIDE_SIM_EXPLAIN") != NULL)
        explain(stage);
    check_names(stage);
    check_content(stage);
    const char *differs = differs_at(stage->world, TIDE_DRIVE_ROOT, TIDE_DRIVE_ROOT);
    if (differs != NULL) {
        explain(stage);
        tide_sim_fail(stage->sim, "DRI2: the trees differ: %s", differs);
    }
    uint64_t bases = 0, alive = 0;
    (void)tide_rows_number(drive_db(stage), "sim", &bases, NULL, "SELECT count(*) FROM drive_base");
    for (size_t i = 0; i < stage->world->online.count; i++)
        alive += stage->world->online.items[i].alive;
    if (bases != alive)
        explain(stage);
    if (bases != alive)
        tide_sim_fail(stage->sim, "DRI3: %" PRIu64 " recorded, %" PRIu64 " there", bases, alive);
    close_state(stage);
}

void drive_sim_run(uint64_t seed, enum plant plant, struct drive_totals *totals_out);
void drive_sim_run(uint64_t seed, enum plant plant, struct drive_totals *totals_out)
{
    struct tide_sim_options options = {.disk = {.sync_us_max = 100}};
    struct drive_stage stage = {.seed = seed, .plant = plant, .rng = tide_rng_seeded(seed)};
    bool replaced[CONTENTS_MAX] = {false}, made[CONTENTS_MAX] = {false};
    stage.replaced = replaced;
    stage.made = made;
    stage.world = drive_world_new();
    stage.sim = tide_sim_new(seed, &options);
    for (int life = 0; life < LIVES; life++) {
        if (tide_rng_chance(&stage.rng, 1, 2))
            tide_sim_crash_after(stage.sim, 200 + tide_rng_below(&stage.rng, 8000),
                                 TIDE_SIM_CRASH_SEEDED);
        live(&stage);
        tide_sim_crash_after(stage.sim, 0, TIDE_SIM_CRASH_SEEDED);
    }
    rest(&stage);
    *totals_out = stage.totals;
    tide_sim_free(stage.sim);
    drive_world_free(stage.world);
    free(stage.shadow);
    free(stage.previous);
    free(stage.versions);
    free(stage.rows);
}
