/* buf.h - a growing byte buffer with a ceiling: the public tidemark/buf.h plus internal
 * functions. */
#ifndef TIDE_BASE_BUF_H
#define TIDE_BASE_BUF_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "tidemark/buf.h"

/* An empty buffer; with tide_auto_buf it is freed at the end of its block:
 *     tide_auto_buf text = tide_buf_heap(4096); */
#define tide_auto_buf __attribute__((cleanup(tide_buf_done))) tide_buf
static inline tide_buf tide_buf_in(tide_mem *mem, size_t bytes_max)
{
    tide_buf buf;
    tide_buf_init(&buf, mem, bytes_max);
    return buf;
}
static inline tide_buf tide_buf_heap(size_t bytes_max)
{
    return tide_buf_in(NULL, bytes_max);
}

void tide_buf_rest(tide_buf *buf); /* clears; keeps the room unless it is more than 1 MiB */
/* Reserves room for `count` more bytes at the end.  The caller fills it, adds to buf->bytes, and
 * writes a NUL if it used less.  NULL: past the ceiling. */
char *tide_buf_reserve(tide_buf *buf, size_t count);
/* Reserves exactly `bytes` in all, for content of known size: one allocation instead of doubling.
 * Ignores the ceiling.  No effect if the buffer already has the room. */
tide_status tide_buf_room(tide_buf *buf, size_t bytes);

#endif
