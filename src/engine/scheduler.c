/* scheduler.c - periodic jobs, once per slot in all processes of a ledger (E8.1).
 *
 * The arithmetic is core/schedule.h; the unique (schedule, slot) row in the ledger
 * decides between two machines, and lasts over restarts.  The firing and its
 * jobs commit together. */
#include "engine/engine.h"
#include "base/check.h"
#include "engine/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tide_schedule_plan {
    struct tide_schedule_plan *next;
    uint64_t id;
    uint32_t kind;
    bool per_account;
    char name[TIDE_NAME_BYTES_MAX + 1];
    char *payload; /* NULL: {} */
};

tide_status tide_scheduler_new(tide_engine *engine)
{
    return tide_schedules_new(engine->mem, &engine->schedules);
}

void tide_scheduler_free(tide_engine *engine)
{
    tide_schedules_free(engine->schedules);
    while (engine->plans != NULL) {
        struct tide_schedule_plan *plan = engine->plans;
        engine->plans = plan->next;
        if (plan->payload != NULL)
            tide_mem_free(engine->mem, plan->payload, strlen(plan->payload) + 1);
        tide_mem_free(engine->mem, plan, sizeof *plan);
    }
}

/* ---- adding one ------------------------------------------------------------- */

/* A last slot further in the future was fired by a process with a wrong clock
 * (ledger/postgres/records.c). */
enum { SLOT_AHEAD_MS_MAX = 60 * 60 * 1000 };

struct schedule_ask {
    const struct tide_schedule *schedule;
    uint64_t slot_max; /* a later one does not count */
    struct tide_schedule_entry entry;
};

static bool find_row(const struct tide_schedule_row *row, void *arg)
{
    struct schedule_ask *ask = arg;
    if (row->id != ask->entry.id)
        return true;
    ask->entry.anchor_unix_ms = row->anchor_unix_ms;
    ask->entry.fired = row->slot_last != 0 && row->slot_last <= ask->slot_max;
    ask->entry.last_unix_ms = ask->entry.fired ? row->slot_last : 0;
    return false;
}

static tide_status schedule_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct schedule_ask *ask = arg;
    struct tide_schedule_row row = {.kind = ask->schedule->kind,
                                    .period_ms = ask->schedule->period_ms,
                                    .anchor_unix_ms = transaction->now_unix_ms,
                                    .per_account = ask->schedule->per_account,
                                    .at_start = ask->schedule->at_start,
                                    .name = tide_text_of(ask->schedule->name),
                                    .payload = tide_text_of(ask->schedule->payload)};
    ask->slot_max = transaction->engine->fleet == NULL
                        ? UINT64_MAX
                        : transaction->now_unix_ms + SLOT_AHEAD_MS_MAX;
    TIDE_TRY(tide_ledger_schedule(transaction->tx, &row, &ask->entry.id, err));
    return tide_ledger_schedules(transaction->engine->ledger, find_row, ask, err);
}

static struct tide_schedule_plan *plan_new(tide_engine *engine, const struct tide_schedule *from,
                                           uint64_t id)
{
    struct tide_schedule_plan *plan = tide_mem_new(engine->mem, sizeof *plan);
    if (plan == NULL)
        return NULL;
    plan->id = id;
    plan->kind = from->kind;
    plan->per_account = from->per_account;
    (void)snprintf(plan->name, sizeof plan->name, "%s", from->name);
    if (from->payload != NULL) {
        size_t bytes = strlen(from->payload) + 1;
        plan->payload = tide_mem_new(engine->mem, bytes);
        if (plan->payload == NULL) {
            tide_mem_free(engine->mem, plan, sizeof *plan);
            return NULL;
        }
        memcpy(plan->payload, from->payload, bytes);
    }
    return plan;
}

tide_status tide_engine_schedule(tide_engine *engine, const struct tide_schedule *schedule,
                                 tide_error *err)
{
    if (schedule->name == NULL || schedule->name[0] == '\0' ||
        strlen(schedule->name) > TIDE_NAME_BYTES_MAX || schedule->period_ms == 0)
        return tide_error_set(err, TIDE_INVALID, "a schedule has a name and a period");
    if (TIDE_RESERVED_USED(schedule))
        return tide_reserved_refuse("struct tide_schedule", err);
    if (tide_engine_kind_of(engine, schedule->kind) == NULL)
        return tide_error_set(err, TIDE_INVALID, "schedule %s: unknown kind", schedule->name);
    struct schedule_ask ask = {
        .schedule = schedule,
        .entry = {.period_ms = schedule->period_ms, .at_start = schedule->at_start}};
    struct tide_write write = {.run = schedule_run, .arg = &ask};
    TIDE_TRY(tide_write_run(engine, &write, err));
    struct tide_schedule_plan *plan = plan_new(engine, schedule, ask.entry.id);
    if (plan == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for schedule %s", schedule->name);
    tide_lock_take(engine->world, engine->lock);
    plan->next = engine->plans;
    engine->plans = plan;
    tide_status rc = tide_schedules_put(engine->schedules, &ask.entry);
    engine->look_at_ms = 0;
    tide_cond_wake_one(engine->world, engine->pump);
    tide_lock_drop(engine->world, engine->lock);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "schedule %s", schedule->name);
}

/* Changes memory only; the row gets the period at the next start. */
void tide_schedule_period(tide_engine *engine, const char *name, uint64_t period_ms)
{
    for (const struct tide_schedule_plan *plan = engine->plans; plan != NULL; plan = plan->next) {
        const struct tide_schedule_entry *entry =
            strcmp(plan->name, name) == 0 ? tide_schedules_find(engine->schedules, plan->id) : NULL;
        if (entry == NULL)
            continue;
        struct tide_schedule_entry changed = *entry;
        changed.period_ms = period_ms;
        (void)tide_schedules_put(engine->schedules, &changed); /* replaces it: needs no room */
        engine->look_at_ms = 0;
        tide_cond_wake_one(engine->world, engine->pump);
        return;
    }
}

/* ---- firing -------------------------------------------------------------------- */

struct firing_write {
    struct tide_write write;
    const struct tide_schedule_plan *plan;
    struct tide_firing firing;
    size_t accounts_count;
    uint32_t accounts[]; /* {0} when it is not per account */
};

static tide_status firing_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct firing_write *fire = arg;
    tide_status rc = tide_ledger_schedule_fire(
        transaction->tx, fire->plan->id, fire->firing.slot_unix_ms, transaction->now_unix_ms, err);
    if (rc == TIDE_EXISTS) {
        TIDE_SEEN("scheduler: a slot had fired before");
        return TIDE_OK; /* another process fired it, or this one before a crash */
    }
    char dedupe[TIDE_NAME_BYTES_MAX + 32];
    (void)snprintf(dedupe, sizeof dedupe, "schedule:%s", fire->plan->name);
    for (size_t i = 0; rc == TIDE_OK && i < fire->accounts_count; i++) {
        struct tide_spec spec = {.kind = fire->plan->kind,
                                 .account = fire->accounts[i],
                                 .dedupe = dedupe,
                                 .payload = fire->plan->payload};
        rc = tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
    }
    return rc;
}

static void firing_drop(tide_engine *engine, struct tide_write *write)
{
    struct firing_write *fire = (struct firing_write *)write;
    if (write->status != TIDE_OK)
        tide_log_event(engine->log, TIDE_LOG_ERROR, tide_world_now_unix_ms(engine->world),
                       "schedule missed a slot", TIDE_F_CSTR("schedule", fire->plan->name),
                       TIDE_F_U64("slot", fire->firing.slot_unix_ms),
                       TIDE_F_CSTR("detail", write->err.text));
    tide_mem_free(engine->mem, fire,
                  sizeof *fire + fire->accounts_count * sizeof fire->accounts[0]);
}

static void fire(tide_engine *engine, const struct tide_firing *firing)
{
    const struct tide_schedule_plan *plan = engine->plans;
    while (plan != NULL && plan->id != firing->id)
        plan = plan->next;
    if (plan == NULL)
        return;
    size_t room = plan->per_account ? engine->accounts_count : 1;
    struct firing_write *fire =
        tide_mem_new(engine->mem, sizeof *fire + (room > 0 ? room : 1) * sizeof fire->accounts[0]);
    if (fire == NULL) {
        /* This slot is missed; the next one fires as usual (E8.1). */
        tide_log_event(engine->log, TIDE_LOG_ERROR, tide_world_now_unix_ms(engine->world),
                       "schedule missed a slot", TIDE_F_CSTR("schedule", plan->name),
                       TIDE_F_U64("slot", firing->slot_unix_ms));
        return;
    }
    fire->plan = plan;
    fire->firing = *firing;
    for (size_t i = 0; plan->per_account && i < engine->accounts_count; i++)
        if (!engine->accounts[i]->halted)
            fire->accounts[fire->accounts_count++] = engine->accounts[i]->id;
    if (!plan->per_account)
        fire->accounts_count = 1;
    fire->write = (struct tide_write){.run = firing_run, .arg = fire, .drop = firing_drop};
    tide_write_push(engine, &fire->write);
}

enum { CLOCK_LOOK_MS = 60000 };

uint64_t tide_schedule_look(tide_engine *engine, uint64_t now_ms)
{
    uint64_t now_unix_ms = tide_world_now_unix_ms(engine->world);
    struct tide_firing firing;
    /* What is due while the engine stops waits for the next start; its time must not wake the
     * dispatcher, which would spin until the last handler has returned. */
    if (engine->phase != TIDE_PHASE_RUN)
        return TIDE_NEVER;
    while (tide_schedules_next(engine->schedules, now_unix_ms, &firing))
        fire(engine, &firing);
    uint64_t at_unix_ms = tide_schedules_wake_at_unix_ms(engine->schedules);
    if (at_unix_ms == UINT64_MAX)
        return TIDE_NEVER;
    /* Wall time may jump, so look again at least every minute, unless another thread watches it. */
    const uint64_t wait_ms = at_unix_ms > now_unix_ms ? at_unix_ms - now_unix_ms : 0;
    const uint64_t wait_ms_max = engine->clock_watched ? TIDE_NEVER - now_ms : CLOCK_LOOK_MS;
    return now_ms + (wait_ms < wait_ms_max ? wait_ms : wait_ms_max);
}

void tide_engine_clock_watched(tide_engine *engine)
{
    tide_lock_take(engine->world, engine->lock);
    engine->clock_watched = true;
    tide_lock_drop(engine->world, engine->lock);
}

void tide_engine_clock_changed(tide_engine *engine)
{
    tide_lock_take(engine->world, engine->lock);
    engine->look_at_ms = 0;
    tide_cond_wake_one(engine->world, engine->pump);
    tide_notifying_look(engine);
    tide_lock_drop(engine->world, engine->lock);
}
