/* signin.c - where a person lets a program in: the authorization endpoint, and
 * the table of all sign-in endpoints. */
#include "cloudbox/signin/signin.h"

#include "base/check.h"
#include "base/encode.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/google/style.h"
#include "cloudbox/microsoft/scopes.h"
#include "cloudbox/signin/microsoft.h"

#include <string.h>

/* ---- redirects ---- */

static bool starts_with(tide_text text, const char *start)
{
    const size_t bytes = strlen(start);
    return text.bytes >= bytes && memcmp(text.data, start, bytes) == 0;
}

/* BSGN2: http://127.0.0.1, http://localhost or http://[::1], any port and path; no
 * user part, no fragment, nothing that could end a header line. */
static bool is_loopback(tide_text uri)
{
    static const char *const hosts[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    if (uri.bytes > BOX_REDIRECT_BYTES_MAX)
        return false;
    for (size_t i = 0; i < uri.bytes; i++) {
        const char c = uri.data[i];
        if (c <= ' ' || c > '~' || c == '#' || c == '\\' || c == '"' || c == '<' || c == '>')
            return false;
    }
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        if (!starts_with(uri, hosts[i]))
            continue;
        size_t at = strlen(hosts[i]);
        if (at < uri.bytes && uri.data[at] == ':') {
            size_t end = at + 1;
            while (end < uri.bytes && uri.data[end] >= '0' && uri.data[end] <= '9')
                end++;
            uint64_t port = 0;
            if (!tide_text_to_u64((tide_text){uri.data + at + 1, end - at - 1}, &port) ||
                port == 0 || port > 65535)
                return false;
            at = end;
        }
        return at == uri.bytes || uri.data[at] == '/' || uri.data[at] == '?';
    }
    return false;
}

/* BSGN2: Microsoft's page for programs without one of their own; it is here. */
static bool is_native(tide_text uri)
{
    return box_is(uri, BOX_NATIVE_URI) || box_is(uri, BOX_NATIVE_URI_CONSUMERS);
}

/* One more name=value at the end of a URI's query. */
static void add_param(tide_buf *uri, const char *name, const char *value)
{
    const bool has_query = memchr(uri->data, '?', uri->bytes) != NULL;
    box_print(uri, "%c%s=", has_query ? '&' : '?', name);
    TIDE_ASSERT(tide_percent_add(uri, tide_text_of(value), "-._~/") == TIDE_OK);
}

/* `name` is "code" or "error". */
static void redirect(struct box_call *call, const struct box_ask *ask, const char *name,
                     const char *value, uint32_t scopes)
{
    tide_auto_buf uri = tide_buf_heap(BOX_TARGET_BYTES_MAX);
    box_add_cstr(&uri, ask->redirect_uri);
    if (ask->has_state)
        add_param(&uri, "state", ask->state);
    add_param(&uri, name, value);
    if (scopes != 0 && !ask->microsoft) {
        tide_auto_buf text = tide_buf_heap(BOX_TARGET_BYTES_MAX);
        box_scopes_text(scopes, &text);
        add_param(&uri, "scope", tide_buf_cstr(&text));
    }
    box_answer_clear(call->answer);
    if (uri.bytes >= sizeof call->answer->headers[0].value) {
        box_page_error(call, 400, "invalid_request", "The state is too long to be given back.");
    } else {
        call->answer->status = 302;
        box_answer_secret(call->answer);
        box_answer_header(call->answer, "Referrer-Policy", "no-referrer");
        box_answer_header(call->answer, "Location", tide_buf_cstr(&uri));
    }
}

/* ---- reading what is asked ---- */

static bool copy_text(char *to, size_t bytes_max, tide_text text)
{
    if (text.bytes > bytes_max || (text.bytes > 0 && memchr(text.data, '\0', text.bytes) != NULL))
        return false;
    if (text.bytes > 0)
        memcpy(to, text.data, text.bytes);
    to[text.bytes] = '\0';
    return true;
}

/* A word that some service could understand as a scope, though not this cloud. */
static bool is_scope_like(tide_text word)
{
    return box_scopes_parse(word) != 0 || starts_with(word, "https://");
}

/* Scopes of services that are not here are left out, as if they had not been
 * ticked; words that are no scopes at all are refused.  0: the answer is a page. */
static uint32_t read_scopes(struct box_call *call, tide_text text, bool microsoft)
{
    tide_text rest = microsoft ? TIDE_TEXT_NONE : text; /* Microsoft's have no common form */
    while (rest.bytes > 0) {
        const tide_text word = tide_text_word(&rest);
        if (word.bytes > 0 && !is_scope_like(word)) {
            box_page_error(call, 400, "invalid_scope", "Some requested scopes were invalid: [%.*s]",
                           (int)(word.bytes > 200 ? 200 : word.bytes), word.data);
            return 0;
        }
    }
    const uint32_t scopes = microsoft ? box_microsoft_scopes_parse(text) : box_scopes_parse(text);
    if (scopes == 0)
        box_page_error(call, 400, "invalid_scope", "No scope was asked for that this cloud knows.");
    return scopes;
}

static bool is_challenge(tide_text text, bool plain)
{
    for (size_t i = 0; i < text.bytes; i++) {
        const char c = text.data[i];
        const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '_' &&
            !(plain && (c == '.' || c == '~')))
            return false;
    }
    return plain ? text.bytes >= 43 && text.bytes <= 128 : text.bytes == 43;
}

static bool read_challenge(struct box_call *call, struct box_ask *ask)
{
    const tide_text challenge = box_call_param(call, "code_challenge");
    const tide_text method = box_call_param(call, "code_challenge_method");
    ask->plain = method.data == NULL || tide_text_equal(method, TIDE_TEXT("plain"));
    if (!ask->plain && !tide_text_equal(method, TIDE_TEXT("S256"))) {
        box_page_error(call, 400, "invalid_request",
                       "Invalid parameter value for "
                       "code_challenge_method");
        return false;
    }
    if (challenge.data == NULL && method.data != NULL) {
        box_page_error(call, 400, "invalid_request", "Missing required parameter: code_challenge");
        return false;
    }
    if (challenge.data != NULL && !is_challenge(challenge, ask->plain)) {
        box_page_error(call, 400, "invalid_request", "Invalid parameter value for code_challenge");
        return false;
    }
    return copy_text(ask->challenge, BOX_CHALLENGE_BYTES_MAX, challenge);
}

/* Client and redirect come first: until both are good there is no place to send an
 * error to, and every refusal is a page. */
static bool read_client(struct box_call *call, struct box_ask *ask)
{
    static const char *const once[] = {"client_id",  "redirect_uri", "response_type",
                                       "scope",      "state",        "code_challenge",
                                       "login_hint", "nonce",        "code_challenge_method"};
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++) {
        if (box_call_param_at(call, once[i], 1).data != NULL) {
            box_page_error(call, 400, "invalid_request",
                           "OAuth 2 parameters can only have a single value: %s", once[i]);
            return false;
        }
    }
    const tide_text client = box_call_param(call, "client_id");
    if (client.bytes == 0) {
        box_page_error(call, 400, "invalid_request", "Missing required parameter: client_id");
        return false;
    }
    ask->client = box_auth_client(box_cloud_auth(call->cloud), client);
    if (ask->client == 0) {
        box_page_error(call, 401, "invalid_client", "The OAuth client was not found.");
        return false;
    }
    const tide_text uri = box_call_param(call, "redirect_uri");
    if (uri.bytes == 0) {
        box_page_error(call, 400, "invalid_request", "Missing required parameter: redirect_uri");
        return false;
    }
    if (!is_loopback(uri) && !(ask->microsoft && is_native(uri))) {
        box_page_error(call, 400, "redirect_uri_mismatch",
                       "The redirect URI %.*s is not a loopback address; this cloud redirects "
                       "to no other.",
                       (int)(uri.bytes > 300 ? 300 : uri.bytes), uri.data);
        return false;
    }
    return copy_text(ask->redirect_uri, BOX_REDIRECT_BYTES_MAX, uri);
}

/* false: the answer is a page that says why. */
static bool read_ask(struct box_call *call, struct box_ask *ask)
{
    if (!read_client(call, ask))
        return false;
    const tide_text type = box_call_param(call, "response_type");
    if (type.bytes == 0) {
        box_page_error(call, 400, "invalid_request", "Missing required parameter: response_type");
        return false;
    }
    if (!tide_text_equal(type, TIDE_TEXT("code"))) {
        box_page_error(call, 400, "unsupported_response_type", "Invalid response_type: %.*s",
                       (int)(type.bytes > 100 ? 100 : type.bytes), type.data);
        return false;
    }
    const tide_text scope = box_call_param(call, "scope");
    if (scope.bytes == 0) {
        box_page_error(call, 400, "invalid_request", "Missing required parameter: scope");
        return false;
    }
    ask->scopes = read_scopes(call, scope, ask->microsoft);
    if (ask->scopes == 0 || !read_challenge(call, ask))
        return false;
    const tide_text state = box_call_param(call, "state");
    ask->has_state = state.data != NULL;
    if (!copy_text(ask->state, BOX_STATE_BYTES_MAX, state) ||
        !copy_text(ask->nonce, BOX_NONCE_BYTES_MAX, box_call_param(call, "nonce"))) {
        box_page_error(call, 400, "invalid_request", "The state or the nonce is too long.");
        return false;
    }
    json_t *nonce = json_string(ask->nonce); /* it is signed, in JSON */
    if (nonce == NULL) {
        box_page_error(call, 400, "invalid_request", "Invalid parameter value for nonce");
        return false;
    }
    json_decref(nonce);
    ask->with_granted = box_call_flag(call, "include_granted_scopes");
    return true;
}

/* ---- the two halves of consent ---- */

static void deny(struct box_call *call, const struct box_ask *ask)
{
    if (ask->device[0] != '\0')
        box_device_answer(call, ask->device, NULL, 0);
    else
        redirect(call, ask, "error", "access_denied", 0);
}

static void grant(struct box_call *call, const struct box_ask *ask, struct box_user *user,
                  uint32_t scopes)
{
    if ((scopes & ask->scopes) == 0) {
        deny(call, ask);
        return;
    }
    if (ask->device[0] != '\0') {
        box_device_answer(call, ask->device, user, scopes & ask->scopes);
        return;
    }
    struct box_auth *auth = box_cloud_auth(call->cloud);
    const char *code = box_auth_code(auth, ask, user, scopes, call->now_ms);
    if (code == NULL) {
        box_page_error(call, 503, "temporarily_unavailable",
                       "Too many sign-ins are under way. Try again in ten minutes.");
        return;
    }
    redirect(call, ask, "code", code, box_auth_code_scopes(auth, tide_text_of(code)));
}

/* The ticks that scripts took away with box_untick=SCOPE. */
static uint32_t ticked_of(const struct box_call *call, const struct box_ask *ask)
{
    uint32_t ticked = ask->scopes;
    for (size_t i = 0;; i++) { /* ends: the parameters are counted */
        const tide_text untick = box_call_param_at(call, "box_untick", i);
        if (untick.data == NULL)
            return ticked;
        ticked &= ~box_signin_scopes_parse(untick);
    }
}

/* GET: a page; or at once the answer, when the cloud consents by itself. */
void box_signin_authorize(struct box_call *call, bool microsoft)
{
    struct box_ask ask = {.microsoft = microsoft};
    if (!read_ask(call, &ask))
        return;
    const tide_text hint = box_call_param(call, "login_hint");
    struct box_user *user = hint.bytes == 0 ? NULL : box_cloud_user(call->cloud, hint);
    if (user == NULL)
        user = box_cloud_user_at(call->cloud, 0);
    if (user == NULL) {
        box_page_error(call, 400, "no_users", "There are no users in this cloud yet.");
        return;
    }
    if (box_call_flag(call, "box_deny")) {
        redirect(call, &ask, "error", "access_denied", 0);
        return;
    }
    if (box_cloud_options(call->cloud)->auto_consent) {
        grant(call, &ask, user, ticked_of(call, &ask));
        return;
    }
    if (tide_text_equal(box_call_param(call, "prompt"), TIDE_TEXT("none"))) {
        redirect(call, &ask, "error", "interaction_required", 0);
        return;
    }
    tide_auto_buf ticket = tide_buf_heap(256);
    box_auth_ticket(box_cloud_auth(call->cloud), &ask, call->now_ms, &ticket);
    box_page_consent(call, &ask, tide_buf_text(&ticket), hint, ticked_of(call, &ask));
}

static void authorize(struct box_call *call)
{
    box_signin_authorize(call, false);
}

bool box_signin_foreign(const struct box_call *call)
{
    const tide_text site = box_request_header(call->request, "Sec-Fetch-Site");
    return tide_text_equal(site, TIDE_TEXT("cross-site"));
}

/* POST: what the person pressed. */
static void consent(struct box_call *call)
{
    struct box_param *params =
        tide_arena_take(call->scratch, BOX_PARAMS_MAX * sizeof(struct box_param));
    TIDE_ASSERT(params != NULL);
    size_t count = 0;
    if (!box_params_parse(call->request->body, call->scratch, params, &count)) {
        box_page_error(call, 400, "invalid_request", "The form is malformed.");
        return;
    }
    if (box_signin_foreign(call)) {
        box_page_error(call, 403, "invalid_request", "The form came from another site.");
        return;
    }
    struct box_ask ask;
    if (!box_auth_ticket_take(box_cloud_auth(call->cloud), box_param(params, count, "ticket"),
                              call->now_ms, &ask)) {
        box_page_error(call, 400, "invalid_request",
                       "This page was used already or is older than ten minutes. Start again.");
        return;
    }
    if (!tide_text_equal(box_param(params, count, "answer"), TIDE_TEXT("allow"))) {
        deny(call, &ask);
        return;
    }
    struct box_user *user = box_cloud_user(call->cloud, box_param(params, count, "user"));
    if (user == NULL) {
        box_page_error(call, 400, "invalid_request", "There is no such user.");
        return;
    }
    uint32_t scopes = 0;
    for (size_t i = 0; i < count; i++) {
        if (tide_text_equal(params[i].name, TIDE_TEXT("scope")))
            scopes |= box_signin_scopes_parse(params[i].value);
    }
    grant(call, &ask, user, scopes);
}

/* ---- the table ---- */

#define WHO (BOX_SCOPE_OPENID | BOX_SCOPE_EMAIL | BOX_SCOPE_PROFILE)

#define METHOD(method, verbs, at, who, handler)                                                    \
    {                                                                                              \
        .name = "oauth2." method, .verb = verbs, .path = at, .scopes = who, .handle = handler      \
    }

static const struct box_method methods[] = {
    METHOD("authorize", BOX_GET, "/o/oauth2/v2/auth", 0, authorize),
    METHOD("authorize", BOX_GET, "/o/oauth2/auth", 0, authorize),
    METHOD("consent", BOX_POST, "/o/oauth2/v2/auth", 0, consent),
    METHOD("consent", BOX_POST, "/o/oauth2/auth", 0, consent),
    METHOD("setup", BOX_GET, "/projectcreate", 0, box_setup_page),
    METHOD("setup", BOX_GET, "/apis/library/{api}", 0, box_setup_page),
    METHOD("setup", BOX_GET, "/auth/overview", 0, box_setup_page),
    METHOD("setup", BOX_GET, "/auth/audience", 0, box_setup_page),
    METHOD("setup", BOX_GET, "/auth/clients/create", 0, box_page_client),
    METHOD("setup", BOX_POST, "/auth/clients/create", 0, box_setup_client),
    METHOD("token", BOX_POST, "/token", 0, box_signin_token),
    METHOD("token", BOX_POST, "/oauth2/v4/token", 0, box_signin_token),
    METHOD("token", BOX_POST, "/o/oauth2/token", 0, box_signin_token),
    METHOD("revoke", BOX_POST, "/revoke", 0, box_signin_revoke),
    METHOD("revoke", BOX_GET, "/revoke", 0, box_signin_revoke),
    METHOD("revoke", BOX_POST, "/o/oauth2/revoke", 0, box_signin_revoke),
    METHOD("revoke", BOX_GET, "/o/oauth2/revoke", 0, box_signin_revoke),
    METHOD("certs", BOX_GET, "/oauth2/v3/certs", 0, box_signin_certs),
    METHOD("certs", BOX_GET, "/oauth2/v1/certs", 0, box_signin_certs_pem),
    METHOD("discovery", BOX_GET, "/.well-known/openid-configuration", 0, box_signin_discovery),
    METHOD("tokeninfo", BOX_GET, "/tokeninfo", 0, box_signin_tokeninfo),
    METHOD("tokeninfo", BOX_POST, "/tokeninfo", 0, box_signin_tokeninfo),
    METHOD("tokeninfo", BOX_GET, "/oauth2/v3/tokeninfo", 0, box_signin_tokeninfo),
    METHOD("userinfo.get", BOX_GET, "/oauth2/v3/userinfo", WHO, box_signin_userinfo),
    METHOD("userinfo.get", BOX_POST, "/oauth2/v3/userinfo", WHO, box_signin_userinfo),
    METHOD("userinfo.get", BOX_GET, "/v1/userinfo", WHO, box_signin_userinfo),
    METHOD("userinfo.v2.get", BOX_GET, "/oauth2/v2/userinfo", WHO, box_signin_userinfo_v2),
};

/* ---- the service ---- */

static void *open_auth(box_cloud *cloud)
{
    return box_auth_new(cloud);
}

static void close_auth(void *state)
{
    box_auth_free(state);
}

struct box_auth *box_cloud_auth(box_cloud *cloud)
{
    return box_cloud_state(cloud, &box_signin);
}

static bool identify(box_cloud *cloud, tide_text token, uint64_t now_ms,
                     struct box_principal *principal_out)
{
    return box_auth_check(box_cloud_auth(cloud), token, now_ms, principal_out);
}

static tide_status replay(box_cloud *cloud, const json_t *change, tide_error *err)
{
    return box_auth_replay(box_cloud_auth(cloud), change, err);
}

tide_status box_cloud_add_token(box_cloud *cloud, tide_text token, tide_text email, tide_error *err)
{
    struct box_user *user = box_cloud_user_need(cloud, email, err);
    return user == NULL ? TIDE_INVALID : box_auth_add_token(box_cloud_auth(cloud), token, user);
}

const struct box_service box_signin = {
    .name = "oauth2",
    .methods = methods,
    .methods_count = sizeof methods / sizeof methods[0],
    .style = &box_google_style,
    .open = open_auth,
    .close = close_auth,
    .identify = identify,
    .ops = "auth-",
    .replay = replay,
};
