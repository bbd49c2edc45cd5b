/* folders.c - the names of labels, once a day (K9); and the end of old actions. */
#include "reader/jobs/jobs.h"

#include "ledger/rows.h"

enum { LABELS_MAX = 10000 };

static const uint64_t kept_ms = 7 * 24 * 3600 * (uint64_t)1000;

struct purge {
    uint32_t account;
    uint64_t before_ms;
};

static tide_status purge(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct purge *what = arg;
    return tide_actions_purge(tide_transaction_rows(transaction), what->account, what->before_ms,
                              err);
}

static tide_status labels_write(struct tide_reader_task *task, const json_t *labels,
                                tide_error *err)
{
    const size_t count =
        json_array_size(labels) < LABELS_MAX ? json_array_size(labels) : LABELS_MAX;
    struct tide_cache_label *list = tide_mem_array(task->reader->mem, count + 1, sizeof *list);
    if (list == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the labels");
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(labels, i);
        list[i] = (struct tide_cache_label){.id = tide_reader_text(one, "id"),
                                            .name = tide_reader_text(one, "name"),
                                            .type = tide_reader_text(one, "type")};
    }
    tide_status rc = tide_cache_begin(task->cache, err);
    if (rc == TIDE_OK)
        rc = tide_cache_end(task->cache, tide_cache_labels_put(task->cache, list, count, err), err);
    tide_mem_free(task->reader->mem, list, (count + 1) * sizeof *list);
    return rc;
}

static tide_status folders(struct tide_reader_task *task, tide_error *err)
{
    json_auto_t *answer = NULL;
    const uint64_t now_ms = tide_world_now_unix_ms(task->reader->options.world);
    struct purge old = {task->user->account, now_ms > kept_ms ? now_ms - kept_ms : 0};
    TIDE_TRY(tide_gmail_labels(task->user->gmail, task->job, &answer, err));
    TIDE_TRY(labels_write(task, json_object_get(answer, "labels"), err));
    return tide_transact(task->reader->options.engine, purge, &old, err);
}

tide_status tide_reader_folders_run(tide_job *job, void *context, tide_error *err)
{
    struct tide_reader_task task;
    tide_status rc = tide_reader_task_begin(context, job, &task, err);
    if (rc == TIDE_OK)
        rc = folders(&task, err);
    tide_reader_task_end(&task);
    return rc;
}
