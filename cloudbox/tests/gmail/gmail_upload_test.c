/* Uploads: the three ways in, and what interrupts the third. */
#include "gmail_world.h"

#include "base/rng.h"
#include "cloudbox/gmail/multipart.h"

#define UPLOAD "/upload/gmail/v1/users/me"

static const char *const rfc822[] = {"Content-Type", "message/rfc822", NULL};
static const char *const json_type_header[] = {"Content-Type", "application/json", NULL};

/* A message of that many bytes, all values among them. */
static tide_text make_message(size_t bytes)
{
    static char room[(4 << 20) + 1];
    tide_rng rng = tide_rng_seeded(bytes);
    assert_true(bytes < sizeof room);
    const size_t head = (size_t)snprintf(room, sizeof room, "To: bob@example.com\r\n\r\n");
    for (size_t i = head; i < bytes; i++)
        room[i] = (char)tide_rng_next(&rng);
    return (tide_text){room, bytes};
}

static const char *header_of(const struct world *world, const char *name)
{
    for (size_t i = 0; i < world->answer.headers_count; i++)
        if (strcmp(world->answer.headers[i].name, name) == 0)
            return world->answer.headers[i].value;
    return "(none)";
}

static void assert_here(struct world *world, tide_text raw)
{
    char id[BOX_ID_TEXT_BYTES];
    assert_int_equal(world->answer.status, 200);
    snprintf(id, sizeof id, "%s", text_at(world, "id"));
    assert_raw(world, id, raw);
}

TEST(media_is_the_message)
{
    WORLD(world);
    const tide_text raw = make_message(5000);
    call_with(&world, "POST", UPLOAD "/messages?uploadType=media", rfc822, raw);
    assert_here(&world, raw);
    call_with(&world, "POST", "/resumable" UPLOAD "/messages/import?uploadType=media", rfc822, raw);
    assert_labels(at(&world, "labelIds"), "INBOX UNREAD");
    assert_here(&world, raw);
    call_with(&world, "POST", UPLOAD "/messages", rfc822, raw); /* the type says it */
    assert_here(&world, raw);
    call_with(&world, "POST", UPLOAD "/messages/send?uploadType=media", rfc822, raw);
    assert_int_equal(world.answer.status, 200);
    assert_labels(at(&world, "labelIds"), "SENT");

    call_with(&world, "POST", UPLOAD "/messages?uploadType=media", rfc822, TIDE_TEXT_NONE);
    assert_int_equal(world.answer.status, 400);
    call_with(&world, "POST", UPLOAD "/messages?uploadType=media", json_type_header, raw);
    assert_refused(&world, 400,
                   "Media type 'application/json' is not supported. Valid media types: "
                   "[message/*]");
    call_with(&world, "POST", UPLOAD "/messages?uploadType=smoke", rfc822, raw);
    assert_refused(&world, 400, "Invalid value at 'uploadType': \"smoke\"");
}

TEST(too_large_is_refused_and_just_fits_is_not)
{
    WORLD(world);
    char *room = tide_mem_new(tide_mem_heap(), BOX_SEND_BYTES_MAX + 1);
    assert_non_null(room);
    memset(room, 'x', BOX_SEND_BYTES_MAX + 1);
    static const char head[] =
        "To: bob@example.com\r\nFrom: a\r\nDate: d\r\nMessage-ID: <m>\r\n\r\n";
    memcpy(room, head, sizeof head - 1);
    const tide_text fits = {room, BOX_SEND_BYTES_MAX}, large = {room, BOX_SEND_BYTES_MAX + 1};
    call_with(&world, "POST", UPLOAD "/messages/send?uploadType=media", rfc822, large);
    assert_refused(&world, 413, "Request payload size exceeds the limit: 36700160 bytes.");
    call_with(&world, "POST", UPLOAD "/drafts?uploadType=media", rfc822, large);
    assert_int_equal(world.answer.status, 413);
    assert_int_equal(
        call_with(&world, "POST", UPLOAD "/messages/send?uploadType=media", rfc822, fits), 200);
    assert_int_equal(call_with(&world, "POST", UPLOAD "/messages?uploadType=media", rfc822, large),
                     200);
    static const char *const announced[] = {"X-Upload-Content-Length", "157286401", NULL};
    call_with(&world, "POST", UPLOAD "/messages?uploadType=resumable", announced, TIDE_TEXT_NONE);
    assert_int_equal(world.answer.status, 413);
    tide_mem_free(tide_mem_heap(), room, BOX_SEND_BYTES_MAX + 1);
}

/* ---- multipart ---- */

static void put_multipart(tide_buf *out, const char *end, const char *json, tide_text media)
{
    box_print(out, "--=B=%sContent-Type: application/json; charset=UTF-8%s%s%s%s--=B=%s", end, end,
              end, json, end, end);
    box_print(out, "Content-Type: message/rfc822%sMIME-Version: 1.0%s%s", end, end, end);
    box_add(out, media.data, media.bytes);
    box_print(out, "%s--=B=--", end);
}

TEST(multipart_takes_json_then_the_very_bytes)
{
    WORLD(world);
    static const char *const type[] = {"Content-Type", "multipart/related; boundary=\"=B=\"", NULL};
    tide_auto_buf body = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    /* Endings that a careless splitter eats, with both kinds of line ends. */
    static const char *const tails[] = {"",      "\n",      "\r",       "\r\n",    "\r\n\r\n",
                                        "--=B=", "\r\n--=", "\n--=Bx=", "\r\r\n\n"};
    for (size_t lf = 0; lf < 2; lf++)
        for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
            char raw[100];
            snprintf(raw, sizeof raw, "Subject: x\r\n\r\nbody%s", tails[i]);
            tide_buf_clear(&body);
            put_multipart(&body, lf ? "\n" : "\r\n", "{\"labelIds\":[\"STARRED\"]}",
                          tide_text_of(raw));
            call_with(&world, "POST", UPLOAD "/messages?uploadType=multipart", type,
                      tide_buf_text(&body));
            assert_labels(at(&world, "labelIds"), "STARRED");
            assert_here(&world, tide_text_of(raw));
        }
    const tide_text raw = make_message(70000);
    tide_buf_clear(&body);
    put_multipart(&body, "\r\n", "{}", raw);
    call_with(&world, "POST", UPLOAD "/messages?uploadType=multipart", type, tide_buf_text(&body));
    assert_here(&world, raw);
}

TEST(multipart_that_is_broken_is_refused)
{
    WORLD(world);
    static const char *const type[] = {"Content-Type", "multipart/related; boundary=B", NULL};
    static const char *const bodies[] = {
        "",
        "--B--",
        "--B\r\n\r\n{}\r\n--B--",
        "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\n"
        "Content-Type: message/rfc822\r\n\r\nx",
        "--B\r\nContent-Type: text/plain\r\n\r\n{}\r\n--B\r\n"
        "Content-Type: message/rfc822\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\n"
        "Content-Type: image/png\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Type: application/json\r\n\r\n[]\r\n--B\r\n"
        "Content-Type: message/rfc822\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\n"
        "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n!\r\n--B--",
        "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\n"
        "Content-Type: message/rfc822\r\n\r\n\r\n--B--",
        "--B\r\n--B\r\n--B--\r\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        call_with(&world, "POST", UPLOAD "/messages?uploadType=multipart", type,
                  tide_text_of(bodies[i]));
        if (world.answer.status != 400)
            fail_msg("body %zu was answered with %d", i, world.answer.status);
    }
    call_with(&world, "POST", UPLOAD "/messages?uploadType=multipart", rfc822, TIDE_TEXT("x"));
    assert_refused(&world, 400, "Missing or invalid boundary of a multipart body.");
    const char *base64 = "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\n"
                         "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n"
                         "U3ViamVj\r\ndDogeA==\r\n--B--";
    call_with(&world, "POST", UPLOAD "/messages?uploadType=multipart", type, tide_text_of(base64));
    assert_here(&world, TIDE_TEXT("Subject: x"));
    call(&world, "GET", "/profile", NULL);
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), 1);
}

/* ---- resumable ---- */

/* Starts a session; the path and query of its chunks come out. */
static void start(struct world *world, const char *verb, const char *path, const char *json,
                  char target_out[512])
{
    static const char *const headers[] = {"Content-Type", "application/json; charset=UTF-8",
                                          "X-Upload-Content-Type", "message/rfc822", NULL};
    call_with(world, verb, path, headers, tide_text_of(json));
    assert_int_equal(world->answer.status, 200);
    assert_int_equal(world->answer.body.bytes, 0);
    const char *location = header_of(world, "Location");
    const char *origin = "http://127.0.0.1:4443";
    assert_memory_equal(location, origin, strlen(origin));
    snprintf(target_out, 512, "%s", location + strlen(origin));
}

/* One PUT; `range` NULL: without Content-Range. */
static int put(struct world *world, const char *target, const char *range, tide_text bytes)
{
    const char *const headers[] = {"Content-Type", "message/rfc822", "Content-Range", range, NULL};
    const char *const plain[] = {"Content-Type", "message/rfc822", NULL};
    return call_with(world, "PUT", target, range == NULL ? plain : headers, bytes);
}

static int put_chunk(struct world *world, const char *target, tide_text raw, size_t from, size_t to)
{
    char range[100];
    snprintf(range, sizeof range, "bytes %zu-%zu/%zu", from, to - 1, raw.bytes);
    return put(world, target, range, (tide_text){raw.data + from, to - from});
}

enum { CHUNK = BOX_UPLOAD_CHUNK_BYTES };

TEST(chunks_add_up_to_the_message)
{
    WORLD(world);
    char target[512], probe[60];
    const tide_text raw = make_message(3 * CHUNK + 17);
    start(&world, "POST", UPLOAD "/messages?uploadType=resumable&internalDateSource=dateHeader",
          "{\"labelIds\":[\"STARRED\"]}", target);
    snprintf(probe, sizeof probe, "bytes */%zu", raw.bytes);
    assert_int_equal(put(&world, target, probe, TIDE_TEXT_NONE), 308);
    assert_string_equal(header_of(&world, "Range"), "(none)");
    assert_int_equal(put_chunk(&world, target, raw, 0, CHUNK), 308);
    assert_string_equal(header_of(&world, "Range"), "bytes=0-262143");

    /* The answer was lost: the client asks, or sends the chunk again. */
    assert_int_equal(put(&world, target, probe, TIDE_TEXT_NONE), 308);
    assert_string_equal(header_of(&world, "Range"), "bytes=0-262143");
    assert_int_equal(put_chunk(&world, target, raw, 0, 2 * CHUNK), 308);
    assert_string_equal(header_of(&world, "Range"), "bytes=0-524287");

    assert_int_equal(put_chunk(&world, target, raw, 3 * CHUNK, raw.bytes), 400); /* a gap */
    assert_int_equal(put_chunk(&world, target, raw, 2 * CHUNK, 2 * CHUNK + 1), 400);
    assert_int_equal(put(&world, target, "bytes 524288-524288/9", TIDE_TEXT("x")), 400);
    assert_int_equal(put(&world, target, "bytes 524288-524290/*", TIDE_TEXT("x")), 400);
    assert_int_equal(put(&world, target, "chunks 1-2/3", TIDE_TEXT("xx")), 400);
    assert_int_equal(put(&world, target, probe, TIDE_TEXT("x")), 400);

    call(&world, "GET", "/profile", NULL); /* nothing yet */
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), 0);
    assert_int_equal(put_chunk(&world, target, raw, 2 * CHUNK, raw.bytes), 200);
    assert_labels(at(&world, "labelIds"), "STARRED");
    char id[BOX_ID_TEXT_BYTES];
    snprintf(id, sizeof id, "%s", text_at(&world, "id"));

    /* The last answer was lost: asking gives it again, and nothing happens twice. */
    assert_int_equal(put(&world, target, probe, TIDE_TEXT_NONE), 200);
    assert_string_equal(text_at(&world, "id"), id);
    assert_int_equal(put_chunk(&world, target, raw, 2 * CHUNK, raw.bytes), 200);
    assert_string_equal(text_at(&world, "id"), id);
    assert_raw(&world, id, raw);
    call(&world, "GET", "/profile", NULL);
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), 1);
}

/* Goal: any order of chunks, losses and questions ends in the same message.
 * Method: a client that sends from where it believes to be, loses answers, and
 * asks; chunk sizes from a seed. */
TEST(interrupted_uploads_end_in_the_same_message)
{
    WORLD(world);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        char target[512], probe[60];
        const tide_text raw = make_message(100 + tide_rng_below(&rng, 6 * CHUNK));
        start(&world, "POST", UPLOAD "/messages?uploadType=resumable", "{}", target);
        snprintf(probe, sizeof probe, "bytes */%zu", raw.bytes);
        size_t sent = 0;
        for (int step = 0;; step++) {
            assert_true(step < 1000);
            if (tide_rng_chance(&rng, 1, 3)) {
                if (put(&world, target, probe, TIDE_TEXT_NONE) == 200)
                    break;
                const char *range = header_of(&world, "Range");
                unsigned long last = 0;
                sent = sscanf(range, "bytes=0-%lu", &last) == 1 ? (size_t)last + 1 : 0;
            }
            size_t to = sent + CHUNK * (1 + tide_rng_below(&rng, 3));
            to = to < raw.bytes ? to : raw.bytes;
            const int status = put_chunk(&world, target, raw, sent, to);
            if (status == 200)
                break;
            if (status != 308)
                fail_msg("seed %llu: %d", (unsigned long long)seed, status);
            if (!tide_rng_chance(&rng, 1, 4)) /* else the answer is lost */
                sent = to;
        }
        assert_here(&world, raw);
    }
    call(&world, "GET", "/profile", NULL);
    assert_int_equal(json_integer_value(at(&world, "messagesTotal")), 40);
}

TEST(a_session_can_bring_all_in_one_piece_or_of_unknown_length)
{
    WORLD(world);
    char target[512], range[60];
    const tide_text raw = make_message(2 * CHUNK);
    start(&world, "POST", UPLOAD "/messages?uploadType=resumable", "{}", target);
    put(&world, target, NULL, raw);
    assert_here(&world, raw);

    start(&world, "POST", UPLOAD "/messages?uploadType=resumable", "", target);
    snprintf(range, sizeof range, "bytes 0-%d/*", CHUNK - 1);
    assert_int_equal(put(&world, target, range, (tide_text){raw.data, CHUNK}), 308);
    snprintf(range, sizeof range, "bytes %d-%d/*", CHUNK, 2 * CHUNK - 1);
    assert_int_equal(put(&world, target, range, (tide_text){raw.data + CHUNK, CHUNK}), 308);
    snprintf(range, sizeof range, "bytes */%d", 2 * CHUNK);
    put(&world, target, range, TIDE_TEXT_NONE);
    assert_here(&world, raw);

    /* Google's Go client cannot bear a 308. */
    start(&world, "POST", UPLOAD "/messages?uploadType=resumable", "", target);
    const char *const go[] = {"X-GUploader-No-308", "yes", "Content-Range", "bytes */100", NULL};
    assert_int_equal(call_with(&world, "PUT", target, go, TIDE_TEXT_NONE), 200);
    assert_string_equal(header_of(&world, "X-HTTP-Status-Code-Override"), "308");
}

TEST(unknown_foreign_and_expired_sessions_are_refused)
{
    WORLD(world);
    char target[512];
    const tide_text raw = make_message(100);
    assert_int_equal(put(&world, UPLOAD "/messages?upload_id=nope", NULL, raw), 404);
    assert_int_equal(put(&world, UPLOAD "/messages", NULL, raw), 404);
    start(&world, "POST", UPLOAD "/messages?uploadType=resumable", "{}", target);
    world.token = "bob-token";
    assert_int_equal(put(&world, target, NULL, raw), 404);
    world.token = "alice-token";
    world.now_ms += UINT64_C(8) * 24 * 3600 * 1000;
    assert_int_equal(put(&world, target, NULL, raw), 410);
    assert_int_equal(put(&world, target, NULL, raw), 404);

    /* More sessions than there is room for: the oldest one ends. */
    char first[512];
    start(&world, "POST", UPLOAD "/messages?uploadType=resumable", "{}", first);
    for (int i = 0; i < BOX_UPLOADS_MAX; i++) {
        world.now_ms++;
        start(&world, "POST", UPLOAD "/messages?uploadType=resumable", "{}", target);
    }
    assert_int_equal(put(&world, first, NULL, raw), 404);
    assert_int_equal(put(&world, target, NULL, raw), 200);
}

TEST(drafts_can_be_uploaded_too)
{
    WORLD(world);
    char draft[BOX_ID_TEXT_BYTES], path[200], body[200], target[512];
    const tide_text raw = make_message(3000);
    call_with(&world, "POST", UPLOAD "/drafts?uploadType=media", rfc822, raw);
    assert_int_equal(world.answer.status, 200);
    assert_labels(at(&world, "message.labelIds"), "DRAFT");
    snprintf(draft, sizeof draft, "%s", text_at(&world, "id"));

    snprintf(path, sizeof path, UPLOAD "/drafts/%s?uploadType=media", draft);
    call_with(&world, "PUT", path, rfc822, raw);
    assert_int_equal(world.answer.status, 200);
    assert_string_equal(text_at(&world, "id"), draft);
    snprintf(path, sizeof path, UPLOAD "/drafts/%s?uploadType=resumable&fields=id", draft);
    start(&world, "PUT", path, "{}", target);
    assert_int_equal(put(&world, target, NULL, raw), 200);
    assert_string_equal(text_at(&world, "id"), draft);
    assert_null(at(&world, "message")); /* `fields` of the start holds at the end */
    call_with(&world, "PUT", UPLOAD "/drafts/r1?uploadType=resumable", rfc822, TIDE_TEXT("{}"));
    assert_int_equal(world.answer.status, 404);

    snprintf(body, sizeof body, "{\"id\":\"%s\"}", draft);
    start(&world, "POST", UPLOAD "/drafts/send?uploadType=resumable", body, target);
    assert_int_equal(put(&world, target, NULL, raw), 200);
    assert_labels(at(&world, "labelIds"), "SENT");
    assert_int_equal(put(&world, target, NULL, raw), 200); /* not sent twice */
    assert_int_equal(box_mailbox_messages(mailbox_of(&world, "bob@example.com")), 1);
}

/* The splitter must accept any bytes; what it returns is inside the body. */
TEST(any_bytes_can_be_split)
{
    tide_rng rng = tide_rng_seeded(3);
    static const char pieces[][12] = {"--B", "--", "\r\n", "\n", "Content-T", "{}", "x", "--B--"};
    tide_auto_buf body = tide_buf_heap(4096);
    tide_auto_buf decoded = tide_buf_heap(4096);
    for (int round = 0; round < 100000; round++) {
        struct box_related parts;
        tide_buf_clear(&body);
        for (uint64_t i = tide_rng_below(&rng, 20); i > 0; i--)
            box_add_cstr(&body, pieces[tide_rng_below(&rng, 8)]);
        if (box_related_parse(TIDE_TEXT("multipart/related; boundary=B"), tide_buf_text(&body),
                              &decoded, &parts) == NULL)
            assert_true(parts.media.bytes <= body.bytes);
    }
}

static bool is_written_down(struct world *world, const char *kind)
{
    json_auto_t *stats = box_cloud_stats(world->cloud, NULL, false);
    auto_text *text = json_dumps(json_object_get(stats, "violations"), 0);
    return strstr(text, kind) != NULL;
}

TEST(an_upload_that_is_begun_again_is_written_down)
{
    WORLD(world);
    char first[512], second[512];
    const tide_text raw = make_message(2 * CHUNK);
    static const char path[] = UPLOAD "/drafts?uploadType=resumable";
    start(&world, "POST", path, "{\"message\":{}}", first);
    start(&world, "POST", path, "{\"message\":{}}", second); /* the first answer was lost */
    assert_false(is_written_down(&world, "upload-again"));
    assert_int_equal(put_chunk(&world, second, raw, 0, CHUNK), 308);
    start(&world, "POST", UPLOAD "/messages/send?uploadType=resumable", "{}", first);
    assert_false(is_written_down(&world, "upload-again")); /* another method */
    start(&world, "POST", path, "{\"message\":{}}", first);
    assert_false(is_written_down(&world, "upload-again")); /* another length: this one is unknown */
    assert_int_equal(put_chunk(&world, first, raw, 0, CHUNK), 308);
    assert_int_equal(put_chunk(&world, second, raw, CHUNK, raw.bytes), 200);
    static const char *const announced[] = {"X-Upload-Content-Length", "524288", NULL};
    call_with(&world, "POST", path, announced, TIDE_TEXT("{\"message\":{}}"));
    assert_int_equal(world.answer.status, 200);
    assert_true(is_written_down(&world, "upload-again"));
}
