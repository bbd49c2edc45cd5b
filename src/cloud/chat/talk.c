#include "cloud/chat/talk.h"

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
