/* search.c - a search at the server, whose results join those of the archive (K5). */
#include "reader/jobs/jobs.h"

enum { RESULTS_MAX = 50 };

static tide_status ask(struct tide_reader_task *task, const char *query, tide_error *err)
{
    const struct tide_gmail_listing listing = {.query = query, .count_max = RESULTS_MAX};
    struct tide_gmail_page page = {.value = NULL};
    size_t at = 0;
    const json_t *entry = NULL;
    if (task->batch != NULL)
        return TIDE_OK;
    json_t *ids = json_array();
    const tide_status rc =
        tide_gmail_list_some(task->user->gmail, task->job, &listing, TIDE_TEXT(""), &page, err);
    json_array_foreach(page.ids, at, entry)
    {
        (void)json_array_append(ids, json_object_get(entry, "id"));
    }
    tide_gmail_page_done(&page);
    if (rc != TIDE_OK) {
        json_decref(ids);
        return rc;
    }
    return tide_reader_batch_set(task, json_pack("{s:o}", "ids", ids), err);
}

/* The ids are written first: what arrives one by one is shown at once. */
static tide_status note(struct tide_reader_task *task, tide_text query, bool done, tide_error *err)
{
    const uint64_t now_ms = tide_world_now_unix_ms(task->reader->options.world);
    size_t at = 0;
    const json_t *one = NULL;
    TIDE_TRY(tide_cache_begin(task->cache, err));
    /* Place 0 is the state of the search: "" while it runs, "." when all is there. */
    tide_status rc = tide_cache_found_add(task->cache, query, 0,
                                          done ? TIDE_TEXT(".") : TIDE_TEXT(""), now_ms, err);
    json_array_foreach(json_object_get(task->batch, "ids"), at, one)
    {
        if (rc == TIDE_OK)
            rc = tide_cache_found_add(task->cache, query, at + 1,
                                      (tide_text){json_string_value(one), json_string_length(one)},
                                      now_ms, err);
    }
    return tide_cache_end(task->cache, rc, err);
}

static tide_status search(struct tide_reader_task *task, tide_text query, const char *terminated,
                          tide_error *err)
{
    TIDE_TRY(ask(task, terminated, err));
    TIDE_TRY(note(task, query, false, err));
    TIDE_TRY(tide_reader_batch_fetch(task, err));
    return note(task, query, true, err);
}

tide_status tide_reader_search_run(tide_job *job, void *context, tide_error *err)
{
    struct tide_reader_task task;
    tide_auto_buf query = tide_buf_heap(TIDE_READER_PAYLOAD_BYTES);
    tide_status rc = tide_reader_task_begin(context, job, &task, err);
    if (rc == TIDE_OK)
        rc = tide_reader_key(job, "query", &query, err);
    if (rc == TIDE_OK)
        rc = search(&task, tide_buf_text(&query), tide_buf_cstr(&query), err);
    tide_reader_task_end(&task);
    return rc;
}
