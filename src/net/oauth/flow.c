/* flow.c - interactive sign-in: link, answer, grant (RFC 8252 with PKCE, RFC 7636). */
#include "net/oauth/inside.h"

#include "base/check.h"
#include "base/encode.h"
#include "world/loopback.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum {
    RANDOM_BYTES = 32,
    RANDOM_TEXT_BYTES = 43, /* of them, in base64url */
    /* The redirect port when there is no listener.  Above the ephemeral ports, so that no other
     * program listens there either. */
    PASTE_PORT = 65535,
    LINK_BYTES_MAX = 16 << 10,
};

typedef enum phase { PHASE_ASKING, PHASE_ANSWERED, PHASE_FINISHED } phase;

struct tide_oauth_flow {
    tide_world *world;
    tide_mem *mem;
    struct tide_mem_wiping wiping;
    const struct tide_oauth_provider *provider;
    struct tide_oauth_client client;
    tide_oauth_way way;
    tide_loopback *loopback;         /* BROWSER */
    struct tide_device device;       /* DEVICE */
    struct tide_token_answer answer; /* of the token endpoint */
    char redirect[64];
    char verifier[RANDOM_TEXT_BYTES + 1];
    char state[RANDOM_TEXT_BYTES + 1];
    tide_buf scopes;    /* of the caller */
    tide_buf requested; /* with those of the provider */
    tide_buf link;
    tide_buf code;
    bool denied;
    phase phase;
};

/* ---- the link ---- */

static tide_status random_text(tide_world *world, tide_mem *wiping,
                               char text_out[RANDOM_TEXT_BYTES + 1])
{
    unsigned char bytes[RANDOM_BYTES];
    tide_buf text;
    tide_world_random(world, bytes, sizeof bytes);
    tide_buf_init(&text, wiping, RANDOM_TEXT_BYTES);
    tide_status rc = tide_base64_add(&text, (tide_text){(const char *)bytes, sizeof bytes},
                                     tide_base64_url, false);
    if (rc == TIDE_OK) {
        TIDE_ASSERT(text.bytes == RANDOM_TEXT_BYTES);
        memcpy(text_out, text.data, RANDOM_TEXT_BYTES + 1);
    }
    explicit_bzero(bytes, sizeof bytes);
    tide_secret_wipe(&text);
    return rc;
}

/* S256: the link contains a hash, and only we can later present what was hashed. */
static tide_status challenge_add(const char *verifier, tide_buf *out)
{
    unsigned char digest[32];
    unsigned bytes = 0;
    TIDE_ASSERT(EVP_Digest(verifier, strlen(verifier), digest, &bytes, EVP_sha256(), NULL) == 1);
    TIDE_ASSERT(bytes == sizeof digest);
    return tide_base64_add(out, (tide_text){(const char *)digest, bytes}, tide_base64_url, false);
}

static tide_status link_write(tide_oauth_flow *self, const struct tide_oauth_ask *ask)
{
    tide_auto_buf form;
    tide_auto_buf challenge;
    tide_buf_init(&form, &self->wiping.base, LINK_BYTES_MAX);
    tide_buf_init(&challenge, &self->wiping.base, RANDOM_TEXT_BYTES);
    tide_status rc = challenge_add(self->verifier, &challenge);
    const struct {
        const char *name;
        tide_text value;
    } params[] = {
        {"client_id", tide_text_of(self->client.client_id)},
        {"redirect_uri", tide_text_of(self->redirect)},
        {"response_type", TIDE_TEXT("code")},
        {"scope", tide_buf_text(&self->requested)},
        {"code_challenge", tide_buf_text(&challenge)},
        {"code_challenge_method", TIDE_TEXT("S256")},
        {"state", tide_text_of(self->state)},
        {"login_hint", tide_text_of(ask->login_hint)},
    };
    for (size_t i = 0; rc == TIDE_OK && i < sizeof params / sizeof params[0]; i++)
        if (params[i].value.bytes > 0)
            rc = tide_form_add(&form, params[i].name, params[i].value);
    const char *url = self->client.auth_url;
    const char *more = self->provider->auth_params;
    if (rc == TIDE_OK)
        rc =
            tide_buf_print(&self->link, "%s%c%s%s%s", url, strchr(url, '?') == NULL ? '?' : '&',
                           tide_buf_cstr(&form), more == NULL ? "" : "&", more == NULL ? "" : more);
    return rc;
}

/* ---- start and end ---- */

static void default_to(char *field, size_t room, const char *value)
{
    if (field[0] == '\0' && value != NULL)
        (void)snprintf(field, room, "%s", value);
}

/* The client with the provider's addresses where it has none of its own. */
static void client_complete(tide_oauth_flow *self, const struct tide_oauth_client *client)
{
    const struct tide_oauth_provider *provider = self->provider;
    struct tide_oauth_client *own = &self->client;
    *own = *client;
    default_to(own->auth_url, sizeof own->auth_url, provider->auth_url);
    default_to(own->token_url, sizeof own->token_url, provider->token_url);
    default_to(own->device_url, sizeof own->device_url, provider->device_url);
    default_to(own->revoke_url, sizeof own->revoke_url, provider->revoke_url);
    if (!provider->client_secret)
        explicit_bzero(own->client_secret, sizeof own->client_secret);
}

static tide_status link_open(tide_oauth_flow *self, const struct tide_oauth_ask *ask,
                             tide_error *err)
{
    unsigned port = PASTE_PORT;
    if (self->way == TIDE_OAUTH_BROWSER) {
        TIDE_TRY(tide_loopback_open(self->mem, &self->loopback, err));
        port = tide_loopback_port(self->loopback);
    }
    const char *host = self->provider->redirect_host;
    (void)snprintf(self->redirect, sizeof self->redirect, "http://%s:%u%s",
                   host == NULL ? "127.0.0.1" : host, port, host == NULL ? "/" : "");
    tide_status rc = random_text(self->world, &self->wiping.base, self->verifier);
    if (rc == TIDE_OK)
        rc = random_text(self->world, &self->wiping.base, self->state);
    if (rc == TIDE_OK)
        rc = link_write(self, ask);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for the sign-in link");
}

static struct tide_oauth_post post_of(const tide_oauth_flow *self, const char *url,
                                      const tide_buf *form, const tide_cancel *cancel)
{
    return (struct tide_oauth_post){.world = self->world,
                                    .provider = self->provider,
                                    .url = url,
                                    .form = form,
                                    .cancel = cancel};
}

static tide_status device_open(tide_oauth_flow *self, const struct tide_oauth_ask *ask,
                               tide_error *err)
{
    if (self->client.device_url[0] == '\0')
        return tide_error_set(err, TIDE_INVALID, "this provider has no device codes");
    tide_buf form;
    tide_buf_init(&form, &self->wiping.base, TIDE_OAUTH_FORM_BYTES_MAX);
    const struct tide_oauth_post post = post_of(self, self->client.device_url, &form, ask->cancel);
    tide_status rc = tide_form_add(&form, "client_id", tide_text_of(self->client.client_id));
    if (rc == TIDE_OK)
        rc = tide_form_add(&form, "scope", tide_buf_text(&self->requested));
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no memory for a request");
    if (rc == TIDE_OK)
        rc = tide_device_start(&post, &self->device, err);
    tide_secret_wipe(&form);
    return rc;
}

static tide_status flow_open(tide_oauth_flow *self, const struct tide_oauth_ask *ask,
                             tide_error *err)
{
    const char *more = self->provider->more_scopes;
    tide_status rc = tide_buf_set(&self->scopes, tide_text_of(ask->scopes));
    if (rc == TIDE_OK)
        rc = tide_buf_print(&self->requested, "%s%s%s", ask->scopes, more == NULL ? "" : " ",
                            more == NULL ? "" : more);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory to sign in");
    return self->way == TIDE_OAUTH_DEVICE ? device_open(self, ask, err) : link_open(self, ask, err);
}

tide_status tide_oauth_flow_start(tide_world *world, const struct tide_oauth_ask *ask,
                                  tide_mem *mem, tide_oauth_flow **flow_out, tide_error *err)
{
    TIDE_ASSERT(ask->provider != NULL);
    TIDE_ASSERT(ask->client != NULL);
    if (ask->client->client_id[0] == '\0')
        return tide_error_set(err, TIDE_INVALID, "signing in needs a client");
    if (ask->scopes == NULL || ask->scopes[0] == '\0')
        return tide_error_set(err, TIDE_INVALID, "signing in needs scopes");
    tide_oauth_flow *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to sign in");
    self->world = world;
    self->mem = mem;
    tide_mem_wiping_init(&self->wiping, mem);
    self->provider = ask->provider;
    self->way = ask->way;
    client_complete(self, ask->client);
    tide_buf_init(&self->scopes, &self->wiping.base, TIDE_OAUTH_FIELD_BYTES_MAX);
    tide_buf_init(&self->requested, &self->wiping.base, TIDE_OAUTH_FIELD_BYTES_MAX);
    tide_buf_init(&self->link, &self->wiping.base, LINK_BYTES_MAX);
    tide_buf_init(&self->code, &self->wiping.base, TIDE_OAUTH_TOKEN_BYTES_MAX);
    tide_buf_init(&self->device.code, &self->wiping.base, TIDE_OAUTH_TOKEN_BYTES_MAX);
    tide_token_answer_init(&self->answer, &self->wiping.base);
    tide_status rc = flow_open(self, ask, err);
    if (rc != TIDE_OK) {
        tide_oauth_flow_free(self);
        return rc;
    }
    *flow_out = self;
    return TIDE_OK;
}

void tide_oauth_flow_free(tide_oauth_flow *self)
{
    if (self == NULL)
        return;
    tide_loopback_close(self->loopback);
    tide_secret_wipe(&self->scopes);
    tide_secret_wipe(&self->requested);
    tide_secret_wipe(&self->link);
    tide_secret_wipe(&self->code);
    tide_secret_wipe(&self->device.code);
    tide_token_answer_done(&self->answer);
    tide_mem *mem = self->mem;
    explicit_bzero(self, sizeof *self);
    tide_mem_free(mem, self, sizeof *self);
}

const char *tide_oauth_flow_link(const tide_oauth_flow *self)
{
    return self->way == TIDE_OAUTH_DEVICE ? self->device.page : tide_buf_cstr(&self->link);
}

const char *tide_oauth_flow_user_code(const tide_oauth_flow *self)
{
    return self->device.user_code;
}

tide_oauth_way tide_oauth_headless(const struct tide_oauth_provider *provider)
{
    return provider->device_url == NULL ? TIDE_OAUTH_PASTE : TIDE_OAUTH_DEVICE;
}

/* ---- the answer ---- */

/* Reads state, code and error out of a query.  TIDE_INVALID: of another sign-in, or nothing in
 * it; TIDE_AUTH: the user declined. */
static tide_status query_read(tide_oauth_flow *self, tide_text query)
{
    tide_buf value;
    tide_buf_init(&value, &self->wiping.base, TIDE_OAUTH_TOKEN_BYTES_MAX);
    tide_status rc = tide_form_get(query, "state", &value);
    if (rc == TIDE_OK && (value.bytes != RANDOM_TEXT_BYTES ||
                          CRYPTO_memcmp(value.data, self->state, RANDOM_TEXT_BYTES) != 0))
        rc = TIDE_INVALID;
    if (rc == TIDE_OK) {
        rc = tide_form_get(query, "error", &value);
        rc = rc == TIDE_OK ? TIDE_AUTH : rc;
        if (rc == TIDE_NOT_FOUND)
            rc = tide_form_get(query, "code", &self->code);
        if (rc == TIDE_OK && !tide_oauth_is_token(tide_buf_text(&self->code)))
            rc = TIDE_INVALID;
    }
    tide_secret_wipe(&value);
    return rc == TIDE_OK || rc == TIDE_AUTH || rc == TIDE_NO_MEMORY ? rc : TIDE_INVALID;
}

static tide_status denied(tide_error *err)
{
    return tide_error_set(err, TIDE_AUTH, "access was not granted in the browser");
}

static tide_loopback_verdict look(void *arg, tide_text target, const char **sentence_out)
{
    tide_oauth_flow *self = arg;
    const char *mark = memchr(target.data, '?', target.bytes);
    const size_t path_bytes = mark == NULL ? target.bytes : (size_t)(mark - target.data);
    if (path_bytes != 1) { /* the path is "/" */
        *sentence_out = "Page not found.";
        return TIDE_LOOPBACK_ELSEWHERE;
    }
    const size_t skipped = mark == NULL ? target.bytes : path_bytes + 1;
    const tide_text query = {target.data + skipped, target.bytes - skipped};
    const tide_status rc = query_read(self, query);
    if (rc != TIDE_OK && rc != TIDE_AUTH) {
        *sentence_out = "This answer does not belong to the current sign-in. Use the link that "
                        "Tidemark printed.";
        return TIDE_LOOPBACK_WRONG;
    }
    self->denied = rc == TIDE_AUTH;
    *sentence_out = self->denied ? "Access was not granted. You can close this window."
                                 : "Tidemark received the answer. You can close this window.";
    return TIDE_LOOPBACK_TAKEN;
}

/* The form that turns the user's answer into tokens. */
static tide_status redeem_form(const tide_oauth_flow *self, tide_buf *form)
{
    const bool device = self->way == TIDE_OAUTH_DEVICE;
    TIDE_TRY(tide_form_add(form, "grant_type",
                           tide_text_of(device ? "urn:ietf:params:oauth:grant-type:device_code"
                                               : "authorization_code")));
    TIDE_TRY(tide_form_add(form, "client_id", tide_text_of(self->client.client_id)));
    if (self->client.client_secret[0] != '\0')
        TIDE_TRY(tide_form_add(form, "client_secret", tide_text_of(self->client.client_secret)));
    if (device)
        return tide_form_add(form, "device_code", tide_buf_text(&self->device.code));
    TIDE_TRY(tide_form_add(form, "code", tide_buf_text(&self->code)));
    TIDE_TRY(tide_form_add(form, "redirect_uri", tide_text_of(self->redirect)));
    return tide_form_add(form, "code_verifier", tide_text_of(self->verifier));
}

static tide_status browser_wait(tide_oauth_flow *self, uint64_t wait_ms, const tide_cancel *cancel,
                                tide_error *err)
{
    self->denied = false;
    tide_status rc =
        tide_loopback_wait(self->loopback, self->world, wait_ms, cancel, look, self, err);
    return rc == TIDE_OK && self->denied ? denied(err) : rc;
}

static tide_status device_wait(tide_oauth_flow *self, uint64_t wait_ms, const tide_cancel *cancel,
                               tide_error *err)
{
    tide_buf form;
    tide_buf_init(&form, &self->wiping.base, TIDE_OAUTH_FORM_BYTES_MAX);
    const struct tide_oauth_post post = post_of(self, self->client.token_url, &form, cancel);
    const uint64_t now_ms = tide_world_now_ms(self->world);
    tide_status rc = redeem_form(self, &form);
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no memory for a request");
    if (rc == TIDE_OK)
        rc = tide_device_poll(&post, &self->device,
                              wait_ms > TIDE_NEVER - now_ms ? TIDE_NEVER : now_ms + wait_ms,
                              &self->answer, err);
    tide_secret_wipe(&form);
    return rc;
}

tide_status tide_oauth_flow_wait(tide_oauth_flow *self, uint64_t wait_ms, const tide_cancel *cancel,
                                 tide_error *err)
{
    TIDE_ASSERT(self->way != TIDE_OAUTH_PASTE);
    TIDE_ASSERT(self->phase == PHASE_ASKING);
    TIDE_TRY(self->way == TIDE_OAUTH_DEVICE ? device_wait(self, wait_ms, cancel, err)
                                            : browser_wait(self, wait_ms, cancel, err));
    self->phase = PHASE_ANSWERED;
    return TIDE_OK;
}

static bool is_padding(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '"' || c == '\'' || c == '<' ||
           c == '>';
}

/* A shorter word is what a user typed instead: trying it at the provider would end the sign-in. */
enum { CODE_BYTES_MIN = 10 };

/* Reads the code alone, as it is in an address, or with what follows it there. */
static tide_status code_read(tide_oauth_flow *self, tide_text pasted)
{
    if (pasted.bytes < CODE_BYTES_MIN)
        return TIDE_INVALID;
    const char *end = memchr(pasted.data, '&', pasted.bytes);
    const tide_text code = {pasted.data, end == NULL ? pasted.bytes : (size_t)(end - pasted.data)};
    tide_status rc =
        tide_oauth_is_token(pasted) ? tide_form_decode(code, &self->code) : TIDE_INVALID;
    return rc == TIDE_OK && !tide_oauth_is_token(tide_buf_text(&self->code)) ? TIDE_INVALID : rc;
}

tide_status tide_oauth_flow_paste(tide_oauth_flow *self, tide_text pasted, tide_error *err)
{
    TIDE_ASSERT(self->phase == PHASE_ASKING);
    while (pasted.bytes > 0 && is_padding(pasted.data[0])) {
        pasted.data++;
        pasted.bytes--;
    }
    while (pasted.bytes > 0 && is_padding(pasted.data[pasted.bytes - 1]))
        pasted.bytes--;
    if (pasted.bytes == 0)
        return tide_error_set(err, TIDE_INVALID, "nothing was pasted");
    const char *mark = memchr(pasted.data, '?', pasted.bytes);
    const char *hash = memchr(pasted.data, '#', pasted.bytes);
    if (hash != NULL) /* some providers append one */
        pasted.bytes = (size_t)(hash - pasted.data);
    tide_status rc = TIDE_OK;
    if (mark != NULL && mark < pasted.data + pasted.bytes)
        rc = query_read(self,
                        (tide_text){mark + 1, pasted.bytes - (size_t)(mark + 1 - pasted.data)});
    else if (memmem(pasted.data, pasted.bytes, "://", 3) != NULL)
        rc = TIDE_INVALID; /* an address without an answer, probably our own link */
    else
        rc = code_read(self, pasted);
    if (rc == TIDE_AUTH)
        return denied(err);
    if (rc == TIDE_NO_MEMORY)
        return tide_error_set(err, rc, "no memory for the answer");
    if (rc != TIDE_OK)
        return tide_error_set(err, TIDE_INVALID,
                              "this is not the final address in the browser: copy the whole "
                              "address, which begins with %s",
                              self->redirect);
    self->phase = PHASE_ANSWERED;
    return TIDE_OK;
}

/* ---- the grant ---- */

static tide_status grant_fill(const tide_oauth_flow *self, struct tide_grant *grant)
{
    const struct tide_oauth_client *client = &self->client;
    const struct tide_token_answer *answer = &self->answer;
    const struct {
        tide_buf *field;
        tide_text value;
    } texts[] = {
        {&grant->provider, tide_text_of(self->provider->name)},
        {&grant->client_id, tide_text_of(client->client_id)},
        {&grant->client_secret, tide_text_of(client->client_secret)},
        {&grant->token_url, tide_text_of(client->token_url)},
        {&grant->revoke_url, tide_text_of(client->revoke_url)},
        {&grant->refresh_token, tide_buf_text(&answer->refresh_token)},
        {&grant->access_token, tide_buf_text(&answer->access_token)},
        {&grant->scopes, tide_buf_text(answer->scope.bytes > 0 ? &answer->scope : &self->scopes)},
    };
    grant->type = TIDE_GRANT_USER;
    grant->expires_unix_ms = answer->asked_unix_ms + answer->life_ms;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        TIDE_TRY(tide_buf_set(texts[i].field, texts[i].value));
    return TIDE_OK;
}

/* Builds the grant.  The request was answered, so the code is used up even if this fails. */
static tide_status grant_give(tide_oauth_flow *self, tide_buf *grant_out, tide_buf *scopes_out,
                              tide_error *err)
{
    if (self->answer.refresh_token.bytes == 0)
        return tide_error_set(err, TIDE_AUTH,
                              "the provider granted no offline access (no refresh token)");
    struct tide_grant grant;
    tide_grant_init(&grant, &self->wiping.base);
    const size_t bytes_before = grant_out->bytes;
    tide_status rc = grant_fill(self, &grant);
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no memory for a sign-in");
    if (rc == TIDE_OK)
        rc = tide_grant_write(&grant, grant_out, err);
    if (rc == TIDE_OK) {
        rc = tide_buf_set(scopes_out, tide_buf_text(&grant.scopes));
        if (rc != TIDE_OK) {
            (void)tide_error_set(err, rc, "no memory for the scopes");
            explicit_bzero(grant_out->data + bytes_before, grant_out->bytes - bytes_before);
            grant_out->bytes = bytes_before;
        }
    }
    tide_grant_done(&grant);
    return rc;
}

/* Redeems the code of a browser. */
static tide_status code_redeem(tide_oauth_flow *self, const tide_cancel *cancel, tide_error *err)
{
    tide_buf form;
    tide_buf_init(&form, &self->wiping.base, TIDE_OAUTH_FORM_BYTES_MAX);
    struct tide_oauth_post post = post_of(self, self->client.token_url, &form, cancel);
    /* A code works once: a request that may have arrived must not be sent again. */
    post.once = true;
    tide_status rc = redeem_form(self, &form);
    if (rc != TIDE_OK) {
        (void)tide_error_set(err, rc, "no memory for a request");
    } else {
        rc = tide_token_request(&post, &self->answer, err);
        if (rc != TIDE_NETWORK)
            self->phase = PHASE_FINISHED;
    }
    tide_secret_wipe(&form);
    return rc;
}

tide_status tide_oauth_flow_finish(tide_oauth_flow *self, const tide_cancel *cancel,
                                   tide_buf *grant_out, tide_buf *scopes_out, tide_error *err)
{
    if (self->phase != PHASE_ANSWERED)
        return tide_error_set(err, TIDE_INVALID, "there is no answer to redeem");
    /* A device code was redeemed by the last poll. */
    TIDE_TRY(self->way == TIDE_OAUTH_DEVICE ? TIDE_OK : code_redeem(self, cancel, err));
    self->phase = PHASE_FINISHED;
    return grant_give(self, grant_out, scopes_out, err);
}
