/* action.c - uploads what a person did, in order (K11, KR2, KR3).
 *
 * An action is its changes: which labels of which messages.  Messages with the same changes go in one
 * call.  What the server has, the base gets at once, and then the action ends: what is shown does not
 * flicker.  An action that was interrupted continues behind the last call that is in the base: others may
 * have changed what was uploaded before, and polls may have told of it.  An action that has a draft sends
 * it, or removes it from the server (send.c). */
#include "reader/jobs/jobs.h"

#include "ledger/rows.h"
#include "settings/settings.h"

#include <stdio.h>
#include <string.h>

enum { LABELS_MAX = 32 };

struct uploading {
    struct tide_reader_task *task;
    struct tide_reader_action action;
    uint64_t now_ms, hold_ms;
    json_t *messages; /* id -> {"add": [...], "take": [...]} */
    json_t *made;     /* of these, the changes that the server has */
    bool refused;     /* by the server */
    tide_action_state state;
    char error[TIDE_ACTION_ERROR_BYTES];
};

/* ---- what it changes ---- */

static void change_take(const struct tide_change *change, void *arg)
{
    struct uploading *self = arg;
    char id[TIDE_CACHE_ID_BYTES];
    (void)snprintf(id, sizeof id, "%.*s", (int)change->message.bytes, change->message.data);
    json_t *one = json_object_get(self->messages, id);
    if (one == NULL) {
        one = json_pack("{s:[], s:[]}", "add", "take");
        (void)json_object_set_new(self->messages, id, one);
    }
    (void)json_array_append_new(json_object_get(one, change->added ? "add" : "take"),
                                json_stringn(change->label.data, change->label.bytes));
}

static tide_status next_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct uploading *self = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    (void)json_object_clear(self->messages); /* a transaction may be repeated */
    const uint32_t account = self->task->user->account;
    TIDE_TRY(tide_actions_clock(db, account, self->now_ms, self->hold_ms, err));
    TIDE_TRY(tide_action_next(db, account, self->now_ms, &self->action, err));
    if (self->action.due_ms > self->now_ms)
        return TIDE_OK;
    TIDE_TRY(tide_action_begin(db, self->action.account, self->action.id, err)); /* RDS5 */
    return tide_action_changes(db, self->action.account, self->action.id, change_take, self, err);
}

/* ---- calls ---- */

static size_t texts_of(const json_t *array, const char *list[LABELS_MAX + 1])
{
    size_t count = 0;
    size_t at = 0;
    const json_t *one = NULL;
    json_array_foreach(array, at, one)
    {
        if (count < LABELS_MAX)
            list[count++] = json_string_value(one);
    }
    list[count] = NULL;
    return count;
}

static bool deletes(const json_t *changes)
{
    const json_t *add = json_object_get(changes, "add");
    return json_array_size(add) == 1 &&
           strcmp(json_string_value(json_array_get(add, 0)), TIDE_OVERLAY_GONE) == 0;
}

/* The messages that have the same changes as `changes`. */
static size_t same(const struct uploading *self, const json_t *changes, tide_text *ids)
{
    size_t count = 0;
    const char *id = NULL;
    json_t *other = NULL;
    json_object_foreach(self->messages, id, other)
    {
        if (count < TIDE_ACTION_MESSAGES_MAX && json_equal(other, changes))
            ids[count++] = tide_text_of(id);
    }
    return count;
}

static tide_status call_for(struct uploading *self, const json_t *changes, const tide_text *ids,
                            size_t count, tide_error *err)
{
    const char *add[LABELS_MAX + 1];
    const char *take[LABELS_MAX + 1];
    struct tide_reader_task *task = self->task;
    if (deletes(changes))
        return tide_gmail_delete(task->user->gmail, task->job, ids, count, err);
    (void)texts_of(json_object_get(changes, "add"), add);
    (void)texts_of(json_object_get(changes, "take"), take);
    const tide_status rc =
        tide_gmail_modify(task->user->gmail, task->job, ids, count, add, take, err);
    /* One that is gone has no labels any more; the next poll says so. */
    return rc == TIDE_GONE ? TIDE_OK : rc;
}

/* How many calls of this action were made before an interruption: a job that began anew each time would
 * spend the units for its last call on its first one, forever. */
static size_t done_before(const struct uploading *self)
{
    const json_t *made = self->task->batch;
    return (uint64_t)json_integer_value(json_object_get(made, "action")) == self->action.id
               ? (size_t)json_integer_value(json_object_get(made, "calls"))
               : 0;
}

static tide_status done_note(struct uploading *self, size_t calls, tide_error *err)
{
    return tide_reader_batch_set(
        self->task,
        json_pack("{s:I, s:I}", "action", (json_int_t)self->action.id, "calls", (json_int_t)calls),
        err);
}

/* ---- the base ---- */

static tide_status base_labels(struct uploading *self, tide_text id, const json_t *labels,
                               bool added, tide_error *err)
{
    size_t at = 0;
    const json_t *one = NULL;
    json_array_foreach(labels, at, one)
    {
        const tide_text label = {json_string_value(one), json_string_length(one)};
        TIDE_TRY(tide_cache_label(self->task->cache, id, label, added, TIDE_TEXT(""), err));
    }
    return TIDE_OK;
}

static tide_status base_one(struct uploading *self, tide_text id, const json_t *changes,
                            tide_error *err)
{
    const tide_status rc = tide_reader_shadow(self->task->cache, self->task->archive, id, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK
                                    : rc; /* its cache vanished: it comes with its labels */
    if (deletes(changes))
        return tide_cache_gone(self->task->cache, id, err);
    TIDE_TRY(base_labels(self, id, json_object_get(changes, "take"), false, err));
    return base_labels(self, id, json_object_get(changes, "add"), true, err);
}

static tide_status base_write(struct uploading *self, const json_t *changes, const tide_text *ids,
                              size_t count, tide_error *err)
{
    tide_status rc = tide_cache_begin(self->task->cache, err);
    if (rc != TIDE_OK)
        return rc;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = base_one(self, ids[i], changes, err);
    return tide_cache_end(self->task->cache, rc, err);
}

/* ---- both ---- */

/* The messages that have the same changes. */
static tide_status group_up(struct uploading *self, const json_t *changes, tide_text *ids,
                            tide_error *err)
{
    const size_t count = same(self, changes, ids);
    const tide_status rc = call_for(self, changes, ids, count, err);
    self->refused = rc == TIDE_PERMANENT || rc == TIDE_INVALID;
    return rc == TIDE_OK ? base_write(self, changes, ids, count, err) : rc;
}

static bool is_made(const struct uploading *self, const json_t *changes)
{
    for (size_t i = 0; i < json_array_size(self->made); i++)
        if (json_equal(json_array_get(self->made, i), changes))
            return true;
    return false;
}

static tide_status upload(struct uploading *self, tide_error *err)
{
    tide_mem *mem = self->task->reader->mem;
    tide_text *ids = tide_mem_array(mem, TIDE_ACTION_MESSAGES_MAX, sizeof *ids);
    tide_status rc = ids != NULL ? TIDE_OK : tide_error_set(err, TIDE_NO_MEMORY, "no memory");
    const size_t before = done_before(self);
    const char *id = NULL;
    json_t *changes = NULL;
    json_object_foreach(self->messages, id, changes)
    {
        if (rc != TIDE_OK || is_made(self, changes))
            continue;
        const bool again = json_array_size(self->made) < before;
        if (!again)
            rc = group_up(self, changes, ids, err);
        if (rc == TIDE_OK)
            (void)json_array_append(self->made, changes);
        if (rc == TIDE_OK && !again)
            rc = done_note(self, json_array_size(self->made), err);
    }
    tide_mem_free(mem, ids, TIDE_ACTION_MESSAGES_MAX * sizeof *ids);
    return rc;
}

/* ---- its end ---- */

/* Why it was refused.  Of one that was refused halfway: what was done, and what not. */
static void refused_say(struct uploading *self, const char *why)
{
    char left[120] = "";
    size_t left_count = 0;
    size_t named = 0;
    const char *id = NULL;
    const json_t *changes = NULL;
    json_object_foreach(self->messages, id, changes)
    {
        const size_t used = strlen(left);
        if (is_made(self, changes))
            continue;
        left_count++;
        if (used + strlen(id) + 2 > sizeof left)
            continue;
        (void)snprintf(left + used, sizeof left - used, " %s", id);
        named++;
    }
    const size_t count = json_object_size(self->messages);
    if (json_array_size(self->made) == 0)
        (void)snprintf(self->error, sizeof self->error, "%s", why);
    else
        (void)snprintf(self->error, sizeof self->error,
                       "%zu of %zu messages were changed, not%s%s: %.180s", count - left_count,
                       count, left, named < left_count ? " and others" : "", why);
}

/* KR3: with the action, what it had of the draft ends. */
static tide_status draft_end(const struct uploading *self, tide_transaction *transaction,
                             tide_error *err)
{
    const struct tide_reader_action *action = &self->action;
    const tide_rows db = tide_transaction_rows(transaction);
    if (self->state == TIDE_ACTION_DONE)
        return tide_draft_end(db, action->account, action->draft, err);
    const tide_status rc = tide_draft_send(db, action->account, action->draft, 0, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    return tide_reader_copy_quiet(self->task->reader, transaction, action->account, err);
}

static tide_status end_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct uploading *self = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    if (self->action.draft[0] != '\0')
        TIDE_TRY(draft_end(self, transaction, err));
    return tide_action_end(db, self->action.account, self->action.id, self->state, self->error,
                           tide_world_now_unix_ms(self->task->reader->options.world), err);
}

static tide_status one_up(struct uploading *self, tide_error *err)
{
    tide_error why = {TIDE_OK, 0, ""};
    const bool letter = self->action.draft[0] != '\0';
    self->refused = false;
    (void)json_array_clear(self->made);
    const tide_status rc =
        letter ? tide_reader_send_run(self->task, &self->action, &why) : upload(self, &why);
    if (letter)
        self->refused =
            rc == TIDE_PERMANENT || rc == TIDE_INVALID || rc == TIDE_GONE || rc == TIDE_FULL;
    self->state = TIDE_ACTION_DONE;
    self->error[0] = '\0';
    if (self->refused) {
        self->state = TIDE_ACTION_REFUSED; /* KR3 */
        refused_say(self, why.text);
    } else if (rc != TIDE_OK) {
        if (err != NULL)
            *err = why;
        return rc; /* it waits, and everything behind it: order is kept */
    }
    TIDE_TRY(tide_transact(self->task->reader->options.engine, end_write, self, err));
    return letter && self->state == TIDE_ACTION_DONE
               ? tide_reader_sent(self->task, &self->action, err)
               : TIDE_OK;
}

static tide_status actions_run(struct uploading *self, tide_error *err)
{
    tide_reader *reader = self->task->reader;
    self->hold_ms = tide_engine_setting_u64(reader->options.engine, self->task->user->account,
                                            TIDE_SET_READER_HOLD);
    for (;;) {
        self->now_ms = tide_world_now_unix_ms(reader->options.world);
        const tide_status rc = tide_transact(reader->options.engine, next_read, self, err);
        if (rc != TIDE_OK)
            return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
        if (self->action.due_ms > self->now_ms) {
            const struct tide_reader_job later = {.kind = TIDE_READER_ACTION,
                                                  .account = self->action.account,
                                                  .key = "later",
                                                  .delay_ms = self->action.due_ms - self->now_ms};
            return tide_reader_follow(reader, self->task->job, &later, err);
        }
        TIDE_TRY(one_up(self, err));
        if (tide_job_canceled(self->task->job))
            return tide_error_set(err, TIDE_CANCELED, "more urgent work came");
    }
}

tide_status tide_reader_action_run(tide_job *job, void *context, tide_error *err)
{
    struct tide_reader_task task;
    struct uploading self = {.task = &task, .messages = json_object(), .made = json_array()};
    tide_auto_buf what = tide_buf_heap(64);
    tide_status rc = tide_reader_task_begin(context, job, &task, err);
    if (rc == TIDE_OK)
        rc = tide_reader_key(job, "what", &what, err);
    if (rc == TIDE_OK)
        rc = what.bytes > 0 ? tide_reader_copies_run(&task, err) : actions_run(&self, err);
    json_decref(self.messages);
    json_decref(self.made);
    tide_reader_task_end(&task);
    return rc;
}
