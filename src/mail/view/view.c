#include "mail/view/view.h"
#include "mail/mime/charset.h"
#include "mail/mime/file_name.h"
#include "base/check.h"

enum { ARENA_BYTES_MAX = 512 << 20, LABEL_BYTES_MAX = 4 * TIDE_LABEL_BYTES_MAX };

/* ---- reading ---- */

struct label_list {
    struct tide_view *view;
    size_t capacity;
    tide_status rc;
};

static bool keep(tide_arena *arena, tide_text text, tide_text *kept_out)
{
    const char *copy = tide_arena_copy(arena, text.bytes == 0 ? "" : text.data, text.bytes);
    *kept_out = (tide_text){copy, text.bytes};
    return copy != NULL;
}

/* A label's name comes from the server or from a file: any bytes (VEW1). */
static bool keep_clean(struct tide_view *view, tide_text text, tide_text *kept_out)
{
    tide_buf clean;
    tide_buf_init(&clean, view->mem, LABEL_BYTES_MAX);
    const tide_status rc = tide_clean_add(text, TIDE_CLEAN_LINE, &clean);
    const bool kept = rc != TIDE_NO_MEMORY && keep(&view->arena, tide_buf_text(&clean), kept_out);
    tide_buf_done(&clean);
    return kept;
}

static void note_label(const struct tide_label_row *row, void *arg)
{
    struct label_list *list = arg;
    struct tide_view *view = list->view;
    if (list->rc != TIDE_OK || view->labels_count == TIDE_VIEW_LABELS_MAX)
        return;
    void *array = view->labels;
    struct tide_view_label label;
    if (!keep_clean(view, row->id, &label.id) ||
        !keep_clean(view, row->name.bytes > 0 ? row->name : row->id, &label.name) ||
        !keep_clean(view, row->type, &label.type) ||
        !tide_mem_grow(view->mem, &array, &list->capacity, view->labels_count + 1,
                       TIDE_VIEW_LABELS_MAX, sizeof label)) {
        list->rc = TIDE_NO_MEMORY;
        return;
    }
    view->labels = array;
    view->labels[view->labels_count++] = label;
}

/* In the arena, so that a view has one owner. */
static tide_status read_labels(struct tide_view *view, tide_archive *archive, tide_error *err)
{
    struct label_list list = {.view = view, .rc = TIDE_OK};
    tide_status rc = tide_archive_label_rows(archive, &view->stored, note_label, &list, err);
    struct tide_view_label *grown = view->labels;
    const size_t bytes = view->labels_count * sizeof grown[0];
    view->labels = NULL;
    if (rc == TIDE_OK && list.rc == TIDE_OK && bytes > 0) {
        view->labels = tide_arena_take(&view->arena, bytes);
        if (view->labels == NULL)
            list.rc = TIDE_NO_MEMORY;
        else
            memcpy(view->labels, grown, bytes);
    }
    tide_mem_free(view->mem, grown, list.capacity * sizeof grown[0]);
    if (rc == TIDE_OK && list.rc != TIDE_OK)
        rc = tide_error_set(err, list.rc, "no memory for the labels of a message");
    return rc;
}

tide_status tide_view_open(tide_archive *archive, const struct tide_stored *stored, tide_mem *mem,
                           struct tide_view *view, tide_error *err)
{
    memset(view, 0, sizeof *view);
    view->stored = *stored;
    view->copy = stored->copy;
    view->mem = mem;
    tide_buf_init(&view->raw, mem, TIDE_VIEW_RAW_BYTES_MAX);
    tide_arena_init(&view->arena, mem, ARENA_BYTES_MAX);
    tide_status rc = read_labels(view, archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_archive_raw(archive, stored, &view->raw, &view->why);
    if (rc == TIDE_CORRUPT) {
        view->copy = TIDE_COPY_DAMAGED;
        return TIDE_OK;
    }
    if (rc != TIDE_OK) {
        if (err != NULL)
            *err = view->why;
        return rc;
    }
    rc = tide_message_parse(tide_buf_text(&view->raw), &view->arena, &view->message);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory to read message %s", stored->gmail_id);
    view->readable = true;
    return TIDE_OK;
}

tide_status tide_view_take(const struct tide_stored *stored, tide_buf *raw, tide_mem *mem,
                           struct tide_view *view, tide_error *err)
{
    memset(view, 0, sizeof *view);
    view->stored = *stored;
    view->copy = stored->copy;
    view->mem = mem;
    view->raw = *raw;
    tide_buf_init(raw, mem, TIDE_VIEW_RAW_BYTES_MAX);
    tide_arena_init(&view->arena, mem, ARENA_BYTES_MAX);
    if (tide_message_parse(tide_buf_text(&view->raw), &view->arena, &view->message) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to read message %s",
                              stored->gmail_id);
    view->readable = true;
    return TIDE_OK;
}

void tide_view_done(struct tide_view *view)
{
    if (view->mem != NULL) {
        tide_buf_done(&view->raw);
        tide_arena_done(&view->arena);
    }
    memset(view, 0, sizeof *view);
}

/* ---- as JSON ---- */

static void set_labels(const struct tide_view *view, tide_json *json)
{
    tide_json list;
    tide_json_array(&list);
    for (size_t i = 0; i < view->labels_count; i++) {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_text(&one, "id", view->labels[i].id);
        tide_json_set_text(&one, "name", view->labels[i].name);
        tide_json_set_text(&one, "type", view->labels[i].type);
        tide_json_append(&list, &one);
    }
    tide_json_set(json, "labels", &list);
}

static void set_attachments(const struct tide_view *view, tide_json *json)
{
    tide_json list;
    tide_json_array(&list);
    for (size_t i = 0; i < view->message.attachments_count; i++) {
        const struct tide_attachment *attachment = &view->message.attachments[i];
        char name[TIDE_FILE_NAME_BYTES_MAX + 1];
        tide_json one;
        tide_file_name(attachment, i + 1, name);
        tide_json_object(&one);
        tide_json_set_u64(&one, "number", i + 1);
        tide_json_set_text(&one, "name", attachment->name);
        tide_json_set_cstr(&one, "file", name);
        tide_json_set_text(&one, "type", attachment->type);
        tide_json_set_u64(&one, "bytes",
                          tide_attachment_bytes(tide_buf_text(&view->raw), attachment));
        tide_json_set_bool(&one, "inline", attachment->inlined);
        tide_json_set_text(&one, "content_id", attachment->id);
        tide_json_append(&list, &one);
    }
    tide_json_set(json, "attachments", &list);
}

/* A text of the message; "" for one that could not be read. */
static void set_text(tide_json *json, const char *name, tide_text text)
{
    tide_json_set_text(json, name, text.data == NULL ? TIDE_TEXT("") : text);
}

static void set_headers(const struct tide_message *message, tide_json *json)
{
    set_text(json, "from", message->from);
    set_text(json, "to", message->to);
    set_text(json, "cc", message->cc);
    set_text(json, "bcc", message->bcc);
    set_text(json, "reply_to", message->reply_to);
    set_text(json, "subject", message->subject);
    set_text(json, "message_id", message->message_id);
    set_text(json, "in_reply_to", message->in_reply_to);
    set_text(json, "references", message->references);
    set_text(json, "list_id", message->list_id);
    if (message->has_date)
        tide_json_set_i64(json, "date_unix_ms", message->date_ms);
    else
        tide_json_set_null(json, "date_unix_ms");
}

void tide_view_stored_json(const struct tide_stored *stored, tide_copy copy, tide_json *json)
{
    tide_json_set_cstr(json, "id", stored->gmail_id);
    tide_json_set_cstr(json, "thread", stored->thread_id);
    tide_json_set_i64(json, "internal_unix_ms", stored->internal_ms);
    tide_json_set_u64(json, "bytes", stored->bytes);
    tide_json_set_cstr(json, "copy", tide_copy_name(copy));
    tide_json_set_bool(json, "gone", stored->gone);
}

void tide_view_json(const struct tide_view *view, tide_json *json)
{
    const struct tide_message *message = &view->message;
    tide_view_stored_json(&view->stored, view->copy, json);
    set_labels(view, json);
    set_headers(message, json);
    tide_json_set_bool(json, "html", message->has_html);
    set_text(json, "text", message->text);
    set_attachments(view, json);
    tide_json_set_u64(json, "attachments_count", message->attachments_count);
    tide_json_set_cstr(json, "problem", view->readable ? message->problem : view->why.text);
}
