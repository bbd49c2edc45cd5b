/* read.c - queries for commands. */
#include "ledger/sqlite/sqlite.h"
#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>

enum { LIST_TRAITS = LIST_OWN };

static void job_read(sqlite3_stmt *stmt, struct tide_job_row *row)
{
    uint32_t traits = tide_column_u32(stmt, LIST_TRAITS);
    tide_row_state state = (tide_row_state)tide_column_u32(stmt, LIST_STATE);
    *row = (struct tide_job_row){
        .id = tide_column_u64(stmt, LIST_ID),
        .cycle = tide_column_u64(stmt, LIST_CYCLE),
        .size_bytes = tide_column_u64(stmt, LIST_SIZE),
        .bytes_done = tide_column_u64(stmt, LIST_BYTES_DONE),
        .owner = tide_column_u64(stmt, LIST_OWNER),
        .token = tide_column_u64(stmt, LIST_TOKEN),
        .not_before_unix_ms = tide_column_u64(stmt, LIST_NOT_BEFORE),
        .created_unix_ms = tide_column_u64(stmt, LIST_CREATED),
        .started_unix_ms = tide_column_u64(stmt, LIST_STARTED),
        .finished_unix_ms = tide_column_u64(stmt, LIST_FINISHED),
        .beat_unix_ms = tide_column_u64(stmt, LIST_BEAT),
        .account = tide_column_u32(stmt, LIST_ACCOUNT),
        .kind = tide_column_u32(stmt, LIST_KIND),
        .open_deps = tide_column_u32(stmt, LIST_OPEN_DEPS),
        .attempts = (uint16_t)tide_column_u32(stmt, LIST_ATTEMPTS),
        .attempts_max = (uint16_t)tide_column_u32(stmt, LIST_ATTEMPTS_MAX),
        .priority = (uint8_t)tide_column_u32(stmt, LIST_PRIORITY),
        .lane = (traits & TRAIT_BULK) != 0 ? TIDE_LANE_BULK : TIDE_LANE_INTERACTIVE,
        .level = (uint8_t)(traits >> TRAIT_LEVEL_SHIFT),
        .preemptible = (traits & TRAIT_PREEMPTIBLE) != 0,
        .force = (traits & TRAIT_FORCE) != 0,
        .state = state,
        .status = tide_status_shown(state, sqlite3_column_int64(stmt, LIST_STATUS)),
        .account_name = tide_column_text(stmt, LIST_ACCOUNT_NAME),
        .kind_name = tide_column_text(stmt, LIST_KIND_NAME),
        .dedupe_key = tide_column_text(stmt, LIST_DEDUPE),
        .payload = tide_column_text(stmt, LIST_PAYLOAD),
        .resume = tide_column_text(stmt, LIST_RESUME),
        .error = tide_column_text(stmt, LIST_ERROR),
        .run_id = tide_column_text(stmt, LIST_RUN),
    };
}

/* The statement that reads the fewest rows for a filter. */
static enum tide_sql text_for(const struct tide_job_filter *filter)
{
    if (filter->id != 0)
        return SQL_LIST_ID;
    if (filter->state == TIDE_ROW_RUNNING)
        return SQL_LIST_RUNNING;
    if (filter->state == TIDE_ROW_FAILED || filter->state == TIDE_ROW_CANCELED)
        return SQL_LIST_GAP;
    return SQL_LIST_ALL;
}

tide_status tide_sql_jobs(tide_ledger *ledger, const struct tide_job_filter *filter,
                          bool (*visit)(const struct tide_job_row *row, void *arg), void *arg,
                          tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, text_for(filter));
    tide_bind_u64(stmt, 1, filter->id);
    tide_bind_u64(stmt, 2, filter->account == UINT32_MAX ? 0 : filter->account);
    tide_bind_u64(stmt, 3, filter->account);
    tide_bind_u64(stmt, 4, filter->kind);
    (void)sqlite3_bind_int(stmt, 5, filter->state);
    tide_bind_u64(stmt, 6, filter->cycle);
    tide_bind_u64(stmt, 7, filter->before_id);
    tide_bind_u64(stmt, 8, filter->count_max == 0 ? 100 : filter->count_max);
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        struct tide_job_row job;
        job_read(stmt, &job);
        if (!visit(&job, arg))
            break;
    }
    tide_db_end(stmt);
    return rc;
}

tide_status tide_sql_counts(tide_ledger *ledger, uint64_t now_unix_ms,
                            bool (*visit)(const struct tide_job_count *row, void *arg), void *arg,
                            tide_error *err)
{
    struct tide_sqlite *self = sqlite_of(ledger);
    sqlite3_stmt *stmt = sql_of(self, SQL_COUNTS);
    tide_bind_u64(stmt, 1, now_unix_ms);
    tide_status rc = TIDE_OK;
    while (tide_db_next(&self->db, stmt, &rc, err)) {
        struct tide_job_count count = {
            .account = tide_column_u32(stmt, 0),
            .kind = tide_column_u32(stmt, 1),
            .state = (tide_row_state)tide_column_u32(stmt, 2),
            .count = tide_column_u64(stmt, 3),
            .blocked = tide_column_u64(stmt, 4),
            .delayed = tide_column_u64(stmt, 5),
            .account_name = tide_column_text(stmt, 6),
            .kind_name = tide_column_text(stmt, 7),
            .account_paused = tide_column_u64(stmt, 8) != 0,
            .account_halted = tide_column_u64(stmt, 9) != 0,
            .kind_paused = tide_column_u64(stmt, 10) != 0,
        };
        if (!visit(&count, arg))
            break;
    }
    tide_db_end(stmt);
    return rc;
}

/* No process joins a fleet here (LSQ4). */
tide_status tide_sql_members(tide_ledger *ledger,
                             bool (*visit)(const struct tide_member *member, void *arg), void *arg,
                             tide_error *err)
{
    (void)ledger;
    (void)visit;
    (void)arg;
    (void)err;
    return TIDE_OK;
}
