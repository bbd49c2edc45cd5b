/* enqueue.c - new jobs (E1.5). */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdlib.h>

int tide_sql_id_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static tide_status cycle_open(struct tide_sqlite *self, uint64_t cycle, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_CYCLE_OPEN);
    bool row = false;
    tide_bind_u64(stmt, 1, cycle);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    if (!row)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no cycle %" PRIu64, cycle);
    bool open = tide_column_u64(stmt, 0) != 0;
    tide_db_end(stmt);
    if (!open)
        return tide_error_set(err, TIDE_STALE, "the cursor has passed cycle %" PRIu64, cycle);
    return TIDE_OK;
}

static tide_status job_state(struct tide_sqlite *self, uint64_t id, tide_row_state *state_out,
                             tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_STATE);
    bool row = false;
    tide_bind_u64(stmt, 1, id);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    if (!row)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no job %" PRIu64, id);
    *state_out = (tide_row_state)tide_column_u64(stmt, 0);
    tide_db_end(stmt);
    return TIDE_OK;
}

/* Everything that can be refused is refused before the first row is written, so that a
 * failure leaves nothing behind without a savepoint. */
static tide_status validate(struct tide_sqlite *self, const struct tide_job_new *jobs, size_t count,
                            tide_error *err)
{
    uint64_t cycle = 0;
    uint32_t kind = 0;
    uint32_t account = 0;
    uint32_t scope = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tide_job_new *job = &jobs[i];
        TIDE_TRY(tide_job_new_check(job, i, err));
        if (i == 0 || job->kind != kind)
            TIDE_TRY(tide_sql_kind_scope(self, job->kind, &scope, err));
        if (job->account != 0 && job->account != account)
            TIDE_TRY(tide_sql_account_exists(self, job->account, err));
        if (job->cycle != 0 && job->cycle != cycle)
            TIDE_TRY(cycle_open(self, job->cycle, err));
        cycle = job->cycle;
        kind = job->kind;
        account = job->account;
        for (size_t n = 0; n < job->needs_count; n++) {
            tide_row_state state;
            TIDE_TRY(job_state(self, job->needs[n], &state, err));
        }
    }
    return TIDE_OK;
}

static tide_status needs_add(struct tide_sqlite *self, uint64_t id, tide_error *err)
{
    tide_row_state state = TIDE_ROW_PENDING;
    TIDE_TRY(job_state(self, id, &state, err));
    if (state == TIDE_ROW_DONE)
        return TIDE_OK;
    if (!TIDE_GROW_IN(self->mem, self->needs, self->needs_capacity, self->needs_count + 1,
                      TIDE_NEEDS_MAX))
        return tide_sql_no_memory(err);
    self->needs[self->needs_count++] = id;
    return TIDE_OK;
}

/* Collects the open dependencies of a new job in self->needs, each once. */
static tide_status needs_collect(struct tide_sqlite *self, const struct tide_job_new *job,
                                 const uint64_t *earlier, tide_error *err)
{
    self->needs_count = 0;
    for (size_t i = 0; i < job->needs_count; i++)
        TIDE_TRY(needs_add(self, job->needs[i], err));
    for (size_t i = 0; i < job->needs_earlier_count; i++)
        TIDE_TRY(needs_add(self, earlier[job->needs_earlier[i]], err));
    if (self->needs_count < 2)
        return TIDE_OK;
    qsort(self->needs, self->needs_count, sizeof self->needs[0], tide_sql_id_order);
    size_t kept = 1;
    for (size_t i = 1; i < self->needs_count; i++)
        if (self->needs[i] != self->needs[kept - 1])
            self->needs[kept++] = self->needs[i];
    self->needs_count = kept;
    return TIDE_OK;
}

static unsigned traits_of(const struct tide_job_new *job)
{
    return (job->lane == TIDE_LANE_BULK ? TRAIT_BULK : 0u) |
           (job->preemptible ? TRAIT_PREEMPTIBLE : 0u) | (job->force ? TRAIT_FORCE : 0u) |
           ((unsigned)job->level << TRAIT_LEVEL_SHIFT);
}

/* A duplicate: the existing job gets the higher priority, if it waits, and the force of
 * both (E1.5). */
static tide_status merge_into_existing(struct tide_sqlite *self, const struct tide_job_new *job,
                                       struct tide_enqueued *enqueued, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_DUPLICATE);
    bool row = false;
    tide_bind_u64(stmt, 1, job->account);
    tide_bind_u64(stmt, 2, job->kind);
    tide_bind_text(stmt, 3, job->dedupe_key);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
    if (!row)
        return tide_error_set(err, TIDE_CORRUPT,
                              "%s: an index disagrees with its table; run a check", self->db.path);
    bool waits = tide_column_u64(stmt, 1) == TIDE_ROW_PENDING;
    uint64_t priority = tide_column_u64(stmt, 2);
    uint64_t traits = tide_column_u64(stmt, 3);
    *enqueued = (struct tide_enqueued){.id = tide_column_u64(stmt, 0),
                                       .open_deps = tide_column_u32(stmt, 4),
                                       .existed = true,
                                       .raised = waits && job->priority > priority};
    tide_db_end(stmt);

    bool forced = job->force && (traits & TRAIT_FORCE) == 0;
    if (!enqueued->raised && !forced)
        return TIDE_OK;
    stmt = sql_of(self, SQL_JOB_RAISE);
    tide_bind_u64(stmt, 1, enqueued->id);
    tide_bind_u64(stmt, 2, enqueued->raised ? job->priority : priority);
    tide_bind_u64(stmt, 3, job->force ? traits | TRAIT_FORCE : traits);
    return tide_db_run(&self->db, stmt, err);
}

static tide_status insert_deps(struct tide_sqlite *self, uint64_t id, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_DEP_INSERT);
    self->deps_known = true;
    self->deps_any = true;
    for (size_t i = 0; i < self->needs_count; i++) {
        TIDE_ASSERT(self->needs[i] < id); /* older ones only: there are no circles (E2.2) */
        tide_bind_u64(stmt, 1, self->needs[i]);
        tide_bind_u64(stmt, 2, id);
        TIDE_TRY(tide_db_run(&self->db, stmt, err));
    }
    return TIDE_OK;
}

static tide_status enqueue_row(struct tide_sqlite *self, const struct tide_job_new *job,
                               uint32_t scope, uint64_t now_unix_ms, struct tide_enqueued *enqueued,
                               tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_INSERT);
    bool conflict = false;
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)self->needs_count);
    tide_bind_u64(stmt, 2, job->account);
    (void)sqlite3_bind_int(stmt, 3, job->priority);
    tide_bind_u64(stmt, 4, job->kind);
    tide_bind_u64(stmt, 5, scope);
    tide_bind_text_or_null(stmt, 6, job->dedupe_key);
    tide_bind_u64_or_null(stmt, 7, job->cycle);
    (void)sqlite3_bind_int(stmt, 8, job->attempts);
    (void)sqlite3_bind_int(stmt, 9, job->attempts_max);
    (void)sqlite3_bind_int(stmt, 10, (int)traits_of(job));
    tide_bind_u64_or_null(stmt, 11, job->not_before_unix_ms);
    tide_bind_u64_or_null(stmt, 12, job->size_bytes);
    tide_bind_u64(stmt, 13, now_unix_ms);
    tide_bind_text(stmt, 14, job->payload);
    TIDE_TRY(tide_db_try(&self->db, stmt, &conflict, err));
    if (conflict)
        return merge_into_existing(self, job, enqueued, err);

    *enqueued = (struct tide_enqueued){
        .id = (uint64_t)sqlite3_last_insert_rowid(self->db.handle),
        .open_deps = (uint32_t)self->needs_count,
    };
    if (self->needs_count > 0)
        TIDE_TRY(insert_deps(self, enqueued->id, err));
    if (job->cycle != 0)
        TIDE_TRY(tide_sql_tally_cycle(self, job->cycle, 1, 1, 0, err));
    return TIDE_OK;
}

static tide_status child_add(struct tide_sqlite *self, struct tide_changes *changes,
                             const struct tide_job_new *job, const struct tide_enqueued *enqueued,
                             tide_error *err)
{
    if (!TIDE_GROW_IN(changes->mem, changes->children, changes->children_capacity,
                      changes->children_count + 1, (size_t)16 << 20))
        return tide_sql_no_memory(err);
    changes->children[changes->children_count++] = (struct tide_child){
        .brief = tide_enqueued_brief(job, enqueued),
        .existed = enqueued->existed,
    };
    /* An existing job is reported with its stored values, not with those of the call. */
    if (enqueued->existed)
        return tide_sql_brief(&self->base, enqueued->id,
                              &changes->children[changes->children_count - 1].brief, err);
    return TIDE_OK;
}

tide_status tide_sql_enqueue_rows(struct tide_sqlite *self, const struct tide_job_new *jobs,
                                  size_t count, uint64_t now_unix_ms,
                                  struct tide_enqueued *enqueued_out,
                                  struct tide_changes *children_to, tide_error *err)
{
    tide_status rc = validate(self, jobs, count, err);
    if (rc != TIDE_OK || count == 0)
        return rc;
    uint64_t *ids = tide_mem_array(self->mem, count, sizeof ids[0]);
    if (ids == NULL)
        return tide_sql_no_memory(err);
    uint32_t scope = 0;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        struct tide_enqueued enqueued = {0};
        if (i == 0 || jobs[i].kind != jobs[i - 1].kind)
            rc = tide_sql_kind_scope(self, jobs[i].kind, &scope, err);
        if (rc == TIDE_OK)
            rc = needs_collect(self, &jobs[i], ids, err);
        if (rc == TIDE_OK)
            rc = enqueue_row(self, &jobs[i], scope, now_unix_ms, &enqueued, err);
        ids[i] = enqueued.id;
        if (rc == TIDE_OK && enqueued_out != NULL)
            enqueued_out[i] = enqueued;
        if (rc == TIDE_OK && children_to != NULL)
            rc = child_add(self, children_to, &jobs[i], &enqueued, err);
    }
    tide_mem_free(self->mem, ids, count * sizeof ids[0]);
    return rc;
}

tide_status tide_sql_enqueue(tide_tx *tx, const struct tide_job_new *jobs, size_t count,
                             uint64_t now_unix_ms, struct tide_enqueued *enqueued_out,
                             tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    struct tally_mark mark = tide_sql_tally_mark(self);
    tide_status rc = tide_sql_enqueue_rows(self, jobs, count, now_unix_ms, enqueued_out, NULL, err);
    if (rc == TIDE_OK)
        rc = tide_sql_tally_write(self, mark, NULL, err);
    else
        tide_sql_tally_undo(self, mark);
    return tide_sql_end(self, rc);
}

/* ---- enqueues that may be repeated ------------------------------------------------------ */

tide_status tide_sql_batch_get(tide_ledger *ledger, tide_text name, uint64_t *ids_out,
                               size_t ids_max, size_t *count_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_BATCH_GET);
    bool row = false;
    tide_bind_text(stmt, 1, name);
    TIDE_TRY(tide_db_step(&self->db, stmt, &row, err));
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
    tide_status rc = TIDE_OK;
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
