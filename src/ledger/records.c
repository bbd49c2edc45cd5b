/* records.c - accounts, dependencies, bad items, intents, schedules, alerts and notes.
 *
 * Their statements are few, run rarely, and both databases read them alike (db/rows.h), so one
 * text serves both stores. */
#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "ledger/common.h"

#include <inttypes.h>
#include <string.h>

/* A whole operation: one statement without rows. */
#define change(tx, changed_out, err, ...)                                                          \
    change_with(tx, changed_out, err, TIDE_VALUES(__VA_ARGS__))
static tide_status change_with(tide_tx *tx, uint64_t *changed_out, tide_error *err,
                               const tide_value *values, size_t count)
{
    tide_rows rows = {.sqlite = NULL};
    tide_status rc = tx->ledger->ops->rows(tx->ledger, &rows, err);
    if (rc == TIDE_OK)
        rc = tide_rows_change_with(rows, "the ledger", changed_out, err, values, count);
    return tx->ledger->ops->rows_end(tx->ledger, rc);
}

/* One that changes exactly the row that `what` and `id` name. */
#define change_one(tx, what, id, err, ...)                                                         \
    change_one_with(tx, what, id, err, TIDE_VALUES(__VA_ARGS__))
static tide_status change_one_with(tide_tx *tx, const char *what, uint64_t id, tide_error *err,
                                   const tide_value *values, size_t count)
{
    uint64_t changed = 0;
    TIDE_TRY(change_with(tx, &changed, err, values, count));
    if (changed != 1)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no %s %" PRIu64, what, id);
    return TIDE_OK;
}

/* ---- names and accounts --------------------------------------------------------- */

/* PostgreSQL stores only UTF-8, and db/rows.h replaces other bytes (RWS3): two names would become
 * one. */
static bool can_store(const tide_ledger *ledger, tide_text name)
{
    size_t bytes = 1;
    while (tide_ledger_shared(ledger) && name.bytes > 0 && bytes > 0) {
        bytes = tide_utf8_bytes(name);
        name = (tide_text){name.data + bytes, name.bytes - bytes};
    }
    return bytes > 0;
}

static tide_status name_check(const tide_ledger *ledger, const char *what, const char *name,
                              tide_error *err)
{
    TIDE_TRY(tide_name_check(what, tide_text_of(name), TIDE_NAME_BYTES_MAX, err));
    if (!can_store(ledger, tide_text_of(name)))
        return tide_error_set(err, TIDE_INVALID, "the name of %s is not UTF-8", what);
    return TIDE_OK;
}

static tide_status find(tide_ledger *ledger, const char *sql, const char *what, const char *name,
                        uint32_t *id_out, bool *paused_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(ledger, &stmt, err, sql, name);
    if (rc == TIDE_OK)
        rc = can_store(ledger, tide_text_of(name)) ? tide_rows_one(&stmt, err) : TIDE_NOT_FOUND;
    if (rc == TIDE_NOT_FOUND)
        rc = tide_error_set(err, rc, "there is no %s %s", what, name);
    if (rc == TIDE_OK) {
        *id_out = tide_rows_get_u32(&stmt, 0);
        if (paused_out != NULL)
            *paused_out = tide_rows_get_u64(&stmt, 1) != 0;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

tide_status tide_ledger_kind_find(tide_ledger *ledger, const char *name, uint32_t *kind_out,
                                  bool *paused_out, tide_error *err)
{
    return find(ledger, "SELECT id, paused FROM kind WHERE name = ?1", "kind", name, kind_out,
                paused_out, err);
}

tide_status tide_ledger_account_find(tide_ledger *ledger, const char *name, uint32_t *account_out,
                                     tide_error *err)
{
    return find(ledger, "SELECT id FROM account WHERE name = ?1", "account", name, account_out,
                NULL, err);
}

tide_status tide_ledger_accounts(tide_ledger *ledger,
                                 bool (*visit)(const struct tide_account_row *row, void *arg),
                                 void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(
        ledger, &stmt, err,
        "SELECT a.id, a.name, a.provider, a.paused, a.halted, a.halt_reason, a.halted_at,"
        " a.governor, m.owner, a.archive, a.secret"
        " FROM account a LEFT JOIN member m ON m.owner = a.owner AND NOT m.dead"
        " ORDER BY a.id");
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_account_row account = {
            .id = tide_rows_get_u32(&stmt, 0),
            .paused = tide_rows_get_u64(&stmt, 3) != 0,
            .halted = tide_rows_get_u64(&stmt, 4) != 0,
            .halted_unix_ms = tide_rows_get_u64(&stmt, 6),
            .governor = tide_rows_get_text(&stmt, 7),
            .owner = tide_rows_get_u64(&stmt, 8),
        };
        tide_rows_get_copy(&stmt, 1, account.name, sizeof account.name);
        tide_rows_get_copy(&stmt, 2, account.provider, sizeof account.provider);
        tide_rows_get_copy(&stmt, 5, account.halt_reason, sizeof account.halt_reason);
        tide_rows_get_copy(&stmt, 9, account.archive, sizeof account.archive);
        tide_rows_get_copy(&stmt, 10, account.secret, sizeof account.secret);
        if (!visit(&account, arg))
            break;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

/* Finds the name with this second value, or adds it, or changes its second value; TIDE_NOT_FOUND:
 * `set` added nothing.  If another process adds the same name meanwhile, `set` waits for it and
 * writes the same row. */
static tide_status name_id(tide_tx *tx, const char *find, const char *set, const char *name,
                           tide_value second, uint32_t *id_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(tx->ledger, &stmt, err, find, name, second);
    if (rc == TIDE_OK)
        rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_NOT_FOUND) {
        tide_rows_end(&stmt);
        rc = tide_ledger_ask(tx->ledger, &stmt, err, set, name, second);
        if (rc == TIDE_OK)
            rc = tide_rows_one(&stmt, err);
    }
    if (rc == TIDE_OK)
        *id_out = tide_rows_get_u32(&stmt, 0);
    return tide_ledger_end_rows(tx->ledger, &stmt, rc);
}

tide_status tide_ledger_kind(tide_tx *tx, const char *name, tide_dedupe_scope scope,
                             uint32_t *kind_out, tide_error *err)
{
    TIDE_TRY(name_check(tx->ledger, "a kind", name, err));
    tx->ledger->ops->names_change(tx->ledger);
    /* Pending jobs keep the scope they were enqueued with. */
    return name_id(tx, "SELECT id FROM kind WHERE name = ?1 AND scope = ?2",
                   "INSERT INTO kind (name, scope) VALUES (?1, ?2)"
                   " ON CONFLICT (name) DO UPDATE SET scope = excluded.scope RETURNING id",
                   name, tide_value_u64(scope), kind_out, err);
}

static_assert(TIDE_ACCOUNTS_MAX == 4096, "the statement that adds an account says so too");

tide_status tide_ledger_account(tide_tx *tx, const char *name, const char *provider,
                                uint32_t *account_out, tide_error *err)
{
    tide_status rc = name_check(tx->ledger, "an account", name, err);
    if (rc == TIDE_OK && strlen(provider) > 32)
        rc = tide_error_set(err, TIDE_INVALID, "the provider's name has at most 32 bytes");
    if (rc == TIDE_OK)
        rc = name_id(tx, "SELECT id FROM account WHERE name = ?1 AND provider = ?2",
                     "INSERT INTO account (name, provider) SELECT ?1, ?2"
                     " WHERE (SELECT count(*) FROM account) < 4096"
                     " OR EXISTS (SELECT 1 FROM account WHERE name = ?1)"
                     " ON CONFLICT (name) DO UPDATE SET provider = excluded.provider RETURNING id",
                     name, tide_value_string(provider), account_out, err);
    if (rc == TIDE_NOT_FOUND)
        rc = tide_error_set(
            err, TIDE_FULL,
            "no room for account %.200s: a ledger holds at most %d; remove one first", name,
            TIDE_ACCOUNTS_MAX);
    return rc;
}

tide_status tide_ledger_account_place(tide_tx *tx, uint32_t account, const char *archive,
                                      const char *secret, tide_error *err)
{
    const struct tide_account_row *room = NULL;
    if ((archive != NULL && strlen(archive) >= sizeof room->archive) ||
        (secret != NULL && strlen(secret) >= sizeof room->secret))
        return tide_error_set(err, TIDE_INVALID,
                              "an archive's id has at most %zu bytes, a secret's place %zu",
                              sizeof room->archive - 1, sizeof room->secret - 1);
    const tide_value keep = tide_value_if(false, 0);
    return change_one(tx, "account", account, err,
                      "UPDATE account SET archive = coalesce(?2, archive),"
                      " secret = coalesce(?3, secret) WHERE id = ?1",
                      account, archive == NULL ? keep : tide_value_string(archive),
                      secret == NULL ? keep : tide_value_string(secret));
}

tide_status tide_ledger_account_pause(tide_tx *tx, uint32_t account, bool paused, tide_error *err)
{
    tx->ledger->ops->names_change(tx->ledger);
    return change_one(tx, "account", account, err,
                      "UPDATE account SET paused = ?2 <> 0 WHERE id = ?1", account, paused);
}

tide_status tide_ledger_kind_pause(tide_tx *tx, uint32_t kind, bool paused, tide_error *err)
{
    tx->ledger->ops->names_change(tx->ledger);
    return change_one(tx, "kind", kind, err, "UPDATE kind SET paused = ?2 <> 0 WHERE id = ?1", kind,
                      paused);
}

tide_status tide_ledger_kind_splits(tide_tx *tx, uint32_t kind, bool splits, tide_error *err)
{
    return change_one(tx, "kind", kind, err, "UPDATE kind SET splits = ?2 <> 0 WHERE id = ?1", kind,
                      splits);
}

tide_status tide_ledger_account_halt(tide_tx *tx, uint32_t account, bool halted, const char *reason,
                                     uint64_t now_unix_ms, tide_error *err)
{
    return change_one(
        tx, "account", account, err,
        "UPDATE account SET halt_reason = ?1, halted_at = ?2, halted = ?3 <> 0 WHERE id = ?4",
        tide_value_or_null(halted ? tide_text_of(reason) : TIDE_TEXT_NONE),
        tide_value_if(halted && now_unix_ms != 0, now_unix_ms), halted, account);
}

/* ---- dependencies --------------------------------------------------------------- */

tide_status tide_ledger_needs(tide_ledger *ledger, uint64_t job, struct tide_need *needs_out,
                              size_t count_max, size_t *count_out, tide_error *err)
{
    tide_rows_stmt stmt;
    size_t count = 0;
    tide_status rc =
        tide_ledger_ask(ledger, &stmt, err,
                        "SELECT d.needs, j.state FROM dep d JOIN job j ON j.id = d.needs"
                        " WHERE d.job = ?1 ORDER BY d.needs LIMIT ?2",
                        job, count_max);
    while (tide_rows_next(&stmt, &rc, err)) {
        TIDE_ASSERT(count < count_max);
        needs_out[count++] = (struct tide_need){tide_rows_get_u64(&stmt, 0),
                                                (tide_row_state)tide_rows_get_u32(&stmt, 1)};
    }
    if (rc == TIDE_OK)
        *count_out = count;
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

/* ---- bad items ------------------------------------------------------------------ */

tide_status tide_ledger_bad_list(tide_ledger *ledger, uint32_t account, uint32_t kind,
                                 bool (*visit)(const struct tide_bad_row *row, void *arg),
                                 void *arg, tide_error *err)
{
    const struct tide_bad_key first = {0, 0, TIDE_TEXT("")}; /* before all: kinds begin at 1 */
    return tide_ledger_bad_after(ledger, account, kind, &first, visit, arg, err);
}

tide_status tide_ledger_bad_count(tide_ledger *ledger, uint32_t account, uint32_t kind, int state,
                                  uint64_t *count_out, tide_error *err)
{
    tide_rows_stmt stmt;
    uint64_t count = 0;
    tide_status rc = tide_ledger_ask(ledger, &stmt, err,
                                     "SELECT count(*) FROM bad WHERE account BETWEEN ?1 AND ?2"
                                     " AND (?3 = 0 OR kind = ?3) AND (?4 < 0 OR state = ?4)",
                                     account == UINT32_MAX ? 0 : account, account, kind, state);
    if (tide_rows_next(&stmt, &rc, err))
        count = tide_rows_get_u64(&stmt, 0);
    rc = tide_ledger_end_rows(ledger, &stmt, rc);
    if (rc == TIDE_OK)
        *count_out = count;
    return rc;
}

tide_status tide_ledger_bad_after(tide_ledger *ledger, uint32_t account, uint32_t kind,
                                  const struct tide_bad_key *after,
                                  bool (*visit)(const struct tide_bad_row *row, void *arg),
                                  void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(
        ledger, &stmt, err,
        "SELECT b.account, b.kind, b.state, b.cycle, b.first_seen, b.last_tried, b.retries,"
        " a.name, k.name, b.item, b.reason FROM bad b"
        " LEFT JOIN account a ON a.id = b.account LEFT JOIN kind k ON k.id = b.kind"
        " WHERE b.account BETWEEN ?1 AND ?2 AND (?3 = 0 OR b.kind = ?3)"
        " AND (b.account, b.kind, b.item COLLATE BINARY) > (?4, ?5, ?6)"
        " ORDER BY b.account, b.kind, b.item COLLATE BINARY",
        account == UINT32_MAX ? 0 : account, account, kind, after->account, after->kind,
        after->item);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_bad_row bad = {
            .account = tide_rows_get_u32(&stmt, 0),
            .kind = tide_rows_get_u32(&stmt, 1),
            .state = (tide_bad_state)tide_rows_get_u32(&stmt, 2),
            .cycle = tide_rows_get_u64(&stmt, 3),
            .first_seen_unix_ms = tide_rows_get_u64(&stmt, 4),
            .last_tried_unix_ms = tide_rows_get_u64(&stmt, 5),
            .retries = tide_rows_get_u32(&stmt, 6),
            .account_name = tide_rows_get_text(&stmt, 7),
            .kind_name = tide_rows_get_text(&stmt, 8),
            .item = tide_rows_get_text(&stmt, 9),
            .reason = tide_rows_get_text(&stmt, 10),
        };
        if (!visit(&bad, arg))
            break;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

tide_status tide_ledger_bad_state(tide_tx *tx, uint32_t account, uint32_t kind, tide_text item,
                                  tide_bad_state state, uint64_t now_unix_ms, tide_error *err)
{
    return change_one(tx, "bad item of kind", kind, err,
                      "UPDATE bad SET state = ?4, last_tried = ?5"
                      " WHERE account = ?1 AND kind = ?2 AND item = ?3",
                      account, kind, item, state, now_unix_ms);
}

/* ---- intents -------------------------------------------------------------------- */

tide_status tide_ledger_intent_end(tide_tx *tx, tide_text tag, tide_intent_state state,
                                   tide_text outcome, uint64_t now_unix_ms, tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(change(tx, &changed, err,
                    "UPDATE intent SET outcome = ?1, state = ?2, ended = ?3 WHERE tag = ?4",
                    tide_value_or_null(outcome), state, now_unix_ms, tag));
    if (changed != 1)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no intent %.*s", (int)tag.bytes,
                              tag.data);
    return TIDE_OK;
}

/* ---- schedules ------------------------------------------------------------------ */

static tide_status kind_exists(tide_ledger *ledger, uint32_t kind, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(ledger, &stmt, err, "SELECT 1 FROM kind WHERE id = ?1", kind);
    if (rc == TIDE_OK)
        rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_NOT_FOUND)
        rc = tide_error_set(err, rc, "there is no kind %" PRIu32, kind);
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

tide_status tide_ledger_schedule(tide_tx *tx, const struct tide_schedule_row *row, uint64_t *id_out,
                                 tide_error *err)
{
    tide_rows_stmt stmt;
    if (row->name.bytes == 0 || row->name.bytes > TIDE_NAME_BYTES_MAX || row->period_ms == 0)
        return tide_error_set(err, TIDE_INVALID,
                              "a schedule has a name of 1 to %d bytes and a period",
                              TIDE_NAME_BYTES_MAX);
    TIDE_TRY(kind_exists(tx->ledger, row->kind, err));
    tide_status rc = tide_ledger_ask(
        tx->ledger, &stmt, err,
        "INSERT INTO schedule (name, kind, period, anchor, per_account, at_start, payload)"
        " VALUES (?1, ?2, ?3, ?4, ?5 <> 0, ?6 <> 0, ?7)"
        " ON CONFLICT (name) DO UPDATE SET kind = excluded.kind,"
        /* The grid of slots is kept across starts; another period is another grid. */
        " anchor = CASE WHEN schedule.period = excluded.period THEN schedule.anchor"
        " ELSE excluded.anchor END,"
        " period = excluded.period, per_account = excluded.per_account,"
        " at_start = excluded.at_start, payload = excluded.payload RETURNING id",
        row->name, row->kind, row->period_ms, row->anchor_unix_ms, row->per_account, row->at_start,
        tide_value_or_null(row->payload));
    if (rc == TIDE_OK)
        rc = tide_rows_one(&stmt, err);
    TIDE_ASSERT(rc != TIDE_NOT_FOUND);
    if (rc == TIDE_OK)
        *id_out = tide_rows_get_u64(&stmt, 0);
    return tide_ledger_end_rows(tx->ledger, &stmt, rc);
}

tide_status tide_ledger_schedules(tide_ledger *ledger,
                                  bool (*visit)(const struct tide_schedule_row *row, void *arg),
                                  void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_ledger_ask(ledger, &stmt, err,
                        "SELECT id, kind, period, anchor, slot_last, per_account, at_start,"
                        " name, payload FROM schedule ORDER BY id");
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_schedule_row schedule = {
            .id = tide_rows_get_u64(&stmt, 0),
            .kind = tide_rows_get_u32(&stmt, 1),
            .period_ms = tide_rows_get_u64(&stmt, 2),
            .anchor_unix_ms = tide_rows_get_u64(&stmt, 3),
            .slot_last = tide_rows_get_u64(&stmt, 4),
            .per_account = tide_rows_get_u64(&stmt, 5) != 0,
            .at_start = tide_rows_get_u64(&stmt, 6) != 0,
            .name = tide_rows_get_text(&stmt, 7),
            .payload = tide_rows_get_text(&stmt, 8),
        };
        if (!visit(&schedule, arg))
            break;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

/* ---- alerts --------------------------------------------------------------------- */

tide_status tide_ledger_alert(tide_tx *tx, const char *condition, uint32_t account, int level,
                              const char *text, uint64_t now_unix_ms, tide_error *err)
{
    if (level < 0 || level > 2 || condition[0] == '\0' || strlen(condition) > 48)
        return tide_error_set(err, TIDE_INVALID, "an alert has a short name and a level of 0 to 2");
    if (level == 0)
        return change(tx, NULL, err, "DELETE FROM alert WHERE condition = ?1 AND account = ?2",
                      condition, account);
    return change(tx, NULL, err,
                  "INSERT INTO alert (condition, account, level, since, text)"
                  " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (condition, account)"
                  " DO UPDATE SET level = excluded.level, text = excluded.text",
                  condition, account, level, now_unix_ms, tide_value_or_null(tide_text_of(text)));
}

tide_status tide_ledger_alert_notified(tide_tx *tx, const char *condition, uint32_t account,
                                       uint64_t now_unix_ms, tide_error *err)
{
    return change_one(tx, "alert of account", account, err,
                      "UPDATE alert SET notified = ?3 WHERE condition = ?1 AND account = ?2",
                      condition, account, now_unix_ms);
}

tide_status tide_ledger_alerts(tide_ledger *ledger,
                               bool (*visit)(const struct tide_alert_row *row, void *arg),
                               void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(
        ledger, &stmt, err,
        "SELECT l.condition, l.account, l.level, l.since, l.notified, l.text, a.name"
        " FROM alert l LEFT JOIN account a ON a.id = l.account"
        " ORDER BY l.level DESC, l.since, l.condition COLLATE BINARY, l.account");
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_alert_row alert = {
            .account = tide_rows_get_u32(&stmt, 1),
            .level = (int)tide_rows_get_i64(&stmt, 2),
            .since_unix_ms = tide_rows_get_u64(&stmt, 3),
            .notified_unix_ms = tide_rows_get_u64(&stmt, 4),
        };
        tide_rows_get_copy(&stmt, 0, alert.condition, sizeof alert.condition);
        tide_rows_get_copy(&stmt, 5, alert.text, sizeof alert.text);
        tide_rows_get_copy(&stmt, 6, alert.account_name, sizeof alert.account_name);
        if (!visit(&alert, arg))
            break;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

/* ---- notes ---------------------------------------------------------------------- */

tide_status tide_ledger_note(tide_tx *tx, const char *key, tide_text value, tide_error *err)
{
    return change(tx, NULL, err,
                  "INSERT INTO note (key, value) VALUES (?1, ?2)"
                  " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                  key, value);
}

tide_status tide_ledger_note_get(tide_ledger *ledger, const char *key, tide_buf *value_out,
                                 tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_ledger_ask(ledger, &stmt, err, "SELECT value FROM note WHERE key = ?1", key);
    if (rc == TIDE_OK)
        rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_NOT_FOUND)
        rc = tide_error_set(err, rc, "there is no note %s", key);
    if (rc == TIDE_OK) {
        const tide_text value = tide_rows_get_text(&stmt, 0);
        tide_buf_clear(value_out);
        rc = tide_buf_add(value_out, value.data, value.bytes);
        if (rc != TIDE_OK)
            (void)tide_error_set(err, rc, "no room for the note %s", key);
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}
