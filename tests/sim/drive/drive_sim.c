/* drive_sim.c - lives of a simulated drive, and the rules at its end (drive_sim.h). */
#include "drive_sim.h"

#include "drive/names/conflict.h"
#include "drive/store/marks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIVES = 8, ROUNDS = 6 };
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
                                               "move-onto",
                                               "ctime-ignored",
                                               "quick-hash",
                                               "overflow-ignored",
                                               "mount-believed",
                                               "lock-believed",
                                               "move-by-copy",
                                               "item-edges",
                                               "no-edges",
                                               "failure-blocks",
                                               "mode-ignored",
                                               "dry-run-writes",
                                               "copy-ungated",
                                               "change-unnoted"};
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
    [PLANT_CTIME_IGNORED] = "DRI",
    [PLANT_QUICK_HASH] = "DRI",
    [PLANT_OVERFLOW_IGNORED] = "DRI",
    [PLANT_MOUNT_BELIEVED] = "DRI4",
    [PLANT_LOCK_BELIEVED] = "DRI4",
    [PLANT_MOVE_BY_COPY] = "DRI6",
    [PLANT_ITEM_EDGES] = "DRI10",
    [PLANT_NO_EDGES] = "DRI12",
    [PLANT_FAILURE_BLOCKS] = "DRI13",
    [PLANT_MODE_IGNORED] = "DRI17",
    [PLANT_DRY_RUN_WRITES] = "DRI17",
    [PLANT_COPY_UNGATED] = "DRI19",
    [PLANT_CHANGE_UNNOTED] = "DRI21",
};
const char *const drive_fault_names[FAULTS] = {
    "F1",  "F2",  "F3",  "F5",  "F6",  "F7",  "F9",  "F10", "F11", "F12", "F13", "F14",
    "F15", "F16", "F17", "F18", "F19", "F20", "F21", "F22", "F23", "F24", "F25", "F26",
    "F27", "F28", "F29", "F30", "F31", "F32", "F33", "F36", "F37", "F38", "F39", "F40"};

bool drive_happens(struct drive_stage *stage, enum fault fault, uint32_t one_in)
{
    if (stage->calm || !tide_rng_chance(&stage->rng, 1, one_in))
        return false;
    stage->totals.faults[fault]++;
    return true;
}

bool drive_may_die(struct drive_stage *stage, enum fault fault)
{
    if (stage->deathless || !drive_happens(stage, fault, 25))
        return false;
    tide_sim_crash(stage->sim, TIDE_SIM_CRASH_SEEDED);
    return true;
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

uint64_t drive_ask(struct drive_stage *stage, const char *sql, uint64_t number)
{
    uint64_t found = 0;
    return tide_rows_number(drive_db(stage), "sim", &found, NULL, sql, number) == TIDE_OK ? found
                                                                                          : 0;
}

uint64_t drive_world_item(struct drive_stage *stage, uint64_t item)
{
    char id[32] = "";
    if (item == TIDE_DRIVE_ROOT)
        return TIDE_DRIVE_ROOT;
    if (item == 0 || tide_rows_copy(drive_db(stage), "sim", id, sizeof id, NULL,
                                    "SELECT id FROM drive_@_item WHERE item = ?1", item) != TIDE_OK)
        return 0;
    return strtoull(id, NULL, 10);
}

bool drive_is_beneath(struct drive_side *side, uint64_t id, uint64_t folder)
{
    const struct drive_item *item = NULL;
    while (id != 0 && id != folder && (item = drive_find(side, id)) != NULL)
        id = item->parent;
    return folder != 0 && id == folder;
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

tide_status drive_open_state(struct drive_stage *stage, tide_error *err)
{
    static const struct tide_drive_home home = {"drive", "1", "marker"};
    const struct tide_db_options options = {.path = STATE,
                                            .vfs = tide_world_vfs(tide_sim_world(stage->sim))};
    TIDE_TRY(tide_dir_make(tide_sim_world(stage->sim), "/state", err));
    TIDE_TRY(tide_db_open(&options, tide_mem_heap(), &stage->db, err));
    stage->is_open = true;
    stage->dirty = true; /* after a start everything is scanned once */
    TIDE_TRY(tide_db_wal(&stage->db, err));
    TIDE_TRY(tide_drive_store_tables(drive_db(stage), err));
    TIDE_TRY(tide_db_exec(&stage->db, "BEGIN IMMEDIATE", err));
    TIDE_TRY(tide_drive_store_set_up(drive_db(stage), &home, err));
    TIDE_TRY(tide_db_exec(&stage->db, "COMMIT", err));
    return drive_finish_upload(stage, err);
}

void drive_close_state(struct drive_stage *stage)
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

/* Whether the executor may take it now. */
static bool may_start(const struct drive_stage *stage, const struct tide_drive_plan *plan,
                      const uint8_t *done, uint32_t at)
{
    const struct tide_drive_action *action = &plan->actions[at];
    bool ready = action->state == TIDE_DRIVE_READY;
    ready =
        ready || (stage->plant == PLANT_GUARD_IGNORED && action->state == TIDE_DRIVE_WAITS_CONSENT);
    ready = ready || (stage->plant == PLANT_MODE_IGNORED && action->state == TIDE_DRIVE_HELD_MODE);
    for (size_t k = 0; k < plan->edges_count && stage->plant != PLANT_NO_EDGES; k++)
        ready = ready && (plan->edges[k].after != at || done[plan->edges[k].before] != 0);
    return ready && done[at] == 0;
}

/* DRI5: counted apart from the store; the largest baseline ever seen is lenient, not strict. */
static void count_deletions(struct drive_stage *stage, uint64_t before,
                            const struct tide_drive_guard *guard, uint64_t item)
{
    if (stage->world->deletions > before && !is_consented(guard, item))
        stage->unconsented++;
    if (stage->unconsented >= 10 && stage->unconsented > stage->largest / 2)
        tide_sim_fail(stage->sim, "DRI5: %" PRIu64 " deletions of %" PRIu64 " items",
                      stage->unconsented, stage->largest);
}

/* One action, with the rules that hold for each (DRI12, DRI17). */
static tide_status run_action(struct drive_stage *stage, const struct tide_drive_loaded *loaded,
                              const struct tide_drive_plan *plan, uint32_t at,
                              const struct tide_drive_guard *guard, tide_error *err)
{
    const struct tide_drive_action *action = &plan->actions[at];
    const struct drive_side *forbidden =
        stage->mode == TIDE_DRIVE_UPLOAD_ONLY ? &stage->world->here : &stage->world->online;
    const bool one_way = stage->calm && stage->mode != TIDE_DRIVE_TWO_WAY;
    const uint64_t before = one_way ? drive_side_hash(forbidden) : 0;
    const uint64_t deletions = stage->world->deletions;
    const tide_status rc = drive_carry_out(stage, action, &loaded->trees, err);
    tide_sim_note(stage->sim, "%s %.*s item %" PRIu64 " row %" PRIu64 " k%d: %s",
                  tide_drive_verb_name(action->verb), (int)action->name.bytes, action->name.data,
                  action->item, action->row, (int)action->notice, tide_status_name(rc));
    if (rc == TIDE_OK)
        count_deletions(stage, deletions, guard, action->item);
    if (one_way && drive_side_hash(forbidden) != before)
        tide_sim_fail(stage->sim, "DRI17: %s writes to the side that the mode forbids",
                      tide_drive_verb_name(action->verb));
    stage->totals.actions++;
    if (rc != TIDE_SUPERSEDED)
        return rc;
    if (stage->calm && stage->bad == 0) {
        drive_explain(stage, plan);
        tide_sim_fail(stage->sim, "DRI12: %s of %.*s is superseded, and nobody did anything",
                      tide_drive_verb_name(action->verb), (int)action->name.bytes,
                      action->name.data);
    }
    stage->totals.superseded++;
    stage->dirty = stage->undone = true;
    return TIDE_OK;
}

static tide_status run_actions(struct drive_stage *stage, const struct tide_drive_loaded *loaded,
                               const struct tide_drive_plan *plan,
                               const struct tide_drive_guard *guard, tide_error *err)
{
    uint8_t *done = calloc(plan->actions_count + 1, 1);
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK) {
        uint32_t pick = UINT32_MAX;
        uint64_t seen = 0;
        for (uint32_t i = 0; i < plan->actions_count; i++)
            if (may_start(stage, plan, done, i) && tide_rng_chance(&stage->rng, 1, ++seen))
                pick = i;
        if (pick == UINT32_MAX)
            break;
        if (drive_happens(stage, F26_THROTTLED, 60)) {
            stage->world->now_ms += 300000; /* the account waits; then there is another plan */
            stage->undone = true;
            break;
        }
        done[pick] = 1;
        rc = run_action(stage, loaded, plan, pick, guard, err);
        if (rc == TIDE_OK && !stage->calm && tide_rng_chance(&stage->rng, 1, 8))
            drive_any_user(stage);
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

/* Loses edges, as a bug would. */
static void plant_edges(const struct drive_stage *stage, struct tide_drive_plan *plan)
{
    for (size_t i = 0; i < plan->edges_count && stage->plant == PLANT_ITEM_EDGES;) {
        const struct tide_drive_action *a = &plan->actions[plan->edges[i].before],
                                       *b = &plan->actions[plan->edges[i].after];
        if ((a->item != 0 && a->item == b->item) || (a->row != 0 && a->row == b->row))
            plan->edges[i] = plan->edges[--plan->edges_count];
        else
            i++;
    }
}

/* All that differs or is new is marked (marks.h, DMA1 and DMA2). */
static tide_status check_marks(struct drive_stage *stage, tide_error *err)
{
    uint64_t missed = 0;
    TIDE_TRY(tide_rows_number(
        drive_db(stage), "sim", &missed, err,
        "SELECT (SELECT count(*) FROM drive_@_base AS b" TIDE_DRIVE_SIDES
        " WHERE " TIDE_DRIVE_DIFFERS " AND NOT EXISTS (SELECT 1 FROM drive_@_mark"
        " WHERE class = 0 AND number = b.item))"
        " + (SELECT count(*) FROM drive_@_remote AS r WHERE EXISTS (SELECT 1 FROM drive_@_base AS b"
        " WHERE b.item = r.item) = EXISTS (SELECT 1 FROM drive_@_mark WHERE class = 1 AND number ="
        " r.item)) + (SELECT count(*) FROM drive_@_local AS l WHERE EXISTS (SELECT 1 FROM"
        " drive_@_base AS b WHERE b.row = l.row) = EXISTS (SELECT 1 FROM drive_@_mark"
        " WHERE class = 2 AND number = l.row))"));
    if (missed > 0)
        tide_sim_fail(stage->sim, "DRI22: %llu marks are wrong", (unsigned long long)missed);
    return TIDE_OK;
}

static tide_status load_and_plan(struct drive_stage *stage, struct tide_drive_plan_options *options,
                                 struct tide_drive_loaded *loaded, struct tide_drive_plan *plan,
                                 tide_error *err)
{
    const size_t news_max = stage->calm ? 1000 : 1 + (size_t)tide_rng_below(&stage->rng, 12);
    const int changes = sqlite3_total_changes(stage->db.handle);
    TIDE_TRY(tide_drive_guard_read(drive_db(stage), stage->world->now_ms, tide_mem_heap(),
                                   &options->guard, err));
    TIDE_TRY(tide_drive_load(drive_db(stage), news_max, stage->world->now_ms, tide_mem_heap(),
                             loaded, err));
    TIDE_TRY(tide_drive_plan(&loaded->trees, options, tide_mem_heap(), plan, err));
    if (stage->plant == PLANT_DRY_RUN_WRITES)
        TIDE_TRY(tide_db_exec(&stage->db, "UPDATE drive_1_state SET changed = changed", err));
    if (sqlite3_total_changes(stage->db.handle) != changes)
        tide_sim_fail(stage->sim, "DRI17: a plan changed the database");
    TIDE_TRY(check_marks(stage, err));
    TIDE_TRY(tide_drive_unmark(drive_db(stage), loaded->same, loaded->same_count, err));
    TIDE_TRY(check_marks(stage, err));
    uint64_t bases = 0;
    TIDE_TRY(
        tide_rows_number(drive_db(stage), "sim", &bases, err, "SELECT count(*) FROM drive_@_base"));
    stage->largest = bases > stage->largest ? bases : stage->largest;
    stage->totals.plans++;
    plant_edges(stage, plan);
    drive_check_plan(stage, plan);
    return TIDE_OK;
}

static void check_due(struct drive_stage *stage, const struct tide_drive_progress *progress,
                      const struct tide_drive_plan *plan)
{
    size_t ready = 0;
    for (size_t i = 0; i < plan->actions_count; i++)
        ready += plan->actions[i].state == TIDE_DRIVE_READY;
    stage->totals.spared += !tide_drive_plan_is_due(progress, stage->world->now_ms);
    if (ready > 0 && !tide_drive_plan_is_due(progress, stage->world->now_ms))
        tide_sim_fail(stage->sim, "DRI21: %zu actions, and no plan was due", ready);
}

/* Actions that another round could still carry out. */
static size_t count_left(struct drive_stage *stage, const struct tide_drive_plan *plan)
{
    size_t left = 0;
    for (size_t i = 0; i < plan->actions_count; i++) {
        const struct tide_drive_action *action = &plan->actions[i];
        const struct drive_item *item =
            drive_find(&stage->world->online, drive_world_item(stage, action->item));
        const bool bad = stage->bad != 0 && action->verb == TIDE_DRIVE_DOWN && item != NULL &&
                         item->content == stage->bad;
        left += !bad && (stage->mode == TIDE_DRIVE_TWO_WAY || action->state == TIDE_DRIVE_READY ||
                         action->state == TIDE_DRIVE_WAITS_CONSENT);
    }
    return left;
}

/* Observes, plans, acts; *actions_out: how much was planned. */
tide_status drive_round(struct drive_stage *stage, size_t *actions_out, tide_error *err)
{
    struct tide_drive_loaded loaded = {.mem = NULL};
    struct tide_drive_plan plan = {.mem = NULL};
    struct tide_drive_plan_options options = {
        .mode = stage->mode, .stamp = {.host = TIDE_TEXT("host"), .unix_ms = stage->world->now_ms}};
    TIDE_TRY(drive_observe_online(stage, err));
    TIDE_TRY(drive_observe_here(stage, err));
    stage->world->now_ms += 11000;
    if (drive_happens(stage, F24_CLOCK_BACK, 30))
        stage->world->now_ms -= 1000 * tide_rng_below(&stage->rng, 2 * 86400);
    if (drive_may_die(stage, F2_BEFORE_PLANNING))
        return TIDE_STOPPED;
    struct tide_drive_progress progress = {.changed = 0};
    tide_status rc = tide_drive_progress_read(drive_db(stage), &progress, err);
    if (rc == TIDE_OK)
        rc = load_and_plan(stage, &options, &loaded, &plan, err);
    const bool blocked = stage->plant == PLANT_FAILURE_BLOCKS && rc == TIDE_OK &&
                         drive_ask(stage, "SELECT count(*) + 0 * ?1 FROM drive_@_owed", 0) > 0;
    if (rc == TIDE_OK) {
        *actions_out = count_left(stage, &plan) + (loaded.more ? 1 : 0);
        check_due(stage, &progress, &plan);
        const uint64_t now_ms = stage->world->now_ms;
        /* The ledger would keep jobs; here an action that was not carried out is lost. */
        stage->undone = blocked || loaded.more || stage->mode != TIDE_DRIVE_TWO_WAY;
        rc = blocked ? TIDE_OK : run_actions(stage, &loaded, &plan, &options.guard, err);
        if (rc == TIDE_OK && !loaded.more)
            rc = tide_drive_owed_settle(drive_db(stage), &plan, now_ms, err);
        if (rc == TIDE_OK && !stage->undone)
            rc = tide_drive_planned(drive_db(stage), progress.changed, now_ms, err);
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
    tide_status rc = drive_open_state(stage, &err);
    for (int round = 0; rc == TIDE_OK && round < ROUNDS; round++) {
        for (uint64_t acts = tide_rng_below(&stage->rng, 6); acts > 0; acts--)
            drive_any_user(stage);
        rc = drive_round(stage, &actions, &err);
    }
    if (rc != TIDE_OK && !tide_world_dead(tide_sim_world(stage->sim)))
        tide_sim_fail(stage->sim, "DRI20: a life ended by itself: %s", err.text);
    drive_close_state(stage);
    tide_sim_reboot(stage->sim);
    stage->totals.lives++;
}

void drive_sim_run(uint64_t seed, enum plant plant, struct drive_totals *totals_out)
{
    struct tide_sim_options options = {.disk = {.sync_us_max = 100}};
    struct drive_stage stage = {.seed = seed, .plant = plant, .rng = tide_rng_seeded(seed)};
    bool replaced[DRIVE_CONTENTS_MAX] = {false}, made[DRIVE_CONTENTS_MAX] = {false};
    uint64_t quick[DRIVE_CONTENTS_MAX] = {0}, rewritten[DRIVE_CONTENTS_MAX] = {0};
    stage.replaced = replaced;
    stage.made = made;
    stage.quick = quick;
    stage.rewritten = rewritten;
    stage.no_birth = seed % 4 == 0;
    stage.world = drive_world_new();
    stage.sim = tide_sim_new(seed, &options);
    for (int life = 0; life < LIVES; life++) {
        if (tide_rng_chance(&stage.rng, 1, 2))
            tide_sim_crash_after(stage.sim, 200 + tide_rng_below(&stage.rng, 8000),
                                 TIDE_SIM_CRASH_SEEDED);
        live(&stage);
        tide_sim_crash_after(stage.sim, 0, TIDE_SIM_CRASH_SEEDED);
    }
    drive_rest(&stage);
    *totals_out = stage.totals;
    tide_sim_free(stage.sim);
    drive_world_free(stage.world);
    free(stage.shadow);
    free(stage.previous);
    free(stage.versions);
    free(stage.rows);
    free(stage.here_was);
}
