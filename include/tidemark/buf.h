/* buf.h - a growing run of bytes with a ceiling.
 *
 * Growing past the ceiling is a status, not an allocation.  After a failed
 * append the buffer is as it was.  The content is always followed by a NUL
 * that is not counted, so it can be handed to C functions.
 *
 *     tide_buf json;
 *     tide_buf_init(&json, NULL, 1 << 20);
 *     tide_engine_snapshot(engine, &json, &err);
 *     puts(tide_buf_cstr(&json));
 *     tide_buf_done(&json);
 *
 * You own the struct; read `data` and `bytes`, leave the rest alone.  The layout is
 * fixed. */
#ifndef TIDEMARK_BUF_H
#define TIDEMARK_BUF_H

#include "tidemark/status.h"
#include "tidemark/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_mem tide_mem; /* an allocator; opaque */

typedef struct tide_buf {
    tide_mem *mem;
    char *data; /* NULL until the first append */
    size_t bytes;
    size_t capacity;
    size_t bytes_max;
} tide_buf;

void tide_buf_init(tide_buf *buf, tide_mem *mem, size_t bytes_max); /* mem NULL: the heap */
void tide_buf_done(tide_buf *buf);                                  /* a zeroed one is fine */
void tide_buf_clear(tide_buf *buf);                                 /* keeps the memory */
/* Appending:
 *   TIDE_FULL       it would grow over bytes_max; the buffer is as it was
 *   TIDE_NO_MEMORY  the buffer is as it was
 *   TIDE_INVALID    the format is wrong (tide_buf_print() only) */
tide_status tide_buf_add(tide_buf *buf, const void *bytes, size_t count);
tide_status tide_buf_add_text(tide_buf *buf, const char *terminated);
tide_status tide_buf_print(tide_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "" while empty.  Borrowed until the next change. */
const char *tide_buf_cstr(const tide_buf *buf);
tide_text tide_buf_text(const tide_buf *buf);

#ifdef __cplusplus
}
#endif

#endif
