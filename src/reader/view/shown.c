#include "reader/view/view.h"

#include "reader/store/store.h"

#include <stdio.h>
#include <string.h>

void tide_shown_done(struct tide_reader_shown *shown)
{
    json_decref(shown->labels);
    tide_buf_done(&shown->from);
    tide_buf_done(&shown->to);
    tide_buf_done(&shown->subject);
    tide_buf_done(&shown->snippet);
    *shown = (struct tide_reader_shown){.labels = NULL};
}

/* ---- labels ---- */

static void label_add(tide_text label, void *arg)
{
    struct tide_reader_shown *shown = arg;
    char name[TIDE_LABEL_BYTES_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)label.bytes, label.data);
    (void)json_object_set_new(shown->labels, name, json_true());
}

static void overlay_add(tide_text label, bool added, void *arg)
{
    struct tide_reader_shown *shown = arg;
    char name[TIDE_LABEL_BYTES_MAX + 1];
    shown->pending = true;
    (void)snprintf(name, sizeof name, "%.*s", (int)label.bytes, label.data);
    if (added)
        (void)json_object_set_new(shown->labels, name, json_true());
    else
        (void)json_object_del(shown->labels, name);
}

/* ---- the base ---- */

struct finding {
    struct tide_reader_shown *shown;
    bool headers;
    int64_t row;
    tide_status rc;
};

static bool see_cached(const struct tide_cached *cached, void *arg)
{
    struct finding *finding = arg;
    struct tide_reader_shown *shown = finding->shown;
    memcpy(shown->id, cached->id, sizeof shown->id);
    memcpy(shown->thread, cached->thread, sizeof shown->thread);
    shown->internal_ms = cached->internal_ms;
    shown->bytes = cached->bytes;
    shown->gone = cached->gone;
    shown->cached_body = cached->body;
    shown->pinned = cached->pinned;
    shown->files = cached->files;
    finding->headers = cached->headers;
    finding->row = cached->row;
    finding->rc = tide_buf_add(&shown->from, cached->from.data, cached->from.bytes);
    if (finding->rc == TIDE_OK)
        finding->rc = tide_buf_add(&shown->to, cached->to.data, cached->to.bytes);
    if (finding->rc == TIDE_OK)
        finding->rc = tide_buf_add(&shown->subject, cached->subject.data, cached->subject.bytes);
    if (finding->rc == TIDE_OK)
        finding->rc = tide_buf_add(&shown->snippet, cached->snippet.data, cached->snippet.bytes);
    return false;
}

static void stored_label(const struct tide_label_row *label, void *arg)
{
    label_add(label->id, arg);
}

static tide_status stored_take(const struct tide_reader_mailbox *mailbox,
                               const struct tide_stored *stored, struct tide_reader_shown *shown,
                               tide_error *err)
{
    (void)snprintf(shown->id, sizeof shown->id, "%s", stored->gmail_id);
    (void)snprintf(shown->thread, sizeof shown->thread, "%s", stored->thread_id);
    shown->internal_ms = stored->internal_ms;
    shown->bytes = stored->bytes;
    shown->gone = stored->gone;
    return tide_archive_label_rows(mailbox->archive, stored, stored_label, shown, err);
}

static void head_take(const struct tide_head *head, void *arg)
{
    struct tide_reader_shown *shown = arg;
    (void)tide_buf_add(&shown->from, head->from.data, head->from.bytes);
    (void)tide_buf_add(&shown->to, head->to.data, head->to.bytes);
    (void)tide_buf_add(&shown->subject, head->subject.data, head->subject.bytes);
    shown->files = head->files > 0;
}

static tide_status read_base(const struct tide_reader_mailbox *mailbox, tide_text id, bool headers,
                             struct tide_reader_shown *shown, tide_error *err)
{
    struct finding finding = {.shown = shown};
    struct tide_stored stored;
    tide_status rc = TIDE_NOT_FOUND;
    const bool has = mailbox->archive != NULL &&
                     tide_archive_find(mailbox->archive, id, &stored, NULL) == TIDE_OK;
    shown->archived = has && (stored.copy == TIDE_COPY_EXACT || stored.copy == TIDE_COPY_HELD);
    if (mailbox->cache != NULL)
        rc = tide_cache_find(mailbox->cache, id, see_cached, &finding, err);
    if (rc == TIDE_OK)
        rc = finding.rc;
    if (rc == TIDE_OK)
        rc = tide_cache_labels_of(mailbox->cache, finding.row, label_add, shown, err);
    if (rc == TIDE_NOT_FOUND && has)
        rc = stored_take(mailbox, &stored, shown, err);
    if (rc == TIDE_OK && headers && !finding.headers && has)
        rc = tide_archive_head(mailbox->archive, &stored, head_take, shown, err);
    return rc == TIDE_NOT_FOUND
               ? tide_error_set(err, rc, "message %.*s is not known here", (int)id.bytes, id.data)
               : rc;
}

static tide_status read_all(const struct tide_reader_mailbox *mailbox, tide_text id, bool headers,
                            struct tide_reader_shown *shown, tide_error *err)
{
    *shown = (struct tide_reader_shown){.labels = json_object(),
                                        .from = tide_buf_in(mailbox->mem, 64 << 10),
                                        .to = tide_buf_in(mailbox->mem, 64 << 10),
                                        .subject = tide_buf_in(mailbox->mem, 64 << 10),
                                        .snippet = tide_buf_in(mailbox->mem, 64 << 10)};
    if (shown->labels == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a message");
    tide_status rc = read_base(mailbox, id, headers, shown, err);
    if (rc == TIDE_OK && mailbox->has_overlay)
        rc = tide_overlay_of(mailbox->db, mailbox->account, id, overlay_add, shown, err);
    if (rc == TIDE_OK && json_object_get(shown->labels, TIDE_OVERLAY_GONE) != NULL)
        shown->gone = true;
    return rc;
}

tide_status tide_shown_read(const struct tide_reader_mailbox *mailbox, tide_text id,
                            struct tide_reader_shown *shown, tide_error *err)
{
    return read_all(mailbox, id, true, shown, err);
}

tide_status tide_shown_labels(const struct tide_reader_mailbox *mailbox, tide_text id,
                              struct tide_reader_shown *shown, tide_error *err)
{
    return read_all(mailbox, id, false, shown, err);
}

/* ---- for display ---- */

void tide_shown_json(const struct tide_reader_shown *shown, tide_json *json)
{
    tide_json labels;
    const char *label = NULL;
    json_t *value = NULL;
    tide_json_array(&labels);
    json_object_foreach(shown->labels, label, value)
    {
        tide_json_append_cstr(&labels, label);
    }
    tide_json_set_cstr(json, "id", shown->id);
    tide_json_set_cstr(json, "thread", shown->thread);
    tide_json_set_i64(json, "internal_unix_ms", shown->internal_ms);
    tide_json_set_text(json, "from", tide_buf_text(&shown->from));
    tide_json_set_text(json, "to", tide_buf_text(&shown->to));
    tide_json_set_text(json, "subject", tide_buf_text(&shown->subject));
    tide_json_set_text(json, "snippet", tide_buf_text(&shown->snippet));
    tide_json_set(json, "labels", &labels);
    tide_json_set_bool(json, "unread", json_object_get(shown->labels, "UNREAD") != NULL);
    tide_json_set_bool(json, "starred", json_object_get(shown->labels, "STARRED") != NULL);
    tide_json_set_bool(json, "files", shown->files);
    tide_json_set_bool(json, "pinned", shown->pinned);
    tide_json_set_u64(json, "bytes", shown->bytes);
    tide_json_set_cstr(json, "body",
                       shown->archived      ? "archive"
                       : shown->cached_body ? "cache"
                                            : "none");
    tide_json_set_bool(json, "pending", shown->pending);
}
