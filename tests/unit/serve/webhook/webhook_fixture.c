#include "unit/serve/webhook/webhook_fixture.h"

#include "base/encode.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

/* ---- a clock that only a test moves ---- */

static const struct tide_world_ops *real_ops;
static struct tide_world_ops moved_ops;
static uint64_t start_us, start_unix_ms;
static _Atomic uint64_t moved_us;

static uint64_t now_us(tide_world *world)
{
    (void)world;
    return start_us + atomic_load(&moved_us);
}

static uint64_t now_unix_ms(tide_world *world)
{
    (void)world;
    return start_unix_ms + atomic_load(&moved_us) / 1000;
}

/* Waits as long as it would if the clock ran, and then looks at it again. */
static tide_status cond_wait(tide_world *world, tide_cond *cond, tide_lock *lock,
                             uint64_t deadline_us)
{
    const uint64_t now = now_us(world);
    const uint64_t wait_us = deadline_us > now ? deadline_us - now : 0;
    return real_ops->cond_wait(world, cond, lock,
                               deadline_us == TIDE_NEVER ? TIDE_NEVER
                                                         : real_ops->now_us(world) + wait_us);
}

static tide_world *world_new(void)
{
    tide_world *world = NULL;
    tide_error err;
    assert_int_equal(tide_world_real_new(tide_mem_heap(), &world, &err), TIDE_OK);
    real_ops = world->ops;
    start_us = real_ops->now_us(world);
    start_unix_ms = real_ops->now_unix_ms(world);
    atomic_store(&moved_us, 0);
    moved_ops = *real_ops;
    moved_ops.now_us = now_us;
    moved_ops.now_unix_ms = now_unix_ms;
    moved_ops.cond_wait = cond_wait;
    world->ops = &moved_ops;
    return world;
}

void later(uint64_t ms)
{
    atomic_fetch_add(&moved_us, ms * 1000);
}

/* ---- the issuer ---- */

static void certs(void *arg, const struct tide_httpd_request *request,
                  struct tide_httpd_answer *answer)
{
    struct hook *hook = arg;
    tide_json json;
    tide_json keys;
    atomic_fetch_add(&hook->fetches, 1);
    while (atomic_load(&hook->stall) && tide_canceled(request->cancel) == TIDE_CANCEL_NONE)
        (void)sched_yield();
    tide_json_object(&json);
    tide_json_array(&keys);
    (void)json_array_append_new(keys.value, box_key_jwk(hook->key));
    if (atomic_load(&hook->second_key))
        (void)json_array_append_new(keys.value, box_key_jwk(hook->other));
    tide_json_set(&json, "keys", &keys);
    tide_httpd_json(answer, atomic_load(&hook->issuer_status), &json);
}

static tide_status wake(void *arg, const char *address, tide_error *err)
{
    struct hook *hook = arg;
    const tide_status rc = (tide_status)atomic_load(&hook->wake_status);
    (void)snprintf(hook->woken, sizeof hook->woken, "%s", address);
    atomic_fetch_add(&hook->wakes, 1);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "as the test wants");
}

/* ---- life ---- */

static const box_key *key_at(size_t index)
{
    static box_key *keys[2];
    if (keys[index] == NULL)
        keys[index] = box_key_new();
    return keys[index];
}

const box_key *key_one(void)
{
    return key_at(0);
}

const box_key *key_two(void)
{
    return key_at(1);
}

static void issuer_start(struct hook *hook)
{
    tide_error err;
    hook->route = (struct tide_httpd_route){
        .method = "GET", .path = "/certs", .way = TIDE_HTTPD_READER, .handler = certs, .arg = hook};
    const struct tide_httpd_options options = {
        .routes = &hook->route, .routes_count = 1, .reader_ms = 600000};
    assert_int_equal(tide_httpd_start(hook->world, tide_mem_heap(), &options, &hook->issuer, &err),
                     TIDE_OK);
    (void)snprintf(hook->keys_url, sizeof hook->keys_url, "http://127.0.0.1:%u/certs",
                   (unsigned)tide_httpd_port(hook->issuer));
}

struct hook *hook_start(void)
{
    static const char *const issuers[] = {ISSUER, NULL};
    struct hook *hook = calloc(1, sizeof *hook);
    tide_error err = {TIDE_OK, 0, ""};
    assert_non_null(hook);
    hook->world = world_new();
    hook->key = key_one();
    hook->other = key_two();
    atomic_store(&hook->issuer_status, 200);
    issuer_start(hook);
    const struct tide_webhook_options options = {.world = hook->world,
                                                 .rules = {issuers, AUDIENCE, SENDER},
                                                 .keys_url = hook->keys_url,
                                                 .wake = wake,
                                                 .arg = hook};
    if (tide_webhook_start(&options, tide_mem_heap(), &hook->webhook, &err) != TIDE_OK)
        fail_msg("%s", err.text);
    return hook;
}

void hook_stop(struct hook *hook)
{
    atomic_store(&hook->stall, false);
    tide_webhook_free(hook->webhook);
    tide_httpd_stop(hook->issuer);
    tide_world_real_free(hook->world);
    free(hook);
}

/* ---- tokens ---- */

json_t *claims_good(const struct hook *hook)
{
    const json_int_t now_s = (json_int_t)(tide_world_now_unix_ms(hook->world) / 1000);
    return json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:s}", "iss", ISSUER, "aud", AUDIENCE, "email",
                     SENDER, "email_verified", 1, "iat", now_s, "exp", now_s + 3600, "sub", "1");
}

static char *taken(tide_buf *buf)
{
    char *text = strdup(tide_buf_cstr(buf));
    tide_buf_done(buf);
    assert_non_null(text);
    return text;
}

char *token_of(const box_key *key, json_t *claims)
{
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), BOX_JWT_BYTES_MAX);
    box_jwt_sign(key, claims, &out);
    return taken(&out);
}

char *token_good(const struct hook *hook)
{
    return token_of(hook->key, claims_good(hook));
}

char *token_raw(const char *header, const json_t *claims, tide_text secret)
{
    tide_buf out;
    char *text = json_dumps(claims, JSON_COMPACT);
    tide_buf_init(&out, tide_mem_heap(), BOX_JWT_BYTES_MAX);
    box_add_base64url_bare(&out, tide_text_of(header));
    assert_int_equal(tide_buf_add_text(&out, "."), TIDE_OK);
    box_add_base64url_bare(&out, tide_text_of(text));
    free(text);
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned int bytes = 0;
    if (secret.bytes > 0)
        assert_non_null(HMAC(EVP_sha256(), secret.data, (int)secret.bytes,
                             (const unsigned char *)out.data, out.bytes, mac, &bytes));
    assert_int_equal(tide_buf_add_text(&out, "."), TIDE_OK);
    box_add_base64url_bare(&out, (tide_text){(const char *)mac, bytes});
    return taken(&out);
}

/* ---- requests ---- */

const char *push_of(const char *address, const char *message)
{
    static char body[2048];
    char data[512];
    tide_buf encoded;
    tide_buf_init(&encoded, tide_mem_heap(), 1024);
    (void)snprintf(data, sizeof data, "{\"emailAddress\":\"%s\",\"historyId\":\"9876\"}", address);
    assert_int_equal(tide_base64_add(&encoded, tide_text_of(data), tide_base64_standard, true),
                     TIDE_OK);
    (void)snprintf(body, sizeof body,
                   "{\"message\":{\"data\":\"%s\",\"messageId\":\"%s\",\"attributes\":{}},"
                   "\"subscription\":\"projects/p/subscriptions/s\"}",
                   tide_buf_cstr(&encoded), message);
    tide_buf_done(&encoded);
    return body;
}

int push(const struct hook *hook, const char *token, const char *body)
{
    struct reply reply;
    const int fd = client_connect_to(tide_webhook_port(hook->webhook));
    client_print(fd,
                 "POST /webhook/gmail HTTP/1.1\r\nHost: mail.example.org\r\nConnection: close\r\n"
                 "Content-Type: application/json\r\nContent-Length: %zu\r\n%s%s%s\r\n%s",
                 strlen(body), token == NULL ? "" : "Authorization: Bearer ",
                 token == NULL ? "" : token, token == NULL ? "" : "\r\n", body);
    client_read_all(fd, &reply);
    const int status = reply.status;
    reply_done(&reply);
    (void)close(fd);
    return status;
}

int push_good(const struct hook *hook, const char *message)
{
    char *token = token_good(hook);
    const int status = push(hook, token, push_of("ada@example.com", message));
    free(token);
    return status;
}

uint64_t counted(const struct hook *hook, tide_webhook_outcome outcome)
{
    struct tide_webhook_counts counts;
    tide_webhook_count(hook->webhook, &counts);
    return counts.outcomes[outcome];
}
