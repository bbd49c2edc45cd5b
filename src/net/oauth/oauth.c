/* oauth.c - client files, grants, forms, and requests to the token endpoint. */
#include "net/oauth/inside.h"

#include "base/check.h"
#include "base/clocktext.h"
#include "base/encode.h"
#include "net/judge_google.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    GRANT_VERSION = 1,
    CALL_TIMEOUT_MS = 60000,
    LIFE_S_DEFAULT = 3600, /* when the answer does not say */
    LIFE_S_MAX = 86400,
    DESCRIPTION_BYTES = 200,
    RUN_BYTES_MAX = 20, /* longer runs of token characters are not shown (O4) */
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
    tide_status rc = tide_buf_print(form, "%s%s=", form->bytes == 0 ? "" : "&", name);
    return rc == TIDE_OK ? tide_percent_add(form, value, TIDE_URL_UNRESERVED) : rc;
}

static tide_status form_decode(tide_text from, tide_buf *out)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < from.bytes; i++) {
        char c = from.data[i] == '+' ? ' ' : from.data[i];
        if (c == '%') {
            const int byte = tide_hex_byte((tide_text){from.data + i + 1, from.bytes - i - 1});
            if (byte < 0)
                return TIDE_INVALID;
            c = (char)byte;
            i += 2;
        }
        rc = tide_buf_add(out, &c, 1);
    }
    return rc;
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
    tide_buf_clear(value_out);
    return form_decode(found, value_out);
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

/* ---- clients ---- */

struct client_field {
    const char *ours;
    const char *google;
    size_t offset;
    size_t room;
    bool needed;
    bool url;
};

#define CLIENT_FIELD(name, google, needed, url)                                                    \
    {                                                                                              \
#name, google, offsetof(struct tide_oauth_client, name),                                   \
            sizeof(((struct tide_oauth_client *)0)->name), needed, url                             \
    }

static const struct client_field client_fields[] = {
    CLIENT_FIELD(client_id, "client_id", true, false),
    CLIENT_FIELD(client_secret, "client_secret", false, false),
    CLIENT_FIELD(auth_url, "auth_uri", false, true),
    CLIENT_FIELD(token_url, "token_uri", false, true),
    CLIENT_FIELD(revoke_url, "revoke_uri", false, true),
};

static tide_status client_field_read(const json_t *object, const struct client_field *field,
                                     struct tide_oauth_client *client, tide_error *err)
{
    tide_text text = TIDE_TEXT_NONE;
    const char *name = json_object_get(object, field->ours) != NULL ? field->ours : field->google;
    tide_status rc = tide_json_get_text(object, name, &text, err);
    if (rc == TIDE_NOT_FOUND && !field->needed)
        return TIDE_OK;
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, TIDE_INVALID, "the client file has no \"%s\"", name);
    if (rc != TIDE_OK)
        return rc;
    if (text.bytes >= field->room)
        return tide_error_set(err, TIDE_INVALID, "\"%s\" of the client file is too long", name);
    if (text.bytes == 0 && !field->needed)
        return TIDE_OK;
    if (!tide_oauth_is_token(text))
        return tide_error_set(err, TIDE_INVALID, "\"%s\" of the client file is malformed", name);
    if (field->url && !tide_oauth_is_url(text))
        return tide_error_set(err, TIDE_INVALID,
                              "\"%s\" of the client file is not an https address (http is allowed "
                              "for 127.0.0.1 only)",
                              name);
    memcpy((char *)client + field->offset, text.data, text.bytes); /* zeroed before */
    return TIDE_OK;
}

/* Google's client files do not name the revocation endpoint. */
static void revoke_url_guess(struct tide_oauth_client *client)
{
    if (client->revoke_url[0] != '\0' || client->token_url[0] == '\0' ||
        strcmp(client->token_url, "https://oauth2.googleapis.com/token") == 0)
        return;
    const char *host = strstr(client->token_url, "://");
    TIDE_ASSERT(host != NULL); /* checked to be an address */
    const size_t origin = (size_t)(host + 3 - client->token_url) + strcspn(host + 3, "/?");
    if ((size_t)snprintf(client->revoke_url, sizeof client->revoke_url, "%.*s/revoke", (int)origin,
                         client->token_url) >= sizeof client->revoke_url)
        client->revoke_url[0] = '\0';
}

tide_status tide_oauth_client_read(tide_text json, struct tide_oauth_client *client_out,
                                   tide_error *err)
{
    json_t *file = NULL;
    /* The parser's own error would quote the file. */
    tide_status rc =
        json.bytes > TIDE_SECRET_BYTES_MAX ? TIDE_INVALID : tide_json_parse(json, &file, NULL);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "the client file is not JSON");
    const json_t *object = json_object_get(file, "installed");
    if (object == NULL)
        object = json_object_get(file, "web");
    if (object == NULL)
        object = file;
    const char *type = json_string_value(json_object_get(file, "type"));
    if (type != NULL && strcmp(type, "service_account") == 0)
        rc = tide_error_set(err, TIDE_INVALID,
                            "this is the key of a service account, not a client file");
    else if (!json_is_object(object))
        rc = tide_error_set(err, TIDE_INVALID, "the client file contains no client object");
    struct tide_oauth_client client = {0};
    for (size_t i = 0; rc == TIDE_OK && i < sizeof client_fields / sizeof client_fields[0]; i++)
        rc = client_field_read(object, &client_fields[i], &client, err);
    json_decref(file);
    if (rc != TIDE_OK)
        return rc;
    revoke_url_guess(&client);
    *client_out = client;
    return TIDE_OK;
}

void tide_oauth_client_at(const char *origin, struct tide_oauth_client *client_out)
{
    struct tide_oauth_client client = {.client_id = "tidemark", .client_secret = "tidemark"};
    size_t bytes = strlen(origin);
    while (bytes > 0 && origin[bytes - 1] == '/')
        bytes--;
    TIDE_ASSERT(bytes + 32 < sizeof client.auth_url);
    const int shown = (int)bytes;
    (void)snprintf(client.auth_url, sizeof client.auth_url, "%.*s/o/oauth2/v2/auth", shown, origin);
    (void)snprintf(client.token_url, sizeof client.token_url, "%.*s/token", shown, origin);
    (void)snprintf(client.revoke_url, sizeof client.revoke_url, "%.*s/revoke", shown, origin);
    *client_out = client;
}

bool tide_oauth_scopes_cover(tide_text given, const char *asked)
{
    while (*asked != '\0') {
        const size_t bytes = strcspn(asked, " ");
        bool found = bytes == 0;
        for (size_t at = 0; !found && at < given.bytes;) {
            const char *end = memchr(given.data + at, ' ', given.bytes - at);
            const size_t word = end == NULL ? given.bytes - at : (size_t)(end - given.data) - at;
            found = word == bytes && memcmp(given.data + at, asked, bytes) == 0;
            at += word + 1;
        }
        if (!found)
            return false;
        asked += bytes + (asked[bytes] == ' ');
    }
    return true;
}

/* ---- grants ---- */

struct grant_field {
    const char *name;
    size_t offset;
    size_t bytes_max;
    unsigned types; /* bits of the grant types that need it */
};

enum {
    USER = 1 << TIDE_GRANT_USER,
    SERVICE = 1 << TIDE_GRANT_SERVICE,
    FIXED = 1 << TIDE_GRANT_FIXED,
};

#define GRANT_FIELD(name, bytes_max, types)                                                        \
    {                                                                                              \
#name, offsetof(struct tide_grant, name), bytes_max, types                                 \
    }

static const struct grant_field grant_fields[] = {
    GRANT_FIELD(client_id, TIDE_OAUTH_FIELD_BYTES_MAX, USER),
    GRANT_FIELD(client_secret, TIDE_OAUTH_FIELD_BYTES_MAX, 0),
    GRANT_FIELD(refresh_token, TIDE_OAUTH_TOKEN_BYTES_MAX, USER),
    GRANT_FIELD(revoke_url, TIDE_OAUTH_FIELD_BYTES_MAX, USER),
    GRANT_FIELD(email, TIDE_OAUTH_FIELD_BYTES_MAX, SERVICE),
    GRANT_FIELD(key_id, TIDE_OAUTH_FIELD_BYTES_MAX, 0),
    GRANT_FIELD(private_key, TIDE_OAUTH_KEY_BYTES_MAX, SERVICE),
    GRANT_FIELD(user, TIDE_OAUTH_FIELD_BYTES_MAX, 0),
    GRANT_FIELD(token_url, TIDE_OAUTH_FIELD_BYTES_MAX, USER | SERVICE),
    GRANT_FIELD(scopes, TIDE_OAUTH_FIELD_BYTES_MAX, SERVICE),
    GRANT_FIELD(access_token, TIDE_OAUTH_TOKEN_BYTES_MAX, FIXED),
};
enum { GRANT_FIELDS = sizeof grant_fields / sizeof grant_fields[0] };

static const char *const grant_types[] = {"user", "service", "fixed"};

static tide_buf *field_of(struct tide_grant *grant, size_t index)
{
    return (tide_buf *)(void *)((char *)grant + grant_fields[index].offset);
}

static const tide_buf *field_in(const struct tide_grant *grant, size_t index)
{
    return (const tide_buf *)(const void *)((const char *)grant + grant_fields[index].offset);
}

void tide_grant_init(struct tide_grant *grant, tide_mem *wiping)
{
    *grant = (struct tide_grant){.type = TIDE_GRANT_USER};
    for (size_t i = 0; i < GRANT_FIELDS; i++)
        tide_buf_init(field_of(grant, i), wiping, grant_fields[i].bytes_max);
}

void tide_grant_done(struct tide_grant *grant)
{
    for (size_t i = 0; i < GRANT_FIELDS; i++)
        tide_secret_wipe(field_of(grant, i));
}

static tide_status grant_damaged(tide_error *err)
{
    return tide_error_set(err, TIDE_CORRUPT, "the stored sign-in is damaged");
}

static tide_status grant_fields_read(const json_t *object, struct tide_grant *grant,
                                     tide_error *err)
{
    for (size_t i = 0; i < GRANT_FIELDS; i++) {
        tide_text text = TIDE_TEXT_NONE;
        tide_status rc = tide_json_get_text(object, grant_fields[i].name, &text, NULL);
        if (rc == TIDE_NOT_FOUND && (grant_fields[i].types & 1u << grant->type) == 0)
            continue;
        if (rc != TIDE_OK || text.bytes > grant_fields[i].bytes_max)
            return grant_damaged(err);
        if (tide_buf_set(field_of(grant, i), text) != TIDE_OK)
            return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a sign-in");
    }
    const tide_text access = tide_buf_text(&grant->access_token);
    if (access.bytes > 0 && !tide_oauth_is_token(access))
        return grant_damaged(err);
    return TIDE_OK;
}

tide_status tide_grant_read(tide_text json, struct tide_grant *grant, tide_error *err)
{
    json_t *object = NULL;
    if (tide_json_parse(json, &object, NULL) == TIDE_NO_MEMORY)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a sign-in");
    uint64_t version = 0;
    tide_text type = TIDE_TEXT_NONE;
    tide_status rc = TIDE_OK;
    if (!json_is_object(object) || tide_json_get_u64(object, "v", &version, NULL) != TIDE_OK ||
        version == 0 || tide_json_get_text(object, "type", &type, NULL) != TIDE_OK)
        rc = grant_damaged(err);
    else if (version > GRANT_VERSION)
        rc = tide_error_set(err, TIDE_NEWER, "the stored sign-in was written by a newer version");
    if (rc == TIDE_OK) {
        rc = grant_damaged(err);
        for (size_t i = 0; rc != TIDE_OK && i < sizeof grant_types / sizeof grant_types[0]; i++) {
            if (tide_text_equal(type, tide_text_of(grant_types[i]))) {
                grant->type = (tide_grant_type)i;
                rc = TIDE_OK;
            }
        }
    }
    if (rc == TIDE_OK) {
        rc = tide_json_get_u64(object, "expires_unix_ms", &grant->expires_unix_ms, NULL);
        rc = rc == TIDE_OK || rc == TIDE_NOT_FOUND ? TIDE_OK : grant_damaged(err);
    }
    if (rc == TIDE_OK)
        rc = grant_fields_read(object, grant, err);
    tide_json_wipe(object);
    return rc;
}

/* Written by hand: a JSON object would be another copy of every secret. */
static tide_status field_write(tide_buf *out, const char *name, tide_text text)
{
    tide_status rc = tide_buf_print(out, ",\"%s\":\"", name);
    for (size_t i = 0; rc == TIDE_OK && i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c == '"' || c == '\\' || c < 0x20 || c == 0x7f)
            rc = tide_buf_print(out, "\\u%04x", c);
        else
            rc = tide_buf_add(out, &text.data[i], 1);
    }
    return rc == TIDE_OK ? tide_buf_add(out, "\"", 1) : rc;
}

tide_status tide_grant_write(const struct tide_grant *grant, tide_buf *out, tide_error *err)
{
    const size_t bytes_before = out->bytes;
    tide_status rc =
        tide_buf_print(out, "{\"v\":%d,\"type\":\"%s\"", GRANT_VERSION, grant_types[grant->type]);
    for (size_t i = 0; rc == TIDE_OK && i < GRANT_FIELDS; i++) {
        const tide_buf *field = field_in(grant, i);
        if (field->bytes > 0 || (grant_fields[i].types & 1u << grant->type) != 0)
            rc = field_write(out, grant_fields[i].name, tide_buf_text(field));
    }
    if (rc == TIDE_OK)
        rc = tide_buf_print(out, ",\"expires_unix_ms\":%" PRIu64 "}\n", grant->expires_unix_ms);
    if (rc == TIDE_OK)
        return TIDE_OK;
    if (out->data != NULL) {
        explicit_bzero(out->data + bytes_before, out->bytes - bytes_before);
        out->bytes = bytes_before;
    }
    return tide_error_set(err, rc, "no room for a sign-in");
}

static bool same(const tide_buf *a, const tide_buf *b)
{
    return tide_text_equal(tide_buf_text(a), tide_buf_text(b));
}

bool tide_grant_same(const struct tide_grant *a, const struct tide_grant *b)
{
    return a->type == b->type && same(&a->client_id, &b->client_id) &&
           same(&a->client_secret, &b->client_secret) &&
           same(&a->refresh_token, &b->refresh_token) && same(&a->private_key, &b->private_key) &&
           same(&a->user, &b->user) && same(&a->scopes, &b->scopes) &&
           same(&a->token_url, &b->token_url) &&
           (a->type != TIDE_GRANT_FIXED || same(&a->access_token, &b->access_token));
}

tide_status tide_oauth_fixed(const char *bearer, tide_buf *grant_out, tide_error *err)
{
    if (!tide_oauth_is_token(tide_text_of(bearer)))
        return tide_error_set(err, TIDE_INVALID, "this is not a bearer token");
    struct tide_mem_wiping wiping;
    tide_mem_wiping_init(&wiping, grant_out->mem);
    struct tide_grant grant;
    tide_grant_init(&grant, &wiping.base);
    grant.type = TIDE_GRANT_FIXED;
    tide_status rc = tide_buf_set(&grant.access_token, tide_text_of(bearer));
    if (rc == TIDE_OK)
        rc = tide_grant_write(&grant, grant_out, err);
    else
        (void)tide_error_set(err, rc, "no memory for a sign-in");
    tide_grant_done(&grant);
    return rc;
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

/* A server's text as far as it may be shown (O4): one line, without anything long enough to be a
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
    return bytes > 0 && bytes <= 60 && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == bytes;
}

static bool is_passing(const char *code)
{
    static const char *const codes[] = {"temporarily_unavailable", "server_error",
                                        "internal_failure",        "slow_down",
                                        "backend_error",           "rate_limit_exceeded"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(code, codes[i]) == 0)
            return true;
    return false;
}

/* Any other OAuth error needs the user: the grant was revoked, the client was deleted, an
 * administrator forbids it.  It must not be TIDE_PERMANENT, which would make the current item
 * bad instead of stopping the account. */
static tide_status refused(const struct tide_response *response, tide_error *err)
{
    json_t *object = NULL;
    (void)tide_json_parse(tide_buf_text(&response->body), &object, NULL);
    const char *code = json_string_value(json_object_get(object, "error"));
    const char *description = json_string_value(json_object_get(object, "error_description"));
    tide_status rc = TIDE_SERVER;
    if (response->http >= 400 && response->http < 500 && code != NULL && is_error_code(code)) {
        char shown[DESCRIPTION_BYTES];
        describe(description == NULL ? "" : description, shown);
        rc = is_passing(code) ? TIDE_SERVER : TIDE_AUTH;
        (void)tide_error_set(err, rc, "%s%s%s", code, shown[0] == '\0' ? "" : ": ", shown);
    } else {
        uint64_t wait_ms = 0;
        rc = tide_google_judge(response, &wait_ms, NULL);
        if (rc != TIDE_THROTTLED && rc != TIDE_NO_MEMORY && rc != TIDE_TIMEOUT)
            rc = TIDE_SERVER; /* a portal, a proxy, a wrong address: not about the grant */
        (void)tide_error_set(err, rc, "the token server answered %d", response->http);
    }
    if (err != NULL)
        err->code = response->http;
    json_decref(object);
    return rc;
}

/* Seconds as a number, or as the text that some servers send. */
static uint64_t life_read(const json_t *object)
{
    const json_t *value = json_object_get(object, "expires_in");
    uint64_t life_s = LIFE_S_DEFAULT;
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        life_s = (uint64_t)json_integer_value(value);
    else if (json_is_string(value))
        (void)tide_text_to_u64((tide_text){json_string_value(value), json_string_length(value)},
                               &life_s);
    return (life_s > LIFE_S_MAX ? LIFE_S_MAX : life_s) * 1000;
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
        answer->life_ms = life_read(object);
    tide_json_wipe(object);
    return rc;
}

/* ---- requests ---- */

static tide_status post_form(tide_world *world, const char *url, tide_text form, bool repeatable,
                             struct tide_response *response, const tide_cancel *cancel,
                             tide_error *err)
{
    const struct tide_header headers[] = {
        {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/x-www-form-urlencoded")},
        {TIDE_TEXT("Accept"), TIDE_TEXT("application/json")},
    };
    const struct tide_request request = {
        .method = "POST",
        .url = url,
        .headers = headers,
        .headers_count = sizeof headers / sizeof headers[0],
        .body = form,
        .body_bytes_max = TIDE_OAUTH_ANSWER_BYTES_MAX,
        .total_timeout_ms = CALL_TIMEOUT_MS,
        .repeatable = repeatable,
    };
    tide_status rc = tide_world_call(world, &request, response, cancel, err);
    if (rc == TIDE_FULL)
        return tide_error_set(err, TIDE_SERVER, "the token server's answer is too long");
    /* Sending it twice is harmless, so an unknown outcome is just a failure. */
    if (rc == TIDE_UNKNOWN && repeatable)
        return tide_error_set(err, TIDE_SERVER, "the token server closed the connection");
    return rc;
}

tide_status tide_token_request(tide_world *world, const char *url, tide_text form, bool repeatable,
                               tide_mem *wiping, const tide_cancel *cancel,
                               struct tide_token_answer *answer_out, tide_error *err)
{
    struct tide_response response;
    tide_response_init(&response, wiping);
    tide_status rc = post_form(world, url, form, repeatable, &response, cancel, err);
    if (rc == TIDE_OK)
        (void)tide_time_http_parse(tide_response_header(&response, "Date"),
                                   &answer_out->server_unix_ms);
    if (rc == TIDE_OK)
        rc = response.http == 200 ? answer_read(&response, answer_out, err)
                                  : refused(&response, err);
    tide_response_done(&response);
    return rc;
}

tide_status tide_revoke_request(tide_world *world, const char *url, tide_text token,
                                tide_mem *wiping, tide_error *err)
{
    tide_buf form;
    tide_buf_init(&form, wiping, TIDE_OAUTH_FORM_BYTES_MAX);
    struct tide_response response;
    tide_response_init(&response, wiping);
    tide_status rc =
        tide_form_add(&form, "token", token); /* not in the address: addresses are logged */
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no memory for a request");
    if (rc == TIDE_OK)
        rc = post_form(world, url, tide_buf_text(&form), true, &response, NULL, err);
    if (rc == TIDE_OK && (response.http < 200 || response.http > 299)) {
        rc = refused(&response, err);
        if (rc == TIDE_AUTH) /* invalid_token: nothing left to revoke */
            rc = TIDE_OK;
    }
    tide_response_done(&response);
    tide_secret_wipe(&form);
    return rc;
}
