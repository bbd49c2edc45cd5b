/* talk.h - a conversation with a chat model, and its answer, in no provider's dialect (J19).
 *
 * Plain data: a caller builds a talk from texts that it owns, and gets an answer that owns its own.
 * Both can be written as JSON and read back, since a call is a job of its own and its conversation
 * is stored before it (E1.9).
 *
 * The JSON, in which absent fields have their defaults:
 *
 *   {"system":"..","model":"..","tokens_max":N,"temperature_milli":200,"json":true,"schema":{..},
 *    "choice":"auto|none|any|tool:NAME",
 *    "tools":[{"name":"..","description":"..","schema":{..}}],
 *    "messages":[{"role":"user|assistant","parts":[PART..]}]}
 *   PART: {"text":".."} | {"call":{"id","name","arguments":{..},"invalid":true,"unknown":true}}
 *         | {"result":{"id","text","failed":true}} | {"opaque":{..}}
 *   an answer: {"text":"..","parts":[PART..],"stop":"done","in_tokens":N,"out_tokens":N,
 *    "tokens_known":true,"request_id":"..","model":"..","latency_ms":N}
 *
 * Invariants:
 *   TLK1  what is written reads back the same.
 *   TLK2  the arguments of a call are a JSON object, whatever a model sent.
 */
#ifndef TIDE_CLOUD_CHAT_TALK_H
#define TIDE_CLOUD_CHAT_TALK_H

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"

enum {
    TIDE_CHAT_MESSAGES_MAX = 1000,
    TIDE_CHAT_PARTS_MAX = 256, /* of one message */
    TIDE_CHAT_TOOLS_MAX = 128,
    TIDE_CHAT_CALLS_MAX = 64, /* in one answer */
    TIDE_CHAT_ID_BYTES_MAX = 256,
    TIDE_CHAT_TALK_BYTES_MAX = 16 << 20, /* as JSON */
};

/* ---- the conversation; all borrowed ---- */

typedef enum tide_chat_role {
    TIDE_CHAT_USER, /* also the results of tools */
    TIDE_CHAT_ASSISTANT,
} tide_chat_role;

typedef enum tide_chat_part_kind {
    TIDE_CHAT_TEXT,
    TIDE_CHAT_CALL,   /* the model calls a tool */
    TIDE_CHAT_RESULT, /* what the tool said */
    /* What the provider said and this program does not know (a block with a signature): to be
     * given back as it came. */
    TIDE_CHAT_OPAQUE,
} tide_chat_part_kind;

struct tide_chat_part {
    tide_chat_part_kind kind;
    tide_text text;      /* of TEXT and RESULT; of OPAQUE its JSON */
    tide_text id;        /* of CALL and RESULT */
    tide_text name;      /* of CALL */
    tide_text arguments; /* of CALL: a JSON object (TLK2) */
    bool failed;         /* RESULT: the text says what went wrong */
    bool invalid;        /* CALL: what the model sent was no JSON object; the arguments are {} */
    bool unknown;        /* CALL: the conversation has no tool of this name */
};

struct tide_chat_message {
    tide_chat_role role;
    const struct tide_chat_part *parts;
    size_t parts_count;
};

struct tide_chat_tool {
    tide_text name; /* letters, digits, "_" and "-", 64 at most */
    tide_text description;
    tide_text schema; /* JSON, an object */
};

typedef enum tide_chat_choice {
    TIDE_CHAT_CHOICE_AUTO,
    TIDE_CHAT_CHOICE_NONE,  /* no tool may be called */
    TIDE_CHAT_CHOICE_ANY,   /* one must be */
    TIDE_CHAT_CHOICE_NAMED, /* this one */
} tide_chat_choice;

struct tide_chat_talk {
    tide_text model;  /* empty: that of the account */
    tide_text system; /* may be empty */
    const struct tide_chat_message *messages;
    size_t messages_count;
    const struct tide_chat_tool *tools;
    size_t tools_count;
    tide_chat_choice choice;
    tide_text choice_name; /* of NAMED */
    bool json;             /* the answer is to be one JSON object */
    tide_text schema;      /* of that object, as JSON; may be empty */
    uint32_t tokens_max;   /* of the answer; 0: 1,024 */
    bool has_temperature;  /* left out where the model takes none */
    uint32_t temperature_milli;
};

/* About how many tokens a call costs, on the high side: what is said, and an answer of `tokens_max`
 * tokens (0: that of the talk).  For budgets, before the call. */
uint64_t tide_chat_cost_of(const struct tide_chat_talk *talk, uint32_t tokens_max);

/* ---- the answer ---- */

typedef enum tide_chat_stop {
    TIDE_CHAT_STOP_DONE,
    TIDE_CHAT_STOP_LENGTH, /* cut by the limit of tokens */
    TIDE_CHAT_STOP_TOOLS,  /* it waits for results */
    TIDE_CHAT_STOP_REFUSED,
    TIDE_CHAT_STOP_OTHER,
} tide_chat_stop;
const char *tide_chat_stop_name(tide_chat_stop stop); /* "done" */

/* Embedded value; its texts live until it is done. */
struct tide_chat_answer {
    tide_text text; /* all text parts; terminated */
    const struct tide_chat_part *calls;
    size_t calls_count;
    /* All of it in order: the message for the next call of the same conversation. */
    struct tide_chat_message message;
    tide_chat_stop stop;
    uint64_t in_tokens, out_tokens;
    bool tokens_known; /* false: the server did not say, and these are estimates */
    char request_id[TIDE_CHAT_ID_BYTES_MAX];
    char model[TIDE_CHAT_ID_BYTES_MAX]; /* as the server named it */
    uint32_t latency_ms;
    tide_arena arena;
};
void tide_chat_answer_done(struct tide_chat_answer *answer); /* a zeroed one is fine */

/* ---- as JSON ---- */

/* Appends one line.  TIDE_INVALID: a schema is not an object; TIDE_FULL, TIDE_NO_MEMORY. */
tide_status tide_chat_talk_write(const struct tide_chat_talk *talk, tide_buf *out, tide_error *err);
tide_status tide_chat_answer_write(const struct tide_chat_answer *answer, tide_buf *out,
                                   tide_error *err);

/* A conversation that was read, and what its texts point into; embedded value. */
struct tide_chat_stored {
    struct tide_chat_talk talk;
    tide_arena arena;
};
void tide_chat_stored_done(struct tide_chat_stored *stored); /* a zeroed one is fine */
/* TIDE_INVALID names the field. */
tide_status tide_chat_talk_read(tide_text json, tide_mem *mem, struct tide_chat_stored *stored_out,
                                tide_error *err);
tide_status tide_chat_answer_read(tide_text json, tide_mem *mem,
                                  struct tide_chat_answer *answer_out, tide_error *err);

#endif
