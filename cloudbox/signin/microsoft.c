#include "cloudbox/signin/microsoft.h"

#include "base/check.h"
#include "base/rng.h"
#include "cloudbox/gate/quota.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/microsoft/scopes.h"
#include "cloudbox/microsoft/style.h"
#include "cloudbox/signin/jwt.h"
#include "cloudbox/signin/signin.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    DEVICES_MAX = 256,
    DEVICE_LIFE_S = 900,
    POLL_S = 5,
    USER_CODE_LETTERS = 9,
    DEVICE_CODE_BYTES = 33,
};
#define TENANT "9188040d-6c67-4c5b-b112-36a304b66dad" /* that of personal accounts */

typedef enum device_state { DEVICE_FREE, DEVICE_WAITS, DEVICE_AGREED, DEVICE_REFUSED } device_state;

struct device {
    device_state state;
    char code[DEVICE_CODE_BYTES];
    char user_code[USER_CODE_LETTERS + 1];
    uint32_t client;
    uint32_t scopes;
    struct box_user *user; /* who agreed */
    uint64_t expires_ms;
    uint64_t asked_ms; /* the last poll */
};

struct devices {
    struct device list[DEVICES_MAX];
    uint32_t next; /* the oldest makes room */
};

/* ---- errors ---- */

/* {"error","error_description":"AADSTS...","error_codes":[...]} */
static void fail(struct box_call *call, int http, const char *error, int code, const char *text)
{
    char message[400], date[BOX_TIME_TEXT_BYTES];
    box_time_text(call->now_ms, date);
    snprintf(message, sizeof message, "AADSTS%d: %s", code, text);
    box_answer_clear(call->answer);
    box_answer_json(call->answer, http,
                    json_pack("{s:s, s:s, s:[i], s:s, s:s}", "error", error, "error_description",
                              message, "error_codes", code, "timestamp", date, "error_uri",
                              "https://login.microsoftonline.com/error"),
                    false);
    box_answer_secret(call->answer);
}

/* What the grants say, in Microsoft's numbers. */
static void fail_grant(struct box_call *call, const struct box_oauth_error *error)
{
    if (strcmp(error->error, "invalid_grant") == 0 && strstr(error->text, "revoked") != NULL)
        fail(call, 400, "invalid_grant", 50173,
             "The provided grant has expired due to it being revoked; a fresh auth token is "
             "needed.");
    else if (strcmp(error->error, "invalid_grant") == 0 && strstr(error->text, "verifier") != NULL)
        fail(call, 400, "invalid_grant", 501481,
             "The Code_Verifier does not match the code_challenge supplied in the authorization "
             "request.");
    else if (strcmp(error->error, "invalid_grant") == 0)
        fail(call, 400, "invalid_grant", 70008,
             "The provided authorization code or refresh token has expired.");
    else if (strcmp(error->error, "redirect_uri_mismatch") == 0)
        fail(call, 400, "invalid_client", 50011, "The redirect URI does not match.");
    else
        fail(call, error->http, error->error, 7000218, error->text);
}

/* ---- forms ---- */

struct form {
    struct box_param *params;
    size_t count;
};

static bool form_read(struct box_call *call, struct form *form)
{
    form->params = tide_arena_take(call->scratch, BOX_PARAMS_MAX * sizeof(struct box_param));
    TIDE_ASSERT(form->params != NULL);
    return box_signin_form(call, form->params, &form->count);
}

static bool form_need(struct box_call *call, const struct form *form, const char *name,
                      tide_text *text_out)
{
    char text[120];
    *text_out = box_param(form->params, form->count, name);
    if (text_out->bytes > 0)
        return true;
    snprintf(text, sizeof text, "The request body must contain the following parameter: '%s'.",
             name);
    fail(call, 400, "invalid_request", 900144, text);
    return false;
}

/* 0: answered. */
static uint32_t client_of(struct box_call *call, const struct form *form)
{
    struct box_auth *auth = box_cloud_auth(call->cloud);
    tide_text id;
    if (!form_need(call, form, "client_id", &id))
        return 0;
    const uint32_t client = box_auth_client(auth, id);
    if (client != 0 &&
        box_auth_client_proves(auth, client, box_param(form->params, form->count, "client_secret")))
        return client;
    fail(call, 401, client == 0 ? "unauthorized_client" : "invalid_client",
         client == 0 ? 700016 : 7000215,
         client == 0 ? "Application was not found in the directory."
                     : "Invalid client secret provided.");
    return 0;
}

/* ---- tokens ---- */

static json_t *id_token_of(struct box_call *call, const struct box_issue *issue)
{
    struct box_auth *auth = box_cloud_auth(call->cloud);
    const json_int_t now_s = (json_int_t)(call->now_ms / 1000);
    char subject[22];
    box_auth_subject(tide_text_of(issue->user->email), subject);
    json_t *claims =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "iss",
                  "https://login.microsoftonline.com/" TENANT "/v2.0", "aud",
                  box_auth_client_id(auth, issue->client), "sub", subject, "tid", TENANT, "ver",
                  "2.0", "preferred_username", issue->user->email, "name", issue->user->email,
                  "iat", now_s, "exp", now_s + (json_int_t)issue->expires_in_s);
    TIDE_ASSERT(claims != NULL);
    if (issue->nonce[0] != '\0')
        json_object_set_new(claims, "nonce", box_json_text(tide_text_of(issue->nonce)));
    tide_auto_buf token = tide_buf_heap(BOX_JWT_BYTES_MAX);
    box_auth_sign(auth, claims, &token);
    return json_string(tide_buf_cstr(&token));
}

static void reply_tokens(struct box_call *call, const struct box_issue *issue)
{
    tide_auto_buf scope = tide_buf_heap(BOX_TARGET_BYTES_MAX);
    box_microsoft_scopes_text(issue->scopes & ~(uint32_t)BOX_SCOPE_OFFLINE, &scope);
    const json_int_t life_s = (json_int_t)issue->expires_in_s;
    json_t *reply = json_pack("{s:s, s:s, s:I, s:I, s:s}", "token_type", "Bearer", "scope",
                              tide_buf_cstr(&scope), "expires_in", life_s, "ext_expires_in", life_s,
                              "access_token", issue->access);
    TIDE_ASSERT(reply != NULL);
    if ((issue->scopes & BOX_SCOPE_OFFLINE) != 0)
        json_object_set_new(reply, "refresh_token", json_string(issue->refresh));
    if ((issue->scopes & BOX_SCOPE_OPENID) != 0)
        json_object_set_new(reply, "id_token", id_token_of(call, issue));
    box_answer_clear(call->answer);
    box_answer_json(call->answer, 200, reply, false);
    box_answer_secret(call->answer);
}

/* ---- device codes ---- */

static void *open_devices(box_cloud *cloud)
{
    (void)cloud;
    struct devices *devices = tide_mem_new(tide_mem_heap(), sizeof *devices);
    TIDE_ASSERT(devices != NULL);
    return devices;
}

static void close_devices(void *state)
{
    tide_mem_free(tide_mem_heap(), state, sizeof(struct devices));
}

static struct devices *devices_of(const struct box_call *call)
{
    return box_cloud_state(call->cloud, &box_microsoft);
}

static struct device *device_by(const struct box_call *call, tide_text code, bool of_user)
{
    struct devices *devices = devices_of(call);
    for (size_t i = 0; i < DEVICES_MAX && code.bytes > 0; i++) {
        struct device *device = &devices->list[i];
        const char *have = of_user ? device->user_code : device->code;
        if (device->state != DEVICE_FREE &&
            (of_user ? box_is(code, have) : tide_text_equal(code, tide_text_of(have))))
            return device;
    }
    return NULL;
}

static void device_make(struct box_call *call, struct device *device)
{
    static const char letters[] = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    tide_rng rng = tide_rng_seeded(tide_rng_next(box_cloud_rng(call->cloud)) ^ call->now_ms);
    const uint64_t high = tide_rng_next(&rng), low = tide_rng_next(&rng);
    snprintf(device->code, sizeof device->code, "%016" PRIx64 "%016" PRIx64, high, low);
    for (size_t i = 0; i < USER_CODE_LETTERS; i++)
        device->user_code[i] = letters[tide_rng_below(&rng, sizeof letters - 1)];
    device->state = DEVICE_WAITS;
    device->expires_ms = call->now_ms + (uint64_t)DEVICE_LIFE_S * 1000;
}

static void devicecode(struct box_call *call)
{
    struct form form;
    tide_text scope;
    struct device made = {0};
    if (!form_read(call, &form))
        return;
    made.client = client_of(call, &form);
    if (made.client == 0 || !form_need(call, &form, "scope", &scope))
        return;
    made.scopes = box_microsoft_scopes_parse(scope);
    if (made.scopes == 0) {
        fail(call, 400, "invalid_scope", 70011, "The provided value for scope is not valid.");
        return;
    }
    struct devices *devices = devices_of(call);
    struct device *device = &devices->list[devices->next++ % DEVICES_MAX];
    device_make(call, &made);
    *device = made;
    char url[300], message[500];
    snprintf(url, sizeof url, "%.*s/devicelogin",
             (int)(call->request->origin.bytes < 250 ? call->request->origin.bytes : 250),
             call->request->origin.data);
    snprintf(message, sizeof message,
             "To sign in, use a web browser to open the page %s and enter the code %s to "
             "authenticate.",
             url, device->user_code);
    box_answer_clear(call->answer);
    box_answer_json(call->answer, 200,
                    json_pack("{s:s, s:s, s:s, s:i, s:i, s:s}", "user_code", device->user_code,
                              "device_code", device->code, "verification_uri", url, "expires_in",
                              DEVICE_LIFE_S, "interval", POLL_S, "message", message),
                    false);
    box_answer_secret(call->answer);
}

void box_device_answer(struct box_call *call, const char *user_code, struct box_user *user,
                       uint32_t scopes)
{
    struct device *device = device_by(call, tide_text_of(user_code), true);
    if (device == NULL || device->state != DEVICE_WAITS || call->now_ms >= device->expires_ms) {
        box_page_error(call, 400, "expired_token", "That code has expired.");
        return;
    }
    device->state = user == NULL ? DEVICE_REFUSED : DEVICE_AGREED;
    device->user = user;
    device->scopes = scopes;
    box_page_say(call, user == NULL ? "Canceled" : "You are signed in",
                 "You can close this window and return to your device.");
}

static void device_page(struct box_call *call)
{
    box_page_device(call);
}

/* The code that a person typed: the page of consent follows. */
static void device_enter(struct box_call *call)
{
    struct form form;
    if (!form_read(call, &form))
        return;
    const struct device *device =
        device_by(call, box_param(form.params, form.count, "user_code"), true);
    if (device == NULL || device->state != DEVICE_WAITS || call->now_ms >= device->expires_ms) {
        box_page_error(call, 400, "bad_verification_code", "That code is not right, or expired.");
        return;
    }
    struct box_ask ask = {.client = device->client, .scopes = device->scopes, .microsoft = true};
    memcpy(ask.device, device->user_code, sizeof device->user_code);
    tide_auto_buf ticket = tide_buf_heap(256);
    box_auth_ticket(box_cloud_auth(call->cloud), &ask, call->now_ms, &ticket);
    box_page_consent(call, &ask, tide_buf_text(&ticket), TIDE_TEXT(""), ask.scopes);
}

/* Whether the device may have its tokens now.  false: answered. */
static bool device_ready(struct box_call *call, struct device *device)
{
    const uint64_t asked_ms = device->asked_ms;
    device->asked_ms = call->now_ms;
    if (device->state == DEVICE_WAITS && call->now_ms < device->expires_ms &&
        box_cloud_options(call->cloud)->auto_consent && box_cloud_user_at(call->cloud, 0) != NULL) {
        device->state = DEVICE_AGREED;
        device->user = box_cloud_user_at(call->cloud, 0);
    }
    if (call->now_ms >= device->expires_ms)
        fail(call, 400, "expired_token", 70020, "The device code has expired.");
    else if (device->state == DEVICE_REFUSED)
        fail(call, 400, "authorization_declined", 70017, "The user denied the request.");
    else if (device->state == DEVICE_AGREED)
        return true;
    else if (asked_ms != 0 && call->now_ms < asked_ms + (uint64_t)POLL_S * 1000 - 500) {
        box_call_violation(call, "poll-fast", TIDE_TEXT("devicecode"));
        fail(call, 400, "slow_down", 70018, "Polling too often.");
    } else
        fail(call, 400, "authorization_pending", 70016,
             "OAuth 2.0 device flow error. Authorization is pending. Continue polling.");
    return false;
}

static bool token_by_device(struct box_call *call, const struct form *form, uint32_t client,
                            struct box_issue *issue, struct box_oauth_error *error)
{
    tide_text code;
    if (!form_need(call, form, "device_code", &code))
        return false;
    struct device *device = device_by(call, code, false);
    if (device == NULL || device->client != client) {
        fail(call, 400, "bad_verification_code", 70019, "The verification code is not valid.");
        return false;
    }
    if (!device_ready(call, device))
        return false;
    const struct box_ask ask = {.client = client, .scopes = device->scopes, .microsoft = true};
    struct box_user *user = device->user;
    *device = (struct device){0}; /* good once */
    return box_auth_issue(box_cloud_auth(call->cloud), &ask, user, call->now_ms, issue, error);
}

/* ---- the token endpoint ---- */

static bool token_by_code(struct box_call *call, const struct form *form, uint32_t client,
                          struct box_issue *issue, struct box_oauth_error *error)
{
    struct box_redeem redeem = {.client = client};
    if (!form_need(call, form, "code", &redeem.code) ||
        !form_need(call, form, "redirect_uri", &redeem.redirect_uri))
        return false;
    redeem.verifier = box_param(form->params, form->count, "code_verifier");
    return box_auth_redeem(box_cloud_auth(call->cloud), &redeem, call->now_ms, issue, error);
}

static bool token_by_refresh(struct box_call *call, const struct form *form, uint32_t client,
                             struct box_issue *issue, struct box_oauth_error *error)
{
    tide_text refresh;
    return form_need(call, form, "refresh_token", &refresh) &&
           box_auth_rotate(box_cloud_auth(call->cloud), client, refresh, call->now_ms, issue,
                           error);
}

static void token(struct box_call *call)
{
    struct form form;
    tide_text type;
    struct box_issue issue = {0};
    struct box_oauth_error error = {0}; /* stays so when the answer is there already */
    bool good = false;
    if (!form_read(call, &form) || !form_need(call, &form, "grant_type", &type))
        return;
    const uint32_t client = client_of(call, &form);
    if (client == 0)
        return;
    if (tide_text_equal(type, TIDE_TEXT("authorization_code"))) {
        good = token_by_code(call, &form, client, &issue, &error);
    } else if (tide_text_equal(type, TIDE_TEXT("refresh_token"))) {
        good = token_by_refresh(call, &form, client, &issue, &error);
    } else if (tide_text_equal(type, TIDE_TEXT("urn:ietf:params:oauth:grant-type:device_code")) ||
               tide_text_equal(type, TIDE_TEXT("device_code"))) {
        good = token_by_device(call, &form, client, &issue, &error);
    } else {
        fail(call, 400, "unsupported_grant_type", 70003,
             "The app requested an unsupported grant type.");
        return;
    }
    if (good)
        reply_tokens(call, &issue);
    else if (error.error != NULL)
        fail_grant(call, &error);
}

/* ---- the rest ---- */

static void authorize(struct box_call *call)
{
    box_signin_authorize(call, true);
}

static void native(struct box_call *call)
{
    box_page_say(call, "You are signed in", "Copy the address of this page into your program.");
}

static void discovery(struct box_call *call)
{
    const tide_text origin = call->request->origin;
    const tide_text tenant = call->args[0];
    tide_auto_buf base = tide_buf_heap(4096);
    if (origin.bytes + tenant.bytes > 1000) {
        box_fail_missing(call);
        return;
    }
    box_print(&base, "%.*s/%.*s/", (int)origin.bytes, origin.data, (int)tenant.bytes, tenant.data);
    static const char *const ends[][2] = {
        {"authorization_endpoint", "oauth2/v2.0/authorize"},
        {"token_endpoint", "oauth2/v2.0/token"},
        {"device_authorization_endpoint", "oauth2/v2.0/devicecode"},
        {"jwks_uri", "discovery/v2.0/keys"},
    };
    json_t *reply =
        json_pack("{s:s}", "issuer", "https://login.microsoftonline.com/" TENANT "/v2.0");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char url[1200];
        snprintf(url, sizeof url, "%s%s", tide_buf_cstr(&base), ends[i][1]);
        json_object_set_new(reply, ends[i][0], box_json_text(tide_text_of(url)));
    }
    box_call_reply(call, reply);
}

#define AT(rest) "/{tenant}/oauth2/" rest
#define METHOD(method, verbs, at, handler)                                                         \
    {                                                                                              \
        .name = "microsoft." method, .verb = verbs, .path = at, .handle = handler                  \
    }
static const struct box_method methods[] = {
    METHOD("authorize", BOX_GET, AT("v2.0/authorize"), authorize),
    METHOD("token", BOX_POST, AT("v2.0/token"), token),
    METHOD("devicecode", BOX_POST, AT("v2.0/devicecode"), devicecode),
    METHOD("nativeclient", BOX_GET, AT("nativeclient"), native),
    METHOD("devicelogin", BOX_GET, "/devicelogin", device_page),
    METHOD("devicelogin", BOX_POST, "/devicelogin", device_enter),
    METHOD("discovery", BOX_GET, "/{tenant}/v2.0/.well-known/openid-configuration", discovery),
    METHOD("keys", BOX_GET, "/{tenant}/discovery/v2.0/keys", box_signin_certs),
};

const struct box_service box_microsoft = {
    .name = "microsoft",
    .methods = methods,
    .methods_count = sizeof methods / sizeof methods[0],
    .style = &box_graph_style,
    .open = open_devices,
    .close = close_devices,
};
