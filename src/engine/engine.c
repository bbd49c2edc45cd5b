/* engine.c - opens, starts, waits for and stops an engine; its kinds. */
#include "engine/engine.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/json.h"
#include "engine/options.h"
#include "engine/reload.h"
#include "fleet/fleet.h"
#include "ledger/home.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- kinds ----------------------------------------------------------------- */

struct tide_kind_entry *tide_engine_kind_of(tide_engine *engine, uint32_t id)
{
    uint32_t index = 0;
    if (id == 0 || !tide_map_get(&engine->kind_index, id, &index))
        return NULL;
    return &engine->kinds[index];
}

bool tide_engine_brief_fill(tide_engine *engine, struct tide_brief *brief)
{
    const struct tide_kind_entry *entry = tide_engine_kind_of(engine, brief->kind);
    brief->alone = entry != NULL && entry->kind.one_per_account;
    return entry != NULL;
}

uint8_t tide_engine_kind_priority(tide_engine *engine, uint32_t kind)
{
    const struct tide_kind_entry *entry = tide_engine_kind_of(engine, kind);
    return entry == NULL ? 50 : entry->kind.priority;
}

static bool not_started(tide_engine *engine)
{
    tide_lock_take(engine->world, engine->lock);
    bool open = engine->phase == TIDE_PHASE_OPEN;
    tide_lock_drop(engine->world, engine->lock);
    return open;
}

struct kind_ask {
    const struct tide_kind *kind;
    uint32_t id;
};

static tide_status kind_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct kind_ask *ask = arg;
    TIDE_TRY(tide_ledger_kind(transaction->tx, ask->kind->name,
                              ask->kind->dedupe_running ? TIDE_DEDUPE_PENDING_AND_RUNNING
                                                        : TIDE_DEDUPE_PENDING,
                              &ask->id, err));
    return tide_ledger_kind_splits(transaction->tx, ask->id, ask->kind->items, err);
}

/* Under the lock: the writer runs already and looks at the kinds. */
static tide_status kind_add(tide_engine *engine, const struct tide_kind *kind, uint32_t id,
                            tide_error *err)
{
    if (tide_engine_kind_of(engine, id) != NULL)
        return tide_error_set(err, TIDE_EXISTS, "kind %s is defined already", kind->name);
    const size_t bytes = strlen(kind->name) + 1;
    char *name = tide_mem_new(engine->mem, bytes);
    if (name == NULL || !tide_map_put(&engine->kind_index, id, engine->kinds_count)) {
        tide_mem_free(engine->mem, name, bytes);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for kind %s", kind->name);
    }
    memcpy(name, kind->name, bytes);
    struct tide_kind_entry *entry = &engine->kinds[engine->kinds_count++];
    entry->kind = *kind;
    entry->kind.name = name;
    entry->id = id;
    entry->system = tide_meters_system(&engine->meters, name);
    const uint8_t priority = tide_tuning_priority(&engine->tuning, kind->name);
    if (priority != 0)
        entry->kind.priority = priority;
    if (entry->kind.priority == 0)
        entry->kind.priority = 50;
    if (kind->level == 0)
        entry->kind.level = 4;
    return TIDE_OK;
}

tide_status tide_engine_kind(tide_engine *engine, const struct tide_kind *kind, uint32_t *kind_out,
                             tide_error *err)
{
    if (kind->name == NULL || kind->name[0] == '\0' || strlen(kind->name) > TIDE_NAME_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "a kind's name has 1 to %d bytes",
                              TIDE_NAME_BYTES_MAX);
    if (kind->handler == NULL)
        return tide_error_set(err, TIDE_INVALID, "kind %s has no handler", kind->name);
    if (TIDE_RESERVED_USED(kind))
        return tide_reserved_refuse("struct tide_kind", err);
    if (kind->priority > TIDE_PRIORITY_MAX || kind->level > 4)
        return tide_error_set(err, TIDE_INVALID, "kind %s: priority up to %d, level 1 to 4",
                              kind->name, TIDE_PRIORITY_MAX);
    if (!not_started(engine))
        return tide_error_set(err, TIDE_INVALID, "kind %s: define kinds before the start",
                              kind->name);
    if (engine->kinds_count == TIDE_KINDS_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d kinds", TIDE_KINDS_MAX);

    struct kind_ask ask = {kind, 0};
    struct tide_write write = {.run = kind_run, .arg = &ask};
    TIDE_TRY(tide_write_run(engine, &write, err));
    tide_lock_take(engine->world, engine->lock);
    tide_status rc = kind_add(engine, kind, ask.id, err);
    tide_lock_drop(engine->world, engine->lock);
    if (rc != TIDE_OK)
        return rc;
    if (kind_out != NULL)
        *kind_out = ask.id;
    return TIDE_OK;
}

tide_status tide_engine_kind_named(tide_engine *engine, tide_text name, uint32_t *kind_out,
                                   tide_error *err)
{
    /* Kinds are defined before the start and stay. */
    for (uint32_t i = 0; i < engine->kinds_count; i++)
        if (tide_text_equal(name, tide_text_of(engine->kinds[i].kind.name))) {
            *kind_out = engine->kinds[i].id;
            return TIDE_OK;
        }
    return tide_error_set(err, TIDE_NOT_FOUND,
                          "the engine of process %d cannot run jobs of kind %.*s", (int)getpid(),
                          (int)(name.bytes > 100 ? 100 : name.bytes), name.data);
}

/* ---- opening ------------------------------------------------------------------- */

static void name_this_start(tide_engine *engine)
{
    unsigned char random[16];
    tide_world_random(engine->world, random, sizeof random);
    tide_hex(random, sizeof random, engine->run_id);
    /* Names and tokens are random per start, so that two processes never share
     * one (lesson 4); both stay below 2^62 and above 0. */
    engine->owner = (tide_world_random_u64(engine->world) >> 2) | 1;
    engine->token_next = (tide_world_random_u64(engine->world) >> 2) | 1;
    engine->opened_unix_ms = tide_world_now_unix_ms(engine->world);
    engine->rng = tide_rng_seeded(tide_world_random_u64(engine->world));
}

const char *tide_engine_run(const tide_engine *engine)
{
    return engine->run_id;
}

bool tide_engine_asked_here(const tide_engine *engine, const json_t *payload)
{
    const char *run = json_string_value(json_object_get(payload, "engine"));
    return run != NULL && strcmp(run, engine->run_id) == 0;
}

static tide_status take_state_dir(tide_engine *engine, const char *state_dir, tide_error *err)
{
    if (state_dir == NULL || strlen(state_dir) >= sizeof engine->state_dir)
        return tide_error_set(err, TIDE_INVALID, "no state directory, or its name is too long");
    (void)snprintf(engine->state_dir, sizeof engine->state_dir, "%s", state_dir);
    TIDE_TRY(engine->world->ops->dir_make(engine->world, state_dir, err));
    char path[4096];
    char holder[96];
    (void)snprintf(path, sizeof path, "%s/" TIDE_CONTROL_LOCK, state_dir);
    (void)snprintf(holder, sizeof holder, "engine, process %ld, run %s", (long)getpid(),
                   engine->run_id);
    tide_error busy = {TIDE_OK, 0, ""};
    tide_status rc = tide_home_lock(engine->world, path, holder, false, &engine->file_lock, &busy);
    if (rc == TIDE_BUSY)
        return tide_error_set(
            err, TIDE_BUSY,
            "another process uses %.120s (%.150s): stop it, or use another directory", state_dir,
            busy.text);
    if (rc != TIDE_OK && err != NULL)
        *err = busy;
    return rc;
}

/* Puts back jobs that a crashed engine left running; each costs an attempt (E1.7). */
static tide_status reclaim(tide_engine *engine, tide_error *err)
{
    enum { SLICE = 500 };
    struct tide_changes changes;
    tide_changes_init(&changes, engine->mem);
    tide_status rc = TIDE_OK;
    size_t count = SLICE;
    while (rc == TIDE_OK && count == SLICE) {
        tide_tx *tx = NULL;
        tide_changes_clear(&changes);
        rc = tide_tx_begin(engine->ledger, &tx, err);
        if (rc != TIDE_OK)
            break;
        rc = tide_ledger_reclaim(tx, engine->owner, SLICE, tide_world_now_unix_ms(engine->world),
                                 &count, &changes, err);
        if (rc == TIDE_OK)
            rc = tide_tx_commit(tx, err);
        else
            tide_tx_rollback(tx);
        /* Kept in memory only: after another crash each of them costs one more attempt at most. */
        for (size_t i = 0; rc == TIDE_OK && i < changes.over_budget_count; i++)
            if (!changes.over_budget[i].failed &&
                !tide_map_put(&engine->died_often, changes.over_budget[i].id, 1))
                rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for jobs to split");
    }
    tide_changes_done(&changes);
    return rc;
}

struct streams_load {
    struct tide_stream_row rows[TIDE_STREAMS_MAX];
    struct {
        char name[TIDE_NAME_BYTES_MAX + 1];
        char cursor[256];
    } texts[TIDE_STREAMS_MAX];
    size_t count;
};

/* Collects the rows before their cycles are read: a statement cannot be used while it is read. */
static bool collect_stream(const struct tide_stream_row *row, void *arg)
{
    struct streams_load *load = arg;
    if (load->count == TIDE_STREAMS_MAX)
        return false;
    struct tide_stream_row *copy = &load->rows[load->count];
    char *name = load->texts[load->count].name;
    char *cursor = load->texts[load->count++].cursor;
    *copy = *row;
    (void)snprintf(name, TIDE_NAME_BYTES_MAX + 1, "%.*s", (int)row->name.bytes,
                   row->name.bytes > 0 ? row->name.data : "");
    (void)snprintf(cursor, 256, "%.*s", (int)row->cursor.bytes,
                   row->cursor.bytes > 0 ? row->cursor.data : "");
    copy->name = tide_text_of(name);
    copy->cursor = tide_text_of(cursor);
    return true;
}

static tide_status load_streams(tide_engine *engine, tide_error *err)
{
    struct streams_load *load = tide_mem_new(engine->mem, sizeof *load);
    if (load == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for streams");
    tide_status rc = tide_ledger_streams(engine->ledger, collect_stream, load, err);
    for (size_t i = 0; rc == TIDE_OK && i < load->count; i++)
        rc = tide_engine_stream_load(engine, &load->rows[i], err);
    tide_mem_free(engine->mem, load, sizeof *load);
    return rc;
}

static char *copy_name(tide_mem *mem, const char *name)
{
    size_t bytes = strlen(name) + 1;
    char *copy = tide_mem_new(mem, bytes);
    if (copy != NULL)
        memcpy(copy, name, bytes);
    return copy;
}

static tide_status open_ledger(tide_engine *engine, const char *url, tide_error *err)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/state.db", engine->state_dir);
    engine->ledger_path = copy_name(engine->mem, url != NULL ? url : path);
    if (engine->ledger_path == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the ledger's name");
    struct tide_ledger_options options = {.path = engine->ledger_path,
                                          .run_id = engine->run_id,
                                          .now_unix_ms = tide_world_now_unix_ms(engine->world),
                                          .database_clock = true};
    tide_status rc = tide_ledger_open(engine->world, &options, &engine->ledger, err);
    /* On a shared ledger running jobs may belong to living members: the first look reclaims
     * those of dead ones. */
    if (rc == TIDE_OK && tide_ledger_shared(engine->ledger))
        rc = tide_fleet_new(engine, err);
    else if (rc == TIDE_OK)
        rc = reclaim(engine, err);
    TIDE_TRY(rc);
    TIDE_TRY(tide_engine_accounts_load(engine, err));
    if (engine->fleet == NULL)
        TIDE_TRY(tide_alerting_load(engine, err));
    if (engine->fleet == NULL)
        TIDE_TRY(load_streams(engine, err));
    return TIDE_OK;
}

void tide_engine_cache_settings(tide_engine *engine)
{
    struct tide_tuning tuning = tide_tuning_engine(engine->settings);
    engine->tuning = tuning;
    __atomic_store_n(&engine->interactive_below_bytes, tuning.interactive_below_bytes,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&engine->retry_after_ms_max, tuning.retry_after_ms_max, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->enqueue_slice, tuning.enqueue_slice, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->purge_slice, tuning.purge_slice, __ATOMIC_RELAXED);
    __atomic_store_n(&engine->write_requests_us_max, tuning.write_requests_us_max,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&engine->attempts_max, tuning.attempts_max, __ATOMIC_RELAXED);
    if (engine->log != NULL && tuning.log_level_given)
        tide_log_level_set(engine->log, tuning.log_level);
}

static tide_status make_parts(tide_engine *engine, uint32_t workers, tide_error *err)
{
    tide_world *world = engine->world;
    tide_engine_cache_settings(engine);
    uint32_t window = engine->tuning.window_jobs;
    if (workers == 0)
        workers = engine->tuning.workers;
    if (workers > TIDE_WORKERS_MAX)
        return tide_error_set(err, TIDE_INVALID, "%u workers; at most %d", workers,
                              TIDE_WORKERS_MAX);
    struct tide_lanes_limits limits = tide_tuning_lanes(engine->settings, workers);
    engine->workers_count = engine->workers_wanted = workers;
    tide_transfer_settings(engine);
    tide_map_init(&engine->kind_index, engine->mem);
    tide_map_init(&engine->account_index, engine->mem);
    tide_map_init(&engine->stream_index, engine->mem);
    tide_map_init(&engine->died_often, engine->mem);
    tide_status rc = TIDE_OK;
    tide_cond **conds[] = {&engine->work, &engine->write, &engine->pump, &engine->news,
                           &engine->keeper};
    for (size_t i = 0; rc == TIDE_OK && i < sizeof conds / sizeof conds[0]; i++)
        rc = tide_cond_new(world, conds[i]);
    if (rc == TIDE_OK) /* after the conditions: tide_engine_close() stops what has a lock */
        rc = tide_lock_new(world, &engine->lock);
    if (rc == TIDE_OK)
        rc = tide_tracker_new(window, engine->mem, &engine->tracker);
    if (rc == TIDE_OK)
        rc = tide_tracker_refill_set(engine->tracker, engine->tuning.refill_below_permille,
                                     engine->tuning.refill_to_permille);
    if (rc == TIDE_OK)
        rc = tide_lanes_new(&limits, window, engine->mem, &engine->lanes);
    if (rc == TIDE_OK)
        rc = tide_limits_new(engine, err);
    if (rc == TIDE_OK)
        rc = tide_alerting_new(engine);
    if (rc == TIDE_OK)
        rc = tide_scheduler_new(engine);
    if (rc == TIDE_OK)
        rc = tide_writer_new(engine);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory for the engine");
    return TIDE_OK;
}

/* The world first: everything that an engine needs to be closed is there from its first line. */
static tide_status new_engine(const struct tide_engine_options *options, tide_engine **engine_out,
                              tide_error *err)
{
    tide_mem *mem = tide_mem_heap();
    tide_world *world = options->world;
    if (world == NULL)
        TIDE_TRY(tide_world_real_new(mem, &world, err));
    tide_engine *engine = tide_mem_new(mem, sizeof *engine);
    if (engine == NULL) {
        if (options->world == NULL)
            tide_world_real_free(world);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the engine");
    }
    engine->mem = mem;
    engine->world = world;
    engine->world_owned = options->world == NULL;
    engine->may_take = options->may_take;
    engine->may_take_arg = options->may_take_arg;
    *engine_out = engine;
    return TIDE_OK;
}

tide_status tide_engine_open(const struct tide_engine_options *options, tide_engine **engine_out,
                             tide_error *err)
{
    tide_engine *engine = NULL;
    *engine_out = NULL;
    tide_status rc = tide_options_check(options, err);
    if (rc == TIDE_OK)
        rc = new_engine(options, &engine, err);
    if (rc == TIDE_OK)
        rc = tide_options_settings(engine, options, err);
    if (rc == TIDE_OK) {
        name_this_start(engine);
        tide_options_log(engine, options);
        rc = make_parts(engine, options->workers, err);
    }
    if (rc == TIDE_OK)
        rc = take_state_dir(engine, options->state_dir, err);
    if (rc == TIDE_OK)
        rc = open_ledger(engine, options->ledger, err);
    if (rc == TIDE_OK)
        rc = tide_world_thread(engine->world, "writer", tide_writer_main, engine,
                               &engine->writer_thread, err);
    if (rc == TIDE_OK) /* before the start, because jobs may be enqueued long before it */
        rc = tide_world_thread(engine->world, "keeper", tide_keeper_main, engine,
                               &engine->keeper_thread, err);
    if (rc == TIDE_OK)
        rc = tide_engine_own_kinds(engine, err);
    if (rc == TIDE_OK && !options->no_control_socket)
        rc = tide_control_start(engine, err);
    if (rc != TIDE_OK) {
        (void)tide_engine_close(engine);
        return rc;
    }
    *engine_out = engine;
    return TIDE_OK;
}

/* ---- starting ------------------------------------------------------------------------ */

struct work_ask {
    uint32_t accounts[TIDE_ACCOUNTS_MAX];
    size_t count;
};

static tide_status work_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct work_ask *ask = arg;
    if (transaction->engine->fleet != NULL)
        return TIDE_OK; /* the first look finds it */
    return tide_ledger_accounts_with_work(transaction->engine->ledger, ask->accounts,
                                          TIDE_ACCOUNTS_MAX, &ask->count, err);
}

tide_status tide_engine_start(tide_engine *engine, tide_error *err)
{
    if (!not_started(engine))
        return tide_error_set(err, TIDE_INVALID, "the engine was started before");
    struct work_ask *ask = tide_mem_new(engine->mem, sizeof *ask);
    if (ask == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to start");
    struct tide_write write = {.run = work_run, .arg = ask};
    tide_status rc = tide_write_run(engine, &write, err);
    tide_lock_take(engine->world, engine->lock);
    for (size_t i = 0; rc == TIDE_OK && i < ask->count; i++)
        tide_tracker_more(engine->tracker, ask->accounts[i]);
    uint64_t now_ms = tide_world_now_ms(engine->world);
    for (size_t i = 0; i < engine->accounts_count; i++)
        tide_account_refresh(engine, engine->accounts[i], now_ms);
    if (rc == TIDE_OK) {
        engine->phase = TIDE_PHASE_RUN;
        engine->started_ms = now_ms;
        tide_log_event(engine->log, TIDE_LOG_INFO, tide_world_now_unix_ms(engine->world),
                       "engine started", TIDE_F_CSTR("state", engine->state_dir),
                       TIDE_F_U64("workers", engine->workers_count));
        engine->stuff_to_claim = true;
        tide_cond_wake_all(engine->world, engine->news); /* commands that wait for the start */
        /* The keeper checks the settings file from now on. */
        tide_cond_wake_one(engine->world, engine->keeper);
    }
    tide_lock_drop(engine->world, engine->lock);
    tide_mem_free(engine->mem, ask, sizeof *ask);
    TIDE_TRY(rc);

    TIDE_TRY(tide_bad_retry_marked(engine, err));
    TIDE_TRY(tide_fleet_listen(engine, err));
    TIDE_TRY(tide_world_thread(engine->world, "dispatcher", tide_dispatcher_main, engine,
                               &engine->dispatcher_thread, err));
    TIDE_TRY(tide_notifying_start(engine, err));
    for (uint32_t i = 0; i < engine->workers_count; i++) {
        struct tide_worker *worker = &engine->workers[i];
        worker->engine = engine;
        worker->index = i;
        TIDE_TRY(tide_world_thread(engine->world, "worker", tide_worker_main, worker,
                                   &worker->thread, err));
    }
    tide_lock_take(engine->world, engine->lock);
    engine->workers_started = true;
    tide_reload_workers(engine); /* the settings may have changed meanwhile */
    tide_cond_wake_one(engine->world, engine->write);
    tide_lock_drop(engine->world, engine->lock);
    return TIDE_OK;
}

/* ---- waiting --------------------------------------------------------------------------- */

struct quiet_look {
    tide_engine *engine;
    bool active;
};

static bool look_active(const struct tide_tracked *tracked, void *arg)
{
    struct quiet_look *look = arg;
    struct tide_account *account = tide_engine_account_of(look->engine, tracked->brief.account);
    bool stands = tracked->state == TIDE_JOB_BLOCKED;
    if (account != NULL && (account->halted || account->paused || account->unwanted) &&
        (tracked->state == TIDE_JOB_READY || tracked->state == TIDE_JOB_WAITING))
        stands = true;
    look->active = !stands;
    return stands;
}

static bool busy(tide_engine *engine)
{
    return engine->ended_count > 0 || engine->writes_first != NULL || engine->writer_busy ||
           engine->stuff_to_claim ||
           tide_tracker_count_state(engine->tracker, TIDE_JOB_RUNNING) > 0 ||
           tide_tracker_count_state(engine->tracker, TIDE_JOB_CLAIMED) > 0 ||
           tide_tracker_count_state(engine->tracker, TIDE_JOB_CLAIMING) > 0;
}

static bool is_quiet(tide_engine *engine)
{
    if (busy(engine) || tide_tracker_wants_refill(engine->tracker) || tide_fleet_busy(engine))
        return false;
    struct quiet_look look = {engine, false};
    tide_tracker_each(engine->tracker, look_active, &look);
    return !look.active;
}

void tide_engine_quiet(tide_engine *engine)
{
    if (engine->waiters > 0 && !busy(engine))
        tide_cond_wake_all(engine->world, engine->news);
    /* A stop ends when the writer is idle; it need not use up its grace. */
    if (engine->phase == TIDE_PHASE_GRACE || engine->phase == TIDE_PHASE_CANCEL)
        tide_cond_wake_one(engine->world, engine->pump);
}

static void tell_changed(tide_engine *engine)
{
    if (engine->changed != NULL)
        engine->changed(engine->changed_arg);
}

void tide_engine_watch(tide_engine *engine, void (*changed)(void *arg), void *arg)
{
    tide_lock_take(engine->world, engine->lock);
    engine->changed_arg = arg;
    engine->changed = changed;
    tide_lock_drop(engine->world, engine->lock);
}

void tide_engine_rests(tide_engine *engine)
{
    if (engine->resting || busy(engine))
        return;
    engine->resting = true;
    tell_changed(engine);
}

void tide_engine_wakes(tide_engine *engine)
{
    if (!engine->resting)
        return;
    engine->resting = false;
    tell_changed(engine);
}

tide_status tide_engine_wait(tide_engine *engine, uint64_t wait_ms, tide_error *err)
{
    uint64_t now_us = tide_world_now_us(engine->world);
    uint64_t deadline_us =
        wait_ms > (TIDE_NEVER - now_us) / 1000 ? TIDE_NEVER : now_us + wait_ms * 1000;
    tide_status rc = TIDE_OK;
    tide_lock_take(engine->world, engine->lock);
    engine->waiters++;
    while (rc == TIDE_OK && engine->phase == TIDE_PHASE_RUN && !is_quiet(engine))
        rc = tide_cond_wait(engine->world, engine->news, engine->lock, deadline_us);
    engine->waiters--;
    if (engine->fatal != TIDE_OK) {
        rc = engine->fatal;
        if (err != NULL)
            *err = engine->fatal_err;
    } else if (rc == TIDE_OK && engine->phase != TIDE_PHASE_RUN) {
        rc = tide_error_set(err, TIDE_STOPPED, "the engine was stopped");
    } else if (rc == TIDE_TIMEOUT) {
        (void)tide_error_set(err, rc, "there is still work to do");
    }
    tide_lock_drop(engine->world, engine->lock);
    return rc;
}

void tide_engine_fail(tide_engine *engine, tide_status status, const tide_error *err)
{
    if (engine->fatal == TIDE_OK) {
        engine->fatal = status;
        engine->fatal_err = *err;
        tide_log_event(engine->log, TIDE_LOG_ERROR, tide_world_now_unix_ms(engine->world),
                       "engine stops by itself", TIDE_F_CSTR("status", tide_status_name(status)),
                       TIDE_F_CSTR("detail", err->text));
    }
    if (engine->phase == TIDE_PHASE_OPEN || engine->dispatcher_thread == NULL)
        engine->phase = TIDE_PHASE_ENDED;
    else if (engine->phase == TIDE_PHASE_RUN)
        engine->phase = TIDE_PHASE_GRACE;
    engine->stop_at_ms = 0;
    tell_changed(engine);
    tide_cond_wake_all(engine->world, engine->pump);
    tide_cond_wake_all(engine->world, engine->news);
}

/* ---- stopping ----------------------------------------------------------------------------- */

void tide_engine_stop(tide_engine *engine)
{
    tide_lock_take(engine->world, engine->lock);
    if (engine->phase == TIDE_PHASE_OPEN || engine->dispatcher_thread == NULL) {
        /* Not started, or not completely: no dispatcher runs that could end the grace. */
        engine->phase = TIDE_PHASE_ENDED;
        tide_cond_wake_all(engine->world, engine->write);
        tide_cond_wake_all(engine->world, engine->keeper);
    } else if (engine->phase == TIDE_PHASE_RUN) {
        tide_outcomes_save(engine);
        engine->phase = TIDE_PHASE_GRACE;
        engine->stop_at_ms = tide_world_now_ms(engine->world) + engine->tuning.stop_grace_ms;
        tide_alerting_save_all(engine, tide_world_now_ms(engine->world));
    }
    tell_changed(engine);
    tide_cond_wake_all(engine->world, engine->pump);
    tide_lock_drop(engine->world, engine->lock);
}

static void free_jobs(tide_engine *engine)
{
    while (engine->ended_first != NULL) {
        tide_job *job = engine->ended_first;
        engine->ended_first = job->next;
        tide_job_drop(job);
    }
    while (engine->free_jobs != NULL) {
        tide_job *job = engine->free_jobs;
        engine->free_jobs = job->next;
        tide_mem_free(engine->mem, job, sizeof *job);
    }
}

static bool drop_body(const struct tide_tracked *tracked, void *arg)
{
    (void)arg;
    bool ending = tracked->state == TIDE_JOB_ENDING; /* those are in `ended` */
    if (tracked->body != NULL && !ending)
        tide_job_drop(tracked->body);
    return true;
}

static void free_engine(tide_engine *engine, bool clean)
{
    tide_world *world = engine->world;
    if (engine->tracker != NULL)
        tide_tracker_each(engine->tracker, drop_body, NULL);
    free_jobs(engine);
    tide_fleet_free(engine, clean);
    if (engine->ledger != NULL)
        tide_ledger_close(engine->ledger, clean);
    tide_writer_free(engine);
    tide_alerting_free(engine);
    tide_notifying_free(engine);
    tide_scheduler_free(engine);
    tide_tracker_free(engine->tracker);
    tide_lanes_free(engine->lanes);
    tide_engine_accounts_free(engine);
    tide_mem_free(engine->mem, engine->only, engine->only_count * sizeof *engine->only);
    tide_limits_free(engine);
    for (size_t i = 0; i < engine->streams_count; i++)
        tide_stream_free(engine, engine->streams[i]);
    tide_mem_free(engine->mem, engine->streams, engine->streams_capacity * sizeof *engine->streams);
    for (uint32_t i = 0; i < engine->kinds_count; i++)
        tide_mem_free(engine->mem, (void *)(uintptr_t)engine->kinds[i].kind.name,
                      strlen(engine->kinds[i].kind.name) + 1);
    tide_map_done(&engine->kind_index);
    tide_map_done(&engine->account_index);
    tide_map_done(&engine->stream_index);
    tide_map_done(&engine->died_often);
    tide_cond *conds[] = {engine->work, engine->write, engine->pump, engine->news, engine->keeper};
    for (size_t i = 0; i < sizeof conds / sizeof conds[0]; i++)
        if (conds[i] != NULL)
            tide_cond_free(world, conds[i]);
    if (engine->lock != NULL)
        tide_lock_free(world, engine->lock);
    if (engine->file_lock != NULL)
        tide_file_lock_drop(world, engine->file_lock);
    if (engine->ledger_path != NULL)
        tide_mem_free(engine->mem, engine->ledger_path, strlen(engine->ledger_path) + 1);
    if (engine->settings_owned)
        tide_settings_free(engine->settings);
    if (engine->world_owned)
        tide_world_real_free(world);
    tide_mem_free(engine->mem, engine, sizeof *engine);
}

static void join(tide_world *world, tide_thread **thread)
{
    if (*thread != NULL)
        tide_world_join(world, *thread);
    *thread = NULL;
}

/* true: the worker's handler does not return, so its thread cannot be joined.  An engine that
 * stopped by itself did not wait for its handlers: here they get the time that the supervisor
 * gives them otherwise (E7.1).  In a dead world every handler returns. */
static bool stays(tide_engine *engine, struct tide_worker *worker, uint64_t since_us)
{
    tide_status rc = TIDE_OK;
    tide_lock_take(engine->world, engine->lock);
    const uint64_t until_us =
        since_us + tide_stall_ignored_ms(engine, worker->job) * (uint64_t)1000;
    while (rc == TIDE_OK && worker->job != NULL && !worker->abandoned)
        rc = tide_cond_wait(engine->world, engine->news, engine->lock, until_us);
    if (rc == TIDE_TIMEOUT && worker->job != NULL && !worker->abandoned)
        tide_worker_give_up(engine, worker, tide_world_now_ms(engine->world));
    bool stuck = worker->abandoned && !tide_world_dead(engine->world);
    tide_lock_drop(engine->world, engine->lock);
    return stuck;
}

/* true: a thread is left whose handler does not return. */
static bool join_workers(tide_engine *engine)
{
    bool stuck = false;
    const uint64_t since_us = tide_world_now_us(engine->world);
    for (uint32_t i = 0; i < engine->workers_count; i++) {
        struct tide_worker *worker = &engine->workers[i];
        if (worker->thread == NULL)
            continue;
        if (stays(engine, worker, since_us))
            stuck = true;
        else
            join(engine->world, &worker->thread);
    }
    return stuck;
}

/* Frees requests that were queued after the writer had returned: no caller waits for them. */
static void drop_writes(tide_engine *engine)
{
    for (struct tide_write *write = engine->writes_first, *next; write != NULL; write = next) {
        next = write->next;
        if (write->drop != NULL)
            write->drop(engine, write);
    }
    engine->writes_first = engine->writes_last = NULL;
}

tide_status tide_engine_close(tide_engine *engine)
{
    if (engine == NULL)
        return TIDE_OK;
    tide_world *world = engine->world;
    if (engine->lock != NULL)
        tide_engine_stop(engine);
    tide_control_stop(engine);
    tide_fleet_listen_stop(engine);
    join(world, &engine->dispatcher_thread);
    if (engine->notifying.thread != NULL) {
        /* Without a dispatcher no thread has canceled what it sends. */
        tide_notifying_cancel(engine);
        join(world, &engine->notifying.thread);
    }
    join(world, &engine->writer_thread);
    join(world, &engine->keeper_thread);
    if (join_workers(engine))
        return TIDE_TIMEOUT; /* its thread may still use the engine: free nothing */
    drop_writes(engine);
    bool clean = engine->fatal == TIDE_OK && engine->ended_count == 0 && !tide_world_dead(world);
    free_engine(engine, clean);
    return TIDE_OK;
}

void tide_job_log(const tide_job *job, tide_log_level level, const char *event, tide_text detail)
{
    tide_engine *engine = job->engine;
    if (engine->log == NULL)
        return;
    tide_log_event(engine->log, level, tide_world_now_unix_ms(engine->world), event,
                   TIDE_F_U64("job", job->brief.id), TIDE_F_CSTR("kind", job->kind->kind.name),
                   TIDE_F_CSTR("account", job->account == NULL ? "" : job->account->name),
                   TIDE_F_U64("attempt", (uint64_t)job->brief.attempts + 1),
                   TIDE_F_TEXT("detail", detail));
}

bool tide_engine_check(tide_engine *engine)
{
    size_t ended = 0;
    for (tide_job *job = engine->ended_first; job != NULL; job = job->next)
        ended++;
    return ended == engine->ended_count && tide_tracker_check(engine->tracker) &&
           tide_lanes_check(engine->lanes);
}
