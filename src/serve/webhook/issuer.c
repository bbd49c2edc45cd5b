#include "serve/webhook/issuer.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FETCH_MS = 5000, URL_BYTES_MAX = 512 };

struct tide_issuer {
    struct tide_issuer_options options;
    tide_mem *mem;
    char url[URL_BYTES_MAX];
    tide_thread *thread;
    tide_cancel cancel;

    tide_lock *lock; /* for all that follows */
    tide_cond *news;
    bool stopping;
    bool wanted; /* a fetch is due or under way */
    tide_keyset *keys;
    uint64_t fetched_ms, renew_ms, expires_ms; /* of `keys` */
    uint64_t retry_ms;                         /* no fetch before this; 0: at any time */
    uint64_t pause_ms;                         /* after the last failure; 0: it did not fail */
};

/* ---- what an answer allows ---- */

/* The number after "max-age=", if it is a directive of its own. */
static bool max_age(tide_text header, uint64_t *seconds_out)
{
    static const char name[] = "max-age=";
    const size_t bytes = sizeof name - 1;
    for (size_t i = 0; i + bytes < header.bytes; i++) {
        const bool starts = i == 0 || header.data[i - 1] == ' ' || header.data[i - 1] == ',';
        if (!starts || strncasecmp(header.data + i, name, bytes) != 0)
            continue;
        size_t end = i + bytes;
        while (end < header.bytes && header.data[end] >= '0' && header.data[end] <= '9')
            end++;
        return tide_text_to_u64((tide_text){header.data + i + bytes, end - i - bytes}, seconds_out);
    }
    return false;
}

uint64_t tide_issuer_life_ms(tide_text cache_control, tide_text age)
{
    uint64_t life_s = 0;
    uint64_t age_s = 0;
    if (!max_age(cache_control, &life_s))
        return TIDE_ISSUER_LIFE_MS_DEFAULT;
    (void)tide_text_to_u64(age, &age_s);
    life_s = life_s > age_s ? life_s - age_s : 0;
    if (life_s > TIDE_ISSUER_LIFE_MS_MAX / 1000)
        return TIDE_ISSUER_LIFE_MS_MAX;
    return life_s * 1000 < TIDE_ISSUER_LIFE_MS_MIN ? TIDE_ISSUER_LIFE_MS_MIN : life_s * 1000;
}

bool tide_issuer_url_is_safe(const char *url)
{
    static const char *const local[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    const size_t bytes = strlen(url);
    for (size_t i = 0; i < bytes; i++)
        if (url[i] <= ' ' || url[i] > '~' || url[i] == '@' || url[i] == '\\')
            return false;
    if (bytes >= URL_BYTES_MAX)
        return false;
    if (strncmp(url, "https://", 8) == 0)
        return url[8] != '\0' && url[8] != '/';
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        const size_t length = strlen(local[i]);
        if (strncmp(url, local[i], length) == 0 &&
            (url[length] == ':' || url[length] == '/' || url[length] == '\0'))
            return true;
    }
    return false;
}

/* ---- fetching ---- */

static tide_status fetch(tide_issuer *issuer, tide_keyset **keys_out, uint64_t *life_ms_out,
                         tide_error *err)
{
    struct tide_response response;
    const struct tide_request request = {.method = "GET",
                                         .url = issuer->url,
                                         .body_bytes_max = TIDE_KEYSET_BYTES_MAX,
                                         .connect_timeout_ms = FETCH_MS,
                                         .total_timeout_ms = FETCH_MS};
    tide_response_init(&response, issuer->mem);
    tide_status rc =
        tide_world_call(issuer->options.world, &request, &response, &issuer->cancel, err);
    if (rc == TIDE_OK && response.http != 200)
        rc = tide_error_set(err, TIDE_SERVER, "the issuer's keys: HTTP %d", response.http);
    if (rc == TIDE_OK)
        rc = tide_keyset_read(tide_buf_text(&response.body), issuer->mem, keys_out, err);
    *life_ms_out = tide_issuer_life_ms(tide_response_header(&response, "Cache-Control"),
                                       tide_response_header(&response, "Age"));
    tide_response_done(&response);
    return rc;
}

/* Under the lock. */
static void take(tide_issuer *issuer, tide_keyset **keys_io, uint64_t life_ms, uint64_t now_ms)
{
    tide_keyset *old = issuer->keys;
    issuer->keys = *keys_io;
    *keys_io = old; /* freed without the lock */
    issuer->fetched_ms = now_ms;
    issuer->renew_ms = now_ms + life_ms / 4 * 3;
    issuer->expires_ms = now_ms + life_ms;
    issuer->retry_ms = issuer->pause_ms = 0;
}

static void put_off(tide_issuer *issuer, uint64_t now_ms)
{
    issuer->pause_ms = issuer->pause_ms == 0 ? TIDE_ISSUER_PAUSE_MS_FIRST : issuer->pause_ms * 2;
    if (issuer->pause_ms > TIDE_ISSUER_PAUSE_MS_MAX)
        issuer->pause_ms = TIDE_ISSUER_PAUSE_MS_MAX;
    issuer->retry_ms = now_ms + issuer->pause_ms;
}

static void fetch_once(tide_issuer *issuer)
{
    tide_world *world = issuer->options.world;
    tide_error err = {TIDE_OK, 0, ""};
    tide_keyset *keys = NULL;
    uint64_t life_ms = 0;
    const tide_status rc = fetch(issuer, &keys, &life_ms, &err);
    const uint64_t now_ms = tide_world_now_ms(world);
    tide_lock_take(world, issuer->lock);
    issuer->wanted = false;
    if (rc == TIDE_OK)
        take(issuer, &keys, life_ms, now_ms);
    else
        put_off(issuer, now_ms);
    const bool stopping = issuer->stopping;
    tide_lock_drop(world, issuer->lock);
    tide_keyset_free(keys);
    if (stopping)
        return;
    if (rc != TIDE_OK)
        tide_log_event(issuer->options.log, TIDE_LOG_WARN, tide_world_now_unix_ms(world),
                       "the issuer's keys cannot be fetched", TIDE_F_CSTR("address", issuer->url),
                       TIDE_F_CSTR("detail", err.text));
    issuer->options.changed(issuer->options.arg);
}

static void fetch_main(void *arg)
{
    tide_issuer *issuer = arg;
    tide_world *world = issuer->options.world;
    tide_lock_take(world, issuer->lock);
    while (!issuer->stopping) {
        if (!issuer->wanted) {
            if (tide_cond_wait(world, issuer->news, issuer->lock, TIDE_NEVER) == TIDE_STOPPED)
                break;
            continue;
        }
        tide_lock_drop(world, issuer->lock);
        fetch_once(issuer);
        tide_lock_take(world, issuer->lock);
    }
    tide_lock_drop(world, issuer->lock);
}

/* ---- checking; under the lock ---- */

/* false: not now (ISS3). */
static bool want(tide_issuer *issuer, uint64_t now_ms)
{
    if (issuer->wanted)
        return true;
    if (now_ms < issuer->retry_ms)
        return false;
    issuer->wanted = true;
    tide_cond_wake_one(issuer->options.world, issuer->news);
    return true;
}

static tide_issuer_verdict check(tide_issuer *issuer, const struct tide_token *token,
                                 uint64_t now_ms)
{
    if (issuer->keys == NULL || now_ms >= issuer->expires_ms) /* ISS2 */
        return want(issuer, now_ms) ? TIDE_ISSUER_WAIT : TIDE_ISSUER_AWAY;
    if (now_ms >= issuer->renew_ms)
        (void)want(issuer, now_ms);
    switch (tide_keyset_check(issuer->keys, token)) {
    case TIDE_SIGNATURE_GOOD:
        return TIDE_ISSUER_SIGNED;
    case TIDE_SIGNATURE_FORGED:
        return TIDE_ISSUER_FORGED;
    case TIDE_SIGNATURE_NO_KEY:
        break;
    }
    /* A new key, or an invented one. */
    if (!issuer->wanted && now_ms - issuer->fetched_ms < TIDE_ISSUER_AGAIN_MS)
        return TIDE_ISSUER_FORGED;
    return want(issuer, now_ms) ? TIDE_ISSUER_WAIT : TIDE_ISSUER_FORGED;
}

tide_issuer_verdict tide_issuer_check(tide_issuer *issuer, const struct tide_token *token)
{
    tide_world *world = issuer->options.world;
    tide_lock_take(world, issuer->lock);
    const tide_issuer_verdict verdict = check(issuer, token, tide_world_now_ms(world));
    tide_lock_drop(world, issuer->lock);
    return verdict;
}

/* ---- life ---- */

tide_status tide_issuer_new(const struct tide_issuer_options *options, tide_mem *mem,
                            tide_issuer **issuer_out, tide_error *err)
{
    TIDE_ASSERT(tide_issuer_url_is_safe(options->keys_url));
    tide_issuer *issuer = tide_mem_new(mem, sizeof *issuer);
    if (issuer == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for an issuer's keys");
    issuer->options = *options;
    issuer->mem = mem;
    (void)snprintf(issuer->url, sizeof issuer->url, "%s", options->keys_url);
    tide_status rc = tide_lock_new(options->world, &issuer->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(options->world, &issuer->news);
    rc = rc == TIDE_OK
             ? tide_world_thread(options->world, "issuer", fetch_main, issuer, &issuer->thread, err)
             : tide_error_set(err, rc, "no memory for an issuer's keys");
    if (rc != TIDE_OK) {
        tide_issuer_free(issuer);
        return rc;
    }
    *issuer_out = issuer;
    return TIDE_OK;
}

void tide_issuer_stop(tide_issuer *issuer)
{
    if (issuer == NULL || issuer->thread == NULL)
        return;
    tide_world *world = issuer->options.world;
    tide_world_cancel(world, &issuer->cancel, TIDE_CANCEL_STOP);
    tide_lock_take(world, issuer->lock);
    issuer->stopping = true;
    tide_cond_wake_all(world, issuer->news);
    tide_lock_drop(world, issuer->lock);
    tide_world_join(world, issuer->thread);
    issuer->thread = NULL;
}

void tide_issuer_free(tide_issuer *issuer)
{
    if (issuer == NULL)
        return;
    tide_world *world = issuer->options.world;
    tide_issuer_stop(issuer);
    if (issuer->news != NULL)
        tide_cond_free(world, issuer->news);
    if (issuer->lock != NULL)
        tide_lock_free(world, issuer->lock);
    tide_keyset_free(issuer->keys);
    tide_mem_free(issuer->mem, issuer, sizeof *issuer);
}
