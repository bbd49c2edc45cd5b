#include "net/secrets.h"

#include "base/check.h"
#include "base/encode.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum {
    FILE_NAME_BYTES_MAX = 200, /* leaves room for the suffix of a replacement */
    FILE_NAME_KEPT_BYTES = 100,
};

struct tide_secrets {
    tide_world *world;
    tide_mem *mem;
    tide_keyring *keyring; /* NULL: files only */
    bool files;
    char dir[PATH_MAX];
};

void tide_secret_wipe(tide_buf *secret)
{
    if (secret->data != NULL)
        explicit_bzero(secret->data, secret->capacity);
    tide_buf_done(secret);
}

/* ---- names ---- */

static tide_status name_check(const char *name, tide_error *err)
{
    const size_t bytes = strlen(name);
    bool plain = bytes > 0 && bytes <= TIDE_SECRET_NAME_BYTES_MAX;
    for (size_t i = 0; plain && i < bytes; i++)
        plain = (unsigned char)name[i] >= 0x20 && name[i] != 0x7f;
    return plain ? TIDE_OK : tide_error_set(err, TIDE_INVALID, "invalid name for a secret");
}

/* Characters allowed in a file's name as they are; others become %XX, so that two names never
 * share a file. */
static bool is_plain(char c, bool first)
{
    return tide_is_plain(c, first ? "@-_+" : "@-_+.");
}

static void hash_add(const char *name, char *file, size_t room_bytes)
{
    unsigned char digest[32];
    unsigned digest_bytes = 0;
    TIDE_ASSERT(EVP_Digest(name, strlen(name), digest, &digest_bytes, EVP_sha256(), NULL) == 1);
    TIDE_ASSERT(digest_bytes == sizeof digest && room_bytes > 2 * sizeof digest + 1);
    *file++ = '~'; /* plain names have none */
    tide_hex(digest, sizeof digest, file);
}

static void file_name_of(const char *name, char file_out[FILE_NAME_BYTES_MAX + 1])
{
    char whole[TIDE_SECRET_NAME_BYTES_MAX * 3 + 1];
    size_t bytes = 0;
    for (const char *c = name; *c != '\0'; c++) {
        if (is_plain(*c, bytes == 0))
            whole[bytes++] = *c;
        else
            bytes += (size_t)snprintf(whole + bytes, 4, "%%%02X", (unsigned)(unsigned char)*c);
    }
    whole[bytes] = '\0';
    if (bytes <= FILE_NAME_BYTES_MAX) {
        memcpy(file_out, whole, bytes + 1);
        return;
    }
    memcpy(file_out, whole, FILE_NAME_KEPT_BYTES); /* readable hint */
    hash_add(name, file_out + FILE_NAME_KEPT_BYTES, FILE_NAME_BYTES_MAX + 1 - FILE_NAME_KEPT_BYTES);
}

static tide_status path_of(const tide_secrets *self, const char *name, char path_out[PATH_MAX],
                           tide_error *err)
{
    char file[FILE_NAME_BYTES_MAX + 1];
    file_name_of(name, file);
    if ((size_t)snprintf(path_out, PATH_MAX, "%s/%s", self->dir, file) >= PATH_MAX)
        return tide_error_set(err, TIDE_INVALID, "path too long: %.100s...", self->dir);
    return TIDE_OK;
}

/* ---- opening ---- */

tide_status tide_secrets_open(tide_world *world, const char *dir, tide_secrets_place place,
                              tide_mem *mem, tide_secrets **secrets_out, tide_error *err)
{
    tide_keyring *keyring = NULL;
    if (place != TIDE_SECRETS_FILES) {
        tide_status rc = tide_keyring_open(dir, mem, &keyring, err);
        if (rc != TIDE_OK && (rc != TIDE_NOT_FOUND || place == TIDE_SECRETS_KEYRING))
            return rc;
    }
    return tide_secrets_open_with(world, dir, place, keyring, mem, secrets_out, err);
}

tide_status tide_secrets_open_with(tide_world *world, const char *dir, tide_secrets_place place,
                                   tide_keyring *keyring, tide_mem *mem, tide_secrets **secrets_out,
                                   tide_error *err)
{
    tide_status rc = TIDE_OK;
    tide_secrets *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL) {
        if (keyring != NULL)
            keyring->ops->close(keyring);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the secrets");
    }
    self->world = world;
    self->mem = mem;
    self->keyring = keyring;
    self->files = place != TIDE_SECRETS_KEYRING;
    TIDE_ASSERT(place != TIDE_SECRETS_FILES || keyring == NULL);
    if (place == TIDE_SECRETS_KEYRING && keyring == NULL)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "there is no keyring");
    else if ((size_t)snprintf(self->dir, sizeof self->dir, "%s", dir) >= sizeof self->dir)
        rc = tide_error_set(err, TIDE_INVALID, "path too long: %.100s...", dir);
    else if (self->files)
        rc = tide_dir_make(world, dir, err);
    if (rc != TIDE_OK) {
        tide_secrets_close(self);
        return rc;
    }
    *secrets_out = self;
    return TIDE_OK;
}

void tide_secrets_close(tide_secrets *self)
{
    if (self == NULL)
        return;
    if (self->keyring != NULL)
        self->keyring->ops->close(self->keyring);
    tide_mem_free(self->mem, self, sizeof *self);
}

const char *tide_secrets_where(const tide_secrets *self)
{
    return self->keyring != NULL ? "keyring" : "file";
}

/* ---- storing ---- */

/* Removes the copy in the file, which is older now and would be read first. */
static tide_status file_forget(tide_secrets *self, const char *path, tide_error *err)
{
    tide_status rc = tide_file_remove(self->world, path, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_secrets_put(tide_secrets *self, const char *name, tide_text value, tide_error *err)
{
    char path[PATH_MAX];
    TIDE_TRY(name_check(name, err));
    TIDE_TRY(path_of(self, name, path, err));
    if (value.bytes > TIDE_SECRET_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "the secret %s is too long", name);
    if (value.bytes > 0 && memchr(value.data, '\0', value.bytes) != NULL)
        return tide_error_set(err, TIDE_INVALID, "the secret %s is not text", name);
    tide_status rc = TIDE_OK;
    if (self->keyring != NULL) {
        rc = self->keyring->ops->put(self->keyring, name, value, err);
        if (rc == TIDE_OK)
            return self->files ? file_forget(self, path, err) : TIDE_OK;
        if (!self->files)
            return rc;
    }
    return tide_file_replace(self->world, path, value, 0600, err);
}

static tide_status get_anywhere(tide_secrets *self, const char *name, const char *path,
                                tide_buf *value, tide_error *err)
{
    tide_status rc = TIDE_NOT_FOUND;
    if (self->files)
        rc = tide_file_read_private(self->world, path, TIDE_SECRET_BYTES_MAX, value, err);
    if (rc == TIDE_NOT_FOUND && self->keyring != NULL)
        rc = self->keyring->ops->get(self->keyring, name, value, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no secret %s", name);
    return rc;
}

tide_status tide_secrets_get(tide_secrets *self, const char *name, tide_buf *out, tide_error *err)
{
    char path[PATH_MAX];
    TIDE_TRY(name_check(name, err));
    TIDE_TRY(path_of(self, name, path, err));
    struct tide_mem_wiping wiping; /* SEC3, also where the buffer grows */
    tide_mem_wiping_init(&wiping, out->mem);
    tide_buf value;
    tide_buf_init(&value, &wiping.base, TIDE_SECRET_BYTES_MAX);
    tide_status rc = get_anywhere(self, name, path, &value, err);
    if (rc == TIDE_OK) {
        const size_t bytes_before = out->bytes;
        out->bytes = 0; /* replaces the content, in the room it has */
        rc = tide_buf_add(out, tide_buf_cstr(&value), value.bytes);
        if (rc != TIDE_OK) {
            out->bytes = bytes_before;
            (void)tide_error_set(err, rc, "no room for the secret %s", name);
        }
    }
    tide_secret_wipe(&value);
    return rc;
}

tide_status tide_secrets_remove(tide_secrets *self, const char *name, tide_error *err)
{
    char path[PATH_MAX];
    TIDE_TRY(name_check(name, err));
    TIDE_TRY(path_of(self, name, path, err));
    /* The keyring first: if the file were removed first, an old copy would become visible again. */
    tide_status kept = TIDE_NOT_FOUND;
    if (self->keyring != NULL)
        kept = self->keyring->ops->remove(self->keyring, name, err);
    if (kept != TIDE_OK && kept != TIDE_NOT_FOUND)
        return kept;
    tide_status rc = TIDE_OK;
    if (self->files)
        rc = tide_file_remove(self->world, path, err);
    if (rc == TIDE_NOT_FOUND || !self->files)
        rc = kept;
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no secret %s", name);
    return rc;
}
