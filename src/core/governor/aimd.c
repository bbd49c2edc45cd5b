#include "core/governor/aimd.h"

void tide_aimd_init(tide_aimd *aimd, const struct tide_governor_profile *profile)
{
    *aimd = (tide_aimd){.profile = profile, .succeeded_since_cut = true};
    tide_aimd_set(aimd, profile->rate_start, profile->workers_start);
}

void tide_aimd_set(tide_aimd *aimd, double rate, unsigned workers)
{
    const struct tide_governor_profile *profile = aimd->profile;
    aimd->rate = rate < profile->rate_min   ? profile->rate_min
                 : rate > profile->rate_max ? profile->rate_max
                                            : rate;
    aimd->workers = workers < profile->workers_min   ? profile->workers_min
                    : workers > profile->workers_max ? profile->workers_max
                                                     : workers;
}

void tide_aimd_unhealthy(tide_aimd *aimd)
{
    aimd->healthy_answers = 0;
    aimd->healthy_bytes = 0;
    aimd->healthy_failed = 0;
}

void tide_aimd_failed(tide_aimd *aimd)
{
    aimd->healthy_failed++;
    if (aimd->healthy_failed > 1 + aimd->healthy_answers / 10)
        tide_aimd_unhealthy(aimd);
}

static bool is_news(const tide_aimd *aimd, uint64_t sent_ms)
{
    return aimd->cuts == 0 || sent_ms > aimd->cut_ms;
}

bool tide_aimd_succeeded(tide_aimd *aimd, uint64_t now_ms, uint64_t sent_ms, uint64_t bytes)
{
    if (is_news(aimd, sent_ms))
        aimd->succeeded_since_cut = true;
    /* Healthy time begins with an answer: a pause does not count. */
    if (aimd->healthy_answers++ == 0)
        aimd->healthy_since_ms = now_ms;
    aimd->healthy_bytes += bytes;
    return now_ms >= aimd->healthy_since_ms + aimd->profile->healthy_ms;
}

void tide_aimd_cut(tide_aimd *aimd, uint64_t now_ms)
{
    const unsigned kept = aimd->profile->cut_permille;
    tide_aimd_set(aimd, aimd->rate * (kept / 1000.0),
                  (unsigned)((uint64_t)aimd->workers * kept / 1000));
    tide_aimd_unhealthy(aimd);
    aimd->cuts++;
    aimd->cut_ms = now_ms;
    aimd->succeeded_since_cut = false;
    aimd->workers_on_trial = 0;
    aimd->bytes_rate_best = 0;
}

bool tide_aimd_refused(tide_aimd *aimd, uint64_t now_ms, uint64_t sent_ms)
{
    tide_aimd_unhealthy(aimd);
    if (!is_news(aimd, sent_ms) || !aimd->succeeded_since_cut)
        return false;
    tide_aimd_cut(aimd, now_ms);
    return true;
}

static double rate_grown(const tide_aimd *aimd)
{
    const double ceiling = aimd->profile->rate_max;
    const double by_call =
        aimd->profile->call_units * (aimd->profile->rate_step_call_permille / 1000.0);
    const double by_ceiling = aimd->profile->rate_step_permille / 1000.0 * ceiling;
    const double step = by_call > by_ceiling ? by_call : by_ceiling;
    const double doubled = aimd->rate < ceiling / 4 ? 2 * aimd->rate : ceiling / 2;
    return aimd->rate + step > doubled ? aimd->rate + step : doubled;
}

/* For few large transfers: an added worker stays only if it raised the byte rate. */
static unsigned workers_by_bytes(tide_aimd *aimd, double bytes_rate)
{
    if (bytes_rate > 1.05 * aimd->bytes_rate_best) {
        aimd->bytes_rate_best = bytes_rate;
        aimd->workers_on_trial = aimd->profile->workers_step;
        return aimd->workers + aimd->workers_on_trial;
    }
    const unsigned failed = aimd->workers_on_trial;
    aimd->workers_on_trial = 0;
    return aimd->workers > failed ? aimd->workers - failed : 0;
}

void tide_aimd_grow(tide_aimd *aimd, uint64_t now_ms, const struct tide_demand *demand)
{
    unsigned workers = aimd->workers + aimd->profile->workers_step;
    if (demand->small > aimd->profile->small_jobs) {
        workers = aimd->workers * 2;
    } else if (demand->jobs > 0 && demand->jobs < aimd->profile->large_jobs &&
               demand->large == demand->jobs) {
        const double healthy_s = (double)(now_ms - aimd->healthy_since_ms) / 1000;
        workers = workers_by_bytes(aimd, (double)aimd->healthy_bytes / healthy_s);
    }
    tide_aimd_set(aimd, rate_grown(aimd), workers);
    tide_aimd_unhealthy(aimd); /* healthy time starts again with the next answer */
}

bool tide_aimd_check(const tide_aimd *aimd)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    const struct tide_governor_profile *profile = aimd->profile;
    return aimd->rate >= profile->rate_min && aimd->rate <= profile->rate_max &&
           aimd->workers >= profile->workers_min && aimd->workers <= profile->workers_max;
    /* GCOVR_EXCL_BR_STOP */
}
