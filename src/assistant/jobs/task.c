#include "assistant/jobs/inside.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

enum { ARENA_BYTES_MAX = 256 << 20 };

/* ---- one handler for a thread (JBS1) ---- */

static bool claim(struct tide_task *task, const char *what)
{
    tide_assistant_jobs *jobs = task->jobs;
    const uint64_t key = tide_hash_key(tide_text_of(what)) ^ task->account;
    size_t free = TIDE_ASSISTANT_BUSY_MAX;
    bool taken = false;
    tide_lock_take(jobs->options.world, jobs->lock);
    for (size_t i = 0; i < TIDE_ASSISTANT_BUSY_MAX; i++) {
        taken = taken || jobs->busy[i] == key;
        if (jobs->busy[i] == 0)
            free = i;
    }
    if (!taken && free < TIDE_ASSISTANT_BUSY_MAX) {
        jobs->busy[free] = key;
        task->busy = key;
    }
    tide_lock_drop(jobs->options.world, jobs->lock);
    return task->busy != 0;
}

static void release(struct tide_task *task)
{
    tide_assistant_jobs *jobs = task->jobs;
    if (task->busy == 0)
        return;
    tide_lock_take(jobs->options.world, jobs->lock);
    for (size_t i = 0; i < TIDE_ASSISTANT_BUSY_MAX; i++)
        if (jobs->busy[i] == task->busy)
            jobs->busy[i] = 0;
    tide_lock_drop(jobs->options.world, jobs->lock);
    task->busy = 0;
}

/* ---- begin and end ---- */

const char *tide_task_text(const struct tide_task *task, const char *key)
{
    const char *text = json_string_value(json_object_get(task->payload, key));
    return text == NULL ? "" : text;
}

static tide_status read_rows(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct tide_task *task = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(tide_assistant_user_get(db, task->account, &task->user, err));
    TIDE_TRY(tide_assistant_labels_get(db, task->account, &task->labels, err));
    memset(&task->email, 0, sizeof task->email);
    if (task->thread_id[0] == '\0')
        return TIDE_OK;
    const tide_status rc =
        tide_assistant_email_get(db, task->account, task->thread_id, &task->email, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static bool is_onboarded(const struct tide_task *task)
{
    for (unsigned i = 0; i < TIDE_ASSISTANT_LABELS; i++)
        if (task->labels.ids[i][0] == '\0')
            return false;
    return task->user.onboarded_ms > 0;
}

static tide_status id_read(const struct tide_task *task, const char *key, char *id, tide_error *err)
{
    const int bytes = snprintf(id, TIDE_ASSISTANT_ID_BYTES, "%s", tide_task_text(task, key));
    if (bytes < 0 || bytes >= TIDE_ASSISTANT_ID_BYTES)
        return tide_error_set(err, TIDE_INVALID, "\"%s\" of the payload is too long", key);
    return TIDE_OK;
}

static tide_status terms_take(struct tide_task *task, tide_error *err)
{
    const struct tide_assistant_lender *lender = &task->jobs->lender;
    task->terms = task->jobs->options.terms;
    if (lender->take == NULL)
        return TIDE_OK;
    TIDE_TRY(lender->take(lender->arg, task->job, &task->terms, err));
    task->lent = true;
    return TIDE_OK;
}

tide_status tide_task_begin(struct tide_task *task, tide_assistant_jobs *jobs, tide_job *job,
                            tide_error *err)
{
    memset(task, 0, sizeof *task);
    task->jobs = jobs;
    task->job = job;
    task->account = tide_job_account(job);
    task->now_ms = tide_world_now_unix_ms(jobs->options.world);
    tide_gmail_thread_init(&task->thread, jobs->mem);
    tide_arena_init(&task->arena, jobs->mem, ARENA_BYTES_MAX);
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &task->payload, err));
    TIDE_TRY(terms_take(task, err));
    TIDE_TRY(id_read(task, "thread_id", task->thread_id, err));
    TIDE_TRY(id_read(task, "message_id", task->message_id, err));
    if (task->thread_id[0] != '\0' && !claim(task, task->thread_id))
        return tide_job_again(job, tide_job_now_ms(job) + TIDE_ASSISTANT_BUSY_MS);
    TIDE_TRY(tide_transact(jobs->options.engine, read_rows, task, err));
    if (task->user.ended_ms > 0) /* JBS10 */
        return tide_error_set(err, TIDE_SUPERSEDED, "the assistant was ended for %s",
                              task->user.email);
    if (task->thread_id[0] != '\0' && !is_onboarded(task))
        return tide_error_set(err, TIDE_PERMANENT, "%s was not onboarded", task->user.email);
    return jobs->options.gmail(jobs->options.gmail_arg, &task->user, &task->gmail, err);
}

tide_status tide_task_alone(struct tide_task *task, const char *what)
{
    TIDE_ASSERT(task->thread_id[0] == '\0');
    return claim(task, what)
               ? TIDE_OK
               : tide_job_again(task->job, tide_job_now_ms(task->job) + TIDE_ASSISTANT_BUSY_MS);
}

void tide_task_end(struct tide_task *task)
{
    release(task);
    if (task->lent)
        task->jobs->lender.give(task->jobs->lender.arg, &task->terms);
    json_decref(task->payload);
    tide_gmail_thread_done(&task->thread);
    tide_arena_done(&task->arena);
}

/* ---- the thread ---- */

tide_status tide_task_thread(struct tide_task *task, bool full, tide_error *err)
{
    static const char *const headers[] = {TIDE_GMAIL_DRAFT_HEADER, NULL};
    const tide_text id = tide_text_of(task->thread_id);
    return full ? tide_gmail_thread_get(task->gmail, task->job, id, &task->thread, err)
                : tide_gmail_thread_look(task->gmail, task->job, id, headers, &task->thread, err);
}

size_t tide_task_place(const struct tide_task *task, const char *message_id)
{
    for (size_t i = 0; i < task->thread.count; i++)
        if (tide_text_equal(task->thread.messages[i].message.id, tide_text_of(message_id)))
            return i + 1;
    return 0;
}

/* The record's message may be deleted: then the job says which one came, or the count does. */
static bool is_newer(const struct tide_task *task)
{
    const struct tide_gmail_parts *newest = tide_task_newest(task);
    if (newest == NULL || tide_gmail_parts_labeled(newest, "SENT") ||
        task->email.message_id[0] == '\0')
        return false;
    const size_t known = tide_task_place(task, task->email.message_id);
    return known > 0 ? known < (size_t)(newest - task->thread.messages) + 1
                     : tide_text_equal(newest->message.id, tide_text_of(task->message_id)) ||
                           tide_gmail_thread_letters(&task->thread) > task->email.messages;
}

/* Whether a message in the inbox has a Done that was not carried out: cleanup would have taken it out.  Of a
 * record that was archived only a newer message counts; the user may have moved the others back.  Without a
 * record nothing tells whether it was; a Done that the newest message lacks is older than that message. */
static bool done_is_open(const struct tide_task *task, const struct tide_gmail_parts *parts,
                         bool newer)
{
    const bool newest = parts == tide_task_newest(task);
    if (!tide_gmail_parts_labeled(parts, "INBOX"))
        return false;
    return task->email.status == TIDE_ASSISTANT_ARCHIVED    ? newer && newest
           : task->email.status == TIDE_ASSISTANT_NO_STATUS ? newest
                                                            : true;
}

static tide_assistant_done done_of(const struct tide_task *task, bool newer)
{
    tide_assistant_done done = TIDE_DONE_NONE;
    for (size_t i = 0; i < task->thread.count; i++) {
        const struct tide_gmail_parts *parts = &task->thread.messages[i];
        if (!tide_gmail_parts_labeled(parts, task->labels.ids[TIDE_ASSISTANT_LABEL_DONE]))
            continue;
        if (done_is_open(task, parts, newer))
            return TIDE_DONE_OPEN;
        done = TIDE_DONE_OVER;
    }
    return done;
}

struct tide_assistant_facts tide_task_facts(const struct tide_task *task)
{
    const bool newer = is_newer(task);
    return (struct tide_assistant_facts){
        .status = task->email.status,
        .category = task->email.category,
        .newer = newer,
        .reworks = task->email.reworks,
        .draft = task->email.draft_id[0] != '\0',
        .done = done_of(task, newer),
    };
}

const struct tide_gmail_parts *tide_task_newest(const struct tide_task *task)
{
    for (size_t i = task->thread.count; i > 0; i--) {
        const struct tide_gmail_parts *parts = &task->thread.messages[i - 1];
        if (!tide_gmail_parts_labeled(parts, "DRAFT") &&
            !tide_gmail_parts_labeled(parts, "TRASH") && !tide_gmail_parts_labeled(parts, "SENT"))
            return parts;
    }
    return tide_gmail_thread_last(&task->thread);
}
