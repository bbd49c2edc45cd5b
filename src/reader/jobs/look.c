/* look.c - what became of our drafts at Gmail, where a person sends, deletes and changes them too (K9, K14).
 *
 * The base tells which message of a draft is gone, so a look that was interrupted misses nothing; where a
 * history begins, every draft is asked for.  Gmail is asked what has the draft now.  Only a draft that is
 * copied and was not changed since follows it (reader/drafts.h DRF10); one that was changed is copied, and
 * that finds out by itself.
 *
 * A poll asks for LOOKS_MAX drafts and the next one goes on behind them, by id: those that stay as they are
 * hold up no others.  One that Gmail has no answer for is asked for at the next poll, and if there is none
 * again, every MISSED_MS: what fails for good costs little, and its state says so whatever ends meanwhile. */
#include "reader/drafts.h"
#include "reader/jobs/jobs.h"

#include "base/check.h"
#include "cloud/gmail_drafts.h"
#include "ledger/rows.h"
#include "mail/outgoing/outgoing.h"

#include <stdio.h>
#include <string.h>

enum { LOOKS_MAX = 100 };       /* at once; the next poll continues */
enum { MISSED_MS = 5 * 60000 }; /* between two questions without an answer */

/* A draft that Gmail is asked about, as it was when it was read. */
struct looked {
    char id[TIDE_DRAFT_ID_BYTES];
    uint64_t changed_ms;
    struct tide_outgoing state;
    bool left; /* its message is */
};

struct looking {
    struct tide_reader_task *task;
    tide_gmail *gmail;
    struct looked *list;
    size_t count;
    char place[TIDE_DRAFT_ID_BYTES]; /* behind this one */
    uint64_t now_ms;
    bool all; /* also those of which the base says nothing */

    /* Of one. */
    const struct looked *one;
    struct tide_reader_letter letter;
    struct tide_reader_taken taken;
    struct tide_outgoing state; /* what it becomes */
    struct tide_outgoing kept;  /* what it is, if it is the same */
    char refused_id[64];        /* what of it cannot be taken over; "" */
    uint64_t again_ms;          /* when it is asked for again without news; 0 */
    bool same;                  /* it is as it was read */
    bool other;                 /* another draft here has the message */
};

/* ---- which ---- */

static bool is_copied(const struct tide_draft *draft, struct tide_outgoing *state)
{
    return draft->sending == 0 && draft->changed_ms == draft->copied_ms &&
           draft->outgoing.bytes > 0 &&
           tide_outgoing_read(draft->outgoing, state, NULL) == TIDE_OK &&
           (state->stage == TIDE_OUTGOING_TAKEN || state->stage == TIDE_OUTGOING_DRAFT);
}

/* A clock that was set back keeps nobody waiting. */
static bool waits(const struct looking *self, const struct tide_outgoing *state)
{
    return state->again_unix_ms > self->now_ms && state->again_unix_ms - self->now_ms <= MISSED_MS;
}

/* What has it there was refused here, and the base knows that it has it still. */
static bool is_settled(const struct looking *self, const struct tide_outgoing *state)
{
    bool known = false;
    return state->refused_id[0] != '\0' &&
           tide_reader_is_known(self->task, tide_text_of(state->refused_id), &known, NULL) ==
               TIDE_OK &&
           known && !tide_reader_draft_left(self->task->cache, state->refused_id);
}

static bool note(const struct tide_draft *draft, void *arg)
{
    struct looking *self = arg;
    struct looked *one = &self->list[self->count];
    const struct tide_outgoing *state = &one->state;
    if (!is_copied(draft, &one->state) || waits(self, state))
        return true;
    one->left = tide_reader_draft_left(self->task->cache, state->gmail_id);
    const bool news = one->left && !is_settled(self, state);
    if (!news && !self->all && state->stage != TIDE_OUTGOING_TAKEN && state->again_unix_ms == 0)
        return true;
    memcpy(one->id, draft->id, sizeof one->id);
    one->changed_ms = draft->changed_ms;
    self->count++;
    return self->count < LOOKS_MAX;
}

static tide_status read_list(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct looking *self = arg;
    self->count = 0;
    return tide_drafts_after(tide_transaction_rows(transaction), self->task->user->account,
                             self->place, note, self, err);
}

/* ---- what it becomes ---- */

static void same_note(const struct tide_draft *draft, void *arg)
{
    struct looking *self = arg;
    struct tide_outgoing state;
    const struct looked *one = self->one;
    if (strcmp(draft->id, one->id) == 0) {
        self->same = is_copied(draft, &state) && draft->changed_ms == one->changed_ms &&
                     state.stage == one->state.stage &&
                     strcmp(state.gmail_id, one->state.gmail_id) == 0;
        if (self->same)
            self->kept = state;
    } else if (draft->outgoing.bytes > 0 &&
               tide_outgoing_read(draft->outgoing, &state, NULL) == TIDE_OK)
        self->other = self->other || (state.gmail_id[0] != '\0' &&
                                      strcmp(state.gmail_id, self->state.gmail_id) == 0);
}

/* DRF10. */
static tide_status read_again(struct looking *self, tide_rows db, tide_error *err)
{
    self->same = self->other = false;
    return tide_drafts_each(db, self->task->user->account, same_note, self, err);
}

/* Its message is shown as what it is now, which the base knows. */
static tide_status end_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct looking *self = arg;
    const uint32_t account = self->task->user->account;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(read_again(self, db, err));
    if (!self->same)
        return TIDE_OK;
    TIDE_TRY(tide_reader_letter_read(self->task->reader, db, account, self->one->id, &self->letter,
                                     err));
    TIDE_TRY(tide_copy_unhide(db, account, self->one->state.gmail_id, err));
    return tide_draft_end(db, account, self->one->id, err);
}

/* Tells pages of a message that is shown otherwise now. */
static tide_status tell(const struct looking *self, const char *gmail_id, tide_error *err)
{
    tide_cache *cache = self->task->cache;
    TIDE_TRY(tide_cache_begin(cache, err));
    return tide_cache_end(cache, tide_cache_told(cache, tide_text_of(gmail_id), err), err);
}

/* It was sent or deleted there. */
static tide_status end(struct looking *self, tide_error *err)
{
    struct tide_reader_task *task = self->task;
    TIDE_TRY(tide_transact(task->reader->options.engine, end_write, self, err));
    if (!self->same)
        return TIDE_OK;
    TIDE_SEEN("reader: a draft was sent or deleted at Gmail");
    tide_reader_letter_files_remove(task->reader, task->user->email, self->letter.files);
    return tell(self, self->one->state.gmail_id, err);
}

static tide_status state_write(const struct looking *self, tide_rows db,
                               const struct tide_outgoing *state, tide_error *err)
{
    tide_auto_buf line = tide_buf_in(self->task->reader->mem, TIDE_OUTGOING_STATE_BYTES_MAX);
    TIDE_TRY(tide_outgoing_write(state, &line));
    return tide_draft_outgoing(db, self->task->user->account, self->one->id, tide_buf_text(&line),
                               err);
}

static tide_status name_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct looking *self = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(read_again(self, db, err));
    return self->same ? state_write(self, db, &self->state, err) : TIDE_OK;
}

static tide_status mark_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct looking *self = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(read_again(self, db, err));
    if (!self->same)
        return TIDE_OK;
    memcpy(self->kept.refused_id, self->refused_id, sizeof self->refused_id);
    self->kept.again_unix_ms = self->again_ms;
    return state_write(self, db, &self->kept, err);
}

/* What the next looks need to know of one that stays as it is. */
static tide_status mark(struct looking *self, tide_error *err)
{
    const struct tide_outgoing *state = &self->one->state;
    if (strcmp(self->refused_id, state->refused_id) == 0 && self->again_ms == state->again_unix_ms)
        return TIDE_OK;
    return tide_transact(self->task->reader->options.engine, mark_write, self, err);
}

static tide_status newer_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct looking *self = arg;
    const uint32_t account = self->task->user->account;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_draft draft = {.account = account};
    TIDE_TRY(read_again(self, db, err));
    self->same = self->same && !self->other;
    if (!self->same)
        return TIDE_OK;
    TIDE_TRY(tide_reader_letter_read(self->task->reader, db, account, self->one->id, &self->letter,
                                     err));
    TIDE_TRY(tide_copy_unhide(db, account, self->one->state.gmail_id, err));
    memcpy(draft.id, self->one->id, sizeof draft.id);
    return tide_reader_taken_put(self->task->reader, db, &draft, &self->taken, &self->state, err);
}

/* The draft has another message: it was changed there. */
static tide_status newer(struct looking *self, const struct tide_gmail_message *message,
                         tide_error *err)
{
    struct tide_reader_task *task = self->task;
    const char *email = task->user->email;
    TIDE_TRY(tide_reader_taken_read(task->reader, email, tide_buf_text(&message->raw),
                                    message->thread_id, &self->taken, err));
    self->state.formatted = self->taken.formatted;
    self->state.refused_id[0] = '\0';
    const tide_status rc = tide_transact(task->reader->options.engine, newer_write, self, err);
    if (rc == TIDE_OK && self->same)
        TIDE_SEEN("reader: a draft was changed at Gmail");
    if (rc != TIDE_UNKNOWN)
        tide_reader_letter_files_remove(task->reader, email,
                                        rc == TIDE_OK && self->same ? self->letter.files
                                                                    : self->taken.files);
    tide_reader_taken_done(&self->taken);
    return rc == TIDE_OK && self->same ? tell(self, self->state.gmail_id, err) : rc;
}

/* ---- asking ---- */

/* One that was begun at Gmail gets the id of its draft, before it is needed: a change there gives its message
 * another id. */
static tide_status ask_id(struct looking *self, tide_error *err)
{
    const struct looked *one = self->one;
    struct tide_gmail_draft draft;
    const tide_status rc = tide_gmail_draft_of(self->gmail, self->task->job,
                                               tide_text_of(one->state.gmail_id), &draft, err);
    if (rc ==
        TIDE_NOT_FOUND) /* a list may be behind; what the base says of the message is certain */
        return one->left ? end(self, err) : TIDE_OK;
    TIDE_TRY(rc);
    self->state.stage = TIDE_OUTGOING_DRAFT;
    memcpy(self->state.draft_id, draft.id, sizeof self->state.draft_id);
    memcpy(self->state.thread_id, draft.thread_id, sizeof self->state.thread_id);
    return tide_transact(self->task->reader->options.engine, name_write, self, err);
}

static tide_status fetch_newer(struct looking *self, tide_error *err)
{
    struct tide_gmail_message message;
    tide_gmail_message_init(&message, self->task->reader->mem);
    tide_status rc = tide_gmail_get(self->gmail, self->task->job,
                                    tide_text_of(self->state.gmail_id), &message, err);
    if (rc == TIDE_OK)
        rc = newer(self, &message, err);
    tide_gmail_message_done(&message);
    if (rc == TIDE_INVALID || rc == TIDE_FULL) { /* it would be so at every poll */
        TIDE_SEEN("reader: a change at Gmail cannot be taken over");
        memcpy(self->refused_id, self->state.gmail_id, sizeof self->refused_id);
    }
    return rc == TIDE_GONE ? TIDE_OK : rc; /* it was changed again */
}

static bool is_draft_there(const struct tide_gmail_message *message)
{
    size_t at = 0;
    const json_t *label = NULL;
    json_array_foreach(message->labels, at, label)
    {
        const char *id = json_string_value(label);
        if (id != NULL && strcmp(id, "DRAFT") == 0)
            return true;
    }
    return false;
}

/* Gmail says that there is no such draft.  One answer is no proof: its message has left, too, as the base
 * says or as Gmail does. */
static tide_status ask_whether_gone(struct looking *self, tide_error *err)
{
    struct tide_gmail_message message;
    if (self->one->left)
        return end(self, err);
    tide_gmail_message_init(&message, self->task->reader->mem);
    const tide_status rc = tide_gmail_get_minimal(
        self->gmail, self->task->job, tide_text_of(self->one->state.gmail_id), &message, err);
    const bool there = rc == TIDE_OK && is_draft_there(&message);
    tide_gmail_message_done(&message);
    if (rc != TIDE_OK && rc != TIDE_GONE)
        return rc;
    if (there)
        TIDE_SEEN("reader: a draft was denied, and its message is there");
    return there ? TIDE_OK : end(self, err);
}

static tide_status other_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    return read_again(arg, tide_transaction_rows(transaction), err);
}

static tide_status ask_message(struct looking *self, tide_error *err)
{
    struct tide_gmail_parts parts;
    const struct looked *one = self->one;
    tide_gmail_parts_init(&parts, self->task->reader->mem);
    const tide_status rc = tide_gmail_draft_get(self->gmail, self->task->job,
                                                tide_text_of(one->state.draft_id), &parts, err);
    if (rc == TIDE_GONE)
        return ask_whether_gone(self, err);
    TIDE_TRY(rc);
    struct tide_outgoing *state = &self->state;
    const bool fits = parts.message.id.bytes < sizeof state->gmail_id;
    (void)snprintf(state->gmail_id, sizeof state->gmail_id, "%.*s",
                   fits ? (int)parts.message.id.bytes : 0, parts.message.id.data);
    state->content = 0;
    tide_gmail_parts_done(&parts);
    if (!fits || strcmp(state->gmail_id, one->state.gmail_id) == 0)
        return TIDE_OK;
    TIDE_TRY(tide_transact(self->task->reader->options.engine, other_read, self, err));
    if (self->other)
        return end(self, err);
    return strcmp(state->gmail_id, one->state.refused_id) == 0 ? TIDE_OK : fetch_newer(self, err);
}

/* What Gmail refuses, or what cannot be continued here, stays as it is. */
static tide_status look_at(struct looking *self, const struct looked *one, tide_error *err)
{
    self->one = one;
    self->state = one->state;
    self->state.again_unix_ms = self->again_ms = 0;
    memcpy(self->refused_id, one->state.refused_id, sizeof self->refused_id);
    const tide_status rc =
        one->state.stage == TIDE_OUTGOING_TAKEN ? ask_id(self, err) : ask_message(self, err);
    tide_reader_letter_done(&self->letter);
    const bool refused = rc == TIDE_PERMANENT || rc == TIDE_INVALID || rc == TIDE_FULL;
    if (rc == TIDE_SERVER || (rc == TIDE_PERMANENT && one->left)) { /* it holds up no other */
        TIDE_SEEN("reader: Gmail had no answer for a draft");
        self->again_ms = self->now_ms + (one->state.again_unix_ms == 0 ? 0 : MISSED_MS);
    } else if (rc != TIDE_OK && rc != TIDE_EXISTS && !refused) {
        return rc;
    }
    return mark(self, err);
}

/* `done` of the list were asked for; a list that is not full ends the round. */
static tide_status place_write(const struct looking *self, size_t done, tide_error *err)
{
    tide_cache *cache = self->task->cache;
    const bool over = done == self->count && self->count < LOOKS_MAX;
    const char *last = done == 0 ? self->place : self->list[done - 1].id;
    const tide_text place = tide_text_of(over ? "" : last);
    const bool asked = over && self->all;
    if (!asked && tide_text_equal(place, tide_text_of(self->place)))
        return TIDE_OK;
    TIDE_TRY(tide_cache_begin(cache, err));
    tide_status rc = tide_cache_set(cache, TIDE_READER_DRAFTS_PLACE, place, err);
    if (rc == TIDE_OK && asked)
        rc = tide_cache_set_u64(cache, TIDE_READER_DRAFTS_ASKED, 1, err);
    return tide_cache_end(cache, rc, err);
}

static tide_status look_at_each(struct looking *self, size_t *done, tide_error *err)
{
    tide_status rc = TIDE_OK;
    if (self->count == 0)
        return TIDE_OK;
    TIDE_TRY(tide_reader_gmail_open(self->task, &self->gmail, err));
    while (*done < self->count && rc == TIDE_OK) {
        rc = look_at(self, &self->list[*done], err);
        *done += rc == TIDE_OK;
    }
    tide_gmail_close(self->gmail);
    return rc;
}

static tide_status look_all(struct looking *self, tide_error *err)
{
    uint64_t asked = 0;
    size_t done = 0;
    tide_cache *cache = self->task->cache;
    TIDE_TRY(tide_cache_get_u64(cache, TIDE_READER_DRAFTS_ASKED, &asked, err));
    TIDE_TRY(tide_cache_get(cache, TIDE_READER_DRAFTS_PLACE, self->place, sizeof self->place, err));
    self->all = asked == 0;
    self->now_ms = tide_world_now_unix_ms(self->task->reader->options.world);
    TIDE_TRY(tide_transact(self->task->reader->options.engine, read_list, self, err));
    const tide_status rc = look_at_each(self, &done, err);
    if (rc == TIDE_OK)
        return place_write(self, done, err);
    (void)place_write(self, done, NULL); /* an interrupted look goes on where it was */
    return rc;
}

tide_status tide_reader_drafts_look(struct tide_reader_task *task, tide_error *err)
{
    tide_mem *mem = task->reader->mem;
    struct looking self = {.task = task};
    self.list = tide_mem_array(mem, LOOKS_MAX, sizeof *self.list);
    if (self.list == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to look at drafts");
    const tide_status rc = look_all(&self, err);
    tide_mem_free(mem, self.list, LOOKS_MAX * sizeof *self.list);
    return rc;
}
