/* records.c - names, bad items, intents, schedules, alerts and notes. */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>

/* ---- names --------------------------------------------------------------------- */

/* The first column of a row of names; TIDE_NOT_FOUND. */
static tide_status by_id(struct tide_sqlite *self, enum tide_sql text, const char *what,
                         uint32_t id, uint32_t *value_out, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, text);
    bool row = false;
    tide_bind_u64(stmt, 1, id);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
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
    TIDE_TRY(by_id(self, SQL_KIND_BY_ID, "kind", kind, scope_out, err));
    return tide_map_put(&self->kinds, kind, *scope_out) ? TIDE_OK : tide_sql_no_memory(err);
}

tide_status tide_sql_account_exists(struct tide_sqlite *self, uint32_t account, tide_error *err)
{
    uint32_t ignored = 0;
    if (tide_map_get(&self->accounts, account, &ignored))
        return TIDE_OK;
    TIDE_TRY(by_id(self, SQL_ACCOUNT_BY_ID, "account", account, &ignored, err));
    return tide_map_put(&self->accounts, account, 0) ? TIDE_OK : tide_sql_no_memory(err);
}

tide_status tide_sql_governor_save(tide_tx *tx, uint32_t account, tide_text saved, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_ACCOUNT_GOVERNOR);
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, saved);
    return tide_sql_change_one(self, stmt, "account", account, err);
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
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    TIDE_ASSERT(row); /* its claim was there a moment ago */
    uint64_t account = tide_column_u64(stmt, 0);
    uint64_t kind = tide_column_u64(stmt, 1);
    tide_db_end(stmt);
    tide_status rc = TIDE_OK;
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

/* ---- intents -------------------------------------------------------------------- */

static tide_status intent_read(struct tide_sqlite *self, tide_text tag, bool *found_out,
                               tide_intent_state *state_out, tide_buf *outcome_out, tide_error *err)
{
    sqlite3_stmt *stmt = tide_db_ask(&self->db, SQL_INTENT_GET, tag);
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
    rc = tide_db_do(&self->db, err, SQL_INTENT_ADD, tag, job, now_unix_ms,
                    tide_value_or_null(detail));
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
    TIDE_TRY(intent_read(sqlite_of(ledger), tag, &found, state_out, outcome_out, err));
    if (!found)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no intent %.*s", (int)tag.bytes,
                              tag.data);
    return TIDE_OK;
}

/* ---- schedules ------------------------------------------------------------------ */

tide_status tide_sql_schedule_fire(tide_tx *tx, uint64_t schedule, uint64_t slot,
                                   uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    bool row = false;
    tide_status rc = tide_db_do(&self->db, err, SQL_SCHEDULE_FIRE, schedule, slot, now_unix_ms);
    if (rc != TIDE_OK || sqlite3_changes(self->db.handle) == 1)
        return tide_sql_end(self, rc);
    sqlite3_stmt *stmt = tide_db_ask(&self->db, SQL_SCHEDULE_BY_ID, schedule);
    rc = tide_db_step(&self->db, stmt, &row, err);
    tide_db_end(stmt);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    if (!row)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no schedule %" PRIu64, schedule);
    return tide_error_set(err, TIDE_EXISTS, "slot %" PRIu64 " of schedule %" PRIu64 " has fired",
                          slot, schedule);
}
