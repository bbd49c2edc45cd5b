/* job.c - functions that a handler calls while it runs its job. */
#include "engine/engine.h"
#include "base/check.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    JOB_ARENA_BYTES_MAX = 64 << 20, /* children, items and resume data of one run */
};

/* ---- allocation --------------------------------------------------------------- */

static void job_to_free_list(tide_engine *engine, tide_job *job)
{
    job->next = engine->free_jobs;
    engine->free_jobs = job;
    engine->free_jobs_count++;
}

bool tide_jobs_reserve(tide_engine *engine, size_t count)
{
    while (engine->free_jobs_count < engine->jobs_reserved + count) {
        tide_job *job = tide_mem_new(engine->mem, sizeof *job);
        if (job == NULL)
            return false;
        job_to_free_list(engine, job);
    }
    engine->jobs_reserved += count;
    return true;
}

tide_job *tide_job_take(tide_engine *engine, const struct tide_brief *brief,
                        struct tide_job_body *body)
{
    tide_job *job = engine->free_jobs;
    TIDE_ASSERT(engine->jobs_reserved > 0 && job != NULL);
    engine->free_jobs = job->next;
    engine->free_jobs_count--;
    engine->jobs_reserved--;
    memset(job, 0, sizeof *job);
    job->engine = engine;
    job->brief = *brief;
    job->brief.attempts = body->attempts; /* from the claimed row */
    job->body = body;
    job->kind = tide_engine_kind_of(engine, brief->kind);
    TIDE_ASSERT(job->kind != NULL);
    job->account = tide_engine_account_of(engine, brief->account);
    tide_arena_init(&job->arena, engine->mem, JOB_ARENA_BYTES_MAX);
    return job;
}

void tide_job_drop(tide_job *job)
{
    tide_engine *engine = job->engine;
    tide_job_body_free(engine->mem, job->body);
    tide_arena_done(&job->arena);
    tide_new_rows_done(&job->effects_transaction.new_rows, engine->mem);
    tide_mem_free(engine->mem, job->children, job->children_capacity * sizeof *job->children);
    job->children = NULL;
    job_to_free_list(engine, job);
}

/* ---- facts --------------------------------------------------------------------- */

uint64_t tide_job_id(const tide_job *job)
{
    return job->brief.id;
}

uint32_t tide_job_account(const tide_job *job)
{
    return job->brief.account;
}

uint64_t tide_job_cycle(const tide_job *job)
{
    return job->brief.cycle;
}

uint16_t tide_job_attempt(const tide_job *job)
{
    return (uint16_t)(job->body->attempts + 1);
}

bool tide_job_forced(const tide_job *job)
{
    return job->body->force;
}

tide_text tide_job_payload(const tide_job *job)
{
    return job->body->payload;
}

tide_text tide_job_resume(const tide_job *job)
{
    return job->resume_set ? job->resume : job->body->resume;
}

tide_engine *tide_job_engine(const tide_job *job)
{
    return job->engine;
}

uint64_t tide_job_now_ms(const tide_job *job)
{
    return tide_world_now_ms(job->engine->world);
}

bool tide_job_canceled(const tide_job *job)
{
    return tide_canceled(&job->cancel) != TIDE_CANCEL_NONE;
}

const struct tide_cancel *tide_job_cancellation(const tide_job *job)
{
    return &job->cancel;
}

void tide_job_beat(tide_job *job, uint64_t bytes_done)
{
    __atomic_store_n(&job->beat_ms, tide_world_now_ms(job->engine->world), __ATOMIC_RELAXED);
    if (bytes_done > job->bytes_done)
        __atomic_store_n(&job->bytes_done, bytes_done, __ATOMIC_RELAXED);
}

tide_status tide_job_sleep(tide_job *job, uint64_t wait_ms)
{
    uint64_t now_us = tide_world_now_us(job->engine->world);
    uint64_t until_us =
        wait_ms > (TIDE_NEVER - now_us) / 1000 ? TIDE_NEVER : now_us + wait_ms * 1000;
    tide_status rc = tide_world_sleep_until(job->engine->world, until_us, &job->cancel);
    tide_job_beat(job, 0);
    return rc;
}

uint64_t tide_job_again_at_ms(const tide_job *job)
{
    return job->again_at_ms;
}

tide_status tide_job_again(tide_job *job, uint64_t at_ms)
{
    job->again_at_ms = at_ms;
    return TIDE_AGAIN;
}

/* ---- items ----------------------------------------------------------------------- */

static tide_status copy_items(tide_job *job, const json_t *items)
{
    size_t count = json_array_size(items);
    if (count == 0 || count > TIDE_ITEMS_MAX)
        return TIDE_INVALID;
    job->items = tide_arena_take(&job->arena, count * sizeof *job->items);
    if (job->items == NULL)
        return TIDE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(items, i);
        size_t bytes = json_string_length(item);
        if (!json_is_string(item))
            return TIDE_INVALID;
        char *copy = tide_arena_copy(&job->arena, json_string_value(item), bytes);
        if (copy == NULL)
            return TIDE_NO_MEMORY;
        job->items[i].text = (tide_text){copy, bytes};
    }
    job->items_count = count;
    return TIDE_OK;
}

/* Reads all of them or none: items that were left out would count as done. */
static void read_items(tide_job *job)
{
    job->items_read = true;
    json_auto_t *payload = NULL;
    job->items_status = tide_json_parse_stored(job->body->payload, &payload, NULL);
    if (job->items_status == TIDE_OK)
        job->items_status = copy_items(job, json_object_get(payload, "items"));
}

size_t tide_job_items(tide_job *job)
{
    if (!job->items_read)
        read_items(job);
    return job->items_count;
}

tide_text tide_job_item(tide_job *job, size_t index)
{
    TIDE_ASSERT(index < tide_job_items(job));
    return job->items[index].text;
}

bool tide_job_item_open(tide_job *job, size_t index)
{
    TIDE_ASSERT(index < tide_job_items(job));
    return !job->items[index].done && !job->items[index].failed;
}

void tide_job_item_done(tide_job *job, size_t index)
{
    TIDE_ASSERT(index < tide_job_items(job));
    job->items[index].done = true;
    job->items[index].skipped = false;
    job->items[index].failed = false;
    tide_job_beat(job, 0);
}

void tide_job_item_skipped(tide_job *job, size_t index)
{
    tide_job_item_done(job, index);
    job->items[index].skipped = true;
}

bool tide_job_is_probe(tide_job *job)
{
    tide_lock_take(job->engine->world, job->engine->lock);
    const bool probe = tide_account_is_probe(job);
    tide_lock_drop(job->engine->world, job->engine->lock);
    return probe;
}

void tide_job_item_failed(tide_job *job, size_t index, tide_status status, const char *reason)
{
    TIDE_ASSERT(index < tide_job_items(job));
    TIDE_ASSERT(status != TIDE_OK);
    struct tide_job_item *item = &job->items[index];
    item->failed = true;
    item->status = status;
    item->reason = tide_arena_copy(&job->arena, reason, strlen(reason));
}

/* ---- what goes with the end ----------------------------------------------------------- */

/* Children are kept by value in the job until its end commits; their texts live
 * in its arena. */
static tide_text keep(tide_job *job, tide_text text, bool *failed)
{
    if (text.bytes == 0)
        return TIDE_TEXT_NONE;
    char *copy = tide_arena_copy(&job->arena, text.data, text.bytes);
    if (copy == NULL)
        *failed = true;
    return (tide_text){copy, text.bytes};
}

tide_status tide_job_enqueue(tide_job *job, const struct tide_spec *spec, tide_error *err)
{
    struct tide_job_new child;
    tide_engine *engine = job->engine;
    struct tide_spec own = *spec;
    if (own.account == 0)
        own.account = job->brief.account;
    TIDE_TRY(tide_spec_check(engine, spec, err));
    tide_spec_convert(engine, &own, tide_world_now_unix_ms(engine->world), &child);
    if (spec->needs_index_count > 0)
        return tide_error_set(err, TIDE_INVALID, "a child names jobs it needs by id, not by index");
    if (spec->cycle == 0 && !spec->no_cycle)
        child.cycle = job->brief.cycle;
    if (!TIDE_GROW_IN(engine->mem, job->children, job->children_capacity, job->children_count + 1,
                      TIDE_CHILDREN_MAX))
        return tide_error_set(err, TIDE_FULL, "a job may create at most %d jobs",
                              TIDE_CHILDREN_MAX);
    bool failed = false;
    child.dedupe_key = keep(job, child.dedupe_key, &failed);
    child.payload = keep(job, child.payload, &failed);
    tide_text needs =
        keep(job, (tide_text){(const char *)child.needs, child.needs_count * sizeof *child.needs},
             &failed);
    child.needs = (const uint64_t *)(const void *)needs.data;
    if (failed)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a child job");
    job->children[job->children_count++] = child;
    return TIDE_OK;
}

void *tide_job_memory(tide_job *job, size_t bytes)
{
    return tide_arena_take(&job->arena, bytes);
}

tide_status tide_job_effect(tide_job *job, tide_transact_fn *run, void *arg, tide_error *err)
{
    struct tide_effect *effect = tide_arena_take(&job->arena, sizeof *effect);
    if (effect == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for an effect");
    effect->run = run;
    effect->arg = arg;
    struct tide_effect **last = &job->effects;
    while (*last != NULL)
        last = &(*last)->next;
    *last = effect;
    return TIDE_OK;
}

void *tide_job_effect_arg(const tide_job *job, tide_transact_fn *run)
{
    for (const struct tide_effect *effect = job->effects; effect != NULL; effect = effect->next)
        if (effect->run == run)
            return effect->arg;
    return NULL;
}

tide_status tide_job_resume_set(tide_job *job, tide_text resume, tide_error *err)
{
    if (resume.bytes > TIDE_RESUME_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "resume data of %zu bytes; at most %d are kept",
                              resume.bytes, TIDE_RESUME_BYTES_MAX);
    bool failed = false;
    tide_text kept = keep(job, resume, &failed);
    if (failed)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for resume data");
    job->resume = kept;
    job->resume_set = true;
    return TIDE_OK;
}

/* ---- durable before it returns --------------------------------------------------------- */

static tide_status save_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    tide_job *job = arg;
    struct tide_beat beat = {.id = job->brief.id,
                             .token = job->body->token,
                             .bytes_done = job->bytes_done,
                             .resume_set = job->resume_set,
                             .resume = job->resume};
    bool applied = false;
    TIDE_TRY(tide_ledger_beat(transaction->tx, &beat, 1, transaction->now_unix_ms, &applied, err));
    if (!applied)
        return tide_error_set(err, TIDE_STALE, "the claim on job %" PRIu64 " was lost",
                              job->brief.id);
    return TIDE_OK;
}

tide_status tide_job_save(tide_job *job, tide_text resume, tide_error *err)
{
    TIDE_TRY(tide_job_resume_set(job, resume, err));
    tide_job_beat(job, 0);
    struct tide_write write = {.run = save_run, .arg = job};
    return tide_write_run(job->engine, &write, err);
}

struct intent_ask {
    tide_job *job;
    tide_text tag, detail;
    tide_intent_state state;
    bool existed;
};

static tide_status intent_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct intent_ask *ask = arg;
    tide_auto_buf outcome = tide_buf_in(ask->job->engine->mem, TIDE_RESUME_BYTES_MAX);
    tide_status rc = save_run(transaction, ask->job, err); /* TIDE_STALE if the claim was lost */
    if (rc == TIDE_OK)
        rc =
            tide_ledger_intent_find(ask->job->engine->ledger, ask->tag, &ask->state, &outcome, err);
    ask->existed = rc == TIDE_OK;
    if (rc == TIDE_NOT_FOUND)
        rc = tide_ledger_intent(transaction->tx, ask->job->brief.id, ask->tag, ask->detail,
                                transaction->now_unix_ms, &ask->state, &outcome, err);
    return rc;
}

tide_status tide_job_intent(tide_job *job, const char *tag, const char *detail, tide_error *err)
{
    struct intent_ask ask = {.job = job, .tag = tide_text_of(tag), .detail = tide_text_of(detail)};
    struct tide_write write = {.run = intent_run, .arg = &ask};
    TIDE_TRY(tide_write_run(job->engine, &write, err));
    if (ask.existed)
        return tide_error_set(err, TIDE_EXISTS, "an earlier attempt made the intent %.100s", tag);
    return TIDE_OK;
}

static tide_intent_state intent_state_of(tide_status outcome)
{
    if (outcome == TIDE_OK)
        return TIDE_INTENT_DONE;
    return outcome == TIDE_UNKNOWN ? TIDE_INTENT_UNKNOWN : TIDE_INTENT_FAILED;
}

tide_status tide_transaction_intent_end(tide_transaction *transaction, const char *tag,
                                        tide_status outcome, const char *detail, tide_error *err)
{
    return tide_ledger_intent_end(transaction->tx, tide_text_of(tag), intent_state_of(outcome),
                                  tide_text_of(detail), transaction->now_unix_ms, err);
}

static tide_status intent_end_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct intent_ask *ask = arg;
    return tide_ledger_intent_end(transaction->tx, ask->tag, ask->state, ask->detail,
                                  transaction->now_unix_ms, err);
}

tide_status tide_job_intent_end(tide_job *job, const char *tag, tide_status outcome,
                                const char *detail, tide_error *err)
{
    struct intent_ask ask = {.job = job,
                             .tag = tide_text_of(tag),
                             .detail = tide_text_of(detail),
                             .state = intent_state_of(outcome)};
    struct tide_write write = {.run = intent_end_run, .arg = &ask};
    return tide_write_run(job->engine, &write, err);
}
