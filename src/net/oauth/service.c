/* service.c - service accounts of Google's: their key files and the assertions they sign
 * (RFC 7523, RS256). */
#include "net/oauth/google.h"
#include "net/oauth/inside.h"

#include "base/check.h"
#include "base/encode.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_BITS_MIN = 2048,
    SIGNATURE_BYTES_MAX = 2048,
    JWT_BYTES_MAX = 32 << 10,
    ASSERTION_LIFE_S = 3600, /* the longest that Google accepts */
    SKEW_S = 30,             /* tolerates a clock that is a little ahead */
};

/* ---- keys ---- */

/* OpenSSL would ask for the password of an encrypted key on the terminal. */
static int no_password(char *room, int room_bytes, int writing, void *arg)
{
    (void)room;
    (void)room_bytes;
    (void)writing;
    (void)arg;
    return -1;
}

/* NULL: not an RSA key of sufficient size.  The caller frees it (OpenSSL wipes). */
static EVP_PKEY *key_read(tide_text pem)
{
    if (pem.bytes == 0 || pem.bytes > TIDE_OAUTH_KEY_BYTES_MAX)
        return NULL;
    BIO *bio = BIO_new_mem_buf(pem.data, (int)pem.bytes);
    EVP_PKEY *key = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    BIO_free(bio);
    if (key != NULL &&
        (EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA || EVP_PKEY_get_bits(key) < KEY_BITS_MIN)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    return key;
}

/* Appends ".signature" over the content of `jwt`. */
static tide_status sign(EVP_PKEY *key, tide_buf *jwt, tide_error *err)
{
    unsigned char signature[SIGNATURE_BYTES_MAX];
    size_t bytes = sizeof signature;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const bool signed_it =
        context != NULL && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestSign(context, signature, &bytes, (const unsigned char *)jwt->data, jwt->bytes) ==
            1;
    EVP_MD_CTX_free(context);
    if (!signed_it)
        return tide_error_set(err, TIDE_INVALID, "the service account's key cannot sign");
    tide_status rc = tide_buf_add(jwt, ".", 1);
    if (rc == TIDE_OK)
        rc = tide_base64_add(jwt, (tide_text){(const char *)signature, bytes}, tide_base64_url,
                             false);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for an assertion");
}

/* ---- assertions ---- */

static void set_buf(tide_json *json, const char *name, const tide_buf *value)
{
    if (value->bytes > 0)
        tide_json_set_text(json, name, tide_buf_text(value));
}

/* Appends one half of the token: the object in base64url. */
static tide_status half_add(tide_json *json, tide_buf *jwt)
{
    tide_auto_buf text = tide_buf_in(jwt->mem, JWT_BYTES_MAX);
    tide_status rc = tide_json_line(json, &text);
    if (rc == TIDE_OK && jwt->bytes > 0)
        rc = tide_buf_add(jwt, ".", 1);
    if (rc == TIDE_OK)
        rc = tide_base64_add(jwt, (tide_text){text.data, text.bytes - 1}, tide_base64_url,
                             false); /* without its newline */
    tide_json_done(json);
    return rc;
}

static tide_status assertion_write(const struct tide_grant *grant, uint64_t now_unix_ms,
                                   EVP_PKEY *key, tide_buf *jwt, tide_error *err)
{
    const uint64_t now_s = now_unix_ms / 1000;
    const uint64_t issued_s = now_s < SKEW_S ? 0 : now_s - SKEW_S;
    tide_json header;
    tide_json_object(&header);
    tide_json_set_cstr(&header, "alg", "RS256");
    tide_json_set_cstr(&header, "typ", "JWT");
    set_buf(&header, "kid", &grant->key_id);
    tide_status rc = half_add(&header, jwt);
    tide_json claims;
    tide_json_object(&claims);
    set_buf(&claims, "iss", &grant->email);
    set_buf(&claims, "sub", &grant->user);
    set_buf(&claims, "scope", &grant->scopes);
    set_buf(&claims, "aud", &grant->token_url);
    tide_json_set_u64(&claims, "iat", issued_s);
    tide_json_set_u64(&claims, "exp", issued_s + ASSERTION_LIFE_S);
    if (rc == TIDE_OK)
        rc = half_add(&claims, jwt);
    else
        tide_json_done(&claims);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory for an assertion");
    return sign(key, jwt, err);
}

tide_status tide_service_form(const struct tide_grant *grant, uint64_t now_unix_ms, tide_buf *form,
                              tide_error *err)
{
    TIDE_ASSERT(grant->type == TIDE_GRANT_SERVICE);
    EVP_PKEY *key = key_read(tide_buf_text(&grant->private_key));
    if (key == NULL)
        return tide_error_set(err, TIDE_CORRUPT,
                              "the stored key of the service account is damaged");
    tide_buf jwt;
    tide_buf_init(&jwt, form->mem, JWT_BYTES_MAX);
    tide_status rc = assertion_write(grant, now_unix_ms, key, &jwt, err);
    EVP_PKEY_free(key);
    if (rc == TIDE_OK) {
        rc = tide_form_add(form, "grant_type",
                           TIDE_TEXT("urn:ietf:params:oauth:grant-type:jwt-bearer"));
        if (rc == TIDE_OK)
            rc = tide_form_add(form, "assertion", tide_buf_text(&jwt));
        if (rc != TIDE_OK)
            (void)tide_error_set(err, rc, "no memory for an assertion");
    }
    tide_secret_wipe(&jwt);
    return rc;
}

/* ---- key files ---- */

static tide_status wrong(const char *what, tide_error *err)
{
    return tide_error_set(err, TIDE_INVALID, "the service account's key file %s", what);
}

static tide_status take(const json_t *file, const char *name, bool needed, tide_buf *out,
                        tide_error *err)
{
    char what[80];
    tide_text text = TIDE_TEXT_NONE;
    tide_status rc = tide_json_get_text(file, name, &text, NULL);
    if (rc == TIDE_NOT_FOUND && !needed)
        return TIDE_OK;
    (void)snprintf(what, sizeof what, "has no \"%s\"", name);
    if (rc != TIDE_OK || text.bytes == 0)
        return wrong(what, err);
    (void)snprintf(what, sizeof what, "has a \"%s\" that is too long", name);
    rc = tide_buf_set(out, text);
    if (rc == TIDE_FULL)
        return wrong(what, err);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for a key file");
}

static tide_status key_file_read(const json_t *file, struct tide_grant *grant, tide_error *err)
{
    const char *type = json_string_value(json_object_get(file, "type"));
    if (!json_is_object(file) || type == NULL || strcmp(type, "service_account") != 0)
        return wrong("is of another kind: its \"type\" is not \"service_account\"", err);
    TIDE_TRY(take(file, "client_email", true, &grant->email, err));
    TIDE_TRY(take(file, "private_key", true, &grant->private_key, err));
    TIDE_TRY(take(file, "private_key_id", false, &grant->key_id, err));
    TIDE_TRY(take(file, "token_uri", true, &grant->token_url, err));
    if (!tide_oauth_is_token(tide_buf_text(&grant->email)) ||
        (grant->key_id.bytes > 0 && !tide_oauth_is_token(tide_buf_text(&grant->key_id))))
        return wrong("has a malformed \"client_email\" or \"private_key_id\"", err);
    if (!tide_oauth_is_url(tide_buf_text(&grant->token_url)))
        return wrong("has a \"token_uri\" that is not an https address", err);
    EVP_PKEY *key = key_read(tide_buf_text(&grant->private_key));
    if (key == NULL)
        return wrong("has a \"private_key\" that is not an RSA key of 2048 bits or more", err);
    EVP_PKEY_free(key);
    return TIDE_OK;
}

static bool is_scopes(tide_text scopes)
{
    for (size_t i = 0; i < scopes.bytes; i++)
        if (scopes.data[i] < ' ' || scopes.data[i] >= 0x7f)
            return false;
    return scopes.bytes > 0 && scopes.bytes <= TIDE_OAUTH_FIELD_BYTES_MAX;
}

tide_status tide_oauth_service_account(tide_text key_json, const char *user, const char *scopes,
                                       tide_buf *grant_out, tide_error *err)
{
    const tide_text acts_for = tide_text_of(user);
    if (acts_for.bytes > 0 && (!tide_oauth_is_token(acts_for) || acts_for.bytes > 320))
        return tide_error_set(err, TIDE_INVALID, "not a valid user address to act for");
    if (!is_scopes(tide_text_of(scopes)))
        return tide_error_set(err, TIDE_INVALID, "not a list of scopes");
    json_t *file = NULL;
    tide_status rc = key_json.bytes > TIDE_SECRET_BYTES_MAX
                         ? TIDE_INVALID
                         : tide_json_parse(key_json, &file, NULL); /* its error quotes */
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "the service account's key file is not JSON");
    struct tide_mem_wiping wiping;
    tide_mem_wiping_init(&wiping, grant_out->mem);
    struct tide_grant grant;
    tide_grant_init(&grant, &wiping.base);
    grant.type = TIDE_GRANT_SERVICE;
    rc = key_file_read(file, &grant, err);
    tide_json_wipe(file);
    if (rc == TIDE_OK &&
        (tide_buf_set(&grant.provider, tide_text_of(tide_oauth_google.name)) != TIDE_OK ||
         tide_buf_set(&grant.user, acts_for) != TIDE_OK ||
         tide_buf_set(&grant.scopes, tide_text_of(scopes)) != TIDE_OK))
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for a key file");
    if (rc == TIDE_OK)
        rc = tide_grant_write(&grant, grant_out, err);
    tide_grant_done(&grant);
    return rc;
}
