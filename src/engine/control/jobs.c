/* jobs.c - commands that change jobs, accounts and bad items while the engine runs.
 *
 * Each change is one transaction per slice (E2.5); the window is reloaded afterwards, so that
 * engine.h N1 holds again. */
#include "engine/control/control.h"
#include "engine/engine.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 500, RUNNING_MAX = TIDE_CLAIM_MAX };

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

/* ---- retry, cancel, accept ------------------------------------------------------------ */

struct change {
    const json_t *request; /* NULL: failed jobs of an account and of these kinds */
    uint32_t account;
    const uint32_t *kinds;
    size_t kinds_count;
    tide_control_op op;
    tide_failed_fn *is_over; /* of an accept without a request: which of them */
    void *is_over_arg;
    uint64_t over[SLICE];
    struct tide_changes changes;
    size_t count; /* of this slice */
    uint64_t running[RUNNING_MAX];
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
    tide_status rc = tide_ledger_jobs(ledger, &filter, job_seen, &seen, err);
    if (rc == TIDE_OK && !seen)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no job %" PRIu64, id);
    return rc;
}

/* At most a slice of each kind. */
static tide_status retry_kinds(tide_transaction *transaction, struct change *change,
                               tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    tide_status rc = TIDE_OK;
    filter.account = change->account;
    filter.state = TIDE_ROW_FAILED;
    filter.count_max = SLICE;
    change->count = 0;
    for (size_t i = 0; rc == TIDE_OK && i < change->kinds_count; i++) {
        size_t count = 0;
        filter.kind = change->kinds[i];
        rc = tide_ledger_retry(transaction->tx, &filter, transaction->now_unix_ms, &count,
                               &change->changes, err);
        change->count += count;
    }
    if (rc == TIDE_OK && change->count > 0)
        rc = tide_tx_hint(transaction->tx, TIDE_HINT_CONTROL, 0, err);
    return rc;
}

static bool failed_seen(const struct tide_job_row *row, void *arg)
{
    struct change *change = arg;
    if (change->is_over(row->payload, row->finished_unix_ms, change->is_over_arg))
        change->over[change->count++] = row->id;
    return change->count < SLICE;
}

static tide_status accept_over(tide_transaction *transaction, struct change *change,
                               tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.account = change->account;
    filter.kind = change->kinds[0];
    filter.state = TIDE_ROW_FAILED;
    filter.count_max = SLICE;
    change->count = 0;
    tide_status rc =
        tide_ledger_jobs(transaction->engine->ledger, &filter, failed_seen, change, err);
    if (rc == TIDE_OK && change->count > 0)
        rc = tide_tx_hint(transaction->tx, TIDE_HINT_CONTROL, 0, err);
    for (size_t i = 0; rc == TIDE_OK && i < change->count; i++) {
        size_t count = 0;
        filter.id = change->over[i];
        rc = tide_ledger_accept(transaction->tx, &filter, transaction->now_unix_ms, &count,
                                &change->changes, err);
    }
    return rc;
}

static tide_status change_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct change *change = arg;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    tide_tx *tx = transaction->tx;
    uint64_t now = transaction->now_unix_ms;
    tide_changes_clear(&change->changes);
    if (change->is_over != NULL)
        return accept_over(transaction, change, err);
    if (change->request == NULL)
        return retry_kinds(transaction, change, err);
    tide_status rc =
        tide_control_filter_read(change->request, transaction->engine->ledger, &filter, err);
    filter.count_max = SLICE;
    if (rc == TIDE_OK && filter.id != 0)
        rc = job_must_exist(transaction->engine->ledger, filter.id, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_tx_hint(tx, TIDE_HINT_CONTROL, 0, err);
    if (rc != TIDE_OK)
        return rc;
    if (change->op == TIDE_OP_RETRY)
        return tide_ledger_retry(tx, &filter, now, &change->count, &change->changes, err);
    if (change->op == TIDE_OP_ACCEPT)
        return tide_ledger_accept(tx, &filter, now, &change->count, &change->changes, err);
    return tide_ledger_cancel(tx, &filter, now, &change->count, change->running, RUNNING_MAX,
                              &change->running_count, &change->changes, err);
}

/* Cancels a running job; a claimed job that has not started ends here. */
void tide_control_cancel_claimed(tide_engine *engine, uint64_t id, uint64_t now_ms)
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
        tide_control_cancel_claimed(engine, change->running[i], now_ms);
    if (change->count > 0 || change->running_count > 0)
        tide_window_reload(engine, now_ms);
}

static tide_status change_slices(tide_engine *engine, struct change *change, uint64_t *total_out,
                                 tide_error *err)
{
    tide_status rc = TIDE_OK;
    *total_out = 0;
    change->count = SLICE;
    while (rc == TIDE_OK && change->count >= SLICE) {
        change->count = 0;
        struct tide_write write = {.run = change_run, .arg = change, .apply = change_apply};
        rc = tide_write_run(engine, &write, err);
        *total_out += rc == TIDE_OK ? change->count : 0;
    }
    return rc;
}

tide_status tide_retry_failed(tide_engine *engine, uint32_t account, const uint32_t *kinds,
                              size_t kinds_count, uint64_t *count_out, tide_error *err)
{
    struct change *change = tide_mem_new(engine->mem, sizeof *change);
    if (change == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to start failed jobs again");
    *change = (struct change){
        .account = account, .kinds = kinds, .kinds_count = kinds_count, .op = TIDE_OP_RETRY};
    tide_changes_init(&change->changes, engine->mem);
    const tide_status rc = change_slices(engine, change, count_out, err);
    tide_changes_done(&change->changes);
    tide_mem_free(engine->mem, change, sizeof *change);
    return rc;
}

tide_status tide_accept_failed(tide_engine *engine, uint32_t account, uint32_t kind,
                               tide_failed_fn *is_over, void *arg, tide_error *err)
{
    uint64_t count = 0;
    struct change *change = tide_mem_new(engine->mem, sizeof *change);
    if (change == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to accept failed jobs");
    *change = (struct change){.account = account,
                              .kinds = &kind,
                              .kinds_count = 1,
                              .op = TIDE_OP_ACCEPT,
                              .is_over = is_over,
                              .is_over_arg = arg};
    tide_changes_init(&change->changes, engine->mem);
    const tide_status rc = change_slices(engine, change, &count, err);
    tide_changes_done(&change->changes);
    tide_mem_free(engine->mem, change, sizeof *change);
    return rc;
}

static tide_status change_jobs(tide_engine *engine, const json_t *request, tide_control_op op,
                               tide_json *answer, tide_error *err)
{
    struct change *change = tide_mem_new(engine->mem, sizeof *change);
    if (change == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for this command");
    change->request = request;
    change->op = op;
    tide_changes_init(&change->changes, engine->mem);
    uint64_t total = 0;
    tide_status rc = change_slices(engine, change, &total, err);
    tide_json running;
    tide_json_array(&running);
    for (size_t i = 0; i < change->running_count; i++)
        tide_json_append_u64(&running, change->running[i]);
    tide_json_set_u64(answer, "count", total);
    tide_json_set(answer, "running", &running);
    tide_changes_done(&change->changes);
    tide_mem_free(engine->mem, change, sizeof *change);
    return rc;
}

tide_status tide_control_retry(tide_engine *engine, const json_t *request, tide_json *answer,
                               tide_error *err)
{
    return change_jobs(engine, request, TIDE_OP_RETRY, answer, err);
}

tide_status tide_control_cancel(tide_engine *engine, const json_t *request, tide_json *answer,
                                tide_error *err)
{
    return change_jobs(engine, request, TIDE_OP_CANCEL, answer, err);
}

tide_status tide_control_accept(tide_engine *engine, const json_t *request, tide_json *answer,
                                tide_error *err)
{
    return change_jobs(engine, request, TIDE_OP_ACCEPT, answer, err);
}

static tide_status change_one(tide_engine *engine, uint64_t id, tide_control_op op, tide_error *err)
{
    json_t *request = json_pack("{s:{s:I}}", "filter", "id", (json_int_t)id);
    tide_json answer;
    tide_json_object(&answer);
    tide_status rc =
        request == NULL ? TIDE_NO_MEMORY : change_jobs(engine, request, op, &answer, err);
    tide_json_done(&answer);
    json_decref(request);
    return rc;
}

tide_status tide_cancel_job(tide_engine *engine, uint64_t id, tide_error *err)
{
    return change_one(engine, id, TIDE_OP_CANCEL, err);
}

tide_status tide_retry_job(tide_engine *engine, uint64_t id, tide_error *err)
{
    return change_one(engine, id, TIDE_OP_RETRY, err);
}

/* ---- pause and resume -------------------------------------------------------------------- */

struct pause {
    tide_text kind, account;
    uint32_t kind_id, account_id;
    bool paused;
};

static tide_status pause_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct pause *pause = arg;
    tide_ledger *ledger = transaction->engine->ledger;
    bool was_paused = false;
    tide_status rc = TIDE_OK;
    if (pause->kind.bytes > 0)
        rc = tide_ledger_kind_find(ledger, pause->kind.data, &pause->kind_id, &was_paused, err);
    if (rc == TIDE_OK && pause->account.bytes > 0)
        rc = tide_ledger_account_find(ledger, pause->account.data, &pause->account_id, err);
    if (rc == TIDE_OK && pause->kind_id != 0)
        rc = tide_ledger_kind_pause(transaction->tx, pause->kind_id, pause->paused, err);
    if (rc == TIDE_OK && pause->account_id != 0)
        rc = tide_ledger_account_pause(transaction->tx, pause->account_id, pause->paused, err);
    return rc == TIDE_OK ? tide_tx_hint(transaction->tx, TIDE_HINT_CONTROL, 0, err) : rc;
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

static tide_status pause_or_resume(tide_engine *engine, const json_t *request, bool paused,
                                   tide_error *err)
{
    struct pause pause = {.paused = paused};
    (void)tide_json_get_text(request, "kind", &pause.kind, err);
    (void)tide_json_get_text(request, "account", &pause.account, err);
    if (pause.kind.bytes + pause.account.bytes == 0)
        return tide_error_set(err, TIDE_INVALID, "name a kind or an account to pause or resume");
    struct tide_write write = {.run = pause_run, .arg = &pause, .apply = pause_apply};
    return tide_write_run(engine, &write, err);
}

tide_status tide_control_pause(tide_engine *engine, const json_t *request, tide_json *answer,
                               tide_error *err)
{
    (void)answer;
    return pause_or_resume(engine, request, true, err);
}

tide_status tide_control_resume(tide_engine *engine, const json_t *request, tide_json *answer,
                                tide_error *err)
{
    (void)answer;
    return pause_or_resume(engine, request, false, err);
}

/* ---- accounts ---------------------------------------------------------------------------- */

tide_status tide_control_account(tide_engine *engine, const json_t *request, uint32_t *id_out,
                                 tide_error *err)
{
    tide_text name = TIDE_TEXT_NONE;
    tide_status rc = tide_json_get_text(request, "account", &name, err);
    if (rc != TIDE_OK)
        return tide_error_set(err, TIDE_INVALID, "name an account");
    rc = TIDE_NOT_FOUND;
    tide_lock_take(engine->world, engine->lock);
    for (size_t i = 0; i < engine->accounts_count; i++)
        if (tide_text_equal(name, tide_text_of(engine->accounts[i]->name))) {
            *id_out = engine->accounts[i]->id;
            rc = TIDE_OK;
        }
    tide_lock_drop(engine->world, engine->lock);
    return rc == TIDE_OK
               ? rc
               : tide_error_set(err, rc, "there is no account %.*s", (int)name.bytes, name.data);
}

tide_status tide_control_halt(tide_engine *engine, const json_t *request, tide_json *answer,
                              tide_error *err)
{
    (void)answer;
    uint32_t account = 0;
    tide_text reason = TIDE_TEXT("by command");
    tide_status rc = tide_control_account(engine, request, &account, err);
    if (rc != TIDE_OK)
        return rc;
    (void)tide_json_get_text(request, "reason", &reason, NULL);
    return tide_engine_halt(engine, account, reason.data, err);
}

tide_status tide_control_account_resume(tide_engine *engine, const json_t *request,
                                        tide_json *answer, tide_error *err)
{
    (void)answer;
    uint32_t account = 0;
    tide_status rc = tide_control_account(engine, request, &account, err);
    return rc == TIDE_OK ? tide_engine_resume(engine, account, err) : rc;
}

tide_status tide_control_purge(tide_engine *engine, const json_t *request, tide_json *answer,
                               tide_error *err)
{
    uint64_t older_ms = 0;
    uint64_t count = 0;
    tide_status rc = tide_json_get_u64(request, "older_than_ms", &older_ms, err);
    if (rc == TIDE_OK)
        rc = tide_engine_purge(engine, older_ms, NULL, &count, err);
    tide_json_set_u64(answer, "count", count);
    return rc;
}

/* ---- bad items ------------------------------------------------------------------------------ */

/* Rows are collected before anything is written: a write during the visit could make it see a
 * row twice or not at all. */
struct bad_change {
    tide_engine *engine;
    const json_t *request; /* NULL: at start, those marked for a retry */
    tide_bad_state to;
    struct bad_key {
        uint32_t account, kind;
        tide_text item;
    } keys[SLICE];
    size_t count;
    struct bad_key after; /* at start: the last row of the slice before; rows keep their state */
    char after_item[TIDE_ITEM_BYTES_MAX + 1];
    tide_text item; /* empty: any */
    tide_arena arena;
};

/* Rows come in order of account, kind and item. */
static bool comes_after(const struct tide_bad_row *row, const struct bad_key *key)
{
    if (row->account != key->account)
        return row->account > key->account;
    if (row->kind != key->kind)
        return row->kind > key->kind;
    const size_t bytes = row->item.bytes < key->item.bytes ? row->item.bytes : key->item.bytes;
    const int order = bytes == 0 ? 0 : memcmp(row->item.data, key->item.data, bytes);
    return order != 0 ? order > 0 : row->item.bytes > key->item.bytes;
}

static bool bad_collect(const struct tide_bad_row *row, void *arg)
{
    struct bad_change *change = arg;
    if (change->request == NULL ? row->state != TIDE_BAD_RETRYING : row->state == change->to)
        return true;
    if (change->request == NULL && !comes_after(row, &change->after))
        return true;
    if (change->item.bytes > 0 && !tide_text_equal(change->item, row->item))
        return true;
    struct tide_kind_entry *kind = tide_engine_kind_of(change->engine, row->kind);
    if (change->to == TIDE_BAD_RETRYING && (kind == NULL || !kind->kind.items))
        return true; /* no handler here: it stays as it is */
    char *item = tide_arena_copy(&change->arena, row->item.data, row->item.bytes);
    if (item == NULL)
        return false;
    change->keys[change->count++] =
        (struct bad_key){row->account, row->kind, {item, row->item.bytes}};
    return change->count < SLICE;
}

static tide_status bad_retry_one(tide_transaction *transaction, const struct bad_key *key,
                                 tide_error *err)
{
    json_t *payload = json_pack("{s:[s%]}", "items", key->item.data, key->item.bytes);
    char *text = payload == NULL ? NULL : json_dumps(payload, JSON_COMPACT);
    json_decref(payload);
    if (text == NULL)
        return tide_error_set(err, TIDE_INVALID, "the item is not text");
    char dedupe[TIDE_DEDUPE_BYTES_MAX + 1];
    int bytes = snprintf(dedupe, sizeof dedupe, "bad:%.*s", (int)key->item.bytes, key->item.data);
    struct tide_spec spec = {.kind = key->kind, .account = key->account, .payload = text};
    if (bytes > 0 && (size_t)bytes < sizeof dedupe)
        spec.dedupe = dedupe;
    tide_status rc = tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
    free(text);
    return rc;
}

static tide_status bad_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct bad_change *change = arg;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct tide_control_filter named = {.account = NULL};
    tide_ledger *ledger = transaction->engine->ledger;
    tide_status rc = TIDE_OK;
    if (change->request != NULL) {
        named.account = json_string_value(json_object_get(change->request, "account"));
        named.kind = json_string_value(json_object_get(change->request, "kind"));
        (void)tide_json_get_text(change->request, "item", &change->item, NULL);
        rc = tide_control_filter_find(&named, ledger, &filter, err);
    }
    tide_arena_reset(&change->arena);
    change->count = 0;
    if (rc == TIDE_OK)
        rc = tide_ledger_bad_list(ledger, filter.account, filter.kind, bad_collect, change, err);
    for (size_t i = 0; rc == TIDE_OK && i < change->count; i++) {
        const struct bad_key *key = &change->keys[i];
        rc = tide_ledger_bad_state(transaction->tx, key->account, key->kind, key->item, change->to,
                                   transaction->now_unix_ms, err);
        if (rc == TIDE_OK && change->to == TIDE_BAD_RETRYING)
            rc = bad_retry_one(transaction, key, err);
    }
    return rc;
}

static void remember_last(struct bad_change *change)
{
    const struct bad_key *last = &change->keys[change->count - 1];
    const int bytes = snprintf(change->after_item, sizeof change->after_item, "%.*s",
                               (int)last->item.bytes, last->item.data);
    change->after = (struct bad_key){
        last->account, last->kind, {change->after_item, bytes < 0 ? 0 : (size_t)bytes}};
}

static tide_status bad_change(tide_engine *engine, const json_t *request, tide_bad_state to,
                              uint64_t *total_out, tide_error *err)
{
    struct bad_change *change = tide_mem_new(engine->mem, sizeof *change);
    if (change == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for this command");
    change->engine = engine;
    change->request = request;
    change->to = to;
    tide_arena_init(&change->arena, engine->mem, 4 << 20);
    uint64_t total = 0;
    tide_status rc = TIDE_OK;
    do {
        rc = tide_transact(engine, bad_run, change, err);
        total += rc == TIDE_OK ? change->count : 0;
        if (rc == TIDE_OK && change->count > 0)
            remember_last(change);
    } while (rc == TIDE_OK && change->count == SLICE);
    *total_out = total;
    tide_arena_done(&change->arena);
    tide_mem_free(engine->mem, change, sizeof *change);
    return rc;
}

tide_status tide_engine_retry_bad(tide_engine *engine, tide_error *err)
{
    uint64_t total = 0;
    return bad_change(engine, NULL, TIDE_BAD_RETRYING, &total, err);
}

tide_status tide_control_bad_retry(tide_engine *engine, const json_t *request, tide_json *answer,
                                   tide_error *err)
{
    uint64_t total = 0;
    tide_status rc = bad_change(engine, request, TIDE_BAD_RETRYING, &total, err);
    tide_json_set_u64(answer, "count", total);
    return rc;
}

tide_status tide_control_bad_accept(tide_engine *engine, const json_t *request, tide_json *answer,
                                    tide_error *err)
{
    uint64_t total = 0;
    tide_status rc = bad_change(engine, request, TIDE_BAD_ACCEPTED, &total, err);
    tide_json_set_u64(answer, "count", total);
    return rc;
}
