/* tokens.c - staying signed in: access tokens, refreshed by one thread at a time. */
#include "net/oauth/inside.h"

#include "base/check.h"
#include "base/encode.h"

#include <stdio.h>
#include <string.h>

enum {
    MARGIN_MS = 60000,      /* a token must be valid for at least this long */
    LIFE_MS_MAX = 86400000, /* of a stored one, whatever the clock says */
    WAIT_SLICE_MS = 100,    /* how often a waiting caller checks its cancel token */
    SKEW_MS_MAX = 60000,    /* between our clock and the provider's */
    ACCOUNT_SHOWN_BYTES = 160,
    WHY_BYTES = 201,
    COMMAND_SHOWN_BYTES = 240,
};

struct tide_tokens {
    tide_world *world;
    tide_mem *mem;
    struct tide_mem_wiping wiping; /* used at opening and by the busy thread only */
    tide_secrets *secrets;
    const struct tide_oauth_provider *provider;
    char name[TIDE_SECRET_NAME_BYTES_MAX + 1];
    char account[ACCOUNT_SHOWN_BYTES]; /* for errors, as the next one */
    char sign_in[COMMAND_SHOWN_BYTES];

    tide_lock *lock; /* guards what follows */
    tide_cond *changed;
    bool busy;           /* a thread refreshes or revokes (OAU2) */
    bool refused;        /* the server refused this access token */
    bool ended;          /* the provider no longer accepts this sign-in (OAU3) */
    bool unsaved;        /* the grant in memory is newer than the stored one (OAU1) */
    char why[WHY_BYTES]; /* a key was refused; "": none was */
    struct tide_grant grant;
    uint64_t good_until_ms;  /* of the access token, on our clock, minus the margin */
    uint64_t attempts;       /* refreshes that have ended */
    uint64_t attempt_ok;     /* the last of them that succeeded */
    uint64_t attempt_shared; /* the last whose failure all waiting callers get */
    tide_error shared;
};

/* ---- opening ---- */

static tide_status needs_sign_in(const tide_tokens *self, const char *why, tide_error *err)
{
    return tide_error_set(err, TIDE_AUTH, "%.200s; sign in again: `%s`", why, self->sign_in);
}

/* Reads the stored grant into an empty one. */
static tide_status grant_load(tide_tokens *self, struct tide_grant *grant, tide_error *err)
{
    tide_buf json;
    tide_buf_init(&json, &self->wiping.base, TIDE_SECRET_BYTES_MAX);
    tide_status rc = tide_secrets_get(self->secrets, self->name, &json, err);
    if (rc == TIDE_NOT_FOUND)
        rc = needs_sign_in(self, "no sign-in is stored", err);
    else if (rc == TIDE_OK)
        rc = tide_grant_read(tide_buf_text(&json), grant, err);
    if (rc == TIDE_OK && grant->type != TIDE_GRANT_FIXED &&
        !tide_text_equal(tide_buf_text(&grant->provider), tide_text_of(self->provider->name)))
        rc = needs_sign_in(self, "the stored sign-in is one of another provider", err);
    if (rc == TIDE_CORRUPT || rc == TIDE_FULL)
        rc = needs_sign_in(self, "the stored sign-in is damaged", err);
    /* The owner must fix a file that others can read (SEC2).  It is not a fault of the current
     * item, which TIDE_INVALID would make bad. */
    if (rc == TIDE_INVALID) {
        rc = TIDE_AUTH;
        if (err != NULL)
            err->status = rc;
    }
    tide_secret_wipe(&json);
    return rc;
}

static tide_status grant_save(tide_tokens *self, const struct tide_grant *grant, tide_error *err)
{
    tide_buf json;
    tide_buf_init(&json, &self->wiping.base, TIDE_SECRET_BYTES_MAX);
    tide_status rc = tide_grant_write(grant, &json, err);
    if (rc == TIDE_OK)
        rc = tide_secrets_put(self->secrets, self->name, tide_buf_text(&json), err);
    tide_secret_wipe(&json);
    return rc;
}

/* Until when a stored access token may be used, on our own clock; 0: not usable. */
static uint64_t good_until(tide_tokens *self, const struct tide_grant *grant, uint64_t now_ms)
{
    if (grant->access_token.bytes == 0)
        return 0;
    if (grant->type == TIDE_GRANT_FIXED)
        return TIDE_NEVER;
    const uint64_t now_unix_ms = tide_world_now_unix_ms(self->world);
    if (grant->expires_unix_ms <= now_unix_ms + MARGIN_MS)
        return 0;
    const uint64_t left_ms = grant->expires_unix_ms - now_unix_ms;
    return now_ms + (left_ms > LIFE_MS_MAX ? LIFE_MS_MAX : left_ms) - MARGIN_MS;
}

tide_status tide_tokens_open(tide_world *world, tide_secrets *secrets,
                             const struct tide_tokens_options *options, tide_mem *mem,
                             tide_tokens **tokens_out, tide_error *err)
{
    tide_tokens *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for tokens");
    self->world = world;
    self->mem = mem;
    tide_mem_wiping_init(&self->wiping, mem);
    self->secrets = secrets;
    self->provider = options->provider;
    tide_grant_init(&self->grant, &self->wiping.base);
    (void)snprintf(self->account, sizeof self->account, "%s", options->account);
    (void)snprintf(self->sign_in, sizeof self->sign_in, "%s", options->sign_in);
    tide_status rc = TIDE_OK;
    if ((size_t)snprintf(self->name, sizeof self->name, "%s", options->secret) >= sizeof self->name)
        rc = tide_error_set(err, TIDE_INVALID, "the name of a secret is too long");
    if (rc == TIDE_OK)
        rc = grant_load(self, &self->grant, err);
    if (rc == TIDE_OK)
        rc = tide_lock_new(world, &self->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(world, &self->changed);
    if (rc == TIDE_NO_MEMORY)
        (void)tide_error_set(err, rc, "no memory for tokens");
    if (rc != TIDE_OK) {
        tide_tokens_close(self);
        return rc;
    }
    self->good_until_ms = good_until(self, &self->grant, tide_world_now_ms(world));
    *tokens_out = self;
    return TIDE_OK;
}

void tide_tokens_close(tide_tokens *self)
{
    if (self == NULL)
        return;
    TIDE_ASSERT(!self->busy);
    tide_grant_done(&self->grant);
    if (self->changed != NULL)
        tide_cond_free(self->world, self->changed);
    if (self->lock != NULL)
        tide_lock_free(self->world, self->lock);
    tide_mem_free(self->mem, self, sizeof *self);
}

/* ---- a refresh: everything here runs without the lock, on the busy thread ---- */

/* The result of the busy thread. */
struct refreshed {
    struct tide_grant grant;
    uint64_t good_until_ms;
    bool ended;   /* this sign-in is no longer accepted */
    bool unsaved; /* valid, but it could not be stored */
    bool kept;    /* no new grant: the one in memory was stored, or not */
};

/* The scopes of the grant, with those that the provider does not list in an answer. */
static tide_status scopes_add(const struct tide_oauth_provider *provider,
                              const struct tide_grant *grant, tide_buf *form)
{
    TIDE_TRY(tide_form_add(form, "scope", tide_buf_text(&grant->scopes)));
    if (provider->more_scopes != NULL)
        TIDE_TRY(tide_buf_add_text(form, "%20"));
    if (provider->more_scopes != NULL)
        TIDE_TRY(tide_percent_add(form, tide_text_of(provider->more_scopes), TIDE_URL_UNRESERVED));
    return TIDE_OK;
}

static tide_status refresh_form(const struct tide_oauth_provider *provider,
                                const struct tide_grant *grant, uint64_t now_unix_ms,
                                tide_buf *form, tide_error *err)
{
    if (grant->type == TIDE_GRANT_SERVICE)
        return tide_service_form(grant, now_unix_ms, form, err);
    tide_status rc = tide_form_add(form, "grant_type", TIDE_TEXT("refresh_token"));
    if (rc == TIDE_OK)
        rc = tide_form_add(form, "refresh_token", tide_buf_text(&grant->refresh_token));
    if (rc == TIDE_OK)
        rc = tide_form_add(form, "client_id", tide_buf_text(&grant->client_id));
    if (rc == TIDE_OK && grant->client_secret.bytes > 0)
        rc = tide_form_add(form, "client_secret", tide_buf_text(&grant->client_secret));
    if (rc == TIDE_OK && provider->refresh_scopes)
        rc = scopes_add(provider, grant, form);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for a request");
}

/* Requests an access token for a grant. */
static tide_status grant_ask(tide_world *world, const struct tide_oauth_provider *provider,
                             const struct tide_grant *grant, uint64_t now_unix_ms,
                             const tide_cancel *cancel, struct tide_token_answer *answer,
                             tide_error *err)
{
    tide_buf form;
    tide_buf_init(&form, answer->access_token.mem, TIDE_OAUTH_FORM_BYTES_MAX);
    const struct tide_oauth_post post = {.world = world,
                                         .provider = provider,
                                         .url = tide_buf_cstr(&grant->token_url),
                                         .form = &form,
                                         .cancel = cancel};
    tide_status rc = refresh_form(provider, grant, now_unix_ms, &form, err);
    if (rc == TIDE_OK)
        rc = tide_token_request(&post, answer, err);
    tide_secret_wipe(&form);
    return rc;
}

static tide_status answer_adopt(const struct tide_token_answer *answer, uint64_t now_unix_ms,
                                struct tide_grant *grant, tide_error *err)
{
    tide_status rc = tide_buf_set(&grant->access_token, tide_buf_text(&answer->access_token));
    if (rc == TIDE_OK && answer->refresh_token.bytes > 0) /* some providers return a new one */
        rc = tide_buf_set(&grant->refresh_token, tide_buf_text(&answer->refresh_token));
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory for a token");
    grant->expires_unix_ms = now_unix_ms + answer->life_ms;
    return TIDE_OK;
}

/* A signed assertion contains the time; if our clock is wrong, use the server's. */
static bool clock_is_wrong(const struct tide_grant *grant, uint64_t now_unix_ms,
                           const struct tide_token_answer *answer)
{
    const uint64_t server_ms = answer->server_unix_ms;
    const uint64_t apart_ms =
        server_ms > now_unix_ms ? server_ms - now_unix_ms : now_unix_ms - server_ms;
    return grant->type == TIDE_GRANT_SERVICE && server_ms != 0 && apart_ms > SKEW_MS_MAX;
}

/* Requests a new access token for `next->grant`. */
static tide_status ask_provider(tide_tokens *self, const tide_cancel *cancel,
                                struct refreshed *next, tide_error *err)
{
    const uint64_t now_ms = tide_world_now_ms(self->world);
    const uint64_t now_unix_ms = tide_world_now_unix_ms(self->world);
    struct tide_token_answer answer;
    tide_token_answer_init(&answer, &self->wiping.base);
    tide_error why = {0};
    tide_status rc =
        grant_ask(self->world, self->provider, &next->grant, now_unix_ms, cancel, &answer, &why);
    if (rc == TIDE_AUTH && clock_is_wrong(&next->grant, now_unix_ms, &answer))
        rc = grant_ask(self->world, self->provider, &next->grant, answer.server_unix_ms, cancel,
                       &answer, &why);
    if (rc == TIDE_OK)
        rc = answer_adopt(&answer, now_unix_ms, &next->grant, &why);
    if (rc == TIDE_OK) {
        const uint64_t margin_ms =
            answer.life_ms < 2 * MARGIN_MS ? answer.life_ms / 2 : (uint64_t)MARGIN_MS;
        next->good_until_ms = now_ms + answer.life_ms - margin_ms;
    } else if (rc == TIDE_AUTH || rc == TIDE_CORRUPT || rc == TIDE_INVALID) {
        next->ended = true;
        rc = needs_sign_in(self, why.text, err);
    } else {
        (void)tide_error_set(err, rc, "cannot refresh the sign-in of %s: %.200s", self->account,
                             why.text);
    }
    tide_token_answer_done(&answer);
    return rc;
}

tide_status tide_oauth_try(const struct tide_oauth_provider *provider, tide_world *world,
                           tide_text grant_json, const tide_cancel *cancel, tide_mem *mem,
                           tide_buf *bearer_out, tide_error *err)
{
    struct tide_mem_wiping wiping;
    struct tide_grant grant;
    struct tide_token_answer answer;
    tide_mem_wiping_init(&wiping, mem);
    tide_grant_init(&grant, &wiping.base);
    tide_token_answer_init(&answer, &wiping.base);
    tide_status rc = tide_grant_read(grant_json, &grant, err);
    /* A user's grant comes with an access token; a refresh could use up its refresh token. */
    const bool has = rc == TIDE_OK && grant.access_token.bytes > 0;
    if (rc == TIDE_OK && !has)
        rc =
            grant_ask(world, provider, &grant, tide_world_now_unix_ms(world), cancel, &answer, err);
    if (rc == TIDE_OK)
        rc = tide_buf_set(bearer_out,
                          tide_buf_text(has ? &grant.access_token : &answer.access_token));
    tide_token_answer_done(&answer);
    tide_grant_done(&grant);
    return rc;
}

/* A token that another process stored meanwhile is as good as our own refresh. */
static bool is_news(const tide_tokens *self, const struct refreshed *next)
{
    return next->good_until_ms != 0 && (!tide_grant_same(&self->grant, &next->grant) ||
                                        !tide_text_equal(tide_buf_text(&self->grant.access_token),
                                                         tide_buf_text(&next->grant.access_token)));
}

/* The provider refused the grant.  If refresh tokens are used once, another process may just have
 * used this one and stored the next: then it is no refusal of the sign-in.  Replaces the grant;
 * false: it is the stored one. */
static bool replaced(tide_tokens *self, struct refreshed *next)
{
    struct tide_grant stored;
    tide_grant_init(&stored, &self->wiping.base);
    const bool other =
        grant_load(self, &stored, NULL) == TIDE_OK && !tide_grant_same(&stored, &next->grant);
    if (other) {
        const struct tide_grant refused = next->grant;
        next->grant = stored;
        stored = refused;
        next->ended = false;
        next->good_until_ms = good_until(self, &next->grant, tide_world_now_ms(self->world));
    }
    tide_grant_done(&stored);
    return other;
}

/* The busy thread may read self->grant: no other thread writes it. */
static tide_status refresh(tide_tokens *self, const tide_cancel *cancel, struct refreshed *next,
                           tide_error *err)
{
    TIDE_TRY(grant_load(self, &next->grant, err));
    next->good_until_ms = good_until(self, &next->grant, tide_world_now_ms(self->world));
    const bool same = tide_grant_same(&self->grant, &next->grant);
    if (is_news(self, next))
        return TIDE_OK;
    const bool key = next->grant.type == TIDE_GRANT_FIXED;
    if (self->ended && same) {
        next->ended = true; /* OAU3: not retried; the stored sign-in is the refused one */
        return needs_sign_in(
            self, key && self->why[0] != '\0' ? self->why : "the sign-in is no longer valid", err);
    }
    if (key) {
        next->ended = true;
        return needs_sign_in(
            self, self->why[0] != '\0' ? self->why : "the fixed token is no longer accepted", err);
    }
    tide_status rc = ask_provider(self, cancel, next, err);
    if (rc == TIDE_AUTH && next->ended && replaced(self, next)) {
        if (next->good_until_ms != 0)
            return TIDE_OK;
        rc = ask_provider(self, cancel, next, err);
    }
    if (rc != TIDE_OK)
        return rc;
    rc = grant_save(self, &next->grant, err); /* OAU1 */
    next->unsaved = rc != TIDE_OK;
    return rc;
}

/* Stores a token that could not be stored before, instead of requesting another: the refresh
 * token in it may be the only valid one.  Unless a newer sign-in is stored. */
static tide_status save_again(tide_tokens *self, const tide_cancel *cancel, struct refreshed *next,
                              tide_error *err)
{
    struct tide_grant stored;
    tide_grant_init(&stored, &self->wiping.base);
    const bool newer = grant_load(self, &stored, NULL) == TIDE_OK &&
                       stored.expires_unix_ms > self->grant.expires_unix_ms;
    tide_grant_done(&stored);
    if (newer)
        return refresh(self, cancel, next, err);
    next->kept = true;
    return grant_save(self, &self->grant, err);
}

/* ---- getting a token, under the lock ---- */

static bool is_good(const tide_tokens *self, uint64_t now_ms)
{
    return !self->refused && !self->ended && !self->unsaved && now_ms < self->good_until_ms;
}

static tide_status give(const tide_tokens *self, tide_buf *bearer_out, tide_error *err)
{
    tide_status rc = tide_buf_set(bearer_out, tide_buf_text(&self->grant.access_token));
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for a token");
}

/* Takes over the result of the refresh; `next` is empty or has the old grant afterwards. */
static void settle(tide_tokens *self, tide_status rc, struct refreshed *next, const tide_error *err)
{
    self->attempts++;
    if (next->kept) {
        self->unsaved = rc != TIDE_OK;
    } else if (rc == TIDE_OK || next->unsaved || next->ended) {
        const struct tide_grant old = self->grant;
        self->grant = next->grant;
        next->grant = old;
        self->good_until_ms = next->good_until_ms;
        self->ended = next->ended;
        self->unsaved = next->unsaved;
        self->refused = false;
    }
    if (rc == TIDE_OK) {
        self->attempt_ok = next->kept ? self->attempt_ok : self->attempts;
    } else if (rc != TIDE_CANCELED && rc != TIDE_NO_MEMORY) {
        /* Not a cancel or lack of memory of this thread: waiting callers would get the same. */
        self->attempt_shared = self->attempts;
        self->shared = *err;
    }
}

/* Called with the lock and returns with it; releases it in between. */
static tide_status refresh_alone(tide_tokens *self, const tide_cancel *cancel, tide_error *err)
{
    struct refreshed next = {.good_until_ms = 0};
    tide_error why = {0};
    tide_status rc = TIDE_OK;
    const bool unsaved = self->unsaved;
    self->busy = true;
    tide_lock_drop(self->world, self->lock);
    tide_grant_init(&next.grant, &self->wiping.base);
    rc = unsaved ? save_again(self, cancel, &next, &why) : refresh(self, cancel, &next, &why);
    tide_lock_take(self->world, self->lock);
    settle(self, rc, &next, &why);
    tide_grant_done(&next.grant);
    self->busy = false;
    tide_cond_wake_all(self->world, self->changed);
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    return rc;
}

/* Waits for the busy thread.  TIDE_OK: check again. */
static tide_status wait_turn(tide_tokens *self, const tide_cancel *cancel, tide_error *err)
{
    if (cancel != NULL && tide_canceled(cancel) != TIDE_CANCEL_NONE)
        return tide_error_set(err, TIDE_CANCELED, "canceled");
    const uint64_t deadline_us =
        cancel == NULL ? TIDE_NEVER
                       : tide_world_now_us(self->world) + (uint64_t)WAIT_SLICE_MS * 1000;
    if (tide_cond_wait(self->world, self->changed, self->lock, deadline_us) == TIDE_STOPPED)
        return tide_error_set(err, TIDE_STOPPED, "stopped");
    return TIDE_OK;
}

tide_status tide_tokens_get(tide_tokens *self, const tide_cancel *cancel, tide_buf *bearer_out,
                            tide_error *err)
{
    tide_status rc = TIDE_OK;
    tide_lock_take(self->world, self->lock);
    const uint64_t came_at = self->attempts; /* later results count for this caller */
    for (;;) { /* ends: in each pass an attempt ends, and its result counts here */
        /* A token that was just requested is returned even if it expires soon. */
        const bool fresh =
            self->attempt_ok > came_at && !self->refused && !self->ended && !self->unsaved;
        if (is_good(self, tide_world_now_ms(self->world)) || (fresh && !self->busy)) {
            rc = give(self, bearer_out, err);
            break;
        }
        if (self->busy) {
            rc = wait_turn(self, cancel, err);
            if (rc != TIDE_OK)
                break;
            continue;
        }
        if (self->attempt_shared > came_at) {
            rc = self->shared.status;
            if (err != NULL)
                *err = self->shared;
            break;
        }
        if (cancel != NULL && tide_canceled(cancel) != TIDE_CANCEL_NONE) {
            rc = tide_error_set(err, TIDE_CANCELED, "canceled");
            break;
        }
        rc = refresh_alone(self, cancel, err);
        if (rc != TIDE_OK)
            break;
    }
    tide_lock_drop(self->world, self->lock);
    return rc;
}

bool tide_tokens_cover(tide_tokens *self, const char *scopes)
{
    tide_lock_take(self->world, self->lock);
    const tide_text given = tide_buf_text(&self->grant.scopes);
    const bool covers = given.bytes == 0 || tide_oauth_scopes_cover(self->provider, given, scopes);
    tide_lock_drop(self->world, self->lock);
    return covers;
}

void tide_tokens_refused(tide_tokens *self, tide_text bearer)
{
    tide_lock_take(self->world, self->lock);
    /* A token that was replaced meanwhile is ignored. */
    if (tide_text_equal(bearer, tide_buf_text(&self->grant.access_token)))
        self->refused = true;
    tide_lock_drop(self->world, self->lock);
}

void tide_tokens_refused_for(tide_tokens *self, tide_text bearer, const char *why)
{
    tide_lock_take(self->world, self->lock);
    /* While another thread reads the stored key, it may read `why`, too. */
    if (!self->busy && tide_text_equal(bearer, tide_buf_text(&self->grant.access_token))) {
        const tide_text shown = tide_utf8_cut(tide_text_of(why), sizeof self->why - 1);
        (void)snprintf(self->why, sizeof self->why, "%.*s", (int)shown.bytes,
                       shown.bytes == 0 ? "" : shown.data);
        self->refused = true;
    }
    tide_lock_drop(self->world, self->lock);
}

/* Revokes at the provider, on the busy thread.  *revoked_out: whether there was anything to
 * revoke. */
static tide_status revoke(tide_tokens *self, bool *revoked_out, tide_error *err)
{
    *revoked_out = self->grant.type == TIDE_GRANT_USER && self->grant.revoke_url.bytes > 0;
    if (!*revoked_out || self->ended)
        return TIDE_OK;
    tide_buf form;
    tide_buf_init(&form, &self->wiping.base, TIDE_OAUTH_FORM_BYTES_MAX);
    const struct tide_oauth_post post = {.world = self->world,
                                         .provider = self->provider,
                                         .url = tide_buf_cstr(&self->grant.revoke_url),
                                         .form = &form};
    tide_status rc = tide_form_add(&form, "token", /* not in the address: addresses are logged */
                                   tide_buf_text(&self->grant.refresh_token));
    rc = rc == TIDE_OK ? tide_revoke_request(&post, err)
                       : tide_error_set(err, rc, "no memory for a request");
    tide_secret_wipe(&form);
    return rc;
}

tide_status tide_tokens_revoke(tide_tokens *self, bool *revoked_out, tide_error *err)
{
    tide_status rc = TIDE_OK;
    bool revoked = false;
    tide_lock_take(self->world, self->lock);
    while (rc == TIDE_OK && self->busy)
        rc = wait_turn(self, NULL, err);
    if (rc != TIDE_OK) {
        tide_lock_drop(self->world, self->lock);
        return rc;
    }
    self->busy = true;
    tide_lock_drop(self->world, self->lock);
    rc = revoke(self, &revoked, err);
    const bool ended = rc == TIDE_OK;
    if (rc == TIDE_OK) {
        rc = tide_secrets_remove(self->secrets, self->name, err);
        rc = rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    }
    tide_lock_take(self->world, self->lock);
    self->busy = false;
    if (ended) {
        self->ended = true;
        self->unsaved = false;
    }
    tide_cond_wake_all(self->world, self->changed);
    tide_lock_drop(self->world, self->lock);
    if (rc == TIDE_OK)
        *revoked_out = revoked;
    return rc;
}
