/* forged.c - sixty requests that a stranger could make or have a browser make: twelve forgeries of each
 * of five requests.  Each differs in one thing from a request that is answered. */
#include "unit/serve/httpd/httpd_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct target {
    const char *method;
    const char *path; /* %s: the secret of the last one */
    const char *query;
    const char *body;
    bool cap; /* the secret is in the path */
};

static const struct target targets[] = {
    {"GET", "/api/v1/state", "", NULL, false},
    {"GET", "/api/v1/stream", "?topics=state", NULL, false},
    {"POST", "/api/v1/jobs/cancel", "", "{\"filter\":\"all\"}", false},
    {"POST", "/api/v1/mail/ada/actions", "", "{\"trash\":[1]}", false},
    {"GET", "/v/%s/html", "", NULL, true},
};
enum { TARGETS = sizeof targets / sizeof targets[0] };

/* What a request is made of; a forgery changes one of them. */
struct parts {
    const char *method;
    const char *secret; /* NULL: none */
    const char *query;  /* "?key=": the secret is there; "": nowhere */
    bool cookie;
    const char *hosts; /* lines */
    const char *origin;
    const char *site;
    const char *type;
    bool preflight;
};

static struct parts good(const struct fixture *fixture, const struct target *target)
{
    return (struct parts){.method = target->method,
                          .secret = target->cap ? CAP : fixture->key,
                          .hosts = "Host: 127.0.0.1:7433\r\n",
                          .origin = "http://127.0.0.1:7433",
                          .site = "same-origin",
                          .type = "application/json"};
}

typedef void forge(const struct fixture *fixture, const struct target *target, struct parts *parts);

static void no_key(const struct fixture *fixture, const struct target *target, struct parts *parts)
{
    (void)fixture, (void)target;
    parts->secret = NULL;
}
static void wrong_key(const struct fixture *fixture, const struct target *target,
                      struct parts *parts)
{
    (void)fixture, (void)target;
    parts->secret = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
}
static void revoked_key(const struct fixture *fixture, const struct target *target,
                        struct parts *parts)
{
    (void)target;
    parts->secret = fixture->revoked;
}
static void key_in_query(const struct fixture *fixture, const struct target *target,
                         struct parts *parts)
{
    (void)fixture, (void)target;
    parts->query = "key=";
}
static void key_in_cookie(const struct fixture *fixture, const struct target *target,
                          struct parts *parts)
{
    (void)fixture, (void)target;
    parts->cookie = true;
}
static void foreign_host(const struct fixture *fixture, const struct target *target,
                         struct parts *parts)
{
    (void)fixture, (void)target;
    parts->hosts = "Host: rebound.example:7433\r\n";
    parts->origin = NULL;
}
static void two_hosts(const struct fixture *fixture, const struct target *target,
                      struct parts *parts)
{
    (void)fixture, (void)target;
    parts->hosts = "Host: 127.0.0.1:7433\r\nHost: rebound.example\r\n";
}
static void foreign_origin(const struct fixture *fixture, const struct target *target,
                           struct parts *parts)
{
    (void)fixture, (void)target;
    parts->origin = "https://evil.example";
    parts->site = NULL;
}
static void null_origin(const struct fixture *fixture, const struct target *target,
                        struct parts *parts)
{
    (void)fixture, (void)target;
    parts->origin = "null";
    parts->site = NULL;
}
static void cross_site(const struct fixture *fixture, const struct target *target,
                       struct parts *parts)
{
    (void)fixture, (void)target;
    parts->site = "cross-site";
    parts->origin = NULL;
}
static void same_site(const struct fixture *fixture, const struct target *target,
                      struct parts *parts)
{
    (void)fixture, (void)target;
    parts->site = "same-site"; /* another port of this machine */
    parts->origin = NULL;
}
static void form_body(const struct fixture *fixture, const struct target *target,
                      struct parts *parts)
{
    (void)fixture;
    if (target->body != NULL)
        parts->type = "application/x-www-form-urlencoded";
    else
        parts->preflight = true; /* a GET has no body; what comes before it is refused */
}

static const struct {
    const char *name;
    forge *forge;
} forgeries[] = {
    {"no key", no_key},
    {"wrong key", wrong_key},
    {"revoked key", revoked_key},
    {"key in the query", key_in_query},
    {"key in a cookie", key_in_cookie},
    {"foreign host", foreign_host},
    {"two hosts", two_hosts},
    {"foreign origin", foreign_origin},
    {"null origin", null_origin},
    {"cross-site", cross_site},
    {"same-site", same_site},
    {"form body or preflight", form_body},
};
enum { FORGERIES = sizeof forgeries / sizeof forgeries[0] };

/* Where the secret belongs, unless it is elsewhere. */
static void write_request(const struct target *target, const struct parts *parts, char *out,
                          size_t room)
{
    const bool hidden = parts->query != NULL || parts->cookie || parts->secret == NULL;
    char path[256], query[256] = "", lines[1024] = "";
    if (target->cap && hidden)
        (void)snprintf(path, sizeof path, "/v/%s/html", parts->secret == NULL ? "" : "0");
    else if (target->cap)
        (void)snprintf(path, sizeof path, "/v/%s/html", parts->secret);
    else
        (void)snprintf(path, sizeof path, "%s", target->path);
    (void)snprintf(query, sizeof query, "%s%s%s%s", target->query,
                   parts->query == NULL ? "" : (target->query[0] == '\0' ? "?" : "&"),
                   parts->query == NULL ? "" : parts->query,
                   parts->query == NULL ? "" : parts->secret);
    size_t at = 0;
    if (!target->cap && !hidden)
        at += (size_t)snprintf(lines + at, sizeof lines - at, "Authorization: Bearer %s\r\n",
                               parts->secret);
    if (parts->cookie)
        at += (size_t)snprintf(lines + at, sizeof lines - at, "Cookie: key=%s; cap=%s\r\n",
                               parts->secret, parts->secret);
    if (parts->origin != NULL)
        at += (size_t)snprintf(lines + at, sizeof lines - at, "Origin: %s\r\n", parts->origin);
    if (parts->site != NULL)
        at +=
            (size_t)snprintf(lines + at, sizeof lines - at, "Sec-Fetch-Site: %s\r\n", parts->site);
    if (parts->preflight)
        at += (size_t)snprintf(lines + at, sizeof lines - at,
                               "Access-Control-Request-Method: GET\r\n"
                               "Access-Control-Request-Headers: authorization\r\n");
    if (target->body != NULL)
        at += (size_t)snprintf(lines + at, sizeof lines - at,
                               "Content-Type: %s\r\nIdempotency-Key: %d\r\nContent-Length: %zu\r\n",
                               parts->type, rand(), strlen(target->body));
    (void)snprintf(out, room, "%s %s%s HTTP/1.1\r\n%s%sConnection: close\r\n\r\n%s",
                   parts->preflight ? "OPTIONS" : parts->method, path, query, parts->hosts, lines,
                   target->body == NULL ? "" : target->body);
}

static void always_there(const struct reply *reply)
{
    assert_true(head_has(reply, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_true(head_has(reply, "\r\nReferrer-Policy: no-referrer\r\n"));
    assert_true(head_has(reply, "\r\nCross-Origin-Resource-Policy: same-origin\r\n"));
    assert_true(head_has(reply, "\r\nCross-Origin-Opener-Policy: same-origin\r\n"));
    assert_true(head_has(reply, "\r\nX-DNS-Prefetch-Control: off\r\n"));
    assert_true(head_has(reply, "\r\nCache-Control: no-store\r\n"));
    assert_true(head_has(reply, "\r\nContent-Security-Policy: default-src 'none'"));
    assert_false(head_has(reply, "Access-Control-"));
    assert_false(head_has(reply, "Set-Cookie"));
}

TEST(the_five_requests_are_answered_when_nothing_is_forged)
{
    struct fixture *fixture = fixture_start(NULL);
    for (size_t i = 0; i < TARGETS; i++) {
        char text[4096];
        struct reply reply;
        const struct parts parts = good(fixture, &targets[i]);
        const bool stream = strcmp(targets[i].path, "/api/v1/stream") == 0;
        write_request(&targets[i], &parts, text, sizeof text);
        const int before = atomic_load(&fixture->effects);
        if (stream) { /* it would not end */
            const int fd = client_connect(fixture);
            assert_true(client_send(fd, text, strlen(text)));
            assert_true(client_read_to(fd, "HTTP/1.1 200"));
            eventually(counts.streams == 1);
            (void)close(fd);
            eventually(counts.streams == 0);
            continue;
        }
        ask(fixture, &reply, "%s", text);
        assert_int_equal(reply.status, 200);
        always_there(&reply);
        assert_int_equal(atomic_load(&fixture->effects), before + 1);
        reply_done(&reply);
    }
    fixture_stop(fixture);
}

TEST(sixty_forged_requests_are_refused_and_do_nothing)
{
    struct fixture *fixture = fixture_start(NULL);
    int refused = 0;
    for (size_t i = 0; i < TARGETS; i++)
        for (size_t j = 0; j < FORGERIES; j++) {
            char text[4096];
            struct reply reply;
            struct tide_httpd_counts counts;
            struct parts parts = good(fixture, &targets[i]);
            forgeries[j].forge(fixture, &targets[i], &parts);
            write_request(&targets[i], &parts, text, sizeof text);
            ask(fixture, &reply, "%s", text);
            if (reply.status < 400 || reply.status > 499)
                fail_msg("%s, %s: %d", targets[i].path, forgeries[j].name, reply.status);
            always_there(&reply);
            assert_true(head_has(&reply, "\r\nContent-Type: application/problem+json\r\n"));
            assert_null(strstr(reply.body, fixture->key));
            assert_null(strstr(reply.body, CAP));
            assert_int_equal(atomic_load(&fixture->effects), 0);
            tide_httpd_count(fixture->server, &counts);
            assert_int_equal(counts.streams, 0);
            assert_int_equal(counts.body_bytes_peak, 0); /* no byte of a body was kept */
            reply_done(&reply);
            refused++;
        }
    assert_int_equal(refused, 60);
    fixture_stop(fixture);
}
