/* batch.c - the fleet's part of the writer's transactions: jobs of no account, cursors (fleet.h). */
#include "fleet/inside.h"

#include <string.h>

/* ---- what there is to write, under the lock ------------------------------------ */

void tide_fleet_cycle_done(tide_engine *engine, uint64_t stream)
{
    struct tide_fleet *fleet = engine->fleet;
    for (size_t i = 0; i < fleet->advance_count; i++)
        if (fleet->advance[i] == stream)
            return;
    if (fleet->advance_count == FLEET_ADVANCE_MAX) {
        fleet->look_wanted = true; /* a look moves every cursor that can move */
        return;
    }
    fleet->advance[fleet->advance_count++] = stream;
}

void tide_fleet_free_work(tide_engine *engine)
{
    engine->fleet->free_work[0] = engine->fleet->free_work[1] = true;
}

void tide_fleet_free_found(tide_engine *engine, tide_lane lane, uint64_t at_ms, uint64_t now_ms)
{
    struct tide_fleet *fleet = engine->fleet;
    if (at_ms <= now_ms) {
        fleet->free_work[lane] = true;
        engine->stuff_to_claim = true;
    } else if (at_ms < fleet->free_at_ms) {
        fleet->free_at_ms = at_ms;
        tide_cond_wake_one(engine->world, engine->pump);
    }
}

bool tide_fleet_has_work(const tide_engine *engine)
{
    return engine->fleet != NULL && engine->fleet->advance_count > 0;
}

bool tide_fleet_must_rejoin(const tide_engine *engine)
{
    return engine->fleet != NULL && engine->fleet->rejoin;
}

/* ---- gather ---------------------------------------------------------------------- */

/* How many jobs of no account this process could run now, by lane. */
static void room_for(tide_engine *engine, uint32_t counts[2])
{
    counts[0] = counts[1] = 0;
    const struct tide_fleet *fleet = engine->fleet;
    if (fleet->rejoin || engine->phase != TIDE_PHASE_RUN)
        return;
    struct tide_lanes_limits limits = tide_tuning_lanes(engine->settings, engine->workers_wanted);
    uint32_t taken[2];
    for (int lane = 0; lane < 2; lane++)
        taken[lane] = tide_lanes_running(engine->lanes, (tide_lane)lane) +
                      tide_lanes_waiting(engine->lanes, (tide_lane)lane);
    for (int lane = 0; lane < 2; lane++) {
        /* While the other lane is empty its reserved places may be used (E3.1). */
        uint32_t places = limits.workers - (taken[1 - lane] > 0 ? limits.reserved[1 - lane] : 0);
        uint32_t wanted = places + engine->ahead;
        counts[lane] = fleet->free_work[lane] && wanted > taken[lane] ? wanted - taken[lane] : 0;
        if (counts[lane] > FLEET_FREE_MAX / 2)
            counts[lane] = FLEET_FREE_MAX / 2;
    }
    /* Claimed jobs have to fit into the window; tide_dispatch_offer() leaves room for them (FLT2). */
    uint32_t count = tide_tracker_count(engine->tracker);
    uint32_t room = engine->tuning.window_jobs > count ? engine->tuning.window_jobs - count : 0;
    for (int lane = 0; lane < 2; lane++)
        counts[lane] = counts[lane] < room / 2 ? counts[lane] : room / 2;
}

bool tide_fleet_gather(tide_engine *engine, bool ends, uint32_t free_max,
                       struct tide_fleet_batch *batch)
{
    struct tide_fleet *fleet = engine->fleet;
    batch->rejoin = false;
    batch->wanted[0] = batch->wanted[1] = 0;
    batch->count = 0;
    batch->advances_count = 0;
    if (fleet == NULL)
        return false;
    batch->rejoin = fleet->rejoin;
    if (fleet->free_rest && ends)
        tide_fleet_free_work(engine);
    room_for(engine, batch->wanted);
    for (int lane = 0; lane < 2; lane++) {
        if (batch->wanted[lane] > free_max)
            batch->wanted[lane] = free_max;
        while (!tide_jobs_reserve(engine, batch->wanted[lane]))
            batch->wanted[lane] /= 2; /* at 0 it succeeds */
        /* Cleared before the claim: a hint that arrives during this transaction may be about a job
         * that the claim did not see, and sets it again. */
        if (batch->wanted[lane] > 0)
            fleet->free_work[lane] = false;
    }
    batch->token = engine->token_next;
    engine->token_next += batch->wanted[0] + batch->wanted[1];
    memcpy(batch->advances, fleet->advance, fleet->advance_count * sizeof fleet->advance[0]);
    batch->advances_count = fleet->advance_count;
    fleet->advance_count = 0;
    return batch->advances_count + batch->wanted[0] + batch->wanted[1] > 0;
}

/* ---- write ------------------------------------------------------------------------- */

tide_status tide_fleet_write(tide_engine *engine, struct tide_fleet_batch *batch, tide_tx *tx,
                             uint64_t now_unix_ms, tide_error *err)
{
    for (size_t i = 0; i < batch->advances_count; i++) {
        uint64_t ordinal = 0;
        TIDE_TRY(
            tide_ledger_cursor_advance(tx, batch->advances[i], now_unix_ms, &ordinal, NULL, err));
    }
    if (batch->wanted[0] + batch->wanted[1] == 0)
        return TIDE_OK;
    uint32_t kinds[TIDE_KINDS_MAX];
    for (uint32_t i = 0; i < engine->kinds_count; i++) /* fixed since the start */
        kinds[i] = engine->kinds[i].id;
    return tide_ledger_claim_free(tx, kinds, engine->kinds_count, batch->wanted, engine->owner,
                                  batch->token, now_unix_ms, engine->mem, batch->briefs,
                                  batch->bodies, &batch->count, &batch->due_unix_ms, err);
}

/* ---- after it ------------------------------------------------------------------------ */

void tide_fleet_written(tide_engine *engine, const struct tide_fleet_batch *batch, uint64_t now_ms)
{
    struct tide_fleet *fleet = engine->fleet;
    if (fleet == NULL || batch->wanted[0] + batch->wanted[1] == 0)
        return;
    if (batch->due_unix_ms != 0) {
        uint64_t at_ms = batch->due_unix_ms == UINT64_MAX
                             ? TIDE_NEVER
                             : tide_engine_at_ms(engine, batch->due_unix_ms, now_ms);
        fleet->free_at_ms = at_ms == 0 ? now_ms + 1 : at_ms;
        tide_cond_wake_one(engine->world, engine->pump);
    }
    uint32_t came[2] = {0, 0};
    for (size_t i = 0; i < batch->count; i++)
        came[batch->briefs[i].lane]++;
    /* A lane that gave fewer jobs than requested has no more.  But a claim that gave any need not
     * have searched all rows: with the next end, the writer asks again (free_rest). */
    for (int lane = 0; lane < 2; lane++)
        if (batch->wanted[lane] > 0 && came[lane] == batch->wanted[lane])
            fleet->free_work[lane] = true;
    fleet->free_rest = batch->count > 0;
}

void tide_fleet_not_written(tide_engine *engine, struct tide_fleet_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        tide_job_body_free(engine->mem, batch->bodies[i]);
    for (int lane = 0; lane < 2; lane++)
        if (batch->wanted[lane] > 0)
            engine->fleet->free_work[lane] = true;
    for (size_t i = 0; i < batch->advances_count; i++)
        tide_fleet_cycle_done(engine, batch->advances[i]);
}
