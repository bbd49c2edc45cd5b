/* records.c - names, bad items, intents, schedules, alerts and notes. */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>

/* ---- names --------------------------------------------------------------------- */

tide_status tide_sql_kind(tide_tx *tx, const char *name, tide_dedupe_scope scope,
                          uint32_t *kind_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_KIND_GET);
    bool row = false;
    tide_bind_text(stmt, 1, tide_text_of(name));
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    uint64_t id = row ? tide_column_u64(stmt, 0) : 0;
    bool same = row && tide_column_u64(stmt, 1) == scope;
    tide_db_end(stmt);
    if (!row) {
        stmt = sql_of(self, SQL_KIND_ADD);
        tide_bind_text(stmt, 1, tide_text_of(name));
        (void)sqlite3_bind_int(stmt, 2, (int)scope);
        rc = tide_db_run(&self->db, stmt, err);
        id = (uint64_t)sqlite3_last_insert_rowid(self->db.handle);
    } else if (!same) {
        /* Pending jobs keep the scope they were enqueued with. */
        stmt = sql_of(self, SQL_KIND_SCOPE);
        tide_bind_u64(stmt, 1, id);
        (void)sqlite3_bind_int(stmt, 2, (int)scope);
        rc = tide_db_run(&self->db, stmt, err);
    }
    if (rc == TIDE_OK && !tide_map_put(&self->kinds, id, (uint32_t)scope))
        rc = tide_sql_no_memory(err);
    if (rc == TIDE_OK)
        *kind_out = (uint32_t)id;
    return tide_sql_end(self, rc);
}

/* The first column of a row of names; TIDE_NOT_FOUND. */
static tide_status by_id(struct tide_sqlite *self, enum tide_sql text, const char *what,
                         uint32_t id, uint32_t *value_out, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, text);
    bool row = false;
    tide_bind_u64(stmt, 1, id);
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc != TIDE_OK)
        return rc;
    if (!row)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no %s %u", what, id);
    *value_out = tide_column_u32(stmt, 0);
    tide_db_end(stmt);
    return TIDE_OK;
}

tide_status tide_sql_kind_scope(struct tide_sqlite *self, uint32_t kind, uint32_t *scope_out,
                                tide_error *err)
{
    if (kind != 0 && tide_map_get(&self->kinds, kind, scope_out))
        return TIDE_OK;
    tide_status rc = by_id(self, SQL_KIND_BY_ID, "kind", kind, scope_out, err);
    if (rc != TIDE_OK)
        return rc;
    return tide_map_put(&self->kinds, kind, *scope_out) ? TIDE_OK : tide_sql_no_memory(err);
}

tide_status tide_sql_account_exists(struct tide_sqlite *self, uint32_t account, tide_error *err)
{
    uint32_t ignored = 0;
    if (tide_map_get(&self->accounts, account, &ignored))
        return TIDE_OK;
    tide_status rc = by_id(self, SQL_ACCOUNT_BY_ID, "account", account, &ignored, err);
    if (rc != TIDE_OK)
        return rc;
    return tide_map_put(&self->accounts, account, 0) ? TIDE_OK : tide_sql_no_memory(err);
}

tide_status tide_sql_account(tide_tx *tx, const char *name, const char *provider,
                             uint32_t *account_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_ACCOUNT_GET);
    bool row = false;
    tide_bind_text(stmt, 1, tide_text_of(name));
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    uint64_t id = row ? tide_column_u64(stmt, 0) : 0;
    bool same = row && tide_text_equal(tide_column_text(stmt, 1), tide_text_of(provider));
    tide_db_end(stmt);
    if (!row) {
        stmt = sql_of(self, SQL_ACCOUNT_ADD);
        tide_bind_text(stmt, 1, tide_text_of(name));
        tide_bind_text(stmt, 2, tide_text_of(provider));
        tide_bind_u64(stmt, 3, TIDE_ACCOUNTS_MAX);
        rc = tide_db_run(&self->db, stmt, err);
        if (rc == TIDE_OK && sqlite3_changes(self->db.handle) == 0)
            rc = tide_accounts_full(name, err);
        id = (uint64_t)sqlite3_last_insert_rowid(self->db.handle);
    } else if (!same) {
        stmt = sql_of(self, SQL_ACCOUNT_PROVIDER);
        tide_bind_u64(stmt, 1, id);
        tide_bind_text(stmt, 2, tide_text_of(provider));
        rc = tide_db_run(&self->db, stmt, err);
    }
    if (rc == TIDE_OK)
        *account_out = (uint32_t)id;
    return tide_sql_end(self, rc);
}

tide_status tide_sql_accounts(tide_ledger *ledger,
                              bool (*visit)(const struct tide_account_row *row, void *arg),
                              void *arg, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_ACCOUNT_LIST);
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        struct tide_account_row account = {.id = tide_column_u32(stmt, 0)};
        tide_column_copy(stmt, 1, account.name, sizeof account.name);
        tide_column_copy(stmt, 2, account.provider, sizeof account.provider);
        account.paused = tide_column_u64(stmt, 3) != 0;
        account.halted = tide_column_u64(stmt, 4) != 0;
        tide_column_copy(stmt, 5, account.halt_reason, sizeof account.halt_reason);
        account.halted_unix_ms = tide_column_u64(stmt, 6);
        account.governor = tide_column_text(stmt, 7);
        tide_column_copy(stmt, 8, account.archive, sizeof account.archive);
        tide_column_copy(stmt, 9, account.secret, sizeof account.secret);
        if (!visit(&account, arg))
            break;
    }
    tide_db_end(stmt);
    return rc;
}

tide_status tide_sql_account_halt(tide_tx *tx, uint32_t account, bool halted, const char *reason,
                                  uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_ACCOUNT_HALT);
    tide_bind_u64(stmt, 1, account);
    (void)sqlite3_bind_int(stmt, 2, halted);
    tide_bind_text_or_null(stmt, 3, halted ? tide_text_of(reason) : TIDE_TEXT_NONE);
    tide_bind_u64_or_null(stmt, 4, halted ? now_unix_ms : 0);
    return tide_sql_change_one(self, stmt, "account", account, err);
}

/* Sets one flag of one row; what is paused is read again. */
static tide_status flag(tide_tx *tx, enum tide_sql text, const char *what, uint32_t id, bool value,
                        tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, text);
    self->paused_known = false;
    tide_bind_u64(stmt, 1, id);
    (void)sqlite3_bind_int(stmt, 2, value);
    return tide_sql_change_one(self, stmt, what, id, err);
}

tide_status tide_sql_account_pause(tide_tx *tx, uint32_t account, bool paused, tide_error *err)
{
    return flag(tx, SQL_ACCOUNT_PAUSE, "account", account, paused, err);
}

tide_status tide_sql_governor_save(tide_tx *tx, uint32_t account, tide_text saved, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_ACCOUNT_GOVERNOR);
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, saved);
    return tide_sql_change_one(self, stmt, "account", account, err);
}

static void bind_or_keep(sqlite3_stmt *stmt, int at, const char *text)
{
    if (text == NULL)
        (void)sqlite3_bind_null(stmt, at);
    else
        tide_bind_text(stmt, at, tide_text_of(text));
}

tide_status tide_sql_account_place(tide_tx *tx, uint32_t account, const char *archive,
                                   const char *secret, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_ACCOUNT_PLACE);
    tide_bind_u64(stmt, 1, account);
    bind_or_keep(stmt, 2, archive);
    bind_or_keep(stmt, 3, secret);
    return tide_sql_change_one(self, stmt, "account", account, err);
}

tide_status tide_sql_kind_pause(tide_tx *tx, uint32_t kind, bool paused, tide_error *err)
{
    return flag(tx, SQL_KIND_PAUSE, "kind", kind, paused, err);
}

tide_status tide_sql_kind_splits(tide_tx *tx, uint32_t kind, bool splits, tide_error *err)
{
    return flag(tx, SQL_KIND_SPLITS, "kind", kind, splits, err);
}

static bool paused_add(struct tide_sqlite *self, uint32_t **array, size_t *count, size_t *capacity,
                       uint32_t id)
{
    void *grown = *array;
    if (!tide_mem_grow(self->mem, &grown, capacity, *count + 1, (size_t)1 << 20, sizeof **array))
        return false;
    *array = grown;
    (*array)[(*count)++] = id;
    return true;
}

/* Read once per transaction: usually two empty indexes. */
tide_status tide_sql_paused_load(struct tide_sqlite *self, tide_error *err)
{
    if (self->paused_known)
        return TIDE_OK;
    sqlite3_stmt *stmt = sql_of(self, SQL_PAUSED);
    self->paused_accounts_count = 0;
    self->paused_kinds_count = 0;
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        uint32_t id = tide_column_u32(stmt, 1);
        bool added = tide_column_u64(stmt, 0) == 0
                         ? paused_add(self, &self->paused_accounts, &self->paused_accounts_count,
                                      &self->paused_accounts_capacity, id)
                         : paused_add(self, &self->paused_kinds, &self->paused_kinds_count,
                                      &self->paused_kinds_capacity, id);
        if (!added) {
            tide_db_end(stmt);
            return tide_sql_no_memory(err);
        }
    }
    self->paused_known = rc == TIDE_OK;
    return rc;
}

bool tide_sql_paused(const struct tide_sqlite *self, uint32_t account, uint32_t kind)
{
    TIDE_ASSERT(self->paused_known);
    for (size_t i = 0; i < self->paused_accounts_count; i++)
        if (self->paused_accounts[i] == account)
            return true;
    for (size_t i = 0; i < self->paused_kinds_count; i++)
        if (self->paused_kinds[i] == kind)
            return true;
    return false;
}

/* ---- bad items ----------------------------------------------------------------- */

tide_status tide_sql_bad_add(struct tide_sqlite *self, uint64_t job, uint64_t cycle,
                             const struct tide_item_report *items, size_t count,
                             uint64_t now_unix_ms, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_ACCOUNT_KIND);
    bool row = false;
    tide_bind_u64(stmt, 1, job);
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc != TIDE_OK)
        return rc;
    TIDE_ASSERT(row); /* its claim was there a moment ago */
    uint64_t account = tide_column_u64(stmt, 0);
    uint64_t kind = tide_column_u64(stmt, 1);
    tide_db_end(stmt);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        rc = tide_item_check(&items[i], err);
        if (rc != TIDE_OK)
            return rc;
        bool clear = items[i].status == TIDE_OK;
        stmt = sql_of(self, clear ? SQL_BAD_CLEAR : SQL_BAD_ADD);
        tide_bind_u64(stmt, 1, account);
        tide_bind_u64(stmt, 2, kind);
        tide_bind_text(stmt, 3, items[i].item);
        if (clear) {
            rc = tide_db_run(&self->db, stmt, err);
            continue;
        }
        (void)sqlite3_bind_int(stmt, 4, (int)tide_bad_state_of(items[i].status));
        tide_bind_u64_or_null(stmt, 5, cycle);
        tide_bind_u64(stmt, 6, now_unix_ms);
        tide_bind_text_or_null(stmt, 7, items[i].reason);
        rc = tide_db_run(&self->db, stmt, err);
    }
    return rc;
}

tide_status tide_sql_bad_list(tide_ledger *ledger, uint32_t account, uint32_t kind,
                              bool (*visit)(const struct tide_bad_row *row, void *arg), void *arg,
                              tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_BAD_LIST);
    tide_bind_u64(stmt, 1, account == UINT32_MAX ? 0 : account);
    tide_bind_u64(stmt, 2, account);
    tide_bind_u64(stmt, 3, kind);
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        struct tide_bad_row bad = {
            .account = tide_column_u32(stmt, 0),
            .kind = tide_column_u32(stmt, 1),
            .state = (tide_bad_state)tide_column_u32(stmt, 2),
            .cycle = tide_column_u64(stmt, 3),
            .first_seen_unix_ms = tide_column_u64(stmt, 4),
            .last_tried_unix_ms = tide_column_u64(stmt, 5),
            .retries = tide_column_u32(stmt, 6),
            .account_name = tide_column_text(stmt, 7),
            .kind_name = tide_column_text(stmt, 8),
            .item = tide_column_text(stmt, 9),
            .reason = tide_column_text(stmt, 10),
        };
        if (!visit(&bad, arg))
            break;
    }
    tide_db_end(stmt);
    return rc;
}

tide_status tide_sql_bad_state(tide_tx *tx, uint32_t account, uint32_t kind, tide_text item,
                               tide_bad_state state, uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_BAD_STATE);
    tide_bind_u64(stmt, 1, account);
    tide_bind_u64(stmt, 2, kind);
    tide_bind_text(stmt, 3, item);
    (void)sqlite3_bind_int(stmt, 4, (int)state);
    tide_bind_u64(stmt, 5, now_unix_ms);
    return tide_sql_change_one(self, stmt, "bad item of kind", kind, err);
}

/* ---- intents -------------------------------------------------------------------- */

static tide_status intent_read(struct tide_sqlite *self, tide_text tag, bool *found_out,
                               tide_intent_state *state_out, tide_buf *outcome_out, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_INTENT_GET);
    tide_bind_text(stmt, 1, tag);
    tide_status rc = tide_db_step(&self->db, stmt, found_out, err);
    if (rc != TIDE_OK || !*found_out)
        return rc;
    tide_text outcome = tide_column_text(stmt, 1);
    if (outcome_out != NULL) {
        tide_buf_clear(outcome_out);
        rc = tide_buf_add(outcome_out, outcome.data, outcome.bytes);
        if (rc != TIDE_OK)
            (void)tide_error_set(err, rc, "no room for the outcome of an intent");
    }
    if (rc == TIDE_OK)
        *state_out = (tide_intent_state)tide_column_u32(stmt, 0);
    tide_db_end(stmt);
    return rc;
}

tide_status tide_sql_intent(tide_tx *tx, uint64_t job, tide_text tag, tide_text detail,
                            uint64_t now_unix_ms, tide_intent_state *state_out,
                            tide_buf *outcome_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    bool found = false;
    tide_status rc = intent_read(self, tag, &found, state_out, outcome_out, err);
    if (rc != TIDE_OK || found)
        return tide_sql_end(self, rc);
    sqlite3_stmt *stmt = sql_of(self, SQL_INTENT_ADD);
    tide_bind_text(stmt, 1, tag);
    tide_bind_u64(stmt, 2, job);
    tide_bind_u64(stmt, 3, now_unix_ms);
    tide_bind_text_or_null(stmt, 4, detail);
    rc = tide_db_run(&self->db, stmt, err);
    if (rc == TIDE_OK) {
        *state_out = TIDE_INTENT_MADE;
        if (outcome_out != NULL)
            tide_buf_clear(outcome_out);
    }
    return tide_sql_end(self, rc);
}

tide_status tide_sql_intent_find(tide_ledger *ledger, tide_text tag, tide_intent_state *state_out,
                                 tide_buf *outcome_out, tide_error *err)
{
    bool found = false;
    tide_status rc = intent_read(sqlite_of(ledger), tag, &found, state_out, outcome_out, err);
    if (rc == TIDE_OK && !found)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no intent %.*s", (int)tag.bytes,
                            tag.data);
    return rc;
}

tide_status tide_sql_intent_end(tide_tx *tx, tide_text tag, tide_intent_state state,
                                tide_text outcome, uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_INTENT_END);
    tide_bind_text(stmt, 1, tag);
    (void)sqlite3_bind_int(stmt, 2, (int)state);
    tide_bind_text_or_null(stmt, 3, outcome);
    tide_bind_u64(stmt, 4, now_unix_ms);
    tide_status rc = tide_db_run(&self->db, stmt, err);
    if (rc == TIDE_OK && sqlite3_changes(self->db.handle) != 1)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no intent %.*s", (int)tag.bytes,
                            tag.data);
    return tide_sql_end(self, rc);
}

/* ---- schedules ------------------------------------------------------------------ */

tide_status tide_sql_schedule(tide_tx *tx, const struct tide_schedule_row *row, uint64_t *id_out,
                              tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    uint32_t scope = 0;
    bool found = false;
    tide_status rc = tide_sql_kind_scope(self, row->kind, &scope, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    sqlite3_stmt *stmt = sql_of(self, SQL_SCHEDULE_SET);
    tide_bind_text(stmt, 1, row->name);
    tide_bind_u64(stmt, 2, row->kind);
    tide_bind_u64(stmt, 3, row->period_ms);
    tide_bind_u64(stmt, 4, row->anchor_unix_ms);
    (void)sqlite3_bind_int(stmt, 5, row->per_account);
    (void)sqlite3_bind_int(stmt, 6, row->at_start);
    tide_bind_text_or_null(stmt, 7, row->payload);
    rc = tide_db_run(&self->db, stmt, err);
    stmt = sql_of(self, SQL_SCHEDULE_GET);
    tide_bind_text(stmt, 1, row->name);
    if (rc == TIDE_OK)
        rc = tide_db_step(&self->db, stmt, &found, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    TIDE_ASSERT(found);
    *id_out = tide_column_u64(stmt, 0);
    tide_db_end(stmt);
    return TIDE_OK;
}

tide_status tide_sql_schedules(tide_ledger *ledger,
                               bool (*visit)(const struct tide_schedule_row *row, void *arg),
                               void *arg, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_SCHEDULE_LIST);
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        struct tide_schedule_row schedule = {
            .id = tide_column_u64(stmt, 0),
            .kind = tide_column_u32(stmt, 1),
            .period_ms = tide_column_u64(stmt, 2),
            .anchor_unix_ms = tide_column_u64(stmt, 3),
            .slot_last = tide_column_u64(stmt, 4),
            .per_account = tide_column_u64(stmt, 5) != 0,
            .at_start = tide_column_u64(stmt, 6) != 0,
            .name = tide_column_text(stmt, 7),
            .payload = tide_column_text(stmt, 8),
        };
        if (!visit(&schedule, arg))
            break;
    }
    tide_db_end(stmt);
    return rc;
}

tide_status tide_sql_schedule_fire(tide_tx *tx, uint64_t schedule, uint64_t slot,
                                   uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    bool row = false;
    sqlite3_stmt *stmt = sql_of(self, SQL_SCHEDULE_FIRE);
    tide_bind_u64(stmt, 1, schedule);
    tide_bind_u64(stmt, 2, slot);
    tide_bind_u64(stmt, 3, now_unix_ms);
    tide_status rc = tide_db_run(&self->db, stmt, err);
    if (rc != TIDE_OK || sqlite3_changes(self->db.handle) == 1)
        return tide_sql_end(self, rc);
    stmt = sql_of(self, SQL_SCHEDULE_BY_ID);
    tide_bind_u64(stmt, 1, schedule);
    rc = tide_db_step(&self->db, stmt, &row, err);
    tide_db_end(stmt);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    if (!row)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no schedule %" PRIu64, schedule);
    return tide_error_set(err, TIDE_EXISTS, "slot %" PRIu64 " of schedule %" PRIu64 " has fired",
                          slot, schedule);
}

/* ---- alerts and notes -------------------------------------------------------------- */

tide_status tide_sql_alert(tide_tx *tx, const char *condition, uint32_t account, int level,
                           const char *text, uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, level == 0 ? SQL_ALERT_CLEAR : SQL_ALERT_SET);
    tide_bind_text(stmt, 1, tide_text_of(condition));
    tide_bind_u64(stmt, 2, account);
    if (level > 0) {
        (void)sqlite3_bind_int(stmt, 3, level);
        tide_bind_u64(stmt, 4, now_unix_ms);
        tide_bind_text_or_null(stmt, 5, tide_text_of(text));
    }
    return tide_sql_end(self, tide_db_run(&self->db, stmt, err));
}

tide_status tide_sql_alert_notified(tide_tx *tx, const char *condition, uint32_t account,
                                    uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_ALERT_NOTIFIED);
    tide_bind_text(stmt, 1, tide_text_of(condition));
    tide_bind_u64(stmt, 2, account);
    tide_bind_u64(stmt, 3, now_unix_ms);
    return tide_sql_change_one(self, stmt, "alert of account", account, err);
}

tide_status tide_sql_alerts(tide_ledger *ledger,
                            bool (*visit)(const struct tide_alert_row *row, void *arg), void *arg,
                            tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_ALERT_LIST);
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        struct tide_alert_row alert = {
            .account = tide_column_u32(stmt, 1),
            .level = (int)tide_column_u32(stmt, 2),
            .since_unix_ms = tide_column_u64(stmt, 3),
            .notified_unix_ms = tide_column_u64(stmt, 4),
        };
        tide_column_copy(stmt, 0, alert.condition, sizeof alert.condition);
        tide_column_copy(stmt, 5, alert.text, sizeof alert.text);
        tide_column_copy(stmt, 6, alert.account_name, sizeof alert.account_name);
        if (!visit(&alert, arg))
            break;
    }
    tide_db_end(stmt);
    return rc;
}

tide_status tide_sql_metadata(tide_ledger *ledger, uint32_t account, uint64_t *bytes_out,
                              bool *bad_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_METADATA);
    bool row = false;
    tide_bind_u64(stmt, 1, account);
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc == TIDE_OK && row) {
        *bytes_out = tide_column_u64(stmt, 0);
        *bad_out = tide_column_u64(stmt, 1) != 0;
    }
    tide_db_end(stmt);
    return rc;
}

tide_status tide_sql_note(tide_tx *tx, const char *key, tide_text value, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_NOTE_SET);
    tide_bind_text(stmt, 1, tide_text_of(key));
    tide_bind_text(stmt, 2, value);
    return tide_sql_end(self, tide_db_run(&self->db, stmt, err));
}

tide_status tide_sql_note_get(tide_ledger *ledger, const char *key, tide_buf *value_out,
                              tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_NOTE_GET);
    bool row = false;
    tide_bind_text(stmt, 1, tide_text_of(key));
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc != TIDE_OK)
        return rc;
    if (!row)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no note %s", key);
    tide_text value = tide_column_text(stmt, 0);
    tide_buf_clear(value_out);
    rc = tide_buf_add(value_out, value.data, value.bytes);
    tide_db_end(stmt);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for the note %s", key);
}
