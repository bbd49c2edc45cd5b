/* sync.c - assistant.sync {force_full}: what changed in the mailbox becomes jobs (J4, J5, J7, J23).
 *
 * History since the stored id, all pages.  Without an id, or when one has expired, the inbox itself is
 * listed, and so it is when a full sync was asked for.  After an expired id the labels that users give
 * commands with, and the records with a draft, are looked at as well: what history had of them is lost.
 *
 * The id to move to is read before anything is listed, so that what comes meanwhile is in the history
 * after it. */
#include "assistant/jobs/inside.h"

#include "assistant/store/look.h"
#include "base/check.h"
#include "base/hash.h"
#include "tidemark_inside.h"

#include <stdio.h>
#include <string.h>

enum {
    HISTORY_PAGES_MAX = 200, /* of one run; the rest is the next one's */
    LIST_PAGES_MAX = 400,    /* 200,000 messages */
    QUERY_BYTES_MAX = 2048,
    BAD_REQUEST = 400,
    FAILED_MAX = 100000, /* threads */
    FAILED_CHUNK = 200,  /* of one transaction, which PostgreSQL ends after 4 s */
};

struct syncing {
    struct tide_task task;
    struct tide_assistant_sync state;
    struct tide_sights sights;
    char to[TIDE_ASSISTANT_ID_BYTES]; /* where the history id goes */
    bool gap;                         /* the stored id has expired */
    bool more;                        /* history was not read to its end */
    tide_map failed; /* threads with a failed job: their number in the list, from 1 */
    struct failed {
        char thread_id[TIDE_ASSISTANT_ID_BYTES], message_id[TIDE_ASSISTANT_ID_BYTES];
        uint64_t ended_ms; /* of the last of them */
        bool classifies;   /* one of them would classify it */
        bool given_up;     /* it is not tried again */
    } * list;
    size_t list_count, list_capacity;
    bool no_room;                  /* for one of them */
    tide_assistant_kind seen_kind; /* of the failed jobs that are looked at */
};

static tide_status read_state(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct syncing *self = arg;
    return tide_assistant_sync_get(tide_transaction_rows(transaction), self->task.account,
                                   &self->state, err);
}

/* ---- history ---- */

static tide_text text_of(const json_t *object, const char *key)
{
    const json_t *text = json_object_get(object, key);
    return (tide_text){json_string_value(text), json_string_length(text)};
}

static bool has(const json_t *labels, const char *id)
{
    for (size_t i = 0; i < json_array_size(labels); i++)
        if (strcmp(json_string_value(json_array_get(labels, i)), id) == 0)
            return true;
    return false;
}

/* A message of another person in the inbox; where the server does not say the labels, the handler
 * looks at the thread. */
static bool is_inbound(const json_t *message)
{
    const json_t *labels = json_object_get(message, "labelIds");
    if (labels == NULL)
        return true;
    return has(labels, "INBOX") && !has(labels, "SENT") && !has(labels, "DRAFT") &&
           !has(labels, "TRASH") && !has(labels, "SPAM");
}

static tide_status see(struct syncing *self, tide_assistant_sight sight, const json_t *message,
                       tide_error *err)
{
    return tide_sights_add(&self->sights, sight, text_of(message, "threadId"),
                           text_of(message, "id"), err);
}

/* Labels that users give commands with: put on in the history, or there after a gap (J23). */
static const struct command {
    tide_assistant_label label;
    tide_assistant_sight sight, sight_gap;
} commands[] = {
    {TIDE_ASSISTANT_LABEL_DONE, TIDE_SIGHT_DONE, TIDE_SIGHT_DONE_GAP},
    {TIDE_ASSISTANT_LABEL_REWORK, TIDE_SIGHT_REWORK, TIDE_SIGHT_REWORK_GAP},
    {TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, TIDE_SIGHT_NEEDS_RESPONSE, TIDE_SIGHT_NEEDS_RESPONSE_GAP},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static tide_status see_labels(struct syncing *self, const json_t *change, tide_error *err)
{
    const json_t *message = json_object_get(change, "message");
    const json_t *labels = json_object_get(change, "labelIds");
    for (size_t i = 0; i < COMMANDS; i++) {
        const char *id = self->task.labels.ids[commands[i].label];
        if (id[0] != '\0' && has(labels, id))
            TIDE_TRY(see(self, commands[i].sight, message, err));
    }
    /* A draft in the trash is as gone as one that was deleted. */
    if (has(labels, "TRASH") && has(json_object_get(message, "labelIds"), "DRAFT"))
        TIDE_TRY(see(self, TIDE_SIGHT_DELETED, message, err));
    return TIDE_OK;
}

static tide_status see_record(struct syncing *self, const json_t *record, tide_error *err)
{
    const json_t *added = json_object_get(record, "messagesAdded");
    const json_t *deleted = json_object_get(record, "messagesDeleted");
    const json_t *labeled = json_object_get(record, "labelsAdded");
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *message = json_object_get(json_array_get(added, i), "message");
        if (is_inbound(message))
            TIDE_TRY(see(self, TIDE_SIGHT_MESSAGE, message, err));
    }
    for (size_t i = 0; i < json_array_size(deleted); i++)
        TIDE_TRY(see(self, TIDE_SIGHT_DELETED,
                     json_object_get(json_array_get(deleted, i), "message"), err));
    for (size_t i = 0; i < json_array_size(labeled); i++)
        TIDE_TRY(see_labels(self, json_array_get(labeled, i), err));
    return TIDE_OK;
}

static tide_status copy_id(char *to, tide_text id, tide_error *err)
{
    if (id.bytes == 0 || id.bytes >= TIDE_ASSISTANT_ID_BYTES)
        return tide_error_set(err, TIDE_SERVER, "history.list: a history id is missing");
    memcpy(to, id.data, id.bytes);
    to[id.bytes] = '\0';
    return TIDE_OK;
}

static tide_status see_page(struct syncing *self, const struct tide_gmail_history *page,
                            tide_error *err)
{
    const size_t count = json_array_size(page->records);
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(see_record(self, json_array_get(page->records, i), err));
    if (page->next.bytes == 0) /* the last page: all was read */
        return copy_id(self->to, page->history_id, err);
    return count == 0
               ? TIDE_OK
               : copy_id(self->to, text_of(json_array_get(page->records, count - 1), "id"), err);
}

static tide_status history(struct syncing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    struct tide_gmail_history page = {.value = NULL};
    tide_status rc = TIDE_OK;
    for (unsigned i = 0; i < HISTORY_PAGES_MAX; i++) {
        struct tide_gmail_history next;
        rc = tide_gmail_history(task->gmail, task->job, tide_text_of(self->state.history_id),
                                i == 0 ? TIDE_TEXT("") : page.next, &next, err);
        if (rc != TIDE_OK)
            break;
        tide_gmail_history_done(&page);
        page = next;
        rc = see_page(self, &page, err);
        if (rc != TIDE_OK || page.next.bytes == 0)
            break;
    }
    self->more = rc == TIDE_OK && page.next.bytes > 0;
    tide_gmail_history_done(&page);
    return rc;
}

/* ---- listing ---- */

/* "🤖 AI/Needs Response" as a query names it. */
static tide_status add_label(tide_buf *query, const char *before, tide_assistant_label label)
{
    TIDE_TRY(tide_buf_add_text(query, before));
    for (const char *c = tide_assistant_label_name(label); *c != '\0'; c++)
        TIDE_TRY(tide_buf_add(query, *c == ' ' || *c == '/' ? "-" : c, 1));
    return TIDE_OK;
}

static tide_status list(struct syncing *self, const char *query, tide_assistant_sight sight,
                        tide_error *err)
{
    struct tide_task *task = &self->task;
    struct tide_gmail_page page = {.value = NULL};
    tide_status rc = TIDE_OK;
    bool whole = false;
    for (unsigned i = 0; rc == TIDE_OK && !whole && i < LIST_PAGES_MAX; i++) {
        struct tide_gmail_page next;
        rc = tide_gmail_list(task->gmail, task->job, query, i == 0 ? TIDE_TEXT("") : page.next,
                             &next, err);
        if (rc != TIDE_OK)
            break;
        tide_gmail_page_done(&page);
        page = next;
        /* The newest come first: of a thread the newest message is seen. */
        for (size_t k = 0; rc == TIDE_OK && k < json_array_size(page.ids); k++)
            rc = see(self, sight, json_array_get(page.ids, k), err);
        whole = page.next.bytes == 0;
    }
    tide_gmail_page_done(&page);
    if (rc == TIDE_OK && !whole)
        return tide_error_set(err, TIDE_FULL, "over %d messages to list", LIST_PAGES_MAX * 500);
    return rc;
}

/* Mail of the last days; `labeled`: also with a label of ours. */
static tide_status list_window(struct syncing *self, bool labeled, tide_assistant_sight sight,
                               tide_error *err)
{
    tide_auto_buf query = tide_buf_in(self->task.jobs->mem, QUERY_BYTES_MAX);
    tide_status rc = tide_buf_print(&query, "in:inbox newer_than:%ud",
                                    (unsigned)self->task.terms.config->full_sync_days);
    for (unsigned label = TIDE_ASSISTANT_LABEL_PARENT + 1;
         rc == TIDE_OK && !labeled && label < TIDE_ASSISTANT_LABELS; label++)
        rc = add_label(&query, " -label:", (tide_assistant_label)label);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no room for a query");
    return list(self, tide_buf_cstr(&query), sight, err);
}

/* J4, J5.  After a gap a label does not say that the message was seen (J25): the record does. */
static tide_status list_inbox(struct syncing *self, tide_error *err)
{
    if (!self->gap)
        return list_window(self, false, TIDE_SIGHT_LISTED, err);
    TIDE_TRY(list_window(self, false, TIDE_SIGHT_LISTED_GAP, err));
    return list_window(self, true, TIDE_SIGHT_LABELED_GAP, err);
}

/* J23 */
static tide_status list_commands(struct syncing *self, tide_error *err)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        tide_auto_buf query = tide_buf_in(self->task.jobs->mem, QUERY_BYTES_MAX);
        if (add_label(&query, "label:", commands[i].label) != TIDE_OK)
            return tide_error_set(err, TIDE_NO_MEMORY, "no room for a query");
        TIDE_TRY(list(self, tide_buf_cstr(&query), commands[i].sight_gap, err));
    }
    return TIDE_OK;
}

/* ---- what failed, and what was left in work (JBS8) ---- */

static bool has_failed(const struct syncing *self, const char *thread_id)
{
    uint32_t there = 0;
    return tide_map_get(&self->failed, tide_hash_key(tide_text_of(thread_id)), &there);
}

static struct failed *failed_of(struct syncing *self, tide_text thread_id)
{
    uint32_t number = 0;
    return tide_map_get(&self->failed, tide_hash_key(thread_id), &number) ? &self->list[number - 1]
                                                                          : NULL;
}

static struct failed *failed_new(struct syncing *self, tide_text thread_id)
{
    tide_mem *mem = self->task.jobs->mem;
    if (!TIDE_GROW_IN(mem, self->list, self->list_capacity, self->list_count + 1, FAILED_MAX) ||
        !tide_map_put(&self->failed, tide_hash_key(thread_id), (uint32_t)self->list_count + 1))
        return NULL;
    struct failed *one = &self->list[self->list_count++];
    *one = (struct failed){.ended_ms = 0};
    (void)snprintf(one->thread_id, sizeof one->thread_id, "%.*s", (int)thread_id.bytes,
                   thread_id.data);
    return one;
}

/* Notes the thread; no failed job is over. */
static bool see_failed(tide_text payload, uint64_t ended_unix_ms, void *arg)
{
    struct syncing *self = arg;
    json_auto_t *json = NULL;
    if (tide_json_parse(payload, &json, NULL) != TIDE_OK)
        return false;
    const tide_text thread_id = text_of(json, "thread_id"),
                    message_id = text_of(json, "message_id");
    if (thread_id.bytes == 0 || thread_id.bytes >= TIDE_ASSISTANT_ID_BYTES)
        return false;
    struct failed *one = failed_of(self, thread_id);
    if (one == NULL)
        one = failed_new(self, thread_id);
    self->no_room = self->no_room || one == NULL;
    if (one == NULL)
        return false;
    one->classifies = one->classifies || self->seen_kind == TIDE_ASSISTANT_CLASSIFY ||
                      self->seen_kind == TIDE_ASSISTANT_AGENT;
    if (one->ended_ms > ended_unix_ms)
        return false;
    one->ended_ms = ended_unix_ms;
    if (message_id.bytes > 0 && message_id.bytes < TIDE_ASSISTANT_ID_BYTES)
        (void)snprintf(one->message_id, sizeof one->message_id, "%.*s", (int)message_id.bytes,
                       message_id.data);
    return false;
}

struct counting {
    struct syncing *self;
    size_t from, to;
};

static tide_status count_one(tide_rows db, const struct syncing *self, struct failed *one,
                             tide_error *err)
{
    const struct tide_task *task = &self->task;
    const struct tide_assistant_event event = {
        .account = task->account,
        .thread_id = one->thread_id,
        .kind = "given_up",
        .detail = "its jobs failed too often; a new message, a label of yours or `tidemark jobs "
                  "retry` tries it again",
        .job = tide_job_id(task->job),
        .at_ms = task->now_ms};
    uint32_t failures = 0;
    bool more = false;
    TIDE_TRY(tide_assistant_failure_add(db, task->account, one->thread_id, one->message_id,
                                        one->ended_ms, task->now_ms, &failures, &more, err));
    one->given_up = failures >= TIDE_ASSISTANT_FAILURES_MAX;
    return one->given_up && more ? tide_assistant_event_add(db, &event, err) : TIDE_OK;
}

static tide_status count_failures(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct counting *counting = arg;
    struct syncing *self = counting->self;
    const tide_rows db = tide_transaction_rows(transaction);
    for (size_t i = counting->from; i < counting->to; i++)
        TIDE_TRY(count_one(db, self, &self->list[i], err));
    return counting->to < self->list_count
               ? TIDE_OK
               : tide_assistant_failures_prune(db, self->task.account, self->task.now_ms, err);
}

static bool is_tried_again(tide_text payload, uint64_t ended_unix_ms, void *arg)
{
    json_auto_t *json = NULL;
    (void)ended_unix_ms;
    if (tide_json_parse(payload, &json, NULL) != TIDE_OK)
        return false;
    const tide_text thread_id = text_of(json, "thread_id");
    const struct failed *one = thread_id.bytes == 0 ? NULL : failed_of(arg, thread_id);
    return one == NULL || !one->given_up;
}

/* A job that was killed or refused as often as jobs are tried had a message or a command of the user to
 * see to, and nothing else says so: it is tried again, a bounded number of times (JBS8).  What it was to
 * do then is what is left to do. */
static tide_status retry_failed(struct syncing *self, tide_error *err)
{
    static const tide_assistant_kind threads[] = {
        TIDE_ASSISTANT_CLASSIFY, TIDE_ASSISTANT_DRAFT,   TIDE_ASSISTANT_MANUAL_DRAFT,
        TIDE_ASSISTANT_REWORK,   TIDE_ASSISTANT_CLEANUP, TIDE_ASSISTANT_AGENT};
    enum { THREADS = sizeof threads / sizeof threads[0] };
    const struct tide_task *task = &self->task;
    tide_engine *engine = task->jobs->options.engine;
    for (size_t i = 0; i < THREADS; i++) {
        self->seen_kind = threads[i];
        TIDE_TRY(tide_accept_failed(engine, task->account, task->jobs->kinds[threads[i]],
                                    see_failed, self, err));
    }
    if (self->no_room)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for jobs that failed");
    struct counting counting = {.self = self};
    do {
        counting.from = counting.to;
        counting.to += self->list_count - counting.to < FAILED_CHUNK
                           ? self->list_count - counting.to
                           : FAILED_CHUNK;
        TIDE_TRY(tide_transact(engine, count_failures, &counting, err));
    } while (counting.to < self->list_count);
    for (size_t i = 0; i < self->list_count; i++)
        if (self->list[i].classifies)
            TIDE_TRY(tide_sights_failed(&self->sights, self->list[i].thread_id, err));
    for (size_t i = 0; i < THREADS; i++)
        TIDE_TRY(tide_retry_failed_where(engine, task->account, task->jobs->kinds[threads[i]],
                                         is_tried_again, self, err));
    return TIDE_OK;
}

struct records {
    struct syncing *self;
    tide_assistant_sight sight;
    uint64_t until_ms; /* those that changed later are left out */
    struct tide_assistant_filter filter;
    struct tide_assistant_cursor cursor, next;
    bool more;
    tide_status rc;
};

static void see_email(const struct tide_assistant_email *email, void *arg)
{
    struct records *records = arg;
    if (records->rc == TIDE_OK && email->updated_ms <= records->until_ms &&
        (records->sight != TIDE_SIGHT_STUCK || !has_failed(records->self, email->thread_id)))
        records->rc = tide_sights_add(&records->self->sights, records->sight,
                                      tide_text_of(email->thread_id), TIDE_TEXT(""), NULL);
}

static tide_status read_records(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct records *records = arg;
    records->next = records->cursor; /* a transaction that is repeated reads the same page */
    TIDE_TRY(tide_assistant_emails(tide_transaction_rows(transaction), &records->filter,
                                   &records->next, TIDE_ASSISTANT_PAGE_MAX, see_email, records,
                                   &records->more, err));
    return records->rc;
}

static tide_status list_records(struct syncing *self, tide_assistant_sight sight,
                                tide_assistant_status status, uint64_t until_ms, tide_error *err)
{
    struct records records = {.self = self,
                              .sight = sight,
                              .until_ms = until_ms,
                              .filter = {.account = self->task.account, .status = status},
                              .more = true};
    while (records.more) {
        TIDE_TRY(tide_transact(self->task.jobs->options.engine, read_records, &records, err));
        records.cursor = records.next;
    }
    return TIDE_OK;
}

static void see_open_run(const char *thread_id, const char *message_id, void *arg)
{
    struct records *records = arg;
    if (records->rc == TIDE_OK && !has_failed(records->self, thread_id))
        records->rc = tide_sights_add(&records->self->sights, records->sight,
                                      tide_text_of(thread_id), tide_text_of(message_id), NULL);
}

static tide_status read_open_runs(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct records *records = arg;
    TIDE_TRY(tide_assistant_runs_open(tide_transaction_rows(transaction),
                                      records->self->task.account, records->until_ms,
                                      TIDE_ASSISTANT_PAGE_MAX, see_open_run, records, err));
    return records->rc;
}

static void see_left(const char *thread_id, void *arg)
{
    see_open_run(thread_id, "", arg);
}

static tide_status read_left(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct records *records = arg;
    TIDE_TRY(tide_assistant_drafts_left(tide_transaction_rows(transaction),
                                        records->self->task.account, records->until_ms,
                                        TIDE_ASSISTANT_PAGE_MAX, see_left, records, err));
    return records->rc;
}

/* Records, runs and drafts that are in work since before the last full sync: their jobs may have failed,
 * killed as often as a job is tried.  A job that waits for the model is known by its question. */
static tide_status list_stuck(struct syncing *self, tide_error *err)
{
    const uint64_t interval_ms =
        (uint64_t)self->task.terms.config->full_sync_interval_hours * 3600000;
    const uint64_t until_ms = self->task.now_ms > interval_ms ? self->task.now_ms - interval_ms : 0;
    struct records runs = {.self = self, .sight = TIDE_SIGHT_RUN, .until_ms = until_ms};
    struct records left = {.self = self, .sight = TIDE_SIGHT_LEFT, .until_ms = until_ms};
    TIDE_TRY(tide_transact(self->task.jobs->options.engine, read_open_runs, &runs, err));
    TIDE_TRY(tide_transact(self->task.jobs->options.engine, read_left, &left, err));
    TIDE_TRY(list_records(self, TIDE_SIGHT_STUCK, TIDE_ASSISTANT_PENDING, until_ms, err));
    return list_records(self, TIDE_SIGHT_STUCK, TIDE_ASSISTANT_REWORK_REQUESTED, until_ms, err);
}

/* ---- the run ---- */

/* Without its label a classification could not be carried out; the jobs that failed for want of it are tried
 * again below (JBS8).  Where Gmail refuses to make one the rest of the sync still counts. */
static tide_status look_labels(struct syncing *self, tide_error *err)
{
    const tide_status rc = tide_task_labels_again(&self->task, err);
    return tide_status_class(rc) == TIDE_CLASS_PERMANENT ? TIDE_OK : rc;
}

static tide_status full(struct syncing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    struct tide_gmail_profile profile;
    if (self->to[0] == '\0') {
        TIDE_TRY(tide_gmail_profile(task->gmail, task->job, &profile, err));
        TIDE_TRY(copy_id(self->to, tide_text_of(profile.history_id), err));
    }
    TIDE_TRY(look_labels(self, err));
    TIDE_TRY(list_inbox(self, err));
    TIDE_TRY(retry_failed(self, err));
    TIDE_TRY(list_stuck(self, err));
    if (!self->gap)
        return TIDE_OK;
    TIDE_SEEN("assistant: the history id expired");
    self->sights.gap = true;
    TIDE_TRY(list_commands(self, err));
    TIDE_TRY(list_records(self, TIDE_SIGHT_DRAFT_GAP, TIDE_ASSISTANT_DRAFTED, UINT64_MAX, err));
    return list_records(self, TIDE_SIGHT_DRAFT_GAP, TIDE_ASSISTANT_REWORK_REQUESTED, UINT64_MAX,
                        err);
}

static tide_status run(struct syncing *self, tide_error *err)
{
    struct tide_task *task = &self->task;
    TIDE_TRY(tide_transact(task->jobs->options.engine, read_state, self, err));
    bool all = json_is_true(json_object_get(task->payload, "force_full")) ||
               self->state.history_id[0] == '\0';
    if (self->state.history_id[0] != '\0') {
        tide_error why = {TIDE_OK, 0, ""};
        const tide_status rc = history(self, &why);
        self->gap = rc == TIDE_GONE || (rc == TIDE_PERMANENT && why.code == BAD_REQUEST);
        if (rc != TIDE_OK && !self->gap) {
            if (err != NULL)
                *err = why;
            return rc;
        }
        if (self->gap)
            self->to[0] = '\0';
        all = all || self->gap;
    }
    if (all)
        TIDE_TRY(full(self, err));
    TIDE_TRY(tide_sights_commit(&self->sights, self->state.history_id, self->to, all, err));
    if (!self->more)
        return TIDE_OK;
    const struct tide_spec again = {
        .kind = task->jobs->kinds[TIDE_ASSISTANT_SYNC], .account = task->account, .dedupe = "sync"};
    return tide_job_enqueue(task->job, &again, err);
}

tide_status tide_assistant_sync_run(tide_job *job, void *context, tide_error *err)
{
    struct syncing self;
    memset(&self, 0, sizeof self);
    tide_status rc = tide_task_begin(&self.task, context, job, err);
    tide_sights_init(&self.sights, &self.task);
    tide_map_init(&self.failed, self.task.jobs->mem);
    /* Two would both list, and the second could not move the id (STO5). */
    if (rc == TIDE_OK)
        rc = tide_task_alone(&self.task, "/sync");
    if (rc == TIDE_OK && self.task.user.onboarded_ms == 0)
        rc = tide_error_set(err, TIDE_PERMANENT, "%s was not onboarded", self.task.user.email);
    if (rc == TIDE_OK)
        rc = run(&self, err);
    tide_sights_done(&self.sights);
    tide_map_done(&self.failed);
    tide_mem_free(self.task.jobs->mem, self.list, self.list_capacity * sizeof *self.list);
    tide_task_end(&self.task);
    return rc;
}
