/* notifier.c - the thread that passes notices of alerts to the program (E6.4).
 *
 * One step takes the notice that is due (durable, ledger/notices.h), hands it to the program's
 * function, and stores how that ended.  What a crash leaves:
 *   before the first commit   nothing: the next look decides again
 *   between the two           a row with a tag: the same notice is sent again (E1.9)
 *   after the second          what the user was told
 *
 * There is no thread while no notice is wanted.  It looks at the start, after a change of an alert,
 * of the settings or of the wall clock, and when a notice is due.  On a shared ledger it looks once
 * a minute as well, because another process may have died before it sent one. */
#include "base/check.h"
#include "base/encode.h"
#include "engine/engine.h"
#include "ledger/notices.h"
#include "ledger/rows.h"

#include <stdio.h>
#include <string.h>

enum {
    LEASE_MS = 150 * 1000,          /* longer than a send may take (tidemark_inside.h) */
    SHARED_LOOK_MS = 60 * 1000,     /* where other processes send, too */
    CLOCK_LOOK_MS = 10 * 60 * 1000, /* while a notice waits and nobody watches the wall clock */
    RETRY_WRITE_MS = 5000,          /* the ledger did not take an outcome */
};

/* One look, kept for the thread's life: too large for a stack. */
struct take_ask {
    bool off;   /* none is wanted: only clean up */
    bool fresh; /* the settings changed: what was refused before is tried now */
    bool clock_watched;
    bool failing; /* out: the alert that notices cannot be sent is shown */
    char tag[TIDE_NOTICE_TAG_BYTES + 1];
    struct tide_notice_row row;
    uint64_t next_unix_ms;
    tide_status failed; /* of the last look: logged once */
};

static tide_status set_up(tide_engine *engine, const struct tide_notifier *notifier,
                          tide_error *err)
{
    struct tide_notifying *notifying = &engine->notifying;
    if (engine->phase != TIDE_PHASE_OPEN || notifying->wake != NULL)
        return tide_error_set(err, TIDE_INVALID, "the engine was started, or has a notifier");
    notifying->ask = tide_mem_new(engine->mem, sizeof(struct take_ask));
    if (notifying->ask == NULL || tide_cond_new(engine->world, &notifying->wake) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for notices");
    notifying->notifier = *notifier;
    return TIDE_OK;
}

tide_status tide_engine_notifier(tide_engine *engine, const struct tide_notifier *notifier,
                                 tide_error *err)
{
    TIDE_ASSERT(notifier->send != NULL);
    tide_lock_take(engine->world, engine->lock);
    const tide_status rc = set_up(engine, notifier, err);
    tide_lock_drop(engine->world, engine->lock);
    return rc;
}

void tide_engine_alert_mail(tide_engine *engine, const char *account,
                            struct tide_alert_mail *mail_out)
{
    tide_lock_take(engine->world, engine->lock);
    *mail_out = tide_tuning_alert_mail(tide_settings_of(engine->settings, account));
    tide_lock_drop(engine->world, engine->lock);
}

void tide_notifying_look(tide_engine *engine)
{
    if (!engine->notifying.on)
        return;
    engine->notifying.look = true;
    tide_cond_wake_one(engine->world, engine->notifying.wake);
}

bool tide_notifying_busy(const tide_engine *engine)
{
    return engine->notifying.look || engine->notifying.working;
}

void tide_notifying_cancel(tide_engine *engine)
{
    tide_world_cancel(engine->world, &engine->notifying.cancel, TIDE_CANCEL_STOP);
    if (engine->notifying.wake != NULL)
        tide_cond_wake_all(engine->world, engine->notifying.wake);
}

/* ---- transactions, on the writer's thread ------------------------------------------ */

/* That notices cannot be sent is an alert of its own, without a notice. */
static tide_status show_failing(tide_transaction *transaction, bool off, bool *failing_out,
                                tide_error *err)
{
    const tide_rows rows = tide_transaction_rows(transaction);
    char error[300] = "", shown[401] = "", text[401] = "";
    tide_status rc = off ? TIDE_OK : tide_notices_failing(rows, error, sizeof error, err);
    if (rc == TIDE_OK)
        rc = tide_rows_copy(rows, "alerts", shown, sizeof shown, err,
                            "SELECT text FROM alert WHERE condition = ?1 AND account = 0",
                            TIDE_NOTICES_CONDITION);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    if (error[0] != '\0')
        (void)snprintf(text, sizeof text, "a notice of an alert cannot be sent: %s", error);
    *failing_out = text[0] != '\0';
    if (strcmp(shown, text) == 0)
        return TIDE_OK;
    return tide_ledger_alert(transaction->tx, TIDE_NOTICES_CONDITION, 0,
                             text[0] != '\0' ? TIDE_LEVEL_WARN : TIDE_LEVEL_NONE, text,
                             transaction->now_unix_ms, err);
}

/* Under the lock: for all, or for one account alone. */
static bool any_wanted(const tide_engine *engine)
{
    bool wanted = engine->tuning.notices_wanted;
    size_t at = 0;
    const char *account = NULL;
    while (!wanted && (account = tide_settings_account(engine->settings, &at)) != NULL)
        wanted = tide_tuning_engine(tide_settings_of(engine->settings, account)).notices_wanted;
    return wanted;
}

/* On the writer's thread, without the lock. */
static bool settings_of(void *arg, uint32_t id, struct tide_alerts_settings *settings_out)
{
    tide_engine *engine = arg;
    tide_lock_take(engine->world, engine->lock);
    const struct tide_account *account = tide_engine_account_of(engine, id);
    const tide_settings *settings =
        account == NULL ? engine->settings : tide_account_settings(engine, account);
    *settings_out = tide_tuning_alerts(settings);
    const bool wanted = tide_tuning_engine(settings).notices_wanted;
    tide_lock_drop(engine->world, engine->lock);
    return wanted;
}

static tide_status take_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct take_ask *ask = arg;
    tide_engine *engine = transaction->engine;
    const tide_rows rows = tide_transaction_rows(transaction);
    const struct tide_notices_ask notices = {.settings_of = settings_of,
                                             .settings_arg = engine,
                                             .owner = engine->run_id,
                                             .tag = ask->tag,
                                             .alone = engine->fleet == NULL,
                                             .lease_ms = LEASE_MS,
                                             .now_unix_ms = transaction->now_unix_ms};
    tide_status rc = ask->off || ask->fresh ? tide_notices_retry(rows, err) : TIDE_OK;
    ask->row.tag[0] = '\0';
    ask->next_unix_ms = UINT64_MAX;
    if (rc == TIDE_OK && !ask->off)
        rc = tide_notices_take(rows, &notices, &ask->row, &ask->next_unix_ms, err);
    return rc == TIDE_OK ? show_failing(transaction, ask->off, &ask->failing, err) : rc;
}

static void take_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    const struct take_ask *ask = arg;
    (void)now_ms;
    engine->notifying.shown = ask->failing;
}

struct end_ask {
    const struct tide_notice_row *row;
    enum tide_notice_end end;
    const char *error;
    bool failing;
};

static tide_status end_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct end_ask *ask = arg;
    const struct tide_notice_row *row = ask->row;
    tide_status rc = tide_notices_end(tide_transaction_rows(transaction), row, ask->end, ask->error,
                                      transaction->now_unix_ms, err);
    if (rc == TIDE_OK && ask->end == TIDE_NOTICE_SENT && row->level > 0) {
        rc = tide_ledger_alert_notified(transaction->tx, row->condition, row->account,
                                        transaction->now_unix_ms, err);
        rc = rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* it ended meanwhile */
    }
    return rc == TIDE_OK ? show_failing(transaction, /* off= */ false, &ask->failing, err) : rc;
}

static void end_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    const struct end_ask *ask = arg;
    (void)now_ms;
    engine->notifying.shown = ask->failing;
}

/* ---- one step, without the lock ------------------------------------------------------ */

static enum tide_notice_end end_of(tide_status rc)
{
    switch (rc) {
    case TIDE_OK:
        return TIDE_NOTICE_SENT;
    case TIDE_UNKNOWN:
    case TIDE_TIMEOUT:
    case TIDE_CANCELED:
    case TIDE_STOPPED:
        return TIDE_NOTICE_UNKNOWN;
    case TIDE_PERMANENT:
    case TIDE_AUTH:
    case TIDE_INVALID:
    case TIDE_NOT_FOUND:
        return TIDE_NOTICE_FINAL;
    default:
        return TIDE_NOTICE_REFUSED;
    }
}

static void log_end(tide_engine *engine, const struct tide_notice_row *row,
                    enum tide_notice_end end, const char *error)
{
    static const char *const events[] = {"notice sent", "notice not sent, tried again later",
                                         "notice refused", "notice with unknown outcome"};
    tide_log_event(engine->log, end == TIDE_NOTICE_SENT ? TIDE_LOG_INFO : TIDE_LOG_WARN,
                   tide_world_now_unix_ms(engine->world), events[end],
                   TIDE_F_CSTR("condition", row->condition),
                   TIDE_F_CSTR("level", tide_level_name((enum tide_level)row->level)),
                   TIDE_F_CSTR("account", row->account_name), TIDE_F_CSTR("tag", row->tag),
                   TIDE_F_CSTR("detail", error));
}

/* Stores the outcome, however long the ledger takes: another look would send it again. */
static void store_end(tide_engine *engine, const struct tide_notice_row *row,
                      enum tide_notice_end end, const char *error)
{
    struct end_ask ask = {.row = row, .end = end, .error = error};
    tide_status rc = TIDE_BUSY;
    while (rc != TIDE_OK && rc != TIDE_STOPPED) {
        tide_error err = {TIDE_OK, 0, ""};
        struct tide_write write = {.run = end_run, .arg = &ask, .apply = end_apply};
        rc = tide_write_run(engine, &write, &err);
        if (rc != TIDE_OK && rc != TIDE_STOPPED &&
            tide_world_sleep_until(
                engine->world, tide_world_now_us(engine->world) + RETRY_WRITE_MS * (uint64_t)1000,
                &engine->notifying.cancel) != TIDE_OK)
            rc = TIDE_STOPPED; /* the row says that it is in flight: it is sent again */
    }
}

static void pass_on(tide_engine *engine, const struct tide_notice_row *row)
{
    const struct tide_notifier *notifier = &engine->notifying.notifier;
    const struct tide_notice notice = {
        .condition = row->condition,
        .account = row->account_name,
        .text = row->text,
        .tag = row->tag,
        .level = row->level,
        .still = row->kind == TIDE_NOTICE_STILL,
        .again = row->again,
        .since_unix_ms = row->since_unix_ms,
        .ended_unix_ms = row->level == 0 ? row->state.ended_unix_ms : 0,
        .made_unix_ms = row->made_unix_ms,
    };
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = notifier->send(notifier->arg, &notice, &engine->notifying.cancel, &err);
    if (tide_world_dead(engine->world))
        return;
    const enum tide_notice_end end = end_of(rc);
    log_end(engine, row, end, err.text);
    /* A stop is no failure: the next process takes the row. */
    if (rc != TIDE_CANCELED && rc != TIDE_STOPPED)
        store_end(engine, row, end, err.text);
}

static void tag_make(tide_engine *engine, char tag[TIDE_NOTICE_TAG_BYTES + 1])
{
    unsigned char random[TIDE_NOTICE_TAG_BYTES / 2];
    tide_world_random(engine->world, random, sizeof random);
    tide_hex(random, sizeof random, tag);
}

static uint64_t look_at_ms(tide_engine *engine, uint64_t next_unix_ms, bool clock_watched)
{
    const uint64_t now_ms = tide_world_now_ms(engine->world);
    const uint64_t at_ms =
        next_unix_ms == UINT64_MAX ? TIDE_NEVER : tide_engine_at_ms(engine, next_unix_ms, now_ms);
    const uint64_t latest_ms = engine->fleet != NULL                  ? now_ms + SHARED_LOOK_MS
                               : at_ms == TIDE_NEVER || clock_watched ? TIDE_NEVER
                                                                      : now_ms + CLOCK_LOOK_MS;
    return at_ms < latest_ms ? at_ms : latest_ms;
}

/* Returns when to look again. */
static uint64_t step(tide_engine *engine, struct take_ask *ask)
{
    tide_error err = {TIDE_OK, 0, ""};
    tag_make(engine, ask->tag);
    struct tide_write write = {.run = take_run, .arg = ask, .apply = take_apply};
    const tide_status rc = tide_write_run(engine, &write, &err);
    if (rc != TIDE_OK && rc != ask->failed && rc != TIDE_STOPPED)
        tide_log_event(engine->log, TIDE_LOG_WARN, tide_world_now_unix_ms(engine->world),
                       "notices of alerts wait for the ledger", TIDE_F_CSTR("detail", err.text));
    ask->failed = rc;
    if (rc != TIDE_OK)
        return tide_world_now_ms(engine->world) + RETRY_WRITE_MS;
    ask->fresh = false;
    if (ask->off)
        return TIDE_NEVER;
    if (ask->row.tag[0] == '\0')
        return look_at_ms(engine, ask->next_unix_ms, ask->clock_watched);
    pass_on(engine, &ask->row);
    return 0; /* there may be others */
}

/* ---- the thread ------------------------------------------------------------------------ */

static void notifier_main(void *arg)
{
    tide_engine *engine = arg;
    struct tide_notifying *notifying = &engine->notifying;
    struct take_ask *ask = notifying->ask;
    uint64_t at_ms = 0;
    tide_status rc = TIDE_OK;
    tide_lock_take(engine->world, engine->lock);
    /* A stop waits for notices that are due, within its grace: it ends when this is not busy. */
    while (rc != TIDE_STOPPED &&
           (engine->phase == TIDE_PHASE_RUN || engine->phase == TIDE_PHASE_GRACE)) {
        if (!notifying->look && at_ms > tide_world_now_ms(engine->world)) {
            const uint64_t at_us = at_ms > TIDE_NEVER / 1000 ? TIDE_NEVER : at_ms * 1000;
            rc = tide_cond_wait(engine->world, notifying->wake, engine->lock, at_us);
            continue;
        }
        notifying->look = false;
        notifying->working = true;
        ask->off = !any_wanted(engine);
        ask->fresh = ask->fresh || notifying->fresh;
        notifying->fresh = false;
        ask->clock_watched = engine->clock_watched;
        tide_lock_drop(engine->world, engine->lock);
        at_ms = step(engine, ask);
        tide_lock_take(engine->world, engine->lock);
        notifying->working = false;
        notifying->look = notifying->look || at_ms == 0;
        if (engine->phase != TIDE_PHASE_RUN)
            tide_cond_wake_one(engine->world, engine->pump);
        rc = tide_world_dead(engine->world) ? TIDE_STOPPED : TIDE_OK;
    }
    tide_lock_drop(engine->world, engine->lock);
}

/* Under the lock. */
static tide_status thread_start(tide_engine *engine, tide_error *err)
{
    struct tide_notifying *notifying = &engine->notifying;
    const tide_status rc = tide_world_thread(engine->world, "notifier", notifier_main, engine,
                                             &notifying->thread, err);
    notifying->on = notifying->look = rc == TIDE_OK;
    return rc;
}

tide_status tide_notifying_start(tide_engine *engine, tide_error *err)
{
    struct tide_notifying *notifying = &engine->notifying;
    tide_status rc = TIDE_OK;
    if (notifying->notifier.send == NULL)
        return rc;
    tide_lock_take(engine->world, engine->lock);
    /* Where none is wanted any more, what was shown of failures is removed. */
    if (!notifying->on && (any_wanted(engine) || notifying->shown))
        rc = thread_start(engine, err);
    tide_lock_drop(engine->world, engine->lock);
    return rc;
}

void tide_notifying_reload(tide_engine *engine)
{
    struct tide_notifying *notifying = &engine->notifying;
    notifying->fresh = true;
    if (notifying->on)
        tide_notifying_look(engine);
    else if (notifying->notifier.send != NULL && any_wanted(engine) &&
             engine->phase == TIDE_PHASE_RUN)
        (void)thread_start(engine, NULL); /* the next change of the settings tries again */
}

void tide_notifying_free(tide_engine *engine)
{
    if (engine->notifying.wake != NULL)
        tide_cond_free(engine->world, engine->notifying.wake);
    tide_mem_free(engine->mem, engine->notifying.ask, sizeof(struct take_ask));
}
