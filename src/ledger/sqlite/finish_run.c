/* finish_run.c - ends consecutive jobs that are done together.
 *
 * Jobs are claimed in runs of consecutive ids (claim.c), and short ones end in nearly that
 * order.  So most ends of a call are runs again: sorted by id, a run costs three statements
 * instead of two for each of its jobs. */
#include "ledger/sqlite/sqlite.h"
#include "base/limits.h"

#include <stdlib.h>

enum {
    RUN_MIN = 4, /* fewer are not worth the statements */
    ENDS_MAX = 1 << 20,
};

/* Done, and nothing to store but the row's own end. */
static bool is_plain(const struct tide_finish *finish)
{
    return finish->state == TIDE_ROW_DONE && finish->status == TIDE_OK &&
           finish->attempts_add == 0 && finish->payload.bytes == 0 && finish->error.bytes == 0 &&
           finish->bytes_done == 0 && !finish->resume_set && finish->children_count == 0 &&
           finish->items_count == 0 && finish->effect == NULL;
}

static int end_order(const void *a, const void *b)
{
    const struct plain_end *x = a;
    const struct plain_end *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Collects the plain ends whose claims are in the cache, in the order of their ids, each id
 * once. */
static size_t collect(struct tide_sqlite *self, const struct tide_finish *finishes, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tide_finish *finish = &finishes[i];
        const struct claim_known *known = &self->known[finish->id % CLAIMS_KNOWN];
        if (known->id == finish->id && known->token == finish->token && !known->facts.noted &&
            is_plain(finish))
            self->plain[found++] = (struct plain_end){finish->id, finish->token, i, known->facts};
    }
    qsort(self->plain, found, sizeof self->plain[0], end_order);
    size_t kept = 0;
    for (size_t i = 0; i < found; i++)
        if (kept == 0 || self->plain[kept - 1].id != self->plain[i].id)
            self->plain[kept++] = self->plain[i];
    return kept;
}

/* How many ends from `first` on have consecutive ids and tokens and were claimed together. */
static size_t run_length(const struct plain_end *first, size_t count)
{
    size_t length = 1;
    while (length < count && first[length].id == first->id + length &&
           first[length].token == first->token + length &&
           first[length].claimed.started == first->claimed.started &&
           first[length].claimed.run == first->claimed.run)
        length++;
    return length;
}

static void bind_ids(sqlite3_stmt *stmt, const struct plain_end *first, size_t length)
{
    tide_bind_u64(stmt, 1, first->id);
    tide_bind_u64(stmt, 2, first->id + length - 1);
}

/* The fence (E1.8): a run is ended as one only if all its claims are held. */
static tide_status run_held(struct tide_sqlite *self, const struct plain_end *first, size_t length,
                            bool *held_out, tide_error *err)
{
    tide_auto_stmt *stmt = sql_of(self, SQL_CLAIM_RUN_COUNT);
    bool row = false;
    bind_ids(stmt, first, length);
    (void)sqlite3_bind_int64(stmt, 3, (int64_t)first->token - (int64_t)first->id);
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    *held_out = rc == TIDE_OK && row && tide_column_u64(stmt, 0) == length;
    return rc;
}

static tide_status run_write(struct tide_sqlite *self, const struct plain_end *first, size_t length,
                             uint64_t now_unix_ms, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_CLAIM_RUN_DELETE);
    bind_ids(stmt, first, length);
    TIDE_TRY(tide_db_run(&self->db, stmt, err));
    stmt = sql_of(self, SQL_FINISH_DONE_RUN);
    bind_ids(stmt, first, length);
    tide_bind_u64(stmt, 3, first->claimed.started);
    tide_bind_u64(stmt, 4, now_unix_ms);
    tide_bind_u64(stmt, 5, first->claimed.run);
    TIDE_TRY(tide_db_run(&self->db, stmt, err));
    for (size_t i = 0; i < length; i++) {
        TIDE_TRY(tide_sql_tally_release(self, first[i].id, err));
        if (first[i].claimed.cycle != 0)
            TIDE_TRY(tide_sql_tally_cycle(self, first[i].claimed.cycle, 0, -1, 0, err));
    }
    return TIDE_OK;
}

tide_status tide_sql_finish_runs(struct tide_sqlite *self, const struct tide_finish *finishes,
                                 size_t count, uint64_t now_unix_ms, bool *applied_out,
                                 tide_error *err)
{
    for (size_t i = 0; i < count; i++)
        applied_out[i] = false;
    if (count < RUN_MIN)
        return TIDE_OK;
    if (!TIDE_GROW_IN(self->mem, self->plain, self->plain_capacity, count, ENDS_MAX))
        return tide_sql_no_memory(err);
    size_t ends = collect(self, finishes, count);
    for (size_t at = 0; at < ends;) {
        const struct plain_end *first = &self->plain[at];
        size_t length = run_length(first, ends - at);
        bool held = false;
        at += length;
        if (length >= RUN_MIN)
            TIDE_TRY(run_held(self, first, length, &held, err));
        if (held)
            TIDE_TRY(run_write(self, first, length, now_unix_ms, err));
        for (size_t i = 0; held && i < length; i++)
            applied_out[first[i].index] = true;
    }
    return TIDE_OK;
}
