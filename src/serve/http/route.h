/* route.h - the table of routes, and what admits a request to one of them.
 *
 * A page of another site can make a browser send requests here, and another user of this machine
 * can send any bytes at all.  Everything that separates them from the person at the page is in
 * tide_httpd_admit(), one pure function: a head goes in, a verdict comes out.  No handler runs, and
 * no byte of a body is read, before it said yes.
 *
 * Invariants; each is a row of tests/unit/serve/httpd_admit_test.c:
 *   ADM1  Host is there once and is 127.0.0.1 with or without a port; else 421.  So a foreign name
 *         that resolves to this machine (DNS rebinding) reaches nothing.  Not for
 *         TIDE_HTTPD_ANY_HOST, which needs one Host of any name.
 *   ADM2  but for routes marked TIDE_HTTPD_ANYWHERE, Origin is absent or http:// and Host, and
 *         Sec-Fetch-Site is absent or same-origin; else 403.  Another port of this machine is another
 *         origin.
 *   ADM3  a scope other than NONE needs `Authorization: Bearer KEY`, once; nothing else carries a
 *         key: no cookie, no query.  Absent or unknown: 401; too small a scope: 403.
 *   ADM4  a body comes only with POST and PUT, as application/json unless the route takes any
 *         type, and never longer than the route allows, as far as its length is announced.
 *   ADM5  a method that the path does not have is 405 with Allow; OPTIONS always is.  HEAD is
 *         admitted where GET is.
 *   ADM6  a POST has one Idempotency-Key of 1 to 128 visible characters, unless the route says
 *         that it needs none.
 *   ADM7  the refusal says nothing that depends on the key or on stored data.
 */
#ifndef TIDE_SERVE_HTTP_ROUTE_H
#define TIDE_SERVE_HTTP_ROUTE_H

#include "serve/http/head.h"

enum {
    TIDE_HTTPD_PARTS_MAX = 4,
    TIDE_HTTPD_ROUTES_MAX = 128,
    TIDE_HTTPD_NAME_BYTES_MAX = 64,
    TIDE_HTTPD_ONCE_BYTES_MAX = 128,
    TIDE_HTTPD_BODY_BYTES_MAX = 1 << 20,
};

/* Each includes those before it.  Mail needs WORK; PAGE is what a paired browser has. */
typedef enum tide_httpd_scope {
    TIDE_HTTPD_NONE,
    TIDE_HTTPD_METRICS,
    TIDE_HTTPD_LOOK,
    TIDE_HTTPD_WORK,
    TIDE_HTTPD_PAGE,
} tide_httpd_scope;

typedef enum tide_httpd_way {
    TIDE_HTTPD_MEMORY, /* on the server's thread: no disk, no lock that is held over one */
    TIDE_HTTPD_READER, /* on a reader's thread, for two seconds at most */
    TIDE_HTTPD_FETCH,  /* the same on a thread of its own kind, which may wait for the network */
    TIDE_HTTPD_STREAM, /* server-sent events; no handler */
} tide_httpd_way;

enum {
    TIDE_HTTPD_ANYWHERE = 1, /* any site may link here: `/` and `/healthz` */
    TIDE_HTTPD_REPEATS = 2,  /* a POST that needs no Idempotency-Key */
    TIDE_HTTPD_ANY_TYPE = 4, /* a body of any content type */
    /* Behind a proxy or a tunnel that has a name: a webhook.  All routes of a server have it or
     * none, so that what is exposed exposes nothing else. */
    TIDE_HTTPD_ANY_HOST = 8,
};

struct tide_httpd_request;
struct tide_httpd_answer;
typedef void tide_httpd_handler(void *arg, const struct tide_httpd_request *request,
                                struct tide_httpd_answer *answer);

struct tide_httpd_route {
    const char *method; /* GET, POST, PUT, DELETE */
    const char *path;   /* "/api/v1/jobs/{job}/why": a part in braces is one segment, not empty */
    tide_httpd_scope scope;
    tide_httpd_way way;
    tide_httpd_handler *handler;
    void *arg;
    unsigned flags;
    uint32_t body_bytes_max; /* 0: TIDE_HTTPD_BODY_BYTES_MAX */
};

/* Whose key it was.  id 0: nobody's, the route has scope NONE. */
struct tide_httpd_who {
    uint64_t id;
    tide_httpd_scope scope;
    char name[TIDE_HTTPD_NAME_BYTES_MAX];
};

/* Looks a key up.  false: unknown, expired or revoked.  It is called on the server's thread, so it
 * answers from memory, in a time that does not depend on `key`. */
typedef bool tide_httpd_authorize(void *arg, tide_text key, struct tide_httpd_who *who_out);

struct tide_httpd_verdict {
    int status;                            /* 0: admitted */
    const char *code;                      /* a constant for programs: "host" */
    const char *detail;                    /* a constant for people */
    char allow[48];                        /* of a 405 */
    const struct tide_httpd_route *route;  /* when admitted */
    tide_text parts[TIDE_HTTPD_PARTS_MAX]; /* of the path, still encoded */
    struct tide_httpd_who who;
    uint64_t body_bytes_max; /* 0: it has none */
    bool head;               /* HEAD: the body is left out */
};

void tide_httpd_admit(const struct tide_httpd_route *routes, size_t routes_count,
                      const struct tide_httpd_head *head, tide_httpd_authorize *authorize,
                      void *authorize_arg, struct tide_httpd_verdict *verdict_out);

/* Whether the path fits the pattern, and the parts of it that are in braces. */
bool tide_httpd_match(const char *pattern, tide_text path,
                      tide_text parts_out[TIDE_HTTPD_PARTS_MAX]);
/* Which part of a pattern has that name; TIDE_HTTPD_PARTS_MAX: none. */
size_t tide_httpd_part_at(const char *pattern, const char *name);

/* What follows the scheme of an Authorization header that is there once; .data is NULL otherwise. */
tide_text tide_httpd_credentials(const struct tide_httpd_head *head, const char *scheme);

#endif
