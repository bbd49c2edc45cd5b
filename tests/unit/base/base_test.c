/* What everything else stands on: statuses, numbers, buffers, arenas, maps, marks. */
#include "base/buf.h"
#include "base/check.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/text.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

#include <errno.h>

TEST(every_status_has_a_name_and_a_class)
{
    for (int status = TIDE_BUG; status <= TIDE_OK; status++) {
        const char *name = tide_status_name((tide_status)status);
        assert_int_equal(tide_status_from_name(name), status);
        bool is_bug = tide_status_class((tide_status)status) == TIDE_CLASS_BUG;
        assert_int_equal(is_bug, status == TIDE_BUG);
    }
    assert_int_equal(tide_status_from_name("no such status"), TIDE_BUG);
    assert_int_equal(tide_status_class((tide_status)-999), TIDE_CLASS_BUG);
}

TEST(errors_are_cut_never_overrun_and_may_be_absent)
{
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    tide_error err;
    assert_int_equal(tide_error_set(&err, TIDE_FULL, "%s", long_text), TIDE_FULL);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_int_equal(tide_error_os(&err, ENOSPC, "write %s", "a file"), TIDE_DISK_FULL);
    assert_int_equal(err.code, ENOSPC);
    assert_non_null(strstr(err.text, "write a file: "));
    assert_int_equal(tide_error_os(&err, ENOENT, "%s", long_text), TIDE_NOT_FOUND);
    assert_int_equal(tide_error_set(NULL, TIDE_STALE, "nobody listens"), TIDE_STALE);
}

TEST(numbers_are_read_whole_or_not_at_all)
{
    uint64_t number = 7;
    int64_t with_sign = 7;
    assert_true(tide_text_to_u64(TIDE_TEXT("18446744073709551615"), &number));
    assert_true(number == UINT64_MAX);
    const char *const refused[] = {"",   "18446744073709551616", "1 ", " 1", "+1", "-1", "0x1",
                                   "1.0"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        number = 7;
        assert_false(tide_text_to_u64(tide_text_of(refused[i]), &number));
        assert_int_equal(number, 7);
    }
    assert_true(tide_text_to_i64(TIDE_TEXT("-9223372036854775807"), &with_sign));
    assert_true(with_sign == -INT64_MAX);
    assert_false(tide_text_to_i64(TIDE_TEXT("9223372036854775808"), &with_sign));
    assert_false(tide_text_to_i64(TIDE_TEXT("-"), &with_sign));
    assert_false(tide_text_to_i64(TIDE_TEXT_NONE, &with_sign));
}

TEST(words_and_numbers_are_taken_from_a_text_one_by_one)
{
    uint64_t number = 0;
    tide_text rest = TIDE_TEXT("12 -3  x 4");
    assert_true(tide_text_number(&rest, &number));
    assert_int_equal(number, 12);
    assert_true(tide_text_equal(tide_text_word(&rest), TIDE_TEXT("-3")));
    assert_int_equal(tide_text_word(&rest).bytes, 0); /* between two spaces */
    assert_false(tide_text_number(&rest, &number));
    assert_true(tide_text_equal(rest, TIDE_TEXT("4"))); /* what is no number was taken too */
    assert_true(tide_text_number(&rest, &number));
    assert_int_equal(number, 4);
    assert_int_equal(rest.bytes, 0);
    assert_false(tide_text_number(&rest, &number));
    assert_false(tide_text_number(&rest, &number)); /* nothing is left, whatever its address */
    rest = TIDE_TEXT("5 ");                         /* the last word is empty: more was promised */
    assert_true(tide_text_number(&rest, &number));
    assert_false(tide_text_number(&rest, &number));
    assert_int_equal(number, 5);
}

TEST(a_buffer_with_known_size_grows_once)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    tide_buf buf;
    tide_buf_init(&buf, &mem.base, 10);
    OK(tide_buf_room(&buf, 100));
    assert_int_equal(mem.bytes_live, 101);
    assert_string_equal(tide_buf_cstr(&buf), "");
    OK(tide_buf_add_text(&buf, "1234567890"));
    assert_int_equal(tide_buf_add(&buf, "x", 1), TIDE_FULL); /* the ceiling stays */
    OK(tide_buf_room(&buf, 50));
    assert_int_equal(mem.allocations, 1);
    mem.fail_at = 1;
    assert_int_equal(tide_buf_room(&buf, 101), TIDE_NO_MEMORY);
    assert_int_equal(tide_buf_room(&buf, SIZE_MAX), TIDE_FULL);
    assert_string_equal(tide_buf_cstr(&buf), "1234567890");
    tide_buf_done(&buf);
    assert_int_equal(mem.bytes_live, 0);
}

TEST(a_buffer_keeps_its_ceiling_and_its_content)
{
    tide_buf buf = heap_buf(10);
    assert_string_equal(tide_buf_cstr(&buf), "");
    OK(tide_buf_add_text(&buf, "12345"));
    assert_int_equal(tide_buf_print(&buf, "%s", "678901"), TIDE_FULL);
    assert_string_equal(tide_buf_cstr(&buf), "12345");
    OK(tide_buf_print(&buf, "%d", 67890));
    OK(tide_buf_add(&buf, "", 0));
    assert_int_equal(tide_buf_add(&buf, "x", 1), TIDE_FULL);
    assert_string_equal(tide_buf_cstr(&buf), "1234567890");
    tide_buf_clear(&buf);
    assert_int_equal(buf.bytes, 0);
    tide_buf_done(&buf);
    tide_buf_done(&buf);
}

TEST(an_arena_gives_zeroed_room_up_to_its_ceiling)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    tide_arena arena;
    tide_arena_init(&arena, &mem.base, 100000);
    for (int round = 0; round < 3; round++) {
        for (size_t bytes = 1; bytes < 300; bytes++) {
            unsigned char *taken = tide_arena_take(&arena, bytes);
            assert_non_null(taken);
            assert_int_equal((uintptr_t)taken % 16, 0);
            for (size_t i = 0; i < bytes; i++)
                assert_int_equal(taken[i], 0);
            memset(taken, 0xff, bytes);
        }
        assert_string_equal(tide_arena_copy(&arena, "textual", 4), "text");
        assert_null(tide_arena_take(&arena, 200000));
        tide_arena_reset(&arena);
    }
    tide_arena_done(&arena);
    assert_int_equal(mem.bytes_live, 0);
}

/* Against a plain table of all keys there can be. */
TEST(a_map_agrees_with_a_plain_table)
{
    enum { KEYS = 500 };
    uint32_t values[KEYS + 1] = {0};
    bool there[KEYS + 1] = {false};
    size_t count = 0;
    tide_rng rng = tide_rng_seeded(1);
    tide_map map;
    tide_map_init(&map, tide_mem_heap());
    for (uint64_t i = 0; i < scaled(2000000); i++) {
        uint64_t key = 1 + tide_rng_below(&rng, KEYS);
        uint32_t value = (uint32_t)tide_rng_next(&rng);
        uint32_t found = 0;
        switch (tide_rng_below(&rng, 3)) {
        case 0:
            assert_true(tide_map_put(&map, key, value));
            count += !there[key];
            there[key] = true;
            values[key] = value;
            break;
        case 1:
            assert_int_equal(tide_map_remove(&map, key), there[key]);
            count -= there[key];
            there[key] = false;
            break;
        default:
            assert_int_equal(tide_map_get(&map, key, &found), there[key]);
            if (there[key])
                assert_int_equal(found, values[key]);
        }
        assert_int_equal(map.count, count);
    }
    tide_map_done(&map);
}

TEST(replacing_in_a_full_map_needs_no_memory)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, 1); /* the table itself, and no other */
    tide_map map;
    tide_map_init(&map, &mem.base);
    for (uint64_t key = 1; key <= 12; key++)
        assert_true(tide_map_put(&map, key, 1));
    for (uint64_t key = 1; key <= 12; key++)
        assert_true(tide_map_put(&map, key, 2));
    assert_false(tide_map_put(&map, 13, 1));
    uint32_t value = 0;
    assert_true(tide_map_get(&map, 12, &value));
    assert_int_equal(value, 2);
    assert_false(tide_map_get(&map, 13, &value));
    tide_map_done(&map);
    assert_int_equal(mem.bytes_live, 0);
}

static void count_mark(const char *name, void *arg)
{
    if (strcmp(name, "base_test: here") == 0)
        (*(int *)arg)++;
}

TEST(a_mark_is_listed_once_however_often_it_is_reached)
{
    int count = 0;
    for (int i = 0; i < 5; i++)
        TIDE_SEEN("base_test: here");
    tide_marks_each(count_mark, &count);
    assert_int_equal(count, 1);
}

TEST(the_generator_is_the_same_everywhere_and_even)
{
    tide_rng rng = tide_rng_seeded(0);
    assert_true(tide_rng_next(&rng) == 0xe220a8397b1dcdafu);
    uint64_t buckets[10] = {0};
    for (int i = 0; i < 100000; i++)
        buckets[tide_rng_below(&rng, 10)]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(buckets[i], 9500, 10500);
    assert_int_equal(tide_rng_below(&rng, 0), 0);
}
