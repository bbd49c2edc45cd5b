/* httpd_request.c - any head, against the table of routes of a server with every sort of route.
 *
 * The first line is "METHOD TARGET", the others are headers, "name: value".  What is admitted must hold
 * what route.h promises (ADM1 to ADM6), checked here in another way than there. */
#include "fuzz.h"

#include "serve/http/route.h"

#include <ctype.h>

#define KEY "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static void handler(void *arg, const struct tide_httpd_request *request,
                    struct tide_httpd_answer *answer)
{
    (void)arg, (void)request, (void)answer;
}

static const struct tide_httpd_route routes[] = {
    {"GET", "/", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, handler, NULL, TIDE_HTTPD_ANYWHERE, 0},
    {"GET", "/app/{digest}/{file}", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, handler, NULL, 0, 0},
    {"GET", "/s", TIDE_HTTPD_LOOK, TIDE_HTTPD_READER, handler, NULL, 0, 0},
    {"GET", "/j/{job}/why", TIDE_HTTPD_PAGE, TIDE_HTTPD_READER, handler, NULL, 0, 0},
    {"POST", "/j/cancel", TIDE_HTTPD_WORK, TIDE_HTTPD_READER, handler, NULL, 0, 0},
    {"POST", "/p", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, handler, NULL, TIDE_HTTPD_REPEATS, 256},
    {"PUT", "/d/{draft}", TIDE_HTTPD_WORK, TIDE_HTTPD_READER, handler, NULL, TIDE_HTTPD_ANY_TYPE,
     1000},
};
enum { ROUTES = sizeof routes / sizeof routes[0] };

static bool look(void *arg, tide_text key, struct tide_httpd_who *who_out)
{
    *who_out = (struct tide_httpd_who){.id = 1, .scope = TIDE_HTTPD_WORK};
    *(bool *)arg = tide_text_equal(key, TIDE_TEXT(KEY));
    return *(bool *)arg;
}

/* The only value of that name; NULL unless there is exactly one. */
static const tide_text *only(const struct tide_httpd_head *head, const char *name, size_t *count)
{
    const tide_text *found = NULL;
    *count = 0;
    for (size_t i = 0; i < head->headers_count; i++) {
        const tide_text have = head->headers[i].name;
        size_t at = 0;
        while (at < have.bytes && name[at] != '\0' &&
               tolower((unsigned char)have.data[at]) == name[at])
            at++;
        if (at == have.bytes && name[at] == '\0') {
            found = &head->headers[i].value;
            ++*count;
        }
    }
    return *count == 1 ? found : NULL;
}

static void check_source(const struct tide_httpd_head *head)
{
    size_t count;
    const tide_text *host = only(head, "host", &count);
    const tide_text *origin = only(head, "origin", &count);
    TIDE_ASSERT(count == 0 || (origin != NULL && origin->bytes == host->bytes + 7 &&
                               memcmp(origin->data, "http://", 7) == 0 &&
                               memcmp(origin->data + 7, host->data, host->bytes) == 0));
    const tide_text *site = only(head, "sec-fetch-site", &count);
    TIDE_ASSERT(count == 0 || (site != NULL && tide_text_equal(*site, TIDE_TEXT("same-origin"))));
}

static void check_admitted(const struct tide_httpd_head *head,
                           const struct tide_httpd_verdict *verdict, bool known)
{
    const struct tide_httpd_route *route = verdict->route;
    size_t count;
    const tide_text *host = only(head, "host", &count);
    TIDE_ASSERT(host != NULL && host->bytes >= 9 && host->bytes <= 15);
    TIDE_ASSERT(memcmp(host->data, "127.0.0.1", 9) == 0);
    TIDE_ASSERT(host->bytes == 9 || host->data[9] == ':');
    TIDE_ASSERT(head->target.data[0] == '/');
    if (!(route->flags & TIDE_HTTPD_ANYWHERE))
        check_source(head);
    TIDE_ASSERT(route->scope == TIDE_HTTPD_NONE || (known && route->scope <= TIDE_HTTPD_WORK));
    const bool body = route->method[0] == 'P';
    TIDE_ASSERT(body == (verdict->body_bytes_max > 0));
    const tide_text *type = only(head, "content-type", &count);
    if (body && !(route->flags & TIDE_HTTPD_ANY_TYPE))
        TIDE_ASSERT(type != NULL && type->bytes >= 16 && (type->data[0] | 0x20) == 'a');
    (void)only(head, "content-length", &count);
    TIDE_ASSERT(count <= 1);
    (void)only(head, "idempotency-key", &count);
    TIDE_ASSERT(strcmp(route->method, "POST") != 0 || route->flags & TIDE_HTTPD_REPEATS ||
                count == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    struct tide_httpd_pair headers[TIDE_HTTPD_HEADERS_MAX];
    struct tide_httpd_head head = {.method = fuzz_exact(fuzz_text(&input, ' ')),
                                   .target = fuzz_exact(fuzz_text(&input, '\n')),
                                   .headers = headers};
    while (fuzz_more(&input) && head.headers_count < TIDE_HTTPD_HEADERS_MAX) {
        tide_text line = fuzz_text(&input, '\n');
        struct fuzz_input parts = {(const uint8_t *)line.data, line.bytes};
        headers[head.headers_count].name = fuzz_exact(fuzz_text(&parts, ':'));
        if (fuzz_more(&parts) && *parts.data == ' ')
            (void)fuzz_u8(&parts);
        headers[head.headers_count++].value =
            fuzz_exact((tide_text){(const char *)parts.data, parts.bytes});
    }
    struct tide_httpd_verdict verdict;
    bool known = false;
    tide_httpd_admit(routes, ROUTES, &head, look, &known, &verdict);
    if (verdict.status == 0)
        check_admitted(&head, &verdict, known);
    else
        TIDE_ASSERT(verdict.status >= 400 && verdict.status <= 501 && verdict.code != NULL &&
                    verdict.detail != NULL);
    TIDE_ASSERT(verdict.status != 405 || verdict.allow[0] != '\0');

    const tide_text query = tide_httpd_query(head.target);
    struct tide_httpd_pair params[TIDE_HTTPD_PARAMS_MAX];
    size_t count = 0;
    tide_text copy = fuzz_exact(query);
    if (tide_httpd_query_read((char *)(uintptr_t)copy.data, copy.bytes, params, &count))
        for (size_t i = 0; i < count; i++)
            TIDE_ASSERT(params[i].name.bytes + params[i].value.bytes <= query.bytes &&
                        memchr(params[i].value.data, '\0', params[i].value.bytes) == NULL);
    free((void *)(uintptr_t)copy.data);
    for (size_t i = 0; i < head.headers_count; i++) {
        free((void *)(uintptr_t)headers[i].name.data);
        free((void *)(uintptr_t)headers[i].value.data);
    }
    free((void *)(uintptr_t)head.method.data);
    free((void *)(uintptr_t)head.target.data);
    return 0;
}
