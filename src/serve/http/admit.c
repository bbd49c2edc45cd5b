/* admit.c - the verdict on a head. */
#include "base/check.h"
#include "base/text.h"
#include "serve/http/route.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static void refuse(struct tide_httpd_verdict *verdict, int status, const char *code,
                   const char *detail)
{
    verdict->status = status;
    verdict->code = code;
    verdict->detail = detail;
}

/* ---- ADM1 ---- */

static bool port_is_valid(tide_text port)
{
    uint64_t number = 0;
    return port.bytes >= 1 && port.bytes <= 5 && tide_text_to_u64(port, &number) && number >= 1 &&
           number <= 65535;
}

static bool host_is_ours(const struct tide_httpd_head *head)
{
    static const char ours[] = "127.0.0.1";
    const size_t bytes = sizeof ours - 1;
    const tide_text host = tide_httpd_header(head, "host");
    if (tide_httpd_header_count(head, "host") != 1 || host.bytes < bytes ||
        memcmp(host.data, ours, bytes) != 0)
        return false;
    return host.bytes == bytes ||
           (host.data[bytes] == ':' &&
            port_is_valid((tide_text){host.data + bytes + 1, host.bytes - bytes - 1}));
}

/* ---- ADM2 ---- */

static bool origin_is_ours(const struct tide_httpd_head *head)
{
    static const char scheme[] = "http://";
    const size_t bytes = sizeof scheme - 1;
    const tide_text origin = tide_httpd_header(head, "origin");
    if (origin.data == NULL)
        return true;
    return tide_httpd_header_count(head, "origin") == 1 && origin.bytes > bytes &&
           memcmp(origin.data, scheme, bytes) == 0 &&
           tide_text_equal((tide_text){origin.data + bytes, origin.bytes - bytes},
                           tide_httpd_header(head, "host"));
}

static bool site_is_ours(const struct tide_httpd_head *head)
{
    const size_t count = tide_httpd_header_count(head, "sec-fetch-site");
    return count == 0 || (count == 1 && tide_text_equal(tide_httpd_header(head, "sec-fetch-site"),
                                                        TIDE_TEXT("same-origin")));
}

/* ---- ADM3 ---- */

tide_text tide_httpd_credentials(const struct tide_httpd_head *head, const char *scheme)
{
    const size_t bytes = strlen(scheme);
    const tide_text value = tide_httpd_header(head, "authorization");
    if (tide_httpd_header_count(head, "authorization") != 1 || value.bytes <= bytes + 1 ||
        strncasecmp(value.data, scheme, bytes) != 0 || value.data[bytes] != ' ')
        return TIDE_TEXT_NONE;
    return (tide_text){value.data + bytes + 1, value.bytes - bytes - 1};
}

static bool authorize(const struct tide_httpd_head *head, tide_httpd_authorize *look, void *arg,
                      struct tide_httpd_verdict *verdict)
{
    const tide_text key = tide_httpd_credentials(head, "Bearer");
    if (key.data == NULL || look == NULL || !look(arg, key, &verdict->who)) {
        refuse(verdict, 401, "key", "This needs a key that is known here.");
        return false;
    }
    if (verdict->who.scope < verdict->route->scope) {
        refuse(verdict, 403, "scope", "The scope of this key does not include this.");
        return false;
    }
    return true;
}

/* ---- ADM4 ---- */

static bool type_is_json(const struct tide_httpd_head *head)
{
    static const char json[] = "application/json";
    const size_t bytes = sizeof json - 1;
    const tide_text type = tide_httpd_header(head, "content-type");
    return tide_httpd_header_count(head, "content-type") == 1 && type.bytes >= bytes &&
           strncasecmp(type.data, json, bytes) == 0 &&
           (type.bytes == bytes || type.data[bytes] == ';' || type.data[bytes] == ' ');
}

/* A length said twice, in two ways, or in another coding would let two readers of the same bytes
 * see two different requests. */
static bool length_is_clear(const struct tide_httpd_head *head, struct tide_httpd_verdict *verdict,
                            uint64_t *bytes_out, bool *has_out)
{
    const size_t lengths = tide_httpd_header_count(head, "content-length");
    const size_t codings = tide_httpd_header_count(head, "transfer-encoding");
    *bytes_out = 0;
    *has_out = lengths + codings > 0;
    if (codings > 0 && !tide_httpd_word_is(tide_httpd_header(head, "transfer-encoding"), "chunked"))
        refuse(verdict, 501, "coding", "Of the transfer codings only chunked is known.");
    else if (lengths + codings > 1)
        refuse(verdict, 400, "length", "The length of the body is said twice.");
    else if (lengths == 1 &&
             !tide_text_to_u64(tide_httpd_header(head, "content-length"), bytes_out))
        refuse(verdict, 400, "length", "The length of the body is not a number.");
    return verdict->status == 0;
}

static bool body_is_allowed(const struct tide_httpd_head *head, struct tide_httpd_verdict *verdict)
{
    const struct tide_httpd_route *route = verdict->route;
    const bool takes = strcmp(route->method, "POST") == 0 || strcmp(route->method, "PUT") == 0;
    uint64_t bytes;
    bool has;
    if (!length_is_clear(head, verdict, &bytes, &has))
        return false;
    if (!takes) {
        if (has && (bytes > 0 || tide_httpd_header_count(head, "transfer-encoding") > 0))
            refuse(verdict, 400, "body", "This request takes no body.");
        return verdict->status == 0;
    }
    verdict->body_bytes_max =
        route->body_bytes_max == 0 ? TIDE_HTTPD_BODY_BYTES_MAX : route->body_bytes_max;
    if (!(route->flags & TIDE_HTTPD_ANY_TYPE) && !type_is_json(head))
        refuse(verdict, 415, "type", "The body must be application/json.");
    else if (bytes > verdict->body_bytes_max)
        refuse(verdict, 413, "size", "The body is too large.");
    return verdict->status == 0;
}

/* ---- ADM6 ---- */

static bool once_is_valid(const struct tide_httpd_head *head)
{
    const tide_text key = tide_httpd_header(head, "idempotency-key");
    if (tide_httpd_header_count(head, "idempotency-key") != 1 || key.bytes == 0 ||
        key.bytes > TIDE_HTTPD_ONCE_BYTES_MAX)
        return false;
    for (size_t i = 0; i < key.bytes; i++)
        if (key.data[i] <= ' ' || key.data[i] > '~')
            return false;
    return true;
}

static bool needs_once(const struct tide_httpd_route *route)
{
    return strcmp(route->method, "POST") == 0 && !(route->flags & TIDE_HTTPD_REPEATS);
}

/* ---- ADM5 ---- */

static bool method_is(const struct tide_httpd_route *route, tide_text method)
{
    const tide_text have = tide_text_of(route->method);
    return tide_text_equal(have, method) ||
           (tide_text_equal(method, TIDE_TEXT("HEAD")) && tide_text_equal(have, TIDE_TEXT("GET")));
}

static void allow_add(struct tide_httpd_verdict *verdict, const char *method)
{
    const size_t bytes = strlen(verdict->allow);
    (void)snprintf(verdict->allow + bytes, sizeof verdict->allow - bytes, "%s%s",
                   bytes == 0 ? "" : ", ", method);
    if (strcmp(method, "GET") == 0)
        allow_add(verdict, "HEAD");
}

/* Finds the route; what the path has for other methods is in verdict->allow. */
static bool find_route(const struct tide_httpd_route *routes, size_t count,
                       const struct tide_httpd_head *head, struct tide_httpd_verdict *verdict)
{
    const tide_text path = tide_httpd_path(head->target);
    for (size_t i = 0; i < count; i++) {
        tide_text parts[TIDE_HTTPD_PARTS_MAX] = {{NULL, 0}};
        if (!tide_httpd_match(routes[i].path, path, parts))
            continue;
        if (method_is(&routes[i], head->method)) {
            verdict->route = &routes[i];
            verdict->allow[0] = '\0';
            memcpy(verdict->parts, parts, sizeof parts);
            return true;
        }
        allow_add(verdict, routes[i].method);
    }
    return false;
}

static void refuse_method(struct tide_httpd_verdict *verdict)
{
    if (verdict->allow[0] == '\0')
        allow_add(verdict, "GET");
    refuse(verdict, 405, "method", "This path does not have that method.");
}

void tide_httpd_admit(const struct tide_httpd_route *routes, size_t routes_count,
                      const struct tide_httpd_head *head, tide_httpd_authorize *look,
                      void *look_arg, struct tide_httpd_verdict *verdict)
{
    memset(verdict, 0, sizeof *verdict);
    const bool any_host = routes_count > 0 && routes[0].flags & TIDE_HTTPD_ANY_HOST;
    if (any_host ? tide_httpd_header_count(head, "host") != 1 : !host_is_ours(head)) {
        refuse(verdict, 421, "host", "Only 127.0.0.1 is served here.");
        return;
    }
    if (head->target.bytes == 0 || head->target.data[0] != '/') {
        if (tide_text_equal(head->method, TIDE_TEXT("OPTIONS")))
            refuse_method(verdict);
        else
            refuse(verdict, 400, "target", "The target must be a path.");
        return;
    }
    const bool found = find_route(routes, routes_count, head, verdict);
    const bool anywhere = found && (verdict->route->flags & TIDE_HTTPD_ANYWHERE) != 0;
    if (tide_text_equal(head->method, TIDE_TEXT("OPTIONS")))
        refuse_method(verdict);
    else if (!anywhere && !origin_is_ours(head))
        refuse(verdict, 403, "origin", "Another site may not ask this.");
    else if (!anywhere && !site_is_ours(head))
        refuse(verdict, 403, "site", "Another site may not ask this.");
    else if (!found && verdict->allow[0] != '\0')
        refuse_method(verdict);
    else if (!found)
        refuse(verdict, 404, "path", "There is nothing here.");
    if (verdict->status != 0)
        return;
    if (verdict->route->scope != TIDE_HTTPD_NONE && !authorize(head, look, look_arg, verdict))
        return;
    if (!body_is_allowed(head, verdict))
        return;
    if (needs_once(verdict->route) && !once_is_valid(head)) {
        refuse(verdict, 400, "idempotency_key",
               "Send one Idempotency-Key of 1 to 128 visible characters.");
        return;
    }
    verdict->head = tide_text_equal(head->method, TIDE_TEXT("HEAD"));
}
