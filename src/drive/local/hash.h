/* hash.h - both hashes of content in one pass: QuickXorHash and SHA-256 (D14). */
#ifndef TIDE_DRIVE_LOCAL_HASH_H
#define TIDE_DRIVE_LOCAL_HASH_H

#include "drive/rows.h"
#include "world/folder.h"

#include <openssl/types.h>

/* Content that comes in pieces; embedded value, a zeroed one is done. */
struct tide_drive_hasher {
    tide_quickxor quick; /* counts the bytes, too */
    EVP_MD_CTX *strong;
    bool failed;
};
/* Begins, also again.  TIDE_NO_MEMORY. */
tide_status tide_drive_hasher_begin(struct tide_drive_hasher *hasher, tide_error *err);
void tide_drive_hasher_add(struct tide_drive_hasher *hasher, const void *bytes, size_t count);
/* Once: no more can be added afterwards. */
tide_status tide_drive_hasher_end(struct tide_drive_hasher *hasher,
                                  struct tide_drive_content *content_out, tide_error *err);
void tide_drive_hasher_done(struct tide_drive_hasher *hasher);

/* TIDE_STALE: it changed meanwhile, or is no file.  `entry_out` is the file that was hashed. */
tide_status tide_drive_hash_file(int dir, tide_text name, struct tide_drive_content *content_out,
                                 struct tide_entry *entry_out, tide_error *err);

#endif
