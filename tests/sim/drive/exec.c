/* exec.c - carries out one action: gates, effect, one transaction (D3, S10). */
#include "drive_sim.h"

#include "base/check.h"
#include "drive/names/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COPY(to, from) (void)snprintf(to, sizeof(to), "%s", from)

struct run {
    struct drive_stage *stage;
    const struct tide_drive_action *action;
    const struct tide_drive_trees *trees;
    tide_error *err;
    uint64_t item;                    /* of the world */
    uint64_t row;                     /* of the world */
    uint64_t parent_item, parent_row; /* of the world, where it goes */
    uint64_t store_parent_row, store_row, store_item;
    char name[DRIVE_NAME_BYTES];
};

/* ---- numbers of the store and of the world ---- */

static uint64_t world_item(struct drive_stage *stage, uint64_t item)
{
    char id[32] = "";
    if (item == TIDE_DRIVE_ROOT)
        return TIDE_DRIVE_ROOT;
    if (item == 0 || tide_rows_copy(drive_db(stage), "sim", id, sizeof id, NULL,
                                    "SELECT id FROM drive_item WHERE item = ?1", item) != TIDE_OK)
        return 0;
    return strtoull(id, NULL, 10);
}

static uint64_t ask(struct drive_stage *stage, const char *sql, uint64_t number)
{
    uint64_t found = 0;
    return tide_rows_number(drive_db(stage), "sim", &found, NULL, sql, number) == TIDE_OK ? found
                                                                                          : 0;
}

/* Where the item goes: a folder that another action made is known by its baseline. */
static void find_parent(struct run *run)
{
    const struct tide_drive_action *action = run->action;
    struct drive_stage *stage = run->stage;
    uint64_t item = action->parent_item, row = action->parent_row;
    if (item == 0 && row != 0)
        item = ask(stage, "SELECT item FROM drive_base WHERE row = ?1", row);
    if (row == 0 && item != 0)
        row = ask(stage, "SELECT row FROM drive_base WHERE item = ?1", item);
    run->parent_item = world_item(stage, item);
    run->store_parent_row = row;
    run->parent_row = row == TIDE_DRIVE_ROOT ? TIDE_DRIVE_ROOT : drive_world_row(stage, row);
}

/* ---- gates (S10) ---- */

static bool online_as_planned(const struct run *run)
{
    const struct drive_item *is = drive_find(&run->stage->world->online, run->item);
    for (size_t i = 0; i < run->trees->remotes_count; i++) {
        const struct tide_drive_remote *row = &run->trees->remotes[i];
        if (row->item != run->action->item)
            continue;
        if (row->state == TIDE_DRIVE_REMOTE_GONE)
            return is == NULL;
        return is != NULL && world_item(run->stage, row->parent) == is->parent &&
               (row->stepped_aside || tide_text_equal(row->name, tide_text_of(is->name))) &&
               memcmp(row->content.qxh, &is->content, sizeof is->content) == 0;
    }
    return run->action->item == 0;
}

static bool here_as_planned(const struct run *run)
{
    const struct drive_item *is = drive_find(&run->stage->world->here, run->row);
    for (size_t i = 0; i < run->trees->locals_count; i++) {
        const struct tide_drive_local *row = &run->trees->locals[i];
        if (row->row == run->action->row)
            return is != NULL && drive_world_row(run->stage, row->parent) == is->parent &&
                   (row->stepped_aside || tide_text_equal(row->name, tide_text_of(is->name))) &&
                   memcmp(row->content.strong, &is->content, sizeof is->content) == 0;
    }
    return run->action->row == 0;
}

static bool has_children(struct drive_side *side, uint64_t id)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->items[i].alive && side->items[i].parent == id)
            return true;
    return false;
}

static bool is_free(struct drive_side *side, uint64_t parent, const char *name)
{
    const struct drive_item *folder = drive_find(side, parent);
    return (parent == TIDE_DRIVE_ROOT || (folder != NULL && folder->kind == TIDE_DRIVE_FOLDER)) &&
           drive_child(side, parent, name) == NULL;
}

/* ---- local effects are durable when their directory is synced (S3, D42) ---- */

static void before_effect(struct drive_stage *stage, const struct drive_item *item, bool is_new)
{
    stage->undo = *item;
    stage->undo_is_new = is_new;
    stage->undo_pending = true;
}

static bool sync_directory(struct drive_stage *stage)
{
    if (!stage->calm && tide_rng_chance(&stage->rng, 1, 60)) {
        stage->totals.faults[F11_UNSYNCED_DIRECTORY]++;
        tide_sim_crash(stage->sim, TIDE_SIM_CRASH_POWER);
        return false;
    }
    if (stage->plant != PLANT_NO_DIRECTORY_SYNC)
        stage->undo_pending = false;
    return true;
}

/* ---- the rows of both sides as they are now ---- */

static tide_status put_online(struct run *run, uint64_t id)
{
    drive_feed_look(run->stage);
    struct drive_item *item = drive_find(&run->stage->world->online, id);
    struct tide_drive_seen seen;
    char texts[2][32];
    struct drive_item gone = {.id = id, .parent = TIDE_DRIVE_ROOT, .kind = TIDE_DRIVE_FILE};
    drive_seen_of(run->stage, item != NULL ? item : &gone, &seen, texts);
    return tide_drive_remote_put(drive_db(run->stage), &seen, &run->store_item, run->err);
}

static tide_status put_here(struct run *run, uint64_t id)
{
    struct drive_item item = *drive_find(&run->stage->world->here, id);
    const uint64_t scan = ask(run->stage, "SELECT scan + ?1 FROM drive_state", 0);
    uint64_t parent = TIDE_DRIVE_ROOT;
    if (item.parent != TIDE_DRIVE_ROOT) {
        parent = 0;
        for (size_t i = 0; i < run->stage->rows_count; i++)
            if (run->stage->rows[i][1] == item.parent)
                parent = run->stage->rows[i][0];
        if (parent == 0)
            return TIDE_SUPERSEDED;
    }
    return drive_put_row(run->stage, scan, parent, &item, &run->store_row, run->err);
}

static tide_status commit(struct run *run, uint64_t item, uint64_t row, uint64_t was)
{
    const struct tide_drive_outcome outcome = {.verb = run->action->verb,
                                               .item = item,
                                               .row = row,
                                               .was_item = was,
                                               .consented = ask(run->stage,
                                                                "SELECT count(*) FROM drive_consent"
                                                                " WHERE item = ?1",
                                                                item) > 0,
                                               .now_ms = run->stage->world->now_ms};
    return tide_drive_commit(drive_db(run->stage), &outcome, run->err);
}

/* ---- effects ---- */

static tide_status create_online(struct run *run)
{
    struct drive_stage *stage = run->stage;
    struct drive_world *world = stage->world;
    const bool file = run->action->kind == TIDE_DRIVE_FILE;
    if (!here_as_planned(run) || run->parent_item == 0)
        return TIDE_SUPERSEDED;
    struct drive_item *taken = drive_child(&world->online, run->parent_item, run->name);
    if (taken != NULL && stage->plant == PLANT_OVERWRITE_BY_NAME && file &&
        taken->kind == TIDE_DRIVE_FILE)
        taken->content = drive_find(&world->here, run->row)->content;
    else if (!is_free(&world->online, run->parent_item, run->name))
        return TIDE_SUPERSEDED;
    const uint64_t content = drive_find(&world->here, run->row)->content;
    if (file && drive_happens(stage, F17_CHANGED_WHILE_UPLOADING, 20)) {
        drive_user(stage, &world->here);
        const struct drive_item *now = drive_find(&world->here, run->row);
        if (now == NULL || now->content != content)
            return TIDE_SUPERSEDED; /* the last fragment never leaves (D39) */
    }
    uint64_t id = taken != NULL ? taken->id : 0;
    if (taken == NULL)
        id = drive_add(world, &world->online, run->parent_item, run->name, run->action->kind,
                       content)
                 ->id;
    stage->totals.transfers += file;
    if (stage->plant == PLANT_UPLOAD_TWICE && file && tide_rng_chance(&stage->rng, 1, 10)) {
        char again[DRIVE_NAME_BYTES];
        (void)snprintf(again, sizeof again, "%.80s 1", run->name);
        (void)drive_add(world, &world->online, run->parent_item, again, TIDE_DRIVE_FILE, content);
    }
    if (drive_may_die(stage, F5_ANSWERED_NOT_COMMITTED))
        return TIDE_STOPPED;
    TIDE_TRY(put_online(run, id));
    return commit(run, run->store_item, run->action->row, run->action->item);
}

static tide_status upload(struct run *run)
{
    struct drive_stage *stage = run->stage;
    struct drive_world *world = stage->world;
    if (!here_as_planned(run) || !online_as_planned(run))
        return TIDE_SUPERSEDED;
    stage->upload = *run->action;
    stage->upload_content = drive_find(&world->here, run->row)->content;
    drive_find(&world->online, run->item)->content = stage->upload_content;
    stage->totals.transfers++;
    if (drive_may_die(stage, F5_ANSWERED_NOT_COMMITTED))
        return TIDE_STOPPED;
    if (stage->plant == PLANT_BASE_OF_LATER && tide_rng_chance(&stage->rng, 1, 3)) {
        drive_user_edits(stage, &world->here, run->row);
        TIDE_TRY(put_here(run, run->row));
    }
    TIDE_TRY(put_online(run, run->item));
    return commit(run, run->store_item, run->action->row, run->action->was_item);
}

static tide_status create_here(struct run *run)
{
    struct drive_stage *stage = run->stage;
    struct drive_world *world = stage->world;
    if (!online_as_planned(run) || !is_free(&world->here, run->parent_row, run->name))
        return TIDE_SUPERSEDED;
    const struct drive_item *online = drive_find(&world->online, run->item);
    struct drive_item *made = drive_add(world, &world->here, run->parent_row, run->name,
                                        run->action->kind, online->content);
    const uint64_t id = made->id;
    before_effect(stage, made, true);
    stage->totals.transfers += run->action->kind == TIDE_DRIVE_FILE;
    if (!sync_directory(stage) || drive_may_die(stage, F3_PLACED_NOT_COMMITTED))
        return TIDE_STOPPED;
    TIDE_TRY(put_here(run, id));
    return commit(run, run->action->item, run->store_row, run->action->was_item);
}

static tide_status overwrite_here(struct run *run)
{
    struct drive_stage *stage = run->stage;
    struct drive_world *world = stage->world;
    if (!online_as_planned(run) || (!here_as_planned(run) && stage->plant != PLANT_PLACE_UNCHECKED))
        return TIDE_SUPERSEDED;
    struct drive_item *here = drive_find(&world->here, run->row);
    if (here == NULL)
        return TIDE_SUPERSEDED;
    if (drive_happens(stage, F18_CHANGED_WHILE_PLACING, 20)) {
        drive_user_edits(stage, &world->here, run->row);
        if (stage->plant != PLANT_PLACE_UNCHECKED)
            return TIDE_SUPERSEDED; /* RENAME_EXCHANGE shows another file: put back (D42) */
    }
    before_effect(stage, here, false);
    here->content = drive_find(&world->online, run->item)->content;
    here->birth = world->next_id++;
    stage->totals.transfers++;
    if (!sync_directory(stage) || drive_may_die(stage, F3_PLACED_NOT_COMMITTED))
        return TIDE_STOPPED;
    TIDE_TRY(put_here(run, run->row));
    return commit(run, run->action->item, run->store_row, run->action->was_item);
}

/* Users leave names of ours alone. */
static void step(struct drive_item *item, const struct run *run, const char *was)
{
    item->stepped = run->action->step_aside;
    if (item->stepped && item->was_name[0] == '\0')
        COPY(item->was_name, was);
}

static tide_status move_online(struct run *run)
{
    struct drive_stage *stage = run->stage;
    struct drive_world *world = stage->world;
    struct drive_item *item = drive_find(&world->online, run->item);
    if (item == NULL || !online_as_planned(run))
        return TIDE_SUPERSEDED;
    char was[DRIVE_NAME_BYTES];
    COPY(was, item->name);
    if (stage->plant == PLANT_MOVE_ONTO && !run->action->step_aside) {
        const struct drive_item *taken = drive_child(&world->online, run->parent_item, run->name);
        if (taken != NULL && taken->id != run->item)
            drive_delete(&world->online, taken->id);
    }
    const uint64_t parent = run->action->step_aside ? item->parent : run->parent_item;
    if (parent == 0 || !drive_move(&world->online, run->item, parent, run->name))
        return TIDE_SUPERSEDED;
    step(item, run, was);
    if (drive_may_die(stage, run->action->step_aside ? F7_MID_SWAP : F10_MID_MOVE))
        return TIDE_STOPPED;
    TIDE_TRY(put_online(run, run->item));
    if (run->action->step_aside)
        return TIDE_OK;
    TIDE_TRY(tide_drive_aside_remote(drive_db(stage), run->action->item, TIDE_TEXT_NONE, run->err));
    return commit(run, run->action->item, run->action->row, 0);
}

static tide_status move_here(struct run *run)
{
    struct drive_stage *stage = run->stage;
    struct drive_world *world = stage->world;
    struct drive_item *item = drive_find(&world->here, run->row);
    if (item == NULL || !here_as_planned(run))
        return TIDE_SUPERSEDED;
    const uint64_t parent = run->action->step_aside ? item->parent : run->parent_row;
    before_effect(stage, item, false);
    if (parent == 0 || !drive_move(&world->here, run->row, parent, run->name)) {
        stage->undo_pending = false;
        return TIDE_SUPERSEDED;
    }
    step(item, run, stage->undo.name);
    if (!sync_directory(stage) ||
        drive_may_die(stage, run->action->step_aside    ? F7_MID_SWAP
                             : run->action->notice != 0 ? F6_ASIDE_NO_DOWNLOAD
                                                        : F10_MID_MOVE))
        return TIDE_STOPPED;
    uint64_t store_parent = run->store_parent_row;
    if (run->action->step_aside)
        store_parent =
            ask(stage, "SELECT parent FROM drive_local WHERE row = ?1", run->action->row);
    char aside[DRIVE_NAME_BYTES] = "";
    if (run->action->step_aside)
        (void)tide_rows_copy(drive_db(stage), "sim", aside, sizeof aside, NULL,
                             "SELECT aside FROM drive_local WHERE row = ?1", run->action->row);
    TIDE_TRY(tide_drive_local_moved(drive_db(stage), run->action->row, store_parent,
                                    tide_text_of(run->name), run->err));
    if (run->action->step_aside)
        return tide_drive_aside_local(drive_db(stage), run->action->row, tide_text_of(aside),
                                      run->err);
    return run->action->item == 0 ? TIDE_OK : commit(run, run->action->item, run->action->row, 0);
}

static tide_status remove_one(struct run *run, bool online)
{
    struct drive_stage *stage = run->stage;
    struct drive_side *side = online ? &stage->world->online : &stage->world->here;
    const uint64_t id = online ? run->item : run->row;
    struct drive_item *item = drive_find(side, id);
    const bool checked = stage->plant != PLANT_DELETE_UNCHECKED;
    if (item == NULL || (checked && (online ? !online_as_planned(run) : !here_as_planned(run))))
        return TIDE_SUPERSEDED;
    /* S12: the other side is asked again. */
    if (!online && drive_find(&stage->world->online, run->item) != NULL)
        return TIDE_SUPERSEDED;
    if (has_children(side, id) && stage->plant != PLANT_RECURSIVE_DELETE)
        return TIDE_SUPERSEDED; /* S18 */
    if (!online)
        before_effect(stage, item, false);
    drive_delete(side, id);
    stage->world->deletions++;
    if (!online && !sync_directory(stage))
        return TIDE_STOPPED;
    if (drive_may_die(stage, F9_DELETED_NOT_COMMITTED))
        return TIDE_STOPPED;
    if (online)
        TIDE_TRY(put_online(run, run->item));
    else
        TIDE_TRY(tide_drive_local_removed(drive_db(stage), run->action->row, run->err));
    return commit(run, run->action->item, run->action->row, 0);
}

/* The name it had is recorded in a transaction of its own, before the step (D24). */
static tide_status record_aside(struct run *run)
{
    const bool online = run->action->verb == TIDE_DRIVE_MOVE_REMOTE;
    const struct drive_item *item = online ? drive_find(&run->stage->world->online, run->item)
                                           : drive_find(&run->stage->world->here, run->row);
    if (item == NULL || run->stage->plant == PLANT_ASIDE_UNRECORDED ||
        (online ? !online_as_planned(run) : !here_as_planned(run)))
        return TIDE_OK;
    const char *sql =
        online ? "SELECT count(*) FROM drive_remote WHERE item = ?1 AND aside IS NOT NULL"
               : "SELECT count(*) FROM drive_local WHERE row = ?1 AND aside IS NOT NULL";
    if (ask(run->stage, sql, online ? run->action->item : run->action->row) > 0)
        return TIDE_OK;
    return online ? tide_drive_aside_remote(drive_db(run->stage), run->action->item,
                                            tide_text_of(item->name), run->err)
                  : tide_drive_aside_local(drive_db(run->stage), run->action->row,
                                           tide_text_of(item->name), run->err);
}

static tide_status effect(struct run *run)
{
    switch (run->action->verb) {
    case TIDE_DRIVE_NEW:
    case TIDE_DRIVE_MKDIR_REMOTE:
        return create_online(run);
    case TIDE_DRIVE_UP:
        return upload(run);
    case TIDE_DRIVE_DOWN:
    case TIDE_DRIVE_MKDIR_LOCAL:
        return run->action->row == 0 ? create_here(run) : overwrite_here(run);
    case TIDE_DRIVE_MOVE_REMOTE:
        return move_online(run);
    case TIDE_DRIVE_MOVE_LOCAL:
        return move_here(run);
    case TIDE_DRIVE_DEL_REMOTE:
    case TIDE_DRIVE_DEL_LOCAL:
        return remove_one(run, run->action->verb == TIDE_DRIVE_DEL_REMOTE);
    case TIDE_DRIVE_BASE:
        if (!online_as_planned(run) || !here_as_planned(run))
            return TIDE_SUPERSEDED;
        return commit(run, run->action->item, run->action->row, run->action->was_item);
    case TIDE_DRIVE_DROP:
        return commit(run, run->action->item, 0, 0);
    }
    return TIDE_BUG;
}

/* D38: an upload without an answer is looked up before anything is observed or planned.  If the item
 * has our bytes, the baseline is that of the rows as they were planned. */
tide_status drive_finish_upload(struct drive_stage *stage, tide_error *err)
{
    struct run run = {.stage = stage, .action = &stage->upload, .err = err};
    const uint64_t content = stage->upload_content;
    run.item = content == 0 ? 0 : world_item(stage, stage->upload.item);
    const struct drive_item *online = drive_find(&stage->world->online, run.item);
    if (content == 0 || online == NULL || online->content != content) {
        stage->upload_content = 0;
        return TIDE_OK;
    }
    TIDE_TRY(tide_db_exec(&stage->db, "BEGIN IMMEDIATE", err));
    tide_status rc = put_online(&run, run.item);
    if (rc == TIDE_OK)
        rc = commit(&run, run.store_item, stage->upload.row, stage->upload.was_item);
    if (rc == TIDE_OK)
        rc = tide_db_exec(&stage->db, "COMMIT", err);
    if (rc != TIDE_OK && !sqlite3_get_autocommit(stage->db.handle))
        (void)sqlite3_exec(stage->db.handle, "ROLLBACK", NULL, NULL, NULL);
    if (rc == TIDE_OK || rc == TIDE_SUPERSEDED)
        stage->upload_content = 0;
    return rc == TIDE_SUPERSEDED ? TIDE_OK : rc;
}

tide_status drive_carry_out(struct drive_stage *stage, const struct tide_drive_action *action,
                            const struct tide_drive_trees *trees, tide_error *err)
{
    struct run run = {.stage = stage, .action = action, .trees = trees, .err = err};
    (void)snprintf(run.name, sizeof run.name, "%.*s", (int)action->name.bytes, action->name.data);
    run.item = world_item(stage, action->item);
    run.row = drive_world_row(stage, action->row);
    find_parent(&run);
    const bool transfers = action->bytes > 0;
    if (transfers && drive_happens(stage, F25_ONE_500, 15)) {
        const struct tide_drive_owed owed = {.item = action->item,
                                             .row = action->row,
                                             .verb = action->verb,
                                             .name = action->name,
                                             .error = TIDE_TEXT("server error 500"),
                                             .attempts = 1};
        return tide_drive_owe(drive_db(stage), &owed, err);
    }
    if (action->step_aside)
        TIDE_TRY(record_aside(&run));
    TIDE_TRY(tide_db_exec(&stage->db, "BEGIN IMMEDIATE", err));
    tide_status rc = effect(&run);
    if (rc == TIDE_OK)
        rc = tide_drive_owed_paid(drive_db(stage), action->item, action->row, err);
    if (rc == TIDE_OK)
        rc = tide_db_exec(&stage->db, "COMMIT", err);
    if (rc != TIDE_OK && !sqlite3_get_autocommit(stage->db.handle))
        (void)sqlite3_exec(stage->db.handle, "ROLLBACK", NULL, NULL, NULL);
    if (rc == TIDE_OK || rc == TIDE_SUPERSEDED)
        stage->upload_content = 0;
    return rc;
}
