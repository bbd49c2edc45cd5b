/* finish.c - the ends of running jobs, and the counters that follow. */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GROW(owner, mem, array, count)                                                             \
    grow((mem), (void **)&(owner)->array, &(owner)->array##_capacity, (count),                     \
         sizeof(owner)->array[0])

/* An operation logs at most a few entries for each row it touches. */
enum { LOG_MAX = 16 << 20 };

static bool grow(tide_mem *mem, void **array, size_t *capacity, size_t count, size_t element_bytes)
{
    return tide_mem_grow(mem, array, capacity, count, LOG_MAX, element_bytes);
}

/* ---- the log of counters ---------------------------------------------------------- */

struct tally_mark tide_sql_tally_mark(const struct tide_sqlite *self)
{
    return (struct tally_mark){self->tally_cycles_count, self->tally_released_count};
}

void tide_sql_tally_undo(struct tide_sqlite *self, struct tally_mark mark)
{
    TIDE_ASSERT(mark.cycles <= self->tally_cycles_count);
    TIDE_ASSERT(mark.released <= self->tally_released_count);
    self->tally_cycles_count = mark.cycles;
    self->tally_released_count = mark.released;
}

tide_status tide_sql_tally_cycle(struct tide_sqlite *self, uint64_t cycle, int total,
                                 int outstanding, int failed, tide_error *err)
{
    TIDE_ASSERT(cycle != 0);
    if (!GROW(self, self->mem, tally_cycles, self->tally_cycles_count + 1))
        return tide_sql_no_memory(err);
    self->tally_cycles[self->tally_cycles_count++] =
        (struct tally_cycle){cycle, total, outstanding, failed};
    return TIDE_OK;
}

/* Most ledgers have no dependencies at all.  No other process can add one while this
 * transaction writes, so one query is enough for all jobs it ends. */
static tide_status deps_look(struct tide_sqlite *self, tide_error *err)
{
    if (self->deps_known)
        return TIDE_OK;
    tide_auto_stmt *stmt = sql_of(self, SQL_DEP_ANY);
    tide_status rc = tide_db_step(&self->db, stmt, &self->deps_any, err);
    self->deps_known = rc == TIDE_OK;
    return rc;
}

/* Adds the jobs that wait for `job` to the log. */
static tide_status log_dependents(struct tide_sqlite *self, uint64_t job, bool *any_out,
                                  tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_DEP_WAITING);
    bool row = false;
    tide_bind_u64(stmt, 1, job);
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (any_out != NULL)
        *any_out = row;
    while (rc == TIDE_OK && row) {
        if (!GROW(self, self->mem, tally_released, self->tally_released_count + 1)) {
            tide_db_end(stmt);
            return tide_sql_no_memory(err);
        }
        self->tally_released[self->tally_released_count++] = tide_column_u64(stmt, 0);
        rc = tide_db_step(&self->db, stmt, &row, err);
    }
    return rc;
}

tide_status tide_sql_tally_release(struct tide_sqlite *self, uint64_t job, tide_error *err)
{
    bool any = false;
    TIDE_TRY(deps_look(self, err));
    if (!self->deps_any)
        return TIDE_OK;
    TIDE_TRY(log_dependents(self, job, &any, err));
    if (!any)
        return TIDE_OK;
    sqlite3_stmt *stmt = sql_of(self, SQL_DEP_CLEAR);
    tide_bind_u64(stmt, 1, job);
    return tide_db_run(&self->db, stmt, err);
}

/* Adds equal entries of the log together, in order of their first one, and
 * returns how many are left after `from`. */
static tide_status merge_cycles(struct tide_sqlite *self, size_t from, size_t *count_out,
                                tide_error *err)
{
    size_t kept = from;
    tide_map_clear(&self->tally_map);
    for (size_t i = from; i < self->tally_cycles_count; i++) {
        struct tally_cycle entry = self->tally_cycles[i];
        uint32_t at = 0;
        /* Consecutive entries are mostly of one cycle: no map needed for those. */
        if (kept > from && self->tally_cycles[kept - 1].cycle == entry.cycle)
            at = (uint32_t)(kept - 1);
        else if (!tide_map_get(&self->tally_map, entry.cycle, &at)) {
            if (!tide_map_put(&self->tally_map, entry.cycle, (uint32_t)kept))
                return tide_sql_no_memory(err);
            self->tally_cycles[kept++] = entry;
            continue;
        }
        self->tally_cycles[at].total += entry.total;
        self->tally_cycles[at].outstanding += entry.outstanding;
        self->tally_cycles[at].failed += entry.failed;
    }
    *count_out = kept - from;
    return TIDE_OK;
}

static tide_status report_cycle(struct tide_sqlite *self, uint64_t cycle,
                                struct tide_changes *changes, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_CYCLE_GET);
    bool row = false;
    tide_bind_u64(stmt, 1, cycle);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    if (!row)
        return tide_error_set(err, TIDE_CORRUPT, "%s: cycle %" PRIu64 " is missing; run a check",
                              self->db.path, cycle);
    struct tide_cycle_change change = {cycle,
                                       tide_column_u64(stmt, 0),
                                       tide_column_u64(stmt, 1),
                                       tide_column_u64(stmt, 2),
                                       tide_column_u64(stmt, 3),
                                       tide_column_u64(stmt, 4),
                                       tide_column_u64(stmt, 5)};
    tide_db_end(stmt);
    /* LED3: no count ever becomes negative. */
    TIDE_ASSERT((int64_t)change.outstanding >= 0);
    TIDE_ASSERT((int64_t)change.failed >= 0);
    if (!GROW(changes, changes->mem, cycles, changes->cycles_count + 1))
        return tide_sql_no_memory(err);
    changes->cycles[changes->cycles_count++] = change;
    return TIDE_OK;
}

static tide_status write_cycles(struct tide_sqlite *self, size_t from, struct tide_changes *changes,
                                tide_error *err)
{
    size_t count = 0;
    TIDE_TRY(merge_cycles(self, from, &count, err));
    for (size_t i = from; i < from + count; i++) {
        const struct tally_cycle *entry = &self->tally_cycles[i];
        sqlite3_stmt *stmt = sql_of(self, SQL_CYCLE_TALLY);
        tide_bind_u64(stmt, 1, entry->cycle);
        (void)sqlite3_bind_int64(stmt, 2, entry->total);
        (void)sqlite3_bind_int64(stmt, 3, entry->outstanding);
        (void)sqlite3_bind_int64(stmt, 4, entry->failed);
        TIDE_TRY(tide_db_run(&self->db, stmt, err));
        if (changes != NULL)
            TIDE_TRY(report_cycle(self, entry->cycle, changes, err));
    }
    return TIDE_OK;
}

static tide_status write_release(struct tide_sqlite *self, uint64_t job, uint64_t count,
                                 struct tide_changes *changes, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_RELEASE);
    bool row = false;
    tide_bind_u64(stmt, 1, job);
    tide_bind_u64(stmt, 2, count);
    tide_status rc = tide_db_run(&self->db, stmt, err);
    stmt = sql_of(self, SQL_JOB_RELEASED);
    tide_bind_u64(stmt, 1, job);
    if (rc == TIDE_OK)
        rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc != TIDE_OK)
        return rc;
    if (!row)
        return tide_error_set(err, TIDE_CORRUPT, "%s: job %" PRIu64 " is missing; run a check",
                              self->db.path, job);
    struct tide_released released = {job, tide_column_u32(stmt, 0), tide_column_u32(stmt, 1)};
    bool waiting = tide_column_u64(stmt, 2) == TIDE_ROW_PENDING;
    tide_db_end(stmt);
    TIDE_ASSERT((int32_t)released.open_deps >= 0);
    /* A canceled job keeps its count right, but is not reported. */
    if (changes == NULL || !waiting)
        return TIDE_OK;
    if (!GROW(changes, changes->mem, released, changes->released_count + 1))
        return tide_sql_no_memory(err);
    changes->released[changes->released_count++] = released;
    return TIDE_OK;
}

/* A job that waits for many gets one update for all that were done together. */
static tide_status write_releases(struct tide_sqlite *self, size_t from,
                                  struct tide_changes *changes, tide_error *err)
{
    tide_map_clear(&self->tally_map);
    size_t kept = from;
    for (size_t i = from; i < self->tally_released_count; i++) {
        uint64_t job = self->tally_released[i];
        uint32_t count = 0;
        if (!tide_map_get(&self->tally_map, job, &count))
            self->tally_released[kept++] = job;
        if (!tide_map_put(&self->tally_map, job, count + 1))
            return tide_sql_no_memory(err);
    }
    for (size_t i = from; i < kept; i++) {
        uint32_t count = 0;
        bool found = tide_map_get(&self->tally_map, self->tally_released[i], &count);
        TIDE_ASSERT(found);
        TIDE_TRY(write_release(self, self->tally_released[i], count, changes, err));
    }
    return TIDE_OK;
}

tide_status tide_sql_tally_write(struct tide_sqlite *self, struct tally_mark mark,
                                 struct tide_changes *changes, tide_error *err)
{
    tide_status rc = TIDE_OK;
    if (self->tally_cycles_count > mark.cycles)
        rc = write_cycles(self, mark.cycles, changes, err);
    if (rc == TIDE_OK && self->tally_released_count > mark.released)
        rc = write_releases(self, mark.released, changes, err);
    tide_sql_tally_undo(self, mark);
    return rc;
}

/* ---- finishing ------------------------------------------------------------------- */

/* What the claim row holds about its job, from the cache where this process claimed it. */
static tide_status claim_get(struct tide_sqlite *self, const struct tide_finish *finish,
                             struct claimed *claimed_out, bool *found_out, tide_error *err)
{
    const struct claim_known *known = &self->known[finish->id % CLAIMS_KNOWN];
    if (known->id == finish->id && known->token == finish->token) {
        *claimed_out = known->facts;
        *found_out = true;
        return TIDE_OK;
    }
    sqlite3_stmt *stmt = sql_of(self, SQL_CLAIM_GET);
    tide_bind_u64(stmt, 1, finish->id);
    tide_bind_u64(stmt, 2, finish->token);
    TIDE_TRY(tide_db_step(&self->db, stmt, found_out, err));
    if (!*found_out)
        return TIDE_OK;
    claimed_out->started = tide_column_u64(stmt, 0);
    claimed_out->cycle = tide_column_u64(stmt, 1);
    claimed_out->noted = tide_column_u64(stmt, 2) != 0;
    claimed_out->run = tide_column_u64(stmt, 3);
    tide_db_end(stmt);
    return TIDE_OK;
}

static tide_status write_detail(struct tide_sqlite *self, const struct tide_finish *finish,
                                bool *noted, tide_error *err)
{
    bool wanted = *noted || finish->status != TIDE_OK || finish->error.bytes > 0 ||
                  finish->bytes_done > 0 || (finish->resume_set && finish->resume.bytes > 0);
    if (!wanted)
        return TIDE_OK;
    *noted = true;
    sqlite3_stmt *stmt = sql_of(self, SQL_DETAIL_SET);
    tide_bind_u64(stmt, 1, finish->id);
    (void)sqlite3_bind_int(stmt, 2, finish->status);
    tide_bind_u64_or_null(stmt, 3, finish->bytes_done);
    tide_bind_text_or_null(stmt, 4, finish->error);
    tide_bind_text_or_null(stmt, 5, finish->resume_set ? finish->resume : TIDE_TEXT_NONE);
    (void)sqlite3_bind_int(stmt, 6, finish->resume_set);
    return tide_db_run(&self->db, stmt, err);
}

static tide_status write_done(struct tide_sqlite *self, const struct tide_finish *finish,
                              const struct claimed *claimed, uint64_t now_unix_ms, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_FINISH_DONE);
    tide_bind_u64(stmt, 1, finish->id);
    tide_bind_u64(stmt, 2, claimed->started);
    tide_bind_u64(stmt, 3, now_unix_ms);
    tide_bind_u64(stmt, 4, claimed->run);
    tide_bind_u64_or_null(stmt, 5, claimed->noted);
    return tide_db_run(&self->db, stmt, err);
}

static tide_status write_other(struct tide_sqlite *self, const struct tide_finish *finish,
                               const struct claimed *claimed, uint64_t now_unix_ms, tide_error *err)
{
    enum tide_sql texts[] = {SQL_FINISH_OTHER, SQL_FINISH_KEYLESS};
    bool waits = finish->state == TIDE_ROW_PENDING;
    bool conflict = true;
    tide_status rc = TIDE_OK;
    for (int i = 0; rc == TIDE_OK && conflict && i < 2; i++) {
        /* While the job ran, another one of its key was enqueued, and only one may wait
         * (LED5).  Both have to run, so this one goes back without its key. */
        if (i == 1)
            TIDE_SEEN("ledger: put back beside a duplicate");
        sqlite3_stmt *stmt = sql_of(self, texts[i]);
        tide_bind_u64(stmt, 1, finish->id);
        (void)sqlite3_bind_int(stmt, 2, (int)finish->state);
        (void)sqlite3_bind_int(stmt, 3, finish->attempts_add);
        tide_bind_u64(stmt, 4, claimed->started);
        tide_bind_u64_or_null(stmt, 5, waits ? 0 : now_unix_ms);
        tide_bind_u64(stmt, 6, claimed->run);
        tide_bind_u64_or_null(stmt, 7, claimed->noted);
        tide_bind_u64_or_null(stmt, 8, waits ? finish->not_before_unix_ms : 0);
        tide_bind_text_or_null(stmt, 9, finish->payload);
        rc = tide_db_try(&self->db, stmt, &conflict, err);
    }
    TIDE_ASSERT(rc != TIDE_OK || !conflict);
    return rc;
}

/* The row itself, its counters, and the jobs that wait for it. */
tide_status tide_sql_finish_row(struct tide_sqlite *self, const struct tide_finish *finish,
                                struct claimed *claimed, uint64_t now_unix_ms, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_CLAIM_DELETE);
    tide_bind_u64(stmt, 1, finish->id);
    tide_bind_u64(stmt, 2, finish->token);
    TIDE_TRY(tide_db_run(&self->db, stmt, err));
    /* The fence (E1.8): without a claim row of that job and token nothing is changed. */
    if (sqlite3_changes(self->db.handle) != 1)
        return tide_error_set(err, TIDE_STALE, "job %" PRIu64 ": its claim was lost", finish->id);
    TIDE_TRY(write_detail(self, finish, &claimed->noted, err));
    if (finish->state == TIDE_ROW_DONE && finish->payload.bytes == 0 && finish->attempts_add == 0)
        TIDE_TRY(write_done(self, finish, claimed, now_unix_ms, err));
    else
        TIDE_TRY(write_other(self, finish, claimed, now_unix_ms, err));
    if (finish->state == TIDE_ROW_DONE)
        TIDE_TRY(tide_sql_tally_release(self, finish->id, err));
    if (claimed->cycle != 0 && finish->state != TIDE_ROW_PENDING)
        TIDE_TRY(tide_sql_tally_cycle(self, claimed->cycle, 0, -1,
                                      finish->state == TIDE_ROW_DONE ? 0 : 1, err));
    return TIDE_OK;
}

static tide_status savepoint_end(struct tide_sqlite *self, bool keep, tide_error *err)
{
    tide_status rc = TIDE_OK;
    self->savepoints--;
    if (!keep)
        rc = tide_db_run(&self->db, sql_of(self, SQL_SAVEPOINT_UNDO), err);
    if (rc == TIDE_OK)
        rc = tide_db_run(&self->db, sql_of(self, SQL_SAVEPOINT_END), err);
    if (rc != TIDE_OK)
        self->tx_failed = rc; /* part of it may be undone and part not: only a rollback is safe */
    return rc;
}

/* ---- parts (E6.1) ------------------------------------------------------------------ */

/* Makes a job that waits for the parent wait for this part too.  It may already wait for a
 * part that existed before. */
static tide_status wait_for_part(struct tide_sqlite *self, uint64_t dependent, uint64_t part,
                                 tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_DEP_ADD);
    tide_bind_u64(stmt, 1, part);
    tide_bind_u64(stmt, 2, dependent);
    self->deps_any = true;
    TIDE_TRY(tide_db_run(&self->db, stmt, err));
    if (sqlite3_changes(self->db.handle) == 0)
        return TIDE_OK;
    stmt = sql_of(self, SQL_JOB_RELEASE);
    tide_bind_u64(stmt, 1, dependent);
    (void)sqlite3_bind_int64(stmt, 2, -1);
    return tide_db_run(&self->db, stmt, err);
}

enum { WAITS = 1, IS_PART = 2 }; /* for the parent; in the map of a finish with parts */

/* A part that is not new, or has dependencies of its own, may need a job that would wait for
 * it: then both would wait forever. */
static tide_status part_can_come(struct tide_sqlite *self, uint64_t part, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_DEP_ALL_NEEDS);
    bool row = false;
    tide_bind_u64(stmt, 1, part);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    while (row) {
        uint64_t needed = tide_column_u64(stmt, 0);
        uint32_t what = 0;
        if (tide_map_get(&self->tally_map, needed, &what) && (what & WAITS) != 0) {
            tide_db_end(stmt);
            return tide_part_refused(needed, part, err);
        }
        TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    }
    return TIDE_OK;
}

static bool mark(struct tide_sqlite *self, uint64_t id, uint32_t mark)
{
    uint32_t what = 0;
    (void)tide_map_get(&self->tally_map, id, &what);
    return tide_map_put(&self->tally_map, id, what | mark);
}

/* Makes the jobs in the log of releases from `from` to `to` wait for each part.  Parts that
 * wait for the parent themselves do not wait for each other. */
static tide_status wait_for_each(struct tide_sqlite *self, const struct tide_finish *finish,
                                 const struct tide_child *children, size_t from, size_t to,
                                 tide_error *err)
{
    tide_map_clear(&self->tally_map);
    for (size_t i = from; i < to; i++)
        if (!mark(self, self->tally_released[i], WAITS))
            return tide_sql_no_memory(err);
    for (size_t i = 0; i < finish->children_count; i++)
        if (finish->children[i].part && !mark(self, children[i].brief.id, IS_PART))
            return tide_sql_no_memory(err);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < finish->children_count; i++) {
        const uint64_t part = children[i].brief.id;
        uint32_t what = 0;
        if (!finish->children[i].part || to == from)
            continue;
        if (children[i].existed || children[i].brief.open_deps > 0)
            rc = part_can_come(self, part, err);
        (void)tide_map_get(&self->tally_map, part, &what);
        for (size_t j = from; rc == TIDE_OK && j < to; j++) {
            uint32_t who = 0;
            (void)tide_map_get(&self->tally_map, self->tally_released[j], &who);
            if ((what & WAITS) == 0 || (who & IS_PART) == 0)
                rc = wait_for_part(self, self->tally_released[j], part, err);
        }
    }
    return rc;
}

/* The dependents are in the log of releases from `from` on: added by the parent's own end,
 * or, if the parent runs again, looked up here and removed again. */
static tide_status wait_for_parts(struct tide_sqlite *self, const struct tide_finish *finish,
                                  const struct tide_child *children, size_t from, tide_error *err)
{
    bool parts = false;
    for (size_t i = 0; i < finish->children_count; i++)
        parts = parts || finish->children[i].part;
    if (!parts)
        return TIDE_OK;
    tide_status rc = TIDE_OK;
    bool goes_on = finish->state != TIDE_ROW_DONE;
    if (goes_on)
        rc = log_dependents(self, finish->id, NULL, err);
    if (rc == TIDE_OK)
        rc = wait_for_each(self, finish, children, from, self->tally_released_count, err);
    if (goes_on)
        self->tally_released_count = from;
    return rc;
}

/* A finish with children, items or an effect: all of it or nothing. */
static tide_status finish_with_more(struct tide_sqlite *self, tide_tx *tx,
                                    const struct tide_finish *finish, struct claimed *claimed,
                                    uint64_t now_unix_ms, struct tide_changes *changes,
                                    tide_error *err)
{
    struct tally_mark mark = tide_sql_tally_mark(self);
    size_t children_before = changes->children_count;
    tide_status rc = tide_sql_savepoint(self, err);
    if (rc != TIDE_OK) {
        /* Without memory SQLite may have rolled everything back: the statements that follow
         * would be stored one by one. */
        self->tx_failed = rc;
        return rc;
    }
    /* The row first: a child may have the key its parent just gave up. */
    rc = tide_sql_finish_row(self, finish, claimed, now_unix_ms, err);
    if (rc == TIDE_OK && finish->children_count > 0)
        rc = tide_sql_enqueue_rows(self, finish->children, finish->children_count, now_unix_ms,
                                   NULL, changes, err);
    if (rc == TIDE_OK && finish->children_count > 0)
        rc = wait_for_parts(self, finish, changes->children + children_before, mark.released, err);
    if (rc == TIDE_OK && finish->items_count > 0)
        rc = tide_sql_bad_add(self, finish->id, claimed->cycle, finish->items, finish->items_count,
                              now_unix_ms, err);
    if (rc == TIDE_OK && finish->effect != NULL)
        rc = finish->effect(finish->effect_arg, tx, err);
    bool over = tide_sql_tx_over(self);
    if (rc == TIDE_OK && !over)
        return savepoint_end(self, true, err);

    tide_sql_tally_undo(self, mark);
    changes->children_count = children_before;
    if (over) {
        self->savepoints--;
        return tide_sql_over(self, rc, err);
    }
    (void)savepoint_end(self, false, NULL);
    return rc;
}

static tide_status refuse(struct tide_changes *changes, size_t index, uint64_t id,
                          tide_status status, const char *text, tide_error *err)
{
    if (!GROW(changes, changes->mem, refused, changes->refused_count + 1))
        return tide_sql_no_memory(err);
    struct tide_refused *refused = &changes->refused[changes->refused_count++];
    *refused = (struct tide_refused){.index = index, .id = id, .status = status};
    (void)snprintf(refused->text, sizeof refused->text, "%.159s", text);
    return TIDE_OK;
}

/* *own_out: TIDE_CANCELED where a cancel was requested. */
static tide_status cancel_look(struct tide_sqlite *self, const struct tide_finish *finish,
                               tide_status *own_out, tide_error *err)
{
    tide_auto_stmt *stmt = sql_of(self, SQL_CLAIM_WANTED);
    bool wanted = false;
    tide_bind_u64(stmt, 1, finish->id);
    tide_bind_u64(stmt, 2, finish->token);
    TIDE_TRY(tide_db_step(&self->db, stmt, &wanted, err));
    if (wanted)
        *own_out =
            tide_error_set(err, TIDE_CANCELED, "job %" PRIu64 " is to be canceled", finish->id);
    return TIDE_OK;
}

/* One finish.  *own_out gets a failure of the finish itself; a failure of the store is
 * returned. */
static tide_status finish_one(struct tide_sqlite *self, tide_tx *tx,
                              const struct tide_finish *finish, uint64_t now_unix_ms,
                              struct tide_changes *changes, tide_status *own_out, tide_error *err)
{
    struct claimed claimed = {0};
    bool found = false;
    TIDE_TRY(claim_get(self, finish, &claimed, &found, err));
    if (!found) {
        *own_out =
            tide_error_set(err, TIDE_STALE, "job %" PRIu64 ": its claim was lost", finish->id);
        return TIDE_OK;
    }
    *own_out = tide_finish_check(finish, err);
    tide_status rc = TIDE_OK;
    if (*own_out == TIDE_OK && tide_finish_goes_on(finish))
        rc = cancel_look(self, finish, own_out, err);
    if (rc != TIDE_OK || *own_out != TIDE_OK)
        return rc;
    if (finish->children_count == 0 && finish->items_count == 0 && finish->effect == NULL) {
        rc = tide_sql_finish_row(self, finish, &claimed, now_unix_ms, err);
        if (rc != TIDE_STALE)
            return rc;
        *own_out = rc;
        return TIDE_OK;
    }
    rc = finish_with_more(self, tx, finish, &claimed, now_unix_ms, changes, err);
    if (rc == TIDE_OK || self->tx_failed != TIDE_OK)
        return rc;
    /* TIDE_STALE means a lost claim only: an effect that returns it found another
     * value than it expected, and the row is still ours. */
    *own_out = rc == TIDE_STALE ? TIDE_SUPERSEDED : rc;
    return TIDE_OK;
}

tide_status tide_sql_finish(tide_tx *tx, const struct tide_finish *finishes, size_t count,
                            uint64_t now_unix_ms, bool *applied_out, struct tide_changes *changes,
                            tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    TIDE_ASSERT(!self->in_finish);
    self->in_finish = true;
    struct tally_mark mark = tide_sql_tally_mark(self);
    tide_error own_error = {.text = ""};
    tide_status rc =
        tide_sql_finish_runs(self, finishes, count, now_unix_ms, applied_out, &own_error);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        if (applied_out[i])
            continue;
        tide_status own = TIDE_OK;
        rc = finish_one(self, tx, &finishes[i], now_unix_ms, changes, &own, &own_error);
        applied_out[i] = rc == TIDE_OK && own == TIDE_OK;
        if (own == TIDE_STALE)
            TIDE_SEEN("ledger: a stale finish");
        if (rc == TIDE_OK && own != TIDE_OK)
            rc = refuse(changes, i, finishes[i].id, own, own_error.text, &own_error);
    }
    if (rc == TIDE_OK)
        rc = tide_sql_tally_write(self, mark, changes, &own_error);
    if (rc != TIDE_OK && err != NULL)
        *err = own_error;
    self->in_finish = false;
    return tide_sql_end(self, rc);
}
