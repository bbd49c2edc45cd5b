/* searchconsole_rows.c - any bytes as an answer of search analytics (GSR1, LST2): the result does
 * not depend on how they are split, and accepted text is JSON to the library too.  The first
 * byte says how the text is split. */
#include "fuzz.h"
#include "cloud/searchconsole_rows.h"

#include <math.h>

struct seen {
    uint64_t rows, sum;
};

static tide_status take(const struct tide_sc_row *row, void *arg)
{
    struct seen *seen = arg;
    seen->rows++;
    for (int d = 0; d < TIDE_SC_DIMENSIONS; d++)
        for (size_t i = 0; i < row->keys[d].bytes; i++)
            seen->sum = seen->sum * 31 + (unsigned char)row->keys[d].data[i];
    TIDE_ASSERT(isfinite(row->clicks) && isfinite(row->impressions));
    return TIDE_OK;
}

static tide_status extract(tide_text text, size_t step, struct seen *seen)
{
    const struct tide_sc_sink sink = {take, NULL, seen};
    struct tide_sc_rows rows;
    struct tide_sc_page page;
    tide_sc_rows_init(&rows, 1u << TIDE_SC_QUERY | 1u << TIDE_SC_PAGE, &sink, tide_mem_heap());
    tide_status rc = TIDE_OK;
    for (size_t at = 0; rc == TIDE_OK && at < text.bytes; at += step)
        rc = tide_sc_rows_write(&rows, text.data + at,
                                text.bytes - at < step ? text.bytes - at : step);
    const tide_status ended = tide_sc_rows_end(&rows, &page, NULL);
    tide_sc_rows_done(&rows);
    return rc == TIDE_OK ? ended : rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    const tide_text text = {(const char *)data + 1, bytes - 1};
    struct seen whole = {.rows = 0};
    struct seen cut = {.rows = 0};
    json_error_t error;
    const tide_status rc = extract(text, text.bytes + 1, &whole);
    TIDE_ASSERT(extract(text, (size_t)data[0] % 17 + 1, &cut) == rc);
    if (rc != TIDE_OK)
        return 0;
    TIDE_ASSERT(whole.rows == cut.rows && whole.sum == cut.sum);
    json_t *value =
        json_loadb(text.data, text.bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    TIDE_ASSERT(json_is_object(value));
    json_decref(value);
    return 0;
}
