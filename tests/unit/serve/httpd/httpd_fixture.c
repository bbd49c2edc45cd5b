#include "unit/serve/httpd/httpd_fixture.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a store of keys in memory ---- */

static tide_status keys_load(void *arg, bool (*take)(void *take_arg, const struct tide_key *key),
                             void *take_arg, tide_error *err)
{
    (void)arg, (void)take, (void)take_arg, (void)err;
    return TIDE_OK;
}

static tide_status keys_add(void *arg, const struct tide_key *key, uint64_t gone, tide_error *err)
{
    (void)arg, (void)key, (void)gone, (void)err;
    return TIDE_OK;
}

static tide_status keys_revoke(void *arg, uint64_t id, uint64_t now_unix_ms, tide_error *err)
{
    (void)arg, (void)id, (void)now_unix_ms, (void)err;
    return TIDE_OK;
}

/* ---- handlers ---- */

static void say_ok(struct tide_httpd_answer *answer)
{
    tide_json json;
    tide_json_object(&json);
    tide_json_set_bool(&json, "ok", true);
    tide_httpd_json(answer, 200, &json);
}

static void health(void *arg, const struct tide_httpd_request *request,
                   struct tide_httpd_answer *answer)
{
    (void)arg, (void)request;
    say_ok(answer);
}

static void act(void *arg, const struct tide_httpd_request *request,
                struct tide_httpd_answer *answer)
{
    struct fixture *fixture = arg;
    (void)snprintf(fixture->last_body, sizeof fixture->last_body, "%.*s", (int)request->body.bytes,
                   request->body.bytes == 0 ? "" : request->body.data);
    atomic_fetch_add(&fixture->effects, 1);
    say_ok(answer);
}

/* A frame's content, behind an address that cannot be guessed. */
static void frame(void *arg, const struct tide_httpd_request *request,
                  struct tide_httpd_answer *answer)
{
    struct fixture *fixture = arg;
    if (!tide_text_equal(tide_httpd_part(request, "cap"), TIDE_TEXT(CAP))) {
        tide_httpd_fail(answer, 404, "path", "There is nothing here.", NULL);
        return;
    }
    atomic_fetch_add(&fixture->effects, 1);
    tide_httpd_text(answer, 200, "text/html; charset=utf-8", TIDE_TEXT("<p>mail</p>"));
    answer->csp = "default-src 'none'; sandbox allow-same-origin";
}

static void echo(void *arg, const struct tide_httpd_request *request,
                 struct tide_httpd_answer *answer)
{
    tide_json json;
    (void)arg;
    tide_json_object(&json);
    tide_json_set_text(&json, "part", tide_httpd_part(request, "part"));
    tide_json_set_text(&json, "q", tide_httpd_param(request, "q"));
    tide_json_set_bool(&json, "absent", tide_httpd_param(request, "absent").data == NULL);
    tide_json_set_cstr(&json, "who", request->who->name);
    tide_httpd_json(answer, 200, &json);
}

/* Waits until the gate opens or it is canceled. */
static void gate(void *arg, const struct tide_httpd_request *request,
                 struct tide_httpd_answer *answer)
{
    struct fixture *fixture = arg;
    atomic_fetch_add(&fixture->running, 1);
    while (!atomic_load(&fixture->open) && tide_canceled(request->cancel) == TIDE_CANCEL_NONE)
        (void)sched_yield();
    if (tide_canceled(request->cancel) != TIDE_CANCEL_NONE)
        atomic_fetch_add(&fixture->canceled, 1);
    atomic_fetch_sub(&fixture->running, 1);
    say_ok(answer);
}

static void nothing(void *arg, const struct tide_httpd_request *request,
                    struct tide_httpd_answer *answer)
{
    (void)arg, (void)request, (void)answer;
}

static void large(void *arg, const struct tide_httpd_request *request,
                  struct tide_httpd_answer *answer)
{
    (void)arg, (void)request;
    answer->status = 200;
    answer->type = "application/octet-stream";
    for (int i = 0; i < 4096; i++) {
        char block[1024];
        memset(block, 'a' + i % 26, sizeof block);
        answer->failed |= tide_buf_add(&answer->body, block, sizeof block) != TIDE_OK;
    }
}

/* ---- the hook for Idempotency-Keys ---- */

static tide_httpd_again once_begin(void *arg, const struct tide_httpd_who *who, tide_text key,
                                   const unsigned char digest[32], struct tide_httpd_answer *answer,
                                   uint64_t *asked_unix_ms_out)
{
    struct fixture *fixture = arg;
    (void)who;
    *asked_unix_ms_out = 1;
    if (tide_text_equal(key, TIDE_TEXT("running")))
        return TIDE_HTTPD_RUNNING;
    if (!tide_text_equal(tide_text_of(fixture->once_key), key)) {
        (void)snprintf(fixture->once_key, sizeof fixture->once_key, "%.*s", (int)key.bytes,
                       key.data);
        memcpy(fixture->once_digest, digest, 32);
        return TIDE_HTTPD_FIRST;
    }
    if (memcmp(fixture->once_digest, digest, 32) != 0)
        return TIDE_HTTPD_OTHER;
    tide_httpd_text(answer, fixture->once_status, "application/json",
                    tide_text_of(fixture->once_body));
    return TIDE_HTTPD_STORED;
}

static void once_end(void *arg, const struct tide_httpd_who *who, tide_text key,
                     const struct tide_httpd_answer *answer)
{
    struct fixture *fixture = arg;
    (void)who, (void)key;
    fixture->once_status = answer->status;
    (void)snprintf(fixture->once_body, sizeof fixture->once_body, "%s",
                   tide_buf_cstr(&answer->body));
}

/* ---- starting ---- */

static void watched(void *arg, const char *topic, bool is)
{
    struct fixture *fixture = arg;
    if (strcmp(topic, "state") == 0)
        atomic_fetch_add(is ? &fixture->watched : &fixture->unwatched, 1);
}

static void observe(void *arg, const struct tide_httpd_route *route, int status,
                    uint64_t duration_us)
{
    struct fixture *fixture = arg;
    (void)duration_us;
    atomic_store(&fixture->observed_status, status);
    if (route == NULL)
        atomic_fetch_add(&fixture->observed_unrouted, 1);
    atomic_fetch_add(&fixture->observed, 1);
}

static void wake(void *arg)
{
    struct fixture *fixture = arg;
    tide_httpd_wake(fixture->server);
}

static void make_routes(struct fixture *fixture)
{
    const struct tide_httpd_route routes[] = {
        {"GET", "/", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, tide_httpd_site_index, NULL,
         TIDE_HTTPD_ANYWHERE, 0},
        {"GET", "/app/{digest}/{file}", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, tide_httpd_site_file,
         NULL, 0, 0},
        {"GET", "/healthz", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, health, NULL, TIDE_HTTPD_ANYWHERE,
         0},
        {"GET", "/metrics", TIDE_HTTPD_METRICS, TIDE_HTTPD_MEMORY, health, NULL, 0, 0},
        {"GET", "/api/v1/state", TIDE_HTTPD_LOOK, TIDE_HTTPD_READER, act, fixture, 0, 0},
        {"GET", "/api/v1/stream", TIDE_HTTPD_LOOK, TIDE_HTTPD_STREAM, NULL, NULL, 0, 0},
        {"POST", "/api/v1/jobs/cancel", TIDE_HTTPD_WORK, TIDE_HTTPD_READER, act, fixture, 0, 0},
        {"POST", "/api/v1/mail/{account}/actions", TIDE_HTTPD_PAGE, TIDE_HTTPD_READER, act, fixture,
         0, 0},
        {"PUT", "/api/v1/mail/{account}/drafts/{draft}", TIDE_HTTPD_PAGE, TIDE_HTTPD_READER, act,
         fixture, TIDE_HTTPD_ANY_TYPE, 16},
        {"GET", "/v/{cap}/html", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, frame, fixture, 0, 0},
        {"GET", "/api/v1/echo/{part}", TIDE_HTTPD_LOOK, TIDE_HTTPD_MEMORY, echo, fixture, 0, 0},
        {"GET", "/api/v1/gate", TIDE_HTTPD_LOOK, TIDE_HTTPD_READER, gate, fixture, 0, 0},
        {"POST", "/api/v1/gate", TIDE_HTTPD_WORK, TIDE_HTTPD_READER, gate, fixture,
         TIDE_HTTPD_REPEATS, 0},
        {"GET", "/api/v1/nothing", TIDE_HTTPD_LOOK, TIDE_HTTPD_READER, nothing, NULL, 0, 0},
        {"GET", "/api/v1/large", TIDE_HTTPD_LOOK, TIDE_HTTPD_READER, large, NULL, 0, 0},
        {"POST", "/api/v1/pairings", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, tide_pairing_post,
         fixture->pairings, TIDE_HTTPD_REPEATS, TIDE_PAIRING_BODY_BYTES_MAX},
        {"GET", "/api/v1/pairings", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, tide_pairing_get,
         fixture->pairings, 0, 0},
    };
    fixture->routes_count = sizeof routes / sizeof routes[0];
    memcpy(fixture->routes, routes, sizeof routes);
}

static void add_key(struct fixture *fixture, const char *name, tide_httpd_scope scope, char *text,
                    uint64_t *id)
{
    tide_error err;
    assert_int_equal(tide_keys_add(fixture->keys, tide_text_of(name), scope, 0, text, id, &err),
                     TIDE_OK);
}

struct fixture *fixture_start(void (*change)(struct tide_httpd_options *options))
{
    struct fixture *fixture = fixture_try(tide_mem_heap(), change);
    assert_non_null(fixture);
    return fixture;
}

struct fixture *fixture_try(tide_mem *mem, void (*change)(struct tide_httpd_options *options))
{
    static const struct tide_httpd_topic topics[] = {{"state", TIDE_HTTPD_LOOK},
                                                     {"mail", TIDE_HTTPD_PAGE}};
    static const struct tide_keys_store store = {keys_load, keys_add, keys_revoke, NULL};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    tide_error err = {TIDE_OK, 0, ""};
    uint64_t id;
    assert_non_null(fixture);
    assert_int_equal(tide_world_real_new(tide_mem_heap(), &fixture->world, &err), TIDE_OK);
    assert_int_equal(tide_keys_new(fixture->world, tide_mem_heap(), &store, &fixture->keys, &err),
                     TIDE_OK);
    add_key(fixture, "page", TIDE_HTTPD_PAGE, fixture->key, &fixture->key_id);
    add_key(fixture, "look", TIDE_HTTPD_LOOK, fixture->look, &fixture->look_id);
    add_key(fixture, "metrics", TIDE_HTTPD_METRICS, fixture->metrics, &id);
    add_key(fixture, "old", TIDE_HTTPD_PAGE, fixture->revoked, &id);
    assert_int_equal(tide_keys_revoke(fixture->keys, id, &err), TIDE_OK);
    assert_int_equal(tide_pairings_new(fixture->world, tide_mem_heap(), fixture->keys, wake,
                                       fixture, &fixture->pairings, &err),
                     TIDE_OK);
    make_routes(fixture);
    struct tide_httpd_options options = {
        .routes = fixture->routes,
        .routes_count = fixture->routes_count,
        .topics = topics,
        .topics_count = 2,
        .authorize = tide_keys_authorize,
        .still = tide_keys_still,
        .authorize_arg = fixture->keys,
        .once = {once_begin, once_end, fixture},
        .observe = observe,
        .observe_arg = fixture,
        .watched = watched,
        .watched_arg = fixture,
        /* A busy machine may take its time: no test depends on these. */
        .head_ms = 600000,
        .body_ms = 600000,
        .reader_ms = 600000,
        .send_ms = 600000,
        .comment_ms = 600000,
    };
    if (change != NULL)
        change(&options);
    const tide_status rc = tide_httpd_start(fixture->world, mem, &options, &fixture->server, &err);
    if (rc != TIDE_OK) {
        assert_int_equal(rc, TIDE_NO_MEMORY);
        fixture_stop(fixture);
        return NULL;
    }
    return fixture;
}

void fixture_stop(struct fixture *fixture)
{
    tide_httpd_stop(fixture->server);
    tide_pairings_free(fixture->pairings);
    tide_keys_free(fixture->keys);
    tide_world_real_free(fixture->world);
    free(fixture);
}

/* ---- the client ---- */

int client_connect(const struct fixture *fixture)
{
    return client_connect_to(tide_httpd_port(fixture->server));
}

int client_connect_to(uint16_t port)
{
    const struct timeval minute = {.tv_sec = 60};
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof minute);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

bool client_send(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t sent = send(fd, text, bytes, MSG_NOSIGNAL);
        if (sent < 0) {
            assert_true(errno != EAGAIN); /* the watchdog */
            return false;
        }
        text += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

void client_print(int fd, const char *format, ...)
{
    static _Thread_local char text[64 << 10];
    va_list args;
    va_start(args, format);
    const int bytes = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_true(bytes > 0 && (size_t)bytes < sizeof text);
    (void)client_send(fd, text, (size_t)bytes);
}

/* One byte, or false at the end. */
static bool read_byte(int fd, char *byte)
{
    const ssize_t count = recv(fd, byte, 1, 0);
    if (count < 0)
        assert_true(errno != EAGAIN); /* the watchdog */
    return count == 1;
}

static void read_head(int fd, struct reply *reply)
{
    size_t bytes = 0;
    memset(reply, 0, sizeof *reply);
    while (bytes + 1 < sizeof reply->head && read_byte(fd, &reply->head[bytes])) {
        bytes++;
        if (bytes >= 4 && memcmp(reply->head + bytes - 4, "\r\n\r\n", 4) == 0)
            break;
    }
    if (strncmp(reply->head, "HTTP/1.1 ", 9) == 0)
        reply->status = (int)strtol(reply->head + 9, NULL, 10);
}

static void read_body(int fd, struct reply *reply, size_t bytes_max)
{
    size_t room = 4096;
    reply->body = malloc(room);
    assert_non_null(reply->body);
    while (reply->bytes < bytes_max) {
        if (room - reply->bytes < 2)
            reply->body = realloc(reply->body, room *= 2);
        assert_non_null(reply->body);
        size_t wanted = room - reply->bytes - 1;
        wanted = wanted < bytes_max - reply->bytes ? wanted : bytes_max - reply->bytes;
        const ssize_t count = recv(fd, reply->body + reply->bytes, wanted, 0);
        if (count < 0)
            assert_true(errno != EAGAIN);
        if (count <= 0)
            break;
        reply->bytes += (size_t)count;
    }
    reply->body[reply->bytes] = '\0';
}

void client_read(int fd, struct reply *reply)
{
    read_head(fd, reply);
    const char *length = strcasestr(reply->head, "\r\nContent-Length: ");
    read_body(fd, reply, length == NULL ? 0 : strtoul(length + 18, NULL, 10));
}

void client_read_all(int fd, struct reply *reply)
{
    read_head(fd, reply);
    read_body(fd, reply, SIZE_MAX);
}

void reply_done(struct reply *reply)
{
    free(reply->body);
    reply->body = NULL;
}

bool client_read_to(int fd, const char *text)
{
    const size_t bytes = strlen(text);
    char last[512] = "";
    size_t have = 0;
    assert_true(bytes < sizeof last);
    for (char byte; read_byte(fd, &byte);) {
        if (have == bytes)
            memmove(last, last + 1, --have);
        last[have++] = byte;
        if (have == bytes && memcmp(last, text, bytes) == 0)
            return true;
    }
    return false;
}

void ask(const struct fixture *fixture, struct reply *reply, const char *format, ...)
{
    static _Thread_local char text[64 << 10];
    va_list args;
    va_start(args, format);
    const int bytes = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_true(bytes > 0 && (size_t)bytes < sizeof text);
    const int fd = client_connect(fixture);
    (void)client_send(fd, text, (size_t)bytes);
    client_read_all(fd, reply);
    (void)close(fd);
}

int get_status(const struct fixture *fixture, const char *path)
{
    struct reply reply;
    ask(fixture, &reply,
        "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nConnection: "
        "close\r\n\r\n",
        path, fixture->key);
    reply_done(&reply);
    return reply.status;
}

bool head_has(const struct reply *reply, const char *line)
{
    return strcasestr(reply->head, line) != NULL;
}
