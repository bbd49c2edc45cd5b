/* evict.c - makes room in the cache: rows that the archive has by now, then bodies (K12, KR6). */
#include "reader/jobs/jobs.h"

#include "ledger/rows.h"
#include "settings/settings.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_AT_ONCE = 200, BODIES_AT_ONCE = 50, SPARED_MAX = 20000 };

/* ---- bodies ---- */

struct spared {
    uint32_t account;
    char (*ids)[TIDE_CACHE_ID_BYTES];
    size_t count;
};

static void spare_one(tide_text message, void *arg)
{
    struct spared *spared = arg;
    if (spared->count < SPARED_MAX && message.bytes < TIDE_CACHE_ID_BYTES) {
        memcpy(spared->ids[spared->count], message.data, message.bytes);
        spared->ids[spared->count++][message.bytes] = '\0';
    }
}

static tide_status spared_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct spared *spared = arg;
    spared->count = 0; /* a transaction may be repeated */
    return tide_overlay_messages(tide_transaction_rows(transaction), spared->account, spare_one,
                                 spared, err);
}

static bool is_spared(tide_text id, void *arg)
{
    const struct spared *spared = arg;
    for (size_t i = 0; i < spared->count; i++)
        if (tide_text_equal(id, tide_text_of(spared->ids[i])))
            return true;
    return false;
}

static uint64_t limit_of(const struct tide_reader_task *task)
{
    return tide_engine_setting_u64(task->reader->options.engine, task->user->account,
                                   TIDE_SET_READER_CACHE);
}

static tide_status evict_again(struct tide_reader_task *task, uint64_t delay_ms, tide_error *err)
{
    const struct tide_reader_job evict = {.kind = TIDE_READER_EVICT,
                                          .account = task->user->account,
                                          .key = "evict",
                                          .delay_ms = delay_ms};
    return tide_reader_follow(task->reader, task->job, &evict, err);
}

static tide_status evict(struct tide_reader_task *task, tide_error *err)
{
    struct spared spared = {.account = task->user->account};
    const struct tide_cache_evict how = {
        .limit = limit_of(task), .count_max = BODIES_AT_ONCE, .spare = is_spared, .arg = &spared};
    const uint64_t now_ms = tide_world_now_unix_ms(task->reader->options.world);
    uint64_t bytes = 0;
    TIDE_TRY(tide_cache_size(task->cache, &bytes, err));
    if (bytes <= how.limit)
        return TIDE_OK;
    spared.ids = tide_mem_array(task->reader->mem, SPARED_MAX, sizeof *spared.ids);
    if (spared.ids == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to evict");
    tide_status rc = tide_transact(task->reader->options.engine, spared_read, &spared, err);
    struct tide_cache_evicted told = {.more = true};
    while (rc == TIDE_OK && told.more) {
        rc = tide_cache_evict(task->cache, &how, now_ms, &told, err);
        if (tide_job_canceled(task->job))
            break;
    }
    tide_mem_free(task->reader->mem, spared.ids, SPARED_MAX * sizeof *spared.ids);
    return rc == TIDE_OK && told.later_ms != 0 ? evict_again(task, told.later_ms - now_ms, err)
                                               : rc;
}

/* Bodies came: the next poll may be far away, and a full cache is not to stay full until then (K12). */
tide_status tide_reader_evict_follow(struct tide_reader_task *task, tide_error *err)
{
    uint64_t bytes = 0;
    TIDE_TRY(tide_cache_size(task->cache, &bytes, err));
    return bytes <= limit_of(task) ? TIDE_OK : evict_again(task, 0, err);
}

/* ---- rows ---- */

struct settling {
    struct tide_reader_task *task;
    int64_t last;
    struct {
        int64_t row;
        char id[TIDE_CACHE_ID_BYTES];
    } rows[ROWS_AT_ONCE];
    size_t count, seen;
};

/* The archive has the message, and its labels are not older than those here. */
static bool settle_one(const struct tide_cached *cached, void *arg)
{
    struct settling *settling = arg;
    struct tide_stored stored;
    settling->seen++;
    settling->last = cached->row;
    if (cached->pinned ||
        !tide_reader_archived(settling->task->archive, tide_text_of(cached->id), &stored) ||
        stored.gone != cached->gone ||
        tide_history_compare(tide_text_of(stored.history_id), tide_text_of(cached->history_id)) < 0)
        return true;
    settling->rows[settling->count].row = cached->row;
    (void)snprintf(settling->rows[settling->count++].id, TIDE_CACHE_ID_BYTES, "%s", cached->id);
    return true;
}

struct comparing {
    const char *lines; /* the labels of the archive, one per line */
    size_t count;
    bool differs;
};

static void compare_one(tide_text label, void *arg)
{
    struct comparing *comparing = arg;
    bool found = false;
    for (const char *at = comparing->lines; !found && *at != '\0';) {
        const size_t bytes = strcspn(at, "\n");
        found = tide_text_equal(label, (tide_text){at, bytes});
        at += bytes + (at[bytes] == '\n');
    }
    comparing->differs = comparing->differs || !found;
    comparing->count++;
}

/* An action that the server has is in the row before the history tells of it, and its history id is
 * still the old one: a row goes only when the archive says the same. */
static tide_status says_the_same(struct tide_reader_task *task, int64_t row, const char *id,
                                 bool *same_out, tide_error *err)
{
    struct tide_stored stored;
    tide_auto_buf lines = tide_buf_heap(1 << 20);
    size_t count = 0;
    *same_out = false;
    if (!tide_reader_archived(task->archive, tide_text_of(id), &stored))
        return TIDE_OK;
    TIDE_TRY(tide_archive_labels_of(task->archive, &stored, &lines, err));
    struct comparing comparing = {.lines = tide_buf_cstr(&lines)};
    TIDE_TRY(tide_cache_labels_of(task->cache, row, compare_one, &comparing, err));
    for (const char *at = comparing.lines; *at != '\0'; count++)
        at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
    *same_out = stored.gone || (!comparing.differs && comparing.count == count);
    return TIDE_OK;
}

static tide_status settle_rows(struct settling *settling, tide_error *err)
{
    struct tide_reader_task *task = settling->task;
    TIDE_TRY(tide_cache_rows(task->cache, settling->last, ROWS_AT_ONCE, settle_one, settling, err));
    for (size_t i = 0; i < settling->count; i++) {
        bool same = false;
        TIDE_TRY(says_the_same(task, settling->rows[i].row, settling->rows[i].id, &same, err));
        if (same)
            TIDE_TRY(tide_cache_drop(task->cache, settling->rows[i].row, err));
    }
    return TIDE_OK;
}

static tide_status settle(struct tide_reader_task *task, tide_error *err)
{
    struct settling settling = {.task = task, .last = 0};
    uint64_t resync = 0;
    TIDE_TRY(tide_cache_get_u64(task->cache, TIDE_READER_RESYNC, &resync, err));
    if (task->archive == NULL || resync != 0) /* rows that are to be asked for stay until then */
        return TIDE_OK;
    do {
        settling.count = settling.seen = 0;
        TIDE_TRY(tide_cache_begin(task->cache, err));
        TIDE_TRY(tide_cache_end(task->cache, settle_rows(&settling, err), err));
    } while (settling.seen == ROWS_AT_ONCE && !tide_job_canceled(task->job));
    return TIDE_OK;
}

/* It makes no call: it needs no identity, and runs beside the others. */
tide_status tide_reader_evict_run(tide_job *job, void *context, tide_error *err)
{
    struct tide_reader_task task = {.reader = context, .job = job};
    TIDE_TRY(tide_reader_cache_take(context, tide_job_account(job), &task.user, &task.cache, err));
    task.archive = tide_reader_archive(task.reader, task.user);
    tide_status rc = settle(&task, err);
    if (rc == TIDE_OK)
        rc = evict(&task, err);
    if (rc == TIDE_OK)
        rc = tide_reader_files_sweep(task.reader, task.user->account, err);
    tide_reader_task_end(&task);
    return rc;
}
