/* scale.h - scales the rounds of a test: TIDE_TEST_SCALE is a percentage.  The long run uses 100,
 * sanitized builds less (script/run-tests). */
#ifndef TIDE_TESTS_SUPPORT_SCALE_H
#define TIDE_TESTS_SUPPORT_SCALE_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t scale_percent(void)
{
    const char *text = getenv("TIDE_TEST_SCALE");
    const uint64_t percent = text == NULL ? 100 : strtoull(text, NULL, 10);
    return percent == 0 ? 100 : percent;
}

static inline uint64_t scaled_at_least(uint64_t count, uint64_t least)
{
    const uint64_t some = count * scale_percent() / 100;
    return some < least ? least : some;
}

static inline uint64_t scaled(uint64_t count)
{
    return scaled_at_least(count, 1);
}

#endif
