/* Requests and answers as values: targets, parameters, base64, the clock. */
#include "cloudbox/gate/clock.h"
#include "cloudbox/gate/http.h"

#include "base/rng.h"
#include "support/test.h"

TEST(a_target_is_split_before_it_is_decoded)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    struct box_target target;
    assert_true(box_target_parse(
        TIDE_TEXT(
            "/webmasters/v3/sites/https%3A%2F%2Fa.example%2F?q=a+b%2Bc&labelIds=A&labelIds=B"),
        &arena, &target));
    assert_int_equal(target.segments_count, 4);
    assert_true(tide_text_equal(target.segments[3], TIDE_TEXT("https://a.example/")));
    assert_true(
        tide_text_equal(box_param(target.params, target.params_count, "q"), TIDE_TEXT("a b+c")));
    assert_int_equal(target.params_count, 3);
    assert_true(tide_text_equal(target.params[2].value, TIDE_TEXT("B")));
    assert_null(box_param(target.params, target.params_count, "none").data);
}

TEST(broken_targets_are_refused)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    struct box_target target;
    static const char *const broken[] = {"", "no-slash", "/a%", "/a%4", "/a%zz", "/a?b=%f"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_false(box_target_parse(tide_text_of(broken[i]), &arena, &target));
    assert_false(box_target_parse((tide_text){"/a\0b", 4}, &arena, &target));
    char deep[2 * BOX_SEGMENTS_MAX + 2];
    for (size_t i = 0; i < sizeof deep; i++)
        deep[i] = i % 2 == 0 ? '/' : 'a';
    assert_true(box_target_parse((tide_text){deep, sizeof deep - 2}, &arena, &target));
    assert_false(box_target_parse((tide_text){deep, sizeof deep}, &arena, &target));
    char many[4 * BOX_PARAMS_MAX + 8] = "/?";
    size_t bytes = 2;
    for (int i = 0; i <= BOX_PARAMS_MAX; i++) {
        memcpy(many + bytes, "a=&", 3);
        bytes += 3;
    }
    assert_false(box_target_parse((tide_text){many, bytes}, &arena, &target));
}

TEST(base64_comes_back_in_either_alphabet)
{
    tide_rng rng = tide_rng_seeded(5);
    for (size_t size = 0; size < 200; size++) {
        char bytes[200];
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)tide_rng_next(&rng);
        tide_auto_buf text = tide_buf_heap(1 << 20);
        tide_auto_buf back = tide_buf_heap(1 << 20);
        if (size % 2 == 0)
            box_add_base64(&text, (tide_text){bytes, size});
        else
            box_add_base64url(&text, (tide_text){bytes, size});
        assert_int_equal(text.bytes, (size + 2) / 3 * 4);
        assert_true(box_base64_decode(tide_buf_text(&text), &back));
        assert_true(tide_text_equal(tide_buf_text(&back), (tide_text){bytes, size}));
        size_t bare = text.bytes; /* without padding too */
        while (bare > 0 && text.data[bare - 1] == '=')
            bare--;
        tide_buf_clear(&back);
        assert_true(box_base64_decode((tide_text){tide_buf_cstr(&text), bare}, &back));
        assert_int_equal(back.bytes, size);
    }
}

TEST(what_is_not_base64_leaves_the_buffer_as_it_was)
{
    static const char *const wrong[] = {"a", "abcde", "ab c", "a\001bc", "ab=c", "\xff\xff"};
    tide_auto_buf out = tide_buf_heap(1 << 20);
    box_add_cstr(&out, "kept");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(box_base64_decode(tide_text_of(wrong[i]), &out));
    assert_false(box_base64_decode((tide_text){"abc\0", 4}, &out));
    assert_string_equal(tide_buf_cstr(&out), "kept");
    assert_true(box_base64_decode(TIDE_TEXT("YWJj\r\nZGVm\r\n"), &out));
    assert_string_equal(tide_buf_cstr(&out), "keptabcdef");
}

TEST(text_that_is_not_utf8_becomes_json_all_the_same)
{
    json_auto_t *value = box_json_text((tide_text){"a\xff"
                                                   "b",
                                                   3});
    assert_string_equal(json_string_value(value), "a\xef\xbf\xbd"
                                                  "b");
    json_decref(value);
    value = box_json_text(TIDE_TEXT_NONE);
    assert_string_equal(json_string_value(value), "");
}

TEST(the_clock_only_goes_forward)
{
    struct box_clock clock;
    box_clock_init(&clock, 5000, 100);
    assert_int_equal(box_clock_at(&clock, 100), 5000);
    assert_int_equal(box_clock_at(&clock, 150), 5050);
    assert_int_equal(box_clock_at(&clock, 120), 5050); /* BCLD4 */
    box_clock_speed(&clock, 60000, 200);               /* a minute a second */
    assert_int_equal(box_clock_at(&clock, 1200), 5100 + 60000);
    assert_int_equal(box_clock_outside(&clock, 5100 + 30000), 700);
    box_clock_set(&clock, 1, 1200); /* the past is not offered */
    assert_int_equal(box_clock_at(&clock, 1200), 65100);
    box_clock_set(&clock, 1000000, 1300);
    assert_int_equal(box_clock_at(&clock, 1300), 1000000);
    box_clock_speed(&clock, 0, 1400); /* it stands still */
    const uint64_t still_ms = box_clock_at(&clock, 1400);
    assert_int_equal(box_clock_at(&clock, 99999), still_ms);
    assert_true(box_clock_outside(&clock, still_ms + 1) == UINT64_MAX);
}
