/* alerting.c - durable alerts: conditions that an operator should look at (E6.4).
 *
 * core/alerts/alerts.h decides; each change of level becomes a row, so that every command can show
 * current alerts, also when no engine runs.  The windows behind an alert are saved with
 * each change, once a minute and at a stop; the next process continues them, and clears an
 * alert whose cause is gone. */
#include "engine/engine.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>

enum { TICK_MS = 1000, SAVE_EVERY_MS = 60000 };

tide_status tide_alerting_new(tide_engine *engine)
{
    struct tide_alerts_settings settings = tide_tuning_alerts(engine->settings);
    return tide_alerts_new(&settings, engine->mem, &engine->alerts);
}

void tide_alerting_free(tide_engine *engine)
{
    tide_alerts_free(engine->alerts);
    tide_system_alerts_free(engine);
}

void tide_alerting_reload(tide_engine *engine)
{
    struct tide_alerts_settings settings = tide_tuning_alerts(engine->settings);
    (void)tide_alerts_set(engine->alerts, &settings);
    for (size_t i = 0; i < engine->accounts_count; i++)
        if (engine->accounts[i]->held)
            tide_alerting_own(engine, engine->accounts[i]);
}

void tide_alerting_own(tide_engine *engine, const struct tide_account *account)
{
    const tide_settings *own = tide_account_settings(engine, account);
    const struct tide_alerts_settings settings = tide_tuning_alerts(own);
    /* Without memory the thresholds of all accounts apply, until the next change. */
    (void)tide_alerts_set_own(engine->alerts, account->id,
                              own == engine->settings ? NULL : &settings);
}

/* An alert that changed, the windows it follows from, or both. */
struct alert_write {
    struct tide_write write;
    struct tide_alert alert;
    bool changed;
    char text[256];
    struct tide_alerting_saved saved;
};

static tide_status alert_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct alert_write *what = arg;
    const uint32_t account =
        what->alert.account == TIDE_ALERTS_NO_ACCOUNT ? 0 : (uint32_t)what->alert.account;
    if (what->changed)
        TIDE_TRY(tide_ledger_alert(transaction->tx, tide_condition_name(what->alert.condition),
                                   account, (int)what->alert.level, what->text,
                                   transaction->now_unix_ms, err));
    return tide_alerting_saved_write(transaction->tx, &what->saved, err);
}

static void alert_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    const struct alert_write *what = arg;
    (void)now_ms;
    if (what->changed)
        tide_notifying_look(engine);
}

static void alert_free(tide_engine *engine, struct alert_write *what)
{
    tide_alerting_saved_done(&what->saved);
    tide_mem_free(engine->mem, what, sizeof *what);
}

/* A change that a full disk refused is queued again, because the core reports it only once. */
static void alert_drop(tide_engine *engine, struct tide_write *write)
{
    struct alert_write *what = write->arg;
    const bool passes = write->status == TIDE_DISK_FULL || write->status == TIDE_NO_MEMORY ||
                        write->status == TIDE_BUSY;
    if (what->changed && passes && engine->phase == TIDE_PHASE_RUN) {
        write->status = TIDE_OK;
        tide_write_push(engine, write);
        return;
    }
    alert_free(engine, what);
}

static struct alert_write *write_new(tide_engine *engine, struct tide_account *account,
                                     uint64_t now_ms)
{
    struct alert_write *what = tide_mem_new(engine->mem, sizeof *what);
    if (what == NULL)
        return NULL;
    what->write = (struct tide_write){
        .run = alert_run, .arg = what, .apply = alert_apply, .drop = alert_drop};
    tide_alerting_saved_init(&what->saved, engine->mem);
    if (account == NULL)
        return what;
    if (tide_alerting_saved_take(engine, account, now_ms, &what->saved) != TIDE_OK) {
        alert_free(engine, what);
        return NULL;
    }
    account->windows_changed = false;
    return what;
}

static void tell(tide_engine *engine, const struct tide_alert *alert, uint64_t now_ms)
{
    struct tide_account *account = tide_engine_account_of(engine, (uint32_t)alert->account);
    struct alert_write *what = write_new(engine, account, now_ms);
    if (what == NULL)
        return;
    what->alert = *alert;
    what->changed = true;
    (void)tide_alert_print(alert, what->text, sizeof what->text);
    TIDE_SEEN("alerting: an alert changed");
    tide_log_event(engine->log, alert->level == TIDE_LEVEL_NONE ? TIDE_LOG_INFO : TIDE_LOG_WARN,
                   tide_world_now_unix_ms(engine->world), "alert",
                   TIDE_F_CSTR("condition", tide_condition_name(alert->condition)),
                   TIDE_F_CSTR("level", tide_level_name(alert->level)),
                   TIDE_F_CSTR("account", account == NULL ? "" : account->name),
                   TIDE_F_CSTR("detail", what->text));
    tide_write_push(engine, &what->write);
}

static void tell_changes(tide_engine *engine, uint64_t now_ms)
{
    struct tide_alert alert;
    enum tide_level before = TIDE_LEVEL_NONE;
    while (tide_alerts_next(engine->alerts, &alert, &before))
        tell(engine, &alert, now_ms);
}

/* Adds what happened since the last look to the totals of all processes. */
static void count_totals(struct tide_account *account)
{
    struct tide_account_totals *totals = &account->totals;
    struct tide_account_totals *counted = &account->counted;
    const struct tide_account_totals now = {.failed = account->failed,
                                            .retried = account->retried,
                                            .split = account->split,
                                            .bad = account->bad};
    totals->calls += account->calls;
    totals->refused += account->refused;
    totals->failed += now.failed - counted->failed;
    totals->retried += now.retried - counted->retried;
    totals->split += now.split - counted->split;
    totals->bad += now.bad - counted->bad;
    if (account->calls > 0 || memcmp(&now, counted, sizeof now) != 0)
        account->windows_changed = true;
    *counted = now;
}

void tide_alerting_save(tide_engine *engine, struct tide_account *account, uint64_t now_ms)
{
    count_totals(account);
    if (account->calls > 0)
        (void)tide_alerts_calls(engine->alerts, account->id, (uint32_t)account->calls,
                                (uint32_t)account->refused, now_ms);
    account->calls = account->refused = 0;
    if (!account->windows_changed || !account->held)
        return;
    struct alert_write *what = write_new(engine, account, now_ms);
    if (what != NULL)
        tide_write_push(engine, &what->write);
}

void tide_alerting_save_all(tide_engine *engine, uint64_t now_ms)
{
    engine->alerts_saved_ms = now_ms;
    for (size_t i = 0; i < engine->accounts_count; i++)
        tide_alerting_save(engine, engine->accounts[i], now_ms);
    tell_changes(engine, now_ms);
}

/* Counts the demand of each account, for the growth rules of its governor (E4.2). */
static bool count_demand(const struct tide_tracked *tracked, void *arg)
{
    tide_engine *engine = arg;
    struct tide_account *account = tide_engine_account_of(engine, tracked->brief.account);
    if (account == NULL || tracked->state == TIDE_JOB_BLOCKED)
        return true;
    account->demand.jobs++;
    account->demand.small += tracked->brief.size_bytes < account->small_below_bytes;
    account->demand.large += tracked->brief.size_bytes > account->large_above_bytes;
    return true;
}

static void feed_demand(tide_engine *engine)
{
    for (size_t i = 0; i < engine->accounts_count; i++)
        engine->accounts[i]->demand = (struct tide_demand){0};
    tide_tracker_each(engine->tracker, count_demand, engine);
    for (size_t i = 0; i < engine->accounts_count; i++)
        tide_governor_demand(engine->accounts[i]->governor, &engine->accounts[i]->demand);
}

uint64_t tide_alerting_look(tide_engine *engine, uint64_t now_ms)
{
    bool any = false;
    for (size_t i = 0; i < engine->accounts_count; i++) {
        struct tide_account *account = engine->accounts[i];
        tide_account_badness_orders(engine, account, now_ms);
        count_totals(account);
        if (account->calls == 0)
            continue;
        any = true;
        (void)tide_alerts_calls(engine->alerts, account->id, (uint32_t)account->calls,
                                (uint32_t)account->refused, now_ms);
        account->calls = 0;
        account->refused = 0;
        account->metadata.used = true;
    }
    if (any)
        feed_demand(engine);
    tide_queues_look(engine, now_ms);
    const uint64_t metadata_ms = tide_metadata_look(engine, now_ms);
    tide_alerts_tick(engine->alerts, now_ms);
    tell_changes(engine, now_ms);
    if (any && now_ms >= engine->alerts_saved_ms + SAVE_EVERY_MS)
        tide_alerting_save_all(engine, now_ms);
    uint64_t at_ms = tide_alerts_wake_at_ms(engine->alerts);
    at_ms = metadata_ms < at_ms ? metadata_ms : at_ms;
    return any && at_ms > now_ms + TICK_MS ? now_ms + TICK_MS : at_ms;
}
