/* Batches, and copies with their monitor. */
#include "graph_fixture.h"

static int batch(struct world *world, const char *body)
{
    return call_with(world, "POST", "/v1.0/$batch", HEADERS("Content-Type", "application/json"),
                     tide_text_of(body));
}

TEST(a_batch_answers_every_call_by_its_id)
{
    WORLD(world, 0);
    put_file(&world, "a.txt", "hello");
    assert_int_equal(
        batch(&world,
              "{\"requests\":[{\"id\":\"1\",\"method\":\"GET\",\"url\":\"/me/drive/root:/a.txt\"},"
              "{\"id\":\"2\",\"method\":\"POST\",\"url\":\"me/drive/root/children\","
              "\"headers\":{\"Content-Type\":\"application/json\"},"
              "\"body\":{\"name\":\"F\",\"folder\":{}}},"
              "{\"id\":\"3\",\"method\":\"PUT\",\"url\":\"/me/drive/root:/b.txt:/content\","
              "\"headers\":{\"Content-Type\":\"text/plain\"},\"body\":\"d29ybGQ=\"},"
              "{\"id\":\"4\",\"method\":\"GET\",\"url\":\"/me/drive/root:/a.txt:/content\"},"
              "{\"id\":\"5\",\"method\":\"GET\",\"url\":\"/me/drive/root:/none\"}]}"),
        200);
    static const int statuses[] = {200, 201, 201, 302, 404};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(number_at(&world, printed("responses.%d.status", (int)i)), statuses[i]);
        assert_string_equal(text_at(&world, printed("responses.%d.id", (int)i)),
                            printed("%d", (int)i + 1));
    }
    assert_string_equal(text_at(&world, "responses.0.body.name"), "a.txt");
    assert_true(text_at(&world, "responses.3.headers.Location")[0] != '\0');
    assert_string_equal(text_at(&world, "responses.4.body.error.code"), "itemNotFound");
    assert_string_equal(get_bytes(&world, "/root:/b.txt:"), "world");
}

TEST(a_call_waits_for_what_it_depends_on_and_fails_with_it)
{
    WORLD(world, 0);
#define FOLDER(id, url, name, more)                                                                \
    "{\"id\":\"" id "\",\"method\":\"POST\",\"url\":\"" url                                        \
    "/children\",\"body\":{\"name\":\"" name "\",\"folder\":{}}" more "}"
    assert_int_equal(
        batch(
            &world,
            "{\"requests\":[" FOLDER(
                "c", "/me/drive/root:/A/B:", "C",
                ",\"dependsOn\":[\"b\"]") "," FOLDER("b", "/me/drive/root:/A:", "B",
                                                     ",\"dependsOn\":[\"a\"]") "," FOLDER("a",
                                                                                          "/me/"
                                                                                          "drive/"
                                                                                          "root",
                                                                                          "A",
                                                                                          "") "]}"),
        200);
    for (int i = 0; i < 3; i++)
        assert_int_equal(number_at(&world, printed("responses.%d.status", i)), 201);
    assert_int_equal(call(&world, "GET", "/root:/A/B/C", NULL), 200);
    batch(&world, "{\"requests\":[" FOLDER("a", "/me/drive/root", "A", "") "," FOLDER(
                      "x", "/me/drive/root", "X", ",\"dependsOn\":[\"a\"]") "]}");
    assert_int_equal(number_at(&world, "responses.0.status"), 409);
    assert_int_equal(number_at(&world, "responses.1.status"), 424);
    assert_int_equal(call(&world, "GET", "/root:/X", NULL), 404);
#undef FOLDER
}

TEST(batches_that_are_wrong_are_refused_as_a_whole)
{
    WORLD(world, 0);
#define GET_ROOT(id, more) "{\"id\":\"" id "\",\"method\":\"GET\",\"url\":\"/me/drive\"" more "}"
    static const char *const bad[] = {
        "",
        "{}",
        "{\"requests\":[]}",
        "{\"requests\":[{\"id\":\"1\"}]}",
        "{\"requests\":[" GET_ROOT("a", "") "," GET_ROOT("A", "") "]}",
        "{\"requests\":[" GET_ROOT("a", ",\"dependsOn\":[\"b\"]") "]}",
        "{\"requests\":[" GET_ROOT("a", ",\"dependsOn\":[\"b\"]") "," GET_ROOT(
            "b", ",\"dependsOn\":[\"a\"]") "]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        batch(&world, bad[i]);
        assert_refused(&world, 400, "invalidRequest", "");
    }
    tide_auto_buf many = tide_buf_heap(1 << 20);
    box_add_cstr(&many, "{\"requests\":[");
    for (int i = 0; i < 21; i++)
        box_print(&many, "%s{\"id\":\"%d\",\"method\":\"GET\",\"url\":\"/me/drive\"}",
                  i > 0 ? "," : "", i);
    box_add_cstr(&many, "]}");
    batch(&world, tide_buf_cstr(&many));
    assert_refused(&world, 400, "invalidRequest", "");
#undef GET_ROOT
}

TEST(each_part_is_throttled_alone_with_its_own_time)
{
    WORLD(world, .quota = BOX_QUOTA_2026);
    int calls = 0;
    while (call(&world, "GET", "", NULL) == 200)
        calls++;
    assert_true(calls > 0);
    assert_int_equal(batch(&world, "{\"requests\":[{\"id\":\"1\",\"method\":\"GET\","
                                   "\"url\":\"/me/drive\"}]}"),
                     200);
    assert_int_equal(number_at(&world, "responses.0.status"), 429);
    assert_true(text_at(&world, "responses.0.headers.Retry-After")[0] != '\0');
}

/* ---- copies ---- */

TEST(a_folder_is_copied_with_everything_and_the_monitor_says_when)
{
    WORLD(world, 0);
    make_folder(&world, "/root", "F");
    make_folder(&world, "/root:/F:", "G");
    put_file(&world, "F/G/a.txt", "hello");
    const char *to = make_folder(&world, "/root", "T");
    const char *body = printed("{\"name\":\"copy\",\"parentReference\":{\"id\":\"%s\"}}", to);
    assert_int_equal(call(&world, "POST", "/root:/F:/copy", body), 202);
    const char *monitor = kept(header_of(&world, "Location"));
    assert_int_equal(call_with(&world, "GET", monitor, NULL, TIDE_TEXT_NONE), 202);
    assert_string_equal(text_at(&world, "status"), "inProgress");
    world.now_ms += 1000;
    assert_int_equal(call_with(&world, "GET", monitor, NULL, TIDE_TEXT_NONE), 200);
    assert_string_equal(text_at(&world, "status"), "completed");
    const char *id = kept(text_at(&world, "resourceId"));
    assert_int_equal(call(&world, "GET", printed("/items/%s", id), NULL), 200);
    assert_string_equal(get_bytes(&world, "/root:/T/copy/G/a.txt:"), "hello");
    assert_string_equal(get_bytes(&world, "/root:/F/G/a.txt:"), "hello");

    assert_int_equal(call(&world, "POST", "/root:/F:/copy", body), 202);
    world.now_ms += 1000;
    call_with(&world, "GET", kept(header_of(&world, "Location")), NULL, TIDE_TEXT_NONE);
    assert_string_equal(text_at(&world, "status"), "failed");
    assert_string_equal(text_at(&world, "error.code"), "nameAlreadyExists");
    call(&world, "POST", "/root:/F:/copy", "{\"parentReference\":{\"path\":\"/drive/root:/F/G\"}}");
    assert_refused(&world, 400, "invalidRequest", "");
    assert_int_equal(call_with(&world, "GET", "/_files/monitor/x", NULL, TIDE_TEXT_NONE), 404);
}

TEST(an_address_for_one_thing_is_none_for_another)
{
    WORLD(world, 0);
    put_file(&world, "a.txt", "hello");
    call(&world, "GET", "/root:/a.txt:/content", NULL);
    const char *token = strrchr(kept(header_of(&world, "Location")), '/') + 1;
    assert_int_equal(
        call_with(&world, "GET", printed("/_files/monitor/%s", token), NULL, TIDE_TEXT_NONE), 404);
}
