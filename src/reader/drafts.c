#include "reader/drafts.h"

#include "ledger/rows.h"
#include "mail/compose/written.h"
#include "mail/outgoing/outgoing.h"
#include "settings/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How long a file may wait for its row. */
enum { LOOSE_MS = 3600000 };

/* A draft that is uploaded in parts is copied when it is closed.  A page that vanished closes nothing: after
 * so many times `reader.quiet` nobody writes any more. */
enum { LARGE_QUIETS = 30 };

static bool is_one_of(char c, const char *also)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr(also, c) != NULL);
}

bool tide_draft_is_id(const char *id)
{
    const size_t bytes = strlen(id);
    for (size_t i = 0; i < bytes; i++)
        if (!is_one_of(id[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"))
            return false;
    return bytes > 0 && bytes < TIDE_DRAFT_ID_BYTES;
}

static bool is_file(const char *file)
{
    for (size_t i = 0; file[i] != '\0'; i++)
        if (!is_one_of(file[i], ""))
            return false;
    return strlen(file) == TIDE_DRAFT_FILE_BYTES - 1;
}

bool tide_draft_path(const char *archive_dir, const char *email, const char *file, char *out,
                     size_t out_bytes)
{
    return (size_t)snprintf(out, out_bytes, "%s/reader/%s%s%s", archive_dir, email,
                            file[0] == '\0' ? "" : "/", file) < out_bytes;
}

/* ---- rows ---- */

void tide_reader_letter_done(struct tide_reader_letter *letter)
{
    tide_buf_done(&letter->json);
    tide_buf_done(&letter->outgoing);
    json_decref(letter->files);
    *letter = (struct tide_reader_letter){.account = 0};
}

struct reading {
    struct tide_reader_letter *letter;
    tide_status rc;
    tide_error *err;
};

static void letter_take(const struct tide_draft *draft, void *arg)
{
    struct reading *reading = arg;
    struct tide_reader_letter *letter = reading->letter;
    letter->account = draft->account;
    letter->sending = draft->sending;
    letter->changed_ms = draft->changed_ms;
    memcpy(letter->id, draft->id, sizeof letter->id);
    reading->rc = tide_buf_add(&letter->json, draft->json.data, draft->json.bytes);
    if (reading->rc == TIDE_OK && draft->outgoing.bytes > 0)
        reading->rc = tide_buf_add(&letter->outgoing, draft->outgoing.data, draft->outgoing.bytes);
    if (reading->rc == TIDE_OK)
        reading->rc = tide_json_parse_stored(draft->files, &letter->files, reading->err);
}

tide_status tide_reader_letter_read(tide_reader *reader, tide_rows db, uint32_t account,
                                    const char *id, struct tide_reader_letter *letter,
                                    tide_error *err)
{
    struct reading reading = {letter, TIDE_OK, err};
    tide_reader_letter_done(letter);
    letter->json = tide_buf_in(reader->mem, TIDE_DRAFT_BYTES_MAX + 1);
    letter->outgoing = tide_buf_in(reader->mem, TIDE_OUTGOING_STATE_BYTES_MAX + 1);
    const tide_status rc = tide_draft_get(db, account, id, letter_take, &reading, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no draft %.64s", id);
    return rc == TIDE_OK ? reading.rc : rc;
}

/* ---- what is typed ---- */

static const char *const fields[] = {"to",   "cc",          "bcc",        "subject",
                                     "text", "in_reply_to", "references", "thread"};

static bool is_field(const char *name)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(fields[i], name) == 0)
            return true;
    return false;
}

/* Texts, and only those that a message is made from. */
static tide_status form_check(tide_text json, tide_error *err)
{
    json_auto_t *form = NULL;
    const char *name = NULL;
    json_t *value = NULL;
    if (json.bytes > TIDE_DRAFT_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "a draft has at most %d bytes", TIDE_DRAFT_BYTES_MAX);
    TIDE_TRY(tide_json_parse(json, &form, err));
    if (!json_is_object(form))
        return tide_error_set(err, TIDE_INVALID, "a draft is a JSON object");
    json_object_foreach(form, name, value)
    {
        if (!is_field(name) || !json_is_string(value))
            return tide_error_set(err, TIDE_INVALID, "a draft has no text \"%.40s\"", name);
    }
    return TIDE_OK;
}

struct putting {
    tide_reader *reader;
    struct tide_draft *draft;
    bool created;
};

static tide_status draft_put(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct putting *self = arg;
    TIDE_TRY(tide_draft_put(tide_transaction_rows(transaction), self->draft, &self->created, err));
    return tide_reader_copy_quiet(self->reader, transaction, self->draft->account, err);
}

tide_status tide_reader_draft_put(tide_reader *reader, struct tide_draft *draft, bool *created_out,
                                  tide_error *err)
{
    if (!tide_draft_is_id(draft->id))
        return tide_error_set(err, TIDE_INVALID,
                              "the id of a draft has 1 to 64 letters, digits, - and _");
    TIDE_TRY(form_check(draft->json, err));
    draft->changed_ms = tide_world_now_unix_ms(reader->options.world);
    struct putting self = {.reader = reader, .draft = draft};
    TIDE_TRY(tide_transact(reader->options.engine, draft_put, &self, err));
    *created_out = self.created;
    return TIDE_OK;
}

/* ---- what is attached ---- */

struct attaching {
    tide_reader *reader;
    uint32_t account;
    const char *id;
    const struct tide_draft_file *file; /* NULL: it is taken out */
    const char *name;
    struct tide_reader_letter letter;
    char before[TIDE_DRAFT_FILE_BYTES]; /* the file that had the name; "": none */
};

static void named_drop(struct attaching *self)
{
    json_t *list = self->letter.files;
    self->before[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *file = json_string_value(json_object_get(one, "file"));
        if (name == NULL || file == NULL || strcmp(name, self->name) != 0)
            continue;
        (void)snprintf(self->before, sizeof self->before, "%s", file);
        (void)json_array_remove(list, i);
        return;
    }
}

static tide_status attach(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct attaching *self = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    tide_auto_buf line = tide_buf_in(self->reader->mem, TIDE_DRAFT_FILES_BYTES);
    TIDE_TRY(
        tide_reader_letter_read(self->reader, db, self->account, self->id, &self->letter, err));
    named_drop(self);
    if (self->file != NULL) {
        if (json_array_size(self->letter.files) >= TIDE_COMPOSE_FILES_MAX)
            return tide_error_set(err, TIDE_FULL, "a message has at most %d files",
                                  TIDE_COMPOSE_FILES_MAX);
        (void)json_array_append_new(self->letter.files,
                                    json_pack("{s:s, s:s, s:s, s:I}", "file", self->file->file,
                                              "name", self->name, "type", self->file->type, "bytes",
                                              (json_int_t)self->file->bytes));
    }
    const tide_json json = {.value = self->letter.files};
    TIDE_TRY(tide_json_line(&json, &line));
    TIDE_TRY(tide_draft_files(db, self->account, self->id, tide_buf_text(&line),
                              tide_world_now_unix_ms(self->reader->options.world), err));
    return tide_reader_copy_quiet(self->reader, transaction, self->account, err);
}

static void file_remove(tide_reader *reader, const char *email, const char *file)
{
    char path[TIDE_DRAFT_PATH_BYTES];
    if (is_file(file) && tide_draft_path(reader->archive_dir, email, file, path, sizeof path))
        (void)tide_file_remove(reader->options.world, path, NULL); /* else DRF1 */
}

void tide_reader_letter_files_remove(tide_reader *reader, const char *email, const json_t *files)
{
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *file = json_string_value(json_object_get(json_array_get(files, i), "file"));
        if (file != NULL)
            file_remove(reader, email, file);
    }
}

struct finding {
    const char *file;
    bool found;
};

static void see_file(const char *name, void *arg)
{
    struct finding *finding = arg;
    finding->found = finding->found || strcmp(name, finding->file) == 0;
}

/* A sweep may have been faster. */
static tide_status file_check(tide_reader *reader, const char *email, const char *file,
                              tide_error *err)
{
    struct finding finding = {.file = file};
    char dir[TIDE_DRAFT_PATH_BYTES];
    if (tide_draft_path(reader->archive_dir, email, "", dir, sizeof dir))
        (void)tide_dir_list(reader->options.world, dir, see_file, &finding, NULL);
    return finding.found ? TIDE_OK
                         : tide_error_set(err, TIDE_NOT_FOUND,
                                          "the file is not there any more; attach it again");
}

static tide_status attach_run(struct attaching *self, tide_error *err)
{
    struct tide_reader_user *user = NULL;
    TIDE_TRY(tide_reader_user(self->reader, self->account, &user, err));
    tide_status rc =
        self->file == NULL ? TIDE_OK : file_check(self->reader, user->email, self->file->file, err);
    if (rc == TIDE_OK)
        rc = tide_transact(self->reader->options.engine, attach, self, err);
    if (rc == TIDE_OK && self->before[0] != '\0')
        file_remove(self->reader, user->email, self->before);
    else if (rc != TIDE_OK && self->file != NULL && rc != TIDE_UNKNOWN)
        file_remove(self->reader, user->email, self->file->file);
    tide_reader_letter_done(&self->letter);
    return rc;
}

tide_status tide_reader_attach(tide_reader *reader, uint32_t account, const char *id,
                               const struct tide_draft_file *file, tide_error *err)
{
    struct attaching self = {
        .reader = reader, .account = account, .id = id, .file = file, .name = file->name};
    const size_t bytes = strlen(file->name);
    if (!is_file(file->file))
        return tide_error_set(err, TIDE_INVALID, "this is not a file of a draft");
    if (bytes == 0 || bytes > TIDE_COMPOSE_FILE_NAME_BYTES_MAX ||
        tide_compose_has_control(tide_text_of(file->name)))
        return tide_error_set(err, TIDE_INVALID, "the name of a file has 1 to %d bytes on one line",
                              TIDE_COMPOSE_FILE_NAME_BYTES_MAX);
    return attach_run(&self, err);
}

tide_status tide_reader_detach(tide_reader *reader, uint32_t account, const char *id,
                               const char *name, bool *removed_out, tide_error *err)
{
    struct attaching self = {.reader = reader, .account = account, .id = id, .name = name};
    TIDE_TRY(attach_run(&self, err));
    *removed_out = self.before[0] != '\0';
    return TIDE_OK;
}

/* ---- the message ---- */

static tide_status files_read(tide_reader *reader, const char *email, const json_t *list,
                              struct tide_compose_file *files, tide_buf *contents, tide_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *file = json_string_value(json_object_get(one, "file"));
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *type = json_string_value(json_object_get(one, "type"));
        char path[TIDE_DRAFT_PATH_BYTES];
        if (file == NULL || name == NULL ||
            !tide_draft_path(reader->archive_dir, email, file, path, sizeof path))
            return tide_error_set(err, TIDE_INVALID, "the list of attachments is damaged");
        contents[i] = tide_buf_in(reader->mem, TIDE_COMPOSE_BYTES_MAX);
        const tide_status rc =
            tide_file_read(reader->options.world, path, TIDE_COMPOSE_BYTES_MAX, &contents[i], err);
        if (rc == TIDE_NOT_FOUND)
            return tide_error_set(err, TIDE_INVALID, "the attachment %.100s is missing", name);
        TIDE_TRY(rc);
        files[i] = (struct tide_compose_file){.name = tide_text_of(name),
                                              .type = tide_text_of(type == NULL ? "" : type),
                                              .bytes = tide_buf_text(&contents[i])};
    }
    return TIDE_OK;
}

tide_status tide_reader_letter_compose(tide_reader *reader, const struct tide_reader_user *user,
                                       const struct tide_reader_letter *letter,
                                       const char *message_id, uint64_t date_unix_ms,
                                       tide_letter_form form, tide_buf *out, tide_error *err)
{
    const size_t count = form != TIDE_LETTER_CHECKED ? json_array_size(letter->files) : 0;
    struct tide_compose_file list[TIDE_COMPOSE_FILES_MAX];
    tide_buf contents[TIDE_COMPOSE_FILES_MAX] = {{.data = NULL}};
    if (count > TIDE_COMPOSE_FILES_MAX)
        return tide_error_set(err, TIDE_FULL, "a message has at most %d files",
                              TIDE_COMPOSE_FILES_MAX);
    tide_status rc =
        count == 0 ? TIDE_OK : files_read(reader, user->email, letter->files, list, contents, err);
    const struct tide_written written = {.json = tide_buf_text(&letter->json),
                                         .from = {.address = tide_text_of(user->email)},
                                         .message_id = tide_text_of(message_id),
                                         .dated = true,
                                         .date_unix_ms = (int64_t)date_unix_ms,
                                         .files = list,
                                         .files_count = count,
                                         .sending = form != TIDE_LETTER_COPIED};
    if (rc == TIDE_OK)
        rc = tide_written_add(&written, out, err);
    for (size_t i = 0; i < count; i++)
        tide_buf_done(&contents[i]);
    return rc;
}

void tide_reader_message_id(tide_reader *reader, const struct tide_reader_user *user,
                            char id_out[TIDE_OUTGOING_ID_BYTES])
{
    tide_world *world = reader->options.world;
    const char *host = strrchr(user->email, '@');
    (void)snprintf(id_out, TIDE_OUTGOING_ID_BYTES, "%016" PRIx64 "%016" PRIx64 "%.200s",
                   tide_world_random_u64(world), tide_world_random_u64(world),
                   host == NULL ? "@localhost" : host);
}

tide_status tide_reader_letter_name(tide_reader *reader, const struct tide_reader_user *user,
                                    tide_rows db, struct tide_reader_letter *letter,
                                    tide_error *err)
{
    struct tide_outgoing state;
    char message_id[TIDE_OUTGOING_ID_BYTES];
    if (letter->outgoing.bytes > 0)
        return TIDE_OK;
    tide_reader_message_id(reader, user, message_id);
    TIDE_TRY(tide_outgoing_init(&state, tide_text_of(message_id), err));
    TIDE_TRY(tide_outgoing_write(&state, &letter->outgoing));
    return tide_draft_outgoing(db, letter->account, letter->id, tide_buf_text(&letter->outgoing),
                               err);
}

/* About how long the message is: files in base64 are a third longer. */
static uint64_t length_of(size_t json_bytes, const json_t *files)
{
    uint64_t bytes = json_bytes;
    for (size_t i = 0; i < json_array_size(files); i++)
        bytes += (uint64_t)json_integer_value(json_object_get(json_array_get(files, i), "bytes"));
    return bytes / 57 * 78;
}

/* ---- copying ---- */

tide_status tide_reader_copy_later(tide_reader *reader, tide_transaction *transaction,
                                   uint32_t account, uint64_t delay_ms, tide_error *err)
{
    const struct tide_spec spec = {.kind = reader->kinds[TIDE_READER_ACTION],
                                   .account = account,
                                   .dedupe = delay_ms > 0 ? TIDE_READER_COPY : "drafts now",
                                   .payload = "{\"what\":\"" TIDE_READER_COPY "\"}",
                                   .delay_ms = delay_ms};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static uint64_t quiet_of(const tide_reader *reader, uint32_t account)
{
    return tide_engine_setting_u64(reader->options.engine, account, TIDE_SET_READER_QUIET);
}

tide_status tide_reader_copy_quiet(tide_reader *reader, tide_transaction *transaction,
                                   uint32_t account, tide_error *err)
{
    return tide_reader_copy_later(reader, transaction, account, quiet_of(reader, account), err);
}

struct due_finding {
    uint64_t now_ms, quiet_ms;
    struct tide_reader_due *due;
};

/* After a clock was set back it was changed later than now; how long it has been quiet is not known. */
static uint64_t due_of(const struct tide_draft *draft, const struct due_finding *self)
{
    json_auto_t *files = NULL;
    if (draft->closed_ms == draft->changed_ms || draft->changed_ms > self->now_ms)
        return self->now_ms;
    (void)tide_json_parse_stored(draft->files, &files, NULL);
    const bool large = length_of(draft->json.bytes, files) > TIDE_OUTGOING_WHOLE_BYTES_MAX;
    return draft->changed_ms + self->quiet_ms * (large ? LARGE_QUIETS : 1);
}

static void due_take(const struct tide_draft *draft, void *arg)
{
    const struct due_finding *self = arg;
    if (draft->sending != 0 || draft->changed_ms == draft->copied_ms ||
        draft->changed_ms == draft->refused_ms)
        return; /* DRF6 */
    const uint64_t at_ms = due_of(draft, self);
    if (at_ms >= self->due->at_ms)
        return;
    self->due->at_ms = at_ms;
    memcpy(self->due->id, draft->id, sizeof self->due->id);
}

tide_status tide_reader_copy_due(tide_reader *reader, tide_rows db, uint32_t account,
                                 uint64_t now_ms, struct tide_reader_due *due_out, tide_error *err)
{
    struct tide_reader_due due = {.at_ms = UINT64_MAX};
    struct due_finding self = {
        .now_ms = now_ms, .quiet_ms = quiet_of(reader, account), .due = &due};
    TIDE_TRY(tide_drafts_each(db, account, due_take, &self, err));
    if (due.at_ms == UINT64_MAX)
        return tide_error_set(err, TIDE_NOT_FOUND, "every draft is at the server");
    *due_out = due;
    return TIDE_OK;
}

struct closing {
    tide_reader *reader;
    uint32_t account;
    const char *id;
    struct tide_reader_letter letter;
};

static tide_status close_draft(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct closing *self = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(
        tide_reader_letter_read(self->reader, db, self->account, self->id, &self->letter, err));
    TIDE_TRY(tide_draft_is(db, self->account, self->id, TIDE_DRAFT_CLOSED, self->letter.changed_ms,
                           err));
    return tide_reader_copy_later(self->reader, transaction, self->account, 0, err);
}

tide_status tide_reader_draft_close(tide_reader *reader, uint32_t account, const char *id,
                                    tide_error *err)
{
    struct closing self = {.reader = reader, .account = account, .id = id};
    if (!tide_draft_is_id(id))
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no draft %.64s", id);
    const tide_status rc = tide_transact(reader->options.engine, close_draft, &self, err);
    tide_reader_letter_done(&self.letter);
    return rc;
}

/* ---- sending ---- */

struct sending {
    tide_reader *reader;
    struct tide_reader_user *user;
    struct tide_reader_action *action;
    struct tide_reader_letter letter;
};

static tide_status size_check(const struct tide_reader_letter *letter, tide_error *err)
{
    return length_of(letter->json.bytes, letter->files) < TIDE_COMPOSE_BYTES_MAX - 4096
               ? TIDE_OK
               : tide_error_set(err, TIDE_FULL, "Gmail takes no message as large as this one");
}

static tide_status letter_check(struct sending *self, tide_error *err)
{
    tide_auto_buf message = tide_buf_in(self->reader->mem, TIDE_COMPOSE_BYTES_MAX);
    if (self->letter.sending != 0)
        return tide_error_set(err, TIDE_EXISTS, "the draft is being sent; undo that first");
    TIDE_TRY(size_check(&self->letter, err));
    return tide_reader_letter_compose(self->reader, self->user, &self->letter, "checked@localhost",
                                      self->action->made_ms, TIDE_LETTER_CHECKED, &message, err);
}

static tide_status send(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sending *self = arg;
    struct tide_reader_action *action = self->action;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(tide_reader_letter_read(self->reader, db, action->account, action->draft,
                                     &self->letter, err));
    TIDE_TRY(letter_check(self, err));
    TIDE_TRY(tide_reader_letter_name(self->reader, self->user, db, &self->letter, err));
    TIDE_TRY(tide_action_add(db, action, NULL, 0, err));
    TIDE_TRY(tide_draft_send(db, action->account, action->draft, action->id, err));
    return tide_reader_upload(self->reader, transaction, action, action->made_ms, err);
}

tide_status tide_reader_send(tide_reader *reader, struct tide_reader_user *user, const char *draft,
                             struct tide_reader_action *action, tide_error *err)
{
    struct sending self = {.reader = reader, .user = user, .action = action};
    if (!tide_draft_is_id(draft))
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no draft %.64s", draft);
    (void)snprintf(action->draft, sizeof action->draft, "%s", draft);
    const tide_status rc = tide_transact(reader->options.engine, send, &self, err);
    tide_reader_letter_done(&self.letter);
    return rc;
}

/* ---- throwing away ---- */

struct dropping {
    tide_reader *reader;
    uint32_t account;
    const char *id;
    struct tide_reader_letter letter;
    bool found, at_server;
};

/* The server may have it since it was to be sent: an action removes it there first. */
static tide_status discard(struct dropping *self, tide_transaction *transaction, tide_error *err)
{
    const tide_rows db = tide_transaction_rows(transaction);
    const uint64_t now_ms = tide_world_now_unix_ms(self->reader->options.world);
    struct tide_reader_action action = {
        .account = self->account, .made_ms = now_ms, .due_ms = now_ms};
    (void)snprintf(action.what, sizeof action.what, "%s", TIDE_READER_DISCARD);
    (void)snprintf(action.draft, sizeof action.draft, "%s", self->id);
    TIDE_TRY(tide_action_add(db, &action, NULL, 0, err));
    TIDE_TRY(tide_draft_send(db, self->account, self->id, action.id, err));
    return tide_reader_upload(self->reader, transaction, &action, now_ms, err);
}

static tide_status drop(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct dropping *self = arg;
    struct tide_outgoing state;
    const tide_rows db = tide_transaction_rows(transaction);
    const tide_status rc =
        tide_reader_letter_read(self->reader, db, self->account, self->id, &self->letter, NULL);
    self->found = rc == TIDE_OK;
    self->at_server = false;
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : tide_error_set(err, rc, "the draft cannot be read");
    self->at_server =
        self->letter.sending == 0 && self->letter.outgoing.bytes > 0 &&
        tide_outgoing_read(tide_buf_text(&self->letter.outgoing), &state, NULL) == TIDE_OK &&
        (state.stage != TIDE_OUTGOING_NEW || state.doubled);
    return self->at_server ? discard(self, transaction, err)
                           : tide_draft_drop(db, self->account, self->id, err);
}

tide_status tide_reader_draft_drop(tide_reader *reader, uint32_t account, const char *id,
                                   bool *removed_out, tide_error *err)
{
    struct dropping self = {.reader = reader, .account = account, .id = id};
    struct tide_reader_user *user = NULL;
    TIDE_TRY(tide_reader_user(reader, account, &user, err));
    const tide_status rc = tide_transact(reader->options.engine, drop, &self, err);
    if (rc == TIDE_OK && self.found && !self.at_server)
        tide_reader_letter_files_remove(reader, user->email, self.letter.files);
    tide_reader_letter_done(&self.letter);
    if (rc == TIDE_OK)
        *removed_out = self.found;
    return rc;
}

/* ---- files that no row lists ---- */

struct sweeping {
    tide_reader *reader;
    const char *email;
    uint32_t account;
    json_t *listed; /* names of files: a set */
    json_t *there;
};

static void listed_add(const struct tide_draft *draft, void *arg)
{
    struct sweeping *self = arg;
    json_auto_t *files = NULL;
    if (tide_json_parse_stored(draft->files, &files, NULL) != TIDE_OK)
        return;
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *file = json_string_value(json_object_get(json_array_get(files, i), "file"));
        if (file != NULL)
            (void)json_object_set_new(self->listed, file, json_true());
    }
}

static tide_status listed_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sweeping *self = arg;
    return tide_drafts_each(tide_transaction_rows(transaction), self->account, listed_add, self,
                            err);
}

static void there_add(const char *name, void *arg)
{
    struct sweeping *self = arg;
    if (is_file(name))
        (void)json_object_set_new(self->there, name, json_true());
}

static json_t *loose_take(tide_reader *reader, struct tide_reader_user *user, uint64_t *seen_ms)
{
    tide_lock_take(reader->options.world, reader->lock);
    json_t *loose = user->loose;
    user->loose = NULL;
    *seen_ms = user->loose_ms;
    tide_lock_drop(reader->options.world, reader->lock);
    return loose;
}

static void loose_give(tide_reader *reader, struct tide_reader_user *user, json_t *loose,
                       uint64_t seen_ms)
{
    tide_lock_take(reader->options.world, reader->lock);
    json_t *other = user->loose; /* of a sweep that ran beside this one */
    user->loose = loose;
    user->loose_ms = seen_ms;
    tide_lock_drop(reader->options.world, reader->lock);
    json_decref(other);
}

static tide_status loose_find(struct sweeping *self, tide_error *err)
{
    char dir[TIDE_DRAFT_PATH_BYTES];
    const char *file = NULL;
    json_t *value = NULL;
    if (!tide_draft_path(self->reader->archive_dir, self->email, "", dir, sizeof dir))
        return TIDE_OK;
    const tide_status rc = tide_dir_list(self->reader->options.world, dir, there_add, self, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    TIDE_TRY(tide_transact(self->reader->options.engine, listed_read, self, err));
    json_object_foreach(self->listed, file, value)
    {
        (void)json_object_del(self->there, file);
    }
    return TIDE_OK;
}

/* A file is written shortly before its row lists it.  So one that no row lists now is only noted; it is
 * abandoned if that is so an hour later. */
tide_status tide_reader_files_sweep(tide_reader *reader, uint32_t account, tide_error *err)
{
    struct tide_reader_user *user = NULL;
    uint64_t seen_ms = 0;
    const char *file = NULL;
    json_t *value = NULL;
    TIDE_TRY(tide_reader_user(reader, account, &user, err));
    const uint64_t now_ms = tide_world_now_ms(reader->options.world);
    struct sweeping self = {.reader = reader,
                            .email = user->email,
                            .account = account,
                            .listed = json_object(),
                            .there = json_object()};
    json_t *before = loose_take(reader, user, &seen_ms);
    const bool early = before != NULL && now_ms - seen_ms < LOOSE_MS;
    const tide_status rc = early ? TIDE_OK : loose_find(&self, err);
    json_object_foreach(self.there, file, value)
    {
        if (rc == TIDE_OK && json_object_get(before, file) != NULL)
            file_remove(reader, user->email, file);
    }
    loose_give(reader, user, json_incref(early ? before : self.there), early ? seen_ms : now_ms);
    json_decref(before);
    json_decref(self.listed);
    json_decref(self.there);
    return rc;
}
