/* drive_scale_test.c - a large drive: what a plan costs (D8).
 *
 * Goal: memory follows what changed, not what is there; new items are planned in slices.
 * Method: a store filled by SQL with items that both sides have; then nothing changed, a few things
 * changed, and everything is new.  Peaks are counted by the allocator. */
#include "drive/store/store.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/test.h"

#include <sqlite3.h>
#include <time.h>

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct stage {
    sqlite3 *handle;
    tide_rows db;
    tide_error err;
    uint64_t items;
};

static void exec(struct stage *stage, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(stage->handle, sql, NULL, NULL, &text) != SQLITE_OK)
        fail_msg("%s", text);
}

/* Items 2 to N + 1: every hundredth is a folder in the root, the others are files in them. */
static void stage_open(struct stage *stage)
{
    static const struct tide_drive_home home = {"drive", "root", "marker"};
    stage->items = scaled_at_least(100000, 20000);
    assert_int_equal(sqlite3_open(":memory:", &stage->handle), SQLITE_OK);
    stage->db = (tide_rows){.sqlite = stage->handle, .number = 1};
    OK(tide_drive_store_tables(stage->db, &stage->err));
    OK(tide_drive_store_set_up(stage->db, &home, &stage->err));
    exec(stage,
         textf("CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 200 UNION ALL SELECT"
               " i + 1 FROM n WHERE i < %" PRIu64 ") SELECT i,"
               " CASE i %% 100 WHEN 0 THEN 2 ELSE 1 END AS kind,"
               " CASE i %% 100 WHEN 0 THEN 1 ELSE i - i %% 100 END AS parent,"
               " CAST('name' || i AS BLOB) AS name,"
               " CAST(substr('00000000000000000000' || i, -20) AS BLOB) AS qxh,"
               " CAST(substr('00000000000000000000000000000000' || i, -32) AS BLOB) AS strong"
               " FROM n",
               200 + stage->items));
    exec(stage,
         "INSERT INTO drive_1_item SELECT i, 'id' || i FROM n;"
         "INSERT INTO drive_1_remote SELECT i, parent, name, name, kind, 1, 10, qxh, 'e', 'c',"
         " 0, 1, NULL FROM n");
}

static void add_here(struct stage *stage)
{
    exec(stage,
         "INSERT INTO drive_1_local SELECT i, parent, name, name, kind, 1, 10, qxh, strong, 0,"
         " 0, 0, 1, i, i, 1, 0, 1, 0, NULL FROM n;"
         "INSERT INTO drive_1_base SELECT i, parent, name, name, kind, 10, qxh, 'e', 'c', 0, i,"
         " name, 10, qxh, strong, 1, i, i, 0 FROM n");
}

/* Loads and plans; the actions, and the peak of memory. */
static size_t plan_now(struct stage *stage, size_t news_max, bool *more_out, size_t *peak_out,
                       const char *what)
{
    struct tide_mem_faulty mem;
    struct tide_drive_loaded loaded;
    struct tide_drive_plan plan;
    const struct tide_drive_plan_options options = {.guard = {.largest_24h = stage->items}};
    tide_mem_faulty_once(&mem, UINT64_MAX);
    const uint64_t start = now_ms();
    OK(tide_drive_load(stage->db, news_max, 100000, &mem.base, &loaded, &stage->err));
    OK(tide_drive_plan(&loaded.trees, &options, &mem.base, &plan, &stage->err));
    const size_t count = plan.actions_count;
    *more_out = loaded.more;
    tide_drive_plan_done(&plan);
    tide_drive_loaded_done(&loaded);
    *peak_out = mem.bytes_peak;
    printf("%" PRIu64 " items, %s: %zu actions, %" PRIu64 " ms, %zu KiB at most\n", stage->items,
           what, count, now_ms() - start, mem.bytes_peak >> 10);
    assert_int_equal(mem.bytes_live, 0);
    return count;
}

TEST(a_plan_costs_what_changed)
{
    struct stage stage = {.items = 0};
    bool more = false;
    size_t peak = 0;
    stage_open(&stage);
    add_here(&stage);
    assert_int_equal(plan_now(&stage, 10000, &more, &peak, "none changed"), 0);
    assert_true(peak < 256 << 10);
    exec(&stage, "UPDATE drive_1_remote SET bytes = 11 WHERE item % 5000 = 7;"
                 "UPDATE drive_1_local SET name = CAST('moved' || row AS BLOB),"
                 " key = CAST('moved' || row AS BLOB) WHERE row % 5000 = 8");
    const size_t changed = plan_now(&stage, 10000, &more, &peak, "one of 2,500 changed");
    assert_int_equal(changed, 2 * (stage.items / 5000));
    assert_true(peak < (1 << 20) + changed * 4096);
    assert_int_equal(sqlite3_close(stage.handle), SQLITE_OK);
}

TEST(a_first_sync_is_planned_in_slices)
{
    struct stage stage = {.items = 0};
    bool more = false;
    size_t peak = 0;
    stage_open(&stage);
    assert_in_range(plan_now(&stage, 10000, &more, &peak, "all new"), 10000, 10200);
    assert_true(more);
    assert_true(peak < 32 << 20); /* the same for any number of items */
    assert_int_equal(sqlite3_close(stage.handle), SQLITE_OK);
}
