#include "reader/pace.h"

#include <stddef.h>

const char *tide_reader_state_name(tide_reader_state state)
{
    static const char *const names[] = {"initial", "active", "passive"};
    return names[state];
}

tide_reader_state tide_pace_state(const struct tide_pace *pace)
{
    if (pace->initial)
        return TIDE_READER_INITIAL;
    return pace->watched ? TIDE_READER_ACTIVE : TIDE_READER_PASSIVE;
}

static uint64_t next_of(uint64_t last_ms, uint64_t period_ms)
{
    return last_ms == 0 ? 0 : last_ms + period_ms;
}

struct tide_pace_due tide_pace_look(const struct tide_pace *pace, uint64_t now_ms)
{
    const uint64_t period_ms =
        pace->watched && !pace->saving ? pace->active_ms : pace->passive_ms; /* PCE3 */
    const uint64_t poll_ms = next_of(pace->polled_ms, period_ms);
    const uint64_t folders_ms = next_of(pace->folders_ms, TIDE_READER_FOLDERS_MS);
    struct tide_pace_due due = {.poll = poll_ms <= now_ms, .folders = folders_ms <= now_ms};
    const uint64_t poll_next_ms = due.poll ? now_ms + period_ms : poll_ms;
    const uint64_t folders_next_ms = due.folders ? now_ms + TIDE_READER_FOLDERS_MS : folders_ms;
    due.wake_ms = poll_next_ms < folders_next_ms ? poll_next_ms : folders_next_ms;
    return due;
}
