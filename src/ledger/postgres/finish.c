/* finish.c - the ends of running jobs (E1.4, E1.6, E1.8).
 *
 * Finishes that change only their own row are written first, all that end alike in one
 * statement; those with children, items or an effect follow one by one, each in a savepoint.
 * The jobs that wait for the done ones, and the counters of cycles, are updated last, once
 * for the whole call. */
#include "ledger/postgres/postgres.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOG_MAX = 16 << 20,
    ROWS_MAX = 10000, /* in one statement */
    BYTES_MAX = 32 << 20,
};

/* How a finish is written. */
enum way {
    WAY_DONE,       /* done, and nothing more to store */
    WAY_DONE_NOTED, /* done, with an error, resume data, another payload... */
    WAY_OTHER,      /* put back, failed, canceled */
    WAY_MORE,       /* with children, items or an effect */
    WAY_INVALID,
};

struct ending {
    uint64_t id;
    uint32_t index;
    uint8_t way;
    bool applied;
    uint32_t account, kind; /* of an applied one */
    uint64_t cycle;
};

struct finishing {
    struct tide_postgres *self;
    tide_tx *tx;
    const struct tide_finish *finishes;
    size_t count;
    struct ending *endings; /* by id */
    uint64_t now_unix_ms;
    struct tide_changes *changes;
    uint64_t *done; /* ids, to release the jobs that wait for them */
    size_t done_count;
};

/* The limits of every store, and that PostgreSQL can store the texts. */
static tide_status validate(const struct tide_finish *finish, tide_error *err)
{
    if (!tide_pgl_text_ok(finish->payload) ||
        (finish->resume_set && !tide_pgl_text_ok(finish->resume)))
        return tide_error_set(err, TIDE_INVALID,
                              "job %" PRIu64 ": a payload or resume data that is not UTF-8 text",
                              finish->id);
    return tide_finish_check(finish, err);
}

static enum way way_of(const struct tide_finish *finish)
{
    if (validate(finish, NULL) != TIDE_OK)
        return WAY_INVALID;
    if (finish->children_count > 0 || finish->items_count > 0 || finish->effect != NULL)
        return WAY_MORE;
    if (finish->state != TIDE_ROW_DONE)
        return WAY_OTHER;
    bool noted = finish->attempts_add != 0 || finish->status != TIDE_OK ||
                 finish->error.bytes > 0 || finish->resume_set || finish->payload.bytes > 0 ||
                 finish->bytes_done > 0;
    return noted ? WAY_DONE_NOTED : WAY_DONE;
}

/* ---- rows ------------------------------------------------------------------------- */

/* A provider's error text may hold any bytes; the server takes only UTF-8. */
static void put_error(struct tide_postgres *self, tide_text error)
{
    if (tide_pgl_text_ok(error)) {
        tide_pg_text_or_null(self->pg, error);
        return;
    }
    char clean[TIDE_ERROR_TEXT_BYTES_MAX];
    size_t bytes = error.bytes < sizeof clean ? error.bytes : sizeof clean;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)error.data[i];
        clean[i] = c >= 0x20 && c < 0x7F ? (char)c : '?';
    }
    tide_pg_text_or_null(self->pg, (tide_text){clean, bytes});
}

static void put_column(struct tide_postgres *self, const struct tide_finish *finish, uint32_t index,
                       int column)
{
    tide_pg *pg = self->pg;
    switch (column) {
    case 0:
        tide_pg_u64(pg, finish->id);
        break;
    case 1:
        tide_pg_u64(pg, finish->token);
        break;
    case 2:
        tide_pg_i32(pg, finish->attempts_add);
        break;
    case 3:
        tide_pg_i32(pg, finish->status);
        break;
    case 4:
        put_error(self, finish->error);
        break;
    case 5:
        tide_pg_u64_or_null(pg, finish->bytes_done);
        break;
    case 6:
        tide_pg_bool(pg, finish->resume_set);
        break;
    case 7:
        tide_pg_text_or_null(pg, finish->resume_set ? finish->resume : TIDE_TEXT_NONE);
        break;
    case 8:
        tide_pg_text_or_null(pg, finish->payload);
        break;
    case 9:
        tide_pg_i32(pg, (int32_t)finish->state);
        break;
    case 10:
        tide_pg_u64_or_null(pg, finish->not_before_unix_ms);
        break;
    default:
        tide_pg_i32(pg, (int32_t)index);
    }
}

static enum way row_way(const struct tide_finish *finish)
{
    return finish->state == TIDE_ROW_DONE ? WAY_DONE_NOTED : WAY_OTHER;
}

static void put_params(struct finishing *call, struct ending *const *some, size_t count,
                       enum way way)
{
    static const Oid types[] = {TIDE_PG_INT8, TIDE_PG_INT8, TIDE_PG_INT4, TIDE_PG_INT4,
                                TIDE_PG_TEXT, TIDE_PG_INT8, TIDE_PG_BOOL, TIDE_PG_TEXT,
                                TIDE_PG_TEXT, TIDE_PG_INT4, TIDE_PG_INT8, TIDE_PG_INT4};
    struct tide_postgres *self = call->self;
    int columns = way == WAY_DONE ? 2 : way == WAY_DONE_NOTED ? 9 : 12;
    tide_pg_params(self->pg);
    for (int column = 0; column < columns; column++) {
        if (column == 2)
            tide_pg_u64(self->pg, call->now_unix_ms);
        tide_pg_array(self->pg, types[column]);
        for (size_t i = 0; i < count; i++)
            put_column(self, &call->finishes[some[i]->index], some[i]->index, column);
        tide_pg_array_end(self->pg);
    }
    if (columns == 2)
        tide_pg_u64(self->pg, call->now_unix_ms);
}

/* A free job that was put back may have an id that claims have passed already. */
static void put_back(struct tide_postgres *self, const PGresult *result, int row)
{
    if (tide_pg_get_u64(result, row, 2) != 0 || tide_pg_get_u64(result, row, 4) != TIDE_ROW_PENDING)
        return;
    tide_pgl_head_back(self, (unsigned)tide_pg_get_u64(result, row, 5),
                       (unsigned)tide_pg_get_u64(result, row, 6), tide_pg_get_u64(result, row, 0));
    if (tide_pg_get_u64(result, row, 7) != 0)
        self->due_looked_unix_ms = 0;
}

/* Writes some endings of one way, in the order of their ids (LPG3). */
static tide_status write_some(struct finishing *call, struct ending *const *some, size_t count,
                              enum way way, tide_error *err)
{
    static const enum tide_pg_sql texts[] = {PGSQL_DONE, PGSQL_DONE_NOTED, PGSQL_OTHER};
    PGresult *result = NULL;
    put_params(call, some, count, way);
    tide_status rc = tide_pg_run(call->self->pg, texts[way], &result, err);
    /* Only a job that is put back while a duplicate is being enqueued. */
    if (rc == TIDE_EXISTS)
        rc = tide_error_set(err, TIDE_BUSY, "%s: a job of the same key was just enqueued; retry",
                            tide_pg_name(call->self->pg));
    if (rc != TIDE_OK)
        return rc;
    tide_map_clear(&call->self->rows);
    for (int row = 0; row < PQntuples(result); row++)
        if (!tide_map_put(&call->self->rows, tide_pg_get_u64(result, row, 0), (uint32_t)row))
            return tide_pgl_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        struct ending *ending = some[i];
        uint32_t row = 0;
        if (!tide_map_get(&call->self->rows, ending->id, &row))
            continue;
        (void)tide_map_remove(&call->self->rows, ending->id);
        ending->applied = true;
        ending->cycle = tide_pg_get_u64(result, (int)row, 1);
        ending->account = (uint32_t)tide_pg_get_u64(result, (int)row, 2);
        ending->kind = (uint32_t)tide_pg_get_u64(result, (int)row, 3);
        if (way == WAY_OTHER)
            put_back(call->self, result, (int)row);
    }
    return TIDE_OK;
}

/* Counts an applied finish: its cycle, and its id if it is done. */
static tide_status count_in(struct finishing *call, const struct ending *ending, tide_error *err)
{
    const struct tide_finish *finish = &call->finishes[ending->index];
    if (finish->state == TIDE_ROW_DONE)
        call->done[call->done_count++] = ending->id;
    if (ending->cycle == 0 || finish->state == TIDE_ROW_PENDING)
        return TIDE_OK;
    return tide_pgl_delta(call->self, ending->cycle, 0, -1, finish->state == TIDE_ROW_DONE ? 0 : 1,
                          err);
}

static tide_status write_way(struct finishing *call, enum way way, struct ending **some,
                             tide_error *err)
{
    for (size_t at = 0; at < call->count;) {
        size_t count = 0;
        size_t bytes = 0;
        for (; at < call->count && count < ROWS_MAX && bytes < BYTES_MAX; at++) {
            if (call->endings[at].way != way)
                continue;
            const struct tide_finish *finish = &call->finishes[call->endings[at].index];
            bytes += finish->payload.bytes + finish->resume.bytes;
            some[count++] = &call->endings[at];
        }
        if (count > 0)
            TIDE_TRY(write_some(call, some, count, way, err));
        for (size_t i = 0; i < count; i++) {
            if (some[i]->applied)
                TIDE_TRY(count_in(call, some[i], err));
        }
    }
    return TIDE_OK;
}

/* ---- refused ones ----------------------------------------------------------------- */

static tide_status refuse(struct tide_changes *changes, size_t index, uint64_t id,
                          tide_status status, const char *text, tide_error *err)
{
    if (!TIDE_GROW_IN(changes->mem, changes->refused, changes->refused_capacity,
                      changes->refused_count + 1, LOG_MAX))
        return tide_pgl_no_memory(err);
    struct tide_refused *one = &changes->refused[changes->refused_count++];
    *one = (struct tide_refused){.index = index, .id = id, .status = status};
    (void)snprintf(one->text, sizeof one->text, "%.159s", text);
    return TIDE_OK;
}

/* Whether a cancel was requested for a job that is still ours. */
static tide_status cancel_look(struct finishing *call, const struct tide_finish *finish,
                               bool *wanted_out, tide_error *err)
{
    PGresult *result = NULL;
    tide_pg_params(call->self->pg);
    tide_pg_u64(call->self->pg, finish->id);
    tide_pg_u64(call->self->pg, finish->token);
    tide_status rc = tide_pg_query(call->self->pg,
                                   "SELECT 1 FROM tidemark.job WHERE id = $1 AND token = $2"
                                   " AND state = 1 AND cancel_wanted",
                                   &result, err);
    *wanted_out = rc == TIDE_OK && PQntuples(result) > 0;
    return rc;
}

/* A finish that did not apply: its claim is lost, or a cancel was requested and the job
 * would run again. */
static tide_status refuse_stale(struct finishing *call, const struct ending *ending,
                                tide_error *err)
{
    char text[64];
    bool wanted = false;
    if (tide_finish_goes_on(&call->finishes[ending->index]))
        TIDE_TRY(cancel_look(call, &call->finishes[ending->index], &wanted, err));
    if (wanted) {
        (void)snprintf(text, sizeof text, "job %" PRIu64 " is to be canceled", ending->id);
        return refuse(call->changes, ending->index, ending->id, TIDE_CANCELED, text, err);
    }
    TIDE_SEEN("ledger: a stale finish");
    (void)snprintf(text, sizeof text, "job %" PRIu64 ": its claim was lost", ending->id);
    return refuse(call->changes, ending->index, ending->id, TIDE_STALE, text, err);
}

/* A finish that breaks its contract; if its claim is lost it is reported as stale. */
static tide_status refuse_invalid(struct finishing *call, const struct ending *ending,
                                  tide_error *err)
{
    const struct tide_finish *finish = &call->finishes[ending->index];
    PGresult *result = NULL;
    tide_pg_params(call->self->pg);
    tide_pg_u64(call->self->pg, finish->id);
    tide_pg_u64(call->self->pg, finish->token);
    TIDE_TRY(tide_pg_query(call->self->pg,
                           "SELECT 1 FROM tidemark.job WHERE id = $1 AND token = $2 AND state = 1",
                           &result, err));
    if (PQntuples(result) == 0)
        return refuse_stale(call, ending, err);
    tide_error own = {.text = ""};
    tide_status status = validate(finish, &own);
    return refuse(call->changes, ending->index, ending->id, status, own.text, err);
}

static int refused_order(const void *a, const void *b)
{
    const struct tide_refused *x = a;
    const struct tide_refused *y = b;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* ---- finishes that bring more ----------------------------------------------------- */

static void put_parts(struct finishing *call, const struct tide_finish *finish,
                      size_t children_from)
{
    tide_pg *pg = call->self->pg;
    const struct tide_child *children = call->changes->children + children_from;
    tide_pg_params(pg);
    tide_pg_u64(pg, finish->id);
    tide_pg_array(pg, TIDE_PG_INT8);
    for (size_t i = 0; i < finish->children_count; i++)
        if (finish->children[i].part)
            tide_pg_u64(pg, children[i].brief.id);
    tide_pg_array_end(pg);
}

/* Parts that are not new, or have dependencies of their own, may need a job that would wait
 * for them: then both would wait forever.  Only such parts can close a circle, so processes
 * add them one after the other (advisory lock), and each sees what the last one added. */
static tide_status parts_can_come(struct finishing *call, const struct tide_finish *finish,
                                  size_t children_from, tide_error *err)
{
    tide_pg *pg = call->self->pg;
    PGresult *result = NULL;
    tide_pg_params(pg);
    TIDE_TRY(
        tide_pg_query(pg, "SELECT pg_catalog.pg_advisory_xact_lock(1414087749, 2)", &result, err));
    put_parts(call, finish, children_from);
    TIDE_TRY(tide_pg_query(pg,
                           "WITH RECURSIVE needed (part, id) AS (SELECT p.id, d.needs"
                           "  FROM unnest($2) AS p (id) JOIN tidemark.dep d ON d.job = p.id"
                           " UNION SELECT n.part, d.needs FROM needed n"
                           "  JOIN tidemark.dep d ON d.job = n.id)"
                           " SELECT n.id, n.part FROM needed n"
                           " JOIN tidemark.dep w ON w.needs = $1 AND w.job = n.id LIMIT 1",
                           &result, err));
    if (PQntuples(result) == 0)
        return TIDE_OK;
    return tide_part_refused(tide_pg_get_u64(result, 0, 0), tide_pg_get_u64(result, 0, 1), err);
}

static tide_status wait_for_parts(struct finishing *call, const struct tide_finish *finish,
                                  size_t children_from, tide_error *err)
{
    struct tide_postgres *self = call->self;
    size_t parts = 0;
    size_t old = 0;
    const struct tide_child *children = call->changes->children + children_from;
    for (size_t i = 0; i < finish->children_count; i++) {
        parts += finish->children[i].part;
        old += finish->children[i].part && (children[i].existed || children[i].brief.open_deps > 0);
    }
    if (parts == 0)
        return TIDE_OK;
    if (finish->state != TIDE_ROW_DONE) {
        /* The parent runs again, so its row was only changed: the lock of a transaction that
         * makes a job wait for it blocks only a deletion (LPG6), so lock the row here. */
        tide_pg_params(self->pg);
        tide_pg_u64(self->pg, finish->id);
        TIDE_TRY(tide_pg_run(self->pg, PGSQL_PARTS_WAIT, NULL, err));
    }
    if (old > 0)
        TIDE_TRY(parts_can_come(call, finish, children_from, err));
    put_parts(call, finish, children_from);
    return tide_pg_run(self->pg, PGSQL_PARTS, NULL, err);
}

/* *stale_out: its claim is lost, nothing was done. */
static tide_status bring_more(struct finishing *call, struct ending *ending, bool *stale_out,
                              tide_error *err)
{
    struct tide_postgres *self = call->self;
    const struct tide_finish *finish = &call->finishes[ending->index];
    size_t children_from = call->changes->children_count;
    bool wanted = false;
    tide_status rc = TIDE_OK;
    /* PGSQL_OTHER itself checks for a cancel where the row goes back to pending; of the other
     * endings, those with parts run again. */
    if (finish->state != TIDE_ROW_PENDING && tide_finish_goes_on(finish))
        rc = cancel_look(call, finish, &wanted, err);
    /* The row first: a child may have the key its parent just gave up. */
    if (rc == TIDE_OK && !wanted)
        rc = write_some(call, &ending, 1, row_way(finish), err);
    if (rc == TIDE_OK && !ending->applied) {
        *stale_out = true;
        return tide_error_set(err, TIDE_STALE, "job %" PRIu64 ": its claim was lost", finish->id);
    }
    if (rc == TIDE_OK)
        rc = count_in(call, ending, err);
    if (rc == TIDE_OK && finish->children_count > 0)
        rc = tide_pgl_enqueue_rows(self, finish->children, finish->children_count,
                                   call->now_unix_ms, NULL, call->changes, err);
    if (rc == TIDE_OK && finish->children_count > 0)
        rc = wait_for_parts(call, finish, children_from, err);
    if (rc == TIDE_OK && finish->items_count > 0)
        rc = tide_pgl_bad_add(self, ending->account, ending->kind, ending->cycle, finish->items,
                              finish->items_count, call->now_unix_ms, err);
    rc = tide_pgl_end(self, rc);
    /* The status of an effect is its own, even TIDE_IO: it says nothing about the store. */
    if (rc == TIDE_OK && finish->effect != NULL)
        rc = finish->effect(finish->effect_arg, call->tx, err);
    return rc;
}

/* A finish with children, items or an effect: all of it or nothing. */
static tide_status finish_with_more(struct finishing *call, struct ending *ending, tide_error *err)
{
    struct tide_postgres *self = call->self;
    size_t deltas = self->deltas_count;
    size_t done = call->done_count;
    size_t children = call->changes->children_count;
    bool stale = false;
    tide_error own = {.text = ""};
    TIDE_TRY(tide_tx_savepoint(call->tx, err));
    tide_status status = bring_more(call, ending, &stale, &own);
    bool undone = status == TIDE_OK;
    if (undone) {
        status = tide_tx_savepoint_end(call->tx, true, &own);
        if (status == TIDE_OK)
            return TIDE_OK;
    }
    ending->applied = false;
    self->deltas_count = deltas;
    call->done_count = done;
    call->changes->children_count = children;
    tide_status rc = undone ? self->tx_failed : tide_tx_savepoint_end(call->tx, false, err);
    if (rc == TIDE_OK)
        rc = self->tx_failed;
    if (rc != TIDE_OK) {
        if (err != NULL)
            *err = own;
        return rc;
    }
    if (stale)
        return refuse_stale(call, ending, err);
    /* TIDE_STALE means a lost claim only: an effect that returns it found another value than
     * it expected, and the row is still ours. */
    return refuse(call->changes, ending->index, ending->id,
                  status == TIDE_STALE ? TIDE_SUPERSEDED : status, own.text, err);
}

/* ---- the call --------------------------------------------------------------------- */

static int ending_order(const void *a, const void *b)
{
    const struct ending *x = a;
    const struct ending *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int call_order(const void *a, const void *b)
{
    const struct ending *x = a;
    const struct ending *y = b;
    return x->index < y->index ? -1 : x->index > y->index;
}

static tide_status finish_all(struct finishing *call, struct ending **some, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (int way = WAY_DONE; rc == TIDE_OK && way <= WAY_OTHER; way++)
        rc = write_way(call, (enum way)way, some, err);
    /* Effects happen in the order of the call. */
    qsort(call->endings, call->count, sizeof call->endings[0], call_order);
    for (size_t i = 0; rc == TIDE_OK && i < call->count; i++) {
        struct ending *ending = &call->endings[i];
        if (ending->way == WAY_MORE)
            rc = finish_with_more(call, ending, err);
        else if (ending->way == WAY_INVALID)
            rc = refuse_invalid(call, ending, err);
        else if (!ending->applied)
            rc = refuse_stale(call, ending, err);
    }
    return rc;
}

static tide_status finish_call(struct finishing *call, tide_error *err)
{
    struct tide_postgres *self = call->self;
    tide_mem *mem = self->mem;
    size_t refused_from = call->changes->refused_count;
    size_t mark = self->deltas_count;
    size_t count = call->count;
    call->endings = tide_mem_array(mem, count, sizeof call->endings[0]);
    call->done = tide_mem_array(mem, count, sizeof call->done[0]);
    struct ending **some = tide_mem_array(mem, count, sizeof some[0]);
    tide_status rc = call->endings == NULL || call->done == NULL || some == NULL
                         ? tide_pgl_no_memory(err)
                         : TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        call->endings[i] = (struct ending){.id = call->finishes[i].id,
                                           .index = (uint32_t)i,
                                           .way = (uint8_t)way_of(&call->finishes[i])};
    if (rc == TIDE_OK) {
        qsort(call->endings, count, sizeof call->endings[0], ending_order);
        rc = finish_all(call, some, err);
    }
    if (rc == TIDE_OK && call->done_count > 0)
        rc = tide_pgl_release(self, call->done, call->done_count, call->changes, err);
    if (rc == TIDE_OK)
        rc = tide_pgl_deltas_write(self, mark, call->changes, err);
    self->deltas_count = mark;
    if (rc == TIDE_OK && call->changes->refused_count > refused_from)
        qsort(call->changes->refused + refused_from, call->changes->refused_count - refused_from,
              sizeof call->changes->refused[0], refused_order);
    tide_mem_free(mem, some, count * sizeof some[0]);
    return rc;
}

tide_status tide_pgl_finish(tide_tx *tx, const struct tide_finish *finishes, size_t count,
                            uint64_t now_unix_ms, bool *applied_out, struct tide_changes *changes,
                            tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    TIDE_ASSERT(!self->in_finish);
    tide_status rc = tide_pgl_ready(self, err);
    if (rc != TIDE_OK || count == 0)
        return rc;
    if (count > LOG_MAX)
        return tide_error_set(err, TIDE_FULL, "%zu finishes in one call", count);
    struct finishing call = {.self = self,
                             .tx = tx,
                             .finishes = finishes,
                             .count = count,
                             .now_unix_ms = now_unix_ms,
                             .changes = changes};
    self->in_finish = true;
    rc = finish_call(&call, err);
    self->in_finish = false;
    for (size_t i = 0; call.endings != NULL && i < count; i++)
        applied_out[call.endings[i].index] = rc == TIDE_OK && call.endings[i].applied;
    tide_mem_free(self->mem, call.done, count * sizeof call.done[0]);
    tide_mem_free(self->mem, call.endings, count * sizeof call.endings[0]);
    return tide_pgl_end(self, rc);
}
