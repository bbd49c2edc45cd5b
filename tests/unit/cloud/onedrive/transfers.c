/* Uploads and downloads: sessions, fragments, ranges; URLs that get no token (ODR3, I14). */
#include "onedrive_fixture.h"

#define NONE   TIDE_TEXT("")
#define UP_URL "http://up.example:99/rup/key?tempauth=secret"
#define DOWN   "http://down.example:98/y4m-key"

static const struct tide_onedrive_target fresh = {.parent = TIDE_TEXT("P"),
                                                  .name = TIDE_TEXT("a b.txt")};
static const struct tide_onedrive_target personal = {.name = TIDE_TEXT("n"), .personal = true};
static const struct tide_onedrive_target old = {
    .drive = TIDE_TEXT("D"), .id = TIDE_TEXT("A"), .if_match = TIDE_TEXT("\"c1\"")};

/* ---- sessions ---- */

CASE(a_session_creates_by_name_and_replaces_by_id)
{
    static const struct {
        const struct tide_onedrive_target *target;
        uint64_t modified;
        const char *path, *body;
    } rows[] = {
        {&fresh, UINT64_C(1777863721000), "/v1.0/me/drive/items/P:/a%20b.txt:/createUploadSession",
         "{\"item\":{\"@microsoft.graph.conflictBehavior\":\"fail\",\"name\":\"a b.txt\","
         "\"fileSystemInfo\":{\"lastModifiedDateTime\":\"2026-05-04T03:02:01.000Z\"}}}"},
        {&personal, 0, "/v1.0/me/drive/root:/n:/createUploadSession",
         "{\"item\":{\"@microsoft.graph.conflictBehavior\":\"fail\",\"name\":\"n\",\"fileSize\":7}"
         "}"},
        {&old, 0, "/v1.0/drives/D/items/A/createUploadSession",
         "{\"item\":{\"@microsoft.graph.conflictBehavior\":\"replace\"}}"},
    };
    struct tide_onedrive_session session;
    tide_onedrive_session_init(&session, f->mem);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        answers(f, 200,
                "{\"uploadUrl\":\"" UP_URL
                "\",\"expirationDateTime\":\"2026-05-04T03:02:01.001Z\",\"nextExpectedRanges\":"
                "[\"0-\"]}");
        EXPECT(tide_onedrive_session_create(f->onedrive, NULL, rows[i].target, 7, rows[i].modified,
                                            &session, &f->err),
               TIDE_OK);
        assert_asked(f, "POST", rows[i].path);
        assert_int_equal(has_header(f, "If-Match: \"c1\"\n"), rows[i].target == &old);
        json_t *body = body_of(f);
        json_t *expected = NULL;
        OK(tide_json_parse(tide_text_of(rows[i].body), &expected, NULL));
        assert_true(json_equal(body, expected));
        json_decref(expected);
        json_decref(body);
        assert_string_equal(tide_buf_cstr(&session.url), UP_URL);
        assert_int_equal(session.expires_unix_ms, UINT64_C(1777863721000));
    }
    static const char *const bad[] = {"{}", "{\"uploadUrl\":7}", "{\"uploadUrl\":\"\"}", "<html>"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        answers(f, 200, bad[i]);
        EXPECT(tide_onedrive_session_create(f->onedrive, NULL, &fresh, 7, 0, &session, &f->err),
               TIDE_SERVER);
    }
    answers(f, 412, "{\"error\":{\"code\":\"resourceModified\"}}");
    EXPECT(tide_onedrive_session_create(f->onedrive, NULL, &old, 7, 0, &session, &f->err),
           TIDE_SUPERSEDED);
    answers(f, 507, "{\"error\":{\"code\":\"quotaLimitReached\"}}");
    EXPECT(tide_onedrive_session_create(f->onedrive, NULL, &fresh, 7, 0, &session, &f->err),
           TIDE_DISK_FULL);
    assert_string_equal(tide_buf_cstr(&session.url), UP_URL); /* untouched by failures */
    tide_onedrive_session_done(&session);
}

CASE(an_empty_file_needs_no_session)
{
    answers(f, 201, ITEM);
    EXPECT(tide_onedrive_put_empty(f->onedrive, NULL, &fresh, &f->item, &f->err), TIDE_OK);
    assert_asked(f, "PUT",
                 "/v1.0/me/drive/items/P:/a%20b.txt:/content?@microsoft.graph."
                 "conflictBehavior=fail");
    assert_int_equal(f->body.bytes, 0);
    EXPECT(tide_onedrive_put_empty(f->onedrive, NULL, &old, &f->item, &f->err), TIDE_OK);
    assert_asked(f, "PUT", "/v1.0/drives/D/items/A/content");
    assert_true(has_header(f, "If-Match: \"c1\"\n"));
}

/* ---- fragments ---- */

struct source {
    uint64_t at, bytes;
    unsigned rewinds;
    tide_status fails; /* after the first read */
};

static tide_status source_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct source *source = arg;
    if (source->at > 0 && source->fails != TIDE_OK)
        return source->fails;
    const uint64_t left = source->bytes - source->at;
    *count_out = left < room ? (size_t)left : room;
    *count_out = *count_out < 100000 ? *count_out : 100000;
    for (size_t i = 0; i < *count_out; i++)
        bytes[i] = (char)('a' + (source->at + i) % 26);
    source->at += *count_out;
    return TIDE_OK;
}

static void source_rewind(void *arg)
{
    struct source *source = arg;
    source->at = 0;
    source->rewinds++;
}

static tide_status put(struct fixture *f, uint64_t from, uint64_t bytes, uint64_t total,
                       struct source *source, struct tide_onedrive_sent *sent)
{
    source->bytes = bytes;
    const struct tide_onedrive_fragment fragment = {.url = UP_URL,
                                                    .from = from,
                                                    .bytes = bytes,
                                                    .total = total,
                                                    .source = source_read,
                                                    .rewind = source_rewind,
                                                    .source_arg = source};
    return tide_onedrive_fragment_put(f->onedrive, NULL, &fragment, sent, &f->err);
}

CASE(fragments_stream_without_a_token_until_the_item_comes)
{
    enum { UNIT = TIDE_ONEDRIVE_FRAGMENT_UNIT };
    struct source source = {.at = 0};
    struct tide_onedrive_sent sent = {.finished = true};
    answers(f, 202,
            "{\"expirationDateTime\":\"2026-05-04T03:02:01Z\",\"nextExpectedRanges\":[\"655360-"
            "900000\",\"327680-\"]}");
    EXPECT(put(f, 0, UNIT, UNIT + 7, &source, &sent), TIDE_OK);
    assert_string_equal(f->method, "PUT");
    assert_string_equal(f->url, UP_URL);
    assert_false(has_header(f, "Authorization"));
    assert_true(has_header(f, "Content-Range: bytes 0-327679/327687\n"));
    assert_true(has_header(f, "Content-Type: application/octet-stream\n"));
    assert_int_equal(f->body.bytes, UNIT);
    assert_int_equal(f->body.data[27], 'b');
    assert_int_equal(source.rewinds, 1);
    assert_false(sent.finished);
    assert_true(sent.next_known);
    assert_int_equal(sent.next, 327680); /* the lowest, wherever it is in the list (D37) */
    assert_int_equal(sent.expires_unix_ms, UINT64_C(1777863721000));

    answers(f, 201, ITEM);
    EXPECT(put(f, UNIT, 7, UNIT + 7, &source, &sent), TIDE_OK);
    assert_true(has_header(f, "Content-Range: bytes 327680-327686/327687\n"));
    assert_true(sent.finished);
    assert_true(sent.answer.value != NULL && sent.answer.item.has_hash);
    tide_onedrive_sent_done(&sent);
}

CASE(an_answer_to_a_fragment_is_taken_as_it_is_meant)
{
    static const struct {
        int http;
        const char *body;
        tide_status status;
        bool finished, item, next;
    } rows[] = {
        {200, ITEM, TIDE_OK, true, true, false},
        {201, "", TIDE_OK, true, false, false}, /* D38 */
        {201, "{}", TIDE_OK, true, false, false},
        {200, "", TIDE_OK, true, false, false},
        {202, "{}", TIDE_OK, false, false, false}, /* ask for the status (D37) */
        {202, "{\"nextExpectedRanges\":[]}", TIDE_OK, false, false, false},
        {200, "{\"nextExpectedRanges\":[\"5-\"]}", TIDE_OK, false, false, true},
        {202, "", TIDE_SERVER, false, false, false},
        {202, "{\"nextExpectedRanges\":[\"x-\"]}", TIDE_SERVER, false, false, false},
        {202, "{\"nextExpectedRanges\":[7]}", TIDE_SERVER, false, false, false},
        {202, "{\"nextExpectedRanges\":[\"7\"]}", TIDE_SERVER, false, false, false},
        {202, "{\"nextExpectedRanges\":\"0-\"}", TIDE_SERVER, false, false, false},
        {201, "{\"id\":7}", TIDE_SERVER, false, false, false},
        {201, "<html>", TIDE_SERVER, false, false, false},
        {401, "", TIDE_GONE, false, false, false},
        {403, "", TIDE_GONE, false, false, false},
        {404, "{\"error\":{\"code\":\"itemNotFound\"}}", TIDE_GONE, false, false, false},
        {409, "{\"error\":{\"code\":\"nameAlreadyExists\"}}", TIDE_EXISTS, false, false, false},
        {416, "", TIDE_PERMANENT, false, false, false},
        {423, "", TIDE_BUSY, false, false, false},
        {500, "", TIDE_SERVER, false, false, false},
        {507, "", TIDE_DISK_FULL, false, false, false},
    };
    struct source source = {.at = 0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tide_onedrive_sent sent = {.finished = true};
        answers(f, rows[i].http, rows[i].body);
        const tide_status rc = put(f, 0, 7, 7, &source, &sent);
        if (rc != rows[i].status || sent.finished != rows[i].finished ||
            (sent.answer.value != NULL) != rows[i].item || sent.next_known != rows[i].next)
            fail_msg("%d %s: %s: %s", rows[i].http, rows[i].body, tide_status_name(rc),
                     f->err.text);
        assert_int_equal(tide_graph_reason_of(&f->err) == TIDE_GRAPH_RANGE,
                         rows[i].http == 416 && rc != TIDE_OK);
        tide_onedrive_sent_done(&sent);
    }
    /* The last fragment without an answer: nobody knows (D38). */
    struct tide_onedrive_sent sent = {.finished = false};
    answers(f, 201, ITEM);
    f->reset = true;
    EXPECT(put(f, 0, 7, 7, &source, &sent), TIDE_UNKNOWN);
}

CASE(a_fragment_of_a_wrong_size_is_not_sent)
{
    enum { UNIT = TIDE_ONEDRIVE_FRAGMENT_UNIT };
    static const uint64_t rows[][3] = {
        {0, 0, 0},
        {0, 0, 7},
        {0, 6, 7},
        {0, UNIT - 1, 10 * UNIT},
        {0, UNIT + 1, 10 * UNIT},
        {0, UNIT, 7},
        {8, 7, 7},
        {10 * UNIT, UNIT, 10 * UNIT},
        {0, TIDE_ONEDRIVE_FRAGMENT_BYTES_MAX + 1, TIDE_ONEDRIVE_FRAGMENT_BYTES_MAX + 1},
        {UINT64_MAX, 1, 7},
    };
    struct source source = {.at = 0};
    struct tide_onedrive_sent sent = {.finished = false};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        EXPECT(put(f, rows[i][0], rows[i][1], rows[i][2], &source, &sent), TIDE_INVALID);
    assert_int_equal(f->requests, 0);
}

CASE(a_source_that_fails_ends_the_fragment)
{
    struct source source = {.fails = TIDE_SUPERSEDED};
    struct tide_onedrive_sent sent = {.finished = false};
    EXPECT(put(f, 0, TIDE_ONEDRIVE_FRAGMENT_UNIT, TIDE_ONEDRIVE_FRAGMENT_UNIT, &source, &sent),
           TIDE_SUPERSEDED);
}

CASE(a_session_is_asked_and_canceled_without_a_token)
{
    struct tide_onedrive_sent sent = {.finished = false};
    answers(f, 200, "{\"nextExpectedRanges\":[\"12345-\"]}");
    EXPECT(tide_onedrive_session_status(f->onedrive, NULL, UP_URL, &sent, &f->err), TIDE_OK);
    assert_string_equal(f->method, "GET");
    assert_string_equal(f->url, UP_URL);
    assert_false(has_header(f, "Authorization"));
    assert_true(sent.next_known && sent.next == 12345 && !sent.finished);
    answers(f, 200, ""); /* silence is no end */
    EXPECT(tide_onedrive_session_status(f->onedrive, NULL, UP_URL, &sent, &f->err), TIDE_SERVER);
    answers(f, 404, "");
    EXPECT(tide_onedrive_session_status(f->onedrive, NULL, UP_URL, &sent, &f->err), TIDE_GONE);
    EXPECT(tide_onedrive_session_cancel(f->onedrive, NULL, UP_URL, &f->err), TIDE_OK);
    answers(f, 204, "");
    EXPECT(tide_onedrive_session_cancel(f->onedrive, NULL, UP_URL, &f->err), TIDE_OK);
    assert_string_equal(f->method, "DELETE");
    assert_false(has_header(f, "Authorization"));
    answers(f, 500, "");
    EXPECT(tide_onedrive_session_cancel(f->onedrive, NULL, UP_URL, &f->err), TIDE_SERVER);
    const unsigned before = f->requests;
    EXPECT(tide_onedrive_session_status(f->onedrive, NULL, "ftp://x", &sent, &f->err), TIDE_SERVER);
    assert_int_equal(f->requests, before);
}

/* ---- downloads ---- */

struct sink {
    uint64_t at; /* where it began; UINT64_MAX: it did not */
    char bytes[128];
    size_t count;
    tide_status refuse;
};

static tide_status sink_begin(void *arg, uint64_t at)
{
    struct sink *sink = arg;
    assert_int_equal(sink->at, UINT64_MAX); /* once */
    sink->at = at;
    return TIDE_OK;
}

static tide_status sink_write(void *arg, const char *bytes, size_t count)
{
    struct sink *sink = arg;
    assert_true(sink->at != UINT64_MAX);
    assert_true(sink->count + count <= sizeof sink->bytes);
    if (sink->refuse != TIDE_OK)
        return sink->refuse;
    memcpy(sink->bytes + sink->count, bytes, count);
    sink->count += count;
    return TIDE_OK;
}

static tide_status get(struct fixture *f, uint64_t from, uint64_t size, const char *etag,
                       struct sink *sink, struct tide_onedrive_got *got)
{
    *sink = (struct sink){.at = UINT64_MAX, .refuse = sink->refuse};
    const struct tide_onedrive_download download = {.url = DOWN,
                                                    .from = from,
                                                    .size = size,
                                                    .etag = etag,
                                                    .begin = sink_begin,
                                                    .sink = sink_write,
                                                    .arg = sink};
    return tide_onedrive_download(f->onedrive, NULL, &download, got, &f->err);
}

CASE(a_download_needs_no_token_and_resumes_where_it_was)
{
    struct sink sink = {.at = 0};
    struct tide_onedrive_got got;
    answers(f, 200, "<html>11"); /* somebody's page is content, too */
    f->header = "Content-Type", f->value = "text/html";
    f->header2 = "ETag", f->value2 = "\"v1\"";
    EXPECT(get(f, 0, 8, NULL, &sink, &got), TIDE_OK);
    assert_string_equal(f->method, "GET");
    assert_string_equal(f->url, DOWN);
    assert_string_equal(f->headers, "Accept-Encoding: identity\n");
    assert_memory_equal(sink.bytes, "<html>11", 8);
    assert_int_equal(sink.at, 0);
    assert_int_equal(got.bytes, 8);
    assert_string_equal(got.etag, "\"v1\"");

    answers(f, 206, "678");
    f->header = "Content-Range", f->value = "bytes 5-7/8";
    EXPECT(get(f, 5, 8, "\"v1\"", &sink, &got), TIDE_OK);
    assert_string_equal(f->headers,
                        "Accept-Encoding: identity\nRange: bytes=5-\nIf-Range: \"v1\"\n");
    assert_int_equal(sink.at, 5);
    assert_int_equal(got.at, 5);
    assert_int_equal(got.bytes, 3);

    /* The server may give all of it: the sink is told before the first byte (D41). */
    answers(f, 200, "12345678");
    EXPECT(get(f, 5, 8, "", &sink, &got), TIDE_OK);
    assert_false(has_header(f, "If-Range"));
    assert_int_equal(sink.at, 0);
    assert_int_equal(sink.count, 8);
    /* Nothing at all is a whole download of nothing. */
    answers(f, 200, "");
    EXPECT(get(f, 0, 0, NULL, &sink, &got), TIDE_OK);
    assert_int_equal(sink.at, 0);
}

CASE(what_is_not_the_content_never_reaches_the_sink)
{
    static const struct {
        int http;
        const char *body, *range;
        tide_status status;
    } rows[] = {
        {401, "no", NULL, TIDE_GONE},
        {403, "no", NULL, TIDE_GONE},
        {404, "no", NULL, TIDE_GONE},
        {403, "{\"error\":{\"code\":\"malwareDetected\"}}", NULL, TIDE_PERMANENT},
        {416, "no", "bytes */8", TIDE_PERMANENT},
        {500, "no", NULL, TIDE_SERVER},
        {503, "no", NULL, TIDE_SERVER},
        {302, "no", NULL, TIDE_SERVER},
        {202, "678", NULL, TIDE_SERVER},
        {206, "678", NULL, TIDE_SERVER},
        {206, "678", "bytes 4-6/8", TIDE_SERVER},
        {206, "678", "bytes 6-8/8", TIDE_SERVER},
        {206, "678", "5-7/8", TIDE_SERVER},
        {206, "678", "bytes x-7/8", TIDE_SERVER},
        {206, "678", "bytes 5", TIDE_SERVER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sink sink = {.at = 0};
        struct tide_onedrive_got got;
        answers(f, rows[i].http, rows[i].body);
        f->header = rows[i].range == NULL ? NULL : "Content-Range";
        f->value = rows[i].range;
        const tide_status rc = get(f, 5, 8, NULL, &sink, &got);
        if (rc != rows[i].status || sink.count > 0 || sink.at != UINT64_MAX || got.bytes > 0)
            fail_msg("%d %s: %s", rows[i].http, rows[i].range, tide_status_name(rc));
        assert_int_equal(f->err.status, rc);
        assert_int_equal(tide_graph_reason_of(&f->err) == TIDE_GRAPH_RANGE, rows[i].http == 416);
        assert_null(strstr(f->err.text, "y4m-key"));
    }
}

CASE(content_that_is_longer_or_shorter_than_its_item_is_refused)
{
    struct sink sink = {.at = 0};
    struct tide_onedrive_got got;
    answers(f, 200, "12345678");
    EXPECT(get(f, 0, 7, NULL, &sink, &got), TIDE_SERVER);
    assert_true(got.bytes <= 7 && sink.count == got.bytes);
    EXPECT(get(f, 0, 9, NULL, &sink, &got), TIDE_SERVER);
    assert_int_equal(got.bytes, 8);
    EXPECT(get(f, 9, 8, NULL, &sink, &got), TIDE_INVALID);
    /* Broken off: what came is counted. */
    f->truncate_from = 3;
    EXPECT(get(f, 0, 8, NULL, &sink, &got), TIDE_SERVER);
    assert_int_equal(got.bytes, sink.count);
    assert_true(got.bytes <= 3);
    answers(f, 200, "12345678");
    sink.refuse = TIDE_DISK_FULL;
    EXPECT(get(f, 0, 8, NULL, &sink, &got), TIDE_DISK_FULL);
    assert_int_equal(got.bytes, 0);
}
