/* drive_quickxor_test.c - QuickXorHash, against its definition carried out bit by bit.
 *
 * Goal: QXH1, and the hashes that the service itself gives.
 * Method: known vectors; random contents of up to three turns of the register, cut at random; a
 * model that sets one bit at a time. */
#include "base/buf.h"
#include "base/encode.h"
#include "base/rng.h"
#include "drive/hash/quickxor.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/test.h"

/* Slow and obvious: bit b of byte i toggles bit (11 * i + b) mod 160. */
static void model(const uint8_t *bytes, size_t count, uint8_t out[TIDE_QUICKXOR_BYTES])
{
    memset(out, 0, TIDE_QUICKXOR_BYTES);
    for (size_t i = 0; i < count; i++)
        for (unsigned b = 0; b < 8; b++)
            if ((bytes[i] >> b & 1) != 0) {
                const size_t bit = (11 * i + b) % 160;
                out[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
    for (unsigned i = 0; i < 8; i++)
        out[12 + i] ^= (uint8_t)((uint64_t)count >> 8 * i);
}

static void check(const char *base64, const char *expected)
{
    tide_auto_buf bytes = tide_buf_heap(4096);
    tide_auto_buf text = tide_buf_heap(64);
    tide_quickxor hash = {.bytes = 0};
    uint8_t out[TIDE_QUICKXOR_BYTES];
    OK(tide_base64_read(&bytes, tide_text_of(base64)));
    tide_quickxor_add(&hash, tide_buf_cstr(&bytes), bytes.bytes);
    tide_quickxor_end(&hash, out);
    OK(tide_base64_add(&text, (tide_text){(const char *)out, sizeof out}, tide_base64_standard,
                       true));
    assert_string_equal(tide_buf_cstr(&text), expected);
}

TEST(the_hashes_of_known_contents_are_those_of_the_service)
{
    check("", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    check("Sg==", "SgAAAAAAAAAAAAAAAQAAAAAAAAA=");
    check("jRRDVA==", "jaDAEKgAAAAAAAAABAAAAAAAAAA=");
    check("/aNzzCFPS/A=", "/RjFHJgRgicsAR4ACAAAAAAAAAA=");
    check("2fuxhBJXtpWFe8dOfdGeHw==", "O9tHLAghgSvYohKFyMMxnNCHaHg=");
    check("aGVsbG8gd29ybGQ=", "aCgDG9jwBhDc4Q1yawMZAAAAAAA=");
    check(
        "Mb7EGva2rEE5fENDL85P+BsapHEEjv2/siVhKjvAQe02feExVOQSkfmuYzU/kTF1MaKjPmKF/w+cbvwfdWL8aQ==",
        "n1anP5NfvD4XDYWIeRPW3ZkPv1Y=");
    check("PfxMcUd0vIW6VbHG/uj/Y0W6qEoKmyBD0nYebEKazKaKG+UaDqBEcmQjbfQeVnVLuodMoPp7P7TR1htX5n2VnkHh"
          "22xDyoJ8C/ZQKiSNqQfXvh83judf4RVr9exJCud8Uvgip6aVZTaPrJHVjQhMCp/dEnGvqg0oN5OVkM2qqAXvA0te"
          "KUDhgNM71sDBVBCGXxNOR2bpbD1iM4dnuT0ey4L+loXEHTL0fqMeUcEi2asgImnlNakwenDzz0x57aBwyq3AspCF"
          "GB1ncX4yYCr/OaCcS5OKi/00WH+wNQU3",
          "QX/YEpG0gDsmhEpCdWhsxDzsfVE=");
}

TEST(any_content_cut_anywhere_has_the_hash_of_the_definition)
{
    tide_rng rng = tide_rng_seeded(7);
    for (uint64_t round = 0; round < scaled(5000); round++) {
        uint8_t bytes[500], wanted[TIDE_QUICKXOR_BYTES], out[TIDE_QUICKXOR_BYTES];
        const size_t count = (size_t)tide_rng_below(&rng, sizeof bytes + 1);
        for (size_t i = 0; i < count; i++)
            bytes[i] = (uint8_t)tide_rng_next(&rng);
        tide_quickxor hash = {.bytes = 0};
        for (size_t at = 0; at < count;) {
            const size_t part = 1 + (size_t)tide_rng_below(&rng, count - at);
            tide_quickxor_add(&hash, bytes + at, part);
            at += part;
        }
        tide_quickxor_end(&hash, out);
        model(bytes, count, wanted);
        assert_memory_equal(out, wanted, sizeof out);
    }
}

/* Why it must not decide whether a file changed (D14). */
TEST(two_pages_five_apart_can_be_swapped_unseen)
{
    static uint8_t file[6 * 4096];
    uint8_t before[TIDE_QUICKXOR_BYTES], after[TIDE_QUICKXOR_BYTES];
    tide_quickxor hash = {.bytes = 0};
    memset(file, 'a', 4096);
    memset(file + 5 * 4096, 'b', 4096);
    tide_quickxor_add(&hash, file, sizeof file);
    tide_quickxor_end(&hash, before);
    memset(file, 'b', 4096);
    memset(file + 5 * 4096, 'a', 4096);
    hash = (tide_quickxor){.bytes = 0};
    tide_quickxor_add(&hash, file, sizeof file);
    tide_quickxor_end(&hash, after);
    assert_memory_equal(before, after, sizeof before);
}
