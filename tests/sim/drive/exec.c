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
    bool rewritten;
};

/* ---- places ---- */

/* Where the item goes: a folder that another action made is known by its baseline. */
static void find_parent(struct run *run)
{
    const struct tide_drive_action *action = run->action;
    struct drive_stage *stage = run->stage;
    uint64_t item = action->parent_item, row = action->parent_row;
    if (item == 0 && row != 0)
        item = drive_ask(stage, "SELECT item FROM drive_@_base WHERE row = ?1", row);
    if (row == 0 && item != 0)
        row = drive_ask(stage, "SELECT row FROM drive_@_base WHERE item = ?1", item);
    run->parent_item = drive_world_item(stage, item);
    run->store_parent_row = row;
    run->parent_row = row == TIDE_DRIVE_ROOT ? TIDE_DRIVE_ROOT : drive_world_row(stage, row);
}

/* ---- gates (S10): content as it was planned, the place as its row has it, which an earlier step of the
 * same item may have changed ---- */

static bool has_name(struct drive_stage *stage, const char *sql, uint64_t number, const char *name)
{
    char is[DRIVE_NAME_BYTES] = "";
    return tide_rows_copy(drive_db(stage), "sim", is, sizeof is, NULL, sql, number) == TIDE_OK &&
           strcmp(is, name) == 0;
}

static bool same_quick(const struct drive_stage *stage, const struct tide_drive_remote *row,
                       const struct drive_item *is)
{
    const uint64_t quick = drive_quick(stage, is->content);
    return memcmp(row->content.qxh, &quick, sizeof quick) == 0;
}

static bool online_is_planned(const struct run *run, uint64_t item)
{
    const struct drive_item *is =
        drive_find(&run->stage->world->online, drive_world_item(run->stage, item));
    for (size_t i = 0; i < run->trees->remotes_count; i++) {
        const struct tide_drive_remote *row = &run->trees->remotes[i];
        if (row->item != item)
            continue;
        if (row->state == TIDE_DRIVE_REMOTE_GONE)
            return is == NULL;
        const uint64_t parent =
            drive_ask(run->stage, "SELECT parent FROM drive_@_remote WHERE item = ?1", item);
        return is != NULL && drive_world_item(run->stage, parent) == is->parent &&
               (row->stepped_aside ||
                has_name(run->stage, "SELECT name FROM drive_@_remote WHERE item = ?1", item,
                         is->name)) &&
               same_quick(run->stage, row, is);
    }
    return item == 0;
}

static bool online_as_planned(const struct run *run)
{
    return online_is_planned(run, run->action->item);
}

static bool here_as_planned(const struct run *run)
{
    const struct drive_item *is = drive_find(&run->stage->world->here, run->row);
    for (size_t i = 0; i < run->trees->locals_count; i++) {
        const struct tide_drive_local *row = &run->trees->locals[i];
        if (row->row != run->action->row)
            continue;
        const uint64_t parent =
            drive_ask(run->stage, "SELECT parent FROM drive_@_local WHERE row = ?1", row->row);
        return is != NULL && drive_world_row(run->stage, parent) == is->parent &&
               (row->stepped_aside ||
                has_name(run->stage, "SELECT name FROM drive_@_local WHERE row = ?1", row->row,
                         is->name)) &&
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
    if (!stage->calm && !stage->deathless && tide_rng_chance(&stage->rng, 1, 60)) {
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
    drive_touch(run->stage);
    struct drive_item item = *drive_find(&run->stage->world->here, id);
    uint64_t parent = TIDE_DRIVE_ROOT;
    if (item.parent != TIDE_DRIVE_ROOT) {
        parent = 0;
        for (size_t i = 0; i < run->stage->rows_count; i++)
            if (run->stage->rows[i][1] == item.parent)
                parent = run->stage->rows[i][0];
        if (parent == 0)
            return TIDE_SUPERSEDED;
    }
    return drive_put_row(run->stage, parent, &item, &run->store_row, run->err);
}

static tide_status commit(struct run *run, uint64_t item, uint64_t row, uint64_t was)
{
    const struct tide_drive_outcome outcome = {.verb = run->action->verb,
                                               .item = item,
                                               .row = row,
                                               .was_item = was,
                                               .rewritten = run->rewritten,
                                               .consented =
                                                   drive_ask(run->stage,
                                                             "SELECT count(*) FROM drive_@_consent"
                                                             " WHERE item = ?1",
                                                             item) > 0,
                                               .now_ms = run->stage->world->now_ms};
    return tide_drive_commit(drive_db(run->stage), &outcome, run->err);
}

/* ---- effects ---- */

/* F39: a folder is renamed while a file goes up into it; the file is sent to the folder's id. */
static void rename_parent(struct drive_stage *stage, uint64_t parent)
{
    static const char *const names[] = {"a", "b", "c", "d", "f"};
    struct drive_side *online = &stage->world->online;
    const struct drive_item *folder = drive_find(online, parent);
    if (folder == NULL || folder->stepped || stage->calm || !tide_rng_chance(&stage->rng, 1, 12))
        return;
    const char *name = names[tide_rng_below(&stage->rng, 5)];
    if (drive_child(online, folder->parent, name) == NULL)
        stage->totals.faults[F39_RENAMED_WHILE_UPLOADING] +=
            drive_move(online, parent, folder->parent, name);
    drive_feed_look(stage);
}

/* F33: the server changes what was sent, at once or later (D40). */
static void rewrite(struct run *run, uint64_t id)
{
    struct drive_world *world = run->stage->world;
    struct drive_item *item = drive_find(&world->online, id);
    if (item->kind != TIDE_DRIVE_FILE || world->next_content >= DRIVE_CONTENTS_MAX - 8)
        return;
    if (!run->stage->calm && tide_rng_chance(&run->stage->rng, 1, 40))
        run->stage->rewrites = id;
    if (!drive_happens(run->stage, F33_REWRITTEN, 25))
        return;
    run->stage->rewritten[world->next_content] = item->content;
    item->content = world->next_content++;
    run->rewritten = true;
}

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
    rename_parent(stage, run->parent_item);
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
    rewrite(run, id);
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
    rename_parent(stage, drive_find(&world->online, run->item)->parent);
    stage->upload = *run->action;
    stage->upload_content = drive_find(&world->here, run->row)->content;
    drive_find(&world->online, run->item)->content = stage->upload_content;
    stage->totals.transfers++;
    rewrite(run, run->item);
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
    stage->totals.transfers += stage->plant == PLANT_MOVE_BY_COPY && item->kind == TIDE_DRIVE_FILE;
    if (drive_may_die(stage, run->action->step_aside ? F7_MID_SWAP : F10_MID_MOVE))
        return TIDE_STOPPED;
    TIDE_TRY(put_online(run, run->item));
    if (run->action->step_aside)
        return TIDE_OK;
    TIDE_TRY(tide_drive_aside_remote(drive_db(stage), run->action->item, TIDE_TEXT_NONE, run->err));
    return commit(run, run->action->item, run->action->row, 0);
}

/* DRI19: the two versions differ, and both differ from what was agreed on. */
static void check_copy(struct run *run, const struct drive_item *here)
{
    struct drive_stage *stage = run->stage;
    const struct drive_item *other =
        drive_find(&stage->world->online, drive_world_item(stage, run->action->copy_of));
    if (other == NULL || other->kind != TIDE_DRIVE_FILE)
        tide_sim_fail(stage->sim, "DRI19: %s is set aside for a version that is not there",
                      here->name);
    bool changed = other->content != here->content;
    for (size_t i = 0; i < run->trees->bases_count && changed; i++) {
        const struct tide_drive_base *base = &run->trees->bases[i];
        const uint64_t quick = drive_quick(stage, other->content);
        changed = base->item != run->action->copy_of ||
                  memcmp(base->remote.qxh, &quick, sizeof quick) != 0;
    }
    if (!changed)
        tide_sim_fail(stage->sim, "DRI19: %s is set aside, but did not change online", here->name);
}

static tide_status move_here(struct run *run)
{
    struct drive_stage *stage = run->stage;
    struct drive_world *world = stage->world;
    struct drive_item *item = drive_find(&world->here, run->row);
    if (item == NULL || !here_as_planned(run))
        return TIDE_SUPERSEDED;
    if (run->action->copy_of != 0 && stage->plant != PLANT_COPY_UNGATED &&
        !online_is_planned(run, run->action->copy_of))
        return TIDE_SUPERSEDED; /* an echo of an old version makes no copy */
    if (run->action->copy_of != 0)
        check_copy(run, item);
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
            drive_ask(stage, "SELECT parent FROM drive_@_local WHERE row = ?1", run->action->row);
    char aside[DRIVE_NAME_BYTES] = "";
    if (run->action->step_aside)
        (void)tide_rows_copy(drive_db(stage), "sim", aside, sizeof aside, NULL,
                             "SELECT aside FROM drive_@_local WHERE row = ?1", run->action->row);
    TIDE_TRY(tide_drive_local_moved(drive_db(stage), run->action->row, store_parent,
                                    tide_text_of(run->name), run->err));
    if (run->action->step_aside)
        return tide_drive_aside_local(drive_db(stage), run->action->row, tide_text_of(aside),
                                      run->err);
    return run->action->item == 0 ? TIDE_OK : commit(run, run->action->item, run->action->row, 0);
}

/* Whether the file or folder that both sides agreed on is where it was here; `seen`: as far as can be
 * seen. */
static bool at_own_path(struct run *run, bool seen)
{
    struct drive_stage *stage = run->stage;
    struct drive_side *here = &stage->world->here;
    char name[DRIVE_NAME_BYTES] = "";
    if (tide_rows_copy(drive_db(stage), "sim", name, sizeof name, NULL,
                       "SELECT local_name FROM drive_@_base WHERE item = ?1",
                       run->action->item) != TIDE_OK)
        return false;
    const uint64_t up =
        drive_ask(stage, "SELECT parent FROM drive_@_base WHERE item = ?1", run->action->item);
    const uint64_t row =
        up == TIDE_DRIVE_ROOT
            ? TIDE_DRIVE_ROOT
            : drive_world_row(stage,
                              drive_ask(stage, "SELECT row FROM drive_@_base WHERE item = ?1", up));
    const struct drive_item *item = row == 0 ? NULL : drive_child(here, row, name);
    if (item == NULL || strcmp(item->name, name) != 0)
        return false;
    const uint64_t inode = item->inode != 0 ? item->inode : item->birth;
    return !(seen && drive_is_beneath(here, row, stage->unmounted)) &&
           inode == drive_ask(stage, "SELECT inode FROM drive_@_base WHERE item = ?1",
                              run->action->item);
}

static bool believed_gone(const struct run *run)
{
    struct drive_stage *stage = run->stage;
    return stage->plant == PLANT_LOCK_BELIEVED && stage->locked != 0 &&
           drive_is_beneath(&stage->world->online, run->item, stage->locked);
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
    /* S12, S13: the other side is asked again. */
    const bool alive = !online && drive_find(&stage->world->online, run->item) != NULL;
    if (online ? at_own_path(run, true) : alive && !believed_gone(run))
        return TIDE_SUPERSEDED;
    if (online ? at_own_path(run, false) : alive)
        tide_sim_fail(stage->sim, "DRI4: %s is deleted, but is on the other side", item->name);
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
        online ? "SELECT count(*) FROM drive_@_remote WHERE item = ?1 AND aside IS NOT NULL"
               : "SELECT count(*) FROM drive_@_local WHERE row = ?1 AND aside IS NOT NULL";
    if (drive_ask(run->stage, sql, online ? run->action->item : run->action->row) > 0)
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
    run.item = content == 0 ? 0 : drive_world_item(stage, stage->upload.item);
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

/* On a disk that is gone for now. */
static bool is_out_of_reach(const struct run *run)
{
    struct drive_stage *stage = run->stage;
    return stage->unmounted != 0 &&
           (tide_drive_verb_is_local(run->action->verb) || run->row != 0) &&
           (drive_is_beneath(&stage->world->here, run->row, stage->unmounted) ||
            drive_is_beneath(&stage->world->here, run->parent_row, stage->unmounted));
}

/* Why the call fails; NULL: it does not. */
static const char *failure_of(const struct run *run)
{
    struct drive_stage *stage = run->stage;
    struct drive_side *online = &stage->world->online;
    const tide_drive_verb verb = run->action->verb;
    const struct drive_item *item = drive_find(online, run->item);
    if (stage->locked != 0 && (tide_drive_verb_is_remote(verb) || verb == TIDE_DRIVE_DOWN) &&
        (drive_is_beneath(online, run->item, stage->locked) ||
         drive_is_beneath(online, run->parent_item, stage->locked)))
        return "access denied";
    if (stage->bad != 0 && verb == TIDE_DRIVE_DOWN && item != NULL && item->content == stage->bad)
        return "the hash does not fit";
    if (run->action->bytes > 0 && drive_happens(stage, F25_ONE_500, 15))
        return "server error 500";
    if (verb == TIDE_DRIVE_DOWN && drive_happens(stage, F16_DISK_FULL, 25))
        return "no space left on device";
    return NULL;
}

static tide_status owe(const struct run *run, const char *failure)
{
    const struct tide_drive_owed owed = {.item = run->action->item,
                                         .row = run->action->row,
                                         .verb = run->action->verb,
                                         .name = run->action->name,
                                         .error = tide_text_of(failure),
                                         .attempts = 1,
                                         .next_ms = run->stage->world->now_ms + 5000};
    return tide_drive_owe(drive_db(run->stage), &owed, run->err);
}

tide_status drive_carry_out(struct drive_stage *stage, const struct tide_drive_action *action,
                            const struct tide_drive_trees *trees, tide_error *err)
{
    struct run run = {.stage = stage, .action = action, .trees = trees, .err = err};
    (void)snprintf(run.name, sizeof run.name, "%.*s", (int)action->name.bytes, action->name.data);
    run.item = drive_world_item(stage, action->item);
    run.row = drive_world_row(stage, action->row);
    find_parent(&run);
    if (is_out_of_reach(&run))
        return TIDE_SUPERSEDED;
    const char *failure = failure_of(&run);
    if (failure != NULL)
        return owe(&run, failure);
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
