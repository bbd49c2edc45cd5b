#include "world/inflate.h"
#include "base/check.h"

/* tide_mem needs the size to free a block, and zlib does not pass it.  So each block stores its
 * size in front, padded to keep the alignment. */
enum { BLOCK_HEAD_BYTES = 16 };

static void *block_new(void *arg, unsigned count, unsigned element_bytes)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow((size_t)count, (size_t)element_bytes, &bytes) ||
        __builtin_add_overflow(bytes, (size_t)BLOCK_HEAD_BYTES, &bytes))
        return NULL;
    tide_mem *mem = arg;
    char *block = mem->resize(mem, NULL, 0, bytes);
    if (block == NULL)
        return NULL;
    memcpy(block, &bytes, sizeof bytes);
    return block + BLOCK_HEAD_BYTES;
}

static void block_free(void *arg, void *pointer)
{
    if (pointer == NULL)
        return;
    char *block = (char *)pointer - BLOCK_HEAD_BYTES;
    size_t bytes = 0;
    memcpy(&bytes, block, sizeof bytes);
    tide_mem_free(arg, block, bytes);
}

void tide_inflate_init(tide_inflate *self, tide_mem *mem)
{
    memset(self, 0, sizeof *self);
    self->mem = mem;
}

void tide_inflate_done(tide_inflate *self)
{
    if (self->started)
        (void)inflateEnd(&self->stream);
    self->started = false;
}

static tide_status start(tide_inflate *self)
{
    enum { WINDOW_BITS = 15, EITHER_HEADER = 32 };
    self->stream.zalloc = block_new;
    self->stream.zfree = block_free;
    self->stream.opaque = self->mem;
    if (inflateInit2(&self->stream, WINDOW_BITS + EITHER_HEADER) != Z_OK)
        return TIDE_NO_MEMORY;
    self->started = true;
    return TIDE_OK;
}

tide_status tide_inflate_feed(tide_inflate *self, const char *bytes, size_t count,
                              tide_sink_write *sink, void *sink_arg)
{
    TIDE_ASSERT(count <= UINT32_MAX);
    if (!self->started)
        TIDE_TRY(start(self));
    self->stream.next_in = (const Bytef *)bytes;
    self->stream.avail_in = (uInt)count;
    char room[16 << 10];
    /* Each pass consumes input, makes output or leaves: zlib returns Z_BUF_ERROR when it can do
     * neither. */
    for (;;) {
        if (!self->member_open && self->stream.avail_in == 0)
            return TIDE_OK;
        self->stream.next_out = (Bytef *)room;
        self->stream.avail_out = sizeof room;
        self->member_open = true;
        int result = inflate(&self->stream, Z_NO_FLUSH);
        if (result == Z_MEM_ERROR)
            return TIDE_NO_MEMORY;
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
            return TIDE_SERVER;
        const size_t made_bytes = sizeof room - self->stream.avail_out;
        if (made_bytes > 0)
            TIDE_TRY(sink(sink_arg, room, made_bytes));
        if (result == Z_STREAM_END) {
            /* Another member may follow; gzip files may be concatenated. */
            self->member_open = false;
            if (inflateReset(&self->stream) != Z_OK)
                return TIDE_SERVER;
        } else if (result == Z_BUF_ERROR || made_bytes < sizeof room) {
            return TIDE_OK;
        }
    }
}

bool tide_inflate_whole(const tide_inflate *self)
{
    return !self->member_open;
}
