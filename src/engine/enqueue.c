/* enqueue.c - checks new jobs, orders them, writes them in slices (E1.5, E1.6, E2.5). */
#include "engine/engine.h"
#include "base/check.h"
#include "base/json.h"
#include "core/deps.h"
#include "engine/options.h"
#include "ledger/rows.h"

#include <inttypes.h>

#include <stdio.h>
#include <string.h>

/* So that now + delay cannot overflow. */
#define TIDE_DELAY_MS_MAX ((uint64_t)100 * 365 * 24 * 3600 * 1000)

/* Items that a worker could not read back would be lost without an error. */
static tide_status items_check(const struct tide_kind_entry *kind, const json_t *payload,
                               tide_error *err)
{
    const json_t *items = json_object_get(payload, "items");
    size_t count = json_array_size(items);
    if (!json_is_array(items) || count == 0 || count > TIDE_ITEMS_MAX)
        return tide_error_set(err, TIDE_INVALID,
                              "payload for kind %s: \"items\" must be a list of 1 to %d texts",
                              kind->kind.name, TIDE_ITEMS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(items, i);
        size_t bytes = json_string_length(item);
        if (!json_is_string(item) || bytes == 0 || bytes > TIDE_ITEM_BYTES_MAX)
            return tide_error_set(err, TIDE_INVALID,
                                  "payload for kind %s: item %zu is not a text of 1 to %d bytes",
                                  kind->kind.name, i, TIDE_ITEM_BYTES_MAX);
    }
    return TIDE_OK;
}

static tide_status payload_check(const struct tide_kind_entry *kind, tide_text payload,
                                 tide_error *err)
{
    uint32_t bytes_max =
        kind->kind.payload_bytes_max != 0 ? kind->kind.payload_bytes_max : 64 << 10;
    if (payload.bytes > bytes_max)
        return tide_error_set(err, TIDE_INVALID,
                              "payload of %zu bytes for kind %s; at most %u are allowed",
                              payload.bytes, kind->kind.name, bytes_max);
    if (payload.bytes == 2 && memcmp(payload.data, "{}", 2) == 0 && !kind->kind.items)
        return TIDE_OK;
    json_t *parsed = NULL;
    tide_error why = {TIDE_OK, 0, ""};
    tide_status rc = tide_json_parse(payload, &parsed, &why);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "payload for kind %s is %s", kind->kind.name, why.text);
    bool object = json_is_object(parsed);
    if (object && kind->kind.items)
        rc = items_check(kind, parsed, err);
    json_decref(parsed);
    if (rc != TIDE_OK)
        return rc;
    if (!object)
        return tide_error_set(err, TIDE_INVALID, "payload for kind %s is not a JSON object",
                              kind->kind.name);
    return TIDE_OK;
}

static uint8_t lane_of(const tide_engine *engine, const struct tide_kind *kind, uint64_t size_bytes)
{
    if (kind->lane == TIDE_KIND_INTERACTIVE)
        return TIDE_LANE_INTERACTIVE;
    uint64_t below = __atomic_load_n(&engine->interactive_below_bytes, __ATOMIC_RELAXED);
    if (kind->lane == TIDE_KIND_BULK && size_bytes > 0 && size_bytes < below)
        return TIDE_LANE_INTERACTIVE; /* a small transfer (E3.1) */
    return TIDE_LANE_BULK;
}

static tide_text payload_of(const struct tide_spec *spec)
{
    return spec->payload == NULL ? TIDE_TEXT("{}") : tide_text_of(spec->payload);
}

/* Accounts may be added while the engine runs; the lock guards their map. */
static bool account_known(tide_engine *engine, uint32_t account)
{
    tide_lock_take(engine->world, engine->lock);
    bool known = tide_engine_account_of(engine, account) != NULL;
    tide_lock_drop(engine->world, engine->lock);
    return known;
}

tide_status tide_spec_check(tide_engine *engine, const struct tide_spec *spec, tide_error *err)
{
    struct tide_kind_entry *entry = tide_engine_kind_of(engine, spec->kind);
    if (entry == NULL)
        return tide_error_set(err, TIDE_INVALID,
                              "unknown kind %" PRIu32 ": define it with tide_engine_kind() first",
                              spec->kind);
    if (TIDE_RESERVED_USED(spec))
        return tide_reserved_refuse("struct tide_spec", err);
    if (spec->account != 0 && !account_known(engine, spec->account))
        return tide_error_set(err, TIDE_INVALID, "unknown account %" PRIu32, spec->account);
    if (spec->priority > TIDE_PRIORITY_MAX)
        return tide_error_set(err, TIDE_INVALID, "priority %d; 0 to %d are allowed", spec->priority,
                              TIDE_PRIORITY_MAX);
    if (spec->needs_count > TIDE_NEEDS_MAX)
        return tide_error_set(err, TIDE_INVALID, "%zu dependencies; at most %d are allowed",
                              spec->needs_count, TIDE_NEEDS_MAX);
    if (spec->delay_ms > TIDE_DELAY_MS_MAX)
        return tide_error_set(err, TIDE_INVALID,
                              "a delay of %" PRIu64 " ms; at most 100 years are allowed",
                              spec->delay_ms);
    tide_text dedupe = tide_text_of(spec->dedupe);
    if (dedupe.bytes > TIDE_DEDUPE_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "dedupe key of %zu bytes; at most %d are allowed",
                              dedupe.bytes, TIDE_DEDUPE_BYTES_MAX);
    return payload_check(entry, payload_of(spec), err);
}

/* The retry budget of a new job: its kind's, or what counts for its account. */
static uint16_t attempts_of(tide_engine *engine, const struct tide_kind *kind, uint32_t id)
{
    if (kind->attempts_max > 0)
        return kind->attempts_max;
    uint16_t attempts = __atomic_load_n(&engine->attempts_max, __ATOMIC_RELAXED);
    if (id == 0)
        return attempts;
    tide_lock_take(engine->world, engine->lock);
    const struct tide_account *account = tide_engine_account_of(engine, id);
    if (account != NULL)
        attempts = account->attempts_max;
    tide_lock_drop(engine->world, engine->lock);
    return attempts;
}

void tide_spec_convert(tide_engine *engine, const struct tide_spec *spec, uint64_t now_unix_ms,
                       struct tide_job_new *job_out)
{
    struct tide_kind_entry *entry = tide_engine_kind_of(engine, spec->kind);
    TIDE_ASSERT(entry != NULL); /* tide_spec_check() came first */
    const struct tide_kind *kind = &entry->kind;
    *job_out = (struct tide_job_new){
        .account = spec->account,
        .kind = spec->kind,
        .cycle = spec->cycle,
        .dedupe_key = tide_text_of(spec->dedupe),
        .payload = payload_of(spec),
        .needs = spec->needs,
        .needs_count = spec->needs_count,
        .size_bytes = spec->size_bytes,
        .not_before_unix_ms = spec->delay_ms > 0 ? now_unix_ms + spec->delay_ms : 0,
        .attempts_max = attempts_of(engine, kind, spec->account),
        .priority = spec->priority > 0   ? (uint8_t)spec->priority
                    : spec->priority < 0 ? 0
                                         : kind->priority,
        .lane = lane_of(engine, kind, spec->size_bytes),
        .level = kind->level,
        .preemptible = !kind->not_preemptible,
        .force = spec->force,
    };
}

/* ---- inside a transaction --------------------------------------------------------- */

static tide_status new_rows_add_job(struct tide_transaction *transaction,
                                    const struct tide_job_new *job,
                                    const struct tide_enqueued *enqueued, tide_error *err)
{
    struct tide_new_rows *new_rows = &transaction->new_rows;
    if (!TIDE_GROW_IN(transaction->engine->mem, new_rows->jobs, new_rows->jobs_capacity,
                      new_rows->jobs_count + 1, SIZE_MAX / sizeof *new_rows->jobs))
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to remember new jobs");
    new_rows->jobs[new_rows->jobs_count++] = (struct tide_enqueued_job){
        .brief = tide_enqueued_brief(job, enqueued),
        .existed = enqueued->existed,
        .raised = enqueued->raised,
    };
    for (size_t i = 0; i < new_rows->cycles_count; i++)
        if (new_rows->cycles[i].cycle == job->cycle && !enqueued->existed)
            new_rows->cycles[i].jobs++;
    return TIDE_OK;
}

/* Jobs in one call of the ledger.  On a server each call is a round trip; on SQLite a call
 * costs nothing, and a small chunk fits the cache better. */
enum { CHUNK = 64, CHUNK_SHARED = 10 * TIDE_ENQUEUE_SLICE };

struct chunk {
    size_t max;
    struct tide_job_new *jobs;
    struct tide_enqueued *enqueued;
};

static void chunk_done(struct chunk *chunk, tide_mem *mem)
{
    tide_mem_free(mem, chunk->enqueued, chunk->max * sizeof chunk->enqueued[0]);
    tide_mem_free(mem, chunk->jobs, chunk->max * sizeof chunk->jobs[0]);
}

static tide_status chunk_init(struct chunk *chunk, tide_engine *engine, size_t count,
                              tide_error *err)
{
    size_t max = engine->fleet != NULL ? CHUNK_SHARED : CHUNK;
    chunk->max = count < max ? count : max;
    chunk->jobs = tide_mem_array(engine->mem, chunk->max, sizeof chunk->jobs[0]);
    chunk->enqueued = tide_mem_array(engine->mem, chunk->max, sizeof chunk->enqueued[0]);
    if (chunk->jobs != NULL && chunk->enqueued != NULL)
        return TIDE_OK;
    chunk_done(chunk, engine->mem);
    return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu jobs", chunk->max);
}

static tide_status enqueue_chunk(struct tide_transaction *transaction, struct chunk *chunk,
                                 size_t count, tide_error *err)
{
    TIDE_ASSERT(count <= chunk->max);
    TIDE_TRY(tide_ledger_enqueue(transaction->tx, chunk->jobs, count, transaction->now_unix_ms,
                                 chunk->enqueued, err));
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(new_rows_add_job(transaction, &chunk->jobs[i], &chunk->enqueued[i], err));
    return TIDE_OK;
}

/* `ids` holds the id of every spec that is already written, by its index in the
 * caller's array; `order` says in which sequence to write them. */
struct slice {
    tide_engine *engine;
    const struct tide_spec *specs;
    const uint32_t *order; /* NULL: the order of `specs` */
    size_t first, count;
    uint64_t *ids;
};

static const struct tide_spec *slice_spec(const struct slice *slice, size_t at, size_t *index_out)
{
    *index_out = slice->order != NULL ? slice->order[at] : at;
    return &slice->specs[*index_out];
}

/* Turns dependencies given as indexes into ids: the jobs they name were written earlier. */
static tide_status resolve_needs(const struct slice *slice, const struct tide_spec *spec,
                                 tide_arena *arena, struct tide_job_new *job, tide_error *err)
{
    if (spec->needs_index_count == 0)
        return TIDE_OK;
    size_t count = spec->needs_count + spec->needs_index_count;
    uint64_t *needs = tide_arena_take(arena, count * sizeof *needs);
    if (needs == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for dependencies");
    for (size_t i = 0; i < spec->needs_count; i++)
        needs[i] = spec->needs[i];
    for (size_t i = 0; i < spec->needs_index_count; i++)
        needs[spec->needs_count + i] = slice->ids[spec->needs_index[i]];
    job->needs = needs;
    job->needs_count = count;
    return TIDE_OK;
}

/* Whether the spec needs a job of the current chunk: specs of one chunk must not need each
 * other, because their ids are not known yet. */
static bool needs_within(const struct slice *slice, const struct tide_spec *spec)
{
    for (size_t i = 0; i < spec->needs_index_count; i++)
        if (slice->ids[spec->needs_index[i]] == 0)
            return true;
    return false;
}

static tide_status slice_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct slice *slice = arg;
    struct chunk chunk;
    TIDE_TRY(chunk_init(&chunk, slice->engine, slice->count, err));
    tide_auto_arena arena = tide_arena_in(slice->engine->mem, 16 << 20);
    size_t at = slice->first;
    size_t end = slice->first + slice->count;
    for (size_t i = at; i < end; i++) { /* a transaction may have to be repeated */
        size_t index = 0;
        (void)slice_spec(slice, i, &index);
        slice->ids[index] = 0;
    }
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && at < end) {
        size_t count = 0;
        while (rc == TIDE_OK && count < chunk.max && at + count < end) {
            size_t index = 0;
            const struct tide_spec *spec = slice_spec(slice, at + count, &index);
            if (needs_within(slice, spec))
                break;
            tide_spec_convert(slice->engine, spec, transaction->now_unix_ms, &chunk.jobs[count]);
            rc = resolve_needs(slice, spec, &arena, &chunk.jobs[count], err);
            count++;
        }
        TIDE_ASSERT(rc != TIDE_OK || count > 0); /* the order is topological */
        if (rc == TIDE_OK)
            rc = enqueue_chunk(transaction, &chunk, count, err);
        for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
            size_t index = 0;
            (void)slice_spec(slice, at + i, &index);
            slice->ids[index] = chunk.enqueued[i].id;
        }
        at += count;
        tide_arena_reset(&arena);
    }
    chunk_done(&chunk, slice->engine->mem);
    if (rc != TIDE_OK)
        for (size_t i = slice->first; i < end; i++) {
            size_t index = 0;
            (void)slice_spec(slice, i, &index);
            slice->ids[index] = 0;
        }
    return rc;
}

/* ---- order ---------------------------------------------------------------------------- */

static bool in_order(const struct tide_spec *specs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < specs[i].needs_index_count; j++)
            if (specs[i].needs_index[j] >= i)
                return false;
    return true;
}

static tide_status find_order(tide_engine *engine, const struct tide_spec *specs, size_t count,
                              uint32_t **order_out, tide_error *err)
{
    size_t edges_count = 0;
    for (size_t i = 0; i < count; i++)
        edges_count += specs[i].needs_index_count;
    struct tide_edge *edges = tide_mem_array(engine->mem, edges_count, sizeof *edges);
    uint32_t *order = tide_mem_array(engine->mem, count, sizeof *order);
    tide_status rc = TIDE_OK;
    if (edges == NULL || order == NULL) {
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory to order %zu jobs", count);
        goto done;
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < specs[i].needs_index_count; j++)
            edges[at++] = (struct tide_edge){(uint32_t)i, specs[i].needs_index[j]};
    rc = tide_deps_order((uint32_t)count, edges, edges_count, engine->mem, order, NULL, err);
    if (rc == TIDE_OK) {
        *order_out = order;
        order = NULL;
    }

done:
    tide_mem_free(engine->mem, edges, edges_count * sizeof *edges);
    tide_mem_free(engine->mem, order, count * sizeof *order);
    return rc;
}

static tide_status check_all(tide_engine *engine, const struct tide_spec *specs, size_t count,
                             tide_error *err)
{
    if (count >= UINT32_MAX)
        return tide_error_set(err, TIDE_INVALID, "too many jobs in one call");
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(tide_spec_check(engine, &specs[i], err));
        for (size_t j = 0; j < specs[i].needs_index_count; j++)
            if (specs[i].needs_index[j] >= count)
                return tide_error_set(err, TIDE_INVALID,
                                      "job %zu needs job %" PRIu32 " of a call of %zu", i,
                                      specs[i].needs_index[j], count);
    }
    return TIDE_OK;
}

tide_status tide_transaction_enqueue(tide_transaction *transaction, const struct tide_spec *specs,
                                     size_t count, uint64_t *ids_out, tide_error *err)
{
    tide_engine *engine = transaction->engine;
    tide_status rc = check_all(engine, specs, count, err);
    if (rc != TIDE_OK || count == 0)
        return rc;
    struct slice slice = {.engine = engine, .specs = specs, .first = 0, .count = count};
    uint32_t *order = NULL;
    if (!in_order(specs, count))
        rc = find_order(engine, specs, count, &order, err);
    slice.order = order;
    slice.ids = tide_mem_array(engine->mem, count, sizeof *slice.ids);
    if (rc == TIDE_OK && slice.ids == NULL)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu jobs", count);
    if (rc == TIDE_OK)
        rc = slice_write(transaction, &slice, err);
    if (rc == TIDE_OK && ids_out != NULL)
        memcpy(ids_out, slice.ids, count * sizeof *ids_out);
    tide_mem_free(engine->mem, slice.ids, count * sizeof *slice.ids);
    tide_mem_free(engine->mem, order, count * sizeof *order);
    return rc;
}

tide_status tide_enqueue(tide_engine *engine, const struct tide_spec *specs, size_t count,
                         uint64_t *ids_out, tide_error *err)
{
    tide_status rc = check_all(engine, specs, count, err);
    if (rc != TIDE_OK || count == 0)
        return rc;
    uint32_t *order = NULL;
    if (!in_order(specs, count))
        rc = find_order(engine, specs, count, &order, err);
    uint64_t *ids = tide_mem_array(engine->mem, count, sizeof *ids);
    if (rc == TIDE_OK && ids == NULL)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu jobs", count);

    struct slice slice = {.engine = engine, .specs = specs, .order = order, .ids = ids};
    size_t slice_max = __atomic_load_n(&engine->enqueue_slice, __ATOMIC_RELAXED);
    if (engine->fleet != NULL)
        slice_max *= CHUNK_SHARED / TIDE_ENQUEUE_SLICE;
    while (rc == TIDE_OK && slice.first < count) {
        slice.count = count - slice.first < slice_max ? count - slice.first : slice_max;
        struct tide_write write = {.run = slice_write, .arg = &slice};
        rc = tide_write_run(engine, &write, err);
        if (rc == TIDE_OK)
            slice.first += slice.count;
    }
    if (rc != TIDE_OK && slice.first > 0 && err != NULL) {
        char reason[200];
        (void)snprintf(reason, sizeof reason, "%.190s", err->text);
        (void)tide_error_set(err, rc, "%zu of %zu jobs were enqueued, then: %s", slice.first, count,
                             reason);
    }
    if (ids != NULL && ids_out != NULL)
        memcpy(ids_out, ids, count * sizeof *ids_out);
    tide_mem_free(engine->mem, ids, count * sizeof *ids);
    tide_mem_free(engine->mem, order, count * sizeof *order);
    return rc;
}

/* ---- once ------------------------------------------------------------------------------- */

struct once {
    tide_text name;
    const struct tide_spec *specs;
    size_t count;
    uint64_t *ids;
    size_t known; /* ids that an earlier call left under that name */
};

static tide_status once_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct once *once = arg;
    once->known = 0;
    tide_status rc = tide_ledger_batch_get(transaction->engine->ledger, once->name, once->ids,
                                           once->count, &once->known, err);
    if (rc == TIDE_FULL)
        return tide_error_set(err, TIDE_INVALID,
                              "an earlier enqueue of that name had more than these %zu jobs",
                              once->count);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    rc = tide_transaction_enqueue(transaction, once->specs, once->count, once->ids, err);
    if (rc == TIDE_OK)
        rc = tide_ledger_batch_put(transaction->tx, once->name, once->ids, once->count,
                                   transaction->now_unix_ms, err);
    once->known = once->count;
    /* Another process enqueued under the name first: try again, to get its ids. */
    return rc == TIDE_EXISTS ? TIDE_BUSY : rc;
}

tide_status tide_enqueue_once(tide_engine *engine, const char *name, const struct tide_spec *specs,
                              size_t count, uint64_t *ids_out, tide_error *err)
{
    if (name == NULL || name[0] == '\0' || strlen(name) > TIDE_NAME_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "the name of an enqueue has 1 to %d bytes",
                              TIDE_NAME_BYTES_MAX);
    if (count == 0 || count > TIDE_ENQUEUE_ONCE_MAX)
        return tide_error_set(err, TIDE_INVALID, "1 to %d jobs at once, not %zu",
                              TIDE_ENQUEUE_ONCE_MAX, count);
    uint64_t *ids = tide_mem_array(engine->mem, count, sizeof *ids);
    if (ids == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu jobs", count);
    struct once once = {tide_text_of(name), specs, count, ids, 0};
    struct tide_write write = {.run = once_run, .arg = &once};
    tide_status rc = tide_write_run(engine, &write, err);
    if (rc == TIDE_OK && once.known != count)
        rc = tide_error_set(err, TIDE_INVALID,
                            "the earlier enqueue %.100s had %zu jobs, this one has %zu", name,
                            once.known, count);
    if (rc == TIDE_OK && ids_out != NULL)
        memcpy(ids_out, ids, count * sizeof *ids_out);
    tide_mem_free(engine->mem, ids, count * sizeof *ids);
    return rc;
}

tide_status tide_transact(tide_engine *engine, tide_transact_fn *run, void *arg, tide_error *err)
{
    struct tide_write write = {.run = run, .arg = arg, .own = true};
    return tide_write_run(engine, &write, err);
}

struct sqlite3 *tide_transaction_sqlite(tide_transaction *transaction)
{
    return tide_tx_sqlite(transaction->tx);
}

struct tide_rows_kept *tide_transaction_kept(tide_transaction *transaction)
{
    return tide_tx_kept(transaction->tx);
}

struct pg_conn *tide_transaction_postgres(tide_transaction *transaction)
{
    return tide_tx_postgres(transaction->tx);
}
