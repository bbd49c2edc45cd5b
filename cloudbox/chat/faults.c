/* faults.c - what the model does against the rules, on request (chat.h). */
#include "cloudbox/chat/faults.h"

#include "base/check.h"

#include <string.h>

const struct box_fault box_chat_faults[BOX_CHAT_FAULTS] = {
    {"billing", BOX_ASKED, .takes = 0},     {"overloaded", BOX_ASKED, .takes = 0},
    {"bad-json", BOX_ASKED, .takes = 0},    {"length", BOX_ASKED, .takes = 0},
    {"no-usage", BOX_ASKED, .takes = 0},    {"invalid-arguments", BOX_ASKED, .takes = 0},
    {"huge", BOX_ASKED, .takes = 0},        {"endless-tools", BOX_ASKED, .takes = 0},
    {"wrong-tool", BOX_ASKED, .takes = 0},  {"refusal", BOX_ASKED, .takes = 0},
    {"cut-stream", BOX_ASKED, .takes = 0},  {"stream-error", BOX_ASKED, .takes = 0},
    {"no-stream", BOX_ASKED, .takes = 0},   {"opaque", BOX_ASKED, .takes = 0},
    {"no-sampling", BOX_ASKED, .takes = 0}, {"old-limit", BOX_ASKED, .takes = 0},
    {"new-limit", BOX_ASKED, .takes = 0},
};

static const char *const sampling[] = {"temperature", "top_p", "top_k"};

/* Whether a fault refuses a parameter of the request. */
bool box_chat_refuses(struct box_call *call, const struct box_dialect *dialect, const json_t *body)
{
    struct box_faults *faults = box_cloud_faults(call->cloud);
    for (size_t i = 0; i < sizeof sampling / sizeof sampling[0]; i++) {
        if (json_object_get(body, sampling[i]) != NULL &&
            box_faults_strikes(faults, call, "no-sampling")) {
            dialect->bad_parameter(call, sampling[i], "Extra inputs are not permitted");
            return true;
        }
    }
    if (json_object_get(body, "max_completion_tokens") != NULL &&
        box_faults_strikes(faults, call, "old-limit")) {
        dialect->bad_parameter(call, "max_completion_tokens",
                               "Unrecognized request argument supplied: max_completion_tokens");
        return true;
    }
    if (dialect == &box_openai && json_object_get(body, "max_tokens") != NULL &&
        box_faults_strikes(faults, call, "new-limit")) {
        dialect->bad_parameter(call, "max_tokens",
                               "Unsupported parameter: 'max_tokens' is not supported with this "
                               "model. Use 'max_completion_tokens' instead.");
        return true;
    }
    return false;
}

enum { HUGE_BYTES = 10 * 1000 * 1000 };

/* What the model says, against the rules. */
void box_chat_spoil_said(struct box_call *call, struct box_talk *talk, struct box_said *said,
                         struct box_writing *writing)
{
    struct box_faults *faults = box_cloud_faults(call->cloud);
    if (box_faults_strikes(faults, call, "huge")) {
        talk->tokens_max = 0; /* whatever limit was asked for */
        while (said->text.bytes < HUGE_BYTES)
            box_add_cstr(&said->text, "All work and no play makes Jack a dull boy. ");
    }
    if (talk->tools_count > 0 && box_faults_strikes(faults, call, "wrong-tool")) {
        if (said->calls_count == 0)
            said->calls[said->calls_count++].arguments = json_object();
        said->calls[0].name = TIDE_TEXT("delete_everything");
    }
    if (box_faults_strikes(faults, call, "refusal")) {
        for (size_t i = 0; i < said->calls_count; i++)
            json_decref(said->calls[i].arguments);
        said->calls_count = 0;
        tide_buf_clear(&said->text);
        box_add_cstr(&said->text, "I'm sorry, but I can't help with that.");
        writing->refusal = true;
    }
    if (box_faults_strikes(faults, call, "length"))
        talk->tokens_max = box_tokens(box_said_bytes(said)) / 2 + 1;
    writing->no_usage = box_faults_strikes(faults, call, "no-usage");
    writing->bad_arguments = box_faults_strikes(faults, call, "invalid-arguments");
    writing->opaque = box_faults_strikes(faults, call, "opaque");
}

/* Where the event that begins before `at` ends. */
static size_t event_end(const tide_buf *body, size_t at)
{
    const char *end =
        at >= body->bytes ? NULL : memmem(body->data + at, body->bytes - at, "\n\n", 2);
    return end == NULL ? body->bytes : (size_t)(end - body->data) + 2;
}

/* How the answer arrives, against the rules.  The connection ends as it should: only a client that
 * knows how an answer ends notices. */
void box_chat_spoil_written(struct box_call *call, const struct box_dialect *dialect, bool stream)
{
    struct box_faults *faults = box_cloud_faults(call->cloud);
    tide_buf *bytes = &call->answer->body;
    size_t kept = bytes->bytes;
    json_t *late = NULL;
    if (stream && box_faults_strikes(faults, call, "cut-stream"))
        kept = event_end(bytes, bytes->bytes / 2);
    else if (stream && box_faults_strikes(faults, call, "stream-error")) {
        kept = event_end(bytes, bytes->bytes / 2);
        late = dialect->late_error();
    } else if (box_faults_strikes(faults, call, "bad-json"))
        kept = bytes->bytes * 2 / 3;
    bytes->bytes = kept;
    bytes->data[kept] = '\0';
    if (late != NULL)
        box_event(bytes, dialect == &box_anthropic ? "error" : NULL, late);
}
