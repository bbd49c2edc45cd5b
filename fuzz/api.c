/* api.c - the handlers of `tidemark serve`: /api/v1, /v/CAP/ and the rest of its table of routes, on a
 * small home (api/home.h).
 *
 * An input is a few requests, separated by lines of three dashes:
 *
 *     work POST /api/v1/jobs/retry key-1       scope, method, target, Idempotency-Key
 *     {"ids":[3]}                              the body
 *     ---
 *     mail                                     stores this message as "given"
 *     Subject: hello
 *     ---
 *     none GET /v/CAP/html                     CAP is that of the last answer that had a view
 *     ---
 *     none GET /app/DIGEST/app.js              DIGEST is that of the page's files
 *
 * The scope is that of a key of the home, `other` an unknown key, or `pairing`: the ticket of the last
 * answer that had one.  A target `@X1/2?q=3` is the route with number X of the table, its parts 1 and 2.
 *
 * Requests are admitted and taken apart as the server does.  Every answer holds what api/check.h says,
 * a GET changes nothing, and a POST with the key of an earlier one gets its answer again.  The seeds
 * reach every route of the table, and each handler answers one of them with success. */
#include "api/check.h"
#include "api/home.h"
#include "fuzz.h"

#include "cli/serve/api.h"
#include "serve/access/keys.h"
#include "serve/http/site.h"

#include <stdio.h>

enum { REQUESTS_MAX = 8, TEXT_BYTES = 200, ATTEMPTS = 4 };

static struct {
    struct cli_serve *serve;
    bool reached[CLI_SERVE_ROUTES_MAX]; /* by any input */
    bool succeeded[CLI_SERVE_ROUTES_MAX];
    tide_text input;
    bool shows; /* FUZZ_SHOW */
    bool quiet; /* of this input: no POST yet, whose job may run now */
    char cap[TEXT_BYTES], ticket[TEXT_BYTES];
} api;

/* One request; what it points to is freed by its end. */
struct asked {
    tide_text scope, method, key, body;
    char target[TIDE_HTTPD_TARGET_BYTES_MAX + 1];
    char authorization[TEXT_BYTES + 16];
    char length[24];
    struct tide_httpd_pair headers[5];
    struct tide_httpd_pair params[TIDE_HTTPD_PARAMS_MAX];
    char decoded[TIDE_HTTPD_TARGET_BYTES_MAX + 1];
    struct tide_httpd_head head;
    struct tide_httpd_verdict verdict;
    struct tide_httpd_request request;
    struct tide_httpd_answer answer;
    tide_cancel cancel;
    uint64_t held;
};

/* ---- the target ---- */

static void target_add(struct asked *asked, tide_text text)
{
    const size_t used = strlen(asked->target);
    if (used + text.bytes < sizeof asked->target && memchr(text.data, '\0', text.bytes) == NULL) {
        memcpy(asked->target + used, text.data, text.bytes);
        asked->target[used + text.bytes] = '\0';
    }
}

/* The path of a route, with these parts in the place of its braces. */
static void target_of_route(struct asked *asked, struct fuzz_input parts)
{
    const size_t number = fuzz_u8(&parts) % api.serve->routes_count;
    const char *pattern = api.serve->routes[number].path;
    tide_text query = {(const char *)parts.data, parts.bytes};
    struct fuzz_input path = {parts.data, 0};
    path.bytes = fuzz_text(&parts, '?').bytes;
    query.data += path.bytes;
    query.bytes -= path.bytes;
    for (const char *brace = strchr(pattern, '{'); brace != NULL; brace = strchr(pattern, '{')) {
        target_add(asked, (tide_text){pattern, (size_t)(brace - pattern)});
        target_add(asked, fuzz_text(&path, '/'));
        pattern = strchr(brace, '}') + 1;
    }
    target_add(asked, tide_text_of(pattern));
    target_add(asked, query);
}

/* Names that no seed can know: "/v/CAP/html", "/app/DIGEST/app.js". */
static void target_make(struct asked *asked, tide_text text)
{
    const struct {
        tide_text name;
        const char *means;
    } names[] = {
        {TIDE_TEXT("/v/CAP/"), api.cap}, {TIDE_TEXT("/app/DIGEST"), "/app/"}, {TIDE_TEXT(""), ""}};
    if (text.bytes > 0 && text.data[0] == '@') {
        target_of_route(asked, (struct fuzz_input){(const uint8_t *)text.data + 1, text.bytes - 1});
        return;
    }
    size_t i = 0;
    while (text.bytes < names[i].name.bytes ||
           memcmp(text.data, names[i].name.data, names[i].name.bytes) != 0)
        i++;
    target_add(asked, tide_text_of(names[i].means));
    if (i == 1)
        target_add(asked, tide_text_of(tide_httpd_site_page.digest));
    target_add(asked,
               (tide_text){text.data + names[i].name.bytes, text.bytes - names[i].name.bytes});
}

/* ---- the head ---- */

static const char *key_of(tide_text scope)
{
    tide_httpd_scope found = TIDE_HTTPD_NONE;
    if (tide_key_scope_parse(scope, &found))
        return home_key(found);
    return tide_text_equal(scope, TIDE_TEXT("other"))
               ? "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
               : NULL;
}

static void header_add(struct asked *asked, const char *name, tide_text value)
{
    asked->headers[asked->head.headers_count++] =
        (struct tide_httpd_pair){tide_text_of(name), value};
}

static void head_make(struct asked *asked)
{
    const char *key = key_of(asked->scope);
    if (key != NULL)
        (void)snprintf(asked->authorization, sizeof asked->authorization, "Bearer %s", key);
    else if (tide_text_equal(asked->scope, TIDE_TEXT("pairing")))
        (void)snprintf(asked->authorization, sizeof asked->authorization, "Pairing %s", api.ticket);
    asked->head = (struct tide_httpd_head){
        .method = asked->method, .target = tide_text_of(asked->target), .headers = asked->headers};
    header_add(asked, "Host", TIDE_TEXT("127.0.0.1"));
    if (asked->authorization[0] != '\0')
        header_add(asked, "Authorization", tide_text_of(asked->authorization));
    if (asked->key.bytes > 0)
        header_add(asked, "Idempotency-Key", asked->key);
    const bool puts = tide_text_equal(asked->method, TIDE_TEXT("PUT"));
    if (!puts && !tide_text_equal(asked->method, TIDE_TEXT("POST")))
        return; /* a body without a length is none */
    (void)snprintf(asked->length, sizeof asked->length, "%zu", asked->body.bytes);
    const bool file = puts && strstr(asked->target, "/attachments/") != NULL;
    header_add(asked, "Content-Type",
               file ? TIDE_TEXT("application/octet-stream") : TIDE_TEXT("application/json"));
    header_add(asked, "Content-Length", tide_text_of(asked->length));
}

/* As serve/http/exchange.c: parts and parameters are decoded in a copy.  false: a 400. */
static bool target_read(struct asked *asked)
{
    const tide_text target = asked->head.target;
    const size_t path_bytes = tide_httpd_path(target).bytes;
    struct tide_httpd_request *request = &asked->request;
    memcpy(asked->decoded, target.data, target.bytes);
    for (size_t i = 0; i < TIDE_HTTPD_PARTS_MAX && asked->verdict.parts[i].data != NULL; i++) {
        const tide_text part = asked->verdict.parts[i];
        char *at = asked->decoded + (part.data - target.data);
        request->parts[i].data = at;
        if (!tide_httpd_decode(at, part.bytes, false, &request->parts[i].bytes))
            return false;
    }
    request->params = asked->params;
    return path_bytes == target.bytes ||
           tide_httpd_query_read(asked->decoded + path_bytes + 1, target.bytes - path_bytes - 1,
                                 asked->params, &request->params_count);
}

static void request_make(struct asked *asked)
{
    struct tide_httpd_request *request = &asked->request;
    request->route = asked->verdict.route;
    request->head = &asked->head;
    request->who = &asked->verdict.who;
    request->body = asked->body;
    request->cancel = &asked->cancel;
    request->deadline_us = tide_world_now_us(api.serve->cli->world) + 2000000;
    request->held = &asked->held;
    request->last = true;
}

/* ---- the call ---- */

static void handle(struct asked *asked)
{
    const struct tide_httpd_route *route = asked->verdict.route;
    route->handler(route->arg, &asked->request, &asked->answer);
}

/* A digest that is equal for equal requests. */
static void digest_of(const struct asked *asked, unsigned char digest_out[32])
{
    const tide_text texts[] = {asked->method, asked->head.target, asked->body};
    memset(digest_out, 0, 32);
    for (size_t i = 0, at = 0; i < 3; i++, at++)
        for (size_t k = 0; k < texts[i].bytes; k++, at++)
            digest_out[at % 32] = (unsigned char)(digest_out[at % 32] * 31 + texts[i].data[k] + 1);
}

/* As serve/http/readers.c.  What was answered once is answered again, whatever happened since. */
static void handle_once(struct asked *asked)
{
    unsigned char digest[32];
    struct tide_httpd_answer again;
    uint64_t again_unix_ms = 0;
    digest_of(asked, digest);
    const tide_httpd_again first =
        cli_once_begin(api.serve, &asked->verdict.who, asked->key, digest, &asked->answer,
                       &asked->request.asked_unix_ms);
    TIDE_ASSERT(first == TIDE_HTTPD_FIRST || first == TIDE_HTTPD_STORED ||
                first == TIDE_HTTPD_OTHER);
    if (first == TIDE_HTTPD_OTHER)
        tide_httpd_fail(&asked->answer, 422, "idempotency_key", "used", NULL);
    if (first != TIDE_HTTPD_FIRST)
        return;
    handle(asked);
    cli_once_end(api.serve, &asked->verdict.who, asked->key, &asked->answer);
    tide_httpd_answer_init(&again, tide_mem_heap());
    const tide_httpd_again second =
        cli_once_begin(api.serve, &asked->verdict.who, asked->key, digest, &again, &again_unix_ms);
    if (second == TIDE_HTTPD_FIRST) /* a 5xx is no answer */
        cli_once_end(api.serve, &asked->verdict.who, asked->key, &asked->answer);
    else
        TIDE_ASSERT(second == TIDE_HTTPD_STORED && again.status == asked->answer.status &&
                    tide_text_equal(tide_httpd_answer_body(&again),
                                    tide_httpd_answer_body(&asked->answer)));
    TIDE_ASSERT((second == TIDE_HTTPD_STORED) == (asked->answer.status < 500));
    tide_httpd_answer_done(&again);
}

/* What a client takes from an answer. */
static void remember(const struct asked *asked)
{
    json_t *json = NULL;
    if (asked->answer.status >= 400 || strcmp(asked->answer.type, "application/json") != 0 ||
        tide_json_parse(tide_httpd_answer_body(&asked->answer), &json, NULL) != TIDE_OK)
        return;
    const char *path = json_string_value(json_object_get(json_object_get(json, "view"), "path"));
    const char *ticket = json_string_value(json_object_get(json, "ticket"));
    if (path != NULL)
        (void)snprintf(api.cap, sizeof api.cap, "%s", path);
    if (ticket != NULL)
        (void)snprintf(api.ticket, sizeof api.ticket, "%s", ticket);
    json_decref(json);
}

/* A GET changes nothing.  The engine may, at any moment, but not each time. */
static void handle_get(struct asked *asked)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        const uint64_t before = home_version();
        tide_httpd_answer_clear(&asked->answer);
        handle(asked);
        if (!api.quiet || home_version() == before)
            return;
    }
    (void)fprintf(stderr, "GET %s changes the home\n", asked->target);
    abort();
}

/* For whoever writes a seed: FUZZ_SHOW=1 build/fuzz/replay_api fuzz/corpus/api/jobs */
static void show(const struct asked *asked)
{
    const tide_text body = tide_httpd_answer_body(&asked->answer);
    if (api.shows && asked->answer.encoding == NULL)
        (void)printf("%.*s %s\n%d %.*s\n", (int)asked->method.bytes, asked->method.data,
                     asked->target, asked->answer.status, (int)body.bytes, body.data);
}

static void ask_handler(struct asked *asked)
{
    const struct tide_httpd_route *route = asked->verdict.route;
    const size_t number = (size_t)(route - api.serve->routes);
    api.reached[number] = true;
    if (route->way == TIDE_HTTPD_STREAM) { /* it has no handler */
        api.succeeded[number] = true;
        return;
    }
    request_make(asked);
    const bool looks = strcmp(route->method, "GET") == 0;
    if (looks)
        handle_get(asked);
    else if (strcmp(route->method, "POST") == 0 && !(route->flags & TIDE_HTTPD_REPEATS))
        handle_once(asked);
    else
        handle(asked);
    api.quiet = api.quiet && looks;
    check_answer(&asked->request, api.input, &asked->answer);
    show(asked);
    api.succeeded[number] = api.succeeded[number] || asked->answer.status < 300;
    remember(asked);
}

/* ---- the input ---- */

static void ask(tide_text line, tide_text body)
{
    struct fuzz_input words = {(const uint8_t *)line.data, line.bytes};
    struct asked *asked = calloc(1, sizeof *asked);
    TIDE_ASSERT(asked != NULL);
    asked->scope = fuzz_text(&words, ' ');
    asked->method = fuzz_text(&words, ' ');
    target_make(asked, fuzz_text(&words, ' '));
    asked->key = fuzz_text(&words, ' ');
    asked->body = fuzz_exact(body);
    tide_httpd_answer_init(&asked->answer, tide_mem_heap());
    head_make(asked);
    tide_httpd_admit(api.serve->routes, api.serve->routes_count, &asked->head, tide_keys_authorize,
                     api.serve->keys, &asked->verdict);
    if (asked->verdict.status == 0 && target_read(asked))
        ask_handler(asked);
    tide_httpd_answer_done(&asked->answer);
    free((void *)(uintptr_t)asked->body.data);
    free(asked);
}

/* Everything up to the next line of dashes, which is skipped. */
static tide_text block_of(struct fuzz_input *input)
{
    static const char end[] = "\n---\n";
    const char *found =
        input->bytes == 0 ? NULL : memmem(input->data, input->bytes, end, sizeof end - 1);
    const size_t bytes = found == NULL ? input->bytes : (size_t)(found - (const char *)input->data);
    const tide_text block = {(const char *)input->data, bytes};
    const size_t used = found == NULL ? bytes : bytes + sizeof end - 1;
    input->data += used;
    input->bytes -= used;
    return block;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    api.shows = api.shows || getenv("FUZZ_SHOW") != NULL; /* home_open() clears the environment */
    api.serve = home_open();
    api.input = (tide_text){(const char *)data, bytes};
    api.quiet = true;
    (void)snprintf(api.cap, sizeof api.cap, "/v/00000000000000000000000000000000/");
    (void)snprintf(api.ticket, sizeof api.ticket, "none");
    for (int i = 0; i < REQUESTS_MAX && fuzz_more(&input); i++) {
        const tide_text block = block_of(&input);
        struct fuzz_input rest = {(const uint8_t *)block.data, block.bytes};
        const tide_text line = fuzz_text(&rest, '\n');
        const tide_text body = {(const char *)rest.data, rest.bytes};
        if (tide_text_equal(line, TIDE_TEXT("mail")))
            home_mail_put(body);
        else
            ask(line, body);
    }
    return 0;
}

bool fuzz_corpus_is_whole(void)
{
    bool whole = true;
    for (size_t i = 0; i < api.serve->routes_count; i++)
        if (!api.reached[i] || !api.succeeded[i]) {
            (void)fprintf(stderr, "no seed %s %s %s\n",
                          api.reached[i] ? "succeeds with" : "reaches", api.serve->routes[i].method,
                          api.serve->routes[i].path);
            whole = false;
        }
    return whole;
}
