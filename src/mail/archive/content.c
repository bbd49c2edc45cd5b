#include "mail/archive/content.h"
#include "base/check.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <zstd.h>

enum {
    BLOCK_BYTES = 64 << 10,  /* per comparison step */
    SAMPLE_BYTES = 64 << 10, /* of a large body, to test whether it compresses */
    SAMPLED_FROM_BYTES = 1 << 20,
    LINE_CHARS_MAX = 1 << 16, /* longer lines count as text without line breaks */
};

struct tide_packer {
    tide_mem *mem;
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *expander;
    EVP_MD *
        sha256; /* NULL until something is hashed: OpenSSL starts slowly, and a list hashes nothing */
    EVP_MD_CTX *hasher;
    tide_buf packed;
    char block[BLOCK_BYTES];
};

tide_status tide_packer_new(tide_mem *mem, int level, tide_packer **packer_out, tide_error *err)
{
    tide_packer *packer = tide_mem_new(mem, sizeof *packer);
    if (packer == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for compression");
    packer->mem = mem;
    tide_buf_init(&packer->packed, mem, ZSTD_compressBound(TIDE_MESSAGE_BYTES_MAX));
    packer->compressor = ZSTD_createCCtx();
    packer->expander = ZSTD_createDCtx();
    packer->hasher = EVP_MD_CTX_new();
    if (packer->compressor == NULL || packer->expander == NULL || packer->hasher == NULL) {
        tide_packer_free(packer);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for compression");
    }
    (void)ZSTD_CCtx_setParameter(packer->compressor, ZSTD_c_compressionLevel, level);
    /* The row stores the length and a better hash. */
    (void)ZSTD_CCtx_setParameter(packer->compressor, ZSTD_c_contentSizeFlag, 1);
    (void)ZSTD_CCtx_setParameter(packer->compressor, ZSTD_c_checksumFlag, 0);
    *packer_out = packer;
    return TIDE_OK;
}

void tide_packer_free(tide_packer *packer)
{
    if (packer == NULL)
        return;
    tide_buf_done(&packer->packed);
    (void)ZSTD_freeCCtx(packer->compressor);
    (void)ZSTD_freeDCtx(packer->expander);
    EVP_MD_free(packer->sha256);
    EVP_MD_CTX_free(packer->hasher);
    tide_mem_free(packer->mem, packer, sizeof *packer);
}

tide_status tide_content_hash(tide_packer *packer, tide_text bytes,
                              uint8_t hash_out[TIDE_CONTENT_HASH_BYTES], tide_error *err)
{
    unsigned count = 0;
    uint8_t hash[EVP_MAX_MD_SIZE];
    if (packer->sha256 == NULL)
        packer->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (packer->sha256 == NULL || EVP_DigestInit_ex2(packer->hasher, packer->sha256, NULL) != 1 ||
        EVP_DigestUpdate(packer->hasher, bytes.data, bytes.bytes) != 1 ||
        EVP_DigestFinal_ex(packer->hasher, hash, &count) != 1)
        return tide_error_set(err, TIDE_NO_MEMORY, "SHA-256 could not be computed");
    TIDE_ASSERT(count == TIDE_CONTENT_HASH_BYTES);
    memcpy(hash_out, hash, TIDE_CONTENT_HASH_BYTES);
    return TIDE_OK;
}

/* ---- packing ------------------------------------------------------------------ */

/* Compression must save at least a twentieth; otherwise the body is stored as it is.  For a large
 * body the first part decides: photos and archives are not compressed in vain. */
static bool compresses(tide_packer *packer, tide_text bytes)
{
    if (bytes.bytes < SAMPLED_FROM_BYTES)
        return true;
    size_t got = ZSTD_compress2(packer->compressor, packer->block, SAMPLE_BYTES * 19 / 20,
                                bytes.data + bytes.bytes / 2, SAMPLE_BYTES);
    if (!ZSTD_isError(got))
        return true;
    got = ZSTD_compress2(packer->compressor, packer->block, SAMPLE_BYTES * 19 / 20, bytes.data,
                         SAMPLE_BYTES);
    return !ZSTD_isError(got);
}

/* Unpacks and compares block by block, so that the check needs no second copy. */
static bool unpacks_to(tide_packer *packer, tide_text body, tide_text bytes)
{
    ZSTD_inBuffer in = {body.data, body.bytes, 0};
    size_t at = 0;
    size_t left = 1;
    (void)ZSTD_DCtx_reset(packer->expander, ZSTD_reset_session_only);
    while (left != 0) {
        ZSTD_outBuffer out = {packer->block, BLOCK_BYTES, 0};
        size_t in_before = in.pos;
        left = ZSTD_decompressStream(packer->expander, &out, &in);
        if (ZSTD_isError(left) || out.pos > bytes.bytes - at ||
            memcmp(packer->block, bytes.data + at, out.pos) != 0)
            return false;
        at += out.pos;
        if (out.pos == 0 && in.pos == in_before && left != 0)
            return false; /* it needs more input than there is */
    }
    return at == bytes.bytes && in.pos == body.bytes;
}

tide_status tide_content_pack(tide_packer *packer, tide_text bytes, struct tide_packed *packed_out,
                              tide_error *err)
{
    *packed_out = (struct tide_packed){TIDE_CODEC_PLAIN, bytes};
    tide_buf_rest(&packer->packed);
    size_t room = bytes.bytes - bytes.bytes / 20;
    if (bytes.bytes < 64 || !compresses(packer, bytes))
        return TIDE_OK;
    char *to = tide_buf_reserve(&packer->packed, room);
    if (to == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to compress %zu bytes", bytes.bytes);
    size_t got = ZSTD_compress2(packer->compressor, to, room, bytes.data, bytes.bytes);
    if (ZSTD_isError(got))
        return TIDE_OK; /* not smaller, or out of memory: stored as it is */
    if (!unpacks_to(packer, (tide_text){to, got}, bytes)) {
        TIDE_SEEN("content: the compressor was caught");
        return TIDE_OK;
    }
    packer->packed.bytes = got;
    *packed_out = (struct tide_packed){TIDE_CODEC_ZSTD, {to, got}};
    return TIDE_OK;
}

tide_status tide_content_unpack(tide_packer *packer, int64_t codec, tide_text body, uint64_t bytes,
                                tide_buf *out, tide_error *err)
{
    if (bytes > TIDE_MESSAGE_BYTES_MAX)
        return tide_error_set(err, TIDE_CORRUPT, "invalid length");
    if (codec == TIDE_CODEC_PLAIN) {
        if (body.bytes != bytes)
            return tide_error_set(err, TIDE_CORRUPT, "%zu bytes instead of %llu", body.bytes,
                                  (unsigned long long)bytes);
        return tide_buf_add(out, body.data, body.bytes) == TIDE_OK
                   ? TIDE_OK
                   : tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu bytes", body.bytes);
    }
    if (codec != TIDE_CODEC_ZSTD)
        return tide_error_set(err, TIDE_CORRUPT, "unknown compression (%lld)", (long long)codec);
    char *to = tide_buf_reserve(out, (size_t)bytes);
    if (to == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %llu bytes",
                              (unsigned long long)bytes);
    size_t got = ZSTD_decompressDCtx(packer->expander, to, (size_t)bytes, body.data, body.bytes);
    if (ZSTD_isError(got) || got != bytes)
        return tide_error_set(err, TIDE_CORRUPT, "cannot be decompressed: %s",
                              ZSTD_isError(got) ? ZSTD_getErrorName(got) : "wrong length");
    out->bytes += got;
    to[got] = '\0';
    return TIDE_OK;
}

/* ---- base64 --------------------------------------------------------------------- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* 0..63, or 64 for what is not base64. */
static uint8_t value_of(char character)
{
    static const uint8_t values[256] = {
#define N4  64, 64, 64, 64
#define N16 N4, N4, N4, N4
        N16, N16, N4, N4, 64, 64, 64, 62,  64,  64,  64,  63,  52,  53,  54,  55, 56, 57, 58,
        59,  60,  61, 64, 64, N4, 64, 0,   1,   2,   3,   4,   5,   6,   7,   8,  9,  10, 11,
        12,  13,  14, 15, 16, 17, 18, 19,  20,  21,  22,  23,  24,  25,  64,  64, N4, 26, 27,
        28,  29,  30, 31, 32, 33, 34, 35,  36,  37,  38,  39,  40,  41,  42,  43, 44, 45, 46,
        47,  48,  49, 50, 51, 64, N4, N16, N16, N16, N16, N16, N16, N16, N16,
#undef N16
#undef N4
    };
    return values[(unsigned char)character];
}

/* Encodes groups of three bytes; the last group may be shorter. */
static size_t encode(const uint8_t *from, size_t bytes, char *to)
{
    size_t chars = 0;
    for (size_t i = 0; i + 2 < bytes; i += 3) {
        uint32_t group = (uint32_t)from[i] << 16 | (uint32_t)from[i + 1] << 8 | from[i + 2];
        to[chars++] = alphabet[group >> 18];
        to[chars++] = alphabet[group >> 12 & 63];
        to[chars++] = alphabet[group >> 6 & 63];
        to[chars++] = alphabet[group & 63];
    }
    size_t rest = bytes % 3;
    if (rest == 0)
        return chars;
    uint32_t group = (uint32_t)from[bytes - rest] << 16;
    if (rest == 2)
        group |= (uint32_t)from[bytes - 1] << 8;
    to[chars++] = alphabet[group >> 18];
    to[chars++] = alphabet[group >> 12 & 63];
    to[chars++] = rest == 2 ? alphabet[group >> 6 & 63] : '=';
    to[chars++] = '=';
    return chars;
}

/* Encodes and breaks into lines, block by block. */
struct liner {
    uint32_t line; /* 0: one line */
    bool crlf;
    uint32_t in_line;
    tide_join_write *write;
    void *arg;
};

/* Adds a block; all but the last are multiples of three bytes. */
static tide_status liner_add(struct liner *liner, const uint8_t *bytes, size_t count)
{
    enum { GROUPS = 2048 };
    char chars[GROUPS * 4];
    char lines[GROUPS * 4 * 3]; /* a line: one character or more, then at most two */
    for (size_t at = 0; at < count; at += GROUPS * 3) {
        size_t part = count - at < GROUPS * 3 ? count - at : GROUPS * 3;
        size_t chars_count = encode(bytes + at, part, chars);
        size_t used = 0;
        for (size_t done = 0; done < chars_count;) {
            if (liner->line != 0 && liner->in_line == liner->line) {
                if (liner->crlf)
                    lines[used++] = '\r';
                lines[used++] = '\n';
                liner->in_line = 0;
            }
            size_t run = chars_count - done;
            if (liner->line != 0 && run > liner->line - liner->in_line)
                run = liner->line - liner->in_line;
            memcpy(lines + used, chars + done, run);
            used += run;
            done += run;
            if (liner->line != 0)
                liner->in_line += (uint32_t)run;
        }
        TIDE_TRY(liner->write(liner->arg, lines, used));
    }
    return TIDE_OK;
}

/* ---- cutting -------------------------------------------------------------------- */

struct line {
    size_t begin, end, next; /* without its end; where the next one begins */
    bool crlf;
    bool last;   /* the text ends without a line end */
    bool plain;  /* base64 characters only */
    bool padded; /* base64 characters, then one or two '=' */
};

static struct line line_at(tide_text raw, size_t begin)
{
    struct line line = {.begin = begin, .end = raw.bytes, .next = raw.bytes, .last = true};
    const char *end = memchr(raw.data + begin, '\n', raw.bytes - begin);
    if (end != NULL) {
        line.last = false;
        line.end = (size_t)(end - raw.data);
        line.next = line.end + 1;
        line.crlf = line.end > begin && raw.data[line.end - 1] == '\r';
        line.end -= line.crlf;
    }
    size_t at = begin;
    while (at < line.end && value_of(raw.data[at]) < 64)
        at++;
    line.plain = at == line.end && at > begin;
    size_t pad = line.end - at;
    line.padded = at > begin && (pad == 1 || pad == 2) && raw.data[at] == '=' &&
                  raw.data[line.end - 1] == '=';
    return line;
}

/* Takes the run that begins with the plain or padded line `first`; returns the start of the line
 * after it. */
static size_t run_take(tide_text raw, struct line first, struct tide_cut *cut)
{
    size_t width = first.end - first.begin;
    *cut = (struct tide_cut){.begin = first.begin, .end = first.end};
    if (first.padded || first.last || width > LINE_CHARS_MAX)
        return first.next; /* one line */
    size_t next = first.next;
    bool crlf = first.crlf;
    while (next < raw.bytes) {
        struct line line = line_at(raw, next);
        size_t line_width = line.end - line.begin;
        if ((!line.plain && !line.padded) || line_width > width)
            return next;
        cut->end = line.end;
        cut->line = (uint32_t)width;
        cut->crlf = crlf;
        next = line.next;
        /* The end of the last line does not matter: it stays in place. */
        if (line.padded || line_width < width || line.last || line.crlf != crlf)
            return next;
    }
    return next;
}

tide_status tide_content_compare(void *arg, const char *bytes, size_t count)
{
    struct tide_comparison *with = arg;
    if (count > with->raw.bytes - with->at ||
        memcmp(with->raw.data + with->at, bytes, count) != 0) {
        with->differs = true;
        return TIDE_CORRUPT;
    }
    with->at += count;
    return TIDE_OK;
}

/* Decodes characters of a cut from *at on, at most `room` bytes, in groups until its end.  Returns
 * the count; padding ends it. */
static size_t decode_some(tide_text raw, const struct tide_cut *cut, size_t *at, uint8_t *to,
                          size_t room)
{
    size_t bytes = 0;
    uint32_t group = 0;
    unsigned filled = 0;
    while (*at < cut->end && bytes + 3 <= room) {
        char character = raw.data[(*at)++];
        uint8_t value = value_of(character);
        if (value == 64)
            continue; /* a line end, or padding */
        group = group << 6 | value;
        if (++filled < 4)
            continue;
        to[bytes++] = (uint8_t)(group >> 16);
        to[bytes++] = (uint8_t)(group >> 8);
        to[bytes++] = (uint8_t)group;
        filled = 0;
        group = 0;
    }
    if (filled >= 2 && *at == cut->end) {
        to[bytes++] = (uint8_t)(group >> (filled == 3 ? 10 : 4));
        if (filled == 3)
            to[bytes++] = (uint8_t)(group >> 2);
    }
    return bytes;
}

/* CNT1: decoding and encoding gives the same text. */
static bool cut_is_exact(tide_text raw, const struct tide_cut *cut)
{
    enum { ROOM = 12 << 10 }; /* whole groups */
    uint8_t block[ROOM];
    struct tide_comparison with = {{raw.data + cut->begin, cut->end - cut->begin}, 0, false};
    struct liner liner = {
        .line = cut->line, .crlf = cut->crlf, .write = tide_content_compare, .arg = &with};
    size_t from = cut->begin;
    while (from < cut->end) {
        size_t bytes = decode_some(raw, cut, &from, block, ROOM);
        if (bytes == 0 || liner_add(&liner, block, bytes) != TIDE_OK)
            return false;
    }
    return with.at == with.raw.bytes;
}

size_t tide_content_cuts(tide_text raw, struct tide_cut cuts[TIDE_CUTS_MAX])
{
    size_t count = 0;
    size_t cut_bytes = 0;
    for (size_t next = 0; next < raw.bytes && count < TIDE_CUTS_MAX;) {
        struct line line = line_at(raw, next);
        if ((!line.plain && !line.padded) || line.end - line.begin < TIDE_CUT_LINE_BYTES_MIN) {
            next = line.next;
            continue;
        }
        struct tide_cut *cut = &cuts[count];
        next = run_take(raw, line, cut);
        if (cut->end - cut->begin < TIDE_CUT_BYTES_MIN || !cut_is_exact(raw, cut))
            continue;
        cut->at = cut->begin - cut_bytes;
        cut_bytes += cut->end - cut->begin;
        count++;
    }
    return count;
}

tide_status tide_cut_decode(tide_text raw, const struct tide_cut *cut, tide_buf *out,
                            tide_error *err)
{
    size_t room = (cut->end - cut->begin) / 4 * 3 + 3;
    char *to = tide_buf_reserve(out, room);
    if (to == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for an attachment of %zu bytes",
                              room);
    size_t at = cut->begin;
    out->bytes += decode_some(raw, cut, &at, (uint8_t *)to, room);
    out->data[out->bytes] = '\0';
    return TIDE_OK;
}

tide_status tide_content_join(tide_text left, const struct tide_cut *cuts, size_t cuts_count,
                              tide_join_piece *piece, void *piece_arg, tide_join_write *write,
                              void *write_arg, tide_error *err)
{
    size_t done = 0;
    for (size_t i = 0; i < cuts_count; i++) {
        if (cuts[i].at < done || cuts[i].at > left.bytes)
            return tide_error_set(err, TIDE_CORRUPT, "a piece has an invalid position");
        if (cuts[i].at > done)
            TIDE_TRY(write(write_arg, left.data + done, cuts[i].at - done));
        done = cuts[i].at;
        tide_text bytes = TIDE_TEXT_NONE;
        TIDE_TRY(piece(piece_arg, i, &bytes, err));
        struct liner liner = {
            .line = cuts[i].line, .crlf = cuts[i].crlf, .write = write, .arg = write_arg};
        TIDE_TRY(liner_add(&liner, (const uint8_t *)bytes.data, bytes.bytes));
    }
    if (left.bytes > done)
        TIDE_TRY(write(write_arg, left.data + done, left.bytes - done));
    return TIDE_OK;
}
