#include "core/governor/window.h"

#include "base/check.h"

#include <string.h>

enum { GRAINS_PER_WINDOW = 768 };
/* With this cap a full snapshot cannot overflow the sums. */
#define SAVED_UNITS_MAX (UINT64_MAX >> 16)

static_assert(GRAINS_PER_WINDOW * 5 / 4 < TIDE_WINDOW_ENTRIES,
              "a window and a quarter fits without merging: unanswered calls expire later");
static_assert((TIDE_WINDOW_ENTRIES & (TIDE_WINDOW_ENTRIES - 1)) == 0, "the ring wraps by mask");

static struct tide_window_entry *entry_at(const tide_window *window, uint32_t index)
{
    return &window->entries[(window->head + index) & (TIDE_WINDOW_ENTRIES - 1)];
}

tide_status tide_window_init(tide_window *window, uint64_t window_ms, tide_mem *mem)
{
    TIDE_ASSERT(window_ms > 0);
    struct tide_window_entry *entries =
        tide_mem_array(mem, TIDE_WINDOW_ENTRIES, sizeof *window->entries);
    if (entries == NULL)
        return TIDE_NO_MEMORY;
    *window = (tide_window){
        .mem = mem,
        .entries = entries,
        .window_ms = window_ms,
        .grain_ms = (window_ms + GRAINS_PER_WINDOW - 1) / GRAINS_PER_WINDOW,
    };
    return TIDE_OK;
}

void tide_window_done(tide_window *window)
{
    if (window->entries == NULL)
        return;
    tide_mem_free(window->mem, window->entries, TIDE_WINDOW_ENTRIES * sizeof *window->entries);
    *window = (tide_window){0};
}

static void forget_expired(tide_window *window, uint64_t now_ms)
{
    while (window->count > 0 && entry_at(window, 0)->expires_ms <= now_ms) {
        TIDE_ASSERT(window->held >= entry_at(window, 0)->units);
        window->held -= entry_at(window, 0)->units;
        window->head = (window->head + 1) & (TIDE_WINDOW_ENTRIES - 1);
        window->count--;
    }
}

/* Queues units so that they expire at `expires_ms` or later.  Answers arrive roughly in order of
 * time, so the walk from the tail is short. */
static void hold_until(tide_window *window, uint64_t expires_ms, uint64_t units)
{
    uint32_t index = window->count; /* of the first entry that expires later */
    while (index > 0 && entry_at(window, index - 1)->expires_ms > expires_ms)
        index--;

    window->held += units;
    if (index > 0 && entry_at(window, index - 1)->expires_ms == expires_ms) {
        entry_at(window, index - 1)->units += units;
        return;
    }
    if (window->count == TIDE_WINDOW_ENTRIES) {
        /* Full: merge into a later entry, or move the last one later. */
        TIDE_SEEN("window: merged for want of entries");
        struct tide_window_entry *later =
            entry_at(window, index < window->count ? index : index - 1);
        if (later->expires_ms < expires_ms)
            later->expires_ms = expires_ms;
        later->units += units;
        return;
    }
    for (uint32_t i = window->count; i > index; i--)
        *entry_at(window, i) = *entry_at(window, i - 1);
    window->count++;
    *entry_at(window, index) = (struct tide_window_entry){expires_ms, units};
}

void tide_window_send(tide_window *window, uint64_t now_ms, uint64_t units)
{
    forget_expired(window, now_ms);
    window->in_flight += units;
}

/* The first grain that begins after counted_ms + W.  Strictly after: a clock in whole
 * milliseconds may be up to one behind. */
static uint64_t expiry(const tide_window *window, uint64_t counted_ms)
{
    return ((counted_ms + window->window_ms) / window->grain_ms + 1) * window->grain_ms;
}

void tide_window_unanswered(tide_window *window, uint64_t now_ms, uint64_t counted_by_ms,
                            uint64_t units)
{
    TIDE_ASSERT(units <= window->in_flight);
    TIDE_ASSERT(counted_by_ms >= now_ms);
    forget_expired(window, now_ms);
    window->in_flight -= units;
    if (units > 0)
        hold_until(window, expiry(window, counted_by_ms), units);
}

void tide_window_received(tide_window *window, uint64_t now_ms, uint64_t units)
{
    tide_window_unanswered(window, now_ms, now_ms, units);
}

void tide_window_unsend(tide_window *window, uint64_t units)
{
    TIDE_ASSERT(units <= window->in_flight);
    window->in_flight -= units;
}

uint64_t tide_window_used(const tide_window *window, uint64_t now_ms)
{
    uint64_t used = window->held + window->in_flight;
    for (uint32_t i = 0; i < window->count && entry_at(window, i)->expires_ms <= now_ms; i++)
        used -= entry_at(window, i)->units;
    return used;
}

uint64_t tide_window_frees_at_ms(const tide_window *window, uint64_t now_ms, uint64_t units,
                                 uint64_t limit)
{
    if (units > limit)
        return UINT64_MAX;
    const uint64_t used_max = limit - units;
    uint64_t used = window->held + window->in_flight;
    uint64_t at_ms = now_ms;

    for (uint32_t i = 0; used > used_max; i++) {
        if (i == window->count)
            return UINT64_MAX;
        const struct tide_window_entry *entry = entry_at(window, i);
        used -= entry->units;
        if (entry->expires_ms > at_ms)
            at_ms = entry->expires_ms;
    }
    return at_ms;
}

/* Neighbours are merged at the later expiry, so that a restored window holds everything at least
 * as long as the saved one did. */
void tide_window_save(const tide_window *window, uint64_t now_ms, uint64_t now_unix_ms,
                      struct tide_window_saved *saved_out)
{
    *saved_out = (struct tide_window_saved){.in_flight = window->in_flight};
    uint32_t first = 0;
    while (first < window->count && entry_at(window, first)->expires_ms <= now_ms)
        first++;

    const uint32_t live = window->count - first;
    const uint32_t per_entry = (live + TIDE_WINDOW_SAVED_MAX - 1) / TIDE_WINDOW_SAVED_MAX;
    for (uint32_t i = 0; i < live; i++) {
        const struct tide_window_entry *entry = entry_at(window, first + i);
        const uint32_t to = i / per_entry;
        saved_out->entries[to].units += entry->units;
        saved_out->entries[to].expires_unix_ms = now_unix_ms + (entry->expires_ms - now_ms);
        saved_out->count = to + 1;
    }
}

bool tide_window_saved_is_valid(const struct tide_window_saved *saved)
{
    if (saved->count > TIDE_WINDOW_SAVED_MAX || saved->in_flight > SAVED_UNITS_MAX)
        return false;
    for (uint32_t i = 0; i < saved->count; i++) {
        if (saved->entries[i].units == 0 || saved->entries[i].units > SAVED_UNITS_MAX)
            return false;
        if (i > 0 && saved->entries[i].expires_unix_ms <= saved->entries[i - 1].expires_unix_ms)
            return false;
    }
    return true;
}

void tide_window_restore(tide_window *window, const struct tide_window_saved *saved,
                         uint64_t now_ms, uint64_t now_unix_ms, uint64_t counted_by_ms)
{
    TIDE_ASSERT(counted_by_ms >= now_ms);
    TIDE_ASSERT(tide_window_saved_is_valid(saved));
    /* A wall clock set back must not block the account for years: no charge lasts longer than
     * one the provider counts at the last possible moment. */
    const uint64_t latest_ms = expiry(window, counted_by_ms);
    forget_expired(window, now_ms);
    for (uint32_t i = 0; i < saved->count; i++) {
        const uint64_t expires_unix_ms = saved->entries[i].expires_unix_ms;
        if (expires_unix_ms <= now_unix_ms)
            continue;
        uint64_t expires_ms = latest_ms;
        if (expires_unix_ms - now_unix_ms < latest_ms - now_ms)
            expires_ms = now_ms + (expires_unix_ms - now_unix_ms);
        expires_ms = (expires_ms + window->grain_ms - 1) / window->grain_ms * window->grain_ms;
        hold_until(window, expires_ms, saved->entries[i].units);
    }
    if (saved->in_flight > 0)
        hold_until(window, latest_ms, saved->in_flight);
}

bool tide_window_check(const tide_window *window)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    uint64_t sum = 0;
    if (window->count > TIDE_WINDOW_ENTRIES)
        return false;
    for (uint32_t i = 0; i < window->count; i++) {
        if (entry_at(window, i)->units == 0)
            return false;
        if (i > 0 && entry_at(window, i)->expires_ms <= entry_at(window, i - 1)->expires_ms)
            return false;
        sum += entry_at(window, i)->units;
    }
    return sum == window->held;
    /* GCOVR_EXCL_BR_STOP */
}
