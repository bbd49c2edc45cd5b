/* buf.h - a growing run of bytes with a ceiling: tidemark/buf.h, which programs see
 * too, and what only we need. */
#ifndef TIDE_BASE_BUF_H
#define TIDE_BASE_BUF_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "tidemark/buf.h"

void tide_buf_rest(tide_buf *buf); /* clears; keeps the room unless it is more than 1 MiB */
/* Room for `count` more bytes at the end, to be filled by the caller, who then
 * adds to buf->bytes, and a NUL if it was less.  NULL past the ceiling. */
char *tide_buf_reserve(tide_buf *buf, size_t count);
/* Room for `bytes` in all and no more, for a content whose size is known: it
 * grows in one go, not by doubling.  The
 * ceiling does not count here.  A buffer that has the room stays as it is. */
tide_status tide_buf_room(tide_buf *buf, size_t bytes);

#endif
