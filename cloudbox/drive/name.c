#include "cloudbox/drive/name.h"

#include "base/hash.h"
#include "base/json.h"

#include <strings.h>

/* ---- without case ---- */

/* The next character without its case, one byte of a broken one. */
static uint32_t next_folded(tide_text *rest)
{
    const unsigned char *at = (const unsigned char *)rest->data;
    const size_t bytes = tide_utf8_bytes(*rest);
    uint32_t c = at[0];
    if (bytes > 1) {
        c = at[0] & (0xffu >> (bytes + 1));
        for (size_t i = 1; i < bytes; i++)
            c = c << 6 | (at[i] & 0x3fu);
    }
    const size_t step = bytes == 0 ? 1 : bytes;
    *rest = (tide_text){rest->data + step, rest->bytes - step};
    if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
        (c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
        return c + 0x20;
    if (c >= 0x400 && c <= 0x40f)
        return c + 0x50;
    return c;
}

bool box_name_equal(tide_text a, tide_text b)
{
    while (a.bytes > 0 && b.bytes > 0)
        if (next_folded(&a) != next_folded(&b))
            return false;
    return a.bytes == b.bytes;
}

uint64_t box_name_hash(uint64_t start, tide_text name)
{
    uint64_t hash = start ^ TIDE_HASH_START;
    while (name.bytes > 0) {
        const uint32_t c = next_folded(&name);
        for (unsigned i = 0; i < 24; i += 8)
            hash = tide_hash_byte(hash, (uint8_t)(c >> i));
    }
    return hash == 0 ? 1 : hash;
}

uint32_t box_name_units(tide_text name)
{
    uint32_t units = 0;
    while (name.bytes > 0) {
        const size_t bytes = tide_utf8_bytes(name);
        const size_t step = bytes == 0 ? 1 : bytes;
        units += bytes == 4 ? 2 : 1;
        name = (tide_text){name.data + step, name.bytes - step};
    }
    return units;
}

/* ---- what may be used ---- */

static bool is_utf8(tide_text name)
{
    while (name.bytes > 0) {
        const size_t bytes = tide_utf8_bytes(name);
        if (bytes == 0)
            return false;
        name = (tide_text){name.data + bytes, name.bytes - bytes};
    }
    return true;
}

static bool is_word(tide_text name, const char *word)
{
    return name.bytes == strlen(word) && strncasecmp(name.data, word, name.bytes) == 0;
}

static bool is_device(tide_text name)
{
    static const char *const words[] = {"CON", "PRN", "AUX", "NUL", ".lock", "desktop.ini"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (is_word(name, words[i]))
            return true;
    return name.bytes == 4 && name.data[3] >= '0' && name.data[3] <= '9' &&
           (strncasecmp(name.data, "COM", 3) == 0 || strncasecmp(name.data, "LPT", 3) == 0);
}

static bool has_vti(tide_text name)
{
    for (size_t i = 0; i + 5 <= name.bytes; i++)
        if (strncasecmp(name.data + i, "_vti_", 5) == 0)
            return true;
    return false;
}

const char *box_name_wrong(tide_text name)
{
    if (name.bytes == 0)
        return "The name cannot be empty.";
    if (!is_utf8(name))
        return "The name is not UTF-8.";
    for (size_t i = 0; i < name.bytes; i++)
        if ((unsigned char)name.data[i] < ' ' || name.data[i] == 0x7f ||
            strchr("\"*:<>?/\\|", name.data[i]) != NULL)
            return "The provided name cannot contain any of the following characters: "
                   "\" * : < > ? / \\ |";
    if (name.data[0] == ' ' || name.data[name.bytes - 1] == ' ' || name.data[name.bytes - 1] == '.')
        return "The provided name cannot begin or end with a space or end with a period.";
    if (is_device(name) || has_vti(name) || (name.bytes >= 2 && memcmp(name.data, "~$", 2) == 0))
        return "The provided name is reserved.";
    if (box_name_units(name) > BOX_NAME_UNITS_MAX)
        return "The provided name is too long.";
    return NULL;
}
