#include "mail/outgoing/outgoing.h"

#include "base/check.h"
#include "base/hash.h"
#include "mail/compose/header.h"
#include "tidemark_inside.h"

#include <stdio.h>

enum {
    TRIES_MAX = 4,    /* of a step that the server undid */
    STANDING_MAX = 3, /* parts in a row after which the server has no more bytes than before */
    DOUBLES_MAX = 16,
};

tide_status tide_outgoing_init(struct tide_outgoing *state, tide_text message_id, tide_error *err)
{
    *state = (struct tide_outgoing){.stage = TIDE_OUTGOING_NEW};
    if (!tide_compose_is_id(message_id))
        return tide_error_set(err, TIDE_INVALID, "the id of a message is malformed");
    memcpy(state->message_id, message_id.data, message_id.bytes);
    return TIDE_OK;
}

tide_status tide_outgoing_take(struct tide_outgoing *state, tide_text message_id,
                               tide_text gmail_id, tide_error *err)
{
    TIDE_TRY(tide_outgoing_init(state, message_id, err));
    if (gmail_id.bytes == 0 || gmail_id.bytes >= sizeof state->gmail_id)
        return tide_error_set(err, TIDE_INVALID, "this is not the id of a message");
    memcpy(state->gmail_id, gmail_id.data, gmail_id.bytes);
    state->stage = TIDE_OUTGOING_TAKEN;
    return TIDE_OK;
}

/* ---- what all steps share ---- */

static tide_status keep(const struct tide_outgoing_call *call, const struct tide_outgoing *state,
                        tide_error *err)
{
    TIDE_ASSERT(state->message_id[0] != '\0');
    TIDE_ASSERT(state->stage < TIDE_OUTGOING_DRAFT || state->draft_id[0] != '\0' ||
                state->stage == TIDE_OUTGOING_SENT);
    TIDE_ASSERT(state->stage != TIDE_OUTGOING_TAKEN || state->gmail_id[0] != '\0');
    return call->keep(call->keep_arg, state, err);
}

/* Whether a call that ended so has certainly changed nothing: it was not sent, or it was
 * refused. */
static bool had_no_effect(tide_status rc)
{
    return rc == TIDE_AGAIN || rc == TIDE_NETWORK || rc == TIDE_INVALID || rc == TIDE_THROTTLED ||
           rc == TIDE_AUTH || rc == TIDE_PERMANENT || rc == TIDE_GONE;
}

/* The step did not happen: the state from before it.  The outcome stays `rc`; if this is not kept,
 * the state that is only says less than is known. */
static tide_status undo(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                        tide_outgoing_stage stage, tide_status rc)
{
    state->stage = stage;
    (void)keep(call, state, NULL);
    return rc;
}

static uint64_t content_of(tide_text raw)
{
    return tide_hash_key(raw); /* never 0 */
}

static tide_text thread_of(const struct tide_outgoing_call *call, const struct tide_outgoing *state)
{
    return state->loose ? TIDE_TEXT("") : call->thread_id;
}

static void bracketed(const struct tide_outgoing *state, char id_out[TIDE_OUTGOING_ID_BYTES + 2])
{
    (void)snprintf(id_out, TIDE_OUTGOING_ID_BYTES + 2, "<%s>", state->message_id);
}

/* The draft at the server is this one. */
static tide_status is_draft(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                            const struct tide_gmail_draft *draft, uint64_t content, tide_error *err)
{
    state->stage = TIDE_OUTGOING_DRAFT;
    (void)snprintf(state->draft_id, sizeof state->draft_id, "%s", draft->id);
    (void)snprintf(state->gmail_id, sizeof state->gmail_id, "%s", draft->message_id);
    (void)snprintf(state->thread_id, sizeof state->thread_id, "%s", draft->thread_id);
    state->doubt_unix_ms = 0;
    state->formatted = state->formatted && content == 0;
    state->content = content;
    state->session[0] = '\0';
    state->session_content = 0;
    return keep(call, state, err);
}

static void drop_draft(struct tide_outgoing *state)
{
    state->draft_id[0] = '\0';
    state->gmail_id[0] = '\0';
    state->content = 0;
}

/* OGM4: nothing was found.  TIDE_OK: that is believed by now; TIDE_AGAIN: it is looked for again. */
static tide_status settle(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                          const char *doubt, tide_error *err)
{
    if (state->doubt_unix_ms == 0 || state->doubt_unix_ms > call->now_unix_ms) {
        state->doubt_unix_ms = call->now_unix_ms;
        TIDE_TRY(keep(call, state, err));
    }
    if (call->now_unix_ms - state->doubt_unix_ms >= TIDE_OUTGOING_SETTLE_MS)
        return TIDE_OK;
    (void)tide_error_set(err, TIDE_AGAIN, "%s", doubt);
    return tide_job_again(call->job, tide_job_now_ms(call->job) + TIDE_OUTGOING_LOOK_MS);
}

/* ---- uploads ---- */

/* Sends the parts from `next` on. */
static tide_status send_parts(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                              struct tide_gmail_uploaded *uploaded, tide_error *err)
{
    const uint64_t total = call->raw.bytes;
    for (unsigned standing = 0; !uploaded->finished;) {
        const uint64_t from = uploaded->next;
        const uint64_t left = total - from;
        const size_t bytes =
            left < TIDE_OUTGOING_PART_BYTES ? (size_t)left : (size_t)TIDE_OUTGOING_PART_BYTES;
        const tide_text part = {call->raw.data + from, bytes};
        tide_job_beat(call->job, from);
        TIDE_TRY(tide_gmail_upload_put(call->gmail, call->job, state->session, part, from, total,
                                       uploaded, err));
        standing = !uploaded->finished && uploaded->next <= from ? standing + 1 : 0;
        if (standing == STANDING_MAX)
            return tide_error_set(err, TIDE_SERVER, "the upload does not get beyond byte %zu",
                                  (size_t)from);
    }
    return TIDE_OK;
}

/* Begins an upload, or goes on with the one that the state names, which must be of these bytes.
 * TIDE_GONE: its session ended; or the draft, or the thread, is gone. */
static tide_status upload(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                          struct tide_gmail_draft *draft_out, tide_error *err)
{
    struct tide_gmail_uploaded uploaded = {.finished = false};
    if (state->session[0] != '\0') {
        TIDE_TRY(tide_gmail_upload_put(call->gmail, call->job, state->session, TIDE_TEXT(""), 0,
                                       call->raw.bytes, &uploaded, err));
        TIDE_SEEN("outgoing: an upload goes on");
    } else {
        const tide_text draft = tide_text_of(state->draft_id);
        TIDE_TRY(tide_gmail_upload_begin(call->gmail, call->job, draft, thread_of(call, state),
                                         call->raw.bytes, state->session, err));
        state->session_content = content_of(call->raw);
        TIDE_TRY(keep(call, state, err));
    }
    TIDE_TRY(send_parts(call, state, &uploaded, err));
    *draft_out = uploaded.draft;
    return TIDE_OK;
}

static void drop_session(struct tide_outgoing *state)
{
    state->session[0] = '\0';
    state->session_content = 0;
}

/* ---- making a draft ---- */

static tide_status find_drafts(const struct tide_outgoing_call *call,
                               const struct tide_outgoing *state, struct tide_gmail_draft *drafts,
                               size_t *count_out, tide_error *err)
{
    char id[TIDE_OUTGOING_ID_BYTES + 2];
    bracketed(state, id);
    return tide_gmail_drafts_with_id(call->gmail, call->job, id, drafts, DOUBLES_MAX, count_out,
                                     err);
}

/* A draft may have been made, but nobody knows its id. */
static tide_status look_for_draft(const struct tide_outgoing_call *call,
                                  struct tide_outgoing *state, tide_error *err)
{
    struct tide_gmail_draft drafts[DOUBLES_MAX];
    size_t count = 0;
    TIDE_TRY(find_drafts(call, state, drafts, &count, err));
    state->doubled = state->doubled || count != 1;
    if (count > 0) {
        TIDE_SEEN("outgoing: a draft was found by its id");
        return is_draft(call, state, &drafts[0], 0, err);
    }
    drop_session(state);
    return keep(call, state, err); /* MAKING: with the sign that there may be two */
}

static tide_status make(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                        struct tide_gmail_draft *draft_out, tide_error *err)
{
    *draft_out = (struct tide_gmail_draft){.id = ""};
    return call->raw.bytes > TIDE_OUTGOING_WHOLE_BYTES_MAX
               ? upload(call, state, draft_out, err)
               : tide_gmail_draft_create(call->gmail, call->job, call->raw, thread_of(call, state),
                                         draft_out, err);
}

/* From NEW or MAKING to DRAFT, or nearer to it. */
static tide_status step_make(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                             tide_error *err)
{
    const uint64_t content = content_of(call->raw);
    const bool again = state->stage == TIDE_OUTGOING_MAKING;
    struct tide_gmail_draft draft;
    if (again && (state->session[0] == '\0' || state->session_content != content)) {
        TIDE_TRY(look_for_draft(call, state, err));
        if (state->stage == TIDE_OUTGOING_DRAFT)
            return TIDE_OK;
    }
    if (!again) {
        state->stage = TIDE_OUTGOING_MAKING;
        drop_draft(state);
        drop_session(state);
        TIDE_TRY(keep(call, state, err)); /* OGM1 */
    }
    const bool resumed = state->session[0] != '\0';
    tide_status rc = make(call, state, &draft, err);
    if (rc == TIDE_OK && draft.id[0] != '\0')
        return is_draft(call, state, &draft, content, err);
    if (rc == TIDE_OK || (rc == TIDE_GONE && resumed)) {
        /* Made, without an answer that can be read; or nobody knows how the upload ended. */
        return look_for_draft(call, state, err);
    }
    if (rc == TIDE_GONE && thread_of(call, state).bytes > 0) {
        TIDE_SEEN("outgoing: the thread of a message is gone");
        state->loose = true;
        drop_session(state);
        return undo(call, state, TIDE_OUTGOING_NEW, TIDE_OK);
    }
    /* A session stays: it goes on from there. */
    return had_no_effect(rc) && state->session[0] == '\0' && !state->doubled
               ? undo(call, state, TIDE_OUTGOING_NEW, rc)
               : rc;
}

/* ---- taking one over ---- */

/* From TAKEN to DRAFT; to NEW when nobody has it any more (OGM6). */
static tide_status step_find(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                             tide_error *err)
{
    struct tide_gmail_draft draft;
    const tide_status rc =
        tide_gmail_draft_of(call->gmail, call->job, tide_text_of(state->gmail_id), &draft, err);
    if (rc == TIDE_OK) {
        TIDE_SEEN("outgoing: a draft was taken over");
        return is_draft(call, state, &draft, 0, err);
    }
    if (rc != TIDE_NOT_FOUND)
        return rc;
    TIDE_TRY(settle(call, state, "Gmail does not list the draft yet", err));
    TIDE_SEEN("outgoing: a draft to be taken over was gone");
    drop_draft(state);
    state->doubt_unix_ms = 0;
    state->formatted = false;
    state->removed = true;
    state->stage = TIDE_OUTGOING_NEW;
    return keep(call, state, err);
}

/* ---- changing it ---- */

/* An upload ended with an answer that cannot be read: the draft is asked for its message. */
static void ask_message(const struct tide_outgoing_call *call, const struct tide_outgoing *state,
                        struct tide_gmail_draft *draft)
{
    struct tide_gmail_draft drafts[DOUBLES_MAX];
    size_t count = 0;
    (void)find_drafts(call, state, drafts, &count, NULL);
    for (size_t i = 0; i < count; i++)
        if (strcmp(drafts[i].id, draft->id) == 0)
            *draft = drafts[i];
}

static tide_status step_change(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                               tide_error *err)
{
    const uint64_t content = content_of(call->raw);
    struct tide_gmail_draft draft = {.id = ""};
    if (state->session[0] != '\0' && state->session_content != content)
        drop_session(state);
    const bool resumed = state->session[0] != '\0';
    if (state->content != 0) {
        state->content = 0;
        TIDE_TRY(keep(call, state, err)); /* OGM5 */
    }
    tide_status rc =
        call->raw.bytes > TIDE_OUTGOING_WHOLE_BYTES_MAX
            ? upload(call, state, &draft, err)
            : tide_gmail_draft_update(call->gmail, call->job, tide_text_of(state->draft_id),
                                      call->raw, thread_of(call, state), &draft, err);
    if (rc == TIDE_OK) {
        memcpy(draft.id, state->draft_id, sizeof draft.id);
        if (draft.message_id[0] == '\0')
            ask_message(call, state, &draft);
        return is_draft(call, state, &draft, content, err);
    }
    if (rc != TIDE_GONE)
        return rc;
    drop_session(state);
    if (resumed)
        return keep(call, state, err); /* only its session, perhaps */
    TIDE_SEEN("outgoing: the draft was removed at the server");
    drop_draft(state);
    state->removed = true;
    state->formatted = false;
    return undo(call, state, TIDE_OUTGOING_NEW, TIDE_OK);
}

/* ---- second drafts ---- */

/* Removes what an answer that was lost left behind.  A list without our own draft is behind, and
 * proves nothing; once it is sent there is none of ours. */
static tide_status tidy(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                        tide_error *err)
{
    struct tide_gmail_draft drafts[DOUBLES_MAX];
    size_t count = 0;
    bool seen = state->stage == TIDE_OUTGOING_SENT;
    TIDE_TRY(find_drafts(call, state, drafts, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (state->stage == TIDE_OUTGOING_DRAFT && strcmp(drafts[i].id, state->draft_id) == 0) {
            seen = true;
            continue;
        }
        TIDE_SEEN("outgoing: a second draft was removed");
        TIDE_TRY(tide_gmail_draft_delete(call->gmail, call->job, tide_text_of(drafts[i].id), err));
    }
    if (!seen)
        return TIDE_OK;
    state->doubled = false;
    return keep(call, state, err);
}

/* ---- saving ---- */

static bool is_saved(const struct tide_outgoing_call *call, const struct tide_outgoing *state)
{
    return state->stage == TIDE_OUTGOING_DRAFT && state->content == content_of(call->raw);
}

static tide_status step_save(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                             tide_error *err)
{
    if (state->stage == TIDE_OUTGOING_TAKEN)
        return step_find(call, state, err);
    return state->stage == TIDE_OUTGOING_DRAFT ? step_change(call, state, err)
                                               : step_make(call, state, err);
}

tide_status tide_outgoing_save(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                               tide_error *err)
{
    if (state->stage >= TIDE_OUTGOING_SENDING)
        return tide_error_set(err, TIDE_INVALID, "the message is being sent, or is sent");
    for (unsigned tries = 0; !is_saved(call, state); tries++) {
        if (tries == TRIES_MAX)
            return tide_error_set(err, TIDE_SERVER, "the draft is not at the server after %u tries",
                                  tries);
        TIDE_TRY(step_save(call, state, err));
    }
    return state->doubled ? tidy(call, state, err) : TIDE_OK;
}

/* ---- sending ---- */

static tide_status is_sent(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                           const struct tide_gmail_sent *sent, tide_error *err)
{
    state->stage = TIDE_OUTGOING_SENT;
    state->doubt_unix_ms = 0;
    (void)snprintf(state->sent_id, sizeof state->sent_id, "%s", sent->message_id);
    (void)snprintf(state->thread_id, sizeof state->thread_id, "%s", sent->thread_id);
    return keep(call, state, err);
}

static void ask_id(const struct tide_outgoing_call *call, const struct tide_outgoing *state,
                   struct tide_gmail_sent *sent)
{
    char id[TIDE_OUTGOING_ID_BYTES + 2];
    bracketed(state, id);
    (void)tide_gmail_sent_find(call->gmail, call->job, id, sent, NULL);
}

/* The draft is gone, and an earlier call may have sent it. */
static tide_status look_for_sent(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                                 tide_error *err)
{
    char id[TIDE_OUTGOING_ID_BYTES + 2];
    struct tide_gmail_sent sent;
    bracketed(state, id);
    const tide_status rc = tide_gmail_sent_find(call->gmail, call->job, id, &sent, err);
    if (rc == TIDE_OK) {
        TIDE_SEEN("outgoing: a message was found in sent mail");
        return is_sent(call, state, &sent, err);
    }
    if (rc != TIDE_NOT_FOUND)
        return rc;
    TIDE_TRY(settle(call, state, "Gmail has not yet said whether it sent the message", err));
    drop_draft(state);
    state->doubt_unix_ms = 0;
    state->stage = TIDE_OUTGOING_NEW;
    TIDE_TRY(keep(call, state, err));
    return tide_error_set(err, TIDE_GONE,
                          "the draft was removed from Gmail, and its sent mail does not have the "
                          "message");
}

/* One call of drafts.send.  `again`: there was one before whose outcome is not known. */
static tide_status step_send(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                             bool again, tide_error *err)
{
    struct tide_gmail_sent sent;
    tide_error own = {TIDE_OK, 0, ""};
    const tide_status rc =
        tide_gmail_draft_send(call->gmail, call->job, tide_text_of(state->draft_id), &sent, &own);
    if (err != NULL)
        *err = own;
    if (rc == TIDE_OK) {
        if (sent.message_id[0] == '\0') /* the answer was garbled; without its id it is sent, too */
            ask_id(call, state, &sent);
        return is_sent(call, state, &sent, err);
    }
    if (rc == TIDE_GONE && again)
        return look_for_sent(call, state, err);
    if (rc == TIDE_GONE) {
        /* Nothing was sent before, so somebody removed the draft: it is made anew. */
        TIDE_SEEN("outgoing: the draft was removed before it was sent");
        drop_draft(state);
        return undo(call, state, TIDE_OUTGOING_NEW, TIDE_OK);
    }
    /* Who refuses the message (400) has it, so it was never sent; who refuses the caller may not
     * even have looked. */
    const bool looked = rc == TIDE_PERMANENT && own.code == 400;
    return looked || (had_no_effect(rc) && !again) ? undo(call, state, TIDE_OUTGOING_DRAFT, rc)
                                                   : rc;
}

tide_status tide_outgoing_send(const struct tide_outgoing_call *call, struct tide_outgoing *state,
                               tide_error *err)
{
    bool again = state->stage == TIDE_OUTGOING_SENDING;
    for (unsigned tries = 0; state->stage != TIDE_OUTGOING_SENT; tries++) {
        if (tries == TRIES_MAX)
            return tide_error_set(err, TIDE_SERVER, "the draft was removed %u times", tries);
        if (state->stage != TIDE_OUTGOING_SENDING) {
            TIDE_TRY(tide_outgoing_save(call, state, err));
            state->stage = TIDE_OUTGOING_SENDING;
            TIDE_TRY(keep(call, state, err)); /* OGM1 */
        }
        TIDE_TRY(step_send(call, state, again, err));
        again = false;
    }
    return state->doubled ? tidy(call, state, err) : TIDE_OK;
}

/* ---- discarding ---- */

/* A draft may have been made, but nobody knows its id.  One that is found was it, unless there may be
 * two. */
static tide_status discard_unknown(const struct tide_outgoing_call *call,
                                   struct tide_outgoing *state, tide_error *err)
{
    struct tide_gmail_draft drafts[DOUBLES_MAX];
    size_t count = 0;
    TIDE_TRY(find_drafts(call, state, drafts, &count, err));
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(tide_gmail_draft_delete(call->gmail, call->job, tide_text_of(drafts[i].id), err));
    return count > 0 && !state->doubled
               ? TIDE_OK
               : settle(call, state, "Gmail has not yet said whether it has the draft", err);
}

tide_status tide_outgoing_discard(const struct tide_outgoing_call *call,
                                  struct tide_outgoing *state, tide_error *err)
{
    if (state->stage >= TIDE_OUTGOING_SENDING)
        return tide_error_set(err, TIDE_INVALID, "the message is being sent, or is sent");
    if (state->stage == TIDE_OUTGOING_TAKEN)
        TIDE_TRY(step_find(call, state, err));
    if (state->stage == TIDE_OUTGOING_DRAFT)
        TIDE_TRY(
            tide_gmail_draft_delete(call->gmail, call->job, tide_text_of(state->draft_id), err));
    if (state->stage == TIDE_OUTGOING_MAKING || state->doubled)
        TIDE_TRY(discard_unknown(call, state, err));
    state->stage = TIDE_OUTGOING_NEW;
    state->doubt_unix_ms = 0;
    drop_draft(state);
    state->doubled = false;
    drop_session(state);
    return keep(call, state, err);
}
