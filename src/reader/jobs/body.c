/* body.c - whole messages: one that a person opened, and those that are kept to be read without a
 * network (K5, K3). */
#include "reader/jobs/jobs.h"

#include "mail/mime/message.h"
#include "settings/settings.h"

#include <stdio.h>

enum { OFFLINE_AT_ONCE = 5, SNIPPET_BYTES = 200, ARENA_BYTES_MAX = 64 << 20 };

struct look {
    bool body, headers;
};

static bool see(const struct tide_cached *cached, void *arg)
{
    struct look *look = arg;
    look->body = cached->body;
    look->headers = cached->headers;
    return false;
}

/* KR5. */
static tide_status is_here(struct tide_reader_task *task, tide_text id, bool *here_out,
                           struct look *look, tide_error *err)
{
    struct tide_stored stored;
    const tide_status rc = tide_cache_find(task->cache, id, see, look, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    *here_out = look->body || tide_reader_archived(task->archive, id, &stored);
    return TIDE_OK;
}

static size_t labels_of(const struct tide_gmail_message *message, tide_text *labels)
{
    size_t count = 0;
    size_t at = 0;
    const json_t *label = NULL;
    json_array_foreach(message->labels, at, label)
    {
        if (count < TIDE_CACHE_LABELS_MAX)
            labels[count++] = (tide_text){json_string_value(label), json_string_length(label)};
    }
    return count;
}

/* The headers come with the body, where the row has none. */
static tide_status store(struct tide_reader_task *task, const struct tide_gmail_message *got,
                         bool headers, tide_error *err)
{
    tide_text labels[TIDE_CACHE_LABELS_MAX];
    struct tide_message parsed = {.problem = NULL};
    tide_arena arena;
    tide_arena_init(&arena, task->reader->mem, ARENA_BYTES_MAX);
    tide_status rc =
        headers ? TIDE_OK : tide_message_parse(tide_buf_text(&got->raw), &arena, &parsed);
    const struct tide_cache_message message = {.id = got->id,
                                               .thread = got->thread_id,
                                               .history_id = got->history_id,
                                               .internal_ms = got->internal_ms,
                                               .bytes = got->size_estimate,
                                               .labels = labels,
                                               .labels_count = labels_of(got, labels),
                                               .headers = !headers,
                                               .files = parsed.attachments_count > 0,
                                               .from = parsed.from,
                                               .to = parsed.to,
                                               .cc = parsed.cc,
                                               .subject = parsed.subject,
                                               .snippet = tide_utf8_cut(parsed.text, SNIPPET_BYTES),
                                               .message_id = parsed.message_id};
    const uint64_t now_ms = tide_world_now_unix_ms(task->reader->options.world);
    if (rc == TIDE_OK)
        rc = tide_cache_begin(task->cache, err);
    if (rc == TIDE_OK) {
        rc = tide_cache_put(task->cache, &message, err);
        if (rc == TIDE_OK)
            rc = tide_cache_body_put(task->cache, got->id, tide_buf_text(&got->raw), now_ms, err);
        rc = tide_cache_end(task->cache, rc, err);
    }
    tide_arena_done(&arena);
    return rc;
}

static tide_status fetch(struct tide_reader_task *task, tide_text id, tide_error *err)
{
    struct look look = {.body = false};
    struct tide_gmail_message message;
    bool here = false;
    TIDE_TRY(is_here(task, id, &here, &look, err));
    if (here)
        return TIDE_OK;
    tide_gmail_message_init(&message, task->reader->mem);
    tide_status rc = tide_gmail_get(task->user->gmail, task->job, id, &message, err);
    if (rc == TIDE_OK)
        rc = store(task, &message, look.headers, err);
    if (rc == TIDE_GONE) {
        rc = tide_cache_begin(task->cache, err);
        if (rc == TIDE_OK)
            rc = tide_cache_end(task->cache, tide_cache_gone(task->cache, id, err), err);
    }
    tide_gmail_message_done(&message);
    return rc;
}

tide_status tide_reader_body_run(tide_job *job, void *context, tide_error *err)
{
    struct tide_reader_task task;
    tide_auto_buf id = tide_buf_heap(TIDE_READER_PAYLOAD_BYTES);
    tide_error why = {TIDE_OK, 0, ""};
    tide_status rc = tide_reader_task_begin(context, job, &task, err);
    if (rc == TIDE_OK)
        rc = tide_reader_key(job, "message", &id, err);
    if (rc == TIDE_OK) /* who opened it is told (RJB3) */
        rc = tide_reader_refusal(&task, tide_buf_text(&id), fetch(&task, tide_buf_text(&id), &why),
                                 &why, err);
    if (rc == TIDE_OK)
        rc = tide_reader_evict_follow(&task, err);
    tide_reader_task_end(&task);
    return rc;
}

/* ---- reader.offline ---- */

struct missing {
    struct tide_reader_task *task;
    char ids[64][TIDE_CACHE_ID_BYTES];
    size_t count;
};

static bool note_missing(const struct tide_cached *cached, void *arg)
{
    struct missing *missing = arg;
    struct tide_stored stored;
    if (!tide_reader_archived(missing->task->archive, tide_text_of(cached->id), &stored))
        (void)snprintf(missing->ids[missing->count++], TIDE_CACHE_ID_BYTES, "%s", cached->id);
    return missing->count < OFFLINE_AT_ONCE; /* of each of two lists: there is room */
}

static tide_status missing_find(struct tide_reader_task *task, struct missing *missing,
                                tide_error *err)
{
    const uint64_t keep_ms = tide_engine_setting_u64(task->reader->options.engine,
                                                     task->user->account, TIDE_SET_READER_OFFLINE);
    const uint64_t limit = tide_engine_setting_u64(task->reader->options.engine,
                                                   task->user->account, TIDE_SET_READER_CACHE);
    const uint64_t now_ms = tide_world_now_unix_ms(task->reader->options.world);
    const int64_t since_ms = keep_ms == 0       ? INT64_MAX
                             : keep_ms > now_ms ? 0
                                                : (int64_t)(now_ms - keep_ms);
    uint64_t bytes = 0;
    TIDE_TRY(tide_cache_size(task->cache, &bytes, err));
    if (bytes > limit)
        return TIDE_OK; /* what comes now would be evicted next (K16) */
    return tide_cache_bodyless(task->cache, since_ms, 10000, note_missing, missing, err);
}

tide_status tide_reader_offline_follow(struct tide_reader_task *task, tide_error *err)
{
    struct missing missing = {.task = task};
    const struct tide_reader_job offline = {
        .kind = TIDE_READER_OFFLINE, .account = task->user->account, .key = "offline"};
    TIDE_TRY(missing_find(task, &missing, err));
    return missing.count > 0 ? tide_reader_follow(task->reader, task->job, &offline, err) : TIDE_OK;
}

static tide_status offline(struct tide_reader_task *task, tide_error *err)
{
    struct missing missing = {.task = task};
    TIDE_TRY(missing_find(task, &missing, err));
    for (size_t i = 0; i < missing.count; i++) {
        tide_error why = {TIDE_OK, 0, ""};
        const tide_text id = tide_text_of(missing.ids[i]);
        TIDE_TRY(tide_reader_refusal(task, id, fetch(task, id, &why), &why, err)); /* RJB3 */
    }
    TIDE_TRY(tide_reader_evict_follow(task, err));
    const struct tide_reader_job next = {
        .kind = TIDE_READER_OFFLINE, .account = task->user->account, .key = "offline"};
    return missing.count == OFFLINE_AT_ONCE
               ? tide_reader_follow(task->reader, task->job, &next, err)
               : TIDE_OK;
}

tide_status tide_reader_offline_run(tide_job *job, void *context, tide_error *err)
{
    struct tide_reader_task task;
    tide_status rc = tide_reader_task_begin(context, job, &task, err);
    if (rc == TIDE_OK)
        rc = offline(&task, err);
    tide_reader_task_end(&task);
    return rc;
}
