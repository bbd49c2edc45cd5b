/* rules.c - the rules of drive_sim.h that are checked on a plan, and on a world at rest. */
#include "drive_sim.h"

#include "base/hash.h"
#include "drive/names/conflict.h"
#include "drive/names/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t drive_side_hash(const struct drive_side *side)
{
    uint64_t hash = TIDE_HASH_START;
    for (size_t i = 0; i < side->count; i++) {
        const struct drive_item *item = &side->items[i];
        const uint64_t numbers[] = {item->id, item->parent, item->content, item->alive};
        hash = tide_hash(hash, (tide_text){(const char *)numbers, sizeof numbers});
        hash = tide_hash(hash, tide_text_of(item->name));
    }
    return hash;
}

/* ---- plans ---- */

static bool waits_for(const struct tide_drive_plan *plan, uint8_t *seen, uint32_t after,
                      uint32_t before)
{
    if (after == before)
        return true;
    seen[after] = 1;
    for (size_t i = 0; i < plan->edges_count; i++)
        if (plan->edges[i].after == after && seen[plan->edges[i].before] == 0 &&
            waits_for(plan, seen, plan->edges[i].before, before))
            return true;
    return false;
}

static bool in_order(const struct tide_drive_plan *plan, uint32_t a, uint32_t b)
{
    uint8_t *seen = calloc(plan->actions_count, 1);
    bool ordered = waits_for(plan, seen, a, b);
    memset(seen, 0, plan->actions_count);
    ordered = ordered || waits_for(plan, seen, b, a);
    free(seen);
    return ordered;
}

/* Gives an item a name on a side. */
static bool takes_name(const struct tide_drive_action *action, bool online)
{
    switch (action->verb) {
    case TIDE_DRIVE_NEW:
    case TIDE_DRIVE_MKDIR_REMOTE:
    case TIDE_DRIVE_MOVE_REMOTE:
        return online && !action->step_aside;
    case TIDE_DRIVE_DOWN:
    case TIDE_DRIVE_MKDIR_LOCAL:
        return !online && action->row == 0;
    case TIDE_DRIVE_MOVE_LOCAL:
        return !online && !action->step_aside;
    default:
        return false;
    }
}

static bool one_place(const struct tide_drive_action *a, const struct tide_drive_action *b)
{
    tide_auto_buf one = tide_buf_heap(4096), two = tide_buf_heap(4096);
    if (a->parent_item != b->parent_item || a->parent_row != b->parent_row ||
        (a->parent_item == 0 && a->parent_row == 0))
        return false;
    return tide_drive_key_add(&one, a->name) == TIDE_OK &&
           tide_drive_key_add(&two, b->name) == TIDE_OK &&
           tide_text_equal(tide_buf_text(&one), tide_buf_text(&two));
}

static const char *of_one(const struct tide_drive_action *a, const struct tide_drive_action *b)
{
    if (a->item != 0 && a->item == b->item)
        return "item";
    if (a->row != 0 && a->row == b->row)
        return "row";
    for (int online = 0; online < 2; online++)
        if (takes_name(a, online == 1) && takes_name(b, online == 1) && one_place(a, b))
            return "name";
    return NULL;
}

void drive_check_plan(struct drive_stage *stage, const struct tide_drive_plan *plan)
{
    for (uint32_t i = 0; i < plan->actions_count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const struct tide_drive_action *a = &plan->actions[i], *b = &plan->actions[k];
            const char *one = of_one(a, b);
            if (one == NULL || a->state != TIDE_DRIVE_READY || b->state != TIDE_DRIVE_READY)
                continue;
            if (!in_order(plan, i, k)) {
                drive_explain(stage, plan);
                tide_sim_fail(stage->sim, "DRI10: %s and %s of one %s (%.*s) at a time",
                              tide_drive_verb_name(a->verb), tide_drive_verb_name(b->verb), one,
                              (int)a->name.bytes, a->name.data);
            }
        }
}

/* ---- at rest ---- */

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
void drive_explain(struct drive_stage *stage, const struct tide_drive_plan *plan)
{
    char base[] = "base: item, id, parent, name, row |",
         here[] = "local: row, parent, name, state |",
         online[] = "remote: item, id, parent, name, state |";
    sqlite3 *db = stage->db.handle;
    drive_print(stage->world, plan);
    (void)sqlite3_exec(
        db,
        "SELECT b.item, i.id, b.parent, CAST(b.name AS TEXT), b.row FROM drive_1_base b"
        " JOIN drive_1_item i ON i.item = b.item",
        print_row, base, NULL);
    (void)sqlite3_exec(db,
                       "SELECT row, parent, CAST(name AS TEXT), state, gone_ms, CAST(aside AS TEXT)"
                       " FROM drive_1_local",
                       print_row, here, NULL);
    (void)sqlite3_exec(db,
                       "SELECT r.item, i.id, parent, CAST(name AS TEXT), state, CAST(aside AS TEXT)"
                       " FROM drive_1_remote r JOIN drive_1_item i ON i.item = r.item",
                       print_row, online, NULL);
}

/* The file online is the one here, or what the server made of it. */
static bool same_content(const struct drive_stage *stage, const struct drive_item *online,
                         const struct drive_item *here)
{
    return online->content == here->content || stage->rewritten[online->content] == here->content;
}

static bool is_online(const struct drive_stage *stage, uint64_t content)
{
    const struct drive_side *online = &stage->world->online;
    for (size_t i = 0; i < online->count; i++)
        if (online->items[i].alive && online->items[i].kind == TIDE_DRIVE_FILE &&
            (online->items[i].content == content ||
             stage->rewritten[online->items[i].content] == content))
            return true;
    return false;
}

static void check_content(struct drive_stage *stage)
{
    struct drive_world *world = stage->world;
    for (uint64_t c = 1; c < world->next_content && c < DRIVE_CONTENTS_MAX; c++) {
        const bool online = is_online(stage, c), here = drive_has_content(&world->here, c);
        if (stage->made[c] && !stage->replaced[c] && (!online || !here))
            tide_sim_fail(stage->sim, "DRI1: content %" PRIu64 " is lost (%s online, %s here)", c,
                          online ? "is" : "not", here ? "is" : "not");
    }
}

/* What differs; content that never arrives does not count. */
static const char *differs_at(struct drive_stage *stage, uint64_t item, uint64_t row)
{
    static char text[200];
    struct drive_world *world = stage->world;
    for (size_t i = 0; i < world->online.count; i++) {
        const struct drive_item *online = &world->online.items[i];
        if (!online->alive || online->parent != item ||
            (stage->bad != 0 && online->content == stage->bad))
            continue;
        const struct drive_item *here = drive_child(&world->here, row, online->name);
        (void)snprintf(text, sizeof text, "%s online", online->name);
        if (here == NULL || here->kind != online->kind ||
            (online->kind == TIDE_DRIVE_FILE && !same_content(stage, online, here)))
            return text;
        const char *below =
            online->kind == TIDE_DRIVE_FOLDER ? differs_at(stage, online->id, here->id) : NULL;
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

void drive_check_but_bad(struct drive_stage *stage)
{
    const char *differs = differs_at(stage, TIDE_DRIVE_ROOT, TIDE_DRIVE_ROOT);
    if (differs == NULL)
        return;
    drive_explain(stage, NULL);
    tide_sim_fail(stage->sim, "DRI13: one item fails, and the trees differ: %s", differs);
}

void drive_check_rest(struct drive_stage *stage)
{
    const uint64_t owed = drive_ask(stage, "SELECT count(*) + ?1 FROM drive_@_owed", 0);
    if (owed > 0)
        tide_sim_fail(stage->sim, "DRI13: %" PRIu64 " items are owed, and nothing is to be done",
                      owed);
    if (getenv("TIDE_SIM_EXPLAIN") != NULL)
        drive_explain(stage, NULL);
    check_names(stage);
    check_content(stage);
    const char *differs = differs_at(stage, TIDE_DRIVE_ROOT, TIDE_DRIVE_ROOT);
    if (differs != NULL) {
        drive_explain(stage, NULL);
        tide_sim_fail(stage->sim, "DRI2: the trees differ: %s", differs);
    }
    uint64_t bases = 0, alive = 0;
    (void)tide_rows_number(drive_db(stage), "sim", &bases, NULL,
                           "SELECT count(*) FROM drive_@_base");
    for (size_t i = 0; i < stage->world->online.count; i++)
        alive += stage->world->online.items[i].alive;
    if (bases != alive) {
        drive_explain(stage, NULL);
        tide_sim_fail(stage->sim, "DRI3: %" PRIu64 " recorded, %" PRIu64 " there", bases, alive);
    }
}
