#include "core/governor/lease.h"

#include "base/check.h"

bool tide_lease_covers(const tide_lease *lease, uint64_t units)
{
    return units <= lease->durable - lease->spent;
}

void tide_lease_spend(tide_lease *lease, uint64_t units)
{
    TIDE_ASSERT(tide_lease_covers(lease, units)); /* LSE1 */
    lease->spent += units;
}

void tide_lease_want(tide_lease *lease, uint64_t units)
{
    if (units > lease->wanted)
        lease->wanted = units;
}

uint64_t tide_lease_save_at_ms(const tide_lease *lease, uint64_t units, uint32_t every_ms)
{
    const uint64_t left = lease->promised - lease->spent;
    if (!lease->taken || left < units / 2 || (left < lease->wanted && left < units))
        return 0;
    /* A snapshot that never became durable is taken again. */
    if (left < units || lease->durable < lease->promised)
        return lease->taken_ms + every_ms;
    return UINT64_MAX;
}

uint64_t tide_lease_promise(tide_lease *lease, uint64_t now_ms, uint64_t units)
{
    /* A promise never shrinks: an older snapshot contains it (LSE2). */
    if (lease->promised < lease->spent + units)
        lease->promised = lease->spent + units;
    lease->taken = true;
    lease->taken_ms = now_ms;
    lease->wanted = 0;

    /* Two snapshots in one millisecond cannot be told apart later: the smaller promise counts.
     * Without a free entry the newest is replaced; the report that it is durable is ignored. */
    unsigned place = lease->open_count;
    if (place == 0 || lease->open[place - 1].at_ms != now_ms) {
        if (place == TIDE_SAVES_OPEN_MAX)
            place--;
        lease->open[place].at_ms = now_ms;
        lease->open[place].promised = lease->promised;
        lease->open_count = place + 1;
    }
    return lease->promised - lease->spent;
}

void tide_lease_saved(tide_lease *lease, uint64_t taken_ms)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < lease->open_count; i++) {
        if (lease->open[i].at_ms > taken_ms)
            lease->open[kept++] = lease->open[i];
        else if (lease->open[i].promised > lease->durable)
            lease->durable = lease->open[i].promised;
    }
    lease->open_count = kept;
}

bool tide_lease_check(const tide_lease *lease)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    return lease->spent <= lease->durable && lease->durable <= lease->promised &&
           lease->open_count <= TIDE_SAVES_OPEN_MAX;
    /* GCOVR_EXCL_BR_STOP */
}
