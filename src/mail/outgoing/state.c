/* state.c - the state of a message on its way, as text. */
#include "mail/outgoing/outgoing.h"

#include "mail/compose/header.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[TIDE_OUTGOING_STAGES] = {
    [TIDE_OUTGOING_NEW] = "new",         [TIDE_OUTGOING_MAKING] = "making",
    [TIDE_OUTGOING_TAKEN] = "taken",     [TIDE_OUTGOING_DRAFT] = "draft",
    [TIDE_OUTGOING_SENDING] = "sending", [TIDE_OUTGOING_SENT] = "sent",
};

const char *tide_outgoing_stage_name(tide_outgoing_stage stage)
{
    return names[stage];
}

/* 64 bits: more than every reader of JSON keeps. */
static void set_hash(tide_json *json, const char *key, uint64_t hash)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%016" PRIx64, hash);
    if (hash != 0)
        tide_json_set_cstr(json, key, text);
}

static void set_text(tide_json *json, const char *key, const char *text)
{
    if (text[0] != '\0')
        tide_json_set_cstr(json, key, text);
}

tide_status tide_outgoing_write(const struct tide_outgoing *state, tide_buf *out)
{
    tide_auto_json json;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "stage", names[state->stage]);
    set_text(&json, "message_id", state->message_id);
    set_text(&json, "draft_id", state->draft_id);
    set_text(&json, "gmail_id", state->gmail_id);
    set_hash(&json, "content", state->content);
    set_text(&json, "session", state->session);
    set_hash(&json, "session_content", state->session_content);
    set_text(&json, "sent_id", state->sent_id);
    set_text(&json, "thread_id", state->thread_id);
    if (state->doubt_unix_ms != 0)
        tide_json_set_u64(&json, "doubt_unix_ms", state->doubt_unix_ms);
    if (state->doubled)
        tide_json_set_bool(&json, "doubled", true);
    if (state->loose)
        tide_json_set_bool(&json, "loose", true);
    if (state->formatted)
        tide_json_set_bool(&json, "formatted", true);
    if (state->removed)
        tide_json_set_bool(&json, "removed", true);
    set_text(&json, "refused_id", state->refused_id);
    if (state->again_unix_ms != 0)
        tide_json_set_u64(&json, "again_unix_ms", state->again_unix_ms);
    return tide_json_line(&json, out);
}

/* ---- reading ---- */

static bool get_text(const json_t *value, const char *key, char *out, size_t room)
{
    const json_t *at = json_object_get(value, key);
    if (at == NULL)
        return true;
    if (!json_is_string(at) || json_string_length(at) >= room ||
        strlen(json_string_value(at)) != json_string_length(at))
        return false;
    memcpy(out, json_string_value(at), json_string_length(at) + 1);
    return true;
}

static bool get_hash(const json_t *value, const char *key, uint64_t *hash_out)
{
    char text[24] = "0";
    char *end = NULL;
    if (!get_text(value, key, text, sizeof text))
        return false;
    *hash_out = strtoull(text, &end, 16);
    return end != text && *end == '\0';
}

static bool get_stage(const json_t *value, tide_outgoing_stage *stage_out)
{
    const char *name = json_string_value(json_object_get(value, "stage"));
    for (unsigned i = 0; name != NULL && i < TIDE_OUTGOING_STAGES; i++) {
        if (strcmp(names[i], name) == 0) {
            *stage_out = (tide_outgoing_stage)i;
            return true;
        }
    }
    return false;
}

static bool state_read(const json_t *value, struct tide_outgoing *state)
{
    const json_t *doubt = json_object_get(value, "doubt_unix_ms");
    const json_t *again = json_object_get(value, "again_unix_ms");
    state->doubt_unix_ms = (uint64_t)json_integer_value(doubt);
    state->again_unix_ms = (uint64_t)json_integer_value(again);
    state->doubled = json_is_true(json_object_get(value, "doubled"));
    state->loose = json_is_true(json_object_get(value, "loose"));
    state->formatted = json_is_true(json_object_get(value, "formatted"));
    state->removed = json_is_true(json_object_get(value, "removed"));
    return get_stage(value, &state->stage) &&
           get_text(value, "message_id", state->message_id, sizeof state->message_id) &&
           get_text(value, "draft_id", state->draft_id, sizeof state->draft_id) &&
           get_text(value, "gmail_id", state->gmail_id, sizeof state->gmail_id) &&
           get_hash(value, "content", &state->content) &&
           get_text(value, "session", state->session, sizeof state->session) &&
           get_hash(value, "session_content", &state->session_content) &&
           get_text(value, "sent_id", state->sent_id, sizeof state->sent_id) &&
           get_text(value, "thread_id", state->thread_id, sizeof state->thread_id) &&
           get_text(value, "refused_id", state->refused_id, sizeof state->refused_id) &&
           json_integer_value(doubt) >= 0 && json_integer_value(again) >= 0 &&
           tide_compose_is_id(tide_text_of(state->message_id)) &&
           (state->gmail_id[0] != '\0' || state->stage != TIDE_OUTGOING_TAKEN) &&
           (state->draft_id[0] != '\0' ||
            (state->stage != TIDE_OUTGOING_DRAFT && state->stage != TIDE_OUTGOING_SENDING));
}

tide_status tide_outgoing_read(tide_text text, struct tide_outgoing *state_out, tide_error *err)
{
    json_auto_t *value = NULL;
    struct tide_outgoing state = {.stage = TIDE_OUTGOING_NEW};
    TIDE_TRY(tide_json_parse(text, &value, err));
    if (!state_read(value, &state))
        return tide_error_set(err, TIDE_INVALID, "the stored state of a message is malformed");
    *state_out = state;
    return TIDE_OK;
}
