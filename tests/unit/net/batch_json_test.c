/* Microsoft Graph's wire format of batches (BJS1 to BJS3 of net/batch/json.h).
 *
 * Goal: every part is given out whole, once, under its own id, in whatever order and however the
 * text is cut; what is broken is said to be broken. */
#include "net/batch/json.h"
#include "base/json.h"
#include "base/rng.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/sweep.h"
#include "support/test.h"

struct seen {
    char text[2048]; /* "q0 201 {...} h=v;!" for each part; '?' for one that broke off */
    bool open;
};

static void say(struct seen *seen, const char *text, size_t bytes)
{
    const size_t at = strlen(seen->text);
    (void)snprintf(seen->text + at, sizeof seen->text - at, "%.*s", (int)bytes, text);
}

static tide_status on_part(void *arg, tide_text id, int http)
{
    struct seen *seen = arg;
    assert_false(seen->open);
    seen->open = true;
    const char *head = textf("%.*s %d ", (int)id.bytes, id.data, http);
    say(seen, head, strlen(head));
    return TIDE_OK;
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct seen *seen = arg;
    assert_true(seen->open);
    say(seen, bytes, count);
    return TIDE_OK;
}

static tide_status on_end(void *arg, bool whole, const struct tide_header *headers, size_t count)
{
    struct seen *seen = arg;
    assert_true(seen->open);
    seen->open = false;
    for (size_t i = 0; i < count; i++) {
        const char *line = textf(" %.*s=%.*s", (int)headers[i].name.bytes, headers[i].name.data,
                                 (int)headers[i].value.bytes, headers[i].value.data);
        say(seen, line, strlen(line));
    }
    say(seen, whole ? "!" : "?", 1);
    return TIDE_OK;
}

static tide_status read_all(const char *text, size_t piece, struct seen *seen, tide_mem *mem)
{
    const struct tide_batch_events events = {on_part, on_bytes, on_end, seen};
    void *reader = NULL;
    *seen = (struct seen){.open = false};
    tide_status rc = tide_batch_json.reader_new(TIDE_TEXT("application/json; charset=utf-8"),
                                                &events, mem, &reader, NULL);
    const size_t bytes = strlen(text);
    for (size_t at = 0; rc == TIDE_OK && at < bytes; at += piece)
        rc = tide_batch_json.reader_write(reader, text + at,
                                          bytes - at < piece ? bytes - at : piece);
    if (rc == TIDE_OK)
        rc = tide_batch_json.reader_end(reader, NULL);
    tide_batch_json.reader_free(reader);
    assert_false(seen->open);
    return rc;
}

TEST(a_request_is_one_object_with_paths_below_the_version)
{
    static const struct tide_header headers[] = {{TIDE_TEXT("If-Match"), TIDE_TEXT("\"{E},1\"")},
                                                 {TIDE_TEXT("Prefer"), TIDE_TEXT("x")}};
    const struct tide_batch_part parts[] = {
        {.verb = "POST",
         .path = "/v1.0/me/drive/items/P%21/children",
         .body = TIDE_TEXT("{\"name\":\"a\"}\n")},
        {.verb = "DELETE",
         .path = "/v1.0/me/drive/items/A",
         .headers = headers,
         .headers_count = 2},
        {.verb = "PATCH",
         .path = "/v1.0/drives/D/items/B",
         .body = TIDE_TEXT("{}"),
         .headers = headers,
         .headers_count = 1},
        {.verb = "GET", .path = "/v1.0/me"},
    };
    tide_buf type = heap_buf(200);
    tide_buf body = heap_buf(4096);
    OK(tide_batch_json.write(parts, 4, "ignored", &type, &body));
    assert_string_equal(tide_buf_cstr(&type), "application/json");
    json_t *got = NULL;
    json_t *expected = NULL;
    OK(tide_json_parse(tide_buf_text(&body), &got, NULL));
    OK(tide_json_parse(
        TIDE_TEXT("{\"requests\":[{\"id\":\"q0\",\"method\":\"POST\",\"url\":"
                  "\"/me/drive/items/P%21/children\",\"headers\":{\"Content-Type\":"
                  "\"application/json\"},\"body\":{\"name\":\"a\"}},{\"id\":\"q1\",\"method\":"
                  "\"DELETE\",\"url\":\"/me/drive/items/A\",\"headers\":{\"If-Match\":"
                  "\"\\\"{E},1\\\"\",\"Prefer\":\"x\"}},{\"id\":\"q2\",\"method\":\"PATCH\","
                  "\"url\":\"/drives/D/items/B\",\"headers\":{\"Content-Type\":"
                  "\"application/json\",\"If-Match\":\"\\\"{E},1\\\"\"},\"body\":{}},{\"id\":"
                  "\"q3\",\"method\":\"GET\",\"url\":\"/me\"}]}"),
        &expected, NULL));
    assert_true(json_equal(got, expected));
    json_decref(got);
    json_decref(expected);
    tide_buf_done(&type);
    tide_buf_done(&body);
    assert_int_equal(tide_batch_json.parts_max, 20);
}

static const struct {
    const char *text;
    tide_status status;
    const char *seen;
} rows[] = {
    {"{\"responses\":[]}", TIDE_OK, ""},
    {"{\"responses\":[{\"id\":\"q1\",\"status\":201,\"headers\":{\"Location\":\"x\"},\"body\":{"
     "\"id\":\"1\"}},{\"id\":\"q0\",\"status\":204}]}",
     TIDE_OK, "q1 201 {\"id\":\"1\"} Location=x!q0 204 !"},
    {"{\"responses\":[{\"id\":\"q0\",\"status\":429,\"headers\":{\"Retry-After\":\"10\",\"n\":7},"
     "\"body\":{\"error\":{\"code\":\"x\"}}}]}",
     TIDE_OK, "q0 429 {\"error\":{\"code\":\"x\"}} Retry-After=10!"},
    {"{\"responses\":[{\"body\":\"aGk=\",\"status\":200,\"id\":\"q7\"},{\"id\":\"q8\",\"status\":"
     "200,\"body\":null,\"headers\":null}]}",
     TIDE_OK, "q7 200 \"aGk=\"!q8 200 !"},
    /* Without an id or a code: skipped (BJS3). */
    {"{\"responses\":[{\"status\":200},{\"id\":\"q0\"},{\"id\":7,\"status\":200},{\"id\":\"q1\","
     "\"status\":\"200\"},{\"id\":\"q2\",\"status\":0},{\"id\":\"q3\",\"status\":1000},{},{\"id\":"
     "\"q4\",\"status\":200}]}",
     TIDE_OK, "q4 200 !"},
    /* What came before a break is kept. */
    {"{\"responses\":[{\"id\":\"q0\",\"status\":204},{\"id\":\"q1\",\"sta", TIDE_SERVER,
     "q0 204 !"},
    {"{\"responses\":[{\"id\":\"q0\",\"status\":204},7]}", TIDE_SERVER, "q0 204 !"},
    {"{\"responses\":{}}", TIDE_SERVER, ""},
    {"{}", TIDE_SERVER, ""},
    {"<html>", TIDE_SERVER, ""},
};

TEST(every_part_comes_back_however_the_answer_is_cut)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t piece = 1; piece <= strlen(rows[i].text); piece++) {
            struct seen seen;
            const tide_status rc = read_all(rows[i].text, piece, &seen, tide_mem_heap());
            if (rc != rows[i].status || strcmp(seen.text, rows[i].seen) != 0)
                fail_msg("%s in pieces of %zu: %s: %s", rows[i].text, piece, tide_status_name(rc),
                         seen.text);
        }
    }
}

TEST(what_is_not_json_is_no_answer_to_a_batch)
{
    static const char *const types[] = {"", "text/html", "multipart/mixed; boundary=x",
                                        "application/jso"};
    const struct tide_batch_events events = {on_part, on_bytes, on_end, NULL};
    void *reader = NULL;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        assert_int_equal(tide_batch_json.reader_new(tide_text_of(types[i]), &events,
                                                    tide_mem_heap(), &reader, NULL),
                         TIDE_SERVER);
    assert_null(reader);
}

TEST(an_answer_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        struct seen seen;
        const tide_status rc = read_all(rows[1].text, 3, &seen, &mem.base);
        assert_int_equal(mem.bytes_live, 0);
        assert_true(mem.fired ? rc != TIDE_OK : rc == TIDE_OK);
    }
}

/* Parts in random order with random bodies: each comes back as it went in. */
TEST(random_answers_come_back_whole)
{
    enum { PARTS = 20 };
    for (uint64_t seed = 1; seed <= scaled(3000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        tide_buf text = heap_buf(1 << 16);
        tide_buf expected = heap_buf(1 << 16);
        const unsigned count = (unsigned)tide_rng_below(&rng, PARTS) + 1;
        OK(tide_buf_add_text(&text, "{\"responses\":["));
        for (unsigned i = 0; i < count; i++) {
            const unsigned id = (unsigned)tide_rng_below(&rng, PARTS);
            const unsigned http = 200 + (unsigned)tide_rng_below(&rng, 300);
            const char *body = textf("{\"n\":%u,\"t\":\"]}\\\"[{%u\"}", i, id);
            OK(tide_buf_print(&text, "%s{\"id\":\"q%u\",\"status\":%u,\"body\":%s}",
                              i == 0 ? "" : " , ", id, http, body));
            OK(tide_buf_print(&expected, "q%u %u %s!", id, http, body));
        }
        OK(tide_buf_add_text(&text, "]}"));
        struct seen seen;
        OK(read_all(tide_buf_cstr(&text), 1 + tide_rng_below(&rng, 50), &seen, tide_mem_heap()));
        assert_string_equal(seen.text, tide_buf_cstr(&expected));
        tide_buf_done(&text);
        tide_buf_done(&expected);
    }
}
