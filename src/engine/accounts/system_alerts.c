/* system_alerts.c - alerts that a system found by itself: rows, log, metrics and notices like those of
 * the engine (E6.4).
 *
 * The engine keeps no measure of them: the system says each time what holds, and only what differs from
 * what was said before is written.  A list in memory mirrors the rows, so that this costs no SQL and
 * that metrics can count them. */
#include "base/check.h"
#include "engine/engine.h"
#include "ledger/notices.h"

#include <stdio.h>
#include <string.h>

static struct tide_system_alert *find(tide_engine *engine, uint32_t account, const char *condition)
{
    for (size_t i = 0; i < engine->system_alerts_count; i++) {
        struct tide_system_alert *alert = &engine->system_alerts[i];
        if (alert->account == account && strcmp(alert->condition, condition) == 0)
            return alert;
    }
    return NULL;
}

bool tide_system_alerts_put(tide_engine *engine, const struct tide_system_alert *alert)
{
    struct tide_system_alert *known = find(engine, alert->account, alert->condition);
    if (known == NULL && alert->level == TIDE_LEVEL_NONE)
        return true;
    if (known != NULL && alert->level == TIDE_LEVEL_NONE) {
        *known = engine->system_alerts[--engine->system_alerts_count];
        return true;
    }
    if (known == NULL) {
        if (!TIDE_GROW_IN(engine->mem, engine->system_alerts, engine->system_alerts_room,
                          engine->system_alerts_count + 1, TIDE_SYSTEM_ALERTS_MAX))
            return false;
        known = &engine->system_alerts[engine->system_alerts_count++];
    }
    *known = *alert;
    return true;
}

void tide_system_alerts_free(tide_engine *engine)
{
    tide_mem_free(engine->mem, engine->system_alerts,
                  engine->system_alerts_room * sizeof *engine->system_alerts);
}

/* ---- a change ---- */

struct change {
    struct tide_system_alert alert;
    enum tide_level before;
};

static tide_status change_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct change *change = arg;
    const struct tide_system_alert *alert = &change->alert;
    return tide_ledger_alert(transaction->tx, alert->condition, alert->account, (int)alert->level,
                             alert->text, transaction->now_unix_ms, err);
}

static void change_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    const struct change *change = arg;
    const struct tide_system_alert *alert = &change->alert;
    const struct tide_account *account = tide_engine_account_of(engine, alert->account);
    (void)now_ms;
    (void)tide_system_alerts_put(engine, alert); /* without memory it is written again next time */
    if (alert->level == change->before)
        return; /* only its text is another one */
    tide_log_event(engine->log, alert->level == TIDE_LEVEL_NONE ? TIDE_LOG_INFO : TIDE_LOG_WARN,
                   tide_world_now_unix_ms(engine->world), "alert",
                   TIDE_F_CSTR("condition", alert->condition),
                   TIDE_F_CSTR("level", tide_level_name(alert->level)),
                   TIDE_F_CSTR("account", account == NULL ? "" : account->name),
                   TIDE_F_CSTR("detail", alert->text));
    tide_notifying_look(engine);
}

/* Whether it is there as it is said. */
static bool is_known(tide_engine *engine, struct change *change)
{
    const struct tide_system_alert *alert = &change->alert;
    tide_lock_take(engine->world, engine->lock);
    const struct tide_system_alert *known = find(engine, alert->account, alert->condition);
    change->before = known == NULL ? TIDE_LEVEL_NONE : known->level;
    const bool same =
        change->before == alert->level &&
        (alert->level == TIDE_LEVEL_NONE || (known != NULL && !strcmp(known->text, alert->text)));
    tide_lock_drop(engine->world, engine->lock);
    return same;
}

tide_status tide_engine_alert(tide_engine *engine, uint32_t account, const char *condition,
                              int level, const char *text, tide_error *err)
{
    enum tide_condition engines;
    struct change change = {.alert = {.account = account, .level = (enum tide_level)level}};
    struct tide_system_alert *alert = &change.alert;
    if (level < TIDE_LEVEL_NONE || level > TIDE_LEVEL_CRITICAL ||
        strlen(condition) >= sizeof alert->condition || tide_condition_parse(condition, &engines) ||
        strcmp(condition, TIDE_NOTICES_CONDITION) == 0)
        return tide_error_set(err, TIDE_INVALID, "\"%.60s\" is no condition of a system",
                              condition);
    (void)snprintf(alert->condition, sizeof alert->condition, "%s", condition);
    (void)snprintf(alert->text, sizeof alert->text, "%s", text);
    if (is_known(engine, &change))
        return TIDE_OK;
    struct tide_write write = {.run = change_run, .arg = &change, .apply = change_apply};
    return tide_write_run(engine, &write, err);
}
