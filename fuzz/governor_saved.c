/* governor_saved.c - a governor's saved state, read back (E4.3b).  The text is damaged in any
 * way; text that parses prints unchanged, and text that restores leaves a governor that keeps
 * its invariants while it is used. */
#include "fuzz.h"
#include "core/governor/governor.h"
#include "engine/providers.h"

enum { NOW_MS = 100000, NOW_UNIX_MS = 1700000000 };

static void use(tide_governor *governor)
{
    tide_rng rng = tide_rng_seeded(1);
    uint64_t now_ms = NOW_MS, again_ms = 0;
    for (int i = 0; i < 8; i++) {
        tide_status rc = tide_governor_charge(governor, now_ms, 1 + (unsigned)i % 4, 5, &again_ms);
        if (rc == TIDE_OK) {
            struct tide_answer answer = {.units = 5, .latency_ms = 10, .http = 200};
            tide_governor_answered(governor, now_ms + 10, &answer, &rng);
        }
        TIDE_ASSERT(tide_governor_check(governor, now_ms + 10));
        now_ms += 1000;
        struct tide_governor_saved saved;
        tide_governor_save(governor, now_ms, NOW_UNIX_MS + now_ms, &saved);
        tide_governor_saved(governor, now_ms);
        (void)tide_governor_wake_at_ms(governor, now_ms);
        (void)tide_governor_jobs_max(governor, now_ms);
    }
    struct tide_governor_view view;
    tide_governor_view(governor, now_ms, &view);
}

static void restore(const char *profile, const struct tide_governor_saved *saved)
{
    tide_governor *governor = NULL;
    TIDE_ASSERT(tide_governor_new(&tide_provider_known(profile)->profile, NOW_MS, tide_mem_heap(),
                                  &governor) == TIDE_OK);
    tide_status rc = tide_governor_restore(governor, saved, NOW_MS, NOW_UNIX_MS);
    TIDE_ASSERT(rc == TIDE_OK || rc == TIDE_CORRUPT);
    TIDE_ASSERT(tide_governor_check(governor, NOW_MS));
    use(governor);
    tide_governor_free(governor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tide_governor_saved saved, again;
    tide_text text = {(const char *)data, bytes};
    if (tide_governor_saved_parse(text, &saved) != TIDE_OK)
        return 0;
    tide_buf printed;
    tide_buf_init(&printed, tide_mem_heap(), 64 << 10);
    TIDE_ASSERT(tide_governor_saved_print(&saved, &printed) == TIDE_OK);
    TIDE_ASSERT(tide_governor_saved_parse(tide_buf_text(&printed), &again) == TIDE_OK);
    TIDE_ASSERT(saved.at_unix_ms == again.at_unix_ms && saved.at_ms == again.at_ms);
    TIDE_ASSERT(saved.paused_why == again.paused_why);
    TIDE_ASSERT(saved.window.count == again.window.count && saved.day.count == again.day.count);
    tide_buf_done(&printed);
    restore("gmail", &saved);
    restore("console", &saved);
    restore("default", &saved);
    return 0;
}
