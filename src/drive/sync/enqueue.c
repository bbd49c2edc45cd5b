/* enqueue.c - a plan becomes durable: what both sides agree on is recorded, the rest becomes jobs (D3). */
#include "base/check.h"
#include "base/limits.h"
#include "drive/sync/inside.h"

#include <inttypes.h>
#include <stdio.h>

enum { SLICE = 500, PAYLOAD_BYTES_MAX = 16 << 10 };

uint64_t tide_drive_key_of(uint64_t item, uint64_t row)
{
    const uint64_t key = item * UINT64_C(0x9e3779b97f4a7c15) ^ row * UINT64_C(0xc2b2ae3d27d4eb4f);
    return key == 0 ? 1 : key;
}

/* What is done with an action. */
enum fate {
    LEFT,     /* held, waits, or another plan has it */
    RECORDED, /* written by the plan itself */
    ENQUEUED,
};

struct writing {
    struct tide_drive_planned *planned;
    uint8_t *fates;      /* of actions */
    uint32_t *need_from; /* of actions: where their needs begin; one more at the end */
    uint32_t *needs;     /* actions */
    uint32_t *spec_of;   /* of actions: index of its spec */
    size_t from, to;     /* of a slice */
    struct tide_spec *specs;
    uint32_t *indexes;   /* needs as indexes of specs */
    uint32_t *action_of; /* of specs */
    uint64_t *ids;
    size_t specs_count;
    tide_map owners; /* of local rows: indexes of the trees' baseline */
    tide_arena arena;
};

/* ---- what to do with each ---- */

static bool is_record(const struct tide_drive_action *action)
{
    return action->verb == TIDE_DRIVE_BASE || action->verb == TIDE_DRIVE_DROP;
}

/* The needs of each action, sorted by action. */
static tide_status sort_edges(struct writing *writing, tide_error *err)
{
    const struct tide_drive_plan *plan = writing->planned->plan;
    tide_mem *mem = writing->planned->drive->mem;
    const size_t count = plan->actions_count;
    writing->need_from = tide_mem_array(mem, count + 2, sizeof *writing->need_from);
    writing->needs = tide_mem_array(mem, plan->edges_count + 1, sizeof *writing->needs);
    if (writing->need_from == NULL || writing->needs == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a plan");
    for (size_t i = 0; i < plan->edges_count; i++)
        writing->need_from[plan->edges[i].after + 2]++;
    for (size_t i = 2; i < count + 2; i++)
        writing->need_from[i] += writing->need_from[i - 1];
    /* need_from[a + 1] is where the next need of `a` goes, and ends as where those of a + 1 begin. */
    for (size_t i = 0; i < plan->edges_count; i++)
        writing->needs[writing->need_from[plan->edges[i].after + 1]++] = plan->edges[i].before;
    return TIDE_OK;
}

/* An action is left if one is left that comes before it.  Edges have no circle (DPL3), so this ends;
 * in most plans after two passes. */
static void choose(struct writing *writing)
{
    const struct tide_drive_plan *plan = writing->planned->plan;
    bool changed = true;
    for (size_t i = 0; i < plan->actions_count; i++) {
        const struct tide_drive_action *action = &plan->actions[i];
        const uint32_t needs = writing->need_from[i + 1] - writing->need_from[i];
        writing->fates[i] = ENQUEUED;
        if (action->state != TIDE_DRIVE_READY)
            writing->fates[i] = LEFT;
        else if (needs > TIDE_NEEDS_MAX) { /* a folder with many children: when they are gone */
            writing->fates[i] = LEFT;
            writing->planned->again = true;
        }
    }
    while (changed) {
        changed = false;
        for (size_t i = 0; i < plan->actions_count; i++)
            for (uint32_t k = writing->need_from[i];
                 k < writing->need_from[i + 1] && writing->fates[i] != LEFT; k++)
                if (writing->fates[writing->needs[k]] == LEFT) {
                    writing->fates[i] = LEFT;
                    changed = true;
                }
    }
    for (bool again = true; again;) { /* nothing before them is left to do */
        again = false;
        for (size_t i = 0; i < plan->actions_count; i++) {
            bool free = writing->fates[i] == ENQUEUED && is_record(&plan->actions[i]);
            for (uint32_t k = writing->need_from[i]; k < writing->need_from[i + 1] && free; k++)
                free = writing->fates[writing->needs[k]] == RECORDED;
            if (free) {
                writing->fates[i] = RECORDED;
                again = true;
            }
        }
    }
}

/* ---- what both sides agree on ---- */

/* The rows are still those of the plan. */
static tide_status is_as_planned(tide_rows db, const struct tide_drive_order *order, bool *same_out,
                                 tide_error *err)
{
    struct tide_drive_remote_look remote;
    struct tide_drive_local_look local;
    TIDE_TRY(tide_drive_order_pairs(db, order, same_out, err));
    if (*same_out && order->item != 0 && order->remote_content != 0) {
        const tide_status rc = tide_drive_look_remote(db, order->item, &remote, err);
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            return rc;
        *same_out = rc == TIDE_OK && tide_drive_mark_remote(&remote) == order->remote_content &&
                    tide_drive_mark_remote_place(&remote) == order->remote_place;
    }
    if (order->row != 0 && order->local_content != 0 && *same_out) {
        const tide_status rc = tide_drive_look_local(db, order->row, &local, err);
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            return rc;
        *same_out = rc == TIDE_OK && tide_drive_mark_local(&local) == order->local_content &&
                    tide_drive_mark_local_place(&local) == order->local_place;
    }
    return TIDE_OK;
}

static tide_status record_one(tide_rows db, struct writing *writing,
                              const struct tide_drive_action *action, tide_error *err)
{
    struct tide_drive_order order;
    bool same = false;
    TIDE_TRY(tide_drive_order_of(writing->planned->row->number, action,
                                 &writing->planned->loaded->trees, &writing->owners, &order, err));
    TIDE_TRY(is_as_planned(db, &order, &same, err));
    if (!same) { /* an observer was faster: the next plan */
        writing->planned->again = true;
        return TIDE_OK;
    }
    const bool drop = action->verb == TIDE_DRIVE_DROP;
    const struct tide_drive_outcome outcome = {.verb = action->verb,
                                               .item = action->item,
                                               .row = drop ? 0 : action->row,
                                               .was_item = drop ? 0 : action->was_item,
                                               .now_ms = writing->planned->now_ms};
    const tide_status rc = tide_drive_commit(db, &outcome, err);
    return rc == TIDE_SUPERSEDED ? TIDE_OK : rc;
}

static tide_status record_slice(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct writing *writing = arg;
    const tide_rows db =
        tide_drives_rows(tide_transaction_rows_often(transaction), writing->planned->row->number);
    for (size_t i = writing->from; i < writing->to; i++)
        if (writing->fates[i] == RECORDED)
            TIDE_TRY(record_one(db, writing, &writing->planned->plan->actions[i], err));
    return TIDE_OK;
}

static tide_status record(struct writing *writing, tide_error *err)
{
    const size_t count = writing->planned->plan->actions_count;
    for (size_t at = 0; at < count;) {
        size_t records = 0;
        writing->from = at;
        for (; at < count && records < SLICE; at++)
            records += writing->fates[at] == RECORDED ? 1 : 0;
        writing->to = at;
        if (records > 0)
            TIDE_TRY(
                tide_transact(writing->planned->drive->options.engine, record_slice, writing, err));
        tide_job_beat(writing->planned->job, 0);
    }
    return TIDE_OK;
}

/* ---- jobs ---- */

static tide_status make_spec(struct writing *writing, uint32_t at, uint32_t *indexes,
                             struct tide_spec *spec, tide_error *err)
{
    const struct tide_drive_planned *planned = writing->planned;
    const struct tide_drive_action *action = &planned->plan->actions[at];
    struct tide_drive_order order;
    char dedupe[96];
    tide_auto_buf payload = tide_buf_in(planned->drive->mem, PAYLOAD_BYTES_MAX);
    size_t needs = 0;
    TIDE_TRY(tide_drive_order_of(planned->row->number, action, &planned->loaded->trees,
                                 &writing->owners, &order, err));
    TIDE_TRY(tide_drive_order_write(&order, &payload));
    (void)snprintf(dedupe, sizeof dedupe, "drive:%" PRIu32 ":%" PRIu64 ":%" PRIu64 ":%d%s",
                   planned->row->number, action->item, action->row, (int)action->verb,
                   action->step_aside ? "a" : "");
    for (uint32_t k = writing->need_from[at]; k < writing->need_from[at + 1]; k++)
        if (writing->fates[writing->needs[k]] == ENQUEUED)
            indexes[needs++] = writing->spec_of[writing->needs[k]];
    *spec =
        (struct tide_spec){.kind = planned->drive->act_kind,
                           .account = planned->row->account,
                           .cycle = tide_job_cycle(planned->job),
                           .payload = tide_arena_copy(&writing->arena, payload.data, payload.bytes),
                           .dedupe = tide_arena_copy(&writing->arena, dedupe, strlen(dedupe)),
                           .size_bytes = action->bytes,
                           .needs_index = indexes,
                           .needs_index_count = needs};
    return spec->payload == NULL || spec->dedupe == NULL
               ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for a plan")
               : TIDE_OK;
}

static tide_status make_specs(struct writing *writing, tide_error *err)
{
    const struct tide_drive_plan *plan = writing->planned->plan;
    for (uint32_t i = 0; i < plan->actions_count; i++)
        if (writing->fates[i] == ENQUEUED) {
            writing->spec_of[i] = (uint32_t)writing->specs_count;
            writing->action_of[writing->specs_count++] = i;
        }
    writing->planned->actions = writing->specs_count;
    for (size_t i = 0; i < writing->specs_count; i++) {
        const uint32_t action = writing->action_of[i];
        TIDE_TRY(make_spec(writing, action, writing->indexes + writing->need_from[action],
                           &writing->specs[i], err));
    }
    return TIDE_OK;
}

/* Exactly the deletions of this plan that wait (S16). */
static tide_status list_deletions(tide_rows db, struct writing *writing, tide_error *err)
{
    const struct tide_drive_plan *plan = writing->planned->plan;
    size_t count = 0;
    for (size_t i = 0; i < plan->actions_count; i++)
        count += plan->actions[i].state == TIDE_DRIVE_WAITS_CONSENT ? 1 : 0;
    struct tide_drive_deletion *list = tide_arena_take(&writing->arena, (count + 1) * sizeof *list);
    if (list == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the deletions that wait");
    count = 0;
    for (size_t i = 0; i < plan->actions_count; i++)
        if (plan->actions[i].state == TIDE_DRIVE_WAITS_CONSENT)
            list[count++] = (struct tide_drive_deletion){
                plan->actions[i].item, plan->actions[i].verb, plan->actions[i].name};
    return tide_drive_deletions_set(db, list, count, err);
}

static tide_status write_jobs(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct writing *writing = arg;
    struct tide_drive_planned *planned = writing->planned;
    const tide_rows db = tide_drives_rows(tide_transaction_rows(transaction), planned->row->number);
    TIDE_TRY(list_deletions(db, writing, err));
    TIDE_TRY(tide_drive_unmark(db, planned->loaded->same, planned->loaded->same_count, err));
    const struct tide_drive_slice from = planned->loaded->from;
    if (from.item == 0 && from.row == 0 && !planned->loaded->more) /* it saw all there is */
        TIDE_TRY(tide_drive_owed_settle(db, planned->plan, planned->now_ms, err));
    if (!planned->loaded->more && !planned->again)
        TIDE_TRY(tide_drive_planned(db, planned->changed, planned->now_ms, err));
    if (writing->specs_count == 0)
        return TIDE_OK;
    TIDE_TRY(tide_transaction_enqueue(transaction, writing->specs, writing->specs_count,
                                      writing->ids, err));
    /* Before one of them can end. */
    for (size_t i = 0; i < writing->specs_count; i++) {
        const struct tide_drive_action *action = &planned->plan->actions[writing->action_of[i]];
        tide_drive_acts_add(planned->drive, planned->row->number, writing->ids[i], action->verb,
                            action->bytes);
    }
    return TIDE_OK;
}

static tide_status write_all(struct writing *writing, tide_error *err)
{
    TIDE_TRY(sort_edges(writing, err));
    choose(writing);
    TIDE_TRY(record(writing, err));
    TIDE_TRY(make_specs(writing, err));
    const tide_status rc =
        tide_transact(writing->planned->drive->options.engine, write_jobs, writing, err);
    if (rc != TIDE_OK)
        for (size_t i = 0; i < writing->specs_count && writing->ids[i] != 0; i++)
            tide_drive_acts_drop(writing->planned->drive, writing->ids[i]);
    return rc;
}

static bool owners_fill(struct writing *writing)
{
    const struct tide_drive_trees *trees = &writing->planned->loaded->trees;
    for (size_t i = 0; i < trees->bases_count; i++)
        if (trees->bases[i].row != 0 &&
            !tide_map_put(&writing->owners, trees->bases[i].row, (uint32_t)i))
            return false;
    return true;
}

tide_status tide_drive_plan_write(struct tide_drive_planned *planned, tide_error *err)
{
    tide_mem *mem = planned->drive->mem;
    const size_t count = planned->plan->actions_count + 1, edges = planned->plan->edges_count + 1;
    struct writing writing = {.planned = planned};
    tide_arena_init(&writing.arena, mem, 1 << 30);
    tide_map_init(&writing.owners, mem);
    writing.fates = tide_mem_array(mem, count, sizeof *writing.fates);
    writing.spec_of = tide_mem_array(mem, count, sizeof *writing.spec_of);
    writing.specs = tide_mem_array(mem, count, sizeof *writing.specs);
    writing.action_of = tide_mem_array(mem, count, sizeof *writing.action_of);
    writing.ids = tide_mem_array(mem, count, sizeof *writing.ids);
    writing.indexes = tide_mem_array(mem, edges, sizeof *writing.indexes);
    const bool room = owners_fill(&writing) && writing.fates != NULL && writing.spec_of != NULL &&
                      writing.specs != NULL && writing.action_of != NULL && writing.ids != NULL &&
                      writing.indexes != NULL;
    const tide_status rc = room ? write_all(&writing, err)
                                : tide_error_set(err, TIDE_NO_MEMORY, "no memory for a plan");
    tide_mem_free(mem, writing.fates, count * sizeof *writing.fates);
    tide_mem_free(mem, writing.spec_of, count * sizeof *writing.spec_of);
    tide_mem_free(mem, writing.specs, count * sizeof *writing.specs);
    tide_mem_free(mem, writing.action_of, count * sizeof *writing.action_of);
    tide_mem_free(mem, writing.ids, count * sizeof *writing.ids);
    tide_mem_free(mem, writing.indexes, edges * sizeof *writing.indexes);
    tide_mem_free(mem, writing.needs, edges * sizeof *writing.needs);
    tide_mem_free(mem, writing.need_from, (count + 1) * sizeof *writing.need_from);
    tide_map_done(&writing.owners);
    tide_arena_done(&writing.arena);
    return rc;
}
