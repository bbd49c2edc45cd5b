/* Every order in which things can happen in a small world, on the real tracker,
 * lanes and frontier.
 *
 * The world: three workers, a window of three, one stream of four cycles with
 * five jobs, one of which needs two others; and either one job may split in two
 * and one trouble come, or two troubles, anywhere: a retry, a failure (revived later), a park,
 * a preemption, a crash (all memory is lost and rebuilt from the ledger) or a
 * pause (a worker's claim is given away and its result comes later, E1.8).
 *
 * The ledger is a table in this file: what is in it survives a crash.  The glue
 * between ledger and core is what the engine does, in its smallest form.
 *
 * Method: depth first over all actions on snapshots of all memory; a state is
 * left as soon as its canonical form was seen before.  Invariants
 * are checked in each state, and a state without a next step must have
 * all work done.  Then the glue gets one planted bug at a time, ten in all, and
 * the exploration must find each: that shows that the net has no such holes. */
#include "base/map.h"

#include "base/hash.h"
#include "core/frontier.h"
#include "core/lanes.h"
#include "core/tracker.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

enum {
    WORKERS = 3,
    CYCLES = 4,
    JOBS = 5,
    CHILDREN = 2,
    ROWS = JOBS + CHILDREN, /* ids 1..ROWS; the children exist after a split */
    WINDOW = 3,
    DEPTH_MAX = 160,
    NOW_MS = 1, /* time stands still: what is parked is due at once, in any order */
};

typedef enum bug {
    NO_BUG,
    FINISH_WITHOUT_TOKEN,
    CURSOR_BEFORE_CHILDREN,
    START_BEFORE_CLAIM_IS_DURABLE,
    PUT_BACK_KEEPS_LANE,
    CHILDREN_AFTER_DONE,
    RECLAIM_OF_LIVE_OWNER,
    RELEASE_TWICE,
    FAILED_COUNTS_AS_DONE,
    REFILL_SKIPS_EVICTED,
    START_TWICE_AFTER_PARK,
    BUGS,
} bug;

static const char *const bug_names[BUGS] = {
    "none",
    "finish without token check",
    "cursor moved before children are counted",
    "start before the claim is durable",
    "put back forgets the lanes",
    "children added after the parent's done",
    "reclaim of a live owner",
    "dependents released twice",
    "failed job finishes its cycle",
    "refill skips what was evicted",
    "parked job keeps its worker",
};

/* What survives a crash. */
typedef enum row_state { NOT_YET, PENDING, CLAIMED, DONE, FAILED } row_state;
struct row {
    row_state state;
    uint8_t cycle;
    uint8_t token; /* of the last claim */
    uint8_t open_deps;
    uint8_t done_count; /* how often its effect was committed */
    bool split;
};
struct ledger {
    struct row rows[ROWS + 1]; /* by id */
    uint8_t cursor;
};

/* Troubles left, each at most once, `all` in total. */
struct budget {
    uint8_t all, retry, fail, park, preempt, crash, pause, split;
};

struct worker {
    uint8_t job; /* 0: idle */
    uint8_t token;
};

struct world {
    struct ledger ledger;
    struct budget budget;
    struct worker workers[WORKERS];
    struct worker zombie; /* its claim was given away */
    uint8_t claiming;     /* job whose claim is not committed yet */
    uint8_t orphans_of;   /* a split whose children are still to be added (planted bug) */
    uint16_t evicted;     /* bits by id (planted bug) */
    uint8_t cursor_was;
    tide_tracker *tracker;
    tide_lanes *lanes;
    tide_frontier *frontier;
    struct cycle_counts {
        uint8_t outstanding, failed;
        bool finished;
    } counts[CYCLES]; /* as the engine has them from the ledger */
    bug bug;
    const char *broken; /* an invariant that did not hold */
};

typedef enum action {
    REFILL,
    CLAIM,
    CLAIM_COMMIT,
    START,
    DUE,
    CURSOR,
    ZOMBIE,
    REVIVE,
    ORPHANS,
    WORKER_DONE, /* + worker */
    PROGRESS = WORKER_DONE + WORKERS,
    CRASH = PROGRESS,
    PREEMPT,
    WORKER_RETRY,
    WORKER_FAIL = WORKER_RETRY + WORKERS,
    WORKER_PARK = WORKER_FAIL + WORKERS,
    WORKER_PAUSE = WORKER_PARK + WORKERS,
    WORKER_SPLIT = WORKER_PAUSE + WORKERS,
    RECLAIM = WORKER_SPLIT + WORKERS,
    ACTIONS,
} action;

/* Memory for the three modules: a bump allocator over one room, so that a state
 * can be put away and brought back by copying. */
enum { BLOCK = 64, BLOCKS = (1 << 20) / BLOCK, LIVE_MAX = 512, LEARN = 4000 };
static _Alignas(64) unsigned char room[BLOCKS * BLOCK];
static size_t room_used;

static void *room_resize(tide_mem *mem, void *old, size_t old_bytes, size_t new_bytes)
{
    (void)mem;
    if (new_bytes == 0)
        return NULL;
    new_bytes = (new_bytes + BLOCK - 1) / BLOCK * BLOCK;
    if (room_used + new_bytes > sizeof room)
        return NULL;
    void *block = room + room_used;
    room_used += new_bytes;
    if (old != NULL)
        memcpy(block, old, old_bytes);
    return block;
}
static tide_mem room_mem = {room_resize};

static struct tide_brief brief_of(const struct world *world, unsigned id)
{
    const struct row *row = &world->ledger.rows[id];
    return (struct tide_brief){.id = id,
                               .cycle = row->cycle,
                               .account = 1,
                               .open_deps = row->open_deps,
                               .priority = id > JOBS ? 50 : 30,
                               .lane = id == 1 ? TIDE_LANE_INTERACTIVE : TIDE_LANE_BULK,
                               .level = 4,
                               .preemptible = id != 2};
}

static void broken(struct world *world, const char *what)
{
    if (world->broken == NULL)
        world->broken = what;
}

static void world_add(struct world *world, unsigned id)
{
    struct tide_brief brief = brief_of(world, id);
    uint64_t evicted = 0;
    if (tide_tracker_add(world->tracker, &brief, NOW_MS, &evicted) != TIDE_OK)
        return;
    if (evicted != 0) {
        tide_lanes_left(world->lanes, evicted);
        world->evicted |= (uint16_t)(1u << evicted);
    }
    world->evicted &= (uint16_t) ~(1u << id);
    if (brief.open_deps == 0)
        (void)tide_lanes_wanted(world->lanes, &brief);
}

/* ---- the jobs of cycles, in memory ---- */

static void cycle_maybe_finish(struct world *world, uint64_t cycle)
{
    struct cycle_counts *counts = &world->counts[cycle];
    if (counts->outstanding > 0 || counts->failed > 0)
        return;
    counts->finished = true;
    tide_frontier_finish(world->frontier, cycle);
}

/* false: the cycle is finished, and the cursor may have passed it. */
static bool cycle_jobs_added(struct world *world, uint64_t cycle, unsigned count)
{
    if (world->counts[cycle].finished)
        return false;
    world->counts[cycle].outstanding = (uint8_t)(world->counts[cycle].outstanding + count);
    return true;
}

static void cycle_job_done(struct world *world, uint64_t cycle)
{
    assert_true(world->counts[cycle].outstanding > 0);
    world->counts[cycle].outstanding--;
    cycle_maybe_finish(world, cycle);
}

static void cycle_job_failed(struct world *world, uint64_t cycle)
{
    assert_true(world->counts[cycle].outstanding > 0);
    world->counts[cycle].outstanding--;
    world->counts[cycle].failed++;
}

/* Memory from the ledger: at the start and after a crash (E1.7, E5.6). */
static void world_boot(struct world *world)
{
    room_used = 0;
    struct tide_lanes_limits limits = {WORKERS, {1, 1}};
    bool made = tide_tracker_new(WINDOW, &room_mem, &world->tracker) == TIDE_OK &&
                tide_lanes_new(&limits, WINDOW + 1, &room_mem, &world->lanes) == TIDE_OK &&
                tide_frontier_new(world->ledger.cursor, &room_mem, &world->frontier) == TIDE_OK;
    assert_true(made);
    memset(world->workers, 0, sizeof world->workers);
    memset(world->counts, 0, sizeof world->counts);
    world->claiming = 0;
    world->orphans_of = 0;
    world->evicted = 0;
    for (unsigned id = 1; id <= ROWS; id++)
        if (world->ledger.rows[id].state == CLAIMED)
            world->ledger.rows[id].state = PENDING;
    for (uint64_t cycle = 0; cycle < world->ledger.cursor; cycle++)
        world->counts[cycle].finished = true;
    for (uint64_t cycle = world->ledger.cursor; cycle < CYCLES; cycle++) {
        OK(tide_frontier_open(world->frontier, cycle));
        for (unsigned id = 1; id <= ROWS; id++) {
            const struct row *row = &world->ledger.rows[id];
            if (row->cycle == cycle && row->state == PENDING)
                world->counts[cycle].outstanding++;
            if (row->cycle == cycle && row->state == FAILED)
                world->counts[cycle].failed++;
        }
        cycle_maybe_finish(world, cycle);
    }
    tide_tracker_more(world->tracker, 1);
}

static void world_init(struct world *world, bug planted, struct budget budget)
{
    static const uint8_t cycles[JOBS + 1] = {0, 0, 1, 2, 2, 3};
    memset(world, 0, sizeof *world);
    world->bug = planted;
    world->budget = budget;
    for (unsigned id = 1; id <= JOBS; id++)
        world->ledger.rows[id] = (struct row){.state = PENDING, .cycle = cycles[id]};
    world->ledger.rows[4].open_deps = 2; /* needs 1 and 2 */
    world_boot(world);
}

static bool do_refill(struct world *world)
{
    struct tide_refill refill;
    if (!tide_tracker_refill(world->tracker, &refill))
        return false;
    struct tide_brief last = {.id = refill.after_id, .priority = refill.after_priority};
    uint32_t loaded = 0;
    for (; loaded < refill.count_max; loaded++) {
        struct tide_brief first = {0};
        for (unsigned id = 1; id <= ROWS; id++) {
            struct tide_brief brief = brief_of(world, id);
            bool skip = world->bug == REFILL_SKIPS_EVICTED && (world->evicted >> id & 1) != 0;
            if (world->ledger.rows[id].state == PENDING && brief.open_deps == 0 && !skip &&
                tide_brief_before(&last, &brief) &&
                (first.id == 0 || tide_brief_before(&brief, &first)))
                first = brief;
        }
        if (first.id == 0)
            break;
        last = first;
        world_add(world, (unsigned)first.id);
    }
    tide_tracker_refilled(world->tracker, &refill, loaded, &last);
    return true;
}

static bool do_claim_commit(struct world *world)
{
    unsigned id = world->claiming;
    if (id == 0)
        return false;
    world->claiming = 0;
    struct row *row = &world->ledger.rows[id];
    uint8_t token = (uint8_t)(row->token + 1);
    if (world->bug != START_BEFORE_CLAIM_IS_DURABLE) {
        row->state = CLAIMED;
        row->token = token;
    }
    struct tide_brief brief = brief_of(world, id);
    tide_tracker_claimed(world->tracker, id, token, NOW_MS);
    (void)tide_lanes_held(world->lanes, &brief);
    return true;
}

static bool do_claim(struct world *world)
{
    uint64_t id = 0;
    if (world->claiming != 0 || !tide_lanes_next_claim(world->lanes, 1, &id))
        return false;
    tide_tracker_claiming(world->tracker, id, NOW_MS);
    world->claiming = (uint8_t)id;
    return true;
}

static bool do_start(struct world *world)
{
    uint64_t id = 0;
    if (!tide_lanes_next_start(world->lanes, &id))
        return false;
    tide_tracker_started(world->tracker, id, NOW_MS);
    for (int i = 0; i < WORKERS; i++) {
        if (world->workers[i].job != 0)
            continue;
        uint64_t token = tide_tracker_find(world->tracker, id)->token;
        world->workers[i] = (struct worker){(uint8_t)id, (uint8_t)token};
        return true;
    }
    broken(world, "a start without a free worker");
    return true;
}

/* The ledger's own rule: only the holder of the claim changes the row (E1.8). */
static bool ledger_holds(const struct world *world, unsigned id, unsigned token)
{
    const struct row *row = &world->ledger.rows[id];
    return world->bug == FINISH_WITHOUT_TOKEN || world->bug == START_BEFORE_CLAIM_IS_DURABLE ||
           (row->state == CLAIMED && row->token == token);
}

static void ledger_done(struct world *world, unsigned id)
{
    struct row *row = &world->ledger.rows[id];
    row->state = DONE;
    row->done_count++;
    uint8_t *open_deps = &world->ledger.rows[4].open_deps;
    if ((id == 1 || id == 2) && *open_deps > 0)
        (*open_deps)--;
    if (id == 1 && *open_deps > 0 && world->bug == RELEASE_TWICE)
        (*open_deps)--;
}

static void ledger_children(struct world *world, unsigned parent)
{
    for (unsigned id = JOBS + 1; id <= ROWS; id++)
        world->ledger.rows[id] =
            (struct row){.state = PENDING, .cycle = world->ledger.rows[parent].cycle};
}

/* After the commit: memory follows the ledger. */
static void memory_gone(struct world *world, unsigned id)
{
    tide_tracker_ending(world->tracker, id, NOW_MS);
    tide_tracker_remove(world->tracker, id);
    tide_lanes_left(world->lanes, id);
}

static void memory_done(struct world *world, unsigned id)
{
    memory_gone(world, id);
    cycle_job_done(world, world->ledger.rows[id].cycle);
    if (id != 1 && id != 2)
        return;
    unsigned open_deps = world->ledger.rows[4].open_deps;
    if (world->ledger.rows[4].state == PENDING &&
        tide_tracker_release(world->tracker, 4, 1, open_deps, NOW_MS)) {
        struct tide_brief brief = brief_of(world, 4);
        (void)tide_lanes_wanted(world->lanes, &brief);
    }
}

static void memory_put_back(struct world *world, unsigned id)
{
    struct tide_brief brief = brief_of(world, id);
    tide_tracker_ending(world->tracker, id, NOW_MS);
    tide_tracker_put_back(world->tracker, id, 0, 0, NOW_MS);
    if (world->bug != PUT_BACK_KEEPS_LANE)
        tide_lanes_left(world->lanes, id);
    (void)tide_lanes_wanted(world->lanes, &brief);
}

static void cursor_move(struct world *world)
{
    uint64_t reachable = tide_frontier_reachable(world->frontier);
    world->ledger.cursor = (uint8_t)reachable;
    tide_frontier_committed(world->frontier, reachable);
}

static bool do_cursor(struct world *world)
{
    if (tide_frontier_reachable(world->frontier) == world->ledger.cursor)
        return false;
    cursor_move(world);
    return true;
}

/* A worker's result: committed if the claim still holds, dropped if not. */
static bool worker_done(struct world *world, struct worker *worker)
{
    struct worker was = *worker;
    *worker = (struct worker){0, 0};
    if (was.job == 0)
        return false;
    if (!ledger_holds(world, was.job, was.token))
        return true;
    ledger_done(world, was.job);
    const struct tide_tracked *tracked = tide_tracker_find(world->tracker, was.job);
    if (tracked != NULL && tracked->token != 0)
        memory_done(world, was.job);
    return true;
}

static void children_enter(struct world *world)
{
    for (unsigned id = JOBS + 1; id <= ROWS; id++)
        world_add(world, id);
}

/* Children are counted and committed with their parent's done (E1.6, E5.2). */
static void worker_split(struct world *world, struct worker *worker)
{
    unsigned id = worker->job;
    *worker = (struct worker){0, 0};
    world->ledger.rows[id].split = true;
    if (world->bug == CHILDREN_AFTER_DONE) {
        ledger_done(world, id);
        (void)cycle_jobs_added(world, world->ledger.rows[id].cycle, CHILDREN);
        memory_done(world, id);
        world->orphans_of = (uint8_t)id;
        return;
    }
    ledger_children(world, id);
    ledger_done(world, id);
    if (world->bug == CURSOR_BEFORE_CHILDREN) {
        memory_done(world, id);
        cursor_move(world);
        (void)cycle_jobs_added(world, world->ledger.rows[id].cycle, CHILDREN);
    } else {
        if (!cycle_jobs_added(world, world->ledger.rows[id].cycle, CHILDREN))
            broken(world, "children came too late for their cycle");
        memory_done(world, id);
    }
    children_enter(world);
}

static void worker_fail(struct world *world, struct worker *worker)
{
    unsigned id = worker->job;
    *worker = (struct worker){0, 0};
    world->ledger.rows[id].state = FAILED;
    memory_gone(world, id);
    if (world->bug == FAILED_COUNTS_AS_DONE)
        cycle_job_done(world, world->ledger.rows[id].cycle);
    else
        cycle_job_failed(world, world->ledger.rows[id].cycle);
}

static void worker_retry(struct world *world, struct worker *worker)
{
    unsigned id = worker->job;
    *worker = (struct worker){0, 0};
    world->ledger.rows[id].state = PENDING;
    memory_put_back(world, id);
}

static void worker_park(struct world *world, struct worker *worker)
{
    unsigned id = worker->job;
    if (world->bug != START_TWICE_AFTER_PARK)
        *worker = (struct worker){0, 0};
    tide_tracker_parked(world->tracker, id, NOW_MS, NOW_MS);
    tide_lanes_parked(world->lanes, id, true);
}

/* The lease was missed: the row is free again, and the worker does not know. */
static void worker_pause(struct world *world, struct worker *worker)
{
    world->zombie = *worker;
    worker_retry(world, worker);
}

static bool do_due(struct world *world)
{
    uint64_t id = tide_tracker_due(world->tracker, NOW_MS);
    if (id == 0)
        return false;
    struct tide_brief brief = brief_of(world, (unsigned)id);
    (void)tide_lanes_held(world->lanes, &brief);
    return true;
}

static bool do_revive(struct world *world)
{
    for (unsigned id = 1; id <= ROWS; id++) {
        if (world->ledger.rows[id].state != FAILED)
            continue;
        world->ledger.rows[id].state = PENDING;
        if (world->bug != FAILED_COUNTS_AS_DONE) {
            world->counts[world->ledger.rows[id].cycle].failed--;
            world->counts[world->ledger.rows[id].cycle].outstanding++;
        }
        tide_tracker_more(world->tracker, 1);
        return true;
    }
    return false;
}

static bool do_orphans(struct world *world)
{
    if (world->orphans_of == 0)
        return false;
    ledger_children(world, world->orphans_of);
    world->orphans_of = 0;
    children_enter(world);
    return true;
}

/* Age instead of a lease: the row is taken from a worker that still runs. */
static bool do_reclaim(struct world *world)
{
    if (world->bug != RECLAIM_OF_LIVE_OWNER || world->workers[0].job == 0)
        return false;
    unsigned id = world->workers[0].job;
    if (!ledger_holds(world, id, world->workers[0].token))
        return false;
    world->ledger.rows[id].state = PENDING;
    memory_put_back(world, id);
    return true;
}

static bool spend(struct world *world, uint8_t *one)
{
    if (*one == 0 || world->budget.all == 0)
        return false;
    (*one)--;
    world->budget.all--;
    return true;
}

static bool do_preempt(struct world *world)
{
    uint64_t id = 0;
    if (world->budget.preempt == 0 || world->budget.all == 0 ||
        !tide_lanes_next_preempt(world->lanes, &id))
        return false;
    (void)spend(world, &world->budget.preempt);
    for (int i = 0; i < WORKERS; i++)
        if (world->workers[i].job == id)
            worker_retry(world, &world->workers[i]);
    return true;
}

static bool worker_action(struct world *world, int number)
{
    struct budget *budget = &world->budget;
    struct worker *worker = &world->workers[(number - WORKER_RETRY) % WORKERS];
    if (worker->job == 0 || !ledger_holds(world, worker->job, worker->token))
        return false;
    switch (WORKER_RETRY + (number - WORKER_RETRY) / WORKERS * WORKERS) {
    case WORKER_RETRY:
        return spend(world, &budget->retry) ? worker_retry(world, worker), true : false;
    case WORKER_FAIL:
        return spend(world, &budget->fail) ? worker_fail(world, worker), true : false;
    case WORKER_PARK:
        return spend(world, &budget->park) ? worker_park(world, worker), true : false;
    case WORKER_PAUSE:
        return spend(world, &budget->pause) ? worker_pause(world, worker), true : false;
    default:
        if (budget->split == 0 || worker->job > JOBS)
            return false;
        budget->split--;
        worker_split(world, worker);
        return true;
    }
}

/* False: not possible here, and nothing changed. */
static bool world_do(struct world *world, int number)
{
    switch (number) {
    case REFILL:
        return do_refill(world);
    case CLAIM:
        return do_claim(world);
    case CLAIM_COMMIT:
        return do_claim_commit(world);
    case START:
        return do_start(world);
    case DUE:
        return do_due(world);
    case CURSOR:
        return do_cursor(world);
    case ZOMBIE:
        return worker_done(world, &world->zombie);
    case REVIVE:
        return do_revive(world);
    case ORPHANS:
        return do_orphans(world);
    case CRASH:
        if (!spend(world, &world->budget.crash))
            return false;
        world_boot(world);
        return true;
    case PREEMPT:
        return do_preempt(world);
    case RECLAIM:
        return do_reclaim(world);
    default:
        return number < PROGRESS ? worker_done(world, &world->workers[number - WORKER_DONE])
                                 : worker_action(world, number);
    }
}

static void check_rows(struct world *world)
{
    const struct row *rows = world->ledger.rows;
    for (unsigned id = 1; id <= ROWS; id++) {
        if (rows[id].done_count > 1)
            broken(world, "a job was done twice");
        if ((rows[id].state == DONE) != (rows[id].done_count == 1))
            broken(world, "a done job is not done");
        if (rows[id].cycle < world->ledger.cursor && rows[id].state != DONE &&
            rows[id].state != NOT_YET)
            broken(world, "the cursor passed unfinished work");
        if (rows[id].split && rows[id].state == DONE && rows[JOBS + 1].state == NOT_YET)
            broken(world, "a split's children are not in the ledger");
    }
    if (rows[4].state != PENDING && (rows[1].state != DONE || rows[2].state != DONE))
        broken(world, "a job ran before what it needs");
    if (world->ledger.cursor < world->cursor_was)
        broken(world, "the cursor went back");
    world->cursor_was = world->ledger.cursor;
}

static void check_memory(struct world *world)
{
    uint32_t here = 0;
    for (unsigned id = 1; id <= ROWS; id++) {
        const struct row *row = &world->ledger.rows[id];
        const struct tide_tracked *tracked = tide_tracker_find(world->tracker, id);
        if (tracked == NULL)
            continue;
        here++;
        bool unfinished = row->state == PENDING || row->state == CLAIMED;
        if (!unfinished)
            broken(world, "the tracker has what the ledger has not (E2.3)");
        if (tracked->token != 0 && (row->state != CLAIMED || row->token != tracked->token))
            broken(world, "a claim in memory is not in the ledger");
    }
    if (here != tide_tracker_count(world->tracker))
        broken(world, "the tracker has unknown jobs");
    uint32_t busy = 0;
    for (int i = 0; i < WORKERS; i++) {
        busy += world->workers[i].job != 0;
        for (int j = 0; j < i; j++)
            if (world->workers[i].job != 0 && world->workers[i].job == world->workers[j].job)
                broken(world, "two workers run one job");
    }
    if (busy != tide_lanes_running(world->lanes, TIDE_LANE_INTERACTIVE) +
                    tide_lanes_running(world->lanes, TIDE_LANE_BULK))
        broken(world, "the lanes count other workers than there are");
    if (!tide_tracker_check(world->tracker))
        broken(world, "TRK1-TRK6");
    if (!tide_lanes_check(world->lanes))
        broken(world, "LAN1-LAN5");
    tide_frontier_check(world->frontier);
}

static void check_final(struct world *world)
{
    for (unsigned id = 1; id <= ROWS; id++)
        if (world->ledger.rows[id].state != DONE && world->ledger.rows[id].state != NOT_YET)
            broken(world, "no step is possible, but there is work left");
    if (world->ledger.cursor != CYCLES)
        broken(world, "all is done, but the cursor is not at the end");
    if (tide_tracker_count(world->tracker) != 0 ||
        tide_frontier_totals(world->frontier).opened != 0)
        broken(world, "all is done, but memory holds something");
}

/* The canonical form: everything a later step can depend on.  (The refill's
 * own hysteresis is left out: it decides when, never whether.) */
static uint64_t world_hash(const struct world *world, uint32_t *second_out)
{
    unsigned char form[512];
    size_t bytes = 0;
#define FORM(value)                                                                                \
    do {                                                                                           \
        memcpy(form + bytes, &(value), sizeof(value));                                             \
        bytes += sizeof(value);                                                                    \
    } while (0)
    for (unsigned id = 1; id <= ROWS; id++) {
        const struct row *row = &world->ledger.rows[id];
        const struct tide_tracked *tracked = tide_tracker_find(world->tracker, id);
        unsigned char state = tracked == NULL ? 99 : (unsigned char)tracked->state;
        unsigned char why = (unsigned char)tide_lanes_explain(world->lanes, id);
        unsigned char owes = tide_tracker_owes(world->tracker, 1, id > JOBS ? 50 : 30, id);
        unsigned char durable[] = {
            (unsigned char)row->state, row->cycle, row->token, row->open_deps,
            row->done_count,           row->split};
        FORM(durable);
        FORM(state);
        FORM(why);
        FORM(owes);
    }
    for (uint64_t cycle = 0; cycle < CYCLES; cycle++) {
        FORM(world->counts[cycle]);
    }
    uint64_t reachable = tide_frontier_reachable(world->frontier);
    FORM(reachable);
    FORM(world->ledger.cursor);
    FORM(world->budget);
    /* Workers are alike: their order says nothing. */
    uint16_t busy[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        busy[i] = (uint16_t)(world->workers[i].job << 8 | world->workers[i].token);
        for (int j = i; j > 0 && busy[j - 1] > busy[j]; j--) {
            uint16_t swap = busy[j];
            busy[j] = busy[j - 1];
            busy[j - 1] = swap;
        }
    }
    FORM(busy);
    FORM(world->zombie);
    FORM(world->claiming);
    FORM(world->orphans_of);
    FORM(world->evicted);
#undef FORM
    uint64_t hash = TIDE_HASH_START;
    uint64_t second = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < bytes; i++) {
        hash = tide_hash_byte(hash, form[i]);
        second = (second + form[i]) * 0xff51afd7ed558ccdu;
        second ^= second >> 29;
    }
    *second_out = (uint32_t)(second >> 20);
    return hash == 0 ? 1 : hash;
}

/* Most of the room is tables for thousands of accounts that this world does not
 * have: a snapshot copies only blocks that were ever seen to differ from the
 * first image.  They are all looked for in the first snapshots and in one of 64
 * later; one that turns up late would make earlier snapshots wrong, so that
 * fails the test. */
struct snapshot {
    struct world world;
    size_t room_used;
    size_t count;
    unsigned char blocks[LIVE_MAX][BLOCK];
};
static struct snapshot snapshots[DEPTH_MAX];
static unsigned char first_image[sizeof room];
static bool is_live[BLOCKS];
static uint32_t live[LIVE_MAX];
static size_t live_count;
static uint64_t snapshot_count;
static bool learned_late;

static void learn(void)
{
    for (uint32_t block = 0; block < room_used / BLOCK; block++) {
        size_t at = (size_t)block * BLOCK;
        if (is_live[block] || memcmp(room + at, first_image + at, BLOCK) == 0)
            continue;
        assert_true(live_count < LIVE_MAX);
        is_live[block] = true;
        live[live_count++] = block;
        learned_late = learned_late || snapshot_count > LEARN;
    }
}

static void save(const struct world *world, int depth)
{
    struct snapshot *snapshot = &snapshots[depth];
    if (snapshot_count++ < LEARN || snapshot_count % 64 == 0)
        learn();
    snapshot->world = *world;
    snapshot->room_used = room_used;
    snapshot->count = live_count;
    for (size_t i = 0; i < live_count; i++)
        memcpy(snapshot->blocks[i], room + (size_t)live[i] * BLOCK, BLOCK);
}

static void restore(struct world *world, int depth)
{
    const struct snapshot *snapshot = &snapshots[depth];
    *world = snapshot->world;
    room_used = snapshot->room_used;
    for (size_t i = 0; i < live_count; i++) {
        size_t at = (size_t)live[i] * BLOCK;
        memcpy(room + at, i < snapshot->count ? snapshot->blocks[i] : first_image + at, BLOCK);
    }
}

struct search {
    bug bug;
    tide_map seen;
    uint64_t states;
    uint64_t steps;
    int path[DEPTH_MAX];
    int deepest;
    struct world world;
    const char *found; /* the invariant that broke */
    int found_depth;
};

static void check_all(struct world *world)
{
    check_rows(world);
    check_memory(world);
}

/* Explores everything that can follow the state that search->world is in and
 * that search->path[0 .. depth) leads to. */
static void explore(struct search *search, int depth, uint64_t hash)
{
    assert_true(depth < DEPTH_MAX - 1);
    if (depth > search->deepest)
        search->deepest = depth;
    bool goes_on = false;
    bool dirty = false;
    save(&search->world, depth);
    for (int number = 0; number < ACTIONS && search->found == NULL; number++) {
        if (dirty)
            restore(&search->world, depth);
        dirty = world_do(&search->world, number);
        if (!dirty)
            continue;
        search->steps++;
        search->path[depth] = number;
        check_all(&search->world);
        if (search->world.broken != NULL) {
            search->found = search->world.broken;
            search->found_depth = depth + 1;
            return;
        }
        uint32_t second = 0;
        uint32_t known = 0;
        uint64_t next = world_hash(&search->world, &second);
        goes_on = goes_on || (number < PROGRESS && next != hash);
        if (tide_map_get(&search->seen, next, &known)) {
            assert_int_equal(known, second); /* no collision */
            continue;
        }
        assert_true(tide_map_put(&search->seen, next, second));
        search->states++;
        explore(search, depth + 1, next);
        dirty = true;
    }
    if (search->found != NULL || goes_on)
        return;
    restore(&search->world, depth);
    check_final(&search->world);
    search->found = search->world.broken;
    search->found_depth = depth;
}

static void search_run(struct search *search, bug planted, struct budget budget)
{
    memset(search, 0, sizeof *search);
    search->bug = planted;
    tide_map_init(&search->seen, tide_mem_heap());
    memset(room, 0, sizeof room);
    memset(is_live, 0, sizeof is_live);
    live_count = 0;
    snapshot_count = 0;
    world_init(&search->world, planted, budget);
    memcpy(first_image, room, sizeof room);
    uint32_t second = 0;
    uint64_t hash = world_hash(&search->world, &second);
    assert_true(tide_map_put(&search->seen, hash, second));
    search->states = 1;
    explore(search, 0, hash);
    tide_map_done(&search->seen);
    printf("%-42s %8llu states, %8llu steps, depth %d: %s\n", bug_names[planted],
           (unsigned long long)search->states, (unsigned long long)search->steps, search->deepest,
           search->found == NULL ? "nothing found" : search->found);
}

static const struct budget one_trouble = {1, 1, 1, 1, 1, 1, 1, 1};
static const struct budget two_troubles = {2, 1, 1, 1, 1, 1, 1, 0}; /* and no split */

static void must_be_sound(struct budget budget)
{
    static struct search search;
    if (scale_percent() < 100) {
        budget.all = 1; /* under a sanitizer */
        budget.split = 0;
    }
    search_run(&search, NO_BUG, budget);
    if (search.found != NULL)
        for (int i = 0; i < search.found_depth; i++)
            fprintf(stderr, "%d ", search.path[i]);
    assert_null(search.found);
    assert_false(learned_late);
    assert_true(search.states > 10000); /* it did explore */
}

TEST(no_order_of_events_with_a_split_and_a_trouble_breaks_the_core)
{
    must_be_sound(one_trouble);
}

TEST(no_order_of_events_with_two_troubles_breaks_the_core)
{
    must_be_sound(two_troubles);
}

TEST(each_of_ten_planted_bugs_is_found)
{
    static struct search search;
    int found = 0;
    for (bug planted = NO_BUG + 1; planted < BUGS; planted++) {
        search_run(&search, planted, one_trouble);
        found += search.found != NULL;
    }
    assert_int_equal(found, 10);
}
