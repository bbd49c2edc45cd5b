/* quickxor.h - QuickXorHash, the content hash that OneDrive has of every file.
 *
 * 160 bits.  Byte i of a file is XORed in at bit (11 * i) mod 160, wrapping around; at the end the
 * length is XORed into the last 8 bytes.  Positions repeat every 160 bytes, so that the content is
 * first XORed into 160 columns, which compilers turn into wide XORs, and folded once.
 *
 * It is no proof that two files are equal: two pages of 4 KiB that are 5 apart can be swapped
 * without a trace.  Whether a local file changed is decided by SHA-256 (D14); this one checks what
 * was transferred (D6).
 *
 * Invariant (tests/unit/drive/drive_quickxor_test.c):
 *   QXH1  the hash depends on the bytes only, not on how they were cut into updates.
 */
#ifndef TIDE_DRIVE_HASH_QUICKXOR_H
#define TIDE_DRIVE_HASH_QUICKXOR_H

#include <stddef.h>
#include <stdint.h>

enum { TIDE_QUICKXOR_BYTES = 20, TIDE_QUICKXOR_COLUMNS = 160 };

/* Embedded; a zeroed one has seen nothing. */
typedef struct tide_quickxor {
    uint8_t columns[TIDE_QUICKXOR_COLUMNS];
    uint64_t bytes;
} tide_quickxor;

void tide_quickxor_add(tide_quickxor *hash, const void *bytes, size_t count);
/* The hash so far; more may be added afterwards. */
void tide_quickxor_end(const tide_quickxor *hash, uint8_t out[TIDE_QUICKXOR_BYTES]);

#endif
