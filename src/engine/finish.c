/* finish.c - turns what a handler returned into a tide_finish for the ledger.
 *
 * The policies are pure (core/retry.h, core/splitter.h, core/badness.h); this file calls them
 * and fills a tide_finish.  The texts it points to live in the job's arena until the writer
 * has committed it. */
#include "engine/engine.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"

#include "core/splitter.h"

#include <stdlib.h>
#include <string.h>

enum {
    PARK_MS_MAX = 60000,       /* for a longer wait the job is put back into the ledger */
    BLOCK_THROTTLED_MS = 1000, /* the handler returned it, and the governor saw no refusal */
    BLOCK_NETWORK_MS = 5000,
    BLOCK_DISK_MS = 10000,
    BLOCK_AUTH_MS = 300000,
    OUTCOME_OLD_MS = 2000,
    NO_MEMORY_MS = 60000, /* before a retry for want of memory, once the attempts are spent */
};

void tide_ended_push(tide_engine *engine, tide_job *job)
{
    job->next = NULL;
    if (engine->ended_last != NULL)
        engine->ended_last->next = job;
    else
        engine->ended_first = job;
    engine->ended_last = job;
    engine->ended_count++;
}

/* Cap waits at 100 years so that now + wait cannot overflow. */
#define WAIT_MS_MAX ((uint64_t)100 * 365 * 24 * 3600 * 1000)

static uint64_t to_unix_ms(tide_engine *engine, uint64_t at_ms, uint64_t now_ms)
{
    if (at_ms == 0 || at_ms <= now_ms)
        return 0;
    uint64_t wait_ms = at_ms - now_ms;
    if (wait_ms > WAIT_MS_MAX)
        wait_ms = WAIT_MS_MAX;
    return tide_world_now_unix_ms(engine->world) + wait_ms;
}

static struct tide_retry_policy policy_of(const tide_engine *engine, const tide_job *job)
{
    struct tide_retry_policy policy = tide_tuning_retry(
        job->account == NULL ? engine->settings : tide_account_settings(engine, job->account));
    policy.attempts_max = job->brief.attempts_max;
    return policy;
}

static enum tide_ending ending_of(const tide_job *job)
{
    /* The cancel token keeps its first reason; a user's command counts more than any other. */
    if (job->user_cancel)
        return TIDE_ENDED_BY_USER;
    switch (tide_canceled(&job->cancel)) {
    case TIDE_CANCEL_USER:
        return TIDE_ENDED_BY_USER;
    case TIDE_CANCEL_PREEMPT:
        return TIDE_ENDED_PREEMPTED;
    case TIDE_CANCEL_HALT:
        return TIDE_ENDED_HALTED;
    case TIDE_CANCEL_STALL:
        return TIDE_ENDED_STALLED;
    case TIDE_CANCEL_STOP:
    case TIDE_CANCEL_STALE:
        return TIDE_ENDED_SHUTDOWN;
    case TIDE_CANCEL_NONE:
        break;
    }
    return TIDE_ENDED_RETURNED;
}

/* ---- effects ------------------------------------------------------------------- */

static tide_status run_effects(void *arg, tide_tx *tx, tide_error *err)
{
    tide_job *job = arg;
    struct tide_transaction *transaction = &job->effects_transaction;
    transaction->engine = job->engine;
    transaction->tx = tx;
    transaction->now_unix_ms = tide_world_now_unix_ms(job->engine->world);
    transaction->new_rows.jobs_count = 0;
    transaction->new_rows.cycles_count = 0;
    tide_status rc = TIDE_OK;
    /* Effects that lost their transaction once would lose it again: they do not run again. */
    if (job->effects_over)
        return tide_error_set(err, TIDE_UNKNOWN,
                              "its effects ended the transaction they run in: by a COMMIT or "
                              "ROLLBACK, or by a failed statement that they did not report");
    if (job->effects_slow)
        return tide_error_set(err, TIDE_TIMEOUT,
                              "its effects take more than %d ms inside a transaction",
                              TIDE_CALLBACK_MS_MAX);
    uint64_t until_us =
        tide_world_now_us(job->engine->world) + (uint64_t)TIDE_CALLBACK_MS_MAX * 1000;
    for (struct tide_effect *effect = job->effects; rc == TIDE_OK && effect != NULL;
         effect = effect->next)
        rc = effect->run(transaction, effect->arg, err);
    job->effects_over = tide_tx_over(tx);
    job->effects_slow =
        job->engine->fleet != NULL && tide_world_now_us(job->engine->world) > until_us;
    return rc;
}

static void with_effects(tide_job *job)
{
    job->finish.children = job->children;
    job->finish.children_count = job->children_count;
    if (job->effects != NULL) {
        job->finish.effect = run_effects;
        job->finish.effect_arg = job;
    }
}

/* ---- an account that has to wait ------------------------------------------------- */

static void block_account(tide_job *job, tide_class cause, uint64_t at_ms, uint64_t now_ms)
{
    if (job->account == NULL)
        return;
    /* Keep the outcome that a call recorded just before, because it names the host; but for a
     * refused sign-in the handler's text is better. */
    const struct tide_outcome *outcome = &job->account->outcome;
    const uint64_t now_unix_ms = tide_world_now_unix_ms(job->engine->world);
    if (job->status == TIDE_AUTH || outcome->status != job->status ||
        outcome->failed_unix_ms + OUTCOME_OLD_MS < now_unix_ms)
        tide_account_came_to(job->engine, job->account, job->status, TIDE_TEXT_NONE, job->err.text);
    struct tide_governor_view view;
    tide_governor_view(job->account->governor, now_ms, &view);
    if (cause == TIDE_CLASS_THROTTLED && view.state != TIDE_GOVERNOR_RUNNING)
        return; /* the governor saw the refusal itself */
    uint64_t pause_ms = cause == TIDE_CLASS_AUTH        ? BLOCK_AUTH_MS
                        : cause == TIDE_CLASS_DISK      ? BLOCK_DISK_MS
                        : cause == TIDE_CLASS_THROTTLED ? BLOCK_THROTTLED_MS
                                                        : BLOCK_NETWORK_MS;
    uint64_t until_ms = at_ms > now_ms ? at_ms : now_ms + pause_ms;
    TIDE_SEEN("finish: an account was blocked, not its job");
    tide_governor_pause(job->account->governor, until_ms, job->status);
    tide_account_refresh(job->engine, job->account, now_ms);
}

/* ---- items ------------------------------------------------------------------------- */

/* What happens to each item: the splitter's plan, corrected by badness.h. */
struct items_plan {
    struct tide_item_fate *fates;
    uint64_t *at_ms; /* when an item that is split off, or owed, is tried again */
    struct tide_split_plan split;
    json_t *payload; /* of the job, parsed once: parts differ from it by their items */
};

/* The job's payload with some of its items: those of one fate, or only one.  Empty: no memory,
 * because a list that lost an item to a failed allocation must never be written. */
static tide_text payload_with(tide_job *job, const struct items_plan *plan, int fate, int only)
{
    json_t *items = json_array();
    bool whole = items != NULL;
    for (size_t i = only >= 0 ? (size_t)only : 0; whole && i < job->items_count; i++) {
        if (only >= 0 || (int)plan->fates[i].fate == fate)
            whole =
                json_array_append_new(items, json_stringn_nocheck(job->items[i].text.data,
                                                                  job->items[i].text.bytes)) == 0;
        if (only >= 0)
            break;
    }
    whole = whole && json_object_set(plan->payload, "items", items) == 0;
    char *text = whole ? json_dumps(plan->payload, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(items);
    size_t bytes = text == NULL ? 0 : strlen(text);
    char *kept = text == NULL ? NULL : tide_arena_copy(&job->arena, text, bytes);
    free(text);
    return kept == NULL ? TIDE_TEXT_NONE : (tide_text){kept, bytes};
}

/* Adds a job for some of this one's items, in the same cycle.  Jobs that wait for this
 * job wait for its parts too. */
static struct tide_job_new *add_part(tide_job *job, tide_text payload, uint32_t attempts,
                                     uint64_t at_ms, uint64_t now_ms)
{
    if (payload.bytes == 0 || !TIDE_GROW_IN(job->engine->mem, job->children, job->children_capacity,
                                            job->children_count + 1, TIDE_CHILDREN_MAX))
        return NULL;
    /* A job over its budget is split without running (worker.c); so a part that was never tried
     * gets at least one attempt, whatever it inherits. */
    if (attempts >= job->brief.attempts_max)
        attempts = job->brief.attempts_max - 1u;
    struct tide_job_new *part = &job->children[job->children_count++];
    *part = (struct tide_job_new){
        .account = job->brief.account,
        .kind = job->brief.kind,
        .cycle = job->brief.cycle,
        .payload = payload,
        .not_before_unix_ms = to_unix_ms(job->engine, at_ms, now_ms),
        .attempts = (uint16_t)attempts,
        .attempts_max = job->brief.attempts_max,
        .priority = job->brief.priority,
        .lane = job->brief.lane,
        .level = job->brief.level,
        .preemptible = job->brief.preemptible,
        .force = job->body->force,
        .part = true,
    };
    return part;
}

/* An owed item is recorded, and tried again with growing pauses outside its cycle, so
 * that it blocks nothing (E6.2). */
static bool add_owed(tide_job *job, tide_text payload, uint64_t at_ms, uint64_t now_ms)
{
    struct tide_job_new *owed = add_part(job, payload, 0, at_ms, now_ms);
    if (owed == NULL)
        return false;
    owed->cycle = 0;
    owed->part = false;
    return true;
}

static tide_status item_report(const struct tide_item_fate *fate)
{
    if (fate->fate == TIDE_FATE_STORED)
        return TIDE_OK;
    if (fate->fate == TIDE_FATE_GONE)
        return TIDE_GONE;
    return fate->fate == TIDE_FATE_OWED ? TIDE_TIMEOUT : fate->reason;
}

/* Whether the ledger may hold records of these items.  Owed items, probes and retries by command
 * run outside any cycle.  Most accounts have no records, and then a batch without failures has
 * nothing to report. */
static bool may_be_recorded(const tide_job *job)
{
    if (job->brief.cycle == 0 || job->account == NULL)
        return true;
    const struct tide_metadata *metadata = &job->account->metadata;
    return metadata->due || metadata->bad || metadata->bad_told;
}

static bool report_items(tide_job *job, const struct items_plan *plan, uint64_t now_ms)
{
    const uint32_t *counts = plan->split.counts;
    const bool clears = may_be_recorded(job); /* a stored item is no longer bad or owed */
    const size_t records = counts[TIDE_FATE_GONE] + counts[TIDE_FATE_BAD] + counts[TIDE_FATE_OWED];
    const size_t reports_max = records + (clears ? counts[TIDE_FATE_STORED] : 0);
    struct tide_item_report *reports = NULL;
    if (reports_max > 0) {
        reports = tide_arena_take(&job->arena, reports_max * sizeof *reports);
        if (reports == NULL)
            return false;
    }
    size_t count = 0;
    for (size_t i = 0; i < job->items_count; i++) {
        const struct tide_item_fate *fate = &plan->fates[i];
        bool alone = fate->fate == TIDE_FATE_ALONE;
        bool owed = fate->fate == TIDE_FATE_OWED;
        tide_text payload = TIDE_TEXT_NONE;
        if (alone || owed)
            payload = payload_with(job, plan, 0, (int)i);
        if (alone &&
            add_part(job, payload, plan->split.alone_attempts, plan->at_ms[i], now_ms) == NULL)
            return false;
        if (owed && !add_owed(job, payload, plan->at_ms[i], now_ms))
            return false;
        bool cleared = clears && fate->fate == TIDE_FATE_STORED;
        if (!owed && !cleared && fate->fate != TIDE_FATE_GONE && fate->fate != TIDE_FATE_BAD)
            continue;
        const char *reason = job->items[i].reason;
        reports[count++] = (struct tide_item_report){
            .item = job->items[i].text,
            .reason = tide_text_of(reason != NULL ? reason : job->err.text),
            .status = item_report(fate)};
    }
    if (records > 0 && job->account != NULL)
        job->account->metadata.bad_told = true;
    job->finish.items = reports;
    job->finish.items_count = count;
    return true;
}

/* Fills the finish from the plan.  false: no memory for it. */
static bool finish_by_plan(tide_job *job, const struct items_plan *plan, uint64_t now_ms)
{
    struct tide_finish *finish = &job->finish;
    const struct tide_split_plan *split = &plan->split;
    if (!report_items(job, plan, now_ms))
        return false;
    finish->state = TIDE_ROW_DONE;
    if (split->rest == TIDE_REST_SPLIT) {
        TIDE_SEEN("finish: a batch was split in two");
        for (int half = TIDE_FATE_FIRST; half <= TIDE_FATE_SECOND; half++)
            if (add_part(job, payload_with(job, plan, half, -1), split->attempts, split->at_ms,
                         now_ms) == NULL)
                return false;
        finish->status = TIDE_SUPERSEDED;
        finish->error = TIDE_TEXT("split in two");
    } else if (split->rest != TIDE_REST_NONE) {
        finish->state = TIDE_ROW_PENDING;
        finish->attempts_add = (int16_t)(split->attempts - job->brief.attempts);
        finish->not_before_unix_ms = to_unix_ms(job->engine, split->at_ms, now_ms);
        if (split->counts[TIDE_FATE_FIRST] < job->items_count) {
            finish->payload = payload_with(job, plan, TIDE_FATE_FIRST, -1);
            if (finish->payload.bytes == 0)
                return false;
        }
        if (split->rest == TIDE_REST_PUT_BACK && split->cause != TIDE_CLASS_OK)
            block_account(job, split->cause, split->at_ms, now_ms);
    }
    with_effects(job);
    job->items_stored = split->counts[TIDE_FATE_STORED] + split->counts[TIDE_FATE_GONE];
    job->items_bad = split->counts[TIDE_FATE_BAD];
    return true;
}

/* ---- a bad item, or an account that fails? (E6.2) ---------------------------------- */

static void change_fate(struct items_plan *plan, size_t i, enum tide_fate fate)
{
    plan->split.counts[plan->fates[i].fate]--;
    plan->split.counts[fate]++;
    plan->fates[i].fate = fate;
}

/* The error of a single item that stays in its job and is tried again; TIDE_OK: it has none. */
static tide_status retried_error(const tide_job *job, const struct items_plan *plan)
{
    if (job->items_count != 1 || plan->split.rest != TIDE_REST_RETRY)
        return TIDE_OK;
    return job->items[0].failed ? job->items[0].status : job->status;
}

static void judge_item(tide_job *job, struct items_plan *plan, size_t i, uint64_t now_ms)
{
    struct tide_item_fate *fate = &plan->fates[i];
    const bool stays = fate->fate == TIDE_FATE_FIRST || fate->fate == TIDE_FATE_SECOND;
    const tide_status error = stays ? retried_error(job, plan) : fate->reason;
    if ((stays && error == TIDE_OK) || job->items[i].skipped)
        return;
    const char *reason = job->items[i].reason != NULL ? job->items[i].reason : job->err.text;
    bool stored = fate->fate == TIDE_FATE_STORED;
    struct tide_item_outcome outcome = {.item = tide_hash_key(job->items[i].text),
                                        .status = stored ? TIDE_OK : error,
                                        .detail = tide_hash_key(tide_text_of(reason)),
                                        .attempts = plan->split.alone_attempts,
                                        .retried = stays};
    const bool decides =
        fate->fate == TIDE_FATE_BAD || fate->fate == TIDE_FATE_OWED || fate->fate == TIDE_FATE_GONE;
    if (decides)
        outcome.attempts = job->brief.attempts + 1u;
    struct tide_badness_verdict verdict =
        tide_badness_item(job->account->badness, &outcome, now_ms);
    if (!decides)
        return;
    switch (verdict.kind) {
    case TIDE_ITEM_BAD:
        change_fate(plan, i, TIDE_FATE_BAD);
        break;
    case TIDE_ITEM_OWED:
        TIDE_SEEN("finish: an item is owed");
        change_fate(plan, i, TIDE_FATE_OWED);
        plan->at_ms[i] = verdict.at_ms;
        break;
    case TIDE_ITEM_AGAIN:
    case TIDE_ITEM_HELD:
    case TIDE_ITEM_BLAMELESS:
        change_fate(plan, i, TIDE_FATE_ALONE);
        plan->at_ms[i] = verdict.at_ms;
        break;
    case TIDE_ITEM_GOOD:
    case TIDE_ITEM_VANISHED:
        break;
    }
}

static void judge_items(tide_job *job, struct items_plan *plan, uint64_t now_ms)
{
    struct tide_account *account = job->account;
    if (account == NULL)
        return;
    for (size_t i = 0; i < job->items_count; i++)
        judge_item(job, plan, i, now_ms);
    for (size_t i = 0; i < job->items_count; i++)
        if (plan->fates[i].fate == TIDE_FATE_STORED && !job->items[i].skipped &&
            job->items[i].text.bytes < sizeof account->goods[0].item) {
            tide_account_good_item(job->engine, account, job->brief.kind, job->items[i].text);
            break;
        }
    tide_account_badness_orders(job->engine, account, now_ms);
}

/* Fills the finish from the result of each item.  false: the plan could not be made. */
static bool finish_items(tide_job *job, const struct tide_retry_policy *policy, uint64_t now_ms)
{
    size_t count = job->items_count;
    struct tide_split_item *items = tide_arena_take(&job->arena, count * sizeof *items);
    struct items_plan plan = {.fates = tide_arena_take(&job->arena, count * sizeof *plan.fates),
                              .at_ms = tide_arena_take(&job->arena, count * sizeof *plan.at_ms)};
    if (items == NULL || plan.fates == NULL || plan.at_ms == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (job->items[i].failed)
            items[i] = (struct tide_split_item){TIDE_SEEN_ERROR, job->items[i].status};
        else if (job->items[i].done || job->status == TIDE_OK)
            items[i].seen = TIDE_SEEN_STORED;
    }
    struct tide_split_input input = {.items = items,
                                     .count = (uint32_t)count,
                                     .batch_status = job->status,
                                     .attempts = job->brief.attempts,
                                     .attempts_max = job->brief.attempts_max,
                                     .again_at_ms = job->again_at_ms};
    if (tide_splitter_plan(policy, &input, now_ms, &job->engine->rng, plan.fates, &plan.split) !=
        TIDE_OK)
        return false;
    for (size_t i = 0; i < count; i++)
        plan.at_ms[i] = plan.split.alone_at_ms;
    judge_items(job, &plan, now_ms);
    if (tide_json_parse_stored(job->body->payload, &plan.payload, NULL) != TIDE_OK)
        return false;
    const bool planned = finish_by_plan(job, &plan, now_ms);
    json_decref(plan.payload);
    return planned;
}

/* ---- one job ---------------------------------------------------------------------- */

static void finish_by_verdict(tide_job *job, const struct tide_verdict *verdict, uint64_t now_ms)
{
    struct tide_finish *finish = &job->finish;
    finish->attempts_add = (int16_t)(verdict->attempts - job->brief.attempts);
    finish->not_before_unix_ms = to_unix_ms(job->engine, verdict->at_ms, now_ms);
    switch (verdict->kind) {
    case TIDE_VERDICT_DONE:
    case TIDE_VERDICT_VANISHED:
        finish->state = TIDE_ROW_DONE;
        with_effects(job);
        break;
    case TIDE_VERDICT_FAIL:
    case TIDE_VERDICT_SPLIT: /* nothing to split: it has no items */
        finish->state = TIDE_ROW_FAILED;
        break;
    case TIDE_VERDICT_CANCEL:
        finish->state = TIDE_ROW_CANCELED;
        break;
    case TIDE_VERDICT_BLOCK:
        finish->state = TIDE_ROW_PENDING;
        block_account(job, verdict->cause, verdict->at_ms, now_ms);
        if (job->account == NULL && verdict->at_ms <= now_ms)
            finish->not_before_unix_ms = to_unix_ms(job->engine, now_ms + BLOCK_NETWORK_MS, now_ms);
        break;
    case TIDE_VERDICT_RETRY:
    case TIDE_VERDICT_PUT_BACK:
        finish->state = TIDE_ROW_PENDING;
        break;
    }
}

/* Ends a probe, or lets it wait like any other job.  Its result is about the account: nothing
 * is recorded about its item. */
static void finish_probe(tide_job *job, const struct tide_verdict *verdict, uint64_t now_ms)
{
    tide_status status = job->status;
    if (verdict->kind == TIDE_VERDICT_CANCEL)
        status = TIDE_CANCELED;
    else if (job->items_count > 0 && job->items[0].failed)
        status = job->items[0].status;
    else if (job->items_count > 0 && job->items[0].done)
        status = TIDE_OK;
    if (status == TIDE_OK || status == TIDE_GONE || tide_retry_costs_attempt(status)) {
        job->finish.state = TIDE_ROW_DONE;
        with_effects(job);
    } else {
        finish_by_verdict(job, verdict, now_ms);
    }
    tide_account_probed(job, status, now_ms);
}

/* The statuses are those of item_report(). */
static void log_item(const tide_job *job, const struct tide_item_report *report)
{
    if (report->status == TIDE_OK && job->brief.cycle != 0)
        return; /* a stored item of a cycle: hardly any of these was recorded as bad */
    if (report->status == TIDE_OK)
        tide_job_log(job, TIDE_LOG_INFO, "item is good again", report->item);
    else if (report->status == TIDE_GONE)
        tide_job_log(job, TIDE_LOG_WARN, "item is gone", report->item);
    else if (report->status == TIDE_TIMEOUT)
        tide_job_log(job, TIDE_LOG_WARN, "item is owed", report->item);
    else
        tide_job_log(job, TIDE_LOG_WARN, "item is bad", report->item);
}

/* Adds up about how much its bad items add to the ledger: a large sum causes a new measure. */
static void count_metadata(tide_job *job)
{
    job->account->metadata.used = true;
    for (size_t i = 0; i < job->finish.items_count; i++) {
        const struct tide_item_report *report = &job->finish.items[i];
        if (report->status != TIDE_OK)
            job->account->metadata.grown += report->item.bytes + report->reason.bytes;
    }
}

static void count_items(tide_job *job, uint64_t now_ms)
{
    tide_engine *engine = job->engine;
    const bool split = job->finish.state == TIDE_ROW_DONE && job->finish.status == TIDE_SUPERSEDED;
    engine->counts.bad += job->items_bad;
    engine->counts.split += split;
    if (job->account == NULL)
        return;
    job->account->bad += job->items_bad;
    job->account->split += split;
    job->account->windows_changed = true;
    count_metadata(job);
    tide_account_series_add(engine, job->account, now_ms, job->items_stored, 0);
    (void)tide_alerts_items(engine->alerts, job->account->id, job->items_stored, job->items_bad,
                            now_ms);
}

void tide_job_count(tide_job *job, uint64_t now_ms)
{
    struct tide_progress *counts = &job->engine->counts;
    struct tide_meter_system *system = &job->engine->meters.systems[job->kind->system];
    const struct tide_finish *finish = &job->finish;
    if (!job->counted)
        return; /* it did not run */
    if (finish->state == TIDE_ROW_DONE) {
        counts->done++;
        system->done++;
        tide_job_log(job, TIDE_LOG_DEBUG,
                     finish->status == TIDE_SUPERSEDED ? "job split" : "job done", finish->error);
    } else if (finish->state == TIDE_ROW_FAILED) {
        counts->failed++;
        system->failed++;
        if (job->account != NULL)
            job->account->failed++;
        tide_job_log(job, TIDE_LOG_ERROR, "job failed", finish->error);
    } else if (finish->state == TIDE_ROW_CANCELED) {
        system->canceled++;
        tide_job_log(job, TIDE_LOG_INFO, "job canceled", finish->error);
    } else if (finish->attempts_add > 0) {
        counts->retried++;
        if (job->account != NULL)
            job->account->retried++;
        tide_job_log(job, TIDE_LOG_WARN, "job is tried again", finish->error);
    } else {
        tide_job_log(job, TIDE_LOG_DEBUG, "job put back", finish->error);
    }
    for (size_t i = 0; i < finish->items_count; i++)
        log_item(job, &finish->items[i]);
    if (job->items_count > 0)
        count_items(job, now_ms);
}

/* Out of quota: the job keeps its claim and its place, and comes back by itself.  No
 * row is written (E4.3a). */
static bool park(tide_job *job, uint64_t now_ms)
{
    tide_engine *engine = job->engine;
    if (job->again_at_ms > now_ms + PARK_MS_MAX || engine->phase != TIDE_PHASE_RUN)
        return false;
    if (!job->kind->kind.items) {
        job->children_count = 0; /* the next run makes them again */
        job->effects = NULL;
    }
    uint64_t at_ms = job->again_at_ms > now_ms ? job->again_at_ms : now_ms + 1;
    job->again_at_ms = 0;
    tide_tracker_parked(engine->tracker, job->brief.id, at_ms, now_ms);
    tide_lanes_parked(engine->lanes, job->brief.id, job->lacks_units);
    job->parked_for_units = job->lacks_units;
    job->lacks_units = false;
    return true;
}

/* Writes nothing but the row: all items are tried again, and it costs an attempt like any
 * other failure.  A job never fails for want of memory: that is not the job's fault, and its
 * items would be lost with it; at its last attempt it waits longer instead. */
static void put_back_unsplit(tide_job *job, tide_status status, uint64_t now_ms)
{
    bool last = job->brief.attempts + 1 >= job->brief.attempts_max && job->brief.attempts_max > 0;
    bool waits = last && status == TIDE_NO_MEMORY;
    uint64_t at_ms = now_ms + (waits ? NO_MEMORY_MS : 1000);
    job->status = status;
    job->items_stored = job->items_bad = 0;
    job->finish =
        (struct tide_finish){.id = job->brief.id,
                             .token = job->body->token,
                             .state = last && !waits ? TIDE_ROW_FAILED : TIDE_ROW_PENDING,
                             .attempts_add = waits ? 0 : 1,
                             .status = job->status,
                             .error = tide_text_of(job->err.text),
                             .not_before_unix_ms = to_unix_ms(job->engine, at_ms, now_ms)};
}

static bool an_item_failed(const tide_job *job)
{
    for (size_t i = 0; i < job->items_count; i++)
        if (job->items[i].failed)
            return true;
    return false;
}

/* Fills the finish. */
static void decide(tide_job *job, enum tide_ending ending, tide_status status, uint64_t now_ms)
{
    tide_engine *engine = job->engine;
    /* A canceled job is not tried again, not even in parts.  So it must not count as done when an
     * item failed: that item would be neither stored nor recorded. */
    if (ending == TIDE_ENDED_BY_USER && status == TIDE_OK && an_item_failed(job))
        status = tide_error_set(&job->err, TIDE_CANCELED, "canceled before all items were done");
    job->status = status;
    job->counted = true;
    job->items_stored = job->items_bad = 0;
    job->finish = (struct tide_finish){.id = job->brief.id,
                                       .token = job->body->token,
                                       .status = status,
                                       .bytes_done = job->bytes_done};
    if (status != TIDE_OK)
        job->finish.error = tide_text_of(job->err.text);
    job->finish.resume_set = job->resume_set && status != TIDE_OK;
    job->finish.resume = job->resume;

    struct tide_retry_policy policy = policy_of(engine, job);
    struct tide_ended ended = {.ending = ending,
                               .status = status,
                               .attempts = job->brief.attempts,
                               .attempts_max = job->brief.attempts_max,
                               .items = (uint32_t)job->items_count,
                               .again_at_ms = job->again_at_ms};
    struct tide_verdict verdict = tide_retry_decide(&policy, &ended, now_ms, &engine->rng);
    const bool canceled = ending == TIDE_ENDED_BY_USER && status != TIDE_OK;
    bool by_items = job->kind->kind.items && job->items_count > 0 && !canceled;
    bool unread = job->items_status == TIDE_NO_MEMORY && ending != TIDE_ENDED_BY_USER;
    if (tide_account_is_probe(job) && !unread) {
        finish_probe(job, &verdict, now_ms);
        return;
    }
    if (!by_items && !unread)
        finish_by_verdict(job, &verdict, now_ms);
    if (!unread && (!by_items || finish_items(job, &policy, now_ms)))
        return;
    (void)tide_error_set(&job->err, TIDE_NO_MEMORY, "no memory to record the results of its items");
    put_back_unsplit(job, TIDE_NO_MEMORY, now_ms);
}

bool tide_job_conclude(tide_job *job, tide_status status, uint64_t now_ms)
{
    tide_engine *engine = job->engine;
    enum tide_ending ending = ending_of(job);
    if (ending == TIDE_ENDED_STALLED && tide_status_class(status) == TIDE_CLASS_CANCELED) {
        /* The supervisor canceled it because it made no progress: that counts as a failure of its
         * items, not as a user's cancel, and costs an attempt (E7.1). */
        status = TIDE_TIMEOUT;
        (void)tide_error_set(&job->err, status, "no beat for %u ms", job->stalled_after_ms);
    }
    if (status == TIDE_AGAIN && ending == TIDE_ENDED_RETURNED && park(job, now_ms))
        return false;

    tide_tracker_ending(engine->tracker, job->brief.id, now_ms);
    tide_lanes_left(engine->lanes, job->brief.id);
    decide(job, ending, status, now_ms);
    return true;
}

/* The status for a job that ran well and whose end the ledger or an effect refused.  "Canceled",
 * "gone" or "again" would put it back at once or count it as done. */
static tide_status refusal(tide_status status)
{
    tide_class class = tide_status_class(status);
    bool means_end = class == TIDE_CLASS_OK || class == TIDE_CLASS_CANCELED ||
                     class == TIDE_CLASS_GONE || status == TIDE_AGAIN;
    return means_end ? TIDE_UNKNOWN : status;
}

void tide_job_refused(tide_job *job, tide_status status, const char *text, uint64_t now_ms)
{
    TIDE_SEEN("finish: the end of a job was refused");
    status = refusal(status);
    (void)tide_error_set(&job->err, status, "its end was refused: %s", text);
    tide_job_log(job, TIDE_LOG_WARN, "job's end refused", tide_text_of(job->err.text));
    job->children_count = 0;
    job->effects = NULL;
    job->again_at_ms = 0;
    for (size_t i = 0; i < job->items_count; i++)
        job->items[i].done = job->items[i].failed = false;
    if (++job->refusals == 1 && status != TIDE_NO_MEMORY)
        decide(job, TIDE_ENDED_RETURNED, status, now_ms);
    else
        put_back_unsplit(job, status, now_ms);
    tide_ended_push(job->engine, job);
}

void tide_job_cancel_end(tide_job *job)
{
    job->items_stored = job->items_bad = 0;
    job->status = TIDE_CANCELED;
    job->finish = (struct tide_finish){.id = job->brief.id,
                                       .token = job->body->token,
                                       .state = TIDE_ROW_CANCELED,
                                       .status = TIDE_CANCELED,
                                       .error = TIDE_TEXT("canceled"),
                                       .bytes_done = job->bytes_done};
}

void tide_job_put_back(tide_job *job, tide_row_state state, tide_status why, uint64_t now_ms)
{
    tide_engine *engine = job->engine;
    tide_tracker_ending(engine->tracker, job->brief.id, now_ms);
    tide_lanes_left(engine->lanes, job->brief.id);
    job->finish = (struct tide_finish){.id = job->brief.id,
                                       .token = job->body->token,
                                       .state = state,
                                       .status = why,
                                       .resume_set = job->resume_set,
                                       .resume = job->resume,
                                       .bytes_done = job->bytes_done};
    tide_ended_push(engine, job);
}
