/* mirror_click.c - SIM8: how long a click waits, and what may start meanwhile.
 *
 * The clicks of an account have one kind and run in the order in which they came (E3.2), at the
 * pace of the account's quota: after refusals the second account sends 1 unit a second, and a click
 * costs 20.  How long a click waits in all depends on how many wait before it, those of earlier
 * lives included, and has no bound.  What the engine owes it has:
 *
 *   - Its turn comes when the last older click of its account has ended.  From then on it needs a
 *     worker and an account that is not paused, and no units: it starts within turn_ms_max().
 *   - While a click waits for units, no job of a lower level of its account starts (E3.3): it would
 *     spend the units that the click waits for. */
#include "mirror.h"

#include "base/json.h"

#include <inttypes.h>

enum {
    PARK_MS_MAX = 60000, /* as in engine/finish.c: after longer waits a job is not parked */
    /* A worker that chose its job before the click was parked may run the handler after it. */
    CHOSEN_MS_MAX = 100,
};

/* One in this life that has started at least once. */
struct mirror_click {
    struct mirror_click *next;
    uint64_t id;
    uint64_t ended_ms;  /* the last time it ended without being parked; 0: never */
    uint64_t parked_ms; /* without units since then; 0: it is not */
};

static struct mirror_click *click_of(struct mirror *mirror, tide_job *job)
{
    struct mirror_account *account = mirror_account_of(mirror, tide_job_account(job));
    struct mirror_click *click = account->clicks;
    while (click != NULL && click->id != tide_job_id(job))
        click = click->next;
    if (click != NULL)
        return click;
    click = mirror_scrap(mirror, sizeof *click);
    click->id = tide_job_id(job);
    click->next = account->clicks;
    account->clicks = click;
    return click;
}

/* Ends of younger clicks do not count: one that runs before its turn must not hide the wait. */
static uint64_t turn_ms(const struct mirror_account *account, uint64_t id, uint64_t at_ms)
{
    uint64_t turn_ms = at_ms;
    for (const struct mirror_click *click = account->clicks; click != NULL; click = click->next)
        if (click->id < id && click->ended_ms > turn_ms)
            turn_ms = click->ended_ms;
    return turn_ms;
}

/* Does nothing of this provider fail for its own sake, which opens the breaker? */
static bool is_healthy(const struct tide_sim_provider_options *options)
{
    return options->poison_500_permille + options->stalls_permille + options->resets_permille == 0;
}

/* The account may be paused: for a minute at most by a time that its provider named (the length of
 * its window), for five after failures (breaker.h).  Then the click is the first to start.  Fewer
 * than three workers have no reserved lane (tuning.c): a job of the other account may hold the
 * worker, and its failing items hold it for long. */
static uint64_t turn_ms_max(const struct mirror *mirror, const struct mirror_account *account)
{
    bool healthy = true;
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++)
        if (&mirror->accounts[i] == account || mirror->plan.workers < 3)
            healthy = healthy && is_healthy(&mirror->plan.provider[i]);
    return healthy ? 60000 : 330000;
}

static bool is_checked(const struct mirror *mirror)
{
    return mirror->plan.calm && !mirror->faults;
}

void mirror_click_starts(struct mirror *mirror, tide_job *job)
{
    const struct mirror_account *account = mirror_account_of(mirror, tide_job_account(job));
    const uint64_t now_ms = tide_job_now_ms(job);
    json_t *json = NULL;
    (void)tide_json_parse(tide_job_payload(job), &json, NULL);
    const uint64_t at_ms = (uint64_t)json_integer_value(json_object_get(json, "at"));
    const uint64_t life = (uint64_t)json_integer_value(json_object_get(json, "life"));
    json_decref(json);
    struct mirror_click *click = click_of(mirror, job);
    click->parked_ms = 0;
    if (tide_job_attempt(job) > 1 || tide_job_resume(job).bytes > 0 ||
        life != tide_sim_life(mirror->sim) || at_ms <= mirror->disturbed_ms)
        return;
    const uint64_t wait_ms = now_ms - turn_ms(account, click->id, at_ms);
    mirror->totals.clicks++;
    if (wait_ms > mirror->totals.click_wait_ms_max)
        mirror->totals.click_wait_ms_max = wait_ms;
    if (is_checked(mirror) && wait_ms > turn_ms_max(mirror, account))
        tide_sim_fail(mirror->sim,
                      "SIM8: click %" PRIu64 " waited for %" PRIu64 " ms after its turn had come",
                      click->id, wait_ms);
}

void mirror_click_ends(struct mirror *mirror, tide_job *job, tide_status status)
{
    struct mirror_click *click = click_of(mirror, job);
    const uint64_t now_ms = tide_job_now_ms(job);
    if (status == TIDE_AGAIN && tide_job_again_at_ms(job) <= now_ms + PARK_MS_MAX)
        click->parked_ms = now_ms;
    else
        click->ended_ms = now_ms;
}

void mirror_lower_starts(struct mirror *mirror, tide_job *job)
{
    const struct mirror_account *account = mirror_account_of(mirror, tide_job_account(job));
    const uint64_t now_ms = tide_job_now_ms(job);
    for (const struct mirror_click *click = account->clicks; click != NULL; click = click->next)
        if (is_checked(mirror) && click->parked_ms > 0 && now_ms > click->parked_ms + CHOSEN_MS_MAX)
            tide_sim_fail(mirror->sim,
                          "SIM8: job %" PRIu64 " started while click %" PRIu64
                          " waited for units, for %" PRIu64 " ms",
                          tide_job_id(job), click->id, now_ms - click->parked_ms);
}
