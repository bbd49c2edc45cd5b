/* The reader of batch answers (MPT1 to MPT3 of net/batch/multipart.h).
 *
 * Goal: every part is given out whole, once, under its own id, however the text is cut
 * and whatever stands in the bodies; what is broken is said to be broken.
 * Method: answers made from a seed, with bodies full of near-boundaries, read in random
 * cuts and compared with what went in. */
#include "base/rng.h"
#include "net/batch/multipart.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

enum { PARTS_MAX = 20, BODY_MAX = 300 };

struct part {
    char id[32];
    int http;
    char body[BODY_MAX];
    size_t bytes;
    bool ended, whole;
    size_t headers;
    char last[64]; /* header, as "name=value" */
};

struct seen {
    struct part parts[PARTS_MAX + 5];
    size_t count;
};

static tide_status on_part(void *arg, tide_text id, int http)
{
    struct seen *seen = arg;
    struct part *part = &seen->parts[seen->count++];
    assert_true(seen->count <= PARTS_MAX + 4);
    (void)snprintf(part->id, sizeof part->id, "%.*s", (int)id.bytes, id.data);
    part->http = http;
    return TIDE_OK;
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct seen *seen = arg;
    struct part *part = &seen->parts[seen->count - 1];
    assert_true(part->bytes + count <= sizeof part->body);
    memcpy(part->body + part->bytes, bytes, count);
    part->bytes += count;
    return TIDE_OK;
}

static tide_status on_end(void *arg, bool whole, const struct tide_header *headers,
                          size_t headers_count)
{
    struct seen *seen = arg;
    struct part *part = &seen->parts[seen->count - 1];
    part->ended = true;
    part->whole = whole;
    part->headers = headers_count;
    if (headers_count > 0) {
        const struct tide_header *last = &headers[headers_count - 1];
        (void)snprintf(part->last, sizeof part->last, "%.*s=%.*s", (int)last->name.bytes,
                       last->name.data, (int)last->value.bytes, last->value.data);
    }
    return TIDE_OK;
}

static tide_status read_all(const char *type, tide_text text, tide_rng *rng, struct seen *seen)
{
    const struct tide_batch_events events = {on_part, on_bytes, on_end, seen};
    void *reader = NULL;
    memset(seen, 0, sizeof *seen);
    tide_status rc = tide_batch_multipart.reader_new(tide_text_of(type), &events, tide_mem_heap(),
                                                     &reader, NULL);
    if (rc != TIDE_OK)
        return rc;
    for (size_t at = 0; rc == TIDE_OK && at < text.bytes;) {
        const size_t most = text.bytes - at;
        const size_t some = rng == NULL ? most : 1 + (size_t)tide_rng_below(rng, most);
        rc = tide_batch_multipart.reader_write(reader, text.data + at, some);
        at += some;
    }
    const tide_status ended = tide_batch_multipart.reader_end(reader, NULL);
    tide_batch_multipart.reader_free(reader);
    return rc == TIDE_OK ? ended : rc;
}

/* Letters that look like a boundary as often as not. */
static size_t random_body(tide_rng *rng, char *out)
{
    static const char *const bits[] = {"\r\n", "--",      "B", "b1",     "\r",
                                       "\n",   "\r\n--B", "x", "\r\n--", "{\"rows\":[]}"};
    size_t bytes = 0;
    const size_t count = (size_t)tide_rng_below(rng, 20);
    for (size_t i = 0; i < count; i++) {
        const char *bit = bits[tide_rng_below(rng, sizeof bits / sizeof bits[0])];
        memcpy(out + bytes, bit, strlen(bit));
        bytes += strlen(bit);
    }
    return bytes;
}

TEST(the_headers_of_a_part_come_with_its_end)
{
    struct seen seen;
    tide_buf text = heap_buf(1 << 20);
    (void)tide_buf_add_text(&text,
                            "--b\r\nContent-ID: <response-q0>\r\n\r\nHTTP/1.1 429 No\r\n"
                            "Content-Type: application/json\r\nRetry-After:  7 \r\n\r\n{}\r\n"
                            "--b\r\nContent-ID: <response-q1>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
                            "{}\r\n--b\r\nContent-ID: <response-q2>\r\n\r\nHTTP/1.1 200 OK\r\n");
    /* More than the reader keeps: an answer nevertheless. */
    for (unsigned i = 0; i < 2000; i++)
        (void)tide_buf_print(&text, "X-%u: y\r\n", i);
    (void)tide_buf_add_text(&text, "\r\n{}\r\n--b--\r\n");
    for (uint64_t seed = 1; seed <= 20; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        OK(read_all("multipart/mixed; boundary=b", tide_buf_text(&text), &rng, &seen));
        assert_int_equal(seen.count, 3);
        assert_int_equal(seen.parts[0].headers, 2);
        assert_string_equal(seen.parts[0].last, "Retry-After=7");
        assert_int_equal(seen.parts[1].headers, 0);
        assert_true(seen.parts[2].headers > 10 && seen.parts[2].whole);
        assert_int_equal(seen.parts[2].bytes, 2);
    }
    tide_buf_done(&text);
}

TEST(every_part_comes_back_whole_however_it_is_cut)
{
    for (uint64_t seed = 1; seed <= scaled(20000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        struct part parts[PARTS_MAX];
        struct seen seen;
        tide_buf text = heap_buf(1 << 20);
        const size_t count = (size_t)tide_rng_below(&rng, PARTS_MAX);
        if (tide_rng_below(&rng, 2) == 0)
            (void)tide_buf_add_text(&text, "a preamble\r\n");
        for (size_t i = 0; i < count; i++) {
            struct part *part = &parts[i];
            memset(part, 0, sizeof *part);
            (void)snprintf(part->id, sizeof part->id, "q%zu", i);
            part->http = 200 + (int)tide_rng_below(&rng, 300);
            part->bytes = random_body(&rng, part->body);
            (void)tide_buf_print(&text,
                                 "--batch_B1-x\r\nContent-Type: application/http\r\n"
                                 "Content-ID: <response-q%zu>\r\n\r\nHTTP/1.1 %d Said\r\n"
                                 "Content-Type: application/json\r\n\r\n",
                                 i, part->http);
            (void)tide_buf_add(&text, part->body, part->bytes);
            (void)tide_buf_add_text(&text, "\r\n");
        }
        (void)tide_buf_add_text(&text, "--batch_B1-x--\r\nan epilogue\r\n");
        const tide_status rc =
            read_all("multipart/mixed; boundary=\"batch_B1-x\"", tide_buf_text(&text), &rng, &seen);
        if (rc != TIDE_OK || seen.count != count)
            fail_msg("seed %" PRIu64 ": %s, %zu of %zu parts", seed, tide_status_name(rc),
                     seen.count, count);
        for (size_t i = 0; i < count; i++)
            if (strcmp(seen.parts[i].id, parts[i].id) != 0 || !seen.parts[i].whole ||
                seen.parts[i].http != parts[i].http || seen.parts[i].bytes != parts[i].bytes ||
                memcmp(seen.parts[i].body, parts[i].body, parts[i].bytes) != 0)
                fail_msg("seed %" PRIu64 ": part %zu differs", seed, i);
        tide_buf_done(&text);
    }
}

TEST(an_answer_that_ends_early_is_no_answer)
{
    static const char whole[] =
        "--b\r\nContent-ID: <response-q0>\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbody"
        "\r\n--b--\r\n";
    struct seen seen;
    const tide_text all = TIDE_TEXT(whole);
    OK(read_all("multipart/mixed; boundary=b", all, NULL, &seen));
    for (size_t bytes = 0; bytes + 4 < all.bytes; bytes++) {
        const tide_text some = {whole, bytes};
        if (read_all("multipart/mixed; boundary=b", some, NULL, &seen) != TIDE_SERVER)
            fail_msg("%zu bytes were taken for all", bytes);
        /* Its body may only be called whole once the boundary behind it is there. */
        if (seen.count == 1 && seen.parts[0].whole && bytes < all.bytes - 6)
            fail_msg("%zu bytes were taken for a whole part", bytes);
    }
}

TEST(a_part_without_a_body_is_a_part)
{
    struct seen seen;
    OK(read_all("multipart/mixed; boundary=b",
                TIDE_TEXT("--b\r\ncontent-id: response-q3\r\n\r\n"
                          "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n--b--\r\n"),
                NULL, &seen));
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.parts[0].id, "q3");
    assert_int_equal(seen.parts[0].http, 204);
    assert_true(seen.parts[0].whole);
}

TEST(heads_that_make_no_sense_are_refused)
{
    struct seen seen;
    assert_int_equal(read_all("text/html", TIDE_TEXT("x"), NULL, &seen), TIDE_SERVER);
    assert_int_equal(read_all("multipart/mixed; boundary=", TIDE_TEXT("x"), NULL, &seen),
                     TIDE_SERVER);
    assert_int_equal(read_all("multipart/mixed; boundary=b",
                              TIDE_TEXT("--b\r\n\r\nNONSENSE\r\n\r\nx\r\n--b--\r\n"), NULL, &seen),
                     TIDE_SERVER);
    assert_int_equal(read_all("multipart/mixed; boundary=b",
                              TIDE_TEXT("--b\r\n\r\nHTTP/1.1 2x0 OK\r\n\r\nx\r\n--b--\r\n"), NULL,
                              &seen),
                     TIDE_SERVER);
    /* A head without an end does not grow without limit. */
    tide_buf text = heap_buf(1 << 20);
    (void)tide_buf_add_text(&text, "--b\r\n");
    for (int i = 0; i < TIDE_MULTIPART_HEAD_MAX + 10; i++)
        (void)tide_buf_add_text(&text, "h");
    assert_int_equal(read_all("multipart/mixed; boundary=b", tide_buf_text(&text), NULL, &seen),
                     TIDE_SERVER);
    tide_buf_done(&text);
}
