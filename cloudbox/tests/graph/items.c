/* Drives and items: by id, by path, listings, folders, moves, removals, conditions. */
#include "graph_fixture.h"

#include "cloudbox/graph/address.h"

/* ---- addresses ---- */

static const char *address_text(const char *target)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    struct box_target parsed;
    struct box_address address;
    assert_true(box_target_parse(tide_text_of(target), &arena, &parsed));
    if (!box_address_parse(&parsed, &arena, &address))
        return "none";
    return printed("%d|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s", (int)address.kind, (int)address.drive.bytes,
                   address.drive.data, (int)address.id.bytes, address.id.data,
                   (int)address.path.bytes, address.path.data, (int)address.what.bytes,
                   address.what.data, (int)address.more.bytes, address.more.data,
                   (int)address.token.bytes, address.token.data);
}

TEST(addresses_of_every_form_are_read)
{
    static const char *const known[][2] = {
        {"/v1.0/me", "1||||||"},
        {"/v1.0/me/drives", "2||||||"},
        {"/v1.0/drives", "2||||||"},
        {"/v1.0/me/drive", "3||||||"},
        {"/beta/drives/AB", "3|AB|||||"},
        {"/v1.0/me/drive/root", "4||||||"},
        {"/v1.0/me/drive/root/children", "4||||children||"},
        {"/v1.0/drives/AB/items/C!1/content", "4|AB|C!1||content||"},
        {"/v1.0/me/drive/root:/a/b%20c.txt", "4|||a/b c.txt|||"},
        {"/v1.0/me/drive/root:/a/b.txt:/content", "4|||a/b.txt|content||"},
        {"/v1.0/me/drive/root:/a/b.txt:", "4|||a/b.txt|||"},
        {"/v1.0/me/drive/root:/./a//b:/children", "4|||a/b|children||"},
        {"/v1.0/me/drive/root:/", "4||||||"},
        {"/v1.0/me/drive/root%3A/a%3A/children", "4|||a|children||"},
        {"/v1.0/me/drive/items/X:/y.txt:/createUploadSession", "4||X|y.txt|createUploadSession||"},
        {"/v1.0/me/drive/items/root/delta", "4||||delta||"},
        {"/v1.0/me/drive/root/delta(token='abc')", "4||||delta||abc"},
        {"/v1.0/me/drive/root/microsoft.graph.delta()", "4||||delta||"},
        {"/v1.0/me/drive/items", "0||||||"},
        {"/v1.0/me/messages", "0||||||"},
        {"/_files/download/xyz", "7||||download|xyz|"},
        {"/v1.0/subscriptions", "5||||||"},
        {"/v1.0/subscriptions/abc", "6|||||abc|"},
        {"/gmail/v1/users/me", "none"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_string_equal(address_text(known[i][0]), known[i][1]);
}

/* ---- reading ---- */

TEST(a_drive_says_whose_it_is_and_how_full)
{
    WORLD(world, .drive_bytes = 1000);
    put_file(&world, "a.txt", "hello");
    assert_int_equal(call(&world, "GET", "", NULL), 200);
    assert_string_equal(text_at(&world, "driveType"), "personal");
    assert_int_equal(number_at(&world, "quota.total"), 1000);
    assert_int_equal(number_at(&world, "quota.used"), 5);
    assert_int_equal(number_at(&world, "quota.remaining"), 995);
    const char *id = kept(text_at(&world, "id"));
    assert_int_equal(
        call_with(&world, "GET", printed("/v1.0/drives/%s/root", id), NULL, TIDE_TEXT_NONE), 200);
    assert_int_equal(number_at(&world, "folder.childCount"), 1);
    assert_true(json_is_object(at(&world, "root")));
    assert_int_equal(
        call_with(&world, "GET", "/v1.0/drives/0000000000000000/root", NULL, TIDE_TEXT_NONE), 404);
    assert_refused(&world, 404, "itemNotFound", "");
    assert_int_equal(call_with(&world, "GET", "/v1.0/me/drives", NULL, TIDE_TEXT_NONE), 200);
    assert_string_equal(text_at(&world, "value.0.id"), id);
    assert_int_equal(
        call_with(&world, "GET", "/v1.0/users/bob@example.com/drive", NULL, TIDE_TEXT_NONE), 403);
}

TEST(an_item_is_the_same_by_id_and_by_path)
{
    WORLD(world, 0);
    make_folder(&world, "/root", "Docs");
    const char *id = put_file(&world, "Docs/a%20b.txt", "hello world");
    assert_int_equal(call(&world, "GET", "/root:/docs/A%20B.TXT", NULL), 200);
    assert_string_equal(text_at(&world, "id"), id);
    assert_string_equal(text_at(&world, "name"), "a b.txt");
    assert_string_equal(text_at(&world, "file.hashes.quickXorHash"),
                        "aCgDG9jwBhDc4Q1yawMZAAAAAAA=");
    assert_int_equal(number_at(&world, "size"), 11);
    json_auto_t *by_path = json_incref(world.json);
    assert_int_equal(call(&world, "GET", printed("/items/%s", id), NULL), 200);
    assert_true(json_equal(by_path, world.json));
    const char *path = text_at(&world, "parentReference.path");
    assert_string_equal(path + strlen(path) - 11, "/root:/Docs");
    assert_int_equal(call(&world, "GET", "/root:/Docs/none.txt", NULL), 404);
    assert_int_equal(call(&world, "GET", "/root:/Docs/a%20b.txt/c", NULL), 404);
    assert_int_equal(call(&world, "GET", "/items/nonsense", NULL), 404);
}

TEST(select_gives_only_what_was_asked_for)
{
    WORLD(world, 0);
    put_file(&world, "a.txt", "x");
    assert_int_equal(call(&world, "GET", "/root:/a.txt?$select=id,name,size", NULL), 200);
    assert_int_equal(json_object_size(world.json), 3);
    assert_int_equal(call(&world, "GET", "/root:/a.txt?select=name", NULL), 200);
    assert_int_equal(json_object_size(world.json), 2);
    assert_int_equal(call(&world, "GET", "/root:/a.txt?$select=@microsoft.graph.downloadUrl", NULL),
                     200);
    assert_true(at(&world, "@microsoft.graph.downloadUrl") != NULL);
}

/* Every item of the folder exactly once, whatever the page size. */
TEST(listings_are_whole_over_pages)
{
    WORLD(world, .files = 120);
    static const int tops[] = {1, 7, 50, 1000};
    assert_int_equal(call(&world, "GET", "/root/children", NULL), 200);
    const char *shelf = kept(text_at(&world, "value.0.id"));
    assert_int_equal(call(&world, "GET", printed("/items/%s/children", shelf), NULL), 200);
    assert_int_equal(json_array_size(at(&world, "value")), 3);
    const char *folder = kept(text_at(&world, "value.0.id"));
    for (size_t i = 0; i < sizeof tops / sizeof tops[0]; i++) {
        const char *next = printed("/v1.0/me/drive/items/%s/children?$top=%d", folder, tops[i]);
        json_auto_t *seen = json_object();
        while (next[0] != '\0') {
            assert_int_equal(call_with(&world, "GET", next, NULL, TIDE_TEXT_NONE), 200);
            size_t k = 0;
            json_t *item = NULL;
            json_array_foreach(at(&world, "value"), k, item)
            {
                const char *id = json_string_value(json_object_get(item, "id"));
                assert_null(json_object_get(seen, id));
                json_object_set_new(seen, id, json_true());
            }
            next = kept(text_at(&world, "@odata.nextLink"));
        }
        assert_int_equal(json_object_size(seen), 50);
    }
    call(&world, "GET", "/root/children?$skiptoken=x", NULL);
    assert_refused(&world, 400, "invalidRequest", "");
}

/* ---- changing ---- */

TEST(a_folder_is_made_once_and_conflicts_do_what_was_asked)
{
    WORLD(world, 0);
    const char *id = make_folder(&world, "/root", "New");
    call(&world, "POST", "/root/children", "{\"name\":\"NEW\",\"folder\":{}}");
    assert_refused(&world, 409, "nameAlreadyExists", "");
    call(&world, "POST", "/root/children",
         "{\"name\":\"new\",\"folder\":{},\"@microsoft.graph.conflictBehavior\":\"rename\"}");
    assert_int_equal(world.answer.status, 201);
    assert_string_equal(text_at(&world, "name"), "new 1");
    call(&world, "POST", "/root/children",
         "{\"name\":\"new\",\"folder\":{},\"@microsoft.graph.conflictBehavior\":\"replace\"}");
    assert_int_equal(world.answer.status, 200);
    assert_string_equal(text_at(&world, "id"), id);
    call(&world, "POST", "/root/children",
         "{\"name\":\"new\",\"folder\":{},\"@microsoft.graph.conflictBehavior\":\"guess\"}");
    assert_int_equal(world.answer.status, 400);
    call(&world, "POST", "/root/children", "{\"name\":\"a|b\",\"folder\":{}}");
    assert_refused(&world, 400, "invalidRequest", "invalidPath");
    call(&world, "POST", "/root/children", "{\"name\":\"file\"}");
    assert_int_equal(world.answer.status, 400);
    call(&world, "POST", "/root/children", "not json");
    assert_refused(&world, 400, "invalidRequest", "");
}

TEST(an_item_is_renamed_moved_and_keeps_its_id)
{
    WORLD(world, 0);
    const char *folder = make_folder(&world, "/root", "F");
    const char *id = put_file(&world, "a.txt", "x");
    const char *etag = kept(text_at(&world, "eTag"));
    const char *ctag = kept(text_at(&world, "cTag"));
    assert_int_equal(
        call(&world, "PATCH", printed("/items/%s", id),
             printed("{\"name\":\"b.txt\",\"parentReference\":{\"id\":\"%s\"}}", folder)),
        200);
    assert_string_equal(text_at(&world, "id"), id);
    assert_string_equal(text_at(&world, "name"), "b.txt");
    assert_string_equal(text_at(&world, "parentReference.id"), folder);
    assert_string_not_equal(text_at(&world, "eTag"), etag);
    assert_string_equal(text_at(&world, "cTag"), ctag);
    assert_int_equal(call(&world, "PATCH", printed("/items/%s", id), "{\"name\":\"B.TXT\"}"), 200);
    assert_string_equal(text_at(&world, "name"), "B.TXT");
    assert_int_equal(call(&world, "PATCH", printed("/items/%s", id),
                          "{\"parentReference\":{\"path\":\"/drive/root:\"}}"),
                     200);
    assert_int_equal(call(&world, "GET", "/root:/B.TXT", NULL), 200);
    call(&world, "PATCH", printed("/items/%s", folder),
         printed("{\"parentReference\":{\"id\":\"%s\"}}", folder));
    assert_refused(&world, 400, "invalidRequest", "");
    call(&world, "PATCH", "/root", "{\"name\":\"x\"}");
    assert_refused(&world, 403, "accessDenied", "");
    put_file(&world, "c.txt", "y");
    call(&world, "PATCH", printed("/items/%s", id), "{\"name\":\"C.txt\"}");
    assert_refused(&world, 409, "nameAlreadyExists", "");
    call(&world, "PATCH", printed("/items/%s", id), "{\"parentReference\":{\"id\":\"nowhere\"}}");
    assert_refused(&world, 404, "itemNotFound", "");
}

TEST(file_times_are_the_clients_own)
{
    WORLD(world, 0);
    const char *id = put_file(&world, "a.txt", "x");
    assert_int_equal(call(&world, "PATCH", printed("/items/%s", id),
                          "{\"fileSystemInfo\":{\"createdDateTime\":\"2001-02-03T04:05:06Z\","
                          "\"lastModifiedDateTime\":\"2002-03-04T05:06:07.1234567Z\"}}"),
                     200);
    assert_string_equal(text_at(&world, "fileSystemInfo.createdDateTime"), "2001-02-03T04:05:06Z");
    assert_string_equal(text_at(&world, "fileSystemInfo.lastModifiedDateTime"),
                        "2002-03-04T05:06:07Z");
    assert_string_equal(text_at(&world, "lastModifiedDateTime"), "2026-09-21T14:13:20Z");
    call(&world, "PATCH", printed("/items/%s", id),
         "{\"fileSystemInfo\":{\"createdDateTime\":\"yesterday\"}}");
    assert_refused(&world, 400, "invalidRequest", "");
}

TEST(conditions_hold_for_every_change)
{
    WORLD(world, 0);
    const char *id = put_file(&world, "a.txt", "x");
    const char *path = printed("/v1.0/me/drive/items/%s", id);
    const char *etag = kept(text_at(&world, "eTag"));
    const char *ctag = kept(text_at(&world, "cTag"));
    assert_int_equal(call_with(&world, "GET", path, HEADERS("If-None-Match", etag), TIDE_TEXT_NONE),
                     304);
    assert_int_equal(world.bytes.bytes, 0);
    assert_int_equal(call_with(&world, "PATCH", path, HEADERS("If-Match", etag),
                               TIDE_TEXT("{\"name\":\"b.txt\"}")),
                     200);
    call_with(&world, "PATCH", path, HEADERS("If-Match", etag), TIDE_TEXT("{\"name\":\"c.txt\"}"));
    assert_refused(&world, 412, "resourceModified", "entityTagDoesNotMatch");
    assert_int_equal(call_with(&world, "PUT", printed("%s/content", path),
                               HEADERS("If-Match", ctag), TIDE_TEXT("y")),
                     200);
    call_with(&world, "PUT", printed("%s/content", path), HEADERS("If-Match", ctag),
              TIDE_TEXT("z"));
    assert_refused(&world, 412, "resourceModified", "entityTagDoesNotMatch");
    call_with(&world, "PUT", "/v1.0/me/drive/root:/b.txt:/content", HEADERS("If-None-Match", "*"),
              TIDE_TEXT("z"));
    assert_refused(&world, 412, "resourceModified", "entityTagDoesNotMatch");
    call_with(&world, "PUT", "/v1.0/me/drive/root:/new.txt:/content", HEADERS("If-Match", ctag),
              TIDE_TEXT("z"));
    assert_refused(&world, 412, "resourceModified", "entityTagDoesNotMatch");
    call_with(&world, "DELETE", path, HEADERS("If-Match", etag), TIDE_TEXT_NONE);
    assert_refused(&world, 412, "resourceModified", "entityTagDoesNotMatch");
    assert_int_equal(call_with(&world, "DELETE", path,
                               HEADERS("If-Match", printed("\"other,1\", %s",
                                                           (call(&world, "GET", path + 14, NULL),
                                                            text_at(&world, "eTag")))),
                               TIDE_TEXT_NONE),
                     204);
}

TEST(a_removed_folder_takes_everything_with_it)
{
    WORLD(world, 0);
    const char *folder = make_folder(&world, "/root", "F");
    const char *file = put_file(&world, "F/a.txt", "x");
    assert_int_equal(call(&world, "DELETE", printed("/items/%s", folder), NULL), 204);
    assert_int_equal(call(&world, "GET", printed("/items/%s", file), NULL), 404);
    assert_int_equal(call(&world, "GET", printed("/items/%s", folder), NULL), 404);
    assert_int_equal(call(&world, "DELETE", "/root", NULL), 403);
    assert_int_equal(box_drive_used(drive_of(&world)), 0);
}

/* ---- permission ---- */

TEST(calls_need_a_token_and_its_scope)
{
    WORLD(world, 0);
    world.token = NULL;
    call(&world, "GET", "", NULL);
    assert_refused(&world, 401, "InvalidAuthenticationToken", "");
    assert_true(header_of(&world, "WWW-Authenticate")[0] != '\0');
    world.token = "wrong";
    call(&world, "GET", "", NULL);
    assert_refused(&world, 401, "InvalidAuthenticationToken", "");
    world.token = "bob-token";
    const char *id = "0123456789ABCDEF!105";
    assert_int_equal(call(&world, "GET", printed("/items/%s", id), NULL), 404);
    assert_int_equal(call(&world, "POST", "/root/nothing", "{}"), 404);
    assert_refused(&world, 404, "itemNotFound", "");
    assert_int_equal(call(&world, "POST", "/root/delta", "{}"), 405);
    assert_refused(&world, 405, "notAllowed", "");
}
