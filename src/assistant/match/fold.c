#include "assistant/match/fold.h"

#include "base/check.h"
#include "base/json.h"

#include <glib.h>

uint32_t tide_fold_take_exact(tide_text *rest_io)
{
    TIDE_ASSERT(rest_io->bytes > 0);
    const size_t bytes = tide_utf8_bytes(*rest_io);
    const uint32_t code = bytes == 0 ? 0xfffd : (uint32_t)g_utf8_get_char(rest_io->data);
    const size_t taken = bytes == 0 ? 1 : bytes;
    *rest_io = (tide_text){rest_io->data + taken, rest_io->bytes - taken};
    return code;
}

uint32_t tide_fold_code(uint32_t code)
{
    if (code < 0x80)
        return code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
    return (uint32_t)g_unichar_tolower((gunichar)code);
}

uint32_t tide_fold_upper(uint32_t code)
{
    if (code < 0x80)
        return code >= 'a' && code <= 'z' ? code - ('a' - 'A') : code;
    return (uint32_t)g_unichar_toupper((gunichar)code);
}

uint32_t tide_fold_take(tide_text *rest_io)
{
    return tide_fold_code(tide_fold_take_exact(rest_io));
}

/* Whether `text` begins with `part`; *rest_out is what follows it. */
static bool starts(tide_text text, tide_text part, tide_text *rest_out)
{
    while (part.bytes > 0) {
        if (text.bytes == 0 || tide_fold_take(&text) != tide_fold_take(&part))
            return false;
    }
    *rest_out = text;
    return true;
}

bool tide_fold_equal(tide_text a, tide_text b)
{
    tide_text rest = TIDE_TEXT_NONE;
    return starts(a, b, &rest) && rest.bytes == 0;
}

bool tide_fold_contains(tide_text text, tide_text part)
{
    tide_text rest = TIDE_TEXT_NONE;
    for (;;) {
        if (starts(text, part, &rest))
            return true;
        if (text.bytes == 0)
            return false;
        (void)tide_fold_take_exact(&text);
    }
}
