#include "support/drive/world.h"

#include "drive/names/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY(to, from) (void)snprintf(to, sizeof(to), "%s", from)

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void *grown(void *array, size_t *capacity, size_t count, size_t bytes)
{
    if (count <= *capacity)
        return array;
    *capacity = *capacity == 0 ? 64 : 2 * *capacity;
    array = realloc(array, *capacity * bytes);
    must(array != NULL);
    return array;
}

struct drive_world *drive_world_new(void)
{
    struct drive_world *world = calloc(1, sizeof *world);
    must(world != NULL);
    world->next_id = 2;
    world->next_content = 1;
    world->now_ms = UINT64_C(1777863721000);
    return world;
}

void drive_world_free(struct drive_world *world)
{
    free(world->online.items);
    free(world->here.items);
    free(world->records);
    free(world->remotes);
    free(world->locals);
    free(world->bases);
    free(world);
}

static bool one_key(const char *a, const char *b)
{
    tide_auto_buf keys = tide_buf_heap(4096);
    if (strcmp(a, b) == 0)
        return true;
    must(tide_drive_key_add(&keys, tide_text_of(a)) == TIDE_OK);
    const size_t half = keys.bytes;
    must(tide_drive_key_add(&keys, tide_text_of(b)) == TIDE_OK);
    return keys.bytes == 2 * half && memcmp(keys.data, keys.data + half, half) == 0;
}

/* ---- users ---- */

struct drive_item *drive_find(struct drive_side *side, uint64_t id)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->items[i].alive && side->items[i].id == id)
            return &side->items[i];
    return NULL;
}

struct drive_item *drive_child(struct drive_side *side, uint64_t parent, const char *name)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->items[i].alive && side->items[i].parent == parent &&
            one_key(side->items[i].name, name))
            return &side->items[i];
    return NULL;
}

struct drive_item *drive_add(struct drive_world *world, struct drive_side *side, uint64_t parent,
                             const char *name, tide_drive_kind kind, uint64_t content)
{
    side->items = grown(side->items, &side->capacity, side->count + 1, sizeof *side->items);
    struct drive_item *item = &side->items[side->count++];
    *item = (struct drive_item){.id = world->next_id,
                                .parent = parent,
                                .content = kind == TIDE_DRIVE_FOLDER ? 0 : content,
                                .birth = world->next_id,
                                .kind = kind,
                                .alive = true};
    world->next_id++;
    COPY(item->name, name);
    return item;
}

void drive_delete(struct drive_side *side, uint64_t id)
{
    struct drive_item *item = drive_find(side, id);
    if (item == NULL)
        return;
    item->alive = false;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < side->count; i++)
            if (side->items[i].alive && side->items[i].parent != TIDE_DRIVE_ROOT &&
                drive_find(side, side->items[i].parent) == NULL) {
                side->items[i].alive = false;
                more = true;
            }
    }
}

bool drive_move(struct drive_side *side, uint64_t id, uint64_t parent, const char *name)
{
    struct drive_item *item = drive_find(side, id);
    const struct drive_item *other = drive_child(side, parent, name);
    if (item == NULL || (other != NULL && other != item))
        return false;
    for (uint64_t up = parent; up != TIDE_DRIVE_ROOT;) {
        const struct drive_item *folder = drive_find(side, up);
        if (folder == NULL || up == id || folder->kind != TIDE_DRIVE_FOLDER)
            return false;
        up = folder->parent;
    }
    char copy[DRIVE_NAME_BYTES];
    COPY(copy, name);
    item->parent = parent;
    item->stepped = false;
    COPY(item->name, copy);
    return true;
}

void drive_edit(struct drive_world *world, struct drive_side *side, uint64_t id, bool by_rename)
{
    struct drive_item *item = drive_find(side, id);
    if (item == NULL || item->kind != TIDE_DRIVE_FILE)
        return;
    item->content = world->next_content++;
    if (by_rename)
        item->birth = world->next_id++;
}

static uint64_t any(struct drive_side *side, tide_rng *rng, tide_drive_kind kind)
{
    uint64_t found = 0, seen = 0;
    for (size_t i = 0; i < side->count; i++)
        if (side->items[i].alive && !side->items[i].stepped &&
            (kind == 0 || side->items[i].kind == kind) && tide_rng_chance(rng, 1, ++seen))
            found = side->items[i].id;
    return found;
}

static uint64_t any_folder(struct drive_side *side, tide_rng *rng)
{
    const uint64_t folder = any(side, rng, TIDE_DRIVE_FOLDER);
    return folder == 0 || tide_rng_chance(rng, 1, 3) ? TIDE_DRIVE_ROOT : folder;
}

static const char *any_name(tide_rng *rng)
{
    static const char *const names[DRIVE_SEED_NAMES + 2] = {"a", "b", "c", "d",
                                                            "E", "f", "e", "\xc3\x84"};
    return names[tide_rng_below(rng, DRIVE_SEED_NAMES + 2)];
}

/* Two items exchange their places. */
static void exchange(struct drive_side *side, uint64_t a, uint64_t b)
{
    struct drive_item *one = drive_find(side, a), *two = drive_find(side, b);
    if (one == NULL || two == NULL || one == two)
        return;
    char first[DRIVE_NAME_BYTES], second[DRIVE_NAME_BYTES];
    const uint64_t up_one = one->parent, up_two = two->parent;
    COPY(first, one->name);
    COPY(second, two->name);
    if (!drive_move(side, a, up_one, "zz-exchange"))
        return;
    if (drive_move(side, b, up_one, first)) {
        if (!drive_move(side, a, up_two, second) && !drive_move(side, b, up_two, second))
            abort();
    }
    if (strcmp(drive_find(side, a)->name, "zz-exchange") == 0)
        must(drive_move(side, a, up_one, first));
}

static void replace(struct drive_world *world, struct drive_side *side, uint64_t id, bool type)
{
    struct drive_item *item = drive_find(side, id);
    if (item == NULL)
        return;
    const struct drive_item old = *item;
    const bool folder = (old.kind == TIDE_DRIVE_FOLDER) != type;
    drive_delete(side, id);
    (void)drive_add(world, side, old.parent, old.name, folder ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
                    world->next_content++);
}

void drive_act(struct drive_world *world, struct drive_side *side, tide_rng *rng)
{
    const uint64_t id = any(side, rng, 0), folder = any_folder(side, rng);
    const char *name = any_name(rng);
    const bool taken = drive_child(side, folder, name) != NULL;
    switch (tide_rng_below(rng, 12)) {
    case 0:
    case 1:
        if (!taken)
            (void)drive_add(world, side, folder, name, TIDE_DRIVE_FILE, world->next_content++);
        break;
    case 2:
        if (!taken)
            (void)drive_add(world, side, folder, name, TIDE_DRIVE_FOLDER, 0);
        break;
    case 3:
    case 4:
        drive_edit(world, side, any(side, rng, TIDE_DRIVE_FILE), tide_rng_chance(rng, 1, 2));
        break;
    case 5:
        drive_delete(side, id);
        break;
    case 6:
    case 7:
    case 8:
        (void)drive_move(side, id, folder, name);
        break;
    case 9:
        exchange(side, id, any(side, rng, 0));
        break;
    case 10:
        replace(world, side, id, tide_rng_chance(rng, 1, 2));
        break;
    default: /* a child takes the place of its parent */
        if (id != 0 && drive_find(side, id)->parent != TIDE_DRIVE_ROOT) {
            struct drive_item *child = drive_find(side, id);
            struct drive_item *parent = drive_find(side, child->parent);
            const struct drive_item was = *parent;
            (void)drive_move(side, id, was.parent, "zz-child");
            drive_delete(side, was.id);
            (void)drive_move(side, id, was.parent, was.stepped ? was.was_name : was.name);
        }
        break;
    }
}

/* ---- rows ---- */

static struct tide_drive_content content_of(uint64_t number, bool local, bool no_hash)
{
    struct tide_drive_content content = {
        .bytes = number == 0 ? 0 : 10 + number % 3, .has_qxh = !no_hash, .has_strong = local};
    memcpy(content.qxh, &number, sizeof number);
    memcpy(content.strong, &number, sizeof number);
    return content;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

struct drive_record *drive_record_of(struct drive_world *world, uint64_t item)
{
    for (size_t i = 0; i < world->records_count; i++)
        if (world->records[i].alive && world->records[i].item == item)
            return &world->records[i];
    return NULL;
}

static void online_rows(struct drive_world *world)
{
    world->remotes = realloc(world->remotes, (world->online.count + 1) * sizeof *world->remotes);
    must(world->remotes != NULL);
    size_t count = 0;
    for (size_t i = 0; i < world->online.count; i++) {
        const struct drive_item *item = &world->online.items[i];
        tide_drive_remote_state state = TIDE_DRIVE_REMOTE_LIVE;
        if (!item->alive)
            state = item->forgotten ? TIDE_DRIVE_REMOTE_FORGOTTEN : TIDE_DRIVE_REMOTE_GONE;
        else if (item->unsure || item->skipped)
            state = item->unsure ? TIDE_DRIVE_REMOTE_UNSURE : TIDE_DRIVE_REMOTE_SKIPPED;
        world->remotes[count++] = (struct tide_drive_remote){
            .item = item->id,
            .parent = item->parent,
            .name = tide_text_of(item->stepped ? item->was_name : item->name),
            .ctag = {(const char *)&item->content, sizeof item->content},
            .content = content_of(item->content, false, item->no_hash),
            .kind = item->kind,
            .state = state,
            .stepped_aside = item->stepped};
    }
    qsort(world->remotes, count, sizeof *world->remotes, by_number);
    world->trees.remotes = world->remotes;
    world->trees.remotes_count = count;
}

static void here_rows(struct drive_world *world)
{
    world->locals = realloc(world->locals, (world->here.count + 1) * sizeof *world->locals);
    must(world->locals != NULL);
    size_t count = 0;
    for (size_t i = 0; i < world->here.count; i++) {
        const struct drive_item *item = &world->here.items[i];
        if (!item->alive)
            continue;
        tide_drive_local_state state = TIDE_DRIVE_LOCAL_LIVE;
        if (item->unsure || item->skipped)
            state = item->unsure ? TIDE_DRIVE_LOCAL_UNSURE : TIDE_DRIVE_LOCAL_SKIPPED;
        world->locals[count++] = (struct tide_drive_local){
            .row = item->id,
            .parent = item->parent,
            .name = tide_text_of(item->stepped ? item->was_name : item->name),
            .identity = {1, item->birth, item->birth},
            .content = content_of(item->content, true, false),
            .nlink = 1,
            .kind = item->kind,
            .state = state,
            .stepped_aside = item->stepped};
    }
    qsort(world->locals, count, sizeof *world->locals, by_number);
    world->trees.locals = world->locals;
    world->trees.locals_count = count;
}

static void base_rows(struct drive_world *world)
{
    world->bases = realloc(world->bases, (world->records_count + 1) * sizeof *world->bases);
    must(world->bases != NULL);
    size_t count = 0;
    for (size_t i = 0; i < world->records_count; i++) {
        const struct drive_record *record = &world->records[i];
        if (!record->alive)
            continue;
        world->bases[count++] = (struct tide_drive_base){
            .item = record->item,
            .parent = record->parent,
            .name = tide_text_of(record->name),
            .local_name = tide_text_of(record->local_name),
            .ctag = {(const char *)&record->content, sizeof record->content},
            .remote = content_of(record->content, false, false),
            .local = content_of(record->content, true, false),
            .identity = {1, record->birth, record->birth},
            .row = record->row,
            .kind = record->kind,
            .local_gone = !world->scan_incomplete};
    }
    qsort(world->bases, count, sizeof *world->bases, by_number);
    world->trees.bases = world->bases;
    world->trees.bases_count = count;
}

const struct tide_drive_trees *drive_rows(struct drive_world *world)
{
    online_rows(world);
    here_rows(world);
    base_rows(world);
    return &world->trees;
}

struct tide_drive_plan_options drive_options(const struct drive_world *world)
{
    return (struct tide_drive_plan_options){
        .guard = {.largest_24h = 1000000},
        .stamp = {.host = TIDE_TEXT("host"), .unix_ms = world->now_ms}};
}

/* ---- carrying out ---- */

static void forget(struct drive_world *world, uint64_t item)
{
    struct drive_record *record = drive_record_of(world, item);
    if (record != NULL)
        record->alive = false;
}

static uint64_t item_of_row(struct drive_world *world, uint64_t row)
{
    if (row == TIDE_DRIVE_ROOT)
        return TIDE_DRIVE_ROOT;
    for (size_t i = 0; i < world->records_count; i++)
        if (world->records[i].alive && world->records[i].row == row)
            return world->records[i].item;
    return 0;
}

static uint64_t row_of_item(struct drive_world *world, uint64_t item)
{
    const struct drive_record *record = drive_record_of(world, item);
    return item == TIDE_DRIVE_ROOT ? TIDE_DRIVE_ROOT : record == NULL ? 0 : record->row;
}

/* Writes the baseline of an item that is the same on both sides; `was` had it under another id. */
static void record(struct drive_world *world, uint64_t item, uint64_t row, uint64_t was)
{
    const struct drive_item *online = drive_find(&world->online, item);
    const struct drive_item *here = drive_find(&world->here, row);
    must(online != NULL && here != NULL);
    must(online->kind == here->kind);
    if (was != 0 && was != item) {
        forget(world, was);
        for (size_t i = 0; i < world->records_count; i++)
            if (world->records[i].parent == was)
                world->records[i].parent = item;
    }
    struct drive_record *found = drive_record_of(world, item);
    if (found == NULL) {
        world->records = grown(world->records, &world->records_capacity, world->records_count + 1,
                               sizeof *world->records);
        found = &world->records[world->records_count++];
    }
    *found = (struct drive_record){.item = item,
                                   .parent = online->parent,
                                   .row = row,
                                   .birth = here->birth,
                                   .content = online->content,
                                   .kind = online->kind,
                                   .alive = true};
    COPY(found->name, online->name);
    COPY(found->local_name, here->name);
}

/* Moved: the place is recorded when both sides have it (I3). */
static void record_place(struct drive_world *world, const struct tide_drive_action *action)
{
    struct drive_record *found =
        drive_record_of(world, action->was_item != 0 ? action->was_item : action->item);
    const struct drive_item *online = drive_find(&world->online, action->item);
    const struct drive_item *here = drive_find(&world->here, action->row);
    if (found == NULL || online == NULL || here == NULL || action->was_item != 0)
        return;
    const uint64_t parent_row = row_of_item(world, online->parent);
    if (here->parent != parent_row || online->stepped || here->stepped ||
        !tide_drive_same_letters(tide_text_of(online->name), tide_text_of(here->name)))
        return;
    found->parent = online->parent;
    found->row = action->row;
    COPY(found->name, online->name);
    COPY(found->local_name, here->name);
}

static bool is_free_at(struct drive_side *side, uint64_t parent, const char *name)
{
    return (parent == TIDE_DRIVE_ROOT || drive_find(side, parent) != NULL) &&
           drive_child(side, parent, name) == NULL;
}

static bool apply_move(struct drive_world *world, struct drive_side *side, uint64_t id,
                       uint64_t parent, const struct tide_drive_action *action, const char *name)
{
    struct drive_item *item = drive_find(side, id);
    if (item == NULL)
        return false;
    if (action->step_aside) {
        char old[DRIVE_NAME_BYTES];
        COPY(old, item->stepped ? item->was_name : item->name);
        if (!drive_move(side, id, item->parent, name))
            return false;
        COPY(item->was_name, old);
        item->stepped = true; /* recorded first, in a real drive */
        return true;
    }
    if (!drive_move(side, id, parent, name))
        return false;
    record_place(world, action);
    return true;
}

static bool apply_new(struct drive_world *world, const struct tide_drive_action *action,
                      uint64_t parent, const char *name)
{
    const struct drive_item *here = drive_find(&world->here, action->row);
    if (here == NULL || !is_free_at(&world->online, parent, name))
        return false;
    const uint64_t content = here->content;
    const struct drive_item *made =
        drive_add(world, &world->online, parent, name, action->kind, content);
    world->uploads += action->verb == TIDE_DRIVE_NEW;
    record(world, made->id, action->row, action->item);
    return true;
}

static bool apply_down(struct drive_world *world, const struct tide_drive_action *action,
                       uint64_t parent, const char *name)
{
    const struct drive_item *online = drive_find(&world->online, action->item);
    struct drive_item *here = action->row == 0 ? NULL : drive_find(&world->here, action->row);
    if (online == NULL || (action->row != 0 && here == NULL))
        return false;
    const uint64_t content = online->content;
    uint64_t row = action->row;
    world->downloads += action->verb == TIDE_DRIVE_DOWN;
    if (action->compare && here->content != content) {
        char aside[DRIVE_NAME_BYTES];
        (void)snprintf(aside, sizeof aside, "%.60s.conflict-x", here->name);
        const struct drive_item old = *here;
        must(drive_move(&world->here, row, here->parent, aside));
        row = drive_add(world, &world->here, old.parent, old.name, action->kind, content)->id;
    } else if (row != 0) {
        here->content = content;
        here->birth = world->next_id++;
    } else {
        if (!is_free_at(&world->here, parent, name))
            return false;
        row = drive_add(world, &world->here, parent, name, action->kind, content)->id;
    }
    /* Content only: a place that differs stays as recorded until it is moved. */
    struct drive_record *old =
        drive_record_of(world, action->was_item != 0 ? action->was_item : action->item);
    const struct drive_record place = old == NULL ? (struct drive_record){.item = 0} : *old;
    record(world, action->item, row, action->was_item);
    struct drive_record *now = drive_record_of(world, action->item);
    if (action->row != 0 && place.item != 0 && place.item == action->item) {
        now->parent = place.parent;
        COPY(now->name, place.name);
        COPY(now->local_name, place.local_name);
    }
    return true;
}

static bool apply_up(struct drive_world *world, const struct tide_drive_action *action)
{
    struct drive_item *online = drive_find(&world->online, action->item);
    const struct drive_item *here = drive_find(&world->here, action->row);
    struct drive_record *found = drive_record_of(world, action->item);
    if (online == NULL || here == NULL)
        return false;
    online->content = here->content;
    world->uploads++;
    if (found == NULL || action->was_item != 0) {
        record(world, action->item, action->row, action->was_item);
        return true;
    }
    found->content = here->content;
    found->birth = here->birth;
    found->row = action->row;
    return true;
}

static bool apply_delete(struct drive_world *world, struct drive_side *side, uint64_t id,
                         const struct tide_drive_action *action)
{
    struct drive_item *item = drive_find(side, id);
    const struct drive_record *base = drive_record_of(world, action->item);
    if (item == NULL || base == NULL)
        return false;
    for (size_t i = 0; i < side->count; i++) /* S18: never recursive */
        if (side->items[i].alive && side->items[i].parent == id)
            return false;
    if (item->kind == TIDE_DRIVE_FILE && item->content != base->content)
        return false; /* S4 */
    item->alive = false;
    world->deletions++;
    forget(world, action->item);
    return true;
}

bool drive_apply(struct drive_world *world, const struct tide_drive_action *action)
{
    char name[DRIVE_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%.*s", (int)action->name.bytes, action->name.data);
    const uint64_t parent_item =
        action->parent_item != 0 ? action->parent_item : item_of_row(world, action->parent_row);
    const uint64_t parent_row =
        action->parent_row != 0 ? action->parent_row : row_of_item(world, action->parent_item);
    switch (action->verb) {
    case TIDE_DRIVE_UP:
        return apply_up(world, action);
    case TIDE_DRIVE_NEW:
    case TIDE_DRIVE_MKDIR_REMOTE:
        return parent_item != 0 && apply_new(world, action, parent_item, name);
    case TIDE_DRIVE_DOWN:
    case TIDE_DRIVE_MKDIR_LOCAL:
        return parent_row != 0 && apply_down(world, action, parent_row, name);
    case TIDE_DRIVE_MOVE_REMOTE:
        return apply_move(world, &world->online, action->item, parent_item, action, name);
    case TIDE_DRIVE_MOVE_LOCAL:
        return apply_move(world, &world->here, action->row, parent_row, action, name);
    case TIDE_DRIVE_DEL_REMOTE:
        return apply_delete(world, &world->online, action->item, action);
    case TIDE_DRIVE_DEL_LOCAL:
        return apply_delete(world, &world->here, action->row, action);
    case TIDE_DRIVE_BASE:
        if (drive_find(&world->online, action->item) == NULL ||
            drive_find(&world->here, action->row) == NULL)
            return false;
        record(world, action->item, action->row, action->was_item);
        return true;
    case TIDE_DRIVE_DROP:
        forget(world, action->item);
        return true;
    }
    return false;
}

size_t drive_run(struct drive_world *world, const struct tide_drive_plan *plan, tide_rng *rng,
                 size_t most)
{
    uint32_t *waits = calloc(plan->actions_count + 1, sizeof *waits);
    size_t done = 0;
    must(waits != NULL);
    for (size_t i = 0; i < plan->edges_count; i++)
        waits[plan->edges[i].after]++;
    while (done < most) {
        uint32_t pick = UINT32_MAX;
        uint64_t seen = 0;
        for (uint32_t i = 0; i < plan->actions_count; i++)
            if (waits[i] == 0 && plan->actions[i].state == TIDE_DRIVE_READY &&
                tide_rng_chance(rng, 1, ++seen))
                pick = i;
        if (pick == UINT32_MAX)
            break;
        (void)drive_apply(world, &plan->actions[pick]);
        done++;
        waits[pick] = UINT32_MAX;
        for (size_t i = 0; i < plan->edges_count; i++)
            if (plan->edges[i].before == pick)
                waits[plan->edges[i].after]--;
    }
    free(waits);
    return done;
}

unsigned drive_sync(struct drive_world *world, tide_rng *rng)
{
    for (unsigned round = 1; round < 12; round++) {
        const struct tide_drive_plan_options options = drive_options(world);
        struct tide_drive_plan plan;
        must(tide_drive_plan(drive_rows(world), &options, tide_mem_heap(), &plan, NULL) == TIDE_OK);
        const size_t count = plan.actions_count;
        (void)drive_run(world, &plan, rng, SIZE_MAX);
        tide_drive_plan_done(&plan);
        if (count == 0)
            return round;
    }
    return 0;
}

/* ---- checks ---- */

static const char *compare_at(struct drive_world *world, uint64_t item, uint64_t row)
{
    static char text[256];
    for (size_t i = 0; i < world->online.count; i++) {
        const struct drive_item *online = &world->online.items[i];
        if (!online->alive || online->parent != item)
            continue;
        const struct drive_item *here = drive_child(&world->here, row, online->name);
        const struct drive_record *base = drive_record_of(world, online->id);
        (void)snprintf(text, sizeof text, "item %" PRIu64 " (%s)", online->id, online->name);
        if (here == NULL || here->kind != online->kind || here->content != online->content ||
            online->stepped || base == NULL || base->content != online->content ||
            base->parent != item)
            return text;
        const char *beneath =
            online->kind == TIDE_DRIVE_FOLDER ? compare_at(world, online->id, here->id) : NULL;
        if (beneath != NULL)
            return beneath;
    }
    for (size_t i = 0; i < world->here.count; i++) {
        const struct drive_item *here = &world->here.items[i];
        (void)snprintf(text, sizeof text, "row %" PRIu64 " (%s)", here->id, here->name);
        if (here->alive && here->parent == row &&
            (here->stepped || drive_child(&world->online, item, here->name) == NULL))
            return text;
    }
    return NULL;
}

const char *drive_differs(struct drive_world *world)
{
    static char text[64];
    for (size_t i = 0; i < world->records_count; i++)
        if (world->records[i].alive && drive_find(&world->online, world->records[i].item) == NULL) {
            (void)snprintf(text, sizeof text, "baseline of %" PRIu64, world->records[i].item);
            return text;
        }
    return compare_at(world, TIDE_DRIVE_ROOT, TIDE_DRIVE_ROOT);
}

bool drive_has_content(const struct drive_side *side, uint64_t content)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->items[i].alive && side->items[i].content == content)
            return true;
    return false;
}

void drive_print(struct drive_world *world, const struct tide_drive_plan *plan)
{
    const struct drive_side *sides[] = {&world->online, &world->here};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < sides[s]->count; i++)
            if (sides[s]->items[i].alive)
                fprintf(stderr, "%s %" PRIu64 " in %" PRIu64 " %s%s = %" PRIu64 "%s\n",
                        s == 0 ? "online" : "here", sides[s]->items[i].id,
                        sides[s]->items[i].parent, sides[s]->items[i].name,
                        sides[s]->items[i].kind == TIDE_DRIVE_FOLDER ? "/" : "",
                        sides[s]->items[i].content, sides[s]->items[i].stepped ? " aside" : "");
    for (size_t i = 0; i < world->records_count; i++)
        if (world->records[i].alive)
            fprintf(stderr, "base %" PRIu64 " in %" PRIu64 " %s row %" PRIu64 " = %" PRIu64 "\n",
                    world->records[i].item, world->records[i].parent, world->records[i].name,
                    world->records[i].row, world->records[i].content);
    for (size_t i = 0; plan != NULL && i < plan->actions_count; i++) {
        const struct tide_drive_action *a = &plan->actions[i];
        fprintf(stderr,
                "%zu: %s item %" PRIu64 " row %" PRIu64 " -> %" PRIu64 "/%" PRIu64
                " %.*s k%d state %d%s\n",
                i, tide_drive_verb_name(a->verb), a->item, a->row, a->parent_item, a->parent_row,
                (int)a->name.bytes, a->name.data, (int)a->notice, (int)a->state,
                a->step_aside ? " aside" : "");
    }
    for (size_t i = 0; plan != NULL && i < plan->edges_count; i++)
        fprintf(stderr, "%u before %u\n", plan->edges[i].before, plan->edges[i].after);
}
