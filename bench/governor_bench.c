/* governor_bench.c - measures the cost of a decision and the share of the quota used.  One JSON
 * object a line. */
#include "bench.h"

#include "engine/providers.h"
#include "unit/core/referee.h"

static void decision_cost(void)
{
    struct tide_governor_profile profile = tide_provider_known("gmail")->profile;
    profile.window_units_max = 4000000000u; /* so large that every call is admitted */
    tide_governor *governor = NULL;
    if (tide_governor_new(&profile, 0, tide_mem_heap(), &governor) != TIDE_OK)
        return;
    tide_rng rng = tide_rng_seeded(1);
    enum { ROUNDS = 2000000 };
    uint64_t now_ms = 1;
    uint64_t again_ms = 0;
    uint64_t charged = 0;
    struct tide_governor_saved saved;
    const double start_ns = now_s() * 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        now_ms += (uint64_t)(i & 1);
        if (tide_governor_save_due(governor, now_ms)) {
            tide_governor_save(governor, now_ms, now_ms, &saved);
            tide_governor_saved(governor, now_ms);
        }
        if (tide_governor_charge(governor, now_ms, 4, 20, &again_ms) == TIDE_OK) {
            const struct tide_answer answer = {
                .units = 20, .latency_ms = 150, .status = TIDE_OK, .http = 200};
            tide_governor_answered(governor, now_ms, &answer, &rng);
            charged++;
        }
    }
    compared("governor_charge_and_answer", (now_s() * 1e9 - start_ns) / (double)charged, "ns", 1000,
             "1 us allowed");
    tide_governor_free(governor);
}

/* A full window: the answer is a time to try again. */
static void refusal_cost(void)
{
    tide_governor *governor = NULL;
    if (tide_governor_new(&tide_provider_known("gmail")->profile, 0, tide_mem_heap(), &governor) !=
        TIDE_OK)
        return;
    tide_rng rng = tide_rng_seeded(1);
    struct tide_governor_saved saved;
    uint64_t again_ms = 0;
    uint64_t now_ms = 1;
    for (; now_ms < 60000; now_ms++) { /* fill the window */
        if (tide_governor_save_due(governor, now_ms)) {
            tide_governor_save(governor, now_ms, now_ms, &saved);
            tide_governor_saved(governor, now_ms);
        }
        const struct tide_answer answer = {.units = 20, .latency_ms = 0, .http = 200};
        if (tide_governor_charge(governor, now_ms, 4, 20, &again_ms) == TIDE_OK)
            tide_governor_answered(governor, now_ms, &answer, &rng);
    }
    enum { ROUNDS = 5000000 };
    uint64_t refused = 0;
    const double start_ns = now_s() * 1e9;
    for (int i = 0; i < ROUNDS; i++)
        refused += tide_governor_charge(governor, now_ms, 4, 20, &again_ms) == TIDE_AGAIN;
    if (refused > 0)
        compared("governor_refusal", (now_s() * 1e9 - start_ns) / ROUNDS, "ns", 1000,
                 "1 us allowed");
    tide_governor_free(governor);
}

int main(void)
{
    const struct tide_governor_profile *gmail = &tide_provider_known("gmail")->profile;
    const struct referee_options hour = {
        .seed = 1, .duration_ms = 3600000, .limit_units = 6000, .call_units = 20, .level = 4};
    decision_cost();
    refusal_cost();

    struct referee_report report = referee_run(gmail, &hour);
    compared("governor_share_of_hour", report.share * 100, "%", 97, "97 % asked");
    compared("governor_windows_crossed", (double)report.crossed, "windows", 0, "0 allowed");
    compared("governor_refused", (double)report.refused * 100 / (double)report.calls, "%", 0.1,
             "0.1 % allowed");
    compared("governor_units_in_six_seconds_max", (double)report.six_seconds_peak, "units", 600,
             "even pace");

    struct referee_options killed = hour;
    killed.kill_every_ms = 60000;
    report = referee_run(gmail, &killed);
    compared("governor_share_killed_every_minute", report.share * 100, "%", 97, "97 % without");
    compared("governor_windows_crossed_killed", (double)report.crossed, "windows", 0, "0 allowed");

    struct referee_options storm = hour;
    storm.duration_ms = 600000;
    storm.storm_from_ms = 240000;
    storm.storm_to_ms = 300000;
    report = referee_run(gmail, &storm);
    compared("governor_recovery_unnamed", (double)report.recovered_ms / 1000, "s", 60,
             "60 s allowed");
    storm.storm_names_ms = 20000;
    report = referee_run(gmail, &storm);
    compared("governor_recovery_named", (double)report.recovered_ms / 1000, "s", 60,
             "60 s allowed");
    return 0;
}
