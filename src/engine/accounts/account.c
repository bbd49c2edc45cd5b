/* account.c - remote identities and their governors (E4). */
#include "engine/engine.h"
#include "base/check.h"
#include "fleet/fleet.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tide_account *tide_engine_account_of(tide_engine *engine, uint32_t id)
{
    uint32_t index = 0;
    if (id == 0 || !tide_map_get(&engine->account_index, id, &index))
        return NULL;
    return engine->accounts[index];
}

/* Adds the account to memory; under the lock, or before other threads run. */
static tide_status account_add(tide_engine *engine, uint32_t id, const char *name,
                               const char *provider, tide_text saved, tide_error *err)
{
    if (tide_engine_account_of(engine, id) != NULL)
        return TIDE_OK;
    struct tide_account *account = tide_mem_new(engine->mem, sizeof *account);
    if (account == NULL || !TIDE_GROW_IN(engine->mem, engine->accounts, engine->accounts_capacity,
                                         engine->accounts_count + 1, TIDE_ACCOUNTS_MAX)) {
        tide_mem_free(engine->mem, account, sizeof *account);
        return tide_error_set(err, TIDE_FULL, "no room for account %s (at most %d)", name,
                              TIDE_ACCOUNTS_MAX);
    }
    account->id = id;
    account->held = engine->fleet == NULL;
    account->unwanted = !tide_engine_wants(engine, name);
    (void)snprintf(account->name, sizeof account->name, "%s", name);
    (void)snprintf(account->provider, sizeof account->provider, "%s", provider);
    tide_account_tune(engine, account);
    struct tide_governor_profile profile = tide_account_profile(engine, account);
    uint64_t now_ms = tide_world_now_ms(engine->world);
    tide_status rc = tide_governor_new(&profile, now_ms, engine->mem, &account->governor);
    if (rc == TIDE_OK) {
        struct tide_badness_settings badness =
            tide_tuning_badness(tide_account_settings(engine, account));
        rc = tide_badness_new(&badness, engine->mem, &account->badness);
    }
    if (rc == TIDE_OK)
        rc = tide_limits_bind(engine, account);
    struct tide_governor_saved parsed;
    if (rc == TIDE_OK && saved.bytes > 0) {
        /* A saved governor that cannot be read must not keep the account from running: a new
         * one starts slowly anyway. */
        if (tide_governor_saved_parse(saved, &parsed) == TIDE_OK)
            (void)tide_governor_restore(account->governor, &parsed, now_ms,
                                        tide_world_now_unix_ms(engine->world));
    }
    if (rc == TIDE_OK &&
        !tide_map_put(&engine->account_index, id, (uint32_t)engine->accounts_count))
        rc = TIDE_NO_MEMORY;
    if (rc != TIDE_OK) {
        tide_governor_free(account->governor);
        tide_badness_free(account->badness);
        tide_mem_free(engine->mem, account, sizeof *account);
        return tide_error_set(err, rc, "account %s: %s", name, tide_status_name(rc));
    }
    engine->accounts[engine->accounts_count++] = account;
    if (account->held)
        tide_alerting_own(engine, account);
    tide_account_refresh(engine, account, now_ms);
    return TIDE_OK;
}

/* ---- on a shared ledger ----------------------------------------------------------------- */

tide_status tide_account_retune(tide_engine *engine, struct tide_account *account, tide_text saved,
                                uint64_t now_ms)
{
    struct tide_governor_profile profile = tide_account_profile(engine, account);
    tide_governor *governor = NULL;
    TIDE_TRY(tide_governor_new(&profile, now_ms, engine->mem, &governor));
    /* What the last holder had not recorded counts as spent (E4.3b). */
    struct tide_governor_saved parsed;
    if (saved.bytes > 0 && tide_governor_saved_parse(saved, &parsed) == TIDE_OK)
        (void)tide_governor_restore(governor, &parsed, now_ms,
                                    tide_world_now_unix_ms(engine->world));
    tide_governor_free(account->governor);
    account->governor = governor;
    TIDE_TRY(tide_limits_bind(engine, account));
    if (account->halted)
        tide_governor_halt(governor, account->halt_reason);
    return TIDE_OK;
}

tide_status tide_account_taken(tide_engine *engine, struct tide_account *account, tide_text saved,
                               uint64_t now_ms)
{
    TIDE_TRY(tide_account_retune(engine, account, saved, now_ms));
    account->held = true;
    account->leaving = false;
    tide_account_refresh(engine, account, now_ms);
    tide_tracker_more(engine->tracker, account->id);
    engine->stuff_to_claim = true;
    return TIDE_OK;
}

struct left_jobs {
    tide_engine *engine;
    uint64_t ids[1024];
    size_t count;
};

static bool collect_left(const struct tide_tracked *tracked, void *arg)
{
    struct left_jobs *jobs = arg;
    const struct tide_account *account =
        tide_engine_account_of(jobs->engine, tracked->brief.account);
    if (account != NULL && !account->held && tracked->state < TIDE_JOB_CLAIMING)
        jobs->ids[jobs->count++] = tracked->brief.id;
    return jobs->count < sizeof jobs->ids / sizeof jobs->ids[0];
}

void tide_accounts_forget(tide_engine *engine)
{
    struct left_jobs jobs = {.engine = engine};
    do {
        jobs.count = 0;
        tide_tracker_each(engine->tracker, collect_left, &jobs);
        for (size_t i = 0; i < jobs.count; i++) {
            tide_lanes_left(engine->lanes, jobs.ids[i]);
            tide_tracker_remove(engine->tracker, jobs.ids[i]);
        }
    } while (jobs.count > 0);
}

static void no_longer_held(tide_engine *engine, struct tide_account *account)
{
    account->held = false;
    account->leaving = false;
    account->foreign_ms = 0;
    tide_alerts_forget(engine->alerts, account->id); /* the next holder continues them */
}

void tide_account_left(tide_engine *engine, struct tide_account *account, uint64_t now_ms)
{
    no_longer_held(engine, account);
    tide_account_refresh(engine, account, now_ms);
}

void tide_accounts_left(tide_engine *engine, uint64_t now_ms)
{
    for (size_t i = 0; i < engine->accounts_count; i++)
        if (engine->accounts[i]->held)
            no_longer_held(engine, engine->accounts[i]);
    tide_accounts_forget(engine);
    tide_dispatch_put_back_all(engine, now_ms);
    for (size_t i = 0; i < engine->accounts_count; i++)
        tide_account_refresh(engine, engine->accounts[i], now_ms);
}

/* ---- jobs of each account in the window ------------------------------------------------- */

/* The system of the last job: most have the same as the one before. */
struct counting {
    tide_engine *engine;
    uint32_t kind;
    struct tide_meter_system *system; /* NULL: this process does not run the kind */
};

static void count_in_system(struct counting *counting, const struct tide_tracked *tracked)
{
    if (counting->kind != tracked->brief.kind) {
        const struct tide_kind_entry *entry =
            tide_engine_kind_of(counting->engine, tracked->brief.kind);
        counting->kind = tracked->brief.kind;
        counting->system = entry == NULL ? NULL : &counting->engine->meters.systems[entry->system];
    }
    if (counting->system != NULL)
        counting->system->loaded[tracked->state]++;
}

static bool count_job(const struct tide_tracked *tracked, void *arg)
{
    struct counting *counting = arg;
    tide_engine *engine = counting->engine;
    count_in_system(counting, tracked);
    struct tide_account *account = tide_engine_account_of(engine, tracked->brief.account);
    if (account == NULL)
        return true;
    account->jobs.states[tracked->state]++;
    account->jobs.claimed += tracked->state >= TIDE_JOB_CLAIMING;
    account->jobs.bytes += tracked->brief.size_bytes;
    return true;
}

void tide_accounts_count(tide_engine *engine)
{
    for (size_t i = 0; i < engine->accounts_count; i++)
        engine->accounts[i]->jobs = (struct tide_account_jobs){.claimed = 0};
    for (size_t i = 0; i < engine->meters.systems_count; i++)
        memset(engine->meters.systems[i].loaded, 0, sizeof engine->meters.systems[i].loaded);
    struct counting counting = {.engine = engine};
    tide_tracker_each(engine->tracker, count_job, &counting);
    /* A worker may still run a job that was taken from it (supervisor.c). */
    for (uint32_t i = 0; i < engine->workers_count; i++)
        if (engine->workers[i].job != NULL && engine->workers[i].job->account != NULL)
            engine->workers[i].job->account->jobs.claimed++;
}

/* ---- a good item, for probes ----------------------------------------------------------- */

struct good_write {
    struct tide_write write;
    uint32_t account;
    uint32_t kind;
    char item[TIDE_ITEM_BYTES_MAX + 1];
};

static void good_key(uint32_t account, char key[32])
{
    (void)snprintf(key, 32, "good:%" PRIu32, account);
}

static tide_status good_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct good_write *good = arg;
    char key[32];
    char value[TIDE_ITEM_BYTES_MAX + 16];
    good_key(good->account, key);
    int bytes = snprintf(value, sizeof value, "%" PRIu32 " %s", good->kind, good->item);
    return tide_ledger_note(transaction->tx, key, (tide_text){value, (size_t)bytes}, err);
}

static void good_drop(tide_engine *engine, struct tide_write *write)
{
    tide_mem_free(engine->mem, write, sizeof(struct good_write));
}

static void good_forget(struct tide_account *account, tide_text item)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < account->goods_count; i++)
        if (!tide_text_equal(tide_text_of(account->goods[i].item), item))
            account->goods[kept++] = account->goods[i];
    account->goods_count = kept;
}

void tide_account_good_item(tide_engine *engine, struct tide_account *account, uint32_t kind,
                            tide_text item)
{
    struct tide_good *newest = &account->goods[0];
    TIDE_ASSERT(item.bytes < sizeof newest->item);
    good_forget(account, item);
    if (account->goods_count == TIDE_GOODS)
        account->goods_count--;
    memmove(newest + 1, newest, account->goods_count * sizeof *newest);
    account->goods_count++;
    memcpy(newest->item, item.data, item.bytes);
    newest->item[item.bytes] = '\0';
    newest->kind = kind;
    if (account->good_stored)
        return;
    struct good_write *good = tide_mem_new(engine->mem, sizeof *good);
    if (good == NULL)
        return;
    account->good_stored = true;
    good->account = account->id;
    good->kind = kind;
    memcpy(good->item, newest->item, item.bytes + 1);
    good->write = (struct tide_write){.run = good_run, .arg = good, .drop = good_drop};
    tide_write_push(engine, &good->write);
}

static void good_load(tide_engine *engine, struct tide_account *account)
{
    char key[32];
    tide_auto_buf value = tide_buf_in(engine->mem, TIDE_ITEM_BYTES_MAX + 16);
    good_key(account->id, key);
    if (tide_ledger_note_get(engine->ledger, key, &value, NULL) == TIDE_OK) {
        const char *text = tide_buf_cstr(&value);
        const char *space = strchr(text, ' ');
        uint64_t kind = 0;
        if (space != NULL && tide_text_to_u64((tide_text){text, (size_t)(space - text)}, &kind) &&
            kind <= UINT32_MAX && strlen(space + 1) < sizeof account->goods[0].item) {
            account->goods_count = 1;
            account->goods[0].kind = (uint32_t)kind;
            (void)snprintf(account->goods[0].item, sizeof account->goods[0].item, "%s", space + 1);
        }
    }
}

void tide_accounts_reload(tide_engine *engine)
{
    uint64_t now_ms = tide_world_now_ms(engine->world);
    for (size_t i = 0; i < engine->accounts_count; i++) {
        struct tide_account *account = engine->accounts[i];
        const struct tide_badness_settings badness =
            tide_tuning_badness(tide_account_settings(engine, account));
        const struct tide_governor_profile profile = tide_account_profile(engine, account);
        tide_account_tune(engine, account);
        (void)tide_badness_set(account->badness, &badness);
        (void)tide_governor_limits_set(account->governor, &profile);
        tide_account_refresh(engine, account, now_ms);
    }
}

struct load_ask {
    tide_engine *engine;
    tide_status rc;
    tide_error *err;
};

static bool load_visit(const struct tide_account_row *row, void *arg)
{
    struct load_ask *ask = arg;
    if (ask->engine->accounts_count == TIDE_ACCOUNTS_MAX)
        return false; /* an older version allowed more; the accounts loaded so far work */
    ask->rc = account_add(ask->engine, row->id, row->name, row->provider, row->governor, ask->err);
    if (ask->rc != TIDE_OK)
        return false;
    struct tide_account *account = tide_engine_account_of(ask->engine, row->id);
    account->paused = row->paused;
    account->halted = row->halted;
    if (row->halted) {
        (void)snprintf(account->halt_reason, sizeof account->halt_reason, "%s", row->halt_reason);
        tide_governor_halt(account->governor, row->halt_reason);
    }
    tide_account_refresh(ask->engine, account, tide_world_now_ms(ask->engine->world));
    return true;
}

tide_status tide_engine_accounts_load(tide_engine *engine, tide_error *err)
{
    struct load_ask ask = {engine, TIDE_OK, err};
    tide_status rc = tide_ledger_accounts(engine->ledger, load_visit, &ask, err);
    for (size_t i = 0; rc == TIDE_OK && i < engine->accounts_count; i++) {
        good_load(engine, engine->accounts[i]);
        tide_outcome_read(engine->ledger, engine->accounts[i]->id, engine->mem,
                          &engine->accounts[i]->outcome);
    }
    return rc != TIDE_OK ? rc : ask.rc;
}

void tide_engine_accounts_free(tide_engine *engine)
{
    for (size_t i = 0; i < engine->accounts_count; i++) {
        tide_governor_free(engine->accounts[i]->governor);
        tide_badness_free(engine->accounts[i]->badness);
        if (engine->accounts[i]->series != NULL)
            tide_mem_free(engine->mem, engine->accounts[i]->series,
                          sizeof *engine->accounts[i]->series);
        tide_account_meters_free(&engine->accounts[i]->meters, engine->mem);
        tide_mem_free(engine->mem, engine->accounts[i], sizeof *engine->accounts[i]);
    }
    tide_mem_free(engine->mem, engine->accounts,
                  engine->accounts_capacity * sizeof *engine->accounts);
}

/* ---- by name --------------------------------------------------------------------- */

struct account_ask {
    const char *name;
    const char *provider;
    uint32_t id;
    tide_status rc;
    tide_error err;
};

static tide_status account_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct account_ask *ask = arg;
    return tide_ledger_account(transaction->tx, ask->name, ask->provider, &ask->id, err);
}

static void account_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    struct account_ask *ask = arg;
    (void)now_ms;
    ask->rc = account_add(engine, ask->id, ask->name, ask->provider, TIDE_TEXT_NONE, &ask->err);
}

tide_status tide_engine_account(tide_engine *engine, const char *name, const char *provider,
                                uint32_t *account_out, tide_error *err)
{
    if (name == NULL || name[0] == '\0' || strlen(name) > TIDE_NAME_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "an account's name has 1 to %d bytes",
                              TIDE_NAME_BYTES_MAX);
    if (provider == NULL)
        provider = "default";
    if (tide_engine_limits_of(engine, provider) == NULL)
        return tide_error_set(
            err, TIDE_INVALID,
            "unknown provider %.32s: gmail, console, onedrive, chat, default, or one "
            "that tide_engine_quota() made",
            provider);
    struct account_ask ask = {.name = name, .provider = provider};
    struct tide_write write = {.run = account_run, .arg = &ask, .apply = account_apply};
    tide_status rc = tide_write_run(engine, &write, err);
    if (rc == TIDE_OK && ask.rc != TIDE_OK) {
        if (err != NULL)
            *err = ask.err;
        return ask.rc;
    }
    if (rc == TIDE_OK)
        *account_out = ask.id;
    return rc;
}

/* ---- halt (E4.6) --------------------------------------------------------------------- */

struct halt_ask {
    uint32_t account;
    bool halted;
    const char *reason;
};

static tide_status halt_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct halt_ask *ask = arg;
    TIDE_TRY(tide_ledger_account_halt(transaction->tx, ask->account, ask->halted, ask->reason,
                                      transaction->now_unix_ms, err));
    return tide_tx_hint(transaction->tx, TIDE_HINT_CONTROL, ask->account, err);
}

static void halted_is(tide_engine *engine, struct tide_account *account, bool halted,
                      const char *reason, uint64_t now_ms)
{
    account->halted = halted;
    (void)snprintf(account->halt_reason, sizeof account->halt_reason, "%s", halted ? reason : "");
    if (halted) {
        tide_governor_halt(account->governor, reason);
        tide_badness_halted(account->badness);
    } else {
        tide_governor_resume(account->governor, now_ms);
        tide_badness_resumed(account->badness);
    }
    for (uint32_t i = 0; halted && i < engine->workers_count; i++) {
        tide_job *job = engine->workers[i].job;
        if (job != NULL && job->brief.account == account->id)
            tide_world_cancel(engine->world, &job->cancel, TIDE_CANCEL_HALT);
    }
    tide_account_refresh(engine, account, now_ms);
    tide_cond_wake_one(engine->world, engine->pump);
}

static void halt_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    struct halt_ask *ask = arg;
    struct tide_account *account = tide_engine_account_of(engine, ask->account);
    halted_is(engine, account, ask->halted, ask->reason, now_ms);
    tide_dispatch_put_back(engine, now_ms);
}

tide_status tide_account_is(tide_engine *engine, const struct tide_account_row *row,
                            uint64_t now_ms, tide_error *err)
{
    TIDE_TRY(account_add(engine, row->id, row->name, row->provider, TIDE_TEXT_NONE, err));
    struct tide_account *account = tide_engine_account_of(engine, row->id);
    if (account->paused != row->paused) {
        account->paused = row->paused;
        tide_account_refresh(engine, account, now_ms);
    }
    if (account->halted != row->halted)
        halted_is(engine, account, row->halted, row->halt_reason, now_ms);
    return TIDE_OK;
}

static tide_status halt_or_resume(tide_engine *engine, uint32_t account, bool halted,
                                  const char *reason, tide_error *err)
{
    tide_lock_take(engine->world, engine->lock);
    bool known = tide_engine_account_of(engine, account) != NULL;
    tide_lock_drop(engine->world, engine->lock);
    if (!known)
        return tide_error_set(err, TIDE_NOT_FOUND, "no account %" PRIu32, account);
    struct halt_ask ask = {account, halted, reason == NULL ? "by command" : reason};
    struct tide_write write = {.run = halt_run, .arg = &ask, .apply = halt_apply};
    return tide_write_run(engine, &write, err);
}

tide_status tide_engine_halt(tide_engine *engine, uint32_t account, const char *reason,
                             tide_error *err)
{
    return halt_or_resume(engine, account, true, reason, err);
}

tide_status tide_engine_resume(tide_engine *engine, uint32_t account, tide_error *err)
{
    return halt_or_resume(engine, account, false, NULL, err);
}

/* ---- orders of badness.h (E6.2) -------------------------------------------------------- */

enum { PROBE_PRIORITY = 100 }; /* other jobs of the account wait for its result */

struct order_write {
    struct tide_write write;
    struct halt_ask halt;
    uint32_t account;
    uint32_t kind;
    uint64_t id;
    char reason[160];
    char item[TIDE_ITEM_BYTES_MAX + 1];
};

static void order_drop(tide_engine *engine, struct tide_write *write)
{
    struct order_write *order = (struct order_write *)write;
    tide_mem_free(engine->mem, order, sizeof *order);
}

static tide_status probe_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct order_write *order = arg;
    json_t *payload = json_pack("{s:[s]}", "items", order->item);
    char *text = payload == NULL ? NULL : json_dumps(payload, JSON_COMPACT);
    json_decref(payload);
    if (text == NULL)
        return tide_error_set(err, TIDE_INVALID, "the probe's item is not text");
    /* A duplicate is the same probe: badness.h repeats the order until it has the result. */
    struct tide_spec spec = {.kind = order->kind,
                             .account = order->account,
                             .dedupe = "probe",
                             .payload = text,
                             .priority = PROBE_PRIORITY,
                             .force = true};
    tide_status rc = tide_transaction_enqueue(transaction, &spec, 1, &order->id, err);
    free(text);
    return rc;
}

static void probe_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    struct order_write *order = arg;
    (void)now_ms;
    tide_engine_account_of(engine, order->account)->probe_id = order->id;
}

static tide_status order_halt_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    return halt_run(transaction, &((struct order_write *)arg)->halt, err);
}

static void order_halt_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    halt_apply(engine, &((struct order_write *)arg)->halt, now_ms);
}

/* The newest one that this process has a handler for. */
static const struct tide_good *good_pick(tide_engine *engine, const struct tide_account *account)
{
    for (uint32_t i = 0; i < account->goods_count; i++)
        if (tide_engine_kind_of(engine, account->goods[i].kind) != NULL)
            return &account->goods[i];
    return NULL;
}

bool tide_account_is_probe(const tide_job *job)
{
    return job->account != NULL && job->account->probe_id == job->brief.id;
}

void tide_account_probed(tide_job *job, tide_status status, uint64_t now_ms)
{
    struct tide_account *account = job->account;
    account->probe_id = 0;
    if (tide_status_class(status) == TIDE_CLASS_GONE && job->items_count > 0)
        good_forget(account, job->items[0].text);
    tide_badness_probed(account->badness, status, now_ms);
    tide_account_badness_orders(job->engine, account, now_ms);
}

static void carry_out(tide_engine *engine, struct tide_account *account,
                      const struct tide_badness_order *what, uint64_t now_ms)
{
    const struct tide_good *good = good_pick(engine, account);
    if (what->kind == TIDE_BADNESS_PROBE && account->probe_id != 0 &&
        tide_tracker_find(engine->tracker, account->probe_id) != NULL)
        return; /* the probe is pending or running */
    if (what->kind == TIDE_BADNESS_PROBE && good == NULL) {
        tide_badness_probed(account->badness, TIDE_NOT_FOUND, now_ms);
        return;
    }
    struct order_write *order = tide_mem_new(engine->mem, sizeof *order);
    if (order == NULL)
        return; /* badness.h asks again */
    order->account = account->id;
    order->write = (struct tide_write){.arg = order, .drop = order_drop};
    if (what->kind == TIDE_BADNESS_PROBE) {
        TIDE_SEEN("account: a good item is probed");
        order->kind = good->kind;
        (void)snprintf(order->item, sizeof order->item, "%s", good->item);
        order->write.run = probe_run;
        order->write.apply = probe_apply;
    } else {
        TIDE_SEEN("account: halted because everything fails");
        (void)snprintf(order->reason, sizeof order->reason,
                       "%u items failed in a row, %u of the last %d, and a known good item too",
                       what->failed_in_a_row, what->failed_of_last, TIDE_BADNESS_WINDOW);
        order->halt = (struct halt_ask){account->id, true, order->reason};
        order->write.run = order_halt_run;
        order->write.apply = order_halt_apply;
    }
    tide_write_push(engine, &order->write);
}

void tide_account_badness_orders(tide_engine *engine, struct tide_account *account, uint64_t now_ms)
{
    struct tide_badness_order order;
    if (!account->held || engine->phase != TIDE_PHASE_RUN)
        return;
    for (int i = 0; i < 4 && tide_badness_next(account->badness, now_ms, &order); i++)
        carry_out(engine, account, &order, now_ms);
    if (tide_badness_wake_at_ms(account->badness) < engine->pump_at_ms)
        tide_cond_wake_one(engine->world, engine->pump);
}

/* ---- for systems on the engine ---- */

bool tide_engine_shared(const tide_engine *engine)
{
    return engine->fleet != NULL;
}

void tide_engine_take_soon(tide_engine *engine)
{
    if (engine->fleet == NULL)
        return;
    tide_lock_take(engine->world, engine->lock);
    tide_fleet_look_soon(engine);
    tide_lock_drop(engine->world, engine->lock);
}

bool tide_engine_uses(tide_engine *engine, uint32_t account)
{
    tide_lock_take(engine->world, engine->lock);
    const struct tide_account *known = tide_engine_account_of(engine, account);
    bool uses = engine->fleet == NULL || (known != NULL && known->held);
    for (uint32_t i = 0; !uses && i < engine->workers_count; i++)
        uses = engine->workers[i].job != NULL && engine->workers[i].job->brief.account == account;
    tide_lock_drop(engine->world, engine->lock);
    return uses;
}
