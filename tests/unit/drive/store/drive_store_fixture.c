#include "drive_store_fixture.h"

const struct tide_drive_home home = {"drive", "root", "marker"};

int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_int_equal(sqlite3_open(":memory:", &f->handle), SQLITE_OK);
    f->db = (tide_rows){.sqlite = f->handle, .number = 1};
    OK(tide_drive_store_tables(f->db, &f->err));
    OK(tide_drive_store_set_up(f->db, &home, &f->err));
    *state = f;
    return 0;
}

int teardown(void **state)
{
    struct fixture *f = *state;
    tide_drive_loaded_done(&f->loaded);
    assert_int_equal(sqlite3_close(f->handle), SQLITE_OK);
    free(f);
    return 0;
}

struct tide_drive_seen seen(const char *id, const char *parent, const char *name, uint64_t content)
{
    struct tide_drive_seen item = {
        .id = tide_text_of(id),
        .parent_id = tide_text_of(parent),
        .name = tide_text_of(name),
        .etag = TIDE_TEXT("e"),
        .ctag = TIDE_TEXT("c"),
        .kind = content == 0 ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
        .state = TIDE_DRIVE_REMOTE_LIVE,
        .content = {.bytes = content, .has_qxh = content > 0},
    };
    memcpy(item.content.qxh, &content, sizeof content);
    return item;
}

struct tide_drive_seen tombstone(const char *id)
{
    return (struct tide_drive_seen){.id = tide_text_of(id),
                                    .parent_id = TIDE_TEXT_NONE,
                                    .kind = TIDE_DRIVE_FILE,
                                    .state = TIDE_DRIVE_REMOTE_GONE,
                                    .etag = TIDE_TEXT(""),
                                    .ctag = TIDE_TEXT("")};
}

void page(struct fixture *f, const struct tide_drive_seen *items, size_t count, bool last)
{
    OK(tide_drive_page(f->db, items, count, last ? TIDE_TEXT_NONE : TIDE_TEXT("next"),
                       last ? TIDE_TEXT("delta") : TIDE_TEXT_NONE, 1000, &f->err));
}

void round_of(struct fixture *f, tide_drive_round kind, const struct tide_drive_seen *items,
              size_t count)
{
    OK(tide_drive_round_begin(f->db, kind, &f->err));
    page(f, items, count, true);
}

void load(struct fixture *f, uint64_t now_ms)
{
    tide_drive_loaded_done(&f->loaded);
    OK(tide_drive_load(f->db, 1000, now_ms, tide_mem_heap(), &f->loaded, &f->err));
}

const struct tide_drive_remote *remote(struct fixture *f, const char *id)
{
    uint64_t item = 0;
    if (tide_drive_item_of(f->db, tide_text_of(id), &item, &f->err) != TIDE_OK)
        return NULL;
    for (size_t i = 0; i < f->loaded.trees.remotes_count; i++)
        if (f->loaded.remotes[i].item == item)
            return &f->loaded.remotes[i];
    return NULL;
}

uint64_t number(struct fixture *f, const char *sql)
{
    uint64_t value = 0;
    OK(tide_rows_number(f->db, "a test", &value, &f->err, sql));
    return value;
}

struct tide_drive_found found_of(uint64_t parent, const char *name, uint64_t content)
{
    struct tide_drive_found found = {
        .parent = parent,
        .name = tide_text_of(name),
        .identity = {1, 1000 + content, 1000 + content},
        .kind = content == 0 ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
        .state = TIDE_DRIVE_LOCAL_LIVE,
        .nlink = 1,
        .content = {.bytes = content, .has_qxh = content > 0, .has_strong = content > 0}};
    memcpy(found.content.qxh, &content, sizeof content);
    memcpy(found.content.strong, &content, sizeof content);
    return found;
}

uint64_t put(struct fixture *f, uint64_t parent, const char *name, uint64_t content)
{
    const struct tide_drive_found found = found_of(parent, name, content);
    uint64_t row = 0;
    OK(tide_drive_scan_put(f->db, &found, &row, &f->err));
    return row;
}

void find_state(struct fixture *f, uint64_t row, int state, uint64_t now_ms)
{
    struct tide_drive_difference differs = {.found = {.row = row}, .state_only = true};
    differs.found.state = (tide_drive_local_state)state;
    differs.found.version =
        number(f, textf("SELECT version FROM drive_@_local WHERE row = %" PRIu64, row));
    OK(tide_drive_scan_write(f->db, &differs, 1, now_ms, &f->err));
}

void agree(struct fixture *f)
{
    const struct tide_drive_plan_options options = {.guard = {.largest_24h = 1000}};
    struct tide_drive_plan plan;
    load(f, 1000);
    OK(tide_drive_plan(&f->loaded.trees, &options, tide_mem_heap(), &plan, &f->err));
    struct tide_drive_outcome outcomes[8];
    assert_in_range(plan.actions_count, 1, 8);
    for (size_t i = 0; i < plan.actions_count; i++) {
        assert_int_equal(plan.actions[i].verb, TIDE_DRIVE_BASE);
        outcomes[i] = (struct tide_drive_outcome){
            .verb = TIDE_DRIVE_BASE, .item = plan.actions[i].item, .row = plan.actions[i].row};
    }
    OK(tide_drive_commit_all(f->db, outcomes, plan.actions_count, &f->err));
    tide_drive_plan_done(&plan);
}

void two_files(struct fixture *f, uint64_t rows[3])
{
    const struct tide_drive_seen items[] = {seen("d", "root", "d", 0), seen("x", "d", "x", 7),
                                            seen("y", "root", "y", 8)};
    round_of(f, TIDE_DRIVE_ROUND_FULL, items, 3);
    rows[0] = put(f, TIDE_DRIVE_ROOT, "d", 0);
    rows[1] = put(f, rows[0], "x", 7);
    rows[2] = put(f, TIDE_DRIVE_ROOT, "y", 8);
    agree(f);
    load(f, 1000);
    assert_int_equal(f->loaded.trees.bases_count, 0); /* nothing differs: nothing is read */
}

bool is_due(struct fixture *f, uint64_t now_ms)
{
    struct tide_drive_progress progress;
    OK(tide_drive_progress_read(f->db, &progress, &f->err));
    return tide_drive_plan_is_due(&progress, now_ms);
}

void planned(struct fixture *f, uint64_t now_ms)
{
    struct tide_drive_progress progress;
    OK(tide_drive_progress_read(f->db, &progress, &f->err));
    OK(tide_drive_planned(f->db, progress.changed, now_ms, &f->err));
    assert_false(is_due(f, now_ms));
}
