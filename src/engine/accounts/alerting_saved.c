/* alerting_saved.c - windows of the alerts and totals of an account, kept in the ledger (E6.4, M4).
 *
 * Both are notes of the ledger, "alerts:ACCOUNT" and "totals:ACCOUNT".  They are written together
 * with the alert rows that follow from them, so that a row and its windows agree after a crash. */
#include "base/check.h"
#include "engine/engine.h"
#include "ledger/notices.h"
#include "ledger/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WINDOWS_BYTES_MAX = 16 << 10, TOTALS_BYTES_MAX = 256, TOTALS_VERSION = 1 };

static void key_of(const char *what, uint32_t account, char key[32])
{
    (void)snprintf(key, 32, "%s:%" PRIu32, what, account);
}

/* ---- totals ---------------------------------------------------------------------- */

static tide_status totals_print(const struct tide_account_totals *totals, tide_buf *text)
{
    return tide_buf_print(text,
                          "%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                          TOTALS_VERSION, totals->calls, totals->refused, totals->failed,
                          totals->retried, totals->split, totals->bad);
}

/* Totals that cannot be read count from 0: they are for display only. */
static struct tide_account_totals totals_parse(tide_text text)
{
    uint64_t numbers[7] = {0};
    const struct tide_account_totals none = {0};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!tide_text_number(&text, &numbers[i]))
            return none;
    if (numbers[0] != TOTALS_VERSION)
        return none;
    return (struct tide_account_totals){.calls = numbers[1],
                                        .refused = numbers[2],
                                        .failed = numbers[3],
                                        .retried = numbers[4],
                                        .split = numbers[5],
                                        .bad = numbers[6]};
}

tide_status tide_account_totals_read(tide_ledger *ledger, uint32_t account,
                                     struct tide_account_totals *totals_out, tide_error *err)
{
    char key[32];
    tide_auto_buf text = tide_buf_heap(TOTALS_BYTES_MAX);
    key_of("totals", account, key);
    tide_status rc = tide_ledger_note_get(ledger, key, &text, err);
    if (rc == TIDE_OK || rc == TIDE_NOT_FOUND) {
        *totals_out = totals_parse(tide_buf_text(&text));
        rc = TIDE_OK;
    }
    return rc;
}

/* ---- saving ---------------------------------------------------------------------- */

void tide_alerting_saved_init(struct tide_alerting_saved *saved, tide_mem *mem)
{
    tide_buf_init(&saved->windows, mem, WINDOWS_BYTES_MAX);
    tide_buf_init(&saved->totals, mem, TOTALS_BYTES_MAX);
}

void tide_alerting_saved_done(struct tide_alerting_saved *saved)
{
    tide_buf_done(&saved->windows);
    tide_buf_done(&saved->totals);
}

tide_status tide_alerting_saved_take(tide_engine *engine, struct tide_account *account,
                                     uint64_t now_ms, struct tide_alerting_saved *saved)
{
    saved->account = account->id;
    tide_status rc = tide_alerts_save(engine->alerts, account->id, now_ms,
                                      tide_world_now_unix_ms(engine->world), &saved->windows);
    if (rc == TIDE_NOT_FOUND)
        rc = TIDE_OK;
    return rc == TIDE_OK ? totals_print(&account->totals, &saved->totals) : rc;
}

static tide_status note(tide_tx *tx, const char *what, uint32_t account, const tide_buf *text,
                        tide_error *err)
{
    char key[32];
    key_of(what, account, key);
    return text->bytes == 0 ? TIDE_OK : tide_ledger_note(tx, key, tide_buf_text(text), err);
}

tide_status tide_alerting_saved_write(tide_tx *tx, const struct tide_alerting_saved *saved,
                                      tide_error *err)
{
    TIDE_TRY(note(tx, "alerts", saved->account, &saved->windows, err));
    return note(tx, "totals", saved->account, &saved->totals, err);
}

tide_status tide_alerting_saved_end(tide_transaction *transaction, uint32_t account,
                                    tide_error *err)
{
    char key[32];
    key_of("alerts", account, key);
    return tide_rows_do(tide_transaction_rows(transaction), "the windows of the alerts", err,
                        "DELETE FROM note WHERE key = ?1", key);
}

/* ---- taking over ----------------------------------------------------------------- */

static tide_status read_note(tide_ledger *ledger, const char *what, uint32_t account,
                             tide_buf *text, tide_error *err)
{
    char key[32];
    key_of(what, account, key);
    tide_buf_clear(text);
    tide_status rc = tide_ledger_note_get(ledger, key, text, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_alerting_saved_read(tide_ledger *ledger, uint32_t account,
                                     struct tide_alerting_saved *saved, tide_error *err)
{
    saved->account = account;
    TIDE_TRY(read_note(ledger, "alerts", account, &saved->windows, err));
    return read_note(ledger, "totals", account, &saved->totals, err);
}

void tide_alerting_taken(tide_engine *engine, struct tide_account *account, tide_text windows,
                         tide_text totals, uint64_t now_ms)
{
    tide_alerting_own(engine, account); /* first: a window of another length starts empty */
    /* Windows that cannot be read start empty; that must not keep the account from running. */
    if (windows.bytes > 0 && tide_alerts_restore(engine->alerts, account->id, windows, now_ms,
                                                 tide_world_now_unix_ms(engine->world)) != TIDE_OK)
        tide_log_event(engine->log, TIDE_LOG_WARN, tide_world_now_unix_ms(engine->world),
                       "windows of the alerts were unreadable and start empty",
                       TIDE_F_CSTR("account", account->name));
    account->totals = totals_parse(totals);
    account->metadata = (struct tide_metadata){.due = true};
}

struct shown_list {
    tide_engine *engine;
    struct shown {
        uint64_t account;
        enum tide_condition condition;
        enum tide_level level;
    } * rows;
    size_t count, capacity;
    tide_mem *mem;
    bool failed;
    bool notices; /* the alert of the notifier */
};

static bool keep_system_alert(tide_engine *engine, const struct tide_alert_row *row)
{
    struct tide_system_alert alert = {.account = row->account,
                                      .level = (enum tide_level)row->level};
    (void)snprintf(alert.condition, sizeof alert.condition, "%s", row->condition);
    (void)snprintf(alert.text, sizeof alert.text, "%s", row->text);
    return tide_system_alerts_put(engine, &alert);
}

/* Collects the rows before they are used: a statement cannot be used again while it is read. */
static bool collect_shown(const struct tide_alert_row *row, void *arg)
{
    struct shown_list *list = arg;
    enum tide_condition condition;
    if (strcmp(row->condition, TIDE_NOTICES_CONDITION) == 0)
        list->notices = true;
    if (!tide_condition_parse(row->condition, &condition)) {
        /* Not an alert of the engine: the system that raised it clears it. */
        list->failed = strcmp(row->condition, TIDE_NOTICES_CONDITION) != 0 &&
                       !keep_system_alert(list->engine, row);
        return !list->failed;
    }
    if (!TIDE_GROW_IN(list->mem, list->rows, list->capacity, list->count + 1,
                      (size_t)TIDE_ACCOUNTS_MAX * TIDE_CONDITIONS)) {
        list->failed = true;
        return false;
    }
    list->rows[list->count++] =
        (struct shown){row->account == 0 ? TIDE_ALERTS_NO_ACCOUNT : row->account, condition,
                       (enum tide_level)row->level};
    return true;
}

static tide_status load_shown(tide_engine *engine, uint64_t now_ms, tide_error *err)
{
    struct shown_list list = {.engine = engine, .mem = engine->mem};
    tide_status rc = tide_ledger_alerts(engine->ledger, collect_shown, &list, err);
    if (rc == TIDE_OK && list.failed)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for alerts");
    for (size_t i = 0; rc == TIDE_OK && i < list.count; i++) {
        const struct shown *shown = &list.rows[i];
        if (tide_alerts_shown(engine->alerts, shown->account, shown->condition, shown->level,
                              now_ms) != TIDE_OK)
            rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for alerts");
    }
    engine->notifying.shown = list.notices;
    tide_mem_free(engine->mem, list.rows, list.capacity * sizeof *list.rows);
    return rc;
}

tide_status tide_alerting_load(tide_engine *engine, tide_error *err)
{
    const uint64_t now_ms = tide_world_now_ms(engine->world);
    struct tide_alerting_saved saved;
    tide_alerting_saved_init(&saved, engine->mem);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < engine->accounts_count; i++) {
        struct tide_account *account = engine->accounts[i];
        rc = tide_alerting_saved_read(engine->ledger, account->id, &saved, err);
        if (rc == TIDE_OK)
            tide_alerting_taken(engine, account, tide_buf_text(&saved.windows),
                                tide_buf_text(&saved.totals), now_ms);
    }
    tide_alerting_saved_done(&saved);
    return rc == TIDE_OK ? load_shown(engine, now_ms, err) : rc;
}
