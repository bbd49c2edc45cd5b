/* The extractor of raw messages (RAW1 to RAW4 of gmail_raw.h).
 *
 * Goal: it accepts exactly what a JSON library and a strict decoder of base64 would
 * accept together, gives the same bytes and the same other members, however the text
 * is cut; within its memory; whatever allocation fails.
 * Method: a naive model (jansson over the whole text, base64 letter by letter), run
 * over answers made from a seed, most of them spoilt by a few edits. */
#include "base/rng.h"
#include "cloud/gmail_raw.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

static void add(tide_buf *buf, const char *text)
{
    OK(tide_buf_add_text(buf, text));
}

static void add_bytes(tide_buf *buf, const void *bytes, size_t count)
{
    OK(tide_buf_add(buf, bytes, count));
}

/* ---- the model ---- */

static int value_of(char c)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (c == '-')
        return 62;
    if (c == '_')
        return 63;
    const char *found = c == '\0' ? NULL : strchr(letters, c);
    return found == NULL ? -1 : (int)(found - letters);
}

static bool naive_base64(tide_text text, tide_buf *out)
{
    size_t pads = 0;
    while (pads < 2 && text.bytes > 0 && text.data[text.bytes - 1] == '=') {
        text.bytes--;
        pads++;
    }
    const size_t over = text.bytes % 4;
    if (over == 1 || (pads > 0 && over + pads != 4))
        return false;
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        const int value = value_of(text.data[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (unsigned)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            const char byte = (char)(bits >> held & 0xff);
            add_bytes(out, &byte, 1);
            bits &= (1u << held) - 1;
        }
    }
    return bits == 0;
}

static unsigned depth_of(tide_text text)
{
    unsigned depth = 0, deepest = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.bytes; i++) {
        const char c = text.data[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            deepest = ++depth > deepest ? depth : deepest;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return deepest;
}

/* NULL: refused.  Else everything but "raw", which goes to `raw`. */
static json_t *model(tide_text text, tide_buf *raw)
{
    json_t *value = json_loadb(text.data, text.bytes, JSON_REJECT_DUPLICATES, NULL);
    const json_t *member = json_object_get(value, "raw");
    const tide_text base64 = {json_string_value(member), json_string_length(member)};
    if (!json_is_object(value) || !json_is_string(member) || !naive_base64(base64, raw) ||
        depth_of(text) > TIDE_GMAIL_DEPTH_MAX) {
        json_decref(value);
        return NULL;
    }
    (void)json_object_del(value, "raw");
    return value;
}

/* ---- the real one ---- */

/* Cut at random into parts of at most `part_max` bytes, each in memory of its own
 * size, so that a sanitizer sees one byte too far. */
static tide_status extract(tide_text text, size_t part_max, tide_rng *rng, tide_mem *mem,
                           tide_buf *raw, json_t **fields_out)
{
    struct tide_gmail_raw extractor;
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = TIDE_OK;
    tide_gmail_raw_init(&extractor, mem, raw);
    for (size_t at = 0; rc == TIDE_OK && at < text.bytes;) {
        const size_t left = text.bytes - at;
        size_t bytes = 1 + (size_t)tide_rng_below(rng, part_max);
        bytes = bytes < left ? bytes : left;
        char *part = malloc(bytes);
        assert_non_null(part);
        memcpy(part, text.data + at, bytes);
        rc = tide_gmail_raw_write(&extractor, part, bytes);
        free(part);
        at += bytes;
    }
    const tide_status before = rc;
    rc = tide_gmail_raw_end(&extractor, fields_out, &err);
    if (before != TIDE_OK)
        assert_int_equal(rc, before); /* RAW3 */
    if (rc != TIDE_OK)
        assert_true(err.text[0] != '\0' && err.status == rc);
    tide_gmail_raw_done(&extractor);
    return rc;
}

static tide_status extract_cstr(const char *text, tide_buf *raw, json_t **fields_out)
{
    tide_rng rng = tide_rng_seeded(1);
    return extract(tide_text_of(text), 5, &rng, tide_mem_heap(), raw, fields_out);
}

/* ---- answers from a seed ---- */

static void some_space(tide_buf *out, tide_rng *rng)
{
    static const char spaces[] = " \n\r\t";
    while (tide_rng_chance(rng, 1, 5))
        add_bytes(out, &spaces[tide_rng_below(rng, 4)], 1);
}

static void escaped(tide_buf *out, unsigned char c)
{
    OK(tide_buf_print(out, c % 2 == 0 ? "\\u%04x" : "\\u%04X", c));
}

static void some_key(tide_buf *out, tide_rng *rng, const char *key)
{
    add(out, "\"");
    for (; *key != '\0'; key++) {
        if (tide_rng_chance(rng, 1, 20))
            escaped(out, (unsigned char)*key);
        else
            add_bytes(out, key, 1);
    }
    add(out, "\"");
}

static void some_string(tide_buf *out, tide_rng *rng)
{
    static const char *const pieces[] = {
        "a",   "raw", "\\\"", "\\\\", "\\/",          "\\n",     "{",    "}", ":",
        "[",   "]",   ",",    "=",    "\xc3\xa9",     "\\u00e9", "Zm9v", " ", "\\ud83d\\ude00",
        "\\t", "id",  "#",    "\\b",  "\xe2\x82\xac", "(",       "9",    "-", "\\u0022",
    };
    add(out, "\"");
    while (tide_rng_chance(rng, 4, 5))
        add(out, pieces[tide_rng_below(rng, sizeof pieces / sizeof pieces[0])]);
    add(out, "\"");
}

static void some_value(tide_buf *out, tide_rng *rng, int depth)
{
    static const char *const scalars[] = {"0", "-1", "12.5e-3", "true", "false", "null", "\"\""};
    const uint64_t kind = tide_rng_below(rng, depth > 0 ? 4 : 2);
    some_space(out, rng);
    if (kind == 0) {
        add(out, scalars[tide_rng_below(rng, sizeof scalars / sizeof scalars[0])]);
    } else if (kind == 1) {
        some_string(out, rng);
    } else {
        const char *const keys[] = {"raw", "id", "x", "sizeEstimate"};
        const uint64_t count = tide_rng_below(rng, 4);
        add(out, kind == 2 ? "[" : "{");
        for (uint64_t i = 0; i < count; i++) {
            add(out, i > 0 ? "," : "");
            if (kind == 3) {
                some_space(out, rng);
                some_key(out, rng, keys[i]);
                some_space(out, rng);
                add(out, ":");
            }
            some_value(out, rng, depth - 1);
        }
        some_space(out, rng);
        add(out, kind == 2 ? "]" : "}");
    }
    some_space(out, rng);
}

/* Base64 with either alphabet, padded or not, sometimes with escapes. */
static void some_base64(tide_buf *out, tide_rng *rng, tide_text bytes)
{
    const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *others = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *used = tide_rng_chance(rng, 1, 2) ? letters : others;
    const bool padded = tide_rng_chance(rng, 1, 2);
    const bool escapes = tide_rng_chance(rng, 1, 3);
    for (size_t i = 0; i < bytes.bytes; i += 3) {
        unsigned bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < bytes.bytes ? (unsigned char)bytes.data[i + k] : 0u);
        for (size_t k = 0; k < 4; k++) {
            const char c = k > bytes.bytes - i ? '=' : used[bits >> (18 - 6 * k) & 63];
            if (c == '=' && !padded)
                break;
            if (c == '/' && escapes)
                add(out, "\\/");
            else if (escapes && tide_rng_chance(rng, 1, 15))
                escaped(out, (unsigned char)c);
            else
                add_bytes(out, &c, 1);
        }
    }
}

static void some_answer(tide_buf *out, tide_rng *rng)
{
    static const char *const keys[] = {"id", "threadId", "sizeEstimate", "payload", "Raw"};
    const size_t count = (size_t)tide_rng_below(rng, 6);
    const size_t raw_at = (size_t)tide_rng_below(rng, count + 1);
    const size_t raw_bytes = (size_t)tide_rng_below(rng, tide_rng_chance(rng, 1, 20) ? 40000 : 60);
    char *bytes = malloc(raw_bytes + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < raw_bytes; i++)
        bytes[i] = (char)tide_rng_next(rng);
    some_space(out, rng);
    add(out, "{");
    for (size_t i = 0; i <= count; i++) {
        add(out, i > 0 ? "," : "");
        some_space(out, rng);
        some_key(out, rng, i == raw_at ? "raw" : keys[i - (i > raw_at)]);
        some_space(out, rng);
        add(out, ":");
        if (i != raw_at) {
            some_value(out, rng, 4);
            continue;
        }
        some_space(out, rng);
        add(out, "\"");
        some_base64(out, rng, (tide_text){bytes, raw_bytes});
        add(out, "\"");
        some_space(out, rng);
    }
    add(out, "}");
    some_space(out, rng);
    free(bytes);
}

/* A few edits: of single bytes mostly, and of spans. */
static void spoil(tide_buf *text, tide_rng *rng)
{
    static const char bytes[] = "\"\\{}[]:,=-_+/Aru019 \n\x01\xff\xc3.e";
    for (uint64_t edits = 1 + tide_rng_below(rng, 3); edits > 0 && text->bytes > 0; edits--) {
        const size_t at = (size_t)tide_rng_below(rng, text->bytes);
        const size_t left = text->bytes - at;
        const char some = bytes[tide_rng_below(rng, sizeof bytes)]; /* its zero too */
        const size_t span = 1 + (size_t)tide_rng_below(rng, left < 30 ? left : 30);
        char copy[30];
        switch (tide_rng_below(rng, 6)) {
        case 0:
            text->data[at] = some;
            break;
        case 1:
            text->data[at] = (char)(text->data[at] ^ (1 << tide_rng_below(rng, 8)));
            break;
        case 2:
            memmove(text->data + at, text->data + at + 1, left - 1);
            text->bytes--;
            break;
        case 3: /* in between */
            add(text, "x");
            memmove(text->data + at + 1, text->data + at, left);
            text->data[at] = some;
            break;
        case 4:
            text->bytes = at;
            break;
        default: /* something twice */
            memcpy(copy, text->data + at, span);
            for (size_t i = 0; i < span; i++)
                add(text, "x");
            memmove(text->data + at + span, text->data + at, left);
            memcpy(text->data + at, copy, span);
            break;
        }
    }
}

TEST(any_answer_is_taken_or_refused_as_the_model_says)
{
    const size_t rounds = scaled(40000);
    size_t taken = 0, refused = 0;
    for (size_t seed = 1; seed <= rounds; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        tide_buf text, raw, expected;
        tide_buf_init(&text, tide_mem_heap(), 1 << 20);
        tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
        tide_buf_init(&expected, tide_mem_heap(), 1 << 20);
        some_answer(&text, &rng);
        const bool spoilt = tide_rng_chance(&rng, 3, 5);
        if (spoilt)
            spoil(&text, &rng);
        json_t *fields = NULL;
        json_t *wanted = model(tide_buf_text(&text), &expected);
        const size_t part_max =
            tide_rng_chance(&rng, 1, 3) ? 1 : (size_t)1 << tide_rng_below(&rng, 17);
        const tide_status rc =
            extract(tide_buf_text(&text), part_max, &rng, tide_mem_heap(), &raw, &fields);
        if (!spoilt && wanted == NULL)
            fail_msg("seed %zu: the test's own answer is wrong: %s", seed, text.data);
        if (rc != (wanted == NULL ? TIDE_SERVER : TIDE_OK))
            fail_msg("seed %zu: %s instead of %s: %.*s", seed, tide_status_name(rc),
                     wanted == NULL ? "server" : "ok", (int)text.bytes, text.data);
        if (rc == TIDE_OK &&
            (!json_equal(fields, wanted) || raw.bytes != expected.bytes ||
             memcmp(tide_buf_cstr(&raw), tide_buf_cstr(&expected), raw.bytes) != 0))
            fail_msg("seed %zu: other bytes: %.*s", seed, (int)text.bytes, text.data);
        taken += rc == TIDE_OK;
        refused += rc != TIDE_OK;
        json_decref(fields);
        json_decref(wanted);
        tide_buf_done(&text);
        tide_buf_done(&raw);
        tide_buf_done(&expected);
    }
    print_message("%zu answers taken, %zu refused\n", taken, refused);
    assert_true(taken >= rounds / 3);
    assert_true(refused >= rounds / 3);
}

/* ---- examples ---- */

TEST(a_text_cut_anywhere_gives_the_same)
{
    const tide_text text = TIDE_TEXT("{\"labelIds\" : [\"A\\\\\",\"raw\"],\n\"r\\u0061w\":"
                                     "\"SGVsbG8s\\u0049Hdv\\/g\\u003d\\u003D\",\"id\":\"1\"}\n");
    for (size_t first = 0; first <= text.bytes; first++) {
        for (size_t second = first; second <= text.bytes; second++) {
            struct tide_gmail_raw extractor;
            json_t *fields = NULL;
            tide_buf raw = heap_buf(100);
            tide_gmail_raw_init(&extractor, tide_mem_heap(), &raw);
            OK(tide_gmail_raw_write(&extractor, text.data, first));
            OK(tide_gmail_raw_write(&extractor, text.data + first, second - first));
            OK(tide_gmail_raw_write(&extractor, text.data + second, text.bytes - second));
            OK(tide_gmail_raw_end(&extractor, &fields, NULL));
            assert_string_equal(tide_buf_cstr(&raw), "Hello, wo\xfe");
            assert_int_equal(json_object_size(fields), 2);
            assert_string_equal(json_string_value(json_object_get(fields, "id")), "1");
            json_decref(fields);
            tide_gmail_raw_done(&extractor);
            tide_buf_done(&raw);
        }
    }
}

TEST(every_byte_value_survives_at_every_place_of_a_group)
{
    for (unsigned lead = 0; lead < 4; lead++) {
        char bytes[260];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(i - lead);
        for (uint64_t seed = 0; seed < 16; seed++) {
            tide_rng rng = tide_rng_seeded(seed);
            json_t *fields = NULL;
            tide_buf text = heap_buf(10000);
            tide_buf raw = heap_buf(1000);
            add(&text, "{\"raw\":\"");
            some_base64(&text, &rng, (tide_text){bytes, 256 + lead});
            add(&text, "\"}");
            OK(extract(tide_buf_text(&text), 300, &rng, tide_mem_heap(), &raw, &fields));
            assert_int_equal(raw.bytes, 256 + lead);
            assert_memory_equal(raw.data, bytes, raw.bytes);
            assert_int_equal(raw.data[raw.bytes], '\0');
            json_decref(fields);
            tide_buf_done(&text);
            tide_buf_done(&raw);
        }
    }
}

TEST(what_is_not_exactly_right_is_refused)
{
    static const char *const wrong[] = {
        "",
        " ",
        "[]",
        "null",
        "\"raw\"",
        "<html>",
        "\xef\xbb\xbf{\"raw\":\"QQ\"}",
        "{}", /* no raw */
        "{\"Raw\":\"QQ\"}",
        "{\"a\":{\"raw\":\"QQ\"}}",
        "{\"raw \":\"QQ\"}",
        "{\"raw\":null}",
        "{\"raw\":1}",
        "{\"raw\":[\"QQ\"]}",
        "{\"raw\":{\"raw\":\"QQ\"}}",
        "{\"raw\":\"QQ\",\"raw\":\"QQ\"}", /* twice, also in disguise */
        "{\"raw\":\"QQ\",\"\\u0072aw\":\"QQ\"}",
        "{\"raw\":1,\"raw\":\"QQ\"}",
        "{\"raw\":\"QQ\",\"raw\":null}",
        "{\"id\":\"1\",\"id\":\"2\",\"raw\":\"QQ\"}",
        "{\"raw\":\"Q\"}",
        "{\"raw\":\"QQ=\"}",
        "{\"raw\":\"QQ===\"}",
        "{\"raw\":\"QQQ==\"}",
        "{\"raw\":\"=\"}",
        "{\"raw\":\"====\"}",
        "{\"raw\":\"QQ==QQ==\"}",
        "{\"raw\":\"QQ=Q\"}",
        "{\"raw\":\"QR==\"}",
        "{\"raw\":\"QR\"}",
        "{\"raw\":\"QUJ\"}", /* stray bits */
        "{\"raw\":\"Q Q\"}",
        "{\"raw\":\"QQ\\n\"}",
        "{\"raw\":\"Q\\u0000Q\"}",
        "{\"raw\":\"Q.Q=\"}",
        "{\"raw\":\"Q\\u0051\\u005\"}",
        "{\"raw\":\"QQ\\x\"}",
        "{\"raw\":\"QQ\\\"}",
        "{\"raw\":\"Q\xc3\xa9Q\"}",
        "{\"raw\":\"\\ud83d\\ude00\"}",
        "{\"raw\":\"QQ\x01\"}",
        "{\"raw\":\"QQ",
        "{\"raw\":\"QQ\"",
        "{\"raw\":\"QQ\",",
        "{\"raw\":\"QQ\",}",
        "{\"raw\"",
        "{\"raw\":\"QQ\"}}",
        "{\"raw\":\"QQ\"}{}",
        "{\"raw\":\"QQ\"} x",
        "{\"raw\":\"QQ\"]",
        "{\"raw\" \"QQ\"}",
        "{\"raw\":\"QQ\" \"QQ\"}",
        "{\"raw\":\"QQ\" 1}",
        "{,\"raw\":\"QQ\"}",
        "{\"raw\"::\"QQ\"}",
        "{\"a\":01,\"raw\":\"QQ\"}",
        "{\"a\":\"\xff\",\"raw\":\"QQ\"}",
        "{\"a\":\"\\q\",\"raw\":\"QQ\"}",
        "{a:1,\"raw\":\"QQ\"}",
        "{'raw':'QQ'}",
        "{\"raw\":\"QQ\",\"n\":123456789012345678901234567890}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        json_t *fields = NULL;
        tide_buf raw = heap_buf(1000);
        if (extract_cstr(wrong[i], &raw, &fields) != TIDE_SERVER)
            fail_msg("taken: %s", wrong[i]);
        assert_null(fields);
        tide_buf_done(&raw);
    }
}

TEST(an_empty_message_is_a_message)
{
    json_t *fields = NULL;
    tide_buf raw = heap_buf(1000);
    OK(extract_cstr("{\"raw\":\"\",\"id\":\"1\"}", &raw, &fields));
    assert_int_equal(raw.bytes, 0);
    assert_int_equal(json_object_size(fields), 1);
    json_decref(fields);
    tide_buf_done(&raw);
}

TEST(after_a_failure_everything_is_refused)
{
    struct tide_gmail_raw extractor;
    json_t *fields = NULL;
    tide_error err;
    tide_buf raw = heap_buf(1000);
    tide_gmail_raw_init(&extractor, tide_mem_heap(), &raw);
    assert_int_equal(tide_gmail_raw_write(&extractor, "{\"raw\":\"Q!", 10), TIDE_SERVER);
    assert_int_equal(tide_gmail_raw_write(&extractor, "{\"raw\":\"QQ\"}", 12), TIDE_SERVER);
    assert_int_equal(tide_gmail_raw_end(&extractor, &fields, &err), TIDE_SERVER);
    assert_string_equal(err.text, "\"raw\" is not base64");
    assert_null(fields);
    tide_gmail_raw_done(&extractor);
    tide_buf_done(&raw);
}

/* ---- bounds ---- */

TEST(nesting_has_a_bound)
{
    for (unsigned depth = TIDE_GMAIL_DEPTH_MAX - 2; depth < 100000;
         depth += depth < 40 ? 1 : 9999) {
        json_t *fields = NULL;
        tide_rng rng = tide_rng_seeded(depth);
        tide_buf text = heap_buf(1 << 20);
        tide_buf raw = heap_buf(1000);
        add(&text, "{\"raw\":\"QQ\",\"a\":");
        for (unsigned i = 1; i < depth; i++)
            add(&text, "[");
        for (unsigned i = 1; i < depth; i++)
            add(&text, "]");
        add(&text, "}");
        assert_int_equal(extract(tide_buf_text(&text), 4096, &rng, tide_mem_heap(), &raw, &fields),
                         depth <= TIDE_GMAIL_DEPTH_MAX ? TIDE_OK : TIDE_SERVER);
        json_decref(fields);
        tide_buf_done(&text);
        tide_buf_done(&raw);
    }
}

/* An answer with a message of so many bytes and another member of so many. */
static void answer_of(tide_buf *text, size_t raw_bytes, size_t other_bytes, const char *estimate)
{
    static char letters[1 << 16];
    memset(letters, 'A', sizeof letters);
    tide_buf_init(text, tide_mem_heap(), (size_t)1 << 30);
    OK(tide_buf_print(text, "{\"sizeEstimate\":%s,\"a\":\"", estimate));
    for (size_t left = other_bytes; left > 0;) {
        const size_t some = left < sizeof letters ? left : sizeof letters;
        add_bytes(text, letters, some);
        left -= some;
    }
    add(text, "\",\"raw\":\"");
    for (size_t left = raw_bytes / 3 * 4; left > 0;) {
        const size_t some = left < sizeof letters ? left : sizeof letters;
        add_bytes(text, letters, some);
        left -= some;
    }
    add(text, "\",\"historyId\":\"1\"}");
}

TEST(the_rest_of_an_answer_has_a_bound)
{
    for (int over = -100; over <= 0; over += 100) {
        tide_buf text;
        json_t *fields = NULL;
        tide_rng rng = tide_rng_seeded(1);
        answer_of(&text, 300, (size_t)(TIDE_GMAIL_REST_BYTES_MAX + over), "1");
        tide_buf raw = heap_buf(1000);
        assert_int_equal(extract(tide_buf_text(&text), 65536, &rng, tide_mem_heap(), &raw, &fields),
                         over < 0 ? TIDE_OK : TIDE_SERVER);
        json_decref(fields);
        tide_buf_done(&text);
        tide_buf_done(&raw);
    }
}

TEST(a_message_past_its_ceiling_is_full)
{
    for (size_t raw_bytes = 2997; raw_bytes <= 3003; raw_bytes += 3) {
        tide_buf text;
        json_t *fields = NULL;
        tide_rng rng = tide_rng_seeded(1);
        answer_of(&text, raw_bytes, 0, "99999999999");
        tide_buf raw = heap_buf(3000);
        assert_int_equal(extract(tide_buf_text(&text), 64, &rng, tide_mem_heap(), &raw, &fields),
                         raw_bytes <= 3000 ? TIDE_OK : TIDE_FULL);
        json_decref(fields);
        tide_buf_done(&text);
        tide_buf_done(&raw);
    }
}

/* RAW4: with a promise of the head, with one of sizeEstimate, with a wrong one, with
 * none. */
TEST(memory_stays_within_one_and_a_half_messages)
{
    const size_t size = scaled(30) * 1000000;
    const size_t estimates[] = {1, size, size - size / 30, 12};
    for (size_t i = 0; i < sizeof estimates / sizeof estimates[0]; i++) {
        char estimate[24];
        (void)snprintf(estimate, sizeof estimate, "%zu", estimates[i]);
        struct tide_mem_faulty mem;
        struct tide_gmail_raw extractor;
        tide_buf text;
        tide_buf raw;
        json_t *fields = NULL;
        answer_of(&text, size, 1000, estimate);
        tide_mem_faulty_once(&mem, UINT64_MAX);
        tide_buf_init(&raw, &mem.base, 100000000);
        tide_gmail_raw_init(&extractor, &mem.base, &raw);
        if (i == 0)
            tide_gmail_raw_expect(&extractor, text.bytes);
        for (size_t at = 0; at < text.bytes; at += 65536) {
            const size_t left = text.bytes - at;
            OK(tide_gmail_raw_write(&extractor, text.data + at, left < 65536 ? left : 65536));
        }
        OK(tide_gmail_raw_end(&extractor, &fields, NULL));
        assert_int_equal(raw.bytes, size / 3 * 3);
        print_message("%zu bytes, estimate %s: peak %.3f, %" PRIu64 " allocations\n", size,
                      estimate, (double)mem.bytes_peak / (double)size, mem.allocations);
        assert_true(mem.bytes_peak <= size + size / 2 + (2u << 20));
        if (i == 0) { /* the size was announced: the text in one go, and the rest of the answer */
            assert_true(mem.bytes_peak < size + size / 50 + (2u << 20));
            assert_true(mem.allocations <= 4);
        }
        json_decref(fields);
        tide_gmail_raw_done(&extractor);
        tide_buf_done(&raw);
        tide_buf_done(&text);
        assert_int_equal(mem.bytes_live, 0);
    }
}

TEST(every_allocation_fails_in_turn)
{
    tide_buf text;
    answer_of(&text, 300000, 5000, "12");
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_buf raw;
        json_t *fields = NULL;
        tide_rng rng = tide_rng_seeded(fail_at);
        tide_mem_faulty_once(&mem, fail_at);
        tide_buf_init(&raw, &mem.base, 1000000);
        const tide_status rc = extract(tide_buf_text(&text), 9000, &rng, &mem.base, &raw, &fields);
        if (rc == TIDE_OK)
            assert_int_equal(raw.bytes, 300000);
        else
            assert_int_equal(rc, TIDE_NO_MEMORY);
        json_decref(fields);
        tide_buf_done(&raw);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired) {
            assert_true(fail_at >= 5);
            break;
        }
    }
    tide_buf_done(&text);
}
