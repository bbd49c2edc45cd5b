/* drive_matrix_test.c - the tables of decisions, one row for each cell (D17 to D20).
 *
 * Goal: for every pair of a local and a remote change the plan has exactly the actions of its cell,
 * in every mode, with the notice that the user sees.
 * Method: one file or folder with a baseline; each side is brought into its state by what a user
 * would do; the plan is written as a sorted list of verbs.  Where the spec says "+" the order is
 * checked as an edge.  The same table is the model for random worlds of many files. */
#include "support/drive/world.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/test.h"

enum state { A, S, C, T, M, MC, STATES };
static const char *const state_names[] = {"A", "S", "C", "T", "M", "MC"};

static const char *const verbs[] = {"up",  "new",  "down", "mkR",  "mkL", "mvR",
                                    "mvL", "delR", "delL", "base", "drop"};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "down mvLk1 newk1": verbs with their notices, sorted. */
static void describe(const struct tide_drive_plan *plan, bool ready_only, tide_buf *out)
{
    const char *words[4096];
    size_t count = 0;
    for (size_t i = 0; i < plan->actions_count; i++) {
        const struct tide_drive_action *action = &plan->actions[i];
        if (ready_only && action->state != TIDE_DRIVE_READY)
            continue;
        char *word = malloc(32);
        (void)snprintf(word, 32, "%s", verbs[action->verb]);
        if (action->notice != TIDE_DRIVE_QUIET)
            (void)snprintf(word + strlen(word), 8, "k%d", (int)action->notice);
        words[count++] = word;
        assert_true(count < 4096);
    }
    qsort(words, count, sizeof words[0], by_text);
    tide_buf_clear(out);
    for (size_t i = 0; i < count; i++) {
        OK(tide_buf_print(out, "%s%s", i > 0 ? " " : "", words[i]));
        free((char *)(uintptr_t)words[i]);
    }
}

static void plan_of(struct drive_world *world, tide_drive_mode mode, struct tide_drive_plan *plan)
{
    struct tide_drive_plan_options options = drive_options(world);
    options.mode = mode;
    OK(tide_drive_plan(drive_rows(world), &options, tide_mem_heap(), plan, NULL));
}

static void expect(struct drive_world *world, tide_drive_mode mode, const char *cell,
                   const char *wanted)
{
    struct tide_drive_plan plan;
    tide_auto_buf text = tide_buf_heap(65536);
    plan_of(world, mode, &plan);
    describe(&plan, mode != TIDE_DRIVE_TWO_WAY, &text);
    if (strcmp(tide_buf_cstr(&text), wanted) != 0) {
        drive_print(world, &plan);
        fail_msg("%s: \"%s\" instead of \"%s\"", cell, tide_buf_cstr(&text), wanted);
    }
    tide_drive_plan_done(&plan);
}

/* ---- one item on two sides ---- */

struct stage {
    struct drive_world *world;
    uint64_t item, row;               /* the subject */
    uint64_t folder_item, folder_row; /* "d", where moved ones go */
};

/* A file "f" (or a folder "f" with a file "x"), and a folder "d", on both sides and in the baseline. */
static struct stage stage_new(tide_drive_kind kind)
{
    struct stage stage = {.world = drive_world_new()};
    struct drive_world *world = stage.world;
    tide_rng rng = tide_rng_seeded(1);
    stage.folder_item =
        drive_add(world, &world->online, TIDE_DRIVE_ROOT, "d", TIDE_DRIVE_FOLDER, 0)->id;
    stage.item =
        drive_add(world, &world->online, TIDE_DRIVE_ROOT, "f", kind, world->next_content++)->id;
    if (kind == TIDE_DRIVE_FOLDER)
        (void)drive_add(world, &world->online, stage.item, "x", TIDE_DRIVE_FILE,
                        world->next_content++);
    assert_true(drive_sync(world, &rng) > 0);
    stage.row = drive_record_of(world, stage.item)->row;
    stage.folder_row = drive_record_of(world, stage.folder_item)->row;
    return stage;
}

static void bring(struct stage *stage, bool online, enum state state, bool alike)
{
    struct drive_world *world = stage->world;
    struct drive_side *side = online ? &world->online : &world->here;
    const uint64_t id = online ? stage->item : stage->row;
    const uint64_t folder = online ? stage->folder_item : stage->folder_row;
    const tide_drive_kind kind = drive_find(side, id)->kind;
    switch (state) {
    case A:
    case T:
        drive_delete(side, id);
        if (state == T)
            (void)drive_add(world, side, TIDE_DRIVE_ROOT, "f",
                            kind == TIDE_DRIVE_FILE ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
                            alike ? 1000 : world->next_content++);
        break;
    case MC:
    case M:
        assert_true(drive_move(side, id, folder, alike ? "m" : online ? "r" : "l"));
        if (state == M)
            break;
        /* fall through */
    case C:
        drive_edit(world, side, id, true);
        if (alike)
            drive_find(side, id)->content = 1000;
        if (!online && state == MC) /* a move and an edit are two acts: the file is itself */
            drive_find(side, id)->birth = drive_record_of(world, stage->item)->birth;
        break;
    case S:
    case STATES:
        break;
    }
}

struct cell {
    enum state here, online;
    bool alike;
    const char *two_way, *download, *upload; /* NULL: not in the table of modes */
};

static void check_cells(tide_drive_kind kind, const struct cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct stage stage = stage_new(kind);
        const char *name = textf("%s,%s%s", state_names[cells[i].here],
                                 state_names[cells[i].online], cells[i].alike ? " alike" : "");
        bring(&stage, false, cells[i].here, cells[i].alike);
        bring(&stage, true, cells[i].online, cells[i].alike);
        expect(stage.world, TIDE_DRIVE_TWO_WAY, name, cells[i].two_way);
        if (cells[i].download != NULL)
            expect(stage.world, TIDE_DRIVE_DOWNLOAD_ONLY, textf("%s down", name),
                   cells[i].download);
        if (cells[i].upload != NULL)
            expect(stage.world, TIDE_DRIVE_UPLOAD_ONLY, textf("%s up", name), cells[i].upload);
        /* Whatever the cell, carrying it out ends in one tree. */
        tide_rng rng = tide_rng_seeded(i);
        if (drive_sync(stage.world, &rng) == 0 || drive_differs(stage.world) != NULL)
            fail_msg("%s does not converge", name);
        drive_world_free(stage.world);
    }
}

/* D17 and D20. */
static const struct cell files[] = {
    {A, A, false, "drop", NULL, NULL},
    {A, S, false, "delR", "", "delR"},
    {A, C, false, "downk3", "downk3", ""},
    {A, T, false, "drop mkL", NULL, NULL},
    {A, M, false, "downk5", NULL, NULL},
    {A, MC, false, "downk3", NULL, NULL},
    {S, A, false, "delL", "delL", ""},
    {S, S, false, "", "", ""},
    {S, C, false, "down", "down", ""},
    {S, T, false, "delL mkL", NULL, NULL},
    {S, M, false, "mvL", "mvL", ""},
    {S, MC, false, "down mvL", NULL, NULL},
    {C, A, false, "newk3", "", "newk3"},
    {C, S, false, "up", "", "up"},
    {C, C, true, "base", NULL, NULL},
    {C, C, false, "down mvLk1 newk1", "down mvLk1", ""},
    {C, T, false, "mkL mvLk6 newk6", "mkL mvLk6", ""},
    {C, M, false, "mvL up", "mvL", "up"},
    {C, MC, false, "down mvLk1 newk1", NULL, NULL},
    {T, A, false, "drop mkR", NULL, NULL},
    {T, S, false, "delR mkR", NULL, NULL},
    {T, C, false, "downk6 mkR mvRk6", "", "mkR mvRk6"},
    {T, T, false, "base drop", NULL, NULL},
    {T, M, false, "downk5 mkR", NULL, NULL},
    {T, MC, false, "downk3 mkR", NULL, NULL},
    {M, A, false, "newk4", "", "newk4"},
    {M, S, false, "mvR", "", "mvR"},
    {M, C, false, "down mvR", "down", "mvR"},
    {M, T, false, "mkL newk4", NULL, NULL},
    {M, M, true, "base", NULL, NULL},
    {M, M, false, "mvLk7", "mvLk7", ""},
    {M, MC, false, "downk7 mvLk7", NULL, NULL},
    {MC, A, false, "newk3", NULL, NULL},
    {MC, S, false, "mvR up", NULL, NULL},
    {MC, C, false, "down mvLk1 mvR newk1", NULL, NULL},
    {MC, T, false, "mkL newk3", NULL, NULL},
    {MC, M, false, "mvLk7 upk7", NULL, NULL},
    {MC, MC, false, "downk7 mvLk1 newk1", NULL, NULL},
    {MC, MC, true, "base", NULL, NULL},
};

TEST(every_cell_of_files)
{
    check_cells(TIDE_DRIVE_FILE, files, sizeof files / sizeof files[0]);
}

/* D18; each folder has a file, which has a cell of its own. */
static const struct cell folders[] = {
    {A, A, false, "drop drop", NULL, NULL},
    {A, S, false, "delR delR", "", "delR delR"},
    {A, T, false, "down drop drop", NULL, NULL},
    {A, M, false, "delR delR", NULL, NULL},
    {S, A, false, "delL delL", "delL delL", ""},
    {S, S, false, "", "", ""},
    {S, T, false, "delL delL down", NULL, NULL},
    {S, M, false, "mvL", "mvL", ""},
    {T, A, false, "drop drop new", NULL, NULL},
    {T, S, false, "delR delR new", NULL, NULL},
    {T, T, false, "down drop drop mvLk2 newk2", NULL, NULL},
    {T, T, true, "base drop drop", NULL, NULL},
    {T, M, false, "delR delR new", NULL, NULL},
    {M, A, false, "delL delL", NULL, NULL},
    {M, S, false, "mvR", "", "mvR"},
    {M, T, false, "delL delL down", NULL, NULL},
    {M, M, true, "base", NULL, NULL},
    {M, M, false, "mvLk7", "mvLk7", ""},
};

TEST(every_cell_of_folders)
{
    check_cells(TIDE_DRIVE_FOLDER, folders, sizeof folders / sizeof folders[0]);
}

/* ---- what lives in a folder that dies (D18) ---- */

enum lives { CHANGED, NEWCOMER, SKIPPED, UNSURE };

static void live_in(struct stage *stage, bool online, enum lives what)
{
    struct drive_world *world = stage->world;
    struct drive_side *side = online ? &world->online : &world->here;
    const uint64_t folder = online ? stage->item : stage->row;
    if (what == CHANGED) {
        drive_edit(world, side, drive_child(side, folder, "x")->id, true);
        return;
    }
    struct drive_item *item =
        drive_add(world, side, folder, "y", TIDE_DRIVE_FILE, world->next_content++);
    item->skipped = what == SKIPPED;
    item->unsure = what == UNSURE;
}

TEST(a_folder_lives_on_while_something_in_it_lives)
{
    static const struct {
        bool online; /* where something lives; the folder was deleted on the other side */
        bool replaced;
        enum lives what;
        const char *wanted;
    } rows[] = {
        {false, false, CHANGED, "mkRk3 newk3"},
        {false, false, NEWCOMER, "delL mkRk3 new"},
        {false, false, SKIPPED, "delL mkRk3"},
        {false, false, UNSURE, "delL mkRk3"},
        {false, true, CHANGED, "downk6 mkRk3 mvRk6 newk3"},
        {true, false, CHANGED, "downk3 mkLk3"},
        {true, false, NEWCOMER, "delR down mkLk3"},
        {true, false, SKIPPED, "delR mkLk3"},
        {true, false, UNSURE, "delR mkLk3"},
        {true, true, CHANGED, "downk3 mkLk3 mvLk6 newk6"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stage stage = stage_new(TIDE_DRIVE_FOLDER);
        bring(&stage, !rows[i].online, rows[i].replaced ? T : A, false);
        live_in(&stage, rows[i].online, rows[i].what);
        expect(stage.world, TIDE_DRIVE_TWO_WAY, textf("row %zu", i), rows[i].wanted);
        drive_world_free(stage.world);
    }
}

/* ---- no baseline (D19) ---- */

TEST(every_cell_without_a_baseline)
{
    enum { NONE, FILE_, FOLDER };
    static const struct {
        int here, online;
        bool equal, no_hash;
        const char *two_way, *download, *upload;
    } rows[] = {
        {NONE, FILE_, false, false, "down", "down", ""},
        {NONE, FOLDER, false, false, "mkL", "mkL", ""},
        {FILE_, NONE, false, false, "new", "", "new"},
        {FILE_, FILE_, true, false, "base", "base", "base"},
        {FILE_, FILE_, true, true, "down", "down", ""}, /* compared after the download */
        {FILE_, FILE_, false, false, "down mvLk2 newk2", "down mvLk2", ""},
        {FILE_, FOLDER, false, false, "mkL mvLk6 newk6", "mkL mvLk6", ""},
        {FOLDER, NONE, false, false, "mkR", "", "mkR"},
        {FOLDER, FILE_, false, false, "downk6 mkR mvRk6", "", "mkR mvRk6"},
        {FOLDER, FOLDER, true, false, "base", "base", "base"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct drive_world *world = drive_world_new();
        if (rows[i].here != NONE)
            (void)drive_add(world, &world->here, TIDE_DRIVE_ROOT, "F",
                            rows[i].here == FILE_ ? TIDE_DRIVE_FILE : TIDE_DRIVE_FOLDER, 7);
        if (rows[i].online != NONE)
            drive_add(world, &world->online, TIDE_DRIVE_ROOT, "f",
                      rows[i].online == FILE_ ? TIDE_DRIVE_FILE : TIDE_DRIVE_FOLDER,
                      rows[i].equal ? 7 : 8)
                ->no_hash = rows[i].no_hash;
        expect(world, TIDE_DRIVE_TWO_WAY, textf("row %zu", i), rows[i].two_way);
        expect(world, TIDE_DRIVE_DOWNLOAD_ONLY, textf("row %zu down", i), rows[i].download);
        expect(world, TIDE_DRIVE_UPLOAD_ONLY, textf("row %zu up", i), rows[i].upload);
        drive_world_free(world);
    }
}

/* ---- the table as a model of random worlds ---- */

static const char *cell_of(enum state here, enum state online)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i].here == here && files[i].online == online && !files[i].alike)
            return files[i].two_way;
    fail_msg("no cell");
    return NULL;
}

static void add_words(const char **words, size_t *count, const char *cell)
{
    char *copy = strdup(cell), *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        if (*word != '\0')
            words[(*count)++] = strdup(word);
    free(copy);
}

/* Files that do not meet: each keeps to names of its own, so that the plan is the sum of the cells. */
TEST(in_a_random_world_of_files_the_plan_is_the_sum_of_the_cells)
{
    for (uint64_t seed = 1; seed <= scaled(200); seed++) {
        enum { FILES = 40 };
        tide_rng rng = tide_rng_seeded(seed);
        struct drive_world *world = drive_world_new();
        const uint64_t d =
            drive_add(world, &world->online, TIDE_DRIVE_ROOT, "d", TIDE_DRIVE_FOLDER, 0)->id;
        uint64_t ids[FILES];
        for (int i = 0; i < FILES; i++)
            ids[i] = drive_add(world, &world->online, TIDE_DRIVE_ROOT, textf("f%d", i),
                               TIDE_DRIVE_FILE, world->next_content++)
                         ->id;
        assert_true(drive_sync(world, &rng) > 0);
        const char *words[FILES * 6];
        size_t count = 0;
        for (int i = 0; i < FILES; i++) {
            static const enum state states[] = {A, S, C, M, MC};
            const enum state here = states[tide_rng_below(&rng, 5)];
            const enum state online = states[tide_rng_below(&rng, 5)];
            struct stage stage = {.world = world,
                                  .item = ids[i],
                                  .row = drive_record_of(world, ids[i])->row,
                                  .folder_item = d,
                                  .folder_row = drive_record_of(world, d)->row};
            for (int side = 0; side < 2; side++) {
                struct drive_side *where = side == 0 ? &world->here : &world->online;
                const uint64_t id = side == 0 ? stage.row : stage.item;
                const enum state is = side == 0 ? here : online;
                if (is == A)
                    drive_delete(where, id);
                if (is == M || is == MC)
                    assert_true(drive_move(where, id, side == 0 ? stage.folder_row : d,
                                           textf("%d-%d", i, side)));
                if (is == C || is == MC)
                    drive_edit(world, where, id, false);
            }
            add_words(words, &count, cell_of(here, online));
        }
        qsort(words, count, sizeof words[0], by_text);
        tide_auto_buf wanted = tide_buf_heap(65536);
        for (size_t i = 0; i < count; i++) {
            OK(tide_buf_print(&wanted, "%s%s", i > 0 ? " " : "", words[i]));
            free((char *)(uintptr_t)words[i]);
        }
        expect(world, TIDE_DRIVE_TWO_WAY, textf("seed %" PRIu64, seed), tide_buf_cstr(&wanted));
        drive_world_free(world);
    }
}
