/* chat.h - a client of chat models: OpenAI-compatible servers, and Anthropic's (J19).
 *
 * One function is one call under the job's governor, judged by net/judge_chat.h.  Answers are
 * streamed where the server can, so that a long one is not taken for a silent server; they are
 * taken apart while they come in (intake.h).
 *
 * It decides nothing: it repeats no call, runs no tool and stores nothing.  The one exception: a
 * model that refuses a temperature, or a name of the limit of tokens, is called again without it,
 * once, and not asked so again.
 *
 * Invariants:
 *   CHT1  TIDE_OK means that the answer was whole: a stream that ended early is TIDE_SERVER.
 *   CHT2  of an answer at most `answer_bytes_max` bytes are kept; a longer one is TIDE_SERVER.
 *   CHT3  the key is in no error and no log (net/api/call.h API2).
 *   CHT4  what the user's mail says is sent as JSON strings only.
 */
#ifndef TIDE_CLOUD_CHAT_CHAT_H
#define TIDE_CLOUD_CHAT_CHAT_H

#include "cloud/chat/talk.h"
#include "net/oauth/oauth.h"
#include "tidemark.h"

typedef struct tide_chat tide_chat;

typedef enum tide_chat_dialect {
    TIDE_CHAT_OPENAI,
    TIDE_CHAT_ANTHROPIC,
} tide_chat_dialect;

/* How an OpenAI-compatible server is asked for JSON.  The prompt asks for it in any case. */
typedef enum tide_chat_format {
    TIDE_CHAT_FORMAT_SCHEMA, /* response_format json_schema */
    TIDE_CHAT_FORMAT_OBJECT, /* json_object */
    TIDE_CHAT_FORMAT_OFF,    /* by the prompt alone */
} tide_chat_format;

enum {
    TIDE_CHAT_SILENCE_MS = 30000, /* defaults */
    TIDE_CHAT_TOTAL_MS = 540000,  /* below stall.after: a silent call is not a stalled job */
    TIDE_CHAT_ANSWER_BYTES_MAX = 1 << 20,
    TIDE_CHAT_STREAM_BYTES_MAX = 64 << 20, /* of the events of one answer, which repeat much */
    TIDE_CHAT_TOKENS_MAX = 1024,
    TIDE_CHAT_MODEL_BYTES_MAX = 200,
};

struct tide_chat_options {
    tide_chat_dialect dialect;
    /* SCHEME://HOST[:PORT][/PATH]; methods are below the path, "/v1" if there is none.  NULL:
     * OpenAI's or Anthropic's own. */
    const char *endpoint;
    const char *model;   /* for talks that name none; NULL: each must */
    tide_tokens *tokens; /* borrowed, outlives it: a stored key; NULL: `key` */
    tide_text key;       /* borrowed: one that is not stored yet; empty: the server wants none */
    bool key_plain;      /* Anthropic: in x-api-key, as its older clients do */
    const char *version; /* Anthropic: anthropic-version; NULL: "2023-06-01" */
    bool old_limit;      /* OpenAI: "max_tokens" instead of "max_completion_tokens" */
    tide_chat_format format;
    bool no_stream;       /* the server cannot */
    bool no_stream_usage; /* OpenAI: the server does not know stream_options */
    uint32_t silence_ms;  /* no byte for so long ends a streamed call; 0: the default */
    uint32_t total_ms;    /* of a whole call; 0: the default */
    size_t answer_bytes_max;
    tide_world *world; /* for calls without a job; else NULL */
};
/* TIDE_INVALID: the endpoint, the version or the model is not one. */
tide_status tide_chat_open(const struct tide_chat_options *options, tide_mem *mem,
                           tide_chat **chat_out, tide_error *err);
void tide_chat_close(tide_chat *chat); /* NULL is fine */
/* "chat.create"; NULL: there is none. */
const char *tide_chat_method_name(uint32_t method);
/* Checks an endpoint: https, or http on this machine; a path is fine, a query is not. */
tide_status tide_chat_endpoint_check(const char *endpoint, tide_error *err);

/* Calls the model.  `answer_out` is zeroed or done.  `cancel` counts without a job; may be NULL.
 *   TIDE_INVALID    the talk is malformed, or too long to be sent; nothing was sent
 *   TIDE_SERVER     also: the answer was not one, broke off (CHT1) or was too long (CHT2)
 *   TIDE_TIMEOUT    silence, or too long in all
 *   TIDE_AUTH       the key, or the money behind it: tide_chat_reason_of()
 *   else            as tide_api_call() */
tide_status tide_chat_call(tide_chat *chat, tide_job *job, const struct tide_chat_talk *talk,
                           const tide_cancel *cancel, struct tide_chat_answer *answer_out,
                           tide_error *err);

/* Whether a call that ended so may have cost tokens; for budgets.  Only one that was not sent, or that the
 * server refused instead of answering it, certainly did not. */
bool tide_chat_may_cost(tide_status rc, const tide_error *err);

/* Lists the server's models, to check endpoint and key: `visit` gets the id of each.  Costs no
 * tokens.  TIDE_GONE: the server has no such list, which compatible ones need not have. */
tide_status tide_chat_models(tide_chat *chat, tide_job *job, const tide_cancel *cancel,
                             void (*visit)(const char *id, void *arg), void *arg, tide_error *err);

#endif
