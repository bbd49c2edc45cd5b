/* jobs.c - requests that change jobs, accounts and bad items: from names to calls (control.h). */
#include "engine/control/answers.h"
#include "engine/control/control.h"
#include "engine/engine.h"

/* ---- retry, cancel, accept ------------------------------------------------------------ */

/* Names are looked up on the writer's thread, which alone uses the ledger. */
struct filter_ask {
    const json_t *request;
    struct tide_job_filter filter;
};

static tide_status filter_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct filter_ask *ask = arg;
    return tide_control_filter_read(ask->request, transaction->engine->ledger, &ask->filter, err);
}

static tide_status filter_of(tide_engine *engine, const json_t *request,
                             struct tide_job_filter *filter_out, tide_error *err)
{
    struct filter_ask ask = {.request = request};
    struct tide_write write = {.run = filter_run, .arg = &ask};
    const tide_status rc = tide_write_run(engine, &write, err);
    *filter_out = ask.filter;
    return rc;
}

static tide_status count_jobs(tide_engine *engine, const json_t *request, tide_json *answer,
                              tide_status (*change)(tide_engine *engine,
                                                    const struct tide_job_filter *filter,
                                                    uint64_t *count_out, tide_error *err),
                              tide_error *err)
{
    struct tide_job_filter filter;
    uint64_t count = 0;
    tide_status rc = filter_of(engine, request, &filter, err);
    if (rc == TIDE_OK)
        rc = change(engine, &filter, &count, err);
    tide_json_set_u64(answer, "count", count);
    return rc;
}

tide_status tide_control_retry(tide_engine *engine, const json_t *request, tide_json *answer,
                               tide_error *err)
{
    return count_jobs(engine, request, answer, tide_jobs_retry, err);
}

tide_status tide_control_accept(tide_engine *engine, const json_t *request, tide_json *answer,
                                tide_error *err)
{
    return count_jobs(engine, request, answer, tide_jobs_accept, err);
}

tide_status tide_control_cancel(tide_engine *engine, const json_t *request, tide_json *answer,
                                tide_error *err)
{
    struct tide_job_filter filter;
    uint64_t count = 0;
    uint64_t ids[TIDE_JOBS_RUNNING_MAX];
    size_t ids_count = 0;
    tide_status rc = filter_of(engine, request, &filter, err);
    if (rc == TIDE_OK)
        rc = tide_jobs_cancel(engine, &filter, &count, ids, &ids_count, err);
    tide_json running;
    tide_json_array(&running);
    for (size_t i = 0; i < ids_count; i++)
        tide_json_append_u64(&running, ids[i]);
    tide_json_set_u64(answer, "count", count);
    tide_json_set(answer, "running", &running);
    return rc;
}

/* ---- pause and resume -------------------------------------------------------------------- */

static tide_status pause_or_resume(tide_engine *engine, const json_t *request, bool paused,
                                   tide_error *err)
{
    return tide_engine_pause(engine, json_string_value(json_object_get(request, "kind")),
                             json_string_value(json_object_get(request, "account")), paused, err);
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
    TIDE_TRY(tide_control_account(engine, request, &account, err));
    (void)tide_json_get_text(request, "reason", &reason, NULL);
    return tide_engine_halt(engine, account, reason.data, err);
}

tide_status tide_control_account_resume(tide_engine *engine, const json_t *request,
                                        tide_json *answer, tide_error *err)
{
    (void)answer;
    uint32_t account = 0;
    TIDE_TRY(tide_control_account(engine, request, &account, err));
    return tide_engine_resume(engine, account, err);
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

struct bad_ask {
    struct tide_control_filter named;
    struct tide_job_filter filter;
};

static tide_status bad_names_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct bad_ask *ask = arg;
    return tide_control_filter_find(&ask->named, transaction->engine->ledger, &ask->filter, err);
}

static tide_status bad_conditions(const json_t *request, struct tide_bad_filter *filter,
                                  tide_error *err)
{
    tide_text state = TIDE_TEXT_NONE;
    filter->has_state = json_object_get(request, "state") != NULL;
    filter->expects = json_object_get(request, "expect") != NULL;
    tide_status rc =
        filter->has_state ? tide_json_get_text(request, "state", &state, err) : TIDE_OK;
    if (rc == TIDE_OK && filter->has_state && !tide_bad_state_parse(state, &filter->state))
        rc = tide_error_set(err, TIDE_INVALID, "there is no state \"%.*s\"",
                            (int)(state.bytes > 40 ? 40 : state.bytes), state.data);
    if (rc == TIDE_OK && filter->expects)
        rc = tide_json_get_u64(request, "expect", &filter->expected, err);
    return rc;
}

static tide_status bad_filter_of(tide_engine *engine, const json_t *request,
                                 struct tide_bad_filter *filter_out, tide_error *err)
{
    struct bad_ask ask = {
        .named = {.account = json_string_value(json_object_get(request, "account")),
                  .kind = json_string_value(json_object_get(request, "kind"))}};
    struct tide_write write = {.run = bad_names_run, .arg = &ask};
    const tide_status rc = tide_write_run(engine, &write, err);
    *filter_out = (struct tide_bad_filter){.account = ask.filter.account, .kind = ask.filter.kind};
    (void)tide_json_get_text(request, "item", &filter_out->item, NULL);
    return rc == TIDE_OK ? bad_conditions(request, filter_out, err) : rc;
}

tide_status tide_control_bad_retry(tide_engine *engine, const json_t *request, tide_json *answer,
                                   tide_error *err)
{
    struct tide_bad_filter filter;
    uint64_t count = 0;
    tide_status rc = bad_filter_of(engine, request, &filter, err);
    if (rc == TIDE_OK)
        rc = tide_bad_retry(engine, &filter, &count, err);
    tide_json_set_u64(answer, "count", count);
    return rc;
}

tide_status tide_control_bad_accept(tide_engine *engine, const json_t *request, tide_json *answer,
                                    tide_error *err)
{
    struct tide_bad_filter filter;
    uint64_t count = 0;
    tide_status rc = bad_filter_of(engine, request, &filter, err);
    if (rc == TIDE_OK)
        rc = tide_bad_accept(engine, &filter, &count, err);
    tide_json_set_u64(answer, "count", count);
    return rc;
}
