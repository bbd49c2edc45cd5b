/* tick.c - what happens by itself (J4, J28): assistant.tick {do} makes the jobs of all users, and
 * assistant.watch keeps Gmail publishing the changes of a mailbox.
 *
 * The engine's schedules fire once per slot, whichever processes run; a job that fails leaves the next slot
 * as it is. */
#include "assistant/jobs/inside.h"

#include "settings/settings.h"
#include "tidemark_inside.h"

#include <stdio.h>
#include <string.h>

static const struct duty {
    const char *name; /* of the schedule */
    const char *what; /* "do" of its payload */
    tide_assistant_kind kind;
    const char *dedupe, *payload; /* of each user's job */
} duties[] = {
    {"assistant.fallback", "sync", TIDE_ASSISTANT_SYNC, TIDE_ASSISTANT_SYNC_DEDUPE,
     TIDE_ASSISTANT_SYNC_PAYLOAD},
    {"assistant.full", "full", TIDE_ASSISTANT_SYNC, TIDE_ASSISTANT_FULL_DEDUPE,
     TIDE_ASSISTANT_FULL_PAYLOAD},
    {"assistant.watch", "watch", TIDE_ASSISTANT_WATCH, "watch", "{}"},
};
enum { DUTIES = sizeof duties / sizeof duties[0], PAYLOAD_BYTES = 32 };

static void payload_of(const char *what, char payload[PAYLOAD_BYTES])
{
    (void)snprintf(payload, PAYLOAD_BYTES, "{\"do\":\"%s\"}", what);
}

/* ---- a tick ---- */

struct ticking {
    tide_assistant_jobs *jobs;
    const struct duty *duty;
    tide_transaction *transaction;
    tide_status rc;
    tide_error *err;
};

static void enqueue_for(const struct tide_assistant_user *user, void *arg)
{
    struct ticking *ticking = arg;
    const struct tide_spec spec = {.kind = ticking->jobs->kinds[ticking->duty->kind],
                                   .account = user->account,
                                   .dedupe = ticking->duty->dedupe,
                                   .payload = ticking->duty->payload};
    if (ticking->rc == TIDE_OK && user->onboarded_ms > 0)
        ticking->rc = tide_transaction_enqueue(ticking->transaction, &spec, 1, NULL, ticking->err);
}

static tide_status enqueue_all(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct ticking *ticking = arg;
    ticking->transaction = transaction;
    ticking->rc = TIDE_OK;
    ticking->err = err;
    TIDE_TRY(
        tide_assistant_users_each(tide_transaction_rows(transaction), enqueue_for, ticking, err));
    return ticking->rc;
}

tide_status tide_assistant_tick_run(tide_job *job, void *context, tide_error *err)
{
    struct ticking ticking = {.jobs = context};
    json_auto_t *payload = NULL;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    const char *what = json_string_value(json_object_get(payload, "do"));
    for (size_t i = 0; what != NULL && i < DUTIES; i++)
        if (strcmp(what, duties[i].what) == 0)
            ticking.duty = &duties[i];
    if (ticking.duty == NULL)
        return tide_error_set(err, TIDE_INVALID, "the payload does not say what to do");
    return tide_transact(ticking.jobs->options.engine, enqueue_all, &ticking, err);
}

/* ---- the watch ---- */

/* A topic that Gmail refuses, or a server without pushes, costs nothing but time: the fallback syncs. */
tide_status tide_assistant_watch_run(tide_job *job, void *context, tide_error *err)
{
    tide_assistant_jobs *jobs = context;
    struct tide_task task;
    char topic[TIDE_SETTING_TEXT_BYTES];
    tide_engine_setting_text(jobs->options.engine, tide_job_account(job), TIDE_SET_MAIL_PUSH_TOPIC,
                             topic, sizeof topic);
    if (topic[0] == '\0')
        return TIDE_OK;
    tide_status rc = tide_task_begin(&task, jobs, job, err);
    if (rc == TIDE_OK)
        rc = tide_gmail_watch(task.gmail, job, topic, err);
    tide_task_end(&task);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}

/* ---- planning ---- */

tide_status tide_assistant_plan(tide_assistant_jobs *jobs,
                                const struct tide_assistant_config *config, tide_error *err)
{
    tide_engine *engine = jobs->options.engine;
    const uint64_t periods_ms[DUTIES] = {config->fallback_interval_minutes * UINT64_C(60000),
                                         config->full_sync_interval_hours * UINT64_C(3600000),
                                         config->watch_renewal_hours * UINT64_C(3600000)};
    char payload[PAYLOAD_BYTES];
    for (size_t i = 0; i < DUTIES; i++) {
        payload_of(duties[i].what, payload);
        const struct tide_schedule schedule = {.name = duties[i].name,
                                               .kind = jobs->kinds[TIDE_ASSISTANT_TICK],
                                               .period_ms = periods_ms[i],
                                               .payload = payload};
        TIDE_TRY(tide_engine_schedule(engine, &schedule, err));
    }
    return TIDE_OK;
}

tide_status tide_assistant_tick(tide_assistant_jobs *jobs, const char *what, tide_error *err)
{
    char payload[PAYLOAD_BYTES];
    payload_of(what, payload);
    const struct tide_spec spec = {
        .kind = jobs->kinds[TIDE_ASSISTANT_TICK], .dedupe = what, .payload = payload};
    return tide_enqueue(jobs->options.engine, &spec, 1, NULL, err);
}
