/* buf.h - a growing run of bytes with a ceiling.
 *
 * Growing past the ceiling is a status, not an allocation.  After a failed
 * append the buffer is as it was.  The content is always followed by a NUL
 * that is not counted, so it can be handed to C functions. */
#ifndef TIDE_BASE_BUF_H
#define TIDE_BASE_BUF_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

typedef struct tide_buf {
    tide_mem *mem;
    char *data; /* NULL until the first append */
    size_t bytes;
    size_t capacity;
    size_t bytes_max;
} tide_buf;

void tide_buf_init(tide_buf *buf, tide_mem *mem, size_t bytes_max);
void tide_buf_done(tide_buf *buf);  /* a zeroed one is fine */
void tide_buf_clear(tide_buf *buf); /* keeps the room */
void tide_buf_rest(tide_buf *buf);  /* keeps it unless it is more than 1 MiB */
tide_status tide_buf_add(tide_buf *buf, const void *bytes, size_t count);
tide_status tide_buf_add_text(tide_buf *buf, const char *terminated);
tide_status tide_buf_print(tide_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Room for `count` more bytes at the end, to be filled by the caller, who then
 * adds to buf->bytes, and a NUL if it was less.  NULL past the ceiling. */
char *tide_buf_reserve(tide_buf *buf, size_t count);
/* Room for `bytes` in all and no more, for a content whose size is known: it
 * grows in one go, not by doubling.  The
 * ceiling does not count here.  A buffer that has the room stays as it is. */
tide_status tide_buf_room(tide_buf *buf, size_t bytes);
/* "" while empty. */
const char *tide_buf_cstr(const tide_buf *buf);
tide_text tide_buf_text(const tide_buf *buf);

#endif
