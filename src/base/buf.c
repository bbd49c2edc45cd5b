#include "base/buf.h"
#include "base/check.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LARGE_BYTES = 1 << 20 };

void tide_buf_init(tide_buf *buf, tide_mem *mem, size_t bytes_max)
{
    memset(buf, 0, sizeof *buf);
    buf->mem = mem != NULL ? mem : tide_mem_heap();
    buf->bytes_max = bytes_max;
}

void tide_buf_done(tide_buf *buf)
{
    if (buf->data != NULL)
        tide_mem_free(buf->mem, buf->data, buf->capacity);
    buf->data = NULL;
    buf->bytes = 0;
    buf->capacity = 0;
}

void tide_buf_clear(tide_buf *buf)
{
    buf->bytes = 0;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

void tide_buf_rest(tide_buf *buf)
{
    if (buf->capacity > LARGE_BYTES)
        tide_buf_done(buf);
    else
        tide_buf_clear(buf);
}

/* Doubles while small, so that few steps reach any size; grows by half when large.  New room is not
 * cleared: pages that are never filled cost no memory. */
static size_t capacity_after(const tide_buf *buf, size_t needed)
{
    size_t wanted = buf->capacity < 8 ? 8 : buf->capacity;
    while (wanted < needed && wanted < LARGE_BYTES)
        wanted *= 2;
    if (wanted < needed && buf->capacity >= LARGE_BYTES)
        wanted = buf->capacity > SIZE_MAX / 2 ? SIZE_MAX : buf->capacity + buf->capacity / 2;
    if (wanted < needed)
        wanted = needed;
    return wanted > buf->bytes_max + 1 ? buf->bytes_max + 1 : wanted;
}

char *tide_buf_reserve(tide_buf *buf, size_t count)
{
    TIDE_ASSERT(buf->mem != NULL);
    if (buf->bytes > buf->bytes_max || count > buf->bytes_max - buf->bytes)
        return NULL;
    const size_t needed = buf->bytes + count + 1;
    if (needed > buf->capacity) {
        const size_t wanted = capacity_after(buf, needed);
        char *data = buf->mem->resize(buf->mem, buf->data, buf->capacity, wanted);
        if (data == NULL)
            return NULL;
        buf->data = data;
        buf->capacity = wanted;
    }
    buf->data[buf->bytes] = '\0';
    buf->data[buf->bytes + count] = '\0'; /* for a caller that fills all of it */
    return buf->data + buf->bytes;
}

tide_status tide_buf_room(tide_buf *buf, size_t bytes)
{
    TIDE_ASSERT(buf->mem != NULL);
    size_t wanted = 0;
    if (__builtin_add_overflow(bytes, 1u, &wanted))
        return TIDE_FULL;
    if (wanted <= buf->capacity)
        return TIDE_OK;
    char *data = buf->mem->resize(buf->mem, buf->data, buf->capacity, wanted);
    if (data == NULL)
        return TIDE_NO_MEMORY;
    data[buf->bytes] = '\0';
    buf->data = data;
    buf->capacity = wanted;
    return TIDE_OK;
}

tide_status tide_buf_add(tide_buf *buf, const void *bytes, size_t count)
{
    char *room = tide_buf_reserve(buf, count);
    if (room == NULL)
        return count > buf->bytes_max - buf->bytes ? TIDE_FULL : TIDE_NO_MEMORY;
    if (count > 0)
        memcpy(room, bytes, count);
    buf->bytes += count;
    buf->data[buf->bytes] = '\0';
    return TIDE_OK;
}

tide_status tide_buf_add_text(tide_buf *buf, const char *terminated)
{
    return tide_buf_add(buf, terminated, strlen(terminated));
}

tide_status tide_buf_print(tide_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (wanted < 0)
        return TIDE_INVALID;
    char *room = tide_buf_reserve(buf, (size_t)wanted);
    if (room == NULL)
        return (size_t)wanted > buf->bytes_max - buf->bytes ? TIDE_FULL : TIDE_NO_MEMORY;
    va_start(args, format);
    (void)vsnprintf(room, (size_t)wanted + 1, format, args);
    va_end(args);
    buf->bytes += (size_t)wanted;
    return TIDE_OK;
}

const char *tide_buf_cstr(const tide_buf *buf)
{
    return buf->data == NULL ? "" : buf->data;
}

tide_text tide_buf_text(const tide_buf *buf)
{
    return (tide_text){tide_buf_cstr(buf), buf->bytes};
}
