#include "mail/slice.h"

#include "base/check.h"

uint32_t tide_slice_days(uint64_t messages)
{
    if (messages < 20000)
        return 30;
    return messages > 500000 ? 1 : 7;
}

struct tide_slices tide_slices_plan(uint64_t oldest_s, uint64_t end_s, uint32_t days)
{
    TIDE_ASSERT(days > 0);
    if (oldest_s == 0)
        oldest_s = TIDE_GMAIL_BEGAN_S;
    struct tide_slices slices = {.end_s = end_s, .step_s = (uint64_t)days * TIDE_DAY_S};
    const uint64_t span_s = end_s > oldest_s ? end_s - oldest_s : 0;
    while (span_s / slices.step_s + 1 > TIDE_SLICES_MAX)
        slices.step_s *= 2; /* S2 */
    slices.count = (size_t)(span_s / slices.step_s) + 1;
    slices.first_s = end_s - (uint64_t)(slices.count - 1) * slices.step_s;
    return slices;
}

struct tide_slice tide_slices_at(const struct tide_slices *slices, size_t index)
{
    TIDE_ASSERT(index < slices->count);
    const uint64_t before_s = slices->first_s + (uint64_t)index * slices->step_s;
    return (struct tide_slice){index == 0 ? 0 : before_s - slices->step_s, before_s};
}
