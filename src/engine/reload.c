/* reload.c - reads the settings file again and applies what changed (reload.h). */
#include "engine/reload.h"

#include "base/check.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "tidemark_inside.h"

/* ---- applying -------------------------------------------------------------------- */

void tide_reload_workers(tide_engine *engine)
{
    uint32_t wanted = engine->workers_wanted;
    if (engine->phase == TIDE_PHASE_OPEN)
        engine->workers_count = wanted; /* tide_engine_start() starts their threads */
    uint32_t have = engine->workers_count - engine->abandoned_count;
    while (have < wanted && engine->workers_started && engine->phase == TIDE_PHASE_RUN &&
           tide_worker_add(engine))
        have++;
    if (have == 0)
        return; /* every thread is stuck in a handler (supervisor.c) */
    /* With fewer workers the lanes have fewer places; the surplus threads stay idle. */
    struct tide_lanes_limits limits =
        tide_tuning_lanes(engine->settings, wanted < have ? wanted : have);
    tide_lanes_limits_set(engine->lanes, &limits);
}

void tide_engine_workers_want(tide_engine *engine, uint32_t workers)
{
    TIDE_ASSERT(workers <= TIDE_WORKERS_MAX);
    /* The control socket answers already, so that it may even have been stopped. */
    tide_lock_take(engine->world, engine->lock);
    TIDE_ASSERT(engine->phase != TIDE_PHASE_RUN);
    if (tide_setting_layer(engine->settings, TIDE_SET_WORKERS_COUNT) == TIDE_ORIGIN_DEFAULT &&
        engine->workers_wanted == engine->tuning.workers && workers > engine->workers_wanted) {
        engine->workers_wanted = workers;
        tide_reload_workers(engine);
    }
    tide_lock_drop(engine->world, engine->lock);
}

static void apply(tide_engine *engine, const bool changed[TIDE_SETTINGS_COUNT])
{
    tide_engine_cache_settings(engine);
    /* A program that chose a number of workers keeps it until the setting changes. */
    if (changed[TIDE_SET_WORKERS_COUNT])
        engine->workers_wanted = engine->tuning.workers;
    tide_reload_workers(engine);
    (void)tide_tracker_refill_set(engine->tracker, engine->tuning.refill_below_permille,
                                  engine->tuning.refill_to_permille);
    tide_alerting_reload(engine);
    tide_notifying_reload(engine);
    engine->look_at_ms = 0; /* so that new thresholds apply to the present counts */
    tide_transfer_settings(engine);
    tide_limits_reload(engine);
    tide_accounts_reload(engine);
    if (changed[TIDE_SET_PURGE_EVERY])
        tide_schedule_period(engine, TIDE_PURGE_NAME, engine->tuning.purge_every_ms);
    engine->stuff_to_claim = true; /* jobs for new places */
    tide_dispatch(engine, tide_world_now_ms(engine->world));
    tide_cond_wake_one(engine->world, engine->pump);
    bool any = false;
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        any = any || changed[i];
    for (struct tide_settings_follower *at = engine->followers; any && at != NULL; at = at->next)
        at->changed(at->arg);
}

void tide_engine_settings_follow(tide_engine *engine, struct tide_settings_follower *follower)
{
    tide_lock_take(engine->world, engine->lock);
    follower->next = engine->followers;
    engine->followers = follower;
    tide_lock_drop(engine->world, engine->lock);
}

void tide_engine_settings_unfollow(tide_engine *engine, struct tide_settings_follower *follower)
{
    tide_lock_take(engine->world, engine->lock);
    struct tide_settings_follower **at = &engine->followers;
    while (*at != follower) {
        TIDE_ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = follower->next;
    tide_lock_drop(engine->world, engine->lock);
}

static void tell(void *arg, const char *account, tide_setting setting, bool later)
{
    tide_engine *engine = arg;
    tide_log_event(engine->log, TIDE_LOG_INFO, tide_world_now_unix_ms(engine->world),
                   later ? "setting changes at the next start" : "setting changed",
                   TIDE_F_CSTR("name", tide_setting_info(setting)->name),
                   TIDE_F_CSTR("account", account == NULL ? "" : account));
}

tide_status tide_engine_reload(tide_engine *engine, bool changed_out[TIDE_SETTINGS_COUNT],
                               bool restart_out[TIDE_SETTINGS_COUNT], tide_error *err)
{
    tide_settings *fresh = NULL;
    TIDE_TRY(tide_settings_again(engine->settings, engine->world, &fresh, err));
    tide_lock_take(engine->world, engine->lock);
    tide_status rc = tide_settings_take(engine->settings, fresh, changed_out, restart_out, err);
    if (rc == TIDE_OK)
        apply(engine, changed_out);
    tide_lock_drop(engine->world, engine->lock);
    if (rc == TIDE_OK)
        tide_settings_changes(fresh, tell, engine);
    tide_settings_free(fresh);
    return rc;
}

/* ---- looking ----------------------------------------------------------------------- */

/* A hash of the file's content, never 0; a file that is missing or cannot be read has
 * a hash of its own. */
static uint64_t print_of(tide_engine *engine, const char *path)
{
    tide_auto_buf content = tide_buf_in(engine->mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_status rc =
        tide_file_read(engine->world, path, TIDE_SETTINGS_FILE_BYTES_MAX, &content, NULL);
    uint64_t print = TIDE_HASH_START ^ (uint64_t)(int64_t)rc;
    if (rc == TIDE_OK)
        print = tide_hash(print, tide_buf_text(&content));
    return print | 1;
}

/* Logs each error once: a file that is replaced between hashing and loading is loaded twice,
 * because its hash is that of the previous content. */
static void tell_refused(tide_engine *engine, tide_status rc, const tide_error *err)
{
    const uint64_t print = tide_hash(1, tide_text_of(err->text)) | 1;
    if (print == engine->settings_refused)
        return;
    engine->settings_refused = print;
    tide_log_event(engine->log, TIDE_LOG_ERROR, tide_world_now_unix_ms(engine->world),
                   "settings refused", TIDE_F_CSTR("status", tide_status_name(rc)),
                   TIDE_F_CSTR("detail", err->text));
}

static void look(tide_engine *engine, const char *path)
{
    uint64_t print = print_of(engine, path);
    if (print == engine->settings_print)
        return;
    engine->settings_print = print;
    bool changed[TIDE_SETTINGS_COUNT] = {false};
    bool restart[TIDE_SETTINGS_COUNT] = {false};
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = tide_engine_reload(engine, changed, restart, &err);
    if (rc == TIDE_NO_MEMORY)
        engine->settings_print = 0; /* not an error of the file: try again */
    if (rc != TIDE_OK)
        tell_refused(engine, rc, &err);
    else
        engine->settings_refused = 0;
}

uint64_t tide_reload_look(tide_engine *engine, uint64_t now_ms)
{
    const char *path = tide_settings_file(engine->settings);
    if (path == NULL)
        return TIDE_NEVER; /* RLD2 */
    /* Not before the start: opening an engine reads the settings without the lock. */
    if (engine->phase == TIDE_PHASE_OPEN)
        return TIDE_NEVER;
    const uint64_t asked_ms = engine->settings_look_ms;
    if (now_ms >= asked_ms) {
        tide_lock_drop(engine->world, engine->lock);
        look(engine, path);
        tide_lock_take(engine->world, engine->lock);
        if (engine->settings_look_ms == asked_ms)
            engine->settings_look_ms = engine->settings_watched && engine->settings_print != 0
                                           ? TIDE_NEVER
                                           : now_ms + engine->tuning.reload_every_ms;
    }
    return engine->settings_look_ms;
}

void tide_engine_settings_watched(tide_engine *engine)
{
    tide_lock_take(engine->world, engine->lock);
    engine->settings_watched = true;
    tide_lock_drop(engine->world, engine->lock);
    tide_engine_settings_changed(engine); /* it may have, before the caller watched it */
}

void tide_engine_settings_changed(tide_engine *engine)
{
    tide_lock_take(engine->world, engine->lock);
    /* Another value than the last one, so that a look that is under way is not the last. */
    engine->settings_look_ms = engine->settings_look_ms == 0 ? 1 : 0;
    tide_cond_wake_one(engine->world, engine->keeper);
    tide_lock_drop(engine->world, engine->lock);
}
