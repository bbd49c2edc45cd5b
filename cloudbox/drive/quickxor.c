#include "cloudbox/drive/quickxor.h"

#include "base/encode.h"
#include "base/mem.h"

#include <string.h>

enum { BITS = 160, STEP_BITS = 11, LENGTH_AT = 12 };

void box_quickxor_add(struct box_quickxor *self, const void *bytes, size_t count)
{
    const uint8_t *from = bytes;
    size_t at = (size_t)(self->bytes % BOX_QUICKXOR_COLUMNS);
    self->bytes += count;
    while (count > 0) {
        const size_t room = BOX_QUICKXOR_COLUMNS - at;
        const size_t step = count < room ? count : room;
        for (size_t i = 0; i < step; i++)
            self->columns[at + i] = (uint8_t)(self->columns[at + i] ^ from[i]);
        from += step;
        count -= step;
        at = 0;
    }
}

void box_quickxor_join(struct box_quickxor *self, const struct box_quickxor *next)
{
    const size_t at = (size_t)(self->bytes % BOX_QUICKXOR_COLUMNS);
    for (size_t i = 0; i < BOX_QUICKXOR_COLUMNS; i++) {
        uint8_t *column = &self->columns[(at + i) % BOX_QUICKXOR_COLUMNS];
        *column = (uint8_t)(*column ^ next->columns[i]);
    }
    self->bytes += next->bytes;
}

void box_quickxor_hash(const struct box_quickxor *self, uint8_t hash_out[BOX_QUICKXOR_BYTES])
{
    memset(hash_out, 0, BOX_QUICKXOR_BYTES);
    for (size_t i = 0, bit = 0; i < BOX_QUICKXOR_COLUMNS; i++, bit = (bit + STEP_BITS) % BITS) {
        const unsigned wide = (unsigned)self->columns[i] << (bit % 8);
        const size_t low = bit / 8, high = (bit / 8 + 1) % BOX_QUICKXOR_BYTES;
        hash_out[low] = (uint8_t)(hash_out[low] ^ (wide & 255));
        hash_out[high] = (uint8_t)(hash_out[high] ^ (wide >> 8));
    }
    for (size_t i = 0; i < 8; i++)
        hash_out[LENGTH_AT + i] = (uint8_t)(hash_out[LENGTH_AT + i] ^ (self->bytes >> (8 * i)));
}

void box_quickxor_text(const uint8_t hash[BOX_QUICKXOR_BYTES],
                       char text_out[BOX_QUICKXOR_TEXT_BYTES])
{
    size_t at = 0;
    for (size_t i = 0; i < BOX_QUICKXOR_BYTES; i += 3) {
        const size_t have = BOX_QUICKXOR_BYTES - i < 3 ? BOX_QUICKXOR_BYTES - i : 3;
        unsigned three = (unsigned)hash[i] << 16;
        three |= have > 1 ? (unsigned)hash[i + 1] << 8 : 0;
        three |= have > 2 ? (unsigned)hash[i + 2] : 0;
        for (unsigned digit = 0; digit < 4; digit++)
            text_out[at++] =
                digit <= have ? tide_base64_standard[three >> (18 - 6 * digit) & 63] : '=';
    }
    text_out[at] = '\0';
}
