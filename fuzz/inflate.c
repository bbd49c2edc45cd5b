/* inflate.c - any compressed body, in pieces of any size: the result does not depend on the
 * pieces, and a sink that refuses ends it.  The first byte is the size of the pieces. */
#include "fuzz.h"

#include "base/hash.h"
#include "world/inflate.h"

enum { UNFOLDED_BYTES_MAX = 256 << 10 };

struct sum {
    uint64_t bytes;
    uint64_t hash;
};

static tide_status take(void *arg, const char *bytes, size_t count)
{
    struct sum *sum = arg;
    TIDE_ASSERT(count > 0 && count <= 16 << 10);
    sum->hash = tide_hash(sum->hash, (tide_text){bytes, count});
    sum->bytes += count;
    return sum->bytes > UNFOLDED_BYTES_MAX ? TIDE_FULL : TIDE_OK;
}

static tide_status unfold(tide_text text, size_t piece_bytes, struct sum *sum, bool *whole)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    tide_inflate inflate;
    tide_inflate_init(&inflate, &mem.base);
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && text.bytes > 0) {
        size_t count = text.bytes < piece_bytes ? text.bytes : piece_bytes;
        tide_text piece = fuzz_exact((tide_text){text.data, count});
        rc = tide_inflate_feed(&inflate, piece.data, piece.bytes, take, sum);
        free((void *)(uintptr_t)piece.data);
        text = (tide_text){text.data + count, text.bytes - count};
    }
    *whole = tide_inflate_whole(&inflate);
    tide_inflate_done(&inflate);
    TIDE_ASSERT(mem.bytes_live == 0);
    TIDE_ASSERT(mem.bytes_peak < 64 << 10); /* INF1 */
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    size_t piece_bytes = 1u + fuzz_u8(&input);
    tide_text text = {(const char *)input.data, input.bytes};
    struct sum at_once = {0, 1}, in_pieces = {0, 1};
    bool whole = false, whole_in_pieces = false;
    tide_status rc = unfold(text, SIZE_MAX, &at_once, &whole);
    tide_status rc_in_pieces = unfold(text, piece_bytes, &in_pieces, &whole_in_pieces);
    TIDE_ASSERT(rc == TIDE_OK || rc == TIDE_SERVER || rc == TIDE_FULL);
    /* Bytes before the damage may or may not reach the sink, so either the ceiling or the damage
     * may be reported. */
    TIDE_ASSERT(rc == rc_in_pieces || (rc != TIDE_OK && rc_in_pieces != TIDE_OK));
    if (rc == TIDE_OK) {
        TIDE_ASSERT(at_once.bytes == in_pieces.bytes && at_once.hash == in_pieces.hash);
        TIDE_ASSERT(whole == whole_in_pieces);
    }
    return 0;
}
