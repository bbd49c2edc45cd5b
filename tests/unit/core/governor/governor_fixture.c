#include "governor_fixture.h"
#include "support/scale.h"
#include "support/ok.h"

const struct tide_governor_profile *profile_named(const char *name)
{
    const struct tide_provider_limits *known = tide_provider_known(name);
    return known == NULL ? NULL : &known->profile;
}

tide_governor *governor_of(const struct tide_governor_profile *profile, uint64_t now_ms)
{
    tide_governor *governor = NULL;
    OK(tide_governor_new(profile, now_ms, tide_mem_heap(), &governor));
    return governor;
}

void save_now(tide_governor *governor, uint64_t now_ms)
{
    struct tide_governor_saved saved;
    tide_governor_save(governor, now_ms, now_ms, &saved);
    tide_governor_saved(governor, now_ms);
}

struct tide_governor_view view_of(const tide_governor *governor, uint64_t now_ms)
{
    struct tide_governor_view view;
    tide_governor_view(governor, now_ms, &view);
    return view;
}

tide_status charge(tide_governor *governor, uint64_t now_ms, uint32_t units)
{
    uint64_t again_ms = 0;
    return tide_governor_charge(governor, now_ms, 4, units, &again_ms);
}

void answer(tide_governor *governor, uint64_t now_ms, uint32_t units, tide_status status,
            uint64_t retry_after_ms)
{
    tide_rng rng = tide_rng_seeded(now_ms);
    const struct tide_answer fact = {
        .units = units,
        .latency_ms = 10,
        .status = status,
        .http = status == TIDE_OK ? 200 : 429,
        .retry_after_ms = retry_after_ms,
    };
    tide_governor_answered(governor, now_ms, &fact, &rng);
}

uint64_t run_well(tide_governor *governor, uint64_t now_ms, uint64_t for_ms, uint64_t every_ms,
                  uint32_t units)
{
    for (const uint64_t end_ms = now_ms + for_ms; now_ms < end_ms; now_ms += every_ms)
        if (charge(governor, now_ms, units) == TIDE_OK)
            answer(governor, now_ms + 10, units, TIDE_OK, 0);
    return now_ms;
}
