/* The parts of `mail browse` that need no terminal: rows in pages, text in lines, commands behind it. */
#include "mail/browse/lines.h"
#include "mail/browse/rows.h"

#include "base/rng.h"
#include "cli/cli.h"
#include "support/test.h"

#include <stdio.h>

/* ---- rows ---- */

/* The answer of a search over `total` messages, for one page. */
static json_t *page_of(size_t page, size_t total)
{
    json_t *rows = json_array();
    char text[32];
    for (size_t i = page * BROWSE_PAGE_ROWS; i < total && i < (page + 1) * BROWSE_PAGE_ROWS; i++) {
        (void)snprintf(text, sizeof text, "%zu", i);
        (void)json_array_append_new(rows, json_pack("{s:s}", "id", text));
    }
    const bool more = (page + 1) * BROWSE_PAGE_ROWS < total;
    (void)snprintf(text, sizeof text, "token %zu", page + 1);
    json_t *answer = json_pack("{s:o}", "messages", rows);
    (void)json_object_set_new(answer, "next", more ? json_string(text) : json_null());
    return answer;
}

/* Answers what is missing for a screen, as often as something is. */
static void fill(struct browse_rows *rows, size_t first, size_t total)
{
    size_t page = 0;
    for (unsigned turn = 0; browse_rows_missing(rows, first, 80, &page); turn++) {
        char token[32];
        assert_true(turn < 4);
        (void)snprintf(token, sizeof token, "token %zu", page);
        if (page == 0)
            assert_null(browse_rows_after(rows, page));
        else
            assert_string_equal(browse_rows_after(rows, page), token);
        json_t *answer = page_of(page, total);
        assert_int_equal(browse_rows_put(rows, page, answer), TIDE_OK);
        json_decref(answer);
    }
}

static size_t loaded(const struct browse_rows *rows)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->pages_count; i++)
        count += rows->pages[i].rows != NULL;
    return count;
}

static void row_is(struct browse_rows *rows, size_t index)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%zu", index);
    const json_t *row = browse_rows_at(rows, index);
    assert_non_null(row);
    assert_string_equal(json_string_value(json_object_get(row, "id")), text);
}

TEST(a_list_of_any_length_is_walked_in_bounded_memory)
{
    enum { TOTAL = 20 * 1000 + 7 };
    struct browse_rows rows;
    browse_rows_init(&rows, tide_mem_heap());
    for (size_t at = 0; at < TOTAL; at += 40) {
        fill(&rows, at, TOTAL);
        row_is(&rows, at);
        assert_true(loaded(&rows) <= BROWSE_PAGES_MAX); /* BRW1 */
    }
    assert_true(rows.complete);
    assert_int_equal(browse_rows_known(&rows), TOTAL);
    assert_null(browse_rows_at(&rows, TOTAL));
    for (size_t at = TOTAL; at > 0; at = at > 40 ? at - 40 : 0) { /* and back */
        fill(&rows, at - 1, TOTAL);
        row_is(&rows, at - 1);
        assert_true(loaded(&rows) <= BROWSE_PAGES_MAX);
    }
    browse_rows_done(&rows);
}

TEST(a_list_ends_where_the_search_does)
{
    const size_t totals[] = {0, 1, BROWSE_PAGE_ROWS - 1, BROWSE_PAGE_ROWS, BROWSE_PAGE_ROWS + 1};
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        struct browse_rows rows;
        browse_rows_init(&rows, tide_mem_heap());
        assert_int_equal(browse_rows_known(&rows), 0);
        fill(&rows, 0, totals[i]);
        fill(&rows, totals[i], totals[i]);
        assert_true(rows.complete);
        assert_int_equal(browse_rows_known(&rows), totals[i]);
        browse_rows_done(&rows);
    }
}

TEST(a_search_that_answers_nonsense_is_an_empty_list)
{
    struct browse_rows rows;
    json_t *answer = json_pack("{s:s,s:i}", "messages", "none", "next", 3);
    browse_rows_init(&rows, tide_mem_heap());
    assert_int_equal(browse_rows_put(&rows, 0, answer), TIDE_OK);
    json_decref(answer);
    assert_true(rows.complete);
    assert_int_equal(browse_rows_known(&rows), 0);
    assert_null(browse_rows_at(&rows, 0));
    browse_rows_done(&rows);
}

/* ---- lines ---- */

static void lines_are(unsigned columns, const char *text, const char *want)
{
    struct browse_lines lines;
    tide_auto_buf joined = tide_buf_heap(1 << 16);
    browse_lines_init(&lines, tide_mem_heap());
    browse_lines_clear(&lines, columns);
    assert_int_equal(browse_lines_add(&lines, BROWSE_PLAIN, tide_text_of(text)), TIDE_OK);
    for (size_t i = 0; i < lines.count; i++) {
        const tide_text line = browse_lines_at(&lines, i);
        assert_int_equal(tide_buf_print(&joined, "%.*s|", (int)line.bytes, line.data), TIDE_OK);
    }
    assert_string_equal(tide_buf_cstr(&joined), want);
    browse_lines_done(&lines);
}

TEST(text_is_wrapped_at_blanks)
{
    lines_are(10, "one two three four", "one two|three four|");
    lines_are(9, "one two three four", "one two|three|four|");
    lines_are(10, "", "|");
    lines_are(10, "a\n\nb\r\nc\n", "a||b|c|");
    lines_are(5, "abcdefghijk", "abcde|fghij|k|"); /* no blank to wrap at */
    lines_are(5, "ab cdefghijk", "ab|cdefg|hijk|");
    lines_are(10, "1234567890 1", "1234567890|1|"); /* the blank is behind the edge */
    lines_are(20, "a\tb", "a       b|");
}

TEST(wide_characters_take_two_columns)
{
    lines_are(6, "旅行の写真", "旅行の|写真|");
    lines_are(5, "旅行の写真", "旅行|の写|真|");
    lines_are(1, "旅", "旅|"); /* BLN1: a single character is never cut */
}

TEST(nothing_controls_the_terminal_or_turns_the_text_around)
{
    lines_are(40, "a\x1b[31mb\x7f", "a[31mb|");
    lines_are(40, "evil\xe2\x80\xae gpj.exe", "evil gpj.exe|");   /* U+202E */
    lines_are(40, "\xe2\x81\xa6x\xe2\x81\xa9\xef\xbb\xbf", "x|"); /* isolates, BOM */
    lines_are(40, "\xd9\x85\xe2\x80\x8c\xd9\x87",
              "\xd9\x85\xe2\x80\x8c\xd9\x87|"); /* a joiner stays */
    lines_are(40, "bad \xff byte", "bad ? byte|");
    lines_are(40,
              "\xc2\x9b"
              "31m",
              "31m|"); /* CSI of eight bits */
}

TEST(quoted_lines_are_known)
{
    struct browse_lines lines;
    browse_lines_init(&lines, tide_mem_heap());
    browse_lines_clear(&lines, 10);
    assert_int_equal(browse_lines_add(&lines, BROWSE_PLAIN, TIDE_TEXT("I\n> you said so\nno")),
                     TIDE_OK);
    assert_int_equal(lines.count, 4);
    assert_int_equal(lines.list[0].style, BROWSE_PLAIN);
    assert_int_equal(lines.list[1].style, BROWSE_QUOTED);
    assert_int_equal(lines.list[2].style, BROWSE_QUOTED);
    assert_int_equal(lines.list[3].style, BROWSE_PLAIN);
    browse_lines_done(&lines);
}

/* Any bytes, any width: BLN1, BLN2, and no end without a line. */
TEST(any_bytes_become_lines_that_fit)
{
    tide_rng rng = tide_rng_seeded(17);
    for (unsigned turn = 0; turn < 3000; turn++) {
        char bytes[200];
        const size_t count = tide_rng_below(&rng, sizeof bytes);
        const unsigned columns = 1 + (unsigned)tide_rng_below(&rng, 30);
        struct browse_lines lines;
        for (size_t i = 0; i < count; i++)
            bytes[i] = (char)(tide_rng_below(&rng, 3) == 0 ? tide_rng_below(&rng, 256)
                                                           : ' ' + tide_rng_below(&rng, 60));
        browse_lines_init(&lines, tide_mem_heap());
        browse_lines_clear(&lines, columns);
        assert_int_equal(browse_lines_add(&lines, BROWSE_PLAIN, (tide_text){bytes, count}),
                         TIDE_OK);
        assert_true(lines.count >= 1);
        for (size_t i = 0; i < lines.count; i++) {
            const tide_text line = browse_lines_at(&lines, i);
            size_t first = 0;
            if (line.bytes > 0)
                (void)cli_char_width(line, &first);
            assert_true(cli_text_width(line) <= columns || first == line.bytes);
            for (size_t at = 0; at < line.bytes; at++)
                assert_true((unsigned char)line.data[at] >= 0x20 && line.data[at] != 0x7f);
        }
        browse_lines_done(&lines);
    }
}
