#include "net/image/type.h"

#include <string.h>

static bool starts(tide_text bytes, size_t at, const char *magic, size_t count)
{
    return bytes.bytes >= at + count && memcmp(bytes.data + at, magic, count) == 0;
}

const char *tide_image_type(tide_text bytes)
{
    if (starts(bytes, 0, "\x89PNG\r\n\x1a\n", 8))
        return "image/png";
    if (starts(bytes, 0, "\xff\xd8\xff", 3))
        return "image/jpeg";
    if (starts(bytes, 0, "GIF87a", 6) || starts(bytes, 0, "GIF89a", 6))
        return "image/gif";
    if (starts(bytes, 0, "RIFF", 4) && starts(bytes, 8, "WEBPVP8", 7))
        return "image/webp";
    return NULL;
}
