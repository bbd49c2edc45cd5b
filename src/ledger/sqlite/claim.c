/* claim.c - gives pending jobs to an owner (E1.3).
 *
 * Jobs are mostly claimed in the order they were enqueued, so the ids of one call come
 * in runs of consecutive numbers.  A run is read by one statement and claimed by two; only
 * where a job is special (gone, paused, with resume data) are its jobs claimed one by
 * one. */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"
#include "base/limits.h"

#include <string.h>

struct claim {
    uint64_t id, token, owner, now_unix_ms;
    uint64_t cycle, bytes_done;
    bool noted;
};

static tide_status claim_write(struct tide_sqlite *self, const struct claim *claim, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_CLAIM);
    tide_bind_u64(stmt, 1, claim->id);
    TIDE_TRY(tide_db_run(&self->db, stmt, err));
    stmt = sql_of(self, SQL_CLAIM_INSERT);
    tide_bind_u64(stmt, 1, claim->id);
    tide_bind_u64(stmt, 2, claim->token);
    tide_bind_u64(stmt, 3, claim->owner);
    tide_bind_u64(stmt, 4, self->run);
    tide_bind_u64(stmt, 5, claim->now_unix_ms);
    tide_bind_u64_or_null(stmt, 6, claim->cycle);
    tide_bind_u64_or_null(stmt, 7, claim->noted);
    tide_bind_u64_or_null(stmt, 8, claim->bytes_done);
    self->known[claim->id % CLAIMS_KNOWN] = (struct claim_known){
        claim->id, claim->token, {claim->now_unix_ms, claim->cycle, self->run, claim->noted}};
    return tide_db_run(&self->db, stmt, err);
}

/* *body_out stays NULL where the job cannot be claimed. */
static tide_status claim_read(struct tide_sqlite *self, struct claim *claim, tide_mem *mem,
                              struct tide_job_body **body_out, tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_CLAIM_GET);
    sqlite3_stmt *detail = NULL;
    bool row = false;
    tide_bind_u64(stmt, 1, claim->id);
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    if (rc != TIDE_OK || !row)
        return rc;
    tide_text resume = TIDE_TEXT_NONE;
    if (tide_sql_paused(self, tide_column_u32(stmt, 0), tide_column_u32(stmt, 1)))
        goto done;
    claim->cycle = tide_column_u64(stmt, 4);
    claim->noted = tide_column_u64(stmt, 5) != 0;
    if (claim->noted) {
        detail = sql_of(self, SQL_DETAIL_GET);
        tide_bind_u64(detail, 1, claim->id);
        rc = tide_db_step(&self->db, detail, &row, err);
        if (rc != TIDE_OK)
            goto done;
        if (row) {
            resume = tide_column_text(detail, 0);
            claim->bytes_done = tide_column_u64(detail, 1);
        }
    }
    struct tide_job_body *body =
        tide_job_body_new(mem, tide_column_text(stmt, 7), resume, tide_column_text(stmt, 6));
    if (body == NULL) {
        rc = tide_sql_no_memory(err);
        goto done;
    }
    body->id = claim->id;
    body->token = claim->token;
    body->attempts = (uint16_t)tide_column_u64(stmt, 2);
    body->force = (tide_column_u64(stmt, 3) & TRAIT_FORCE) != 0;
    *body_out = body;
done:
    if (detail != NULL)
        tide_db_end(detail);
    tide_db_end(stmt);
    return rc;
}

static tide_status claim_one(struct tide_sqlite *self, struct claim claim, tide_mem *mem,
                             struct tide_job_body **body_out, tide_error *err)
{
    TIDE_TRY(claim_read(self, &claim, mem, body_out, err));
    if (*body_out != NULL)
        TIDE_TRY(claim_write(self, &claim, err));
    return TIDE_OK;
}

/* ---- runs of consecutive ids -------------------------------------------------------- */

enum { RUN_MIN = 4 }; /* fewer are not worth the statements */

static size_t run_length(const uint64_t *ids, size_t count)
{
    size_t length = 1;
    while (length < count && ids[length] == ids[length - 1] + 1)
        length++;
    return length;
}

/* Reads all jobs of a run.  *plain_out: each exists, can be claimed and has no detail row;
 * else nothing is kept. */
static tide_status run_read(struct tide_sqlite *self, const struct claim *first, size_t length,
                            tide_mem *mem, struct tide_job_body **bodies_out, bool *plain_out,
                            tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_CLAIM_RUN_GET);
    bool row = false;
    bool plain = true;
    size_t rows = 0;
    tide_bind_u64(stmt, 1, first->id);
    tide_bind_u64(stmt, 2, first->id + length - 1);
    tide_status rc = tide_db_step(&self->db, stmt, &row, err);
    while (rc == TIDE_OK && row && plain) {
        uint64_t id = tide_column_u64(stmt, 8);
        plain = id == first->id + rows && tide_column_u64(stmt, 5) == 0 &&
                !tide_sql_paused(self, tide_column_u32(stmt, 0), tide_column_u32(stmt, 1));
        struct tide_job_body *body = NULL;
        if (plain)
            body = tide_job_body_new(mem, tide_column_text(stmt, 7), TIDE_TEXT_NONE,
                                     tide_column_text(stmt, 6));
        plain = body != NULL;
        if (!plain)
            break;
        body->id = id;
        body->token = first->token + rows;
        body->attempts = (uint16_t)tide_column_u64(stmt, 2);
        body->force = (tide_column_u64(stmt, 3) & TRAIT_FORCE) != 0;
        bodies_out[rows++] = body;
        self->known[id % CLAIMS_KNOWN] = (struct claim_known){
            id, body->token, {first->now_unix_ms, tide_column_u64(stmt, 4), self->run, false}};
        rc = tide_db_step(&self->db, stmt, &row, err);
    }
    tide_db_end(stmt);
    *plain_out = rc == TIDE_OK && plain && rows == length;
    for (size_t i = 0; !*plain_out && i < rows; i++) {
        /* The cache must not hold a claim that was not written. */
        self->known[bodies_out[i]->id % CLAIMS_KNOWN].id = 0;
        tide_job_body_free(mem, bodies_out[i]);
        bodies_out[i] = NULL;
    }
    return rc;
}

static tide_status run_write(struct tide_sqlite *self, const struct claim *first, size_t length,
                             tide_error *err)
{
    sqlite3_stmt *stmt = sql_of(self, SQL_JOB_CLAIM_RUN);
    tide_bind_u64(stmt, 1, first->id);
    tide_bind_u64(stmt, 2, first->id + length - 1);
    TIDE_TRY(tide_db_run(&self->db, stmt, err));
    TIDE_ASSERT((size_t)sqlite3_changes(self->db.handle) == length);
    stmt = sql_of(self, SQL_CLAIM_INSERT_RUN);
    tide_bind_u64(stmt, 1, first->id);
    tide_bind_u64(stmt, 2, first->id + length - 1);
    /* Tokens follow the ids: token = id + (first token - first id). */
    (void)sqlite3_bind_int64(stmt, 3, (int64_t)first->token - (int64_t)first->id);
    tide_bind_u64(stmt, 4, first->owner);
    tide_bind_u64(stmt, 5, self->run);
    tide_bind_u64(stmt, 6, first->now_unix_ms);
    return tide_db_run(&self->db, stmt, err);
}

static tide_status claim_run(struct tide_sqlite *self, const struct claim *first, size_t length,
                             tide_mem *mem, struct tide_job_body **bodies_out, tide_error *err)
{
    bool plain = false;
    if (length >= RUN_MIN)
        TIDE_TRY(run_read(self, first, length, mem, bodies_out, &plain, err));
    if (plain)
        return run_write(self, first, length, err);
    for (size_t i = 0; i < length; i++) {
        struct claim claim = *first;
        claim.id += i;
        claim.token += i;
        TIDE_TRY(claim_one(self, claim, mem, &bodies_out[i], err));
    }
    return TIDE_OK;
}

tide_status tide_sql_claim(tide_tx *tx, const uint64_t *ids, size_t count, uint64_t owner,
                           uint64_t first_token, uint64_t now_unix_ms, tide_mem *mem,
                           struct tide_job_body **bodies_out, tide_error *err)
{
    struct tide_sqlite *self = sqlite_of_tx(tx);
    TIDE_ASSERT(count <= TIDE_CLAIM_MAX);
    struct tide_job_body *bodies[TIDE_CLAIM_MAX] = {NULL};
    tide_status rc = tide_sql_paused_load(self, err);
    for (size_t i = 0; rc == TIDE_OK && i < count;) {
        size_t length = run_length(ids + i, count - i);
        struct claim first = {
            .id = ids[i], .token = first_token + i, .owner = owner, .now_unix_ms = now_unix_ms};
        rc = claim_run(self, &first, length, mem, bodies + i, err);
        i += length;
    }
    if (rc == TIDE_OK) {
        if (count > 0)
            memcpy(bodies_out, bodies, count * sizeof bodies[0]);
        return TIDE_OK;
    }
    for (size_t i = 0; i < count; i++)
        tide_job_body_free(mem, bodies[i]);
    return tide_sql_end(self, rc);
}
