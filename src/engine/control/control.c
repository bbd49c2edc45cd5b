/* control.c - answers commands over the control socket (control.h, decision 11).
 *
 * A handler runs on its connection's own thread and is a caller like any other:
 * it writes through the writer and reads memory under the lock. */
#include "engine/control/control.h"
#include "base/check.h"
#include "engine/control/answers.h"
#include "engine/control/metrics.h"
#include "engine/engine.h"
#include "engine/reload.h"
#include "fleet/fleet.h"
#include "world/socket.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { START_WAIT_MS = 10000, START_LOOK_MS = 50 };

struct tide_control {
    tide_engine *engine;
    tide_socket *socket;
    /* under the engine's lock */
    struct {
        const char *name;
        tide_control_fn *answer;
        void *arg;
    } added[TIDE_CONTROL_ADDED_MAX]; /* tide_control_add() */
    size_t added_count;
    uint32_t added_running;
};

typedef tide_status answer_fn(tide_engine *engine, const json_t *request, tide_json *answer,
                              tide_error *err);

/* ---- looking ------------------------------------------------------------------ */

static tide_status answer_ping(tide_engine *engine, const json_t *request, tide_json *answer,
                               tide_error *err)
{
    (void)request;
    (void)err;
    tide_json_set_u64(answer, "pid", (uint64_t)getpid());
    tide_json_set_cstr(answer, "run", engine->run_id);
    tide_json_set_cstr(answer, "version", TIDE_VERSION);
    tide_json_set_u64(answer, "since", engine->opened_unix_ms);
    return TIDE_OK;
}

static tide_status answer_snapshot(tide_engine *engine, const json_t *request, tide_json *answer,
                                   tide_error *err)
{
    (void)request;
    (void)err;
    enum { WAIT_MS = 1000 }; /* not longer: the ledger may be out of reach */
    tide_fleet_watch_wait(engine, WAIT_MS);
    tide_json snapshot = {.value = tide_engine_snapshot_json(engine)};
    tide_json_set(answer, "snapshot", &snapshot);
    return TIDE_OK;
}

static tide_status answer_stop(tide_engine *engine, const json_t *request, tide_json *answer,
                               tide_error *err)
{
    (void)request;
    (void)answer;
    (void)err;
    tide_engine_stop(engine);
    return TIDE_OK;
}

/* ---- why a job does not run ------------------------------------------------------ */

struct why {
    const char *word;
    const char *text;
    uint64_t until_ms;                  /* 0: unknown */
    const struct tide_outcome *outcome; /* why its account waits; NULL: unknown */
};

static struct why why_account(tide_engine *engine, const struct tide_tracked *tracked,
                              uint64_t now_ms)
{
    struct tide_account *account = tide_engine_account_of(engine, tracked->brief.account);
    struct tide_governor_view view = {.state = TIDE_GOVERNOR_RUNNING};
    if (account != NULL)
        tide_governor_view(account->governor, now_ms, &view);
    if (view.state == TIDE_GOVERNOR_RUNNING)
        return (struct why){.word = TIDE_CONTROL_WHY_QUOTA,
                            .text = "its account runs as many jobs as its quota allows",
                            .until_ms = 0};
    return (struct why){.word = TIDE_CONTROL_WHY_BACKOFF,
                        .text = "its account waits after a refusal or a failure",
                        .until_ms = view.until_ms == UINT64_MAX ? 0 : view.until_ms,
                        .outcome =
                            tide_outcome_is_bad(&account->outcome) ? &account->outcome : NULL};
}

static struct why why_waiting(tide_engine *engine, const struct tide_tracked *tracked,
                              uint64_t now_ms)
{
    switch (tide_lanes_explain(engine->lanes, tracked->brief.id)) {
    case TIDE_WHY_LANE_FULL:
        return (struct why){.word = TIDE_CONTROL_WHY_LANE_FULL,
                            .text = "all workers of its lane are busy",
                            .until_ms = 0};
    case TIDE_WHY_ACCOUNT_FULL:
        return why_account(engine, tracked, now_ms);
    case TIDE_WHY_LEVEL:
        return (struct why){.word = TIDE_CONTROL_WHY_LEVEL,
                            .text = "a user waits for another job of its account",
                            .until_ms = 0};
    case TIDE_WHY_ORDER:
        return (struct why){
            .word = TIDE_CONTROL_WHY_ORDER, .text = "other jobs go first", .until_ms = 0};
    case TIDE_WHY_NOTHING:
    case TIDE_WHY_UNKNOWN:
        break;
    }
    return (struct why){
        .word = TIDE_CONTROL_WHY_STARTING, .text = "it is about to run", .until_ms = 0};
}

static struct why why_tracked(tide_engine *engine, const struct tide_tracked *tracked,
                              uint64_t now_ms)
{
    if (tracked->state == TIDE_JOB_PARKED)
        return (struct why){.word = TIDE_CONTROL_WHY_QUOTA,
                            .text = "it waits for units of its account's quota",
                            .until_ms = tide_tracker_due_at_ms(engine->tracker, tracked->brief.id)};
    if (tracked->state == TIDE_JOB_WAITING)
        return (struct why){.word = TIDE_CONTROL_WHY_BACKOFF,
                            .text = "it may not start before its time",
                            .until_ms = tracked->brief.not_before_ms};
    return why_waiting(engine, tracked, now_ms);
}

static tide_status answer_explain(tide_engine *engine, const json_t *request, tide_json *answer,
                                  tide_error *err)
{
    uint64_t id = 0;
    tide_status rc = tide_json_get_u64(request, "id", &id, err);
    if (rc != TIDE_OK)
        return rc;
    tide_lock_take(engine->world, engine->lock);
    uint64_t now_ms = tide_world_now_ms(engine->world);
    const struct tide_tracked *tracked = id == 0 ? NULL : tide_tracker_find(engine->tracker, id);
    struct why why = {.word = TIDE_CONTROL_WHY_WINDOW,
                      .text = "it is not loaded yet: other jobs are before it"};
    char text[TIDE_OUTCOME_TEXT_BYTES + 100];
    if (tracked != NULL)
        why = why_tracked(engine, tracked, now_ms);
    (void)snprintf(text, sizeof text, "%s%s%s", why.text, why.outcome == NULL ? "" : ": ",
                   why.outcome == NULL ? "" : why.outcome->text);
    tide_lock_drop(engine->world, engine->lock);
    tide_json_set_cstr(answer, "why", why.word);
    tide_json_set_cstr(answer, "text", text);
    if (why.until_ms > now_ms)
        tide_json_set_u64(answer, "until",
                          tide_world_now_unix_ms(engine->world) + (why.until_ms - now_ms));
    return TIDE_OK;
}

/* ---- alerts ------------------------------------------------------------------------ */

static bool alert_visit(const struct tide_alert_row *row, void *arg)
{
    tide_json *alerts = arg;
    tide_json alert;
    tide_json_object(&alert);
    tide_json_set_cstr(&alert, "condition", row->condition);
    tide_json_set_cstr(&alert, "account", row->account_name);
    tide_json_set_cstr(&alert, "level", tide_level_name((enum tide_level)row->level));
    tide_json_set_u64(&alert, "since_unix_ms", row->since_unix_ms);
    tide_json_set_cstr(&alert, "text", row->text);
    tide_json_append(alerts, &alert);
    return true;
}

static tide_status alerts_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_ledger_alerts(transaction->engine->ledger, alert_visit, arg, err);
}

static tide_status answer_alerts(tide_engine *engine, const json_t *request, tide_json *answer,
                                 tide_error *err)
{
    (void)request;
    tide_json alerts;
    tide_json_array(&alerts);
    tide_status rc = tide_transact(engine, alerts_run, &alerts, err);
    tide_json_set(answer, "alerts", &alerts);
    return rc;
}

/* ---- settings (E11) ------------------------------------------------------------------ */

static tide_status answer_reload(tide_engine *engine, const json_t *request, tide_json *answer,
                                 tide_error *err)
{
    (void)request;
    bool changed[TIDE_SETTINGS_COUNT] = {false};
    bool restart[TIDE_SETTINGS_COUNT] = {false};
    tide_status rc = tide_engine_reload(engine, changed, restart, err);
    if (rc != TIDE_OK)
        return rc;
    json_t *lists[2] = {json_array(), json_array()};
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        json_t *name = json_string(tide_setting_info((tide_setting)i)->name);
        if (changed[i])
            (void)json_array_append(lists[0], name);
        if (restart[i])
            (void)json_array_append(lists[1], name);
        json_decref(name);
    }
    tide_json_set(answer, "changed", &(tide_json){.value = lists[0]});
    tide_json_set(answer, "restart", &(tide_json){.value = lists[1]});
    return TIDE_OK;
}

static tide_status answer_metrics(tide_engine *engine, const json_t *request, tide_json *answer,
                                  tide_error *err)
{
    (void)request;
    tide_buf text;
    tide_buf_init(&text, engine->mem, TIDE_METRICS_BYTES_MAX);
    const tide_status rc = tide_metrics_text(engine, &text, err);
    if (rc == TIDE_OK)
        tide_json_set_text(answer, "text", tide_buf_text(&text));
    tide_buf_done(&text);
    return rc;
}

/* ---- ops of the program ---------------------------------------------------------------- */

tide_status tide_control_add(tide_engine *engine, const char *name, tide_control_fn *answer,
                             void *arg, tide_error *err)
{
    struct tide_control *control = engine->control;
    if (control == NULL)
        return TIDE_OK; /* no command can reach this engine */
    tide_lock_take(engine->world, engine->lock);
    const bool full = control->added_count == TIDE_CONTROL_ADDED_MAX;
    if (!full) {
        control->added[control->added_count].name = name;
        control->added[control->added_count].answer = answer;
        control->added[control->added_count++].arg = arg;
    }
    tide_lock_drop(engine->world, engine->lock);
    return full ? tide_error_set(err, TIDE_FULL, "more than %d added ops", TIDE_CONTROL_ADDED_MAX)
                : TIDE_OK;
}

void tide_control_remove_added(tide_engine *engine)
{
    struct tide_control *control = engine->control;
    if (control == NULL)
        return;
    tide_lock_take(engine->world, engine->lock);
    control->added_count = 0;
    while (control->added_running > 0 &&
           tide_cond_wait(engine->world, engine->news, engine->lock, TIDE_NEVER) == TIDE_OK)
        ;
    tide_lock_drop(engine->world, engine->lock);
}

/* false: the program has no such op. */
static bool answer_added(struct tide_control *control, const json_t *request, tide_json *answer,
                         tide_status *rc_out, tide_error *err)
{
    tide_engine *engine = control->engine;
    const char *op = json_string_value(json_object_get(request, "op"));
    tide_control_fn *run = NULL;
    void *arg = NULL;
    tide_lock_take(engine->world, engine->lock);
    for (size_t i = 0; op != NULL && i < control->added_count; i++)
        if (strcmp(op, control->added[i].name) == 0) {
            run = control->added[i].answer;
            arg = control->added[i].arg;
        }
    control->added_running += run != NULL;
    tide_lock_drop(engine->world, engine->lock);
    if (run == NULL)
        return false;
    *rc_out = run(arg, request, answer, err);
    tide_lock_take(engine->world, engine->lock);
    control->added_running--;
    tide_cond_wake_all(engine->world, engine->news);
    tide_lock_drop(engine->world, engine->lock);
    return true;
}

/* ---- the socket ------------------------------------------------------------------------ */

static answer_fn *const answers[TIDE_OPS] = {
    [TIDE_OP_PING] = answer_ping,
    [TIDE_OP_SNAPSHOT] = answer_snapshot,
    [TIDE_OP_EXPLAIN] = answer_explain,
    [TIDE_OP_RETRY] = tide_control_retry,
    [TIDE_OP_CANCEL] = tide_control_cancel,
    [TIDE_OP_ACCEPT] = tide_control_accept,
    [TIDE_OP_PAUSE] = tide_control_pause,
    [TIDE_OP_RESUME] = tide_control_resume,
    [TIDE_OP_HALT] = tide_control_halt,
    [TIDE_OP_ACCOUNT_RESUME] = tide_control_account_resume,
    [TIDE_OP_PURGE] = tide_control_purge,
    [TIDE_OP_BAD_RETRY] = tide_control_bad_retry,
    [TIDE_OP_BAD_ACCEPT] = tide_control_bad_accept,
    [TIDE_OP_ALERTS] = answer_alerts,
    [TIDE_OP_RELOAD] = answer_reload,
    [TIDE_OP_STOP] = answer_stop,
    [TIDE_OP_ENQUEUE] = tide_control_enqueue,
    [TIDE_OP_SIGNED_IN] = tide_control_signed_in,
    [TIDE_OP_METRICS] = answer_metrics,
    [TIDE_OP_SERIES] = tide_control_series,
};

/* Kinds are defined between opening and starting: these requests wait for the start. */
static bool needs_kinds(tide_control_op op)
{
    return op == TIDE_OP_RETRY || op == TIDE_OP_CANCEL || op == TIDE_OP_ACCEPT ||
           op == TIDE_OP_PAUSE || op == TIDE_OP_RESUME || op == TIDE_OP_BAD_RETRY ||
           op == TIDE_OP_BAD_ACCEPT || op == TIDE_OP_ENQUEUE;
}

static tide_status wait_for_start(tide_engine *engine, tide_socket_reply *reply, tide_error *err)
{
    const uint64_t until_ms = tide_world_now_ms(engine->world) + START_WAIT_MS;
    uint64_t now_ms = 0;
    tide_lock_take(engine->world, engine->lock);
    while (engine->phase == TIDE_PHASE_OPEN && (reply == NULL || !tide_socket_gone(reply)) &&
           (now_ms = tide_world_now_ms(engine->world)) < until_ms)
        (void)tide_cond_wait(engine->world, engine->news, engine->lock,
                             (now_ms + START_LOOK_MS) * 1000);
    const bool open = engine->phase == TIDE_PHASE_OPEN;
    tide_lock_drop(engine->world, engine->lock);
    return open ? tide_error_set(err, TIDE_BUSY, "the engine is starting; try again in a moment")
                : TIDE_OK;
}

/* *answer gets the answer, also when it is a refusal.  `reply` NULL: the caller is in this process. */
static void answer_request(struct tide_control *control, const json_t *request,
                           tide_socket_reply *reply, tide_json *answer)
{
    tide_error own = {TIDE_OK, 0, ""};
    tide_control_op op = TIDE_OPS;
    tide_status rc = TIDE_OK;
    tide_control_ok(answer);
    if (!answer_added(control, request, answer, &rc, &own)) {
        rc = tide_control_op_read(request, &op, &own);
        if (rc == TIDE_OK && needs_kinds(op))
            rc = wait_for_start(control->engine, reply, &own);
        if (rc == TIDE_OK)
            rc = answers[op](control->engine, request, answer, &own);
    }
    if (rc == TIDE_OK)
        return;
    tide_json_done(answer);
    own.status = rc;
    tide_control_refusal(&own, answer);
}

json_t *tide_control_here(tide_engine *engine, const json_t *request)
{
    tide_json answer = {.value = NULL};
    if (engine->control != NULL)
        answer_request(engine->control, request, NULL, &answer);
    return answer.value;
}

static tide_status handle(void *arg, tide_text line, tide_socket_reply *reply, tide_error *err)
{
    struct tide_control *control = arg;
    tide_error own = {TIDE_OK, 0, ""};
    json_t *request = NULL;
    tide_json answer;
    own.status = tide_json_parse(line, &request, &own);
    if (own.status == TIDE_OK)
        answer_request(control, request, reply, &answer);
    else
        tide_control_refusal(&own, &answer);
    json_decref(request);
    tide_buf text;
    tide_buf_init(&text, control->engine->mem, 64 << 20);
    tide_status rc = tide_json_line(&answer, &text);
    tide_json_done(&answer);
    if (rc == TIDE_OK && text.bytes > 0)
        rc = tide_socket_say(reply, (tide_text){text.data, text.bytes - 1}); /* no newline */
    tide_buf_done(&text);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "the answer could not be sent");
}

tide_status tide_control_start(tide_engine *engine, tide_error *err)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/" TIDE_CONTROL_SOCKET, engine->state_dir);
    struct tide_control *control = tide_mem_new(engine->mem, sizeof *control);
    if (control == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the control socket");
    control->engine = engine;
    tide_status rc =
        tide_socket_serve(engine->world, engine->mem, path, handle, control, &control->socket, err);
    if (rc != TIDE_OK) {
        tide_mem_free(engine->mem, control, sizeof *control);
        return rc;
    }
    engine->control = control;
    return TIDE_OK;
}

void tide_control_stop(tide_engine *engine)
{
    if (engine->control == NULL)
        return;
    tide_socket_free(engine->control->socket);
    tide_mem_free(engine->mem, engine->control, sizeof *engine->control);
    engine->control = NULL;
}
