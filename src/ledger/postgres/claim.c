/* claim.c - gives pending jobs to an owner (E1.3), heartbeats, and refills of the window. */
#include "ledger/postgres/postgres.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_AGAIN_MS = 2000, /* scan from the beginning of the free jobs at least this often */
    LOOK_CHEAP_US = 5000, /* a scan this short is not limited */
    LOOK_SHARE = 20,      /* a longer one takes at most 1/20 of the time */
    LOOK_SOON_MS = 5,     /* call again after this: jobs were found without that scan */
    DUE_AGAIN_MS = 50,    /* check for delayed free jobs that are due this often */
    PROMOTE_SLICE = 1000, /* of them in one statement */
    PROMOTE_SLICES_MAX = 100,
    PARTS_MAX = 2 * (TIDE_PRIORITY_MAX + 1) + 1, /* of one lane's index */
};

/* ---- bodies ----------------------------------------------------------------------- */

/* Where the two claim statements have the columns of a body. */
struct body_columns {
    int id, attempts, force, payload, resume, dedupe;
};

static struct tide_job_body *body_new(tide_mem *mem, const PGresult *result, int row,
                                      const struct body_columns *columns, uint64_t token)
{
    struct tide_job_body *body =
        tide_job_body_new(mem, tide_pg_get_text(result, row, columns->payload),
                          tide_pg_get_text(result, row, columns->resume),
                          tide_pg_get_text(result, row, columns->dedupe));
    if (body == NULL)
        return NULL;
    body->id = tide_pg_get_u64(result, row, columns->id);
    body->token = token;
    body->attempts = (uint16_t)tide_pg_get_u64(result, row, columns->attempts);
    body->force = tide_pg_get_bool(result, row, columns->force);
    return body;
}

/* ---- by id ------------------------------------------------------------------------ */

struct place {
    uint64_t id;
    size_t index;
};

static int place_order(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

tide_status tide_pgl_claim(tide_tx *tx, const uint64_t *ids, size_t count, uint64_t owner,
                           uint64_t first_token, uint64_t now_unix_ms, tide_mem *mem,
                           struct tide_job_body **bodies_out, tide_error *err)
{
    static const struct body_columns columns = {0, 2, 3, 4, 5, 6};
    struct tide_postgres *self = postgres_of_tx(tx);
    struct place places[TIDE_CLAIM_MAX];
    struct tide_job_body *bodies[TIDE_CLAIM_MAX] = {NULL};
    PGresult *result = NULL;
    TIDE_ASSERT(count <= TIDE_CLAIM_MAX);
    tide_status rc = tide_pgl_ready(self, err);
    if (rc != TIDE_OK || count == 0)
        return rc;
    for (size_t i = 0; i < count; i++)
        places[i] = (struct place){ids[i], i};
    qsort(places, count, sizeof places[0], place_order); /* LPG3 */
    tide_pg_params(self->pg);
    for (int column = 0; column < 2; column++) {
        tide_pg_array(self->pg, TIDE_PG_INT8);
        for (size_t i = 0; i < count; i++)
            tide_pg_u64(self->pg, column == 0 ? places[i].id : first_token + places[i].index);
        tide_pg_array_end(self->pg);
    }
    tide_pg_u64(self->pg, owner);
    tide_pg_u64(self->pg, self->run);
    tide_pg_u64(self->pg, now_unix_ms);
    rc = tide_pg_run(self->pg, PGSQL_CLAIM, &result, err);
    for (int row = 0; rc == TIDE_OK && row < PQntuples(result); row++) {
        uint64_t index = tide_pg_get_u64(result, row, 1) - first_token;
        TIDE_ASSERT(index < count);
        bodies[index] = body_new(mem, result, row, &columns, first_token + index);
        if (bodies[index] == NULL)
            rc = tide_pgl_no_memory(err);
    }
    if (rc == TIDE_OK) {
        memcpy(bodies_out, bodies, count * sizeof bodies[0]);
        return TIDE_OK;
    }
    for (size_t i = 0; i < count; i++)
        tide_job_body_free(mem, bodies[i]);
    return tide_pgl_end(self, rc);
}

/* ---- free jobs -------------------------------------------------------------------- */

void tide_pgl_brief_read(const PGresult *result, int row, struct tide_brief *brief)
{
    *brief = (struct tide_brief){
        .id = tide_pg_get_u64(result, row, 0),
        .cycle = tide_pg_get_u64(result, row, 1),
        .size_bytes = tide_pg_get_u64(result, row, 2),
        .not_before_ms = tide_pg_get_u64(result, row, 3),
        .account = (uint32_t)tide_pg_get_u64(result, row, 4),
        .kind = (uint32_t)tide_pg_get_u64(result, row, 5),
        .open_deps = (uint32_t)tide_pg_get_u64(result, row, 6),
        .attempts = (uint16_t)tide_pg_get_u64(result, row, 7),
        .attempts_max = (uint16_t)tide_pg_get_u64(result, row, 8),
        .priority = (uint8_t)tide_pg_get_u64(result, row, 9),
        .lane = (uint8_t)tide_pg_get_u64(result, row, 10),
        .level = (uint8_t)tide_pg_get_u64(result, row, 11),
        .preemptible = tide_pg_get_bool(result, row, 12),
    };
}

static void put_kinds(tide_pg *pg, const uint32_t *kinds, size_t count)
{
    tide_pg_array(pg, TIDE_PG_INT4);
    for (size_t i = 0; i < count; i++)
        tide_pg_i32(pg, (int32_t)kinds[i]);
    tide_pg_array_end(pg);
}

/* Marks free jobs that are due, so that claims find them in order with the others, and reads
 * when the next one is due.  It does so for all kinds: the result is the same in every process. */
static tide_status due_look(struct tide_postgres *self, uint64_t now_unix_ms, bool *promoted_out,
                            tide_error *err)
{
    tide_status rc = TIDE_OK;
    *promoted_out = false;
    for (int slice = 0; slice < PROMOTE_SLICES_MAX; slice++) {
        PGresult *result = NULL;
        tide_pg_params(self->pg);
        rc = tide_pg_run(self->pg, PGSQL_DUE, &result, err);
        if (rc != TIDE_OK)
            return rc;
        self->due_looked_unix_ms = now_unix_ms;
        self->due_unix_ms = PQntuples(result) == 0 ? UINT64_MAX : tide_pg_get_u64(result, 0, 0);
        if (self->due_unix_ms > now_unix_ms)
            return TIDE_OK;
        tide_pg_params(self->pg);
        tide_pg_u64(self->pg, now_unix_ms);
        tide_pg_i32(self->pg, PROMOTE_SLICE);
        rc = tide_pg_run(self->pg, PGSQL_PROMOTE, &result, err);
        for (int i = 0; rc == TIDE_OK && i < PQntuples(result); i++)
            tide_pgl_head_back(self, (unsigned)tide_pg_get_u64(result, i, 1),
                               (unsigned)tide_pg_get_u64(result, i, 2),
                               tide_pg_get_u64(result, i, 0));
        /* None: another process is marking them. */
        if (rc != TIDE_OK || PQntuples(result) == 0)
            return rc;
        *promoted_out = true;
    }
    return rc;
}

/* When the next delayed free job of these kinds is due. */
static tide_status due_next(struct tide_postgres *self, const uint32_t *kinds, size_t kinds_count,
                            uint64_t now_unix_ms, uint64_t *due_out, tide_error *err)
{
    PGresult *result = NULL;
    if (self->due_unix_ms == UINT64_MAX && self->due_looked_unix_ms == now_unix_ms) {
        *due_out = UINT64_MAX;
        return TIDE_OK;
    }
    tide_pg_params(self->pg);
    put_kinds(self->pg, kinds, kinds_count);
    TIDE_TRY(tide_pg_run(self->pg, PGSQL_DUE_OF, &result, err));
    *due_out = PQntuples(result) == 0 ? UINT64_MAX : tide_pg_get_u64(result, 0, 0);
    return TIDE_OK;
}

static bool due_passed(const struct tide_postgres *self, uint64_t now_unix_ms)
{
    return self->due_looked_unix_ms == 0 || now_unix_ms >= self->due_unix_ms ||
           now_unix_ms < self->due_looked_unix_ms;
}

static bool due_old(const struct tide_postgres *self, uint64_t now_unix_ms)
{
    return now_unix_ms >= self->due_looked_unix_ms + DUE_AGAIN_MS;
}

/* A part of a lane's index: what comes after (rank, after), up to the rank `last`.  A rank is
 * 100 - priority. */
struct part {
    int16_t lane;
    int32_t rank, last;
    uint64_t after;
};

static size_t parts_of(const struct pg_heads *heads, int16_t lane, bool beginning,
                       struct part *parts)
{
    size_t count = 0;
    int32_t rank = -1;
    for (int32_t r = 0; !beginning && r <= TIDE_PRIORITY_MAX; r++) {
        uint64_t reached = heads->reached[TIDE_PRIORITY_MAX - r];
        if (reached == 0)
            continue;
        if (rank + 1 < r)
            parts[count++] = (struct part){lane, rank, r - 1, INT64_MAX};
        parts[count++] = (struct part){lane, r, r, reached};
        rank = r;
    }
    if (rank < TIDE_PRIORITY_MAX)
        parts[count++] = (struct part){lane, rank, TIDE_PRIORITY_MAX, INT64_MAX};
    return count;
}

struct free_claim {
    const uint32_t *kinds;
    size_t kinds_count;
    uint32_t wanted[TIDE_LANES]; /* how many are still wanted */
    uint64_t owner, token, now_unix_ms;
    tide_mem *mem;
    struct tide_brief *briefs;
    struct tide_job_body **bodies;
    size_t count;
    uint64_t again_ms; /* the beginning was not scanned: call again after this; 0: it was */
};

static void free_params(struct tide_postgres *self, const struct free_claim *claim, bool beginning)
{
    tide_pg *pg = self->pg;
    struct part parts[TIDE_LANES * PARTS_MAX];
    size_t count = 0;
    tide_pg_params(pg);
    for (int column = 0; column < 2; column++) {
        tide_pg_array(pg, column == 0 ? TIDE_PG_INT2 : TIDE_PG_INT4);
        for (int16_t lane = 0; lane < TIDE_LANES; lane++) {
            if (claim->wanted[lane] == 0)
                continue;
            if (column == 0) {
                tide_pg_i16(pg, lane);
                count += parts_of(&self->heads[lane], lane, beginning, parts + count);
            } else
                tide_pg_i32(pg, (int32_t)claim->wanted[lane]);
        }
        tide_pg_array_end(pg);
    }
    for (int column = 0; column < 4; column++) {
        tide_pg_array(pg, column == 0 ? TIDE_PG_INT2 : column == 2 ? TIDE_PG_INT8 : TIDE_PG_INT4);
        for (size_t i = 0; i < count; i++)
            if (column == 0)
                tide_pg_i16(pg, parts[i].lane);
            else if (column == 2)
                tide_pg_u64(pg, parts[i].after);
            else
                tide_pg_i32(pg, column == 1 ? parts[i].rank : parts[i].last);
        tide_pg_array_end(pg);
    }
    put_kinds(pg, claim->kinds, claim->kinds_count);
    tide_pg_u64(pg, claim->owner);
    tide_pg_u64(pg, claim->token);
    tide_pg_u64(pg, self->run);
    tide_pg_u64(pg, claim->now_unix_ms);
    tide_pg_bool(pg, beginning);
}

/* The server returns rows in the order of their places in the table; this sorts them. */
struct free_row {
    uint64_t id;
    uint32_t rank; /* of lane and priority together */
    int row;
};

static int free_order(const void *a, const void *b)
{
    const struct free_row *x = a;
    const struct free_row *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

enum free_column {
    FREE_ID,
    FREE_LANE,
    FREE_PRIORITY,
    FREE_KIND,
    FREE_LEVEL,
    FREE_ATTEMPTS,
    FREE_ATTEMPTS_MAX,
    FREE_PREEMPTIBLE,
    FREE_FORCE,
    FREE_CYCLE,
    FREE_SIZE,
    FREE_PAYLOAD,
    FREE_RESUME,
    FREE_DEDUPE,
};

static void free_rows(const PGresult *result, struct free_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t lane = tide_pg_get_u64(result, (int)i, FREE_LANE);
        uint64_t priority = tide_pg_get_u64(result, (int)i, FREE_PRIORITY);
        TIDE_ASSERT(lane < TIDE_LANES);
        TIDE_ASSERT(priority <= TIDE_PRIORITY_MAX);
        rows[i] = (struct free_row){
            .id = tide_pg_get_u64(result, (int)i, FREE_ID),
            .rank = (uint32_t)(lane * (TIDE_PRIORITY_MAX + 1) + (TIDE_PRIORITY_MAX - priority)),
            .row = (int)i};
    }
    qsort(rows, count, sizeof rows[0], free_order);
}

static tide_status free_take(struct tide_postgres *self, struct free_claim *claim,
                             const PGresult *result, const struct free_row *at, tide_error *err)
{
    static const struct body_columns columns = {FREE_ID,      FREE_ATTEMPTS, FREE_FORCE,
                                                FREE_PAYLOAD, FREE_RESUME,   FREE_DEDUPE};
    struct tide_brief *brief = &claim->briefs[claim->count];
    int row = at->row;
    *brief = (struct tide_brief){
        .id = at->id,
        .cycle = tide_pg_get_u64(result, row, FREE_CYCLE),
        .size_bytes = tide_pg_get_u64(result, row, FREE_SIZE),
        .kind = (uint32_t)tide_pg_get_u64(result, row, FREE_KIND),
        .attempts = (uint16_t)tide_pg_get_u64(result, row, FREE_ATTEMPTS),
        .attempts_max = (uint16_t)tide_pg_get_u64(result, row, FREE_ATTEMPTS_MAX),
        .priority = (uint8_t)tide_pg_get_u64(result, row, FREE_PRIORITY),
        .lane = (uint8_t)tide_pg_get_u64(result, row, FREE_LANE),
        .level = (uint8_t)tide_pg_get_u64(result, row, FREE_LEVEL),
        .preemptible = tide_pg_get_bool(result, row, FREE_PREEMPTIBLE),
    };
    TIDE_ASSERT(claim->wanted[brief->lane] > 0);
    struct tide_job_body *body = body_new(claim->mem, result, row, &columns, claim->token);
    if (body == NULL)
        return tide_pgl_no_memory(err);
    claim->bodies[claim->count++] = body;
    claim->wanted[brief->lane]--;
    uint64_t *reached = &self->heads[brief->lane].reached[brief->priority];
    if (brief->id > *reached)
        *reached = brief->id;
    return TIDE_OK;
}

static tide_status free_some(struct tide_postgres *self, struct free_claim *claim, bool beginning,
                             tide_error *err)
{
    PGresult *result = NULL;
    free_params(self, claim, beginning);
    tide_status rc = tide_pg_run(self->pg, PGSQL_CLAIM_FREE, &result, err);
    size_t count = rc == TIDE_OK ? (size_t)PQntuples(result) : 0;
    if (count == 0)
        return rc;
    struct free_row *rows = tide_mem_array(self->mem, count, sizeof rows[0]);
    if (rows == NULL)
        return tide_pgl_no_memory(err);
    free_rows(result, rows, count);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = free_take(self, claim, result, &rows[i], err);
    tide_mem_free(self->mem, rows, count * sizeof rows[0]);
    return rc;
}

static bool more_wanted(const struct free_claim *claim)
{
    return claim->wanted[0] > 0 || claim->wanted[1] > 0;
}

void tide_pgl_look_again(struct tide_postgres *self)
{
    self->look_due_us = 0;
}

/* Claims from where the last claim ended; then, or every two seconds instead, from the
 * beginning.  While old snapshots make the scan from the beginning slow, it is done rarely.
 * If the first step found jobs, they are returned at once and the next claim does the scan. */
static tide_status free_claim(struct tide_postgres *self, struct free_claim *claim, tide_error *err)
{
    uint64_t now_us = tide_world_now_us(self->world);
    bool beginning = now_us >= self->look_due_us;
    tide_status rc = TIDE_OK;
    if (!beginning) {
        rc = free_some(self, claim, false, err);
        if (rc != TIDE_OK || !more_wanted(claim))
            return rc;
        now_us = tide_world_now_us(self->world);
        if (now_us < self->look_allowed_us) {
            claim->again_ms = (self->look_allowed_us - now_us) / 1000 + 1;
            return TIDE_OK;
        }
        if (claim->count > 0) {
            claim->again_ms = LOOK_SOON_MS;
            self->look_due_us = 0;
            return TIDE_OK;
        }
    }
    claim->again_ms = 0;
    rc = free_some(self, claim, true, err);
    uint64_t after_us = tide_world_now_us(self->world);
    uint64_t took_us = after_us - now_us;
    self->look_due_us = after_us + (uint64_t)LOOK_AGAIN_MS * 1000;
    self->look_allowed_us = took_us < LOOK_CHEAP_US ? 0 : after_us + took_us * LOOK_SHARE;
    if (self->look_due_us < self->look_allowed_us)
        self->look_due_us = self->look_allowed_us;
    return rc;
}

tide_status tide_pgl_claim_free(tide_tx *tx, const uint32_t *kinds, size_t kinds_count,
                                const uint32_t counts[2], uint64_t owner, uint64_t first_token,
                                uint64_t now_unix_ms, tide_mem *mem, struct tide_brief *briefs_out,
                                struct tide_job_body **bodies_out, size_t *count_out,
                                uint64_t *due_unix_ms_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    struct free_claim claim = {
        .kinds = kinds,
        .kinds_count = kinds_count,
        .wanted = {counts[0], counts[1]},
        .owner = owner,
        .token = first_token,
        .now_unix_ms = now_unix_ms,
        .mem = mem,
        .briefs = briefs_out,
        .bodies = bodies_out,
    };
    uint64_t due_unix_ms = 0;
    bool promoted = false;
    tide_status rc = tide_pgl_ready(self, err);
    bool looked = rc == TIDE_OK && due_passed(self, now_unix_ms);
    if (looked)
        rc = due_look(self, now_unix_ms, &promoted, err);
    if (rc == TIDE_OK && more_wanted(&claim) && kinds_count > 0)
        rc = free_claim(self, &claim, err);
    bool soon = more_wanted(&claim) && claim.again_ms == LOOK_SOON_MS; /* the rest */
    if (rc == TIDE_OK && !looked && !soon && (more_wanted(&claim) || due_old(self, now_unix_ms))) {
        rc = due_look(self, now_unix_ms, &promoted, err);
        /* Jobs that became due since the last check: claim them now, because the time that is
         * returned is that of the next one, and no call would come for these. */
        if (rc == TIDE_OK && promoted && more_wanted(&claim) && kinds_count > 0)
            rc = free_claim(self, &claim, err);
    }
    if (rc == TIDE_OK && !soon && more_wanted(&claim))
        rc = due_next(self, kinds, kinds_count, now_unix_ms, &due_unix_ms, err);
    if (rc == TIDE_OK) {
        /* A job that another process put back is before the part that was scanned: call again
         * for it. */
        if (more_wanted(&claim) && claim.again_ms > 0 &&
            (soon || due_unix_ms > now_unix_ms + claim.again_ms))
            due_unix_ms = now_unix_ms + claim.again_ms;
        *count_out = claim.count;
        *due_unix_ms_out = due_unix_ms;
        return TIDE_OK;
    }
    for (size_t i = 0; i < claim.count; i++)
        tide_job_body_free(mem, bodies_out[i]);
    return tide_pgl_end(self, rc);
}

/* ---- beats ------------------------------------------------------------------------ */

/* Several beats of one claim become one: the last bytes, the last resume data. */
struct beat_row {
    uint64_t id, token;
    size_t index; /* in the call */
    const struct tide_beat *last;
    tide_text resume;
    bool resume_set;
};

static int beat_order(const void *a, const void *b)
{
    const struct beat_row *x = a;
    const struct beat_row *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->token != y->token)
        return x->token < y->token ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool same_claim(const struct beat_row *a, const struct beat_row *b)
{
    return a->id == b->id && a->token == b->token;
}

static void beat_params(struct tide_postgres *self, struct beat_row *rows, size_t count,
                        uint64_t now_unix_ms)
{
    static const Oid types[] = {TIDE_PG_INT8, TIDE_PG_INT8, TIDE_PG_INT8, TIDE_PG_BOOL,
                                TIDE_PG_TEXT};
    tide_pg *pg = self->pg;
    for (size_t i = 1; i < count; i++)
        if (same_claim(&rows[i - 1], &rows[i]) && !rows[i].resume_set) {
            rows[i].resume_set = rows[i - 1].resume_set;
            rows[i].resume = rows[i - 1].resume;
        }
    tide_pg_params(pg);
    for (size_t column = 0; column < sizeof types / sizeof types[0]; column++) {
        tide_pg_array(pg, types[column]);
        for (size_t i = 0; i < count; i++) {
            if (i + 1 < count && same_claim(&rows[i], &rows[i + 1]))
                continue;
            if (column == 0)
                tide_pg_u64(pg, rows[i].id);
            else if (column == 1)
                tide_pg_u64(pg, rows[i].token);
            else if (column == 2)
                tide_pg_u64_or_null(pg, rows[i].last->bytes_done);
            else if (column == 3)
                tide_pg_bool(pg, rows[i].resume_set);
            else
                tide_pg_text_or_null(pg, rows[i].resume);
        }
        tide_pg_array_end(pg);
    }
    tide_pg_u64(pg, now_unix_ms);
}

static tide_status beats_write(struct tide_postgres *self, struct beat_row *rows, size_t count,
                               uint64_t now_unix_ms, bool *applied_out, tide_error *err)
{
    PGresult *result = NULL;
    beat_params(self, rows, count, now_unix_ms);
    TIDE_TRY(tide_pg_run(self->pg, PGSQL_BEAT, &result, err));
    /* The server may answer in any order. */
    tide_map_clear(&self->rows);
    for (int row = 0; row < PQntuples(result); row++)
        if (!tide_map_put(&self->rows, tide_pg_get_u64(result, row, 0), (uint32_t)row))
            return tide_pgl_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        uint32_t row = 0;
        applied_out[rows[i].index] = rows[i].id != 0 &&
                                     tide_map_get(&self->rows, rows[i].id, &row) &&
                                     tide_pg_get_u64(result, (int)row, 1) == rows[i].token;
    }
    return TIDE_OK;
}

tide_status tide_pgl_beat(tide_tx *tx, const struct tide_beat *beats, size_t count,
                          uint64_t now_unix_ms, bool *applied_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    for (size_t i = 0; i < count; i++)
        if (beats[i].resume_set && !tide_pgl_text_ok(beats[i].resume))
            return tide_error_set(err, TIDE_INVALID,
                                  "job %" PRIu64 ": resume data that is not UTF-8 text",
                                  beats[i].id);
    tide_status rc = tide_pgl_ready(self, err);
    if (rc != TIDE_OK || count == 0)
        return rc;
    struct beat_row *rows = tide_mem_array(self->mem, count, sizeof rows[0]);
    if (rows == NULL)
        return tide_pgl_end(self, tide_pgl_no_memory(err));
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct beat_row){beats[i].id, beats[i].token,  i,
                                    &beats[i],   beats[i].resume, beats[i].resume_set};
    qsort(rows, count, sizeof rows[0], beat_order);
    rc = beats_write(self, rows, count, now_unix_ms, applied_out, err);
    tide_mem_free(self->mem, rows, count * sizeof rows[0]);
    return tide_pgl_end(self, rc);
}

/* ---- the window ------------------------------------------------------------------- */

tide_status tide_pgl_refill(tide_ledger *ledger, uint32_t account, uint8_t after_priority,
                            uint64_t after_id, struct tide_brief *briefs_out, size_t count_max,
                            size_t *count_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    PGresult *result = NULL;
    TIDE_TRY(tide_pgl_ready(self, err));
    tide_pg_params(self->pg);
    tide_pg_i32(self->pg, (int32_t)account);
    tide_pg_i32(self->pg, after_priority);
    tide_pg_u64(self->pg, after_id);
    tide_pg_u64(self->pg, count_max);
    tide_status rc =
        tide_pg_run(self->pg, account == 0 ? PGSQL_REFILL_FREE : PGSQL_REFILL, &result, err);
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    TIDE_ASSERT((size_t)PQntuples(result) <= count_max);
    for (int row = 0; row < PQntuples(result); row++)
        tide_pgl_brief_read(result, row, &briefs_out[row]);
    *count_out = (size_t)PQntuples(result);
    return TIDE_OK;
}

tide_status tide_pgl_accounts_with_work(tide_ledger *ledger, uint32_t *accounts_out,
                                        size_t accounts_max, size_t *count_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    PGresult *result = NULL;
    TIDE_TRY(tide_pgl_ready(self, err));
    tide_pg_params(self->pg);
    tide_pg_u64(self->pg, accounts_max);
    tide_status rc = tide_pg_run(self->pg, PGSQL_WORK, &result, err);
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    TIDE_ASSERT((size_t)PQntuples(result) <= accounts_max);
    for (int row = 0; row < PQntuples(result); row++)
        accounts_out[row] = (uint32_t)tide_pg_get_u64(result, row, 0);
    *count_out = (size_t)PQntuples(result);
    return TIDE_OK;
}

tide_status tide_pgl_brief(tide_ledger *ledger, uint64_t id, struct tide_brief *brief_out,
                           tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    PGresult *result = NULL;
    TIDE_TRY(tide_pgl_ready(self, err));
    tide_pg_params(self->pg);
    tide_pg_array(self->pg, TIDE_PG_INT8);
    tide_pg_u64(self->pg, id);
    tide_pg_array_end(self->pg);
    tide_status rc = tide_pg_run(self->pg, PGSQL_BRIEFS, &result, err);
    if (rc != TIDE_OK)
        return tide_pgl_end(self, rc);
    if (PQntuples(result) == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no unfinished job %" PRIu64, id);
    tide_pgl_brief_read(result, 0, brief_out);
    return TIDE_OK;
}
