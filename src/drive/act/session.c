#include "base/check.h"
#include "base/encode.h"
#include "drive/act/inside.h"

enum {
    SESSIONS_MAX = 4, /* in one run */
    SMALL_BYTES = 64 << 10,
    REFUSED_MAX = 2, /* with a tag; the next one goes without (D36) */
    STRONG_TEXT_BYTES = 2 * TIDE_DRIVE_STRONG_BYTES,
};

/* ---- what is saved: "SHA-256 URL", so that only the same bytes continue a session ---- */

static void strong_text(const struct tide_drive_content *content, char out[STRONG_TEXT_BYTES + 1])
{
    tide_hex(content->strong, sizeof content->strong, out);
    out[STRONG_TEXT_BYTES] = '\0';
}

static tide_status save(struct tide_drive_sending *s, tide_error *err)
{
    char strong[STRONG_TEXT_BYTES + 1];
    tide_auto_buf text = tide_buf_in(s->act->mem, TIDE_ONEDRIVE_LINK_BYTES_MAX + 100);
    strong_text(&s->plan->content, strong);
    if (tide_buf_print(&text, "%s %s", strong, tide_buf_cstr(&s->session.url)) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for an upload session");
    return s->act->save(s->act->arg, tide_buf_text(&text), err);
}

void tide_drive_upload_forget(const struct tide_drive_act *act)
{
    tide_auto_buf url = tide_buf_in(act->mem, TIDE_ONEDRIVE_LINK_BYTES_MAX);
    const size_t before = STRONG_TEXT_BYTES + 1;
    if (act->resume.bytes > before &&
        tide_buf_add(&url, act->resume.data + before, act->resume.bytes - before) == TIDE_OK)
        (void)tide_onedrive_session_cancel(act->onedrive, act->job, tide_buf_cstr(&url), NULL);
}

static bool is_saved(struct tide_drive_sending *s)
{
    char strong[STRONG_TEXT_BYTES + 1];
    const tide_text resume = s->act->resume;
    strong_text(&s->plan->content, strong);
    if (resume.bytes <= STRONG_TEXT_BYTES + 1 ||
        memcmp(resume.data, strong, STRONG_TEXT_BYTES) != 0)
        return false;
    tide_buf_clear(&s->session.url);
    return tide_buf_add(&s->session.url, resume.data + STRONG_TEXT_BYTES + 1,
                        resume.bytes - STRONG_TEXT_BYTES - 1) == TIDE_OK;
}

/* ---- the item ---- */

static tide_status read_item(struct tide_drive_sending *s, tide_error *err)
{
    const struct tide_drive_act *act = s->act;
    tide_onedrive_answer_done(&s->out->live);
    if (s->id[0] != '\0')
        return tide_onedrive_get(act->onedrive, act->job, act->drive, tide_text_of(s->id),
                                 &s->out->live, err);
    return tide_onedrive_get_at(act->onedrive, act->job, act->drive, s->plan->parent_id,
                                s->plan->name, &s->out->live, err);
}

static bool is_ours(const struct tide_drive_sending *s)
{
    return s->out->live.item.has_hash &&
           tide_drive_gate_content(&s->out->live.item, &s->plan->content, TIDE_TEXT(""));
}

tide_status tide_drive_session_look(struct tide_drive_sending *s, tide_error *err)
{
    TIDE_TRY(read_item(s, err));
    s->finished = is_ours(s);
    return TIDE_OK;
}

tide_status tide_drive_session_gate(struct tide_drive_sending *s, tide_error *err)
{
    if (s->id[0] == '\0')
        return TIDE_OK; /* a name that is taken is refused by the server (ODR2) */
    const tide_status rc = tide_drive_session_look(s, err);
    if (rc == TIDE_GONE)
        return tide_error_set(err, TIDE_SUPERSEDED, "the file is no longer online");
    if (rc != TIDE_OK || s->finished)
        return rc;
    if (!tide_drive_gate_content(&s->out->live.item, &s->replaces, s->plan->ctag))
        return tide_error_set(err, TIDE_SUPERSEDED, "the file changed online");
    return TIDE_OK;
}

/* ---- sessions ---- */

void tide_drive_session_drop(struct tide_drive_sending *s)
{
    if (s->session.url.bytes > 0)
        (void)tide_onedrive_session_cancel(s->act->onedrive, s->act->job,
                                           tide_buf_cstr(&s->session.url), NULL);
    tide_buf_clear(&s->session.url);
}

tide_status tide_drive_session_ask(struct tide_drive_sending *s, tide_error *err)
{
    struct tide_onedrive_sent sent = {.finished = false};
    TIDE_TRY(tide_onedrive_session_status(s->act->onedrive, s->act->job,
                                          tide_buf_cstr(&s->session.url), &sent, err));
    const bool known = sent.next_known && sent.next < s->plan->content.bytes;
    s->next = sent.next;
    tide_onedrive_sent_done(&sent);
    if (!known)
        return tide_error_set(err, TIDE_GONE, "the upload session expects nothing");
    return TIDE_OK;
}

/* Whoever has the name may be this upload, finished by an earlier run (D19, D38). */
static tide_status name_taken(struct tide_drive_sending *s, tide_error *err)
{
    const tide_error refusal = *err;
    if (tide_drive_session_look(s, err) == TIDE_OK && s->finished)
        return TIDE_OK;
    *err = refusal;
    return TIDE_EXISTS;
}

static tide_status create(struct tide_drive_sending *s, tide_error *err)
{
    const struct tide_onedrive_item *item = &s->out->live.item;
    const bool replaces = s->id[0] != '\0';
    s->blind = replaces && s->refused >= REFUSED_MAX;
    const struct tide_onedrive_target target = {
        .drive = s->act->drive,
        .id = tide_text_of(s->id),
        .parent = replaces ? TIDE_TEXT("") : s->plan->parent_id,
        .name = replaces ? TIDE_TEXT("") : s->plan->name,
        .if_match = !replaces || s->blind  ? TIDE_TEXT("")
                    : item->ctag.bytes > 0 ? item->ctag
                                           : item->etag,
    };
    return tide_onedrive_session_create(
        s->act->onedrive, s->act->job, &target, s->plan->content.bytes,
        tide_drive_time(s->act, s->plan->entry.mtime_ns / 1000000), &s->session, err);
}

tide_status tide_drive_session_begin(struct tide_drive_sending *s, tide_error *err)
{
    tide_status rc = TIDE_SUPERSEDED;
    while (rc == TIDE_SUPERSEDED) {
        if (s->sessions++ >= SESSIONS_MAX)
            return tide_error_set(err, TIDE_SERVER, "upload sessions end again and again");
        TIDE_TRY(tide_drive_session_gate(s, err));
        if (s->finished)
            return TIDE_OK;
        rc = create(s, err);
        s->refused += rc == TIDE_SUPERSEDED ? 1 : 0;
    }
    if (rc == TIDE_EXISTS)
        return name_taken(s, err);
    if (rc == TIDE_GONE)
        return tide_error_set(err, TIDE_SUPERSEDED, "the folder or file is no longer online");
    if (rc != TIDE_OK)
        return rc;
    s->next = 0;
    return save(s, err); /* F8: before its first byte */
}

tide_status tide_drive_session_find(struct tide_drive_sending *s, tide_error *err)
{
    if (!is_saved(s))
        return tide_drive_session_begin(s, err);
    s->blind = s->id[0] != '\0'; /* whether it has a tag is not known any more */
    /* Its few bytes sent again are cheaper than the question where it stands: a job that waits for
     * quota comes back often. */
    if (s->plan->content.bytes <= SMALL_BYTES)
        return TIDE_OK;
    tide_status rc = tide_drive_session_ask(s, err);
    if (rc != TIDE_GONE)
        return rc;
    /* It ended, perhaps because it was finished (D38). */
    rc = tide_drive_session_look(s, err);
    if (rc != TIDE_OK && rc != TIDE_GONE)
        return rc;
    return s->finished ? TIDE_OK : tide_drive_session_begin(s, err);
}
