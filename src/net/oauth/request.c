/* request.c - forms, and requests to the token endpoint. */
#include "net/oauth/inside.h"

#include "base/clocktext.h"
#include "base/encode.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    CALL_TIMEOUT_MS = 60000,
    LIFE_S_DEFAULT = 3600, /* when the answer does not say */
    SECONDS_MAX = 86400,   /* of any time in an answer */
    DESCRIPTION_BYTES = 200,
    RUN_BYTES_MAX = 20, /* longer runs of token characters are not shown (OAU4) */
};

/* ---- texts ---- */

tide_status tide_buf_set(tide_buf *buf, tide_text text)
{
    const size_t bytes_before = buf->bytes;
    buf->bytes = 0;
    tide_status rc = tide_buf_add(buf, text.bytes == 0 ? "" : text.data, text.bytes);
    if (rc != TIDE_OK)
        buf->bytes = bytes_before;
    return rc;
}

bool tide_oauth_is_token(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] <= ' ' || text.data[i] >= 0x7f)
            return false;
    return text.bytes > 0 && text.bytes <= TIDE_OAUTH_TOKEN_BYTES_MAX;
}

static bool starts_with(tide_text text, const char *start)
{
    const size_t bytes = strlen(start);
    return text.bytes >= bytes && strncasecmp(text.data, start, bytes) == 0;
}

bool tide_oauth_is_url(tide_text url)
{
    static const char *const local[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    if (!tide_oauth_is_token(url) || memchr(url.data, '@', url.bytes) != NULL ||
        memchr(url.data, '\\', url.bytes) != NULL || memchr(url.data, '#', url.bytes) != NULL)
        return false;
    if (starts_with(url, "https://"))
        return url.bytes > 8 && url.data[8] != '/' && url.data[8] != '?';
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        const size_t bytes = strlen(local[i]);
        if (starts_with(url, local[i]) &&
            (url.bytes == bytes || url.data[bytes] == ':' || url.data[bytes] == '/'))
            return true;
    }
    return false;
}

tide_status tide_form_add(tide_buf *form, const char *name, tide_text value)
{
    TIDE_TRY(tide_buf_print(form, "%s%s=", form->bytes == 0 ? "" : "&", name));
    return tide_percent_add(form, value, TIDE_URL_UNRESERVED);
}

tide_status tide_form_decode(tide_text from, tide_buf *out)
{
    tide_buf_clear(out);
    for (size_t i = 0; i < from.bytes; i++) {
        char c = from.data[i] == '+' ? ' ' : from.data[i];
        if (c == '%') {
            const int byte = tide_hex_byte((tide_text){from.data + i + 1, from.bytes - i - 1});
            if (byte < 0)
                return TIDE_INVALID;
            c = (char)byte;
            i += 2;
        }
        TIDE_TRY(tide_buf_add(out, &c, 1));
    }
    return TIDE_OK;
}

tide_status tide_form_get(tide_text form, const char *name, tide_buf *value_out)
{
    const size_t name_bytes = strlen(name);
    tide_text found = TIDE_TEXT_NONE;
    while (form.bytes > 0) {
        const char *end = memchr(form.data, '&', form.bytes);
        const tide_text pair = {form.data, end == NULL ? form.bytes : (size_t)(end - form.data)};
        form.data += pair.bytes + (end != NULL);
        form.bytes -= pair.bytes + (end != NULL);
        if (pair.bytes <= name_bytes || pair.data[name_bytes] != '=' ||
            memcmp(pair.data, name, name_bytes) != 0)
            continue;
        if (found.data != NULL)
            return TIDE_INVALID; /* which of the two is meant is unknown */
        found = (tide_text){pair.data + name_bytes + 1, pair.bytes - name_bytes - 1};
    }
    if (found.data == NULL)
        return TIDE_NOT_FOUND;
    return tide_form_decode(found, value_out);
}

void tide_json_wipe(json_t *object)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object, key, value)
    {
        if (json_is_string(value))
            explicit_bzero((void *)(uintptr_t)json_string_value(value), json_string_length(value));
    }
    json_decref(object);
}

/* ---- answers of the token endpoint ---- */

void tide_token_answer_init(struct tide_token_answer *answer, tide_mem *wiping)
{
    *answer = (struct tide_token_answer){.life_ms = 0};
    tide_buf_init(&answer->access_token, wiping, TIDE_OAUTH_TOKEN_BYTES_MAX);
    tide_buf_init(&answer->refresh_token, wiping, TIDE_OAUTH_TOKEN_BYTES_MAX);
    tide_buf_init(&answer->scope, wiping, TIDE_OAUTH_FIELD_BYTES_MAX);
}

void tide_token_answer_done(struct tide_token_answer *answer)
{
    tide_secret_wipe(&answer->access_token);
    tide_secret_wipe(&answer->refresh_token);
    tide_secret_wipe(&answer->scope);
}

static bool is_token_letter(char c)
{
    return tide_is_plain(c, TIDE_URL_UNRESERVED "/+=%:");
}

/* A server's text as far as it may be shown (OAU4): one line, without anything long enough to be a
 * token or a part of one. */
static void describe(const char *text, char shown_out[DESCRIPTION_BYTES])
{
    static const char hidden[] = "[hidden]";
    size_t bytes = 0;
    while (*text != '\0') {
        size_t run = 0;
        while (text[run] != '\0' && is_token_letter(text[run]))
            run++;
        const char *piece = run > RUN_BYTES_MAX ? hidden : text;
        size_t piece_bytes = run > RUN_BYTES_MAX ? sizeof hidden - 1 : run;
        const char *blank = " ";
        if (run == 0) {
            run = 1;
            piece_bytes = 1;
            piece = *text > ' ' && *text < 0x7f ? text : blank;
        }
        if (bytes + piece_bytes >= DESCRIPTION_BYTES)
            break;
        memcpy(shown_out + bytes, piece, piece_bytes);
        bytes += piece_bytes;
        text += run;
    }
    shown_out[bytes] = '\0';
}

/* "invalid_grant": lower-case letters and '_', not long. */
static bool is_error_code(const char *text)
{
    const size_t bytes = strlen(text);
    return bytes > 0 && bytes < TIDE_OAUTH_ERROR_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz_") == bytes;
}

/* What a code of the token endpoint means.  One that is not known needs the user: the grant was
 * revoked, the client was deleted, an administrator forbids it.  It must not be TIDE_PERMANENT,
 * which would make the current item bad instead of stopping the account. */
static tide_status code_status(const struct tide_oauth_provider *provider, const char *code)
{
    static const struct tide_oauth_error common[] = {
        {"temporarily_unavailable", TIDE_SERVER},
        {"server_error", TIDE_SERVER},
        {"slow_down", TIDE_SERVER},
        {NULL, TIDE_OK},
    };
    const struct tide_oauth_error *const tables[] = {common, provider->errors};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct tide_oauth_error *row = tables[i]; row != NULL && row->code != NULL;
             row++)
            if (strcmp(code, row->code) == 0)
                return row->status;
    return TIDE_AUTH;
}

/* An answer that is not OAuth's: of a portal, a proxy, a wrong address.  Not about the grant. */
static tide_status foreign_status(const struct tide_oauth_provider *provider,
                                  const struct tide_response *response)
{
    uint64_t wait_ms = 0;
    const tide_status rc = provider->judge != NULL ? provider->judge(response, &wait_ms, NULL)
                           : response->http == 429 ? TIDE_THROTTLED
                                                   : TIDE_SERVER;
    return rc == TIDE_THROTTLED || rc == TIDE_NO_MEMORY || rc == TIDE_TIMEOUT ? rc : TIDE_SERVER;
}

/* `code_out`: the OAuth error, or "". */
static tide_status refused(const struct tide_oauth_provider *provider,
                           const struct tide_response *response,
                           char code_out[TIDE_OAUTH_ERROR_BYTES], tide_error *err)
{
    json_auto_t *object = NULL;
    (void)tide_json_parse(tide_buf_text(&response->body), &object, NULL);
    const char *code = json_string_value(json_object_get(object, "error"));
    const char *description = json_string_value(json_object_get(object, "error_description"));
    tide_status rc = TIDE_SERVER;
    if (response->http >= 400 && response->http < 500 && code != NULL && is_error_code(code)) {
        char shown[DESCRIPTION_BYTES];
        describe(description == NULL ? "" : description, shown);
        rc = code_status(provider, code);
        (void)snprintf(code_out, TIDE_OAUTH_ERROR_BYTES, "%s", code);
        (void)tide_error_set(err, rc, "%s%s%s", code, shown[0] == '\0' ? "" : ": ", shown);
    } else {
        rc = foreign_status(provider, response);
        (void)tide_error_set(err, rc, "the token server answered %d", response->http);
    }
    if (err != NULL)
        err->code = response->http;
    return rc;
}

uint64_t tide_oauth_ms(const json_t *object, const char *name, uint64_t otherwise_s)
{
    const json_t *value = json_object_get(object, name);
    uint64_t seconds = otherwise_s;
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        seconds = (uint64_t)json_integer_value(value);
    else if (json_is_string(value)) /* as some servers send it */
        (void)tide_text_to_u64((tide_text){json_string_value(value), json_string_length(value)},
                               &seconds);
    return (seconds > SECONDS_MAX ? SECONDS_MAX : seconds) * 1000;
}

/* A text that may be absent. */
static tide_status optional_read(const json_t *object, const char *name, tide_buf *out)
{
    tide_text text = TIDE_TEXT_NONE;
    tide_status rc = tide_json_get_text(object, name, &text, NULL);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    return rc == TIDE_OK ? tide_buf_set(out, text) : rc;
}

static tide_status answer_read(const struct tide_response *response,
                               struct tide_token_answer *answer, tide_error *err)
{
    json_t *object = NULL;
    tide_status rc = tide_json_parse(tide_buf_text(&response->body), &object, NULL);
    tide_text type = TIDE_TEXT("Bearer");
    if (rc == TIDE_OK)
        rc = optional_read(object, "access_token", &answer->access_token);
    if (rc == TIDE_OK)
        rc = optional_read(object, "refresh_token", &answer->refresh_token);
    if (rc == TIDE_OK)
        rc = optional_read(object, "scope", &answer->scope);
    (void)tide_json_get_text(object, "token_type", &type, NULL);
    const tide_text refresh = tide_buf_text(&answer->refresh_token);
    if (rc == TIDE_NO_MEMORY)
        (void)tide_error_set(err, rc, "no memory for a token");
    else if (rc != TIDE_OK || !tide_oauth_is_token(tide_buf_text(&answer->access_token)) ||
             (refresh.bytes > 0 && !tide_oauth_is_token(refresh)) || type.bytes != 6 ||
             strncasecmp(type.data, "bearer", 6) != 0)
        rc = tide_error_set(err, TIDE_SERVER, "the token server's answer is malformed");
    else
        answer->life_ms = tide_oauth_ms(object, "expires_in", LIFE_S_DEFAULT);
    tide_json_wipe(object);
    return rc;
}

/* ---- requests ---- */

tide_status tide_oauth_post(const struct tide_oauth_post *post, struct tide_response *response,
                            char error_out[TIDE_OAUTH_ERROR_BYTES], tide_error *err)
{
    const struct tide_header headers[] = {
        {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/x-www-form-urlencoded")},
        {TIDE_TEXT("Accept"), TIDE_TEXT("application/json")},
    };
    const struct tide_request request = {
        .method = "POST",
        .url = post->url,
        .headers = headers,
        .headers_count = sizeof headers / sizeof headers[0],
        .body = tide_buf_text(post->form),
        .body_bytes_max = TIDE_OAUTH_ANSWER_BYTES_MAX,
        .total_timeout_ms = CALL_TIMEOUT_MS,
        .repeatable = !post->once,
    };
    error_out[0] = '\0';
    tide_status rc = tide_world_call(post->world, &request, response, post->cancel, err);
    if (rc == TIDE_FULL)
        return tide_error_set(err, TIDE_SERVER, "the token server's answer is too long");
    /* Sending it twice is harmless, so an unknown outcome is just a failure. */
    if (rc == TIDE_UNKNOWN && !post->once)
        return tide_error_set(err, TIDE_SERVER, "the token server closed the connection");
    if (rc == TIDE_OK && (response->http < 200 || response->http > 299))
        return refused(post->provider, response, error_out, err);
    return rc;
}

tide_status tide_token_request(const struct tide_oauth_post *post,
                               struct tide_token_answer *answer_out, tide_error *err)
{
    struct tide_response response;
    tide_response_init(&response, post->form->mem);
    answer_out->asked_unix_ms = tide_world_now_unix_ms(post->world);
    tide_status rc = tide_oauth_post(post, &response, answer_out->error, err);
    (void)tide_time_http_parse(tide_response_header(&response, "Date"),
                               &answer_out->server_unix_ms);
    if (rc == TIDE_OK)
        rc = answer_read(&response, answer_out, err);
    tide_response_done(&response);
    return rc;
}

tide_status tide_revoke_request(const struct tide_oauth_post *post, tide_error *err)
{
    char error[TIDE_OAUTH_ERROR_BYTES];
    struct tide_response response;
    tide_response_init(&response, post->form->mem);
    tide_status rc = tide_oauth_post(post, &response, error, err);
    tide_response_done(&response);
    return rc == TIDE_AUTH ? TIDE_OK : rc; /* invalid_token: nothing left to revoke */
}
