/* heap.h - buffers and texts that are ready for use. */
#ifndef TIDE_TESTS_SUPPORT_HEAP_H
#define TIDE_TESTS_SUPPORT_HEAP_H

#include "base/buf.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static inline tide_buf heap_buf(size_t bytes_max)
{
    tide_buf buf;
    tide_buf_init(&buf, tide_mem_heap(), bytes_max);
    return buf;
}

/* A short text; it lasts until this thread has made 31 others. */
__attribute__((format(printf, 1, 2))) static inline const char *textf(const char *format, ...)
{
    enum { TEXTS = 32, TEXT_BYTES = 512 };
    static _Thread_local char texts[TEXTS][TEXT_BYTES];
    static _Thread_local unsigned next;
    char *text = texts[next++ % TEXTS];
    va_list args;
    va_start(args, format);
    const int bytes = vsnprintf(text, TEXT_BYTES, format, args);
    va_end(args);
    if (bytes < 0 || bytes >= TEXT_BYTES)
        abort();
    return text;
}

#endif
