#include "mail/slice.h"

#include "base/check.h"
#include "base/clocktext.h"

uint32_t tide_slice_days(uint64_t messages)
{
    if (messages < 20000)
        return 30;
    return messages > 500000 ? 1 : 7;
}

struct tide_slices tide_slices_plan(uint64_t floor_s, uint64_t oldest_s, uint64_t end_s,
                                    uint32_t days)
{
    TIDE_ASSERT(days > 0);
    if (oldest_s == 0)
        oldest_s = TIDE_GMAIL_BEGAN_S;
    if (oldest_s < floor_s)
        oldest_s = floor_s;
    struct tide_slices slices = {
        .floor_s = floor_s, .end_s = end_s, .step_s = (uint64_t)days * TIDE_DAY_S};
    const uint64_t span_s = end_s > oldest_s ? end_s - oldest_s : 0;
    while (span_s / slices.step_s + 1 > TIDE_SLICES_MAX)
        slices.step_s *= 2; /* SLC2 */
    slices.count = (size_t)(span_s / slices.step_s) + 1;
    slices.first_s = end_s - (uint64_t)(slices.count - 1) * slices.step_s;
    /* A floor at or after the end of the first slice makes that slice empty. */
    if (slices.count > 1 && slices.first_s <= floor_s) {
        slices.count--;
        slices.first_s += slices.step_s;
    }
    return slices;
}

struct tide_slice tide_slices_at(const struct tide_slices *slices, size_t index)
{
    TIDE_ASSERT(index < slices->count);
    const uint64_t before_s = slices->first_s + (uint64_t)index * slices->step_s;
    return (struct tide_slice){index == 0 ? slices->floor_s : before_s - slices->step_s, before_s};
}

bool tide_slice_halves(struct tide_slice span, uint64_t now_s, struct tide_slice halves_out[2])
{
    const uint64_t low_s = span.after_s < TIDE_GMAIL_BEGAN_S ? TIDE_GMAIL_BEGAN_S : span.after_s;
    const uint64_t high_s = span.before_s == 0 ? now_s : span.before_s;
    if (high_s < low_s + 2)
        return false;
    const uint64_t middle_s = low_s + (high_s - low_s) / 2;
    halves_out[0] = (struct tide_slice){span.after_s, middle_s};
    halves_out[1] = (struct tide_slice){middle_s, span.before_s};
    return true; /* SLC3 */
}

uint32_t tide_slice_fetch_ids(uint64_t window_units, uint64_t window_ms, uint32_t call_units)
{
    enum { JOB_MS = 10000, IDS_MAX = 300 };
    TIDE_ASSERT(window_ms > 0 && call_units > 0);
    if (window_units == 0 || window_units >= UINT64_MAX / JOB_MS)
        return IDS_MAX;
    const uint64_t ids = window_units * JOB_MS / window_ms / call_units;
    if (ids == 0)
        return 1;
    return ids > IDS_MAX ? IDS_MAX : (uint32_t)ids;
}

bool tide_slice_is_slow(uint64_t messages, uint64_t window_units, uint64_t window_ms,
                        uint32_t call_units)
{
    enum { SLOW_MS = 5 * 60 * 1000 };
    TIDE_ASSERT(window_ms > 0 && call_units > 0);
    if (window_units == 0 || window_units >= UINT64_MAX / SLOW_MS)
        return false;
    return messages > window_units * SLOW_MS / window_ms / call_units;
}

static bool parse_age(tide_text text, uint64_t *age_ms_out)
{
    static const struct {
        char unit;
        uint64_t days;
    } units[] = {{'d', 1}, {'w', 7}, {'m', 30}, {'y', 365}};
    uint64_t number = 0;
    if (text.bytes < 2 || text.bytes > 6 ||
        !tide_text_to_u64((tide_text){text.data, text.bytes - 1}, &number) || number == 0)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (text.data[text.bytes - 1] != units[i].unit)
            continue;
        *age_ms_out = number * units[i].days * TIDE_DAY_S * 1000;
        return true;
    }
    return false;
}

bool tide_since_parse(tide_text text, uint64_t now_ms, uint64_t *since_ms_out)
{
    uint64_t ms = 0;
    char date[11] = "0000-01-01";
    if (parse_age(text, &ms)) {
        if (ms >= now_ms)
            return false;
        *since_ms_out = now_ms - ms;
        return true;
    }
    if (text.bytes != 4 && text.bytes != 7 && text.bytes != 10)
        return false;
    memcpy(date, text.data, text.bytes);
    if (!tide_time_parse((tide_text){date, 10}, &ms) || ms == 0 || ms >= now_ms)
        return false;
    *since_ms_out = ms;
    return true;
}
