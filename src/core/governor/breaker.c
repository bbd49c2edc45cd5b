#include "core/governor/breaker.h"

#include "base/check.h"

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

void tide_breaker_rules_set(tide_breaker *breaker, const struct tide_breaker_rules *rules)
{
    breaker->rules = (struct tide_breaker_rules){
        .failures_max = or_default(rules->failures_max, 5),
        .pause_ms_first = or_default(rules->pause_ms_first, 1000),
        .pause_ms_max = or_default(rules->pause_ms_max, 300000),
        .pause_ms_soft_max = or_default(rules->pause_ms_soft_max, 8000),
    };
}

void tide_breaker_init(tide_breaker *breaker, const struct tide_breaker_rules *rules)
{
    *breaker = (tide_breaker){0};
    tide_breaker_rules_set(breaker, rules);
}

enum tide_breaker_state tide_breaker_state(const tide_breaker *breaker, uint64_t now_ms)
{
    if (breaker->why == TIDE_OK)
        return TIDE_BREAKER_CLOSED;
    return now_ms < breaker->until_ms ? TIDE_BREAKER_OPEN : TIDE_BREAKER_HALF_OPEN;
}

uint64_t tide_breaker_allows_at_ms(const tide_breaker *breaker, uint64_t now_ms)
{
    switch (tide_breaker_state(breaker, now_ms)) {
    case TIDE_BREAKER_OPEN:
        return breaker->until_ms;
    case TIDE_BREAKER_HALF_OPEN:
        return breaker->probe_out ? UINT64_MAX : now_ms;
    case TIDE_BREAKER_CLOSED:
        break;
    }
    return now_ms;
}

void tide_breaker_sent(tide_breaker *breaker, uint64_t now_ms)
{
    TIDE_ASSERT(tide_breaker_allows_at_ms(breaker, now_ms) == now_ms); /* BRK1 */
    breaker->calls++;
    breaker->probe_out = breaker->why != TIDE_OK;
}

/* Removes a call from the count. true: it was sent before the breaker last opened, so its result
 * is ignored.  `sent_ms` is trusted only while such calls are in flight, so that a wrong value
 * cannot lose the probe. */
static bool came_back_old(tide_breaker *breaker, uint64_t sent_ms)
{
    TIDE_ASSERT(breaker->calls > 0);
    const bool all_old = breaker->calls == breaker->calls_old;
    breaker->calls--;
    if (breaker->calls_old == 0 || (sent_ms > breaker->opened_ms && !all_old)) {
        breaker->probe_out = false;
        return false;
    }
    breaker->calls_old--;
    return true;
}

void tide_breaker_close(tide_breaker *breaker)
{
    breaker->failures = 0;
    breaker->trips = 0;
    breaker->why = TIDE_OK;
    breaker->until_ms = 0;
    breaker->probe_out = false;
}

void tide_breaker_open(tide_breaker *breaker, uint64_t now_ms, uint64_t until_ms, tide_status why)
{
    TIDE_ASSERT(why != TIDE_OK);
    breaker->why = why;
    breaker->opened_ms = now_ms;
    breaker->until_ms = until_ms > now_ms ? until_ms : now_ms + 1;
    breaker->failures = 0;
    breaker->probe_out = false;
    breaker->calls_old = breaker->calls;
    breaker->trips_total++;
}

/* Half of the pause is fixed, half is random, so that a thousand accounts that were paused
 * together do not resume together. */
static uint64_t pause_ms(const tide_breaker *breaker, uint32_t pause_ms_max, tide_rng *rng)
{
    const unsigned doublings = breaker->trips < 20 ? breaker->trips : 20;
    uint64_t pause = (uint64_t)breaker->rules.pause_ms_first << doublings;
    if (pause > pause_ms_max)
        pause = pause_ms_max;
    return pause / 2 + tide_rng_below(rng, pause - pause / 2) + 1;
}

void tide_breaker_succeeded(tide_breaker *breaker, uint64_t sent_ms)
{
    if (came_back_old(breaker, sent_ms))
        return;
    tide_breaker_close(breaker);
}

void tide_breaker_failed(tide_breaker *breaker, uint64_t now_ms, uint64_t sent_ms, tide_status why,
                         tide_rng *rng)
{
    if (came_back_old(breaker, sent_ms))
        return;
    const bool probe_failed = breaker->why != TIDE_OK;
    if (!probe_failed && ++breaker->failures < breaker->rules.failures_max)
        return;
    const uint64_t pause = pause_ms(breaker, breaker->rules.pause_ms_max, rng);
    breaker->trips++;
    tide_breaker_open(breaker, now_ms, now_ms + pause, why);
}

void tide_breaker_refused(tide_breaker *breaker, uint64_t now_ms, uint64_t sent_ms,
                          uint64_t named_ms, tide_status why, tide_rng *rng)
{
    if (came_back_old(breaker, sent_ms)) {
        if (named_ms <= now_ms || named_ms <= breaker->until_ms)
            return;
        TIDE_SEEN("breaker: an old call named a later time");
        tide_breaker_open(breaker, now_ms, named_ms, why);
        return;
    }
    const uint64_t pause = pause_ms(breaker, breaker->rules.pause_ms_soft_max, rng);
    breaker->trips++;
    tide_breaker_open(breaker, now_ms, named_ms > now_ms ? named_ms : now_ms + pause, why);
}

void tide_breaker_subject_succeeded(tide_breaker *breaker, uint64_t subject)
{
    breaker->successes++;
    for (unsigned i = 0; subject != 0 && i < TIDE_BREAKER_SUBJECTS; i++)
        if (breaker->failing[i].subject == subject)
            breaker->failing[i].subject = 0;
}

bool tide_breaker_subject_failed(tide_breaker *breaker, uint64_t subject)
{
    if (subject == 0)
        return false;
    for (unsigned i = 0; i < TIDE_BREAKER_SUBJECTS; i++)
        if (breaker->failing[i].subject == subject)
            return breaker->successes > breaker->failing[i].successes_at;
    breaker->failing[breaker->failing_next].subject = subject;
    breaker->failing[breaker->failing_next].successes_at = breaker->successes;
    breaker->failing_next = (breaker->failing_next + 1) % TIDE_BREAKER_SUBJECTS;
    return false;
}

void tide_breaker_unknown(tide_breaker *breaker, uint64_t sent_ms)
{
    (void)came_back_old(breaker, sent_ms);
}

void tide_breaker_unsent(tide_breaker *breaker)
{
    TIDE_ASSERT(breaker->calls > 0);
    if (breaker->calls == breaker->calls_old)
        breaker->calls_old--;
    else
        breaker->probe_out = false;
    breaker->calls--;
}

bool tide_breaker_check(const tide_breaker *breaker)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    if (breaker->calls_old > breaker->calls)
        return false;
    if (breaker->why == TIDE_OK)
        return breaker->until_ms == 0 && !breaker->probe_out;
    return breaker->calls - breaker->calls_old <= (breaker->probe_out ? 1u : 0u);
    /* GCOVR_EXCL_BR_STOP */
}
