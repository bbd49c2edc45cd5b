/* metadata.c - measures how much the ledger stores about an account besides its jobs (E6.4).
 *
 * Streams, unfinished cycles, bad items, the governor and notes: little, unless something goes
 * wrong for long.  Measuring reads all of it, so it is rare: when this process loads or takes the
 * account, then every ten minutes in which the account was used; every minute when bad items grow
 * fast or an alert may hold, so that the alert is lowered soon after its cause is gone. */
#include "engine/engine.h"

enum { RARELY_MS = 600000, OFTEN_MS = 60000, NEAR_PERCENT = 40, GROWN_SHARE = 64 };

struct metadata_write {
    struct tide_write write;
    uint32_t account;
    uint64_t bytes;
    bool bad;
};

static tide_status metadata_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct metadata_write *what = arg;
    return tide_ledger_metadata(transaction->engine->ledger, what->account, &what->bytes,
                                &what->bad, err);
}

static void metadata_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    const struct metadata_write *what = arg;
    struct tide_account *account = tide_engine_account_of(engine, what->account);
    if (account == NULL)
        return;
    account->metadata.bytes = what->bytes;
    account->metadata.bad = what->bad;
    account->metadata.due = false;
    (void)tide_alerts_metadata(engine->alerts, account->id, what->bytes, now_ms);
    if (engine->look_at_ms > now_ms) {
        engine->look_at_ms = now_ms; /* to report a change of level and plan the next measure */
        tide_cond_wake_one(engine->world, engine->pump);
    }
}

static void metadata_drop(tide_engine *engine, struct tide_write *write)
{
    struct metadata_write *what = write->arg;
    struct tide_account *account = tide_engine_account_of(engine, what->account);
    if (account != NULL)
        account->metadata.asked = false;
    tide_mem_free(engine->mem, what, sizeof *what);
}

static void measure(tide_engine *engine, struct tide_account *account, uint64_t now_ms)
{
    struct metadata_write *what = tide_mem_new(engine->mem, sizeof *what);
    if (what == NULL)
        return;
    what->account = account->id;
    what->write = (struct tide_write){
        .run = metadata_run, .arg = what, .apply = metadata_apply, .drop = metadata_drop};
    account->metadata.asked = true;
    account->metadata.used = false;
    account->metadata.grown = 0;
    account->metadata.measured_ms = now_ms;
    tide_write_push(engine, &what->write);
}

/* When it has to be measured; TIDE_NEVER: not before the account is used. */
static uint64_t due_at_ms(const struct tide_metadata *metadata, uint64_t budget)
{
    const bool near = metadata->bytes >= budget / 100 * NEAR_PERCENT;
    if (metadata->asked)
        return TIDE_NEVER; /* metadata_apply() wakes the dispatcher */
    if (metadata->due && metadata->measured_ms == 0)
        return 0;
    if (near || metadata->due || metadata->grown >= budget / GROWN_SHARE)
        return metadata->measured_ms + OFTEN_MS;
    return metadata->used ? metadata->measured_ms + RARELY_MS : TIDE_NEVER;
}

uint64_t tide_metadata_look(tide_engine *engine, uint64_t now_ms)
{
    uint64_t next_ms = TIDE_NEVER;
    for (size_t i = 0; engine->phase == TIDE_PHASE_RUN && i < engine->accounts_count; i++) {
        struct tide_account *account = engine->accounts[i];
        if (!account->held || account->unwanted)
            continue;
        const uint64_t at_ms = due_at_ms(&account->metadata, account->metadata_budget_bytes);
        if (at_ms <= now_ms)
            measure(engine, account, now_ms);
        else if (at_ms < next_ms)
            next_ms = at_ms;
    }
    return next_ms;
}
