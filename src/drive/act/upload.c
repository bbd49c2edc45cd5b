#include "base/check.h"
#include "drive/act/inside.h"
#include "net/judge_graph.h"

#include <stdio.h>
#include <strings.h>

enum {
    STALLS_MAX = 3, /* answers in a row without progress */
    LOOK_MS = 2000, /* between two looks for a finished upload */
};

void tide_drive_uploaded_done(struct tide_drive_uploaded *uploaded)
{
    tide_onedrive_answer_done(&uploaded->live);
}

/* ---- bytes ---- */

/* Reads the fragment that begins at `next`, and hashes all bytes up to its end.  Bytes that were sent
 * before and are sent again are hashed again from the start: the hash is of what the server has. */
static tide_status fragment_read(struct tide_drive_sending *s, size_t count, tide_error *err)
{
    if (s->next < s->hashed || s->hashed == 0) {
        TIDE_TRY(tide_drive_hasher_begin(&s->hasher, err));
        s->hashed = 0;
    }
    while (s->hashed < s->next) { /* what an earlier run sent */
        const uint64_t left = s->next - s->hashed;
        const size_t part =
            left < TIDE_DRIVE_FRAGMENT_BYTES ? (size_t)left : TIDE_DRIVE_FRAGMENT_BYTES;
        TIDE_TRY(tide_folder_read_at(s->file, s->hashed, s->bytes, part, err));
        tide_drive_hasher_add(&s->hasher, s->bytes, part);
        s->hashed += part;
    }
    TIDE_TRY(tide_folder_read_at(s->file, s->next, s->bytes, count, err));
    tide_drive_hasher_add(&s->hasher, s->bytes, count);
    s->hashed += count;
    return TIDE_OK;
}

/* D39: all bytes, those of the last fragment included, are the planned ones. */
static tide_status check_all(struct tide_drive_sending *s, tide_error *err)
{
    struct tide_drive_content content;
    TIDE_TRY(tide_drive_hasher_end(&s->hasher, &content, err));
    s->hashed = 0; /* more cannot be added: a resent fragment begins anew */
    if (memcmp(content.strong, s->plan->content.strong, sizeof content.strong) != 0)
        return tide_error_set(err, TIDE_SUPERSEDED, "the file changed while it was uploaded");
    return s->blind ? tide_drive_session_gate(s, err) : TIDE_OK;
}

struct source {
    const char *bytes;
    size_t count, at;
};

static tide_status source_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct source *source = arg;
    const size_t left = source->count - source->at;
    *count_out = left < room ? left : room;
    memcpy(bytes, source->bytes + source->at, *count_out);
    source->at += *count_out;
    return TIDE_OK;
}

static void source_rewind(void *arg)
{
    struct source *source = arg;
    source->at = 0;
}

/* ---- fragments ---- */

static tide_status closes(const struct tide_drive_sending *s, tide_error *err)
{
    return s->act->closes == NULL || s->act->closes(s->act->arg)
               ? TIDE_OK
               : tide_error_set(err, TIDE_CANCELED, "the upload was canceled");
}

/* The fragment at `next`, if the file is still what was planned. */
static tide_status fragment_make(struct tide_drive_sending *s, size_t count, tide_error *err)
{
    TIDE_TRY(tide_drive_gate_entry(s->dir, s->plan->here, &s->plan->entry, err));
    TIDE_TRY(tide_drive_gate_disk(fragment_read(s, count, err), err));
    if (s->next + count < s->plan->content.bytes)
        return TIDE_OK;
    TIDE_TRY(check_all(s, err));
    return closes(s, err);
}

static tide_status fragment_send(struct tide_drive_sending *s, size_t count,
                                 struct tide_onedrive_sent *sent, tide_error *err)
{
    struct source source = {.bytes = s->bytes, .count = count};
    const struct tide_onedrive_fragment fragment = {
        .url = tide_buf_cstr(&s->session.url),
        .from = s->next,
        .bytes = count,
        .total = s->plan->content.bytes,
        .source = source_read,
        .rewind = source_rewind,
        .source_arg = &source,
    };
    s->out->sent_bytes += count;
    return tide_onedrive_fragment_put(s->act->onedrive, s->act->job, &fragment, sent, err);
}

/* D38: the session is gone, and so is its last answer.  New items are not found at once. */
static tide_status look_for_it(struct tide_drive_sending *s, tide_error *err)
{
    for (uint64_t waited_ms = 0;; waited_ms += LOOK_MS) {
        const tide_status rc = tide_drive_session_look(s, err);
        if (s->finished || (rc != TIDE_OK && rc != TIDE_GONE))
            return rc;
        if (waited_ms >= TIDE_DRIVE_LOOKED_UP_MS)
            return tide_error_set(err, TIDE_SUPERSEDED,
                                  "the upload ended, and its file is not online");
        TIDE_TRY(s->act->sleep(s->act->arg, LOOK_MS));
    }
}

/* The server took it. */
static tide_status fragment_taken(struct tide_drive_sending *s, struct tide_onedrive_sent *sent,
                                  tide_error *err)
{
    if (sent->finished && sent->answer.value != NULL) {
        tide_onedrive_answer_done(&s->out->live);
        s->out->live = sent->answer;
        sent->answer = (struct tide_onedrive_answer){.value = NULL};
        s->finished = true;
        return TIDE_OK;
    }
    if (sent->finished)
        return look_for_it(s, err);
    if (!sent->next_known)
        return tide_drive_session_ask(s, err);
    s->next = sent->next;
    return TIDE_OK;
}

/* What a refusal means (D36 to D38); TIDE_OK: continue. */
static tide_status fragment_refused(struct tide_drive_sending *s, tide_status rc, bool last,
                                    tide_error *err)
{
    const bool doubtful = rc == TIDE_UNKNOWN || rc == TIDE_TIMEOUT || (rc == TIDE_SERVER && last);
    if (tide_graph_reason_of(err) == TIDE_GRAPH_RANGE || doubtful) {
        const tide_status asked = tide_drive_session_ask(s, err);
        return asked == TIDE_GONE && last ? look_for_it(s, err) : asked;
    }
    if (rc == TIDE_GONE) {
        if (last && tide_drive_session_look(s, NULL) == TIDE_OK && s->finished)
            return TIDE_OK;
        return tide_drive_session_begin(s, err);
    }
    if (rc == TIDE_EXISTS || rc == TIDE_SUPERSEDED)
        tide_drive_session_drop(s);
    if (rc != TIDE_SUPERSEDED || s->id[0] == '\0')
        return rc;
    s->refused++; /* the tag moved; whether the content did, the next session sees (D36) */
    return tide_drive_session_begin(s, err);
}

static tide_status send_all(struct tide_drive_sending *s, tide_error *err)
{
    const uint64_t total = s->plan->content.bytes;
    unsigned stalls = 0;
    while (!s->finished) {
        const uint64_t from = s->next, left = total - s->next;
        const size_t count =
            left < TIDE_DRIVE_FRAGMENT_BYTES ? (size_t)left : TIDE_DRIVE_FRAGMENT_BYTES;
        tide_status rc = fragment_make(s, count, err);
        if (rc == TIDE_SUPERSEDED)
            tide_drive_session_drop(s); /* S7: it never becomes visible */
        if (rc != TIDE_OK || s->finished)
            return rc;
        struct tide_onedrive_sent sent = {.finished = false};
        rc = fragment_send(s, count, &sent, err);
        rc = rc == TIDE_OK ? fragment_taken(s, &sent, err)
                           : fragment_refused(s, rc, count == left, err);
        tide_onedrive_sent_done(&sent);
        if (rc != TIDE_OK)
            return rc == TIDE_GONE ? tide_error_set(err, TIDE_SERVER, "the upload session ended")
                                   : rc;
        if (s->next >= total)
            return tide_error_set(err, TIDE_SERVER, "the upload session expects too much");
        stalls = s->next > from ? 0 : stalls + 1;
        if (stalls > STALLS_MAX)
            return tide_error_set(err, TIDE_SERVER, "the upload session makes no progress");
        if (s->act->job != NULL)
            tide_job_beat(s->act->job, s->next);
    }
    return TIDE_OK;
}

/* ---- the end ---- */

/* Files that a business drive's server changes after an upload (D40). */
static bool may_be_rewritten(const struct tide_drive_sending *s)
{
    static const char *const endings[] = {
        ".docx", ".docm", ".xlsx", ".xlsm", ".xlsb", ".pptx", ".pptm", ".doc",  ".xls",  ".ppt",
        ".pdf",  ".html", ".htm",  ".jpg",  ".jpeg", ".png",  ".tif",  ".tiff", ".heic", ".gif"};
    const tide_text name = s->plan->here;
    for (size_t i = 0; s->plan->business && i < sizeof endings / sizeof endings[0]; i++) {
        const size_t bytes = strlen(endings[i]);
        if (name.bytes > bytes &&
            strncasecmp(name.data + name.bytes - bytes, endings[i], bytes) == 0)
            return true;
    }
    return false;
}

/* Whether OneDrive has what was sent; without a hash the size counts. */
static bool is_right(const struct tide_drive_sending *s)
{
    const struct tide_onedrive_item *item = &s->out->live.item;
    return item->has_size && item->size == s->plan->content.bytes &&
           (!item->has_hash ||
            memcmp(item->hash, s->plan->content.qxh, sizeof s->plan->content.qxh) == 0);
}

/* The next session replaces what this one made. */
static void replace_it(struct tide_drive_sending *s)
{
    const struct tide_onedrive_item *item = &s->out->live.item;
    (void)snprintf(s->id, sizeof s->id, "%.*s", (int)item->id.bytes, item->id.data);
    s->replaces = (struct tide_drive_content){.bytes = item->size, .has_qxh = item->has_hash};
    memcpy(s->replaces.qxh, item->hash, sizeof s->replaces.qxh);
    s->finished = false;
}

static tide_status send_file(struct tide_drive_sending *s, tide_error *err)
{
    TIDE_TRY(tide_drive_session_find(s, err));
    TIDE_TRY(send_all(s, err));
    if (!is_right(s) && !may_be_rewritten(s)) { /* once more (D40) */
        replace_it(s);
        TIDE_TRY(tide_drive_session_begin(s, err));
        TIDE_TRY(send_all(s, err));
        if (!is_right(s))
            return tide_error_set(err, TIDE_PERMANENT,
                                  "OneDrive has other bytes than those that were sent, twice");
    }
    s->out->rewritten = !is_right(s);
    return TIDE_OK;
}

/* D36: a session cannot carry nothing. */
static tide_status send_empty(struct tide_drive_sending *s, tide_error *err)
{
    const struct tide_drive_act *act = s->act;
    const bool replaces = s->id[0] != '\0';
    struct tide_onedrive_answer answer = {.value = NULL};
    TIDE_TRY(tide_drive_session_gate(s, err));
    TIDE_TRY(closes(s, err));
    const struct tide_onedrive_item *item = &s->out->live.item;
    const struct tide_onedrive_target target = {
        .drive = act->drive,
        .id = tide_text_of(s->id),
        .parent = replaces ? TIDE_TEXT("") : s->plan->parent_id,
        .name = replaces ? TIDE_TEXT("") : s->plan->name,
        .if_match = replaces ? item->ctag : TIDE_TEXT(""),
    };
    tide_status rc = tide_onedrive_put_empty(act->onedrive, act->job, &target, &answer, err);
    if (rc == TIDE_EXISTS && tide_drive_session_look(s, NULL) == TIDE_OK &&
        s->out->live.item.has_size && s->out->live.item.size == 0)
        return TIDE_OK; /* an earlier run made it */
    if (rc == TIDE_GONE)
        rc = tide_error_set(err, TIDE_SUPERSEDED, "the folder or file is no longer online");
    if (rc != TIDE_OK)
        return rc;
    tide_onedrive_answer_done(&s->out->live);
    s->out->live = answer;
    /* Without its time the file is there all the same. */
    const struct tide_onedrive_update update = {
        .modified_unix_ms = tide_drive_time(act, s->plan->entry.mtime_ns / 1000000),
        .if_match = answer.item.etag};
    struct tide_onedrive_answer timed = {.value = NULL};
    if (update.modified_unix_ms != 0 &&
        tide_onedrive_update(act->onedrive, act->job, act->drive, answer.item.id, &update, &timed,
                             NULL) == TIDE_OK) {
        tide_onedrive_answer_done(&s->out->live);
        s->out->live = timed;
    }
    return TIDE_OK;
}

static tide_status run(struct tide_drive_sending *s, tide_error *err)
{
    const struct tide_drive_upload *plan = s->plan;
    TIDE_TRY(tide_drive_gate_entry(s->dir, plan->here, &plan->entry, err));
    if (plan->content.bytes == 0)
        return send_empty(s, err);
    TIDE_TRY(tide_drive_gate_disk(tide_folder_open_file(s->dir, plan->here, &s->file, err), err));
    return send_file(s, err);
}

tide_status tide_drive_upload(const struct tide_drive_act *act,
                              const struct tide_drive_upload *plan, struct tide_drive_uploaded *out,
                              tide_error *err)
{
    TIDE_ASSERT(plan->content.has_strong);
    TIDE_ASSERT(act->save != NULL);
    struct tide_drive_sending s = {
        .act = act, .plan = plan, .out = out, .dir = -1, .file = -1, .replaces = plan->replaces};
    tide_error own; /* the reason of a refusal is read from it */
    err = err != NULL ? err : &own;
    *out = (struct tide_drive_uploaded){.sent_bytes = 0};
    if (plan->id.bytes >= sizeof s.id)
        return tide_error_set(err, TIDE_INVALID, "the id of an item is too long");
    memcpy(s.id, plan->id.bytes > 0 ? plan->id.data : "", plan->id.bytes);
    TIDE_TRY(tide_drive_gate_enter(act, plan->folder, &s.dir, err));
    const uint64_t total = plan->content.bytes;
    const size_t room =
        total < TIDE_DRIVE_FRAGMENT_BYTES ? (size_t)total + 1 : TIDE_DRIVE_FRAGMENT_BYTES;
    s.bytes = tide_mem_new(act->mem, room);
    tide_onedrive_session_init(&s.session, act->mem);
    const tide_status rc = s.bytes == NULL
                               ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for an upload")
                               : run(&s, err);
    tide_onedrive_session_done(&s.session);
    tide_drive_hasher_done(&s.hasher);
    tide_mem_free(act->mem, s.bytes, room);
    tide_folder_close(s.file);
    tide_folder_close(s.dir);
    return rc;
}
