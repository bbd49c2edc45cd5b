/* content.c - content cut out of a message, whatever its bytes are, is put back exactly (CNT1),
 * and unpacking any bytes ends in a status (CNT3). */
#include "fuzz.h"

#include "base/check.h"
#include "mail/archive/content.h"

struct pieces {
    tide_text raw;
    const struct tide_cut *cuts;
    tide_buf piece;
};

static tide_status give(void *arg, size_t index, tide_text *piece_out, tide_error *err)
{
    struct pieces *pieces = arg;
    tide_buf_clear(&pieces->piece);
    tide_status rc = tide_cut_decode(pieces->raw, &pieces->cuts[index], &pieces->piece, err);
    *piece_out = tide_buf_text(&pieces->piece);
    return rc;
}

static void cut_and_join(tide_text raw)
{
    static struct tide_cut cuts[TIDE_CUTS_MAX];
    tide_buf left;
    struct pieces pieces = {.raw = raw, .cuts = cuts};
    tide_buf_init(&left, tide_mem_heap(), 1 << 24);
    tide_buf_init(&pieces.piece, tide_mem_heap(), 1 << 24);
    size_t count = tide_content_cuts(raw, cuts);
    size_t done = 0;
    for (size_t i = 0; i < count; i++) {
        TIDE_ASSERT(cuts[i].begin >= done);
        TIDE_ASSERT(cuts[i].end - cuts[i].begin >= TIDE_CUT_BYTES_MIN);
        TIDE_ASSERT(tide_buf_add(&left, raw.data + done, cuts[i].begin - done) == TIDE_OK);
        done = cuts[i].end;
    }
    TIDE_ASSERT(tide_buf_add(&left, raw.data + done, raw.bytes - done) == TIDE_OK);
    struct tide_comparison with = {raw, 0, false};
    TIDE_ASSERT(tide_content_join(tide_buf_text(&left), cuts, count, give, &pieces,
                                  tide_content_compare, &with, NULL) == TIDE_OK);
    TIDE_ASSERT(with.at == raw.bytes);
    tide_buf_done(&left);
    tide_buf_done(&pieces.piece);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static tide_packer *packer;
    if (packer == NULL)
        TIDE_ASSERT(tide_packer_new(tide_mem_heap(), 3, &packer, NULL) == TIDE_OK);
    if (bytes < 3)
        return 0;
    const tide_text raw = {(const char *)data + 2, bytes - 2};
    cut_and_join(raw);
    /* The first two bytes: the length it claims. */
    const uint64_t claimed = (uint64_t)data[0] << 8 | data[1];
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), 1 << 20);
    tide_status rc = tide_content_unpack(packer, TIDE_CODEC_ZSTD, raw, claimed, &out, NULL);
    TIDE_ASSERT(rc == TIDE_OK ? out.bytes == claimed : out.bytes == 0);
    tide_buf_done(&out);
    return 0;
}
