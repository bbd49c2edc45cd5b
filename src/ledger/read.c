/* read.c - streams, cycles, and queries for commands.
 *
 * What differs between the stores is the text of a statement (struct tide_ledger_ops): the tables
 * of jobs and their indexes are not the same. */
#include "ledger/common.h"

#include <inttypes.h>

tide_status tide_ledger_ask_with(tide_ledger *ledger, tide_rows_stmt *stmt_out, tide_error *err,
                                 const tide_value *values, size_t count)
{
    tide_rows rows = {.sqlite = NULL};
    *stmt_out = (tide_rows_stmt){.what = NULL};
    TIDE_TRY(ledger->ops->rows(ledger, &rows, err));
    return tide_rows_ask_with(rows, "the ledger", stmt_out, err, values, count);
}

tide_status tide_ledger_end_rows(tide_ledger *ledger, tide_rows_stmt *stmt, tide_status rc)
{
    tide_rows_end(stmt);
    return ledger->ops->rows_end(ledger, rc);
}

/* ---- jobs ------------------------------------------------------------------------ */

static void job_read(const tide_rows_stmt *stmt, struct tide_job_row *row)
{
    const tide_row_state state = (tide_row_state)tide_rows_get_u32(stmt, LIST_STATE);
    *row = (struct tide_job_row){
        .id = tide_rows_get_u64(stmt, LIST_ID),
        .cycle = tide_rows_get_u64(stmt, LIST_CYCLE),
        .size_bytes = tide_rows_get_u64(stmt, LIST_SIZE),
        .bytes_done = tide_rows_get_u64(stmt, LIST_BYTES_DONE),
        .owner = tide_rows_get_u64(stmt, LIST_OWNER),
        .token = tide_rows_get_u64(stmt, LIST_TOKEN),
        .not_before_unix_ms = tide_rows_get_u64(stmt, LIST_NOT_BEFORE),
        .created_unix_ms = tide_rows_get_u64(stmt, LIST_CREATED),
        .started_unix_ms = tide_rows_get_u64(stmt, LIST_STARTED),
        .finished_unix_ms = tide_rows_get_u64(stmt, LIST_FINISHED),
        .beat_unix_ms = tide_rows_get_u64(stmt, LIST_BEAT),
        .account = tide_rows_get_u32(stmt, LIST_ACCOUNT),
        .kind = tide_rows_get_u32(stmt, LIST_KIND),
        .open_deps = tide_rows_get_u32(stmt, LIST_OPEN_DEPS),
        .attempts = (uint16_t)tide_rows_get_u32(stmt, LIST_ATTEMPTS),
        .attempts_max = (uint16_t)tide_rows_get_u32(stmt, LIST_ATTEMPTS_MAX),
        .priority = (uint8_t)tide_rows_get_u32(stmt, LIST_PRIORITY),
        .lane = (uint8_t)tide_rows_get_u32(stmt, LIST_LANE),
        .level = (uint8_t)tide_rows_get_u32(stmt, LIST_LEVEL),
        .preemptible = tide_rows_get_u64(stmt, LIST_PREEMPTIBLE) != 0,
        .force = tide_rows_get_u64(stmt, LIST_FORCE) != 0,
        .state = state,
        .status = tide_status_shown(state, tide_rows_get_i64(stmt, LIST_STATUS)),
        .account_name = tide_rows_get_text(stmt, LIST_ACCOUNT_NAME),
        .kind_name = tide_rows_get_text(stmt, LIST_KIND_NAME),
        .dedupe_key = tide_rows_get_text(stmt, LIST_DEDUPE),
        .payload = tide_rows_get_text(stmt, LIST_PAYLOAD),
        .resume = tide_rows_get_text(stmt, LIST_RESUME),
        .error = tide_rows_get_text(stmt, LIST_ERROR),
        .run_id = tide_rows_get_text(stmt, LIST_RUN),
    };
}

tide_status tide_ledger_jobs(tide_ledger *ledger, const struct tide_job_filter *filter,
                             bool (*visit)(const struct tide_job_row *row, void *arg), void *arg,
                             tide_error *err)
{
    tide_rows_stmt stmt;
    const uint64_t last = filter->before_id == 0 ? INT64_MAX : filter->before_id - 1;
    tide_status rc = tide_ledger_ask(ledger, &stmt, err, ledger->ops->jobs_text(filter), filter->id,
                                     filter->account == UINT32_MAX ? 0 : filter->account,
                                     filter->account, filter->kind, filter->state, filter->cycle,
                                     filter->id != 0 && filter->id < last ? filter->id : last,
                                     filter->count_max == 0 ? 100 : filter->count_max);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_job_row job;
        job_read(&stmt, &job);
        if (!visit(&job, arg))
            break;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

tide_status tide_ledger_jobs_count(tide_ledger *ledger, const struct tide_job_filter *filter,
                                   uint64_t *count_out, tide_error *err)
{
    tide_rows_stmt stmt;
    uint64_t count = 0;
    const uint64_t last = filter->id != 0 ? filter->id : INT64_MAX;
    tide_status rc =
        tide_ledger_ask(ledger, &stmt, err, ledger->ops->jobs_count_text(filter), filter->id,
                        filter->account == UINT32_MAX ? 0 : filter->account, filter->account,
                        filter->kind, filter->state, filter->cycle, last);
    if (tide_rows_next(&stmt, &rc, err))
        count = tide_rows_get_u64(&stmt, 0);
    rc = tide_ledger_end_rows(ledger, &stmt, rc);
    if (rc == TIDE_OK)
        *count_out = count;
    return rc;
}

tide_status tide_ledger_jobs_expect(tide_ledger *ledger, const struct tide_job_filter *filter,
                                    tide_error *err)
{
    uint64_t count = 0;
    if (!filter->expects)
        return TIDE_OK;
    const tide_status rc = tide_ledger_jobs_count(ledger, filter, &count, err);
    return rc != TIDE_OK || count == filter->expected
               ? rc
               : tide_error_set(err, TIDE_STALE,
                                "%" PRIu64 " job%s now, not %" PRIu64 "; nothing was changed",
                                count, count == 1 ? " matches" : "s match", filter->expected);
}

static tide_status counts_read(tide_ledger *ledger, const char *text, uint64_t now_unix_ms,
                               bool (*visit)(const struct tide_job_count *row, void *arg),
                               void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(ledger, &stmt, err, text, now_unix_ms);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_job_count count = {
            .account = tide_rows_get_u32(&stmt, 0),
            .kind = tide_rows_get_u32(&stmt, 1),
            .state = (tide_row_state)tide_rows_get_u32(&stmt, 2),
            .count = tide_rows_get_u64(&stmt, 3),
            .blocked = tide_rows_get_u64(&stmt, 4),
            .delayed = tide_rows_get_u64(&stmt, 5),
            .account_name = tide_rows_get_text(&stmt, 6),
            .kind_name = tide_rows_get_text(&stmt, 7),
            .account_paused = tide_rows_get_u64(&stmt, 8) != 0,
            .account_halted = tide_rows_get_u64(&stmt, 9) != 0,
            .kind_paused = tide_rows_get_u64(&stmt, 10) != 0,
        };
        if (!visit(&count, arg))
            break;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

tide_status tide_ledger_counts(tide_ledger *ledger, uint64_t now_unix_ms,
                               bool (*visit)(const struct tide_job_count *row, void *arg),
                               void *arg, tide_error *err)
{
    return counts_read(ledger, ledger->ops->counts_text, now_unix_ms, visit, arg, err);
}

tide_status tide_ledger_counts_left(tide_ledger *ledger, uint64_t now_unix_ms,
                                    bool (*visit)(const struct tide_job_count *row, void *arg),
                                    void *arg, tide_error *err)
{
    return counts_read(ledger, ledger->ops->counts_left_text, now_unix_ms, visit, arg, err);
}

/* ---- streams --------------------------------------------------------------------- */

tide_status tide_ledger_streams(tide_ledger *ledger,
                                bool (*visit)(const struct tide_stream_row *row, void *arg),
                                void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(
        ledger, &stmt, err,
        "SELECT s.id, s.account, s.ordinal, s.ordinal_next, s.name, s.cursor, s.floor,"
        " (SELECT c.start FROM cycle c WHERE c.stream = s.id ORDER BY c.ordinal LIMIT 1),"
        " s.moved FROM stream s ORDER BY s.id");
    while (tide_rows_next(&stmt, &rc, err)) {
        const struct tide_stream_row stream = {
            .id = tide_rows_get_u64(&stmt, 0),
            .account = tide_rows_get_u32(&stmt, 1),
            .ordinal = tide_rows_get_u64(&stmt, 2),
            .ordinal_next = tide_rows_get_u64(&stmt, 3),
            .name = tide_rows_get_text(&stmt, 4),
            .cursor = tide_rows_get_text(&stmt, 5),
            .floor = tide_rows_get_text(&stmt, 6),
            .start = tide_rows_get_text(&stmt, 7),
            .moved_unix_ms = tide_rows_get_u64(&stmt, 8),
        };
        if (!visit(&stream, arg))
            break;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

tide_status tide_ledger_cycles(tide_ledger *ledger, uint64_t stream,
                               bool (*visit)(const struct tide_cycle_row *row, void *arg),
                               void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(
        ledger, &stmt, err,
        "SELECT c.id, c.stream, c.ordinal, c.start, c.\"end\", c.total, c.outstanding, c.failed,"
        " (SELECT count(*) FROM bad b WHERE b.cycle = c.id AND b.state IN (0, 3, 4)), c.opened"
        " FROM stream s JOIN cycle c ON c.stream = s.id AND c.ordinal >= s.ordinal"
        " WHERE s.id = ?1 ORDER BY c.ordinal",
        stream);
    while (tide_rows_next(&stmt, &rc, err)) {
        const struct tide_cycle_row cycle = {
            .id = tide_rows_get_u64(&stmt, 0),
            .stream = tide_rows_get_u64(&stmt, 1),
            .ordinal = tide_rows_get_u64(&stmt, 2),
            .start = tide_rows_get_text(&stmt, 3),
            .end = tide_rows_get_text(&stmt, 4),
            .total = tide_rows_get_u64(&stmt, 5),
            .outstanding = tide_rows_get_u64(&stmt, 6),
            .failed = tide_rows_get_u64(&stmt, 7),
            .bad = tide_rows_get_u64(&stmt, 8),
            .opened_unix_ms = tide_rows_get_u64(&stmt, 9),
        };
        if (!visit(&cycle, arg))
            break;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

tide_status tide_ledger_work_left(tide_ledger *ledger, uint32_t account,
                                  bool (*visit)(const struct tide_work_left *row, void *arg),
                                  void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(ledger, &stmt, err, ledger->ops->work_left_text, account);
    while (tide_rows_next(&stmt, &rc, err)) {
        const struct tide_work_left left = {
            .cycle = tide_rows_get_u64(&stmt, 0),
            .kind = tide_rows_get_u32(&stmt, 1),
            .state = (tide_row_state)tide_rows_get_u32(&stmt, 2),
            .jobs = tide_rows_get_u64(&stmt, 3),
            .items = tide_rows_get_u64(&stmt, 4),
            .kind_name = tide_rows_get_text(&stmt, 5),
        };
        if (!visit(&left, arg))
            break;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}

/* ---- sizes ----------------------------------------------------------------------- */

tide_status tide_ledger_metadata(tide_ledger *ledger, uint32_t account, uint64_t *bytes_out,
                                 bool *bad_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_ledger_ask(ledger, &stmt, err, ledger->ops->metadata_text, account);
    if (rc == TIDE_OK)
        rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_OK) {
        *bytes_out = tide_rows_get_u64(&stmt, 0);
        *bad_out = tide_rows_get_u64(&stmt, 1) != 0;
    }
    return tide_ledger_end_rows(ledger, &stmt, rc);
}
