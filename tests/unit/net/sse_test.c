/* Streams of events, in every split (SSE1). */
#include "net/sse.h"
#include "support/ok.h"
#include "support/test.h"

struct seen {
    char text[4096]; /* "name=data;" of each event */
    size_t bytes;
    tide_status answer;
};

static tide_status see(void *arg, const char *name, tide_text data)
{
    struct seen *seen = arg;
    seen->bytes += (size_t)snprintf(seen->text + seen->bytes, sizeof seen->text - seen->bytes,
                                    "%s=%.*s;", name, (int)data.bytes, data.data);
    assert_true(seen->bytes < sizeof seen->text);
    return seen->answer;
}

static tide_status take(const char *text, size_t bytes, size_t piece, size_t max, struct seen *seen)
{
    struct tide_sse sse;
    tide_status rc = TIDE_OK;
    *seen = (struct seen){.answer = seen->answer};
    tide_sse_init(&sse, max, see, seen, tide_mem_heap());
    for (size_t at = 0; at < bytes; at += piece)
        rc = tide_sse_write(&sse, text + at, bytes - at < piece ? bytes - at : piece);
    assert_int_equal(rc, sse.failed);
    tide_sse_done(&sse);
    return rc;
}

static void expect(const char *text, const char *events)
{
    struct seen seen = {.answer = TIDE_OK};
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        OK(take(text, strlen(text), piece, 1000, &seen));
        assert_string_equal(seen.text, events);
    }
}

TEST(events_are_what_the_standard_says)
{
    expect("data: a\n\ndata: b\n\n", "=a;=b;");
    expect("event: x\ndata: a\n\ndata: b\n\n", "x=a;=b;"); /* a name counts for one event */
    expect("data:a\n\ndata:  b\n\n", "=a;= b;");           /* one blank is not the data's */
    expect("data: a\ndata: b\ndata\n\n", "=a\nb\n;");
    expect("data: a\r\n\r\ndata: b\r\rdata: c\n\n", "=a;=b;=c;");
    expect("\xef\xbb\xbf"
           "data: a\n\n",
           "=a;");
    expect(": a comment\n\n:\n\nid: 7\nretry: 10\ndata: a\n\n", "=a;");
    expect("event: lone\n\ndata: a\n\n", "=a;"); /* without data it is none, and its name is over */
    expect("\n\n\ndatas: x\ndata: a\n\n", "=a;");
    expect("data: \xc3\xa9\xf0\x9f\x98\x80\n\n", "=\xc3\xa9\xf0\x9f\x98\x80;");
    expect("data\n\n", "=;");
}

TEST(an_event_without_its_end_is_none)
{
    expect("data: a\n\ndata: b\n", "=a;");
    expect("data: a\n\ndata: b", "=a;");
    expect("", "");
}

TEST(an_event_or_a_line_over_the_ceiling_ends_the_stream)
{
    struct seen seen = {.answer = TIDE_OK};
    const char line[] = ": 0123456789012345678901234567890123456789\n\ndata: a\n\n";
    const char full[] = "data: 0123456789\n\n";
    const char event[] = "data: 12345\ndata: 67890\n\ndata: a\n\n";
    const char name[] =
        "event: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaa\ndata: a\n\n";
    for (size_t piece = 1; piece < sizeof line; piece++) {
        assert_int_equal(take(event, sizeof event - 1, piece, 10, &seen), TIDE_FULL);
        assert_string_equal(seen.text, ""); /* SSE3 */
        assert_int_equal(take(line, sizeof line - 1, piece, 10, &seen), TIDE_FULL);
        assert_string_equal(seen.text, "");
        OK(take(full, sizeof full - 1, piece, 10, &seen)); /* to the last byte */
        assert_int_equal(take(full, sizeof full - 1, piece, 9, &seen), TIDE_FULL);
    }
    /* A name that is too long is cut; it only helps to read a log. */
    OK(take(name, sizeof name - 1, 7, 200, &seen));
    assert_int_equal(seen.bytes, TIDE_SSE_NAME_BYTES_MAX - 1 + 3);
}

TEST(what_the_caller_says_ends_the_stream)
{
    struct seen seen = {.answer = TIDE_CANCELED};
    assert_int_equal(take("data: a\n\ndata: b\n\n", 18, 5, 100, &seen), TIDE_CANCELED);
    assert_string_equal(seen.text, "=a;");
}
