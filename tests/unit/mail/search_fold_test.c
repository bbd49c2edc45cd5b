/* Folding text for the index: characters of scripts without spaces stand alone,
 * everything else is untouched. */
#include "mail/search/search.h"
#include "base/json.h"
#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

static void fold(tide_text text, tide_buf *out)
{
    tide_buf_init(out, tide_mem_heap(), 16 << 20);
    OK(tide_search_fold(text, out));
}

TEST(characters_without_spaces_stand_alone)
{
    static const char *const examples[][2] = {
        {"", ""},
        {"plain words, 123", "plain words, 123"},
        {"Grüße, Привет, Γειά, שלום", "Grüße, Привет, Γειά, שלום"},
        {"東京", "東 京"},
        {"東京tower", "東 京 tower"},
        {"tower東京", "tower 東 京"},
        {"a 東 b", "a 東 b"},
        {"東\n京", "東\n京"},
        {"東,京", "東 , 京"},
        {"ひらがな", "ひ ら が な"},
        {"カタカナー", "カ タ カ ナ ー"},
        {"ｶﾀｶﾅ", "ｶ ﾀ ｶ ﾅ"},
        {"か\u3099", "か\u3099"},
        {"한국어 편지", "한국어 편지"},
        {"กิน", "กิ น"},
        {"๑๒๓", "๑๒๓"},
        {"ລາວ", "ລ າ ວ"},
        {"ខ្មែរ", "ខ្ មែ រ"},
        {"မြန်မာ", "မြ န် မာ"},
        {"𠀀𠀁", "𠀀 𠀁"},
        {"😀東", "😀 東"},
        {"a\xff\xe6\x9d", "a\uFFFD\uFFFD\uFFFD"},
        {"\xe6\x9d\xb1\xff", "東 \uFFFD"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        tide_buf out;
        fold(tide_text_of(examples[i][0]), &out);
        assert_string_equal(tide_buf_cstr(&out), examples[i][1]);
        tide_buf_done(&out);
    }
}

/* Some character, often of a script without spaces. */
static size_t put_random(tide_rng *rng, char *out)
{
    static const uint32_t starts[] = {0x20,   0x61,    0xe4,    0x416,  0xe01,  0xe31,
                                      0x1780, 0x17d2,  0x3042,  0x3099, 0x4e00, 0xac00,
                                      0xff66, 0x20000, 0x1f600, 0x2014};
    uint32_t code = starts[tide_rng_below(rng, sizeof starts / sizeof starts[0])] +
                    (uint32_t)tide_rng_below(rng, 8);
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* The folded text is the text with single spaces put in, and nothing else. */
static void assert_only_spaces_added(tide_text text, tide_text folded)
{
    size_t i = 0;
    for (size_t j = 0; j < folded.bytes; j++) {
        if (i < text.bytes && text.data[i] == folded.data[j])
            i++;
        else
            assert_int_equal(folded.data[j], ' ');
    }
    assert_int_equal(i, text.bytes);
    for (size_t at = 0; at < folded.bytes;) {
        size_t bytes = tide_utf8_bytes((tide_text){folded.data + at, folded.bytes - at});
        assert_true(bytes > 0);
        at += bytes;
    }
}

TEST(folding_only_adds_spaces_and_is_done_once)
{
    const uint64_t seeds = scaled(500);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        static char text[20000];
        size_t bytes = 0, count = (size_t)tide_rng_below(&rng, 4000);
        for (size_t i = 0; i < count; i++)
            bytes += put_random(&rng, text + bytes);
        tide_buf once;
        tide_buf twice;
        fold((tide_text){text, bytes}, &once);
        fold(tide_buf_text(&once), &twice);
        assert_only_spaces_added((tide_text){text, bytes}, tide_buf_text(&once));
        if (!tide_text_equal(tide_buf_text(&once), tide_buf_text(&twice)))
            fail_msg("folding twice differs, seed %llu", (unsigned long long)seed);
        tide_buf_done(&once);
        tide_buf_done(&twice);
    }
}

TEST(what_does_not_fit_changes_nothing)
{
    for (size_t room = 0; room < 8; room++) {
        tide_buf out = heap_buf(room);
        tide_status rc = tide_search_fold(tide_text_of("東京"), &out);
        assert_int_equal(rc, room < 7 ? TIDE_FULL : TIDE_OK);
        assert_int_equal(out.bytes, room < 7 ? 0 : 7);
        tide_buf_done(&out);
    }
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, 0);
    tide_buf out;
    tide_buf_init(&out, &mem.base, 100);
    assert_int_equal(tide_search_fold(tide_text_of("東京"), &out), TIDE_NO_MEMORY);
    tide_buf_done(&out);
    assert_int_equal(mem.bytes_live, 0);
}
