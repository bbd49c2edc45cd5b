/* answer.h - what a handler is asked, and what it answers.
 *
 * Invariants:
 *   ANS1  an answer that ran out of memory, or that no handler filled, is sent as a 500 with a
 *         problem: a client never gets half of one.
 *   ANS2  an error is application/problem+json (RFC 9457) with `code` for programs, `detail` for
 *         people and, where they exist, `help` (what to do) and `until` (when it ends by itself).
 */
#ifndef TIDE_SERVE_HTTP_ANSWER_H
#define TIDE_SERVE_HTTP_ANSWER_H

#include "base/buf.h"
#include "base/json.h"
#include "serve/http/route.h"
#include "world/world.h"

enum {
    TIDE_HTTPD_ANSWER_BYTES_MAX = 32 << 20,
    TIDE_HTTPD_ANSWER_HEADERS_MAX = 6,
    TIDE_HTTPD_ANSWER_HEADER_BYTES_MAX = 512,
};

/* Borrowed for the length of the handler. */
struct tide_httpd_request {
    const struct tide_httpd_route *route;
    const struct tide_httpd_head *head;
    const struct tide_httpd_who *who;
    tide_text parts[TIDE_HTTPD_PARTS_MAX]; /* decoded; tide_httpd_part() */
    const struct tide_httpd_pair *params;  /* decoded; tide_httpd_param() */
    size_t params_count;
    tide_text body;
    uint64_t asked_unix_ms; /* with an Idempotency-Key: when it came first, maybe before a crash */
    /* READER and FETCH only: set when the time is over, the client is gone or the server stops.  The
     * handler ends soon then; nobody reads its answer. */
    const tide_cancel *cancel;
    uint64_t deadline_us;
    /* MEMORY only, see tide_httpd_hold(): kept from one call to the next, 0 at first. */
    uint64_t *held;
    bool last; /* the time is over or the server stops: it cannot be held again */
};

/* The part of the path with that name, which the route must have. */
tide_text tide_httpd_part(const struct tide_httpd_request *request, const char *name);
/* The first parameter of the query with that name; .data is NULL if there is none. */
tide_text tide_httpd_param(const struct tide_httpd_request *request, const char *name);

struct tide_httpd_answer {
    int status;           /* 0: not answered yet */
    const char *type;     /* Content-Type; the texts here are constants */
    const char *encoding; /* Content-Encoding; NULL: none */
    const char *csp;      /* NULL: nothing may be loaded or framed */
    bool immutable;       /* under /app: cached for good */
    tide_buf body;
    tide_text borrowed; /* instead of `body`: bytes that outlive the server */
    uint32_t hold_ms;
    bool failed; /* sticky (ANS1) */
    struct {
        const char *name;
        char value[TIDE_HTTPD_ANSWER_HEADER_BYTES_MAX];
    } headers[TIDE_HTTPD_ANSWER_HEADERS_MAX];
    size_t headers_count;
};

void tide_httpd_answer_init(struct tide_httpd_answer *answer, tide_mem *mem);
void tide_httpd_answer_done(struct tide_httpd_answer *answer);
void tide_httpd_answer_clear(struct tide_httpd_answer *answer); /* keeps the memory of the body */

/* Adds a header.  A value with a control character, or too long, fails the answer (ANS1). */
void tide_httpd_set(struct tide_httpd_answer *answer, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Answers with a JSON value and frees it, also when that fails. */
void tide_httpd_json(struct tide_httpd_answer *answer, int status, tide_json *json);
/* Answers with a copy of `text`. */
void tide_httpd_text(struct tide_httpd_answer *answer, int status, const char *type,
                     tide_text text);

/* What can be said of a failure beyond its sentence. */
struct tide_httpd_problem {
    const char *help;       /* what to do; NULL: nothing */
    uint64_t until_unix_ms; /* 0: unknown */
    uint32_t retry_after_s; /* 0: no Retry-After */
};
/* Replaces whatever was answered.  `more` may be NULL. */
void tide_httpd_fail(struct tide_httpd_answer *answer, int status, const char *code,
                     const char *detail, const struct tide_httpd_problem *more);

/* MEMORY only: nothing to say yet.  The server calls the handler again, with the same *held, after
 * tide_httpd_wake(), or with `last` after `hold_ms`. */
void tide_httpd_hold(struct tide_httpd_answer *answer, uint32_t hold_ms);

/* What is sent: the body or what is borrowed. */
tide_text tide_httpd_answer_body(const struct tide_httpd_answer *answer);

#endif
