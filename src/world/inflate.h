/* inflate.h - decompresses gzip and deflate while a body streams in.
 *
 * It runs on the thread that made the call, not on the network thread: so one call's
 * decompression delays no other call, and a small body that expands into a huge one
 * hits the sink's own ceiling, 16 KiB at a time.
 *
 * Invariants:
 *   INF1  it holds zlib's window (about 40 KiB) and nothing of the body.
 *   INF2  after TIDE_SERVER (the bytes are damaged) it takes no more input. */
#ifndef TIDE_WORLD_INFLATE_H
#define TIDE_WORLD_INFLATE_H

#include "world/world.h"

#define ZLIB_CONST
#include <zlib.h>

typedef struct tide_inflate {
    tide_mem *mem;
    z_stream stream;
    bool started;
    bool member_open; /* inside a gzip member: ending here is a truncation */
} tide_inflate;

void tide_inflate_init(tide_inflate *self, tide_mem *mem);
void tide_inflate_done(tide_inflate *self); /* a zeroed one is fine */
/* Passes the decompressed bytes to `sink`; returns its status if that is not TIDE_OK.
 * TIDE_SERVER: damaged; TIDE_NO_MEMORY. */
tide_status tide_inflate_feed(tide_inflate *self, const char *bytes, size_t count,
                              tide_sink_write *sink, void *sink_arg);
/* True when nothing is missing at the end.  An empty body is complete (HEAD, 304). */
bool tide_inflate_whole(const tide_inflate *self);

#endif
