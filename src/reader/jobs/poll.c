/* poll.c - what changed in the mailbox since the last time (K7, K9).
 *
 * The history id is read before anything is listed, so that no change falls between.  Label changes and
 * deletions are written as they are read; new messages are fetched first, and the id moves when all of
 * them are there (KR4). */
#include "reader/jobs/jobs.h"

#include "ledger/rows.h"

#include <stdio.h>
#include <string.h>

static tide_text id_of(const json_t *entry)
{
    return tide_reader_text(json_object_get(entry, "message"), "id");
}

/* ---- the beginning ---- */

/* A value of the cache: messages that were added up to this history id are listed. */
#define LISTED_FROM "listed_from"

enum { SHADOWS_AT_ONCE = 500 };

struct shadowing {
    char (*ids)[TIDE_CACHE_ID_BYTES];
    size_t count;
    int64_t last_ms;
};

static bool shadow_note(const struct tide_stored *stored, void *arg)
{
    struct shadowing *shadowing = arg;
    shadowing->last_ms = stored->internal_ms;
    if (!stored->gone)
        (void)snprintf(shadowing->ids[shadowing->count++], TIDE_CACHE_ID_BYTES, "%s",
                       stored->gmail_id);
    return shadowing->count < SHADOWS_AT_ONCE;
}

static tide_status shadows_add(struct tide_reader_task *task, const struct shadowing *shadowing,
                               tide_error *err)
{
    tide_status rc = tide_cache_begin(task->cache, err);
    if (rc != TIDE_OK)
        return rc;
    for (size_t i = 0; rc == TIDE_OK && i < shadowing->count; i++) {
        rc = tide_reader_shadow(task->cache, task->archive, tide_text_of(shadowing->ids[i]), err);
        if (rc == TIDE_NOT_FOUND)
            rc = TIDE_OK;
    }
    return tide_cache_end(task->cache, rc, err);
}

/* Rows for the archived messages of the window: they become stale with the others, and what no list
 * names is asked for. */
static tide_status window_shadow(struct tide_reader_task *task, tide_error *err)
{
    tide_mem *mem = task->reader->mem;
    struct shadowing shadowing = {.last_ms = tide_reader_window_begin(task)};
    shadowing.ids = tide_mem_array(mem, SHADOWS_AT_ONCE, sizeof *shadowing.ids);
    if (shadowing.ids == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a list of messages");
    tide_status rc = TIDE_OK;
    do {
        shadowing.count = 0;
        rc = tide_archive_walk(task->archive, shadowing.last_ms, INT64_MAX, shadow_note, &shadowing,
                               err);
        if (rc == TIDE_OK)
            rc = shadows_add(task, &shadowing, err);
        shadowing.last_ms++; /* of one millisecond so many do not come */
    } while (rc == TIDE_OK && shadowing.count == SHADOWS_AT_ONCE);
    tide_mem_free(mem, shadowing.ids, SHADOWS_AT_ONCE * sizeof *shadowing.ids);
    return rc;
}

/* A first look begins where the mirror is: the labels of the archive are those of that time, and the
 * next poll reads what changed since.
 *
 * `lost`: changes were missed, perhaps by the mirror too.  From then on the labels of the archive do
 * not count as known (tide_reader_is_known()). */
static tide_status begin_history(struct tide_reader_task *task, bool lost, tide_error *err)
{
    struct tide_gmail_profile profile = {.messages = 0};
    char mirror[64] = "";
    if (!lost && task->archive != NULL)
        TIDE_TRY(tide_reader_mirror_place(task->reader, task->user->account, mirror, err));
    TIDE_TRY(tide_gmail_profile(task->user->gmail, task->job, &profile, err));
    const tide_text now = tide_text_of(profile.history_id);
    if (lost && task->archive != NULL)
        TIDE_TRY(window_shadow(task, err));
    TIDE_TRY(tide_cache_begin(task->cache, err));
    tide_status rc = tide_cache_folders_reset(task->cache, err);
    if (rc == TIDE_OK && lost)
        rc = tide_cache_set_u64(task->cache, TIDE_READER_BLIND, 1, err);
    if (rc == TIDE_OK && lost)
        rc = tide_cache_set_u64(task->cache, TIDE_READER_RESYNC, 1, err);
    if (rc == TIDE_OK) /* RJB1 */
        rc = tide_cache_set_u64(task->cache, TIDE_READER_LISTS,
                                tide_world_random_u64(task->reader->options.world) >> 1, err);
    if (rc == TIDE_OK)
        rc = tide_cache_set_u64(task->cache, TIDE_READER_DRAFTS_ASKED, 0, err);
    if (rc == TIDE_OK)
        rc = tide_cache_set(task->cache, TIDE_READER_DRAFTS_PLACE, TIDE_TEXT(""), err);
    if (rc == TIDE_OK)
        rc = tide_cache_set(task->cache, LISTED_FROM, now, err);
    if (rc == TIDE_OK)
        rc = tide_cache_set(task->cache, "history_id",
                            mirror[0] == '\0' ? now : tide_text_of(mirror), err);
    return tide_cache_end(task->cache, rc, err);
}

/* ---- records ---- */

/* A message that is not known here is not shown: when it is listed, it comes with its labels. */
static tide_status known_row(struct tide_reader_task *task, tide_text id, bool *known_out,
                             tide_error *err)
{
    const tide_status rc = tide_reader_shadow(task->cache, task->archive, id, err);
    *known_out = rc == TIDE_OK;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static tide_status labels_take(struct tide_reader_task *task, const json_t *record, const char *key,
                               bool added, tide_error *err)
{
    const tide_text history_id = tide_reader_text(record, "id");
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(record, key), index, entry)
    {
        bool known = false;
        size_t at = 0;
        const json_t *label = NULL;
        TIDE_TRY(known_row(task, id_of(entry), &known, err));
        json_array_foreach(json_object_get(entry, "labelIds"), at, label)
        {
            const tide_text name = {json_string_value(label), json_string_length(label)};
            if (known && name.data != NULL)
                TIDE_TRY(tide_cache_label(task->cache, id_of(entry), name, added, history_id, err));
        }
    }
    return TIDE_OK;
}

/* What came and went since the last poll, such as a draft that was sent, is not asked for: a job that
 * waits for units would spend them on it again and again. */
static void added_drop(json_t *ids, tide_text id)
{
    for (size_t i = json_array_size(ids); i > 0; i--) {
        const json_t *one = json_array_get(ids, i - 1);
        if (tide_text_equal(id, (tide_text){json_string_value(one), json_string_length(one)}))
            (void)json_array_remove(ids, i - 1);
    }
}

/* What a poll brings together. */
struct polled {
    uint32_t account;
    json_t *ids;    /* of new messages, an array; owned by the caller */
    json_t *copies; /* of messages that are hidden, for they are drafts here: a set */
};

static void copy_note(tide_text message, void *arg)
{
    (void)json_object_setn_new(arg, message.data, message.bytes, json_true());
}

static tide_status copies_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct polled *polled = arg;
    (void)json_object_clear(polled->copies);
    return tide_copies_each(tide_transaction_rows(transaction), polled->account, copy_note,
                            polled->copies, err);
}

/* One that came and went is known all the same if it was a draft here (look.c). */
static tide_status deleted_take(struct tide_reader_task *task, const json_t *record,
                                const struct polled *polled, tide_error *err)
{
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(record, "messagesDeleted"), index, entry)
    {
        bool known = false;
        const tide_text id = id_of(entry);
        added_drop(polled->ids, id);
        TIDE_TRY(known_row(task, id, &known, err));
        if (known || json_object_getn(polled->copies, id.data, id.bytes) != NULL)
            TIDE_TRY(tide_cache_gone(task->cache, id_of(entry), err));
    }
    return TIDE_OK;
}

/* What came before the first list began is in that list. */
static void added_take(const json_t *record, tide_text listed_from, json_t *ids)
{
    if (tide_history_compare(tide_reader_text(record, "id"), listed_from) <= 0)
        return;
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(record, "messagesAdded"), index, entry)
    {
        (void)json_array_append(ids, json_object_get(json_object_get(entry, "message"), "id"));
    }
}

static tide_status records_take(struct tide_reader_task *task, const json_t *records,
                                const struct polled *polled, tide_error *err)
{
    char listed_from[64] = "";
    size_t at = 0;
    const json_t *record = NULL;
    TIDE_TRY(tide_cache_get(task->cache, LISTED_FROM, listed_from, sizeof listed_from, err));
    TIDE_TRY(tide_cache_begin(task->cache, err));
    tide_status rc = TIDE_OK;
    json_array_foreach(records, at, record)
    {
        added_take(record, tide_text_of(listed_from), polled->ids);
        if (rc == TIDE_OK)
            rc = labels_take(task, record, "labelsAdded", true, err);
        if (rc == TIDE_OK)
            rc = labels_take(task, record, "labelsRemoved", false, err);
        if (rc == TIDE_OK)
            rc = deleted_take(task, record, polled, err);
    }
    return tide_cache_end(task->cache, rc, err);
}

/* ---- reading ---- */

static tide_status history_read(struct tide_reader_task *task, const char *start,
                                const struct polled *polled, char end[64], tide_error *err)
{
    tide_auto_buf token = tide_buf_heap(4096);
    tide_status rc = TIDE_OK;
    for (unsigned page = 0; rc == TIDE_OK && (page == 0 || token.bytes > 0) && page < 1000;
         page++) {
        struct tide_gmail_history history = {.value = NULL};
        rc = tide_gmail_history(task->user->gmail, task->job, tide_text_of(start),
                                tide_buf_text(&token), &history, err);
        tide_buf_rest(&token);
        if (rc == TIDE_OK)
            rc = records_take(task, history.records, polled, err);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&token, history.next.bytes == 0 ? "" : history.next.data,
                              history.next.bytes);
        if (rc == TIDE_OK && history.history_id.bytes > 0 && history.history_id.bytes < 64) {
            memcpy(end, history.history_id.data, history.history_id.bytes);
            end[history.history_id.bytes] = '\0';
        }
        tide_gmail_history_done(&history);
    }
    return rc;
}

/* *moved_out: the lists begin anew, from a new history id. */
static tide_status changes_read(struct tide_reader_task *task, bool *moved_out, tide_error *err)
{
    char start[64] = "";
    char end[64] = "";
    TIDE_TRY(tide_cache_get(task->cache, "history_id", start, sizeof start, err));
    *moved_out = start[0] == '\0';
    if (*moved_out)
        return begin_history(task, false, err);
    json_t *ids = json_array();
    struct polled polled = {task->user->account, ids, json_object()};
    tide_status rc = tide_transact(task->reader->options.engine, copies_read, &polled, err);
    if (rc == TIDE_OK)
        rc = history_read(task, start, &polled, end, err);
    json_decref(polled.copies);
    if (rc == TIDE_GONE || (rc == TIDE_OK && json_array_size(ids) > TIDE_READER_IDS_MAX)) {
        /* K9: without a word.  Rows stay, and are shown until the lists say otherwise. */
        json_decref(ids);
        *moved_out = true;
        return begin_history(task, true, err);
    }
    if (rc != TIDE_OK) {
        json_decref(ids);
        return rc;
    }
    return tide_reader_batch_set(task, json_pack("{s:o, s:s}", "ids", ids, "history", end), err);
}

static tide_status history_move(struct tide_reader_task *task, tide_error *err)
{
    const tide_text end = tide_reader_text(task->batch, "history");
    if (end.bytes == 0)
        return TIDE_OK;
    TIDE_TRY(tide_cache_begin(task->cache, err));
    return tide_cache_end(task->cache, tide_cache_set(task->cache, "history_id", end, err), err);
}

tide_status tide_reader_poll(struct tide_reader_task *task, bool *moved_out, tide_error *err)
{
    *moved_out = false;
    if (json_object_get(task->batch, "history") == NULL) {
        json_decref(task->batch);
        task->batch = NULL;
        TIDE_TRY(changes_read(task, moved_out, err));
    }
    if (task->batch == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_reader_batch_fetch(task, err));
    return history_move(task, err);
}
