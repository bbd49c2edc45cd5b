/* The bytes of files: QuickXorHash against known values, generated and stored contents. */
#include "base/encode.h"
#include "base/rng.h"
#include "cloudbox/drive/content.h"
#include "cloudbox/drive/name.h"
#include "cloudbox/tests/owned.h"

/* ---- the hash ---- */

static const char *hash_text(const void *bytes, size_t count)
{
    static char text[BOX_QUICKXOR_TEXT_BYTES];
    uint8_t hash[BOX_QUICKXOR_BYTES];
    struct box_quickxor sum = {0};
    box_quickxor_add(&sum, bytes, count);
    box_quickxor_hash(&sum, hash);
    box_quickxor_text(hash, text);
    return text;
}

TEST(known_files_have_their_known_hashes)
{
    static const struct {
        const char *base64;
        const char *hash;
    } known[] = {
        {"", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="},
        {"Sg==", "SgAAAAAAAAAAAAAAAQAAAAAAAAA="},
        {"jRRDVA==", "jaDAEKgAAAAAAAAABAAAAAAAAAA="},
        {"/aNzzCFPS/A=", "/RjFHJgRgicsAR4ACAAAAAAAAAA="},
        {"2fuxhBJXtpWFe8dOfdGeHw==", "O9tHLAghgSvYohKFyMMxnNCHaHg="},
        {"Mb7EGva2rEE5fENDL85P+BsapHEEjv2/siVhKjvAQe02feExVOQSkfmuYzU/"
         "kTF1MaKjPmKF/w+cbvwfdWL8aQ==",
         "n1anP5NfvD4XDYWIeRPW3ZkPv1Y="},
        {"PfxMcUd0vIW6VbHG/uj/"
         "Y0W6qEoKmyBD0nYebEKazKaKG+UaDqBEcmQjbfQeVnVLuodMoPp7P7TR1htX5n2VnkHh22xDyoJ8C/"
         "ZQKiSNqQfXvh83judf4RVr9exJCud8Uvgip6aVZTaPrJHVjQhMCp/"
         "dEnGvqg0oN5OVkM2qqAXvA0teKUDhgNM71sDBVBCGXxNOR2bpbD1iM4dnuT0ey4L+"
         "loXEHTL0fqMeUcEi2asgImnlNakwenDzz0x57aBwyq3AspCFGB1ncX4yYCr/OaCcS5OKi/00WH+wNQU3",
         "QX/YEpG0gDsmhEpCdWhsxDzsfVE="},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        tide_auto_buf bytes = tide_buf_heap(1000);
        assert_ok(tide_base64_read(&bytes, tide_text_of(known[i].base64)));
        assert_string_equal(hash_text(tide_buf_cstr(&bytes), bytes.bytes), known[i].hash);
    }
    assert_string_equal(hash_text("hello world", 11), "aCgDG9jwBhDc4Q1yawMZAAAAAAA=");
    char many[1000];
    memset(many, 'a', sizeof many);
    assert_string_equal(hash_text(many, sizeof many), "cIADHOAABzjAAQ5waAAcgQhEIAI=");
}

/* BQXH1: however a file is cut, its pieces join to the same hash. */
TEST(joined_pieces_have_the_hash_of_the_whole)
{
    tide_rng rng = tide_rng_seeded(5);
    char bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)tide_rng_next(&rng);
    char whole[BOX_QUICKXOR_TEXT_BYTES];
    snprintf(whole, sizeof whole, "%s", hash_text(bytes, sizeof bytes));
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        struct box_quickxor first = {0}, second = {0};
        uint8_t hash[BOX_QUICKXOR_BYTES];
        char text[BOX_QUICKXOR_TEXT_BYTES];
        box_quickxor_add(&first, bytes, cut);
        box_quickxor_add(&second, bytes + cut, sizeof bytes - cut);
        box_quickxor_join(&first, &second);
        box_quickxor_hash(&first, hash);
        box_quickxor_text(hash, text);
        assert_string_equal(text, whole);
    }
}

/* ---- contents ---- */

/* BCTN1 and BCTN2, by reading all bytes in pieces of odd sizes. */
static void assert_fits(const struct box_content *content)
{
    struct box_quickxor sum = {0};
    uint8_t have[BOX_QUICKXOR_BYTES], wanted[BOX_QUICKXOR_BYTES];
    char *all = calloc(1, content->bytes + 1);
    char piece[777];
    assert_non_null(all);
    box_content_read(content, 0, all, content->bytes);
    for (uint64_t at = 0; at < content->bytes;) {
        const size_t step = content->bytes - at < sizeof piece ? content->bytes - at : sizeof piece;
        box_content_read(content, at, piece, step);
        assert_memory_equal(piece, all + at, step);
        box_quickxor_add(&sum, piece, step);
        at += step;
    }
    free(all);
    box_quickxor_hash(&sum, have);
    box_content_hash(content, wanted);
    assert_memory_equal(have, wanted, sizeof have);
}

TEST(the_hash_of_generated_bytes_is_computed_without_them)
{
    for (uint64_t bytes = 0; bytes < 1300; bytes++) {
        const struct box_content content = box_content_made(bytes * 77, bytes);
        assert_fits(&content);
    }
    const struct box_content large = box_content_made(9, 1234567);
    assert_fits(&large);
}

TEST(generated_bytes_differ_from_row_to_row_and_from_seed_to_seed)
{
    char first[4096], second[4096], other[4096];
    const struct box_content a = box_content_made(1, UINT64_C(50) << 30);
    const struct box_content b = box_content_made(2, UINT64_C(50) << 30);
    box_content_read(&a, 0, first, sizeof first);
    box_content_read(&a, UINT64_C(49) << 30, second, sizeof second);
    box_content_read(&b, 0, other, sizeof other);
    assert_memory_not_equal(first, second, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
    assert_memory_not_equal(first, first + 1600, 1600);
}

TEST(small_uploads_are_kept_and_large_ones_keep_size_and_hash)
{
    struct box_gather gather, rest;
    static char piece[1 << 20];
    tide_rng rng = tide_rng_seeded(3);
    for (size_t i = 0; i < sizeof piece; i++)
        piece[i] = (char)tide_rng_next(&rng);
    box_gather_init(&gather);
    box_gather_init(&rest);
    box_gather_add(&gather, (tide_text){piece, 1000});
    box_gather_add(&rest, (tide_text){piece + 1000, 500});
    box_gather_join(&gather, &rest);
    struct box_content small = box_content_stored(&gather);
    assert_int_equal(small.bytes, 1500);
    assert_memory_equal(box_content_kept(&small).data, piece, 1500);
    assert_fits(&small);
    for (size_t i = 0; i < 17; i++)
        box_gather_add(&gather, (tide_text){piece, sizeof piece});
    struct box_content large = box_content_stored(&gather);
    assert_int_equal(large.bytes, 1500 + 17 * sizeof piece);
    assert_null(box_content_kept(&large).data);
    assert_fits(&large);
    struct box_content held = box_content_hold(&large);
    box_content_drop(&large);
    assert_fits(&held);
    box_content_drop(&held);
    box_content_drop(&small);
    box_gather_done(&gather);
    box_gather_done(&rest);
}

/* ---- names ---- */

TEST(names_are_compared_without_case)
{
    assert_true(box_name_equal(TIDE_TEXT("Notes.TXT"), TIDE_TEXT("nOTES.txt")));
    assert_true(box_name_equal(TIDE_TEXT("\xc3\x9c"), TIDE_TEXT("\xc3\xbc")));
    assert_true(box_name_equal(TIDE_TEXT("\xd0\x9f\xd0\x81"), TIDE_TEXT("\xd0\xbf\xd1\x91")));
    assert_false(box_name_equal(TIDE_TEXT("a"), TIDE_TEXT("ab")));
    assert_false(box_name_equal(TIDE_TEXT("\xc3\x97"), TIDE_TEXT("\xc3\xb7")));
    assert_int_equal(box_name_hash(1, TIDE_TEXT("ABC")), box_name_hash(1, TIDE_TEXT("abc")));
    assert_int_not_equal(box_name_hash(1, TIDE_TEXT("ABC")), box_name_hash(2, TIDE_TEXT("abc")));
}

TEST(names_that_onedrive_refuses_are_refused)
{
    static const char *const bad[] = {
        "",     "a/b",   "a:b",         "a*",      "what?",    "a|b",    "<a",  "a>",
        "\"",   "a\\b",  " a",          "a ",      "a.",       "..",     ".",   "con",
        "Lpt0", ".lock", "desktop.INI", "a_VTI_b", "~$doc.tx", "a\x01z", "\xff"};
    static const char *const good[] = {"a",   ".hidden",      "con.txt",          "COM10", "~tmp",
                                       "a b", "#1 100%+.csv", "\xf0\x9f\x99\x82", "lock",  "...a"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (box_name_wrong(tide_text_of(bad[i])) == NULL)
            fail_msg("taken: %s", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (box_name_wrong(tide_text_of(good[i])) != NULL)
            fail_msg("refused: %s", good[i]);
    char longest[BOX_NAME_UNITS_MAX + 2];
    memset(longest, 'x', sizeof longest);
    assert_null(box_name_wrong((tide_text){longest, BOX_NAME_UNITS_MAX}));
    assert_non_null(box_name_wrong((tide_text){longest, BOX_NAME_UNITS_MAX + 1}));
}

int main(void)
{
    return tests_run(NULL);
}
