#include "net/shown.h"

#include "base/check.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_secret(const char *text, const char *const *secrets)
{
    for (; *secrets != NULL; secrets++)
        if (strncasecmp(text, *secrets, strlen(*secrets)) == 0)
            return true;
    return false;
}

void tide_shown(const char *text, const char *const *secrets, char *shown_out, size_t room)
{
    TIDE_ASSERT(room > 0);
    size_t bytes = 0;
    tide_text rest = tide_text_of(text);
    while (rest.bytes > 0) {
        if (is_secret(rest.data, secrets)) {
            const int more = snprintf(shown_out + bytes, room - bytes, "[hidden]");
            bytes += (size_t)more < room - bytes ? (size_t)more : 0;
            break;
        }
        size_t letter = tide_utf8_bytes(rest);
        letter += letter == 0;
        if (bytes + letter >= room)
            break;
        const unsigned char first = (unsigned char)rest.data[0];
        if (letter == 1 && (first < 0x20 || first >= 0x7f))
            shown_out[bytes] = ' ';
        else
            memcpy(shown_out + bytes, rest.data, letter);
        bytes += letter;
        rest.data += letter;
        rest.bytes -= letter;
    }
    shown_out[bytes] = '\0';
}
