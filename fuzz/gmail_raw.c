/* gmail_raw.c - a raw message from any answer, split anywhere (RAW1, RAW2): the library and a strict
 * decoder must agree.  The first byte says how the text is split. */
#include "fuzz.h"
#include "base/rng.h"
#include "cloud/gmail_raw.h"

static int value_of(char c)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c == '\0' ? NULL : strchr(letters, c == '-' ? '+' : c == '_' ? '/' : c);
    return found == NULL ? -1 : (int)(found - letters);
}

/* Whether `text` is the base64 of `bytes`. */
static bool is_base64_of(tide_text text, const tide_buf *bytes)
{
    size_t pads = 0, at = 0;
    unsigned bits = 0, held = 0;
    for (; pads < 2 && text.bytes > 0 && text.data[text.bytes - 1] == '='; pads++)
        text.bytes--;
    const size_t over = text.bytes % 4;
    if (over == 1 || (pads > 0 && over + pads != 4))
        return false;
    for (size_t i = 0; i < text.bytes; i++) {
        const int value = value_of(text.data[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (unsigned)value;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        if (at < bytes->bytes && (unsigned char)bytes->data[at] != (bits >> held & 0xff))
            return false;
        at++;
        bits &= (1u << held) - 1;
    }
    return bits == 0 && (bytes->data == NULL || at == bytes->bytes);
}

static void write_cut(struct tide_gmail_raw *extractor, tide_text text, unsigned cut)
{
    tide_rng rng = tide_rng_seeded(cut);
    while (text.bytes > 0) {
        size_t bytes = 1 + (size_t)tide_rng_below(&rng, 1u << (cut & 7));
        bytes = bytes < text.bytes ? bytes : text.bytes;
        const tide_text part = fuzz_exact((tide_text){text.data, bytes});
        const tide_status rc = tide_gmail_raw_write(extractor, part.data, part.bytes);
        free((void *)(uintptr_t)part.data);
        TIDE_ASSERT(rc == extractor->failed);
        text = (tide_text){text.data + bytes, text.bytes - bytes};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    const unsigned cut = fuzz_u8(&input);
    const tide_text text = {(const char *)input.data, input.bytes};
    struct tide_gmail_raw extractor;
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf raw;
    json_t *fields = NULL;
    tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
    tide_gmail_raw_init(&extractor, tide_mem_heap(), &raw);
    if (cut & 0x80)
        tide_gmail_raw_expect(&extractor, text.bytes);
    write_cut(&extractor, text, cut);
    const bool deep =
        extractor.wrong != NULL && strcmp(extractor.wrong, "it is nested too deep") == 0;
    const tide_status rc = tide_gmail_raw_end(&extractor, &fields, &err);
    TIDE_ASSERT(rc == TIDE_OK || rc == TIDE_SERVER);
    TIDE_ASSERT(rc == TIDE_OK || (fields == NULL && err.text[0] != '\0'));

    json_t *whole =
        json_loadb(text.bytes == 0 ? "" : text.data, text.bytes, JSON_REJECT_DUPLICATES, NULL);
    const json_t *member = json_object_get(whole, "raw");
    const tide_text base64 = {json_string_value(member), json_string_length(member)};
    const tide_buf none = {.data = NULL};
    const bool good = json_is_string(member) && is_base64_of(base64, &none);
    TIDE_ASSERT(deep || good == (rc == TIDE_OK));
    if (rc == TIDE_OK) {
        TIDE_ASSERT(is_base64_of(base64, &raw) || (raw.bytes == 0 && base64.bytes == 0));
        (void)json_object_del(whole, "raw");
        TIDE_ASSERT(json_equal(whole, fields));
    }
    json_decref(whole);
    json_decref(fields);
    tide_gmail_raw_done(&extractor);
    tide_buf_done(&raw);
    return 0;
}
