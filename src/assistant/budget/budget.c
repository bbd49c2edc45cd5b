#include "assistant/budget/budget.h"

#include "base/check.h"
#include "base/json.h"

#include <inttypes.h>

#define WHAT "the budget of a chat account"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS assistant_budget_day("
    " account INTEGER NOT NULL, day INTEGER NOT NULL, spent INTEGER NOT NULL,"
    " held INTEGER NOT NULL, PRIMARY KEY(account, day)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS assistant_budget_held("
    " account INTEGER NOT NULL, call INTEGER NOT NULL, day INTEGER NOT NULL,"
    " model TEXT NOT NULL, tokens INTEGER NOT NULL, until_ms INTEGER NOT NULL,"
    " PRIMARY KEY(account, call)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS assistant_budget_cost("
    " account INTEGER NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL,"
    " calls INTEGER NOT NULL, in_tokens INTEGER NOT NULL, out_tokens INTEGER NOT NULL,"
    " estimated INTEGER NOT NULL, lost INTEGER NOT NULL, PRIMARY KEY(account, day, model)"
    ") STRICT, WITHOUT ROWID;";

tide_status tide_assistant_budget_tables(tide_rows db, tide_error *err)
{
    return tide_rows_tables(db, tables, WHAT, err);
}

uint64_t tide_assistant_smaller_budget(uint64_t a, uint64_t b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

uint64_t tide_assistant_day_of(uint64_t unix_ms)
{
    return unix_ms / TIDE_ASSISTANT_DAY_MS;
}

uint64_t tide_assistant_day_end(uint64_t unix_ms)
{
    return (tide_assistant_day_of(unix_ms) + 1) * TIDE_ASSISTANT_DAY_MS;
}

/* ---- the day ---- */

/* Makes the day's row, and locks it on PostgreSQL.  It comes before any change of the day's holds, so
 * that two transactions never wait for each other; several days are locked from the oldest on. */
static tide_status day_lock(tide_rows db, uint32_t account, uint64_t day, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "INSERT INTO assistant_budget_day(account, day, spent, held)"
                          " VALUES(?1, ?2, 0, 0) ON CONFLICT(account, day) DO NOTHING",
                          account, day));
    return tide_rows_do(
        db, WHAT, err,
        "UPDATE assistant_budget_day SET held = held WHERE account = ?1 AND day = ?2", account,
        day);
}

/* Moves tokens of a call from held to spent. */
static tide_status day_settle(tide_rows db, uint32_t account, uint64_t day, uint64_t held,
                              uint64_t spent, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "UPDATE assistant_budget_day SET held = held - ?3, spent = spent + ?4"
                        " WHERE account = ?1 AND day = ?2",
                        account, day, held, spent);
}

static tide_status cost_add(tide_rows db, const struct tide_assistant_cost *cost, tide_error *err)
{
    return tide_rows_do(
        db, WHAT, err,
        "INSERT INTO assistant_budget_cost(account, day, model, calls, in_tokens, out_tokens,"
        " estimated, lost) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        " ON CONFLICT(account, day, model) DO UPDATE SET"
        " calls = assistant_budget_cost.calls + ?4,"
        " in_tokens = assistant_budget_cost.in_tokens + ?5,"
        " out_tokens = assistant_budget_cost.out_tokens + ?6,"
        " estimated = assistant_budget_cost.estimated + ?7,"
        " lost = assistant_budget_cost.lost + ?8",
        cost->account, cost->day, cost->model, cost->calls, cost->in_tokens, cost->out_tokens,
        cost->estimated, cost->lost);
}

/* ---- holds ---- */

/* What a call holds. */
struct held {
    uint64_t call, day, tokens;
    char model[TIDE_ASSISTANT_MODEL_BYTES];
};

/* TIDE_NOT_FOUND. */
static tide_status held_get(tide_rows db, uint32_t account, uint64_t call, struct held *held_out,
                            tide_error *err)
{
    tide_auto_rows stmt = {0};
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err,
                             "SELECT day, tokens, model FROM assistant_budget_held"
                             " WHERE account = ?1 AND call = ?2",
                             account, call));
    held_out->call = call;
    held_out->day = tide_rows_get_u64(&stmt, 0);
    held_out->tokens = tide_rows_get_u64(&stmt, 1);
    tide_rows_get_copy(&stmt, 2, held_out->model, sizeof held_out->model);
    return TIDE_OK;
}

/* Ends a hold, and counts the call for its day.  *ended_out: false: another transaction ended it. */
static tide_status held_end(tide_rows db, uint32_t account, const struct held *held,
                            struct tide_assistant_cost *cost, bool *ended_out, tide_error *err)
{
    uint64_t deleted = 0;
    TIDE_TRY(day_lock(db, account, held->day, err));
    TIDE_TRY(tide_rows_change(db, WHAT, &deleted, err,
                              "DELETE FROM assistant_budget_held WHERE account = ?1 AND call = ?2",
                              account, held->call));
    *ended_out = deleted == 1;
    if (deleted != 1) /* BUD2 */
        return TIDE_OK;
    TIDE_TRY(
        day_settle(db, account, held->day, held->tokens, cost->in_tokens + cost->out_tokens, err));
    if (cost->calls == 0)
        return TIDE_OK;
    cost->account = account;
    cost->day = held->day;
    memcpy(cost->model, held->model, sizeof cost->model);
    return cost_add(db, cost, err);
}

/* The outcome of the call is not known: it counts with all that it held. */
static tide_status held_lose(tide_rows db, uint32_t account, const struct held *held,
                             bool *ended_out, tide_error *err)
{
    struct tide_assistant_cost cost = {
        .calls = 1, .in_tokens = held->tokens, .estimated = 1, .lost = 1};
    return held_end(db, account, held, &cost, ended_out, err);
}

tide_status tide_assistant_budget_expire(tide_rows db, uint32_t account, uint64_t now_unix_ms,
                                         uint64_t *expired_out, tide_error *err)
{
    enum { AT_ONCE = 64 };
    *expired_out = 0;
    for (;;) { /* ends: each round deletes what it read, or reads fewer */
        struct held list[AT_ONCE];
        size_t count = 0;
        tide_auto_rows stmt = {0};
        tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                       "SELECT call, day, tokens, model FROM assistant_budget_held"
                                       " WHERE account = ?1 AND until_ms <= ?2"
                                       " ORDER BY day, call LIMIT 64",
                                       account, now_unix_ms);
        while (count < AT_ONCE && tide_rows_next(&stmt, &rc, err)) {
            list[count].call = tide_rows_get_u64(&stmt, 0);
            list[count].day = tide_rows_get_u64(&stmt, 1);
            list[count].tokens = tide_rows_get_u64(&stmt, 2);
            tide_rows_get_copy(&stmt, 3, list[count].model, sizeof list[count].model);
            count++;
        }
        TIDE_TRY(rc);
        for (size_t i = 0; i < count; i++) {
            bool ended = false;
            TIDE_TRY(held_lose(db, account, &list[i], &ended, err));
            *expired_out += ended ? 1 : 0;
        }
        if (count < AT_ONCE)
            return TIDE_OK;
    }
}

/* ---- before the call ---- */

static tide_status refuse(tide_rows db, const struct tide_assistant_hold *hold,
                          uint64_t *again_unix_ms_out, tide_error *err)
{
    struct tide_assistant_left left = {.spent = 0};
    TIDE_TRY(
        tide_assistant_budget_left(db, hold->account, hold->limit, hold->now_unix_ms, &left, err));
    *again_unix_ms_out = left.again_unix_ms;
    if (hold->tokens > hold->limit)
        return tide_error_set(err, TIDE_AGAIN,
                              "a call of up to %" PRIu64
                              " tokens does not fit the budget of %" PRIu64
                              " tokens a day: raise chat.tokens_per_day",
                              hold->tokens, hold->limit);
    return tide_error_set(err, TIDE_AGAIN,
                          "the budget of %" PRIu64 " tokens a day is used up: %" PRIu64
                          " spent, %" PRIu64 " held by calls that run, %" PRIu64
                          " needed; it continues at midnight UTC, or with a higher "
                          "chat.tokens_per_day",
                          hold->limit, left.spent, left.held, hold->tokens);
}

tide_status tide_assistant_budget_hold(tide_rows db, const struct tide_assistant_hold *hold,
                                       uint64_t *again_unix_ms_out, tide_error *err)
{
    TIDE_ASSERT(hold->call <= INT64_MAX && hold->tokens <= INT64_MAX / 2);
    const uint64_t day = tide_assistant_day_of(hold->now_unix_ms);
    const uint64_t limit = hold->limit == 0 ? INT64_MAX : hold->limit;
    const tide_text model = tide_utf8_cut(hold->model, TIDE_ASSISTANT_MODEL_BYTES - 1);
    struct held old = {.call = 0};
    uint64_t expired = 0;
    uint64_t granted = 0;
    bool ended = false;
    TIDE_TRY(tide_assistant_budget_expire(db, hold->account, hold->now_unix_ms, &expired, err));
    tide_status rc = held_get(db, hold->account, hold->call, &old, err);
    if (rc == TIDE_OK)
        rc = held_lose(db, hold->account, &old, &ended, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    TIDE_TRY(day_lock(db, hold->account, day, err));
    TIDE_TRY(tide_rows_change(db, WHAT, &granted, err, /* BUD1 */
                              "UPDATE assistant_budget_day SET held = held + ?3"
                              " WHERE account = ?1 AND day = ?2 AND spent + held <= ?4 - ?3",
                              hold->account, day, hold->tokens, limit));
    if (granted != 1)
        return refuse(db, hold, again_unix_ms_out, err);
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO assistant_budget_held(account, call, day, model, tokens,"
                        " until_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                        hold->account, hold->call, day, model, hold->tokens, hold->until_unix_ms);
}

/* ---- after the call ---- */

tide_status tide_assistant_budget_settle(tide_rows db, uint32_t account, uint64_t call,
                                         const struct tide_assistant_used *used, tide_error *err)
{
    struct tide_assistant_cost cost = {.calls = used->nothing ? 0 : 1,
                                       .in_tokens = used->nothing ? 0 : used->in_tokens,
                                       .out_tokens = used->nothing ? 0 : used->out_tokens,
                                       .estimated = used->estimated && !used->nothing ? 1 : 0};
    struct held held = {.call = 0};
    bool ended = false;
    const tide_status rc = held_get(db, account, call, &held, err);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    return rc == TIDE_OK ? held_end(db, account, &held, &cost, &ended, err) : rc;
}

/* ---- for display ---- */

tide_status tide_assistant_budget_left(tide_rows db, uint32_t account, uint64_t limit,
                                       uint64_t now_unix_ms, struct tide_assistant_left *left_out,
                                       tide_error *err)
{
    struct tide_assistant_left left = {.again_unix_ms = tide_assistant_day_end(now_unix_ms)};
    tide_auto_rows stmt = {0};
    const tide_status rc = tide_rows_first(
        db, WHAT, &stmt, err,
        "SELECT spent, held FROM assistant_budget_day WHERE account = ?1 AND day = ?2", account,
        tide_assistant_day_of(now_unix_ms));
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    if (rc == TIDE_OK) {
        left.spent = tide_rows_get_u64(&stmt, 0);
        left.held = tide_rows_get_u64(&stmt, 1);
    }
    const uint64_t used = left.spent + left.held;
    left.left = limit == 0 ? UINT64_MAX : limit > used ? limit - used : 0;
    *left_out = left;
    return TIDE_OK;
}

tide_status tide_assistant_budget_costs(tide_rows db, uint32_t account, uint64_t from_day,
                                        void (*visit)(const struct tide_assistant_cost *cost,
                                                      void *arg),
                                        void *arg, tide_error *err)
{
    tide_auto_rows stmt = {0};
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err,
                      "SELECT account, day, model, calls, in_tokens, out_tokens, estimated, lost"
                      " FROM assistant_budget_cost WHERE (?1 = 0 OR account = ?1) AND day >= ?2"
                      " ORDER BY day, account, model",
                      account, from_day);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_assistant_cost cost = {.account = tide_rows_get_u32(&stmt, 0),
                                           .day = tide_rows_get_u64(&stmt, 1),
                                           .calls = tide_rows_get_u64(&stmt, 3),
                                           .in_tokens = tide_rows_get_u64(&stmt, 4),
                                           .out_tokens = tide_rows_get_u64(&stmt, 5),
                                           .estimated = tide_rows_get_u64(&stmt, 6),
                                           .lost = tide_rows_get_u64(&stmt, 7)};
        tide_rows_get_copy(&stmt, 2, cost.model, sizeof cost.model);
        visit(&cost, arg);
    }
    return rc;
}

/* ---- cleaning up ---- */

tide_status tide_assistant_budget_drop(tide_rows db, uint32_t account, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, WHAT, err, "DELETE FROM assistant_budget_held WHERE account = ?1",
                          account));
    TIDE_TRY(tide_rows_do(db, WHAT, err, "DELETE FROM assistant_budget_day WHERE account = ?1",
                          account));
    return tide_rows_do(db, WHAT, err, "DELETE FROM assistant_budget_cost WHERE account = ?1",
                        account);
}
