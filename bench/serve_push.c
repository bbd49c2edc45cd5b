#include "serve_push.h"

#include "base/encode.h"
#include "serve/http/http.h"
#include "cloudbox/signin/jwt.h"
#include "world/real.h"

#include <time.h>

#define AUDIENCE "https://mail.example.org/webhook/gmail"
#define SENDER   "push@example.iam.gserviceaccount.com"

static struct {
    tide_world *world;
    tide_httpd *server;
    struct tide_httpd_route route;
    box_key *key;
    char keys_setting[128];
    char token[BOX_JWT_BYTES_MAX];
} pusher;

static void certs_get(void *arg, const struct tide_httpd_request *request,
                      struct tide_httpd_answer *answer)
{
    tide_json json;
    tide_json keys;
    (void)arg;
    (void)request;
    tide_json_object(&json);
    tide_json_array(&keys);
    expect(json_array_append_new(keys.value, box_key_jwk(pusher.key)) == 0, "memory");
    tide_json_set(&json, "keys", &keys);
    tide_httpd_json(answer, 200, &json);
}

static void token_make(void)
{
    const json_int_t now = (json_int_t)time(NULL);
    tide_buf token;
    tide_buf_init(&token, tide_mem_heap(), BOX_JWT_BYTES_MAX);
    box_jwt_sign(pusher.key,
                 json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:s}", "iss",
                           "https://accounts.google.com", "aud", AUDIENCE, "email", SENDER,
                           "email_verified", 1, "iat", now, "exp", now + 3600, "sub", "1"),
                 &token);
    (void)snprintf(pusher.token, sizeof pusher.token, "%s", tide_buf_cstr(&token));
    tide_buf_done(&token);
}

void pusher_start(void)
{
    tide_error err = {TIDE_OK, 0, ""};
    pusher.key = box_key_new();
    pusher.route =
        (struct tide_httpd_route){.method = "GET", .path = "/certs", .handler = certs_get};
    const struct tide_httpd_options options = {.routes = &pusher.route, .routes_count = 1};
    must(tide_world_real_new(tide_mem_heap(), &pusher.world, &err), "world", &err);
    must(tide_httpd_start(pusher.world, tide_mem_heap(), &options, &pusher.server, &err), "issuer",
         &err);
    (void)snprintf(pusher.keys_setting, sizeof pusher.keys_setting,
                   "serve.webhook.keys=http://127.0.0.1:%u/certs",
                   (unsigned)tide_httpd_port(pusher.server));
}

void pusher_stop(void)
{
    tide_httpd_stop(pusher.server);
    tide_world_real_free(pusher.world);
    box_key_free(pusher.key);
}

const char *pusher_setting(size_t index)
{
    const char *const settings[PUSHER_SETTINGS] = {
        "serve.webhook.listen=127.0.0.1:0", "serve.webhook.audience=" AUDIENCE,
        "serve.webhook.sender=" SENDER, pusher.keys_setting};
    return settings[index];
}

/* The token is made here: it is valid for an hour, and a benchmark may take that long. */
void pusher_open(const struct serving *serving, struct client *client)
{
    expect(serving->hook_port != 0, "serve takes no pushes");
    token_make();
    client_open(client, serving->hook_port, pusher.token);
}

int pusher_push(struct client *client, const char *account)
{
    static unsigned number;
    char data[400];
    char body[1024];
    tide_buf encoded;
    tide_buf_init(&encoded, tide_mem_heap(), sizeof body);
    (void)snprintf(data, sizeof data, "{\"emailAddress\":\"%s\",\"historyId\":\"1\"}", account);
    must(tide_base64_add(&encoded, tide_text_of(data), tide_base64_standard, true), "base64", NULL);
    (void)snprintf(body, sizeof body,
                   "{\"message\":{\"data\":\"%s\",\"messageId\":\"%u\",\"attributes\":{}},"
                   "\"subscription\":\"projects/p/subscriptions/s\"}",
                   tide_buf_cstr(&encoded), ++number);
    tide_buf_done(&encoded);
    return client_post(client, "/webhook/gmail", body);
}
