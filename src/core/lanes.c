#include "core/lanes.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"
#include "core/pairing.h"

#include <string.h>

#define NONE TIDE_SLOT_NONE

enum {
    ACCOUNTS_MAX = TIDE_ACCOUNTS_MAX + 1, /* and account 0 */
    LEVELS = 4,
    /* Starts of the other lane after which a lane without reserved workers is
     * served once: with one worker nothing can be reserved, and still neither
     * lane may starve (E3.1). */
    PASSED_MAX = 8,
};

typedef enum job_state { FREE, WANTED, CLAIMING, HELD, RUNNING, PARKED } job_state;

/* Per lane three heaps of accounts, each ordered by the account's own first job. */
enum { START = 0, LEND = 2, CLAIM = 4, HEAPS = 6 };

struct slot {
    uint64_t id;
    uint32_t account;
    uint32_t next; /* free list, or place in the list of running jobs */
    uint8_t state; /* job_state */
    uint8_t lane;
    uint8_t level; /* index: 0 means a user waits */
    uint8_t priority;
    bool preemptible;
    bool alone;       /* of an account; see brief.h */
    bool named;       /* its preemption was requested */
    bool lacks_units; /* SHORT: parked for units, and no call of it was charged since */
};

struct account {
    uint32_t number;
    uint32_t admitted;
    uint32_t jobs;
    uint32_t running;
    uint32_t named; /* running, preemption requested */
    uint32_t alone; /* running, and no other such one may (LAN6) */
    uint32_t alone_named;
    uint32_t parked[LEVELS];
    uint32_t lacks_units[LEVELS];
    uint32_t wants[LEVELS];                     /* WANTED */
    uint32_t pending[TIDE_LANES][LEVELS];       /* HELD and CLAIMING */
    uint32_t pending_alone[TIDE_LANES][LEVELS]; /* of them, those that run alone */
    uint32_t wanted[TIDE_LANES][LEVELS][2];     /* roots, by alone */
    uint32_t held[TIDE_LANES][LEVELS][2][2];    /* roots, by alone and preemptible */
    uint32_t key[HEAPS];                        /* first job; NONE: not in that heap */
    uint32_t counted[TIDE_LANES];               /* its part of lane.pending */
    uint8_t level;                              /* the first that waits; LEVELS: none */
};

struct lane {
    uint32_t running;
    uint32_t named;
    uint32_t waiting;
    uint32_t claimed; /* HELD and CLAIMING */
    uint32_t pending; /* of them, those that need nothing but a worker */
};

struct tide_lanes {
    tide_mem *mem;
    uint32_t workers;
    uint32_t reserved[TIDE_LANES];
    uint32_t passed; /* interactive starts in a row while a bulk job could start */
    uint32_t jobs_max;
    uint32_t count;
    uint32_t free;
    uint32_t slots_used;
    struct slot *slots;
    struct tide_link *links; /* a job is in one queue at a time */
    tide_map ids;
    struct lane lane[TIDE_LANES];
    uint32_t roots[HEAPS];
    uint32_t runs[TIDE_WORKERS_MAX];
    uint32_t runs_count;
    uint32_t can_preempt; /* running, preemptible and not named */
    struct account *accounts;
    size_t accounts_capacity;
    uint32_t accounts_used;
    struct tide_link *account_links; /* HEAPS of them per account */
    size_t account_links_capacity;
    tide_map numbers;
    bool lowered; /* limits were lowered: running may exceed them */
};

static bool job_before(const struct slot *a, const struct slot *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->id < b->id;
}

static bool slot_before(const void *context, uint32_t a, uint32_t b)
{
    const struct slot *slots = context;
    return job_before(&slots[a], &slots[b]);
}

/* Nodes of the account heaps are account * HEAPS + heap. */
static bool node_before(const void *context, uint32_t a, uint32_t b)
{
    const tide_lanes *lanes = context;
    return job_before(&lanes->slots[lanes->accounts[a / HEAPS].key[a % HEAPS]],
                      &lanes->slots[lanes->accounts[b / HEAPS].key[b % HEAPS]]);
}

static bool limits_valid(const struct tide_lanes_limits *limits)
{
    if (limits->workers == 0 || limits->workers > TIDE_WORKERS_MAX)
        return false;
    return limits->workers == 1 ||
           (uint64_t)limits->reserved[0] + limits->reserved[1] < limits->workers;
}

tide_status tide_lanes_new(const struct tide_lanes_limits *limits, uint32_t jobs_max, tide_mem *mem,
                           tide_lanes **lanes_out)
{
    TIDE_ASSERT(mem != NULL);
    if (!limits_valid(limits) || jobs_max == 0 || jobs_max > TIDE_WINDOW_JOBS_MAX)
        return TIDE_INVALID;
    tide_lanes *lanes = tide_mem_new(mem, sizeof *lanes);
    if (lanes == NULL)
        return TIDE_NO_MEMORY;
    lanes->mem = mem;
    lanes->jobs_max = jobs_max;
    lanes->free = NONE;
    memset(lanes->roots, 0xff, sizeof lanes->roots);
    tide_map_init(&lanes->ids, mem);
    tide_map_init(&lanes->numbers, mem);
    tide_lanes_limits_set(lanes, limits);
    lanes->lowered = false;
    lanes->slots = tide_mem_array(mem, jobs_max, sizeof *lanes->slots);
    lanes->links = tide_mem_array(mem, jobs_max, sizeof *lanes->links);
    if (lanes->slots == NULL || lanes->links == NULL || !tide_map_reserve(&lanes->ids, jobs_max)) {
        tide_lanes_free(lanes);
        return TIDE_NO_MEMORY;
    }
    *lanes_out = lanes;
    return TIDE_OK;
}

void tide_lanes_free(tide_lanes *lanes)
{
    if (lanes == NULL)
        return;
    tide_mem *mem = lanes->mem;
    tide_map_done(&lanes->numbers);
    tide_map_done(&lanes->ids);
    tide_mem_free(mem, lanes->account_links,
                  lanes->account_links_capacity * sizeof *lanes->account_links);
    tide_mem_free(mem, lanes->accounts, lanes->accounts_capacity * sizeof *lanes->accounts);
    tide_mem_free(mem, lanes->links, lanes->jobs_max * sizeof *lanes->links);
    tide_mem_free(mem, lanes->slots, lanes->jobs_max * sizeof *lanes->slots);
    tide_mem_free(mem, lanes, sizeof *lanes);
}

void tide_lanes_limits_set(tide_lanes *lanes, const struct tide_lanes_limits *limits)
{
    TIDE_ASSERT(limits_valid(limits));
    lanes->workers = limits->workers;
    for (int lane = 0; lane < TIDE_LANES; lane++)
        lanes->reserved[lane] = limits->workers == 1 ? 0 : limits->reserved[lane];
    lanes->lowered = lanes->runs_count > 0; /* LAN1 held under the old ones */
}

/* Account 0 stands for "none": its jobs have nothing in common, so no level
 * of one holds back another. */
static uint8_t level_of(const struct tide_brief *brief)
{
    return brief->account == 0 ? 0 : (uint8_t)(brief->level - 1);
}

/* The one of two jobs that orders first; each may be NONE. */
static uint32_t first_of(const tide_lanes *lanes, uint32_t a, uint32_t b)
{
    if (a == NONE || b == NONE)
        return a == NONE ? b : a;
    return slot_before(lanes->slots, b, a) ? b : a;
}

/* What the account offers to a lane at its level, where `room` more of its jobs may run. */
static void lane_offer(const tide_lanes *lanes, const struct account *account, int lane,
                       uint32_t room, uint32_t key[HEAPS], uint32_t *counted)
{
    const uint8_t level = account->level;
    const bool free = account->alone == 0; /* LAN6 */
    const uint32_t *plain = account->held[lane][level][0];
    const uint32_t *alone = account->held[lane][level][1];
    const uint32_t pending = account->pending[0][level] + account->pending[1][level];
    const uint32_t pending_alone =
        account->pending_alone[0][level] + account->pending_alone[1][level];
    key[LEND + lane] = first_of(lanes, plain[1], free ? alone[1] : NONE);
    key[START + lane] =
        first_of(lanes, key[LEND + lane], first_of(lanes, plain[0], free ? alone[0] : NONE));
    /* One that runs alone is claimed when its turn has come, or comes by a preemption. */
    const bool turn = pending_alone == 0 && account->alone == account->alone_named;
    if (pending < room)
        key[CLAIM + lane] = first_of(lanes, account->wanted[lane][level][0],
                                     turn ? account->wanted[lane][level][1] : NONE);
    *counted = account->pending[lane][level] - account->pending_alone[lane][level];
    if (free && account->pending_alone[lane][level] > 0)
        *counted += 1;
    if (*counted > room)
        *counted = room;
}

/* Updates the account's entries in the three heaps of each lane after any change; they follow
 * from its counts and queues.  `changed` names a job whose key changed although it is still the
 * first. */
static void account_settle(tide_lanes *lanes, uint32_t index, uint32_t changed)
{
    struct account *account = &lanes->accounts[index];
    uint8_t level = 0;
    while (level < LEVELS && account->wants[level] + account->pending[0][level] +
                                     account->pending[1][level] + account->lacks_units[level] ==
                                 0)
        level++;
    account->level = level;
    uint32_t key[HEAPS] = {NONE, NONE, NONE, NONE, NONE, NONE};
    uint32_t counted[TIDE_LANES] = {0, 0};
    if (level < LEVELS) {
        /* Held or parked jobs of lower levels wait for this level anyway, so they do not use up
         * the account's admitted number (LAN3, E3.3). */
        uint32_t used = account->running;
        for (int i = 0; i <= level; i++)
            used += account->parked[i];
        for (int lane = 0; lane < TIDE_LANES && used < account->admitted; lane++)
            lane_offer(lanes, account, lane, account->admitted - used, key, &counted[lane]);
    }
    for (uint32_t i = 0; i < HEAPS; i++) {
        if (key[i] == account->key[i] && (key[i] == NONE || key[i] != changed))
            continue;
        uint32_t node = index * HEAPS + i;
        if (account->key[i] != NONE)
            tide_pairing_remove(lanes->account_links, &lanes->roots[i], node, node_before, lanes);
        account->key[i] = key[i];
        if (key[i] != NONE)
            tide_pairing_add(lanes->account_links, &lanes->roots[i], node, node_before, lanes);
    }
    for (int lane = 0; lane < TIDE_LANES; lane++) {
        lanes->lane[lane].pending += counted[lane] - account->counted[lane];
        account->counted[lane] = counted[lane];
    }
}

/* Finds an account without state to remember and frees its entry for another. */
static uint32_t account_recycle(tide_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->accounts_used; i++) {
        if (lanes->accounts[i].jobs == 0 && lanes->accounts[i].admitted == TIDE_ADMIT_ALL) {
            TIDE_SEEN("lanes: account slot used again");
            tide_map_remove(&lanes->numbers, (uint64_t)lanes->accounts[i].number + 1);
            return i;
        }
    }
    return NONE;
}

static tide_status account_get(tide_lanes *lanes, uint32_t number, uint32_t *index_out)
{
    if (tide_map_get(&lanes->numbers, (uint64_t)number + 1, index_out))
        return TIDE_OK;
    uint32_t index = lanes->accounts_used;
    size_t wanted = (size_t)index + 1;
    if (index == ACCOUNTS_MAX) {
        index = account_recycle(lanes);
        if (index == NONE)
            return TIDE_FULL;
    } else if (!tide_map_reserve(&lanes->numbers, wanted) ||
               !TIDE_GROW_IN(lanes->mem, lanes->accounts, lanes->accounts_capacity, wanted,
                             ACCOUNTS_MAX) ||
               !TIDE_GROW_IN(lanes->mem, lanes->account_links, lanes->account_links_capacity,
                             wanted * HEAPS, (size_t)ACCOUNTS_MAX * HEAPS)) {
        return TIDE_NO_MEMORY;
    } else {
        lanes->accounts_used++;
    }
    bool put = tide_map_put(&lanes->numbers, (uint64_t)number + 1, index);
    TIDE_ASSERT(put); /* the room was reserved */
    struct account *account = &lanes->accounts[index];
    memset(account, 0, sizeof *account);
    memset(account->wanted, 0xff, sizeof account->wanted);
    memset(account->held, 0xff, sizeof account->held);
    memset(account->key, 0xff, sizeof account->key);
    account->number = number;
    account->admitted = TIDE_ADMIT_ALL;
    account->level = LEVELS;
    *index_out = index;
    return TIDE_OK;
}

tide_status tide_lanes_admit(tide_lanes *lanes, uint32_t account, uint32_t admitted)
{
    if (account == 0)
        return TIDE_OK; /* always all */
    uint32_t index = 0;
    if (admitted == TIDE_ADMIT_ALL && !tide_map_get(&lanes->numbers, (uint64_t)account + 1, &index))
        return TIDE_OK;
    tide_status rc = account_get(lanes, account, &index);
    if (rc != TIDE_OK)
        return rc;
    lanes->accounts[index].admitted = admitted;
    account_settle(lanes, index, NONE);
    return TIDE_OK;
}

static uint32_t *queue_of(tide_lanes *lanes, const struct slot *slot, job_state state)
{
    struct account *account = &lanes->accounts[slot->account];
    if (state == WANTED)
        return &account->wanted[slot->lane][slot->level][slot->alone];
    return state == HELD ? &account->held[slot->lane][slot->level][slot->alone][slot->preemptible]
                         : NULL;
}

static void runs_add(tide_lanes *lanes, uint32_t index)
{
    struct slot *slot = &lanes->slots[index];
    TIDE_ASSERT(lanes->runs_count < TIDE_WORKERS_MAX);
    slot->next = lanes->runs_count;
    slot->named = false;
    lanes->runs[lanes->runs_count++] = index;
    lanes->can_preempt += slot->preemptible;
    lanes->lane[slot->lane].running++;
    lanes->accounts[slot->account].running++;
    lanes->accounts[slot->account].alone += slot->alone;
}

static void runs_remove(tide_lanes *lanes, uint32_t index)
{
    struct slot *slot = &lanes->slots[index];
    uint32_t last = lanes->runs[--lanes->runs_count];
    lanes->runs[slot->next] = last;
    lanes->slots[last].next = slot->next;
    lanes->can_preempt -= slot->preemptible && !slot->named;
    lanes->lane[slot->lane].running--;
    lanes->lane[slot->lane].named -= slot->named;
    lanes->accounts[slot->account].running--;
    lanes->accounts[slot->account].named -= slot->named;
    lanes->accounts[slot->account].alone -= slot->alone;
    lanes->accounts[slot->account].alone_named -= slot->alone && slot->named;
    slot->named = false;
}

/* Every change of state goes through this function: it updates queues and counts. */
static void slot_move(tide_lanes *lanes, uint32_t index, job_state to)
{
    struct slot *slot = &lanes->slots[index];
    struct account *account = &lanes->accounts[slot->account];
    struct lane *lane = &lanes->lane[slot->lane];
    job_state from = (job_state)slot->state;
    TIDE_ASSERT(from != to);

    uint32_t *queue = queue_of(lanes, slot, from);
    if (queue != NULL)
        tide_pairing_remove(lanes->links, queue, index, slot_before, lanes->slots);
    account->wants[slot->level] -= from == WANTED;
    account->pending[slot->lane][slot->level] -= from == HELD || from == CLAIMING;
    account->pending_alone[slot->lane][slot->level] -=
        slot->alone && (from == HELD || from == CLAIMING);
    account->parked[slot->level] -= from == PARKED;
    lane->waiting -= from == WANTED || from == HELD;
    lane->claimed -= from == HELD || from == CLAIMING;
    if (from == RUNNING)
        runs_remove(lanes, index);

    slot->state = (uint8_t)to;
    queue = queue_of(lanes, slot, to);
    if (queue != NULL)
        tide_pairing_add(lanes->links, queue, index, slot_before, lanes->slots);
    account->wants[slot->level] += to == WANTED;
    account->pending[slot->lane][slot->level] += to == HELD || to == CLAIMING;
    account->pending_alone[slot->lane][slot->level] +=
        slot->alone && (to == HELD || to == CLAIMING);
    account->parked[slot->level] += to == PARKED;
    lane->waiting += to == WANTED || to == HELD;
    lane->claimed += to == HELD || to == CLAIMING;
    if (to == RUNNING)
        runs_add(lanes, index);
    account_settle(lanes, slot->account, NONE);
}

/* The caller settles the account. */
static void slot_lacks_units(tide_lanes *lanes, uint32_t index, bool lacks)
{
    struct slot *slot = &lanes->slots[index];
    uint32_t *count = &lanes->accounts[slot->account].lacks_units[slot->level];
    *count -= slot->lacks_units;
    slot->lacks_units = lacks;
    *count += lacks;
}

static uint32_t slot_find(const tide_lanes *lanes, uint64_t id)
{
    uint32_t index = 0;
    return id != 0 && tide_map_get(&lanes->ids, id, &index) ? index : NONE;
}

static tide_status slot_add(tide_lanes *lanes, const struct tide_brief *brief, job_state state)
{
    if (brief->id == 0 || brief->lane >= TIDE_LANES || brief->priority > TIDE_PRIORITY_MAX ||
        brief->level == 0 || brief->level > LEVELS)
        return TIDE_INVALID;
    if (lanes->count == lanes->jobs_max)
        return TIDE_FULL;
    uint32_t account = 0;
    tide_status rc = account_get(lanes, brief->account, &account);
    if (rc != TIDE_OK)
        return rc;
    uint32_t index = lanes->free;
    if (index != NONE)
        lanes->free = lanes->slots[index].next;
    else
        index = lanes->slots_used++;
    TIDE_ASSERT(index < lanes->jobs_max);
    lanes->slots[index] = (struct slot){.id = brief->id,
                                        .account = account,
                                        .state = FREE,
                                        .lane = brief->lane,
                                        .level = level_of(brief),
                                        .priority = brief->priority,
                                        .alone = brief->alone && brief->account != 0,
                                        .preemptible = brief->preemptible};
    bool put = tide_map_put(&lanes->ids, brief->id, index);
    TIDE_ASSERT(put); /* the room was reserved */
    lanes->count++;
    lanes->accounts[account].jobs++;
    slot_move(lanes, index, state);
    return TIDE_OK;
}

tide_status tide_lanes_wanted(tide_lanes *lanes, const struct tide_brief *brief)
{
    if (slot_find(lanes, brief->id) != NONE)
        return TIDE_EXISTS;
    return slot_add(lanes, brief, WANTED);
}

tide_status tide_lanes_held(tide_lanes *lanes, const struct tide_brief *brief)
{
    uint32_t index = slot_find(lanes, brief->id);
    if (index == NONE)
        return slot_add(lanes, brief, HELD);
    job_state state = (job_state)lanes->slots[index].state;
    if (state == HELD || state == RUNNING)
        return TIDE_EXISTS;
    slot_move(lanes, index, HELD);
    return TIDE_OK;
}

void tide_lanes_parked(tide_lanes *lanes, uint64_t id, bool for_units)
{
    uint32_t index = slot_find(lanes, id);
    TIDE_ASSERT(index != NONE);
    TIDE_ASSERT(lanes->slots[index].state == RUNNING);
    slot_lacks_units(lanes, index, for_units);
    slot_move(lanes, index, PARKED);
}

void tide_lanes_charged(tide_lanes *lanes, uint64_t id)
{
    uint32_t index = slot_find(lanes, id);
    if (index == NONE || !lanes->slots[index].lacks_units)
        return;
    slot_lacks_units(lanes, index, false);
    account_settle(lanes, lanes->slots[index].account, NONE);
}

void tide_lanes_left(tide_lanes *lanes, uint64_t id)
{
    uint32_t index = slot_find(lanes, id);
    if (index == NONE)
        return;
    slot_lacks_units(lanes, index, false);
    slot_move(lanes, index, FREE);
    lanes->accounts[lanes->slots[index].account].jobs--;
    tide_map_remove(&lanes->ids, id);
    lanes->slots[index].next = lanes->free;
    lanes->free = index;
    lanes->count--;
}

void tide_lanes_priority(tide_lanes *lanes, uint64_t id, uint8_t priority)
{
    TIDE_ASSERT(priority <= TIDE_PRIORITY_MAX);
    uint32_t index = slot_find(lanes, id);
    if (index == NONE || lanes->slots[index].state != WANTED)
        return;
    struct slot *slot = &lanes->slots[index];
    uint32_t *queue = queue_of(lanes, slot, WANTED);
    tide_pairing_remove(lanes->links, queue, index, slot_before, lanes->slots);
    /* The account may be in a heap by this very job; it must be removed before the key changes
     * and added again after. account_settle() does both, which is safe because removing compares
     * other accounts only. */
    slot->priority = priority;
    tide_pairing_add(lanes->links, queue, index, slot_before, lanes->slots);
    account_settle(lanes, slot->account, index);
}

static uint32_t workers_free(const tide_lanes *lanes)
{
    return lanes->workers > lanes->runs_count ? lanes->workers - lanes->runs_count : 0;
}

/* How many jobs a lane may run without borrowing. */
static uint32_t capacity(const tide_lanes *lanes, int lane)
{
    return lanes->workers - lanes->reserved[1 - lane];
}

/* No job of this lane could start now or after a claim: it lends its workers. */
static bool lane_idle(const tide_lanes *lanes, int lane)
{
    return lanes->roots[CLAIM + lane] == NONE && lanes->lane[lane].pending == 0;
}

/* The job that the next free worker of this lane would get, or NONE. */
static uint32_t lane_first(const tide_lanes *lanes, int lane)
{
    if (workers_free(lanes) == 0)
        return NONE;
    uint32_t node = NONE;
    if (lanes->lane[lane].running < capacity(lanes, lane))
        node = lanes->roots[START + lane];
    else if (lane_idle(lanes, 1 - lane))
        node = lanes->roots[LEND + lane];
    return node == NONE ? NONE : lanes->accounts[node / HEAPS].key[node % HEAPS];
}

bool tide_lanes_next_start(tide_lanes *lanes, uint64_t *id_out)
{
    uint32_t interactive = lane_first(lanes, TIDE_LANE_INTERACTIVE);
    uint32_t bulk = lane_first(lanes, TIDE_LANE_BULK);
    uint32_t index = interactive;
    bool bulk_turn = lanes->reserved[TIDE_LANE_BULK] == 0 && lanes->passed >= PASSED_MAX;
    if (interactive == NONE || (bulk != NONE && bulk_turn))
        index = bulk;
    if (index == NONE)
        return false;
    lanes->passed = index == interactive && bulk != NONE ? lanes->passed + 1 : 0;
    *id_out = lanes->slots[index].id;
    slot_move(lanes, index, RUNNING);
    return true;
}

bool tide_lanes_can_start(const tide_lanes *lanes)
{
    return lane_first(lanes, TIDE_LANE_INTERACTIVE) != NONE ||
           lane_first(lanes, TIDE_LANE_BULK) != NONE;
}

/* Workers this lane could give a job now, or gets back once it has one. */
static uint32_t lane_room(const tide_lanes *lanes, int lane)
{
    uint32_t running = lanes->lane[lane].running;
    uint32_t room = workers_free(lanes);
    uint32_t own = capacity(lanes, lane) > running ? capacity(lanes, lane) - running : 0;
    if (room > own && !lane_idle(lanes, 1 - lane))
        room = own;
    uint32_t due = lanes->reserved[lane] > running ? lanes->reserved[lane] - running : 0;
    return room > due ? room : due;
}

bool tide_lanes_next_claim(tide_lanes *lanes, uint32_t ahead, uint64_t *id_out)
{
    for (int lane = 0; lane < TIDE_LANES; lane++) {
        uint32_t node = lanes->roots[CLAIM + lane];
        if (node == NONE || lanes->lane[lane].pending >= (uint64_t)lane_room(lanes, lane) + ahead)
            continue;
        uint32_t index = lanes->accounts[node / HEAPS].key[node % HEAPS];
        *id_out = lanes->slots[index].id;
        slot_move(lanes, index, CLAIMING);
        return true;
    }
    return false;
}

/* Is there a worker for one more job of this lane after all that are HELD or being claimed?  Those
 * that wait for another level count too: its end may let them start first.  Only an interactive job
 * may ignore those of the other lane, and not where they have their turns. */
static bool worker_left(const tide_lanes *lanes, int lane)
{
    const uint32_t free = workers_free(lanes);
    const struct lane *self = &lanes->lane[lane];
    if (self->claimed >= free || self->running + self->claimed >= capacity(lanes, lane))
        return false;
    if (lane == TIDE_LANE_INTERACTIVE && lanes->reserved[TIDE_LANE_BULK] > 0)
        return true;
    return lanes->roots[CLAIM + 1 - lane] == NONE &&
           self->claimed + lanes->lane[1 - lane].claimed < free;
}

bool tide_lanes_at_once(tide_lanes *lanes, const struct tide_brief *brief)
{
    if (tide_lanes_wanted(lanes, brief) != TIDE_OK)
        return false;
    const uint32_t index = slot_find(lanes, brief->id);
    const struct slot *slot = &lanes->slots[index];
    const uint32_t node = lanes->roots[CLAIM + slot->lane];
    /* What runs alone may be claimed while another such one is being preempted (LAN6). */
    if (node != NONE && lanes->accounts[node / HEAPS].key[node % HEAPS] == index &&
        !(slot->alone && lanes->accounts[slot->account].alone > 0) &&
        worker_left(lanes, slot->lane)) {
        slot_move(lanes, index, CLAIMING);
        return true;
    }
    tide_lanes_left(lanes, brief->id);
    return false;
}

/* Does this lane miss a reserved worker that the other one has borrowed? */
static bool lane_needs_back(const tide_lanes *lanes, int lane)
{
    const struct lane *self = &lanes->lane[lane];
    const struct lane *other = &lanes->lane[1 - lane];
    if (self->running >= lanes->reserved[lane])
        return false;
    uint32_t due = lanes->reserved[lane] - self->running;
    uint32_t wants = self->pending + (lanes->roots[CLAIM + lane] != NONE);
    if (wants < due)
        due = wants;
    uint32_t coming = workers_free(lanes) + self->named + other->named;
    return due > coming; /* then the other lane runs more than its own share */
}

/* Does a more urgent job of the account, which runs alone as this one does, wait for its end? */
static bool alone_needs_back(const tide_lanes *lanes, const struct slot *slot)
{
    const struct account *account = &lanes->accounts[slot->account];
    const uint8_t level = account->level;
    uint32_t first = NONE;
    if (!slot->alone || account->admitted == 0 || level > slot->level)
        return false;
    for (int lane = 0; lane < TIDE_LANES; lane++) {
        if (account->pending_alone[lane][level] > 0 && level < slot->level)
            return true; /* perhaps being claimed, and then in no queue */
        first = first_of(lanes, first, account->wanted[lane][level][1]);
        first = first_of(lanes, first, account->held[lane][level][1][0]);
        first = first_of(lanes, first, account->held[lane][level][1][1]);
    }
    return first != NONE && (level < slot->level || lanes->slots[first].priority > slot->priority);
}

/* Does a job of the same account with a more urgent level need what this one holds? */
static bool account_needs_back(const tide_lanes *lanes, const struct slot *slot)
{
    const struct account *account = &lanes->accounts[slot->account];
    uint8_t level = account->level;
    if (level >= slot->level || account->admitted == 0)
        return false;
    uint32_t waiting =
        account->wants[level] + account->pending[0][level] + account->pending[1][level];
    if (waiting <= account->named)
        return false; /* enough of them are being preempted already */
    uint32_t used = account->running - account->named;
    for (int i = 0; i <= level; i++)
        used += account->parked[i];
    if (used >= account->admitted)
        return true;
    uint32_t named = lanes->lane[0].named + lanes->lane[1].named;
    for (int lane = 0; lane < TIDE_LANES; lane++) {
        if (account->wanted[lane][level][0] == NONE && account->wanted[lane][level][1] == NONE &&
            account->pending[lane][level] == 0)
            continue;
        uint32_t running = lanes->lane[lane].running - lanes->lane[lane].named;
        bool full = running >= capacity(lanes, lane);
        bool helps = running - (slot->lane == lane) < capacity(lanes, lane);
        if (helps && (full || workers_free(lanes) + named == 0))
            return true;
    }
    return false;
}

bool tide_lanes_next_preempt(tide_lanes *lanes, uint64_t *id_out)
{
    if (lanes->can_preempt == 0)
        return false;
    bool lane_wants[TIDE_LANES] = {lane_needs_back(lanes, 0), lane_needs_back(lanes, 1)};
    uint32_t victim = NONE;
    for (uint32_t i = 0; i < lanes->runs_count; i++) {
        const struct slot *slot = &lanes->slots[lanes->runs[i]];
        if (!slot->preemptible || slot->named)
            continue;
        if (!lane_wants[1 - slot->lane] && !account_needs_back(lanes, slot) &&
            !alone_needs_back(lanes, slot))
            continue;
        /* The job that orders last loses least. */
        if (victim == NONE || job_before(&lanes->slots[victim], slot))
            victim = lanes->runs[i];
    }
    if (victim == NONE)
        return false;
    TIDE_SEEN("lanes: preemption asked");
    struct slot *slot = &lanes->slots[victim];
    slot->named = true;
    lanes->can_preempt--;
    lanes->lane[slot->lane].named++;
    lanes->accounts[slot->account].named++;
    lanes->accounts[slot->account].alone_named += slot->alone;
    account_settle(lanes, slot->account, NONE); /* what runs alone may be claimed now */
    *id_out = slot->id;
    return true;
}

uint32_t tide_lanes_running(const tide_lanes *lanes, tide_lane lane)
{
    return lanes->lane[lane].running;
}

uint32_t tide_lanes_waiting(const tide_lanes *lanes, tide_lane lane)
{
    return lanes->lane[lane].waiting;
}

tide_lanes_why tide_lanes_explain(const tide_lanes *lanes, uint64_t id)
{
    uint32_t index = slot_find(lanes, id);
    if (index == NONE || lanes->slots[index].state == PARKED)
        return TIDE_WHY_UNKNOWN;
    const struct slot *slot = &lanes->slots[index];
    if (slot->state == RUNNING)
        return TIDE_WHY_NOTHING;
    const struct account *account = &lanes->accounts[slot->account];
    if (slot->level > account->level)
        return TIDE_WHY_LEVEL;
    uint32_t used = account->running;
    for (int i = 0; i <= slot->level; i++)
        used += account->parked[i];
    if (slot->state == WANTED)
        used += account->pending[0][slot->level] + account->pending[1][slot->level];
    if (used >= account->admitted)
        return TIDE_WHY_ACCOUNT_FULL;
    if (slot->alone && account->alone > 0)
        return TIDE_WHY_ORDER; /* LAN6 */
    int lane = slot->lane;
    bool borrows = lanes->lane[lane].running >= capacity(lanes, lane);
    if (workers_free(lanes) == 0 ||
        (borrows && (!slot->preemptible || !lane_idle(lanes, 1 - lane))))
        return TIDE_WHY_LANE_FULL;
    const uint32_t firsts[2] = {lanes->roots[(borrows ? LEND : START) + lane],
                                slot->state == WANTED ? lanes->roots[CLAIM + lane] : NONE};
    for (int i = 0; i < 2; i++)
        if (firsts[i] != NONE &&
            job_before(&lanes->slots[lanes->accounts[firsts[i] / HEAPS].key[firsts[i] % HEAPS]],
                       slot))
            return TIDE_WHY_ORDER;
    return TIDE_WHY_NOTHING;
}

/* Recounts the jobs, to compare with the kept counts. */
static void recount_account(const tide_lanes *lanes, uint32_t index, struct account *sum)
{
    memset(sum, 0, sizeof *sum);
    for (uint32_t i = 0; i < lanes->slots_used; i++) {
        const struct slot *slot = &lanes->slots[i];
        if (slot->state == FREE || slot->account != index)
            continue;
        sum->jobs++;
        sum->running += slot->state == RUNNING;
        sum->named += slot->named;
        sum->alone += slot->alone && slot->state == RUNNING;
        sum->alone_named += slot->alone && slot->named;
        sum->parked[slot->level] += slot->state == PARKED;
        sum->lacks_units[slot->level] += slot->lacks_units;
        sum->wants[slot->level] += slot->state == WANTED;
        sum->pending[slot->lane][slot->level] += slot->state == HELD || slot->state == CLAIMING;
        sum->pending_alone[slot->lane][slot->level] +=
            slot->alone && (slot->state == HELD || slot->state == CLAIMING);
    }
}

static bool check_account(const tide_lanes *lanes, uint32_t index)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    const struct account *account = &lanes->accounts[index];
    struct account sum;
    recount_account(lanes, index, &sum);
    if (sum.jobs != account->jobs || sum.running != account->running ||
        sum.named != account->named || sum.alone != account->alone || sum.alone > 1 ||
        sum.alone_named != account->alone_named ||
        memcmp(sum.pending_alone, account->pending_alone, sizeof sum.pending_alone) != 0 ||
        memcmp(sum.parked, account->parked, sizeof sum.parked) != 0 ||
        memcmp(sum.lacks_units, account->lacks_units, sizeof sum.lacks_units) != 0 ||
        memcmp(sum.wants, account->wants, sizeof sum.wants) != 0 ||
        memcmp(sum.pending, account->pending, sizeof sum.pending) != 0)
        return false;
    for (int level = 0; level < LEVELS; level++) {
        uint32_t wants = 0;
        for (int lane = 0; lane < TIDE_LANES; lane++) {
            uint32_t held = 0;
            for (int i = 0; i < 2; i++)
                wants += tide_pairing_count(lanes->links, account->wanted[lane][level][i],
                                            lanes->jobs_max, slot_before, lanes->slots);
            for (int i = 0; i < 4; i++)
                held += tide_pairing_count(lanes->links, account->held[lane][level][i / 2][i % 2],
                                           lanes->jobs_max, slot_before, lanes->slots);
            if (held > account->pending[lane][level])
                return false;
        }
        if (wants != account->wants[level])
            return false;
    }
    return true;
    /* GCOVR_EXCL_BR_STOP */
}

static bool check_heaps(const tide_lanes *lanes)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    for (uint32_t heap = 0; heap < HEAPS; heap++) {
        uint32_t inside = 0;
        for (uint32_t i = 0; i < lanes->accounts_used; i++)
            inside += lanes->accounts[i].key[heap] != NONE;
        if (tide_pairing_count(lanes->account_links, lanes->roots[heap], lanes->accounts_used,
                               node_before, lanes) != inside)
            return false;
    }
    return true;
    /* GCOVR_EXCL_BR_STOP */
}

bool tide_lanes_check(const tide_lanes *lanes)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    struct lane sum[TIDE_LANES] = {{0}};
    uint32_t fixed[TIDE_LANES] = {0, 0}; /* running and not preemptible */
    uint32_t count = 0;
    uint32_t can_preempt = 0;
    for (uint32_t i = 0; i < lanes->slots_used; i++) {
        const struct slot *slot = &lanes->slots[i];
        if (slot->state == FREE)
            continue;
        count++;
        sum[slot->lane].running += slot->state == RUNNING;
        sum[slot->lane].named += slot->named;
        sum[slot->lane].waiting += slot->state == WANTED || slot->state == HELD;
        sum[slot->lane].claimed += slot->state == HELD || slot->state == CLAIMING;
        fixed[slot->lane] += slot->state == RUNNING && !slot->preemptible;
        can_preempt += slot->state == RUNNING && slot->preemptible && !slot->named;
        if (slot_find(lanes, slot->id) != i || (slot->named && slot->state != RUNNING))
            return false;
        if (slot->state == RUNNING && lanes->runs[slot->next] != i)
            return false;
    }
    for (uint32_t i = 0; i < lanes->accounts_used; i++) {
        if (!check_account(lanes, i))
            return false;
        for (int lane = 0; lane < TIDE_LANES; lane++)
            sum[lane].pending += lanes->accounts[i].counted[lane];
    }
    if (count != lanes->count || count != lanes->ids.count || can_preempt != lanes->can_preempt ||
        memcmp(sum, lanes->lane, sizeof sum) != 0 ||
        sum[0].running + sum[1].running != lanes->runs_count)
        return false;
    for (int lane = 0; lane < TIDE_LANES && !lanes->lowered; lane++)
        if (fixed[lane] > capacity(lanes, lane) || lanes->runs_count > lanes->workers)
            return false; /* LAN1 */
    return check_heaps(lanes);
    /* GCOVR_EXCL_BR_STOP */
}
