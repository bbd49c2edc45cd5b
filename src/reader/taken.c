/* taken.c - drafts that were begun in Gmail and are continued here (drafts.h DRF9 to DRF11). */
#include "reader/drafts.h"

#include "ledger/rows.h"
#include "mail/compose/mailbox.h"
#include "mail/compose/written.h"
#include "mail/mime/body.h"
#include "mail/mime/message.h"
#include "mail/outgoing/outgoing.h"
#include "reader/view/view.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { ARENA_BYTES_MAX = 128 << 20, RAW_BYTES_MAX = 64 << 20 };

void tide_reader_taken_done(struct tide_reader_taken *taken)
{
    tide_buf_done(&taken->json);
    json_decref(taken->files);
    *taken = (struct tide_reader_taken){.files = NULL};
}

/* ---- formatting ---- */

/* Elements that a plain text shows as well: what Gmail puts around each line. */
static bool is_plain_element(const char *name, size_t bytes)
{
    static const char *const plain[] = {"html", "head", "body", "meta", "div", "p", "br", "wbr"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strlen(plain[i]) == bytes && strncasecmp(plain[i], name, bytes) == 0)
            return true;
    return false;
}

/* Whether a tag at `at`, behind its "<", formats what is in it. */
static bool formats(tide_text html, size_t at)
{
    const size_t from = at + (html.data[at] == '/');
    size_t end = from;
    while (end < html.bytes && isalnum((unsigned char)html.data[end]))
        end++;
    if (end == from)
        return false; /* a comment, a declaration, or no tag */
    if (!is_plain_element(html.data + from, end - from))
        return true;
    for (; end < html.bytes && html.data[end] != '>'; end++)
        if (html.bytes - end > 5 && strncasecmp(html.data + end, "style", 5) == 0)
            return true;
    return false;
}

static bool is_formatted(tide_text html)
{
    for (size_t i = 0; i + 1 < html.bytes; i++)
        if (html.data[i] == '<' && formats(html, i + 1))
            return true;
    return false;
}

static bool formatted(const struct tide_body *body)
{
    for (size_t i = 0; i < body->count; i++)
        if (body->pieces[i].html && is_formatted(body->pieces[i].text))
            return true;
    return false;
}

/* ---- files ---- */

struct taking {
    tide_reader *reader;
    const char *email;
    tide_text raw;
    struct tide_reader_taken *taken;
};

static bool has_name(const json_t *files, const char *name)
{
    size_t at = 0;
    const json_t *one = NULL;
    json_array_foreach(files, at, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0)
            return true;
    }
    return false;
}

/* A name that no other file of the draft has: a name is what a file is taken out by. */
static void name_of(const struct tide_attachment *part, const json_t *files,
                    char name[TIDE_COMPOSE_FILE_NAME_BYTES_MAX + 1])
{
    const tide_text own = part->name.bytes > 0 ? part->name : TIDE_TEXT("attachment");
    const tide_text cut = tide_utf8_cut(own, TIDE_COMPOSE_FILE_NAME_BYTES_MAX - 8);
    char clean[TIDE_COMPOSE_FILE_NAME_BYTES_MAX + 1];
    (void)snprintf(clean, sizeof clean, "%.*s", (int)cut.bytes, cut.data);
    for (char *at = clean; *at != '\0'; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    (void)snprintf(name, TIDE_COMPOSE_FILE_NAME_BYTES_MAX + 1, "%s", clean);
    for (unsigned i = 2; has_name(files, name); i++)
        (void)snprintf(name, TIDE_COMPOSE_FILE_NAME_BYTES_MAX + 1, "%u %.240s", i, clean);
}

/* An attached message is attached as some bytes: parts of these types are not encoded. */
static tide_text type_of(const struct tide_attachment *part)
{
    return strncasecmp(part->type.data, "message/", 8) == 0 ||
                   strncasecmp(part->type.data, "multipart/", 10) == 0
               ? TIDE_TEXT("application/octet-stream")
               : part->type;
}

/* DRF1: the file before its row. */
static tide_status file_write(const struct taking *self, const struct tide_attachment *part,
                              tide_error *err)
{
    tide_world *world = self->reader->options.world;
    tide_auto_buf content = tide_buf_in(self->reader->mem, RAW_BYTES_MAX);
    char file[TIDE_DRAFT_FILE_BYTES], path[TIDE_DRAFT_PATH_BYTES];
    char name[TIDE_COMPOSE_FILE_NAME_BYTES_MAX + 1];
    if (json_array_size(self->taken->files) == TIDE_COMPOSE_FILES_MAX)
        return tide_error_set(err, TIDE_FULL, "a message has at most %d files",
                              TIDE_COMPOSE_FILES_MAX);
    (void)snprintf(file, sizeof file, "%016" PRIx64 "%016" PRIx64, tide_world_random_u64(world),
                   tide_world_random_u64(world));
    TIDE_TRY(tide_attachment_decode(self->raw, part, &content, err));
    if (!tide_draft_path(self->reader->archive_dir, self->email, "", path, sizeof path))
        return tide_error_set(err, TIDE_INVALID, "the path is too long");
    TIDE_TRY(tide_dir_make(world, path, err));
    (void)tide_draft_path(self->reader->archive_dir, self->email, file, path, sizeof path);
    TIDE_TRY(tide_file_replace(world, path, tide_buf_text(&content), 0600, err));
    const tide_text type = type_of(part);
    name_of(part, self->taken->files, name);
    (void)json_array_append_new(
        self->taken->files, json_pack("{s:s, s:s, s:s%, s:I}", "file", file, "name", name, "type",
                                      type.data, type.bytes, "bytes", (json_int_t)content.bytes));
    return TIDE_OK;
}

/* An attached message is one file: what is attached to it is in that. */
static tide_status files_write(const struct taking *self, const struct tide_message *message,
                               tide_error *err)
{
    uint64_t end = 0;
    for (size_t i = 0; i < message->attachments_count; i++) {
        const struct tide_attachment *part = &message->attachments[i];
        if (part->begin < end)
            continue;
        end = part->end;
        TIDE_TRY(file_write(self, part, err));
    }
    return TIDE_OK;
}

/* ---- the text ---- */

/* A text with a name is a file, also where a reader shows it. */
static bool is_listed(const struct tide_message *message, const struct tide_body_piece *piece)
{
    for (size_t i = 0; i < message->attachments_count; i++)
        if (message->attachments[i].begin == piece->begin)
            return true;
    return false;
}

static tide_status pieces_add(const struct tide_message *message, const struct tide_body *body,
                              tide_buf *out)
{
    for (size_t i = 0; i < body->count; i++) {
        const struct tide_body_piece *piece = &body->pieces[i];
        if (is_listed(message, piece))
            continue;
        if (out->bytes > 0 && out->data[out->bytes - 1] != '\n')
            TIDE_TRY(tide_buf_add(out, "\n", 1));
        TIDE_TRY(piece->html ? tide_html_text(piece->text, out)
                             : tide_buf_add(out, piece->text.data, piece->text.bytes));
    }
    return TIDE_OK;
}

/* The text without the line end that composing adds to a last line: what is saved unchanged stays the same
 * message.  After an empty line composing adds none. */
static tide_text typed(const tide_buf *buf)
{
    tide_text text = tide_buf_text(buf);
    const size_t bytes = text.bytes;
    if (bytes > 0 && text.data[bytes - 1] == '\n' && (bytes == 1 || text.data[bytes - 2] != '\n'))
        text.bytes--;
    return text;
}

static tide_status too_long(tide_status rc, tide_error *err)
{
    return rc == TIDE_FULL ? tide_error_set(err, rc, "a draft has at most %d bytes of text here",
                                            TIDE_DRAFT_BYTES_MAX)
                           : rc;
}

/* The plain text as it was typed.  Some programs leave it empty beside a page, which is read then. */
static tide_status text_take(const struct taking *self, const struct tide_message *message,
                             tide_arena *arena, tide_buf *out, tide_error *err)
{
    struct tide_body shown, plain;
    TIDE_TRY(tide_body_read(self->raw, arena, &shown));
    TIDE_TRY(tide_body_read_plain(self->raw, arena, &plain));
    const char *problem = plain.problem != NULL ? plain.problem : shown.problem;
    if (problem != NULL)
        return tide_error_set(err, TIDE_INVALID, "this draft cannot be continued here: %s",
                              problem);
    self->taken->formatted = formatted(&shown);
    tide_status rc = pieces_add(message, &plain, out);
    if (rc == TIDE_OK && tide_text_trimmed(tide_buf_text(out)).bytes == 0) {
        tide_buf_clear(out);
        rc = pieces_add(message, &shown, out);
    }
    return too_long(rc, err);
}

/* ---- the form ---- */

/* The form has one sender, and no other address for answers. */
static tide_status sender_check(const char *email, const struct tide_message *message,
                                tide_error *err)
{
    const tide_text from = tide_mailbox_first(message->from).address;
    if (message->from.bytes > 0 && !tide_mailbox_equal(from, tide_text_of(email)))
        return tide_error_set(err, TIDE_INVALID,
                              "this draft is from another address; continue it in Gmail");
    if (message->reply_to.bytes > 0)
        return tide_error_set(
            err, TIDE_INVALID,
            "this draft asks for answers to another address; continue it in Gmail");
    return TIDE_OK;
}

/* A thread of its own is where Gmail keeps it, whatever is named. */
static tide_status form_write(const struct taking *self, const struct tide_message *message,
                              tide_text text, tide_text thread, tide_error *err)
{
    tide_auto_json form;
    tide_json_object(&form);
    tide_json_set_text(&form, "to", message->to);
    tide_json_set_text(&form, "cc", message->cc);
    tide_json_set_text(&form, "bcc", message->bcc);
    tide_json_set_text(&form, "subject", message->subject);
    tide_json_set_text(&form, "text", text);
    tide_json_set_text(&form, "in_reply_to", message->in_reply_to);
    tide_json_set_text(&form, "references", message->references);
    tide_json_set_text(&form, "thread", message->in_reply_to.bytes > 0 ? thread : TIDE_TEXT(""));
    return too_long(tide_json_line(&form, &self->taken->json), err);
}

static tide_status parsed_take(const struct taking *self, tide_text thread, tide_arena *arena,
                               tide_error *err)
{
    struct tide_message message;
    TIDE_TRY(tide_message_parse(self->raw, arena, &message));
    if (message.parsed != TIDE_PARSED_WHOLE)
        return tide_error_set(err, TIDE_INVALID, "this draft cannot be continued here: %s",
                              message.problem == NULL ? "it is malformed" : message.problem);
    tide_auto_buf text = tide_buf_in(self->reader->mem, TIDE_DRAFT_BYTES_MAX);
    TIDE_TRY(sender_check(self->email, &message, err));
    TIDE_TRY(text_take(self, &message, arena, &text, err));
    TIDE_TRY(form_write(self, &message, typed(&text), thread, err));
    return files_write(self, &message, err);
}

tide_status tide_reader_taken_read(tide_reader *reader, const char *email, tide_text raw,
                                   tide_text thread, struct tide_reader_taken *taken,
                                   tide_error *err)
{
    tide_arena arena;
    const struct taking self = {reader, email, raw, taken};
    *taken = (struct tide_reader_taken){.json = tide_buf_in(reader->mem, TIDE_DRAFT_BYTES_MAX + 1),
                                        .files = json_array()};
    tide_arena_init(&arena, reader->mem, ARENA_BYTES_MAX);
    const tide_status rc = parsed_take(&self, thread, &arena, err);
    tide_arena_done(&arena);
    if (rc != TIDE_OK) {
        tide_reader_letter_files_remove(reader, email, taken->files);
        tide_reader_taken_done(taken);
    }
    return rc;
}

tide_status tide_reader_taken_put(tide_reader *reader, tide_rows db, struct tide_draft *draft,
                                  const struct tide_reader_taken *taken,
                                  const struct tide_outgoing *state, tide_error *err)
{
    tide_auto_buf line = tide_buf_in(reader->mem, TIDE_OUTGOING_STATE_BYTES_MAX);
    tide_auto_buf files = tide_buf_in(reader->mem, TIDE_DRAFT_FILES_BYTES);
    const tide_json list = {.value = taken->files};
    TIDE_TRY(tide_outgoing_write(state, &line));
    TIDE_TRY(tide_json_line(&list, &files));
    draft->json = tide_buf_text(&taken->json);
    draft->outgoing = tide_buf_text(&line);
    draft->files = tide_buf_text(&files);
    draft->changed_ms = tide_world_now_unix_ms(reader->options.world);
    TIDE_TRY(tide_draft_take(db, draft, err));
    return tide_copy_hide(db, draft->account, state->gmail_id, err);
}

/* ---- continuing ---- */

struct continuing {
    tide_reader *reader;
    struct tide_reader_user *user;
    struct tide_reader_mailbox mailbox;
    tide_text message;
    char thread[TIDE_CACHE_ID_BYTES];
    char own[TIDE_DRAFT_ID_BYTES];  /* the id that a draft of it gets */
    char id[TIDE_DRAFT_ID_BYTES];   /* the draft that is its already; "": none is */
    char near[TIDE_DRAFT_ID_BYTES]; /* one that was in the same thread, and how many are */
    unsigned near_count;
    bool here; /* its bytes are */
    struct tide_reader_taken taken;
};

/* Whether this may be another draft of the message, before a change at Gmail gave that a new id: it is in the
 * same thread, as it was copied, and its own message is gone. */
static bool is_near(const struct continuing *self, const struct tide_draft *draft,
                    const struct tide_outgoing *state)
{
    return draft->sending == 0 && draft->changed_ms == draft->copied_ms &&
           state->stage == TIDE_OUTGOING_DRAFT && state->gmail_id[0] != '\0' &&
           state->thread_id[0] != '\0' && strcmp(state->thread_id, self->thread) == 0 &&
           tide_reader_draft_left(self->mailbox.cache, state->gmail_id);
}

/* DRF9: the same draft, however often it is asked for. */
static void owner_note(const struct tide_draft *draft, void *arg)
{
    struct continuing *self = arg;
    struct tide_outgoing state = {.stage = TIDE_OUTGOING_NEW};
    const bool known =
        draft->outgoing.bytes > 0 && tide_outgoing_read(draft->outgoing, &state, NULL) == TIDE_OK;
    const bool has_it = known && state.stage < TIDE_OUTGOING_SENDING && state.gmail_id[0] != '\0' &&
                        tide_text_equal(tide_text_of(state.gmail_id), self->message);
    if (has_it || strcmp(draft->id, self->own) == 0) {
        (void)snprintf(self->id, sizeof self->id, "%s", draft->id);
    } else if (known && is_near(self, draft, &state)) {
        self->near_count++;
        (void)snprintf(self->near, sizeof self->near, "%s", draft->id);
    }
}

/* Of several in the thread nobody can say which one was changed. */
static tide_status find_owner(struct continuing *self, tide_error *err)
{
    self->id[0] = '\0';
    self->near_count = 0;
    TIDE_TRY(tide_drafts_each(self->mailbox.db, self->mailbox.account, owner_note, self, err));
    if (self->id[0] == '\0' && self->near_count == 1)
        memcpy(self->id, self->near, sizeof self->id);
    return TIDE_OK;
}

/* Which draft is its, and whether it can be continued. */
static tide_status look(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct continuing *self = arg;
    struct tide_reader_shown shown;
    self->mailbox.db = tide_transaction_rows(transaction);
    tide_status rc = tide_shown_labels(&self->mailbox, self->message, &shown, err);
    (void)snprintf(self->thread, sizeof self->thread, "%s", shown.thread);
    self->here = shown.archived || shown.cached_body;
    const bool gone = shown.gone || json_object_get(shown.labels, "TRASH") != NULL;
    const bool is_draft = json_object_get(shown.labels, "DRAFT") != NULL;
    tide_shown_done(&shown);
    if (rc == TIDE_OK)
        rc = find_owner(self, err);
    if (rc != TIDE_OK || self->id[0] != '\0')
        return rc;
    if (gone)
        return tide_error_set(err, TIDE_NOT_FOUND, "this draft is not in Gmail any more");
    return is_draft ? TIDE_OK : tide_error_set(err, TIDE_INVALID, "this message is not a draft");
}

static tide_status take(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct continuing *self = arg;
    struct tide_outgoing state;
    char message_id[TIDE_OUTGOING_ID_BYTES];
    struct tide_draft draft = {.account = self->mailbox.account};
    TIDE_TRY(look(transaction, arg, err));
    if (self->id[0] != '\0')
        return TIDE_OK; /* somebody was faster */
    tide_reader_message_id(self->reader, self->user, message_id);
    TIDE_TRY(tide_outgoing_take(&state, tide_text_of(message_id), self->message, err));
    state.formatted = self->taken.formatted;
    if (strlen(self->thread) < sizeof state.thread_id)
        memcpy(state.thread_id, self->thread, strlen(self->thread) + 1);
    memcpy(draft.id, self->own, sizeof draft.id);
    TIDE_TRY(tide_reader_taken_put(self->reader, tide_transaction_rows(transaction), &draft,
                                   &self->taken, &state, err));
    return tide_reader_copy_later(self->reader, transaction, draft.account, 0, err);
}

static tide_status raw_read(const struct continuing *self, tide_buf *raw, tide_error *err)
{
    struct tide_stored stored;
    if (tide_reader_archived(self->mailbox.archive, self->message, &stored))
        return tide_archive_raw(self->mailbox.archive, &stored, raw, err);
    return tide_cache_body_get(self->mailbox.cache, self->message, raw, err);
}

/* Pages that list it as a message look again. */
static tide_status tell(const struct continuing *self, tide_error *err)
{
    tide_cache *cache = self->mailbox.cache;
    TIDE_TRY(tide_cache_begin(cache, err));
    tide_status rc = tide_reader_shadow(cache, self->mailbox.archive, self->message, err);
    if (rc == TIDE_OK || rc == TIDE_NOT_FOUND)
        rc = tide_cache_told(cache, self->message, err);
    return tide_cache_end(cache, rc, err);
}

static tide_status take_here(struct continuing *self, tide_error *err)
{
    tide_engine *engine = self->reader->options.engine;
    const char *email = self->user->email;
    tide_auto_buf raw = tide_buf_in(self->reader->mem, RAW_BYTES_MAX);
    TIDE_TRY(raw_read(self, &raw, err));
    TIDE_TRY(tide_reader_taken_read(self->reader, email, tide_buf_text(&raw),
                                    tide_text_of(self->thread), &self->taken, err));
    const tide_status rc = tide_transact(engine, take, self, err);
    const bool used = rc == TIDE_UNKNOWN || (rc == TIDE_OK && self->id[0] == '\0');
    if (!used)
        tide_reader_letter_files_remove(self->reader, email, self->taken.files);
    if (rc == TIDE_OK && self->id[0] == '\0') {
        memcpy(self->id, self->own, sizeof self->id);
        (void)tell(self, NULL); /* what they show is told to them at the next change */
    }
    tide_reader_taken_done(&self->taken);
    return rc;
}

static tide_status continue_in(struct continuing *self, tide_error *err)
{
    TIDE_TRY(tide_transact(self->reader->options.engine, look, self, err));
    return self->id[0] != '\0' || !self->here ? TIDE_OK : take_here(self, err);
}

tide_status tide_reader_continue(tide_reader *reader, uint32_t account, const char *message,
                                 char id_out[TIDE_DRAFT_ID_BYTES], uint64_t *job_out,
                                 tide_error *err)
{
    struct continuing self = {
        .reader = reader,
        .mailbox = {.mem = reader->mem, .account = account, .has_overlay = true},
        .message = tide_text_of(message)};
    if ((size_t)snprintf(self.own, sizeof self.own, "gmail-%s", message) >= sizeof self.own ||
        !tide_draft_is_id(self.own))
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no message %.64s", message);
    TIDE_TRY(tide_reader_cache_take(reader, account, &self.user, &self.mailbox.cache, err));
    self.mailbox.archive = tide_reader_archive(reader, self.user);
    tide_status rc = continue_in(&self, err);
    if (self.mailbox.archive != NULL)
        tide_shelf_give(reader->shelf, self.mailbox.archive);
    tide_reader_cache_give(reader, self.user, self.mailbox.cache);
    *job_out = 0;
    if (rc == TIDE_OK && self.id[0] == '\0')
        rc = tide_reader_fetch(reader, account, message, job_out, err);
    if (rc == TIDE_OK)
        memcpy(id_out, self.id, sizeof self.id);
    return rc;
}

/* ---- what became of it at Gmail ---- */

void tide_reader_draft_told(tide_text outgoing, bool *formatted_out, bool *removed_out)
{
    struct tide_outgoing state = {.stage = TIDE_OUTGOING_NEW};
    if (outgoing.bytes > 0)
        (void)tide_outgoing_read(outgoing, &state, NULL);
    *formatted_out = state.formatted;
    *removed_out = state.removed;
}

struct leaving {
    bool draft, left;
};

static void label_note(tide_text label, void *arg)
{
    struct leaving *leaving = arg;
    leaving->draft = leaving->draft || tide_text_equal(label, TIDE_TEXT("DRAFT"));
    leaving->left = leaving->left || tide_text_equal(label, TIDE_TEXT("TRASH"));
}

static bool row_note(const struct tide_cached *cached, void *arg)
{
    struct tide_cached *copy = arg;
    copy->row = cached->row;
    copy->gone = cached->gone;
    return false;
}

bool tide_reader_draft_left(tide_cache *cache, const char *gmail_id)
{
    struct tide_cached row = {.row = 0};
    struct leaving leaving = {.draft = false};
    if (tide_cache_find(cache, tide_text_of(gmail_id), row_note, &row, NULL) != TIDE_OK)
        return false; /* nothing was said of it */
    if (row.gone)
        return true;
    return tide_cache_labels_of(cache, row.row, label_note, &leaving, NULL) == TIDE_OK &&
           (leaving.left || !leaving.draft);
}
