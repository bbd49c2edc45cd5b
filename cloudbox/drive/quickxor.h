/* quickxor.h - QuickXorHash, the hash that OneDrive gives for every file.
 *
 * Byte i of a file is added (exclusive or) at bit 11 * i mod 160 of a register of 160
 * bits, round its end; the length is added to the last eight bytes.  Bytes that are 160
 * apart meet the same bits, so the state is 160 columns, and two files can be joined
 * without their bytes.
 *
 * Invariants:
 *   BQXH1  hash(a joined with b) is the hash of the bytes of a followed by those of b.
 */
#ifndef BOX_QUICKXOR_H
#define BOX_QUICKXOR_H

#include <stddef.h>
#include <stdint.h>

enum { BOX_QUICKXOR_COLUMNS = 160, BOX_QUICKXOR_BYTES = 20, BOX_QUICKXOR_TEXT_BYTES = 29 };

struct box_quickxor { /* zeroed: no bytes yet */
    uint8_t columns[BOX_QUICKXOR_COLUMNS];
    uint64_t bytes;
};

void box_quickxor_add(struct box_quickxor *self, const void *bytes, size_t count);
/* The bytes of `next` follow. */
void box_quickxor_join(struct box_quickxor *self, const struct box_quickxor *next);
void box_quickxor_hash(const struct box_quickxor *self, uint8_t hash_out[BOX_QUICKXOR_BYTES]);
/* In base64, as the API writes it. */
void box_quickxor_text(const uint8_t hash[BOX_QUICKXOR_BYTES],
                       char text_out[BOX_QUICKXOR_TEXT_BYTES]);

#endif
