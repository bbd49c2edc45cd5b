/* What is beyond a ceiling; the large ones are in tests/unit/mail/message_hostile_test.c. */
#include "support/heap.h"
#include "support/test.h"
#include "unit/mail/message_fixture.h"

TEST(beyond_a_ceiling_what_was_found_is_there)
{
    struct parsed parsed;
    tide_buf raw = heap_buf(1 << 24);
    (void)tide_buf_add_text(&raw, "Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n");
    for (int i = 0; i < TIDE_MESSAGE_PARTS_MAX; i++)
        (void)tide_buf_print(&raw, "--b\nContent-Type: a/b; name=n%d\n\nx%d\n", i, i);
    (void)tide_buf_add_text(&raw, "--b--\n");
    parse(tide_buf_text(&raw), &parsed);
    assert_int_equal(parsed.message.parsed, TIDE_PARSED_PARTLY);
    assert_string_equal(parsed.message.problem, "more parts than the limit");
    assert_text(parsed.message.subject, "s");
    assert_int_equal(parsed.message.attachments_count, TIDE_MESSAGE_ATTACHMENTS_MAX);
    assert_text(parsed.message.attachments[499].name, "n499");
    parsed_done(&parsed);

    /* One header too many, behind those that matter. */
    tide_buf_clear(&raw);
    (void)tide_buf_add_text(&raw, "Subject: s\n");
    for (int i = 1; i < TIDE_MESSAGE_HEADER_LINES_MAX; i++)
        (void)tide_buf_add_text(&raw, "X: y\n");
    size_t whole = raw.bytes;
    (void)tide_buf_add_text(&raw, "\ntext\n");
    parse(tide_buf_text(&raw), &parsed);
    assert_int_equal(parsed.message.parsed, TIDE_PARSED_WHOLE);
    parsed_done(&parsed);
    raw.bytes = whole;
    (void)tide_buf_add_text(&raw, "To: a@b\n\ntext\n");
    parse(tide_buf_text(&raw), &parsed);
    assert_string_equal(parsed.message.problem, "more header lines than the limit");
    assert_text(parsed.message.subject, "s");
    assert_text(parsed.message.to, "");
    assert_text(parsed.message.text, "text\n");
    parsed_done(&parsed);
    tide_buf_done(&raw);
}

static void add_nested(tide_buf *raw, int deep)
{
    (void)tide_buf_add_text(raw, "Subject: s\n");
    for (int i = 0; i < deep; i++)
        (void)tide_buf_print(raw, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i);
    (void)tide_buf_add_text(raw, "\ninnermost\n");
    for (int i = deep; i > 0; i--)
        (void)tide_buf_print(raw, "--b%d\nContent-Type: a/b; name=n%d\n\nx\n--b%d--\n", i - 1,
                             i - 1, i - 1);
}

/* What is too deep is walked over; what encloses it still has its parts. */
TEST(depth_has_a_ceiling)
{
    struct parsed parsed;
    tide_buf raw = heap_buf(1 << 24);
    add_nested(&raw, TIDE_MESSAGE_PARTS_DEEP);
    parse(tide_buf_text(&raw), &parsed);
    assert_int_equal(parsed.message.parsed, TIDE_PARSED_WHOLE);
    assert_text(parsed.message.text, "innermost");
    assert_int_equal(parsed.message.attachments_count, TIDE_MESSAGE_PARTS_DEEP);
    parsed_done(&parsed);
    tide_buf_clear(&raw);
    add_nested(&raw, TIDE_MESSAGE_PARTS_DEEP + 1);
    parse(tide_buf_text(&raw), &parsed);
    assert_string_equal(parsed.message.problem, "parts nested deeper than the limit");
    assert_int_equal(parsed.message.attachments_count, TIDE_MESSAGE_PARTS_DEEP);
    assert_text(parsed.message.attachments[0].name, "n49");
    parsed_done(&parsed);
    tide_buf_done(&raw);
}

TEST(text_has_a_ceiling)
{
    struct parsed parsed;
    tide_buf raw = heap_buf(1 << 24);
    (void)tide_buf_add_text(&raw, "Subject: s\nContent-Type: text/plain; charset=utf-8\n\n");
    while (raw.bytes < TIDE_MESSAGE_TEXT_BYTES_MAX + 100)
        (void)tide_buf_add_text(&raw, "\343\201\202");
    parse(tide_buf_text(&raw), &parsed);
    assert_string_equal(parsed.message.problem, "more text than the limit");
    assert_true(parsed.message.text.bytes > TIDE_MESSAGE_TEXT_BYTES_MAX - 8);
    parsed_done(&parsed);
    tide_buf_done(&raw);
}
