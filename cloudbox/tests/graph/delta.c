/* Delta: rounds, tokens, removals, faults, and random worlds followed by a client that only
 * applies what it is told (BGPH2). */
#include "graph_fixture.h"

#include "base/rng.h"

/* What a client knows: id -> {"parent", "name", "folder", "hash"}. */
struct client {
    json_t *items;
    const char *link;
    int pages;
};

static void client_init(struct client *client)
{
    client->items = json_object();
    client->link = "/v1.0/me/drive/root/delta";
    client->pages = 0;
}

/* What is below a folder goes with it. */
static void forget(struct client *client, const char *gone)
{
    json_object_del(client->items, gone);
    for (bool found = true; found;) {
        const char *id = NULL;
        json_t *item = NULL;
        found = false;
        json_object_foreach(client->items, id, item)
        {
            const char *parent = json_string_value(json_object_get(item, "parent"));
            found = parent[0] != '\0' && json_object_get(client->items, parent) == NULL;
            if (found)
                break;
        }
        if (found)
            json_object_del(client->items, kept(id));
    }
}

static void apply(struct client *client, const json_t *item)
{
    const char *id = kept(json_string_value(json_object_get(item, "id")));
    const json_t *parent = json_object_get(json_object_get(item, "parentReference"), "id");
    if (json_object_get(item, "deleted") != NULL) {
        forget(client, id);
        return;
    }
    json_t *hashes = json_object_get(json_object_get(item, "file"), "hashes");
    json_object_set_new(
        client->items, id,
        json_pack("{s:s, s:s, s:b, s:s}", "parent", parent == NULL ? "" : json_string_value(parent),
                  "name", json_string_value(json_object_get(item, "name")), "folder",
                  json_object_get(item, "folder") != NULL, "hash",
                  hashes == NULL ? ""
                                 : json_string_value(json_object_get(hashes, "quickXorHash"))));
}

/* One page; false: the round has ended.  Items of a page are applied at the end of the round in
 * real clients; here the last state wins either way. */
static bool follow(struct world *world, struct client *client)
{
    size_t i = 0;
    json_t *item = NULL;
    assert_int_equal(call_with(world, "GET", client->link, NULL, TIDE_TEXT_NONE), 200);
    client->pages++;
    json_array_foreach(at(world, "value"), i, item)
    {
        apply(client, item);
    }
    const char *next = text_at(world, "@odata.nextLink"), *end = text_at(world, "@odata.deltaLink");
    assert_true((next[0] == '\0') != (end[0] == '\0'));
    const bool more = next[0] != '\0';
    client->link = kept(more ? next : end);
    return more;
}

static void follow_all(struct world *world, struct client *client)
{
    while (follow(world, client))
        assert_true(client->pages < 10000);
}

static void compare(struct world *world, const struct client *client)
{
    const box_drive *drive = drive_of(world);
    char id[BOX_ITEM_ID_BYTES], parent[BOX_ITEM_ID_BYTES], room[BOX_NAME_BYTES_MAX + 1];
    size_t alive = 0;
    for (uint32_t slot = 0; slot < box_drive_slots(drive); slot++) {
        const struct box_item *item = box_drive_at(drive, slot);
        box_drive_id(drive, slot, id);
        const json_t *known = json_object_get(client->items, id);
        if (item->gone) {
            assert_null(known);
            continue;
        }
        alive++;
        assert_non_null(known);
        parent[0] = '\0';
        if (slot != BOX_ITEM_ROOT)
            box_drive_id(drive, item->parent, parent);
        assert_string_equal(json_string_value(json_object_get(known, "parent")), parent);
        assert_true(tide_text_equal(tide_text_of(json_string_value(json_object_get(known, "name"))),
                                    box_drive_name(drive, slot, room)));
        char text[BOX_QUICKXOR_TEXT_BYTES] = "";
        uint8_t hash[BOX_QUICKXOR_BYTES];
        if (!item->folder) {
            box_content_hash(&item->content, hash);
            box_quickxor_text(hash, text);
        }
        assert_string_equal(json_string_value(json_object_get(known, "hash")), text);
    }
    assert_int_equal(json_object_size(client->items), alive);
}

TEST(a_round_gives_the_whole_drive_and_the_next_only_what_changed)
{
    WORLD(world, .files = 1234);
    struct client client;
    client_init(&client);
    follow_all(&world, &client);
    compare(&world, &client);
    assert_true(client.pages >= 6);
    const char *link = client.link;
    client.pages = 0;
    follow_all(&world, &client);
    assert_int_equal(client.pages, 1);
    assert_int_equal(json_array_size(at(&world, "value")), 0);
    assert_string_equal(client.link, link);
    make_folder(&world, "/root", "F");
    put_file(&world, "F/a.txt", "x");
    follow_all(&world, &client);
    assert_int_equal(json_array_size(at(&world, "value")), 3); /* the root, F, a.txt: in order */
    assert_true(json_is_object(at(&world, "value.0.root")));
    assert_string_equal(text_at(&world, "value.1.name"), "F");
    compare(&world, &client);
    assert_int_equal(
        call_with(&world, "GET", link, HEADERS("deltaExcludeParent", "true"), TIDE_TEXT_NONE), 200);
    assert_int_equal(json_array_size(at(&world, "value")), 2);
    json_decref(client.items);
}

TEST(removals_are_told_only_to_who_could_have_seen_the_item)
{
    WORLD(world, 0);
    struct client client;
    client_init(&client);
    const char *old = put_file(&world, "old.txt", "x");
    follow_all(&world, &client);
    const char *brief = put_file(&world, "brief.txt", "x");
    call(&world, "DELETE", printed("/items/%s", brief), NULL);
    call(&world, "DELETE", printed("/items/%s", old), NULL);
    follow_all(&world, &client);
    assert_int_equal(json_array_size(at(&world, "value")), 2);
    assert_string_equal(text_at(&world, "value.1.id"), old);
    assert_string_equal(text_at(&world, "value.1.deleted.state"), "deleted");
    assert_string_equal(text_at(&world, "value.1.name"), "old.txt");
    assert_null(at(&world, "value.1.size"));
    assert_null(at(&world, "value.1.file.hashes"));
    call_with(&world, "GET", "/v1.0/me/drive/root/delta", NULL, TIDE_TEXT_NONE);
    assert_int_equal(json_array_size(at(&world, "value")), 1);
    json_decref(client.items);
}

TEST(a_business_drive_leaves_out_what_it_does_not_say)
{
    WORLD(world, .business = true);
    const char *id = put_file(&world, "a.txt", "x");
    call(&world, "GET", "/root/delta", NULL);
    const char *link = kept(text_at(&world, "@odata.deltaLink"));
    assert_null(at(&world, "value.1.cTag"));
    assert_null(at(&world, "value.1.parentReference.path"));
    assert_non_null(at(&world, "value.1.eTag"));
    call(&world, "DELETE", printed("/items/%s", id), NULL);
    call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_null(at(&world, "value.1.name"));
    assert_string_equal(text_at(&world, "value.1.id"), id);
    call(&world, "GET", "", NULL);
    assert_string_equal(text_at(&world, "driveType"), "business");
    /* Its id is one in one case only. */
    char drive[64] = "";
    (void)snprintf(drive, sizeof drive, "%s", text_at(&world, "id"));
    assert_int_equal(
        call_with(&world, "GET", printed("/v1.0/drives/%s", drive), NULL, TIDE_TEXT_NONE), 200);
    drive[0] = 'B';
    assert_int_equal(
        call_with(&world, "GET", printed("/v1.0/drives/%s", drive), NULL, TIDE_TEXT_NONE), 404);
}

TEST(token_latest_is_now_and_other_tokens_are_checked)
{
    WORLD(world, .files = 10);
    call(&world, "GET", "/root/delta?token=latest", NULL);
    assert_int_equal(json_array_size(at(&world, "value")), 0);
    const char *link = kept(text_at(&world, "@odata.deltaLink"));
    put_file(&world, "a.txt", "x");
    call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_string_equal(text_at(&world, "value.1.name"), "a.txt");
    const char *token = strstr(link, "token=") + 6;
    assert_int_equal(call(&world, "GET", printed("/root/delta(token='%.43s')", token), NULL), 200);
    assert_string_equal(text_at(&world, "value.1.name"), "a.txt");
    assert_int_equal(call(&world, "GET", "/root/delta?token=nonsense", NULL), 400);
    char *other = strdup(link);
    other[strlen(other) - 1] ^= 1;
    assert_int_equal(call_with(&world, "GET", other, NULL, TIDE_TEXT_NONE), 400);
    free(other);
    world.token = "bob-token";
    assert_int_equal(call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE), 400);
}

TEST(a_forgotten_token_gives_410_and_where_to_begin)
{
    WORLD(world, .files = 10);
    struct client client;
    client_init(&client);
    follow_all(&world, &client);
    box_drive_forget(drive_of(&world));
    call_with(&world, "GET", client.link, NULL, TIDE_TEXT_NONE);
    assert_refused(&world, 410, "resyncRequired", "resyncChangesApplyDifferences");
    client.link = kept(header_of(&world, "Location"));
    json_object_clear(client.items);
    follow_all(&world, &client);
    compare(&world, &client);
    add_fault(world.cloud,
              "{\"method\":\"graph.drive.delta\",\"fault\":\"resync-upload\",\"count\":1}");
    call_with(&world, "GET", client.link, NULL, TIDE_TEXT_NONE);
    assert_refused(&world, 410, "resyncRequired", "resyncChangesUploadDifferences");
    assert_int_equal(
        call_with(&world, "GET", kept(header_of(&world, "Location")), NULL, TIDE_TEXT_NONE), 200);
    json_decref(client.items);
}

/* One change by someone else. */
static void change(struct world *world, tide_rng *rng)
{
    box_drive *drive = drive_of(world);
    const uint32_t slots = box_drive_slots(drive);
    const uint32_t slot = (uint32_t)tide_rng_below(rng, slots);
    const uint32_t folder = (uint32_t)tide_rng_below(rng, slots);
    const struct box_content content = box_content_made(tide_rng_next(rng) >> 1, 100);
    const char *name = printed("n%u", (unsigned)tide_rng_below(rng, 40));
    const struct box_item *item = box_drive_at(drive, slot);
    const bool free_place = box_drive_at(drive, folder)->folder &&
                            !box_drive_at(drive, folder)->gone &&
                            box_drive_child(drive, folder, tide_text_of(name)) == BOX_ITEM_NONE;
    switch (tide_rng_below(rng, 10)) {
    case 0:
        if (slot != 0 && !item->gone)
            box_drive_remove(drive, slot, world->now_ms);
        break;
    case 1:
    case 2:
    case 3:
        if (slot != 0 && !item->gone && free_place && !box_drive_is_below(drive, folder, slot))
            box_drive_move(drive, slot, folder, tide_text_of(name), world->now_ms);
        break;
    case 4:
    case 5:
        if (!item->gone && !item->folder)
            box_drive_write(drive, slot, &content, (struct box_file_times){0}, world->now_ms);
        break;
    default:
        if (free_place)
            (void)box_drive_add(drive, folder, tide_text_of(name),
                                tide_rng_chance(rng, 1, 3) ? NULL : &content,
                                (struct box_file_times){0}, world->now_ms);
        break;
    }
}

static void random_world(uint64_t seed, const char *fault)
{
    WORLD(world, .files = 60);
    tide_rng rng = tide_rng_seeded(seed);
    struct client client;
    client_init(&client);
    client.link = "/v1.0/me/drive/root/delta?$top=7";
    if (fault != NULL)
        add_fault(world.cloud, fault);
    for (int round = 0; round < 15; round++) {
        do {
            for (uint64_t i = tide_rng_below(&rng, 8); i > 0; i--)
                change(&world, &rng); /* also between the pages of a round */
        } while (follow(&world, &client));
    }
    /* The last page may be older than the last change. */
    follow_all(&world, &client);
    compare(&world, &client);
    json_decref(client.items);
}

TEST(random_changes_during_rounds_arrive)
{
    for (uint64_t seed = 1; seed <= 30; seed++)
        random_world(seed, NULL);
}

TEST(repeated_and_empty_pages_change_nothing)
{
    random_world(1, "{\"method\":\"graph.drive.delta\",\"fault\":\"delta-repeat\",\"rate\":0.3}");
    random_world(2, "{\"method\":\"graph.drive.delta\",\"fault\":\"delta-empty\",\"rate\":0.3}");
    random_world(3, "{\"method\":\"graph.drive.delta\",\"fault\":\"delta-old\",\"rate\":0.3}");
}

TEST(a_page_can_come_backwards_and_without_its_removals)
{
    WORLD(world, 0);
    make_folder(&world, "/root", "F");
    put_file(&world, "F/a.txt", "x");
    call(&world, "GET", "/root/delta", NULL);
    const char *link = kept(text_at(&world, "@odata.deltaLink"));
    add_fault(world.cloud,
              "{\"method\":\"graph.drive.delta\",\"fault\":\"delta-backwards\",\"count\":1}");
    call(&world, "GET", "/root/delta", NULL);
    assert_string_equal(text_at(&world, "value.0.name"), "a.txt");
    assert_true(json_is_object(at(&world, "value.2.root")));
    add_fault(world.cloud,
              "{\"method\":\"graph.drive.delta\",\"fault\":\"wrong-hash\",\"count\":1}");
    call(&world, "GET", "/root/delta", NULL);
    assert_string_equal(text_at(&world, "value.2.file.hashes.quickXorHash"),
                        "/////////////////////////////w==");
    assert_non_null(at(&world, "value.1.parentReference.path"));
    add_fault(world.cloud,
              "{\"method\":\"graph.drive.delta\",\"fault\":\"delta-no-paths\",\"count\":1}");
    call(&world, "GET", "/root/delta", NULL);
    assert_null(at(&world, "value.1.parentReference.path"));
    call(&world, "DELETE", "/root:/F", NULL);
    add_fault(world.cloud,
              "{\"method\":\"graph.drive.delta\",\"fault\":\"delta-no-removals\",\"count\":1}");
    call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_int_equal(json_array_size(at(&world, "value")), 1);
}
