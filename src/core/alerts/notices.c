#include "core/alerts/notices.h"

#include "base/check.h"

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static enum tide_notice_kind wanted(const struct tide_alerts_settings *settings,
                                    const struct tide_notice_state *state, int level)
{
    if (level > state->told)
        return TIDE_NOTICE_RAISED;
    if (level == 0)
        return state->told > 0 ? TIDE_NOTICE_CLEAR : TIDE_NOTICE_NONE;
    return settings->notify_still_ms > 0 ? TIDE_NOTICE_STILL : TIDE_NOTICE_NONE;
}

/* The earliest time for the next notice (NTC1). */
static uint64_t allowed_at(const struct tide_alerts_settings *settings,
                           const struct tide_notice_state *state, uint64_t now_unix_ms)
{
    uint64_t last_unix_ms = state->sent_unix_ms;
    if (tide_alerts_may_notify(settings, now_unix_ms, &last_unix_ms))
        return now_unix_ms;
    return last_unix_ms + settings->notify_every_ms;
}

struct tide_notice_order tide_notice_next(const struct tide_alerts_settings *settings,
                                          const struct tide_notice_state *state, int level,
                                          uint64_t now_unix_ms)
{
    struct tide_notice_order order = {TIDE_NOTICE_NONE, false, UINT64_MAX};
    if (state->in_flight) {
        order.again = true;
        order.at_unix_ms = later(state->taken_until_unix_ms, state->retry_unix_ms);
        order.kind = TIDE_NOTICE_RAISED; /* whichever it was: the ledger has it */
        return order;
    }
    order.kind = wanted(settings, state, level);
    if (order.kind == TIDE_NOTICE_NONE)
        return order;
    order.at_unix_ms = allowed_at(settings, state, now_unix_ms);
    if (order.kind == TIDE_NOTICE_STILL)
        order.at_unix_ms = later(order.at_unix_ms, state->sent_unix_ms + settings->notify_still_ms);
    order.at_unix_ms = later(order.at_unix_ms, state->retry_unix_ms);
    return order;
}

/* Whether it was moved back. */
static bool not_after(uint64_t *unix_ms_io, uint64_t latest_unix_ms)
{
    if (*unix_ms_io <= latest_unix_ms)
        return false;
    *unix_ms_io = latest_unix_ms;
    return true;
}

bool tide_notice_settle(const struct tide_alerts_settings *settings,
                        struct tide_notice_state *state, int level, uint64_t now_unix_ms)
{
    bool changed = false;
    if (level == 0 && state->told > 0 && state->ended_unix_ms == 0) {
        state->ended_unix_ms = now_unix_ms;
        changed = true;
    }
    if (level > 0 && state->ended_unix_ms != 0) {
        state->ended_unix_ms = 0;
        changed = true;
    }
    if (!state->in_flight && state->failures > 0 &&
        (wanted(settings, state, level) == TIDE_NOTICE_NONE)) {
        state->failures = 0;
        state->retry_unix_ms = 0;
        changed = true;
    }
    changed = not_after(&state->sent_unix_ms, now_unix_ms) || changed;
    return not_after(&state->retry_unix_ms, now_unix_ms + TIDE_NOTICE_RETRY_MAX_MS) || changed;
}

static uint64_t pause_ms(uint32_t failures)
{
    uint64_t pause = TIDE_NOTICE_RETRY_FIRST_MS;
    for (uint32_t i = 1; i < failures && pause < TIDE_NOTICE_RETRY_MAX_MS; i++)
        pause *= 2;
    return pause < TIDE_NOTICE_RETRY_MAX_MS ? pause : TIDE_NOTICE_RETRY_MAX_MS;
}

void tide_notice_ended(struct tide_notice_state *state, int level, bool again,
                       enum tide_notice_end end, uint64_t now_unix_ms)
{
    TIDE_ASSERT(level >= 0 && level <= 2);
    state->taken_until_unix_ms = 0;
    state->in_flight = end == TIDE_NOTICE_UNKNOWN || (again && end != TIDE_NOTICE_SENT);
    if (end == TIDE_NOTICE_SENT) {
        state->told = level;
        state->sent_unix_ms = now_unix_ms;
        state->failures = 0;
        state->retry_unix_ms = 0;
        if (level == 0)
            state->ended_unix_ms = 0;
        return;
    }
    if (state->failures < UINT32_MAX)
        state->failures++;
    if (end == TIDE_NOTICE_FINAL && state->failures < TIDE_NOTICE_FAILURES_TOLD)
        state->failures = TIDE_NOTICE_FAILURES_TOLD;
    state->retry_unix_ms =
        now_unix_ms +
        (end == TIDE_NOTICE_FINAL ? (uint64_t)TIDE_NOTICE_RETRY_MAX_MS : pause_ms(state->failures));
}
