/* users.c - what the two users do, and what may be lost by it. */
#include "drive_sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- contents ---- */

uint64_t drive_quick(const struct drive_stage *stage, uint64_t content)
{
    return content < DRIVE_CONTENTS_MAX && stage->quick[content] != 0 ? stage->quick[content]
                                                                      : content;
}

struct tide_drive_content drive_content(const struct drive_stage *stage, uint64_t content,
                                        bool here)
{
    const uint64_t quick = drive_quick(stage, content);
    struct tide_drive_content out = {
        .bytes = quick == 0 ? 0 : 10 + quick % 3, .has_qxh = true, .has_strong = here};
    memcpy(out.qxh, &quick, sizeof quick);
    memcpy(out.strong, &content, sizeof content);
    return out;
}

/* ---- times of files here ---- */

/* What the watch tells: the folder, and for a move both. */
static void event(struct drive_stage *stage, uint64_t folder)
{
    for (size_t i = 0; i < stage->events_count; i++)
        if (stage->events[i] == folder)
            return;
    if (stage->events_count == sizeof stage->events / sizeof stage->events[0])
        stage->dirty = true;
    else
        stage->events[stage->events_count++] = folder;
}

/* A new or changed file has a new mtime, unless the user set it; ctime nobody can set. */
void drive_touch(struct drive_stage *stage)
{
    struct drive_side *here = &stage->world->here;
    if (here->count > stage->here_capacity) {
        stage->here_capacity = 2 * here->count + 64;
        stage->here_was = realloc(stage->here_was, stage->here_capacity * sizeof *stage->here_was);
    }
    for (size_t i = 0; i < here->count; i++) {
        struct drive_item *is = &here->items[i];
        const struct drive_item *was = i < stage->here_count ? &stage->here_was[i] : NULL;
        const uint64_t now_ns = stage->world->now_ms * 1000000 + ++stage->ticks;
        const bool changed = was == NULL || was->birth != is->birth || was->content != is->content;
        const bool moved = was != NULL && (was->parent != is->parent || was->alive != is->alive ||
                                           strcmp(was->name, is->name) != 0);
        if (changed && !stage->keep_mtime)
            is->mtime_ns = now_ns;
        if (changed || moved) {
            is->ctime_ns = now_ns;
            event(stage, is->parent);
            event(stage, was != NULL ? was->parent : is->parent);
        }
        stage->here_was[i] = *is;
    }
    stage->here_count = here->count;
}

/* ---- acts that name a fault ---- */

static uint64_t any_file(struct drive_stage *stage, struct drive_side *side)
{
    uint64_t found = 0, seen = 0;
    for (size_t i = 0; i < side->count; i++)
        if (side->items[i].alive && !side->items[i].stepped &&
            side->items[i].kind == TIDE_DRIVE_FILE && tide_rng_chance(&stage->rng, 1, ++seen))
            found = side->items[i].id;
    return found;
}

static const char *free_name(struct drive_side *side, uint64_t parent)
{
    static const char *const names[] = {"a", "b", "c", "d", "E", "f"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (drive_child(side, parent, names[i]) == NULL)
            return names[i];
    return NULL;
}

/* Other bytes, as many as before. */
static uint64_t content_of_size(struct drive_stage *stage, uint64_t old)
{
    struct drive_world *world = stage->world;
    while (world->next_content % 3 != drive_quick(stage, old) % 3)
        world->next_content++;
    return world->next_content++;
}

/* F20: an editor renames the file to its backup, and writes a new one. */
static bool backup_and_new(struct drive_stage *stage, uint64_t id)
{
    struct drive_side *here = &stage->world->here;
    const struct drive_item old = *drive_find(here, id);
    const char *backup = free_name(here, old.parent);
    if (backup == NULL || !drive_move(here, id, old.parent, backup))
        return false;
    (void)drive_add(stage->world, here, old.parent, old.name, TIDE_DRIVE_FILE,
                    stage->world->next_content++);
    return true;
}

/* F21: a file is deleted, and the next one has its inode, its size and its mtime. */
static bool inode_again(struct drive_stage *stage, uint64_t id)
{
    struct drive_side *here = &stage->world->here;
    const struct drive_item old = *drive_find(here, id);
    const char *other = free_name(here, old.parent);
    drive_delete(here, id);
    const char *name = other != NULL && tide_rng_chance(&stage->rng, 1, 2) ? other : old.name;
    struct drive_item *item = drive_add(stage->world, here, old.parent, name, TIDE_DRIVE_FILE,
                                        content_of_size(stage, old.content));
    item->inode = old.inode != 0 ? old.inode : old.birth;
    item->mtime_ns = old.mtime_ns;
    stage->keep_mtime = true;
    return true;
}

/* F22: written in place, and the mtime set to what it was. */
static bool mtime_put_back(struct drive_stage *stage, uint64_t id)
{
    struct drive_item *item = drive_find(&stage->world->here, id);
    item->content = content_of_size(stage, item->content);
    stage->keep_mtime = true;
    return true;
}

/* A download that was placed and not recorded has none. */
static bool has_baseline(struct drive_stage *stage, const struct drive_item *item)
{
    uint64_t found = 0;
    (void)tide_rows_number(drive_db(stage), "sim", &found, NULL,
                           "SELECT count(*) FROM drive_@_base WHERE birth_ns = ?1", item->birth);
    return found > 0;
}

/* F23: the quick hash does not see that two pages were exchanged.  Only of content that is online and
 * recorded: two files without a baseline are told apart by the quick hash alone (D19). */
static bool pages_swapped(struct drive_stage *stage, uint64_t id)
{
    struct drive_world *world = stage->world;
    struct drive_item *item = drive_find(&world->here, id);
    if (!drive_has_content(&world->online, item->content) || !has_baseline(stage, item))
        return false;
    const uint64_t content = world->next_content++;
    stage->quick[content] = drive_quick(stage, item->content);
    item->content = content;
    return true;
}

static struct drive_item *top_folder(struct drive_side *side, const char *name)
{
    struct drive_item *item = drive_child(side, TIDE_DRIVE_ROOT, name);
    return item != NULL && item->kind == TIDE_DRIVE_FOLDER && !item->stepped ? item : NULL;
}

/* F38: A into B here, B into A online. */
static bool into_each_other(struct drive_stage *stage)
{
    static const char *const names[] = {"a", "b", "c", "d", "f"};
    struct drive_side *here = &stage->world->here, *online = &stage->world->online;
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 5; k++) {
            struct drive_item *a = top_folder(here, names[i]), *b = top_folder(here, names[k]);
            struct drive_item *c = top_folder(online, names[i]), *d = top_folder(online, names[k]);
            if (i != k && a != NULL && b != NULL && c != NULL && d != NULL &&
                drive_child(here, b->id, names[i]) == NULL &&
                drive_child(online, c->id, names[k]) == NULL)
                return drive_move(here, a->id, b->id, names[i]) &&
                       drive_move(online, d->id, c->id, names[k]);
        }
    return false;
}

static bool strange_act(struct drive_stage *stage)
{
    static const enum fault faults[] = {F20_BACKUP_AND_NEW, F21_INODE_AGAIN, F22_MTIME_PUT_BACK,
                                        F23_PAGES_SWAPPED, F38_INTO_EACH_OTHER};
    const enum fault fault = faults[tide_rng_below(&stage->rng, 5)];
    const uint64_t id = any_file(stage, &stage->world->here);
    bool done = false;
    if (fault == F38_INTO_EACH_OTHER)
        done = into_each_other(stage);
    else if (id == 0)
        return false;
    else if (fault == F20_BACKUP_AND_NEW)
        done = backup_and_new(stage, id);
    else if (fault == F21_INODE_AGAIN)
        done = inode_again(stage, id);
    else
        done = fault == F22_MTIME_PUT_BACK ? mtime_put_back(stage, id) : pages_swapped(stage, id);
    stage->totals.faults[fault] += done;
    return done;
}

/* ---- what is lost by an act ---- */

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

/* Events of one act may be lost (F15). */
static void lose_events(struct drive_stage *stage, size_t before)
{
    if (stage->events_count == before ||
        !drive_happens(stage, F15_OVERFLOW, stage->plant == PLANT_OVERFLOW_IGNORED ? 2 : 12))
        return;
    stage->events_count = before;
    stage->overflowed = stage->plant != PLANT_OVERFLOW_IGNORED;
}

/* With what the server made it from. */
static void replace(struct drive_stage *stage, uint64_t content)
{
    stage->replaced[content] = true;
    stage->replaced[stage->rewritten[content]] = true;
}

/* For the report of a seed that fails. */
static void note_act(struct drive_stage *stage, const struct drive_side *side,
                     const struct drive_item *was, size_t count)
{
    const char *where = side == &stage->world->here ? "here" : "online";
    for (size_t i = 0; i < side->count; i++) {
        const struct drive_item *is = &side->items[i], *old = i < count ? &was[i] : NULL;
        if (old == NULL)
            tide_sim_note(stage->sim, "user %s: new %s %" PRIu64 " in %" PRIu64 " = %" PRIu64,
                          where, is->name, is->id, is->parent, is->content);
        else if (old->alive && !is->alive)
            tide_sim_note(stage->sim, "user %s: deletes %s %" PRIu64, where, is->name, is->id);
        else if (old->content != is->content || old->birth != is->birth)
            tide_sim_note(stage->sim, "user %s: edits %s %" PRIu64 " = %" PRIu64, where, is->name,
                          is->id, is->content);
        else if (old->parent != is->parent || strcmp(old->name, is->name) != 0)
            tide_sim_note(stage->sim, "user %s: moves %s %" PRIu64 " to %s in %" PRIu64, where,
                          old->name, is->id, is->name, is->parent);
    }
}

/* What a user deletes or replaces may be lost.  A content that is there twice counts as replaced when
 * one of the two is: they may be one file that was moved, and seen as two for a while. */
static void act(struct drive_stage *stage, struct drive_side *side, uint64_t edit)
{
    struct drive_world *world = stage->world;
    const uint64_t before = world->next_content;
    const size_t count = side->count;
    if (before >= DRIVE_CONTENTS_MAX - 8)
        return;
    struct drive_item *was = calloc(count + 1, sizeof *was);
    if (count > 0)
        memcpy(was, side->items, count * sizeof *was);
    const bool strange = edit == 0 && side == &world->here && tide_rng_chance(&stage->rng, 1, 6) &&
                         strange_act(stage);
    if (edit != 0)
        drive_edit(world, side, edit, false);
    else if (!strange)
        drive_act(world, side, &stage->rng);
    drive_feed_look(stage);
    const size_t events = stage->events_count;
    drive_touch(stage);
    stage->keep_mtime = false;
    lose_events(stage, events);
    for (size_t i = 0; i < count; i++)
        if (was[i].alive && (!side->items[i].alive || side->items[i].content != was[i].content))
            replace(stage, was[i].content);
    note_act(stage, side, was, count);
    count_acts(stage, side, was, count);
    for (uint64_t c = before; c < world->next_content; c++)
        stage->made[c] = drive_has_content(side, c);
    free(was);
}

void drive_user(struct drive_stage *stage, struct drive_side *side)
{
    act(stage, side, 0);
}

void drive_any_user(struct drive_stage *stage)
{
    act(stage, tide_rng_chance(&stage->rng, 1, 2) ? &stage->world->online : &stage->world->here, 0);
}

void drive_user_edits(struct drive_stage *stage, struct drive_side *side, uint64_t id)
{
    act(stage, side, id);
}

/* Gives an item another name or folder, and nothing else. */
void drive_user_moves(struct drive_stage *stage, struct drive_side *side)
{
    uint64_t id = 0, folder = TIDE_DRIVE_ROOT, seen = 0, folders = 1;
    for (size_t i = 0; i < side->count; i++) {
        const struct drive_item *item = &side->items[i];
        if (item->alive && tide_rng_chance(&stage->rng, 1, ++seen))
            id = item->id;
        if (item->alive && item->kind == TIDE_DRIVE_FOLDER &&
            tide_rng_chance(&stage->rng, 1, ++folders))
            folder = item->id;
    }
    const char *name = free_name(side, folder);
    if (id != 0 && name != NULL)
        (void)drive_move(side, id, folder, name);
    drive_feed_look(stage);
    drive_touch(stage);
}
