#include "ledger/notices.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

static const char what[] = "the notices of alerts";

static const char tables_sql[] =
    "CREATE TABLE IF NOT EXISTS notice_state("
    " condition TEXT NOT NULL, account INTEGER NOT NULL, version INTEGER NOT NULL,"
    " told INTEGER NOT NULL, sent INTEGER NOT NULL, ended INTEGER NOT NULL," /* what a user knows */
    " failures INTEGER NOT NULL, retry INTEGER NOT NULL, error TEXT NOT NULL,"
    " tag TEXT NOT NULL, owner TEXT NOT NULL, until INTEGER NOT NULL," /* tag '': none in flight */
    " kind INTEGER NOT NULL, level INTEGER NOT NULL, since INTEGER NOT NULL, made INTEGER NOT NULL,"
    " name TEXT NOT NULL, said TEXT NOT NULL,"
    " PRIMARY KEY (condition, account)) STRICT;";

tide_status tide_notices_tables(tide_rows rows, tide_error *err)
{
    return tide_rows_tables(rows, tables_sql, what, err);
}

/* ---- reading ---------------------------------------------------------------------- */

#define STATE                                                                                      \
    "n.version, n.told, n.sent, n.ended, n.failures, n.retry, n.tag, n.owner, n.until, n.kind,"    \
    " n.level, n.since, n.made, n.name, n.said"

/* From column `at`; a row that does not exist yet has a NULL version, and all is 0. */
static void state_read(const tide_rows_stmt *stmt, int at, struct tide_notice_row *row)
{
    row->version = tide_rows_get_u64(stmt, at);
    row->state = (struct tide_notice_state){
        .told = (int)tide_rows_get_i64(stmt, at + 1),
        .sent_unix_ms = tide_rows_get_u64(stmt, at + 2),
        .ended_unix_ms = tide_rows_get_u64(stmt, at + 3),
        .failures = tide_rows_get_u32(stmt, at + 4),
        .retry_unix_ms = tide_rows_get_u64(stmt, at + 5),
        .taken_until_unix_ms = tide_rows_get_u64(stmt, at + 8),
    };
    tide_rows_get_copy(stmt, at + 6, row->tag, sizeof row->tag);
    row->state.in_flight = row->tag[0] != '\0';
    tide_rows_get_copy(stmt, at + 7, row->owner, sizeof row->owner);
    row->kind = (enum tide_notice_kind)tide_rows_get_i64(stmt, at + 9);
    row->level = (int)tide_rows_get_i64(stmt, at + 10);
    row->since_unix_ms = tide_rows_get_u64(stmt, at + 11);
    row->made_unix_ms = tide_rows_get_u64(stmt, at + 12);
    tide_rows_get_copy(stmt, at + 13, row->account_name, sizeof row->account_name);
    tide_rows_get_copy(stmt, at + 14, row->text, sizeof row->text);
}

/* What the ledger says of a condition now. */
struct alert_now {
    int level; /* 0: it does not hold */
    uint64_t since_unix_ms;
    char name[201], text[401];
    bool gone; /* its account was removed */
};

/* The row that comes first, while all are walked through. */
struct look {
    const struct tide_notices_ask *ask;
    struct tide_notice_row row;
    struct alert_now alert;
    struct tide_notice_order order;
    bool settle; /* the row has to be brought up to date first */
    bool drop;   /* the row has to be removed first */
    bool found;
};

static void consider(struct look *look, struct tide_notice_row *row, const struct alert_now *alert)
{
    const struct tide_notices_ask *ask = look->ask;
    if (look->settle || look->drop)
        return; /* one change at a time: the next look sees the others */
    if (alert->gone) {
        look->drop = true;
        look->row = *row;
        return;
    }
    /* No other process could be sending it: this one looks only when it sends nothing. */
    if (row->state.in_flight && ask->alone)
        row->state.taken_until_unix_ms = 0;
    struct tide_alerts_settings settings;
    if (!ask->settings_of(ask->settings_arg, row->account, &settings))
        return;
    struct tide_notice_state settled = row->state;
    if (row->version > 0 &&
        tide_notice_settle(&settings, &settled, alert->level, ask->now_unix_ms)) {
        look->settle = true;
        look->row = *row;
        look->row.state = settled;
        return;
    }
    const struct tide_notice_order order =
        tide_notice_next(&settings, &row->state, alert->level, ask->now_unix_ms);
    if (order.kind == TIDE_NOTICE_NONE ||
        (look->found && order.at_unix_ms >= look->order.at_unix_ms))
        return;
    look->found = true;
    look->row = *row;
    look->alert = *alert;
    look->order = order;
}

/* Conditions that hold, with what was told of them. */
static tide_status look_active(tide_rows rows, struct look *look, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_rows_ask(
        rows, what, &stmt, err,
        "SELECT l.condition, l.account, l.level, l.since, l.text, a.name, " STATE
        " FROM alert l LEFT JOIN account a ON a.id = l.account"
        " LEFT JOIN notice_state n ON n.condition = l.condition AND n.account = l.account"
        " WHERE l.condition <> ?1 ORDER BY l.since, l.condition COLLATE BINARY, l.account",
        TIDE_NOTICES_CONDITION);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_notice_row row = {.account = tide_rows_get_u32(&stmt, 1)};
        struct alert_now alert = {.level = (int)tide_rows_get_i64(&stmt, 2),
                                  .since_unix_ms = tide_rows_get_u64(&stmt, 3)};
        state_read(&stmt, 6, &row);
        tide_rows_get_copy(&stmt, 0, row.condition, sizeof row.condition);
        tide_rows_get_copy(&stmt, 4, alert.text, sizeof alert.text);
        tide_rows_get_copy(&stmt, 5, alert.name, sizeof alert.name);
        consider(look, &row, &alert);
    }
    tide_rows_end(&stmt);
    return rc;
}

/* Conditions that were told of and have ended. */
static tide_status look_ended(tide_rows rows, struct look *look, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_rows_ask(
        rows, what, &stmt, err,
        "SELECT n.condition, n.account, a.id, " STATE " FROM notice_state n"
        " LEFT JOIN account a ON a.id = n.account"
        " WHERE (n.told > 0 OR n.tag <> '' OR n.failures > 0) AND NOT EXISTS"
        " (SELECT 1 FROM alert l WHERE l.condition = n.condition AND l.account = n.account)"
        " ORDER BY n.condition COLLATE BINARY, n.account");
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_notice_row row = {.account = tide_rows_get_u32(&stmt, 1)};
        struct alert_now alert = {.gone = row.account != 0 && tide_rows_get_null(&stmt, 2)};
        state_read(&stmt, 3, &row);
        tide_rows_get_copy(&stmt, 0, row.condition, sizeof row.condition);
        alert.since_unix_ms = row.since_unix_ms;
        (void)snprintf(alert.name, sizeof alert.name, "%s", row.account_name);
        (void)snprintf(alert.text, sizeof alert.text, "%s", row.text);
        consider(look, &row, &alert);
    }
    tide_rows_end(&stmt);
    return rc;
}

/* ---- writing ----------------------------------------------------------------------- */

/* `error` "": keeps the last one.  *changed_out: false, another process changed the row first
 * (NTR1). */
static tide_status row_write(tide_rows rows, const struct tide_notice_row *row, const char *error,
                             bool *changed_out, tide_error *err)
{
    const struct tide_notice_state *state = &row->state;
    uint64_t changed = 0;
    tide_status rc = TIDE_OK;
    if (row->version == 0) /* a row without history; its columns follow */
        rc = tide_rows_change(
            rows, what, &changed, err,
            "INSERT INTO notice_state (condition, account, version, told, sent, ended, failures,"
            " retry, error, tag, owner, until, kind, level, since, made, name, said)"
            " VALUES (?1, ?2, 0, 0, 0, 0, 0, 0, '', '', '', 0, 0, 0, 0, 0, '', '')"
            " ON CONFLICT (condition, account) DO NOTHING",
            row->condition, row->account);
    if (rc != TIDE_OK || (row->version == 0 && changed == 0)) {
        *changed_out = false;
        return rc;
    }
    rc = tide_rows_change(rows, what, &changed, err,
                          "UPDATE notice_state SET version = version + 1, told = ?4, sent = ?5,"
                          " ended = ?6, failures = ?7, retry = ?8, error = coalesce(?9, error)"
                          " WHERE condition = ?1 AND account = ?2 AND version = ?3",
                          row->condition, row->account, row->version, state->told,
                          state->sent_unix_ms, state->ended_unix_ms, state->failures,
                          state->retry_unix_ms, tide_value_or_null(tide_text_of(error)));
    *changed_out = rc == TIDE_OK && changed == 1;
    if (!*changed_out)
        return rc;
    /* The row is locked since the statement before. */
    return tide_rows_do(rows, what, err,
                        "UPDATE notice_state SET tag = ?3, owner = ?4, until = ?5"
                        " WHERE condition = ?1 AND account = ?2",
                        row->condition, row->account, state->in_flight ? row->tag : "",
                        state->in_flight ? row->owner : "", state->taken_until_unix_ms);
}

/* What the notice says; in the transaction of row_write(), which found the version. */
static tide_status content_write(tide_rows rows, const struct tide_notice_row *row, tide_error *err)
{
    return tide_rows_do(rows, what, err,
                        "UPDATE notice_state SET kind = ?3, level = ?4, since = ?5, made = ?6,"
                        " name = ?7, said = ?8 WHERE condition = ?1 AND account = ?2",
                        row->condition, row->account, (int)row->kind, row->level,
                        row->since_unix_ms, row->made_unix_ms, row->account_name, row->text);
}

static void fill(struct look *look)
{
    struct tide_notice_row *row = &look->row;
    const struct alert_now *alert = &look->alert;
    (void)snprintf(row->tag, sizeof row->tag, "%s", look->ask->tag);
    row->kind = look->order.kind;
    row->level = alert->level;
    row->since_unix_ms = alert->since_unix_ms;
    row->made_unix_ms = look->ask->now_unix_ms;
    (void)snprintf(row->account_name, sizeof row->account_name, "%s", alert->name);
    (void)snprintf(row->text, sizeof row->text, "%s", alert->text);
}

static tide_status take(tide_rows rows, struct look *look, bool *taken_out, tide_error *err)
{
    struct tide_notice_row *row = &look->row;
    row->again = look->order.again;
    if (!row->again)
        fill(look);
    row->state.in_flight = true;
    row->state.taken_until_unix_ms = look->ask->now_unix_ms + look->ask->lease_ms;
    (void)snprintf(row->owner, sizeof row->owner, "%s", look->ask->owner);
    tide_status rc = row_write(rows, row, "", taken_out, err);
    if (rc == TIDE_OK && *taken_out && !row->again)
        rc = content_write(rows, row, err);
    row->version++;
    return rc;
}

static tide_status drop(tide_rows rows, const struct tide_notice_row *row, tide_error *err)
{
    return tide_rows_do(
        rows, what, err,
        "DELETE FROM notice_state WHERE condition = ?1 AND account = ?2 AND version = ?3",
        row->condition, row->account, row->version);
}

tide_status tide_notices_take(tide_rows rows, const struct tide_notices_ask *ask,
                              struct tide_notice_row *row_out, uint64_t *next_unix_ms_out,
                              tide_error *err)
{
    struct look look = {.ask = ask};
    bool changed = false;
    TIDE_ASSERT(strlen(ask->tag) == TIDE_NOTICE_TAG_BYTES);
    TIDE_ASSERT(strlen(ask->owner) <= 32);
    row_out->tag[0] = '\0';
    tide_status rc = tide_notices_tables(rows, err);
    if (rc == TIDE_OK)
        rc = look_active(rows, &look, err);
    if (rc == TIDE_OK)
        rc = look_ended(rows, &look, err);
    if (rc != TIDE_OK)
        return rc;
    *next_unix_ms_out = ask->now_unix_ms;
    if (look.drop)
        return drop(rows, &look.row, err);
    if (look.settle)
        return row_write(rows, &look.row, "", &changed, err);
    if (!look.found || look.order.at_unix_ms > ask->now_unix_ms) {
        *next_unix_ms_out = look.found ? look.order.at_unix_ms : UINT64_MAX;
        return TIDE_OK;
    }
    rc = take(rows, &look, &changed, err);
    if (rc == TIDE_OK && changed)
        *row_out = look.row;
    return rc;
}

tide_status tide_notices_end(tide_rows rows, const struct tide_notice_row *row,
                             enum tide_notice_end end, const char *error, uint64_t now_unix_ms,
                             tide_error *err)
{
    struct tide_notice_row ended = *row;
    bool changed = false;
    TIDE_ASSERT(row->tag[0] != '\0');
    tide_notice_ended(&ended.state, row->level, row->again, end, now_unix_ms);
    ended.owner[0] = '\0';
    return row_write(rows, &ended, error, &changed, err);
}

tide_status tide_notices_retry(tide_rows rows, tide_error *err)
{
    bool has = false;
    const tide_status rc = tide_rows_has(rows, "notice_state", what, &has, err);
    if (rc != TIDE_OK || !has)
        return rc;
    return tide_rows_do(rows, what, err,
                        "UPDATE notice_state SET failures = 0, retry = 0, error = '',"
                        " version = version + 1 WHERE failures > 0 AND owner = ''");
}

tide_status tide_notices_failing(tide_rows rows, char *error_out, size_t error_bytes,
                                 tide_error *err)
{
    bool has = false;
    error_out[0] = '\0';
    tide_status rc = tide_rows_has(rows, "notice_state", what, &has, err);
    if (rc == TIDE_OK && has)
        rc = tide_rows_copy(rows, what, error_out, error_bytes, err,
                            "SELECT error FROM notice_state WHERE failures >= ?1"
                            " ORDER BY retry DESC LIMIT 1",
                            (int)TIDE_NOTICE_FAILURES_TOLD);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}
