/* hash.h - both hashes of a local file in one pass: QuickXorHash and SHA-256 (D14). */
#ifndef TIDE_DRIVE_LOCAL_HASH_H
#define TIDE_DRIVE_LOCAL_HASH_H

#include "drive/rows.h"
#include "world/folder.h"

/* TIDE_STALE: it changed meanwhile, or is no file.  `entry_out` is the file that was hashed. */
tide_status tide_drive_hash_file(int dir, tide_text name, struct tide_drive_content *content_out,
                                 struct tide_entry *entry_out, tide_error *err);

#endif
