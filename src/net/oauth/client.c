/* client.c - client files, addresses of endpoints, scopes. */
#include "net/oauth/inside.h"

#include "base/check.h"
#include "base/encode.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { TENANT_BYTES_MAX = 100 };

struct client_field {
    const char *name;  /* in a file of ours */
    const char *other; /* in the files of providers' consoles */
    size_t offset;
    size_t room;
    bool needed;
    bool url;
};

#define CLIENT_FIELD(name, other, needed, url)                                                     \
    {                                                                                              \
#name, other, offsetof(struct tide_oauth_client, name),                                    \
            sizeof(((struct tide_oauth_client *)0)->name), needed, url                             \
    }

static const struct client_field client_fields[] = {
    CLIENT_FIELD(client_id, "client_id", true, false),
    CLIENT_FIELD(client_secret, "client_secret", false, false),
    CLIENT_FIELD(auth_url, "auth_uri", false, true),
    CLIENT_FIELD(token_url, "token_uri", false, true),
    CLIENT_FIELD(device_url, "device_uri", false, true),
    CLIENT_FIELD(revoke_url, "revoke_uri", false, true),
};

static tide_status client_field_read(const json_t *object, const struct client_field *field,
                                     struct tide_oauth_client *client, tide_error *err)
{
    tide_text text = TIDE_TEXT_NONE;
    const char *name = json_object_get(object, field->name) != NULL ? field->name : field->other;
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

/* The bytes of "https://host:port" at the front of an address. */
static size_t origin_bytes(const char *url)
{
    const char *host = strstr(url, "://");
    TIDE_ASSERT(host != NULL); /* checked to be an address, or a constant */
    return (size_t)(host + 3 - url) + strcspn(host + 3, "/?");
}

/* Sets an endpoint to the provider's path at another origin; NULL: the provider has none. */
static void url_at(const char *origin, size_t bytes, const char *provider_url, char *out,
                   size_t room)
{
    if (provider_url == NULL || (size_t)snprintf(out, room, "%.*s%s", (int)bytes, origin,
                                                 provider_url + origin_bytes(provider_url)) >= room)
        out[0] = '\0';
}

/* Sets an endpoint to the provider's, at another tenant; NULL: the provider has none. */
static void url_of_tenant(const struct tide_oauth_provider *provider, tide_text tenant,
                          const char *provider_url, char *out, size_t room)
{
    char segment[64];
    (void)snprintf(segment, sizeof segment, "/%s/", provider->tenant);
    const char *at = provider_url == NULL ? NULL : strstr(provider_url, segment);
    if (at == NULL || out[0] != '\0')
        return;
    const int bytes = snprintf(out, room, "%.*s/%.*s/%s", (int)(at - provider_url), provider_url,
                               (int)tenant.bytes, tenant.data, at + strlen(segment));
    TIDE_ASSERT(bytes > 0 && (size_t)bytes < room);
}

/* "tenant" of a client file: a name or a number of an organization. */
static tide_status tenant_read(const struct tide_oauth_provider *provider, const json_t *object,
                               struct tide_oauth_client *client, tide_error *err)
{
    tide_text tenant = TIDE_TEXT_NONE;
    tide_status rc = provider->tenant == NULL ? TIDE_NOT_FOUND
                                              : tide_json_get_text(object, "tenant", &tenant, err);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    bool good = rc == TIDE_OK && tenant.bytes > 0 && tenant.bytes <= TENANT_BYTES_MAX;
    for (size_t i = 0; good && i < tenant.bytes; i++)
        good = tide_is_plain(tenant.data[i], "-.") && (i > 0 || tenant.data[i] != '.');
    if (!good)
        return tide_error_set(err, TIDE_INVALID, "\"tenant\" of the client file is malformed");
    url_of_tenant(provider, tenant, provider->auth_url, client->auth_url, sizeof client->auth_url);
    url_of_tenant(provider, tenant, provider->token_url, client->token_url,
                  sizeof client->token_url);
    url_of_tenant(provider, tenant, provider->device_url, client->device_url,
                  sizeof client->device_url);
    return TIDE_OK;
}

static tide_status client_object(const struct tide_oauth_provider *provider, const json_t *file,
                                 const json_t **object_out, tide_error *err)
{
    *object_out = file;
    if (provider->client_object != NULL)
        TIDE_TRY(provider->client_object(file, object_out, err));
    if (!json_is_object(*object_out))
        return tide_error_set(err, TIDE_INVALID, "the client file contains no client object");
    return TIDE_OK;
}

tide_status tide_oauth_client_read(const struct tide_oauth_provider *provider, tide_text json,
                                   struct tide_oauth_client *client_out, tide_error *err)
{
    json_t *file = NULL;
    /* The parser's own error would quote the file. */
    tide_status rc =
        json.bytes > TIDE_SECRET_BYTES_MAX ? TIDE_INVALID : tide_json_parse(json, &file, NULL);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "the client file is not JSON");
    const json_t *object = NULL;
    struct tide_oauth_client client = {0};
    rc = client_object(provider, file, &object, err);
    for (size_t i = 0; rc == TIDE_OK && i < sizeof client_fields / sizeof client_fields[0]; i++)
        rc = client_field_read(object, &client_fields[i], &client, err);
    if (rc == TIDE_OK)
        rc = tenant_read(provider, object, &client, err);
    json_decref(file);
    if (rc != TIDE_OK)
        return rc;
    /* Client files do not name the revocation endpoint: it is beside another token endpoint. */
    if (client.revoke_url[0] == '\0' && client.token_url[0] != '\0' &&
        strcmp(client.token_url, provider->token_url) != 0)
        url_at(client.token_url, origin_bytes(client.token_url), provider->revoke_url,
               client.revoke_url, sizeof client.revoke_url);
    *client_out = client;
    return TIDE_OK;
}

void tide_oauth_client_at(const struct tide_oauth_provider *provider, const char *origin,
                          struct tide_oauth_client *client_out)
{
    struct tide_oauth_client client = {.client_id = "tidemark", .client_secret = "tidemark"};
    size_t bytes = strlen(origin);
    while (bytes > 0 && origin[bytes - 1] == '/')
        bytes--;
    TIDE_ASSERT(bytes + 100 < sizeof client.auth_url);
    url_at(origin, bytes, provider->auth_url, client.auth_url, sizeof client.auth_url);
    url_at(origin, bytes, provider->token_url, client.token_url, sizeof client.token_url);
    url_at(origin, bytes, provider->device_url, client.device_url, sizeof client.device_url);
    url_at(origin, bytes, provider->revoke_url, client.revoke_url, sizeof client.revoke_url);
    *client_out = client;
}

/* ---- scopes ---- */

static bool covered(const struct tide_oauth_provider *provider, tide_text given, tide_text scope)
{
    while (given.bytes > 0) {
        const tide_text has = tide_text_word(&given);
        if (tide_text_equal(has, scope) ||
            (provider->scope_covers != NULL && provider->scope_covers(has, scope)))
            return true;
    }
    return scope.bytes == 0; /* between two spaces */
}

bool tide_oauth_scopes_cover(const struct tide_oauth_provider *provider, tide_text given,
                             const char *asked)
{
    tide_text wanted = tide_text_of(asked);
    bool all = true;
    while (all && wanted.bytes > 0)
        all = covered(provider, given, tide_text_word(&wanted));
    return all;
}
