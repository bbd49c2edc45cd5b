/* heap.h - values on the process heap, ready for use. */
#ifndef TIDE_TESTS_SUPPORT_HEAP_H
#define TIDE_TESTS_SUPPORT_HEAP_H

#include "base/buf.h"
#include "base/mem.h"

static inline tide_buf heap_buf(size_t bytes_max)
{
    tide_buf buf;
    tide_buf_init(&buf, tide_mem_heap(), bytes_max);
    return buf;
}

#endif
