#include "mail/mime/file_name.h"
#include "mail/mime/charset.h"
#include "base/check.h"
#include "base/json.h"

#include <stdio.h>

enum {
    NAME_BYTES_MAX = 200, /* of what the sender gave (message.c) */
    ENDING_BYTES_MAX = 16,
};

/* Marks of direction, and line and paragraph separators: U+061C, U+200E, U+200F, U+2028 to U+202E,
 * U+2066 to U+2069, U+FEFF. */
static bool is_hidden(const unsigned char *c, size_t bytes)
{
    if (bytes == 2)
        return c[0] == 0xd8 && c[1] == 0x9c;
    if (bytes != 3)
        return false;
    if (c[0] == 0xe2 && c[1] == 0x80)
        return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae);
    return (c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9) ||
           (c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf);
}

/* Copies whole characters; those that are not allowed become '_' or are left out. */
static size_t copy_allowed(tide_text name, char *out, size_t room)
{
    size_t used = 0;
    for (size_t at = 0; at < name.bytes;) {
        const tide_text rest = {name.data + at, name.bytes - at};
        const unsigned char *c = (const unsigned char *)rest.data;
        size_t bytes = tide_utf8_bytes(rest);
        const bool broken = bytes == 0;
        bytes = broken ? 1 : bytes;
        at += bytes;
        if (is_hidden(c, bytes) || (used == 0 && (c[0] == '.' || c[0] == ' ')))
            continue;
        if (used + bytes > room)
            break;
        const bool control = c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0);
        if (broken || control || strchr("/\\:*?\"<>|", c[0]) != NULL) {
            out[used++] = '_';
        } else {
            memcpy(out + used, c, bytes);
            used += bytes;
        }
    }
    while (used > 0 && (out[used - 1] == ' ' || out[used - 1] == '.'))
        used--;
    return used;
}

/* ".pdf" at the end of a name; "": it has none. */
static tide_text ending_of(tide_text name)
{
    for (size_t i = name.bytes; i > 1 && name.bytes - i < ENDING_BYTES_MAX; i--) {
        if (name.data[i - 1] == '.')
            return (tide_text){name.data + i - 1, name.bytes - i + 1};
    }
    return TIDE_TEXT("");
}

static bool is_device(tide_text name)
{
    static const char *const names[] = {"con", "prn", "aux", "nul"};
    size_t stem = 0;
    while (stem < name.bytes && name.data[stem] != '.')
        stem++;
    name.bytes = stem;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (tide_text_equal_nocase(name, names[i]))
            return true;
    }
    return name.bytes == 4 && name.data[3] >= '0' && name.data[3] <= '9' &&
           (tide_text_starts_nocase(name, "com") || tide_text_starts_nocase(name, "lpt"));
}

static void name_missing(const struct tide_attachment *attachment, size_t number,
                         char name_out[TIDE_FILE_NAME_BYTES_MAX + 1])
{
    const bool letter = tide_text_equal(attachment->type, TIDE_TEXT("message/rfc822"));
    (void)snprintf(name_out, TIDE_FILE_NAME_BYTES_MAX + 1, "attachment-%zu%s", number,
                   letter ? ".eml" : "");
}

void tide_file_name(const struct tide_attachment *attachment, size_t number,
                    char name_out[TIDE_FILE_NAME_BYTES_MAX + 1])
{
    char name[NAME_BYTES_MAX + 1], ending[ENDING_BYTES_MAX + 1];
    const tide_text last = ending_of(attachment->name);
    const tide_text stem = {attachment->name.data, attachment->name.bytes - last.bytes};
    const size_t ending_bytes =
        copy_allowed((tide_text){last.data + 1, last.bytes == 0 ? 0 : last.bytes - 1}, ending,
                     sizeof ending - 1);
    const size_t bytes = copy_allowed(stem, name, NAME_BYTES_MAX - ENDING_BYTES_MAX);
    if (bytes == 0 && ending_bytes == 0) {
        name_missing(attachment, number, name_out);
        return;
    }
    name[bytes] = ending[ending_bytes] = '\0';
    const char *device = is_device((tide_text){name, bytes}) ? "_" : "";
    const int written = snprintf(name_out, TIDE_FILE_NAME_BYTES_MAX + 1, "%s%s%s%s", device, name,
                                 bytes > 0 && ending_bytes > 0 ? "." : "", ending);
    TIDE_ASSERT(written > 0 && written <= TIDE_FILE_NAME_BYTES_MAX);
}
