/* drive_scale_test.c - a large drive: what a plan costs (D8).
 *
 * Goal: time and memory follow what changed, not what is there; new items are planned in slices, and the
 * last slice of a first sync costs what the first did.
 * Method: a store filled by SQL with items that both sides have; then nothing changed, a few things
 * changed, and everything is new.  Peaks are counted by the allocator,
 * time as instructions of SQLite. */
#include "drive/store/store.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/test.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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
         " 0, 1, NULL, 0 FROM n");
}

#define ADD_LOCAL                                                                                  \
    "INSERT INTO drive_1_local SELECT i, parent, name, name, kind, 1, 10, qxh, strong, 0,"         \
    " 0, 0, 1, i, i, 1, 0, 1, 0, NULL FROM n"
#define ADD_BASE                                                                                   \
    "INSERT INTO drive_1_base SELECT i, parent, name, name, kind, 10, qxh, 'e', 'c', 0, i,"        \
    " name, 10, qxh, strong, 1, i, i, 0 FROM n"

static void add_here(struct stage *stage)
{
    exec(stage, ADD_LOCAL ";" ADD_BASE);
}

/* As the plans do that record all this, some marks each. */
static void settle(struct stage *stage)
{
    for (size_t same = 1; same > 0;) {
        struct tide_drive_loaded loaded;
        OK(tide_drive_load(stage->db, 10000, 100000, tide_mem_heap(), &loaded, &stage->err));
        OK(tide_drive_unmark(stage->db, loaded.same, loaded.same_count, &stage->err));
        same = loaded.same_count;
        tide_drive_loaded_done(&loaded);
    }
}

/* SQLite's steps: what a plan reads, on a machine of any speed. */
static uint64_t steps;

static int count_steps(void *arg)
{
    (void)arg;
    steps++;
    return 0;
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
    steps = 0;
    sqlite3_progress_handler(stage->handle, 100, count_steps, NULL);
    OK(tide_drive_load(stage->db, news_max, 100000, &mem.base, &loaded, &stage->err));
    OK(tide_drive_plan(&loaded.trees, &options, &mem.base, &plan, &stage->err));
    sqlite3_progress_handler(stage->handle, 0, NULL, NULL);
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
    settle(&stage);
    assert_int_equal(plan_now(&stage, 10000, &more, &peak, "none changed"), 0);
    assert_true(peak < 256 << 10);
    assert_true(steps < 20); /* 2,000 instructions, however many items there are */
    exec(&stage, "UPDATE drive_1_remote SET bytes = 11 WHERE item % 5000 = 7;"
                 "UPDATE drive_1_local SET name = CAST('moved' || row AS BLOB),"
                 " key = CAST('moved' || row AS BLOB) WHERE row % 5000 = 8");
    const size_t changed = plan_now(&stage, 10000, &more, &peak, "one of 2,500 changed");
    assert_int_equal(changed, 2 * (stage.items / 5000));
    assert_true(peak < (1 << 20) + changed * 4096);
    assert_true(steps < 20 + changed * 20);
    assert_int_equal(sqlite3_close(stage.handle), SQLITE_OK);
}

/* The items up to `last` are the same on both sides now. */
static void adopt(struct stage *stage, uint64_t from, uint64_t last)
{
    for (const char *const *sql = (const char *const[]){ADD_LOCAL, ADD_BASE, NULL}; *sql != NULL;
         sql++)
        exec(stage, textf("%s WHERE i > %" PRIu64 " AND i <= %" PRIu64, *sql, from, last));
}

TEST(a_first_sync_is_planned_in_slices_that_cost_the_same)
{
    struct stage stage = {.items = 0};
    bool more = false;
    size_t peak = 0;
    stage_open(&stage);
    assert_in_range(plan_now(&stage, 5000, &more, &peak, "all new"), 5000, 5100);
    assert_true(more);
    assert_true(peak < 16 << 20); /* the same for any number of items */
    const uint64_t first = steps;
    adopt(&stage, 0, stage.items - 9000);
    settle(&stage);
    adopt(&stage, stage.items - 9000, stage.items - 6000); /* as many as end between two plans */
    assert_in_range(plan_now(&stage, 5000, &more, &peak, "the last slices"), 5000, 5100);
    assert_true(steps < 2 * first);
    assert_int_equal(sqlite3_close(stage.handle), SQLITE_OK);
}

/* A file, so that what SQLite has in memory is its cache and what a statement needs. */
TEST(the_end_of_a_first_listing_needs_no_memory_for_all_items)
{
    enum { PAGE = 1000 };
    static const struct tide_drive_home home = {"drive", "root", "marker"};
    struct stage stage = {.items = scaled_at_least(100000, 50000)};
    const char *dir = getenv("TMPDIR");
    const char *path = textf("%s/drive_scale.%d.db", dir == NULL ? "/tmp" : dir, (int)getpid());
    assert_int_equal(sqlite3_open(path, &stage.handle), SQLITE_OK);
    exec(&stage, "PRAGMA cache_size = -2048; PRAGMA temp_store = MEMORY; PRAGMA synchronous = OFF");
    stage.db = (tide_rows){.sqlite = stage.handle, .number = 1};
    OK(tide_drive_store_tables(stage.db, &stage.err));
    OK(tide_drive_store_set_up(stage.db, &home, &stage.err));
    OK(tide_drive_round_begin(stage.db, TIDE_DRIVE_ROUND_FULL, &stage.err));
    (void)sqlite3_memory_highwater(1);
    exec(&stage, "BEGIN");
    for (uint64_t at = 0; at < stage.items; at += PAGE) {
        static struct tide_drive_seen items[PAGE];
        static char ids[PAGE][40], names[PAGE][40];
        const bool last = at + PAGE >= stage.items;
        for (uint64_t i = 0; i < PAGE; i++) {
            (void)snprintf(ids[i], sizeof ids[i], "0123456789abcdef!%018" PRIu64, at + i);
            (void)snprintf(names[i], sizeof names[i], "a name of some letters %" PRIu64, at + i);
            items[i] = (struct tide_drive_seen){.id = tide_text_of(ids[i]),
                                                .parent_id = TIDE_TEXT("root"),
                                                .name = tide_text_of(names[i]),
                                                .etag = TIDE_TEXT("e"),
                                                .ctag = TIDE_TEXT("c"),
                                                .content = {.bytes = 10},
                                                .kind = TIDE_DRIVE_FILE,
                                                .state = TIDE_DRIVE_REMOTE_LIVE};
        }
        OK(tide_drive_page(stage.db, items, PAGE, last ? TIDE_TEXT_NONE : TIDE_TEXT("next"),
                           last ? TIDE_TEXT("delta") : TIDE_TEXT_NONE, 1000, &stage.err));
    }
    exec(&stage, "COMMIT");
    const int64_t most = sqlite3_memory_highwater(0);
    printf("%" PRIu64 " items listed: %" PRId64 " KiB at most\n", stage.items, most >> 10);
    assert_true(most < 8 << 20);
    uint64_t rows = 0;
    OK(tide_rows_number(stage.db, "a test", &rows, &stage.err,
                        "SELECT count(*) FROM drive_@_remote"));
    assert_int_equal(rows, (stage.items + PAGE - 1) / PAGE * PAGE);
    assert_int_equal(sqlite3_close(stage.handle), SQLITE_OK);
    (void)unlink(path);
}
