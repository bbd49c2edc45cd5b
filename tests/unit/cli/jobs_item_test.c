/* jobs_item_test.c - which jobs work on an item, by their payloads (E9.4). */
#include "cli/commands/jobs_item.h"
#include "support/test.h"

/* How many items the payload has if `item` is one of them; 0: it is not. */
static uint64_t among(const char *payload, const char *item)
{
    uint64_t items = 0;
    return jobs_item_has(tide_text_of(payload), item, &items) ? items : 0;
}

TEST(an_item_is_an_element_of_items_or_the_path)
{
    assert_int_equal(among("{\"items\":[\"18f2\",\"18f3\"]}", "18f2"), 2);
    assert_int_equal(among("{\"path\":\"a/b\"}", "a/b"), 1);
    assert_int_equal(among("{\"path\":\"a\\/b\"}", "a/b"), 1); /* written in another way */
    assert_int_equal(among("{\"path\":\"\\u00fcber\"}", "\xc3\xbc"
                                                        "ber"),
                     1);
    assert_int_equal(among("{\"path\":\"say \\\"hi\\\"\"}", "say \"hi\""), 1);
}

TEST(a_part_of_an_item_and_another_field_are_not_the_item)
{
    assert_int_equal(among("{\"items\":[\"18f2\",\"18f3\"]}", "18f"), 0);
    assert_int_equal(among("{\"items\":[\"18f2\"],\"from\":\"18f3\"}", "18f3"), 0);
    assert_int_equal(among("{\"items\":[182]}", "182"), 0);
    assert_int_equal(among("{\"path\":\"a/b\"}", "a"), 0);
    assert_int_equal(among("{\"items\":[]}", ""), 0);
}

TEST(a_payload_that_is_no_object_has_no_items)
{
    static const char *const odd[] = {
        "", "null", "[\"x\"]", "{\"items\":\"x\"}", "{\"items\":[\"x\"", "x"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        assert_int_equal(among(odd[i], "x"), 0);
}
