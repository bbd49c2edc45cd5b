#include "cloudbox/gate/clock.h"

#include "base/check.h"

static uint64_t bounded(unsigned __int128 ms)
{
    return ms > BOX_CLOCK_MS_MAX ? BOX_CLOCK_MS_MAX : (uint64_t)ms;
}

void box_clock_init(struct box_clock *clock, uint64_t inside_ms, uint64_t outside_ms)
{
    inside_ms = bounded(inside_ms);
    *clock = (struct box_clock){.outside_ms = outside_ms,
                                .inside_ms = inside_ms,
                                .speed_permille = 1000,
                                .latest_ms = inside_ms};
}

uint64_t box_clock_at(struct box_clock *clock, uint64_t outside_ms)
{
    if (outside_ms > clock->outside_ms) {
        const unsigned __int128 passed =
            (unsigned __int128)(outside_ms - clock->outside_ms) * clock->speed_permille / 1000;
        const uint64_t inside_ms = bounded(clock->inside_ms + passed);
        if (inside_ms > clock->latest_ms)
            clock->latest_ms = inside_ms;
    }
    return clock->latest_ms;
}

void box_clock_set(struct box_clock *clock, uint64_t inside_ms, uint64_t outside_ms)
{
    const uint64_t now_ms = box_clock_at(clock, outside_ms);
    clock->inside_ms = bounded(inside_ms > now_ms ? inside_ms : now_ms);
    clock->outside_ms = outside_ms;
    clock->latest_ms = clock->inside_ms;
}

void box_clock_speed(struct box_clock *clock, uint32_t speed_permille, uint64_t outside_ms)
{
    box_clock_set(clock, 0, outside_ms);
    clock->speed_permille = speed_permille;
}

uint64_t box_clock_outside(const struct box_clock *clock, uint64_t inside_ms)
{
    if (inside_ms == UINT64_MAX || clock->speed_permille == 0)
        return UINT64_MAX;
    if (inside_ms <= clock->inside_ms)
        return clock->outside_ms;
    /* Rounded up: waking a little late is fine, a little early would spin. */
    const unsigned __int128 waits =
        ((unsigned __int128)(inside_ms - clock->inside_ms) * 1000 + clock->speed_permille - 1) /
        clock->speed_permille;
    return waits > UINT64_MAX / 2 ? UINT64_MAX : clock->outside_ms + (uint64_t)waits;
}
