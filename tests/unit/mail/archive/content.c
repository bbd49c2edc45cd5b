/* What is cut, packed and put together again is what it was (CNT1 to CNT3). */
#include "archive_fixture.h"
#include "support/heap.h"

struct given {
    tide_buf *pieces;
    size_t count;
};

static tide_status give(void *arg, size_t index, tide_text *piece_out, tide_error *err)
{
    (void)err;
    struct given *given = arg;
    assert_true(index < given->count);
    *piece_out = tide_buf_text(&given->pieces[index]);
    return TIDE_OK;
}

static tide_status gather(void *arg, const char *bytes, size_t count)
{
    return tide_buf_add(arg, bytes, count);
}

/* CNT1, over many kinds of bytes; and that cutting does happen. */
TEST(what_is_cut_is_put_back_exactly)
{
    static struct tide_cut cuts[TIDE_CUTS_MAX];
    static tide_buf pieces[TIDE_CUTS_MAX];
    size_t cut_in_all = 0;
    for (uint64_t seed = 1; seed <= scaled(3000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        tide_buf raw = heap_buf(10 << 20);
        tide_buf left = heap_buf(10 << 20);
        tide_buf joined = heap_buf(10 << 20);
        make_mail(&rng, &raw);
        size_t count = tide_content_cuts(tide_buf_text(&raw), cuts);
        size_t done = 0;
        for (size_t i = 0; i < count; i++) {
            OK(tide_buf_add(&left, raw.data + done, cuts[i].begin - done));
            assert_int_equal(left.bytes, cuts[i].at);
            done = cuts[i].end;
            tide_buf_init(&pieces[i], tide_mem_heap(), 10 << 20);
            OK(tide_cut_decode(tide_buf_text(&raw), &cuts[i], &pieces[i], NULL));
            assert_true(pieces[i].bytes * 4 / 3 <= cuts[i].end - cuts[i].begin);
        }
        OK(tide_buf_add(&left, raw.data + done, raw.bytes - done));
        struct given given = {pieces, count};
        OK(tide_content_join(tide_buf_text(&left), cuts, count, give, &given, gather, &joined,
                             NULL));
        if (!tide_text_equal(tide_buf_text(&joined), tide_buf_text(&raw)))
            fail_msg("seed %" PRIu64, seed);
        for (size_t i = 0; i < count; i++)
            tide_buf_done(&pieces[i]);
        cut_in_all += count;
        tide_buf_done(&joined);
        tide_buf_done(&left);
        tide_buf_done(&raw);
    }
    assert_true(cut_in_all > scaled(1000));
}

/* Every length of line that a mailer can choose without breaking a group of four,
 * every rest, and both ends of lines. */
TEST(base64_of_every_shape_is_cut)
{
    static struct tide_cut cuts[TIDE_CUTS_MAX];
    static uint8_t bytes[5000];
    tide_rng rng = tide_rng_seeded(1);
    random_bytes(&rng, bytes, sizeof bytes);
    for (size_t line = TIDE_CUT_LINE_BYTES_MIN; line < 400; line += 4) {
        for (size_t count = 4000; count < 4006; count++) {
            tide_buf raw = heap_buf(1 << 20);
            tide_buf piece = heap_buf(1 << 20);
            OK(tide_buf_add_text(&raw, "Subject: x\r\n\r\n"));
            size_t begin = raw.bytes;
            add_base64(&raw, bytes, count, line, count % 2 == 0 ? "\r\n" : "\n");
            size_t end = raw.bytes;
            if (line % 8 == 0)
                OK(tide_buf_add_text(&raw, "\r\n--x--\r\n"));
            if (tide_content_cuts(tide_buf_text(&raw), cuts) != 1)
                fail_msg("lines of %zu, %zu bytes", line, count);
            assert_int_equal(cuts[0].begin, begin);
            assert_int_equal(cuts[0].end, end);
            assert_int_equal(cuts[0].line, line);
            OK(tide_cut_decode(tide_buf_text(&raw), &cuts[0], &piece, NULL));
            assert_int_equal(piece.bytes, count);
            assert_memory_equal(piece.data, bytes, count);
            tide_buf_done(&piece);
            tide_buf_done(&raw);
        }
    }
}

/* CNT2 and CNT3: also what was tampered with ends in a status. */
TEST(what_is_packed_is_unpacked_or_refused)
{
    tide_packer *packer = NULL;
    OK(tide_packer_new(tide_mem_heap(), 3, &packer, NULL));
    for (uint64_t seed = 1; seed <= scaled(3000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        size_t count = (size_t)tide_rng_below(&rng, seed % 100 == 0 ? 3 << 20 : 20000);
        char *bytes = malloc(count + 1);
        uint64_t letters = 1 + tide_rng_below(&rng, 256);
        for (size_t i = 0; i < count; i++)
            bytes[i] = (char)tide_rng_below(&rng, letters);
        struct tide_packed packed;
        tide_buf out = heap_buf(8 << 20);
        OK(tide_content_pack(packer, (tide_text){bytes, count}, &packed, NULL));
        assert_true(packed.body.bytes <= count);
        OK(tide_content_unpack(packer, packed.codec, packed.body, count, &out, NULL));
        assert_true(tide_text_equal(tide_buf_text(&out), (tide_text){bytes, count}));
        if (packed.codec == TIDE_CODEC_ZSTD) {
            char *broken = malloc(packed.body.bytes);
            memcpy(broken, packed.body.data, packed.body.bytes);
            broken[tide_rng_below(&rng, packed.body.bytes)] ^= (char)(1 << tide_rng_below(&rng, 8));
            tide_buf_clear(&out);
            tide_status rc = tide_content_unpack(
                packer, TIDE_CODEC_ZSTD, (tide_text){broken, packed.body.bytes}, count, &out, NULL);
            assert_true(rc == TIDE_OK || rc == TIDE_CORRUPT);
            assert_true(out.bytes <= count);
            assert_int_equal(
                tide_content_unpack(packer, TIDE_CODEC_ZSTD, packed.body, count - 1, &out, NULL),
                TIDE_CORRUPT);
            free(broken);
        }
        assert_int_equal(tide_content_unpack(packer, 7, packed.body, count, &out, NULL),
                         TIDE_CORRUPT);
        tide_buf_done(&out);
        free(bytes);
    }
    tide_packer_free(packer);
}
