#include "cloud/chat/talk.h"

#include <string.h>

/* ---- what it costs ---- */

enum {
    BYTES_PER_TOKEN = 3, /* English has about four, other languages less: on the high side */
    PART_TOKENS = 8,     /* of the frame around a message, a tool or a call */
    ANSWER_TOKENS = 1024,
};

static uint64_t tokens_of(tide_text text)
{
    return (text.bytes + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN;
}

uint64_t tide_chat_cost_of(const struct tide_chat_talk *talk, uint32_t tokens_max)
{
    uint64_t tokens = PART_TOKENS + tokens_of(talk->system) + tokens_of(talk->schema);
    for (size_t i = 0; i < talk->messages_count; i++) {
        const struct tide_chat_message *message = &talk->messages[i];
        for (size_t k = 0; k < message->parts_count; k++) {
            const struct tide_chat_part *part = &message->parts[k];
            tokens += PART_TOKENS + tokens_of(part->text) + tokens_of(part->id) +
                      tokens_of(part->name) + tokens_of(part->arguments);
        }
    }
    for (size_t i = 0; i < talk->tools_count; i++)
        tokens += PART_TOKENS + tokens_of(talk->tools[i].name) +
                  tokens_of(talk->tools[i].description) + tokens_of(talk->tools[i].schema);
    const uint32_t answer = tokens_max != 0 ? tokens_max : talk->tokens_max;
    return tokens + (answer != 0 ? answer : ANSWER_TOKENS);
}

/* ---- JSON in an answer ---- */

/* The bytes of the object that begins with the text; 0: it does not end. */
static size_t object_bytes(tide_text text)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.bytes; i++) {
        const char c = text.data[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else
                in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

tide_status tide_chat_json_of(tide_text text, json_t **object_out, tide_error *err)
{
    enum { TRIES_MAX = 16 }; /* braces in the words before it */
    for (unsigned tries = 0; text.bytes > 0 && tries < TRIES_MAX; tries++) {
        const char *brace = memchr(text.data, '{', text.bytes);
        if (brace == NULL)
            break;
        const tide_text rest = {brace, text.bytes - (size_t)(brace - text.data)};
        const size_t bytes = object_bytes(rest);
        json_t *value = NULL;
        const tide_status rc = bytes == 0
                                   ? TIDE_INVALID
                                   : tide_json_parse((tide_text){rest.data, bytes}, &value, NULL);
        if (rc == TIDE_NO_MEMORY)
            return tide_error_set(err, rc, "out of memory while reading an answer");
        if (rc == TIDE_OK) { /* it begins with a brace: an object */
            *object_out = value;
            return TIDE_OK;
        }
        text = (tide_text){rest.data + 1, rest.bytes - 1};
    }
    return tide_error_set(err, TIDE_INVALID, "the answer of the model has no JSON object");
}

/* ---- names ---- */

static const char *const stop_names[] = {"done", "length", "tools", "refused", "other"};
enum { STOPS = sizeof stop_names / sizeof stop_names[0] };

const char *tide_chat_stop_name(tide_chat_stop stop)
{
    return stop_names[(size_t)stop < STOPS ? (size_t)stop : STOPS - 1];
}

/* ---- done ---- */

void tide_chat_answer_done(struct tide_chat_answer *answer)
{
    if (answer->arena.mem != NULL)
        tide_arena_done(&answer->arena);
    *answer = (struct tide_chat_answer){.stop = TIDE_CHAT_STOP_DONE};
}

void tide_chat_stored_done(struct tide_chat_stored *stored)
{
    if (stored->arena.mem != NULL)
        tide_arena_done(&stored->arena);
    *stored = (struct tide_chat_stored){.talk = {.messages_count = 0}};
}
