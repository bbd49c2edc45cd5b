/* governor_fixture.h - what every file of the governor's tests needs. */
#ifndef TIDE_TESTS_GOVERNOR_FIXTURE_H
#define TIDE_TESTS_GOVERNOR_FIXTURE_H

#include "base/check.h"
#include "core/governor/governor.h"
#include "engine/providers.h"
#include "support/scale.h"
#include "support/test.h"

/* What is known of a provider: "gmail", "default" (engine/providers.c). */
const struct tide_governor_profile *profile_named(const char *name);
tide_governor *governor_of(const struct tide_governor_profile *profile, uint64_t now_ms);
#define CASE(name, profile, now_ms)                                                                \
    TEST_OF(name, tide_governor *governor, governor_of(profile_named(profile), now_ms),            \
            tide_governor_free)
void save_now(tide_governor *governor, uint64_t now_ms);
struct tide_governor_view view_of(const tide_governor *governor, uint64_t now_ms);
tide_status charge(tide_governor *governor, uint64_t now_ms, uint32_t units);
void answer(tide_governor *governor, uint64_t now_ms, uint32_t units, tide_status status,
            uint64_t retry_after_ms);
/* One call every `every_ms` for a while, all well. */
uint64_t run_well(tide_governor *governor, uint64_t now_ms, uint64_t for_ms, uint64_t every_ms,
                  uint32_t units);

#endif
