/* Upload sessions: fragments, what interrupts them, and what happens at their end. */
#include "graph_fixture.h"

#include "base/rng.h"

enum { UNIT = 320 << 10 };

/* Bytes of a large file, the same for every test. */
static const char *some_bytes(void)
{
    static char bytes[5 * UNIT];
    if (bytes[1] == '\0') {
        tide_rng rng = tide_rng_seeded(8);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(1 + tide_rng_below(&rng, 255));
    }
    return bytes;
}

static const char *create(struct world *world, const char *path, const char *body)
{
    if (call(world, "POST", printed("%s/createUploadSession", path), body) != 200)
        return NULL;
    return kept(text_at(world, "uploadUrl"));
}

static int put(struct world *world, const char *url, uint64_t first, uint64_t bytes, uint64_t total)
{
    return call_with(world, "PUT", url,
                     HEADERS("Content-Range", printed("bytes %d-%d/%d", (int)first,
                                                      (int)(first + bytes - 1), (int)total)),
                     (tide_text){some_bytes() + first, bytes});
}

static const char *hash_of(size_t bytes)
{
    uint8_t hash[BOX_QUICKXOR_BYTES];
    char text[BOX_QUICKXOR_TEXT_BYTES];
    struct box_quickxor sum = {0};
    box_quickxor_add(&sum, some_bytes(), bytes);
    box_quickxor_hash(&sum, hash);
    box_quickxor_text(hash, text);
    return kept(text);
}

/* BGPH1, by looking after every fragment. */
TEST(a_file_in_fragments_is_there_with_its_last_byte_and_not_before)
{
    WORLD(world, 0);
    const uint64_t total = 4 * UNIT + 77;
    const char *url = create(&world, "/root:/big.bin:",
                             "{\"item\":{\"fileSystemInfo\":{\"lastModifiedDateTime\":"
                             "\"2002-03-04T05:06:07Z\"}}}");
    assert_non_null(url);
    assert_string_equal(text_at(&world, "nextExpectedRanges.0"), "0-");
    for (uint64_t at = 0; at < 4 * UNIT; at += 2 * UNIT) {
        assert_int_equal(put(&world, url, at, 2 * UNIT, total), 202);
        assert_string_equal(text_at(&world, "nextExpectedRanges.0"),
                            printed("%d-", (int)(at + 2 * UNIT)));
        assert_int_equal(call(&world, "GET", "/root:/big.bin", NULL), 404);
        assert_int_equal(box_drive_slots(drive_of(&world)), 1);
    }
    assert_int_equal(put(&world, url, 4 * UNIT, 77, total), 201);
    assert_string_equal(text_at(&world, "name"), "big.bin");
    assert_int_equal(number_at(&world, "size"), total);
    assert_string_equal(text_at(&world, "file.hashes.quickXorHash"), hash_of(total));
    assert_string_equal(text_at(&world, "fileSystemInfo.lastModifiedDateTime"),
                        "2002-03-04T05:06:07Z");
    assert_memory_equal(get_bytes(&world, "/root:/big.bin:"), some_bytes(), total);
    put(&world, url, 4 * UNIT, 77, total);
    assert_refused(&world, 404, "itemNotFound", "uploadSessionNotFound");
}

TEST(fragments_that_do_not_fit_are_refused_and_change_nothing)
{
    WORLD(world, 0);
    const uint64_t total = 3 * UNIT;
    const char *url = create(&world, "/root:/big.bin:", "{}");
    assert_int_equal(put(&world, url, 0, UNIT, total), 202);
    put(&world, url, 0, UNIT, total);
    assert_refused(&world, 416, "invalidRange", "fragmentOverlap");
    put(&world, url, 2 * UNIT, UNIT, total);
    assert_refused(&world, 416, "invalidRange", "fragmentOutOfOrder");
    put(&world, url, UNIT, 1000, total);
    assert_refused(&world, 400, "invalidRequest", "");
    assert_int_equal(violations(&world, "fragment-size"), 1);
    put(&world, url, UNIT, UNIT, total + 1);
    assert_refused(&world, 400, "invalidRequest", "");
    call_with(&world, "PUT", url, HEADERS("Content-Range", "bytes 327680-655359/983040"),
              TIDE_TEXT("short"));
    assert_refused(&world, 400, "invalidRequest", "fragmentLengthMismatch");
    static const char *const ranges[] = {"bytes 5-4/10", "bytes 0-10/10", "0-4/10", "bytes a-b/c",
                                         "bytes 0/1-2",  "bytes -",       ""};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        call_with(&world, "PUT", url, HEADERS("Content-Range", ranges[i]), TIDE_TEXT("12345"));
        assert_refused(&world, 400, "invalidRequest", "");
    }
    assert_int_equal(call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE), 200);
    assert_string_equal(text_at(&world, "nextExpectedRanges.0"), printed("%d-", UNIT));
    assert_int_equal(put(&world, url, UNIT, 2 * UNIT, total), 201);
    assert_string_equal(text_at(&world, "file.hashes.quickXorHash"), hash_of(total));
}

TEST(a_session_is_canceled_or_expires)
{
    WORLD(world, 0);
    const char *url = create(&world, "/root:/a.bin:", "{}");
    assert_int_equal(put(&world, url, 0, UNIT, 2 * UNIT), 202);
    assert_int_equal(call_with(&world, "DELETE", url, NULL, TIDE_TEXT_NONE), 204);
    assert_int_equal(put(&world, url, UNIT, UNIT, 2 * UNIT), 404);
    url = create(&world, "/root:/a.bin:", "{}");
    world.now_ms += 23 * 3600 * 1000;
    assert_int_equal(put(&world, url, 0, UNIT, 2 * UNIT), 202); /* makes it live longer */
    world.now_ms += 23 * 3600 * 1000;
    assert_int_equal(call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE), 200);
    world.now_ms += 2 * 3600 * 1000;
    call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE);
    assert_refused(&world, 404, "itemNotFound", "uploadSessionNotFound");
    assert_int_equal(box_drive_slots(drive_of(&world)), 1);
}

#define FAIL "{\"item\":{\"@microsoft.graph.conflictBehavior\":\"fail\"}}"

TEST(a_name_that_is_taken_at_the_end_leaves_the_session_to_be_committed)
{
    WORLD(world, 0);
    const char *url = create(&world, "/root:/a.bin:", FAIL);
    const char *id = put_file(&world, "a.bin", "first");
    put(&world, url, 0, 1000, 1000);
    assert_refused(&world, 409, "nameAlreadyExists", "");
    assert_string_equal(get_bytes(&world, "/root:/a.bin:"), "first");
    assert_int_equal(call_with(&world, "GET", url, NULL, TIDE_TEXT_NONE), 200);
    assert_int_equal(json_array_size(at(&world, "nextExpectedRanges")), 0);
    const char *body = printed("{\"name\":\"a.bin\",\"@microsoft.graph.conflictBehavior\":"
                               "\"rename\",\"@microsoft.graph.sourceUrl\":\"%s\"}",
                               url);
    assert_int_equal(call(&world, "PUT", "/root:/", body), 201);
    assert_string_equal(text_at(&world, "name"), "a 1.bin");
    assert_string_not_equal(text_at(&world, "id"), id);
    assert_int_equal(number_at(&world, "size"), 1000);
    call(&world, "PUT", "/root:/", body);
    assert_refused(&world, 404, "itemNotFound", "uploadSessionNotFound");
    create(&world, "/root:/a.bin:", FAIL);
    assert_refused(&world, 409, "nameAlreadyExists", "");
    url = create(&world, "/root:/a.bin:", "{}"); /* what a client gets that does not say */
    assert_int_equal(put(&world, url, 0, 500, 500), 200);
    assert_string_equal(text_at(&world, "id"), id);
}

TEST(a_deferred_session_waits_for_its_commit)
{
    WORLD(world, 0);
    const char *url = create(&world, "/root:/a.bin:", "{\"deferCommit\":true}");
    call_with(&world, "POST", url, NULL, TIDE_TEXT_NONE);
    assert_refused(&world, 400, "invalidRequest", "uploadSessionIncomplete");
    assert_int_equal(put(&world, url, 0, 1000, 1000), 202);
    assert_int_equal(call(&world, "GET", "/root:/a.bin", NULL), 404);
    assert_int_equal(call_with(&world, "POST", url, NULL, TIDE_TEXT_NONE), 201);
    assert_int_equal(call(&world, "GET", "/root:/a.bin", NULL), 200);
}

TEST(the_version_that_a_session_replaces_is_checked_at_both_ends)
{
    WORLD(world, 0);
    const char *id = put_file(&world, "a.bin", "1");
    const char *etag = kept(text_at(&world, "eTag"));
    const char *path = printed("/v1.0/me/drive/items/%s/createUploadSession", id);
    assert_int_equal(call_with(&world, "POST", path, HEADERS("If-Match", etag), TIDE_TEXT("{}")),
                     200);
    const char *url = kept(text_at(&world, "uploadUrl"));
    put_file(&world, "a.bin", "2");
    put(&world, url, 0, 1000, 1000);
    assert_refused(&world, 412, "resourceModified", "entityTagDoesNotMatch");
    call_with(&world, "POST", path, HEADERS("If-Match", etag), TIDE_TEXT("{}"));
    assert_refused(&world, 412, "resourceModified", "entityTagDoesNotMatch");
    assert_string_equal(get_bytes(&world, "/root:/a.bin:"), "2");
    call(&world, "GET", "/root:/a.bin", NULL);
    etag = kept(text_at(&world, "eTag"));
    assert_int_equal(call_with(&world, "POST", path, HEADERS("If-Match", etag), TIDE_TEXT("{}")),
                     200);
    const json_int_t before = violations(&world, "overwrite-blind");
    assert_int_equal(put(&world, kept(text_at(&world, "uploadUrl")), 0, 1000, 1000), 200);
    assert_string_equal(text_at(&world, "id"), id);
    assert_int_equal(violations(&world, "overwrite-blind"), before);
}

TEST(the_place_of_a_session_can_be_gone_at_its_end)
{
    WORLD(world, 0);
    const char *folder = make_folder(&world, "/root", "F");
    const char *url = create(&world, "/root:/F/a.bin:", "{}");
    call(&world, "DELETE", printed("/items/%s", folder), NULL);
    put(&world, url, 0, 1000, 1000);
    assert_refused(&world, 404, "itemNotFound", "");
}

TEST(a_session_needs_room_and_a_good_name)
{
    WORLD(world, .drive_bytes = 5000);
    create(&world, "/root:/a.bin:", "{\"item\":{\"fileSize\":5001}}");
    assert_refused(&world, 507, "quotaLimitReached", "");
    const char *url = create(&world, "/root:/a.bin:", "{}");
    put(&world, url, 0, 5001, 5001);
    assert_refused(&world, 507, "quotaLimitReached", "");
    create(&world, "/root:/a.:", "{}");
    assert_refused(&world, 400, "invalidRequest", "invalidPath");
    create(&world, "/root", "{}");
    assert_refused(&world, 400, "invalidRequest", "");
    create(&world, "/root:/no/a.bin:", "{}");
    assert_refused(&world, 404, "itemNotFound", "");
    put(&world, ORIGIN "/_files/upload/0123", 0, 10, 10);
    assert_refused(&world, 404, "itemNotFound", "uploadSessionNotFound");
}

/* Larger than what is kept: size and hash stay, and what is read fits them. */
TEST(a_large_upload_keeps_its_hash)
{
    WORLD(world, 0);
    const uint64_t pieces = 14; /* of 4 units: 17.5 MiB */
    const uint64_t total = pieces * 4 * UNIT;
    const char *url = create(&world, "/root:/big.bin:", "{}");
    struct box_quickxor sum = {0};
    uint8_t hash[BOX_QUICKXOR_BYTES];
    char text[BOX_QUICKXOR_TEXT_BYTES];
    for (uint64_t i = 0; i < pieces; i++) {
        box_quickxor_add(&sum, some_bytes(), 4 * UNIT);
        assert_int_equal(
            call_with(&world, "PUT", url,
                      HEADERS("Content-Range", printed("bytes %d-%d/%d", (int)(i * 4 * UNIT),
                                                       (int)((i + 1) * 4 * UNIT - 1), (int)total)),
                      (tide_text){some_bytes(), 4 * UNIT}),
            i + 1 < pieces ? 202 : 201);
    }
    box_quickxor_hash(&sum, hash);
    box_quickxor_text(hash, text);
    assert_string_equal(text_at(&world, "file.hashes.quickXorHash"), text);
    get_bytes(&world, "/root:/big.bin:");
    assert_int_equal(world.bytes.bytes, total);
    struct box_quickxor read = {0};
    uint8_t read_hash[BOX_QUICKXOR_BYTES];
    box_quickxor_add(&read, tide_buf_cstr(&world.bytes), world.bytes.bytes);
    box_quickxor_hash(&read, read_hash);
    assert_memory_equal(hash, read_hash, sizeof hash);
}
