/* send.c - a draft on its way (mail/outgoing/outgoing.h): copied to the server, sent once, or removed there.
 *
 * The state of the way is a column of the draft, kept in a transaction of its own before and after each
 * call: a job that is interrupted anywhere continues with it.  The same transaction hides the message that
 * the server has of it (store.h RDS6); when another one replaced it, the base learns that it is gone. */
#include "reader/drafts.h"
#include "reader/jobs/jobs.h"

#include "ledger/rows.h"
#include "mail/compose/compose.h"
#include "mail/outgoing/outgoing.h"

#include <string.h>

/* How long a call waits for its units before the job comes back later. */
enum { PATIENCE_MS = 2000 };

/* How long a second draft is looked for that a lost answer may have left behind. */
enum { DOUBLED_MS = 600000 };

struct sending {
    struct tide_reader_task *task;
    const struct tide_reader_action *action; /* NULL: it is copied */
    const char *draft;
    uint64_t revision; /* DRF5: the changed_ms of what is copied */
    tide_draft_mark mark;
    struct tide_reader_letter letter;
    tide_buf line; /* the state that is being kept */
    const struct tide_outgoing *state;
};

static tide_status read_letter(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sending *self = arg;
    return tide_reader_letter_read(self->task->reader, tide_transaction_rows(transaction),
                                   self->task->user->account, self->draft, &self->letter, err);
}

static tide_status write_line(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sending *self = arg;
    const struct tide_outgoing *state = self->state;
    const uint32_t account = self->task->user->account;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(tide_draft_outgoing(db, account, self->draft, tide_buf_text(&self->line), err));
    if (state->gmail_id[0] == '\0')
        return TIDE_OK;
    /* Gmail gives a sent message another id; where it does not, it is shown from now on. */
    return state->stage == TIDE_OUTGOING_SENT && strcmp(state->gmail_id, state->sent_id) == 0
               ? tide_copy_unhide(db, account, state->gmail_id, err)
               : tide_copy_hide(db, account, state->gmail_id, err);
}

static tide_status keep(void *arg, const struct tide_outgoing *state, tide_error *err)
{
    struct sending *self = arg;
    tide_buf_rest(&self->line);
    self->state = state;
    TIDE_TRY(tide_outgoing_write(state, &self->line));
    return tide_transact(self->task->reader->options.engine, write_line, self, err);
}

/* The thread that it answers; an id of the server's, or nothing. */
static tide_text thread_of(const json_t *form)
{
    const tide_text thread = tide_reader_text(form, "thread");
    for (size_t i = 0; i < thread.bytes; i++)
        if (strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_",
                   thread.data[i]) == NULL)
            return TIDE_TEXT("");
    return thread.bytes <= TIDE_GMAIL_ID_BYTES_MAX ? thread : TIDE_TEXT("");
}

static tide_status compose(const struct sending *self, const struct tide_outgoing *state,
                           tide_buf *message, tide_error *err)
{
    const struct tide_reader_task *task = self->task;
    const bool copied = self->action == NULL;
    return tide_reader_letter_compose(task->reader, task->user, &self->letter, state->message_id,
                                      copied ? self->letter.changed_ms : self->action->made_ms,
                                      copied ? TIDE_LETTER_COPIED : TIDE_LETTER_SENT, message, err);
}

static tide_status send_with(struct sending *self, tide_gmail *gmail, struct tide_outgoing *state,
                             tide_error *err)
{
    struct tide_reader_task *task = self->task;
    json_auto_t *form = NULL;
    tide_auto_buf message = tide_buf_in(task->reader->mem, TIDE_COMPOSE_BYTES_MAX);
    const bool copies = self->action == NULL;
    const bool sends = !copies && strcmp(self->action->what, TIDE_READER_SEND) == 0;
    TIDE_TRY(tide_json_parse_stored(tide_buf_text(&self->letter.json), &form, err));
    if (copies || (sends && state->stage != TIDE_OUTGOING_SENT))
        TIDE_TRY(compose(self, state, &message, err));
    const struct tide_outgoing_call call = {.gmail = gmail,
                                            .job = task->job,
                                            .raw = tide_buf_text(&message),
                                            .thread_id = thread_of(form),
                                            .now_unix_ms =
                                                tide_world_now_unix_ms(task->reader->options.world),
                                            .keep = keep,
                                            .keep_arg = self};
    if (copies)
        return tide_outgoing_save(&call, state, err);
    return sends ? tide_outgoing_send(&call, state, err) : tide_outgoing_discard(&call, state, err);
}

tide_status tide_reader_gmail_open(const struct tide_reader_task *task, tide_gmail **gmail_out,
                                   tide_error *err)
{
    return tide_gmail_open_patient(task->user->endpoint[0] == '\0' ? NULL : task->user->endpoint,
                                   task->user->tokens, PATIENCE_MS, task->reader->mem, gmail_out,
                                   err);
}

static tide_status with_gmail(struct sending *self, struct tide_outgoing *state, tide_error *err)
{
    tide_gmail *gmail = NULL;
    TIDE_TRY(tide_reader_gmail_open(self->task, &gmail, err));
    const tide_status rc = send_with(self, gmail, state, err);
    tide_gmail_close(gmail);
    return rc;
}

static tide_status run(struct sending *self, tide_error *err)
{
    struct tide_reader_task *task = self->task;
    struct tide_outgoing state;
    const tide_status rc = tide_transact(task->reader->options.engine, read_letter, self, err);
    if (rc == TIDE_NOT_FOUND) /* it cannot be sent any more */
        return tide_error_set(err, TIDE_INVALID, "there is no draft %s", self->action->draft);
    TIDE_TRY(rc);
    TIDE_TRY(tide_outgoing_read(tide_buf_text(&self->letter.outgoing), &state, err));
    return with_gmail(self, &state, err);
}

/* ---- the server's copies ---- */

struct tidying {
    struct tide_reader_task *task;
    json_t *old; /* ids of messages that are hidden, and no draft's: a set */
};

static void hidden_add(tide_text message, void *arg)
{
    const struct tidying *self = arg;
    (void)json_object_setn_new(self->old, message.data, message.bytes, json_true());
}

static void current_drop(const struct tide_draft *draft, void *arg)
{
    const struct tidying *self = arg;
    struct tide_outgoing state;
    if (draft->outgoing.bytes > 0 && tide_outgoing_read(draft->outgoing, &state, NULL) == TIDE_OK &&
        state.gmail_id[0] != '\0')
        (void)json_object_del(self->old, state.gmail_id);
}

static tide_status old_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct tidying *self = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    const uint32_t account = self->task->user->account;
    (void)json_object_clear(self->old);
    TIDE_TRY(tide_copies_each(db, account, hidden_add, self, err));
    return tide_drafts_each(db, account, current_drop, self, err);
}

static tide_status old_forget(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct tidying *self = arg;
    const char *id = NULL;
    json_t *value = NULL;
    json_object_foreach(self->old, id, value)
    {
        TIDE_TRY(tide_copy_unhide(tide_transaction_rows(transaction), self->task->user->account, id,
                                  err));
    }
    return TIDE_OK;
}

static tide_status old_gone(const struct tidying *self, tide_error *err)
{
    const char *id = NULL;
    json_t *value = NULL;
    TIDE_TRY(tide_cache_begin(self->task->cache, err));
    tide_status rc = TIDE_OK;
    json_object_foreach(self->old, id, value)
    {
        if (rc == TIDE_OK)
            rc = tide_cache_gone(self->task->cache, tide_text_of(id), err);
    }
    return tide_cache_end(self->task->cache, rc, err);
}

/* What a change, a sending or a removal took away at the server: first the base learns of it, then it is no
 * longer hidden. */
static tide_status copies_tidy(struct tide_reader_task *task, tide_error *err)
{
    tide_engine *engine = task->reader->options.engine;
    struct tidying self = {.task = task, .old = json_object()};
    tide_status rc = tide_transact(engine, old_read, &self, err);
    if (rc == TIDE_OK && json_object_size(self.old) > 0) {
        rc = old_gone(&self, err);
        if (rc == TIDE_OK)
            rc = tide_transact(engine, old_forget, &self, err);
    }
    json_decref(self.old);
    return rc;
}

static tide_status copy_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sending *self = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(read_letter(transaction, arg, err));
    self->revision = self->letter.changed_ms;
    return tide_reader_letter_name(self->task->reader, self->task->user, db, &self->letter, err);
}

static tide_status copy_mark(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct sending *self = arg;
    return tide_draft_is(tide_transaction_rows(transaction), self->task->user->account, self->draft,
                         self->mark, self->revision, err);
}

/* A second draft that a search does not know yet is looked for again. */
static tide_status doubled_later(struct sending *self, tide_error *err)
{
    tide_job *job = self->task->job;
    (void)tide_error_set(err, TIDE_AGAIN, "Gmail may have a second draft of a message");
    return tide_job_again(job, tide_job_now_ms(job) + TIDE_OUTGOING_LOOK_MS);
}

static tide_status copy(struct sending *self, tide_error *err)
{
    tide_engine *engine = self->task->reader->options.engine;
    struct tide_outgoing state;
    TIDE_TRY(tide_transact(engine, copy_read, self, err));
    if (self->letter.sending != 0)
        return TIDE_OK; /* DRF6 */
    TIDE_TRY(tide_outgoing_read(tide_buf_text(&self->letter.outgoing), &state, err));
    const tide_status rc = with_gmail(self, &state, err);
    const uint64_t now_ms = tide_world_now_unix_ms(self->task->reader->options.world);
    if (rc == TIDE_OK && state.doubled && now_ms - self->revision < DOUBLED_MS)
        return doubled_later(self, err);
    const bool refused =
        rc == TIDE_PERMANENT || rc == TIDE_INVALID || rc == TIDE_FULL || rc == TIDE_GONE;
    if (rc != TIDE_OK && !refused)
        return rc;
    self->mark = refused ? TIDE_DRAFT_REFUSED : TIDE_DRAFT_COPIED;
    return tide_transact(engine, copy_mark, self, err);
}

struct due_reading {
    struct tide_reader_task *task;
    uint64_t now_ms;
    struct tide_reader_due due;
};

static tide_status due_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct due_reading *self = arg;
    return tide_reader_copy_due(self->task->reader, tide_transaction_rows(transaction),
                                self->task->user->account, self->now_ms, &self->due, err);
}

/* One that vanished meanwhile was thrown away before the server heard of it (DRF7). */
static tide_status copy_one(struct tide_reader_task *task, const char *draft, tide_error *err)
{
    struct sending self = {.task = task,
                           .draft = draft,
                           .line = tide_buf_in(task->reader->mem, TIDE_OUTGOING_STATE_BYTES_MAX)};
    tide_status rc = copy(&self, err);
    if (rc == TIDE_NOT_FOUND &&
        tide_transact(task->reader->options.engine, read_letter, &self, NULL) == TIDE_NOT_FOUND)
        rc = TIDE_OK;
    tide_reader_letter_done(&self.letter);
    tide_buf_done(&self.line);
    return rc;
}

tide_status tide_reader_copies_run(struct tide_reader_task *task, tide_error *err)
{
    tide_reader *reader = task->reader;
    struct due_reading next = {.task = task};
    TIDE_TRY(tide_reader_drafts_look(task, err));
    for (;;) {
        next.now_ms = tide_world_now_unix_ms(reader->options.world);
        const tide_status rc = tide_transact(reader->options.engine, due_read, &next, err);
        if (rc == TIDE_NOT_FOUND)
            return copies_tidy(task, err);
        TIDE_TRY(rc);
        if (next.due.at_ms > next.now_ms)
            break;
        TIDE_TRY(copy_one(task, next.due.id, err));
        if (tide_job_canceled(task->job))
            return tide_error_set(err, TIDE_CANCELED, "more urgent work came");
    }
    const struct tide_reader_job later = {.kind = TIDE_READER_ACTION,
                                          .account = task->user->account,
                                          .field = "what",
                                          .key = TIDE_READER_COPY,
                                          .delay_ms = next.due.at_ms - next.now_ms};
    TIDE_TRY(copies_tidy(task, err));
    return tide_reader_follow(reader, task->job, &later, err);
}

/* ---- actions ---- */

tide_status tide_reader_send_run(struct tide_reader_task *task,
                                 const struct tide_reader_action *action, tide_error *err)
{
    struct sending self = {.task = task,
                           .action = action,
                           .draft = action->draft,
                           .line = tide_buf_in(task->reader->mem, TIDE_OUTGOING_STATE_BYTES_MAX)};
    const tide_status rc = run(&self, err);
    if (rc == TIDE_OK) { /* for tide_reader_sent(): its row goes before */
        json_decref(task->letter_files);
        task->letter_files = json_incref(self.letter.files);
    }
    tide_reader_letter_done(&self.letter);
    tide_buf_done(&self.line);
    return rc;
}

tide_status tide_reader_sent(struct tide_reader_task *task, const struct tide_reader_action *action,
                             tide_error *err)
{
    const struct tide_reader_job poll = {.kind = TIDE_READER_HEADERS,
                                         .account = action->account,
                                         .field = "folder",
                                         .key = TIDE_READER_POLL};
    tide_reader_letter_files_remove(task->reader, task->user->email, task->letter_files);
    json_decref(task->letter_files);
    task->letter_files = NULL;
    TIDE_TRY(copies_tidy(task, err));
    return tide_reader_follow(task->reader, task->job, &poll, err);
}
