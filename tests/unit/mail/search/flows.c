/* How an answer is made: nothing is sorted, and every allocation may fail. */
#include "search_fixture.h"
#include "support/sweep.h"

/* ---- plans ---- */

/* Every flow walks an index in order: nothing is sorted. */
CASE(no_flow_sorts)
{
    fill(f, 20, 0);
    static const char *const queries[] = {"the",        "label:work",      "has:attachment",
                                          "larger:300", "rfc822msgid:x",   "",
                                          "-the",       "after:2019/01/01"};
    tide_shards shards;
    const struct tide_archive_options options = {
        .dir = f->dir, .account = "me@example.com", .world = f->world, .read_only = true};
    tide_shards_init(&shards, &options, tide_mem_heap());
    OK(tide_shards_look(&shards, &f->err));
    for (size_t i = 0; i < 2 * sizeof queries / sizeof queries[0]; i++) {
        struct tide_searching searching;
        struct tide_walk walk;
        tide_flow *flow = NULL;
        tide_query *query = parse(f, queries[i / 2]);
        OK(tide_searching_init(&searching, &shards, tide_mem_heap(), &f->err));
        searching.descending = i % 2 == 0;
        OK(tide_plan_make(&searching, query));
        OK(tide_walk_open(&walk, &searching, shards.list[0]));
        OK(tide_flow_open(&walk, searching.plan.root, 0, INT64_MAX - 1, &flow));
        OK(tide_flow_seek(&walk, flow, TIDE_KEY_FIRST));
        for (sqlite3_stmt *stmt = sqlite3_next_stmt(walk.shard->db.handle, NULL); stmt != NULL;
             stmt = sqlite3_next_stmt(walk.shard->db.handle, stmt))
            assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_SORT, 0), 0);
        tide_walk_close(&walk);
        tide_searching_done(&searching);
        tide_query_free(query);
    }
    tide_shards_done(&shards);
}

/* ---- memory ---- */

static tide_status search_with(struct fixture *f, tide_mem *mem)
{
    const struct tide_archive_options options = {
        .dir = f->dir, .account = "me@example.com", .world = f->world, .read_only = true};
    tide_archive *archive = NULL;
    tide_query *query = parse(f, "{the (from:alice -cc:bob) larger:500} -label:work");
    static struct seen seen;
    seen = (struct seen){.f = f};
    tide_buf next;
    bool more = false;
    uint64_t count = 0, bytes = 0;
    tide_buf_init(&next, mem, 4096);
    tide_status rc = tide_archive_open(&options, mem, &archive, &f->err);
    struct tide_search search = {.query = query, .limit = 3, .snippets = true};
    if (rc == TIDE_OK)
        rc = tide_search_run(archive, &search, see, &seen, &next, &more, &f->err);
    search.ranked = true;
    if (rc == TIDE_OK)
        rc = tide_search_run(archive, &search, see, &seen, &next, &more, &f->err);
    if (rc == TIDE_OK)
        rc = tide_search_count(archive, query, &count, &bytes, &f->err);
    tide_buf_done(&next);
    OK(tide_archive_close(archive, NULL));
    tide_query_free(query);
    return rc;
}

CASE(every_failed_allocation_is_reported)
{
    fill(f, 30, 0);
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        const tide_status rc = search_with(f, &mem.base);
        assert_swept(mem, rc);
    }
}
