#include "core/tracker.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "core/pairing.h"

#include <string.h>

#define NONE TIDE_SLOT_NONE
/* A job that is not in a slot; the states of those that are come before it. */
#define SLOT_FREE TIDE_JOB_STATES

enum {
    ACCOUNTS_MAX = TIDE_ACCOUNTS_MAX + 1, /* and account 0 */
    STARVED_ROWS = 16, /* requested for an account that has nothing ready, even in a full window */
};

/* A position in an account's order: everything after it may have to be loaded. */
struct place {
    uint8_t priority;
    uint64_t id;
};
static const struct place beginning = {255, 0};

struct slot {
    struct tide_tracked job;
    uint64_t due_ms;  /* key of the timer heap */
    uint32_t account; /* index into accounts */
    uint32_t next_free;
};

struct account {
    uint32_t number;
    bool used;
    bool more;     /* something may be in the ledger after `cursor` */
    bool asked;    /* a refill is under way */
    bool hole;     /* since then, a job after `hole_at` was evicted */
    bool loadable; /* more and not asked: counted in the tracker */
    bool starved;  /* loadable and nothing ready: counted in the tracker */
    uint32_t jobs;
    uint32_t ready;
    uint32_t promised; /* rows of the refill under way */
    struct place cursor;
    struct place hole_at;
    uint64_t later_ms; /* earliest time of an evicted waiting job */
};

struct tide_tracker {
    tide_mem *mem;
    uint32_t window_max;
    uint32_t below_permille, to_permille; /* of it, for the refill */
    uint32_t count;
    uint32_t free;
    uint32_t slots_used; /* slots beyond were never used */
    uint32_t states[TIDE_JOB_STATES];
    struct slot *slots;
    struct tide_link *order_links; /* of `worst` and `blocked` */
    struct tide_link *timer_links;
    uint32_t worst;   /* READY and WAITING, last in order first */
    uint32_t blocked; /* BLOCKED, last in order first */
    uint32_t timers;  /* WAITING and PARKED, next due first */
    tide_map ids;
    struct account *accounts;
    uint32_t accounts_used;
    tide_map numbers;
    uint32_t loadable;
    uint32_t starved;
    uint32_t turn; /* account that was refilled last */
    uint32_t promised;
    bool filling; /* went below half, has not reached 80 % yet */
    uint64_t later_ms;
};

static bool worse(const void *context, uint32_t a, uint32_t b)
{
    const struct slot *slots = context;
    return tide_brief_before(&slots[b].job.brief, &slots[a].job.brief);
}

/* Equal times go by id, so that the order never depends on the heap's shape. */
static bool earlier(const void *context, uint32_t a, uint32_t b)
{
    const struct slot *slots = context;
    if (slots[a].due_ms != slots[b].due_ms)
        return slots[a].due_ms < slots[b].due_ms;
    return slots[a].job.brief.id < slots[b].job.brief.id;
}

static bool place_before(struct place a, struct place b)
{
    return a.priority != b.priority ? a.priority > b.priority : a.id < b.id;
}

static bool has_token(tide_job_state state)
{
    return state == TIDE_JOB_CLAIMED || state == TIDE_JOB_RUNNING || state == TIDE_JOB_PARKED ||
           state == TIDE_JOB_ENDING;
}

static bool is_runnable(tide_job_state state)
{
    return state == TIDE_JOB_READY || state == TIDE_JOB_WAITING;
}

static bool is_timed(tide_job_state state)
{
    return state == TIDE_JOB_WAITING || state == TIDE_JOB_PARKED;
}

tide_status tide_tracker_new(uint32_t window_max, tide_mem *mem, tide_tracker **tracker_out)
{
    TIDE_ASSERT(mem != NULL);
    if (window_max == 0 || window_max > TIDE_WINDOW_JOBS_MAX)
        return TIDE_INVALID;
    tide_tracker *tracker = tide_mem_new(mem, sizeof *tracker);
    if (tracker == NULL)
        return TIDE_NO_MEMORY;
    tracker->mem = mem;
    tracker->window_max = window_max;
    tracker->below_permille = 500;
    tracker->to_permille = 800;
    tracker->free = tracker->worst = tracker->blocked = tracker->timers = NONE;
    tracker->later_ms = UINT64_MAX;
    tide_map_init(&tracker->ids, mem);
    tide_map_init(&tracker->numbers, mem);
    tracker->slots = tide_mem_array(mem, window_max, sizeof *tracker->slots);
    tracker->order_links = tide_mem_array(mem, window_max, sizeof *tracker->order_links);
    tracker->timer_links = tide_mem_array(mem, window_max, sizeof *tracker->timer_links);
    tracker->accounts = tide_mem_array(mem, ACCOUNTS_MAX, sizeof *tracker->accounts);
    if (tracker->slots == NULL || tracker->order_links == NULL || tracker->timer_links == NULL ||
        tracker->accounts == NULL || !tide_map_reserve(&tracker->ids, window_max) ||
        !tide_map_reserve(&tracker->numbers, ACCOUNTS_MAX)) {
        tide_tracker_free(tracker);
        return TIDE_NO_MEMORY;
    }
    *tracker_out = tracker;
    return TIDE_OK;
}

tide_status tide_tracker_refill_set(tide_tracker *tracker, uint32_t below_permille,
                                    uint32_t to_permille)
{
    if (below_permille == 0 || below_permille >= to_permille || to_permille > 1000)
        return TIDE_INVALID;
    tracker->below_permille = below_permille;
    tracker->to_permille = to_permille;
    return TIDE_OK;
}

void tide_tracker_free(tide_tracker *tracker)
{
    if (tracker == NULL)
        return;
    tide_mem *mem = tracker->mem;
    uint32_t max = tracker->window_max;
    tide_map_done(&tracker->numbers);
    tide_map_done(&tracker->ids);
    tide_mem_free(mem, tracker->accounts, ACCOUNTS_MAX * sizeof *tracker->accounts);
    tide_mem_free(mem, tracker->timer_links, max * sizeof *tracker->timer_links);
    tide_mem_free(mem, tracker->order_links, max * sizeof *tracker->order_links);
    tide_mem_free(mem, tracker->slots, max * sizeof *tracker->slots);
    tide_mem_free(mem, tracker, sizeof *tracker);
}

/* Keeps the two counters that let tide_tracker_refill() return at once. */
static void account_settle(tide_tracker *tracker, struct account *account)
{
    bool loadable = account->more && !account->asked;
    bool starved = loadable && account->ready == 0;
    tracker->loadable = tracker->loadable + loadable - account->loadable;
    tracker->starved = tracker->starved + starved - account->starved;
    account->loadable = loadable;
    account->starved = starved;
}

static struct account *account_find(const tide_tracker *tracker, uint32_t number)
{
    uint32_t index = 0;
    if (!tide_map_get(&tracker->numbers, (uint64_t)number + 1, &index))
        return NULL;
    return &tracker->accounts[index];
}

/* Finds an account without state to remember and frees its entry for another. */
static struct account *account_recycle(tide_tracker *tracker)
{
    for (uint32_t i = 0; i < tracker->accounts_used; i++) {
        struct account *account = &tracker->accounts[i];
        /* While a refill is under way, `more` is set. */
        if (account->jobs == 0 && !account->more && account->later_ms == UINT64_MAX) {
            TIDE_SEEN("tracker: account slot used again");
            tide_map_remove(&tracker->numbers, (uint64_t)account->number + 1);
            return account;
        }
    }
    return NULL;
}

/* NULL: more accounts than one process supports (TIDE_ACCOUNTS_MAX). */
static struct account *account_get(tide_tracker *tracker, uint32_t number)
{
    struct account *account = account_find(tracker, number);
    if (account != NULL)
        return account;
    if (tracker->accounts_used < ACCOUNTS_MAX)
        account = &tracker->accounts[tracker->accounts_used++];
    else
        account = account_recycle(tracker);
    if (account == NULL)
        return NULL;
    memset(account, 0, sizeof *account);
    account->number = number;
    account->used = true;
    account->later_ms = UINT64_MAX;
    bool put = tide_map_put(&tracker->numbers, (uint64_t)number + 1,
                            (uint32_t)(account - tracker->accounts));
    TIDE_ASSERT(put); /* the room was reserved */
    return account;
}

/* A job after `place` is in the ledger and not here.  A refill that is under way may or may not
 * load it, so the place is kept until the refill ends. */
static void account_owe(tide_tracker *tracker, struct account *account, struct place place)
{
    if (account->asked) {
        if (!account->hole || place_before(place, account->hole_at))
            account->hole_at = place;
        account->hole = true;
        return;
    }
    if (!account->more || place_before(place, account->cursor))
        account->cursor = place;
    account->more = true;
    account_settle(tracker, account);
}

/* A job of the ledger does not fit here; records what has to be loaded, and when.  A blocked one
 * needs nothing: its release sets `more`. */
static void account_owe_job(tide_tracker *tracker, struct account *account,
                            const struct tide_brief *brief, bool waiting)
{
    if (brief->open_deps > 0)
        return;
    if (!waiting) {
        account_owe(tracker, account, (struct place){brief->priority, brief->id - 1});
        return;
    }
    if (brief->not_before_ms < account->later_ms)
        account->later_ms = brief->not_before_ms;
    if (brief->not_before_ms < tracker->later_ms)
        tracker->later_ms = brief->not_before_ms;
}

/* Every change of state goes through this function: it updates the counts and the heaps. */
static void slot_move(tide_tracker *tracker, uint32_t index, tide_job_state to, uint64_t now_ms)
{
    struct slot *slot = &tracker->slots[index];
    struct account *account = &tracker->accounts[slot->account];
    tide_job_state from = slot->job.state;

    if (from != SLOT_FREE)
        tracker->states[from]--;
    if (to != SLOT_FREE)
        tracker->states[to]++;
    uint32_t *roots[2] = {&tracker->worst, &tracker->blocked};
    uint32_t *in = is_runnable(from) ? roots[0] : from == TIDE_JOB_BLOCKED ? roots[1] : NULL;
    uint32_t *out = is_runnable(to) ? roots[0] : to == TIDE_JOB_BLOCKED ? roots[1] : NULL;
    if (in != out && in != NULL)
        tide_pairing_remove(tracker->order_links, in, index, worse, tracker->slots);
    if (in != out && out != NULL)
        tide_pairing_add(tracker->order_links, out, index, worse, tracker->slots);
    if (is_timed(from))
        tide_pairing_remove(tracker->timer_links, &tracker->timers, index, earlier, tracker->slots);
    slot->job.state = to;
    slot->job.since_ms = now_ms;
    account->ready = account->ready + (to == TIDE_JOB_READY) - (from == TIDE_JOB_READY);
    account_settle(tracker, account);
}

/* Moves to a state with a due time; the key must be set before the heap uses it. */
static void slot_move_timed(tide_tracker *tracker, uint32_t index, tide_job_state to,
                            uint64_t due_ms, uint64_t now_ms)
{
    TIDE_ASSERT(is_timed(to));
    slot_move(tracker, index, to, now_ms);
    tracker->slots[index].due_ms = due_ms;
    tide_pairing_add(tracker->timer_links, &tracker->timers, index, earlier, tracker->slots);
}

/* READY, or WAITING when its time has not come. */
static void slot_runnable(tide_tracker *tracker, uint32_t index, uint64_t now_ms)
{
    uint64_t not_before_ms = tracker->slots[index].job.brief.not_before_ms;
    if (not_before_ms > now_ms)
        slot_move_timed(tracker, index, TIDE_JOB_WAITING, not_before_ms, now_ms);
    else
        slot_move(tracker, index, TIDE_JOB_READY, now_ms);
}

static uint32_t slot_find(const tide_tracker *tracker, uint64_t id)
{
    uint32_t index = 0;
    return id != 0 && tide_map_get(&tracker->ids, id, &index) ? index : NONE;
}

/* For transitions, whose job must be in the window. */
static uint32_t slot_known(const tide_tracker *tracker, uint64_t id)
{
    uint32_t index = slot_find(tracker, id);
    TIDE_ASSERT(index != NONE);
    return index;
}

static void slot_drop(tide_tracker *tracker, uint32_t index)
{
    struct slot *slot = &tracker->slots[index];
    slot_move(tracker, index, SLOT_FREE, 0);
    tracker->accounts[slot->account].jobs--;
    bool known = tide_map_remove(&tracker->ids, slot->job.brief.id);
    TIDE_ASSERT(known);
    slot->next_free = tracker->free;
    tracker->free = index;
    tracker->count--;
}

/* The account with most READY jobs; NULL: none has two.  An account that gives up a job keeps
 * another, so that it does not starve in turn. */
static const struct account *fattest(const tide_tracker *tracker)
{
    const struct account *most = NULL;
    for (uint32_t i = 0; i < tracker->accounts_used; i++) {
        const struct account *account = &tracker->accounts[i];
        if (account->ready > (most == NULL ? 1 : most->ready))
            most = account;
    }
    return most;
}

/* The last READY job of an account, or the WAITING job with the latest time of any.  Both scan
 * the window: they are used only for an account that has nothing ready while the window is full
 * of others, which ends once its job is added. */
static uint32_t last_ready_of(const tide_tracker *tracker, uint32_t account)
{
    uint32_t last = NONE;
    for (uint32_t i = 0; i < tracker->slots_used; i++)
        if (tracker->slots[i].job.state == TIDE_JOB_READY && tracker->slots[i].account == account &&
            (last == NONE || worse(tracker->slots, i, last)))
            last = i;
    return last;
}

static uint32_t latest_waiting(const tide_tracker *tracker)
{
    uint32_t latest = NONE;
    for (uint32_t i = 0; i < tracker->slots_used; i++)
        if (tracker->slots[i].job.state == TIDE_JOB_WAITING &&
            (latest == NONE || earlier(tracker->slots, latest, i)))
            latest = i;
    return latest;
}

/* The job to evict from a full window for `brief`; NONE: `brief` is not added. */
static uint32_t victim_for(const tide_tracker *tracker, const struct tide_brief *brief,
                           const struct account *account, uint64_t now_ms)
{
    /* A blocked job never keeps out a runnable one, or a window full of blocked children would
     * wait for a parent that is not in it (lesson 13). */
    uint32_t last = tracker->blocked;
    if (brief->open_deps > 0)
        return last != NONE && tide_brief_before(brief, &tracker->slots[last].job.brief) ? last
                                                                                         : NONE;
    if (last != NONE)
        return last;
    last = tracker->worst;
    bool after = last != NONE && tide_brief_before(brief, &tracker->slots[last].job.brief);
    if (brief->not_before_ms > now_ms)
        return after && tracker->slots[last].job.state == TIDE_JOB_WAITING ? last : NONE;
    if (after)
        return last;
    /* The first job of every account has a place, whatever the priority of the others: theirs
     * may be blocked for hours (lesson 8). */
    if (account->ready > 0)
        return NONE;
    const struct account *most = fattest(tracker);
    if (most != NULL) {
        TIDE_SEEN("tracker: place made for a starved account");
        return last_ready_of(tracker, (uint32_t)(most - tracker->accounts));
    }
    return latest_waiting(tracker);
}

tide_status tide_tracker_add(tide_tracker *tracker, const struct tide_brief *brief, uint64_t now_ms,
                             uint64_t *evicted_out)
{
    TIDE_ASSERT(brief->id != 0);
    if (slot_find(tracker, brief->id) != NONE)
        return TIDE_EXISTS;
    struct account *account = account_get(tracker, brief->account);
    if (account == NULL)
        return TIDE_FULL;
    uint64_t evicted = 0;
    if (tracker->count == tracker->window_max) {
        uint32_t victim = victim_for(tracker, brief, account, now_ms);
        if (victim == NONE) {
            TIDE_SEEN("tracker: window full");
            account_owe_job(tracker, account, brief, brief->not_before_ms > now_ms);
            return TIDE_FULL;
        }
        TIDE_SEEN("tracker: job evicted");
        struct slot *slot = &tracker->slots[victim];
        bool waiting = slot->job.state == TIDE_JOB_WAITING;
        evicted = slot->job.brief.id;
        slot_drop(tracker, victim);
        account_owe_job(tracker, &tracker->accounts[slot->account], &slot->job.brief, waiting);
    }

    uint32_t index = tracker->free;
    if (index != NONE)
        tracker->free = tracker->slots[index].next_free;
    else
        index = tracker->slots_used++;
    TIDE_ASSERT(index < tracker->window_max);
    struct slot *slot = &tracker->slots[index];
    memset(slot, 0, sizeof *slot);
    slot->job.brief = *brief;
    slot->job.state = SLOT_FREE;
    slot->account = (uint32_t)(account - tracker->accounts);
    account->jobs++;
    tracker->count++;
    bool put = tide_map_put(&tracker->ids, brief->id, index);
    TIDE_ASSERT(put); /* the room was reserved */
    if (brief->open_deps > 0)
        slot_move(tracker, index, TIDE_JOB_BLOCKED, now_ms);
    else
        slot_runnable(tracker, index, now_ms);
    *evicted_out = evicted;
    return TIDE_OK;
}

const struct tide_tracked *tide_tracker_find(const tide_tracker *tracker, uint64_t id)
{
    uint32_t index = slot_find(tracker, id);
    return index == NONE ? NULL : &tracker->slots[index].job;
}

bool tide_tracker_release(tide_tracker *tracker, uint64_t id, uint32_t account, uint32_t open_deps,
                          uint64_t now_ms)
{
    uint32_t index = slot_find(tracker, id);
    if (index == NONE) {
        /* It was evicted, or never fitted in: now it could run (TRK6). */
        if (open_deps == 0)
            tide_tracker_more(tracker, account);
        return false;
    }
    struct slot *slot = &tracker->slots[index];
    bool blocked = slot->job.state == TIDE_JOB_BLOCKED;
    if (!blocked && !is_runnable(slot->job.state))
        return false; /* claimed: the ledger released it before this message arrived */
    slot->job.brief.open_deps = open_deps;
    if (open_deps > 0 && !blocked)
        slot_move(tracker, index, TIDE_JOB_BLOCKED, now_ms);
    if (open_deps > 0 || !blocked)
        return false;
    slot_runnable(tracker, index, now_ms);
    return true;
}

void tide_tracker_claiming(tide_tracker *tracker, uint64_t id, uint64_t now_ms)
{
    uint32_t index = slot_known(tracker, id);
    TIDE_ASSERT(tracker->slots[index].job.state == TIDE_JOB_READY);
    slot_move(tracker, index, TIDE_JOB_CLAIMING, now_ms);
}

void tide_tracker_claimed(tide_tracker *tracker, uint64_t id, uint64_t token, uint64_t now_ms)
{
    TIDE_ASSERT(token != 0);
    uint32_t index = slot_known(tracker, id);
    TIDE_ASSERT(tracker->slots[index].job.state == TIDE_JOB_CLAIMING);
    slot_move(tracker, index, TIDE_JOB_CLAIMED, now_ms);
    tracker->slots[index].job.token = token;
}

void tide_tracker_started(tide_tracker *tracker, uint64_t id, uint64_t now_ms)
{
    uint32_t index = slot_known(tracker, id);
    TIDE_ASSERT(tracker->slots[index].job.state == TIDE_JOB_CLAIMED);
    slot_move(tracker, index, TIDE_JOB_RUNNING, now_ms);
}

void tide_tracker_parked(tide_tracker *tracker, uint64_t id, uint64_t until_ms, uint64_t now_ms)
{
    uint32_t index = slot_known(tracker, id);
    TIDE_ASSERT(tracker->slots[index].job.state == TIDE_JOB_RUNNING);
    slot_move_timed(tracker, index, TIDE_JOB_PARKED, until_ms, now_ms);
}

void tide_tracker_ending(tide_tracker *tracker, uint64_t id, uint64_t now_ms)
{
    uint32_t index = slot_known(tracker, id);
    TIDE_ASSERT(has_token(tracker->slots[index].job.state));
    slot_move(tracker, index, TIDE_JOB_ENDING, now_ms);
}

void tide_tracker_put_back(tide_tracker *tracker, uint64_t id, uint64_t not_before_ms,
                           uint16_t attempts, uint64_t now_ms)
{
    uint32_t index = slot_known(tracker, id);
    struct tide_tracked *job = &tracker->slots[index].job;
    TIDE_ASSERT(has_token(job->state) || job->state == TIDE_JOB_CLAIMING);
    job->token = 0;
    job->brief.not_before_ms = not_before_ms;
    job->brief.attempts = attempts;
    slot_runnable(tracker, index, now_ms);
}

void tide_tracker_remove(tide_tracker *tracker, uint64_t id)
{
    uint32_t index = slot_find(tracker, id);
    if (index != NONE)
        slot_drop(tracker, index);
}

void tide_tracker_body_set(tide_tracker *tracker, uint64_t id, void *body)
{
    tracker->slots[slot_known(tracker, id)].job.body = body;
}

bool tide_tracker_priority(tide_tracker *tracker, uint64_t id, uint8_t priority)
{
    TIDE_ASSERT(priority <= TIDE_PRIORITY_MAX);
    uint32_t index = slot_find(tracker, id);
    if (index == NONE)
        return false;
    struct tide_tracked *job = &tracker->slots[index].job;
    bool blocked = job->state == TIDE_JOB_BLOCKED;
    if ((!blocked && !is_runnable(job->state)) || priority <= job->brief.priority)
        return false;
    uint32_t *root = blocked ? &tracker->blocked : &tracker->worst;
    tide_pairing_remove(tracker->order_links, root, index, worse, tracker->slots);
    job->brief.priority = priority;
    tide_pairing_add(tracker->order_links, root, index, worse, tracker->slots);
    return true;
}

/* The time of evicted WAITING jobs has come: they have to be loaded. */
static void later_came(tide_tracker *tracker, uint64_t now_ms)
{
    TIDE_SEEN("tracker: time of a job given up has come");
    tracker->later_ms = UINT64_MAX;
    for (uint32_t i = 0; i < tracker->accounts_used; i++) {
        struct account *account = &tracker->accounts[i];
        if (account->later_ms <= now_ms) {
            account->later_ms = UINT64_MAX;
            account_owe(tracker, account, beginning);
        }
        if (account->later_ms < tracker->later_ms)
            tracker->later_ms = account->later_ms;
    }
}

uint64_t tide_tracker_due(tide_tracker *tracker, uint64_t now_ms)
{
    if (tracker->later_ms <= now_ms)
        later_came(tracker, now_ms);
    uint32_t index = tracker->timers;
    if (index == NONE || tracker->slots[index].due_ms > now_ms)
        return 0;
    bool parked = tracker->slots[index].job.state == TIDE_JOB_PARKED;
    slot_move(tracker, index, parked ? TIDE_JOB_CLAIMED : TIDE_JOB_READY, now_ms);
    return tracker->slots[index].job.brief.id;
}

uint64_t tide_tracker_due_at_ms(const tide_tracker *tracker, uint64_t id)
{
    const uint32_t index = slot_find(tracker, id);
    const bool timed = index != NONE && is_timed(tracker->slots[index].job.state);
    return timed ? tracker->slots[index].due_ms : 0;
}

uint64_t tide_tracker_wake_at_ms(const tide_tracker *tracker)
{
    uint64_t due_ms = tracker->timers == NONE ? UINT64_MAX : tracker->slots[tracker->timers].due_ms;
    return due_ms < tracker->later_ms ? due_ms : tracker->later_ms;
}

/* Would the first job of a starved account find a place? */
static bool starved_can_load(const tide_tracker *tracker)
{
    return tracker->count < tracker->window_max || tracker->states[TIDE_JOB_BLOCKED] > 0 ||
           tracker->states[TIDE_JOB_WAITING] > 0 || fattest(tracker) != NULL;
}

/* Accounts take turns in the order of their table. */
static struct account *refill_whom(tide_tracker *tracker)
{
    for (uint32_t step = 1;; step++) { /* ends: the counters said that there is one */
        TIDE_ASSERT(step <= tracker->accounts_used);
        uint32_t index = (tracker->turn + step) % tracker->accounts_used;
        struct account *account = &tracker->accounts[index];
        if (tracker->filling ? !account->loadable : !account->starved)
            continue;
        tracker->turn = index;
        return account;
    }
}

/* Blocked jobs give way to runnable ones, so they do not fill the window. */
static uint32_t refill_taken(const tide_tracker *tracker)
{
    return tracker->count - tracker->states[TIDE_JOB_BLOCKED] + tracker->promised;
}

static uint32_t refill_high(const tide_tracker *tracker)
{
    uint32_t high = tracker->window_max * tracker->to_permille / 1000;
    return high == 0 ? 1 : high;
}

static bool refill_filling(const tide_tracker *tracker)
{
    uint32_t taken = refill_taken(tracker);
    if (taken >= refill_high(tracker))
        return false;
    uint32_t low = (tracker->window_max * tracker->below_permille + 999) / 1000;
    return tracker->filling || taken < low;
}

bool tide_tracker_wants_refill(const tide_tracker *tracker)
{
    if (refill_filling(tracker))
        return tracker->loadable > 0;
    return tracker->starved > 0 && starved_can_load(tracker);
}

bool tide_tracker_refill(tide_tracker *tracker, struct tide_refill *refill_out)
{
    uint32_t taken = refill_taken(tracker);
    uint32_t high = refill_high(tracker);
    tracker->filling = refill_filling(tracker);
    if (!tide_tracker_wants_refill(tracker))
        return false;
    struct account *account = refill_whom(tracker);

    uint32_t room = taken < high ? high - taken : 0;
    uint32_t share = room / tracker->loadable;
    if (share == 0)
        share = tracker->filling ? 1 : STARVED_ROWS;
    account->asked = true;
    account->hole = false;
    account->promised = share;
    tracker->promised += share;
    account_settle(tracker, account);
    *refill_out =
        (struct tide_refill){account->number, account->cursor.priority, account->cursor.id, share};
    return true;
}

void tide_tracker_refilled(tide_tracker *tracker, const struct tide_refill *refill, uint32_t loaded,
                           const struct tide_brief *last)
{
    struct account *account = account_find(tracker, refill->account);
    TIDE_ASSERT(account != NULL);
    TIDE_ASSERT(account->asked);
    TIDE_ASSERT(loaded == 0 || last != NULL);
    account->asked = false;
    tracker->promised -= account->promised;
    account->promised = 0;
    account->more = loaded >= refill->count_max;
    if (account->more)
        account->cursor = (struct place){last->priority, last->id};
    account_settle(tracker, account);
    if (account->hole)
        account_owe(tracker, account, account->hole_at);
    account->hole = false;
}

void tide_tracker_more(tide_tracker *tracker, uint32_t account_number)
{
    struct account *account = account_get(tracker, account_number);
    if (account != NULL)
        account_owe(tracker, account, beginning);
}

bool tide_tracker_owes(const tide_tracker *tracker, uint32_t account_number, uint8_t priority,
                       uint64_t id)
{
    const struct account *account = account_find(tracker, account_number);
    struct place place = {priority, id};
    if (account == NULL)
        return false;
    return (account->more && place_before(account->cursor, place)) ||
           (account->hole && place_before(account->hole_at, place));
}

uint32_t tide_tracker_count(const tide_tracker *tracker)
{
    return tracker->count;
}

uint32_t tide_tracker_room(const tide_tracker *tracker)
{
    return tracker->window_max - tracker->count;
}

uint32_t tide_tracker_count_state(const tide_tracker *tracker, tide_job_state state)
{
    TIDE_ASSERT(state < TIDE_JOB_STATES);
    return tracker->states[state];
}

void tide_tracker_each(const tide_tracker *tracker,
                       bool (*visit)(const struct tide_tracked *job, void *arg), void *arg)
{
    for (uint32_t i = 0; i < tracker->slots_used; i++)
        if (tracker->slots[i].job.state != SLOT_FREE && !visit(&tracker->slots[i].job, arg))
            return;
}

size_t tide_tracker_bytes(const tide_tracker *tracker)
{
    /* A cell of a map is a 64-bit key and a 32-bit value, aligned. */
    const size_t cell_bytes = 16;
    return sizeof *tracker +
           tracker->window_max * (sizeof *tracker->slots + 2 * sizeof *tracker->order_links) +
           ACCOUNTS_MAX * sizeof *tracker->accounts +
           (tracker->ids.capacity + tracker->numbers.capacity) * cell_bytes;
}

/* One job by itself: TRK1 (found by its id), TRK2, TRK5. */
static bool check_slot(const tide_tracker *tracker, uint32_t index)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    const struct tide_tracked *job = &tracker->slots[index].job;
    uint32_t found = NONE;
    if (!tide_map_get(&tracker->ids, job->brief.id, &found) || found != index)
        return false;
    if ((job->state == TIDE_JOB_BLOCKED) != (job->brief.open_deps > 0))
        return false;
    if (has_token(job->state) != (job->token != 0))
        return false;
    return tracker->slots[index].account < tracker->accounts_used;
    /* GCOVR_EXCL_BR_STOP */
}

/* The recount of one account (TRK4) and what its flags must say. */
static bool check_account(const tide_tracker *tracker, uint32_t index)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    const struct account *account = &tracker->accounts[index];
    uint32_t jobs = 0;
    uint32_t ready = 0;
    for (uint32_t i = 0; i < tracker->slots_used; i++) {
        tide_job_state state = tracker->slots[i].job.state;
        if (state == SLOT_FREE || tracker->slots[i].account != index)
            continue;
        jobs++;
        ready += state == TIDE_JOB_READY;
    }
    if (jobs != account->jobs || ready != account->ready)
        return false;
    return (account->more || !account->asked) &&
           account->loadable == (account->more && !account->asked) &&
           account->starved == (account->loadable && ready == 0) &&
           account->later_ms >= tracker->later_ms;
    /* GCOVR_EXCL_BR_STOP */
}

bool tide_tracker_check(const tide_tracker *tracker)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    uint32_t states[TIDE_JOB_STATES] = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < tracker->slots_used; i++) {
        if (tracker->slots[i].job.state == SLOT_FREE)
            continue;
        if (!check_slot(tracker, i))
            return false;
        states[tracker->slots[i].job.state]++;
        count++;
    }
    if (count != tracker->count || count != tracker->ids.count || count > tracker->window_max ||
        memcmp(states, tracker->states, sizeof states) != 0)
        return false;
    uint32_t loadable = 0;
    uint32_t starved = 0;
    for (uint32_t i = 0; i < tracker->accounts_used; i++) {
        if (!check_account(tracker, i))
            return false;
        loadable += tracker->accounts[i].loadable;
        starved += tracker->accounts[i].starved;
    }
    if (loadable != tracker->loadable || starved != tracker->starved)
        return false;
    /* TRK3, and that the heaps hold whom they should, in order. */
    uint32_t timed = states[TIDE_JOB_WAITING] + states[TIDE_JOB_PARKED];
    uint32_t runnable = states[TIDE_JOB_WAITING] + states[TIDE_JOB_READY];
    return tide_pairing_count(tracker->timer_links, tracker->timers, count, earlier,
                              tracker->slots) == timed &&
           tide_pairing_count(tracker->order_links, tracker->worst, count, worse, tracker->slots) ==
               runnable &&
           tide_pairing_count(tracker->order_links, tracker->blocked, count, worse,
                              tracker->slots) == states[TIDE_JOB_BLOCKED];
    /* GCOVR_EXCL_BR_STOP */
}
