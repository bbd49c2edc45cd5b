#include "base/text.h"

bool tide_text_to_u64(tide_text text, uint64_t *number_out)
{
    uint64_t number = 0;
    if (text.bytes == 0)
        return false;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.data[i] - '0'), &number))
            return false;
    }
    *number_out = number;
    return true;
}

bool tide_text_to_i64(tide_text text, int64_t *number_out)
{
    uint64_t size = 0;
    if (text.bytes == 0) /* its data may be NULL, and NULL + n is undefined */
        return false;
    bool negative = text.data[0] == '-';
    if (!tide_text_to_u64((tide_text){text.data + negative, text.bytes - negative}, &size))
        return false;
    if (size > (uint64_t)INT64_MAX)
        return false;
    *number_out = negative ? -(int64_t)size : (int64_t)size;
    return true;
}

tide_text tide_text_word(tide_text *rest_io)
{
    const tide_text rest = *rest_io;
    const char *space = rest.bytes == 0 ? NULL : memchr(rest.data, ' ', rest.bytes);
    const size_t bytes = space == NULL ? rest.bytes : (size_t)(space - rest.data);
    *rest_io = space == NULL ? TIDE_TEXT_NONE : (tide_text){space + 1, rest.bytes - bytes - 1};
    return (tide_text){rest.data, bytes};
}

bool tide_text_number(tide_text *rest_io, uint64_t *number_out)
{
    return tide_text_to_u64(tide_text_word(rest_io), number_out);
}

tide_text tide_text_line(tide_text *rest_io)
{
    const tide_text rest = *rest_io;
    const char *end = rest.bytes == 0 ? NULL : memchr(rest.data, '\n', rest.bytes);
    const size_t bytes = end == NULL ? rest.bytes : (size_t)(end - rest.data);
    const size_t skipped = end == NULL ? bytes : bytes + 1;
    *rest_io = (tide_text){rest.data + skipped, rest.bytes - skipped};
    return (tide_text){rest.data, bytes};
}

enum { DISTANCE_BYTES_MAX = 64 };

/* One row of the table at a time; the row above is overwritten in place. */
size_t tide_text_distance(tide_text a, tide_text b)
{
    size_t row[DISTANCE_BYTES_MAX + 1];
    if (a.bytes > DISTANCE_BYTES_MAX || b.bytes > DISTANCE_BYTES_MAX)
        return a.bytes > b.bytes ? a.bytes : b.bytes;
    for (size_t j = 0; j <= b.bytes; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.bytes; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.bytes; j++) {
            size_t replaced = diagonal + (a.data[i - 1] != b.data[j - 1]);
            diagonal = row[j];
            size_t shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[b.bytes];
}
