/* sights.c - what a sync saw becomes jobs, in transactions of a bounded size (JBS5). */
#include "assistant/jobs/inside.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

enum {
    SIGHTS_MAX = 200000,
    CHUNK = 200, /* of one transaction, which PostgreSQL ends after 4 s */
};

#define ANSWER_MS UINT64_C(172800000) /* over budget a question waits until the next day */

void tide_sights_init(struct tide_sights *sights, struct tide_task *task)
{
    *sights = (struct tide_sights){.task = task};
    tide_map_init(&sights->known, task->jobs->mem);
    tide_map_init(&sights->failed, task->jobs->mem);
}

void tide_sights_done(struct tide_sights *sights)
{
    tide_mem_free(sights->task->jobs->mem, sights->list, sights->capacity * sizeof *sights->list);
    tide_map_done(&sights->known);
    tide_map_done(&sights->failed);
}

/* Two threads with one key are one chance in 2^64 for each pair, and then a full sync finds the
 * other. */
static uint64_t key_of(tide_assistant_sight sight, tide_text thread_id)
{
    const uint64_t hash = tide_hash(tide_hash_byte(TIDE_HASH_START, (uint8_t)sight), thread_id);
    return hash == 0 ? 1 : hash;
}

tide_status tide_sights_add(struct tide_sights *sights, tide_assistant_sight sight,
                            tide_text thread_id, tide_text message_id, tide_error *err)
{
    tide_mem *mem = sights->task->jobs->mem;
    const uint64_t key = key_of(sight, thread_id);
    /* Each time counts where one may be ours and the next the user's (J22). */
    const bool each = sight == TIDE_SIGHT_NEEDS_RESPONSE;
    uint32_t there = 0;
    if (thread_id.bytes == 0 || thread_id.bytes >= TIDE_ASSISTANT_ID_BYTES ||
        message_id.bytes >= TIDE_ASSISTANT_ID_BYTES)
        return TIDE_OK; /* no id of Gmail */
    if (!each && tide_map_get(&sights->known, key, &there))
        return TIDE_OK;
    if (!TIDE_GROW_IN(mem, sights->list, sights->capacity, sights->count + 1, SIGHTS_MAX) ||
        !tide_map_put(&sights->known, key, 1))
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for what a sync saw");
    struct tide_sight *one = &sights->list[sights->count++];
    one->sight = sight;
    (void)snprintf(one->thread_id, sizeof one->thread_id, "%.*s", (int)thread_id.bytes,
                   thread_id.data);
    (void)snprintf(one->message_id, sizeof one->message_id, "%.*s", (int)message_id.bytes,
                   message_id.bytes > 0 ? message_id.data : "");
    return TIDE_OK;
}

tide_status tide_sights_failed(struct tide_sights *sights, const char *thread_id, tide_error *err)
{
    return tide_map_put(&sights->failed, tide_hash_key(tide_text_of(thread_id)), 1)
               ? TIDE_OK
               : tide_error_set(err, TIDE_NO_MEMORY, "no memory for what a sync saw");
}

/* ---- jobs ---- */

static const struct {
    tide_assistant_kind kind;
    const char *key, *value; /* of the payload beside the ids; NULL: none */
    const char *dedupe;      /* before the thread */
} jobs_of[TIDE_WORKS] = {
    [TIDE_WORK_CLASSIFY] = {TIDE_ASSISTANT_CLASSIFY, "round", "new", "new"},
    [TIDE_WORK_RETRIAGE] = {TIDE_ASSISTANT_CLASSIFY, "round", "retriage", "retriage"},
    [TIDE_WORK_DONE] = {TIDE_ASSISTANT_CLEANUP, "action", "done", "done"},
    [TIDE_WORK_CHECK_SENT] = {TIDE_ASSISTANT_CLEANUP, "action", "check_sent", "check_sent"},
    [TIDE_WORK_REWORK] = {TIDE_ASSISTANT_REWORK, NULL, NULL, "rework"},
    [TIDE_WORK_MANUAL_DRAFT] = {TIDE_ASSISTANT_MANUAL_DRAFT, NULL, NULL, "manual"},
    [TIDE_WORK_DRAFT] = {TIDE_ASSISTANT_DRAFT, NULL, NULL, "draft"},
    [TIDE_WORK_AGENT] = {TIDE_ASSISTANT_AGENT, NULL, NULL, "agent"},
    [TIDE_WORK_LEFT] = {TIDE_ASSISTANT_CLEANUP, "action", "left", "left"},
};

static tide_status enqueue(tide_transaction *transaction, const struct tide_task *task,
                           const struct tide_sight *sight, tide_assistant_work work,
                           tide_error *err)
{
    char dedupe[TIDE_ASSISTANT_KEY_BYTES];
    tide_auto_buf payload = tide_buf_in(task->jobs->mem, 1024);
    tide_auto_json json;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "thread_id", sight->thread_id);
    if (sight->message_id[0] != '\0')
        tide_json_set_cstr(&json, "message_id", sight->message_id);
    /* A new message of a thread whose first classification runs now wants another round after it
     * (J25): the round that looks at the count of messages does for both. */
    const bool message = work == TIDE_WORK_CLASSIFY && (sight->sight == TIDE_SIGHT_MESSAGE ||
                                                        sight->sight == TIDE_SIGHT_LISTED_GAP);
    const tide_assistant_work as = message ? TIDE_WORK_RETRIAGE : work;
    if (jobs_of[as].key != NULL)
        tide_json_set_cstr(&json, jobs_of[as].key, jobs_of[as].value);
    TIDE_TRY(tide_json_line(&json, &payload));
    (void)snprintf(dedupe, sizeof dedupe, "%s/%s", jobs_of[as].dedupe, sight->thread_id);
    const struct tide_spec spec = {.kind = task->jobs->kinds[jobs_of[as].kind],
                                   .account = task->account,
                                   .dedupe = dedupe,
                                   .payload = tide_buf_cstr(&payload)};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

/* ---- transactions ---- */

struct chunk {
    const struct tide_sights *sights;
    size_t from, to;
    const char *history_from, *history_to; /* NULL: it does not move */
    bool full;
};

/* A record in work, unless the model still thinks about it. */
static tide_status resume(tide_transaction *transaction, const struct tide_task *task,
                          const struct tide_sight *sight, tide_assistant_work work, tide_error *err)
{
    const tide_rows db = tide_transaction_rows(transaction);
    const struct tide_assistant_event event = {.account = task->account,
                                               .thread_id = sight->thread_id,
                                               .kind = "resumed",
                                               .detail = "",
                                               .job = tide_job_id(task->job),
                                               .at_ms = task->now_ms};
    bool open = false;
    TIDE_TRY(tide_assistant_call_open(db, task->account, sight->thread_id,
                                      task->now_ms > ANSWER_MS ? task->now_ms - ANSWER_MS : 0,
                                      &open, err));
    if (open)
        return TIDE_OK;
    TIDE_SEEN("assistant: a record was in work without a job");
    if (work == TIDE_WORK_DRAFT)
        TIDE_TRY(tide_assistant_email_move(db, &event, TIDE_ASSISTANT_PENDING, err));
    return enqueue(transaction, task, sight, work, err);
}

/* J22: whether the label that a sync saw is ours.  A listing shows one that a job put on and has not
 * recorded yet; it does not tell of a change, so that the mark is left to history. */
static tide_status is_ours(tide_rows db, const struct tide_task *task,
                           const struct tide_sight *sight, bool *ours_out, tide_error *err)
{
    const char *label = task->labels.ids[TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE];
    *ours_out = false;
    if (sight->sight == TIDE_SIGHT_NEEDS_RESPONSE)
        return tide_assistant_mark_take(db, task->account, sight->message_id, label, ours_out, err);
    if (sight->sight == TIDE_SIGHT_NEEDS_RESPONSE_GAP)
        return tide_assistant_mark_open(db, task->account, sight->message_id, label, ours_out, err);
    return TIDE_OK;
}

/* Whether the sight makes no job, since one that failed is there for it (JBS8).  A message that came and a
 * label that the user put on are reasons to try again; so is another message of one that is listed. */
static tide_status look_failed(tide_rows db, const struct tide_sights *sights,
                               const struct tide_sight *sight, bool *left_out, tide_error *err)
{
    const uint32_t account = sights->task->account;
    struct tide_assistant_failure failure;
    uint32_t there = 0;
    *left_out = false;
    switch (sight->sight) {
    case TIDE_SIGHT_MESSAGE:
    case TIDE_SIGHT_DONE:
    case TIDE_SIGHT_REWORK:
    case TIDE_SIGHT_NEEDS_RESPONSE:
        return tide_assistant_failure_reset(
            db, account, sight->thread_id,
            sight->sight == TIDE_SIGHT_MESSAGE ? sight->message_id : "", err);
    case TIDE_SIGHT_LISTED:
    case TIDE_SIGHT_LISTED_GAP:
        break;
    default:
        return TIDE_OK;
    }
    if (!tide_map_get(&sights->failed, tide_hash_key(tide_text_of(sight->thread_id)), &there))
        return TIDE_OK;
    const tide_status rc = tide_assistant_failure_get(db, account, sight->thread_id, &failure, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    *left_out = strcmp(failure.message_id, sight->message_id) == 0;
    return *left_out ? TIDE_OK
                     : tide_assistant_failure_reset(db, account, sight->thread_id,
                                                    sight->message_id, err);
}

static tide_status decide(tide_transaction *transaction, const struct tide_sights *sights,
                          const struct tide_sight *sight, tide_error *err)
{
    const struct tide_task *task = sights->task;
    const tide_rows db = tide_transaction_rows_often(transaction);
    struct tide_assistant_email email;
    bool ours = false, left = false;
    TIDE_TRY(is_ours(db, task, sight, &ours, err));
    if (ours)
        return TIDE_OK;
    TIDE_TRY(look_failed(db, sights, sight, &left, err));
    if (left)
        return TIDE_OK;
    const tide_status rc =
        tide_assistant_email_get(db, task->account, sight->thread_id, &email, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    const bool same = rc == TIDE_OK && (sight->sight == TIDE_SIGHT_STUCK
                                            ? email.draft_id[0] != '\0'
                                            : strcmp(email.message_id, sight->message_id) == 0);
    const tide_assistant_work work = tide_assistant_work_for(
        sight->sight, rc == TIDE_OK ? email.status : TIDE_ASSISTANT_NO_STATUS, same);
    if (work != TIDE_WORK_NONE && sight->sight == TIDE_SIGHT_STUCK)
        return resume(transaction, task, sight, work, err);
    return work == TIDE_WORK_NONE ? TIDE_OK : enqueue(transaction, task, sight, work, err);
}

static tide_status write_chunk(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct chunk *chunk = arg;
    const struct tide_task *task = chunk->sights->task;
    for (size_t i = chunk->from; i < chunk->to; i++)
        TIDE_TRY(decide(transaction, chunk->sights, &chunk->sights->list[i], err));
    if (chunk->history_to == NULL)
        return TIDE_OK;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(tide_assistant_marks_prune(db, task->account, task->now_ms, chunk->sights->gap, err));
    return tide_assistant_sync_move(db, task->account, chunk->history_from, chunk->history_to,
                                    chunk->full, task->now_ms, err);
}

tide_status tide_sights_commit(struct tide_sights *sights, const char *from, const char *to,
                               bool full, tide_error *err)
{
    tide_engine *engine = sights->task->jobs->options.engine;
    struct chunk chunk = {.sights = sights, .history_from = from, .full = full};
    size_t at = 0;
    for (; sights->count - at > CHUNK; at += CHUNK) {
        chunk.from = at;
        chunk.to = at + CHUNK;
        TIDE_TRY(tide_transact(engine, write_chunk, &chunk, err));
        tide_job_beat(sights->task->job, 0);
    }
    chunk.from = at;
    chunk.to = sights->count;
    chunk.history_to = to;
    return tide_transact(engine, write_chunk, &chunk, err);
}
