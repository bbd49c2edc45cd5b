/* content.h - message bytes: hashing, compressing, cutting out attachments, putting them back.
 *
 * Storing never parses (M9).  Base64 text is found by its shape, line by line,
 * without looking at headers, and is cut out only where decoding and encoding
 * again gives the same text; everything else stays in place.  This module touches no file and no
 * database, and checks all stored data it is given.
 *
 * Invariants:
 *   CNT1  joining what was cut gives the bytes that were cut, or it is not cut.
 *   CNT2  unpacking gives exactly what was packed: checked before the packed form is returned.
 *   CNT3  unpacking never writes more than the given length.
 */
#ifndef TIDE_MAIL_CONTENT_H
#define TIDE_MAIL_CONTENT_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

enum {
    TIDE_CONTENT_HASH_BYTES = 32, /* SHA-256 */
    TIDE_CUT_BYTES_MIN = 4096,    /* shorter base64 stays in place */
    TIDE_CUTS_MAX = 1000,         /* per message; the rest stays in place */
    TIDE_CUT_LINE_BYTES_MIN = 16, /* shorter lines do not count as base64 */
    TIDE_MESSAGE_BYTES_MAX = 512 << 20,
};

/* How a body is stored; the numbers are in files and never change. */
typedef enum tide_codec { TIDE_CODEC_PLAIN = 0, TIDE_CODEC_ZSTD = 1 } tide_codec;

/* Compression contexts, a hash and scratch memory, for one thread. */
typedef struct tide_packer tide_packer;
tide_status tide_packer_new(tide_mem *mem, int level, tide_packer **packer_out, tide_error *err);
void tide_packer_free(tide_packer *packer); /* NULL is fine */

tide_status tide_content_hash(tide_packer *packer, tide_text bytes,
                              uint8_t hash_out[TIDE_CONTENT_HASH_BYTES], tide_error *err);

struct tide_packed {
    tide_codec codec;
    tide_text body; /* borrowed: the packer's until the next pack, or the bytes themselves */
};
/* Compresses where it helps (CNT2). */
tide_status tide_content_pack(tide_packer *packer, tide_text bytes, struct tide_packed *packed_out,
                              tide_error *err);
/* Adds exactly `bytes` bytes to `out`, else TIDE_CORRUPT. */
tide_status tide_content_unpack(tide_packer *packer, int64_t codec, tide_text body, uint64_t bytes,
                                tide_buf *out, tide_error *err);

/* A run of base64 text in raw[begin, end), without the end of its last line. */
struct tide_cut {
    size_t begin, end;
    size_t at; /* its position in what is left */
    uint32_t line;
    bool crlf;
};
/* Finds runs that can be cut out exactly; at most TIDE_CUTS_MAX. */
size_t tide_content_cuts(tide_text raw, struct tide_cut cuts[TIDE_CUTS_MAX]);
/* The decoded bytes of a cut. */
tide_status tide_cut_decode(tide_text raw, const struct tide_cut *cut, tide_buf *out,
                            tide_error *err);

/* Takes bytes in order; any status but TIDE_OK stops the join and is returned. */
typedef tide_status tide_join_write(void *arg, const char *bytes, size_t count);
/* A tide_join_write that compares with known bytes; at == raw.bytes in the end. */
struct tide_comparison {
    tide_text raw;
    size_t at;
    bool differs;
};
tide_join_write tide_content_compare;
/* Returns the decoded bytes of the n-th cut; borrowed until the next call. */
typedef tide_status tide_join_piece(void *arg, size_t index, tide_text *piece_out, tide_error *err);
/* Puts the pieces back.  Reads only at, line and crlf of the cuts. */
tide_status tide_content_join(tide_text left, const struct tide_cut *cuts, size_t cuts_count,
                              tide_join_piece *piece, void *piece_arg, tide_join_write *write,
                              void *write_arg, tide_error *err);

#endif
