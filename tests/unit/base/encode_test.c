/* encode_test.c - bytes as text: hexadecimal, percent-encoding, base64. */
#include "base/encode.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

TEST(hexadecimal_is_read_as_it_is_written)
{
    char text[2 * 256 + 1];
    unsigned char all[256];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)i;
    tide_hex(all, sizeof all, text);
    assert_int_equal(strlen(text), 512);
    assert_int_equal(strspn(text, "0123456789abcdef"), 512);
    for (size_t i = 0; i < sizeof all; i++)
        assert_int_equal(tide_hex_byte((tide_text){text + 2 * i, 2}), i);
    assert_int_equal(tide_hex_byte(TIDE_TEXT("Fa")), 0xfa);
    assert_int_equal(tide_hex_byte(TIDE_TEXT("f")), -1);
    assert_int_equal(tide_hex_byte(TIDE_TEXT("")), -1);
    assert_int_equal(tide_hex_byte(TIDE_TEXT("0g")), -1);
    for (int c = -128; c < 128; c++) {
        const bool digit = c > 0 && strchr("0123456789abcdefABCDEF", c) != NULL;
        assert_int_equal(tide_hex_digit((char)c) >= 0, digit);
    }
}

TEST(only_what_is_plain_is_not_escaped)
{
    tide_buf out = heap_buf(100);
    const tide_text text = TIDE_TEXT("aZ09-._~ /\0\xc3\xa9");
    OK(tide_percent_add(&out, text, TIDE_URL_UNRESERVED));
    assert_string_equal(tide_buf_cstr(&out), "aZ09-._~%20%2F%00%C3%A9");
    tide_buf_clear(&out);
    OK(tide_percent_add(&out, text, ""));
    assert_string_equal(tide_buf_cstr(&out), "aZ09%2D%2E%5F%7E%20%2F%00%C3%A9");
    tide_buf_done(&out);
}

TEST(base64_is_what_the_standard_says)
{
    static const char *const pairs[][3] = {
        {"", "", ""},
        {"f", "Zg", "Zg=="},
        {"fo", "Zm8", "Zm8="},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg", "Zm9vYg=="},
        {"fooba", "Zm9vYmE", "Zm9vYmE="},
        {"\xff\xfe", "__4", "//4="},
        {"\xfb\xef\xbe", "----", "++++"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const tide_text bytes = tide_text_of(pairs[i][0]);
        tide_buf out;
        tide_buf_init(&out, tide_mem_heap(), strlen(pairs[i][1])); /* exactly what is needed */
        OK(tide_base64_add(&out, bytes, tide_base64_url, false));
        assert_string_equal(tide_buf_cstr(&out), pairs[i][1]);
        tide_buf_done(&out);
        tide_buf_init(&out, tide_mem_heap(), 100);
        OK(tide_base64_add(&out, bytes, tide_base64_standard, true));
        assert_string_equal(tide_buf_cstr(&out), pairs[i][2]);
        tide_buf_done(&out);
    }
    tide_buf small = heap_buf(3);
    assert_int_equal(tide_base64_add(&small, TIDE_TEXT("foo"), tide_base64_url, false), TIDE_FULL);
    tide_buf_done(&small);
}

TEST(base64_is_read_in_either_alphabet_and_nothing_else_is)
{
    static const char *const pairs[][2] = {
        {"", ""},
        {"Zg", "f"},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"},
        {"__4", "\xff\xfe"},
        {"//4=", "\xff\xfe"},
        {"----", "\xfb\xef\xbe"},
        {"+-/_", "\xfb\xef\xff"},
    };
    static const char *const wrong[] = {
        "Z",    "Zg=", "Zg===", "=",    "==",     "====",  "Z===",     "Zm8==", "Zm9v====",
        "Zh==", "Zm9", "Z g=",  "Zg\n", "Zg==\n", "Zm9v=", "Zg==Zg==", "Zm.v",  "Zm9v\x80",
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        tide_buf out = heap_buf(100);
        OK(tide_buf_add_text(&out, "before "));
        OK(tide_base64_read(&out, tide_text_of(pairs[i][0])));
        assert_string_equal(tide_buf_cstr(&out) + 7, pairs[i][1]);
        tide_buf_done(&out);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tide_buf out = heap_buf(100);
        OK(tide_buf_add_text(&out, "before"));
        if (tide_base64_read(&out, tide_text_of(wrong[i])) != TIDE_INVALID)
            fail_msg("%s", wrong[i]);
        assert_string_equal(tide_buf_cstr(&out), "before");
        tide_buf_done(&out);
    }
    tide_buf small = heap_buf(2);
    assert_int_equal(tide_base64_read(&small, TIDE_TEXT("Zm9v")), TIDE_FULL);
    tide_buf_done(&small);
}
