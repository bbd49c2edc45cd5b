/* drive_model_test.c - the planner against a model that is slow and obvious (D17, D18, D19).
 *
 * Goal: in random worlds the plan is the one that the tables of the spec give.
 * Method: a synced tree; two users edit, delete, move and add in it, every new name only once, so that no
 * two items want one place; folders are moved by one of the two users only.  Then each item's cell
 * is looked up in a table of words, and the words of all items are the plan, without its order.  A
 * folder that one side lacks lives if something in it does. */
#include "support/drive/world.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/test.h"

enum { WORDS_MAX = 1024, WORD_BYTES = 160, ACTS = 12, ITEMS = 14 };

/* ---- the table ---- */

enum change { A, S, C, M, MC, CHANGES };

/* Of files; rows local, columns remote.  "=": equal bytes are recorded, others become a copy. */
static const char *const cells[CHANGES][CHANGES] = {
    /*       A       S          C          M         MC */
    [A] = {"drop", "delR", "down", "down", "down"},
    [S] = {"delL", "", "down", "mvL", "mvL down"},
    [C] = {"new", "up", "=", "mvL up", "mvL ="},
    [M] = {"new", "mvR", "mvR down", "mvL", "mvL down"},
    [MC] = {"new", "mvR up", "mvR =", "mvL up", "mvL ="},
};

static const char *word_of(tide_drive_verb verb)
{
    static const char *const words[] = {
        [TIDE_DRIVE_UP] = "up",           [TIDE_DRIVE_NEW] = "new",
        [TIDE_DRIVE_DOWN] = "down",       [TIDE_DRIVE_MKDIR_REMOTE] = "mkR",
        [TIDE_DRIVE_MKDIR_LOCAL] = "mkL", [TIDE_DRIVE_MOVE_REMOTE] = "mvR",
        [TIDE_DRIVE_MOVE_LOCAL] = "mvL",  [TIDE_DRIVE_DEL_REMOTE] = "delR",
        [TIDE_DRIVE_DEL_LOCAL] = "delL",  [TIDE_DRIVE_BASE] = "base",
        [TIDE_DRIVE_DROP] = "drop"};
    return words[verb];
}

struct words {
    char text[WORDS_MAX][WORD_BYTES];
    size_t count;
};

static void say(struct words *words, const char *word, uint64_t item, uint64_t row,
                const char *name)
{
    assert_true(words->count < WORDS_MAX);
    const uint64_t key = item != 0 ? item : row;
    (void)snprintf(words->text[words->count++], WORD_BYTES, "%s %s%" PRIu64 " %s", word,
                   item != 0 ? "item " : "row ", key, name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* ---- the model ---- */

struct node {
    struct drive_record *base;        /* NULL */
    struct drive_item *online, *here; /* NULL */
    bool moved_r, moved_l, changed_r, changed_l;
};

struct model {
    struct drive_world *world;
    struct node nodes[1024];
    size_t count;
    struct words words;
};

static struct drive_item *here_of(struct drive_world *world, const struct drive_record *base)
{
    for (size_t i = 0; i < world->here.count; i++)
        if (world->here.items[i].alive && world->here.items[i].birth == base->birth)
            return &world->here.items[i];
    return NULL;
}

/* The number of the node that is the folder; -1: the root. */
static int folder_at(const struct model *model, uint64_t id, bool online)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct drive_item *item = online ? model->nodes[i].online : model->nodes[i].here;
        if (item != NULL && item->id == id)
            return (int)i;
    }
    return -1;
}

static int base_folder(const struct model *model, const struct node *node)
{
    for (size_t i = 0; i < model->count; i++)
        if (model->nodes[i].base != NULL && model->nodes[i].base->item == node->base->parent)
            return (int)i;
    return -1;
}

static bool is_known(struct drive_world *world, const struct drive_item *item, bool online)
{
    for (size_t i = 0; i < world->records_count; i++)
        if (world->records[i].alive &&
            (online ? world->records[i].item == item->id : world->records[i].birth == item->birth))
            return true;
    return false;
}

static void gather(struct model *model)
{
    struct drive_world *world = model->world;
    for (size_t i = 0; i < world->records_count; i++)
        if (world->records[i].alive)
            model->nodes[model->count++] =
                (struct node){.base = &world->records[i],
                              .online = drive_find(&world->online, world->records[i].item),
                              .here = here_of(world, &world->records[i])};
    for (size_t i = 0; i < world->online.count; i++)
        if (world->online.items[i].alive && !is_known(world, &world->online.items[i], true))
            model->nodes[model->count++] = (struct node){.online = &world->online.items[i]};
    for (size_t i = 0; i < world->here.count; i++)
        if (world->here.items[i].alive && !is_known(world, &world->here.items[i], false))
            model->nodes[model->count++] = (struct node){.here = &world->here.items[i]};
    for (size_t i = 0; i < model->count; i++) {
        struct node *node = &model->nodes[i];
        if (node->base == NULL)
            continue;
        const int was = base_folder(model, node);
        if (node->online != NULL) {
            node->changed_r = node->online->content != node->base->content;
            node->moved_r = folder_at(model, node->online->parent, true) != was ||
                            strcmp(node->online->name, node->base->name) != 0;
        }
        if (node->here != NULL) {
            node->changed_l = node->here->content != node->base->content;
            node->moved_l = folder_at(model, node->here->parent, false) != was ||
                            strcmp(node->here->name, node->base->local_name) != 0;
        }
    }
}

static bool is_folder(const struct node *node)
{
    return (node->online != NULL ? node->online->kind
            : node->here != NULL ? node->here->kind
                                 : node->base->kind) == TIDE_DRIVE_FOLDER;
}

static enum change change_of(const struct drive_item *item, bool moved, bool changed)
{
    if (item == NULL)
        return A;
    return moved ? (changed ? MC : M) : changed ? C : S;
}

/* Whose place it has in the end: online if it was moved there, or is only there. */
static bool online_place(const struct node *node)
{
    return node->online != NULL && (node->here == NULL || node->moved_r || !node->moved_l);
}

static int target_of(const struct model *model, const struct node *node)
{
    return online_place(node) ? folder_at(model, node->online->parent, true)
                              : folder_at(model, node->here->parent, false);
}

static const char *name_of(const struct node *node)
{
    if (node->online == NULL && node->here == NULL)
        return node->base->name;
    return online_place(node) ? node->online->name : node->here->name;
}

static bool lives(const struct model *model, size_t at)
{
    const struct node *node = &model->nodes[at];
    if (node->online == NULL && node->here == NULL)
        return false;
    if (node->base == NULL || (node->online != NULL && node->here != NULL))
        return true;
    if (!is_folder(node))
        return node->changed_r || node->changed_l || node->moved_r || node->moved_l;
    for (size_t i = 0; i < model->count; i++)
        if ((model->nodes[i].online != NULL || model->nodes[i].here != NULL) &&
            target_of(model, &model->nodes[i]) == (int)at && lives(model, i))
            return true;
    return false;
}

static void say_both(struct model *model, const struct node *node)
{
    const uint64_t item = node->online->id, row = node->here->id;
    if (node->online->content == node->here->content) {
        say(&model->words, "base", item, row, name_of(node));
        return;
    }
    say(&model->words, "mvL", 0, row, "*");
    say(&model->words, "new", 0, row, "*");
    say(&model->words, "down", item, 0, name_of(node));
}

static void say_file(struct model *model, const struct node *node)
{
    const uint64_t item = node->base->item, row = node->here == NULL ? 0 : node->here->id;
    char cell[32], *rest = NULL;
    const enum change here = change_of(node->here, node->moved_l, node->changed_l);
    const enum change online = change_of(node->online, node->moved_r, node->changed_r);
    const bool copies = (here == C || here == MC) && (online == C || online == MC) &&
                        node->online->content != node->here->content;
    (void)snprintf(cell, sizeof cell, "%s", cells[here][online]);
    for (char *word = strtok_r(cell, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "=") == 0)
            say_both(model, node);
        else if (!(copies && strcmp(word, "mvL") == 0)) /* the copy is made where it is to be */
            say(&model->words, word, item, row, strcmp(word, "drop") == 0 ? "" : name_of(node));
    }
}

static void say_folder(struct model *model, size_t at)
{
    const struct node *node = &model->nodes[at];
    const uint64_t item = node->base->item;
    const bool alive = lives(model, at);
    if (node->online == NULL && node->here == NULL)
        say(&model->words, "drop", item, 0, "");
    else if (node->here == NULL)
        say(&model->words, alive ? "mkL" : "delR", item, 0, name_of(node));
    else if (node->online == NULL)
        say(&model->words, alive ? "mkR" : "delL", item, 0, name_of(node));
    else if (node->moved_r)
        say(&model->words, "mvL", item, 0, name_of(node));
    else if (node->moved_l)
        say(&model->words, "mvR", item, 0, name_of(node));
}

static void say_all(struct model *model)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct node *node = &model->nodes[i];
        const bool folder = is_folder(node);
        if (node->base != NULL && folder)
            say_folder(model, i);
        else if (node->base != NULL)
            say_file(model, node);
        else if (node->online != NULL)
            say(&model->words, folder ? "mkL" : "down", node->online->id, 0, name_of(node));
        else
            say(&model->words, folder ? "mkR" : "new", 0, node->here->id, name_of(node));
    }
}

/* ---- worlds ---- */

static uint64_t any(struct drive_side *side, tide_rng *rng, bool folder)
{
    uint64_t found = folder ? TIDE_DRIVE_ROOT : 0, seen = folder ? 1 : 0;
    for (size_t i = 0; i < side->count; i++)
        if (side->items[i].alive && (!folder || side->items[i].kind == TIDE_DRIVE_FOLDER) &&
            tide_rng_chance(rng, 1, ++seen))
            found = side->items[i].id;
    return found;
}

static void act(struct drive_world *world, struct drive_side *side, tide_rng *rng, bool may_move)
{
    const uint64_t id = any(side, rng, false), folder = any(side, rng, true);
    const char *name = textf("n%" PRIu64, world->next_id);
    struct drive_item *item = drive_find(side, id);
    switch (tide_rng_below(rng, 6)) {
    case 0:
        (void)drive_add(world, side, folder, name, TIDE_DRIVE_FILE, world->next_content++);
        return;
    case 1:
        (void)drive_add(world, side, folder, name, TIDE_DRIVE_FOLDER, 0);
        return;
    case 2:
        drive_delete(side, id);
        return;
    case 3:
        if (item != NULL && item->kind == TIDE_DRIVE_FILE)
            item->content = tide_rng_chance(rng, 1, 4) ? 7 : world->next_content++;
        return;
    default:
        world->next_id++; /* so that the name is used once */
        if (item != NULL && item->kind == TIDE_DRIVE_FILE)
            (void)drive_move(side, id, folder, name);
        else if (item != NULL && may_move) /* into what was beneath it: place.c undoes that (D24) */
            (void)drive_move(side, id, side == &world->here ? TIDE_DRIVE_ROOT : folder, name);
        return;
    }
}

static struct drive_world *random_world(tide_rng *rng)
{
    struct drive_world *world = drive_world_new();
    world->next_content = 100;
    for (int i = 0; i < ITEMS; i++)
        (void)drive_add(world, &world->online, any(&world->online, rng, true), textf("s%d", i),
                        tide_rng_chance(rng, 1, 3) ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
                        world->next_content++);
    assert_true(drive_sync(world, rng) > 0);
    const bool online_moves = tide_rng_chance(rng, 1, 2);
    for (int i = 0; i < ACTS; i++) {
        const bool online = tide_rng_chance(rng, 1, 2);
        act(world, online ? &world->online : &world->here, rng, online == online_moves);
    }
    return world;
}

static void listen(const struct tide_drive_plan *plan, struct words *words)
{
    for (size_t i = 0; i < plan->actions_count; i++) {
        const struct tide_drive_action *action = &plan->actions[i];
        const bool copy = action->copy_of != 0;
        assert_int_equal(action->state, TIDE_DRIVE_READY);
        assert_false(action->step_aside); /* no two items want one place */
        say(words, word_of(action->verb), action->item, action->row,
            copy ? "*" : textf("%.*s", (int)action->name.bytes, action->name.data));
    }
}

static void print_both(struct drive_world *world, const struct tide_drive_plan *plan,
                       const struct words *expected, const struct words *got)
{
    drive_print(world, plan);
    for (size_t i = 0; i < expected->count; i++)
        print_error("expected %s\n", expected->text[i]);
    for (size_t i = 0; i < got->count; i++)
        print_error("planned  %s\n", got->text[i]);
}

TEST(random_worlds_are_planned_as_the_tables_say)
{
    static struct model model;
    static struct words got;
    uint64_t words = 0;
    for (uint64_t seed = 1; seed <= scaled(3000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        struct drive_world *world = random_world(&rng);
        const struct tide_drive_plan_options options = drive_options(world);
        struct tide_drive_plan plan;
        OK(tide_drive_plan(drive_rows(world), &options, tide_mem_heap(), &plan, NULL));
        model = (struct model){.world = world};
        got.count = 0;
        gather(&model);
        say_all(&model);
        listen(&plan, &got);
        qsort(model.words.text, model.words.count, WORD_BYTES, by_text);
        qsort(got.text, got.count, WORD_BYTES, by_text);
        bool same = model.words.count == got.count;
        for (size_t i = 0; i < got.count && same; i++)
            same = strcmp(model.words.text[i], got.text[i]) == 0;
        if (!same) {
            print_both(world, &plan, &model.words, &got);
            fail_msg("seed %" PRIu64 ": another plan than the tables give", seed);
        }
        words += got.count;
        tide_drive_plan_done(&plan);
        drive_world_free(world);
    }
    assert_true(words > scaled(3000)); /* worlds in which something is to be done */
}
