/* model.c - the lanes against a brute-force model that chooses over all jobs.
 *
 * The model has all jobs in a list; each answer is found by looking at all of them. */
#include "lanes_fixture.h"

#include "base/limits.h"
#include "base/rng.h"
#include "support/scale.h"

enum { JOBS = 40, ACCOUNTS = 5 };
typedef enum { NOWHERE, WANTED, CLAIMING, HELD, RUNNING, PARKED } where;

struct entry {
    struct tide_brief brief;
    where where;
    bool named;
    bool lacks_units;
};

struct model {
    tide_rng rng;
    tide_lanes *lanes;
    struct entry jobs[JOBS];
    uint32_t admitted[ACCOUNTS];
    uint32_t workers;
    uint32_t reserved[2];
    uint32_t passed;
    uint64_t next_id;
    uint64_t seed;
    uint64_t step;
};

#define MODEL_ASSERT(model, condition)                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "seed %" PRIu64 " step %" PRIu64 ": %s\n", (model)->seed,              \
                    (model)->step, #condition);                                                    \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

static int level(const struct entry *entry)
{
    return entry->brief.account == 0 ? 1 : entry->brief.level;
}

static bool waits(const struct entry *entry)
{
    return entry->where == WANTED || entry->where == CLAIMING || entry->where == HELD;
}

static uint32_t running_in(const struct model *model, int lane, bool named)
{
    uint32_t count = 0;
    for (int i = 0; i < JOBS; i++)
        count += model->jobs[i].where == RUNNING && (!named || model->jobs[i].named) &&
                 (lane == 2 || model->jobs[i].brief.lane == lane);
    return count;
}

static uint32_t free_workers(const struct model *model)
{
    uint32_t running = running_in(model, 2, false);
    return model->workers > running ? model->workers - running : 0;
}

static int first_level(const struct model *model, uint32_t account)
{
    int first = 9;
    for (int i = 0; i < JOBS; i++)
        if ((waits(&model->jobs[i]) || model->jobs[i].lacks_units) &&
            model->jobs[i].brief.account == account && level(&model->jobs[i]) < first)
            first = level(&model->jobs[i]);
    return first;
}

/* Running, and parked up to a level. */
static uint32_t used_of(const struct model *model, uint32_t account, int up_to)
{
    uint32_t used = 0;
    for (int i = 0; i < JOBS; i++)
        used += model->jobs[i].brief.account == account &&
                (model->jobs[i].where == RUNNING ||
                 (model->jobs[i].where == PARKED && level(&model->jobs[i]) <= up_to));
    return used;
}

static uint32_t pending_of(const struct model *model, uint32_t account, int lane, int at)
{
    uint32_t pending = 0;
    for (int i = 0; i < JOBS; i++)
        pending += model->jobs[i].brief.account == account && level(&model->jobs[i]) == at &&
                   (lane == 2 || model->jobs[i].brief.lane == lane) &&
                   (model->jobs[i].where == HELD || model->jobs[i].where == CLAIMING);
    return pending;
}

static bool alone(const struct entry *entry)
{
    return entry->brief.alone && entry->brief.account != 0;
}

/* Jobs of the account that run alone: running, or running and not named. */
static uint32_t alone_of(const struct model *model, uint32_t account, bool stay)
{
    uint32_t count = 0;
    for (int i = 0; i < JOBS; i++)
        count += model->jobs[i].brief.account == account && alone(&model->jobs[i]) &&
                 model->jobs[i].where == RUNNING && !(stay && model->jobs[i].named);
    return count;
}

/* The same that are claimed, at a level. */
static uint32_t alone_pending(const struct model *model, uint32_t account, int lane, int at)
{
    uint32_t count = 0;
    for (int i = 0; i < JOBS; i++)
        count += model->jobs[i].brief.account == account && alone(&model->jobs[i]) &&
                 level(&model->jobs[i]) == at && (lane == 2 || model->jobs[i].brief.lane == lane) &&
                 (model->jobs[i].where == HELD || model->jobs[i].where == CLAIMING);
    return count;
}

/* Needs only a worker. */
static bool startable(const struct model *model, const struct entry *entry)
{
    uint32_t account = entry->brief.account;
    return entry->where == HELD && level(entry) == first_level(model, account) &&
           (!alone(entry) || alone_of(model, account, false) == 0) &&
           used_of(model, account, level(entry)) < model->admitted[account];
}

static bool claimable(const struct model *model, const struct entry *entry)
{
    uint32_t account = entry->brief.account;
    if (alone(entry) &&
        (alone_of(model, account, true) > 0 || alone_pending(model, account, 2, level(entry)) > 0))
        return false;
    return entry->where == WANTED && level(entry) == first_level(model, account) &&
           (uint64_t)used_of(model, account, level(entry)) +
                   pending_of(model, account, 2, level(entry)) <
               model->admitted[account];
}

static uint32_t lane_pending(const struct model *model, int lane)
{
    uint32_t sum = 0;
    for (uint32_t account = 0; account < ACCOUNTS; account++) {
        int at = first_level(model, account);
        uint32_t used = used_of(model, account, at);
        uint32_t room = model->admitted[account] > used ? model->admitted[account] - used : 0;
        uint32_t alones = alone_pending(model, account, lane, at);
        uint32_t pending = pending_of(model, account, lane, at) - alones +
                           (alones > 0 && alone_of(model, account, false) == 0);
        sum += pending < room ? pending : room;
    }
    return sum;
}

static bool lane_claims(const struct model *model, int lane)
{
    for (int i = 0; i < JOBS; i++)
        if (model->jobs[i].brief.lane == lane && claimable(model, &model->jobs[i]))
            return true;
    return false;
}

static bool idle(const struct model *model, int lane)
{
    return !lane_claims(model, lane) && lane_pending(model, lane) == 0;
}

static uint32_t capacity(const struct model *model, int lane)
{
    return model->workers - model->reserved[1 - lane];
}

/* The first in order that a free worker of this lane may have. */
static struct entry *model_first(struct model *model, int lane)
{
    struct entry *first = NULL;
    bool borrows = running_in(model, lane, false) >= capacity(model, lane);
    if (free_workers(model) == 0 || (borrows && !idle(model, 1 - lane)))
        return NULL;
    for (int i = 0; i < JOBS; i++) {
        struct entry *entry = &model->jobs[i];
        if (entry->brief.lane != lane || !startable(model, entry) ||
            (borrows && !entry->brief.preemptible))
            continue;
        if (first == NULL || tide_brief_before(&entry->brief, &first->brief))
            first = entry;
    }
    return first;
}

static void step_start(struct model *model)
{
    struct entry *interactive = model_first(model, I);
    struct entry *bulk = model_first(model, B);
    struct entry *expected = interactive;
    if (interactive == NULL || (bulk != NULL && model->reserved[B] == 0 && model->passed >= 8))
        expected = bulk;
    MODEL_ASSERT(model, tide_lanes_can_start(model->lanes) == (expected != NULL));
    uint64_t id = start(model->lanes);
    MODEL_ASSERT(model, id == (expected == NULL ? 0 : expected->brief.id));
    if (expected == NULL)
        return;
    model->passed = expected == interactive && bulk != NULL ? model->passed + 1 : 0;
    expected->where = RUNNING;
    expected->named = false;
    MODEL_ASSERT(model, alone_of(model, expected->brief.account, false) <= 1); /* LAN6 */
    MODEL_ASSERT(model, running_in(model, 2, false) <= model->workers);        /* LAN1 */
}

static uint32_t room_of(const struct model *model, int lane)
{
    uint32_t running = running_in(model, lane, false);
    uint32_t own = capacity(model, lane) > running ? capacity(model, lane) - running : 0;
    uint32_t room = free_workers(model);
    if (own < room && !idle(model, 1 - lane))
        room = own;
    uint32_t due = model->reserved[lane] > running ? model->reserved[lane] - running : 0;
    return due > room ? due : room;
}

static void step_claim(struct model *model)
{
    uint32_t ahead = (uint32_t)tide_rng_below(&model->rng, 4);
    struct entry *expected = NULL;
    for (int lane = 0; lane < 2 && expected == NULL; lane++) {
        if (lane_pending(model, lane) >= room_of(model, lane) + ahead)
            continue;
        for (int i = 0; i < JOBS; i++) {
            struct entry *entry = &model->jobs[i];
            if (entry->brief.lane == lane && claimable(model, entry) &&
                (expected == NULL || tide_brief_before(&entry->brief, &expected->brief)))
                expected = entry;
        }
    }
    uint64_t id = 0;
    bool found = tide_lanes_next_claim(model->lanes, ahead, &id);
    MODEL_ASSERT(model, found == (expected != NULL));
    if (!found)
        return;
    MODEL_ASSERT(model, id == expected->brief.id);
    expected->where = CLAIMING;
}

static bool lane_lacks(const struct model *model, int lane)
{
    uint32_t running = running_in(model, lane, false);
    if (running >= model->reserved[lane])
        return false;
    uint32_t due = model->reserved[lane] - running;
    uint32_t wants = lane_pending(model, lane) + lane_claims(model, lane);
    if (wants < due)
        due = wants;
    return due > free_workers(model) + running_in(model, 2, true) &&
           running_in(model, 1 - lane, false) - running_in(model, 1 - lane, true) >
               capacity(model, 1 - lane);
}

static bool account_lacks(const struct model *model, const struct entry *entry)
{
    uint32_t account = entry->brief.account;
    int first = first_level(model, account);
    if (first >= level(entry) || model->admitted[account] == 0)
        return false;
    uint32_t waiting = 0;
    uint32_t leaving = 0;
    bool in[2] = {false, false};
    for (int i = 0; i < JOBS; i++) {
        const struct entry *other = &model->jobs[i];
        if (other->brief.account != account)
            continue;
        leaving += other->where == RUNNING && other->named;
        if (waits(other) && level(other) == first) {
            waiting++;
            in[other->brief.lane] = true;
        }
    }
    if (waiting <= leaving)
        return false;
    if (used_of(model, account, first) - leaving >= model->admitted[account])
        return true;
    for (int lane = 0; lane < 2; lane++) {
        uint32_t stays = running_in(model, lane, false) - running_in(model, lane, true);
        bool none_free = free_workers(model) + running_in(model, 2, true) == 0;
        bool helps = stays - (entry->brief.lane == lane) < capacity(model, lane);
        if (in[lane] && helps && (none_free || stays >= capacity(model, lane)))
            return true;
    }
    return false;
}

/* A more urgent one that runs alone waits for the end of this one. */
static bool alone_lacks(const struct model *model, const struct entry *entry)
{
    uint32_t account = entry->brief.account;
    int first = first_level(model, account);
    if (!alone(entry) || model->admitted[account] == 0)
        return false;
    for (int i = 0; i < JOBS; i++) {
        const struct entry *other = &model->jobs[i];
        if (other->brief.account == account && alone(other) && waits(other) &&
            level(other) == first &&
            (first < level(entry) || (first == level(entry) && other->where != CLAIMING &&
                                      other->brief.priority > entry->brief.priority)))
            return true;
    }
    return false;
}

static void step_preempt(struct model *model)
{
    struct entry *expected = NULL;
    bool lacks[2] = {lane_lacks(model, 0), lane_lacks(model, 1)};
    for (int i = 0; i < JOBS; i++) {
        struct entry *entry = &model->jobs[i];
        if (entry->where != RUNNING || entry->named || !entry->brief.preemptible ||
            (!lacks[1 - entry->brief.lane] && !account_lacks(model, entry) &&
             !alone_lacks(model, entry)))
            continue;
        if (expected == NULL || tide_brief_before(&expected->brief, &entry->brief))
            expected = entry;
    }
    uint64_t id = preempt(model->lanes);
    MODEL_ASSERT(model, id == (expected == NULL ? 0 : expected->brief.id));
    if (expected != NULL)
        expected->named = true;
}

/* With what is being claimed held too, whatever the others do: does the new one get a worker
 * without an end of any other? */
static bool starts_without_an_end(const struct model *model, const struct entry *entry)
{
    static struct model later;
    later = *model;
    for (int i = 0; i < JOBS; i++)
        if (later.jobs[i].where == CLAIMING)
            later.jobs[i].where = HELD;
    struct entry *same = &later.jobs[entry - model->jobs];
    same->where = HELD;
    while (same->where == HELD) {
        struct entry *interactive = model_first(&later, I);
        struct entry *bulk = model_first(&later, B);
        struct entry *next = interactive;
        if (interactive == NULL || (bulk != NULL && later.reserved[B] == 0 && later.passed >= 8))
            next = bulk;
        if (next == NULL)
            return false;
        later.passed = next == interactive && bulk != NULL ? later.passed + 1 : 0;
        next->where = RUNNING;
    }
    return true;
}

static uint32_t claimed_in(const struct model *model, int lane)
{
    uint32_t count = 0;
    for (int i = 0; i < JOBS; i++)
        count += model->jobs[i].brief.lane == lane &&
                 (model->jobs[i].where == HELD || model->jobs[i].where == CLAIMING);
    return count;
}

/* The rule as lanes.h has it, over all jobs. */
static bool model_at_once(const struct model *model, const struct entry *entry)
{
    const int lane = entry->brief.lane;
    const uint32_t free = free_workers(model);
    if (!claimable(model, entry) ||
        (alone(entry) && alone_of(model, entry->brief.account, false) > 0))
        return false;
    for (int i = 0; i < JOBS; i++)
        if (model->jobs[i].brief.lane == lane && claimable(model, &model->jobs[i]) &&
            tide_brief_before(&model->jobs[i].brief, &entry->brief))
            return false;
    const uint32_t claimed = claimed_in(model, lane);
    if (claimed >= free || running_in(model, lane, false) + claimed >= capacity(model, lane))
        return false;
    if (lane == I && model->reserved[B] > 0)
        return true;
    return !lane_claims(model, 1 - lane) && claimed + claimed_in(model, 1 - lane) < free;
}

static void arrive_at_once(struct model *model, struct entry *entry)
{
    entry->where = WANTED;
    const bool expected = model_at_once(model, entry);
    if (expected)
        MODEL_ASSERT(model, starts_without_an_end(model, entry));
    MODEL_ASSERT(model, tide_lanes_at_once(model->lanes, &entry->brief) == expected);
    entry->where = expected ? CLAIMING : NOWHERE;
    MODEL_ASSERT(model, tide_lanes_check(model->lanes));
}

static void step_arrive(struct model *model)
{
    for (int i = 0; i < JOBS; i++) {
        struct entry *entry = &model->jobs[i];
        if (entry->where != NOWHERE)
            continue;
        entry->brief = job(model->next_id++, (int)tide_rng_below(&model->rng, 2),
                           (uint32_t)tide_rng_below(&model->rng, ACCOUNTS),
                           (uint8_t)tide_rng_below(&model->rng, 4));
        entry->brief.level =
            (uint8_t)(tide_rng_chance(&model->rng, 3, 4) ? 4 : 1 + tide_rng_below(&model->rng, 3));
        entry->brief.preemptible = tide_rng_chance(&model->rng, 1, 2);
        entry->brief.alone = tide_rng_chance(&model->rng, 1, 4);
        entry->named = entry->lacks_units = false;
        if (tide_rng_chance(&model->rng, 1, 4)) {
            arrive_at_once(model, entry);
            return;
        }
        bool held = tide_rng_chance(&model->rng, 1, 8);
        entry->where = held ? HELD : WANTED;
        if (held)
            hold(model->lanes, entry->brief);
        else
            want(model->lanes, entry->brief);
        return;
    }
}

static void step_move(struct model *model)
{
    struct entry *entry = &model->jobs[tide_rng_below(&model->rng, JOBS)];
    bool leaves = tide_rng_chance(&model->rng, 1, 4);
    if (entry->where == NOWHERE)
        return;
    if (leaves) {
        tide_lanes_left(model->lanes, entry->brief.id);
        entry->where = NOWHERE;
        entry->lacks_units = false;
    } else if (entry->where == CLAIMING || entry->where == PARKED) {
        hold(model->lanes, entry->brief);
        entry->where = HELD;
    } else if (entry->where == RUNNING && tide_rng_chance(&model->rng, 1, 4)) {
        entry->lacks_units = tide_rng_chance(&model->rng, 1, 2);
        tide_lanes_parked(model->lanes, entry->brief.id, entry->lacks_units);
        entry->where = PARKED;
        entry->named = false;
    } else if (entry->where == RUNNING && tide_rng_chance(&model->rng, 1, 2)) {
        tide_lanes_charged(model->lanes, entry->brief.id);
        entry->lacks_units = false;
    } else if (entry->where == WANTED) {
        entry->brief.priority = (uint8_t)tide_rng_below(&model->rng, 6);
        tide_lanes_priority(model->lanes, entry->brief.id, entry->brief.priority);
    }
}

static void model_compare(struct model *model)
{
    uint32_t waiting[2] = {0, 0};
    for (int i = 0; i < JOBS; i++) {
        struct entry *entry = &model->jobs[i];
        if (entry->where == NOWHERE)
            continue;
        waiting[entry->brief.lane] += entry->where == WANTED || entry->where == HELD;
        tide_lanes_why why = tide_lanes_explain(model->lanes, entry->brief.id);
        if (entry->where == PARKED)
            MODEL_ASSERT(model, why == TIDE_WHY_UNKNOWN);
        if (entry->where == HELD) {
            struct entry *first = model_first(model, entry->brief.lane);
            MODEL_ASSERT(model, (why == TIDE_WHY_NOTHING) == (entry == first));
            MODEL_ASSERT(model, (why == TIDE_WHY_LEVEL) ==
                                    (level(entry) > first_level(model, entry->brief.account)));
        }
    }
    for (int lane = 0; lane < 2; lane++) {
        MODEL_ASSERT(model, tide_lanes_waiting(model->lanes, (tide_lane)lane) == waiting[lane]);
        MODEL_ASSERT(model, tide_lanes_running(model->lanes, (tide_lane)lane) ==
                                running_in(model, lane, false));
    }
    MODEL_ASSERT(model, tide_lanes_check(model->lanes));
}

static void step_limits(struct model *model)
{
    if (tide_rng_chance(&model->rng, 49, 50)) {
        uint32_t account = 1 + (uint32_t)tide_rng_below(&model->rng, ACCOUNTS - 1);
        uint64_t dice = tide_rng_below(&model->rng, 7);
        model->admitted[account] = dice == 6 ? TIDE_ADMIT_ALL : (uint32_t)dice;
        OK(tide_lanes_admit(model->lanes, account, model->admitted[account]));
    } else if (running_in(model, 2, false) == 0) {
        struct tide_lanes_limits limits = {1 + (uint32_t)tide_rng_below(&model->rng, 9), {0, 0}};
        limits.reserved[0] = (uint32_t)tide_rng_below(&model->rng, limits.workers);
        limits.reserved[1] =
            (uint32_t)tide_rng_below(&model->rng, limits.workers - limits.reserved[0]);
        model->workers = limits.workers;
        for (int lane = 0; lane < 2; lane++)
            model->reserved[lane] = limits.workers == 1 ? 0 : limits.reserved[lane];
        tide_lanes_limits_set(model->lanes, &limits);
    }
}

TEST(the_lanes_agree_with_a_model_that_looks_at_every_job)
{
    const uint64_t steps = scaled(40000);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct model model = {.rng = tide_rng_seeded(seed), .seed = seed, .next_id = 1};
        for (int i = 0; i < ACCOUNTS; i++)
            model.admitted[i] = TIDE_ADMIT_ALL;
        model.workers = 3 + (uint32_t)tide_rng_below(&model.rng, 6);
        model.reserved[0] = (uint32_t)tide_rng_below(&model.rng, 2);
        model.reserved[1] = (uint32_t)tide_rng_below(&model.rng, 2);
        model.lanes = lanes_of(model.workers, model.reserved[0], model.reserved[1]);
        for (model.step = 0; model.step < steps; model.step++) {
            switch (tide_rng_below(&model.rng, 16)) {
            case 0:
            case 1:
            case 2:
                step_arrive(&model);
                break;
            case 3:
            case 4:
            case 5:
                step_claim(&model);
                break;
            case 6:
            case 7:
            case 8:
                step_start(&model);
                break;
            case 9:
                step_preempt(&model);
                break;
            case 10:
                step_limits(&model);
                break;
            default:
                step_move(&model);
            }
            if (model.step % 64 == 0)
                model_compare(&model);
        }
        tide_lanes_free(model.lanes);
    }
}
