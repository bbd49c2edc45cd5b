/* value.h - the values of a statement's parameters, as arguments of one call.
 *
 * TIDE_VALUES(x, ...) makes an array of its arguments and passes it with its count.  A number, a
 * string or a tide_text becomes a value by its type; a tide_value (NULL, a blob) stays.  The first
 * one names the statement, so that values[1] is the parameter ?1. */
#ifndef TIDE_DB_VALUE_H
#define TIDE_DB_VALUE_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tide_value {
    enum { TIDE_VALUE_NULL, TIDE_VALUE_NUMBER, TIDE_VALUE_TEXT, TIDE_VALUE_BLOB } type;
    int64_t number; /* of a u64 the same 64 bits */
    tide_text text;
} tide_value;

static inline tide_value tide_value_or_null(tide_text text)
{
    return (tide_value){text.bytes > 0 ? TIDE_VALUE_TEXT : TIDE_VALUE_NULL, 0, text};
}
static inline tide_value tide_value_if(bool known, uint64_t number) /* false: NULL */
{
    return (tide_value){known ? TIDE_VALUE_NUMBER : TIDE_VALUE_NULL, (int64_t)number,
                        TIDE_TEXT_NONE};
}
static inline tide_value tide_value_bytes(const void *bytes, size_t count)
{
    return (tide_value){TIDE_VALUE_BLOB, 0, {bytes, count}};
}

static inline tide_value tide_value_itself(tide_value value)
{
    return value;
}
static inline tide_value tide_value_text(tide_text text)
{
    return (tide_value){TIDE_VALUE_TEXT, 0, text};
}
static inline tide_value tide_value_string(const char *string)
{
    return tide_value_text(tide_text_of(string));
}
static inline tide_value tide_value_i64(int64_t number)
{
    return (tide_value){TIDE_VALUE_NUMBER, number, TIDE_TEXT_NONE};
}
static inline tide_value tide_value_u64(uint64_t number)
{
    return tide_value_i64((int64_t)number);
}
/* clang-format off */
#define TIDE_VALUE(x)                                                                         \
    _Generic((x), tide_value: tide_value_itself, tide_text: tide_value_text,               \
             char *: tide_value_string, const char *: tide_value_string,                       \
             int: tide_value_i64, long: tide_value_i64, long long: tide_value_i64,           \
             default: tide_value_u64)(x)
#define TIDE_VALUE_1(x)       TIDE_VALUE(x)
#define TIDE_VALUE_2(x, ...)  TIDE_VALUE(x), TIDE_VALUE_1(__VA_ARGS__)
#define TIDE_VALUE_3(x, ...)  TIDE_VALUE(x), TIDE_VALUE_2(__VA_ARGS__)
#define TIDE_VALUE_4(x, ...)  TIDE_VALUE(x), TIDE_VALUE_3(__VA_ARGS__)
#define TIDE_VALUE_5(x, ...)  TIDE_VALUE(x), TIDE_VALUE_4(__VA_ARGS__)
#define TIDE_VALUE_6(x, ...)  TIDE_VALUE(x), TIDE_VALUE_5(__VA_ARGS__)
#define TIDE_VALUE_7(x, ...)  TIDE_VALUE(x), TIDE_VALUE_6(__VA_ARGS__)
#define TIDE_VALUE_8(x, ...)  TIDE_VALUE(x), TIDE_VALUE_7(__VA_ARGS__)
#define TIDE_VALUE_9(x, ...)  TIDE_VALUE(x), TIDE_VALUE_8(__VA_ARGS__)
#define TIDE_VALUE_10(x, ...) TIDE_VALUE(x), TIDE_VALUE_9(__VA_ARGS__)
#define TIDE_VALUE_11(x, ...) TIDE_VALUE(x), TIDE_VALUE_10(__VA_ARGS__)
#define TIDE_VALUE_12(x, ...) TIDE_VALUE(x), TIDE_VALUE_11(__VA_ARGS__)
#define TIDE_VALUE_PICK(a, b, c, d, e, f, g, h, i, j, k, l, name, ...) name
#define TIDE_VALUE_LIST(...)                                                                        \
    TIDE_VALUE_PICK(__VA_ARGS__, TIDE_VALUE_12, TIDE_VALUE_11, TIDE_VALUE_10, TIDE_VALUE_9,         \
                   TIDE_VALUE_8, TIDE_VALUE_7, TIDE_VALUE_6, TIDE_VALUE_5, TIDE_VALUE_4,           \
                   TIDE_VALUE_3, TIDE_VALUE_2, TIDE_VALUE_1, 0)(__VA_ARGS__)
#define TIDE_VALUES(...)                                                                      \
    (const tide_value[]){TIDE_VALUE_LIST(__VA_ARGS__)},                                        \
        sizeof((const tide_value[]){TIDE_VALUE_LIST(__VA_ARGS__)}) / sizeof(tide_value)
/* clang-format on */

#endif
