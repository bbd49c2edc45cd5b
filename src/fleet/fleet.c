/* fleet.c - membership of this process in the fleet of a shared ledger: lease, retries, hints. */
#include "fleet/inside.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MAX_MS = 5000,
    BUSY_MS = 5, /* after losing against another process's transaction */
};

/* ---- joining and leaving ------------------------------------------------------- */

/* A member that was declared dead joins again under a new owner number, so that its old claims
 * cannot be mistaken for its own (E1.8). */
tide_status tide_fleet_join(tide_engine *engine, tide_error *err)
{
    struct tide_fleet *fleet = engine->fleet;
    /* Only the writer's thread, which calls this, reads and changes the owner. */
    if (fleet->joined)
        engine->owner = (tide_world_random_u64(engine->world) >> 2) | 1;
    struct tide_member member = {.owner = engine->owner};
    (void)snprintf(member.name, sizeof member.name, "%s", fleet->name);
    (void)snprintf(member.version, sizeof member.version, "%s", TIDE_VERSION);
    uint64_t sent_ms = tide_world_now_ms(engine->world);
    tide_lock_take(engine->world, engine->lock);
    uint32_t lease_ms = (uint32_t)engine->tuning.fleet_lease_ms;
    tide_lock_drop(engine->world, engine->lock);
    TIDE_TRY(tide_ledger_member_join(engine->ledger, &member, lease_ms,
                                     tide_world_now_unix_ms(engine->world), err));
    tide_lock_take(engine->world, engine->lock);
    fleet->joined = true;
    fleet->rejoin = false;
    fleet->lease_until_ms = sent_ms + lease_ms;
    tide_lock_drop(engine->world, engine->lock);
    return TIDE_OK;
}

tide_status tide_fleet_new(tide_engine *engine, tide_error *err)
{
    struct tide_fleet *fleet = tide_mem_new(engine->mem, sizeof *fleet);
    if (fleet == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the fleet");
    engine->fleet = fleet;
    fleet->free_at_ms = TIDE_NEVER;
    tide_fleet_free_work(engine);
    char host[33] = "?";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(fleet->name, sizeof fleet->name, "%s, process %ld", host, (long)getpid());
    return tide_fleet_join(engine, err);
}

static void leave(tide_engine *engine)
{
    tide_tx *tx = NULL;
    if (tide_tx_begin(engine->ledger, &tx, NULL) != TIDE_OK)
        return; /* the lease then ends by itself */
    if (tide_ledger_member_leave(tx, tide_world_now_unix_ms(engine->world), NULL) == TIDE_OK)
        (void)tide_tx_commit(tx, NULL);
    else
        tide_tx_rollback(tx);
}

void tide_fleet_free(tide_engine *engine, bool clean)
{
    if (engine->fleet == NULL)
        return;
    if (clean && !engine->fleet->rejoin && engine->fleet->backoff_ms == 0)
        leave(engine);
    tide_fleet_view_free(engine, engine->fleet->view);
    tide_mem_free(engine->mem, engine->fleet, sizeof *engine->fleet);
    engine->fleet = NULL;
}

/* ---- a lost lease ---------------------------------------------------------------- */

/* We were declared dead, or our lease ran out by our own clock: cancels all running jobs and gives
 * up all accounts. */
static void lost(tide_engine *engine, uint64_t now_ms)
{
    struct tide_fleet *fleet = engine->fleet;
    TIDE_SEEN("fleet: a member lost its lease and joins again");
    tide_log_event(engine->log, TIDE_LOG_WARN, tide_world_now_unix_ms(engine->world), "lease lost",
                   TIDE_F_CSTR("member", fleet->name),
                   TIDE_F_CSTR("detail", "other members take over its jobs"));
    fleet->rejoin = true;
    fleet->advance_count = 0;
    for (size_t i = 0; i < engine->limits_count; i++)
        tide_limits_granted(engine, i, 0, 0);
    for (uint32_t i = 0; i < engine->workers_count; i++)
        if (engine->workers[i].job != NULL)
            tide_world_cancel(engine->world, &engine->workers[i].job->cancel, TIDE_CANCEL_STALE);
    /* The claims ended with the lease.  The ledger refuses the ends of jobs that it has given to
     * other members, one by one; the others are put back as usual. */
    tide_accounts_left(engine, now_ms);
    tide_fleet_look_soon(engine);
}

/* ---- a ledger that cannot be reached ------------------------------------------------ */

static uint64_t backoff(tide_engine *engine)
{
    struct tide_fleet *fleet = engine->fleet;
    uint32_t wait_ms = fleet->backoff_ms == 0 ? BACKOFF_FIRST_MS : fleet->backoff_ms * 2;
    fleet->backoff_ms = wait_ms < BACKOFF_MAX_MS ? wait_ms : BACKOFF_MAX_MS;
    /* Random, because many processes lost the same server at the same moment. */
    return fleet->backoff_ms / 2 + tide_rng_below(&engine->rng, fleet->backoff_ms / 2 + 1);
}

bool tide_fleet_waits(tide_engine *engine, tide_status rc, const tide_error *err, uint64_t now_ms)
{
    struct tide_fleet *fleet = engine->fleet;
    if (fleet == NULL || tide_world_dead(engine->world))
        return false;
    uint64_t wait_ms = 1;
    if (rc == TIDE_STALE) {
        lost(engine, now_ms);
    } else if (rc == TIDE_BUSY) {
        TIDE_SEEN("fleet: a transaction lost against another and is tried again");
        wait_ms = 1 + tide_rng_below(&engine->rng, BUSY_MS);
    } else if (rc != TIDE_STOPPED && rc != TIDE_IO && rc != TIDE_CORRUPT && rc != TIDE_NEWER) {
        /* A changed password, a revoked right, a full disk on the server: an operator can fix
         * each of these while this process runs, so what waits is kept, and the log says why. */
        if (fleet->backoff_ms == 0)
            tide_log_event(engine->log, TIDE_LOG_WARN, tide_world_now_unix_ms(engine->world),
                           "ledger out of reach", TIDE_F_CSTR("status", tide_status_name(rc)),
                           TIDE_F_CSTR("detail", err->text));
        wait_ms = backoff(engine);
    } else {
        return false;
    }
    engine->retry_writes_at_ms = now_ms + wait_ms;
    tide_cond_wake_one(engine->world, engine->pump);
    return true;
}

void tide_fleet_reached(tide_engine *engine)
{
    struct tide_fleet *fleet = engine->fleet;
    if (fleet == NULL || fleet->backoff_ms == 0)
        return;
    fleet->backoff_ms = 0;
    tide_log_event(engine->log, TIDE_LOG_INFO, tide_world_now_unix_ms(engine->world),
                   "ledger reached again", TIDE_F_CSTR("member", fleet->name));
    tide_fleet_look_soon(engine);
}

/* ---- time ------------------------------------------------------------------------------ */

void tide_fleet_look_soon(tide_engine *engine)
{
    engine->fleet->look_wanted = true;
    tide_cond_wake_one(engine->world, engine->pump);
}

uint64_t tide_fleet_step(tide_engine *engine, uint64_t now_ms)
{
    struct tide_fleet *fleet = engine->fleet;
    if (fleet == NULL || engine->phase != TIDE_PHASE_RUN)
        return TIDE_NEVER;
    /* FLT3: other members may have taken everything by now, even if we have not read that yet. */
    if (!fleet->rejoin && now_ms >= fleet->lease_until_ms)
        lost(engine, now_ms);
    if (now_ms >= fleet->free_at_ms) {
        fleet->free_at_ms = TIDE_NEVER;
        tide_fleet_free_work(engine);
        engine->stuff_to_claim = true;
    }
    if (!fleet->look_under_way && (fleet->look_wanted || now_ms >= fleet->look_at_ms)) {
        uint64_t every_ms =
            fleet->listener != NULL ? engine->tuning.fleet_look_ms : engine->tuning.fleet_poll_ms;
        if (every_ms > engine->tuning.fleet_lease_ms / 3)
            every_ms = engine->tuning.fleet_lease_ms / 3;
        fleet->look_at_ms = now_ms + every_ms;
        if (tide_fleet_look(engine))
            fleet->look_wanted = false;
    }
    uint64_t at_ms = fleet->rejoin ? TIDE_NEVER : fleet->lease_until_ms;
    at_ms = fleet->free_at_ms < at_ms ? fleet->free_at_ms : at_ms;
    if (!fleet->look_under_way && fleet->look_at_ms < at_ms)
        at_ms = fleet->look_at_ms;
    return at_ms;
}

bool tide_fleet_ours(tide_engine *engine, uint32_t account)
{
    if (engine->fleet == NULL)
        return true;
    const struct tide_account *known = tide_engine_account_of(engine, account);
    return known != NULL && known->held && !known->leaving;
}

bool tide_fleet_busy(const tide_engine *engine)
{
    const struct tide_fleet *fleet = engine->fleet;
    return fleet != NULL &&
           (fleet->looks == 0 || fleet->look_wanted || fleet->rejoin || fleet->free_work[0] ||
            fleet->free_work[1] || fleet->free_at_ms != TIDE_NEVER || fleet->advance_count > 0 ||
            fleet->ask_put_off || tide_fleet_offers(engine));
}

/* ---- hints -------------------------------------------------------------------------------------- */

static tide_status hint(tide_engine *engine, tide_tx *tx, const struct tide_brief *brief,
                        tide_error *err)
{
    if (brief->open_deps > 0)
        return TIDE_OK;
    tide_lock_take(engine->world, engine->lock);
    /* A process that was not started takes no jobs, and its first look has not run. */
    bool alone = engine->fleet->looks > 0 && engine->fleet->others == 0;
    bool told = tide_fleet_ours(engine, brief->account) || (brief->account == 0 && alone);
    tide_lock_drop(engine->world, engine->lock);
    return told ? TIDE_OK : tide_tx_hint(tx, TIDE_HINT_WORK, brief->account, err);
}

tide_status tide_fleet_hints(tide_engine *engine, tide_tx *tx, const struct tide_new_rows *new_rows,
                             const struct tide_changes *changes, tide_error *err)
{
    tide_status rc = TIDE_OK;
    uint32_t last = UINT32_MAX; /* jobs of one account mostly follow each other */
    for (size_t i = 0; new_rows != NULL && rc == TIDE_OK && i < new_rows->jobs_count; i++)
        if (!new_rows->jobs[i].existed && new_rows->jobs[i].brief.account != last) {
            rc = hint(engine, tx, &new_rows->jobs[i].brief, err);
            last = new_rows->jobs[i].brief.account;
        }
    for (size_t i = 0; changes != NULL && rc == TIDE_OK && i < changes->children_count; i++)
        if (!changes->children[i].existed && changes->children[i].brief.account != last) {
            rc = hint(engine, tx, &changes->children[i].brief, err);
            last = changes->children[i].brief.account;
        }
    for (size_t i = 0; changes != NULL && rc == TIDE_OK && i < changes->released_count; i++)
        if (changes->released[i].account != last) {
            struct tide_brief brief = {.account = changes->released[i].account,
                                       .open_deps = changes->released[i].open_deps};
            rc = hint(engine, tx, &brief, err);
            last = changes->released[i].account;
        }
    return rc;
}
