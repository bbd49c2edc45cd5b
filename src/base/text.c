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
    bool negative = text.bytes > 0 && text.data[0] == '-';
    uint64_t size = 0;
    if (!tide_text_to_u64((tide_text){text.data + negative, text.bytes - negative}, &size))
        return false;
    if (size > (uint64_t)INT64_MAX)
        return false;
    *number_out = negative ? -(int64_t)size : (int64_t)size;
    return true;
}
