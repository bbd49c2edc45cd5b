/* enqueue.c - new jobs, however many, in a few statements (E1.5).
 *
 * Everything that can be refused is refused before the first row is written, so that a
 * failure leaves nothing behind without a savepoint.  If something changes between the check
 * and the write, the write detects it and returns TIDE_BUSY.
 *
 * Jobs without a key are written by COPY.  Jobs with one are inserted where the unique index
 * allows it, sorted by key: two processes that enqueue the same keys wait for each other in
 * one order, and do not deadlock.  A key that the index refused exists, and is looked up; if
 * that job has ended by then, the new one is inserted again. */
#include "ledger/postgres/postgres.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS_MAX = 20,  /* of insert and lookup, while other processes end jobs of the same keys */
    COPY_MIN = 20,    /* fewer are not worth a COPY */
    ROWS_MAX = 10000, /* in one statement */
    BYTES_MAX = 32 << 20,
    DELTAS_MAX = 16 << 20,
};

/* What is known of a job of the call. */
struct row {
    uint64_t id;     /* its own, or that of the existing job */
    uint32_t leader; /* the first job of the call with its key; may be itself */
    uint32_t scope;
    uint32_t open_deps;
    uint32_t needs_from; /* its open dependencies, in batch.needs */
    bool resolved;       /* it is in the table */
    bool existed;
    bool raised;
    bool waits;       /* the existing job is pending */
    uint8_t priority; /* of the row in the table, after all jobs of the key were merged */
    uint8_t priority_was;
    uint8_t lane_was;
    bool force;
    bool force_was;
    bool free; /* the existing job has no account */
};

struct batch {
    struct tide_postgres *self;
    const struct tide_job_new *jobs;
    size_t count;
    uint64_t now_unix_ms;
    struct row *rows;
    uint32_t *order; /* the jobs with a key, by key; then the rest */
    size_t keyed;
    tide_map known; /* needed ids: 1 open, 2 done */
    uint64_t *needs;
    size_t needs_count, needs_capacity;
    bool deps; /* at least one job needs another */
};

/* ---- what can be refused ---------------------------------------------------------- */

static bool kind_known(struct tide_postgres *self, uint32_t kind, uint32_t *scope_out)
{
    uint32_t found = 0;
    if (kind == 0 || !tide_map_get(&self->kinds, kind, &found))
        return false;
    *scope_out = found - 1;
    return true;
}

static bool account_known(struct tide_postgres *self, uint32_t account)
{
    uint32_t found = 0;
    return account == 0 || tide_map_get(&self->accounts, account, &found);
}

/* Reads the kinds and accounts of the call that are not cached. */
static tide_status names_load(struct batch *batch, tide_error *err)
{
    struct tide_postgres *self = batch->self;
    PGresult *result = NULL;
    uint32_t scope = 0;
    for (int column = 0; column < 2; column++) {
        uint32_t last = 0;
        if (column == 0)
            tide_pg_params(self->pg);
        tide_pg_array(self->pg, TIDE_PG_INT4);
        for (size_t i = 0; i < batch->count; i++) {
            uint32_t id = column == 0 ? batch->jobs[i].kind : batch->jobs[i].account;
            bool known = column == 0 ? kind_known(self, id, &scope) : account_known(self, id);
            if (!known && id != last && id <= INT32_MAX)
                tide_pg_i32(self->pg, (int32_t)id);
            last = id;
        }
        tide_pg_array_end(self->pg);
    }
    TIDE_TRY(tide_pg_run(self->pg, PGSQL_NAMES, &result, err));
    for (int i = 0; i < PQntuples(result); i++) {
        bool kind = tide_pg_get_i64(result, i, 0) == 0;
        uint64_t id = tide_pg_get_u64(result, i, 1);
        uint32_t value = (uint32_t)tide_pg_get_u64(result, i, 2) + 1;
        if (!tide_map_put(kind ? &self->kinds : &self->accounts, id, value))
            TIDE_TRY(tide_pgl_no_memory(err));
    }
    return TIDE_OK;
}

static tide_status validate_names(struct batch *batch, tide_error *err)
{
    struct tide_postgres *self = batch->self;
    bool asked = false;
    for (size_t i = 0; i < batch->count; i++) {
        const struct tide_job_new *job = &batch->jobs[i];
        uint32_t *scope = &batch->rows[i].scope;
        bool known = kind_known(self, job->kind, scope) && account_known(self, job->account);
        if (known)
            continue;
        if (!asked)
            TIDE_TRY(names_load(batch, err));
        asked = true;
        if (!kind_known(self, job->kind, scope))
            return tide_error_set(err, TIDE_NOT_FOUND, "there is no kind %" PRIu32, job->kind);
        if (!account_known(self, job->account))
            return tide_error_set(err, TIDE_NOT_FOUND, "there is no account %" PRIu32,
                                  job->account);
    }
    return TIDE_OK;
}

/* Checks that every cycle the call adds to exists, and that no cursor has passed it. */
static tide_status validate_cycles(struct batch *batch, tide_error *err)
{
    struct tide_postgres *self = batch->self;
    PGresult *result = NULL;
    uint64_t last = 0;
    size_t asked = 0;
    tide_pg_params(self->pg);
    tide_pg_array(self->pg, TIDE_PG_INT8);
    for (size_t i = 0; i < batch->count; i++) {
        uint64_t cycle = batch->jobs[i].cycle;
        if (cycle == 0 || cycle == last)
            continue;
        tide_pg_u64(self->pg, cycle);
        last = cycle;
        asked++;
    }
    tide_pg_array_end(self->pg);
    if (asked == 0)
        return TIDE_OK;
    tide_status rc = tide_pg_run(self->pg, PGSQL_CYCLES_OPEN, &result, err);
    tide_map_clear(&batch->known);
    for (int i = 0; rc == TIDE_OK && i < PQntuples(result); i++)
        if (!tide_map_put(&batch->known, tide_pg_get_u64(result, i, 0),
                          tide_pg_get_bool(result, i, 1)))
            rc = tide_pgl_no_memory(err);
    for (size_t i = 0; rc == TIDE_OK && i < batch->count; i++) {
        uint64_t cycle = batch->jobs[i].cycle;
        uint32_t open = 0;
        if (cycle == 0)
            continue;
        if (!tide_map_get(&batch->known, cycle, &open))
            rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no cycle %" PRIu64, cycle);
        else if (!open)
            rc = tide_error_set(err, TIDE_STALE, "the cursor has passed cycle %" PRIu64, cycle);
    }
    return rc;
}

/* ---- what they need --------------------------------------------------------------- */

/* Marks the requested ids that the statement finds. */
static tide_status needs_mark(struct batch *batch, enum tide_pg_sql text, uint32_t mark,
                              tide_error *err)
{
    PGresult *result = NULL;
    TIDE_TRY(tide_pg_run(batch->self->pg, text, &result, err));
    for (int i = 0; i < PQntuples(result); i++) {
        if (!tide_map_put(&batch->known, tide_pg_get_u64(result, i, 0), mark))
            TIDE_TRY(tide_pgl_no_memory(err));
    }
    return TIDE_OK;
}

static size_t needs_ask(struct batch *batch)
{
    struct tide_postgres *self = batch->self;
    size_t asked = 0;
    tide_pg_params(self->pg);
    tide_pg_array(self->pg, TIDE_PG_INT8);
    for (size_t i = 0; i < batch->count; i++)
        for (size_t n = 0; n < batch->jobs[i].needs_count; n++) {
            uint32_t state = 0;
            uint64_t id = batch->jobs[i].needs[n];
            if (id == 0 || tide_map_get(&batch->known, id, &state))
                continue;
            tide_pg_u64(self->pg, id);
            asked++;
        }
    tide_pg_array_end(self->pg);
    return asked;
}

static tide_status validate_needs(struct batch *batch, tide_error *err)
{
    tide_map_clear(&batch->known);
    if (needs_ask(batch) == 0 && !batch->deps)
        return TIDE_OK;
    TIDE_TRY(needs_mark(batch, PGSQL_NEEDS, 1, err));
    /* Those without a row in `job` are done, or never existed. */
    if (needs_ask(batch) > 0)
        TIDE_TRY(needs_mark(batch, PGSQL_NEEDS_DONE, 2, err));
    for (size_t i = 0; i < batch->count; i++)
        for (size_t n = 0; n < batch->jobs[i].needs_count; n++) {
            uint32_t state = 0;
            uint64_t id = batch->jobs[i].needs[n];
            if (id == 0 || !tide_map_get(&batch->known, id, &state))
                return tide_error_set(err, TIDE_NOT_FOUND, "there is no job %" PRIu64, id);
        }
    return TIDE_OK;
}

static int id_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Adds the open dependencies of one job, each once, to batch->needs.  The earlier jobs of
 * the call have their ids by now; none of them is done. */
static tide_status needs_collect(struct batch *batch, size_t index, tide_error *err)
{
    const struct tide_job_new *job = &batch->jobs[index];
    struct row *row = &batch->rows[index];
    size_t count = batch->needs_count;
    if (!TIDE_GROW_IN(batch->self->mem, batch->needs, batch->needs_capacity,
                      count + job->needs_count + job->needs_earlier_count + 1, DELTAS_MAX))
        return tide_pgl_no_memory(err);
    for (size_t i = 0; i < job->needs_count; i++) {
        uint32_t state = 0;
        bool known = tide_map_get(&batch->known, job->needs[i], &state);
        TIDE_ASSERT(known);
        if (state == 1)
            batch->needs[count++] = job->needs[i];
    }
    for (size_t i = 0; i < job->needs_earlier_count; i++)
        batch->needs[count++] = batch->rows[job->needs_earlier[i]].id;
    uint64_t *first = batch->needs + batch->needs_count;
    size_t all = count - batch->needs_count;
    if (all > 1)
        qsort(first, all, sizeof first[0], id_order);
    size_t kept = all > 0 ? 1 : 0;
    for (size_t i = 1; i < all; i++)
        if (first[i] != first[kept - 1])
            first[kept++] = first[i];
    row->needs_from = (uint32_t)batch->needs_count;
    row->open_deps = (uint32_t)kept;
    batch->needs_count += kept;
    return TIDE_OK;
}

static tide_status needs_write(struct batch *batch, tide_error *err)
{
    tide_pg *pg = batch->self->pg;
    if (batch->needs_count == 0)
        return TIDE_OK;
    tide_pg_params(pg);
    for (int column = 0; column < 2; column++) {
        tide_pg_array(pg, TIDE_PG_INT8);
        for (size_t i = 0; i < batch->count; i++) {
            const struct row *row = &batch->rows[i];
            for (uint32_t n = 0; !row->existed && n < row->open_deps; n++)
                tide_pg_u64(pg, column == 0 ? batch->needs[row->needs_from + n] : row->id);
        }
        tide_pg_array_end(pg);
    }
    return tide_pg_run(pg, PGSQL_DEPS, NULL, err);
}

/* ---- keys ------------------------------------------------------------------------- */

static int key_order(const struct tide_job_new *a, const struct tide_job_new *b)
{
    if (a->account != b->account)
        return a->account < b->account ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    size_t bytes =
        a->dedupe_key.bytes < b->dedupe_key.bytes ? a->dedupe_key.bytes : b->dedupe_key.bytes;
    int order = memcmp(a->dedupe_key.data, b->dedupe_key.data, bytes);
    if (order != 0)
        return order;
    return a->dedupe_key.bytes < b->dedupe_key.bytes ? -1
                                                     : a->dedupe_key.bytes > b->dedupe_key.bytes;
}

static int index_order(const void *a, const void *b, void *arg)
{
    const struct tide_job_new *jobs = arg;
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    int order = key_order(&jobs[x], &jobs[y]);
    return order != 0 ? order : x < y ? -1 : x > y;
}

/* Jobs with a key first, by key; the rest after them, in the order of the call.  The jobs of
 * one key follow the first of them. */
static void sort_keys(struct batch *batch)
{
    size_t at = 0;
    bool sorted = true;
    for (size_t i = 0; i < batch->count; i++) {
        batch->rows[i].leader = (uint32_t)i;
        if (batch->jobs[i].dedupe_key.bytes == 0)
            continue;
        if (at > 0 && sorted)
            sorted = key_order(&batch->jobs[batch->order[at - 1]], &batch->jobs[i]) <= 0;
        batch->order[at++] = (uint32_t)i;
    }
    batch->keyed = at;
    if (!sorted)
        qsort_r(batch->order, at, sizeof batch->order[0], index_order,
                (void *)(uintptr_t)batch->jobs);
    for (size_t i = 1; i < batch->keyed; i++) {
        uint32_t before = batch->order[i - 1];
        uint32_t one = batch->order[i];
        if (key_order(&batch->jobs[before], &batch->jobs[one]) == 0)
            batch->rows[one].leader = batch->rows[before].leader;
    }
    for (size_t i = 0; i < batch->count; i++)
        if (batch->jobs[i].dedupe_key.bytes == 0)
            batch->order[at++] = (uint32_t)i;
    for (size_t i = 0; i < batch->count; i++) {
        const struct tide_job_new *job = &batch->jobs[i];
        struct row *leader = &batch->rows[batch->rows[i].leader];
        leader->force = leader->force || job->force;
        if (job->priority > leader->priority)
            leader->priority = job->priority;
    }
}

static bool leads(const struct batch *batch, uint32_t index)
{
    return batch->rows[index].leader == index;
}

/* Looks up the existing jobs of the keys that are not resolved. */
static tide_status duplicates_look(struct batch *batch, tide_error *err)
{
    tide_pg *pg = batch->self->pg;
    PGresult *result = NULL;
    tide_pg_params(pg);
    for (int column = 0; column < 4; column++) {
        tide_pg_array(pg, column == 3 ? TIDE_PG_TEXT : TIDE_PG_INT4);
        for (size_t i = 0; i < batch->keyed; i++) {
            uint32_t index = batch->order[i];
            const struct tide_job_new *job = &batch->jobs[index];
            if (!leads(batch, index) || batch->rows[index].resolved)
                continue;
            if (column == 3)
                tide_pg_text(pg, job->dedupe_key);
            else
                tide_pg_i32(pg, (int32_t)(column == 0   ? index
                                          : column == 1 ? job->account
                                                        : job->kind));
        }
        tide_pg_array_end(pg);
    }
    TIDE_TRY(tide_pg_run(pg, PGSQL_DUPLICATES, &result, err));
    for (int i = 0; i < PQntuples(result); i++) {
        uint64_t index = tide_pg_get_u64(result, i, 0);
        TIDE_ASSERT(index < batch->count);
        struct row *row = &batch->rows[index];
        row->resolved = true;
        row->existed = true;
        row->id = tide_pg_get_u64(result, i, 1);
        row->waits = tide_pg_get_u64(result, i, 2) == TIDE_ROW_PENDING;
        row->priority_was = (uint8_t)tide_pg_get_u64(result, i, 3);
        row->force_was = tide_pg_get_bool(result, i, 4);
        row->open_deps = (uint32_t)tide_pg_get_u64(result, i, 5);
        row->lane_was = (uint8_t)tide_pg_get_u64(result, i, 6);
        row->free = tide_pg_get_u64(result, i, 7) == 0;
    }
    return TIDE_OK;
}

/* The existing job gets the highest priority, if it waits, and the force of all. */
static bool changes_existing(const struct row *row)
{
    return row->existed &&
           ((row->waits && row->priority > row->priority_was) || (row->force && !row->force_was));
}

static tide_status duplicates_raise(struct batch *batch, tide_error *err)
{
    tide_pg *pg = batch->self->pg;
    size_t changed = 0;
    tide_pg_params(pg);
    for (int column = 0; column < 3; column++) {
        tide_pg_array(pg, column == 0 ? TIDE_PG_INT8 : column == 1 ? TIDE_PG_INT2 : TIDE_PG_BOOL);
        for (size_t i = 0; i < batch->keyed; i++) {
            const struct row *row = &batch->rows[batch->order[i]];
            if (!leads(batch, batch->order[i]) || !changes_existing(row))
                continue;
            bool raise = row->waits && row->priority > row->priority_was;
            if (column == 0)
                tide_pg_u64(pg, row->id);
            else if (column == 1)
                tide_pg_i16(pg, raise ? row->priority : row->priority_was);
            else
                tide_pg_bool(pg, row->force || row->force_was);
            if (column == 0 && raise && row->free)
                tide_pgl_head_back(batch->self, row->lane_was, row->priority, row->id);
            changed++;
        }
        tide_pg_array_end(pg);
    }
    return changed == 0 ? TIDE_OK : tide_pg_run(pg, PGSQL_RAISE, NULL, err);
}

/* ---- rows ------------------------------------------------------------------------- */

enum { JOB_NEW_COLUMNS_COUNT = 18 };

static void put_row(struct batch *batch, uint32_t index)
{
    tide_pg *pg = batch->self->pg;
    const struct tide_job_new *job = &batch->jobs[index];
    const struct row *row = &batch->rows[index];
    tide_pg_u64_or_null(pg, row->id);
    tide_pg_i32(pg, (int32_t)row->open_deps);
    tide_pg_i32(pg, (int32_t)job->account);
    tide_pg_i32(pg, (int32_t)job->kind);
    tide_pg_i16(pg, (int16_t)row->scope);
    tide_pg_i16(pg, row->priority);
    tide_pg_i16(pg, job->lane);
    tide_pg_i16(pg, job->level);
    tide_pg_i32(pg, job->attempts);
    tide_pg_i32(pg, job->attempts_max);
    tide_pg_bool(pg, job->preemptible);
    tide_pg_bool(pg, row->force);
    tide_pg_u64_or_null(pg, job->cycle);
    tide_pg_u64_or_null(pg, job->not_before_unix_ms);
    tide_pg_u64_or_null(pg, job->size_bytes);
    tide_pg_u64(pg, batch->now_unix_ms);
    tide_pg_text_or_null(pg, job->dedupe_key);
    tide_pg_text(pg, job->payload);
}

static bool wanted(const struct batch *batch, uint32_t index)
{
    return leads(batch, index) && !batch->rows[index].resolved;
}

/* How many entries of the order from `from` on go in one statement. */
static size_t slice_end(const struct batch *batch, size_t from, size_t to)
{
    size_t bytes = 0;
    size_t at = from;
    while (at < to && at - from < ROWS_MAX && bytes < BYTES_MAX)
        bytes += 256 + batch->jobs[batch->order[at++]].payload.bytes;
    return at;
}

static tide_status insert_slice(struct batch *batch, size_t from, size_t to, enum tide_pg_sql text,
                                tide_error *err)
{
    struct tide_postgres *self = batch->self;
    PGresult *result = NULL;
    tide_pg_params(self->pg);
    tide_pg_array(self->pg, self->job_new);
    for (size_t i = from; i < to; i++) {
        if (!wanted(batch, batch->order[i]))
            continue;
        tide_pg_record(self->pg);
        put_row(batch, batch->order[i]);
        tide_pg_record_end(self->pg);
    }
    tide_pg_array_end(self->pg);
    TIDE_TRY(tide_pg_run(self->pg, text, &result, err));
    /* Rows come back in the order they were sent; a missing one was refused. */
    int back = 0;
    for (size_t i = from; i < to && back < PQntuples(result); i++) {
        struct row *row = &batch->rows[batch->order[i]];
        uint64_t id = tide_pg_get_u64(result, back, 0);
        if (!wanted(batch, batch->order[i]) || (row->id != 0 && row->id != id))
            continue;
        row->id = id;
        row->resolved = true;
        back++;
    }
    if (back != PQntuples(result))
        return tide_error_set(err, TIDE_BUG, "%s: rows came back in another order",
                              tide_pg_name(self->pg));
    return TIDE_OK;
}

/* The server ends the transaction at the first key that exists: TIDE_EXISTS. */
static tide_status copy_slice(struct batch *batch, size_t from, size_t to, tide_error *err)
{
    tide_pg_copy(batch->self->pg);
    for (size_t i = from; i < to; i++) {
        if (!wanted(batch, batch->order[i]))
            continue;
        tide_pg_copy_row(batch->self->pg, JOB_NEW_COLUMNS_COUNT);
        put_row(batch, batch->order[i]);
    }
    TIDE_TRY(tide_pg_copy_run(batch->self->pg, tide_pg_copy_jobs, err));
    for (size_t i = from; i < to; i++) {
        if (wanted(batch, batch->order[i]))
            batch->rows[batch->order[i]].resolved = true;
    }
    return TIDE_OK;
}

/* Many jobs whose keys were looked up: costs half of an INSERT with ON CONFLICT.  Only a key
 * that was enqueued since the lookup is refused; then all of it is undone, and left to
 * insert_keyed(). */
static tide_status copy_keyed(struct batch *batch, tide_error *err)
{
    tide_tx *tx = &batch->self->tx;
    TIDE_TRY(tide_tx_savepoint(tx, err));
    tide_status rc = TIDE_OK;
    for (size_t from = 0; rc == TIDE_OK && from < batch->keyed;) {
        size_t to = slice_end(batch, from, batch->keyed);
        rc = copy_slice(batch, from, to, err);
        from = to;
    }
    if (rc == TIDE_OK)
        return tide_tx_savepoint_end(tx, true, err);
    if (rc != TIDE_EXISTS)
        return rc;
    TIDE_SEEN("ledger: a key was queued while many were copied");
    for (size_t i = 0; i < batch->keyed; i++) {
        struct row *row = &batch->rows[batch->order[i]];
        row->resolved = row->existed;
    }
    return tide_tx_savepoint_end(tx, false, err);
}

static tide_status insert_keyed(struct batch *batch, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t from = 0; rc == TIDE_OK && from < batch->keyed;) {
        size_t to = slice_end(batch, from, batch->keyed);
        rc = insert_slice(batch, from, to, PGSQL_INSERT_KEYED, err);
        from = to;
    }
    return rc;
}

static tide_status insert_plain(struct batch *batch, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t from = batch->keyed; rc == TIDE_OK && from < batch->count;) {
        size_t to = slice_end(batch, from, batch->count);
        rc = to - from < COPY_MIN ? insert_slice(batch, from, to, PGSQL_INSERT, err)
                                  : copy_slice(batch, from, to, err);
        from = to;
    }
    return rc;
}

static size_t unresolved(const struct batch *batch)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->keyed; i++)
        count += wanted(batch, batch->order[i]);
    return count;
}

/* Jobs with a key: inserts them, looks up the refused ones, and inserts those again whose
 * existing job has ended by then. */
static tide_status resolve_keyed(struct batch *batch, tide_error *err)
{
    TIDE_TRY(unresolved(batch) < COPY_MIN ? TIDE_OK : copy_keyed(batch, err));
    for (int round = 0; round < ROUNDS_MAX; round++) {
        if (unresolved(batch) > 0)
            TIDE_TRY(insert_keyed(batch, err));
        if (unresolved(batch) == 0)
            return TIDE_OK;
        /* The dependencies of jobs that need one of these were counted with another id. */
        if (batch->deps)
            break;
        TIDE_TRY(duplicates_look(batch, err));
        if (unresolved(batch) == 0)
            return TIDE_OK;
        TIDE_SEEN("ledger: a duplicate ended while it was looked up");
    }
    return tide_error_set(err, TIDE_BUSY,
                          "%s: other processes enqueue and end the same jobs; retry",
                          tide_pg_name(batch->self->pg));
}

static tide_status ids_take(struct batch *batch, tide_error *err)
{
    tide_pg *pg = batch->self->pg;
    PGresult *result = NULL;
    uint32_t count = 0;
    for (size_t i = 0; i < batch->count; i++)
        count += wanted(batch, (uint32_t)i);
    /* A single job gets its id with its row. */
    if (count == 0 || (count == 1 && batch->count == 1))
        return TIDE_OK;
    tide_pg_params(pg);
    tide_pg_i32(pg, (int32_t)count);
    TIDE_TRY(tide_pg_run(pg, PGSQL_IDS, &result, err));
    int at = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (wanted(batch, (uint32_t)i))
            batch->rows[i].id = tide_pg_get_u64(result, at++, 0);
    return TIDE_OK;
}

/* The other jobs of a key become duplicates of the first one, in the order of the call. */
static void follow(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct row *row = &batch->rows[i];
        struct row *leader = &batch->rows[row->leader];
        const struct tide_job_new *job = &batch->jobs[i];
        bool first = row == leader;
        /* priority_was follows the priorities merged so far. */
        bool waits = leader->existed ? leader->waits : true;
        if (first && !leader->existed) {
            row->priority_was = job->priority;
            continue;
        }
        row->id = leader->id;
        row->open_deps = leader->open_deps;
        row->existed = true;
        row->raised = waits && job->priority > leader->priority_was;
        if (row->raised)
            leader->priority_was = job->priority;
    }
}

static tide_status write_rows(struct batch *batch, tide_error *err)
{
    sort_keys(batch);
    /* With dependencies the ids must be known before the dependencies are counted; many jobs
     * are written by COPY, and their keys must not exist. */
    if (batch->keyed >= (batch->deps ? 1 : COPY_MIN))
        TIDE_TRY(duplicates_look(batch, err));
    TIDE_TRY(ids_take(batch, err));
    for (size_t i = 0; batch->deps && i < batch->count; i++) {
        struct row *row = &batch->rows[i];
        if (!leads(batch, (uint32_t)i))
            row->id = batch->rows[row->leader].id;
        else if (!row->existed)
            TIDE_TRY(needs_collect(batch, i, err));
    }
    if (batch->keyed > 0)
        TIDE_TRY(resolve_keyed(batch, err));
    TIDE_TRY(insert_plain(batch, err));
    if (batch->keyed > 0)
        TIDE_TRY(duplicates_raise(batch, err));
    follow(batch);
    return needs_write(batch, err);
}

/* ---- afterwards ------------------------------------------------------------------- */

void tide_pgl_head_back(struct tide_postgres *self, unsigned lane, unsigned priority, uint64_t id)
{
    TIDE_ASSERT(lane < TIDE_LANES);
    TIDE_ASSERT(priority <= TIDE_PRIORITY_MAX);
    uint64_t *reached = &self->heads[lane].reached[priority];
    if (*reached >= id)
        *reached = id - 1;
}

tide_status tide_pgl_delta(struct tide_postgres *self, uint64_t cycle, int total, int outstanding,
                           int failed, tide_error *err)
{
    TIDE_ASSERT(cycle != 0);
    if (!TIDE_GROW_IN(self->mem, self->deltas, self->deltas_capacity, self->deltas_count + 1,
                      DELTAS_MAX))
        return tide_pgl_no_memory(err);
    self->deltas[self->deltas_count++] = (struct pg_cycle_delta){cycle, total, outstanding, failed};
    return TIDE_OK;
}

tide_status tide_pgl_deltas_write(struct tide_postgres *self, size_t from,
                                  struct tide_changes *changes, tide_error *err)
{
    PGresult *result = NULL;
    size_t grown = 0;
    TIDE_ASSERT(from <= self->deltas_count);
    size_t count = self->deltas_count - from;
    if (count == 0)
        return TIDE_OK;
    struct pg_cycle_delta *deltas = self->deltas + from;
    self->deltas_count = from;
    for (size_t i = 0; i < count; i++)
        grown += deltas[i].total > 0;
    TIDE_TRY(tide_pgl_cycles_write(self, deltas, count, changes, err));
    if (grown == 0)
        return TIDE_OK;
    /* The deltas are sorted and merged now; each cycle is checked once. */
    tide_pg_params(self->pg);
    tide_pg_array(self->pg, TIDE_PG_INT8);
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        if (deltas[i].cycle != last && deltas[i].cycle != 0)
            tide_pg_u64(self->pg, deltas[i].cycle);
        last = deltas[i].cycle;
    }
    tide_pg_array_end(self->pg);
    TIDE_TRY(tide_pg_run(self->pg, PGSQL_CYCLES_OPEN, &result, err));
    for (int i = 0; i < PQntuples(result); i++) {
        if (!tide_pg_get_bool(result, i, 1)) {
            TIDE_SEEN("ledger: a cursor passed a cycle that grew");
            return tide_error_set(err, TIDE_BUSY, "the cursor just passed cycle %" PRIu64,
                                  tide_pg_get_u64(result, i, 0));
        }
    }
    return TIDE_OK;
}

static tide_status note_effects(struct batch *batch, tide_error *err)
{
    struct tide_postgres *self = batch->self;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < batch->count; i++) {
        const struct tide_job_new *job = &batch->jobs[i];
        const struct row *row = &batch->rows[i];
        if (row->existed)
            continue;
        if (job->cycle != 0)
            rc = tide_pgl_delta(self, job->cycle, 1, 1, 0, err);
        if (job->account != 0)
            continue;
        tide_pgl_head_back(self, job->lane, row->priority, row->id);
        if (job->not_before_unix_ms != 0)
            self->due_looked_unix_ms = 0;
    }
    return rc;
}

static struct tide_enqueued enqueued_of(const struct row *row)
{
    return (struct tide_enqueued){
        .id = row->id, .open_deps = row->open_deps, .existed = row->existed, .raised = row->raised};
}

/* Existing jobs are reported with their stored values, not with those of the call. */
static tide_status report_existing(struct batch *batch, struct tide_child *children,
                                   tide_error *err)
{
    tide_pg *pg = batch->self->pg;
    PGresult *result = NULL;
    size_t existing = 0;
    tide_pg_params(pg);
    tide_pg_array(pg, TIDE_PG_INT8);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->rows[i].existed) {
            tide_pg_u64(pg, batch->rows[i].id);
            existing++;
        }
    tide_pg_array_end(pg);
    if (existing == 0)
        return TIDE_OK;
    tide_status rc = tide_pg_run(pg, PGSQL_BRIEFS, &result, err);
    tide_map_clear(&batch->known);
    for (int i = 0; rc == TIDE_OK && i < PQntuples(result); i++)
        if (!tide_map_put(&batch->known, tide_pg_get_u64(result, i, 0), (uint32_t)i))
            rc = tide_pgl_no_memory(err);
    for (size_t i = 0; rc == TIDE_OK && i < batch->count; i++) {
        uint32_t at = 0;
        if (batch->rows[i].existed && tide_map_get(&batch->known, batch->rows[i].id, &at))
            tide_pgl_brief_read(result, (int)at, &children[i].brief);
    }
    return rc;
}

static tide_status report_children(struct batch *batch, struct tide_changes *changes,
                                   tide_error *err)
{
    if (!TIDE_GROW_IN(changes->mem, changes->children, changes->children_capacity,
                      changes->children_count + batch->count, DELTAS_MAX))
        return tide_pgl_no_memory(err);
    struct tide_child *first = changes->children + changes->children_count;
    for (size_t i = 0; i < batch->count; i++) {
        struct tide_enqueued enqueued = enqueued_of(&batch->rows[i]);
        first[i] = (struct tide_child){.brief = tide_enqueued_brief(&batch->jobs[i], &enqueued),
                                       .existed = enqueued.existed};
    }
    changes->children_count += batch->count;
    return report_existing(batch, first, err);
}

static tide_status enqueue_batch(struct batch *batch, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < batch->count; i++) {
        const struct tide_job_new *job = &batch->jobs[i];
        rc = tide_job_new_check(job, i, err);
        if (rc == TIDE_OK && !(tide_pgl_text_ok(job->payload) && tide_pgl_text_ok(job->dedupe_key)))
            rc = tide_error_set(err, TIDE_INVALID, "a payload or a key that is not UTF-8 text");
        batch->deps = batch->deps || job->needs_count > 0 || job->needs_earlier_count > 0;
    }
    TIDE_TRY(rc);
    TIDE_TRY(validate_names(batch, err));
    TIDE_TRY(validate_cycles(batch, err));
    if (batch->deps)
        TIDE_TRY(validate_needs(batch, err));
    TIDE_TRY(write_rows(batch, err));
    return note_effects(batch, err);
}

tide_status tide_pgl_enqueue_rows(struct tide_postgres *self, const struct tide_job_new *jobs,
                                  size_t count, uint64_t now_unix_ms,
                                  struct tide_enqueued *enqueued_out,
                                  struct tide_changes *children_to, tide_error *err)
{
    if (count == 0)
        return TIDE_OK;
    if (count > INT32_MAX / 2)
        return tide_error_set(err, TIDE_FULL, "%zu jobs in one call", count);
    struct batch batch = {.self = self, .jobs = jobs, .count = count, .now_unix_ms = now_unix_ms};
    tide_map_init(&batch.known, self->mem);
    batch.rows = tide_mem_array(self->mem, count, sizeof batch.rows[0]);
    batch.order = tide_mem_array(self->mem, count, sizeof batch.order[0]);
    tide_status rc = batch.rows == NULL || batch.order == NULL ? tide_pgl_no_memory(err) : TIDE_OK;
    if (rc == TIDE_OK)
        rc = enqueue_batch(&batch, err);
    if (rc == TIDE_OK && children_to != NULL)
        rc = report_children(&batch, children_to, err);
    for (size_t i = 0; rc == TIDE_OK && enqueued_out != NULL && i < count; i++)
        enqueued_out[i] = enqueued_of(&batch.rows[i]);
    tide_mem_free(self->mem, batch.needs, batch.needs_capacity * sizeof batch.needs[0]);
    tide_mem_free(self->mem, batch.order, count * sizeof batch.order[0]);
    tide_mem_free(self->mem, batch.rows, count * sizeof batch.rows[0]);
    tide_map_done(&batch.known);
    return rc;
}

tide_status tide_pgl_enqueue(tide_tx *tx, const struct tide_job_new *jobs, size_t count,
                             uint64_t now_unix_ms, struct tide_enqueued *enqueued_out,
                             tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    size_t mark = self->deltas_count;
    tide_status rc = tide_pgl_ready(self, err);
    if (rc == TIDE_OK)
        rc = tide_pgl_enqueue_rows(self, jobs, count, now_unix_ms, enqueued_out, NULL, err);
    if (rc == TIDE_OK)
        rc = tide_pgl_deltas_write(self, mark, NULL, err);
    self->deltas_count = mark;
    return tide_pgl_end(self, rc);
}
