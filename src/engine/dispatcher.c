/* dispatcher.c - lets jobs proceed after a change, and when their time has come.
 *
 * The thread that changed something calls tide_dispatch() under the lock, so that no change
 * waits for another thread to wake up.  The dispatcher's own thread exists for time alone:
 * due jobs, quota that is free again, stalls, schedules, alerts, stop. */
#include "engine/engine.h"
#include "base/check.h"
#include "fleet/fleet.h"

enum { GIVE_UP_MS = 5000 }; /* after the grace, for a ledger that does not answer */

static void preempt_some(tide_engine *engine)
{
    uint64_t id = 0;
    while (tide_lanes_next_preempt(engine->lanes, &id)) {
        const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, id);
        TIDE_ASSERT(tracked != NULL);
        tide_job *job = tracked->body;
        TIDE_SEEN("dispatcher: preempted a job");
        tide_world_cancel(engine->world, &job->cancel, TIDE_CANCEL_PREEMPT);
    }
}

static void take_due(tide_engine *engine, uint64_t now_ms)
{
    uint64_t id = 0;
    while ((id = tide_tracker_due(engine->tracker, now_ms)) != 0) {
        const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, id);
        if (tracked->state == TIDE_JOB_CLAIMED)
            (void)tide_lanes_held(engine->lanes, &tracked->brief);
        else if (tide_lanes_wanted(engine->lanes, &tracked->brief) == TIDE_OK)
            engine->stuff_to_claim = true;
    }
}

/* The earliest time at which the dispatcher has something to do. */
static uint64_t wake_at(tide_engine *engine, uint64_t now_ms)
{
    uint64_t at_ms = tide_tracker_wake_at_ms(engine->tracker);
    for (size_t i = 0; i < engine->accounts_count; i++) {
        struct tide_account *account = engine->accounts[i];
        uint64_t account_at_ms = tide_governor_wake_at_ms(account->governor, now_ms);
        /* A save that is due belongs to the writer.  Waiting for it here would spin until its disk
         * write ends; the writer then wakes this thread (engine/writer/apply.c). */
        uint64_t save_at_ms = tide_governor_save_at_ms(account->governor);
        save_at_ms = save_at_ms <= now_ms ? TIDE_NEVER : save_at_ms;
        uint64_t order_at_ms = tide_badness_wake_at_ms(account->badness);
        if (account->held && engine->phase == TIDE_PHASE_RUN && order_at_ms < at_ms)
            at_ms = order_at_ms;
        at_ms = account_at_ms < at_ms ? account_at_ms : at_ms;
        at_ms = save_at_ms < at_ms ? save_at_ms : at_ms;
    }
    if (engine->look_at_ms < at_ms)
        at_ms = engine->look_at_ms;
    if (engine->fleet_at_ms < at_ms)
        at_ms = engine->fleet_at_ms;
    if (engine->phase == TIDE_PHASE_GRACE && engine->stop_at_ms < at_ms)
        at_ms = engine->stop_at_ms;
    if (engine->phase == TIDE_PHASE_CANCEL && engine->fleet != NULL && now_ms + 1000 < at_ms)
        at_ms = now_ms + 1000;
    if (engine->retry_writes_at_ms != 0 && engine->retry_writes_at_ms < at_ms)
        at_ms = engine->retry_writes_at_ms;
    return at_ms;
}

void tide_dispatch(tide_engine *engine, uint64_t now_ms)
{
    take_due(engine, now_ms);
    preempt_some(engine);

    if (engine->writer_idle && tide_writer_has_work(engine))
        tide_cond_wake_one(engine->world, engine->write);
    if (engine->workers_idle > 0 && tide_lanes_can_start(engine->lanes))
        tide_cond_wake_one(engine->world, engine->work); /* that worker wakes the next */
    if (tide_tracker_wake_at_ms(engine->tracker) < engine->pump_at_ms)
        tide_cond_wake_one(engine->world, engine->pump);
}

void tide_dispatch_offer(tide_engine *engine, const struct tide_brief *offered, uint64_t now_ms)
{
    struct tide_brief filled = *offered;
    const struct tide_brief *brief = &filled;
    if (!tide_engine_brief_fill(engine, &filled)) {
        tide_fleet_foreign(engine, brief->account, now_ms);
        return; /* no handler in this process: it stays in the ledger */
    }
    if (engine->fleet != NULL) {
        if (!tide_fleet_ours(engine, brief->account))
            return; /* fleet.h FLT1 */
        if (tide_tracker_count(engine->tracker) >= engine->tuning.window_jobs / 10 * 8) {
            tide_tracker_more(engine->tracker, brief->account); /* keeps room for fleet.h FLT2 */
            return;
        }
    }
    uint64_t evicted = 0;
    tide_status rc = tide_tracker_add(engine->tracker, brief, now_ms, &evicted);
    if (evicted != 0)
        tide_lanes_left(engine->lanes, evicted);
    /* What it needed may have ended in another process, whose hint says only that the account has work: the
     * row is newer than what is here.  A single process hears of each release itself. */
    const bool released =
        rc == TIDE_EXISTS && engine->fleet != NULL &&
        tide_tracker_release(engine->tracker, brief->id, brief->account, brief->open_deps, now_ms);
    if (rc != TIDE_OK && !released)
        return; /* in the window already, or no room: a refill loads it later */
    const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, brief->id);
    if (tracked->state == TIDE_JOB_READY &&
        tide_lanes_wanted(engine->lanes, &tracked->brief) == TIDE_OK)
        engine->stuff_to_claim = true;
}

/* Nothing of it may start. */
static bool account_stands(const struct tide_account *account)
{
    return account != NULL && (account->paused || account->halted || !account->held ||
                               account->leaving || account->unwanted);
}

void tide_account_refresh(tide_engine *engine, struct tide_account *account, uint64_t now_ms)
{
    uint32_t admitted = 0;
    if (!account_stands(account))
        admitted = tide_governor_jobs_max(account->governor, now_ms);
    (void)tide_lanes_admit(engine->lanes, account->id, admitted);
    if (admitted > 0 && admitted != account->admitted)
        engine->stuff_to_claim = true;
    account->admitted = admitted;
    tide_meters_blocked(account, now_ms);
    /* The dispatcher must wake up when a pause of the account ends. */
    if (tide_governor_wake_at_ms(account->governor, now_ms) < engine->pump_at_ms)
        tide_cond_wake_one(engine->world, engine->pump);
}

/* At a stop claimed jobs that are not running are put back at once; running ones get the grace
 * of E7.4 and are canceled at its end. */
static bool is_held(const struct tide_tracked *tracked)
{
    return tracked->state == TIDE_JOB_CLAIMED || tracked->state == TIDE_JOB_PARKED;
}

struct held_list {
    tide_engine *engine;
    bool all; /* not only those of accounts that stand */
    uint64_t ids[256];
    size_t count;
};

static bool collect_held(const struct tide_tracked *tracked, void *arg)
{
    struct held_list *list = arg;
    if (is_held(tracked) &&
        (list->all || account_stands(tide_engine_account_of(list->engine, tracked->brief.account))))
        list->ids[list->count++] = tracked->brief.id;
    return list->count < sizeof list->ids / sizeof list->ids[0];
}

static void put_back(tide_engine *engine, bool all, uint64_t now_ms)
{
    struct held_list list = {.engine = engine, .all = all};
    do {
        list.count = 0;
        tide_tracker_each(engine->tracker, collect_held, &list);
        for (size_t i = 0; i < list.count; i++) {
            const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, list.ids[i]);
            tide_job_put_back(tracked->body, TIDE_ROW_PENDING, TIDE_STOPPED, now_ms);
        }
    } while (list.count > 0);
}

void tide_dispatch_put_back(tide_engine *engine, uint64_t now_ms)
{
    put_back(engine, /* all= */ false, now_ms);
}

void tide_dispatch_put_back_all(tide_engine *engine, uint64_t now_ms)
{
    put_back(engine, /* all= */ true, now_ms);
}

static bool anything_runs(const tide_engine *engine)
{
    for (uint32_t i = 0; i < engine->workers_count; i++)
        if (engine->workers[i].job != NULL && !engine->workers[i].abandoned)
            return true;
    return false;
}

static void stop_step(tide_engine *engine, uint64_t now_ms)
{
    tide_dispatch_put_back_all(engine, now_ms);
    if (engine->phase == TIDE_PHASE_GRACE && now_ms >= engine->stop_at_ms) {
        engine->phase = TIDE_PHASE_CANCEL;
        for (uint32_t i = 0; i < engine->workers_count; i++)
            if (engine->workers[i].job != NULL)
                tide_world_cancel(engine->world, &engine->workers[i].job->cancel, TIDE_CANCEL_STOP);
        tide_notifying_cancel(engine);
    }
    /* A stop does not wait either for a server that was lost in the middle of a commit. */
    if (engine->phase == TIDE_PHASE_CANCEL && engine->writer_busy && !anything_runs(engine) &&
        now_ms >= engine->stop_at_ms + GIVE_UP_MS)
        tide_ledger_give_up(engine->ledger);
    /* On a full disk jobs cannot be put back: the next start reclaims them. */
    bool cannot_write = engine->phase == TIDE_PHASE_CANCEL && engine->retry_writes_at_ms != 0;
    bool idle = !anything_runs(engine) && engine->ended_count == 0 &&
                engine->writes_first == NULL && !engine->writer_busy &&
                !(engine->phase == TIDE_PHASE_GRACE && tide_notifying_busy(engine));
    if (idle || engine->fatal != TIDE_OK || (cannot_write && !anything_runs(engine)))
        engine->phase = TIDE_PHASE_ENDED;
}

static void time_step(tide_engine *engine, uint64_t now_ms)
{
    for (size_t i = 0; i < engine->accounts_count; i++) {
        tide_account_refresh(engine, engine->accounts[i], now_ms);
        tide_account_badness_orders(engine, engine->accounts[i], now_ms);
        if (tide_governor_save_due(engine->accounts[i]->governor, now_ms))
            engine->save_due = true;
    }
    if (engine->retry_writes_at_ms != 0 && now_ms >= engine->retry_writes_at_ms) {
        engine->retry_writes_at_ms = 0;
        tide_cond_wake_one(engine->world, engine->write);
    }
    if (now_ms >= engine->look_at_ms) {
        uint64_t next_ms = tide_supervise(engine, now_ms);
        uint64_t schedule_ms = tide_schedule_look(engine, now_ms);
        uint64_t alerts_ms = tide_alerting_look(engine, now_ms);
        next_ms = schedule_ms < next_ms ? schedule_ms : next_ms;
        next_ms = alerts_ms < next_ms ? alerts_ms : next_ms;
        engine->look_at_ms = next_ms;
    }
    engine->fleet_at_ms = tide_fleet_step(engine, now_ms);
    if (engine->phase == TIDE_PHASE_GRACE || engine->phase == TIDE_PHASE_CANCEL)
        stop_step(engine, now_ms);
    tide_dispatch(engine, now_ms);
}

void tide_dispatcher_main(void *arg)
{
    tide_engine *engine = arg;
    tide_lock_take(engine->world, engine->lock);
    while (engine->phase != TIDE_PHASE_ENDED) {
        uint64_t now_ms = tide_world_now_ms(engine->world);
        time_step(engine, now_ms);
        if (engine->phase == TIDE_PHASE_ENDED)
            break;
        engine->pump_at_ms = wake_at(engine, now_ms);
        uint64_t deadline_us =
            engine->pump_at_ms > TIDE_NEVER / 1000 ? TIDE_NEVER : engine->pump_at_ms * 1000;
        tide_status rc = tide_cond_wait(engine->world, engine->pump, engine->lock, deadline_us);
        engine->pump_at_ms = 0; /* awake: no thread needs to wake it */
        if (rc == TIDE_STOPPED)
            engine->phase = TIDE_PHASE_ENDED;
    }
    /* The engine has ended: all threads and waiting callers wake up and return. */
    tide_cond_wake_all(engine->world, engine->work);
    tide_cond_wake_all(engine->world, engine->write);
    tide_cond_wake_all(engine->world, engine->keeper);
    tide_cond_wake_all(engine->world, engine->news);
    tide_notifying_cancel(engine);
    tide_lock_drop(engine->world, engine->lock);
}
