/* judge_chat.h - maps refusals of chat endpoints to statuses, and says which refusal it was (J19).
 *
 * Both dialects (OpenAI's, which many servers imitate, and Anthropic's) put an "error" into the
 * body.  Its code and type decide together with the HTTP code; the message decides only where
 * providers give nothing else.  A refusal without such a body is one of a proxy or a portal: it
 * never fails a job for good.
 *
 *   2xx            TIDE_OK; TIDE_SERVER for a page of HTML
 *   401, 403       TIDE_AUTH: the key is wrong, or not allowed to do this.  401 is believed without
 *                  a body.
 *   no money, or a spending limit (402, 429, 400, 403)
 *                  TIDE_AUTH as well: a retry cannot help, nothing fails, and the account waits
 *                  until its user acts.  So is a 429 with "x-should-retry: false".
 *   429, 529, 503 of an overloaded server or with a time to wait
 *                  TIDE_THROTTLED, with retry-after-ms, else Retry-After (seconds or a date); an
 *                  hour at most.  429 and 529 are believed without a body.
 *   408, 504       TIDE_TIMEOUT
 *   409            TIDE_SERVER
 *   404            TIDE_PERMANENT: a model that does not exist, never an item that is gone
 *   413, 400 and 422 about the length
 *                  TIDE_PERMANENT: the conversation must become shorter
 *   other 4xx      TIDE_PERMANENT, or TIDE_SERVER with "x-should-retry: true"
 *   5xx, HTML pages, bodies that are not such an error
 *                  TIDE_SERVER; with "x-should-retry: false" and an error TIDE_PERMANENT
 *
 * err->code is the HTTP code; err->text begins "the server answered 429 insufficient_quota: ...".
 * Texts are bounded and one line.  What looks like a key is left out: servers repeat the one they
 * refuse. */
#ifndef TIDE_NET_JUDGE_CHAT_H
#define TIDE_NET_JUDGE_CHAT_H

#include "tidemark.h"
#include "world/world.h"

/* A tide_judge of the API's answers. */
tide_judge tide_chat_judge;

/* The same for an error that came inside a stream, after a 200: the JSON of an event.  Never
 * TIDE_OK. */
tide_status tide_chat_judge_event(tide_text body, tide_error *err);

/* Which refusal an error of these judges is about. */
typedef enum tide_chat_reason {
    TIDE_CHAT_OTHER,      /* also: not an error of these judges */
    TIDE_CHAT_KEY,        /* the key is not accepted */
    TIDE_CHAT_DENIED,     /* it is not allowed to do this */
    TIDE_CHAT_BILLING,    /* no credit, or a spending limit */
    TIDE_CHAT_RATE,       /* too many calls or tokens */
    TIDE_CHAT_OVERLOADED, /* the provider is busy */
    TIDE_CHAT_MODEL,      /* there is no such model */
    TIDE_CHAT_TOO_LONG,   /* the conversation does not fit */
    TIDE_CHAT_SAMPLING,   /* the model takes no temperature */
    TIDE_CHAT_LIMIT_NAME, /* the model wants the other name of the limit of tokens */
} tide_chat_reason;
/* Read from the text, so that it also works for an error that was prefixed or stored. */
tide_chat_reason tide_chat_reason_of(const tide_error *err);
/* Whether the error is a refusal that came instead of an answer: then the call cost nothing. */
bool tide_chat_refused(const tide_error *err);
/* "no credit"; for display. */
const char *tide_chat_reason_name(tide_chat_reason reason);

enum {
    TIDE_CHAT_REFUSAL_BYTES_MAX = 64 << 10, /* longer ones are not errors of an API */
    TIDE_CHAT_WAIT_MS_MAX = 3600000,
};

#endif
