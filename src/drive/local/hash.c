#include "drive/local/hash.h"

#include <openssl/evp.h>

tide_status tide_drive_hasher_begin(struct tide_drive_hasher *hasher, tide_error *err)
{
    hasher->quick = (tide_quickxor){.bytes = 0};
    hasher->failed = false;
    if (hasher->strong == NULL)
        hasher->strong = EVP_MD_CTX_new();
    if (hasher->strong == NULL || EVP_DigestInit_ex(hasher->strong, EVP_sha256(), NULL) != 1)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to hash a file");
    return TIDE_OK;
}

void tide_drive_hasher_add(struct tide_drive_hasher *hasher, const void *bytes, size_t count)
{
    tide_quickxor_add(&hasher->quick, bytes, count);
    hasher->failed = hasher->failed || EVP_DigestUpdate(hasher->strong, bytes, count) != 1;
}

tide_status tide_drive_hasher_end(struct tide_drive_hasher *hasher,
                                  struct tide_drive_content *content_out, tide_error *err)
{
    struct tide_drive_content content = {
        .bytes = hasher->quick.bytes, .has_qxh = true, .has_strong = true};
    if (hasher->failed || EVP_DigestFinal_ex(hasher->strong, content.strong, NULL) != 1)
        return tide_error_set(err, TIDE_BUG, "the hash of a file could not be made");
    tide_quickxor_end(&hasher->quick, content.qxh);
    *content_out = content;
    return TIDE_OK;
}

void tide_drive_hasher_done(struct tide_drive_hasher *hasher)
{
    EVP_MD_CTX_free(hasher->strong);
    hasher->strong = NULL;
}

static void take(const void *bytes, size_t count, void *arg)
{
    tide_drive_hasher_add(arg, bytes, count);
}

tide_status tide_drive_hash_file(int dir, tide_text name, struct tide_drive_content *content_out,
                                 struct tide_entry *entry_out, tide_error *err)
{
    struct tide_drive_hasher hasher = {.strong = NULL};
    tide_status rc = tide_drive_hasher_begin(&hasher, err);
    if (rc == TIDE_OK)
        rc = tide_folder_read(dir, name, take, &hasher, entry_out, err);
    if (rc == TIDE_OK)
        rc = tide_drive_hasher_end(&hasher, content_out, err);
    tide_drive_hasher_done(&hasher);
    return rc;
}
