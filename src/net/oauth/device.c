/* device.c - device codes: the user types a short code on a page of the provider, on any device,
 * while this one polls (RFC 8628). */
#include "net/oauth/inside.h"

#include "base/check.h"

#include <string.h>

enum {
    INTERVAL_S_DEFAULT = 5,
    INTERVAL_MS_MIN = 1000,
    INTERVAL_MS_MAX = 300000,
    SLOW_DOWN_MS = 5000, /* added to the interval each time the server demands it */
    LIFE_S_DEFAULT = 900,
    WAIT_SLICE_MS = 100, /* how often a wait checks its cancel token */
};

#define NOT_ENTERED "it was not entered"

/* ---- the code ---- */

/* Copies a text that is shown to the user; false: there is none, or it could not be shown. */
static bool shown_read(const json_t *object, const char *name, char *out, size_t room)
{
    tide_text text = TIDE_TEXT_NONE;
    if (tide_json_get_text(object, name, &text, NULL) != TIDE_OK || !tide_oauth_is_token(text) ||
        text.bytes >= room)
        return false;
    memcpy(out, text.data, text.bytes);
    out[text.bytes] = '\0';
    return true;
}

static tide_status device_read(const struct tide_oauth_post *post,
                               const struct tide_response *response, struct tide_device *device,
                               tide_error *err)
{
    json_t *object = NULL;
    tide_text code = TIDE_TEXT_NONE;
    tide_status rc = tide_json_parse(tide_buf_text(&response->body), &object, NULL);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(object, "device_code", &code, NULL);
    if (rc == TIDE_NO_MEMORY) {
        (void)tide_error_set(err, rc, "no memory for a device code");
    } else if (rc != TIDE_OK || !tide_oauth_is_token(code) ||
               !shown_read(object, "user_code", device->user_code, sizeof device->user_code) ||
               !shown_read(object, "verification_uri", device->page, sizeof device->page) ||
               !tide_oauth_is_url(tide_text_of(device->page))) {
        rc =
            tide_error_set(err, TIDE_SERVER, "the server's answer with a device code is malformed");
    } else if ((rc = tide_buf_set(&device->code, code)) != TIDE_OK) {
        (void)tide_error_set(err, rc, "no memory for a device code");
    } else {
        const uint64_t interval_ms = tide_oauth_ms(object, "interval", INTERVAL_S_DEFAULT);
        device->interval_ms = interval_ms < INTERVAL_MS_MIN   ? INTERVAL_MS_MIN
                              : interval_ms > INTERVAL_MS_MAX ? INTERVAL_MS_MAX
                                                              : interval_ms;
        device->until_ms =
            tide_world_now_ms(post->world) + tide_oauth_ms(object, "expires_in", LIFE_S_DEFAULT);
    }
    tide_json_wipe(object);
    return rc;
}

tide_status tide_device_start(const struct tide_oauth_post *post, struct tide_device *device_out,
                              tide_error *err)
{
    char error[TIDE_OAUTH_ERROR_BYTES];
    struct tide_response response;
    tide_response_init(&response, post->form->mem);
    tide_status rc = tide_oauth_post(post, &response, error, err);
    if (rc == TIDE_OK)
        rc = device_read(post, &response, device_out, err);
    tide_response_done(&response);
    return rc;
}

/* ---- polling ---- */

/* In slices: a signal handler can set the token, but not wake a sleeper. */
static tide_status pause_until(const struct tide_oauth_post *post, uint64_t until_ms)
{
    tide_status rc = TIDE_OK;
    for (uint64_t now_ms = tide_world_now_ms(post->world); rc == TIDE_OK && now_ms < until_ms;
         now_ms = tide_world_now_ms(post->world)) {
        const uint64_t slice_ms = now_ms + WAIT_SLICE_MS;
        rc = tide_world_sleep_until(post->world, (slice_ms < until_ms ? slice_ms : until_ms) * 1000,
                                    post->cancel);
    }
    return rc;
}

/* TIDE_AGAIN: poll again after the interval. */
static tide_status poll_once(const struct tide_oauth_post *post, struct tide_device *device,
                             struct tide_token_answer *answer, tide_error *err)
{
    const tide_status rc = tide_token_request(post, answer, err);
    const char *error = answer->error;
    const bool slow_down = strcmp(error, "slow_down") == 0;
    if (slow_down || strcmp(error, "authorization_pending") == 0) {
        device->interval_ms += slow_down ? SLOW_DOWN_MS : 0;
        return tide_error_set(err, TIDE_AGAIN, NOT_ENTERED);
    }
    if (strcmp(error, "access_denied") == 0 || strcmp(error, "authorization_declined") == 0)
        return tide_error_set(err, TIDE_AUTH, "access was not granted on the sign-in page");
    if (strcmp(error, "expired_token") == 0)
        return tide_error_set(err, TIDE_TIMEOUT, "the code expired before it was used");
    if (rc == TIDE_SERVER || rc == TIDE_NETWORK || rc == TIDE_TIMEOUT || rc == TIDE_THROTTLED) {
        /* The user may be typing: a server that fails now and then does not end the sign-in. */
        device->interval_ms *= 2;
        return TIDE_AGAIN;
    }
    return rc;
}

tide_status tide_device_poll(const struct tide_oauth_post *post, struct tide_device *device,
                             uint64_t until_ms, struct tide_token_answer *answer_out,
                             tide_error *err)
{
    const uint64_t end_ms = until_ms < device->until_ms ? until_ms : device->until_ms;
    tide_error why = {TIDE_OK, 0, NOT_ENTERED};
    tide_status rc = TIDE_AGAIN;
    while (rc == TIDE_AGAIN) { /* ends: each pass takes an interval, and there is a deadline */
        const uint64_t next_ms = tide_world_now_ms(post->world) + device->interval_ms;
        if (next_ms >= end_ms)
            return tide_error_set(err, TIDE_TIMEOUT, "the code expired: %.200s", why.text);
        rc = pause_until(post, next_ms);
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "the sign-in was canceled");
        rc = poll_once(post, device, answer_out, &why);
        if (device->interval_ms > INTERVAL_MS_MAX)
            device->interval_ms = INTERVAL_MS_MAX;
    }
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    return rc;
}
