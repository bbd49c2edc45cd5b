/* ledger.c - passes each operation to the store behind the ledger, and does what is the
 * same for every store. */
#include "ledger/rows.h"
#include "ledger/ledger.h"
#include "base/check.h"
#include "base/limits.h"
#include "ledger/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

tide_status tide_ledger_open(tide_world *world, const struct tide_ledger_options *options,
                             tide_ledger **ledger_out, tide_error *err)
{
    TIDE_ASSERT(world != NULL);
    TIDE_ASSERT(options->path != NULL);
    if (tide_ledger_is_postgres(options->path))
        return tide_ledger_postgres_open(world, options, ledger_out, err);
    return tide_ledger_sqlite_open(world, options, ledger_out, err);
}

bool tide_ledger_is_postgres(const char *path)
{
    return path != NULL &&
           (strncmp(path, "postgres://", 11) == 0 || strncmp(path, "postgresql://", 13) == 0);
}

/* A password is between the first ':' after "//" and the last '@' before the path, or in
 * the query. */
void tide_ledger_name(const char *path, char *name_out, size_t name_bytes)
{
    (void)snprintf(name_out, name_bytes, "%s", path);
    if (!tide_ledger_is_postgres(path))
        return;
    const char *host = strstr(path, "//") + 2;
    size_t authority = strcspn(host, "/?");
    const char *at = memrchr(host, '@', authority);
    const char *colon = at == NULL ? NULL : memchr(host, ':', (size_t)(at - host));
    if (colon == NULL)
        colon = at;
    const char *tail = at == NULL ? host + authority : at;
    size_t tail_bytes = strcspn(tail, "?");
    if (colon == NULL)
        colon = tail;
    (void)snprintf(name_out, name_bytes, "%.*s%.*s", (int)(colon - path), path, (int)tail_bytes,
                   tail);
}

static char *put_text(char *at, tide_text from, tide_text *to)
{
    if (from.bytes > 0)
        memcpy(at, from.data, from.bytes);
    at[from.bytes] = '\0';
    *to = (tide_text){at, from.bytes};
    return at + from.bytes + 1;
}

struct tide_job_body *tide_job_body_new(tide_mem *mem, tide_text payload, tide_text resume,
                                        tide_text dedupe_key)
{
    size_t bytes =
        sizeof(struct tide_job_body) + payload.bytes + resume.bytes + dedupe_key.bytes + 3;
    struct tide_job_body *body = mem->resize(mem, NULL, 0, bytes);
    if (body == NULL)
        return NULL;
    memset(body, 0, sizeof *body);
    body->bytes = bytes;
    char *at = (char *)(body + 1);
    at = put_text(at, payload, &body->payload);
    at = put_text(at, resume, &body->resume);
    (void)put_text(at, dedupe_key, &body->dedupe_key);
    return body;
}

void tide_job_body_free(tide_mem *mem, struct tide_job_body *body)
{
    if (body != NULL)
        tide_mem_free(mem, body, body->bytes);
}

tide_status tide_job_new_check(const struct tide_job_new *job, size_t index, tide_error *err)
{
    if (job->payload.bytes > TIDE_PAYLOAD_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "payload of %zu bytes, at most %d",
                              job->payload.bytes, TIDE_PAYLOAD_BYTES_MAX);
    if (job->dedupe_key.bytes > TIDE_DEDUPE_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "dedupe key of %zu bytes, at most %d",
                              job->dedupe_key.bytes, TIDE_DEDUPE_BYTES_MAX);
    if (job->priority > TIDE_PRIORITY_MAX || job->lane >= TIDE_LANES)
        return tide_error_set(err, TIDE_INVALID, "priority %u, lane %u", job->priority, job->lane);
    if (job->size_bytes > INT64_MAX || job->not_before_unix_ms > INT64_MAX)
        return tide_error_set(err, TIDE_INVALID, "the size or the time of a job is too large");
    if (job->needs_count + job->needs_earlier_count > TIDE_NEEDS_MAX)
        return tide_error_set(err, TIDE_INVALID, "%zu dependencies, at most %d",
                              job->needs_count + job->needs_earlier_count, TIDE_NEEDS_MAX);
    for (size_t i = 0; i < job->needs_earlier_count; i++)
        if (job->needs_earlier[i] >= index)
            return tide_error_set(err, TIDE_INVALID, "job %zu of the call needs a later job (%u)",
                                  index, job->needs_earlier[i]);
    return TIDE_OK;
}

tide_status tide_item_check(const struct tide_item_report *item, tide_error *err)
{
    if (item->item.bytes == 0 || item->item.bytes > TIDE_ITEM_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "an item's name has 1 to %d bytes, not %zu",
                              TIDE_ITEM_BYTES_MAX, item->item.bytes);
    return TIDE_OK;
}

tide_bad_state tide_bad_state_of(tide_status status)
{
    if (status == TIDE_GONE)
        return TIDE_BAD_GONE;
    return status == TIDE_TIMEOUT ? TIDE_BAD_OWED : TIDE_BAD_BAD;
}

tide_status tide_status_shown(tide_row_state state, int64_t stored)
{
    if (state == TIDE_ROW_DONE)
        return TIDE_OK;
    return state == TIDE_ROW_CANCELED ? TIDE_CANCELED : (tide_status)stored;
}

tide_status tide_stream_keep(struct tide_stream_row *row, tide_buf *kept, tide_error *err)
{
    tide_text *texts[] = {&row->name, &row->cursor, &row->floor, &row->start};
    tide_buf_clear(kept);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (tide_buf_add(kept, texts[i]->data, texts[i]->bytes) != TIDE_OK ||
            tide_buf_add(kept, "", 1) != TIDE_OK)
            return tide_error_set(err, TIDE_NO_MEMORY, "ledger: no memory");
    const char *at = kept->data;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        texts[i]->data = at;
        at += texts[i]->bytes + 1;
    }
    return TIDE_OK;
}

tide_status tide_cycle_check(uint64_t stream, uint64_t ordinal, uint64_t next, tide_error *err)
{
    TIDE_ASSERT(ordinal <= next);
    if (next - ordinal < TIDE_CYCLES_OPEN_MAX)
        return TIDE_OK;
    return tide_error_set(err, TIDE_FULL,
                          "stream %" PRIu64 " has %d open cycles; let the oldest one finish",
                          stream, TIDE_CYCLES_OPEN_MAX);
}

tide_status tide_cursor_check(uint64_t stream, uint64_t ordinal, uint64_t from, uint64_t to,
                              tide_error *err)
{
    if (ordinal != from)
        return tide_error_set(err, TIDE_STALE,
                              "stream %" PRIu64 " is at %" PRIu64 ", no longer at %" PRIu64, stream,
                              ordinal, from);
    if (to <= from)
        return tide_error_set(err, TIDE_BUG, "stream %" PRIu64 ": a cursor never goes back",
                              stream);
    return TIDE_OK;
}

tide_status tide_span_check(uint64_t stream, uint64_t from, uint64_t to, uint64_t count,
                            uint64_t unfinished, tide_error *err)
{
    if (count == to - from && unfinished == 0)
        return TIDE_OK;
    return tide_error_set(err, TIDE_BUG,
                          "stream %" PRIu64 " may not move from %" PRIu64 " to %" PRIu64
                          ": %" PRIu64 " cycles in between, %" PRIu64 " unfinished",
                          stream, from, to, count, unfinished);
}

bool tide_finish_goes_on(const struct tide_finish *finish)
{
    bool parts = false;
    for (size_t i = 0; !parts && i < finish->children_count; i++)
        parts = finish->children[i].part;
    return finish->state == TIDE_ROW_PENDING || parts;
}

/* A finish that exceeds a limit is refused alone, by every store. */
tide_status tide_finish_check(const struct tide_finish *finish, tide_error *err)
{
    TIDE_ASSERT(finish->state != TIDE_ROW_RUNNING);
    TIDE_ASSERT((unsigned)finish->state <= TIDE_ROW_CANCELED);
    if (finish->payload.bytes > TIDE_PAYLOAD_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID,
                              "job %" PRIu64 ": payload of %zu bytes, at most %d", finish->id,
                              finish->payload.bytes, TIDE_PAYLOAD_BYTES_MAX);
    if (finish->resume_set && finish->resume.bytes > TIDE_RESUME_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID,
                              "job %" PRIu64 ": resume data of %zu bytes, at most %d", finish->id,
                              finish->resume.bytes, TIDE_RESUME_BYTES_MAX);
    if (finish->children_count > TIDE_CHILDREN_MAX || finish->items_count > TIDE_ITEMS_MAX)
        return tide_error_set(err, TIDE_FULL, "job %" PRIu64 ": too many children or items",
                              finish->id);
    return TIDE_OK;
}

tide_status tide_part_refused(uint64_t waiting, uint64_t part, tide_error *err)
{
    return tide_error_set(err, TIDE_INVALID,
                          "job %" PRIu64 " would wait forever: the part %" PRIu64 " needs it",
                          waiting, part);
}

void tide_changes_init(struct tide_changes *changes, tide_mem *mem)
{
    memset(changes, 0, sizeof *changes);
    changes->mem = mem;
}

void tide_changes_clear(struct tide_changes *changes)
{
    changes->released_count = 0;
    changes->cycles_count = 0;
    changes->children_count = 0;
    changes->refused_count = 0;
    changes->over_budget_count = 0;
}

#define FREE_ARRAY(name)                                                                           \
    tide_mem_free(changes->mem, changes->name, changes->name##_capacity * sizeof changes->name[0])

void tide_changes_done(struct tide_changes *changes)
{
    if (changes->mem == NULL)
        return;
    FREE_ARRAY(released);
    FREE_ARRAY(cycles);
    FREE_ARRAY(children);
    FREE_ARRAY(refused);
    FREE_ARRAY(over_budget);
    tide_changes_init(changes, changes->mem);
}

struct tide_brief tide_enqueued_brief(const struct tide_job_new *job,
                                      const struct tide_enqueued *enqueued)
{
    return (struct tide_brief){.id = enqueued->id,
                               .cycle = job->cycle,
                               .size_bytes = job->size_bytes,
                               .not_before_ms = job->not_before_unix_ms,
                               .account = job->account,
                               .kind = job->kind,
                               .open_deps = enqueued->open_deps,
                               .attempts = job->attempts,
                               .attempts_max = job->attempts_max,
                               .priority = job->priority,
                               .lane = job->lane,
                               .level = job->level,
                               .preemptible = job->preemptible};
}

/* ---- opening, transactions, handles ---------------------------------------------- */

void tide_ledger_close(tide_ledger *ledger, bool clean)
{
    if (ledger == NULL)
        return;
    ledger->ops->close(ledger, clean);
}

tide_status tide_tx_begin(tide_ledger *ledger, tide_tx **tx_out, tide_error *err)
{
    return ledger->ops->tx_begin(ledger, tx_out, err);
}

tide_status tide_tx_begin_lazily(tide_ledger *ledger, tide_tx **tx_out, tide_error *err)
{
    if (ledger->ops->tx_begin_lazily == NULL)
        return ledger->ops->tx_begin(ledger, tx_out, err);
    return ledger->ops->tx_begin_lazily(ledger, tx_out, err);
}

tide_status tide_tx_commit(tide_tx *tx, tide_error *err)
{
    return tx->ledger->ops->tx_commit(tx, err);
}

void tide_tx_rollback(tide_tx *tx)
{
    if (tx == NULL)
        return;
    tx->ledger->ops->tx_rollback(tx);
}

void tide_ledger_give_up(tide_ledger *ledger)
{
    if (ledger->ops->give_up != NULL)
        ledger->ops->give_up(ledger);
}

struct sqlite3 *tide_tx_sqlite(tide_tx *tx)
{
    return tx->ledger->sqlite;
}

struct sqlite3 *tide_ledger_sqlite(tide_ledger *ledger)
{
    return ledger->sqlite;
}

struct tide_rows_kept *tide_tx_kept(tide_tx *tx)
{
    return tx->ledger->tx_kept;
}

struct tide_rows_kept *tide_ledger_kept(tide_ledger *ledger)
{
    return ledger->kept;
}

bool tide_ledger_purge_more(const tide_ledger *ledger)
{
    return ledger->purge_more;
}

struct pg_conn *tide_tx_postgres(tide_tx *tx)
{
    return tx->ledger->ops->tx_postgres == NULL ? NULL : tx->ledger->ops->tx_postgres(tx);
}

struct pg_conn *tide_ledger_postgres(tide_ledger *ledger)
{
    return ledger->ops->postgres == NULL ? NULL : ledger->ops->postgres(ledger);
}

uint32_t tide_ledger_log_pages(tide_ledger *ledger)
{
    return ledger->log_pages;
}

bool tide_tx_over(tide_tx *tx)
{
    return tx->ledger->ops->tx_over(tx);
}

tide_status tide_tx_savepoint(tide_tx *tx, tide_error *err)
{
    return tx->ledger->ops->savepoint(tx, err);
}

tide_status tide_tx_savepoint_end(tide_tx *tx, bool keep, tide_error *err)
{
    return tx->ledger->ops->savepoint_end(tx, keep, err);
}

tide_status tide_tx_hint(tide_tx *tx, tide_hint hint, uint32_t account, tide_error *err)
{
    return tx->ledger->ops->hint == NULL ? TIDE_OK : tx->ledger->ops->hint(tx, hint, account, err);
}

bool tide_ledger_shared(const tide_ledger *ledger)
{
    return ledger->shared;
}

/* ---- operations ------------------------------------------------------------------ */

static tide_status not_shared(tide_error *err)
{
    return tide_error_set(err, TIDE_INVALID, "only processes that share a ledger can do this");
}

/* Those without a check go to the store as they are. */
#define OP(ledger, name, params, args)                                                             \
    tide_status tide_ledger_##name params                                                          \
    {                                                                                              \
        return (ledger)->ops->name args;                                                           \
    }
#define OP_CHECKED(ledger, name, params, args)
#define OP_SHARED(ledger, name, params, args)                                                      \
    tide_status tide_ledger_##name params                                                          \
    {                                                                                              \
        return (ledger)->ops->name == NULL ? not_shared(err) : (ledger)->ops->name args;           \
    }
#include "ledger/operations.h"

tide_status tide_name_check(const char *what, tide_text name, size_t bytes_max, tide_error *err)
{
    if (name.bytes > 0 && name.bytes <= bytes_max)
        return TIDE_OK;
    return tide_error_set(err, TIDE_INVALID, "the name of %s has 1 to %zu bytes, not %zu", what,
                          bytes_max, name.bytes);
}

tide_status tide_ledger_batch_get(tide_ledger *ledger, tide_text name, uint64_t *ids_out,
                                  size_t ids_max, size_t *count_out, tide_error *err)
{
    tide_status rc = tide_name_check("a batch", name, TIDE_DEDUPE_BYTES_MAX, err);
    return rc != TIDE_OK ? rc
                         : ledger->ops->batch_get(ledger, name, ids_out, ids_max, count_out, err);
}

tide_status tide_ledger_batch_put(tide_tx *tx, tide_text name, const uint64_t *ids, size_t count,
                                  uint64_t now_unix_ms, tide_error *err)
{
    tide_status rc = tide_name_check("a batch", name, TIDE_DEDUPE_BYTES_MAX, err);
    return rc != TIDE_OK ? rc : tx->ledger->ops->batch_put(tx, name, ids, count, now_unix_ms, err);
}

tide_status tide_ledger_beat(tide_tx *tx, const struct tide_beat *beats, size_t count,
                             uint64_t now_unix_ms, bool *applied_out, tide_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (beats[i].resume_set && beats[i].resume.bytes > TIDE_RESUME_BYTES_MAX)
            return tide_error_set(err, TIDE_INVALID,
                                  "job %" PRIu64 ": resume data of %zu bytes, at most %d",
                                  beats[i].id, beats[i].resume.bytes, TIDE_RESUME_BYTES_MAX);
    return tx->ledger->ops->beat(tx, beats, count, now_unix_ms, applied_out, err);
}

tide_status tide_ledger_stream(tide_tx *tx, uint32_t account, const char *name, tide_text floor,
                               struct tide_stream_row *row_out, tide_error *err)
{
    tide_status rc = tide_name_check("a stream", tide_text_of(name), TIDE_NAME_BYTES_MAX, err);
    return rc != TIDE_OK ? rc : tx->ledger->ops->stream(tx, account, name, floor, row_out, err);
}

tide_status tide_ledger_intent(tide_tx *tx, uint64_t job, tide_text tag, tide_text detail,
                               uint64_t now_unix_ms, tide_intent_state *state_out,
                               tide_buf *outcome_out, tide_error *err)
{
    if (tag.bytes == 0 || tag.bytes > TIDE_DEDUPE_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "an intent's tag has 1 to %d bytes",
                              TIDE_DEDUPE_BYTES_MAX);
    return tx->ledger->ops->intent(tx, job, tag, detail, now_unix_ms, state_out, outcome_out, err);
}

tide_status tide_ledger_schedule_fire(tide_tx *tx, uint64_t schedule, uint64_t slot,
                                      uint64_t now_unix_ms, tide_error *err)
{
    if (slot == 0 || slot > INT64_MAX)
        return tide_error_set(err, TIDE_INVALID, "slots begin at 1");
    return tx->ledger->ops->schedule_fire(tx, schedule, slot, now_unix_ms, err);
}
