#include "core/governor/profile.h"

static void fill_unsigned(unsigned *field, unsigned otherwise)
{
    if (*field == 0)
        *field = otherwise;
}

static void fill_rate(double *field, double otherwise)
{
    if (*field == 0)
        *field = otherwise;
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static tide_status check(const struct tide_governor_profile *p)
{
    const bool rates = 0 < p->rate_min && p->rate_min <= p->rate_start &&
                       p->rate_start <= p->rate_max && p->rate_max <= 1e9;
    const bool workers = p->workers_min <= p->workers_start && p->workers_start <= p->workers_max;
    const bool window =
        (p->window_ms == 0) == (p->window_units_max == 0) && p->window_units_max <= UINT32_MAX;
    const bool shares = p->share_permille <= 1000 && p->reserve_permille < 1000;
    /* A call that can never fit would wait forever. */
    const bool fits = p->window_ms == 0 || p->call_units <= p->window_units_max *
                                                                p->share_permille / 1000 *
                                                                (1000 - p->reserve_permille) / 1000;
    const bool cuts = p->cut_permille < 1000; /* else a refusal would change nothing */
    return rates && workers && window && shares && fits && cuts ? TIDE_OK : TIDE_INVALID;
}

tide_status tide_profile_complete(const struct tide_governor_profile *profile,
                                  struct tide_governor_profile *complete_out)
{
    struct tide_governor_profile p = *profile;
    fill_unsigned(&p.share_permille, 1000);
    fill_unsigned(&p.call_units, 1);
    fill_unsigned(&p.in_flight_max, 32);
    fill_unsigned(&p.workers_max, 32);
    fill_unsigned(&p.workers_min, smaller(2, p.workers_max));
    fill_unsigned(&p.workers_start, p.workers_min > 8 ? p.workers_min : smaller(8, p.workers_max));
    fill_unsigned(&p.healthy_ms, 5000);
    fill_unsigned(&p.workers_step, 1);
    fill_unsigned(&p.rate_step_permille, 50);
    fill_unsigned(&p.rate_step_call_permille, 500);
    fill_unsigned(&p.cut_permille, 500);
    fill_unsigned(&p.latency_max_ms, 1200);
    fill_unsigned(&p.latency_factor_permille, 3000);
    fill_unsigned(&p.small_jobs, 100);
    fill_unsigned(&p.large_jobs, 4);
    fill_unsigned(&p.spend_lease_ms, 2000);
    fill_unsigned(&p.save_every_ms, 500);
    fill_unsigned(&p.stray_ms, 10000);

    const double call = p.call_units;
    double ceiling = 16 * call;
    if (p.window_ms > 0) {
        ceiling = (double)p.window_units_max * p.share_permille / p.window_ms;
        /* A rate above the window's would only be spent in bursts. */
        if (p.rate_max > ceiling)
            p.rate_max = ceiling;
    }
    fill_rate(&p.rate_max, ceiling);
    if (p.rate_start > p.rate_max)
        p.rate_start = p.rate_max;
    const double start = p.window_ms > 0 ? 0.8 * p.rate_max : 4 * call;
    fill_rate(&p.rate_min, call < p.rate_max ? call : p.rate_max);
    fill_rate(&p.rate_start, start < p.rate_max ? start : p.rate_max);
    if (p.rate_start < p.rate_min)
        p.rate_start = p.rate_min;

    const tide_status rc = check(&p);
    if (rc == TIDE_OK)
        *complete_out = p;
    return rc;
}
