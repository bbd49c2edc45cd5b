#include "drive/local/hash.h"

#include <openssl/evp.h>

struct hashing {
    tide_quickxor quick;
    EVP_MD_CTX *strong;
    bool failed;
};

static void take(const void *bytes, size_t count, void *arg)
{
    struct hashing *hashing = arg;
    tide_quickxor_add(&hashing->quick, bytes, count);
    hashing->failed = hashing->failed || EVP_DigestUpdate(hashing->strong, bytes, count) != 1;
}

tide_status tide_drive_hash_file(int dir, tide_text name, struct tide_drive_content *content_out,
                                 struct tide_entry *entry_out, tide_error *err)
{
    struct hashing hashing = {.strong = EVP_MD_CTX_new()};
    if (hashing.strong == NULL || EVP_DigestInit_ex(hashing.strong, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(hashing.strong);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to hash a file");
    }
    struct tide_drive_content content = {.has_qxh = true, .has_strong = true};
    tide_status rc = tide_folder_read(dir, name, take, &hashing, entry_out, err);
    if (rc == TIDE_OK &&
        (hashing.failed || EVP_DigestFinal_ex(hashing.strong, content.strong, NULL) != 1))
        rc = tide_error_set(err, TIDE_BUG, "the hash of a file could not be made");
    EVP_MD_CTX_free(hashing.strong);
    if (rc != TIDE_OK)
        return rc;
    tide_quickxor_end(&hashing.quick, content.qxh);
    content.bytes = hashing.quick.bytes;
    *content_out = content;
    return TIDE_OK;
}
