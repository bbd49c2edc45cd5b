/* batch.h - any bytes as the answer to a batch, in either format (net/batch/format.h): the result does
 * not depend on how they are split, and a part begins before its bytes and ends after them.  The
 * first byte says how the text is split. */
#ifndef TIDE_FUZZ_BATCH_H
#define TIDE_FUZZ_BATCH_H

#include "fuzz.h"
#include "net/batch/format.h"

struct seen {
    bool open;
    uint64_t parts, whole, bytes, sum;
};

static tide_status on_part(void *arg, tide_text id, int http)
{
    struct seen *seen = arg;
    TIDE_ASSERT(!seen->open);
    seen->open = true;
    seen->parts++;
    seen->sum = seen->sum * 31 + id.bytes * 7 + (uint64_t)http;
    return TIDE_OK;
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct seen *seen = arg;
    TIDE_ASSERT(seen->open);
    seen->bytes += count;
    for (size_t i = 0; i < count; i++)
        seen->sum = seen->sum * 31 + (unsigned char)bytes[i];
    return TIDE_OK;
}

static tide_status on_end(void *arg, bool whole, const struct tide_header *headers,
                          size_t headers_count)
{
    (void)headers;
    (void)headers_count;
    struct seen *seen = arg;
    TIDE_ASSERT(seen->open);
    seen->open = false;
    seen->whole += whole ? 1 : 0;
    return TIDE_OK;
}

static tide_status read_all(const struct tide_batch_format *format, const char *type,
                            tide_text text, size_t step, struct seen *seen)
{
    const struct tide_batch_events events = {on_part, on_bytes, on_end, seen};
    void *reader = NULL;
    TIDE_ASSERT(format->reader_new(tide_text_of(type), &events, tide_mem_heap(), &reader, NULL) ==
                TIDE_OK);
    tide_status rc = TIDE_OK;
    for (size_t at = 0; rc == TIDE_OK && at < text.bytes; at += step)
        rc = format->reader_write(reader, text.data + at,
                                  text.bytes - at < step ? text.bytes - at : step);
    const tide_status ended = format->reader_end(reader, NULL);
    format->reader_free(reader);
    TIDE_ASSERT(!seen->open);
    return rc == TIDE_OK ? ended : rc;
}

static inline int fuzz_batch(const struct tide_batch_format *format, const char *type,
                             const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    const tide_text text = {(const char *)data + 1, bytes - 1};
    struct seen whole = {.parts = 0};
    struct seen cut = {.parts = 0};
    const tide_status rc = read_all(format, type, text, text.bytes + 1, &whole);
    TIDE_ASSERT(read_all(format, type, text, (size_t)data[0] % 17 + 1, &cut) == rc);
    if (rc == TIDE_OK)
        TIDE_ASSERT(whole.parts == cut.parts && whole.sum == cut.sum && whole.whole == cut.whole);
    return 0;
}

#endif
