/* jobs.c - changes of many jobs at once: retry, accept, cancel, pause (E5.2); how one job ended.
 *
 * Each change is one transaction per slice (E2.5); the window is reloaded afterwards, so that
 * engine.h ENG1 holds again. */
#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>

enum { SLICE = 500 };

/* ---- the window after a change of many rows --------------------------------------- */

struct unclaimed {
    uint64_t ids[512];
    size_t count;
};

static bool collect_unclaimed(const struct tide_tracked *tracked, void *arg)
{
    struct unclaimed *list = arg;
    if (tracked->state == TIDE_JOB_BLOCKED || tracked->state == TIDE_JOB_WAITING ||
        tracked->state == TIDE_JOB_READY)
        list->ids[list->count++] = tracked->brief.id;
    return list->count < sizeof list->ids / sizeof list->ids[0];
}

/* Removes every unclaimed job from the window and loads them again: simpler than finding those
 * of ten thousand that a filter matched, and as fast as one refill. */
void tide_window_reload(tide_engine *engine, uint64_t now_ms)
{
    struct unclaimed list = {{0}, 0};
    do {
        list.count = 0;
        tide_tracker_each(engine->tracker, collect_unclaimed, &list);
        for (size_t i = 0; i < list.count; i++) {
            tide_lanes_left(engine->lanes, list.ids[i]);
            tide_tracker_remove(engine->tracker, list.ids[i]);
        }
    } while (list.count > 0);
    tide_tracker_more(engine->tracker, 0);
    for (size_t i = 0; i < engine->accounts_count; i++)
        tide_tracker_more(engine->tracker, engine->accounts[i]->id);
    engine->stuff_to_claim = true;
    tide_dispatch(engine, now_ms);
}

/* ---- retry, accept, cancel ------------------------------------------------------------ */

enum change_kind { RETRY, ACCEPT, CANCEL, END };

struct change {
    enum change_kind change;
    struct tide_job_filter filter;
    const uint32_t *kinds; /* jobs of each of these kinds; a kind 0 means any */
    size_t kinds_count;
    tide_over_fn *is_over; /* not NULL: only those for which it says so */
    void *is_over_arg;
    uint64_t over[SLICE];
    size_t asked; /* rows of this slice for which it was asked */
    bool more;    /* rows are left for which it was not */
    struct tide_changes changes;
    size_t count;      /* of this slice */
    uint64_t left_max; /* how many more may be changed */
    uint64_t running[TIDE_JOBS_RUNNING_MAX];
    size_t running_count;
};

static bool job_seen(const struct tide_job_row *row, void *arg)
{
    (void)row;
    *(bool *)arg = true;
    return false;
}

/* A command that names one job gets an error when it does not exist. */
static tide_status job_must_exist(tide_ledger *ledger, uint64_t id, tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = id;
    filter.count_max = 1;
    bool seen = false;
    TIDE_TRY(tide_ledger_jobs(ledger, &filter, job_seen, &seen, err));
    if (!seen)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no job %" PRIu64, id);
    return TIDE_OK;
}

static tide_status change_kind(tide_transaction *transaction, struct change *change,
                               size_t *count_out, tide_error *err)
{
    const uint64_t now = transaction->now_unix_ms;
    switch (change->change) {
    case RETRY:
        return tide_ledger_retry(transaction->tx, &change->filter, now, count_out, &change->changes,
                                 err);
    case ACCEPT:
        return tide_ledger_accept(transaction->tx, &change->filter, now, count_out,
                                  &change->changes, err);
    case CANCEL:
    case END:
        break;
    }
    return tide_ledger_cancel(transaction->tx, &change->filter, now, count_out, change->running,
                              TIDE_JOBS_RUNNING_MAX, &change->running_count, &change->changes, err);
}

static bool row_seen(const struct tide_job_row *row, void *arg)
{
    struct change *change = arg;
    change->asked++;
    change->filter.before_id = row->id; /* the next slice begins below */
    if (change->is_over(row->payload, row->finished_unix_ms, change->is_over_arg))
        change->over[change->count++] = row->id;
    return true;
}

/* To end a job that waits it is canceled first: only what failed or was canceled can be accepted. */
static tide_status change_one(tide_transaction *transaction, struct change *change, uint64_t id,
                              tide_error *err)
{
    const uint64_t now = transaction->now_unix_ms;
    struct tide_job_filter one = TIDE_JOB_FILTER_ANY;
    size_t count = 0, running = 0;
    one.id = id;
    if (change->change == RETRY)
        return tide_ledger_retry(transaction->tx, &one, now, &count, &change->changes, err);
    if (change->change == END)
        TIDE_TRY(tide_ledger_cancel(transaction->tx, &one, now, &count, NULL, 0, &running,
                                    &change->changes, err));
    return tide_ledger_accept(transaction->tx, &one, now, &count, &change->changes, err);
}

static tide_status change_over(tide_transaction *transaction, struct change *change,
                               tide_error *err)
{
    struct tide_job_filter filter = change->filter;
    change->asked = 0;
    TIDE_TRY(tide_ledger_jobs(transaction->engine->ledger, &filter, row_seen, change, err));
    change->more = change->asked == filter.count_max;
    for (size_t i = 0; i < change->count; i++)
        TIDE_TRY(change_one(transaction, change, change->over[i], err));
    return TIDE_OK;
}

static tide_status change_kinds(tide_transaction *transaction, struct change *change,
                                tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < change->kinds_count; i++) {
        size_t count = 0;
        change->filter.kind = change->kinds[i];
        rc = change_kind(transaction, change, &count, err);
        change->count += count;
    }
    return rc;
}

/* At most a slice of each kind. */
static tide_status change_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct change *change = arg;
    tide_changes_clear(&change->changes);
    change->count = 0;
    change->filter.count_max = change->left_max < SLICE ? (size_t)change->left_max : SLICE;
    if (change->filter.id != 0)
        TIDE_TRY(job_must_exist(transaction->engine->ledger, change->filter.id, err));
    TIDE_TRY(tide_ledger_jobs_expect(transaction->engine->ledger, &change->filter, err));
    TIDE_TRY(change->is_over != NULL ? change_over(transaction, change, err)
                                     : change_kinds(transaction, change, err));
    if (change->count + change->running_count > 0)
        TIDE_TRY(tide_tx_hint(transaction->tx, TIDE_HINT_CONTROL, 0, err));
    return TIDE_OK;
}

/* Cancels a running job; a claimed job that has not started ends here. */
void tide_job_cancel_claimed(tide_engine *engine, uint64_t id, uint64_t now_ms)
{
    const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, id);
    if (tracked == NULL || tracked->body == NULL)
        return;
    tide_job *job = tracked->body;
    job->user_cancel = true;
    if (tracked->state == TIDE_JOB_RUNNING)
        tide_world_cancel(engine->world, &job->cancel, TIDE_CANCEL_USER);
    else if (tracked->state == TIDE_JOB_ENDING && tide_finish_goes_on(&job->finish))
        tide_job_cancel_end(job);
    else if (tracked->state == TIDE_JOB_CLAIMED || tracked->state == TIDE_JOB_PARKED)
        tide_job_put_back(job, TIDE_ROW_CANCELED, TIDE_CANCELED, now_ms);
}

static void change_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    struct change *change = arg;
    tide_changes_apply(engine, &change->changes, now_ms);
    for (size_t i = 0; i < change->running_count; i++)
        tide_job_cancel_claimed(engine, change->running[i], now_ms);
    if (change->count > 0 || change->running_count > 0)
        tide_window_reload(engine, now_ms);
}

static tide_status change_slices(tide_engine *engine, struct change *change, uint64_t *total_out,
                                 tide_error *err)
{
    tide_status rc = TIDE_OK;
    *total_out = 0;
    change->count = SLICE;
    change->left_max = change->filter.expects ? change->filter.expected : UINT64_MAX;
    if (change->filter.expects && change->filter.expected == 0)
        change->left_max = SLICE; /* none: the first slice says so */
    while (rc == TIDE_OK && (change->count >= SLICE || change->more) && change->left_max > 0) {
        change->count = 0;
        struct tide_write write = {.run = change_run, .arg = change, .apply = change_apply};
        rc = tide_write_run(engine, &write, err);
        if (rc != TIDE_OK)
            break;
        *total_out += change->count;
        /* The count was compared in the transaction of the first slice.  Jobs that come to match
         * between two slices must not make more of them than the user saw. */
        change->filter.expects = false;
        change->left_max -= change->left_max < change->count ? change->left_max : change->count;
    }
    return rc;
}

static struct change *change_new(tide_engine *engine, enum change_kind kind,
                                 const struct tide_job_filter *filter, tide_error *err)
{
    struct change *change = tide_mem_new(engine->mem, sizeof *change);
    if (change == NULL) {
        (void)tide_error_set(err, TIDE_NO_MEMORY, "no memory to change jobs");
        return NULL;
    }
    change->change = kind;
    change->filter = *filter;
    change->kinds = &filter->kind;
    change->kinds_count = 1;
    tide_changes_init(&change->changes, engine->mem);
    return change;
}

static void change_free(tide_engine *engine, struct change *change)
{
    tide_changes_done(&change->changes);
    tide_mem_free(engine->mem, change, sizeof *change);
}

static tide_status change_all(tide_engine *engine, enum change_kind kind,
                              const struct tide_job_filter *filter, uint64_t *count_out,
                              tide_error *err)
{
    struct change *change = change_new(engine, kind, filter, err);
    if (change == NULL)
        return TIDE_NO_MEMORY;
    const tide_status rc = change_slices(engine, change, count_out, err);
    change_free(engine, change);
    return rc;
}

tide_status tide_jobs_retry(tide_engine *engine, const struct tide_job_filter *filter,
                            uint64_t *count_out, tide_error *err)
{
    return change_all(engine, RETRY, filter, count_out, err);
}

tide_status tide_jobs_accept(tide_engine *engine, const struct tide_job_filter *filter,
                             uint64_t *count_out, tide_error *err)
{
    return change_all(engine, ACCEPT, filter, count_out, err);
}

tide_status tide_jobs_cancel(tide_engine *engine, const struct tide_job_filter *filter,
                             uint64_t *count_out, uint64_t running_out[TIDE_JOBS_RUNNING_MAX],
                             size_t *running_count_out, tide_error *err)
{
    struct change *change = change_new(engine, CANCEL, filter, err);
    if (change == NULL)
        return TIDE_NO_MEMORY;
    const tide_status rc = change_slices(engine, change, count_out, err);
    for (size_t i = 0; running_out != NULL && i < change->running_count; i++)
        running_out[i] = change->running[i];
    if (running_count_out != NULL)
        *running_count_out = change->running_count;
    change_free(engine, change);
    return rc;
}

/* ---- pause and resume -------------------------------------------------------------------- */

struct pause {
    const char *kind, *account; /* NULL: none */
    uint32_t kind_id, account_id;
    bool paused;
};

static tide_status pause_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct pause *pause = arg;
    tide_ledger *ledger = transaction->engine->ledger;
    bool was_paused = false;
    if (pause->kind != NULL)
        TIDE_TRY(tide_ledger_kind_find(ledger, pause->kind, &pause->kind_id, &was_paused, err));
    if (pause->account != NULL)
        TIDE_TRY(tide_ledger_account_find(ledger, pause->account, &pause->account_id, err));
    if (pause->kind_id != 0)
        TIDE_TRY(tide_ledger_kind_pause(transaction->tx, pause->kind_id, pause->paused, err));
    if (pause->account_id != 0)
        TIDE_TRY(tide_ledger_account_pause(transaction->tx, pause->account_id, pause->paused, err));
    return tide_tx_hint(transaction->tx, TIDE_HINT_CONTROL, 0, err);
}

static void pause_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    struct pause *pause = arg;
    struct tide_account *account = tide_engine_account_of(engine, pause->account_id);
    if (account != NULL) {
        account->paused = pause->paused;
        tide_account_refresh(engine, account, now_ms);
        tide_dispatch_put_back(engine, now_ms);
    }
    tide_window_reload(engine, now_ms);
}

tide_status tide_engine_pause(tide_engine *engine, const char *kind, const char *account,
                              bool paused, tide_error *err)
{
    kind = kind != NULL && kind[0] == '\0' ? NULL : kind;
    account = account != NULL && account[0] == '\0' ? NULL : account;
    struct pause pause = {.kind = kind, .account = account, .paused = paused};
    if (kind == NULL && account == NULL)
        return tide_error_set(err, TIDE_INVALID, "name a kind or an account to pause or resume");
    struct tide_write write = {.run = pause_run, .arg = &pause, .apply = pause_apply};
    return tide_write_run(engine, &write, err);
}

/* ---- for programs and systems ----------------------------------------------------------- */

tide_status tide_retry_failed(tide_engine *engine, uint32_t account, const uint32_t *kinds,
                              size_t kinds_count, uint64_t *count_out, tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.account = account;
    filter.state = TIDE_ROW_FAILED;
    struct change *change = change_new(engine, RETRY, &filter, err);
    if (change == NULL)
        return TIDE_NO_MEMORY;
    change->kinds = kinds;
    change->kinds_count = kinds_count;
    const tide_status rc = change_slices(engine, change, count_out, err);
    change_free(engine, change);
    return rc;
}

static tide_status change_where(tide_engine *engine, enum change_kind kind,
                                const struct tide_job_filter *filter, tide_over_fn *is_over,
                                void *arg, tide_error *err)
{
    uint64_t count = 0;
    struct change *change = change_new(engine, kind, filter, err);
    if (change == NULL)
        return TIDE_NO_MEMORY;
    change->is_over = is_over;
    change->is_over_arg = arg;
    const tide_status rc = change_slices(engine, change, &count, err);
    change_free(engine, change);
    return rc;
}

tide_status tide_retry_failed_where(tide_engine *engine, uint32_t account, uint32_t kind,
                                    tide_over_fn *is_wanted, void *arg, tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.account = account;
    filter.kind = kind;
    filter.state = TIDE_ROW_FAILED;
    return change_where(engine, RETRY, &filter, is_wanted, arg, err);
}

tide_status tide_accept_failed(tide_engine *engine, uint32_t account, uint32_t kind,
                               tide_over_fn *is_over, void *arg, tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.account = account;
    filter.kind = kind;
    filter.state = TIDE_ROW_FAILED;
    return change_where(engine, ACCEPT, &filter, is_over, arg, err);
}

tide_status tide_end_waiting(tide_engine *engine, uint32_t account, tide_over_fn *is_over,
                             void *arg, tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.account = account;
    filter.state = TIDE_ROW_PENDING;
    return change_where(engine, END, &filter, is_over, arg, err);
}

void tide_job_restart(tide_engine *engine, uint64_t id)
{
    tide_lock_take(engine->world, engine->lock);
    const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, id);
    if (tracked != NULL && tracked->body != NULL && tracked->state == TIDE_JOB_RUNNING)
        tide_world_cancel(engine->world, &((tide_job *)tracked->body)->cancel, TIDE_CANCEL_PREEMPT);
    tide_lock_drop(engine->world, engine->lock);
}

tide_status tide_cancel_job(tide_engine *engine, uint64_t id, tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    uint64_t count = 0;
    filter.id = id;
    return tide_jobs_cancel(engine, &filter, &count, NULL, NULL, err);
}

tide_status tide_retry_job(tide_engine *engine, uint64_t id, tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    uint64_t count = 0;
    filter.id = id;
    return tide_jobs_retry(engine, &filter, &count, err);
}

struct names {
    const char *kind;
    const char *account; /* NULL: any */
    struct tide_job_filter filter;
};

static tide_status names_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct names *names = arg;
    tide_ledger *ledger = transaction->engine->ledger;
    bool paused = false;
    tide_status rc = tide_ledger_kind_find(ledger, names->kind, &names->filter.kind, &paused, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no kind \"%.200s\"", names->kind);
    if (rc == TIDE_OK && names->account != NULL)
        rc = tide_ledger_account_find(ledger, names->account, &names->filter.account, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no account \"%.200s\"", names->account);
    return rc;
}

tide_status tide_cancel_kind_of(tide_engine *engine, const char *kind, const char *account,
                                tide_error *err)
{
    struct names names = {.kind = kind, .account = account, .filter = TIDE_JOB_FILTER_ANY};
    struct tide_write write = {.run = names_run, .arg = &names};
    uint64_t count = 0;
    TIDE_TRY(tide_write_run(engine, &write, err));
    return tide_jobs_cancel(engine, &names.filter, &count, NULL, NULL, err);
}

tide_status tide_cancel_kind(tide_engine *engine, const char *kind, tide_error *err)
{
    return tide_cancel_kind_of(engine, kind, NULL, err);
}

/* ---- how a job ended --------------------------------------------------------------------- */

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
    TIDE_TRY(tide_transact(engine, ended_run, &ask, err));
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
