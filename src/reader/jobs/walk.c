/* walk.c - a list, page by page: the next page for a person, the list from its top, the window that is
 * listed at first (K5, K6, K8, K9).
 *
 * The token of a page belongs to the query it was made with, so it is stored behind that query's end:
 * "1763000000 TOKEN".  A token that the server refuses is forgotten without a word, and the walk goes
 * on from the floor, which is a time. */
#include "reader/jobs/jobs.h"

#include "settings/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ALL TIDE_CACHE_ALL

static bool is(tide_text label, const char *name)
{
    return tide_text_equal(label, tide_text_of(name));
}

/* ---- listing ---- */

struct asking {
    char query[64]; /* "before:1763000000"; "": from the top */
    char before[32];
    tide_text token;
};

static void asking_of(const struct tide_cache_folder *folder, struct asking *asking)
{
    const char *space = strchr(folder->token, ' ');
    *asking = (struct asking){.token = TIDE_TEXT("")};
    if (space != NULL) {
        (void)snprintf(asking->before, sizeof asking->before, "%.*s",
                       (int)(space - folder->token < 31 ? space - folder->token : 31),
                       folder->token);
        asking->token = tide_text_of(space + 1);
    } else if (folder->known && folder->floor_ms != INT64_MAX) {
        /* The second of the floor again: others may have arrived in it. */
        (void)snprintf(asking->before, sizeof asking->before, "%" PRId64,
                       folder->floor_ms / 1000 + 1);
    }
    if (asking->before[0] != '\0')
        (void)snprintf(asking->query, sizeof asking->query, "before:%s", asking->before);
}

static tide_status list(struct tide_reader_task *task, tide_text label, const struct asking *asking,
                        struct tide_gmail_page *page, tide_error *err)
{
    const uint64_t count = tide_engine_setting_u64(task->reader->options.engine,
                                                   task->user->account, TIDE_SET_READER_PAGE);
    const struct tide_gmail_listing listing = {.label = is(label, ALL) ? TIDE_TEXT("") : label,
                                               .query = asking->query,
                                               .count_max = (uint32_t)count,
                                               .all = is(label, "SPAM") || is(label, "TRASH")};
    return tide_gmail_list_some(task->user->gmail, task->job, &listing, asking->token, page, err);
}

static json_t *ids_of(const json_t *entries)
{
    json_t *ids = json_array();
    size_t at = 0;
    const json_t *entry = NULL;
    json_array_foreach(entries, at, entry)
    {
        (void)json_array_append(ids, json_object_get(entry, "id"));
    }
    return ids;
}

/* Lists a page, or takes up what was listed before an interruption. */
static tide_status page_make(struct tide_reader_task *task, tide_text label,
                             const struct tide_cache_folder *folder, tide_error *err)
{
    struct tide_gmail_page page = {.value = NULL};
    struct asking asking;
    if (task->batch != NULL && json_object_get(task->batch, "before") != NULL)
        return TIDE_OK;
    asking_of(folder, &asking);
    tide_status rc = list(task, label, &asking, &page, err);
    if ((rc == TIDE_PERMANENT || rc == TIDE_GONE) && asking.token.bytes > 0) {
        struct tide_cache_folder anew = *folder; /* K9: an expired token */
        anew.token[0] = '\0';
        asking_of(&anew, &asking);
        rc = list(task, label, &asking, &page, err);
    }
    if (rc == TIDE_OK)
        rc =
            tide_reader_batch_set(task,
                                  json_pack("{s:o, s:s, s:s%}", "ids", ids_of(page.ids), "before",
                                            asking.before, "next", page.next.data, page.next.bytes),
                                  err);
    tide_gmail_page_done(&page);
    return rc;
}

/* ---- the end of a page ---- */

static int64_t oldest_of(struct tide_reader_task *task)
{
    int64_t oldest_ms = INT64_MAX;
    size_t at = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(task->batch, "ids"), at, one)
    {
        const int64_t ms =
            tide_reader_time_of(task, (tide_text){json_string_value(one), json_string_length(one)});
        if (ms > 0 && ms < oldest_ms)
            oldest_ms = ms;
    }
    return oldest_ms;
}

static void folder_advance(struct tide_reader_task *task, struct tide_cache_folder *folder)
{
    const tide_text next = tide_reader_text(task->batch, "next");
    const tide_text before = tide_reader_text(task->batch, "before");
    const int64_t oldest_ms = oldest_of(task);
    folder->known = true;
    if (oldest_ms < folder->floor_ms)
        folder->floor_ms = oldest_ms;
    folder->over = next.bytes == 0;
    folder->token[0] = '\0';
    if (next.bytes > 0 && next.bytes + before.bytes + 2 < sizeof folder->token)
        (void)snprintf(folder->token, sizeof folder->token, "%.*s %.*s", (int)before.bytes,
                       before.data, (int)next.bytes, next.data);
}

static tide_status folder_write(struct tide_reader_task *task, tide_text label,
                                const struct tide_cache_folder *folder, bool listed,
                                tide_error *err)
{
    TIDE_TRY(tide_cache_begin(task->cache, err));
    tide_status rc = tide_cache_folder_put(task->cache, label, folder, err);
    if (rc == TIDE_OK && listed)
        rc = tide_cache_set_u64(task->cache, "listed", 1, err);
    if (rc == TIDE_OK && listed)
        rc = tide_cache_set_u64(task->cache, TIDE_READER_RESYNC, 0, err);
    return tide_cache_end(task->cache, rc, err);
}

/* What is known of all mail is known of each label: a list begins where that ends. */
static tide_status folder_read(struct tide_reader_task *task, tide_text label,
                               struct tide_cache_folder *folder, tide_error *err)
{
    struct tide_cache_folder all;
    TIDE_TRY(tide_cache_folder_get(task->cache, label, folder, err));
    TIDE_TRY(tide_cache_folder_get(task->cache, TIDE_TEXT(ALL), &all, err));
    if (is(label, "SPAM") || is(label, "TRASH") || !all.known || all.floor_ms >= folder->floor_ms)
        return TIDE_OK;
    folder->known = true;
    folder->floor_ms = all.floor_ms;
    folder->token[0] = '\0'; /* of a page above that */
    folder->over = folder->over || all.over;
    return TIDE_OK;
}

static tide_status next_page(struct tide_reader_task *task, tide_text label,
                             struct tide_cache_folder *folder, tide_error *err)
{
    TIDE_TRY(folder_read(task, label, folder, err));
    if (folder->over && task->batch == NULL)
        return TIDE_OK;
    TIDE_TRY(page_make(task, label, folder, err));
    TIDE_TRY(tide_reader_batch_fetch(task, err));
    folder_advance(task, folder);
    return TIDE_OK;
}

/* ---- reader.page ---- */

static tide_status page_run(struct tide_reader_task *task, tide_text label, tide_error *err)
{
    struct tide_cache_folder folder;
    TIDE_TRY(next_page(task, label, &folder, err));
    return folder_write(task, label, &folder, false, err);
}

static tide_status run(tide_job *job, void *context,
                       tide_status (*what)(struct tide_reader_task *task, tide_text label,
                                           tide_error *err),
                       tide_error *err)
{
    struct tide_reader_task task;
    tide_auto_buf label = tide_buf_heap(TIDE_READER_PAYLOAD_BYTES);
    tide_status rc = tide_reader_task_begin(context, job, &task, err);
    if (rc == TIDE_OK)
        rc = tide_reader_key(job, "folder", &label, err);
    if (rc == TIDE_OK)
        rc = what(&task, tide_buf_text(&label), err);
    tide_reader_task_end(&task);
    return rc;
}

tide_status tide_reader_page_run(tide_job *job, void *context, tide_error *err)
{
    return run(job, context, page_run, err);
}

/* ---- reader.refresh: what changed, then the top of the list; nothing that is shown goes (K5) ---- */

static tide_status refresh_run(struct tide_reader_task *task, tide_text label, tide_error *err)
{
    struct tide_cache_folder folder;
    bool moved = false;
    const bool polled = task->batch != NULL && json_object_get(task->batch, "before") != NULL;
    if (!polled) {
        TIDE_TRY(tide_reader_poll(task, &moved, err));
        json_decref(task->batch);
        task->batch = NULL;
    }
    TIDE_TRY(tide_cache_folder_get(task->cache, label, &folder, err));
    const bool over = folder.over;
    const struct tide_cache_folder top = {.floor_ms = INT64_MAX};
    TIDE_TRY(page_make(task, label, &top, err));
    TIDE_TRY(tide_reader_batch_fetch(task, err));
    folder_advance(task, &folder);
    folder.over = folder.over || over; /* what was before the floor has not come back */
    folder.token[0] = '\0';
    folder.refreshed_ms = tide_world_now_unix_ms(task->reader->options.world);
    return folder_write(task, label, &folder, false, err);
}

tide_status tide_reader_refresh_run(tide_job *job, void *context, tide_error *err)
{
    return run(job, context, refresh_run, err);
}

/* ---- reader.headers: the window, one page at a time (K6, K8) ---- */

static uint64_t setting(const struct tide_reader_task *task, int which)
{
    return tide_engine_setting_u64(task->reader->options.engine, task->user->account, which);
}

int64_t tide_reader_window_begin(const struct tide_reader_task *task)
{
    const uint64_t now_ms = tide_world_now_unix_ms(task->reader->options.world);
    const uint64_t window_ms = setting(task, TIDE_SET_READER_WINDOW);
    return window_ms >= now_ms ? 0 : (int64_t)(now_ms - window_ms);
}

/* A cache that is full makes room first; it is never filled with what it would have to evict (K16). */
static tide_status has_room(struct tide_reader_task *task, bool *room_out, tide_error *err)
{
    uint64_t bytes = 0;
    TIDE_TRY(tide_cache_size(task->cache, &bytes, err));
    *room_out = bytes <= setting(task, TIDE_SET_READER_CACHE);
    return *room_out ? TIDE_OK : tide_reader_evict_follow(task, err);
}

static tide_status follow(struct tide_reader_task *task, const char *label, tide_error *err)
{
    const struct tide_reader_job next = {.kind = TIDE_READER_HEADERS,
                                         .account = task->user->account,
                                         .field = "folder",
                                         .key = label,
                                         .delay_ms =
                                             tide_reader_saving(task->reader, task->user->account)
                                                 ? setting(task, TIDE_SET_READER_POLL_PASSIVE)
                                                 : 0};
    return tide_reader_follow(task->reader, task->job, &next, err);
}

static bool see_stale(const struct tide_cached *cached, void *arg)
{
    (void)json_array_append_new(arg, json_string(cached->id));
    return true;
}

/* What was asked for is stale no longer, nor is what the archive answers for: who asks until nothing is
 * stale comes to an end. */
static tide_status asked_are_current(struct tide_reader_task *task, tide_error *err)
{
    size_t at = 0;
    const json_t *one = NULL;
    TIDE_TRY(tide_cache_begin(task->cache, err));
    tide_status rc = TIDE_OK;
    json_array_foreach(json_object_get(task->batch, "ids"), at, one)
    {
        const tide_text id = {json_string_value(one), json_string_length(one)};
        if (rc == TIDE_OK)
            rc = tide_cache_current(task->cache, id, err);
    }
    return tide_cache_end(task->cache, rc, err);
}

/* After the history was lost: rows that no list named are asked for one by one.  They are gone, or in
 * the trash. */
static tide_status stale_ask(struct tide_reader_task *task, bool *more_out, tide_error *err)
{
    const uint32_t count = (uint32_t)setting(task, TIDE_SET_READER_PAGE);
    json_t *ids = json_array();
    const tide_status rc =
        tide_cache_stale(task->cache, tide_reader_window_begin(task), count, see_stale, ids, err);
    *more_out = json_array_size(ids) == count;
    if (rc != TIDE_OK) {
        json_decref(ids);
        return rc;
    }
    TIDE_TRY(tide_reader_batch_set(task, json_pack("{s:o}", "ids", ids), err));
    TIDE_TRY(tide_reader_batch_fetch(task, err));
    return asked_are_current(task, err);
}

static bool is_listed(const struct tide_reader_task *task, const struct tide_cache_folder *folder)
{
    return folder->over || (folder->known && folder->floor_ms < tide_reader_window_begin(task));
}

static tide_status window_run(struct tide_reader_task *task, tide_text label, tide_error *err)
{
    struct tide_cache_folder folder;
    bool room = false;
    bool more = false;
    TIDE_TRY(has_room(task, &room, err));
    if (!room)
        return TIDE_OK; /* the next poll looks again */
    TIDE_TRY(folder_read(task, label, &folder, err));
    /* What is written before the next step is not done again after an interruption (RJB1). */
    if (!is_listed(task, &folder)) {
        TIDE_TRY(next_page(task, label, &folder, err));
        TIDE_TRY(folder_write(task, label, &folder, false, err));
        if (!is_listed(task, &folder) || !is(label, ALL))
            return is_listed(task, &folder) ? TIDE_OK : follow(task, label.data, err);
    }
    TIDE_TRY(stale_ask(task, &more, err));
    if (more)
        return follow(task, ALL, err);
    TIDE_TRY(folder_write(task, label, &folder, true, err));
    tide_reader_listed(task->reader, task->user);
    return TIDE_OK;
}

/* New mail: what the history brought is stored, then the window goes on if it is not whole, and bodies
 * for reading without a network. */
static tide_status poll_run(struct tide_reader_task *task, tide_error *err)
{
    struct tide_cache_folder all;
    bool moved = false;
    uint64_t listed = 0;
    uint64_t resync = 0;
    TIDE_TRY(tide_reader_poll(task, &moved, err));
    TIDE_TRY(tide_reader_drafts_look(task, err));
    TIDE_TRY(tide_cache_folder_get(task->cache, TIDE_TEXT(ALL), &all, err));
    TIDE_TRY(tide_cache_get_u64(task->cache, "listed", &listed, err));
    TIDE_TRY(tide_cache_get_u64(task->cache, TIDE_READER_RESYNC, &resync, err));
    if (listed == 0 || resync != 0 || !is_listed(task, &all))
        TIDE_TRY(follow(task, ALL, err));
    TIDE_TRY(tide_reader_refused_again(task, err));
    return tide_reader_offline_follow(task, err);
}

static tide_status headers_run(struct tide_reader_task *task, tide_text label, tide_error *err)
{
    return is(label, TIDE_READER_POLL) ? poll_run(task, err) : window_run(task, label, err);
}

tide_status tide_reader_headers_run(tide_job *job, void *context, tide_error *err)
{
    return run(job, context, headers_run, err);
}
