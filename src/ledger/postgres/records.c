/* records.c - names, bad items, intents, schedules, alerts and notes. */
#include "ledger/postgres/cold.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>

/* ---- names --------------------------------------------------------------------- */

/* Text of a provider, for display: replaced where it is not UTF-8, not worth a failure. */
static tide_text said(tide_text text)
{
    return tide_pgl_text_ok(text) ? text : TIDE_TEXT("(a text that is not UTF-8)");
}

tide_status tide_pgl_account_exists(struct tide_postgres *self, uint32_t account, tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_i64(self->pg, account);
    TIDE_TRY(tide_pgl_write(self, "SELECT 1 FROM tidemark.account WHERE id = $1", &result, err));
    if (PQntuples(result) == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no account %u", account);
    return TIDE_OK;
}

tide_status tide_pgl_governor_save(tide_tx *tx, uint32_t account, tide_text saved, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_i64(pg, account);
    tide_pg_text(pg, saved);
    return tide_pgl_change_one(self, "UPDATE tidemark.account SET governor = $2 WHERE id = $1",
                               "account", account, err);
}

/* ---- bad items ----------------------------------------------------------------- */

/* An accepted item stays accepted; a retried item that fails is bad again.  Of an item that is
 * reported twice the last report counts; one statement cannot update a row twice. */
static const char bad_add_sql[] =
    "WITH told AS (SELECT DISTINCT ON (item) item, state, reason, n FROM"
    "  (SELECT u.*, count(*) OVER (PARTITION BY u.item) AS n"
    "   FROM unnest($4::text[], $5::int[], $6::text[]) WITH ORDINALITY"
    "   AS u (item, state, reason, place)) v"
    "  ORDER BY item, place DESC),"
    " good AS (DELETE FROM tidemark.bad b USING told t WHERE b.account = $1 AND b.kind = $2"
    "  AND b.item = t.item AND t.state < 0)"
    " INSERT INTO tidemark.bad AS b (account, kind, item, state, cycle, first_seen, last_tried,"
    "  retries, reason) SELECT $1, $2, item, state, $3, $7, $7, n - 1, reason FROM told"
    "  WHERE state >= 0 ORDER BY item"
    " ON CONFLICT (account, kind, item) DO UPDATE SET"
    " state = CASE WHEN b.state = 3 THEN 3 ELSE excluded.state END, cycle = excluded.cycle,"
    " last_tried = excluded.last_tried, retries = b.retries + 1 + excluded.retries,"
    " reason = excluded.reason";

static void bad_params(struct tide_postgres *self, uint32_t account, uint32_t kind, uint64_t cycle,
                       const struct tide_item_report *items, size_t count, uint64_t now_unix_ms)
{
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_i32(pg, (int32_t)account);
    tide_pg_i32(pg, (int32_t)kind);
    tide_pg_u64_or_null(pg, cycle);
    tide_pg_array(pg, TIDE_PG_TEXT);
    for (size_t i = 0; i < count; i++)
        tide_pg_text(pg, items[i].item);
    tide_pg_array_end(pg);
    tide_pg_array(pg, TIDE_PG_INT4);
    for (size_t i = 0; i < count; i++) /* -1: good after all, deleted */
        tide_pg_i32(pg,
                    items[i].status == TIDE_OK ? -1 : (int32_t)tide_bad_state_of(items[i].status));
    tide_pg_array_end(pg);
    tide_pg_array(pg, TIDE_PG_TEXT);
    for (size_t i = 0; i < count; i++)
        tide_pg_text_or_null(pg, said(items[i].reason));
    tide_pg_array_end(pg);
    tide_pg_u64(pg, now_unix_ms);
}

tide_status tide_pgl_bad_add(struct tide_postgres *self, uint32_t account, uint32_t kind,
                             uint64_t cycle, const struct tide_item_report *items, size_t count,
                             uint64_t now_unix_ms, tide_error *err)
{
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(tide_item_check(&items[i], err));
        if (!tide_pgl_text_ok(items[i].item))
            return tide_error_set(err, TIDE_INVALID, "an item's name is not UTF-8");
    }
    if (count == 0)
        return TIDE_OK;
    bad_params(self, account, kind, cycle, items, count, now_unix_ms);
    return tide_pgl_write(self, bad_add_sql, NULL, err);
}

/* ---- intents -------------------------------------------------------------------- */

static tide_status intent_read(struct tide_postgres *self, tide_text tag, bool *found_out,
                               tide_intent_state *state_out, tide_buf *outcome_out, tide_error *err)
{
    PGresult *result = NULL;
    (void)tide_pgl_params(self);
    tide_pg_text(self->pg, tag);
    TIDE_TRY(tide_pg_query(self->pg, "SELECT state, outcome FROM tidemark.intent WHERE tag = $1",
                           &result, err));
    *found_out = PQntuples(result) > 0;
    if (!*found_out)
        return TIDE_OK;
    tide_status rc = TIDE_OK;
    if (outcome_out != NULL) {
        tide_text outcome = tide_pg_get_text(result, 0, 1);
        tide_buf_clear(outcome_out);
        rc = tide_buf_add(outcome_out, outcome.data, outcome.bytes);
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "no room for the outcome of an intent");
    }
    *state_out = (tide_intent_state)tide_pg_get_i64(result, 0, 0);
    return TIDE_OK;
}

/* If two processes add the same intent, the second waits for the first.  Before that it could
 * not see the intent, so its caller may have looked for it without success, would take it for
 * its own, and send twice (E1.9).  So it gets TIDE_BUSY, and finds the intent at the retry. */
static const char intent_sql[] =
    "WITH seen AS MATERIALIZED (SELECT 1 FROM tidemark.intent WHERE tag = $1),"
    " made AS (INSERT INTO tidemark.intent (tag, job, state, made, detail)"
    "  VALUES ($1, $2, 0, $3, $4) ON CONFLICT (tag) DO NOTHING RETURNING 1)"
    " SELECT EXISTS (SELECT 1 FROM seen) OR EXISTS (SELECT 1 FROM made)";

tide_status tide_pgl_intent(tide_tx *tx, uint64_t job, tide_text tag, tide_text detail,
                            uint64_t now_unix_ms, tide_intent_state *state_out,
                            tide_buf *outcome_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    PGresult *result = NULL;
    bool found = false;
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_text(pg, tag);
    tide_pg_u64(pg, job);
    tide_pg_u64(pg, now_unix_ms);
    tide_pg_text_or_null(pg, detail);
    tide_status rc = tide_pgl_write(self, intent_sql, &result, err);
    if (rc == TIDE_OK && !tide_pg_get_bool(result, 0, 0)) {
        TIDE_SEEN("ledger: an intent was made by two at once");
        rc = tide_error_set(err, TIDE_BUSY, "another process has just added the intent %.*s; retry",
                            (int)tag.bytes, tag.data);
    }
    if (rc == TIDE_OK)
        rc = intent_read(self, tag, &found, state_out, outcome_out, err);
    TIDE_ASSERT(rc != TIDE_OK || found);
    return tide_pgl_end(self, rc);
}

tide_status tide_pgl_intent_find(tide_ledger *ledger, tide_text tag, tide_intent_state *state_out,
                                 tide_buf *outcome_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    bool found = false;
    tide_status rc = tide_pgl_ready(self, err);
    if (rc == TIDE_OK)
        rc = intent_read(self, tag, &found, state_out, outcome_out, err);
    if (rc == TIDE_OK && !found)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no intent %.*s", (int)tag.bytes,
                            tag.data);
    return tide_pgl_end(self, rc);
}

/* ---- schedules ------------------------------------------------------------------ */

/* Slots only grow, so one number per schedule is enough, as a row per slot would be.  Two
 * machines that fire the same slot wait for each other at the row's lock, and the second finds
 * the number there (E8.1).
 *
 * A machine whose clock is far ahead would fire a slot that is years away, and no slot before
 * it would ever fire again: such a slot is refused by the database's clock.  One that was fired
 * anyway (by an older version, or while that clock was wrong) does not count. */
#define SLOT_BOUND "(" TIDE_PGL_CLOCK " + " PG_AHEAD_MS_MAX ")"
static const char fire_sql[] =
    "UPDATE tidemark.schedule SET slot_last = $2, fired = $3 WHERE id = $1"
    " AND (slot_last < $2 OR ($4 AND slot_last > " SLOT_BOUND "))"
    " AND (NOT $4 OR $2 <= " SLOT_BOUND ")";

tide_status tide_pgl_schedule_fire(tide_tx *tx, uint64_t schedule, uint64_t slot,
                                   uint64_t now_unix_ms, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    PGresult *result = NULL;
    tide_pg *pg = tide_pgl_params(self);
    tide_pg_u64(pg, schedule);
    tide_pg_u64(pg, slot);
    tide_pg_u64(pg, now_unix_ms);
    tide_pg_bool(pg, self->database_clock);
    tide_status rc = tide_pgl_write(self, fire_sql, NULL, err);
    if (rc != TIDE_OK || tide_pg_changed(self->pg) == 1)
        return tide_pgl_end(self, rc);
    (void)tide_pgl_params(self);
    tide_pg_u64(pg, schedule);
    tide_pg_u64(pg, slot);
    tide_pg_bool(pg, self->database_clock);
    rc = tide_pgl_write(self,
                        "SELECT $3 AND $2 > " SLOT_BOUND " FROM tidemark.schedule WHERE id = $1",
                        &result, err);
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    if (PQntuples(result) == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no schedule %" PRIu64, schedule);
    if (tide_pg_get_bool(result, 0, 0))
        return tide_error_set(err, TIDE_INVALID,
                              "slot %" PRIu64 " is in the future: this machine's clock is over"
                              " an hour ahead of the database's",
                              slot);
    return tide_error_set(err, TIDE_EXISTS, "slot %" PRIu64 " of schedule %" PRIu64 " has fired",
                          slot, schedule);
}
