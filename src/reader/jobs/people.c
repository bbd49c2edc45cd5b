/* people.c - whom the user writes to and hears from, for recipients as they are typed (K14): brings the
 * list (mail/people/people.h) up to date with the archive, and with the newest messages of the cache
 * that the archive does not have. */
#include "reader/jobs/jobs.h"

#include "mail/people/people.h"

#include <inttypes.h>
#include <stdio.h>

enum { CACHED_MAX = 5000 };

struct cached {
    struct tide_reader_task *task;
    tide_people_take *take;
    void *taking;
    tide_status rc;
    tide_error *err;
};

static void see_label(tide_text label, void *arg)
{
    struct tide_parties *head = arg;
    head->sent = head->sent || tide_text_equal(label, TIDE_TEXT("SENT"));
    head->draft = head->draft || tide_text_equal(label, TIDE_TEXT("DRAFT"));
}

static bool see_cached(const struct tide_cached *cached, void *arg)
{
    struct cached *self = arg;
    struct tide_stored stored;
    if (!cached->headers ||
        tide_reader_archived(self->task->archive, tide_text_of(cached->id), &stored))
        return true;
    struct tide_parties head = {.rowid = cached->row,
                                .internal_ms = cached->internal_ms,
                                .ready = true,
                                .from = cached->from,
                                .to = cached->to,
                                .cc = cached->cc,
                                .bcc = TIDE_TEXT("")};
    self->rc = tide_cache_labels_of(self->task->cache, cached->row, see_label, &head, self->err);
    return self->rc == TIDE_OK && self->take(&head, self->taking);
}

static tide_status cached_read(tide_people_take *take, void *taking, void *arg, tide_error *err)
{
    struct cached self = {arg, take, taking, TIDE_OK, err};
    TIDE_TRY(tide_cache_list(self.task->cache, TIDE_TEXT(TIDE_CACHE_ALL), TIDE_CACHE_TOP,
                             CACHED_MAX, see_cached, &self, err));
    return self.rc;
}

/* Shard by shard: each is a transaction, and a person who waits is not kept waiting by the rest. */
static tide_status archive_take(struct tide_reader_task *task, tide_people *people, tide_error *err)
{
    bool left = task->archive != NULL;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && left && !tide_job_canceled(task->job))
        rc = tide_people_update(people, task->archive, false, &left, err);
    /* A shard that is damaged is told of by whoever checks archives; the others are known. */
    return tide_status_class(rc) == TIDE_CLASS_PERMANENT ? TIDE_OK : rc;
}

static tide_status people_update(struct tide_reader_task *task, tide_error *err)
{
    char path[TIDE_CACHE_PATH_BYTES];
    char version[24];
    uint64_t cached = 0;
    tide_people *people = NULL;
    TIDE_TRY(tide_reader_people_path(task->reader->cache_dir, task->user->email, path, err));
    TIDE_TRY(tide_cache_version(task->cache, &cached, err));
    const struct tide_people_options options = {.path = path, .world = task->reader->options.world};
    TIDE_TRY(tide_people_open(&options, task->reader->mem, &people, err));
    tide_status rc = archive_take(task, people, err);
    (void)snprintf(version, sizeof version, "%" PRIu64, cached);
    if (rc == TIDE_OK && !tide_job_canceled(task->job))
        rc = tide_people_others(people, version, cached_read, task, err);
    tide_people_close(people);
    return rc;
}

/* It makes no call: it needs no identity, and runs beside the others. */
tide_status tide_reader_people_run(tide_job *job, void *context, tide_error *err)
{
    struct tide_reader_task task = {.reader = context, .job = job};
    TIDE_TRY(tide_reader_cache_take(context, tide_job_account(job), &task.user, &task.cache, err));
    task.archive = tide_reader_archive(task.reader, task.user);
    const tide_status rc = people_update(&task, err);
    tide_reader_task_end(&task);
    return rc;
}
