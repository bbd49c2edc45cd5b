/* call.h - one request to a provider's API: signed, judged, sent again once with another token.
 *
 * A client builds a path and a body and reads the answer; everything between is here: the
 * token, the headers that every call of ours has, the charge to the job's account, the
 * provider's judge, and the second call after a refused token.
 *
 * Compression is requested over https only.  A plain http endpoint is an emulator on this
 * machine, where compression would only cost time.
 *
 * Invariants:
 *   API1  a refused token (401, of the whole or of a part) is followed by at most one more call,
 *         with another token.  If that one is refused as well, before any token was accepted, the
 *         outcome is TIDE_AUTH, also when the second call had to wait for units in between.
 *   API2  no bearer is in an error or a log, nor, after the call, in memory that was allocated
 *         here.  (Buffers of libcurl are not wiped.)
 *   API3  `rewind` and `restart` are called before each of the two: a source starts with its first
 *         byte, and a sink never has the bytes of two answers.
 *   API4  a URL that is signed by itself gets no token, no error or log shows it, and its answers
 *         say nothing about the account's token.
 *   API5  nothing is sent with a key that was refused (struct tide_provider_net, `keys`), until a key
 *         is stored again; each call tells the refusal and the command.
 *   API6  a call that has to wait for units at most `patience_ms` waits inside, with beats.  A handler
 *         of several calls needs that: one that starts over each time spends on its first call what
 *         its last one waited for.  Beyond, and with a patience of 0, it is TIDE_AGAIN.
 */
#ifndef TIDE_NET_API_CALL_H
#define TIDE_NET_API_CALL_H

#include "net/oauth/oauth.h"
#include "tidemark_inside.h"

/* Its index in the table identifies latencies that the governor keeps and saves: it must never
 * change. */
struct tide_api_method {
    const char *name; /* as the provider's documentation names it; NULL: there is none */
    const char *verb;
    uint32_t units;
    bool repeatable; /* sending it twice does no harm */
};

/* What the calls of one API have in common; const. */
struct tide_provider_net {
    const char *name;      /* "Gmail API", for errors */
    const char *url;       /* scheme and host */
    tide_judge *judge;     /* of an answer, and of each part of a batch */
    tide_judge *url_judge; /* of an answer of a URL that is signed by itself; NULL: `judge` */
    /* Its tokens are keys that users enter (tide_oauth_key()): nothing is sent with one that was refused,
     * and the refusal stays the reason, until a key is stored again. */
    bool keys;
    const char *agent; /* User-Agent that its operator asks for; NULL: ours */
    const struct tide_api_method *methods;
    uint32_t methods_count;
};

/* One account at one provider; any thread. */
typedef struct tide_api tide_api;
struct tide_api_options {
    const struct tide_provider_net *provider; /* borrowed */
    const char *endpoint; /* SCHEME://HOST[:PORT], with or without a slash; NULL: the provider's */
    tide_tokens *tokens;  /* borrowed; NULL: `bearer` */
    tide_text bearer;     /* borrowed: of a sign-in that is not stored yet */
    bool no_token;        /* the server wants none: neither of the two */
    /* The header that has the token, alone; borrowed.  NULL: Authorization, after "Bearer". */
    const char *token_header;
    tide_world *world;    /* for calls without a job; else NULL */
    uint32_t patience_ms; /* API6 */
};
/* TIDE_INVALID: the endpoint is not such an address. */
tide_status tide_api_open(const struct tide_api_options *options, tide_mem *mem, tide_api **api_out,
                          tide_error *err);
void tide_api_close(tide_api *api); /* NULL is fine */
const struct tide_provider_net *tide_api_provider(const tide_api *api);
tide_mem *tide_api_mem(const tide_api *api);

/* Whether to make a call again that ended with `rc`: it was TIDE_AGAIN, its units come within
 * `patience_ms`, and a part of that time was slept now. */
bool tide_api_wait(tide_job *job, tide_status rc, uint32_t patience_ms);

/* The path of a link that the server named, for a call of its own.  TIDE_SERVER: the link is not at
 * the endpoint's origin, so that no token may go there.  Borrowed from the link. */
tide_status tide_api_path_of(const tide_api *api, const char *link, const char **path_out,
                             tide_error *err);

enum { TIDE_API_HEADERS_MAX = 4 };

struct tide_api_call {
    uint32_t method;  /* index into the provider's methods */
    const char *verb; /* NULL: the method's */
    const char *path; /* from the root, with parameters, escaped (base/encode.h) */
    /* Instead of `path`: an absolute URL that is signed by itself (API4).  TIDE_SERVER: it is not
     * https, and the endpoint is. */
    const char *url;
    const struct tide_header *headers; /* of this call alone, TIDE_API_HEADERS_MAX at most */
    size_t headers_count;
    tide_text body;
    const char *type; /* of the body; NULL: JSON, if there is a body */
    tide_source_read *source;
    void (*rewind)(void *source_arg);
    void *source_arg;
    uint64_t source_bytes;
    /* Takes the body of a 2xx answer; NULL: the response collects it.  Any other body is
     * collected as far as a judge needs it. */
    tide_sink_write *sink;
    void (*restart)(void *sink_arg); /* NULL: not needed */
    void *sink_arg;
    uint64_t answer_bytes_max;
    uint32_t stall_timeout_ms, total_timeout_ms; /* 0: as in tidemark/http.h */
    const tide_cancel *cancel;                   /* of a call without a job; may be NULL */

    /* A batch: `parts` calls in one POST, which may be repeated.  0: a single call. */
    uint32_t parts, units;
    /* Judges the content of a 2xx answer; NULL: the provider's judge is enough. */
    tide_judge_with *judge;
    void *judge_arg;
};
/* `job` NULL: outside of the engine, charged to no account.  `response` is initialised; it has
 * the last answer.  Returns what tide_tokens_get(), tide_job_call() and the judges return. */
tide_status tide_api_call(tide_api *api, tide_job *job, const struct tide_api_call *call,
                          struct tide_response *response, tide_error *err);

#endif
