/* jobs.c - beats, refills of the window, retry, cancel, accept, reclaim, purge.  New jobs are
 * in enqueue.c, the ends of running ones in finish.c. */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    PICKS_MAX = 100000,     /* rows of one slice */
    PICKS_USUAL = 500,      /* when the caller does not say */
    PURGE_LOOK_MAX = 10000, /* rows checked by one purge */
    PURGE_YOUNG_MAX = 1000, /* so many too young rows in a row: the rest is younger still */
};

/* ---- beats --------------------------------------------------------------------- */

tide_status tide_sql_beat(tide_tx *tx, const struct tide_beat *beats, size_t count,
                          uint64_t now_unix_ms, bool *applied_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        const struct tide_beat *beat = &beats[i];
        sqlite3_stmt *stmt = sql_of(self, beat->resume_set ? SQL_CLAIM_BEAT_NOTED : SQL_CLAIM_BEAT);
        tide_bind_u64(stmt, 1, beat->id);
        tide_bind_u64(stmt, 2, beat->token);
        tide_bind_u64(stmt, 3, now_unix_ms);
        tide_bind_u64_or_null(stmt, 4, beat->bytes_done);
        rc = tide_db_run(&self->db, stmt, err);
        applied_out[i] = rc == TIDE_OK && sqlite3_changes(self->db.handle) == 1;
        if (!applied_out[i] || !beat->resume_set)
            continue;
        self->known[beat->id % CLAIMS_KNOWN].id = 0;
        stmt = sql_of(self, SQL_DETAIL_RESUME);
        tide_bind_u64(stmt, 1, beat->id);
        tide_bind_text_or_null(stmt, 2, beat->resume);
        rc = tide_db_run(&self->db, stmt, err);
    }
    return tide_sql_end(self, rc);
}

/* ---- the window ------------------------------------------------------------------ */

void tide_sql_brief_read(sqlite3_stmt *stmt, struct tide_brief *brief)
{
    uint32_t traits = tide_column_u32(stmt, 10);
    *brief = (struct tide_brief){
        .id = tide_column_u64(stmt, 0),
        .cycle = tide_column_u64(stmt, 1),
        .size_bytes = tide_column_u64(stmt, 2),
        .not_before_ms = tide_column_u64(stmt, 3),
        .account = tide_column_u32(stmt, 4),
        .kind = tide_column_u32(stmt, 5),
        .open_deps = tide_column_u32(stmt, 6),
        .attempts = (uint16_t)tide_column_u64(stmt, 7),
        .attempts_max = (uint16_t)tide_column_u64(stmt, 8),
        .priority = (uint8_t)tide_column_u64(stmt, 9),
        .lane = (traits & TRAIT_BULK) != 0 ? TIDE_LANE_BULK : TIDE_LANE_INTERACTIVE,
        .level = (uint8_t)(traits >> TRAIT_LEVEL_SHIFT),
        .preemptible = (traits & TRAIT_PREEMPTIBLE) != 0,
    };
}

tide_status tide_sql_refill(tide_ledger *ledger, uint32_t account, uint8_t after_priority,
                            uint64_t after_id, struct tide_brief *briefs_out, size_t count_max,
                            size_t *count_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    static const enum tide_sql texts[2][2] = {{SQL_REFILL_SAME, SQL_REFILL_BELOW},
                                              {SQL_REFILL_SAME_PAUSED, SQL_REFILL_BELOW_PAUSED}};
    size_t count = 0;
    /* Read again each time: another transaction may have paused something. */
    if (!self->in_tx)
        self->paused_known = false;
    tide_status rc = tide_sql_paused_load(self, err);
    bool paused = rc == TIDE_OK && tide_sql_paused(self, account, 0);
    /* First the rest of that priority, then all below it. */
    for (int i = 0; rc == TIDE_OK && !paused && i < 2 && count < count_max; i++) {
        sqlite3_stmt *stmt = sql_of(self, texts[self->paused_kinds_count > 0][i]);
        tide_bind_u64(stmt, 1, account);
        (void)sqlite3_bind_int(stmt, 2, after_priority);
        tide_bind_u64(stmt, 3, after_id);
        tide_bind_u64(stmt, 4, count_max - count);
        while (tide_db_next(&self->db, stmt, &rc, err)) {
            TIDE_ASSERT(count < count_max);
            tide_sql_brief_read(stmt, &briefs_out[count++]);
        }
    }
    if (rc == TIDE_OK)
        *count_out = count;
    return rc;
}

tide_status tide_sql_accounts_with_work(tide_ledger *ledger, uint32_t *accounts_out,
                                        size_t accounts_max, size_t *count_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_ACCOUNT_NEXT_WORK);
    size_t count = 0;
    int64_t after = -1;
    tide_status rc = TIDE_OK;
    /* One seek for each account, not one step for each job. */
    while (rc == TIDE_OK && count < accounts_max) {
        bool row = false;
        (void)sqlite3_bind_int64(stmt, 1, after);
        rc = tide_db_step(&self->db, stmt, &row, err);
        if (rc != TIDE_OK || !row)
            break;
        after = sqlite3_column_int64(stmt, 0);
        tide_db_end(stmt);
        accounts_out[count++] = (uint32_t)after;
    }
    if (rc == TIDE_OK)
        *count_out = count;
    return rc;
}

tide_status tide_sql_brief(tide_ledger *ledger, uint64_t id, struct tide_brief *brief_out,
                           tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_BRIEF);
    bool row = false;
    tide_bind_u64(stmt, 1, id);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    if (!row)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no unfinished job %" PRIu64, id);
    tide_sql_brief_read(stmt, brief_out);
    tide_db_end(stmt);
    return TIDE_OK;
}

/* ---- slices of many -------------------------------------------------------------- */

static struct picked *pick_add(struct tide_sqlite *self)
{
    if (!TIDE_GROW_IN(self->mem, self->picks, self->picks_capacity, self->picks_count + 1,
                      PICKS_MAX))
        return NULL;
    self->picks[self->picks_count] = (struct picked){0};
    return &self->picks[self->picks_count++];
}

static size_t slice_of(size_t wanted)
{
    if (wanted == 0)
        return PICKS_USUAL;
    return wanted < PICKS_MAX ? wanted : PICKS_MAX;
}

/* Adds rows that match the filter, from the index of statement `text`, until there are
 * `count_max` of them. */
static tide_status pick(struct tide_sqlite *self, enum tide_sql text,
                        const struct tide_job_filter *filter, size_t count_max, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, text);
    bool any_account = filter->account == UINT32_MAX;
    if (self->picks_count >= count_max)
        return TIDE_OK;
    tide_bind_u64(stmt, 1, filter->id);
    tide_bind_u64(stmt, 2, any_account ? 0 : filter->account);
    tide_bind_u64(stmt, 3, filter->account);
    tide_bind_u64(stmt, 4, filter->kind);
    (void)sqlite3_bind_int(stmt, 5, filter->state);
    tide_bind_u64(stmt, 6, filter->cycle);
    tide_bind_u64(stmt, 7, filter->before_id);
    tide_bind_u64(stmt, 8, count_max - self->picks_count);
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        struct picked *picked = pick_add(self);
        if (picked == NULL) {
            tide_db_end(stmt);
            return tide_sql_no_memory(err);
        }
        picked->id = tide_column_u64(stmt, 0);
        picked->state = (uint8_t)tide_column_u64(stmt, 1);
        picked->cycle = tide_column_u64(stmt, 2);
        picked->kind = tide_column_u32(stmt, 3);
    }
    return rc;
}

/* One slice of the rows that match a filter: the one with its id, or rows from two indexes. */
static tide_status pick_slice(struct tide_sqlite *self, enum tide_sql first, enum tide_sql second,
                              const struct tide_job_filter *filter, tide_error *err)
{
    size_t count_max = slice_of(filter->count_max);
    self->picks_count = 0;
    if (filter->id != 0)
        return pick(self, SQL_PICK_ID, filter, count_max, err);
    tide_status rc = pick(self, first, filter, count_max, err);
    return rc != TIDE_OK ? rc : pick(self, second, filter, count_max, err);
}

static tide_status retry_one(struct tide_sqlite *self, const struct picked *picked, tide_error *err)
{
    if (picked->state == TIDE_ROW_PENDING)
        return tide_db_do(&self->db, err, SQL_RETRY_SOON, picked->id);
    enum tide_sql texts[] = {SQL_RETRY_ONE, SQL_RETRY_KEYLESS};
    bool conflict = true;
    for (int i = 0; conflict && i < 2; i++) {
        /* Another job of its key was enqueued since; both have to run (LED5). */
        sqlite3_stmt *stmt = sql_of(self, texts[i]);
        tide_bind_u64(stmt, 1, picked->id);
        TIDE_TRY(tide_db_try(&self->db, stmt, &conflict, err));
    }
    if (picked->cycle != 0)
        TIDE_TRY(tide_sql_tally_cycle(self, picked->cycle, 0, 1, -1, err));
    return TIDE_OK;
}

tide_status tide_sql_retry(tide_tx *tx, const struct tide_job_filter *filter, uint64_t now_unix_ms,
                           size_t *count_out, struct tide_changes *changes, tide_error *err)
{
    (void)now_unix_ms;
    struct tide_sqlite *self = sqlite_of_tx(tx);
    struct tally_mark mark = tide_sql_tally_mark(self);
    size_t count = 0;
    tide_status rc = pick_slice(self, SQL_PICK_GAP, SQL_PICK_DELAYED, filter, err);
    /* Where two have one key, the older one keeps it. */
    if (self->picks_count > 1)
        qsort(self->picks, self->picks_count, sizeof self->picks[0], tide_sql_id_order);
    for (size_t i = 0; rc == TIDE_OK && i < self->picks_count; i++) {
        const struct picked *picked = &self->picks[i];
        if (picked->state == TIDE_ROW_RUNNING || picked->state == TIDE_ROW_DONE)
            continue;
        rc = retry_one(self, picked, err);
        count++;
    }
    if (rc == TIDE_OK)
        rc = tide_sql_tally_write(self, mark, changes, err);
    if (rc == TIDE_OK)
        *count_out = count;
    return tide_sql_end(self, rc);
}

static tide_status cancel_one(struct tide_sqlite *self, const struct picked *picked,
                              uint64_t now_unix_ms, tide_error *err)
{
    TIDE_TRY(tide_db_do(&self->db, err, SQL_CANCEL_ONE, picked->id, now_unix_ms));
    if (picked->cycle != 0)
        TIDE_TRY(tide_sql_tally_cycle(self, picked->cycle, 0, -1, 1, err));
    return TIDE_OK;
}

static tide_status cancel_running(struct tide_sqlite *self, uint64_t id, tide_error *err)
{
    return tide_db_do(&self->db, err, SQL_CLAIM_CANCEL, id);
}

tide_status tide_sql_cancel(tide_tx *tx, const struct tide_job_filter *filter, uint64_t now_unix_ms,
                            size_t *count_out, uint64_t *running_out, size_t running_max,
                            size_t *running_count_out, struct tide_changes *changes,
                            tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    struct tally_mark mark = tide_sql_tally_mark(self);
    size_t count = 0;
    size_t running = 0;
    tide_status rc = pick_slice(self, SQL_PICK_READY, SQL_PICK_BLOCKED, filter, err);
    for (size_t i = 0; rc == TIDE_OK && i < self->picks_count; i++) {
        if (self->picks[i].state != TIDE_ROW_PENDING)
            continue;
        rc = cancel_one(self, &self->picks[i], now_unix_ms, err);
        count++;
    }
    if (rc == TIDE_OK)
        rc = tide_sql_tally_write(self, mark, changes, err);

    /* All running jobs get the cancel request, also those that are not returned: the process
     * that runs them checks for it. */
    self->picks_count = 0;
    if (rc == TIDE_OK)
        rc = pick(self, filter->id != 0 ? SQL_PICK_ID : SQL_PICK_RUNNING, filter, PICKS_MAX, err);
    for (size_t i = 0; rc == TIDE_OK && i < self->picks_count; i++) {
        if (self->picks[i].state != TIDE_ROW_RUNNING)
            continue;
        rc = cancel_running(self, self->picks[i].id, err);
        if (running < running_max)
            running_out[running++] = self->picks[i].id;
    }
    if (rc == TIDE_OK) {
        *count_out = count;
        *running_count_out = running;
    }
    return tide_sql_end(self, rc);
}

/* Makes the job done, and deletes its own dependencies: a canceled job may still have some. */
static tide_status accept_one(struct tide_sqlite *self, const struct picked *picked,
                              uint64_t now_unix_ms, tide_error *err)
{
    TIDE_TRY(tide_db_do(&self->db, err, SQL_ACCEPT_ONE, picked->id, now_unix_ms));
    TIDE_TRY(tide_db_do(&self->db, err, SQL_DEP_CLEAR_JOB, picked->id));
    if (picked->cycle != 0)
        TIDE_TRY(tide_sql_tally_cycle(self, picked->cycle, 0, 0, -1, err));
    return TIDE_OK;
}

tide_status tide_sql_accept(tide_tx *tx, const struct tide_job_filter *filter, uint64_t now_unix_ms,
                            size_t *count_out, struct tide_changes *changes, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    struct tally_mark mark = tide_sql_tally_mark(self);
    self->picks_count = 0;
    tide_status rc = pick(self, filter->id != 0 ? SQL_PICK_ID : SQL_PICK_GAP, filter,
                          slice_of(filter->count_max), err);
    size_t count = 0;
    for (size_t i = 0; i < self->picks_count; i++)
        if (self->picks[i].state == TIDE_ROW_FAILED || self->picks[i].state == TIDE_ROW_CANCELED)
            self->picks[count++] = self->picks[i];
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = accept_one(self, &self->picks[i], now_unix_ms, err);
    /* After all are accepted: one that waited for another of them no longer does. */
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = tide_sql_tally_release(self, self->picks[i].id, err);
    if (rc == TIDE_OK)
        rc = tide_sql_tally_write(self, mark, changes, err);
    if (rc == TIDE_OK)
        *count_out = count;
    return tide_sql_end(self, rc);
}

/* ---- reclaim ------------------------------------------------------------------- */

static tide_status reclaim_list(struct tide_sqlite *self, uint64_t owner, size_t count_max,
                                tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_RECLAIM_LIST);
    self->picks_count = 0;
    tide_bind_u64(stmt, 1, owner);
    tide_bind_u64(stmt, 2, count_max);
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        struct picked *picked = pick_add(self);
        if (picked == NULL) {
            tide_db_end(stmt);
            return tide_sql_no_memory(err);
        }
        *picked = (struct picked){
            .id = tide_column_u64(stmt, 0),
            .state = (uint8_t)tide_column_u64(stmt, 1),
            .cycle = tide_column_u64(stmt, 2),
            .kind = tide_column_u32(stmt, 3),
            .attempts = (uint16_t)tide_column_u64(stmt, 4),
            .attempts_max = (uint16_t)tide_column_u64(stmt, 5),
            .started = tide_column_u64(stmt, 6),
            .run = tide_column_u64(stmt, 7),
            .noted = tide_column_u64(stmt, 8) != 0,
            .bytes_done = tide_column_u64(stmt, 9),
            .splits = tide_column_u64(stmt, 10) != 0,
            .token = tide_column_u64(stmt, 11),
            .cancel = tide_column_u64(stmt, 12) != 0,
        };
    }
    return rc;
}

static tide_status over_budget_add(struct tide_changes *changes, const struct picked *picked,
                                   bool failed, tide_error *err)
{
    if (!TIDE_GROW_IN(changes->mem, changes->over_budget, changes->over_budget_capacity,
                      changes->over_budget_count + 1, PICKS_MAX))
        return tide_sql_no_memory(err);
    changes->over_budget[changes->over_budget_count++] =
        (struct tide_over_budget){.id = picked->id, .kind = picked->kind, .failed = failed};
    return TIDE_OK;
}

static tide_status reclaim_one(struct tide_sqlite *self, const struct picked *picked,
                               uint64_t now_unix_ms, struct tide_changes *changes, tide_error *err)
{
    /* A budget of 0 is unlimited; a requested cancel costs no attempt. */
    bool over =
        !picked->cancel && picked->attempts_max > 0 && picked->attempts + 1 >= picked->attempts_max;
    bool fails = over && !picked->splits;
    struct tide_finish finish = {
        .id = picked->id,
        .token = picked->token,
        .state = fails ? TIDE_ROW_FAILED : TIDE_ROW_PENDING,
        .attempts_add = 1,
        .status = TIDE_STALE,
        .error = TIDE_TEXT("the process that ran it ended"),
        .bytes_done = picked->bytes_done,
    };
    if (picked->cancel) {
        finish.state = TIDE_ROW_CANCELED;
        finish.attempts_add = 0;
        finish.status = TIDE_CANCELED;
    }
    struct claimed claimed = {picked->started, picked->cycle, picked->run, picked->noted};
    TIDE_TRY(tide_sql_finish_row(self, &finish, &claimed, now_unix_ms, err));
    if (over)
        TIDE_TRY(over_budget_add(changes, picked, fails, err));
    return TIDE_OK;
}

tide_status tide_sql_reclaim(tide_tx *tx, uint64_t owner, size_t count_max, uint64_t now_unix_ms,
                             size_t *count_out, struct tide_changes *changes, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    struct tally_mark mark = tide_sql_tally_mark(self);
    tide_status rc = reclaim_list(self, owner, slice_of(count_max), err);
    for (size_t i = 0; rc == TIDE_OK && i < self->picks_count; i++)
        rc = reclaim_one(self, &self->picks[i], now_unix_ms, changes, err);
    if (rc == TIDE_OK)
        rc = tide_sql_tally_write(self, mark, changes, err);
    if (rc == TIDE_OK)
        *count_out = self->picks_count;
    return tide_sql_end(self, rc);
}

/* ---- purge --------------------------------------------------------------------- */

/* Whether a finished row must stay: its cycle is unfinished, or a job needs it. */
static tide_status purge_kept(struct tide_sqlite *self, const struct picked *picked, bool *kept_out,
                              tide_error *err)
{
    bool kept = false;
    tide_status rc = TIDE_OK;
    if (picked->cycle != 0) {
        sqlite3_stmt *stmt = sql_of(self, SQL_CYCLE_GET);
        bool row = false;
        tide_bind_u64(stmt, 1, picked->cycle);
        rc = tide_db_step(&self->db, stmt, &row, err);
        if (rc == TIDE_OK && row) {
            kept = tide_column_u64(stmt, 2) > 0 || tide_column_u64(stmt, 3) > 0;
            tide_db_end(stmt);
        }
    }
    /* No job waits for a done one (LSQ1). */
    if (rc == TIDE_OK && !kept && picked->state != TIDE_ROW_DONE) {
        sqlite3_stmt *stmt = tide_db_ask(&self->db, SQL_DEP_NEEDED, picked->id);
        rc = tide_db_step(&self->db, stmt, &kept, err);
        tide_db_end(stmt);
    }
    if (rc == TIDE_OK)
        *kept_out = kept;
    return rc;
}

/* Collects finished rows that are old enough; continues where the last purge ended. */
static tide_status purge_look(struct tide_sqlite *self, uint64_t before, size_t count_max,
                              uint64_t newest, tide_error *err)
{
    tide_auto_stmt *stmt = sql_of(self, SQL_PURGE_SCAN);
    size_t looked = 0;
    size_t young = 0;
    bool row = false;
    self->picks_count = 0;
    tide_bind_u64(stmt, 1, self->purge_after);
    tide_bind_u64(stmt, 2, PURGE_LOOK_MAX);
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    while (rc == TIDE_OK && row && self->picks_count < count_max && young < PURGE_YOUNG_MAX) {
        uint64_t id = tide_column_u64(stmt, 0);
        uint64_t state = tide_column_u64(stmt, 1);
        looked++;
        young = tide_column_u64(stmt, 3) >= before ? young + 1 : 0;
        if (state >= TIDE_ROW_DONE && tide_column_u64(stmt, 2) < before && id < newest) {
            struct picked *picked = pick_add(self);
            if (picked == NULL) {
                rc = tide_sql_no_memory(err);
                break;
            }
            picked->id = id;
            picked->state = (uint8_t)state;
            picked->cycle = tide_column_u64(stmt, 4);
        }
        self->purge_after = id;
        rc = tide_db_step(&self->db, stmt, &row, err);
    }
    self->base.purge_more = row && young < PURGE_YOUNG_MAX;
    if (!row && looked == PURGE_LOOK_MAX)
        self->base.purge_more = true;
    if (!self->base.purge_more)
        self->purge_after = 0;
    return rc;
}

static tide_status purge_one(struct tide_sqlite *self, const struct picked *picked, tide_error *err)
{
    static const enum tide_sql texts[] = {SQL_JOB_DELETE, SQL_DETAIL_DELETE, SQL_INTENT_DELETE_JOB,
                                          SQL_DEP_CLEAR_JOB};
    /* Only a failed or canceled one may still wait for others. */
    size_t count = picked->state == TIDE_ROW_DONE ? 3 : 4;
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(tide_db_do(&self->db, err, texts[i], picked->id));
    return TIDE_OK;
}

tide_status tide_sql_purge(tide_tx *tx, uint64_t finished_before_unix_ms, size_t count_max,
                           size_t *count_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_NEWEST);
    bool row = false;
    size_t count = 0;
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc != TIDE_OK)
        return tide_sql_end(self, rc);
    uint64_t newest = row ? tide_column_u64(stmt, 0) : 0;
    tide_db_end(stmt);
    rc = purge_look(self, finished_before_unix_ms, slice_of(count_max), newest, err);
    /* All are checked before the first is deleted: a job that one of them waits for can be
     * deleted by the next purge, whichever of the two is older. */
    for (size_t i = 0; rc == TIDE_OK && i < self->picks_count; i++) {
        bool kept = false;
        rc = purge_kept(self, &self->picks[i], &kept, err);
        if (rc == TIDE_OK && !kept)
            self->picks[count++] = self->picks[i];
    }
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = purge_one(self, &self->picks[i], err);
    if (rc == TIDE_OK)
        rc = tide_sql_batches_forget(self, finished_before_unix_ms, err);
    if (rc == TIDE_OK)
        *count_out = count;
    return tide_sql_end(self, rc);
}
