/* Bytes: small uploads, downloads with ranges, quota, names that are taken. */
#include "graph_fixture.h"

TEST(an_upload_comes_back_byte_by_byte)
{
    WORLD(world, 0);
    const char *id = put_file(&world, "a.txt", "hello world");
    assert_int_equal(world.answer.status, 201);
    assert_string_equal(get_bytes(&world, "/root:/a.txt:"), "hello world");
    assert_string_equal(get_bytes(&world, printed("/items/%s", id)), "hello world");
    assert_string_equal(put_file(&world, "a.txt", ""), id);
    assert_int_equal(world.answer.status, 200);
    assert_int_equal(number_at(&world, "size"), 0);
    assert_string_equal(get_bytes(&world, "/root:/a.txt:"), "");
    assert_int_equal(call(&world, "GET", "/root/content", NULL), 400);
}

TEST(ranges_are_served_as_http_says)
{
    WORLD(world, 0);
    put_file(&world, "a.txt", "0123456789");
    call(&world, "GET", "/root:/a.txt:/content", NULL);
    const char *url = kept(header_of(&world, "Location"));
    static const struct {
        const char *range;
        int status;
        const char *bytes;
        const char *span;
    } known[] = {
        {"bytes=2-4", 206, "234", "bytes 2-4/10"},
        {"bytes=7-", 206, "789", "bytes 7-9/10"},
        {"bytes=-3", 206, "789", "bytes 7-9/10"},
        {"bytes=0-99", 206, "0123456789", "bytes 0-9/10"},
        {"bytes=-99", 206, "0123456789", "bytes 0-9/10"},
        {"bytes=0-0", 206, "0", "bytes 0-0/10"},
        {"bytes=4-2", 200, "0123456789", ""},
        {"lines=1-2", 200, "0123456789", ""},
        {"bytes=1-2,4-5", 200, "0123456789", ""},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(
            call_with(&world, "GET", url, HEADERS("Range", known[i].range), TIDE_TEXT_NONE),
            known[i].status);
        assert_string_equal(tide_buf_cstr(&world.bytes), known[i].bytes);
        assert_string_equal(header_of(&world, "Content-Range"), known[i].span);
    }
    call_with(&world, "GET", url, HEADERS("Range", "bytes=10-"), TIDE_TEXT_NONE);
    assert_refused(&world, 416, "invalidRange", "");
    assert_string_equal(header_of(&world, "Content-Range"), "bytes */10");
}

TEST(if_range_gives_the_whole_of_a_content_that_changed)
{
    WORLD(world, 0);
    put_file(&world, "a.txt", "0123456789");
    call(&world, "GET", "/root:/a.txt:/content", NULL);
    const char *url = kept(header_of(&world, "Location"));
    call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE);
    const char *tag = kept(header_of(&world, "ETag"));
    const char *const *headers = HEADERS("Range", "bytes=5-", "If-Range", tag);
    assert_int_equal(call_with(&world, "GET", url, headers, TIDE_TEXT_NONE), 206);
    assert_string_equal(tide_buf_cstr(&world.bytes), "56789");
    put_file(&world, "a.txt", "abcdefghij");
    assert_int_equal(call_with(&world, "GET", url, headers, TIDE_TEXT_NONE), 200);
    assert_string_equal(tide_buf_cstr(&world.bytes), "abcdefghij");
}

TEST(a_download_address_ends_and_cannot_be_made_up)
{
    WORLD(world, 0);
    put_file(&world, "a.txt", "x");
    call(&world, "GET", "/root:/a.txt:/content", NULL);
    char url[300];
    snprintf(url, sizeof url, "%s", header_of(&world, "Location"));
    world.now_ms += 3599 * 1000;
    assert_int_equal(call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE), 200);
    world.now_ms += 1000;
    call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE);
    assert_refused(&world, 401, "unauthenticated", "");
    const size_t bytes = strlen(url);
    for (size_t i = bytes - 48; i < bytes; i++) {
        char other[300];
        snprintf(other, sizeof other, "%s", url);
        other[i] = other[i] == '0' ? '1' : '0';
        assert_int_equal(call_with(&world, "GET", other, NULL, TIDE_TEXT_NONE), 401);
    }
    assert_int_equal(call_with(&world, "GET", "/_files/download/x", NULL, TIDE_TEXT_NONE), 401);
    assert_int_equal(call_with(&world, "GET", "/_files/other/x", NULL, TIDE_TEXT_NONE), 404);
}

/* 50 GB are served like ten bytes. */
TEST(a_huge_generated_file_is_served_in_pieces)
{
    WORLD(world, .files = 1, .file_bytes = UINT64_C(50) << 30);
    call(&world, "GET", "/root:/folder-0000001/folder-0000002/children", NULL);
    call(&world, "GET",
         printed("/items/%s:/folder-0000002:/children",
                 (call(&world, "GET", "/root/children", NULL), text_at(&world, "value.0.id"))),
         NULL);
    assert_int_equal(number_at(&world, "value.0.size"), INT64_C(50) << 30);
    const char *url = kept(
        json_string_value(json_object_get(at(&world, "value.0"), "@microsoft.graph.downloadUrl")));
    assert_int_equal(call_with(&world, "GET", url,
                               HEADERS("Range", "bytes=53687000000-53687000099"), TIDE_TEXT_NONE),
                     206);
    assert_int_equal(world.bytes.bytes, 100);
    assert_string_equal(header_of(&world, "Content-Range"),
                        "bytes 53687000000-53687000099/53687091200");
}

TEST(conflict_behaviour_of_an_upload_is_what_was_asked)
{
    WORLD(world, 0);
    const char *id = put_file(&world, "a.txt", "1");
#define PUT_AS(how)                                                                                \
    call_with(&world, "PUT",                                                                       \
              "/v1.0/me/drive/root:/A.txt:/content?@microsoft.graph.conflictBehavior=" how, NULL,  \
              TIDE_TEXT("2"))
    PUT_AS("fail");
    assert_refused(&world, 409, "nameAlreadyExists", "");
    assert_int_equal(PUT_AS("rename"), 201);
    assert_string_equal(text_at(&world, "name"), "A 1.txt");
    assert_string_not_equal(text_at(&world, "id"), id);
    assert_int_equal(PUT_AS("replace"), 200);
    assert_string_equal(text_at(&world, "id"), id);
    assert_string_equal(text_at(&world, "name"), "a.txt");
#undef PUT_AS
    make_folder(&world, "/root", "F");
    call_with(&world, "PUT", "/v1.0/me/drive/root:/F:/content", NULL, TIDE_TEXT("x"));
    assert_refused(&world, 409, "nameAlreadyExists", "");
    call_with(&world, "PUT", "/v1.0/me/drive/root:/no/a.txt:/content", NULL, TIDE_TEXT("x"));
    assert_refused(&world, 404, "itemNotFound", "");
    call_with(&world, "PUT", "/v1.0/me/drive/root:/con:/content", NULL, TIDE_TEXT("x"));
    assert_refused(&world, 400, "invalidRequest", "invalidPath");
}

TEST(a_full_drive_takes_nothing_more)
{
    WORLD(world, .drive_bytes = 10);
    put_file(&world, "a.txt", "12345678");
    call_with(&world, "PUT", "/v1.0/me/drive/root:/b.txt:/content", NULL, TIDE_TEXT("123"));
    assert_refused(&world, 507, "quotaLimitReached", "");
    put_file(&world, "a.txt", "0123456789"); /* in place of the old bytes it fits */
    call_with(&world, "PUT", "/v1.0/me/drive/root:/a.txt:/content", NULL, TIDE_TEXT("01234567890"));
    assert_refused(&world, 507, "quotaLimitReached", "");
    put_file(&world, "empty.txt", "");
    assert_string_equal(get_bytes(&world, "/root:/a.txt:"), "0123456789");
}

TEST(the_longest_path_is_taken_and_no_longer_one)
{
    WORLD(world, 0);
    char name[200];
    memset(name, 'x', sizeof name);
    name[199] = '\0';
    make_folder(&world, "/root", name);
    make_folder(&world, printed("/root:/%s:", name), "y");
    name[198] = '\0'; /* 199 + 1 + 1 + 1 + 198 */
    assert_int_equal(call(&world, "POST", printed("/root:/%sx/y:/children", name),
                          printed("{\"name\":\"%s\",\"folder\":{}}", name)),
                     201);
    call(&world, "POST", printed("/root:/%sx/y:/children", name),
         printed("{\"name\":\"%sz\",\"folder\":{}}", name));
    assert_refused(&world, 400, "invalidRequest", "pathIsTooLong");
}

/* As far away as the API: what a transfer costs is not one call's latency. */
TEST(addresses_of_bytes_take_the_latency_too)
{
    WORLD(world, .latency_ms = 30);
    put_file(&world, "a.txt", "x");
    assert_int_equal(world.answer.plan.delay_ms, 30);
    call(&world, "GET", "/root:/a.txt", NULL);
    call_with(&world, "GET", kept(text_at(&world, "@microsoft.graph.downloadUrl")), NULL,
              TIDE_TEXT_NONE);
    assert_int_equal(world.answer.status, 200);
    assert_int_equal(world.answer.plan.delay_ms, 30);
}
