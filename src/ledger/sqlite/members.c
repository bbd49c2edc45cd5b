/* members.c - members of a fleet, what they hold, and repeated enqueues, in a SQLite file.
 *
 * Processes on one machine may share a file, and tests run a fleet on one.  All use the clock
 * of that machine: `now_unix_ms` serves as the database's clock. */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>

enum {
    DEAD_KEPT_MS = 24 * 3600 * 1000,
    SHARES_MAX = 100000, /* of one limit: a fleet has fewer members */
};

/* ---- members ------------------------------------------------------------------------- */

static tide_status member_add(struct tide_sqlite *self, const struct tide_member *member,
                              uint32_t lease_ms, uint64_t now_unix_ms, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_MEMBER_ADD);
    bool conflict = false;
    tide_bind_u64(stmt, 1, member->owner);
    tide_bind_text(stmt, 2, tide_text_of(member->name));
    tide_bind_text(stmt, 3, tide_text_of(member->version));
    tide_bind_u64(stmt, 4, now_unix_ms);
    tide_bind_u64(stmt, 5, now_unix_ms + lease_ms);
    tide_status rc = tide_db_try(&self->db, stmt, &conflict, err);
    if (rc == TIDE_OK && conflict)
        rc =
            tide_error_set(err, TIDE_EXISTS, "%s: a member with that number exists", self->db.path);
    return rc;
}

tide_status tide_sql_member_join(tide_ledger *ledger, const struct tide_member *member,
                                 uint32_t lease_ms, uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    tide_tx *tx = NULL;
    TIDE_ASSERT(member->owner != 0);
    /* A member that was declared dead joins again with another number: the fence of its old
     * row must not refuse this transaction. */
    const uint64_t old_owner = self->owner;
    self->owner = 0;
    tide_status rc = tide_tx_begin(ledger, &tx, err);
    if (rc == TIDE_OK) {
        rc = member_add(self, member, lease_ms, now_unix_ms, err);
        if (rc == TIDE_OK)
            rc = tide_tx_commit(tx, err);
        else
            tide_tx_rollback(tx);
    }
    self->owner = rc == TIDE_OK ? member->owner : old_owner;
    if (rc == TIDE_OK)
        self->seq = 0;
    return rc;
}

tide_status tide_sql_member_beat(tide_tx *tx, uint32_t lease_ms, uint64_t now_unix_ms,
                                 tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    TIDE_ASSERT(self->owner != 0);
    sqlite3_stmt *stmt = sql_of(self, SQL_MEMBER_BEAT);
    tide_bind_u64(stmt, 1, self->owner);
    tide_bind_u64(stmt, 2, now_unix_ms + lease_ms);
    return tide_sql_change_one(self, stmt, "member", self->owner, err);
}

tide_status tide_sql_member_leave(tide_tx *tx, uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    TIDE_ASSERT(self->owner != 0);
    sqlite3_stmt *stmt = sql_of(self, SQL_MEMBER_END);
    tide_bind_u64(stmt, 1, self->owner);
    tide_bind_u64(stmt, 2, now_unix_ms);
    tide_status rc = tide_sql_change_one(self, stmt, "member", self->owner, err);
    if (rc == TIDE_OK)
        rc = tide_sql_end(self, tide_db_run(&self->db, sql_of(self, SQL_ACCOUNTS_FREE), err));
    if (rc == TIDE_OK)
        self->leaves = true;
    return rc;
}

tide_status tide_sql_members(tide_ledger *ledger,
                             bool (*visit)(const struct tide_member *member, void *arg), void *arg,
                             tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_MEMBER_LIST);
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        struct tide_member member = {
            .owner = tide_column_u64(stmt, 0),
            .joined_unix_ms = tide_column_u64(stmt, 3),
            .until_unix_ms = tide_column_u64(stmt, 4),
            .dead = tide_column_u64(stmt, 5) != 0,
            .accounts = tide_column_u32(stmt, 6),
            .running = tide_column_u32(stmt, 7),
        };
        tide_column_copy(stmt, 1, member.name, sizeof member.name);
        tide_column_copy(stmt, 2, member.version, sizeof member.version);
        if (!visit(&member, arg))
            break;
    }
    tide_db_end(stmt);
    return rc;
}

tide_status tide_sql_members_bury(struct tide_sqlite *self, uint64_t owner, uint64_t now_unix_ms,
                                  tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_MEMBER_PASSED);
    /* The caller itself is alive, even if its lease has expired. */
    tide_bind_u64(stmt, 1, owner);
    tide_bind_u64(stmt, 2, now_unix_ms);
    tide_status rc = tide_db_run(&self->db, stmt, err);
    if (rc != TIDE_OK)
        return rc;
    if (sqlite3_changes(self->db.handle) > 0)
        rc = tide_db_run(&self->db, sql_of(self, SQL_ACCOUNTS_FREE), err);
    stmt = sql_of(self, SQL_MEMBER_FORGET);
    tide_bind_u64(stmt, 1, now_unix_ms < DEAD_KEPT_MS ? 0 : now_unix_ms - DEAD_KEPT_MS);
    return rc == TIDE_OK ? tide_db_run(&self->db, stmt, err) : rc;
}

/* ---- accounts ------------------------------------------------------------------------ */

/* A member whose lease expired holds its accounts until it is declared dead: only then are
 * its own transactions refused. */
tide_status tide_sql_accounts_take(tide_tx *tx, const uint32_t *accounts, size_t count,
                                   uint64_t owner, bool *taken_out, uint64_t now_unix_ms,
                                   tide_error *err)
{
    (void)now_unix_ms;
    struct tide_sqlite *self = sqlite_of_tx(tx);
    tide_status rc = TIDE_OK;
    TIDE_ASSERT(owner != 0);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        sqlite3_stmt *stmt = sql_of(self, SQL_ACCOUNT_TAKE);
        tide_bind_u64(stmt, 1, accounts[i]);
        tide_bind_u64(stmt, 2, owner);
        rc = tide_db_run(&self->db, stmt, err);
        taken_out[i] = rc == TIDE_OK && sqlite3_changes(self->db.handle) == 1;
    }
    return tide_sql_end(self, rc);
}

tide_status tide_sql_accounts_release(tide_tx *tx, const uint32_t *accounts, size_t count,
                                      uint64_t owner, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        sqlite3_stmt *stmt = sql_of(self, SQL_ACCOUNT_RELEASE);
        tide_bind_u64(stmt, 1, accounts[i]);
        tide_bind_u64(stmt, 2, owner);
        rc = tide_db_run(&self->db, stmt, err);
    }
    return tide_sql_end(self, rc);
}

/* ---- shares of a limit (E4.1) -------------------------------------------------------- */

struct share {
    uint64_t units, until;
    uint64_t before, before_until; /* what it had, and until when that still counts */
};

/* The most that a share can have used of the limit in the window that ends now.  An expired
 * share was used until its end, so it counts for one more window. */
static uint64_t share_weight(const struct share *share, uint32_t window_ms, uint64_t now_unix_ms)
{
    uint64_t weight = now_unix_ms < share->until + window_ms ? share->units : 0;
    if (now_unix_ms < share->before_until && share->before > weight)
        weight = share->before;
    return weight;
}

struct shares {
    struct share own;
    uint64_t others_weight;
    uint64_t others_count; /* members that have or want a share now */
};

static tide_status shares_read(struct tide_sqlite *self, const char *limit, uint64_t owner,
                               uint32_t window_ms, uint64_t now_unix_ms, struct shares *shares_out,
                               tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_SHARE_LIST);
    struct shares shares = {.others_count = 0};
    bool row = false;
    tide_bind_text(stmt, 1, tide_text_of(limit));
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    for (size_t rows = 0; rc == TIDE_OK && row && rows < SHARES_MAX; rows++) {
        struct share share = {tide_column_u64(stmt, 1), tide_column_u64(stmt, 2),
                              tide_column_u64(stmt, 3), tide_column_u64(stmt, 4)};
        if (tide_column_u64(stmt, 0) == owner)
            shares.own = share;
        else {
            shares.others_weight += share_weight(&share, window_ms, now_unix_ms);
            shares.others_count += now_unix_ms < share.until;
        }
        rc = tide_db_step(&self->db, stmt, &row, err);
    }
    tide_db_end(stmt);
    if (rc == TIDE_OK)
        *shares_out = shares;
    return rc;
}

/* The next share of a member that had `own`. */
static struct share share_next(const struct share *own, uint64_t units, uint64_t until_unix_ms,
                               uint32_t window_ms, uint64_t now_unix_ms)
{
    struct share next = {units, until_unix_ms, 0, 0};
    if (now_unix_ms < own->before_until) {
        next.before = own->before;
        next.before_until = own->before_until;
    }
    /* The old share may have been used until now, or until its end. */
    uint64_t used_until = own->until < now_unix_ms ? own->until : now_unix_ms;
    if (own->units > units && used_until + window_ms > now_unix_ms) {
        if (own->units > next.before)
            next.before = own->units;
        if (used_until + window_ms > next.before_until)
            next.before_until = used_until + window_ms;
    }
    return next;
}

static tide_status share_write(struct tide_sqlite *self, const char *limit, uint64_t owner,
                               const struct share *share, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_SHARE_SET);
    tide_bind_text(stmt, 1, tide_text_of(limit));
    tide_bind_u64(stmt, 2, owner);
    tide_bind_u64(stmt, 3, share->units);
    tide_bind_u64(stmt, 4, share->until);
    tide_bind_u64(stmt, 5, share->before);
    tide_bind_u64(stmt, 6, share->before_until);
    return tide_db_run(&self->db, stmt, err);
}

tide_status tide_sql_grant(tide_tx *tx, const char *limit, uint64_t owner, uint64_t units_max,
                           uint64_t units_wanted, uint32_t window_ms, uint32_t lease_ms,
                           uint64_t now_unix_ms, uint64_t *units_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    struct shares shares;
    TIDE_ASSERT(owner != 0);
    tide_status rc = shares_read(self, limit, owner, window_ms, now_unix_ms, &shares, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    /* A member that gets nothing now is counted too: the others make room at their next
     * request.  If there is less than one unit for each, the first ones get one. */
    uint64_t part = units_max / (shares.others_count + 1);
    if (part == 0 && units_max > 0)
        part = 1;
    uint64_t left =
        units_max - (shares.others_weight < units_max ? shares.others_weight : units_max);
    uint64_t units = units_wanted;
    units = units < part ? units : part;
    units = units < left ? units : left;
    struct share next =
        share_next(&shares.own, units, units_wanted == 0 ? now_unix_ms : now_unix_ms + lease_ms,
                   window_ms, now_unix_ms);
    rc = share_write(self, limit, owner, &next, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *stmt = sql_of(self, SQL_SHARE_FORGET);
        tide_bind_text(stmt, 1, tide_text_of(limit));
        tide_bind_u64(stmt, 2, now_unix_ms);
        tide_bind_u64(stmt, 3, window_ms);
        rc = tide_db_run(&self->db, stmt, err);
    }
    if (rc == TIDE_OK)
        *units_out = units;
    return tide_sql_end(self, rc);
}

/* ---- hints ----------------------------------------------------------------------------- */

/* ---- enqueues that may be repeated ------------------------------------------------------ */

tide_status tide_sql_batch_get(tide_ledger *ledger, tide_text name, uint64_t *ids_out,
                               size_t ids_max, size_t *count_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_BATCH_GET);
    bool row = false;
    tide_bind_text(stmt, 1, name);
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc != TIDE_OK)
        return rc;
    if (!row)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no batch %.*s", (int)name.bytes,
                              name.data);
    size_t total = (size_t)tide_column_u64(stmt, 1);
    if (total > ids_max) {
        tide_db_end(stmt);
        return tide_error_set(err, TIDE_FULL, "the batch has %zu ids, there is room for %zu", total,
                              ids_max);
    }
    size_t count = 0;
    while (rc == TIDE_OK && row && count < total) {
        ids_out[count++] = tide_column_u64(stmt, 0);
        rc = tide_db_step(&self->db, stmt, &row, err);
    }
    tide_db_end(stmt);
    if (rc == TIDE_OK)
        *count_out = count;
    return rc;
}

tide_status tide_sql_batch_put(tide_tx *tx, tide_text name, const uint64_t *ids, size_t count,
                               uint64_t now_unix_ms, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    bool conflict = false;
    tide_buf_clear(&self->kept);
    tide_status rc = tide_buf_add_text(&self->kept, "[");
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = tide_buf_print(&self->kept, "%s%" PRIu64, i == 0 ? "" : ",", ids[i]);
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(&self->kept, "]");
    if (rc == TIDE_FULL)
        return tide_error_set(err, rc, "a batch of %zu jobs is too large", count);
    if (rc != TIDE_OK)
        return tide_sql_end(self, tide_sql_no_memory(err));
    sqlite3_stmt *stmt = sql_of(self, SQL_BATCH_PUT);
    tide_bind_text(stmt, 1, name);
    tide_bind_text(stmt, 2, tide_buf_text(&self->kept));
    tide_bind_u64(stmt, 3, now_unix_ms);
    rc = tide_db_try(&self->db, stmt, &conflict, err);
    if (rc == TIDE_OK && conflict)
        rc = tide_error_set(err, TIDE_EXISTS, "the batch %.*s exists", (int)name.bytes, name.data);
    return tide_sql_end(self, rc);
}

tide_status tide_sql_batches_forget(struct tide_sqlite *self, uint64_t before_unix_ms,
                                    tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_BATCH_FORGET);
    tide_bind_u64(stmt, 1, before_unix_ms);
    tide_bind_u64(stmt, 2, TIDE_PURGE_SLICE);
    return tide_db_run(&self->db, stmt, err);
}
