#include "reader/jobs/jobs.h"

#include "mail/mime/address.h"
#include "mail/mime/header.h"

#include <string.h>

enum { REFUSED_AGAIN_MS = 3600000, REFUSED_AT_ONCE = 20 };

/* ---- a task ---- */

/* What an earlier attempt listed holds as long as the lists are those of that time (RJB1): else it would
 * say that all is known down to its page, and what came in between would never be listed. */
static tide_status batch_check(struct tide_reader_task *task, tide_error *err)
{
    uint64_t lists = 0;
    const json_t *before = json_object_get(task->batch, TIDE_READER_LISTS);
    if (json_object_get(task->batch, "ids") == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_cache_get_u64(task->cache, TIDE_READER_LISTS, &lists, err));
    if (before != NULL && (uint64_t)json_integer_value(before) == lists)
        return TIDE_OK;
    json_decref(task->batch);
    task->batch = NULL;
    return TIDE_OK;
}

tide_status tide_reader_task_begin(tide_reader *reader, tide_job *job,
                                   struct tide_reader_task *task, tide_error *err)
{
    *task = (struct tide_reader_task){.reader = reader, .job = job};
    TIDE_TRY(tide_reader_cache_take(reader, tide_job_account(job), &task->user, &task->cache, err));
    task->archive = tide_reader_archive(reader, task->user);
    const tide_text resume = tide_job_resume(job);
    if (resume.bytes > 0) {
        TIDE_TRY(tide_json_parse_stored(resume, &task->batch, err));
        TIDE_TRY(batch_check(task, err));
    }
    return tide_reader_identify(task->user, job, err);
}

void tide_reader_task_end(struct tide_reader_task *task)
{
    if (task->archive != NULL)
        tide_shelf_give(task->reader->shelf, task->archive);
    tide_reader_cache_give(task->reader, task->user, task->cache);
    json_decref(task->batch);
    json_decref(task->letter_files);
}

tide_status tide_reader_batch_set(struct tide_reader_task *task, json_t *batch, tide_error *err)
{
    tide_auto_buf line = tide_buf_in(task->reader->mem, 64 << 10);
    const tide_json json = {.value = batch};
    uint64_t lists = 0;
    json_decref(task->batch);
    task->batch = batch;
    if (batch == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a list of messages");
    if (json_object_get(batch, "ids") != NULL) {
        TIDE_TRY(tide_cache_get_u64(task->cache, TIDE_READER_LISTS, &lists, err));
        (void)json_object_set_new(batch, TIDE_READER_LISTS, json_integer((json_int_t)lists));
    }
    TIDE_TRY(tide_json_line(&json, &line));
    return tide_job_resume_set(task->job, tide_buf_text(&line), err);
}

/* ---- what is known ---- */

struct known {
    int64_t internal_ms;
    bool headers, gone, stale;
};

static bool see_known(const struct tide_cached *cached, void *arg)
{
    struct known *known = arg;
    known->internal_ms = cached->internal_ms;
    known->headers = cached->headers;
    known->gone = cached->gone;
    known->stale = cached->stale;
    return false;
}

tide_status tide_reader_is_known(struct tide_reader_task *task, tide_text id, bool *known_out,
                                 tide_error *err)
{
    struct known known = {.headers = false};
    struct tide_stored stored;
    uint64_t blind = 0;
    const tide_status rc = tide_cache_find(task->cache, id, see_known, &known, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    *known_out = rc == TIDE_OK && known.headers && !known.gone && !known.stale;
    if (*known_out)
        return TIDE_OK;
    TIDE_TRY(tide_cache_get_u64(task->cache, TIDE_READER_BLIND, &blind, err));
    /* A row that says "gone" and is listed was put back since. */
    *known_out = blind == 0 && !known.gone && tide_reader_archived(task->archive, id, &stored) &&
                 !stored.gone;
    return TIDE_OK;
}

int64_t tide_reader_time_of(struct tide_reader_task *task, tide_text id)
{
    struct known known = {.internal_ms = 0};
    struct tide_stored stored;
    if (tide_cache_find(task->cache, id, see_known, &known, NULL) == TIDE_OK &&
        known.internal_ms > 0)
        return known.internal_ms;
    return tide_reader_archived(task->archive, id, &stored) ? stored.internal_ms : 0;
}

/* ---- headers of one message ---- */

static const char *const wanted[] = {"From",       "To",           "Cc", "Subject",
                                     "Message-ID", "Content-Type", NULL};

/* What does not fit is only text of a stranger. */
static tide_status harmless(tide_status rc)
{
    return rc == TIDE_FULL ? TIDE_OK : rc;
}

struct decoded {
    tide_buf from, to, cc, subject, snippet;
};

static tide_status decode(const struct tide_gmail_parts *parts, tide_mem *mem,
                          struct decoded *decoded)
{
    tide_decoder decoder;
    bool deep = false;
    tide_decoder_init(&decoder, mem);
    tide_status rc = harmless(
        tide_address_add(&decoder, tide_gmail_parts_header(parts, "From"), &decoded->from, &deep));
    if (rc == TIDE_OK)
        rc = harmless(
            tide_address_add(&decoder, tide_gmail_parts_header(parts, "To"), &decoded->to, &deep));
    if (rc == TIDE_OK)
        rc = harmless(
            tide_address_add(&decoder, tide_gmail_parts_header(parts, "Cc"), &decoded->cc, &deep));
    if (rc == TIDE_OK)
        rc = harmless(tide_header_words(&decoder, tide_gmail_parts_header(parts, "Subject"),
                                        &decoded->subject));
    if (rc == TIDE_OK)
        rc = harmless(tide_clean_add(parts->snippet, TIDE_CLEAN_LINE, &decoded->snippet));
    tide_decoder_done(&decoder);
    return rc;
}

static bool has_files(const struct tide_gmail_parts *parts)
{
    const tide_text type = tide_text_trimmed(tide_gmail_parts_header(parts, "Content-Type"));
    return tide_text_starts_nocase(type, "multipart/mixed");
}

static tide_status store(struct tide_reader_task *task, const struct tide_gmail_parts *parts,
                         const struct decoded *decoded, tide_error *err)
{
    tide_text labels[TIDE_CACHE_LABELS_MAX];
    size_t count = 0;
    size_t at = 0;
    const json_t *label = NULL;
    json_array_foreach(parts->message.labels, at, label)
    {
        if (count < TIDE_CACHE_LABELS_MAX)
            labels[count++] = (tide_text){json_string_value(label), json_string_length(label)};
    }
    const struct tide_cache_message message = {
        .id = parts->message.id,
        .thread = parts->message.thread_id,
        .history_id = parts->message.history_id,
        .internal_ms = parts->message.internal_ms,
        .bytes = parts->message.size_estimate,
        .labels = labels,
        .labels_count = count,
        .headers = true,
        .files = has_files(parts),
        .from = tide_buf_text(&decoded->from),
        .to = tide_buf_text(&decoded->to),
        .cc = tide_buf_text(&decoded->cc),
        .subject = tide_buf_text(&decoded->subject),
        .snippet = tide_buf_text(&decoded->snippet),
        .message_id = tide_text_trimmed(tide_gmail_parts_header(parts, "Message-ID"))};
    TIDE_TRY(tide_cache_begin(task->cache, err));
    return tide_cache_end(task->cache, tide_cache_put(task->cache, &message, err), err);
}

static tide_status gone(struct tide_reader_task *task, tide_text id, tide_error *err)
{
    TIDE_TRY(tide_cache_begin(task->cache, err));
    return tide_cache_end(task->cache, tide_cache_gone(task->cache, id, err), err);
}

static tide_status fetch_one(struct tide_reader_task *task, tide_text id, tide_error *err)
{
    tide_mem *mem = task->reader->mem;
    struct tide_gmail_parts parts;
    struct decoded decoded = {.from = tide_buf_in(mem, TIDE_CACHE_FIELD_BYTES_MAX),
                              .to = tide_buf_in(mem, TIDE_CACHE_FIELD_BYTES_MAX),
                              .cc = tide_buf_in(mem, TIDE_CACHE_FIELD_BYTES_MAX),
                              .subject = tide_buf_in(mem, TIDE_CACHE_FIELD_BYTES_MAX),
                              .snippet = tide_buf_in(mem, TIDE_CACHE_FIELD_BYTES_MAX)};
    tide_gmail_parts_init(&parts, mem);
    tide_status rc = tide_gmail_get_headers(task->user->gmail, task->job, id, wanted, &parts, err);
    if (rc == TIDE_GONE)
        rc = gone(task, id, err); /* it was deleted since it was listed */
    else if (rc == TIDE_OK)
        rc = decode(&parts, mem, &decoded);
    if (rc == TIDE_OK && parts.message.id.bytes > 0)
        rc = store(task, &parts, &decoded, err);
    tide_gmail_parts_done(&parts);
    tide_buf_done(&decoded.from);
    tide_buf_done(&decoded.to);
    tide_buf_done(&decoded.cc);
    tide_buf_done(&decoded.subject);
    tide_buf_done(&decoded.snippet);
    return rc;
}

/* ---- refusals ---- */

tide_status tide_reader_refusal(struct tide_reader_task *task, tide_text id, tide_status rc,
                                const tide_error *why, tide_error *err)
{
    const uint64_t now_ms = tide_world_now_unix_ms(task->reader->options.world);
    if (rc != TIDE_PERMANENT && rc != TIDE_INVALID && rc != TIDE_FULL) {
        if (rc != TIDE_OK && err != NULL)
            *err = *why;
        return rc;
    }
    TIDE_TRY(tide_cache_begin(task->cache, err));
    return tide_cache_end(
        task->cache, tide_cache_refused_add(task->cache, id, tide_text_of(why->text), now_ms, err),
        err);
}

static json_int_t counted(const struct tide_reader_task *task, const char *what)
{
    return json_integer_value(json_object_get(task->batch, what));
}

static void count(struct tide_reader_task *task, const char *what)
{
    (void)json_object_set_new(task->batch, what, json_integer(counted(task, what) + 1));
}

/* Where nothing is given, it is not for a message's sake: the mailbox refuses. */
static bool all_refused(const struct tide_reader_task *task)
{
    return counted(task, "refused") > 1 && counted(task, "refused") == counted(task, "asked");
}

/* ---- a batch ---- */

/* Keeps how many of its messages were asked for: one that is gone has nothing to show for it, and a
 * job that waits for units would spend them on it again and again. */
static tide_status interrupted(struct tide_reader_task *task, size_t at, tide_status rc)
{
    (void)json_object_set_new(task->batch, "at", json_integer((json_int_t)at));
    (void)tide_reader_batch_set(task, json_incref(task->batch), NULL);
    return rc;
}

static tide_status ask_for(struct tide_reader_task *task, tide_text id, tide_error *why,
                           tide_error *err)
{
    bool known = false;
    TIDE_TRY(tide_reader_is_known(task, id, &known, err));
    if (known)
        return TIDE_OK;
    if (tide_job_canceled(task->job))
        return tide_error_set(err, TIDE_CANCELED, "more urgent work came");
    const tide_status rc = fetch_one(task, id, why);
    TIDE_TRY(tide_reader_refusal(task, id, rc, why, err));
    count(task, "asked");
    if (rc != TIDE_OK)
        count(task, "refused");
    tide_job_beat(task->job, 0);
    return TIDE_OK;
}

tide_status tide_reader_batch_fetch(struct tide_reader_task *task, tide_error *err)
{
    const json_t *ids = json_object_get(task->batch, "ids");
    const size_t ids_count = json_array_size(ids);
    tide_error why = {TIDE_PERMANENT, 0, "Gmail refuses every message"};
    for (size_t at = (size_t)counted(task, "at"); at < ids_count; at++) {
        const json_t *one = json_array_get(ids, at);
        const tide_text id = {json_string_value(one), json_string_length(one)};
        if (id.data == NULL || id.bytes == 0 || id.bytes >= TIDE_CACHE_ID_BYTES)
            continue;
        const tide_status rc = ask_for(task, id, &why, err);
        if (rc != TIDE_OK)
            return interrupted(task, at, rc);
    }
    return all_refused(task) ? tide_error_set(err, TIDE_PERMANENT, "%s", why.text) : TIDE_OK;
}

/* ---- those that were refused before ---- */

static void note_again(tide_text id, void *arg)
{
    (void)json_array_append_new(arg, json_stringn(id.data, id.bytes));
}

/* One whose headers are here was refused its body, which is asked for with the others (body.c). */
static tide_status again(struct tide_reader_task *task, tide_text id, tide_error *err)
{
    tide_error why = {TIDE_OK, 0, ""};
    bool known = false;
    TIDE_TRY(tide_reader_is_known(task, id, &known, err));
    if (known) {
        TIDE_TRY(tide_cache_begin(task->cache, err));
        return tide_cache_end(task->cache, tide_cache_refused_drop(task->cache, id, err), err);
    }
    if (tide_job_canceled(task->job))
        return tide_error_set(err, TIDE_CANCELED, "more urgent work came");
    return tide_reader_refusal(task, id, fetch_one(task, id, &why), &why, err);
}

tide_status tide_reader_refused_again(struct tide_reader_task *task, tide_error *err)
{
    const uint64_t now_ms = tide_world_now_unix_ms(task->reader->options.world);
    json_auto_t *ids = json_array();
    size_t at = 0;
    const json_t *one = NULL;
    TIDE_TRY(tide_cache_refused(task->cache,
                                now_ms > REFUSED_AGAIN_MS ? now_ms - REFUSED_AGAIN_MS : 0, now_ms,
                                REFUSED_AT_ONCE, note_again, ids, err));
    json_array_foreach(ids, at, one)
    {
        TIDE_TRY(again(task, (tide_text){json_string_value(one), json_string_length(one)}, err));
    }
    return TIDE_OK;
}
