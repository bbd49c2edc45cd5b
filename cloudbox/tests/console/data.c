/* The data by itself: days, rows, hours, and how they become final. */
#include "console_fixture.h"

/* ---- days ---- */

TEST(a_date_survives_being_read_and_printed)
{
    char text[11];
    for (int32_t i = 0; i < 60000; i++) {
        box_day_print(i, text);
        assert_int_equal(day(text), i);
    }
    assert_int_equal(day("1970-01-01"), 0);
    assert_int_equal(day("2000-03-01"), 11017);
    assert_int_equal(day("2024-02-29"), day("2024-03-01") - 1);
}

TEST(what_is_no_date_is_refused)
{
    static const char *const wrong[] = {"",           "2026-02-29",  "2026-13-01", "2026-00-10",
                                        "2026-01-00", "2026-1-1",    "2026/01/01", "20260101",
                                        "2026-01-32", "2026-01-011", "today",      "1969-12-31",
                                        "+026-01-01", "2100-02-29"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int32_t number = 77;
        assert_false(box_day_parse(tide_text_of(wrong[i]), &number));
        assert_int_equal(number, 77);
    }
}

/* Summer time: in 2026 from 8 March to 1 November. */
TEST(days_are_those_of_california)
{
    char text[26];
    assert_int_equal(box_day_hours(day("2026-03-07")), 24);
    assert_int_equal(box_day_hours(day("2026-03-08")), 23);
    assert_int_equal(box_day_hours(day("2026-11-01")), 25);
    assert_int_equal(box_day_hours(day("2026-11-02")), 24);
    box_hour_print(day("2026-03-08"), 1, text);
    assert_string_equal(text, "2026-03-08T01:00:00-08:00");
    box_hour_print(day("2026-03-08"), 2, text);
    assert_string_equal(text, "2026-03-08T03:00:00-07:00");
    box_hour_print(day("2026-11-01"), 1, text);
    assert_string_equal(text, "2026-11-01T01:00:00-07:00");
    box_hour_print(day("2026-11-01"), 2, text);
    assert_string_equal(text, "2026-11-01T01:00:00-08:00");
    box_hour_print(day("2026-11-01"), 24, text);
    assert_string_equal(text, "2026-11-01T23:00:00-08:00");
    for (int32_t i = day("2025-01-01"); i < day("2029-01-01"); i++) {
        const uint64_t start_ms = (uint64_t)box_day_start_ms(i);
        assert_int_equal(box_day_at(start_ms), i);
        assert_int_equal(box_day_at(start_ms - 1), i - 1);
    }
    assert_int_equal(box_day_at(NOW_MS), day("2026-09-10"));
    assert_int_equal(box_day_at(0), -1);
    assert_int_equal(box_day_oldest(day("2026-09-10")), day("2025-05-10"));
    assert_int_equal(box_day_oldest(day("2026-06-30")), day("2025-02-28"));
}

/* ---- rows ---- */

static const struct box_property small = {
    .seed = 7, .name = {"sc-domain:example.com", 21}, .rows_per_day = 1000};

/* BDAT1 and BDAT2, for sizes around the borders of the blocks. */
TEST(the_rows_of_a_day_are_sorted_and_distinct)
{
    static const uint32_t sizes[] = {1, 7, 8, 16, 17, 80, 81, 333, 1000, 5457, 50000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct box_property property = small;
        property.rows_per_day = sizes[i];
        property.seed = sizes[i] * 17;
        struct box_day today;
        box_day_open(&property, BOX_SEARCH_WEB, day("2026-07-01"), NOW_MS, &today);
        assert_true(today.final);
        assert_int_equal(today.rows, sizes[i]);
        const size_t keys = (size_t)(sizes[i] / 8 + 1) * BOX_COUNTRIES * BOX_DEVICES;
        uint8_t *seen = calloc(keys, 1);
        uint64_t last = UINT64_MAX;
        for (uint32_t rank = 0; rank < today.rows; rank++) {
            struct box_row row;
            box_day_row(&today, rank, &row);
            assert_true(row.clicks <= last);
            assert_true(row.clicks <= row.impressions);
            assert_true(row.impressions >= 1);
            assert_true(row.positions >= row.impressions);
            assert_true(row.page < BOX_PAGES_MAX);
            assert_true(row.appearance < BOX_APPEARANCES);
            last = row.clicks;
            const size_t key =
                ((size_t)row.query * BOX_COUNTRIES + row.country) * BOX_DEVICES + row.device;
            assert_true(key < keys);
            assert_int_equal(seen[key], 0);
            seen[key] = 1;
        }
        free(seen);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

TEST(every_query_and_page_has_its_own_name)
{
    const size_t count = BOX_QUERIES_MAX;
    char **names = calloc(count, sizeof(char *));
    char text[BOX_KEY_BYTES_MAX + 1];
    for (int pages = 0; pages < 2; pages++) {
        const size_t total = pages ? BOX_PAGES_MAX : count;
        for (uint32_t i = 0; i < total; i++) {
            const size_t bytes =
                pages ? box_page_text(&small, i, text) : box_query_text(&small, i, text);
            assert_int_equal(bytes, strlen(text));
            names[i] = strdup(text);
        }
        qsort(names, total, sizeof(char *), by_text);
        for (size_t i = 1; i < total; i++)
            assert_string_not_equal(names[i - 1], names[i]);
        for (size_t i = 0; i < total; i++)
            free(names[i]);
    }
    free(names);
}

/* BDAT3: on ordinary days and on those with 23 and 25 hours, complete or not. */
TEST(the_hours_of_a_row_add_up_to_it)
{
    static const char *const dates[] = {"2026-03-08", "2026-11-01", "2026-07-01"};
    for (size_t i = 0; i < 3; i++)
        for (uint64_t age = 5; age < 80; age += 7) {
            struct box_day today;
            const uint64_t now_ms = (uint64_t)box_day_start_ms(day(dates[i])) + age * HOUR_MS;
            box_day_open(&small, BOX_SEARCH_WEB, day(dates[i]), now_ms, &today);
            for (uint32_t rank = 0; rank < today.rows; rank++) {
                struct box_row row;
                struct box_row part;
                uint64_t sums[3] = {0};
                box_day_row(&today, rank, &row);
                for (uint32_t hour = 0; hour < today.hours; hour++) {
                    if (!box_row_hour(&today, &row, hour, &part))
                        continue;
                    assert_true(part.impressions > 0);
                    assert_true(part.clicks <= part.impressions);
                    sums[0] += part.clicks;
                    sums[1] += part.impressions;
                    sums[2] += part.positions;
                }
                assert_int_equal(sums[0], row.clicks);
                assert_int_equal(sums[1], row.impressions);
                assert_int_equal(sums[2], row.positions);
            }
        }
}

/* BDAT4 and BCON4. */
TEST(a_day_grows_until_it_is_final_and_then_stays)
{
    const int32_t number = day("2026-07-01");
    const uint64_t start_ms = (uint64_t)box_day_start_ms(number);
    struct box_day last = {0};
    uint64_t final_after = 0;
    for (uint64_t age = 0; age < 24 * 6; age++) {
        struct box_day now;
        box_day_open(&small, BOX_SEARCH_WEB, number, start_ms + age * HOUR_MS, &now);
        assert_true(now.rows >= last.rows);
        assert_true(now.hidden >= last.hidden);
        assert_true(now.final || !last.final);
        for (uint32_t rank = 0; rank < last.rows; rank++) {
            struct box_row before;
            struct box_row after;
            box_day_row(&last, rank, &before);
            box_day_row(&now, rank, &after);
            assert_int_equal(before.query, after.query);
            assert_true(before.clicks <= after.clicks);
            assert_true(before.impressions <= after.impressions);
            if (last.final) {
                assert_int_equal(before.impressions, after.impressions);
                assert_int_equal(before.positions, after.positions);
            }
        }
        if (now.final && final_after == 0)
            final_after = age;
        last = now;
    }
    assert_int_equal(last.rows, 1000);
    assert_true(final_after >= 48);
    assert_true(final_after <= 72);
}
