/* The client in the real world: content that streams through sockets, and what is on the wire. */
#include "onedrive_fixture.h"

#include "support/http_server.h"

struct real {
    test_http *server;
    tide_world *world;
    struct tide_mem_faulty mem; /* of the client; it fails nothing, but counts */
    tide_onedrive *onedrive;
    tide_error err;
    /* of a download */
    uint64_t bytes;
    bool as_expected;
    tide_buf text; /* the beginning */
    /* of an upload */
    const char *upload;
    size_t at;
};

static struct real *real_begin(void)
{
    struct real *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->server = test_http_start();
    tide_mem_faulty_once(&r->mem, UINT64_MAX);
    OK(tide_world_real_new(tide_mem_heap(), &r->world, NULL));
    tide_buf_init(&r->text, tide_mem_heap(), 4096);
    const struct tide_onedrive_options options = {
        .endpoint = "http://127.0.0.1:9", .bearer = TIDE_TEXT("bearer-1"), .world = r->world};
    OK(tide_onedrive_open(&options, &r->mem.base, &r->onedrive, NULL));
    return r;
}

static void real_end(struct real *r)
{
    tide_onedrive_close(r->onedrive);
    assert_int_equal(r->mem.bytes_live, 0);
    tide_buf_done(&r->text);
    tide_world_real_free(r->world);
    test_http_stop(r->server);
    free(r);
}

#define REAL(name) TEST_OF(name, struct real *r, real_begin(), real_end)

static tide_status sink_begin(void *arg, uint64_t at)
{
    struct real *r = arg;
    assert_int_equal(at, 0);
    r->bytes = 0;
    r->as_expected = true;
    tide_buf_clear(&r->text);
    return TIDE_OK;
}

static tide_status sink_write(void *arg, const char *bytes, size_t count)
{
    struct real *r = arg;
    for (size_t i = 0; i < count; i++)
        r->as_expected = r->as_expected && bytes[i] == test_http_pattern(r->bytes + i);
    if (r->bytes < 1000)
        OK(tide_buf_add(&r->text, bytes, count < 1000 ? count : 1000));
    r->bytes += count;
    return TIDE_OK;
}

static tide_status get(struct real *r, const char *url, uint64_t size,
                       struct tide_onedrive_got *got)
{
    const struct tide_onedrive_download download = {
        .url = url, .size = size, .begin = sink_begin, .sink = sink_write, .arg = r};
    return tide_onedrive_download(r->onedrive, NULL, &download, got, &r->err);
}

/* ODR4 */
REAL(a_large_download_streams)
{
    enum { BYTES = 20000000 };
    struct tide_onedrive_got got;
    OK(get(r, test_http_url(r->server, "/plain?bytes=20000000"), BYTES, &got));
    assert_int_equal(got.bytes, BYTES);
    assert_true(r->as_expected);
    assert_true(r->mem.bytes_peak < 200000);
    /* Without a length, too; and one byte more than its item says is refused. */
    OK(get(r, test_http_url(r->server, "/huge?bytes=300000"), 300000, &got));
    assert_int_equal(get(r, test_http_url(r->server, "/huge?bytes=300001"), 300000, &got),
                     TIDE_SERVER);
    assert_true(got.bytes <= 300000);
}

REAL(a_download_that_breaks_off_counts_what_came)
{
    struct tide_onedrive_got got;
    assert_int_equal(get(r, test_http_bad_url(r->server, "/truncated"), 1000, &got), TIDE_SERVER);
    assert_int_equal(got.bytes, r->bytes);
    assert_int_equal(get(r, test_http_url(r->server, "/status?code=403"), 1000, &got), TIDE_GONE);
    assert_int_equal(get(r, test_http_url(r->server, "/redirect"), 1000, &got), TIDE_SERVER);
    assert_int_equal(get(r, test_http_url(r->server, "/status?code=429"), 1000, &got),
                     TIDE_THROTTLED);
    assert_int_equal(got.bytes, 0);
}

/* I14 */
REAL(no_token_is_on_the_wire_of_a_signed_url)
{
    struct tide_onedrive_got got;
    (void)get(r, test_http_url(r->server, "/headers"), 4000, &got);
    assert_true(r->bytes > 0);
    assert_non_null(strcasestr(tide_buf_cstr(&r->text), "Accept-Encoding: identity"));
    assert_null(strcasestr(tide_buf_cstr(&r->text), "Authorization"));
    assert_null(strstr(tide_buf_cstr(&r->text), "bearer-1"));
}

static tide_status source_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct real *r = arg;
    const size_t left = strlen(r->upload) - r->at;
    *count_out = left < room ? left : room;
    memcpy(bytes, r->upload + r->at, *count_out);
    r->at += *count_out;
    return TIDE_OK;
}

static void source_rewind(void *arg)
{
    ((struct real *)arg)->at = 0;
}

/* The server repeats what it gets: an upload that is an answer comes back as one. */
REAL(a_fragment_streams_out)
{
    static const char progress[] = "{\"nextExpectedRanges\":[\"26-\"]}";
    r->upload = progress;
    const struct tide_onedrive_fragment fragment = {.url = test_http_url(r->server, "/echo"),
                                                    .bytes = sizeof progress - 1,
                                                    .total = sizeof progress - 1,
                                                    .source = source_read,
                                                    .rewind = source_rewind,
                                                    .source_arg = r};
    struct tide_onedrive_sent sent = {.finished = false};
    OK(tide_onedrive_fragment_put(r->onedrive, NULL, &fragment, &sent, &r->err));
    assert_false(sent.finished);
    assert_true(sent.next_known && sent.next == 26);
    r->upload = ITEM;
    struct tide_onedrive_fragment last = fragment;
    last.bytes = last.total = strlen(ITEM);
    OK(tide_onedrive_fragment_put(r->onedrive, NULL, &last, &sent, &r->err));
    assert_true(sent.finished && sent.answer.item.has_hash);
    tide_onedrive_sent_done(&sent);
    last.url = test_http_bad_url(r->server, "/reset-after");
    const tide_status rc = tide_onedrive_fragment_put(r->onedrive, NULL, &last, &sent, &r->err);
    assert_int_equal(rc, TIDE_UNKNOWN); /* D38 */
}
