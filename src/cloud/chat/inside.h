/* inside.h - shared by the files of the chat client.
 *
 *   talk.c, talk_json.c  conversations and answers, in no dialect
 *   intake.c             answers while they come in
 *   openai.c, anthropic.c  requests and answers of a dialect
 *   chat.c               open and close, calls */
#ifndef TIDE_CLOUD_CHAT_INSIDE_H
#define TIDE_CLOUD_CHAT_INSIDE_H

#include "cloud/chat/chat.h"
#include "cloud/chat/intake.h"

/* A request: the talk, and what the client adds to it. */
struct tide_chat_request {
    const struct tide_chat_talk *talk;
    tide_text model;
    uint32_t tokens_max;
    bool stream, stream_usage;
    bool temperature; /* the model takes one */
    bool old_limit;
    tide_chat_format format;
};

/* How a dialect (chat.h) writes requests and reads answers; const. */
struct tide_chat_protocol {
    const char *url;       /* of its own provider */
    const char *call_path; /* below the endpoint's */
    const char *version;   /* the default of the header anthropic-version; NULL: it has none */
    const char *id_header; /* that has the id of a request */
    const struct tide_chat_reader *reader;
    /* The body of a call.  TIDE_INVALID: a text of the talk is not JSON that has to be. */
    tide_status (*request)(const struct tide_chat_request *asked, tide_json *body, tide_error *err);
};
extern const struct tide_chat_protocol tide_chat_openai;
extern const struct tide_chat_protocol tide_chat_anthropic;

/* ---- for the dialects, and talk_json.c ---- */

/* The system prompt, with what the answer has to look like: appended to `out`. */
tide_status tide_chat_system(const struct tide_chat_request *asked, tide_buf *out, tide_error *err);
/* A JSON object that a text of a talk holds, as a field.  TIDE_INVALID: it holds none. */
tide_status tide_chat_object_set(tide_json *json, const char *key, tide_text text, tide_error *err);
void tide_chat_real_set(tide_json *json, const char *key, uint32_t milli);

#endif
