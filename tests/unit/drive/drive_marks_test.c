/* drive_marks_test.c - a plan reads what differs, and is the plan that all rows would give (DMA1, DMA2).
 *
 * Goal: whatever is written to the three tables, the marks lead to all that differs; a plan of the
 * rows that they lead to is the plan of all rows; slices of what is new pass by what is held.
 * Method: random worlds, in which two users act and a part of each plan is carried out.  What
 * changed in the world is written to the tables as the store does it: inserted, updated, removed.
 * Then the plan of the world's rows is compared with that of the loaded ones, action by action, and
 * the marks with the queries that would look at everything. */
#include "drive/names/key.h"
#include "drive/store/marks.h"
#include "drive/store/store.h"
#include "support/drive/world.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/test.h"

#include <sqlite3.h>

enum { ITEMS = 14, ACTS = 8, ROUNDS = 4, WORDS_MAX = 1024, WORD_BYTES = 240 };

struct stage {
    sqlite3 *handle;
    tide_rows db;
    tide_error err;
    struct drive_world *world;
};

static void stage_open(struct stage *stage)
{
    static const struct tide_drive_home home = {"drive", "root", "marker"};
    assert_int_equal(sqlite3_open(":memory:", &stage->handle), SQLITE_OK);
    stage->db = (tide_rows){.sqlite = stage->handle, .number = 1};
    OK(tide_drive_store_tables(stage->db, &stage->err));
    OK(tide_drive_store_set_up(stage->db, &home, &stage->err));
}

static void stage_close(struct stage *stage)
{
    assert_int_equal(sqlite3_close(stage->handle), SQLITE_OK);
}

static uint64_t count(struct stage *stage, const char *sql)
{
    uint64_t value = 0;
    OK(tide_rows_number(stage->db, "a test", &value, &stage->err, sql));
    return value;
}

/* ---- the world's rows in the tables ---- */

static tide_value blob(tide_text text)
{
    return tide_value_bytes(text.bytes == 0 ? "" : text.data, text.bytes);
}

static tide_value blob_or_null(const void *bytes, size_t length, bool there)
{
    return there ? tide_value_bytes(bytes, length) : tide_value_or_null(TIDE_TEXT_NONE);
}

static const char *hex(tide_text text)
{
    char out[64] = "";
    for (size_t i = 0; i < text.bytes && i < 16; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", (unsigned)(uint8_t)text.data[i]);
    return textf("%s", out);
}

static tide_text key_of(tide_text name, tide_buf *room)
{
    tide_buf_clear(room);
    OK(tide_drive_key_add(room, name));
    return tide_buf_text(room);
}

static void put_online(struct stage *stage, tide_buf *room)
{
    for (size_t i = 0; i < stage->world->trees.remotes_count; i++) {
        const struct tide_drive_remote *row = &stage->world->remotes[i];
        const struct drive_item *item = drive_find(&stage->world->online, row->item);
        if (item == NULL && drive_record_of(stage->world, row->item) == NULL) {
            OK(tide_rows_do(stage->db, "a test", &stage->err,
                            "DELETE FROM drive_@_remote WHERE item = ?1", row->item));
            continue;
        }
        const tide_text name = item != NULL && item->stepped ? tide_text_of(item->name) : row->name;
        OK(tide_rows_do(
            stage->db, "a test", &stage->err,
            "INSERT INTO drive_@_remote VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'e', ?9, 0, 1, ?10,"
            " 0)"
            " ON CONFLICT(item) DO UPDATE SET parent = ?2, name = ?3, key = ?4, kind = ?5,"
            " state = ?6, bytes = ?7, qxh = ?8, ctag = ?9, aside = ?10 WHERE parent <> ?2 OR"
            " name <> ?3 OR kind <> ?5 OR state <> ?6 OR bytes <> ?7 OR qxh IS NOT ?8 OR ctag <> ?9"
            " OR aside IS NOT ?10",
            row->item, row->parent, blob(name), blob(key_of(name, room)), (int)row->kind,
            (int)row->state, row->content.bytes,
            blob_or_null(row->content.qxh, sizeof row->content.qxh, row->content.has_qxh),
            hex(row->ctag), blob_or_null(row->name.data, row->name.bytes, row->stepped_aside)));
    }
}

static void remove_here(struct stage *stage)
{
    for (size_t i = 0; i < stage->world->here.count; i++) {
        const struct drive_item *item = &stage->world->here.items[i];
        if (item->alive)
            continue;
        OK(tide_rows_do(stage->db, "a test", &stage->err,
                        "UPDATE drive_@_base SET row = 0 WHERE row = ?1", item->id));
        OK(tide_rows_do(stage->db, "a test", &stage->err,
                        "DELETE FROM drive_@_local WHERE row = ?1", item->id));
    }
}

static void put_here(struct stage *stage, tide_buf *room)
{
    remove_here(stage);
    for (int pass = 0; pass < 2; pass++) /* names may be exchanged: first each has one of its own */
        for (size_t i = 0; i < stage->world->trees.locals_count; i++) {
            const struct tide_drive_local *row = &stage->world->locals[i];
            const struct drive_item *item = drive_find(&stage->world->here, row->row);
            const tide_text is = item->stepped ? tide_text_of(item->name) : row->name;
            const tide_text name = pass == 0 ? tide_text_of(textf("?%" PRIu64, row->row)) : is;
            OK(tide_rows_do(
                stage->db, "a test", &stage->err,
                "INSERT INTO drive_@_local VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, substr(?8, 1, 20), "
                "?8,"
                " 0, 0, 0, 1, ?9, ?9, 1, 0, 1, 0, ?10) ON CONFLICT(row) DO UPDATE SET parent = ?2,"
                " name = ?3, key = ?4, kind = ?5, state = ?6, bytes = ?7, qxh = substr(?8, 1, 20),"
                " strong = ?8, inode = ?9, birth_ns = ?9, aside = ?10 WHERE parent <> ?2 OR name <>"
                " ?11 OR kind <> ?5 OR state <> ?6 OR bytes <> ?7 OR strong <> ?8 OR inode <> ?9 OR"
                " aside IS NOT ?10",
                row->row, row->parent, blob(name), blob(key_of(name, room)), (int)row->kind,
                (int)row->state, row->content.bytes,
                tide_value_bytes(row->content.strong, sizeof row->content.strong),
                row->identity.inode,
                blob_or_null(row->name.data, row->name.bytes, row->stepped_aside), blob(is)));
        }
}

static void remove_bases(struct stage *stage)
{
    for (size_t i = 0; i < stage->world->records_count; i++)
        if (drive_record_of(stage->world, stage->world->records[i].item) == NULL)
            OK(tide_rows_do(stage->db, "a test", &stage->err,
                            "DELETE FROM drive_@_base WHERE item = ?1",
                            stage->world->records[i].item));
}

static void put_base(struct stage *stage, const struct tide_drive_base *row, tide_buf *room)
{
    const bool there = drive_find(&stage->world->here, row->row) != NULL;
    OK(tide_rows_do(
        stage->db, "a test", &stage->err,
        "INSERT INTO drive_@_base VALUES(?1, ?2, ?3, ?4, ?5, ?6, substr(?10, 1, 20), 'e',"
        " ?7, 0, ?8, ?9, ?6, substr(?10, 1, 20), ?10, 1, ?11, ?11, 0)"
        " ON CONFLICT(item) DO UPDATE SET parent = ?2, name = ?3, key = ?4, kind = ?5,"
        " bytes = ?6, qxh = substr(?10, 1, 20), ctag = ?7, row = ?8, local_name = ?9,"
        " local_bytes = ?6, local_qxh = substr(?10, 1, 20), strong = ?10, inode = ?11,"
        " birth_ns = ?11 WHERE parent <> ?2 OR name <> ?3 OR kind <> ?5 OR bytes <> ?6 OR"
        " row <> ?8 OR local_name <> ?9 OR strong <> ?10 OR inode <> ?11",
        row->item, row->parent, blob(row->name), blob(key_of(row->name, room)), (int)row->kind,
        row->remote.bytes, hex(row->ctag), there ? row->row : 0, blob(row->local_name),
        tide_value_bytes(row->local.strong, sizeof row->local.strong), row->identity.inode));
}

static void put_world(struct stage *stage)
{
    tide_auto_buf room = tide_buf_heap(8 << 10);
    (void)drive_rows(stage->world);
    put_online(stage, &room);
    put_here(stage, &room);
    remove_bases(stage);
    for (size_t i = 0; i < stage->world->trees.bases_count; i++)
        put_base(stage, &stage->world->bases[i], &room);
}

/* ---- checks ---- */

static void check_marks(struct stage *stage, uint64_t seed)
{
    const uint64_t missed =
        count(stage, "SELECT count(*) FROM drive_@_base AS b" TIDE_DRIVE_SIDES
                     " WHERE " TIDE_DRIVE_DIFFERS " AND NOT EXISTS (SELECT 1 FROM drive_@_mark"
                     " WHERE class = 0 AND number = b.item)");
    const uint64_t online =
        count(stage, "SELECT count(*) FROM (SELECT item FROM drive_@_remote AS r WHERE NOT EXISTS"
                     " (SELECT 1 FROM drive_@_base AS b WHERE b.item = r.item)) AS n FULL JOIN"
                     " (SELECT number FROM drive_@_mark WHERE class = 1) AS m ON m.number = n.item"
                     " WHERE n.item IS NULL OR m.number IS NULL");
    const uint64_t here =
        count(stage, "SELECT count(*) FROM (SELECT row FROM drive_@_local AS l WHERE NOT EXISTS"
                     " (SELECT 1 FROM drive_@_base AS b WHERE b.row = l.row)) AS n FULL JOIN"
                     " (SELECT number FROM drive_@_mark WHERE class = 2) AS m ON m.number = n.row"
                     " WHERE n.row IS NULL OR m.number IS NULL");
    if (missed != 0 || online != 0 || here != 0)
        fail_msg("seed %" PRIu64 ": %" PRIu64 " items that differ are not marked, and %" PRIu64
                 " online and %" PRIu64 " here have a wrong mark",
                 seed, missed, online, here);
}

struct words {
    char text[WORDS_MAX][WORD_BYTES];
    size_t count;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void listen(const struct tide_drive_plan *plan, struct words *words)
{
    words->count = 0;
    for (size_t i = 0; i < plan->actions_count; i++) {
        const struct tide_drive_action *a = &plan->actions[i];
        assert_true(words->count < WORDS_MAX);
        (void)snprintf(words->text[words->count++], WORD_BYTES,
                       "%s item %" PRIu64 " row %" PRIu64 " was %" PRIu64 " of %" PRIu64
                       " at %" PRIu64 "/%" PRIu64 " %.*s, %" PRIu64 " bytes, k%d, state %d%s%s",
                       tide_drive_verb_name(a->verb), a->item, a->row, a->was_item, a->copy_of,
                       a->parent_item, a->parent_row, a->step_aside ? 0 : (int)a->name.bytes,
                       a->name.data, a->bytes, (int)a->notice, (int)a->state,
                       a->compare ? ", compare" : "", a->step_aside ? ", aside" : "");
    }
    qsort(words->text, words->count, WORD_BYTES, by_text);
}

static void compare(struct stage *stage, const struct tide_drive_plan *all,
                    const struct tide_drive_plan *some, uint64_t seed)
{
    static struct words expected, got;
    listen(all, &expected);
    listen(some, &got);
    bool same = expected.count == got.count && all->edges_count == some->edges_count;
    for (size_t i = 0; i < got.count && same; i++)
        same = strcmp(expected.text[i], got.text[i]) == 0;
    if (same)
        return;
    drive_print(stage->world, all);
    for (size_t i = 0; i < expected.count; i++)
        print_error("all rows:    %s\n", expected.text[i]);
    for (size_t i = 0; i < got.count; i++)
        print_error("loaded rows: %s\n", got.text[i]);
    fail_msg("seed %" PRIu64 ": the loaded rows give another plan than all rows", seed);
}

/* ---- worlds ---- */

static size_t plan_both(struct stage *stage, tide_rng *rng, uint64_t seed, uint64_t *spared)
{
    const struct tide_drive_plan_options options = drive_options(stage->world);
    struct tide_drive_loaded loaded;
    struct tide_drive_plan all, some;
    put_world(stage);
    check_marks(stage, seed);
    OK(tide_drive_load(stage->db, 100000, stage->world->now_ms + 1000000, tide_mem_heap(), &loaded,
                       &stage->err));
    OK(tide_drive_plan(drive_rows(stage->world), &options, tide_mem_heap(), &all, &stage->err));
    OK(tide_drive_plan(&loaded.trees, &options, tide_mem_heap(), &some, &stage->err));
    compare(stage, &all, &some, seed);
    *spared += stage->world->trees.bases_count - loaded.trees.bases_count;
    OK(tide_drive_unmark(stage->db, loaded.same, loaded.same_count, &stage->err));
    check_marks(stage, seed);
    const size_t actions = all.actions_count;
    (void)drive_run(stage->world, &all, rng, (size_t)tide_rng_below(rng, actions + 2));
    tide_drive_plan_done(&all);
    tide_drive_plan_done(&some);
    tide_drive_loaded_done(&loaded);
    return actions;
}

static uint64_t any_folder(const struct drive_side *side, tide_rng *rng)
{
    const size_t from = side->count == 0 ? 0 : (size_t)tide_rng_below(rng, side->count);
    for (size_t i = from; i < side->count; i++)
        if (side->items[i].alive && side->items[i].kind == TIDE_DRIVE_FOLDER)
            return side->items[i].id;
    return TIDE_DRIVE_ROOT;
}

TEST(a_plan_of_what_is_marked_is_the_plan_of_all_rows)
{
    uint64_t actions = 0, spared = 0;
    for (uint64_t seed = 1; seed <= scaled(200); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        struct stage stage = {.world = drive_world_new()};
        stage_open(&stage);
        stage.world->next_content = 100;
        for (int i = 0; i < ITEMS; i++)
            (void)drive_add(stage.world, &stage.world->online,
                            any_folder(&stage.world->online, &rng), textf("s%d", i),
                            tide_rng_chance(&rng, 1, 3) ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
                            stage.world->next_content++);
        if (tide_rng_chance(&rng, 2, 3))
            assert_true(drive_sync(stage.world, &rng) > 0);
        for (int round = 0; round < ROUNDS; round++) {
            stage.world->now_ms +=
                1000; /* else a conflict name may be one that is synced already */
            actions += plan_both(&stage, &rng, seed, &spared);
            for (uint64_t i = tide_rng_below(&rng, ACTS); i > 0; i--)
                drive_act(stage.world,
                          tide_rng_chance(&rng, 1, 2) ? &stage.world->online : &stage.world->here,
                          &rng);
        }
        drive_world_free(stage.world);
        stage_close(&stage);
    }
    assert_true(actions > scaled(200) * 5); /* there was something to do, */
    assert_true(spared > scaled(200));      /* and rows that were not read */
}

/* ---- slices ---- */

TEST(what_is_held_does_not_stand_before_the_rest_of_what_is_new)
{
    enum { NEW = 1000, SLICE = 100 };
    struct stage stage = {.world = NULL};
    struct tide_drive_slice from = {.item = 0};
    size_t seen = 0, slices = 0;
    bool more = true;
    stage_open(&stage);
    for (uint64_t i = 2; i < 2 + NEW; i++)
        OK(tide_rows_do(stage.db, "a test", &stage.err,
                        "INSERT INTO drive_@_remote VALUES(?1, 1, ?2, ?2, 1, ?3, 10, NULL, 'e',"
                        " 'c', 0, 1, NULL, 0)",
                        i, blob(tide_text_of(textf("name%" PRIu64, i))),
                        i < 2 + NEW - 10 ? (int)TIDE_DRIVE_REMOTE_SKIPPED
                                         : (int)TIDE_DRIVE_REMOTE_LIVE));
    while (more) {
        struct tide_drive_loaded loaded;
        struct tide_drive_plan plan;
        const struct tide_drive_plan_options options = {.guard = {.largest_24h = NEW}};
        OK(tide_drive_load_from(stage.db, &from, SLICE, 1000, tide_mem_heap(), &loaded,
                                &stage.err));
        OK(tide_drive_plan(&loaded.trees, &options, tide_mem_heap(), &plan, &stage.err));
        assert_true(loaded.trees.remotes_count <= SLICE);
        seen += plan.actions_count;
        slices++;
        from = loaded.to;
        more = loaded.more;
        tide_drive_plan_done(&plan);
        tide_drive_loaded_done(&loaded);
    }
    assert_int_equal(seen, 10);
    assert_int_equal(slices, NEW / SLICE);
    stage_close(&stage);
}
