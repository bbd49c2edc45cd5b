/* looking.c - answers a program's questions about its own jobs and items. */
#include "engine/engine.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

tide_status tide_cancel_kind(tide_engine *engine, const char *kind, tide_error *err)
{
    json_t *request = json_pack("{s:{s:s}}", "filter", "kind", kind);
    tide_json answer;
    tide_json_object(&answer);
    const tide_status rc = request == NULL
                               ? tide_error_set(err, TIDE_NO_MEMORY, "no memory to cancel jobs")
                               : tide_control_cancel(engine, request, &answer, err);
    tide_json_done(&answer);
    json_decref(request);
    return rc;
}

/* ---- one job ---- */

struct ended_ask {
    uint64_t id;
    bool seen;
    tide_row_state state;
    tide_status status;
    char text[TIDE_ERROR_TEXT_BYTES_MAX];
};

static bool ended_row(const struct tide_job_row *row, void *arg)
{
    struct ended_ask *ask = arg;
    ask->seen = true;
    ask->state = row->state;
    ask->status = row->status;
    (void)snprintf(ask->text, sizeof ask->text, "%.*s", (int)row->error.bytes,
                   row->error.bytes == 0 ? "" : row->error.data);
    return false;
}

static tide_status ended_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct ended_ask *ask = arg;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = ask->id;
    filter.count_max = 1;
    return tide_ledger_jobs(transaction->engine->ledger, &filter, ended_row, ask, err);
}

/* TIDE_TIMEOUT and TIDE_NOT_FOUND are answers of tide_job_ended() itself, so a job that failed
 * with them is reported with the nearest other status. */
static tide_status failed_with(tide_status status)
{
    if (status == TIDE_OK)
        return TIDE_BUG;
    if (status == TIDE_TIMEOUT)
        return TIDE_UNKNOWN;
    return status == TIDE_NOT_FOUND ? TIDE_PERMANENT : status;
}

tide_status tide_job_ended(tide_engine *engine, uint64_t id, tide_error *err)
{
    struct ended_ask ask = {.id = id};
    const tide_status rc = tide_transact(engine, ended_run, &ask, err);
    if (rc != TIDE_OK)
        return rc;
    if (!ask.seen)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no job %" PRIu64, id);
    switch (ask.state) {
    case TIDE_ROW_DONE:
        return TIDE_OK;
    case TIDE_ROW_CANCELED:
        return tide_error_set(err, TIDE_CANCELED, "job %" PRIu64 " was canceled", id);
    case TIDE_ROW_FAILED:
        return tide_error_set(err, failed_with(ask.status), "%s", ask.text);
    case TIDE_ROW_PENDING:
    case TIDE_ROW_RUNNING:
        break;
    }
    return tide_error_set(err, TIDE_TIMEOUT, "job %" PRIu64 " has not ended", id);
}

/* ---- bad items ---- */

struct bad_ask {
    uint32_t account;
    const tide_text *items;
    size_t count;
    bool *bad;
};

static bool bad_row(const struct tide_bad_row *row, void *arg)
{
    const struct bad_ask *ask = arg;
    for (size_t i = 0; row->state != TIDE_BAD_GONE && i < ask->count; i++)
        ask->bad[i] = ask->bad[i] || tide_text_equal(ask->items[i], row->item);
    return true;
}

static tide_status bad_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct bad_ask *ask = arg;
    return tide_ledger_bad_list(transaction->engine->ledger, ask->account, 0, bad_row, ask, err);
}

tide_status tide_items_bad(tide_engine *engine, uint32_t account, const tide_text *items,
                           size_t count, bool *bad_out, tide_error *err)
{
    struct bad_ask ask = {account, items, count, bad_out};
    memset(bad_out, 0, count * sizeof *bad_out);
    return tide_transact(engine, bad_run, &ask, err);
}
