#include "assistant/jobs/inside.h"

#include "base/check.h"

#include <stdio.h>

/* J1: three attempts. */
static const struct {
    const char *name;
    tide_handler *handler;
    uint16_t attempts_max; /* 0: TIDE_ASSISTANT_ATTEMPTS_MAX */
    bool dedupe_running;
} kinds[TIDE_ASSISTANT_KINDS] = {
    [TIDE_ASSISTANT_ONBOARD] = {"assistant.onboard", tide_assistant_onboard_run, 0, false},
    [TIDE_ASSISTANT_OFFBOARD] = {TIDE_ASSISTANT_OFFBOARD_KIND, tide_assistant_offboard_run, 0,
                                 false},
    [TIDE_ASSISTANT_SYNC] = {"assistant.sync", tide_assistant_sync_run, 0, false},
    [TIDE_ASSISTANT_CLASSIFY] = {"assistant.classify", tide_assistant_classify_run, 0, false},
    [TIDE_ASSISTANT_DRAFT] = {"assistant.draft", tide_assistant_draft_run, 0, false},
    [TIDE_ASSISTANT_MANUAL_DRAFT] = {"assistant.manual_draft", tide_assistant_manual_run, 0, false},
    [TIDE_ASSISTANT_REWORK] = {"assistant.rework", tide_assistant_rework_run, 0, false},
    [TIDE_ASSISTANT_CLEANUP] = {"assistant.cleanup", tide_assistant_cleanup_run, 0, false},
    [TIDE_ASSISTANT_AGENT] = {"assistant.agent", tide_assistant_agent_run, 0, false},
    [TIDE_ASSISTANT_TICK] = {"assistant.tick", tide_assistant_tick_run, 0, false},
    [TIDE_ASSISTANT_WATCH] = {"assistant.watch", tide_assistant_watch_run, 0, false},
    /* One that runs will have the answer.  Jobs wait behind it, so it must not fail: after as many
     * attempts as others have it only writes down that there is no answer. */
    [TIDE_ASSISTANT_ASK] = {"assistant.ask", tide_assistant_ask_run,
                            TIDE_ASSISTANT_ASK_ATTEMPTS_MAX, true},
};

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    return tide_assistant_tables(tide_transaction_rows(transaction), err);
}

tide_status tide_assistant_jobs_open(const struct tide_assistant_jobs_options *options,
                                     tide_mem *mem, tide_assistant_jobs **jobs_out, tide_error *err)
{
    TIDE_ASSERT(options->model != NULL);
    TIDE_ASSERT(options->gmail != NULL);
    TIDE_ASSERT(options->lender != NULL || options->terms.config->styles_count > 0);
    TIDE_TRY(tide_transact(options->engine, make_tables, NULL, err));
    tide_assistant_jobs *jobs = tide_mem_new(mem, sizeof *jobs);
    if (jobs == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the assistant");
    jobs->options = *options;
    if (options->lender != NULL)
        jobs->lender = *options->lender;
    jobs->options.lender = NULL;
    jobs->mem = mem;
    tide_status rc = tide_lock_new(options->world, &jobs->lock);
    for (unsigned i = 0; rc == TIDE_OK && i < TIDE_ASSISTANT_KINDS; i++) {
        const struct tide_kind kind = {.name = kinds[i].name,
                                       .handler = kinds[i].handler,
                                       .context = jobs,
                                       .attempts_max = kinds[i].attempts_max > 0
                                                           ? kinds[i].attempts_max
                                                           : TIDE_ASSISTANT_ATTEMPTS_MAX,
                                       .dedupe_running = kinds[i].dedupe_running};
        rc = tide_engine_kind(options->engine, &kind, &jobs->kinds[i], err);
    }
    if (rc != TIDE_OK) {
        tide_assistant_jobs_close(jobs);
        return rc;
    }
    *jobs_out = jobs;
    return TIDE_OK;
}

void tide_assistant_jobs_close(tide_assistant_jobs *jobs)
{
    if (jobs == NULL)
        return;
    tide_lock_free(jobs->options.world, jobs->lock);
    tide_mem_free(jobs->mem, jobs, sizeof *jobs);
}

/* ---- requests ---- */

tide_status tide_assistant_onboard(tide_assistant_jobs *jobs, uint32_t account, tide_error *err)
{
    const struct tide_spec spec = {
        .kind = jobs->kinds[TIDE_ASSISTANT_ONBOARD], .account = account, .dedupe = "onboard"};
    return tide_enqueue(jobs->options.engine, &spec, 1, NULL, err);
}

tide_status tide_assistant_sync(tide_assistant_jobs *jobs, uint32_t account, bool full,
                                tide_error *err)
{
    const struct tide_spec spec = {
        .kind = jobs->kinds[TIDE_ASSISTANT_SYNC],
        .account = account,
        .dedupe = full ? TIDE_ASSISTANT_FULL_DEDUPE : TIDE_ASSISTANT_SYNC_DEDUPE,
        .payload = full ? TIDE_ASSISTANT_FULL_PAYLOAD : TIDE_ASSISTANT_SYNC_PAYLOAD};
    return tide_enqueue(jobs->options.engine, &spec, 1, NULL, err);
}

tide_status tide_assistant_reclassify(tide_assistant_jobs *jobs, uint32_t account,
                                      const char *thread_id, tide_error *err)
{
    char dedupe[TIDE_ASSISTANT_KEY_BYTES], payload[TIDE_ASSISTANT_KEY_BYTES];
    (void)snprintf(dedupe, sizeof dedupe, TIDE_ASSISTANT_FORCE_DEDUPE, thread_id);
    (void)snprintf(payload, sizeof payload, TIDE_ASSISTANT_FORCE_PAYLOAD, thread_id);
    const struct tide_spec spec = {.kind = jobs->kinds[TIDE_ASSISTANT_CLASSIFY],
                                   .account = account,
                                   .dedupe = dedupe,
                                   .payload = payload};
    return tide_enqueue(jobs->options.engine, &spec, 1, NULL, err);
}
