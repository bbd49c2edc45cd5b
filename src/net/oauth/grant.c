/* grant.c - stored sign-ins. */
#include "net/oauth/inside.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* Written before grants named their provider. */
#define PROVIDER_OF_OLD_GRANTS "google"

enum { GRANT_VERSION = 1 };

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
    GRANT_FIELD(provider, TIDE_OAUTH_FIELD_BYTES_MAX, 0),
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
    if (grant->type != TIDE_GRANT_FIXED && grant->provider.bytes == 0 &&
        tide_buf_set(&grant->provider, TIDE_TEXT(PROVIDER_OF_OLD_GRANTS)) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a sign-in");
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
    TIDE_TRY(tide_buf_print(out, ",\"%s\":\"", name));
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c == '"' || c == '\\' || c < 0x20 || c == 0x7f)
            TIDE_TRY(tide_buf_print(out, "\\u%04x", c));
        else
            TIDE_TRY(tide_buf_add(out, &text.data[i], 1));
    }
    return tide_buf_add(out, "\"", 1);
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
    return a->type == b->type && same(&a->provider, &b->provider) &&
           same(&a->client_id, &b->client_id) && same(&a->client_secret, &b->client_secret) &&
           same(&a->refresh_token, &b->refresh_token) && same(&a->private_key, &b->private_key) &&
           same(&a->user, &b->user) && same(&a->scopes, &b->scopes) &&
           same(&a->token_url, &b->token_url) &&
           (a->type != TIDE_GRANT_FIXED ||
            (same(&a->access_token, &b->access_token) && same(&a->key_id, &b->key_id)));
}

static tide_status fixed(const char *bearer, const char *entered, tide_buf *grant_out,
                         tide_error *err)
{
    struct tide_mem_wiping wiping;
    tide_mem_wiping_init(&wiping, grant_out->mem);
    struct tide_grant grant;
    tide_grant_init(&grant, &wiping.base);
    grant.type = TIDE_GRANT_FIXED;
    tide_status rc = tide_buf_set(&grant.access_token, tide_text_of(bearer));
    if (rc == TIDE_OK)
        rc = tide_buf_set(&grant.key_id, tide_text_of(entered));
    if (rc == TIDE_OK)
        rc = tide_grant_write(&grant, grant_out, err);
    else
        (void)tide_error_set(err, rc, "no memory for a sign-in");
    tide_grant_done(&grant);
    return rc;
}

tide_status tide_oauth_fixed(const char *bearer, tide_buf *grant_out, tide_error *err)
{
    if (!tide_oauth_is_token(tide_text_of(bearer)))
        return tide_error_set(err, TIDE_INVALID, "this is not a bearer token");
    return fixed(bearer, "", grant_out, err);
}

tide_status tide_oauth_key(const char *key, const char *entered, tide_buf *grant_out,
                           tide_error *err)
{
    if (!tide_oauth_is_token(tide_text_of(key)))
        return tide_error_set(err, TIDE_INVALID,
                              "this is not a key: it has characters that no key has, or none");
    return fixed(key, entered, grant_out, err);
}
