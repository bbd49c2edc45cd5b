/* Random changes against a slow, obvious model, and the same drive again from the changes it told. */
#include "base/rng.h"
#include "cloudbox/drive/drive.h"
#include "cloudbox/tests/owned.h"

enum { STEPS = 3000, ITEMS_MAX = STEPS + 1 };
#define NOW_MS UINT64_C(1790000000000)

/* What each item should be. */
struct wanted {
    bool folder, gone;
    uint32_t parent;
    char name[32];
    uint64_t bytes;
};

struct world {
    box_drive *drive;
    json_t *told;
    struct wanted items[ITEMS_MAX];
    uint32_t count;
    tide_rng rng;
};

static void take(void *arg, json_t *change)
{
    json_array_append_new(arg, change);
}

static uint32_t pick(struct world *world, bool folder)
{
    for (;;) { /* ends: the root is a folder that is never gone, and files are asked for rarely */
        const uint32_t slot = (uint32_t)tide_rng_below(&world->rng, world->count);
        if (!world->items[slot].gone && (!folder || world->items[slot].folder))
            return slot;
    }
}

static bool is_below(const struct world *world, uint32_t slot, uint32_t folder)
{
    for (; slot != 0; slot = world->items[slot].parent)
        if (slot == folder)
            return true;
    return folder == 0;
}

/* A name that is free in the folder; the model's own names are lower case. */
static bool new_name(struct world *world, uint32_t parent, uint32_t but, char name[32])
{
    snprintf(name, 32, "n%u", (unsigned)tide_rng_below(&world->rng, 50));
    for (uint32_t i = 1; i < world->count; i++)
        if (i != but && !world->items[i].gone && world->items[i].parent == parent &&
            strcmp(world->items[i].name, name) == 0)
            return false;
    return true;
}

static void add(struct world *world)
{
    const uint32_t parent = pick(world, true);
    const bool folder = tide_rng_chance(&world->rng, 1, 3);
    const uint64_t bytes = folder ? 0 : tide_rng_below(&world->rng, 10000);
    const struct box_content content = box_content_made(bytes, bytes);
    struct wanted *item = &world->items[world->count];
    if (!new_name(world, parent, 0, item->name))
        return;
    item->folder = folder;
    item->parent = parent;
    item->bytes = bytes;
    const uint32_t slot =
        box_drive_add(world->drive, parent, tide_text_of(item->name), folder ? NULL : &content,
                      (struct box_file_times){.changed_ms = 1000}, NOW_MS);
    assert_int_equal(slot, world->count);
    world->count++;
}

static void move(struct world *world)
{
    const uint32_t slot = pick(world, false), parent = pick(world, true);
    char name[32];
    if (slot == 0 || is_below(world, parent, slot) || !new_name(world, parent, slot, name))
        return;
    world->items[slot].parent = parent;
    memcpy(world->items[slot].name, name, sizeof name);
    box_drive_move(world->drive, slot, parent, tide_text_of(name), NOW_MS);
}

static void write_bytes(struct world *world)
{
    const uint32_t slot = pick(world, false);
    if (world->items[slot].folder)
        return;
    struct box_gather gather;
    box_gather_init(&gather);
    box_gather_add(&gather, TIDE_TEXT("some bytes"));
    struct box_content content = box_content_stored(&gather);
    box_drive_write(world->drive, slot, &content, (struct box_file_times){0}, NOW_MS);
    box_content_drop(&content);
    box_gather_done(&gather);
    world->items[slot].bytes = 10;
}

static void erase(struct world *world)
{
    const uint32_t slot = pick(world, false);
    if (slot == 0)
        return;
    box_drive_remove(world->drive, slot, NOW_MS);
    for (uint32_t i = 1; i < world->count; i++)
        if (!world->items[i].gone && i != slot && is_below(world, i, slot))
            world->items[i].gone = true;
    world->items[slot].gone = true;
}

static void step(struct world *world)
{
    switch (tide_rng_below(&world->rng, 20)) {
    case 0:
        erase(world);
        break;
    case 1:
    case 2:
    case 3:
        write_bytes(world);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        move(world);
        break;
    default:
        add(world);
        break;
    }
}

static void compare(const struct world *world, const box_drive *drive)
{
    char room[BOX_NAME_BYTES_MAX + 1];
    assert_null(box_drive_check(drive));
    assert_int_equal(box_drive_slots(drive), world->count);
    for (uint32_t i = 1; i < world->count; i++) {
        const struct box_item *item = box_drive_at(drive, i);
        const struct wanted *wanted = &world->items[i];
        assert_int_equal(item->gone, wanted->gone);
        if (wanted->gone)
            continue;
        assert_int_equal(item->folder, wanted->folder);
        assert_int_equal(item->parent, wanted->parent);
        assert_true(tide_text_equal(box_drive_name(drive, i, room), tide_text_of(wanted->name)));
        if (!wanted->folder)
            assert_int_equal(item->content.bytes, wanted->bytes);
    }
}

static void run(uint64_t seed)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->rng = tide_rng_seeded(seed);
    world->told = json_array();
    world->count = 1;
    world->items[0].folder = true;
    struct box_drive_spec spec = {
        .seed = seed, .now_ms = NOW_MS, .keeps = true, .changed = take, .changed_arg = world->told};
    world->drive = box_drive_new(&spec);
    for (int i = 0; i < STEPS; i++)
        step(world);
    compare(world, world->drive);

    spec.changed = NULL;
    box_drive *again = box_drive_new(&spec);
    for (size_t i = 0; i < json_array_size(world->told); i++) {
        tide_error err = {0};
        if (box_drive_replay(again, json_array_get(world->told, i), &err) != TIDE_OK)
            fail_msg("seed %d, change %d: %s", (int)seed, (int)i, err.text);
    }
    compare(world, again);
    assert_int_equal(box_drive_log_end(again), box_drive_log_end(world->drive));
    box_drive_free(again);
    box_drive_free(world->drive);
    json_decref(world->told);
    free(world);
}

TEST(random_changes_give_the_tree_of_the_model_and_replay_to_it)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        run(seed);
}

TEST(changes_that_cannot_be_are_refused)
{
    static const char *const bad[] = {
        "{}",
        "{\"do\":\"add\",\"item\":7,\"now\":1,\"parent\":0,\"name\":\"a\"}",
        "{\"do\":\"add\",\"item\":1,\"now\":1,\"parent\":3,\"name\":\"a\"}",
        "{\"do\":\"add\",\"item\":1,\"now\":1,\"parent\":0,\"name\":\"a/b\"}",
        "{\"do\":\"add\",\"item\":1,\"now\":1,\"parent\":0,\"name\":\"a\",\"size\":5}",
        "{\"do\":\"write\",\"item\":0,\"now\":1,\"size\":5,\"seed\":1}",
        "{\"do\":\"remove\",\"item\":0,\"now\":1}",
        "{\"do\":\"remove\",\"item\":9,\"now\":1}",
        "{\"do\":\"move\",\"item\":0,\"now\":1,\"parent\":0,\"name\":\"a\"}",
        "{\"do\":\"fill\",\"item\":0,\"now\":1,\"files\":100000000,\"size\":0}",
        "{\"do\":\"dance\",\"item\":0,\"now\":1}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        box_drive *drive = box_drive_new(&(struct box_drive_spec){.seed = 1, .now_ms = NOW_MS});
        json_auto_t *change = json_loads(bad[i], 0, NULL);
        assert_non_null(change);
        if (box_drive_replay(drive, change, NULL) == TIDE_OK)
            fail_msg("taken: %s", bad[i]);
        assert_null(box_drive_check(drive));
        assert_int_equal(box_drive_slots(drive), 1);
        box_drive_free(drive);
    }
}

int main(void)
{
    return tests_run(NULL);
}
