/* alerting_end.c - the alerts of an account end with it, whoever raised them (E6.4).
 *
 * No job of it runs any more, so no condition would ever be looked at again: its alerts would be shown for
 * ever.  The rows go in the transaction that removes the account; what this process has of them in
 * memory goes when that is durable.  The windows go, too: a restart would raise the alert from them
 * again, and an account that is added again begins without. */
#include "engine/engine.h"
#include "ledger/rows.h"

#include <stdio.h>
#include <string.h>

tide_status tide_transaction_alerts_end(tide_transaction *transaction, uint32_t account,
                                        tide_error *err)
{
    TIDE_TRY(tide_rows_do(tide_transaction_rows(transaction), "the alerts of an account", err,
                          "DELETE FROM alert WHERE account = ?1", account));
    return tide_alerting_saved_end(transaction, account, err);
}

static void log_end(tide_engine *engine, uint32_t id, const char *condition)
{
    const struct tide_account *account = tide_engine_account_of(engine, id);
    tide_log_event(engine->log, TIDE_LOG_INFO, tide_world_now_unix_ms(engine->world), "alert",
                   TIDE_F_CSTR("condition", condition),
                   TIDE_F_CSTR("level", tide_level_name(TIDE_LEVEL_NONE)),
                   TIDE_F_CSTR("account", account == NULL ? "" : account->name),
                   TIDE_F_CSTR("detail", "the account was removed"));
}

static void forget_systems(tide_engine *engine, uint32_t account)
{
    for (size_t i = engine->system_alerts_count; i-- > 0;) {
        struct tide_system_alert alert = engine->system_alerts[i];
        if (alert.account != account)
            continue;
        log_end(engine, account, alert.condition);
        alert.level = TIDE_LEVEL_NONE;
        (void)tide_system_alerts_put(engine, &alert); /* takes it out: needs no memory */
    }
}

void tide_engine_alerts_forget(tide_engine *engine, uint32_t account)
{
    struct tide_alert alert;
    size_t cursor = 0;
    tide_lock_take(engine->world, engine->lock);
    while (tide_alerts_each(engine->alerts, &cursor, &alert))
        if (alert.account == account)
            log_end(engine, account, tide_condition_name(alert.condition));
    tide_alerts_forget(engine->alerts, account);
    const struct tide_account *known = tide_engine_account_of(engine, account);
    if (known != NULL) /* it may be added again: its own thresholds stay */
        tide_alerting_own(engine, known);
    forget_systems(engine, account);
    tide_notifying_look(engine);
    tide_lock_drop(engine->world, engine->lock);
}
