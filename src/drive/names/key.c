#include "drive/names/key.h"

#include <glib.h>

static bool is_ascii(tide_text name)
{
    for (size_t i = 0; i < name.bytes; i++)
        if ((unsigned char)name.data[i] >= 0x80)
            return false;
    return true;
}

bool tide_drive_is_utf8(tide_text name)
{
    return name.bytes == 0 || g_utf8_validate_len(name.data, name.bytes, NULL);
}

size_t tide_drive_utf16_units(tide_text text)
{
    size_t units = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned char byte = (unsigned char)text.data[i];
        units += (byte & 0xc0) != 0x80;
        units += byte >= 0xf0; /* beyond the basic plane: a pair */
    }
    return units;
}

static tide_status add_ascii(tide_buf *out, tide_text name)
{
    char *room = tide_buf_reserve(out, name.bytes);
    if (room == NULL)
        return TIDE_FULL;
    for (size_t i = 0; i < name.bytes; i++)
        room[i] = g_ascii_tolower(name.data[i]);
    room[name.bytes] = '\0';
    out->bytes += name.bytes;
    return TIDE_OK;
}

/* Folding may undo composition and the other way round: a few letters need a second pass. */
static char *folded(const char *name, size_t bytes)
{
    char *composed = g_utf8_normalize(name, (gssize)bytes, G_NORMALIZE_NFC);
    for (int pass = 0; composed != NULL && pass < 2; pass++) {
        char *fold = g_utf8_casefold(composed, -1);
        g_free(composed);
        composed = g_utf8_normalize(fold, -1, G_NORMALIZE_NFC);
        g_free(fold);
    }
    return composed;
}

tide_status tide_drive_key_add(tide_buf *out, tide_text name)
{
    if (is_ascii(name))
        return add_ascii(out, name);
    char *key = tide_drive_is_utf8(name) ? folded(name.data, name.bytes) : NULL;
    if (key == NULL)
        return tide_buf_add(out, name.data, name.bytes);
    const tide_status rc = tide_buf_add_text(out, key);
    g_free(key);
    return rc;
}

bool tide_drive_same_letters(tide_text a, tide_text b)
{
    if (tide_text_equal(a, b))
        return true;
    if ((is_ascii(a) && is_ascii(b)) || !tide_drive_is_utf8(a) || !tide_drive_is_utf8(b))
        return false;
    char *left = g_utf8_normalize(a.data, (gssize)a.bytes, G_NORMALIZE_NFC);
    char *right = g_utf8_normalize(b.data, (gssize)b.bytes, G_NORMALIZE_NFC);
    const bool same = left != NULL && right != NULL && strcmp(left, right) == 0;
    g_free(left);
    g_free(right);
    return same;
}
