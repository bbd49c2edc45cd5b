/* What the referee writes down, what limits refuse, and what the control page does to drives. */
#include "graph_fixture.h"

static json_int_t counted(struct world *world, const char *name)
{
    json_auto_t *stats = box_cloud_stats(world->cloud, NULL, false);
    const json_t *user = json_object_get(json_object_get(stats, "users"), "alice@example.com");
    return json_integer_value(json_object_get(json_object_get(user, "drive"), name));
}

/* ---- the record ---- */

TEST(bytes_that_are_fetched_again_are_counted)
{
    WORLD(world, 0);
    put_file(&world, "a.txt", "0123456789");
    call(&world, "GET", "/root:/a.txt:/content", NULL);
    const char *url = kept(header_of(&world, "Location"));
    call_with(&world, "GET", url, HEADERS("Range", "bytes=0-5"), TIDE_TEXT_NONE);
    call_with(&world, "GET", url, HEADERS("Range", "bytes=6-9"), TIDE_TEXT_NONE);
    assert_int_equal(counted(&world, "bytes"), 10);
    assert_int_equal(counted(&world, "bytes_again"), 0);
    call_with(&world, "GET", url, HEADERS("Range", "bytes=7-9"), TIDE_TEXT_NONE);
    assert_int_equal(counted(&world, "bytes_again"), 3);
    put_file(&world, "a.txt", "abc"); /* another content is another file */
    get_bytes(&world, "/root:/a.txt:");
    assert_int_equal(counted(&world, "bytes_again"), 3);
    box_cloud_stats_reset(world.cloud);
    assert_int_equal(counted(&world, "bytes"), 0);
}

TEST(a_delta_link_that_is_used_again_after_it_told_something_is_counted)
{
    WORLD(world, 0);
    call(&world, "GET", "/root/delta", NULL);
    const char *link = kept(text_at(&world, "@odata.deltaLink"));
    for (int i = 0; i < 3; i++) /* polling */
        call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_int_equal(counted(&world, "tokens_again"), 0);
    put_file(&world, "a.txt", "x");
    call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_int_equal(counted(&world, "tokens_again"), 0);
    call_with(&world, "GET", link, NULL, TIDE_TEXT_NONE);
    assert_int_equal(counted(&world, "tokens_again"), 1);
}

TEST(blind_changes_are_violations)
{
    WORLD(world, 0);
    put_file(&world, "a.txt", "1");
    assert_int_equal(violations(&world, "overwrite-blind"), 0);
    const char *etag = kept(text_at(&world, "eTag"));
    call_with(&world, "PUT", "/v1.0/me/drive/root:/a.txt:/content", HEADERS("If-Match", etag),
              TIDE_TEXT("2"));
    assert_int_equal(violations(&world, "overwrite-blind"), 0);
    put_file(&world, "a.txt", "3");
    assert_int_equal(violations(&world, "overwrite-blind"), 1);
    call(&world, "DELETE", "/root:/a.txt", NULL);
    assert_int_equal(violations(&world, "delete-unseen"), 0);
    call_with(&world, "POST", "/_cloud/drive/put", NULL,
              TIDE_TEXT("{\"user\":\"alice@example.com\",\"path\":\"b.txt\",\"content\":\"x\"}"));
    call(&world, "DELETE", "/root:/b.txt", NULL);
    assert_int_equal(world.answer.status, 204);
    assert_int_equal(violations(&world, "delete-unseen"), 1);
}

/* Downloads are not judged: clients that follow the redirect within one host may send it. */
TEST(a_token_sent_to_an_upload_address_is_a_violation)
{
    WORLD(world, 0);
    call(&world, "POST", "/root:/a.bin:/createUploadSession", "{}");
    assert_int_equal(
        call_with(&world, "PUT", kept(text_at(&world, "uploadUrl")),
                  HEADERS("Authorization", "Bearer alice-token", "Content-Range", "bytes 0-2/3"),
                  TIDE_TEXT("abc")),
        201);
    assert_int_equal(violations(&world, "token-leaked"), 1);
}

/* ---- limits ---- */

TEST(who_asks_too_often_is_told_to_wait_and_refused_until_then)
{
    WORLD(world, .quota = BOX_QUOTA_2026);
    int granted = 0;
    while (call(&world, "GET", "", NULL) == 200)
        granted++;
    assert_int_equal(granted, 1250);
    assert_refused(&world, 429, "activityLimitReached", "throttledRequest");
    assert_string_equal(header_of(&world, "RateLimit-Limit"), "1250");
    assert_string_equal(header_of(&world, "RateLimit-Remaining"), "0");
    const int wait_s = (int)strtol(header_of(&world, "Retry-After"), NULL, 10);
    assert_true(wait_s >= 60 && wait_s <= 62);
    assert_int_equal(violations(&world, "early-retry"), 0);
    world.now_ms += 10000;
    assert_int_equal(call(&world, "GET", "", NULL), 429);
    assert_int_equal(violations(&world, "early-retry"), 1);
    /* The refused call was too early, and the time moved. */
    const int more_s = (int)strtol(header_of(&world, "Retry-After"), NULL, 10);
    assert_true(more_s > wait_s - 10);
    world.now_ms += (uint64_t)more_s * 1000;
    assert_int_equal(call(&world, "GET", "", NULL), 200);
}

TEST(from_four_fifths_on_answers_say_what_is_left)
{
    WORLD(world, .quota = BOX_QUOTA_2026);
    for (int i = 1; i < 1000; i++) {
        call(&world, "GET", "", NULL);
        assert_string_equal(header_of(&world, "RateLimit-Limit"), "");
    }
    call(&world, "GET", "", NULL);
    assert_string_equal(header_of(&world, "RateLimit-Limit"), "1250");
    assert_string_equal(header_of(&world, "RateLimit-Remaining"), "250");
    call(&world, "GET", "/root/children", NULL); /* costs two */
    assert_string_equal(header_of(&world, "RateLimit-Remaining"), "248");
}

TEST(the_gates_faults_speak_graph)
{
    WORLD(world, 0);
    add_fault(world.cloud, "{\"method\":\"graph.drive.get\",\"fault\":\"503\",\"count\":1,"
                           "\"retry_after\":7}");
    call(&world, "GET", "", NULL);
    assert_refused(&world, 503, "serviceNotAvailable", "");
    assert_string_equal(header_of(&world, "Retry-After"), "7");
    add_fault(world.cloud,
              "{\"method\":\"graph.download.*\",\"fault\":\"url-expired\",\"count\":1}");
    put_file(&world, "a.txt", "12");
    call(&world, "GET", "/root:/a.txt:/content", NULL);
    const char *url = kept(header_of(&world, "Location"));
    call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE);
    assert_refused(&world, 401, "unauthenticated", "");
    add_fault(world.cloud, "{\"fault\":\"no-range\",\"count\":1}");
    assert_int_equal(call_with(&world, "GET", url, HEADERS("Range", "bytes=1-1"), TIDE_TEXT_NONE),
                     200);
    assert_int_equal(call_with(&world, "GET", url, HEADERS("Range", "bytes=1-1"), TIDE_TEXT_NONE),
                     206);
    add_fault(world.cloud,
              "{\"method\":\"graph.drive.item.get\",\"id\":\"a.txt\",\"fault\":\"500\"}");
    call(&world, "GET", "/root:/a.txt", NULL);
    assert_refused(&world, 500, "generalException", "");
    assert_int_equal(call(&world, "GET", "/root", NULL), 200);
}

TEST(faults_on_changes_are_what_a_client_must_survive)
{
    WORLD(world, 0);
    const char *id = put_file(&world, "a.txt", "12");
    const char *etag = kept(text_at(&world, "eTag"));
    const char *path = printed("/v1.0/me/drive/items/%s", id);
    add_fault(world.cloud, "{\"fault\":\"412\",\"count\":1}");
    call_with(&world, "DELETE", path, HEADERS("If-Match", etag), TIDE_TEXT_NONE);
    assert_refused(&world, 412, "resourceModified", "entityTagDoesNotMatch");
    add_fault(world.cloud, "{\"fault\":\"locked\",\"count\":1}");
    call_with(&world, "DELETE", path, HEADERS("If-Match", etag), TIDE_TEXT_NONE);
    assert_refused(&world, 423, "resourceLocked", "");
    add_fault(world.cloud, "{\"fault\":\"malware\"}");
    call(&world, "GET", printed("/items/%s/content", id), NULL);
    assert_refused(&world, 403, "malwareDetected", "virusSuspicious");
    add_fault(world.cloud, "{\"fault\":\"rewrite\",\"count\":1}");
    put_file(&world, "b.txt", "12");
    assert_int_equal(number_at(&world, "size"), 2);
    call(&world, "GET", "/root:/b.txt", NULL);
    assert_int_equal(number_at(&world, "size"), 102);
    call_with(&world, "POST", "/_cloud/drive/touch", NULL,
              TIDE_TEXT("{\"user\":\"alice@example.com\",\"path\":\"a.txt\"}"));
    assert_int_equal(world.answer.status, 200);
    call(&world, "GET", "/root:/a.txt", NULL);
    assert_string_not_equal(text_at(&world, "eTag"), etag);
    assert_int_equal(number_at(&world, "size"), 2);
}

/* ---- another device ---- */

static int control(struct world *world, const char *path, const char *body)
{
    return call_with(world, "POST", printed("/_cloud/drive%s", path), NULL, tide_text_of(body));
}

TEST(another_device_changes_the_drive)
{
    WORLD(world, 0);
#define ALICE "{\"user\":\"alice@example.com\","
    assert_int_equal(control(&world, "/put", ALICE "\"path\":\"a/b/c.txt\",\"content\":\"hi\"}"),
                     200);
    assert_string_equal(get_bytes(&world, "/root:/a/b/c.txt:"), "hi");
    assert_int_equal(control(&world, "/put", ALICE "\"path\":\"a/big\",\"size\":50000000000}"),
                     200);
    assert_int_equal(control(&world, "/move", ALICE "\"path\":\"a/b\",\"to\":\"z/y\"}"), 200);
    assert_string_equal(get_bytes(&world, "/root:/z/y/c.txt:"), "hi");
    assert_int_equal(control(&world, "/folder", ALICE "\"path\":\"f/g\"}"), 200);
    assert_int_equal(control(&world, "/delete", ALICE "\"path\":\"f\"}"), 200);
    assert_int_equal(call(&world, "GET", "/root:/f", NULL), 404);
    assert_int_equal(
        call_with(&world, "GET", "/_cloud/drive?user=alice@example.com", NULL, TIDE_TEXT_NONE),
        200);
    assert_non_null(strstr(tide_buf_cstr(&world.bytes), "\nfile 50000000000 "));
    assert_non_null(strstr(tide_buf_cstr(&world.bytes), " z/y/c.txt\n"));
    assert_null(strstr(tide_buf_cstr(&world.bytes), "f/g"));
    assert_int_equal(control(&world, "/fill", ALICE "\"files\":10,\"size\":5}"), 200);
    assert_int_equal(box_drive_used(drive_of(&world)), 50000000052);
    assert_int_equal(control(&world, "", ALICE "\"forget\":true,\"total\":1000}"), 200);
    assert_int_equal(box_drive_epoch(drive_of(&world)), 1);
    assert_int_equal(box_drive_spec(drive_of(&world))->total_bytes, 1000);
}

TEST(what_another_device_cannot_do_is_refused)
{
    WORLD(world, 0);
    control(&world, "/put", ALICE "\"path\":\"a/b.txt\",\"content\":\"hi\"}");
    static const char *const bad[][2] = {
        {"/put", "{\"user\":\"nobody@example.com\",\"path\":\"a\"}"},
        {"/put", ALICE "\"path\":\"a\",\"content\":\"x\"}"},
        {"/put", ALICE "\"path\":\"a//b\"}"},
        {"/put", ALICE "\"path\":\"a/b.txt/c\"}"},
        {"/put", ALICE "\"path\":\"x\",\"content\":5}"},
        {"/put", ALICE "\"path\":\"x\",\"sise\":5}"},
        {"/move", ALICE "\"path\":\"none\",\"to\":\"x\"}"},
        {"/move", ALICE "\"path\":\"a\",\"to\":\"a/b/c\"}"},
        {"/move", ALICE "\"path\":\"a/b.txt\",\"to\":\"a\"}"},
        {"/delete", ALICE "\"path\":\"none\"}"},
        {"/fill", ALICE "\"files\":0}"},
        {"", ALICE "\"total\":0}"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (control(&world, bad[i][0], bad[i][1]) != 400)
            fail_msg("taken: %s %s", bad[i][0], bad[i][1]);
}
