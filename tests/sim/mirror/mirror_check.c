/* mirror_check.c - what must be true while no engine runs, and in the end. */
#include "mirror.h"

#include "ledger/ledger.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>

struct at_rest {
    struct mirror *mirror;
    struct sqlite3 *state;
    struct sqlite3 *shard;
    sqlite3_stmt *stored; /* account, id to data */
    sqlite3_stmt *bad;    /* account, id to state */
};

static void rest_open(struct at_rest *rest, struct mirror *mirror)
{
    *rest = (struct at_rest){.mirror = mirror};
    rest->state = tide_sim_ledger_file(mirror->sim, "/state/state.db");
    rest->shard = tide_sim_ledger_file(mirror->sim, "/shard.db");
    rest->stored = tide_sim_ledger_prepare(rest->shard,
                                           "SELECT data FROM item WHERE account = ?1 AND id = ?2");
    rest->bad = tide_sim_ledger_prepare(rest->state,
                                        "SELECT state FROM bad WHERE account = ?1 AND item = ?2");
}

static void rest_done(struct at_rest *rest)
{
    (void)sqlite3_finalize(rest->stored);
    (void)sqlite3_finalize(rest->bad);
    (void)sqlite3_close(rest->shard);
    (void)sqlite3_close(rest->state);
}

/* The state of its record, or -1. */
static int bad_state(struct at_rest *rest, uint32_t account, const char *id)
{
    int state = -1;
    (void)sqlite3_bind_int64(rest->bad, 1, (sqlite3_int64)account);
    (void)sqlite3_bind_text(rest->bad, 2, id, -1, SQLITE_STATIC);
    if (sqlite3_step(rest->bad) == SQLITE_ROW)
        state = sqlite3_column_int(rest->bad, 0);
    (void)sqlite3_reset(rest->bad);
    return state;
}

static bool is_stored(struct at_rest *rest, const struct mirror_account *account, const char *id,
                      bool read_all)
{
    bool stored = false;
    if (rest->stored == NULL)
        return false;
    (void)sqlite3_bind_int64(rest->stored, 1, (sqlite3_int64)account->id);
    (void)sqlite3_bind_text(rest->stored, 2, id, -1, SQLITE_STATIC);
    int rc = sqlite3_step(rest->stored);
    if (rc == SQLITE_ROW) {
        stored = true;
        tide_text data = {sqlite3_column_blob(rest->stored, 0),
                          (size_t)sqlite3_column_bytes(rest->stored, 0)};
        if (read_all && !tide_sim_provider_content_is(account->provider, tide_text_of(id), data))
            tide_sim_fail(rest->mirror->sim, "SIM10: item %s of %s is stored with other content",
                          id, account->name);
    } else if (rc != SQLITE_DONE) {
        tide_sim_fail(rest->mirror->sim, "the shard cannot be read: %s",
                      sqlite3_errmsg(rest->shard));
    }
    (void)sqlite3_reset(rest->stored);
    return stored;
}

/* SIM4: what a job called stored is stored. */
static void check_stored(struct at_rest *rest)
{
    sqlite3_stmt *stmt =
        tide_sim_ledger_prepare(rest->state, "SELECT account, id FROM mirror_item");
    while (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW) {
        const struct mirror_account *account =
            mirror_account_of(rest->mirror, (uint32_t)sqlite3_column_int64(stmt, 0));
        const char *id = (const char *)sqlite3_column_text(stmt, 1);
        if (account != NULL && !is_stored(rest, account, id, false))
            tide_sim_fail(rest->mirror->sim, "SIM4: item %s of %s was done but is not stored", id,
                          account->name);
    }
    (void)sqlite3_finalize(stmt);
}

/* SIM5 for one account: everything before its cursor is accounted for. */
static void check_behind(struct at_rest *rest, const struct mirror_account *account)
{
    uint64_t now_ms = tide_sim_net_unix_ms(rest->mirror->sim);
    size_t count = 0;
    const struct tide_sim_item *items = tide_sim_provider_items(account->provider, &count);
    for (size_t i = 0; i < count; i++) {
        const struct tide_sim_item *item = &items[i];
        if (item->time_ms >= account->cursor_seen || !tide_sim_item_there(item, now_ms))
            continue;
        if (!is_stored(rest, account, item->id, false) &&
            bad_state(rest, account->id, item->id) < 0)
            tide_sim_fail(
                rest->mirror->sim,
                "SIM5: the cursor of %s passed item %s, which is neither stored nor named",
                account->name, item->id);
    }
}

static void check_cursors(struct at_rest *rest)
{
    sqlite3_stmt *stmt = tide_sim_ledger_prepare(
        rest->state, "SELECT account, ordinal, cursor FROM stream ORDER BY id");
    while (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW) {
        struct mirror_account *account =
            mirror_account_of(rest->mirror, (uint32_t)sqlite3_column_int64(stmt, 0));
        if (account == NULL)
            continue;
        uint64_t ordinal = (uint64_t)sqlite3_column_int64(stmt, 1);
        uint64_t cursor = (uint64_t)sqlite3_column_int64(stmt, 2);
        if (ordinal < account->ordinal_seen || cursor < account->cursor_seen)
            tide_sim_fail(rest->mirror->sim, "SIM5: the cursor of %s went back", account->name);
        account->ordinal_seen = ordinal;
        account->cursor_seen = cursor;
        check_behind(rest, account);
    }
    (void)sqlite3_finalize(stmt);
}

/* Whether the file became a ledger before the first crash. */
static bool is_ledger(struct mirror *mirror)
{
    struct sqlite3 *db = tide_sim_ledger_file(mirror->sim, "/state/state.db");
    sqlite3_stmt *stmt = NULL;
    bool found = sqlite3_prepare_v2(db, "SELECT count(*) FROM alert", -1, &stmt, NULL) == SQLITE_OK;
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return found;
}

/* SIM9 */
static void check_ledger(struct mirror *mirror)
{
    if (is_ledger(mirror))
        tide_sim_ledger_check(mirror->sim, "SIM9");
}

/* SIM6, by the provider's own count. */
static void check_quota(struct mirror *mirror)
{
    struct tide_sim_truth truth = tide_sim_provider_truth(mirror->accounts[0].provider);
    uint64_t limit = mirror->plan.provider[0].units_per_minute;
    uint64_t permille = truth.units_highest * 1000 / limit;
    if (!mirror->plan.strict_quota)
        return;
    if (permille > mirror->totals.quota_permille_max)
        mirror->totals.quota_permille_max = permille;
    if (truth.over_quota > 0)
        tide_sim_fail(mirror->sim,
                      "SIM6: %" PRIu64 " calls crossed the quota of %" PRIu64
                      " units, first at server time %" PRIu64,
                      truth.over_quota, limit, truth.first_over_quota_ms);
}

void mirror_check_at_rest(struct mirror *mirror)
{
    struct at_rest rest;
    tide_sim_faults(mirror->sim, false);
    tide_sim_net_settle(mirror->sim);
    if (tide_sim_disk_file_bytes(mirror->sim, "/state/state.db") > 0)
        check_ledger(mirror);
    rest_open(&rest, mirror);
    check_stored(&rest);
    check_cursors(&rest);
    rest_done(&rest);
    check_quota(mirror);
    tide_sim_faults(mirror->sim, mirror->faults);
}

/* ---- the end ---------------------------------------------------------------------- */

static bool is_planted(const struct tide_sim_item *item)
{
    return item->kind != TIDE_SIM_ITEM_PLAIN;
}

static void check_item(struct at_rest *rest, const struct mirror_account *account,
                       const struct tide_sim_item *item, uint64_t now_ms)
{
    tide_sim *sim = rest->mirror->sim;
    bool stored = is_stored(rest, account, item->id, true);
    int state = bad_state(rest, account->id, item->id);
    bool named = state == TIDE_BAD_BAD || state == TIDE_BAD_OWED;
    if (!tide_sim_item_there(item, now_ms))
        return; /* it may have been seen or not */
    if (is_planted(item) && (stored || !named))
        tide_sim_fail(sim, "SIM10: planted item %s of %s is stored=%d, recorded as %d", item->id,
                      account->name, stored, state);
    if (!is_planted(item) && !stored)
        tide_sim_fail(sim, "SIM10: item %s of %s is missing (recorded as %d)", item->id,
                      account->name, state);
    if (!is_planted(item) && state >= 0)
        tide_sim_fail(sim, "SIM10: item %s of %s is stored, and still recorded as %d", item->id,
                      account->name, state);
}

static void count_is(struct at_rest *rest, const char *what, const char *sql, int64_t expected)
{
    sqlite3_stmt *stmt = tide_sim_ledger_prepare(rest->state, sql);
    int64_t count = -1;
    if (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW)
        count = sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    if (count != expected)
        tide_sim_fail(rest->mirror->sim, "SIM10: %s: %" PRId64 ", expected %" PRId64, what, count,
                      expected);
}

static void check_notes(struct at_rest *rest)
{
    struct mirror *mirror = rest->mirror;
    uint64_t notes = 0;
    uint64_t doubled = 0;
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++) {
        struct tide_sim_truth truth = tide_sim_provider_truth(mirror->accounts[i].provider);
        notes += truth.notes - truth.notes_doubled;
        doubled += truth.notes_doubled;
    }
    count_is(rest, "notes posted", "SELECT count(*) FROM mirror_note", (int64_t)notes);
    if (mirror->plan.strict_quota && doubled > 0)
        tide_sim_fail(mirror->sim, "SIM10: %" PRIu64 " notes were posted twice", doubled);
}

void mirror_check_end(struct mirror *mirror)
{
    struct at_rest rest;
    uint64_t now_ms = tide_sim_net_unix_ms(mirror->sim);
    rest_open(&rest, mirror);
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++) {
        size_t count = 0;
        const struct tide_sim_item *items =
            tide_sim_provider_items(mirror->accounts[i].provider, &count);
        for (size_t j = 0; j < count; j++)
            check_item(&rest, &mirror->accounts[i], &items[j], now_ms);
    }
    count_is(&rest, "groups unfinished",
             "SELECT count(*) FROM mirror_group g WHERE steps <>"
             " (SELECT count(*) FROM mirror_step s WHERE s.grp = g.grp)",
             0);
    count_is(&rest, "intents left open", "SELECT count(*) FROM intent WHERE state <> 1", 0);
    check_notes(&rest);
    rest_done(&rest);
}
