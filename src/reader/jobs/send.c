/* send.c - a draft on its way (mail/outgoing/outgoing.h): sent once, or removed from the server.
 *
 * The state of the way is a column of the draft, kept in a transaction of its own before and after each
 * call: a job that is interrupted anywhere continues with it. */
#include "reader/drafts.h"
#include "reader/jobs/jobs.h"

#include "ledger/rows.h"
#include "mail/compose/compose.h"
#include "mail/outgoing/outgoing.h"

#include <string.h>

/* How long a call waits for its units before the job comes back later. */
enum { PATIENCE_MS = 2000 };

struct sending {
    struct tide_reader_task *task;
    const struct tide_reader_action *action;
    struct tide_reader_letter letter;
    tide_buf line; /* the state that is being kept */
};

static tide_status read_letter(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sending *self = arg;
    return tide_reader_letter_read(self->task->reader, tide_transaction_rows(transaction),
                                   self->action->account, self->action->draft, &self->letter, err);
}

static tide_status write_line(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sending *self = arg;
    return tide_draft_outgoing(tide_transaction_rows(transaction), self->action->account,
                               self->action->draft, tide_buf_text(&self->line), err);
}

static tide_status keep(void *arg, const struct tide_outgoing *state, tide_error *err)
{
    struct sending *self = arg;
    tide_buf_rest(&self->line);
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

static tide_status send_with(struct sending *self, tide_gmail *gmail, struct tide_outgoing *state,
                             tide_error *err)
{
    struct tide_reader_task *task = self->task;
    json_auto_t *form = NULL;
    tide_auto_buf message = tide_buf_in(task->reader->mem, TIDE_COMPOSE_BYTES_MAX);
    const bool sends = strcmp(self->action->what, TIDE_READER_SEND) == 0;
    TIDE_TRY(tide_json_parse_stored(tide_buf_text(&self->letter.json), &form, err));
    if (sends && state->stage != TIDE_OUTGOING_SENT)
        TIDE_TRY(tide_reader_letter_compose(task->reader, task->user, &self->letter,
                                            state->message_id, self->action->made_ms, true,
                                            &message, err));
    const struct tide_outgoing_call call = {.gmail = gmail,
                                            .job = task->job,
                                            .raw = tide_buf_text(&message),
                                            .thread_id = thread_of(form),
                                            .now_unix_ms =
                                                tide_world_now_unix_ms(task->reader->options.world),
                                            .keep = keep,
                                            .keep_arg = self};
    return sends ? tide_outgoing_send(&call, state, err) : tide_outgoing_discard(&call, state, err);
}

static tide_status run(struct sending *self, tide_error *err)
{
    struct tide_reader_task *task = self->task;
    struct tide_outgoing state;
    tide_gmail *gmail = NULL;
    tide_status rc = tide_transact(task->reader->options.engine, read_letter, self, err);
    if (rc == TIDE_NOT_FOUND) /* it cannot be sent any more */
        return tide_error_set(err, TIDE_INVALID, "there is no draft %s", self->action->draft);
    TIDE_TRY(rc);
    TIDE_TRY(tide_outgoing_read(tide_buf_text(&self->letter.outgoing), &state, err));
    TIDE_TRY(tide_gmail_open_patient(task->user->endpoint[0] == '\0' ? NULL : task->user->endpoint,
                                     task->user->tokens, PATIENCE_MS, task->reader->mem, &gmail,
                                     err));
    rc = send_with(self, gmail, &state, err);
    tide_gmail_close(gmail);
    return rc;
}

tide_status tide_reader_send_run(struct tide_reader_task *task,
                                 const struct tide_reader_action *action, tide_error *err)
{
    struct sending self = {.task = task,
                           .action = action,
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
    return tide_reader_follow(task->reader, task->job, &poll, err);
}
